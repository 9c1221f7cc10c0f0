//! Constant expressions: numbers, enumerators, sizes and what is computed from them, each with its
//! C type. What C leaves undefined, or to the compiler, has no value.

use super::integer::{Integer, integer, word};
use super::net;
use super::syntax::{number, plain};
use super::unit::Unit;
use tree_sitter::Node;

/// A constant of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Constant {
    pub value: Option<i128>,
    pub kind: Integer,
}

impl Constant {
    pub(super) fn int(value: i128) -> Self {
        Self { value: Some(value), kind: Integer::INT }
    }

    fn truth(value: Option<bool>) -> Self {
        Self { value: value.map(i128::from), kind: Integer::INT }
    }

    /// Converted to a type.
    pub(super) fn to(self, kind: Integer) -> Self {
        Self { value: self.value.and_then(|value| kind.convert(value)), kind }
    }

    pub(super) fn unary(self, operator: &str) -> Option<Self> {
        if operator == "!" {
            return Some(Self::truth(self.value.map(|value| value == 0)));
        }
        let Self { value, kind } = self.to(self.kind.promoted());
        let apply: fn(i128) -> i128 = match operator {
            "-" => |value| -value,
            "~" => |value| !value,
            "+" => |value| value,
            _ => return None,
        };
        Some(Self { value: value.and_then(|value| kind.result(apply(value))), kind })
    }

    pub(super) fn binary(self, operator: &str, other: Self) -> Option<Self> {
        let [left, right] = [self, other].map(|side| side.value.map(|value| value != 0));
        match operator {
            "&&" if left == Some(false) => return Some(Self::truth(left)),
            "||" if left == Some(true) => return Some(Self::truth(left)),
            "&&" | "||" => return Some(Self::truth(left.and(right))),
            "<<" | ">>" => return Some(self.shifted(operator == "<<", other)),
            _ => {}
        }
        let kind = self.kind.with(other.kind);
        let both = self.to(kind).value.zip(other.to(kind).value);
        let compared = |compare: fn(&i128, &i128) -> bool| {
            Some(Self::truth(both.map(|(left, right)| compare(&left, &right))))
        };
        let computed = |compute: fn(i128, i128) -> Option<i128>| {
            let value = both.and_then(|(left, right)| kind.result(compute(left, right)?));
            Some(Self { value, kind })
        };
        match operator {
            "==" => compared(i128::eq),
            "!=" => compared(i128::ne),
            "<" => compared(i128::lt),
            "<=" => compared(i128::le),
            ">" => compared(i128::gt),
            ">=" => compared(i128::ge),
            "+" => computed(i128::checked_add),
            "-" => computed(i128::checked_sub),
            // Of numbers without sign of 64 bits the product may have 128.
            "*" if kind.is_signed => computed(i128::checked_mul),
            "*" => computed(|left, right| Some((left as u128).wrapping_mul(right as u128) as i128)),
            "/" => computed(i128::checked_div),
            // Where the quotient overflows, C does not define the remainder.
            "%" if both.is_some_and(|(left, right)| right == -1 && left == i128::from(kind.lo)) => {
                Some(Self { value: None, kind })
            }
            "%" => computed(i128::checked_rem),
            "&" => computed(|left, right| Some(left & right)),
            "|" => computed(|left, right| Some(left | right)),
            "^" => computed(|left, right| Some(left ^ right)),
            _ => None,
        }
    }

    fn shifted(self, is_left: bool, by: Self) -> Self {
        let Self { value, kind } = self.to(self.kind.promoted());
        let by = by.value.filter(|by| (0..i128::from(kind.bits)).contains(by));
        let value = value.zip(by).and_then(|(value, by)| match is_left {
            true if value < 0 => None,
            true => kind.result(value << by),
            false => Some(value >> by),
        });
        Self { value, kind }
    }

    /// `c ? a : b`
    pub(super) fn choice(self, yes: Self, no: Self) -> Self {
        let kind = yes.kind.with(no.kind);
        let value = self.value.and_then(|value| (if value == 0 { no } else { yes }).to(kind).value);
        Self { value, kind }
    }
}

impl<'t> Unit<'t> {
    /// The value of a constant expression.
    pub(super) fn constant(&self, node: Node<'t>) -> Option<i128> {
        self.typed(node)?.value
    }

