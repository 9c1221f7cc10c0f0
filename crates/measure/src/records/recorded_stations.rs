//! Stations that carried the channels, in a record file.

use super::{Error, Input};
use onbeat_model::stations::{SlotErrorFigures, StationCounts, StationsObserved};
use onbeat_model::system::NodeId;
use onbeat_model::time::Span;

/// The least octets of a station.
const STATION: usize = 4 + 7 * 8 + 1;

pub(super) fn put(put: &mut impl FnMut(&[u8]), observed: &StationsObserved) {
    for count in [observed.collisions, observed.waits] {
        put(&[u8::from(count.is_some())]);
        count.iter().for_each(|count| put(&count.to_le_bytes()));
    }
    let count = u32::try_from(observed.stations.len()).expect("a system has fewer");
    put(&count.to_le_bytes());
    for station in &observed.stations {
        let StationCounts { rounds, sent, received, unsent, timeouts, .. } = *station;
        put(&station.node.0.to_le_bytes());
        let counts =
            [rounds, sent, received, unsent, timeouts, station.overruns, station.discarded];
        counts.iter().for_each(|count| put(&count.to_le_bytes()));
        put(&[u8::from(station.has_stopped)]);
        put(&station.missed.to_le_bytes());
        put(&station.late.to_le_bytes());
        put(&station.refused.to_le_bytes());
        put(&[u8::from(station.slot_error.is_some())]);
        if let Some(SlotErrorFigures { p50, p99, max }) = station.slot_error {
            [p50, p99, max].iter().for_each(|span| put(&span.as_ns().to_le_bytes()));
        }
    }
}

impl Input<'_> {
    /// `on_kernel`: with what there is on networks of the kernel alone.
    pub(super) fn stations(&mut self, on_kernel: bool) -> Result<StationsObserved, Error> {
        let mut count = || -> Result<Option<u64>, Error> {
            let is_known = !on_kernel || self.flag("a count of ports")?;
            if is_known { self.u64().map(Some) } else { Ok(None) }
        };
        let (collisions, waits) = (count()?, count()?);
        let count = self.u32()?;
        let count = self.count(count.into(), STATION)?;
        let stations = (0..count).map(|_| self.station(on_kernel)).collect::<Result<_, _>>()?;
        Ok(StationsObserved { stations, collisions, waits })
    }

    fn station(&mut self, on_kernel: bool) -> Result<StationCounts, Error> {
        // Fields are read in the order of the file.
        let counts = StationCounts {
            node: NodeId(self.u32()?),
            rounds: self.u64()?,
            sent: self.u64()?,
            received: self.u64()?,
            unsent: self.u64()?,
            timeouts: self.u64()?,
            overruns: self.u64()?,
            discarded: self.u64()?,
            has_stopped: self.flag("a station")?,
            missed: 0,
            late: 0,
            refused: 0,
            slot_error: None,
        };
        if !on_kernel {
            return Ok(counts);
        }
        let (missed, late, refused) = (self.u64()?, self.u64()?, self.u64()?);
        let slot_error = match self.flag("a slot error")? {
            true => Some(self.slot_error()?),
            false => None,
        };
        Ok(StationCounts { missed, late, refused, slot_error, ..counts })
    }

    fn slot_error(&mut self) -> Result<SlotErrorFigures, Error> {
        let [p50, p99, max] = [self.i64()?, self.i64()?, self.i64()?].map(Span::from_ns);
        Ok(SlotErrorFigures { p50, p99, max })
    }
}
