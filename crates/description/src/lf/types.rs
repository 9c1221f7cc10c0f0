//! How many octets values take.

use super::syntax::{Array, Type};

/// What a type says of the size of its values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::lf) enum Size {
    /// So many octets.
    Octets(u32),
    /// Different values have different sizes: someone must say how large they may be.
    Variable,
    /// A compiler of C knows: the type as C has it.
    Ask(String),
    /// It is not known here.
    Unknown,
}

/// Types of C and C++ whose size is the same on all platforms that Onbeat runs on.
const FIXED: [(&[&str], u32); 4] = [
    (&["char", "bool", "_Bool", "int8_t", "uint8_t", "std::int8_t", "std::uint8_t"], 1),
    (&["short", "int16_t", "uint16_t", "std::int16_t", "std::uint16_t"], 2),
    (&["int", "unsigned", "float", "int32_t", "uint32_t", "std::int32_t"], 4),
    (
        &[
            "long",
            "double",
            "int64_t",
            "uint64_t",
            "size_t",
            "usize",
            "isize",
            "instant_t",
            "interval_t",
            "std::int64_t",
            "std::uint64_t",
            "std::size_t",
        ],
        8,
    ),
];

/// Which words a target language has for types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::lf) enum Words {
    /// C, CCpp and micro-LF: a compiler of C knows the rest.
    C,
    /// C++ and Rust.
    Native,
    /// Python and TypeScript: values are serialized, and their sizes vary.
    Dynamic,
}

/// The words of a target, by its name.
pub(in crate::lf) fn words(target: &str) -> Words {
    match target.to_ascii_lowercase().as_str() {
        "c" | "ccpp" | "uc" => Words::C,
        "cpp" | "rust" => Words::Native,
        _ => Words::Dynamic,
    }
}

/// The size of a type; `none` is a port without a type.
pub(in crate::lf) fn size(kind: Option<&Type>, words: Words) -> Size {
    match (kind, words) {
        (_, Words::Dynamic) => Size::Variable,
        // A pure event.
        (None, _) => Size::Octets(0),
        (Some(Type::Time), _) => Size::Octets(8),
        (Some(Type::Code(code)), words) => of_code(code.trim(), words),
        (Some(Type::Named { name, arguments, stars, array }), words) => {
            if *stars > 0 || *array == Some(Array::Variable) || name == "string" {
                return Size::Variable;
            }
            let one = match arguments.is_empty() {
                true => of_name(name, words),
                false => Size::Unknown,
            };
            let Some(Array::Of(count)) = array else { return one };
            match (one, u32::try_from(*count)) {
                (Size::Octets(one), Ok(count)) => {
                    one.checked_mul(count).map_or(Size::Unknown, Size::Octets)
                }
                (Size::Ask(name), Ok(count)) => Size::Ask(format!("{name}[{count}]")),
                _ => Size::Unknown,
            }
        }
    }
}

fn of_name(name: &str, words: Words) -> Size {
    if let Some((_, octets)) = FIXED.iter().find(|(names, _)| names.contains(&name)) {
        return Size::Octets(*octets);
    }
    // Rust's numbers: a letter and bits.
    let bits = name.strip_prefix(['i', 'u', 'f']).and_then(|bits| bits.parse::<u32>().ok());
    if let Some(bits @ (8 | 16 | 32 | 64 | 128)) = bits
        && words == Words::Native
    {
        return Size::Octets(bits / 8);
    }
    match words {
        Words::C if name == "void" => Size::Octets(0),
        Words::C => Size::Ask(name.to_owned()),
        Words::Native if matches!(name, "void") => Size::Octets(0),
        Words::Native if name.starts_with("std::") || name == "String" => Size::Variable,
        Words::Native | Words::Dynamic => Size::Unknown,
    }
}

/// A type that is written as code.
fn of_code(code: &str, words: Words) -> Size {
    let plain = code.split_whitespace().collect::<Vec<_>>().join(" ");
    let is_word = plain.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b':'));
    match words {
        _ if is_word => of_name(&plain, words),
        Words::C if plain.contains('*') || plain.ends_with("[]") => Size::Variable,
        Words::C => Size::Ask(plain),
        Words::Native if plain == "()" => Size::Octets(0),
        Words::Native | Words::Dynamic => Size::Unknown,
    }
}

/// A type as the model writes it.
pub(in crate::lf) fn text(kind: &Type) -> String {
    match kind {
        Type::Time => "time".to_owned(),
        Type::Code(code) => code.trim().to_owned(),
        Type::Named { name, arguments, stars, array } => {
            let mut text = name.clone();
            if !arguments.is_empty() {
                let inner: Vec<String> = arguments.iter().map(|a| self::text(&a.value)).collect();
                text += &format!("<{}>", inner.join(", "));
            }
            text += &"*".repeat(*stars);
            match array {
                None => {}
                Some(Array::Variable) => text += "[]",
                Some(Array::Of(length)) => text += &format!("[{length}]"),
            }
            text
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lf::parser;
    use crate::lf::syntax::Member;

    fn kind(text: &str) -> Type {
        let file = parser::parse(&format!("target C reactor A {{ input x: {text} }}"), 0);
        let file = file.expect("a type");
        let Member::Input(port) = &file.reactors[0].members[0] else { panic!("a port") };
        port.kind.clone().expect("a type").value
    }

    #[test]
    fn sizes_are_known_asked_for_or_vary() {
        let ask = |text: &str| Size::Ask(text.to_owned());
        for (words, text, expected) in [
            (Words::C, "int", Size::Octets(4)),
            (Words::C, "int[3]", Size::Octets(12)),
            (Words::C, "int*", Size::Variable),
            (Words::C, "int[]", Size::Variable),
            (Words::C, "string", Size::Variable),
            (Words::C, "time", Size::Octets(8)),
            (Words::C, "{= uint8_t =}", Size::Octets(1)),
            (Words::C, "{= struct s =}", ask("struct s")),
            (Words::C, "{= char* =}", Size::Variable),
            (Words::C, "pose_t", ask("pose_t")),
            (Words::C, "pose_t[2]", ask("pose_t[2]")),
            (Words::Native, "double", Size::Octets(8)),
            (Words::Native, "u16", Size::Octets(2)),
            (Words::Native, "i7", Size::Unknown),
            (Words::Native, "std::string", Size::Variable),
            (Words::Native, "std::vector<int>", Size::Unknown),
            (Words::Native, "Pose", Size::Unknown),
            (Words::Dynamic, "int", Size::Variable),
        ] {
            assert_eq!(size(Some(&kind(text)), words), expected, "{text}");
        }
        assert_eq!(size(None, Words::C), Size::Octets(0));
        assert_eq!(super::text(&kind("std::map<int, T*>[3]")), "std::map<int, T*>[3]");
    }
}
