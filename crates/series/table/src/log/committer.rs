//! Group commit: many writers hand in batches, one thread writes all that wait as one frame and syncs once.
//!
//! Whether a batch is new is decided here, in the order of the log, so that the log holds each batch once.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::error::TableError;
use crate::log::writer::{Failure, Writer};

/// A group that waits for company goes when it has this many bytes.
const GROUP_BYTES: usize = 16 << 20;
/// No group is longer, however many wait.
const GROUP_BYTES_MAX: usize = 256 << 20;
/// Longest batch.
pub(crate) const BATCH_BYTES_MAX: usize = 256 << 20;
/// Who hands in more than this waits until the committer or the table has caught up.
const BACKLOG_BYTES: usize = 64 << 20;

/// When batches are acknowledged, and what a loss of power can take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SyncPolicy {
    /// After a sync: nothing that was acknowledged is ever lost. The default.
    Always {
        /// How long the first batch of a group waits for others. With zero it does not: what comes during a sync is the
        /// next group anyway.
        gather: Duration,
    },
    /// After the write, with a sync this often. **A loss of power, or a panic of the kernel, takes what was
    /// acknowledged since the last sync.** A kill of the process takes nothing.
    Every(Duration),
    /// After the write; the kernel writes back when it likes. **A loss of power takes what was acknowledged in the last
    /// half minute or so**, and may take more. A kill of the process takes nothing.
    Never,
}

impl Default for SyncPolicy {
    fn default() -> Self {
        Self::Always { gather: Duration::ZERO }
    }
}

/// What became of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ack {
    /// Its rows are in the log.
    New,
    /// A batch of this producer and number was there already: nothing was added.
    Known,
}

/// A batch on its way into the log.
struct Pending {
    bytes: Vec<u8>,
    origin: Option<(String, u64)>,
    answer: Sender<Result<Ack, TableError>>,
}

/// A batch that is in the log and not yet in the table.
pub(crate) struct Ready {
    pub(crate) number: u64,
    pub(crate) bytes: Vec<u8>,
}

#[derive(Default)]
struct State {
    pending: VecDeque<Pending>,
    pending_bytes: usize,
    /// When the oldest of them came.
    since: Option<Instant>,
    ready: VecDeque<Ready>,
    ready_bytes: usize,
    /// Who waits until everything up to now is synced.
    syncs: Vec<Sender<Result<Ack, TableError>>>,
    lost: Option<(PathBuf, Arc<io::Error>)>,
    is_closing: bool,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// The committer waits here for work.
    work: Condvar,
    /// Writers wait here for room.
    room: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nothing panics while the queues are half changed")
    }
}

/// The thread that owns the end of the log, and the queues on both sides of it.
pub(crate) struct Committer {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl std::fmt::Debug for Committer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Committer").finish_non_exhaustive()
    }
}

