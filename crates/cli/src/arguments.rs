//! What can be asked for.

use crate::clock::ClockVerb;
use crate::compare::CompareArguments;
use crate::lf::LfVerb;
use crate::measure::MeasureVerb;
use crate::nc::NcVerb;
use crate::noise::NoiseVerb;
use crate::plan;
use clap::{Args, Parser, Subcommand, ValueEnum};
use onbeat_bounds::PlanDocument;
use onbeat_model::binding::Binding;
use onbeat_model::system::{Backend, TimeMode, TransportKind};
use onbeat_model::time::Span;
use onbeat_model::timing::Level;
use onbeat_run::coordinator::StartAt;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

const EXIT_CODES: &str = "\
Example:
  onbeat run examples/01-two-hosts

Exit codes:
  0    success
  1    the description, or its plan, has errors; compare: the second is worse
  2    invalid arguments
  3    a run or a simulation violated a guarantee; tfg: systems disturb each other's times
  4    a run ended early: a program died, hung or violated the protocol
  5    an operation of the machine failed (a file, a socket)
  6    tfg: nothing is proven beyond the computed iterations; lf: a bound is not known
  130  the run or simulation was interrupted";

const CC: &str = "\
Options:
  -o FILE            output file
  -c                 compiles only, FILE.c to FILE.o
  -S                 writes the generated C to FILE.timed.c; with `-o -` to standard output
  -E                 the same, preprocessed
  --keep-phase       keeps the phase of timing points that are passed late
  --origin ORIGIN    origin of timing points in called functions: task (default) or function
  --bind BINDING     binding of an abstract channel: chan=fifo, chan=fifo:64,double, or to a
                     channel of the description, chan=network:speed; may be repeated
  --starts TASKS     tasks that start, as in sensor,filter; starts of all others do nothing
  --target TARGET    platform: posix (default) or freertos
  --kernel DIR       source tree of the FreeRTOS kernel, with --target freertos
  --json             also prints diagnostics as JSON
All other options, and files that are not C, go to the C compiler: $CC, or cc.

Examples:
  onbeat cc talker.c -o talker
  onbeat cc -O2 -g -Iinclude main.c tasks.c filter.o -lm -o controller
  onbeat cc -c tasks.c -o build/tasks.o -MMD
  onbeat cc -S talker.c -o -
  CC=clang onbeat cc talker.c -o talker
  make CC='onbeat cc'
  onbeat cc --target freertos --kernel FreeRTOS-Kernel talker.c -o talker

Headers and libraries are found beside this command, or in $ONBEAT_HOME (docs/cli.md). Exits with 1
if the files have errors. docs/timed-c.md describes the language.";

const DOCTOR: &str = "\
Examples:
  onbeat doctor
  onbeat doctor examples/01-two-hosts --host talker --interface eth0
  onbeat doctor --pid 4711 --all
  onbeat doctor --save here.json; onbeat doctor examples/01-two-hosts --facts here.json
  onbeat doctor --script setup.sh

Exits with 0 without findings, with 1 if there is advice, with 2 if the machine cannot keep a
guarantee of the system (docs/doctor.md).";

/// The most repetitions of one simulation.
pub(crate) const REPETITIONS_MAX: i64 = 1_000_000;
/// The most iterations of which a time-flow graph's times are computed.
const ITERATIONS_MAX: i64 = 1_000;

/// Distributed real-time systems on Linux and Ethernet: described once, analysed, planned, run and
/// measured against their guarantees.
#[derive(Debug, Parser)]
#[command(name = "onbeat", version, after_help = EXIT_CODES, max_term_width = 100)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Creates a directory with a small system
    #[command(after_help = "Examples:
  onbeat new press --template control-loop
  onbeat new --list

The new directory has a description, C programs, a Makefile and a README. There `make`,
`onbeat check`, `onbeat plan` and `onbeat run` work (docs/tutorial.md).")]
    New(crate::new::NewArguments),
    /// Checks a description and reports all errors
    #[command(after_help = "Examples:
  onbeat check examples/01-two-hosts
  onbeat check large.toml --no-bounds")]
    Check(CheckArguments),
    /// Routes streams, reserves bandwidth and bounds latencies
    #[command(after_help = "Examples:
  onbeat plan examples/01-two-hosts --json
  onbeat plan examples/01-two-hosts --deploy tables
  onbeat plan examples/01-two-hosts --diff plan.json
  onbeat plan examples/04-tsn-ring --html plan.html
  onbeat plan examples/03-robot-arm --backend network-code --deploy programs
  ONBEAT_INTERFACE=eth0 ONBEAT_SYSTEM=tables/talker.channels ./program")]
    Plan(PlanArguments),
    /// Writes what `plan --deploy` wrote to devices by NETCONF: to all of them or to none
    #[command(after_help = "Examples:
  onbeat plan cell --deploy told
  onbeat deploy told --device br0=admin@192.0.2.7 --device br1=admin@192.0.2.8:830 --dry-run
  onbeat deploy told --device br0=admin@192.0.2.7 --device br1=admin@192.0.2.8:830
  onbeat deploy new --former told --device br0=admin@192.0.2.7 --key ~/.ssh/id_ed25519 --json

