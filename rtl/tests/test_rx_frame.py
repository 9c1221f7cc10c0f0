"""Fields of frames at exact cycles, against what Python says of the same octets."""

import random

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ReadOnly, RisingEdge
from gmii import NC_DATA, NC_GROUP, NC_SYNC, address, burst, frame

TOP = "rx_frame"
PULSES = ["sof", "bad_preamble", "type_strobe", "eof", "octet_valid"]


def expected_events(stream):
    """The pulses by cycle for a stream of (dv, er, octet), as the comments of the module say."""
    events = {name: {} for name in PULSES}
    cycle = 0
    while cycle < len(stream):
        if not stream[cycle][0]:
            cycle += 1
            continue
        end = cycle
        while end < len(stream) and stream[end][0]:
            end += 1
        position = cycle
        while position < end and stream[position][2] == 0x55:
            position += 1
        if position < end and stream[position][2] == 0xD5:
            error = any(er for _, er, _ in stream[cycle:end])
            octets = bytes(octet for _, _, octet in stream[position + 1 : end])
            events["sof"][position + 1] = None
            expected_frame(events, position + 1, octets, error)
        elif position < end:
            events["bad_preamble"][position + 1] = None
        cycle = end
    return events


def expected_frame(events, start, octets, error):
    for index, octet in enumerate(octets):
        events["octet_valid"][start + index + 1] = (octet, min(index, 4095))
    tagged = octets[12:14] == b"\x81\x00"
    at = 17 if tagged else 13
    if len(octets) > at:
        said = (octets[0:6], octets[6:12], tagged, octets[at - 1 : at + 1])
        events["type_strobe"][start + at + 1] = said
    good = len(octets) >= 4 and frame_is_good(octets)
    events["eof"][start + len(octets) + 1] = (good, error, min(len(octets), 4095))


def frame_is_good(octets):
    import zlib

    return zlib.crc32(octets[:-4]).to_bytes(4, "little") == octets[-4:]


def observed(dut, name):
    if name == "octet_valid":
        return (int(dut.octet.value), int(dut.index.value))
    if name == "type_strobe":
        fields = (dut.destination.value, dut.source.value)
        addresses = tuple(int(field).to_bytes(6, "big") for field in fields)
        ethertype = int(dut.ethertype.value).to_bytes(2, "big")
        return (*addresses, bool(dut.has_tag.value), ethertype)
    if name == "eof":
        length = int(dut.length.value)
        return (bool(dut.fcs_ok.value), bool(dut.er_seen.value), length)
    return None


async def play(dut, stream):
    """Runs the stream and compares every pulse of every cycle."""
    cocotb.start_soon(Clock(dut.clk, 8, "ns").start())
    dut.rst.value = 1
    dut.dv.value = 0
    for _ in range(3):
        await RisingEdge(dut.clk)
    dut.rst.value = 0
    await RisingEdge(dut.clk)
    await RisingEdge(dut.clk)
    wanted = expected_events(stream)
    for cycle, (dv, er, octet) in enumerate(stream):
        dut.dv.value = dv
        dut.er.value = er
        dut.data.value = octet
        await ReadOnly()
        for name in PULSES:
            seen = getattr(dut, name).value == 1
            assert seen == (cycle in wanted[name]), f"cycle {cycle}: {name} is {seen}"
            if seen:
                assert observed(dut, name) == wanted[name][cycle], f"cycle {cycle}: {name}"
        await RisingEdge(dut.clk)


def on_stream(octets, er_at=()):
    return [(1, int(index in er_at), octet) for index, octet in enumerate(octets)]


def idle(cycles):
    return [(0, random.randrange(2), random.randrange(256)) for _ in range(cycles)]


def random_frame():
    tag = random.choice([None, 0xE000, 5])
    ethertype = random.choice([NC_DATA, NC_SYNC, 0x0800, 0x8100])
    payload = bytes(random.randrange(256) for _ in range(random.choice([0, 1, 46, 200])))
    destination = random.choice([NC_GROUP, address(1), bytes(range(6))])
    return frame(destination, address(2), ethertype, payload, tag, random.random() < 0.8)


@cocotb.test()
async def every_pulse_and_field_is_in_its_cycle(dut):
    stream = idle(4)
    for _ in range(60):
        octets = bytearray(random_frame())
        if random.random() < 0.2:
            octets[random.randrange(len(octets))] ^= 1 << random.randrange(8)
        if random.random() < 0.3:
            octets = octets[: random.randrange(len(octets))]
        sent = burst(octets, random.choice([0, 1, 3, 7, 7, 7, 20]))
        ers = {random.randrange(len(sent))} if random.random() < 0.2 else set()
        stream += on_stream(sent, ers) + idle(random.choice([1, 1, 2, 12]))
    await play(dut, stream + idle(4))


@cocotb.test()
async def bursts_that_are_no_frames_say_so_once(dut):
    stream = idle(3)
    for octets in [b"\x00", b"\x55" * 9, b"\x55\x5d\xd5" + bytes(60), b"\xff\x55\xd5\x01", b"\xd5"]:
        stream += on_stream(octets) + idle(random.choice([1, 2]))
    stream += on_stream(burst(random_frame())) + idle(4)
    await play(dut, stream)


@cocotb.test()
async def numbers_stay_at_their_greatest_value(dut):
    octets = bytes(random.randrange(256) for _ in range(4200))
    await play(dut, idle(2) + on_stream(burst(octets)) + idle(4))


@cocotb.test()
async def what_is_on_the_stream_in_a_reset_is_no_frame(dut):
    cocotb.start_soon(Clock(dut.clk, 8, "ns").start())
    octets = burst(random_frame())
    for at in (0, 3, 7, 8, 30):
        seen = 0
        for cycle, octet in enumerate(octets):
            dut.rst.value, dut.dv.value, dut.data.value = int(at <= cycle < at + 3), 1, octet
            await RisingEdge(dut.clk)
            if cycle > at:
                seen += dut.sof.value == 1 or dut.octet_valid.value == 1
        dut.dv.value = 0
        for _ in range(4):
            await RisingEdge(dut.clk)
            seen += dut.eof.value == 1 or dut.bad_preamble.value == 1
        assert not seen, f"reset from octet {at} on"
