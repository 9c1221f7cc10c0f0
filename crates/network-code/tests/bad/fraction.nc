# expect: OB6030 line 4
station a
begin: sync slave, 1 ms
    future begin, 1 us + 1 ns
    halt
    goto begin
