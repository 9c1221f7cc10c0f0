//! What the programs of a drawn system do, step by step. A script is a file with a step on each
//! line, as JSON; so whoever reads a failing seed sees what its programs did.

use serde::{Deserialize, Serialize};

/// One step of a thread of an actor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case")]
#[expect(missing_docs, reason = "what a step says of itself says what is in it")]
pub enum ActorStep {
    /// Lets so many milliseconds of the machine's time pass, joined or not: no time of the run.
    Dawdle { ms: i64 },
    /// Joins the run.
    Join,
    /// Opens the writing end of a channel.
    OpenTalker { slot: usize, channel: String, size: u32 },
    /// Opens a reading end of a channel.
    OpenListener { slot: usize, channel: String, size: u32 },
    /// Opens what must be refused: an end of another host, of another size, or of no channel.
    OpenWrong { talker: bool, channel: String, size: u32 },
    /// Ends set-up.
    Start,
    /// Writes and waits for the rate.
    Write { slot: usize },
    /// Writes unless the rate is exceeded.
    TryWrite { slot: usize },
    /// Writes twice, and thrice, at one instant, whatever the rate says.
    WriteTwice { slot: usize },
    /// Writes and waits until capture + D.
    WriteWait { slot: usize },
    /// Writes so that it leaves so many nanoseconds from now.
    WriteAt { slot: usize, ahead_ns: i64 },
    /// Waits for a message without end.
    Read { slot: usize },
    /// Waits for a message for so long.
    ReadFor { slot: usize, ns: i64 },
    /// Takes a message if there is one.
    TryRead { slot: usize },
    /// Takes all messages that are there.
    Drain { slot: usize },
    /// Takes the newest message.
    ReadLatest { slot: usize },
    /// Waits for a message, then until its capture + D.
    ReadWait { slot: usize },
    /// Waits for a message of one of several ends.
    Select { slots: Vec<usize>, ns: i64 },
    /// Meets the program at the other ends of two channels, for at most so long.
    Rendezvous { talker: usize, listener: usize, ns: i64 },
    /// Until so long from now calls at an end wait.
    Limit { slot: usize, ns: i64 },
    /// Sleeps for so long; less than nothing is a deadline in the past.
    Sleep { ns: i64 },
    /// Sleeps until an instant of its clock, which may be past.
    SleepTo { ns: i64 },
    /// Declares work.
    Work { ns: i64 },
    /// Declares work with a limit and an urgency.
    WorkUntil { ns: i64, limit_ns: i64, priority: u8 },
    /// Closes an end.
    Close { slot: usize },
    /// Starts the thread with this script.
    Spawn { script: usize },
    /// Waits for a thread that it has started.
    JoinThread { script: usize },
    /// Waits until another thread wakes it, for so long.
    Await { ns: i64 },
    /// Wakes the threads that wait.
    Wake,
    /// Starts a process that stays when the program is gone.
    Child,
    /// Forks; the child uses what its parent opened, and exits.
    Fork,
    /// Asks the run so often at one instant, for nothing.
    Pester { count: u32 },
    /// Prints.
    Say { lines: u32 },
    /// The same again and again.
    Repeat { times: u32, steps: Vec<ActorStep> },
    /// Leaves the run, lets so many milliseconds pass, and exits.
    Leave { ms: i64 },
    /// Exits with a status, in the middle of the run.
    Exit { code: i32 },
    /// Dies by a signal.
    Die { signal: i32 },
    /// Does not come back.
    Hang,
    /// Asks for ever without letting time pass.
    Livelock,
    /// When the run is over, continues all the same.
    Linger,
    /// Speaks the protocol of the run wrongly. Only the first step may be that.
    Rogue { at: ProtocolState, how: Misdeed },
}

/// How far a rogue keeps to the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProtocolState {
    /// Nothing was said yet.
    Door,
    /// It has greeted and has the socket of its main thread.
    Greeted,
    /// Its main thread has begun.
    Begun,
    /// It has opened the ends of its host.
    Opened,
    /// The run has begun, and it has slept for a while.
    Running,
}

impl ProtocolState {
    /// All of them, in order.
    pub const ALL: [Self; 5] =
        [Self::Door, Self::Greeted, Self::Begun, Self::Opened, Self::Running];
}

