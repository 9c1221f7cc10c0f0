# expect: OB6054 line 4, OB6054 line 5
# network
station talker
input b = channel "speed"
output c = channel "position"
begin: sync slave, 1 ms
    goto begin
