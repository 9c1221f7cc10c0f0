"""The registers of the application's bus, in the cycles in which their comment says so: values,
counters, what is loaded, and how long an access is held."""

import random

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge
from gmii import address
from station_bench import COUNTER
from station_model import COUNTERS

TOP = "nc_registers"
TIMEOUTS = COUNTERS.index("timeouts")
LOADS = ["load_program", "load_buffer_row", "load_message_row", "load_word"]
BUFFER = ["reads_buffer", "writes_buffer", "commits_buffer"]
INPUTS = "address write_data write read program_done buffer_ready buffer_refused buffer_value"
INPUTS += " link_up stopped trap trap_address counts_trap counts counts_no_wait"


class Bus:
    """One cycle after the other; counts what the counters are to count."""

    def __init__(self, dut):
        self.dut = dut
        self.counts = [0] * len(COUNTERS)
        self.counting = True
        self.pulses = {name: 0 for name in [*LOADS, *BUFFER]}
        for name in INPUTS.split():
            getattr(dut, name).value = 0

    async def step(self, **inputs):
        dut = self.dut
        counts = sum(1 << bit for bit in range(len(COUNTERS)) if random.random() < 0.2)
        counts = counts if self.counting else 0
        no_wait = int(self.counting and random.random() < 0.2)
        dut.counts.value, dut.counts_no_wait.value = counts, no_wait
        for name, value in inputs.items():
            getattr(dut, name).value = value
        await RisingEdge(dut.clk)
        for bit in range(len(COUNTERS)):
            self.counts[bit] += counts >> bit & 1
        self.counts[TIMEOUTS] += no_wait
        for name in self.pulses:
            self.pulses[name] += getattr(dut, name).value == 1
        return dut.ready.value == 1

    async def access(self, address, value=None, answered=5):
        """An access that is answered in its n-th cycle."""
        self.pulses = dict.fromkeys(self.pulses, 0)
        inputs = {"address": address, "write": int(value is not None), "read": int(value is None)}
        if value is not None:
            inputs["write_data"] = value
        for cycle in range(answered):
            ready = await self.step(**inputs)
            if self.dut.primes.value == 1:
                self.counts = [0] * len(COUNTERS)
            assert ready == (cycle == answered - 1), f"{address:06x}: cycle {cycle}"
        read = self.dut.read_data.value
        self.dut.write.value = self.dut.read.value = 0
        return int(read) if read.is_resolvable else None

    async def reset(self):
        self.dut.rst.value = 1
        await self.step()
        await self.step()
        self.dut.rst.value = 0
        self.counts = [0] * len(COUNTERS)


async def begin(dut):
    Clock(dut.clk, 8, "ns").start()
    bus = Bus(dut)
    await bus.reset()
    return bus


@cocotb.test()
async def registers_keep_what_is_written_while_it_is_stopped(dut):
    bus = await begin(dut)
    bits = {3: 1, 4: 16, 5: 32, 6: 13, 7: 9, 8: 16}
    outputs = {3: "has_tag", 6: "program_length", 7: "buffers", 8: "flags"}
    kept = dict.fromkeys(bits, 0)
    assert [await bus.access(at) for at in (0, 1, 2)] == [0x4E435354, 1, 0]
    for turn in range(150):
        if turn == 100:
            await bus.access(2, 1)
            kept[8] = 0
        at, value = random.choice([*bits]), random.getrandbits(random.choice([8, 13, 32]))
        await bus.access(at, value)
        # While it runs only flags may be set.
        if turn < 100 or at == 8:
            kept[at] = value & (1 << bits[at]) - 1
            # There are no more than these.
            most = {6: 4096, 7: 256}.get(at)
            kept[at] = kept[at] if most is None else min(value, most)
        assert await bus.access(at) == kept[at], f"register {at}"
        for register, name in outputs.items():
            assert int(getattr(dut, name).value) == kept[register]
        assert int(dut.source.value) == kept[4] << 32 | kept[5]
        assert await bus.access(2) == int(turn >= 100)
    for _ in range(40):
        at = random.choice([0, 1, 0x0A, 0x0B, 0x20 + len(COUNTERS), 0x3F, 0xFF])
        before = await bus.access(at)
        await bus.access(at, 0xFFFFFFFF)
        assert await bus.access(at) == before == {0: 0x4E435354, 1: 1}.get(at, 0)
        # Behind the registers there are none.
        for high in range(8, 20):
            assert await bus.access(at | 1 << high) == 0
            await bus.access(8 | 1 << high, ~kept[8] & 0xFFFF)
    assert await bus.access(8) == kept[8]


