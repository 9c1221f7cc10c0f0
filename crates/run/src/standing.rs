//! Where the threads of a program stand: what a hang is explained with.

use std::path::Path;

/// The most threads that are told of.
const MOST: usize = 8;

/// The system calls in which programs wait, by their numbers on this machine.
const CALLS: [(libc::c_long, &str); 21] = [
    (libc::SYS_read, "read"),
    (libc::SYS_write, "write"),
    (libc::SYS_readv, "readv"),
    (libc::SYS_writev, "writev"),
    (libc::SYS_futex, "futex (a lock, a condition variable or pthread_join)"),
    (libc::SYS_nanosleep, "nanosleep (the machine's time)"),
    (libc::SYS_clock_nanosleep, "clock_nanosleep (the machine's time)"),
    (libc::SYS_ppoll, "ppoll"),
    (libc::SYS_pselect6, "pselect"),
    (libc::SYS_epoll_pwait, "epoll_wait"),
    (libc::SYS_recvfrom, "recv"),
    (libc::SYS_recvmsg, "recvmsg"),
    (libc::SYS_sendto, "send"),
    (libc::SYS_sendmsg, "sendmsg"),
    (libc::SYS_accept, "accept"),
    (libc::SYS_accept4, "accept"),
    (libc::SYS_connect, "connect"),
    (libc::SYS_wait4, "waitpid"),
    (libc::SYS_waitid, "waitid"),
    (libc::SYS_rt_sigtimedwait, "sigwait"),
    (libc::SYS_flock, "flock"),
];

/// The same of those that only older architectures have.
#[cfg(target_arch = "x86_64")]
const OLD_CALLS: [(libc::c_long, &str); 4] = [
    (libc::SYS_poll, "poll"),
    (libc::SYS_select, "select"),
    (libc::SYS_epoll_wait, "epoll_wait"),
    (libc::SYS_pause, "pause"),
];
#[cfg(not(target_arch = "x86_64"))]
const OLD_CALLS: [(libc::c_long, &str); 0] = [];

/// What each thread of a process does, in words; empty when it is gone or may not be asked. `waits`
/// tells by its number whether one waits for the coordinator.
pub(crate) fn of(process: u32, waits: impl Fn(u32) -> bool) -> String {
    let tasks = format!("/proc/{process}/task");
    let Ok(found) = Path::new(&tasks).read_dir() else { return String::new() };
    let mut threads: Vec<u32> =
        found.flatten().filter_map(|it| it.file_name().to_str()?.parse().ok()).collect();
    threads.sort_unstable();
    let file = |thread: u32, name: &str| {
        std::fs::read_to_string(format!("{tasks}/{thread}/{name}")).unwrap_or_default()
    };
    let shown = (1..).zip(&threads).take(MOST).filter_map(|(number, thread)| {
        let does = match waits(*thread) {
            true => "waits in a call of Onbeat".to_owned(),
            false => does(&file(*thread, "stat"), &file(*thread, "syscall"))?,
        };
        Some(format!("thread {number} `{}` {does}", file(*thread, "comm").trim()))
    });
    let mut shown: Vec<String> = shown.collect();
    if threads.len() > MOST {
        shown.push(format!("{} more", threads.len() - MOST));
    }
    shown.join("; ")
}

/// What a thread does, of its `stat` and `syscall` in `/proc`.
fn does(stat: &str, syscall: &str) -> Option<String> {
    // The name, in parentheses, may contain anything.
    let state = stat.rsplit_once(") ")?.1.chars().next()?;
    Some(match (state, syscall.split_whitespace().next()) {
        ('R', _) | (_, Some("running")) => "computes".to_owned(),
        ('T' | 't', _) => "is stopped".to_owned(),
        ('Z' | 'X', _) => "has ended".to_owned(),
        (_, Some(number)) => match number.parse::<libc::c_long>() {
            Ok(number) if number >= 0 => format!("waits in {}", name(number)),
            _ => "waits in the kernel, in no system call".to_owned(),
        },
        // Who may not trace it is not told.
        (_, None) => "waits in a system call".to_owned(),
    })
}

fn name(number: libc::c_long) -> String {
    let found = CALLS.iter().chain(&OLD_CALLS).find(|(call, _)| *call == number);
    found.map_or_else(|| format!("system call {number}"), |(_, name)| (*name).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_computes_waits_or_has_ended() {
        let stat = |state: &str| format!("7 (a) b) {state} 1 2 3");
        assert_eq!(does(&stat("R"), "running\n").unwrap(), "computes");
        let nap = format!("{} 0x1 0x2", libc::SYS_nanosleep);
        assert!(does(&stat("S"), &nap).unwrap().starts_with("waits in nanosleep"));
        assert_eq!(does(&stat("S"), "99999 0x1").unwrap(), "waits in system call 99999");
        let no_call = "waits in the kernel, in no system call";
        assert_eq!(does(&stat("S"), "-1 0x1 0x2").unwrap(), no_call);
        assert_eq!(does(&stat("S"), "").unwrap(), "waits in a system call");
        assert_eq!(does(&stat("Z"), "0 0").unwrap(), "has ended");
        assert_eq!(does("", ""), None);
    }

    #[test]
    fn this_process_has_threads_that_compute_and_wait() {
        let (stop, stopped) = std::sync::mpsc::channel::<()>();
        std::thread::scope(|scope| {
            scope.spawn(move || stopped.recv());
            // The other thread may take a moment until it waits.
            let waits = || of(std::process::id(), |_| false).contains("waits in futex");
            while !waits() {
                std::thread::yield_now();
            }
            assert!(of(std::process::id(), |_| false).contains("computes"));
            assert!(!of(std::process::id(), |_| true).contains("computes"));
            drop(stop);
        });
    }
}
