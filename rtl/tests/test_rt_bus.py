"""The bus of real-time frames, against a model of who has it and what is on it in each cycle."""

import random

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge

TOP = "rt_bus"
PORTS = 4
# From an announcement to the first octet behind the SFD on the port's line.
BEHIND = 8
SHORTEST, LONGEST = 14, 40


class Port:
    """What one input brings: a line of octets, and announcements at the right time before them."""

    def __init__(self):
        self.events = {}
        self.end = 0

    def plan(self, cycle):
        """A frame at some time after the last one, often when another port's would be there."""
        if cycle < self.end:
            return
        at = cycle + random.choice([0, 0, 1, 2, 5, 30])
        octets = random.randrange(SHORTEST, LONGEST)
        self.events[at] = (True, random.randrange(5, LONGEST + 10))
        self.frame = [
            (1, int(random.random() < 0.05), random.randrange(256)) for _ in range(octets)
        ]
        self.first = at + BEHIND
        self.end = self.first + octets + random.choice([1, 3, 20])

    def line(self, cycle):
        at = cycle - self.first
        return self.frame[at] if 0 <= at < len(self.frame) else (0, 0, random.randrange(256))


@cocotb.test()
async def the_bus_has_one_frame_at_a_time_and_cuts_it_at_its_limit(dut):
    cocotb.start_soon(Clock(dut.clk, 8, "ns").start())
    dut.rst.value = 1
    for name in ["announce", "limits", "line_dv", "line_er", "line_data"]:
        getattr(dut, name).value = 0
    for _ in range(3):
        await FallingEdge(dut.clk)
    dut.rst.value = 0
    ports = [Port() for _ in range(PORTS)]
    owner = None  # of the frame on the bus
    sent = limit = 0
    valid = False  # something is on the bus now
    seen = dict.fromkeys(["cut", "whole", "collision", "error"], 0)
    for cycle in range(6000):
        for port in ports:
            port.plan(cycle)
        lines = [port.line(cycle) for port in ports]
        asked = [port.events.pop(cycle, (False, 0)) for port in ports]
        dut.announce.value = sum(one[0] << number for number, one in enumerate(asked))
        dut.limits.value = sum(one[1] << 12 * number for number, one in enumerate(asked))
        dut.line_dv.value = sum(line[0] << number for number, line in enumerate(lines))
        dut.line_er.value = sum(line[1] << number for number, line in enumerate(lines))
        dut.line_data.value = sum(line[2] << 8 * number for number, line in enumerate(lines))
        # What is on the bus in the next cycle.
        expected = None
        asking = [number for number, one in enumerate(asked) if one[0]]
        granted = None
        if owner is None and not valid and asking:
            granted = owner = asking[0]
            limit = asked[owner][1]
            sent = 1
            expected = (0, 0x55)
        elif owner is not None and sent < 8:
            sent += 1
            expected = (0, 0xD5 if sent == 8 else 0x55)
        elif owner is not None:
            dv, er, octet = lines[owner]
            over = sent - 8 == limit
            expected = (int(er or over), octet) if dv else None
            seen["error"] += dv and er
            seen["cut" if over and dv else "whole"] += over or not dv
            sent += 1
            if over or not dv:
                owner = None
        held = asking[:] if granted is None else [one for one in asking if one != granted]
        seen["collision"] += len(held)
        await FallingEdge(dut.clk)
        assert int(dut.collision.value) == sum(1 << number for number in held), cycle
        valid = expected is not None
        assert int(dut.valid.value) == valid, cycle
        if valid:
            assert (int(dut.er.value), int(dut.data.value)) == expected, cycle
            assert owner is None or int(dut.owner.value) == owner
    assert min(seen.values()) > 20, seen
