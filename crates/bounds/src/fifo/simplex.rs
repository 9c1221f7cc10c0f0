//! Linear programs in floating point: a dense dictionary that takes rows as they are needed.
//!
//! Maximises *c·y* subject to rows *a·y ≤ b* and *y ≥ 0*. What is wanted is not the maximum but
//! the multipliers of the rows, from which [`super::certify`] makes a bound in integers: an error
//! here can make a bound worse or lose it, never wrong.
//!
//! Of many rows few bind. Those are found one after the other (cutting planes): a dictionary of the
//! rows seen so far is solved by the primal method, the rows that its solution breaks are added,
//! and the dual method repairs it. Another objective or other right-hand sides continue from there.

/// What counts as zero.
const ZERO: f64 = 1e-9;

/// What all variables together never reach: where they do, the program has no maximum.
const FAR: f64 = 1e7;

/// How many broken rows are added at once.
const ADDED: usize = 24;

/// A row: coefficients by variable, and the right-hand side, which must not be negative.
#[derive(Clone, Debug)]
pub(crate) struct Inequality {
    pub(crate) terms: Vec<(usize, f64)>,
    pub(crate) limit: f64,
    /// Whether it is in the dictionary from the start, as one that is likely to bind.
    pub(crate) early: bool,
}

/// A program and the dictionary of the rows taken so far.
///
/// Variables are numbered: first those of the program, then the slack of each row.
pub(crate) struct Simplex {
    rows: Vec<Inequality>,
    /// Where a variable of the program is: in which column, or basic in which line.
    position: Vec<Position>,
    /// Whether a row is in the dictionary.
    taken: Vec<bool>,
    /// The variable of each column.
    columns: Vec<usize>,
    /// The variable of each line.
    basics: Vec<usize>,
    /// Line by line: a basic variable is its value less the sum of coefficient times column.
    cells: Vec<f64>,
    values: Vec<f64>,
    objective: Vec<f64>,
    pivots_left: usize,
}

#[derive(Clone, Copy)]
enum Position {
    Column(usize),
    Line(usize),
}

/// There is no solution: the maximum has no limit, or it was not found in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unsolved;

impl Simplex {
    /// A program of `variables` and `rows`.
    pub(crate) fn new(variables: usize, mut rows: Vec<Inequality>) -> Self {
        for (at, row) in rows.iter_mut().enumerate() {
            row.limit += shift(at);
        }
        let terms = (0..variables).map(|v| (v, 1.0)).collect();
        rows.push(Inequality { terms, limit: FAR, early: true });
        let early: Vec<usize> = (0..rows.len()).filter(|row| rows[*row].early).collect();
        let mut simplex = Self {
            position: (0..variables).map(Position::Column).collect(),
            taken: vec![false; rows.len()],
            columns: (0..variables).collect(),
            basics: Vec::new(),
            cells: Vec::new(),
            values: Vec::new(),
            objective: vec![0.0; variables],
            pivots_left: 0,
            rows,
        };
        early.into_iter().for_each(|row| simplex.take(row));
        simplex
    }

    fn width(&self) -> usize {
        self.columns.len()
    }

    fn line(&self, line: usize) -> &[f64] {
        &self.cells[line * self.width()..(line + 1) * self.width()]
    }

    /// Changes the right-hand side of `row`.
    pub(crate) fn set_limit(&mut self, row: usize, limit: f64) {
        let limit = limit + shift(row);
        let more = limit - self.rows[row].limit;
        self.rows[row].limit = limit;
        if more == 0.0 || !self.taken[row] {
            return;
        }
        let slack = self.position.len() + row;
        if let Some(line) = self.basics.iter().position(|v| *v == slack) {
            self.values[line] += more;
        } else if let Some(column) = self.columns.iter().position(|v| *v == slack) {
            let width = self.width();
            for (line, value) in self.values.iter_mut().enumerate() {
                *value += more * self.cells[line * width + column];
            }
        }
    }

