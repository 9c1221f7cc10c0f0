# expect: OB6017 line 5, OB6017 line 6
station a
output speed[2]
begin: sync slave, 1 ms
    create sped
    branch none[0] == 1, begin
    goto begin
