//! Types of values: what is legal, and when two texts mean the same.
//!
//! A value travels as the kernel's own text. It is compared in *normal form*, since the kernel often shows
//! something other than what was written: `always [madvise] never` for `madvise`, `Y` for `1`, tabs for spaces.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::units;

mod boot_cpus;
mod cpus;
mod directives;

pub use directives::{listed, overridden};
mod form;
mod read;
mod setting;
mod share;
mod variable;

pub use boot_cpus::BootCpus;
pub use cpus::CpuForm;
pub use form::{Form, leaves_guards_out, node_bytes, node_numbers, page_sizes, tmpfs_bytes};
pub use setting::LimitPair;
pub use share::{CacheGroup, NO_GROUP, Schemata, is_cache};
pub use variable::{assigned, assignments, parts_lost, said, variable};

/// The type of a knob's value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged, deny_unknown_fields)]
pub enum ValueType {
    /// `{ int = "bytes", min = 0, max = 100 }`: a whole number and its unit, or one of a few words
    /// (`words = ["n/a"]`).
    Int {
        /// The unit, for people: bytes, pages, percent, ms, none.
        int: String,
        /// Smallest legal value.
        #[serde(default)]
        min: Option<i64>,
        /// Largest legal value.
        #[serde(default)]
        max: Option<i64>,
        /// Words that the kernel takes, and shows, in the place of a number.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        words: Vec<String>,
    },
    /// `{ unsigned = "bytes" }`: a whole number of up to 64 bits without a sign, such as `18446744073692774399`.
    Unsigned {
        /// The unit, for people.
        unsigned: String,
    },
    /// `{ choice = ["always", "madvise", "never"] }`: one word of a list; the kernel may show it in brackets.
    Choice {
        /// The legal words. Some hosts offer fewer: the write tells.
        choice: Vec<String>,
    },
    /// `{ flag = true }`: on or off, shown as `1`/`0` or `Y`/`N`.
    Flag {
        /// Always true; marks the type.
        flag: bool,
    },
    /// `{ ints = "bytes", count = 3, min = 0, max = 65535 }`: so many whole numbers in a row, such as
    /// `4096 131072 6291456`.
    Ints {
        /// The unit of each, for people.
        ints: String,
        /// How many.
        count: usize,
        /// Smallest legal value of each.
        #[serde(default)]
        min: Option<i64>,
        /// Largest legal value of each.
        #[serde(default)]
        max: Option<i64>,
        /// Whether none may be smaller than the one before it.
        #[serde(default)]
        ascending: bool,
    },
    /// `{ cpus = "list" }` is `0-3,8`, `{ cpus = "mask" }` is `0000010f`: a set of CPUs.
    Cpus {
        /// How the kernel writes it.
        cpus: CpuForm,
        /// Whether no CPU at all is legal; it then means that the mechanism is off.
        #[serde(default)]
        empty: bool,
    },
    /// `{ boot_cpus = ["domain", "nohz"] }`: CPUs for the kernel's command line, behind words of the parameter's own:
    /// `domain,2-7`, `all`, `1-N`, `0-15:2/4`.
    BootCpus {
        /// Words that may come before the list.
        boot_cpus: Vec<String>,
    },
    /// `{ directives = ["CPUAffinity", "NUMAMask"] }`: settings of a unit of systemd, `CPUAffinity=1,5 NUMAMask=0`.
    Directives {
        /// Those that may be set.
        directives: Vec<String>,
    },
    /// `{ directive = "LimitNOFILE", unit = "files", min = 1, words = ["infinity"] }`: one setting of a unit of
    /// systemd, a whole number or a word. Without a bound it takes words alone, several of them joined by colons.
    Setting {
        /// Its name in the unit; of a variable in its environment `Environment=NAME`.
        directive: String,
        /// The unit of numbers, for people.
        unit: String,
        /// Smallest legal number.
        #[serde(default)]
        min: Option<i64>,
        /// Largest legal number.
        #[serde(default)]
        max: Option<i64>,
        /// Legal words.
        #[serde(default)]
        words: Vec<String>,
        /// Whether more than is wanted is as good: then nothing is lowered unless that class is allowed.
        #[serde(default)]
        at_least: bool,
    },
    /// `{ share = "schemata" }` is `L3:0=7f0;1=7ff MB:0=100;1=100`, `{ share = "group" }` is
    /// `cpus=1,5 mode=exclusive L3:0=00f;1=7ff`, or `none`: ways of caches and bandwidth of the memory.
    Share {
        /// Of all that no group is for, or of a group.
        share: ShareOf,
    },
    /// `{ form = "thp-anon" }`: a word that has a form of its own, most of them of the kernel's command line.
    Form {
        /// Which.
        form: Form,
    },
    /// `{ text = true }`: anything; white space is folded for comparison.
    Text {
        /// Always true; marks the type.
        text: bool,
    },
}

