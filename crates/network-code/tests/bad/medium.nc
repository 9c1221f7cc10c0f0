# expect: OB6015 line 3
station a
medium 10 Gbit/s
begin: sync slave, 1 ms
    goto begin
