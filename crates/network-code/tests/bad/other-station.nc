# expect: OB6013 line 3
# station: listener
station talker
begin: sync slave, 1 ms
    goto begin
