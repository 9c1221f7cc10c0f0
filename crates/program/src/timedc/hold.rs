//! Calls that obtain something, or give it back: an abort waits while a segment holds any of it.
//! The list is the run time's (`memory.c`, `stdio.c`, `safe.c`, `net.c` of `timedc/src`; a test
//! compares), but for mutexes that are locked and unlocked, which the graph has as locks.

use super::syntax::{bare, children, declared};
use super::unit::{Function, Unit};
use crate::graph::unit::{Effect, Hold, Thing};
use Effect::{Give, May, Take};
use HeldAt::{Argument, Behind, Returned};
use Thing::{Directory, Lock, Memory, Other, Stream};
use tree_sitter::Node;

/// Where a call has the address of the held object.
#[derive(Clone, Copy)]
enum HeldAt {
    /// It is what the call returns.
    Returned,
    /// The argument at a position.
    Argument(usize),
    /// What the argument at a position leads to.
    Behind(usize),
}

/// What calls do, by their names. It is unknown whether those that may well fail have taken
/// anything; memory and streams are taken to be there.
const CALLS: [(&str, Thing, Effect, HeldAt); 27] = [
    ("malloc calloc aligned_alloc memalign valloc pvalloc", Memory, Take, Returned),
    ("strdup __strdup strndup wcsdup realloc reallocarray", Memory, Take, Returned),
    ("canonicalize_file_name get_current_dir_name backtrace_symbols", Memory, Take, Returned),
    ("nf_get_chan nc_get_chan", Memory, Take, Returned),
    ("posix_memalign asprintf vasprintf", Memory, Take, Behind(0)),
    ("__asprintf_chk __vasprintf_chk", Memory, Take, Behind(0)),
    ("realpath getcwd __realpath_chk __getcwd_chk", Memory, May, Returned),
    ("getline getdelim __getdelim", Memory, May, Behind(0)),
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
    ("regfree globfree globfree64 wordfree freelocale", Other, Give, Argument(0)),
];

/// The same of those whose place is another one.
const MORE: [(&str, Thing, Effect, HeldAt); 9] = [
    ("realloc reallocarray", Memory, Give, Argument(0)),
    // The list, and each of its entries.
    ("scandir scandir64", Memory, May, Behind(1)),
    ("scandirat scandirat64", Memory, May, Behind(2)),
    ("glob glob64", Other, May, Argument(3)),
    ("wordexp", Other, May, Argument(1)),
    ("getifaddrs", Other, Take, Behind(0)),
    ("getaddrinfo", Other, May, Behind(3)),
    ("freeifaddrs freeaddrinfo if_freenameindex", Other, Give, Argument(0)),
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Name, whether it gives back, and where: `*` for what it returns, the position of an
    /// argument, with a `*` before it for what that leads to.
    type Held = BTreeSet<(String, bool, String)>;

    /// Functions that hold in ways of their own: not by one of the run time's macros.
    const BY_HAND: [(&str, bool, &str); 6] = [
        ("realloc", false, "*"),
        ("realloc", true, "0"),
        ("reallocarray", false, "*"),
        ("reallocarray", true, "0"),
        ("flockfile", false, "0"),
        ("timedc_on_abort", true, "1"),
    ];

    /// What the graph has as locks.
    fn is_lock(name: &str) -> bool {
        name.starts_with("pthread_mutex_")
    }

    fn as_here() -> Held {
        let mut found = Held::new();
        for (names, _, effect, place) in CALLS.iter().chain(&MORE) {
            let place = match place {
                Returned => "*".to_owned(),
                Argument(at) => at.to_string(),
                Behind(at) => format!("*{at}"),
            };
            let gives = matches!(effect, Give);
            found.extend(names.split(' ').map(|name| (name.to_owned(), gives, place.clone())));
        }
        found
    }

    /// The parts of a list between parentheses, at its commas.
    fn parts(list: &str) -> Vec<String> {
        let (mut deep, mut all) = (0, vec![String::new()]);
        for letter in list.chars() {
            deep += i32::from(letter == '(') - i32::from(letter == ')');
            match letter {
                ',' if deep == 0 => all.push(String::new()),
                _ => all.last_mut().expect("one was begun").push(letter),
            }
            if deep < 0 {
                break;
            }
        }
        all.iter().map(|part| part.trim().to_owned()).collect()
    }

    /// The position of a parameter.
    fn position(parameters: &str, name: &str) -> String {
        let inner = parameters.trim_start_matches('(').trim_end_matches(')');
        let word = |c: char| c.is_alphanumeric() || c == '_';
        let mut all = parts(inner).into_iter();
        let at = all.position(|p| {
            let pointer = format!("(*{name})");
            p.contains(&pointer) || p.rsplit(|c| !word(c)).next() == Some(name)
        });
        at.unwrap_or_else(|| panic!("{name} in {parameters}")).to_string()
    }

    /// What the run time's macros say.
    fn as_it_runs(text: &str) -> Held {
        let mut found = Held::new();
        let text = text.replace("#define ", "#define_").replace('\n', " ");
        for (at, _) in text.match_indices(" WRAP_") {
            let Some((word, list)) = text[at + 1..].split_once('(') else { continue };
            let all = parts(list.split(") WRAP").next().unwrap_or_default());
            let last = all.last().cloned().unwrap_or_default();
            let last = last.trim_end_matches(')');
            let place = |parameters: &str, what: &str| {
                let what = what.strip_prefix("(const void *)").unwrap_or(what);
                match what.strip_prefix('*') {
                    Some(behind) => format!("*{}", position(parameters, behind)),
                    None => position(parameters, what),
                }
            };
            let entry = match word {
                "WRAP_GETS" => (all[1].clone(), false, "*".to_owned()),
                "WRAP_ROOM" => (all[0].clone(), false, "*".to_owned()),
                "WRAP_TAKES" => (all[1].clone(), false, place(&all[2], last)),
                "WRAP_GIVES" => (all[1].clone(), true, place(&all[2], last)),
                "WRAP_GIVES_VOID" => (all[0].clone(), true, place(&all[1], last)),
                "WRAP_LINE" => (all[0].clone(), false, place(&all[1], "*line")),
                "WRAP_TEXT" => (all[0].clone(), false, place(&all[1], "*text")),
                "WRAP_SCANDIR" => (all[0].clone(), false, place(&all[1], "*list")),
                _ => continue,
            };
            if !is_lock(&entry.0) {
                found.insert(entry);
            }
        }
        found
    }

    #[test]
    fn the_calls_that_hold_are_those_of_the_run_time() {
        let mut runs = Held::new();
        for file in ["memory", "stdio", "safe", "net"] {
            let path = format!("{}/../../timedc/src/{file}.c", env!("CARGO_MANIFEST_DIR"));
            runs.extend(as_it_runs(&std::fs::read_to_string(&path).expect("the run time")));
        }
        assert!(runs.len() > 50, "{runs:?}");
        let by_hand = BY_HAND.map(|(name, gives, place)| (name.to_owned(), gives, place.into()));
        runs.extend(by_hand);
        let here = as_here();
        assert_eq!(here.difference(&runs).collect::<Vec<_>>(), Vec::<&_>::new(), "only here");
        assert_eq!(runs.difference(&here).collect::<Vec<_>>(), Vec::<&_>::new(), "only in the run");
    }
}
