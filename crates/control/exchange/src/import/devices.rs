//! Which devices a section of tuned is for.
//!
//! `devices=` names them by patterns of `fnmatch`, behind a `!` those that it is not for; without a name that counts
//! all are meant (`tuned/hardware/device_matcher.py`). Of sections of one plugin the first that means a device takes
//! it, and what others say of it is not done (`assign_free_devices` in `tuned/plugins/base.py`); smaller priorities
//! come first. Where a profile cannot say that, the line is refused: a setting never reaches more devices than tuned
//! would have set.

use planish_model::place;

use planish_formats::tuned::{Line, Lines};
use planish_sorted::SortSmall as _;

/// What a section says of itself.
pub(super) struct Section<'a> {
    name: &'a str,
    /// The plugin that reads it: its name, where it names none.
    pub(super) kind: &'a str,
    /// The devices that it is for, by names or patterns.
    devices: String,
    /// It is for devices alone of which udev knows something.
    is_by_udev: bool,
    /// It is for machines alone whose kernel or CPU matches something.
    pub(super) is_of_some: bool,
    /// tuned passes it over.
    pub(super) is_off: bool,
    priority: i64,
    /// What it sets, once the files are merged.
    keys: Vec<&'a str>,
}

impl<'a> Section<'a> {
    fn of(all: &'a Lines, name: &'a str) -> Self {
        let (lines, steering) = (&all.lines, all.steering(name));
        let said = |key: &str| {
            let mut said = lines.iter().rev().filter(|entry| entry.section == name && entry.key == key);
            said.next()?.value.as_deref()
        };
        let devices = said("devices").unwrap_or("*");
        let own = lines.iter().filter(|entry| entry.section == name && entry.replaced_by.is_none());
        Self {
            name,
            kind: steering.kind,
            // What cannot be put in keeps its signs, and is no name.
            devices: all.expanded(devices).unwrap_or_else(|_| devices.to_owned()),
            is_by_udev: said("devices_udev_regex").is_some(),
            is_of_some: steering.is_of_some,
            is_off: steering.is_off,
            priority: said("priority").and_then(|number| number.parse().ok()).unwrap_or_default(),
            keys: own.map(|entry| entry.key.as_str()).collect(),
        }
    }

    /// The names and patterns of its devices, `*` for all.
    ///
    /// # Errors
    /// They cannot be said in a profile.
    pub(super) fn names(&self) -> Result<Vec<String>, String> {
        if self.is_by_udev {
            return Err("for devices by what udev knows of them: a profile names them".to_owned());
        }
        let names = self.devices.split(|c: char| c == ',' || c.is_whitespace());
        let names: Vec<String> = names.filter(|name| !name.is_empty()).map(str::to_owned).collect();
        if names.iter().any(|name| name.starts_with('!')) {
            return Err("all devices but some: a profile names those that it means".to_owned());
        }
        if let Some(odd) =
            names.iter().find(|name| name.contains(['[', ']', '{', '}', '=', '$', '/', '"', '\'']))
        {
            return Err(format!("of the devices `{odd}` is no name and no pattern of * and ?"));
        }
        Ok(if names.is_empty() { vec!["*".to_owned()] } else { names })
    }

    /// Whether it may take a device that one of these names means.
    fn may_take(&self, others: &[String]) -> bool {
        let Ok(own) = self.names() else { return true };
        own.iter().any(|own| others.iter().any(|other| may_meet(own, other)))
    }
}

/// Whether a name can fit both patterns, as far as their beginnings tell.
pub(crate) fn may_meet(one: &str, other: &str) -> bool {
    let is_wild = |pattern: &str| pattern.contains(['*', '?']);
    match (is_wild(one), is_wild(other)) {
        (_, false) => place::matches(one, other),
        (false, true) => place::matches(other, one),
        (true, true) => {
            let plain = |pattern: &'_ str| pattern.split(['*', '?']).next().unwrap_or_default().to_owned();
            let (one, other) = (plain(one), plain(other));
            one.starts_with(&other) || other.starts_with(&one)
        }
    }
}

/// The sections of a profile, in the order in which they take devices.
pub(super) struct Sections<'a>(Vec<Section<'a>>);

impl<'a> Sections<'a> {
    pub(super) fn of(all: &'a Lines) -> Self {
        let mut sections: Vec<Section<'a>> = Vec::new();
        for line in &all.lines {
            if !sections.iter().any(|section| section.name == line.section) {
                sections.push(Section::of(all, &line.section));
            }
        }
        sections.sort_small_by_key(|section| section.priority);
        Self(sections)
    }

    /// Names of the sections of one plugin that tuned does not pass over.
    pub(super) fn of_kind(&self, kind: &str) -> impl Iterator<Item = &'a str> {
        self.0
            .iter()
            .filter(move |section| section.kind == kind && !section.is_off)
            .map(|section| section.name)
    }

    /// The section of a line.
    pub(super) fn section(&self, name: &str) -> &Section<'a> {
        &self.0[self.at(name)]
    }

    fn at(&self, name: &str) -> usize {
        self.0.iter().position(|section| section.name == name).expect("each line has its section")
    }

    /// All lines; those of disks, cards, CPUs and their meshes so that the section that takes a device comes last, and
    /// counts.
    pub(super) fn in_order<'l>(&self, all: &'l [Line]) -> Vec<&'l Line> {
        let mut order: Vec<&Line> = all.iter().collect();
        for kind in ["disk", "net", "cpu", "uncore"] {
            let is_of_kind = |line: &Line| self.section(&line.section).kind == kind;
            let mut taken: Vec<&Line> = all.iter().filter(|line| is_of_kind(line)).collect();
            taken.sort_small_by_key(|line| std::cmp::Reverse(self.at(&line.section)));
            let slots = order.iter_mut().filter(|line| is_of_kind(line));
            slots.zip(taken).for_each(|(slot, line)| *slot = line);
        }
        order
    }

    /// The devices that a line is for.
    ///
    /// # Errors
    /// They cannot be said in a profile, or a section before may take some of them and says nothing of what the line
    /// sets, so that tuned leaves it as it is there.
    pub(super) fn devices(&self, line: &Line) -> Result<Vec<String>, String> {
        let at = self.at(&line.section);
        let (own, names) = (&self.0[at], self.0[at].names()?);
        let before = self.0[..at].iter().filter(|other| other.kind == own.kind && !other.is_off);
        let says = |other: &&Section<'_>| {
            !other.is_of_some && other.names().is_ok() && other.keys.contains(&line.key.as_str())
        };
        match before.filter(|other| other.may_take(&names)).find(|other| !says(other)) {
            None => Ok(names),
            Some(other) => Err(format!(
                "section [{}] comes first and takes devices that this one means, so that tuned does not set it there",
                other.name
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Else a setting would reach devices that tuned gives to another section.
        #[test]
        fn patterns_that_a_name_fits_may_meet(one in "[ab*?]{1,5}", other in "[ab*?]{1,5}", name in "[ab]{0,5}") {
            if place::matches(&one, &name) && place::matches(&other, &name) {
                prop_assert!(may_meet(&one, &other), "{one} {other} {name}");
            }
        }
    }
}
