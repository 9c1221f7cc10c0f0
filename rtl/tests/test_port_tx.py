"""The arbiter of one port: a real-time frame at every distance from a best-effort frame."""

import random

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, Timer
from gmii import GAP, NC_DATA, NC_GROUP, address, burst, frame

TOP = "port_tx"
PARAMETERS = [{"WAIT": 0}]
LONG_PARAMETERS = [{"WAIT": 1}, {"WAIT": 105}]
RETRY, DROP, FINISH = range(3)


class Ring:
    """Best-effort frames as an output ring gives them: a word two cycles after it is asked for."""

    def __init__(self, dut, frames):
        self.dut = dut
        self.frames = list(frames)
        self.word = self.address = 0

    def step(self, ready):
        """The values of this cycle."""
        dut = self.dut
        octets = self.frames[0] if self.frames else bytes(64)
        dut.be_ready.value = int(ready and bool(self.frames))
        dut.be_length.value = len(octets)
        dut.be_word.value = self.word

    def finish(self):
        """What the end of this cycle changes."""
        dut = self.dut
        octets = self.frames[0] if self.frames else bytes(64)
        self.word = int.from_bytes(octets[4 * self.address : 4 * self.address + 4], "little")
        if int(dut.be_pop.value):
            self.frames.pop(0)
            self.address = 0
        elif int(dut.be_rewind.value):
            self.address = 0
        elif int(dut.be_advance.value):
            self.address += 1


class Port:
    """The module, driven cycle by cycle from lists of events."""

    def __init__(self, dut, policy, frames):
        self.dut = dut
        self.policy = policy
        self.wait = int(dut.WAIT.value)
        self.ring = Ring(dut, frames)
        self.warnings = set()
        self.rt = {}
        self.pins = []
        self.counts = dict.fromkeys("rt_out rt_lost be_out aborted retried lost_to_abort".split(), 0)

    async def begin(self):
        dut = self.dut
        dut.rst.value = 1
        dut.policy.value = self.policy
        for name in ["warn", "rt_valid", "rt_er", "rt_data", "be_ready", "be_length", "be_word"]:
            getattr(dut, name).value = 0
        for _ in range(3):
            await FallingEdge(dut.clk)
        dut.rst.value = 0
        for _ in range(14):
            await FallingEdge(dut.clk)

    def real_time(self, warned, octets):
        """A frame that is announced in a cycle; the cycle of its first octet on the pins."""
        self.warnings.add(warned)
        for number, octet in enumerate(burst(octets)):
            self.rt[warned + 13 + self.wait + number] = octet
        return warned + 14 + self.wait

    async def run(self, cycles, ready_from=0):
        """`pins[c]` is what is on them in cycle c."""
        dut = self.dut
        for cycle in range(cycles):
            self.pins.append((int(dut.tx_en.value), int(dut.tx_er.value), int(dut.txd.value)))
            for name in self.counts:
                self.counts[name] += int(getattr(dut, name).value)
            dut.warn.value = int(cycle in self.warnings)
            dut.rt_valid.value = int(cycle in self.rt)
            dut.rt_data.value = self.rt.get(cycle, 0)
            self.ring.step(cycle >= ready_from)
            await Timer(1, "ns")  # combinational outputs follow
            self.ring.finish()
            await FallingEdge(dut.clk)

    def bursts(self):
        """(first cycle, octets, error at the last octet) of each."""
        found = []
        for cycle, (enabled, error, octet) in enumerate(self.pins):
            if not enabled:
                continue
            if not found or found[-1][0] + len(found[-1][1]) != cycle:
                found.append([cycle, bytearray(), False])
            assert not found[-1][2], "an octet behind an error"
            found[-1][1].append(octet)
            found[-1][2] = bool(error)
        return [(first, bytes(octets), error) for first, octets, error in found]


def best_effort(octets):
    return frame(b"\xff" * 6, address(1), 0x0800, bytes(octets - 18 - 1) + b"\x01", padded=False)


def real_time(octets=64):
    return frame(NC_GROUP, address(9), NC_DATA, bytes(range(octets - 18)), padded=False)


class Expected:
    """When best-effort frames begin and end if one real-time frame is announced in cycle `warned`."""

    def __init__(self, port, warned, octets):
        self.wait = port.wait
        self.policy = port.policy
        self.warned = warned
        self.first = warned + 14 + port.wait
        self.last = self.first + 7 + octets

    def may_begin(self, pins, length, quiet_from):
        """The first cycle on the pins, at `pins` or later, with a whole gap behind `quiet_from`."""
        pins = max(pins, quiet_from + GAP)
        if pins <= self.warned or pins > self.last + GAP:
            return pins
        # The cycle before the pins' decides, and no frame begins in that of the warning.
        pins = max(pins, self.warned + 2)
        fits = pins + 8 + length - 1 <= self.first - GAP - 1
        return pins if fits else self.last + GAP + 1

    def bursts(self, ready, frames):
        """(first cycle, number of octets, error) of all best-effort bursts."""
        found = []
        pins, quiet_from = ready + 1, -100
        frames = [len(each) for each in frames]
        while frames:
            length = frames[0]
            pins = self.may_begin(pins, length, quiet_from)
            end = pins + 8 + length - 1
            inside = pins <= self.warned and end > self.warned
            if inside and end > self.first - GAP - 1 and self.policy != FINISH:
                found.append((pins, self.warned + 1 - pins + 1, True))
                quiet_from = self.warned + 2
                if self.policy == DROP:
                    frames.pop(0)
            else:
                found.append((pins, 8 + length, False))
                quiet_from = end + 1
                frames.pop(0)
        return found


