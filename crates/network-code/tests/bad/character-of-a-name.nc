# expect: OB6002 line 3, OB6002 line 3
station a
const größe = 1
begin: sync slave, 1 ms
    goto begin
