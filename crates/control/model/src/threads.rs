//! Groups of threads in the words of tuned, and the expressions that name threads of the kernel: what an import takes
//! over, and what makes of a profile a second writer.
//!
//! ```text
//! group.ksoftirqd=0:f:2:*:^\[ksoftirqd/       rule, class, priority, CPUs and expression, of the plugin scheduler
//! group.softirq=0:f2:*:ksoftirqd/.*           the same of the plugin kthread; the name of a group says nothing
//! ```

/// Knobs by the names of their threads.
const KNOBS: [(&str, &str); 2] = [("ksoftirqd", "sched.ksoftirqd"), ("ktimers", "sched.ktimers")];

/// A group of tuned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group<'a> {
    /// The letter of the class; `*` or nothing leaves it as it is.
    pub class: &'a str,
    /// The priority.
    pub priority: &'a str,
    /// CPUs that the threads are bound to; `*` for none.
    pub cpus: &'a str,
    /// The expression for their names.
    pub regex: &'a str,
}

impl<'a> Group<'a> {
    /// What a line of a profile says; `None` for what is no group.
    #[must_use]
    pub fn parse(said: &'a str) -> Option<Self> {
        let parts: Vec<&str> = said.splitn(5, ':').collect();
        match parts.as_slice() {
            // `0:f2:*:ksoftirqd.*` of the plugin kthread, whose expressions have no colon.
            [_, both, cpus, regex] if both.is_char_boundary(both.len().min(1)) => {
                let (class, priority) = both.split_at(both.len().min(1));
                Some(Self { class, priority, cpus, regex })
            }
            [_, class, priority, cpus, regex] => Some(Self { class, priority, cpus, regex }),
            _ => None,
        }
    }

    /// Whether it leaves the class of its threads as it is.
    #[must_use]
    pub fn leaves_class(&self) -> bool {
        ["*", ""].contains(&self.class.trim())
    }

    /// The knobs whose threads it schedules, as far as that can be told: one too many is only named as a writer, and
    /// one that is missing takes a value back unseen.
    #[must_use]
    pub fn knobs(&self) -> Vec<&'static str> {
        if self.leaves_class() {
            return Vec::new();
        }
        if let Ok((_, knob, _)) = meant(self.regex) {
            return vec![knob];
        }
        // tuned searches: an expression without a single letter finds the threads of any name.
        let is_any = !self.regex.chars().any(|c| c.is_ascii_alphabetic());
        // `ktimersoftd` is another thread.
        let ends = |rest: &str| !rest.starts_with(|c: char| c.is_ascii_alphabetic());
        let is_named =
            |name: &str| self.regex.match_indices(name).any(|(at, _)| ends(&self.regex[at + name.len()..]));
        let named = KNOBS.into_iter().filter(|(name, _)| is_any || is_named(name));
        named.map(|(_, knob)| knob).collect()
    }
}

/// The threads that an expression for their names means: the name, the knob, and the CPUs as a shell pattern, all of
/// them where it says none.
///
/// # Errors
/// Why it means none that a knob is for, or cannot be said by a pattern.
pub fn meant(regex: &str) -> Result<(&'static str, &'static str, Option<String>), &'static str> {
    const OTHERS: &str = "no threads of the kernel that a knob is for";
    let from = regex.trim_start_matches('^').trim_start_matches("\\[");
    let (name, knob) = KNOBS.into_iter().find(|(known, _)| from.starts_with(known)).ok_or(OTHERS)?;
    let rest = from[name.len()..].trim_end_matches('$').trim_end_matches("\\]").trim_start_matches('/');
    if ["", ".*", "[0-9]*", "[0-9]+", "\\d+", "\\d*"].contains(&rest) {
        return Ok((name, knob, None));
    }
    let cpus = rest.replace("[0-9]*", "*").replace("[0-9]", "?");
    match cpus.chars().all(|c| c.is_ascii_digit() || "*?".contains(c)) {
        true => Ok((name, knob, Some(cpus))),
        false => Err("an expression for some of these threads that is no pattern of * and ?"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_schedules_the_threads_that_its_expression_finds() {
        let knobs = |said: &str| Group::parse(said).map(|group| group.knobs());
        for said in [
            "0:f:2:*:ksoftirqd.*",
            "0:f2:*:^\\[ksoftirqd/3\\]$",
            "0:o:0:*:ksoftirqd/(1|2)",
            "0:r:2:*:\\[?ksoftirqd",
        ] {
            assert_eq!(knobs(said), Some(vec!["sched.ksoftirqd"]), "{said}");
        }
        assert_eq!(knobs("0:f:2:*:(ksoftirqd|ktimers)/.*"), Some(vec!["sched.ksoftirqd", "sched.ktimers"]));
        assert_eq!(knobs("0:f:2:*:\\[.*\\]"), Some(vec!["sched.ksoftirqd", "sched.ktimers"]));
        for other in ["0:f:4:*:rcuc.*", "0:f:3:*:ktimersoftd.*", "0:*:1:0-1:ksoftirqd.*"] {
            assert_eq!(knobs(other), Some(Vec::new()), "{other}");
        }
        assert_eq!([knobs("0:f"), knobs("")], [None, None]);
    }
}
