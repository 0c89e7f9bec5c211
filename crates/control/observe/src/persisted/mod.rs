//! What the next boot will set, and which file says so.
//!
//! Six sources are read: the kernel command line, `tmpfiles.d` (which writes to /sys), `sysctl.d` (which writes to
//! /proc/sys), rules of udev (which write either when a device appears), our unit that holds a limit, and for mounts
//! fstab with the units beside it. The last one wins; the others are kept as overridden, so that a user who edits the
//! wrong file learns which one is right.
//!
//! What a rule may set, and nobody can decide, is kept apart, as is what lies in /run, which goes with this boot, what
//! a credential holds, and options of modules, which may come before a line or behind it. So is a line of tmpfiles.d or
//! sysctl.d beside a rule for the same place, or beside a line of the other: systemd runs their programs while
//! udev goes through the devices, in no order. Where one of two such lines is ours, the other one
//! counts: ours may lose.
//!
//! Where the files of a boot loader can be read, the command line is that of the next boot, each argument with the file
//! and line that gives it; where they cannot, that of the running kernel. Of what a loader that is not known
//! gives a boot parameter nothing is said.
//!
//! Of daemons that write later only what they take from these files counts here: the lines of sysctl.d that tuned
//! writes again behind its own. What they set themselves is [`crate::writers`]'s.

mod cmdline;
pub(crate) mod given;
mod holder;
mod modprobe;
mod mounts;
pub(crate) mod sysctl;
mod tmpfiles;
pub(crate) mod udev;

use std::collections::{BTreeMap, HashMap};

use planish_host::Host;
use planish_model::{
    BootLoader, BootValue, Catalogue, Knob, NOT_GIVEN, Observation, Persisted, Reading, ValueType, bootline,
    page_pool, place,
};
use planish_sys::beside;

use crate::boot::{Boot, Given, NextBoot};
use crate::observe::Shared;
use crate::units;
use crate::writers::unit;
use tmpfiles::Tmpfiles;

/// Folders whose files go with this boot.
const RUN_SYSCTL: &str = "/run/sysctl.d";
const RUN_TMPFILES: &str = "/run/tmpfiles.d";

/// One line of one source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Setting {
    /// The path, which may hold shell wildcards, by the name that rows have for it ([`place::canonical`]).
    pub(crate) path: String,
    /// The value.
    pub(crate) value: String,
    /// File and line, or the argument of the command line.
    pub(crate) source: String,
    /// Places that the wildcards do not mean.
    pub(crate) spared: Vec<String>,
}

impl Setting {
    pub(crate) fn new(path: &str, value: &str, source: &str) -> Self {
        let path = place::canonical(path).into_owned();
        Self { path, value: value.to_owned(), source: source.to_owned(), spared: Vec::new() }
    }

    /// Whether the path leaves the choice of places to wildcards.
    pub(crate) fn is_wild(&self) -> bool {
        self.path.contains(['*', '?', '['])
    }

    /// Whether it means a place, by the name that rows have for it; a wildcard stays within its component.
    fn covers(&self, place: &str) -> bool {
        if !self.is_wild() {
            return self.path == place;
        }
        let (mut wild, mut plain) = (self.path.split('/'), place.split('/'));
        loop {
            match (wild.next(), plain.next()) {
                (Some(pattern), Some(name)) if place::matches(pattern, name) => {}
                (None, None) => return !self.spared.iter().any(|spared| spared == place),
                _ => return false,
            }
        }
    }
}

/// Whether a line of a file that systemd reads at boot sets a place, however it is written (`sysctl.d(5)`,
/// `tmpfiles.d(5)`).
#[must_use]
pub fn line_sets(file: &str, line: &str, place: &str) -> bool {
    let settings = match file {
        _ if file.contains("/tmpfiles.d/") => tmpfiles::parsed(line, file),
        _ if file.contains("/sysctl.d/") => sysctl::parse(line, file),
        _ => Vec::new(),
    };
    settings.iter().any(|setting| setting.covers(place))
}

/// What a boot will set, by place.
pub(crate) struct ToCome {
    pub(crate) persisted: BTreeMap<String, Persisted>,
    /// What may be set besides, and nobody can tell.
    pub(crate) undecided: BTreeMap<String, Vec<BootValue>>,
    /// See [`Observation::taken_back`].
    pub(crate) taken_back: BTreeMap<String, Persisted>,
    /// See [`Observation::by_boot_line`].
    pub(crate) by_boot_line: BTreeMap<String, Option<String>>,
}

