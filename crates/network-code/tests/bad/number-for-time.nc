# expect: OB6026 line 4, OB6026 line 5
station a
begin: sync slave, 1 ms
    future begin, 100
    sync slave, 5
    goto begin
