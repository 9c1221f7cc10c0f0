//! What a description can say, taken from its JSON Schema.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// What the name of a definition begins with that is another one's in a group: what may be said
/// there is what may be said outside.
const GROUPED: &str = "Grouped";

/// The schema of `system.toml`, and the ranges of its integers.
#[derive(Debug)]
pub struct Schema {
    root: Value,
    /// Least and most by place, such as `Host.queue_frames` or `Port.vlans[]`.
    ranges: BTreeMap<String, [Value; 2]>,
}

impl Schema {
    /// Reads a JSON Schema as `onbeat schema system` prints it.
    ///
    /// # Panics
    /// If it is not JSON.
    pub fn new(text: &str) -> Self {
        let root: Value = serde_json::from_str(text).expect("a JSON Schema");
        let mut schema = Self { root, ranges: BTreeMap::new() };
        let mut ranges = BTreeMap::new();
        schema.each_property(&mut |place, property| {
            if let (Some(least), Some(most)) = (property.get("minimum"), property.get("maximum")) {
                ranges.insert(place.to_owned(), [least.clone(), most.clone()]);
            }
        });
        schema.ranges = ranges;
        schema
    }

    /// The schema that is committed with the project.
    pub fn committed() -> Self {
        Self::new(include_str!("../../../schema/system.schema.json"))
    }

    /// Least and most at a place such as `Host.queue_frames`.
    ///
    /// # Panics
    /// If the schema has no range there: the generator and the format are out of step.
    pub fn range(&self, place: &str) -> &[Value; 2] {
        self.ranges.get(place).unwrap_or_else(|| panic!("the schema has no range at {place}"))
    }

    /// Everything that a description can say: each key, each word of a choice, both values of a
    /// boolean, both ends of each range.
    pub fn everything(&self) -> BTreeSet<String> {
        let mut all = BTreeSet::new();
        self.each_property(&mut |place, property| {
            if !place.ends_with("[]") {
                all.insert(place.to_owned());
            }
            for said in self.values(property) {
                all.insert(format!("{place} = {said}"));
            }
        });
        all
    }

    /// What of that a description says.
    pub fn said(&self, description: &Value) -> BTreeSet<String> {
        let mut said = BTreeSet::new();
        self.walk(&self.root, "File", description, &mut said);
        said
    }

    fn walk(&self, schema: &Value, name: &str, value: &Value, said: &mut BTreeSet<String>) {
        let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return };
        for (key, value) in value.as_object().into_iter().flatten() {
            let Some(property) = properties.get(key) else { continue };
            let place = format!("{name}.{key}");
            said.insert(place.clone());
            self.property(property, &place, value, said);
        }
    }

    fn property(&self, property: &Value, place: &str, value: &Value, said: &mut BTreeSet<String>) {
        if self.values(property).contains(&value.to_string()) {
            said.insert(format!("{place} = {value}"));
        }
        if let (Some(items), Some(list)) = (property.get("items"), value.as_array()) {
            for item in list {
                self.property(items, &format!("{place}[]"), item, said);
            }
        }
        if let Some((name, table)) = self.referred(property) {
            self.walk(table, name, value, said);
        }
    }

    /// The values of a property that must all be drawn, as JSON.
    fn values(&self, property: &Value) -> BTreeSet<String> {
        let property = self.referred(property).map_or(property, |(_, definition)| definition);
        let mut values = BTreeSet::new();
        for end in ["minimum", "maximum"] {
            values.extend(property.get(end).map(Value::to_string));
        }
        let choices = property.get("oneOf").and_then(Value::as_array);
        values.extend(
            choices.into_iter().flatten().filter_map(|c| c.get("const")).map(Value::to_string),
        );
        let kinds = property.get("type");
        let is_boolean = |kind: &Value| kind == "boolean";
        let several = kinds.and_then(Value::as_array).is_some_and(|k| k.iter().any(is_boolean));
        if several || kinds.is_some_and(is_boolean) {
            values.extend(["true".to_owned(), "false".to_owned()]);
        }
        values
    }

    /// The definition that a property refers to, also as one of two alternatives, and its name.
    fn referred<'a>(&'a self, property: &'a Value) -> Option<(&'a str, &'a Value)> {
        let alternatives = property.get("anyOf").and_then(Value::as_array);
        let direct = property.get("$ref");
        let reference = direct.or_else(|| alternatives?.iter().find_map(|a| a.get("$ref")))?;
        let name = reference.as_str()?.strip_prefix("#/$defs/")?;
        let definition = self.root.get("$defs")?.get(name)?;
        Some((name.strip_prefix(GROUPED).unwrap_or(name), definition))
    }

    fn each_property(&self, visit: &mut impl FnMut(&str, &Value)) {
        let definitions = self.root.get("$defs").and_then(Value::as_object).into_iter().flatten();
        let all = definitions.map(|(name, d)| (name.as_str(), d)).chain([("File", &self.root)]);
        let all = all.filter(|(name, _)| !name.starts_with(GROUPED));
        for (name, definition) in all {
            let properties = definition.get("properties").and_then(Value::as_object);
            let properties = properties.into_iter().flatten();
            // A deprecated key is another name of one that is there as well.
            for (key, property) in properties.filter(|(_, it)| it.get("deprecated").is_none()) {
                let mut place = format!("{name}.{key}");
                let mut inner = Some(property);
                while let Some(property) = inner {
                    visit(&place, property);
                    inner = property.get("items");
                    place.push_str("[]");
                }
            }
        }
    }
}
