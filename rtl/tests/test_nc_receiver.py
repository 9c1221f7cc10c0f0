"""What the auto-receiver makes of frames, in the cycles that its comment says, by the octets alone;
and what `receive` copies, with two banks and with one."""

import random
import re

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge
from gmii import NC_DATA, is_good, with_fcs
from station_model import STATION, data_frame, round_frame, word
from station_traffic import fields, inputs_of, random_frame, verdict

TOP = "nc_receiver"
DEFINES = {"NC_COLLISIONS": 1}
PARAMETERS = [{"BANKS": 2}, {"BANKS": 1}]
MESSAGES = {2: 3, 9: 1, 40: 12, 255: 40}
HALF = 2048
# Where words of a message begin: one ends with the half of the memory.
FIRST = {2: 0, 9: 3, 40: HALF - 12, 255: 100}
COUNTED = {
    "received": "received", "unknown": "unknown", "wrong_length": "wrong_length",
    "overwritten": "overwritten", "damaged": "damaged", "malformed": "malformed",
    "runts": "runt", "long": "long",
}  # fmt: skip
PULSES = ["dv", "octet_valid", "type_strobe", "sof", "eof"]


def rows():
    """The fields of a row of the program, by name: the lowest bit."""
    text = (STATION / "nc_row.vh").read_text(encoding="utf-8")
    return {name: int(low) for name, low in re.findall(r"define NC_(\w+) (?:\d+:)?(\d+)", text)}


class Fields:
    """What rx_frame says of frames, by cycle. `first` is the cycle on the stream of the first octet
    behind the SFD."""

    def __init__(self):
        self.at = {}

    def say(self, cycle, **values):
        self.at.setdefault(cycle, {}).update(values)

    def add(self, octets, first, error):
        tagged = octets[12:14] == b"\x81\x00"
        kind = 17 if tagged else 13
        self.say(first, sof=1, has_tag=0)
        for index, octet in enumerate(octets):
            self.say(first + index, data=octet, dv=1)
            self.say(first + index + 1, octet_valid=1, octet=octet, index=min(index, 4095))
            # It is shifted in.
            if index < 6:
                self.say(first + index + 1, destination=random.getrandbits(48))
        if len(octets) > 5:
            self.say(first + 6, destination=int.from_bytes(octets[:6], "big"))
        if len(octets) > 13:
            self.say(first + 14, has_tag=int(tagged))
        if len(octets) > kind:
            self.say(first + kind + 1, type_strobe=1)
        end = first + len(octets) + 1
        said = {"fcs_ok": int(is_good(octets)), "er_seen": int(error), "length": len(octets)}
        self.say(end, eof=1, **said)


