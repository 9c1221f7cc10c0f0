"""The CRC against zlib's."""

import random
import zlib

import cocotb
from cocotb.triggers import Timer

TOP = "crc32"
GOOD = 0xDEBB20E3


async def register_after(dut, octets):
    """What a register holds that all octets went through."""
    register = 0xFFFFFFFF
    for octet in octets:
        dut.crc.value = register
        dut.octet.value = octet
        await Timer(1, "ns")
        register = int(dut.next.value)
    return register


@cocotb.test()
async def is_the_crc_of_another_implementation(dut):
    for length in [1, 2, 3, 4, 64, 300]:
        octets = bytes(random.randrange(256) for _ in range(length))
        register = await register_after(dut, octets)
        assert register ^ 0xFFFFFFFF == zlib.crc32(octets), octets.hex()


@cocotb.test()
async def a_frame_with_its_fcs_leaves_one_value(dut):
    for length in [1, 60, 200]:
        octets = bytes(random.randrange(256) for _ in range(length))
        fcs = zlib.crc32(octets).to_bytes(4, "little")
        assert await register_after(dut, octets + fcs) == GOOD
        damaged = bytearray(octets + fcs)
        damaged[random.randrange(len(damaged))] ^= 1 << random.randrange(8)
        assert await register_after(dut, damaged) != GOOD
