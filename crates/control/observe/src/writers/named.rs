//! The knobs that texts of a writer name, and what becomes of them.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap, HashSet};

use planish_formats::shell::{Effect, What};
use planish_host::Near;
use planish_model::{Catalogue, Knob, KnobId, Said, Says, place};
use planish_sys::file::BYTES_MAX;

use super::places::Places;
use super::{Look, disks, profiles};
use crate::persisted::{Setting, sysctl};

/// What texts say of each knob.
#[derive(Default)]
pub(super) struct Named {
    /// The commands that set a knob.
    pub(super) commands: Says,
    /// The files that do.
    pub(super) sources: Says,
    /// The files that name a knob of which nobody can tell what becomes.
    pub(super) maybe: Says,
}

impl Named {
    /// All knobs, those that may be set among them.
    pub(super) fn knobs(&self) -> Vec<KnobId> {
        self.sources.keys().chain(self.maybe.keys()).cloned().collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// Adds what other texts say.
    pub(super) fn extend(&mut self, other: Self) {
        let add = |into: &mut Says, from: Says| {
            from.into_iter().for_each(|(knob, more)| into.entry(knob).or_default().extend(more));
        };
        add(&mut self.commands, other.commands);
        add(&mut self.sources, other.sources);
        add(&mut self.maybe, other.maybe);
    }

    /// Adds what the commands of a file do. Whether that is something to a knob.
    pub(super) fn add(&mut self, look: &Look<'_>, effects: &[Effect], from: &str) -> bool {
        let (places, catalogue, mut done) = (&look.places, look.catalogue(), HashSet::new());
        let mut names_any = false;
        // A function that is called again does the same again.
        for effect in effects.iter().filter(|effect| done.insert(*effect)) {
            let is_sure = effect.is_sure;
            // A script that the file has run is named beside it.
            let from = [from, effect.from.as_str()];
            let from = &from[..1 + usize::from(!effect.from.is_empty())];
            names_any |= match &effect.what {
                What::File(path) => self.written(look, path, &effect.says, is_sure, from),
                What::Key(key) => self.written(look, &place::of_sysctl(key), &effect.says, is_sure, from),
                What::Below(folder, name) => {
                    let by_name = catalogue.knobs().filter(|knob| is_below(knob, folder, name));
                    let linked = linked_below(places, folder, name);
                    self.may_set(by_name.chain(linked), from)
                }
                What::Load(path) => self.loaded(look, path, is_sure, from),
                What::LoadAll => self.loaded_all(look, is_sure, from),
                What::Profile(names) => self.may_set(profiles::made_active(look, names).into_iter(), from),
                What::Named(text) => self.may_set(mentioned(places, text).into_iter(), from),
            };
        }
        names_any
    }

    fn may_set<'k>(&mut self, knobs: impl Iterator<Item = &'k Knob>, from: &[&str]) -> bool {
        let mut names_any = false;
        for knob in knobs {
            names_any = true;
            from.iter().for_each(|file| push(&mut self.maybe, &knob.id, Said::of_all(file)));
        }
        names_any
    }

    /// Something is written to the places of a pattern. One that leaves open which knob is meant may mean another.
    fn written(&mut self, look: &Look<'_>, path: &str, says: &str, is_sure: bool, from: &[&str]) -> bool {
        let mut names_any = false;
        let disks::Meant { path, is_told } = disks::meant(look, path);
        let (path, is_sure) = (path.as_ref(), is_sure && is_told);
        for knob in look.places.at(path).iter() {
            names_any = true;
            let at = places_of(look, knob, path);
            let said = |text: &str| Said { text: text.to_owned(), at: at.clone() };
            match is_sure && tells_knob(knob, path) {
                true => {
                    self.commands.entry(knob.id.clone()).or_default().push(said(says));
                    from.iter().for_each(|file| push(&mut self.sources, &knob.id, said(file)));
                }
                false => from.iter().for_each(|file| push(&mut self.maybe, &knob.id, said(file))),
            }
        }
        names_any
    }

    /// `sysctl -p FILE`.
    fn loaded(&mut self, look: &Look<'_>, path: &str, is_sure: bool, from: &[&str]) -> bool {
        let mut lines = Vec::new();
        for file in files(&look.near, path) {
            let bytes = look.near.read_up_to(&file, BYTES_MAX).unwrap_or_default();
            lines.extend(sysctl::parse(&String::from_utf8_lossy(&bytes), &file));
        }
        self.lines(look, &lines, is_sure, from)
    }

