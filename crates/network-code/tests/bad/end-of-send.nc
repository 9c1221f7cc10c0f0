# expect: OB6045 line 6
station a
output b[1]
message m = 1[1]
    create b
    send m
