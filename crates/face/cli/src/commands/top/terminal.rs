//! The terminal while a screen is on it: raw, on its alternate page, and put back however the command ends.
//!
//! Of our own, on termios and a few sequences that every terminal since the VT100 knows: see docs/top.md for what a
//! library would have added to the program.

use std::io::{self, IsTerminal, Write};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};

/// How the terminal was, while it is ours.
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);

/// The alternate page, without a cursor; and back.
const ENTER: &str = "\x1b[?1049h\x1b[?25l";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";

/// A terminal that is ours until this is dropped.
#[derive(Debug)]
pub(super) struct Terminal;

/// Whether a screen can be shown: keys come from a terminal, and it is one that takes sequences.
pub(super) fn is_one() -> bool {
    let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
    io::stdin().is_terminal() && io::stdout().is_terminal() && !dumb
}

impl Terminal {
    /// Takes the terminal.
    pub fn enter() -> io::Result<Self> {
        let stdin = io::stdin();
        let before = tcgetattr(&stdin)?;
        let mut raw = before.clone();
        raw.make_raw();
        *BEFORE.lock().unwrap_or_else(PoisonError::into_inner) = Some(before);
        // From here on it is put back, whatever fails.
        let terminal = Self;
        tcsetattr(&stdin, OptionalActions::Flush, &raw)?;
        write(ENTER)?;
        Ok(terminal)
    }

    /// Columns and lines; what most have where it does not say.
    pub fn size(&self) -> (usize, usize) {
        match tcgetwinsize(io::stdout()) {
            Ok(size) if size.ws_col > 0 && size.ws_row > 0 => (size.ws_col.into(), size.ws_row.into()),
            _ => (80, 24),
        }
    }

    /// Shows what was painted.
    pub fn show(&self, painted: &str) -> io::Result<()> {
        write(painted)
    }

    /// What is pressed within `wait`; nothing when the time is over or a signal came. A terminal that is gone is an
    /// error.
    pub fn pressed(&self, wait: Duration) -> io::Result<Vec<u8>> {
        let stdin = io::stdin();
        let mut fds = [PollFd::new(&stdin, PollFlags::IN)];
        let wait = Timespec::try_from(wait).unwrap_or(Timespec { tv_sec: 1, tv_nsec: 0 });
        match poll(&mut fds, Some(&wait)) {
            Ok(0) | Err(Errno::INTR) => return Ok(Vec::new()),
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        let mut bytes = vec![0; 256];
        match rustix::io::read(&stdin, &mut bytes) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(length) => {
                bytes.truncate(length);
                Ok(bytes)
            }
            Err(Errno::INTR | Errno::AGAIN) => Ok(Vec::new()),
            Err(error) => Err(error.into()),
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        restore();
    }
}

/// Puts the terminal back, if it is ours: before a panic is told too, or its line would vanish with the page.
pub(crate) fn restore() {
    let before = BEFORE.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(before) = before {
        // Nobody is left to tell when the terminal itself is gone.
        let _ = write(LEAVE);
        let _ = tcsetattr(io::stdin(), OptionalActions::Flush, &before);
    }
}

fn write(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}
