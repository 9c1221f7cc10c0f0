//! Which streams of a device are the plan's, so that nothing of an earlier plan is done with their
//! frames.

use super::keys::key;
use super::tree::Tree;
use std::collections::BTreeSet;

/// The stream identity table (802.1CB-2017 9.1).
pub(super) const IDENTITY: &str = "stream-identity";
/// Lists whose entries say what is done with streams, by the leaves that have their handles.
const USES: [(&str, &[&str]); 5] = [
    ("sequence-generation", &["stream"]),
    ("sequence-recovery", &["stream"]),
    ("sequence-identification", &["stream"]),
    ("stream-split", &["input-id", "output-id"]),
    ("stream-filter-instance-table", &["stream-handle"]),
];

/// Entries of tables of streams that go when the plan lacks them.
#[derive(Debug, Default)]
pub(super) struct Claims<'a> {
    /// Indices of stream identities.
    identities: BTreeSet<&'a str>,
    /// Handles of streams of which nothing is left that others could mean.
    handles: BTreeSet<&'a str>,
}

impl<'a> Claims<'a> {
    /// Those of a plan, with roots as nodes. A plan numbers its streams from 1 and tells each way
    /// by which frames get a number. So another entry goes that gives frames such a number; that
    /// finds frames in a VLAN of the plan's streams by their destination; that was told before.
    /// What then names no other streams means none, and goes, too.
    pub(super) fn of(told: &'a Tree, running: &'a Tree, former: &'a Tree) -> Self {
        let told: Vec<_> = identities(told).collect();
        let keys: BTreeSet<_> = told.iter().map(|entry| key(entry)).collect();
        let before: BTreeSet<_> = identities(former).map(key).collect();
        let vlans: BTreeSet<_> = told.iter().filter_map(|entry| vlan(entry)).collect();
        let mut claims = Self::default();
        claims.handles.extend(told.iter().filter_map(|entry| entry.text_of("handle")));
        let others = identities(running).filter(|entry| !keys.contains(&key(entry)));
        let (gone, stay): (Vec<_>, Vec<_>) = others.partition(|entry| {
            before.contains(&key(entry))
                || vlan(entry).is_some_and(|vlan| vlans.contains(vlan))
                || entry.text_of("handle").is_some_and(|handle| claims.handles.contains(handle))
        });
        claims.identities.extend(gone.iter().filter_map(|entry| entry.text_of("index")));
        claims.handles.extend(gone.iter().filter_map(|entry| entry.text_of("handle")));
        for handle in stay.iter().filter_map(|entry| entry.text_of("handle")) {
            claims.handles.remove(handle);
        }
        claims
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.handles.is_empty()
    }

    /// Whether an entry goes that the plan lacks.
    pub(super) fn has(&self, entry: &Tree) -> bool {
        if entry.name == IDENTITY {
            return entry.text_of("index").is_some_and(|index| self.identities.contains(index));
        }
        let Some((_, leaves)) = USES.iter().find(|(name, _)| *name == entry.name) else {
            return false;
        };
        let mut handles =
            entry.nodes.iter().filter(|node| leaves.contains(&&*node.name)).peekable();
        handles.peek().is_some() && handles.all(|node| self.handles.contains(&*node.text))
    }
}

fn identities(roots: &Tree) -> impl Iterator<Item = &Tree> {
    roots.nodes.iter().filter(|tree| tree.name == IDENTITY)
}

/// The VLAN in which frames are found by their destination (802.1CB-2017 6.4).
fn vlan(identity: &Tree) -> Option<&str> {
    identity.find("null-stream-identification")?.text_of("vlan")
}
