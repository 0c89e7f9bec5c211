//! Units of systemd and drop-ins of them: what they give a service, and what `ExecStart=` sets by a shell.
//!
//! A drop-in does not say which unit it is of. That tells where it lies, or a comment with its path above it, as
//! `systemctl cat` prints one above each file.

use planish_formats::unit::words;
use planish_model::{LimitPair, ValueType, assigned, assignments, place, said, variable};

use super::collect::Collector;
use super::script;

/// Where an administrator has units, which is where knobs of units lie.
const FOLDER: &str = "/etc/systemd/system/";

/// Sections that say what a unit is and when it starts: nothing of them is a setting of the host.
const OF_SYSTEMD: [&str; 2] = ["Unit", "Install"];

/// Sections of which lines are read.
const READ: [&str; 3] = ["Service", "Slice", "Scope"];

/// Lines of `[Service]` that say how its program runs, of which a host is none the wiser.
const HOW: [&str; 2] = ["Type", "RemainAfterExit"];

/// Whether a line begins a section as units have it; tuned and saptune write theirs in small letters.
pub(super) fn is_section(line: &str) -> bool {
    section_of(line).is_some_and(|name| OF_SYSTEMD.contains(&name) || READ.contains(&name))
}

fn section_of(line: &str) -> Option<&str> {
    line.strip_prefix('[')?.strip_suffix(']')
}

/// The unit that the file at a path is, or is a drop-in of.
pub(super) fn unit_of(path: &str) -> Option<&str> {
    let mut parts = path.rsplit('/');
    let (file, folder) = (parts.next()?, parts.next()?);
    let is_unit = |name: &&str| [".service", ".slice", ".scope"].iter().any(|kind| name.ends_with(kind));
    let of_folder = folder.strip_suffix(".d").filter(|_| file.ends_with(".conf"));
    of_folder.filter(is_unit).or_else(|| Some(file).filter(is_unit))
}

/// Whether a folder holds drop-ins of a unit.
pub(super) fn is_folder(path: &str) -> bool {
    unit_of(&format!("{}/x.conf", path.trim_end_matches('/'))).is_some()
}

/// One line that says something.
struct Line<'a> {
    number: usize,
    unit: Option<&'a str>,
    section: &'a str,
    key: &'a str,
    value: String,
    /// Whether the value is one assignment of several in its line.
    is_one_of_several: bool,
}

/// Lines with what they stand under. A backslash at an end joins the next line with a blank (`systemd.syntax(7)`).
fn lines<'a>(text: &'a str, path: Option<&'a str>) -> Vec<Line<'a>> {
    let (mut found, mut unit, mut section) = (Vec::<Line<'a>>::new(), path.and_then(unit_of), "");
    let mut open = false;
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', ';']) {
            let named = line.strip_prefix("# ").filter(|rest| rest.starts_with('/'));
            unit = named.and_then(unit_of).or(unit);
            continue;
        }
        let (line, goes_on) = line.strip_suffix('\\').map_or((line, false), |line| (line.trim_end(), true));
        if std::mem::replace(&mut open, goes_on) {
            if let Some(last) = found.last_mut() {
                last.value = format!("{} {line}", last.value);
            }
        } else if let Some(name) = section_of(line) {
            section = name;
        } else {
            let (key, value) =
                line.split_once('=').map_or((line, ""), |(key, value)| (key.trim(), value.trim()));
            found.push(Line {
                number: index + 1,
                unit,
                section,
                key,
                value: value.to_owned(),
                is_one_of_several: false,
            });
        }
    }
    found
}

/// The directive of which each word is a setting.
const ENVIRONMENT: &str = "Environment";

/// Whether the lines of a text are those of units.
pub(super) fn fits(text: &str) -> Vec<bool> {
    let is_one = |line: &Line<'_>| {
        let known = OF_SYSTEMD.contains(&line.section) || READ.contains(&line.section);
        known && line.key.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
    };
    lines(text, None).iter().map(is_one).collect()
}

/// Reads a unit or a drop-in; `path` is where it lies, as far as that is known.
pub(super) fn read(text: &str, path: Option<&str>, collector: &mut Collector<'_>) {
    read_lines(&lines(text, path), false, collector);
}

/// The same of the file that is imported: that it has other files read is told, since nobody else brings them.
pub(super) fn read_alone(text: &str, path: Option<&str>, collector: &mut Collector<'_>) {
    read_lines(&lines(text, path), true, collector);
}

/// Whether it is a program that sets what stands in files of its own.
fn has_files_read(words: &[String]) -> bool {
    let program = words.first().and_then(|word| word.rsplit('/').next());
    program.is_some_and(|program| ["systemd-sysctl", "systemd-tmpfiles"].contains(&program))
}

/// Signs before a command that say how it is run.
const PREFIXES: [char; 5] = ['@', '-', ':', '+', '!'];

