//! Stations that carried the channels, in a record file.

use super::{Error, Input};
use onbeat_model::stations::{StationCounts, StationsObserved};
use onbeat_model::system::NodeId;

/// The octets of a station.
const STATION: usize = 4 + 7 * 8 + 1;

pub(super) fn put(put: &mut impl FnMut(&[u8]), observed: &StationsObserved) {
    put(&observed.collisions.to_le_bytes());
    put(&observed.waits.to_le_bytes());
    let count = u32::try_from(observed.stations.len()).expect("a system has fewer");
    put(&count.to_le_bytes());
    for station in &observed.stations {
        let StationCounts { rounds, sent, received, unsent, timeouts, .. } = *station;
        put(&station.node.0.to_le_bytes());
        let counts =
            [rounds, sent, received, unsent, timeouts, station.overruns, station.discarded];
        counts.iter().for_each(|count| put(&count.to_le_bytes()));
        put(&[u8::from(station.has_stopped)]);
    }
}

impl Input<'_> {
    pub(super) fn stations(&mut self) -> Result<StationsObserved, Error> {
        let (collisions, waits, count) = (self.u64()?, self.u64()?, self.u32()?);
        let count = self.count(count.into(), STATION)?;
        let stations = (0..count).map(|_| self.station()).collect::<Result<_, _>>()?;
        Ok(StationsObserved { stations, collisions, waits })
    }

    fn station(&mut self) -> Result<StationCounts, Error> {
        // Fields are read in the order of the file.
        Ok(StationCounts {
            node: NodeId(self.u32()?),
            rounds: self.u64()?,
            sent: self.u64()?,
            received: self.u64()?,
            unsent: self.u64()?,
            timeouts: self.u64()?,
            overruns: self.u64()?,
            discarded: self.u64()?,
            has_stopped: self.flag("a station")?,
        })
    }
}
