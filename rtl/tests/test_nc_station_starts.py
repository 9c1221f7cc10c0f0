"""What is on the way when a program starts or stops: frames in and out, best effort of the host."""

import random

import cocotb
from gmii import GAP, address, burst, frame, with_fcs
from station_bench import SOURCE, START_DELAY, STREAM, Station, check, idle, layout, plain, stop
from station_model import (
    ALWAYS,
    COUNTERS,
    Model,
    branch,
    data_frame,
    future,
    halt,
    master,
    receive,
    round_frame,
    slave,
)

TOP = "nc_station"
DEFINES = {"NC_COLLISIONS": 1}
LISTENS = [slave(3), receive(2, 0), branch(0, ALWAYS)]


async def listening(dut, program=None):
    station = Station(dut)
    await station.begin()
    model = Model(program or LISTENS, [(1, 3)], {2: 3}, SOURCE)
    await station.run(station.load(model, layout(model)))
    return station, model


@cocotb.test()
async def a_frame_that_began_before_the_start_is_none(dut):
    station, model = await listening(dut)
    frames = [data_frame(SOURCE, 2, [1, 2, 3], True), round_frame(SOURCE, 5)]
    damaged = frames[0][:-1] + bytes([frames[0][-1] ^ 1])
    for octets in [*frames, damaged, frames[0][:40]]:
        for _ in range(6):
            # The SFD is on the stream that long before the program's first cycle.
            early = random.randrange(2, len(octets))
            station.watches_host, station.came = True, []
            station.coming.clear()
            zero = station.cycle + 140
            station.put(zero - early - STREAM - 7, burst(octets))
            await station.run(idle(140 - START_DELAY))
            await station.run(station.start())
            assert station.zero == zero
            await station.run(idle(120))
            done = station.cycle - zero
            check(station, model.run(done, ()), done)
            assert not any(good for _, good, _ in station.came), "a station's frame to the host"
            await stop(station)
            counted = await station.run(station.counters())
            assert {name for name in COUNTERS if counted[name]} == {"timeouts"}, f"{early}"


@cocotb.test()
async def a_frame_that_comes_while_it_is_stopped_is_not_the_hosts(dut):
    station, _ = await listening(dut)
    station.watches_host = True
    for octets in [data_frame(SOURCE, 2, [1, 2, 3]), round_frame(SOURCE, 5, True)]:
        station.put(station.cycle, burst(octets))
        await station.run(idle(120))
        station.put(station.cycle, burst(frame(address(1), SOURCE, 0x0800, bytes(46))))
        await station.run(idle(120))
    assert [good for _, good, _ in station.came] == [False, True, False, True]


@cocotb.test()
async def of_a_frame_of_the_host_all_or_nothing_is_sent(dut):
    station, _ = await listening(dut, [future(0, 800), halt()])
    for begins in (-130, -70, -1, 0, 1):
        given = [bytes(random.randrange(256) for _ in range(200)) for _ in range(2)]
        station.host_from = station.cycle + 200 + begins
        station.host = list(given)
        await station.run(idle(200 - START_DELAY))
        await station.run(station.start())
        await station.run(idle(1500))
        wanted = [burst(with_fcs(octets)) for octets in given]
        for _, octets in plain(station.frames):
            assert octets in wanted, f"from {begins} on"
        assert station.frames[-1][1] == wanted[-1]
        await stop(station)


@cocotb.test()
async def behind_a_frame_that_a_stop_cuts_is_a_gap(dut):
    station, _ = await listening(dut, [master(), future(2, 900), halt()])
    for _ in range(4):
        await station.run(station.start())
        await station.run(idle(random.randrange(12, 60)))
        assert station.sending is not None
        await station.run(station.stop())
        last = station.zero + station.frames[0][0] + len(station.frames[0][1]) - 1
        await station.run(station.start())
        await station.run(idle(40))
        first = station.zero + station.frames[-1][0]
        assert first - last > GAP, f"{first - last - 1} cycles of gap"
        await stop(station)
