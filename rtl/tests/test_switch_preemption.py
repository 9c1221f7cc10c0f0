"""Frame preemption: fragments that come are put together, and those that leave are as 802.3br says."""

import random

import cocotb
from gmii import (
    NC_GROUP,
    PREAMBLE,
    SMD_CONTINUE,
    SMD_START,
    address,
    fragments,
    frame,
    is_good,
    mcrc,
)
from switch_bench import LATENCY, POLICY, PORTS, QBU, best_effort_of, check_gaps, real_time_of
from switch_model import Model
from test_atacama_switch import (
    ALL,
    begun,
    best_effort,
    best_effort_load,
    introduce,
    real_time,
    stop_loads,
    wait_of,
)

TOP = "atacama_switch"
SIMULATOR = "verilator"
LONG = True
PARAMETERS = [{"WAIT": 129}, {"WAIT": 0}]
# What the longest frame that cannot be cut takes of the time of a real-time frame, without WAIT.
LONGEST_HOLD = 129
# From the end of a gap to the first octet out of a port's queue.
QUEUE = 4


class Together:
    """Puts what left a port together again, and checks each fragment."""

    def __init__(self):
        self.frames = []
        self.cuts = 0
        self.number = None
        self.open = None

    def take(self, octets):
        assert octets[:6] == PREAMBLE[:6]
        if octets[6] == 0x55:
            assert self.open is None, "a frame begins before the last one is complete"
            number = SMD_START.index(octets[7])
            assert self.number is None or number == (self.number + 1) % 4
            self.number, self.open, self.count = number, b"", 0
        else:
            assert octets[6] == SMD_CONTINUE[self.number]
            assert octets[7] == SMD_START[self.count]
            self.count = (self.count + 1) % 4
        body = octets[8:]
        assert len(body) >= 64
        if body[-4:] == mcrc(self.open + body[:-4]):
            self.open += body[:-4]
            self.cuts += 1
        else:
            self.frames.append(self.open + body)
            assert is_good(self.frames[-1])
            self.open = None


@cocotb.test()
async def check_sequences_of_fragments_are_those_that_others_compute(_):
    # TShark 4.0.17 takes these fragments of a frame as good ones, and puts them together.
    octets = frame(ALL, address(1), 0x0800, bytes(range(200)))
    parts = fragments(octets, [64, 130], 1)
    assert [part[-4:].hex() for part in parts] == ["98c65439", "2f63ec16", "e64fef7d"]


def random_cuts(octets):
    """Where a frame may be cut: 60 octets and more in each part, 64 in the last one."""
    cuts = []
    at = 60 + random.randrange(40)
    while at <= len(octets) - 64:
        cuts.append(at)
        at += 60 + random.randrange(200)
    return cuts


@cocotb.test()
async def fragments_are_put_together_and_real_time_passes_between(dut):
    bench = await begun(dut)
    await introduce(bench)
    wanted = []
    for number in range(30):
        octets = best_effort(random.choice([64, 123, 124, 128, 300, 1522]), 0)
        wanted.append(octets)
        for part in fragments(octets, random_cuts(octets), number):
            bench.raw(0, part)
            for _ in range(random.randrange(3)):
                bench.send(0, real_time(random.choice([64, 65, 200]), random.choice([None, 0])))
    await bench.drain()
    model = Model(bench.sent, wait_of(dut))
    for port in [1, 2, 3]:
        model.check_real_time(port, bench.bursts[port])
        check_gaps(bench.bursts[port])
        found = best_effort_of(bench.bursts[port])
        assert [octets for octets in found if octets in set(wanted)] == wanted
    counters = await bench.counters(0)
    assert counters["be_in"] == 31
    assert counters["be_bad"] + counters["bad_preambles"] + counters["be_in_full"] == 0


async def passes(bench, number):
    """A frame in fragments and one that is not pass from port 1."""
    await bench.drain(800)
    for bursts in bench.bursts:
        bursts.clear()
    one, other = best_effort(400, 1), best_effort(100, 1)
    for part in fragments(one, [100, 200], number):
        bench.raw(1, part)
    bench.send(1, other)
    await bench.drain(1600)
    for port in [0, 2, 3]:
        assert best_effort_of(bench.bursts[port]) == [one, other]


