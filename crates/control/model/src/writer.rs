//! Second writers: other programs that set knobs of a host, as rows, as they were seen, and beside a plan.
//!
//! Two writers of one place undo each other, and the rollback of the other one may put back what is no original. So a
//! row says how a program is recognised without asking it, which knobs it sets, and what to type so that one of the two
//! owns each place. planish stops no service of others by itself.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{BootValue, Knob, KnobId, place};

/// A program that sets knobs: a row of `catalogue/writers/*.toml`.
///
/// Texts that are to be typed may hold `{file}`, `{variable}`, `{value}` (where its unit takes arguments from, and what
/// they are), `{profile}` (its active one), `{own_profile}`
/// (where that is the one made for planish), and what a plan writes: `{irqs}` as options of irqbalance, `{cpus}` that
/// are to be kept free of interrupts, `{sysctls}` by name, `{lines}` of files. A text with a hole that cannot be filled
/// is left out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Writer {
    /// The name that it goes by.
    pub id: String,
    /// Names of its processes, as `/proc/PID/comm` shows them. The kernel keeps 15 bytes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub programs: Vec<String>,
    /// Files that are there while it is at work. What is called `*.pid` counts while that process is there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// Its unit: where it is enabled, the program is at work after the next boot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// Files and folders whose lines a boot applies: what they set is seen line by line.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lines_of: Vec<String>,
    /// The knobs that it may set: ids, or patterns of ids such as `vm.*`.
    pub writes: Vec<String>,
    /// What tells which of them it does set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<WriterScope>,
    /// It counts only where a file of its own says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub only_where: Option<WriterSays>,
    /// What comes of two writers.
    pub why: String,
    /// What to type so that it writes nothing any more and planish alone does.
    pub hand_over: Vec<String>,
    /// What to type so that it leaves single places to planish, where it can.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclude: Vec<String>,
    /// Where this was read.
    pub source: String,
}

/// What tells the knobs that a writer sets on one host. Without it, or where its files cannot be read, all of the row
/// count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum WriterScope {
    /// The profile that is active, with those that it includes: files of sections and `key = value` lines.
    Profile {
        /// The file with the names of the active ones.
        active: String,
        /// Folders that have a folder a profile, the first one wins.
        folders: Vec<String>,
        /// The file in the folder of a profile.
        file: String,
        /// Knobs by `section.key`, or by `section` for every key of it. Keys of `[sysctl]` and `[sysfs]` name places
        /// themselves, and groups of `[scheduler]` and `[kthread]` threads. What is not listed sets no knob.
        options: BTreeMap<String, Vec<String>>,
        /// Whether it writes the files of the host again behind its own values.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        again: Option<WriterAgain>,
    },
    /// A folder with a file a parameter, which is named like a key of `sysctl`, or by a word.
    Names {
        /// The folder, the first that is there.
        folders: Vec<String>,
        /// Knobs by patterns of those words.
        options: BTreeMap<String, Vec<String>>,
    },
    /// Files that name what they set, as `sysctl` does or by its path. `{any}` stands for every name in a folder,
    /// `{enabled}` for what an enabled service, or the service of an enabled timer, reads of a folder of units: its
    /// own file there, and its drop-ins; `{started}` for the init scripts that a folder of a runlevel has started.
    Mentioned {
        /// The files.
        files: Vec<String>,
        /// Whether one counts only while it may be executed.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        executable: bool,
    },
}

/// That a program writes `/etc/sysctl.d` and then `/etc/sysctl.conf` again behind its own keys of `sysctl`, so that a
/// line there wins over it, wherever a boot reads it first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WriterAgain {
    /// The kind of section that does it.
    pub section: String,
    /// The file that may say otherwise. Where it says nothing, it is done.
    pub file: String,
    /// The key that turns it off there.
    pub key: String,
    /// The key with patterns of those that it leaves out.
    pub except: String,
}

/// A line of a program's own files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WriterSays {
    /// The files that may have it.
    pub files: Vec<String>,
    /// The line, without quotes, commas and blanks around it: a key, and the value behind a colon.
    pub says: String,
    /// The option of its program that has the value as well, and goes before the files: `--cpu-manager-policy`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub option: Option<String>,
}

impl Writer {
    /// Whether it may set a knob on some host.
    #[must_use]
    pub fn may_write(&self, knob: &KnobId) -> bool {
        self.writes.iter().any(|pattern| place::matches(pattern, knob.as_str()))
    }

    /// Whether texts alone tell of it: nothing else shows that it is there.
    #[must_use]
    pub fn is_told_by_texts(&self) -> bool {
        let signs = [&self.programs, &self.files, &self.lines_of];
        let has_sign = self.unit.is_some() || signs.iter().any(|signs| !signs.is_empty());
        !has_sign && matches!(self.scope, Some(WriterScope::Mentioned { .. }))
    }

