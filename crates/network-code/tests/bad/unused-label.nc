# expect: OB6058 line 4
station a
begin: sync slave, 1 ms
middle: nop
    goto begin
