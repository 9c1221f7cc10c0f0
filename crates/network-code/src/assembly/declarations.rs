//! What a program declares: station, medium, constants, buffers and messages.

use super::findings::Findings;
use super::formula::{Expected, Formulas, Known, WORDS};
use super::lexer::{Span, shorten};
use super::syntax::{BufferLength, DeclarationKind, Formula, Named, Statement};
use super::{AssemblyOptions, DescribedChannel, DescribedNetwork};
use onbeat_model::codes::network_code as codes;
use onbeat_model::name;
use onbeat_runtime::network_code::instruction::PROGRAM_WORDS;
use onbeat_runtime::network_code::program::{BUFFERS, BufferRole};
use onbeat_runtime::network_code::timing::{FRAME_WORDS, Medium};
use std::collections::BTreeMap;

/// Constants of a program.
const CONSTANTS_MAX: usize = PROGRAM_WORDS;

/// Messages of a program: as many as there are identifiers.
const MESSAGES_MAX: usize = 256;

/// A buffer as it is declared.
#[derive(Clone, Debug)]
pub(crate) struct SourceBuffer {
    /// Its name.
    pub(crate) name: String,
    /// Who writes it.
    pub(crate) role: BufferRole,
    /// Its length, unless that is wrong.
    pub(crate) words: Option<u16>,
    /// The channel that it is of, if it is of one.
    pub(crate) channel: Option<String>,
    /// Where.
    pub(crate) span: Span,
    /// Whether an instruction names it.
    pub(crate) is_used: bool,
}

/// A message as it is declared.
#[derive(Clone, Debug)]
pub(crate) struct SourceMessage {
    /// Its identifier, unless that is wrong.
    pub(crate) id: Option<u8>,
    /// Its length, unless that is wrong.
    pub(crate) words: Option<u16>,
    /// Where.
    pub(crate) span: Span,
    /// Whether an instruction names it.
    pub(crate) is_used: bool,
}

/// All declarations, as far as they are right.
#[derive(Debug)]
pub(crate) struct Declarations {
    /// Whose program it is, if that is known.
    pub(crate) station: Option<String>,
    /// What it sends over.
    pub(crate) medium: Medium,
    /// Constants.
    pub(crate) formulas: Formulas,
    /// Where constants are declared.
    pub(crate) constants: BTreeMap<String, Span>,
    /// Buffers, in their order.
    pub(crate) buffers: Vec<SourceBuffer>,
    /// Where they are there, by name.
    pub(crate) buffer_names: BTreeMap<String, usize>,
    /// Messages, by name.
    pub(crate) messages: BTreeMap<String, SourceMessage>,
}

/// The declarations of a program.
pub(crate) fn declarations(
    statements: &[Statement],
    options: AssemblyOptions<'_>,
    findings: &mut Findings,
) -> Declarations {
    let medium = medium(statements, findings);
    let mut declarations = Declarations {
        station: station(statements, options, findings),
        medium,
        formulas: Formulas::new(medium),
        constants: BTreeMap::new(),
        buffers: Vec::new(),
        buffer_names: BTreeMap::new(),
        messages: BTreeMap::new(),
    };
    for statement in statements {
        match statement {
            Statement::Constant(name, formula) => {
                declarations.constant(name, Some(formula), findings);
            }
            Statement::Wrong(DeclarationKind::Constant, name) => {
                declarations.constant(name, None, findings);
            }
            _ => {}
        }
    }
    let network = options.network;
    for statement in statements {
        match statement {
            Statement::Buffer(role, name, length) => {
                declarations.buffer(*role, name, Some(length), network, findings);
            }
            Statement::Wrong(DeclarationKind::Buffer, name) => {
                declarations.buffer(BufferRole::Input, name, None, network, findings);
            }
            Statement::Message(name, id, words) => {
                declarations.message(name, Some((id, words)), findings);
            }
            Statement::Wrong(DeclarationKind::Message, name) => {
                declarations.message(name, None, findings);
            }
            _ => {}
        }
    }
    declarations
}

fn medium(statements: &[Statement], findings: &mut Findings) -> Medium {
    let mut first: Option<(Medium, Span)> = None;
    for statement in statements {
        let Statement::Medium { octet_cycles, tagged, span } = statement else { continue };
        if let Some((_, before)) = &first {
            let message = "the medium is declared twice".to_owned();
            findings.duplicate(codes::TWICE, message, span, before);
            continue;
        }
        if octet_cycles.is_none() {
            let help = "write `10 Mbit/s`, `100 Mbit/s` or `1 Gbit/s`";
            let message = "no station has a medium of this rate".to_owned();
            findings.error(codes::MEDIUM, message, span, help);
        }
        let medium = Medium { octet_cycles: octet_cycles.unwrap_or(1), tagged: *tagged };
        first = Some((medium, span.clone()));
    }
    first.map_or(Medium::GIGABIT, |(medium, _)| medium)
}

