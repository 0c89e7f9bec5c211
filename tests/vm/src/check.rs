//! One line per check, in a form that the host side can count.

use std::io::Write;

/// What is concluded from one check.
pub enum Outcome {
    /// It holds; the text says what was seen.
    Ok(String),
    /// It cannot be asked of this guest; the text says why.
    Skip(String),
}

/// Prints results as they come, so that a guest that hangs still tells how far it got.
#[derive(Default)]
pub struct Report {
    failed_count: usize,
}

impl Report {
    /// Prints the opening line. What kills the kernel after it is ours: the host side does not boot that guest again.
    pub fn start() -> Self {
        println!("PLANISH-START");
        drain();
        Self::default()
    }

    /// Runs one check and prints its line.
    pub fn check(&mut self, name: &str, run: impl FnOnce() -> anyhow::Result<Outcome>) {
        match run() {
            Ok(Outcome::Ok(detail)) => self.line(name, "ok", &detail),
            Ok(Outcome::Skip(reason)) => self.line(name, "skip", &reason),
            Err(error) => self.fail(name, &format!("{error:#}")),
        }
    }

    /// Prints the line of a check that failed.
    pub fn fail(&mut self, name: &str, detail: &str) {
        self.failed_count += 1;
        self.line(name, "fail", detail);
    }

    /// Prints the closing line and returns how many checks failed.
    pub fn finish(self) -> usize {
        println!("PLANISH-DONE {}", self.failed_count);
        drain();
        self.failed_count
    }

    fn line(&self, name: &str, verdict: &str, detail: &str) {
        let detail = detail.trim().replace('\n', " | ");
        println!("PLANISH-RESULT {name} {verdict} {detail}");
    }
}

/// Waits until the port has sent all lines: a kernel that dies and the exit device stop the machine at once.
fn drain() {
    let _ = std::io::stdout().flush();
    let _ = rustix::termios::tcdrain(std::io::stdout());
}
