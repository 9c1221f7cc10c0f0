//! C's integer types, as far as the target's compilers agree on them.

use super::Target;
use super::unit::Unit;
use tree_sitter::Node;

/// An integer type, or the part of it whose values are taken as known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Integer {
    /// The least value.
    pub(super) lo: i64,
    /// The greatest value.
    pub(super) hi: i64,
    pub(super) bits: u8,
    pub(super) is_signed: bool,
}

impl Integer {
    pub(super) const INT: Self = Self::signed(32);
    pub(super) const BOOL: Self = Self { lo: 0, hi: 1, bits: 8, is_signed: false };
    /// Of size_t values of variables above those of long are taken as unknown, and so are negative
    /// ones of enumerations, whose type is the compiler's choice.
    pub(super) const ENUM: Self = Self { lo: 0, hi: i32::MAX as i64, bits: 32, is_signed: true };
    /// Whether plain `char` has a sign is the machine's choice.
    pub(super) const CHAR: Self = Self { lo: 0, hi: i8::MAX as i64, bits: 8, is_signed: true };

    pub(super) const fn signed(bits: u8) -> Self {
        let hi = i64::MAX >> (64 - bits);
        Self { lo: -hi - 1, hi, bits, is_signed: true }
    }

    pub(super) const fn unsigned(bits: u8) -> Self {
        let hi = if bits == 64 { i64::MAX } else { (1 << bits) - 1 };
        Self { lo: 0, hi, bits, is_signed: false }
    }

    /// Whether what it cannot hold is a value all the same.
    pub(super) fn wraps(self) -> bool {
        !self.is_signed && self.bits < 64 && self != Self::BOOL
    }

    pub(super) fn promoted(self) -> Self {
        if self.bits < 32 { Self::INT } else { self }
    }

    /// What both are converted to in an operation.
    pub(super) fn with(self, other: Self) -> Self {
        let (a, b) = (self.promoted(), other.promoted());
        match a.bits.cmp(&b.bits) {
            std::cmp::Ordering::Less => b,
            std::cmp::Ordering::Greater => a,
            std::cmp::Ordering::Equal if !a.is_signed || !b.is_signed => Self::unsigned(a.bits),
            std::cmp::Ordering::Equal if a == Self::ENUM => a,
            std::cmp::Ordering::Equal => b,
        }
    }

    /// Whether it has no negative values.
    pub(crate) fn is_natural(self) -> bool {
        self.lo == 0
    }

    /// Whether another type has all of its values.
    pub(crate) fn is_within(self, other: Self) -> bool {
        other != Self::BOOL && other.lo <= self.lo && self.hi <= other.hi
    }

    /// A value converted to this type; none where that is the compiler's choice. Signed types wrap
    /// as they do in GCC and Clang, which C leaves to them.
    pub(super) fn convert(self, value: i128) -> Option<i128> {
        if self == Self::BOOL {
            return Some(i128::from(value != 0));
        }
        if self == Self::ENUM {
            return (0..=i128::from(self.hi)).contains(&value).then_some(value);
        }
        let range = 1_i128 << self.bits;
        let low = value.rem_euclid(range);
        let made = if self.is_signed && low >= range / 2 { low - range } else { low };
        (self != Self::CHAR || made >= 0).then_some(made)
    }

    /// The result of an operation in this type; none where C does not define it.
    pub(super) fn result(self, value: i128) -> Option<i128> {
        let fits = (i128::from(self.lo)..=i128::from(self.hi)).contains(&value);
        if self.is_signed { fits.then_some(value) } else { self.convert(value) }
    }
}

/// The most names by which one type is followed.
const TYPEDEFS_MAX: usize = 16;

/// A type's name as an integer type.
pub(super) fn integer<'t>(unit: &Unit<'t>, kind: Node<'t>) -> Option<Integer> {
    let names = std::iter::successors(Some(kind), |kind| unit.named_type(*kind));
    names.take(TYPEDEFS_MAX).find_map(|kind| standard(unit, kind))
}

/// The bits of a pointer, `long` and `size_t`.
pub(super) fn word(target: Target) -> u8 {
    match target {
        Target::Posix => 64,
        Target::FreeRtos => 32,
    }
}

/// An integer type of C's own, or an enumeration.
fn standard(unit: &Unit<'_>, kind: Node<'_>) -> Option<Integer> {
    if kind.kind() == "enum_specifier" {
        return Some(Integer::ENUM);
    }
    let mut names: Vec<&str> = unit.words(kind).split_whitespace().collect();
    let is_signed = !names.contains(&"unsigned");
    let is_plain = is_signed && !names.contains(&"signed");
    names.retain(|w| !matches!(*w, "signed" | "unsigned"));
    let of = |bits| if is_signed { Integer::signed(bits) } else { Integer::unsigned(bits) };
    let word = word(unit.options.target);
    // In any order, as C allows: `long unsigned int`, `int long`.
    if names.len() > 1 {
        names.retain(|w| *w != "int");
    }
    match names[..] {
        ["bool" | "_Bool"] => Some(Integer::BOOL),
        ["char"] if is_plain => Some(Integer::CHAR),
        ["char"] => Some(of(8)),
        ["int8_t"] => Some(Integer::signed(8)),
        ["uint8_t"] => Some(Integer::unsigned(8)),
        ["short"] => Some(of(16)),
        ["int16_t"] => Some(Integer::signed(16)),
        ["uint16_t"] => Some(Integer::unsigned(16)),
        [] | ["int"] => Some(of(32)),
        ["int32_t"] => Some(Integer::signed(32)),
        ["uint32_t"] => Some(Integer::unsigned(32)),
        ["long"] => Some(of(word)),
        ["long", "long"] => Some(of(64)),
        ["int64_t"] => Some(Integer::signed(64)),
        ["uint64_t"] => Some(Integer::unsigned(64)),
        ["ssize_t" | "ptrdiff_t" | "intptr_t"] => Some(Integer::signed(word)),
        ["size_t" | "uintptr_t"] => Some(Integer::unsigned(word)),
        ["time_t"] if word == 64 => Some(Integer::signed(64)),
        _ => None,
    }
}