impl Committer {
    /// Starts the thread. `producers` tells the number of the last batch of each.
    ///
    /// # Errors
    /// The kernel's, when there can be no thread.
    pub(crate) fn start(
        writer: Writer,
        policy: SyncPolicy,
        producers: HashMap<String, u64>,
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let worker = Worker { shared: Arc::clone(&shared), writer, policy, producers, unsynced: None };
        let thread = std::thread::Builder::new().name("table-log".to_owned()).spawn(|| worker.run())?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Hands in a batch; the answer comes when it is in the log as the policy says.
    pub(crate) fn submit(
        &self,
        bytes: Vec<u8>,
        origin: Option<(String, u64)>,
    ) -> Receiver<Result<Ack, TableError>> {
        let (answer, receiver) = channel();
        let mut state = self.shared.lock();
        while state.pending_bytes > BACKLOG_BYTES && state.lost.is_none() {
            state = self.shared.room.wait(state).expect("nothing panics while the queues are half changed");
        }
        match &state.lost {
            Some(lost) => drop(answer.send(Err(lost_error(lost)))),
            None => {
                state.pending_bytes += bytes.len();
                state.since.get_or_insert_with(Instant::now);
                state.pending.push_back(Pending { bytes, origin, answer });
                self.shared.work.notify_one();
            }
        }
        receiver
    }

    /// Returns when everything that was acknowledged is synced, whatever the policy.
    pub(crate) fn sync(&self) -> Result<(), TableError> {
        let (answer, receiver) = channel();
        let mut state = self.shared.lock();
        match &state.lost {
            Some(lost) => return Err(lost_error(lost)),
            None => state.syncs.push(answer),
        }
        self.shared.work.notify_one();
        drop(state);
        receiver.recv().expect("the committer answers before it ends").map(drop)
    }

    /// The next batch that the table has to take in, left in its place.
    pub(crate) fn peek_ready(&self) -> Option<Ready> {
        let mut state = self.shared.lock();
        let ready = state.ready.front_mut()?;
        Some(Ready { number: ready.number, bytes: std::mem::take(&mut ready.bytes) })
    }

    /// Ends what [`peek_ready`](Self::peek_ready) began: the batch is in the table, or goes back to its place.
    pub(crate) fn settle_ready(&self, ready: Ready, is_done: bool) {
        let mut state = self.shared.lock();
        if is_done {
            state.ready_bytes -= ready.bytes.len();
            state.ready.pop_front();
        } else if let Some(front) = state.ready.front_mut() {
            front.bytes = ready.bytes;
        }
    }

    /// Whether the table is too far behind.
    pub(crate) fn is_behind(&self) -> bool {
        self.shared.lock().ready_bytes > BACKLOG_BYTES
    }

    /// Why nothing is acknowledged any more, if so.
    pub(crate) fn lost(&self) -> Option<TableError> {
        self.shared.lock().lost.as_ref().map(lost_error)
    }
}

impl Drop for Committer {
    fn drop(&mut self) {
        self.shared.lock().is_closing = true;
        self.shared.work.notify_one();
        if let Some(thread) = self.thread.take() {
            // A panic there was printed there; nothing of the log is lost by it.
            let _ = thread.join();
        }
    }
}

fn lost_error((path, source): &(PathBuf, Arc<io::Error>)) -> TableError {
    TableError::LogLost { path: path.clone(), source: Arc::clone(source) }
}

/// What the thread has to do next.
enum Work {
    Write(Vec<Pending>),
    Sync(Vec<Sender<Result<Ack, TableError>>>),
    Close,
}

struct Worker {
    shared: Arc<Shared>,
    writer: Writer,
    policy: SyncPolicy,
    producers: HashMap<String, u64>,
    /// When the oldest batch that is written and not synced was written.
    unsynced: Option<Instant>,
}

impl Worker {
    fn run(mut self) {
        loop {
            match self.next() {
                Work::Write(group) => self.commit(group),
                Work::Sync(waiting) => {
                    let result = self.writer.sync();
                    self.unsynced = None;
                    let error = result.err().map(|failure| self.fail(failure));
                    for answer in waiting {
                        // Who no longer waits is not told.
                        let _ = answer.send(error.as_ref().map_or(Ok(Ack::Known), |error| Err(error())));
                    }
                }
                Work::Close => {
                    if self.shared.lock().lost.is_none() {
                        // There is nobody to be told; the next open finds out.
                        let _ = self.writer.close();
                    }
                    return;
                }
            }
        }
    }

    /// Waits for work: a group when it has gathered, a sync when it is due or asked for.
    fn next(&self) -> Work {
        let gather = match self.policy {
            SyncPolicy::Always { gather } => gather,
            SyncPolicy::Every(_) | SyncPolicy::Never => Duration::ZERO,
        };
        let mut state = self.shared.lock();
        loop {
            let hurry = state.is_closing || !state.syncs.is_empty() || state.pending_bytes >= GROUP_BYTES;
            let go = state.since.map(|since| since + if hurry { Duration::ZERO } else { gather });
            let sync = match self.policy {
                SyncPolicy::Every(period) => self.unsynced.map(|since| since + period),
                SyncPolicy::Always { .. } | SyncPolicy::Never => None,
            };
            let now = Instant::now();
            if go.is_some_and(|go| go <= now) {
                return Work::Write(take_group(&mut state));
            }
            if !state.syncs.is_empty() || sync.is_some_and(|sync| sync <= now) {
                return Work::Sync(std::mem::take(&mut state.syncs));
            }
            if state.is_closing {
                return Work::Close;
            }
            let poisoned = "nothing panics while the queues are half changed";
            state = match go.into_iter().chain(sync).min() {
                Some(due) => self.shared.work.wait_timeout(state, due - now).expect(poisoned).0,
                None => self.shared.work.wait(state).expect(poisoned),
            };
        }
    }

