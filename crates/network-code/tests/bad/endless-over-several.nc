# expect: OB6047 line 4, OB6047 line 5
station a
first: nop
second: branch overrun, first
    branch link_up, second
    sync slave, 1 s
    goto first
