# expect: OB6038 line 6, OB6038 line 7, OB6038 line 8
station a
input b[2]
input large[300]
begin: sync slave, 1 ms
    branch b[2] == 1, begin
    branch b[0] < b[-1], begin
    branch large[256] == 0, begin
    goto begin
