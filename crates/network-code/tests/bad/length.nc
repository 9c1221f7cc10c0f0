# expect: OB6025 line 3, OB6025 line 4, OB6025 line 5
station a
output a[0]
input b[375]
message m = 1[1000]
begin: sync slave, 1 ms
    goto begin
