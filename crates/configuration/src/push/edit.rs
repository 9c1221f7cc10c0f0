//! From what a device is told and what it has to an edit of its configuration, and back: whether it
//! has what it was told.

use super::claims::Claims;
use super::keys::{index, is_entry, is_of_leaf_list, key, key_leaves, label};
use super::tree::Tree;
use crate::module::Module;
use std::collections::BTreeSet;

/// Containers and entries of lists that are wholly the plan's: a device keeps nothing else in them.
/// The gate control list; the entries of the filtering database; those of streams.
const WHOLE: [&str; 9] = [
    "admin-control-list",
    "cbsa",
    "filtering-entry",
    "vlan-registration-entry",
    "stream-identity",
    "sequence-recovery",
    "sequence-identification",
    "stream-filter-instance-table",
    "stream-gate-instance-table",
];
/// What goes when the plan has none: gates of a port that has none now, slopes of its shapers.
const GONE: [&str; 2] = ["admin-control-list", "cbsa"];
/// Lists of the filtering database: entries for one address, and for one VLAN.
const ENTRIES: [&str; 2] = ["filtering-entry", "vlan-registration-entry"];
/// What a device sets back when it has done it (802.1Q-2022 8.6.9.3), so it need not stay.
const TRANSIENT: &str = "config-change";
/// Features that nodes depend on: the module's namespace, then the feature.
const FEATURES: [(Module, &str); 1] = [(Module::BridgeShapers, "credit-based-shaper-algorithm")];

/// Modules that a device must have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Needs {
    /// Namespaces of elements: these modules must be implemented.
    pub(super) nodes: BTreeSet<String>,
    /// Namespaces of identities.
    pub(super) identities: BTreeSet<String>,
}

impl Needs {
    /// What a configuration needs.
    pub(super) fn of(told: &[Tree]) -> Self {
        let mut needs = Self::default();
        told.iter().for_each(|tree| needs.add(tree));
        needs
    }

    fn add(&mut self, tree: &Tree) {
        if !self.nodes.contains(&tree.namespace) {
            self.nodes.insert(tree.namespace.clone());
        }
        self.identities.extend(tree.identity.clone());
        tree.nodes.iter().for_each(|node| self.add(node));
    }

    /// The feature that a module must have, by its namespace.
    pub(super) fn feature(namespace: &str) -> Option<&'static str> {
        let found = FEATURES.iter().find(|(module, _)| module.namespace() == namespace);
        found.map(|(_, feature)| *feature)
    }
}

/// What `edit-config` is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Edit {
    /// The content of `config`.
    pub(super) config: Vec<Tree>,
    /// What is removed, as paths.
    pub(super) removed: Vec<String>,
}

/// The edit that makes of `running` what is told. What an earlier plan left in lists that are the
/// plan's goes: all in containers of `WHOLE`; static entries of the filtering database in VLANs of
/// the plan; what is done with streams of the plan; and all that `former` has, what the device was
/// told before.
pub(super) fn edit(told: &[Tree], running: &[Tree], former: &[Tree]) -> Edit {
    let [mut config, running, former] = [told, running, former].map(all);
    let told = config.clone();
    let claims = Claims::of(&told, &running, &former);
    let mut editing = Editing { claims, removed: Vec::new() };
    editing.within(&mut config, Some(&running), Some(&former), "");
    Edit { config: config.nodes, removed: editing.removed }
}

/// Roots as the nodes of one.
fn all(roots: &[Tree]) -> Tree {
    Tree { nodes: roots.to_vec(), ..Tree::default() }
}

/// An edit in the making.
struct Editing<'a> {
    claims: Claims<'a>,
    removed: Vec<String>,
}

impl Editing<'_> {
    /// Adds to what is told under `path` what is to be done besides.
    fn within(
        &mut self,
        told: &mut Tree,
        running: Option<&Tree>,
        former: Option<&Tree>,
        path: &str,
    ) {
        if WHOLE.contains(&&*told.name) {
            told.operation = Some("replace");
            return;
        }
        let (has, had) = (index(running), index(former));
        let mut more = Vec::new();
        let (is_told, vlans, of_plan) = (index(Some(told)), vlans(told), is_of_plan(told));
        for (key, node) in has.iter().filter(|(key, _)| !is_told.contains_key(*key)) {
            let path = format!("{path}/{}", label(node));
            let was_told = had.get(key).copied();
            let is_gone = GONE.contains(&&*node.name) && of_plan;
            let is_ours = || was_told.is_some() || is_static_in(node, &vlans);
            if is_gone || is_entry(node) && (is_ours() || self.claims.has(node)) {
                self.removed.push(path);
                more.push(removal(node));
            } else if was_told.is_some() || !self.claims.is_empty() {
                more.extend(self.beside(node, was_told, &path));
            }
        }
        drop(is_told);
        for node in &mut told.nodes {
            let key = key(node);
            let (has, had) = (has.get(&key).copied(), had.get(&key).copied());
            let path = format!("{path}/{}", label(node));
            self.within(node, has, had, &path);
        }
        told.nodes.extend(more);
    }

    /// What goes within an element of which nothing is told, if anything.
    fn beside(&mut self, running: &Tree, former: Option<&Tree>, path: &str) -> Option<Tree> {
        if running.nodes.is_empty() || WHOLE.contains(&&*running.name) {
            return None;
        }
        let nodes: Vec<_> = key_leaves(running).cloned().collect();
        let keys = nodes.len();
        let mut part = Tree { nodes, ..Tree::new(&running.namespace, &running.name) };
        self.within(&mut part, Some(running), former, path);
        (part.nodes.len() > keys).then_some(part)
    }
}

