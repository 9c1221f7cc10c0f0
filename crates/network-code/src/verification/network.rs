//! What is verified: programs, clocks, and how long a frame takes from each station to each
//! resource. A resource is a link in one direction: what two stations' frames can collide on.

use onbeat_runtime::network_code::instruction::MessageId;
use onbeat_runtime::network_code::program::StationProgram;

/// Stations of a network at most.
pub const STATIONS_MAX: usize = 256;
/// Resources of a network at most.
pub const RESOURCES_MAX: usize = 4_096;
/// The largest limit of a clock's drift: 0.1 %.
pub const DRIFT_PPB_MAX: u32 = 1_000_000;
/// The longest delay, and the longest octet: a second.
pub const DELAY_NS_MAX: u64 = 1_000_000_000;

/// A network of stations that share rounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkModel {
    /// Its stations.
    pub stations: Vec<StationModel>,
    /// Every link, in each direction that frames take.
    pub resources: Vec<SharedResource>,
    /// Who reaches what, and when.
    pub reaches: Vec<Reach>,
}

/// A station.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StationModel {
    /// What it executes.
    pub program: StationProgram,
    /// How far a cycle of its clock is from 8 ns at most, in parts of 10⁹.
    pub drift_ppb_max: u32,
}

/// A link in one direction, with the port that receives from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedResource {
    /// How it is named in findings.
    pub name: String,
    /// The nominal time of an octet on it, in ns: 8 at 1 Gbit/s.
    pub octet_ns: u32,
    /// How far that is from nominal at most, in parts of 10⁹.
    pub drift_ppb_max: u32,
    /// The station that receives from it, if one does: an index.
    pub receiver: Option<usize>,
    /// The longest best-effort frame on it, in octets with header and check sequence; none where
    /// best-effort frames are not judged.
    pub best_effort_octets: Option<u32>,
}

/// That a station's frames come to a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reach {
    /// The station: an index.
    pub sender: usize,
    /// The resource: an index.
    pub resource: usize,
    /// The least time from the first octet of the preamble at the sender to the same octet at the
    /// resource, in ns.
    pub delay_min_ns: u64,
    /// The greatest.
    pub delay_max_ns: u64,
}

impl NetworkModel {
    /// What is inconsistent, in sentences; nothing if the model can be verified.
    pub fn errors(&self) -> Vec<String> {
        let mut errors = Vec::new();
        if self.stations.is_empty() || self.stations.len() > STATIONS_MAX {
            errors.push(format!("a network has 1 to {STATIONS_MAX} stations"));
        }
        if self.resources.len() > RESOURCES_MAX {
            errors.push(format!("a network has at most {RESOURCES_MAX} resources"));
        }
        for station in self.stations.iter().filter(|it| it.drift_ppb_max > DRIFT_PPB_MAX) {
            let name = &station.program.station;
            errors.push(format!("the drift of `{name}` is more than {DRIFT_PPB_MAX} ppb"));
        }
        for (index, resource) in self.resources.iter().enumerate() {
            errors.extend(self.resource_error(index, resource));
        }
        let mut seen = std::collections::BTreeSet::new();
        for reach in &self.reaches {
            let known = reach.sender < self.stations.len() && reach.resource < self.resources.len();
            let ordered = reach.delay_min_ns <= reach.delay_max_ns;
            if !known || !ordered || reach.delay_max_ns > DELAY_NS_MAX {
                errors.push(format!("a delay is out of range: {reach:?}"));
            } else if !seen.insert((reach.sender, reach.resource)) {
                errors.push(format!("a delay is there twice: {reach:?}"));
            }
        }
        self.formats(&mut errors);
        errors
    }

    fn resource_error(&self, index: usize, resource: &SharedResource) -> Option<String> {
        let name = &resource.name;
        if resource.octet_ns == 0 || u64::from(resource.octet_ns) > DELAY_NS_MAX {
            return Some(format!("an octet on `{name}` takes 1 ns to 1 s"));
        }
        if resource.drift_ppb_max > DRIFT_PPB_MAX {
            return Some(format!("the drift of `{name}` is more than {DRIFT_PPB_MAX} ppb"));
        }
        let receiver = resource.receiver?;
        if receiver >= self.stations.len() {
            return Some(format!("`{name}` has an unknown receiver"));
        }
        let another = self.resources[..index].iter().any(|it| it.receiver == Some(receiver));
        another.then(|| format!("`{name}` is a second resource of its receiver"))
    }

    /// One identifier means one message, of one length, at all stations.
    fn formats(&self, errors: &mut Vec<String>) {
        let mut lengths = std::collections::BTreeMap::<MessageId, u16>::new();
        for station in &self.stations {
            for message in &station.program.messages {
                let words = *lengths.entry(message.id).or_insert(message.words);
                if words != message.words {
                    let (name, id) = (&message.name, message.id.0);
                    errors.push(format!("stations know message {id} (`{name}`) by two lengths"));
                }
            }
        }
    }

    /// The delay from a station to the resource that another receives from: which of
    /// [`NetworkModel::reaches`].
    pub(super) fn reach_to(&self, sender: usize, receiver: usize) -> Option<usize> {
        self.reaches.iter().position(|reach| {
            reach.sender == sender && self.resources[reach.resource].receiver == Some(receiver)
        })
    }
}
