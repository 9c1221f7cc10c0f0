//! Boot parameters: what can be set only when the kernel starts.

use super::plan::Profile;
use crate::machine::CpuList;

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