Needs ncclient (Debian's python3-ncclient). Devices' host keys must be in ~/.ssh/known_hosts.
Exits with 5 if a device cannot be reached or refuses, and all have what they had; with 3 if this
is not so, or not known (docs/deployment.md).")]
    Deploy(crate::netconf::DeployArguments),
    /// Runs a system, measures it and writes the report
    #[command(after_help = "Examples:
  onbeat run examples/01-two-hosts
  onbeat run examples/01-two-hosts --all-scenarios
  onbeat run examples/01-two-hosts --time real --duration 5s --json
  onbeat run examples/03-robot-arm --scenario unprotected --seed 8
  onbeat run program.c --duration 5s --task-trace .
  onbeat run examples/01-two-hosts --network netns
  onbeat run examples/01-two-hosts --host talker --interface eth0
  onbeat run examples/01-two-hosts --host listener --interface eth0

Start the last two on two machines within one minute; their clocks must be synchronised
(docs/engines.md).

Writes report.html, results.json and, per run, records.onb and messages.csv.")]
    Run(RunArguments),
    /// Simulates a system in virtual time with synthetic traffic only
    #[command(after_help = "Examples:
  onbeat simulate examples/01-two-hosts --duration 1s
  onbeat simulate examples/01-two-hosts --repetitions 100 --phases random --seed 8
  onbeat simulate examples/01-two-hosts --duration 10ms --capture two-hosts.pcapng
  onbeat simulate large.toml --duration 10ms --no-bounds
  onbeat simulate examples/01-two-hosts --capture x.pcapng --capture-port cat1.p4 --json

Starts no program: synthetic talkers write one message each interval. Writes simulation.json and
simulation.html; exits with 3 if a bound was exceeded (docs/simulate.md).")]
    Simulate(SimulateArguments),
    /// Bounds the latency of flows and the backlog of queues
    #[command(after_help = "Examples:
  onbeat bounds examples/01-two-hosts
  onbeat bounds network.json --method best --json

A file that ends in .json is a FIFO network in the form of Saihu and panco (docs/simulate.md).")]
    Bounds(BoundsArguments),
    /// Computes when timing points, segments and channel operations happen
    #[command(after_help = "Examples:
  onbeat tfg examples/05-control-loop
  onbeat tfg tasks.toml --level platform --html times.html
  onbeat tfg sensor.c processor.c --iterations 3
  onbeat tfg examples/05-control-loop --dot - | dot -Tpdf -o graph.pdf
  onbeat tfg examples/05-control-loop --json --unprotected
  onbeat tfg sensing.toml logging.toml
  onbeat tfg --compose sensor.c logger.c

Shows whether the system is composable to its logical timing and, if not, on which path the bound is
lost; arrivals and releases by iteration; chains; deadlines that may be missed. These are findings,
not errors: the exit code is 0, or 6 if nothing is proven beyond the computed iterations
(docs/time-flow-graphs.md).

Given several systems, shows whether each keeps the times that it has alone (0), or what disturbs
them (3); 6 if that is not proven, or if one alone has times without a bound.")]
    Tfg(TfgArguments),
    /// Writes a description of other tools' networks and streams
    #[command(after_help = "Examples:
  onbeat import topology.csv --streams streams.csv -o system.toml
  onbeat import topology.csv --streams streams.csv --size payload > system.toml
  onbeat import Abilene.graphml --rate-mbps 1000 --forwarding-ns 3000 -o system.toml
  onbeat import Abilene.graphml --add-hosts --streams streams.csv -o system.toml
  onbeat import topology.json --rate-mbps 1000 -o system.toml

Reads the CSV files of the scheduling benchmark tsnkit (Xue et al., RTAS 2024), GraphML, and
topologies of YANG (RFC 8345) as JSON.
What a description cannot say is a warning (docs/import.md).")]
    Import(crate::import::ImportArguments),
    /// Reads models in Lingua Franca
    Lf {
        #[command(subcommand)]
        what: LfVerb,
    },
    /// Assembles, shows and lays out programs in Network Code
    Nc {
        #[command(subcommand)]
        what: NcVerb,
    },
    /// Compiles Timed C and plain C, and links
    #[command(disable_help_flag = true, after_help = CC)]
    Cc(CcArguments),
    /// Checks whether this machine can keep the guarantees
    #[command(after_help = DOCTOR)]
    Doctor(crate::doctor::DoctorArguments),
    /// Rebuilds the report of the last run
    #[command(after_help = "Example:\n  onbeat report examples/01-two-hosts")]
    Report(ReportArguments),
    /// Joins the parts of a run that several machines recorded, and reports them as one run
    #[command(after_help = "Example:
  onbeat run cell --host arm --interface eth0 --start 2026-12-01T08:00:00Z --out arm
  onbeat run cell --host planner --interface eth0 --start 2026-12-01T08:00:00Z --out planner
  onbeat join cell arm planner

The first two are commands of two machines, whose outputs are then copied to one (docs/engines.md).
Exits as `onbeat run` does.")]
    Join(JoinArguments),
    /// Shows the counters of all channel endpoints of running programs
    #[command(after_help = "Examples:
  onbeat stat
  onbeat stat --watch --channel joint_targets
  onbeat stat --pid 4711 --json
  onbeat stat --prometheus --listen 127.0.0.1:9877

Only the superuser sees other users' programs.")]
    Stat(StatArguments),
    /// Shows rates, latencies and losses of running programs, as they change
    #[command(after_help = crate::top::TOP)]
    Top(crate::top::TopArguments),
    /// Prints the messages of a channel
    #[command(after_help = crate::messages::ECHO)]
    Echo(crate::messages::EchoArguments),
    /// Writes messages to a channel
    #[command(after_help = crate::messages::PUB)]
    Pub(crate::messages::PubArguments),
    /// Records the messages of channels into a file that Wireshark opens
    #[command(after_help = crate::messages::RECORD)]
    Record(crate::messages::RecordArguments),
    /// Writes recorded messages again, each at its instant
    #[command(after_help = crate::messages::REPLAY)]
    Replay(crate::messages::ReplayArguments),
    /// Tunes this machine for real time and reverts it
    Tune(crate::tune::TuneArguments),
    /// Measures programs, and this machine by synchronised-time benchmarks
    Measure {
        #[command(subcommand)]
        what: MeasureVerb,
    },
    /// Compares two runs: whether the second is better or worse
    #[command(after_help = "Examples:
  onbeat compare before after
  onbeat compare before after --effect 2% --html comparison.html
  onbeat compare measured-monday measured-tuesday --json

Takes the output directories of two runs, simulations with repetitions, or measurements of one
system. Exits with 1 if the second is worse (docs/compare.md).")]
    Compare(CompareArguments),
    /// Synchronises this node's clock with linuxptp and checks it
    Clock {
        #[command(subcommand)]
        what: ClockVerb,
    },
    /// Sends noise on a real network and counts received datagrams
    Noise {
        #[command(subcommand)]
        what: NoiseVerb,
    },
    /// Reserves streams on interfaces (SRP) and shows their state
    #[command(after_help = "Examples:
  onbeat srp serve --interface eth0
  onbeat srp
  onbeat srp status --interface eth0 --json

Without a verb, shows the state of every stream (docs/reservation.md).")]
    Srp(crate::srp::SrpArguments),
    /// Writes the description's channels as a C manifest
    #[command(after_help = "Example:\n  onbeat manifest examples/03-robot-arm --c > manifest.h")]
    Manifest(ManifestArguments),
    /// Prints the JSON Schema of a file format
    Schema {
        /// File format
        kind: SchemaKind,
    },
    /// Prints a shell's completion script for this command
    #[command(after_help = "Example:
  onbeat completions bash > ~/.local/share/bash-completion/completions/onbeat

`make install` installs the scripts where shells find them.")]
    Completions {
        /// Shell
        shell: crate::completions::Shell,
    },
    /// Cleans up after a killed run
    #[command(hide = true)]
    Keeper,
    /// Runs one host's part for `onbeat run --on`, which has made this directory
    #[command(hide = true)]
    Part {
        /// The directory
        directory: PathBuf,
    },
}

