//! `planish move`: memory and threads of processes that run, moved to other nodes and CPUs. An entry of the journal
//! like any other: `planish undo` takes it back.
//!
//! What was where is a record beside the journal, since it may be long: on the disk before the intent that names it,
//! and kept until nothing of the entry can be undone any more. The intent is on the disk before the first page moves.

mod ranges;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::ops::Range;
use std::time::Duration;

use planish_act::relocate::{
    Back, Carried, End, Found, Identity, Load, Named, Pace, Pinned, Process, Processes, Reasons, Record,
    RelocateError, Survey, Threads, ThreadsBack, Wish, carry, merged, pin, release, survey,
    take_back as take_pages_back, to_pin,
};
use planish_act::{Sink, in_full};
use planish_host::Host;
use planish_journal::{Journal, RecordFault};
use planish_model::units::counted;
use planish_model::{
    Class, Closure, Entry, EntryId, EntryStep, Exit, KnobId, Original, Outcome, OutcomeKind, Undo, ValueType,
};
use planish_residency::{Kind, Who, members, status};
use planish_sys::sampling::{FileRoom, SamplingError};
use planish_sys::{CpuSet, NodeSet, process};
use tracing::info_span;

use crate::error::PipelineError;
use crate::session::Session;
use crate::unconfirmed;
use crate::{gone, intent};

/// Bytes a second that are moved where nobody says otherwise.
pub const MOVE_RATE: u64 = 1 << 30;

/// How long another planish may take that is at work.
const PATIENCE: Duration = Duration::from_secs(5);

const MEMORY: &str = "move.memory";
const THREADS: &str = "move.threads";

/// What is to be moved, and where to.
#[derive(Clone, Debug, Default)]
pub struct MoveRequest {
    /// Whose.
    pub who: Vec<Who>,
    /// With all processes that descend from them.
    pub tree: bool,
    /// The nodes for memory: several get equal shares. `None` leaves memory where it is.
    pub to: Option<NodeSet>,
    /// Only memory that lies on these nodes now.
    pub from: Option<NodeSet>,
    /// Only memory of these kinds.
    pub kinds: Vec<Kind>,
    /// Only these parts of memory; none for all of it.
    pub ranges: Vec<Named>,
    /// Also what has a policy that says otherwise.
    pub against_policy: bool,
    /// Also what a program has locked into memory.
    pub locked: bool,
    /// The CPUs for every thread.
    pub cpus: Option<CpuSet>,
    /// Bytes a second at most.
    pub bytes_per_second: u64,
    /// Look only.
    pub dry_run: bool,
    /// For the journal.
    pub reason: Option<String>,
}

/// What came of one process.
#[derive(Clone, Debug, PartialEq)]
pub struct MovedProcess {
    /// Its PID.
    pub pid: u32,
    /// Its name.
    pub name: String,
    /// The parts that were named, as they were found in it: addresses in whole pages, and the name of the mapping.
    pub ranges: Vec<(Range<u64>, String)>,
    /// Bytes of the wanted kinds by node, before.
    pub before: BTreeMap<u32, u64>,
    /// The same afterwards, looked at afresh; `None` where nothing was moved, or it has ended.
    pub after: Option<BTreeMap<u32, u64>>,
    /// Bytes that were to go.
    pub wanted: u64,
    /// What was carried; `None` where nothing was tried.
    pub carried: Option<Carried>,
    /// Bytes that stay by their nature, by reason.
    pub stays: Reasons,
    /// Its threads, where CPUs were named.
    pub threads: Option<MovedThreads>,
}

impl MovedProcess {
    /// Whether a signal ended it, so that the same command goes on.
    #[must_use]
    pub fn was_stopped(&self) -> bool {
        self.carried.as_ref().is_some_and(|carried| carried.end == End::Stopped)
    }
}

/// What came of the threads of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MovedThreads {
    /// The CPUs.
    pub cpus: CpuSet,
    /// Threads that were found, and had other CPUs.
    pub wanted: u64,
    /// What was pinned; `None` where nothing was tried.
    pub pinned: Option<Pinned>,
}

/// What a move came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Relocated {
    /// The entry that undoes it; `None` where nothing was moved.
    pub entry: Option<EntryId>,
    /// Each process, in the order in which they were named.
    pub processes: Vec<MovedProcess>,
    /// How the command ends.
    pub exit: Exit,
    /// What to know.
    pub hints: Vec<String>,
}

