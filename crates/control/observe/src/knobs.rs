//! Every place of every knob: its value, the words that the host offers, and who may write it.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use planish_host::{Access as HostAccess, Host, Pattern, ReadError, Walk};
use planish_model::{
    Access, BootCpus, Catalogue, Class, Cpus, Knob, KnobId, NOT_GIVEN, Reading, ValueType, bootline,
    not_taken, place,
};
use planish_sorted::CollectMap as _;
use planish_sys::beside;

use crate::observe::Shared;

/// Knobs that are read sooner than a thread is started for half of them.
const FEW: usize = 64;

/// Readings of the knobs that are wanted. One that has no place here has one reading that says so, under its pattern.
/// Of many, every second one is read beside the others: those with a place for each CPU come one behind the other.
pub(crate) fn read(
    host: &Host,
    shared: &Shared,
    catalogue: &Catalogue,
    wanted: &dyn Fn(&Knob) -> bool,
    root: bool,
) -> BTreeMap<KnobId, Vec<Reading>> {
    let knobs: Vec<&Knob> = catalogue.knobs().filter(|knob| wanted(knob)).collect();
    // One walk for both: a device that comes meanwhile is there for all knobs or for none.
    let reader = Reader { host, shared, root, walk: Walk::new(host), modules: OnceLock::new() };
    let every = |step: usize, from: usize| {
        let knobs = knobs.iter().skip(from).step_by(step);
        knobs.map(|knob| (knob.id.clone(), reader.read(knob))).collect::<Vec<_>>()
    };
    if knobs.len() <= FEW {
        return every(1, 0).into_iter().collect_map();
    }
    let (odd, even) = beside(|| every(2, 1), || every(2, 0));
    even.into_iter().chain(odd).collect_map()
}

/// What the knobs of a host are read with.
struct Reader<'a> {
    host: &'a Host,
    shared: &'a Shared,
    root: bool,
    walk: Walk<'a>,
    modules: OnceLock<Option<String>>,
}

impl Reader<'_> {
    fn read(&self, knob: &Knob) -> Vec<Reading> {
        if knob.boot_parameter().is_some() {
            return vec![boot_reading(self.host, self.shared, knob, self.root)];
        }
        let mut readings = readings(self.host, &self.walk, knob, self.root);
        if !knob.modules.is_empty() {
            let folder = self.modules.get_or_init(|| folder_of_modules(self.host, &self.shared.release));
            let loaded =
                folder.as_deref().map_or_else(Vec::new, |folder| by_modules(self.host, knob, folder));
            // Where nothing is listed, any word may be written, and nothing is to be added.
            for offered in
                readings.iter_mut().map(|reading| &mut reading.offered).filter(|list| !list.is_empty())
            {
                let more: Vec<String> =
                    loaded.iter().filter(|word| !offered.contains(word)).cloned().collect();
                offered.extend(more);
            }
        }
        readings
    }
}

/// Those of which nothing is here.
pub(crate) fn nowhere(knobs: &BTreeMap<KnobId, Vec<Reading>>) -> impl Iterator<Item = &KnobId> {
    let nothing = |readings: &[Reading]| readings.iter().all(|reading| reading.access == Access::Absent);
    knobs.iter().filter(move |(_, readings)| nothing(readings)).map(|(id, _)| id)
}

/// The lowest and the highest value of the places of numbers whose machine tells them.
pub(crate) fn ranges(
    host: &Host,
    catalogue: &Catalogue,
    knobs: &BTreeMap<KnobId, Vec<Reading>>,
) -> BTreeMap<String, [u64; 2]> {
    let mut ranges = BTreeMap::new();
    for (id, readings) in knobs {
        let Some(knob) = catalogue.knob(id).ok().filter(|knob| knob.between.is_some()) else { continue };
        for reading in readings.iter().filter(|reading| reading.access != Access::Absent) {
            let holes = place::captures(&knob.path, &reading.place).unwrap_or_default();
            let read = |path: &String| host.read(&place::fill(path, &holes)).ok()?.trim().parse().ok();
            let ends = knob.between.as_ref().and_then(|[low, high]| Some([read(low)?, read(high)?]));
            ranges.extend(ends.map(|ends| (reading.place.clone(), ends)));
        }
    }
    ranges
}

