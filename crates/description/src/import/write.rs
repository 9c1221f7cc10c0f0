//! A network and its channels as the text of a description.

use super::shape::{Link, Shape, Station, plain};
use super::streams::Channel;
use super::{ImportOptions, SizeMeaning};
use crate::FORMAT;
use onbeat_model::time::Span;
use onbeat_model::units::MacAddress;
use std::fmt::Write;

/// How long the description runs.
const DURATION_S: u32 = 10;
/// The group addresses of channels begin so: locally administered.
const GROUP: [u8; 3] = [0x03, 0x00, 0x00];

/// The whole description.
pub(super) fn text(shape: &Shape, channels: &[Channel], options: &ImportOptions) -> String {
    let mut text = String::from("# Made by `onbeat import`.\n");
    if !channels.is_empty() {
        let size = match options.size {
            SizeMeaning::Wire => "octets that a frame occupies of a link",
            SizeMeaning::Frame => "octets of frames",
            SizeMeaning::Payload => "octets of messages",
        };
        let _ = writeln!(text, "# Sizes in the file of streams were {size}.");
    }
    let name = match plain(&options.name) {
        name if name.is_empty() => "imported".to_owned(),
        name => name,
    };
    let _ = writeln!(text, "\nformat = {FORMAT}\nname = \"{name}\"");
    let _ = writeln!(text, "\n[run]\nduration_s = {DURATION_S}");
    shape.nodes.iter().for_each(|node| station(&mut text, node));
    shape.links.iter().for_each(|one| link(&mut text, shape, one));
    channels.iter().enumerate().for_each(|(at, one)| channel(&mut text, shape, one, at));
    text
}

fn station(text: &mut String, node: &Station) {
    let kind = if node.is_bridge { "bridge" } else { "host" };
    let _ = writeln!(text, "\n[[{kind}]]\nname = \"{}\"", node.name);
    let ns = node.processing.as_ns();
    let _ = match (node.processing, node.is_bridge) {
        (Span::ZERO, _) => Ok(()),
        (_, true) => writeln!(text, "forwarding_ns = {ns}"),
        (_, false) => writeln!(text, "stack_rx_ns = {{ min = {ns}, max = {ns} }}"),
    };
}

fn link(text: &mut String, shape: &Shape, link: &Link) {
    let [a, b] = [0, 1].map(|end| {
        let node = &shape.nodes[link.ends[end]].name;
        link.ports[end].as_ref().map_or_else(|| node.clone(), |port| format!("{node}.{port}"))
    });
    let _ = writeln!(text, "\n[[link]]\nends = [\"{a}\", \"{b}\"]");
    let bps = link.rate.as_bps();
    let _ = match bps % 1_000_000 {
        0 => writeln!(text, "rate_mbps = {}", bps / 1_000_000),
        _ => writeln!(text, "rate_bps = {bps}"),
    };
    if link.propagation != Span::ZERO {
        let _ = writeln!(text, "propagation_ns = {}", link.propagation.as_ns());
    }
}

fn channel(text: &mut String, shape: &Shape, channel: &Channel, at: usize) {
    let number = at as u64 + 1;
    let [.., a, b, c] = number.to_be_bytes();
    let [x, y, z] = GROUP;
    let _ = writeln!(text, "\n[[channel]]\nname = \"{}\"", channel.name);
    let _ = writeln!(text, "destination = \"{}\"", MacAddress([x, y, z, a, b, c]));
    let _ = writeln!(text, "stream_id = {number}\nclass = \"scheduled\"");
    let _ = writeln!(text, "size_octets = {}", channel.payload);
    let _ = writeln!(text, "interval_ns = {}", channel.interval.as_ns());
    let _ = writeln!(text, "talker = \"{}\"", shape.nodes[channel.talker].name);
    let listeners = channel.listeners.iter().map(|to| format!("\"{}\"", shape.nodes[*to].name));
    let _ = writeln!(text, "listeners = [{}]", listeners.collect::<Vec<_>>().join(", "));
    let _ = writeln!(text, "fixed_delay_us = {}", channel.fixed_delay_us);
}
