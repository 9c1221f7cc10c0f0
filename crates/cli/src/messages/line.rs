//! A message as a line of text, JSON or CSV.

use super::fields;
use super::form::{Form, hexadecimal};
use onbeat::MessageInfo;
use onbeat_model::record::flag;

/// How messages are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LineFormat {
    /// For a person.
    Text,
    /// JSON Lines.
    Json,
    /// CSV with a header line.
    Csv,
}

const NANOSECONDS: i64 = 1_000_000_000;
/// The columns in front of the message's.
const COLUMNS: &str = "capture_ns,sequence,lost,latency_ns,late";

/// The line above the others; none but for CSV.
pub(crate) fn heading(format: LineFormat, form: &Form) -> Option<String> {
    let columns = match form {
        Form::Octets => "octets".to_owned(),
        Form::Fields(layout) => {
            let columns = fields::columns(layout);
            columns.iter().map(|path| format!("value.{path}")).collect::<Vec<_>>().join(",")
        }
    };
    (format == LineFormat::Csv).then(|| format!("{COLUMNS},{columns}"))
}

/// The line of a message.
pub(crate) fn line(format: LineFormat, form: &Form, info: &MessageInfo, value: &[u8]) -> String {
    let MessageInfo { capture, sequence, gap, latency, flags, .. } = info;
    let (capture, latency) = (capture.as_ns(), latency.as_ns());
    let late = flags & flag::LATE != 0;
    match format {
        LineFormat::Text => {
            let value = match form {
                Form::Octets => hexadecimal(value),
                Form::Fields(layout) => fields::json(layout, value),
            };
            let lost = if *gap > 0 { format!("  ({gap} lost before)") } else { String::new() };
            let late = if late { "  (late)" } else { "" };
            format!("{}  {sequence}  {value}{lost}{late}", seconds(capture))
        }
        LineFormat::Json => {
            let value = match form {
                Form::Octets => format!("\"octets\":\"{}\"", hexadecimal(value)),
                Form::Fields(layout) => format!("\"value\":{}", fields::json(layout, value)),
            };
            format!(
                "{{\"capture_ns\":{capture},\"sequence\":{sequence},\"lost\":{gap},\
                 \"latency_ns\":{latency},\"late\":{late},{value}}}"
            )
        }
        LineFormat::Csv => {
            let cells = match form {
                Form::Octets => vec![hexadecimal(value)],
                Form::Fields(layout) => fields::cells(layout, value),
            };
            let cells: Vec<_> = cells.iter().map(|cell| quoted(cell)).collect();
            let late = u8::from(late);
            format!("{capture},{sequence},{gap},{latency},{late},{}", cells.join(","))
        }
    }
}

/// Nanoseconds as seconds, exactly.
fn seconds(ns: i64) -> String {
    let sign = if ns < 0 { "-" } else { "" };
    let (whole, rest) = (ns.unsigned_abs() / NANOSECONDS as u64, ns.unsigned_abs() % 1_000_000_000);
    format!("{sign}{whole}.{rest:09}")
}

/// A cell of CSV (RFC 4180).
fn quoted(cell: &str) -> String {
    let plain = !cell.contains([',', '"', '\n', '\r']);
    if plain { cell.to_owned() } else { format!("\"{}\"", cell.replace('"', "\"\"")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use onbeat::{Span, SyncedTime};
    use onbeat_description::manifest::layout_of;

    #[test]
    fn a_message_is_the_same_in_every_format() {
        let info = MessageInfo {
            capture: SyncedTime::from_ns(5_000_000_007),
            sequence: 17,
            gap: 2,
            latency: Span::from_ns(1_500),
            flags: flag::LATE,
            ..MessageInfo::default()
        };
        let layout = layout_of("struct s { short a; char name[4]; };", "s").expect("a layout");
        let form = Form::Fields(layout);
        let value = [254, 255, b'x', b',', 0, 0];
        let shown = |format, form: &Form| line(format, form, &info, &value);
        assert_eq!(
            shown(LineFormat::Text, &Form::Octets),
            "5.000000007  17  feff782c0000  (2 lost before)  (late)"
        );
        assert_eq!(
            shown(LineFormat::Json, &form),
            "{\"capture_ns\":5000000007,\"sequence\":17,\"lost\":2,\"latency_ns\":1500,\
             \"late\":true,\"value\":{\"a\":-2,\"name\":\"x,\"}}"
        );
        let heading = heading(LineFormat::Csv, &form).expect("CSV has one");
        assert_eq!(heading, format!("{COLUMNS},value.a,value.name"));
        assert_eq!(shown(LineFormat::Csv, &form), "5000000007,17,2,1500,1,-2,\"x,\"");
        assert_eq!(seconds(-1), "-0.000000001");
    }
}
