//! Channels on an interface of this host, without a run.

use crate::boundary::{Failure, entry, onbeat_status, shared, store, text, wanted};
use crate::context::onbeat;
use crate::sized::{first, onbeat_declare_sized, onbeat_open_interface_sized};
use library::context::Context;
use library::interface::{InterfaceContext, InterfaceOptions, InterfaceSettings, TransportKind};
use onbeat_model::integrity::Integrity;
use onbeat_model::rate::{catch_up, rate_tolerance};
use onbeat_model::system::{Class, ReservationMode};
use onbeat_model::time::Span;
use onbeat_model::units::{MacAddress, Octets, StreamId};
use onbeat_runtime::talker::ChannelParameters;
use std::ffi::c_char;

/// A traffic class.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(non_camel_case_types, clippy::enum_variant_names)] // one name space in C
pub enum onbeat_class {
    /// SR class A: D is 2 ms.
    OnbeatClassA = 0,
    /// SR class B: D is 50 ms.
    OnbeatClassB = 1,
    /// Scheduled traffic: D is 100 us.
    OnbeatClassScheduled = 2,
    /// Sporadic traffic behind asynchronous shaping: D is 10 ms.
    OnbeatClassAsynchronous = 3,
}

/// Transport of frames to the network.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(non_camel_case_types, clippy::enum_variant_names)] // one name space in C
pub enum onbeat_transport {
    /// AF_PACKET.
    OnbeatPacket = 0,
    /// AF_XDP.
    OnbeatXdp = 1,
    /// UDP over IPv4 multicast.
    OnbeatUdp4 = 2,
    /// UDP over IPv6 multicast.
    OnbeatUdp6 = 3,
}

/// What both ends of a channel agree on: a row of the manifest. Numbers from C are checked. Later
/// versions may add fields at the end, which only `onbeat_open_interface_sized` and
/// `onbeat_declare_sized` look at.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(non_camel_case_types)]
pub struct onbeat_channel {
    /// Unique, up to 31 octets.
    pub name: *const c_char,
    /// Usually a group address.
    pub destination: [u8; 6],
    /// Unique, not 0.
    pub stream_id: u64,
    /// An `onbeat_class`, or-ed with `ONBEAT_CRC` or `ONBEAT_AUTHENTICATED` if that is wanted, and
    /// with `ONBEAT_OWN_HOST`.
    pub traffic_class: u32,
    /// Octets of a message, 1 to 65536; above 1476 it is sent in several frames.
    pub size: u32,
    /// Messages that may come at once; 0 means 1.
    pub burst: u32,
    /// The least mean time between two messages.
    pub interval_ns: i64,
    /// Capture to wake-up; 0 means the class's.
    pub fixed_delay_ns: i64,
    /// VLAN identifier; 0 means 2.
    pub vlan: u16,
    /// Priority code point; 0 means the class's.
    pub pcp: u8,
}

/// An interface and its settings. All fields but `name` may be zero. Later versions may add
/// fields at the end, which only `onbeat_open_interface_sized` looks at.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(non_camel_case_types)]
pub struct onbeat_interface {
    /// The interface's name.
    pub name: *const c_char,
    /// An `onbeat_transport`.
    pub transport: u32,
    /// `ONBEAT_UNTAGGED` and the others, or-ed. Other bits are refused.
    pub flags: u32,
    /// AF_XDP: the receive queue.
    pub queue: u32,
    /// SO_PRIORITY per class; 0 means the priority code point.
    pub socket_priority: [u32; 3],
    /// Which network time, in nanoseconds since 1970 TAI, the calls count from.
    pub epoch_ns: i64,
    /// How well the network clock must be synchronised for times to be certain; 0 means 1000.
    pub clock_error_ns: i64,
    /// Latency above which the kernel's trace stops; 0 means never.
    pub break_ns: i64,
    /// Path of the delay log; NULL means none.
    pub log: *const c_char,
    /// Path of the file of keys; NULL means what the environment names.
    pub key_file: *const c_char,
}

