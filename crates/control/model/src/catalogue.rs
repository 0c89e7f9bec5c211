//! The catalogue: every row of `catalogue/`, embedded in the binary, and the rows of the user.
//!
//! A user's own profiles and knobs are held to the same rules as ours. Errors name file, line and column, and the
//! nearest valid name.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use planish_sorted::SortSmall as _;
use serde::Deserialize;
use thiserror::Error;

use crate::{
    Enforces, FindingRule, Knob, KnobId, NameError, Pin, Profile, ValueError, Want, Writer, nearest,
    nearest_listed,
};

mod conflict;
mod embedded;
mod findings;
mod in_words;
mod placement;
mod position;
mod rules;
mod writers;

use conflict::Laid;
use findings::{FindingFile, Findings};
use position::{located, of_name, of_parent, of_row, of_want, point};
use writers::WriterFile;

pub use conflict::Conflict;
pub use rules::PinnedOtherwise;

/// Why a catalogue file, or a name in it, is wrong.
#[derive(Debug, Error)]
pub enum CatalogueError {
    /// Not TOML, or not the shape of a row.
    #[error("{file}:{line}:{column}: {message}")]
    Malformed {
        /// The file.
        file: String,
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
        /// What is wrong.
        message: String,
    },
    /// A profile that is called what no file can be.
    #[error("{file}: {error}")]
    Name {
        /// The file, with line and column.
        file: String,
        /// What is wrong with the name.
        error: NameError,
    },
    /// No such knob.
    #[error("{file}: no knob `{id}`{}", hint(nearest.as_ref()))]
    UnknownKnob {
        /// Where it was named, with line and column where it is in a file.
        file: String,
        /// The name.
        id: String,
        /// The nearest valid name.
        nearest: Option<String>,
    },
    /// What is to be left out is neither a knob nor a program that sets some.
    #[error("no knob and no other program `{name}`{}", hint(nearest.as_ref()))]
    UnknownExclude {
        /// The name.
        name: String,
        /// The nearest valid name.
        nearest: Option<String>,
        /// The programs.
        writers: Vec<String>,
    },
    /// No such profile.
    #[error("{}no profile `{name}`{}", place(file.as_ref()), hint(nearest.as_ref()))]
    UnknownProfile {
        /// Where it is inherited, with line and column; `None` for one that was named elsewhere.
        file: Option<String>,
        /// The name.
        name: String,
        /// The nearest valid name.
        nearest: Option<String>,
        /// The names of all profiles.
        known: Vec<String>,
        /// A file of the user that is called so, and the name that its profile has.
        other: Option<Box<(String, String)>>,
    },
    /// A profile inherits itself.
    #[error("{}profile `{name}` inherits itself", place(file.as_ref()))]
    Cycle {
        /// Where it is inherited, with line and column.
        file: Option<String>,
        /// The profile.
        name: String,
    },
    /// A profile inherits more profiles than can be meant, itself or through them.
    #[error("{}profile `{name}` inherits more than {INHERITED_MAX} profiles in all", place(file.as_ref()))]
    TooMany {
        /// Where one of them is inherited, with line and column.
        file: Option<String>,
        /// The profile that would be one too many.
        name: String,
    },
    /// Parents of a profile that want some things otherwise, which the profile itself does not settle: all of them, so
    /// that they are settled at once.
    #[error("{file}: {} otherwise by two parents: {}", are_wanted(conflicts), listed(conflicts))]
    Conflict {
        /// Where the second parent of the first of them is inherited, with line and column.
        file: String,
        /// Each thing, and how either parent wants it.
        conflicts: Vec<Conflict>,
    },
    /// A wanted value that the knob cannot have.
    #[error("{file}: {knob}")]
    BadValue {
        /// The profile's file, with line and column.
        file: String,
        /// The knob.
        knob: KnobId,
        /// What is wrong.
        #[source]
        source: ValueError,
    },
    /// Two rows of one name.
    #[error("{file}: `{id}` is defined twice")]
    Twice {
        /// The second file, with line and column.
        file: String,
        /// The name.
        id: String,
    },
    /// A row for a place that another one has already, with its class and its bounds.
    #[error("{file}: {id}: {path} is a place of {owner}, and one setting has one row")]
    Taken {
        /// The file, with line and column.
        file: String,
        /// The row.
        id: String,
        /// Its path.
        path: String,
        /// Whose place it is.
        owner: KnobId,
    },
    /// A row breaks a rule of the catalogue.
    #[error("{file}: {id}: {rule}")]
    Rule {
        /// The file.
        file: String,
        /// The row.
        id: String,
        /// The rule.
        rule: &'static str,
    },
    /// A knob is wanted at a word that the kernel does not take while another one has its wanted value.
    #[error("{file}: {pinned}")]
    Pinned {
        /// The file.
        file: String,
        /// Both knobs, and their words.
        pinned: Box<PinnedOtherwise>,
    },
    /// A profile of the user that is wrong and was left out, where it is named or inherited.
    #[error(transparent)]
    LeftOut(Arc<CatalogueError>),
}

