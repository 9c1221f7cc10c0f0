//! Scripts that tune a machine: what they say against what they do. It is read, not run: whatever
//! depends on a variable is left alone.

use super::evaluation::Evaluation;
use super::facts::Facts;
use super::finding::{Area, Check, Finding, Need, State};
use super::requirements::Requirements;
use super::time;
use onbeat_run::machine::CpuList;

/// How many commands after a message the write that it speaks of may come.
const NEAR: usize = 3;
/// Entries of a priority map (`TC_QOPT_BITMASK` + 1 of the kernel's pkt_sched.h).
const ENTRIES: usize = 16;
/// Rates of links in kbit/s, which is what `tc` takes numbers without a unit for.
const RATES_KBIT: [i64; 7] =
    [10_000, 100_000, 1_000_000, 2_500_000, 5_000_000, 10_000_000, 25_000_000];

static MESSAGE: Check = Check {
    id: "script.affinity",
    area: Area::Script,
    what: "affinity as announced",
    against: &[Need::Wakeup],
    why: "The message or comment names other CPUs than the command writes: one of the two is \
          wrong, and readers of the log believe the message.",
    fix: "Make both agree; name CPUs as a list, and write smp_affinity_list.",
    reboot: false,
};
static FORM: Check = Check {
    id: "script.mask-or-list",
    area: Area::Script,
    what: "mask or list",
    against: &[Need::Wakeup],
    why: "smp_affinity takes a hexadecimal mask, smp_affinity_list a list of CPUs: `2` is CPU 1 in \
          the first and CPU 2 in the second.",
    fix: "Write lists to smp_affinity_list, masks to smp_affinity.",
    reboot: false,
};
static MAP: Check = Check {
    id: "script.priority-map",
    area: Area::Script,
    what: "entries of the priority map",
    against: &[Need::Network],
    why: "A map has 16 entries, one for each priority. Omitted entries are class 0, often the \
          highest: these frames then share a class with reserved frames.",
    fix: "Give all 16 entries: map 3 3 1 0 2 2 2 2 2 2 2 2 2 2 2 2.",
    reboot: false,
};
static CLASSES: Check = Check {
    id: "script.classes",
    area: Area::Script,
    what: "classes of the qdisc",
    against: &[Need::Network],
    why: "The map names a class that does not exist, or the number of queues differs from the \
          number of classes: tc refuses it, and the script continues without the qdisc.",
    fix: "Make num_tc, the entries of map and the number of queues agree.",
    reboot: false,
};
static SLOPES: Check = Check {
    id: "script.slopes",
    area: Area::Script,
    what: "slopes of the shaper",
    against: &[Need::Network],
    why: "sendSlope is idleSlope minus the link's rate (802.1Q-2022 8.6.8.2); with another value \
          the class gets another bandwidth than stated.",
    fix: "sendslope = idleslope - rate of the link, in kbit/s.",
    reboot: false,
};
static HANDLE: Check = Check {
    id: "script.handle",
    area: Area::Script,
    what: "handles of qdiscs",
    against: &[Need::Network],
    why: "The kernel numbers handles from 8001 on if none are given: on the script's second run \
          the qdisc has another handle, and the parent that the script names does not exist.",
    fix: "Give the root qdisc a handle: … root handle 100: mqprio …, then parent 100:1.",
    reboot: false,
};
static THROTTLING: Check = Check {
    id: "script.throttling",
    area: Area::Script,
    what: "throttling switched off",
    against: &[],
    why: "Since Linux 6.12 the fair server takes 50 ms of each second regardless; and a real-time \
          task that never sleeps blocks the machine.",
    fix: "Keep sched_rt_runtime_us at 950000, and let tasks sleep.",
    reboot: false,
};

pub(super) static CHECKS: [&Check; 7] =
    [&MESSAGE, &FORM, &MAP, &CLASSES, &SLOPES, &HANDLE, &THROTTLING];

/// A command, or a comment, with the line that it begins on.
struct Command<'a> {
    line: usize,
    words: Vec<&'a str>,
}