/// Whose share of the caches a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ShareOf {
    /// Of the default group: a schemata.
    Schemata,
    /// Of a group with CPUs of its own.
    Group,
}

impl ShareOf {
    /// What its text is, for people.
    fn describe(self) -> &'static str {
        match self {
            Self::Schemata => "ways of caches and bandwidth, such as L3:0=7f0;1=7ff MB:0=50;1=50",
            Self::Group => {
                "a group of CPUs and its ways, such as cpus=1,5 mode=shareable L3:0=f;1=7ff, or none"
            }
        }
    }
}

/// Why a text is not a legal value.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum ValueError {
    /// Not a whole number.
    #[error("`{value}` is no whole number ({unit})")]
    NotInt {
        /// The text.
        value: String,
        /// The unit of the knob.
        unit: String,
    },
    /// Outside the range.
    #[error("{value} is out of range: {range}")]
    OutOfRange {
        /// The number.
        value: i64,
        /// The range, for people.
        range: String,
    },
    /// A list that says one thing twice.
    #[error("`{value}` says {name} twice")]
    Twice {
        /// The text.
        value: String,
        /// What is said twice.
        name: String,
    },
    /// A soft limit that is larger than the hard one.
    #[error("`{value}` has a soft limit above the hard one")]
    SoftAboveHard {
        /// The text.
        value: String,
    },
    /// Not one of the words.
    #[error(
        "`{value}` is none of {choices}{}",
        nearest.as_ref().map(|n| format!("; did you mean `{n}`?")).unwrap_or_default()
    )]
    NotAChoice {
        /// The text.
        value: String,
        /// The legal words, joined.
        choices: String,
        /// The nearest legal word.
        nearest: Option<String>,
    },
    /// Neither on nor off.
    #[error("`{value}` is neither 0 nor 1")]
    NotAFlag {
        /// The text.
        value: String,
    },
    /// Not as many whole numbers as the kernel wants.
    #[error("`{value}` is not {count} whole numbers of {unit}")]
    NotInts {
        /// The text.
        value: String,
        /// How many there must be.
        count: usize,
        /// The unit of the knob.
        unit: String,
    },
    /// Whole numbers in a row of which one is smaller than the one before it.
    #[error("`{value}` goes down, and each of these numbers is at least the one before it")]
    NotAscending {
        /// The text.
        value: String,
    },
    /// More than one word for the kernel's command line, or what a shell or a boot loader would read otherwise.
    #[error(
        "`{value}` has {what}, which ends a boot parameter or is read by the shell of a boot loader's file"
    )]
    NotOneWord {
        /// The text.
        value: String,
        /// The character, for people.
        what: String,
    },
    /// Not a list of ports.
    #[error("`{value}` is no list of ports: write `8080,9148-9150`, without blanks")]
    NotPorts {
        /// What was wanted.
        value: String,
    },
    /// Not a set of CPUs.
    #[error("`{value}` is not a {what}")]
    NotCpus {
        /// The text.
        value: String,
        /// What it should be, for people.
        what: &'static str,
    },
    /// Not settings that a unit may be given.
    #[error("`{value}` is not made of settings such as CPUAffinity=0-3; they are {known}")]
    NotDirectives {
        /// The text.
        value: String,
        /// The settings that there are.
        known: String,
    },
    /// Not ways of a cache.
    #[error("`{value}` is not {what}")]
    NotAShare {
        /// The text.
        value: String,
        /// What it should be, for people.
        what: &'static str,
    },
    /// Not of the form that the kernel reads.
    #[error("`{value}` is not {what}")]
    NotOfForm {
        /// The text.
        value: String,
        /// What it should be, for people.
        what: &'static str,
    },
    /// Empty, or with a line break that the kernel would cut at.
    #[error("the value is empty or has a line break")]
    NotOneLine,
}

