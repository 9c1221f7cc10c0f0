//! From translated C to what was asked for.

use super::arguments::{Part, Stage};
use super::unit::{Read, directory, name_of};
use super::{Driver, beside, compiler};
use crate::elf;
use crate::exit::Exit;
use crate::output::spare;
use crate::source::Wrong;
use crate::terminal;
use anyhow::{Context, bail};
use onbeat_program::timedc::Target;
use onbeat_run::environment;
use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

/// What C++ throws with.
const THROWS: [&str; 2] = ["__cxa_throw", "__cxa_rethrow"];

/// Options that leave shared libraries out or the linking undone, or say where a program may be.
const STATIC: [&str; 4] = ["-static", "-static-pie", "-pie", "-r"];

/// The system's libraries, behind all others.
const SYSTEMS: [&str; 3] = ["-pthread", "-ldl", "-lm"];

impl Driver {
    /// Writes what was asked for.
    pub(super) fn build(&self, read: &[Read]) -> anyhow::Result<Exit> {
        self.spare(read)?;
        if self.wanted.stage == Stage::Generated {
            return self.generated(read);
        }
        let mut exit = Exit::Fine;
        let mut objects = Vec::new();
        for (number, unit) in read.iter().enumerate() {
            let object = self.object(unit, number);
            match self.compile(unit, number, object.as_deref())? {
                Exit::Fine => {}
                wrong => exit = wrong,
            }
            objects.extend(object);
        }
        if exit == Exit::Fine {
            exit = self.others()?;
        }
        if exit == Exit::Fine && self.wanted.stage == Stage::Program {
            exit = self.link(&objects)?;
        }
        if exit == Exit::Fine {
            read.iter().try_for_each(|unit| self.rule(unit))?;
        }
        Ok(exit)
    }

    /// The output must be none of the files that are read.
    fn spare(&self, read: &[Read]) -> anyhow::Result<()> {
        let Some(output) = &self.wanted.output else { return Ok(()) };
        let output = self.base.join(output);
        let others = self.wanted.parts.iter().filter_map(|part| match part {
            Part::File(file, _) => Some(file.as_path()),
            _ => None,
        });
        for path in read.iter().map(|unit| unit.path.as_path()).chain(others) {
            spare(&self.base.join(path), &output)?;
        }
        Ok(())
    }

    /// `-S`.
    fn generated(&self, read: &[Read]) -> anyhow::Result<Exit> {
        for unit in read {
            let text = match &unit.generated {
                Some(text) => text,
                None => &unit.files[0].text,
            };
            match &self.wanted.output {
                Some(output) if output.as_os_str() == "-" => terminal::print(text.trim_end()),
                output => {
                    let stem = unit.path.with_extension("timed.c");
                    let to = output.as_ref().unwrap_or(&stem);
                    std::fs::write(to, text).with_context(|| to.display().to_string())?;
                }
            }
            self.rule(unit)?;
        }
        Ok(Exit::Fine)
    }

    /// Where a file's object goes; with `-E` where the text does, if it is not standard output.
    fn object(&self, unit: &Read, number: usize) -> Option<PathBuf> {
        match self.wanted.stage {
            Stage::Preprocessed => self.wanted.output.clone(),
            Stage::Object => Some(self.object_name(&unit.path)),
            _ => Some(self.temporary(&format!("{number}.o"))),
        }
    }

    /// Compiles a file, or takes it through the preprocessor only.
    fn compile(&self, unit: &Read, number: usize, to: Option<&Path>) -> anyhow::Result<Exit> {
        let mut command = self.compiler();
        if self.wanted.options.target == Target::FreeRtos {
            command.args(self.recipe.program_flags()).args(self.recipe.flags());
        }
        match self.wanted.stage {
            Stage::Preprocessed => command.arg("-E").args(&self.wanted.preprocessor),
            _ => command.arg("-c"),
        };
        let place = self.temporary(&number.to_string());
        let file = unit.write(&place)?;
        if file.is_some() {
            // Quoted headers are found, and files named, as if the text were where the user's is.
            let named = unit.path.parent().filter(|parent| !parent.as_os_str().is_empty());
            let mut map = OsString::from("-fdebug-prefix-map=");
            map.push(place.join(""));
            map.push("=");
            map.push(named.map_or(PathBuf::new(), |named| named.join("")));
            command.arg(map).arg("-iquote").arg(directory(&unit.path));
            if named.is_none() {
                command.arg("-fmacro-prefix-map=./=");
            }
        }
        command.args(["-x", "c"]).arg(file.as_deref().unwrap_or(&unit.path));
        if let Some(to) = to {
            command.arg("-o").arg(to);
        }
        self.run(&mut command)
    }

