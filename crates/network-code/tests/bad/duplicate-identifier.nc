# expect: OB6024 line 4
station a
message m = 7[1]
message n = 7[2]
begin: sync slave, 1 ms
    goto begin
