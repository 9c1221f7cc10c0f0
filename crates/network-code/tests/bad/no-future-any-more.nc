# expect: OB6043 line 8
station a
begin:
    future next, 1 ms
    halt
next:
    branch overrun, begin
    halt
