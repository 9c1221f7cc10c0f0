# Waits for the round, sends the position in its own slot.
station "sensor-1"
const TURN = 50 us

output position[3]
input speed[2]
message set_speed = 1[2]
message at = 2[3]

begin:
    sync slave, 2 ms
    branch sync_timeout, begin
    future turn, TURN
    halt
turn:
    receive set_speed, speed
    branch not received, quiet
    create position
    send at
quiet:
    goto begin
