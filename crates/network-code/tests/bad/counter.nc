# expect: OB6035 line 4
station a
begin: sync slave, 1 ms
    branch count(16, 2), begin
    goto begin
