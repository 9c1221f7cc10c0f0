//! What an untrusted description may say to the C compiler while its programs
//! are analysed: nothing by which it would execute or write something, or look for headers
//! elsewhere. What is not known to be harmless is refused, and so are files of others.

use crate::trust::is_inside;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// Options that are words of their own.
const WHOLE: [&str; 34] = [
    "--keep-phase",
    "--origin=function",
    "--origin=task",
    "--target=freertos",
    "--target=posix",
    "-ansi",
    "-fPIC",
    "-fPIE",
    "-fdata-sections",
    "-ffast-math",
    "-ffreestanding",
    "-ffunction-sections",
    "-fno-builtin",
    "-fno-common",
    "-fno-strict-aliasing",
    "-fno-unsigned-char",
    "-fomit-frame-pointer",
    "-fopenmp",
    "-fpic",
    "-fpie",
    "-fshort-enums",
    "-fsigned-char",
    "-fstack-protector",
    "-fstack-protector-strong",
    "-fstrict-aliasing",
    "-funsigned-char",
    "-fwrapv",
    "-m32",
    "-m64",
    "-pedantic",
    "-pedantic-errors",
    "-pipe",
    "-pthread",
    "-w",
];

/// Our own options that say of abstract channels and tasks what the description says of them.
const OWN: [&str; 2] = ["--bind=", "--starts="];

/// How harmless options begin that end in a word of letters, digits and `+ - . = _`: those of
/// warnings, optimisation, debugging, the language, and libraries, which are not linked then.
const BEGINNINGS: [&str; 5] = ["-W", "-O", "-g", "-std=", "-l"];

/// Options with a value, in the same word or the next one.
const VALUED: [&str; 7] = ["-D", "-U", "-I", "-L", "-include", "-iquote", "-isystem"];

/// The first word of a program's files and options that is not passed on.
pub(super) fn refused(files: &[String], flags: &[String], base: &Path) -> Option<String> {
    let is_foreign =
        |file: &&String| file.starts_with(['-', '@']) || !is_inside(Path::new(file), base);
    if let Some(file) = files.iter().find(is_foreign) {
        return Some(file.clone());
    }
    let mut words = flags.iter();
    while let Some(word) = words.next() {
        let is_own = OWN.iter().any(|own| word.starts_with(own));
        if is_own || WHOLE.contains(&word.as_str()) || begins(word) {
            continue;
        }
        let valued = VALUED.iter().find_map(|name| Some((*name, word.strip_prefix(name)?)));
        let is_fine = match valued {
            Some((name, "")) => words.next().is_some_and(|value| is_harmless(name, value, base)),
            Some((name, value)) => is_harmless(name, value, base),
            None => false,
        };
        if !is_fine {
            return Some(word.clone());
        }
    }
    None
}

fn begins(word: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "+-.=_".contains(c);
    BEGINNINGS
        .iter()
        .filter_map(|name| word.strip_prefix(name))
        .any(|rest| rest.chars().all(is_plain))
}

fn is_harmless(name: &str, value: &str, base: &Path) -> bool {
    match name {
        "-I" | "-include" | "-iquote" | "-isystem" => is_inside(Path::new(value), base),
        // The directory of libraries is not looked at.
        "-L" => true,
        _ => !value.is_empty(),
    }
}

/// The first file that the preprocessor has read, by the markers in what it made, that is neither
/// in the description's directory nor in one of those with the compiler's headers, or ours.
pub(super) fn included(made: &[u8], base: &Path, headers: &[PathBuf]) -> Option<PathBuf> {
    let marker = |line: &[u8]| -> Option<Vec<u8>> {
        let rest = line.strip_prefix(b"# ")?;
        let digits = rest.iter().take_while(|octet| octet.is_ascii_digit()).count();
        let rest = rest[digits..].strip_prefix(b" \"")?;
        let end = rest.iter().rposition(|octet| *octet == b'"')?;
        Some(rest[..end].to_vec())
    };
    let lines = made.split(|octet| *octet == b'\n').map(|line| line.trim_ascii_end());
    let paths: BTreeSet<Vec<u8>> = lines.filter_map(marker).collect();
    let paths = paths.iter().map(|path| PathBuf::from(OsString::from_vec(unescaped(path))));
    let is_own = |path: &Path| {
        // `<built-in>` and such, and the text that it is given in place of a file.
        let name = path.to_string_lossy();
        let is_none = name.starts_with('<') && name.ends_with('>') && !name.contains('/');
        is_none
            || name == "/dev/stdin"
            || is_inside(path, base)
            || path.is_absolute() && headers.iter().any(|own| is_inside(path, own))
    };
    paths.into_iter().find(|path| !is_own(path))
}