    /// Writes the new batches of a group, and answers all of it.
    fn commit(&mut self, group: Vec<Pending>) {
        self.shared.room.notify_all();
        let lost = self.shared.lock().lost.clone();
        if let Some(lost) = lost {
            group.into_iter().for_each(|it| drop(it.answer.send(Err(lost_error(&lost)))));
            return;
        }
        let (mut batches, mut answers, mut before) = (Vec::new(), Vec::new(), Vec::new());
        for Pending { bytes, origin, answer } in group {
            match self.judge(origin, &mut before) {
                Ok(Ack::New) => {
                    batches.push(bytes);
                    answers.push((answer, Ack::New));
                }
                Ok(Ack::Known) => answers.push((answer, Ack::Known)),
                Err(error) => drop(answer.send(Err(error))),
            }
        }
        let first = self.writer.next();
        let is_always = matches!(self.policy, SyncPolicy::Always { .. });
        // What is known already was synced with its own group, or is in this one.
        let written = if batches.is_empty() { Ok(()) } else { self.writer.write(&batches, is_always) };
        match written {
            Ok(()) => {
                if !self.writer.is_synced() {
                    self.unsynced.get_or_insert_with(Instant::now);
                }
                let mut state = self.shared.lock();
                for (number, bytes) in (first..).zip(batches) {
                    state.ready_bytes += bytes.len();
                    state.ready.push_back(Ready { number, bytes });
                }
                drop(state);
                for (answer, ack) in answers {
                    let _ = answer.send(Ok(ack));
                }
            }
            Err(failure) => {
                // What was not written was not taken in: its numbers are free again.
                for (producer, sequence) in before.into_iter().rev() {
                    match sequence {
                        Some(sequence) => self.producers.insert(producer, sequence),
                        None => self.producers.remove(&producer),
                    };
                }
                let error = self.fail(failure);
                for (answer, _) in answers {
                    let _ = answer.send(Err(error()));
                }
            }
        }
    }

    /// Whether a batch is new; notes what its producer had before.
    fn judge(
        &mut self,
        origin: Option<(String, u64)>,
        before: &mut Vec<(String, Option<u64>)>,
    ) -> Result<Ack, TableError> {
        let Some((producer, sequence)) = origin else { return Ok(Ack::New) };
        let last = self.producers.get(&producer).copied();
        let want = last.unwrap_or(0) + 1;
        if sequence > want {
            return Err(TableError::SequenceGap { producer, want, got: sequence });
        }
        if sequence < want {
            return Ok(Ack::Known);
        }
        before.push((producer.clone(), last));
        self.producers.insert(producer, sequence);
        Ok(Ack::New)
    }

    /// Notes a lost log; gives what makes the error for each who waits.
    fn fail(&self, failure: Failure) -> impl Fn() -> TableError + use<> {
        let (path, source, is_lost) = match failure {
            Failure::Refused(path, source) => (path, Arc::new(source), false),
            Failure::Lost(path, source) => (path, Arc::new(source), true),
        };
        if is_lost {
            self.shared.lock().lost = Some((path.clone(), Arc::clone(&source)));
            self.shared.room.notify_all();
        }
        move || {
            let (path, source) = (path.clone(), Arc::clone(&source));
            if is_lost { TableError::LogLost { path, source } } else { TableError::LogWrite { path, source } }
        }
    }
}

/// Takes what waits, up to the longest group, and lets writers on.
fn take_group(state: &mut State) -> Vec<Pending> {
    let mut bytes = 0;
    let mut group = Vec::new();
    while let Some(pending) = state.pending.pop_front() {
        bytes += pending.bytes.len();
        if bytes > GROUP_BYTES_MAX && !group.is_empty() {
            bytes -= pending.bytes.len();
            state.pending.push_front(pending);
            break;
        }
        group.push(pending);
    }
    state.pending_bytes -= bytes;
    if state.pending.is_empty() {
        state.since = None;
    }
    group
}
