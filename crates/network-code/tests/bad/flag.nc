# expect: OB6037 line 4, OB6037 line 5
station a
begin: sync slave, 1 ms
    branch flag(16), begin
    branch flag(-1), begin
    goto begin