/// One process on its way.
struct Mover<'a> {
    process: Box<dyn Process + 'a>,
    identity: Identity,
    /// What was named of its memory, in the order in which it was.
    found: Vec<Found>,
    /// What is to be moved of it.
    wish: Wish,
    survey: Survey,
    threads: Option<Threads>,
    told: MovedProcess,
}

/// Moves memory and threads.
///
/// # Errors
/// Refusals, before anything was moved: no such process or node, no right, no room; a journal that cannot be used.
pub fn relocate(
    session: &Session,
    request: &MoveRequest,
    stop: &dyn Fn() -> bool,
) -> Result<Relocated, PipelineError> {
    let sink = session.sink()?;
    let Some(processes) = sink.processes() else {
        return Err(refusal(
            "a recorded host has no processes that could be moved",
            "leave out --root: processes run on live machines",
        ));
    };
    processes.spaces()?;
    refuse_machine(session.host(), request)?;
    let mut journal = match request.dry_run {
        true => None,
        false => Some(session.writer(PATIENCE)?),
    };
    if let Some(journal) = &journal {
        refuse_unconfirmed(session, journal, &[])?;
    }

    // After this point, but for a dry run, no other planish moves anything.
    let wish = wish_of(request);
    let looked = info_span!("observe").in_scope(|| look(session.host(), &*processes, request, &wish))?;
    let Looked { mut movers, missed, _room } = looked;
    refuse_full(&*processes, &movers)?;
    let Some(journal) = journal.as_mut().filter(|_| movers.iter().any(Mover::has_work)) else {
        return Ok(ended(None, movers, missed, session.host(), request));
    };
    gone::close(journal, &session.host().boot_id())?;
    journal.sweep_records();
    let steps = keep(journal, &movers, &*processes)?;
    let entry = info_span!("record").in_scope(|| {
        let steps = steps.iter().map(|step| step.step.clone()).collect();
        journal.begin(intent::unplanned(session, "move", request.reason.as_deref(), steps))
    })?;

    // After this point a kill leaves an entry that undo takes back.
    let pace = Pace { bytes_per_second: Some(request.bytes_per_second), stop };
    let mut is_any = false;
    for (index, step) in steps.iter().enumerate() {
        let mover = &mut movers[step.mover];
        let outcome = info_span!("act").in_scope(|| step.act(mover, &*processes, &pace));
        // A kernel that refuses half way may have moved something before.
        is_any |= outcome.outcome == OutcomeKind::Done || mover.was_touched();
        journal.outcome(entry, index, outcome).map_err(|source| PipelineError::JournalHalfWay {
            entry,
            restored: false,
            source,
        })?;
    }
    let half_way = |source| PipelineError::JournalHalfWay { entry, restored: false, source };
    journal.applied(entry).map_err(half_way)?;
    if !is_any {
        journal.close(entry, Closure::Empty).map_err(half_way)?;
        journal.sweep_records();
    }

    // After this point a fresh look trusts none of that.
    let late = started_meanwhile(session.host(), request, &movers);
    for mover in &mut movers {
        let looked = Wish { targets: Vec::new(), ..mover.wish.clone() };
        mover.told.after = survey(&*processes, &*mover.process, &looked).ok().map(|survey| survey.on);
    }
    let mut relocated = ended(is_any.then_some(entry), movers, missed, session.host(), request);
    relocated.tell_late(late);
    Ok(relocated)
}

impl Relocated {
    /// Tells of processes that came too late to be moved.
    fn tell_late(&mut self, late: usize) {
        if late > 0 {
            self.hints.push(format!(
                "{late} processes of the tree were started meanwhile, and were not moved: the same command again \
                 moves them"
            ));
            self.exit = Exit::Findings;
        }
    }
}

