//! Editors find the JSON Schema of every example and template, and it allows what stands there.
//! What it does not allow, they mark.

use serde_json::{Map, Value};
use std::fs;
use std::path::{Path, PathBuf};

/// A file is checked by a `#:schema` in its first line.
const DIRECTIVE: &str = "#:schema ";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("the workspace")
}

/// Every TOML file below a directory, without what runs leave.
fn files(below: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in below.read_dir().expect("a directory").flatten() {
        let path = entry.path();
        let name = entry.file_name();
        if path.is_dir() && !name.to_string_lossy().starts_with("out") {
            found.extend(files(&path));
        } else if path.extension().is_some_and(|end| end == "toml") {
            found.push(path);
        }
    }
    found
}

/// Where a value is not what a schema allows, of the keywords that Onbeat's schemas have. `format`
/// and texts for people allow everything.
fn wrong(root: &Value, schema: &Value, value: &Value, at: &str) -> Vec<String> {
    let Some(schema) = schema.as_object() else {
        assert!(schema.is_boolean(), "{schema}");
        let message = format!("{at}: nothing is allowed");
        return if *schema == Value::Bool(true) { Vec::new() } else { vec![message] };
    };
    let mut found = Vec::new();
    let mut say = |is_right: bool, what: String| {
        if !is_right {
            found.push(format!("{at}: {what}"));
        }
    };
    let counts = |how: fn(usize, u64) -> bool, limit: &Value| {
        value.as_array().is_none_or(|list| how(list.len(), limit.as_u64().expect("a count")))
    };
    let passes = |one: &&Value| wrong(root, one, value, at).is_empty();
    let mut below = Vec::new();
    for (keyword, said) in schema {
        let list = || said.as_array().expect("a list");
        match keyword.as_str() {
            "$schema" | "$defs" | "title" | "description" | "format" | "deprecated"
            | "properties" => {}
            "type" => say(has_type(said, value), format!("{value} is no {said}")),
            "const" => say(value == said, format!("{value} is not {said}")),
            "enum" => say(list().contains(value), format!("{value} is none of {said}")),
            "minimum" => say(compares(value, said) >= 0, format!("{value} < {said}")),
            "maximum" => say(compares(value, said) <= 0, format!("{value} > {said}")),
            "minItems" => say(counts(|n, l| n as u64 >= l, said), "too few".into()),
            "maxItems" => say(counts(|n, l| n as u64 <= l, said), "too many".into()),
            "required" => {
                for key in list().iter().filter_map(Value::as_str) {
                    let is_there = value.as_object().is_none_or(|table| table.contains_key(key));
                    say(is_there, format!("`{key}` is missing"));
                }
            }
            "anyOf" if list().iter().any(|one| passes(&one)) => {}
            "anyOf" => below.extend(list().iter().flat_map(|one| wrong(root, one, value, at))),
            "oneOf" => {
                let count = list().iter().filter(passes).count();
                say(count == 1, format!("{value} is {count} of these"));
            }
            "$ref" | "items" | "prefixItems" | "additionalProperties" => {
                below.extend(wrong_inside(root, schema, keyword, value, at));
            }
            other => panic!("{at}: this test does not know the keyword `{other}`"),
        }
    }
    // Without `additionalProperties` this would look at none of them.
    let is_checked = schema.contains_key("additionalProperties");
    assert!(is_checked || !schema.contains_key("properties"), "{at}");
    found.append(&mut below);
    found
}

/// The same of what a keyword says of parts of a value, or elsewhere of all of it.
fn wrong_inside(
    root: &Value,
    schema: &Map<String, Value>,
    keyword: &str,
    value: &Value,
    at: &str,
) -> Vec<String> {
    let said = &schema[keyword];
    let items = || value.as_array().into_iter().flatten().enumerate();
    let of_item = |(index, item), schema| wrong(root, schema, item, &format!("{at}[{index}]"));
    let first = schema.get("prefixItems").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    match keyword {
        "$ref" => {
            let pointer = said.as_str().and_then(|s| s.strip_prefix('#')).expect("a pointer");
            wrong(root, root.pointer(pointer).expect("a definition"), value, at)
        }
        "items" => items().skip(first.len()).flat_map(|item| of_item(item, said)).collect(),
        "prefixItems" => items().zip(first).flat_map(|(item, s)| of_item(item, s)).collect(),
        _ => {
            let known = schema.get("properties").and_then(Value::as_object);
            let entries = value.as_object().into_iter().flatten();
            let found = entries.flat_map(|(key, value)| {
                let schema = known.and_then(|known| known.get(key)).unwrap_or(said);
                wrong(root, schema, value, &format!("{at}.{key}"))
            });
            found.collect()
        }
    }
}

