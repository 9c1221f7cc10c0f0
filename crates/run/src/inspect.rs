//! The counters of all channel ends of all running programs, as `onbeat stat` shows them.
//!
//! Programs keep them in memory that the system lists among their open files
//! ([`onbeat::shared_log`]), so there is nothing to be found after them. Anybody may have such
//! memory and write anything there: it is read, never mapped, and shown as what it says of itself.
//! Each user's processes are looked at by themselves, within limits of their own: what a stranger
//! has takes nothing from what others show.

use crate::machine::Machine;
use onbeat::clock::MonoTime;
use onbeat::shared_log::{Counters, HEADER, Header, Identity, MAX_ENDS, NAME};
use onbeat_model::time::Span;
use onbeat_runtime::channel_io::Source;
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags, SealFlags};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// The most ends that are read of the superuser's programs and of one's own, of one stranger's, and
/// of all strangers'.
const ENDS_MAX: usize = 1 << 16;
const STRANGER_MAX: usize = MAX_ENDS;
const STRANGERS_MAX: usize = 1 << 16;
/// The most open files of one user's that are looked at.
const FILES_MAX: usize = 1 << 17;
/// The most programs between a process and one that it was started by.
const ANCESTORS_MAX: usize = 64;
/// How long the superuser's programs and one's own are waited for, one stranger's, and all
/// strangers': a process can have the kernel wait for it.
const OURS_WITHIN: Span = Span::from_s(60);
const STRANGER_WITHIN: Span = Span::from_s(5);
const STRANGERS_WITHIN: Span = Span::from_s(15);
/// The most looks at strangers' programs that have not come back.
const LOOKS_MAX: usize = 8;
/// Those that have not.
static LOOKS: AtomicUsize = AtomicUsize::new(0);

/// An end of a channel of a running program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveEndpoint {
    /// The program's process.
    pub pid: u32,
    /// Its user.
    pub uid: u32,
    /// What the system calls the program, at most 15 octets.
    pub program: String,
    /// Which end.
    pub identity: Identity,
    /// What has happened at it.
    pub counters: Counters,
    /// The channel's declared interval. Unknown of a program with an older library, as are the
    /// latencies of its counters.
    pub interval: Option<Span>,
    /// Where the last message of another talker came from.
    pub other_talker: Option<Source>,
}

/// What was not looked at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Skipped {
    /// Whose it is.
    pub uid: u32,
    /// What, and why.
    pub why: String,
}

/// All that was seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// The ends, by process and then as they were opened.
    pub ends: Vec<LiveEndpoint>,
    /// What is missing among them.
    pub skipped: Vec<Skipped>,
}

/// Where memory is: its device and its number there.
type MemoryId = (u64, u64);

/// A process.
#[derive(Clone, Copy, Debug)]
struct Process {
    pid: u32,
    parent: u32,
    uid: u32,
}

/// All ends that can be seen. What belongs to other users is seen by the superuser only.
pub fn live_endpoints() -> io::Result<Seen> {
    let machine = Machine::this();
    let numbers = machine.names("/proc").into_iter().filter_map(|name| name.parse().ok());
    let all: Vec<Process> = numbers.filter_map(process).collect();
    let me = rustix::process::geteuid().as_raw();
    let (mut seen, mut places) = (Seen::default(), HashSet::new());
    let mut others: Vec<u32> = all.iter().map(|process| process.uid).collect();
    others.retain(|uid| *uid != me && (me == 0 || *uid == 0));
    others.sort_unstable(); // the users of a user's own (subuid(5)) have the highest numbers
    others.dedup();
    survey(&all, me, ENDS_MAX, &mut places, &mut seen);
    let mut room = STRANGERS_MAX;
    let until = MonoTime::now() + STRANGERS_WITHIN;
    for (at, uid) in others.iter().enumerate() {
        if MonoTime::now() > until || room == 0 {
            let why = format!("and {} users more: not looked at", others.len() - at - 1);
            seen.skipped.push(Skipped { uid: *uid, why });
            break;
        }
        let before = seen.ends.len();
        let most = if *uid == 0 { ENDS_MAX } else { STRANGER_MAX.min(room) };
        survey(&all, *uid, most, &mut places, &mut seen);
        room = room.saturating_sub(if *uid == 0 { 0 } else { seen.ends.len() - before });
    }
    seen.ends.sort_by_key(|end| end.pid); // stable: else as they are in memory
    seen.skipped.sort();
    seen.skipped.dedup();
    Ok(seen)
}

/// A process and whose it is: its directory may be the superuser's, its status says the truth.
fn process(pid: u32) -> Option<Process> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let field = |name: &str, at: usize| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_ascii_whitespace().nth(at)?.parse().ok()
    };
    Some(Process { pid, parent: field("PPid:", 0)?, uid: field("Uid:", 1)? })
}

