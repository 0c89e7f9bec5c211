//! What rules set of one device that appears: the files in their order, rule by rule, as udev goes through them.

use std::collections::HashMap;

use crate::command::{Command, commands};
use crate::glob::{matches, means};
use crate::parse::{Operator, Part, Rule};

/// Why udev looks at a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// It appeared: at every boot, and when it comes again.
    Add,
    /// Something of it changed, or somebody asked for it (`udevadm trigger`).
    Change,
}

/// Something of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Known {
    /// What it is.
    Is(String),
    /// It has none.
    Absent,
    /// Nobody here can tell.
    Unknown,
}

impl Known {
    /// A text, or none at all.
    #[must_use]
    pub fn of(text: Option<String>) -> Self {
        text.map_or(Self::Absent, Self::Is)
    }

    /// A text, or nobody knows.
    #[must_use]
    pub fn or_unknown(text: Option<String>) -> Self {
        text.map_or(Self::Unknown, Self::Is)
    }
}

/// What a device hangs on, or the device itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parent {
    /// Its name in the kernel: `0000:03:00.0`.
    pub kernel: Known,
    /// `pci`
    pub subsystem: Known,
    /// `nvme`
    pub driver: Known,
}

/// A device that rules are followed for.
pub trait Device {
    /// `block`
    fn subsystem(&self) -> Known;
    /// `sda`: what the kernel calls it when rules see it, before one of them gives it another name.
    fn kernel(&self) -> Known;
    /// What it goes by in the end.
    fn name(&self) -> Known;
    /// The text of a file in its folder, without the blanks at the end.
    fn attribute(&self, path: &str) -> Known;
    /// A property that the kernel gives it, or that rules of udev have given it.
    fn property(&self, key: &str) -> Known;
    /// The device and those above it, the nearest first.
    fn parents(&self) -> Vec<Parent>;
    /// Whether these are all of them.
    fn has_all_parents(&self) -> bool;
    /// A setting of the kernel: `kernel/ostype`.
    fn sysctl(&self, key: &str) -> Known;
    /// Whether a file is there: an absolute path, or one in its folder.
    fn has_file(&self, path: &str) -> Holds;
    /// `arch`, `virt`.
    fn constant(&self, name: &str) -> Known;
    /// Its folder below `/sys`: `/block/sda`.
    fn folder(&self) -> Option<String>;
}

/// Whether something is so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Holds {
    /// It is not.
    No,
    /// Nobody here can tell.
    Maybe,
    /// It is.
    Yes,
}

impl Holds {
    fn of(is: bool) -> Self {
        if is { Self::Yes } else { Self::No }
    }

    fn not(self) -> Self {
        match self {
            Self::No => Self::Yes,
            Self::Maybe => Self::Maybe,
            Self::Yes => Self::No,
        }
    }
}

/// A file of rules, by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// `/etc/udev/rules.d/60-disks.rules`
    pub name: String,
    /// Its rules.
    pub rules: Vec<Rule>,
}

/// What is set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A file of the device's folder, or of the first of several folders: see [`crate::means`].
    Attribute(String),
    /// A setting of the kernel.
    Sysctl(String),
    /// A setting of a network card: the words of ethtool.
    Ethtool(Vec<String>),
    /// A file, by its whole path.
    File(String),
}

/// Something that rules set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effect {
    /// What.
    pub target: Target,
    /// To which value; `?` where that cannot be told.
    pub value: String,
    /// Which rule says so: `/etc/udev/rules.d/60-disks.rules:3`.
    pub source: String,
    /// Whether it is so for sure.
    pub is_sure: bool,
}

/// Whether a rule sets a file of a device's folder, a setting of the kernel, or has a program do so.
#[must_use]
pub fn assigns_to(part: &Part) -> bool {
    part.operator.is_given() && matches!(part.key.as_str(), "ATTR" | "SYSCTL" | "RUN")
}

