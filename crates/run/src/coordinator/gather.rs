//! What a run's ends have recorded, when it is over.

use crate::coordinator::Outcome;
use crate::coordinator::endpoint::Endpoint;
use crate::coordinator::network::NetworkKind;
use crate::coordinator::session::{Owner, Session};
use crate::coordinator::station_on_kernel::Ended;
use crate::coordinator::table::EndpointId;
use crate::noise::NoiseTraffic;
use onbeat::clock::MonoTime;
use onbeat::interface::{StationDeliveries, StationDelivery};
use onbeat::shared_log::SharedLog;
use onbeat_model::record::{Ending, EndpointLog, LoadSample, Record, Role, RunLog, flag};
use onbeat_model::stations::{StationCounts, StationsObserved};
use onbeat_model::system::{ChannelId, NodeId, TimeMode};
use onbeat_model::time::{NetTime, Span};
use onbeat_net::network_code::StationObserved;
use onbeat_runtime::channel_io::Reason;

/// How many writes the declared rate may hold without the user's being told.
const HELD: usize = 10;
/// How many messages a program may leave unread at the end without the user's being told.
const UNREAD_AT_THE_END: usize = 2;

impl Session<'_> {
    /// Gathers what was recorded, and what the user should know beside `notes`. Kills what still
    /// runs.
    pub(super) fn finish(mut self, ending: Ending, mut notes: Vec<String>) -> Outcome {
        let mut outside = Vec::new();
        for (id, mut member) in self.programs.positions().zip(std::mem::take(&mut self.members)) {
            let program = self.programs[id];
            if !member.running.end() {
                let number = member.running.group();
                notes.push(format!(
                    "program `{}` could not be ended: process {number}",
                    program.name
                ));
            }
            if let Some(notices) = member.notices {
                let own = self.threads.positions().filter(|it| self.threads[*it].program == id);
                let own: Vec<_> = own.map(|it| (self.threads[it].tid, it.0)).collect();
                outside.push(notices.read(&program.name, &own));
            }
        }
        let on_kernel = self.finish_stations_on_kernel(&mut notes);
        let owners = std::mem::take(&mut self.owners);
        self.note_left(&owners, &ending, &mut notes);
        let mut ends = Vec::new();
        for (channel, owners) in owners.into_iter().enumerate() {
            for (place, owner) in owners.into_iter().enumerate() {
                ends.push(self.end_log(ChannelId(channel as u32), place, owner, &mut notes));
            }
        }
        notes.extend(ends.iter().filter_map(|end| self.note_held(end)));
        if let Err(error) = &self.faults {
            notes.push(format!("faults of links and nodes are left out here: {error}"));
        }
        if self.carrier.namespaces().is_some() {
            self.note_tails(&ends, &mut notes);
        }
        let load = self.load(&mut notes);
        let lags = self.options.settings.time == TimeMode::Real && self.carrier.is_emulated();
        let lag_max = lags.then_some(self.lag_max);
        let clocks = self.engine.clocks_observed();
        let tcp = self.engine.tcp_observed();
        let reservations = self.engine.reservations_observed();
        let stations = on_kernel.or_else(|| self.stations_observed(&mut notes));
        let log = self.log(ends, ending);
        let log = RunLog { load, lag_max, clocks, tcp, reservations, stations, ..log };
        Outcome { log, notes, outside }
    }

    /// Says which programs ended well before the run did, with ends that they had not closed.
    fn note_left(&self, owners: &[Vec<Owner>], ending: &Ending, notes: &mut Vec<String>) {
        let over = match ending {
            Ending::Complete => self.write_until,
            Ending::Early { at, .. } => *at,
        };
        for (channel, owners) in self.system.channels.iter().zip(owners) {
            for owner in owners {
                let Owner::Program(end) = owner else { continue };
                let end = &self.endpoints[*end];
                // Messages of the last intervals are nobody's fault.
                let Some(at) = end.left.filter(|at| *at + channel.interval * 2 < over) else {
                    continue;
                };
                notes.push(format!(
                    "program `{}` ended after {}, before the run did: from then on it did not \
                     serve channel `{}`",
                    self.program_name(end.program),
                    at - NetTime::ZERO,
                    channel.name
                ));
            }
        }
    }

    /// That the declared rate held many writes of a talker, if it did.
    fn note_held(&self, end: &EndpointLog) -> Option<String> {
        let mut held = end.records.iter().filter(|record| record.flags & flag::HELD != 0);
        let (count, last) = (held.clone().count(), held.next_back()?.capture?);
        (count > HELD).then(|| {
            format!(
                "channel `{}`: {count} of {} writes on host `{}` were held by the declared rate, \
                 the last one until {}: a program that writes too often, or that was late and \
                 writes what it missed, has all later messages captured later than it meant",
                self.system.channel(end.channel).name,
                end.records.len(),
                self.system.node(end.node).name,
                Span::from_ns(last.as_ns()),
            )
        })
    }

    /// What the ends have recorded, with the run's settings.
    pub(super) fn log(&self, ends: Vec<EndpointLog>, ending: Ending) -> RunLog {
        let settings = &self.options.settings;
        RunLog {
            network: self.carrier.recorded(),
            scenario: self.options.scenario.clone(),
            seed: settings.seed,
            time: settings.time,
            duration: settings.duration,
            protected: settings.protected,
            ends,
            load: Vec::new(),
            ending,
            lag_max: None,
            clocks: Vec::new(),
            tcp: Vec::new(),
            reservations: None,
            // A part of a recording knows only that there are some.
            stations: (!self.options.stations.is_empty()).then(StationsObserved::default),
        }
    }

    /// What stations did, if they carried the channels.
    fn stations_observed(&self, notes: &mut Vec<String>) -> Option<StationsObserved> {
        let observed = self.stations.as_ref()?.observed(&self.engine);
        let counts = |station: &StationObserved| {
            let counters = &station.counters;
            StationCounts {
                node: station.node,
                rounds: counters.rounds_begun + counters.rounds_seen,
                sent: counters.data_sent,
                received: counters.data_received,
                unsent: station.unsent,
                timeouts: counters.sync_timeouts,
                overruns: counters.overruns,
                discarded: counters.syncs_discarded,
                missed: 0,
                late: 0,
                refused: 0,
                has_stopped: station.trap.is_some(),
                slot_error: None,
            }
        };
        let stations: Vec<_> = observed.stations.iter().map(counts).collect();
        for station in stations.iter().filter(|station| station.unsent > 0) {
            let host = &self.system.node(station.node).name;
            notes.push(format!(
                "{} messages that programs on host `{host}` wrote were not sent: the station was \
                 off, or they came faster than its slots",
                station.unsent
            ));
        }
        let waits = Some(observed.ports.iter().map(|port| port.waits).sum());
        let collisions = Some(observed.collisions());
        Some(StationsObserved { stations, collisions, waits })
    }

    /// The same on a network of the kernel, whose ports are not seen. Ends the stations, and gives
    /// listeners what they have delivered to them.
    fn finish_stations_on_kernel(&mut self, notes: &mut Vec<String>) -> Option<StationsObserved> {
        if self.carrier.is_emulated() || self.options.stations.is_empty() {
            return None;
        }
        let mut stations = Vec::new();
        for mut station in std::mem::take(&mut self.stations_on_kernel) {
            let node = station.node();
            let host = &self.system.node(node).name;
            let Some(Ended { counts, channels, deliveries, is_prior, error }) = station.finish()
            else {
                if station.has_begun() {
                    notes.push(format!("the station of host `{host}` did not run to its end"));
                }
                continue;
            };
            if let Some(error) = error {
                notes.push(format!("the station of host `{host}` ended before the run: {error}"));
            }
            if !is_prior {
                notes.push(format!(
                    "the station of host `{host}` had no real-time priority, which is not \
                     permitted here: its slots are as exact as the machine is idle"
                ));
            }
            if channels.malformed > 0 {
                notes.push(format!(
                    "the station of host `{host}` dropped {} packets of its programs that were no \
                     messages of their channels",
                    channels.malformed
                ));
            }
            for (channel, of_end) in deliveries {
                if let Some(start) = station.start() {
                    self.deliver_for((node, channel), &of_end, start);
                }
            }
            stations.push(counts);
        }
        stations.sort_by_key(|counts| counts.node);
        Some(StationsObserved { stations, collisions: None, waits: None })
    }

    /// Remembers what a station has delivered to a listener, if all of that is known.
    fn deliver_for(
        &mut self,
        (node, channel): (NodeId, ChannelId),
        all: &StationDeliveries,
        start: MonoTime,
    ) {
        let listeners = &self.system.channel(channel).listeners;
        let place = listeners.iter().position(|listener| *listener == node);
        let owner = place.map(|place| &self.owners[channel.index()][1 + place]);
        let (Some(&Owner::Program(end)), 0) = (owner, all.more) else { return };
        let end = &mut self.endpoints[end];
        for StationDelivery { at, timestamp, number } in &all.delivered {
            end.delivered.add_message(NetTime::ZERO + (*at - start), *timestamp, *number);
        }
        for StationDelivery { timestamp, number, .. } in &all.dropped {
            end.delivered.overflow_message(*timestamp, *number);
        }
    }

    /// What the kernel held for a program that did not come for it any more is not known here: says
    /// where that may explain losses.
    fn note_tails(&self, ends: &[EndpointLog], notes: &mut Vec<String>) {
        let mut talker = None;
        for end in ends {
            if end.role == Role::Talker {
                talker = Some(end);
                continue;
            }
            let Some(talker) = talker else { continue };
            let last = end.records.iter().map(|r| r.capture).max().flatten();
            let after = talker.records.iter().filter(|r| r.capture > last).count();
            if after > UNREAD_AT_THE_END && end.unrecorded == 0 {
                let channel = &self.system.channel(end.channel).name;
                let host = &self.system.node(end.node).name;
                notes.push(format!(
                    "{after} messages of channel `{channel}` were written after the last one that \
                     host `{host}` read: they count as lost, but may only not have been read"
                ));
            }
        }
    }

    /// What the noise offered and what came through. Ends it.
    fn load(&mut self, notes: &mut Vec<String>) -> Vec<LoadSample> {
        match &self.carrier.kind {
            NetworkKind::Emulated => self.engine.load().to_vec(),
            NetworkKind::Interface { noise, .. } if noise.is_empty() => {
                if !self.system.noise.is_empty() && self.options.settings.noise {
                    let why = "the description's noise is not sent on one interface alone";
                    notes.push(why.to_owned());
                }
                Vec::new()
            }
            NetworkKind::Namespaces { .. } | NetworkKind::Interface { .. } => {
                let Some(load) = self.noise.take().map(NoiseTraffic::finish) else {
                    return Vec::new();
                };
                if load.skipped > 0 {
                    let due = load.offered + load.skipped;
                    notes.push(format!(
                        "{} of {due} frames of noise were not sent: the machine was more than \
                         10 ms behind",
                        load.skipped
                    ));
                }
                load.samples
            }
        }
    }

    /// Says whose program left messages unread, and which of these its queue had no room for.
    fn note_unread(&self, end: &Endpoint, unread: &[Record], notes: &mut Vec<String>) {
        let overflowed = unread.iter().filter(|r| r.flags & flag::OVERFLOWED != 0).count();
        let left = unread.iter().filter(|r| r.flags & flag::UNREAD != 0).count();
        let channel = &self.system.channel(end.channel).name;
        let host = &self.system.node(end.node).name;
        let program = self.program_name(end.program);
        if left > UNREAD_AT_THE_END {
            notes.push(format!(
                "{left} messages of channel `{channel}` arrived on host `{host}` and were not \
                 read: `{program}` did not come for them"
            ));
        }
        if overflowed > 0 {
            notes.push(format!(
                "{overflowed} messages of channel `{channel}` arrived on host `{host}` and are \
                 lost: `{program}` came too late for them, its queue was full"
            ));
        }
    }

    fn end_log(
        &self,
        channel: ChannelId,
        place: usize,
        owner: Owner,
        notes: &mut Vec<String>,
    ) -> EndpointLog {
        let declared = self.system.channel(channel);
        let (role, node) = match place {
            0 => (Role::Talker, declared.talker),
            n => (Role::Listener, declared.listeners[n - 1]),
        };
        let host = &self.system.node(node).name;
        let (records, unrecorded, malformed) = match owner {
            Owner::Nobody(delivered) => {
                let end = if place == 0 { "talker" } else { "listener" };
                let name = &declared.name;
                notes.push(format!(
                    "no program on host `{host}` opened the {end} of channel `{name}`"
                ));
                let read = |at| self.read_clock(node, at);
                (delivered.unread(&self.parameters(channel), &[], read), 0, 0)
            }
            Owner::Talker(synthetic) => (synthetic.records, 0, 0),
            Owner::Listener(synthetic) => {
                let malformed = synthetic.malformed();
                (synthetic.records, 0, malformed)
            }
            Owner::Elsewhere => (Vec::new(), 0, 0),
            Owner::OnKernel(mut endpoint) => {
                let log = endpoint.finish();
                let counters = log.counters();
                notes.extend(rejections(&declared.name, host, log));
                (log.records(), counters.unrecorded, counters.rejected_in_all())
            }
            Owner::Program(end) => {
                if place > 0 && self.opened_late(end) {
                    let name = &declared.name;
                    notes.push(format!(
                        "host `{host}` opened its listener of channel `{name}` after the start: \
                         what was sent before counts as lost"
                    ));
                }
                self.recorded(end, notes)
            }
        };
        EndpointLog { channel, role, node, records, unrecorded, malformed }
    }

    /// Whether the first opening of an end was after the start, and what was delivered there before
    /// is not known.
    fn opened_late(&self, end: EndpointId) -> bool {
        let mut starts = std::iter::successors(Some(end), |at| self.endpoints[*at].before);
        let first = starts.find(|at| self.endpoints[*at].before.is_none());
        !self.carrier.is_emulated() && first.is_some_and(|at| self.endpoints[at].late)
    }

    /// The records of an end that a program has opened and of those of before that it has closed,
    /// how many there was no room for, and how many frames were rejected.
    fn recorded(&self, end: EndpointId, notes: &mut Vec<String>) -> (Vec<Record>, u64, u64) {
        let mut starts = vec![&self.endpoints[end]];
        while let Some(before) = starts[starts.len() - 1].before {
            starts.push(&self.endpoints[before]);
        }
        let (mut all, mut unrecorded, mut malformed) = (Vec::new(), 0, 0);
        for end in starts.into_iter().rev() {
            let (mut records, counters) = (end.log.records(), end.log.counters());
            unrecorded += counters.unrecorded;
            malformed += counters.rejected_in_all();
            let channel = &self.system.channel(end.channel).name;
            let host = &self.system.node(end.node).name;
            notes.extend(rejections(channel, host, &end.log));
            let read = |at| self.read_clock(end.node, at);
            for (record, queued) in records.iter_mut().zip(&end.transfers) {
                record.transfer = Some(read(*queued));
            }
            if counters.unrecorded == 0 && self.carrier.is_emulated() {
                let unread = end.delivered.unread(&end.parameters, &records, read);
                self.note_unread(end, &unread, notes);
                records.extend(unread);
            }
            all.extend(records);
        }
        if unrecorded == 0 && !self.carrier.is_emulated() {
            // What a station has delivered is with the last one of these.
            let end = &self.endpoints[end];
            let read = |at| self.read_clock(end.node, at);
            let unread = end.delivered.unread(&end.parameters, &all, read);
            self.note_unread(end, &unread, notes);
            all.extend(unread);
        }
        (all, unrecorded, malformed)
    }
}

