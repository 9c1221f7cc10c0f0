//! A ptp4l that answers management messages and has one other clock beside it: the lower priority1
//! leads. It keeps no time, so it can lead and follow where no clock may be set.

use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// It answers until this goes.
pub struct Ptp4l {
    /// The values of its priority1, the present one last.
    pub priorities: Arc<Mutex<Vec<u8>>>,
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Ptp4l {
    /// On the machine below a root, with this priority1, beside a clock of another.
    pub fn start(root: &Path, priority: u8, other: u8, slave_only: bool) -> Self {
        let path = root.join("var/run/ptp4l");
        std::fs::create_dir_all(path.parent().expect("above")).expect("made");
        let _ = std::fs::remove_file(&path);
        let socket = UnixDatagram::bind(path).expect("bound");
        socket.set_read_timeout(Some(Duration::from_millis(10))).expect("a time");
        let priorities = Arc::new(Mutex::new(vec![priority]));
        let ends = Arc::new(AtomicBool::new(false));
        let (all, end) = (Arc::clone(&priorities), Arc::clone(&ends));
        let thread = std::thread::spawn(move || {
            let mut octets = [0; 1_500];
            while !end.load(Ordering::Relaxed) {
                let Ok((length, from)) = socket.recv_from(&mut octets) else { continue };
                let mut all = all.lock().expect("unharmed");
                if let Some(answer) = answer(&octets[..length], &mut all, other, slave_only) {
                    let _ = socket.send_to_addr(&answer, &from); // who asked may have gone
                }
            }
        });
        Self { priorities, ends, thread: Some(thread) }
    }

    /// The values of its priority1 so far.
    pub fn all(&self) -> Vec<u8> {
        self.priorities.lock().expect("unharmed").clone()
    }
}

impl Drop for Ptp4l {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        let _ = self.thread.take().expect("it runs").join();
    }
}

/// The answer to a request of gPTP.
fn answer(request: &[u8], all: &mut Vec<u8>, other: u8, slave_only: bool) -> Option<Vec<u8>> {
    if request[0] >> 4 != 1 {
        return None;
    }
    let id = u16::from_be_bytes([request[52], request[53]]);
    if id == 0x2005 && request[46] & 0xf == 1 {
        all.push(request[54]);
    }
    let priority = *all.last().expect("one");
    let leads = priority < other && !slave_only;
    let mut data = vec![0; 50];
    match id {
        0x0002 => data.truncate(1),
        0x2000 => {
            (data[0], data[3], data[4], data[5]) = (u8::from(slave_only) << 1, 1, priority, 248)
        }
        0x2001 | 0x2003 => {}
        0x2002 => data[18] = priority.min(other),
        0x2004 => (data[9], data[10], data[22], data[23]) = (1, if leads { 6 } else { 9 }, 0xfd, 2),
        0x2005 => data = vec![priority, 0],
        0xc000 => data[41] = u8::from(!leads),
        _ => return Some(error(request)),
    }
    let mut message = request[..54].to_vec();
    message[46] = 2;
    message[50..52].copy_from_slice(&(2 + data.len() as u16).to_be_bytes());
    message.extend(data);
    Some(message)
}

/// That it does not know what is asked for.
fn error(request: &[u8]) -> Vec<u8> {
    let mut message = request[..54].to_vec();
    (message[46], message[49]) = (2, 2);
    message
}