    /// Whether its lines are those of a source such as `/etc/sysctl.d/99-local.conf:3`.
    #[must_use]
    pub fn has_line(&self, source: &str) -> bool {
        self.lines_of.iter().any(|from| {
            let rest = source.strip_prefix(from.as_str());
            rest.is_some_and(|rest| from.ends_with('/') || rest.starts_with(':'))
        })
    }
}

/// A second writer that was seen on a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SeenWriter {
    /// The row.
    pub id: String,
    /// Whether it is at work now. Else it will be after the next boot.
    pub running: bool,
    /// By what it was recognised.
    pub evidence: Vec<String>,
    /// The knobs that it sets here; `None` where that cannot be told, and all of its row count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub knobs: Option<Vec<KnobId>>,
    /// The profile of its own that is active.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// Where its arguments come from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<WriterArguments>,
    /// The commands that set a knob, where its texts can be read.
    #[serde(skip)]
    pub commands: Says,
    /// The files that set a knob, where its texts can be read.
    #[serde(skip)]
    pub sources: Says,
    /// The files that name a knob of which nobody can tell what becomes: a program that is not known is given its
    /// name. Such a knob is among `knobs`, too.
    #[serde(skip)]
    pub maybe: Says,
    /// The lines of the host's files that it writes again at its start.
    #[serde(skip)]
    pub again: Again,
}

/// What texts of a writer say of each knob.
pub type Says = BTreeMap<KnobId, Vec<Said>>;

/// A command of a text that sets a knob, or the file that has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// The command or the file.
    pub text: String,
    /// The places that are meant, as a shell pattern in the names of rows. None where it may be any of the knob's: who
    /// tunes one disk is no writer of the others.
    pub at: Option<String>,
}

impl Said {
    /// What is said of all places of a knob, for all that can be told.
    #[must_use]
    pub fn of_all(text: &str) -> Self {
        Self { text: text.to_owned(), at: None }
    }

    /// Whether a place is meant, or one of those that are left open by holes; without one, any is.
    #[must_use]
    pub fn is_of(&self, place: Option<&str>) -> bool {
        let pair = self.at.as_deref().zip(place);
        pair.is_none_or(|(at, place)| place::is_of_row(place, at))
    }
}

/// Lines that a writer writes again behind what it sets itself ([`WriterAgain`]).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Again {
    /// Each with its place, in the order in which they are written.
    pub lines: Vec<(String, BootValue)>,
    /// Whether it does; else it may, for all that can be told.
    pub is_sure: bool,
    /// The places at which a line of these is the last word: what the writer sets there itself does not last.
    pub settles: BTreeSet<String>,
}

impl SeenWriter {
    /// Whether its texts say something of a place of a knob that it sets, or may set. Where they say nothing of the
    /// knob at all, whatever tells that it sets it does not tell where.
    pub(crate) fn says_of(&self, knob: &KnobId, at: Option<&str>) -> bool {
        let texts = [&self.sources, &self.maybe];
        let mut all = texts.into_iter().filter_map(|texts| texts.get(knob)).flatten().peekable();
        all.peek().is_none() || all.any(|said| said.is_of(at))
    }

    /// Whether every command that sets this place of the knob has the wanted value as a word, or as several:
    /// `echo never`.
    #[must_use]
    pub fn sets_as_wanted(&self, knob: &Knob, at: &str, wanted: &str) -> bool {
        let words = |text: &str| {
            let words = text.split(|c: char| !c.is_ascii_alphanumeric() && !"._-".contains(c));
            words.filter(|word| !word.is_empty()).fold(" ".to_owned(), |all, word| all + word + " ")
        };
        let wanted = words(&knob.r#type.normal(wanted));
        let commands = self.commands.get(&knob.id).into_iter().flatten();
        let mut commands = commands.filter(|said| said.is_of(Some(at))).peekable();
        commands.peek().is_some() && commands.all(|said| words(&said.text).contains(&wanted))
    }
}

/// Where the unit of a program takes its arguments from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WriterArguments {
    /// The file of variables.
    pub file: String,
    /// The variable that is on the program's command line.
    pub variable: String,
    /// What it is now; empty where it is not set.
    pub value: String,
}

/// A second writer of places that a plan sets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SecondWriter {
    /// The row.
    pub id: String,
    /// Whether it is at work now. Else it writes at the next boot.
    pub running: bool,
    /// By what it was recognised.
    pub evidence: Vec<String>,
    /// Places of the plan that it writes too, or may write.
    pub places: Vec<String>,
    /// Those of them that its texts name, while nobody can tell what becomes of them; all, where its profile cannot be
    /// read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub maybe: Vec<String>,
    /// What to type so that planish alone writes them.
    pub hand_over: Vec<String>,
    /// What to type so that it leaves these places to planish; empty where it cannot.
    pub exclude: Vec<String>,
    /// The knobs of these places that `exclude` has no words for, where it has words for others: it goes on writing
    /// those, unless one of the two lets go of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_excluded: Vec<KnobId>,
    /// What to type so that planish leaves them to it.
    pub leave: String,
}
