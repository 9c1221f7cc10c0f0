"""No input locks up the switch: after each attack good frames pass as before."""

import random

import cocotb
from gmii import CYCLE_PS, NC_GROUP, burst, fragments
from switch_bench import (
    FINISH,
    LATENCY,
    POLICY,
    PORTS,
    QBU,
    Bench,
    best_effort_of,
    check_gaps,
    real_time_of,
)
from test_atacama_switch import begun, best_effort, best_effort_load, noise, real_time, stop_loads

TOP = "atacama_switch"
LONG = True
SIMULATOR = "verilator"
# Real-time frames with a gap of 2, each of which lets a queue grow by 10 of its 2,048 octets.
FLOOD = 230


async def check_alive(bench):
    """Frames of both classes pass from each port to all others, on time."""
    await bench.drain()
    for port in range(PORTS):
        for bursts in bench.bursts:
            bursts.clear()
        first = bench.send(port, real_time(100), gap=200)
        second = bench.send(port, best_effort(200, port), gap=1000)
        third = bench.send(port, real_time(64, 0xE000))
        await bench.drain()
        for other in range(PORTS):
            bursts = bench.bursts[other]
            if other == port:
                assert not bursts
                continue
            expected = [(one.sfd + LATENCY, one.octets, []) for one in (first, third)]
            assert real_time_of(bursts) == expected
            assert best_effort_of(bursts) == [second.octets]
            check_gaps(bursts)


@cocotb.test()
async def runts_of_any_length_and_jumbos(dut):
    bench = await begun(dut)
    for make in [real_time, lambda octets: best_effort(octets, 1)]:
        whole = make(63)
        for octets in range(64):
            bench.send(octets % PORTS, whole[:octets], gap=random.choice([12, 12, 1]))
        await check_alive(bench)
        for octets in [1523, 1524, 2000, 4094, 4095, 4096, 5000]:
            bench.send(2, make(octets))
        await check_alive(bench)


@cocotb.test()
async def bad_sequences_and_errors(dut):
    bench = await begun(dut)
    for make in [real_time, lambda octets: best_effort(octets, 1)]:
        for octets in [64, 65, 200]:
            damaged = bytearray(make(octets))
            damaged[-1] ^= 128
            bench.send(0, damaged)
            for error in [0, 13, 17, 18, 40, octets - 1]:
                bench.send(1, make(octets), errors=[error])
            bench.send(3, make(octets), errors=range(octets))
        await check_alive(bench)


@cocotb.test()
async def preambles_and_gaps_of_any_length(dut):
    bench = await begun(dut)
    for preamble in [0, 1, 2, 6, 8, 30, 2000]:
        for gap in [1, 1, 2, 3, 11]:
            bench.send(0, real_time(64), preamble, gap)
            bench.send(0, best_effort(64, 0), preamble, gap)
            bench.send(3, best_effort(64, 3), preamble, gap)
    await check_alive(bench)
    for octets in [b"\x55", b"\x55" * 100, b"\xd5", b"\x00", noise(200), burst(b""), b"\x55\xd5" * 9]:
        for gap in [1, 1, 2]:
            bench.raw(1, octets, gap)
    await check_alive(bench)


@cocotb.test()
async def a_burst_that_does_not_end(dut):
    bench = await begun(dut)
    for octets in [real_time(64)[:-4], best_effort(64, 1)[:-4], b""]:
        # The bus is free again and the other ports are served while it lasts.
        bench.send(0, octets + noise(12000))
        await bench.run(2500)
        for bursts in bench.bursts:
            bursts.clear()
        alive = bench.send(1, real_time(64), gap=1000)
        also = bench.send(2, best_effort(100, 2))
        await bench.run(2500)
        assert bench.wires[0]
        for other in [0, 2, 3]:
            assert real_time_of(bench.bursts[other]) == [(alive.sfd + LATENCY, alive.octets, [])]
        assert best_effort_of(bench.bursts[3]) == [also.octets]
        await check_alive(bench)


@cocotb.test()
async def clocks_that_stop_anywhere(dut):
    bench = await begun(dut)
    for make in [real_time, lambda octets: best_effort(octets, 1)]:
        for after in [3, 8, 20, 25, 30, 60, 100]:
            bench.send(1, make(80))
            await bench.run(after)
            bench.running[2] = False
            await bench.run(random.choice([5, 100, 400]))
            bench.running[2] = True
            await bench.drain(200)
        await check_alive(bench)
    bench.running[4] = False
    bench.send(0, real_time(64))
    sent = bench.send(2, real_time(64))
    await bench.run(400)
    assert len(bench.bursts[3]) > 0, "a port sends without a clock to receive by"
    assert sent.sfd
    bench.running[4] = True
    await check_alive(bench)


@cocotb.test()
async def a_babbling_port_without_windows_only_costs_what_it_must(dut):
    bench = await begun(dut)
    bench.sources[0] = lambda: bench.send(0, real_time(64), gap=random.choice([12, 12, 1, 3]))
    best_effort_load(bench, 1, [64, 1522])
    await bench.run(6000)
    stop_loads(bench)
    await check_alive(bench)


