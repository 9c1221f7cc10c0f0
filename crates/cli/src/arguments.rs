//! What can be asked for.

use crate::clock::ClockVerb;
use crate::compare::CompareArguments;
use crate::measure::MeasureVerb;
use crate::noise::NoiseVerb;
use clap::{Args, Parser, Subcommand, ValueEnum};
use onbeat_model::binding::Binding;
use onbeat_model::system::{TimeMode, TransportKind};
use onbeat_model::time::Span;
use onbeat_model::timing::Level;
use onbeat_run::coordinator::StartAt;
use std::ffi::OsString;
use std::path::PathBuf;

const EXIT_CODES: &str = "\
Example:
  onbeat run examples/01-two-hosts

Exit codes:
  0    everything is fine
  1    the description, or the plan that follows from it, has errors; compare: it is worse
  2    the arguments are wrong
  3    a run or a simulation broke a promise; tfg: systems spoil each other's times
  4    a run ended before its time: a program died, hung or talked nonsense
  5    the machine did not do what was asked (a file, a socket)
  6    tfg: nothing is proven beyond the iterations that were computed
  130  a run or a simulation was interrupted";

const CC: &str = "\
Options:
  -o FILE            write to FILE
  -c                 compile only, FILE.c to FILE.o
  -S                 write the C that FILE.c becomes to FILE.timed.c; `-o -` to standard output
  -E                 the same behind the preprocessor
  --keep-phase       soft, firm and hard points that are passed late keep their phase
  --origin ORIGIN    what points of called functions count from: task, the default, or function
  --bind BINDING     what an abstract channel is: chan=fifo, chan=fifo:64,double, or of a run's
                     description chan=network:speed; several where a program has several
  --starts TASKS     the tasks that start, as sensor,filter; starts of all others do nothing
  --target TARGET    posix, the default, or freertos
  --kernel DIR       the source tree of the FreeRTOS kernel, for a program with --target freertos
  --json             also print what is wrong as JSON
All others, and files that are not C, go to the C compiler: $CC, or cc.

Examples:
  onbeat cc talker.c -o talker
  onbeat cc -O2 -g -Iinclude main.c tasks.c filter.o -lm -o controller
  onbeat cc -c tasks.c -o build/tasks.o -MMD
  onbeat cc -S talker.c -o -
  CC=clang onbeat cc talker.c -o talker
  make CC='onbeat cc'
  onbeat cc --target freertos --kernel FreeRTOS-Kernel talker.c -o talker

Headers and libraries are found beside this command, or in $ONBEAT_HOME (docs/cli.md). Exits with 1
if something is wrong in the files. docs/timed-c.md describes the language.";

const DOCTOR: &str = "\
Examples:
  onbeat doctor
  onbeat doctor examples/01-two-hosts --host talker --interface eth0
  onbeat doctor --pid 4711 --all
  onbeat doctor --save here.json; onbeat doctor examples/01-two-hosts --facts here.json
  onbeat doctor --script setup.sh

Exits with 0 if all is fine, 1 if there is advice, 2 if a promise of the system cannot be kept like
this (docs/doctor.md).";

/// The most repetitions of one simulation.
pub(crate) const REPETITIONS_MAX: i64 = 1_000_000;
/// The most iterations of which a time-flow graph's times are computed.
const ITERATIONS_MAX: i64 = 1_000;

/// Distributed real-time systems on Linux and Ethernet: described once, analysed, planned, run and
/// measured against what was promised.
#[derive(Debug, Parser)]
#[command(name = "onbeat", version, after_help = EXIT_CODES, max_term_width = 100)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Makes a directory with a small system to begin with
    #[command(after_help = "Examples:
  onbeat new press --template control-loop
  onbeat new --list

