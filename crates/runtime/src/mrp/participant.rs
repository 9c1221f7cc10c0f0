//! A participant: one application on one port (802.1Q-2018 10.2, 10.7).
//!
//! A request to transmit is served by the next [`MrpInput::Timeout`], so what happens at one
//! instant leaves together. What a PDU has no room for leaves in a further one of the same
//! opportunity, up to a limit; an attribute's state only changes with what was sent.

use crate::mrp::applicant::{ApplicantEvent, ApplicantSituation, ApplicantState, Sending};
use crate::mrp::leave_all::{LeaveAllMachine, PeriodicMachine};
use crate::mrp::pdu::{self, AttributeEvent, MrpApplication, MrpItem, PduWriter};
use crate::mrp::random::TimerRandom;
use crate::mrp::registrar::{
    LeaveTimer, RegistrarEvent, RegistrarMode, RegistrarState, Registration,
};
use onbeat_model::time::{NetTime, Span};
use std::collections::{BTreeMap, BTreeSet};

/// The most attributes that a participant takes from its link. Its own declarations may be as many
/// beside them: no neighbour can keep it from declaring.
pub const ATTRIBUTES_MAX: usize = 4_096;
/// The most opportunities to transmit within one and a half JoinTimes, point to point (10.7.4.1).
const OPPORTUNITIES_MAX: usize = 3;
/// The longest PDU: the MAC client data of a frame.
pub const PDU_MAX: usize = 1_500;

/// The timers (10.7.11, Table 10-7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MrpTimers {
    /// JoinTime.
    pub join: Span,
    /// LeaveTime: how long a registration outlasts a Lv or LeaveAll. More than two JoinTimes.
    pub leave: Span,
    /// LeaveAllTime: the least time between two LeaveAll; the most is one and a half times that.
    pub leave_all: Span,
    /// The time between two periodic transmissions, if there are any.
    pub periodic: Option<Span>,
}

impl Default for MrpTimers {
    /// 200 ms, 600 ms, 10 s, none.
    fn default() -> Self {
        Self {
            join: Span::from_ms(200),
            leave: Span::from_ms(600),
            leave_all: Span::from_s(10),
            periodic: None,
        }
    }
}

/// What a port's link is to its participants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Medium {
    /// Two participants: transmission as soon as the limit lets it (operPointToPointMAC).
    #[default]
    PointToPoint,
    /// More: transmission after a random part of JoinTime.
    Shared,
}

/// How a participant works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MrpSettings {
    /// The timers.
    pub timers: MrpTimers,
    /// The link.
    pub medium: Medium,
    /// Applicant-Only Participant: it registers nothing (10.6).
    pub is_applicant_only: bool,
    /// A received Lv ends a registration at once, without the leave timer, as some profiles want
    /// on point-to-point links.
    pub leaves_at_once: bool,
    /// The most PDUs in one opportunity, at least 1. What has no room in them is sent at the next.
    pub pdus_max: usize,
}

impl Default for MrpSettings {
    fn default() -> Self {
        Self {
            timers: MrpTimers::default(),
            medium: Medium::PointToPoint,
            is_applicant_only: false,
            leaves_at_once: false,
            pdus_max: 16,
        }
    }
}

/// What a participant is told.
#[derive(Debug)]
pub enum MrpInput<'a, A: MrpApplication> {
    /// It is [`MrpParticipant::next`], or later: what was requested is sent.
    Timeout,
    /// A PDU has come, without Ethernet header; padding does no harm.
    Received(&'a [u8]),
    /// Management fixes or forbids the registration of an attribute, or no longer does.
    Manage(A::Attribute, RegistrarMode),
    /// The port changed from Designated to Root or Alternate: Re-declare!.
    Redeclare,
    /// The port changed from Root or Alternate to Designated: Flush!.
    Flush,
    /// The link has failed: nothing is registered, nothing is sent.
    LinkDown,
    /// The link works again.
    LinkUp,
}

/// What a participant tells its application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Indication<T> {
    /// MAD_Join.indication: it is registered, or with another value than before.
    Registered {
        /// Which.
        attribute: T,
        /// Whether as new.
        is_new: bool,
    },
    /// MAD_Leave.indication: it is no longer registered.
    Left(T),
}

