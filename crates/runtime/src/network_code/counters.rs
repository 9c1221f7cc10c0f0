//! What a station counts, from its start on.

use std::ops::AddAssign;

/// Counters of a station: those of the interpreter are the same but for the last five, which say
/// how a station that executes in real time keeps up, and are 0 in nominal time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StationCounters {
    /// `sync master`s issued.
    pub rounds_begun: u64,
    /// `sync slave`s that continued because of a frame.
    pub rounds_seen: u64,
    /// `send`s issued that are no trap.
    pub data_sent: u64,
    /// Data frames stored in a receive buffer.
    pub data_received: u64,
    /// Data frames of a message that the station does not know.
    pub data_unknown: u64,
    /// Data frames of another length than that of their message.
    pub data_wrong_length: u64,
    /// Of those stored: how many replaced one that no `receive` had copied.
    pub data_overwritten: u64,
    /// Frames whose check sequence is wrong.
    pub damaged: u64,
    /// Frames that begin a round and came while no `sync slave` waited.
    pub syncs_discarded: u64,
    /// Of those discarded: how many were not of the station whose frame had begun the current
    /// round when they came. With a station's first round this is itself or another; before that
    /// none counts.
    pub second_masters: u64,
    /// `sync slave`s that continued without a frame.
    pub sync_timeouts: u64,
    /// `halt`s that found their countdown at its end, and `future`s that replaced a countdown.
    pub overruns: u64,
    /// 1 when the station has stopped, else 0.
    pub traps: u64,
    /// Transmissions handed out later than the instant of their first octet: late slots.
    pub transmissions_late: u64,
    /// The largest lateness of these, in cycles.
    pub lateness_max: u64,
    /// The sum of their lateness, in cycles.
    pub lateness_sum: u64,
    /// Frames handed over when an instruction that was issued in their cycle or later, or a timeout
    /// then, had been carried out: the instructions from then on see them.
    pub inputs_late: u64,
    /// Frames handed over when an instruction of an earlier cycle had yet to be carried out: that
    /// one sees them too early.
    pub inputs_early: u64,
}

/// What was counted from two starts of a station on.
impl AddAssign for StationCounters {
    fn add_assign(&mut self, other: Self) {
        // Nothing is forgotten here: a new counter has to have its line.
        let Self {
            rounds_begun,
            rounds_seen,
            data_sent,
            data_received,
            data_unknown,
            data_wrong_length,
            data_overwritten,
            damaged,
            syncs_discarded,
            second_masters,
            sync_timeouts,
            overruns,
            traps,
            transmissions_late,
            lateness_max,
            lateness_sum,
            inputs_late,
            inputs_early,
        } = other;
        self.rounds_begun += rounds_begun;
        self.rounds_seen += rounds_seen;
        self.data_sent += data_sent;
        self.data_received += data_received;
        self.data_unknown += data_unknown;
        self.data_wrong_length += data_wrong_length;
        self.data_overwritten += data_overwritten;
        self.damaged += damaged;
        self.syncs_discarded += syncs_discarded;
        self.second_masters += second_masters;
        self.sync_timeouts += sync_timeouts;
        self.overruns += overruns;
        self.traps += traps;
        self.transmissions_late += transmissions_late;
        self.lateness_max = self.lateness_max.max(lateness_max);
        self.lateness_sum = self.lateness_sum.saturating_add(lateness_sum);
        self.inputs_late += inputs_late;
        self.inputs_early += inputs_early;
    }
}
