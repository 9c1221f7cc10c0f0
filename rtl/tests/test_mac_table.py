"""The table of addresses, against a dictionary by hash."""

import random

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge

TOP = "mac_table"
PARAMETERS = [{"AGEING": 8}, {"AGEING": 1000000}]
CLEARED = 2200


def hash_of(station):
    folded = 0
    while station:
        folded ^= station & 1023
        station >>= 10
    return folded


class Table:
    """Drives the module."""

    def __init__(self, dut):
        self.dut = dut

    async def begin(self):
        self.dut.rst.value = 1
        self.dut.request.value = 0
        for _ in range(3):
            await FallingEdge(self.dut.clk)
        self.dut.rst.value = 0

    async def run(self, cycles):
        for _ in range(cycles):
            await FallingEdge(self.dut.clk)

    async def ask(self, requests):
        """{port: (destination, source)} at once; the outputs for each and the ports in order."""
        destinations = sources = waiting = 0
        for port, (destination, source) in requests.items():
            destinations |= destination << 48 * port
            sources |= source << 48 * port
            waiting |= 1 << port
        self.dut.destinations.value = destinations
        self.dut.sources.value = sources
        self.dut.request.value = waiting
        answers = {}
        for _ in range(40):
            await FallingEdge(self.dut.clk)
            answer = int(self.dut.answer.value)
            if answer:
                port = answer.bit_length() - 1
                assert answer == 1 << port and waiting & answer
                answers[port] = int(self.dut.outputs.value)
                waiting &= ~answer
                self.dut.request.value = waiting
        assert not waiting, "no answer within 40 cycles"
        return answers


def individual():
    return random.randrange(1 << 48) & ~(1 << 40)


@cocotb.test()
async def answers_are_those_of_a_dictionary(dut):
    if int(dut.AGEING.value) < 1000:
        return
    cocotb.start_soon(Clock(dut.clk, 8, "ns").start())
    table = Table(dut)
    await table.begin()
    await table.run(CLEARED)
    known = {}  # by hash: address and port
    stations = [individual() for _ in range(40)]
    # Stations with the hash of another one, which take its place.
    stations += [station ^ (1 << 47) ^ (1 << 7) for station in stations[:10]]
    assert hash_of(stations[40]) == hash_of(stations[0])
    for _ in range(300):
        ports = random.sample(range(4), random.randrange(1, 5))
        requests = {}
        for port in ports:
            source = random.choice(stations) | (random.random() < 0.1) << 40
            destination = random.choice(stations) | (random.random() < 0.1) << 40
            requests[port] = (destination, source)
        answers = await table.ask(requests)
        for port in sorted(ports):
            destination, source = requests[port]
            at = known.get(hash_of(destination))
            group = destination >> 40 & 1
            found = at is not None and at[0] == destination and not group
            expected = (1 << at[1] if found else 15) & ~(1 << port)
            assert answers[port] == expected
            if not source >> 40 & 1:
                known[hash_of(source)] = (source, port)


@cocotb.test()
async def nothing_is_known_after_a_reset(dut):
    cocotb.start_soon(Clock(dut.clk, 8, "ns").start())
    table = Table(dut)
    await table.begin()
    await table.run(CLEARED)
    station = individual()
    await table.ask({2: (individual(), station)})
    assert await table.ask({0: (station, individual())}) == {0: 4}
    await table.begin()
    # While it is cleared it floods, and learns nothing.
    assert await table.ask({0: (station, individual())}) == {0: 14}
    await table.ask({2: (individual(), station)})
    await table.run(CLEARED)
    assert await table.ask({0: (station, individual())}) == {0: 14}


@cocotb.test()
async def silent_stations_are_forgotten_and_others_are_not(dut):
    if int(dut.AGEING.value) > 1000:
        return
    cocotb.start_soon(Clock(dut.clk, 8, "ns").start())
    table = Table(dut)
    await table.begin()
    await table.run(CLEARED)
    sweep = 1024 * int(dut.AGEING.value)
    silent, speaking = individual(), individual()
    await table.ask({1: (individual(), silent)})
    await table.ask({3: (individual(), speaking)})
    for _ in range(4):
        await table.run(sweep // 2 - 80)
        await table.ask({3: (0xFFFFFFFFFFFF, speaking)})
    assert await table.ask({0: (silent, individual() | 1 << 40)}) == {0: 2}, "two times at least"
    for _ in range(3):
        await table.run(sweep // 2)
        await table.ask({3: (0xFFFFFFFFFFFF, speaking)})
    assert await table.ask({0: (silent, individual() | 1 << 40)}) == {0: 14}, "three at most"
    assert await table.ask({0: (speaking, individual() | 1 << 40)}) == {0: 8}
