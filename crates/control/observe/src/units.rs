//! What units of systemd give their services: the files that say so, and what runs.
//!
//! A setting of a unit is the last assignment in its file and its drop-ins. Those are sorted by name over all folders,
//! and of one name only the file of the first folder counts (`systemd.unit(5)`): those of the unit, of its template,
//! of what its name begins with (`a-.service.d` for `a-b.service`), and of all units of its kind (`service.d`), last.
//! Aliases and templates are passed over: the unit that they stand for has the settings.
//!
//! What the files of a unit do not say systemd may be told for all of them, in `system.conf` and its drop-ins.

mod behind;

use std::collections::{BTreeMap, BTreeSet};

use planish_host::Host;
use planish_model::{
    Access, Catalogue, Cpus, KnobId, NOT_GIVEN, Observation, Reading, UnitLimit, UnitSetting, ValueType,
    Want, listed, part_at, place, said, variable,
};
use planish_sorted::CollectMap as _;

pub use self::behind::{later, overruled};
pub(crate) use self::behind::{overridden, winner};
use crate::parts;
use crate::persisted::files;
use crate::writers::unit::{BEFORE, FOLDERS, GENERATED, value_in};
use crate::writers::{has_unit, is_systemd};

/// Adds what the units have that a profile means: a place for each file that may be written, with what the unit has
/// without it.
pub fn unit_settings(
    host: &Host,
    catalogue: &Catalogue,
    want: &BTreeMap<KnobId, Want>,
    observation: &mut Observation,
) {
    let mut names: [Option<Vec<String>>; 2] = [None, None];
    for (id, want) in want {
        let Ok(knob) = catalogue.knob(id) else { continue };
        let ValueType::Setting { directive, .. } = &knob.r#type else { continue };
        let patterns = patterns(want);
        let readings = observation.knobs.entry(id.clone()).or_default();
        let is_of_parts = knob.r#type.is_cpus_of_a_unit();
        let all = || if is_of_parts { parts::names(host) } else { with_instances(host) };
        let all = names[usize::from(is_of_parts)].get_or_insert_with(all);
        if !is_of_parts {
            let known = |name: &String| !all.contains(name);
            let named: Vec<String> = named(host, &patterns).filter(known).collect();
            all.extend(named);
        }
        for name in all.iter() {
            let path = place::fill(&knob.path, &[("unit", name)]);
            if is_of_parts {
                // Of those that are not meant too: who means none of them is told which there are.
                let given = given_cpus(host, name, directive, |file| file != path);
                let hindered = parts::without_cpuset(host).map(str::to_owned);
                let in_force = parts::in_force(host, name);
                let setting = UnitSetting { given, in_force, hindered, ..UnitSetting::default() };
                observation.units.insert(path.clone(), setting);
            }
            if !patterns.iter().any(|only| place::is_meant(&knob.path, &path, only)) {
                continue;
            }
            if !is_of_parts {
                let unit = format!("{name}.service");
                let given = given(host, &unit, directive, |file| file != path);
                let (running, default) = (running(host, &unit, directive), default(host, directive));
                let setting = UnitSetting { given, running, default, ..UnitSetting::default() };
                observation.units.insert(path.clone(), setting);
            }
            readings.retain(|reading| reading.place != knob.path);
            if !readings.iter().any(|reading| reading.place == path) {
                readings.push(not_given(path, observation.host.root));
            }
        }
    }
    // Who means none of them is told which there are.
    let [services, _] = names;
    observation.services = services.into_iter().flatten().collect();
}

/// A file of ours that is not there yet.
pub(crate) fn not_given(place: String, root: bool) -> Reading {
    let access = if root { Access::Writable } else { Access::NeedsRoot };
    Reading { place, value: Some(NOT_GIVEN.to_owned()), unread: None, offered: Vec::new(), max: None, access }
}

/// Which units a wanted value is for.
fn patterns(want: &Want) -> Vec<&str> {
    match want {
        Want::Case(case) => case.only.as_deref().into_iter().collect(),
        Want::Cases(cases) => cases.iter().filter_map(|case| case.only.as_deref()).collect(),
        _ => Vec::new(),
    }
}

/// Services of a host by name, without their kind: those of which there is a file, and of one with several names the
/// real one. None where process 1 is no systemd.
#[must_use]
pub fn services(host: &Host) -> Vec<String> {
    let mut names = BTreeSet::new();
    for folder in FOLDERS.iter().filter(|_| is_systemd(host)) {
        for file in host.list(folder) {
            let Some(name) = file.strip_suffix(".service").filter(|name| !name.ends_with('@')) else {
                continue;
            };
            let target = host.read_link(&format!("{folder}/{file}"));
            if target.is_none_or(|target| target.rsplit('/').next() == Some(&file)) {
                names.insert(name.to_owned());
            }
        }
    }
    names.into_iter().collect()
}

/// Services by name, and instances of templates that are known: by drop-ins of their own, or since another unit pulls
/// them in.
fn with_instances(host: &Host) -> Vec<String> {
    let all: BTreeSet<String> =
        services(host).into_iter().chain(instances(host)).chain(pulled_in(host)).collect();
    all.into_iter().collect()
}

