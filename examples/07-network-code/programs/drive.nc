# Takes the setpoint and sends its position, 100 µs after the beginning of each round.
station drive
medium 1 Gbit/s tagged

const SLOT = 100 us

output position[3]
input setpoint[2]
message setpoint = 1[2]
message position = 2[3]

begin:
    sync slave, 3 ms
    branch sync_timeout, begin
    future slot, SLOT
    halt
slot:
    receive setpoint, setpoint
    create position
    send position
    goto begin
