# expect: OB6041 line 7, OB6041 line 11
station a
output b[1]
message m = 1[2]
begin: sync slave, 1 ms
    create b
    send m
    branch overrun, skip
skip:
    create b
    send m
    goto begin
