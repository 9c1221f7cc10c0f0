# expect: OB6056 line 5
station a
begin: sync slave, 1 ms
    goto begin
    nop
    goto begin
