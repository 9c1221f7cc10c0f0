# expect: OB6045 line 4
station a
begin: sync slave, 1 ms
    branch overrun, begin
