//! What all JSON contracts have in common: how they are written, and how their schemas are made.

use schemars::JsonSchema;
use serde::Serialize;

/// The JSON Schema of a type. Ends with a line feed.
///
/// # Panics
/// Never: a schema is plain JSON.
pub fn schema_of<T: JsonSchema>() -> String {
    indented(&schemars::schema_for!(T))
}

/// A value as indented JSON that ends with a line feed.
///
/// # Panics
/// When the value is none that JSON can hold, as a map whose keys are no strings.
pub fn indented(value: &impl Serialize) -> String {
    let mut text = serde_json::to_string_pretty(value).expect("results are plain JSON");
    text.push('\n');
    text
}
