//! The files that a profile of tuned is made of: those that it includes come first, what it says itself counts.
//!
//! tuned merges section by section (`tuned/profiles/merger.py`): an option of a later file takes the place of the same
//! one of an earlier file, `replace=1` drops what the section had, `drop=` some options of it. Variables are those of
//! all files together, one after another: each is made of those before it, and of several with one name the last counts
//! from its line on (`tuned/profiles/variables.py`).

use std::collections::{BTreeMap, BTreeSet};

use crate::ini::{bare_sections, tuned_entries};

/// Profiles that one may include, one after another: none that is sound has so many.
const FILES_MAX: usize = 32;

/// Bytes of a value with its variables put in: no file of the kernel takes so many, and variables that double each
/// other would fill the memory.
const VALUE_MAX: usize = 4096;

/// What `/etc/tuned/tuned-main.conf` sets an option to (`tuned/utils/global_config.py`): of several lines the last.
#[must_use]
pub fn main_option(text: &str, key: &str) -> Option<String> {
    let entries = tuned_entries(text);
    let said = entries.iter().rev().find(|entry| entry.key == key)?;
    said.value.map(str::to_owned)
}

/// A file that a profile asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked<'a> {
    /// `include=` of a profile: the one of this name.
    Profile(&'a str),
    /// `include=` among variables: the file of this path.
    Variables(&'a str),
}

/// Gives the text of a file; `None` where it is not to be had. Without any, nothing is followed.
pub type Files<'a> = dyn Fn(Asked<'_>) -> Option<String> + 'a;

/// One line that says something, of the profile or of one that it includes.
#[derive(Clone, Debug)]
pub struct Line {
    /// The line of the profile itself: of what is included, that of the include.
    pub number: usize,
    /// The included profile that says it; of the profile itself none.
    pub profile: String,
    /// The same and the line there, to be told before the line.
    pub from: String,
    /// Its section.
    pub section: String,
    /// The option.
    pub key: String,
    /// What it is set to.
    pub value: Option<String>,
    /// The first line below that belongs to the value, of the file that says it.
    pub goes_on: Option<usize>,
    /// The line of the profile itself that took its place.
    pub replaced_by: Option<usize>,
    /// A later file takes out options by patterns, which may be this one.
    pub may_be_dropped: bool,
}

/// What a section says of itself, once the files are merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Steering<'a> {
    /// The plugin that reads it: its name, where it names none.
    pub kind: &'a str,
    /// It is for machines alone whose kernel or CPU matches something.
    pub is_of_some: bool,
    /// Patterns of the devices that it is for, where nothing but their names decides.
    pub devices: Option<&'a str>,
    /// tuned passes it over.
    pub is_off: bool,
}

/// The name of a section that stands there alone.
#[derive(Clone, Debug)]
pub struct BareSection {
    /// The line of the profile itself: of what is included, that of the include.
    pub number: usize,
    /// The included profile that has it and the line there, to be told before it.
    pub from: String,
    /// Its name.
    pub section: String,
}

/// All lines of a profile, and what is wrong with what it includes.
#[derive(Default)]
pub struct Lines {
    /// Those that count, and those that a later one took the place of.
    pub lines: Vec<Line>,
    /// Those that a later file took out, each with the line of the profile itself that says so.
    pub dropped: Vec<(Line, usize)>,
    /// The line that says it, its text, and why it is refused.
    pub refused: Vec<(usize, String, String)>,
    /// Sections that no file says anything in: their plugins run nevertheless.
    pub bare: Vec<BareSection>,
    /// Whether a profile that is included was not followed.
    pub lacks_profile: bool,
    /// Variables in the order in which they are made.
    assigned: Vec<Assigned>,
    /// What they are, or why nobody can tell.
    variables: BTreeMap<String, Result<String, String>>,
    files: usize,
}

/// A line of variables.
#[derive(Clone)]
struct Assigned {
    /// As of a [`Line`].
    number: usize,
    from: String,
    name: String,
    value: String,
}

