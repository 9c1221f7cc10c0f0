//! The view without a terminal: looks at programs, keys and sizes in, lines out.

use super::SortBy;
use super::row::{rate, short};
use super::view::{Style, Top, Wanted};
use clap::ValueEnum;
use onbeat::shared_log::{Counters, Identity};
use onbeat_model::record::Role;
use onbeat_model::time::Span;
use onbeat_model::units::StreamId;
use onbeat_run::inspect::{LiveEndpoint, Seen, Skipped};
use serde_json::{Value, json};
use unicode_width::UnicodeWidthStr;

const SECOND: Option<Span> = Some(Span::from_s(1));

fn end(pid: u32, channel: &str, role: Role, counters: Counters) -> LiveEndpoint {
    let identity = Identity { channel: channel.to_owned(), stream_id: StreamId(7), role };
    let (program, interval) = (format!("p{pid}"), Some(Span::from_ms(10)));
    LiveEndpoint { pid, uid: 0, program, identity, counters, interval, other_talker: None }
}

fn talker(pid: u32, sent: u64, held: u64) -> LiveEndpoint {
    let counters = Counters { sent, rate_exceeded: held, ..Counters::default() };
    end(pid, "c", Role::Talker, counters)
}

fn listener(pid: u32, received: u64, lost: u64) -> LiveEndpoint {
    let latency = 80_000 * i64::try_from(received).expect("few");
    let counters = Counters {
        received,
        lost,
        latency_sum_ns: latency,
        latency_worst_ns: 123_456,
        ..Counters::default()
    };
    end(pid, "c", Role::Listener, counters)
}

fn seen(ends: Vec<LiveEndpoint>) -> Seen {
    Seen { ends, skipped: Vec::new() }
}

fn new(sort: SortBy) -> Top {
    Top::new(Span::from_s(1), sort, 0)
}

/// A view after two looks, a second apart.
fn after(first: Vec<LiveEndpoint>, second: Vec<LiveEndpoint>) -> Top {
    let mut top = new(SortBy::Problems);
    top.update(None, seen(first));
    top.update(SECOND, seen(second));
    top
}

fn texts(top: &Top) -> Vec<String> {
    top.lines().into_iter().map(|line| line.text).collect()
}