The directory has a description, C programs, a Makefile and a README. It must not exist yet. Then
`make`, `onbeat check`, `onbeat plan` and `onbeat run` work in it (docs/tutorial.md).")]
    New(crate::new::NewArguments),
    /// Checks a description and reports everything that is wrong with it
    #[command(after_help = "Examples:
  onbeat check examples/01-two-hosts
  onbeat check large.toml --no-bounds")]
    Check(CheckArguments),
    /// Routes, reserves and bounds: what the network promises
    #[command(after_help = "Examples:
  onbeat plan examples/01-two-hosts --json
  onbeat plan examples/01-two-hosts --deploy tables
  ONBEAT_INTERFACE=eth0 ONBEAT_SYSTEM=tables/talker.channels ./program")]
    Plan(PlanArguments),
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

The last two are typed on two machines within one minute; their clocks must be synchronised
(docs/engines.md).

Writes report.html, results.json and, per run, records.onb and messages.csv.")]
    Run(RunArguments),
    /// Simulates a system in virtual time with modelled traffic only
    #[command(after_help = "Examples:
  onbeat simulate examples/01-two-hosts --duration 1s
  onbeat simulate examples/01-two-hosts --repetitions 100 --phases random --seed 8
  onbeat simulate examples/01-two-hosts --duration 10ms --capture two-hosts.pcapng
  onbeat simulate large.toml --duration 10ms --no-bounds
  onbeat simulate examples/01-two-hosts --capture x.pcapng --capture-port cat1.p4 --json

No program is started: channels are modelled, one message each interval. Writes simulation.json and
simulation.html; exits with 3 if a bound was exceeded (docs/simulate.md).")]
    Simulate(SimulateArguments),
    /// Bounds the latency of every channel and stream, and what may wait in every queue
    #[command(after_help = "Examples:
  onbeat bounds examples/01-two-hosts
  onbeat bounds network.json --method best --json

A file that ends in .json is a FIFO network in the form of Saihu and panco (docs/simulate.md).")]
    Bounds(BoundsArguments),
    /// Says when each timing point, piece of code and channel end of programs begins and ends
    #[command(after_help = "Examples:
  onbeat tfg examples/05-control-loop
  onbeat tfg tasks.toml --level platform --html times.html
  onbeat tfg sensor.c processor.c --iterations 3
  onbeat tfg examples/05-control-loop --dot - | dot -Tpdf -o graph.pdf
  onbeat tfg examples/05-control-loop --json --unprotected
  onbeat tfg sensing.toml logging.toml
  onbeat tfg --compose sensor.c logger.c

Shows whether the system is composable to its logical timing and, if not, on which way the bound is
lost; arrivals and releases by iteration; chains; deadlines that may be missed. These are findings,
not errors: the exit code is 0, but for 6 where nothing is proven beyond the iterations that were
computed (docs/time-flow-graphs.md).

Of several systems it shows whether each has the times that it has alone (0), or what spoils them
(3); 6 where that is not proven, or one has times without a bound alone.")]
    Tfg(TfgArguments),
    /// Compiles Timed C and plain C, and links, as a C compiler driver does
    #[command(disable_help_flag = true, after_help = CC)]
    Cc(CcArguments),
    /// Checks whether this machine can keep a system's guarantees; changes nothing
    #[command(after_help = DOCTOR)]
    Doctor(crate::doctor::DoctorArguments),
    /// Rebuilds the report of the last run
    #[command(after_help = "Example:\n  onbeat report examples/01-two-hosts")]
    Report(ReportArguments),
    /// Shows the counters of all channel ends of all running programs
    #[command(after_help = "Examples:
  onbeat stat
  onbeat stat --watch --channel joint_targets
  onbeat stat --pid 4711 --json

Other users' programs are shown to the superuser only.")]
    Stat(StatArguments),
    /// Sets this machine up for a real-time system, and back
    Tune(crate::tune::TuneArguments),
    /// Measures programs, and this machine: the five tests of synchronised time
    Measure {
        #[command(subcommand)]
        what: MeasureVerb,
    },
    /// Says whether the second of two runs is better or worse than the first
    #[command(after_help = "Examples:
  onbeat compare before after
  onbeat compare before after --effect 2% --html comparison.html
  onbeat compare measured-monday measured-tuesday --json