/// What the user should know of frames that were not given to a program because of what they say.
fn rejections(channel: &str, host: &str, log: &SharedLog) -> Vec<String> {
    let counters = log.counters();
    let [talker, future] =
        [Reason::Talker, Reason::Future].map(|reason| counters.rejected[reason as usize]);
    let mut notes = Vec::new();
    if talker > 0 {
        let from =
            log.last_other_talker().map_or("an unknown address".to_owned(), |s| s.to_string());
        notes.push(format!(
            "channel `{channel}` has another talker, {from}: host `{host}` dropped {talker} of its \
             messages"
        ));
    }
    if future > 0 {
        notes.push(format!(
            "host `{host}` dropped {future} messages of channel `{channel}` that say they were \
             captured later than the clocks allow"
        ));
    }
    let others = [
        (Reason::Damaged, "with another CRC than theirs"),
        (Reason::NotAuthentic, "that nobody with the key made for now"),
        (Reason::UnknownKey, "by a key that it does not have"),
        (Reason::Replayed, "that were repeated"),
        (Reason::Stale, "from before it began to read, or of an earlier start of the talker"),
    ];
    for (reason, which) in others {
        let count = counters.rejected[reason as usize];
        if count > 0 {
            notes.push(format!(
                "host `{host}` dropped {count} messages of channel `{channel}` {which}"
            ));
        }
    }
    notes
}
