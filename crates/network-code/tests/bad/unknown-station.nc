# expect: OB6014 line 3
# network
station taker
begin: sync slave, 1 ms
    goto begin
