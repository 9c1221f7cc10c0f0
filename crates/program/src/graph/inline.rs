//! Tasks with all functions in them that do something with time or channels.

use super::unit::{
    Act, Argument, Call, ChannelRef, Effect, Fifo, Function, Hold, Latest, Object, Scheduling,
    SourcePlace, Thing, UnitGraph,
};
use super::{doubt, hold, is_abstract, lost, nodes, unbound};
use crate::timedc::{Integer, endless_loop, is_timed};
use onbeat_model::codes::timing;
use onbeat_model::diagnostic::{Diagnostic, Origin};
use onbeat_model::graph::{Channel, ChannelKind, Expression, Graph, Interval, PointKind, Task};
use std::collections::{BTreeMap, HashMap, HashSet};

/// The most steps of a program's tasks, and how deep calls of functions in them may be.
const STEPS_MAX: usize = 100_000;
const DEPTH_MAX: usize = 200;
/// The most tasks: one more than a program can start.
const TASKS_MAX: usize = 257;

/// What happens at a step of a task.
#[derive(Clone, Debug)]
pub(super) enum Does {
    Nothing,
    Start,
    End,
    Code,
    Work(Interval),
    Point {
        kind: PointKind,
        period: Expression,
        deadline: Option<Expression>,
    },
    Gettime,
    /// The origin is again what it was before a function was called.
    Restore,
    Skip,
    Run(usize),
    Write {
        channel: usize,
        waits: bool,
    },
    Read {
        channel: usize,
        waits: bool,
    },
    Latest {
        variable: String,
        is_write: bool,
    },
    Init(usize),
    Lock(usize),
    Take(usize),
    Unlock(usize),
    Hold(Vec<Held>),
    /// Control comes to a firm or hard point and something is held.
    Held,
    Set {
        register: u32,
        value: Expression,
        is_code: bool,
    },
    Branch(Expression),
    Any,
}

/// What is obtained, or given back.
#[derive(Clone, Debug)]
pub(super) struct Held {
    pub thing: Thing,
    pub effect: Effect,
    /// The call that a local name belongs to, and the name.
    pub name: Option<(u32, String)>,
}

/// A step of a task.
#[derive(Clone, Debug)]
pub(super) struct Raw {
    pub does: Does,
    pub next: Vec<usize>,
    pub guard: Option<usize>,
    pub place: String,
    /// What is added to the registers of its expressions.
    pub base: u32,
    pub origin: Origin,
}

/// A function of a unit.
type At = (usize, usize);

/// A value that is passed, and its type if that is known.
type Passed = (Expression, Option<Integer>);

/// A resource by what it is: the unit, if no other one can mean it, and where a function's own is
/// declared.
type Resource = (Option<usize>, usize, String);

/// A task to be made.
struct Wanted {
    function: At,
    arguments: Vec<Passed>,
    objects: Vec<Option<Resource>>,
}

/// Makes the tasks of a program.
pub(super) struct Linker<'a> {
    units: &'a [UnitGraph],
    program: &'a str,
    pub graph: Graph,
    pub diagnostics: Vec<Diagnostic>,
    /// What is not known for certain of a program that can be followed.
    pub warnings: Vec<Diagnostic>,
    /// Those of the graph.
    resources: HashMap<Resource, usize>,
    /// Those of unknown identity: where they first are locked.
    vague: BTreeMap<String, (usize, Origin)>,
    by_name: Vec<HashMap<&'a str, usize>>,
    shared: HashMap<&'a str, At>,
    /// Functions that are looked into, and those of them in which only execution times pass.
    followed: HashSet<At>,
    only_work: HashSet<At>,
    /// Those of them that only obtain things, or give them back.
    only_hold: HashSet<At>,
    fifos: BTreeMap<(Option<usize>, usize, String), usize>,
    wanted: Vec<Wanted>,
    /// The steps of each task.
    pub tasks: Vec<Vec<Raw>>,
    count: usize,
    is_full: bool,
}

impl<'a> Linker<'a> {
    pub(super) fn new(units: &'a [UnitGraph], program: &'a str, graph: Graph) -> Self {
        let mut by_name = Vec::new();
        let mut shared = HashMap::new();
        for (unit, made) in units.iter().enumerate() {
            let mut names = HashMap::new();
            for (index, function) in made.functions.iter().enumerate() {
                names.entry(function.name.as_str()).or_insert(index);
                if !function.is_static {
                    shared.entry(function.name.as_str()).or_insert((unit, index));
                }
            }
            by_name.push(names);
        }
        Self {
            units,
            program,
            graph,
            diagnostics: Vec::new(),
            warnings: Vec::new(),
            resources: HashMap::new(),
            vague: BTreeMap::new(),
            by_name,
            shared,
            followed: HashSet::new(),
            only_work: HashSet::new(),
            only_hold: HashSet::new(),
            fifos: BTreeMap::new(),
            wanted: Vec::new(),
            tasks: Vec::new(),
            count: 0,
            is_full: false,
        }
    }