#[derive(Debug, Args)]
pub(crate) struct CheckArguments {
    /// Description, or directory of a system.toml
    pub(crate) system: PathBuf,
    /// Computes no bounds and no program times, and reports nothing that depends on them
    #[arg(long)]
    pub(crate) no_bounds: bool,
    /// Trusts the description's directory, from now on: its `cflags` reach the C compiler, and it
    /// may name files elsewhere
    #[arg(long)]
    pub(crate) trust: bool,
    /// Prints JSON for machines
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PlanArguments {
    /// Description, or directory of a system.toml
    pub(crate) system: PathBuf,
    /// Makes no reservations
    #[arg(long)]
    pub(crate) unprotected: bool,
    /// Directory for what is deployed: per host the channel table that programs on an interface
    /// read, HOST.channels; per node its configuration, NODE.yang.json and NODE.yang.xml,
    /// per bridge its filtering database, NODE.filtering.yang.json and .xml, and what it does with
    /// frames of asynchronous and replicated channels, NODE.streams.yang.json and .xml; for nodes
    /// with Linux lines for iproute2, NODE.ip, .bridge and .tc, and files of systemd-networkd,
    /// NODE.networkd/
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) deploy: Option<PathBuf>,
    /// Also writes a page of its gates and windows over time into this file
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Prints what has changed since an earlier plan, which `plan --json` wrote into this file
    #[arg(long, value_name = "FILE")]
    pub(crate) diff: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) keep: KeepArguments,
    /// Admits channels one at a time in their order, where those before leave room, first those of
    /// `--keep`; says why others are refused, and plans without these
    #[arg(long, conflicts_with = "unprotected")]
    pub(crate) admit: bool,
    /// Where no gate schedule is found, searches all schedules on these paths: finds one, or proves
    /// that there is none and says which channels have none
    #[arg(long, conflicts_with_all = ["unprotected", "admit"])]
    pub(crate) exact: bool,
    #[command(flatten)]
    pub(crate) backend: ChosenBackend,
    #[command(flatten)]
    pub(crate) stations: StationPlanArguments,
    /// Trusts the description's directory, from now on: its `cflags` reach the C compiler, and it
    /// may name files elsewhere
    #[arg(long)]
    pub(crate) trust: bool,
    /// Prints JSON for machines
    #[arg(long)]
    pub(crate) json: bool,
}

