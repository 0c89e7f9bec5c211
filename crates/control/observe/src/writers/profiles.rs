//! The profiles of a writer: what the active ones set, once they are merged with those that they include.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use planish_formats::shell::{What, effects};
use planish_formats::tuned::{Asked, Line, Lines, Steering, main_option};
use planish_model::{Again, BootValue, Knob, KnobId, Said, WriterAgain, WriterScope, place, threads};

use super::named::{Named, meant, of_path, of_sysctl, places_of};
use super::{Look, scope, unremembered};
use crate::persisted::sysctl;

/// Where profiles lie, and what their options mean.
pub(super) struct Row<'a> {
    pub(super) folders: &'a [String],
    pub(super) file: &'a str,
    /// Whether a recording keeps them.
    pub(super) is_kept: bool,
    pub(super) options: &'a BTreeMap<String, Vec<String>>,
    /// Whether files of the host are written again behind it.
    pub(super) again: Option<&'a WriterAgain>,
}

/// What the active profiles set.
pub(super) struct Read {
    pub(super) named: Named,
    /// Whether that is all: a profile that is not there, or whose name or script is not known, may set anything
    /// besides.
    pub(super) is_whole: bool,
    /// The lines of the host's files that are written again.
    pub(super) again: Again,
}

/// Reads the active profiles.
pub(super) fn read(look: &Look<'_>, row: &Row<'_>, active: &str) -> Read {
    let paths = RefCell::new(BTreeMap::new());
    let files = |asked: Asked<'_>| {
        // Files of variables may hold anything, and values are told by words alone.
        let Asked::Profile(name) = asked else { return None };
        let mut all = row.folders.iter().map(|folder| format!("{folder}/{name}/{}", row.file));
        all.find_map(|path| {
            let text = match row.is_kept {
                true => look.host().read_lossy(&path).ok(),
                false => unremembered(look.host(), &path),
            }?;
            paths.borrow_mut().insert(name.to_owned(), path);
            Some(text)
        })
    };
    // Of several that are active each overrides those before it, as one does that includes them.
    let names: Vec<&str> = active.split_whitespace().collect();
    let all = Lines::read(&format!("[main]\ninclude={}\n", names.join(",")), Some(&files));
    let (named, others) = (Named::default(), BTreeMap::new());
    let mut merged = Merged { look, row, all: &all, paths: paths.take(), named, others };
    let is_whole = merged.read();
    let again = row.again.map(|again| merged.again(again)).unwrap_or_default();
    Read { named: merged.named, is_whole: is_whole && !all.lacks_profile, again }
}

/// The knobs of profiles that a command makes active. A recording keeps none of them, nor the command.
pub(super) fn made_active<'l>(look: &'l Look<'_>, names: &str) -> Vec<&'l Knob> {
    let catalogue = look.catalogue();
    let scopes = catalogue.writers().iter().filter_map(|writer| writer.scope.as_ref());
    let rows = scopes.filter_map(|scope| match scope {
        WriterScope::Profile { folders, file, options, .. } => {
            Some(Row { folders, file, is_kept: false, options, again: None })
        }
        _ => None,
    });
    let knobs = rows.flat_map(|row| read(look, &row, names).named.knobs());
    knobs.filter_map(|id| catalogue.knob(&id).ok()).collect()
}

/// Words by which `configparser` and `tuned.utils.commands` take a switch to be off.
const OFF: [&str; 5] = ["0", "no", "n", "false", "off"];

struct Merged<'a, 'h> {
    look: &'a Look<'h>,
    row: &'a Row<'a>,
    all: &'a Lines,
    /// The file of each profile.
    paths: BTreeMap<String, String>,
    named: Named,
    /// The line at which a section begins that sets a knob, of the last one of another kind than `sysctl`.
    others: BTreeMap<KnobId, usize>,
}

