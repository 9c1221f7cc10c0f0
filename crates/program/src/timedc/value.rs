//! C's integer expressions as the graph's: their values where the graph's registers have theirs,
//! unknown wherever C's arithmetic would not be that of plain integers, but for unsigned types of
//! less than 64 bits.

use super::constant::Constant;
use super::integer::{Integer, integer};
use super::net;
use super::syntax::{bare, children, fields, plain, walk};
use super::unit::{Function, Unit, Variable};
use onbeat_model::graph::{Binary, Expression, Unary};
use tree_sitter::Node;

impl Integer {
    /// An expression converted to this type, unknown if the type does not have its value.
    pub(crate) fn holds(self, expression: Expression) -> Expression {
        match expression {
            Expression::Unknown => Expression::Unknown,
            Expression::Constant(value) => written(self.convert(i128::from(value))),
            _ if self.wraps() => unary(Unary::Wrap { bits: self.bits }, expression),
            _ if self == Self::BOOL => binary(Binary::Unequal, expression, Expression::Constant(0)),
            _ if self.lo == i64::MIN => expression,
            _ => unary(Unary::Within { lo: self.lo, hi: self.hi }, expression),
        }
    }
}

/// A constant, as far as the graph can write it.
fn written(value: Option<i128>) -> Expression {
    let value = value.and_then(|value| i64::try_from(value).ok());
    value.map_or(Expression::Unknown, Expression::Constant)
}

fn binary(operation: Binary, left: Expression, right: Expression) -> Expression {
    match (left, right) {
        (Expression::Unknown, _) | (_, Expression::Unknown) => Expression::Unknown,
        (left, right) if left.parts().len() + right.parts().len() > SIZE_MAX => Expression::Unknown,
        (left, right) => {
            let is_constant = |e: &Expression| matches!(e, Expression::Constant(_));
            let are_constant = is_constant(&left) && is_constant(&right);
            let made = Expression::Binary(operation, Box::new(left), Box::new(right));
            match are_constant {
                true => made.value(&[]).map_or(Expression::Unknown, Expression::Constant),
                false => made,
            }
        }
    }
}

fn unary(operation: Unary, inner: Expression) -> Expression {
    let is_constant = matches!(inner, Expression::Constant(_) | Expression::Unknown);
    let made = Expression::Unary(operation, Box::new(inner));
    match is_constant {
        true => made.value(&[]).map_or(Expression::Unknown, Expression::Constant),
        false => made,
    }
}

/// An expression larger than this is taken as unknown.
const SIZE_MAX: usize = 200;

/// A value, its bounds, which may be wider than the type's where C's arithmetic wraps, and the
/// type.
#[derive(Clone, Debug)]
struct Value {
    expression: Expression,
    lo: i128,
    hi: i128,
    kind: Integer,
    /// Its value, if it is constant: computed by C's rules, step by step.
    exact: Option<i128>,
}

impl From<Constant> for Value {
    fn from(Constant { value, kind }: Constant) -> Self {
        let (lo, hi) = value.map_or((kind.lo.into(), kind.hi.into()), |value| (value, value));
        Self { expression: written(value), lo, hi, kind, exact: value }
    }
}

impl Value {
    fn of(expression: Expression, kind: Integer) -> Self {
        Self { expression, lo: kind.lo.into(), hi: kind.hi.into(), kind, exact: None }
    }

    fn constant(&self) -> Option<Constant> {
        self.exact.map(|_| Constant { value: self.exact, kind: self.kind })
    }

    fn truth(expression: Expression) -> Self {
        Self { lo: 0, hi: 1, ..Self::of(expression, Integer::INT) }
    }

    /// Converted to a type: what does not fit is unknown.
    fn to(self, kind: Integer) -> Self {
        // Before it becomes wider what has wrapped must have.
        let from = if kind.bits > self.kind.bits { self.fit(self.kind) } else { self };
        from.fit(kind)
    }

    fn fit(&self, kind: Integer) -> Self {
        if let Some(constant) = self.constant() {
            return constant.to(kind).into();
        }
        if kind != Integer::BOOL && i128::from(kind.lo) <= self.lo && self.hi <= i128::from(kind.hi)
        {
            return Self { kind, ..self.clone() };
        }
        Self::of(kind.holds(self.expression.clone()), kind)
    }

