//! The profiles of a writer: what the active ones set, once they are merged with those that they include.

use std::cell::RefCell;
use std::collections::BTreeMap;

use planish_formats::shell::effects;
use planish_formats::tuned::{Asked, Line, Lines};
use planish_host::Host;
use planish_model::{Catalogue, KnobId, threads};

use super::named::{Named, meant, of_path, of_sysctl};
use super::unremembered;

/// Where profiles lie, and what their options mean.
pub(super) struct Row<'a> {
    pub(super) folders: &'a [String],
    pub(super) file: &'a str,
    pub(super) options: &'a BTreeMap<String, Vec<String>>,
}

/// What the active profiles set, and whether that is all: one that is not there, or whose name or script is not known,
/// may set anything besides.
pub(super) fn read(host: &Host, catalogue: &Catalogue, row: &Row<'_>, active: &str) -> (Named, bool) {
    let paths = RefCell::new(BTreeMap::new());
    let files = |asked: Asked<'_>| {
        // Files of variables may hold anything, and values are told by words alone.
        let Asked::Profile(name) = asked else { return None };
        let mut all = row.folders.iter().map(|folder| format!("{folder}/{name}/{}", row.file));
        all.find_map(|path| {
            let text = host.read(&path).ok()?;
            paths.borrow_mut().insert(name.to_owned(), path);
            Some(text)
        })
    };
    // Of several that are active each overrides those before it, as one does that includes them.
    let names: Vec<&str> = active.split_whitespace().collect();
    let all = Lines::read(&format!("[main]\ninclude={}\n", names.join(",")), Some(&files));
    let mut merged = Merged { host, catalogue, row, all: &all, paths: paths.take(), named: Named::default() };
    let is_whole = merged.read();
    (merged.named, is_whole && !all.lacks_profile)
}

struct Merged<'a> {
    host: &'a Host,
    catalogue: &'a Catalogue,
    row: &'a Row<'a>,
    all: &'a Lines,
    /// The file of each profile.
    paths: BTreeMap<String, String>,
    named: Named,
}

impl Merged<'_> {
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
                false => self.option(line, steering.kind, is_sure),
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
        let text = script.as_ref().and_then(|script| unremembered(self.host, script));
        let (Some(script), Some(text)) = (script, text) else { return false };
        self.named.add(self.host, self.catalogue, &effects(&text), &script);
        true
    }

    fn option(&mut self, line: &Line, kind: &str, is_sure: bool) {
        let key = line.key.as_str();
        let value = self.all.expanded(line.value.as_deref().unwrap_or_default());
        let value = value.unwrap_or_else(|_| "$".to_owned());
        // A choice of several, what is computed and what goes on below may come to any of its words.
        let is_told = !value.contains(['|', '$']) && line.goes_on.is_none();
        let told = if is_told { format!("{key} = {value}") } else { key.to_owned() };
        let path = self.path(line);
        for knob in self.knobs(kind, key, line.value.as_deref().unwrap_or_default()) {
            if !is_sure {
                self.named.maybe.entry(knob).or_default().push(path.clone());
                continue;
            }
            // Of several places of a knob, each profile may set others; of one the last counts.
            let is_one = self.catalogue.knob(&knob).is_ok_and(|row| !row.has_holes());
            let sources = self.named.sources.entry(knob.clone()).or_default();
            let commands = self.named.commands.entry(knob).or_default();
            if is_one && sources.last().is_some_and(|last| *last != path) {
                sources.clear();
                commands.clear();
            }
            if sources.last() != Some(&path) {
                sources.push(path.clone());
            }
            commands.push(told.clone());
        }
    }

    /// The knobs that an option of a plugin sets.
    fn knobs(&self, kind: &str, key: &str, value: &str) -> Vec<KnobId> {
        match (kind, key) {
            (_, "type" | "replace" | "drop" | "priority" | "enabled") => Vec::new(),
            ("sysctl", key) => of_sysctl(self.catalogue, key),
            ("sysfs", path) => of_path(self.catalogue, path),
            // Whatever a group is called, its expression says which threads are meant.
            ("scheduler" | "kthread", key) if key.starts_with("group.") => {
                let named = threads::Group::parse(value).map(|group| group.knobs());
                named.into_iter().flatten().map(KnobId::new).collect()
            }
            (kind, key) => {
                let options = self.row.options;
                let patterns = options.get(&format!("{kind}.{key}")).or_else(|| options.get(kind));
                patterns.map(|patterns| meant(self.catalogue, patterns)).unwrap_or_default()
            }
        }
    }
}
