//! Whether JSON is of its schema: as much of JSON Schema 2020-12 as the committed schemas use.

use serde_json::Value;

/// A keyword of a schema, what it wants, and the schema that it is in.
type Keyword<'a> = (&'a str, &'a Value, &'a Value);

/// Keywords that say nothing about a value, or that others here stand for.
const ANNOTATIONS: [&str; 6] = ["$schema", "$defs", "title", "description", "default", "format"];

/// Where a document is not of its schema, a line each; at most a few.
pub fn violations(schema: &Value, document: &Value) -> Vec<String> {
    let mut check = Check { root: schema, found: Vec::new() };
    check.value(schema, document, "");
    check.found.truncate(5);
    check.found
}

struct Check<'a> {
    root: &'a Value,
    found: Vec<String>,
}

impl Check<'_> {
    fn fails(&mut self, at: &str, why: String) {
        self.found.push(format!("{}: {why}", if at.is_empty() { "/" } else { at }));
    }

    fn fits(&self, schema: &Value, value: &Value) -> bool {
        let mut inner = Check { root: self.root, found: Vec::new() };
        inner.value(schema, value, "");
        inner.found.is_empty()
    }

    fn value(&mut self, schema: &Value, value: &Value, at: &str) {
        let Some(keywords) = schema.as_object() else {
            if *schema == Value::Bool(false) {
                self.fails(at, "nothing may be here".to_owned());
            }
            return;
        };
        for (keyword, wanted) in keywords {
            if !ANNOTATIONS.contains(&keyword.as_str()) {
                self.keyword((keyword, wanted, schema), value, at);
            }
        }
    }

    fn keyword(&mut self, (keyword, wanted, schema): Keyword<'_>, value: &Value, at: &str) {
        let all = || wanted.as_array().into_iter().flatten();
        match keyword {
            "$ref" => {
                let path = wanted.as_str().and_then(|path| path.strip_prefix('#'));
                match path.and_then(|path| self.root.pointer(path)) {
                    Some(found) => self.value(found, value, at),
                    None => self.fails(at, format!("{wanted} leads nowhere")),
                }
            }
            "type" => {
                let mut kinds = all().chain(wanted.is_string().then_some(wanted));
                if !kinds.any(|kind| is_of(kind.as_str().unwrap_or_default(), value)) {
                    self.fails(at, format!("{value} is no {wanted}"));
                }
            }
            "const" if wanted != value => self.fails(at, format!("{value} is not {wanted}")),
            "enum" if !all().any(|one| one == value) => {
                self.fails(at, format!("{value} is none of {wanted}"));
            }
            "anyOf" | "oneOf" => {
                let count = all().filter(|one| self.fits(one, value)).count();
                if count == 0 || keyword == "oneOf" && count > 1 {
                    self.fails(at, format!("{count} of {keyword} fit {value}"));
                }
            }
            "minimum" | "maximum" => {
                let [value, limit] = [value, wanted].map(wide);
                let beyond = |(value, limit): (i128, i128)| match keyword {
                    "minimum" => value < limit,
                    _ => value > limit,
                };
                if value.zip(limit).is_some_and(beyond) {
                    self.fails(at, format!("{value:?} is beyond the {keyword} {limit:?}"));
                }
            }
            "minItems" | "maxItems" => {
                let (count, limit) = (value.as_array().map(Vec::len), wanted.as_u64());
                let beyond = |(count, limit): (usize, u64)| match keyword {
                    "minItems" => (count as u64) < limit,
                    _ => count as u64 > limit,
                };
                if count.zip(limit).is_some_and(beyond) {
                    self.fails(at, format!("{count:?} items, {keyword} {limit:?}"));
                }
            }
            "items" | "prefixItems" | "properties" | "required" | "additionalProperties" => {
                self.inside((keyword, wanted, schema), value, at);
            }
            "const" | "enum" => {}
            "pattern" => {}
            other => self.fails(at, format!("this check does not know the keyword {other}")),
        }
    }

    fn inside(&mut self, (keyword, wanted, schema): Keyword<'_>, value: &Value, at: &str) {
        let all = || wanted.as_array().into_iter().flatten();
        match keyword {
            "items" => {
                let first = schema["prefixItems"].as_array().map_or(0, Vec::len);
                let items = value.as_array().into_iter().flatten().enumerate().skip(first);
                items.for_each(|(n, item)| self.value(wanted, item, &format!("{at}/{n}")));
            }
            "prefixItems" => {
                let items = value.as_array().into_iter().flatten().zip(all()).enumerate();
                items.for_each(|(n, (item, of))| self.value(of, item, &format!("{at}/{n}")));
            }
            "properties" => {
                let table = value.as_object().into_iter().flatten();
                for (key, item) in table {
                    if let Some(of) = wanted.get(key) {
                        self.value(of, item, &format!("{at}/{key}"));
                    }
                }
            }
            "required" if value.is_object() => {
                let missing = all().filter_map(Value::as_str).find(|key| value.get(key).is_none());
                if let Some(key) = missing {
                    self.fails(at, format!("{key} is missing"));
                }
            }
            "additionalProperties" => {
                let table = value.as_object().into_iter().flatten();
                for (key, item) in table.filter(|(key, _)| schema["properties"].get(key).is_none())
                {
                    self.value(wanted, item, &format!("{at}/{key}"));
                }
            }
            _ => {}
        }
    }
}

fn wide(value: &Value) -> Option<i128> {
    value.as_i64().map(i128::from).or(value.as_u64().map(i128::from))
}

fn is_of(kind: &str, value: &Value) -> bool {
    match kind {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_document_is_of_its_schema_or_it_is_said_where_it_is_not() {
        let schema = json!({
            "type": "object",
            "required": ["name", "count"],
            "properties": {
                "name": { "enum": ["a", "b"] },
                "count": { "type": ["integer", "null"], "minimum": 0 },
                "rest": { "items": { "$ref": "#/$defs/Pair" } },
            },
            "additionalProperties": false,
            "$defs": { "Pair": { "prefixItems": [{ "const": 1 }, { "type": "string" }],
                "minItems": 2, "maxItems": 2 } },
        });
        let fits = |document: Value| violations(&schema, &document);
        assert!(fits(json!({ "name": "a", "count": 3, "rest": [[1, "x"]] })).is_empty());
        assert!(fits(json!({ "name": "b", "count": null })).is_empty());
        for (wrong, place) in [
            (json!({ "name": "c", "count": 3 }), "/name"),
            (json!({ "name": "a", "count": -1 }), "/count"),
            (json!({ "name": "a", "count": "3" }), "/count"),
            (json!({ "name": "a" }), "/"),
            (json!({ "name": "a", "count": 1, "more": 1 }), "/more"),
            (json!({ "name": "a", "count": 1, "rest": [[1]] }), "/rest/0"),
            (json!({ "name": "a", "count": 1, "rest": [[1, "x"], [2, "x"]] }), "/rest/1/0"),
            (json!([]), "/"),
        ] {
            let found = fits(wrong.clone());
            assert!(found.iter().any(|line| line.starts_with(&format!("{place}: "))), "{found:?}");
        }
    }
}
