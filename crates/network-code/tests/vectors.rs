//! Each rule of `docs/network-code.md` by an example: cycles computed by hand, for the station that
//! executes and for the interpreter.

use crate::pair::{Pair, Recorder, Stimulus};
use onbeat_model::units::MacAddress;
use onbeat_network_code::interpreter::{SentContent, SentFrame};
use onbeat_runtime::network_code::instruction::Instruction::{
    Branch, Create, Future, Halt, Nop, Receive, Send, SyncMaster, SyncSlave,
};
use onbeat_runtime::network_code::instruction::{
    Address, BufferId, BufferWord, Condition, Guard, Instruction, MessageId, Relation, WordError,
};
use onbeat_runtime::network_code::program::{Buffer, BufferRole, MessageFormat, StationProgram};
use onbeat_runtime::network_code::station::{INSTRUCTIONS_PER_ADVANCE, Station};
use onbeat_runtime::network_code::timing::{Cycles, Medium};
use onbeat_runtime::network_code::trace::{Outcome, Trap};

const GIGABIT: Medium = Medium::GIGABIT;
const TAGGED: Medium = Medium { octet_cycles: 1, tagged: true };
const FAST: Medium = Medium { octet_cycles: 10, tagged: false };

/// Buffers of 2, 1 and 374 words.
const OUT: BufferId = BufferId(0);
const IN: BufferId = BufferId(1);
const SHORT_OUT: BufferId = BufferId(2);
const SHORT_IN: BufferId = BufferId(3);
const LONG_OUT: BufferId = BufferId(4);
const LONG_IN: BufferId = BufferId(5);
const NO_BUFFER: BufferId = BufferId(6);

/// Messages of as many.
const PAIR: MessageId = MessageId(5);
const SHORT: MessageId = MessageId(9);
const LONG: MessageId = MessageId(200);
const NO_MESSAGE: MessageId = MessageId(6);

const ONE: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);
const OTHER: MacAddress = MacAddress([2, 0, 0, 0, 0, 2]);

fn address(index: usize) -> Address {
    Address::new(index).expect("an address")
}

fn words_of(medium: Medium, words: Vec<u64>) -> StationProgram {
    use BufferRole::{Input, Output};
    let buffer = |(role, words)| Buffer { name: String::new(), words, role };
    let message = |(id, words)| MessageFormat { id, name: String::new(), words };
    let buffers = [(Output, 2), (Input, 2), (Output, 1), (Input, 1), (Output, 374), (Input, 374)];
    StationProgram {
        station: "station".to_owned(),
        medium,
        buffers: buffers.map(buffer).into(),
        messages: [(PAIR, 2), (SHORT, 1), (LONG, 374)].map(message).into(),
        lines: (1..).take(words.len()).collect(),
        words,
        source: String::new(),
    }
}

fn program(medium: Medium, instructions: &[Instruction]) -> StationProgram {
    words_of(medium, instructions.iter().map(|instruction| instruction.encode()).collect())
}

/// What a trace says: address, issue, issue of the next one, outcome.
type Row = (usize, u64, u64, Outcome);

/// Runs both with inputs, to a cycle.
fn run_program(program: &StationProgram, stimuli: &[(u64, Stimulus)], until: u64) -> Pair {
    let mut pair = Pair::new(program);
    for (at, stimulus) in stimuli {
        pair.run(*at);
        pair.give(*at, stimulus.clone());
    }
    pair.run(until);
    pair
}

fn run(medium: Medium, instructions: &[Instruction], stimuli: &[(u64, Stimulus)]) -> Pair {
    run_program(&program(medium, instructions), stimuli, 10_000)
}

fn trace(pair: &Pair) -> Vec<Row> {
    let rows = pair.interpreted.trace.iter();
    rows.map(|row| (row.address.index(), row.issued.0, row.next.0, row.outcome)).collect()
}

/// The last row of a station that has stopped, and that it has.
fn trapped(pair: &Pair) -> (usize, u64, Trap) {
    assert_eq!(pair.counters().traps, 1);
    assert_eq!(pair.station.next(), Cycles::NEVER);
    match trace(pair).last() {
        Some(&(at, issued, next, Outcome::Trapped(trap))) if issued == next => (at, issued, trap),
        other => panic!("no trap: {other:?}"),
    }
}