    /// The multipliers, by row, of a solution that maximises `objective`.
    pub(crate) fn solve(&mut self, objective: &[f64]) -> Result<Vec<(usize, f64)>, Unsolved> {
        self.pivots_left = 200 + 40 * self.width();
        // Right-hand sides may have changed: the dictionary is made feasible again with the
        // objective that it is optimal for.
        self.dual()?;
        self.aim(objective);
        loop {
            self.primal()?;
            if !self.take_broken() {
                break;
            }
            self.dual()?;
        }
        let count = self.position.len();
        let slacks = self.columns.iter().zip(&self.objective);
        let multipliers: Vec<(usize, f64)> = slacks
            .filter(|(variable, cost)| **variable >= count && **cost < 0.0)
            .map(|(variable, cost)| (variable - count, -cost))
            .collect();
        let unlimited = multipliers.iter().any(|(row, _)| *row == self.rows.len() - 1);
        if unlimited { Err(Unsolved) } else { Ok(multipliers) }
    }

    /// Expresses `objective` in the columns.
    fn aim(&mut self, objective: &[f64]) {
        let mut costs = vec![0.0; self.width()];
        for (variable, worth) in objective.iter().enumerate().filter(|(_, w)| **w != 0.0) {
            match self.position[variable] {
                Position::Column(column) => costs[column] += worth,
                Position::Line(line) => {
                    for (cost, cell) in costs.iter_mut().zip(self.line(line)) {
                        *cost -= worth * cell;
                    }
                }
            }
        }
        self.objective = costs;
    }

    /// Improves a feasible dictionary to an optimal one.
    fn primal(&mut self) -> Result<(), Unsolved> {
        loop {
            let best = self
                .objective
                .iter()
                .enumerate()
                .max_by(|a, b| a.1.total_cmp(b.1))
                .filter(|(_, cost)| **cost > ZERO);
            let Some((column, _)) = best else { return Ok(()) };
            let width = self.width();
            let mut leaving: Option<(usize, f64, f64)> = None;
            for (line, value) in self.values.iter().enumerate() {
                let cell = self.cells[line * width + column];
                if cell > ZERO {
                    let room = value.max(0.0) / cell;
                    let better = leaving.is_none_or(|(_, least, pivot)| {
                        room < least - ZERO || (room < least + ZERO && cell > pivot)
                    });
                    if better {
                        leaving = Some((line, room, cell));
                    }
                }
            }
            // There always is one: the last row limits all variables together.
            let (line, ..) = leaving.ok_or(Unsolved)?;
            self.pivot(line, column)?;
        }
    }

    /// Makes a dictionary whose costs are those of an optimum feasible.
    fn dual(&mut self) -> Result<(), Unsolved> {
        loop {
            let worst = self
                .values
                .iter()
                .enumerate()
                .min_by(|a, b| a.1.total_cmp(b.1))
                .filter(|(_, value)| **value < -ZERO);
            let Some((line, _)) = worst else { return Ok(()) };
            let mut entering: Option<(usize, f64, f64)> = None;
            for (column, cell) in self.line(line).iter().enumerate() {
                if *cell < -ZERO {
                    let ratio = self.objective[column].min(0.0) / cell;
                    let better = entering.is_none_or(|(_, least, pivot)| {
                        ratio < least - ZERO || (ratio < least + ZERO && *cell < pivot)
                    });
                    if better {
                        entering = Some((column, ratio, *cell));
                    }
                }
            }
            // No way to make it feasible: rounding errors only, as no program here is infeasible.
            let (column, ..) = entering.ok_or(Unsolved)?;
            self.pivot(line, column)?;
        }
    }

