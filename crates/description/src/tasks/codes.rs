//! The codes of what can be wrong with a file of tasks only. Each has a section in
//! `docs/errors.md` and a bad file under `tests/tasks/`.

use crate::codes::codes;
use onbeat_model::diagnostic::Code;

codes! {
    /// A step that does nothing, or several things, or has keys of another one.
    STEP = "OB1060";
    /// Steps that control never comes to, or never leaves.
    FLOW = "OB1061";
    /// Steps with two deadlines.
    TWO_DEADLINES = "OB1062";
    /// A channel of the wrong kind, or without an end that it needs.
    CHANNEL = "OB1063";
    /// A task that is not started exactly once.
    START = "OB1064";
    /// A task that does not exist.
    UNKNOWN_TASK = "OB1065";
}