fn sends(at: u64) -> Outcome {
    Outcome::Sends(Cycles(at))
}

fn data(at: u64, message: MessageId, words: &[u32]) -> SentFrame {
    let words = words.to_vec();
    SentFrame { at: Cycles(at), content: SentContent::Data { message, words } }
}

fn sync(at: u64, round: u32) -> SentFrame {
    SentFrame { at: Cycles(at), content: SentContent::Sync { round } }
}

fn on(condition: Condition, target: usize) -> Instruction {
    Branch { guard: Guard { negated: false, condition }, target: address(target) }
}

fn unless(condition: Condition, target: usize) -> Instruction {
    Branch { guard: Guard { negated: true, condition }, target: address(target) }
}

#[test]
fn create_and_send_wait_for_the_transmitter() {
    let twice = [
        Create { buffer: OUT },
        Send { message: PAIR },
        Nop,
        Create { buffer: OUT },
        Send { message: PAIR },
    ];
    // 8 octets of preamble and 64 of the shortest frame: 8 to 80. The gap is over at 92.
    let pair = run(
        GIGABIT,
        &twice,
        &[(0, Stimulus::Write(OUT, vec![7, 8])), (3, Stimulus::Write(OUT, vec![9, 10]))],
    );
    assert_eq!(
        trace(&pair),
        [
            (0, 0, 2, Outcome::Done),
            (1, 2, 4, sends(8)),
            (2, 4, 5, Outcome::Done),
            (3, 80, 82, Outcome::Done),
            (4, 86, 88, sends(92)),
            (5, 88, 88, Outcome::Trapped(Trap::End)),
        ]
    );
    assert_eq!(pair.interpreted.sent, [data(8, PAIR, &[7, 8]), data(92, PAIR, &[9, 10])]);
    assert_eq!(pair.counters().data_sent, 2);
}

#[test]
fn the_longest_frame_takes_its_octets() {
    let twice = [
        Create { buffer: LONG_OUT },
        Send { message: LONG },
        Create { buffer: LONG_OUT },
        Send { message: LONG },
    ];
    let rows = |medium| trace(&run(medium, &twice, &[]))[1..4].to_vec();
    // 8 + 18 + 4 + 1,496 + 4 octets.
    let tagged =
        [(1, 2, 4, sends(8)), (2, 1_538, 1_540, Outcome::Done), (3, 1_544, 1_546, sends(1_550))];
    assert_eq!(rows(TAGGED), tagged);
    let untagged =
        [(1, 2, 4, sends(8)), (2, 1_534, 1_536, Outcome::Done), (3, 1_540, 1_542, sends(1_546))];
    assert_eq!(rows(GIGABIT), untagged);
}

#[test]
fn at_100_mbit_an_octet_takes_ten_cycles() {
    let twice = [
        Create { buffer: SHORT_OUT },
        Send { message: SHORT },
        Create { buffer: SHORT_OUT },
        Send { message: SHORT },
        SyncMaster,
    ];
    let pair = run(FAST, &twice, &[]);
    let rows = [
        (0, 0, 2, Outcome::Done),
        (1, 2, 4, sends(8)),
        (2, 728, 730, Outcome::Done),
        (3, 842, 844, sends(848)),
        // Begins at 848 + 720 + 120; its EtherType has left 220 cycles later.
        (4, 1_682, 1_909, sends(1_688)),
    ];
    assert_eq!(trace(&pair)[..5], rows);
}

#[test]
fn a_tagged_frame_is_shortest_with_68_octets() {
    let pair = run(TAGGED, &[SyncMaster, SyncMaster], &[]);
    // 8 + 18 octets to the EtherType; 8 + 68 + 12 to the next preamble.
    assert_eq!(trace(&pair)[..2], [(0, 0, 33, sends(6)), (1, 88, 121, sends(94))]);
}