fn station(
    statements: &[Statement],
    options: AssemblyOptions<'_>,
    findings: &mut Findings,
) -> Option<String> {
    let mut first: Option<&Named> = None;
    let mut is_wrong = false;
    for statement in statements {
        let named = match statement {
            Statement::Station(named) => named,
            Statement::Wrong(DeclarationKind::Station, _) => {
                is_wrong = true;
                continue;
            }
            _ => continue,
        };
        if let Some(before) = first {
            let message = "the station is declared twice".to_owned();
            findings.duplicate(codes::TWICE, message, &named.span, &before.span);
            continue;
        }
        first = Some(named);
    }
    let start = 0..0;
    let (station, at) = match (first, options.station) {
        (Some(named), asked) => {
            if let Some(asked) = asked.filter(|asked| **asked != named.text) {
                let message = format!("the program is `{}`'s, not `{asked}`'s", named.text);
                let help = format!("assemble it with `--station {}`", named.text);
                findings.error(codes::OTHER_STATION, message, &named.span, &help);
            }
            (named.text.as_str(), &named.span)
        }
        (None, Some(asked)) => (asked, &start),
        (None, None) => {
            if !is_wrong {
                let message = "the program does not say whose it is".to_owned();
                let help = "begin it with `station NAME`, or name the node by `--station NODE`";
                findings.error(codes::NO_STATION, message, &start, help);
            }
            return None;
        }
    };
    if !name::is_name(station) {
        let message = format!("no node is called `{}`", shorten(station));
        let help = "a node's name is 1 to 63 letters, digits, `-` and `_`";
        findings.error(codes::STATION_NAME, message, at, help);
        return None;
    }
    let is_known = |network: &DescribedNetwork| network.hosts.iter().any(|host| host == station);
    if let Some(network) = options.network.filter(|network| !is_known(network)) {
        let known = network.hosts.iter().map(String::as_str);
        let what = (codes::UNKNOWN_STATION, "host of the description");
        findings.unknown(what, station, at, known, "name a host of the description");
        return None;
    }
    Some(station.to_owned())
}

impl Declarations {
    fn constant(&mut self, name: &Named, formula: Option<&Formula>, findings: &mut Findings) {
        let value = formula.and_then(|formula| self.formulas.value(formula, findings));
        if let Some(first) = self.constants.get(&name.text) {
            let message = format!("two constants are called `{}`", shorten(&name.text));
            findings.duplicate(codes::DUPLICATE_NAME, message, &name.span, first);
            return;
        }
        if self.constants.len() == CONSTANTS_MAX {
            let message = format!("the program has more than {CONSTANTS_MAX} constants");
            findings.error(codes::TOO_MANY_NAMES, message, &name.span, "remove some");
        }
        // One more is kept, so that the error is there once.
        if self.constants.len() > CONSTANTS_MAX {
            return;
        }
        self.constants.insert(name.text.clone(), name.span.clone());
        self.formulas.define(&name.text, value);
    }

    fn buffer(
        &mut self,
        role: BufferRole,
        name: &Named,
        length: Option<&BufferLength>,
        network: Option<&DescribedNetwork>,
        findings: &mut Findings,
    ) {
        let (words, channel) = match length {
            None => (None, None),
            Some(BufferLength::Words(formula)) => (self.words(formula, findings), None),
            Some(BufferLength::Channel(channel)) => {
                (self.of_channel(role, channel, network, findings), Some(channel.text.clone()))
            }
        };
        if let Some(first) = self.buffer_names.get(&name.text) {
            let message = format!("two buffers are called `{}`", shorten(&name.text));
            let first = self.buffers[*first].span.clone();
            findings.duplicate(codes::DUPLICATE_NAME, message, &name.span, &first);
            return;
        }
        if self.buffers.len() == BUFFERS {
            let message = format!("the program has more than {BUFFERS} buffers");
            let help = "a station has no more: let buffers share what is not needed at once";
            findings.error(codes::TOO_MANY_NAMES, message, &name.span, help);
        }
        if self.buffers.len() > BUFFERS {
            return;
        }
        self.buffer_names.insert(name.text.clone(), self.buffers.len());
        self.buffers.push(SourceBuffer {
            name: name.text.clone(),
            role,
            words,
            channel,
            span: name.span.clone(),
            is_used: false,
        });
    }

