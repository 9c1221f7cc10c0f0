//! One device of a deployment: what it can do, and what is known of it.

use super::Event;
use super::claims::IDENTITY;
use super::edit::{Needs, difference, edit, is_same};
use super::keys::merged;
use super::rpc::{self, LIBRARY, PushStep, Reply, RpcError};
use super::tree::{BASE, Tree};
use crate::module::Module;
use onbeat_model::time::Span;
use std::collections::{BTreeMap, BTreeSet};

const CAPABILITY: &str = "urn:ietf:params:netconf:capability:";
/// Capabilities that a deployment needs (RFC 6241 8.1, 8.3, 8.4, 8.6), each in one of its versions.
const NEEDED: [&[&str]; 4] = [
    &["urn:ietf:params:netconf:base:1.1", "urn:ietf:params:netconf:base:1.0"],
    &["urn:ietf:params:netconf:capability:candidate:1.0"],
    &["urn:ietf:params:netconf:capability:confirmed-commit:1.1"],
    &[
        "urn:ietf:params:netconf:capability:validate:1.1",
        "urn:ietf:params:netconf:capability:validate:1.0",
    ],
];

/// A file for a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushDocument {
    /// What a user knows it by.
    pub name: String,
    /// A document of one element; if that is `config` of NETCONF, of those in it.
    pub text: String,
}

impl PushDocument {
    fn roots(&self) -> Result<Vec<Tree>, (String, String)> {
        let wrong = |why| (self.name.clone(), why);
        let root = Tree::read(&self.text).map_err(wrong)?;
        let is_config = root.name == "config" && root.namespace == BASE;
        Ok(if is_config { root.nodes } else { vec![root] })
    }
}

/// What a device is told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PushTarget {
    /// What each document needs, by its name.
    pub(super) needs: Vec<(String, Needs)>,
    pub(super) told: Vec<Tree>,
    former: Vec<Tree>,
}

impl PushTarget {
    /// A device that is told these documents, all at once, and that was told `former` before.
    ///
    /// # Errors
    /// The name of one that is none, and why.
    pub fn new(told: &[PushDocument], former: &[PushDocument]) -> Result<Self, (String, String)> {
        let (mut needs, mut all) = (Vec::new(), Vec::new());
        for document in told {
            let roots = document.roots()?;
            needs.push((document.name.clone(), Needs::of(&roots)));
            all.extend(roots);
        }
        let former = former.iter().map(PushDocument::roots).collect::<Result<Vec<_>, _>>()?;
        let former = merged(former.into_iter().flatten().collect());
        Ok(Self { needs, told: merged(all), former })
    }
}

/// What can be said of a device's running configuration at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PushState {
    /// It was never written.
    Unchanged,
    /// It has what it was told, confirmed.
    Deployed,
    /// It had what it was told, and has been read since: it has what it had before.
    TakenBack,
    /// It goes back by itself, at the session's end or when the time to confirm has passed; it
    /// has not been read since.
    GoesBack,
    /// It was confirmed without an answer: it may have either.
    Unknown,
    /// It has been read since, and is not as it was before.
    NotAsBefore,
}

/// How far a commit has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    No,
    Maybe,
    Yes,
}

/// A device, by what has been asked of it and what it answered.
#[derive(Debug)]
pub(super) struct Device {
    target: PushTarget,
    has_session: bool,
    is_locked: bool,
    is_edited: bool,
    committed: Progress,
    confirmed: Progress,
    /// Whether it has said that it went back.
    is_cancelled: bool,
    /// None until it has been read after that: whether it is as before.
    is_as_before: Option<bool>,
    before: Vec<Tree>,
    removed: Vec<String>,
    /// Namespaces of modules, with their features where the device says them.
    modules: BTreeMap<String, BTreeSet<String>>,
    reports_defaults: bool,
}

impl Device {
    pub(super) fn new(target: &PushTarget) -> Self {
        Self {
            target: target.clone(),
            has_session: false,
            is_locked: false,
            is_edited: false,
            committed: Progress::No,
            confirmed: Progress::No,
            is_cancelled: false,
            is_as_before: None,
            before: Vec::new(),
            removed: Vec::new(),
            modules: BTreeMap::new(),
            reports_defaults: false,
        }
    }

    /// Whether a step makes sense with what is known.
    pub(super) fn takes(&self, step: PushStep) -> bool {
        let is_open = self.committed != Progress::No && self.confirmed == Progress::No;
        match step {
            PushStep::Connect => !self.has_session,
            _ if !self.has_session => false,
            PushStep::Discard => self.is_edited,
            PushStep::Cancel | PushStep::After => is_open,
            PushStep::Unlock => self.is_locked,
            _ => true,
        }
    }