/// How many processes that are meant were not there when they were listed.
fn started_meanwhile(host: &Host, request: &MoveRequest, movers: &[Mover<'_>]) -> usize {
    if !request.tree {
        return 0;
    }
    let is_known = |pid: u32| movers.iter().any(|mover| mover.identity.pid == pid);
    let families = request.who.iter().filter_map(|who| members(host, who, true).ok());
    let pids: BTreeSet<u32> = families.flatten().map(|(pid, _)| pid).collect();
    pids.into_iter().filter(|pid| !is_known(*pid)).count()
}

fn wish_of(request: &MoveRequest) -> Wish {
    Wish {
        targets: request.to.iter().flat_map(NodeSet::iter).collect(),
        from: request.from.clone(),
        kinds: request.kinds.clone(),
        // Where they are is found in each process.
        ranges: None,
        against_policy: request.against_policy,
        locked: request.locked,
        bytes_per_second: request.bytes_per_second,
    }
}

fn refusal(why: impl Into<String>, cure: impl Into<String>) -> PipelineError {
    PipelineError::Relocate { why: why.into(), cure: cure.into() }
}

/// Refuses to hold the lock of the host while a timer waits to take an entry back: it would come too late, and a
/// confirm would be refused meanwhile. No timer can begin during the move.
fn refuse_unconfirmed(session: &Session, journal: &Journal, undone: &[EntryId]) -> Result<(), PipelineError> {
    let waiting = unconfirmed::all(session, &journal.ledger().entries);
    match waiting.iter().find(|waits| !undone.contains(&waits.entry)) {
        None => Ok(()),
        Some(waits) => {
            let why = format!("{waits}: a move would keep its timer and the confirm waiting");
            Err(refusal(why, format!("{}; then once more", waits.cure())))
        }
    }
}

/// Refuses to take a move back, which holds the lock as long, while the timer of an entry waits that stays.
pub(crate) fn refuse_undo(
    session: &Session,
    journal: &Journal,
    selected: &[EntryId],
) -> Result<(), PipelineError> {
    let is_move = |id: &EntryId| {
        let entry = journal.ledger().entry(*id);
        entry.is_some_and(|entry| entry.steps.iter().any(|step| step.undo == Undo::Moved))
    };
    if selected.iter().any(is_move) { refuse_unconfirmed(session, journal, selected) } else { Ok(()) }
}

/// Refuses what this machine does not have.
fn refuse_machine(host: &Host, request: &MoveRequest) -> Result<(), PipelineError> {
    let list = |path: &str| host.read(path).ok();
    if let Some(to) = &request.to {
        let with_memory = list("/sys/devices/system/node/has_memory");
        let Some(here) = with_memory.and_then(|text| NodeSet::parse_list(&text).ok()) else {
            return Err(refusal(
                "this kernel tells no nodes: it was built without NUMA",
                "planish topo tells what is here",
            ));
        };
        let absent = to.difference(&here);
        if !absent.is_empty() {
            let why = format!("node {absent} has no memory here: nodes with memory are {here}");
            return Err(refusal(why, "name one of those: planish topo"));
        }
        if here.count() < 2 {
            let why = format!("this machine has memory on node {here} alone: there is nowhere to move it to");
            return Err(refusal(
                why,
                "--cpus without --to pins threads; planish map tells where memory lies",
            ));
        }
    }
    if let Some(cpus) = &request.cpus {
        const ONLINE: &str = "/sys/devices/system/cpu/online";
        let Some(online) = list(ONLINE).and_then(|text| CpuSet::parse_list(&text).ok()) else {
            let why = format!("which CPUs are online is not told here: {ONLINE} cannot be read");
            return Err(refusal(why, "mount sysfs: mount -t sysfs none /sys"));
        };
        let absent = cpus.difference(&online);
        if !absent.is_empty() || cpus.is_empty() {
            let why = format!("CPU {absent} is not online here: online are {online}");
            return Err(refusal(why, "name some of those: planish topo"));
        }
    }
    Ok(())
}

/// What was found of every process that is meant.
struct Looked<'a> {
    movers: Vec<Mover<'a>>,
    /// How many ended before they were looked at.
    missed: usize,
    /// Each process is held by two descriptors, until all is done.
    _room: FileRoom,
}

