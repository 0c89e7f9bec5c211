//! What the running kernel was given on its command line, against what it made of that.

use planish_model::{BootCpus, Knob, NOT_GIVEN, Reading, bootline, given_in_vain, units::bytes};

use crate::compare::Bench;

/// Pages that are larger than the largest block of the buddy allocator.
const GIGANTIC_BYTES: u64 = 1 << 30;

impl Bench<'_> {
    /// That a pool has fewer pages than the running kernel was asked for at its boot: it takes what it finds, and says
    /// so in its log alone.
    pub(crate) fn not_granted(&self, knob: &Knob, reading: &Reading) -> Option<String> {
        let (_, size) = knob.boot_parameter()?;
        let page_bytes = bootline::size(size?)?;
        let asked = pages(reading.value.as_deref()?)?;
        // Who recorded a host without its pools did not look.
        let pools = &self.observation.pools;
        if pools.is_empty() || asked == 0 {
            return None;
        }
        let own: Vec<_> = pools.iter().filter(|pool| pool.page_bytes == page_bytes).collect();
        let granted: u64 = own.iter().map(|pool| pool.persistent()).sum();
        if granted >= asked {
            return None;
        }
        let each = bytes(page_bytes);
        let told = format!("{asked} pages of {each} asked for at boot, and there are {granted} now");
        if own.is_empty() {
            return Some(format!("{told}: this machine has no pages of that size"));
        }
        let cma =
            self.observation.knobs.values().flatten().find(|other| other.place == "cmdline:hugetlb_cma");
        let cma = cma.and_then(|other| other.value.as_deref()).filter(|value| *value != NOT_GIVEN);
        if let Some(cma) = cma.filter(|_| page_bytes >= GIGANTIC_BYTES) {
            return Some(format!(
                "{told}: beside hugetlb_cma={cma} the kernel makes none of this size at boot"
            ));
        }
        let memory = bytes(self.observation.host.memory_bytes);
        Some(format!(
            "{told}: of {memory} no more was free in pieces of {each} (the kernel log says HugeTLB), or somebody has \
             lowered the pool since; ask for fewer, or leave it more memory"
        ))
    }

    /// Why the kernel did not take a list of CPUs: one that stands beside it is for others. Before Linux 5.18, but for
    /// distributions that took its rule over, all of isolcpus= and nohz_full= is for one list (`nohz_full= must match
    /// isolcpus=` in the kernel log).
    pub(crate) fn not_taken_with(&self, knob: &Knob, given: &str) -> Option<String> {
        let (name, _) = knob.boot_parameter()?;
        let beside = match name {
            "isolcpus" => "nohz_full",
            "nohz_full" => "isolcpus",
            _ => return None,
        };
        let place = format!("cmdline:{beside}");
        let Some(other) = self.observation.knobs.values().flatten().find(|other| other.place == place) else {
            // Who asks of the one alone has not read the other.
            return Some(format!(
                "this kernel was given it and did not take it, and another boot of it will not, either: a CPU is not \
                 there, or {beside}= beside it is for other CPUs"
            ));
        };
        let other =
            other.value.as_deref().filter(|value| *value != NOT_GIVEN && given_in_vain(value).is_none())?;
        let (own, list) = (BootCpus::parse(given)?, BootCpus::parse(other)?);
        if own.same_cpus(&list) {
            return None;
        }
        Some(format!(
            "this kernel was given it and did not take it: {beside}={other} is for other CPUs, and it takes one \
             list for both; give both the same CPUs"
        ))
    }
}

/// The pages of `4`, and of `0:2,1:2` by node.
fn pages(value: &str) -> Option<u64> {
    let parts = value.split(',').map(|part| part.rsplit(':').next()?.trim().parse::<u64>().ok());
    parts.sum()
}
