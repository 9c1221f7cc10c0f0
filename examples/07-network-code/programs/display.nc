# Takes all that was sent, at the end of each round. It sends nothing.
station display
medium 1 Gbit/s tagged

const END = 600 us

input setpoint[2]
input position[3]
input level[2]
message setpoint = 1[2]
message position = 2[3]
message level = 3[2]

begin:
    sync slave, 3 ms
    branch sync_timeout, begin
    future end, END
    halt
end:
    receive setpoint, setpoint
    receive position, position
    receive level, level
    goto begin