/// What the files set of a device, in the order in which it is set: programs run behind all rules.
#[must_use]
pub fn follow(files: &[File], device: &dyn Device, action: Action) -> Vec<Effect> {
    let mut run = Run {
        device,
        action,
        given: HashMap::new(),
        effects: Vec::new(),
        programs: Vec::new(),
        is_final: Holds::No,
    };
    for file in files {
        run.file(file);
    }
    let Run { mut effects, programs, .. } = run;
    for (source, command, is_sure) in programs {
        effects.extend(commands(&command).into_iter().map(|command| {
            let (target, value, sure) = match command {
                Command::Ethtool(words) => (Target::Ethtool(words), String::new(), true),
                Command::Sysctl(key, value) => (Target::Sysctl(key), value, true),
                Command::Write(path, value, sure) => (Target::File(path), value, sure),
            };
            Effect { target, value, source: source.clone(), is_sure: is_sure && sure }
        }));
    }
    effects
}

struct Run<'a> {
    device: &'a dyn Device,
    action: Action,
    /// Properties that rules gave; unknown where it may be.
    given: HashMap<String, Known>,
    effects: Vec<Effect>,
    /// Source, command, and whether it is started for sure.
    programs: Vec<(String, String, bool)>,
    /// Whether `RUN:=` had the last word on programs.
    is_final: Holds,
}

