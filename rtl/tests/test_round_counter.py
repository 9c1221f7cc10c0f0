"""The places of a round, and when an NC-SYNC is in time, against what was granted when."""

import random

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge

TOP = "round_counter"
# Of the bus's grant, behind place 0; of a decision, behind the place of the frame; both in cycles.
GRANTED = 20
DECIDED = 26
AHEAD = 2


@cocotb.test()
async def places_count_from_the_last_grant(dut):
    cocotb.start_soon(Clock(dut.clk, 8, "ns").start())
    seen = set()
    for _ in range(30):
        least, limit = random.choice([(0, 0), (0, 50), (90, 120), (120, 90), (300, 301), (5, 2**28 - 1)])
        dut.rst.value = 1
        dut.begins.value = 0
        dut.least.value = least
        dut.limit.value = limit
        for _ in range(3):
            await FallingEdge(dut.clk)
        dut.rst.value = 0
        begun = None
        history = []
        for cycle in range(500):
            # What is said now is of the grants before.
            place = None if begun is None else cycle + AHEAD - DECIDED - (begun - GRANTED)
            current = limit > 0 and place is not None and 0 <= place < limit
            early = limit > 0 and place is not None and place < 0
            history.append(not early and (not current or place >= least))
            assert int(dut.current.value) == current
            if current:
                assert int(dut.place.value) == place
            if len(history) > AHEAD:
                assert int(dut.sync_in_time.value) == history[-1 - AHEAD]
                seen.add((current, early, history[-1 - AHEAD]))
            begins = random.random() < random.choice([0.005, 0.02, 0.3 if cycle % 97 < 4 else 0])
            dut.begins.value = int(begins)
            if begins:
                begun = cycle
            await FallingEdge(dut.clk)
    assert len(seen) >= 5, seen