/// What keeps channels apart, if another choice than the description's.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct ChosenBackend {
    /// What keeps channels apart [default: as described, else bridges]
    #[arg(long, value_name = "BACKEND")]
    backend: Option<BackendName>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum BackendName {
    /// Reservations, shapers and gates of bridges
    Bridges,
    /// Slots in rounds of stations; `plan --deploy` writes HOST.nc and HOST.ncb
    NetworkCode,
}

impl ChosenBackend {
    /// What keeps channels apart that are described to be kept apart by `described`.
    pub(crate) fn or(self, described: Backend) -> Backend {
        match self.backend {
            None => described,
            Some(BackendName::Bridges) => Backend::Bridges,
            Some(BackendName::NetworkCode) => Backend::NetworkCode,
        }
    }
}

/// What only plans of stations take.
#[derive(Debug, Args)]
pub(crate) struct StationPlanArguments {
    /// Of Network Code: the host that begins rounds [default: the one with the least worst delay]
    #[arg(long, value_name = "HOST")]
    pub(crate) master: Option<String>,
    /// Of Network Code: how far each clock is off at most [default: 100]
    #[arg(long, value_name = "PPM", value_parser = clap::value_parser!(u32).range(..=1_000))]
    pub(crate) drift_ppm: Option<u32>,
    /// Of Network Code: longest frame of best effort at each port, with header and check sequence;
    /// 0: none but what is described [default: 1522]
    #[arg(long, value_name = "OCTETS", value_parser = clap::value_parser!(u32).range(..=2_000))]
    pub(crate) best_effort: Option<u32>,
    /// Of Network Code: by how much stations may hand over frames, and take what has come, later
    /// than their programs say [default: `slot_error_us` of the description]
    #[arg(long, value_name = "TIME", value_parser = slot_error)]
    pub(crate) slot_error: Option<Span>,
}

/// A time that a station may be late.
fn slot_error(text: &str) -> Result<Span, String> {
    let most = onbeat_model::limits::SLOT_ERROR;
    let span = duration(text)?;
    (span <= most).then_some(span).ok_or_else(|| format!("it is at most {most}"))
}

/// What of an earlier plan stays.
#[derive(Debug, Args)]
pub(crate) struct KeepArguments {
    /// Leaves channels on their paths and in their windows of an earlier plan, which `plan --json`
    /// wrote into this file
    #[arg(long, value_name = "FILE")]
    keep: Option<PathBuf>,
}

impl KeepArguments {
    /// The plan that is named, if one is.
    pub(crate) fn read(&self) -> anyhow::Result<Option<PlanDocument>> {
        self.keep.as_deref().map(plan::earlier).transpose()
    }

    /// Its file.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.keep.as_deref()
    }
}

