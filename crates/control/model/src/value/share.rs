//! Shares of the caches and of the memory's bandwidth, as resctrl has them (Documentation/filesystems/resctrl.rst).
//!
//! ```text
//!   L3:0=7f0;1=7ff MB:0=100;1=100                        schemata: resource, domain (a cache), ways or bandwidth
//!   cpus=1,5 mode=exclusive L3:0=00f;1=7ff MB:...        a group: whose CPUs have that share
//!   none                                                 a group that there is not
//! ```
//!
//! The kernel shows one resource a line, pads numbers and masks, and takes them without: here they are one line, in the
//! order of their names, with masks in as few digits as they need.

use std::collections::BTreeMap;
use std::fmt;

use crate::Cpus;

/// The word for a group that there is not.
pub const NO_GROUP: &str = "none";

/// What a group that was not finished lacks: its CPUs are the last that it is given, and the first that it loses.
const UNFINISHED: &str = "no CPU is in the group: it was not finished, or its CPUs went offline";
/// What a group lacks some of whose CPUs went offline: the kernel takes them out, and puts them elsewhere on return.
const SHRUNK: &str = "some of its CPUs have left the group, as those do that go offline";

/// Ways of caches as bits, and bandwidths, by resource and domain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schemata(pub BTreeMap<String, BTreeMap<u32, u64>>);

/// Whether numbers of a resource are masks of ways: those of caches are, bandwidths are decimal.
#[must_use]
pub fn is_cache(resource: &str) -> bool {
    resource.starts_with('L')
}

impl Schemata {
    /// The lines of a `schemata` file, or the same on one line. `None` for a text that is none.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        // `MB:0=2048;1=  16`: numbers are padded within their line.
        let mut tight = String::with_capacity(text.len());
        for word in text.split_whitespace() {
            let goes_on = |c: char| "=:;".contains(c);
            if !tight.is_empty() && !tight.ends_with(goes_on) && !word.starts_with(goes_on) {
                tight.push(' ');
            }
            tight += word;
        }
        let mut resources = BTreeMap::new();
        for word in tight.split_whitespace() {
            let (name, values) = word.split_once(':')?;
            let plain = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            let values = domains(name, values).filter(|values| plain && !values.is_empty())?;
            resources.insert(name.to_owned(), values).is_none().then_some(())?;
        }
        (!resources.is_empty()).then_some(Self(resources))
    }

    /// These, and of all that they do not name what `now` has.
    #[must_use]
    pub fn over(&self, now: &Self) -> Self {
        let mut whole = now.clone();
        for (resource, domains) in &self.0 {
            whole.0.entry(resource.clone()).or_default().extend(domains);
        }
        whole
    }
}

fn domains(resource: &str, text: &str) -> Option<BTreeMap<u32, u64>> {
    let radix = if is_cache(resource) { 16 } else { 10 };
    let mut domains = BTreeMap::new();
    for part in text.split(';').map(str::trim).filter(|part| !part.is_empty()) {
        let (domain, value) = part.split_once('=')?;
        let value = value.trim().trim_start_matches("0x");
        let digits = !value.is_empty() && value.chars().all(|c| c.is_digit(radix));
        let value = u64::from_str_radix(value, radix).ok().filter(|_| digits)?;
        domains.insert(domain.trim().parse().ok()?, value).is_none().then_some(())?;
    }
    Some(domains)
}

impl fmt::Display for Schemata {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (resource, domains)) in self.0.iter().enumerate() {
            let space = if index == 0 { "" } else { " " };
            write!(f, "{space}{resource}:")?;
            for (index, (domain, value)) in domains.iter().enumerate() {
                let part = if index == 0 { "" } else { ";" };
                match is_cache(resource) {
                    true => write!(f, "{part}{domain}={value:x}")?,
                    false => write!(f, "{part}{domain}={value}")?,
                }
            }
        }
        Ok(())
    }
}

/// A group of resctrl.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheGroup {
    /// The CPUs whose tasks have its share, as far as those are in no other group by themselves.
    pub cpus: Cpus,
    /// Its `mode`: shareable, exclusive, or what somebody else made of it.
    pub mode: String,
    /// Its share.
    pub schemata: Schemata,
    /// Tasks that were put into it one by one.
    pub tasks: usize,
    /// Groups below it that only monitor.
    pub monitors: usize,
}

impl CacheGroup {
    /// A group from its text. `None` for [`NO_GROUP`], and for a text that is none.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (mut cpus, mut mode, mut tasks, mut monitors) = (None, None, 0, 0);
        let mut rest = text.trim();
        loop {
            let (word, following) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
            match word.split_once('=') {
                Some(("cpus", list)) if cpus.is_none() => cpus = Some(Cpus::parse(list)?),
                Some(("mode", word)) if mode.is_none() && !word.is_empty() => mode = Some(word.to_owned()),
                Some(("tasks", count)) => tasks = count.parse().ok()?,
                Some(("monitors", count)) => monitors = count.parse().ok()?,
                _ => break,
            }
            rest = following.trim_start();
        }
        let schemata = Schemata::parse(rest)?;
        Some(Self { cpus: cpus?, mode: mode?, schemata, tasks, monitors })
    }

    /// Whether only we have been at it: no task and no group for monitoring was put into it.
    fn is_alone(&self) -> bool {
        self.tasks == 0 && self.monitors == 0
    }

    /// Whether nothing runs with its share, as in one that a kill left: its CPUs are the last that it is given.
    #[must_use]
    pub fn is_unused(&self) -> bool {
        self.cpus.is_empty() && self.is_alone()
    }
}