#[test]
fn sync_master_numbers_rounds_and_continues_behind_its_ethertype() {
    let rounds = [SyncMaster, Create { buffer: OUT }, Send { message: PAIR }, SyncMaster];
    let pair = run(GIGABIT, &rounds, &[]);
    let rows = [
        (0, 0, 29, sends(6)),
        // `create` does not wait for a frame that is not data.
        (1, 29, 31, Outcome::Done),
        (2, 84, 86, sends(90)),
        (3, 168, 197, sends(174)),
    ];
    assert_eq!(trace(&pair)[..4], rows);
    assert_eq!(pair.interpreted.sent, [sync(6, 0), data(90, PAIR, &[0, 0]), sync(174, 1)]);
    assert_eq!((pair.counters().rounds_begun, pair.counters().data_sent), (2, 1));
}

#[test]
fn what_the_application_writes_while_the_send_buffer_is_filled_does_not_get_into_it() {
    let before: Vec<u32> = (1..=374).collect();
    let write = |at, value| (at, Stimulus::Write(LONG_OUT, vec![value; 374]));
    let stimuli =
        [(0, Stimulus::Write(LONG_OUT, before.clone())), write(1, 7), write(50, 8), write(300, 9)];
    let once = [Create { buffer: LONG_OUT }, Send { message: LONG }];
    let pair = run(GIGABIT, &once, &stimuli);
    assert_eq!(pair.interpreted.sent, [data(8, LONG, &before)]);
    assert_eq!(pair.station.read(LONG_OUT), Ok(&[9; 374][..]));
}

#[test]
fn receive_copies_a_frame_once_and_takes_as_long_without_one() {
    let receive = Receive { message: PAIR, buffer: IN };
    let frame = |at, words: [u32; 2]| (at, Stimulus::Data(PAIR, words.to_vec()));
    // In the cycle of the second one; two before the fourth one.
    let stimuli = [frame(4, [1, 2]), frame(9, [3, 4]), frame(10, [5, 6])];
    let pair = run(GIGABIT, &[receive; 4], &stimuli);
    let rows = [
        (0, 0, 4, Outcome::Received(false)),
        (1, 4, 8, Outcome::Received(true)),
        (2, 8, 12, Outcome::Received(false)),
        (3, 12, 16, Outcome::Received(true)),
    ];
    assert_eq!(trace(&pair)[..4], rows);
    assert_eq!(pair.station.read(IN), Ok(&[5, 6][..]));
    assert_eq!((pair.counters().data_received, pair.counters().data_overwritten), (3, 1));
    let long = [Receive { message: LONG, buffer: LONG_IN }];
    assert_eq!(trace(&run(GIGABIT, &long, &[]))[0], (0, 0, 376, Outcome::Received(false)));
}

#[test]
fn a_frame_that_comes_while_the_one_before_it_is_copied_is_the_next_one() {
    let receive = Receive { message: LONG, buffer: LONG_IN };
    let frame = |at, value| (at, Stimulus::Data(LONG, vec![value; 374]));
    let stimuli = [frame(0, 1), frame(100, 2), frame(200, 3)];
    let program = program(GIGABIT, &[receive, receive]);
    for (until, value) in [(1, 1), (150, 1), (376, 1), (377, 3), (700, 3)] {
        let given: Vec<_> = stimuli.iter().filter(|(at, _)| *at < until).cloned().collect();
        let pair = run_program(&program, &given, until);
        assert_eq!(pair.station.read(LONG_IN), Ok(&[value; 374][..]), "before {until}");
        assert_eq!(pair.interpreter.read(LONG_IN), Ok(&[value; 374][..]), "before {until}");
    }
}

#[test]
fn frames_that_do_not_belong_here_are_counted_and_change_nothing() {
    let stimuli = [
        (0, Stimulus::Data(NO_MESSAGE, vec![1, 2])),
        (0, Stimulus::Data(PAIR, vec![1])),
        (0, Stimulus::Data(PAIR, vec![1, 2, 3])),
        (0, Stimulus::Damaged),
    ];
    let pair = run(GIGABIT, &[on(Condition::Fresh(PAIR), 0)], &stimuli);
    assert_eq!(trace(&pair)[0], (0, 0, 3, Outcome::Branched(false)));
    let counters = pair.counters();
    assert_eq!((counters.data_unknown, counters.data_wrong_length), (1, 2));
    assert_eq!((counters.damaged, counters.data_received), (1, 0));
}