/// Looks through a script, or a configuration file of ptp4l, which has a section `[global]`.
/// `name` is what findings call it. Without a system nothing blocks.
pub fn lint(name: &str, text: &str, requirements: Option<&Requirements>) -> Vec<Finding> {
    let (facts, general) = (Facts::default(), Requirements::default());
    let mut evaluation = Evaluation::new(&facts, requirements.unwrap_or(&general));
    if text.lines().any(|line| line.trim() == "[global]") {
        let key = |line: &str| line.split_whitespace().next() == Some("neighborPropDelayThresh");
        let line = text.lines().position(key).map_or(1, |at| at + 1);
        time::threshold(&mut evaluation, &format!("{name}:{line}"), &time::settings(text));
        return evaluation.into_findings();
    }
    let joined = join(text);
    let commands: Vec<Command<'_>> = joined
        .iter()
        .map(|(line, text)| Command { line: *line, words: words(text) })
        .filter(|command| !command.words.is_empty())
        .collect();
    for (at, command) in commands.iter().enumerate() {
        let place = format!("{name}:{}", command.line);
        affinity(&mut evaluation, &place, &commands[at.saturating_sub(NEAR)..=at]);
        classes(&mut evaluation, &place, command);
        shaper(&mut evaluation, &place, command, &commands[..at]);
        throttling(&mut evaluation, &place, command);
    }
    evaluation.into_findings()
}

/// Lines with those that continue them behind a backslash, and the number of the first.
fn join(text: &str) -> Vec<(usize, String)> {
    let mut joined: Vec<(usize, String)> = Vec::new();
    let mut goes_on = false;
    for (number, line) in (1..).zip(text.lines()) {
        let (line, next) = match line.trim_end().strip_suffix('\\') {
            Some(line) => (line, true),
            None => (line, false),
        };
        match joined.last_mut().filter(|_| goes_on) {
            Some((_, before)) => {
                before.push(' ');
                before.push_str(line);
            }
            None => joined.push((number, line.to_owned())),
        }
        goes_on = next;
    }
    joined
}

/// Words without quotes; `>` is always one of its own.
fn words(line: &str) -> Vec<&str> {
    let quotes = |c: char| c == '"' || c == '\'' || c == ';';
    let mut found = Vec::new();
    for word in line.split_whitespace() {
        match word.split_once('>') {
            Some((before, after)) => found.extend([before, ">", after.trim_start_matches('>')]),
            None => found.push(word),
        }
    }
    let words = found.into_iter().map(|word| word.trim_matches(quotes));
    words.filter(|word| !word.is_empty()).collect()
}

impl Command<'_> {
    /// The word after a word.
    fn after(&self, word: &str) -> Option<&str> {
        let at = self.words.iter().position(|w| *w == word)?;
        self.words.get(at + 1).copied()
    }

    /// All whole numbers right after a word.
    fn numbers_after(&self, word: &str) -> Option<Vec<i64>> {
        let at = self.words.iter().position(|w| *w == word)?;
        Some(self.words[at + 1..].iter().map_while(|word| word.parse().ok()).collect())
    }

    /// What `echo VALUE > …/FILE` and `echo VALUE | tee …/FILE` write, and the file's name.
    fn writes(&self) -> Option<(&str, &str)> {
        if *self.words.first()? != "echo" {
            return None;
        }
        let at = self.words.iter().position(|word| *word == ">" || *word == "tee")?;
        let file = self.words.get(at + 1..)?.iter().find(|word| !word.starts_with('-'))?;
        Some((self.words.get(1)?, file.rsplit('/').next()?))
    }

    /// The processors, or the mask, that a message or a comment announces: its last number.
    fn announces(&self) -> Option<(&str, bool)> {
        let first = self.words.first()?;
        let is_message = matches!(*first, "echo" | "printf") && self.writes().is_none();
        if !is_message && !first.starts_with('#') {
            return None;
        }
        let text = self.words.join(" ").to_lowercase();
        let names = ["cpu", "core", "processor"].iter().any(|word| text.contains(word));
        if !names && !text.contains("affinity") && !text.contains("mask") {
            return None;
        }
        let number = |word: &&&str| {
            let digits = word.trim_end_matches(['.', ',', ':']);
            digits.starts_with(|c: char| c.is_ascii_digit())
                && digits.chars().all(|c| c.is_ascii_hexdigit() || ",-x".contains(c))
        };
        let found = self.words.iter().rev().find(number)?;
        Some((found.trim_end_matches(['.', ',', ':']), names))
    }
}

