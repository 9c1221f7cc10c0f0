"""Bursts on a receiving GMII, drawn; and what a station is to make of each, by its octets alone."""

import random

from gmii import NC_DATA, NC_GROUP, NC_SYNC, address, frame, is_good, with_fcs
from station_model import data_frame, round_frame

SHORTEST, LONGEST, FRAME_WORDS = 64, 1522, 374


def fields(octets):
    """Whether it goes to stations, the EtherType behind a tag, where the payload begins."""
    at = 16 if octets[12:14] == b"\x81\x00" else 12
    ethertype = int.from_bytes(octets[at : at + 2], "big") if len(octets) >= at + 2 else None
    return octets[:6] == NC_GROUP, ethertype, at + 2


def strobe_index(octets):
    """Of the last octet of the EtherType of a frame that begins a round, or None."""
    of_stations, ethertype, payload = fields(octets)
    return payload - 1 if of_stations and ethertype == NC_SYNC else None


def verdict(octets, error):
    """What the frame behind an SFD is: a counter's name, "data", "round" or "other"."""
    if error or not is_good(octets):
        return "damaged"
    if not SHORTEST <= len(octets) <= LONGEST:
        return "runts" if len(octets) < SHORTEST else "long"
    of_stations, ethertype, at = fields(octets)
    if not of_stations or ethertype not in (NC_DATA, NC_SYNC):
        return "other"
    flags, message, length = octets[at], octets[at + 1], octets[at + 2] << 8 | octets[at + 3]
    is_round = ethertype == NC_SYNC
    fits = at + 4 + 4 * length <= len(octets) - 4
    if flags or not fits or not (length == 1 if is_round else 1 <= length <= FRAME_WORDS):
        return "malformed"
    if is_round:
        return "malformed" if message else "round"
    return "data"


def data_of(octets):
    """The message and the words of a data frame."""
    at = fields(octets)[2]
    length = octets[at + 2] << 8 | octets[at + 3]
    body = octets[at + 4 : at + 4 + 4 * length]
    return octets[at + 1], [
        int.from_bytes(body[index : index + 4], "big") for index in range(0, len(body), 4)
    ]


def inputs_of(octets, cycle, error, store, strobe):
    """Inputs of the model of a frame whose first octet behind the SFD is on the stream in `cycle`:
    complete so many cycles behind its last octet, a round behind its EtherType."""
    found = []
    at = strobe_index(octets)
    if at is not None:
        found.append((cycle + at + strobe, "round", octets[6:12]))
    kind = verdict(octets, error)
    complete = cycle + len(octets) - 1 + store
    if kind == "data":
        found.append((complete, "data", *data_of(octets)))
    elif kind not in ("round", "other"):
        found.append((complete, kind))
    return found


def random_octets(count):
    return bytes(random.randrange(256) for _ in range(count))


def random_frame(messages):
    """A frame behind its SFD: mostly of stations, mostly right."""
    tagged = random.random() < 0.3
    source = address(random.randrange(1, 4))
    kind = random.choice(["data"] * 6 + ["round"] * 3 + ["other", "length", "header"])
    if kind == "round":
        return bytearray(round_frame(source, random.getrandbits(32), tagged))
    if kind == "other":
        to = random.choice([NC_GROUP, address(9), b"\xff" * 6])
        ethertype = random.choice([0x0800, 0x88B7, 0x8100, NC_DATA, NC_SYNC])
        octets = random_octets(random.choice([46, 60, 200]))
        return bytearray(frame(to, source, ethertype, octets))
    message = random.choice([*messages, random.randrange(256)])
    length = messages.get(message, 1)
    if random.random() < 0.2:
        length = random.choice([1, 2, 10, 11, 12, 40])
    words = [random.getrandbits(32) for _ in range(length)]
    said = random.choice([0, length + 1, 11, 375, 511, 513]) if kind == "length" else None
    octets = bytearray(data_frame(source, message, words, tagged, said))
    if kind == "header":
        at = fields(octets)[2]
        octets[at + random.randrange(4)] ^= 1 << random.randrange(8)
        octets = bytearray(with_fcs(bytes(octets[:-4])))
    return octets


class Traffic:
    """Puts bursts on a stream from a cycle on; collects what a station is to make of them.
    `late` is what the stream is behind the pins, `store` and `strobe` as in inputs_of."""

    def __init__(self, late, store, strobe):
        self.late, self.store, self.strobe = late, store, strobe
        self.inputs = []
        self.bad_preambles = 0
        self.frames = []  # octets, what it is, cycle on the stream of its last octet

    def add(self, octets, cycle, errors=(), preamble=7):
        """A frame whose first octet of the preamble is on the pins in `cycle`. Gives the burst."""
        first = cycle + preamble + 1
        error = any(at < preamble + 1 + len(octets) for at in errors)
        octets = bytes(octets)
        self.inputs += inputs_of(octets, first + self.late, error, self.store, self.strobe)
        last = first + self.late + len(octets) - 1
        self.frames.append((octets, verdict(octets, error), last))
        return bytes([0x55] * preamble) + b"\xd5" + octets

    def draw(self, cycle, messages):
        """A burst and the indices of its errors."""
        if random.random() < 0.05:
            self.bad_preambles += 1
            begin = b"\x55" * random.randrange(8) + b"\x5d"
            return begin + random_octets(random.choice([1, 70])), ()
        octets = random_frame(messages)
        choice = random.random()
        if choice < 0.1:
            octets[random.randrange(len(octets))] ^= 1 << random.randrange(8)
        elif choice < 0.18:
            octets = octets[: random.randrange(1, len(octets))]
        elif choice < 0.22:
            octets = octets[: random.randrange(14, 60)]
            octets = bytearray(with_fcs(bytes(octets)))
        preamble = random.choice([1, 5, 7, 7, 7, 7, 9])
        errors = ()
        if random.random() < 0.1:
            errors = (random.randrange(preamble + 1 + len(octets)),)
        return self.add(octets, cycle, errors, preamble), errors