impl ValueType {
    /// The normal form of a text that the kernel showed or that a profile wants.
    #[must_use]
    pub fn normal(&self, raw: &str) -> String {
        let folded = raw.split_whitespace().collect::<Vec<_>>().join(" ");
        match self {
            Self::Int { .. } => folded.parse::<i64>().map_or(folded, |number| number.to_string()),
            Self::Unsigned { .. } => folded.parse::<u64>().map_or(folded, |number| number.to_string()),
            Self::Choice { .. } => bracketed(&folded).unwrap_or(&folded).to_owned(),
            Self::Flag { .. } => match folded.as_str() {
                "Y" | "y" | "1" | "on" | "true" => "1".to_owned(),
                "N" | "n" | "0" | "off" | "false" => "0".to_owned(),
                _ => folded,
            },
            Self::Cpus { cpus, .. } => cpus.normal(&folded).unwrap_or(folded),
            // What is a comment among lines may be a word of one line, which is read as often as it is compared.
            Self::Directives { .. } => {
                directives::normal(raw).or_else(|| directives::normal(&folded)).unwrap_or(folded)
            }
            Self::Setting { directive, .. } => setting::normal(directive, raw).unwrap_or(folded),
            Self::Share { .. } => share::normal(raw).unwrap_or(folded),
            // Percent are those of a memory, which is not known here.
            Self::Form { form: Form::TmpfsSize } if !folded.ends_with('%') => {
                tmpfs_bytes(&folded, 0, 1).map_or(folded, |bytes| bytes.to_string())
            }
            Self::Form { form: Form::ThreadSchedule } => form::schedule(&folded).to_owned(),
            Self::Ints { .. } | Self::BootCpus { .. } | Self::Form { .. } | Self::Text { .. } => folded,
        }
    }

    /// Whether a text that was found means the same value as a wanted one.
    #[must_use]
    pub fn same(&self, found: &str, wanted: &str) -> bool {
        let (found, wanted) = (self.normal(found), self.normal(wanted));
        match self {
            Self::Form { form: Form::ThpAnon | Form::ThpShmem } => form::gives_words(&found, &wanted),
            Self::BootCpus { .. } if found != wanted => {
                let lists = BootCpus::parse(&found).zip(BootCpus::parse(&wanted));
                lists.is_some_and(|(found, wanted)| found.means(&wanted))
            }
            _ => found == wanted,
        }
    }

