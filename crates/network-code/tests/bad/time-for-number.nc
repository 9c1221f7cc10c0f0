# expect: OB6026 line 3, OB6026 line 5, OB6026 line 6
station a
output b[1 ms]
begin: sync slave, 1 ms
    branch flag(1 s), begin
    branch b[0] == 1 us, begin
    goto begin