/// The same for every place of a knob that was seen.
pub(crate) fn read(
    host: &Host,
    shared: &Shared,
    catalogue: &Catalogue,
    observation: &Observation,
    boot: &Boot,
) -> ToCome {
    let default_page = shared.default_page();
    let rows = cmdline::Rows::of(catalogue);
    let arguments = |given: &[Given]| rows.settings(given, shared.kernel);
    let again = |is_sure: bool| -> Vec<Setting> {
        let writers = observation.writers.iter().filter(move |seen| seen.again.is_sure == is_sure);
        let lines = writers.flat_map(|seen| &seen.again.lines);
        lines.map(|(path, line)| Setting::new(path, &line.value, &line.source)).collect()
    };
    // The rules of udev are as many files as all the others together.
    let of_rules = || udev::settings(host, observation);
    let of_others = || {
        let of_line = of_command_line(shared, boot, arguments);
        let (held, mounted) = (holder::settings(host), mounts::settings(host, observation));
        (of_line, Tmpfiles::read(host), sysctl::read(host, again(true)), held, mounted)
    };
    let (rules, (mut settings, mut tmpfiles, mut of_sysctl, held, mounted)) = beside(of_rules, of_others);
    if let Some(mask) = unit::mask_of(host, "systemd-tmpfiles-setup.service") {
        take_back(&mut of_sysctl.taken_back, tmpfiles.drain(), &mask);
    }
    let of_line = boot.next.as_ref().map_or(0, |_| settings.len());
    let of_files =
        tmpfiles.drain().chain(of_sysctl.settings).chain(rules.settings).chain(held).chain(mounted);
    settings.extend(taken_up(of_files, catalogue));
    let mut running = arguments(&Given::running(&shared.cmdline));
    let mut menu = boot.next.as_ref().and_then(|next| next.menu.as_deref()).map(arguments);
    let in_sysfs = |setting: &mut Setting| in_sysfs(setting, default_page);
    settings.iter_mut().chain(&mut running).chain(menu.iter_mut().flatten()).for_each(in_sysfs);
    let (mut persisted, mut by_boot_line) = (BTreeMap::new(), BTreeMap::new());
    let (by_line, settings) = (Settings::of(&settings[..of_line]), Settings::of(&settings));
    for (id, readings) in &observation.knobs {
        let knob = catalogue.knob(id).ok();
        let kept = |reading: &&Reading| {
            !knob.is_some_and(|knob| twin_is_later(&settings, knob, &reading.place, catalogue))
        };
        for reading in readings.iter().filter(kept) {
            let Some(found) = settings.winner(&reading.place) else { continue };
            let mut found = in_no_order(found);
            as_read(&mut found, knob, &reading.place);
            let is_by_line =
                by_line.of_place(&reading.place).len() == settings.of_place(&reading.place).len();
            if is_by_line && knob.is_some_and(|knob| knob.boot_parameter().is_none()) {
                let given = winner(&running, &reading.place).map(|found| found.value);
                by_boot_line.insert(reading.place.clone(), given);
                found.at_boot =
                    menu.as_deref().and_then(|menu| by_menu(menu, knob?, &found.value, &reading.place));
            }
            persisted.insert(reading.place.clone(), found);
        }
    }
    pools_without_row((&settings, &by_line, &running), observation, (&mut persisted, &mut by_boot_line));
    pools_set_behind_ours(&settings, observation, &mut persisted);
    let mut taken_back = taken_back(&of_sysctl.taken_back, observation, catalogue, (&settings, &persisted));
    persisted.extend(of_own_files(host, catalogue, observation));
    complete_all(&mut persisted, catalogue, observation, boot, menu.as_deref());
    let mut maybe = rules.undecided;
    maybe.extend(sysctl::of_this_boot(host).into_iter().chain(tmpfiles.undecided));
    maybe.extend(again(false));
    maybe.extend(modprobe::settings(host));
    maybe.iter_mut().for_each(in_sysfs);
    let undecided = undecided(&maybe, &persisted, catalogue, observation);
    taken_back.retain(|place, _| !persisted.contains_key(place));
    ToCome { persisted, undecided, taken_back, by_boot_line }
}

