//! The rendezvous: two programs meet over two channels in opposite directions (Austad et al. 2023,
//! section 4.3).
//!
//! Each side counts its meetings in *rounds*, and every message says for which round it is. A side
//! that met the other one in the round before needs its word for this round, and no more: one
//! message each way. A side that did not (its first call, after a call that timed out, when the
//! other program was started again) *asks*: it needs the other one's word that it was heard, in
//! this very call. Sides that are in different rounds continue in the later one if the one behind
//! is in no company. Who hears that the other one is still in the round that it has met in repeats
//! what it said then. So rounds never stay apart, and no message of an earlier call makes a
//! meeting.
//!
//! [`Meeting`] is the state machine, [`rendezvous`] drives it. Its steps are explored exhaustively
//! in `tests/rendezvous.rs`.

use crate::channel::{ListenerEndpoint, MAX_BACKLOG, MessageInfo, TalkerEndpoint, wait};
use crate::channel_io::{ChannelError, ChannelIo, Log, Timeout};
use onbeat_model::record::{Record, flag};
use onbeat_model::time::{Span, SyncedTime};
use onbeat_model::units::frame::MAX_CHANNEL_PAYLOAD;

/// Rounds are counted from 1 to this number, and then from 1 again.
pub const ROUNDS: u8 = 63;

/// What names a message of the other side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Name {
    /// Its talker's start; never 0.
    pub instance: u8,
    /// Its number.
    pub number: u16,
}

/// What a message says of a meeting, beside its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Word {
    /// Which meeting it is for.
    pub round: u8,
    /// Its side needs to be told that it was heard.
    pub asks: bool,
    /// Its side has met in this round and is in a later one.
    pub met: bool,
    /// The other side's message of this round that its side goes by; while it has none, of the
    /// round before, if it has met then.
    pub has: Option<Name>,
}

const ASKS: u32 = 1 << 31;
const MET: u32 = 1 << 30;

impl Word {
    /// As frames carry it: asks (1 bit), met (1), round (6), the name's instance (8), its number
    /// (16). No word is 0.
    pub fn to_bits(self) -> u32 {
        let name = self.has.map_or(0, |n| u32::from(n.instance) << 16 | u32::from(n.number));
        let flag = |is: bool, bit: u32| if is { bit } else { 0 };
        flag(self.asks, ASKS) | flag(self.met, MET) | u32::from(self.round & ROUNDS) << 24 | name
    }

    /// Reads back what [`Word::to_bits`] wrote; `None` of a message that belongs to no meeting.
    pub fn from_bits(bits: u32) -> Option<Self> {
        let [upper, instance, ..] = bits.to_be_bytes();
        let has = Name { instance, number: bits as u16 };
        let word = Self {
            round: upper & ROUNDS,
            asks: bits & ASKS != 0,
            met: bits & MET != 0,
            has: Some(has).filter(|name| name.instance != 0),
        };
        Some(word).filter(|word| word.round != 0)
    }
}

/// A message of the other side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Heard {
    /// Which one.
    pub name: Name,
    /// When it was captured.
    pub capture: SyncedTime,
    /// What it says.
    pub word: Word,
}

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// Write this call's value with this word, then tell [`Meeting::said`].
    Say(Word),
    /// Write the value of the meeting before with this word, then tell [`Meeting::repeated`].
    Repeat(Word),
    /// Wait for a message until then; without one, [`Meeting::silent`].
    Wait(SyncedTime),
    /// Continue at `target`.
    Met {
        /// The instant at which both continue.
        target: SyncedTime,
        /// The other side has continued already: a message was lost.
        late: bool,
    },
}

/// A message of ours in this call and round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Said {
    number: u16,
    capture: SyncedTime,
}

/// The meeting that was last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Last {
    round: u8,
    /// The other side's start.
    partner: u8,
    /// The other side's message by which it came about; none if that was repeated, in a later call.
    has: Option<Name>,
    /// When ours was captured that was last said of it.
    told: SyncedTime,
}

/// So many of our latest messages of a call are remembered.
const SAID: usize = 4;

