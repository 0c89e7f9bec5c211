//! What the program says on its standard error.

use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Says a line.
pub(crate) fn tell(text: &str) {
    // Where nobody listens, nothing is to be done.
    let _ = writeln!(io::stderr(), "planish-series: {text}");
}

/// Says so many lines in a period, and how many others there were: what strangers bring about fills no disk.
#[derive(Debug)]
pub(crate) struct Seldom {
    lines_max: u32,
    period: Duration,
    now: Mutex<Now>,
}

#[derive(Debug)]
struct Now {
    since: Instant,
    said: u32,
    unsaid: u64,
}

impl Seldom {
    pub(crate) fn new(lines_max: u32, period: Duration) -> Self {
        Self { lines_max, period, now: Mutex::new(Now { since: Instant::now(), said: 0, unsaid: 0 }) }
    }

    /// Says a line to `tell`, unless there were too many.
    pub(crate) fn tell(&self, text: &str, tell: impl FnOnce(&str)) {
        let mut now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        if now.since.elapsed() >= self.period {
            (now.since, now.said) = (Instant::now(), 0);
        }
        if now.said >= self.lines_max {
            now.unsaid += 1;
            return;
        }
        now.said += 1;
        match std::mem::take(&mut now.unsaid) {
            0 => tell(text),
            unsaid => tell(&format!("{text} (and {unsaid} lines before it that were not said)")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_beyond_the_limit_are_counted_and_told_with_the_next_one() {
        let seldom = Seldom::new(2, Duration::from_millis(40));
        let mut said = Vec::new();
        for line in ["a", "b", "c", "d"] {
            seldom.tell(line, |text| said.push(text.to_owned()));
        }
        std::thread::sleep(Duration::from_millis(50));
        seldom.tell("e", |text| said.push(text.to_owned()));
        assert_eq!(said, ["a", "b", "e (and 2 lines before it that were not said)"]);
    }
}