/// The last one of the commands may write an affinity that one before it announces.
fn affinity(evaluation: &mut Evaluation<'_>, place: &str, commands: &[Command<'_>]) {
    let Some((last, before)) = commands.split_last() else { return };
    let Some((value, file)) = last.writes() else { return };
    let is_mask = match file {
        "smp_affinity" | "default_smp_affinity" => true,
        "smp_affinity_list" => false,
        _ => return,
    };
    if value.contains('$') {
        return;
    }
    let bare = value.trim_start_matches("0x");
    let looks_like_list =
        value.contains('-') || value.split(',').any(|g| g.len() < 8) && value.contains(',');
    let looks_like_mask =
        value.starts_with("0x") || value.contains(|c: char| c.is_ascii_alphabetic());
    if is_mask && looks_like_list || !is_mask && looks_like_mask {
        let wanted = if is_mask { "a mask, such as c" } else { "a list, such as 2-3" };
        return evaluation.say_of(
            place,
            &FORM,
            State::Advice,
            format!("{value} to {file}"),
            wanted,
        );
    }
    let written = match is_mask {
        true => CpuList::from_mask(bare).ok(),
        false => value.parse().ok(),
    };
    let announced = before.iter().rev().find_map(|command| command.announces());
    let (Some(written), Some((said, names))) = (written, announced) else { return };
    // A message that says neither `processor` nor the like may mean either.
    let list = said.parse::<CpuList>().ok();
    let mask = CpuList::from_mask(said.trim_start_matches("0x")).ok();
    let right = list.is_some_and(|list| list == written)
        || !names && mask.is_some_and(|mask| mask == written);
    let state = if right { State::Ok } else { State::Advice };
    let value = format!("writes {value} (CPUs {written})");
    evaluation.say_of(place, &MESSAGE, state, value, format!("{said}, as it says"));
}

fn classes(evaluation: &mut Evaluation<'_>, place: &str, command: &Command<'_>) {
    let is_one = command.words.iter().any(|word| matches!(*word, "mqprio" | "taprio"));
    let (true, Some(map)) = (is_one, command.numbers_after("map")) else { return };
    let state = if map.len() == ENTRIES { State::Ok } else { State::Advice };
    let shown = map.iter().map(i64::to_string).collect::<Vec<_>>().join(" ");
    evaluation.say_of(place, &MAP, state, format!("{} entries: {shown}", map.len()), ENTRIES);
    let Some(classes) = command.after("num_tc").and_then(|word| word.parse::<i64>().ok()) else {
        return;
    };
    let highest = map.iter().max().copied().unwrap_or(0);
    let start = command.words.iter().position(|word| *word == "queues");
    let queues = start.map(|at| {
        command.words[at + 1..].iter().take_while(|word| word.contains('@')).count() as i64
    });
    let right = highest < classes && queues.is_none_or(|queues| queues == classes);
    let queues = queues.map_or(String::new(), |queues| format!(", {queues} queues"));
    let value = format!("{classes} classes, highest in the map {highest}{queues}");
    let state = if right { State::Ok } else { State::Advice };
    evaluation.say_of(place, &CLASSES, state, value, "as many queues as classes, map below that");
}

fn shaper(
    evaluation: &mut Evaluation<'_>,
    place: &str,
    command: &Command<'_>,
    before: &[Command<'_>],
) {
    if !command.words.contains(&"cbs") {
        return;
    }
    let number = |word| command.after(word).and_then(|word| word.parse::<i64>().ok());
    if let (Some(idle), Some(send)) = (number("idleslope"), number("sendslope")) {
        let right = RATES_KBIT.contains(&(idle - send));
        let state = if right { State::Ok } else { State::Advice };
        let value = format!("for a link of {} kbit/s", idle - send);
        evaluation.say_of(place, &SLOPES, state, value, "the rate of a link");
    }
    let parent = command.after("parent").and_then(|parent| parent.split(':').next());
    let Some(parent) = parent.filter(|parent| !parent.contains('$')) else { return };
    let given = |command: &Command<'_>| {
        command.after("handle").is_some_and(|handle| handle.trim_end_matches(':') == parent)
    };
    let right = before.iter().any(given);
    let state = if right { State::Ok } else { State::Advice };
    let value = match right {
        true => format!("{parent}: is given"),
        false => format!("no qdisc before is given the handle {parent}:"),
    };
    evaluation.say_of(place, &HANDLE, state, value, "the handle of the root qdisc");
}

fn throttling(evaluation: &mut Evaluation<'_>, place: &str, command: &Command<'_>) {
    let written = command.writes().is_some_and(|w| w == ("-1", "sched_rt_runtime_us"));
    let set = command.words.contains(&"kernel.sched_rt_runtime_us=-1");
    if written || set {
        evaluation.say_of(place, &THROTTLING, State::Advice, "-1", "950000");
    }
}