impl Lines {
    /// Reads a profile, and those that it includes where files are given.
    pub fn read(text: &str, files: Option<&Files<'_>>) -> Self {
        let mut all = Self::default();
        all.add(text, None, &mut Vec::new(), files);
        all.variables.clear();
        for assigned in std::mem::take(&mut all.assigned) {
            let refused = all.assign(&assigned, files);
            all.refused.extend(refused);
        }
        let said: BTreeSet<&str> = all.lines.iter().map(|line| line.section.as_str()).collect();
        all.bare.retain(|bare| !said.contains(bare.section.as_str()));
        all
    }

    /// Adds the lines of a file behind those of the files that it includes. `within` are the profiles on the way to it,
    /// and `at` is the line of the profile itself that led there.
    fn add(&mut self, text: &str, at: Option<usize>, within: &mut Vec<String>, files: Option<&Files<'_>>) {
        let own = tuned_entries(text);
        let from = |line: usize| within.last().map(|name| format!("{name}:{line} ")).unwrap_or_default();
        let variables = own.iter().filter(|entry| entry.section == "variables").map(|entry| Assigned {
            number: at.unwrap_or(entry.line),
            from: from(entry.line),
            name: entry.key.to_owned(),
            value: entry.value.unwrap_or_default().to_owned(),
        });
        let variables: Vec<Assigned> = variables.collect();
        // The names of what it includes may be made of them.
        variables.iter().for_each(|assigned| drop(self.assign(assigned, files)));
        let bare = bare_sections(text).into_iter().filter(|(_, name)| !["main", "variables"].contains(name));
        let bare = bare.map(|(line, name)| BareSection {
            number: at.unwrap_or(line),
            from: from(line),
            section: name.to_owned(),
        });
        self.bare.extend(bare);
        let mut told: Vec<Line> = own
            .iter()
            .filter(|entry| entry.section != "variables")
            .map(|entry| Line {
                number: at.unwrap_or(entry.line),
                profile: within.last().cloned().unwrap_or_default(),
                from: from(entry.line),
                section: entry.section.to_owned(),
                key: entry.key.to_owned(),
                value: entry.value.map(str::to_owned),
                goes_on: entry.goes_on,
                replaced_by: None,
                may_be_dropped: false,
            })
            .collect();
        let mut later = BTreeMap::new();
        for line in told.iter_mut().rev().filter(|line| line.section != "main") {
            line.replaced_by = later.insert((line.section.clone(), line.key.clone()), line.number);
        }
        for line in &told {
            if files.is_some() && (line.section.as_str(), line.key.as_str()) == ("main", "include") {
                self.include(line, within, files);
            }
        }
        for line in &told {
            self.merge(line);
        }
        // Those of this file count over the ones of what it includes, in their places.
        for own in variables {
            match self.assigned.iter_mut().find(|older| older.name == own.name) {
                Some(older) => *older = own,
                None => self.assigned.push(own),
            }
        }
        self.lines.extend(told);
    }

    /// Follows `include=a,b`.
    fn include(&mut self, line: &Line, within: &mut Vec<String>, files: Option<&Files<'_>>) {
        let told = line.told();
        let names = match self.expanded(line.value.as_deref().unwrap_or_default()) {
            Ok(names) => names,
            Err(why) => {
                self.lacks_profile = true;
                return self.refused.push((line.number, told, why));
            }
        };
        for name in names.split([',', ';', ' ']).filter(|name| !name.is_empty()) {
            // `-name` need not be there.
            let (name, optional) = name.strip_prefix('-').map_or((name, false), |name| (name, true));
            let mut refuse = |why: String| {
                self.lacks_profile = true;
                self.refused.push((line.number, told.clone(), why));
            };
            if within.iter().any(|other| other == name) {
                refuse(format!("{name} is included by itself"));
            } else if name.contains('/') || self.files == FILES_MAX {
                refuse(format!("{name} is no name of a profile, or the {FILES_MAX}th that is included"));
            } else if let Some(text) = files.and_then(|files| files(Asked::Profile(name))) {
                self.files += 1;
                within.push(name.to_owned());
                self.add(&text, Some(line.number), within, files);
                within.pop();
            } else if !optional {
                refuse(format!("{name} is not here: copy its folder beside the one of this file"));
            }
        }
    }

