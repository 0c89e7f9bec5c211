//! One host, one state folder, one catalogue: what every command is given.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use planish_act::{LiveSink, LookingSink, ModelSink, Sink};
use planish_host::Host;
use planish_journal::{
    Author, FileStorage, HostLock, Journal, JournalError, Ledger, LockError, Storage, read,
};
use planish_model::{
    BootLoader, Catalogue, CatalogueError, Entry, EntryId, Knob, KnobId, Observation, Plan, Profile, Step,
    place,
};
use planish_observe::GivenPools;
use tracing::info_span;

use crate::error::PipelineError;
use crate::gone;
use crate::state::{self, Folders};

/// What a session is opened with.
#[derive(Clone, Debug, Default)]
pub struct SessionOptions {
    /// A recorded host (`--root`); the live one without it.
    pub root: Option<PathBuf>,
    /// State and configuration below this folder (`--state`); the usual places without it.
    pub state: Option<PathBuf>,
    /// A fixed time in seconds since 1970, for tests.
    pub clock: Option<u64>,
    /// The command line or trial, for the journal.
    pub command: String,
}

/// Where crash tests put themselves: between the pipeline and the disk, and between the pipeline and the host.
pub trait Seams {
    /// The storage of the journal, or something around it.
    fn storage(&self, storage: Box<dyn Storage>) -> Box<dyn Storage> {
        storage
    }

    /// The way to write the host, or something around it.
    fn sink<'a>(&'a self, sink: Box<dyn Sink + 'a>) -> Box<dyn Sink + 'a> {
        sink
    }

    /// The program that keeps watch over an unconfirmed entry, where it is not the usual one.
    fn watcher(&self, _entry: EntryId) -> Option<Command> {
        None
    }
}

/// Nothing in between.
struct Direct;

impl Seams for Direct {}

