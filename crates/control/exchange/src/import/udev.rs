//! Rules of udev: what they set of disks and cards that appear, by their names, and of the kernel.
//!
//! A profile asks nothing of a device but its name. A rule that asks more is refused, and so is what it may have
//! udev jump over.

use planish_udev::{Command, Operator, Part, Rule, commands, rules};

use super::collect::Collector;

/// The devices whose settings are knobs: the subsystem, and where their files are.
const FOLDERS: [(&str, &str); 2] = [("block", "/sys/block"), ("net", "/sys/class/net")];

/// Whether a line is a rule, by a key of it that only udev knows.
pub(super) fn is_rule(line: &str) -> bool {
    let known = |part: &Part| match part.key.as_str() {
        "ACTION" | "SUBSYSTEM" | "KERNEL" | "DEVPATH" => !part.operator.is_given(),
        "ATTR" | "ENV" | "SYSCTL" => part.attribute.is_some(),
        _ => false,
    };
    rules(line.trim_end_matches('\\')).iter().flat_map(|rule| &rule.parts).any(known)
}

pub(super) fn read(text: &str, collector: &mut Collector<'_>) {
    // Labels that a rule before may have udev go on at, with the line of that rule.
    let mut jumps: Vec<(String, usize)> = Vec::new();
    for rule in rules(text) {
        for label in named(&rule, "LABEL") {
            jumps.retain(|(to, _)| to != label);
        }
        let over = jumps.first().map(|(_, line)| format!("line {line} may have udev jump over it"));
        of_rule(&rule, over, collector);
        jumps.extend(named(&rule, "GOTO").map(|label| (label.to_owned(), rule.line)));
    }
}

fn named<'a>(rule: &'a Rule, key: &'a str) -> impl Iterator<Item = &'a str> {
    rule.parts.iter().filter(move |part| part.key == key).map(|part| part.value.as_str())
}

fn of_rule(rule: &Rule, over: Option<String>, collector: &mut Collector<'_>) {
    let asked = over.map_or_else(|| Asked::of(rule), Err);
    for part in rule.parts.iter().filter(|part| part.operator.is_given()) {
        let text = part.text();
        let told = match (&asked, part.key.as_str()) {
            (_, "LABEL") => continue,
            (_, "GOTO") => Err("sets nothing; what it may jump over is refused".to_owned()),
            (Ok(asked), "ATTR" | "SYSCTL" | "RUN") => of_part(asked, rule.line, part, collector),
            (Err(reason), "ATTR" | "SYSCTL" | "RUN") => Err(reason.clone()),
            _ => Err("sets nothing of the kernel".to_owned()),
        };
        if let Err(reason) = told {
            collector.refuse(rule.line, &text, reason);
        }
    }
}

/// The devices that a rule is for.
struct Asked<'a> {
    folder: Option<&'static str>,
    /// What it says of the kind of device where that has no folder.
    subsystem: Option<String>,
    /// Names and patterns of them; `*` for all.
    names: Vec<&'a str>,
    /// What it asks that some hosts have no device for.
    of_some: Option<String>,
}

impl<'a> Asked<'a> {
    fn of(rule: &'a Rule) -> Result<Self, String> {
        let mut asked = Self { folder: None, subsystem: None, names: vec!["*"], of_some: None };
        for part in rule.parts.iter().filter(|part| !part.operator.is_given()) {
            let is = part.operator == Operator::Is && !part.is_odd;
            match part.key.as_str() {
                // It says when: a device that is there was added, or changes.
                "ACTION" if may_be_there(part) => {}
                "ACTION" => {
                    return Err(format!("holds only where {}: of no device that is there", part.text()));
                }
                // True of all that has such files.
                "ENV" if part.attribute.as_deref() == Some("DEVTYPE") && is && part.value == "disk" => {}
                "SUBSYSTEM" if is => {
                    asked.folder = folder(&part.value);
                    asked.subsystem = asked.folder.is_none().then(|| part.text());
                    asked.of_some = asked.of_some.or_else(|| asked.subsystem.clone());
                }
                "KERNEL" if is && !part.value.is_empty() => {
                    asked.names = part.value.split('|').collect();
                    let is_of_all = asked.names.contains(&"*");
                    asked.of_some = asked.of_some.or_else(|| (!is_of_all).then(|| part.text()));
                }
                _ => {
                    return Err(format!(
                        "holds only where {}, and a profile asks for no more than a name",
                        part.text()
                    ));
                }
            }
        }
        Ok(asked)
    }
}

