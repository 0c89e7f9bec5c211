//! The knobs that have a place at a path, found without a look at each row: scripts of a boot write thousands of files.

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
    /// By how many components a path has.
    rows: BTreeMap<usize, Vec<&'c Knob>>,
    /// Those with one place each, by the last part of its name.
    names: HashMap<&'c str, Vec<&'c Knob>>,
    known: RefCell<BTreeMap<String, Rc<[&'c Knob]>>>,
}

impl<'c> Places<'c> {
    pub(super) fn of(catalogue: &'c Catalogue) -> Self {
        let mut rows: BTreeMap<usize, Vec<&Knob>> = BTreeMap::new();
        for knob in catalogue.knobs() {
            rows.entry(knob.path.split('/').count()).or_default().push(knob);
        }
        let mut names: HashMap<&str, Vec<&Knob>> = HashMap::new();
        for knob in catalogue.knobs().filter(|knob| !knob.has_holes() && knob.boot_parameter().is_none()) {
            names.entry(last(&knob.path)).or_default().push(knob);
        }
        let roots = catalogue.knobs().filter_map(|knob| root(&knob.path)).collect();
        Self { catalogue, roots, rows, names, known: RefCell::default() }
    }

    /// The knobs that have a place there. Most of what scripts write are files of their own.
    pub(super) fn at(&self, path: &str) -> Rc<[&'c Knob]> {
        if !root(path).is_some_and(|root| self.roots.contains(root) || root.contains(WILDCARDS)) {
            return Rc::new([]);
        }
        if let Some(known) = self.known.borrow().get(path) {
            return Rc::clone(known);
        }
        let rows = self.rows.get(&path.split('/').count()).into_iter().flatten();
        let found: Rc<[&Knob]> = rows.filter(|knob| is_place(knob, path)).copied().collect();
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
    path.strip_prefix('/')?.split('/').next()
}

/// Whether a knob has a place there; a wildcard of the path stays within its component.
pub(super) fn is_place(knob: &Knob, path: &str) -> bool {
    let (mut ours, mut theirs) = (knob.path.split('/'), path.split('/'));
    loop {
        match (ours.next(), theirs.next()) {
            (None, None) => return true,
            (Some(ours), Some(theirs)) => {
                let (hole, wild) = (ours.contains('{'), theirs.contains(WILDCARDS));
                let before = ours.split('{').next().unwrap_or_default();
                let fits = match (hole, wild) {
                    (false, false) => ours == theirs,
                    (false, true) => place::matches(theirs, ours),
                    (true, false) => place::captures(ours, theirs).is_some(),
                    (true, true) => theirs.starts_with(before) || theirs.starts_with(WILDCARDS),
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
