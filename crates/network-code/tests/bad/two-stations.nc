# expect: OB6011 line 3
station a
station b
begin: sync slave, 1 ms
    goto begin