/// One side's part in the meetings of two channels.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Meeting {
    /// Our talker's start.
    instance: u8,
    /// Of this call, or the last one.
    round: u8,
    /// The other side's start, if both met in the round before.
    partner: Option<u8>,
    last: Option<Last>,
    /// D, and after how much silence our word is said again.
    delays: [Span; 2],
    /// The number of the first message of this call and round, and the latest messages, oldest
    /// first.
    first: Option<u16>,
    said: [Option<Said>; SAID],
    /// What we go by.
    theirs: Option<Heard>,
    /// A message of ours said that we have `theirs`.
    told: bool,
    /// When the message of ours was captured that they go by.
    ours: Option<SyncedTime>,
    /// They have met with us in this round.
    over: bool,
    /// They need to be told.
    asked: bool,
    /// Something is to be said, or repeated.
    say: bool,
    repeat: bool,
}

/// Whether round `a` comes after `b`.
fn is_after(a: u8, b: u8) -> bool {
    let ahead = (i32::from(a) - i32::from(b)).rem_euclid(i32::from(ROUNDS));
    ahead > 0 && ahead <= i32::from(ROUNDS / 2)
}

impl Meeting {
    /// Before the first meeting of a talker's start.
    pub fn new(instance: u8) -> Self {
        Self {
            instance,
            round: 0,
            partner: None,
            last: None,
            delays: [Span::ZERO; 2],
            first: None,
            said: [None; SAID],
            theirs: None,
            told: false,
            ours: None,
            over: false,
            asked: false,
            say: false,
            repeat: false,
        }
    }

    /// A call begins: the longer D of both channels, and the interval of ours. What the other side
    /// needs is known again when this call ends well.
    pub fn begin(&mut self, delay: Span, interval: Span) {
        self.delays = [delay, interval.max(delay * 2)];
        self.enter(self.round % ROUNDS + 1);
        self.repeat = false;
    }

    /// From now on it is about this round.
    fn enter(&mut self, round: u8) {
        self.round = round;
        (self.first, self.said) = (None, [None; SAID]);
        (self.theirs, self.told, self.ours) = (None, false, None);
        (self.over, self.asked, self.say) = (false, false, true);
    }

    /// A call ends without a meeting.
    pub fn give_up(&mut self) {
        self.partner = None;
    }

    /// A message of the other side is here: whether its value is the one to take.
    pub fn heard(&mut self, heard: Heard) -> bool {
        let Heard { name, capture, word } = heard;
        if let Some(last) = &self.last
            && (last.partner, last.round) == (name.instance, word.round)
            && word.round != self.round
        {
            // Ours was lost, or is still on its way.
            self.repeat |= !word.met && capture > last.told + self.delays[0];
            return false;
        }
        let their_ours = word.has.and_then(|has| self.capture_of(has));
        if word.round != self.round && their_ours.is_some() {
            // They have met with us in this round; if we do not have their part, they repeat it.
            self.over = self.theirs.is_some_and(|t| t.name.instance == name.instance);
            self.ours = self.ours.or(their_ours);
            self.say |= !self.over;
            return false;
        }
        if word.round != self.round {
            let in_company = self.partner == Some(name.instance) && !word.asks;
            if in_company || word.met || !is_after(word.round, self.round) {
                return false;
            }
            self.partner = None;
            self.enter(word.round);
        }
        if word.met && their_ours.is_none() {
            return false;
        }
        self.repeat = false;
        let another_start = self.theirs.is_some_and(|t| t.name.instance != name.instance);
        if another_start {
            (self.partner, self.told, self.ours, self.over) = (None, false, None, false);
        }
        self.asked = word.asks;
        self.ours = self.ours.or(their_ours);
        self.over |= word.met && their_ours.is_some();
        // Until we have said that we go by one of theirs, the latest tells best whether they wait.
        let take = !self.told;
        if take {
            self.theirs = Some(heard);
        }
        take
    }

    /// When the message of this call was captured that has this name; of one that is long past,
    /// about when.
    fn capture_of(&self, name: Name) -> Option<SyncedTime> {
        let first = self.first?;
        let known = |number| self.said.iter().flatten().find(|said| said.number == number);
        let newest = self.said.iter().flatten().last()?;
        let is_ours = name.instance == self.instance
            && name.number.wrapping_sub(first) <= newest.number.wrapping_sub(first);
        let said = known(name.number).or(self.said.iter().flatten().next());
        said.filter(|_| is_ours).map(|said| said.capture)
    }