    fn function(&self, at: At) -> &'a Function {
        &self.units[at.0].functions[at.1]
    }

    /// The function that a name means in a unit.
    fn named(&self, unit: usize, name: &str) -> Option<At> {
        let own = self.by_name[unit].get(name).map(|index| (unit, *index));
        own.or_else(|| self.shared.get(name).copied())
    }

    /// A place of a unit's files, counted through all units.
    pub(super) fn origin(&self, unit: usize, origin: Origin) -> Origin {
        let before: u16 = self.units[..unit].iter().map(|u| u.file_count).sum();
        Origin { file: origin.file.saturating_add(before), ..origin }
    }

    fn lose(&mut self, unit: usize, origin: Origin, text: &str, label: &str, help: &str) {
        let at = self.origin(unit, origin);
        self.diagnostics.push(lost(text, at, label, help));
    }

    pub(super) fn run(&mut self) {
        self.follow();
        self.pointers();
        for function in self.first() {
            let (arguments, objects) = (Vec::new(), Vec::new());
            self.wanted.push(Wanted { function, arguments, objects });
        }
        let first = self.wanted.len();
        let mut at = 0;
        while at < self.wanted.len() && !self.is_full {
            self.task(at, at < first);
            at += 1;
        }
        self.vague();
        if self.diagnostics.is_empty() {
            self.starts_and_inits();
            self.origins();
        }
        if self.diagnostics.is_empty() {
            self.shape();
        }
    }

    /// Which functions do something with time or channels, themselves or in what they call.
    fn follow(&mut self) {
        let all = |units: &[UnitGraph]| -> Vec<At> {
            let of = |(unit, made): (usize, &UnitGraph)| {
                (0..made.functions.len()).map(move |f| (unit, f)).collect::<Vec<_>>()
            };
            units.iter().enumerate().flat_map(of).collect()
        };
        let all = all(self.units);
        // Without a firm or hard point nothing has to wait.
        let mut steps = all.iter().flat_map(|at| &self.function(*at).steps);
        let is_guarded = steps.any(|step| step.guard.is_some());
        let (mut timed, mut works) = (HashSet::new(), HashSet::new());
        loop {
            let before = (self.followed.len(), timed.len(), works.len());
            for at in &all {
                for step in &self.function(*at).steps {
                    let (follows, works_here, is_timed) = match &step.act {
                        Act::Work(_) => (true, true, false),
                        Act::Hold(_) => (is_guarded, false, false),
                        Act::Call(call) => match self.named(at.0, &call.name) {
                            Some(to) => {
                                let follows = self.followed.contains(&to);
                                (follows, works.contains(&to), timed.contains(&to))
                            }
                            None => [is_abstract(call); 3].into(),
                        },
                        Act::Nothing
                        | Act::Code
                        | Act::Set { .. }
                        | Act::Branch(_)
                        | Act::Any
                        | Act::Exit => (false, false, false),
                        _ => (true, true, true),
                    };
                    if follows {
                        self.followed.insert(*at);
                    }
                    if works_here {
                        works.insert(*at);
                    }
                    if is_timed {
                        timed.insert(*at);
                    }
                }
            }
            if before == (self.followed.len(), timed.len(), works.len()) {
                break;
            }
        }
        self.only_hold = self.followed.difference(&works).copied().collect();
        self.only_work = self.followed.difference(&timed).copied().collect();
    }

    /// Functions that may be called through pointers.
    fn pointers(&mut self) {
        let units = self.units;
        for (unit, made) in units.iter().enumerate() {
            for (name, origin) in &made.pointers {
                let own = |f: At| self.followed.contains(&f) && !self.only_hold.contains(&f);
                if self.named(unit, name).map_or_else(|| is_timed(name), own) {
                    let what = "is timed code and may be called through a pointer";
                    let text = format!("`{name}` {what}");
                    let help = "call it by its name, or start it as a task";
                    self.lose(unit, *origin, &text, "the time of the call is unknown", help);
                }
            }
        }
    }

    /// What begins with the program.
    fn first(&self) -> Vec<At> {
        if let Some(main) = self.shared.get("main") {
            return vec![*main];
        }
        let mut started: HashSet<At> = HashSet::new();
        let mut tasks = Vec::new();
        for (unit, made) in self.units.iter().enumerate() {
            for (index, function) in made.functions.iter().enumerate() {
                if function.is_task {
                    tasks.push((unit, index));
                }
                for step in &function.steps {
                    if let Act::Start(call) = &step.act {
                        started.extend(self.named(unit, &call.name));
                    }
                }
            }
        }
        tasks.retain(|task| !started.contains(task) && self.function(*task).starts);
        tasks
    }

    fn task(&mut self, at: usize, is_first: bool) {
        let Wanted { function, arguments, objects } = &self.wanted[at];
        let (at, arguments, objects) = (*function, arguments.clone(), objects.clone());
        let function = self.function(at);
        let unit = &self.units[at.0];
        let Scheduling { policy, priority, separation, keeps_phase } = function.scheduling;
        let task = Task {
            name: self.task_name(&function.name),
            program: self.program.to_owned(),
            file: unit.file.clone(),
            keeps_phase: keeps_phase.unwrap_or(unit.keeps_phase),
            is_first,
            policy: policy.unwrap_or_default(),
            priority,
            separation,
            ..Task::default()
        };
        self.graph.tasks.push(task);
        let mut maker = Inliner {
            linker: self,
            steps: Vec::new(),
            registers: 0,
            home: at.0,
            stack: Vec::new(),
        };
        maker.begin(at, &arguments, &objects);
        let steps = maker.steps;
        self.tasks.push(steps);
    }

    fn task_name(&self, name: &str) -> String {
        let is_same = |task: &&Task| task.name.split('#').next() == Some(name);
        match self.graph.tasks.iter().filter(is_same).count() {
            0 => name.to_owned(),
            count => format!("{name}#{}", count + 1),
        }
    }

    fn fifo(&mut self, unit: usize, index: usize) -> usize {
        let fifo = &self.units[unit].fifos[index];
        let key = match fifo.is_shared {
            true => (None, usize::from(fifo.is_bound), fifo.name.clone()),
            false => (Some(unit), index, fifo.name.clone()),
        };
        if let Some(known) = self.fifos.get(&key) {
            return *known;
        }
        let all = self.units.iter().flat_map(|u| &u.fifos);
        let kind = |f: &Fifo| (f.is_shared, f.is_bound);
        let mut same = all.filter(|f| kind(f) == (true, fifo.is_bound) && f.name == fifo.name);
        let stated = match fifo.is_shared {
            true => same.find_map(|f| f.capacity),
            false => fifo.capacity,
        };
        if stated.is_none() {
            let text = format!("the capacity of `{}` is unknown", fifo.name);
            let help = "write the number, and give `onbeat tfg` all files of the program";
            self.lose(unit, fifo.origin, &text, "unknown capacity", help);
        }
        let name = format!("{}.{}", self.program, fifo.name);
        let kind = ChannelKind::Fifo { capacity: stated.unwrap_or(0) };
        let channel = self.channel(&name, kind);
        self.fifos.insert(key, channel);
        channel
    }

    /// A new channel; the second one of a name is `name#2`.
    fn channel(&mut self, name: &str, kind: ChannelKind) -> usize {
        let is_same = |c: &&Channel| c.name.split('#').next() == Some(name);
        let count = self.graph.channels.iter().filter(is_same).count();
        let name = if count == 0 { name.to_owned() } else { format!("{name}#{}", count + 1) };
        self.graph.channels.push(Channel { name, kind });
        self.graph.channels.len() - 1
    }

    fn network(&mut self, name: &str) -> usize {
        let mut all = self.graph.channels.iter();
        let is_it = |c: &Channel| c.kind == ChannelKind::Named && c.name == name;
        if let Some(known) = all.position(is_it) {
            return known;
        }
        self.graph.channels.push(Channel { name: name.to_owned(), kind: ChannelKind::Named });
        self.graph.channels.len() - 1
    }

    fn resource(&mut self, resource: Resource) -> usize {
        if let Some(known) = self.resources.get(&resource) {
            return *known;
        }
        let name = &resource.2;
        let is_same = |known: &&String| known.split('#').next() == Some(name);
        let name = match self.graph.resources.iter().filter(is_same).count() {
            0 => name.clone(),
            count => format!("{name}#{}", count + 1),
        };
        self.graph.resources.push(name);
        self.resources.insert(resource, self.graph.resources.len() - 1);
        self.graph.resources.len() - 1
    }

    /// One of unknown identity: all of the same words are one.
    fn vague_resource(&mut self, name: &str, origin: Origin) -> usize {
        if let Some((known, _)) = self.vague.get(name) {
            return *known;
        }
        self.graph.resources.push(name.to_owned());
        let at = self.graph.resources.len() - 1;
        self.vague.insert(name.to_owned(), (at, origin));
        at
    }

    /// One of unknown identity may be any of the program's.
    fn vague(&mut self) {
        let count = self.graph.resources.len();
        for (name, (at, origin)) in &self.vague {
            let others = (0..count).filter(|other| other != at).collect();
            self.graph.aliases.push((*at, others));
            let text =
                format!("the mutex `{name}` is unknown: the analysis assumes any of the program's");
            let help = "lock it by its name, or by a pointer that always has one value";
            self.warnings.push(doubt(&text, *origin, help));
        }
    }

    /// Nothing is started again and again, and no fifochannel is emptied that may have values.
    fn starts_and_inits(&mut self) {
        let tasks = std::mem::take(&mut self.tasks);
        let starts = starts(&tasks);
        for (task, steps) in tasks.iter().enumerate() {
            for (at, step) in steps.iter().enumerate() {
                let is_run = matches!(step.does, Does::Run(_));
                if is_run && nodes::reachable(steps, &step.next).contains(&at) {
                    let text = "a task is started in a loop";
                    let help = "write one call for each task";
                    self.diagnostics.push(lost(text, step.origin, "unknown number", help));
                }
            }
            let mut emptied: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
            for (at, step) in steps.iter().enumerate() {
                if let Does::Init(channel) = step.does {
                    emptied.entry(channel).or_default().push(at);
                }
            }
            for (channel, places) in emptied {
                let late = after_writes(&tasks, &starts, task, channel);
                for at in places.into_iter().filter(|at| late.contains(at)) {
                    let text = "`cinit` may empty a fifochannel that was written";
                    let help = "call it before the start of the tasks that write it";
                    self.diagnostics.push(lost(text, steps[at].origin, "emptied here", help));
                }
            }
        }
        self.tasks = tasks;
    }

    /// A point that counts from before a function with an origin of its own: the graph has one
    /// origin only.
    fn origins(&mut self) {
        for steps in &mut self.tasks {
            for at in 0..steps.len() {
                if !matches!(steps[at].does, Does::Restore) {
                    continue;
                }
                let (mut open, mut seen) = (steps[at].next.clone(), HashSet::from([at]));
                while let Some(now) = open.pop() {
                    if !seen.insert(now) {
                        continue;
                    }
                    match steps[now].does {
                        Does::Gettime | Does::End | Does::Restore => {}
                        Does::Point { .. } => {
                            let text = "a timing point counts from before the call of a function \
                                        that counts from its own";
                            let help = "call such a function where one timing point, or the \
                                        task's end, comes before; or leave `--origin function`";
                            let label = "it counts from before the call";
                            self.diagnostics.push(lost(text, steps[now].origin, label, help));
                        }
                        _ => open.extend(&steps[now].next),
                    }
                }
                steps[at].does = Does::Nothing;
            }
        }
    }

    fn shape(&mut self) {
        let tasks = std::mem::take(&mut self.tasks);
        for (index, steps) in tasks.into_iter().enumerate() {
            let at = steps.first().map_or(Origin::default(), |s| s.origin);
            let Some(hold::Deferred { steps, unknown }) = hold::defer(steps) else {
                let name = &self.graph.tasks[index].name;
                let text = format!("`{name}` holds more resources than the analysis can track");
                let help = "release resources in the segment that obtained them";
                self.diagnostics.push(lost(&text, at, "this task", help));
                continue;
            };
            self.warnings.extend(unknown.into_iter().map(unknown_hold));
            match nodes::task(steps) {
                Some(nodes::Made { nodes, latest, registers }) => {
                    let task = &mut self.graph.tasks[index];
                    (task.nodes, task.latest, task.registers) = (nodes, latest, registers);
                }
                None => {
                    let text = format!("`{}` has too many variables", self.graph.tasks[index].name);
                    self.diagnostics.push(lost(&text, at, "this task", "split the task"));
                }
            }
        }
    }
}

