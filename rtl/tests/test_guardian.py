"""The token bucket, against one that counts its credit as a number of cycles."""

import random

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge

TOP = "guardian"


async def begin(dut, interval, burst):
    dut.rst.value = 1
    dut.interval.value = interval
    dut.burst.value = burst
    dut.spend.value = 0
    dut.restart.value = 0
    for _ in range(3):
        await FallingEdge(dut.clk)
    dut.rst.value = 0
    dut.restart.value = 1
    # One cycle to see that it is on, and one to fill the bucket.
    for _ in range(2):
        await FallingEdge(dut.clk)
    dut.restart.value = 0


@cocotb.test()
async def credit_is_that_of_a_token_bucket(dut):
    cocotb.start_soon(Clock(dut.clk, 8, "ns").start())
    for interval, burst in [(1, 1), (2, 1), (7, 3), (50, 1), (50, 255), (3, 0)]:
        await begin(dut, interval, burst)
        credit = interval * burst
        passed = 0
        for _ in range(2000):
            offered = random.random() < random.choice([0.02, 0.5])
            passes = credit >= interval
            assert int(dut.credit.value) == passes
            dut.spend.value = int(offered and passes)
            await FallingEdge(dut.clk)
            # What is earned in the cycle in which the bucket is full is lost.
            credit = min(interval * burst, credit + 1)
            if offered and passes:
                credit -= interval
                passed += 1
        assert passed or burst == 0


@cocotb.test()
async def no_interval_means_no_limit(dut):
    cocotb.start_soon(Clock(dut.clk, 8, "ns").start())
    await begin(dut, 0, 0)
    for _ in range(50):
        assert int(dut.credit.value)
        dut.spend.value = 1
        await FallingEdge(dut.clk)


@cocotb.test()
async def a_restart_fills_the_bucket(dut):
    cocotb.start_soon(Clock(dut.clk, 8, "ns").start())
    await begin(dut, 1000, 2)
    dut.spend.value = 1
    for _ in range(3):
        await FallingEdge(dut.clk)
    assert not int(dut.credit.value)
    dut.spend.value = 0
    dut.restart.value = 1
    await FallingEdge(dut.clk)
    assert int(dut.credit.value)
