//! What is done against a program's own delays while it has an interface open: memory is locked,
//! and one descriptor holds the CPU latency. Each scenario is a process of its own, this program
//! started again, because all of this is a process's.
#![allow(unsafe_code)]

use onbeat::Context;
use onbeat::interface::{InterfaceContext, InterfaceSettings, Precautions, Taken};
use onbeat_testkit::{Need, not_run};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Tells this program, started by itself, which scenario to play.
const PLAYS: &str = "ONBEAT_TEST_PLAYS";
/// The device, a file here.
const DEVICE: &str = "ONBEAT_TEST_DEVICE";
/// The most memory that locks, in octets, where there is a limit: less than any program has.
const LIMIT: u64 = 64 << 10;
/// More than a page, and not what anything else maps.
const LATER: usize = 1 << 20;

/// What the wish reads when it is withdrawn.
const WITHDRAWN: i32 = 2_000_000_000;

/// Plays a scenario in a process of its own; what it said. `None` where this test may not have
/// other limits, or has no interface to open.
fn played(test: &str, scenario: fn(), environment: &[(&str, &str)]) -> Option<Output> {
    if std::env::var_os(PLAYS).is_some() {
        scenario();
        // The harness's own output follows otherwise, and its threads.
        std::process::exit(0);
    }
    let all = capabilities(None).is_ok_and(|have| have.effective.contains(CapabilitySet::IPC_LOCK));
    let up = fs::read_to_string("/sys/class/net/lo/flags").unwrap_or_default();
    let up = u32::from_str_radix(up.trim().trim_start_matches("0x"), 16).unwrap_or(0) & 1 != 0;
    if !(all && rustix::process::geteuid().is_root() && up) {
        not_run(Need::Superuser, "the superuser's rights and a loopback that is up are needed");
        return None;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let device = directory.path().join("cpu_dma_latency");
    fs::write(&device, "").expect("a file");
    let this = std::env::current_exe().expect("this test");
    let output = Command::new(this)
        .args(["--exact", test, "--nocapture"])
        .env_remove("ONBEAT_LOCK_MEMORY")
        .env_remove("ONBEAT_HOLD_CPU_LATENCY")
        .env(PLAYS, "1")
        .env(DEVICE, &device)
        .envs(environment.iter().copied())
        .output()
        .expect("this test again");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    Some(output)
}

fn device() -> PathBuf {
    std::env::var_os(DEVICE).expect("the scenario's device").into()
}

fn precautions() -> Precautions {
    Precautions { cpu_latency: Some(device()), ..Precautions::default() }
}

fn open(precautions: Precautions) -> InterfaceContext {
    let settings =
        InterfaceSettings { name: "lo".to_owned(), precautions, ..InterfaceSettings::default() };
    InterfaceContext::open(settings).expect("the loopback is up")
}

/// A figure of /proc/self/status, in octets.
fn status(key: &str) -> u64 {
    let text = fs::read_to_string("/proc/self/status").expect("a process");
    let line = text.lines().find_map(|line| line.strip_prefix(key)).expect("the figure");
    let kib: u64 = line.trim_start_matches(':').trim().trim_end_matches(" kB").parse().expect("kB");
    kib << 10
}

fn locked() -> u64 {
    status("VmLck")
}

/// How many descriptors of this process are of the file.
fn descriptors(path: &Path) -> usize {
    let all = fs::read_dir("/proc/self/fd").expect("descriptors").flatten();
    all.filter(|entry| fs::read_link(entry.path()).is_ok_and(|to| to == path)).count()
}

fn wish() -> i32 {
    let octets = fs::read(device()).expect("the file");
    i32::from_ne_bytes(octets.try_into().expect("four octets"))
}

fn limit(octets: Option<u64>) {
    let limit = Rlimit { current: octets, maximum: octets };
    setrlimit(Resource::Memlock, limit).expect("a limit");
}

/// Gives up all rights for good.
fn drop_rights() {
    let none = CapabilitySet::empty();
    let none = CapabilitySets { effective: none, permitted: none, inheritable: none };
    // SAFETY: scenarios have no thread that relies on this process's user.
    assert_eq!(unsafe { libc::setresuid(65_534, 65_534, 65_534) }, 0);
    set_capabilities(None, none).expect("fewer rights");
}

/// New memory: its place, and how much of it is resident.
fn more_memory() -> (*mut u8, usize) {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new mapping at a place of the kernel's choice.
    let place = unsafe { libc::mmap(std::ptr::null_mut(), LATER, access, flags, -1, 0) };
    assert_ne!(place, libc::MAP_FAILED);
    let place = place.cast::<u8>();
    (place, resident(place))
}

fn resident(place: *mut u8) -> usize {
    let page = rustix::param::page_size();
    let mut pages = vec![0_u8; LATER / page];
    // SAFETY: the memory is mapped; there is an octet for each of its pages.
    assert_eq!(unsafe { libc::mincore(place.cast(), LATER, pages.as_mut_ptr()) }, 0);
    pages.iter().filter(|page| **page & 1 != 0).count() * page
}

fn lines(output: &Output, what: &str) -> usize {
    let said = String::from_utf8_lossy(&output.stderr);
    said.lines().filter(|line| line.contains(what)).count()
}

#[test]
fn without_a_limit_later_memory_is_locked_as_well() {
    let raised = Rlimit { current: None, maximum: None };
    let here = getrlimit(Resource::Memlock);
    if setrlimit(Resource::Memlock, raised).is_err() {
        not_run(Need::Machine, "the limit of locked memory cannot be raised here");
        return;
    }
    // Scenarios begin with the limit that they are made with.
    setrlimit(Resource::Memlock, here).expect("a lower limit");
    let test = "without_a_limit_later_memory_is_locked_as_well";
    played(
        test,
        || {
            setrlimit(Resource::Memlock, Rlimit { current: None, maximum: None }).expect("raised");
            assert_eq!((locked(), Taken::now()), (0, Taken::default()));
            let _context = open(precautions());
            let before = locked();
            let all = Taken { memory: true, later_memory: true, cpu_latency: true };
            assert_eq!(Taken::now(), all);
            more_memory();
            assert!(locked() >= before + LATER as u64);
        },
        &[],
    );
}

#[test]
fn at_the_start_what_was_opened_since_is_locked_and_resident() {
    let test = "at_the_start_what_was_opened_since_is_locked_and_resident";
    let said = played(
        test,
        || {
            let context = open(precautions());
            assert!(locked() > 0);
            let (place, there) = more_memory();
            assert_eq!(there, 0, "memory that nothing has touched");
            let context = Context::Interface(context);
            context.start().expect("an epoch that is past");
            assert_eq!(resident(place), LATER);
            // It stays locked when the interface is closed: other threads may rely on it.
            drop(context);
            assert!(locked() >= LATER as u64);
        },
        &[],
    );
    if let Some(said) = said {
        assert_eq!(lines(&said, "onbeat: memory is not locked"), 0, "{said:?}");
    }
}

#[test]
fn a_program_that_has_locked_all_its_future_memory_keeps_that() {
    let test = "a_program_that_has_locked_all_its_future_memory_keeps_that";
    played(
        test,
        || {
            // SAFETY: no memory is there that may not be locked.
            assert_eq!(unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE) }, 0);
            let _context = open(precautions());
            assert!(Taken::now().later_memory);
            assert_eq!(more_memory().1, LATER, "resident at once");
        },
        &[],
    );
}

