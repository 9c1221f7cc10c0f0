# expect: OB6012 line 2
station "a b"
begin: sync slave, 1 ms
    goto begin
