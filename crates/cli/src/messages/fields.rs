//! Fields of a message as JSON and CSV, and back. Integers are exact; a floating-point number has
//! the digits that give it back; what JSON has no number for is a text: `"NaN"`, `"inf"`, `"-inf"`.

use onbeat_description::manifest::{FieldType, StructField, StructLayout};
use serde_json::Value;
use std::fmt::Write;

/// The message as a JSON object.
///
/// # Panics
/// When there are fewer octets than the struct has.
pub(crate) fn json(layout: &StructLayout, octets: &[u8]) -> String {
    let mut text = String::new();
    write_struct(layout, octets, &mut text);
    text
}

fn write_struct(layout: &StructLayout, octets: &[u8], into: &mut String) {
    into.push('{');
    for (position, field) in layout.fields.iter().enumerate() {
        let comma = if position > 0 { "," } else { "" };
        let _ = write!(into, "{comma}\"{}\":", field.name);
        write_value(&field.holds, within(octets, field), into);
    }
    into.push('}');
}

/// The octets of a field.
fn within<'a>(octets: &'a [u8], field: &StructField) -> &'a [u8] {
    let start = field.offset as usize;
    &octets[start..start + field.holds.octets() as usize]
}

fn write_value(holds: &FieldType, octets: &[u8], into: &mut String) {
    if let Some(text) = text_of(holds, octets) {
        into.push_str(&Value::from(text).to_string());
        return;
    }
    match holds {
        FieldType::Struct(layout) => write_struct(layout, octets, into),
        FieldType::Array { element, .. } => {
            into.push('[');
            for (position, one) in octets.chunks(element.octets() as usize).enumerate() {
                into.push_str(if position > 0 { "," } else { "" });
                write_value(element, one, into);
            }
            into.push(']');
        }
        FieldType::Floating { .. } => {
            let number = scalar(holds, octets);
            let is_number = number.ends_with(|c: char| c.is_ascii_digit());
            let quote = if is_number { "" } else { "\"" };
            let _ = write!(into, "{quote}{number}{quote}");
        }
        _ => into.push_str(&scalar(holds, octets)),
    }
}

/// An array of characters that is a text, and nothing behind its end.
fn text_of<'a>(holds: &FieldType, octets: &'a [u8]) -> Option<&'a str> {
    let FieldType::Array { element, .. } = holds else { return None };
    let end = octets.iter().position(|octet| *octet == 0).unwrap_or(octets.len());
    let (text, rest) = octets.split_at(end);
    let is_text = **element == FieldType::Char && rest.iter().all(|octet| *octet == 0);
    std::str::from_utf8(text).ok().filter(|_| is_text)
}

/// A single number, as little-endian machines have it.
fn scalar(holds: &FieldType, octets: &[u8]) -> String {
    let mut wide = [0; 8];
    wide[..octets.len()].copy_from_slice(octets);
    let unsigned = u64::from_le_bytes(wide);
    let unused = 64 - 8 * octets.len() as u32;
    match holds {
        FieldType::Bool => (unsigned != 0).to_string(),
        FieldType::Char => (unsigned as u8 as i8).to_string(),
        FieldType::Floating { octets: 4 } => show(format!("{:?}", f32::from_bits(unsigned as u32))),
        FieldType::Floating { .. } => show(format!("{:?}", f64::from_bits(unsigned))),
        FieldType::Integer { signed: true, .. } => {
            ((unsigned << unused) as i64 >> unused).to_string()
        }
        _ => unsigned.to_string(),
    }
}

/// All that are no numbers are one text.
fn show(number: String) -> String {
    if number.contains("NaN") { "NaN".to_owned() } else { number }
}

/// The places of a struct that are single values or texts, by their paths, as `at[1].x`.
pub(crate) fn columns(layout: &StructLayout) -> Vec<String> {
    let mut found = Vec::new();
    for field in &layout.fields {
        paths(&field.name, &field.holds, &mut found);
    }
    found
}

fn paths(path: &str, holds: &FieldType, found: &mut Vec<String>) {
    match holds {
        FieldType::Struct(layout) => {
            for field in &layout.fields {
                paths(&format!("{path}.{}", field.name), &field.holds, found);
            }
        }
        FieldType::Array { element, length } if **element != FieldType::Char => {
            (0..*length).for_each(|place| paths(&format!("{path}[{place}]"), element, found));
        }
        _ => found.push(path.to_owned()),
    }
}

