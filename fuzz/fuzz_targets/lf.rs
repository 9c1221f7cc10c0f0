//! No model and no sidecar makes the front end of Lingua Franca panic; what it describes is right.
#![no_main]

use libfuzzer_sys::fuzz_target;
use onbeat_description::lf::{self, Outside};

fuzz_target!(|input: (&str, &str)| {
    let (model, sidecar) = input;
    for sidecar in [None, Some(("sidecar.toml", sidecar))] {
        let mut outside = Outside {
            read: &mut |_| Err("there are no files".to_owned()),
            sizes: &mut |question| vec![Some(8); question.types.len()],
        };
        let loaded = lf::load("model.lf", model, sidecar, &mut outside);
        match lf::describe(&loaded, &mut |_| Err("there are no files".to_owned())) {
            Ok(description) => assert!(description.text.contains("format = 1")),
            Err(wrong) => assert!(!wrong.diagnostics.is_empty()),
        }
    }
});
