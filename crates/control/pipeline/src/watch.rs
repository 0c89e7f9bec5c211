//! The dead-man timer of `apply --confirm`: if you cut yourself off, the host comes back by itself.
//!
//! The watcher is a process of its own that neither our end nor our terminal's can touch. It is started after the
//! intent is on disk and before the first write, sleeps on a timer that also runs while the machine is
//! suspended, and then undoes the entry if nobody has confirmed it. It needs nothing but the journal, so that it
//! also takes back what an apply left that was killed half way. Where systemd is PID 1 it is a transient unit:
//! a process in the session of a user would end with it.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use planish_journal::{FileStorage, HostLock, Journal, JournalError, LockError};
use planish_model::{Entry, EntryId, EntryState, EntryStep, Outcome};
use planish_sys::detach::{Alarm, spawn_detached, start_apart};
use rustix::mm::{MlockAllFlags, mlockall};

use crate::error::PipelineError;
use crate::session::Session;
use crate::undo::{Manner, Undone, undo_selected};

/// The hidden command that [`keep_watch`] is reached by.
pub const WATCH_COMMAND: &str = "watch-confirm";
/// How long the watcher waits for another planish to finish: it has nothing else to do, and a trial that holds the
/// host for an hour is no reason to leave a cut-off operator alone.
const PATIENCE: Duration = Duration::MAX;

/// How long it rests after an attempt at the deadline that failed.
const RETRY: Duration = Duration::from_secs(5);

/// How long it rests at most, when what the kernel refuses is tried again, each time after twice as long: then it has
/// tried for an hour and a half, and holds memory for a place that does not come back.
const RETRY_MAX: Duration = Duration::from_secs(3600);

/// How often the watcher looks whether it is still needed: a stat, and the journal only when it has changed.
const LOOK: Duration = Duration::from_secs(5);

/// Starts the watcher of an entry that must be confirmed.
pub(crate) fn start(session: &Session, journal: &Journal, id: EntryId) -> Result<(), PipelineError> {
    let entry = journal.ledger().entry(id).expect("it was begun just now");
    if entry.confirm_by.is_none() {
        return Ok(());
    }
    // Of a journal that is gone, which had an entry of this number.
    let _ = std::fs::remove_file(file_of(session, id));
    let mut command = match session.watcher(id) {
        Some(command) => command,
        None => own_command(session, id).map_err(PipelineError::Watch)?,
    };
    let unit = session.host().is_live().then(|| format!("planish-confirm-{id}-{}", std::process::id()));
    let started = match unit {
        Some(unit) => start_apart(&mut command, &unit),
        None => spawn_detached(&mut command),
    };
    started.map_err(PipelineError::Watch)
}

/// This program, told to watch.
fn own_command(session: &Session, id: EntryId) -> io::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg(WATCH_COMMAND).arg(id.to_string());
    for (option, folder) in [("--root", &session.options.root), ("--state", &session.options.state)] {
        if let Some(folder) = folder {
            command.arg(option).arg(std::path::absolute(folder)?);
        }
    }
    // Held by the helper, a folder could not be unmounted.
    command.current_dir("/");
    Ok(command)
}

/// Waits until the deadline of an entry, then undoes it unless it was confirmed. The watcher's whole life, which ends
/// soon after a confirm: it holds memory, and is exempt from the OOM killer.
///
/// # Errors
/// The journal knows no such entry, or a newer planish wrote it. Nothing else ends the watch: there is nobody whom an
/// error would reach, least of all the one who was cut off.
pub fn keep_watch(session: &Session, id: EntryId) -> Result<Option<Undone>, PipelineError> {
    survive();
    let _alive = Alive::tell(session, id);
    let entry = find_in_time(session, id)?;
    let Some(deadline) = entry.confirm_by else { return Ok(None) };
    let left = Duration::from_secs(deadline.saturating_sub(session.now()));
    let failed = |error| PipelineError::Watch(io::Error::other(error));
    let alarm = Alarm::after(left).map_err(failed)?;
    let mut seen = None;
    while !alarm.wait(Some(LOOK)).map_err(failed)? {
        let now = stamp(session);
        if now != seen && is_settled(session, &entry) {
            return Ok(None);
        }
        seen = now;
    }
    insist(session, &entry)
}