/// What comes of an input.
#[derive(Debug)]
pub struct MrpOutput<A: MrpApplication> {
    /// PDUs to send, in order, without Ethernet header.
    pub pdus: Vec<Vec<u8>>,
    /// What has changed, in order.
    pub indications: Vec<Indication<A::Attribute>>,
}

impl<A: MrpApplication> Default for MrpOutput<A> {
    fn default() -> Self {
        Self { pdus: Vec::new(), indications: Vec::new() }
    }
}

/// What a participant has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MrpCounts {
    /// PDUs sent.
    pub sent: u64,
    /// PDUs received.
    pub received: u64,
    /// PDUs of which a part was discarded.
    pub discarded: u64,
    /// Attributes that found the table full.
    pub refused: u64,
}

/// What is known of an attribute.
#[derive(Clone, Debug)]
struct AttributeEntry<T> {
    /// What is declared, or was last.
    own: Option<T>,
    /// What is registered, or was last.
    heard: Option<T>,
    applicant: ApplicantState,
    registrar: RegistrarState,
    mode: RegistrarMode,
    /// In LV: when the leave timer expires.
    leaves: NetTime,
}

impl<T> Default for AttributeEntry<T> {
    fn default() -> Self {
        Self {
            own: None,
            heard: None,
            applicant: ApplicantState::default(),
            registrar: RegistrarState::default(),
            mode: RegistrarMode::default(),
            leaves: NetTime::MAX,
        }
    }
}

/// A participant.
#[derive(Debug)]
pub struct MrpParticipant<A: MrpApplication> {
    settings: MrpSettings,
    random: TimerRandom,
    is_up: bool,
    leave_all: LeaveAllMachine,
    periodic: Option<PeriodicMachine>,
    entries: BTreeMap<A::Key, AttributeEntry<A::Attribute>>,
    /// The running leave timers.
    leaving: BTreeSet<(NetTime, A::Key)>,
    /// When the requested transmission is due.
    transmits: Option<NetTime>,
    /// The last opportunities, the oldest first.
    opportunities: Vec<NetTime>,
    /// Where the next transmission begins: behind what the last one had room for.
    resumes: Option<A::Key>,
    counts: MrpCounts,
}

impl<A: MrpApplication> MrpParticipant<A> {
    /// A participant that begins now, with a seed for its timers.
    ///
    /// # Panics
    /// When a timer is not positive, LeaveTime is not more than two JoinTimes, or no PDU may be
    /// sent.
    pub fn new(settings: MrpSettings, seed: u64, now: NetTime) -> Self {
        let MrpTimers { join, leave, leave_all, periodic } = settings.timers;
        assert!(Span::ZERO < join && join * 2 < leave && leave < leave_all, "{settings:?}");
        assert!(periodic.is_none_or(|interval| Span::ZERO < interval), "{settings:?}");
        assert!(settings.pdus_max > 0, "{settings:?}");
        let mut random = TimerRandom::new(seed);
        Self {
            settings,
            is_up: true,
            leave_all: LeaveAllMachine::new(leave_all, now, &mut random),
            periodic: periodic.map(|interval| PeriodicMachine::new(interval, now)),
            random,
            entries: BTreeMap::new(),
            leaving: BTreeSet::new(),
            transmits: None,
            opportunities: Vec::new(),
            resumes: None,
            counts: MrpCounts::default(),
        }
    }

    /// Does what an input asks for, after what was due before. PDUs only come of
    /// [`MrpInput::Timeout`]. Allocates; takes time linear in the octets and the attributes.
    pub fn handle(&mut self, now: NetTime, input: MrpInput<'_, A>) -> MrpOutput<A> {
        let mut out = MrpOutput::default();
        self.expire(now, &mut out);
        match input {
            MrpInput::Timeout => self.transmit(now, &mut out),
            MrpInput::Received(octets) if self.is_up => self.receive(now, octets, &mut out),
            MrpInput::Received(_) => {}
            MrpInput::Manage(attribute, mode) => self.manage(attribute, mode, &mut out),
            MrpInput::Redeclare => {
                self.drive_all(
                    now,
                    ApplicantEvent::Redeclare,
                    RegistrarEvent::Redeclare,
                    None,
                    &mut out,
                );
            }
            MrpInput::Flush => {
                for key in self.keys() {
                    self.drive_registrar(now, key, RegistrarEvent::Flush, &mut out);
                }
            }
            MrpInput::LinkDown => self.link_down(now, &mut out),
            MrpInput::LinkUp => self.link_up(now),
        }
        out
    }

