"""A port that does what it likes costs others nothing if ports have windows: not a frame, not a cycle."""

import random

import cocotb
from gmii import CYCLE_PS, NC_DATA, NC_SYNC, burst
from switch_bench import LATENCY, PORTS, SYNCHRONISED, Bench, check_gaps, real_time_of
from test_atacama_switch import CLEARED, best_effort, noise, real_time
from test_switch_attacks import ScaledBench

TOP = "atacama_switch"
LONG = True
SIMULATOR = "verilator"
ROUND = 3000
ROUNDS = 12
# A whole frame of 300 octets with its preamble, which may be so early or late.
MARGIN = 4
LENGTH = 300
OPEN = {0: 100, 1: 700, 2: 1300, 3: 1900}
WINDOWS = {
    port: [(at - MARGIN, at + 8 + LENGTH + MARGIN)] for port, at in OPEN.items()
}
LEAST, LIMIT = ROUND - 10, ROUND + 20
MASTER, ATTACKER = 0, 2


class Rounds:
    """The frames that stations send by plan, each at its time by its own clock and the master's."""

    def __init__(self, bench, rounds=ROUNDS, silent=()):
        self.bench = bench
        self.events = [[] for _ in range(PORTS)]
        begin = bench.now + 2000 * bench.periods[0]
        for number in range(rounds):
            # Place 0 is the SFD of the beginning.
            at = begin + number * ROUND * bench.periods[1 + MASTER]
            if MASTER not in silent:
                self.events[MASTER].append((at, real_time(64, None, NC_SYNC)))
            for port, offset in OPEN.items():
                # A window counts from the SFD of the beginning, and to a preamble.
                later = (offset + 7) * bench.periods[1 + port]
                if port not in (ATTACKER, *silent):
                    self.events[port].append((at + later, real_time(LENGTH)))
        self.sent = [[] for _ in range(PORTS)]
        for port in range(PORTS):
            if port != ATTACKER:
                bench.sources[port] = self.source(port)
        self.begin, self.end = begin, begin + rounds * ROUND * bench.periods[1 + MASTER]

    def source(self, port):
        def more():
            events = self.events[port]
            if events and self.bench.now >= events[0][0]:
                self.sent[port].append(self.bench.send(port, events.pop(0)[1]))

        return more

    def place(self):
        """Cycles since the master's last beginning was due."""
        return (self.bench.now - self.begin) // self.bench.periods[0] % ROUND

    async def run(self):
        while self.bench.now < self.end:
            await self.bench.run(50)
        self.bench.sources = [None] * PORTS
        # What an attacker has on its wire still is not waited for.
        for wire in self.bench.wires:
            wire.clear()
        await self.bench.drain(500)


async def planned(dut, attack, make_bench=Bench, seed=1, rounds=ROUNDS):
    """What left each port of what others than the attacker sent, and the bench."""
    state = random.getstate()
    random.seed(seed)
    bench = make_bench(dut)
    await bench.begin()
    await bench.run(CLEARED)
    for port, windows in WINDOWS.items():
        await bench.set_windows(port, windows)
    await bench.set_rounds(LEAST, LIMIT, [MASTER])
    plan = Rounds(bench, rounds)
    # The plan's frames are the same in each run, whatever an attacker draws.
    random.setstate(state)
    if attack:
        bench.sources[ATTACKER] = lambda: attack(bench, plan)
    start = bench.now
    await plan.run()
    theirs = {one.octets for sent in plan.sent for one in sent}
    assert len(theirs) == rounds * PORTS
    found = [
        [
            (one.start_ps - start, one.frame, one.errors)
            for one in bursts
            if one.is_real_time and one.frame in theirs
        ]
        for bursts in bench.bursts
    ]
    for bursts in bench.bursts:
        check_gaps(bursts)
    for port in range(PORTS):
        others = sum(len(sent) for other, sent in enumerate(plan.sent) if other != port)
        assert len(found[port]) == others, f"port {port}: {len(found[port])} of {others}"
    return found, bench, plan


