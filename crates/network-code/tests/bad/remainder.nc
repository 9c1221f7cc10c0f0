# expect: OB6029 line 3, OB6029 line 4
station a
const A = 7 / 2
const B = 1 ms / 3
begin: sync slave, 1 ms
    goto begin