/// Reads the lines of a file that a script writes, each as of the line of the script that says it.
pub(super) fn read_at(said: &[(usize, String)], path: &str, collector: &mut Collector<'_>) {
    let text: Vec<&str> = said.iter().map(|(_, text)| text.as_str()).collect();
    let text = text.join("\n");
    let mut all = lines(&text, Some(path));
    all.iter_mut().for_each(|line| line.number = said[line.number - 1].0);
    read_lines(&all, false, collector);
}

fn read_lines(all: &[Line<'_>], is_alone: bool, collector: &mut Collector<'_>) {
    let is_condition = |line: &&Line<'_>| {
        line.section == "Unit" && (line.key.starts_with("Condition") || line.key.starts_with("Assert"))
    };
    let condition = all.iter().find(|line| is_condition(line) || line.key == "ExecCondition");
    for (index, line) in all.iter().enumerate() {
        let told = format!("{}={}", line.key, line.value);
        match (line.section, line.key) {
            (section, _) if OF_SYSTEMD.contains(&section) => {}
            (section, _) if !READ.contains(&section) => {
                collector.refuse(line.number, &told, "of units the sections [Service] and [Slice] are read");
            }
            (_, key) if HOW.contains(&key) => {}
            (_, "ExecStart" | "ExecStartPre" | "ExecStartPost") => match condition {
                Some(condition) => {
                    let why = format!("runs only where {}={} holds", condition.key, condition.value);
                    collector.refuse(line.number, &told, why);
                }
                None if line.value.is_empty() && all[..index].iter().any(|before| is_same(before, line)) => {}
                None => match never_started(all, index) {
                    Some(why) => collector.refuse(line.number, &told, why),
                    None => start(line, &told, is_alone, collector),
                },
            },
            _ if line.value.is_empty() => {
                let again = all[index + 1..].iter().any(|later| is_same(later, line));
                take_back(line, &told, again, collector);
            }
            (_, ENVIRONMENT) => {
                for value in assignments(&line.value) {
                    let told = format!("{ENVIRONMENT}={value}");
                    setting(&Line { value, is_one_of_several: true, ..*line }, &told, collector);
                }
            }
            _ => setting(line, &told, collector),
        }
    }
}

/// Whether two lines say the same thing of one unit.
fn is_same(one: &Line<'_>, other: &Line<'_>) -> bool {
    one.key == other.key && one.unit == other.unit && one.section == other.section
}

