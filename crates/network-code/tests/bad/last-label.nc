# expect: OB6022 line 6
station a
begin: sync slave, 1 ms
    branch overrun, end
    goto begin
end:
