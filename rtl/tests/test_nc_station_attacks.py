"""A whole station whose application, host, network and clocks do what they should not: resets,
restarts, accesses out of order, bursts without end, full memories. What it does is compared with
the model of docs/network-code.md in each cycle."""

import random

import cocotb
from cocotb.triggers import RisingEdge
from gmii import address, burst, with_fcs
from station_bench import (
    BUFFERS,
    BUFFER_ROW,
    COMMIT,
    CONTROL,
    COUNTER,
    FLAGS,
    HALF,
    IDENTITY,
    LENGTH,
    LINK_DELAY,
    MEMORY,
    MESSAGE_ROW,
    PROGRAM,
    SOURCE,
    SOURCE_HIGH,
    SOURCE_LOW,
    STATUS,
    STOP_DELAY,
    STORE,
    STREAM,
    STROBE,
    TAGGED,
    TRAP,
    WORDS,
    Station,
    access,
    check,
    idle,
    late_of,
    layout,
    plain,
    stop,
)
from station_model import (
    ALWAYS,
    COUNT,
    COUNTERS,
    EQUAL,
    LINK_UP,
    TRAPS,
    Model,
    branch,
    compare,
    compare_words,
    create,
    data_frame,
    future,
    halt,
    holds,
    master,
    nop,
    receive,
    round_frame,
    send,
    slave,
)
from station_traffic import Traffic, random_frame

TOP = "nc_station"
DEFINES = {"NC_COLLISIONS": 1}
BUFFERS_OF = [(0, 2), (1, 3), (0, 12), (1, 1), (0, 1)]
MESSAGES_OF = {1: 2, 2: 3, 7: 12, 9: 1, 255: 1}
# So long an access may wait: for `create` and `receive` of the longest buffer, and guards.
PATIENCE = 2000

# Sends what the loader left, in rounds of 400 cycles.
ROUNDS = [future(0, 400), master(), create(0), send(1), branch(6, COUNT, 3, 3), nop(), halt()]


def rounds_model():
    return Model(ROUNDS, BUFFERS_OF, MESSAGES_OF, SOURCE)


def loaded():
    return [[random.getrandbits(32) for _ in range(length)] for _, length in BUFFERS_OF]


async def compared_run(station, model, contents, cycles, inputs=()):
    """From a start on, the program does what the model does; then it is stopped."""
    await station.run(station.start())
    await station.run(idle(cycles))
    done = station.cycle - station.zero
    result = model.run(done + STOP_DELAY, inputs, contents)
    check(station, result, done)
    await stop(station)
    assert await station.run(station.counters()) == result.counters


@cocotb.test()
async def a_program_that_is_started_again_starts_as_the_first_time(dut):
    station = Station(dut)
    await station.begin()
    model, contents = rounds_model(), loaded()
    await station.run(station.load(model, layout(model), contents=contents))
    for _ in range(6):
        # Stopped anywhere, also in a frame, while the application writes.
        cycles = random.randrange(1, 450)
        await station.run(station.start())
        inputs = []
        await station.run(idle(random.randrange(1, 4)))
        words = [random.getrandbits(32) for _ in range(BUFFERS_OF[0][1])]
        at = await station.run(station.write_buffer(0, words))
        inputs.append((at, "commit", 0, words))
        await station.run(idle(cycles))
        done = station.cycle - station.zero
        await station.run(station.stop())
        result = model.run(done + STOP_DELAY, inputs, contents)
        check(station, result, done)
        for at, octets in station.frames:
            assert at + len(octets) <= done + STOP_DELAY + 1
        await compared_run(station, model, contents, 900)


@cocotb.test()
async def a_word_is_not_overwritten_that_create_has_yet_to_read(dut):
    # In each round the words of the next one become visible some cycles sooner or later, also while
    # `create` reads those before: what follows at once is the last word, where it has not been yet.
    station = Station(dut)
    await station.begin()
    length, every = 30, 400
    program = [future(0, every), master(), create(0), send(1), halt()]
    model = Model(program, [(0, length)], {1: length}, SOURCE)
    draw = lambda: [random.getrandbits(32) for _ in range(length)]
    contents = [draw()]
    await station.run(station.load(model, layout(model), contents=contents))
    await station.run(station.start())
    inputs = []
    for number in range(1, 50):
        words = draw()
        for index in reversed(range(length)):
            await station.run(access(WORDS + index, words[index]))
        wait = station.zero + every * number + number - station.cycle
        assert wait > 0
        await station.run(idle(wait))
        # Nothing is left to be written.
        at = await station.run(station.write_buffer(0, []))
        inputs.append((at, "commit", 0, words))
    await station.run(idle(every))
    done = station.cycle - station.zero
    check(station, model.run(done + STOP_DELAY, inputs, contents), done)
    await stop(station)


@cocotb.test()
async def what_is_read_of_a_message_that_is_copied_is_of_one_frame(dut):
    # Each round copies two frames, one behind the other, while the application reads the buffers
    # in any of these cycles: it waits until the frame is copied whose buffer it reads, and for no
    # other one.
    station = Station(dut)
    await station.begin()
    every, lengths = 400, {0: MESSAGES_OF[7], 1: MESSAGES_OF[2]}
    program = [future(0, every), master(), receive(7, 0), receive(2, 1), halt()]
    model = Model(program, [(1, lengths[0]), (1, lengths[1])], MESSAGES_OF, SOURCE)
    await station.run(station.load(model, layout(model)))
    await station.run(station.start())
    traffic, reads = Traffic(late_of(dut), STORE, STROBE), []
    for number in range(60):
        at = station.zero + every * number + 60
        for message in (7, 2):
            words = [random.getrandbits(32) for _ in range(MESSAGES_OF[message])]
            at = station.put(at, traffic.add(data_frame(SOURCE, message, words), at)) + 12
        begin = station.zero + every * (number + 1)
        await station.run(idle(begin - random.randrange(12) - station.cycle))
        while station.cycle < begin + 45:
            buffer = random.randrange(2)
            index = random.choice([0, 1, lengths[buffer] - 1])
            value, as_of = await station.run(station.read_buffer(buffer, index))
            reads.append((buffer, index, value, as_of))
    done = station.cycle - station.zero
    inputs = [(at - station.zero, *what) for at, *what in traffic.inputs]
    result = model.run(done + STOP_DELAY, inputs)
    check(station, result, done)
    for buffer, index, value, as_of in reads:
        assert value == result.words(buffer, as_of)[index], f"{buffer}[{index}] in {as_of}"
    await stop(station)


@cocotb.test()
async def a_reset_in_any_cycle_leaves_only_memories(dut):
    station = Station(dut)
    await station.begin()
    model, contents = rounds_model(), loaded()
    await station.run(station.load(model, layout(model), contents=contents))
    for pending in ["none", "write", "read", "commit", "load"]:
        await station.run(station.start())
        for _ in range(random.randrange(1, 500)):
            await station.run(idle(1))
        if pending == "load":
            await station.run(station.stop())
        asked = {
            "none": None,
            "write": (WORDS + 1, random.getrandbits(32)),
            "read": (WORDS + 1, None),
            "commit": (COMMIT + 2, 0),
            "load": (PROGRAM + 2 * 4095 + 1, 0),
        }[pending]
        held = random.randrange(1, 5)
        station.reset = set(range(station.cycle + held, station.cycle + held + 2)) | {0}

        def holds(request=asked, cycles=held):
            for _ in range(cycles + 1):
                ready, _ = yield request
                request = None if ready else request

        await station.run(holds())
        sent = len(station.frames)
        station.put(station.cycle, burst(random_frame({2: 3})))
        await station.run(idle(3))
        assert station.sending is None and len(station.frames) == sent
        # Another frame than those before: what has been on the stream is none.
        await station.run(idle(250 + late_of(dut)))
        registers = [CONTROL, TAGGED, SOURCE_HIGH, SOURCE_LOW, LENGTH, BUFFERS]
        for register in [*registers, FLAGS, STATUS, TRAP]:
            assert await station.run(access(register)) == 0, f"register {register}"
        await station.run(station.load_registers(model.program, len(model.table)))
        await compared_run(station, model, contents, 700)


@cocotb.test()
async def nothing_is_loaded_while_a_program_runs(dut):
    station = Station(dut)
    await station.begin()
    model, contents = rounds_model(), loaded()
    await station.run(station.load(model, layout(model), contents=contents))
    await station.run(station.start())

    def meddle():
        for _ in range(150):
            region = random.choice([PROGRAM, BUFFER_ROW, MESSAGE_ROW, MEMORY, TAGGED])
            spread = 5 if region == TAGGED else 16
            address_ = region + random.randrange(spread)
            yield from access(address_, random.getrandbits(32))
            yield from idle(random.randrange(3))

    await station.run(meddle())
    # To set bit 0 of what runs does nothing.
    await station.run(access(CONTROL, 1))
    await station.run(idle(500))
    done = station.cycle - station.zero
    check(station, model.run(done, (), contents), done)
    assert await station.run(access(CONTROL)) == 1
    await stop(station)
    wanted = [0, int.from_bytes(SOURCE[:2], "big"), int.from_bytes(SOURCE[2:], "big"), 7, 5]
    assert [await station.run(access(TAGGED + at)) for at in range(5)] == wanted
    await compared_run(station, model, contents, 900)


@cocotb.test()
async def a_buffer_access_that_is_refused_says_so(dut):
    station = Station(dut)
    await station.begin()
    model = rounds_model()
    await station.run(station.load(model, layout(model)))

    async def asked(address_, value, refused):
        await station.run(access(address_, value))
        assert await station.run(access(STATUS)) == 4 * refused, f"{address_:x}"
        await station.run(access(STATUS, 0))
        assert await station.run(access(STATUS)) == 0

    # Stopped: no buffer is there.
    for address_ in [WORDS, COMMIT]:
        await asked(address_, 0, True)
        await asked(address_, None, True)
    await station.run(station.start())
    for buffer, (is_input, length) in enumerate(BUFFERS_OF):
        at = WORDS + (buffer << 9)
        for index, exists in [(0, True), (length - 1, True), (length, False), (511, False)]:
            await asked(at + index, None, not exists)
            await asked(at + index, 5, bool(is_input) or not exists)
        await asked(COMMIT + buffer, 0, bool(is_input))
    for buffer in [len(BUFFERS_OF), 255]:
        await asked(WORDS + (buffer << 9), None, True)
        await asked(WORDS + (buffer << 9), 1, True)
        await asked(COMMIT + buffer, 0, True)
    await stop(station)


def unanswered(requests):
    """Presents what changes in any cycle, and is given up."""
    for request in requests:
        for _ in range(random.choice([1, 1, 2, 3, 4, 5])):
            yield request


@cocotb.test()
async def requests_that_change_or_are_given_up_lock_nothing(dut):
    station = Station(dut)
    await station.begin()
    model, contents = rounds_model(), loaded()
    await station.run(station.load(model, layout(model), contents=contents))
    # Buffers that the program does not look at.
    where = [WORDS + (2 << 9), WORDS + (2 << 9) + 11, WORDS + (1 << 9), COMMIT + 2, COMMIT + 1]
    where += [WORDS + (9 << 9), COMMIT + 9, TAGGED, LENGTH, PROGRAM, PROGRAM + 1, MEMORY, IDENTITY]
    await station.run(station.start())
    requests = []
    for _ in range(500):
        at, value = random.choice(where), random.choice([None, random.getrandbits(32)])
        # A write to what has but one word may be in time at the end: that is as it should be.
        requests.append(None if random.random() < 0.2 else (at, value))
        if at >> 20 == 6 and value is None:
            requests.pop()
    await station.run(unanswered(requests))
    await station.run(idle(3))
    before = station.cycle
    words = [random.getrandbits(32) for _ in range(BUFFERS_OF[2][1])]
    await station.run(station.write_buffer(2, words))
    for index, value in enumerate(words):
        assert (await station.run(station.read_buffer(2, index)))[0] == value
    assert station.cycle - before < PATIENCE
    assert await station.run(access(IDENTITY)) == 0x4E435354
    done = station.cycle - station.zero
    check(station, model.run(done, (), contents), done)
    await stop(station)
    # While it is stopped, likewise; then everything is loaded anew.
    where = [at for at in where if at >> 20] + [BUFFER_ROW, MESSAGE_ROW + 3, COUNTER]
    drawn = [(random.choice(where), random.choice([None, 77])) for _ in range(200)]
    await station.run(unanswered(drawn))
    await station.run(idle(3))
    await station.run(station.load(model, layout(model), contents=contents))
    await compared_run(station, model, contents, 500)


def sparse(rows):
    """A program of 4,096 instructions, and those that are not `nop`."""
    words = [nop()] * 4096
    for address_, value in rows.items():
        words[address_] = value
    return words


@cocotb.test()
async def a_program_may_have_4096_instructions(dut):
    station = Station(dut)
    await station.begin()
    last = 4095
    jumps = {0: branch(last - 1, ALWAYS), last - 1: branch(100, COUNT, 0, 2)}
    jumps[last] = branch(0, ALWAYS)
    # A countdown to the last one; then it goes on behind the end.
    jumps |= {100: future(last, 50), 101: halt()}
    model = Model(sparse(jumps), [(0, 1)], {1: 1}, SOURCE)
    small = Model([], model.table, model.messages, SOURCE)
    await station.run(station.load(small, layout(small)))
    await station.run(station.load_registers(4096, 1))
    for address_ in sorted(jumps):
        await station.run(station.load_word(address_, jumps[address_]))
    await compared_run(station, model, None, 300)
    assert (await station.run(access(TRAP))) == 0
    await station.run(station.load_word(last, nop()))
    model.program[last] = nop()
    await compared_run(station, model, None, 300)
    assert (await station.run(access(TRAP))) == TRAPS["end"] << 16 | 4096
    # The same at an end before.
    await station.run(access(LENGTH, last))
    model.program = model.program[:last]
    await compared_run(station, model, None, 300)
    assert (await station.run(access(TRAP))) == TRAPS["end"] << 16 | last
    await station.run(access(LENGTH, 0))
    model.program = []
    await compared_run(station, model, None, 20)
    assert (await station.run(access(TRAP))) == TRAPS["end"] << 16


@cocotb.test()
async def there_may_be_256_buffers_up_to_the_end_of_the_memory(dut):
    station = Station(dut)
    await station.begin()
    # Outputs to the end of the lower half; an input of one word at the end of the memory.
    lengths = [8] * 255
    table = [(0, length) for length in lengths] + [(1, 8)]
    ids = {number: 8 for number in (0, 100, 255)}
    where = [8 * number for number in range(254)] + [HALF - 8, 8 * 254]
    messages = {0: 0, 100: 100, 255: HALF - 8}
    program = [create(254), send(255), create(0), send(0), create(253), send(100)]
    program += [receive(255, 255)]
    program += [compare_words(0, EQUAL, (254, 7), (255, 7)), slave(3), branch(6, ALWAYS)]
    model = Model(program, table, ids, SOURCE)
    await station.run(station.load(Model(program, [], ids, SOURCE), ([], messages)))
    for number, ((is_input, length), at) in enumerate(zip(table, where, strict=True)):
        await station.run(access(BUFFER_ROW + number, is_input << 21 | length << 12 | at))
    contents = [[number << 8 | index for index in range(8)] for number in range(256)]
    for number in (0, 252, 253, 254, 255):
        for index, value in enumerate(contents[number]):
            await station.run(access(MEMORY + where[number] + index, value))
    await station.run(access(BUFFERS, 256))
    await station.run(station.load_program(program))
    await station.run(station.start())
    words = [random.getrandbits(32) for _ in range(8)]
    traffic = Traffic(STREAM, STORE, STROBE)
    for at in (20, 400, 700):
        octets = traffic.add(data_frame(SOURCE, 255, words[:7] + [at]), station.zero + at)
        station.put(station.zero + at, octets)
    inputs = []
    for number in (254, 252, 254, 254):
        new = [random.getrandbits(32) for _ in range(8)]
        at = await station.run(station.write_buffer(number, new))
        inputs.append((at, "commit", number, new))
    await station.run(idle(900))
    done = station.cycle - station.zero
    inputs += [(at - station.zero, *what) for at, *what in traffic.inputs]
    result = model.run(done, inputs, contents)
    check(station, result, done)
    assert result.counters["received"] == 3
    for number in (0, 252, 253, 254, 255):
        for index in range(8):
            value, as_of = await station.run(station.read_buffer(number, index))
            assert value == result.words(number, as_of)[index], f"{number}[{index}]"
    await stop(station)


LISTENS = [slave(3), receive(2, 1), branch(0, ALWAYS)]


