//! How much memory the pools of a plan may take: the host keeps a reserve, whatever a profile wants.

use planish_model::{HostFacts, units::bytes};

/// The reserve is never less than this.
const RESERVE_BYTES_MIN: u64 = 1 << 30;

/// Memory that pools may still take, spent step by step.
#[derive(Clone, Debug)]
pub(crate) struct Budget {
    available: u64,
    reserve: u64,
}

impl Budget {
    /// What the host has available, with a tenth of its memory and at least 1 GiB kept back.
    pub(crate) fn of(host: &HostFacts) -> Self {
        Self { available: host.available_bytes, reserve: (host.memory_bytes / 10).max(RESERVE_BYTES_MIN) }
    }

    /// The same of a host that has just been started: all of its memory is there.
    pub(crate) fn at_boot(host: &HostFacts) -> Self {
        Self { available: host.memory_bytes, ..Self::of(host) }
    }

    /// The same of a host whose pools of huge pages leave so much of its memory.
    pub(crate) fn beside_pools(host: &HostFacts, left: u64) -> Self {
        Self { available: left, ..Self::of(host) }
    }

    /// Takes the bytes, or says why the host cannot give them.
    pub(crate) fn take(&mut self, wanted: u64) -> Result<(), String> {
        self.refusal(wanted).map_or_else(
            || {
                self.available -= wanted;
                Ok(())
            },
            Err,
        )
    }

    /// Why the host cannot give that much; `None` when it can.
    pub(crate) fn refusal(&self, wanted: u64) -> Option<String> {
        let [asked, available, reserve] = [wanted, self.available, self.reserve].map(bytes);
        match self.available.checked_sub(wanted) {
            None => Some(format!(
                "{asked} is more than the {available} available, of which the host keeps {reserve}"
            )),
            Some(left) if left < self.reserve => {
                let left = bytes(left);
                Some(format!(
                    "{asked} would leave {left} of the {available} available, and the host keeps {reserve}"
                ))
            }
            Some(_) => None,
        }
    }
}

/// Why the pools of a plan, so many bytes together, are more than the host can give as it is now; `None` when they are
/// not. A plan that was made when there was room is judged by this once more before it is written.
#[must_use]
pub fn beyond_memory(host: &HostFacts, bytes: u64) -> Option<String> {
    if bytes == 0 { None } else { Budget::of(host).refusal(bytes) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reserve_is_a_tenth_and_at_least_a_gibibyte() {
        let host = |memory: u64, available: u64| HostFacts {
            memory_bytes: memory << 30,
            available_bytes: available << 30,
            ..HostFacts::default()
        };
        assert!(Budget::of(&host(4, 3)).take(2 << 30).is_ok());
        assert!(Budget::of(&host(4, 3)).take((2 << 30) + 1).is_err());
        assert!(Budget::of(&host(100, 50)).take(40 << 30).is_ok());
        let error = Budget::of(&host(100, 50)).take(41 << 30).expect_err("too much");
        assert_eq!(error, "41 GiB would leave 9 GiB of the 50 GiB available, and the host keeps 10 GiB");
        let error = Budget::of(&host(100, 50)).take(60 << 30).expect_err("more than there is");
        assert_eq!(error, "60 GiB is more than the 50 GiB available, of which the host keeps 10 GiB");
    }

    #[test]
    fn what_one_pool_took_another_cannot_have() {
        let host = HostFacts { memory_bytes: 8 << 30, available_bytes: 4 << 30, ..HostFacts::default() };
        let mut budget = Budget::of(&host);
        assert!(budget.take(2 << 30).is_ok());
        assert!(budget.take(2 << 30).is_err());
        assert!(budget.take(1 << 30).is_ok());
        assert!(budget.take(u64::MAX).is_err());
    }
}