#[test]
fn with_a_limit_memory_that_comes_later_is_never_refused() {
    let test = "with_a_limit_memory_that_comes_later_is_never_refused";
    let said = played(
        test,
        || {
            limit(Some(LIMIT));
            let _context = open(precautions());
            // The right to exceed the limit is enough for what there is.
            let before = locked();
            assert!(before > LIMIT);
            let taken = Taken { memory: true, later_memory: false, cpu_latency: true };
            assert_eq!(Taken::now(), taken);
            // What the program gets when it has given its rights up.
            drop_rights();
            more_memory();
            assert_eq!(locked(), before);
        },
        &[],
    );
    if let Some(said) = said {
        assert_eq!(lines(&said, "onbeat: memory is not locked"), 0, "{said:?}");
    }
}

#[test]
fn a_program_without_the_right_is_told_once_what_it_lacks_and_works() {
    let test = "a_program_without_the_right_is_told_once_what_it_lacks_and_works";
    let said = played(
        test,
        || {
            limit(Some(LIMIT));
            fs::set_permissions(device(), std::os::unix::fs::PermissionsExt::from_mode(0o600))
                .expect("the superuser's file");
            drop_rights();
            assert_eq!(getrlimit(Resource::Memlock).current, Some(LIMIT));
            let first = open(precautions());
            let second = open(precautions());
            Context::Interface(first).start().expect("it works");
            Context::Interface(second).start().expect("it works");
            assert_eq!((locked(), Taken::now()), (0, Taken::default()));
        },
        &[],
    );
    let Some(said) = said else { return };
    let told = "page faults may delay this program: RLIMIT_MEMLOCK is 65536 octets, and \
                CAP_IPC_LOCK is missing";
    assert_eq!(lines(&said, told), 1, "{said:?}");
    assert_eq!(lines(&said, "memory is not locked"), 1, "{said:?}");
    // Of the device there is the status.
    assert_eq!(lines(&said, "latency"), 0, "{said:?}");
}

