# Begins a round each millisecond and sends a setpoint at once. It takes what has come when all
# slots are over.
station controller
medium 1 Gbit/s tagged

const ROUND = 1 ms
const SLOTS = 400 us

output setpoint[2]
input position[3]
input level[2]
message setpoint = 1[2]
message position = 2[3]
message level = 3[2]

begin:
    future collect, SLOTS
    sync master
    create setpoint
    send setpoint
    halt
collect:
    future begin, ROUND - SLOTS
    receive position, position
    receive level, level
    halt