def babble(gap, lengths, make=real_time):
    def attack(bench, _):
        bench.send(ATTACKER, make(random.choice(lengths)), gap=gap if gap else random.choice([1, 12, 70]))

    return attack


def beginning(octets):
    return real_time(octets, None, NC_SYNC)


def either(octets):
    return real_time(octets, random.choice([None, 0xE000]), random.choice([NC_DATA, NC_SYNC]))


def aimed(place, octets, make=real_time):
    """One frame in each round, whose preamble begins in that place."""

    def attack(bench, plan):
        # The beginning is due by its preamble, and place 0 is its SFD.
        if plan.place() == (place + 7) % ROUND:
            bench.send(ATTACKER, make(octets))

    return attack


def everything(bench, _):
    make = random.choice([either, either, lambda octets: best_effort(octets, 7), lambda octets: noise(64)])
    octets = make(random.choice([64, 68, 100, 700, 1522]))
    if random.random() < 0.2:
        octets = octets + noise(random.choice([5, 3000]))
    if random.random() < 0.2:
        octets = octets[: random.randrange(1, len(octets))]
    if random.random() < 0.1:
        bench.raw(ATTACKER, burst(octets, random.choice([0, 1, 30])), random.choice([1, 40]))
    else:
        errors = [20] if random.random() < 0.1 else []
        bench.send(ATTACKER, octets, random.choice([0, 7, 7]), random.choice([1, 12, 200]), errors)


OPENS, CLOSES = WINDOWS[ATTACKER][0]
ATTACKS = {
    "line rate": babble(12, [64]),
    "gaps of 1": babble(1, [64]),
    "any length": babble(None, [64, 65, 200, 900, 1522]),
    "longest": babble(12, [1522]),
    "a tenth of the rate": babble(900, [64, 200]),
    "other lengths than the round has": babble(37, [64, 301]),
    "beginnings": babble(12, [64], beginning),
    "beginnings, seldom": babble(700, [64], beginning),
    "both": babble(None, [64, 300], either),
    "everything": everything,
    "without end": lambda bench, _: bench.send(ATTACKER, real_time(64) + noise(20000), gap=1),
}


@cocotb.test()
async def others_frames_come_all_and_in_the_same_cycle(dut):
    quiet, bench, plan = await planned(dut, None)
    for port in range(PORTS):
        for at, octets, errors in quiet[port]:
            assert not errors
            sent = next(one for other in plan.sent for one in other if one.octets == octets)
            assert at, sent
    for name, attack in ATTACKS.items():
        found, bench, plan = await planned(dut, attack)
        assert found == quiet, name
        counters = await bench.counters(ATTACKER)
        assert counters["guarded"] > 0, name
        assert counters["rt_in"] >= ROUNDS // 2 or name == "without end", name
        for port in range(PORTS):
            if port != ATTACKER:
                of = await bench.counters(port)
                assert of["collisions"] == of["guarded"] == of["rt_cut"] == 0, (name, port)
        cocotb.log.info("%s: %s", name, {key: value for key, value in counters.items() if value})