    /// `sysctl --system`, of which the pools of huge pages alone count. Their lines of others are for all nodes
    /// together, and ours for each node behind them, in tmpfiles.d: those it takes away. Of every other key the line
    /// that it sets last is the one that the boot set, and ours is among those.
    fn loaded_all(&mut self, look: &Look<'_>, is_sure: bool, from: &[&str]) -> bool {
        let mut lines = sysctl::loaded_by_all(look.host());
        lines.retain(|line| look.places.name_in_sysfs(&line.path) != line.path);
        self.lines(look, &lines, is_sure, from)
    }

    /// Lines of `sysctl`: of those for one key the last counts.
    fn lines(&mut self, look: &Look<'_>, lines: &[Setting], is_sure: bool, from: &[&str]) -> bool {
        let mut names_any = false;
        let last: HashMap<&str, usize> =
            lines.iter().enumerate().map(|(at, line)| (line.path.as_str(), at)).collect();
        for (at, line) in lines.iter().enumerate().filter(|(_, line)| !line.value.is_empty()) {
            if last.get(line.path.as_str()) == Some(&at) {
                let says = format!("{} = {}", line.path, line.value);
                let file = line.source.rsplit_once(':').map_or(line.source.as_str(), |(file, _)| file);
                let from: Vec<&str> = from.iter().copied().chain([file]).collect();
                names_any |= self.written(look, &line.path, &says, is_sure, &from);
            }
        }
        names_any
    }
}

fn push(files: &mut Says, knob: &KnobId, file: Said) {
    let files = files.entry(knob.clone()).or_default();
    if !files.contains(&file) {
        files.push(file);
    }
}

/// The places of a knob that a path means, as a pattern in the names of its row. None where it may be any of them: of a
/// path by which a host has other names for them (a frequency is that of all CPUs of its policy, a disk may be called
/// by its numbers or by a link of udev, a card by an `altname`), of one that is for all of them, and of one with signs
/// that nobody has taken apart.
pub(super) fn places_of(look: &Look<'_>, knob: &Knob, path: &str) -> Option<String> {
    let name = place::canonical(path);
    let is_other = || {
        name.contains("/cpufreq/")
            || name.contains(['{', '}', ','])
            || name.contains("/../")
            || name.strip_prefix("/sys/block/").is_some_and(|disk| disk.contains(':'))
            || disks::is_by_numbers(look, path)
            || name.strip_prefix(place::CARDS).is_some_and(|card| is_no_card(look, card))
    };
    let is_told = knob.has_holes() && place::is_of_row(&knob.path, &name) && !is_other();
    is_told.then(|| name.into_owned())
}

/// Whether a place of a card begins with a name that none has here.
fn is_no_card(look: &Look<'_>, place: &str) -> bool {
    let name = place.split('/').next().unwrap_or_default();
    let is_here = || look.near.list("/sys/class/net").iter().any(|card| card == name);
    !name.contains(['*', '?', '[']) && !is_here()
}

/// The files that a pattern means.
fn files(near: &Near<'_>, path: &str) -> Vec<String> {
    match path.rsplit_once('/').filter(|(_, name)| name.contains(['*', '?', '['])) {
        Some((folder, pattern)) => {
            let mut names = near.list(folder);
            names.retain(|name| place::matches(pattern, name));
            names.sort();
            names.iter().map(|name| format!("{folder}/{name}")).collect()
        }
        None => vec![path.to_owned()],
    }
}

/// The knobs that a text names by a path of their places or by the name that `sysctl` has for one. Scripts have
/// thousands of lines: each is taken apart once, and most have no such word.
fn mentioned<'c>(places: &Places<'c>, text: &str) -> Vec<&'c Knob> {
    let is_of_word = |c: char| c.is_ascii_alphanumeric() || "._-/".contains(c);
    let has_parts = |word: &&str| word.len() > 3 && word.contains(['.', '/']);
    let named = text.split(|c| !is_of_word(c)).filter(has_parts).flat_map(|word| {
        let is_meant = |(path, _): &&(Cow<'c, str>, &'c Knob)| match path.strip_prefix("/proc/sys/") {
            Some(name) => ends_in(word, name),
            None => word.ends_with(&**path),
        };
        places.called(word).iter().filter(is_meant).map(|(_, knob)| *knob)
    });
    let mut found: Vec<&Knob> = named.collect();
    for path in paths(text) {
        found.extend(places.at(&path).iter().filter(|knob| knob.has_holes()));
    }
    found
}

