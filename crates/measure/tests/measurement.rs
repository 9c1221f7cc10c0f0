//! The document of a measurement made by hand.

use crate::common::measured::by_hand;
use onbeat_measure::measurement::read;

#[test]
fn a_document_is_read_as_it_was_written_and_another_is_refused() {
    let (measurement, _) = by_hand();
    let text = measurement.to_json();
    assert_eq!(read(&text), Ok(measurement));
    let value: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let first = &value["series"][0];
    for (key, expected) in [("count", 100), ("min", 90), ("p9999", 1_000), ("stddev", 90)] {
        assert_eq!(first[key], expected, "{key}");
    }
    assert_eq!((first["name"].as_str(), first["unit"].as_str()), (Some("clock.lc"), Some("ns")));
    assert_eq!(first["histogram"][0]["count"], 99);
    assert!(read(&text.replace("\"version\": 2", "\"version\": 3")).is_err());
    assert!(read(&text.replace("onbeat-measurement", "onbeat-results")).is_err());
    assert!(read(&text[..text.len() / 2]).is_err() && read("").is_err());
}
