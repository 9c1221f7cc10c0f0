# expect: OB6028 line 3
station a
const A = 1 ms / (2 - 2)
begin: sync slave, 1 ms
    goto begin
