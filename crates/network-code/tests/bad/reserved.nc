# expect: OB6008 line 3, OB6008 line 5
station a
const ms = 1
begin: sync slave, 1 ms
halt: nop
    goto begin