    /// Why the kernel does not keep to a word that it took: `isolated invalid (cpuset.cpus is empty)` shows the word
    /// `isolated` and the reason. `cpuset.cpus.partition` reads so (Documentation/admin-guide/cgroup-v2.rst), right
    /// after the write or any time later, when a CPU goes offline. `None` for a word that is kept, and for another one.
    ///
    /// A group of resctrl that was not finished, or whose CPUs went offline, is such a one, too.
    #[must_use]
    pub fn unkept<'a>(&self, word: &str, shown: &'a str) -> Option<&'a str> {
        if let Self::Share { share: ShareOf::Group } = self {
            return share::unkept(word, shown);
        }
        let (kept, reason) = split_unkept(shown)?;
        (matches!(self, Self::Choice { .. }) && self.same(kept, word)).then_some(reason)
    }

    /// What was at a place before us. A group of resctrl that nothing runs in is what a kill left of ours, or what
    /// became of ours when its CPUs went offline: without us there is none.
    #[must_use]
    pub fn as_original(&self, shown: String) -> String {
        let is_group = matches!(self, Self::Share { share: ShareOf::Group });
        match is_group && CacheGroup::parse(&shown).is_some_and(|group| group.is_unused()) {
            true => NO_GROUP.to_owned(),
            false => shown,
        }
    }

    /// The text to write for a value as the kernel showed it: of `always [madvise] never` only the word, and of
    /// `root invalid (...)` too.
    #[must_use]
    pub fn written(&self, shown: &str) -> String {
        match self {
            Self::Choice { .. } => self.normal(split_unkept(shown).map_or(shown, |(word, _)| word)),
            _ => shown.trim_end().to_owned(),
        }
    }

    /// A wanted value in full: of a schemata, what it does not name stays as it is now.
    #[must_use]
    pub fn completed(&self, now: Option<&str>, wanted: &str) -> String {
        let whole = || Some(Schemata::parse(wanted)?.over(&Schemata::parse(now?)?).to_string());
        match self {
            Self::Share { share: ShareOf::Schemata } => whole().unwrap_or_else(|| wanted.to_owned()),
            _ => wanted.to_owned(),
        }
    }

    /// The text of a file of ours that gives a value to the unit which the file at `place` is of.
    #[must_use]
    pub fn in_file(&self, place: &str, value: &str) -> String {
        match self {
            Self::Setting { directive, .. } => directives::drop_in(place, &format!("{directive}={value}")),
            _ => directives::drop_in(place, value),
        }
    }

    /// Whether a value that somebody else gave a unit is as good as the wanted one: the same, or more of what can only
    /// be too little. Sizes may have a suffix, and limits a second number, which programs may raise themselves to.
    #[must_use]
    pub fn is_enough(&self, given: &str, wanted: &str) -> bool {
        let Self::Setting { at_least, .. } = self else { return self.same(given, wanted) };
        match (LimitPair::parse(given), LimitPair::parse(wanted)) {
            (Some(given), Some(wanted)) if *at_least => {
                given.soft >= wanted.soft && given.hard >= wanted.hard
            }
            (Some(given), Some(wanted)) => given == wanted,
            _ => self.same(given, wanted),
        }
    }

    /// The CPUs that a unit of systemd may use.
    #[must_use]
    pub fn cpus_of_a_unit() -> Self {
        let (directive, unit) = (setting::CPUS.to_owned(), "CPUs".to_owned());
        Self::Setting { directive, unit, min: None, max: None, words: Vec::new(), at_least: false }
    }

    /// Whether it is the CPUs that a unit of systemd may use.
    #[must_use]
    pub fn is_cpus_of_a_unit(&self) -> bool {
        matches!(self, Self::Setting { directive, .. } if setting::is_cpus(directive))
    }

    /// Checks a wanted value.
    ///
    /// # Errors
    /// Names the value and what would be legal.
    pub fn validate(&self, wanted: &str) -> Result<(), ValueError> {
        if wanted.trim().is_empty() || wanted.trim_end_matches('\n').contains('\n') {
            return Err(ValueError::NotOneLine);
        }
        let value = self.normal(wanted);
        match self {
            Self::Int { words, .. } if words.contains(&value) => Ok(()),
            Self::Int { int, min, max, .. } => in_range(&value, int, *min, *max),
            Self::Unsigned { .. } if value.parse::<u64>().is_ok() => Ok(()),
            Self::Unsigned { unsigned } => Err(ValueError::NotInt { value, unit: unsigned.clone() }),
            Self::Choice { choice } if choice.contains(&value) => Ok(()),
            Self::Choice { choice } => Err(none_of(value, choice)),
            Self::Flag { .. } => is_flag(value),
            Self::Ints { ints, count, min, max, ascending } => {
                let numbers = value.split(' ').map(str::parse).collect::<Result<Vec<i64>, _>>();
                let numbers = numbers.ok().filter(|numbers| numbers.len() == *count);
                let is_beyond =
                    |number: i64| min.is_some_and(|min| number < min) || max.is_some_and(|max| number > max);
                let beyond = numbers.iter().flatten().find(|number| is_beyond(**number));
                match numbers.as_ref() {
                    None => Err(ValueError::NotInts { value, count: *count, unit: ints.clone() }),
                    Some(numbers) if *ascending && !numbers.is_sorted() => {
                        Err(ValueError::NotAscending { value })
                    }
                    Some(_) => beyond.map_or(Ok(()), |number| {
                        Err(ValueError::OutOfRange { value: *number, range: range(*min, *max) })
                    }),
                }
            }
            Self::BootCpus { boot_cpus } => {
                let unread = || ValueError::NotCpus { value: value.clone(), what: BootCpus::WHAT };
                let list = BootCpus::parse(&value).ok_or_else(unread)?;
                match list.words.iter().find(|word| !boot_cpus.contains(word)) {
                    None => Ok(()),
                    Some(_) if boot_cpus.is_empty() => Err(unread()),
                    Some(word) => Err(none_of(word.clone(), boot_cpus)),
                }
            }
            Self::Cpus { cpus, empty } => are_cpus(*cpus, *empty, value),
            Self::Directives { directives } if directives::are_legal(&value, directives) => Ok(()),
            Self::Directives { directives } => {
                Err(ValueError::NotDirectives { value, known: directives.join(", ") })
            }
            Self::Setting { directive, .. } if setting::is_cpus(directive) => {
                are_cpus(CpuForm::List, false, value)
            }
            Self::Setting { min: None, max: None, words, .. } if !words.is_empty() => {
                variable::are_words(&value, words)
            }
            Self::Setting { directive, unit, min, max, words, .. } => {
                let part = |part: &str| match words.iter().any(|word| word == part) {
                    true => Ok(()),
                    false => in_range(part, unit, *min, *max),
                };
                let Some((soft, hard)) = value.split_once(':').filter(|_| setting::is_pair(directive)) else {
                    return part(&value);
                };
                part(soft).and_then(|()| part(hard))?;
                match LimitPair::parse(&value) {
                    Some(pair) if pair.soft <= pair.hard => Ok(()),
                    _ => Err(ValueError::SoftAboveHard { value }),
                }
            }
            Self::Share { share } if is_share(*share, &value) => Ok(()),
            Self::Share { share } => Err(ValueError::NotAShare { value, what: share.describe() }),
            Self::Form { form } if form.is_one(&value) => Ok(()),
            Self::Form { form } => Err(ValueError::NotOfForm { value, what: form.describe() }),
            Self::Text { .. } => Ok(()),
        }
    }

    /// A value in normal form and with its unit, for people: `60 %`, `64 MiB`.
    #[must_use]
    pub fn with_unit(&self, raw: &str) -> String {
        let value = self.normal(raw);
        if let Self::Form { form: Form::TmpfsSize } = self {
            return value.parse().map_or(value, units::bytes);
        }
        let (Self::Int { int, .. } | Self::Unsigned { unsigned: int }) = self else { return value };
        let Ok(number) = value.parse::<i64>() else { return value };
        match (int.as_str(), u64::try_from(number)) {
            // Words that say what a number is and do not count anything.
            ("none" | "mode" | "weight" | "bits", _) => value,
            ("percent", _) => format!("{value} %"),
            ("bytes", Ok(count)) if count > 0 => units::bytes(count),
            ("KiB", Ok(count)) if count > 0 => units::bytes(count.saturating_mul(1024)),
            (unit, _) => format!("{value} {unit}"),
        }
    }

    /// The type for people: `whole number (percent), 0 to 200`.
    #[must_use]
    pub fn describe(&self) -> String {
        match self {
            Self::Int { int, min, max, words } => {
                let words: String = words.iter().map(|word| format!(", or {word}")).collect();
                format!("whole number ({int}), {}{words}", range(*min, *max))
            }
            Self::Unsigned { unsigned } => format!("whole number ({unsigned}), 0 to {}", u64::MAX),
            Self::Choice { choice } => format!("one of {}", choice.join(", ")),
            Self::Flag { .. } => "0 or 1".to_owned(),
            Self::Ints { ints, count, min, max, ascending } => {
                let is_bounded = min.is_some() || max.is_some();
                let each = if is_bounded { format!(", each {}", range(*min, *max)) } else { String::new() };
                let order = if *ascending { ", none smaller than the one before it" } else { "" };
                format!("{count} whole numbers ({ints}){each}{order}")
            }
            Self::BootCpus { boot_cpus } if boot_cpus.is_empty() => BootCpus::WHAT.to_owned(),
            Self::BootCpus { boot_cpus } => {
                format!("{}, behind words of {}", BootCpus::WHAT, boot_cpus.join(", "))
            }
            Self::Cpus { cpus, .. } => cpus.describe().to_owned(),
            Self::Directives { directives } => format!("settings of a unit: {}", directives.join(", ")),
            Self::Setting { directive, .. } if setting::is_cpus(directive) => {
                format!("{directive}= of a unit: {}", CpuForm::List.describe())
            }
            Self::Setting { directive, min: None, max: None, words, .. } if !words.is_empty() => {
                let words = words.join(", ");
                format!("{directive}= of a unit: one or several of {words}, with a colon between them")
            }
            Self::Setting { directive, unit, min, max, words, .. } => {
                let words: String = words.iter().map(|word| format!(", or {word}")).collect();
                let pair = if setting::is_pair(directive) { ", or SOFT:HARD" } else { "" };
                format!("{directive}= of a unit: whole number ({unit}), {}{words}{pair}", range(*min, *max))
            }
            Self::Share { share } => share.describe().to_owned(),
            Self::Form { form } => form.describe().to_owned(),
            Self::Text { .. } => "text".to_owned(),
        }
    }
}