/// A lock that a watcher holds for as long as it lives, so that others can tell. It guards nothing, and a state folder
/// that takes no file ends no watch.
struct Alive {
    file: PathBuf,
    lock: Option<HostLock>,
}

impl Alive {
    fn tell(session: &Session, id: EntryId) -> Self {
        let file = file_of(session, id);
        Self { lock: HostLock::acquire(&file, Duration::ZERO).ok(), file }
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        if self.lock.take().is_some() {
            let _ = std::fs::remove_file(&self.file);
        }
    }
}

fn file_of(session: &Session, id: EntryId) -> PathBuf {
    session.state_folder().join(format!("watch-{id}.lock"))
}

/// Whether the watcher of an entry has ended before its time. `None` where nobody can tell: it has not begun, or only
/// root may ask.
pub(crate) fn is_gone(session: &Session, id: EntryId) -> Option<bool> {
    let file = file_of(session, id);
    if !file.exists() {
        return None;
    }
    match HostLock::look(&file) {
        Ok(()) => Some(true),
        Err(LockError::Held { .. }) => Some(false),
        Err(LockError::Open { .. }) => None,
    }
}

/// Takes an unconfirmed entry back, however often that fails. What could be taken back and not recorded (a disk that
/// went read-only) is taken once more: the pools wait for the record. So is what the kernel refused to take back, and
/// what the host would not bear at that moment.
fn insist(session: &Session, entry: &Entry) -> Result<Option<Undone>, PipelineError> {
    let (mut take, mut pause): (Take, Duration) = (take_unconfirmed, RETRY);
    loop {
        match take(session, entry) {
            Ok(Some(undone)) if !undone.recorded => {}
            Ok(Some(undone)) if has_refused(&undone) && pause <= RETRY_MAX => {
                take = take_refused;
                std::thread::sleep(pause - RETRY);
                pause *= 2;
            }
            Err(error) if !is_for_ever(&error) => {}
            end => return end,
        }
        std::thread::sleep(RETRY);
    }
}

/// One way to take an entry back; `None` where nothing of it is left to be taken.
type Take = fn(&Session, &Entry) -> Result<Option<Undone>, PipelineError>;

/// Whether a value was refused, by the kernel or since the host would not bear it.
fn has_refused(undone: &Undone) -> bool {
    let of_entry = |((_, outcomes), before): (&(EntryId, Vec<Outcome>), &Entry)| {
        let of = |place: &str| before.steps.iter().find(|step| step.place == place);
        outcomes.iter().any(|outcome| of(&outcome.place).is_some_and(|step| step.is_refused(outcome)))
    };
    undone.entries.iter().zip(&undone.before).any(of_entry)
}

/// Takes back what was refused at the deadline. The entry is open as one that `planish undo` left so: an
/// operator who is there by now may have taken it back, or applied something over it.
fn take_refused(session: &Session, entry: &Entry) -> Result<Option<Undone>, PipelineError> {
    let is_refused = |step: &EntryStep| step.undone.as_ref().is_some_and(|undone| step.is_refused(undone));
    let still = |journal: &Journal| {
        let open = journal.ledger().entry(entry.id).filter(|open| is_same(open, entry) && open.is_open());
        Ok(open
            .filter(|entry| entry.steps.iter().any(is_refused))
            .map(|entry| entry.id)
            .into_iter()
            .collect())
    };
    let undone = undo_selected(session, unattended(entry), still)?;
    Ok((!undone.entries.is_empty()).then_some(undone))
}

/// Whether an error is no matter of the moment.
fn is_for_ever(error: &PipelineError) -> bool {
    use JournalError::{Newer, NoEntry};
    matches!(error, PipelineError::Journal(NoEntry { .. } | Newer { .. }))
}

/// What tells that the journal has changed: its number, its length and its time. `None` where there is none to see.
fn stamp(session: &Session) -> Option<(u64, u64, i64, i64)> {
    let found = std::fs::metadata(session.state_folder().join(FileStorage::FILE_NAME)).ok()?;
    Some((found.ino(), found.len(), found.mtime(), found.mtime_nsec()))
}

