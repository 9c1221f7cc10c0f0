//! Programs with named labels, and networks of them.

use onbeat_network_code::verification::{NetworkModel, Reach, SharedResource, StationModel};
use onbeat_runtime::network_code::instruction::{
    Address, BufferId, BufferWord, Condition, Guard, Instruction, MessageId, Relation,
};
use onbeat_runtime::network_code::program::{Buffer, BufferRole, MessageFormat, StationProgram};
use onbeat_runtime::network_code::timing::Medium;
use std::collections::BTreeMap;

/// A program in the making.
#[derive(Clone, Default)]
pub(crate) struct Code {
    instructions: Vec<(Instruction, Option<String>)>,
    labels: BTreeMap<String, usize>,
    buffers: Vec<Buffer>,
    messages: BTreeMap<u8, u16>,
}

fn nowhere() -> Address {
    Address::new(0).unwrap()
}

pub(crate) fn when(condition: Condition) -> Guard {
    Guard { negated: false, condition }
}

pub(crate) fn unless(condition: Condition) -> Guard {
    Guard { negated: true, condition }
}

pub(crate) fn word(buffer: u8, index: u8, relation: Relation, value: i32) -> Condition {
    Condition::Immediate { word: BufferWord { buffer: BufferId(buffer), index }, relation, value }
}

pub(crate) fn equals(buffer: u8, value: i32) -> Condition {
    word(buffer, 0, Relation::Equal, value)
}

impl Code {
    pub(crate) fn output(&mut self, words: u16) -> u8 {
        self.buffer(words, BufferRole::Output)
    }

    pub(crate) fn input(&mut self, words: u16) -> u8 {
        self.buffer(words, BufferRole::Input)
    }

    fn buffer(&mut self, words: u16, role: BufferRole) -> u8 {
        let name = format!("b{}", self.buffers.len());
        self.buffers.push(Buffer { name, words, role });
        (self.buffers.len() - 1) as u8
    }

    pub(crate) fn message(&mut self, id: u8, words: u16) -> &mut Self {
        self.messages.insert(id, words);
        self
    }

    pub(crate) fn label(&mut self, name: &str) -> &mut Self {
        let before = self.labels.insert(name.into(), self.instructions.len());
        assert!(before.is_none(), "{name} is there twice");
        self
    }

    pub(crate) fn put(&mut self, instruction: Instruction) -> &mut Self {
        self.instructions.push((instruction, None));
        self
    }

    pub(crate) fn nop(&mut self) -> &mut Self {
        self.put(Instruction::Nop)
    }

    pub(crate) fn halt(&mut self) -> &mut Self {
        self.put(Instruction::Halt)
    }

    pub(crate) fn sync_master(&mut self) -> &mut Self {
        self.put(Instruction::SyncMaster)
    }

    pub(crate) fn sync_slave(&mut self, timeout: u32) -> &mut Self {
        self.put(Instruction::SyncSlave { timeout })
    }

    pub(crate) fn create(&mut self, buffer: u8) -> &mut Self {
        self.put(Instruction::Create { buffer: BufferId(buffer) })
    }

    pub(crate) fn send(&mut self, message: u8) -> &mut Self {
        self.put(Instruction::Send { message: MessageId(message) })
    }

    pub(crate) fn receive(&mut self, message: u8, buffer: u8) -> &mut Self {
        let (message, buffer) = (MessageId(message), BufferId(buffer));
        self.put(Instruction::Receive { message, buffer })
    }

    pub(crate) fn future(&mut self, label: &str, delay: u32) -> &mut Self {
        let instruction = Instruction::Future { target: nowhere(), delay };
        self.instructions.push((instruction, Some(label.into())));
        self
    }

    pub(crate) fn branch(&mut self, guard: Guard, label: &str) -> &mut Self {
        let instruction = Instruction::Branch { guard, target: nowhere() };
        self.instructions.push((instruction, Some(label.into())));
        self
    }

    pub(crate) fn goto(&mut self, label: &str) -> &mut Self {
        self.branch(Guard::ALWAYS, label)
    }

    /// Waits so many cycles from here, to a label there.
    pub(crate) fn wait(&mut self, label: &str, delay: u32) -> &mut Self {
        self.future(label, delay).halt().label(label)
    }

    pub(crate) fn program(&self, station: &str) -> StationProgram {
        let word = |(instruction, label): &(Instruction, Option<String>)| {
            let to = label.as_ref().map(|label| Address::new(self.labels[label]).unwrap());
            match (*instruction, to) {
                (Instruction::Future { delay, .. }, Some(target)) => {
                    Instruction::Future { target, delay }
                }
                (Instruction::Branch { guard, .. }, Some(target)) => {
                    Instruction::Branch { guard, target }
                }
                (other, _) => other,
            }
            .encode()
        };
        let format = |(id, words): (&u8, &u16)| MessageFormat {
            id: MessageId(*id),
            name: format!("m{id}"),
            words: *words,
        };
        StationProgram {
            station: station.into(),
            medium: Medium::GIGABIT,
            buffers: self.buffers.clone(),
            messages: self.messages.iter().map(format).collect(),
            words: self.instructions.iter().map(word).collect(),
            source: "test.nc".into(),
            lines: (1..=self.instructions.len() as u32).collect(),
        }
    }
}

/// A network in which all stations are on one bridge: each link to a station is a resource.
pub(crate) fn star(codes: &[&Code], drift_ppb: u32, delay_ns: (u64, u64)) -> NetworkModel {
    let stations = codes.iter().enumerate().map(|(index, code)| StationModel {
        program: code.program(&format!("s{index}")),
        drift_ppb_max: drift_ppb,
    });
    let resources = (0..codes.len()).map(|index| SharedResource {
        name: format!("bridge to s{index}"),
        octet_ns: 8,
        drift_ppb_max: drift_ppb,
        receiver: Some(index),
        best_effort_octets: None,
    });
    let all = (0..codes.len()).flat_map(|sender| (0..codes.len()).map(move |to| (sender, to)));
    let reaches = all.filter(|(sender, to)| sender != to).map(|(sender, resource)| Reach {
        sender,
        resource,
        delay_min_ns: delay_ns.0,
        delay_max_ns: delay_ns.1,
    });
    NetworkModel {
        stations: stations.collect(),
        resources: resources.collect(),
        reaches: reaches.collect(),
    }
}
