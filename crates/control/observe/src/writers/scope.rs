//! Which knobs a second writer sets on this host, by its own configuration.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt;

use planish_host::Host;
use planish_model::{Catalogue, Knob, KnobId, Writer, WriterScope, place, threads};

use super::unit::Units;
use super::unremembered;

/// Profiles that one may include, one after another: none that is sound has so many.
const PROFILES_MAX: usize = 32;

/// What the configuration of a writer tells.
#[derive(Default)]
pub(super) struct Scope {
    /// The knobs; `None` where it cannot be told, and all of the row count.
    pub(super) knobs: Option<Vec<KnobId>>,
    /// Where it was read.
    pub(super) evidence: Vec<String>,
    /// The active profile.
    pub(super) profile: Option<String>,
    /// The commands that name a knob.
    pub(super) commands: BTreeMap<KnobId, Vec<String>>,
    /// The files that name a knob.
    pub(super) sources: BTreeMap<KnobId, Vec<String>>,
}

/// The knobs that a writer sets.
pub(super) fn of(host: &Host, catalogue: &Catalogue, writer: &Writer, units: &Units<'_>) -> Scope {
    match &writer.scope {
        None => Scope::default(),
        Some(WriterScope::Profile { active, folders, file, options }) => {
            let Ok(text) = host.read(active) else { return Scope::default() };
            let profile = text.split_whitespace().collect::<Vec<_>>().join(" ");
            if profile.is_empty() {
                // It runs and sets nothing.
                return Scope { knobs: Some(Vec::new()), ..Scope::default() };
            }
            let mut profiles = Profiles {
                host,
                catalogue,
                folders,
                file,
                options,
                commands: BTreeMap::new(),
                sources: BTreeMap::new(),
            };
            let knobs = profiles.knobs(&profile);
            let Profiles { commands, sources, .. } = profiles;
            let evidence = vec![format!("its profile is {profile} ({active})")];
            Scope { knobs, evidence, profile: Some(profile), commands, sources }
        }
        Some(WriterScope::Names { folders, options }) => names(host, catalogue, folders, options),
        Some(WriterScope::Mentioned { files, executable }) => {
            let texts = files.iter().flat_map(|file| texts(host, file, *executable, units));
            mentioned(host, catalogue, texts)
        }
    }
}

/// A file a parameter.
fn names(
    host: &Host,
    catalogue: &Catalogue,
    folders: &[String],
    options: &BTreeMap<String, Vec<String>>,
) -> Scope {
    let Some((folder, names)) = folders.iter().find_map(|folder| {
        let names = host.list(folder);
        (!names.is_empty()).then_some((folder, names))
    }) else {
        return Scope::default();
    };
    let mut knobs = BTreeSet::new();
    for name in &names {
        // A listed folder is no file: what is in it is kept by a recording because it was looked at.
        host.exists(&format!("{folder}/{name}"));
        knobs.extend(of_sysctl(catalogue, name));
        let words = options.iter().filter(|(pattern, _)| place::matches(pattern, name));
        knobs.extend(words.flat_map(|(_, patterns)| meant(catalogue, patterns)));
    }
    let evidence = vec![format!("{} parameters in {folder}", names.len())];
    Scope { knobs: Some(knobs.into_iter().collect()), evidence, ..Scope::default() }
}

/// Texts that name knobs as `sysctl` does, or by their path.
fn mentioned(host: &Host, catalogue: &Catalogue, texts: impl Iterator<Item = (String, String)>) -> Scope {
    let mut commands: BTreeMap<KnobId, Vec<String>> = BTreeMap::new();
    let mut sources: BTreeMap<KnobId, Vec<String>> = BTreeMap::new();
    let (mut evidence, mut seen) = (Vec::new(), BTreeSet::new());
    for (path, text) in texts {
        // Red Hat's /etc/rc.local is a link to another of these files.
        if host.real_path(&path).is_ok_and(|real| !seen.insert(real)) {
            continue;
        }
        let mut names_any = false;
        for knob in catalogue.knobs().filter(|knob| is_mentioned(knob, &text)) {
            names_any = true;
            let naming = text.split(['\n', ';']).flat_map(|line| line.split("&&"));
            let naming = naming.filter(|command| is_mentioned(knob, command)).map(str::to_owned);
            commands.entry(knob.id.clone()).or_default().extend(naming);
            sources.entry(knob.id.clone()).or_default().push(path.clone());
        }
        if names_any {
            evidence.push(format!("{path} names knobs"));
        }
    }
    Scope { knobs: Some(commands.keys().cloned().collect()), evidence, profile: None, commands, sources }
}