/// Whether runs become a trace.
#[derive(Debug, Args)]
pub(crate) struct PerfettoArgument {
    /// Trace file of all messages for Perfetto, ui.perfetto.dev (docs/results.md)
    #[arg(long, value_name = "FILE")]
    perfetto: Option<PathBuf>,
}

impl PerfettoArgument {
    /// The file that is named, if one is.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.perfetto.as_deref()
    }
}

#[derive(Debug, Args)]
pub(crate) struct RunArguments {
    /// Description, directory of a system.toml, or C files of one program
    #[arg(value_name = "SYSTEM|FILE.c", required = true, num_args = 1..)]
    pub(crate) system: Vec<PathBuf>,
    /// Of C files: origin of timing points in called functions [default: task]
    #[arg(long)]
    pub(crate) origin: Option<CountFrom>,
    /// Of C files: binding of an abstract channel, as in chan=fifo or chan=fifo:64,double
    #[arg(long, value_name = "NAME=fifo[:VALUES][,TYPE]")]
    pub(crate) bind: Vec<Binding>,
    /// Scenario of the description to run, instead of its [run] settings
    #[arg(long, value_name = "NAME")]
    pub(crate) scenario: Option<String>,
    /// Runs all scenarios of the description in sequence
    #[arg(long, conflicts_with = "scenario")]
    pub(crate) all_scenarios: bool,
    #[command(flatten)]
    pub(crate) backend: ChosenBackend,
    #[command(flatten)]
    pub(crate) keep: KeepArguments,
    /// Time base: virtual is deterministic, real is paced by this machine's clock
    #[arg(long)]
    pub(crate) time: Option<Time>,
    /// Network that carries the frames; on the kernel's, time is real
    #[arg(long, default_value = "emulated", conflicts_with = "interface")]
    pub(crate) network: ChosenNetwork,
    /// Interface of this machine on which one host's programs run, in real time
    #[arg(long, value_name = "NAME", requires = "host", conflicts_with = "all_scenarios")]
    pub(crate) interface: Option<String>,
    /// Host of the description that this machine is
    #[arg(long, value_name = "NAME", requires = "interface")]
    pub(crate) host: Option<String>,
    /// File that says where the hosts are (docs/machines.md): runs each host's programs on its
    /// machine, all at one time
    #[arg(long, value_name = "FILE", conflicts_with_all = ["interface", "network", "time",
          "transport", "task_trace"])]
    pub(crate) on: Option<PathBuf>,
    /// Start of a run with --interface, the same on all machines: UTC, as in
    /// 2026-12-01T08:00:00Z, or +5s from now [default: the next full minute]
    #[arg(long, value_name = "TIME", value_parser = start, requires = "interface")]
    pub(crate) start: Option<StartAt>,
    /// Transport of frames to the kernel, with --network netns or --interface [default: packet]
    #[arg(long)]
    pub(crate) transport: Option<Transport>,
    /// Lets readers sleep until shortly before the expected arrival, then poll; with --network
    /// netns or --interface
    #[arg(long, alias = "follow-schedule")]
    pub(crate) poll_expected: bool,
    /// Has the kernel note when each frame gets into its queues and when it leaves, for the parts
    /// of latencies; on the kernel's network, which costs each write a few microseconds
    #[arg(long)]
    pub(crate) stamps: bool,
    /// Time during which talkers may write, as in 20s, 500ms or 5min; a bare number is seconds
    #[arg(long, value_parser = duration)]
    pub(crate) duration: Option<Span>,
    /// Seed of all random numbers
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Makes no reservations
    #[arg(long)]
    pub(crate) unprotected: bool,
    /// Virtual time: runs twice, and names the first call of a program that differs, and what
    /// programs take from elsewhere
    #[arg(long, conflicts_with_all = ["on", "interface", "task_trace"])]
    pub(crate) verify: bool,
    /// Real time: writes a marker into the kernel's trace for each message
    #[arg(long)]
    pub(crate) trace: bool,
    /// Directory for the task traces of Timed C programs: PROGRAM.csv
    #[arg(long, value_name = "DIRECTORY", conflicts_with = "all_scenarios")]
    pub(crate) task_trace: Option<PathBuf>,
    /// Real time: latency of a message, in microseconds, above which the kernel's trace stops
    #[arg(long, value_name = "MICROSECONDS", value_parser = micros)]
    pub(crate) break_us: Option<Span>,
    #[command(flatten)]
    pub(crate) perfetto: PerfettoArgument,
    /// Output directory [default: `out` beside the description]
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) out: Option<PathBuf>,
    /// Syncs output to disk before it gets its name: a crash or power failure leaves no partial
    /// output
    #[arg(long)]
    pub(crate) sync: bool,
    /// Prints JSON for machines (docs/results.md)
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SimulateArguments {
    /// Description, or directory of a system.toml
    pub(crate) system: PathBuf,
    /// Scenario of the description to simulate, instead of its [run] settings
    #[arg(long, value_name = "NAME")]
    pub(crate) scenario: Option<String>,
    #[command(flatten)]
    pub(crate) keep: KeepArguments,
    /// Time during which sources release frames, as in 20s, 500ms or 5min; a bare number is seconds
    #[arg(long, value_parser = duration)]
    pub(crate) duration: Option<Span>,
    /// Seed of all random numbers
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Number of repetitions, each with its own random numbers
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=REPETITIONS_MAX))]
    pub(crate) repetitions: u32,
    /// Phases of sources [default: described; random with --repetitions]
    #[arg(long)]
    pub(crate) phases: Option<Phases>,
    /// Makes no reservations
    #[arg(long)]
    pub(crate) unprotected: bool,
    /// Computes no bounds; deadlines are evaluated all the same
    #[arg(long)]
    pub(crate) no_bounds: bool,
    /// Number of concurrent repetitions; changes no result [default: number of CPUs]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1_024))]
    pub(crate) jobs: Option<u16>,
    /// pcapng file for Wireshark of what ports send in the first repetition
    #[arg(long, value_name = "FILE")]
    pub(crate) capture: Option<PathBuf>,
    /// Port to capture, as in cat1.p2; may be repeated [default: all]
    #[arg(long, value_name = "NODE.PORT", requires = "capture")]
    pub(crate) capture_port: Vec<String>,
    /// Output directory [default: `out-simulation` beside the description]
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) out: Option<PathBuf>,
    /// Syncs output to disk before it gets its name: a crash or power failure leaves no partial
    /// output
    #[arg(long)]
    pub(crate) sync: bool,
    /// Prints JSON for machines (docs/simulation-results.md)
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct BoundsArguments {
    /// Description, directory of a system.toml, or FIFO network as JSON
    #[arg(value_name = "SYSTEM|NETWORK.json")]
    pub(crate) subject: PathBuf,
    /// Makes no reservations
    #[arg(long)]
    pub(crate) unprotected: bool,
    #[command(flatten)]
    pub(crate) keep: KeepArguments,
    /// Method for a FIFO network [default: both]
    #[arg(long)]
    pub(crate) method: Option<Method>,
    /// Prints JSON for machines (docs/cli.md)
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct TfgArguments {
    /// Description, directory of a system.toml, task model, or C files of one program; several to
    /// compose them
    #[arg(value_name = "SYSTEM|TASKS.toml|FILE.c", required = true, num_args = 1..)]
    pub(crate) subject: Vec<PathBuf>,
    /// Composes what is given: each C file is a separate program
    #[arg(long)]
    pub(crate) compose: bool,
    /// Timeline that the table and the SVG show
    #[arg(long, default_value = "program")]
    pub(crate) level: TimeLevel,
    /// Minimum number of iterations to compute and to show, of each task's outermost loop
    #[arg(long, value_name = "N", default_value_t = 8,
          value_parser = clap::value_parser!(u32).range(1..=ITERATIONS_MAX))]
    pub(crate) iterations: u32,
    /// Time after which no further iteration is computed, even if there are fewer than N
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) until: Option<Span>,
    /// HTML file for the graph, the tables and all findings
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// SVG file for the graph
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
    /// Graphviz file for the graph; - for standard output, instead of the table
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    pub(crate) dot: Option<PathBuf>,
    /// Makes no reservations
    #[arg(long)]
    pub(crate) unprotected: bool,
    /// Of C files: origin of timing points in called functions [default: task]
    #[arg(long)]
    pub(crate) origin: Option<CountFrom>,
    /// Of C files: binding of an abstract channel, as in chan=fifo or chan=fifo:64,double
    #[arg(long, value_name = "NAME=fifo[:VALUES][,TYPE]")]
    pub(crate) bind: Vec<Binding>,
    /// Trusts the description's directory, from now on: its `cflags` reach the C compiler, and it
    /// may name files elsewhere
    #[arg(long)]
    pub(crate) trust: bool,
    /// Prints JSON for machines (docs/cli.md)
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CcArguments {
    /// Files and options, as for a C compiler
    #[arg(
        value_name = "ARGUMENTS",
        trailing_var_arg = true,
        allow_hyphen_values = true,
        required = true
    )]
    pub(crate) arguments: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct ReportArguments {
    /// Description, or directory of a system.toml
    pub(crate) system: PathBuf,
    #[command(flatten)]
    pub(crate) keep: KeepArguments,
    #[command(flatten)]
    pub(crate) perfetto: PerfettoArgument,
    /// Output directory of the run [default: `out` beside the description]
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) out: Option<PathBuf>,
    /// Syncs output to disk before it gets its name: a crash or power failure leaves no partial
    /// output
    #[arg(long)]
    pub(crate) sync: bool,
    /// Reports an interrupted run from its recording
    #[arg(long)]
    pub(crate) recovered: bool,
    /// Trusts the description's directory, from now on: its `cflags` reach the C compiler, and it
    /// may name files elsewhere
    #[arg(long)]
    pub(crate) trust: bool,
    /// Prints JSON for machines (docs/results.md)
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct JoinArguments {
    /// Description, or directory of a system.toml
    pub(crate) system: PathBuf,
    /// Output directories of `onbeat run --host H --interface I`, one of each machine
    #[arg(value_name = "PART", required = true)]
    pub(crate) parts: Vec<PathBuf>,
    /// Takes what was recorded of parts that were cut off, as `run --on` leaves it when it is
    /// killed: PART.recording
    #[arg(long)]
    pub(crate) recovered: bool,
    #[command(flatten)]
    pub(crate) keep: KeepArguments,
    #[command(flatten)]
    pub(crate) perfetto: PerfettoArgument,
    /// Output directory [default: `joined` beside the description]
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) out: Option<PathBuf>,
    /// Syncs output to disk before it gets its name: a crash or power failure leaves no partial
    /// output
    #[arg(long)]
    pub(crate) sync: bool,
    /// Trusts the description's directory, from now on: its `cflags` reach the C compiler, and it
    /// may name files elsewhere
    #[arg(long)]
    pub(crate) trust: bool,
    /// Prints JSON for machines (docs/results.md)
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct StatArguments {
    /// Process to show [default: all]
    #[arg(long, value_name = "NUMBER")]
    pub(crate) pid: Option<u32>,
    /// Channel to show [default: all]
    #[arg(long, value_name = "NAME")]
    pub(crate) channel: Option<String>,
    /// Refreshes each second, with rates, until interrupted
    #[arg(long)]
    pub(crate) watch: bool,
    /// Prints JSON for machines (docs/cli.md)
    #[arg(long)]
    pub(crate) json: bool,
    /// Prints Prometheus' text format (docs/cli.md)
    #[arg(long, conflicts_with_all = ["watch", "json"])]
    pub(crate) prometheus: bool,
    /// Serves it over HTTP at /metrics, to whoever reaches that address, until interrupted
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = listening, requires = "prometheus")]
    pub(crate) listen: Option<SocketAddr>,
}