/// A trial that may have values on the host: see [`Session::begin_trial`].
#[derive(Debug)]
pub struct TrialAtWork(#[expect(dead_code, reason = "held, never read")] HostLock);

/// How long a command of a trial whose arms are boots waits for another planish to finish: at a boot others are started
/// beside it, and nobody is there to type it again.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// How long a trial waits for an undo that is just looking whether there is one.
const TRIAL_PATIENCE: Duration = Duration::from_millis(200);

/// One host, one state folder, one catalogue.
pub struct Session {
    pub(crate) options: SessionOptions,
    host: Host,
    folders: Folders,
    catalogue: Catalogue,
    /// Why the user's own rows are not in the catalogue. Undo does without them.
    unsound: Option<Arc<CatalogueError>>,
    seams: Box<dyn Seams>,
    /// Whether every write waits for another planish, by [`Self::wait_for_others`].
    is_patient: AtomicBool,
}

impl Session {
    /// Opens the host and loads the catalogue with the user's own rows. Writes nothing.
    ///
    /// # Errors
    /// No such recorded host. Wrong rows of the user are told by the commands that need them, so that undo
    /// still works.
    pub fn open(options: SessionOptions) -> Result<Self, PipelineError> {
        Self::with_seams(options, Box::new(Direct))
    }

    /// A session of a crash test.
    ///
    /// # Errors
    /// As [`Self::open`].
    #[doc(hidden)]
    pub fn with_seams(options: SessionOptions, seams: Box<dyn Seams>) -> Result<Self, PipelineError> {
        let _stage = info_span!("open").entered();
        let host = match &options.root {
            Some(folder) => Host::open_whole(folder)?,
            None => Host::live(),
        };
        let folders = Folders::of(&options)?;
        let (catalogue, unsound) = match state::catalogue(&folders) {
            Ok(catalogue) => (catalogue, None),
            Err(error) => (Catalogue::embedded().map_err(Arc::new)?, Some(Arc::new(error))),
        };
        Ok(Self { options, host, folders, catalogue, unsound, seams, is_patient: AtomicBool::new(false) })
    }

    /// The embedded catalogue and the user's own rows, if those are sound.
    #[must_use]
    pub fn catalogue(&self) -> &Catalogue {
        &self.catalogue
    }

    /// The host.
    #[must_use]
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// What lines and programs of others give the pools of huge pages of the host, read when that is asked for.
    pub(crate) fn given_pools(&self) -> GivenPools<'_> {
        GivenPools::of(&self.host, &self.catalogue)
    }

    /// The folder of the journal and the proofs.
    #[must_use]
    pub fn state_folder(&self) -> &std::path::Path {
        &self.folders.state
    }

    /// The folder of what root applied, where we are an ordinary user who may not look into it: root's own, or that of
    /// this user where it cannot be read either (a `HOME` that is still root's).
    #[must_use]
    pub fn hidden_state(&self) -> Option<&std::path::Path> {
        self.folders.hidden()
    }

    /// What names a profile for root, too: its file, where it is one of this user's own.
    #[must_use]
    pub fn named_for_root(&self, profile: &str) -> String {
        let own = self.folders.own_profile(profile);
        own.map_or_else(|| profile.to_owned(), |file| file.display().to_string())
    }

    /// The folder of our own journal, where this user may not read it: what is told then knows nothing of any entry.
    #[must_use]
    pub fn unread_state(&self) -> Option<&std::path::Path> {
        self.folders.unread()
    }

    /// Refuses to call nothing what we only may not see: no entries of ours, and a journal that is root's.
    pub(crate) fn refuse_hidden(&self) -> Result<(), PipelineError> {
        match self.hidden_state() {
            Some(folder) if self.ledger()?.entries.is_empty() => {
                Err(PipelineError::RootsJournal { folder: folder.to_owned() })
            }
            _ => Ok(()),
        }
    }

    /// Reads the host, once.
    #[must_use]
    pub fn observe(&self) -> Observation {
        let _stage = info_span!("observe").entered();
        planish_observe::observe(&self.host, &self.catalogue)
    }

    /// The same for a profile: with what its placement asks of the machine, where it has one.
    #[must_use]
    pub fn observe_for(&self, profile: &Profile) -> Observation {
        let mut observation = self.observe();
        self.observe_more(profile, &mut observation);
        observation
    }

    /// Reads of the host, once, what a plan of a profile asks for: its knobs and those that are coupled with them, and
    /// no facts. What a placement needs is known only when it is solved: then all of it.
    pub(crate) fn observe_to_plan(&self, profile: &Profile) -> Observation {
        if profile.placement.is_some() || self.wants_of_caches(profile) {
            return self.observe_for(profile);
        }
        let mut observation =
            self.observe_some(profile.want.keys().chain(&planish_decide::beside(profile.want.keys())));
        self.observe_more(profile, &mut observation);
        observation
    }

    /// Reads of the host what a plan names, once, to compare it with the plan.
    pub(crate) fn observe_planned(&self, plan: &Plan) -> Observation {
        let steps = plan.steps.iter().chain(&plan.boot).map(|step| &step.knob);
        self.observe_some(steps.chain(plan.skipped.iter().map(|row| &row.knob)))
    }

    /// Reads of the host what steps are held against that nobody planned together: their knobs, and what bounds them.
    pub(crate) fn observe_steps(&self, steps: &[Step]) -> Observation {
        let beside = planish_decide::beside(steps.iter().map(|step| &step.knob));
        self.observe_some(steps.iter().map(|step| &step.knob).chain(&beside))
    }

    /// The same of modes that hold a host to a limit, and of those limits.
    pub(crate) fn observe_modes(&self) -> Observation {
        let modes = self.catalogue.modes();
        self.observe_some(
            modes.flat_map(|(mode, enforces)| std::iter::once(&mode.id).chain(&enforces.limits)),
        )
    }

    fn observe_some<'a>(&self, knobs: impl Iterator<Item = &'a KnobId>) -> Observation {
        let _stage = info_span!("observe").entered();
        let wanted = self.catalogue.with_coupled(knobs);
        let mut observation =
            planish_observe::observe_some(&self.host, &self.catalogue, |knob| wanted.contains(&knob.id));
        self.observe_file_limits(wanted.iter(), &mut observation);
        observation
    }

    /// What programs are given of open files, for whoever sets how many one may have at all.
    pub(crate) fn observe_file_limits<'a>(
        &self,
        mut knobs: impl Iterator<Item = &'a KnobId>,
        observation: &mut Observation,
    ) {
        if observation.demand.file_limits.is_none() && knobs.any(planish_decide::asks_of_file_limits) {
            observation.demand.file_limits = Some(planish_observe::file_limits(&self.host));
        }
    }

    /// How the host is booted, without its knobs and facts.
    pub(crate) fn boot_loader(&self) -> BootLoader {
        self.observe_some(std::iter::empty()).boot
    }

    /// Whether a profile wants settings of units.
    fn wants_of_units(&self, profile: &Profile) -> bool {
        profile.want.keys().any(|id| self.catalogue.knob(id).is_ok_and(Knob::is_own_file))
    }

    /// Whether a profile wants to share out the caches.
    fn wants_of_caches(&self, profile: &Profile) -> bool {
        let is_share = |knob: &Knob| knob.path.starts_with(place::RESCTRL);
        let by_placement = || {
            let services = profile.placement.iter().flat_map(|placement| &placement.service);
            services.into_iter().any(|service| service.cache.is_some())
        };
        profile.want.keys().any(|id| self.catalogue.knob(id).is_ok_and(is_share)) || by_placement()
    }

    /// Whether a profile makes partitions of groups itself, or limits the CPUs of parts of the system.
    fn wants_of_groups(&self, profile: &Profile) -> bool {
        let is_limit =
            |id: &KnobId| self.catalogue.knob(id).is_ok_and(|knob| knob.r#type.is_cpus_of_a_unit());
        profile.want.keys().any(|id| id.as_str() == "cpuset.partition" || is_limit(id))
    }

    /// Reads what only a profile asks for: units whose settings it wants, and the machine that it places services on.
    pub(crate) fn observe_more(&self, profile: &Profile, observation: &mut Observation) {
        self.observe_file_limits(profile.want.keys(), observation);
        let caches = self.wants_of_caches(profile);
        let groups = self.wants_of_groups(profile);
        let threads = planish_decide::asks_of_threads(profile);
        if !self.wants_of_units(profile) && profile.placement.is_none() && !caches && !groups && !threads {
            return;
        }
        let _stage = info_span!("observe").entered();
        if caches {
            observation.caches = Some(planish_observe::caches(&self.host));
        }
        planish_observe::unit_settings(&self.host, &self.catalogue, &profile.want, observation);
        if profile.placement.is_none() && !groups && !threads {
            return;
        }
        let services = profile.placement.iter().flat_map(|placement| &placement.service);
        let units: Vec<&str> = services.map(|service| service.unit.as_str()).collect();
        let machine = planish_observe::machine(&self.host, &units);
        // Who places a unit that is not there is told which one may be meant.
        if machine.units.len() < units.len() {
            observation.services = planish_observe::services(&self.host).into_iter().collect();
        }
        observation.machine = Some(machine);
    }

    /// The catalogue for commands that must not go on without the user's own rows.
    ///
    /// # Errors
    /// What is wrong with one of them, with file, line and column.
    pub fn sound_catalogue(&self) -> Result<&Catalogue, PipelineError> {
        match &self.unsound {
            Some(error) => Err(PipelineError::Catalogue(Arc::clone(error))),
            None => Ok(&self.catalogue),
        }
    }

    /// The way to write the host.
    pub(crate) fn sink(&self) -> Result<Box<dyn Sink + '_>, PipelineError> {
        let sink: Box<dyn Sink + '_> =
            if self.host.is_live() { Box::new(LiveSink) } else { Box::new(ModelSink::new(&self.host)?) };
        Ok(self.seams.sink(sink))
    }

    /// The way to look at the host for what a write would come to: on every host, for every user. It writes nothing.
    pub(crate) fn looking_sink(&self) -> LookingSink<'_> {
        LookingSink::new(&self.host)
    }

    pub(crate) fn watcher(&self, entry: EntryId) -> Option<Command> {
        self.seams.watcher(entry)
    }

    /// The present time in seconds since 1970.
    pub(crate) fn now(&self) -> u64 {
        let machine = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        self.options.clock.unwrap_or_else(machine)
    }

    /// From here on every write of this session waits some seconds for another planish to finish, and is not refused at
    /// once: a trial whose arms are boots goes on by itself, with nobody there to type anything again.
    pub fn wait_for_others(&self) {
        self.is_patient.store(true, Ordering::Relaxed);
    }

    /// How long a write waits that would wait so long by itself.
    fn patience(&self, own: Duration) -> Duration {
        if self.is_patient.load(Ordering::Relaxed) { own.max(PATIENCE) } else { own }
    }

    /// The journal for writing, and with it the host-wide lock.
    pub(crate) fn writer(&self, patience: Duration) -> Result<Journal, PipelineError> {
        self.open_journal(patience, Journal::open)
    }

    /// The same for an undo that must go on with what can still be read of a damaged journal, and with one that can
    /// be read and not written. What is `known` of an entry stands for an intent that is lost.
    pub(crate) fn salvager(&self, patience: Duration, known: &[Entry]) -> Result<Journal, PipelineError> {
        let open = |storage, lock, author| Journal::open_or_salvage(storage, lock, author, known);
        self.open_journal(patience, open).or_else(|error| match error {
            PipelineError::Journal(JournalError::Storage {
                what: "create" | "cut" | "keep aside", ..
            }) => self.unrecorded(patience, known, error),
            error => Err(error),
        })
    }

    /// The journal for an undo that nothing can record; the first error, where it cannot be read either.
    fn unrecorded(
        &self,
        patience: Duration,
        known: &[Entry],
        error: PipelineError,
    ) -> Result<Journal, PipelineError> {
        let storage = match FileStorage::look(&self.folders.state) {
            Ok(storage) if storage.path().is_file() => storage,
            _ => return Err(error),
        };
        let lock = HostLock::acquire(&self.folders.lock, self.patience(patience))?;
        let storage = self.seams.storage(Box::new(storage));
        let journal = Journal::open_unrecorded(storage, lock, self.author(), known)?;
        self.refuse_other_host(journal.ledger().entries.iter().filter(|entry| entry.is_open()))?;
        Ok(journal)
    }

    /// Whether nothing was ever applied here, and nobody is at it: then there is nothing to take back or to confirm,
    /// and no journal is made for that. An empty one of root would hide from all others that nothing was applied.
    pub(crate) fn is_untouched(&self) -> Result<bool, PipelineError> {
        self.folders.refuse_links()?;
        let is_there = self.folders.state.join(FileStorage::FILE_NAME).try_exists();
        let is_locked = || {
            let look = || HostLock::look(&self.folders.lock);
            self.folders.lock.exists() && matches!(look(), Err(LockError::Held { .. }))
        };
        Ok(is_there.is_ok_and(|is_there| !is_there) && !is_locked())
    }

    fn author(&self) -> Author {
        Author {
            boot_id: self.host.boot_id(),
            who: state::who(&self.host),
            host: self.host.lasting_id(),
            clock: self.options.clock,
        }
    }

    fn open_journal(
        &self,
        patience: Duration,
        open: impl FnOnce(Box<dyn Storage>, HostLock, Author) -> Result<Journal, JournalError>,
    ) -> Result<Journal, PipelineError> {
        let _stage = info_span!("journal").entered();
        self.folders.refuse_links()?;
        self.folders.make_ways()?;
        let lock = HostLock::acquire(&self.folders.lock, self.patience(patience))?;
        let storage = FileStorage::create(&self.folders.state)
            .map_err(|(path, source)| JournalError::Storage { what: "create", path, source })?;
        let journal = open(self.seams.storage(Box::new(storage)), lock, self.author())?;
        self.refuse_other_host(journal.ledger().entries.iter().filter(|entry| entry.is_open()))?;
        Ok(journal)
    }

    /// Refuses entries of another host: what they left there is nothing that is on this one, and a value here that is
    /// by chance what they had left would be taken for theirs. An entry of this boot is of this machine, whatever
    /// became of its id since; but a boot of recordings, which have the same one, tells nothing. One of another boot is
    /// refused without files, too: whether a reboot took its values, or they are on a machine that runs, cannot be told
    /// from here.
    pub(crate) fn refuse_other_host<'a>(
        &self,
        entries: impl Iterator<Item = &'a Entry>,
    ) -> Result<(), PipelineError> {
        let Some(here) = self.host.lasting_id() else { return Ok(()) };
        let boot_id = (!self.host.has_made_boot_id()).then(|| self.host.boot_id());
        let is_other = |entry: &&Entry| {
            entry.host.as_ref().is_some_and(|host| *host != here) && Some(&entry.boot_id) != boot_id.as_ref()
        };
        let entries: Vec<EntryId> = entries.filter(is_other).map(|entry| entry.id).collect();
        if entries.is_empty() {
            return Ok(());
        }
        Err(PipelineError::OtherHost { path: self.folders.state.join(FileStorage::FILE_NAME), entries })
    }

    /// Says that a trial has values on the host, between its writes too, until the answer is dropped or the
    /// process ends in any way: what it applied is not the newest entry of whoever types `undo` meanwhile, and no
    /// other trial may set it. `None` where no lock can be made.
    ///
    /// # Errors
    /// Another trial says so already; its process is named.
    pub fn begin_trial(&self) -> Result<Option<TrialAtWork>, PipelineError> {
        match HostLock::acquire(&self.folders.trial, TRIAL_PATIENCE) {
            Ok(lock) => Ok(Some(TrialAtWork(lock))),
            Err(LockError::Open { .. }) => Ok(None),
            Err(held @ LockError::Held { .. }) => Err(held.into()),
        }
    }

    /// The process of a trial that has values on the host at this moment; `None` where there is none. One that cannot
    /// be told is 0.
    #[must_use]
    pub fn trial_at_work(&self) -> Option<i32> {
        match self.refuse_trial() {
            Err(PipelineError::TrialAtWork { pid }) => Some(pid.unwrap_or(0)),
            _ => None,
        }
    }

    /// Whether another planish writes this host at this moment: what it has begun is half way, and no kill was.
    pub(crate) fn is_written_now(&self) -> bool {
        let lock = &self.folders.lock;
        lock.exists() && matches!(HostLock::look(lock), Err(LockError::Held { .. }))
    }

    /// Refuses to guess what to undo while a trial has values on the host.
    pub(crate) fn refuse_trial(&self) -> Result<(), PipelineError> {
        if !self.folders.trial.exists() {
            return Ok(());
        }
        match HostLock::look(&self.folders.trial) {
            Err(LockError::Held { pid, .. }) => Err(PipelineError::TrialAtWork { pid }),
            // The journal's own lock was taken before: a file that cannot be opened guards nothing.
            Ok(()) | Err(LockError::Open { .. }) => Ok(()),
        }
    }

    /// The journal as it is, without the lock; an empty one where [`Self::hidden_state`] names its folder.
    pub(crate) fn ledger(&self) -> Result<Ledger, PipelineError> {
        let _stage = info_span!("journal").entered();
        self.folders.refuse_links()?;
        let storage = match FileStorage::look(&self.folders.state) {
            // Who only looks goes on without it and is told so; who writes opens it for writing, and is refused.
            Err((_, source)) if state::is_denied(&source) => return Ok(Ledger::default()),
            found => found.map_err(|(path, source)| JournalError::Storage { what: "read", path, source })?,
        };
        let mut ledger = read(&storage)?;
        self.refuse_other_host(ledger.entries.iter().filter(|entry| entry.is_open()))?;
        gone::show(&mut ledger.entries, &self.host.boot_id());
        Ok(ledger)
    }

    /// The entries of a damaged journal as far as its sound lines tell; none where it cannot be read at all.
    pub(crate) fn sound_entries(&self) -> Vec<Entry> {
        let storage = FileStorage::look(&self.folders.state).ok();
        storage.and_then(|storage| planish_journal::sound_entries(&storage).ok()).unwrap_or_default()
    }

    /// All entries, those of archived journals too.
    pub(crate) fn history(&self) -> Result<Vec<Entry>, PipelineError> {
        self.folders.refuse_links()?;
        let mut entries = planish_journal::history(&self.folders.state)?;
        // A boot of this host took nothing from another one.
        if self.refuse_other_host(entries.iter().filter(|entry| entry.is_open())).is_ok() {
            gone::show(&mut entries, &self.host.boot_id());
        }
        Ok(entries)
    }

    /// The entries as they are in this boot: see [`planish_model::in_boot`].
    pub(crate) fn in_boot(&self, entries: &[Entry]) -> Vec<Entry> {
        gone::in_boot(entries, &self.host.boot_id(), &self.host, &|place| self.host.read(place).ok())
    }

    /// Entries that hold run-time values in this boot, also those that a file of ours brought back.
    pub(crate) fn open_entries(&self) -> Result<Vec<Entry>, PipelineError> {
        Ok(self.holding(&self.ledger()?.entries))
    }

    /// The same of these entries.
    pub(crate) fn holding(&self, entries: &[Entry]) -> Vec<Entry> {
        let boot = self.host.boot_id();
        let mut holding = self.in_boot(entries);
        holding.retain(|entry| entry.is_open() && entry.boot_id == boot);
        holding
    }
}
