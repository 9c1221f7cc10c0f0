"""Frames leave in the cycle that the comment of the module says, octet by octet; best effort only
where a halt has room for it."""

import random
from collections import deque

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge
from gmii import GAP, burst, frame, with_fcs
from station_bench import SOURCE
from station_model import START, data_frame, round_frame

TOP = "nc_transmitter"
OUTPUTS = "tx_en txd has_data may_send busy ethertype_sent best_sent".split()
# From the issue to the pulse that is one cycle behind it, and to the first octet.
PULSE = 1
# A frame that has begun to fit begins so soon.
PROMPT = 4


class Frame:
    """On the wire from a cycle on; asked for by the pulse of the cycle `asked`."""

    def __init__(self, asked, first, octets, kind, ethertype=None):
        self.asked, self.first, self.octets, self.kind = asked, first, octets, kind
        self.end = first + len(octets)
        self.ethertype = ethertype  # the cycle of its last octet


class Bench:
    def __init__(self, dut):
        self.dut = dut
        self.cycle = 0
        self.frames = []  # the last one may be on the wire
        self.memory, self.best = [], None
        self.words = deque([0])
        self.octets = deque([0])
        self.halt_ends = 0
        self.starts = None
        self.issues = True
        self.best_since = self.fits_since = None
        self.ended = dict.fromkeys(["data", "sync", "best"], 0)

    def reset(self):
        dut = self.dut
        for name in "starts_data starts_sync best_there halting halted_cycles stopped".split():
            getattr(dut, name).value = 0
        self.tagged = random.random() < 0.5
        dut.has_tag.value = int(self.tagged)
        dut.source.value = int.from_bytes(SOURCE, "big")
        # A frame that is cut has its gap, too. One that has not begun leaves no trace.
        self.frames = [frame for frame in self.frames if frame.first <= self.cycle]
        if self.frames and self.cycle < self.frames[-1].end:
            # In this cycle an octet is still on the wire.
            self.frames[-1].end, self.frames[-1].kind = self.cycle + 1, "cut"
        self.best, self.starts = None, None
        self.best_since = self.fits_since = None
        self.halt_ends, self.stopped = self.cycle, False
        dut.rst.value = 1

    def on_wire(self):
        return bool(self.frames) and self.frames[-1].first <= self.cycle < self.frames[-1].end

    def wanted(self):
        """Of this cycle; what is asked for in it shows in the next one."""
        now = self.cycle
        last = ([frame for frame in self.frames[-2:] if frame.asked < now] or [None])[-1]
        found = dict.fromkeys(OUTPUTS, 0)
        found["may_send"] = 1
        if last is None:
            return found
        if last.first <= now < last.end:
            found["tx_en"], found["txd"] = 1, last.octets[now - last.first]
            found["best_sent"] = int(last.kind == "best" and now == last.end - 1)
            found["ethertype_sent"] = int(last.ethertype is not None and now > last.ethertype)
        found["busy"] = int(now < last.end + GAP)
        found["has_data"] = int(last.kind == "data" and now < last.end)
        found["may_send"] = int(now >= last.end + GAP - START)
        return found

    def program(self):
        """Issues, or halts: as the core does, only what may be issued. What is issued is a pulse
        in the next cycle."""
        dut, now = self.dut, self.cycle
        issued, self.starts = self.starts, None
        dut.starts_data.value = int(issued == "data")
        dut.starts_sync.value = int(issued == "sync")
        if issued:
            self.begin(issued)
        elif self.issues and now >= self.halt_ends and random.random() < 0.3:
            if random.random() < 0.2:
                # Often hardly long enough for what the host has.
                edge = len(self.best or b"") + random.randrange(10, 50)
                self.halt_ends = now + random.choice([5, 100, 400, 900, edge, edge])
            elif not self.frames or now >= self.frames[-1].end + GAP - START:
                self.starts = random.choice(["data", "sync"])
        # In the cycle of its issue it does not halt yet.
        halting = now < self.halt_ends and not self.stopped
        dut.stopped.value, dut.halting.value = int(self.stopped), int(halting)
        dut.halted_cycles.value = self.halt_ends - now if halting else random.getrandbits(32)

    def stop(self):
        """A trap: nothing is issued any more."""
        self.starts, self.stopped, self.halt_ends = None, True, self.cycle + 1_000_000

    def begin(self, kind):
        dut, asked = self.dut, self.cycle
        message, number = random.randrange(256), random.getrandbits(32)
        words = random.choice([1, 2, 9, 10, 11, 12, 374]) if random.random() < 0.3 else 1
        dut.message.value, dut.words.value, dut.round.value = message, words, number
        if kind == "data":
            self.memory = [random.getrandbits(32) for _ in range(words)]
            octets = data_frame(SOURCE, message, self.memory, self.tagged)
        else:
            octets = round_frame(SOURCE, number, self.tagged)
        first = asked - PULSE + START
        ethertype = first + 8 + 13 + 4 * self.tagged
        self.frames.append(Frame(asked, first, burst(octets), kind, ethertype))

    def host(self):
        """Has a frame, or gives one."""
        if self.best is None and random.random() < 0.02:
            length = random.choice([60, 60, 61, 300, 1518])
            self.best = bytes(random.randrange(256) for _ in range(length))
            self.best_since = self.cycle
            self.dut.best_length.value = length
        self.dut.best_there.value = int(self.best is not None)

    def best_begins(self):
        """A frame of best effort may begin on the pins in this cycle."""
        last = self.frames[-1] if self.frames else None
        assert self.best is not None and self.cycle > self.best_since
        assert last is None or self.cycle >= last.end + GAP
        octets = burst(with_fcs(self.best))
        # It is over, with its gap, before the program goes on.
        assert self.cycle + len(octets) + GAP <= self.halt_ends
        self.frames.append(Frame(self.cycle - 1, self.cycle, octets, "best"))

    def is_due(self):
        """A frame has fitted, and the wire has been free, for some cycles."""
        last = self.frames[-1] if self.frames else None
        free = last is None or self.cycle >= last.end + GAP
        fits = self.best is not None and self.halt_ends - self.cycle > len(self.best) + 32 + PROMPT
        if not (free and fits):
            self.fits_since = None
        elif self.fits_since is None:
            self.fits_since = self.cycle
        return self.fits_since is not None and self.cycle > self.fits_since + PROMPT

    async def step(self, reset=False):
        dut = self.dut
        if reset:
            self.reset()
        else:
            dut.rst.value = 0
            self.program()
            self.host()
        # What is read here is of the cycle before: it is there two cycles behind that.
        self.words.append(self.word_of(self.index("word_index")))
        dut.word.value = self.words.popleft()
        self.octets.append(self.octet_of(self.index("best_index")))
        dut.best_octet.value = self.octets.popleft()
        await RisingEdge(dut.clk)
        if not reset:
            self.compare()
        elif dut.tx_en.value == 1 and not self.on_wire():
            # Best effort that began in the cycle of the reset.
            self.frames.append(Frame(self.cycle - 1, self.cycle, b"\x55", "cut"))
        self.cycle += 1

    def index(self, name):
        value = getattr(self.dut, name).value
        return int(value) if value.is_resolvable else 0

    def word_of(self, index):
        return self.memory[index] if index < len(self.memory) else random.getrandbits(32)

    def octet_of(self, index):
        return self.best[index] if self.best and index < len(self.best) else random.randrange(256)

    def compare(self):
        dut, now = self.dut, self.cycle
        last = self.frames[-1] if self.frames else None
        if dut.tx_en.value == 1 and (last is None or now >= last.end):
            self.best_begins()
        else:
            assert not self.is_due(), f"cycle {now}: best effort does not begin"
        seen = {name: int(getattr(dut, name).value) for name in OUTPUTS}
        wanted = self.wanted()
        for name in OUTPUTS:
            # While nothing leaves, the octet does not matter.
            if name == "txd" and not wanted["tx_en"]:
                continue
            assert seen[name] == wanted[name], f"cycle {now}: {name} {seen[name]}, {wanted}"
        if self.frames and now == self.frames[-1].end - 1:
            self.ended[self.frames[-1].kind] += 1
            if self.frames[-1].kind == "best":
                self.best = None


