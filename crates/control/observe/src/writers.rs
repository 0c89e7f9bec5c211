//! Second writers: other programs that set knobs of this host, recognised by what they leave lying about.
//!
//! Nobody is asked and nothing is started: names of processes, files that a program keeps while it runs, units that are
//! enabled, and the configuration that tells which knobs it sets. Of processes that are none of these nothing is
//! remembered, so that a recording does not tell what else ran; nor of the data that an instance was made from, which
//! may hold secrets.

mod disks;
mod named;
mod places;
mod profiles;
mod rules;
mod scope;
pub(crate) mod unit;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use planish_host::{Host, Near};
use planish_model::{Catalogue, SeenWriter, Writer, WriterSays};
use planish_sys::file;

/// What a look at the second writers of a host is done with, whichever is looked at: built once.
struct Look<'a> {
    near: Near<'a>,
    places: places::Places<'a>,
    units: unit::Units<'a>,
    /// Words of texts that were looked at by now, of all writers.
    work: Cell<usize>,
    /// The files at which following ended.
    unfollowed: RefCell<Vec<String>>,
}

impl<'a> Look<'a> {
    fn at(host: &'a Host, catalogue: &'a Catalogue, default_page: Option<u64>) -> Self {
        let (near, places) = (Near::of(host), places::Places::of(catalogue, default_page));
        let (work, unfollowed) = (Cell::new(0), RefCell::default());
        Self { near, places, units: unit::Units::of(host), work, unfollowed }
    }

    /// Takes note of a file that starts more than is followed.
    fn is_left_out(&self, file: &str) {
        let mut files = self.unfollowed.borrow_mut();
        if !files.iter().any(|known| known == file) {
            files.push(file.to_owned());
        }
    }

    fn host(&self) -> &'a Host {
        self.near.host()
    }

    fn catalogue(&self) -> &'a Catalogue {
        self.places.catalogue
    }
}

/// Bytes of a process's name that the kernel keeps (`TASK_COMM_LEN`, without the zero at the end).
const COMM_BYTES: usize = 15;

/// What a look at the second writers of a host found.
pub(crate) struct Seen {
    /// In the order of the catalogue. Those that are seen line by line in the files of the next boot are not among
    /// them.
    pub(crate) writers: Vec<SeenWriter>,
    /// The files at which following ended, before all was seen.
    pub(crate) unfollowed: Vec<String>,
}

/// The second writers of a host whose huge pages have a default size.
pub(crate) fn read(host: &Host, catalogue: &Catalogue, default_page: Option<u64>) -> Seen {
    let names: BTreeSet<&str> =
        catalogue.writers().iter().flat_map(|writer| &writer.programs).map(|name| comm(name)).collect();
    let processes = processes(host, &names);
    let look = Look::at(host, catalogue, default_page);
    let seen = |writer: &Writer| seen(&look, writer, &processes);
    let writers = catalogue.writers().iter().filter_map(seen).collect();
    Seen { writers, unfollowed: look.unfollowed.take() }
}

/// Whether a host has a unit: a file of systemd's folders, or the template that it is an instance of.
#[must_use]
pub fn has_unit(host: &Host, unit: &str) -> bool {
    let template = unit.split_once('@').map(|(name, _)| format!("{name}@.service"));
    let names = [Some(unit.to_owned()), template].into_iter().flatten();
    let folders = || unit::BEFORE.iter().chain(&unit::FOLDERS).chain(&unit::GENERATED);
    names
        .flat_map(|name| folders().map(move |folder| format!("{folder}/{name}")))
        .any(|path| host.exists(&path))
}

/// Whether process 1 of a host is systemd, as `sd_booted(3)` finds out: what an image left behind does not count.
pub fn is_systemd(host: &Host) -> bool {
    host.exists("/run/systemd/system")
}

fn comm(program: &str) -> &str {
    program.get(..COMM_BYTES).unwrap_or(program)
}

/// The first process of each wanted name.
fn processes(host: &Host, names: &BTreeSet<&str>) -> BTreeMap<String, u32> {
    let mut found = BTreeMap::new();
    if names.is_empty() {
        return found;
    }
    for pid in host.list("/proc").iter().filter_map(|name| name.parse::<u32>().ok()) {
        let path = format!("/proc/{pid}/comm");
        let Some(name) = unremembered(host, &path) else { continue };
        if names.contains(name.trim_end()) && !found.contains_key(name.trim_end()) {
            // This one is what the host is recognised by: a recording keeps it.
            host.exists(&path);
            found.insert(name.trim_end().to_owned(), pid);
        }
    }
    found
}

