"""A word is read one cycle behind its address; one that is written in that cycle is anything, which
NC_COLLISIONS shows."""

import random

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge

TOP = "nc_memory"
DEFINES = {"NC_COLLISIONS": 1}
PARAMETERS = [{"WIDTH": 8, "ADDRESS": 4}, {"WIDTH": 32, "ADDRESS": 12}]


@cocotb.test()
async def what_was_written_is_read_a_cycle_later(dut):
    Clock(dut.clk, 8, "ns").start()
    width, size = int(dut.WIDTH.value), 1 << int(dut.ADDRESS.value)
    places = [0, 1, size // 2 - 1, size // 2, size - 2, size - 1]
    words, wanted = {}, None
    for _ in range(3000):
        write, at, value = random.randrange(2), random.choice(places), random.getrandbits(width)
        read = random.choice(places)
        dut.write.value, dut.write_address.value, dut.write_data.value = write, at, value
        dut.read_address.value = read
        await RisingEdge(dut.clk)
        if wanted is not None:
            assert int(dut.read_data.value) == wanted
        wanted = words.get(read)
        if write and read == at and wanted is not None:
            wanted ^= (1 << width) - 1
        if write:
            words[at] = value