@cocotb.test()
async def a_frame_at_any_place_of_the_round_costs_others_nothing(dut):
    quiet, _, _ = await planned(dut, None, rounds=2)
    last = CLOSES - 72
    places = {OPENS - 2, OPENS - 1, OPENS, OPENS + 1, last - 1, last, last + 1, last + 2, CLOSES}
    for port, at in OPEN.items():
        # Just before another one's window, at its beginning, in it, behind it.
        if port != ATTACKER:
            places |= {at - 90, at - MARGIN - 1, at - MARGIN, at + 3, at + 100, at + LENGTH + 20}
    places |= {LEAST, ROUND - 1, 0, 5, LIMIT - ROUND}
    seen = {True: set(), False: set()}
    for place in sorted(places):
        for octets in [64, 1522] if OPENS - 2 <= place <= CLOSES else [1522]:
            found, bench, plan = await planned(dut, aimed(place, octets), rounds=2)
            assert found == quiet, (place, octets)
            out = {(at, octets[:60]): errors for at, octets, errors in real_time_of(bench.bursts[1])}
            begun = [one.sfd for one in plan.sent[MASTER] if len(one.octets) == 64]
            for one in bench.sent:
                if one.port != ATTACKER or one.sfd is None:
                    continue
                before = [at for at in begun if at < one.sfd - 7]
                truly = one.sfd - 7 - before[-1] if before else None
                passes = truly is not None and OPENS <= truly <= last
                here = (one.sfd + LATENCY, one.octets[:60])
                assert (here in out) == passes, truly
                if passes:
                    # It is cut where its window closes, or ends before.
                    error = CLOSES - truly
                    assert out[here] == ([error] if error < 8 + octets else [])
                seen[passes].add(truly)
    assert {OPENS, last} <= seen[True] and {OPENS - 1, last + 1} <= seen[False], seen


@cocotb.test()
async def clocks_100_ppm_apart_change_nothing(dut):
    signs = [100, -100, 100, -100, 33]
    periods = [2 * round(500 * CYCLE_PS * (1 + ppm / 1e6)) for ppm in signs]
    phases = [random.randrange(8000000) for _ in range(5)]

    def make_bench(dut):
        return ScaledBench(dut, periods, phases)

    quiet, _, _ = await planned(dut, None, make_bench, rounds=6)
    for name in ["any length", "both", "everything"]:
        found, bench, _ = await planned(dut, ATTACKS[name], make_bench, rounds=6)
        assert found == quiet, name
        assert (await bench.counters(ATTACKER))["guarded"] > 0
    for place in [CLOSES - 80, OPEN[1] - 90]:
        found, _, _ = await planned(dut, aimed(place, 1522), make_bench, rounds=6)
        assert found == quiet, place


@cocotb.test()
async def without_a_master_nothing_passes_until_one_comes(dut):
    bench = Bench(dut)
    await bench.begin()
    for port, windows in WINDOWS.items():
        await bench.set_windows(port, windows)
    await bench.set_rounds(LEAST, LIMIT, [0, 1])
    assert await bench.access(SYNCHRONISED) == 0
    bench.send(3, real_time(64))
    bench.send(2, real_time(64, None, NC_SYNC))
    await bench.drain(200)
    assert not any(bench.bursts)
    # Port 0 begins, then fails; port 1 takes over when it is in time, and not before.
    first = bench.send(0, real_time(64, None, NC_SYNC))
    await bench.drain(400)
    assert await bench.access(SYNCHRONISED) == 1
    early = bench.send(1, real_time(64, None, NC_SYNC))
    await bench.run(ROUND)
    second = bench.send(1, real_time(68, 0xE000, NC_SYNC))
    await bench.run(LIMIT + 200)
    assert await bench.access(SYNCHRONISED) == 0
    bench.send(3, real_time(64))
    await bench.run(200)
    third = bench.send(0, real_time(64, None, NC_SYNC) + noise(100))
    await bench.drain(200)
    assert early.sfd
    found = real_time_of(bench.bursts[2])
    wanted = [(one.sfd + LATENCY, one.octets, []) for one in (first, second)]
    assert found[:2] == wanted
    # A beginning that is longer than one may be is cut.
    assert len(found) == 3 and found[2][0] == third.sfd + LATENCY
    assert found[2][2] == [8 + 68] and len(found[2][1]) == 69
    assert [(await bench.counters(port))["guarded"] for port in range(PORTS)] == [0, 1, 1, 2]


@cocotb.test()
async def settings_are_read_as_they_were_written(dut):
    bench = Bench(dut)
    await bench.begin()
    for address, value, refused in [(6, 9, 16), (7, 2**28 - 1, 2**28), (8, 12345, 2**31), (0x13, 32, 33)]:
        for number in [value, refused]:
            await bench.access(address, number)
            assert await bench.access(address) == value
