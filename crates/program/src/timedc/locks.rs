//! Which mutexes calls are about, and which calls may wait for something without a bound.
//!
//! Two names are taken for two mutexes only where both are known to be: a variable, or a part of
//! one, reached by its name or by pointers that are initialised with its address and never change.
//! Whatever else a program names may be any mutex of it.

use super::syntax::{bare, walk};
use super::unit::{Function, Unit, Variable};
use crate::graph::unit::Object;
use std::collections::HashSet;
use tree_sitter::Node;

/// Pointers are followed through so many others.
const DEPTH_MAX: usize = 8;

/// Calls that may take any time, or wait for others, which no table knows of.
const WAITING: [&str; 70] = [
    "accept",
    "accept4",
    "clock_nanosleep",
    "cnd_timedwait",
    "cnd_wait",
    "connect",
    "epoll_pwait",
    "epoll_pwait2",
    "epoll_wait",
    "flock",
    "flockfile",
    "lockf",
    "mq_receive",
    "mq_send",
    "mq_timedreceive",
    "mq_timedsend",
    "msgrcv",
    "msgsnd",
    "mtx_lock",
    "mtx_timedlock",
    "nanosleep",
    "onbeat_rendezvous",
    "onbeat_select",
    "onbeat_sleep_until",
    "onbeat_wait",
    "onbeat_work",
    "onbeat_work_until",
    "pause",
    "pclose",
    "poll",
    "ppoll",
    "pselect",
    "pthread_barrier_wait",
    "pthread_cond_clockwait",
    "pthread_cond_timedwait",
    "pthread_cond_wait",
    "pthread_join",
    "pthread_mutex_clocklock",
    "pthread_mutex_timedlock",
    "pthread_rwlock_clockrdlock",
    "pthread_rwlock_clockwrlock",
    "pthread_rwlock_rdlock",
    "pthread_rwlock_timedrdlock",
    "pthread_rwlock_timedwrlock",
    "pthread_rwlock_wrlock",
    "pthread_spin_lock",
    "recv",
    "recvfrom",
    "recvmmsg",
    "recvmsg",
    "select",
    "sem_clockwait",
    "sem_timedwait",
    "sem_wait",
    "semop",
    "semtimedop",
    "sigsuspend",
    "sigtimedwait",
    "sigwait",
    "sigwaitinfo",
    "sleep",
    "system",
    "thrd_join",
    "thrd_sleep",
    "usleep",
    "wait",
    "wait3",
    "wait4",
    "waitid",
    "waitpid",
];

/// Whether a call of libc's or Onbeat's may take any time.
pub(super) fn waits(callee: &str) -> bool {
    WAITING.contains(&callee)
}

/// Whether a function of libc's or Onbeat's locks a mutex, unlocks it, or may take any time.
pub(crate) fn is_timed(name: &str) -> bool {
    waits(name) || tries(name) || matches!(name, "pthread_mutex_lock" | "pthread_mutex_unlock")
}

/// The calls that lock a mutex if they can, and say by 0 whether they did.
pub(super) fn tries(callee: &str) -> bool {
    matches!(
        callee,
        "pthread_mutex_trylock" | "pthread_mutex_timedlock" | "pthread_mutex_clocklock"
    )
}

/// What a function's expressions point to.
pub(super) struct Objects<'u, 't> {
    pub unit: &'u Unit<'t>,
    pub function: &'u Function<'t>,
    /// Of [`changed`].
    pub changed: &'u HashSet<usize>,
}

/// Where the variables of a function are declared that may get another value than their first one.
pub(super) fn changed(unit: &Unit<'_>, function: &Function<'_>) -> HashSet<usize> {
    let mut found = HashSet::new();
    walk(function.body, |node| {
        let target = match node.kind() {
            "assignment_expression" => node.child_by_field_name("left"),
            "update_expression" => node.child_by_field_name("argument"),
            "pointer_expression" if unit.words(node).starts_with('&') => {
                node.child_by_field_name("argument")
            }
            _ => None,
        };
        let target = target.map(bare).filter(|n| n.kind() == "identifier");
        let known = target.and_then(|n| unit.resolve(function, unit.words(n), n.start_byte()));
        found.extend(known.map(|known| known.place.start));
        true
    });
    found
}