/// The VLANs, by their databases, that the plan has entries for.
fn vlans(told: &Tree) -> BTreeSet<String> {
    let entries = told.nodes.iter().filter(|node| ENTRIES.contains(&&*node.name));
    entries.filter_map(|node| node.text_of("database-id").map(str::to_owned)).collect()
}

/// Whether a plan says gates and selection here, so that none means none: only then.
fn is_of_plan(told: &Tree) -> bool {
    let says = ["gate-enabled", "gate-parameter-table", "transmission-selection-algorithm-table"];
    told.nodes.iter().any(|node| says.contains(&&*node.name))
}

/// Whether an entry of the filtering database is a static one in one of these VLANs.
fn is_static_in(entry: &Tree, vlans: &BTreeSet<String>) -> bool {
    ENTRIES.contains(&&*entry.name)
        && entry.text_of("entry-type") == Some("static")
        && entry.text_of("database-id").is_some_and(|vlan| vlans.contains(vlan))
}

/// What has an entry deleted: its keys.
fn removal(of: &Tree) -> Tree {
    let nodes = if is_entry(of) { key_leaves(of).cloned().collect() } else { Vec::new() };
    Tree { operation: Some("remove"), nodes, ..Tree::new(&of.namespace, &of.name) }
}

/// What of the told a device lacks, or has besides, as a path with the reason; none if it has it.
pub(super) fn difference(told: &[Tree], running: &[Tree], former: &[Tree]) -> Option<String> {
    let lacking = lacks(&all(told), &all(running), false, "");
    let stale = || edit(told, running, former).removed.into_iter().next();
    lacking.or_else(|| stale().map(|path| format!("{path} is still there")))
}

/// What is told within `told` and not in `found`, which has the same keys. In a whole one lists
/// have the entries that were told, and no others.
fn lacks(told: &Tree, found: &Tree, whole: bool, path: &str) -> Option<String> {
    if found.value() != told.value() {
        let value = if found.text.is_empty() { "empty" } else { &*found.text };
        return Some(format!("{path} is {value}, not {}", told.text));
    }
    let whole = whole || WHOLE.contains(&&*told.name);
    let (to_be, is) = (index(Some(told)), index(Some(found)));
    let more = is.iter().filter(|_| whole).find(|(key, node)| {
        // A leaf may be a default of the device; an entry of a list is what frames meet.
        (!node.nodes.is_empty() || is_of_leaf_list(node))
            && !to_be.contains_key(*key)
            && told.nodes.iter().any(|other| other.is_named_as(node))
    });
    if let Some((_, node)) = more {
        return Some(format!("{path}/{} is still there", label(node)));
    }
    to_be.iter().filter(|(_, node)| node.name != TRANSIENT).find_map(|(key, node)| {
        let path = format!("{path}/{}", label(node));
        match is.get(key) {
            Some(found) => lacks(node, found, whole, &path),
            None => Some(format!("{path} is not there")),
        }
    })
}

/// Whether two configurations are the same but for the order of their elements.
pub(super) fn is_same(one: &[Tree], other: &[Tree]) -> bool {
    // Sorting first, so that long lists are compared in one pass.
    let sorted = |all: &[Tree]| {
        let mut all: Vec<_> = all.iter().map(canonical).collect();
        all.sort();
        all
    };
    sorted(one) == sorted(other)
}

