"""Drives a whole station: octets on its pins, the register bus, its host's best effort. What is
said of the bus is a generator that yields an access (or None) for each cycle, and gets (ready, what
is read) of that cycle."""

from cocotb.clock import Clock
from cocotb.triggers import RisingEdge, Timer
from gmii import CYCLE_PS, address
from station_model import COUNTERS

IDENTITY, CONTROL, TAGGED, SOURCE_HIGH, SOURCE_LOW, LENGTH, BUFFERS, FLAGS, STATUS, TRAP = (
    0, 2, 3, 4, 5, 6, 7, 8, 9, 10
)  # fmt: skip
COUNTER, PROGRAM, BUFFER_ROW, MESSAGE_ROW, MEMORY = 0x20, 0x100000, 0x200000, 0x300000, 0x400000
WORDS, COMMIT = 0x500000, 0x600000
HALF = 2048
STREAM = 5  # from the pins to the stream, on one clock
STORE = 9  # from the last octet on the stream to the cycle in which the frame is complete
STROBE = 1  # from the EtherType's last octet likewise
START_DELAY = 4  # from a request to the first cycle of the program, and alike
FLAG_DELAY = STOP_DELAY = 3
LINK_DELAY = 2
READ_DELAY = 3  # from what is read to the answer
SOURCE = bytes([2, 0, 0, 0, 0, 9])


def access(address, value=None):
    """A read, or a write of a value: held until it is answered."""
    while True:
        ready, read = yield (address, value)
        if ready:
            return read


def idle(cycles):
    for _ in range(cycles):
        yield None


class Station:
    """`cycle` counts cycles of the clock; `zero` is the first one in which the program runs."""

    def __init__(self, dut):
        self.dut = dut
        self.cycle = 0
        self.zero = None
        self.rx = {}  # (er, octet) by cycle
        self.host = []  # octets of frames of best effort, in turn
        self.host_from = 0
        self.link = {}  # by cycle
        self.reset = set()  # cycles
        self.watches_host = False
        self.came = []  # best effort: octets, is good, cycle of its end
        self.coming = bytearray()
        self.driven = {}
        self.forget()
        names = "rst rx_dv rx_er rxd link_status bus_address bus_write_data bus_write bus_read"
        for name in (names + " best_tx_valid best_tx_octet best_tx_last").split():
            self.drive(name, 0)

    def forget(self):
        """What a run did so far."""
        self.issues, self.frames, self.sending = [], [], None

    def drive(self, name, value):
        if self.driven.get(name) != value:
            self.driven[name] = value
            getattr(self.dut, name).value = value

    async def begin(self, rx_period=CYCLE_PS):
        """Clocks, and a reset. The receiving clock is late by so little that it is the same one;
        so its pins are set one cycle later."""
        Clock(self.dut.clk, 8, "ns").start()
        await Timer(1, "ns")
        Clock(self.dut.rx_clk, rx_period, "ps").start()
        self.drive("rst", 1)
        await self.run(idle(6))
        self.drive("rst", 0)
        await self.run(idle(2))

    def put(self, cycle, octets, errors=()):
        """Octets on the pins from a cycle on. Returns the cycle behind them."""
        for index, octet in enumerate(octets):
            self.rx[cycle + index] = (int(index in errors), octet)
        return cycle + len(octets)

    async def run(self, application, cycles=None):
        """Until what is said of the bus is over, or for so many cycles."""
        end = None if cycles is None else self.cycle + cycles
        try:
            request = next(application)
            while end is None or self.cycle < end:
                self.set_pins()
                self.set_bus(request)
                await RisingEdge(self.dut.clk)
                answer = self.sample(request)
                self.cycle += 1
                request = application.send(answer)
        except StopIteration as over:
            self.set_bus(None)
            return over.value
        self.set_bus(None)
        return None

    def set_pins(self):
        late = self.rx.pop(self.cycle - 1, None)
        self.drive("rx_dv", int(late is not None))
        self.drive("rx_er", late[0] if late else 0)
        self.drive("rxd", late[1] if late else 0)
        if self.cycle in self.link:
            self.drive("link_status", int(self.link.pop(self.cycle)))
        if self.reset:
            self.drive("rst", int(self.cycle in self.reset))
        gives = bool(self.host) and self.cycle >= self.host_from
        self.drive("best_tx_valid", int(gives))
        if gives:
            self.drive("best_tx_octet", self.host[0][0])
            self.drive("best_tx_last", int(len(self.host[0]) == 1))

    def set_bus(self, request):
        if request is None:
            self.drive("bus_write", 0)
            self.drive("bus_read", 0)
            return
        address, value = request
        self.drive("bus_address", address)
        self.drive("bus_write", int(value is not None))
        self.drive("bus_read", int(value is None))
        if value is not None:
            self.drive("bus_write_data", value)

    def sample(self, request):
        dut = self.dut
        if self.zero in (self.cycle, self.cycle + 1):
            assert dut.trace_runs.value == int(self.zero == self.cycle)
        if dut.trace_issue.value == 1:
            issue = (self.cycle - 1 - (self.zero or 0), int(dut.trace_address.value))
            self.issues.append((*issue, int(dut.trace_trap.value)))
        if dut.tx_en.value == 1:
            assert dut.tx_er.value == 0
            if self.sending is None:
                self.sending = (self.cycle - (self.zero or 0), bytearray())
                self.frames.append(self.sending)
            self.sending[1].append(int(dut.txd.value))
        else:
            self.sending = None
        if self.driven["best_tx_valid"] and dut.best_tx_ready.value == 1:
            self.host[0] = self.host[0][1:]
            if not self.host[0]:
                self.host.pop(0)
        if self.watches_host:
            self.watch_host()
        if request is None:
            return False, None
        ready = dut.bus_ready.value == 1
        reads = ready and request[1] is None and dut.bus_read_data.value.is_resolvable
        return ready, int(dut.bus_read_data.value) if reads else None

    def watch_host(self):
        if self.dut.best_rx_end.value == 1:
            good = self.dut.best_rx_good.value == 1
            self.came.append((bytes(self.coming), good, self.cycle - (self.zero or 0)))
            self.coming.clear()
        if self.dut.best_rx_valid.value == 1:
            self.coming.append(int(self.dut.best_rx_octet.value))

    # ---- sequences of accesses ----
    def load_registers(self, program, buffers=0, tagged=False):
        yield from access(TAGGED, int(tagged))
        yield from access(SOURCE_HIGH, int.from_bytes(SOURCE[:2], "big"))
        yield from access(SOURCE_LOW, int.from_bytes(SOURCE[2:], "big"))
        yield from access(LENGTH, program if isinstance(program, int) else len(program))
        yield from access(BUFFERS, buffers)

    def load(self, model, rows, first=0, contents=None, messages=range(256)):
        """The model's program and tables; `rows` are where its buffers and messages begin.
        `contents` are words of buffers, 0 without them; `messages` those whose rows are
        written."""
        yield from self.load_registers(model.program, len(model.table), model.tagged)
        where, message_rows = rows
        for number, ((is_input, length), at) in enumerate(zip(model.table, where, strict=True)):
            yield from access(BUFFER_ROW + number, is_input << 21 | length << 12 | at)
            for index in range(length):
                value = contents[number][index] if contents else 0
                yield from access(MEMORY + at + index, value)
                if not is_input:
                    yield from access(MEMORY + (at + index ^ HALF), 0)
        for message in messages:
            row = 0
            if message in model.messages:
                row = 1 << 21 | model.messages[message] << 12 | message_rows[message]
            yield from access(MESSAGE_ROW + message, row)
        yield from self.load_program(model.program, first)

    def load_program(self, words, first=0):
        for address, value in enumerate(words, first):
            yield from self.load_word(address, value)

    def load_word(self, address, value):
        yield from access(PROGRAM + 2 * address, value >> 32)
        yield from access(PROGRAM + 2 * address + 1, value & 0xFFFFFFFF)

    def start(self):
        """The program begins before the answer."""
        self.forget()
        self.zero = self.cycle + START_DELAY
        yield from access(CONTROL, 1)

    def stop(self):
        yield from access(CONTROL, 0)

    def write_buffer(self, buffer, words):
        """Returns the cycle of the program from which on they are complete. At times the last word
        is written first: that is ahead of what `create` reads."""
        places = range(len(words)) if self.cycle % 2 else reversed(range(len(words)))
        for index in places:
            yield from access(WORDS + (buffer << 9) + index, words[index])
        yield from access(COMMIT + buffer, 0)
        return self.cycle - self.zero

    def read_buffer(self, buffer, index):
        """What is read, and as of which cycle of the program."""
        value = yield from access(WORDS + (buffer << 9) + index)
        return value, self.cycle - 1 - self.zero - READ_DELAY

    def counters(self):
        found = {}
        for index, name in enumerate(COUNTERS):
            found[name] = yield from access(COUNTER + index)
        return found


