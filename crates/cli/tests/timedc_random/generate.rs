//! Random tasks: their text in Timed C, and the same as steps.

use super::machine::{Condition, Deadline, Kind, Point, Program, Step, Variable};
use onbeat_testkit::Random;
use std::fmt::Write;

const MS: i64 = 1_000_000;
/// `x`, `y`, the deadline `d`; loops' counters follow.
const X: Variable = 0;
const D: Variable = 2;

/// Where `break` and `continue` go.
#[derive(Default)]
struct Around {
    breaks: Vec<usize>,
    /// None in a `switch`.
    continues: Option<Vec<usize>>,
    in_critical: bool,
}

/// Writes one task.
pub(crate) struct Writer<'r> {
    random: &'r mut Random,
    program: Program,
    text: String,
    /// Of the task's first line in its file.
    first_line: usize,
    indent: usize,
    around: Vec<Around>,
    returns: Vec<usize>,
    gotos: Vec<usize>,
    in_critical: bool,
    deadlines: Vec<Deadline>,
    budget: i64,
}

/// A task whose text begins in a line of its file.
pub(crate) fn task(random: &mut Random, number: usize, first_line: usize) -> (String, Program) {
    let constant = |random: &mut Random| Deadline::Constant(random.between(2, 9) * MS);
    let mut deadlines = vec![match random.below(4) {
        0 => Deadline::Variable(D),
        _ => constant(random),
    }];
    if random.below(3) == 0 {
        deadlines.push(constant(random));
    }
    let keeps_phase = random.below(4) == 0;
    let variables = vec![random.between(0, 255), random.between(0, 255), random.between(2, 9)];
    let name = format!("task_{number}");
    let budget = random.between(8, 45);
    let mut writer = Writer {
        random,
        program: Program { name: name.clone(), variables, keeps_phase, ..Program::default() },
        text: String::new(),
        first_line,
        indent: 1,
        around: Vec::new(),
        returns: Vec::new(),
        gotos: Vec::new(),
        in_critical: false,
        deadlines,
        budget,
    };
    // The calls in the head.
    writer.push(Step::Call(0));
    while writer.budget > 0 {
        writer.statement(0);
    }
    if !writer.gotos.is_empty() {
        writer.line("out:");
    }
    let out = writer.here();
    writer.patch_all(|w| std::mem::take(&mut w.gotos), out);
    writer.line("note(NUMBER, x);");
    writer.push(Step::Note(X));
    let end = writer.here();
    writer.patch_all(|w| std::mem::take(&mut w.returns), end);
    writer.push(Step::Return);
    let Writer { program, text, .. } = writer;
    let mut head = format!("task {name}(void)\n{{\n\tint ");
    for (index, value) in program.variables.iter().enumerate() {
        let comma = if index > 0 { ", " } else { "" };
        let _ = write!(head, "{comma}{} = {value}", variable(index));
    }
    let keep = i32::from(program.keeps_phase);
    let _ =
        writeln!(head, ";\n\ttimedc_on_late(late); timedc_keep_phase({keep}); (void)y; (void)d;");
    let body = text.replace("NUMBER", &number.to_string());
    (format!("{head}{body}}}\n"), program)
}

/// A constant of this value, as C may write it: with suffixes, in other bases, with casts, and with
/// what wraps.
pub(crate) fn number(random: &mut Random, value: i64) -> String {
    match random.below(9) {
        0 => format!("{value}u"),
        1 => format!("0x{value:x}L"),
        2 => format!("(unsigned)({value} + 4294967296)"),
        3 => format!("({value} - 9u + 9)"),
        4 => format!("(1 - 2u > 0 ? {value} : {value} + 1)"),
        5 => format!("((-1 < 1u) + {value})"),
        6 => format!("(~0u % 2 + {value} - 1)"),
        _ => value.to_string(),
    }
}

/// Lines of a task before its first statement.
const HEAD_LINES: usize = 4;

