"""The queue against a Python deque, at random fill levels."""

import random
from collections import deque

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge

TOP = "queue"
PARAMETERS = [{"WIDTH": 16, "ADDRESS_BITS": 2}, {"WIDTH": 16, "ADDRESS_BITS": 5}]


@cocotb.test()
async def gives_what_was_pushed_in_order(dut):
    size = 2 ** int(dut.ADDRESS_BITS.value)
    cocotb.start_soon(Clock(dut.clk, 8, "ns").start())
    dut.rst.value = 1
    dut.push.value = 0
    dut.pop.value = 0
    for _ in range(3):
        await FallingEdge(dut.clk)
    dut.rst.value = 0
    entries = deque()  # value and the cycle of its push
    most = 0
    for cycle in range(4000):
        assert int(dut.room.value) == size - len(entries)
        assert int(dut.empty.value) == (not entries)
        valid = int(dut.valid.value)
        if entries and entries[0][1] <= cycle - 2:
            assert valid, "an old entry is on the output"
        if valid:
            assert entries and int(dut.out.value) == entries[0][0]
        phase = (cycle // 200) % 3  # fill, empty, both
        push = random.random() < [0.9, 0.2, 1.0][phase]
        pop = random.random() < [0.2, 0.9, 1.0][phase]
        value = random.randrange(65536)
        dut.push.value = int(push)
        getattr(dut, "in").value = value
        dut.pop.value = int(pop)
        if push and len(entries) < size:
            entries.append((value, cycle))
        elif push:
            most += 1
        if pop and valid:
            entries.popleft()
        await FallingEdge(dut.clk)
    assert most > 20, "it was never full"
