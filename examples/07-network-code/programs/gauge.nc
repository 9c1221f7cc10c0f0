# Sends a level in the slot at 250 µs, but only if it is high: its second word says so.
station gauge
medium 1 Gbit/s tagged

const SLOT = 250 us

output level[2]
message level = 3[2]

begin:
    sync slave, 3 ms
    branch sync_timeout, begin
    future slot, SLOT
    halt
slot:
    branch level[1] < 0, begin
    create level
    send level
    goto begin