    /// Exchanges the variable of `line` and that of `column`.
    fn pivot(&mut self, line: usize, column: usize) -> Result<(), Unsolved> {
        self.pivots_left = self.pivots_left.checked_sub(1).ok_or(Unsolved)?;
        let width = self.width();
        let by = 1.0 / self.cells[line * width + column];
        let mut pivot: Vec<f64> = self.line(line).iter().map(|cell| cell * by).collect();
        pivot[column] = by;
        let value = self.values[line] * by;
        for (at, cells) in self.cells.chunks_exact_mut(width).enumerate() {
            let factor = cells[column];
            if at == line || factor == 0.0 {
                continue;
            }
            cells[column] = 0.0;
            for (cell, from) in cells.iter_mut().zip(&pivot) {
                *cell -= factor * from;
            }
            self.values[at] -= factor * value;
        }
        let cost = std::mem::take(&mut self.objective[column]);
        for (of, from) in self.objective.iter_mut().zip(&pivot) {
            *of -= cost * from;
        }
        self.cells[line * width..(line + 1) * width].copy_from_slice(&pivot);
        self.values[line] = value;
        std::mem::swap(&mut self.basics[line], &mut self.columns[column]);
        self.note(self.basics[line], Position::Line(line));
        self.note(self.columns[column], Position::Column(column));
        Ok(())
    }

    fn note(&mut self, variable: usize, position: Position) {
        if let Some(of) = self.position.get_mut(variable) {
            *of = position;
        }
    }

    /// Takes the rows that the present point breaks most; whether there was any.
    fn take_broken(&mut self) -> bool {
        let at = |variable: usize| match self.position[variable] {
            Position::Column(_) => 0.0,
            Position::Line(line) => self.values[line],
        };
        let point: Vec<f64> = (0..self.position.len()).map(at).collect();
        let over = |row: &Inequality| {
            row.terms.iter().map(|(v, a)| a * point[*v]).sum::<f64>() - row.limit
        };
        let mut broken: Vec<(usize, f64)> = (0..self.rows.len())
            .filter(|row| !self.taken[*row])
            .map(|row| (row, over(&self.rows[row])))
            .filter(|(_, over)| *over > 2.0 * ZERO)
            .collect();
        broken.sort_by(|a, b| b.1.total_cmp(&a.1));
        broken.truncate(ADDED);
        if broken.is_empty() {
            return false;
        }
        self.drop_idle();
        for (row, _) in broken {
            self.take(row);
        }
        true
    }

    /// Forgets rows that are far from binding, if there are many.
    fn drop_idle(&mut self) {
        let (width, count) = (self.width(), self.position.len());
        let last = count + self.rows.len() - 1;
        if self.basics.len() < 2 * width {
            return;
        }
        let mut kept = 0;
        for line in 0..self.basics.len() {
            let variable = self.basics[line];
            if (count..last).contains(&variable) && self.values[line] > ZERO {
                self.taken[variable - count] = false;
                continue;
            }
            self.cells.copy_within(line * width..(line + 1) * width, kept * width);
            self.values[kept] = self.values[line];
            self.basics[kept] = variable;
            self.note(variable, Position::Line(kept));
            kept += 1;
        }
        self.cells.truncate(kept * width);
        self.values.truncate(kept);
        self.basics.truncate(kept);
    }

    /// Adds a row to the dictionary, its slack basic.
    fn take(&mut self, row: usize) {
        let width = self.width();
        let mut cells = vec![0.0; width];
        let mut value = self.rows[row].limit;
        for (variable, a) in &self.rows[row].terms {
            match self.position[*variable] {
                Position::Column(column) => cells[column] += a,
                Position::Line(line) => {
                    for (cell, from) in cells.iter_mut().zip(self.line(line)) {
                        *cell -= a * from;
                    }
                    value -= a * self.values[line];
                }
            }
        }
        self.cells.extend(cells);
        self.values.push(value);
        self.basics.push(self.position.len() + row);
        self.taken[row] = true;
    }
}

/// A little more room in each row, in each another: where many rows meet in one point the method
/// would otherwise cycle.
fn shift(row: usize) -> f64 {
    let spread = (row as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
    1e-8 * (1.0 + spread as f64 / (1_u64 << 24) as f64)
}