    /// The request of a step; from now on the device may have got it.
    pub(super) fn begin(&mut self, step: PushStep, within: Span) -> Option<String> {
        let told = &self.target.told;
        let rpc = match step {
            PushStep::Connect => return None,
            PushStep::Library => rpc::library(),
            PushStep::Lock => rpc::lock(),
            PushStep::Before | PushStep::Verify | PushStep::After => {
                rpc::get_config(self.roots(), self.reports_defaults)
            }
            PushStep::Try | PushStep::Edit => {
                self.is_edited = true;
                let edit = edit(told, &self.before, &self.target.former);
                self.removed = edit.removed;
                rpc::edit(edit.config)
            }
            PushStep::Validate => rpc::validate(),
            PushStep::Discard => rpc::discard(),
            PushStep::Commit => {
                self.committed = Progress::Maybe;
                rpc::commit(within)
            }
            PushStep::Confirm => {
                self.confirmed = Progress::Maybe;
                rpc::confirm()
            }
            PushStep::Cancel => rpc::cancel(),
            PushStep::Unlock => rpc::unlock(),
            PushStep::Close => Tree::new(super::tree::BASE, "close-session"),
        };
        Some(rpc.write())
    }

    /// What came of it, or why it failed.
    pub(super) fn happened(&mut self, step: PushStep, event: Event) -> Result<(), Vec<RpcError>> {
        match event {
            Event::Lost(why) => {
                self.has_session = false;
                Err(vec![RpcError::own(why)])
            }
            Event::Connected(capabilities) => {
                self.has_session = true;
                self.connected(&capabilities)
            }
            Event::Answered(text) => match rpc::reply(&text) {
                Ok(reply) => self.answered(step, reply),
                Err(refusals) => {
                    // It says that it did not do it.
                    if refusals.iter().any(|refusal| refusal.tag.is_some()) {
                        match step {
                            PushStep::Commit => self.committed = Progress::No,
                            PushStep::Confirm => self.confirmed = Progress::No,
                            _ => {}
                        }
                    }
                    Err(refusals)
                }
            },
        }
    }

    fn answered(&mut self, step: PushStep, reply: Reply) -> Result<(), Vec<RpcError>> {
        let own = |why: String| Err(vec![RpcError::own(why)]);
        match (step, reply) {
            (PushStep::Library, Reply::Data(data)) => return self.library(&data),
            (PushStep::Before, Reply::Data(data)) => self.before = data,
            (PushStep::Verify, Reply::Data(data)) => {
                let differs = difference(&self.target.told, &data, &self.target.former);
                if let Some(why) = differs {
                    return own(format!("the running configuration is not what was told: {why}"));
                }
            }
            (PushStep::After, Reply::Data(data)) => {
                let is_same = is_same(&self.before, &data);
                if !is_same && !self.is_cancelled {
                    // What it has is still to be confirmed, and goes back when the session ends.
                    return Ok(());
                }
                self.is_as_before = Some(is_same);
                if !is_same {
                    return own("the running configuration is not what it was".to_owned());
                }
            }
            (
                PushStep::Library | PushStep::Before | PushStep::Verify | PushStep::After,
                Reply::Ok,
            ) => {
                return own("its answer has no data".to_owned());
            }
            (PushStep::Lock, _) => self.is_locked = true,
            (PushStep::Unlock, _) => self.is_locked = false,
            (PushStep::Discard, _) => self.is_edited = false,
            (PushStep::Commit, _) => self.committed = Progress::Yes,
            (PushStep::Cancel, _) => self.is_cancelled = true,
            (PushStep::Confirm, _) => self.confirmed = Progress::Yes,
            (PushStep::Close, _) => self.has_session = false,
            _ => {}
        }
        Ok(())
    }

    /// What the device says of itself at the beginning (RFC 6241 8.1): capabilities, and modules of
    /// the first version of YANG.
    fn connected(&mut self, capabilities: &[String]) -> Result<(), Vec<RpcError>> {
        for uri in capabilities {
            let (uri, query) = uri.split_once('?').unwrap_or((uri, ""));
            let value = |key: &str| {
                let mut parts = query.split('&').filter_map(|part| part.split_once('='));
                parts.find(|(name, _)| *name == key).map(|(_, value)| value)
            };
            if value("module").is_some() {
                let features = value("features").into_iter().flat_map(|all| all.split(','));
                let known = self.modules.entry(uri.to_owned()).or_default();
                known.extend(features.map(str::to_owned));
            }
            let name = uri.strip_prefix(CAPABILITY).unwrap_or_default();
            if name.starts_with("with-defaults:") {
                let modes = [value("basic-mode"), value("also-supported")];
                let mut modes = modes.into_iter().flatten().flat_map(|all| all.split(','));
                self.reports_defaults = modes.any(|mode| mode == "report-all");
            }
        }
        let has = |uri: &str| capabilities.iter().any(|of| of.split('?').next() == Some(uri));
        let lacks = NEEDED.iter().filter(|versions| !versions.iter().any(|uri| has(uri)));
        let refusal = |versions: &&[&str]| {
            RpcError::own(format!("it lacks the NETCONF capability {}", versions[0]))
        };
        let lacks: Vec<_> = lacks.map(refusal).collect();
        if lacks.is_empty() { Ok(()) } else { Err(lacks) }
    }

