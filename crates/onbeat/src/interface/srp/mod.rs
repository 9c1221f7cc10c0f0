//! A program's side of stream reservation: it asks the service of its host's interface
//! (`onbeat srp serve`), or mrpd where that runs, and learns how its streams stand.
//!
//! ```text
//! write ── a word of memory ── thread of the end ── Unix socket ── service, MSRP on the link
//!                                               └── UDP 7500 ───── mrpd
//! ```
//!
//! The thread waits in the kernel for what the service says. A write only loads the word; without
//! a reservation it waits at the word. The library starts no process: a service that is gone is
//! looked for until it is back, and meanwhile nothing is reserved.

mod follower;
pub mod mrpd;
pub mod protocol;
mod service;

pub use protocol::{
    Answer, Neighbour, Offer, Phase, Refusal, Request, StreamStatus, Summary, WrongMessage,
};
pub use service::{SrpConnection, mrpd_answers, mrpd_says, say, service_name, services};

pub(crate) use follower::Reservation;

use onbeat_model::system::Class;
use onbeat_model::time::Span;
use onbeat_model::units::frame;
use onbeat_runtime::channel_io::Grant;
use onbeat_runtime::msrp::TSpec;
use onbeat_runtime::talker::ChannelParameters;

/// What the word of an end says.
const GRANTED: u32 = 1 << 31;

/// The word for a stream that stands so.
fn word_of(status: &StreamStatus) -> u32 {
    let tag = status.vid.zip(status.priority);
    match tag.filter(|_| status.phase.is_reserved()) {
        Some((vid, priority)) => GRANTED | u32::from(priority) << 12 | u32::from(vid),
        None => 0,
    }
}

/// What a word says.
#[inline]
fn grant_of(word: u32) -> Grant {
    match word & GRANTED {
        0 => Grant::Missing,
        _ => Grant::Held { vlan: (word & 0xfff) as u16, pcp: (word >> 12 & 7) as u8 },
    }
}

/// What a channel offers: whole frames in each class measurement interval, at least one (802.1Q
/// 34.3, 35.2.2.8.4). `None` for scheduled traffic, which SRP does not reserve.
pub fn offer_of(channel: &ChannelParameters) -> Option<Offer> {
    let class = class_of(channel.pcp)?;
    let measured = class.measurement_interval().unwrap_or(Span::from_us(250));
    let interval = channel.interval.as_ns().max(1).unsigned_abs();
    let frames = measured.as_ns().unsigned_abs() * u64::from(channel.fragments().count);
    let frames = frames.div_ceil(interval).max(1);
    let octets = channel.stream_data_length().get() + frame::AVTP_HEADER.get();
    Some(Offer {
        stream: channel.stream_id,
        destination: channel.destination,
        class,
        vid: channel.vlan,
        priority: channel.pcp,
        tspec: TSpec {
            max_frame_size: u16::try_from(octets).unwrap_or(u16::MAX),
            max_interval_frames: u16::try_from(frames).unwrap_or(u16::MAX),
        },
    })
}

/// The SR class with this priority by default (802.1Q Table 6-5).
fn class_of(priority: u8) -> Option<Class> {
    [Class::A, Class::B].into_iter().find(|class| class.default_pcp() == priority)
}

#[cfg(test)]
mod tests {
    use super::*;
    use onbeat_model::integrity::Integrity;
    use onbeat_model::record::Role;
    use onbeat_model::units::{MacAddress, Octets, StreamId};

    fn channel() -> ChannelParameters {
        ChannelParameters {
            destination: MacAddress([0x91, 0xe0, 0xf0, 0, 0xfe, 1]),
            source: MacAddress::default(),
            stream_id: StreamId(7),
            vlan: 2,
            pcp: 3,
            size: Octets::new(8),
            integrity: Integrity::None,
            replicated: false,
            launch: None,
            talker_address: None,
            interval: Span::from_ms(20),
            tolerance: Span::ZERO,
            catch_up: Span::ZERO,
            fixed_delay: Span::from_ms(2),
            clock_error: Span::ZERO,
            epoch: 0,
        }
    }

    #[test]
    fn a_channel_offers_whole_frames_in_each_measurement_interval() {
        // 8 octets behind a stream header of 24; 50 messages a second are one in 125 µs.
        let offer = offer_of(&channel()).expect("class A");
        assert_eq!(offer.tspec, TSpec { max_frame_size: 32, max_interval_frames: 1 });
        assert_eq!(offer.class, Class::A);
        let checked = ChannelParameters { integrity: Integrity::Authenticated, ..channel() };
        assert_eq!(offer_of(&checked).expect("class A").tspec.max_frame_size, 64);
        let often = ChannelParameters { pcp: 2, interval: Span::from_us(100), ..channel() };
        let offer = offer_of(&often).expect("class B");
        assert_eq!((offer.class, offer.tspec.max_interval_frames), (Class::B, 3));
        assert_eq!(offer_of(&ChannelParameters { pcp: 5, ..channel() }), None);
        // The trailer is a part of the frame, too.
        let sealed = ChannelParameters { integrity: Integrity::Authenticated, ..channel() };
        assert_eq!(offer_of(&sealed).expect("class A").tspec.max_frame_size, 64);
    }

    #[test]
    fn the_word_has_the_tag_only_while_bandwidth_is_reserved() {
        let bare = StreamStatus::new(Role::Talker, StreamId(7));
        let with = |phase| StreamStatus { phase, vid: Some(4_094), priority: Some(7), ..bare };
        for phase in [Phase::Ready, Phase::ReadyFailed] {
            let grant = Grant::Held { vlan: 4_094, pcp: 7 };
            assert_eq!(grant_of(word_of(&with(phase))), grant);
        }
        for phase in [Phase::Advertised, Phase::AskingFailed, Phase::NoService] {
            assert_eq!(grant_of(word_of(&with(phase))), Grant::Missing);
        }
        assert_eq!(grant_of(word_of(&bare)), Grant::Missing);
    }
}
