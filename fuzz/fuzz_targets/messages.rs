//! No octets make the reader of record files panic, and what it accepts are messages of channels
//! that the file names, each of its channel's size.
#![no_main]

use libfuzzer_sys::fuzz_target;
use onbeat_machine::messages::MessageReader;

fuzz_target!(|octets: &[u8]| {
    let mut reader = MessageReader::new(octets);
    let mut count = 0_u64;
    while let Ok(Some(message)) = reader.next_message() {
        let (channel, length) = (message.channel, message.value.len());
        let channel = &reader.channels()[channel];
        assert_eq!(channel.size.map(|size| size.get() as usize), Some(length));
        count += 1;
    }
    let counted: u64 = reader.channels().iter().map(|channel| channel.messages).sum();
    assert!(counted >= count);
});