impl Asked<'_> {
    /// Refuses what is set of the host itself where a device comes up that not every host has.
    fn of_host(&self) -> Result<(), String> {
        let Some(device) = &self.of_some else { return Ok(()) };
        Err(format!(
            "set where a device comes up of {device}, and not of every host: a profile asks for none"
        ))
    }
}

/// Whether a rule for these actions is one for devices that appear or change.
fn may_be_there(part: &Part) -> bool {
    let fits = |action: &str| planish_udev::matches(&part.value, action) == (part.operator == Operator::Is);
    !part.is_odd && ["add", "change"].into_iter().any(fits)
}

fn folder(subsystem: &str) -> Option<&'static str> {
    FOLDERS.into_iter().find_map(|(name, folder)| (name == subsystem).then_some(folder))
}

fn of_part(asked: &Asked<'_>, line: usize, part: &Part, collector: &mut Collector<'_>) -> Result<(), String> {
    if part.key == "RUN" {
        return of_command(asked, line, part, collector);
    }
    let value = plain(part)?;
    let attribute = part.attribute.as_deref().unwrap_or_default();
    if part.key == "SYSCTL" {
        asked.of_host()?;
        collector.sysctl(line, attribute, &value);
        return Ok(());
    }
    let folder = asked.folder.ok_or_else(|| match &asked.subsystem {
        Some(other) => format!("of {other} no files are read of rules: of disks and cards they are"),
        None => "of which kind of device it is, the rule does not say: SUBSYSTEM==\"block\"".to_owned(),
    })?;
    if attribute.contains(['*', '?', '[', '%', '$']) {
        return Err("of several files udev sets one, and which is not in the text".to_owned());
    }
    for name in &asked.names {
        collector.path(line, &format!("{folder}/{name}/{attribute}"), &value);
    }
    Ok(())
}

/// A value as udev writes it. What it fills in is not in the text.
fn plain(part: &Part) -> Result<String, String> {
    let bare = part.value.replace("%%", "").replace("$$", "");
    if part.is_odd || bare.contains(['%', '$']) {
        return Err("udev fills in what is not in the text".to_owned());
    }
    Ok(part.value.replace("%%", "%").replace("$$", "$"))
}

fn of_command(
    asked: &Asked<'_>,
    line: usize,
    part: &Part,
    collector: &mut Collector<'_>,
) -> Result<(), String> {
    let said = commands(&part.value);
    let is_name = |word: &str| ["$name", "%k", "$kernel"].contains(&word);
    let is_plain = |text: &str| !text.contains(['%', '$']);
    if part.is_odd || said.is_empty() {
        return Err("starts a program: what that does is not in the text".to_owned());
    }
    for command in said {
        match command {
            Command::Sysctl(key, value) if is_plain(&key) && is_plain(&value) => {
                asked.of_host()?;
                collector.sysctl(line, &key, &value);
            }
            Command::Write(path, value, true) if is_plain(&value) => {
                if is_plain(&path) {
                    asked.of_host()?;
                }
                for name in &asked.names {
                    let path = ["$name", "$kernel", "%k"]
                        .iter()
                        .fold(path.clone(), |path, hole| path.replace(hole, name));
                    if !is_plain(&path) {
                        return Err("udev fills in what is not in the text".to_owned());
                    }
                    collector.path(line, &path, &value);
                }
            }
            Command::Ethtool(words)
                if words.len() > 2 && is_name(&words[1]) && asked.folder == folder("net") =>
            {
                let names: Vec<String> = asked.names.iter().map(|&name| name.to_owned()).collect();
                collector.cards(line, &format!("ethtool {}", words[0]), &words[0], &names, &words[2..]);
            }
            _ => return Err("starts a program: what that does is not in the text".to_owned()),
        }
    }
    Ok(())
}
