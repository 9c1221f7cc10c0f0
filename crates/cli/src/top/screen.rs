//! The terminal: keys and sizes go to the view, and its lines to the screen.

use super::keys::Keys;
use super::view::{ScreenLine, Style, Top};
use super::{LOOK_AGAIN, TopArguments};
use crate::exit::Exit;
use crate::stat::{interrupted, wanted};
use anyhow::Context;
use crossterm::cursor::{Hide, MoveTo, Show};
use crossterm::style::{Attribute, Print, SetAttribute};
use crossterm::terminal::{
    Clear, ClearType, DisableLineWrap, EnableLineWrap, EnterAlternateScreen, LeaveAlternateScreen,
    disable_raw_mode, enable_raw_mode,
};
use crossterm::{execute, queue};
use onbeat::clock::{MonoTime, timeout};
use onbeat_run::inspect::Seen;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::termios::tcgetwinsize;
use std::io::{Write, stdin, stdout};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};

/// The size of a terminal that does not tell.
const USUAL: (usize, usize) = (80, 24);
/// So much of what is pressed is read at once.
const PRESSED_OCTETS: usize = 1_024;

/// Shows the view until it is left, by a key or a signal.
pub(super) fn interact(arguments: &TopArguments, mut top: Top) -> anyhow::Result<Exit> {
    let interrupted = interrupted()?;
    let looker = Looker::new(arguments)?;
    let mut screen = Screen::open().context("the terminal")?;
    let (mut before, mut left) = (None, arguments.count);
    let (mut due, mut is_looking) = (MonoTime::now(), false);
    let (mut keys, mut at) = (Keys::default(), None);
    while !interrupted.load(Ordering::Relaxed) {
        let (columns, lines) = size();
        if at.replace((columns, lines)) != Some((columns, lines)) {
            top.resize(columns, lines);
            screen.shown.clear();
        }
        screen.show(&top.lines())?;
        if left == Some(0) {
            break;
        }
        if !top.is_paused() && !is_looking && MonoTime::now() >= due {
            due = MonoTime::now() + arguments.interval;
            is_looking = looker.ask.send(()).is_ok();
        }
        let Some(pressed) = pressed().context("the terminal")? else { break };
        for wanted in keys.pressed(&pressed) {
            if !top.press(wanted) {
                return Ok(Exit::Fine);
            }
        }
        if let Some((now, seen)) = looker.answer()? {
            is_looking = false;
            let elapsed = before.replace(now).map(|before| now - before);
            top.update(elapsed, seen);
            left = left.map(|left| left - u64::from(elapsed.is_some()));
        }
    }
    Ok(Exit::Fine)
}

/// Columns and lines of the terminal.
fn size() -> (usize, usize) {
    let known = tcgetwinsize(stdout()).map(|size| (size.ws_col.into(), size.ws_row.into()));
    known.ok().filter(|(columns, lines)| *columns > 0 && *lines > 0).unwrap_or(USUAL)
}

/// What has been pressed within a moment; none if the terminal has gone.
fn pressed() -> rustix::io::Result<Option<Vec<u8>>> {
    let input = stdin();
    let mut ready = [PollFd::new(&input, PollFlags::IN)];
    match poll(&mut ready, timeout(LOOK_AGAIN).as_ref()) {
        Ok(0) | Err(Errno::INTR) => return Ok(Some(Vec::new())),
        other => other?,
    };
    let mut octets = vec![0; PRESSED_OCTETS];
    match rustix::io::read(&input, &mut octets) {
        Ok(0) | Err(Errno::IO) => Ok(None),
        Err(Errno::INTR) => Ok(Some(Vec::new())),
        count => {
            octets.truncate(count?);
            Ok(Some(octets))
        }
    }
}

type Look = anyhow::Result<(MonoTime, Seen)>;

/// Looks at the programs in a thread of its own: where a process has the kernel wait, keys still
/// do what they should.
struct Looker {
    ask: SyncSender<()>,
    looks: Receiver<Look>,
}

impl Looker {
    fn new(arguments: &TopArguments) -> anyhow::Result<Self> {
        let (ask, asked) = sync_channel(1);
        let (tell, looks) = sync_channel(1);
        let (pid, channel) = (arguments.pid, arguments.channel.clone());
        std::thread::Builder::new().spawn(move || {
            while let Ok(()) = asked.recv() {
                let now = MonoTime::now();
                let look = wanted(pid, channel.as_deref()).map(|seen| (now, seen));
                if tell.send(look).is_err() {
                    break;
                }
            }
        })?;
        Ok(Self { ask, looks })
    }

    /// What it saw, if it has come back.
    fn answer(&self) -> anyhow::Result<Option<(MonoTime, Seen)>> {
        match self.looks.try_recv() {
            Ok(look) => look.map(Some),
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => anyhow::bail!("nothing looks at /proc any more"),
        }
    }
}

/// The terminal while it is ours; it is as before when this is dropped.
struct Screen {
    /// The lines that are there.
    shown: Vec<ScreenLine>,
}

impl Screen {
    fn open() -> std::io::Result<Self> {
        enable_raw_mode()?;
        let screen = Self { shown: Vec::new() };
        execute!(stdout(), EnterAlternateScreen, Hide, DisableLineWrap)?;
        Ok(screen)
    }

    /// Writes the lines that have changed; all after a change of size, which clears them.
    fn show(&mut self, lines: &[ScreenLine]) -> anyhow::Result<()> {
        self.write(lines).context("the terminal")
    }

    fn write(&mut self, lines: &[ScreenLine]) -> std::io::Result<()> {
        let mut output = Vec::new();
        if self.shown.is_empty() {
            queue!(output, Clear(ClearType::All))?;
        }
        for (at, line) in lines.iter().enumerate() {
            if self.shown.get(at) == Some(line) {
                continue;
            }
            queue!(output, MoveTo(0, at as u16), Clear(ClearType::CurrentLine))?;
            match line.style {
                Style::Plain => queue!(output, Print(&line.text))?,
                Style::Heading | Style::Bold => {
                    let is_heading = line.style == Style::Heading;
                    let look = if is_heading { Attribute::Reverse } else { Attribute::Bold };
                    queue!(output, SetAttribute(look), Print(&line.text))?;
                    queue!(output, SetAttribute(Attribute::Reset))?;
                }
            }
        }
        if lines.len() < self.shown.len() {
            queue!(output, MoveTo(0, lines.len() as u16), Clear(ClearType::FromCursorDown))?;
        }
        self.shown = lines.to_vec();
        let mut terminal = stdout().lock();
        terminal.write_all(&output)?;
        terminal.flush()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // Whatever fails here, there is nothing else to try.
        let _ = execute!(stdout(), EnableLineWrap, Show, LeaveAlternateScreen);
        let _ = disable_raw_mode();
    }
}
