//! No file of another tool makes `onbeat import` panic; what it makes of one is a right
//! description. The first text is the network, the second are the streams.
#![no_main]

use libfuzzer_sys::fuzz_target;
use onbeat_description::import::{ImportOptions, Input, SizeMeaning, import};

fuzz_target!(|input: (&str, &str)| {
    let (network, streams) = input;
    let network = Input { path: "network", text: network };
    let streams = Input { path: "streams", text: streams };
    for (add_hosts, size) in [(false, SizeMeaning::Wire), (true, SizeMeaning::Payload)] {
        let options = ImportOptions {
            name: "fuzz".to_owned(),
            size,
            add_hosts,
            rate: None,
            propagation: None,
            forwarding: None,
        };
        for streams in [None, Some(streams)] {
            match import(network, streams, &options) {
                Ok(imported) => {
                    let text = &imported.text;
                    let loaded = onbeat_description::load("it", text, &mut |_| Err("none".into()));
                    assert!(loaded.system.is_some(), "{:?}", loaded.diagnostics);
                }
                // Only files, never the description that was made, are wrong.
                Err(refused) => {
                    assert!(!refused.diagnostics.is_empty());
                    let mut at = refused.diagnostics.iter().flat_map(|wrong| &wrong.at);
                    assert!(at.all(|(at, _)| at.file < 2), "{:?}", refused.diagnostics);
                }
            }
        }
    }
});
