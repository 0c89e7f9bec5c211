//! The knobs that have a place at a path, found without a look at each row: scripts of a boot write thousands of files.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

use planish_model::{Catalogue, Knob, place};

const WILDCARDS: [char; 3] = ['*', '?', '['];

/// The rows of a catalogue by the length of their paths, and what was found of them.
pub(super) struct Places<'c> {
    pub(super) catalogue: &'c Catalogue,
    /// The folders of the root that any row has a place in.
    roots: BTreeSet<&'c str>,
    /// By how many components a path has, each with the name that a path is held against.
    rows: BTreeMap<usize, Vec<(Cow<'c, str>, &'c Knob)>>,
    /// Those with one place each, by the last part of its name.
    names: HashMap<&'c str, Vec<&'c Knob>>,
    known: RefCell<BTreeMap<String, Rc<[&'c Knob]>>>,
}

impl<'c> Places<'c> {
    pub(super) fn of(catalogue: &'c Catalogue) -> Self {
        let mut rows: BTreeMap<usize, Vec<(Cow<'c, str>, &Knob)>> = BTreeMap::new();
        for knob in catalogue.knobs() {
            let name = place::canonical(&knob.path);
            rows.entry(name.split('/').count()).or_default().push((name, knob));
        }
        let mut names: HashMap<&str, Vec<&Knob>> = HashMap::new();
        for knob in catalogue.knobs().filter(|knob| !knob.has_holes() && knob.boot_parameter().is_none()) {
            names.entry(last(&knob.path)).or_default().push(knob);
        }
        let roots = catalogue.knobs().filter_map(|knob| root(&knob.path)).collect();
        Self { catalogue, roots, rows, names, known: RefCell::default() }
    }

    /// The knobs that have a place there, by whichever of its names. Most of what scripts write are files of their own.
    pub(super) fn at(&self, path: &str) -> Rc<[&'c Knob]> {
        if !root(path).is_some_and(|root| self.roots.contains(root) || root.contains(WILDCARDS)) {
            return Rc::new([]);
        }
        if let Some(known) = self.known.borrow().get(path) {
            return Rc::clone(known);
        }
        let name = place::canonical(path);
        let rows = self.rows.get(&name.split('/').count()).into_iter().flatten();
        let found: Rc<[&Knob]> =
            rows.filter(|(row, _)| is_of_row(row, &name)).map(|(_, knob)| *knob).collect();
        self.known.borrow_mut().insert(path.to_owned(), Rc::clone(&found));
        found
    }

    /// The knobs whose one place has the last part of its name in common with a path, or with a name of `sysctl`.
    pub(super) fn called(&self, name: &str) -> &[&'c Knob] {
        self.names.get(last(name)).map_or(&[], Vec::as_slice)
    }

    /// How many paths were held against rows by now.
    #[cfg(test)]
    pub(super) fn looked_up(&self) -> usize {
        self.known.borrow().len()
    }
}

/// The last part of a path or of a name of `sysctl`.
fn last(name: &str) -> &str {
    name.rsplit(['.', '/']).next().unwrap_or(name)
}

/// The first folder of a path from the root.
fn root(path: &str) -> Option<&str> {
    path.strip_prefix('/')?.trim_start_matches('/').split('/').next()
}

/// Whether a knob has a place there, by whichever of its names; a wildcard of the path stays within its component.
pub(super) fn is_place(knob: &Knob, path: &str) -> bool {
    is_of_row(&place::canonical(&knob.path), &place::canonical(path))
}

/// The same of the names that rows have.
fn is_of_row(row: &str, path: &str) -> bool {
    let (mut ours, mut theirs) = (row.split('/'), path.split('/'));
    loop {
        match (ours.next(), theirs.next()) {
            (None, None) => return true,
            (Some(ours), Some(theirs)) => {
                let fits = match (ours.contains('{'), theirs.contains(WILDCARDS)) {
                    (false, false) => ours == theirs,
                    (false, true) => place::matches(theirs, ours),
                    (true, false) => place::captures(ours, theirs).is_some(),
                    (true, true) => place::may_mean(theirs, ours),
                };
                if !fits {
                    return false;
                }
            }
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_held_against_rows_once_and_one_of_no_row_never() {
        let catalogue = Catalogue::embedded().expect("sound");
        let places = Places::of(&catalogue);
        let ids = |path: &str| places.at(path).iter().map(|knob| knob.id.to_string()).collect::<Vec<_>>();
        for path in ["/tmp/x.1", "/var/log/*", "*", "swappiness", "", "/"] {
            assert_eq!(ids(path), [""; 0], "{path}");
        }
        assert_eq!(places.looked_up(), 0);
        for _ in 0..3 {
            assert_eq!(ids("/proc/sys/vm/swappiness"), ["vm.swappiness"]);
            assert_eq!(ids("/*/sys/vm/swappiness"), ["vm.swappiness"]);
        }
        assert_eq!(places.looked_up(), 2);
    }

    #[test]
    fn a_place_is_found_by_each_of_its_names() {
        let catalogue = Catalogue::embedded().expect("sound");
        let places = Places::of(&catalogue);
        for (path, id) in [
            ("/sys/devices/system/cpu/cpufreq/policy*/scaling_governor", "cpu.governor"),
            ("/sys/devices/system/cpu/cpufreq/policy[0-7]/scaling_governor", "cpu.governor"),
            ("/sys/devices/system/cpu/cpufreq/*/scaling_governor", "cpu.governor"),
            ("/sys/class/block/nvme*/queue/scheduler", "block.scheduler"),
            ("/sys/block/nvme[01]n1/queue/scheduler", "block.scheduler"),
            ("/sys//block/nvme0n1/queue/scheduler", "block.scheduler"),
            ("//sys/block/nvme0n1/queue/scheduler", "block.scheduler"),
            ("/sys/block/nvme0n1/bdi/read_ahead_kb", "block.read_ahead_kb"),
            ("/sys/block/nvme0n1/bdi/max_ratio", ""),
            ("/sys/class/blocks/nvme0n1/queue/sched", ""),
            ("/proc/sys/vm/[st]wappiness", "vm.swappiness"),
            ("/proc/sys/vm/[!s]wappiness", ""),
        ] {
            let found: Vec<&str> = places.at(path).iter().map(|knob| knob.id.as_str()).collect();
            assert_eq!(found.join(" "), id, "{path}");
            let by_each: Vec<&str> =
                catalogue.knobs().filter(|knob| is_place(knob, path)).map(|knob| knob.id.as_str()).collect();
            assert_eq!(by_each, found, "{path}");
        }
    }

    /// What the index leaves out no row has.
    #[test]
    fn the_index_finds_what_a_look_at_each_row_finds() {
        let catalogue = Catalogue::embedded().expect("sound");
        let places = Places::of(&catalogue);
        for knob in catalogue.knobs().filter(|knob| knob.path.starts_with('/')) {
            let path: String = knob
                .path
                .split('/')
                .map(|part| if part.contains('{') { "*" } else { part })
                .collect::<Vec<_>>()
                .join("/");
            let all: Vec<_> = catalogue.knobs().filter(|knob| is_place(knob, &path)).collect();
            assert_eq!(*places.at(&path), *all, "{path}");
        }
    }
}