impl CatalogueError {
    /// What to do about it.
    #[must_use]
    pub fn cure(&self) -> String {
        match self {
            Self::UnknownKnob { .. } => "list the knobs: planish knobs".to_owned(),
            Self::UnknownExclude { writers, .. } => {
                format!("list the knobs: planish knobs; the programs are {}", writers.join(", "))
            }
            Self::UnknownProfile { name, other: Some(other), .. } => {
                let (file, called) = other.as_ref();
                format!(
                    "{file} is there, and the profile in it is called {called}: name that, or write name = \"{name}\" \
                     there"
                )
            }
            Self::UnknownProfile { file, known, .. } => {
                let own = match file {
                    None => "one in a file is named with a slash: ./mine.toml",
                    Some(_) => {
                        "a parent of yours lies in the folder of your profiles, wherever its child lies \
                         (docs/profiles.md)"
                    }
                };
                format!("the profiles are {}; {own}", known.join(", "))
            }
            Self::BadValue { knob, .. } => format!("see what it may be: planish knobs {knob}"),
            Self::Conflict { conflicts, .. } => {
                let knobs = named(conflicts);
                let which = if conflicts.len() == 1 { "which it is" } else { "which they are" };
                format!("say in the profile itself {which} to be: {knobs}, in its own table")
            }
            Self::TooMany { .. } => "say in one profile what these want together".to_owned(),
            Self::Cycle { .. } => "take one of the names out of `inherits`".to_owned(),
            Self::LeftOut(error) => error.cure(),
            Self::Name { error, .. } => error.cure(),
            Self::Twice { .. } => "rename or remove the second one".to_owned(),
            Self::Taken { owner, .. } => format!("take the row out, and want {owner}: planish knobs {owner}"),
            Self::Pinned { pinned, .. } => {
                format!("want {} at {}, or take one of the two out", pinned.knob, pinned.pin.to)
            }
            Self::Malformed { file, .. } | Self::Rule { file, .. } => {
                let path = file.split(".toml:").next().unwrap_or(file).trim_end_matches(".toml");
                format!("mend {path}.toml there, or move it away")
            }
        }
    }

    /// The same with the place at which a profile names its parent, unless it has one already.
    fn inherited_at(self, at: impl FnOnce() -> String) -> Self {
        match self {
            Self::UnknownProfile { file: None, name, nearest, known, other } => {
                Self::UnknownProfile { file: Some(at()), name, nearest, known, other }
            }
            Self::Cycle { file: None, name } => Self::Cycle { file: Some(at()), name },
            Self::TooMany { file: None, name } => Self::TooMany { file: Some(at()), name },
            other => other,
        }
    }
}

fn named(conflicts: &[Conflict]) -> String {
    conflicts.iter().map(|conflict| conflict.knob.as_str()).collect::<Vec<_>>().join(", ")
}

fn are_wanted(conflicts: &[Conflict]) -> String {
    format!("{} {} wanted", named(conflicts), if conflicts.len() == 1 { "is" } else { "are" })
}

fn listed(conflicts: &[Conflict]) -> String {
    conflicts.iter().map(Conflict::to_string).collect::<Vec<_>>().join("; ")
}

fn place(file: Option<&String>) -> String {
    file.map(|file| format!("{file}: ")).unwrap_or_default()
}

