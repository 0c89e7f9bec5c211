//! CPUs as the kernel takes them from its command line (`lib/bitmap-str.c`, `bitmap_parselist`;
//! `kernel/sched/isolation.c`, `housekeeping_isolcpus_setup`).
//!
//! ```text
//!   domain,managed_irq,2-7,9      words of the parameter, then CPUs
//!   all                           every CPU
//!   1-N                           from 1 to the last that there is
//!   0-15:2/4                      the first two of each four
//! ```
//!
//! At boot nobody hears an error: of a list that cannot be read the kernel takes nothing, or what came before it.

use std::collections::BTreeSet;

/// Most CPUs that one part of a list is followed for: more than Linux can be built for.
const PART_MAX: u32 = 65_536;

/// A list of CPUs for the command line, with the words before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BootCpus {
    /// Words before the list, such as `managed_irq`.
    pub words: Vec<String>,
    parts: Vec<Part>,
}

/// `first-last:used/group`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Part {
    first: End,
    last: End,
    used: u32,
    group: u32,
}

/// A CPU that a part begins or ends with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Cpu(u32),
    /// `N`: the last one that there is.
    Last,
}

impl End {
    fn parse(text: &str) -> Option<Self> {
        let is_number = text.len() <= 6 && text.bytes().all(|digit| digit.is_ascii_digit());
        match text {
            "N" => Some(Self::Last),
            _ if is_number => text.parse().ok().map(Self::Cpu),
            _ => None,
        }
    }

    fn of(self, last: u32) -> u32 {
        match self {
            Self::Cpu(cpu) => cpu,
            Self::Last => last,
        }
    }
}

impl Part {
    fn parse(text: &str) -> Option<Self> {
        let (range, each) = text.split_once(':').map_or((text, None), |(range, each)| (range, Some(each)));
        let (first, last) = match range.split_once('-') {
            Some((first, last)) => (End::parse(first)?, End::parse(last)?),
            None if range == "all" => (End::Cpu(0), End::Last),
            // Of one CPU there are no groups.
            None if each.is_some() => return None,
            None => (End::parse(range)?, End::parse(range)?),
        };
        let number = |text: &str| match End::parse(text)? {
            End::Cpu(number) => Some(number),
            End::Last => None,
        };
        let (used, group) = match each {
            Some(each) => {
                each.split_once('/').and_then(|(used, group)| Some((number(used)?, number(group)?)))?
            }
            None => (1, 1),
        };
        let is_backwards = matches!((first, last), (End::Cpu(first), End::Cpu(last)) if first > last);
        (!is_backwards && group > 0 && used <= group).then_some(Self { first, last, used, group })
    }
}

impl BootCpus {
    /// What a value of this kind is, for people.
    pub(super) const WHAT: &str = "list of CPUs for the command line, such as 2-7,9, all, 1-N or 0-15:2/4";