/// Instances that links of other units pull in (`WantedBy=` of systemd.unit(5)), without their kind.
fn pulled_in(host: &Host) -> Vec<String> {
    let mut names = Vec::new();
    for folder in FOLDERS.iter().chain(&GENERATED).filter(|_| is_systemd(host)) {
        let pulling = |name: &String| [".wants", ".requires"].iter().any(|end| name.ends_with(end));
        for links in host.list(folder).into_iter().filter(pulling) {
            let units = host.list(&format!("{folder}/{links}")).into_iter();
            names.extend(
                units
                    .filter(|unit| template(unit).is_some_and(|template| has_unit(host, &template)))
                    .filter_map(|unit| unit.strip_suffix(".service").map(str::to_owned)),
            );
        }
    }
    names
}

/// Templates (`postgresql@`) and instances (`postgresql@16-main`) that patterns name in full: of an instance that is
/// started by hand no file tells, and a drop-in of a template is for all of them.
fn named(host: &Host, patterns: &[&str]) -> impl Iterator<Item = String> {
    // As names of units are (`systemd.unit(5)`): no blanks, and nothing that is yet to be filled in.
    let is_name = |only: &str| only.chars().all(|c| c.is_ascii_alphanumeric() || ":-_.\\@".contains(c));
    let is_one = |only: &&&str| {
        let template = only.split_once('@').map(|(name, _)| format!("{name}@.service"));
        is_name(only) && template.is_some_and(|template| has_unit(host, &template))
    };
    patterns.iter().filter(is_one).map(|only| (*only).to_owned()).collect::<Vec<_>>().into_iter()
}

/// Instances of templates by name, without their kind, as far as they have drop-ins of their own: of those that have
/// not no file tells, and the template has their settings.
pub(crate) fn instances(host: &Host) -> Vec<String> {
    let mut names = BTreeSet::new();
    for folder in SET_PROPERTY.iter().chain(&FOLDERS) {
        let units =
            host.list(folder).into_iter().filter_map(|name| name.strip_suffix(".d").map(str::to_owned));
        names.extend(units.filter(|unit| {
            unit.ends_with(".service") && template(unit).is_some_and(|template| has_unit(host, &template))
        }));
    }
    let own = names.iter().filter_map(|unit| unit.strip_suffix(".service"));
    let has_file = |name: &str| FOLDERS.iter().any(|folder| host.exists(&format!("{folder}/{name}.service")));
    own.filter(|name| !has_file(name)).map(str::to_owned).collect()
}

/// What the files of a unit give, and the file and line. `counts` leaves files out.
pub(crate) fn given(
    host: &Host,
    unit: &str,
    directive: &str,
    counts: impl Fn(&str) -> bool,
) -> Option<(String, String)> {
    said_last(host, unit, directive, counts).filter(|(value, _)| !value.is_empty())
}

/// The same with an empty value where the last that is said takes back what was said before.
fn said_last(
    host: &Host,
    unit: &str,
    directive: &str,
    counts: impl Fn(&str) -> bool,
) -> Option<(String, String)> {
    said_last_by(host, (unit, &files_of(host, unit)), directive, counts)
}

/// The same of some files of the unit.
fn said_last_by(
    host: &Host,
    (unit, files): (&str, &[String]),
    directive: &str,
    counts: impl Fn(&str) -> bool,
) -> Option<(String, String)> {
    let mut found = None;
    for path in files.iter().filter(|path| counts(path)) {
        let text = host.read_lossy(path).unwrap_or_default();
        if let Some((line, value)) = last(&text, section(unit), directive) {
            found = Some((value, format!("{path}:{line}")));
        }
    }
    let Some(variable) = variable(directive) else { return found };
    let of_unit = (unit, files);
    taken_away(host, of_unit, variable).or_else(|| by_file_of_variables(host, of_unit, variable)).or(found)
}

/// The line that takes a variable away, whoever gives it (`UnsetEnvironment=` of systemd.exec(5)).
fn taken_away(host: &Host, of_unit: (&str, &[String]), variable: &str) -> Option<(String, String)> {
    let is_it =
        |(words, _): &(String, String)| planish_model::assignments(words).iter().any(|word| word == variable);
    let (_, source) = all_by(host, of_unit, "UnsetEnvironment").into_iter().rfind(is_it)?;
    Some((String::new(), source))
}

/// What a file of variables gives one, whatever the unit's own files say (`EnvironmentFile=` of systemd.exec(5)): of
/// several the last, and of a pattern the last by its name.
fn by_file_of_variables(host: &Host, of_unit: (&str, &[String]), variable: &str) -> Option<(String, String)> {
    let named = all_by(host, of_unit, "EnvironmentFile").into_iter();
    let files = named.flat_map(|(file, _)| {
        let file = file.trim_start_matches('-').to_owned();
        match file.rsplit_once('/') {
            Some((folder, pattern)) if pattern.contains(['*', '?', '[']) => {
                let mut names = host.list(folder);
                names.retain(|name| place::may_mean(pattern, name));
                names.sort();
                names.into_iter().map(|name| format!("{folder}/{name}")).collect()
            }
            _ => vec![file],
        }
    });
    let files: Vec<String> = files.collect();
    files.iter().rev().find_map(|file| {
        let (line, value) = value_in(host, file, variable)?;
        Some((value, format!("{file}:{line}")))
    })
}

