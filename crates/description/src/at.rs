//! A value together with its place.

use onbeat_model::diagnostic::Origin;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer};
use std::borrow::Cow;
use std::ops::Range;

/// A value and the place that it was read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct At<T> {
    /// The value.
    pub value: T,
    /// The place.
    pub at: Origin,
}

impl<T> At<T> {
    /// Another value with the same place.
    pub(crate) fn with<U>(&self, value: U) -> At<U> {
        At { value, at: self.at }
    }
}

/// A byte range of one file. Files are limited to far less than 4 GiB.
pub(crate) fn origin(file: u16, range: Range<usize>) -> Origin {
    let octet = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    Origin { file, start: octet(range.start), end: octet(range.end) }
}

/// Only TOML is read through serde, and the TOML file always is the first source.
impl<'de, T: Deserialize<'de>> Deserialize<'de> for At<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = toml::Spanned::<T>::deserialize(deserializer)?;
        let at = origin(0, spanned.span());
        Ok(Self { value: spanned.into_inner(), at })
    }
}

/// The place is no part of the format.
impl<T: JsonSchema> JsonSchema for At<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }
    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }
    fn schema_id() -> Cow<'static, str> {
        T::schema_id()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}
