"""Words of each input are said in its turn, two cycles later, to the outputs it names."""

import random

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge

TOP = "fabric"
FIELDS = {"input_outputs": 4, "input_length": 11, "input_data": 32}
FLAGS = ["input_begin", "input_word", "input_end"]


@cocotb.test()
async def each_input_has_its_turn(dut):
    cocotb.start_soon(Clock(dut.clk, 8, "ns").start())
    for name in [*FIELDS, *FLAGS]:
        getattr(dut, name).value = 0
    dut.rst.value = 1
    for _ in range(3):
        await FallingEdge(dut.clk)
    dut.rst.value = 0
    for cycle in range(2000):
        # The turn was a cycle ago; inputs answer now, and it is said in the next cycle.
        answering = (cycle - 1) % 4
        assert int(dut.turn.value) == 1 << cycle % 4
        values = {}
        for name in FLAGS:
            values[name] = random.getrandbits(4)
            getattr(dut, name).value = values[name]
        for name, width in FIELDS.items():
            values[name] = [random.getrandbits(width) for _ in range(4)]
            joined = sum(value << width * place for place, value in enumerate(values[name]))
            getattr(dut, name).value = joined
        await FallingEdge(dut.clk)
        begins, words, ends = (values[name] >> answering & 1 for name in FLAGS)
        assert int(getattr(dut, "from").value) == answering
        assert int(dut.move_begin.value) == (values["input_outputs"][answering] if begins else 0)
        assert int(dut.move_word.value) == words
        assert int(dut.move_end.value) == ends
        assert int(dut.move_length.value) == values["input_length"][answering]
        assert int(dut.move_data.value) == values["input_data"][answering]