impl Merged<'_, '_> {
    /// The lines that are written again, and where they are the last word. tuned goes through its sections in turn
    /// (`tuned/units/manager.py`), and each of `sysctl` writes its own keys and then the files (`plugin_sysctl.py`): of
    /// a knob that a section behind the last of them sets, the files are not the last word.
    fn again(&self, row: &WriterAgain) -> Again {
        let main = unremembered(self.look.host(), &row.file).unwrap_or_default();
        // A recording keeps it: what it says decides.
        self.look.host().exists(&row.file);
        let is_off = main_option(&main, &row.key).is_some_and(|word| OFF.contains(&&*word.to_lowercase()));
        let is_one = |line: &&Line| {
            let steering = self.all.steering(&line.section);
            steering.kind == row.section && !steering.is_off
        };
        let sections: BTreeSet<&str> =
            self.all.lines.iter().filter(is_one).map(|line| line.section.as_str()).collect();
        if is_off || sections.is_empty() {
            return Again::default();
        }
        let is_sure = |section: &&&str| !self.all.steering(section).is_of_some;
        let last = sections.iter().filter(is_sure).filter_map(|section| self.begin_of(section)).max();
        let except = main_option(&main, &row.except).unwrap_or_default();
        let except: Vec<&str> = except.split([',', ';']).map(str::trim).collect();
        let lines = sysctl::written_again(self.look.host(), &except);
        let mut settles: BTreeSet<String> =
            lines.iter().map(|line| self.look.places.name_in_sysfs(&line.path)).collect();
        for (knob, begin) in &self.others {
            if last.is_none_or(|last| last < *begin) {
                let row = self.look.catalogue().knob(knob).ok();
                let same = row.into_iter().flat_map(|row| row.twin.iter().chain(&row.alias)).chain([knob]);
                let same: Vec<_> = same.filter_map(|id| self.look.catalogue().knob(id).ok()).collect();
                settles.retain(|at| !same.iter().any(|row| place::captures(&row.path, at).is_some()));
            }
        }
        let lines = lines.into_iter().map(|line| (line.path, BootValue::new(&line.value, &line.source)));
        Again { lines: lines.collect(), is_sure: last.is_some(), settles }
    }

    /// Where a section begins once all are merged: one that a later file says more of keeps its place.
    fn begin_of(&self, section: &str) -> Option<usize> {
        self.all.lines.iter().position(|line| line.section == section)
    }

