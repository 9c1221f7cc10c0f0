//! Where the hosts of a description are: the machines of `onbeat run --on`, read and checked.
//! `docs/machines.md` has the format.

use crate::fields::{Fields, S, US};
use crate::names::shorten;
use crate::parse::{Entry, document, many, recover};
use crate::{At, Sink, codes, did_you_mean, origin, schema_of};
use onbeat_model::diagnostic::{Diagnostic, Origin};
use onbeat_model::limits;
use onbeat_model::system::{NodeId, NodeKind, System, TransportKind};
use onbeat_model::time::Span;
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;

/// What documents the format.
const DOCUMENT: &str = "docs/machines.md";
/// The longest name of a network interface (IFNAMSIZ less the zero).
const INTERFACE_OCTETS: usize = 15;
/// How far clocks may be apart, if the file does not say.
const CLOCK_ERROR: Span = Span::from_ms(1);
/// By how much a machine's clock may be made to be ahead.
const CLOCK_OFFSET_NS: i64 = 1_000_000_000;
/// From the order to begin to the start of a run, if the file does not say.
const START_IN: Span = Span::from_s(2);

/// The hosts' machines, as they are written.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "Onbeat machines")]
struct File {
    /// Version of this format: 1.
    #[schemars(required)]
    #[schemars(range(min = 1, max = 1))]
    format: Option<At<i64>>,
    /// How far the clocks of two machines may be apart, in microseconds; 1000 by default.
    #[schemars(range(min = 1, max = 1_000_000_000))]
    clock_error_us: Option<At<i64>>,
    /// How long programs have from the order to begin until the run starts, in seconds; 2 by
    /// default.
    #[schemars(range(min = 1, max = 3_600))]
    start_in_s: Option<At<i64>>,
    /// The machines.
    #[expect(dead_code, reason = "for the schema; tables are read one by one")]
    machine: Option<Vec<Machine>>,
}

/// A machine: `address`, `namespace` or `local` says how it is reached.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Machine {
    /// The host of the description that it is.
    #[schemars(required)]
    host: Option<At<String>>,
    /// Where OpenSSH reaches it: `user@192.0.2.7`, or a name of the configuration of ssh.
    address: Option<At<String>>,
    /// Further options of ssh, as in `["-p", "2222"]`.
    ssh: Option<At<Vec<At<String>>>>,
    /// A network namespace of this machine, as `ip netns` names it.
    namespace: Option<At<String>>,
    /// `true`: this machine.
    local: Option<At<bool>>,
    /// The interface that its channels use.
    #[schemars(required)]
    interface: Option<At<String>>,
    /// How frames get to the kernel; `packet` by default.
    transport: Option<At<TransportKind>>,
    /// `true`: everything there is done by way of `sudo -n`.
    sudo: Option<At<bool>>,
    /// A directory there for what is copied, until the run has ended; `/tmp` by default.
    directory: Option<At<String>>,
    /// The command `onbeat` for that machine, relative to this file; this command by default.
    runner: Option<At<String>>,
    /// Files that its programs need beside those that the description names, relative to the
    /// description.
    files: Option<At<Vec<At<String>>>>,
    /// By how much its clock is ahead of CLOCK_TAI for this run, in nanoseconds, to try clocks that
    /// are apart; 0 by default.
    #[schemars(range(min = -CLOCK_OFFSET_NS, max = CLOCK_OFFSET_NS))]
    clock_offset_ns: Option<At<i64>>,
    /// The management socket of ptp4l there; `/var/run/ptp4l` by default.
    ptp4l: Option<At<String>>,
    /// The CPUs that a profile of `tune` isolates there.
    #[schemars(inner(range(min = 0, max = limits::CORE)))]
    tune_cores: Option<At<Vec<At<i64>>>>,
    /// `true`: a profile also sets the interface if it has a default route or carries the
    /// connection to the machine.
    tune_force: Option<At<bool>>,
    /// To try profiles: a directory there with the files of a machine, which are set instead of
    /// those of the machine itself.
    tune_root: Option<At<String>>,
}

