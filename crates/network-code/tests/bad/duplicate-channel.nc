# expect: OB6055 line 5
# network
station talker
output b = channel "speed"
output c = channel "speed"
begin: sync slave, 1 ms
    goto begin
