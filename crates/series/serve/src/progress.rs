//! How far a load has come, for people: one line that is written over, on a terminal alone.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

/// A load that is done before this is shown nothing of.
const QUIET: Duration = Duration::from_secs(1);
/// How often the line is written over.
const PERIOD: Duration = Duration::from_millis(200);
/// Goes back to the beginning of the line, and clears it.
const OVER: &str = "\r\x1b[K";

/// The progress of one file.
#[derive(Debug)]
pub(crate) struct Progress<W: Write> {
    out: Option<W>,
    name: String,
    bytes_all: u64,
    began: Instant,
    shown: Option<Instant>,
}

impl Progress<io::Stderr> {
    /// On standard error, where that is a terminal.
    pub(crate) fn on_terminal(name: &str, bytes_all: u64) -> Self {
        let terminal = Some(io::stderr()).filter(IsTerminal::is_terminal);
        Self::on(terminal, name, bytes_all)
    }
}

impl<W: Write> Progress<W> {
    fn on(out: Option<W>, name: &str, bytes_all: u64) -> Self {
        Self { out, name: name.to_owned(), bytes_all, began: Instant::now(), shown: None }
    }

    /// So many bytes were read, and so many rows are in the log.
    pub(crate) fn show(&mut self, bytes: u64, rows: u64) {
        self.show_after(self.began.elapsed(), bytes, rows);
    }

    fn show_after(&mut self, time: Duration, bytes: u64, rows: u64) {
        let is_due = self.shown.is_none_or(|shown| shown.elapsed() >= PERIOD);
        if let Some(out) = &mut self.out
            && time >= QUIET
            && is_due
        {
            let text = text(&self.name, time, (bytes, self.bytes_all), rows);
            // Where nobody looks, nothing is to be done.
            let _ = write!(out, "{OVER}{text}").and_then(|()| out.flush());
            self.shown = Some(Instant::now());
        }
    }
}

impl<W: Write> Drop for Progress<W> {
    /// What is said next has the line to itself.
    fn drop(&mut self) {
        if let (Some(out), Some(_)) = (&mut self.out, self.shown) {
            let _ = write!(out, "{OVER}").and_then(|()| out.flush());
        }
    }
}

fn text(name: &str, time: Duration, (bytes, all): (u64, u64), rows: u64) -> String {
    let seconds = time.as_secs_f64();
    let rate = rows as f64 / seconds / 1e6;
    let millions = rows as f64 / 1e6;
    let part = format!("{name}: {millions:.1}M rows, {rate:.2}M rows/s");
    // A pipe has no length, and a file may grow.
    if bytes == 0 || bytes > all {
        return part;
    }
    let (percent, left) = (100.0 * bytes as f64 / all as f64, seconds * (all - bytes) as f64 / bytes as f64);
    format!("{part}, {percent:.0} %, {} left", clock(left))
}

/// Seconds as people say them.
fn clock(seconds: f64) -> String {
    let seconds = seconds.round() as u64;
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{}:{:02} min", seconds / 60, seconds % 60),
        _ => format!("{}:{:02} h", seconds / 3600, seconds / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_how_far_it_is_and_how_long_it_takes_yet() {
        let second = Duration::from_secs(1);
        assert_eq!(
            text("a", 10 * second, (250, 1000), 20_000_000),
            "a: 20.0M rows, 2.00M rows/s, 25 %, 30 s left"
        );
        assert_eq!(
            text("a", 60 * second, (1, 3), 6_000_000),
            "a: 6.0M rows, 0.10M rows/s, 33 %, 2:00 min left"
        );
        assert_eq!(text("a", 3600 * second, (1, 3), 0), "a: 0.0M rows, 0.00M rows/s, 33 %, 2:00 h left");
        // A pipe.
        assert_eq!(text("a", second, (5, 0), 1_000_000), "a: 1.0M rows, 1.00M rows/s");
    }

    #[test]
    fn short_loads_and_those_without_a_terminal_are_not_shown_and_others_leave_the_line_empty() {
        let mut bytes = Vec::new();
        let mut progress = Progress::on(Some(&mut bytes), "a", 10);
        progress.show_after(QUIET / 2, 1, 1);
        drop(progress);
        assert!(bytes.is_empty());
        let mut progress = Progress::on(Some(&mut bytes), "a", 10);
        for _ in 0..100 {
            progress.show_after(QUIET, 5, 1_000_000);
        }
        drop(progress);
        let shown = String::from_utf8(bytes).unwrap();
        let line = format!("{OVER}a: 1.0M rows, 1.00M rows/s, 50 %, 1 s left");
        assert!(shown.starts_with(&line) && shown.ends_with(OVER), "{shown:?}");
        // As often as people can read.
        assert!(shown.matches("rows/s").count() < 100, "{shown:?}");
        Progress::<Vec<u8>>::on(None, "a", 10).show_after(QUIET, 5, 1);
    }
}
