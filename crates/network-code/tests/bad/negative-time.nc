# expect: OB6031 line 4
station a
begin: sync slave, 1 ms
    future begin, 1 us - frame(300)
    halt
    goto begin
