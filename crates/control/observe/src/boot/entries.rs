//! Entries of the Boot Loader Specification.

use planish_boot::{Entry, once, order, refuse_zeroes};
use planish_host::{Host, ReadError};
use planish_model::{Astray, BootFile, BootFormat, place};
use planish_sorted::SortSmall as _;

use super::{Boot, Given};

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

const MEND: &str = "mend the file first, or take it away where nothing is to be started by it";

/// The entries of a folder that start Linux, in the order of their names, without our own for a trial boot: it is none
/// that arguments are put into, nor one that is booted next but for once.
///
/// # Errors
/// The machine as one whose loader is not known, where an entry cannot be read or is cut off before it says what it
/// starts: it may be the one that is booted.
pub(crate) fn read(host: &Host, folder: &str) -> Result<Vec<Found>, Box<Boot>> {
    let names =
        host.list(folder).into_iter().filter(|name| name.ends_with(".conf") && !name.starts_with('.'));
    let mut names = names.peekable();
    // A folder that may not be listed has none to see.
    if names.peek().is_none()
        && let Some(hidden) = super::hidden(host, [format!("{folder}/{}.conf", once::FILE_ID)])
    {
        return Err(Box::new(hidden));
    }
    let mut found = Vec::new();
    for path in names.map(|name| format!("{folder}/{name}")) {
        let text = match host.read(&path) {
            Ok(text) => text,
            // A link that leads nowhere.
            Err(error) if error.is_absent() => continue,
            Err(error @ ReadError::NotText { .. }) => {
                let cure =
                    "have it in UTF-8: a title in another encoding is changed by whoever changes the file";
                return Err(Box::new(Boot::unknown(error.to_string(), cure)));
            }
            Err(error) => return Err(Box::new(Boot::unreadable(&path, &error))),
        };
        if let Err(odd) = refuse_zeroes(&text) {
            return Err(Box::new(Boot::unknown(format!("{path}: {odd}"), MEND)));
        }
        if !Entry::is_whole(&text) {
            let reason = format!("{path} is cut off: no line says what it starts");
            return Err(Box::new(Boot::unknown(reason, MEND)));
        }
        found.extend(Entry::parse(&text).map(|entry| Found { entry, path }));
    }
    found.retain(|found| found.id() != once::FILE_ID);
    Ok(found)
}

/// Those that are not for repairs.
pub(crate) fn normal(entries: &[Found]) -> impl Iterator<Item = &Found> {
    entries.iter().filter(|found| !found.entry.is_rescue(&found.path))
}

/// Why nothing is given to the entry that is booted next, where that is one for repairs.
pub(crate) fn astray(next: &Found, cure: &str) -> Option<Astray> {
    next.entry.is_rescue(&next.path).then(|| Astray {
        reason: format!("{} is booted next, and an entry for repairs is left as it is", next.path),
        cure: format!("name another one: {cure}"),
    })
}

/// The entry that GRUB shows at a number, or that a name or a title means: `None` where it is none of them.
pub(crate) fn by_grub<'a>(entries: &'a [Found], default: &str) -> Option<&'a Found> {
    let mut sorted: Vec<&Found> = entries.iter().collect();
    sorted.sort_small_by(|a, b| order::by_grub(b.id(), a.id()));
    match default.parse::<usize>() {
        Ok(index) => sorted.get(index).copied(),
        Err(_) => sorted.into_iter().find(|found| found.id() == default || found.entry.title == default),
    }
}

/// The entry that systemd-boot takes: of those that a shell pattern means, or of all, the one that it shows first.
/// `None` where the pattern means none.
pub(crate) fn by_systemd<'a>(entries: &'a [Found], wanted: Option<&str>) -> Option<&'a Found> {
    let wanted = wanted.map(|wanted| wanted.trim().to_lowercase());
    let named = |found: &&Found| {
        let id = found.id().to_lowercase();
        let is_called = |wanted: &String, id: &str| {
            place::matches(wanted, &format!("{id}.conf")) || place::matches(wanted, id)
        };
        // With the tries that are counted in the name, or without.
        wanted
            .as_ref()
            .is_none_or(|wanted| is_called(wanted, &id) || is_called(wanted, order::uncounted(&id)))
    };
    entries.iter().filter(named).min_by(|a, b| order::by_systemd((a.id(), &a.entry), (b.id(), &b.entry)))
}

/// An entry as a file that arguments are put into.
pub(crate) fn file(path: &str) -> BootFile {
    BootFile { path: path.to_owned(), format: BootFormat::Entry }
}