impl Run<'_> {
    fn file(&mut self, file: &File) {
        // Rules up to this label are jumped over, or may be.
        let mut skipped: Option<String> = None;
        let mut unsure: Vec<String> = Vec::new();
        for rule in &file.rules {
            let label = rule.parts.iter().find(|part| part.key == "LABEL").map(|part| &part.value);
            if let Some(label) = label {
                skipped = skipped.filter(|to| to != label);
                unsure.retain(|to| to != label);
            }
            if skipped.is_some() {
                continue;
            }
            let mut holds = self.holds(rule);
            if holds == Holds::No {
                continue;
            }
            if !unsure.is_empty() {
                holds = Holds::Maybe;
            }
            self.take(rule, &format!("{}:{}", file.name, rule.line), holds);
            let goto = rule.parts.iter().find(|part| part.key == "GOTO").map(|part| part.value.clone());
            // A label that is not there leads nowhere: udev says so, and goes on.
            let goto = goto.filter(|to| has_label(file, rule.line, to));
            match (goto, holds) {
                (Some(to), Holds::Yes) => skipped = Some(to),
                (Some(to), _) => unsure.push(to),
                (None, _) => {}
            }
        }
    }

    /// Does what a rule gives.
    fn take(&mut self, rule: &Rule, source: &str, holds: Holds) {
        for part in rule.parts.iter().filter(|part| part.operator.is_given()) {
            let sure = holds == Holds::Yes && !part.is_odd;
            match (part.key.as_str(), &part.attribute) {
                ("ENV", Some(key)) => {
                    let (value, is_known) = self.filled(&part.value);
                    let is_plain = sure && is_known && part.operator != Operator::Add;
                    let value = if is_plain { Known::Is(value) } else { Known::Unknown };
                    self.given.insert(key.clone(), value);
                }
                ("ATTR", Some(path)) => self.set(Target::Attribute(path.clone()), &part.value, source, sure),
                ("SYSCTL", Some(key)) => self.set(Target::Sysctl(key.clone()), &part.value, source, sure),
                // `RUN:=` ends what may be started, of the built-in kind, too.
                ("RUN", _) if self.is_final == Holds::Yes => {}
                ("RUN", kind) if kind.as_deref() != Some("builtin") => {
                    let sure = sure && self.is_final == Holds::No;
                    if matches!(part.operator, Operator::Set | Operator::SetFinal) {
                        // Those before it are started no more.
                        match sure {
                            true => self.programs.clear(),
                            false => self.programs.iter_mut().for_each(|(.., sure)| *sure = false),
                        }
                    }
                    if part.operator != Operator::Remove {
                        let (command, is_known) = self.filled(&part.value);
                        let folder = self.device.folder().unwrap_or_else(|| "$DEVPATH".to_owned());
                        let command = command.replace("${DEVPATH}", &folder).replace("$DEVPATH", &folder);
                        self.programs.push((source.to_owned(), command, sure && is_known));
                    }
                    if part.operator == Operator::SetFinal {
                        self.is_final = self.is_final.max(if sure { Holds::Yes } else { Holds::Maybe });
                    }
                }
                _ => {}
            }
        }
    }

    fn set(&mut self, target: Target, value: &str, source: &str, sure: bool) {
        let (value, is_known) = self.filled(value);
        self.effects.push(Effect { target, value, source: source.to_owned(), is_sure: sure && is_known });
    }

    /// Whether the device is one that a rule means.
    fn holds(&self, rule: &Rule) -> Holds {
        let mut holds = Holds::Yes;
        for part in &rule.parts {
            let one = match part.key.as_str() {
                // What it asks a program is asked whatever the operator.
                "PROGRAM" | "IMPORT" => Holds::Maybe,
                _ if part.operator.is_given() => Holds::Yes,
                "KERNELS" | "SUBSYSTEMS" | "DRIVERS" | "ATTRS" | "TAGS" => Holds::Yes,
                _ => self.one(part),
            };
            holds = holds.min(one);
            if holds == Holds::No {
                return holds;
            }
        }
        holds.min(self.above(rule))
    }

    /// Whether one device above it is all that the parts about those ask, together.
    fn above(&self, rule: &Rule) -> Holds {
        let asks = |part: &&Part| {
            !part.operator.is_given()
                && matches!(part.key.as_str(), "KERNELS" | "SUBSYSTEMS" | "DRIVERS" | "ATTRS" | "TAGS")
        };
        let parts: Vec<&Part> = rule.parts.iter().filter(asks).collect();
        if parts.is_empty() {
            return Holds::Yes;
        }
        let of = |parent: &Parent| {
            let one = |part: &&Part| match part.key.as_str() {
                "KERNELS" => compared(part, &parent.kernel),
                "SUBSYSTEMS" => compared(part, &parent.subsystem),
                "DRIVERS" => compared(part, &parent.driver),
                _ => Holds::Maybe,
            };
            parts.iter().map(one).min().unwrap_or(Holds::Yes)
        };
        let found = self.device.parents().iter().map(of).max().unwrap_or(Holds::No);
        if self.device.has_all_parents() { found } else { found.max(Holds::Maybe) }
    }

    /// Whether one part that asks something of the device itself holds.
    fn one(&self, part: &Part) -> Holds {
        let attribute = part.attribute.as_deref().unwrap_or_default();
        match part.key.as_str() {
            "ACTION" => {
                let action = if self.action == Action::Add { "add" } else { "change" };
                compared(part, &Known::Is(action.to_owned()))
            }
            "SUBSYSTEM" => compared(part, &self.device.subsystem()),
            "KERNEL" => compared(part, &self.device.kernel()),
            "NAME" => compared(part, &self.device.name()),
            "ENV" => compared(part, &self.property(attribute)),
            "ATTR" if attribute.contains(['$', '%', '*', '[']) || self.has_set(attribute) => Holds::Maybe,
            // udev takes one that is not there for a part that is not met, whatever the operator.
            "ATTR" => match self.device.attribute(attribute) {
                Known::Absent => Holds::No,
                known => compared(part, &known),
            },
            "SYSCTL" => match self.device.sysctl(attribute) {
                Known::Absent => Holds::No,
                known => compared(part, &known),
            },
            "CONST" => compared(part, &self.device.constant(attribute)),
            "TEST" if part.value.contains(['$', '%', '*', '?', '[']) => Holds::Maybe,
            "TEST" => {
                let found = self.device.has_file(&part.value);
                // With a mask of modes it asks more.
                let found = if attribute.is_empty() { found } else { found.min(Holds::Maybe) };
                if part.operator == Operator::IsNot { found.not() } else { found }
            }
            _ => Holds::Maybe,
        }
    }

    /// Whether a rule before may have set a file of the device, which shows something else then.
    fn has_set(&self, attribute: &str) -> bool {
        let is_it = |effect: &Effect| match &effect.target {
            Target::Attribute(path) => means(path, attribute),
            _ => false,
        };
        self.effects.iter().any(is_it)
    }

    /// A property: what rules gave it in this run, else what it has.
    fn property(&self, key: &str) -> Known {
        self.given.get(key).cloned().unwrap_or_else(|| self.device.property(key))
    }

    /// A value with what stands for something of the device filled in, and whether all of it could be.
    fn filled(&self, value: &str) -> (String, bool) {
        let mut out = String::with_capacity(value.len());
        let (mut rest, mut is_known) = (value, true);
        while let Some(at) = rest.find(['$', '%']) {
            out += &rest[..at];
            let sign = &rest[at..=at];
            let after = &rest[at + 1..];
            if let Some(after) = after.strip_prefix(sign) {
                out += sign;
                rest = after;
                continue;
            }
            let Some((length, filling)) = self.filling(sign, after) else {
                // No word of udev's: it stays, and a shell may know it.
                out += sign;
                rest = after;
                continue;
            };
            match filling {
                Known::Is(text) => out += &text,
                Known::Absent => {}
                Known::Unknown => {
                    is_known = false;
                    out.push('?');
                }
            }
            rest = &after[length..];
        }
        (out + rest, is_known)
    }

    /// What stands behind `$` or `%`: its length, and what it stands for.
    fn filling(&self, sign: &str, after: &str) -> Option<(usize, Known)> {
        const WORDS: [(&str, &str); 16] = [
            ("kernel", "k"),
            ("name", "D"),
            ("number", "n"),
            ("devpath", "p"),
            ("devnode", "N"),
            ("sys", "S"),
            ("root", "r"),
            ("driver", "d"),
            ("major", "M"),
            ("minor", "m"),
            ("id", "b"),
            ("result", "c"),
            ("parent", "P"),
            ("links", "L"),
            ("env", "E"),
            ("attr", "s"),
        ];
        let (long, length) = WORDS.iter().find_map(|(long, short)| {
            let word = if sign == "$" { long } else { short };
            after.starts_with(word).then_some((*long, word.len()))
        })?;
        let braced = after[length..].strip_prefix('{').and_then(|inner| inner.split_once('}'));
        let total = length + braced.map_or(0, |(inner, _)| inner.len() + 2);
        let named = || braced.map(|(inner, _)| inner).unwrap_or_default();
        let prefixed = |prefix: &str, known: Known| match known {
            Known::Is(text) => Known::Is(format!("{prefix}{text}")),
            other => other,
        };
        let filling = match long {
            "kernel" => self.device.kernel(),
            "name" => self.device.name(),
            "devnode" => prefixed("/dev/", self.device.kernel()),
            "devpath" => Known::or_unknown(self.device.folder()),
            "sys" => Known::Is("/sys".to_owned()),
            "root" => Known::Is("/dev".to_owned()),
            "env" if named() == "DEVPATH" => Known::or_unknown(self.device.folder()),
            "env" => self.property(named()),
            "attr" if !named().contains(['[', '%', '$']) => self.device.attribute(named()),
            _ => Known::Unknown,
        };
        Some((total, filling))
    }
}

/// Whether a part holds of what it asks for.
fn compared(part: &Part, actual: &Known) -> Holds {
    let is = match actual {
        _ if part.is_odd => return Holds::Maybe,
        Known::Unknown => return Holds::Maybe,
        Known::Is(text) => matches(&part.value, text),
        Known::Absent => matches(&part.value, ""),
    };
    if part.operator == Operator::IsNot { Holds::of(!is) } else { Holds::of(is) }
}

fn has_label(file: &File, behind: usize, label: &str) -> bool {
    let later = file.rules.iter().filter(|rule| rule.line > behind);
    later.flat_map(|rule| &rule.parts).any(|part| part.key == "LABEL" && part.value == label)
}

#[cfg(test)]
mod tests;
