//! What identifies an element among those beside it (RFC 7950 7.7.8, 7.8.2).

use super::tree::Tree;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// Lists of which entries are removed, with their keys: the filtering database (802.1Q-2022 48);
/// how frames of streams are known and what is done with their numbers (802.1CBcv-2021); stream
/// filters with ATS schedulers (802.1Qcz-2023).
const LISTS: [(&str, &[&str]); 11] = [
    ("filtering-entry", &["database-id", "vids", "address"]),
    ("vlan-registration-entry", &["database-id", "vids"]),
    ("stream-identity", &["index"]),
    ("sequence-generation", &["index"]),
    ("sequence-recovery", &["index"]),
    ("sequence-identification", &["port", "direction-out-facing"]),
    ("stream-split", &["port", "direction-out-facing"]),
    ("stream-filter-instance-table", &["stream-filter-instance-id"]),
    ("stream-gate-instance-table", &["stream-gate-instance-id"]),
    ("scheduler-instance-table", &["scheduler-instance-id"]),
    ("scheduler-group-instance-table", &["scheduler-group-instance-id"]),
];
/// The keys of all other lists, which have one each.
const OTHERS: [&str; 4] = ["name", "traffic-class", "index", "port-ref"];
/// Leaf-lists: a value is an element of its own. Where `port` is a leaf, it is a key: there it is
/// the same.
const LEAF_LISTS: [&str; 3] = ["input-port", "port", "stream"];

/// Namespace, name and keys.
pub(super) type Key<'a> = (&'a str, &'a str, Vec<(&'a str, String)>);

pub(super) fn key(of: &Tree) -> Key<'_> {
    (&of.namespace, &of.name, keys(of))
}

/// The elements in one, by what identifies them.
pub(super) fn index(of: Option<&Tree>) -> BTreeMap<Key<'_>, &Tree> {
    of.iter().flat_map(|tree| &tree.nodes).map(|node| (key(node), node)).collect()
}

/// Whether it is an entry of a list of which entries are removed.
pub(super) fn is_entry(tree: &Tree) -> bool {
    LISTS.iter().any(|(name, _)| *name == tree.name)
}

/// Whether it is a value of a leaf-list.
pub(super) fn is_of_leaf_list(tree: &Tree) -> bool {
    tree.nodes.is_empty() && LEAF_LISTS.contains(&&*tree.name)
}

/// The leaves by which an element is found: the keys of an entry, or none.
pub(super) fn key_leaves(of: &Tree) -> impl Iterator<Item = &Tree> {
    let list = LISTS.iter().find(|(name, _)| *name == of.name);
    let names = list.map_or(&OTHERS[..], |(_, keys)| keys);
    let is_leaf = |node: &&Tree| node.nodes.is_empty() && !node.text.is_empty();
    of.nodes.iter().filter(is_leaf).filter(|node| names.contains(&&*node.name))
}

/// The values by which two elements of one name are one.
fn keys(of: &Tree) -> Vec<(&str, String)> {
    let value = |node: &Tree| node.value().1.into_owned();
    if is_of_leaf_list(of) {
        return vec![(".", value(of))];
    }
    let mut keys: Vec<_> = key_leaves(of).map(|node| (&*node.name, value(node))).collect();
    keys.sort();
    keys
}

/// An element in a path, as an instance-identifier has it (RFC 7950 9.13).
pub(super) fn label(tree: &Tree) -> String {
    let keys: Vec<_> = keys(tree).iter().map(|(key, value)| format!("[{key}='{value}']")).collect();
    format!("{}{}", tree.name, keys.concat())
}

/// Several documents as one: each element is there once.
pub(super) fn merged(documents: Vec<Tree>) -> Vec<Tree> {
    let mut places = BTreeMap::new();
    let mut all: Vec<Tree> = Vec::new();
    for tree in documents {
        match places.entry((tree.namespace.clone(), label(&tree))) {
            Entry::Vacant(place) => {
                place.insert(all.len());
                all.push(tree);
            }
            Entry::Occupied(place) => {
                let same = &mut all[*place.get()];
                let nodes = std::mem::take(&mut same.nodes);
                same.nodes = merged(nodes.into_iter().chain(tree.nodes).collect());
            }
        }
    }
    all
}
