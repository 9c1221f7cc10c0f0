//! Clocks on network time with linuxptp: configuration of ptp4l and phc2sys for both of the paper's
//! ways to synchronise (Pérez et al. 2024, 3.2.1 and table 2), their supervision, and why a clock
//! is not synchronised. In emulation the machine's clock is never steered.

mod configuration;
mod evaluation;
mod machine;
mod supervision;

pub use configuration::{
    ClockScenario, Configuration, FIRST_WORDS, File, PRIORITY, Role, SOCKET, Settings,
    SettingsError, Stamping, hardware_threshold, software_threshold,
};
pub use evaluation::{Facts, Reason, Status, evaluate};
pub use machine::{Emulated, emulation, gather};
pub use supervision::{Backoff, Report, SupervisionError, Supervisor};