Takes the output directories of two runs, simulations with repetitions, or measurements of one
system. Exits with 1 if the second is worse (docs/compare.md).")]
    Compare(CompareArguments),
    /// Keeps this node's clock on the network's time with linuxptp, and says whether it is
    Clock {
        #[command(subcommand)]
        what: ClockVerb,
    },
    /// Makes noise on a real network, and counts what comes through
    Noise {
        #[command(subcommand)]
        what: NoiseVerb,
    },
    /// Writes the description's channels as a manifest for C programs
    #[command(after_help = "Example:\n  onbeat manifest examples/03-robot-arm --c > manifest.h")]
    Manifest(ManifestArguments),
    /// Prints the JSON Schema of a file format
    Schema {
        /// Which format
        kind: SchemaKind,
    },
    /// Prints a script with which a shell completes this command's arguments
    #[command(after_help = "Example:
  onbeat completions bash > ~/.local/share/bash-completion/completions/onbeat

`make install` installs the scripts where shells find them.")]
    Completions {
        /// Which shell
        shell: crate::completions::Shell,
    },
    /// Clears up after a run that was killed
    #[command(hide = true)]
    Keeper,
}

#[derive(Debug, Args)]
pub(crate) struct CheckArguments {
    /// The description, or the directory of a system.toml
    pub(crate) system: PathBuf,
    /// Compute no bounds and no times of programs, and report nothing that follows from them
    #[arg(long)]
    pub(crate) no_bounds: bool,
    /// Trust the directory of the description, now and later: its `cflags` go to the C compiler as
    /// they are, and files elsewhere that it names are read
    #[arg(long)]
    pub(crate) trust: bool,
    /// Print JSON for machines
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PlanArguments {
    /// The description, or the directory of a system.toml
    pub(crate) system: PathBuf,
    /// Make no reservations
    #[arg(long)]
    pub(crate) unprotected: bool,
    /// Write into this directory, for each host, the table of its channels that programs on an
    /// interface read: HOST.channels
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) deploy: Option<PathBuf>,
    /// Trust the directory of the description, now and later: its `cflags` go to the C compiler as
    /// they are, and files elsewhere that it names are read
    #[arg(long)]
    pub(crate) trust: bool,
    /// Print JSON for machines
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RunArguments {
    /// The description, the directory of a system.toml, or the C files of one program
    #[arg(value_name = "SYSTEM|FILE.c", required = true, num_args = 1..)]
    pub(crate) system: Vec<PathBuf>,
    /// Of C files, what timing points of called functions count from [default: task]
    #[arg(long)]
    pub(crate) origin: Option<CountFrom>,
    /// Of C files, what an abstract channel is, as in chan=fifo or chan=fifo:64,double
    #[arg(long, value_name = "NAME=fifo[:VALUES][,TYPE]")]
    pub(crate) bind: Vec<Binding>,
    /// Run one of the description's scenarios instead of its [run] settings
    #[arg(long, value_name = "NAME")]
    pub(crate) scenario: Option<String>,
    /// Run all of the description's scenarios, one after the other
    #[arg(long, conflicts_with = "scenario")]
    pub(crate) all_scenarios: bool,
    /// Virtual time: deterministic, as fast as it goes. Real time: paced by this machine's clock
    #[arg(long)]
    pub(crate) time: Option<Time>,
    /// Which network carries the frames; on this machine's own, time is real
    #[arg(long, default_value = "emulated", conflicts_with = "interface")]
    pub(crate) network: Network,
    /// Run one host's programs on this interface of this machine, in real time
    #[arg(long, value_name = "NAME", requires = "host", conflicts_with = "all_scenarios")]
    pub(crate) interface: Option<String>,
    /// Which of the description's hosts this machine is
    #[arg(long, value_name = "NAME", requires = "interface")]
    pub(crate) host: Option<String>,
    /// When a run with --interface starts, the same on all machines: an instant of UTC, as in
    /// 2026-12-01T08:00:00Z, or +5s from now [default: the next full minute]
    #[arg(long, value_name = "TIME", value_parser = start, requires = "interface")]
    pub(crate) start: Option<StartAt>,
    /// How frames get to the kernel, with --network netns or --interface [default: packet]
    #[arg(long)]
    pub(crate) transport: Option<Transport>,
    /// Readers sleep to shortly before a message is due, then poll; with --network netns or
    /// --interface
    #[arg(long, alias = "follow-schedule")]
    pub(crate) poll_expected: bool,
    /// How long talkers may write, as in 20s, 500ms or 5min; a bare number is seconds
    #[arg(long, value_parser = duration)]
    pub(crate) duration: Option<Span>,
    /// Where all randomness comes from
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Make no reservations
    #[arg(long)]
    pub(crate) unprotected: bool,
    /// Real time: programs write a marker into the kernel's trace for each message
    #[arg(long)]
    pub(crate) trace: bool,
    /// Programs of Timed C write there what their tasks do: DIRECTORY/PROGRAM.csv
    #[arg(long, value_name = "DIRECTORY", conflicts_with = "all_scenarios")]
    pub(crate) task_trace: Option<PathBuf>,
    /// Real time: freeze the kernel's trace when a message takes longer, in microseconds
    #[arg(long, value_name = "MICROSECONDS", value_parser = micros)]
    pub(crate) break_us: Option<Span>,
    /// Where to write [default: `out` beside the description]
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) out: Option<PathBuf>,
    /// Put what is written on the disk before it has its name: neither a crash of the machine nor
    /// a loss of power leaves it in part
    #[arg(long)]
    pub(crate) sync: bool,
    /// Print JSON for machines (docs/results.md)
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SimulateArguments {
    /// The description, or the directory of a system.toml
    pub(crate) system: PathBuf,
    /// Use one of the description's scenarios instead of its [run] settings
    #[arg(long, value_name = "NAME")]
    pub(crate) scenario: Option<String>,
    /// How long sources release frames, as in 20s, 500ms or 5min; a bare number is seconds
    #[arg(long, value_parser = duration)]
    pub(crate) duration: Option<Span>,
    /// Where all randomness comes from
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// How many times, each with randomness of its own
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=REPETITIONS_MAX))]
    pub(crate) repetitions: u32,
    /// When sources release their first frames [default: described; random with --repetitions]
    #[arg(long)]
    pub(crate) phases: Option<Phases>,
    /// Make no reservations
    #[arg(long)]
    pub(crate) unprotected: bool,
    /// Compute no bounds: what is seen has none beside it; deadlines are judged all the same
    #[arg(long)]
    pub(crate) no_bounds: bool,
    /// Repetitions that run at once; changes no result [default: the cores there are]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1_024))]
    pub(crate) jobs: Option<u16>,
    /// Write what ports send as pcapng for Wireshark, of the first repetition
    #[arg(long, value_name = "FILE")]
    pub(crate) capture: Option<PathBuf>,
    /// A port to capture, as in cat1.p2; may be repeated [default: all]
    #[arg(long, value_name = "NODE.PORT", requires = "capture")]
    pub(crate) capture_port: Vec<String>,
    /// Where to write [default: `out-simulation` beside the description]
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) out: Option<PathBuf>,
    /// Put what is written on the disk before it has its name: neither a crash of the machine nor
    /// a loss of power leaves it in part
    #[arg(long)]
    pub(crate) sync: bool,
    /// Print JSON for machines (docs/simulation-results.md)
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct BoundsArguments {
    /// The description, the directory of a system.toml, or a FIFO network as JSON
    #[arg(value_name = "SYSTEM|NETWORK.json")]
    pub(crate) subject: PathBuf,
    /// Make no reservations
    #[arg(long)]
    pub(crate) unprotected: bool,
    /// Bound a network with this method only [default: both]
    #[arg(long)]
    pub(crate) method: Option<Method>,
    /// Print JSON for machines (docs/cli.md)
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct TfgArguments {
    /// The description, the directory of a system.toml, a task model, or the C files of one
    /// program; several to put them together
    #[arg(value_name = "SYSTEM|TASKS.toml|FILE.c", required = true, num_args = 1..)]
    pub(crate) subject: Vec<PathBuf>,
    /// Put together what is given: each C file is a program of its own
    #[arg(long)]
    pub(crate) compose: bool,
    /// Whose times the table and the SVG show
    #[arg(long, default_value = "program")]
    pub(crate) level: TimeLevel,
    /// How many iterations of each task's outermost loop are computed, at least, and shown
    #[arg(long, value_name = "N", default_value_t = 8,
          value_parser = clap::value_parser!(u32).range(1..=ITERATIONS_MAX))]
    pub(crate) iterations: u32,
    /// Write a page with the graph, the tables and all that was found
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Write the graph as a picture
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
    /// Write the graph for Graphviz; - for standard output, instead of the table
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    pub(crate) dot: Option<PathBuf>,
    /// Make no reservations
    #[arg(long)]
    pub(crate) unprotected: bool,
    /// Of C files, what timing points of called functions count from [default: task]
    #[arg(long)]
    pub(crate) origin: Option<CountFrom>,
    /// Of C files, what an abstract channel is, as in chan=fifo or chan=fifo:64,double
    #[arg(long, value_name = "NAME=fifo[:VALUES][,TYPE]")]
    pub(crate) bind: Vec<Binding>,
    /// Trust the directory of the description, now and later: its `cflags` go to the C compiler as
    /// they are, and files elsewhere that it names are read
    #[arg(long)]
    pub(crate) trust: bool,
    /// Print JSON for machines (docs/cli.md)
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
    /// The description, or the directory of a system.toml
    pub(crate) system: PathBuf,
    /// Where the run was written [default: `out` beside the description]
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) out: Option<PathBuf>,
    /// Put what is written on the disk before it has its name: neither a crash of the machine nor
    /// a loss of power leaves it in part
    #[arg(long)]
    pub(crate) sync: bool,
    /// Of a run that was cut off: what it had recorded until then
    #[arg(long)]
    pub(crate) recovered: bool,
    /// Trust the directory of the description, now and later: its `cflags` go to the C compiler as
    /// they are, and files elsewhere that it names are read
    #[arg(long)]
    pub(crate) trust: bool,
    /// Print JSON for machines (docs/results.md)
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct StatArguments {
    /// Show the programs of this process only
    #[arg(long, value_name = "NUMBER")]
    pub(crate) pid: Option<u32>,
    /// Show this channel only
    #[arg(long, value_name = "NAME")]
    pub(crate) channel: Option<String>,
    /// Show it again each second, with rates, until interrupted
    #[arg(long)]
    pub(crate) watch: bool,
    /// Print JSON for machines (docs/cli.md)
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ManifestArguments {
    /// The description, or the directory of a system.toml
    pub(crate) system: PathBuf,
    /// As a C header (the only form there is)
    #[arg(long, required = true)]
    pub(crate) c: bool,
    /// In the first generation's spelling: struct net_fifo, class, freq
    #[arg(long)]
    pub(crate) first_generation: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Time {
    /// Deterministic, as fast as it goes
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
pub(crate) enum Network {
    /// The network engine
    Emulated,
    /// The kernel's: a namespace per host and bridge, joined by virtual links
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
    /// As the description says
    Described,
    /// Each source at an instant of its first interval, drawn from the seed
    Random,
    /// Such that one frame meets as many others as it can, another one in each repetition
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
    /// The task's last timing point
    Task,
    /// The call
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
    /// Logical time: code takes none
    Program,
    /// With execution times, and late wake-ups
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
    /// A task model, tasks.toml
    Tasks,
    /// results.json, what `--json` prints
    Results,
    /// simulation.json, what `simulate --json` prints
    Simulation,
    /// What `tfg --json` prints
    Tfg,
    /// measurement.json, what `measure` prints with `--json`
    Measurement,
    /// campaign.json, what `measure campaign --json` prints
    Campaign,
    /// What `compare --json` prints
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
        .ok_or_else(|| format!("a run lasts more than nothing and at most {most}"))
}

fn micros(text: &str) -> Result<Span, String> {
    let most = onbeat_model::limits::DURATION;
    let ns = text.parse::<i64>().ok().and_then(|us| us.checked_mul(1_000));
    ns.map(Span::from_ns)
        .filter(|span| *span > Span::ZERO && *span <= most)
        .ok_or_else(|| "expected a whole number of microseconds above 0".to_owned())
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