/// Makes the steps of one task.
struct Inliner<'l, 'a> {
    linker: &'l mut Linker<'a>,
    steps: Vec<Raw>,
    registers: u32,
    /// The unit whose main file the task's places count lines of.
    home: usize,
    /// The functions that are being called.
    stack: Vec<At>,
}

/// What a function is called with.
struct Entry<'e> {
    /// The guard that holds in it, but for what a point of its own guards.
    guard: Option<usize>,
    /// Whether that ends at its first point.
    is_foreign: bool,
    in_critical: bool,
    arguments: &'e [Passed],
    /// Of the caller's registers.
    base: u32,
    ends: &'e [Option<usize>],
    /// What is passed points to.
    objects: &'e [Option<Resource>],
    /// Where places are that only execution times pass at.
    place: Option<&'e str>,
}

impl<'a> Inliner<'_, 'a> {
    fn push(&mut self, does: Does, place: String, base: u32, origin: Origin) -> usize {
        self.steps.push(Raw { does, next: Vec::new(), guard: None, place, base, origin });
        self.linker.count += 1;
        self.steps.len() - 1
    }

    fn begin(&mut self, at: At, arguments: &[Passed], objects: &[Option<Resource>]) {
        let origin = self.linker.origin(at.0, self.linker.function(at).origin);
        let start = self.push(Does::Start, "start".to_owned(), 0, origin);
        let ends = vec![None; arguments.len()];
        let entry = Entry {
            guard: None,
            is_foreign: false,
            in_critical: false,
            arguments,
            base: 0,
            ends: &ends,
            objects,
            place: None,
        };
        let (first, exit) = self.function(at, &entry);
        self.steps[start].next.push(first);
        let end = self.push(Does::End, "end".to_owned(), 0, origin);
        self.steps[exit].next.push(end);
        for step in &mut self.steps[..end] {
            // What ends the program ends the task.
            if step.next == [usize::MAX] {
                step.next = vec![end];
            }
        }
    }

    /// The steps of a function: where it begins, and where it ends.
    fn function(&mut self, at: At, entry: &Entry<'_>) -> (usize, usize) {
        let function = self.linker.function(at);
        if let Some(origin) = function.leap {
            let text = format!("`{}` jumps to a computed label", function.name);
            let help = "name the label, or choose with `switch`";
            self.linker.lose(at.0, origin, &text, "unknown target", help);
        }
        for (text, origin) in &function.doubts {
            let origin = self.linker.origin(at.0, *origin);
            let help = "`onbeat tfg` has no bound for the code after it";
            self.linker.warnings.push(doubt(text, origin, help));
        }
        let first = self.steps.len();
        let base = self.registers;
        self.registers = self.registers.saturating_add(u32::from(function.variable_count));
        self.stack.push(at);
        let fresh = if entry.is_foreign { before_points(function) } else { HashSet::new() };
        for (index, step) in function.steps.iter().enumerate() {
            let place = match entry.place {
                Some(place) => place.to_owned(),
                None => self.place(at.0, &step.place, &step.act),
            };
            let origin = self.linker.origin(at.0, step.origin);
            let now = self.push(Does::Nothing, place, base, origin);
            self.steps[now].next = step.next.iter().map(|n| first + n).collect();
            let inherits = !function.has_points || entry.is_foreign && fresh.contains(&index);
            let inherited = entry.guard.filter(|_| inherits);
            let own = step.guard.map(|point| first + point).or(inherited);
            let is_critical = step.in_critical || entry.in_critical;
            self.steps[now].guard = own.filter(|_| !is_critical);
        }
        for (index, step) in function.steps.iter().enumerate() {
            if self.linker.count > STEPS_MAX {
                self.full(at);
                break;
            }
            let is_critical = step.in_critical || entry.in_critical;
            self.act(at, first, index, (base, is_critical), entry);
        }
        self.stack.pop();
        let begin = self.parameters(function, first, base, entry);
        let exit = first + function.exit;
        if !function.has_origin {
            return (begin, exit);
        }
        let (place, origin) = (self.steps[first].place.clone(), self.steps[first].origin);
        let enter = self.push(Does::Gettime, place.clone(), base, origin);
        let leave = self.push(Does::Restore, place, base, origin);
        self.steps[enter].next.push(begin);
        self.steps[exit].next.push(leave);
        (enter, leave)
    }

    fn full(&mut self, at: At) {
        if !std::mem::replace(&mut self.linker.is_full, true) {
            let text = format!("the program's tasks have more than {STEPS_MAX} steps");
            let origin = self.linker.function(at).origin;
            let help = "call functions with timing points and channels in fewer places";
            self.linker.lose(at.0, origin, &text, "at the latest here", help);
        }
    }

    /// Gives a function's parameters their values; returns where it begins.
    fn parameters(
        &mut self,
        function: &Function,
        first: usize,
        base: u32,
        entry: &Entry<'_>,
    ) -> usize {
        let mut begin = first;
        for (parameter, value) in function.parameters.iter().zip(entry.arguments).rev() {
            let Some((register, kind)) = parameter else { continue };
            let (value, from) = value;
            let is_within = from.is_some_and(|from| from.is_within(*kind));
            let value = if is_within { value.clone() } else { kind.holds(value.clone()) };
            let register = base + u32::from(*register);
            let (place, origin) = (self.steps[first].place.clone(), self.steps[first].origin);
            let does = Does::Set { register, value, is_code: false };
            let set = self.push(does, place, entry.base, origin);
            self.steps[set].guard = self.steps[first].guard;
            self.steps[set].next.push(begin);
            begin = set;
        }
        begin
    }

    /// A place as the task's graph has it.
    fn place(&self, unit: usize, place: &SourcePlace, act: &Act) -> String {
        let name = &place.name;
        match &place.file {
            Some(file) => format!("{file}:{name}"),
            None if unit == self.home || matches!(act, Act::Point { .. }) => name.clone(),
            None => {
                let path = &self.linker.units[unit].file;
                format!("{}:{name}", path.rsplit('/').next().unwrap_or(path))
            }
        }
    }

    fn act(
        &mut self,
        at: At,
        first: usize,
        index: usize,
        (base, is_critical): (u32, bool),
        entry: &Entry<'_>,
    ) {
        let step = &self.linker.function(at).steps[index];
        let now = first + index;
        let does = match &step.act {
            Act::Nothing => Does::Nothing,
            Act::Code => Does::Code,
            Act::Work(times) => {
                if step.is_assumed {
                    let at = self.linker.origin(at.0, step.origin);
                    self.linker.warnings.push(endless_loop(at));
                }
                Does::Work(*times)
            }
            Act::Point { kind, period, deadline } => {
                Does::Point { kind: *kind, period: period.clone(), deadline: deadline.clone() }
            }
            Act::Gettime => Does::Gettime,
            Act::Skip(point) => {
                self.steps[now].next = vec![first + point];
                Does::Skip
            }
            Act::Start(call) => self.start(at.0, call, step.origin, entry.objects),
            Act::Call(call) => return self.call(at, now, call, (base, is_critical), entry),
            Act::Write { channel, waits } => self
                .end(at.0, channel, entry, step.origin)
                .map_or(Does::Nothing, |channel| Does::Write { channel, waits: *waits }),
            Act::Read { channel, waits } => self
                .end(at.0, channel, entry, step.origin)
                .map_or(Does::Nothing, |channel| Does::Read { channel, waits: *waits }),
            Act::Latest { latest, is_write } => {
                let Latest { name, is_shared, origin } = latest;
                let variable = match is_shared {
                    true => name.clone(),
                    false => format!("{name} of {}:{}", at.0, origin.start),
                };
                Does::Latest { variable, is_write: *is_write }
            }
            Act::Init(channel) => {
                self.end(at.0, channel, entry, step.origin).map_or(Does::Nothing, Does::Init)
            }
            Act::Lock(object) => Does::Lock(self.resource(at.0, object, entry, step.origin)),
            Act::Take(object) => Does::Take(self.resource(at.0, object, entry, step.origin)),
            Act::Unlock(object) => Does::Unlock(self.resource(at.0, object, entry, step.origin)),
            Act::Hold(all) => Does::Hold(all.iter().map(|hold| held(hold, base)).collect()),
            Act::Set { register, value, is_code } => Does::Set {
                register: base + u32::from(*register),
                value: value.clone(),
                is_code: *is_code,
            },
            Act::Branch(condition) => Does::Branch(condition.clone()),
            Act::Any => Does::Any,
            // Of what only obtains things the end of the program is not looked at.
            Act::Exit if self.linker.only_hold.contains(&at) => Does::Code,
            Act::Exit => {
                self.steps[now].next = vec![usize::MAX];
                Does::Code
            }
            Act::Lost(text) => {
                let help =
                    "name the channel here, or pass its endpoint to a function called by its name";
                self.linker.lose(at.0, step.origin, text, "here", help);
                Does::Nothing
            }
        };
        self.steps[now].does = does;
    }

    /// The resource that a call is about.
    fn resource(
        &mut self,
        unit: usize,
        object: &Object,
        entry: &Entry<'_>,
        origin: Origin,
    ) -> usize {
        match pointed(unit, object, entry.objects) {
            Some(resource) => self.linker.resource(resource),
            None => {
                let name = match object {
                    Object::Vague(name) => name.clone(),
                    _ => format!("a parameter{}", path_of(object)),
                };
                let origin = self.linker.origin(unit, origin);
                self.linker.vague_resource(&name, origin)
            }
        }
    }

    fn start(
        &mut self,
        unit: usize,
        call: &Call,
        origin: Origin,
        known: &[Option<Resource>],
    ) -> Does {
        let Some(function) = self.linker.named(unit, &call.name) else {
            let text = format!("no file of the program defines the task `{}`", call.name);
            let help = "give `onbeat tfg` all files of the program";
            self.linker.lose(unit, origin, &text, "started here", help);
            return Does::Code;
        };
        if !self.linker.function(function).starts {
            return Does::Nothing;
        }
        if self.linker.wanted.len() >= TASKS_MAX {
            if !std::mem::replace(&mut self.linker.is_full, true) {
                let text = "the program starts more tasks than it can have";
                let help = "write one call for each task: a program has at most 256";
                self.linker.lose(unit, origin, text, "at the latest here", help);
            }
            return Does::Code;
        }
        // What the task that starts it has in variables is not known when it begins.
        let arguments = call.arguments.iter().map(|a| match a.value {
            Expression::Constant(value) => (Expression::Constant(value), None),
            _ => (Expression::Unknown, None),
        });
        let objects = objects(unit, call, known);
        let arguments = arguments.collect();
        self.linker.wanted.push(Wanted { function, arguments, objects });
        Does::Run(self.linker.wanted.len() - 1)
    }

    /// The channel that an end belongs to.
    fn end(&mut self, unit: usize, of: &ChannelRef, call: &Entry<'_>, at: Origin) -> Option<usize> {
        match of {
            ChannelRef::Fifo(index) => Some(self.linker.fifo(unit, *index)),
            ChannelRef::Named(name) => Some(self.linker.network(name)),
            ChannelRef::Parameter(index, label) => {
                let passed = call.ends.get(*index).copied().flatten();
                let named = passed.or_else(|| Some(self.linker.network(label.as_deref()?)));
                if named.is_none() {
                    let text = "the channel of this call is unknown";
                    let help = "pass a variable that the calling function has opened";
                    self.linker.lose(unit, at, text, "unknown channel", help);
                }
                named
            }
        }
    }

    fn call(
        &mut self,
        at: At,
        now: usize,
        call: &Call,
        (base, in_critical): (u32, bool),
        around: &Entry<'_>,
    ) {
        let target = self.linker.named(at.0, &call.name);
        let Some(to) = target.filter(|to| self.linker.followed.contains(to)) else {
            self.steps[now].does = Does::Code;
            if target.is_none() && is_abstract(call) {
                let diagnostic = unbound(call, self.steps[now].origin);
                self.linker.diagnostics.push(diagnostic);
            }
            return;
        };
        let is_deep = self.stack.contains(&to) || self.stack.len() >= DEPTH_MAX;
        if is_deep && self.linker.only_hold.contains(&to) {
            // What it keeps, or gives back, nobody can say.
            let held = |thing, effect| Held { thing, effect, name: None };
            let any = [(Thing::Other, Effect::May), (Thing::Any, Effect::Give)];
            self.steps[now].does = Does::Hold(any.map(|(t, e)| held(t, e)).to_vec());
            return;
        }
        if is_deep {
            let text = match self.stack.contains(&to) {
                true => format!("`{}` is timed code and calls itself", call.name),
                false => format!("calls of functions are more than {DEPTH_MAX} deep"),
            };
            let help = "write a loop instead";
            let origin = self.steps[now].origin;
            self.linker.diagnostics.push(lost(&text, origin, "called here", help));
            self.linker.is_full |= self.stack.len() >= DEPTH_MAX;
            return;
        }
        if self.linker.is_full {
            return;
        }
        let ends: Vec<Option<usize>> =
            call.arguments.iter().map(|a| self.passed(at.0, a, around.ends)).collect();
        let objects = objects(at.0, call, around.objects);
        let arguments: Vec<_> = call.arguments.iter().map(|a| (a.value.clone(), a.kind)).collect();
        let is_work = self.linker.only_work.contains(&to);
        let place = self.steps[now].place.clone();
        let callee = self.linker.function(to);
        let entry = Entry {
            guard: self.steps[now].guard,
            is_foreign: to.0 != at.0,
            in_critical,
            arguments: &arguments,
            base,
            ends: &ends,
            objects: &objects,
            place: is_work.then_some(place.as_str()),
        };
        let after = std::mem::take(&mut self.steps[now].next);
        let (begin, exit) = self.function(to, &entry);
        self.steps[now].does = if is_work { Does::Code } else { Does::Nothing };
        self.steps[now].next = vec![begin];
        if callee.has_points && !entry.is_foreign {
            self.steps[now].guard = None;
        }
        self.steps[exit].next = after;
    }

    /// The channel whose end is passed, if it is one for certain.
    fn passed(
        &mut self,
        unit: usize,
        argument: &Argument,
        known: &[Option<usize>],
    ) -> Option<usize> {
        match argument.end.as_ref()? {
            ChannelRef::Named(name) => Some(self.linker.network(name)),
            ChannelRef::Fifo(index) => Some(self.linker.fifo(unit, *index)),
            ChannelRef::Parameter(at, _) => known.get(*at).copied().flatten(),
        }
    }
}