    /// [`Step::Say`] is done: our message's number, and when it was captured.
    pub fn said(&mut self, number: u16, capture: SyncedTime) {
        self.first.get_or_insert(number);
        if self.said.iter().all(Option::is_some) {
            self.said.rotate_left(1);
            self.said[SAID - 1] = None;
        }
        let free = self.said.iter_mut().find(|said| said.is_none());
        *free.expect("one was made free") = Some(Said { number, capture });
        self.told = self.theirs.is_some();
        self.say = false;
    }

    /// [`Step::Repeat`] is done.
    pub fn repeated(&mut self, capture: SyncedTime) {
        self.repeat = false;
        if let Some(last) = &mut self.last {
            last.told = capture;
        }
    }

    /// Nothing came for as long as [`Step::Wait`] says.
    pub fn silent(&mut self) {
        self.say = true;
    }

    /// What to do at `now`.
    pub fn step(&mut self, now: SyncedTime) -> Step {
        if let Some(last) = self.last.filter(|_| self.repeat) {
            let (round, has) = (last.round, last.has);
            return Step::Repeat(Word { round, asks: false, met: true, has });
        }
        let [_, again] = self.delays;
        let latest = self.said.iter().flatten().last().copied();
        if let (Some(theirs), Some(_), false) = (self.theirs, latest, self.say) {
            let known = self.partner == Some(theirs.name.instance);
            match self.ours.or_else(|| self.coming(&theirs, now)) {
                Some(ours) if self.over || self.told || known && !self.asked => {
                    return self.meet(&theirs, ours);
                }
                // They did not hear us, or have to hear that we heard them.
                _ => self.say = !self.told,
            }
        }
        match latest {
            Some(latest) if !self.say => Step::Wait(latest.capture + again),
            _ => {
                let (round, asks) = (self.round, self.partner.is_none());
                // Who is in company says of the round before that it has met.
                let before = self.last.filter(|_| !asks).and_then(|last| last.has);
                let has = self.theirs.map(|theirs| theirs.name).or(before);
                Step::Say(Word { round, asks, met: false, has })
            }
        }
    }

    /// The message of ours that a partner will go by which had none when it said `theirs`: our only
    /// one, if that was still on its way then. `None` when it may have given up since, and after a
    /// loss: then only its word tells.
    fn coming(&self, theirs: &Heard, now: SyncedTime) -> Option<SyncedTime> {
        let [delay, again] = self.delays;
        let known = self.partner == Some(theirs.name.instance);
        let fresh = now - theirs.capture <= again + delay;
        let mut captures = self.said.iter().flatten().map(|said| said.capture);
        let only = captures.next().filter(|_| captures.next().is_none())?;
        Some(only).filter(|only| known && fresh && *only + delay >= theirs.capture)
    }

    fn meet(&mut self, theirs: &Heard, ours: SyncedTime) -> Step {
        let latest = self.said.iter().flatten().last();
        let told = latest.map_or(ours, |said| said.capture);
        let (round, partner) = (self.round, theirs.name.instance);
        let has = Some(theirs.name).filter(|_| !theirs.word.met);
        self.last = Some(Last { round, partner, has, told });
        self.partner = Some(partner);
        // They continued at the later of ours and a message that we did not have.
        let late = self.over;
        let target = if late { ours } else { ours.max(theirs.capture) } + self.delays[0];
        Step::Met { target, late }
    }
}

/// Both ends' part of a meeting: writes `value`, reads the other side's message, and continues at
/// the later one's capture time + D, the same instant of network time on both sides.
///
/// # Errors
/// [`ChannelError::TimedOut`] at the limit of one of the ends; the next call then meets again.
/// [`ChannelError::InFragments`] where messages of one of the channels are longer than a frame,
/// [`ChannelError::OneChannel`] where there is but one.
pub fn rendezvous<P: ChannelIo, L: Log>(
    talker: &mut TalkerEndpoint<P, L>,
    value: &[u8],
    listener: &mut ListenerEndpoint<P, L>,
    received: &mut [u8],
) -> Result<MessageInfo, ChannelError> {
    let delays = [talker.talker.parameters(), listener.listener.parameters()];
    if delays[0].stream_id == delays[1].stream_id {
        return Err(ChannelError::OneChannel);
    }
    if delays.iter().any(|parameters| parameters.fragments().count > 1) {
        return Err(ChannelError::InFragments);
    }
    let delay = delays.map(|p| p.fixed_delay).into_iter().max().unwrap_or_default();
    talker.meeting.begin(delay, talker.talker.parameters().interval);
    let met = meet(talker, value, listener, received, delay);
    match met {
        Ok(_) => talker.met_value[..value.len()].copy_from_slice(value),
        Err(_) => {
            talker.meeting.give_up();
            talker.talker.say(0);
        }
    }
    met
}