#[test]
fn future_counts_from_its_own_issue() {
    let at = |delay| {
        let future = Future { target: address(3), delay };
        trace(&run(GIGABIT, &[Nop, future, Halt, Nop], &[]))[1..4].to_vec()
    };
    let halted = |next, overrun| {
        [
            (1, 1, 3, Outcome::Done),
            (2, 3, next, Outcome::Halted { overrun }),
            (3, next, next + 1, Outcome::Done),
        ]
    };
    assert_eq!(at(100), halted(101, false));
    assert_eq!(at(3), halted(4, false), "the cycle behind `halt`");
    assert_eq!(at(2), halted(4, true), "the cycle of `halt`");
    assert_eq!(at(0), halted(4, true));
}

#[test]
fn the_longest_countdowns_end_after_34_seconds() {
    let longest = [
        SyncSlave { timeout: u32::MAX },
        Future { target: address(3), delay: u32::MAX },
        Halt,
        Nop,
    ];
    let pair = run_program(&program(GIGABIT, &longest), &[], 9_000_000_000);
    let rows = [
        (0, 0, 4_294_967_295, Outcome::Synchronised(None)),
        (1, 4_294_967_295, 4_294_967_297, Outcome::Done),
        (2, 4_294_967_297, 8_589_934_590, Outcome::Halted { overrun: false }),
        (3, 8_589_934_590, 8_589_934_591, Outcome::Done),
    ];
    assert_eq!(trace(&pair)[..4], rows);
}

#[test]
fn a_second_future_replaces_the_countdown_and_its_label() {
    let futures = [
        Future { target: address(0), delay: 1_000 },
        Future { target: address(3), delay: 50 },
        Halt,
        on(Condition::Overrun, 4),
        on(Condition::Overrun, 0),
        Halt,
    ];
    let pair = run(GIGABIT, &futures, &[]);
    let rows = [
        (0, 0, 2, Outcome::Done),
        (1, 2, 4, Outcome::Replaced),
        (2, 4, 52, Outcome::Halted { overrun: false }),
        (3, 52, 55, Outcome::Branched(true)),
        // Evaluating it has cleared it.
        (4, 55, 58, Outcome::Branched(false)),
        (5, 58, 58, Outcome::Trapped(Trap::NoFuture)),
    ];
    assert_eq!(trace(&pair), rows);
    assert_eq!(pair.counters().overruns, 1);
}

#[test]
fn sync_slave_waits_from_its_cycle_to_that_of_its_timeout() {
    let first = |timeout, at| {
        let stimuli = [(at, Stimulus::Sync(77, ONE))];
        let pair = run(GIGABIT, &[SyncSlave { timeout }, Nop], &stimuli);
        let counters = pair.counters();
        let counts = (counters.rounds_seen, counters.sync_timeouts, counters.syncs_discarded);
        (trace(&pair)[0], counts)
    };
    let in_time = |next| ((0, 0, next, Outcome::Synchronised(Some(77))), (1, 0, 0));
    let late = |next| ((0, 0, next, Outcome::Synchronised(None)), (0, 1, 1));
    assert_eq!(first(10, 0), in_time(1));
    assert_eq!(first(10, 1), in_time(2));
    assert_eq!(first(10, 9), in_time(10));
    assert_eq!(first(10, 10), in_time(11));
    assert_eq!(first(10, 11), late(10));
    assert_eq!(first(1, 1), in_time(2));
    assert_eq!(first(0, 0), in_time(1));
    // It takes a cycle in any case, in which it does not wait.
    assert_eq!(first(0, 1), late(1));
}