/// Looks at every process that is meant. The first error counts.
fn look<'a>(
    host: &Host,
    processes: &'a dyn Processes,
    request: &MoveRequest,
    wish: &Wish,
) -> Result<Looked<'a>, PipelineError> {
    let (mut meant, mut seen) = (Vec::new(), BTreeSet::new());
    for who in &request.who {
        let family = members(host, who, request.tree).map_err(RelocateError::from)?;
        let family = family.into_iter().enumerate().filter(|(_, (pid, _))| seen.insert(*pid));
        meant.extend(family.map(|(index, (pid, stat))| (index == 0, pid, stat.name)));
    }
    ranges::refuse_several(request, meant.len())?;
    let room = FileRoom::make(2 * meant.len() as u64).map_err(|error| {
        let why = match error {
            SamplingError::Files { needed, limit } => {
                format!("{} processes need {needed} open files, and at most {limit} are allowed", meant.len())
            }
            error => format!("{} processes cannot be held at once: {error}", meant.len()),
        };
        refusal(why, "raise the limit (ulimit -Hn), or name some of the processes, without --tree")
    })?;
    let mut looked = Looked { movers: Vec::new(), missed: 0, _room: room };
    for (is_first, pid, name) in meant {
        match mover(host, processes, request, wish, pid, name) {
            Ok(mover) => looked.movers.push(mover),
            // Of a service a process may end while others are looked at.
            Err(PipelineError::Process(RelocateError::Ended { .. })) if !is_first => looked.missed += 1,
            Err(PipelineError::Process(RelocateError::Residency(error))) if !is_first && error.is_gone() => {
                looked.missed += 1;
            }
            Err(error) => return Err(error),
        }
    }
    ranges::refuse_absent(request, &looked.movers)?;
    Ok(looked)
}

fn mover<'a>(
    host: &Host,
    processes: &'a dyn Processes,
    request: &MoveRequest,
    wish: &Wish,
    pid: u32,
    name: String,
) -> Result<Mover<'a>, PipelineError> {
    let process = processes.open(pid)?.ok_or(RelocateError::Ended { pid })?;
    let identity = process.identity()?.ok_or(RelocateError::Ended { pid })?;
    refuse_outside(host, request, pid)?;
    let found = ranges::found(processes, &*process, request, pid)?;
    let ranges = (!found.is_empty()).then(|| merged(&found));
    let wish = Wish { ranges, ..wish.clone() };
    let survey = survey(processes, &*process, &wish)?;
    let threads = request.cpus.as_ref().map(|cpus| to_pin(&*process, cpus)).transpose()?;
    if !process.identity()?.is_some_and(|now| now.is_program(&identity)) {
        let why = format!("process {pid} ended, or executed another program, while it was looked at");
        return Err(refusal(why, "once more: planish ..."));
    }
    let moved_threads = threads.as_ref().map(|threads| MovedThreads {
        cpus: threads.cpus.clone(),
        wanted: threads.threads.iter().filter(|thread| thread.cpus != threads.cpus).count() as u64,
        pinned: None,
    });
    let told = MovedProcess {
        pid,
        name,
        ranges: found.iter().flat_map(|found| found.ranges.iter().cloned()).collect(),
        before: survey.on.clone(),
        after: None,
        wanted: survey.bytes(),
        carried: None,
        stays: survey.stays.clone(),
        threads: moved_threads,
    };
    Ok(Mover { process, identity, found, wish, survey, threads, told })
}

/// Refuses nodes that the cpuset of a process does not have, and threads that we may not pin.
fn refuse_outside(host: &Host, request: &MoveRequest, pid: u32) -> Result<(), PipelineError> {
    let status = status(host, pid).map_err(RelocateError::from)?;
    let allowed = NodeSet::parse_list(&status.allowed_nodes).unwrap_or_default();
    // A kernel without cpusets tells none.
    let outside = request.to.as_ref().map(|to| to.difference(&allowed)).filter(|outside| !outside.is_empty());
    if let Some(outside) = outside.filter(|_| !allowed.is_empty()) {
        let why = format!("the cpuset of process {pid} has node {allowed}, and not {outside}");
        let cure = "give its control group the node first (cpuset.mems), or name one that it has";
        return Err(refusal(why, cure));
    }
    let rights = process::rights().ok();
    let may_pin = rights.is_none_or(|rights| rights.nice || status.user == Some(rights.user));
    if request.cpus.is_some() && !may_pin {
        let why =
            format!("process {pid} is another user's: its threads cannot be pinned without CAP_SYS_NICE");
        return Err(refusal(
            why,
            "run it as that user, or as root; planish top tells what anybody may know of it",
        ));
    }
    Ok(())
}

