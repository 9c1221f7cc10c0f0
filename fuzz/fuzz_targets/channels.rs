//! No text makes the reader of tables of channels panic, and it reads what it writes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use onbeat::interface::ChannelTable;

fuzz_target!(|text: &str| {
    if let Ok(table) = text.parse::<ChannelTable>() {
        assert_eq!(table.to_string().parse(), Ok(table));
    }
});