    /// When it wants [`MrpInput::Timeout`] at the latest.
    pub fn next(&self) -> NetTime {
        if !self.is_up {
            return NetTime::MAX;
        }
        let timers = [
            (!self.settings.is_applicant_only).then(|| self.leave_all.due()),
            self.periodic.as_ref().map(PeriodicMachine::due),
            self.leaving.first().map(|(at, _)| *at),
            self.transmits,
        ];
        timers.into_iter().flatten().min().unwrap_or(NetTime::MAX)
    }

    /// What is registered: IN or LV.
    pub fn registered(&self) -> impl Iterator<Item = &A::Attribute> {
        let is_there = |entry: &&AttributeEntry<_>| entry.registrar != RegistrarState::Mt;
        self.entries.values().filter(is_there).filter_map(|entry| entry.heard.as_ref())
    }

    /// What is declared.
    pub fn declared(&self) -> impl Iterator<Item = &A::Attribute> {
        let is_declared = |entry: &&AttributeEntry<_>| entry.applicant.is_declared();
        self.entries.values().filter(is_declared).filter_map(|entry| entry.own.as_ref())
    }

    /// The declaration with this key.
    pub fn declaration(&self, key: A::Key) -> Option<&A::Attribute> {
        let entry = self.entries.get(&key)?;
        entry.own.as_ref().filter(|_| entry.applicant.is_declared())
    }

    /// Whether it is declared, and at least one PDU with it has left.
    pub fn has_sent(&self, key: A::Key) -> bool {
        let waits = [ApplicantState::VeryAnxiousNew, ApplicantState::VeryAnxiousPassive];
        self.entries
            .get(&key)
            .is_some_and(|entry| entry.applicant.is_declared() && !waits.contains(&entry.applicant))
    }

    /// The states of an attribute's machines. An attribute that is unknown has those of the start.
    pub fn states(&self, key: A::Key) -> (ApplicantState, RegistrarState) {
        self.entries.get(&key).map_or_else(Default::default, |e| (e.applicant, e.registrar))
    }

    /// Attributes of which something is known.
    pub fn attributes(&self) -> usize {
        self.entries.len()
    }

    /// What it has counted.
    pub fn counts(&self) -> MrpCounts {
        self.counts
    }

    /// Whether its link works.
    pub fn is_up(&self) -> bool {
        self.is_up
    }

    fn keys(&self) -> Vec<A::Key> {
        self.entries.keys().copied().collect()
    }

    /// Timers come before what is received at the same instant: none is lost.
    fn expire(&mut self, now: NetTime, out: &mut MrpOutput<A>) {
        if !self.is_up {
            return;
        }
        while let Some(&(at, key)) = self.leaving.first().filter(|(at, _)| *at <= now) {
            self.leaving.remove(&(at, key));
            self.drive_registrar(now, key, RegistrarEvent::LeaveTimer, out);
        }
        if !self.settings.is_applicant_only && self.leave_all.expire(now, &mut self.random) {
            self.request(now, Span::ZERO);
        }
        if self.periodic.as_mut().is_some_and(|periodic| periodic.expire(now)) {
            for key in self.keys() {
                self.drive_applicant(now, key, ApplicantEvent::Periodic);
            }
        }
    }

    /// Requests an opportunity to transmit, at the earliest after `pause`.
    fn request(&mut self, now: NetTime, pause: Span) {
        let join = self.settings.timers.join;
        let due = match self.settings.medium {
            Medium::PointToPoint => {
                let full = self.opportunities.len() == OPPORTUNITIES_MAX;
                let window = Span::from_ns(join.as_ns() + join.as_ns() / 2);
                let oldest = self.opportunities.first().filter(|_| full);
                let allowed = oldest.map_or(now, |oldest| *oldest + window);
                allowed.max(now + pause)
            }
            Medium::Shared if self.transmits.is_some() => return,
            Medium::Shared => {
                now + Span::from_ns(self.random.below(join.as_ns().unsigned_abs()) as i64)
            }
        };
        self.transmits = Some(self.transmits.map_or(due, |already| already.min(due)));
    }

    fn situation(&self, registrar: RegistrarState) -> ApplicantSituation {
        ApplicantSituation {
            is_point_to_point: self.settings.medium == Medium::PointToPoint,
            is_applicant_only: self.settings.is_applicant_only,
            is_registered: registrar == RegistrarState::In,
        }
    }