def layout(model):
    """Where buffers and messages of a model begin: packed, below the half of the memory."""
    where, at = [], 0
    for _, length in model.table:
        where.append(at)
        at += length
    messages, behind = {}, 0
    for message, length in model.messages.items():
        messages[message] = behind
        behind += length
    assert at <= HALF and behind <= HALF, "more than the memories have"
    return where, messages


def plain(value):
    return [(cycle, bytes(octets)) for cycle, octets in value]


def check(station, result, cycles):
    """Issues and frames up to a cycle. The last one's issue is shown behind it."""
    seen = [row for row in station.issues if row[0] < cycles - 1]
    for ours, theirs in zip(seen, result.issues, strict=False):
        assert ours == theirs, f"issued {ours}, should be {theirs}"
    assert len(seen) == len([row for row in result.issues if row[0] < cycles - 1])
    wanted = [(at, octets[: cycles - at]) for at, octets in result.frames if at < cycles]
    frames = [(at, octets[: cycles - at]) for at, octets in plain(station.frames) if at < cycles]
    for ours, theirs in zip(frames, wanted, strict=False):
        assert ours == theirs, f"sent {ours}, should be {theirs}"
    assert len(frames) == len(wanted)


def late_of(dut):
    return STREAM + int(dut.RECEIVE_PAD.value)


async def stop(station):
    """Stops the program; the host's frames, the link and what is on the pins end, too."""
    station.rx.clear()
    station.host.clear()
    station.link.clear()
    await station.run(station.stop())
    station.drive("link_status", 0)
    await station.run(idle(late_of(station.dut) + 24))
    await station.run(access(FLAGS, 0))
