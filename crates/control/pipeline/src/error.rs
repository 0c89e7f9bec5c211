//! Why a command of the control plane did not do what was asked, with its exit code and its cure.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use planish_act::program::ProgramRefusal;
use planish_act::relocate::RelocateError;
use planish_act::{ActError, SinkError};
use planish_decide::DecideError;
use planish_host::OpenError;
use planish_journal::{JournalError, LockError, RecordFault};
use planish_model::{CatalogueError, EntryId, Exit, KnobId, quoted};
use planish_residency::ResidencyError;
use thiserror::Error;

use crate::calendar;
use crate::state;
use crate::unborne::Unborne;
use crate::unconfirmed::Unconfirmed;

pub(crate) mod foreign;

pub use foreign::move_aside;

/// What helps where a recorded host is not to be written.
const NOT_WRITABLE: &str = "a copy to rehearse on is made by `planish host record DIR --writable`; of others those \
                            with `writable = true` in their meta.toml are written";

/// What helps where a file of a recorded host's state is a link.
const LINKED: &str = "put the file itself there: links in the state of a recorded host are not followed";

/// What to do about changes of files that nobody has seen.
const UNSHOWN: &str = "look at it, and write the plan with it: planish plan FILE --persist -o FILE";

/// Why a command did not do what was asked.
#[derive(Debug, Error)]
pub enum PipelineError {
    /// `--root` is no recorded host.
    #[error("cannot open the host")]
    Host(#[from] OpenError),
    /// A wrong row of the user, or a name that does not exist.
    #[error("the catalogue or a name in it is wrong")]
    Catalogue(#[from] Arc<CatalogueError>),
    /// What `--state` names is a file or a device.
    #[error("{} is no folder", path.display())]
    NotAFolder {
        /// As it was named.
        path: PathBuf,
    },
    /// No plan can be made from what was asked.
    #[error("no plan can be made")]
    Decide(#[from] DecideError),
    /// A plan or profile file cannot be read.
    #[error("cannot read {}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The kernel's answer.
        #[source]
        source: io::Error,
    },
    /// A file is neither a plan nor the answer of `planish plan --json`.
    #[error("{} is not a plan", path.display())]
    NotAPlan {
        /// The file.
        path: PathBuf,
        /// Line and column, and what is wrong there.
        #[source]
        source: serde_json::Error,
    },
    /// The name of a file where a profile's is asked for: it has no slash, so that a profile was looked for.
    #[error("no profile `{name}`, but a file of that name")]
    FileByName {
        /// As it was named.
        name: String,
    },
    /// A plan, or something else, where a profile is asked for.
    #[error("{} is no profile: a file of one ends in .toml", path.display())]
    NotAProfile {
        /// The file.
        path: PathBuf,
    },
    /// A plan was changed after it was made.
    #[error("the plan was changed: its steps do not have the hash {hash}")]
    Edited {
        /// The hash that it claims.
        hash: String,
    },
    /// A step that no plan of this catalogue can hold: the file was made or changed by hand.
    #[error("{place}: {why}")]
    Forged {
        /// The place of the step.
        place: String,
        /// What is wrong with it.
        why: String,
    },
    /// A plan for another machine, or for another boot of this one.
    #[error("the plan is for another {what}")]
    Elsewhere {
        /// `host` or `boot of this host`.
        what: &'static str,
    },
    /// The host is not as the plan saw it.
    #[error("the host has moved since the plan was made: {}", moved.join("; "))]
    Moved {
        /// Each place with what it shows and what the plan saw.
        moved: Vec<String>,
    },
    /// A file for the next boot would become another than the plan tells of, which was shown and agreed to.
    #[error("the host has moved since the plan was made: {}", paths.iter()
        .map(|path| format!("{path} would become another file than was shown")).collect::<Vec<_>>().join("; "))]
    Unshown {
        /// The files.
        paths: Vec<String>,
    },
    /// The pools of the plan are more than the host can give, as it is now or as it was when the plan was made.
    #[error("memory cannot give the pools of the plan at this moment: {why}")]
    NoMemory {
        /// The pools.
        knobs: Vec<KnobId>,
        /// What is asked for, what is there, and what the host keeps.
        why: String,
    },
    /// The pools of the next boot, with those that the plan adds, are more than its memory.
    #[error("{why}")]
    BeyondNextBoot {
        /// Pools that the plan adds.
        knobs: Vec<KnobId>,
        /// All pools, what is there, and what the host keeps.
        why: String,
    },
    /// A part of the plan is impossible on this host, or would ruin it.
    #[error("this host cannot be made so: {why}")]
    Impossible {
        /// What is wanted so.
        knobs: Vec<KnobId>,
        /// Each of them with its reason.
        why: String,
    },
    /// We may not write a place of the plan, found before anything was written.
    #[error("cannot write {place}: {why}")]
    NotWritable {
        /// The place.
        place: String,
        /// Why.
        why: String,
    },
    /// A file cannot be made or replaced where it belongs, found before anything was written.
    #[error("cannot write {file}: {why}")]
    ReadOnlyFolder {
        /// The file.
        file: String,
        /// What is mounted so.
        why: String,
    },
    /// The journal has open entries of another host than the one that is looked at.
    #[error("the journal {} is of another host: so {} of it", path.display(), foreign::are(entries))]
    OtherHost {
        /// The journal.
        path: PathBuf,
        /// Its entries that are of another one.
        entries: Vec<EntryId>,
    },
    /// A place of the plan cannot be read.
    #[error("cannot read what is there before the first write")]
    Before(#[source] SinkError),
    /// The kernel refuses an action. The journal says so, and nothing was changed.
    #[error("the kernel refuses the action")]
    Deed(#[source] SinkError),
    /// A file of ours is not as planish left it.
    #[error("{path} {}{}", foreign::what(holders, link.as_deref()), foreign::and(others))]
    ForeignFile {
        /// The file.
        path: String,
        /// Entries that have lines in it, oldest first.
        holders: Vec<EntryId>,
        /// Where the link leads that has its name.
        link: Option<String>,
        /// What to do about it.
        cure: String,
        /// The others that an apply would come by, each told as if it were alone.
        others: Box<[Self]>,
    },
    /// What would go back is needed by something that stays.
    #[error(transparent)]
    Unborne(#[from] Unborne),
    /// Boot parameters for a boot loader that is not known, or whose files may not be read.
    #[error("nobody can give `{arguments}` to the next boot: {reason}")]
    BootLoader {
        /// What was to be given.
        arguments: String,
        /// What was seen.
        reason: String,
        /// What to do about it.
        cure: String,
    },
    /// No boot for once can be made here.
    #[error("no trial boot can be made: {reason}")]
    Once {
        /// What was seen.
        reason: String,
        /// What to do about it.
        cure: String,
    },
    /// The place of an entry cannot be taken.
    #[error("the place of entry {entry} cannot be taken: {reason}")]
    InsteadOf {
        /// The entry.
        entry: EntryId,
        /// Why not.
        reason: String,
        /// What to do about it.
        cure: String,
    },
    /// The machine could not be told to start anew, or a unit to stop.
    #[error("systemctl {verb} has failed")]
    Systemd {
        /// What it was told.
        verb: &'static str,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// A file of a boot loader that is cut off, or that is not understood.
    #[error("{path} is not changed")]
    BootFile {
        /// The file.
        path: String,
        /// What is wrong with it.
        #[source]
        source: planish_boot::Odd,
    },
    /// A link in the state folder of a recorded host, which would lead what we write out of it.
    #[error("{} is a symbolic link", path.display())]
    Linked {
        /// The link.
        path: PathBuf,
    },
    /// A word that would mean something else in a file of systemd.
    #[error("`{text}` cannot stand in a unit as its {what}")]
    NotForAUnit {
        /// Program, profile, state folder, name, or a whole line.
        what: &'static str,
        /// The word.
        text: String,
    },
    /// A calendar event by which systemd would start nothing, or none that is known here.
    #[error("`{text}` is no time for a timer: {reason}")]
    NotATime {
        /// What was typed.
        text: String,
        /// What of it is not understood.
        reason: String,
    },
    /// Another installation, or what somebody left of it.
    #[error("{path} is of entry {entry}, and not as it is wanted now")]
    Installed {
        /// The entry.
        entry: EntryId,
        /// Its file.
        path: String,
    },
    /// A recorded host that is no fixture for writing.
    #[error("this host cannot be written")]
    Act(#[from] ActError),
    /// A place of the plan has a value that goes by itself unless somebody confirms it, or is built upon one.
    #[error("{what} is on trial: {unconfirmed}")]
    Unconfirmed {
        /// The place, or what is built upon it.
        what: String,
        /// The entry that holds it.
        unconfirmed: Unconfirmed,
    },
    /// Another planish is at work, or the lock cannot be had.
    #[error("cannot lock the host")]
    Lock(#[from] LockError),
    /// A trial has values on the host: which entry an undo without a name would take is a matter of the moment.
    #[error(
        "a trial is at work{}: which entry is the newest changes from one moment to the next",
        pid.map(|pid| format!(" (pid {pid})")).unwrap_or_default()
    )]
    TrialAtWork {
        /// Its process, where it can be told.
        pid: Option<i32>,
    },
    /// A process that is not moved.
    #[error("{why}")]
    Relocate {
        /// Why not.
        why: String,
        /// What would help.
        cure: String,
    },
    /// A program whose file is not replaced.
    #[error("{why}")]
    Program {
        /// Why not.
        why: String,
        /// What would help.
        cure: String,
    },
    /// A program whose file is never replaced, or not without a word.
    #[error("it is not replaced")]
    Guarded(#[from] ProgramRefusal),
    /// A process that cannot be looked at.
    #[error(transparent)]
    Process(#[from] RelocateError),
    /// What an undo of a move must know cannot be kept.
    #[error("nothing was moved: what an undo must know cannot be kept")]
    Record(#[from] RecordFault),
    /// The journal cannot be read or written, or has no such entry. Nothing was written to the host.
    #[error("{}", match .0 {
        JournalError::NoEntry { .. } => "nothing was changed",
        _ => "the journal cannot be used",
    })]
    Journal(#[from] JournalError),
    /// The journal failed while the host was being written.
    #[error("the journal failed half way, and the host was {}", if *restored { "put back" } else { "NOT put back" })]
    JournalHalfWay {
        /// The entry.
        entry: EntryId,
        /// Whether every step was taken back.
        restored: bool,
        /// What failed.
        #[source]
        source: JournalError,
    },
    /// A confirm that came to a file which cannot be written, when others were.
    #[error(
        "entry {entry} is not confirmed, and its files for the next boot were {}{}",
        if *restored { "taken out again" } else { "NOT all taken out again" },
        if confirmed.is_empty() { String::new() } else { format!("; confirmed: {}", listed(confirmed)) }
    )]
    NotConfirmed {
        /// The entry; its timer goes on.
        entry: EntryId,
        /// The entries before it.
        confirmed: Vec<EntryId>,
        /// Whether no file of it is left.
        restored: bool,
        /// Which file, and why.
        #[source]
        source: Box<PipelineError>,
    },
    /// A file of the boot loader that somebody changed between the apply that showed it and the confirm that is to
    /// write it. Nothing was written.
    #[error("{path} would become another file than was shown when entry {entry} was applied")]
    NotAsShown {
        /// The file.
        path: String,
        /// The entry; its timer goes on.
        entry: EntryId,
    },
    /// A file of the boot loader that went between the apply that showed it and the confirm that is to write it.
    /// Nothing was written.
    #[error("{path} is gone since entry {entry} was applied: was its kernel removed?")]
    GoneSince {
        /// The file.
        path: String,
        /// The entry; its timer goes on.
        entry: EntryId,
    },
    /// The dead-man timer cannot be started. Nothing was written to the host.
    #[error("cannot start the timer that undoes an unconfirmed apply")]
    Watch(#[source] io::Error),
    /// What was applied here is in a journal that this user may not read.
    #[error("what root applied is in {}, which only root may read", folder.display())]
    RootsJournal {
        /// The state folder of root.
        folder: PathBuf,
    },
    /// No service of that name or number.
    #[error("no running service `{service}`{}", crate::meant::hint(nearest.as_ref()))]
    NoService {
        /// As it was named.
        service: String,
        /// The program that runs and was probably meant.
        nearest: Option<String>,
    },
    /// A service whose maps cannot be read.
    #[error("cannot read the maps of `{service}`")]
    ServiceMaps {
        /// As it was named.
        service: String,
        /// Why.
        #[source]
        source: ResidencyError,
    },
    /// The data folder of a server is not there, or is of none.
    #[error("{} is no {what}", data.display())]
    NoDataFolder {
        /// What it is not.
        what: &'static str,
        /// As it was named.
        data: PathBuf,
    },
    /// PostgreSQL does not say how much shared memory it wants.
    #[error("{} does not tell {setting}: {message}", program.display())]
    Postgres {
        /// The server program.
        program: PathBuf,
        /// What it was asked.
        setting: &'static str,
        /// Its own words, or the kernel's.
        message: String,
    },
}

/// The cure of a boot loader that is not changed.
fn of_loader(cure: &str) -> String {
    format!("{cure}; apply without --persist sets what can be set now")
}

/// The cure of a file of a boot loader that is not changed.
fn of_boot_file(path: &str, odd: &planish_boot::Odd) -> String {
    match odd {
        planish_boot::Odd::Arguments { .. } => {
            "give them to the boot loader by hand, and apply without --persist".to_owned()
        }
        _ => format!("look at {path}, mend it, then try again; apply without --persist leaves it alone"),
    }
}

/// The cure of a process whose memory is not looked at.
fn of_maps(error: &ResidencyError) -> &'static str {
    match error {
        ResidencyError::LeftAlone { .. } => "name a process of the service itself",
        _ => "name another process of the service, which its owner or root may look at",
    }
}

/// The cure of a place that we may not write.
fn of_place(place: &str) -> String {
    format!("see what forbids {place}: planish doctor; a container must be given the right by its host")
}

/// The cure of a file whose folder is mounted read-only.
fn of_folder(file: &str) -> String {
    format!(
        "make it writable (findmnt --target {file} tells the mount); an apply without --persist needs no file"
    )
}

/// The cure of a file that is not there, or not what it was taken for: its ending says what was meant.
fn of_file(path: &Path) -> String {
    const PLAN: &str = "a plan file is what `planish plan PROFILE -o FILE` writes";
    const PROFILE: &str = "a profile is written as docs/profiles.md tells";
    match path.extension().and_then(OsStr::to_str) {
        Some("json") => PLAN.to_owned(),
        Some("toml") => format!("name a file that you may read; {PROFILE}"),
        _ => format!("a file is taken for a profile where its name ends in .toml: {PROFILE}; {PLAN}"),
    }
}

/// A word that a unit of systemd cannot hold.
fn of_word(what: &str) -> String {
    if what == "line" {
        return "have both files written anew: planish text publish PROFILE --timer DIR".to_owned();
    }
    if what == crate::weekly::OF_THE_SYSTEM {
        return "publish as a user, or keep pin, profile, store and repository out of the system's folders"
            .to_owned();
    }
    let whole = if what == "program" { "by its whole path, " } else { "" };
    format!("name a {what} {whole}without blanks and signs that systemd or a shell would take apart")
}

/// The cure of a lock that cannot be had.
fn of_lock(error: &LockError) -> String {
    match error {
        LockError::Held { .. } => "wait until it has finished, then try again".to_owned(),
        LockError::Open { path, .. } => format!("make {} writable for you", path.display()),
    }
}

/// The cure of an undo that would have to guess.
const BY_NAME: &str = "name the entry, which can be undone at once: planish log, then planish undo N (one whose reason \
                       is an arm is the trial's own, and without it the trial ends)";

/// The cure of pools that do not fit.
fn of_memory(knobs: &[KnobId]) -> String {
    let knobs: Vec<&str> = knobs.iter().map(KnobId::as_str).collect();
    format!("free memory, or plan the rest without them: planish plan PROFILE --exclude {}", knobs.join(","))
}

/// The cure of values that this host cannot have.
fn of_impossible(knobs: &[KnobId]) -> String {
    let knobs: Vec<&str> = knobs.iter().map(KnobId::as_str).collect();
    let knobs = knobs.join(",");
    format!(
        "want what this host can have, or plan the rest without them: planish plan PROFILE --exclude {knobs}"
    )
}

/// A wrong word is the user's; what this host alone does not have is refused.
fn of_decide(error: &DecideError) -> Exit {
    match error {
        DecideError::Catalogue(_)
        | DecideError::Word { .. }
        | DecideError::NoWord { .. }
        | DecideError::Pattern { .. }
        | DecideError::NoPattern { .. }
        | DecideError::OnePlace { .. } => Exit::Usage,
        DecideError::NoNode { .. }
        | DecideError::NoCpu { .. }
        | DecideError::NoIrq { .. }
        | DecideError::NoShare { .. }
        | DecideError::Part(_)
        | DecideError::Against { .. }
        | DecideError::Placement(_) => Exit::Refused,
    }
}

/// Entries in a row of words.
fn listed(entries: &[EntryId]) -> String {
    entries.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

impl From<CatalogueError> for PipelineError {
    fn from(error: CatalogueError) -> Self {
        Self::Catalogue(Arc::new(error))
    }
}

impl PipelineError {
    /// How the command ends.
    #[must_use]
    pub fn exit(&self) -> Exit {
        match self {
            Self::Decide(error) => of_decide(error),
            Self::Host(_)
            | Self::NotAFolder { .. }
            | Self::NoDataFolder { .. }
            | Self::Catalogue(_)
            | Self::Unreadable { .. }
            | Self::NotAPlan { .. }
            | Self::FileByName { .. }
            | Self::NotAProfile { .. }
            | Self::NoService { .. }
            | Self::NotForAUnit { .. }
            | Self::NotATime { .. }
            | Self::Process(
                RelocateError::Residency(
                    ResidencyError::NoProcess { .. }
                    | ResidencyError::Several { .. }
                    | ResidencyError::Thread { .. }
                    | ResidencyError::Ended { .. },
                )
                | RelocateError::Ended { .. },
            )
            | Self::Journal(JournalError::NoEntry { .. }) => Exit::Usage,
            Self::Edited { .. }
            | Self::Forged { .. }
            | Self::Elsewhere { .. }
            | Self::Moved { .. }
            | Self::Unshown { .. }
            | Self::NoMemory { .. }
            | Self::BeyondNextBoot { .. }
            | Self::Impossible { .. }
            | Self::NotWritable { .. }
            | Self::ReadOnlyFolder { .. }
            | Self::OtherHost { .. }
            | Self::Before(_)
            | Self::Deed(_)
            | Self::ForeignFile { .. }
            | Self::Unborne(_)
            | Self::BootLoader { .. }
            | Self::Once { .. }
            | Self::InsteadOf { .. }
            | Self::Systemd { .. }
            | Self::BootFile { .. }
            | Self::Linked { .. }
            | Self::Installed { .. }
            | Self::Unconfirmed { .. }
            | Self::NotAsShown { .. }
            | Self::GoneSince { .. }
            | Self::Act(_)
            | Self::Lock(_)
            | Self::TrialAtWork { .. }
            | Self::Relocate { .. }
            | Self::Program { .. }
            | Self::Guarded(_)
            | Self::Process(_)
            | Self::Record(_)
            | Self::Journal(_)
            | Self::Watch(_)
            | Self::RootsJournal { .. }
            | Self::ServiceMaps { .. }
            | Self::Postgres { .. } => Exit::Refused,
            Self::JournalHalfWay { restored: true, .. } | Self::NotConfirmed { restored: true, .. } => {
                Exit::FailedRestored
            }
            Self::JournalHalfWay { restored: false, .. } | Self::NotConfirmed { restored: false, .. } => {
                Exit::FailedNotRestored
            }
        }
    }

    /// The first of several refusals. Of files that are in the way all are told: who moves one away is not to learn of
    /// the next one by the next apply.
    pub(crate) fn first(refusals: Vec<Self>) -> Result<(), Self> {
        let is_foreign = |error: &Self| matches!(error, Self::ForeignFile { .. });
        let mut refusals = refusals.into_iter();
        let Some(mut first) = refusals.next() else { return Ok(()) };
        if let Self::ForeignFile { others, .. } = &mut first {
            *others = refusals.filter(is_foreign).collect();
        }
        Err(first)
    }

    /// What to do about it, most likely cure first.
    #[must_use]
    pub fn hints(&self) -> Vec<String> {
        let hint = match self {
            Self::Moved { .. } | Self::Elsewhere { .. } | Self::Edited { .. } | Self::Forged { .. } => {
                "make the plan again: planish plan PROFILE -o FILE".to_owned()
            }
            Self::Unshown { .. } => UNSHOWN.to_owned(),
            _ if self.is_for_root() && !rustix::process::geteuid().is_root() => self.of_rights(),
            Self::NotWritable { place, .. } => of_place(place),
            Self::ReadOnlyFolder { file, .. } => of_folder(file),
            Self::OtherHost { .. } => foreign::OTHER_HOST.to_owned(),
            Self::Unborne(unborne) => unborne.cure(),
            Self::BootLoader { cure, .. } => of_loader(cure),
            Self::Once { cure, .. }
            | Self::Relocate { cure, .. }
            | Self::InsteadOf { cure, .. }
            | Self::Program { cure, .. } => cure.clone(),
            Self::Guarded(refusal) => refusal.cure(),
            Self::Systemd { verb, .. } => format!("type it, to see why: systemctl {verb}"),
            Self::BootFile { path, source } => of_boot_file(path, source),
            Self::NoMemory { knobs, .. } => of_memory(knobs),
            Self::BeyondNextBoot { knobs, .. } | Self::Impossible { knobs, .. } => of_impossible(knobs),
            Self::Unconfirmed { unconfirmed, .. } => unconfirmed.cure(),
            Self::NotAsShown { path, entry } => foreign::of_unshown(path, *entry),
            Self::GoneSince { entry, .. } => foreign::of_gone(*entry),
            Self::Installed { entry, .. } => format!("take that one back first: planish undo {entry}"),
            Self::NotATime { .. } => calendar::CURE.to_owned(),
            Self::NotForAUnit { what, .. } => of_word(what),
            Self::ForeignFile { cure, others, .. } => return of_files(cure, others),
            Self::Linked { .. } => LINKED.to_owned(),
            Self::Act(_) => NOT_WRITABLE.to_owned(),
            Self::Lock(error) => of_lock(error),
            Self::TrialAtWork { .. } => BY_NAME.to_owned(),
            Self::Process(_) | Self::Record(_) => self.of_move(),
            Self::Journal(error) => error.cure(),
            Self::JournalHalfWay { entry, restored: false, source } => {
                format!("{}, then: planish undo {entry}", source.cure())
            }
            Self::JournalHalfWay { source, .. } => source.cure(),
            Self::NotConfirmed { restored: false, entry, .. } => {
                format!("mend that, then once more: planish confirm; or take all of it back: planish undo {entry}")
            }
            Self::NotConfirmed { source, .. } => {
                return source.hints().into_iter().chain(["then: planish confirm".to_owned()]).collect();
            }
            Self::Watch(_) => "apply without --confirm, or look why processes cannot be started".to_owned(),
            Self::NoService { .. } => "name a process id, or a name as `ps -C NAME` finds it".to_owned(),
            Self::NotAPlan { .. }
            | Self::Unreadable { .. }
            | Self::FileByName { .. }
            | Self::NotAProfile { .. } => self.of_source(),
            Self::Catalogue(error) => error.cure(),
            Self::Decide(error) => error.cure(),
            Self::Before(error) => foreign::of_unread(error),
            Self::Deed(_) => "see what this kernel has: planish knobs".to_owned(),
            Self::ServiceMaps { source, .. } => of_maps(source).to_owned(),
            Self::NoDataFolder { .. } => "psql -Atc 'SHOW data_directory' tells that of a server".to_owned(),
            Self::Postgres { .. } => {
                "name its program with --postgres-program, or size the server that runs: planish size postgres"
                    .to_owned()
            }
            Self::RootsJournal { .. } => "sudo planish ...".to_owned(),
            Self::NotAFolder { .. } => "name a folder: it is made where there is none".to_owned(),
            Self::Host(_) => "planish host record DIR makes a folder that can be read".to_owned(),
        };
        vec![hint]
    }

    /// The error with its causes on one line, for a row of a report.
    pub(crate) fn in_full(&self) -> String {
        planish_act::in_full(self)
    }

    /// The cure of a name or file that is no source of a plan.
    fn of_source(&self) -> String {
        match self {
            Self::FileByName { name } => {
                format!("with a slash it is that file: {}", quoted(&format!("./{name}")))
            }
            Self::NotAProfile { .. } => {
                "name a profile, or a file of one: docs/profiles.md tells how to write it".to_owned()
            }
            Self::Unreadable { path, .. } | Self::NotAPlan { path, .. } => of_file(path),
            _ => unreachable!("these are the errors of sources"),
        }
    }

    /// The cure of what keeps a process from being moved.
    fn of_move(&self) -> String {
        match self {
            Self::Process(error) => error.cure(),
            _ => "make room in the state folder, or name another: --state DIR".to_owned(),
        }
    }

    /// The cure where an ordinary user lacks a right. `su` and `setpriv` leave HOME as it was, and with it the folder
    /// that lock and journal are looked for in.
    fn of_rights(&self) -> String {
        const AS_ROOT: &str = "run it as root: sudo planish ...";
        let path = match self {
            Self::Lock(LockError::Open { path, .. }) | Self::Journal(JournalError::Storage { path, .. }) => {
                path
            }
            _ => return AS_ROOT.to_owned(),
        };
        match state::foreign_home(path) {
            Some(home) => format!(
                "HOME is {}, which is not yours: name your own, HOME=DIR planish ...; or {AS_ROOT}",
                home.display()
            ),
            None => AS_ROOT.to_owned(),
        }
    }

    /// Whether an ordinary user lacks the right that root has.
    pub(crate) fn is_for_root(&self) -> bool {
        let denied = |source: &io::Error| source.kind() == io::ErrorKind::PermissionDenied;
        match self {
            Self::NotWritable { .. } | Self::ServiceMaps { .. } => true,
            Self::Lock(LockError::Open { source, .. })
            | Self::Journal(JournalError::Storage { source, .. })
            | Self::Unreadable { source, .. } => denied(source),
            Self::Before(error) => denied(&error.source),
            _ => false,
        }
    }
}

/// The cures of files that are in the way: one undo may be the way out of several.
fn of_files(cure: &str, others: &[PipelineError]) -> Vec<String> {
    let of_others = others.iter().flat_map(PipelineError::hints);
    let mut all: Vec<String> = std::iter::once(cure.to_owned()).chain(of_others).collect();
    all.dedup();
    all
}

#[cfg(test)]
mod tests;