/// Takes the steps of a meeting.
fn meet<P: ChannelIo, L: Log>(
    talker: &mut TalkerEndpoint<P, L>,
    value: &[u8],
    listener: &mut ListenerEndpoint<P, L>,
    received: &mut [u8],
    delay: Span,
) -> Result<MessageInfo, ChannelError> {
    let mut other = Other { received, taken: MessageInfo::default(), read: None };
    other.hear_all(&mut talker.meeting, listener)?;
    let mut written = Record::default();
    let (target, late) = loop {
        let now = talker.io.now()?.local;
        let step = talker.meeting.step(now);
        if matches!(step, Step::Say(_) | Step::Repeat(_)) && talker.await_rate()? {
            // A word that does not know what came meanwhile would have to be said again.
            other.hear_all(&mut talker.meeting, listener)?;
            continue;
        }
        match step {
            Step::Say(word) => {
                talker.talker.say(word.to_bits());
                written = talker.write_record(value)?;
                let capture = written.capture.unwrap_or_default();
                talker.meeting.said(written.sequence as u16, capture);
            }
            Step::Repeat(word) => {
                talker.talker.say(word.to_bits());
                let before = talker.met_value;
                written = talker.write_record(&before[..value.len()])?;
                talker.meeting.repeated(written.capture.unwrap_or_default());
            }
            Step::Wait(until) => {
                if !other.hear(&mut talker.meeting, listener, Timeout::Until(until))? {
                    talker.meeting.silent();
                }
            }
            Step::Met { target, late } => break (target, late),
        }
    };
    let (mut info, late) = (other.taken, if late { flag::LATE } else { 0 });
    let now = talker.io.now()?.local;
    let uncertain = info.flags & flag::UNCERTAIN != 0;
    // No message was captured after it was here, whatever an unsynchronised clock says.
    let target = if uncertain { target.min(now + delay) } else { target };
    info.wakeup_error = wait(&mut talker.io, &mut talker.log, &mut written, target)?;
    info.age = target - info.wakeup_error - info.capture;
    if let Some(read) = other.read {
        let Record { wake_target, wake, network, .. } = written;
        let flags = read.flags | written.flags | late;
        listener.log.amend(&Record { wake_target, wake, network, flags, ..read });
    }
    info.flags |= written.flags | late;
    Ok(info)
}

/// What the other side says.
struct Other<'a> {
    received: &'a mut [u8],
    taken: MessageInfo,
    /// The record of the latest message.
    read: Option<Record>,
}

impl Other<'_> {
    /// Takes what is there already.
    fn hear_all<P: ChannelIo, L: Log>(
        &mut self,
        meeting: &mut Meeting,
        listener: &mut ListenerEndpoint<P, L>,
    ) -> Result<(), ChannelError> {
        for _ in 0..MAX_BACKLOG {
            if !self.hear(meeting, listener, Timeout::None)? {
                break;
            }
        }
        Ok(())
    }

    /// Waits for its next message; false when none came.
    fn hear<P: ChannelIo, L: Log>(
        &mut self,
        meeting: &mut Meeting,
        listener: &mut ListenerEndpoint<P, L>,
        patience: Timeout,
    ) -> Result<bool, ChannelError> {
        let mut octets = [0; MAX_CHANNEL_PAYLOAD.get() as usize];
        let value = &mut octets[..self.received.len()];
        let Some((record, info)) = listener.read_record(value, patience)? else {
            return Ok(false);
        };
        self.read = Some(record);
        // Who does not say which start of a talker it is does not know meetings.
        if let Some(word) = Word::from_bits(info.meeting).filter(|_| info.instance != 0) {
            let name = Name { instance: info.instance, number: info.sequence as u16 };
            if meeting.heard(Heard { name, capture: info.capture, word }) {
                self.received.copy_from_slice(value);
                self.taken = info;
            }
        }
        Ok(true)
    }
}
