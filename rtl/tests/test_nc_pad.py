"""A stream comes out unchanged, CYCLES later, and nothing of it is left after a reset."""

import random

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ReadOnly, RisingEdge

TOP = "nc_pad"
PARAMETERS = [{"CYCLES": 0}, {"CYCLES": 1}, {"CYCLES": 74}]


@cocotb.test()
async def a_stream_is_late_by_cycles(dut):
    late = int(dut.CYCLES.value)
    cocotb.start_soon(Clock(dut.clk, 8, "ns").start())
    sent = []
    for cycle in range(1500):
        reset = cycle < 2 or 700 <= cycle < 703
        given = (random.randrange(2), random.randrange(2), random.randrange(256))
        dut.rst.value = reset
        dut.dv.value, dut.er.value, dut.data.value = given
        sent.append(given)
        await ReadOnly()
        if cycle >= late + 2:
            dv, er, octet = sent[cycle - late]
            # What was within the pad in a cycle of reset, or came in it, is no longer there.
            if late and any(cycle - late <= at < cycle for at in (0, 1, 700, 701, 702)):
                dv = 0
            seen = (dut.late_dv.value, dut.late_er.value, dut.late_data.value)
            assert tuple(map(int, seen)) == (dv, er, octet), f"cycle {cycle}"
        await RisingEdge(dut.clk)