/// What the look at one user's processes says, one after the other.
enum Word {
    /// A memory: where it is, which process has it open, and what is in it.
    Memory(MemoryId, u32, Vec<Header>),
    /// Which program has it mapped.
    Owner(MemoryId, u32),
    /// What was left out.
    Skipped(String),
}

/// Looks at one user's processes, in a thread that is left behind if it does not come back;
/// `places` have been seen.
fn survey(all: &[Process], uid: u32, most: usize, places: &mut HashSet<MemoryId>, seen: &mut Seen) {
    let processes = all.to_vec();
    let (words, said) = channel();
    let mut skipped = |why: String| seen.skipped.push(Skipped { uid, why });
    let stranger = uid != 0 && uid != rustix::process::geteuid().as_raw();
    if stranger && LOOKS.load(Ordering::Relaxed) >= LOOKS_MAX {
        return skipped(format!("not looked at: {LOOKS_MAX} looks have not come back"));
    }
    LOOKS.fetch_add(1, Ordering::Relaxed);
    let looking = std::thread::Builder::new().spawn(move || {
        let _ = look(&processes, uid, most, &words); // nobody may listen any more
        LOOKS.fetch_sub(1, Ordering::Relaxed);
    });
    if let Err(error) = looking {
        LOOKS.fetch_sub(1, Ordering::Relaxed);
        return skipped(format!("not looked at: {error}"));
    }
    let (mut memories, mut owners) = (BTreeMap::new(), BTreeMap::new());
    let within = if stranger { STRANGER_WITHIN } else { OURS_WITHIN };
    let until = MonoTime::now() + within;
    loop {
        match next(&said, until) {
            Ok(Word::Memory(place, holder, headers)) => {
                if places.insert(place) {
                    memories.insert(place, (holder, headers));
                }
            }
            Ok(Word::Owner(place, pid)) => {
                owners.insert(place, pid);
            }
            Ok(Word::Skipped(why)) => skipped(why),
            Err(true) => break,
            Err(false) => {
                skipped(format!("not all was seen within {within}"));
                break;
            }
        }
    }
    for (place, (holder, headers)) in memories {
        let pid = owners.get(&place).copied().unwrap_or(holder);
        let program = name_of(pid);
        let introduced = headers.iter().filter_map(|h| Some((h.identity()?, h)));
        seen.ends.extend(introduced.map(|(identity, header)| LiveEndpoint {
            pid,
            uid,
            program: program.clone(),
            identity,
            counters: header.counters(),
            interval: header.interval(),
            other_talker: header.other_talker(),
        }));
    }
}

/// The next word; an error says whether there is none more, or none came in time.
fn next(said: &Receiver<Word>, until: MonoTime) -> Result<Word, bool> {
    let left = (until - MonoTime::now()).max(Span::ZERO);
    let left = Duration::from_nanos(u64::try_from(left.as_ns()).unwrap_or_default());
    said.recv_timeout(left)
        .map_err(|error| error == std::sync::mpsc::RecvTimeoutError::Disconnected)
}

/// Says all of one user's memories, and then whose they are. There may be no listener any more.
fn look(all: &[Process], uid: u32, most: usize, words: &Sender<Word>) -> Option<()> {
    let mut places = BTreeMap::new();
    let (mut room, mut files) = (most, FILES_MAX);
    for Process { pid, .. } in all.iter().filter(|process| process.uid == uid) {
        let Ok(open_files) = Path::new(&format!("/proc/{pid}/fd")).read_dir() else { continue };
        for file in open_files.flatten() {
            if files == 0 || room == 0 {
                break;
            }
            files -= 1;
            let Some((place, owner, memory)) = memory(&file.path()) else { continue };
            if owner != uid && owner != 0 {
                let why = format!("process {pid} has memory of user {owner}: not believed");
                words.send(Word::Skipped(why)).ok()?;
            } else if let Entry::Vacant(new) = places.entry(place) {
                new.insert(*pid);
                // Shorter than a header: not ours, or of a program that has just begun.
                let read = headers(&memory, room).unwrap_or_default();
                room -= read.len();
                words.send(Word::Memory(place, *pid, read)).ok()?;
            }
        }
        if room == 0 || files == 0 {
            let (most, what) = if room == 0 { (most, "ends") } else { (FILES_MAX, "open files") };
            let why = format!("more than {most} {what}: the rest is not shown");
            words.send(Word::Skipped(why)).ok()?;
            break;
        }
    }
    if places.is_empty() {
        return Some(());
    }
    let holders: HashSet<u32> = places.values().copied().collect();
    let parents: BTreeMap<u32, u32> = all.iter().map(|one| (one.pid, one.parent)).collect();
    for process in all.iter().filter(|p| p.uid == uid || descends(&parents, p.pid, &holders)) {
        // A run keeps its programs' memory open; the program itself has it only mapped.
        for place in mapped_memories(process.pid) {
            if places.get(&place).is_some_and(|holder| *holder != process.pid) {
                words.send(Word::Owner(place, process.pid)).ok()?;
            }
        }
    }
    Some(())
}

