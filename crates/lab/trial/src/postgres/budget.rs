//! How much data and how much shared memory the servers get, so that all of them fit beside each other.

use crate::error::TrialError;

/// One unit of `--scale`: the rows of `pgbench_accounts`, as in pgbench.
pub(crate) const ROWS_PER_SCALE: u64 = 100_000;

/// Bytes of table and primary key for one unit of scale: 1,640 heap pages of 61 rows, 276 index pages.
const BYTES_PER_SCALE: u64 = (1_640 + 276) * 8192;

/// Largest `--scale`: the last whose rows a key of 32 bits counts, where pgbench draws the line too.
pub const SCALE_MAX: u64 = 20_000;

/// Memory of one backend beside its page tables: its catalogue caches, plans and stack, as measured, and some more.
const BACKEND_BYTES: u64 = 8 << 20;

/// Bytes of shared memory for each byte of a backend's page tables, on base pages: 512 entries of 8 bytes map 2 MB.
const MAPPED_PER_TABLE_BYTE: u64 = 512;

/// Shared buffers beyond the data, so that nothing is ever evicted.
const SLACK: f64 = 1.10;

/// Smallest shared buffers: catalogues and other tables must fit too.
const SHARED_BUFFERS_MIN: u64 = 128 << 20;

/// Connections that every server allows at least: of few clients, all trials have the same shared memory.
const CONNECTIONS_MIN: u64 = 64;

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
    /// Clients of each.
    pub clients: u64,
}

/// What the user asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wish {
    /// `--scale`.
    pub scale: Option<u64>,
    /// `--shared-buffers`.
    pub shared_buffers_bytes: Option<u64>,
    /// `--clients`: each has a backend in every server, with page tables of its own.
    pub clients: u64,
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
        // What is asked for may be any number; what does not fit must not overflow on the way to saying so.
        let backends = wish.clients.saturating_mul(BACKEND_BYTES);
        let tables = 1.0 + wish.clients as f64 / MAPPED_PER_TABLE_BYTE as f64;
        let fitting = (each.saturating_sub(backends) as f64 / SLACK / tables) as u64 / BYTES_PER_SCALE;
        let scale = wish.scale.unwrap_or_else(|| fitting.min(SCALE_WANTED[usize::from(wish.quick)]));
        let needed = (scale.saturating_mul(BYTES_PER_SCALE) as f64 * SLACK) as u64;
        let shared = wish.shared_buffers_bytes.unwrap_or(needed).max(SHARED_BUFFERS_MIN);
        let shared = shared.checked_next_multiple_of(8 << 20).unwrap_or(u64::MAX);
        let server = ((shared as f64 * tables) as u64).saturating_add(backends);
        if scale == 0 || scale > SCALE_MAX || server > each {
            let gib = |bytes: u64| bytes as f64 / (1u64 << 30) as f64;
            let what = if scale > SCALE_MAX {
                format!("--scale {scale} is too large: {SCALE_MAX} at most")
            } else {
                format!(
                    "{servers} servers of {:.2} GiB each do not fit: {:.1} GiB are available, of which a quarter of \
                     all memory ({:.1} GiB) stays free",
                    gib(server),
                    gib(available),
                    gib(floor)
                )
            };
            let fewer = if wish.clients > 1 { " fewer --clients," } else { "" };
            let fitting = fitting.clamp(1, SCALE_MAX);
            let cure = format!("try --scale {fitting},{fewer} or {}", crate::kernel::memory_cure());
            return Err(TrialError::Refused { what, cure });
        }
        Ok(Self { scale, shared_buffers_bytes: shared, servers, clients: wish.clients })
    }

    /// Rows of the table.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.scale * ROWS_PER_SCALE
    }

    /// `max_connections` of each server: its clients, and some for us and for superusers (of whom 3 have theirs
    /// reserved).
    #[must_use]
    pub fn connections(&self) -> u64 {
        (self.clients + 10).max(CONNECTIONS_MIN)
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
    fn no_number_is_too_large_to_be_refused() {
        let clients = Wish { clients: 1, ..Wish::default() };
        let wishes = [
            Wish { scale: Some(2_000_000_000_000), ..clients },
            Wish { scale: Some(1_100_000_000_000), ..clients },
            Wish { scale: Some(u64::MAX), ..clients },
            // Shared buffers that fit, and data whose size on disk no number holds.
            Wish { scale: Some(u64::MAX / 8192), shared_buffers_bytes: Some(GIB), ..clients },
            Wish { shared_buffers_bytes: Some(u64::MAX), ..clients },
            Wish { clients: u64::MAX, ..clients },
        ];
        for wish in wishes {
            let error = Budget::new(wish, 5, 24 * GIB, 22 * GIB).expect_err("too large");
            assert_eq!(error.exit(), planish_model::Exit::Refused, "{wish:?}");
            assert!(error.hints()[0].contains("--scale "), "{:?}", error.hints());
        }
        let most = Wish { scale: Some(SCALE_MAX), ..clients };
        let budget = Budget::new(most, 5, 4096 * GIB, 4000 * GIB).expect("a very large machine has it");
        assert!(i32::try_from(budget.rows()).is_ok(), "its keys are of 32 bits");
        assert!(budget.disk_bytes() > budget.data_bytes());
    }

    #[test]
    fn backends_of_many_clients_take_memory_too() {
        let of = |clients| Wish { clients, scale: Some(55), ..Wish::default() };
        let few = Budget::new(of(8), 5, 24 * GIB, 22 * GIB).expect("eight have room");
        let many = Budget::new(of(200), 5, 64 * GIB, 60 * GIB).expect("so have 200 on a large machine");
        assert_eq!((few.connections(), many.connections()), (64, 210), "each has one, and some more");
        let error = Budget::new(of(1024), 5, 24 * GIB, 22 * GIB).expect_err("5,120 backends have none");
        assert!(error.hints()[0].contains("fewer --clients"), "{:?}", error.hints());
    }

    #[test]
    fn a_large_machine_gets_the_usual_size() {
        let budget =
            Budget::new(Wish { clients: 1, ..Wish::default() }, 5, 24 * GIB, 22 * GIB).expect("fits");
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
        let small = Budget::new(Wish { clients: 1, ..Wish::default() }, 5, 4 * GIB, 2 * GIB).expect("fits");
        assert!(small.scale < 55 && small.shared_buffers_bytes * 5 <= GIB);
        let error =
            Budget::new(Wish { clients: 1, ..Wish::default() }, 5, GIB, GIB / 2).expect_err("too small");
        assert!(error.to_string().contains("do not fit"), "{error}");
    }

    #[test]
    fn a_wish_that_does_not_fit_names_one_that_does() {
        let wish = Wish { scale: Some(5_000), ..Wish::default() };
        let error = Budget::new(wish, 5, 24 * GIB, 22 * GIB).expect_err("too large");
        assert!(error.hints()[0].contains("--scale "), "{:?}", error.hints());
    }
}
