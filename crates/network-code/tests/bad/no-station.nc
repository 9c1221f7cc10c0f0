# expect: OB6010 line 1
begin: sync slave, 1 ms
    goto begin
