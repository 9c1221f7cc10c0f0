"""The switch as a whole, against what must come out of it, to the cycle for real-time frames."""

import random

import cocotb
from gmii import NC_DATA, NC_GROUP, address, frame
from switch_bench import LATENCY, PORTS, Bench, best_effort_of, check_gaps, real_time_of

TOP = "atacama_switch"
SIMULATOR = "verilator"
WAITS = 0


def real_time(octets=60, source=9, tag=None):
    payload = bytes(random.randrange(256) for _ in range(octets - 14 - (4 if tag is not None else 0)))
    return frame(NC_GROUP, address(source), NC_DATA, payload, tag, padded=False)


def best_effort(octets, source, destination=None):
    payload = bytes(random.randrange(256) for _ in range(octets - 18))
    return frame(destination or b"\xff" * 6, address(source), 0x0800, payload)


@cocotb.test()
async def latency_is_constant_at_all_lengths_tagged_or_not(dut):
    bench = Bench(dut)
    await bench.begin()
    sent = []
    for octets in [14, 18, 40, 60, 61, 300, 1518]:
        for tag in [None, 0xE000]:
            if tag is not None and octets < 18:
                continue
            sent.append(bench.send(0, real_time(octets, tag=tag), random.choice([7, 7, 1, 15]), 20))
    await bench.drain()
    assert not bench.bursts[0]
    for port in [1, 2, 3]:
        expected = [(one.sfd + LATENCY, one.octets, []) for one in sent]
        assert real_time_of(bench.bursts[port]) == expected
        check_gaps(bench.bursts[port])


@cocotb.test()
async def best_effort_is_flooded_and_learnt(dut):
    bench = Bench(dut)
    await bench.begin()
    await bench.run(2200)
    a = bench.send(0, best_effort(100, 1))
    b = bench.send(1, best_effort(64, 2))
    await bench.drain()
    assert best_effort_of(bench.bursts[2]) in ([a.octets, b.octets], [b.octets, a.octets])
    assert best_effort_of(bench.bursts[0]) == [b.octets]
    c = bench.send(1, best_effort(1522, 2, address(1)))
    await bench.drain()
    assert best_effort_of(bench.bursts[0]) == [b.octets, c.octets]
    assert len(bench.bursts[2]) == 2
