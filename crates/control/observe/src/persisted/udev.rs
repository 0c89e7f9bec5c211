//! `udev(7)`: rules that set network cards, disks, CPUs, modules or the kernel itself when a device appears.
//!
//! The four folders of rules are read, whoever wrote them; of one name only the file of the first folder. The rules are
//! followed ([`planish_udev::follow`]) for every device that a knob has a place on, once as at a boot and once as when
//! udev is asked to look again. What nobody can decide by the files of the host (what a program answers, who has which
//! property) sets nothing for sure: it is told beside, as what may be set.

mod device;

use std::collections::{BTreeMap, BTreeSet};

use planish_host::Host;
use planish_model::{Observation, cards, place};
use planish_udev::{Action, Command, Effect, File, Rule, Target, assigns_to, commands, follow, means};

use self::device::{Any, Class, Seen};
use super::{Setting, files};

pub(crate) const FOLDERS: [&str; 4] =
    ["/etc/udev/rules.d", "/run/udev/rules.d", "/usr/lib/udev/rules.d", "/lib/udev/rules.d"];

/// What rules come to.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// What they set, in their order.
    pub(crate) settings: Vec<Setting>,
    /// What they may set behind that.
    pub(crate) undecided: Vec<Setting>,
}

/// What stands in a word for a name that nobody can tell.
const UNKNOWN: &str = "?";