/// Whether a word ends in a name of `sysctl`, be it with dots or with slashes.
fn ends_in(word: &str, name: &str) -> bool {
    let end = word.len().checked_sub(name.len()).and_then(|at| word.as_bytes().get(at..));
    let is_same = |(one, other): (&u8, &u8)| one == other || *one == b'.' && *other == b'/';
    end.is_some_and(|end| end.iter().zip(name.as_bytes()).all(is_same))
}

/// The files of the kernel that a text names, each as a pattern: of what a variable holds, or stands in braces,
/// anything may come.
fn paths(text: &str) -> impl Iterator<Item = String> {
    let words = text.split(|c: char| c.is_whitespace() || "'\";&|<>()=`".contains(c));
    words.filter(|word| word.starts_with("/sys/") || word.starts_with("/proc/")).map(|word| {
        let mut pieces = word.split('$');
        let mut pattern = pieces.next().unwrap_or_default().to_owned();
        for piece in pieces {
            let name = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let rest = match piece.strip_prefix('{').and_then(|braced| braced.split_once('}')) {
                Some((_, rest)) => rest,
                None => piece.trim_start_matches(name),
            };
            pattern.push('*');
            pattern.push_str(rest);
        }
        if pattern.contains('{') { without_braces(&pattern) } else { pattern }
    })
}

/// A path with a star for what stands in braces.
fn without_braces(path: &str) -> String {
    let parts = path.split('/').map(|part| match (part.find('{'), part.rfind('}')) {
        (Some(open), Some(close)) if open < close => {
            Cow::Owned([&part[..open], "*", &part[close + 1..]].concat())
        }
        _ => Cow::Borrowed(part),
    });
    parts.collect::<Vec<_>>().join("/")
}

/// The knobs of a key of `sysctl`, which may hold wildcards.
pub(super) fn of_sysctl(places: &Places<'_>, key: &str) -> Vec<KnobId> {
    of_path(places, &place::of_sysctl(key))
}

/// The knobs that have a place there.
pub(super) fn of_path(places: &Places<'_>, path: &str) -> Vec<KnobId> {
    places.at(path).iter().map(|knob| knob.id.clone()).collect()
}

/// Whether a knob has a place below a folder that ends in a name, of one part or several, which may be a pattern.
fn is_below(knob: &Knob, folder: &str, name: &str) -> bool {
    let is_of_kernel = ["/proc/", "/sys/"].iter().any(|root| knob.path.starts_with(root));
    let begin = knob.path.rmatch_indices('/').nth(name.matches('/').count());
    let Some((at, _)) = begin.filter(|_| is_of_kernel) else { return false };
    let (above, file) = (&knob.path[..at], &knob.path[at + 1..]);
    let mut parts = file.split('/').zip(name.split('/'));
    let fits = parts.all(|(part, asked)| part.contains('{') || place::matches(asked, part));
    // A folder may stand within one that a place leaves open.
    let mut parts = above.split('/');
    let mut asked = folder.trim_end_matches('/').split('/');
    let leads = asked.all(|asked| {
        let part = parts.next();
        part.is_some_and(|part| part.contains('{') || part == asked || place::matches(asked, part))
    });
    fits && leads
}

/// Levels of folders below one that a link leads to: `/sys/class/block/sda/queue/scheduler`.
const LEVELS: usize = 3;

/// The knobs that have a place below a folder by another of its names.
fn linked_below<'c>(places: &Places<'c>, folder: &str, name: &str) -> Vec<&'c Knob> {
    if !folder.starts_with("/sys/") {
        return Vec::new();
    }
    let folder = folder.trim_end_matches('/');
    let paths = (0..LEVELS).map(|levels| format!("{folder}{}/{name}", "/*".repeat(levels)));
    paths.flat_map(|path| places.at(&path).to_vec()).collect()
}

/// Whether a path says which knob it is of: what it leaves open is which of its places.
fn tells_knob(knob: &Knob, path: &str) -> bool {
    let (ours, theirs) = (place::canonical(&knob.path), place::canonical(path));
    let pairs = ours.split('/').zip(theirs.split('/'));
    pairs.into_iter().all(|(ours, theirs)| ours.contains('{') || !theirs.contains(['*', '?', '[']))
}

