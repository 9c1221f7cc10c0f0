# expect: OB6025 line 3
station a
const T = frame(375)
begin: sync slave, 1 ms
    goto begin
