# expect: OB6043 line 3
station a
    halt