#[test]
fn a_sync_slave_behind_another_takes_the_next_frame() {
    let program =
        [SyncSlave { timeout: 10 }, SyncSlave { timeout: 10 }, on(Condition::SyncTimeout, 2)];
    let at = |first, second| {
        let stimuli = [(first, Stimulus::Sync(1, ONE)), (second, Stimulus::Sync(2, ONE))];
        trace(&run(GIGABIT, &program, &stimuli))[..3].to_vec()
    };
    let rows = |first: Row, second: Row, is_timeout| {
        [first, second, (2, second.2, second.2 + 3, Outcome::Branched(is_timeout))]
    };
    let taken = |round| Outcome::Synchronised(Some(round));
    assert_eq!(at(4, 5), rows((0, 0, 5, taken(1)), (1, 5, 6, taken(2)), false));
    assert_eq!(at(4, 16), rows((0, 0, 5, taken(1)), (1, 5, 15, Outcome::Synchronised(None)), true));
    let timeout = (0, 0, 10, Outcome::Synchronised(None));
    assert_eq!(at(11, 12), rows(timeout, (1, 10, 12, taken(1)), false));
}

#[test]
fn a_second_master_is_one_that_begins_a_round_within_a_round() {
    let counted = |program: &[Instruction], stimuli: &[(u64, MacAddress)]| {
        let frame = |&(at, source): &(u64, MacAddress)| (at, Stimulus::Sync(0, source));
        let stimuli: Vec<_> = stimuli.iter().map(frame).collect();
        let pair = run(GIGABIT, program, &stimuli);
        (pair.counters().syncs_discarded, pair.counters().second_masters)
    };
    let slave = [SyncSlave { timeout: 1_000 }, SyncSlave { timeout: 1_000 }];
    assert_eq!(counted(&slave, &[(5, ONE), (900, ONE)]), (0, 0));
    // The next round may be another's.
    assert_eq!(counted(&slave, &[(5, ONE), (900, OTHER)]), (0, 0));
    assert_eq!(counted(&slave, &[(5, ONE), (900, OTHER), (1_800, ONE)]), (1, 1));
    assert_eq!(counted(&slave, &[(5, ONE), (900, OTHER), (1_800, OTHER)]), (1, 0));
    // To a master each one is another.
    assert_eq!(counted(&[SyncMaster, Nop], &[(5, ONE)]), (1, 1));
    // In the cycle in which the first round begins there is no round yet.
    assert_eq!(counted(&[SyncMaster, Nop], &[(0, ONE)]), (1, 0));
    assert_eq!(counted(&[Nop, Nop], &[(0, ONE), (5, OTHER)]), (2, 0));
}

/// Whether a guard is true, at cycle 0 behind inputs of this cycle.
fn holds(condition: Condition, stimuli: &[Stimulus]) -> bool {
    let stimuli: Vec<_> = stimuli.iter().map(|stimulus| (0, stimulus.clone())).collect();
    let truth = |branch: Instruction| {
        let pair = run(GIGABIT, &[branch, Nop, Nop, Nop], &stimuli);
        let rows = trace(&pair);
        let Outcome::Branched(is_true) = rows[0].3 else { panic!("{rows:?}") };
        let target = if is_true { 2 } else { 1 };
        assert_eq!(rows[0], (0, 0, 3, Outcome::Branched(is_true)));
        assert_eq!(rows[1], (target, 3, 4, Outcome::Done));
        is_true
    };
    let is_true = truth(on(condition, 2));
    assert_eq!(truth(unless(condition, 2)), !is_true);
    is_true
}

#[test]
fn guards_see_what_came_in_their_cycle() {
    assert!(holds(Condition::Always, &[]));
    assert!(!holds(Condition::Fresh(PAIR), &[]));
    assert!(holds(Condition::Fresh(PAIR), &[Stimulus::Data(PAIR, vec![0, 0])]));
    assert!(!holds(Condition::Fresh(SHORT), &[Stimulus::Data(PAIR, vec![0, 0])]));
    assert!(!holds(Condition::Flag(3), &[Stimulus::Flag(4, true)]));
    assert!(holds(Condition::Flag(15), &[Stimulus::Flag(15, true)]));
    assert!(!holds(Condition::Flag(3), &[Stimulus::Flag(3, true), Stimulus::Flag(3, false)]));
    assert!(!holds(Condition::LinkUp, &[]));
    assert!(holds(Condition::LinkUp, &[Stimulus::Link(true)]));
    for condition in
        [Condition::Received, Condition::SyncTimeout, Condition::Overrun, Condition::Transmitting]
    {
        assert!(!holds(condition, &[]), "{condition:?}");
    }
}

