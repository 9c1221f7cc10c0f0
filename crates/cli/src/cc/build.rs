//! From translated C to what was asked for.

use super::arguments::{Part, Stage};
use super::unit::{Read, directory};
use super::{Driver, beside, compiler};
use crate::exit::Exit;
use crate::terminal;
use anyhow::{Context, bail};
use onbeat_host::environment;
use onbeat_program::timedc::Target;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

impl Driver {
    /// Writes what was asked for.
    pub(super) fn build(&self, read: &[Read]) -> anyhow::Result<Exit> {
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
        let words = compiler();
        let mut command = environment::program(&words[0]);
        command.args(&words[1..]);
        let mut objects = objects.iter();
        for part in &self.wanted.parts {
            match part {
                Part::Source(_) => command.args(objects.next()),
                Part::File(file, None) => command.arg(file),
                Part::File(file, Some(language)) => {
                    command.arg("-x").arg(language).arg(file).args(["-x", "none"])
                }
                Part::Flag(flag) => command.arg(flag),
            };
        }
        let output = self.wanted.output.clone().unwrap_or_else(|| "a.out".into());
        command.arg("-o").arg(output);
        match self.wanted.options.target {
            Target::FreeRtos => {
                for object in self.kernel()? {
                    command.arg(object);
                }
                command.args(self.recipe.flags()).args(self.recipe.link_flags());
            }
            Target::Posix => self.run_time(&mut command)?,
        }
        self.run(&mut command)
    }

    /// The run time, which stands between programs and functions that may not be aborted.
    fn run_time(&self, command: &mut Command) -> anyhow::Result<()> {
        let list = self.temporary("wrapped");
        let wrapped = self.places.wrapped()?;
        let lines: String = wrapped.iter().map(|name| format!("-Wl,--wrap={name}\n")).collect();
        std::fs::write(&list, lines)?;
        let mut at = OsString::from("@");
        at.push(list);
        // A function that is bound at its first call would be looked up while an abort may come.
        command.arg(at).arg("-Wl,-z,now").args(self.places.libraries()?);
        command.args(["-pthread", "-ldl", "-lm"]);
        Ok(())
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
