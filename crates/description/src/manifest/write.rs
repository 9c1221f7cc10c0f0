//! The manifest as C, from the checked description, so that the two never disagree.

use super::Rate;
use crate::codes;
use onbeat_model::diagnostic::{Code, Diagnostic};
use onbeat_model::system::{Channel, Class, System};
use std::fmt::Write;

/// The errors for channels that a manifest of a generation has no word for.
fn inexpressible(
    generation: &str,
    system: &System,
    lacks: impl Fn(&Channel) -> Option<(Code, &'static str)>,
) -> Result<(), Vec<Diagnostic>> {
    let error = |channel: &Channel| {
        let (code, what) = lacks(channel)?;
        let name = &channel.name;
        let message =
            format!("channel `{name}`: a manifest of the {generation} has no word {what}");
        let error = Diagnostic::error(code, message, channel.origin, "is not in a manifest");
        Some(error.help("change the channel, or give programs the table of `onbeat plan --deploy`"))
    };
    let errors: Vec<_> = system.channels.iter().filter_map(error).collect();
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

const CLASS: (Code, &str) = (codes::MANIFEST_CLASS, "for its class");

/// The manifest in the second generation's spelling: `struct channel_attrs nc_channels[]`.
///
/// # Errors
/// When a channel is of class asynchronous: the header of the public library has no word for that.
pub fn to_c(system: &System) -> Result<String, Vec<Diagnostic>> {
    let lacks = |c: &Channel| (c.class == Class::Asynchronous).then_some(CLASS);
    inexpressible("second generation", system, lacks)?;
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
pub fn to_c_first_generation(system: &System) -> Result<String, Vec<Diagnostic>> {
    let lacks = |c: &Channel| match c.class {
        Class::A | Class::B => hertz(c).is_none().then_some((codes::RATE, "for its interval")),
        Class::Scheduled | Class::Asynchronous => Some(CLASS),
    };
    inexpressible("first generation", system, lacks)?;
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