/// What an object is in a unit, where the parameters point to `known`.
fn pointed(unit: usize, object: &Object, known: &[Option<Resource>]) -> Option<Resource> {
    match object {
        Object::Known { name, is_shared: true, .. } => Some((None, 0, name.clone())),
        Object::Known { name, at, .. } => Some((Some(unit), *at, name.clone())),
        Object::Parameter(position, path) => {
            let (unit, at, name) = known.get(*position)?.clone()?;
            Some((unit, at, name + path))
        }
        Object::Vague(_) => None,
    }
}

/// What is passed points to.
fn objects(unit: usize, call: &Call, known: &[Option<Resource>]) -> Vec<Option<Resource>> {
    let object = |argument: &Argument| pointed(unit, argument.object.as_ref()?, known);
    call.arguments.iter().map(object).collect()
}

/// Which part of what it points to is meant.
fn path_of(object: &Object) -> &str {
    match object {
        Object::Parameter(_, path) => path,
        _ => "",
    }
}

/// An abort waits, or it does not.
fn unknown_hold(at: Origin) -> Diagnostic {
    let text = "the analysis cannot tell whether the segment holds a resource after this call";
    let label = "an abort may wait";
    let help = "call `timedc_on_abort` for the resource, move it into `critical`, or release it \
                under the name that obtained it";
    Diagnostic::error(timing::HOLD, text, at, label).help(help).warning()
}