/// What the files of each unit give it, of all that a record keeps of them: by unit and directive, with the file. A
/// unit that is given nothing of it is told all the same.
#[must_use]
pub fn given_to_units(host: &Host, catalogue: &Catalogue) -> BTreeMap<String, BTreeMap<String, String>> {
    let variables = catalogue.knobs().filter_map(|knob| match &knob.r#type {
        ValueType::Setting { directive, .. } if variable(directive).is_some() => Some(directive.clone()),
        _ => None,
    });
    let variables: Vec<String> = variables.collect();
    let services = with_instances(host).into_iter().map(|name| format!("{name}.service"));
    let units = services.chain(parts::names(host));
    let of_unit = |unit: String| {
        let files = files_of(host, &unit);
        let texts = files.iter().filter_map(|path| host.read_lossy(path).ok());
        let mut names: BTreeSet<String> = variables.iter().cloned().collect();
        for text in texts {
            names.extend(lines(&text, section(&unit)).into_iter().map(|(name, ..)| name));
        }
        let names = names.into_iter().filter(|name| planish_host::is_unit_directive(name));
        let given = |name: String| {
            let is_list = ["CPUAffinity", "AllowedCPUs"].contains(&name.as_str());
            let all = |_: &str| true;
            let list = || given_cpus(host, &unit, &name, all);
            let given = if is_list { list() } else { None }.or_else(|| given(host, &unit, &name, all));
            let (value, source) = given?;
            let file = source.rsplit_once(':').map_or(source.as_str(), |(path, _)| path);
            Some((name, format!("{value} ({file})")))
        };
        let given = names.filter_map(given).collect_map();
        (unit, given)
    };
    units.map(of_unit).collect_map()
}

/// All that the files of a unit assign to a directive of which there may be several, each with its file and line; an
/// empty value takes back what was said before.
pub(crate) fn all(host: &Host, unit: &str, directive: &str) -> Vec<(String, String)> {
    all_by(host, (unit, &files_of(host, unit)), directive)
}

fn all_by(host: &Host, (unit, files): (&str, &[String]), directive: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for path in files {
        for (line, value) in assignments(&host.read_lossy(path).unwrap_or_default(), section(unit), directive)
        {
            if value.is_empty() {
                found.clear();
            } else {
                found.push((value, format!("{path}:{line}")));
            }
        }
    }
    found
}

/// The CPUs that files of others give a part of the system, and the last of them that says something.
#[must_use]
pub fn cpus_by_others(host: &Host, place: &str) -> Option<(String, String)> {
    given_cpus(host, part_at(place)?, "AllowedCPUs", |file| file != place)
}

/// The CPUs that the files of a unit give: each line adds to those before it, and an empty one takes them back. With
/// them the last line that says something.
fn given_cpus(
    host: &Host,
    unit: &str,
    directive: &str,
    counts: impl Fn(&str) -> bool,
) -> Option<(String, String)> {
    let mut files = files_of(host, unit);
    files.retain(|path| counts(path));
    given_cpus_by(host, (unit, &files), directive)
}

/// The same of some files of the unit.
fn given_cpus_by(host: &Host, (unit, files): (&str, &[String]), directive: &str) -> Option<(String, String)> {
    let mut found: Option<(Cpus, String)> = None;
    for path in files {
        let text = host.read_lossy(path).unwrap_or_default();
        for (line, value) in assignments(&text, section(unit), directive) {
            let list = listed(&value);
            let before = found.take().map(|(cpus, _)| cpus).unwrap_or_default();
            // systemd passes over a list that it cannot read.
            let all = Cpus::parse(&list).map_or_else(|| before.clone(), |more| before.union(&more));
            found = (!value.is_empty() && !all.is_empty()).then(|| (all, format!("{path}:{line}")));
        }
    }
    found.map(|(cpus, source)| (cpus.to_string(), source))
}

/// The CPUs that the files of a service pin it to, and the file and line; none of them are named where they are those
/// of its nodes (`CPUAffinity=numa`).
pub(crate) fn pins(host: &Host, unit: &str) -> Option<(Cpus, String)> {
    let named = given_cpus(host, unit, "CPUAffinity", |_| true);
    let named = named.and_then(|(cpus, source)| Some((Cpus::parse(&cpus)?, source)));
    let of_nodes = || given(host, unit, "CPUAffinity", |_| true).map(|(_, source)| (Cpus::default(), source));
    named.or_else(of_nodes)
}

/// The CPUs that systemd pins itself to, and with it all that it starts (`CPUAffinity=` of systemd-system.conf(5)).
pub(crate) fn pins_of_all(host: &Host) -> Option<(Cpus, String)> {
    let (cpus, source) = of_manager(host, "CPUAffinity")?;
    let cpus = Cpus::parse(&listed(&cpus)).unwrap_or_default();
    Some((cpus, source))
}