/// The knobs that patterns of ids mean.
pub(super) fn meant(catalogue: &Catalogue, patterns: &[String]) -> Vec<KnobId> {
    let is_meant = |knob: &&Knob| patterns.iter().any(|pattern| place::matches(pattern, knob.id.as_str()));
    catalogue.knobs().filter(is_meant).map(|knob| knob.id.clone()).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ids(knobs: Vec<KnobId>) -> Vec<String> {
        knobs.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_key_or_path_means_the_knobs_that_have_a_place_there() {
        let catalogue = Catalogue::embedded().expect("sound");
        let places = Places::of(&catalogue, Some(2 << 20));
        assert_eq!(ids(of_sysctl(&places, "vm.swappiness")), ["vm.swappiness"]);
        assert_eq!(ids(of_sysctl(&places, "net/core/somaxconn")), ["net.core.somaxconn"]);
        assert_eq!(ids(of_path(&places, "/sys/block/sda/queue/scheduler")), ["block.scheduler"]);
        assert_eq!(ids(of_path(&places, "/sys/block/sd*/queue/scheduler")), ["block.scheduler"]);
        assert_eq!(ids(of_path(&places, "/sys/block/sd*/queue/sched")), Vec::<String>::new());
        assert_eq!(ids(of_sysctl(&places, "vm.nr_hugepages")), ["hugepages.2m.total"]);
        assert!(ids(of_path(&places, "/proc/sys/vm/dirty_*")).contains(&"vm.dirty_bytes".to_owned()));
    }

    #[test]
    fn a_text_that_only_begins_like_a_knob_does_not_name_it() {
        let catalogue = Catalogue::embedded().expect("sound");
        let places = Places::of(&catalogue, Some(2 << 20));
        let is_mentioned =
            |id: &str, text: &str| mentioned(&places, text).iter().any(|knob| knob.id == KnobId::new(id));
        for (text, mentions) in [
            ("sysctl -w vm.overcommit_memory=1", true),
            ("echo 1 > /proc/sys/vm/overcommit_memory", true),
            ("vm.overcommit_memory_of_mine", false),
            ("vm/overcommit_memory.bak", false),
            ("-w=vm/overcommit_memory", true),
            ("", false),
        ] {
            assert_eq!(is_mentioned("vm.overcommit_memory", text), mentions, "{text}");
        }
        for text in [
            "helper vm.nr_hugepages=8",
            "helper -w=vm/nr_hugepages",
            "awk /proc/sys/vm/nr_hugepages_mempolicy",
        ] {
            assert!(is_mentioned("hugepages.2m.total", text), "{text}");
        }
        assert!(!is_mentioned("hugepages.2m.total", "helper vm.nr_hugepages_of_mine"));
        let folder = "/sys/devices/system/cpu";
        for (text, mentions) in [
            (format!("echo performance > {folder}/cpu0/cpufreq/scaling_governor"), true),
            (format!("echo performance >{folder}/cpu*/cpufreq/scaling_governor; true"), true),
            (format!("echo performance | tee \"{folder}/cpu${{i}}/cpufreq/scaling_governor\""), true),
            (format!("echo performance | tee {folder}/$cpu/cpufreq/scaling_governor"), true),
            (format!("echo performance | tee {folder}/cpu{{0,{{1..3}}}}/cpufreq/scaling_governor"), true),
            (format!("echo performance | tee {folder}/cpufreq/policy$i/scaling_governor"), true),
            (format!("cat {folder}/cpufreq/policy{{0,1}}/scaling_available_governors"), false),
            (format!("cat {folder}/cpu0/cpufreq/scaling_available_governors"), false),
            (format!("echo performance > {folder}/cpu0/cpufreq/scaling_governor.bak"), false),
            ("cpufreq-set -g performance".to_owned(), false),
        ] {
            assert_eq!(is_mentioned("cpu.governor", &text), mentions, "{text}");
        }
    }

    proptest! {
        #[test]
        fn odd_text_is_passed_over(text in "[\\PC\n\\[\\]=]{0,200}") {
            let catalogue = Catalogue::embedded().expect("sound");
            let places = Places::of(&catalogue, None);
            let _ = (of_path(&places, &text), mentioned(&places, &text));
        }
    }
}