#[test]
fn words_are_compared_as_signed_and_as_unsigned_numbers() {
    use Relation::{AtMost, Below, Equal, Less, NotAbove};
    let word = |index| BufferWord { buffer: OUT, index };
    let minus_one = u32::MAX;
    for (left, right, held) in [
        (0, 0, vec![Equal, AtMost, NotAbove]),
        (1, 2, vec![Less, AtMost, Below, NotAbove]),
        (2, 1, vec![]),
        (minus_one, 1, vec![Less, AtMost]),
        (1, minus_one, vec![Below, NotAbove]),
        (minus_one, minus_one, vec![Equal, AtMost, NotAbove]),
        (0x8000_0000, 0x7f_ffff, vec![Less, AtMost]),
        // The least constant, extended by its sign.
        (0xff80_0000, 0xff80_0000, vec![Equal, AtMost, NotAbove]),
    ] {
        let written = [Stimulus::Write(OUT, vec![left, right])];
        for relation in [Equal, Less, AtMost, Below, NotAbove] {
            let words = Condition::Words { left: word(0), relation, right: word(1) };
            let value = right as i32;
            let immediate = Condition::Immediate { word: word(0), relation, value };
            for condition in [words, immediate] {
                let expected = held.contains(&relation);
                assert_eq!(holds(condition, &written), expected, "{condition:?}: {left} {right}");
            }
        }
    }
}

#[test]
fn a_counter_is_true_each_nth_time_since_it_was() {
    // A loop of three: every third, and never true because the first has just been, every second.
    let count = |every, target| on(Condition::Count { counter: 4, every }, target);
    let looped = [count(3, 1), on(Condition::Always, 0)];
    let truths = |pair: &Pair, address: usize, count: usize| -> Vec<bool> {
        let rows = trace(pair).into_iter().filter(|row| row.0 == address);
        rows.take(count).map(|row| row.3 == Outcome::Branched(true)).collect()
    };
    let pair = run(GIGABIT, &looped, &[]);
    assert_eq!(truths(&pair, 0, 7), [false, false, true, false, false, true, false]);
    // 1 2! 1 2! … by the second one, which sees each second evaluation.
    let shared = [count(5, 1), count(2, 2), on(Condition::Always, 0)];
    let pair = run(GIGABIT, &shared, &[]);
    assert_eq!(truths(&pair, 0, 3), [false; 3]);
    assert_eq!(truths(&pair, 1, 3), [true; 3]);
    // Three of five are more than two.
    let more = [count(5, 1), count(5, 2), count(5, 3), count(2, 4), count(2, 5), Nop];
    let pair = run(GIGABIT, &more, &[]);
    let branched: Vec<_> = trace(&pair)[..5].iter().map(|row| row.3).collect();
    assert_eq!(branched, [false, false, false, true, false].map(Outcome::Branched));
    let other = [count(1, 1), unless(Condition::Count { counter: 5, every: 2 }, 0), Nop];
    let pair = run(GIGABIT, &other, &[]);
    assert_eq!(truths(&pair, 0, 2), [true, true]);
    // `not` true, then `not` false: on.
    assert_eq!(truths(&pair, 1, 2), [true, false]);
}

#[test]
fn transmitting_is_from_the_issue_to_the_end_of_the_gap() {
    // Issued at 2, on the wire from 8 to 80, the gap to 92.
    let at = |nops: usize| {
        let mut program = vec![Create { buffer: OUT }, Send { message: PAIR }];
        program.extend(vec![Nop; nops]);
        program.push(on(Condition::Transmitting, 0));
        trace(&run_program(&self::program(GIGABIT, &program), &[], 300))[2 + nops]
    };
    assert_eq!(at(0), (2, 4, 7, Outcome::Branched(true)));
    assert_eq!(at(87), (89, 91, 94, Outcome::Branched(true)));
    assert_eq!(at(88), (90, 92, 95, Outcome::Branched(false)));
}