#[test]
fn settings_and_environment_leave_memory_and_idle_states_as_they_are() {
    let test = "settings_and_environment_leave_memory_and_idle_states_as_they_are";
    let by_environment = || {
        let (memory, latency) = match std::env::var("ONBEAT_LOCK_MEMORY").as_deref() {
            Ok("0") => (false, true),
            Ok("1") => (true, false),
            _ => (false, false),
        };
        let wanted = match (memory, latency) {
            (false, false) => Precautions::NONE,
            _ => precautions(),
        };
        let _context = open(wanted);
        assert_eq!((locked() > 0, descriptors(&device())), (memory, usize::from(latency)));
        let later_memory = memory && getrlimit(Resource::Memlock).current.is_none();
        assert_eq!(Taken::now(), Taken { memory, later_memory, cpu_latency: latency });
    };
    for environment in [
        &[][..],
        &[("ONBEAT_LOCK_MEMORY", "0")],
        &[("ONBEAT_LOCK_MEMORY", "1"), ("ONBEAT_HOLD_CPU_LATENCY", "0")],
    ] {
        played(test, by_environment, environment);
    }
}

#[test]
fn another_value_in_the_environment_is_refused() {
    let test = "another_value_in_the_environment_is_refused";
    let refused = || {
        let settings = InterfaceSettings { name: "lo".to_owned(), ..Default::default() };
        let error = InterfaceContext::open(settings).expect_err("not 0 or 1").to_string();
        assert!(error.contains("ONBEAT_HOLD_CPU_LATENCY is 0 or 1"), "{error}");
    };
    played(test, refused, &[("ONBEAT_HOLD_CPU_LATENCY", "no")]);
}

#[test]
fn one_descriptor_holds_the_latency_from_the_first_opening_to_the_last_closing() {
    let test = "one_descriptor_holds_the_latency_from_the_first_opening_to_the_last_closing";
    played(
        test,
        || {
            let device = device();
            let first = open(precautions());
            assert_eq!((descriptors(&device), wish()), (1, 0));
            let second = open(precautions());
            let without = open(Precautions::NONE);
            let clone = first.clone();
            assert_eq!(descriptors(&device), 1);
            drop(first);
            drop(second);
            assert_eq!((descriptors(&device), wish()), (1, 0));
            drop(clone);
            assert_eq!((descriptors(&device), wish()), (0, WITHDRAWN));
            assert!(!Taken::now().cpu_latency);
            drop(without);
            let _again = open(precautions());
            assert_eq!((descriptors(&device), wish()), (1, 0));
        },
        &[],
    );
}