/// Lines of files that somebody still takes up: a module that has started reads its parameter no more.
fn taken_up(lines: impl Iterator<Item = Setting>, catalogue: &Catalogue) -> impl Iterator<Item = Setting> {
    let at_start: Vec<&str> =
        catalogue.knobs().filter(|knob| knob.is_given_at_boot()).map(|knob| knob.path.as_str()).collect();
    lines.filter(move |line| !at_start.contains(&line.path.as_str()))
}

/// Makes numbers of lines for /proc/sys what the kernel makes of them, whichever program writes them, and those of its
/// own arguments (`sysctl.vm.swappiness=010`). Other arguments than numbers are words that it knows by themselves.
fn as_read(found: &mut Persisted, knob: Option<&Knob>, place: &str) {
    let Some(knob) = knob.filter(|_| place.starts_with("/proc/sys/")) else { return };
    let lost = found.overridden.iter_mut().map(|lost| (&lost.source, &mut lost.value));
    for (by, value) in lost.chain([(&found.source, &mut found.value)]) {
        let is_number = value.starts_with(|first: char| first.is_ascii_digit());
        if !is_number && Reader::of(by).is_none() {
            continue;
        }
        if let Some(read) = sysctl::as_read(&knob.r#type, value) {
            *value = read;
        }
    }
}

/// Completes what the files of the boot loader say, of each parameter.
fn complete_all(
    persisted: &mut BTreeMap<String, Persisted>,
    catalogue: &Catalogue,
    observation: &Observation,
    boot: &Boot,
    menu: Option<&[Setting]>,
) {
    let Some(next) = &boot.next else { return };
    // Whoever reads that the loader is not known would take what is not there for what nobody can tell.
    let is_all = matches!(boot.loader, BootLoader::Unknown { .. });
    for knob in catalogue.knobs().filter(|knob| knob.boot_parameter().is_some()) {
        let reading = observation.knobs.get(&knob.id).and_then(|readings| readings.first());
        if let Some(reading) = reading {
            complete(persisted, knob, reading, (next, is_all), menu);
        }
    }
}

/// Takes back lines that no boot reads: what would is masked.
fn take_back(
    taken_back: &mut HashMap<String, Persisted>,
    lines: impl IntoIterator<Item = Setting>,
    mask: &str,
) {
    for line in lines {
        let of_place = taken_back.entry(line.path).or_insert_with(|| given_nothing(mask));
        of_place.overridden.push(BootValue::new(&line.value, &line.source));
    }
}

/// What a place is given whose lines something takes back.
fn given_nothing(by: &str) -> Persisted {
    Persisted { value: NOT_GIVEN.to_owned(), source: by.to_owned(), at_boot: None, overridden: Vec::new() }
}

