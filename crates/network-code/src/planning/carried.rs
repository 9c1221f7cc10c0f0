//! What stations carry: a message for each channel, and what is refused.

use super::{codes, refused};
use onbeat_model::diagnostic::Diagnostic;
use onbeat_model::system::{Channel, NodeId, ReservationMode, System};
use onbeat_model::units::frame;
use onbeat_runtime::network_code::instruction::MessageId;
use onbeat_runtime::network_code::timing::FRAME_WORDS;

/// The message that begins a hyper-round; channels have the ones from 1 on.
pub(super) const HYPER_ROUND: MessageId = MessageId(0);
/// Channels that stations carry: the identifiers of messages without that.
const CHANNELS_MAX: usize = 255;

/// The frames of a channel, by nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ChannelFrames {
    pub(super) talker: NodeId,
    pub(super) listeners: Vec<NodeId>,
    /// Its data unit in words: the header of IEEE 1722, the message and its trailer.
    pub(super) words: u16,
}

/// The frames of each channel, in their order, or all that is not carried.
pub(super) fn frames(system: &System) -> Result<Vec<ChannelFrames>, Vec<Diagnostic>> {
    let mut errors = of_system(system);
    let mut frames = Vec::new();
    for channel in &system.channels {
        errors.extend(of_channel(channel));
        let octets = frame::AVTP_HEADER + channel.stream_data_length();
        let words = octets.get().div_ceil(4);
        match u16::try_from(words).ok().filter(|words| *words <= FRAME_WORDS) {
            Some(words) => frames.push(ChannelFrames {
                talker: channel.talker,
                listeners: channel.listeners.clone(),
                words,
            }),
            None => {
                let message = format!(
                    "channel `{}`: header, message and trailer are {words} words, and a frame of a \
                     station carries {FRAME_WORDS}",
                    channel.name
                );
                let error = Diagnostic::error(codes::PAYLOAD, message, channel.origin, "too long");
                errors.push(error.help("send less in a message, or split it"));
            }
        }
    }
    if errors.is_empty() { Ok(frames) } else { Err(errors) }
}

fn of_system(system: &System) -> Vec<Diagnostic> {
    let mut errors = Vec::new();
    if system.channels.is_empty() {
        let message = "the system has no channels".to_owned();
        errors.push(refused(codes::NOTHING, message, "describe a [[channel]]"));
    }
    if system.channels.len() > CHANNELS_MAX {
        let count = system.channels.len();
        let message = format!("the system has {count} channels, and stations know {CHANNELS_MAX}");
        let help = "leave channels to other backends, or carry several values in one message";
        errors.push(refused(codes::MESSAGES, message, help));
    }
    if let Some(stream) = system.streams.first() {
        let count = system.streams.len();
        let message = format!("{count} [[stream]]s, as `{}`, send beside rounds", stream.name);
        let error = Diagnostic::error(codes::UNCARRIED, message, stream.origin, "is not carried");
        errors.push(error.help("describe it as a [[channel]], or as [[noise]]"));
    }
    if let Some(flow) = system.tcp.first() {
        let count = system.tcp.len();
        let message = format!("{count} [[tcp]] flows, as `{}`, send beside rounds", flow.name);
        let error = Diagnostic::error(codes::UNCARRIED, message, flow.origin, "is not carried");
        errors.push(error.help("describe what loads the network as [[noise]]"));
    }
    if system.run.reservation == ReservationMode::Srp {
        let message = "`reservation = \"srp\"`: stations reserve nothing by protocol".to_owned();
        let help = "use `reservation = \"plan\"`: slots are planned";
        errors.push(refused(codes::UNCARRIED, message, help));
    }
    errors
}

fn of_channel(channel: &Channel) -> Vec<Diagnostic> {
    let mut errors = Vec::new();
    let mut refuse = |message: String, help: &str| {
        let message = format!("channel `{}` {message}", channel.name);
        let error =
            Diagnostic::error(codes::UNCARRIED, message, channel.origin, "is not carried so");
        errors.push(error.help(help));
    };
    if channel.paths.is_replicated() {
        let help = "remove `disjoint_paths` and `paths`: a frame of a station is flooded once";
        refuse("is replicated".to_owned(), help);
    }
    if channel.listeners.contains(&channel.talker) {
        let help = "remove the talker from `listeners`: a station does not hear itself";
        refuse("has its talker among its listeners".to_owned(), help);
    }
    if channel.frames() > 1 {
        let help = "send less in a message, or split it: a slot of a station has one frame";
        refuse(format!("has messages of {} frames", channel.frames()), help);
    }
    if channel.burst > 1 {
        let help = "set `burst_messages` to 1: a buffer of a station has the newest message only";
        refuse(format!("may write {} messages at once", channel.burst), help);
    }
    errors
}