class Bench:
    def __init__(self, dut):
        self.dut = dut
        self.cycle = 0
        self.one_bank = dut.BANKS.value == 1
        self.fields, self.inputs = Fields(), {}
        self.others, self.stores = {}, {}
        self.rows = rows()
        self.driven = {}
        # How often a `receive` is issued, of which messages.
        self.rate, self.wanted = 0.15, [*MESSAGES]
        self.clear()

    def clear(self):
        self.fresh = {}
        self.kept = {message: [None] * length for message, length in MESSAGES.items()}
        self.stored = {message: [None] * length for message, length in MESSAGES.items()}
        self.pending = {}
        self.copy = []
        self.issued = None
        self.busy_until = 0

    def drive(self, **values):
        for name, value in values.items():
            if self.driven.get(name) != value:
                self.driven[name] = value
                getattr(self.dut, name).value = value

    async def load(self):
        self.drive(rst=1, may_issue=0, does_receive=0, current=0, load_row=0)
        self.drive(destination=0, has_tag=0, data=0, fcs_ok=0, er_seen=0, length=0, index=0)
        self.drive(octet=0, **dict.fromkeys(PULSES, 0))
        for message in range(256):
            # What is not known has a row that says so, whatever else is in it.
            row = 1 << 12 | FIRST[2]
            if message in MESSAGES:
                row = 1 << 21 | MESSAGES[message] << 12 | FIRST[message]
            self.drive(load_row=1, load_message=message, load_value=row)
            await RisingEdge(self.dut.clk)
        self.drive(load_row=0)
        await RisingEdge(self.dut.clk)
        self.drive(rst=0)

    def put(self, octets, first, error):
        """A frame, and what is to come of it."""
        octets = bytes(octets)
        self.fields.add(octets, first, error)
        for at, *what in inputs_of(octets, first, error, 9, 1):
            self.inputs.setdefault(at, []).append((first, *what))
        is_other = verdict(octets, error) == "other"
        self.others[first + len(octets) + 1] = is_other
        # Each word that is there is stored, whatever comes behind, if the header says so.
        of_stations, ethertype, at = fields(octets)
        if not of_stations or ethertype != NC_DATA or len(octets) < at + 4:
            return first + len(octets)
        message, length = octets[at + 1], octets[at + 2] << 8 | octets[at + 3]
        if MESSAGES.get(message) != length:
            return first + len(octets)
        for index, last in enumerate(range(at + 7, min(len(octets), at + 4 + 4 * length), 4)):
            value = int.from_bytes(octets[last - 3 : last + 1], "big")
            self.stores[first + last + 1] = (message, index, value, first)
        return first + len(octets)

    def issue(self):
        """Perhaps a `receive`: its row stays as long as the core waits for it."""
        may = self.cycle >= self.busy_until
        if may and random.random() < self.rate:
            message = random.choice(self.wanted)
            words = MESSAGES[message]
            row = message << self.rows["ROW_ID"] | words << self.rows["ROW_WORDS"]
            row |= FIRST[message] << self.rows["ROW_IMMEDIATE"]
            self.busy_until = self.cycle + 2 + words
            self.drive(current=row, may_issue=1, does_receive=1)
            return message
        self.drive(may_issue=int(may), does_receive=0)
        return None

    async def reset(self):
        """For a cycle: what began before or in it is none, but for the host."""
        self.clear()
        self.drive(rst=1, may_issue=0, does_receive=0)
        self.drive(**dict.fromkeys(PULSES, 0) | self.fields.at.pop(self.cycle, {}))
        await RisingEdge(self.dut.clk)
        for at, rows in [*self.inputs.items()]:
            self.inputs[at] = [row for row in rows if row[0] > self.cycle]
        self.stores = {at: row for at, row in self.stores.items() if row[3] > self.cycle}
        self.others.pop(self.cycle, None)
        self.drive(rst=0)
        self.cycle += 1

    async def step(self):
        dut = self.dut
        self.drive(**dict.fromkeys(PULSES, 0) | self.fields.at.pop(self.cycle, {}))
        counted = dict.fromkeys(COUNTED, 0)
        strobe = False
        for _, kind, *what in self.inputs.pop(self.cycle, []):
            if kind == "round":
                strobe = True
            elif kind == "data":
                self.data(counted, *what)
            else:
                counted[kind] += 1
        message = self.issue()
        taken = message is not None and self.fresh.get(message, False)
        await RisingEdge(dut.clk)
        # It is known one cycle later.
        if self.issued is not None:
            assert dut.fresh.value == int(self.issued), f"cycle {self.cycle}: fresh"
        self.issued = None if message is None else taken
        if taken:
            self.fresh[message] = False
            words = list(enumerate(self.kept[message]))
            self.copy = [(self.cycle + 2 + index, message, index, value) for index, value in words]
        self.compare_copy()
        store = self.stores.pop(self.cycle, None)
        # Before the first frame nobody knows which row of the table is looked at.
        stores = dut.trace_stored.value == 1
        assert stores == (store is not None), f"cycle {self.cycle}: store"
        is_last = store is not None and store[1] == MESSAGES[store[0]] - 1
        assert (dut.trace_stored_last.value == 1) == is_last
        if store:
            self.stored[store[0]][store[1]] = store[2]
        assert dut.strobe.value == int(strobe), f"cycle {self.cycle}: strobe"
        for ours, theirs in COUNTED.items():
            seen = int(getattr(dut, f"counts_{theirs}").value)
            assert seen == counted[ours], f"cycle {self.cycle}: {ours} {seen}"
        is_other = self.others.pop(self.cycle, False)
        assert dut.is_other.value == int(is_other), f"cycle {self.cycle}: other"
        self.cycle += 1

    def data(self, counted, message, words):
        if message not in MESSAGES:
            counted["unknown"] += 1
        elif len(words) != MESSAGES[message]:
            counted["wrong_length"] += 1
        else:
            counted["received"] += 1
            counted["overwritten"] += self.fresh.get(message, False)
            self.fresh[message] = True
            self.kept[message] = words

    def compare_copy(self):
        """Word i is read i cycles behind the issue, and there two cycles later. With one bank it is
        what was stored by then."""
        dut, now = self.dut, self.cycle
        for index, (at, message, place, value) in enumerate(self.copy):
            if self.one_bank and at == now + 2:
                value = self.stored[message][place]
                # What is written in the same cycle is anything.
                if self.stores.get(now, (None, None))[:2] == (message, place):
                    value = None
                self.copy[index] = (at, message, place, value)
        here = [row for row in self.copy if row[0] == now]
        assert dut.copies.value == len(here), f"cycle {now}: copies"
        if here:
            word = here[0][3]
            assert word is None or int(dut.copied_word.value) == word, f"cycle {now}: {here}"
            ends = here[0] == self.copy[-1]
            assert dut.copy_ends.value == int(ends)
            if ends:
                self.copy = []


