"""Rounds are numbered and second masters counted as docs/network-code.md says, to the cycle."""

import random

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ReadOnly, RisingEdge

TOP = "nc_rounds"
COUNTS = ["counts_seen", "counts_discarded", "counts_second"]


@cocotb.test()
async def rounds_follow_the_definition(dut):
    cocotb.start_soon(Clock(dut.clk, 8, "ns").start())
    wanted = [0, 0, 0, 0]
    begun_by = None
    for cycle in range(6000):
        reset = cycle < 2 or random.random() < 0.01
        own = random.random() < 0.1
        strobe = random.random() < 0.4
        # The core issues one instruction in a cycle: `sync master` takes no frame.
        taken = strobe and not own and random.random() < 0.3
        source = random.choice([1, 2, 1 << 47])
        dut.rst.value, dut.strobe.value, dut.strobe_taken.value = reset, strobe, taken
        dut.source.value, dut.begins_round.value = source, own
        await ReadOnly()
        if cycle >= 2:
            seen = [int(dut.round.value)] + [int(getattr(dut, name).value) for name in COUNTS]
            assert seen == wanted, f"cycle {cycle}"
        await RisingEdge(dut.clk)
        discarded = strobe and not taken
        second = discarded and begun_by is not None and begun_by != source
        wanted = [wanted[0] + own, int(taken), int(discarded), int(second)]
        begun_by = "own" if own else source if taken else begun_by
        if reset:
            wanted, begun_by = [0, 0, 0, 0], None
