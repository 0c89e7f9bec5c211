//! Schedules of the kernel's own threads in the words of others: `chrt`, and groups of tuned.
//!
//! ```text
//! fifo:2   for thread in $(pgrep -P 2 -x 'ksoftirqd/[0-9]*'); do chrt -f -p 2 "$thread"; done
//!          [scheduler] group.ksoftirqd=0:f:2:*:^\[ksoftirqd/
//!          [kthread]   group.ksoftirqd=0:f2:*:ksoftirqd/.*      (read, and not written: tuned before 2.25 has none)
//! ```

use planish_model::place;
use planish_model::threads::{Group, meant};

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
            "for thread in $(pgrep -P 2 -x '{name}/{}'); do \
             chrt -{class} -p {priority} \"$thread\" || failed=1; done\n",
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

/// The value of a class by its letter.
fn value(class: &str, priority: &str) -> Result<String, &'static str> {
    match class {
        "f" => Ok(format!("fifo:{}", priority.trim())),
        "o" => Ok("other".to_owned()),
        "*" | "" => Err("leaves the class of the threads as it is"),
        _ => Err("a class that planish gives no thread of the kernel: f and o are known"),
    }
}

/// The knob, the CPUs that are meant where not all are, and the value.
pub(crate) type Said = Result<(&'static str, Option<String>, String), &'static str>;

/// What a group of tuned says.
pub(crate) fn of_group(said: &str) -> Said {
    const NO_GROUP: &str = "not rule, class, priority, CPUs and expression with a colon between them";
    let Group { class, priority, cpus, regex } = Group::parse(said).ok_or(NO_GROUP)?;
    let (_, knob, only) = meant(regex)?;
    if only.is_some() && !regex.ends_with(['$', ']', '*']) {
        return Err("an expression without an end: tuned searches, so that /1 means /10, too");
    }
    if !["*", ""].contains(&cpus.trim()) {
        return Err("binds threads of a CPU to others");
    }
    Ok((knob, only, value(class, priority)?))
}

/// The places that the words of a loop mean which asks for threads: `$(pgrep -P 2 -x 'ksoftirqd/[0-9]*')`. Without a
/// parent programs of that name would be meant as well.
pub(crate) fn of_pgrep(words: &str) -> Option<String> {
    let asked = words.trim().strip_prefix("$(pgrep -P 2 -x ")?.strip_suffix(')')?;
    let regex = asked.trim().strip_prefix('\'')?.strip_suffix('\'')?;
    let (name, _, only) = meant(regex).ok()?;
    Some(format!("{}{name}/{}", place::THREADS, only.as_deref().unwrap_or("*")))
}

/// What `chrt -f -p 2 PLACE` says, for threads that a loop has put in.
pub(crate) fn of_chrt(words: &[&str]) -> Said {
    let [_, class, "-p", priority, at] = words else {
        return Err(
            "only chrt -f -p N and chrt -o -p 0 are known, for threads of the kernel that pgrep -P 2 -x names",
        );
    };
    let at = at.trim_matches('"').strip_prefix(place::THREADS).and_then(|rest| rest.split_once('/'));
    let Some((name, cpus)) = at else {
        return Err("a process or thread by its number, which each boot gives anew");
    };
    let (_, knob, only) = meant(&format!("{name}/{}", cpus.replace('*', "[0-9]*").replace('?', "[0-9]")))?;
    Ok((knob, only, value(class.trim_start_matches('-'), priority)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_that_says_more_or_less_than_the_knob_is_refused() {
        assert_eq!(
            of_group("0:f:2:*:ksoftirqd/1$"),
            Ok(("sched.ksoftirqd", Some("1".to_owned()), "fifo:2".to_owned()))
        );
        assert!(of_group("0:f:2:*:ksoftirqd/1").is_err_and(|why| why.contains("/10")));
        assert!(of_group("0:f:2:0-1:ktimers.*").is_err_and(|why| why.contains("binds")));
    }

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
    fn only_threads_of_the_kernel_are_read_of_a_script() {
        let all = "$(pgrep -P 2 -x 'ktimers/[0-9]*')";
        assert_eq!(of_pgrep(all).as_deref(), Some("/planish/threads/ktimers/*"));
        assert_eq!(of_pgrep("$(pgrep -P 2 -x 'ktimers/3')").as_deref(), Some("/planish/threads/ktimers/3"));
        for other in ["$(pgrep -x 'ktimers/3')", "$(pgrep -P 2 -x 'rcuc/3')", "$(pgrep ktimers)", "1 2"] {
            assert_eq!(of_pgrep(other), None, "{other}");
        }
        let read = |text: &str| of_chrt(&text.split(' ').collect::<Vec<_>>());
        let three = Ok(("sched.ktimers", Some("3".to_owned()), "fifo:2".to_owned()));
        assert_eq!(read("chrt -f -p 2 \"/planish/threads/ktimers/3\""), three);
        for refused in ["chrt -f -p 2 1234", "chrt -r -p 2 /planish/threads/ktimers/3", "chrt -f 2 ls"] {
            assert!(read(refused).is_err(), "{refused}");
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
