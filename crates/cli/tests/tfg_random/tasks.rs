//! Random tasks in Timed C: loops, branches, points of all kinds, channel ends.

use onbeat_testkit::Random;
use std::fmt::Write;

/// What a task has to do with a channel.
#[derive(Clone, Debug)]
pub(crate) struct End {
    pub(crate) channel: String,
    pub(crate) kind: Kind,
    pub(crate) writes: bool,
    /// Whether a reader may wait for it without a point of its own: its writer lets time pass.
    pub(crate) paces: bool,
}

/// How an end is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Fifo,
    Latest,
    /// A network channel; whether this end waits for capture + D.
    Network {
        waits: bool,
    },
}

/// What a task is made of beside its random statements.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) name: String,
    /// Its number in its program.
    pub(crate) number: usize,
    pub(crate) ends: Vec<End>,
    /// A task that it starts.
    pub(crate) starts: Option<String>,
    /// Whether all periods are those of a common base, so that tasks meet again and again.
    pub(crate) base_us: Option<i64>,
}

/// What holds where a statement is written.
#[derive(Clone, Copy, Debug)]
struct Place<'c> {
    depth: usize,
    /// The counter of the loop around it.
    counter: Option<&'c str>,
    /// Whether points may stand here, and whether firm ones may.
    points: bool,
    firm: bool,
    /// Whether it is in an inner loop, which it may leave.
    inner: bool,
}

struct Writer<'r> {
    random: &'r mut Random,
    plan: &'r Plan,
    text: String,
    indent: usize,
    /// Functions that stand before the task.
    helpers: String,
    names: usize,
    /// The deadline of all firm and hard points; none: they stand one behind the other.
    deadline: Option<i64>,
    budget: i64,
    /// Ends that have not been used yet.
    open: Vec<End>,
}

/// The text of a task, with its helpers before it.
pub(crate) fn task(random: &mut Random, plan: &Plan) -> String {
    let deadline = match random.below(3) {
        0 => None,
        _ => Some(period(random, plan.base_us)),
    };
    let budget = random.between(2, 9);
    let mut writer = Writer {
        random,
        plan,
        text: String::new(),
        indent: 1,
        helpers: String::new(),
        names: 0,
        deadline,
        budget,
        open: Vec::new(),
    };
    writer.body();
    let Writer { text, helpers, .. } = writer;
    format!("{helpers}task {}(void)\n{{\n{text}}}\n\n", plan.name)
}

fn period(random: &mut Random, base_us: Option<i64>) -> i64 {
    match base_us {
        Some(base) => base * [1, 1, 1, 2, 3][random.below(5) as usize],
        None => random.between(1_500, 15_000),
    }
}