/// Refuses what does not fit, before any of it is moved.
fn refuse_full(processes: &dyn Processes, movers: &[Mover<'_>]) -> Result<(), PipelineError> {
    let mut incoming: BTreeMap<u32, u64> = BTreeMap::new();
    for (node, bytes) in movers.iter().flat_map(|mover| &mover.survey.incoming) {
        *incoming.entry(*node).or_default() += bytes;
    }
    let mib = |bytes: u64| bytes >> 20;
    for (node, bytes) in incoming {
        let room = processes.room(node);
        if room.is_none_or(|room| room.spare() < bytes) {
            let (free, kept) = room.map_or((0, 0), |room| (room.free, room.kept));
            let why = format!(
                "node {node} has {} MiB free, of which {} are kept for others, and {} MiB are to go there",
                mib(free),
                mib(kept),
                mib(bytes)
            );
            let cure = "less of it: --only heap, --range, --from NODE; or free memory there: page cache counts as \
                        used, and planish drops none";
            return Err(refusal(why, cure));
        }
    }
    Ok(())
}

impl Mover<'_> {
    fn was_touched(&self) -> bool {
        // A page that went may be hidden when it is looked for afterwards: what was tried counts.
        let tried = |carried: &Carried| {
            carried.moved > 0 || !carried.stayed.is_empty() || matches!(carried.end, End::Refused(_))
        };
        let pinned = self.told.threads.as_ref().and_then(|threads| threads.pinned.as_ref());
        self.told.carried.as_ref().is_some_and(tried)
            || pinned.is_some_and(|pinned| pinned.pinned > 0 || !pinned.left.is_empty())
    }

    fn has_work(&self) -> bool {
        self.survey.bytes() > 0 || self.told.threads.as_ref().is_some_and(|threads| threads.wanted > 0)
    }
}

/// A step, and whose it is.
struct MoveStep {
    mover: usize,
    record: Record,
    step: EntryStep,
}