    fn drive_applicant(&mut self, now: NetTime, key: A::Key, event: ApplicantEvent) {
        let Some(entry) = self.entries.get(&key) else { return };
        let (before, situation) = (entry.applicant, self.situation(entry.registrar));
        let (after, _) = before.after(event, situation);
        if let Some(entry) = self.entries.get_mut(&key) {
            entry.applicant = after;
        }
        if after != before && after.wants_transmission() {
            self.request(now, Span::ZERO);
        }
        self.forget_if_idle(key);
    }

    /// Whether the application was told something.
    fn drive_registrar(
        &mut self,
        now: NetTime,
        key: A::Key,
        event: RegistrarEvent,
        out: &mut MrpOutput<A>,
    ) -> bool {
        let leave = self.settings.timers.leave;
        let Some(entry) = self.entries.get_mut(&key) else { return false };
        let (state, told, timer) = entry.registrar.after(event, entry.mode);
        entry.registrar = state;
        if timer != LeaveTimer::Keep {
            self.leaving.remove(&(entry.leaves, key));
        }
        if timer == LeaveTimer::Start {
            entry.leaves = now + leave;
            self.leaving.insert((entry.leaves, key));
        }
        let told = told.zip(entry.heard);
        let indication = told.map(|(told, attribute)| match told {
            Registration::New => Indication::Registered { attribute, is_new: true },
            Registration::Join => Indication::Registered { attribute, is_new: false },
            Registration::Leave => Indication::Left(attribute),
        });
        out.indications.extend(indication);
        self.forget_if_idle(key);
        indication.is_some()
    }

    fn drive_all(
        &mut self,
        now: NetTime,
        applicant: ApplicantEvent,
        registrar: RegistrarEvent,
        number: Option<u8>,
        out: &mut MrpOutput<A>,
    ) {
        for key in self.keys() {
            if number.is_none_or(|number| A::type_of(key) == number) {
                self.drive_registrar(now, key, registrar, out);
                self.drive_applicant(now, key, applicant);
            }
        }
    }

    /// What has neither a declaration nor a registration, and nothing to send, needs no entry.
    fn forget_if_idle(&mut self, key: A::Key) {
        let is_idle = |entry: &AttributeEntry<_>| {
            entry.applicant.is_idle()
                && entry.registrar == RegistrarState::Mt
                && entry.mode == RegistrarMode::Normal
        };
        if self.entries.get(&key).is_some_and(is_idle) {
            self.entries.remove(&key);
        }
    }

    /// MAD_Join.request: the attribute is to be declared, perhaps as new. It replaces a declaration
    /// with the same key and another value. If the table is full, the refusal is counted.
    pub fn declare(&mut self, now: NetTime, attribute: A::Attribute, is_new: bool) {
        let key = A::key(&attribute);
        if !self.entries.contains_key(&key) && self.entries.len() >= 2 * ATTRIBUTES_MAX {
            self.counts.refused += 1;
            return;
        }
        if let Some(other) = A::superseded(key) {
            self.drop_declaration(other);
        }
        let entry = self.entries.entry(key).or_default();
        if entry.own.is_some_and(|own| own != attribute) {
            // Another value is another declaration: it is sent as often as the first, and tells
            // the others that the first one has left (35.2.6).
            entry.applicant = ApplicantState::VeryAnxiousObserver;
        }
        entry.own = Some(attribute);
        let event = if is_new { ApplicantEvent::New } else { ApplicantEvent::Join };
        self.drive_applicant(now, key, event);
    }

    /// MAD_Leave.request: the attribute is not to be declared any more.
    pub fn withdraw(&mut self, now: NetTime, key: A::Key) {
        self.drive_applicant(now, key, ApplicantEvent::Lv);
    }

    /// Ends a declaration without a Lv, because another one says so.
    fn drop_declaration(&mut self, key: A::Key) {
        if let Some(entry) = self.entries.get_mut(&key) {
            entry.applicant = ApplicantState::VeryAnxiousObserver;
            entry.own = None;
            self.forget_if_idle(key);
        }
    }

