//! Programs: runs start them; the analysis reads what they say of themselves.

use super::{Draft, Table, table};
use serde_json::json;

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

/// The same as a file of tasks.
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
            self.cores(&mut program, host.cores);
        }
        self.push("program", program);
    }

    fn cores(&mut self, program: &mut Table, of_host: Option<i64>) {
        let core = match of_host {
            Some(cores) => json!(self.dice.below(cores as u64)),
            None => self.number("Program.cores[]", 1),
        };
        program.insert("cores".into(), json!([core]));
    }
}