/// A text that is equal for equal trees.
fn canonical(tree: &Tree) -> String {
    let mut nodes: Vec<_> = tree.nodes.iter().map(canonical).collect();
    nodes.sort();
    format!("{{{}}}{}={:?}[{}]", tree.namespace, tree.name, tree.value(), nodes.join(","))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{apply, trees};
    use super::*;

    const TYPES: &str = "urn:ieee:std:802.1Q:yang:ieee802-dot1q-types";

    fn port(gates: &str, shapers: &str) -> String {
        format!(
            "<interfaces xmlns='urn:i'><interface><name>p1</name><bridge-port xmlns='urn:b'>\
             <gate-parameter-table><gate-enabled>{}</gate-enabled>{gates}\
             <config-change>true</config-change></gate-parameter-table>{shapers}</bridge-port>\
             </interface></interfaces>",
            !gates.is_empty()
        )
    }

    fn list(states: &[u8]) -> String {
        let entries = states.iter().enumerate().map(|(at, state)| {
            let state = format!("<gate-states-value>{state}</gate-states-value>");
            format!("<gate-control-entry><index>{at}</index>{state}</gate-control-entry>")
        });
        let entries: String = entries.collect();
        format!("<admin-control-list>{entries}</admin-control-list>")
    }

    fn entry(vlan: u16, address: &str, kind: &str) -> String {
        format!(
            "<filtering-entry><database-id>{vlan}</database-id><vids>{vlan}</vids>\
             <address>{address}</address><entry-type>{kind}</entry-type></filtering-entry>"
        )
    }

    fn bridge(entries: &[String]) -> String {
        let database = entries.concat();
        format!(
            "<bridges xmlns='urn:b'><bridge><name>s</name><component><name>s</name>\
             <filtering-database>{database}</filtering-database></component></bridge></bridges>"
        )
    }

    #[test]
    fn no_entry_of_an_earlier_gate_list_stays_whether_there_is_a_new_one_or_none() {
        let running = trees(&port(&list(&[1, 2, 4]), "<cbsa><x><y>1</y></x></cbsa>"));
        for (gates, removals) in [(list(&[8]), 1), (String::new(), 2)] {
            let told = trees(&port(&gates, ""));
            assert!(difference(&told, &running, &[]).is_some());
            let edit = edit(&told, &running, &[]);
            assert_eq!(edit.removed.len(), removals, "{:?}", edit.removed);
            let after = apply(&edit.config, &running);
            assert!(is_same(&after, &told), "{after:?}");
            assert_eq!(difference(&told, &after, &[]), None);
        }
        // And nothing is removed that is not there.
        assert!(edit(&running, &trees(&port("", "")), &[]).removed.is_empty());
    }

    #[test]
    fn static_entries_in_vlans_of_the_plan_go_and_others_stay() {
        let [ours, stale] = ["01-00-5E-00-00-01", "01-00-5E-00-00-02"];
        let running = [entry(2, stale, "static"), entry(2, "02-00-00-00-00-07", "dynamic")];
        let others = [entry(9, stale, "static"), entry(3, stale, "static")];
        let running = trees(&bridge(&[&running[..], &others].concat()));
        let told = trees(&bridge(&[entry(2, ours, "static")]));
        let edited = edit(&told, &running, &[]);
        let [removed] = &edited.removed[..] else { panic!("{:?}", edited.removed) };
        let keys = format!("[address='{stale}'][database-id='2'][vids='2']");
        assert!(removed.ends_with(&format!("/filtering-entry{keys}")), "{removed}");
        let expected = [entry(2, "02-00-00-00-00-07", "dynamic"), entry(2, ours, "static")];
        let expected = trees(&bridge(&[&others[..], &expected].concat()));
        assert!(is_same(&apply(&edited.config, &running), &expected));
        // What the device was told before goes from other VLANs, too.
        let former = trees(&bridge(&[entry(9, stale, "static")]));
        assert_eq!(edit(&told, &running, &former).removed.len(), 2);
        let after = apply(&edit(&told, &running, &former).config, &running);
        assert_eq!(difference(&told, &after, &former), None);
        assert!(difference(&told, &running, &former).is_some());
    }

    #[test]
    fn a_device_has_what_it_was_told_in_whatever_order_and_with_whatever_prefixes() {
        let leaf = |prefix| format!("<k xmlns:{prefix}='{TYPES}'>{prefix}:strict</k>");
        let told = trees(&format!("<a>{}<n>1</n></a>", leaf("dot1q-types")));
        let running = trees(&format!("<b/><a><n>1</n><more>2</more>{}</a>", leaf("t")));
        assert_eq!(difference(&told, &running, &[]), None);
        let other = trees("<a><n>2</n></a>");
        let said = difference(&told, &other, &[]).expect("a difference");
        assert!(said.starts_with("/a/k is not there") || said == "/a/n is 2, not 1", "{said}");
        assert!(!is_same(&told, &running) && is_same(&told, &told));
        let needs = Needs::of(&told);
        assert_eq!(needs.identities.into_iter().collect::<Vec<_>>(), [TYPES]);
    }
}
