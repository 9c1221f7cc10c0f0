//! A description as a tree, its files, and how it is written down.

use crate::fold::folded;
use anyhow::{Context, Result};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

/// `system.toml` as a tree, and the files that it names.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Description {
    /// The tables by name: what JSON calls an object is a TOML table.
    pub root: Map<String, Value>,
    /// Other files by their path beside `system.toml`.
    pub files: BTreeMap<String, String>,
    /// Whether some tables are written as groups, and the seed that says which.
    pub groups: Option<u64>,
}

impl Description {
    /// The tables as they are written, with groups if there are some.
    pub fn tree(&self) -> Cow<'_, Map<String, Value>> {
        match self.groups {
            Some(seed) => Cow::Owned(folded(&self.root, seed)),
            None => Cow::Borrowed(&self.root),
        }
    }

    /// `system.toml`.
    pub fn toml(&self) -> String {
        let root = self.tree();
        let mut text = String::new();
        let is_table = |value: &Value| value.is_object();
        let is_list = |value: &Value| value.as_array().is_some_and(|l| l.iter().all(is_table));
        for (key, value) in root.iter().filter(|(_, v)| !is_table(v) && !is_list(v)) {
            let _ = writeln!(text, "{key} = {}", inline(value));
        }
        for (key, value) in root.iter() {
            match value {
                Value::Object(table) => {
                    let _ = writeln!(text, "[{key}]");
                    lines(&mut text, table);
                }
                Value::Array(tables) if is_list(value) => {
                    for table in tables.iter().filter_map(Value::as_object) {
                        let _ = writeln!(text, "[[{key}]]");
                        lines(&mut text, table);
                    }
                }
                _ => {}
            }
        }
        text
    }

    /// Writes `system.toml` and the files into an existing directory.
    ///
    /// # Errors
    /// Says which file could not be written.
    pub fn write(&self, directory: &Path) -> Result<()> {
        let toml = ("system.toml".to_owned(), self.toml());
        let files = self.files.iter().map(|(name, text)| (name.clone(), text.clone()));
        for (name, text) in files.chain([toml]) {
            let path = directory.join(name);
            std::fs::write(&path, text).with_context(|| path.display().to_string())?;
        }
        Ok(())
    }

    /// The tables of a list; none where the description has none.
    pub fn list(&self, key: &str) -> &[Value] {
        self.root.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }
}

fn lines(text: &mut String, table: &Map<String, Value>) {
    for (key, value) in table {
        let _ = writeln!(text, "{key} = {}", inline(value));
    }
}

/// A value on one line. A string of JSON is one of TOML, too.
fn inline(value: &Value) -> String {
    match value {
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(inline).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(table) => {
            let pairs: Vec<_> = table.iter().map(|(k, v)| format!("{k} = {}", inline(v))).collect();
            format!("{{ {} }}", pairs.join(", "))
        }
        other => other.to_string(),
    }
}
