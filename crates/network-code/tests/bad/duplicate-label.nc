# expect: OB6021 line 4
station a
begin: sync slave, 1 ms
begin: nop
    goto begin
