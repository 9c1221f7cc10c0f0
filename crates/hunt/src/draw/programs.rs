//! Programs: runs start them; the analysis reads what they say of themselves.

use super::{Draft, Table, table};
use crate::dice::Dice;
use serde_json::{Value, json};

/// Scheduling policies.
pub(super) const POLICIES: [&str; 4] = ["fifo", "rr", "deadline", "other"];

/// A task that sleeps and begins again.
const SOURCE: &str = "\
#include <cilktc.h>

task beat(void)
{
\twhile (1)
\t\tsdelay(10, ms);
}

int main(void)
{
\tbeat();
\treturn 0;
}
";

/// Before it: functions over abstract channels, which are never called.
const MOVES: &str = "\
static inline void move(void)
{
\tchan_write(1);
\tqueue_write(1);
}

";

/// Types of their values.
const TYPES: [&str; 11] = [
    "int", "int8_t", "uint8_t", "int16_t", "uint16_t", "int32_t", "uint32_t", "int64_t",
    "uint64_t", "float", "double",
];

/// The same as a task model.
const TASKS: &str = "\
format = 1
name = \"drawn\"
[[task]]
name = \"beat\"
steps = [{ loop = \"ever\", steps = [{ soft_ms = 10 }] }]
";

/// How long it computes.
const TIMES: &str = "SRC,BCET,WCET,JITTER,ABORT,DST\n";

impl Draft<'_> {
    pub(super) fn programs(&mut self) {
        // Most descriptions have none: then all ends are modelled, and everything is seen.
        if !self.chance(10) {
            return;
        }
        let host = self.dice.below(self.hosts.len() as u64) as usize;
        let host = self.hosts[host].clone();
        let mut program = table(json!({ "name": "beat", "host": host.name }));
        if self.chance(30) {
            program.insert("source".into(), json!(["beat.c"]));
            self.files.insert("beat.c".into(), SOURCE.into());
            if self.chance(50) {
                program.insert("cflags".into(), json!(["-O1", "-DDRAWN"]));
            }
            if self.chance(50) {
                program.insert("arguments".into(), json!(["--quiet"]));
            }
            if self.chance(50) {
                program.insert("channels".into(), self.abstract_channels(&host.name));
                self.files.insert("beat.c".into(), format!("{MOVES}{SOURCE}"));
            }
            if self.chance(50) {
                program.insert("starts".into(), json!(["beat"]));
            }
        } else {
            program.insert("command".into(), json!(["true"]));
            if self.chance(40) {
                program.insert("tasks".into(), json!("tasks.toml"));
                self.files.insert("tasks.toml".into(), TASKS.into());
            }
        }
        if self.chance(30) {
            program.insert("execution_times".into(), json!("times.csv"));
            self.files.insert("times.csv".into(), TIMES.into());
        }
        self.maybe(&mut program, "Program.priority", |dice| dice.between(1, 99));
        self.maybe(&mut program, "Program.work_max_ns", |dice| dice.between(0, 200_000));
        self.maybe_bool(&mut program, "joins");
        if self.optional() {
            let user = self.dice.one(&["nobody", "0", "54321"]);
            program.insert("user".into(), json!(user));
        }
        if self.optional() {
            self.cores(&mut program, host.cores);
        }
        // Apart from all other draws, which stay what they were.
        let mut apart = Dice::new(self.dice.clone().bits());
        if apart.chance(10) {
            budget(&mut apart, &mut program);
        }
        if apart.chance(10) {
            program.insert("policy".into(), json!(apart.one(&POLICIES)));
        }
        self.push("program", program);
    }

    /// How scenarios schedule programs: last, for seeds to keep all else.
    pub(super) fn scenario_programs(&mut self) {
        let listed = |key: &str| self.root.get(key).and_then(Value::as_array).cloned();
        let (programs, scenarios) = (listed("program"), listed("scenario"));
        let (Some(programs), Some(mut scenarios)) = (programs, scenarios) else { return };
        for scenario in &mut scenarios {
            let mut tables = Vec::new();
            for program in &programs {
                if !self.chance(40) {
                    continue;
                }
                let mut table = table(json!({ "name": program["name"] }));
                let host = self.hosts.iter().find(|host| program["host"] == host.name.as_str());
                let of_host = host.and_then(|host| host.cores);
                self.maybe(&mut table, "ScenarioProgram.priority", |dice| dice.between(1, 99));
                if self.optional() {
                    self.cores(&mut table, of_host);
                }
                if self.optional() {
                    table.insert("policy".into(), json!(self.dice.one(&POLICIES)));
                }
                if self.optional() {
                    budget(&mut self.dice, &mut table);
                }
                tables.push(Value::Object(table));
            }
            if !tables.is_empty() {
                scenario["program"] = Value::Array(tables);
            }
        }
        self.root.insert("scenario".into(), Value::Array(scenarios));
    }

    /// What the abstract channels of [`MOVES`] are. The first one is a channel of the description
    /// if there is one that the host is an end of and that has the size of some value.
    fn abstract_channels(&mut self, host: &str) -> Value {
        let octets = |kind: &str| match kind {
            "int8_t" | "uint8_t" => 1,
            "int16_t" | "uint16_t" => 2,
            "int64_t" | "uint64_t" | "double" => 8,
            _ => 4,
        };
        let is_end = |c: &&Value| {
            let listens = c["listeners"].as_array().is_some_and(|l| l.iter().any(|l| l == host));
            c["talker"] == host || listens
        };
        let list = self.root.get("channel").and_then(Value::as_array);
        let all = list.into_iter().flatten().filter(is_end);
        let known = all.map(|c| (c["name"].clone(), c["size_octets"].as_i64().unwrap_or(0)));
        let known: Vec<(Value, i64)> = known.collect();
        let fits = |(_, size): &&(Value, i64)| TYPES.iter().any(|t| octets(t) == *size);
        let fitting = known.iter().find(fits).cloned();
        let room = self.dice.one(&[1, 2, 1_024, 1_048_576]);
        let kind = self.dice.one(&TYPES);
        let queue = json!({ "name": "queue", "fifo": room, "type": kind });
        let first = match fitting {
            Some((name, size)) => {
                let kind = TYPES.iter().find(|t| octets(t) == size);
                json!({ "name": "chan", "channel": name, "type": kind })
            }
            None => json!({ "name": "chan", "fifo": 4 }),
        };
        json!([first, queue])
    }

    fn cores(&mut self, program: &mut Table, of_host: Option<i64>) {
        let core = match of_host {
            Some(cores) => json!(self.dice.below(cores as u64)),
            // Few hosts do not say how many they have.
            None if self.chance(10) => self.schema.range("Program.cores[]")[1].clone(),
            None => self.number("Program.cores[]", 1),
        };
        program.insert("cores".into(), json!([core]));
    }
}

/// What a program may compute in each period.
fn budget(dice: &mut Dice, table: &mut Table) {
    let [budget, deadline, period] = match dice.between(0, 9) {
        0 => [2, 2, 100],
        1 => [4_000_000; 3],
        _ => [dice.between(2, 100), dice.between(100, 1_000), dice.between(1_000, 100_000)],
    };
    table.insert("budget_us".into(), json!(budget));
    table.insert("budget_deadline_us".into(), json!(deadline));
    table.insert("budget_period_us".into(), json!(period));
}