/// Frames carry no 802.1Q tag of ours: a VLAN interface adds it, or none is wanted.
pub const ONBEAT_UNTAGGED: u32 = 1;
/// A blocking read polls the driver for a short time first.
pub const ONBEAT_BUSY_POLL: u32 = 2;
/// Takes receive timestamps of the hardware or kernel: `arrived_ns`.
pub const ONBEAT_TIMESTAMPS: u32 = 4;
/// Writes markers into the kernel's trace.
pub const ONBEAT_TRACE: u32 = 8;
/// Readers sleep until shortly before the expected arrival, then poll, for a part of a CPU.
pub const ONBEAT_FOLLOW_SCHEDULE: u32 = 16;
/// Lets the kernel launch the frames of `onbeat_write_at` (SO_TXTIME).
pub const ONBEAT_LAUNCH_TIME: u32 = 32;
/// Reserves bandwidth for each channel by SRP: opening an endpoint asks the reservation service of
/// the interface (`onbeat srp serve`), or mrpd; a talker's writes wait while nothing is reserved;
/// VLAN and priority are those of the network. Transports packet and xdp, tagged frames.
pub const ONBEAT_RESERVE: u32 = 64;
/// Does not lock the program's memory. Otherwise `onbeat_precautions` says how much is locked.
pub const ONBEAT_NO_MEMORY_LOCK: u32 = 128;
/// Leaves the processors' idle states as they are. Otherwise the program holds
/// `/dev/cpu_dma_latency` at 0 while it has an interface open, if it may.
pub const ONBEAT_NO_CPU_LATENCY: u32 = 256;
/// All of them; a later version may give the others a meaning.
const FLAGS: u32 = ONBEAT_UNTAGGED
    | ONBEAT_BUSY_POLL
    | ONBEAT_TIMESTAMPS
    | ONBEAT_TRACE
    | ONBEAT_FOLLOW_SCHEDULE
    | ONBEAT_LAUNCH_TIME
    | ONBEAT_RESERVE
    | ONBEAT_NO_MEMORY_LOCK
    | ONBEAT_NO_CPU_LATENCY;

/// Frames carry a counter and a CRC of 32 bits behind the message.
pub const ONBEAT_CRC: u32 = 256;
/// Frames carry a counter and a tag of 128 bits behind the message, by a key that both have.
pub const ONBEAT_AUTHENTICATED: u32 = 512;
/// The channel's talker is on this host, perhaps in this program: listeners that are opened here
/// receive what leaves by the interface as well as what comes. Not with transport xdp.
pub const ONBEAT_OWN_HOST: u32 = 1024;

const CLASSES: [(onbeat_class, Class); 4] = [
    (onbeat_class::OnbeatClassA, Class::A),
    (onbeat_class::OnbeatClassB, Class::B),
    (onbeat_class::OnbeatClassScheduled, Class::Scheduled),
    (onbeat_class::OnbeatClassAsynchronous, Class::Asynchronous),
];
const TRANSPORTS: [(onbeat_transport, TransportKind); 4] = [
    (onbeat_transport::OnbeatPacket, TransportKind::Packet),
    (onbeat_transport::OnbeatXdp, TransportKind::Xdp),
    (onbeat_transport::OnbeatUdp4, TransportKind::Udp4),
    (onbeat_transport::OnbeatUdp6, TransportKind::Udp6),
];

/// # Safety
/// The pointers in `interface` are NULL or texts.
unsafe fn settings(interface: &onbeat_interface) -> Result<InterfaceSettings, Failure> {
    // SAFETY: the caller's promise.
    let name = unsafe { text(interface.name, "interface->name") }?.to_owned();
    let known = TRANSPORTS.iter().find(|(number, _)| *number as u32 == interface.transport);
    let &(_, transport) =
        known.ok_or(Failure::argument("`interface->transport` is not an onbeat_transport"))?;
    let unknown = interface.flags & !FLAGS;
    if unknown != 0 {
        let what = format!("`interface->flags` has bits that are not known: {unknown:#x}");
        return Err(Failure::argument(what));
    }
    let has = |flag| interface.flags & flag != 0;
    let mut options = InterfaceOptions {
        untagged: has(ONBEAT_UNTAGGED),
        busy_poll: has(ONBEAT_BUSY_POLL),
        timestamps: has(ONBEAT_TIMESTAMPS),
        launch_time: has(ONBEAT_LAUNCH_TIME),
        follow_schedule: has(ONBEAT_FOLLOW_SCHEDULE),
        queue: interface.queue,
        ..InterfaceOptions::default()
    };
    for ((_, class), priority) in CLASSES.iter().zip(interface.socket_priority) {
        let slot = &mut options.priorities[usize::from(class.default_pcp())];
        *slot = (priority != 0).then_some(priority);
    }
    let mut settings = InterfaceSettings {
        name,
        transport,
        options,
        epoch: interface.epoch_ns,
        ..Default::default()
    };
    if interface.clock_error_ns != 0 {
        settings.clock_error = Span::from_ns(interface.clock_error_ns);
    }
    if has(ONBEAT_RESERVE) {
        settings.reservation = ReservationMode::Srp;
    }
    settings.precautions.lock_memory = !has(ONBEAT_NO_MEMORY_LOCK);
    if has(ONBEAT_NO_CPU_LATENCY) {
        settings.precautions.cpu_latency = None;
    }
    settings.trace = has(ONBEAT_TRACE);
    settings.break_at = (interface.break_ns > 0).then(|| Span::from_ns(interface.break_ns));
    if !interface.log.is_null() {
        // SAFETY: the caller's promise.
        settings.log = Some(unsafe { text(interface.log, "interface->log") }?.into());
    }
    if !interface.key_file.is_null() {
        // SAFETY: the caller's promise.
        settings.key_file =
            Some(unsafe { text(interface.key_file, "interface->key_file") }?.into());
    }
    Ok(settings)
}

