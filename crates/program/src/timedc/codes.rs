//! The codes of Timed C's diagnostics. Each has a section in `docs/errors.md`.

use onbeat_model::diagnostic::Code;

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $code:literal;)*) => {
        $($(#[$doc])* pub const $name: Code = Code($code);)*
        /// All of them.
        pub const ALL: &[Code] = &[$($name),*];
    };
}

codes! {
    /// A unit is missing or unknown.
    UNIT = "OB4001";
    /// A delay is negative.
    NEGATIVE = "OB4002";
    /// A deadline is after the release.
    DEADLINE = "OB4003";
    /// A variable in a timing argument may have no value.
    UNASSIGNED = "OB4004";
    /// No firm or hard point follows a critical block.
    CRITICAL = "OB4005";
    /// Points with different deadlines may be next.
    GUARD = "OB4006";
    /// An lvchannel has a second writer.
    WRITERS = "OB4007";
    /// Nobody can say how many tasks there will be.
    TASK_COUNT = "OB4008";
    /// `skipdelay` has no single target.
    SKIP = "OB4009";
    /// A channel is not in the manifest.
    CHANNEL = "OB4010";
    /// A value is not as large as the channel's.
    SIZE = "OB4011";
    /// Control cannot go on at a point.
    CONTINUE = "OB4012";
    /// A construct is not formed right.
    FORM = "OB4013";
    /// A call must not be aborted.
    CALL = "OB4015";
    /// Nobody says what an abstract channel is.
    UNBOUND = "OB4016";
    /// A delay has no unit.
    NO_UNIT = "OB4101";
    /// The declared execution times are too long for the policy.
    UNSCHEDULABLE = "OB4102";
    /// A firm point follows a read that may wait.
    BLOCKING = "OB4103";
    /// An `#include` has single quotes.
    QUOTES = "OB4104";
    /// A manifest's only row has no braces.
    BRACES = "OB4105";
    /// A loop without an end in which no time passes.
    ENDLESS = "OB4106";
    /// What a program does in time cannot be followed.
    FOLLOW = "OB5007";
    /// A lock, or how long something takes, cannot be told.
    DOUBT = "OB5021";
    /// Nobody can say what a segment holds.
    HOLD = "OB5015";
}
