//! Calls that obtain something, or give it back: an abort waits while a segment holds any of it.
//! The list is the run time's (`timedc/src/memory.c`, `stdio.c`, `safe.c`), but for mutexes that
//! are locked and unlocked, which the graph has as locks.

use super::syntax::{bare, children, declared};
use super::unit::{Function, Unit};
use crate::graph::unit::{Effect, Hold, Thing};
use Effect::{Give, May, Take};
use Place::{Argument, Behind, Returned};
use Thing::{Directory, Lock, Memory, Other, Stream};
use tree_sitter::Node;

/// Where a call has the address of what is held.
#[derive(Clone, Copy)]
enum Place {
    /// It is what the call returns.
    Returned,
    /// The argument at a position.
    Argument(usize),
    /// What the argument at a position leads to.
    Behind(usize),
}

/// What calls do, by their names. Of those that may well fail nobody knows whether they have taken
/// anything; memory and streams are taken to be there.
const CALLS: [(&str, Thing, Effect, Place); 25] = [
    ("malloc calloc aligned_alloc memalign valloc pvalloc", Memory, Take, Returned),
    ("strdup strndup wcsdup realloc reallocarray", Memory, Take, Returned),
    ("canonicalize_file_name get_current_dir_name", Memory, Take, Returned),
    ("posix_memalign asprintf vasprintf", Memory, Take, Behind(0)),
    ("realpath getcwd scandir", Memory, May, Returned),
    ("getline getdelim", Memory, May, Behind(0)),
    ("free", Memory, Give, Argument(0)),
    ("fopen fopen64 fdopen tmpfile tmpfile64 popen fmemopen", Stream, Take, Returned),
    ("open_memstream open_wmemstream fopencookie", Stream, Take, Returned),
    ("flockfile", Stream, Take, Argument(0)),
    ("ftrylockfile", Stream, May, Argument(0)),
    ("fclose pclose funlockfile", Stream, Give, Argument(0)),
    ("pthread_rwlock_rdlock pthread_rwlock_wrlock pthread_spin_lock", Lock, Take, Argument(0)),
    ("mtx_lock", Lock, Take, Argument(0)),
    ("pthread_spin_trylock", Lock, May, Argument(0)),
    ("pthread_rwlock_tryrdlock pthread_rwlock_trywrlock", Lock, May, Argument(0)),
    ("pthread_rwlock_timedrdlock pthread_rwlock_timedwrlock", Lock, May, Argument(0)),
    ("pthread_rwlock_clockrdlock pthread_rwlock_clockwrlock", Lock, May, Argument(0)),
    ("mtx_trylock mtx_timedlock", Lock, May, Argument(0)),
    ("pthread_rwlock_unlock pthread_spin_unlock mtx_unlock", Lock, Give, Argument(0)),
    ("opendir fdopendir", Directory, Take, Returned),
    ("closedir", Directory, Give, Argument(0)),
    ("regcomp", Other, Take, Argument(0)),
    ("newlocale duplocale if_nameindex", Other, Take, Returned),
    ("regfree globfree wordfree freelocale if_freenameindex", Other, Give, Argument(0)),
];

/// The same of those whose place is another one.
const MORE: [(&str, Thing, Effect, Place); 7] = [
    ("realloc reallocarray", Memory, Give, Argument(0)),
    ("glob", Other, May, Argument(3)),
    ("wordexp", Other, May, Argument(1)),
    ("getifaddrs", Other, Take, Behind(0)),
    ("getaddrinfo", Other, May, Behind(3)),
    ("freeifaddrs freeaddrinfo", Other, Give, Argument(0)),
    ("timedc_on_abort", Other, Give, Argument(1)),
];

/// What a call obtains or gives back, in this order.
pub(super) fn of<'t>(unit: &Unit<'t>, function: &Function<'t>, call: Node<'t>) -> Vec<Hold> {
    let callee = unit.callee(call).unwrap_or("");
    let is_own = unit.defined.contains_key(callee)
        || unit.resolve(function, callee, call.start_byte()).is_some();
    if is_own || callee.is_empty() {
        return Vec::new();
    }
    let all = MORE.iter().chain(&CALLS);
    let mine = all.filter(|(names, ..)| names.split(' ').any(|name| name == callee));
    mine.map(|(_, thing, effect, place)| {
        let node = match place {
            Returned => receiver(call),
            Argument(at) | Behind(at) => {
                let list = call.child_by_field_name("arguments").map(children);
                list.and_then(|list| list.get(*at).copied()).map(bare)
            }
        };
        let name = node.map(|node| match place {
            Returned => format!("*{}", plain(unit, node)),
            Argument(_) => object(unit, node),
            Behind(_) => format!("*{}", object(unit, node)),
        });
        let is_local = node.is_some_and(|node| is_local(unit, function, node));
        // Whatever it is that is then to be given back.
        let thing = if callee == "timedc_on_abort" { Thing::Any } else { *thing };
        Hold { thing, effect: *effect, name, is_local }
    })
    .collect()
}

/// The variable, or the place, that gets what a call returns.
fn receiver(call: Node<'_>) -> Option<Node<'_>> {
    let mut outer = call.parent()?;
    while matches!(outer.kind(), "cast_expression" | "parenthesized_expression") {
        outer = outer.parent()?;
    }
    match outer.kind() {
        "init_declarator" => declared(outer),
        "assignment_expression" => outer.child_by_field_name("left").map(bare),
        _ => None,
    }
}

fn plain(unit: &Unit<'_>, node: Node<'_>) -> String {
    unit.words(node).split_whitespace().collect()
}

/// What an address is the address of: of `&m` it is `m`, of `p` it is `*p`.
pub(super) fn object(unit: &Unit<'_>, address: Node<'_>) -> String {
    let text = plain(unit, address);
    match text.strip_prefix('&') {
        Some(rest) => rest.to_owned(),
        None => format!("*{text}"),
    }
}

/// Whether a place is in a variable of the function's own, of which each call has another one.
fn is_local<'t>(unit: &Unit<'t>, function: &Function<'t>, node: Node<'t>) -> bool {
    let mut inner = node;
    while inner.kind() != "identifier" {
        match inner.child_by_field_name("argument").or(inner.child_by_field_name("value")) {
            Some(next) => inner = bare(next),
            None => return true,
        }
    }
    let known = unit.resolve(function, unit.words(inner), inner.start_byte());
    // Where it is declared it is not in its scope yet.
    let place = inner.byte_range();
    let declared = || function.variables.iter().find(|variable| variable.place == place);
    known.or_else(declared).is_some_and(|variable| !variable.is_static)
}
