"""Which words are instructions, and what their fields are: the tables of docs/network-code.md."""

import random

import cocotb
from cocotb.triggers import Timer
from station_model import BRANCH, COMPARE, COUNT, FLAG, SYNC, TRAPS, word, word_error
from station_traffic import fields

TOP = "nc_decode"


def drawn():
    """Words that are instructions, or nearly; and some of any bits."""
    operation = random.choice([*range(8), *range(8), random.randrange(64)])
    if operation == BRANCH:
        condition = random.choice([*range(32)] + [COUNT, FLAG] * 6)
        number, immediate = random.choice([0, 1, 15, 16, 255]), random.choice([0, 1, 0x10000])
        if condition >= COMPARE:
            immediate = random.getrandbits(32) & random.choice([0xFF00FFFF, 0xFFFFFFFF])
        value = word(BRANCH, random.getrandbits(12), number, condition, immediate)
        value |= random.getrandbits(1) << 37
    else:
        parts = [(46, 12), (38, 8), (32, 6), (0, 8), (0, 32)]
        value = word(operation, mode=random.choice([0, 1]) * (operation == SYNC))
        for low, bits in random.sample(parts, random.randrange(3)):
            value |= random.getrandbits(bits) << low
    if random.random() < 0.2:
        value ^= 1 << random.randrange(64)
    return value if random.random() < 0.95 else random.getrandbits(64)


async def check(dut, value):
    dut.word.value = value
    await Timer(1, "ns")
    error = word_error(value)
    seen = int(dut.error.value)
    assert seen == (TRAPS[error] if error else 0), f"{value:016x}: {seen}, should be {error}"
    fields = {"operation": value >> 58, "address": value >> 46 & 0xFFF, "id": value >> 38 & 0xFF}
    fields |= {"negated": value >> 37 & 1, "condition": value >> 32 & 31}
    fields |= {"immediate": value & 0xFFFFFFFF, "master": int(value >> 32 & 63 == 1)}
    for name, wanted in fields.items():
        assert int(getattr(dut, name).value) == wanted, f"{value:016x}: {name}"
    return error


@cocotb.test()
async def words_are_what_the_definition_says(dut):
    found = dict.fromkeys([None, "operation", "guard", "operand", "reserved"], 0)
    for _ in range(6000):
        found[await check(dut, drawn())] += 1
    assert min(found.values()) > 50, found


@cocotb.test()
async def each_bit_of_each_field_counts(dut):
    """One bit more in each instruction, with each condition."""
    words = [word(operation) for operation in range(64)] + [word(SYNC, mode=1)]
    words += [word(BRANCH, mode=mode) for mode in range(64)]
    words += [word(BRANCH, mode=COUNT, immediate=1)]
    for value in words:
        await check(dut, value)
        for bit in range(64):
            await check(dut, value ^ 1 << bit)
