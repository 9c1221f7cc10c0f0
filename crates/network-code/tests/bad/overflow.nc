# expect: OB6027 line 3, OB6027 line 4, OB6027 line 5
station a
const A = 9223372036854775807 + 1
const B = 9223372036854775807 s
const C = (-9223372036854775807 - 1) / -1
begin: sync slave, 1 ms
    goto begin
