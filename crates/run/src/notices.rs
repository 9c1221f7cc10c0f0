//! What programs take from elsewhere than the library in virtual time: an object that is preloaded
//! notices it (`notice/notice.c`), in memory that it shares with this process.
//!
//! Object and memory are files without names, which programs find below this process's directory in
//! `/proc`: no descriptor of a program has another number for it, and nothing has to be cleared up.

use onbeat::environment::var_os;
use onbeat_model::outside::{OutsideCall, OutsideKind, ProgramOutside};
use onbeat_model::time::NetTime;
use rustix::fd::AsRawFd;
use rustix::fs::{MemfdFlags, memfd_create};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileExt, MetadataExt};

/// The object, as `build.rs` compiled it.
const OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/notice.so"));
/// What the memory is called where the system lists a process's.
const NAME: &str = "onbeat-notices";
/// The environment variable that names the memory.
const MEMORY: &str = "ONBEAT_NOTICES";
/// The one of the dynamic loader (ld.so(8)).
const PRELOAD: &str = "LD_PRELOAD";
/// The one of AddressSanitizer, which would end a program before which something is preloaded.
const SANITIZER: (&str, &str) = ("ASAN_OPTIONS", "verify_asan_link_order=0");

// The memory's layout, which `notice.c` has too.
const PHASE: u64 = 0;
const NOW: u64 = 8;
const LEFT_OUT: usize = 16;
const SITES: usize = 1_024;
const SITE: usize = 320;
const FIRST_SITE: usize = 64;
const THREADS: usize = 16_384;
const FIRST_THREAD: usize = FIRST_SITE + SITES * SITE;
const SIZE: usize = FIRST_THREAD + THREADS * 8;
/// Phases: nothing is noticed in the last one.
const IN_RUN: u64 = 1;
const OVER: u64 = 2;

/// The object, for all programs of a run.
#[derive(Debug)]
pub(crate) struct Preload(File);

impl Preload {
    pub(crate) fn new() -> io::Result<Self> {
        let mut object = File::from(memfd_create("onbeat-notice.so", MemfdFlags::CLOEXEC)?);
        object.write_all(OBJECT)?;
        Ok(Self(object))
    }
}

/// What is noticed of a program.
#[derive(Debug)]
pub(crate) struct Notices {
    memory: Option<File>,
    /// The process that joined the run, or why nothing is known of it.
    process: Result<u32, String>,
}

impl Notices {
    pub(crate) fn new() -> io::Result<Self> {
        let memory = File::from(memfd_create(NAME, MemfdFlags::CLOEXEC)?);
        memory.set_len(SIZE as u64)?;
        memory.write_all_at(&(-1_i64).to_le_bytes(), NOW)?;
        Ok(Self { memory: Some(memory), process: Err("it has not joined the run".to_owned()) })
    }

    /// Of a program that nothing can be preloaded to.
    pub(crate) fn unknown(why: &str) -> Self {
        Self { memory: None, process: Err(why.to_owned()) }
    }

    /// What is added to the program's environment.
    pub(crate) fn environment(&self, preload: &Preload) -> Vec<(&'static str, OsString)> {
        let Some(memory) = &self.memory else { return Vec::new() };
        let path = |file: &File| {
            let process = std::process::id();
            OsString::from(format!("/proc/{process}/fd/{}", file.as_raw_fd()))
        };
        let and = |first: OsString, name: &str| {
            let other = var_os(name).filter(|other| !other.is_empty());
            other.map_or(first.clone(), |other| [&*first, &*other].join(OsStr::new(":")))
        };
        let (sanitizer, option) = SANITIZER;
        vec![
            (MEMORY, path(memory)),
            (PRELOAD, and(path(&preload.0), PRELOAD)),
            (sanitizer, and(option.into(), sanitizer)),
        ]
    }

    /// A thread of the program has joined, as its main one.
    pub(crate) fn joined(&mut self, tid: u32) {
        if self.memory.is_some() {
            self.process = process_of(tid);
            self.put(PHASE, IN_RUN);
        }
    }

    /// It is `now` while the program executes.
    pub(crate) fn at(&self, now: NetTime) {
        self.put(NOW, now.as_ns().cast_unsigned());
    }

    /// What follows is not noticed.
    pub(crate) fn over(&self) {
        self.put(PHASE, OVER);
    }

