# expect: OB6003 line 4
station a
begin: sync slave, 1 ms
    future begin, 1ms
    halt
    goto begin