/// The text of a file that no recording is to keep because of us. A byte that is no UTF-8 hides nothing of the rest.
pub(crate) fn unremembered(host: &Host, path: &str) -> Option<String> {
    let real = if host.is_live() { PathBuf::from(path) } else { host.real_path(path).ok()? };
    Some(String::from_utf8_lossy(&file::read(&real).ok()?).into_owned())
}

fn seen(look: &Look<'_>, writer: &Writer, processes: &BTreeMap<String, u32>) -> Option<SeenWriter> {
    let (host, units) = (look.host(), &look.units);
    let mut evidence = Vec::new();
    for program in &writer.programs {
        if let Some(pid) = processes.get(comm(program)) {
            evidence.push(format!("process {pid} is {program}"));
        }
    }
    evidence.extend(
        writer.files.iter().filter(|file| is_at_work(host, file)).map(|file| format!("{file} is there")),
    );
    let running = !evidence.is_empty();
    let enabled = writer.unit.as_deref().and_then(|unit| units.enabled(unit));
    if let (false, Some(by)) = (running, enabled) {
        evidence.push(format!("enabled for the next boot by {by}"));
    }
    if evidence.is_empty() && !writer.is_told_by_texts() {
        return None;
    }
    if let Some(only_where) = &writer.only_where {
        evidence.push(who_says(host, writer, only_where, processes)?);
    }
    let scope = scope::of(look, writer);
    // Of what is told by texts alone, a text that names no knob is no writer.
    if scope.knobs.as_ref().is_some_and(Vec::is_empty) {
        return None;
    }
    evidence.extend(scope.evidence);
    let arguments = writer.unit.as_deref().and_then(|unit| units.arguments(unit));
    Some(SeenWriter {
        id: writer.id.clone(),
        running,
        evidence,
        knobs: scope.knobs,
        profile: scope.profile,
        arguments,
        commands: scope.named.commands,
        sources: scope.named.sources,
        maybe: scope.named.maybe,
        again: scope.again,
    })
}

/// What tells that a program does what it counts for: an option of its process, or a file where it has none.
fn who_says(
    host: &Host,
    writer: &Writer,
    only_where: &WriterSays,
    processes: &BTreeMap<String, u32>,
) -> Option<String> {
    let wanted = key_and_value(&only_where.says)?;
    if let Some(option) = &only_where.option {
        for pid in writer.programs.iter().filter_map(|program| processes.get(comm(program))) {
            let line = unremembered(host, &format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let words: Vec<&str> = line.split('\0').collect();
            if let Some(given) = given(&words, option) {
                return (given == wanted.1).then(|| format!("process {pid} has {option}={given}"));
            }
        }
    }
    let file = only_where.files.iter().find(|file| says(host, file, &wanted))?;
    Some(format!("{file} says {}", only_where.says))
}

/// The value of an option, in a word with it or in the next one; the last one counts.
fn given<'w>(words: &[&'w str], option: &str) -> Option<&'w str> {
    let at = |index: usize| match words[index].strip_prefix(option)? {
        "" => words.get(index + 1).copied(),
        rest => rest.strip_prefix('='),
    };
    (0..words.len()).rev().find_map(at)
}

/// Whether a file has a key with a value, be it one of YAML, with a comment behind it or not, or one of JSON, in one
/// line with others or not.
fn says(host: &Host, file: &str, wanted: &(String, String)) -> bool {
    let text = unremembered(host, file).unwrap_or_default();
    let mut parts = text.lines().flat_map(|line| {
        let line = if line.trim_start().starts_with('#') { "" } else { line };
        line.split_once(" #").map_or(line, |(line, _)| line).split(['{', '}', ','])
    });
    parts.any(|part| key_and_value(part).as_ref() == Some(wanted))
}

/// `"cpuManagerPolicy":"static"`, without quotes and blanks.
fn key_and_value(text: &str) -> Option<(String, String)> {
    let (key, value) = text.split_once(':')?;
    let plain = |text: &str| text.trim().trim_matches(['"', '\'']).to_owned();
    Some((plain(key), plain(value)))
}

/// Whether a file shows that its program is at work. One that a killed program left behind names nobody any more; a
/// recording, which keeps few processes, is believed.
fn is_at_work(host: &Host, path: &str) -> bool {
    if !host.exists(path) {
        return false;
    }
    if !path.ends_with(".pid") || !host.is_live() {
        return true;
    }
    let pid = host.read(path).ok().and_then(|text| text.trim().parse::<u32>().ok());
    pid.is_some_and(|pid| host.exists(&format!("/proc/{pid}")))
}

#[cfg(test)]
mod tests;