@cocotb.test()
async def all_ports_babble_at_once_under_each_policy(dut):
    bench = await begun(dut)
    for policy in [0, 1, FINISH, QBU]:
        await bench.access(POLICY, policy)

        def babble(port):
            def more():
                make = random.choice([real_time, lambda octets: best_effort(octets, port)])
                octets = make(random.choice([64, 80, 1522]))[: random.choice([2000, 2000, 30])]
                errors = random.choice([[], [], [5], [20]])
                gap = random.choice([1, 12])
                bench.send(port, octets, random.choice([0, 7, 7]), gap, errors)
                cuts = random.choice([[], [8], [60, 64]])
                for part in fragments(octets, cuts, random.randrange(4)):
                    if random.random() < 0.8:
                        bench.raw(port, part, gap)

            return more

        bench.sources = [babble(port) for port in range(PORTS)]
        await bench.run(8000)
        # The policy changes while frames wait and are on their way.
        await bench.access(POLICY, (policy + 2) % 4)
        await bench.run(3000)
        stop_loads(bench)
        await bench.access(POLICY, 0)
        # A frame of which no more fragments come costs its port's next best-effort frame.
        await bench.drain()
        for port in range(PORTS):
            bench.send(port, best_effort(64, port))
        await check_alive(bench)


@cocotb.test()
async def the_wait_for_the_end_of_best_effort_has_a_limit(dut):
    bench = await begun(dut, FINISH)
    best_effort_load(bench, 1, [1522])
    await bench.run(4000)
    # Shorter preambles and gaps than a port may give back to back: more comes than can leave.
    for _ in range(FLOOD):
        bench.send(0, real_time(64), preamble=7, gap=2)
    while bench.wires[0]:
        await bench.run(50)
    stop_loads(bench)
    await bench.drain(3000)
    counters = await bench.counters(2)
    assert counters["rt_lost"] > 2
    # A frame that is cut as it waits has begun and is lost, too.
    cut = sum(one.errors != [] for one in bench.bursts[2] if one.is_real_time)
    assert counters["rt_lost"] + counters["rt_out"] == FLOOD + cut
    sent = [one.octets for one in bench.sent if one.octets[:6] == NC_GROUP]
    position = iter(sent)
    whole = [one for one in bench.bursts[2] if one.is_real_time and not one.errors]
    assert all(one.frame in position for one in whole)
    assert len(whole) == counters["rt_out"] - cut
    for bursts in bench.bursts:
        check_gaps(bursts)
    await bench.access(POLICY, 0)
    await check_alive(bench)


@cocotb.test()
async def a_reset_in_the_midst_of_everything(dut):
    bench = await begun(dut)
    for _ in range(6):
        for port in range(PORTS):
            best_effort_load(bench, port, [64, 1000])
        bench.sources[0] = lambda: bench.send(0, random.choice([real_time, longer])(90))
        await bench.run(random.randrange(1500, 2500))
        dut.rst.value = 1
        await bench.run(random.randrange(1, 4))
        dut.rst.value = 0
        stop_loads(bench)
        await bench.drain()
        await check_alive(bench)


def longer(octets):
    return best_effort(octets * 3, 0)


@cocotb.test()
async def clocks_100_ppm_apart_cost_one_cycle_at_most(dut):
    spread = []
    for load in [False, True]:
        signs = [random.choice([-100, -33, 33, 100]) for _ in range(5)]
        periods = [2 * round(500 * CYCLE_PS * (1 + ppm / 1e6)) for ppm in signs]
        bench = ScaledBench(dut, periods, [random.randrange(8000000) for _ in range(5)])
        await bench.begin()
        if load:
            for port in [1, 2]:
                best_effort_load(bench, port, [64, 500, 1522], 30)
        for number in range(40):
            bench.send(0, real_time(random.choice([64, 200, 1000]), random.choice([None, 0])))
            bench.idle(0, 1700 + 7 * number)
        while bench.wires[0]:
            await bench.run(50)
        stop_loads(bench)
        await bench.drain(4000)
        sent = [one for one in bench.sent if one.octets[:6] == NC_GROUP]
        assert len(sent) == 40
        for port in [1, 2, 3]:
            found = [one for one in bench.bursts[port] if one.is_real_time]
            assert [one.frame for one in found] == [one.octets for one in sent]
            delays = [out.start_ps - one.sfd_ps for one, out in zip(sent, found, strict=True)]
            spread.append((max(delays) - min(delays)) / periods[0])
            check_gaps(bench.bursts[port])
        for port in range(PORTS):
            assert (await bench.counters(port))["slips"] == 0
            full = (await bench.counters(port))["be_full"]
            assert full == 0
    cocotb.log.info("spreads in cycles: %s", spread)
    # One cycle of the switch's clock, and what the clocks are apart.
    assert max(spread) <= 1.001, spread


class ScaledBench(Bench):
    """Times in femtoseconds, so that periods differ by parts per million. 1 ps stands for 1 fs."""