    /// As an operand of `+`, `-` and `*`, which agree with C's as long as the end result fits.
    fn operand(self, kind: Integer) -> Self {
        match self.kind.bits < kind.bits {
            true => self.fit(self.kind),
            false => self,
        }
    }
}

/// Which local variables have values that the graph can know, by their places in the function's
/// list: integers of C's own types whose address is not taken, but to write or read a message.
pub(super) fn registers<'t>(unit: &Unit<'t>, function: &Function<'t>) -> Vec<Option<Integer>> {
    let mut found: Vec<Option<Integer>> =
        function.variables.iter().map(|v| register(unit, v)).collect();
    walk(function.body, |node| {
        let is_asm = node.kind().starts_with("gnu_asm");
        let is_address = node.kind() == "pointer_expression" && unit.words(node).starts_with('&');
        let is_message = is_address && net::moves(unit, node).is_some();
        let target = node.child_by_field_name("argument").filter(|_| is_address && !is_message);
        let named = |inner: Node<'t>, found: &mut Vec<Option<Integer>>| {
            let at = unit.resolve_index(function, unit.words(inner), inner.start_byte());
            if let Some(at) = at {
                found[at] = None;
            }
        };
        if let Some(target) = target {
            named(bare(target), &mut found);
        }
        if is_asm {
            walk(node, |inner| {
                if inner.kind() == "identifier" {
                    named(inner, &mut found);
                }
                true
            });
        }
        true
    });
    found.truncate(usize::from(u16::MAX));
    found
}

fn register<'t>(unit: &Unit<'t>, variable: &Variable<'t>) -> Option<Integer> {
    let is_plain = variable.declarator.kind() == "identifier" && !variable.is_static;
    let kind = variable.kind.filter(|_| is_plain)?;
    let has_qualifier = |word| qualifiers(unit, variable).any(|q| q == word);
    (!has_qualifier("volatile") && !has_qualifier("_Atomic")).then(|| integer(unit, kind))?
}

fn qualifiers<'u, 't>(
    unit: &'u Unit<'t>,
    variable: &Variable<'t>,
) -> impl Iterator<Item = &'t str> + use<'u, 't> {
    let mut node = Some(variable.declarator);
    while node.is_some_and(|n| !n.kind().ends_with("declaration")) {
        node = node.and_then(|n| n.parent());
    }
    let all = node.map(children).unwrap_or_default();
    all.into_iter().filter(|n| n.kind() == "type_qualifier").map(|n| unit.words(n))
}

/// Whether the condition of a `for` loop holds when control comes to it first: its counter begins
/// with a constant, and is compared with another one.
pub(super) fn begins<'t>(unit: &Unit<'t>, function: &Function<'t>, node: Node<'t>) -> bool {
    let first = || {
        let first = node.child_by_field_name("initializer")?;
        let (assignment, name) = match first.kind() {
            "declaration" => match fields(first, "declarator")[..] {
                [one] => (one, one.child_by_field_name("declarator")?),
                _ => return None,
            },
            _ => (first, first.child_by_field_name("left")?),
        };
        let is_plain = match assignment.child_by_field_name("operator") {
            Some(operator) => unit.words(operator) == "=",
            None => assignment.kind() == "init_declarator",
        };
        let value = ["value", "right"].map(|field| assignment.child_by_field_name(field));
        let from = unit.constant(value.into_iter().flatten().next().filter(|_| is_plain)?)?;
        let condition = plain(node.child_by_field_name("condition")?);
        let left = plain(condition.child_by_field_name("left")?);
        let at = unit.resolve_index(function, unit.words(left), left.start_byte())?;
        let kind = register(unit, &function.variables[at])?;
        let to = unit.constant(condition.child_by_field_name("right")?)?;
        // No conversion changes what is not negative and fits.
        let fits = unit.words(left) == unit.words(name)
            && (0..=i128::from(kind.hi)).contains(&from)
            && (0..=i128::from(i64::MAX)).contains(&to);
        let operator = unit.words(condition.child_by_field_name("operator")?);
        fits.then_some(match operator {
            "<" => from < to,
            "<=" => from <= to,
            ">" => from > to,
            ">=" => from >= to,
            "!=" => from != to,
            _ => false,
        })
    };
    first() == Some(true)
}

/// Reads expressions of one function.
pub(super) struct Reader<'u, 't> {
    pub unit: &'u Unit<'t>,
    pub function: &'u Function<'t>,
    pub registers: &'u [Option<Integer>],
}

