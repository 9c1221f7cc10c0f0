//! The command line of a C compiler driver.

use crate::chosen::WrongArgument;
use anyhow::bail;
use onbeat_model::binding::{Binding, Realisation};
use onbeat_program::timedc::{Options, Origin, Target};
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// How far files are to be taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Stage {
    /// `-E`.
    Preprocessed,
    /// `-S`: the C that is generated.
    Generated,
    /// `-c`.
    Object,
    #[default]
    Program,
    /// `-M`, `-MM`, `-fsyntax-only`, `--version` and the like: the C compiler's own business.
    Compilers,
}

/// A part of the line that links, in its order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// What this C file becomes.
    Source(PathBuf),
    /// A file that the C compiler knows what to do with, in a language if one was stated.
    File(PathBuf, Option<OsString>),
    /// An option.
    Flag(OsString),
}

/// What was asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) stage: Stage,
    pub(super) output: Option<PathBuf>,
    pub(super) parts: Vec<Part>,
    /// Options for compiling: all but those for the linker.
    pub(super) flags: Vec<OsString>,
    /// Options for `-E` only, as `-P` and `-C`.
    pub(super) preprocessor: Vec<OsString>,
    /// `-MD` or `-MMD` and what belongs to it but `-MF`.
    pub(super) dependencies: Vec<OsString>,
    /// `-MF`.
    pub(super) dependency_file: Option<PathBuf>,
    pub(super) options: Options,
    /// `--kernel`.
    pub(super) kernel: Option<PathBuf>,
    pub(super) json: bool,
    pub(super) help: bool,
}

/// Options whose value is the next word, when nothing stands behind them.
const WITH_VALUE: [&str; 29] = [
    "-I",
    "-D",
    "-U",
    "-l",
    "-L",
    "-x",
    "-o",
    "-include",
    "-imacros",
    "-isystem",
    "-iquote",
    "-idirafter",
    "-iprefix",
    "-iwithprefix",
    "-iwithprefixbefore",
    "-isysroot",
    "-MF",
    "-MT",
    "-MQ",
    "-Xlinker",
    "-Xpreprocessor",
    "-Xassembler",
    "-T",
    "-u",
    "-z",
    "-A",
    "-e",
    "-B",
    "--param",
];

/// How options for the linker begin.
const LINKERS: [&str; 8] = ["-l", "-L", "-Wl,", "-Xlinker", "-T", "-u", "-z", "-e"];
/// Options for the linker.
const LINKERS_WHOLE: [&str; 10] = [
    "-shared",
    "-static",
    "-static-pie",
    "-pie",
    "-no-pie",
    "-rdynamic",
    "-r",
    "-s",
    "-nostdlib",
    "-static-libgcc",
];

/// The most of a file of arguments.
const ARGUMENTS_OCTETS: u64 = 1 << 20;

/// The deepest that files of arguments may name others.
const FILES_DEEP: usize = 16;

impl Wanted {
    /// Reads the command line.
    pub(super) fn parse(arguments: &[OsString]) -> anyhow::Result<Self> {
        let mut words = Vec::new();
        for argument in arguments {
            expand(argument, FILES_DEEP, &mut words)?;
        }
        let mut wanted = Self::default();
        let mut language: Option<OsString> = None;
        let mut words = words.into_iter();
        while let Some(word) = words.next() {
            let text = word.to_string_lossy().into_owned();
            if text == "-" {
                bail!(WrongArgument("cc reads files, not standard input".to_owned()));
            }
            if !text.starts_with('-') {
                wanted.input(PathBuf::from(word), language.as_ref());
                continue;
            }
            let (name, value) = value(word, &mut words)?;
            match (name.as_str(), value) {
                ("-x", Some(stated)) => language = Some(stated).filter(|l| l != "none"),
                ("-o", Some(file)) => wanted.output = Some(file.into()),
                ("-MF", Some(file)) => wanted.dependency_file = Some(file.into()),
                ("--kernel", Some(tree)) => wanted.kernel = Some(tree.into()),
                ("--target", Some(target)) => match target.to_str() {
                    Some("posix") => wanted.options.target = Target::Posix,
                    Some("freertos") => wanted.options.target = Target::FreeRtos,
                    // A machine's, which only the C compiler knows.
                    _ => wanted.flag("--target=", Some(target)),
                },
                ("--origin", Some(origin)) => match origin.to_str() {
                    Some("task") => wanted.options.origin = Origin::Task,
                    Some("function") => wanted.options.origin = Origin::Function,
                    _ => bail!(WrongArgument("--origin is task or function".to_owned())),
                },
                ("--bind", Some(binding)) => wanted.bind(&binding.to_string_lossy())?,
                ("--starts", Some(tasks)) => {
                    let tasks = tasks.to_string_lossy();
                    let names = tasks.split(',').filter(|name| !name.is_empty());
                    wanted.options.starts = Some(names.map(str::to_owned).collect());
                }
                (name, value) => wanted.option(name, value),
            }
        }
        wanted.check()?;
        Ok(wanted)
    }