fn has_type(kinds: &Value, value: &Value) -> bool {
    let is = |kind: &Value| match kind.as_str().expect("a type") {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        other => panic!("this test does not know the type `{other}`"),
    };
    kinds.as_array().map_or_else(|| is(kinds), |kinds| kinds.iter().any(is))
}

/// Below, at or above a limit: -1, 0, 1. What is no integer has no limits.
fn compares(value: &Value, limit: &Value) -> i8 {
    let number = |value: &Value| value.as_i64().map(i128::from).or(value.as_u64().map(i128::from));
    let Some(value) = number(value) else { return 0 };
    value.cmp(&number(limit).expect("an integer")) as i8
}

/// The schema that a file names, and the path of it.
fn schema_of(file: &Path, text: &str) -> (PathBuf, Value) {
    let first = text.lines().next().unwrap_or_default();
    let name = first.strip_prefix(DIRECTIVE);
    let name = name.unwrap_or_else(|| panic!("{} has no {DIRECTIVE}", file.display()));
    let path = file.parent().expect("a directory").join(name);
    let path = path.canonicalize().unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let schema = fs::read_to_string(&path).expect("the schema");
    (path, serde_json::from_str(&schema).expect("JSON"))
}

#[test]
fn every_example_and_template_names_its_schema_which_allows_it() {
    let mut all = files(&root().join("examples"));
    all.extend(files(&root().join("crates/cli/templates")));
    assert!(all.len() > 10, "{all:?}");
    for file in all {
        let text = fs::read_to_string(&file).expect("text");
        let (path, schema) = schema_of(&file, &text);
        let is_description = text.contains("[[host]]");
        let kind = match (is_description, text.contains("[[machine]]")) {
            (true, _) => "system",
            (false, true) => "machines",
            (false, false) => "tasks",
        };
        assert_eq!(path, root().join(format!("schema/{kind}.schema.json")), "{}", file.display());
        let value: Value = toml::from_str(&text).expect("TOML");
        let found = wrong(&schema, &schema, &value, "");
        assert_eq!(found, [""; 0], "{}", file.display());
    }
}

#[test]
fn in_groups_a_schema_allows_texts_for_numbers() {
    let schema: Value = serde_json::from_str(&onbeat_description::schema()).expect("JSON");
    let text = include_str!("good/every-key.toml");
    for (from, to, expected) in [
        ("", "", ""),
        ("phase_ns = \"=", "phase_ns = \"=1 + ", ""),
        ("phase_ns = \"=", "phase = \"=", ".group[0].group[0].stream[0].phase: nothing"),
        (
            "frame_octets = 100\ninterval_ns = \"=",
            "frame_octets = 10\ninterval_ns = \"=",
            "10 < 68",
        ),
        ("count = 2\n", "count = \"2\"\n", ".group[0].count: \"2\" is no \"integer\""),
        ("phase_ns = 70", "phase_ns = \"=70\"", ".stream[0].phase_ns: \"=70\" is no"),
    ] {
        assert!(text.contains(from), "{from}");
        let value: Value = toml::from_str(&text.replacen(from, to, 1)).expect("TOML");
        let found = wrong(&schema, &schema, &value, "");
        match expected {
            "" => assert_eq!(found, [""; 0], "{to}"),
            _ => assert!(found.iter().any(|said| said.contains(expected)), "{to}: {found:?}"),
        }
    }
}

#[test]
fn what_a_schema_does_not_allow_is_found() {
    let file = root().join("examples/03-robot-arm/system.toml");
    let text = fs::read_to_string(&file).expect("text");
    let (_, schema) = schema_of(&file, &text);
    for (from, to, expected) in [
        ("rate_hz = 1000", "rate = 1000", ".channel[0].rate: nothing is allowed"),
        ("seed = 7", "seed = \"7\"", ".run.seed: \"7\" is no"),
        ("seed = 7", "seed = -7", ".run.seed: -7 < 0"),
        ("format = 1", "", "`format` is missing"),
        ("class = \"A\"", "class = \"C\"", ".channel[0].class"),
        ("[[host]]\nname = \"camera\"", "[[hosts]]\nname = \"camera\"", ".hosts"),
    ] {
        assert!(text.contains(from), "{from}");
        let value: Value = toml::from_str(&text.replacen(from, to, 1)).expect("TOML");
        let found = wrong(&schema, &schema, &value, "");
        assert!(found.iter().any(|said| said.contains(expected)), "{to}: {found:?}");
    }
}
