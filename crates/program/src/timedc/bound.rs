//! Abstract channels, as in the paper's Listing 3: `chan_write(value)` and `chan_read()` move
//! values over `chan`, and what `chan` is stands not in the program.

use super::channels::{Write, second_user};
use super::codes;
use super::edits::Edits;
use super::net;
use super::output::quoted;
use super::program::Program;
use super::syntax::{bare, children, declared, walk};
use super::unit::{Function, Unit, Variable};
use onbeat_model::binding::{Binding, Realisation};
use onbeat_model::diagnostic::Diagnostic;
use std::collections::{BTreeMap, BTreeSet};
use tree_sitter::Node;

/// The paper's name for one, which is known without a binding.
const PAPERS: &str = "chan";

/// What a call does with an abstract channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Move<'t> {
    pub channel: &'t str,
    pub is_write: bool,
    /// The place of its binding in the unit's list, if it has one.
    pub binding: Option<usize>,
}

/// What a call of a function does with an abstract channel, if it is about one.
pub(super) fn of<'t>(unit: &Unit<'t>, function: &Function<'t>, call: Node<'t>) -> Option<Move<'t>> {
    let callee = unit.callee(call)?;
    let (channel, is_write) = match callee.strip_suffix("_write") {
        Some(channel) => (channel, true),
        None => (callee.strip_suffix("_read")?, false),
    };
    let binding = unit.options.bindings.iter().position(|b| b.name == channel);
    // Who declares a function of this name has it in another file, unless it is bound.
    let is_known = binding.is_some() || channel == PAPERS && !unit.names.contains(callee);
    let is_own = unit.defined.contains_key(callee)
        || unit.resolve(function, callee, call.start_byte()).is_some();
    // With arguments `chan_read` is a function of the compatibility library's.
    let fits = is_write || arguments(call).is_empty();
    (is_known && !is_own && fits).then_some(Move { channel, is_write, binding })
}

/// A call, and the function that it stands in.
struct Found<'t> {
    what: Move<'t>,
    call: Node<'t>,
    function: usize,
}

fn arguments(call: Node<'_>) -> Vec<Node<'_>> {
    call.child_by_field_name("arguments").map(children).unwrap_or_default()
}

/// The calls of a unit that are about abstract channels, those too that are never evaluated.
fn all<'t>(unit: &Unit<'t>) -> Vec<Found<'t>> {
    let mut found = Vec::new();
    for (index, function) in unit.functions.iter().enumerate() {
        walk(function.body, |node| {
            if node.kind() == "call_expression"
                && let Some(what) = of(unit, function, node)
            {
                found.push(Found { what, call: node, function: index });
            }
            true
        });
    }
    found
}

/// The places in the list of bindings of those that the unit uses.
pub(super) fn used(unit: &Unit<'_>) -> Vec<usize> {
    let mut used: Vec<usize> = all(unit).iter().filter_map(|found| found.what.binding).collect();
    used.sort_unstable();
    used.dedup();
    used
}

/// Lets the calls be of the functions that [`declarations`] declares.
pub(super) fn edit(unit: &Unit<'_>, edits: &mut Edits) {
    for Found { what, call, .. } in all(unit) {
        if let Some(name) = call.child_by_field_name("function").filter(|_| what.binding.is_some())
        {
            let verb = if what.is_write { "write" } else { "read" };
            edits.replace(name.byte_range(), &format!("timedc_{verb}_{}", what.channel));
        }
    }
}

/// What stands before the first line: the channels, and what writes and reads them.
pub(super) fn declarations(unit: &Unit<'_>) -> String {
    let mut text = String::new();
    for binding in used(unit).into_iter().map(|at| &unit.options.bindings[at]) {
        let (name, kind) = (&binding.name, c_type(binding));
        text.push_str(&match &binding.to {
            Realisation::Fifo(count) => format!("\nTIMEDC_BOUND_FIFO({kind}, {name}, {count})"),
            Realisation::Network(channel) => {
                format!("\nTIMEDC_BOUND_NETWORK({kind}, {name}, {channel})")
            }
        });
    }
    text
}

/// The compiler's own word for a type, as no header has been read yet.
fn c_type(binding: &Binding) -> String {
    let name = binding.value.name();
    match name.strip_suffix("_t") {
        Some(exact) => format!("__{}_TYPE__", exact.to_uppercase()),
        None => name.to_owned(),
    }
}

/// The ends of network channels that the unit's abstract ones use, as the run time opens them.
pub(super) fn ends(unit: &Unit<'_>) -> Vec<String> {
    let uses = all(unit).into_iter().filter_map(|f| Some((f.what.binding?, f.what.is_write)));
    let ends = uses.collect::<BTreeSet<_>>().into_iter().filter_map(|(at, is_write)| {
        let Binding { name, to: Realisation::Network(channel), .. } = &unit.options.bindings[at]
        else {
            return None;
        };
        let (channel, is_talker) = (quoted(channel), u8::from(is_write));
        Some(format!("{{{channel}, {is_talker}, 0, 0, 0, &timedc_bound_of_{name}}}"))
    });
    ends.collect()
}

