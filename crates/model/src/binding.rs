//! What realises the abstract channels of a program (`docs/timed-c.md`): `chan` of
//! `chan_write(value)` and `chan_read()`.

use serde::Deserialize;

/// How many values a fifochannel has room for by default.
pub const FIFO_VALUES: u32 = 1_024;

/// The most values that a bound fifochannel has room for.
pub const FIFO_VALUES_MAX: u32 = 1_048_576;

/// The type of an abstract channel's values, as C spells it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum ValueType {
    /// `int`.
    #[default]
    #[serde(rename = "int")]
    Int,
    /// `int8_t`.
    #[serde(rename = "int8_t")]
    Int8,
    /// `uint8_t`.
    #[serde(rename = "uint8_t")]
    Uint8,
    /// `int16_t`.
    #[serde(rename = "int16_t")]
    Int16,
    /// `uint16_t`.
    #[serde(rename = "uint16_t")]
    Uint16,
    /// `int32_t`.
    #[serde(rename = "int32_t")]
    Int32,
    /// `uint32_t`.
    #[serde(rename = "uint32_t")]
    Uint32,
    /// `int64_t`.
    #[serde(rename = "int64_t")]
    Int64,
    /// `uint64_t`.
    #[serde(rename = "uint64_t")]
    Uint64,
    /// `float`.
    #[serde(rename = "float")]
    Float,
    /// `double`.
    #[serde(rename = "double")]
    Double,
}

impl ValueType {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::Int,
        Self::Int8,
        Self::Uint8,
        Self::Int16,
        Self::Uint16,
        Self::Int32,
        Self::Uint32,
        Self::Int64,
        Self::Uint64,
        Self::Float,
        Self::Double,
    ];

    /// As C spells it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Int => "int",
            Self::Int8 => "int8_t",
            Self::Uint8 => "uint8_t",
            Self::Int16 => "int16_t",
            Self::Uint16 => "uint16_t",
            Self::Int32 => "int32_t",
            Self::Uint32 => "uint32_t",
            Self::Int64 => "int64_t",
            Self::Uint64 => "uint64_t",
            Self::Float => "float",
            Self::Double => "double",
        }
    }

    /// The octets of a value.
    pub const fn octets(self) -> u32 {
        match self {
            Self::Int8 | Self::Uint8 => 1,
            Self::Int16 | Self::Uint16 => 2,
            Self::Int | Self::Int32 | Self::Uint32 | Self::Float => 4,
            Self::Int64 | Self::Uint64 | Self::Double => 8,
        }
    }

    /// Whether it has a fraction.
    pub const fn is_floating(self) -> bool {
        matches!(self, Self::Float | Self::Double)
    }
}

/// What an abstract channel of a program is: `chan` of `chan_write(value)` and `chan_read()`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding {
    /// What stands before `_write` and `_read`.
    pub name: String,
    /// What realises it.
    pub to: Realisation,
    /// The type of its values.
    pub value: ValueType,
}

/// What realises an abstract channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Realisation {
    /// A fifochannel with room for so many values.
    Fifo(u32),
    /// The network channel of this name, with a reservation or as best effort.
    Network(String),
}

/// As `onbeat cc --bind` takes it: `chan=fifo`, `chan=fifo:64,double`, `chan=network:speed`.
impl std::fmt::Display for Binding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.to {
            Realisation::Fifo(count) => write!(f, "{}=fifo:{count}", self.name)?,
            Realisation::Network(channel) => write!(f, "{}=network:{channel}", self.name)?,
        }
        write!(f, ",{}", self.value.name())
    }
}

impl std::str::FromStr for Binding {
    /// What is wrong with it.
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let shape = "write NAME=fifo, NAME=fifo:VALUES or NAME=network:CHANNEL, and behind it \
                     ,TYPE if the values are no int";
        let (name, rest) = text.split_once('=').ok_or(shape)?;
        let is_word = |text: &str| {
            let all = text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
            all && !text.is_empty() && !text.starts_with(|c: char| c.is_ascii_digit())
        };
        let (to, kind) = rest.split_once(',').unwrap_or((rest, "int"));
        let to = match to.split_once(':') {
            None if to == "fifo" => Realisation::Fifo(FIFO_VALUES),
            Some(("fifo", count)) => {
                let count = count.parse().ok().filter(|n| (1..=FIFO_VALUES_MAX).contains(n));
                let range = || format!("a fifochannel has room for 1 to {FIFO_VALUES_MAX} values");
                Realisation::Fifo(count.ok_or_else(range)?)
            }
            Some(("network", channel)) if is_word(channel) => {
                Realisation::Network(channel.to_owned())
            }
            _ => return Err(shape.to_owned()),
        };
        let known = ValueType::ALL.into_iter().find(|known| known.name() == kind);
        let names: Vec<&str> = ValueType::ALL.iter().map(|known| known.name()).collect();
        let value = known.ok_or_else(|| format!("values are of {}", names.join(", ")))?;
        if !is_word(name) {
            return Err(shape.to_owned());
        }
        Ok(Self { name: name.to_owned(), to, value })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        for value in ValueType::ALL {
            for to in [Realisation::Fifo(7), Realisation::Network("speed".into())] {
                let binding = Binding { name: "chan".into(), to, value };
                assert_eq!(binding.to_string().parse(), Ok(binding));
            }
        }
        let short: Binding = "chan=fifo".parse().expect("a binding");
        assert_eq!(short.to, Realisation::Fifo(FIFO_VALUES));
        assert_eq!(short.value, ValueType::Int);
    }

    #[test]
    fn what_is_no_binding_is_refused() {
        let wrong = ["chan", "=fifo", "chan=", "chan=fifo:0", "chan=fifo:x", "chan=network:"];
        let more = ["chan=fifo,long", "1=fifo", "chan=network:a b", "chan=pipe:x", "a-b=fifo"];
        for text in wrong.iter().chain(&more) {
            assert!(text.parse::<Binding>().is_err(), "{text}");
        }
    }
}