/// What is at these places; characters that are no text are the digits of their octets.
pub(crate) fn cells(layout: &StructLayout, octets: &[u8]) -> Vec<String> {
    let mut found = Vec::new();
    for field in &layout.fields {
        values(&field.holds, within(octets, field), &mut found);
    }
    found
}

fn values(holds: &FieldType, octets: &[u8], found: &mut Vec<String>) {
    match holds {
        FieldType::Struct(layout) => {
            layout.fields.iter().for_each(|f| values(&f.holds, within(octets, f), found));
        }
        FieldType::Array { element, .. } if **element != FieldType::Char => {
            let chunks = octets.chunks(element.octets() as usize);
            chunks.for_each(|one| values(element, one, found));
        }
        FieldType::Array { .. } => found.push(match text_of(holds, octets) {
            Some(text) => text.to_owned(),
            None => super::form::hexadecimal(octets),
        }),
        _ => found.push(scalar(holds, octets)),
    }
}

/// The octets of a message by its fields. Those that are not named are 0, as in an initializer
/// in C, and so is padding.
pub(crate) fn encode(layout: &StructLayout, value: &Value) -> Result<Vec<u8>, String> {
    let mut octets = vec![0; layout.octets as usize];
    put_struct(layout, value, "", &mut octets)?;
    Ok(octets)
}

fn put_struct(
    layout: &StructLayout,
    value: &Value,
    path: &str,
    into: &mut [u8],
) -> Result<(), String> {
    let of = if path.is_empty() { String::new() } else { format!("{path}: ") };
    let named = value.as_object().ok_or_else(|| format!("{of}expected an object of fields"))?;
    for (name, value) in named {
        let field = layout.fields.iter().find(|field| field.name == *name);
        let field = field.ok_or_else(|| {
            let known: Vec<_> = layout.fields.iter().map(|field| field.name.as_str()).collect();
            format!("{of}there is no field `{name}`; there are: {}", known.join(", "))
        })?;
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        let start = field.offset as usize;
        let end = start + field.holds.octets() as usize;
        put(&field.holds, value, &path, &mut into[start..end])?;
    }
    Ok(())
}

fn put(holds: &FieldType, value: &Value, path: &str, into: &mut [u8]) -> Result<(), String> {
    match (holds, value) {
        (FieldType::Struct(layout), _) => put_struct(layout, value, path, into),
        (FieldType::Array { element, length }, Value::String(text))
            if **element == FieldType::Char =>
        {
            let part = into.get_mut(..text.len());
            let part = part.ok_or_else(|| format!("{path}: more than {length} octets of text"))?;
            part.copy_from_slice(text.as_bytes());
            Ok(())
        }
        (FieldType::Array { element, length }, _) => {
            let list = value.as_array().filter(|list| list.len() == *length as usize);
            let list = list.ok_or_else(|| format!("{path}: expected a list of {length}"))?;
            let places = into.chunks_mut(element.octets() as usize).zip(list).enumerate();
            for (place, (part, value)) in places {
                put(element, value, &format!("{path}[{place}]"), part)?;
            }
            Ok(())
        }
        _ => {
            let wide = bits(holds, value).map_err(|why| format!("{path}: {why}, not {value}"))?;
            into.copy_from_slice(&wide.to_le_bytes()[..into.len()]);
            Ok(())
        }
    }
}

/// The bits of a single value, or what is expected instead.
fn bits(holds: &FieldType, value: &Value) -> Result<u64, String> {
    let number = match value {
        Value::Number(_) => value.as_i64().map(i128::from).or(value.as_u64().map(i128::from)),
        _ => None,
    };
    let between = |least: i128, most: i128| {
        let fits = number.filter(|number| (least..=most).contains(number));
        let fits = fits.map(|number| number as u64);
        fits.ok_or_else(|| format!("expected a whole number from {least} to {most}"))
    };
    match holds {
        FieldType::Bool => {
            value.as_bool().map(u64::from).ok_or_else(|| "expected true or false".to_owned())
        }
        FieldType::Floating { octets } => floating(*octets, value),
        FieldType::Char => between(-128, 127),
        FieldType::Integer { octets, signed } => {
            let width = 8 * octets;
            match signed {
                true => between(-(1 << (width - 1)), (1 << (width - 1)) - 1),
                false => between(0, (1 << width) - 1),
            }
        }
        FieldType::Struct(_) | FieldType::Array { .. } => Err("expected one value".to_owned()),
    }
}