/// Where the hosts of a description are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machines {
    /// How far two clocks may be apart.
    pub clock_error: Span,
    /// From the order to begin to the start of a run.
    pub start_in: Span,
    /// One for each host that has channels or programs, in the order of the file.
    pub list: Vec<HostMachine>,
}

/// A machine that is a host of the description.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostMachine {
    /// Which host.
    pub host: NodeId,
    /// How it is reached.
    pub access: Access,
    /// The interface of its channels.
    pub interface: String,
    /// How frames get to its kernel.
    pub transport: TransportKind,
    /// Whether everything there is done by way of `sudo`.
    pub sudo: bool,
    /// Where there the files go.
    pub directory: String,
    /// The command for that machine, if it is not this one.
    pub runner: Option<String>,
    /// Files of its programs that the description does not name.
    pub files: Vec<String>,
    /// By how much its clock is ahead of CLOCK_TAI for this run.
    pub clock_offset: Span,
    /// The management socket of ptp4l there, if not the usual one.
    pub ptp4l: Option<String>,
    /// The CPUs that profiles isolate there.
    pub tune_cores: Vec<u16>,
    /// Whether its interface is set whatever it carries.
    pub tune_force: bool,
    /// The files that are set, below a directory, if not the machine's own.
    pub tune_root: Option<String>,
}

/// How a machine is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Access {
    /// It is this one.
    Local,
    /// This one, in a network namespace.
    Namespace(String),
    /// By OpenSSH.
    Ssh {
        /// `user@address`, or what the configuration of ssh knows.
        address: String,
        /// Further options.
        options: Vec<String>,
    },
}

/// The JSON Schema of the format, for editors. Ends with a line feed.
pub fn schema() -> String {
    schema_of::<File>()
}

/// Reads where the hosts of `system` are. Places of diagnostics are in file 0.
///
/// # Errors
/// All that is wrong, in the order of the lines.
pub fn read(text: &str, system: &System) -> Result<Machines, Vec<Diagnostic>> {
    let mut sink = Sink::of(DOCUMENT);
    let found = check(text, system, &mut sink);
    let wrong = sink.into_sorted();
    match found {
        Some(machines) if wrong.is_empty() => Ok(machines),
        _ => Err(wrong),
    }
}

fn check(text: &str, system: &System, sink: &mut Sink) -> Option<Machines> {
    if text.len() > limits::FILE_OCTETS {
        let message = format!("the file of machines has more than {} octets", limits::FILE_OCTETS);
        let large = Diagnostic::error(codes::FILE_TOO_LARGE, message, origin(0, 0..0), "here");
        sink.push(large.help("name each host once"));
        return None;
    }
    let mut root = document(text, sink)?;
    let tables: Vec<Entry<Machine>> = many(&mut root, "machine", limits::LIST, sink);
    let head: Entry<File> = recover(root, 0..0, sink);
    let mut fields = Fields::new(&head, "file of machines", &None, sink);
    fields.need("format", &head.raw.format);
    let (least, most) = (Span::from_us(1), Span::from_s(1_000));
    let error = ("clock_error_us", &head.raw.clock_error_us);
    let clock_error = fields.time(codes::OUT_OF_RANGE, error, US, least..=most);
    let start = ("start_in_s", &head.raw.start_in_s);
    let start_in =
        fields.time(codes::OUT_OF_RANGE, start, S, Span::from_s(1)..=Span::from_s(3_600));
    let mut known = BTreeMap::new();
    let mut list = Vec::new();
    for table in &tables {
        let mut fields = Fields::new(table, "machine of host", &table.raw.host, sink);
        list.extend(machine(&mut fields, system, &mut known));
    }
    if sink.is_empty() {
        missing(system, &list, sink);
    }
    let (clock_error, start_in) =
        (clock_error.unwrap_or(CLOCK_ERROR), start_in.unwrap_or(START_IN));
    Some(Machines { clock_error, start_in, list })
}