    fn manage(&mut self, attribute: A::Attribute, mode: RegistrarMode, out: &mut MrpOutput<A>) {
        let key = A::key(&attribute);
        let entry = self.entries.entry(key).or_default();
        let before = entry.registrar;
        self.leaving.remove(&(entry.leaves, key));
        (entry.mode, entry.heard) = (mode, Some(attribute));
        entry.registrar = RegistrarState::of(mode);
        let (was, is) = (before != RegistrarState::Mt, entry.registrar != RegistrarState::Mt);
        match (was, is) {
            (false, true) => {
                out.indications.push(Indication::Registered { attribute, is_new: false });
            }
            (true, false) => out.indications.push(Indication::Left(attribute)),
            _ => {}
        }
        self.forget_if_idle(key);
    }

    fn link_down(&mut self, now: NetTime, out: &mut MrpOutput<A>) {
        for key in self.keys() {
            self.drive_registrar(now, key, RegistrarEvent::Flush, out);
        }
        (self.is_up, self.transmits) = (false, None);
    }

    fn link_up(&mut self, now: NetTime) {
        if self.is_up {
            return;
        }
        self.is_up = true;
        self.leave_all.restart(now, &mut self.random);
        let interval = self.settings.timers.periodic;
        self.periodic = interval.map(|interval| PeriodicMachine::new(interval, now));
        for key in self.keys() {
            let Some(entry) = self.entries.get_mut(&key) else { continue };
            let was_declared = entry.applicant.is_declared();
            entry.applicant = ApplicantState::VeryAnxiousObserver;
            match was_declared {
                true => self.drive_applicant(now, key, ApplicantEvent::Join),
                false => self.forget_if_idle(key),
            }
        }
    }

    fn receive(&mut self, now: NetTime, octets: &[u8], out: &mut MrpOutput<A>) {
        self.counts.received += 1;
        // A LeaveAll counts once in a PDU, and before the events of its type (10.7.5.20), wherever
        // its sender put it: what the PDU declares does not start to leave.
        let mut left = Vec::new();
        let read = pdu::read::<A>(octets, &mut |item| match item {
            MrpItem::LeaveAll(number) if !left.contains(&number) => left.push(number),
            _ => {}
        });
        self.counts.discarded += u64::from(read.is_err());
        if !left.is_empty() {
            // Only a LeaveAll of all that is registered replaces our own: otherwise a neighbour
            // that repeats one type's would keep the others' registrations for ever.
            let covered = |key: &A::Key| left.contains(&A::type_of(*key));
            if self.entries.keys().all(covered) {
                self.leave_all.restart(now, &mut self.random);
            }
        }
        for number in left {
            let (applicant, registrar) =
                (ApplicantEvent::ReceivedLeaveAll, RegistrarEvent::ReceivedLeaveAll);
            self.drive_all(now, applicant, registrar, Some(number), out);
        }
        // The second reading stops where the first did.
        let _ = pdu::read::<A>(octets, &mut |item| {
            if let MrpItem::Event(event, attribute) = item {
                self.receive_event(now, event, attribute, out);
            }
        });
    }

    fn receive_event(
        &mut self,
        now: NetTime,
        event: AttributeEvent,
        attribute: A::Attribute,
        out: &mut MrpOutput<A>,
    ) {
        let key = A::key(&attribute);
        let registers = event.is_declaring() && !self.settings.is_applicant_only;
        if !self.entries.contains_key(&key) {
            // Of an unknown attribute only a declaration says something.
            if !registers {
                return;
            }
            if self.entries.len() >= ATTRIBUTES_MAX {
                self.counts.refused += 1;
                return;
            }
        }
        let mut replaces = registers && self.supersede(key);
        let entry = self.entries.entry(key).or_default();
        if registers && entry.mode == RegistrarMode::Normal {
            let was = entry.heard.replace(attribute);
            replaces |= entry.registrar != RegistrarState::Mt && was != Some(attribute);
        }
        let is_normal = entry.mode == RegistrarMode::Normal;
        if !self.settings.is_applicant_only {
            let event = RegistrarEvent::from(event);
            let mut told = self.drive_registrar(now, key, event, out);
            if event == RegistrarEvent::ReceivedLv && self.settings.leaves_at_once {
                told |= self.drive_registrar(now, key, RegistrarEvent::Flush, out);
            }
            if replaces && is_normal && !told {
                out.indications.push(Indication::Registered { attribute, is_new: false });
            }
        }
        self.drive_applicant(now, key, event.into());
    }

