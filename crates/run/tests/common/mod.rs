//! Two hosts and two bridges in network namespaces.
#![allow(dead_code)] // no test file uses all of it

use onbeat::context::Context;
use onbeat::interface::{InterfaceContext, InterfaceSettings};
use onbeat_model::system::{NodeId, System};
use onbeat_model::time::Span;
use onbeat_model::units::{MacAddress, Octets, StreamId};
use onbeat_run::netns::{INTERFACE, KernelNetwork, NetnsError};
use onbeat_runtime::talker::ChannelParameters;
use onbeat_testkit::{Need, not_run};

const DESCRIPTION: &str = r#"
format = 1
name = "two-hosts"
run = { duration_s = 1 }
host = [{ name = "talker" }, { name = "listener" }]
bridge = [{ name = "b1" }, { name = "b2" }]
link = [
    { ends = ["talker", "b1"], rate_mbps = 1000 },
    { ends = ["b1", "b2"], rate_mbps = 1000 },
    { ends = ["b2", "listener"], rate_mbps = 1000 },
]
channel = [{ name = "c", talker = "talker", listeners = ["listener"], stream_id = 1,
    destination = "01:00:5e:01:11:42", class = "A", size_octets = 8, rate_hz = 1000 }]
"#;

pub(crate) struct Hosts {
    system: System,
    network: KernelNetwork,
}

/// The network; nothing, and a line that says so, where the machine does not permit one.
pub(crate) fn hosts() -> Option<Hosts> {
    let loaded = onbeat_description::load("system.toml", DESCRIPTION, &mut |_| Err(String::new()));
    let system = loaded.system.unwrap_or_else(|| panic!("{:?}", loaded.diagnostics));
    match KernelNetwork::build(&system) {
        Ok(network) => Some(Hosts { system, network }),
        Err(error @ NetnsError::NotPermitted { .. }) => {
            not_run(Need::Namespaces, error);
            None
        }
        Err(error) => panic!("{error}"),
    }
}

impl Hosts {
    fn node(&self, host: &str) -> NodeId {
        let at = self.system.nodes.iter().position(|n| n.name == host).expect("a host");
        NodeId(at as u32)
    }

    /// Does something in a host's namespace.
    pub(crate) fn inside<T: Send>(&mut self, host: &str, what: impl FnOnce() -> T + Send) -> T {
        let node = self.node(host);
        self.network.inside(node, || Ok(what())).expect("inside")
    }

    /// A program on a host.
    pub(crate) fn context(&mut self, host: &str) -> Context {
        self.context_with(host, InterfaceSettings::default())
    }

    /// The same with other settings.
    pub(crate) fn context_with(&mut self, host: &str, settings: InterfaceSettings) -> Context {
        let settings = InterfaceSettings { name: INTERFACE.to_owned(), ..settings };
        Context::Interface(self.inside(host, || InterfaceContext::open(settings)).expect("opened"))
    }
}

pub(crate) fn declare(context: &Context, name: &str, parameters: ChannelParameters) {
    let Context::Interface(context) = context else { panic!("not on an interface") };
    context.declare(name, parameters).expect("declared");
}

/// A channel with a message of 8 octets every `interval_us`, of which a thousand may come at once.
pub(crate) fn parameters(stream: u64, interval_us: i64) -> ChannelParameters {
    ChannelParameters {
        destination: MacAddress([0x01, 0x00, 0x5e, 0x01, (stream >> 8) as u8, stream as u8]),
        source: MacAddress::default(),
        stream_id: StreamId(stream),
        vlan: 2,
        pcp: 3,
        size: Octets::new(8),
        integrity: Default::default(),
        replicated: false,
        launch: None,
        talker_address: None,
        interval: Span::from_us(interval_us),
        tolerance: Span::from_us(interval_us) * 1_000,
        catch_up: Span::ZERO,
        fixed_delay: Span::from_ms(2),
        clock_error: Span::ZERO,
        epoch: 0,
    }
}