/// The files that a name with `{any}` or `{enabled}` at its end stands for, each with what it has a boot do. Their
/// contents are not asked of the host, which would remember them.
fn texts(host: &Host, file: &str, executable: bool, units: &Units<'_>) -> Vec<(String, String)> {
    let paths = match file.rsplit_once('/') {
        Some((folder, "{enabled}")) => return units.commands_in(folder),
        Some((folder, "{started}")) => init_scripts(host, folder),
        Some((folder, "{any}")) => host.list(folder).iter().map(|name| format!("{folder}/{name}")).collect(),
        _ => vec![file.to_owned()],
    };
    let counted = paths.into_iter().filter(|path| !executable || is_executable(host, path));
    let told = |path: String| {
        let text = without_comments(&unremembered(host, &path)?);
        Some((path, text))
    };
    counted.filter_map(told).collect()
}

/// The scripts that a folder of a runlevel has started, where scripts of SysV are run at all: by an init that is no
/// systemd, or by the generator of one (systemd-sysv-generator(8)).
fn init_scripts(host: &Host, folder: &str) -> Vec<String> {
    let generator = "systemd/system-generators/systemd-sysv-generator";
    let has_generator =
        || ["/usr/lib", "/lib"].iter().any(|root| host.exists(&format!("{root}/{generator}")));
    if super::is_systemd(host) && !has_generator() {
        return Vec::new();
    }
    let is_started = |name: &String| {
        let number = name.strip_prefix('S').unwrap_or_default().as_bytes();
        number.len() > 2 && number[..2].iter().all(u8::is_ascii_digit)
    };
    host.list(folder).into_iter().filter(is_started).map(|name| format!("{folder}/{name}")).collect()
}

/// Whether a file may be executed by anybody.
fn is_executable(host: &Host, path: &str) -> bool {
    let found = host.real_path(path).and_then(std::fs::metadata);
    found.is_ok_and(|found| found.permissions().mode() & 0o111 != 0)
}

pub(super) fn without_comments(text: &str) -> String {
    let told = text.lines().filter(|line| !line.trim_start().starts_with('#'));
    told.collect::<Vec<_>>().join("\n")
}

/// Whether a text sets a knob by a path of its places or by the name that `sysctl` has for it.
fn is_mentioned(knob: &Knob, text: &str) -> bool {
    if knob.boot_parameter().is_some() {
        return false;
    }
    if knob.has_holes() {
        return paths(text).any(|path| is_place(knob, &path));
    }
    let ends = |at: usize, name: &str| {
        let next = text[at + name.len()..].chars().next();
        !next.is_some_and(|c| c.is_ascii_alphanumeric() || "._-/".contains(c))
    };
    let is_in = |name: &str| text.match_indices(name).any(|(at, _)| ends(at, name));
    let sysctl = knob.path.strip_prefix("/proc/sys/");
    is_in(&knob.path) || sysctl.is_some_and(|path| is_in(path) || is_in(&path.replace('/', ".")))
}

/// The files of the kernel that a text names, each as a pattern: of what a variable holds, anything may come.
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
        pattern
    })
}

/// The knobs of a key of `sysctl`, which may hold wildcards.
fn of_sysctl(catalogue: &Catalogue, key: &str) -> Vec<KnobId> {
    of_path(catalogue, &place::of_sysctl(key))
}

/// The knobs that have a place there.
fn of_path(catalogue: &Catalogue, path: &str) -> Vec<KnobId> {
    catalogue.knobs().filter(|knob| is_place(knob, path)).map(|knob| knob.id.clone()).collect()
}

/// Whether a knob has a place there; a wildcard of the path stays within its component.
fn is_place(knob: &Knob, path: &str) -> bool {
    let (mut ours, mut theirs) = (knob.path.split('/'), path.split('/'));
    loop {
        match (ours.next(), theirs.next()) {
            (None, None) => return true,
            (Some(ours), Some(theirs)) => {
                let (hole, wild) = (ours.contains('{'), theirs.contains(['*', '?', '[']));
                let before = ours.split('{').next().unwrap_or_default();
                let fits = match (hole, wild) {
                    (false, false) => ours == theirs,
                    (false, true) => place::matches(theirs, ours),
                    (true, false) => place::captures(ours, theirs).is_some(),
                    (true, true) => theirs.starts_with(before) || theirs.starts_with(['*', '?', '[']),
                };
                if !fits {
                    return false;
                }
            }
            _ => return false,
        }
    }
}

/// The knobs that patterns of ids mean.
fn meant(catalogue: &Catalogue, patterns: &[String]) -> Vec<KnobId> {
    let is_meant = |knob: &&Knob| patterns.iter().any(|pattern| place::matches(pattern, knob.id.as_str()));
    catalogue.knobs().filter(is_meant).map(|knob| knob.id.clone()).collect()
}