#[test]
fn received_and_sync_timeout_are_of_the_last_instruction() {
    let program = [
        Receive { message: PAIR, buffer: IN },
        on(Condition::Received, 2),
        Receive { message: SHORT, buffer: SHORT_IN },
        on(Condition::Received, 4),
        SyncSlave { timeout: 5 },
        on(Condition::SyncTimeout, 6),
        SyncSlave { timeout: 5 },
        on(Condition::SyncTimeout, 8),
    ];
    let stimuli = [(0, Stimulus::Data(PAIR, vec![1, 2])), (22, Stimulus::Sync(0, ONE))];
    let pair = run(GIGABIT, &program, &stimuli);
    let rows = [
        (0, 0, 4, Outcome::Received(true)),
        (1, 4, 7, Outcome::Branched(true)),
        (2, 7, 10, Outcome::Received(false)),
        (3, 10, 13, Outcome::Branched(false)),
        (4, 13, 18, Outcome::Synchronised(None)),
        (5, 18, 21, Outcome::Branched(true)),
        (6, 21, 23, Outcome::Synchronised(Some(0))),
        (7, 23, 26, Outcome::Branched(false)),
    ];
    assert_eq!(trace(&pair)[..8], rows);
}

#[test]
fn each_trap_stops_the_station() {
    let word = |buffer, index| BufferWord { buffer, index };
    let equal = |word| Condition::Immediate { word, relation: Relation::Equal, value: 0 };
    let words = |left, right| Condition::Words { left, relation: Relation::Equal, right };
    let one = |instruction| trapped(&run(GIGABIT, &[instruction, Nop], &[]));
    for (instruction, trap) in [
        (Halt, Trap::NoFuture),
        (Create { buffer: NO_BUFFER }, Trap::Buffer),
        (Send { message: NO_MESSAGE }, Trap::Message(NO_MESSAGE)),
        (Send { message: PAIR }, Trap::NothingCreated),
        (Receive { message: NO_MESSAGE, buffer: NO_BUFFER }, Trap::Message(NO_MESSAGE)),
        (Receive { message: PAIR, buffer: NO_BUFFER }, Trap::Buffer),
        // The application's.
        (Receive { message: PAIR, buffer: OUT }, Trap::Buffer),
        (Receive { message: PAIR, buffer: SHORT_IN }, Trap::Length),
        (on(Condition::Fresh(NO_MESSAGE), 0), Trap::Message(NO_MESSAGE)),
        (on(equal(word(NO_BUFFER, 0)), 0), Trap::Buffer),
        (on(equal(word(OUT, 2)), 0), Trap::Index),
        (on(words(word(OUT, 2), word(NO_BUFFER, 0)), 0), Trap::Index),
        (on(words(word(OUT, 1), word(NO_BUFFER, 0)), 0), Trap::Buffer),
        (on(words(word(OUT, 1), word(IN, 2)), 0), Trap::Index),
    ] {
        assert_eq!(one(instruction), (0, 0, trap), "{instruction:?}");
    }
    for (word, error) in [
        (8 << 58, WordError::Operation(8)),
        (7 << 58 | 9 << 32, WordError::Guard(9)),
        (7 << 58 | 16 << 38 | 6 << 32, WordError::Operand),
        (1, WordError::Reserved),
    ] {
        let pair = run_program(&words_of(GIGABIT, vec![word]), &[], 100);
        assert_eq!(trapped(&pair), (0, 0, Trap::Word(error)));
    }
    assert_eq!(trapped(&run(GIGABIT, &[on(Condition::Always, 4_095)], &[])), (4_095, 3, Trap::End));
    assert_eq!(trapped(&run(GIGABIT, &[], &[])), (0, 0, Trap::End));
    let full = vec![Nop; 4_096];
    assert_eq!(trapped(&run(GIGABIT, &full, &[])), (4_095, 4_096, Trap::End));
}