/// CPUs or memory nodes that the files of a unit allow it, or that its control group has, where they limit it at all.
pub(crate) fn limits(host: &Host, unit: &str) -> Vec<UnitLimit> {
    const DIRECTIVES: [(&str, bool); 4] = [
        ("AllowedCPUs", false),
        ("StartupAllowedCPUs", false),
        ("AllowedMemoryNodes", true),
        ("StartupAllowedMemoryNodes", true),
    ];
    let by_files = DIRECTIVES.into_iter().filter_map(|(directive, is_memory)| {
        let (list, source) = given_cpus(host, unit, directive, |_| true)?;
        let (unit, directive, list) = (unit.to_owned(), directive.to_owned(), Cpus::parse(&list)?);
        Some(UnitLimit { unit, directive, is_memory, list, source })
    });
    let in_force =
        [("cpuset.cpus", false), ("cpuset.mems", true)].into_iter().filter_map(|(file, is_memory)| {
            let source = format!("{}/{}/{file}", parts::ROOT, group(unit)?);
            let list = Cpus::parse(host.read(&source).ok()?.trim()).filter(|list| !list.is_empty())?;
            Some(UnitLimit { unit: unit.to_owned(), directive: file.to_owned(), is_memory, list, source })
        });
    by_files.chain(in_force).collect()
}

/// Where the control group of a slice lies, below the root: `a-b.slice` lies in `a.slice`.
fn group(slice: &str) -> Option<String> {
    let above = beginnings(slice);
    let above = above.iter().rev().map(|name| name.replace("-.slice", ".slice"));
    slice.ends_with(".slice").then(|| above.chain([slice.to_owned()]).collect::<Vec<_>>().join("/"))
}

/// The slices that a unit of a slice lies in, the uppermost first.
pub(crate) fn slices_above(slice: &str) -> Vec<String> {
    let above = group(slice).unwrap_or_default();
    above.split('/').filter(|name| !name.is_empty() && *name != "-.slice").map(str::to_owned).collect()
}

/// The slice that a service is put into. An instance has one of its template by itself (`systemd.service(5)`).
pub(crate) fn slice(host: &Host, unit: &str) -> String {
    let by_itself = || match template(unit) {
        Some(template) => {
            format!("system-{}.slice", template.trim_end_matches("@.service").replace('-', "\\x2d"))
        }
        None => "system.slice".to_owned(),
    };
    given(host, unit, "Slice", |_| true).map_or_else(by_itself, |(slice, _)| slice)
}

/// The template of an instance.
pub(crate) fn template(unit: &str) -> Option<String> {
    let (name, rest) = unit.split_once('@')?;
    let (instance, kind) = rest.rsplit_once('.')?;
    (!instance.is_empty()).then(|| format!("{name}@.{kind}"))
}

/// Folders of drop-ins that `systemctl set-property` writes, and that units have which were made without a file, before
/// all others (`systemd.unit(5)`).
pub(crate) const SET_PROPERTY: [&str; 3] =
    ["/etc/systemd/system.control", "/run/systemd/system.control", "/run/systemd/transient"];

/// Folders of drop-ins of units, those that hide others of their name first: what generators make stands behind what
/// an administrator says, and before what packages say, or last of all (`systemd.unit(5)`).
fn drop_in_places() -> impl Iterator<Item = &'static str> {
    let ([generated, late], (own, packaged)) = (GENERATED, FOLDERS.split_at(2));
    BEFORE.iter().chain(own).copied().chain([generated]).chain(packaged.iter().copied()).chain([late])
}

/// The files of a unit in the order in which they are read: its own, and its drop-ins.
fn files_of(host: &Host, unit: &str) -> Vec<String> {
    files_in(host, unit, |_| true)
}

/// The same of the folders that count: a file hides those of its name in the folders behind its own.
fn files_in(host: &Host, unit: &str, counts: impl Fn(&str) -> bool) -> Vec<String> {
    let drop_ins = drop_in_folders(&[unit.to_owned()]);
    let drop_ins: Vec<&str> = drop_ins.iter().map(String::as_str).filter(|folder| counts(folder)).collect();
    own_file(host, unit, &counts).into_iter().chain(files(host, &drop_ins, ".conf")).collect()
}

/// The file of a unit itself; of an instance that of its template, where it has none of its own.
fn own_file(host: &Host, unit: &str, counts: impl Fn(&str) -> bool) -> Option<String> {
    let names = [Some(unit.to_owned()), template(unit)];
    let folders = || FOLDERS.iter().chain(&GENERATED).filter(|folder| counts(folder));
    let mut paths =
        names.iter().flatten().flat_map(|name| folders().map(move |folder| format!("{folder}/{name}")));
    paths.find(|path| host.exists(path))
}