/// Why systemd does not run a command that a unit names, or runs it where it cannot set anything
/// (`systemd.service(5)`, `systemd.exec(5)`).
fn never_started(all: &[Line<'_>], index: usize) -> Option<String> {
    let line = &all[index];
    if line.value.is_empty() {
        return Some("takes back what another file says: a profile wants a value".to_owned());
    }
    if let Some(later) = all[index + 1..].iter().find(|later| is_same(later, line) && later.value.is_empty())
    {
        return Some(format!("never runs: line {} takes it back", later.number));
    }
    let last = |key: &str| {
        let of_unit = |other: &&Line<'_>| other.unit == line.unit && other.section == "Service";
        all.iter()
            .filter(of_unit)
            .filter(|other| other.key == key)
            .map(|other| other.value.as_str())
            .next_back()
    };
    let is_on = |key: &str| last(key).is_some_and(|value| ["1", "on", "true", "yes"].contains(&value));
    let others = all.iter().filter(|other| is_same(other, line));
    let count = others.fold(0, |count, other| if other.value.is_empty() { 0 } else { count + 1 });
    if line.key == "ExecStart" && count > 1 && last("Type") != Some("oneshot") {
        return Some(
            "systemd takes several ExecStart= of Type=oneshot alone, and refuses this unit".to_owned(),
        );
    }
    if let Some(user) = last("User").filter(|user| !["", "0", "root"].contains(user)) {
        return Some(format!("runs as {user}, who may not set it"));
    }
    if is_on("DynamicUser") {
        return Some("runs as a user of its own, who may not set it: DynamicUser=".to_owned());
    }
    is_on("ProtectKernelTunables").then(|| "runs where nothing can be set: ProtectKernelTunables=".to_owned())
}

/// `LimitNOFILE=65536` of a unit.
fn setting(line: &Line<'_>, told: &str, collector: &mut Collector<'_>) {
    let Some(unit) = line.unit else {
        let why = "of which unit does it say so? A comment above it with the path of the file tells: # \
                   /etc/systemd/system/NAME.service.d/x.conf";
        return collector.refuse(line.number, told, why);
    };
    let told = format!("{unit}: {told}");
    let Some((id, kind, name, value)) = meant(line, collector).into_iter().next() else {
        let pins = ["CPUAffinity", "NUMAPolicy", "NUMAMask", "AllowedCPUs", "AllowedMemoryNodes"];
        let why = match pins.contains(&line.key) {
            true => "places a service, which a profile does by its table [placement]",
            false => "no setting of units that planish has a knob for",
        };
        return collector.refuse(line.number, &told, why);
    };
    // `64K` is as good a number to systemd.
    let in_ones = || LimitPair::parse(&value).map(|pair| pair.to_string());
    let value = match kind.validate(&value) {
        Ok(()) => value,
        Err(_) => in_ones().unwrap_or(value),
    };
    collector.knob(line.number, &told, &id, Some(&name), &value);
}

/// The knobs of what a line says of its unit, with their types, what `only` calls the unit, and the values: an empty
/// one says something of each variable.
fn meant(line: &Line<'_>, collector: &Collector<'_>) -> Vec<(String, ValueType, String, String)> {
    let Some(unit) = line.unit else { return Vec::new() };
    let value_of = |kind: &ValueType| match kind {
        ValueType::Setting { directive, .. } if line.is_one_of_several => {
            variable(directive).and_then(|variable| assigned(variable, &line.value)).map(str::to_owned)
        }
        ValueType::Setting { directive, .. } => said(directive, line.key, &line.value),
        _ => None,
    };
    // The name of the file is each knob's own: what counts is whose folder it lies in.
    let of_unit = |path: &str| {
        let (_, file) = path.rsplit_once('/')?;
        let own = format!("{FOLDER}{unit}.d/{file}");
        place::captures(path, &own)?.first().map(|(_, name)| (*name).to_owned())
    };
    let knobs = collector.knobs().filter_map(|knob| Some((knob, value_of(&knob.r#type)?)));
    let knobs = knobs.filter(|(knob, _)| knob.r#type.is_cpus_of_a_unit() == unit.ends_with(".slice"));
    knobs
        .filter_map(|(knob, value)| {
            Some((knob.id.as_str().to_owned(), knob.r#type.clone(), of_unit(&knob.path)?, value))
        })
        .collect()
}

/// An empty value takes back what was said before, in this file or in one that is read before it; of lists a new one
/// begins so. Of limits systemd cannot read it, and leaves what there is (`config_parse_rlimit`).
fn take_back(line: &Line<'_>, told: &str, again: bool, collector: &mut Collector<'_>) {
    let is_limit = line.key.starts_with("Limit");
    let knobs = if is_limit { Vec::new() } else { meant(line, collector) };
    let before: Vec<_> = knobs
        .iter()
        .filter_map(|(id, _, name, _)| collector.take_back(line.number, id, Some(name)))
        .collect();
    let before = before.into_iter().max();
    if again {
        return;
    }
    let why = match before {
        _ if is_limit => "no limit, and systemd passes it over".to_owned(),
        Some(before) => format!("takes back what line {before} says, and sets nothing"),
        None => "takes back what another file says: a profile wants a value".to_owned(),
    };
    collector.refuse(line.number, told, why);
}

/// What a unit runs: a shell whose words stand here, or a program that sets what other files say.
fn start(line: &Line<'_>, told: &str, is_alone: bool, collector: &mut Collector<'_>) {
    let command = line.value.trim_start_matches(PREFIXES).trim();
    let prefix = &line.value[..line.value.len() - command.len()];
    let Some(mut words) = words(command) else {
        return collector.refuse(line.number, told, "has variables that only systemd puts in");
    };
    // The second word is then the name that the program is told, and none of its words.
    if prefix.contains('@') && words.len() > 1 {
        words.remove(1);
    }
    if words.iter().any(|word| word == ";") {
        let why = "runs several commands: read are those that stand in a line each";
        return collector.refuse(line.number, told, why);
    }
    if has_files_read(&words) {
        if is_alone {
            collector.refuse(line.number, told, script::OTHER_FILES);
        }
        return;
    }
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let program = words.first().and_then(|word| word.rsplit('/').next()).unwrap_or_default();
    let text = match words.as_slice() {
        [_, "-c", text] if ["sh", "bash", "dash"].contains(&program) => (*text).to_owned(),
        _ if ["sysctl", "ethtool", "cpupower", "blockdev", "mount", "chrt"].contains(&program) => {
            // No shell reads it: `&&`, `>` and `*` are words as others are.
            words
                .iter()
                .map(|word| format!("'{}'", word.replace('\'', r"'\''")))
                .collect::<Vec<_>>()
                .join(" ")
        }
        _ => {
            let why =
                "starts a program: what that sets is not in this file, and a script of it can be imported";
            return collector.refuse(line.number, told, why);
        }
    };
    script::read(&("\n".repeat(line.number.saturating_sub(1)) + &text), collector);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unit_of_a_file_is_told_by_its_path() {
        for (path, unit) in [
            ("/etc/systemd/system/mongod.service.d/zz-export-x.conf", Some("mongod.service")),
            ("out/etc/systemd/system/a@1.service.d/b.conf", Some("a@1.service")),
            ("/usr/lib/systemd/system/redis.service", Some("redis.service")),
            ("/etc/systemd/system/system.slice.d/x.conf", Some("system.slice")),
            ("/etc/systemd/system.conf.d/x.conf", None),
            ("/etc/systemd/system/mongod.service.d/README", None),
            ("mongod.conf", None),
        ] {
            assert_eq!(unit_of(path), unit, "{path}");
        }
        assert!(is_folder("/etc/systemd/system/a.service.d/") && !is_folder("/etc/systemd/system"));
    }
}