@cocotb.test()
async def every_octet_is_in_its_cycle(dut):
    Clock(dut.clk, 8, "ns").start()
    bench = Bench(dut)
    for turn in range(8):
        for _ in range(random.randrange(1, 3) if turn else GAP + 2):
            await bench.step(reset=True)
        for _ in range(random.randrange(1200, 2000)):
            await bench.step()
        if turn % 2:
            bench.stop()
            for _ in range(300):
                await bench.step()
    assert all(count > 2 for count in bench.ended.values()), bench.ended


@cocotb.test()
async def a_reset_ends_a_frame_at_once(dut):
    Clock(dut.clk, 8, "ns").start()
    bench = Bench(dut)
    for turn in range(25):
        for _ in range(1 if turn else GAP + 2):
            await bench.step(reset=True)
        for _ in range(random.randrange(1, 150)):
            await bench.step()


@cocotb.test()
async def best_effort_begins_if_it_is_over_in_time(dut):
    Clock(dut.clk, 8, "ns").start()
    bench = Bench(dut)
    begun, bench.issues = [], False
    for room in range(8, 48):
        for _ in range(GAP + 2):
            await bench.step(reset=True)
        bench.best = bytes(random.randrange(256) for _ in range(60))
        since = bench.cycle
        dut.best_length.value, bench.best_since = 60, since
        for cycle in range(110):
            if cycle == 5:
                bench.halt_ends = bench.cycle + 60 + room
            await bench.step()
        begun.append(bool(bench.frames) and bench.frames[-1].first > since)
    # It is counted with 32 cycles more than its octets, and two or three until that is known.
    assert begun == sorted(begun) and 33 <= 8 + begun.index(True) <= 33 + PROMPT
