"""The switch as a whole, against what must come out of it, to the cycle for real-time frames."""

import random

import cocotb
from gmii import NC_DATA, NC_GROUP, NC_SYNC, address, frame
from switch_bench import (
    ABORT_DROP,
    ABORT_RETRY,
    FINISH,
    LATENCY,
    MAX_LENGTH,
    POLICY,
    PORTS,
    Bench,
    real_time_of,
)
from switch_model import Guard, Model

TOP = "atacama_switch"
SIMULATOR = "verilator"
PARAMETERS = [{"WAIT": 0}]
LONG_PARAMETERS = [{"WAIT": 105}]
# A table that is cleared after a reset floods meanwhile.
CLEARED = 2200
ALL = b"\xff" * 6


def noise(octets):
    return bytes(random.randrange(256) for _ in range(octets))


def real_time(octets=64, tag=None, ethertype=NC_DATA):
    """A real-time frame of so many octets with its FCS, also of less than 64."""
    payload = noise(octets - 18 - (4 if tag is not None else 0))
    return frame(NC_GROUP, address(99), ethertype, payload, tag, padded=False)


def best_effort(octets, source, destination=ALL, tag=None):
    payload = noise(octets - 18 - (4 if tag is not None else 0))
    return frame(destination, address(source), 0x0800, payload, tag, padded=False)


def wait_of(dut):
    return int(dut.WAIT.value)


async def begun(dut, policy=ABORT_RETRY):
    bench = Bench(dut)
    await bench.begin()
    await bench.run(CLEARED)
    if policy != ABORT_RETRY:
        await bench.access(POLICY, policy)
    return bench


async def check(bench, idle=2000, **said):
    """Runs until all is still, and compares with the model."""
    may_be_full = said.pop("may_be_full", False)
    await bench.drain(idle)
    model = Model(bench.sent, wait_of(bench.dut), **said)
    model.check(bench.bursts, await bench.all_counters(), may_be_full)
    return model


async def introduce(bench):
    """Each port's station says where it is."""
    for port in range(PORTS):
        bench.send(port, best_effort(64, port))
    await bench.run(300)