    /// Files in other languages, which are not linked at once.
    fn others(&self) -> anyhow::Result<Exit> {
        if self.wanted.stage == Stage::Program {
            return Ok(Exit::Fine);
        }
        for part in &self.wanted.parts {
            let Part::File(file, language) = part else { continue };
            let ends = ["o", "a", "so"];
            if file.extension().is_some_and(|end| ends.iter().any(|e| end == *e)) {
                terminal::say(format_args!(
                    "onbeat: {}: not used, nothing is linked",
                    file.display()
                ));
                continue;
            }
            let mut command = self.compiler();
            command.arg(if self.wanted.stage == Stage::Object { "-c" } else { "-E" });
            if let Some(language) = language {
                command.arg("-x").arg(language);
            }
            command.arg(file);
            if let Some(output) = &self.wanted.output {
                command.arg("-o").arg(output);
            }
            let exit = self.run(&mut command)?;
            if exit != Exit::Fine {
                return Ok(exit);
            }
        }
        Ok(Exit::Fine)
    }

    fn link(&self, objects: &[PathBuf]) -> anyhow::Result<Exit> {
        let output = self.wanted.output.as_deref().unwrap_or(Path::new("a.out"));
        let mut command = match self.wanted.options.target {
            Target::FreeRtos => {
                let mut command = self.linker(&[], objects, &|_| true);
                command.args(self.kernel()?);
                command.args(self.recipe.flags()).args(self.recipe.link_flags());
                command
            }
            Target::Posix => self.with_run_time(objects)?,
        };
        self.run(command.arg("-o").arg(output))
    }

    /// Links what was asked for, behind `first` and with those options that are wanted.
    fn linker(
        &self,
        first: &[OsString],
        objects: &[PathBuf],
        is_wanted: &dyn Fn(&OsStr) -> bool,
    ) -> Command {
        let words = compiler();
        let mut command = environment::program(&words[0]);
        command.args(&words[1..]).args(first);
        let mut objects = objects.iter();
        for part in &self.wanted.parts {
            match part {
                Part::Source(_) => command.args(objects.next()),
                Part::File(file, None) => command.arg(file),
                Part::File(file, Some(language)) => {
                    command.arg("-x").arg(language).arg(file).args(["-x", "none"])
                }
                Part::Flag(flag) => command.args(Some(flag).filter(|flag| is_wanted(flag))),
            };
        }
        command
    }

    /// With the run time, which stands between programs and functions that may not be aborted.
    fn with_run_time(&self, objects: &[PathBuf]) -> anyhow::Result<Command> {
        let wrapped = self.places.wrapped()?;
        let deferred = self.deferred(objects, &wrapped)?;
        let mut first = vec![self.wrapping("wrapped", &wrapped)?];
        if !deferred.is_empty() {
            // The linker looks into a library for what stands before it only.
            first.push(self.deferring(&deferred)?.into());
            first.push(self.wrapping("deferred", &deferred)?);
        }
        let mut command = self.linker(&first, objects, &|_| true);
        // A function that is bound at its first call would be looked up while an abort may come.
        command.arg("-Wl,-z,now").args(self.places.libraries()?).args(SYSTEMS);
        Ok(command)
    }

    /// Makes the linker send calls of functions to what stands before them.
    fn wrapping(&self, list: &str, names: &[String]) -> anyhow::Result<OsString> {
        let list = self.temporary(list);
        let lines: String = names.iter().map(|name| format!("-Wl,--wrap={name}\n")).collect();
        std::fs::write(&list, lines)?;
        let mut at = OsString::from("@");
        at.push(list);
        Ok(at)
    }

