//! The knobs that have a place at a path, found without a look at each row: scripts of a boot write thousands of files.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

use planish_model::{Catalogue, Knob, page_pool, place};

const WILDCARDS: [char; 3] = ['*', '?', '['];

/// The rows of a catalogue by the length of their paths, and what was found of them.
pub(super) struct Places<'c> {
    pub(super) catalogue: &'c Catalogue,
    /// The folders of the root that any row has a place in.
    roots: BTreeSet<&'c str>,
    /// By how many components a path has, each with the name that a path is held against.
    rows: BTreeMap<usize, Vec<(Cow<'c, str>, &'c Knob)>>,
    /// Those with one place each, by the last part of each of its names, with that name.
    names: HashMap<String, Vec<(Cow<'c, str>, &'c Knob)>>,
    default_page: Option<u64>,
    known: RefCell<BTreeMap<String, Rc<[&'c Knob]>>>,
}

impl<'c> Places<'c> {
    /// Of a host whose huge pages have a default size: which pools `sysctl` means goes by that.
    pub(super) fn of(catalogue: &'c Catalogue, default_page: Option<u64>) -> Self {
        let others =
            |knob: &Knob| page_pool::other_names(&knob.path, default_page).into_iter().map(Cow::Owned);
        let mut rows: BTreeMap<usize, Vec<(Cow<'c, str>, &Knob)>> = BTreeMap::new();
        for knob in catalogue.knobs() {
            for name in std::iter::once(place::canonical(&knob.path)).chain(others(knob)) {
                rows.entry(name.split('/').count()).or_default().push((name, knob));
            }
        }
        let mut names: HashMap<String, Vec<(Cow<'_, str>, &Knob)>> = HashMap::new();
        for knob in catalogue.knobs().filter(|knob| !knob.has_holes() && knob.boot_parameter().is_none()) {
            for name in std::iter::once(Cow::Borrowed(knob.path.as_str())).chain(others(knob)) {
                names.entry(last(&name).to_owned()).or_default().push((name, knob));
            }
        }
        let roots = catalogue.knobs().filter_map(|knob| root(&knob.path)).collect();
        Self { catalogue, roots, rows, names, default_page, known: RefCell::default() }
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
        let mut found = self.of_name(&name);
        if found.is_empty() {
            // Of a size without a row for the pools of all nodes, whoever sets those sets each.
            let whole = self.name_in_sysfs(&name);
            found = page_pool::on_each_node(&whole).map(|each| self.of_name(&each)).unwrap_or_default();
        }
        let found: Rc<[&Knob]> = found.into();
        self.known.borrow_mut().insert(path.to_owned(), Rc::clone(&found));
        found
    }

    /// The rows of a name, each once, though a pattern may mean several names of its place.
    fn of_name(&self, name: &str) -> Vec<&'c Knob> {
        let rows = self.rows.get(&name.split('/').count()).into_iter().flatten();
        let mut found: Vec<&Knob> =
            rows.filter(|(row, _)| place::is_of_row(row, name)).map(|(_, knob)| *knob).collect();
        found.dedup_by(|a, b| a.id == b.id);
        found
    }

    /// The name in /sys of a pool of huge pages; the same for every other path.
    pub(super) fn name_in_sysfs(&self, path: &str) -> String {
        page_pool::in_sysfs(path, self.default_page).unwrap_or_else(|| path.to_owned())
    }

    /// The knobs whose one place has the last part of a name in common with a path, or with a name of `sysctl`, each
    /// with that name.
    pub(super) fn called(&self, name: &str) -> &[(Cow<'c, str>, &'c Knob)] {
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

/// Whether a knob has a place there, by whichever of its names: what the index must find.
#[cfg(test)]
pub(super) fn is_place(knob: &Knob, path: &str) -> bool {
    place::is_of_row(&place::canonical(&knob.path), &place::canonical(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_sysctl_calls_a_pool_is_the_one_of_the_default_page_size() {
        let catalogue = Catalogue::embedded().expect("sound");
        let ids = |page: Option<u64>, path: &str| {
            let places = Places::of(&catalogue, page);
            places.at(path).iter().map(|knob| knob.id.to_string()).collect::<Vec<_>>().join(" ")
        };
        for (page, id) in [
            (Some(2 << 20), "hugepages.2m.total"),
            (Some(1 << 30), "hugepages.1g.total"),
            // Of pages of 512 MiB no row is for all nodes.
            (Some(512 << 20), "hugepages.512m"),
            (Some(64 << 10), ""),
            (None, ""),
        ] {
            for name in ["nr_hugepages", "nr_hugepages_mempolicy"] {
                assert_eq!(ids(page, &format!("/proc/sys/vm/{name}")), id, "{page:?} {name}");
            }
        }
        let folder = "/sys/kernel/mm/hugepages";
        let over = "hugepages.2m.overcommit";
        for (path, id) in [
            ("/proc/sys/vm/nr_hugepages*", "hugepages.2m.total"),
            ("/proc/sys/vm/nr_overcommit_hugepages", over),
            (format!("{folder}/hugepages-2048kB/nr_hugepages_mempolicy").as_str(), "hugepages.2m.total"),
            (format!("{folder}/hugepages-2048kB/nr_hugepages*").as_str(), "hugepages.2m.total"),
            (format!("{folder}/hugepages-32768kB/nr_hugepages").as_str(), "hugepages.32m"),
        ] {
            assert_eq!(ids(Some(2 << 20), path), id, "{path}");
        }
    }

    #[test]
    fn a_path_is_held_against_rows_once_and_one_of_no_row_never() {
        let catalogue = Catalogue::embedded().expect("sound");
        let places = Places::of(&catalogue, None);
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
        let places = Places::of(&catalogue, None);
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
        let places = Places::of(&catalogue, None);
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
