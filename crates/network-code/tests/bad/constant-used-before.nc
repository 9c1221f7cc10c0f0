# expect: OB6016 line 3
station a
const A = B
const B = 1
begin: sync slave, 1 ms
    goto begin