/// What a channel is checked by, and the number of its class. Both at once are no class.
fn integrity_of(traffic_class: u32) -> (Integrity, u32) {
    match traffic_class & (ONBEAT_CRC | ONBEAT_AUTHENTICATED) {
        ONBEAT_CRC => (Integrity::Crc, traffic_class & !ONBEAT_CRC),
        ONBEAT_AUTHENTICATED => (Integrity::Authenticated, traffic_class & !ONBEAT_AUTHENTICATED),
        _ => (Integrity::None, traffic_class),
    }
}

/// # Safety
/// The name in `channel` is NULL or a text.
pub(crate) unsafe fn declare(
    context: &Context,
    channel: &onbeat_channel,
    at: &str,
) -> Result<(), Failure> {
    // SAFETY: the caller's promise.
    let name = unsafe { text(channel.name, &format!("{at}name")) }?;
    let own_host = channel.traffic_class & ONBEAT_OWN_HOST != 0;
    let (integrity, number) = integrity_of(channel.traffic_class & !ONBEAT_OWN_HOST);
    let known = CLASSES.iter().find(|(class, _)| *class as u32 == number);
    let other = || Failure::argument(format!("`{at}traffic_class` is not an onbeat_class"));
    let &(_, class) = known.ok_or_else(other)?;
    let Context::Interface(context) = context else {
        let what = "`context` is a run's, where the description declares the channels";
        return Err(Failure::argument(what));
    };
    let or = |value: i64, default: Span| if value == 0 { default } else { Span::from_ns(value) };
    let interval = Span::from_ns(channel.interval_ns);
    context.declare(
        name,
        ChannelParameters {
            destination: MacAddress(channel.destination),
            source: MacAddress::default(),
            stream_id: StreamId(channel.stream_id),
            vlan: if channel.vlan == 0 { DEFAULT_VLAN } else { channel.vlan },
            pcp: if channel.pcp == 0 { class.default_pcp() } else { channel.pcp },
            size: Octets::new(channel.size),
            integrity,
            replicated: false,
            launch: None,
            talker_address: None,
            interval,
            tolerance: rate_tolerance(interval, channel.burst),
            catch_up: catch_up(class, interval, channel.burst),
            fixed_delay: or(channel.fixed_delay_ns, class.fixed_delay()),
            clock_error: Span::ZERO,
            epoch: 0,
        },
    )?;
    if own_host {
        context.hear_own_host(name)?;
    }
    Ok(())
}

/// Opens an interface with channels, which are numbered in texts.
///
/// # Safety
/// As for `onbeat_open_interface`.
pub(crate) unsafe fn open(
    interface: &onbeat_interface,
    channels: impl Iterator<Item = Result<onbeat_channel, Failure>>,
    out: *mut *mut onbeat,
) -> Result<onbeat_status, Failure> {
    // SAFETY: the caller's promise.
    let settings = unsafe { settings(interface) }?;
    wanted(out, "out")?;
    let context = Context::Interface(InterfaceContext::open(settings)?);
    for (at, channel) in channels.enumerate() {
        // SAFETY: the caller's promise.
        unsafe { declare(&context, &channel?, &format!("channels[{at}].")) }?;
    }
    // SAFETY: the caller's promise; not NULL.
    unsafe { store(out, Box::into_raw(Box::new(onbeat(context)))) };
    Ok(onbeat_status::OnbeatOk)
}