impl<'t> Reader<'_, 't> {
    /// An expression, when all that it does has been done.
    pub(super) fn read(&self, node: Node<'t>) -> Expression {
        self.converted(node, None)
    }

    /// The same with its type.
    pub(super) fn typed(&self, node: Node<'t>) -> (Expression, Option<Integer>) {
        let kind = self.value(node, &self.moved(node)).map(|value| value.kind);
        (self.read(node), kind)
    }

    /// Whether a `switch` comes to a case, the constant of which becomes one of the value's type.
    pub(super) fn chosen(&self, value: Node<'t>, case: Node<'t>) -> Expression {
        let chosen = self.value(value, &self.moved(value)).zip(self.unit.typed(case));
        let made = chosen.and_then(|(value, case)| {
            let kind = value.kind.promoted();
            operation("==", value.to(kind), case.to(kind).into())
        });
        self.limited(made, None)
    }

    /// A part of one.
    pub(super) fn part(&self, node: Node<'t>, whole: Node<'t>) -> Expression {
        self.limited(self.value(node, &self.moved(whole)), None)
    }

    /// What a variable has when an expression has been assigned to it.
    pub(super) fn assigned(&self, variable: usize, value: Node<'t>) -> Expression {
        match self.registers.get(variable) {
            Some(Some(kind)) => self.converted(value, Some(*kind)),
            _ => Expression::Unknown,
        }
    }

    fn converted(&self, node: Node<'t>, kind: Option<Integer>) -> Expression {
        self.limited(self.value(node, &self.moved(node)), kind)
    }

    fn limited(&self, value: Option<Value>, kind: Option<Integer>) -> Expression {
        let made = value.map(|v| {
            let kind = kind.unwrap_or(v.kind);
            v.to(kind).expression
        });
        made.unwrap_or(Expression::Unknown)
    }

    /// What a variable has after `x += value`, `x++` and the like.
    pub(super) fn changed(
        &self,
        variable: usize,
        operator: &str,
        value: Option<Node<'t>>,
    ) -> Expression {
        let Some(Some(kind)) = self.registers.get(variable) else { return Expression::Unknown };
        let old = Value::of(Expression::Register(variable as u16), *kind);
        let by = match value {
            Some(node) if self.moves(node, variable) => None,
            Some(node) => self.value(node, &self.moved(node)),
            None => Some(Value::from(Constant::int(1))),
        };
        let made = by.and_then(|by| operation(operator, old, by)).map(|v| v.to(*kind).expression);
        made.unwrap_or(Expression::Unknown)
    }

    fn moves(&self, node: Node<'t>, variable: usize) -> bool {
        let mut found = false;
        walk(node, |inner| {
            found |= self.target(inner) == Some(variable);
            true
        });
        found
    }

    /// The variable that an expression assigns to by itself.
    fn target(&self, node: Node<'t>) -> Option<usize> {
        let target = match node.kind() {
            "assignment_expression" => node.child_by_field_name("left")?,
            "update_expression" => node.child_by_field_name("argument")?,
            _ => return None,
        };
        self.variable(bare(target))
    }

    fn variable(&self, node: Node<'t>) -> Option<usize> {
        if node.kind() != "identifier" {
            return None;
        }
        self.unit.resolve_index(self.function, self.unit.words(node), node.start_byte())
    }

    /// Variables that an expression assigns to and has at another place too: nothing is known of
    /// them in it.
    fn moved(&self, node: Node<'t>) -> Vec<usize> {
        let (mut targets, mut seen) = (Vec::new(), Vec::new());
        walk(node, |inner| {
            targets.extend(self.target(inner));
            seen.extend(self.variable(inner));
            true
        });
        targets.retain(|v| seen.iter().filter(|s| *s == v).count() > 1);
        targets
    }

    fn value(&self, node: Node<'t>, moved: &[usize]) -> Option<Value> {
        let field = |name| node.child_by_field_name(name);
        let of = |name| self.value(field(name)?, moved);
        match node.kind() {
            "parenthesized_expression" => {
                let inner = plain(node);
                (inner != node).then(|| self.value(inner, moved))?
            }
            "number_literal" | "char_literal" | "true" | "false" | "sizeof_expression" => {
                self.unit.typed(node).map(Value::from)
            }
            "identifier" => self.name(node, moved),
            "cast_expression" => {
                let kind = field("type")?;
                let is_plain = kind.child_by_field_name("declarator").is_none();
                let kind = integer(self.unit, kind.child_by_field_name("type")?)?;
                Some(of("value").filter(|_| is_plain)?.to(kind))
            }
            "unary_expression" => self.unary(node, moved),
            "update_expression" => self.update(node, moved),
            "assignment_expression" => {
                // It has been assigned already.
                let kind = self.registers.get(self.target(node)?).copied().flatten()?;
                let register = Expression::Register(self.target(node)? as u16);
                let is_known = !moved.contains(&self.target(node)?);
                is_known.then(|| Value::of(register, kind))
            }
            "conditional_expression" => {
                let condition = of("condition")?;
                choice(&condition, of("consequence")?, of("alternative")?)
            }
            "comma_expression" => of("right"),
            "call_expression" if self.unit.callee(node) == Some("__builtin_expect") => {
                let first = *children(field("arguments")?).first()?;
                self.value(first, moved).map(|value| value.to(Integer::signed(64)))
            }
            "binary_expression" => {
                let operator = self.unit.words(field("operator")?);
                operation(operator, of("left")?, of("right")?)
            }
            _ => None,
        }
    }

    fn name(&self, node: Node<'t>, moved: &[usize]) -> Option<Value> {
        if let Some(variable) = self.variable(node) {
            let kind = self.registers.get(variable).copied().flatten()?;
            let is_known = !moved.contains(&variable);
            return is_known.then(|| Value::of(Expression::Register(variable as u16), kind));
        }
        if let Some(constant) = self.unit.typed(node) {
            return Some(constant.into());
        }
        let name = self.unit.words(node);
        let global = self.unit.globals.iter().find(|g| g.name == name)?;
        let has = |word| qualifiers(self.unit, global).any(|q| q == word);
        let is_plain = global.declarator.kind() == "identifier";
        let is_fixed = is_plain && has("const") && !has("volatile");
        let kind = integer(self.unit, global.kind?).filter(|_| is_fixed)?;
        // Not the value of another one, which may be this.
        Some(self.unit.typed(global.value?)?.to(kind).into())
    }

    fn unary(&self, node: Node<'t>, moved: &[usize]) -> Option<Value> {
        let value = self.value(node.child_by_field_name("argument")?, moved)?;
        let operator = self.unit.words(node.child_by_field_name("operator")?);
        if let Some(constant) = value.constant() {
            return constant.unary(operator).map(Value::from);
        }
        let kind = value.kind.promoted();
        let inner = value.expression.clone();
        match operator {
            "-" => Some(Value {
                expression: unary(Unary::Minus, inner),
                lo: -value.hi,
                hi: -value.lo,
                kind,
                exact: None,
            }),
            "~" => Some(Value {
                expression: unary(Unary::Complement, inner),
                lo: -value.hi - 1,
                hi: -value.lo - 1,
                kind,
                exact: None,
            }),
            "+" => Some(Value { kind, ..value }),
            "!" => {
                let inner = value.fit(value.kind).expression;
                Some(Value::truth(unary(Unary::Not, inner)))
            }
            _ => None,
        }
    }

    /// `i++` when it has been done.
    fn update(&self, node: Node<'t>, moved: &[usize]) -> Option<Value> {
        let variable = self.target(node)?;
        let kind = self.registers.get(variable).copied().flatten()?;
        if moved.contains(&variable) {
            return None;
        }
        let now = Value::of(Expression::Register(variable as u16), kind);
        let text = self.unit.words(node);
        let one = Value::from(Constant::int(1));
        match () {
            () if text.starts_with("++") || text.starts_with("--") => Some(now),
            () if text.ends_with("++") => operation("-", now, one).map(|v| v.to(kind)),
            () => operation("+", now, one).map(|v| v.to(kind)),
        }
    }
}

