# expect: OB6003 line 3
station a
const N = 9223372036854775808
begin: sync slave, 1 ms
    goto begin