fn floating(octets: u32, value: &Value) -> Result<u64, String> {
    let wrong = || "expected a number of its range, or \"NaN\", \"inf\", \"-inf\"".to_owned();
    let number = match value.as_str() {
        Some("NaN") => f64::NAN,
        Some("inf") => f64::INFINITY,
        Some("-inf") => f64::NEG_INFINITY,
        Some(_) => return Err(wrong()),
        None => value.as_f64().ok_or_else(wrong)?,
    };
    if octets == 8 {
        return Ok(number.to_bits());
    }
    let narrow = number as f32;
    let fits = narrow.is_infinite() == number.is_infinite();
    if fits { Ok(narrow.to_bits().into()) } else { Err(wrong()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use onbeat_description::manifest::layout_of;

    const TEXT: &str = "struct point { float x; double y; };\nstruct s { int8_t a; uint64_t b;\n\
        struct point at[2]; char name[6]; bool ok; short list[3]; };";

    fn layout() -> std::sync::Arc<StructLayout> {
        layout_of(TEXT, "s").expect("a layout")
    }

    const JSON: &str = "{\"a\":-128,\"b\":18446744073709551615,\"at\":[{\"x\":0.1,\"y\":1e300},\
        {\"x\":-0.0,\"y\":\"NaN\"}],\"name\":\"a\\\"b\",\"ok\":true,\"list\":[1,-2,3]}";

    #[test]
    fn fields_are_the_same_there_and_back() {
        let layout = layout();
        let octets = encode(&layout, &serde_json::from_str(JSON).expect("JSON")).expect("fits");
        assert_eq!(json(&layout, &octets), JSON);
        let mut random = 1_u64;
        for _ in 0..1_000 {
            let octets: Vec<u8> = (0..layout.octets)
                .map(|_| {
                    random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    (random >> 56) as u8
                })
                .collect();
            let text = json(&layout, &octets);
            let value = serde_json::from_str(&text).expect("JSON");
            let again = encode(&layout, &value).expect("fits");
            assert_eq!(json(&layout, &again), text);
        }
    }

    #[test]
    fn columns_and_cells_are_of_the_same_places() {
        let layout = layout();
        let octets = encode(&layout, &serde_json::from_str(JSON).expect("JSON")).expect("fits");
        let columns = columns(&layout).join(" ");
        let expected = "a b at[0].x at[0].y at[1].x at[1].y name ok list[0] list[1] list[2]";
        assert_eq!(columns, expected);
        let cells = cells(&layout, &octets).join(" ");
        assert_eq!(cells, "-128 18446744073709551615 0.1 1e300 -0.0 NaN a\"b true 1 -2 3");
    }

    #[test]
    fn what_does_not_fit_is_named_by_its_path() {
        for (text, why) in [
            ("[]", "expected an object"),
            ("{\"c\":1}", "no field `c`; there are: a, b, at"),
            ("{\"a\":128}", "a: expected a whole number from -128 to 127, not 128"),
            ("{\"b\":-1}", "b: expected a whole number from 0 to 18446744073709551615"),
            ("{\"a\":1.5}", "a: expected a whole number"),
            ("{\"at\":[{\"x\":1e300},{}]}", "at[0].x: expected a number of its range"),
            ("{\"at\":[{}]}", "at: expected a list of 2"),
            ("{\"name\":\"seven77\"}", "name: more than 6 octets"),
            ("{\"ok\":1}", "ok: expected true or false"),
            ("{\"list\":[1,2,\"3\"]}", "list[2]: expected a whole number"),
        ] {
            let value = serde_json::from_str(text).expect("JSON");
            let said = encode(&layout(), &value).expect_err(text);
            assert!(said.contains(why), "{text}: {said}");
        }
    }
}
