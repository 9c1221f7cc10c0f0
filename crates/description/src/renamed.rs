//! Keys with an old name: a description may use either name, and a warning names the new one.

use super::{FORMAT, Sink, codes, origin};
use onbeat_model::diagnostic::{Diagnostic, Origin};
use schemars::Schema;
use serde_json::json;
use std::borrow::Cow;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A key of `system.toml` that once had another name.
struct Renamed {
    /// The tables that it is in, from the outermost.
    tables: &'static [&'static str],
    /// The definition of the innermost in the schema.
    definition: &'static str,
    old: &'static str,
    new: &'static str,
}

/// All of them. An old name is read until the next version of the format.
const RENAMED: [Renamed; 5] = [
    Renamed { tables: &["stream"], definition: "Stream", old: "ways", new: "paths" },
    Renamed {
        tables: &["synchronisation"],
        definition: "Synchronisation",
        old: "stamps",
        new: "timestamping",
    },
    Renamed {
        tables: &["port", "gates"],
        definition: "Gates",
        old: "base_ns",
        new: "base_time_ns",
    },
    Renamed {
        tables: &["port", "gates"],
        definition: "Gates",
        old: "cycle_ns",
        new: "cycle_time_ns",
    },
    Renamed {
        tables: &["port", "gates", "entries"],
        definition: "GateEntry",
        old: "for_ns",
        new: "interval_ns",
    },
];

/// Gives every key its new name. Warns once of each old name, at its first place, and reports
/// tables that use both names: of these the new one stays.
pub(super) fn apply(root: &mut DeTable<'_>, sink: &mut Sink) {
    for key in &RENAMED {
        let mut places = Vec::new();
        key.rename(root, key.tables, &mut places, sink);
        let Some(first) = places.first() else { continue };
        let Renamed { old, new, .. } = key;
        let message = format!("`{old}` is the old name of `{new}`");
        let label = match places.len() {
            1 => "the old name".to_owned(),
            count => format!("the first of {count}"),
        };
        let help = format!("write `{new}`: format {} will not have `{old}`", FORMAT + 1);
        let renamed = Diagnostic::error(codes::OLD_NAME, message, *first, &label);
        sink.push(renamed.help(help).warning());
    }
}

impl Renamed {
    /// Renames the key in the tables below `table` that `path` leads to; adds where it was.
    fn rename(
        &self,
        table: &mut DeTable<'_>,
        path: &[&str],
        places: &mut Vec<Origin>,
        sink: &mut Sink,
    ) {
        let Some((next, rest)) = path.split_first() else {
            return self.rename_in(table, places, sink);
        };
        match table.get_mut(*next).map(Spanned::get_mut) {
            Some(DeValue::Table(inner)) => self.rename(inner, rest, places, sink),
            Some(DeValue::Array(list)) => {
                for element in list.iter_mut() {
                    if let DeValue::Table(inner) = element.get_mut() {
                        self.rename(inner, rest, places, sink);
                    }
                }
            }
            // What is no table is reported when it is read.
            _ => {}
        }
    }

    fn rename_in(&self, table: &mut DeTable<'_>, places: &mut Vec<Origin>, sink: &mut Sink) {
        let Some((key, value)) = table.remove_entry(self.old) else { return };
        let at = origin(0, key.span());
        if let Some((other, _)) = table.get_key_value(self.new) {
            let message = format!("both `{}` and `{}` are given", self.new, self.old);
            let both = Diagnostic::error(codes::BOTH_KEYS, message, at, "the old name")
                .help(format!("remove `{}`: it is the old name of the other", self.old))
                .related(origin(0, other.span()), "the new name");
            return sink.push(both);
        }
        places.push(at);
        table.insert(Spanned::new(key.span(), Cow::Borrowed(self.new)), value);
    }
}

/// Adds the old names to a description's schema, as deprecated.
pub(super) fn describe(schema: &mut Schema) {
    for key in &RENAMED {
        let definition = schema.pointer_mut(&format!("/$defs/{}", key.definition));
        let definition = definition.expect("the table is in the schema");
        let mut old = definition["properties"][key.new].clone();
        old["description"] = json!(format!("Old name of `{}`.", key.new));
        old["deprecated"] = json!(true);
        definition["properties"][key.old] = old;
        let required = definition["required"].as_array_mut();
        let at = required.as_ref().and_then(|all| all.iter().position(|name| name == key.new));
        if let (Some(required), Some(at)) = (required, at) {
            required.remove(at);
            definition["anyOf"] = json!([{ "required": [key.new] }, { "required": [key.old] }]);
        }
    }
}