@cocotb.test()
async def fragments_that_do_not_fit_are_dropped_and_counted(dut):
    bench = await begun(dut)
    await introduce(bench)
    octets = best_effort(400, 1)
    parts = fragments(octets, [100, 200, 300], 2)
    damaged = bytearray(parts[1])
    damaged[40] ^= 1
    real = fragments(real_time(300), [100], 2)
    alien = fragments(octets, [100, 200, 300], 1)
    # What is sent, and how often something was wrong: each loss, and each rest without a begin.
    cases = [
        ([parts[0], parts[2], parts[3]], 2),
        ([parts[0], parts[2]], 1),
        ([parts[1]], 1),
        ([parts[0], bytes(damaged), parts[2], parts[3]], 3),
        ([parts[0], parts[1], parts[0], parts[1], parts[2], parts[3]], 1),
        ([parts[0], alien[1], parts[1]], 2),
        ([parts[0], parts[1][:7]], 1),
        ([parts[0], parts[1][:8]], 1),
        ([parts[0], parts[1][:10]], 1),
        (real, 1),
        (fragments(best_effort(60, 1), [], 0), 1),
        (fragments(best_effort(1523, 1), [700], 0), 1),
    ]
    bad = 0
    for sent, wrong in cases:
        for part in sent:
            bench.raw(1, part)
        bad += wrong
        await passes(bench, random.randrange(4))
        assert (await bench.counters(1))["be_bad"] == bad, cases.index((sent, wrong))


@cocotb.test()
async def a_frame_that_is_never_completed_costs_one_other_at_most(dut):
    bench = await begun(dut)
    await introduce(bench)
    for count in range(1, 4):
        part = fragments(best_effort(400, 1), [100], count)[0]
        bench.raw(1, part)
        bench.send(1, best_effort(100, 1))
        await passes(bench, 0)
        counters = await bench.counters(1)
        assert counters["be_in_full"] == count
        assert counters["be_bad"] == 0


@cocotb.test()
async def what_leaves_is_cut_for_real_time_and_nothing_is_lost(dut):
    bench = await begun(dut, QBU)
    await introduce(bench)
    for port in [1, 2, 3]:
        best_effort_load(bench, port, [64, 123, 124, 200, 1000, 1522], 25)
    for _ in range(60):
        bench.send(0, real_time(random.choice([64, 64, 300]), random.choice([None, 0])))
        bench.idle(0, random.randrange(100, 1200))
    while bench.wires[0]:
        await bench.run(50)
    stop_loads(bench)
    await bench.drain(4000)
    wait = wait_of(dut)
    model = Model(bench.sent, wait)
    cuts = 0
    for port in range(PORTS):
        bursts = bench.bursts[port]
        check_gaps(bursts)
        assert all(not one.errors for one in bursts)
        late = late_by(model, port, bursts)
        assert max(late, default=0) <= (LONGEST_HOLD - wait + QUEUE if wait < LONGEST_HOLD else 0)
        together = Together()
        for one in bursts:
            if not one.is_real_time:
                together.take(bytes(one.octets))
        wanted = [
            octets
            for other in range(PORTS)
            if other != port
            for octets in model.best_effort[other]
        ]
        assert sorted(together.frames) == sorted(wanted)
        counters = await bench.counters(port)
        assert counters["preemptions"] == together.cuts
        assert counters["aborts"] == 0
        assert counters["be_out"] == len(wanted)
        cuts += together.cuts
    assert cuts > 20


def late_by(model, port, bursts):
    found = real_time_of(bursts)
    wanted = [(sfd, octets) for source, sfd, octets, _ in model.forwarded if source != port]
    assert [octets for _, octets, _ in found] == [octets for _, octets in wanted]
    late = [
        one[0] - sfd - LATENCY - model.wait for one, (sfd, _) in zip(found, wanted, strict=True)
    ]
    assert all(each >= 0 for each in late)
    return late


@cocotb.test()
async def policies_may_change_between_fragments(dut):
    bench = await begun(dut, QBU)
    await introduce(bench)
    for port in [1, 2]:
        best_effort_load(bench, port, [200, 1522], 40)
    for number in range(60):
        bench.send(0, real_time(64))
        await bench.run(random.randrange(150, 500))
        await bench.access(POLICY, [0, QBU, 1, QBU, 2, QBU][number % 6])
    stop_loads(bench)
    await bench.drain(4000)
    sent = [one.octets for one in bench.sent if one.octets[:6] == NC_GROUP]
    for port in [1, 2, 3]:
        assert [octets for _, octets, _ in real_time_of(bench.bursts[port])] == sent
        check_gaps(bench.bursts[port])
    await bench.access(POLICY, 0)
    await passes(bench, 0)
