//! Calls through pointers. What a library's function locks must be free when an abort comes, also
//! when only a pointer leads to it that the library has given: in a structure, or as a result. The
//! run time looks at the pointer before the call.

use super::Target;
use super::edits::{Edits, Rank};
use super::syntax::{bare, walk};
use super::unit::{Function, Unit, is_prototype};
use std::collections::HashSet;
use tree_sitter::Node;

/// Where headers of the system are: their functions are not changed.
const SYSTEMS: [&str; 2] = ["/usr/include/", "/usr/lib/"];

/// Sends all calls through pointers by way of the run time.
pub(super) fn edit(unit: &Unit<'_>, edits: &mut Edits) {
    if unit.options.target != Target::Posix {
        return;
    }
    let globals = unit.globals.iter().filter(|global| !is_prototype(global.declarator));
    let names: HashSet<&str> = globals.map(|global| global.name).collect();
    for function in &unit.functions {
        let file = unit.at(function.definition.byte_range()).file;
        let path = unit.files.get(usize::from(file)).map_or("", |file| &file.path);
        if SYSTEMS.iter().any(|system| path.starts_with(system)) {
            continue;
        }
        walk(function.body, |node| {
            let callee = node.child_by_field_name("function");
            let callee = callee.filter(|_| node.kind() == "call_expression");
            if let Some(callee) = callee.filter(|callee| leads(unit, function, &names, *callee)) {
                edits.before(callee.byte_range(), Rank::Head, "TIMEDC_THROUGH(");
                edits.after(callee.byte_range(), Rank::Close, ")");
            }
            true
        });
    }
}

/// Whether what is called is no function's name but leads to a function.
fn leads<'t>(
    unit: &Unit<'t>,
    function: &Function<'t>,
    globals: &HashSet<&str>,
    callee: Node<'t>,
) -> bool {
    let callee = bare(callee);
    match callee.kind() {
        "identifier" => {
            let name = unit.words(callee);
            unit.resolve(function, name, callee.start_byte()).is_some()
                || (globals.contains(name) && !unit.defined.contains_key(name))
        }
        "field_expression"
        | "subscript_expression"
        | "pointer_expression"
        | "call_expression"
        | "conditional_expression"
        | "cast_expression" => true,
        _ => false,
    }
}
