# expect: OB6020 line 4
station a
const N = 1
const N = 2
begin: sync slave, 1 ms
    goto begin