async def listens(station, bursts, more=0):
    """Bursts of (octets, errors, preamble, gap) while a program listens: all that is counted, what
    is copied, and what the host gets."""
    model = Model(LISTENS, BUFFERS_OF, MESSAGES_OF, SOURCE)
    await station.run(station.load(model, layout(model)))
    await station.run(station.start())
    station.watches_host, station.came = True, []
    station.coming.clear()
    zero, traffic = station.zero, Traffic(STREAM, STORE, STROBE)
    at = zero + 20
    for octets, errors, preamble, gap in bursts:
        at = station.put(at, traffic.add(octets, at, errors, preamble), errors) + gap
    cycles = at + 60 + more - zero
    await station.run(idle(cycles))
    inputs = [(cycle - zero, *what) for cycle, *what in traffic.inputs]
    wanted = [(octets, kind == "other") for octets, kind, _ in traffic.frames]
    assert [row[:2] for row in station.came] == wanted
    copied = [(await station.run(station.read_buffer(1, index)))[0] for index in range(3)]
    done = station.cycle - zero
    await stop(station)
    result = model.run(done + STOP_DELAY, inputs)
    check(station, result, done)
    assert copied == result.words(1, cycles)
    counted = await station.run(station.counters())
    assert counted == result.counters
    return counted


@cocotb.test()
async def rx_er_in_any_octet_damages_the_frame(dut):
    station = Station(dut)
    await station.begin()
    octets = data_frame(SOURCE, 2, [1, 2, 3])
    bursts = [(octets, (at,), 7, 1) for at in range(0, 72, random.choice([1, 2, 3]))]
    bursts += [(octets, range(72), 7, 1), (octets, (), 7, 1)]
    counted = await listens(station, bursts)
    assert (counted["damaged"], counted["received"]) == (len(bursts) - 1, 1)


@cocotb.test()
async def frames_may_be_apart_by_one_octet(dut):
    station = Station(dut)
    await station.begin()
    # Without a preamble, too: the shortest way from the end of a frame to the next SFD.
    bursts = []
    for _ in range(20):
        octets = random_frame({2: 3, 9: 1})
        bursts.append((octets, (), random.choice([0, 0, 1, 7]), 1))
    for words in range(3):
        bursts.append((data_frame(SOURCE, 2, [words] * 3), (), 0, 1))
    await listens(station, bursts)


@cocotb.test()
async def frames_of_10000_octets_are_too_long_and_no_more(dut):
    station = Station(dut)
    await station.begin()
    # What is said to be data of a known length, and is longer.
    head = data_frame(SOURCE, 2, [5, 6, 7])[:-4]
    body = bytes(random.randrange(256) for _ in range(10_000 - len(head)))
    long = with_fcs(head + body)
    good = data_frame(SOURCE, 2, [9, 10, 11])
    edge = [with_fcs(head + bytes(length - 4 - len(head))) for length in (1522, 1523)]
    bursts = [(good, (), 7, 1), (long, (), 7, 1), (good, (), 7, 12), (edge[1], (), 7, 12)]
    bursts += [(round_frame(SOURCE, 3) + body[:40], (), 7, 1), (edge[0], (), 7, 12)]
    counted = await listens(station, bursts)
    assert (counted["long"], counted["received"], counted["damaged"]) == (2, 3, 1)


@cocotb.test()
async def a_link_that_bounces_is_seen_two_cycles_later(dut):
    station = Station(dut)
    await station.begin()
    model = Model(
        [branch(0, LINK_UP), nop(), branch(3, LINK_UP, negated=True), branch(0, ALWAYS)],
        [],
        {},
        SOURCE,
    )
    await station.run(station.load(model, ([], {})))
    await station.run(station.start())
    inputs = []
    for at in range(600):
        up = random.random() < 0.5
        station.link[station.zero + at] = up
        inputs.append((at + LINK_DELAY, "link", up))
    await station.run(idle(600))
    check(station, model.run(600, inputs), 600)
    await stop(station)