/// `c ? a : b` without a branch.
fn choice(condition: &Value, yes: Value, no: Value) -> Option<Value> {
    let kind = yes.kind.with(no.kind);
    let (yes, no) = (yes.to(kind), no.to(kind));
    if let Some(value) = condition.exact {
        return Some(if value == 0 { no } else { yes });
    }
    let inner = condition.fit(condition.kind).expression;
    let zero = || Expression::Constant(0);
    let is = binary(Binary::Unequal, inner.clone(), zero());
    let is_not = binary(Binary::Equal, inner, zero());
    let sum = binary(
        Binary::Add,
        binary(Binary::Multiply, yes.expression, is),
        binary(Binary::Multiply, no.expression, is_not),
    );
    let (lo, hi) = (yes.lo.min(no.lo), yes.hi.max(no.hi));
    Some(Value { expression: sum, lo, hi, kind, exact: None })
}

fn operation(operator: &str, left: Value, right: Value) -> Option<Value> {
    if let (Some(left), Some(right)) = (left.constant(), right.constant()) {
        return left.binary(operator, right).map(Value::from);
    }
    let arithmetic = match operator {
        "+" => Some(Binary::Add),
        "-" => Some(Binary::Subtract),
        "*" => Some(Binary::Multiply),
        _ => None,
    };
    if let Some(operation) = arithmetic {
        return Some(ring(operation, left, right));
    }
    let kind = left.kind.with(right.kind);
    let comparison = match operator {
        "==" => Some(Binary::Equal),
        "!=" => Some(Binary::Unequal),
        "<" => Some(Binary::Less),
        "<=" => Some(Binary::LessOrEqual),
        ">" => Some(Binary::Greater),
        ">=" => Some(Binary::GreaterOrEqual),
        _ => None,
    };
    if let Some(operation) = comparison {
        let (left, right) = (left.to(kind).expression, right.to(kind).expression);
        return Some(Value::truth(binary(operation, left, right)));
    }
    if let "&&" | "||" = operator {
        let truth = |value: Value| {
            let inner = value.fit(value.kind).expression;
            binary(Binary::Unequal, inner, Expression::Constant(0))
        };
        let operation = if operator == "&&" { Binary::And } else { Binary::Or };
        return Some(Value::truth(binary(operation, truth(left), truth(right))));
    }
    if let "<<" | ">>" = operator {
        let kind = left.kind.promoted();
        let left = left.to(kind);
        let most = i64::from(kind.bits.min(63)) - 1;
        let (by, far) = match right.fit(right.kind).expression {
            Expression::Constant(by) if (0..=most).contains(&by) => (Expression::Constant(by), by),
            Expression::Constant(_) | Expression::Unknown => return None,
            by => (unary(Unary::Within { lo: 0, hi: most }, by), most),
        };
        let is_left = operator == "<<";
        let operation = if is_left { Binary::ShiftLeft } else { Binary::ShiftRight };
        let expression = binary(operation, left.expression, by);
        // By 0 it is itself.
        let bound = |at: i128| if is_left { at << far } else { at };
        return Some(Value {
            expression,
            lo: bound(left.lo.min(0)),
            hi: bound(left.hi.max(0)),
            kind,
            exact: None,
        });
    }
    let operation = match operator {
        "/" => Binary::Divide,
        "%" => Binary::Remainder,
        "&" => Binary::And,
        "|" => Binary::Or,
        "^" => Binary::Xor,
        _ => return None,
    };
    let (left, right) = (left.to(kind), right.to(kind));
    let (lo, hi) = match operation {
        // The least number divided by -1.
        Binary::Divide if kind.is_signed => (i128::from(kind.lo), i128::from(kind.hi) + 1),
        _ => (i128::from(kind.lo), i128::from(kind.hi)),
    };
    let expression = binary(operation, left.expression, right.expression);
    Some(Value { expression, lo, hi, kind, exact: None })
}

fn ring(operation: Binary, left: Value, right: Value) -> Value {
    let kind = left.kind.with(right.kind);
    let (left, right) = (left.operand(kind), right.operand(kind));
    let all = match operation {
        Binary::Add => [left.lo + right.lo, left.hi + right.hi].to_vec(),
        Binary::Subtract => [left.lo - right.hi, left.hi - right.lo].to_vec(),
        _ => [left.lo, left.hi]
            .into_iter()
            .flat_map(|a| [a.saturating_mul(right.lo), a.saturating_mul(right.hi)])
            .collect(),
    };
    let most = i128::MAX >> 2;
    let lo = all.iter().copied().min().unwrap_or(-most).clamp(-most, most);
    let hi = all.iter().copied().max().unwrap_or(most).clamp(-most, most);
    let expression = binary(operation, left.expression, right.expression);
    Value { expression, lo, hi, kind, exact: None }
}