/// What a function's step obtains or gives back, as one of a task.
fn held(hold: &Hold, base: u32) -> Held {
    let Hold { thing, effect, name, is_local } = hold;
    let of = if *is_local { base.saturating_add(1) } else { 0 };
    Held { thing: *thing, effect: *effect, name: name.clone().map(|name| (of, name)) }
}

/// Which tasks each task starts, directly or not.
fn starts(tasks: &[Vec<Raw>]) -> Vec<HashSet<usize>> {
    let mut found: Vec<HashSet<usize>> = vec![HashSet::new(); tasks.len()];
    // What is started comes behind what starts it.
    for task in (0..tasks.len()).rev() {
        for step in &tasks[task] {
            if let Does::Run(other) = step.does {
                let more = found[other].clone();
                found[task].extend(more);
                found[task].insert(other);
            }
        }
    }
    found
}

/// Steps of a task before which a channel may have been written.
fn after_writes(
    tasks: &[Vec<Raw>],
    starts: &[HashSet<usize>],
    task: usize,
    channel: usize,
) -> HashSet<usize> {
    let is_write = |s: &Raw| matches!(s.does, Does::Write { channel: c, .. } if c == channel);
    let writes: Vec<bool> = tasks.iter().map(|steps| steps.iter().any(is_write)).collect();
    let steps = &tasks[task];
    let elsewhere = |other: usize| other != task && !starts[task].contains(&other) && writes[other];
    if (0..tasks.len()).any(elsewhere) {
        return (0..steps.len()).collect();
    }
    let lets_write = |step: &Raw| match step.does {
        Does::Run(other) => writes[other] || starts[other].iter().any(|t| writes[*t]),
        _ => is_write(step),
    };
    let behind = steps.iter().filter(|s| lets_write(s)).flat_map(|s| s.next.iter().copied());
    nodes::reachable(steps, &behind.collect::<Vec<_>>())
}

/// Steps that come before a timing point of the function.
fn before_points(function: &Function) -> HashSet<usize> {
    let (mut seen, mut open) = (HashSet::from([0]), vec![0]);
    while let Some(at) = open.pop() {
        let step = &function.steps[at];
        if matches!(step.act, Act::Point { .. }) {
            continue;
        }
        open.extend(step.next.iter().copied().filter(|n| seen.insert(*n)));
    }
    seen
}