fn machine(
    fields: &mut Fields<'_, Machine>,
    system: &System,
    known: &mut BTreeMap<NodeId, Origin>,
) -> Option<HostMachine> {
    let raw = &fields.entry.raw;
    let host = fields.need("host", &raw.host).and_then(|name| host(fields, &name, system, known));
    let access = access(fields);
    let interface = fields.need("interface", &raw.interface);
    let is_interface = |name: &str| {
        let is_odd = |c: char| c == '/' || c.is_whitespace() || c.is_control();
        !name.is_empty() && name.len() <= INTERFACE_OCTETS && !name.contains(is_odd)
    };
    let interface = word(fields, interface, is_interface, "an interface has 1 to 15 octets");
    let is_absolute = |name: &str| name.starts_with('/') && is_shell_safe(name);
    let rule = "use an absolute path of letters, digits and `/._-`";
    let directory = match &raw.directory {
        None => Some("/tmp".to_owned()),
        asked => word(fields, asked.clone(), is_absolute, rule),
    };
    let is_below = |name: &str| {
        !name.is_empty() && !name.starts_with('/') && name.split('/').all(|part| part != "..")
    };
    let mut files = Some(Vec::new());
    for file in raw.files.iter().flat_map(|files| &files.value) {
        let rule = "name files below the directory of the description";
        match word(fields, Some(file.clone()), is_below, rule) {
            Some(file) => files.iter_mut().for_each(|files| files.push(file.clone())),
            None => files = None,
        }
    }
    let mut optional = |asked: &Option<At<String>>| match asked {
        None => Some(None),
        asked => word(fields, asked.clone(), is_absolute, rule).map(Some),
    };
    let (tune_root, ptp4l) = (optional(&raw.tune_root), optional(&raw.ptp4l));
    let tune_cores = tune_cores(fields);
    let offset = ("clock_offset_ns", &raw.clock_offset_ns);
    let range = -CLOCK_OFFSET_NS..=CLOCK_OFFSET_NS;
    let clock_offset = fields.int(codes::OUT_OF_RANGE, offset, range);
    Some(HostMachine {
        host: host?,
        access: access?,
        interface: interface?,
        transport: raw.transport.as_ref().map(|it| it.value).unwrap_or_default(),
        sudo: raw.sudo.as_ref().is_some_and(|it| it.value),
        directory: directory?,
        runner: raw.runner.as_ref().map(|it| it.value.clone()),
        files: files?,
        clock_offset: Span::from_ns(clock_offset.unwrap_or(0)),
        ptp4l: ptp4l?,
        tune_cores: tune_cores?,
        tune_force: raw.tune_force.as_ref().is_some_and(|it| it.value),
        tune_root: tune_root?,
    })
}

/// The CPUs that profiles isolate.
fn tune_cores(fields: &mut Fields<'_, Machine>) -> Option<Vec<u16>> {
    let raw = &fields.entry.raw;
    let Some(list) = &raw.tune_cores else { return Some(Vec::new()) };
    let range = 0..=limits::CORE;
    let core = |core: &At<i64>| {
        fields.int(codes::OUT_OF_RANGE, ("tune_cores", &Some(*core)), range.clone())
    };
    let cores = list.value.iter().map(core).collect::<Option<Vec<_>>>()?;
    Some(cores.into_iter().filter_map(|core| u16::try_from(core).ok()).collect())
}

/// The host of a name, which no machine before has.
fn host(
    fields: &mut Fields<'_, Machine>,
    name: &At<String>,
    system: &System,
    known: &mut BTreeMap<NodeId, Origin>,
) -> Option<NodeId> {
    let nodes = || (0..).map(NodeId).zip(&system.nodes);
    let found = nodes().find(|(_, node)| node.name == name.value);
    let Some((id, node)) = found else {
        let hosts = nodes().filter(|(_, node)| matches!(node.kind, NodeKind::Host(_)));
        let help = match did_you_mean(&name.value, hosts.map(|(_, node)| node.name.as_str())) {
            Some(close) => format!("did you mean `{close}`?"),
            None => "name a host of the description".to_owned(),
        };
        let text = format!("unknown host `{}`", shorten(&name.value));
        fields.error(codes::UNKNOWN_NODE, &text, name.at, "not found", &help);
        return None;
    };
    if !matches!(node.kind, NodeKind::Host(_)) {
        let help = "bridges are told by `onbeat deploy`, and run no programs";
        fields.error(codes::NOT_A_HOST, "this is a bridge", name.at, "a bridge", help);
        return None;
    }
    if let Some(first) = known.insert(id, name.at) {
        let message = format!("host `{}` has two machines", name.value);
        let twice = Diagnostic::error(codes::DUPLICATE_NAME, message, name.at, "the second");
        let twice = twice.help("remove one of them").related(first, "the first");
        fields.sink.push(twice);
        return None;
    }
    Some(id)
}

