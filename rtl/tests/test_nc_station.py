"""A whole station against the model of docs/network-code.md, where the lock-step with the
interpreter does not come: other parameters, resets, restarts, accesses out of order, bursts
without end, full memories. What is compared is compared in each cycle."""

import random

import cocotb
from gmii import burst
from station_bench import (
    FLAGS,
    FLAG_DELAY,
    LINK_DELAY,
    SOURCE,
    STOP_DELAY,
    STORE,
    STROBE,
    Station,
    access,
    check,
    idle,
    late_of,
    layout,
    stop,
)
from station_model import (
    COUNT,
    FLAG,
    FRESH,
    Model,
    branch,
    compare,
    compare_words,
    create,
    data_frame,
    future,
    halt,
    master,
    nop,
    receive,
    send,
    slave,
)
from station_traffic import Traffic

TOP = "nc_station"
DEFINES = {"NC_COLLISIONS": 1}
PARAMETERS = [{}, {"BANKS": 1}, {"RECEIVE_PAD": 74, "PROGRAM": 10}]
BUFFERS_OF = [(0, 2), (1, 3), (0, 12), (1, 1), (0, 1)]
MESSAGES_OF = {1: 2, 2: 3, 7: 12, 9: 1, 255: 1}


def random_program():
    """Rounds of its own or of others with instructions of all kinds between, a trap among them."""
    body = random.randrange(4, 16)
    words = [future(0, random.choice([200, 500, 900, random.randrange(0, 300)]))]
    words.append(random.choice([master(), slave(random.choice([0, 1, 2, 300]))]))
    while len(words) < body:
        label = random.randrange(len(words) + 1, body + 1)
        condition, negated = random.randrange(9), random.random() < 0.5
        number = {COUNT: 3, FLAG: 5, FRESH: 2}.get(condition, 0)
        guard = branch(label, condition, number, int(condition == COUNT) * 2, negated)
        words += random.choice(
            [
                [create(0), send(1)],
                [create(2), nop(), send(7)],
                [create(4), guard, send(9)],
                [receive(2, 1)],
                [receive(9, 3)],
                [guard],
                [compare(label, random.randrange(5), 2, 11, 5, negated)],
                [compare_words(label, random.randrange(5), (0, 1), (2, 11), negated)],
                [nop()],
                random.choice(
                    [
                        [send(1)],
                        [create(0), send(7)],
                        [create(0), send(1), send(1)],
                        [branch(body + 1, FLAG, 5, 0, negated)],
                        [create(9)],
                        [halt()],
                    ]
                ),
            ]
        )[: body - len(words)]
    return [*words, halt()]


def application(station, inputs, reads, end):
    """Writes, reads, sets flags up to a cycle; notes what the model has to know."""
    while station.cycle < end:
        yield from idle(random.randrange(30))
        action = random.random()
        if action < 0.4:
            buffer = random.choice([0, 2, 4])
            words = [random.randrange(-8, 8) & 0xFFFFFFFF for _ in range(BUFFERS_OF[buffer][1])]
            at = yield from station.write_buffer(buffer, words)
            inputs.append((at, "commit", buffer, words))
        elif action < 0.8:
            buffer = random.randrange(len(BUFFERS_OF))
            index = random.randrange(BUFFERS_OF[buffer][1])
            value, as_of = yield from station.read_buffer(buffer, index)
            reads.append((buffer, index, value, as_of))
        else:
            value = random.getrandbits(16)
            inputs.append((station.cycle - station.zero + FLAG_DELAY, "flags", value))
            yield from access(FLAGS, value)


def bounce(station, inputs, begin, cycles):
    """The link's pin changes, at times in each cycle."""
    at, up = begin, True
    while at < begin + cycles:
        station.link[at] = up
        inputs.append((at - station.zero + LINK_DELAY, "link", up))
        at += random.choice([1, 1, 2, 3, 50])
        up = not up


async def random_run(dut, station, cycles, messages):
    model = Model(random_program(), BUFFERS_OF, MESSAGES_OF, SOURCE, random.random() < 0.5)
    contents = [[random.getrandbits(3) for _ in range(length)] for _, length in BUFFERS_OF]
    await station.run(
        station.load(model, layout(model), contents=contents, messages=messages)
    )
    await station.run(station.start())
    zero = station.zero
    traffic = Traffic(late_of(dut), STORE, STROBE)
    # The answer to the start comes in its first cycles: what is on the pins begins behind it.
    at = station.cycle + random.randrange(40)
    while at < zero + cycles - late_of(dut) - 350:
        octets, errors = traffic.draw(at, {2: 3, 9: 1})
        at = station.put(at, octets, errors) + random.choice([1, 1, 2, 12, 12, 40])
    inputs, reads = [], []
    bounce(station, inputs, station.cycle, cycles)
    station.watches_host, station.came = True, []
    station.coming.clear()
    await station.run(application(station, inputs, reads, zero + cycles))
    done = station.cycle - zero
    await stop(station)
    wanted = [(octets, kind == "other") for octets, kind, _ in traffic.frames]
    assert [row[:2] for row in station.came] == wanted
    inputs += [(at - zero, *what) for at, *what in traffic.inputs]
    result = model.run(done + STOP_DELAY, inputs, contents)
    check(station, result, done)
    # With one bank a frame may come into what is copied.
    for buffer, index, value, as_of in reads:
        if dut.BANKS.value == 2 or not BUFFERS_OF[buffer][0]:
            wanted = result.words(buffer, as_of)[index]
            assert value == wanted, f"{buffer}[{index}] in {as_of}: {value}, should be {wanted}"
    result.counters["bad_preambles"] = traffic.bad_preambles
    assert await station.run(station.counters()) == result.counters


@cocotb.test()
async def random_programs_do_what_the_model_does(dut):
    station = Station(dut)
    await station.begin()
    # The messages are the same in all.
    for turn in range(6):
        await random_run(dut, station, 900, () if turn else range(256))


@cocotb.test()
async def with_one_bank_a_receive_may_meet_a_frame(dut):
    station = Station(dut)
    await station.begin()
    one_bank, late = dut.BANKS.value == 1, late_of(dut)
    delay, words = 400 + late, MESSAGES_OF[7]
    program = [future(2, delay), halt(), receive(7, 0), future(0, 5000), halt()]
    model = Model(program, [(1, words)], MESSAGES_OF, SOURCE)
    await station.run(station.load(model, layout(model)))
    # The place of the first word of the frame that comes, behind its preamble.
    first = 8 + 18
    for _ in range(10):
        old, new = ([random.getrandbits(32) for _ in range(words)] for _ in range(2))
        await station.run(station.start())
        station.put(station.zero + 30, burst(data_frame(SOURCE, 7, old)))
        at = delay - late - first - random.randrange(-6, 4 * words + 6)
        octets = bytearray(burst(data_frame(SOURCE, 7, new)))
        # Of its check sequence nobody knows yet.
        octets[-1] ^= random.randrange(2)
        station.put(station.zero + at, octets)
        await station.run(idle(delay + 60))
        assert (delay, 2, 0) in station.issues
        for index in range(words):
            copied, _ = await station.run(station.read_buffer(0, index))
            # Word i is read i cycles behind the issue, in that of its last octet or before; in the
            # cycle between it is written, and what is read is anything.
            behind = delay + index - (at + late + first + 4 * index + 3)
            if not one_bank or behind != 1:
                assert copied == (new if one_bank and behind > 1 else old)[index]
        await stop(station)
