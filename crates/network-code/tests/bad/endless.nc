# expect: OB6047 line 6
station a
message m = 1[1]
input b[1]
begin: sync slave, 1 ms
wait: branch not fresh(m), wait
    receive m, b
    goto begin
