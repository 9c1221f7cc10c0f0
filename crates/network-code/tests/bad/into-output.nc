# expect: OB6039 line 6
station a
output b[1]
message m = 1[1]
begin: sync slave, 1 ms
    receive m, b
    goto begin
