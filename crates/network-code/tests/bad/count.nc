# expect: OB6036 line 4, OB6036 line 5
station a
begin: sync slave, 1 ms
    branch count(0, 0), begin
    branch count(0, 0x1_0000_0000), begin
    goto begin