/// That a word is none of a list.
fn none_of(value: String, words: &[String]) -> ValueError {
    let nearest = crate::nearest(&value, words.iter().map(String::as_str)).map(str::to_owned);
    ValueError::NotAChoice { nearest, value, choices: words.join(", ") }
}

fn is_flag(value: String) -> Result<(), ValueError> {
    if value == "0" || value == "1" { Ok(()) } else { Err(ValueError::NotAFlag { value }) }
}

/// Whether a text is a set of CPUs, and whether it may have none.
fn are_cpus(form: CpuForm, empty: bool, value: String) -> Result<(), ValueError> {
    let found = form.normal(&value).filter(|set| empty || set != form.none());
    found.map(|_| ()).ok_or(ValueError::NotCpus { value, what: form.describe() })
}

/// Whether a text is a whole number within its range.
fn in_range(value: &str, unit: &str, min: Option<i64>, max: Option<i64>) -> Result<(), ValueError> {
    let Ok(number) = value.parse::<i64>() else {
        return Err(ValueError::NotInt { value: value.to_owned(), unit: unit.to_owned() });
    };
    if min.is_some_and(|min| number < min) || max.is_some_and(|max| number > max) {
        return Err(ValueError::OutOfRange { value: number, range: range(min, max) });
    }
    Ok(())
}