/// A name as it was before the preprocessor wrote it as a string of C.
fn unescaped(name: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(name.len());
    let mut rest = name;
    while let Some((octet, after)) = rest.split_first() {
        let digits = after.iter().take(3).take_while(|d| (b'0'..=b'7').contains(d)).count();
        let (made, used) = match (octet, digits, after.first()) {
            (b'\\', 3, _) => {
                let value = |sum: u32, digit: &u8| sum * 8 + u32::from(digit - b'0');
                (after[..3].iter().fold(0, value) as u8, 3)
            }
            (b'\\', _, Some(other)) => (*other, 1),
            _ => (*octet, 0),
        };
        plain.push(made);
        rest = &after[used..];
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(all: &[&str]) -> Vec<String> {
        all.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn what_could_execute_write_or_look_elsewhere_is_refused() {
        let base = tempfile::tempdir().expect("a directory");
        std::os::unix::fs::symlink("/usr", base.path().join("link")).expect("a link");
        let bad: [&[&str]; 31] = [
            &["-B./bin/"],
            &["-B", "bin"],
            &["-fplugin=./x.so"],
            &["-fplugin-arg-x-y"],
            &["-specs=s"],
            &["--specs=s"],
            &["-wrapper", "x"],
            &["-Wp,-MD,f"],
            &["-Wa,x"],
            &["-Wl,x"],
            &["-include", "/etc/passwd"],
            &["-imacros", "x"],
            &["@file"],
            &["-o", "x"],
            &["-I", "/usr/include"],
            &["-I.."],
            &["-I../x"],
            &["-Ilink"],
            &["-I=x/../.."],
            &["-isystem", "/usr/include"],
            &["-MD"],
            &["-MF", "x"],
            &["-save-temps"],
            &["-Xpreprocessor", "x"],
            &["-fdump-tree-all"],
            &["-dumpbase", "x"],
            &["-D"],
            &["-x", "c++"],
            &["-"],
            &["-fuse-ld=x"],
            &["-T", "x"],
        ];
        for flags in bad {
            assert_eq!(refused(&[], &words(flags), base.path()).as_deref(), Some(flags[0]));
        }
        for file in ["-fplugin=x.c", "@x.c", "../x.c", "/etc/passwd", "link/include"] {
            assert_eq!(refused(&words(&[file]), &[], base.path()).as_deref(), Some(file));
        }
    }

    #[test]
    fn files_elsewhere_are_told_by_any_name() {
        let base = tempfile::tempdir().expect("a directory");
        for name in [&b"x.h"[..], b"a\"b\\.h", b"\xff.h", b"\xc3\xa9.h", b"<a>.h", b"a\\101.h"] {
            let link = base.path().join(OsString::from_vec(name.to_vec()));
            std::os::unix::fs::symlink("/etc/passwd", &link).expect("a link");
            let octal = |octet: &u8| format!("\\{octet:03o}").into_bytes();
            let escaped = |octet: &u8| match octet {
                b'"' | b'\\' => vec![b'\\', *octet],
                _ => vec![*octet],
            };
            let written = [
                name.iter().flat_map(octal).collect(),
                name.iter().flat_map(escaped).collect::<Vec<u8>>(),
            ];
            for name in written {
                let made = [b"# 1 \"p.c\"\n# 1 \"", &name[..], b"\" 1 3 4\nint x;\n"].concat();
                let told = included(&made, base.path(), &["/usr/include".into()]);
                assert!(told.is_some(), "{}", String::from_utf8_lossy(&made));
            }
        }
        let own = b"# 0 \"<built-in>\"\n# 1 \"sub/x.h\" 1\n# 1 \"/usr/include/stdio.h\" 1 3 4\n";
        assert_eq!(included(own, base.path(), &["/usr/include".into()]), None);
    }

    #[test]
    fn what_programs_are_usually_compiled_with_is_not() {
        let base = tempfile::tempdir().expect("a directory");
        std::fs::create_dir(base.path().join("include")).expect("a directory");
        let flags = words(&[
            "-DX",
            "-DY=\"a b\"",
            "-D",
            "Z",
            "-U",
            "X",
            "-Iinclude",
            "-I",
            "./include",
            "-I.",
            "-Inothing",
            "-O2",
            "-g3",
            "-Wall",
            "-Wno-error=unused",
            "-std=gnu11",
            "-lm",
            "-L../x",
            "-pthread",
            "--origin=function",
            "--keep-phase",
            "-fwrapv",
            "-include",
            "own.h",
        ]);
        assert_eq!(refused(&words(&["a.c", "sub/b.c"]), &flags, base.path()), None);
    }
}
