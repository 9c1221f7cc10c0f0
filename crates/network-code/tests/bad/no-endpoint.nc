# expect: OB6053 line 4
# network
station other
output b = channel "speed"
begin: sync slave, 1 ms
    goto begin
