"""Windows of a port, against sums over all of them: random ones, and the edges of each."""

import random

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge

TOP = "guardian"
WINDOWS = 32
SHORTEST = 72  # with its preamble
PREAMBLE = 8
SYNC_LONGEST = 68
AHEAD = 2


def allowed(windows, place, max_length):
    """Octets behind the SFD of a frame whose preamble begins there; None if it is not let pass."""
    for opens, closes in windows:
        if opens <= place and place + SHORTEST <= closes:
            return min(max_length, closes - place - PREAMBLE)
    return None


def drawn(number):
    """Ascending windows; where one is too short for a frame the next one is not near."""
    found = []
    at = random.choice([0, 0, 1, random.randrange(200)])
    for _ in range(number):
        length = random.choice([0, 1, 71, 72, 73, 90, 136, 300, 2000, 4500])
        found.append((at, at + length))
        at += length + random.choice([0, 1, 2, 12, 20, 500])
        if length < SHORTEST:
            at += 8
    return found


class Port:
    """The settings of one guardian, and the cycles of its rounds."""

    def __init__(self, dut):
        self.dut = dut
        self.windows = []
        self.max_length = 1522
        self.said = []  # what is to be said of each place that was given

    async def begin(self, windows, max_length=1522):
        dut = self.dut
        for name in ["number", "begins", "current", "place", "sync", "write_open", "write_close"]:
            getattr(dut, name).value = 0
        dut.may_sync.value = 1
        dut.sync_in_time.value = 1
        dut.max_length.value = max_length
        dut.rst.value = 1
        for _ in range(3):
            await FallingEdge(dut.clk)
        dut.rst.value = 0
        # Another order than theirs, and what is behind them is no window.
        rows = [*enumerate(windows)]
        rows += [(index, (0, 2**28 - 1)) for index in range(len(windows), WINDOWS)]
        random.shuffle(rows)
        for index, row in rows:
            dut.write_index.value = index
            for name, value in zip(["write_open", "write_close"], row, strict=True):
                dut.write_value.value = value
                getattr(dut, name).value = 1
                await FallingEdge(dut.clk)
                getattr(dut, name).value = 0
        dut.number.value = len(windows)
        await FallingEdge(dut.clk)
        self.windows, self.max_length = windows, max_length
        self.said = [None] * AHEAD

    async def step(self, place, begins=False):
        """One cycle: a place, or None; checks what is said of the place before the last one."""
        dut = self.dut
        dut.place.value = place if place is not None else random.randrange(2**28)
        dut.current.value = int(place is not None)
        dut.begins.value = int(begins)
        dut.sync.value = 0
        limit = None if place is None else allowed(self.windows, place, self.max_length)
        self.said.append(limit)
        await FallingEdge(dut.clk)
        # Now the place before the last one is decided; what was said of it is a register.
        wanted = self.said[-AHEAD]
        assert int(getattr(dut, "pass").value) == (
            wanted is not None
        ), (self.windows, place)
        if wanted is not None:
            assert int(dut.limit.value) == wanted, (self.windows, place)
        return wanted

    async def round(self, places):
        """A new round, which is early for three cycles."""
        await self.step(None, begins=True)
        for _ in range(3):
            await self.step(None)
        passed = 0
        for place in range(places):
            passed += await self.step(place) is not None
        return passed


@cocotb.test()
async def frames_pass_in_windows_only_to_the_cycle(dut):
    cocotb.start_soon(Clock(dut.clk, 8, "ns").start())
    port = Port(dut)
    passed = 0
    for number in [1, 2, 3, 5, 8, WINDOWS]:
        await port.begin(drawn(number), random.choice([1522, 64, 67, 4000]))
        # The second round is as long as there are windows, others end within one.
        last = min(port.windows[-1][1] + 50, 9000)
        for places in [random.randrange(last), last, random.randrange(last)]:
            passed += await port.round(places)
    assert passed > 1000


@cocotb.test()
async def no_window_is_open_out_of_a_round(dut):
    cocotb.start_soon(Clock(dut.clk, 8, "ns").start())
    port = Port(dut)
    await port.begin([(0, 2**28 - 1)])
    for _ in range(100):
        await port.step(None)
    assert await port.round(100) == 100 - AHEAD + 1
    for _ in range(100):
        await port.step(None)


@cocotb.test()
async def a_port_without_windows_brings_data_at_any_time(dut):
    cocotb.start_soon(Clock(dut.clk, 8, "ns").start())
    port = Port(dut)
    await port.begin([], 1000)
    for place in range(50):
        dut.current.value = place & 1
        await FallingEdge(dut.clk)
        assert int(getattr(dut, "pass").value)
        assert int(dut.limit.value) == 1000


@cocotb.test()
async def the_beginning_of_a_round_needs_the_right_and_its_time(dut):
    cocotb.start_soon(Clock(dut.clk, 8, "ns").start())
    port = Port(dut)
    for windows in [[], [(0, 0)], [(0, 5000)]]:
        for max_length in [64, 67, 1522]:
            await port.begin(windows, max_length)
            for _ in range(4):
                await FallingEdge(dut.clk)
            dut.sync.value = 1
            for may in [0, 1]:
                for in_time in [0, 1]:
                    dut.may_sync.value = may
                    dut.sync_in_time.value = in_time
                    await FallingEdge(dut.clk)
                    assert int(getattr(dut, "pass").value) == (may and in_time)
                    longest = min(max_length, SYNC_LONGEST) if windows else max_length
                    assert int(dut.limit.value) == longest