/// A word that the kernel took and calls invalid, and its reason.
fn split_unkept(shown: &str) -> Option<(&str, &str)> {
    let (word, rest) = shown.trim().split_once(" invalid")?;
    let reason = rest.trim_start().strip_prefix('(').and_then(|rest| rest.strip_suffix(')'));
    Some((word, reason.unwrap_or("the kernel says no reason")))
}

/// The word in brackets of a kernel list such as `always [madvise] never`.
fn bracketed(folded: &str) -> Option<&str> {
    let mut words = folded.split(' ').filter_map(|word| word.strip_prefix('[')?.strip_suffix(']'));
    words.find(|word| !word.is_empty() && !word.contains(['[', ']']))
}

fn range(min: Option<i64>, max: Option<i64>) -> String {
    match (min, max) {
        (Some(min), Some(max)) => format!("{min} to {max}"),
        (Some(min), None) => format!("{min} or more"),
        (None, Some(max)) => format!("{max} or less"),
        (None, None) => "any".to_owned(),
    }
}

/// Whether a text is a share of caches, or says that there is none.
fn is_share(share: ShareOf, text: &str) -> bool {
    match share {
        ShareOf::Schemata => Schemata::parse(text).is_some(),
        ShareOf::Group => text == NO_GROUP || CacheGroup::parse(text).is_some(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn values_carry_their_unit() {
        let unit =
            |int: &str| ValueType::Int { int: int.to_owned(), min: None, max: None, words: Vec::new() };
        for (kind, raw, text) in [
            (unit("percent"), "60\n", "60 %"),
            (unit("bytes"), "67108864", "64 MiB"),
            (unit("bytes"), "0", "0 bytes"),
            (unit("KiB"), "67584", "66 MiB"),
            (unit("weight"), "60", "60"),
            (unit("pages"), "512", "512 pages"),
            (unit("none"), "3", "3"),
            (unit("ms"), "odd", "odd"),
        ] {
            assert_eq!(kind.with_unit(raw), text);
        }
        let thp = ValueType::Choice { choice: vec!["always".to_owned(), "never".to_owned()] };
        assert_eq!(thp.with_unit("[always] never"), "always");
    }

    #[test]
    fn brackets_without_a_word_stay() {
        for odd in ["[]", "[[]]", "[[madvise]]"] {
            assert_eq!(thp().normal(&thp().normal(odd)), odd);
        }
    }

    fn thp() -> ValueType {
        ValueType::Choice { choice: ["always", "madvise", "never"].map(str::to_owned).to_vec() }
    }

    #[test]
    fn the_bracketed_word_is_the_value() {
        assert_eq!(thp().normal("always [madvise] never\n"), "madvise");
        assert!(thp().same("always [madvise] never\n", "madvise"));
        assert!(!thp().same("[always] madvise never", "madvise"));
    }

    #[test]
    fn a_word_that_the_kernel_calls_invalid_is_not_the_value() {
        let kind = ValueType::Choice { choice: ["member", "root", "isolated"].map(str::to_owned).to_vec() };
        let shown = "isolated invalid (cpuset.cpus is empty)\n";
        assert!(!kind.same(shown, "isolated"));
        assert_eq!(kind.unkept("isolated", shown), Some("cpuset.cpus is empty"));
        assert_eq!(kind.unkept("root", shown), None);
        assert_eq!(kind.unkept("isolated", "isolated"), None);
        assert_eq!(
            kind.unkept("root", "root invalid"),
            Some("the kernel says no reason"),
            "before Linux 6.1"
        );
        assert_eq!((kind.written(shown).as_str(), kind.written("member\n").as_str()), ("isolated", "member"));
        assert_eq!(thp().written("always [madvise] never"), "madvise");
        let text = ValueType::Text { text: true };
        assert_eq!(text.unkept("a", "a invalid (x)"), None);
        assert_eq!(text.written("a invalid (x)\n"), "a invalid (x)");
    }

    #[test]
    fn a_typing_error_names_the_nearest_word() {
        let error = thp().validate("madvice").expect_err("not a word");
        assert_eq!(error.to_string(), "`madvice` is none of always, madvise, never; did you mean `madvise`?");
    }

    #[test]
    fn a_number_without_a_sign_has_all_64_bits() {
        let bytes = ValueType::Unsigned { unsigned: "bytes".to_owned() };
        assert!(bytes.validate("18446744073709551615").is_ok() && bytes.validate("0").is_ok());
        assert!(bytes.same("018446744073692774399\n", "18446744073692774399"));
        for odd in ["18446744073709551616", "-1", "1.5", "many"] {
            assert!(bytes.validate(odd).is_err(), "{odd}");
        }
    }

    #[test]
    fn numbers_are_held_to_their_range() {
        let percent =
            ValueType::Int { int: "percent".to_owned(), min: Some(0), max: Some(100), words: Vec::new() };
        assert!(percent.validate("100\n").is_ok());
        assert_eq!(
            percent.validate("101").expect_err("too big").to_string(),
            "101 is out of range: 0 to 100"
        );
        assert!(percent.validate("1e2").is_err());
        assert!(percent.validate("1\n2").is_err());
    }

    #[test]
    fn numbers_in_a_row_are_counted() {
        let numbers =
            |min, max, ascending| ValueType::Ints { ints: "bytes".to_owned(), count: 3, min, max, ascending };
        let row = numbers(None, None, false);
        assert!(row.same("4096\t131072\t6291456", "4096 131072 6291456"));
        assert!(row.validate("1 2 3").is_ok());
        assert_eq!(
            row.validate("1 2").expect_err("one is missing").to_string(),
            "`1 2` is not 3 whole numbers of bytes"
        );
        assert!(row.validate("1 2 x").is_err() && row.validate("3 2 1").is_ok());
        let ascending = numbers(Some(4096), None, true);
        assert_eq!(
            ascending.validate("1 4096 8192").expect_err("too low").to_string(),
            "1 is out of range: 4096 or more"
        );
        assert!(ascending.validate("4096 4096 8192").is_ok());
        assert!(ascending.describe().contains(", each 4096 or more, "), "{}", ascending.describe());
        let bounded = numbers(Some(1), Some(65535), true);
        assert!(bounded.validate("1 2 65535").is_ok());
        assert_eq!(
            bounded.validate("1 2 65536").expect_err("too large").to_string(),
            "65536 is out of range: 1 to 65535"
        );
        assert!(bounded.describe().contains(", each 1 to 65535, "), "{}", bounded.describe());
        assert_eq!(
            ascending.validate("9000 200 100").expect_err("it goes down").to_string(),
            "`9000 200 100` goes down, and each of these numbers is at least the one before it"
        );
    }

    proptest! {
        #[test]
        fn normal_form_is_idempotent(raw in "[ \t0-9a-zYN\\[\\],-]{0,24}") {
            for kind in [thp(), ValueType::Flag { flag: true }, ValueType::Text { text: true },
                         ValueType::Int { int: "pages".to_owned(), min: None, max: None, words: Vec::new() },
                         ValueType::Cpus { cpus: CpuForm::List, empty: true },
                         ValueType::Cpus { cpus: CpuForm::Mask, empty: true }] {
                let once = kind.normal(&raw);
                prop_assert_eq!(kind.normal(&once), once);
            }
        }
    }
}
