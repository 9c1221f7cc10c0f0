//! zenoh over TCP between two peers, as C functions for the benchmark's main program. The listener
//! takes each message in the callback, on the library's receiving thread.

use std::time::Duration;
use zenoh::{Config, Session, Wait, pubsub::Publisher, qos::CongestionControl};

const LISTENER: &str = "tcp/10.77.0.2:7780";
const KEY: &str = "latency";
/// The size of the benchmark's message.
const SIZE: usize = 64;

/// A session that talks to the other side only.
fn session(endpoint: &str) -> Session {
    let mut config = Config::default();
    config.insert_json5(endpoint, &format!("[{LISTENER:?}]")).expect("an endpoint");
    config.insert_json5("scouting/multicast/enabled", "false").expect("a flag");
    zenoh::open(config).wait().expect("a session")
}

/// Opens the publisher and waits until somebody subscribes. It lives as long as the program.
#[unsafe(no_mangle)]
pub extern "C" fn zenoh_talker() -> *const Publisher<'static> {
    let session = Box::leak(Box::new(session("connect/endpoints")));
    let publisher = session
        .declare_publisher(KEY)
        .congestion_control(CongestionControl::Drop)
        .express(true)
        .wait()
        .expect("a publisher");
    while !publisher.matching_status().wait().expect("a status").matching() {
        std::thread::sleep(Duration::from_millis(1));
    }
    Box::leak(Box::new(publisher))
}

/// Sends one message of the benchmark.
///
/// # Safety
/// `publisher` comes from `zenoh_talker`, and `message` is valid for 64 octets.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zenoh_put(publisher: &Publisher<'static>, message: *const u8) {
    // SAFETY: the caller's promise.
    let octets = unsafe { std::slice::from_raw_parts(message, SIZE) };
    publisher.put(octets).wait().expect("a message sent");
}

/// Calls `arrived` for each message, from one thread at a time.
#[unsafe(no_mangle)]
pub extern "C" fn zenoh_listener(arrived: extern "C" fn(*const u8)) {
    let session = Box::leak(Box::new(session("listen/endpoints")));
    session
        .declare_subscriber(KEY)
        .callback(move |sample| arrived(sample.payload().to_bytes().as_ptr()))
        .background()
        .wait()
        .expect("a subscriber");
}