#[test]
fn a_machine_without_the_device_has_a_status_and_no_failure() {
    let test = "a_machine_without_the_device_has_a_status_and_no_failure";
    let said = played(
        test,
        || {
            fs::remove_file(device()).expect("the file");
            let _context = open(precautions());
            let taken = Taken::now();
            assert!(taken.memory && !taken.cpu_latency);
            assert!(!device().exists());
        },
        &[],
    );
    if let Some(said) = said {
        assert_eq!(lines(&said, "latency"), 0, "{said:?}");
    }
}

#[test]
fn a_forked_child_holds_a_wish_of_its_own_and_ends_none_of_its_parent() {
    let test = "a_forked_child_holds_a_wish_of_its_own_and_ends_none_of_its_parent";
    played(
        test,
        || {
            let context = open(precautions());
            let own = device().with_file_name("own");
            fs::write(&own, "").expect("a file");
            let (mut reader, writer) = std::io::pipe().expect("a pipe");
            // SAFETY: the child uses what a forked child may use of this library, and ends.
            let child = unsafe { libc::fork() };
            if child == 0 {
                drop(writer);
                // It has its parent's context, but neither its locks nor its wish.
                assert_eq!(locked(), 0);
                assert!(!Taken::now().cpu_latency);
                let mine = open(Precautions { cpu_latency: Some(own.clone()), ..precautions() });
                assert!(locked() > 0 && Taken::now().cpu_latency);
                assert_eq!((descriptors(&own), wish()), (1, 0));
                drop(mine);
                drop(context);
                assert_eq!((descriptors(&own), descriptors(&device()), wish()), (0, 0, 0));
                let mut end = [0];
                std::io::Read::read(&mut reader, &mut end).expect("the parent's end of it");
                // SAFETY: ends the child at once.
                unsafe { libc::_exit(0) };
            }
            drop(reader);
            assert_eq!((descriptors(&device()), wish()), (1, 0));
            drop(writer);
            let mut status = -1;
            // SAFETY: `status` is valid for writing.
            assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
            assert_eq!(status, 0);
            assert_eq!((descriptors(&device()), wish()), (1, 0), "a child's end ends it not");
            // A child that does nothing does not keep it either.
            // SAFETY: the child only waits, and is killed.
            let child = unsafe { libc::fork() };
            if child == 0 {
                loop {
                    // SAFETY: the call waits for a signal.
                    unsafe { libc::pause() };
                }
            }
            drop(context);
            assert_eq!((descriptors(&device()), wish()), (0, WITHDRAWN));
            // SAFETY: the child is this process's, and not yet waited for.
            unsafe {
                libc::kill(child, libc::SIGKILL);
                libc::waitpid(child, &raw mut status, 0);
            }
        },
        &[],
    );
}

#[test]
fn the_kernel_knows_the_wish() {
    let test = "the_kernel_knows_the_wish";
    let real = Path::new("/dev/cpu_dma_latency");
    if !real.exists() {
        not_run(Need::Machine, "there is no /dev/cpu_dma_latency");
        return;
    }
    played(
        test,
        || {
            let real = Path::new("/dev/cpu_dma_latency");
            let context = open(Precautions::default());
            assert_eq!(descriptors(real), 1);
            let mut least = [0; 4];
            let mut device = fs::File::open(real).expect("the device");
            std::io::Read::read_exact(&mut device, &mut least).expect("the least that is wanted");
            assert_eq!(i32::from_ne_bytes(least), 0);
            drop(device);
            drop(context);
            assert_eq!(descriptors(real), 0);
        },
        &[],
    );
}
