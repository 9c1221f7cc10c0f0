# expect: OB6034 line 5, OB6034 line 6, OB6034 line 7, OB6034 line 8
station a
output b[1]
begin: sync slave, 1 ms
    branch b[0] < 8388608, begin
    branch b[0] > -8388609, begin
    branch b[0] >=u 0x800000, begin
    branch b[0] <=u 0xff7fffff, begin
    goto begin
