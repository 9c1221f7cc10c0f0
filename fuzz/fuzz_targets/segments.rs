//! No file of samples makes the measurement of segments panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use onbeat_measure::segments::Samples;

fuzz_target!(|text: &str| {
    let mut samples = Samples::default();
    let _ = samples.add(text);
    let measured = samples.measured(1, 10);
    let _ = (onbeat_report::segments::table(&measured), measured.to_json(), measured.to_csv());
});