    fn put(&self, at: u64, word: u64) {
        if let Some(memory) = &self.memory {
            // Only for want of memory: then what is noticed has another instant.
            let _ = memory.write_all_at(&word.to_le_bytes(), at);
        }
    }

    /// What was noticed of a program that executes no longer. `threads` are those that joined the
    /// run: what the system numbers them by, and the run.
    pub(crate) fn read(self, program: &str, threads: &[(u32, u32)]) -> ProgramOutside {
        let mut found =
            ProgramOutside { program: program.to_owned(), unknown: None, calls: None, left_out: 0 };
        let mut octets = vec![0; SIZE];
        let read = self.process.and_then(|process| {
            let memory = self.memory.as_ref().map(|memory| memory.read_exact_at(&mut octets, 0));
            match memory {
                Some(Ok(())) => Ok(process),
                _ => Err("the program has damaged what was noticed".to_owned()),
            }
        });
        match read {
            Ok(process) => {
                found.left_out = word(&octets, LEFT_OUT);
                found.calls = Some(calls(&octets, process, threads));
            }
            Err(why) => found.unknown = Some(why),
        }
        found
    }
}

fn word(octets: &[u8], at: usize) -> u64 {
    octets[at..].first_chunk().map_or(0, |word| u64::from_le_bytes(*word))
}

fn half(octets: &[u8], at: usize) -> u32 {
    octets[at..].first_chunk().map_or(0, |word| u32::from_le_bytes(*word))
}

fn text(octets: &[u8]) -> String {
    let text = octets.split(|octet| *octet == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).into_owned()
}

/// A function as a person knows it: C++ gives it a longer name.
fn function(name: String) -> String {
    match name.starts_with("_ZNSt13random_device") {
        true => "std::random_device".to_owned(),
        false => name,
    }
}

/// What a process called.
fn calls(octets: &[u8], process: u32, threads: &[(u32, u32)]) -> Vec<OutsideCall> {
    let joined = |tid: u32| threads.iter().find(|(known, _)| *known == tid);
    let created = octets[FIRST_THREAD..].chunks_exact(8).map(|it| (half(it, 0), half(it, 4)));
    let joining = created.filter(|(_, tid)| joined(*tid).is_some());
    let mut of_the_run = vec![0_u64; SITES];
    for (place, _) in joining {
        // One that was not created yet has none.
        if let Some(count) = of_the_run.get_mut((place as usize).wrapping_sub(1)) {
            *count += 1;
        }
    }
    let sites = octets[FIRST_SITE..FIRST_THREAD].chunks_exact(SITE).zip(of_the_run);
    let mut found: Vec<OutsideCall> = sites
        .filter(|(site, _)| half(site, 40) == process && half(site, 56) == 1)
        .filter_map(|(site, of_the_run)| {
            let calls = word(site, 8).checked_sub(of_the_run).filter(|calls| *calls > 0)?;
            let first = word(site, 16).cast_signed();
            Some(OutsideCall {
                kind: kind(half(site, 48))?,
                function: function(text(&site[64..96])),
                object: text(&site[96..]),
                offset: word(site, 24).wrapping_sub(word(site, 32)),
                symbol: None,
                own: false,
                in_run: u64::from(half(site, 52)) == IN_RUN,
                thread: joined(half(site, 44)).map(|(_, number)| *number),
                calls,
                first_ns: (first >= 0).then_some(first),
            })
        })
        .collect();
    let order = |call: &OutsideCall| {
        (call.in_run, call.first_ns, call.kind, call.function.clone(), call.offset)
    };
    found.sort_by_key(order);
    found
}

fn kind(number: u32) -> Option<OutsideKind> {
    Some(match number {
        0 => OutsideKind::Clock,
        1 => OutsideKind::Wait,
        2 => OutsideKind::Randomness,
        3 => OutsideKind::Thread,
        4 => OutsideKind::Process,
        _ => return None,
    })
}

/// The process of a thread, if the object is in it; else why it is not.
fn process_of(tid: u32) -> Result<u32, String> {
    let maps = std::fs::read(format!("/proc/{tid}/maps"))
        .map_err(|error| format!("what it has loaded cannot be read: {error}"))?;
    let is_there = maps
        .split(|octet| *octet == b'\n')
        .any(|line| line.windows(NAME.len()).any(|part| part == NAME.as_bytes()));
    if !is_there {
        return Err(why_not_loaded(tid).to_owned());
    }
    let status = std::fs::read_to_string(format!("/proc/{tid}/status")).unwrap_or_default();
    let process = status.lines().find_map(|line| line.strip_prefix("Tgid:")?.trim().parse().ok());
    process.ok_or_else(|| "which process it is cannot be read".to_owned())
}

