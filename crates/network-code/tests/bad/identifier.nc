# expect: OB6023 line 3, OB6023 line 4
station a
message m = 256[1]
message n = -1[1]
begin: sync slave, 1 ms
    goto begin
