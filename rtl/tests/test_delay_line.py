"""Each value comes out after its cycles, and nothing from before a reset."""

import random

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge

TOP = "delay_line"
PARAMETERS = [
    {"CYCLES": 2, "ADDRESS_BITS": 5},
    {"CYCLES": 27, "ADDRESS_BITS": 5},
    {"CYCLES": 32, "ADDRESS_BITS": 5},
    {"CYCLES": 117, "ADDRESS_BITS": 8},
]


@cocotb.test()
async def delays_by_its_cycles_and_forgets_at_reset(dut):
    cycles = int(dut.CYCLES.value)
    cocotb.start_soon(Clock(dut.clk, 8, "ns").start())
    for _ in range(3):
        dut.rst.value = 1
        getattr(dut, "in").value = 1023
        for _ in range(3):
            await FallingEdge(dut.clk)
        dut.rst.value = 0
        given = []
        for cycle in range(5 * cycles + 300):
            expected = given[cycle - cycles] if cycle >= cycles else 0
            assert int(dut.out.value) == expected, f"cycle {cycle}"
            given.append(random.randrange(1024))
            getattr(dut, "in").value = given[-1]
            await FallingEdge(dut.clk)