/// Whether an entry needs no watcher any more: it was confirmed, or undone to its end. A journal that cannot be read at
/// this moment says nothing: the deadline will ask again. One that was begun anew since has another entry by
/// its number.
fn is_settled(session: &Session, watched: &Entry) -> bool {
    let id = watched.id;
    let is_done = |entry: &Entry| !is_same(entry, watched) || !must_go(entry);
    session.ledger().is_ok_and(|ledger| ledger.is_archived(id) || ledger.entry(id).is_some_and(is_done))
}

/// Whether an entry of the journal is the one that is watched, by more than its number.
fn is_same(entry: &Entry, watched: &Entry) -> bool {
    entry.id == watched.id
        && entry.at == watched.at
        && entry.boot_id == watched.boot_id
        && entry.plan == watched.plan
}

/// What the watcher of an entry does at its deadline: undoes it unless it was confirmed, or was undone to its end. The
/// entry is as it was when the watch began: a damaged journal may have lost it since.
///
/// What is on trial above it and was to go before it goes first, also where its own watcher was killed or is stopped:
/// it was let stand upon this entry for that.
///
/// # Errors
/// As [`crate::undo()`] by force, which goes on with a journal that is damaged or cannot be written. Nobody's value is
/// overwritten besides.
#[doc(hidden)]
pub fn take_unconfirmed(session: &Session, entry: &Entry) -> Result<Option<Undone>, PipelineError> {
    // A copy that was removed whole has nothing to take back, and is not made anew for it.
    let is_removed = session.host().folder().is_some_and(|folder| !folder.is_dir());
    if is_removed || is_settled(session, entry) {
        return Ok(None);
    }
    // Whoever holds the lock may be confirming it at this moment: ask once more when the host is ours.
    let still = |journal: &Journal| {
        let Some(own) =
            journal.ledger().entry(entry.id).filter(|found| is_same(found, entry) && must_go(found))
        else {
            return Ok(Vec::new());
        };
        let is_due = |above: &&Entry| {
            let is_over = above.confirm_by.is_some_and(|deadline| deadline <= session.now());
            above.id > own.id && above.boot_id == own.boot_id && must_go(above) && is_over
        };
        let above = journal.ledger().entries.iter().rev().filter(is_due);
        Ok(above.chain([own]).map(|entry| entry.id).collect())
    };
    undo_selected(session, unattended(entry), still).map(Some)
}

/// How this entry is taken back with nobody there: others are waited for and their values kept, and a journal that was
/// damaged since does not hold it up.
fn unattended(entry: &Entry) -> Manner<'_> {
    Manner { patience: PATIENCE, force: false, by_timer: true, salvage: Some(std::slice::from_ref(entry)) }
}

/// The entry to watch over, from the sound lines where the journal is damaged by now.
fn find_in_time(session: &Session, id: EntryId) -> Result<Entry, PipelineError> {
    loop {
        match find(session, id) {
            Err(error) if !is_for_ever(&error) => {}
            found => return found,
        }
        if let Some(entry) = session.sound_entries().into_iter().find(|entry| entry.id == id) {
            return Ok(entry);
        }
        std::thread::sleep(RETRY);
    }
}

fn find(session: &Session, id: EntryId) -> Result<Entry, PipelineError> {
    let ledger = session.ledger()?;
    let entry = ledger.entry(id).ok_or(JournalError::NoEntry { id })?;
    Ok(entry.clone())
}

/// Whether an entry is one that its watcher must take back. So is one whose undo was killed half way: a connection
/// that broke, for which there is a timer, takes the undo that was typed into it along.
fn must_go(entry: &Entry) -> bool {
    let unfinished = matches!(entry.state, EntryState::Unconfirmed | EntryState::Interrupted);
    unfinished && entry.confirm_by.is_some()
}

/// Keeps the watcher in memory and out of the OOM killer's hands, as far as it is allowed to.
fn survive() {
    // Both are best effort: an ordinary user may do neither.
    let _ = mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE);
    if let Ok(mut score) = OpenOptions::new().write(true).open("/proc/self/oom_score_adj") {
        let _ = score.write_all(b"-900\n");
    }
}
