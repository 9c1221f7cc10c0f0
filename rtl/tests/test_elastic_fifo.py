"""The FIFO between clocks: octets, latency, and no lock-up whatever the clocks do."""

import random

import cocotb
from cocotb.triggers import ReadOnly, RisingEdge, Timer
from cocotb.utils import get_sim_time

TOP = "elastic_fifo"
PARAMETERS = [{"START": 2}, {"START": 4}]
CYCLE_PS = 8000


class Bench:
    """Drives both clocks. Collects bursts as they leave and the instants of their first octets."""

    def __init__(self, dut):
        self.dut = dut
        self.clk_period = CYCLE_PS
        self.rx_period = CYCLE_PS
        self.rx_runs = True
        self.bursts = []
        self.starts = []
        self.slips = 0
        for name in ["rx_clk", "rx_dv", "rx_er", "rxd", "clk", "rst"]:
            getattr(dut, name).value = 0

    async def clock(self, signal, period, phase, runs):
        await Timer(CYCLE_PS + phase, "ps")
        while True:
            now = period()
            if runs():
                signal.value = 1
            await Timer(now // 2, "ps")
            signal.value = 0
            await Timer(now - now // 2, "ps")

    async def watch(self):
        inside = False
        while True:
            await RisingEdge(self.dut.clk)
            now = get_sim_time("ps")
            await ReadOnly()
            dv = int(self.dut.dv.value)
            if dv and not inside:
                self.bursts.append([])
                # The cycle of these values begins with the edge just seen.
                self.starts.append(now)
            if dv:
                self.bursts[-1].append((int(self.dut.er.value), int(self.dut.data.value)))
            inside = bool(dv)
            self.slips += self.dut.slip.value == 1

    async def begin(self, phase=0):
        cocotb.start_soon(self.clock(self.dut.clk, lambda: self.clk_period, 0, lambda: True))
        receive = self.clock(
            self.dut.rx_clk, lambda: self.rx_period, phase, lambda: self.rx_runs
        )
        cocotb.start_soon(receive)
        self.dut.rst.value = 1
        for _ in range(4):
            await RisingEdge(self.dut.clk)
        self.dut.rst.value = 0
        cocotb.start_soon(self.watch())
        await self.idle(8)

    async def idle(self, cycles):
        for _ in range(cycles):
            await RisingEdge(self.dut.rx_clk)
            self.dut.rx_dv.value = 0
            self.dut.rx_er.value = 0

    async def send(self, octets):
        """Puts octets on the pins, and gives the instant at which the first one's cycle begins."""
        first = None
        for er, octet in octets:
            await RisingEdge(self.dut.rx_clk)
            first = get_sim_time("ps") if first is None else first
            self.dut.rx_dv.value = 1
            self.dut.rx_er.value = er
            self.dut.rxd.value = octet
        return first

    async def settle(self):
        for _ in range(40):
            await RisingEdge(self.dut.clk)


def random_burst(length):
    return [(int(random.random() < 0.1), random.randrange(256)) for _ in range(length)]


@cocotb.test()
async def latency_is_constant_with_equal_clocks(dut):
    bench = Bench(dut)
    await bench.begin()
    expected = int(dut.START.value) + 3
    for gap in [12, 1, 2, 3, 30, 1, 1, 5]:
        octets = random_burst(random.choice([20, 64, 300]))
        count = len(bench.starts)
        first = await bench.send(octets)
        await bench.idle(gap)
        assert len(bench.starts) == count + 1
        assert bench.starts[-1] - first == expected * CYCLE_PS
    await bench.settle()
    assert len(bench.starts) == 8
    assert bench.slips == 0


@cocotb.test()
async def octets_and_order_survive_200_ppm_at_any_phase(dut):
    bench = Bench(dut)
    await bench.begin(phase=random.randrange(CYCLE_PS))
    sent = []
    for ppm in [200, -200, 200, -200, 37, 0]:
        bench.rx_period = CYCLE_PS + CYCLE_PS * ppm // 1000000
        for length in [2000, 1, 2, 3, 64, 5, 1522]:
            sent.append(random_burst(length))
            await bench.send(sent[-1])
            await bench.idle(12)
    await bench.settle()
    assert bench.bursts == sent
    assert bench.slips == 0


@cocotb.test()
async def latency_varies_by_at_most_a_cycle(dut):
    bench = Bench(dut)
    await bench.begin()
    delays = []
    for _ in range(60):
        # Periods far apart walk through all phases; short bursts do not feel the difference.
        bench.rx_period = CYCLE_PS + random.choice([-3, 3, 0])
        await Timer(random.randrange(1, CYCLE_PS), "ps")
        first = await bench.send(random_burst(20))
        await bench.idle(12)
        await bench.settle()
        delays.append(bench.starts[-1] - first)
        await bench.idle(random.randrange(1, 20))
    assert len(bench.starts) == 60
    assert max(delays) - min(delays) <= CYCLE_PS + 3 * 20
    assert min(delays) > (int(dut.START.value) + 2) * CYCLE_PS - 100
    assert max(delays) <= (int(dut.START.value) + 4) * CYCLE_PS


@cocotb.test()
async def gaps_of_one_octet_keep_bursts_apart(dut):
    bench = Bench(dut)
    await bench.begin(phase=1234)
    bench.rx_period = CYCLE_PS + 1
    sent = [random_burst(random.randrange(1, 90)) for _ in range(60)]
    for octets in sent:
        await bench.send(octets)
        await bench.idle(random.choice([1, 1, 2, 3]))
    await bench.idle(3)
    await bench.settle()
    assert bench.bursts == sent
    assert bench.slips == 0


@cocotb.test()
async def a_clock_that_stops_inside_a_burst_costs_that_burst_only(dut):
    bench = Bench(dut)
    await bench.begin(phase=77)
    for length in [1, 2, 3, 30]:
        slips, count = bench.slips, len(bench.bursts)
        octets = random_burst(length)
        await bench.send(octets)
        await RisingEdge(dut.rx_clk)
        bench.rx_runs = False
        await bench.settle()
        assert bench.slips == slips + 1
        bench.rx_runs = True
        await bench.send(random_burst(20))  # the rest of it
        await bench.idle(1)
        whole = random_burst(64)
        await bench.send(whole)
        await bench.idle(12)
        await bench.settle()
        assert len(bench.bursts) == count + 2
        assert octets[: len(bench.bursts[-2])] == bench.bursts[-2]
        assert bench.bursts[-1] == whole
        assert bench.slips == slips + 1


@cocotb.test()
async def a_clock_that_is_too_fast_overflows_and_recovers(dut):
    bench = Bench(dut)
    await bench.begin()
    for attempt in range(6):
        slips = bench.slips
        bench.clk_period = 3 * CYCLE_PS
        sent = [random_burst(200), random_burst(40)]
        count = len(bench.bursts)
        await bench.send(sent[0])
        # The end of the burst may find the memory full, and the next one begin at once.
        await bench.idle(1 + attempt)
        await bench.send(sent[1])
        bench.clk_period = CYCLE_PS
        await bench.idle(60)
        assert bench.slips > slips
        # What leaves of a burst is its beginning, without a hole, and less than all of it.
        for left in bench.bursts[count:]:
            assert any(left == each[: len(left)] and len(left) < len(each) for each in sent)
        count = len(bench.bursts)
        whole = random_burst(100)
        await bench.send(whole)
        await bench.idle(12)
        await bench.settle()
        assert bench.bursts[count:] == [whole]


@cocotb.test()
async def a_reset_inside_a_burst_costs_that_burst_only(dut):
    bench = Bench(dut)
    await bench.begin(phase=3000)
    for _ in range(4):
        cocotb.start_soon(bench.send(random_burst(50)))
        await Timer(random.randrange(10, 30) * CYCLE_PS, "ps")
        await RisingEdge(dut.clk)
        dut.rst.value = 1
        for _ in range(random.randrange(1, 4)):
            await RisingEdge(dut.clk)
        dut.rst.value = 0
        await RisingEdge(dut.clk)
        count = len(bench.bursts)
        for _ in range(60):
            await RisingEdge(dut.rx_clk)
        await bench.idle(1)
        whole = random_burst(64)
        await bench.send(whole)
        await bench.idle(12)
        await bench.settle()
        assert bench.bursts[count:] == [whole]


@cocotb.test()
async def a_burst_that_never_ends_slips_and_the_next_one_is_whole(dut):
    bench = Bench(dut)
    await bench.begin()
    bench.rx_period = CYCLE_PS + 80  # 1 %, so that the end of patience comes soon
    await bench.send(random_burst(3000))
    assert bench.slips == 1
    await bench.idle(1)
    whole = random_burst(64)
    await bench.send(whole)
    await bench.idle(12)
    await bench.settle()
    assert bench.bursts[-1] == whole
    assert bench.slips == 1
