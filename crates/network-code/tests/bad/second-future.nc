# expect: OB6044 line 5
station a
begin: sync slave, 1 ms
    future begin, 1 ms
    future begin, 2 ms
    halt