    /// Reads a value; `None` for what the kernel would not take whole, and where no CPU is named.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let parts: Vec<&str> = text.trim().split(',').collect();
        let is_all = |part: &str| part.split(':').next() == Some("all");
        let is_word = |part: &&&str| !is_all(part) && part.starts_with(|c: char| c.is_ascii_lowercase());
        let words = parts.iter().take_while(is_word).count();
        let words: Vec<String> = parts[..words].iter().map(|word| (*word).to_owned()).collect();
        let parts = parts[words.len()..].iter().map(|part| Part::parse(part));
        let parts: Vec<Part> = parts.collect::<Option<_>>().filter(|parts: &Vec<Part>| !parts.is_empty())?;
        Some(Self { words, parts })
    }

    /// The CPUs, where `last` is the highest that there is.
    #[must_use]
    pub fn cpus(&self, last: u32) -> BTreeSet<u32> {
        let mut cpus = BTreeSet::new();
        for Part { first, last: end, used, group } in &self.parts {
            let (first, end) = (first.of(last), end.of(last));
            let ahead = first..=end.min(first.saturating_add(PART_MAX));
            cpus.extend(ahead.filter(|cpu| (cpu - first) % group < *used));
        }
        cpus
    }

    /// Whether two lists are for the same CPUs with the same words, however they are written. Of one that goes up to
    /// the last CPU that is known on its machine alone.
    pub(super) fn means(&self, other: &Self) -> bool {
        self.words_meant() == other.words_meant() && self.same_cpus(other)
    }

    /// The words, and `domain` where none is said: what a list alone is for (`housekeeping_isolcpus_setup`).
    pub(crate) fn words_meant(&self) -> BTreeSet<&str> {
        let words = self.words.iter().map(String::as_str);
        if self.words.is_empty() { BTreeSet::from(["domain"]) } else { words.collect() }
    }

    /// Whether two lists are for the same CPUs, whatever words stand before them.
    #[must_use]
    pub fn same_cpus(&self, other: &Self) -> bool {
        let is_open = self.goes_to_the_last() || other.goes_to_the_last();
        if is_open { self.parts == other.parts } else { self.cpus(0) == other.cpus(0) }
    }

    /// Whether some part goes up to the last CPU, whichever that is: `all`, `1-N`.
    #[must_use]
    pub fn goes_to_the_last(&self) -> bool {
        self.parts.iter().any(|part| part.first == End::Last || part.last == End::Last)
    }

    /// Whether some part takes a few of each group of CPUs, and leaves the others.
    #[must_use]
    pub fn leaves_some(&self) -> bool {
        self.parts.iter().any(|part| part.used < part.group)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cpus, ValueType};

    #[test]
    fn a_list_is_read_as_the_kernel_reads_it() {
        let of = |text: &str| {
            BootCpus::parse(text).map(|list| list.cpus(7).into_iter().collect::<Cpus>().to_string())
        };
        assert_eq!(of("domain,0-7:2/4,N").as_deref(), Some("0-1,4-5,7"));
        assert_eq!(of("all").as_deref(), Some("0-7"));
        assert_eq!(of("2-N").as_deref(), Some("2-7"));
        assert_eq!(of("all:1/4").as_deref(), Some("0,4"));
        for odd in [
            "1-3,5:1/2",
            "1-x",
            "0-7:2",
            "0-7:2/0",
            "0-7:a/4",
            "0-7:5/4",
            "3-1",
            "5-1,x",
            "1-",
            "-1",
            "",
            "domain",
            "1,domain",
            "1,,2",
            "1,",
            "0x1",
            "1 2",
            "1 init=/bin/sh",
            "+1",
            "1;2",
            "N-",
            "9999999",
        ] {
            assert_eq!(of(odd), None, "{odd}");
        }
    }

    #[test]
    fn lists_of_the_same_cpus_are_the_same_and_one_without_an_end_is_itself() {
        let kind = ValueType::BootCpus { boot_cpus: ["domain", "nohz"].map(str::to_owned).to_vec() };
        for (one, other) in [
            ("1,2,3", "1-3"),
            ("5,1", "1,5"),
            ("0-7:2/4", "0-1,4-5"),
            ("nohz,domain,2-3", "domain,nohz,3,2"),
            ("all", "all"),
            ("1-N", "1-N"),
        ] {
            assert!(kind.same(one, other), "{one} and {other}");
            assert_eq!(kind.normal(one), one, "it is written word for word");
        }
        for (one, other) in
            [("1-3", "1-4"), ("nohz,2-3", "domain,2-3"), ("all", "0-N:1/2"), ("1-N", "1-7"), ("x", "1")]
        {
            assert!(!kind.same(one, other), "{one} and {other}");
        }
    }

    #[test]
    fn words_are_those_of_the_parameter() {
        let kind = ValueType::BootCpus { boot_cpus: ["domain", "managed_irq"].map(str::to_owned).to_vec() };
        assert!(kind.validate("domain,managed_irq,1-3").is_ok() && kind.validate("1-N").is_ok());
        assert_eq!(
            kind.validate("managd_irq,1").expect_err("no word").to_string(),
            "`managd_irq` is none of domain, managed_irq; did you mean `managed_irq`?"
        );
        assert_eq!(
            kind.validate("1 init=/bin/sh").expect_err("two words").to_string(),
            "`1 init=/bin/sh` is not a list of CPUs for the command line, such as 2-7,9, all, 1-N or 0-15:2/4"
        );
        let bare = ValueType::BootCpus { boot_cpus: Vec::new() };
        assert_eq!(
            bare.validate("domain,1").expect_err("it has none").to_string(),
            "`domain,1` is not a list of CPUs for the command line, such as 2-7,9, all, 1-N or 0-15:2/4"
        );
    }
}
