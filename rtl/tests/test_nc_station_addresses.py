"""Addresses of a station's bus at which nothing is: they are answered, and change nothing."""

import random

import cocotb
from gmii import address
from station_bench import (
    BUFFER_ROW,
    LENGTH,
    MEMORY,
    MESSAGE_ROW,
    PROGRAM,
    SOURCE,
    STATUS,
    Station,
    access,
    check,
    idle,
    layout,
    stop,
)
from station_model import (
    ALWAYS,
    COUNTERS,
    TRAPS,
    Model,
    branch,
    create,
    future,
    halt,
    nop,
    receive,
    send,
)

TOP = "nc_station"
PATIENCE = 16
PROGRAM_OF = [future(0, 300), create(0), send(1), receive(2, 1), halt()]
BUFFERS_OF, MESSAGES_OF = [(0, 2), (1, 3)], {1: 2, 2: 3}


def answered(station, address, value=None):
    """An access that waits for no longer than so many cycles."""
    for _ in range(PATIENCE):
        ready, read = yield (address, value)
        if ready:
            return read
    raise AssertionError(f"{address:06x}: no answer to a {'read' if value is None else 'write'}")


def nowhere():
    """Addresses in regions and registers that there are not."""
    regions = [region << 20 | random.getrandbits(20) for region in range(7, 16)]
    registers = [0x0B, 0x1F, 0x20 + len(COUNTERS), 0x3F, 0x40, 0xFF, 0x100, 0x102, 0xFFFFF]
    return regions + registers


async def loaded_station(dut):
    station = Station(dut)
    await station.begin()
    model = Model(PROGRAM_OF, BUFFERS_OF, MESSAGES_OF, SOURCE)
    contents = [[random.getrandbits(32) for _ in range(length)] for _, length in BUFFERS_OF]
    await station.run(station.load(model, layout(model), contents=contents))
    return station, model, contents


async def runs_as_loaded(station, model, contents, cycles=400):
    await station.run(station.start())
    await station.run(idle(cycles))
    check(station, model.run(cycles, (), contents), cycles)
    await stop(station)


@cocotb.test()
async def where_nothing_is_reads_are_0_and_writes_without_effect(dut):
    station, model, contents = await loaded_station(dut)
    for runs in (False, True):
        if runs:
            await station.run(station.start())
        for address in nowhere():
            assert await station.run(answered(station, address)) == 0, f"{address:06x}"
            await station.run(answered(station, address, random.getrandbits(32)))
        assert await station.run(access(STATUS)) == 0
        if runs:
            done = station.cycle - station.zero
            check(station, model.run(done, (), contents), done)
            await stop(station)
    await runs_as_loaded(station, model, contents)


@cocotb.test()
async def every_address_is_answered(dut):
    station, model, _ = await loaded_station(dut)
    for runs in (False, True):
        if runs:
            await station.run(station.start())
        for region in range(16):
            for address in (0, 1, 5, 0x400, 0xFFFFF, random.getrandbits(20)):
                await station.run(answered(station, region << 20 | address))
                # What stands in region 0 would stop it.
                if region:
                    await station.run(answered(station, region << 20 | address, 0))


@cocotb.test()
async def behind_the_end_of_a_memory_is_no_other_place_of_it(dut):
    station, model, contents = await loaded_station(dut)
    for size, region in [(8192, PROGRAM), (256, BUFFER_ROW), (256, MESSAGE_ROW), (4096, MEMORY)]:
        for place in range(6):
            for high in (1, random.randrange(1, (1 << 20) // size)):
                address = region + size * high + place
                await station.run(answered(station, address, random.getrandbits(32)))
    await runs_as_loaded(station, model, contents)


@cocotb.test()
async def a_program_is_not_longer_than_its_memory(dut):
    station, model, _ = await loaded_station(dut)
    await station.run(access(LENGTH, 4097))
    await station.run(station.load_word(0, branch(4095, ALWAYS)))
    await station.run(station.load_word(4095, nop()))
    await station.run(station.start())
    await station.run(idle(30))
    assert station.issues[:3] == [(0, 0, 0), (3, 4095, 0), (4, 4096, TRAPS["end"])]
