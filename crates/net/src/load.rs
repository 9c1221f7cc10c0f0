//! The load that the noise sources offer, and what of it comes through, over time.

use crate::engine::Options;
use onbeat_model::record::LoadSample;
use onbeat_model::system::NoiseId;
use onbeat_model::time::{NetTime, Span};

/// One sample per source and interval of time.
#[derive(Debug)]
pub(crate) struct Load {
    bin: Span,
    sources: usize,
    /// In order of time, then source.
    samples: Vec<LoadSample>,
    /// The newest bin's end; everything before is in `samples`.
    end: NetTime,
    /// From here on nothing is offered, so that bins are added only for what is delivered.
    noise_until: NetTime,
}

impl Load {
    pub(crate) fn new(options: &Options, sources: usize) -> Self {
        assert!(options.load_bin > Span::ZERO, "a load sample covers some time");
        Self {
            bin: options.load_bin,
            sources,
            samples: Vec::new(),
            end: NetTime::ZERO,
            noise_until: options.noise_until,
        }
    }

    /// Makes sure that there are samples up to and with `now`, while noise is possible.
    pub(crate) fn cover(&mut self, now: NetTime) {
        self.extend(now.min(self.noise_until));
    }

    fn extend(&mut self, at: NetTime) {
        while self.end <= at && self.sources > 0 {
            let start = self.end;
            let empty = |source| LoadSample {
                noise: NoiseId(source as u32),
                at: start,
                offered_bits: 0,
                delivered_bits: 0,
            };
            self.samples.extend((0..self.sources).map(empty));
            self.end += self.bin;
        }
    }

    /// The sample of a source that `at` falls into. Most calls concern the newest bin.
    fn sample(&mut self, source: u32, at: NetTime) -> &mut LoadSample {
        self.extend(at);
        let newest = self.end - self.bin;
        let bins_back = match (newest - at).as_ns() {
            ..=0 => 0,
            before => (before - 1) / self.bin.as_ns() + 1,
        };
        let from_end = (bins_back as usize + 1) * self.sources;
        let at = self.samples.len() - from_end + source as usize;
        &mut self.samples[at]
    }

    pub(crate) fn offered(&mut self, source: u32, at: NetTime, bits: u64) {
        self.sample(source, at).offered_bits += bits;
    }

    pub(crate) fn delivered(&mut self, source: u32, at: NetTime, bits: u64) {
        self.sample(source, at).delivered_bits += bits;
    }

    /// The samples of the bins that begin before `now`; they may be covered up to a later time.
    pub(crate) fn until(&self, now: NetTime) -> &[LoadSample] {
        &self.samples[..self.samples.partition_point(|sample| sample.at < now)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_count_in_the_bin_of_their_time_and_silent_bins_are_there_too() {
        let at = NetTime::from_ns;
        let load_bin = Span::from_ns(10);
        let options = Options {
            seed: 1,
            host_delays: true,
            load_bin,
            noise_until: at(52),
            traffic_until: at(52),
            model_channels: false,
        };
        let mut load = Load::new(&options, 2);
        load.offered(1, at(9), 1);
        load.delivered(0, at(40), 2);
        load.offered(0, at(10), 4);
        load.offered(0, at(19), 8);
        load.offered(1, at(20), 16);
        load.cover(at(25));
        let sample = |noise, ns, offered_bits, delivered_bits| LoadSample {
            noise: NoiseId(noise),
            at: at(ns),
            offered_bits,
            delivered_bits,
        };
        let expected = [
            sample(0, 0, 0, 0),
            sample(1, 0, 1, 0),
            sample(0, 10, 12, 0),
            sample(1, 10, 0, 0),
            sample(0, 20, 0, 0),
            sample(1, 20, 16, 0),
            sample(0, 30, 0, 0),
            sample(1, 30, 0, 0),
            sample(0, 40, 0, 2),
            sample(1, 40, 0, 0),
        ];
        assert_eq!(load.until(at(41)), expected);
        assert_eq!(load.until(at(40)), &expected[..8]);
        assert_eq!(load.until(at(0)), []);
        load.cover(NetTime::MAX);
        assert_eq!(load.until(NetTime::MAX).len(), 6 * 2);
    }
}
