# expect: OB6033 line 4
station a
begin: sync slave, 1 ms
    sync slave, 0 s
    goto begin