#[derive(Debug, Args)]
pub(crate) struct ManifestArguments {
    /// Description, or directory of a system.toml
    pub(crate) system: PathBuf,
    /// Writes a C header (the only form)
    #[arg(long, required = true)]
    pub(crate) c: bool,
    /// Uses the first generation's names: struct net_fifo, class, freq
    #[arg(long)]
    pub(crate) first_generation: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Time {
    /// Deterministic, as fast as possible
    Virtual,
    /// Paced by this machine's clock
    Real,
}

impl From<Time> for TimeMode {
    fn from(time: Time) -> Self {
        match time {
            Time::Virtual => Self::Virtual,
            Time::Real => Self::Real,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ChosenNetwork {
    /// The network engine
    Emulated,
    /// The kernel's: one namespace per host and bridge, joined by virtual links
    Netns,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Transport {
    /// AF_PACKET
    Packet,
    /// AF_XDP
    Xdp,
    /// UDP over IPv4, for networks without TSN
    Udp4,
    /// UDP over IPv6
    Udp6,
}

impl From<Transport> for TransportKind {
    fn from(transport: Transport) -> Self {
        match transport {
            Transport::Packet => Self::Packet,
            Transport::Xdp => Self::Xdp,
            Transport::Udp4 => Self::Udp4,
            Transport::Udp6 => Self::Udp6,
        }
    }
}

/// How a FIFO network is bounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Method {
    /// Total flow analysis with line shaping
    TotalFlow,
    /// The best of all methods, with linear programs
    #[value(alias = "tight")]
    Best,
}

/// When sources release their first frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Phases {
    /// The described phases
    Described,
    /// A random instant in the first interval of each source
    Random,
    /// One frame meets as many others as possible, another one in each repetition
    Aligned,
}

impl From<Phases> for onbeat_net::Phases {
    fn from(phases: Phases) -> Self {
        match phases {
            Phases::Described => Self::Described,
            Phases::Random => Self::Random,
            Phases::Aligned => Self::Aligned,
        }
    }
}

impl From<Phases> for onbeat_measure::simulation::Phases {
    fn from(phases: Phases) -> Self {
        match phases {
            Phases::Described => Self::Described,
            Phases::Random => Self::Random,
            Phases::Aligned => Self::Aligned,
        }
    }
}

/// What timing points of called functions count from.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum CountFrom {
    /// Last timing point of the task
    Task,
    /// Call of the function
    Function,
}

impl CountFrom {
    /// The word for `onbeat cc`.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Task => "task",
            Self::Function => "function",
        }
    }
}

