//! What an actor wrote down, as data.

use std::collections::BTreeMap;

/// When something happened: by the host's clock, and in network time; before the start neither is
/// known.
pub(super) type When = Option<(i64, i64)>;

/// A message that a program read.
#[derive(Clone, Debug)]
pub(super) struct ReadMessage {
    pub(super) channel: String,
    pub(super) capture: i64,
    pub(super) value: String,
    pub(super) latency: i64,
    pub(super) arrived: i64,
    pub(super) age: i64,
    pub(super) flags: u32,
    /// The step that read it.
    pub(super) how: String,
    /// Which opening of the end read it, from 0.
    pub(super) opening: usize,
}

/// A time during which an end was open.
#[derive(Clone, Debug, Default)]
pub(super) struct Opening {
    /// When it was opened.
    pub(super) from: When,
    /// Whether more messages were taken than were read: the newest of several, or by a meeting.
    pub(super) takes_more: bool,
}

/// A log, by what it tells.
#[derive(Clone, Debug, Default)]
pub(super) struct Account {
    /// Capture and value of what it wrote, by channel.
    pub(super) wrote: BTreeMap<String, Vec<(i64, String)>>,
    /// How many messages it may have written more, by channel.
    pub(super) unsure: BTreeMap<String, usize>,
    /// Channels on which the library decides what is written.
    pub(super) meets: Vec<String>,
    pub(super) reads: Vec<ReadMessage>,
    /// Ends by role and channel.
    pub(super) openings: BTreeMap<(bool, String), Vec<Opening>>,
    /// What it did that must end the run.
    pub(super) fatal: Option<String>,
    /// What it did against the protocol.
    pub(super) misdeed: Option<String>,
    /// What should not have happened to it.
    pub(super) errors: Vec<String>,
    /// All times by thread, in the order of the lines.
    pub(super) times: BTreeMap<usize, Vec<(i64, i64)>>,
    /// Targets of sleeps, and when they ended.
    pub(super) slept: Vec<(i64, i64)>,
    /// Declared work, when it began, and when it ended.
    pub(super) worked: Vec<(i64, i64, i64)>,
}

impl Account {
    pub(super) fn read(text: &str) -> Self {
        let mut log = Self::default();
        for line in text.lines() {
            log.line(line);
        }
        log
    }

    fn line(&mut self, line: &str) {
        let words: Vec<&str> = line.split(' ').collect();
        let [thread, local, network, rest @ ..] = &words[..] else { return };
        let when = local.parse::<i64>().ok().zip(network.parse::<i64>().ok());
        if let (Ok(thread), Some(when)) = (thread.parse(), when) {
            self.times.entry(thread).or_default().push(when);
        }
        let number = |word: &str| word.parse::<i64>().unwrap_or(0);
        match rest {
            ["opened", role, channel] => {
                let key = (*role == "talker", (*channel).to_owned());
                self.openings
                    .entry(key)
                    .or_default()
                    .push(Opening { from: when, ..Opening::default() });
            }
            ["wrote", channel, capture, value, rest @ ..] => {
                if let (["sure"], Some(count)) = (rest, self.unsure.get_mut(*channel)) {
                    *count = count.saturating_sub(1);
                }
                let all = self.wrote.entry((*channel).to_owned()).or_default();
                all.push((number(capture), (*value).to_owned()));
            }
            ["unsure", channel] => {
                *self.unsure.entry((*channel).to_owned()).or_default() += 1;
            }
            ["unread", channel] => self.takes_more(channel),
            ["meets", talker, listener] => {
                self.meets.push((*talker).to_owned());
                self.takes_more(listener);
            }
            ["read", channel, capture, value, latency, arrived, age, _, _, flags, how] => {
                if *how == "read-latest" {
                    self.takes_more(channel);
                }
                let openings = self.openings.get(&(false, (*channel).to_owned()));
                self.reads.push(ReadMessage {
                    channel: (*channel).to_owned(),
                    capture: number(capture),
                    value: (*value).to_owned(),
                    latency: number(latency),
                    arrived: number(arrived),
                    age: number(age),
                    flags: number(flags) as u32,
                    how: (*how).to_owned(),
                    opening: openings.map_or(0, |all| all.len().saturating_sub(1)),
                });
            }
            ["fatal", ..] => self.fatal = Some(rest[1..].join(" ")),
            ["misdeed", what] => self.misdeed = Some((*what).to_owned()),
            ["error", ..] => self.errors.push(rest[1..].join(" ")),
            ["forked", "0"] | ["shrunk", _] => {}
            ["forked", _] => self.errors.push("a forked child was not refused".to_owned()),
            ["woke", target] => self.slept.extend(when.map(|(now, _)| (number(target), now))),
            ["worked", ns, from] => {
                self.worked.extend(when.map(|(_, now)| (number(ns), number(from), now)));
            }
            _ => {}
        }
    }

    fn takes_more(&mut self, channel: &str) {
        let openings = self.openings.get_mut(&(false, channel.to_owned()));
        if let Some(last) = openings.and_then(|all| all.last_mut()) {
            last.takes_more = true;
        }
    }
}