    /// Notes that a section of another kind than `sysctl` sets, or may set, knobs.
    fn set_by_other<'k>(&mut self, section: &str, knobs: impl Iterator<Item = &'k KnobId>) {
        let begin = self.begin_of(section).unwrap_or_default();
        for knob in knobs {
            let last = self.others.entry(knob.clone()).or_default();
            *last = begin.max(*last);
        }
    }

    /// Whether all that is run could be read.
    fn read(&mut self) -> bool {
        let mut is_whole = true;
        for line in &self.all.lines {
            let steering = self.all.steering(&line.section);
            let is_script = (steering.kind, line.key.as_str()) == ("script", "script");
            // Scripts of a section of this name are run one after another.
            let is_replaced = line.replaced_by.is_some() && !(is_script && line.section == "script");
            if steering.is_off || is_replaced || steering.kind == "main" {
                continue;
            }
            let is_sure = !steering.is_of_some && !line.may_be_dropped;
            match is_script {
                true => is_whole &= self.script(line),
                false => self.option(line, &steering, is_sure),
            }
        }
        is_whole
    }

    fn path(&self, line: &Line) -> String {
        self.paths.get(&line.profile).cloned().unwrap_or_default()
    }

    /// What a script sets that a profile runs; `false` for one that cannot be read, or whose name is computed.
    fn script(&mut self, line: &Line) -> bool {
        let path = self.path(line);
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let script = line.value.clone().unwrap_or_default().replace("${i:PROFILE_DIR}", folder);
        let script = self.all.expanded(&script).ok().filter(|script| !script.contains('$'));
        // Whatever file it names, it is looked at as those are that it starts itself.
        let text = script.as_ref().and_then(|script| scope::script(&self.look.near, script));
        let (Some(script), Some(text)) = (script, text) else { return false };
        // Another profile that it makes active is looked at where that one is: it may be this one again.
        let mut done = effects(&text, None);
        done.retain(|effect| !matches!(effect.what, What::Profile(_)));
        let mut of_script = Named::default();
        of_script.add(self.look, &done, &script);
        self.set_by_other(&line.section, of_script.knobs().iter());
        self.named.extend(of_script);
        true
    }

    fn option(&mut self, line: &Line, steering: &Steering<'_>, is_sure: bool) {
        let (kind, key) = (steering.kind, line.key.as_str());
        let value = self.all.expanded(line.value.as_deref().unwrap_or_default());
        let value = value.unwrap_or_else(|_| "$".to_owned());
        // A choice of several, what is computed and what goes on below may come to any of its words.
        let is_told = !value.contains(['|', '$']) && line.goes_on.is_none();
        let told = if is_told { format!("{key} = {value}") } else { key.to_owned() };
        let path = self.path(line);
        let knobs = self.knobs(kind, key, line.value.as_deref().unwrap_or_default());
        if self.row.again.is_some_and(|again| again.section != kind) {
            self.set_by_other(&line.section, knobs.iter());
        }
        for knob in knobs {
            let row = self.look.catalogue().knob(&knob).ok();
            let places = row.map_or_else(|| vec![None], |row| self.places(steering, key, row));
            let said = |text: &str| {
                places.iter().map(|at| Said { text: text.to_owned(), at: at.clone() }).collect::<Vec<_>>()
            };
            if !is_sure {
                self.named.maybe.entry(knob).or_default().extend(said(&path));
                continue;
            }
            // Of several places of a knob, each profile may set others; of one the last counts.
            let is_one = row.is_some_and(|row| !row.has_holes());
            let sources = self.named.sources.entry(knob.clone()).or_default();
            let commands = self.named.commands.entry(knob).or_default();
            if is_one && sources.last().is_some_and(|last| last.text != path) {
                sources.clear();
                commands.clear();
            }
            sources.extend(said(&path));
            sources.dedup();
            commands.extend(said(&told));
        }
    }

    /// The places of a knob that an option sets, each as a pattern: those of the devices that its section is for, by
    /// words of which one with `!` takes some away (`tuned/hardware/device_matcher.py`).
    fn places(&self, steering: &Steering<'_>, key: &str, row: &Knob) -> Vec<Option<String>> {
        let hole = match steering.kind {
            "sysfs" => return vec![places_of(self.look, row, key)],
            "disk" => "disk",
            "net" => "nic",
            _ => return vec![None],
        };
        let devices = steering.devices.and_then(|devices| self.all.expanded(devices).ok());
        let devices = devices.filter(|devices| row.has_holes() && !devices.contains('$')).unwrap_or_default();
        let words = devices.split(|c: char| c == ',' || c.is_whitespace());
        let named = words.filter(|word| !word.is_empty() && !word.starts_with('!'));
        let places: Vec<_> = named.map(|word| Some(place::fill(&row.path, &[(hole, word)]))).collect();
        if places.is_empty() { vec![None] } else { places }
    }

    /// The knobs that an option of a plugin sets.
    fn knobs(&self, kind: &str, key: &str, value: &str) -> Vec<KnobId> {
        match (kind, key) {
            (_, "type" | "replace" | "drop" | "priority" | "enabled") => Vec::new(),
            ("sysctl", key) => of_sysctl(&self.look.places, key),
            ("sysfs", path) => of_path(&self.look.places, path),
            // Whatever a group is called, its expression says which threads are meant.
            ("scheduler" | "kthread", key) if key.starts_with("group.") => {
                let named = threads::Group::parse(value).map(|group| group.knobs());
                named.into_iter().flatten().map(KnobId::new).collect()
            }
            (kind, key) => {
                let options = self.row.options;
                let patterns = options.get(&format!("{kind}.{key}")).or_else(|| options.get(kind));
                patterns.map(|patterns| meant(self.look.catalogue(), patterns)).unwrap_or_default()
            }
        }
    }
}
