"""Rounds are numbered and second masters counted as docs/network-code.md says, to the cycle behind."""

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
    late, late_reset = [0, 0, 0, 0], True
    begun_by = None
    source = 1
    strobe = False
    for cycle in range(6000):
        reset = cycle < 2 or random.random() < 0.01
        own = random.random() < 0.1
        # A frame's source stays for the cycle behind.
        source = source if strobe else random.choice([1, 2, 1 << 47])
        strobe = random.random() < 0.4
        # The core issues one instruction in a cycle: `sync master` takes no frame.
        taken = strobe and not own and random.random() < 0.3
        dut.rst.value, dut.strobe.value, dut.strobe_taken.value = reset, strobe, taken
        dut.source.value, dut.begins_round.value = source, own
        await ReadOnly()
        if cycle >= 3:
            seen = [int(dut.round.value)] + [int(getattr(dut, name).value) for name in COUNTS]
            assert seen == late, f"cycle {cycle}"
        await RisingEdge(dut.clk)
        late = [0, 0, 0, 0] if late_reset else wanted
        late_reset = reset
        discarded = strobe and not taken
        second = discarded and begun_by is not None and begun_by != source
        wanted = [wanted[0] + own, int(taken), int(discarded), int(second)]
        begun_by = "own" if own else source if taken else begun_by
        if reset:
            wanted, begun_by = [0, 0, 0, 0], None
