# expect: OB6040 line 6
station a
input b[1]
message m = 1[2]
begin: sync slave, 1 ms
    receive m, b
    goto begin
