//! The clocks in a record file.

use super::{Error, Input};
use onbeat_model::observed::{ClockObserved, ClockPhase, ClockSample};
use onbeat_model::system::NodeId;
use onbeat_model::time::{NetTime, Span};

/// The fewest octets of a clock and of a sample.
const CLOCK_MIN: usize = 4 + 8 + 3 + 1 + 1 + 1 + 1 + 4;
const SAMPLE_MIN: usize = 8 + 8 + 1;

pub(super) fn put(out: &mut Vec<u8>, clocks: &[ClockObserved]) {
    let count = |count: usize| u32::try_from(count).expect("a system has fewer").to_le_bytes();
    out.extend(count(clocks.len()));
    for clock in clocks {
        out.extend(clock.node.0.to_le_bytes());
        out.extend(clock.assumed.as_ns().to_le_bytes());
        for phase in [clock.before, clock.during, clock.after] {
            put_some(out, phase.map(|p| [p.error.as_ns(), p.from_source.as_ns()]));
        }
        put_some(out, clock.fault.map(|at| [at.as_ns()]));
        put_some(out, clock.beyond.map(|ends| ends.map(NetTime::as_ns)));
        out.push(u8::from(clock.is_beyond));
        put_node(out, clock.source);
        out.extend(count(clock.samples.len()));
        for sample in &clock.samples {
            out.extend(sample.at.as_ns().to_le_bytes());
            out.extend(sample.error.as_ns().to_le_bytes());
            put_node(out, sample.source);
        }
    }
}

fn put_some<const N: usize>(out: &mut Vec<u8>, numbers: Option<[i64; N]>) {
    out.push(u8::from(numbers.is_some()));
    out.extend(numbers.into_iter().flatten().flat_map(i64::to_le_bytes));
}

fn put_node(out: &mut Vec<u8>, node: Option<NodeId>) {
    out.push(u8::from(node.is_some()));
    out.extend(node.into_iter().flat_map(|node| node.0.to_le_bytes()));
}

impl Input<'_> {
    pub(super) fn clocks(&mut self, may_be_none: bool) -> Result<Vec<ClockObserved>, Error> {
        let count = self.u32()?;
        let count = self.count(count.into(), CLOCK_MIN)?;
        // Without any, the file would be of the version before.
        if count == 0 && !may_be_none {
            return Err(Error::Value("the number of clocks"));
        }
        (0..count).map(|_| self.clock()).collect()
    }

    fn clock(&mut self) -> Result<ClockObserved, Error> {
        let node = NodeId(self.u32()?);
        let [assumed] = self.positive()?;
        let assumed = Span::from_ns(assumed);
        let mut clock = ClockObserved::new(node, assumed);
        let phase = |[error, from_source]: [i64; 2]| ClockPhase {
            error: Span::from_ns(error),
            from_source: Span::from_ns(from_source),
        };
        clock.before = self.some()?.map(phase);
        clock.during = self.some()?.map(phase);
        clock.after = self.some()?.map(phase);
        clock.fault = self.some()?.map(|[at]| NetTime::from_ns(at));
        clock.beyond = self.some()?.map(|ends: [i64; 2]| ends.map(NetTime::from_ns));
        clock.is_beyond = self.flag("a clock")?;
        clock.source = self.node()?;
        let count = self.u32()?;
        let count = self.count(count.into(), SAMPLE_MIN)?;
        clock.samples = (0..count).map(|_| self.sample()).collect::<Result<_, _>>()?;
        Ok(clock)
    }

    fn sample(&mut self) -> Result<ClockSample, Error> {
        Ok(ClockSample {
            at: NetTime::from_ns(self.i64()?),
            error: Span::from_ns(self.i64()?),
            source: self.node()?,
        })
    }

    fn some<const N: usize>(&mut self) -> Result<Option<[i64; N]>, Error> {
        if !self.flag("a clock")? {
            return Ok(None);
        }
        self.positive().map(Some)
    }

    /// Numbers whose differences are numbers.
    fn positive<const N: usize>(&mut self) -> Result<[i64; N], Error> {
        let mut numbers = [0; N];
        for number in &mut numbers {
            *number = self.i64()?;
        }
        if numbers.iter().all(|number| *number >= 0) {
            Ok(numbers)
        } else {
            Err(Error::Value("a clock"))
        }
    }

    fn node(&mut self) -> Result<Option<NodeId>, Error> {
        match self.flag("a clock")? {
            true => Ok(Some(NodeId(self.u32()?))),
            false => Ok(None),
        }
    }
}
