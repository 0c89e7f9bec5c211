//! Schedules of the kernel's own threads in the words of others: `chrt`, and groups of tuned.
//!
//! ```text
//! fifo:2   for thread in $(pgrep -P 2 -x 'ksoftirqd/[0-9]*'); do chrt -f -p 2 "$thread"; done
//!          [scheduler] group.ksoftirqd=0:f:2:*:^\[ksoftirqd/
//!          [kthread]   group.ksoftirqd=0:f2:*:ksoftirqd/.*      (read, and not written: tuned before 2.25 has none)
//! ```

use planish_model::place;

/// Knobs by the names of their threads.
const KNOBS: [(&str, &str); 2] = [("ksoftirqd", "sched.ksoftirqd"), ("ktimers", "sched.ktimers")];

/// A schedule for threads of one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Threads<'a> {
    name: &'a str,
    /// A CPU, or a shell pattern of CPUs.
    cpus: &'a str,
    /// The letter of the class, for chrt and tuned.
    class: char,
    priority: &'a str,
}

impl<'a> Threads<'a> {
    /// What a value for a place of threads says; `None` for another place.
    pub(crate) fn of(at: &'a str, value: &'a str) -> Option<Self> {
        let (name, cpus) = at.strip_prefix(place::THREADS)?.split_once('/')?;
        let (class, priority) = match value.strip_prefix("fifo:") {
            Some(priority) => ('f', priority),
            None => ('o', "0"),
        };
        Some(Self { name, cpus, class, priority })
    }

    /// The CPUs as a regular expression.
    fn numbers(&self) -> String {
        self.cpus.replace('*', "[0-9]*").replace('?', "[0-9]")
    }

    /// A line of a shell script: threads of the kernel alone, whose parent has the number 2.
    pub(crate) fn line(&self) -> String {
        let Self { name, class, priority, .. } = self;
        format!(
            "for thread in $(pgrep -P 2 -x '{name}/{}'); do chrt -{class} -p {priority} \"$thread\" || failed=1; done\n",
            self.numbers()
        )
    }

    /// A group of tuned's plugin `scheduler`, which puts brackets around the names of the kernel's threads.
    pub(crate) fn group(&self, number: usize) -> String {
        let Self { name, class, priority, .. } = self;
        // The name says nothing to tuned, but there can be one of each.
        let number = if self.cpus == "*" { String::new() } else { format!("_{number}") };
        format!("group.{name}{number} = 0:{class}:{priority}:*:^\\[{name}/{}\\]$\n", self.numbers())
    }
}

/// What a group of tuned says: the knob, the CPUs that it means, the value.
pub(crate) fn of_group(value: &str) -> Result<(&'static str, Option<String>, String), &'static str> {
    const OTHERS: &str = "no threads of the kernel that a knob is for";
    let parts: Vec<&str> = value.splitn(5, ':').collect();
    let (class, priority, regex) = match parts.as_slice() {
        // `0:f2:*:ksoftirqd.*` of the plugin kthread, whose expressions have no colon.
        [_, both, _, regex] => {
            let (class, priority) = both.split_at(both.len().min(1));
            (class, priority, *regex)
        }
        [_, class, priority, _, regex] => (*class, *priority, *regex),
        _ => return Err("not rule, class, priority, CPUs and expression with a colon between them"),
    };
    let name = regex.trim_start_matches('^').trim_start_matches("\\[");
    let (name, knob) = KNOBS.into_iter().find(|(known, _)| name.starts_with(known)).ok_or(OTHERS)?;
    let (_, rest) = regex.split_once(name).ok_or(OTHERS)?;
    let rest = rest.trim_end_matches('$').trim_end_matches("\\]").trim_start_matches('/');
    let is_all = ["", ".*", "[0-9]*", "[0-9]+", "\\d+", "\\d*"].contains(&rest);
    let cpus = rest.replace("[0-9]*", "*").replace("[0-9]", "?");
    let is_plain = cpus.chars().all(|c| c.is_ascii_digit() || "*?".contains(c));
    let only = match (is_all, is_plain) {
        (true, _) => None,
        (false, true) => Some(cpus),
        (false, false) => {
            return Err("an expression for some of these threads that is no pattern of * and ?");
        }
    };
    match class {
        "f" => Ok((knob, only, format!("fifo:{}", priority.trim()))),
        "o" => Ok((knob, only, "other".to_owned())),
        "*" | "" => Err("leaves the class of the threads as it is"),
        _ => Err("a class that planish gives no thread of the kernel: f and o are known"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_of_tuned_come_back_for_all_threads_and_for_some() {
        for (cpus, only) in [("*", None), ("3", Some("3")), ("1*", Some("1*")), ("?", Some("?"))] {
            for (value, letter) in [("fifo:2", 'f'), ("other", 'o')] {
                let at = format!("/planish/threads/ktimers/{cpus}");
                let threads = Threads::of(&at, value).expect("threads");
                let group = threads.group(1);
                assert!(group.contains(&format!("= 0:{letter}:")), "{group}");
                let (_, said) = group.trim_end().split_once(" = ").expect("a value");
                let back = of_group(said).expect("its own words");
                assert_eq!(back, ("sched.ktimers", only.map(str::to_owned), value.to_owned()), "{group}");
            }
        }
        assert_eq!(Threads::of("/planish/ethtool/eth0/rings_rx", "1"), None);
    }

    #[test]
    fn groups_that_others_write_are_read_or_refused() {
        let all = |priority: &str| Ok(("sched.ksoftirqd", None, format!("fifo:{priority}")));
        assert_eq!(of_group("0:f:2:*:^\\[ksoftirqd"), all("2"));
        assert_eq!(of_group("0:f:11:*:ksoftirqd.*"), all("11"));
        assert_eq!(of_group("0:f2:*:ksoftirqd.*"), all("2"));
        for refused in [
            "0:f:4:*:rcuc.*",
            "0:r:2:*:ksoftirqd.*",
            "0:*:2:*:ksoftirqd.*",
            "0:f:2:*:ksoftirqd/(1|2)",
            "0:f",
            "",
            "::::",
        ] {
            assert!(of_group(refused).is_err(), "{refused}");
        }
    }

    #[test]
    fn a_script_sets_threads_of_the_kernel_alone() {
        let line = |cpus: &str, value: &str| {
            let at = format!("/planish/threads/ksoftirqd/{cpus}");
            Threads::of(&at, value).expect("threads").line()
        };
        assert_eq!(
            line("*", "fifo:2"),
            "for thread in $(pgrep -P 2 -x 'ksoftirqd/[0-9]*'); do chrt -f -p 2 \"$thread\" || failed=1; done\n"
        );
        assert!(line("3", "other").contains("-x 'ksoftirqd/3'); do chrt -o -p 0 "));
    }
}
