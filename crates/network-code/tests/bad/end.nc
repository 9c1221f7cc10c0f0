# expect: OB6045 line 4
station a
    sync slave, 1 ms
    nop