    /// What an abstract channel is.
    fn bind(&mut self, text: &str) -> anyhow::Result<()> {
        let wrong = |why: String| WrongArgument(format!("--bind {text}: {why}"));
        let binding: Binding = text.parse().map_err(wrong)?;
        if self.options.bindings.iter().any(|other| other.name == binding.name) {
            bail!(WrongArgument(format!("--bind says twice what `{}` is", binding.name)));
        }
        self.options.bindings.push(binding);
        Ok(())
    }

    fn input(&mut self, file: PathBuf, language: Option<&OsString>) {
        let is_c = match language {
            Some(language) => language == "c",
            None => file.extension().is_some_and(|end| end == "c"),
        };
        self.parts.push(match is_c {
            true => Part::Source(file),
            false => Part::File(file, language.cloned()),
        });
    }

    /// An option that says nothing of files.
    fn option(&mut self, name: &str, value: Option<OsString>) {
        match name {
            "-E" => self.stage = Stage::Preprocessed,
            "-S" if self.stage != Stage::Preprocessed => self.stage = Stage::Generated,
            "-c" if self.stage == Stage::Program => self.stage = Stage::Object,
            "-S" | "-c" => {}
            "--keep-phase" => self.options.keep_phase = true,
            "--json" => self.json = true,
            "--help" | "-h" => self.help = true,
            "-M" | "-MM" | "-fsyntax-only" | "--version" | "-v" | "-###" => {
                self.flag(name, value);
                let is_alone = !matches!(name, "-v" | "-###") || self.parts.is_empty();
                self.stage = if is_alone { Stage::Compilers } else { self.stage };
            }
            "-C" | "-CC" | "-P" | "-dM" | "-dD" | "-dN" | "-dI" | "-dU" => {
                self.preprocessor.push(name.into());
            }
            "-MD" | "-MMD" | "-MP" | "-MG" | "-MT" | "-MQ" => {
                self.dependencies.push(name.into());
                self.dependencies.extend(value);
            }
            _ if name.starts_with("-print-") || name.starts_with("-dump") => {
                self.flag(name, value);
                self.stage = Stage::Compilers;
            }
            _ => self.flag(name, value),
        }
    }

    /// An option for the C compiler, or for the linker alone.
    fn flag(&mut self, name: &str, value: Option<OsString>) {
        let is_linkers =
            LINKERS.iter().any(|begin| name.starts_with(begin)) || LINKERS_WHOLE.contains(&name);
        let mut word = OsString::from(name);
        let words = match value {
            Some(value) if name.ends_with('=') => {
                word.push(value);
                vec![word]
            }
            value => [word].into_iter().chain(value).collect(),
        };
        if !is_linkers || name.starts_with("-std") {
            self.flags.extend(words.iter().cloned());
        }
        self.parts.extend(words.into_iter().map(Part::Flag));
    }

    /// The C files, in their order.
    pub(super) fn sources(&self) -> Vec<&Path> {
        let mut sources = Vec::new();
        for part in &self.parts {
            if let Part::Source(file) = part {
                sources.push(file.as_path());
            }
        }
        sources
    }