def drawn():
    """A frame behind its SFD, and whether it has an error."""
    octets = random_frame(MESSAGES)
    choice = random.random()
    if choice < 0.1:
        octets[random.randrange(len(octets))] ^= 1 << random.randrange(8)
    elif choice < 0.2:
        octets = octets[: random.randrange(len(octets))]
    elif choice < 0.25:
        octets = bytearray(with_fcs(bytes(octets[: random.randrange(14, 60)])))
    elif choice < 0.28:
        length = random.choice([1522, 1523])
        octets = bytearray(with_fcs(bytes(octets[:-4]) + bytes(length - len(octets))))
    return octets, random.random() < 0.08


@cocotb.test()
async def frames_are_stored_counted_and_copied_in_their_cycles(dut):
    Clock(dut.clk, 8, "ns").start()
    bench = Bench(dut)
    await bench.load()
    at = 5
    for _ in range(70):
        octets, error = drawn()
        # The next SFD comes two cycles behind the last octet at the earliest.
        at = bench.put(octets, at, error) + random.choice([2, 2, 3, 9, 20, 90])
    while bench.cycle < at + 60:
        await bench.step()


@cocotb.test()
async def a_frame_may_be_complete_in_any_cycle_around_a_receive(dut):
    """Frames of one message one behind the other, as fast as they may be; the program takes most
    of them, in cycles in which they are not there yet, are about to be, or are."""
    Clock(dut.clk, 8, "ns").start()
    bench = Bench(dut)
    await bench.load()
    at, issues = 5, set()
    for _ in range(60):
        words = [random.getrandbits(32) for _ in range(3)]
        octets = data_frame(bytes(6), 2, words, random.random() < 0.5)
        at = bench.put(octets, at, False)
        if random.random() < 0.8:
            issues.add(at + 8 + random.choice([-3, -2, -1, -1, 0, 1]))
        at += random.choice([2, 3, 4, 5, 6])
    row = 2 << bench.rows["ROW_ID"] | 3 << bench.rows["ROW_WORDS"]
    row |= FIRST[2] << bench.rows["ROW_IMMEDIATE"]

    def issue():
        does = bench.cycle in issues
        if does:
            bench.busy_until = bench.cycle + 5
        bench.drive(current=row, may_issue=int(does or bench.cycle >= bench.busy_until))
        bench.drive(does_receive=int(does))
        return 2 if does else None

    bench.issue = issue
    while bench.cycle < at + 30:
        await bench.step()


@cocotb.test()
async def a_reset_forgets_all_frames(dut):
    Clock(dut.clk, 8, "ns").start()
    bench = Bench(dut)
    await bench.load()
    bench.wanted = [40]
    for _ in range(24):
        at = bench.cycle + 3
        for _ in range(random.randrange(1, 3)):
            octets = data_frame(bytes(6), 40, [random.getrandbits(32) for _ in range(12)])
            if random.random() < 0.3:
                octets = round_frame(bytes(6), 1)
            at = bench.put(octets, at, False) + 2
        # Within a frame, with its end, before it is complete, while it is copied.
        end = at + random.choice([random.randrange(-80, 0), -1, random.randrange(20)])
        bench.rate = 0.5
        while bench.cycle < end:
            await bench.step()
        await bench.reset()
        while bench.cycle < at + random.randrange(2, 20):
            await bench.step()


@cocotb.test()
async def all_words_have_to_be_there_before_the_check_sequence(dut):
    Clock(dut.clk, 8, "ns").start()
    bench = Bench(dut)
    await bench.load()
    at = 5
    for tagged in (False, True):
        for missing in range(6):
            octets = data_frame(bytes(6), 40, list(range(12)), tagged)
            at = bench.put(with_fcs(octets[: len(octets) - 4 - missing]), at, False) + 3
    found = [what[1] for _, [what] in sorted(bench.inputs.items())]
    assert found == ["data", *["malformed"] * 5] * 2
    while bench.cycle < at + 20:
        await bench.step()


@cocotb.test()
async def a_frame_has_374_words_at_most(dut):
    Clock(dut.clk, 8, "ns").start()
    bench = Bench(dut)
    await bench.load()
    at = 5
    # The longer one is no longer than a frame with a tag may be.
    for words in (374, 375):
        at = bench.put(data_frame(bytes(6), 3, [words] * words), at, False) + 12
    assert [what for _, [what] in sorted(bench.inputs.items())][1][1:] == ("malformed",)
    while bench.cycle < at + 20:
        await bench.step()


@cocotb.test()
async def each_field_of_a_header_counts(dut):
    """Frames of both kinds with a wrong bit, and a right check sequence."""
    Clock(dut.clk, 8, "ns").start()
    bench = Bench(dut)
    await bench.load()
    at, bits = 5, [(place, random.randrange(8)) for place in range(6)]
    bits += [(place, bit) for place in range(12, 18) for bit in random.sample(range(8), 3)]
    for make in (round_frame(bytes(6), 7), data_frame(bytes(6), 9, [7])):
        for place, bit in bits:
            octets = bytearray(make[:-4])
            octets[place] ^= 1 << bit
            at = bench.put(with_fcs(bytes(octets)), at, False) + 2
    while bench.cycle < at + 20:
        await bench.step()