@cocotb.test()
async def a_program_runs_from_the_fourth_cycle_of_the_write_on(dut):
    bus = await begin(dut)

    async def writes(value, wanted):
        """What `primes` and `runs` are in each cycle of the access."""
        for state in wanted:
            await bus.step(address=2, write_data=value, write=1)
            assert (dut.primes.value, dut.runs.value) == state, f"{value:x}"
        assert dut.ready.value == 1
        await bus.step(write=0)
        assert (dut.primes.value, dut.runs.value) == wanted[-1]

    for _ in range(5):
        one = random.getrandbits(32) | 1
        await writes(one, [(0, 0), (0, 0), (1, 0), (0, 1), (0, 1)])
        await writes(one, [(0, 1)] * 5)
        for _ in range(random.randrange(5)):
            await bus.step()
            assert (dut.primes.value, dut.runs.value) == (0, 1)
        await writes(one ^ 1, [(0, 1), (0, 1), (0, 0), (0, 0), (0, 0)])
        await writes(one ^ 1, [(0, 0)] * 5)


@cocotb.test()
async def a_start_clears_flags_trap_and_counters(dut):
    bus = await begin(dut)
    for _ in range(4):
        await bus.access(8, 0xFFFF)
        await bus.step(trap=5, trap_address=9, counts_trap=1)
        await bus.step(counts_trap=0)
        assert [await bus.access(at) for at in (8, 10)] == [0xFFFF, 5 << 16 | 9]
        await bus.access(2, 1)
        assert [await bus.access(at) for at in (8, 10)] == [0, 0]
        for _ in range(200):
            await bus.step()
        # Another start while it runs is none.
        await bus.access(8, 0x5A5A)
        await bus.access(2, 1)
        assert await bus.access(8) == 0x5A5A
        bus.counting = False
        await bus.step()
        for at in range(len(COUNTERS)):
            assert await bus.access(COUNTER + at) == bus.counts[at], COUNTERS[at]
        bus.counting = True
        await bus.access(2, 0)
    await bus.reset()
    bus.counting = False
    await bus.step()
    assert {await bus.access(COUNTER + at) for at in range(len(COUNTERS))} <= {0}


@cocotb.test()
async def an_access_that_is_given_up_is_not_answered(dut):
    bus = await begin(dut)
    for _ in range(60):
        held = random.randrange(1, 4)
        value = random.choice([None, random.getrandbits(16)])
        for _ in range(held):
            given = {} if value is None else {"write_data": value}
            assert not await bus.step(
                address=8, read=int(value is None), write=int(value is not None), **given
            )
        for _ in range(random.choice([1, 1, 2, 3])):
            assert not await bus.step(read=0, write=0)
        # What follows is another one, and has its effect.
        value = random.getrandbits(16)
        await bus.access(8, value)
        assert await bus.access(8) == value


