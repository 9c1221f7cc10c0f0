# Sends every fourth round only, and each time while a flag is set.
station a
medium 10 Mbit/s
output state[374]
message all = 0xff[374]

begin:
    sync slave, 1 s
    branch count(3, 4), send_it
    branch not flag(7), begin
send_it:
    branch transmitting, begin
    create state
    send all
    goto begin
