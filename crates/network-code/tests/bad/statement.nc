# expect: OB6005 line 4, OB6005 line 5
station a
begin: sync slave, 1 ms
    recieve a, b
    42
    goto begin