    /// The same with its type; none if it is no constant expression, or the type is not known.
    pub(super) fn typed(&self, node: Node<'t>) -> Option<Constant> {
        let field = |name| node.child_by_field_name(name);
        let of = |name| self.typed(field(name)?);
        match node.kind() {
            "parenthesized_expression" => {
                let inner = plain(node);
                (inner != node).then(|| self.typed(inner))?
            }
            "number_literal" => self.literal(self.words(node)),
            "char_literal" => {
                let text = self.words(node).strip_prefix('\'')?.strip_suffix('\'')?;
                let [byte] = text.as_bytes() else { return None };
                byte.is_ascii().then(|| Constant::int(i128::from(*byte)))
            }
            "true" => Some(Constant::int(1)),
            "false" => Some(Constant::int(0)),
            "identifier" => self.enumerator_at(node).map(Constant::int),
            "cast_expression" => {
                let kind = field("type")?;
                let is_plain = kind.child_by_field_name("declarator").is_none();
                let kind = integer(self, kind.child_by_field_name("type").filter(|_| is_plain)?)?;
                Some(of("value")?.to(kind))
            }
            "sizeof_expression" => {
                let kind = Integer::unsigned(word(self.options.target));
                Some(Constant { value: Some(i128::from(self.size_of(node)?)), kind })
            }
            "unary_expression" => of("argument")?.unary(self.words(field("operator")?)),
            "conditional_expression" => {
                Some(of("condition")?.choice(of("consequence")?, of("alternative")?))
            }
            "binary_expression" => of("left")?.binary(self.words(field("operator")?), of("right")?),
            _ => None,
        }
    }

    /// A number with its type: the first that has its value, of those that its base and its suffix
    /// allow.
    fn literal(&self, text: &str) -> Option<Constant> {
        if let Some(rest) = text.strip_prefix(['-', '+']) {
            return self.literal(rest.trim_start())?.unary(&text[..1]);
        }
        let value = number(text)?;
        let lower = text.to_ascii_lowercase();
        let digits = lower.trim_end_matches(['u', 'l']);
        let suffix = &lower[digits.len()..];
        let (has_u, is_decimal) = (suffix.contains('u'), !digits.starts_with('0'));
        let least = match suffix.matches('l').count() {
            0 => 32,
            1 => word(self.options.target),
            2 => 64,
            _ => return None,
        };
        let kinds = [32, 64].into_iter().filter(|bits| *bits >= least).flat_map(|bits| {
            let signed = (!has_u).then(|| Integer::signed(bits));
            let unsigned = (has_u || !is_decimal).then(|| Integer::unsigned(bits));
            signed.into_iter().chain(unsigned)
        });
        let kind = kinds.into_iter().find(|kind| kind.convert(value) == Some(value))?;
        Some(Constant { value: Some(value), kind })
    }

    /// The octets of a type, a variable or an element of it.
    fn size_of(&self, node: Node<'t>) -> Option<i64> {
        if let Some(kind) = node.child_by_field_name("type") {
            return match kind.child_by_field_name("declarator") {
                Some(d) if d.kind() == "abstract_pointer_declarator" => {
                    Some(i64::from(word(self.options.target) / 8))
                }
                Some(_) => None,
                None => {
                    let kind = integer(self, kind.child_by_field_name("type")?)?;
                    (kind != Integer::ENUM).then_some(i64::from(kind.bits / 8))
                }
            };
        }
        let value = plain(node.child_by_field_name("value")?);
        let (target, is_part) = match value.kind() {
            "subscript_expression" => (plain(value.child_by_field_name("argument")?), true),
            _ => (value, false),
        };
        let name = self.words(target);
        let local = self.function_at(target.start_byte());
        let local = local.and_then(|f| self.resolve(f, name, target.start_byte()));
        let global = || self.globals.iter().find(|g| g.name == name);
        let variable = local.or_else(global).filter(|v| !v.is_parameter)?;
        if !is_part {
            return net::object(self, variable);
        }
        let (octets, array) = net::element(self, variable)?;
        let inner = array.child_by_field_name("declarator")?;
        let is_plain = array.kind() == "array_declarator" && inner.kind() == "identifier";
        is_plain.then_some(octets)
    }
}