    fn check(&self) -> anyhow::Result<()> {
        if self.help || self.stage == Stage::Compilers {
            return Ok(());
        }
        let files = self.parts.iter().filter(|part| !matches!(part, Part::Flag(_))).count();
        let sources = self.sources().len();
        let wrong = match self.stage {
            _ if files == 0 => "no input files".to_owned(),
            Stage::Object | Stage::Generated if self.output.is_some() && files > 1 => {
                "-o names one file, but there are several to write: leave it out, or one by one"
                    .to_owned()
            }
            Stage::Generated if sources < files => {
                "-S shows the C that C files become: leave out the others".to_owned()
            }
            _ if self.options.origin == Origin::Function
                && self.options.target == Target::FreeRtos =>
            {
                "--origin function is not for --target freertos".to_owned()
            }
            _ if self.options.target == Target::FreeRtos
                && self
                    .options
                    .bindings
                    .iter()
                    .any(|b| matches!(b.to, Realisation::Network(_))) =>
            {
                "--bind to a network channel is not for --target freertos".to_owned()
            }
            _ if self.kernel.is_some() && self.options.target != Target::FreeRtos => {
                "--kernel is for --target freertos".to_owned()
            }
            Stage::Program if self.options.target == Target::FreeRtos && self.kernel.is_none() => {
                "--target freertos needs --kernel DIR, the kernel's source tree, to make a \
                 program; -c and -S do not"
                    .to_owned()
            }
            _ => return Ok(()),
        };
        bail!(WrongArgument(wrong))
    }
}

/// An option and its value, which may be the next word.
fn value(
    word: OsString,
    words: &mut dyn Iterator<Item = OsString>,
) -> anyhow::Result<(String, Option<OsString>)> {
    let text = word.to_string_lossy().into_owned();
    for own in ["--target", "--kernel", "--origin", "--bind", "--starts"] {
        if let Some(value) = word.as_bytes().strip_prefix(format!("{own}=").as_bytes()) {
            return Ok((own.to_owned(), Some(OsString::from_vec(value.to_vec()))));
        }
        if text == own {
            return Ok((text, Some(next(own, words)?)));
        }
    }
    if WITH_VALUE.contains(&text.as_str()) {
        let value = next(&text, words)?;
        return Ok((text, Some(value)));
    }
    for joined in ["-o", "-x"] {
        if let Some(value) = word.as_bytes().strip_prefix(joined.as_bytes()) {
            return Ok((joined.to_owned(), Some(OsString::from_vec(value.to_vec()))));
        }
    }
    for joined in ["-MF", "-MT", "-MQ", "-D", "-I", "-U", "-isystem", "-iquote", "-include"] {
        let Some(value) = word.as_bytes().strip_prefix(joined.as_bytes()) else { continue };
        if !value.is_empty() {
            return Ok((joined.to_owned(), Some(OsString::from_vec(value.to_vec()))));
        }
    }
    match word.into_string() {
        Ok(text) => Ok((text, None)),
        Err(word) => bail!(WrongArgument(format!("{word:?} is not UTF-8"))),
    }
}

fn next(option: &str, words: &mut dyn Iterator<Item = OsString>) -> anyhow::Result<OsString> {
    words.next().ok_or_else(|| WrongArgument(format!("{option} needs a value")).into())
}

/// Puts in the place of `@file` the words in that file.
fn expand(argument: &OsString, deep: usize, words: &mut Vec<OsString>) -> anyhow::Result<()> {
    let Some(file) = argument.as_bytes().strip_prefix(b"@") else {
        words.push(argument.clone());
        return Ok(());
    };
    let path = PathBuf::from(OsString::from_vec(file.to_vec()));
    if deep == 0 {
        bail!(WrongArgument(format!("{}: files of arguments name each other", path.display())));
    }
    // What is no file is passed on as it is, as C compilers do.
    if !path.exists() {
        words.push(argument.clone());
        return Ok(());
    }
    let text = crate::input::read(&path, ARGUMENTS_OCTETS).map_err(anyhow::Error::msg)?;
    split(&text).iter().try_for_each(|word| expand(word, deep - 1, words))
}

/// Words between blanks; quotes keep blanks together, a backslash keeps what follows as it is.
fn split(text: &[u8]) -> Vec<OsString> {
    let mut words: Vec<Vec<u8>> = Vec::new();
    let (mut quote, mut is_word) = (None, false);
    let mut octets = text.iter().copied();
    while let Some(octet) = octets.next() {
        if quote.is_none() && octet.is_ascii_whitespace() {
            is_word = false;
            continue;
        }
        if !is_word {
            words.push(Vec::new());
            is_word = true;
        }
        let word = words.last_mut().expect("one was begun");
        match octet {
            b'\\' if quote != Some(b'\'') => word.extend(octets.next()),
            _ if quote == Some(octet) => quote = None,
            b'"' | b'\'' if quote.is_none() => quote = Some(octet),
            _ => word.push(octet),
        }
    }
    words.into_iter().map(OsString::from_vec).collect()
}

