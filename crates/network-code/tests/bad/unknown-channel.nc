# expect: OB6052 line 4
# network
station talker
output b = channel "sped"
begin: sync slave, 1 ms
    goto begin