fn hint(nearest: Option<&String>) -> String {
    nearest.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct KnobFile {
    knob: Vec<Knob>,
}

/// What we know, as data: knobs, profiles and finding rules by name.
#[derive(Clone, Debug, Default)]
pub struct Catalogue {
    knobs: BTreeMap<KnobId, Knob>,
    profiles: BTreeMap<String, ProfileFile>,
    /// What we ship, also where a user's own has taken the name. Shipped profiles inherit from these, so that no file
    /// of a user can break one of them.
    shipped: BTreeMap<String, ProfileFile>,
    /// Profiles of the user that are wrong, by name, and why.
    left_out: BTreeMap<String, LeftOut>,
    findings: Findings,
    writers: Vec<Writer>,
}

/// A profile and where it was read, so that what is wrong with it can be pointed at.
#[derive(Clone, Debug)]
struct ProfileFile {
    file: String,
    text: String,
    profile: Profile,
}

/// What is wrong with a profile of the user, and the file that it was read from.
#[derive(Clone, Debug)]
struct LeftOut {
    file: String,
    error: Arc<CatalogueError>,
}

/// As many profiles are laid over each other for one. Each is read again wherever it is inherited, so that a few that
/// inherit two of one kind each come to millions.
const INHERITED_MAX: usize = 64;

/// How a profile that is being laid over others came to be inherited.
#[derive(Default)]
struct Lineage {
    /// Its heirs, the first of all first.
    names: Vec<String>,
    /// Profiles that were taken up so far, those that are done with too.
    laid: usize,
}

impl Lineage {
    fn of(name: &str) -> Self {
        Self { names: vec![name.to_owned()], laid: 0 }
    }
}

impl Catalogue {
    /// The embedded catalogue.
    ///
    /// # Errors
    /// Never in a released binary: a test loads it.
    pub fn embedded() -> Result<Self, CatalogueError> {
        // Read once a process by whoever opens many sessions, as tests and trials do: who opens one needs no copy.
        static READ: OnceLock<Catalogue> = OnceLock::new();
        static IS_ASKED: AtomicBool = AtomicBool::new(false);
        if !IS_ASKED.swap(true, Ordering::Relaxed) {
            return Self::read();
        }
        if READ.get().is_none() {
            let _ = READ.set(Self::read()?);
        }
        Ok(READ.get().expect("it was read just now").clone())
    }

    /// Reads what is embedded.
    fn read() -> Result<Self, CatalogueError> {
        let mut catalogue = Self { findings: Findings::embedded(), ..Self::default() };
        for (_, rows) in embedded::KNOBS.read::<KnobFile>()? {
            catalogue.knobs.extend(rows.knob.into_iter().map(|knob| (knob.id.clone(), knob)));
        }
        for (file, profile) in embedded::PROFILES.read::<Profile>()? {
            // Where in its file something is wrong is told by the test that reads the file.
            let file = ProfileFile { file: file.to_owned(), text: String::new(), profile };
            catalogue.profiles.insert(file.profile.name.clone(), file);
        }
        for (_, rows) in embedded::WRITERS.read::<WriterFile>()? {
            catalogue.writers.extend(rows.writer);
        }
        catalogue.shipped.clone_from(&catalogue.profiles);
        // What is shipped went through the tests, which hold every row to every rule.
        if cfg!(debug_assertions) {
            catalogue.check()?;
        }
        Ok(catalogue)
    }

    /// Adds the rows of a knob file.
    ///
    /// # Errors
    /// Malformed text, a name or a place that is taken, a row that breaks a rule.
    pub fn add_knobs(&mut self, file: &str, text: &str) -> Result<(), CatalogueError> {
        for knob in parse::<KnobFile>(file, text)?.knob {
            let at = || located(file, text, of_row(text, knob.id.as_str()));
            if let Some(rule) = rules::broken_rule(&knob) {
                return Err(CatalogueError::Rule { file: at(), id: knob.id.to_string(), rule });
            }
            if self.knobs.contains_key(&knob.id) {
                return Err(CatalogueError::Twice { file: at(), id: knob.id.to_string() });
            }
            if let Some(owner) = self.knobs.values().find(|other| rules::is_one_setting(&knob, other)) {
                let (id, path, owner) = (knob.id.to_string(), knob.path, owner.id.clone());
                return Err(CatalogueError::Taken { file: at(), id, path, owner });
            }
            self.knobs.insert(knob.id.clone(), knob);
        }
        Ok(())
    }

    /// Adds the rules of a findings file.
    ///
    /// # Errors
    /// Malformed text, a name that is taken, a rule that says neither a cost nor a risk.
    pub fn add_findings(&mut self, file: &str, text: &str) -> Result<(), CatalogueError> {
        for rule in parse::<FindingFile>(file, text)?.finding {
            if rule.costs.is_none() && rule.risk.is_none() {
                let broken = "it says neither what it costs nor what it risks";
                return Err(CatalogueError::Rule { file: file.to_owned(), id: rule.id, rule: broken });
            }
            if self.findings().iter().any(|other| other.id == rule.id) {
                return Err(CatalogueError::Twice { file: file.to_owned(), id: rule.id });
            }
            self.findings.add(rule);
        }
        Ok(())
    }

    /// Adds a profile; one of the same name is replaced, so that a user's own wins over ours where it is named. What
    /// we ship goes on to inherit from what we ship. Of two files of one folder neither can be meant to win.
    ///
    /// # Errors
    /// Malformed text, a name that another file of the same folder has. Names and values are checked by
    /// [`Self::check`].
    pub fn add_profile(&mut self, file: &str, text: &str) -> Result<(), CatalogueError> {
        let profile = parse_profile(file, text)?;
        let beside = |other: &&ProfileFile| {
            other.file != file && Path::new(&other.file).parent() == Path::new(file).parent()
        };
        if self.profiles.get(&profile.name).filter(beside).is_some() {
            let (line, column) = point(text, of_name(text).unwrap_or(0));
            return Err(CatalogueError::Twice { file: format!("{file}:{line}:{column}"), id: profile.name });
        }
        let (file, text) = (file.to_owned(), text.to_owned());
        self.profiles.insert(profile.name.clone(), ProfileFile { file, text, profile });
        Ok(())
    }

    /// Leaves a profile of the user out, since it is wrong: whoever names or inherits it is told why, and nobody else
    /// is stopped. One of ours does not take its place: nobody would see that theirs was not taken.
    pub fn leave_out(&mut self, name: &str, file: &str, error: CatalogueError) {
        self.profiles.remove(name);
        let (file, error) = (file.to_owned(), Arc::new(error));
        self.left_out.insert(name.to_owned(), LeftOut { file, error });
    }

    /// What is wrong with the profile that was left out which is meant by a word: its name, or that of its file, where
    /// nobody could type its own.
    fn left_out_as(&self, word: &str) -> Option<&Arc<CatalogueError>> {
        let is_called = |left: &&LeftOut| Path::new(&left.file).file_stem().is_some_and(|stem| stem == word);
        let found = self.left_out.get(word).or_else(|| self.left_out.values().find(is_called))?;
        Some(&found.error)
    }

    /// Leaves out what is wrong, itself or in what it inherits, among the profiles that the user added.
    pub fn leave_wrong_out(&mut self) {
        let is_own = |(name, file): &(&String, &ProfileFile)| {
            self.shipped.get(*name).is_none_or(|shipped| shipped.file != file.file)
        };
        let own = self.profiles.iter().filter(is_own);
        let wrong =
            own.filter_map(|(name, own)| Some((name.clone(), own.file.clone(), self.profile(name).err()?)));
        for (name, file, error) in wrong.collect::<Vec<_>>() {
            self.leave_out(&name, &file, error);
        }
    }

    /// What is wrong with the profiles that were left out, in the order of their names.
    pub fn left_out(&self) -> impl Iterator<Item = &CatalogueError> {
        self.left_out.values().map(|left| left.error.as_ref())
    }

    /// Checks every reference and every literal value of all rows.
    ///
    /// # Errors
    /// The first name that does not exist, or value that a knob cannot have.
    pub fn check(&self) -> Result<(), CatalogueError> {
        for knob in self.knobs.values() {
            let pin = knob.pinned.iter().map(|pin| &pin.by);
            let limits = knob.enforces.iter().flat_map(|enforces| &enforces.limits);
            for other in knob.coupled().chain(&knob.after).chain(pin).chain(limits) {
                self.knob_in(&format!("knob {}", knob.id), other)?;
            }
            let twin = knob.twin.as_ref().and_then(|twin| self.knobs.get(twin));
            if twin.is_some_and(|twin| twin.twin.as_ref() != Some(&knob.id)) {
                let (file, rule) = ("catalogue".to_owned(), "its twin does not name it as its own twin");
                return Err(CatalogueError::Rule { file, id: knob.id.to_string(), rule });
            }
        }
        for rule in self.findings() {
            for cured_by in &rule.cured_by {
                self.knob_in(&format!("finding {}", rule.id), &cured_by.knob)?;
            }
        }
        for name in self.profiles.keys() {
            self.profile(name)?;
        }
        self.check_writers()
    }

    /// A knob by its id.
    ///
    /// # Errors
    /// Names the nearest valid id.
    pub fn knob(&self, id: &KnobId) -> Result<&Knob, CatalogueError> {
        self.knob_in("command line", id)
    }

    fn knob_in(&self, file: &str, id: &KnobId) -> Result<&Knob, CatalogueError> {
        self.knobs.get(id).ok_or_else(|| CatalogueError::UnknownKnob {
            file: file.to_owned(),
            id: id.to_string(),
            nearest: self.meant(id.as_str()).map(str::to_owned),
        })
    }

    /// The id that a wrong one most likely means: a name of its file, of its folder or of its boot parameter, the
    /// first word of it, or a typing error.
    fn meant(&self, wrong: &str) -> Option<&str> {
        let name = wrong.strip_prefix("vm.").unwrap_or(wrong);
        let file = |knob: &Knob| knob.path.rsplit('/').next() == Some(name);
        let folder = |knob: &Knob| {
            knob.path.split('/').any(|part| part == wrong) || knob.boot_arg.as_deref() == Some(wrong)
        };
        let family = |knob: &Knob| knob.id.as_str().split('.').next() == Some(wrong);
        let ways: [&dyn Fn(&Knob) -> bool; 3] = [&file, &folder, &family];
        let named = ways.into_iter().find_map(|way| {
            // Of several, the one that a boot parameter can set is the main one, and 2 MiB pages before 1 GiB ones.
            let fits = self.knobs.values().filter(|knob| way(knob));
            fits.min_by_key(|knob| (knob.boot_arg.is_none(), knob.id.as_str().len(), knob.path.len()))
        });
        let typed = || nearest(wrong, self.knobs.keys().map(KnobId::as_str));
        named.map(|knob| knob.id.as_str()).or_else(typed)
    }

    /// All knobs, by id.
    pub fn knobs(&self) -> impl Iterator<Item = &Knob> {
        self.knobs.values()
    }

    /// Knobs that enforce limits at one of their values, and which.
    pub fn modes(&self) -> impl Iterator<Item = (&Knob, &Enforces)> {
        self.knobs().filter_map(|mode| Some((mode, mode.enforces.as_ref()?)))
    }

    /// These knobs, and all that are coupled with one of them or hold it at one word, directly or through another: what
    /// must be read of a host before one of them is written.
    #[must_use]
    pub fn with_coupled<'a>(&self, ids: impl IntoIterator<Item = &'a KnobId>) -> BTreeSet<KnobId> {
        let mut found = BTreeSet::new();
        let mut ahead: Vec<KnobId> = ids.into_iter().cloned().collect();
        while let Some(id) = ahead.pop() {
            let knob = self.knobs.get(&id);
            let holds = knob.and_then(|knob| knob.pinned.as_ref()).map(|pin| &pin.by);
            let coupled = knob.into_iter().flat_map(Knob::coupled).chain(holds);
            let new = coupled.filter(|other| !found.contains(*other)).cloned();
            ahead.extend(new);
            found.insert(id);
        }
        found
    }

    /// What holds a place of a knob at one word: the pin, the other knob, and its place there. `None` for a knob that
    /// nothing holds, and for a place that is none of its own.
    #[must_use]
    pub fn pinning<'c>(&'c self, knob: &'c Knob, place: &str) -> Option<(&'c Pin, &'c Knob, String)> {
        let pin = knob.pinned.as_ref()?;
        let by = self.knobs.get(&pin.by)?;
        let holes = crate::place::captures(&knob.path, place)?;
        Some((pin, by, crate::place::fill(&by.path, &holes)))
    }

    /// All finding rules, in the order of the files.
    #[must_use]
    pub fn findings(&self) -> &[FindingRule] {
        self.findings.all()
    }

    /// Profiles that name a program, those of the user first.
    fn naming(&self, program: &str) -> Vec<&Profile> {
        let files = self.profiles.iter().filter(|(_, found)| found.profile.is_for(program));
        let mut named: Vec<(bool, &Profile)> = files
            .map(|(name, found)| {
                let is_shipped = self.shipped.get(name).is_some_and(|shipped| shipped.file == found.file);
                (is_shipped, &found.profile)
            })
            .collect();
        named.sort_small_by_key(|(is_shipped, _)| *is_shipped);
        named.into_iter().map(|(_, profile)| profile).collect()
    }

    /// The profile that is made for a program, by its name in the kernel (`postgres`, `redis-server`, `mongod`), and
    /// for its version. Where that is not known, it is the one for the newest.
    #[must_use]
    pub fn profile_for(&self, program: &str, version: Option<&str>) -> Option<&str> {
        let named = self.naming(program);
        let suits = |profile: &&&Profile| match version {
            Some(version) => profile.suits(version),
            None => profile.service_max.is_none(),
        };
        let found = named.iter().find(suits).or_else(|| named.first());
        found.map(|profile| profile.name.as_str()).or_else(|| self.profile_by_name(program))
    }

    /// Packages that tell the version of a program.
    #[must_use]
    pub fn packages_of(&self, program: &str) -> Vec<String> {
        self.naming(program).into_iter().flat_map(|profile| profile.packages.iter().cloned()).collect()
    }

    /// All packages that tell a version of a program.
    #[must_use]
    pub fn packages(&self) -> Vec<String> {
        let profiles = self.profiles.values().map(|found| &found.profile);
        let mut all: Vec<String> = profiles.flat_map(|profile| profile.packages.iter().cloned()).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Whether any profile is made for a program.
    #[must_use]
    pub fn has_profile_for(&self, program: &str) -> bool {
        self.profiles.values().any(|found| found.profile.is_for(program))
    }

    /// The profile to take in the place of one that a version does not suit: for the same program, and for it.
    #[must_use]
    pub fn profile_instead(&self, profile: &Profile, version: &str) -> Option<&str> {
        let shares =
            |other: &Profile| other.programs.iter().any(|program| profile.programs.contains(program));
        let mut files = self.profiles.values().map(|found| &found.profile);
        files.find(|other| shares(other) && other.suits(version)).map(|other| other.name.as_str())
    }

    /// The profile whose name a program begins with, where none names the program.
    fn profile_by_name(&self, program: &str) -> Option<&str> {
        let made_for = |name: &&str| {
            let rest = program.strip_prefix(*name);
            rest.is_some_and(|rest| rest == "d" || !rest.starts_with(|c: char| c.is_alphanumeric()))
        };
        self.profile_names().filter(made_for).max_by_key(|name| name.len())
    }

    /// Names of all profiles.
    pub fn profile_names(&self) -> impl Iterator<Item = &str> {
        self.profiles.keys().map(String::as_str)
    }

    /// The file of a profile whose own name is another one than this, and that name.
    fn in_file_called(&self, stem: &str) -> Option<(String, String)> {
        let is_called = |found: &&ProfileFile| {
            Path::new(&found.file).file_stem().is_some_and(|own| own == stem) && found.profile.name != stem
        };
        let found = self.profiles.values().find(is_called)?;
        Some((found.file.clone(), found.profile.name.clone()))
    }

    /// A profile as it stands, without what it inherits, and its file where that is a file of the user.
    #[must_use]
    pub fn profile_as_written(&self, name: &str) -> Option<(&Profile, Option<&str>)> {
        let found = self.profiles.get(name)?;
        let is_shipped = self.shipped.get(name).is_some_and(|shipped| shipped.file == found.file);
        Some((&found.profile, (!is_shipped).then_some(found.file.as_str())))
    }

    /// The name of the profile that a wanted value of this one stands in: its own, or that of one that it inherits.
    #[must_use]
    pub fn wanted_in<'a>(&'a self, profile: &'a Profile, id: &KnobId, want: &Want) -> &'a str {
        if profile.want.get(id) == Some(want) {
            return &profile.name;
        }
        let parents = profile.inherits.iter().rev();
        let found = parents.into_iter().find_map(|parent| self.wanted_by(parent, id, want));
        found.map_or(profile.name.as_str(), |found| found.profile.name.as_str())
    }

    /// A profile with everything that it inherits, checked.
    ///
    /// # Errors
    /// No such profile, a cycle, a knob that does not exist, a value that a knob cannot have.
    pub fn profile(&self, name: &str) -> Result<Profile, CatalogueError> {
        self.flatten(name, &mut Lineage::default(), false)
    }

    /// A profile from the text of a file that is not in the catalogue, with everything that it inherits, checked.
    ///
    /// # Errors
    /// Malformed text, and as [`Self::profile`].
    pub fn parse_profile(&self, file: &str, text: &str) -> Result<Profile, CatalogueError> {
        self.merge_alone(file, text, &parse_profile(file, text)?)
    }

    /// The same as it stands in the file, checked: what it inherits is named and not laid under it.
    ///
    /// # Errors
    /// As [`Self::parse_profile`].
    pub fn read_profile(&self, file: &str, text: &str) -> Result<Profile, CatalogueError> {
        let profile = parse_profile(file, text)?;
        self.merge_alone(file, text, &profile)?;
        Ok(profile)
    }

    /// Checks a profile that is not in the catalogue (a trial's, a file of the user) and flattens it.
    ///
    /// # Errors
    /// As [`Self::profile`].
    pub fn resolve(&self, file: &str, profile: &Profile) -> Result<Profile, CatalogueError> {
        self.merge_alone(file, "", profile)
    }

    fn merge_alone(&self, file: &str, text: &str, profile: &Profile) -> Result<Profile, CatalogueError> {
        self.merge(file, text, profile, &mut Lineage::of(&profile.name), false)
    }

    /// A profile with everything that it inherits; `by_us` where one that we ship inherits it.
    fn flatten(&self, name: &str, path: &mut Lineage, by_us: bool) -> Result<Profile, CatalogueError> {
        if path.names.iter().any(|seen| seen == name) {
            return Err(CatalogueError::Cycle { file: None, name: name.to_owned() });
        }
        path.laid += 1;
        if path.laid > INHERITED_MAX {
            return Err(CatalogueError::TooMany { file: None, name: name.to_owned() });
        }
        let shipped = self.shipped.get(name);
        let found = shipped.filter(|_| by_us).or_else(|| self.profiles.get(name));
        if let (None, Some(error)) = (found, self.left_out_as(name)) {
            return Err(CatalogueError::LeftOut(Arc::clone(error)));
        }
        let Some(ProfileFile { file, text, profile }) = found else {
            return Err(CatalogueError::UnknownProfile {
                file: None,
                name: name.to_owned(),
                nearest: nearest(name, self.profile_names()).map(str::to_owned),
                known: self.profile_names().map(str::to_owned).collect(),
                other: self.in_file_called(name).map(Box::new),
            });
        };
        if shipped.is_some_and(|shipped| shipped.file == *file) {
            // Another path: the user's own of a name on it is not met again.
            return self.merge(file, text, profile, &mut Lineage::of(name), true);
        }
        path.names.push(name.to_owned());
        let merged = self.merge(file, text, profile, path, false);
        path.names.pop();
        merged
    }

    fn merge(
        &self,
        file: &str,
        text: &str,
        profile: &Profile,
        path: &mut Lineage,
        by_us: bool,
    ) -> Result<Profile, CatalogueError> {
        let mut want = BTreeMap::new();
        let mut placement = None;
        let (mut conflicts, mut first_at) = (Vec::new(), None);
        for parent in &profile.inherits {
            let at = || located(file, text, of_parent(text, parent));
            let inherited = self.flatten(parent, path, by_us).map_err(|error| error.inherited_at(at))?;
            // A trial puts profiles of its arms together in the order in which they were kept, and has no file.
            if !text.is_empty() {
                let laid = Laid { want: &want, placement: placement.as_ref() };
                conflicts.extend(self.conflicts(profile, &laid, parent, &inherited));
                first_at = first_at.or_else(|| (!conflicts.is_empty()).then(at));
            }
            self.lay_over(&mut want, inherited.want);
            placement = inherited.placement.or(placement);
        }
        if let Some(file) = first_at {
            return Err(CatalogueError::Conflict { file, conflicts });
        }
        for (id, wanted) in &profile.want {
            let at = || located(file, text, of_want(text, id.as_str()));
            self.check_want(&at, id, wanted, profile)?;
        }
        self.lay_over(&mut want, profile.want.clone());
        if let Some(own) = &profile.placement {
            self.check_placement(file, text, own)?;
            placement = Some(own.clone());
        }
        if let Some(pinned) = self.pinned_otherwise(&want) {
            let own = [&pinned.knob, &pinned.pin.by].into_iter().find_map(|id| of_want(text, id.as_str()));
            let file = located(file, text, own);
            return Err(CatalogueError::Pinned { file, pinned: Box::new(pinned) });
        }
        if let Some((limit, rule)) = rules::broken_versions(profile) {
            let at = located(file, text, text.find(limit));
            return Err(CatalogueError::Rule { file: at, id: limit.to_owned(), rule });
        }
        for line in &profile.guide {
            let Some(id) = &line.knob else { continue };
            let at = || located(file, text, text.find(&line.says));
            if !self.knobs.contains_key(id) {
                self.knob_in(&at(), id)?;
            }
            if want.contains_key(id) != line.answer.is_wanted() {
                let rule = "a guide's setting that was kept or changed is wanted, and no other one";
                return Err(CatalogueError::Rule { file: at(), id: id.to_string(), rule });
            }
        }
        Ok(Profile { inherits: Vec::new(), want, placement, ..profile.clone() })
    }

    /// A knob that is wanted at a word which the kernel does not take while another one has the value that is wanted of
    /// it: no profile may want both.
    #[must_use]
    pub fn pinned_otherwise(&self, want: &BTreeMap<KnobId, Want>) -> Option<PinnedOtherwise> {
        rules::pinned_otherwise(self, want)
    }

    /// The rule that what a profile alone wants of a knob breaks.
    #[must_use]
    pub fn broken_want(&self, id: &KnobId, profile: &Profile) -> Option<&'static str> {
        rules::broken_want(self.knobs.get(id)?, profile.want.get(id)?, profile)
    }

    /// Lays wanted values over others: a value takes the place of its own knob's and of its twin's.
    fn lay_over(&self, want: &mut BTreeMap<KnobId, Want>, own: BTreeMap<KnobId, Want>) {
        for id in own.keys() {
            if let Some(twin) = self.knobs.get(id).and_then(|knob| knob.twin.as_ref()) {
                want.remove(twin);
            }
        }
        want.extend(own);
    }

    fn check_want(
        &self,
        at: &dyn Fn() -> String,
        id: &KnobId,
        want: &Want,
        profile: &Profile,
    ) -> Result<(), CatalogueError> {
        let Some(knob) = self.knobs.get(id) else {
            return self.knob_in(&at(), id).map(|_| ());
        };
        if let Some(rule) = rules::broken_want(knob, want, profile) {
            return Err(CatalogueError::Rule { file: at(), id: id.to_string(), rule });
        }
        for value in want.literals() {
            knob.validate(&value).map_err(|source| CatalogueError::BadValue {
                file: at(),
                knob: id.clone(),
                source,
            })?;
        }
        Ok(())
    }
}

fn parse_profile(file: &str, text: &str) -> Result<Profile, CatalogueError> {
    let profile = parse::<Profile>(file, text)?;
    Profile::check_name(&profile.name)
        .map_err(|error| CatalogueError::Name { file: located(file, text, of_name(text)), error })?;
    Ok(profile)
}

fn parse<T: serde::de::DeserializeOwned>(file: &str, text: &str) -> Result<T, CatalogueError> {
    toml::from_str(text).map_err(|error| {
        let (line, column) = point(text, error.span().map_or(0, |span| span.start));
        let meant = nearest_listed(error.message()).map(str::to_owned);
        let message = in_words::of(error.message(), text, error.span());
        let message = in_words::without_quotes(text).unwrap_or_else(|| message + &hint(meant.as_ref()));
        CatalogueError::Malformed { file: file.to_owned(), line, column, message }
    })
}

#[cfg(test)]
mod tests;
