//! Requests of NETCONF as texts, and what devices answer (RFC 6241).

use super::tree::{BASE, Tree};
use onbeat_model::time::Span;
use std::collections::BTreeSet;
use std::fmt;

/// The module of `with-defaults` (RFC 6243).
const WITH_DEFAULTS: &str = "urn:ietf:params:xml:ns:yang:ietf-netconf-with-defaults";
/// That of the YANG library, in both of its editions (RFC 7895, RFC 8525).
pub(super) const LIBRARY: &str = "urn:ietf:params:xml:ns:yang:ietf-yang-library";

/// A step of a deployment on one device: an RPC, but for the first and the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PushStep {
    /// Opens a session; the answer has the device's capabilities.
    Connect,
    /// Asks which modules the device has.
    Library,
    /// Locks the candidate configuration.
    Lock,
    /// Reads the running configuration as it is before.
    Before,
    /// Writes the candidate configuration, to try it.
    Try,
    /// Has the device validate it.
    Validate,
    /// Takes back what is in the candidate configuration.
    Discard,
    /// Writes the candidate configuration.
    Edit,
    /// Puts it in force until a time has passed without [`PushStep::Confirm`].
    Commit,
    /// Reads the running configuration, which must be what was told.
    Verify,
    /// Confirms the commit.
    Confirm,
    /// Cancels the commit.
    Cancel,
    /// Reads the running configuration, which must be what it was before.
    After,
    /// Unlocks the candidate configuration.
    Unlock,
    /// Ends the session.
    Close,
}

impl fmt::Display for PushStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Connect => "connect",
            Self::Library => "get",
            Self::Lock => "lock",
            Self::Before | Self::Verify | Self::After => "get-config",
            Self::Try | Self::Edit => "edit-config",
            Self::Validate => "validate",
            Self::Discard => "discard-changes",
            Self::Commit => "commit (confirmed)",
            Self::Confirm => "commit",
            Self::Cancel => "cancel-commit",
            Self::Unlock => "unlock",
            Self::Close => "close-session",
        })
    }
}

/// An operation with a datastore in an element such as `target`.
fn of_datastore(operation: &str, element: &str, datastore: &str) -> Tree {
    let datastore = Tree::new(BASE, datastore);
    let element = Tree { nodes: vec![datastore], ..Tree::new(BASE, element) };
    Tree { nodes: vec![element], ..Tree::new(BASE, operation) }
}

fn leaf(namespace: &str, name: &str, text: &str) -> Tree {
    Tree { text: text.to_owned(), ..Tree::new(namespace, name) }
}

pub(super) fn lock() -> Tree {
    of_datastore("lock", "target", "candidate")
}

pub(super) fn unlock() -> Tree {
    of_datastore("unlock", "target", "candidate")
}

pub(super) fn validate() -> Tree {
    of_datastore("validate", "source", "candidate")
}

pub(super) fn discard() -> Tree {
    Tree::new(BASE, "discard-changes")
}

pub(super) fn cancel() -> Tree {
    Tree::new(BASE, "cancel-commit")
}

pub(super) fn confirm() -> Tree {
    Tree::new(BASE, "commit")
}

/// A confirmed commit. It ends with the session: a client that dies takes it back.
pub(super) fn commit(within: Span) -> Tree {
    let seconds = (within.as_ns() / 1_000_000_000).max(1).to_string();
    let nodes = vec![Tree::new(BASE, "confirmed"), leaf(BASE, "confirm-timeout", &seconds)];
    Tree { nodes, ..confirm() }
}

pub(super) fn edit(config: Vec<Tree>) -> Tree {
    let mut rpc = of_datastore("edit-config", "target", "candidate");
    rpc.nodes.push(leaf(BASE, "default-operation", "merge"));
    rpc.nodes.push(Tree { nodes: config, ..Tree::new(BASE, "config") });
    rpc
}

fn filter(nodes: Vec<Tree>) -> Tree {
    Tree { nodes, ..Tree::new(BASE, "filter") }
}

pub(super) fn library() -> Tree {
    let editions = ["modules-state", "yang-library"].map(|name| Tree::new(LIBRARY, name));
    Tree { nodes: vec![filter(editions.to_vec())], ..Tree::new(BASE, "get") }
}

/// Reads the running configuration under these roots, by namespace and name. Leaves that have their
/// default value are wanted, too, where the device can be asked for them.
pub(super) fn get_config(roots: BTreeSet<(String, String)>, all: bool) -> Tree {
    let mut rpc = of_datastore("get-config", "source", "running");
    let roots = roots.iter().map(|(namespace, name)| Tree::new(namespace, name));
    rpc.nodes.push(filter(roots.collect()));
    if all {
        rpc.nodes.push(leaf(WITH_DEFAULTS, "with-defaults", "report-all"));
    }
    rpc
}

/// What a device answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    /// It did it.
    Ok,
    /// What was asked for.
    Data(Vec<Tree>),
}

/// Why a device did not do something, in its own words (RFC 6241 4.3).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RpcError {
    /// `error-tag`; none if there is no answer.
    pub tag: Option<String>,
    /// `error-path`: the node that it is about.
    pub path: Option<String>,
    /// `error-message`, or what happened instead of an answer.
    pub message: String,
    /// The file that needs what a device lacks.
    pub file: Option<String>,
}

impl RpcError {
    /// Something that no device said.
    pub(super) fn own(message: impl Into<String>) -> Self {
        Self { message: message.into(), ..Self::default() }
    }
}

impl fmt::Display for RpcError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tag, path, message, file } = self;
        let tag = tag.as_deref().map(|tag| format!("{tag}: ")).unwrap_or_default();
        let path = path.as_deref().map(|path| format!(" ({path})")).unwrap_or_default();
        let needs = |file| format!(", which `{file}` needs");
        let file = file.as_deref().map(needs).unwrap_or_default();
        write!(f, "{tag}{message}{path}{file}")
    }
}

/// Reads an `rpc-reply`. Warnings are no errors.
pub(super) fn reply(text: &str) -> Result<Reply, Vec<RpcError>> {
    let wrong = |why: String| vec![RpcError::own(format!("its answer is not understood: {why}"))];
    let reply = Tree::read(text).map_err(wrong)?;
    if reply.name != "rpc-reply" {
        return Err(wrong("no rpc-reply".to_owned()));
    }
    let is_error = |node: &&Tree| {
        node.name == "rpc-error" && node.text_of("error-severity") != Some("warning")
    };
    let text = |error: &Tree, name: &str| error.text_of(name).map(str::to_owned);
    let refusal = |error: &Tree| RpcError {
        tag: text(error, "error-tag"),
        path: text(error, "error-path"),
        message: text(error, "error-message").unwrap_or_else(|| "no error-message".to_owned()),
        file: None,
    };
    let refused: Vec<_> = reply.nodes.iter().filter(is_error).map(refusal).collect();
    match (refused.is_empty(), reply.find("data"), reply.find("ok")) {
        (false, ..) => Err(refused),
        (true, Some(data), _) => Ok(Reply::Data(data.nodes.clone())),
        (true, None, Some(_)) => Ok(Reply::Ok),
        (true, None, None) => Err(wrong("neither ok nor data".to_owned())),
    }
}
