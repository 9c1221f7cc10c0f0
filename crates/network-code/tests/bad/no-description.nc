# expect: OB6051 line 3
station a
output speed = channel "speed"
begin: sync slave, 1 ms
    goto begin