/// The profiles of a writer.
struct Profiles<'a> {
    host: &'a Host,
    catalogue: &'a Catalogue,
    folders: &'a [String],
    file: &'a str,
    options: &'a BTreeMap<String, Vec<String>>,
    /// What of them counts: a profile overrides those that it includes, and those before it.
    commands: BTreeMap<KnobId, Vec<String>>,
    sources: BTreeMap<KnobId, Vec<String>>,
}

impl Profiles<'_> {
    /// The knobs of profiles and of those that they include; `None` when one of them is not there, or its name or what
    /// it runs is not known: what the others set is kept all the same.
    fn knobs(&mut self, active: &str) -> Option<Vec<KnobId>> {
        let mut knobs = BTreeSet::new();
        let mut pending: Vec<String> = active.split_whitespace().map(str::to_owned).collect();
        let mut read = BTreeSet::new();
        let mut is_whole = true;
        while let Some(name) = pending.pop() {
            // `-name` is one that need not be there.
            let (name, optional) = name.strip_prefix('-').map_or((name.as_str(), false), |rest| (rest, true));
            if read.len() == PROFILES_MAX {
                return None;
            }
            if name.contains(['$', '/']) {
                is_whole = false;
                continue;
            }
            if !read.insert(name.to_owned()) {
                continue;
            }
            match self.text(name) {
                Some((path, text)) => {
                    let mut lines = self.add(&text, &mut pending);
                    let mut files: BTreeMap<KnobId, String> = BTreeMap::new();
                    for script in scripts(&text, &path) {
                        let Some(text) = script.as_ref().and_then(|script| unremembered(self.host, script))
                        else {
                            is_whole = false;
                            continue;
                        };
                        let texts = std::iter::once((script.unwrap_or_default(), text));
                        let texts = texts.map(|(path, text)| (path, without_comments(&text)));
                        let found = mentioned(self.host, self.catalogue, texts);
                        for (knob, commands) in found.commands {
                            lines.entry(knob).or_default().extend(commands);
                        }
                        files.extend(
                            found
                                .sources
                                .into_iter()
                                .filter_map(|(knob, from)| Some((knob, from.into_iter().next()?))),
                        );
                    }
                    knobs.extend(lines.keys().cloned());
                    for (knob, lines) in lines {
                        // Of several places of a knob, each profile may set others.
                        let is_one = self.catalogue.knob(&knob).is_ok_and(|row| !row.has_holes());
                        if !is_one || !self.commands.contains_key(&knob) {
                            self.commands.entry(knob.clone()).or_default().extend(lines);
                            let path = files.get(&knob).unwrap_or(&path).clone();
                            self.sources.entry(knob).or_default().push(path);
                        }
                    }
                }
                None if optional => {}
                None => is_whole = false,
            }
        }
        is_whole.then(|| knobs.into_iter().collect())
    }

    /// The file of a profile, and what it says.
    fn text(&self, name: &str) -> Option<(String, String)> {
        let mut paths = self.folders.iter().map(|folder| format!("{folder}/{name}/{}", self.file));
        paths.find_map(|path| {
            let text = self.host.read(&path).ok()?;
            Some((path, text))
        })
    }

    /// The knobs of one profile, each with the lines that set it; and the names of the profiles that it includes.
    fn add(&self, text: &str, pending: &mut Vec<String>) -> BTreeMap<KnobId, Vec<String>> {
        let mut knobs: BTreeMap<KnobId, Vec<String>> = BTreeMap::new();
        let mut set = |named: Vec<KnobId>, line: String| {
            for knob in named {
                knobs.entry(knob).or_default().push(line.clone());
            }
        };
        // A section is an instance of a plugin, which `type=` names where it is not the section's own name.
        let sections = sections(text);
        for (name, lines) in &sections {
            let kind =
                lines.iter().find_map(|(key, value)| (*key == "type").then_some(*value)).unwrap_or(name);
            for (key, value) in lines {
                match (kind, *key) {
                    ("main", "include") => {
                        pending.extend(
                            value.split([',', ';', ' ']).filter(|word| !word.is_empty()).map(str::to_owned),
                        );
                    }
                    ("sysctl", key) => set(of_sysctl(self.catalogue, key), format!("{key} = {value}")),
                    ("sysfs", path) => set(of_path(self.catalogue, path), format!("{path} = {value}")),
                    // Whatever a group is called, its expression says which threads are meant.
                    ("scheduler" | "kthread", key) if key.starts_with("group.") => {
                        let named = threads::Group::parse(value).map(|group| group.knobs());
                        set(
                            named.into_iter().flatten().map(KnobId::new).collect(),
                            format!("{key} = {value}"),
                        );
                    }
                    (kind, key) => {
                        let patterns =
                            self.options.get(&format!("{kind}.{key}")).or_else(|| self.options.get(kind));
                        let named = patterns.map(|patterns| meant(self.catalogue, patterns));
                        // A choice of several, and what is computed, may come to any of its words.
                        let line = if value.contains(['|', '$']) {
                            key.to_owned()
                        } else {
                            format!("{key} = {value}")
                        };
                        set(named.unwrap_or_default(), line);
                    }
                }
            }
        }
        knobs
    }
}