    /// Ends the registration that a declaration of `key` replaces. Whether there was one.
    fn supersede(&mut self, key: A::Key) -> bool {
        let Some(other) = A::superseded(key) else { return false };
        let Some(entry) = self.entries.get_mut(&other) else { return false };
        let was = entry.registrar != RegistrarState::Mt && entry.mode == RegistrarMode::Normal;
        if was {
            entry.registrar = RegistrarState::Mt;
            self.leaving.remove(&(entry.leaves, other));
            self.forget_if_idle(other);
        }
        was
    }

    /// An opportunity to transmit, if one was requested and is due.
    fn transmit(&mut self, now: NetTime, out: &mut MrpOutput<A>) {
        if !self.is_up || self.transmits.is_none_or(|due| now < due) {
            return;
        }
        self.transmits = None;
        if self.opportunities.len() == OPPORTUNITIES_MAX {
            self.opportunities.remove(0);
        }
        self.opportunities.push(now);
        let mut writer = PduWriter::new(PDU_MAX);
        let leaves_all = self.leave_all.transmit();
        if leaves_all {
            writer.leave_all();
            // What this participant has registered has to be declared again, too (10.7.9).
            for key in self.keys() {
                self.drive_registrar(now, key, RegistrarEvent::TransmitLeaveAll, out);
            }
        }
        let is_complete = self.fill(writer, leaves_all, out);
        self.counts.sent += out.pdus.len() as u64;
        if leaves_all {
            for key in self.keys() {
                self.drive_applicant(now, key, ApplicantEvent::ReceivedLeaveAll);
            }
        }
        // What is to be said twice is said after a JoinTime: one loss then seldom takes both.
        self.transmits = None;
        if !is_complete {
            self.request(now, Span::ZERO);
        } else if self.entries.values().any(|entry| entry.applicant.wants_transmission()) {
            self.request(now, self.settings.timers.join);
        }
    }

    /// Fills PDUs with what the Applicants send. Whether there was room for all of it.
    fn fill(&mut self, mut writer: PduWriter<A>, leaves_all: bool, out: &mut MrpOutput<A>) -> bool {
        let event = match leaves_all {
            true => ApplicantEvent::TransmitLeaveAll,
            false => ApplicantEvent::Transmit,
        };
        let mut keys = self.keys();
        let from = self.resumes.take();
        let behind = from.map_or(0, |from| keys.partition_point(|key| *key < from));
        keys.rotate_left(behind);
        let mut begun = 1;
        let mut full = false;
        for key in keys {
            let Some(entry) = self.entries.get(&key) else { continue };
            let situation = self.situation(entry.registrar);
            let (mut after, sending) = entry.applicant.after(event, situation);
            let message = sending.and_then(|sending| message(sending, entry.registrar));
            let attribute = entry.own.or(entry.heard);
            if let Some((message, attribute)) = message.zip(attribute) {
                let mut fits = !full && writer.push(message, &attribute);
                if !fits && !full && begun < self.settings.pdus_max {
                    begun += 1;
                    out.pdus.push(std::mem::replace(&mut writer, PduWriter::new(PDU_MAX)).finish());
                    fits = writer.push(message, &attribute);
                }
                if !fits {
                    self.resumes.get_or_insert(key);
                    full = true;
                    after = match leaves_all {
                        true => {
                            let full = ApplicantEvent::TransmitLeaveAllFull;
                            entry.applicant.after(full, situation).0
                        }
                        false => entry.applicant,
                    };
                }
            }
            if let Some(entry) = self.entries.get_mut(&key) {
                entry.applicant = after;
            }
            self.forget_if_idle(key);
        }
        if !writer.is_empty() {
            out.pdus.push(writer.finish());
        }
        !full
    }
}

/// The event that says it, with the Registrar's state. Optional ones are left out.
fn message(sending: Sending, registrar: RegistrarState) -> Option<AttributeEvent> {
    let is_registered = registrar == RegistrarState::In;
    match sending {
        Sending::New => Some(AttributeEvent::New),
        Sending::Join if is_registered => Some(AttributeEvent::JoinIn),
        Sending::Join => Some(AttributeEvent::JoinMt),
        Sending::State if is_registered => Some(AttributeEvent::In),
        Sending::State => Some(AttributeEvent::Mt),
        Sending::Leave => Some(AttributeEvent::Lv),
        Sending::OptionalJoin | Sending::OptionalState => None,
    }
}
