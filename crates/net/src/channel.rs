//! Channels whose frames the engine itself makes.

use onbeat_model::system::{Channel, NodeKind, System};
use onbeat_model::time::Span;
use onbeat_model::units::MacAddress;
use onbeat_runtime::talker::ChannelParameters;

/// What both ends know of a channel whose messages no program writes.
pub(crate) fn channel_parameters(system: &System, channel: &Channel) -> ChannelParameters {
    let source = match &system.node(channel.talker).kind {
        NodeKind::Host(host) => host.mac,
        NodeKind::Bridge(_) => MacAddress::default(),
    };
    ChannelParameters {
        destination: channel.destination,
        source,
        stream_id: channel.stream_id,
        vlan: channel.vlan,
        pcp: channel.pcp,
        size: channel.size,
        integrity: channel.integrity,
        replicated: false,
        launch: None,
        talker_address: None,
        interval: channel.interval,
        tolerance: channel.tolerance(),
        catch_up: channel.catch_up(),
        fixed_delay: channel.fixed_delay,
        clock_error: Span::ZERO,
        epoch: 0,
    }
}
