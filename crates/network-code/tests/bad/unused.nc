# expect: OB6057 line 3, OB6057 line 4, OB6057 line 5
station a
const N = 1
output b[1]
message m = 1[1]
begin: sync slave, 1 ms
    goto begin
