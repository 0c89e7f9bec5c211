//! What a boot was asked for of huge pages, against what there is of them.

use crate::bootline;
use crate::units::bytes;
use crate::{NOT_GIVEN, Observation, Reading};

/// Pages that are larger than the largest block of the buddy allocator.
const GIGANTIC_BYTES: u64 = 1 << 30;

impl Observation {
    /// That a pool has fewer pages than the running kernel was asked for at its boot, by the reading of the boot
    /// parameter: it takes what it finds, and says so in its log alone.
    #[must_use]
    pub fn not_granted(&self, parameter: &Reading) -> Option<String> {
        let (_, size) = parameter.place.strip_prefix("cmdline:")?.split_once('@')?;
        let page_bytes = bootline::size(size)?;
        let asked = pages_at_boot(parameter.value.as_deref()?)?;
        // Who recorded a host without its pools did not look.
        if self.pools.is_empty() || asked == 0 {
            return None;
        }
        let own: Vec<_> = self.pools.iter().filter(|pool| pool.page_bytes == page_bytes).collect();
        let granted: u64 = own.iter().map(|pool| pool.persistent()).sum();
        if granted >= asked {
            return None;
        }
        let each = bytes(page_bytes);
        let told = format!("{asked} pages of {each} asked for at boot, and there are {granted} now");
        if own.is_empty() {
            return Some(format!("{told}: this machine has no pages of that size"));
        }
        let cma = self.knobs.values().flatten().find(|other| other.place == "cmdline:hugetlb_cma");
        let cma = cma.and_then(|other| other.value.as_deref()).filter(|value| *value != NOT_GIVEN);
        if let Some(cma) = cma.filter(|_| page_bytes >= GIGANTIC_BYTES) {
            return Some(format!(
                "{told}: beside hugetlb_cma={cma} the kernel makes none of this size at boot"
            ));
        }
        let memory = bytes(self.host.memory_bytes);
        Some(format!(
            "{told}: of {memory} no more was free in pieces of {each} (the kernel log says HugeTLB), or somebody has \
             lowered the pool since; ask for fewer, or leave it more memory"
        ))
    }
}

/// The pages that `hugepages=` asks for: of `4`, and of `0:2,1:2` by node.
#[must_use]
pub fn pages_at_boot(value: &str) -> Option<u64> {
    let parts = value.split(',').map(|part| part.rsplit(':').next()?.trim().parse::<u64>().ok());
    parts.sum()
}
