//! What others say behind a file of ours of a unit, and what wins of it: at the next start, and after a boot.

use std::iter;

use planish_host::Host;
use planish_model::{BootValue, NOT_GIVEN, Persisted, UnitLine};

use super::{
    MANAGER, drop_in_folders, files_in, files_of, given_cpus_by, lines, names_of, said_last_by, section,
};
use crate::persisted::files;
use crate::writers::unit::BEFORE;

/// The lines of others that systemd reads behind a file of ours, be it there or not, and that set one of some
/// directives.
#[must_use]
pub fn later(host: &Host, place: &str, directives: &[String]) -> Vec<UnitLine> {
    later_in(host, place, directives, |_| true)
}

/// The same of the folders that count.
fn later_in(host: &Host, place: &str, directives: &[String], counts: impl Fn(&str) -> bool) -> Vec<UnitLine> {
    let (section, mut folders, own) = match place.strip_prefix("/etc/systemd/system/") {
        Some(rest) => match rest.split_once(".d/") {
            Some((unit, own)) => (section(unit), drop_in_folders(&names_of(host, unit)), Some(own)),
            // A unit of ours: all of its drop-ins.
            None => (section(rest), drop_in_folders(&[rest.to_owned()]), None),
        },
        None => {
            let folders = MANAGER.map(|folder| format!("{folder}/system.conf.d"));
            ("[Manager]", folders.to_vec(), place.rsplit('/').next())
        }
    };
    folders.retain(|folder| counts(folder));
    let behind = behind(host, &folders, own);
    let mut found = Vec::new();
    for path in behind {
        let text = host.read_lossy(&path).unwrap_or_default();
        for (directive, line, value) in lines(&text, section) {
            if directives.contains(&directive) {
                found.push(UnitLine { directive, value, source: format!("{path}:{line}") });
            }
        }
    }
    found
}

/// The line of others by which a unit of ours, whose file is as we wrote it, may run something else, or nothing, or
/// without what it needs; or the file that systemd reads in its place. When a timer runs is for its owner to say.
#[must_use]
pub fn overruled(host: &Host, place: &str) -> Option<String> {
    let unit = place.strip_prefix("/etc/systemd/system/").filter(|unit| !unit.contains('/'))?;
    let mut instead = BEFORE.iter().map(|folder| format!("{folder}/{unit}"));
    if let Some(path) = instead.find(|path| host.exists(path) || host.read_link(path).is_some()) {
        return Some(path);
    }
    let is_meant = |(name, ..): &(String, usize, String)| {
        !HARMLESS.iter().any(|harmless| match harmless.strip_suffix('*') {
            Some(beginning) => name.starts_with(beginning) && name != "MemoryDenyWriteExecute",
            None => name == harmless,
        })
    };
    behind(host, &drop_in_folders(&[unit.to_owned()]), None).into_iter().find_map(|path| {
        let text = host.read_lossy(&path).unwrap_or_default();
        let lines = ["[Service]", "[Unit]"].into_iter().flat_map(|section| lines(&text, section));
        lines.into_iter().find(is_meant).map(|(name, line, value)| format!("{path}:{line} ({name}={value})"))
    })
}

/// Directives of a service (`systemd.unit(5)`, `systemd.service(5)`, `systemd.exec(5)`, `systemd.kill(5)`,
/// `systemd.resource-control(5)`) that change neither what it runs nor what that sees, as hardening does, which is
/// often for all services: when it ends and begins again, what it costs at most, where its words go. All others are
/// told.
const HARMLESS: [&str; 30] = [
    "X-*",
    "Description",
    "Documentation",
    "After",
    "Before",
    "Wants",
    "OnFailure*",
    "OnSuccess*",
    "StartLimit*",
    "Timeout*",
    "Restart*",
    "Kill*",
    "SendSIG*",
    "Log*",
    "Syslog*",
    "Standard*",
    "Nice",
    "IO*",
    "BlockIO*",
    "CPU*",
    "AllowedCPUs",
    "NUMA*",
    "AllowedMemoryNodes",
    "Memory*",
    "ManagedOOM*",
    "OOM*",
    "Tasks*",
    "Limit*",
    "Slice",
    "Delegate",
];

/// The drop-ins of some folders that are read behind one of a name.
fn behind(host: &Host, folders: &[String], own: Option<&str>) -> Vec<String> {
    let folders: Vec<&str> = folders.iter().map(String::as_str).collect();
    let mut all = files(host, &folders, ".conf");
    all.retain(|path| own.is_none_or(|own| path.rsplit('/').next().is_some_and(|name| name > own)));
    all
}

/// What settings of a file of ours come to at the next start, where a line of others that is read later changes them.
pub(crate) fn overridden(host: &Host, place: &str, directives: &[String], ours: &str) -> Option<Persisted> {
    let later = later(host, place, directives);
    let (value, line) = planish_model::overridden(ours, &later)?;
    let kept = || {
        let later = later_in(host, place, directives, stays);
        planish_model::overridden(ours, &later).map(|(value, line)| BootValue::new(value, &line.source))
    };
    Some(won(value, line.source.clone(), BootValue::new(ours, place), kept))
}

/// Whether a boot leaves the files of a folder, or they are made again.
fn stays(folder: &str) -> bool {
    !Persisted::is_gone_with_this_boot(folder)
}

/// What wins over a value of ours at the next start, and what a boot leaves, where that is something of neither. `kept`
/// reads the files once more, of which only a boot that takes one away makes others.
fn won(value: String, source: String, ours: BootValue, kept: impl Fn() -> Option<BootValue>) -> Persisted {
    let is_gone = Persisted::is_gone_with_this_boot(&source);
    let kept = is_gone.then(kept).flatten();
    let left = kept.as_ref().unwrap_or(&ours).value.clone();
    let at_boot = Some(left).filter(|left| is_gone && *left != value);
    let kept = kept.filter(|_| at_boot.is_some());
    Persisted { value, source, at_boot, overridden: iter::once(ours).chain(kept).collect() }
}

/// What a setting of a unit comes to at the next start, where a file of ours sets it and one that is read later wins.
pub(crate) fn winner(host: &Host, place: &str, directive: &str, ours: &str) -> Option<Persisted> {
    let (unit, _) = place.strip_prefix("/etc/systemd/system/")?.split_once(".d/")?;
    let is_cpus = section(unit) == "[Slice]";
    let said_by = |files: &[String]| {
        let said = if is_cpus {
            given_cpus_by(host, (unit, files), directive)
        } else {
            said_last_by(host, (unit, files), directive, |_| true)
        };
        // An empty limit is none to systemd, and takes nothing back (`config_parse_rlimit`).
        let (value, source) =
            said.filter(|(value, _)| !(value.is_empty() && directive.starts_with("Limit")))?;
        let value = if value.is_empty() { NOT_GIVEN.to_owned() } else { value };
        let is_ours = source.rsplit_once(':').is_some_and(|(path, _)| path == place);
        (!is_ours).then_some((value, source))
    };
    let (value, source) = said_by(&files_of(host, unit))?;
    let kept = || said_by(&files_in(host, unit, stays)).map(|(value, source)| BootValue::new(value, source));
    Some(won(value, source, BootValue::new(ours, place), kept))
}