/// What a rogue says or does then.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "kebab-case")]
#[expect(missing_docs, reason = "what a step says of itself says what is in it")]
pub enum Misdeed {
    /// Random octets.
    Garbage { octets: usize },
    /// A packet without octets.
    Empty,
    /// A packet longer than any may be.
    Oversized { octets: usize },
    /// A request of this number without its last octet.
    Truncated { request: u8 },
    /// A request of this number with an octet more.
    Trailing { request: u8 },
    /// A request with a number that none has.
    Unknown { request: u8 },
    /// Greets as of another version.
    Version { version: u16 },
    /// Greets where it should not.
    HelloAgain,
    /// Begins where it should not.
    BeginAgain,
    /// Asks to sleep, whether it is time for that or not.
    Premature,
    /// Uses an end that it has not opened.
    ForeignEnd { request: u8, end: u32 },
    /// Sends octets that are no frame of its channel.
    WrongFrame { octets: usize },
    /// Sends messages of its channel beyond its rate.
    Excess { count: u32 },
    /// Numbers at the ends of their range.
    Extreme { request: u8, value: i64 },
    /// Waits for a thread that there is not, or for itself.
    JoinNobody { ticket: u32 },
    /// Selects from so many ends.
    SelectMany { count: u32 },
    /// Announces so many threads, none of which comes.
    Threads { count: u32 },
    /// Asks so often and reads no answer.
    Deaf { count: u32 },
    /// Says so many things that need no answer.
    Flood { count: u32 },
    /// Says nothing any more.
    Silent,
    /// Closes its sockets, and exits with 0.
    Vanish,
    /// Closes its sockets, and stays.
    Stay,
    /// Overwrites the memory of its records.
    Scribble { octets: usize },
    /// Makes the memory of its records shorter.
    Shrink,
    /// Sends descriptors along with what it says.
    Descriptors { count: usize },
    /// Asks for the start twice.
    StartTwice,
    /// Takes leave, and continues to ask.
    SpeakAfterBye,
    /// Closes one direction of its socket.
    HalfClose { write: bool },
}

/// The name of a step or of a misdeed, as its script says it.
pub fn name(of: &impl Serialize) -> String {
    let value = serde_json::to_value(of).expect("scripts are plain data");
    let tag = ["do", "what"].iter().find_map(|key| value[key].as_str());
    tag.or(value.as_str()).unwrap_or_default().to_owned()
}

/// All steps by name, of which a drawn system may consist.
pub const STEPS: [&str; 41] = [
    "dawdle",
    "join",
    "open-talker",
    "open-listener",
    "open-wrong",
    "start",
    "write",
    "try-write",
    "write-twice",
    "write-wait",
    "write-at",
    "read",
    "read-for",
    "try-read",
    "drain",
    "read-latest",
    "read-wait",
    "select",
    "rendezvous",
    "limit",
    "sleep",
    "sleep-to",
    "work",
    "work-until",
    "close",
    "spawn",
    "join-thread",
    "await",
    "wake",
    "child",
    "fork",
    "pester",
    "say",
    "repeat",
    "leave",
    "exit",
    "die",
    "hang",
    "livelock",
    "linger",
    "rogue",
];

/// All misdeeds by name.
pub const MISDEEDS: [&str; 28] = [
    "garbage",
    "empty",
    "oversized",
    "truncated",
    "trailing",
    "unknown",
    "version",
    "hello-again",
    "begin-again",
    "premature",
    "foreign-end",
    "wrong-frame",
    "excess",
    "extreme",
    "join-nobody",
    "select-many",
    "threads",
    "deaf",
    "flood",
    "silent",
    "vanish",
    "stay",
    "scribble",
    "shrink",
    "descriptors",
    "start-twice",
    "speak-after-bye",
    "half-close",
];

/// A script as the text of its file.
pub fn text(scripts: &[Vec<ActorStep>]) -> String {
    let mut text = String::new();
    for (number, steps) in scripts.iter().enumerate() {
        text += &format!("# thread {number}\n");
        for step in steps {
            text += &serde_json::to_string(step).expect("scripts are plain data");
            text.push('\n');
        }
    }
    text
}

/// Reads what [`text`] wrote.
///
/// # Errors
/// For a line that is no step.
pub fn read(text: &str) -> serde_json::Result<Vec<Vec<ActorStep>>> {
    let mut scripts: Vec<Vec<ActorStep>> = Vec::new();
    for line in text.lines() {
        match scripts.last_mut() {
            _ if line.starts_with('#') => scripts.push(Vec::new()),
            Some(last) => last.push(serde_json::from_str(line)?),
            None => {}
        }
    }
    Ok(scripts)
}

/// Every step, those within repetitions too.
pub fn each<'a>(steps: &'a [ActorStep], visit: &mut impl FnMut(&'a ActorStep)) {
    for step in steps {
        visit(step);
        if let ActorStep::Repeat { steps, .. } = step {
            each(steps, visit);
        }
    }
}
