# expect: OB6026 line 3, OB6026 line 4, OB6026 line 5, OB6026 line 6
station a
const A = 1 + 1 ms
const B = 1 ms * 1 ms
const C = 1 / 1 ms
const D = 1 s - 1
begin: sync slave, 1 ms
    goto begin