/// The folders in which drop-ins of a unit of some names lie, the first one first.
pub(crate) fn drop_in_folders(names: &[String]) -> Vec<String> {
    let folders = drop_in_places;
    let mut all = Vec::new();
    for name in names {
        let own = [Some(name.clone()), template(name)].into_iter().flatten().chain(beginnings(name));
        let own: Vec<String> = own.collect();
        all.extend(folders().flat_map(|folder| own.iter().map(move |name| format!("{folder}/{name}.d"))));
    }
    let kind = names.first().and_then(|name| name.rsplit_once('.')).map(|(_, kind)| kind);
    all.extend(kind.into_iter().flat_map(|kind| folders().map(move |folder| format!("{folder}/{kind}.d"))));
    all
}

/// What a name begins with, up to each of its dashes, the longest first: those have drop-ins for all units of them.
fn beginnings(unit: &str) -> Vec<String> {
    let Some((name, kind)) = unit.rsplit_once('.') else { return Vec::new() };
    let name = name.split('@').next().unwrap_or(name);
    let dashes = name.char_indices().filter(|(at, c)| *c == '-' && *at > 0 && at + 1 < name.len());
    let mut all: Vec<String> = dashes.map(|(at, _)| format!("{}.{kind}", &name[..=at])).collect();
    all.reverse();
    all
}

/// The names of a unit: its own, and those that links give it.
pub(crate) fn names_of(host: &Host, unit: &str) -> Vec<String> {
    let mut names = vec![unit.to_owned()];
    for folder in FOLDERS {
        for file in host.list(folder).into_iter().filter(|file| file.ends_with(".service")) {
            if !names.contains(&file) && alias_of(host, &format!("{folder}/{file}")).as_deref() == Some(unit)
            {
                names.push(file);
            }
        }
    }
    names
}

/// The unit that the file of another name is a link to; an instance is no other name of its template.
pub(crate) fn alias_of(host: &Host, path: &str) -> Option<String> {
    let own = path.rsplit('/').next()?;
    let target = host.read_link(path)?;
    let name = target.rsplit('/').next().filter(|name| name.ends_with(".service"))?;
    (name != own && template(own).as_deref() != Some(name)).then(|| name.to_owned())
}

/// The section with the settings of a unit of some kind.
fn section(unit: &str) -> &'static str {
    match unit.rsplit_once('.') {
        Some((_, "slice")) => "[Slice]",
        _ => "[Service]",
    }
}

/// What systemd is told to give to units that say nothing, and the file and line (`systemd-system.conf(5)`).
pub(crate) fn default(host: &Host, directive: &str) -> Option<(String, String)> {
    of_manager(host, &format!("Default{directive}"))
}

/// Folders of systemd's own configuration, the first one first.
const MANAGER: [&str; 4] = ["/etc/systemd", "/run/systemd", "/usr/local/lib/systemd", "/usr/lib/systemd"];

/// The last that systemd's own files say of a directive of its own, and the file and line.
fn of_manager(host: &Host, directive: &str) -> Option<(String, String)> {
    let main = MANAGER.iter().map(|folder| format!("{folder}/system.conf")).find(|path| host.exists(path));
    let drop_ins = MANAGER.map(|folder| format!("{folder}/system.conf.d"));
    let drop_ins: Vec<&str> = drop_ins.iter().map(String::as_str).collect();
    let mut found = None;
    for path in main.into_iter().chain(files(host, &drop_ins, ".conf")) {
        let text = host.read_lossy(&path).unwrap_or_default();
        if let Some((line, value)) = last(&text, "[Manager]", directive) {
            found = (!value.is_empty()).then(|| (value, format!("{path}:{line}")));
        }
    }
    found
}

/// The last assignment in a section, with its line.
fn last(text: &str, section: &str, directive: &str) -> Option<(usize, String)> {
    assignments(text, section, directive).pop()
}

/// All assignments of a directive in a section, each with its line.
fn assignments(text: &str, section: &str, directive: &str) -> Vec<(usize, String)> {
    let own = |(name, line, value): (String, usize, String)| Some((line, said(directive, &name, &value)?));
    lines(text, section).into_iter().filter_map(own).collect()
}

/// All assignments in a section: the directive, its line, and its value. A line that ends with a backslash goes on in
/// the next one, over comments (`systemd.syntax(7)`), and the mark of the byte order before the first is passed over
/// (`config_parse` of systemd's `src/shared/conf-parser.c`).
pub(crate) fn lines(text: &str, section: &str) -> Vec<(String, usize, String)> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let (mut within, mut found) = (false, Vec::new());
    let mut begun: Option<(usize, String)> = None;
    for (number, text) in (1..).zip(text.lines().map(str::trim)) {
        if text.starts_with(['#', ';']) || (text.is_empty() && begun.is_none()) {
            continue;
        }
        let (number, text) = match begun.take() {
            Some((number, before)) => (number, format!("{before} {text}")),
            None => (number, text.to_owned()),
        };
        if let Some(before) = text.strip_suffix('\\') {
            begun = Some((number, before.to_owned()));
        } else if text.starts_with('[') {
            within = text == section;
        } else if let (true, Some((name, value))) = (within, text.split_once('=')) {
            found.push((name.trim().to_owned(), number, value.trim().to_owned()));
        }
    }
    // What the end of the file cuts off is a line, too.
    if let (true, Some((number, text))) = (within, begun)
        && let Some((name, value)) = text.split_once('=')
    {
        found.push((name.trim().to_owned(), number, value.trim().to_owned()));
    }
    found
}

