//! No octets make the reader of messages between federates panic, and a message that is read is
//! written the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use onbeat_runtime::federate::wire::FederateMessage;

fuzz_target!(|octets: &[u8]| {
    let mut rest = octets;
    while let Ok((message, behind)) = FederateMessage::parse(rest) {
        let length = message.octets();
        assert_eq!(rest.len(), length + behind.len());
        let mut again = vec![0; length];
        assert!(message.emit(&mut again).is_empty());
        assert_eq!(again, rest[..length]);
        rest = behind;
    }
});