impl fmt::Display for CacheGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cpus={} mode={}", self.cpus, self.mode)?;
        if self.tasks > 0 {
            write!(f, " tasks={}", self.tasks)?;
        }
        if self.monitors > 0 {
            write!(f, " monitors={}", self.monitors)?;
        }
        write!(f, " {}", self.schemata)
    }
}

/// The normal form of the text of a group, or of a schemata.
pub(super) fn normal(text: &str) -> Option<String> {
    let group = CacheGroup::parse(text).map(|group| group.to_string());
    group.or_else(|| Schemata::parse(text).map(|schemata| schemata.to_string()))
}

/// Why a group of ours is not as it was made, where nobody but a kill or the kernel can have done that.
///
/// A group without CPUs and without tasks does nothing to anybody, and it has our name: what a kill left behind. So has
/// one that lost some of its CPUs and is the same in all else.
pub(super) fn unkept(wanted: &str, shown: &str) -> Option<&'static str> {
    let (wanted, shown) = (CacheGroup::parse(wanted)?, CacheGroup::parse(shown)?);
    if !shown.is_alone() || wanted.cpus == shown.cpus {
        return None;
    }
    if shown.cpus.is_empty() {
        return Some(UNFINISHED);
    }
    let lost = shown.cpus.is_within(&wanted.cpus);
    (lost && shown.mode == wanted.mode && shown.schemata == wanted.schemata).then_some(SHRUNK)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn group(text: &str) -> CacheGroup {
        CacheGroup::parse(text).unwrap_or_else(|| panic!("{text}"))
    }

    #[test]
    fn what_the_kernel_pads_is_the_same() {
        let shown = "    MB:0=2048;1=  16\n    L3:0=00f;1=fff\n";
        let schemata = Schemata::parse(shown).expect("schemata");
        assert_eq!(schemata.to_string(), "L3:0=f;1=fff MB:0=2048;1=16");
        assert_eq!(Schemata::parse(&schemata.to_string()), Some(schemata));
        let code_and_data = Schemata::parse("L3DATA:0=fffff\nL3CODE:0=fffff\n").expect("schemata");
        assert_eq!(code_and_data.to_string(), "L3CODE:0=fffff L3DATA:0=fffff");
        // A name of nothing but digits of a mask.
        assert_eq!(Schemata::parse("L3:0=f ABC:0=1").expect("schemata").0.len(), 2);
    }

    #[test]
    fn what_is_no_schemata_is_told() {
        for odd in
            ["", "L3", "L3:", "L3:0", "L3:0=", "L3:0=xyz", "L3:a=f", "L3:0=f;0=1", "MB:0=ff", "L3:0=f L3:0=f"]
        {
            assert_eq!(Schemata::parse(odd), None, "{odd}");
        }
        for odd in [
            "none",
            "cpus=1 L3:0=f",
            "mode=shareable L3:0=f",
            "cpus=x mode=shareable L3:0=f",
            "cpus=1 mode=a",
        ] {
            assert_eq!(CacheGroup::parse(odd), None, "{odd}");
        }
    }

    #[test]
    fn what_is_not_named_stays() {
        let now = Schemata::parse("L3:0=7ff;1=7ff MB:0=100;1=100").expect("schemata");
        let asked = Schemata::parse("MB:1=50").expect("schemata");
        assert_eq!(asked.over(&now).to_string(), "L3:0=7ff;1=7ff MB:0=100;1=50");
    }

    #[test]
    fn a_group_that_a_kill_left_is_told_from_one_that_somebody_uses() {
        let wanted = "cpus=1,5 mode=exclusive L3:0=f";
        let unkept = |shown: &str| unkept(wanted, shown);
        assert_eq!(unkept("cpus= mode=shareable L3:0=7ff"), Some(UNFINISHED));
        assert_eq!(unkept("cpus=1 mode=exclusive L3:0=f"), Some(SHRUNK));
        for theirs in [
            "none",
            "cpus=1,5 mode=exclusive L3:0=f",
            "cpus= mode=shareable tasks=1 L3:0=7ff",
            "cpus= mode=shareable monitors=1 L3:0=7ff",
            "cpus=1 mode=exclusive L3:0=7",
            "cpus=1,5,6 mode=exclusive L3:0=f",
        ] {
            assert_eq!(unkept(theirs), None, "{theirs}");
        }
    }

    #[test]
    fn a_group_is_its_text() {
        for text in [
            "cpus=1,5 mode=exclusive L3:0=f MB:0=100",
            "cpus= mode=shareable tasks=2 monitors=1 L2:0=1 L3:0=f",
        ] {
            assert_eq!(group(text).to_string(), text);
        }
    }

    proptest! {
        #[test]
        fn any_text_has_one_normal_form(text in "[L3MB:0-9a-f=; cpusmode,\\n]{0,40}") {
            if let Some(once) = normal(&text) {
                prop_assert_eq!(normal(&once), Some(once));
            }
        }

        #[test]
        fn schemata_come_back(masks in prop::collection::btree_map(0_u32..4, 1_u64..4096, 1..4)) {
            let mut schemata = Schemata::default();
            schemata.0.insert("L3".to_owned(), masks.clone());
            schemata.0.insert("MB".to_owned(), masks);
            prop_assert_eq!(Schemata::parse(&schemata.to_string()), Some(schemata));
        }
    }
}