    /// The modules of the device's YANG library, of which those in YANG 1.1 are nowhere else
    /// (RFC 7950 5.6.4); then whether all that are needed are there.
    fn library(&mut self, data: &[Tree]) -> Result<(), Vec<RpcError>> {
        let mut imported = BTreeSet::new();
        for tree in data.iter().filter(|tree| tree.namespace == LIBRARY) {
            let is_set = |set: &&Tree| set.name == "module-set";
            let sets = tree.nodes.iter().filter(is_set);
            for module in std::iter::once(tree).chain(sets).flat_map(|set| &set.nodes) {
                let Some(namespace) = module.text_of("namespace") else { continue };
                let only_import = module.name == "import-only-module"
                    || module.text_of("conformance-type") == Some("import");
                if only_import {
                    imported.insert(namespace.to_owned());
                    continue;
                }
                let features = module.nodes.iter().filter(|node| node.name == "feature");
                let known = self.modules.entry(namespace.to_owned()).or_default();
                known.extend(features.map(|feature| feature.text.clone()));
            }
        }
        let mut said = BTreeSet::new();
        let mut all = Vec::new();
        for (file, needs) in &self.target.needs {
            let lacks = self.lacks(needs, &imported);
            let lacks = lacks.into_iter().filter(|message| said.insert(message.clone()));
            all.extend(
                lacks.map(|why| RpcError { file: Some(file.clone()), ..RpcError::own(why) }),
            );
        }
        if all.is_empty() { Ok(()) } else { Err(all) }
    }

    /// Which modules and features it lacks of those that a document needs.
    fn lacks(&self, needs: &Needs, imported: &BTreeSet<String>) -> BTreeSet<String> {
        let name = |namespace: &str| namespace.rsplit(':').next().unwrap_or(namespace).to_owned();
        let module = |of: &str| format!("it lacks the YANG module {} ({of})", name(of));
        let mut lacks = BTreeSet::new();
        for namespace in &needs.nodes {
            match (self.modules.get(namespace), Needs::feature(namespace)) {
                (None, _) => {
                    lacks.insert(module(namespace));
                }
                (Some(features), Some(feature)) if !features.contains(feature) => {
                    let module = name(namespace);
                    lacks.insert(format!("it lacks the feature {feature} of the module {module}"));
                }
                _ => {}
            }
        }
        let identities = needs.identities.iter().filter(|namespace| {
            !self.modules.contains_key(*namespace) && !imported.contains(*namespace)
        });
        lacks.extend(identities.map(|namespace| module(namespace)));
        lacks
    }

    /// The roots of the configuration that are read: those of what is told, those of what was told
    /// before if the device still has their modules, and what may refer to streams.
    fn roots(&self) -> BTreeSet<(String, String)> {
        let PushTarget { told, former, .. } = &self.target;
        let frer = Tree::new(&Module::Replication.namespace(), "frer");
        let frer = told.iter().any(|tree| tree.name == IDENTITY).then_some(&frer);
        let may_be = former.iter().chain(frer);
        let may_be = may_be.filter(|tree| self.modules.contains_key(&tree.namespace));
        let all = told.iter().chain(may_be);
        all.map(|tree| (tree.namespace.clone(), tree.name.clone())).collect()
    }

    /// Whether it has been confirmed, or may have been.
    pub(super) fn may_be_confirmed(&self) -> bool {
        self.confirmed != Progress::No
    }

    pub(super) fn removed(&self) -> &[String] {
        &self.removed
    }

    pub(super) fn state(&self) -> PushState {
        match (self.committed, self.confirmed, self.is_as_before) {
            (_, Progress::Yes, _) => PushState::Deployed,
            (_, Progress::Maybe, _) => PushState::Unknown,
            (Progress::No, ..) => PushState::Unchanged,
            (.., Some(true)) => PushState::TakenBack,
            (.., Some(false)) => PushState::NotAsBefore,
            (.., None) => PushState::GoesBack,
        }
    }
}
