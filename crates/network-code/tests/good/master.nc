# Begins each round, sends the speed at once, and takes the position at the end of its slot.
station controller
medium 1 Gbit/s tagged

const ROUND = 1 ms

output speed[2]
input position[3]
message set_speed = 1[2]
message at = 2[3]

begin:
    sync master
    future slot, 100 us
    create speed
    send set_speed
    halt
slot:
    future begin, ROUND - 100 us
    receive at, position
    branch position[0] >= 1_000, stop
    halt
stop:
    branch speed[1] ==u position[2], rest
rest:
    halt