fn why_not_loaded(tid: u32) -> &'static str {
    let path = format!("/proc/{tid}/exe");
    let mode = std::fs::metadata(&path).map_or(0, |found| found.mode());
    let mut beginning = Vec::new();
    let read = File::open(&path).and_then(|file| file.take(1 << 16).read_to_end(&mut beginning));
    match read {
        Ok(_) if has_interpreter(&beginning) == Some(false) => {
            "it is linked statically, so that nothing can be preloaded"
        }
        _ if mode & 0o6000 != 0 => "it has its file's rights, so that nothing is preloaded",
        _ => "the object was not preloaded: LD_PRELOAD did not reach it, or its loader refused",
    }
}

/// Whether an executable has a dynamic loader, as the first octets of its file say.
fn has_interpreter(elf: &[u8]) -> Option<bool> {
    const INTERPRETER: u32 = 3;
    if !elf.starts_with(b"\x7fELF\x02\x01") || elf.len() < 64 {
        return None;
    }
    let begin = usize::try_from(word(elf, 32)).ok()?;
    let [size, count] = [54, 56].map(|at| usize::from(u16::from_le_bytes([elf[at], elf[at + 1]])));
    let headers = elf.get(begin..begin.checked_add(size.checked_mul(count)?)?)?;
    Some(headers.chunks_exact(size.max(4)).any(|header| half(header, 0) == INTERPRETER))
}

#[cfg(test)]
mod tests {
    use super::*;
    use onbeat_testkit::Random;

    fn put(octets: &mut [u8], at: usize, number: u64) {
        octets[at..at + 8].copy_from_slice(&number.to_le_bytes());
    }

    /// The memory with one site of process 7, whose calls made threads 8 and 9.
    fn two_threads() -> Vec<u8> {
        let mut octets = vec![0; SIZE];
        put(&mut octets, FIRST_SITE + 8, 2);
        put(&mut octets, FIRST_SITE + 40, 7 | 7 << 32);
        put(&mut octets, FIRST_SITE + 48, 3 | IN_RUN << 32);
        put(&mut octets, FIRST_SITE + 56, 1);
        put(&mut octets, FIRST_THREAD, 1 | 8 << 32);
        put(&mut octets, FIRST_THREAD + 8, 1 | 9 << 32);
        octets
    }

    #[test]
    fn threads_that_joined_are_not_counted_nor_are_other_processes() {
        let octets = two_threads();
        let count = |process, threads: &[(u32, u32)]| {
            calls(&octets, process, threads).iter().map(|call| call.calls).sum::<u64>()
        };
        assert_eq!(count(7, &[(7, 0)]), 2);
        assert_eq!(count(7, &[(7, 0), (9, 1)]), 1);
        assert_eq!(count(7, &[(7, 0), (8, 1), (9, 2)]), 0);
        assert_eq!(count(6, &[(7, 0)]), 0);
        let call = &calls(&octets, 7, &[(7, 5)])[0];
        assert_eq!((call.kind, call.thread, call.in_run), (OutsideKind::Thread, Some(5), true));
    }

    #[test]
    fn whatever_a_program_has_written_there_is_read() {
        let mut random = Random(1);
        for _ in 0..20 {
            let mut octets = two_threads();
            for at in (0..SIZE - 8).step_by(16) {
                put(&mut octets, at, random.draw());
            }
            put(&mut octets, FIRST_SITE + 40, 7);
            put(&mut octets, FIRST_SITE + 56, 1);
            assert!(calls(&octets, 7, &[(8, 1)]).len() <= SITES);
        }
    }

    #[test]
    fn only_what_has_no_dynamic_loader_is_static() {
        let own = std::fs::read("/proc/self/exe").expect("this test");
        assert_eq!(has_interpreter(&own), Some(true));
        let mut header = own[..64].to_vec();
        header[56..58].fill(0);
        assert_eq!(has_interpreter(&header), Some(false));
        assert_eq!(has_interpreter(b"#!/bin/sh"), None);
        let mut beyond = own[..64].to_vec();
        beyond[32..40].fill(0xff);
        assert_eq!(has_interpreter(&beyond), None);
    }
}