/// Writes the records of all processes and makes their steps: threads first, so that what a process allocates from then
/// on lies right already.
fn keep(
    journal: &Journal,
    movers: &[Mover<'_>],
    processes: &dyn Processes,
) -> Result<Vec<MoveStep>, PipelineError> {
    let mut steps = Vec::new();
    for (index, mover) in movers.iter().enumerate() {
        let identity = mover.identity;
        let at = format!("/proc/{}@{}", identity.pid, identity.start_ticks);
        let mut add = |knob: &str, place: String, wanted: String, record: Record| {
            let bytes = record.encode().map_err(|error| {
                refusal(
                    format!("process {}: {error}", identity.pid),
                    "less of it at a time: --only heap, --range, --from NODE",
                )
            })?;
            let (knob, name) = (KnobId::new(knob), journal.keep_record(&bytes)?);
            let mut step = EntryStep::new(knob.clone(), place.clone(), wanted, Class::Safe, Undo::Moved);
            let (r#type, value) = (ValueType::Text { text: true }, name);
            step.originals = vec![Original { knob, place, r#type, value, coupling: None, over: None }];
            steps.push(MoveStep { mover: index, record, step });
            Ok::<(), PipelineError>(())
        };
        let threads = mover
            .threads
            .as_ref()
            .filter(|_| mover.told.threads.as_ref().is_some_and(|told| told.wanted > 0));
        if let Some(threads) = threads {
            let wanted = format!("CPU {}", threads.cpus);
            add(THREADS, format!("{at}/threads"), wanted, Record::Threads(identity, threads.clone()))?;
        }
        if mover.survey.bytes() > 0 {
            let nodes: NodeSet = mover.wish.targets.iter().copied().collect();
            let wanted = format!("node {nodes}{}", ranges::told(&mover.wish));
            let pages = mover.survey.pages(&mover.wish, processes);
            add(MEMORY, format!("{at}/memory"), wanted, Record::Pages(identity, pages))?;
        }
    }
    Ok(steps)
}

impl MoveStep {
    /// Does it, and says how it ended.
    fn act(&self, mover: &mut Mover<'_>, processes: &dyn Processes, pace: &Pace<'_>) -> Outcome {
        let mut outcome = Outcome::new(self.step.knob.clone(), self.step.place.clone(), OutcomeKind::Done);
        if (pace.stop)() {
            outcome.outcome = OutcomeKind::NotReached;
            return outcome;
        }
        match &self.record {
            Record::Threads(_, threads) => {
                let pinned = pin(&*mover.process, threads);
                outcome.detail = Some(told_threads(&pinned));
                if pinned.pinned == 0 {
                    outcome.outcome = OutcomeKind::Failed;
                }
                if let Some(told) = &mut mover.told.threads {
                    told.pinned = Some(pinned);
                }
            }
            Record::Pages(identity, pages) => {
                let load = Load { process: &*mover.process, identity, pages };
                let carried = carry(processes, &load, &mover.wish, pace);
                outcome.detail = Some(told_carried(&carried));
                // Where it was refused half way, what is moved is to be undone all the same.
                if carried.moved == 0 {
                    outcome.outcome = OutcomeKind::Failed;
                }
                mover.told.carried = Some(carried);
            }
        }
        outcome
    }
}

fn kib(bytes: u64) -> String {
    if bytes >= 10 << 20 { format!("{} MiB", bytes >> 20) } else { format!("{} KiB", bytes >> 10) }
}

fn told_reasons(reasons: &Reasons, unit: impl Fn(u64) -> String) -> String {
    let told = reasons.iter().map(|(reason, count)| format!("{} {reason}", unit(*count)));
    told.collect::<Vec<_>>().join("; ")
}

fn told_carried(carried: &Carried) -> String {
    let mut told = vec![format!("{} moved", kib(carried.moved))];
    if !carried.stayed.is_empty() {
        told.push(format!("stayed: {}", told_reasons(&carried.stayed, kib)));
    }
    told.extend(told_end(&carried.end));
    told.join("; ")
}

fn told_threads(pinned: &Pinned) -> String {
    let count = |threads: u64| threads.to_string();
    let mut told = vec![format!("{} threads pinned", pinned.pinned)];
    if !pinned.left.is_empty() {
        told.push(format!("not pinned: {}", told_reasons(&pinned.left, count)));
    }
    told.join("; ")
}

/// Why it ended early, in words.
#[must_use]
pub fn told_end(end: &End) -> Option<String> {
    Some(match end {
        End::Whole => return None,
        End::Stopped => "stopped by a signal".to_owned(),
        End::Full { node, room } => {
            let (free, kept) = room.map_or((0, 0), |room| (room.free, room.kept));
            format!("node {node} is full: {} free, {} kept for others", kib(free), kib(kept))
        }
        End::Ended => "the process ended".to_owned(),
        End::Executed => "the process executed another program".to_owned(),
        End::Refused(why) => why.clone(),
    })
}

/// The answer: what was moved, and what people should know.
fn ended(
    entry: Option<EntryId>,
    movers: Vec<Mover<'_>>,
    missed: usize,
    host: &Host,
    request: &MoveRequest,
) -> Relocated {
    let mut hints = ranges::notes(request, &movers);
    let processes: Vec<MovedProcess> = movers.into_iter().map(|mover| mover.told).collect();
    let is_whole = |told: &MovedProcess| {
        let memory = told.carried.as_ref().is_none_or(|carried| carried.moved == told.wanted);
        let tried = told.wanted == 0 || told.carried.is_some();
        let threads = told.threads.as_ref().is_none_or(|threads| {
            threads.wanted == 0 || threads.pinned.as_ref().is_some_and(|pinned| pinned.left.is_empty())
        });
        memory && tried && threads
    };
    let all = request.dry_run || processes.iter().all(is_whole);
    if missed > 0 {
        hints.push(format!("{missed} processes ended before they were looked at"));
    }
    let balancing = host.read("/proc/sys/kernel/numa_balancing").unwrap_or_default();
    if request.to.is_some() && !matches!(balancing.trim(), "" | "0") {
        hints.push(if request.cpus.is_some() {
            "kernel.numa_balancing is on: it moves pages to where threads use them, which are pinned now".to_owned()
        } else {
            "kernel.numa_balancing is on, and will move pages back to where threads use them: pin those too (--threads)"
                .to_owned()
        });
    }
    let exit = if all { Exit::Done } else { Exit::Findings };
    Relocated { entry, processes, exit, hints }
}

/// Why nothing of a step could be taken back.
enum Fault {
    /// What it takes is lost for good: force gives it up.
    Lost(String),
    /// It may pass, or is otherwise elsewhere: not even force gives that up.
    Now(String),
}

impl Fault {
    fn now(error: &dyn std::error::Error) -> Self {
        Self::Now(in_full(error))
    }

    fn of_record(error: &RecordFault) -> Self {
        match error {
            RecordFault::File { source, .. } if source.kind() != io::ErrorKind::NotFound => Self::now(error),
            _ => Self::Lost(in_full(error)),
        }
    }
}

/// Takes a step of a move back. `known` are the entries of this boot.
///
/// What force gives up is told as theirs, so that the record stays until the next boot, and force may be tried again.
pub(crate) fn take_back(
    journal: &Journal,
    host: &Host,
    (id, step): (EntryId, &EntryStep),
    known: &[Entry],
    force: bool,
    sink: &dyn Sink,
) -> Outcome {
    let mut outcome = Outcome::new(step.knob.clone(), step.place.clone(), OutcomeKind::InUse);
    if let Some(newer) = moved_again(id, step, known) {
        // Where pages are from is what that one found; taken back first, it finds none of them where it put them.
        outcome.detail =
            Some(format!("entry {newer} moved it again, and is undone first: planish undo {newer}"));
        return outcome;
    }
    let entry = known.iter().find(|entry| entry.id == id);
    let (kind, detail) = match taken_back(journal, host, (entry, step), force, sink) {
        Ok(told) => told,
        Err(Fault::Lost(why)) if force => (OutcomeKind::Theirs, format!("given up: {why}")),
        Err(Fault::Lost(why)) => (OutcomeKind::Failed, format!("{why} (--force gives it up)")),
        Err(Fault::Now(why)) => (OutcomeKind::Failed, why),
    };
    (outcome.outcome, outcome.detail) = (kind, Some(detail));
    outcome
}

/// The newest entry that moved the same after this one, and is not taken back.
fn moved_again(id: EntryId, step: &EntryStep, known: &[Entry]) -> Option<EntryId> {
    let is_same = |other: &EntryStep| {
        other.undo == Undo::Moved && other.place == step.place && !other.is_undone() && was_reached(other)
    };
    let newer = |other: &&Entry| other.id > id && other.is_open() && other.steps.iter().any(is_same);
    known.iter().filter(newer).map(|other| other.id).max()
}

fn was_reached(step: &EntryStep) -> bool {
    step.outcome.as_ref().is_none_or(|outcome| outcome.outcome != OutcomeKind::NotReached)
}

fn taken_back(
    journal: &Journal,
    host: &Host,
    (entry, step): (Option<&Entry>, &EntryStep),
    force: bool,
    sink: &dyn Sink,
) -> Result<(OutcomeKind, String), Fault> {
    let no_processes = || Fault::Now("this host has no processes that could be moved".to_owned());
    let processes = sink.processes().ok_or_else(no_processes)?;
    let name = step.original().map(|original| original.value.as_str()).unwrap_or_default();
    let bytes = journal.record_of(name).map_err(|error| Fault::of_record(&error))?;
    let record =
        Record::decode(&bytes).map_err(|error| Fault::Lost(format!("the record {name}: {error}")))?;
    let identity = *record.identity();
    let pid = identity.pid;
    // Elsewhere the number names a stranger, and a process that runs on looks as if it had ended.
    if processes.spaces().map_err(|error| Fault::now(&error))? != identity.spaces {
        let why = format!(
            "process {pid} was moved in another PID or time namespace, where its number means another process: \
             planish undo where it was moved, on the host or inside of its container"
        );
        return Err(Fault::Now(why));
    }
    let ended = || Ok((OutcomeKind::Satisfied, format!("process {pid} has ended, and its memory with it")));
    let Some(process) = processes.open(pid).map_err(|error| Fault::now(&error))? else { return ended() };
    let now = process.identity().map_err(|error| Fault::now(&error))?;
    let Some(now) = now.filter(|now| now.is_process(&identity)) else { return ended() };
    match record {
        Record::Threads(_, threads) => match release(&*process, &threads, force) {
            Ok(back) => {
                let (kind, detail) = told_threads_back(&back);
                let heirs =
                    entry.map(|entry| heirs(&*processes, host, pid, &threads, entry)).unwrap_or_default();
                Ok((kind, told_heirs(detail, &heirs, &threads.cpus)))
            }
            Err(RelocateError::Ended { .. }) => ended(),
            Err(error) => Err(Fault::now(&error)),
        },
        Record::Pages(..) if !now.is_program(&identity) => {
            let told =
                format!("process {pid} executes another program since: its memory is not what was moved");
            Ok((OutcomeKind::Satisfied, told))
        }
        Record::Pages(_, pages) => {
            // A signal waits for its end.
            let pace = Pace { bytes_per_second: Some(pages.bytes_per_second), stop: &|| false };
            let load = Load { process: &*process, identity: &identity, pages: &pages };
            Ok(told_back(&take_pages_back(&*processes, &load, force, &pace), force))
        }
    }
}

/// The processes that descend from one whose threads were pinned, have those CPUs in every thread, and are in no record
/// of the entry: they were started since, and were given them by their parents.
fn heirs(processes: &dyn Processes, host: &Host, pid: u32, threads: &Threads, entry: &Entry) -> Vec<u32> {
    let had_others = threads.threads.iter().any(|thread| thread.cpus != threads.cpus);
    let family = members(host, &Who::Pid(pid), true).unwrap_or_default();
    let is_recorded = |pid: u32| {
        let head = format!("/proc/{pid}@");
        entry.steps.iter().any(|step| step.knob.as_str() == THREADS && step.place.starts_with(&head))
    };
    let has_ours = |pid: u32| {
        let process = processes.open(pid).ok().flatten();
        let found = process.and_then(|process| process.threads().ok()).unwrap_or_default();
        !found.is_empty() && found.iter().all(|thread| thread.cpus == threads.cpus)
    };
    let others = family.into_iter().map(|(pid, _)| pid).filter(|other| *other != pid);
    others.filter(|other| had_others && !is_recorded(*other) && has_ours(*other)).collect()
}

/// Whose CPUs those are that a process was given by its parent, nobody can say: it may have them on purpose.
fn told_heirs(detail: String, heirs: &[u32], cpus: &CpuSet) -> String {
    if heirs.is_empty() {
        return detail;
    }
    let pids = heirs.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    format!(
        "{detail}; processes that it started, and that are in no record, have CPU {cpus} as well, and keep it: {pids} \
         {BY_HAND}"
    )
}

/// How threads and processes that were begun since get other CPUs: no undo gives them any, by force neither.
const BY_HAND: &str = "(taskset -a -p -c LIST PID gives them others)";

/// Whether something that was begun since a move keeps its CPUs. All that was recorded may be back.
pub(crate) fn has_heirs(outcome: &Outcome) -> bool {
    outcome.detail.as_deref().is_some_and(|detail| detail.contains(BY_HAND))
}

fn told_back(back: &Back, force: bool) -> (OutcomeKind, String) {
    let left = back.left_bytes();
    let mut told = vec![format!("{} back", kib(back.back))];
    let mut tell = |bytes: u64, what: &str| {
        if bytes > 0 {
            told.push(format!("{} {what}", kib(bytes)));
        }
    };
    tell(back.already, "were there already");
    tell(back.gone, "are no longer its");
    tell(back.theirs, "lie where somebody else, or automatic balancing, moved them since");
    let is_given_up = force && !back.is_passing();
    told.extend((left > 0).then(|| {
        let word = if is_given_up { "given up" } else { "not yet back" };
        let cure = if force || back.is_passing() { "" } else { " (--force gives it up)" };
        format!("{word}: {}{cure}", told_reasons(&back.left, kib))
    }));
    told.extend(back.end.as_ref().and_then(told_end));
    let kind = if left > 0 && !is_given_up {
        OutcomeKind::InUse
    } else if left > 0 || back.theirs > 0 {
        OutcomeKind::Theirs
    } else if back.back > 0 {
        OutcomeKind::Done
    } else {
        OutcomeKind::Satisfied
    };
    (kind, told.join("; "))
}

fn told_threads_back(back: &ThreadsBack) -> (OutcomeKind, String) {
    let (has, its) = if back.back == 1 { ("has", "its") } else { ("have", "their") };
    let mut told = vec![format!("{} {has} {its} CPUs again", counted(back.back, "thread"))];
    let mut tell = |threads: u64, what: &str| {
        if threads > 0 {
            told.push(format!("{threads} {what}"));
        }
    };
    tell(back.already, "had them already");
    tell(back.ended, "ended");
    tell(back.theirs, "were given others by somebody else since");
    let unknown = format!("keep ours: they were born since, of threads that had different CPUs {BY_HAND}");
    tell(back.unknown, &unknown);
    if !back.left.is_empty() {
        told.push(told_reasons(&back.left, |threads| threads.to_string()));
    }
    let kind = if !back.left.is_empty() {
        OutcomeKind::InUse
    } else if back.theirs > 0 {
        OutcomeKind::Theirs
    } else {
        OutcomeKind::Done
    };
    (kind, told.join("; "))
}
