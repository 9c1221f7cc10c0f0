# expect: OB6002 line 4
station a
begin: sync slave, 1 ms
    nop ;
    goto begin