impl<'t> Objects<'_, 't> {
    /// What a pointer points to.
    pub(super) fn pointed(&self, node: Node<'t>) -> Object {
        self.pointee(node, 0).unwrap_or_else(|| {
            let text: String = self.unit.words(bare(node)).split_whitespace().collect();
            Object::Vague(text.strip_prefix('&').unwrap_or(&text).to_owned())
        })
    }

    /// Of the call that tests by itself whether it has locked a mutex: its argument, and whether
    /// the condition holds if it has.
    pub(super) fn tried(&self, condition: Node<'t>) -> Option<(Node<'t>, bool)> {
        let condition = bare(condition);
        if condition.kind() == "call_expression" {
            let callee = self.unit.callee(condition).filter(|name| tries(name))?;
            let is_own = self.unit.functions.iter().any(|f| f.name == callee);
            let mutex = condition.child_by_field_name("arguments")?.named_child(0)?;
            return (!is_own).then_some((mutex, false));
        }
        let side = |name| condition.child_by_field_name(name);
        let is_equal = match self.unit.words(side("operator")?) {
            "==" => true,
            "!=" => false,
            _ => return None,
        };
        let (call, zero) = match self.unit.constant(side("left")?) {
            Some(zero) => (side("right")?, zero),
            None => (side("left")?, self.unit.constant(side("right")?)?),
        };
        let (mutex, _) = self.tried(call).filter(|_| bare(call).kind() == "call_expression")?;
        (zero == 0).then_some((mutex, is_equal))
    }

    fn pointee(&self, node: Node<'t>, depth: usize) -> Option<Object> {
        let node = bare(node);
        let inner = || node.child_by_field_name("argument");
        match node.kind() {
            _ if depth > DEPTH_MAX => None,
            "pointer_expression" if self.unit.words(node).starts_with('&') => {
                self.object(inner()?, depth + 1)
            }
            "identifier" => {
                let (variable, is_local) = self.variable(node)?;
                let is_array = variable.declarator.kind() == "array_declarator";
                if is_array && !variable.is_parameter {
                    return self.object(node, depth + 1).map(|object| object.part("[0]"));
                }
                if !is_local || variable.is_static || self.changed.contains(&variable.place.start) {
                    return None;
                }
                if variable.is_parameter {
                    let mut all = self.function.variables.iter().filter(|v| v.is_parameter);
                    let at = all.position(|v| v.place == variable.place)?;
                    return Some(Object::Parameter(at, String::new()));
                }
                self.pointee(variable.value?, depth + 1)
            }
            _ => None,
        }
    }

    /// What an expression names.
    fn object(&self, node: Node<'t>, depth: usize) -> Option<Object> {
        let node = bare(node);
        let field = |name| node.child_by_field_name(name);
        match node.kind() {
            _ if depth > DEPTH_MAX => None,
            "identifier" => {
                let (variable, is_local) = self.variable(node)?;
                let name = variable.name.to_owned();
                let is_shared = !is_local && !is_internal(self.unit, variable);
                let at = if is_local { variable.place.start } else { 0 };
                Some(Object::Known { name, is_shared, at })
            }
            "field_expression" => {
                let word = |n: Node<'t>| self.unit.words(n);
                let inner = match field("operator").map(word) {
                    Some("->") => self.pointee(field("argument")?, depth + 1)?,
                    _ => self.object(field("argument")?, depth + 1)?,
                };
                Some(inner.part(&format!(".{}", word(field("field")?))))
            }
            "subscript_expression" => {
                let index = self.unit.constant(field("index")?)?;
                let of = bare(field("argument")?);
                let is_array = of.kind() == "identifier"
                    && self.variable(of).is_some_and(|(v, _)| {
                        !v.is_parameter && v.declarator.kind() == "array_declarator"
                    });
                let of = match is_array {
                    true => self.object(of, depth + 1)?,
                    false => return None,
                };
                Some(of.part(&format!("[{index}]")))
            }
            "pointer_expression" if self.unit.words(node).starts_with('*') => {
                self.pointee(field("argument")?, depth + 1)
            }
            _ => None,
        }
    }

    /// What a name means, and whether that is the function's own.
    fn variable(&self, name: Node<'t>) -> Option<(&Variable<'t>, bool)> {
        let text = self.unit.words(name);
        let global = || self.unit.globals.iter().find(|g| g.name == text);
        match self.unit.resolve(self.function, text, name.start_byte()) {
            Some(local) if local.is_static && !is_internal(self.unit, local) => {
                // `extern` in a block.
                global().map(|global| (global, false))
            }
            Some(local) => Some((local, true)),
            None => global().map(|global| (global, false)),
        }
    }
}

/// Whether no other unit can mean a variable: `static`.
fn is_internal(unit: &Unit<'_>, variable: &Variable<'_>) -> bool {
    let mut outer = variable.declarator;
    while let Some(parent) = outer.parent() {
        outer = parent;
        if outer.kind() == "declaration" {
            break;
        }
    }
    let mut cursor = outer.walk();
    let mut all = outer.children(&mut cursor);
    all.any(|n| n.kind() == "storage_class_specifier" && unit.words(n) == "static")
}