def best_effort_load(bench, port, lengths, rate_percent=100, to_all=True):
    """Keeps a port's wire filled with best effort."""

    def more():
        octets = random.choice(lengths)
        other = random.choice([number for number in range(PORTS) if number != port])
        destination = ALL if to_all else address(other)
        bench.send(port, best_effort(octets, port, destination))
        bench.idle(port, (octets + 20) * (100 - rate_percent) // rate_percent)

    bench.sources[port] = more


def stop_loads(bench):
    bench.sources = [None] * PORTS


@cocotb.test()
async def latency_is_constant_at_all_lengths_tagged_or_not(dut):
    bench = await begun(dut)
    for octets in [18, 22, 40, 63, 64, 65, 300, 1522]:
        for tag in [None, 0xE000]:
            if tag is None or octets >= 22:
                ethertype = random.choice([NC_DATA, NC_SYNC])
                bench.send(0, real_time(octets, tag, ethertype), random.choice([7, 7, 1, 0, 15]), 20)
    await check(bench)
    assert len(real_time_of(bench.bursts[1])) == 15


@cocotb.test()
async def best_effort_is_flooded_learnt_and_filtered(dut):
    bench = await begun(dut)
    await introduce(bench)
    for length in [64, 65, 66, 67, 68, 500, 1521, 1522]:
        for destination in [address(2), address(1), ALL, address(77), NC_GROUP]:
            bench.send(1, best_effort(length, 1, destination, random.choice([None, 5])))
    for last in [0, 14, 15, 16]:
        reserved = bytes.fromhex("0180c20000") + bytes([last])
        bench.send(2, best_effort(100, 2, reserved))
    model = await check(bench)
    assert len(model.best_effort[1]) == 1 + 8 * 4


@cocotb.test()
async def real_time_is_exact_and_best_effort_lossless_under_load(dut):
    bench = await begun(dut)
    await introduce(bench)
    # Outputs get 60 % of their rate, and more by what is aborted.
    for port in [1, 2, 3]:
        best_effort_load(bench, port, [64, 200, 700], 20)
    for _ in range(40):
        octets = random.choice([64, 100, 300])
        bench.send(0, real_time(octets, random.choice([None, 0xE000])), gap=12)
        bench.idle(0, random.randrange(800, 2000))
    while bench.wires[0]:
        await bench.run(50)
    stop_loads(bench)
    await check(bench, 4000)
    assert sum(one.errors != [] for one in bench.bursts[2]) > 5, "nothing was aborted"


@cocotb.test()
async def overload_costs_only_best_effort_and_all_is_counted(dut):
    bench = await begun(dut)
    await introduce(bench)
    for port in range(PORTS):
        best_effort_load(bench, port, [64, 100, 1522])
    # Each port's wire has its real-time frame between endless others.
    for number in range(24):
        await bench.run(random.randrange(1200, 1800))
        bench.send(number % PORTS, real_time(random.choice([64, 200])))
    stop_loads(bench)
    await check(bench, 4000, may_be_full=True)
    assert (await bench.counters(0))["be_full"] > 0
    assert (await bench.counters(0))["aborts"] > 0


@cocotb.test()
async def aborted_frames_are_dropped_under_abort_drop(dut):
    bench = await begun(dut, ABORT_DROP)
    await introduce(bench)
    for port in [1, 2]:
        best_effort_load(bench, port, [200, 1000], 40)
    for _ in range(12):
        bench.send(0, real_time())
        bench.idle(0, random.randrange(500, 1500))
    while bench.wires[0]:
        await bench.run(50)
    stop_loads(bench)
    await check(bench, policy=ABORT_DROP)
    assert (await bench.counters(3))["lost_to_abort"] > 2


@cocotb.test()
async def best_effort_ends_first_under_finish(dut):
    bench = await begun(dut, FINISH)
    await introduce(bench)
    for port in [1, 2]:
        best_effort_load(bench, port, [200, 1522], 40)
    for number in range(16):
        bench.send(0, real_time(random.choice([64, 400])), gap=random.choice([12, 3, 1000]))
    while bench.wires[0]:
        await bench.run(50)
    stop_loads(bench)
    await check(bench, policy=FINISH)
    late = [
        found[0] - one.sfd - LATENCY - wait_of(dut)
        for found, one in zip(
            real_time_of(bench.bursts[3]),
            [one for one in bench.sent if one.octets[:6] == NC_GROUP],
            strict=True,
        )
    ]
    assert 0 in late and max(late) > 20, late


@cocotb.test()
async def only_one_real_time_frame_is_on_the_bus(dut):
    bench = await begun(dut)
    for offset in [*range(-3, 4), 70, 78, 79, 80, 81, 82, 83, 84, 85]:
        bench.send(0, real_time(64))
        bench.idle(2, max(0, offset))
        bench.idle(0, max(0, -offset))
        bench.send(2, real_time(64))
        await bench.drain(400)
    # One port's own frames, too close for their preambles.
    for gap in [1, 2, 6, 7, 8, 9, 12]:
        bench.send(1, real_time(64), gap=gap)
        bench.send(1, real_time(64), preamble=0)
        await bench.drain(400)
    # A frame that is cut keeps the bus for the octet that leaves as an error, and one behind it.
    await bench.access(MAX_LENGTH, 64)
    for offset in range(68, 80):
        bench.send(0, real_time(64) + noise(40))
        bench.idle(2, offset)
        bench.send(2, real_time(64))
        await bench.drain(400)
    model = await check(bench, max_length=64)
    assert model.counts[2]["collisions"] > 5
    assert model.counts[1]["collisions"] > 2


def drawn_windows(round_cycles):
    """Of each port: ascending ones, which may overlap those of another port. Some have none."""
    found = {}
    for port in range(PORTS):
        windows = []
        at = random.randrange(300)
        while at < round_cycles and len(windows) < 32:
            length = random.choice([72, 73, 92, 150, 400, 800])
            windows.append((at, at + length))
            at += length + random.choice([0, 1, 12, 100, 300])
        found[port] = random.choice([windows, windows, windows[:1], [(0, 0)], []])
    return found


@cocotb.test()
async def windows_let_pass_what_they_allow(dut):
    counts = dict.fromkeys(["guarded", "rt_cut", "collisions", "rt_out"], 0)
    for _ in range(4):
        bench = await begun(dut)
        round_cycles = random.choice([1500, 4000])
        windows = drawn_windows(round_cycles)
        rounds = {"least": round_cycles - random.choice([0, 50]), "limit": round_cycles + 400}
        rounds["sync_ports"] = random.choice([[0], [0, 1], [0, 1, 2, 3]])
        for port, of in windows.items():
            await bench.set_windows(port, of)
        await bench.set_rounds(**rounds)
        for port in range(PORTS):
            for _ in range(80):
                share = 0.3 if port in rounds["sync_ports"] else 0.05
                ethertype = NC_SYNC if random.random() < share else NC_DATA
                octets = random.choice([22, 64, 64, 68, 69, 100, 500])
                tag = random.choice([None, 0xE000])
                sent = real_time(octets, tag, ethertype)
                bench.send(port, sent, gap=random.choice([1, 12, 12, 100, 600]))
        model = await check(bench, guard=Guard(windows, **rounds))
        for of in model.counts:
            for name in counts:
                counts[name] += of[name]
        assert len(model.guard.begun) > 2
    assert min(counts.values()) > 20, counts


@cocotb.test()
async def random_traffic_comes_out_as_the_model_says(dut):
    for policy in [ABORT_RETRY, ABORT_DROP, FINISH]:
        bench = await begun(dut, policy)
        max_length = random.choice([1522, 200])
        await bench.access(MAX_LENGTH, max_length)
        await introduce(bench)
        for port in range(PORTS):
            for _ in range(60):
                send_anything(bench, port)
        await check(bench, 4000, policy=policy, max_length=max_length, may_be_full=True)


def send_anything(bench, port):
    octets = random.choice([18, 30, 63, 64, 64, 65, 128, 201, 700, 1518, 1522, 1523, 1900])
    if random.random() < 0.4:
        tag = random.choice([None, 0xE000]) if octets >= 22 else None
        sent = bytearray(real_time(octets, tag))
    else:
        destination = random.choice([ALL, address((port + 1) % PORTS), address(port), NC_GROUP])
        sent = bytearray(best_effort(octets, port, destination))
    damage = random.random()
    if damage < 0.1:
        sent[random.randrange(20, len(sent)) if len(sent) > 20 else -1] ^= 1
    elif damage < 0.2:
        del sent[random.randrange(len(sent)) :]
    errors = {random.randrange(len(sent))} if sent and 0.2 < damage < 0.3 else set()
    gap = random.choice([12, 12, 1, 2, 40, 400, 1000])
    bench.send(port, sent, random.choice([7, 7, 7, 0, 1, 9]), gap, errors)