/// How a machine is reached: one of three keys says it.
fn access(fields: &mut Fields<'_, Machine>) -> Option<Access> {
    let raw = &fields.entry.raw;
    let local = raw.local.as_ref().filter(|local| local.value);
    let given = [
        ("address", raw.address.as_ref().map(|it| it.at)),
        ("namespace", raw.namespace.as_ref().map(|it| it.at)),
        ("local", local.map(|it| it.at)),
    ];
    let mut given = given.iter().filter_map(|(key, at)| Some((*key, (*at)?)));
    let Some(first) = given.next() else {
        if !["address", "namespace", "local"].iter().any(|key| fields.entry.is_broken(key)) {
            let help = "add `address = \"user@…\"`, `namespace = \"…\"` or `local = true`";
            let text = "nothing says how it is reached";
            fields.error(codes::MISSING_KEY, text, fields.entry.at, "in this table", help);
        }
        return None;
    };
    if let Some(second) = given.next() {
        let text = format!("both `{}` and `{}` are given", first.0, second.0);
        fields.error(codes::BOTH_KEYS, &text, second.1, "this key", "keep one of them");
        return None;
    }
    if let Some(options) = raw.ssh.as_ref().filter(|_| raw.address.is_none()) {
        let text = "`ssh` is given without `address`";
        fields.error(codes::BOTH_KEYS, text, options.at, "this key", "remove it, or add `address`");
        return None;
    }
    if let Some(address) = &raw.address {
        // What begins with a hyphen would be an option of ssh.
        let rule = "give what ssh takes as its destination, such as user@192.0.2.7";
        let is_one = |name: &str| {
            let is_odd = |c: char| c.is_whitespace() || c.is_control();
            !name.is_empty() && !name.starts_with('-') && !name.contains(is_odd)
        };
        let address = word(fields, Some(address.clone()), is_one, rule)?;
        let options = raw.ssh.iter().flat_map(|options| &options.value);
        let options = options.map(|option| option.value.clone()).collect();
        return Some(Access::Ssh { address, options });
    }
    if let Some(name) = &raw.namespace {
        let is_one = |name: &str| {
            let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
            !name.is_empty() && !name.starts_with(['-', '.']) && name.chars().all(is_plain)
        };
        let rule = "give a name that `ip netns list` shows";
        return word(fields, Some(name.clone()), is_one, rule).map(Access::Namespace);
    }
    Some(Access::Local)
}

/// Whether a shell takes a text as one word without quotes.
fn is_shell_safe(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_alphanumeric() || "/._-".contains(c))
}

/// A text that is as it must be.
fn word(
    fields: &mut Fields<'_, Machine>,
    text: Option<At<String>>,
    is_right: impl Fn(&str) -> bool,
    rule: &str,
) -> Option<String> {
    let text = text?;
    if is_right(&text.value) {
        return Some(text.value);
    }
    let message = format!("`{}` cannot be used here", shorten(&text.value));
    fields.error(codes::BAD_NAME, &message, text.at, "this text", rule);
    None
}

/// Each host that does something has a machine.
fn missing(system: &System, list: &[HostMachine], sink: &mut Sink) {
    let acts = |node: NodeId| {
        let is_end = |channel: &onbeat_model::system::Channel| {
            channel.talker == node || channel.listeners.contains(&node)
        };
        system.channels.iter().any(is_end) || system.programs_on(node).next().is_some()
    };
    let names = (0..).map(NodeId).zip(&system.nodes).filter(|(id, _)| acts(*id));
    for (_, node) in names.filter(|(id, _)| list.iter().all(|machine| machine.host != *id)) {
        let message = format!("host `{}` of the description has no machine", node.name);
        let none = Diagnostic::error(codes::MISSING_KEY, message, origin(0, 0..0), "in this file");
        sink.push(none.help("add a [[machine]] for it: it has channels or programs"));
    }
}
