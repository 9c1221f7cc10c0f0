# expect: OB6016 line 4
station a
begin: sync slave, 1 ms
    future begin, SLOT
    halt
    goto begin
