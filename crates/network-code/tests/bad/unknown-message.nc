# expect: OB6018 line 4, OB6018 line 5
station a
begin: sync slave, 1 ms
    send m
    branch fresh(n), begin
    goto begin
