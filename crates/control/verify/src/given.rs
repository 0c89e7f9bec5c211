//! What the running kernel was given on its command line, against what it made of that.

use planish_model::{BootCpus, Knob, NOT_GIVEN, given_in_vain};

use crate::compare::Bench;

impl Bench<'_> {
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
