# expect: OB6020 line 4
station a
message m = 1[1]
message m = 2[1]
begin: sync slave, 1 ms
    goto begin
