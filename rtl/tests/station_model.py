"""A station as docs/network-code.md has it: words, and what they do in which cycle. Independent of
the Verilog and of the interpreter; traps have the codes of nc_table.vh, counters the order of
nc_registers.v."""

import re
from pathlib import Path

from gmii import GAP, NC_DATA, NC_GROUP, NC_SYNC, address, burst, frame

STATION = Path(__file__).resolve().parents[1] / "station"
TRAPS = {
    name.lower(): int(code)
    for name, code in re.findall(
        r"NC_TRAP_(\w+) 4'd(\d+)", (STATION / "nc_table.vh").read_text(encoding="utf-8")
    )
}
COUNTERS = (
    "begun seen sent received unknown wrong_length overwritten damaged discarded second timeouts"
    " overruns traps malformed runts long slips bad_preambles best"
).split()
NOP, CREATE, SEND, RECEIVE, FUTURE, HALT, SYNC, BRANCH = range(8)
ALWAYS, COUNT, FRESH, RECEIVED, SYNC_TIMEOUT, OVERRUN, FLAG, TRANSMITTING, LINK_UP = range(9)
EQUAL, LESS, AT_MOST, BELOW, NOT_ABOVE = range(5)
COMPARE, COMPARE_WORDS, NEGATED = 16, 24, 32
START = 6  # cycles from the issue of `send` to the preamble
TAG = 7 << 13


def word(operation, address=0, number=0, mode=0, immediate=0):
    """The 64 bits of an instruction."""
    return operation << 58 | address << 46 | number << 38 | mode << 32 | immediate & 0xFFFFFFFF


def create(buffer):
    return word(CREATE, number=buffer)


def send(message):
    return word(SEND, number=message)


def receive(message, buffer):
    return word(RECEIVE, number=message, immediate=buffer)


def future(label, delay):
    return word(FUTURE, address=label, immediate=delay)


def halt():
    return word(HALT)


def nop():
    return word(NOP)


def master():
    return word(SYNC, mode=1)


def slave(timeout):
    return word(SYNC, immediate=timeout)


def branch(label, condition, number=0, immediate=0, negated=False):
    return word(BRANCH, label, number, condition + NEGATED * negated, immediate)


def compare(label, relation, buffer, index, value, negated=False):
    """Of a word with a constant."""
    immediate = index << 24 | value & 0xFFFFFF
    return branch(label, COMPARE + relation, buffer, immediate, negated)


def compare_words(label, relation, left, right, negated=False):
    """Of two words, each a buffer and an index."""
    immediate = left[1] << 24 | right[0] << 8 | right[1]
    return branch(label, COMPARE_WORDS + relation, left[0], immediate, negated)


def word_error(value):
    """Why a word is no instruction, or None."""
    operation, address = value >> 58, value >> 46 & 0xFFF
    number, mode, immediate = value >> 38 & 0xFF, value >> 32 & 0x3F, value & 0xFFFFFFFF
    if operation > BRANCH:
        return "operation"
    if operation == BRANCH:
        return guard_error(mode & 31, number, immediate)
    used = {
        FUTURE: (True, False, 0, 0xFFFFFFFF),
        SYNC: (False, False, 1, 0 if mode & 1 else 0xFFFFFFFF),
        RECEIVE: (False, True, 0, 0xFF),
        CREATE: (False, True, 0, 0),
        SEND: (False, True, 0, 0),
    }.get(operation, (False, False, 0, 0))
    unused = (address and not used[0]) or (number and not used[1])
    return "reserved" if unused or mode & ~used[2] or immediate & ~used[3] else None


def guard_error(condition, number, immediate):
    if condition == COUNT:
        return "operand" if number > 15 or immediate == 0 else None
    if condition == FLAG:
        return "operand" if number > 15 else "reserved" if immediate else None
    if condition == FRESH:
        return "reserved" if immediate else None
    if condition <= LINK_UP:
        return "reserved" if number or immediate else None
    if condition < COMPARE or condition % 8 > NOT_ABOVE:
        return "guard"
    return "reserved" if condition >= COMPARE_WORDS and immediate >> 16 & 0xFF else None


def signed(value, bits=32):
    return value - (1 << bits) if value >> bits - 1 else value


def holds(relation, left, right):
    return {
        EQUAL: left == right,
        LESS: signed(left) < signed(right),
        AT_MOST: signed(left) <= signed(right),
        BELOW: left < right,
        NOT_ABOVE: left <= right,
    }[relation]


def data_frame(source, message, words, tagged=False, length=None):
    """A data frame behind its SFD. A tag takes no part in the padding of a payload."""
    said = len(words) if length is None else length
    payload = bytes([0, message]) + said.to_bytes(2, "big")
    payload += b"".join(value.to_bytes(4, "big") for value in words)
    return frame(
        NC_GROUP, source, NC_DATA, payload + bytes(max(0, 46 - len(payload))), tag_of(tagged)
    )


