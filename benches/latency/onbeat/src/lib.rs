//! Onbeat's Rust interface, as C functions for the benchmark's main program. The listener takes
//! each message from its own blocking read. The channel is that of ../peers/onbeat.c.

use onbeat::context::{Context, Listener, Talker};
use onbeat::interface::{InterfaceContext, InterfaceSettings};
use onbeat_model::rate::rate_tolerance;
use onbeat_model::system::Class;
use onbeat_model::time::Span;
use onbeat_model::units::{MacAddress, Octets, StreamId};
use onbeat_runtime::channel_io::Timeout;
use onbeat_runtime::talker::ChannelParameters;

const INTERFACE: &str = "veth0";
const NAME: &str = "latency";
/// The size of the benchmark's message.
const SIZE: usize = 64;

fn context(period_ns: i64) -> Context {
    let settings = InterfaceSettings { name: INTERFACE.to_owned(), ..InterfaceSettings::default() };
    let context = InterfaceContext::open(settings).expect("an interface");
    let (interval, burst) =
        if period_ns > 0 { (Span::from_ns(period_ns), 32) } else { (Span::from_us(1), 1000) };
    let channel = ChannelParameters {
        destination: MacAddress([0x91, 0xe0, 0xf0, 0x00, 0x0e, 0x03]),
        source: MacAddress::default(),
        stream_id: StreamId(0x0200_0000_0001_0002),
        vlan: 2,
        pcp: Class::A.default_pcp(),
        size: Octets::new(SIZE as u32),
        integrity: Default::default(),
        talker_address: None,
        interval,
        tolerance: rate_tolerance(interval, burst),
        catch_up: Span::ZERO,
        fixed_delay: Class::A.fixed_delay(),
        clock_error: Span::ZERO,
        epoch: 0,
    };
    context.declare(NAME, channel).expect("a channel");
    Context::Interface(context)
}

/// Opens the writing end. It lives as long as the program.
#[unsafe(no_mangle)]
pub extern "C" fn onbeat_rust_talker(period_ns: i64) -> *mut Talker {
    let context = context(period_ns);
    let talker = context.open_talker(NAME, Octets::new(SIZE as u32)).expect("a talker");
    context.start().expect("a start");
    Box::into_raw(Box::new(talker))
}

/// Sends one message of the benchmark.
#[unsafe(no_mangle)]
pub extern "C" fn onbeat_rust_write(talker: &mut Talker, message: &[u8; SIZE]) {
    talker.write(message).expect("a message sent");
}

/// Says `ready`, then calls `arrived` for each message, for ever.
#[unsafe(no_mangle)]
pub extern "C" fn onbeat_rust_listener(
    period_ns: i64,
    ready: extern "C" fn(),
    arrived: extern "C" fn(&[u8; SIZE]),
) {
    let context = context(period_ns);
    let mut listener: Listener =
        context.open_listener(NAME, Octets::new(SIZE as u32)).expect("a listener");
    context.start().expect("a start");
    // The message holds 64-bit numbers.
    #[repr(C, align(8))]
    struct Message([u8; SIZE]);
    let mut message = Message([0; SIZE]);
    ready();
    loop {
        if listener.read(&mut message.0, Timeout::Endless).expect("a read").is_some() {
            arrived(&message.0);
        }
    }
}