/// The words of the line of a process.
fn words(top: &Top, pid: u32) -> String {
    let start = format!("p{pid} ");
    let texts = texts(top);
    let found = texts.iter().find(|text| text.starts_with(&start));
    let line = found.unwrap_or_else(|| panic!("no line of {pid}: {texts:?}"));
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The processes from the top down.
fn order(top: &Top) -> Vec<u32> {
    let number = |text: String| text.split_whitespace().next()?.strip_prefix('p')?.parse().ok();
    texts(top).into_iter().filter_map(number).collect()
}

#[test]
fn an_end_shows_its_rate_its_declared_rate_latencies_and_what_went_wrong() {
    let top = after(
        vec![talker(1, 100, 0), listener(2, 100, 1)],
        vec![talker(1, 199, 3), listener(2, 150, 5)],
    );
    assert_eq!(words(&top, 1), "p1 1 c talker 99.0 100 199 - - - - - 3 +3.00/s - -");
    let line = "p2 2 c listener 50.0 100 150 80.00µs 123.5µs 5 +4.00/s 0 0 - 0 0";
    assert_eq!(words(&top, 2), line);
    let sums = "per second: sent 99.0  received 50.0  lost 4.00  late 0  rejected 0  held 3.00";
    assert_eq!(texts(&top)[1], sums);
    assert_eq!(texts(&top)[0], "onbeat top: 2 endpoints of 2 programs, by problems, every 1 s");
}

#[test]
fn what_is_not_known_is_a_dash_and_never_nothing() {
    // The first look; an older library, which has neither interval nor latencies; no message.
    let mut top = new(SortBy::Pid);
    let old = || LiveEndpoint { interval: None, ..listener(3, 7, 0) };
    top.update(None, seen(vec![talker(1, 5, 0), listener(2, 0, 0), old()]));
    assert_eq!(words(&top, 1), "p1 1 c talker - 100 5 - - - - - 0 - -");
    assert_eq!(words(&top, 2), "p2 2 c listener - 100 0 - - 0 0 0 - 0 0");
    assert_eq!(words(&top, 3), "p3 3 c listener - - 7 - - 0 0 0 - 0 0");
    assert_eq!(texts(&top)[1].matches(" -").count(), 6);
    // Later: nothing came in the interval, so there is no mean.
    top.update(SECOND, seen(vec![talker(1, 5, 0), listener(2, 0, 0), old()]));
    assert_eq!(words(&top, 1), "p1 1 c talker 0 100 5 - - - - - 0 - -");
    assert_eq!(words(&top, 3), "p3 3 c listener 0 - 7 - - 0 0 0 - 0 0");
}

#[test]
fn the_mean_is_that_of_the_interval_and_the_worst_that_of_all() {
    let with = |received, sum, worst| {
        let mut end = listener(1, received, 0);
        (end.counters.latency_sum_ns, end.counters.latency_worst_ns) = (sum, worst);
        end
    };
    let mut top = after(vec![with(10, i64::MAX, 900)], vec![with(14, i64::MIN + 9, 900)]);
    assert!(words(&top, 1).contains(" 3ns 900ns "), "{}", words(&top, 1));
    top.update(SECOND, seen(vec![with(16, i64::MIN + 4, 900)]));
    assert!(words(&top, 1).contains(" -2ns 900ns "), "clocks differ: {}", words(&top, 1));
}

#[test]
fn programs_come_and_go_and_begin_again_without_a_negative_rate() {
    let mut top = after(vec![talker(1, 500, 9)], vec![talker(1, 20, 0), talker(2, 900, 0)]);
    assert_eq!(words(&top, 1), "p1 1 c talker - 100 20 - - - - - 0 - -");
    assert_eq!(words(&top, 2), "p2 2 c talker - 100 900 - - - - - 0 - -");
    top.update(SECOND, seen(vec![talker(2, 1_000, 0)]));
    assert_eq!(order(&top), [2]);
    top.update(SECOND, seen(Vec::new()));
    assert_eq!(
        texts(&top)[2],
        "No running program with channels, or none that --pid and --channel select."
    );
    top.update(SECOND, seen(vec![talker(2, 7, 0)]));
    assert_eq!(words(&top, 2), "p2 2 c talker - 100 7 - - - - - 0 - -");
}

#[test]
fn totals_are_counted_from_a_reset_and_from_the_start_of_one_that_begins_again() {
    let mut top = after(vec![listener(1, 10, 5)], vec![listener(1, 20, 8)]);
    assert!(top.press(Wanted::Reset));
    assert!(words(&top, 1).contains(" 0 80.00µs 123.5µs 0 +3.00/s 0 "), "{}", words(&top, 1));
    assert!(texts(&top)[0].contains("totals since reset"));
    top.update(SECOND, seen(vec![listener(1, 50, 10), listener(2, 4, 1)]));
    assert!(words(&top, 1).contains(" 30 80.00µs 123.5µs 2 +2.00/s 0 "), "{}", words(&top, 1));
    assert!(words(&top, 2).contains(" 4 - 123.5µs 1 0 "), "new: {}", words(&top, 2));
    top.update(SECOND, seen(vec![listener(1, 25, 9)]));
    assert!(words(&top, 1).contains(" 25 - 123.5µs 9 0 "), "again: {}", words(&top, 1));
    top.update(SECOND, seen(vec![listener(1, 99, 9)]));
    assert!(words(&top, 1).contains(" 99 80.00µs 123.5µs 9 0 "), "{}", words(&top, 1));
}

#[test]
fn problems_come_first_then_silence_held_writes_and_what_is_past() {
    let first = || {
        vec![
            talker(1, 5, 0),
            listener(2, 5, 40),
            talker(3, 5, 0),
            listener(4, 5, 0),
            listener(5, 5, 0),
            listener(6, 5, 0),
        ]
    };
    let mut second = first();
    for end in &mut second[..5] {
        end.counters.sent += 1;
        end.counters.received += 1;
    }
    second[2].counters.rate_exceeded += 700;
    second[3].counters.late += 2;
    second[4].counters.rejected[1] += 3;
    // 6 had messages before, and has none now.
    let top = after(first(), second);
    assert_eq!(order(&top), [5, 4, 6, 3, 2, 1]);
    let styles = top.lines().into_iter().skip(2).map(|line| line.style);
    let bold = [Style::Bold; 4];
    let expected = [&[Style::Heading], &bold[..], &[Style::Plain; 2]].concat();
    assert_eq!(styles.collect::<Vec<_>>(), expected);
}

#[test]
fn silence_needs_an_interval_of_two_messages() {
    let slow = || LiveEndpoint { interval: Some(Span::from_ms(501)), ..talker(1, 5, 0) };
    let fast = || LiveEndpoint { interval: Some(Span::from_ms(500)), ..talker(2, 5, 0) };
    let never = || talker(3, 0, 0);
    let top = after(vec![slow(), fast(), never()], vec![slow(), fast(), never()]);
    let document: Value = serde_json::from_str(&top.json(Span::from_s(1))).expect("JSON");
    let silent =
        |at: usize| (&document["endpoints"][at]["pid"], &document["endpoints"][at]["silent"]);
    assert_eq!(silent(0), (&json!(2), &json!(true)));
    assert_eq!(silent(1), (&json!(1), &json!(false)));
    assert_eq!(silent(2), (&json!(3), &json!(false)));
}

#[test]
fn each_order_has_its_key_and_all_come_round() {
    let first = || vec![listener(7, 0, 0), listener(8, 0, 0), listener(9, 0, 0)];
    let mut second = first();
    let [a, b, c] = second.as_mut_slice() else { unreachable!() };
    (a.program, a.identity.channel) = ("p8a".to_owned(), "z".to_owned());
    (b.program, b.identity.channel) = ("p9a".to_owned(), "y".to_owned());
    (c.program, c.identity.channel) = ("p7a".to_owned(), "x".to_owned());
    (a.counters.received, b.counters.received, c.counters.received) = (10, 30, 20);
    (a.counters.latency_sum_ns, b.counters.latency_sum_ns) = (500, 300);
    (a.counters.lost, c.counters.lost) = (3, 9);
    b.counters.rejected[0] = 1;
    let mut top = after(first(), second);
    let pids = |top: &Top| -> Vec<i64> {
        let document: Value = serde_json::from_str(&top.json(Span::from_s(1))).expect("JSON");
        let ends = document["endpoints"].as_array().expect("endpoints");
        ends.iter().filter_map(|end| end["pid"].as_i64()).collect()
    };
    let mut seen = Vec::new();
    for _ in SortBy::value_variants() {
        seen.push(pids(&top));
        top.press(Wanted::NextOrder);
    }
    let expected = [
        [9, 7, 8], // problems: 9, 3 and 1
        [8, 9, 7], // rate
        [7, 8, 9], // latency: 50, 10 and 0
        [9, 7, 8], // lost
        [8, 9, 7], // rejected, then by program
        [9, 7, 8], // held: by program
        [9, 7, 8], // program
        [7, 8, 9], // pid
        [9, 8, 7], // channel
    ];
    assert_eq!(seen, expected);
    assert_eq!(pids(&top), seen[0]);
}

#[test]
fn nothing_scrolls_beyond_the_ends_and_sizes_are_kept_to() {
    let ends = || (1..=50).map(|pid| talker(pid, 1, 0)).collect::<Vec<_>>();
    let mut top = after(ends(), ends());
    top.resize(80, 24);
    for key in [Wanted::NextOrder; 6] {
        top.press(key); // by program: p1, p10, p11, …
    }
    let first = |top: &Top| order(top)[0];
    assert_eq!((order(&top).len(), first(&top)), (20, 1));
    assert!(texts(&top)[0].contains("rows 1 to 20"), "{}", texts(&top)[0]);
    for (key, expected) in [
        (Wanted::Up, 1),
        (Wanted::Down, 10),
        (Wanted::PageDown, 29),
        (Wanted::End, 37),
        (Wanted::Down, 37),
        (Wanted::PageUp, 19),
        (Wanted::Home, 1),
    ] {
        top.press(key);
        assert_eq!(first(&top), expected, "{key:?}");
    }
    top.press(Wanted::End);
    top.resize(80, 60);
    assert_eq!((order(&top).len(), first(&top)), (50, 1));
    for (columns, lines) in [(0, 0), (1, 1), (5, 3), (20, 4), (39, 7), (40, 8), (80, 24), (300, 9)]
    {
        top.resize(columns, lines);
        for key in [Wanted::End, Wanted::PageUp, Wanted::Home, Wanted::PageDown] {
            top.press(key);
            let all = texts(&top);
            assert!(all.len() <= lines, "{columns} {lines}: {all:?}");
            assert!(all.iter().all(|text| text.width() <= columns), "{columns} {lines}: {all:?}");
        }
    }
    top.update(SECOND, seen(vec![talker(1, 2, 0)]));
    assert_eq!(order(&top), [1], "fewer ends than were scrolled over");
}

#[test]
fn a_narrow_terminal_keeps_names_rates_and_losses() {
    let mut end = listener(4_194_304, 10, 7);
    (end.program, end.identity.channel) = ("p_of_a_long_na".into(), "c".repeat(32));
    let mut top = after(vec![end.clone()], vec![end]);
    top.resize(200, 24);
    assert!(!texts(&top)[0].contains("hidden"));
    top.resize(80, 24);
    let expected = [
        "program          pid channel      E msg/s mean   worst lost late rej. held",
        "p_of_a_long… 4194304 ccccccccccc… L     0    - 123.5µs    7    0    0    -",
    ];
    assert_eq!(texts(&top)[2..4], expected);
    top.resize(40, 24);
    let narrow = texts(&top);
    for word in ["program", "channel", "msg/s", "lost"] {
        assert!(narrow[2].contains(word), "{narrow:?}");
    }
    assert!(narrow[3].contains("p_of_a_…") && narrow[3].contains("ccccccc…"), "{narrow:?}");
}

#[test]
fn names_cannot_steer_the_terminal_nor_break_lines() {
    let mut hostile = end(1, "a\x1b[2J\r\n\u{9b}1m\u{202e}x", Role::Talker, Counters::default());
    hostile.program = "p\x1b]0;t\x07\t漢字\u{301}".to_owned();
    let mut top = new(SortBy::Problems);
    let skipped = vec![Skipped { uid: 5, why: "x\x1b[31m\ny".to_owned() }; 2];
    top.update(None, Seen { ends: vec![hostile], skipped });
    for size in [Some((200, 24)), Some((60, 24)), Some((30, 10)), None] {
        if let Some((columns, lines)) = size {
            top.resize(columns, lines);
        }
        for line in top.lines() {
            let bad = |c: char| c.is_control() || matches!(c, '\u{202a}'..='\u{202e}');
            assert!(!line.text.contains(bad), "{:?}", line.text);
        }
    }
    assert_eq!(texts(&top)[2], "not shown: user 5: x\u{fffd}[31m\u{fffd}y (…");
    let document: Value = serde_json::from_str(&top.json(Span::from_s(1))).expect("JSON");
    assert_eq!(document["endpoints"][0]["channel"], "a\x1b[2J\r\n\u{9b}1m\u{202e}x");
    assert_eq!(top.json(Span::from_s(1)).lines().count(), 1);
}

#[test]
fn counts_that_lie_do_no_harm() {
    let all = Counters {
        sent: u64::MAX,
        received: u64::MAX,
        lost: u64::MAX,
        late: u64::MAX,
        expired: u64::MAX,
        duplicate: u64::MAX,
        rate_exceeded: u64::MAX,
        rejected: [u64::MAX; 10],
        breaks: u64::MAX,
        unrecorded: u64::MAX,
        latency_sum_ns: i64::MIN,
        latency_worst_ns: i64::MIN,
    };
    let ends = |counters| {
        let mut listener = end(2, "c", Role::Listener, counters);
        listener.interval = Some(Span::from_ns(i64::MAX));
        vec![end(1, "c", Role::Talker, counters), listener]
    };
    let mut top = after(ends(Counters::default()), ends(all));
    top.update(Some(Span::from_ns(1)), seen(ends(Counters::default())));
    top.update(Some(Span::from_ns(1)), seen(ends(all)));
    top.update(Some(Span::ZERO), seen(ends(all)));
    top.press(Wanted::Reset);
    top.update(Some(Span::from_ns(-5)), seen(ends(all)));
    assert_eq!(texts(&top).len(), 5);
}

#[test]
fn pausing_is_told_and_ends_and_quitting_ends_all() {
    let mut top = after(vec![talker(1, 1, 0)], vec![talker(1, 2, 0)]);
    assert!(!top.is_paused());
    assert!(top.press(Wanted::Pause) && top.is_paused());
    assert!(texts(&top)[0].starts_with("onbeat top (paused): 1 endpoint of 1 program, "));
    assert!(top.press(Wanted::Pause) && !top.is_paused());
    assert!(!top.press(Wanted::Quit));
}

#[test]
fn numbers_have_few_digits_and_are_the_nearest() {
    let per_s = |count, ms| rate(count, Span::from_ms(ms));
    for (text, expected) in [
        (per_s(0, 1_000), "0"),
        (per_s(1, 1_000_000), "<0.01"),
        (per_s(1, 4_000), "0.25"),
        (per_s(9_994, 1_000_000), "9.99"),
        (per_s(9_996, 1_000_000), "10.0"),
        (per_s(50, 1_001), "50.0"),
        (per_s(9_996, 100_000), "100"),
        (per_s(1_000, 1_001), "999"),
        (per_s(5, 0), "-"),
        (short(Span::from_ns(999)), "999ns"),
        (short(Span::from_ns(1_000)), "1.000µs"),
        (short(Span::from_ns(80_864)), "80.86µs"),
        (short(Span::from_ns(999_949)), "999.9µs"),
        (short(Span::from_ns(999_950)), "1.000ms"),
        (short(Span::from_ns(-4_942_300)), "-4.942ms"),
        (short(Span::from_ns(265_291_730)), "265.3ms"),
        (short(Span::from_ns(i64::MIN)), "-9223372036s"),
    ] {
        assert_eq!(text, expected);
    }
}