fn variable(index: Variable) -> String {
    match index {
        0 => "x".to_owned(),
        1 => "y".to_owned(),
        2 => "d".to_owned(),
        n => format!("n{n}"),
    }
}

fn condition_text(random: &mut Random, condition: Condition) -> String {
    match condition {
        Condition::Bits(v, mask, value) => {
            format!("({} & {}) == {}", variable(v), number(random, mask), number(random, value))
        }
        Condition::Less(v, limit) => format!("{} < {}", variable(v), number(random, limit)),
    }
}

impl Writer<'_> {
    fn here(&self) -> usize {
        self.program.steps.len()
    }

    fn push(&mut self, step: Step) -> usize {
        self.program.steps.push(step);
        self.here() - 1
    }

    fn line(&mut self, text: &str) {
        let _ = writeln!(self.text, "{}{text}", "\t".repeat(self.indent));
    }

    fn line_number(&self) -> usize {
        self.first_line + HEAD_LINES + self.text.matches('\n').count()
    }

    /// Makes a jump lead to a step.
    fn patch(&mut self, at: usize, to: usize) {
        match &mut self.program.steps[at] {
            Step::Jump(target) | Step::Unless(_, target) => *target = to,
            other => unreachable!("{other:?} does not jump"),
        }
    }

    fn patch_all(&mut self, which: impl Fn(&mut Self) -> Vec<usize>, to: usize) {
        for at in which(self) {
            self.patch(at, to);
        }
    }

    fn condition(&mut self) -> Condition {
        let mask = [1, 2, 3, 4, 6][self.random.below(5) as usize];
        let value = mask & self.random.between(0, 7);
        Condition::Bits(self.random.below(2) as usize, mask, value)
    }

    fn counter(&mut self) -> Variable {
        self.program.variables.push(0);
        self.program.variables.len() - 1
    }

    fn statement(&mut self, depth: usize) {
        self.budget -= 1;
        let choice = self.random.below(if depth > 3 { 62 } else { 100 });
        match choice {
            0..12 => self.set(),
            12..24 => self.call(),
            24..28 => self.pass(),
            28..42 if !self.in_critical => self.point_statement(),
            42..48 => self.note(),
            48..51 => self.gettime(),
            51..54 if !self.in_critical => self.skip(),
            54..60 => self.leave(),
            60..62 => self.new_deadline(),
            62..75 => self.branch(depth),
            75..90 => self.any_loop(depth),
            90..94 => self.switch(depth),
            94.. if !self.in_critical => self.critical(depth),
            _ => self.call(),
        }
    }

    fn block(&mut self, depth: usize) {
        self.indent += 1;
        for _ in 0..self.random.between(1, 4) {
            self.statement(depth + 1);
        }
        self.indent -= 1;
    }

    fn set(&mut self) {
        let (to, from) = (self.random.below(2) as usize, self.random.below(2) as usize);
        let (times, plus) = (self.random.between(1, 7), self.random.between(0, 9));
        let (a, b) = (variable(to), variable(from));
        self.line(&format!("{a} = ({b} * {times} + {plus}) & 255;"));
        self.push(Step::Set { to, from, times, plus });
    }

    fn call(&mut self) {
        let ms = self.random.between(0, 4);
        match self.random.below(3) {
            0 => self.line(&format!("x = take_{ms}(x);")),
            _ => self.line(&format!("take_{ms}(0);")),
        }
        self.push(Step::Call(ms * MS));
    }

    fn pass(&mut self) {
        let ms = self.random.between(1, 4);
        self.line(&format!("__attribute__((exectime({ms}, ms)));"));
        self.push(Step::Pass(ms * MS));
    }

    fn note(&mut self) {
        let v = self.random.below(2) as usize;
        self.line(&format!("note(NUMBER, {});", variable(v)));
        self.push(Step::Note(v));
    }

    fn gettime(&mut self) {
        self.line("y = (int)gettime(ms);");
        self.push(Step::Gettime(1));
    }

    fn new_deadline(&mut self) {
        let ms = self.random.between(2, 9);
        self.line(&format!("d = {ms};"));
        self.push(Step::Put(D, ms));
        // The new deadline is looked at where something runs.
        self.call();
    }

    fn unless(&mut self) -> (String, usize) {
        let condition = self.condition();
        let at = self.push(Step::Unless(condition, 0));
        (condition_text(self.random, condition), at)
    }

    fn skip(&mut self) {
        let (text, unless) = self.unless();
        self.line(&format!("if ({text})"));
        self.line("\tskipdelay;");
        self.push(Step::Skip);
        let end = self.here();
        self.patch(unless, end);
    }

    /// `break`, `continue`, `return` and `goto`, under a condition.
    fn leave(&mut self) {
        let (text, unless) = self.unless();
        let choice = self.random.below(8);
        let inner = self.around.last().map(|a| a.in_critical);
        let again = self.around.iter().rposition(|a| a.continues.is_some());
        let word = match (choice, inner, again) {
            (0..4, Some(was_in_critical), _) => {
                self.leave_critical(was_in_critical);
                let jump = self.push(Step::Jump(0));
                self.around.last_mut().expect("one").breaks.push(jump);
                "break"
            }
            (4..6, _, Some(index)) => {
                self.leave_critical(self.around[index].in_critical);
                let jump = self.push(Step::Jump(0));
                self.around[index].continues.as_mut().expect("a loop").push(jump);
                "continue"
            }
            (6, ..) => {
                self.leave_critical(false);
                let jump = self.push(Step::Jump(0));
                self.gotos.push(jump);
                "goto out"
            }
            _ => {
                self.leave_critical(false);
                let jump = self.push(Step::Jump(0));
                self.returns.push(jump);
                "return"
            }
        };
        self.line(&format!("if ({text})"));
        self.line(&format!("\t{word};"));
        let end = self.here();
        self.patch(unless, end);
    }

    fn leave_critical(&mut self, stays: bool) {
        if self.in_critical && !stays {
            self.push(Step::Leave { is_end: false });
        }
    }

    /// A new timing point's call, which begins in the current line.
    fn point(&mut self, into: Option<Variable>) -> String {
        let kind = [Kind::Soft, Kind::Firm, Kind::Firm, Kind::Hard][self.random.below(4) as usize];
        let choice = self.random.below(self.deadlines.len() as u64) as usize;
        let deadline = match kind {
            Kind::Soft => Deadline::Constant(self.random.between(0, 9) * MS),
            _ => self.deadlines[choice],
        };
        let letter = ["s", "f", "h"][kind as usize];
        let (line, at) = (self.line_number(), self.here());
        let index = self.program.points.len();
        let is_same = self.random.below(2) == 0;
        let (text, period_ns) = match deadline {
            Deadline::Constant(ns) if is_same => {
                let delay = number(self.random, ns / MS);
                (format!("{letter}delay({delay}, ms)"), ns)
            }
            Deadline::Constant(ns) => {
                let period = ns / MS + self.random.between(0, 4);
                let [first, last] = [period, ns / MS].map(|it| number(self.random, it));
                (format!("{letter}tp({first}, {last}, ms)"), period * MS)
            }
            Deadline::Variable(v) => (format!("{letter}tp(10, {}, ms)", variable(v)), 10 * MS),
        };
        self.program.points.push(Point { kind, period_ns, deadline, line, at });
        self.push(Step::Point(index, into));
        text
    }

    fn point_statement(&mut self) {
        match self.random.below(4) {
            0 => {
                let text = self.point(Some(X));
                self.line(&format!("x = (x + (int){text}) & 255;"));
            }
            _ => {
                let text = self.point(None);
                self.line(&format!("{text};"));
            }
        }
    }

    fn branch(&mut self, depth: usize) {
        let mut head = String::new();
        match self.random.below(6) {
            0 if !self.in_critical => {
                let text = self.point(None);
                head = format!("(void){text}, ");
            }
            1 => {
                let ms = self.random.between(0, 3);
                head = format!("take_{ms}(1), ");
                self.push(Step::Call(ms * MS));
            }
            _ => {}
        }
        let (text, unless) = self.unless();
        self.line(&format!("if ({head}{text}) {{"));
        self.block(depth);
        if self.random.below(2) == 0 {
            let jump = self.push(Step::Jump(0));
            let other = self.here();
            self.patch(unless, other);
            self.line("} else {");
            self.block(depth);
            let end = self.here();
            self.patch(jump, end);
        } else {
            let end = self.here();
            self.patch(unless, end);
        }
        self.line("}");
    }

    fn any_loop(&mut self, depth: usize) {
        match self.random.below(5) {
            0 => self.busy_loop(),
            1 => self.while_loop(depth),
            2 => self.do_loop(depth),
            3 => self.goto_loop(depth),
            _ => self.for_loop(depth),
        }
    }

    /// A loop begins, so many steps before its first step that is executed again.
    fn begin_loop(&mut self, before: usize) {
        let first = self.here() + 1 + before;
        self.push(Step::Loop(first));
    }

    fn busy_loop(&mut self) {
        let (n, limit) = (self.counter(), self.random.between(1, 3));
        let name = variable(n);
        self.line(&format!("for ({name} = 0; {name} < {limit}; {name}++)"));
        self.line("\tx = (x * 3 + 1) & 255;");
        self.begin_loop(1);
        self.push(Step::Put(n, 0));
        let again = self.push(Step::Unless(Condition::Less(n, limit), 0));
        self.push(Step::Set { to: X, from: X, times: 3, plus: 1 });
        self.push(Step::Increment(n));
        self.push(Step::Jump(again));
        let end = self.here();
        self.patch(again, end);
    }

    fn body(&mut self, depth: usize) -> Around {
        let around = Around {
            continues: Some(Vec::new()),
            in_critical: self.in_critical,
            ..Around::default()
        };
        self.around.push(around);
        self.block(depth);
        self.around.pop().expect("pushed")
    }

    /// Where `break` and `continue` lead.
    fn close(&mut self, around: Around, again: usize, end: usize) {
        for at in around.breaks {
            self.patch(at, end);
        }
        for at in around.continues.into_iter().flatten() {
            self.patch(at, again);
        }
    }

    fn for_loop(&mut self, depth: usize) {
        let (n, limit) = (self.counter(), self.random.between(1, 4));
        let name = variable(n);
        self.begin_loop(1);
        self.push(Step::Put(n, 0));
        let begin = self.push(Step::Unless(Condition::Less(n, limit), 0));
        let has_point = self.random.below(3) == 0 && !self.in_critical;
        // The step is written before the body, and executed behind it.
        let head_line = self.text.len();
        let most = number(self.random, limit);
        self.line(&format!("for ({name} = 0; {name} < {most}; {name}++STEP) {{"));
        let line = self.line_number() - 1;
        let around = self.body(depth);
        let step = self.push(Step::Increment(n));
        let mut text = String::new();
        if has_point {
            text = format!(", {}", self.point(None));
            self.program.points.last_mut().expect("a point").line = line;
        }
        let head = self.text.split_off(head_line).replacen("STEP", &text, 1);
        self.text.push_str(&head);
        self.push(Step::Jump(begin));
        let end = self.here();
        self.patch(begin, end);
        self.close(around, step, end);
        self.line("}");
    }

    fn while_loop(&mut self, depth: usize) {
        let (n, limit) = (self.counter(), self.random.between(1, 4));
        let name = variable(n);
        self.line(&format!("{name} = 0;"));
        self.push(Step::Put(n, 0));
        self.begin_loop(0);
        let begin = self.here();
        let mut head = String::new();
        match self.random.below(3) {
            0 if !self.in_critical => head = format!("{}, ", self.point(None)),
            1 => {
                head = "take_1(0), ".to_owned();
                self.push(Step::Call(MS));
            }
            _ => {}
        }
        self.push(Step::Increment(n));
        let leaves = self.push(Step::Unless(Condition::Less(n, limit), 0));
        self.line(&format!("while ({head}++{name} < {limit}) {{"));
        let around = self.body(depth);
        self.push(Step::Jump(begin));
        let end = self.here();
        self.patch(leaves, end);
        self.close(around, begin, end);
        self.line("}");
    }

    fn do_loop(&mut self, depth: usize) {
        let (n, limit) = (self.counter(), self.random.between(1, 4));
        let name = variable(n);
        self.line(&format!("{name} = 0;"));
        self.push(Step::Put(n, 0));
        self.begin_loop(0);
        self.line("do {");
        let begin = self.here();
        let around = self.body(depth);
        let again = self.here();
        let mut head = String::new();
        if self.random.below(3) == 0 && !self.in_critical {
            head = format!("{} < 0 || ", self.point(None));
        }
        self.push(Step::Increment(n));
        let leaves = self.push(Step::Unless(Condition::Less(n, limit), 0));
        self.push(Step::Jump(begin));
        let end = self.here();
        self.patch(leaves, end);
        self.line(&format!("}} while ({head}++{name} < {limit});"));
        self.close(around, again, end);
    }

    fn goto_loop(&mut self, depth: usize) {
        let (n, limit) = (self.counter(), self.random.between(1, 3));
        let name = variable(n);
        self.line(&format!("{name} = 0;"));
        self.begin_loop(1);
        self.push(Step::Put(n, 0));
        let begin = self.here();
        self.line(&format!("again_{n}:"));
        self.statement(depth + 1);
        self.line(&format!("if (++{name} < {limit})"));
        self.push(Step::Increment(n));
        let leaves = self.push(Step::Unless(Condition::Less(n, limit), 0));
        self.push(Step::Jump(begin));
        self.line(&format!("\tgoto again_{n};"));
        let end = self.here();
        self.patch(leaves, end);
    }

    fn switch(&mut self, depth: usize) {
        let v = self.random.below(2) as usize;
        self.line(&format!("switch ({} & 3) {{", variable(v)));
        let around = Around { in_critical: self.in_critical, ..Around::default() };
        let cases = self.random.between(1, 3);
        let heads: Vec<usize> = (0..cases)
            .map(|value| {
                let unless = self.push(Step::Unless(Condition::Bits(v, 3, value), 0));
                let jump = self.push(Step::Jump(0));
                let other = self.here();
                self.patch(unless, other);
                jump
            })
            .collect();
        let other = self.push(Step::Jump(0));
        self.around.push(around);
        for (value, head) in heads.into_iter().enumerate() {
            let here = self.here();
            self.patch(head, here);
            self.line(&format!("case {value}:"));
            self.block(depth);
            if self.random.below(3) > 0 {
                self.line("\tbreak;");
                let jump = self.push(Step::Jump(0));
                self.around.last_mut().expect("pushed").breaks.push(jump);
            } else {
                self.line("\t/* fallthrough */");
            }
        }
        let here = self.here();
        self.patch(other, here);
        if self.random.below(2) == 0 {
            self.line("default:");
            self.block(depth);
        }
        let around = self.around.pop().expect("pushed");
        let end = self.here();
        self.close(around, end, end);
        self.line("}");
    }

    fn critical(&mut self, depth: usize) {
        self.line("critical {");
        self.push(Step::Critical);
        self.in_critical = true;
        self.block(depth);
        self.in_critical = false;
        self.push(Step::Leave { is_end: true });
        self.line("}");
    }
}
