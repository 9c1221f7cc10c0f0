# expect: OB6042 line 8
station a
output b[1]
message m = 1[1]
begin: sync slave, 1 ms
    create b
    send m
    send m
    goto begin
