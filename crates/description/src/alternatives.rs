//! Channels that share one slot of stations: a word of a message says which of them sends.

use super::channels::Channels;
use super::fields::Fields;
use super::names::Names;
use super::parse::Entry;
use super::rest::named;
use super::{At, Sink, codes, limits, raw};
use onbeat_model::diagnostic::Diagnostic;
use onbeat_model::system::{AlternativeChannel, Alternatives, ChannelId};
use onbeat_model::units::Octets;
use std::collections::BTreeMap;

/// The octets of the word that decides.
const WORD: i64 = 4;

type TableFields<'a> = Fields<'a, raw::Alternatives>;

/// Checks all tables.
pub(super) fn check(
    entries: &[Entry<raw::Alternatives>],
    channels: &Channels,
    sink: &mut Sink,
) -> Vec<Alternatives> {
    let mut names = Names::new("alternatives");
    let mut named_at = BTreeMap::new();
    let mut all = Vec::new();
    for entry in entries {
        let mut fields = Fields::new(entry, "alternatives", &entry.raw.name, sink);
        let name = named(&mut fields, "alternatives", &entry.raw.name, &mut names, ());
        all.extend(one(&mut fields, name, channels, &mut named_at));
    }
    all
}

/// `named_at` has the channels of all tables before.
fn one(
    fields: &mut TableFields<'_>,
    name: String,
    channels: &Channels,
    named_at: &mut BTreeMap<ChannelId, At<String>>,
) -> Option<Alternatives> {
    let raw = &fields.entry.raw;
    let origin = raw.name.as_ref().map_or(fields.entry.at, |name| name.at);
    let mode = fields.need("mode", &raw.mode);
    let list = fields.need("channels", &raw.channels);
    let values = fields.need("values", &raw.values);
    let offset = fields.need("offset_octets", &raw.offset_octets);
    let range = 0..=limits::ALTERNATIVES_OFFSET;
    let offset = fields.int(codes::OUT_OF_RANGE, ("offset_octets", &offset), range);
    let (mode, list, values) = (mode?, list?, values?);
    let values = self::values(fields, &list, &values);
    let mode_id = find(fields, &mode, channels, named_at);
    let find = |name| find(fields, name, channels, named_at);
    let ids: Vec<Option<ChannelId>> = list.value.iter().map(find).collect();
    let (mode_id, ids) = (mode_id?, ids.into_iter().collect::<Option<Vec<_>>>()?);
    let offset = word(fields, raw.offset_octets, offset?, channels, mode_id)?;
    for (id, name) in ids.iter().zip(&list.value) {
        receives(fields, channels, [mode_id, *id], name);
    }
    let alternative = |(channel, value)| AlternativeChannel { channel, value };
    let channels = ids.into_iter().zip(values?).map(alternative).collect();
    Some(Alternatives { name, mode: mode_id, offset, channels, origin })
}

/// One value for each channel, none twice.
fn values(
    fields: &mut TableFields<'_>,
    list: &At<Vec<At<String>>>,
    values: &At<Vec<At<i64>>>,
) -> Option<Vec<u32>> {
    let (count, of) = (list.value.len(), values.value.len());
    if !(2..=limits::LIST).contains(&count) || count != of {
        let text = format!("{count} channels have {of} values");
        let help = format!("name 2 to {} channels, and a value for each", limits::LIST);
        fields.error(codes::ALTERNATIVES, &text, values.at, "these values", &help);
        return None;
    }
    let mut known: BTreeMap<i64, &At<i64>> = BTreeMap::new();
    let mut all = Some(Vec::new());
    for value in &values.value {
        let range = 0..=limits::ALTERNATIVES_VALUE;
        let checked = fields.int(codes::OUT_OF_RANGE, ("values", &Some(*value)), range);
        if let Some(other) = known.insert(value.value, value) {
            let text = format!("two channels have the value {}", value.value);
            let message = format!("{}: {text}", fields.what);
            let equal = Diagnostic::error(codes::ALTERNATIVES, message, value.at, "this value")
                .help("give each channel a value of its own")
                .related(other.at, "the same value");
            fields.sink.push(equal);
            all = None;
        }
        let checked = checked.and_then(|value| u32::try_from(value).ok());
        all = all.zip(checked).map(|(mut all, value)| {
            all.push(value);
            all
        });
    }
    all
}

/// A channel that is in no table yet.
fn find(
    fields: &mut TableFields<'_>,
    name: &At<String>,
    channels: &Channels,
    named_at: &mut BTreeMap<ChannelId, At<String>>,
) -> Option<ChannelId> {
    let id = channels.names.find(codes::UNKNOWN_CHANNEL, name, fields.sink)?;
    let Some(other) = named_at.insert(id, name.clone()) else { return Some(id) };
    let message = format!("{}: channel `{}` is there twice", fields.what, name.value);
    let twice = Diagnostic::error(codes::ALTERNATIVES, message, name.at, "this channel")
        .help("name each channel in one table only, as its mode or as an alternative")
        .related(other.at, "and here");
    fields.sink.push(twice);
    None
}

/// Where the word is in the mode's message.
fn word(
    fields: &mut TableFields<'_>,
    given: Option<At<i64>>,
    offset: i64,
    channels: &Channels,
    mode: ChannelId,
) -> Option<Octets> {
    let size = i64::from(channels.list[mode.index()].size.get());
    if offset % WORD == 0 && offset + WORD <= size {
        return u32::try_from(offset).ok().map(Octets::new);
    }
    let text = format!("no word begins at octet {offset} of a message of {size}");
    let at = given.map_or(fields.entry.at, |offset| offset.at);
    let help = "use a multiple of 4 with 4 octets of the message behind it";
    fields.error(codes::ALTERNATIVES, &text, at, "the word", help);
    None
}

/// The talker of an alternative has to receive the mode.
fn receives(
    fields: &mut TableFields<'_>,
    channels: &Channels,
    ids: [ChannelId; 2],
    name: &At<String>,
) {
    let [mode, of] = ids.map(|id| &channels.list[id.index()]);
    let hears = mode.talker != of.talker && mode.listeners.contains(&of.talker);
    if hears || ids.iter().any(|id| !channels.ends_known[id.index()]) {
        return;
    }
    let text = match mode.talker == of.talker {
        true => format!("the talker of `{}` sends the mode `{}`", of.name, mode.name),
        false => format!("the talker of `{}` does not listen to `{}`", of.name, mode.name),
    };
    let message = format!("{}: {text}", fields.what);
    let apart = Diagnostic::error(codes::MODE, message, name.at, "this channel")
        .help("have all talkers of alternatives receive the mode from another host")
        .related(mode.origin, "the mode");
    fields.sink.push(apart);
}