    fn words(&mut self, formula: &Formula, findings: &mut Findings) -> Known<u16> {
        let words = self.formulas.in_range(formula, 1..=FRAME_WORDS.into(), &WORDS, findings)?;
        Some(words as u16)
    }

    /// The words of a channel's message.
    fn of_channel(
        &self,
        role: BufferRole,
        name: &Named,
        network: Option<&DescribedNetwork>,
        findings: &mut Findings,
    ) -> Known<u16> {
        let Some(network) = network else {
            let message = format!("the length of `{}` is not known", shorten(&name.text));
            let help = "name the description by `--system`, or give a length: `NAME[WORDS]`";
            findings.error(codes::NO_DESCRIPTION, message, &name.span, help);
            return None;
        };
        let is_of_it = |buffer: &&SourceBuffer| buffer.channel.as_ref() == Some(&name.text);
        if let Some(first) = self.buffers.iter().find(is_of_it) {
            let message = format!("the channel `{}` has two buffers", shorten(&name.text));
            findings.duplicate(codes::DUPLICATE_CHANNEL, message, &name.span, &first.span);
        }
        let Some(channel) = network.channels.iter().find(|channel| channel.name == name.text)
        else {
            let known = network.channels.iter().map(|channel| channel.name.as_str());
            let what = (codes::UNKNOWN_CHANNEL, "channel of the description");
            findings.unknown(what, &name.text, &name.span, known, "name one of the description");
            return None;
        };
        self.endpoint(role, channel, &name.span, findings);
        let words = u16::try_from(channel.octets.div_ceil(4)).unwrap_or(u16::MAX);
        if !(1..=FRAME_WORDS).contains(&words) {
            let message = format!("a message of `{}` has {words} words", channel.name);
            let help = format!("a buffer has 1 to {FRAME_WORDS}");
            findings.error(codes::LENGTH, message, &name.span, &help);
            return None;
        }
        Some(words)
    }

    /// Whether the station has this endpoint of a channel.
    fn endpoint(
        &self,
        role: BufferRole,
        channel: &DescribedChannel,
        at: &Span,
        findings: &mut Findings,
    ) {
        let Some(station) = &self.station else { return };
        let is_talker = channel.talker == *station;
        let is_listener = channel.listeners.contains(station);
        if !is_talker && !is_listener {
            let message = format!("`{station}` is no endpoint of `{}`", channel.name);
            let help = format!("its talker is `{}`", channel.talker);
            findings.error(codes::NO_ENDPOINT, message, at, &help);
        } else if is_talker != (role == BufferRole::Output) {
            let (is, needs) = match is_talker {
                true => ("the talker", "output"),
                false => ("a listener", "input"),
            };
            let message = format!("`{station}` is {is} of `{}`", channel.name);
            findings.error(codes::DIRECTION, message, at, &format!("write `{needs}`"));
        }
    }

    fn message(
        &mut self,
        name: &Named,
        values: Option<(&Formula, &Formula)>,
        findings: &mut Findings,
    ) {
        let (mut id, mut words) = (None, None);
        if let Some((of_id, of_words)) = values {
            let number = self.formulas.in_range(of_id, 0..=u8::MAX.into(), &ID, findings);
            id = number.map(|id| id as u8);
            words = self.words(of_words, findings);
            let same = |message: &&SourceMessage| message.id == id && id.is_some();
            if let Some(first) = self.messages.values().find(same) {
                let message =
                    format!("two messages have the identifier {}", id.unwrap_or_default());
                findings.duplicate(codes::DUPLICATE_ID, message, &of_id.span, &first.span);
                id = None;
            }
        }
        if let Some(first) = self.messages.get(&name.text) {
            let message = format!("two messages are called `{}`", shorten(&name.text));
            findings.duplicate(codes::DUPLICATE_NAME, message, &name.span, &first.span.clone());
            return;
        }
        if self.messages.len() == MESSAGES_MAX {
            let message = format!("the program has more than {MESSAGES_MAX} messages");
            let help = "there are no more identifiers";
            findings.error(codes::TOO_MANY_NAMES, message, &name.span, help);
        }
        if self.messages.len() > MESSAGES_MAX {
            return;
        }
        let span = name.span.clone();
        let message = SourceMessage { id, words, span, is_used: false };
        self.messages.insert(name.text.clone(), message);
    }
}

const ID: Expected = Expected { code: codes::ID, what: "an identifier" };
