# expect: OB6011 line 4
station a
medium 1 Gbit/s
medium 1 Gbit/s tagged
begin: sync slave, 1 ms
    goto begin