/// Lines that take back what is said of a place, of those places that nothing else sets, nor clears by its twin.
fn taken_back(
    lines: &HashMap<String, Persisted>,
    observation: &Observation,
    catalogue: &Catalogue,
    (settings, persisted): (&Settings<'_>, &BTreeMap<String, Persisted>),
) -> BTreeMap<String, Persisted> {
    let mut found = BTreeMap::new();
    for (id, readings) in observation.knobs.iter().filter(|_| !lines.is_empty()) {
        for place in readings.iter().map(|reading| &reading.place) {
            let Some(line) = lines.get(place::canonical(place).as_ref()) else { continue };
            let twin = catalogue.knob(id).ok().and_then(|knob| twin_place(knob, place, catalogue));
            let is_twin_set = twin.is_some_and(|twin| settings.winner(&twin).is_some());
            if !is_twin_set && !persisted.contains_key(place) {
                found.insert(place.clone(), line.clone());
            }
        }
    }
    found
}

/// What a menu gives the place of a run-time knob that its sources give a value, where that is another one.
fn by_menu(menu: &[Setting], knob: &Knob, given: &str, place: &str) -> Option<String> {
    let value = winner(menu, place).map_or(NOT_GIVEN.to_owned(), |found| found.value);
    (!knob.r#type.same(&value, given)).then_some(value)
}

/// What files of ours say, which are read at each boot; and what is read behind them and says otherwise.
fn of_own_files(host: &Host, catalogue: &Catalogue, observation: &Observation) -> Vec<(String, Persisted)> {
    let mut found = Vec::new();
    for knob in catalogue.knobs().filter(|knob| knob.is_own_file()) {
        for reading in observation.knobs.get(&knob.id).into_iter().flatten() {
            let Some(value) = reading.value.clone() else { continue };
            let ours = knob.r#type.normal(&value);
            let later = match &knob.r#type {
                ValueType::Setting { directive, .. } => units::winner(host, &reading.place, directive, &ours),
                ValueType::Directives { directives } if value != NOT_GIVEN => {
                    units::overridden(host, &reading.place, directives, &ours)
                }
                _ => None,
            };
            let (source, overridden) = (reading.place.clone(), Vec::new());
            let own = Persisted { value, source, at_boot: None, overridden };
            found.push((reading.place.clone(), later.unwrap_or(own)));
        }
    }
    found
}

/// What the next command line sets, as far as it can be told.
fn of_command_line(
    shared: &Shared,
    boot: &Boot,
    arguments: impl Fn(&[Given]) -> Vec<Setting>,
) -> Vec<Setting> {
    let Some(next) = &boot.next else {
        let mut settings = arguments(&Given::running(&shared.cmdline));
        // What a boot parameter is at the next boot is in files that nobody could read: what runs says nothing of it.
        if matches!(boot.loader, BootLoader::Unknown { .. }) {
            settings.retain(|setting| !setting.path.starts_with("cmdline:"));
        }
        return settings;
    };
    arguments(&next.given)
}

/// What may be set besides what is known: by rules of which it cannot be told, and by lines that a rule competes with,
/// or a line for another program.
/// What would come to the same is not told.
fn undecided(
    maybe: &[Setting],
    persisted: &BTreeMap<String, Persisted>,
    catalogue: &Catalogue,
    observation: &Observation,
) -> BTreeMap<String, Vec<BootValue>> {
    let mut undecided: BTreeMap<String, Vec<BootValue>> = BTreeMap::new();
    for (id, readings) in &observation.knobs {
        let Ok(knob) = catalogue.knob(id) else { continue };
        for reading in readings {
            let found = persisted.get(&reading.place);
            let other = |value: &str| found.is_none_or(|found| !knob.r#type.same(&found.value, value));
            let place = place::canonical(&reading.place);
            let may = |setting: &&Setting| !found.is_some_and(|found| sysctl::is_before(setting, found));
            let by_rule = maybe.iter().filter(|setting| setting.covers(&place)).filter(may);
            let by_rule = by_rule.map(|setting| BootValue::new(&setting.value, &setting.source));
            let beside = found.and_then(|found| {
                let own = Reader::of(&found.source)?;
                let is_beside = |lost: &&BootValue| {
                    let reader = Reader::of(&lost.source).filter(|_| lost.line.is_some());
                    reader.is_some_and(|reader| reader != own && reader != Reader::Udev)
                };
                found.overridden.iter().rfind(is_beside).cloned()
            });
            let all: Vec<BootValue> = by_rule.chain(beside).filter(|may| other(&may.value)).collect();
            if !all.is_empty() {
                undecided.insert(reading.place.clone(), all);
            }
        }
    }
    for (place, may) in beside_our_pools(persisted, observation) {
        undecided.entry(place).or_default().push(may);
    }
    undecided
}

/// What a boot parameter lacks: the file that no longer gives what the running kernel was given, and a menu that says
/// something else than the files that it is made from. Where `is_all` is asked for, also of what nobody ever gave.
fn complete(
    persisted: &mut BTreeMap<String, Persisted>,
    knob: &Knob,
    reading: &Reading,
    (next, is_all): (&NextBoot, bool),
    menu: Option<&[Setting]>,
) {
    let nothing = if matches!(knob.r#type, ValueType::Flag { .. }) { "0" } else { NOT_GIVEN };
    let by_menu =
        menu.map(|menu| winner(menu, &reading.place).map_or(nothing.to_owned(), |found| found.value));
    let runs = reading.value.as_deref().is_some_and(|value| value != nothing);
    let given = by_menu.as_deref().is_some_and(|value| value != nothing);
    let lost = lost(next, knob);
    if !persisted.contains_key(&reading.place) && (runs || given || is_all || lost.is_some()) {
        let (source, overridden) = match lost {
            Some((own, by)) => (by, vec![own]),
            None => (next.source.clone(), Vec::new()),
        };
        let left_out = Persisted { value: nothing.to_owned(), source, at_boot: None, overridden };
        persisted.insert(reading.place.clone(), left_out);
    }
    if let Some(found) = persisted.get_mut(&reading.place) {
        found.at_boot = by_menu.filter(|value| !knob.r#type.same(value, &found.value));
    }
}

/// Gives what sets a pool of huge pages by another name the one in /sys, whose files take decimal numbers only.
fn in_sysfs(setting: &mut Setting, default_page: Option<u64>) {
    let Some(path) = page_pool::in_sysfs(&setting.path, default_page) else { return };
    let of_sysctl = setting.path.starts_with("/proc/sys/").then(|| sysctl::pages(&setting.value)).flatten();
    if let Some(pages) = of_sysctl {
        setting.value = pages.to_string();
    }
    setting.path = path;
}

/// What a file of ours gives a boot parameter in vain, and the line that takes it away.
fn lost(next: &NextBoot, knob: &Knob) -> Option<(BootValue, String)> {
    let words: Vec<&str> = next.lost.iter().map(|(given, _)| given.argument.as_str()).collect();
    let (value, index) = bootline::found(&words, knob, bootline::Kernel::default())?;
    let (given, by) = &next.lost[index];
    Some((BootValue::new(value, &given.source), by.clone()))
}

/// Pools of nodes that a line of ours sets, beside a line of a file of others for the pools of all nodes together: ours
/// has what theirs gives in it, and is written on top of it as a rule. Systemd promises no such order, and whoever
/// writes theirs once more (`sysctl --system`) takes ours away.
fn beside_our_pools(
    persisted: &BTreeMap<String, Persisted>,
    observation: &Observation,
) -> Vec<(String, BootValue)> {
    let pools = observation
        .pools
        .iter()
        .filter(|pool| pool.node.is_some() && persisted.get(&pool.place).is_some_and(Persisted::is_ours));
    let may_be = pools.filter_map(|pool| {
        let (_, line) = page_pool::share(&observation.pools, persisted, &pool.place)?;
        let pages = line.pages().filter(|_| !line.is_ours() && Reader::of(&line.source).is_some())?;
        // More than all lines of nodes give is what the others have besides.
        let whole = page_pool::of_all_nodes(pool.page_bytes);
        let is_less = pages < page_pool::sum(&observation.pools, persisted, &whole, |_| false)?;
        let value = format!("{pages} over all nodes");
        is_less.then(|| (pool.place.clone(), BootValue::new(&value, &line.source)))
    });
    may_be.collect()
}

/// Pools of nodes that a line of ours in tmpfiles.d sets in vain: a line of others there, for all nodes together, is
/// written behind it by the same program.
fn pools_set_behind_ours(
    settings: &Settings<'_>,
    observation: &Observation,
    persisted: &mut BTreeMap<String, Persisted>,
) {
    let last = |place: &str| settings.of_place(place).pop();
    let is_of_tmpfiles = |at: &usize| Reader::of(&settings.all[*at].source) == Some(Reader::Tmpfiles);
    let lost = observation.pools.iter().filter_map(|pool| {
        let own = persisted.get(&pool.place).filter(|own| own.is_ours())?;
        let at = last(&page_pool::of_all_nodes(pool.page_bytes)).filter(is_of_tmpfiles)?;
        let (pages, line) = page_pool::share(&observation.pools, persisted, &pool.place)?;
        let is_behind = last(&pool.place).filter(is_of_tmpfiles).is_some_and(|own| own < at);
        if !is_behind || line.is_ours() || line.source != settings.all[at].source {
            return None;
        }
        let mut overridden = own.overridden.clone();
        overridden.push(BootValue::new(&own.value, &own.source));
        let set =
            Persisted { value: pages.to_string(), source: line.source.clone(), at_boot: None, overridden };
        Some((pool.place.clone(), set))
    });
    let lost: Vec<(String, Persisted)> = lost.collect();
    persisted.extend(lost);
}

/// What sets the pools of all nodes together, for pages of a size that no row has such a place of: what comes of it,
/// and what the running kernel was given where the command line says it.
fn pools_without_row(
    (settings, of_line, running): (&Settings<'_>, &Settings<'_>, &[Setting]),
    observation: &Observation,
    (persisted, by_boot_line): (&mut BTreeMap<String, Persisted>, &mut BTreeMap<String, Option<String>>),
) {
    for pool in observation.pools.iter().filter(|pool| pool.node.is_some()) {
        let whole = page_pool::of_all_nodes(pool.page_bytes);
        let Some(found) = settings.winner(&whole).filter(|_| !persisted.contains_key(&whole)) else {
            continue;
        };
        if of_line.of_place(&whole).len() == settings.of_place(&whole).len() {
            by_boot_line.insert(whole.clone(), winner(running, &whole).map(|found| found.value));
        }
        persisted.insert(whole, in_no_order(found));
    }
}

/// Lines by the place that they are for: a host has a thousand places, and a file as many lines as somebody likes.
struct Settings<'s> {
    all: &'s [Setting],
    by_place: HashMap<&'s str, Vec<usize>>,
    wild: Vec<usize>,
}

impl<'s> Settings<'s> {
    fn of(all: &'s [Setting]) -> Self {
        let (mut by_place, mut wild): (HashMap<&str, Vec<usize>>, Vec<usize>) = (HashMap::new(), Vec::new());
        for (at, setting) in all.iter().enumerate() {
            match setting.is_wild() {
                true => wild.push(at),
                false => by_place.entry(&setting.path).or_default().push(at),
            }
        }
        Self { all, by_place, wild }
    }

    /// Those of a place, in the order in which they are applied. A row of the user may have another name for it.
    fn of_place(&self, place: &str) -> Vec<usize> {
        let place = place::canonical(place);
        let mut all = self.by_place.get(place.as_ref()).cloned().unwrap_or_default();
        all.extend(self.wild.iter().filter(|at| self.all[**at].covers(&place)));
        all.sort_unstable();
        all
    }

    /// The setting of a place that is applied last, and those that lose against it.
    fn winner(&self, place: &str) -> Option<Persisted> {
        let mut lines = self.of_place(place).into_iter().map(|at| &self.all[at]);
        let last = lines.next_back()?;
        let overridden = lines.map(|lost| BootValue::new(&lost.value, &lost.source)).collect();
        Some(Persisted { value: last.value.clone(), source: last.source.clone(), at_boot: None, overridden })
    }
}

/// The same of a few lines.
fn winner(settings: &[Setting], place: &str) -> Option<Persisted> {
    Settings::of(settings).winner(place)
}

/// Who reads a file at a boot; none waits for another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reader {
    Sysctl,
    Tmpfiles,
    Udev,
}

impl Reader {
    /// The reader of a source, where it is a file of theirs.
    fn of(source: &str) -> Option<Self> {
        match source {
            _ if udev::is_rule(source) => Some(Self::Udev),
            _ if source.contains("/tmpfiles.d/") => Some(Self::Tmpfiles),
            _ if source.contains("/sysctl.d/") || source.starts_with("/etc/sysctl.conf") => {
                Some(Self::Sysctl)
            }
            _ => None,
        }
    }
}

/// The same where a line of ours in sysctl.d stands beside one of others in tmpfiles.d, or the other way round: their
/// programs run in no order (systemd-sysctl.service, systemd-tmpfiles-setup.service), so that ours is not safe.
fn in_no_order(found: Persisted) -> Persisted {
    let Some(own) = Reader::of(&found.source).filter(|own| *own != Reader::Udev && found.is_ours()) else {
        return found;
    };
    let is_beside = |lost: &BootValue| {
        let is_theirs =
            Persisted::own_file(&lost.source).is_none() && lost.value.trim() != found.value.trim();
        is_theirs && Reader::of(&lost.source).is_some_and(|reader| reader != own)
    };
    let Some(at) = found.overridden.iter().rposition(is_beside) else { return found };
    let Persisted { value, source, at_boot, mut overridden } = found;
    let theirs = overridden.remove(at);
    overridden.push(BootValue::new(&value, &source));
    Persisted { value: theirs.value, source: theirs.source, at_boot, overridden }
}

/// Whether a line that is applied later sets the twin of a place, which clears this one.
fn twin_is_later(settings: &Settings<'_>, knob: &Knob, place: &str, catalogue: &Catalogue) -> bool {
    let Some(twin) = twin_place(knob, place, catalogue) else { return false };
    let last = |place: &str| settings.of_place(place).pop();
    let (Some(of_twin), Some(own)) = (last(&twin), last(place)) else { return false };
    // A zero sets nothing: it is what one twin shows when the other is set.
    let sets = |index: usize| settings.all[index].value.trim().parse() != Ok(0);
    of_twin > own && sets(of_twin) && sets(own)
}

/// The place of the twin of a knob that belongs to one of its places.
fn twin_place(knob: &Knob, place: &str, catalogue: &Catalogue) -> Option<String> {
    let twin = knob.twin.as_ref().and_then(|twin| catalogue.knob(twin).ok())?;
    Some(place::fill(&twin.path, &place::captures(&knob.path, place)?))
}

/// The folders that a boot leaves as they are.
fn kept<'a>(folders: &[&'a str]) -> Vec<&'a str> {
    folders.iter().copied().filter(|folder| !folder.starts_with("/run/")).collect()
}