/// What the first process of a unit runs with, and its number.
fn running(host: &Host, unit: &str, directive: &str) -> Option<(String, u32)> {
    // That of an instance lies in one of its template.
    let own = group(&slice(host, unit)).unwrap_or_default();
    let slices = ["system.slice", "planish.slice", "systemd/system.slice", own.as_str()];
    let mut groups = slices.iter().map(|slice| format!("{}/{slice}/{unit}", parts::ROOT));
    let group = groups.find(|group| host.exists(group))?;
    let procs = host.read(&format!("{group}/cgroup.procs")).ok()?;
    let pid: u32 = procs.lines().next()?.trim().parse().ok()?;
    let text = |path: String| host.read(&path).ok().map(|text| text.trim().to_owned());
    let value = match directive {
        "LimitNOFILE" => limit(host, pid, "Max open files"),
        "LimitNPROC" => limit(host, pid, "Max processes"),
        "LimitMEMLOCK" => limit(host, pid, "Max locked memory"),
        "LimitCORE" => limit(host, pid, "Max core file size"),
        "OOMScoreAdjust" => text(format!("/proc/{pid}/oom_score_adj")),
        "TasksMax" => text(format!("{group}/pids.max")),
        "MemoryMin" => text(format!("{group}/memory.min")),
        "MemoryLow" => text(format!("{group}/memory.low")),
        "MemorySwapMax" => text(format!("{group}/memory.swap.max")),
        "CPUWeight" => text(format!("{group}/cpu.weight")),
        "IOWeight" => text(format!("{group}/io.weight")),
        _ => None,
    };
    value.map(|value| (value, pid))
}