/// The C compiler's words: `CC`, which may hold arguments, or `cc`.
pub(crate) fn compiler() -> Vec<OsString> {
    compiler_in(std::env::var_os("CC").unwrap_or_default().as_bytes())
}

/// `make CC='onbeat cc'` puts that into the environment: then it is us, not what we call.
fn compiler_in(text: &[u8]) -> Vec<OsString> {
    let mut words = split(text);
    let is_onbeat = |word: &OsString| Path::new(word).file_name().is_some_and(|n| n == "onbeat");
    if words.first().is_some_and(is_onbeat) && words.get(1).is_some_and(|word| word == "cc") {
        words = vec!["cc".into()];
    }
    if words.is_empty() { vec!["cc".into()] } else { words }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Wanted, String> {
        let words: Vec<_> = line.split(' ').map(OsString::from).collect();
        Wanted::parse(&words).map_err(|error| error.to_string())
    }

    #[test]
    fn options_go_where_they_belong() {
        let line = "-O2 -I inc -DA=1 a.c b.o -lm -Wl,-s -include x.h -o prog -MMD -MF deps/a.d -g";
        let wanted = parse(line).expect("right");
        assert_eq!(wanted.stage, Stage::Program);
        assert_eq!(wanted.output, Some("prog".into()));
        assert_eq!(wanted.flags, ["-O2", "-I", "inc", "-D", "A=1", "-include", "x.h", "-g"]);
        assert_eq!(wanted.dependencies, ["-MMD"]);
        assert_eq!(wanted.dependency_file, Some("deps/a.d".into()));
        assert_eq!(wanted.sources(), [Path::new("a.c")]);
        let files: Vec<_> = wanted.parts.iter().filter(|p| !matches!(p, Part::Flag(_))).collect();
        assert_eq!(files, [&Part::Source("a.c".into()), &Part::File("b.o".into(), None)]);
        assert!(wanted.parts.contains(&Part::Flag("-lm".into())));
    }

    #[test]
    fn languages_hold_for_the_files_behind_them() {
        let wanted = parse("-c -x c a.x b.c -x assembler c.c -x none d.c").expect("right");
        assert_eq!(wanted.sources(), ["a.x", "b.c", "d.c"].map(Path::new));
        assert!(wanted.parts.contains(&Part::File("c.c".into(), Some("assembler".into()))));
    }

    #[test]
    fn own_options_stand_anywhere_and_a_machines_target_is_the_compilers() {
        let wanted = parse("a.c --keep-phase -S --target=freertos --json").expect("right");
        assert_eq!(wanted.stage, Stage::Generated);
        assert!(wanted.options.keep_phase && wanted.json);
        assert_eq!(wanted.options.target, Target::FreeRtos);
        let wanted = parse("--target arm-none-eabi a.c").expect("right");
        assert_eq!(wanted.flags, ["--target=arm-none-eabi"]);
    }

    #[test]
    fn what_cannot_be_done_is_refused() {
        for (line, part) in [
            ("-O2", "no input files"),
            ("a.c -", "standard input"),
            ("a.c -o", "-o needs a value"),
            ("-c a.c b.c -o x", "several"),
            ("-S a.c b.o", "-S"),
            ("a.c --kernel k", "--kernel is for"),
            ("a.c --target freertos", "needs --kernel"),
        ] {
            let error = parse(line).expect_err(line);
            assert!(error.contains(part), "{line}: {error}");
        }
    }

    #[test]
    fn the_c_compiler_is_never_onbeat_itself() {
        assert_eq!(compiler_in(b""), ["cc"]);
        assert_eq!(compiler_in(b"clang -std=gnu17"), ["clang", "-std=gnu17"]);
        assert_eq!(compiler_in(b"onbeat cc"), ["cc"]);
        assert_eq!(compiler_in(b"/opt/onbeat/bin/onbeat cc -Wall"), ["cc"]);
    }

    #[test]
    fn words_of_files_and_of_the_environment_may_be_quoted() {
        let text = b"cc -I'a b' \"c \\\" d\"\\ e\n\t''";
        assert_eq!(split(text), ["cc", "-Ia b", "c \" d e", ""]);
    }
}