/// Files of /run that count now, with their text.
fn of_run(host: &Host, folders: &[&str], extension: &str) -> Vec<(String, String)> {
    let names = files(host, folders, extension).into_iter().filter(|name| name.starts_with("/run/"));
    names.filter_map(|name| host.read_lossy(&name).ok().map(|text| (name, text))).collect()
}

/// Configuration files of a kind in the order in which they are applied: sorted by name over all folders, and
/// of one name only the file of the first folder, which may be empty to mask the others.
pub(crate) fn files(host: &Host, folders: &[&str], extension: &str) -> Vec<String> {
    let mut by_name: BTreeMap<String, String> = BTreeMap::new();
    for folder in folders {
        for name in host.list(folder) {
            if name.ends_with(extension) && !name.starts_with('.') {
                by_name.entry(name.clone()).or_insert_with(|| format!("{folder}/{name}"));
            }
        }
    }
    by_name.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_setting_wins_and_the_others_are_told() {
        let setting = Setting::new;
        let settings = [
            setting("/sys/block/*/queue/scheduler", "none", "a.conf:1"),
            setting("/sys/block/sda/queue/scheduler", "bfq", "b.conf:2"),
        ];
        let found = winner(&settings, "/sys/block/sda/queue/scheduler").expect("set twice");
        assert_eq!((found.value.as_str(), found.source.as_str()), ("bfq", "b.conf:2"));
        assert_eq!(found.overridden, [BootValue::new("none", "a.conf:1")]);
        let found = winner(&settings, "/sys/block/vda/queue/scheduler").expect("set once");
        assert_eq!(found.value, "none");
        assert_eq!(winner(&settings, "/sys/block/vda/queue/nomerges"), None);
    }

    #[test]
    fn numbers_of_arguments_are_what_the_kernel_reads_and_words_stay() {
        let catalogue = Catalogue::embedded().expect("sound");
        let read = |id: &str, value: &str| {
            let knob = catalogue.knobs().find(|knob| knob.id.as_str() == id).expect("a row");
            let source = "/etc/default/grub:3".to_owned();
            let mut found =
                Persisted { value: value.to_owned(), source, at_boot: None, overridden: Vec::new() };
            as_read(&mut found, Some(knob), &knob.path);
            found.value
        };
        assert_eq!(read("vm.swappiness", "010"), "8");
        assert_eq!(read("vm.swappiness", "0xa"), "10");
        assert_eq!(read("vm.swappiness", "8"), "8");
        assert_eq!(read("vm.swappiness", "on"), "on");
    }

    #[test]
    fn a_line_for_another_name_of_a_place_is_one_for_the_place() {
        const GOVERNOR: &str = "/sys/devices/system/cpu/cpu3/cpufreq/scaling_governor";
        const SCHEDULER: &str = "/sys/block/nvme1n1/queue/scheduler";
        const READ_AHEAD: &str = "/sys/block/nvme1n1/queue/read_ahead_kb";
        for (path, place, is_meant) in [
            ("/sys/devices/system/cpu/cpufreq/policy3/scaling_governor", GOVERNOR, true),
            ("/sys/devices/system/cpu/cpufreq/policy*/scaling_governor", GOVERNOR, true),
            ("/sys/devices/system/cpu/cpufreq/policy[0-2]/scaling_governor", GOVERNOR, false),
            ("/sys/devices/system/cpu/cpu[0-7]/cpufreq/scaling_governor", GOVERNOR, true),
            ("/sys/class/block/nvme1n1/queue/scheduler", SCHEDULER, true),
            ("/sys/block/nvme[01]n1/queue/scheduler", SCHEDULER, true),
            ("/sys/block/nvme[!1]n1/queue/scheduler", SCHEDULER, false),
            ("/sys/block/nvme1n1/bdi/read_ahead_kb", READ_AHEAD, true),
            // A row of the user's own has such a name for its places.
            ("/sys/block/nvme1n1/queue/scheduler", "/sys/class/block/nvme1n1/queue/scheduler", true),
        ] {
            let found = winner(&[Setting::new(path, "x", "a.conf:1")], place);
            assert_eq!(found.is_some(), is_meant, "{path} {place}");
        }
    }

    /// One of them is looked at for each place of a host, and not each for all.
    #[test]
    fn many_lines_of_one_key_take_no_more_time_with_each_place() {
        let line = |number: usize| {
            Setting::new("/proc/sys/vm/swappiness", &number.to_string(), &format!("a.conf:{number}"))
        };
        let all: Vec<Setting> = (1..=200_000).map(line).collect();
        let settings = Settings::of(&all);
        let begin = planish_sys::process::thread_cpu_time();
        for number in 0..1000 {
            assert_eq!(settings.winner(&format!("/proc/sys/vm/other_{number}")), None);
        }
        let found = settings.winner("/proc/sys/vm/swappiness").expect("set");
        assert_eq!((found.value.as_str(), found.overridden.len()), ("200000", 199_999));
        let took = planish_sys::process::thread_cpu_time() - begin;
        assert!(took < std::time::Duration::from_secs(1), "{took:?}");
    }

    #[test]
    fn of_two_twins_the_one_that_is_set_last_is_there_after_a_boot() {
        let catalogue = Catalogue::embedded().expect("sound");
        let (bytes, ratio) = ("/proc/sys/vm/dirty_bytes", "/proc/sys/vm/dirty_ratio");
        let knob = |id: &str| catalogue.knob(&planish_model::KnobId::new(id)).expect("a row");
        let is_cleared = |settings: &[Setting], id: &str, place: &str| {
            twin_is_later(&Settings::of(settings), knob(id), place, &catalogue)
        };
        let line = |path, value| Setting::new(path, value, "x.conf:1");
        let both = [line(bytes, "4096000"), line(ratio, "10")];
        assert!(is_cleared(&both, "vm.dirty_bytes", bytes));
        assert!(!is_cleared(&both, "vm.dirty_ratio", ratio));
        assert!(!is_cleared(&[line(bytes, "4096000"), line(ratio, "0")], "vm.dirty_bytes", bytes));
        assert!(!is_cleared(&[line(bytes, "0"), line(ratio, "10")], "vm.dirty_bytes", bytes), "as it says");
        assert!(!is_cleared(&both[..1], "vm.dirty_bytes", bytes));
    }

    #[test]
    fn a_line_of_ours_for_a_node_is_told_beside_one_of_others_for_all() {
        let total = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages";
        let node = |node: u32| {
            format!("/sys/devices/system/node/node{node}/hugepages/hugepages-2048kB/nr_hugepages")
        };
        let pool = |number: u32| planish_model::PoolReading {
            node: Some(number),
            page_bytes: 2 << 20,
            place: node(number),
            pages: 0,
            free: 0,
            surplus: 0,
        };
        let observation = Observation { pools: vec![pool(0), pool(1)], ..Observation::default() };
        let told = |all: (&str, &str), own: &str| {
            let line = |(value, source): (&str, &str)| Persisted {
                value: value.to_owned(),
                source: source.to_owned(),
                at_boot: None,
                overridden: Vec::new(),
            };
            let own = line((own, "/etc/tmpfiles.d/90-planish.conf:3"));
            let persisted = BTreeMap::from([(total.to_owned(), line(all)), (node(0), own)]);
            beside_our_pools(&persisted, &observation)
        };
        let may = BootValue::new("1024 over all nodes", "/etc/sysctl.d/99-huge.conf:1");
        assert_eq!(told(("1024", "/etc/sysctl.d/99-huge.conf:1"), "1024"), [(node(0), may)]);
        assert_eq!(told(("1024", "/etc/sysctl.d/99-huge.conf:1"), "512"), [], "all that ours has is in it");
        assert_eq!(told(("1024", "kernel command line: hugepages=1024"), "1024"), [], "before any file");
    }
}