/// Whether one of them started a process, or what started it.
fn descends(parents: &BTreeMap<u32, u32>, pid: u32, from: &HashSet<u32>) -> bool {
    let above = std::iter::successors(parents.get(&pid), |pid| parents.get(pid));
    above.take(ANCESTORS_MAX).any(|pid| from.contains(pid))
}

/// What the system calls a process.
fn name_of(pid: u32) -> String {
    let name = std::fs::read(format!("/proc/{pid}/comm")).unwrap_or_default();
    String::from_utf8_lossy(&name).trim_end_matches('\n').to_owned()
}

/// Memory of the kind that ours is, open for reading, with where it is and whose. What cannot be
/// looked at, because it has just gone, is passed over.
fn memory(path: &Path) -> Option<(MemoryId, u32, File)> {
    let wanted = format!("/memfd:{NAME} (deleted)");
    std::fs::read_link(path).ok().filter(|link| link.as_os_str() == wanted.as_str())?;
    // What was memory when its link was read may by now be a pipe, on which an open could wait.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let memory: OwnedFd = rustix::fs::open(path, flags, Mode::empty()).ok()?;
    // Only memory has seals, and ours has this one from the start.
    if !rustix::fs::fcntl_get_seals(&memory).ok()?.contains(SealFlags::SHRINK) {
        return None;
    }
    let memory = File::from(memory);
    let about = memory.metadata().ok()?;
    Some(((about.dev(), about.ino()), about.uid(), memory))
}

/// The headers in memory, at most `room` of them. Reading, unlike mapping, cannot kill this process
/// whatever becomes of the memory; a count that is being written may be read as before or as after.
fn headers(memory: &File, room: usize) -> io::Result<Vec<Header>> {
    let mut octets = [0; HEADER];
    memory.read_exact_at(&mut octets, 0)?;
    let first = Header::new(octets);
    let mut all = Vec::new();
    all.extend((room > 0).then_some(first));
    for at in 1..first.headers().min(room) {
        if memory.read_exact_at(&mut octets, (at * HEADER) as u64).is_err() {
            break; // it says that it has more than it has
        }
        all.push(Header::new(octets));
    }
    Ok(all)
}

/// The memories of ours that a process has mapped.
fn mapped_memories(pid: u32) -> HashSet<MemoryId> {
    let Ok(maps) = File::open(format!("/proc/{pid}/maps")) else { return HashSet::new() };
    let lines = BufReader::new(maps).split(b'\n').map_while(Result::ok);
    lines.filter_map(|line| mapped(&String::from_utf8_lossy(&line))).collect()
}

