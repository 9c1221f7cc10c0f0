//! The codes of what can be wrong with a description or a manifest. Each has a section in
//! `docs/errors.md` and a bad description under `tests/bad/`.

use onbeat_model::diagnostic::Code;

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $code:literal;)*) => {
        $($(#[$doc])* pub const $name: Code = Code($code);)*
        /// Every code of this module.
        pub const ALL: &[Code] = &[$($name),*];
    };
}

pub(crate) use codes;

codes! {
    /// A file is larger than the limit.
    FILE_TOO_LARGE = "OB1001";
    /// The text is not TOML.
    SYNTAX = "OB1002";
    /// A key that the format does not know.
    UNKNOWN_KEY = "OB1003";
    /// A value of another type than the key's.
    WRONG_TYPE = "OB1004";
    /// A word that is none of the allowed ones.
    UNKNOWN_CHOICE = "OB1005";
    /// A key that must be there is not.
    MISSING_KEY = "OB1006";
    /// A format version that this release does not read.
    FORMAT_VERSION = "OB1007";
    /// A table has more entries than the limit.
    TOO_MANY = "OB1008";
    /// Two keys that exclude each other.
    BOTH_KEYS = "OB1009";
    /// A number outside its range.
    OUT_OF_RANGE = "OB1010";
    /// A message or frame that is empty or does not fit in one frame.
    PAYLOAD_SIZE = "OB1011";
    /// A rate or interval that is zero, negative or too large.
    RATE = "OB1012";
    /// The least is greater than the most.
    MIN_ABOVE_MAX = "OB1013";
    /// A histogram without values or with a weight that is not positive.
    HISTOGRAM = "OB1014";
    /// A name that cannot be used.
    BAD_NAME = "OB1015";
    /// A command without a program.
    EMPTY_COMMAND = "OB1016";
    /// A priority outside SCHED_FIFO's.
    PRIORITY = "OB1017";
    /// A clock that drifts more than the limit.
    DRIFT = "OB1018";
    /// A duration that is not positive or too long.
    DURATION = "OB1019";
    /// A name that is taken.
    DUPLICATE_NAME = "OB1020";
    /// A node that does not exist.
    UNKNOWN_NODE = "OB1021";
    /// A bridge where a host must stand.
    NOT_A_HOST = "OB1022";
    /// A channel that does not exist.
    UNKNOWN_CHANNEL = "OB1023";
    /// A stream that does not exist.
    UNKNOWN_STREAM = "OB1025";
    /// A scenario that does not exist.
    UNKNOWN_SCENARIO = "OB1024";
    /// A host with no link or several.
    HOST_LINKS = "OB1030";
    /// A port with two links.
    PORT_TAKEN = "OB1031";
    /// A link from a node to itself.
    SELF_LINK = "OB1032";
    /// Two hosts that must talk and have no path.
    UNREACHABLE = "OB1034";
    /// A port that does not exist.
    UNKNOWN_PORT = "OB1035";
    /// A port whose settings are given twice.
    PORT_SET_TWICE = "OB1036";
    /// A queue with two transmission selection algorithms.
    TWO_SHAPERS = "OB1037";
    /// Idle slopes beyond the rate of a port's link.
    IDLE_SLOPES = "OB1038";
    /// A gate control list that cannot be used.
    GATES = "OB1039";
    /// An address that is not one, or that cannot be used here.
    BAD_ADDRESS = "OB1040";
    /// A destination that is neither a group address nor a host's.
    UNKNOWN_DESTINATION = "OB1041";
    /// A stream identifier that is taken.
    DUPLICATE_STREAM = "OB1042";
    /// A destination that is taken.
    DUPLICATE_DESTINATION = "OB1043";
    /// A host's address that is taken.
    DUPLICATE_ADDRESS = "OB1044";
    /// A channel to one host's address that others are to hear.
    UNICAST_LISTENERS = "OB1045";
    /// A talker that listens to itself.
    TALKER_LISTENS = "OB1046";
    /// A listener that is there twice.
    DUPLICATE_LISTENER = "OB1047";
    /// A channel or a noise source to nobody.
    NO_LISTENER = "OB1048";
    /// A stream identifier of zero.
    BAD_STREAM = "OB1049";
    /// A chain that is empty or whose channels do not meet.
    BROKEN_CHAIN = "OB1050";
    /// A noise source to itself.
    NOISE_TO_SELF = "OB1052";
    /// A reference without a figure.
    NO_FIGURES = "OB1053";
    /// Preemption without an express queue.
    PREEMPTION = "OB1054";
    /// A trace that cannot be read or used.
    TRACE = "OB1055";
    /// A way that a stream cannot take.
    WAY = "OB1056";
    /// A token bucket that never holds a whole frame.
    BUCKET = "OB1057";
    /// Sources of a program that are not there, or what belongs to them without them.
    PROGRAM_SOURCE = "OB1058";
    /// Execution times that cannot be read or used.
    EXECUTION_TIMES = "OB1059";
    /// A second step of one clock.
    CLOCK_STEPS = "OB1068";
    /// A program's file of tasks that cannot be read or used.
    PROGRAM_TASKS = "OB1066";
    /// What an abstract channel of a program is, which it cannot be.
    BINDING = "OB1067";
    /// The manifest cannot be read.
    MANIFEST_UNREADABLE = "OB1100";
    /// The manifest is not C.
    MANIFEST_SYNTAX = "OB1101";
    /// The manifest declares no channels.
    MANIFEST_EMPTY = "OB1102";
    /// A field that neither generation of the manifest has.
    MANIFEST_FIELD = "OB1103";
    /// A field that is missing.
    MANIFEST_MISSING = "OB1104";
    /// An expression whose value cannot be computed.
    MANIFEST_VALUE = "OB1105";
    /// A stream class that neither generation has.
    MANIFEST_CLASS = "OB1106";
    /// A field that is given twice.
    MANIFEST_TWICE = "OB1107";
    /// An entry that the description does not use.
    MANIFEST_UNUSED = "OB1108";
    /// Description and manifest disagree.
    MANIFEST_CONTRADICTION = "OB1109";
    /// A manifest's array with places and entries that do not match.
    MANIFEST_ARRAY = "OB1110";
}