/// Whether a source is a line of a file of rules.
pub(crate) fn is_rule(source: &str) -> bool {
    FOLDERS.iter().any(|folder| source.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/')))
}

/// What the rules of a host set at the places that were seen.
pub(crate) fn settings(host: &Host, observation: &Observation) -> Found {
    let places = Places::of(host, observation);
    let devices: Vec<Seen<'_>> =
        places.devices.iter().map(|((class, name), _)| Seen::of(host, *class, name, &places)).collect();
    let files = relevant(host, &places);
    let mut found = Found::default();
    if files.is_empty() {
        return found;
    }
    let rules: Vec<&Rule> = files.iter().flat_map(|file| &file.rules).collect();
    for seen in &devices {
        let tails = &places.devices[&(seen.class, seen.name.clone())];
        if !rules.iter().any(|rule| sets(rule, tails, seen.class == Class::Net)) {
            continue;
        }
        let event = |action| {
            let effects = follow(&files, seen, action);
            effects.iter().flat_map(|effect| of_effect(effect, seen, tails)).collect::<Vec<_>>()
        };
        found.take(event(Action::Add), event(Action::Change));
    }
    // A device of another kind, or one that is not there now, may set the kernel too.
    let any = follow(&files, &Any, Action::Add);
    let of_any =
        any.iter().filter(|effect| !matches!(effect.target, Target::Attribute(_) | Target::Ethtool(_)));
    // What is called after the device is looked at with the devices that are there.
    let of_any = of_any.flat_map(everywhere).filter(|setting| !setting.path.contains('?'));
    let of_any = of_any.map(|setting| (setting, false));
    found.take(of_any.collect(), Vec::new());
    found
}

impl Found {
    /// Takes in what one device had set when it appeared, and what it would have when udev looks again: of what is not
    /// sure only what comes behind what is.
    fn take(&mut self, add: Vec<(Setting, bool)>, change: Vec<(Setting, bool)>) {
        let mut touched: BTreeSet<&str> = add.iter().map(|(setting, _)| setting.path.as_str()).collect();
        touched.extend(change.iter().map(|(setting, _)| setting.path.as_str()));
        for path in touched {
            let of = |event: &[(Setting, bool)]| {
                let all: Vec<(Setting, bool)> =
                    event.iter().filter(|(setting, _)| setting.path == path).cloned().collect();
                let last = all.iter().rposition(|(_, is_sure)| *is_sure);
                let behind = all[last.map_or(0, |last| last + 1)..].to_vec();
                (all, last, behind)
            };
            let (all, last, behind) = of(&add);
            let certain = last.map(|last| all[last].0.clone());
            let (again, last, behind_again) = of(&change);
            let again = last.map(|last| again[last].0.clone());
            let again = again.filter(|again| certain.as_ref().is_none_or(|one| one.value != again.value));
            for (setting, _) in all.into_iter().filter(|(_, is_sure)| *is_sure) {
                if !self.settings.contains(&setting) {
                    self.settings.push(setting);
                }
            }
            let behind = behind.into_iter().chain(behind_again).map(|(setting, _)| setting);
            for setting in behind.chain(again) {
                if !self.undecided.contains(&setting) && !self.settings.contains(&setting) {
                    self.undecided.push(setting);
                }
            }
        }
    }
}

/// The places that were seen, by the device that they are of, and what of their paths is behind its folder. A setting
/// of a card over netlink has nothing there.
pub(super) struct Places {
    devices: BTreeMap<(Class, String), BTreeSet<String>>,
    /// All that a knob sets in the folder of any device.
    pub(super) tails: BTreeSet<String>,
}

impl Places {
    /// Also devices of which no place was asked for: a rule for one of them may set the kernel itself.
    fn of(host: &Host, observation: &Observation) -> Self {
        let mut devices: BTreeMap<(Class, String), BTreeSet<String>> = BTreeMap::new();
        let readings = observation.knobs.values().flatten();
        for place in readings.map(|reading| reading.place.as_str()) {
            let card = place.strip_prefix(place::CARDS).map(|rest| (Class::Net, rest, ""));
            let file = || {
                Class::ALL.iter().find_map(|class| Some((*class, place.strip_prefix(class.folder())?, "/")))
            };
            let Some((class, rest, kind)) = card.or_else(file) else { continue };
            let Some((name, tail)) = rest.split_once('/') else { continue };
            if name.contains('{') || !class.is_device(name) {
                continue;
            }
            let tails = devices.entry((class, name.to_owned())).or_default();
            if !kind.is_empty() {
                tails.insert(tail.to_owned());
            }
        }
        let tails = devices.values().flatten().cloned().collect();
        for class in [Class::Net, Class::Block, Class::Cpu] {
            for name in host.list(class.folder().trim_end_matches('/')) {
                if class.is_device(&name) {
                    devices.entry((class, name)).or_default();
                }
            }
        }
        Self { devices, tails }
    }
}

/// The files that set what a knob has a place for, in the order in which they are applied, and those that give what
/// they ask for.
fn relevant(host: &Host, places: &Places) -> Vec<File> {
    let read = |name: String| {
        let text = host.read_lossy(&name).ok()?;
        Some(File { rules: planish_udev::rules(&text), name })
    };
    let mut files: Vec<File> = files(host, &FOLDERS, ".rules").into_iter().filter_map(read).collect();
    let is_setting = |file: &File| file.rules.iter().any(|rule| sets(rule, &places.tails, true));
    let asked: BTreeSet<String> = {
        let rules = files.iter().filter(|file| is_setting(file)).flat_map(|file| &file.rules);
        let parts = rules.flat_map(|rule| &rule.parts).filter(|part| part.key == "ENV");
        parts.filter_map(|part| part.attribute.clone()).collect()
    };
    if !files.iter().any(is_setting) {
        return Vec::new();
    }
    let gives = |file: &File| {
        let mut parts = file.rules.iter().flat_map(|rule| &rule.parts);
        parts.any(|part| {
            part.key == "ENV"
                && part.operator.is_given()
                && part.attribute.as_ref().is_some_and(|key| asked.contains(key))
        })
    };
    files.retain(|file| is_setting(file) || gives(file));
    files
}

/// Whether a rule sets one of these files of a device, or what is of no device; or a card, where it is one.
fn sets(rule: &Rule, tails: &BTreeSet<String>, is_card: bool) -> bool {
    let is_wider = |command: &Command| is_card || !matches!(command, Command::Ethtool(_));
    rule.parts.iter().filter(|part| assigns_to(part)).any(|part| match (part.key.as_str(), &part.attribute) {
        ("ATTR", Some(pattern)) if pattern == "bdi/read_ahead_kb" => tails.contains("queue/read_ahead_kb"),
        ("ATTR", Some(path)) => tails.iter().any(|tail| means(path, tail)),
        ("RUN", _) => commands(&part.value).iter().any(is_wider),
        _ => true,
    })
}

/// What an effect sets of the places of a device, and whether it does for sure.
fn of_effect(effect: &Effect, seen: &Seen<'_>, tails: &BTreeSet<String>) -> Vec<(Setting, bool)> {
    let setting = |path: String, value: &str| (Setting::new(&path, value, &effect.source), effect.is_sure);
    match &effect.target {
        Target::Attribute(pattern) => {
            // Another name of the same file.
            let pattern =
                if pattern == "bdi/read_ahead_kb" { "queue/read_ahead_kb" } else { pattern.as_str() };
            let meant: Vec<&String> = tails.iter().filter(|tail| means(pattern, tail)).collect();
            // Of several folders it is the first that the kernel tells of, and that is in no order.
            let is_it = effect.is_sure && meant.len() == 1;
            let one = |tail: &&String| (setting(format!("{}/{tail}", seen.folder), &effect.value).0, is_it);
            meant.iter().map(one).collect()
        }
        Target::Ethtool(words) if seen.class == Class::Net => {
            let said = of_ethtool(words, &seen.name).into_iter();
            said.filter_map(|(knob, value)| Some(setting(cards::place_of(knob, &seen.name)?, &value)))
                .collect()
        }
        Target::Ethtool(_) => Vec::new(),
        Target::Sysctl(_) | Target::File(_) => {
            let of = |mut setting: Setting| {
                if !effect.is_sure && setting.path.contains(UNKNOWN) {
                    setting.path = called(&setting.path, &seen.name);
                }
                (setting, effect.is_sure)
            };
            everywhere(effect).map(of).collect()
        }
    }
}

/// A path with the name of a device for each component that may be it: by the name that it had before, or by its
/// number, which nobody looks up.
fn called(path: &str, name: &str) -> String {
    let may_be = |part: &str| part.contains(UNKNOWN) && place::matches(&part.replace(UNKNOWN, "*"), name);
    path.split('/').map(|part| if may_be(part) { name } else { part }).collect::<Vec<_>>().join("/")
}

/// What an effect sets that needs no device.
fn everywhere(effect: &Effect) -> impl Iterator<Item = Setting> {
    let path = match &effect.target {
        Target::Sysctl(key) => Some(place::of_sysctl(key)),
        Target::File(path) => Some(path.clone()),
        Target::Attribute(_) | Target::Ethtool(_) => None,
    };
    path.map(|path| Setting::new(&path, &effect.value, &effect.source)).into_iter()
}

/// What a call of ethtool sets of a card.
fn of_ethtool(words: &[String], card: &str) -> Vec<(&'static str, String)> {
    let option = words.first().and_then(|option| cards::option(option));
    let (Some(option), true) = (option, words.get(1).is_some_and(|name| name == card || name == UNKNOWN))
    else {
        return Vec::new();
    };
    let value = |said| match said {
        cards::Said::Value { knob, value, .. } => Some((knob, value)),
        cards::Said::Refused { .. } => None,
    };
    cards::settings(option, &words[2..]).into_iter().filter_map(value).collect()
}

#[cfg(test)]
mod tests;
