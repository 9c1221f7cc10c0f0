# station: talker
# network
output speed = channel "speed"
input at = channel "position"
message fast = 3[3]
message where = 4[1]
first:
second:
    sync slave, 3 * 250 us
    branch overrun, second
    branch fresh(where), take
    create speed
    send fast
    goto first
take:
    receive where, at
    goto first
