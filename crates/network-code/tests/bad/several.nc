# expect: OB6017 line 4, OB6018 line 5, OB6006 line 6, OB6030 line 7
station a
begin: sync slave, 1 ms
    create b
    send m
    halt 5
    future begin, 1 ns
    goto begin