    /// Makes a variable, or those of a file; the line that says so, its text and why where there is no such file.
    fn assign(&mut self, own: &Assigned, files: Option<&Files<'_>>) -> Option<(usize, String, String)> {
        let Assigned { number, from, name, value } = own;
        if name != "include" {
            self.make(name, value);
            return None;
        }
        let Some(text) = files.and_then(|files| files(Asked::Variables(value))) else {
            // It may make any of those before it anew.
            let untold =
                format!("{value} is a file of variables that is not here, and may give it another value");
            self.variables.values_mut().for_each(|made| *made = Err(untold.clone()));
            let why = "a file of variables that is not here, or not below a folder of tuned".to_owned();
            return Some((*number, format!("{from}[variables] include = {value}"), why));
        };
        for entry in tuned_entries(&text).iter().filter(|entry| ["", "variables"].contains(&entry.section)) {
            self.make(entry.key, entry.value.unwrap_or_default());
        }
        None
    }

    /// A variable, of those that there are by now.
    fn make(&mut self, name: &str, value: &str) {
        let made = self.expanded(value);
        self.variables.insert(name.to_owned(), made);
    }

    /// Does to the lines so far what a section says of those that it had.
    fn merge(&mut self, line: &Line) {
        let value = line.value.as_deref().unwrap_or_default();
        match line.key.as_str() {
            "replace" if ["1", "true", "True", "yes", "y"].contains(&value) => {
                self.take_out(line.number, |older| older.section == line.section);
            }
            "drop" => {
                let dropped: Vec<&str> = value.split([',', ';']).map(str::trim).collect();
                let is_dropped =
                    |older: &Line| older.section == line.section && dropped.contains(&older.key.as_str());
                self.take_out(line.number, is_dropped);
                if dropped.iter().any(|option| is_pattern(option)) {
                    let older = self.lines.iter_mut().filter(|older| older.section == line.section);
                    older.for_each(|older| older.may_be_dropped = true);
                }
            }
            _ if line.section == "main" => {}
            key => {
                let same = |older: &&mut Line| older.section == line.section && older.key == key;
                self.lines.iter_mut().filter(same).for_each(|older| older.replaced_by = Some(line.number));
            }
        }
    }

    /// Takes lines out, by what a line of the profile says.
    fn take_out(&mut self, by: usize, is_out: impl Fn(&Line) -> bool) {
        let out = self.lines.extract_if(.., |older| is_out(older));
        self.dropped.extend(out.map(|line| (line, by)));
    }

    /// What a section says of itself.
    #[must_use]
    pub fn steering<'a>(&'a self, section: &'a str) -> Steering<'a> {
        let said = |key: &str| {
            let mut said = self.lines.iter().rev().filter(|line| line.section == section && line.key == key);
            said.next()?.value.as_deref()
        };
        // A later file with this section says anew whether it counts, be it by saying nothing.
        let mut lines = self.lines.iter().rev().filter(|line| line.section == section).peekable();
        let last = lines.peek().map(|line| line.profile.clone()).unwrap_or_default();
        let enabled = lines.find(|line| line.profile == last && line.key == "enabled");
        let enabled = enabled.and_then(|line| line.value.as_deref());
        Steering {
            kind: said("type").unwrap_or(section),
            is_of_some: said("uname_regex").or_else(|| said("cpuinfo_regex")).is_some(),
            devices: said("devices").filter(|_| said("devices_udev_regex").is_none()),
            // Any other word turns it off (`tuned/profiles/unit.py`).
            is_off: enabled.is_some_and(|word| !["1", "true", "True"].contains(&word)),
        }
    }

    /// A value with its variables put in.
    ///
    /// # Errors
    /// A variable that no file gives, a function, or a value that becomes too long.
    pub fn expanded(&self, value: &str) -> Result<String, String> {
        let (mut out, mut rest) = (String::new(), value);
        while let Some((before, after)) = rest.split_once("${") {
            if before.ends_with('\\') {
                return Err("a variable behind a backslash, which tuned leaves as it stands".to_owned());
            }
            out += before;
            let Some((name, behind)) = after.split_once('}') else {
                return Err("a variable of tuned without an end".to_owned());
            };
            if name.starts_with("f:") {
                return Err(format!("${{{name}}} is computed by tuned on the host: its value is in no file"));
            }
            let unknown = || {
                format!(
                    "a variable of tuned: no file that was read gives ${{{name}}} in a line before it is used"
                )
            };
            out += self.variables.get(name).ok_or_else(unknown)?.as_ref().map_err(Clone::clone)?;
            if out.len() > VALUE_MAX {
                return Err(format!("${{{name}}} makes the value longer than {VALUE_MAX} bytes"));
            }
            rest = behind;
        }
        Ok(out + rest)
    }
}

