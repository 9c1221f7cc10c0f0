"""Fragments are put together to the frames that were cut; what does not fit gives none."""

import random

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge
from gmii import NC_DATA, NC_GROUP, NC_SYNC, address, burst, fragments, frame

TOP = "rx_fragment"
OUT = 6  # cycles from the last octet on the stream to what is said of it


def drawn(real_time=False):
    payload = bytes(random.randrange(256) for _ in range(random.choice([46, 100, 300])))
    tag = random.choice([None, 0xE000])
    if real_time:
        return frame(NC_GROUP, address(9), random.choice([NC_DATA, NC_SYNC]), payload, tag)
    destination = random.choice([address(3), NC_GROUP, b"\xff" * 6])
    return frame(destination, address(random.randrange(99)), 0x0800, payload, tag)


def cuts_of(octets):
    cuts = []
    at = random.randrange(1, 70)
    while at < len(octets) - 4:
        cuts.append(at)
        at += random.randrange(5, 300)
    return cuts


def spoiled(parts, kind):
    """The bursts of a frame with something wrong, and the octets with an error of each."""
    errors = [None] * len(parts)
    at = random.randrange(len(parts))
    if kind == "check":
        parts[at] = parts[at][:-1] + bytes([parts[at][-1] ^ 1])
    elif kind == "octet":
        parts[at] = parts[at][:12] + bytes([parts[at][12] ^ 64]) + parts[at][13:]
    elif kind == "error":
        errors[at] = random.randrange(len(parts[at]))
    elif kind == "twice" and 0 < at < len(parts) - 1:
        parts.insert(at, parts[at])
        errors.insert(at, None)
    elif kind == "missing" and 0 < at < len(parts) - 1:
        del parts[at], errors[at]
    elif kind == "first missing" and len(parts) > 1:
        del parts[0], errors[0]
    else:
        return None
    return parts, errors


class Stream:
    def __init__(self, dut):
        self.dut = dut
        self.open = None
        self.frames = []
        self.bad = 0

    async def cycle(self, dv, er=0, data=0):
        dut = self.dut
        dut.dv.value, dut.er.value, dut.data.value = dv, er, data
        await FallingEdge(dut.clk)
        if int(dut.octet_valid.value) and self.open is not None:
            self.open.append(int(dut.octet.value))
        if int(dut.sof.value):
            self.open = bytearray()
        if int(dut.eof.value):
            self.frames.append(bytes(self.open))
            assert int(dut.length.value) == len(self.open)
            assert int(dut.destination.value) == int.from_bytes(self.open[:6], "big")
            assert int(dut.source.value) == int.from_bytes(self.open[6:12], "big")
        self.bad += int(dut.bad.value)

    async def send(self, octets, error=None, gap=12):
        for at, octet in enumerate(octets):
            await self.cycle(1, int(at == error), octet)
        for _ in range(gap):
            await self.cycle(0)


@cocotb.test()
async def frames_come_whole_or_not_at_all(dut):
    cocotb.start_soon(Clock(dut.clk, 8, "ns").start())
    stream = Stream(dut)
    dut.abandon.value = 0
    dut.rst.value = 1
    for _ in range(3):
        await stream.cycle(0)
    dut.rst.value = 0
    kinds = ["check", "octet", "error", "twice", "missing", "first missing", "real time"]
    seen = dict.fromkeys([*kinds, "good"], 0)
    while min(seen.values()) < 1:
        kind = random.choice(["good", "good", *kinds])
        octets = drawn(kind == "real time")
        parts = fragments(octets, cuts_of(octets), random.randrange(4))
        errors = [None] * len(parts)
        if kind in kinds[:-1]:
            found = spoiled(parts, kind)
            if found is None:
                continue
            parts, errors = found
        seen[kind] += 1
        stream.frames, stream.bad = [], 0
        for part, error in zip(parts, errors, strict=True):
            # A frame that came in one piece is none of its business.
            if random.random() < 0.3:
                await stream.send(burst(drawn()))
            await stream.send(part, error, random.choice([OUT + 2, 12, 40]))
        assert stream.frames == ([octets] if kind == "good" else []), kind
        assert (stream.bad > 0) == (kind != "good"), kind
