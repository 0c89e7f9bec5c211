//! `planish move`

use std::ops::Range;
use std::sync::atomic::Ordering;

use planish_host::Host;
use planish_model::Catalogue;
use planish_pipeline::{self as pipeline, MOVE_RATE, MoveRequest, MovedProcess, Named, Relocated, Service};
use planish_report::{MoveLeft, MoveProcess, MoveRange, MoveReport, MoveStayed, MoveThreads};
use planish_residency::{Kind, Who};
use planish_sys::{CpuSet, NodeSet};

use crate::answer::Answer;
use crate::commands::{cpus, nodes, service};
use crate::context::Context;
use crate::failure::Failure;
use crate::signals;

/// Move memory and threads of running processes to other nodes and CPUs
///
/// Where pages lay and what threads were given is on disk before the first move: `planish undo` takes it back. Private
/// memory is moved; what processes share, pages of a pool, and memory that has a policy of its own stay, and are told.
/// What this host does not have, a node or a CPU, is refused with what else the host forbids: exit code 3.
#[derive(Debug, clap::Args)]
#[command(group(clap::ArgGroup::new("what").required(true).multiple(true).args(["to", "cpus"])))]
pub(crate) struct Args {
    /// Process ids, or names of programs: of processes that started each other the first is meant
    #[arg(value_name = "NAME|PID", required = true)]
    who: Vec<String>,
    /// All processes that descend from them too
    #[arg(long)]
    tree: bool,
    /// Move memory to this node; several get equal shares, in pieces of a huge page
    #[arg(long, value_name = "NODES", value_parser = nodes)]
    to: Option<NodeSet>,
    /// Only memory that lies on these nodes now
    #[arg(long, value_name = "NODES", value_parser = nodes, requires = "to")]
    from: Option<NodeSet>,
    /// Only memory of this kind: heap, anon, stack; separated by commas
    #[arg(long, value_name = "KIND", value_delimiter = ',', value_parser = kind, requires = "to")]
    only: Vec<Kind>,
    /// Only memory at these addresses, in hex, or in mappings of this name ([heap], a path), both as /proc/PID/maps has
    /// them; may be given several times
    #[arg(long, value_name = "START-END|NAME", value_parser = range, requires = "to")]
    range: Vec<Named>,
    /// Pin every thread to these CPUs
    #[arg(long, value_name = "LIST", value_parser = cpus)]
    cpus: Option<CpuSet>,
    /// Pin every thread to the CPUs of the nodes of --to
    #[arg(long, conflicts_with = "cpus", requires = "to")]
    threads: bool,
    /// Also memory whose policy says otherwise (bind, interleave)
    #[arg(long, requires = "to")]
    against_policy: bool,
    /// Also memory that a program has locked: it waits for a moment for each page
    #[arg(long, requires = "to")]
    locked: bool,
    /// Move at most so much in a second, in MB, from 1 to 1000000; an undo goes no faster
    #[arg(long, value_name = "MB", requires = "to", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    rate: Option<u64>,
    /// Look and tell what would be moved; move nothing
    #[arg(long)]
    dry_run: bool,
    /// Why, for the journal
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

fn kind(text: &str) -> Result<Kind, String> {
    match text {
        "heap" => Ok(Kind::Heap),
        "anon" => Ok(Kind::Anon),
        "stack" => Ok(Kind::Stack),
        "shared" | "file" | "data" | "text" => Err(format!(
            "memory of the kind {text} is shared with other processes or with the page cache, and is not moved: heap, \
             anon and stack are"
        )),
        _ => Err("the kinds are heap, anon and stack".to_owned()),
    }
}

fn range(text: &str) -> Result<Named, String> {
    text.parse()
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<Answer, Failure> {
    let session = context.session()?;
    let request = request(args, session.host())?;
    let stop = signals::stop_flag().map_err(Failure::refused)?;
    let relocated = pipeline::relocate(&session, &request, &|| stop.load(Ordering::Relaxed))?;
    let report = report(&relocated, &request);
    let mut answer = context.answer(&report, &Catalogue::default()).exit(relocated.exit);
    for hint in relocated.hints {
        answer = answer.warning(hint);
    }
    if relocated.processes.iter().any(MovedProcess::was_stopped) {
        answer = answer.warning("it was stopped: the same command again goes on where it stopped");
    }
    let pid = report.processes.first().map_or(0, |process| process.pid);
    let map = context.line(&format!("map {pid}{}", if request.tree { " --tree" } else { "" }));
    Ok(match relocated.entry {
        _ if request.dry_run => answer.next(context.again_without(&["--dry-run"], &[], "")),
        Some(entry) => answer.note(format!("planish undo {entry} takes it back")).next(map),
        None => answer.note("nothing was moved").next(map),
    })
}

fn request(args: &Args, host: &Host) -> Result<MoveRequest, Failure> {
    let who = |named: &String| match service(named) {
        Service::Pid(pid) => Who::Pid(pid),
        Service::Name(name) => Who::Name(name),
    };
    let kinds = match (args.only.as_slice(), args.range.as_slice()) {
        ([], []) => vec![Kind::Heap, Kind::Anon, Kind::Stack],
        // Of what was named by its place all is told: what is never moved too.
        ([], _) => {
            vec![Kind::Heap, Kind::Anon, Kind::Stack, Kind::Data, Kind::Text, Kind::Shared, Kind::File]
        }
        (only, _) => only.to_vec(),
    };
    let cpus = match (&args.to, args.threads) {
        (Some(to), true) => Some(cpus_of(host, to)?),
        _ => args.cpus.clone(),
    };
    Ok(MoveRequest {
        who: args.who.iter().map(who).collect(),
        tree: args.tree,
        to: args.to.clone(),
        from: args.from.clone(),
        kinds: if args.to.is_some() { kinds } else { Vec::new() },
        ranges: args.range.clone(),
        against_policy: args.against_policy,
        locked: args.locked,
        cpus,
        bytes_per_second: args.rate.map_or(MOVE_RATE, |megabytes| megabytes * 1_000_000),
        dry_run: args.dry_run,
        reason: args.reason.clone(),
    })
}

/// The CPUs of nodes.
fn cpus_of(host: &Host, nodes: &NodeSet) -> Result<CpuSet, Failure> {
    let list = |node| host.read(&format!("/sys/devices/system/node/node{node}/cpulist")).ok();
    let lists: Vec<String> = nodes.iter().filter_map(list).collect();
    if lists.is_empty() {
        let failure = Failure::refused(format!("node {nodes} does not exist here"));
        return Err(failure.hint("planish topo shows the nodes"));
    }
    let cpus = lists.iter().filter_map(|list| CpuSet::parse_list(list).ok());
    let cpus = cpus.fold(CpuSet::new(), |all, some| all.union(&some));
    if cpus.is_empty() {
        let failure = Failure::refused(format!("node {nodes} has no CPUs that threads could be pinned to"));
        return Err(failure.hint("name CPUs near it: --cpus LIST; planish topo tells distances"));
    }
    Ok(cpus)
}

fn report(relocated: &Relocated, request: &MoveRequest) -> MoveReport {
    MoveReport {
        entry: relocated.entry,
        dry_run: request.dry_run,
        to: request.to.as_ref().map(ToString::to_string),
        processes: relocated
            .processes
            .iter()
            .map(|moved| process(moved, !request.ranges.is_empty()))
            .collect(),
    }
}

fn range_of((range, name): &(Range<u64>, String)) -> MoveRange {
    MoveRange { start: format!("{:x}", range.start), end: format!("{:x}", range.end), name: name.clone() }
}

fn process(moved: &MovedProcess, has_ranges: bool) -> MoveProcess {
    let mut stayed = moved.stays.clone();
    let carried = moved.carried.as_ref();
    for (reason, bytes) in carried.iter().flat_map(|carried| &carried.stayed) {
        *stayed.entry(reason.clone()).or_default() += bytes;
    }
    let untried = carried.map_or(0, |carried| carried.untried);
    if untried > 0 {
        stayed.insert("not tried".to_owned(), untried);
    }
    let threads = moved.threads.as_ref().map(|threads| MoveThreads {
        cpus: threads.cpus.to_string(),
        wanted: threads.wanted,
        pinned: threads.pinned.as_ref().map(|pinned| pinned.pinned),
        left: threads
            .pinned
            .iter()
            .flat_map(|pinned| &pinned.left)
            .map(|(reason, threads)| MoveLeft { reason: reason.clone(), threads: *threads })
            .collect(),
    });
    MoveProcess {
        pid: moved.pid,
        name: moved.name.clone(),
        ranges: has_ranges.then(|| moved.ranges.iter().map(range_of).collect()),
        nodes: MoveProcess::nodes(&moved.before, moved.after.as_ref()),
        wanted_bytes: moved.wanted,
        moved_bytes: carried.map(|carried| carried.moved),
        stayed: stayed.into_iter().map(|(reason, bytes)| MoveStayed { reason, bytes }).collect(),
        ended: carried.and_then(|carried| pipeline::told_end(&carried.end)),
        threads,
    }
}