@cocotb.test()
async def best_effort_fits_between_and_delays_nothing(dut):
    station = Station(dut)
    await station.begin()
    delay, rounds = 700, 12
    program = [future(0, delay), master(), create(0), send(1), halt()]
    model = Model(program, BUFFERS_OF, MESSAGES_OF, SOURCE, True)
    contents = loaded()
    await station.run(station.load(model, layout(model), contents=contents))
    given, host = [], []
    for length in [60, 59, 61, 300, 1519, 400, 64, 60, 480, 60, 1518]:
        octets = address(1) + bytes(random.randrange(256) for _ in range(length - 6))
        host.append(octets)
        if 60 <= length <= 1518:
            given.append(octets)
    await station.run(station.start())
    station.host = host
    await station.run(idle(rounds * delay))
    done = station.cycle - station.zero
    frames = plain(station.frames)
    station.frames = [(at, octets) for at, octets in frames if octets[8:14] != address(1)]
    check(station, model.run(done, (), contents), done)
    best = [(at, octets) for at, octets in frames if octets[8:14] == address(1)]
    assert [octets for _, octets in best] == [burst(with_fcs(octets)) for octets in given[:-1]]
    for (at, octets), (following, _) in zip(frames, frames[1:], strict=False):
        assert at + len(octets) + 12 <= following
    # Within the halt, whole, and its gap: to the next issue there are less than so many cycles.
    for at, octets in best:
        assert at % delay + len(octets) + 12 <= delay
    await stop(station)
    assert await station.run(access(COUNTER + COUNTERS.index("best"))) == len(best)
    # What was given before a stop is still there. A trap leaves all the time.
    await station.run(access(LENGTH, 4))
    await station.run(station.start())
    station.host = [given[0]]
    await station.run(idle(2000))
    frames = [octets for _, octets in plain(station.frames)]
    assert frames[2:] == [burst(with_fcs(octets)) for octets in (given[-1], given[0])]
    await stop(station)


async def feed(dut, bursts):
    """In the clock of the sender."""
    for octets, gap in bursts:
        for octet in octets:
            await RisingEdge(dut.rx_clk)
            dut.rx_dv.value, dut.rxd.value = 1, octet
        for _ in range(gap):
            await RisingEdge(dut.rx_clk)
            dut.rx_dv.value, dut.rxd.value = 0, 0


@cocotb.test()
async def a_sender_may_have_another_clock(dut):
    for period in (7998, 8002):
        station = Station(dut)
        await station.begin(period)
        model = Model(LISTENS, BUFFERS_OF, {2: 3, 4: 374}, SOURCE)
        await station.run(station.load(model, layout(model)))
        await station.run(station.start())
        sent = [[random.getrandbits(32) for _ in range(length)] for length in (3, 374, 3, 1, 3)]
        bursts = [
            (burst(data_frame(SOURCE, 4 if len(words) == 374 else 2, words)), 12) for words in sent
        ]
        cocotb.start_soon(feed(dut, bursts))
        await station.run(idle(sum(len(octets) + gap for octets, gap in bursts) + 80))
        copied = [(await station.run(station.read_buffer(1, index)))[0] for index in range(3)]
        assert copied == sent[-1]
        await stop(station)
        counted = await station.run(station.counters())
        found = {name: counted[name] for name in ("received", "wrong_length", "slips", "damaged")}
        assert found == {"received": 4, "wrong_length": 1, "slips": 0, "damaged": 0}


@cocotb.test()
async def what_follows_a_request_that_was_given_up_has_its_effect(dut):
    station = Station(dut)
    await station.begin()
    # What the program does meanwhile takes the buffers' memory, too.
    program = [create(2), compare(2, EQUAL, 0, 0, 7), receive(2, 1), branch(0, ALWAYS)]
    model = Model(program, BUFFERS_OF, MESSAGES_OF, SOURCE)
    await station.run(station.load(model, layout(model)))
    await station.run(station.start())
    at = WORDS + (2 << 9)
    for held in range(1, 14):
        for given_up in [(at, 1), (at, None), (COMMIT + 2, 0), (WORDS + (9 << 9), 3), (FLAGS, 9)]:

            def holds(request=given_up, cycles=held):
                for _ in range(cycles):
                    ready, _ = yield request
                    if ready:
                        return

            await station.run(holds())
            await station.run(idle(1))
            value = random.getrandbits(32)
            await station.run(station.write_buffer(2, [value, ~value & 0xFFFFFFFF]))
            for index, wanted in enumerate([value, ~value & 0xFFFFFFFF]):
                seen = (await station.run(station.read_buffer(2, index)))[0]
                assert seen == wanted, f"{given_up[0]:x} for {held} cycles"
    await stop(station)
