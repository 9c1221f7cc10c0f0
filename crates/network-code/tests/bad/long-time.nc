# expect: OB6032 line 4, OB6032 line 6
station a
begin: sync slave, 1 ms
    future begin, 34_359_738_368 ns
    halt
    sync slave, 60 s
    goto begin