@cocotb.test()
async def what_is_loaded_is_loaded_once_and_only_while_it_is_stopped(dut):
    bus = await begin(dut)
    regions = {2: "load_buffer_row", 3: "load_message_row", 4: "load_word"}
    for turn in range(250):
        runs = turn >= 200
        if turn == 200:
            await bus.access(2, 1)
        region, low = random.randrange(1, 5), random.getrandbits(random.choice([8, 12, 13, 20]))
        exists = low < {1: 8192, 2: 256, 3: 256, 4: 4096}[region]
        address, value = region << 20 | low, random.getrandbits(32)
        wanted = dict.fromkeys(bus.pulses, 0)
        if region == 1 and low & 1 and exists and not runs:
            # Held until it is done.
            waits = random.randrange(2, 8)
            for cycle in range(waits):
                dut.program_done.value = int(cycle == waits - 1)
                assert await bus.step(address=address, write_data=value, write=1) == (
                    cycle == waits - 1
                )
                assert dut.load_program.value == int(cycle > 0)
            dut.program_done.value = dut.write.value = 0
            await bus.step()
            assert dut.load_program.value == 0
            continue
        await bus.access(address, value)
        if region in regions and exists and not runs:
            wanted[regions[region]] = 1
        assert bus.pulses == wanted
        if region == 1 and exists and not runs:
            assert int(dut.program_high.value) == value
        assert await bus.access(address) == 0
        assert bus.pulses == dict.fromkeys(bus.pulses, 0)


@cocotb.test()
async def accesses_to_buffers_are_held_until_these_are_ready(dut):
    bus = await begin(dut)
    for region, value in [(5, None), (5, 3), (6, 3)] * 2:
        # Nothing is there while it is stopped: answered at once, and refused.
        await bus.access(9, 0)
        await bus.access(region << 20, value, answered=2)
        assert bus.pulses == dict.fromkeys(bus.pulses, 0)
        assert await bus.access(9) == 4
    await bus.access(9, 0)
    await bus.access(2, 1)
    # Nothing is to be read in a commit.
    await bus.access(6 << 20 | 1, None, answered=2)
    assert bus.pulses == dict.fromkeys(bus.pulses, 0)
    assert await bus.access(9) == 4
    await bus.access(9, 0)
    # Behind the last buffer there is none: not refused, and 0.
    for at in (5 << 20 | 1 << 17, 5 << 20 | 1 << 19, 6 << 20 | 1 << 8, 6 << 20 | 1 << 19):
        assert await bus.access(at) == 0
        await bus.access(at, 1)
        assert await bus.access(9) == 0
    for region, value, name in [(5, None, BUFFER[0]), (5, 3, BUFFER[1]), (6, 3, BUFFER[2])] * 6:
        waits, read = random.randrange(2, 9), random.getrandbits(32)
        refused = random.randrange(2)
        bus.pulses = dict.fromkeys(bus.pulses, 0)
        for cycle in range(waits):
            last = int(cycle == waits - 1)
            ready = await bus.step(
                address=region << 20 | random.getrandbits(17 if region == 5 else 8),
                write=int(value is not None),
                read=int(value is None),
                buffer_ready=last,
                buffer_refused=last & refused,
                buffer_value=read,
            )
            assert ready == last
        assert bus.pulses == dict.fromkeys(bus.pulses, 0) | {name: waits - 1}
        assert int(dut.read_data.value) == read
        await bus.step(write=0, read=0, buffer_ready=0, buffer_refused=0)
        assert await bus.access(9) == 4 * refused
        # Writing any other register does not clear it.
        await bus.access(8, 0)
        assert await bus.access(9) == 4 * refused
        await bus.access(9, 0)
        assert await bus.access(9) == 0


@cocotb.test()
async def status_shows_link_and_trap(dut):
    bus = await begin(dut)
    for link, stopped in [(0, 0), (0, 1), (1, 0), (1, 1)]:
        await bus.step(link_up=link, stopped=stopped)
        assert await bus.access(9) == stopped << 1 | link
    for _ in range(6):
        await bus.access(2, 1)
        assert await bus.access(10) == 0
        trap, at = random.randrange(16), random.randrange(8192)
        await bus.step(trap=trap, trap_address=at, counts_trap=1)
        await bus.step(trap=trap ^ 5, trap_address=at ^ 9, counts_trap=0)
        assert await bus.access(10) == trap << 16 | at
        await bus.access(2, 0)
        assert await bus.access(10) == trap << 16 | at
    await bus.reset()
    assert await bus.access(10) == 0