/// On which timeline.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum TimeLevel {
    /// Logical time: code takes no time
    Program,
    /// With execution times and wake-up latencies
    Platform,
}

impl From<TimeLevel> for Level {
    fn from(level: TimeLevel) -> Self {
        match level {
            TimeLevel::Program => Self::Program,
            TimeLevel::Platform => Self::Platform,
        }
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum SchemaKind {
    /// system.toml
    System,
    /// machines.toml
    Machines,
    /// Task model, tasks.toml
    Tasks,
    /// Sidecar of a model in Lingua Franca
    LfSidecar,
    /// Output of `lf import --json`
    LfFederation,
    /// federation.json, output of `lf simulate --json`
    LfSimulation,
    /// results.json, output of `run --json`
    Results,
    /// simulation.json, output of `simulate --json`
    Simulation,
    /// Output of `tfg --json`
    Tfg,
    /// measurement.json, output of `measure --json`
    Measurement,
    /// campaign.json, output of `measure campaign --json`
    Campaign,
    /// Output of `compare --json`
    Comparison,
}

pub(crate) fn duration(text: &str) -> Result<Span, String> {
    let wrong = |_| "expected a duration such as 20s, 500ms or 5min".to_owned();
    // A bare number is seconds.
    let seconds = text.parse().map(std::time::Duration::from_secs);
    let duration = seconds.or_else(|_| humantime::parse_duration(text)).map_err(wrong)?;
    let most = onbeat_model::limits::DURATION;
    i64::try_from(duration.as_nanos())
        .ok()
        .map(Span::from_ns)
        .filter(|span| *span > Span::ZERO && *span <= most)
        .ok_or_else(|| format!("a duration is more than 0 and at most {most}"))
}

fn micros(text: &str) -> Result<Span, String> {
    let most = onbeat_model::limits::DURATION;
    let ns = text.parse::<i64>().ok().and_then(|us| us.checked_mul(1_000));
    ns.map(Span::from_ns)
        .filter(|span| *span > Span::ZERO && *span <= most)
        .ok_or_else(|| "expected a whole number of microseconds above 0".to_owned())
}

/// Where to listen. The port is not left to the system, whose choice would not be known before.
fn listening(text: &str) -> Result<SocketAddr, String> {
    let at = text.parse::<SocketAddr>().ok().filter(|at| at.port() != 0);
    at.ok_or_else(|| "expected an address with a port, as in 127.0.0.1:9877 or [::1]:9877".into())
}

fn start(text: &str) -> Result<StartAt, String> {
    if let Some(span) = text.strip_prefix('+') {
        return duration(span).map(StartAt::In);
    }
    let wrong = "expected an instant such as 2026-12-01T08:00:00Z, or a time from now such as +5s";
    let at = humantime::parse_rfc3339(text).map_err(|_| wrong.to_owned())?;
    let since = at.duration_since(std::time::UNIX_EPOCH).map_err(|_| wrong.to_owned())?;
    i64::try_from(since.as_nanos()).map(StartAt::Utc).map_err(|_| wrong.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn microseconds_are_whole_and_more_than_none() {
        assert_eq!(micros("250"), Ok(Span::from_us(250)));
        for bad in ["", "0", "-1", "1.5", "1us", "9223372036854775807"] {
            assert!(micros(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn times_are_read_with_and_without_a_unit_and_bounded() {
        for (text, span) in [
            ("20s", Span::from_s(20)),
            ("20", Span::from_s(20)),
            ("500ms", Span::from_ms(500)),
            ("5min", Span::from_s(300)),
        ] {
            assert_eq!(duration(text), Ok(span), "{text}");
        }
        let at = 1_764_576_000_000_000_000;
        assert_eq!(start("2025-12-01T08:00:00Z"), Ok(StartAt::Utc(at)));
        assert_eq!(start("+500ms"), Ok(StartAt::In(Span::from_ms(500))));
        for bad in ["", "+", "+0s", "soon", "08:00", "1969-12-31T23:59:59Z"] {
            assert!(start(bad).is_err(), "{bad}");
        }
        for bad in ["", "-1s", "0", "soon", "31days", "18446744073709551615"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }
}