def round_frame(source, number, tagged=False):
    payload = bytes([0, 0, 0, 1]) + number.to_bytes(4, "big") + bytes(38)
    return frame(NC_GROUP, source, NC_SYNC, payload, tag_of(tagged))


def tag_of(tagged):
    return TAG if tagged else None


class Result:
    """What a run did: issues (cycle, address, trap), frames (cycle, octets with preamble), counts;
    the words of each buffer from a cycle on."""

    def __init__(self, buffers):
        self.issues = []
        self.frames = []
        self.counters = dict.fromkeys(COUNTERS, 0)
        self.buffers = [[(0, words)] for words in buffers]

    def words(self, buffer, cycle):
        """As of a cycle."""
        return [words for at, words in self.buffers[buffer] if at <= cycle][-1]


class Model:
    """A program with its tables. Inputs are (cycle, ...) from which they count:
    ("round", source), ("data", message, words), ("damaged" and other counters,),
    ("commit", buffer, words), ("flags", value), ("link", up)."""

    def __init__(self, words, buffers, messages, source, tagged=False):
        self.program = list(words)
        self.table = buffers  # (is an input, words)
        self.messages = messages  # words by identifier
        self.source = source
        self.tagged = tagged

    def run(self, cycles, inputs=(), contents=None):
        self.contents = [list(words) for words in contents or []]
        self.contents = self.contents or [[0] * length for _, length in self.table]
        self.result = Result([list(words) for words in self.contents])
        self.counts = self.result.counters
        self.inputs = sorted(inputs, key=lambda row: row[0])
        self.fresh = {}
        self.kept = {message: [0] * length for message, length in self.messages.items()}
        self.flags, self.link = 0, False
        self.countdown = None  # end, target
        self.send_buffer = None
        self.left = self.data_left = -GAP - START
        self.busy_from = None
        self.begun_by, self.round = None, 0
        self.guards = {}
        self.rx_fresh = self.timed_out = self.overrun = False
        self.cycle, self.pc, self.limit = 0, 0, cycles
        while self.cycle is not None and self.cycle < cycles:
            self.step()
        self.advance(cycles)
        return self.result

    # ---- what comes ----
    def advance(self, cycle, listens=None):
        """Inputs up to a cycle; the rounds among them are discarded, but for one that comes from
        the cycle `listens` on, whose cycle is returned."""
        while self.inputs and self.inputs[0][0] <= cycle:
            at, kind, *what = self.inputs.pop(0)
            if kind == "round" and listens is not None and at >= listens:
                self.counts["seen"] += 1
                self.begun_by = what[0]
                return at
            self.come(at, kind, what)
        return None

    def come(self, at, kind, what):
        if kind == "round":
            self.counts["discarded"] += 1
            self.counts["second"] += self.begun_by not in (None, what[0])
        elif kind == "data":
            message, words = what
            if message not in self.messages:
                self.counts["unknown"] += 1
            elif len(words) != self.messages[message]:
                self.counts["wrong_length"] += 1
            else:
                self.counts["received"] += 1
                self.counts["overwritten"] += self.fresh.get(message, False)
                self.fresh[message] = True
                self.kept[message] = list(words)
        elif kind == "commit":
            self.write(at, *what)
        elif kind == "flags":
            self.flags = what[0]
        elif kind == "link":
            self.link = what[0]
        else:
            self.counts[kind] += 1

    def write(self, at, buffer, words):
        self.contents[buffer] = list(words)
        self.result.buffers[buffer].append((at, list(words)))

    # ---- what is issued ----
    def step(self):
        """Issues the next instruction, when it need not wait, and finds the cycle of the next."""
        value = self.program[self.pc] if self.pc < len(self.program) else None
        operation = None if value is None or word_error(value) else value >> 58
        number, immediate = (value or 0) >> 38 & 0xFF, (value or 0) & 0xFFFFFFFF
        is_master = operation == SYNC and value >> 32 & 1
        if operation == CREATE:
            self.cycle = max(self.cycle, self.data_left)
        if operation == SEND or is_master:
            self.cycle = max(self.cycle, self.left + GAP - START)
        if self.cycle >= self.limit:
            return
        now = self.cycle
        is_slave = operation == SYNC and not is_master
        strobe = self.advance(now, now if is_slave else None)
        trap = self.trap(value, operation, number, immediate)
        self.result.issues.append((now, self.pc, TRAPS[trap] if trap else 0))
        if trap:
            self.counts["traps"] += 1
            self.cycle = None
            return
        self.pc += 1
        act = [None, self.create, self.send, self.receive, self.future, self.halt, None]
        act.append(self.branch)
        if operation == NOP:
            self.cycle += 1
        elif is_master:
            self.counts["begun"] += 1
            self.begun_by = "own"
            octets = round_frame(self.source, self.round, self.tagged)
            self.transmit(octets)
            self.round = self.round + 1 & 0xFFFFFFFF
            # The EtherType's last octet is over, and 1 cycle.
            self.cycle += START + 8 + 14 + 4 * self.tagged + 1
        elif is_slave:
            self.listen(strobe, immediate)
        else:
            act[operation](value, number, immediate)

    def trap(self, value, operation, number, immediate):
        if value is None:
            return "end"
        if operation is None:
            return word_error(value)
        length = self.messages.get(number)
        if operation == CREATE and number >= len(self.table):
            return "buffer"
        if operation == SEND:
            if length is None:
                return "message"
            if self.send_buffer is None:
                return "nothing_created"
            return "length" if len(self.send_buffer) != length else None
        if operation == RECEIVE:
            if length is None:
                return "message"
            if immediate >= len(self.table) or not self.table[immediate][0]:
                return "buffer"
            return "length" if self.table[immediate][1] != length else None
        if operation == HALT and self.countdown is None:
            return "no_future"
        condition = value >> 32 & 31
        if operation == BRANCH and condition == FRESH and length is None:
            return "message"
        if operation == BRANCH and condition >= COMPARE:
            sides = [(number, immediate >> 24)]
            if condition >= COMPARE_WORDS:
                sides.append((immediate >> 8 & 0xFF, immediate & 0xFF))
            for buffer, index in sides:
                if buffer >= len(self.table):
                    return "buffer"
                if index >= self.table[buffer][1]:
                    return "index"
        return None

    def transmit(self, octets):
        octets = burst(octets)
        self.result.frames.append((self.cycle + START, octets))
        self.busy_from = self.cycle
        self.left = self.cycle + START + len(octets)

    def create(self, _, number, __):
        self.send_buffer = list(self.contents[number])
        self.cycle += 2

    def send(self, _, number, __):
        self.counts["sent"] += 1
        self.transmit(data_frame(self.source, number, self.send_buffer, self.tagged))
        self.data_left = self.left
        self.send_buffer = None
        self.cycle += 2

    def receive(self, _, number, buffer):
        self.rx_fresh = self.fresh.get(number, False)
        self.fresh[number] = False
        if self.rx_fresh:
            # In the cycle of its issue the application still reads what was there before.
            self.write(self.cycle + 1, buffer, self.kept[number])
        self.cycle += 2 + self.messages[number]

    def future(self, value, _, delay):
        self.overruns(self.countdown is not None)
        self.countdown = (self.cycle + delay, value >> 46 & 0xFFF)
        self.cycle += 2

    def halt(self, *_):
        end, target = self.countdown
        self.overruns(self.cycle >= end)
        self.cycle = max(end, self.cycle + 1)
        self.pc = target
        self.countdown = None

    def overruns(self, does):
        self.counts["overruns"] += does
        self.overrun = self.overrun or does

    def listen(self, strobe, timeout):
        now = self.cycle
        end = now + timeout
        if strobe is None:
            strobe = self.advance(min(end, self.limit - 1), now)
        if strobe is None and end >= self.limit:
            self.cycle = self.limit
            return
        self.timed_out = strobe is None
        self.counts["timeouts"] += self.timed_out
        self.cycle = max(end, now + 1) if self.timed_out else strobe + 1

    def branch(self, value, number, immediate):
        condition = value >> 32 & 31
        now = self.cycle
        if condition >= COMPARE:
            left = self.contents[number][immediate >> 24]
            if condition >= COMPARE_WORDS:
                right = self.contents[immediate >> 8 & 0xFF][immediate & 0xFF]
            else:
                right = signed(immediate & 0xFFFFFF, 24) & 0xFFFFFFFF
            true = holds(condition % 8, left, right)
        elif condition == COUNT:
            count = self.guards.get(number, 0) + 1
            true = count >= immediate
            self.guards[number] = 0 if true else count
        else:
            true = {
                ALWAYS: True,
                FRESH: self.fresh.get(number, False),
                RECEIVED: self.rx_fresh,
                SYNC_TIMEOUT: self.timed_out,
                OVERRUN: self.overrun,
                FLAG: bool(self.flags >> (number & 15) & 1),
                TRANSMITTING: self.busy_from is not None and now < self.left + GAP,
                LINK_UP: self.link,
            }[condition]
            if condition == OVERRUN:
                self.overrun = False
        if true != bool(value >> 37 & 1):
            self.pc = value >> 46 & 0xFFF
        self.cycle += 3
