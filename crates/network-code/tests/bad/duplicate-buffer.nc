# expect: OB6020 line 4
station a
output b[1]
input b[1]
begin: sync slave, 1 ms
    goto begin