/// Whether a call reads an abstract channel that is one of the network's; none if it is about no
/// abstract channel.
pub(super) fn reads_network<'t>(
    unit: &Unit<'t>,
    function: &Function<'t>,
    call: Node<'t>,
) -> Option<bool> {
    let what = of(unit, function, call)?;
    let to = what.binding.map(|at| &unit.options.bindings[at].to);
    Some(!what.is_write && matches!(to, Some(Realisation::Network(_))))
}

/// What is wrong with the use of abstract channels.
pub(super) fn check(unit: &Unit<'_>, program: &Program<'_>) -> Vec<Diagnostic> {
    let mut wrong = Vec::new();
    let mut uses: BTreeMap<(&str, bool), Vec<Write<'_>>> = BTreeMap::new();
    for Found { what, call, function } in all(unit) {
        wrong.extend(one(unit, &unit.functions[function], what, call));
        let users = uses.entry((what.channel, what.is_write)).or_default();
        users.push(Write { call, function });
    }
    for ((channel, is_write), users) in uses {
        let (who, verb) = if is_write { ("writer", "writes") } else { ("reader", "reads") };
        let what = format!("the abstract channel `{channel}`");
        let help = format!(
            "let one task {}: a network channel has two endpoints",
            &verb[..verb.len() - 1]
        );
        wrong.extend(second_user(unit, program, (&what, who, verb), &help, &users));
    }
    wrong
}

fn one<'t>(
    unit: &Unit<'t>,
    function: &Function<'t>,
    what: Move<'t>,
    call: Node<'t>,
) -> Option<Diagnostic> {
    let (channel, at) = (what.channel, unit.at(call.byte_range()));
    let Some(binding) = what.binding.map(|binding| &unit.options.bindings[binding]) else {
        let text = format!("the abstract channel `{channel}` has no binding");
        let help = format!(
            "write in the program's `[[program]]` channels = [{{ name = \"{channel}\", fifo = \
             1024 }}], or with `channel = …` for `fifo` a network channel; for C files alone \
             `--bind {channel}=fifo`"
        );
        return Some(Diagnostic::error(codes::UNBOUND, text, at, "not bound").help(help));
    };
    let value = match (what.is_write, &arguments(call)[..]) {
        (true, [value]) => bare(*value),
        (true, list) => {
            let text = format!("`{channel}_write` has 1 argument, not {}", list.len());
            let help = "write the value only, as in `chan_write(value)`";
            return Some(Diagnostic::error(codes::FORM, text, at, "here").help(help));
        }
        (false, _) => receiver(call)?,
    };
    let variable = (value.kind() == "identifier").then(|| variable(unit, function, value))??;
    misfit(unit, binding, what, variable, value)
}

fn variable<'u, 't>(
    unit: &'u Unit<'t>,
    function: &'u Function<'t>,
    name: Node<'t>,
) -> Option<&'u Variable<'t>> {
    let text = unit.words(name);
    // A declaration's scope begins behind it.
    let own = function.variables.iter().find(|v| v.place == name.byte_range());
    let local = own.or_else(|| unit.resolve(function, text, name.start_byte()));
    local.or_else(|| unit.globals.iter().find(|g| g.name == text))
}

/// A variable that cannot hold what the channel's values can, or the other way round.
fn misfit(
    unit: &Unit<'_>,
    binding: &Binding,
    what: Move<'_>,
    variable: &Variable<'_>,
    place: Node<'_>,
) -> Option<Diagnostic> {
    let kind = unit.words(variable.kind?);
    let value = binding.value;
    let is_plain = variable.declarator.kind() == "identifier";
    let fits = if is_plain {
        let own = u32::try_from(net::scalar(unit, variable)?).ok()?;
        let own_floats = matches!(kind, "float" | "double");
        let (from, to) = ((own, own_floats), (value.octets(), value.is_floating()));
        let (from, to) = if what.is_write { (from, to) } else { (to, from) };
        from.0 <= to.0 && (from.1 == to.1 || to.1)
    } else {
        false
    };
    if fits {
        return None;
    }
    let channel = what.channel;
    let stars = if is_plain { "" } else { " *" };
    let text = format!(
        "`{}` is of type {kind}{stars}, values of `{channel}` are of type {}",
        variable.name,
        value.name()
    );
    let help = format!("bind `{channel}` with the `type` of its values, or convert the value");
    let label = if what.is_write { "written here" } else { "read here" };
    let found = Diagnostic::error(codes::SIZE, text, unit.at(place.byte_range()), label);
    Some(found.help(help).related(unit.at(variable.place.clone()), "declared here"))
}

/// The variable that gets what a call gives: `v` of `int v = chan_read()` and `v = chan_read()`.
fn receiver(call: Node<'_>) -> Option<Node<'_>> {
    let outer = call.parent()?;
    match outer.kind() {
        "init_declarator" => declared(outer),
        "assignment_expression" => outer.child_by_field_name("left"),
        _ => None,
    }
}