/// Which memory of ours a line of /proc/PID/maps is about.
fn mapped(line: &str) -> Option<MemoryId> {
    if !line.ends_with(&format!("/memfd:{NAME} (deleted)")) {
        return None;
    }
    let mut fields = line.split_ascii_whitespace().skip(3);
    let (major, minor) = fields.next()?.split_once(':')?;
    let number = |text| u32::from_str_radix(text, 16).ok();
    let device = rustix::fs::makedev(number(major)?, number(minor)?);
    Some((device, fields.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use onbeat::shared_log::{self, Board, SharedLog};
    use onbeat_model::record::{Record, Role};
    use onbeat_model::units::StreamId;
    use onbeat_runtime::channel_io::{Log, Reason};
    use rustix::fs::MemfdFlags;

    fn identity(channel: &str) -> Identity {
        Identity { channel: channel.to_owned(), stream_id: StreamId(7), role: Role::Talker }
    }

    /// The ends of this process whose channels are called `name`-something.
    fn seen(name: &str) -> Vec<LiveEndpoint> {
        let mut ends = live_endpoints().expect("/proc").ends;
        ends.retain(|e| e.pid == std::process::id() && e.identity.channel.starts_with(name));
        ends
    }

    fn memfd(flags: MemfdFlags, octets: &[u8]) -> File {
        let memory = File::from(rustix::fs::memfd_create(NAME, flags).expect("memory"));
        memory.write_all_at(octets, 0).expect("written");
        memory
    }

    #[test]
    fn all_ends_of_a_board_are_seen_once_with_their_counts() {
        let board = Board::new().expect("a board");
        let again = rustix::io::dup(board.memory()).expect("a second descriptor");
        assert_eq!(seen("board-"), []);
        let mut ends: Vec<_> = (0..300).map(|_| board.end().expect("an end")).collect();
        for (at, end) in ends.iter_mut().enumerate() {
            end.introduce(&identity(&format!("board-{at}")));
            end.push(&Record::default());
            end.reject(Reason::Size, 1);
        }
        ends[299].push(&Record::default());
        let got = seen("board-");
        assert_eq!(got.len(), 300);
        for (at, end) in got.iter().enumerate() {
            assert_eq!(end.identity, identity(&format!("board-{at}")));
            assert_eq!(end.counters.rejected, [0, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
        }
        assert_eq!((got[0].counters.sent, got[299].counters.sent), (1, 2));
        assert_eq!((got[0].program.clone(), got[0].counters.unrecorded), (name_of(got[0].pid), 0));
        drop((again, board, ends));
        assert_eq!(seen("board-"), [], "nothing is left");
    }

    #[test]
    fn memory_of_a_run_is_one_end_whatever_its_records_hold() {
        let capacity = 32_764; // as long as a board
        let memory = shared_log::create(capacity).expect("memory");
        let mut log = SharedLog::map(&memory, capacity).expect("a mapping");
        log.introduce(&identity("run-x"));
        for sequence in 0..u64::from(capacity) {
            log.push(&Record { sequence: u64::MAX - sequence, ..Record::default() });
        }
        let got = seen("run-");
        assert_eq!(got.len(), 1);
        assert_eq!(got[0].counters.sent, u64::from(capacity));
    }

    #[test]
    fn hostile_memory_is_passed_over_or_shown_as_what_it_says() {
        let sealable = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let named = |name: &[u8]| {
            let mut octets = vec![0xff; HEADER];
            let at = 8 * (shared_log::COUNTERS.len() + 2);
            octets[at..at + 32].fill(0);
            octets[at..at + name.len()].copy_from_slice(name);
            octets
        };
        let seal = |memory: &File| {
            rustix::fs::fcntl_add_seals(memory, SealFlags::SHRINK).expect("sealed");
        };
        // It could shrink; it has no seals at all; it is too short; it is empty.
        let _loose = memfd(sealable, &named(b"hostile-loose"));
        let _plain = memfd(MemfdFlags::CLOEXEC, &named(b"hostile-plain"));
        let short = memfd(sealable, &named(b"hostile-short")[..HEADER - 1]);
        let empty = memfd(sealable, &[]);
        // It says that 2^64 - 1 headers follow, and has one and a half.
        let greedy = memfd(sealable, &[named(b"hostile-\xff\x1b[2J"), vec![0xff; 100]].concat());
        // It is enormous and has nothing in it.
        let hole = memfd(sealable, &[]);
        rustix::fs::ftruncate(&hole, 1 << 40).expect("a hole");
        hole.write_all_at(&named(b"hostile-hole"), 0).expect("written");
        [&short, &empty, &greedy, &hole].into_iter().for_each(seal);
        let got = seen("hostile-");
        let names: HashSet<_> = got.iter().map(|e| e.identity.channel.as_str()).collect();
        assert_eq!(names, HashSet::from(["hostile-\u{fffd}\u{1b}[2J", "hostile-hole"]));
        assert_eq!(got[0].counters.received, u64::MAX);
    }

    #[test]
    fn a_process_says_whose_it_is_and_which_started_it() {
        let own = process(std::process::id()).expect("this one");
        assert_eq!(own.uid, rustix::process::geteuid().as_raw());
        let parents = BTreeMap::from([(own.pid, own.parent), (own.parent, 1), (1, 0)]);
        assert!(descends(&parents, own.pid, &HashSet::from([1])));
        assert!(!descends(&parents, own.pid, &HashSet::from([own.pid])));
        let ring = BTreeMap::from([(7, 8), (8, 7)]);
        assert!(!descends(&ring, 7, &HashSet::from([9])));
    }

    #[test]
    fn lines_that_are_not_of_the_form_name_no_memory() {
        let good = "7f00-7f01 rw-s 00000000 00:01 42     /memfd:onbeat-records (deleted)";
        assert_eq!(mapped(good), Some((rustix::fs::makedev(0, 1), 42)));
        for bad in [
            "",
            "/memfd:onbeat-records (deleted)",
            "a b c d e /memfd:onbeat-records (deleted)",
            "a b c 0:1 -1 /memfd:onbeat-records (deleted)",
            "7f00-7f01 rw-s 00000000 00:01 42     /memfd:other (deleted)",
        ] {
            assert_eq!(mapped(bad), None, "{bad}");
        }
    }
}
