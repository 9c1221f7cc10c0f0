//! The counters of all channel ends of all running programs, as `onbeat stat` shows them.
//!
//! Programs keep them in memory that the system lists among their open files
//! ([`crate::shared_log`]), so there is nothing to be found after them. Anybody may have such
//! memory and write anything there: it is read, never mapped, and shown as what it says of itself.

use crate::shared_log::{Counters, HEADER, Header, Identity, NAME};
use onbeat_runtime::port::Source;
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags, SealFlags};
use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

/// The most memories that are looked at.
const MAX_MEMORIES: usize = 1 << 16;
/// The most ends that are read from them.
const MAX_HEADERS: usize = 1 << 16;

/// An end of a channel of a running program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveEnd {
    /// The program's process.
    pub pid: u32,
    /// What the system calls the program, at most 15 octets.
    pub program: String,
    /// Which end.
    pub identity: Identity,
    /// What has happened at it.
    pub counters: Counters,
    /// Where the last message of another talker came from.
    pub other_talker: Option<Source>,
}

/// Where memory is: its device and its number there.
type Place = (u64, u64);

/// All ends that can be seen, by process and then as they were opened. What belongs to other users
/// is seen by the superuser only.
pub fn live_ends() -> io::Result<Vec<LiveEnd>> {
    let mut processes: Vec<u32> = Path::new("/proc")
        .read_dir()?
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect();
    processes.sort_unstable();
    let mut memories = BTreeMap::new();
    let mut room = MAX_HEADERS;
    for pid in &processes {
        open_memories(*pid, &mut memories, &mut room);
    }
    if memories.is_empty() {
        return Ok(Vec::new());
    }
    let mut owners: BTreeMap<_, _> = memories.iter().map(|(at, m)| (*at, m.0)).collect();
    for pid in &processes {
        // A run keeps its programs' memory open; the program itself has it only mapped.
        for place in mapped_memories(*pid) {
            if memories.get(&place).is_some_and(|(holder, _)| holder != pid) {
                owners.insert(place, *pid);
            }
        }
    }
    let mut ends = Vec::new();
    for (place, (holder, headers)) in memories {
        let pid = owners.get(&place).copied().unwrap_or(holder);
        let program = name_of(pid);
        let introduced = headers.iter().filter_map(|h| Some((h.identity()?, h)));
        ends.extend(introduced.map(|(identity, header)| LiveEnd {
            pid,
            program: program.clone(),
            identity,
            counters: header.counters(),
            other_talker: header.other_talker(),
        }));
    }
    ends.sort_by_key(|end| end.pid); // stable: else as they are in memory
    Ok(ends)
}

/// What the system calls a process.
fn name_of(pid: u32) -> String {
    let name = std::fs::read(format!("/proc/{pid}/comm")).unwrap_or_default();
    String::from_utf8_lossy(&name).trim_end_matches('\n').to_owned()
}

/// Reads the memories that a process has open and that have not been seen yet. What cannot be
/// looked at, because it is another user's or has just gone, is passed over.
fn open_memories(pid: u32, memories: &mut BTreeMap<Place, (u32, Vec<Header>)>, room: &mut usize) {
    let wanted = format!("/memfd:{NAME} (deleted)");
    let Ok(files) = Path::new(&format!("/proc/{pid}/fd")).read_dir() else { return };
    for file in files.flatten() {
        let path = file.path();
        if !std::fs::read_link(&path).is_ok_and(|link| link.as_os_str() == wanted.as_str()) {
            continue;
        }
        let Ok((place, memory)) = open(&path) else { continue };
        if memories.len() < MAX_MEMORIES && !memories.contains_key(&place) {
            // Shorter than a header: not ours, or of a program that has just begun.
            let headers = headers(&memory, *room).unwrap_or_default();
            *room -= headers.len();
            memories.insert(place, (pid, headers));
        }
    }
}

/// Opens memory for reading if it is of the kind that ours is.
fn open(path: &Path) -> io::Result<(Place, File)> {
    // What was memory when its link was read may by now be a pipe, on which an open could wait.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let memory: OwnedFd = rustix::fs::open(path, flags, Mode::empty())?;
    // Only memory has seals, and ours has this one from the start.
    if !rustix::fs::fcntl_get_seals(&memory)?.contains(SealFlags::SHRINK) {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let memory = File::from(memory);
    let about = memory.metadata()?;
    Ok(((about.dev(), about.ino()), memory))
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
fn mapped_memories(pid: u32) -> HashSet<Place> {
    let Ok(maps) = File::open(format!("/proc/{pid}/maps")) else { return HashSet::new() };
    let lines = BufReader::new(maps).split(b'\n').map_while(Result::ok);
    lines.filter_map(|line| mapped(&String::from_utf8_lossy(&line))).collect()
}

/// Which memory of ours a line of /proc/PID/maps is about.
fn mapped(line: &str) -> Option<Place> {
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
    use crate::shared_log::{self, Board, SharedLog};
    use onbeat_model::record::{Record, Role};
    use onbeat_model::units::StreamId;
    use onbeat_runtime::port::{Log, Reason};
    use rustix::fs::MemfdFlags;

    fn identity(channel: &str) -> Identity {
        Identity { channel: channel.to_owned(), stream_id: StreamId(7), role: Role::Talker }
    }

    /// The ends of this process whose channels are called `name`-something.
    fn seen(name: &str) -> Vec<LiveEnd> {
        let mut ends = live_ends().expect("/proc");
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
            assert_eq!(end.counters.rejected, [0, 0, 1, 0, 0]);
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
