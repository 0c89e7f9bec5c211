//! Counting of results, and the list of what was skipped and why.
//!
//! A missing capability is skipped aloud: the test prints `SKIP <test>: <reason>` and appends the
//! same line to the file that `PLANISH_SKIPS` names, because cargo hides what a passing test prints.

use anyhow::{Context, Result};
use std::fs;
use std::path::Path;

/// Results of many tests.
#[derive(Debug, Default)]
pub struct Tally {
    /// Held.
    pub passed_count: usize,
    /// Did not hold.
    pub failed_count: usize,
    /// One line for each that could not be asked here.
    pub skips: Vec<String>,
}

impl Tally {
    /// Adds the results of another run.
    pub fn add(&mut self, other: Tally) {
        self.passed_count += other.passed_count;
        self.failed_count += other.failed_count;
        self.skips.extend(other.skips);
    }

    /// Adds what one `test result:` line of libtest says; other lines are ignored.
    pub fn add_libtest_line(&mut self, line: &str) {
        let Some(rest) = line.strip_prefix("test result: ") else { return };
        let count = |word: &str| -> usize {
            let before = rest.split(word).next().unwrap_or_default();
            before.split_whitespace().next_back().and_then(|text| text.parse().ok()).unwrap_or(0)
        };
        self.passed_count += count(" passed");
        self.failed_count += count(" failed");
        for _ in 0..count(" ignored") {
            self.skips.push("SKIP a test marked #[ignore]".into());
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

    /// Prints the skips and then, alone on the last line, the sum.
    pub fn print(&mut self) {
        self.skips.sort();
        self.skips.iter().for_each(|skip| println!("{skip}"));
        println!("{} passed, {} failed, {} skipped", self.passed_count, self.failed_count, self.skips.len());
    }
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
        assert_eq!((tally.passed_count, tally.failed_count, tally.skips.len()), (13, 2, 1));
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