impl Writer<'_> {
    fn line(&mut self, text: &str) {
        let _ = writeln!(self.text, "{}{text}", "\t".repeat(self.indent));
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.random.below(count) == 0
    }

    fn name(&mut self, stem: &str) -> String {
        self.names += 1;
        format!("{stem}{}", self.names)
    }

    fn body(&mut self) {
        self.line("int n = 0;");
        self.line("int64_t v = 0;");
        self.line("(void)n;");
        self.line("(void)v;");
        let keeps = i32::from(self.one_in(6));
        self.line(&format!("timedc_on_late(late); timedc_keep_phase({keeps});"));
        for end in self.plan.ends.clone() {
            if matches!(end.kind, Kind::Network { .. }) {
                let way = if end.writes { "TX" } else { "RX" };
                self.line(&format!("NETFIFO_{way}({});", end.channel));
            }
        }
        let place = Place { depth: 0, counter: None, points: true, firm: true, inner: false };
        for _ in 0..self.random.below(3) {
            self.statement(place);
        }
        if let Some(other) = self.plan.starts.clone() {
            self.line(&format!("{other}();"));
        }
        match self.random.below(8) {
            0 => self.straight(place),
            1 => {
                let rounds = self.random.between(2, 7);
                self.main_loop(&format!("for (int i = 0; i < {rounds}; i++) {{"), Some("i"));
            }
            2..5 => self.main_loop("while (1) {", None),
            _ => self.main_loop("for (int i = 0;; i++) {", Some("i")),
        }
    }

    /// No loop at all: the ends are used once.
    fn straight(&mut self, place: Place<'_>) {
        self.open = self.plan.ends.clone();
        for _ in 0..self.budget {
            self.statement(place);
        }
        self.rest_of_ends(place);
    }

    fn main_loop(&mut self, head: &str, counter: Option<&str>) {
        self.line(head);
        self.indent += 1;
        // Two firm points with different deadlines can be next only in a loop that ends.
        let firm = self.deadline.is_some() || head.contains("1)") || head.contains(";;");
        let place = Place { depth: 0, counter, points: true, firm, inner: false };
        self.open = self.plan.ends.clone();
        for _ in 0..self.budget {
            self.statement(place);
        }
        // A round takes time: by a point, or by a value that comes from elsewhere.
        let paced = self.open.iter().position(|e| !e.writes && e.paces && e.kind != Kind::Latest);
        match paced.filter(|_| self.one_in(2)) {
            Some(at) => {
                let end = self.open.remove(at);
                self.rest_of_ends(place);
                self.transfer(&end);
            }
            None => {
                self.rest_of_ends(place);
                self.point(place, true);
            }
        }
        self.indent -= 1;
        self.line("}");
    }

    fn rest_of_ends(&mut self, place: Place<'_>) {
        for end in std::mem::take(&mut self.open) {
            let condition = match self.random.below(12) {
                0 => Some(format!("coin({})", self.plan.number)),
                1 => place.counter.map(|i| format!("{i} % 2")),
                _ => None,
            };
            if let Some(condition) = condition {
                self.line(&format!("if ({condition})"));
                self.indent += 1;
                self.transfer(&end);
                self.indent -= 1;
            } else {
                self.transfer(&end);
            }
        }
    }

    fn transfer(&mut self, end: &End) {
        let Kind::Network { waits } = end.kind else {
            let word = if end.writes { "cwrite" } else { "cread" };
            return self.line(&format!("{word}({}, v);", end.channel));
        };
        let word = match (end.writes, waits) {
            (true, false) => "WRITE",
            (true, true) => "WRITE_WAIT",
            (false, false) => "READ",
            (false, true) => "READ_WAIT",
        };
        self.line(&format!("{word}({}, &v);", end.channel));
    }

    fn condition(&mut self, place: Place<'_>) -> String {
        match (self.random.below(4), place.counter) {
            (0, _) => format!("coin({})", self.plan.number),
            (1 | 2, Some(counter)) => {
                let modulus = self.random.between(2, 3);
                format!("{counter} % {modulus} == {}", self.random.below(2))
            }
            (3, _) => format!("n == {}", self.random.below(3)),
            _ => format!("n % 2 && coin({})", self.plan.number),
        }
    }

    fn statement(&mut self, place: Place<'_>) {
        self.budget -= 1;
        match self.random.below(if place.depth > 2 { 60 } else { 100 }) {
            0..12 => self.work(),
            12..18 => {
                let step = self.random.between(1, 2);
                self.line(&format!("n = (n + {step}) % 3;"));
            }
            18..34 if place.points => self.point(place, false),
            34..46 => {
                if let Some(end) = self.any_end() {
                    self.transfer(&end);
                }
            }
            46..49 => self.line("(void)gettime(us);"),
            49..53 if place.points && place.firm => self.critical(place),
            53..56 if place.points && place.depth == 0 => self.skip(place),
            56..60 if place.inner => self.leave(place),
            60..78 => self.branch(place),
            78..90 => self.inner_loop(place),
            90..94 => self.switch(place),
            94.. if place.points => self.helper(),
            _ => self.work(),
        }
    }

    /// One of the ends of this round, which is used up.
    fn any_end(&mut self) -> Option<End> {
        let count = self.open.len() as u64;
        (count > 0).then(|| self.random.below(count) as usize).map(|at| self.open.remove(at))
    }

    fn work(&mut self) {
        let best = self.random.between(0, 700);
        let worst = if self.one_in(3) { best } else { best + self.random.between(1, 300) };
        match self.random.below(4) {
            0 => {
                let call = self.random.below(4);
                self.line(&format!("work_{call}();"));
            }
            _ => self.line(&format!("WORK({best}, {worst});")),
        }
    }

    fn block(&mut self, place: Place<'_>) {
        self.indent += 1;
        let place = Place { depth: place.depth + 1, firm: self.firm_inside(place), ..place };
        for _ in 0..self.random.between(1, 3) {
            self.statement(place);
        }
        self.indent -= 1;
    }

    /// Below the top all firm points have the same deadline.
    fn firm_inside(&self, place: Place<'_>) -> bool {
        place.firm && self.deadline.is_some()
    }

    fn branch(&mut self, place: Place<'_>) {
        let condition = self.condition(place);
        self.line(&format!("if ({condition}) {{"));
        self.block(place);
        if self.one_in(2) {
            self.line("} else {");
            self.block(place);
        }
        self.line("}");
    }

    fn switch(&mut self, place: Place<'_>) {
        self.line("switch (n) {");
        for case in 0..2 {
            self.line(&format!("case {case}:"));
            self.block(Place { inner: false, ..place });
            if case == 1 || self.one_in(2) {
                self.line("\tbreak;");
            } else {
                self.line("\t/* fall through */");
            }
        }
        self.line("default:");
        self.line("\tbreak;");
        self.line("}");
    }

    fn inner_loop(&mut self, place: Place<'_>) {
        let counter = self.name("j");
        let rounds = self.random.between(2, 4);
        if self.one_in(12) && place.points {
            // Nobody knows how often.
            self.line("do {");
            self.block(Place { inner: true, ..place });
            self.indent += 1;
            let span = self.random.between(100, 2_000);
            self.line(&format!("sdelay({span}, us);"));
            self.indent -= 1;
            self.line(&format!("}} while (coin({}));", self.plan.number));
            return;
        }
        self.line(&format!("for (int {counter} = 0; {counter} < {rounds}; {counter}++) {{"));
        self.block(Place { counter: Some(&counter), inner: true, ..place });
        self.line("}");
    }

    fn leave(&mut self, place: Place<'_>) {
        let condition = self.condition(place);
        let word = if self.one_in(2) { "break" } else { "continue" };
        self.line(&format!("if ({condition})"));
        self.line(&format!("\t{word};"));
    }

    /// A point. One that paces a loop has a period.
    fn point(&mut self, place: Place<'_>, paces: bool) {
        let firm = place.firm && self.random.below(5) < 3;
        if !firm {
            return self.soft(place, paces);
        }
        let word = if self.one_in(4) { 'h' } else { 'f' };
        let deadline = self.deadline.unwrap_or_else(|| period(self.random, self.plan.base_us));
        match self.random.below(3) {
            0 => {
                let more = self.random.between(0, 2_000);
                self.line(&format!("{word}tp({}, {deadline}, us);", deadline + more));
            }
            _ => self.line(&format!("{word}delay({deadline}, us);")),
        }
    }

    fn soft(&mut self, place: Place<'_>, paces: bool) {
        let span = period(self.random, self.plan.base_us);
        match self.random.below(8) {
            0 => self.line(&format!("stp({span}, {}, us);", span / 2)),
            1 if !paces => self.line("sdelay(0, us);"),
            2 => self.line(&format!("sdelay({span} + 500 * n, us);")),
            3 => match place.counter {
                Some(i) => self.line(&format!("sdelay({span} + {i} % 2 * 250, us);")),
                None => self.line(&format!("stp({span}, infty, us);")),
            },
            _ => self.line(&format!("sdelay({span}, us);")),
        }
    }

    /// A critical block, then its firm point.
    fn critical(&mut self, place: Place<'_>) {
        self.line("critical {");
        self.block(Place { points: false, firm: false, inner: false, ..place });
        self.line("}");
        let deadline = self.deadline.unwrap_or_else(|| period(self.random, self.plan.base_us));
        self.line(&format!("fdelay({deadline}, us);"));
    }

    fn skip(&mut self, place: Place<'_>) {
        let condition = self.condition(place);
        self.line(&format!("if ({condition})"));
        self.line("\tskipdelay;");
        self.work();
        self.point(place, false);
    }

    /// A function with points: the first one is soft.
    fn helper(&mut self) {
        let name = self.name(&format!("{}_helper_", self.plan.name));
        let (first, second) = (self.random.between(200, 3_000), self.random.between(500, 4_000));
        let best = self.random.between(0, 300);
        let word = if self.one_in(2) { "fdelay" } else { "sdelay" };
        let _ = write!(
            self.helpers,
            "static void {name}(int span)\n{{\n\tsdelay(span, us);\n\tWORK({best}, {});\n\
             \tif (coin({}))\n\t\t{word}({second}, us);\n}}\n\n",
            best + 100,
            self.plan.number
        );
        self.line(&format!("{name}({first});"));
    }
}
