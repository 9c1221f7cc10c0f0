//! The schema of a group's tables: that of the tables, but a number may be a text, which says how
//! it is computed.

use schemars::Schema;
use serde_json::{Value, json};

/// What the definitions of a group's tables begin with.
const PREFIX: &str = "Grouped";
const DEFINITIONS: &str = "#/$defs/";

/// Gives a description's schema the definitions of the tables of groups.
pub(crate) fn describe(schema: &mut Schema) {
    let definitions = schema.pointer_mut("/$defs").expect("there are tables");
    let mut wanted = vec!["Group".to_owned()];
    while let Some(name) = wanted.pop() {
        let is_group = name == "Group";
        let grouped = if is_group { name.clone() } else { format!("{PREFIX}{name}") };
        if !is_group && definitions.get(&grouped).is_some() {
            continue;
        }
        let mut definition = definitions[&name].clone();
        let mut names = Vec::new();
        refer(&mut definition, definitions, &mut names);
        if !is_group {
            relax(&mut definition);
        }
        definitions[&grouped] = definition;
        wanted.extend(names);
    }
}

/// Whether a definition has a number, itself or in what it refers to.
fn has_numbers(schema: &Value) -> bool {
    match schema {
        Value::Object(all) => {
            is_integer(schema) || all.contains_key("$ref") || all.values().any(has_numbers)
        }
        Value::Array(all) => all.iter().any(has_numbers),
        _ => false,
    }
}

fn is_integer(schema: &Value) -> bool {
    match schema.get("type") {
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "integer"),
        kind => kind.is_some_and(|kind| kind == "integer"),
    }
}

/// Lets every reference lead to the definition of groups, and says which it led to.
fn refer(schema: &mut Value, definitions: &Value, names: &mut Vec<String>) {
    match schema {
        Value::Object(all) => {
            for (key, value) in all.iter_mut() {
                let name = value.as_str().and_then(|it| it.strip_prefix(DEFINITIONS));
                let name = name.filter(|name| key == "$ref" && *name != "Group");
                match name.map(str::to_owned) {
                    Some(name) if has_numbers(&definitions[&name]) => {
                        *value = json!(format!("{DEFINITIONS}{PREFIX}{name}"));
                        names.push(name);
                    }
                    _ => refer(value, definitions, names),
                }
            }
        }
        Value::Array(all) => all.iter_mut().for_each(|it| refer(it, definitions, names)),
        _ => {}
    }
}

/// Lets every number be a text, too.
fn relax(schema: &mut Value) {
    if is_integer(schema) {
        let kinds = schema["type"].take();
        let mut kinds = if let Value::Array(kinds) = kinds { kinds } else { vec![kinds] };
        kinds.push(json!("string"));
        schema["type"] = json!(kinds);
    }
    match schema {
        Value::Object(all) => all.values_mut().for_each(relax),
        Value::Array(all) => all.iter_mut().for_each(relax),
        _ => {}
    }
}
