//! Every code of a diagnostic, with its title. A code never changes its meaning and is never used
//! again. `docs/errors.md` has a section for each, under the same title.

use crate::diagnostic::Code;

/// A code and what it stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeEntry {
    /// The code.
    pub code: Code,
    /// What is wrong, in some words: the heading of its section.
    pub title: &'static str,
}

/// Areas of codes: a module each, with its codes by name and all of them in order.
macro_rules! areas {
    ($($(#[$about:meta])* $area:ident {
        $($(#[$doc:meta])* $name:ident = $code:literal, $title:literal;)*
    })*) => {
        $($(#[$about])* pub mod $area {
            use super::CodeEntry;
            use crate::diagnostic::Code;

            $($(#[$doc])* pub const $name: Code = Code($code);)*

            /// All of them, in order.
            pub const ALL: &[CodeEntry] = &[$(CodeEntry { code: $name, title: $title }),*];
        })*

        /// All areas.
        const AREAS: &[&[CodeEntry]] = &[$($area::ALL),*];
    };
}

areas! {
    /// What is wrong with a description or a manifest.
    description {
        /// A file is larger than the limit.
        FILE_TOO_LARGE = "OB1001", "a file is too large";
        /// The text is not TOML.
        SYNTAX = "OB1002", "the text is not TOML";
        /// A key that the format does not know.
        UNKNOWN_KEY = "OB1003", "an unknown key";
        /// A value of another type than the key's.
        WRONG_TYPE = "OB1004", "a value of the wrong type";
        /// A word that is none of the allowed ones.
        UNKNOWN_CHOICE = "OB1005", "an unknown word";
        /// A key that must be there is not.
        MISSING_KEY = "OB1006", "a key is missing";
        /// A format version that this release does not read.
        FORMAT_VERSION = "OB1007", "an unknown format version";
        /// A table has more entries than the limit.
        TOO_MANY = "OB1008", "too many tables";
        /// Two keys that exclude each other.
        BOTH_KEYS = "OB1009", "two keys exclude each other";
        /// A number outside its range.
        OUT_OF_RANGE = "OB1010", "a number is out of range";
        /// A message, a fragment or a frame is empty or too long.
        PAYLOAD_SIZE = "OB1011", "a size is out of range";
        /// A rate or interval that is zero, negative or too large.
        RATE = "OB1012", "a rate is out of range";
        /// The least is greater than the most.
        MIN_ABOVE_MAX = "OB1013", "a minimum above its maximum";
        /// A histogram without values or with a weight that is not positive.
        HISTOGRAM = "OB1014", "an invalid histogram";
        /// A name that cannot be used.
        BAD_NAME = "OB1015", "an invalid name";
        /// A command without a program.
        EMPTY_COMMAND = "OB1016", "a command without a program";
        /// A priority outside SCHED_FIFO's.
        PRIORITY = "OB1017", "an invalid priority";
        /// A clock that drifts more than the limit.
        DRIFT = "OB1018", "a frequency offset that is too large";
        /// A duration that is not positive or too long.
        DURATION = "OB1019", "a duration is out of range";
        /// A name that is taken.
        DUPLICATE_NAME = "OB1020", "a duplicate name";
        /// A node that does not exist.
        UNKNOWN_NODE = "OB1021", "an unknown node";
        /// A bridge where a host must stand.
        NOT_A_HOST = "OB1022", "a bridge instead of a host";
        /// A channel that does not exist.
        UNKNOWN_CHANNEL = "OB1023", "an unknown channel";
        /// A scenario that does not exist.
        UNKNOWN_SCENARIO = "OB1024", "an unknown scenario";
        /// A stream that does not exist.
        UNKNOWN_STREAM = "OB1025", "an unknown stream";
        /// A host with no link or several.
        HOST_LINKS = "OB1030", "a host has no link, or two";
        /// A port with two links.
        PORT_TAKEN = "OB1031", "a port has two links";
        /// A link from a node to itself.
        SELF_LINK = "OB1032", "a link from a node to itself";
        /// Two hosts that must talk and have no path.
        UNREACHABLE = "OB1034", "no path";
        /// A port that does not exist.
        UNKNOWN_PORT = "OB1035", "an unknown port";
        /// A port whose settings are given twice.
        PORT_SET_TWICE = "OB1036", "a port is set twice";
        /// A queue with two transmission selection algorithms.
        TWO_SHAPERS = "OB1037", "a queue with two shapers";
        /// Idle slopes beyond the rate of a port's link.
        IDLE_SLOPES = "OB1038", "idle slopes beyond the link";
        /// A gate control list that cannot be used.
        GATES = "OB1039", "an invalid gate control list";
        /// An address that is not one, or that cannot be used here.
        BAD_ADDRESS = "OB1040", "an invalid address";
        /// A destination that is neither a group address nor a host's.
        UNKNOWN_DESTINATION = "OB1041", "an unknown destination";
        /// A stream identifier that is taken.
        DUPLICATE_STREAM = "OB1042", "a duplicate stream identifier";
        /// A destination that is taken.
        DUPLICATE_DESTINATION = "OB1043", "a duplicate destination";
        /// A host's address that is taken.
        DUPLICATE_ADDRESS = "OB1044", "a duplicate address";
        /// A channel to one host's address that others are to hear.
        UNICAST_LISTENERS = "OB1045", "one host's address for other listeners";
        /// A talker that listens to itself.
        TALKER_LISTENS = "OB1046", "a talker listens to itself";
        /// A listener that is there twice.
        DUPLICATE_LISTENER = "OB1047", "a duplicate listener";
        /// A channel without listeners.
        NO_LISTENER = "OB1048", "a channel without listeners";
        /// A stream identifier of zero.
        BAD_STREAM = "OB1049", "a stream identifier of zero";
        /// A chain that is empty or whose channels do not meet.
        BROKEN_CHAIN = "OB1050", "a broken chain";
        /// A noise source to itself.
        NOISE_TO_SELF = "OB1052", "noise from a host to itself";
        /// A reference without a figure.
        NO_FIGURES = "OB1053", "a reference without figures";
        /// Preemption without an express queue.
        PREEMPTION = "OB1054", "preemption without an express queue";
        /// A trace that cannot be read or used.
        TRACE = "OB1055", "an invalid trace";
        /// A path that a stream cannot take.
        WAY = "OB1056", "an invalid path";
        /// A token bucket that never holds a whole frame.
        BUCKET = "OB1057", "a token bucket that never holds a frame";
        /// Sources of a program that are not there, or what belongs to them without them.
        PROGRAM_SOURCE = "OB1058", "invalid sources of a program";
        /// Execution times that cannot be read or used.
        EXECUTION_TIMES = "OB1059", "invalid execution times";
        /// A program's task model that cannot be read or used.
        PROGRAM_TASKS = "OB1066", "an invalid task model of a program";
        /// What an abstract channel of a program is, which it cannot be.
        BINDING = "OB1067", "an invalid binding of an abstract channel";
        /// A second step of one clock.
        CLOCK_STEPS = "OB1068", "a clock steps a second time";
        /// A clock that gPTP keeps in the run has an error of its own.
        CLOCK_KEPT = "OB1069", "a clock that gPTP keeps in the run has an error of its own";
        /// A key is given by its old name.
        OLD_NAME = "OB1070", "the old name of a key";
        /// Messages over TCP that are not there.
        UNKNOWN_TCP = "OB1071", "an unknown TCP flow";
        /// Published figures of what is not measured of that.
        QUANTITY = "OB1072", "figures of a quantity that is not measured there";
        /// A device that is not there.
        UNKNOWN_DEVICE = "OB1073", "an unknown device";
        /// A group that makes nothing, or too much.
        GROUP = "OB1074", "an invalid group";
        /// A text in a group that cannot be computed.
        GROUP_TEXT = "OB1075", "a text of a group cannot be computed";
        /// Alternatives that are none.
        ALTERNATIVES = "OB1076", "invalid alternatives";
        /// A talker of an alternative that does not receive the mode.
        MODE = "OB1077", "a talker of an alternative does not receive the mode";
        /// A bridge with a dedicated path has what such a bridge cannot have.
        DEDICATED = "OB1078", "a bridge cannot have a dedicated path";
        /// A program that does not exist.
        UNKNOWN_PROGRAM = "OB1079", "an unknown program";
        /// A C struct of messages that cannot be read, or has another size than they have.
        MESSAGE_TYPE = "OB1080", "an invalid type of messages";
        /// The manifest cannot be read.
        MANIFEST_UNREADABLE = "OB1100", "the manifest cannot be read";
        /// The manifest is not C.
        MANIFEST_SYNTAX = "OB1101", "the manifest is not C";
        /// The manifest declares no channels.
        MANIFEST_EMPTY = "OB1102", "the manifest declares no channels";
        /// A field that neither generation of the manifest has.
        MANIFEST_FIELD = "OB1103", "a field that a manifest does not have";
        /// A field that is missing.
        MANIFEST_MISSING = "OB1104", "a field is missing";
        /// An expression whose value cannot be computed.
        MANIFEST_VALUE = "OB1105", "a value cannot be computed";
        /// A stream class that neither generation has.
        MANIFEST_CLASS = "OB1106", "an unknown stream class";
        /// A field that is given twice.
        MANIFEST_TWICE = "OB1107", "a field is given twice";
        /// An entry that the description does not use.
        MANIFEST_UNUSED = "OB1108", "an entry that the description does not use";
        /// Description and manifest disagree.
        MANIFEST_CONTRADICTION = "OB1109", "description and manifest disagree";
        /// A manifest's array with places and entries that do not match.
        MANIFEST_ARRAY = "OB1110", "a manifest's array length differs from its entries";
    }
    /// Errors of task models only.
    tasks {
        /// A step that does nothing, or several things, or has keys of another one.
        STEP = "OB1060", "an invalid step of a task";
        /// Steps that control never comes to, or never leaves.
        FLOW = "OB1061", "invalid control flow";
        /// Steps with two deadlines.
        TWO_DEADLINES = "OB1062", "two deadlines";
        /// A channel of the wrong kind, or without a necessary endpoint.
        CHANNEL = "OB1063", "an invalid channel of a task model";
        /// A task that is not started exactly once.
        START = "OB1064", "a task that does not start exactly once";
        /// A task that does not exist.
        UNKNOWN_TASK = "OB1065", "an unknown task";
    }
    /// What is wrong with a model in Lingua Franca.
    federation {
        /// The text is not in the language.
        SYNTAX = "OB1501", "unknown syntax in a model";
        /// A file that the model or its sidecar names.
        IMPORT = "OB1502", "a file of a model cannot be read";
        /// A name that the model does not have.
        UNKNOWN = "OB1503", "an unknown name in a model";
        /// A name that is taken.
        DUPLICATE = "OB1504", "a duplicate name in a model";
        /// No federated reactor, or one that has no federates.
        MAIN = "OB1505", "no federation";
        /// An instance that cannot be made.
        INSTANCE = "OB1506", "an invalid instance";
        /// A time, width or value that cannot be used.
        VALUE = "OB1507", "a value of a model cannot be used";
        /// A connection whose sides have different widths.
        WIDTHS = "OB1508", "a connection of different widths";
        /// A reference on the wrong side, or an input with two writers.
        CONNECTION = "OB1509", "an invalid connection";
        /// Reactions or ports that wait for each other at one tag.
        CYCLE = "OB1510", "a cycle without delay";
        /// A model is larger than the limits.
        TOO_LARGE = "OB1511", "a model is too large";
        /// An attribute that says nothing, or something wrong.
        ATTRIBUTE = "OB1512", "an invalid attribute";
        /// A name in the sidecar that the model does not have.
        SIDECAR = "OB1513", "a sidecar names what the model does not have";
        /// A federate without a host in the topology.
        STATION = "OB1514", "a federate without a station";
        /// How often a connection carries messages.
        NO_RATE = "OB1515", "an unknown rate";
        /// How large a value may be.
        NO_SIZE = "OB1516", "an unknown size";
        /// A value that no frame can carry.
        TOO_LONG = "OB1517", "a value does not fit in one message";
        /// A network that was assumed.
        NO_TOPOLOGY = "OB1518", "no topology";
        /// A federation that nothing executes in.
        NO_REACTIONS = "OB1519", "a federation without reactions";
        /// A table of channels for programs that read none.
        TABLE = "OB1520", "no table of channels";
        /// A declared rate below what a model may send.
        SLOW = "OB1521", "a channel is slower than its writers";
    }
    /// What is wrong with the files of other tools.
    import {
        /// The text has not the form of its kind.
        SYNTAX = "OB1601", "a file to import cannot be read";
        /// A column is missing.
        COLUMN = "OB1602", "a column of a file to import is missing";
        /// A value that cannot be used.
        VALUE = "OB1603", "a value of a file to import cannot be used";
        /// Something that is there twice.
        DUPLICATE = "OB1604", "a duplicate in a file to import";
        /// A file is larger than the limits.
        TOO_LARGE = "OB1605", "a file to import is too large";
        /// Something has no counterpart in a description.
        NOT_SAID = "OB1606", "a description cannot say something of a file to import";
        /// A value was made safe.
        ROUNDED = "OB1607", "a value of a file to import was changed to the safe side";
    }
    /// What is wrong with what is promised.
    plan {
        /// A port is overloaded.
        OVERLOADED = "OB2001", "a port is overloaded";
        /// A scheduled channel has no windows of gates.
        SCHEDULED = "OB2002", "a scheduled channel has no place in the gates";
        /// A queue cannot hold what may wait in it.
        QUEUE_TOO_SMALL = "OB2003", "a queue is too small";
        /// A stream has no useful bound.
        UNBOUNDED = "OB2004", "a stream has no useful bound";
        /// A message may come after its fixed delay.
        LATE = "OB2005", "a message may come after its fixed delay";
        /// A chain may miss its deadline.
        CHAIN_DEADLINE = "OB2006", "a chain may miss its deadline";
        /// Two clocks are further apart than a frame can tell.
        CLOCKS = "OB2007", "clocks are too far apart";
        /// A chain has no bound.
        UNTRIGGERED = "OB2008", "a chain has no bound";
        /// A message is in flight for longer than its timestamp can represent.
        LONG_UNDER_WAY = "OB2009", "a message is in flight for too long";
        /// There is no path within the VLAN.
        NO_WAY = "OB2010", "no path within the VLAN";
        /// A stream uses a queue that is reserved.
        INTRUDER = "OB2011", "a stream in a reserved queue";
        /// A port's settings leave too little for a reservation.
        TOO_LITTLE = "OB2012", "a port's settings leave too little for a reservation";
        /// A stream may miss its deadline.
        STREAM_DEADLINE = "OB2013", "a stream may miss its deadline";
        /// A stream may lose frames.
        STREAM_LOST = "OB2014", "a stream may lose frames";
        /// The analysis ended before it had looked at everything.
        CUT_SHORT = "OB2015", "the analysis reached its effort limit";
        /// gPTP cannot bring the clocks together.
        NOT_IN_SYNC = "OB2016", "gPTP cannot synchronise these clocks";
        /// Hosts and bridges cannot make a reservation by protocol.
        NOT_BY_PROTOCOL = "OB2017", "the protocol cannot make a reservation";
        /// A port or bridge is to do what its device cannot.
        DEVICE = "OB2018", "a device cannot do what the plan asks of it";
        /// Frames cannot be replicated as the description asks.
        REPLICATION = "OB2019", "frames cannot be replicated so";
        /// A reservation over a bridge to which it is best effort.
        OVER_DEDICATED = "OB2020", "a reservation over a dedicated path";
    }
    /// What keeps a run from beginning.
    run {
        /// A program's command cannot be started.
        CANNOT_START = "OB3001", "a program cannot be started";
        /// A program's sources do not compile.
        NOT_COMPILED = "OB3002", "a program does not compile";
        /// A program's timing is not analysed.
        NOT_ANALYSED = "OB3003", "the timing of a program is not analysed";
        /// A program cannot run as the user that the description asks for.
        CANNOT_BE = "OB3004", "a program cannot run as the requested user";
        /// gPTP takes part only in runs whose clocks it can steer.
        NOT_VIRTUAL = "OB3005", "a protocol takes part in runs in virtual time only";
    }
    /// What is wrong with a program in Timed C.
    timed_c {
        /// A unit is missing or unknown.
        UNIT = "OB4001", "a unit of time is missing or unknown";
        /// A delay is negative.
        DELAY = "OB4002", "a delay that is negative or too long";
        /// A deadline is after the release.
        DEADLINE = "OB4003", "a deadline after the period";
        /// A variable in a timing argument may have no value.
        UNASSIGNED = "OB4004", "a timing argument may have no value";
        /// No firm or hard point follows a critical block.
        CRITICAL = "OB4005", "nothing follows a critical block";
        /// Points with different deadlines may be next.
        GUARD = "OB4006", "two deadlines";
        /// An lvchannel has a second writer.
        WRITERS = "OB4007", "an lvchannel with two writers";
        /// The number of tasks is unknown.
        TASK_COUNT = "OB4008", "the number of tasks is unknown";
        /// `skipdelay` has no single target.
        SKIP = "OB4009", "no target for skipdelay";
        /// A channel is not in the manifest.
        CHANNEL = "OB4010", "a channel is not in the manifest";
        /// A value is not as large as the channel's.
        SIZE = "OB4011", "a value of another size";
        /// Control cannot continue at a point.
        CONTINUE = "OB4012", "control cannot continue at a timing point";
        /// A construct is not formed right.
        FORM = "OB4013", "a malformed construct";
        /// A call must not be aborted.
        CALL = "OB4015", "a call that cannot be aborted";
        /// An abstract channel is not bound.
        UNBOUND = "OB4016", "an unbound abstract channel";
        /// A delay has no unit.
        NO_UNIT = "OB4101", "a delay without a unit";
        /// The declared execution times are too long for the policy.
        UNSCHEDULABLE = "OB4102", "execution times that are too long";
        /// A firm point follows a read that may wait.
        BLOCKING = "OB4103", "a read before a firm point";
        /// An `#include` has single quotes.
        QUOTES = "OB4104", "an #include in single quotes";
        /// A manifest's only row has no braces.
        BRACES = "OB4105", "a manifest without the row's braces";
        /// A loop without an end in which no time passes.
        ENDLESS = "OB4106", "an endless loop in which no time passes";
    }
    /// What is wrong with the timing of programs.
    timing {
        /// A system is not composable.
        NOT_COMPOSABLE = "OB5001", "not composable";
        /// A deadline may be missed.
        MAY_BE_LATE = "OB5002", "a deadline may be missed";
        /// A chain does not keep what is asked of it.
        CHAIN = "OB5003", "a chain violates its requirement";
        /// A host's tasks are not schedulable.
        NOT_SCHEDULABLE = "OB5004", "tasks of a host are not schedulable";
        /// A channel may overflow.
        OVERFLOW = "OB5005", "a channel may overflow";
        /// Tasks wait for each other.
        DEADLOCK = "OB5006", "tasks wait for each other";
        /// What a program does in time cannot be followed.
        FOLLOW = "OB5007", "a program's timing cannot be followed";
        /// A program uses an endpoint of a channel that its host does not have.
        NO_END = "OB5008", "a program uses an endpoint that its host does not have";
        /// Times are proven for the first iterations only.
        UNPROVEN = "OB5009", "times are proven for the first iterations only";
        /// The resources that a segment holds are unknown.
        HOLD = "OB5015", "the resources that a segment holds are unknown";
        /// Tasks may wait for each other's locks for ever.
        LOCKS = "OB5020", "tasks may wait for each other's locks for ever";
        /// A lock or a duration is unknown.
        DOUBT = "OB5021", "a lock or a duration is unknown";
    }
    /// What is wrong with a program in Network Code.
    network_code {
        /// A text is larger than the limit.
        FILE_TOO_LARGE = "OB6001", "a program's text is too large";
        /// A character that no statement has.
        CHARACTER = "OB6002", "an unexpected character";
        /// Digits that are no number.
        NUMBER = "OB6003", "a malformed number";
        /// A quote that is not closed.
        TEXT = "OB6004", "a text without its end";
        /// A line that begins as no statement does.
        STATEMENT = "OB6005", "an unknown instruction or declaration";
        /// A statement that is not formed right.
        SYNTAX = "OB6006", "a malformed statement";
        /// A statement with more words and signs than the limit.
        STATEMENT_LENGTH = "OB6007", "a statement is too long";
        /// A name that is a word of the language.
        RESERVED = "OB6008", "a reserved word as a name";
        /// A name with more octets than the limit.
        NAME_LENGTH = "OB6009", "a name is too long";
        /// It is not known whose program it is.
        NO_STATION = "OB6010", "no station";
        /// A second `station` or `medium`.
        TWICE = "OB6011", "a declaration is there twice";
        /// A station's name that no node can have.
        STATION_NAME = "OB6012", "an invalid name of a station";
        /// The text names another station than was asked for.
        OTHER_STATION = "OB6013", "a program for another station";
        /// The description has no such host.
        UNKNOWN_STATION = "OB6014", "an unknown station";
        /// A rate that no station has.
        MEDIUM = "OB6015", "an unknown medium";
        /// A constant that is not declared, or later.
        UNKNOWN_CONSTANT = "OB6016", "an unknown constant";
        /// A buffer that is not declared.
        UNKNOWN_BUFFER = "OB6017", "an unknown buffer";
        /// A message that is not declared.
        UNKNOWN_MESSAGE = "OB6018", "an unknown message";
        /// A label that is nowhere.
        UNKNOWN_LABEL = "OB6019", "an unknown label";
        /// A name that is taken by another of its kind.
        DUPLICATE_NAME = "OB6020", "a duplicate name in a program";
        /// A label that is there twice.
        DUPLICATE_LABEL = "OB6021", "a duplicate label";
        /// A label with no instruction behind it.
        LAST_LABEL = "OB6022", "a label behind the last instruction";
        /// An identifier that no message can have.
        ID = "OB6023", "an identifier is out of range";
        /// An identifier that is taken.
        DUPLICATE_ID = "OB6024", "a duplicate identifier";
        /// A length that no frame has.
        LENGTH = "OB6025", "a length is out of range";
        /// A time where there must be a number, or the reverse.
        TYPE = "OB6026", "a time and a number are confused";
        /// A value beyond 64 bits.
        OVERFLOW = "OB6027", "a value is too large to compute with";
        /// A division by 0.
        ZERO_DIVISOR = "OB6028", "a division by zero";
        /// A division that is not exact.
        REMAINDER = "OB6029", "a division leaves a remainder";
        /// A time between two cycles.
        FRACTION = "OB6030", "a time is no whole number of cycles";
        /// A time before its instruction.
        NEGATIVE_TIME = "OB6031", "a negative time";
        /// A time beyond 32 bits of cycles.
        LONG_TIME = "OB6032", "a time is too long";
        /// A `sync slave` that does not wait.
        TIMEOUT = "OB6033", "a timeout of zero";
        /// A constant beyond 24 bits.
        COMPARED = "OB6034", "a constant does not fit in a comparison";
        /// A counter that there is not.
        COUNTER = "OB6035", "a counter is out of range";
        /// A count that a counter cannot reach.
        COUNT = "OB6036", "a count is out of range";
        /// A flag that there is not.
        FLAG = "OB6037", "a flag is out of range";
        /// A word that its buffer does not have.
        INDEX = "OB6038", "an index is out of range";
        /// `receive` into a buffer of the application.
        INTO_OUTPUT = "OB6039", "receive into an output";
        /// A message and a buffer of different lengths.
        RECEIVE_LENGTH = "OB6040", "a message and a buffer of different lengths";
        /// A message is sent that has another length than what was created.
        SEND_LENGTH = "OB6041", "a message of another length than what was created";
        /// `send` with an empty send buffer.
        NOTHING_CREATED = "OB6042", "nothing to send";
        /// `halt` without a countdown.
        NO_FUTURE = "OB6043", "halt without future";
        /// A countdown that is always replaced.
        SECOND_FUTURE = "OB6044", "a second future before halt";
        /// Control runs past the last instruction.
        END = "OB6045", "control runs past the last instruction";
        /// A program without instructions.
        EMPTY = "OB6046", "no instructions";
        /// A loop that never waits.
        ENDLESS = "OB6047", "a loop that never waits";
        /// More instructions than addresses.
        TOO_MANY_INSTRUCTIONS = "OB6048", "too many instructions";
        /// More buffers or constants than the limit.
        TOO_MANY_NAMES = "OB6049", "too many declarations";
        /// Some errors are not shown.
        TOO_MANY_ERRORS = "OB6050", "too many errors";
        /// A buffer of a channel, and no description.
        NO_DESCRIPTION = "OB6051", "a channel without a description";
        /// A channel that the description does not have.
        UNKNOWN_CHANNEL = "OB6052", "an unknown channel in a program";
        /// The station is no endpoint of the channel.
        NO_ENDPOINT = "OB6053", "a station that is no endpoint";
        /// An output of a listener, or an input of a talker.
        DIRECTION = "OB6054", "a channel in the wrong direction";
        /// A channel with two buffers.
        DUPLICATE_CHANNEL = "OB6055", "a channel with two buffers";
        /// Instructions that no path reaches.
        UNREACHABLE = "OB6056", "unreachable instructions";
        /// A buffer, message or constant that nothing uses.
        UNUSED = "OB6057", "an unused name";
        /// A label that nothing names.
        UNUSED_LABEL = "OB6058", "an unused label";
        /// An assembled program that is none.
        IMAGE = "OB6059", "a file is no assembled program";
        /// The system has something that stations do not carry.
        UNCARRIED = "OB6060", "traffic that stations do not carry";
        /// Nothing to plan.
        NOTHING = "OB6061", "no channels for stations";
        /// More channels than messages.
        MESSAGES = "OB6062", "more channels than messages";
        /// A channel's data unit is longer than a frame.
        PAYLOAD = "OB6063", "a message is too long for a station";
        /// Links of different rates, or of one that no station has.
        RATE = "OB6064", "links of a rate that rounds cannot use";
        /// Links that are no tree.
        TOPOLOGY = "OB6065", "a network that is no tree";
        /// A port that may hold frames of stations back.
        PORT = "OB6066", "a port that may hold stations back";
        /// The master is no host.
        MASTER = "OB6067", "a master that is no host";
        /// A round has no room for any slot.
        ROUND = "OB6068", "a round is too short";
        /// Slots take more than all time.
        LOAD = "OB6069", "slots take more than all time";
        /// A slot found no room.
        PLACE = "OB6070", "no room for a slot";
        /// A program is longer than a station holds.
        PROGRAM = "OB6071", "a planned program is too long";
        /// Best effort is longer than all gaps between frames of stations.
        GAPS = "OB6072", "best effort has no room between frames of stations";
    }
    /// What the verifier of Network Code finds.
    verification {
        /// Indices, delays or formats of a network do not fit together.
        MODEL = "OB6101", "the model of a network is inconsistent";
        /// A program cannot be followed, or breaks the rules of countdowns.
        WELL_FORMED = "OB6102", "a program is not well-formed";
        /// Two stations' frames are at one resource at once.
        COLLISION = "OB6103", "frames of two stations collide";
        /// `create` or `send` does not find what it needs.
        BUFFER = "OB6104", "a buffer has nothing to send";
        /// A countdown ends before its `halt`.
        OVERRUN = "OB6105", "instructions take longer than their countdown";
        /// A frame is overwritten before it is copied.
        LOST = "OB6106", "a frame is overwritten before it is received";
        /// A `receive` may find nothing.
        EMPTY = "OB6107", "a receive may find nothing";
        /// Not exactly one master, or a slave that does not wait for a round.
        SYNCHRONISATION = "OB6108", "a station may miss the beginning of a round";
        /// A station sends though it has lost the beginning of a round.
        NOT_SILENT = "OB6109", "a station sends without a round";
        /// No path leads to an instruction.
        UNREACHABLE = "OB6110", "an instruction is never reached";
        /// A best-effort frame is longer than each gap between real-time frames.
        BEST_EFFORT = "OB6111", "a best-effort frame fits in no gap";
        /// A limit was reached, or no execution shows what seems possible.
        UNDECIDED = "OB6112", "a property is not decided";
    }
}

/// Every code, area by area.
pub fn all() -> impl Iterator<Item = &'static CodeEntry> {
    AREAS.iter().flat_map(|area| area.iter())
}

// No two codes are alike, and each is `OB` and four digits: checked when this is compiled.
const _: () = {
    let mut seen = [false; 10_000];
    let mut area = 0;
    while area < AREAS.len() {
        let mut at = 0;
        while at < AREAS[area].len() {
            let number = AREAS[area][at].code.number() as usize;
            assert!(!seen[number], "a code is there twice");
            seen[number] = true;
            at += 1;
        }
        area += 1;
    }
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_codes_of_an_area_are_in_order() {
        for area in AREAS {
            assert!(area.is_sorted_by_key(|entry| entry.code), "{area:?}");
        }
    }

    #[test]
    fn every_code_has_a_section_under_its_title() {
        let errors = include_str!("../../../docs/errors.md");
        let headings = errors.lines().filter_map(|line| line.strip_prefix("## OB"));
        let mut entries: Vec<_> = all().collect();
        entries.sort_by_key(|entry| entry.code);
        let titles = entries.iter().map(|entry| format!("{}: {}", entry.code, entry.title));
        assert_eq!(
            headings.map(|heading| format!("OB{heading}")).collect::<Vec<_>>(),
            titles.collect::<Vec<_>>()
        );
    }
}