/// A row of /proc/PID/limits, as systemd writes it: one number, or the soft and the hard one.
fn limit(host: &Host, pid: u32, name: &str) -> Option<String> {
    let text = host.read(&format!("/proc/{pid}/limits")).ok()?;
    let mut words = text.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace();
    let mut word = || words.next().map(|word| if word == "unlimited" { "infinity" } else { word });
    let (soft, hard) = (word()?, word()?);
    Some(if soft == hard { soft.to_owned() } else { format!("{soft}:{hard}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder with files of a host.
    fn host(files: &[(&str, &str)]) -> (tempfile::TempDir, Host) {
        crate::testing::host(&[&[("/run/systemd/system/.keep", "")], files].concat())
    }

    const UNIT: &str = "/usr/lib/systemd/system/redis.service";

    #[test]
    fn the_last_assignment_of_the_last_file_counts() {
        let (_folder, host) = host(&[
            (UNIT, "[Unit]\nLimitNOFILE=1\n[Service]\nLimitNOFILE=10\nLimitNOFILE = 1024:524288\n"),
            ("/usr/lib/systemd/system/redis.service.d/20-more.conf", "[Service]\n#LimitNOFILE=9\n"),
            ("/etc/systemd/system/redis.service.d/10-own.conf", "[Service]\nLimitNPROC=7\n"),
        ]);
        let all = |directive| given(&host, "redis.service", directive, |_| true);
        assert_eq!(all("LimitNOFILE"), Some(("1024:524288".to_owned(), format!("{UNIT}:5"))));
        let own = "/etc/systemd/system/redis.service.d/10-own.conf:2".to_owned();
        assert_eq!(all("LimitNPROC"), Some(("7".to_owned(), own)));
        assert_eq!(all("LimitCORE"), None);
    }

    #[test]
    fn drop_ins_of_a_template_a_name_and_a_kind_are_read_by_the_names_of_their_files() {
        let in_folder = |folder: &str| (format!("/etc/systemd/system/{folder}"), "[Service]\nNice=1\n");
        let all = [
            "service.d/90.conf",
            "service.d/20.conf",
            "a-.service.d/30.conf",
            "a-b@.service.d/20.conf",
            "a-b@1.service.d/40.conf",
            "a-b@2.service.d/50.conf",
            "b@.service.d/60.conf",
        ];
        let files: Vec<(String, &str)> = all.iter().map(|folder| in_folder(folder)).collect();
        let mut files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
        files.push(("/usr/lib/systemd/system/a-b@.service", "[Service]\n"));
        let (_folder, host) = host(&files);
        let read = files_of(&host, "a-b@1.service");
        let read: Vec<&str> =
            read.iter().map(|path| path.rsplit("/system/").next().expect("a path")).collect();
        let wanted = [
            "a-b@.service",
            "a-b@.service.d/20.conf",
            "a-.service.d/30.conf",
            "a-b@1.service.d/40.conf",
            "service.d/90.conf",
        ];
        assert_eq!(read, wanted);
        assert_eq!(instances(&host), ["a-b@1", "a-b@2"], "of the others there is no template");
        assert_eq!(slice(&host, "a-b@1.service"), "system-a\\x2db.slice");
    }

    #[test]
    fn a_byte_that_is_no_utf_8_hides_no_setting_of_a_unit() {
        let odd = |text: &str| [&b"# Gr\xfc\xdfe\n"[..], text.as_bytes()].concat();
        let (unit, of_all) = ("/etc/systemd/system/a.service", "/etc/systemd/system.conf");
        let (_folder, host) = crate::testing::host(&[
            ("/run/systemd/system/.keep", Vec::new()),
            (unit, odd("[Service]\nCPUAffinity=2\nAllowedCPUs=2-3\n")),
            (of_all, odd("[Manager]\nCPUAffinity=1\n")),
        ]);
        assert_eq!(pins(&host, "a.service").expect("pinned").1, format!("{unit}:3"));
        assert_eq!(pins_of_all(&host).expect("pinned").1, format!("{of_all}:3"));
        let given = given_cpus(&host, "a.service", "AllowedCPUs", |_| true);
        assert_eq!(given, Some(("2-3".to_owned(), format!("{unit}:4"))));
        assert_eq!(all(&host, "a.service", "CPUAffinity"), [("2".to_owned(), format!("{unit}:3"))]);
    }

    #[test]
    fn a_line_goes_on_behind_a_backslash_and_over_comments() {
        let text = "[Service]\nCPUAffinity=1 \\\n# not this: \\\n  5\n;Nice=1\nNice=2\n\
                    [Unit]\nNice=3\n[Service]\nSlice=\\";
        let found = lines(text, "[Service]");
        let found: Vec<String> =
            found.iter().map(|(name, line, value)| format!("{line} {name}={value}")).collect();
        assert_eq!(found, ["2 CPUAffinity=1  5", "6 Nice=2", "10 Slice="]);
        let marked = lines("\u{feff}[Service]\nNice=1\n", "[Service]");
        assert_eq!(marked, [("Nice".to_owned(), 2, "1".to_owned())]);
    }

    #[test]
    fn cpus_of_a_part_add_up_over_its_files_until_one_takes_them_back() {
        let ours = "/etc/systemd/system/system.slice.d/zz-planish-allowed-cpus.conf";
        let theirs = "/run/systemd/system.control/system.slice.d/50-AllowedCPUs.conf";
        let (_folder, host) = host(&[
            ("/usr/lib/systemd/system/system.slice", "[Slice]\nAllowedCPUs=0\nAllowedCPUs=2 3\n"),
            (theirs, "[Slice]\nAllowedCPUs=6\n"),
            (ours, "[Slice]\nAllowedCPUs=\nAllowedCPUs = 0-1\n"),
        ]);
        let all = |counts: &dyn Fn(&str) -> bool| given_cpus(&host, "system.slice", "AllowedCPUs", counts);
        assert_eq!(all(&|file| file != ours), Some(("0,2-3,6".to_owned(), format!("{theirs}:2"))));
        assert_eq!(all(&|_| true), Some(("0-1".to_owned(), format!("{ours}:3"))));
        assert_eq!(winner(&host, ours, "AllowedCPUs", "0-1"), None);
        let later = "/etc/systemd/system/system.slice.d/zzz.conf";
        let (_folder, host) = self::host(&[
            (ours, "[Slice]\nAllowedCPUs=\nAllowedCPUs = 0-1\n"),
            (later, "[Slice]\nAllowedCPUs=7\n"),
        ]);
        let found = winner(&host, ours, "AllowedCPUs", "0-1").expect("a later file");
        assert_eq!((found.value.as_str(), found.source), ("0-1,7", format!("{later}:2")));
    }

    #[test]
    fn systemd_is_told_a_default_in_its_own_files() {
        let main =
            ("/etc/systemd/system.conf", "[Manager]\n#DefaultTasksMax=9%\nDefaultLimitNOFILE=1024:4096\n");
        let more = "/usr/lib/systemd/system.conf.d/50-more.conf";
        let (_folder, host) = host(&[main, (more, "[Manager]\nDefaultLimitNOFILE=1024:1048576\n")]);
        let found = default(&host, "LimitNOFILE");
        assert_eq!(found, Some(("1024:1048576".to_owned(), format!("{more}:2"))));
        assert_eq!(default(&host, "TasksMax"), None);
    }

    #[test]
    fn an_empty_value_takes_back_and_a_file_of_the_administrator_masks_one_of_its_name() {
        let (_folder, host) = host(&[
            (UNIT, "[Service]\nLimitCORE=1\nNice=5\n"),
            ("/etc/systemd/system/redis.service.d/a.conf", "[Service]\nLimitCORE=\n"),
            ("/usr/lib/systemd/system/redis.service.d/a.conf", "[Service]\nNice=9\n"),
        ]);
        assert_eq!(given(&host, "redis.service", "LimitCORE", |_| true), None);
        let nice = given(&host, "redis.service", "Nice", |_| true).expect("given");
        assert_eq!(nice, ("5".to_owned(), format!("{UNIT}:3")));
    }

    #[test]
    fn a_later_file_wins_over_ours_and_an_earlier_one_does_not() {
        let ours = "/etc/systemd/system/redis.service.d/zz-planish-nofile.conf";
        let (_folder, other) = host(&[
            (UNIT, "[Service]\nLimitNOFILE=1\n"),
            (ours, "[Service]\nLimitNOFILE = 65536\n"),
            ("/etc/systemd/system/redis.service.d/override.conf", "[Service]\nLimitNOFILE=2\n"),
        ]);
        assert_eq!(winner(&other, ours, "LimitNOFILE", "65536"), None);
        let theirs = "/run/systemd/system/redis.service.d/zzz.conf";
        let (_folder, other) =
            host(&[(ours, "[Service]\nLimitNOFILE = 65536\n"), (theirs, "[Service]\n\nLimitNOFILE=3\n")]);
        let found = winner(&other, ours, "LimitNOFILE", "65536").expect("a later file");
        assert_eq!((found.value.as_str(), found.source), ("3", format!("{theirs}:3")));
    }

    #[test]
    fn services_are_those_with_a_file_and_by_their_real_name() {
        let (folder, host) = host(&[
            (UNIT, ""),
            ("/usr/lib/systemd/system/redis@.service", ""),
            ("/usr/lib/systemd/system/redis.socket", ""),
        ]);
        let etc = folder.path().join("etc/systemd/system");
        std::fs::create_dir_all(&etc).expect("ours");
        std::os::unix::fs::symlink("/usr/lib/systemd/system/redis.service", etc.join("alias.service"))
            .expect("ours");
        std::os::unix::fs::symlink("/dev/null", etc.join("masked.service")).expect("ours");
        assert_eq!(services(&host), ["redis"]);
    }

    #[test]
    fn a_record_keeps_every_directive_that_a_row_names() {
        for knob in Catalogue::embedded().expect("sound").knobs() {
            let named: &[String] = match &knob.r#type {
                ValueType::Setting { directive, .. } => std::slice::from_ref(directive),
                ValueType::Directives { directives } => directives,
                _ => continue,
            };
            for directive in named {
                assert!(planish_host::is_unit_directive(directive), "{}: {directive}", knob.id);
            }
        }
        for other in ["Environment", "Environment=PATH", "ExecStartPre", "Description", "SetCredential"] {
            assert!(!planish_host::is_unit_directive(other), "{other}");
        }
    }

    #[test]
    fn a_record_of_a_host_gives_its_units_the_same_limits() {
        let ours = "/etc/systemd/system/redis.service.d/zz-planish-nofile.conf";
        let group = "/sys/fs/cgroup/system.slice/redis.service";
        let unit = "[Unit]\nDescription=of Ann\n[Service]\nEnvironment=TOKEN=hunter2\n\
                    ExecStart=/usr/bin/redis --key hunter2\nLimitNOFILE=1024:524288\nTasksMax=15%\n";
        let (_folder, live) = host(&[
            (UNIT, unit),
            ("/etc/systemd/system/redis.service.d/a.conf", "# hunter2\n\n[Service]\nMemoryLow=4G\n"),
            (ours, "[Service]\nLimitNOFILE = 65536\n"),
            (&format!("{group}/cgroup.procs"), "77\n"),
            (&format!("{group}/memory.low"), "4294967296\n"),
            (
                "/proc/77/limits",
                "Max open files            65536                65536                files\n",
            ),
        ]);
        let catalogue = Catalogue::embedded().expect("sound");
        let case = |value: &str| planish_model::Case {
            value: value.to_owned(),
            only: Some("redis".to_owned()),
            needs: planish_model::Conditions::default(),
        };
        let want = ["unit.nofile", "unit.memory_low", "unit.tasks_max", "unit.nice"]
            .map(|id| (KnobId::new(id), Want::Case(Box::new(case("1")))));
        let seen = |host: &Host| {
            let mut observation = crate::observe(host, &catalogue);
            unit_settings(host, &catalogue, &BTreeMap::from(want.clone()), &mut observation);
            let read = observation.knobs[&KnobId::new("unit.nofile")].iter().map(|r| r.value.clone());
            (read.collect::<Vec<_>>(), observation.units, winner(host, ours, "LimitNOFILE", "65536"))
        };
        let before = seen(&live);
        let low = before.1.values().filter_map(|unit| unit.given.clone()).collect::<Vec<_>>();
        assert!(low.contains(&("4G".to_owned(), "/etc/systemd/system/redis.service.d/a.conf:4".to_owned())));
        assert!(low.contains(&("1024:524288".to_owned(), format!("{UNIT}:6"))), "{low:?}");
        let folder = tempfile::tempdir().expect("a folder");
        let dest = folder.path().join("copy");
        let (redactions, meta) = (planish_host::Redactions::default(), planish_host::Meta::default());
        planish_host::record(&live, &live.reads(), &dest, redactions, &[], meta).expect("a copy");
        let copy = Host::open(&dest).expect("a tree");
        assert_eq!(seen(&copy), before);
        assert!(!copy.read(UNIT).expect("kept").contains("hunter2"));
    }
}