/// The scripts that a profile runs; `None` for one whose name is computed.
fn scripts(text: &str, path: &str) -> Vec<Option<String>> {
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut scripts = Vec::new();
    for (name, lines) in sections(text) {
        let kind = lines.iter().find_map(|(key, value)| (*key == "type").then_some(*value)).unwrap_or(name);
        let own = lines.iter().filter(|(key, _)| kind == "script" && *key == "script");
        scripts.extend(own.map(|(_, value)| {
            let value = value.replace("${i:PROFILE_DIR}", folder);
            (!value.contains('$')).then_some(value)
        }));
    }
    scripts
}

/// A section's name with its keys and values.
type Section<'a> = (&'a str, Vec<(&'a str, &'a str)>);

/// The sections of a file, comments left out.
fn sections(text: &str) -> Vec<Section<'_>> {
    let mut sections: Vec<Section<'_>> = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with(['#', ';'])) {
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.split(']').next()) {
            sections.push((name.trim(), Vec::new()));
        } else if let (Some((_, lines)), Some((key, value))) = (sections.last_mut(), line.split_once('=')) {
            lines.push((key.trim(), value.trim()));
        }
    }
    sections
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
        assert_eq!(ids(of_sysctl(&catalogue, "vm.swappiness")), ["vm.swappiness"]);
        assert_eq!(ids(of_sysctl(&catalogue, "net/core/somaxconn")), ["net.core.somaxconn"]);
        assert_eq!(ids(of_path(&catalogue, "/sys/block/sda/queue/scheduler")), ["block.scheduler"]);
        assert_eq!(ids(of_path(&catalogue, "/sys/block/sd*/queue/scheduler")), ["block.scheduler"]);
        assert_eq!(ids(of_path(&catalogue, "/sys/block/sd*/queue/sched")), Vec::<String>::new());
        assert!(ids(of_path(&catalogue, "/proc/sys/vm/dirty_*")).contains(&"vm.dirty_bytes".to_owned()));
    }

    #[test]
    fn a_text_that_only_begins_like_a_knob_does_not_name_it() {
        let catalogue = Catalogue::embedded().expect("sound");
        let knob = catalogue.knob(&KnobId::new("vm.overcommit_memory")).expect("a row");
        for (text, mentions) in [
            ("sysctl -w vm.overcommit_memory=1", true),
            ("echo 1 > /proc/sys/vm/overcommit_memory", true),
            ("vm.overcommit_memory_of_mine", false),
            ("vm/overcommit_memory.bak", false),
            ("", false),
        ] {
            assert_eq!(is_mentioned(knob, text), mentions, "{text}");
        }
        let knob = catalogue.knob(&KnobId::new("cpu.governor")).expect("a row");
        let folder = "/sys/devices/system/cpu";
        for (text, mentions) in [
            (format!("echo performance > {folder}/cpu0/cpufreq/scaling_governor"), true),
            (format!("echo performance >{folder}/cpu*/cpufreq/scaling_governor; true"), true),
            (format!("echo performance | tee \"{folder}/cpu${{i}}/cpufreq/scaling_governor\""), true),
            (format!("echo performance | tee {folder}/$cpu/cpufreq/scaling_governor"), true),
            (format!("cat {folder}/cpu0/cpufreq/scaling_available_governors"), false),
            (format!("echo performance > {folder}/cpu0/cpufreq/scaling_governor.bak"), false),
            ("cpufreq-set -g performance".to_owned(), false),
        ] {
            assert_eq!(is_mentioned(knob, &text), mentions, "{text}");
        }
        assert_eq!(without_comments("a\n # vm.swappiness\nb"), "a\nb");
    }

    proptest! {
        #[test]
        fn odd_text_is_passed_over(text in "[\\PC\n\\[\\]=]{0,200}") {
            let _ = (sections(&text), without_comments(&text));
            let _ = of_path(&Catalogue::embedded().expect("sound"), &text);
        }
    }
}
