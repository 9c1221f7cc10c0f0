# expect: OB6042 line 10
station a
output b[1]
message m = 1[1]
begin: sync slave, 1 ms
    branch flag(0), other
    create b
    send m
other:
    send m
    goto begin
