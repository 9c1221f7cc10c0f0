//! The manifest as C, from the checked description, so that the two never disagree.

use super::Rate;
use onbeat_model::system::{Channel, Class, System};
use std::fmt::Write;

/// Channels that the manifest of a generation cannot express.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the {generation} generation's manifest has no interval or class for {}",
    .channels.join(", ")
)]
pub struct NotExpressible {
    /// Which: first or second.
    pub generation: &'static str,
    /// Their names.
    pub channels: Vec<String>,
}

impl NotExpressible {
    /// Those of a system of which `lacks` is true, if there are any.
    fn check(
        generation: &'static str,
        system: &System,
        lacks: impl Fn(&Channel) -> bool,
    ) -> Result<(), Self> {
        let channels = system.channels.iter().filter(|channel| lacks(channel));
        let channels: Vec<String> = channels.map(|channel| channel.name.clone()).collect();
        if channels.is_empty() { Ok(()) } else { Err(Self { generation, channels }) }
    }
}

/// The manifest in the second generation's spelling: `struct channel_attrs nc_channels[]`.
///
/// # Errors
/// When a channel is of class asynchronous: the header of the public library has no word for that.
pub fn to_c(system: &System) -> Result<String, NotExpressible> {
    NotExpressible::check("second", system, |c| c.class == Class::Asynchronous)?;
    Ok(render(system, "channel_attrs", "nc_channels", |c| {
        let class = match c.class {
            Class::A => "SC_CLASS_A",
            Class::B => "SC_CLASS_B",
            Class::Scheduled => "SC_TAS",
            Class::Asynchronous => unreachable!("refused above"),
        };
        [("sc", class.to_owned()), ("interval_ns", format!("{}ULL", c.interval.as_ns()))]
    }))
}

/// The manifest in the first generation's spelling: `struct net_fifo net_fifo_chans[]`.
///
/// # Errors
/// When a channel is of another class than A and B, or its interval is not that of a whole number
/// of hertz: the first generation has no words for that.
pub fn to_c_first_generation(system: &System) -> Result<String, NotExpressible> {
    let is_shaped = |class| matches!(class, Class::A | Class::B);
    NotExpressible::check("first", system, |c| hertz(c).is_none() || !is_shaped(c.class))?;
    Ok(render(system, "net_fifo", "net_fifo_chans", |c| {
        let class = if c.class == Class::A { "CLASS_A" } else { "CLASS_B" };
        [("class", class.to_owned()), ("freq", hertz(c).unwrap_or(0).to_string())]
    }))
}

/// The rate that reads back as exactly the channel's interval.
fn hertz(channel: &Channel) -> Option<i64> {
    let hz = 1_000_000_000 / channel.interval.as_ns().max(1);
    (Rate::Hz(hz).interval() == Some(channel.interval)).then_some(hz)
}

fn render(
    system: &System,
    of: &str,
    array: &str,
    words: impl Fn(&Channel) -> [(&'static str, String); 2],
) -> String {
    let mut text = format!(
        "/* The channels of {}. Generated from its description by Onbeat: do not edit.\n \
         * Include the header that declares struct {of} first. */\n\
         #pragma once\n\nstruct {of} {array}[] = {{\n",
        system.name
    );
    for channel in &system.channels {
        let octets: Vec<String> =
            channel.destination.0.iter().map(|octet| format!("0x{octet:02x}")).collect();
        let [class, rate] = words(channel);
        let fields = [
            ("dst", format!("{{{}}}", octets.join(", "))),
            ("stream_id", format!("{}ULL", channel.stream_id.0)),
            class,
            ("size", channel.size.get().to_string()),
            rate,
            ("name", format!("\"{}\"", channel.name)),
        ];
        text.push_str("\t{\n");
        for (field, value) in fields {
            writeln!(text, "\t\t.{field} = {value},").expect("a string takes all text");
        }
        text.push_str("\t},\n");
    }
    text.push_str("};\n");
    text
}