/// SRP's default (802.1Q 35.2.1.4).
const DEFAULT_VLAN: u16 = 2;

/// Opens an interface of this host for channels, without a run: its network clock is the time.
/// `channels` are the `count` rows that this program knows; more may come by `onbeat_declare`.
/// Then ends are opened as in a run; `onbeat_start` is not needed; any thread may use any end, one
/// at a time. Allocates.
///
/// # Safety
/// `interface` is NULL or valid, its texts end with a zero octet; `channels` is NULL or an array of
/// `count`, whose names do; `out` is NULL or valid for writing a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onbeat_open_interface(
    interface: *const onbeat_interface,
    channels: *const onbeat_channel,
    count: usize,
    out: *mut *mut onbeat,
) -> onbeat_status {
    let (interface_size, channel_size) = (first::INTERFACE, first::CHANNEL);
    // SAFETY: the caller's promise.
    unsafe {
        onbeat_open_interface_sized(interface, interface_size, channels, channel_size, count, out)
    }
}

/// Makes one more channel known to a program on an interface. `ONBEAT_E_REFUSED` when it is wrong,
/// or its name or stream identifier is taken. Allocates.
///
/// # Safety
/// `context` is NULL or comes from `onbeat_open_interface`; `channel` is NULL or valid, its name
/// ends with a zero octet.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onbeat_declare(
    context: *mut onbeat,
    channel: *const onbeat_channel,
) -> onbeat_status {
    // SAFETY: the caller's promise.
    unsafe { onbeat_declare_sized(context, channel, first::CHANNEL) }
}

/// Names the address that a declared channel's talker sends from: listeners that are opened from
/// now on take the frames of that station only, and count those of others as `rejected_talker`.
/// Datagrams carry no such address and are not checked. `ONBEAT_E_REFUSED` when the channel is not
/// declared, or the address is a group's or all zero. The description's `talker_address` does the
/// same in a run.
///
/// # Safety
/// `context` is NULL or comes from `onbeat_open_interface`; `channel` is NULL or ends with a zero
/// octet; `address` is NULL or has 6 octets.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onbeat_name_talker(
    context: *mut onbeat,
    channel: *const c_char,
    address: *const u8,
) -> onbeat_status {
    entry(|| {
        // SAFETY: the caller's promise.
        let context = unsafe { shared(context, "context") }?;
        // SAFETY: the caller's promise.
        let name = unsafe { text(channel, "channel") }?;
        wanted(address, "address")?;
        // SAFETY: not NULL, the rest is the caller's promise.
        let address = MacAddress(unsafe { address.cast::<[u8; 6]>().read() });
        let Context::Interface(context) = &context.0 else {
            let what = "`context` is a run's, where the description names talkers";
            return Err(Failure::argument(what));
        };
        context.name_talker(name, address)?;
        Ok(onbeat_status::OnbeatOk)
    })
}

/// Reads the keys of authenticated channels again, from where they were read; each endpoint uses
/// them from its next message on. No message is lost as long as talkers and listeners have the key
/// that is written with in common. `ONBEAT_E_REFUSED` when they cannot be read: then they stay as
/// they are. On the emulated networks of a run it does nothing. May block and allocate: not for a
/// thread with deadlines.
///
/// # Safety
/// `context` is NULL or comes from `onbeat_open` or `onbeat_open_interface`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onbeat_reload_keys(context: *mut onbeat) -> onbeat_status {
    entry(|| {
        // SAFETY: the caller's promise.
        unsafe { shared(context, "context") }?.0.reload_keys()?;
        Ok(onbeat_status::OnbeatOk)
    })
}

/// Makes all waiting calls on an interface return `ONBEAT_STOPPED` within 100 ms, and all later
/// ones at once. May be called from any thread and from a signal handler. In a run it does nothing:
/// the run says when it is over. NULL is allowed.
///
/// # Safety
/// `context` is NULL or comes from `onbeat_open` or `onbeat_open_interface`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onbeat_stop(context: *mut onbeat) -> onbeat_status {
    // SAFETY: the caller's promise.
    if let Some(context) = unsafe { context.as_ref() } {
        context.0.stop();
    }
    onbeat_status::OnbeatOk
}