/// What the running kernel was given at boot.
fn boot_reading(host: &Host, shared: &Shared, knob: &Knob, root: bool) -> Reading {
    if shared.cmdline.trim().is_empty() {
        return absent(&knob.path);
    }
    let given = bootline::value(&shared.cmdline, knob, shared.kernel);
    let given = given.map(|given| match is_ignored(host, knob, &given) {
        true => not_taken(&given),
        false => given,
    });
    let nothing = if matches!(knob.r#type, ValueType::Flag { .. }) { "0" } else { NOT_GIVEN };
    Reading {
        place: knob.path.clone(),
        value: Some(given.unwrap_or_else(|| nothing.to_owned())),
        unread: None,
        offered: Vec::new(),
        max: None,
        access: if root { Access::Writable } else { Access::NeedsRoot },
    }
}

/// Whether the kernel tells that it did not take the CPUs of `isolcpus` or `nohz_full`: a list that it cannot read, or
/// that names a CPU which it does not have, is passed over whole (`kernel/sched/isolation.c`). Of `isolcpus` only those
/// of `domain`, which is meant where no word is said, are told; CPU 0 is left out where no other one would be left.
fn is_ignored(host: &Host, knob: &Knob, given: &str) -> bool {
    let list = |name: &str| {
        let text = host.read(&format!("/sys/devices/system/cpu/{name}")).ok()?;
        // Linux 5.15 puts a byte zero behind an empty list, and others call one that was never made by its pointer.
        let text = text.trim_matches(|c: char| c.is_whitespace() || c == '\0').to_owned();
        if text.is_empty() || text == "(null)" { Some(Cpus::default()) } else { Cpus::parse(&text) }
    };
    let told_in = match knob.boot_parameter() {
        Some(("isolcpus", _)) => "isolated",
        Some(("nohz_full", _)) => "nohz_full",
        _ => return false,
    };
    let Some(taken) = list(told_in) else { return false };
    let Some(asked) = BootCpus::parse(given) else { return taken.is_empty() };
    let is_told = asked.words.is_empty() || asked.words.iter().any(|word| word == "domain");
    let last = list("possible").and_then(|cpus| cpus.iter().last());
    let Some(last) = last.filter(|_| is_told) else { return false };
    // A kernel that is built for many CPUs takes a list that goes beyond those of the machine.
    let asked: Cpus = asked.cpus(last).into_iter().filter(|cpu| *cpu != 0 && *cpu <= last).collect();
    if asked.is_empty() { taken.is_empty() } else { !asked.is_within(&taken) }
}

fn readings(host: &Host, walk: &Walk<'_>, knob: &Knob, root: bool) -> Vec<Reading> {
    if !knob.has_holes() {
        return vec![reading(host, knob, &knob.path, root).unwrap_or_else(|| absent(&knob.path))];
    }
    let pattern = Pattern::parse(&knob.path).ok();
    let places = pattern.map(|pattern| walk.candidates(&pattern)).unwrap_or_default();
    let mut readings: Vec<Reading> =
        places.iter().filter_map(|found| reading(host, knob, &found.path, root)).collect();
    if readings.is_empty() {
        readings.push(absent(&knob.path));
    }
    readings
}

fn absent(place: &str) -> Reading {
    let (place, access) = (place.to_owned(), Access::Absent);
    Reading { place, value: None, unread: None, offered: Vec::new(), max: None, access }
}

/// What a place shows; `None` where nothing is there.
fn reading(host: &Host, knob: &Knob, path: &str, root: bool) -> Option<Reading> {
    let access = match host.access(path) {
        HostAccess::Absent => return None,
        // A file of ours is replaced by root, whatever mode it has.
        _ if knob.is_own_file() && root => Access::Writable,
        _ if knob.is_own_file() => Access::NeedsRoot,
        HostAccess::Writable => Access::Writable,
        HostAccess::WriteOnly => Access::Writable,
        HostAccess::ReadOnly => Access::ReadOnly("the kernel lets nobody write it".to_owned()),
        HostAccess::ReadOnlyMount => Access::ReadOnly(Access::READ_ONLY_MOUNT.to_owned()),
        HostAccess::Denied(why) if root => Access::ReadOnly(why),
        HostAccess::Denied(_) => Access::NeedsRoot,
    };
    if knob.class == Class::Action {
        // Reading some of them acts too (stat_refresh), and none of them has a value.
        let unread = Some("it acts when written, and holds no value".to_owned());
        return Some(Reading {
            place: path.to_owned(),
            value: None,
            unread,
            offered: Vec::new(),
            max: None,
            access,
        });
    }
    let (value, unread) = match host.read(path) {
        Ok(text) => (Some(text.strip_suffix('\n').unwrap_or(&text).to_owned()), None),
        Err(ReadError::Absent { .. }) => return Some(absent(path)),
        Err(error) => (None, Some(why_unread(&error))),
    };
    let offered = offered(host, knob, path, value.as_deref());
    let max = limit(host, knob, path);
    Some(Reading { place: path.to_owned(), value, unread, offered, max, access })
}

fn why_unread(error: &ReadError) -> String {
    use std::error::Error;
    match error.source() {
        Some(source) => source.to_string(),
        None => error.to_string(),
    }
}

/// The largest number that the device takes, from the file that says so.
fn limit(host: &Host, knob: &Knob, path: &str) -> Option<i64> {
    let holes = place::captures(&knob.path, path).unwrap_or_default();
    host.read(&place::fill(knob.limit.as_deref()?, &holes)).ok()?.trim().parse().ok()
}

/// The words that this host offers: from the file that lists them, or from a value that shows its
/// alternatives.
fn offered(host: &Host, knob: &Knob, path: &str, value: Option<&str>) -> Vec<String> {
    let words = |text: &str| -> Vec<String> {
        text.split_whitespace().map(|word| word.trim_matches(['[', ']']).to_owned()).collect()
    };
    if let Some(list) = &knob.offered {
        let holes = place::captures(&knob.path, path).unwrap_or_default();
        return host.read(&place::fill(list, &holes)).map(|text| words(&text)).unwrap_or_default();
    }
    match (&knob.r#type, value) {
        (ValueType::Choice { .. }, Some(value)) if value.contains('[') => words(value),
        _ => Vec::new(),
    }
}

/// How the file of a module ends, packed or not (kmod(8)).
const MODULE_ENDS: [&str; 4] = [".ko", ".ko.xz", ".ko.zst", ".ko.gz"];

/// The folder of the running kernel's modules; `None` where there is none, where nobody may load one any more, and
/// where the kernel has no program to ask for one (`kernel/module/kmod.c`, `__request_module`: an empty path of
/// modprobe).
fn folder_of_modules(host: &Host, release: &str) -> Option<String> {
    let is = |name: &str, text: &str| {
        host.read(&format!("/proc/sys/kernel/{name}")).is_ok_and(|shown| shown.trim() == text)
    };
    let is_locked = is("modules_disabled", "1") || is("modprobe", "");
    let folder = (!is_locked && !release.is_empty()).then(|| format!("/lib/modules/{release}/kernel"))?;
    host.exists(&folder).then_some(folder)
}

/// The words of a knob for which the kernel loads a module when they are written. What is part of it is offered.
fn by_modules(host: &Host, knob: &Knob, folder: &str) -> Vec<String> {
    let is_there = |word: &&String| {
        let modules = knob.modules.iter().map(|module| module.replace("{word}", word));
        let mut files = modules.flat_map(|module| MODULE_ENDS.map(|end| format!("{folder}/{module}{end}")));
        files.any(|file| host.exists(&file))
    };
    let known = match &knob.r#type {
        ValueType::Choice { choice } => choice,
        _ => &knob.words,
    };
    known.iter().filter(is_there).cloned().collect()
}
