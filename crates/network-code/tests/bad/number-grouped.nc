# expect: OB6003 line 3, OB6003 line 4
station a
const N = 1__0
const M = 0x
begin: sync slave, 1 ms
    goto begin
