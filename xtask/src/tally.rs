//! Counting of results, and the list of what was skipped and why.
//!
//! A missing capability is skipped aloud: the test prints `SKIP <test>: <reason>` and appends the
//! same line to the file that `PLANISH_SKIPS` names, because cargo hides what a passing test prints.

use anyhow::{Context, Result};
use std::fs;
use std::io::Write;
use std::path::Path;

/// Results of many tests.
#[derive(Debug, Default)]
pub struct Tally {
    /// Held.
    pub passed_count: usize,
    /// Did not hold.
    pub failed_count: usize,
    /// What did not hold, and the first lines of what it said: told again at the end, where a log is read first.
    pub failures: Vec<String>,
    /// One line for each that could not be asked here.
    pub skips: Vec<String>,
    /// How many more lines of the last failure are kept.
    pub failure_room: usize,
}

/// What is told again of a failure: its panic, and a difference of a few lines. The log above has the rest.
const FAILURE_LINES: usize = 12;
const FAILURE_COLUMNS: usize = 400;

impl Tally {
    /// Adds the results of another run.
    pub fn add(&mut self, other: Tally) {
        self.passed_count += other.passed_count;
        self.failed_count += other.failed_count;
        self.failures.extend(other.failures);
        self.skips.extend(other.skips);
    }

    /// Counts a failure and keeps what is to be told of it.
    pub fn fail(&mut self, told: impl Into<String>) {
        self.failed_count += 1;
        self.failures.push(told.into());
    }

    /// Adds what one line of libtest says: the `test result:` of a binary, what a test that failed had printed, or a
    /// test that is marked `#[ignore]`, which is a skip like any other. Other lines are passed over.
    pub fn add_libtest_line(&mut self, line: &str) {
        self.skips.extend(ignored(line));
        self.hear_failure(line);
        let Some(rest) = line.strip_prefix("test result: ") else { return };
        let count = |word: &str| -> usize {
            let before = rest.split(word).next().unwrap_or_default();
            before.split_whitespace().next_back().and_then(|text| text.parse().ok()).unwrap_or(0)
        };
        self.passed_count += count(" passed");
        self.failed_count += count(" failed");
    }

    /// Keeps the block `---- NAME stdout ----` of a test that failed, to the next one, [`FAILURE_LINES`] at most.
    fn hear_failure(&mut self, line: &str) {
        if let Some(name) = line.strip_prefix("---- ").and_then(|rest| rest.strip_suffix(" stdout ----")) {
            self.failures.push(name.to_owned());
            self.failure_room = FAILURE_LINES;
        } else if line == "failures:" || line.starts_with("test result: ") {
            self.failure_room = 0;
        } else if self.failure_room > 0 && !line.trim().is_empty() {
            self.failure_room -= 1;
            if let Some(told) = self.failures.last_mut() {
                told.push_str("\n    ");
                told.extend(line.chars().take(FAILURE_COLUMNS));
            }
        }
    }

    /// Adds the lines that tests appended to the skip file.
    pub fn add_skip_file(&mut self, file: &Path) -> Result<()> {
        if file.exists() {
            let text = fs::read_to_string(file).with_context(|| format!("read {}", file.display()))?;
            self.skips.extend(text.lines().filter(|line| line.starts_with("SKIP ")).map(str::to_owned));
        }
        Ok(())
    }

    /// Prints the skips, the failures and then, alone on the last line, the sum. The exit code tells the rest where
    /// nobody reads.
    pub fn print(&mut self) {
        self.skips.sort();
        let mut out = std::io::stdout();
        let listed = self
            .skips
            .iter()
            .try_for_each(|skip| writeln!(out, "{skip}"))
            .and_then(|()| self.failures.iter().try_for_each(|told| writeln!(out, "FAILED {told}")));
        let (passed, failed) = (self.passed_count, self.failed_count);
        let _ = listed
            .and_then(|()| writeln!(out, "{passed} passed, {failed} failed, {} skipped", self.skips.len()));
    }
}

/// `SKIP <test>: <reason>` of a line `test NAME ... ignored, REASON`.
fn ignored(line: &str) -> Option<String> {
    let (name, end) = line.strip_prefix("test ")?.rsplit_once(" ... ignored")?;
    let reason = match end.strip_prefix(", ") {
        Some(reason) if !reason.trim().is_empty() => reason,
        _ if end.is_empty() => "marked #[ignore], without a reason",
        _ => return None,
    };
    Some(format!("SKIP {name}: {reason}"))
}

#[cfg(test)]
mod tests {
    use super::Tally;

    #[test]
    fn sums_over_binaries() {
        let mut tally = Tally::default();
        for line in [
            "running 3 tests",
            "test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s",
            "test result: FAILED. 10 passed; 2 failed; 1 ignored; 0 measured; 0 filtered out; finished in 1s",
        ] {
            tally.add_libtest_line(line);
        }
        assert_eq!((tally.passed_count, tally.failed_count, tally.skips.len()), (13, 2, 0));
    }

    #[test]
    fn a_failure_is_told_again_with_what_it_said() {
        let mut tally = Tally::default();
        for line in [
            "test pool::grows ... FAILED",
            "",
            "failures:",
            "",
            "---- pool::grows stdout ----",
            "",
            "thread 'pool::grows' panicked at pool.rs:7:5:",
            "nine pages",
            "---- src/lib.rs - order (line 12) stdout ----",
            "error[E0308]: mismatched types",
            "",
            "failures:",
            "    pool::grows",
            "test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1s",
            "noise of the next binary",
        ] {
            tally.add_libtest_line(line);
        }
        let wanted = [
            "pool::grows\n    thread 'pool::grows' panicked at pool.rs:7:5:\n    nine pages",
            "src/lib.rs - order (line 12)\n    error[E0308]: mismatched types",
        ];
        assert_eq!((tally.failed_count, tally.failures), (2, wanted.map(str::to_owned).to_vec()));
    }

    #[test]
    fn an_ignored_test_is_a_skip_with_its_name_and_reason() {
        let mut tally = Tally::default();
        for line in [
            "test kill::killed_ingest ... ignored, takes an hour",
            "test pool::grows ... ignored",
            "test src/lib.rs - order (line 12) ... ignored",
            "test tally::a_test_that_is_ignored ... ok",
            "test result: ok. 1 passed; 0 failed; 3 ignored; 0 measured; 0 filtered out; finished in 0.00s",
        ] {
            tally.add_libtest_line(line);
        }
        let none = "marked #[ignore], without a reason";
        let wanted = [
            "SKIP kill::killed_ingest: takes an hour".to_owned(),
            format!("SKIP pool::grows: {none}"),
            format!("SKIP src/lib.rs - order (line 12): {none}"),
        ];
        assert_eq!(tally.skips, wanted);
    }

    #[test]
    fn skip_file_lists_only_skips() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "SKIP a: no pool\nnoise\nSKIP b: no PMU\n").unwrap();
        let mut tally = Tally::default();
        tally.add_skip_file(file.path()).unwrap();
        assert_eq!(tally.skips, ["SKIP a: no pool", "SKIP b: no PMU"]);
    }
}