#[test]
fn a_trap_of_what_waits_is_found_at_its_issue_and_what_is_issued_leaves() {
    let create = Create { buffer: OUT };
    let send = Send { message: PAIR };
    // The send buffer is empty behind `send`; the gap is over at 92.
    let pair = run(GIGABIT, &[create, send, send], &[]);
    assert_eq!(trapped(&pair), (2, 86, Trap::NothingCreated));
    let pair = run(GIGABIT, &[create, send, Create { buffer: NO_BUFFER }], &[]);
    assert_eq!(trapped(&pair), (2, 80, Trap::Buffer));
    // At 4, before the preamble.
    let pair = run(GIGABIT, &[create, send, Halt], &[(500, Stimulus::Data(PAIR, vec![1, 2]))]);
    assert_eq!(trapped(&pair), (2, 4, Trap::NoFuture));
    assert_eq!(pair.interpreted.sent, [data(8, PAIR, &[0, 0])]);
    assert_eq!(pair.counters().data_received, 1);
    let pair = run(GIGABIT, &[create, Send { message: SHORT }], &[]);
    assert_eq!(trapped(&pair), (1, 2, Trap::Length));
    assert_eq!((pair.interpreted.sent.len(), pair.counters().data_sent), (0, 0));
}

#[test]
fn a_later_create_replaces_an_earlier_one() {
    let program = [Create { buffer: LONG_OUT }, Create { buffer: OUT }, Send { message: PAIR }];
    let pair = run(GIGABIT, &program, &[(0, Stimulus::Write(OUT, vec![3, 4]))]);
    assert_eq!(trace(&pair)[2], (2, 4, 6, sends(10)));
    assert_eq!(pair.interpreted.sent, [data(10, PAIR, &[3, 4])]);
}

#[test]
fn a_station_that_is_called_late_counts_its_late_slots() {
    let create = Create { buffer: OUT };
    let send = Send { message: PAIR };
    let mut station = Station::new(program(GIGABIT, &[create, send, create, send, SyncMaster]));
    let mut recorder = Recorder::default();
    // The first preamble begins at 8: in time. The others at 92 and 176.
    station.advance(Cycles(8), &mut recorder);
    assert_eq!(station.counters().transmissions_late, 0);
    station.advance(Cycles(177), &mut recorder);
    let counters = station.counters();
    assert_eq!(counters.transmissions_late, 2);
    assert_eq!((counters.lateness_max, counters.lateness_sum), (85, 86));
    let starts: Vec<_> = recorder.0.sent.iter().map(|frame| frame.at.0).collect();
    assert_eq!(starts, [8, 92, 176]);
}

#[test]
fn frames_out_of_the_order_of_time_are_counted_and_seen_from_the_next_instruction_on() {
    let receive = Receive { message: SHORT, buffer: SHORT_IN };
    let mut station = Station::new(program(GIGABIT, &[receive, receive, receive]));
    let mut recorder = Recorder::default();
    station.advance(Cycles(3), &mut recorder);
    // The second one has been carried out at 3.
    station.data_received(Cycles(3), SHORT, [1].into_iter());
    assert_eq!((station.counters().inputs_late, station.counters().inputs_early), (1, 0));
    // The third one is issued at 6.
    station.data_received(Cycles(4), SHORT, [2].into_iter());
    assert_eq!((station.counters().inputs_late, station.counters().inputs_early), (1, 0));
    station.data_received(Cycles(7), SHORT, [3].into_iter());
    assert_eq!((station.counters().inputs_late, station.counters().inputs_early), (1, 1));
    station.advance(Cycles(6), &mut recorder);
    let outcomes: Vec<_> = recorder.0.trace.iter().map(|entry| entry.outcome).collect();
    assert_eq!(outcomes, [false, false, true].map(Outcome::Received));
    assert_eq!(station.read(SHORT_IN), Ok(&[3][..]));
    // A round that began in time for a `sync slave` that has timed out.
    let mut station = Station::new(program(GIGABIT, &[SyncSlave { timeout: 5 }, Nop]));
    station.advance(Cycles(5), &mut recorder);
    station.sync_received(Cycles(4), 0, ONE);
    assert_eq!((station.counters().inputs_late, station.counters().syncs_discarded), (1, 1));
}

#[test]
fn one_call_carries_out_a_limited_number_of_instructions() {
    let mut station = Station::new(program(GIGABIT, &[on(Condition::Always, 0)]));
    let mut recorder = Recorder::default();
    station.advance(Cycles(1_000_000), &mut recorder);
    assert_eq!(recorder.0.trace.len(), INSTRUCTIONS_PER_ADVANCE);
    assert_eq!(station.next(), Cycles(3 * INSTRUCTIONS_PER_ADVANCE as u64));
}
