//! Entries of the Boot Loader Specification.

use planish_boot::{Entry, once};
use planish_host::{Host, natural_order};
use planish_model::{BootFile, BootFormat, place};

use super::Given;

/// An entry and its file.
pub(crate) struct Found {
    pub(crate) path: String,
    pub(crate) entry: Entry,
}

impl Found {
    /// The name without the ending, by which loaders know it.
    pub(crate) fn id(&self) -> &str {
        let name = self.path.rsplit('/').next().unwrap_or_default();
        name.strip_suffix(".conf").unwrap_or(name)
    }

    /// Whether it takes its arguments from a variable of GRUB.
    pub(crate) fn is_variable(&self) -> bool {
        self.entry.options.as_ref().is_some_and(|(options, _)| options.contains("$kernelopts"))
    }

    /// What it gives the kernel. `variable` knows what GRUB puts for a name, and where it says so.
    pub(crate) fn given(&self, variable: impl Fn(&str) -> Option<(String, String)>) -> Vec<Given> {
        let Some((options, line)) = &self.entry.options else { return Vec::new() };
        let source = format!("{}:{line}", self.path);
        let mut given = Vec::new();
        for argument in Given::of_line(options, &source) {
            match argument.argument.strip_prefix('$') {
                Some(name) => {
                    let name = name.trim_matches(['{', '}']);
                    given.extend(
                        variable(name).into_iter().flat_map(|(text, source)| Given::of_line(&text, &source)),
                    );
                }
                None => given.push(argument),
            }
        }
        given
    }
}

/// The entries of a folder that start Linux, in the order of their names, without our own for a trial boot: it is none
/// that arguments are put into, nor one that is booted next but for once.
pub(crate) fn read(host: &Host, folder: &str) -> Vec<Found> {
    let names =
        host.list(folder).into_iter().filter(|name| name.ends_with(".conf") && !name.starts_with('.'));
    let paths = names.map(|name| format!("{folder}/{name}"));
    let found = paths.filter_map(|path| Some(Found { entry: Entry::parse(&host.read(&path).ok()?)?, path }));
    found.filter(|found| found.id() != once::FILE_ID).collect()
}

/// Those that are not for repairs.
pub(crate) fn normal(entries: &[Found]) -> impl Iterator<Item = &Found> {
    entries.iter().filter(|found| !found.entry.is_rescue(&found.path))
}

/// The entry that is booted next: the one that is named, by a shell pattern, else the newest.
pub(crate) fn default<'a>(entries: &'a [Found], wanted: Option<&str>) -> Option<&'a Found> {
    let wanted = wanted.map(|wanted| wanted.trim().trim_end_matches(".conf"));
    let named = |found: &&Found| wanted.is_some_and(|wanted| place::matches(wanted, found.id()));
    let newest = || {
        normal(entries).max_by(|a, b| {
            let version = natural_order(&a.entry.version, &b.entry.version);
            version.then_with(|| natural_order(a.id(), b.id()))
        })
    };
    entries.iter().rfind(named).or_else(newest)
}

/// An entry as a file that arguments are put into.
pub(crate) fn file(path: &str) -> BootFile {
    BootFile { path: path.to_owned(), format: BootFormat::Entry }
}