/// Whether an option that is to be dropped is more than a name: tuned takes each for a pattern of `re`, in which a dot
/// is any sign, as it is in names of `sysctl`.
#[must_use]
pub fn is_pattern(option: &str) -> bool {
    option.contains(['*', '[', '(', '\\', '+', '?', '^', '$', '|'])
}

impl Line {
    /// The line as it is told.
    pub fn told(&self) -> String {
        let Self { from, section, key, value, .. } = self;
        format!("{from}[{section}] {key} = {}", value.as_deref().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_put_in_and_functions_are_refused_aloud() {
        let text = "[variables]\na=1\nb=${a}-${a}\nring=${ring}\nearly=${late}\nlate=2\n";
        let lines = Lines::read(text, None);
        assert_eq!(lines.expanded("x${b}y").expect("known"), "x1-1y");
        for (value, why) in [
            ("${c}", "no file that was read gives ${c}"),
            ("${ring}", "no file that was read gives ${ring} in a line before"),
            ("${early}", "no file that was read gives ${late} in a line before"),
            ("${f:exec:date}", "computed by tuned"),
            ("${a", "without an end"),
        ] {
            assert!(lines.expanded(value).expect_err(value).contains(why), "{value}");
        }
    }

    /// Each is eight of the one before: put in, the last would be 8 GiB.
    #[test]
    fn variables_that_double_each_other_are_refused_before_memory_is_full() {
        let text: String = (1..=11).fold("[variables]\nv0=x\n".to_owned(), |text, number| {
            text + &format!("v{number}={}\n", format!("${{v{}}}", number - 1).repeat(8))
        });
        let lines = Lines::read(&text, None);
        let why = lines.expanded("${v11}").expect_err("too long");
        assert!(why.contains("longer than 4096 bytes"), "{why}");
        assert_eq!(lines.expanded("${v4}").expect("short enough").len(), 4096);
        let text = text.replace("v0=x", "v0=");
        assert_eq!(Lines::read(&text, None).expanded("${v11}").as_deref(), Ok(""));
    }

    #[test]
    fn a_file_of_variables_that_is_not_here_may_give_all_before_it() {
        let text = "[variables]\nmode=madvise\ninclude=/etc/tuned/v.conf\nlate=1\n";
        let lines = Lines::read(text, None);
        let why = lines.expanded("${mode}").expect_err("nobody knows");
        assert!(why.contains("/etc/tuned/v.conf is a file of variables that is not here"), "{why}");
        assert_eq!(lines.expanded("${late}").as_deref(), Ok("1"));
    }

    /// The profiles of RHEL for isolated CPUs take a variable from a file, and then from itself.
    #[test]
    fn variables_are_made_one_after_another() {
        let files = |asked: Asked<'_>| match asked {
            Asked::Variables(_) => Some("x=2\ncores=4-7\n".to_owned()),
            Asked::Profile(_) => Some("[variables]\nbase=1\nboth=${base}\n".to_owned()),
        };
        for (text, value, expected) in [
            ("[variables]\nx=1\ninclude=/etc/tuned/v.conf\n", "${x}", "2"),
            ("[variables]\ninclude=/etc/tuned/v.conf\nx=1\n", "${x}", "1"),
            ("[variables]\ninclude=/etc/tuned/v.conf\ncores=${cores}\n", "${cores}", "4-7"),
            ("[main]\ninclude=p\n[variables]\nbase=3\n", "${both}", "3"),
        ] {
            assert_eq!(Lines::read(text, Some(&files)).expanded(value).as_deref(), Ok(expected), "{text}");
        }
    }
}