async def one_distance(dut, policy, length, ready):
    """Two best-effort frames, and a real-time frame that is announced at a fixed cycle."""
    warned = 250
    frames = [best_effort(length), best_effort(64)]
    port = Port(dut, policy, frames)
    await port.begin()
    octets = real_time()
    first = port.real_time(warned, octets)
    await port.run(warned + 2 * length + port.wait + 500, ready)
    bursts = port.bursts()
    rt = [each for each in bursts if each[1][8:14] == NC_GROUP]
    best = [each for each in bursts if each[1][8:14] != NC_GROUP]
    assert [(at, octets) for at, octets, _ in rt] == [(first, burst(octets))], f"ready {ready}"
    expected = Expected(port, warned, len(octets)).bursts(ready, frames)
    assert [(at, len(octets), error) for at, octets, error in best] == expected, f"ready {ready}"
    whole = [octets for _, octets, error in best if not error]
    sent = [burst(each) for each in frames]
    aborts = sum(error for _, _, error in best)
    if policy == DROP:
        sent = [each for each, (_, _, error) in zip(sent, best, strict=True) if not error]
    assert whole == sent
    assert port.counts == {
        "rt_out": 1,
        "rt_lost": 0,
        "be_out": len(whole),
        "aborted": aborts,
        "retried": aborts if policy == RETRY else 0,
        "lost_to_abort": aborts if policy == DROP else 0,
    }
    return aborts


@cocotb.test()
async def real_time_is_on_time_at_every_distance(dut):
    wait = int(dut.WAIT.value)
    cocotb.start_soon(Clock(dut.clk, 8, "ns").start())
    for policy in [RETRY, DROP]:
        aborts = 0
        for length in [64, 97 + wait]:
            # From frames that are over in time to frames that begin behind it.
            first, last = 250 - length - 30, 250 + 14 + wait + 40
            distances = set(range(first, last, 11)) | set(range(240, 256))
            edge = 250 + 14 + wait - GAP - 1 - 8 - length
            distances |= set(range(edge - 2, edge + 4))
            for ready in sorted(distances):
                aborts += await one_distance(dut, policy, length, max(0, ready))
        assert aborts > 5


@cocotb.test()
async def best_effort_is_finished_and_real_time_waits(dut):
    cocotb.start_soon(Clock(dut.clk, 8, "ns").start())
    for ready in range(130, 270, 5):
        port = Port(dut, FINISH, [best_effort(120)])
        await port.begin()
        first = port.real_time(250, real_time())
        behind = port.real_time(350, real_time(80))
        await port.run(900 + port.wait, ready)
        assert port.counts["aborted"] == 0
        bursts = port.bursts()
        assert [error for _, _, error in bursts] == [False] * 3
        best = next(each for each in bursts if each[1][8:14] != NC_GROUP)
        rt = [each for each in bursts if each[1][8:14] == NC_GROUP]
        assert [octets for _, octets, _ in rt] == [burst(real_time()), burst(real_time(80))]
        # The queue gives a frame two cycles later than the bus, so it waits for more than one.
        over = best[0] + len(best[1]) + GAP
        if best[0] > first or over <= first:
            assert rt[0][0] == first
        else:
            assert max(over, first) <= rt[0][0] <= max(over, first + 4)
        assert rt[1][0] >= behind
        for one, other in zip(bursts, bursts[1:], strict=False):
            assert other[0] - one[0] - len(one[1]) >= GAP


@cocotb.test()
async def gaps_between_real_time_frames_are_the_senders(dut):
    cocotb.start_soon(Clock(dut.clk, 8, "ns").start())
    port = Port(dut, RETRY, [best_effort(64) for _ in range(30)])
    await port.begin()
    warned = 100
    expected = []
    for _ in range(20):
        octets = real_time(random.randrange(18, 90))
        expected.append((port.real_time(warned, octets), burst(octets), False))
        warned += 8 + len(octets) + random.choice([1, 2, 12, 60])
    await port.run(warned + port.wait + 3000)
    rt = [each for each in port.bursts() if each[1][8:14] == NC_GROUP]
    assert rt == expected
    assert port.counts["be_out"] == 30
    assert port.counts["rt_out"] == 20
