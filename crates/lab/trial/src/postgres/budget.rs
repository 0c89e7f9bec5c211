//! How much data and how much shared memory the servers get, so that all of them fit beside each other.

use crate::error::TrialError;

/// One unit of `--scale`: the rows of `pgbench_accounts`, as in pgbench.
pub(crate) const ROWS_PER_SCALE: u64 = 100_000;

/// Bytes of table and primary key for one unit of scale: 1,640 heap pages of 61 rows, 276 index pages.
const BYTES_PER_SCALE: u64 = (1_640 + 276) * 8192;

/// Shared buffers beyond the data, so that nothing is ever evicted.
const SLACK: f64 = 1.10;

/// Smallest shared buffers: catalogues and other tables must fit too.
const SHARED_BUFFERS_MIN: u64 = 128 << 20;

/// Scale of a long and of a quick run, where memory allows. The long one is the largest whose server still fits one
/// page of 1 GB, since few hosts have more than one to spare at run time; the quick one is made in a few seconds.
const SCALE_WANTED: [u64; 2] = [55, 24];

/// What the servers together may take, and what they get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Rows: `scale` x 100,000.
    pub scale: u64,
    /// `shared_buffers` of each server, in bytes.
    pub shared_buffers_bytes: u64,
    /// Servers that are resident together.
    pub servers: u64,
}

/// What the user asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wish {
    /// `--scale`.
    pub scale: Option<u64>,
    /// `--shared-buffers`.
    pub shared_buffers_bytes: Option<u64>,
    /// `--quick`.
    pub quick: bool,
}

impl Budget {
    /// The largest data set up to the usual one that leaves a quarter of memory free.
    ///
    /// # Errors
    /// What was asked for, or even the smallest data set, does not fit.
    pub fn new(wish: Wish, servers: u64, memory: u64, available: u64) -> Result<Self, TrialError> {
        let floor = memory / 4;
        let each = available.saturating_sub(floor) / servers;
        let fitting = (each as f64 / SLACK) as u64 / BYTES_PER_SCALE;
        let scale = wish.scale.unwrap_or_else(|| fitting.min(SCALE_WANTED[usize::from(wish.quick)]));
        let needed = ((scale * BYTES_PER_SCALE) as f64 * SLACK) as u64;
        let shared =
            wish.shared_buffers_bytes.unwrap_or(needed).max(SHARED_BUFFERS_MIN).next_multiple_of(8 << 20);
        if scale == 0 || shared > each {
            let gib = |bytes: u64| bytes as f64 / (1u64 << 30) as f64;
            return Err(TrialError::Refused {
                what: format!(
                    "{servers} servers of {:.2} GiB each do not fit: {:.1} GiB are available, of which a quarter of \
                     all memory ({:.1} GiB) stays free",
                    gib(shared),
                    gib(available),
                    gib(floor)
                ),
                cure: format!("try --scale {}, or {}", fitting.max(1), crate::kernel::memory_cure()),
            });
        }
        Ok(Self { scale, shared_buffers_bytes: shared, servers })
    }

    /// Rows of the table.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.scale * ROWS_PER_SCALE
    }

    /// Bytes of table and primary key: the working set.
    #[must_use]
    pub fn data_bytes(&self) -> u64 {
        self.scale * BYTES_PER_SCALE
    }

    /// Bytes on disk: one data set to copy from and one for each server, with their catalogues and logs.
    #[must_use]
    pub fn disk_bytes(&self) -> u64 {
        (self.data_bytes() + (128 << 20)) * (self.servers + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    #[test]
    fn a_large_machine_gets_the_usual_size() {
        let budget = Budget::new(Wish::default(), 5, 24 * GIB, 22 * GIB).expect("fits");
        assert_eq!(budget.scale, 55);
        assert!(
            budget.shared_buffers_bytes < GIB * 9 / 10,
            "with what the server adds it fits a page of 1 GB"
        );
        assert!(budget.shared_buffers_bytes > budget.data_bytes());
        assert!(22 * GIB - budget.servers * budget.shared_buffers_bytes >= 6 * GIB);
    }

    #[test]
    fn a_small_machine_gets_what_fits_and_a_tiny_one_is_refused() {
        let small = Budget::new(Wish::default(), 5, 4 * GIB, 2 * GIB).expect("fits");
        assert!(small.scale < 55 && small.shared_buffers_bytes * 5 <= GIB);
        let error = Budget::new(Wish::default(), 5, GIB, GIB / 2).expect_err("too small");
        assert!(error.to_string().contains("do not fit"), "{error}");
    }

    #[test]
    fn a_wish_that_does_not_fit_names_one_that_does() {
        let wish = Wish { scale: Some(5_000), ..Wish::default() };
        let error = Budget::new(wish, 5, 24 * GIB, 22 * GIB).expect_err("too large");
        assert!(error.hints()[0].contains("--scale "), "{:?}", error.hints());
    }
}
