//! Instance data as a tree, from which both encodings are written.

use crate::module::Module;

/// One node of instance data, or all entries of one list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Element {
    /// The module whose namespace the name is in.
    pub(crate) module: Module,
    /// Its name.
    pub(crate) name: &'static str,
    /// What it holds.
    pub(crate) value: InstanceValue,
}

/// What a node holds. Numbers are two kinds, as JSON has those of 64 bits as text (RFC 7951 6.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum InstanceValue {
    /// A `string`.
    Text(String),
    /// A `uint8` or `uint32`.
    Number(u32),
    /// A `uint64`.
    Large(u64),
    /// A `boolean`.
    Flag(bool),
    /// An `identityref`: the module that defines the identity, and its name.
    Identity(Module, &'static str),
    /// A `leaf-list` of strings.
    Leaves(Vec<String>),
    /// A `leaf-list` of `uint32`.
    Numbers(Vec<u32>),
    /// A `container`.
    Fields(Vec<Element>),
    /// A `list`: the nodes of each entry, keys first (RFC 7950 7.8.5).
    List(Vec<Vec<Element>>),
}

impl Element {
    pub(crate) const fn new(module: Module, name: &'static str, value: InstanceValue) -> Self {
        Self { module, name, value }
    }
}