    /// The functions of libraries that the program calls and that are neither known to be abortable
    /// nor wrapped by hand.
    fn deferred(&self, objects: &[PathBuf], wrapped: &[String]) -> anyhow::Result<Vec<String>> {
        // Linked without our libraries, and with shared ones in place of all that it can have so.
        let program = self.temporary("imports");
        let is_wanted = |flag: &OsStr| !STATIC.iter().any(|word| flag == *word);
        let mut command = self.linker(&[], objects, &is_wanted);
        if !self.wanted.parts.contains(&Part::Flag("-shared".into())) {
            // At an address of its own nothing has to be said of our variables, which it has not.
            command.arg("-no-pie");
        }
        command.args(SYSTEMS).arg("-Wl,--unresolved-symbols=ignore-all").arg("-o").arg(&program);
        let output = command.env("TMPDIR", self.directory.path()).output();
        let output = output.with_context(|| name_of(&command))?;
        self.go_on()?;
        if !output.status.success() {
            terminal::say(String::from_utf8_lossy(&output.stderr).trim_end());
            if self.wanted.parts.iter().any(|part| matches!(part, Part::Flag(f) if !is_wanted(f))) {
                terminal::say(
                    "onbeat: what a program calls of libraries is looked up in the shared ones, \
                     where it is linked with static ones, too",
                );
            }
            return Err(Wrong.into());
        }
        let found = elf::functions(&program)?;
        if let Some(throws) = found.iter().find(|name| THROWS.contains(&name.as_str())) {
            bail!(
                "`{throws}`: while an exception of C++ is thrown nothing may be aborted, and \
                 nothing can defer that: compile with -fno-exceptions what throws, or make a \
                 shared library of it whose functions let no exception out"
            );
        }
        let known: HashSet<String> =
            self.places.abortable()?.into_iter().chain(wrapped.iter().cloned()).collect();
        Ok(found.into_iter().filter(|name| !known.contains(name)).collect())
    }

    /// An object by which no abort comes before calls of these functions return.
    fn deferring(&self, names: &[String]) -> anyhow::Result<PathBuf> {
        let calls: String = names.iter().map(|name| format!("TIMEDC_DEFERRED({name})\n")).collect();
        let (source, object) = (self.temporary("deferred.S"), self.temporary("deferred.o"));
        std::fs::write(&source, format!("#include <timedc_deferred.h>\n{calls}"))?;
        let words = compiler();
        let mut command = environment::program(&words[0]);
        command.args(&words[1..]);
        for directory in self.places.includes() {
            command.arg("-isystem").arg(directory);
        }
        let is_machine = |flag: &&OsString| {
            let flag = flag.to_string_lossy();
            flag.starts_with("-m") || flag.starts_with("--target=")
        };
        command.args(self.wanted.flags.iter().filter(is_machine));
        command.arg("-c").arg(&source).arg("-o").arg(&object);
        if self.run(&mut command)? != Exit::Fine {
            bail!(
                "calls of {} cannot be made to return before an abort comes: call them in \
                 programs without firm and hard timing points only",
                names.join(", ")
            );
        }
        Ok(object)
    }

    /// The kernel and what our programs need on it, compiled.
    fn kernel(&self) -> anyhow::Result<Vec<PathBuf>> {
        let Some(kernel) = &self.wanted.kernel else { bail!("there is no --kernel") };
        let mut objects = Vec::new();
        for (number, file) in self.recipe.sources(kernel)?.into_iter().enumerate() {
            let object = self.temporary(&format!("kernel-{number}.o"));
            let mut command = self.compiler();
            for directory in self.recipe.kernel_includes(kernel) {
                command.arg("-isystem").arg(directory);
            }
            command.args(self.recipe.flags()).arg("-c").arg(&file).arg("-o").arg(&object);
            if self.run(&mut command)? != Exit::Fine {
                bail!("{} does not compile", file.display());
            }
            objects.push(object);
        }
        Ok(objects)
    }

    /// Puts a file's rule for `make` where it belongs, now that nothing is wrong.
    fn rule(&self, unit: &Read) -> anyhow::Result<()> {
        let Some(from) = &unit.dependencies else { return Ok(()) };
        let to = match (&self.wanted.dependency_file, &self.wanted.output) {
            (Some(file), _) => file.clone(),
            (None, Some(output)) if self.wanted.stage == Stage::Object => {
                output.with_extension("d")
            }
            (None, _) => beside(&unit.path, "d"),
        };
        std::fs::copy(from, &to).with_context(|| to.display().to_string())?;
        Ok(())
    }
}
