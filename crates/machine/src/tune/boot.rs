//! Boot parameters: what can be set only when the kernel starts.

use super::journal::Outstanding;
use super::plan::Profile;
use super::target::Target;
use onbeat_run::machine::CpuList;

/// The addition to the boot loader's settings that `--write-boot` writes.
pub(super) const DOCUMENT: &str = "/etc/default/grub.d/onbeat.cfg";

/// The parameters of a profile (Pérez et al. 2024, section 3.2; the kernel's documentation of its
/// parameters). `realtime`: a PREEMPT_RT kernel has its interrupts in threads anyway.
pub(super) fn parameters(
    profile: Profile,
    cores: &CpuList,
    rest: &CpuList,
    realtime: bool,
) -> Vec<String> {
    let mut parameters = Vec::new();
    if !realtime {
        parameters.push("threadirqs".to_owned());
    }
    if profile != Profile::None {
        parameters.push(format!("irqaffinity={rest}"));
    }
    if profile == Profile::TunedLike {
        parameters.push(format!("isolcpus=managed_irq,domain,{cores}"));
        parameters.push(format!("nohz_full={cores}"));
        parameters.push(format!("rcu_nocbs={cores}"));
        parameters.push("nosoftlockup".to_owned());
    }
    parameters
}

/// The file that gives the boot loader these parameters beside its own.
pub(super) fn document(parameters: &[String]) -> String {
    let parameters = parameters.join(" ");
    format!(
        "# Written by `onbeat tune apply --write-boot`; `onbeat tune undo` removes it.\n\
         GRUB_CMDLINE_LINUX_DEFAULT=\"$GRUB_CMDLINE_LINUX_DEFAULT {parameters}\"\n"
    )
}

/// Whether a text is such a file: parameters of ours, and nothing else that a shell would run.
pub(super) fn is_ours(text: &str) -> bool {
    let start = document(&[]);
    let Some((start, _)) = start.trim_end().rsplit_once('"') else { return false };
    let inner = text.trim_end().strip_prefix(start).and_then(|rest| rest.strip_suffix('"'));
    let is_list = |list: &str| list.parse::<CpuList>().is_ok_and(|cpus| cpus.to_string() == list);
    let known = |parameter: &str| match parameter.split_once('=') {
        None => matches!(parameter, "threadirqs" | "nosoftlockup"),
        Some(("irqaffinity" | "nohz_full" | "rcu_nocbs", list)) => is_list(list),
        Some(("isolcpus", list)) => list.strip_prefix("managed_irq,domain,").is_some_and(is_list),
        Some(_) => false,
    };
    inner.is_some_and(|inner| inner.split(' ').all(known))
}

impl Outstanding {
    /// Whether it is a boot line that isolates these processors and no others.
    pub fn isolates(&self, cores: &CpuList) -> bool {
        let wanted = format!("isolcpus=managed_irq,domain,{cores}");
        let text = self.new.as_deref().unwrap_or_default();
        matches!(&self.target, Target::Document { path } if path == DOCUMENT)
            && text.split([' ', '"']).any(|parameter| parameter == wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_parameters_of_ours_are_a_file_of_ours() {
        let list = |text: &str| text.parse::<CpuList>().unwrap();
        for profile in [Profile::None, Profile::Cpuset, Profile::TunedLike] {
            let parameters = parameters(profile, &list("2-3"), &list("0-1"), false);
            let text = document(&parameters);
            assert!(is_ours(&text) && is_ours(text.trim()), "{text}");
            for more in ["$(id)", "`id`", "threadirqs\"; id; \"", "init=/bin/sh", "nohz_full=1;id"]
            {
                let mut bad = parameters.clone();
                bad.push(more.to_owned());
                assert!(!is_ours(&document(&bad)), "{more}");
            }
            assert!(!is_ours(&format!("{text}id\n")) && !is_ours(&format!("id\n{text}")));
        }
        assert!(!is_ours("") && !is_ours("MINE=1"));
    }
}
