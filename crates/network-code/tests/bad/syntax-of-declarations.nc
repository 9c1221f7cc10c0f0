# expect: OB6006 line 3, OB6006 line 4, OB6006 line 5, OB6006 line 6, OB6006 line 7, OB6006 line 8
station a
output speed 2
message m[2]
const N
output p = channel speed
medium fast
const M = (1
begin: sync slave, 1 ms
    goto begin
