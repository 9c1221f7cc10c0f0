"""A frame of the host is whole before it is there; it is 60 to 1,518 octets, or is dropped."""

import random

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge

TOP = "nc_best_effort"
SHORTEST, LONGEST = 60, 1518


class Host:
    """Gives octets, with pauses if it is said so; knows what was taken."""

    def __init__(self, dut):
        self.dut = dut
        self.left = self.taken = None

    def give(self, octets):
        self.octets, self.taken = octets, 0

    async def step(self, pauses=0.0, reset=0, sent=0, index=0):
        """One cycle: what is seen in it."""
        dut = self.dut
        gives = self.taken is not None and random.random() >= pauses
        dut.rst.value, dut.sent.value, dut.index.value = reset, sent, index
        dut.valid.value = int(gives)
        dut.octet.value = self.octets[self.taken] if gives else random.randrange(256)
        last = gives and self.taken == len(self.octets) - 1
        dut.last.value = int(last) if gives else random.randrange(2)
        await RisingEdge(dut.clk)
        if gives and not reset and dut.ready.value == 1:
            self.taken = None if last else self.taken + 1
        there = dut.there.value == 1
        assert reset or dut.ready.value == int(not there)
        return there


async def begin(dut):
    Clock(dut.clk, 8, "ns").start()
    host = Host(dut)
    for _ in range(3):
        await host.step(reset=1)
    return host


async def gives(host, length, pauses):
    """A frame, and whether it is there in the cycle behind its last octet."""
    octets = bytes(random.randrange(256) for _ in range(length))
    host.give(octets)
    while host.taken is not None:
        assert not await host.step(pauses)
    assert await host.step() == (SHORTEST <= length <= LONGEST), f"{length} octets"
    return octets


async def is_read(host, octets, count):
    """As the transmitter reads it: an index in each cycle, its octet two later."""
    dut = host.dut
    assert int(dut.length.value) == len(octets)
    wanted = []
    for _ in range(count):
        index = random.choice([0, len(octets) - 1, random.randrange(len(octets))])
        wanted.append(octets[index])
        # What the host has next has to wait.
        assert await host.step(index=index)
        if len(wanted) > 2:
            assert int(dut.read_octet.value) == wanted[-3]


@cocotb.test()
async def frames_of_60_to_1518_octets_are_kept_until_they_are_sent(dut):
    host = await begin(dut)
    lengths = [1, 59, 60, 61, 1517, 1518, 1519, 60, 1520, 1, 2048 + 60]
    for length in lengths + [random.randrange(50, 200) for _ in range(8)]:
        octets = await gives(host, length, random.choice([0, 0.3]))
        if SHORTEST <= length <= LONGEST:
            host.give(bytes(70))
            await is_read(host, octets, 40)
            assert host.taken == 0
            host.taken = None
            assert await host.step(sent=1)
            assert not await host.step()


@cocotb.test()
async def a_reset_drops_what_is_there_and_what_comes(dut):
    host = await begin(dut)
    for _ in range(4):
        await gives(host, 80, 0)
        await host.step(reset=1)
        assert not await host.step()
        # In the midst of a frame: what comes behind the reset is another one.
        host.give(bytes(100))
        for _ in range(random.randrange(1, 90)):
            await host.step()
        host.taken = None
        await host.step(reset=1)
        octets = await gives(host, 60, 0)
        await is_read(host, octets, 5)
        await host.step(sent=1)
