//! Huge pages for a test: free ones of the pool, or, for root, as many more as it needs, given back after.

#![expect(clippy::disallowed_methods, reason = "a test of huge pages needs a pool of the running machine")]

use std::fs;
use std::io;
use std::path::PathBuf;

use planish_skip::{Turn, skip};

/// Pages that the test may use. Whoever holds it is alone with the pools among the tests of this machine.
pub struct Pool {
    folder: PathBuf,
    raised: u64,
    _turn: Turn,
}

/// Keeps the other tests off the pools, so that they do not count each other's pages; or a word why not.
pub fn turn(test: &str) -> Option<Turn> {
    Turn::wait().map_err(|reason| skip(test, reason)).ok()
}

impl Pool {
    /// Free pages now.
    pub fn free(&self) -> u64 {
        self.read("free_hugepages").expect("the pool was read when it was borrowed")
    }

    /// Pages that are free and set aside for some mapping: nobody else gets them.
    pub fn set_aside(&self) -> u64 {
        self.read("resv_hugepages").expect("the pool was read when it was borrowed")
    }

    fn read(&self, name: &str) -> io::Result<u64> {
        let text = fs::read_to_string(self.folder.join(name))?;
        text.trim().parse().map_err(io::Error::other)
    }

    /// Changes the size of the pool by `pages`, by our own need only: others may have changed it since.
    fn resize(&self, change: i64) -> io::Result<u64> {
        let before = self.read("nr_hugepages")?;
        fs::write(self.folder.join("nr_hugepages"), before.saturating_add_signed(change).to_string())?;
        Ok(self.read("nr_hugepages")?.abs_diff(before))
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        if self.raised > 0 {
            let given_back =
                self.resize(-(self.raised as i64)).expect("a pool that was raised can be lowered");
            assert_eq!(given_back, self.raised, "every page that was taken is given back");
        }
    }
}

/// At least `pages` free pages of `page_bytes`, or a word why not.
pub fn borrow(test: &str, page_bytes: usize, pages: u64) -> Option<Pool> {
    let turn = turn(test)?;
    let folder = format!("/sys/kernel/mm/hugepages/hugepages-{}kB", page_bytes / 1024).into();
    let mut pool = Pool { folder, raised: 0, _turn: turn };
    let missing = match pool.read("free_hugepages") {
        Ok(free) => pages.saturating_sub(free),
        Err(error) => {
            skip(test, format!("no pool: {error}"));
            return None;
        }
    };
    if missing > 0 {
        match pool.resize(missing as i64) {
            Ok(granted) => pool.raised = granted,
            Err(error) => {
                skip(test, format!("{missing} more pages of {page_bytes} bytes: {error}"));
                return None;
            }
        }
        if pool.raised < missing {
            skip(test, format!("{missing} more pages of {page_bytes} bytes: granted {}", pool.raised));
            return None;
        }
    }
    Some(pool)
}
