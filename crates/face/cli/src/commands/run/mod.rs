//! `planish run`

mod looks;
mod report;
mod text;
mod watch;

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use planish_host::Host;
use planish_model::Exit;
use planish_placement::{
    Allocator, Launch, Listener, Machine, PlacementError, Prefault, Program, Running, Surroundings, Wish,
    parse_huge, parse_numa,
};
use planish_report::{Envelope, Level, Message, RunReport};
use planish_sys::{CpuSet, NodeSet};
use planish_workload::parse_bytes;

use crate::answer::Answer;
use crate::commands::{check_writable, cpus, nodes, write_file};
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Output;
use crate::signals::Forward;
use text::OwnText;
use watch::Started;

/// The exit code where the program was not started; 126 and 127 as a shell has them.
pub(crate) const OWN_FAILURE: u8 = 125;

/// Start a program as it is, with its memory where it belongs
///
/// Shared segments are spread over nodes, put on huge pages and filled by several threads before the program sees
/// them; its heap stays with the threads that use it. What was achieved is read back and told on stderr. The exit code
/// is the program's; 125 to 127 are ours.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// Where memory goes: [shm=|heap=]local|interleave|weighted|bind:NODES|prefer:NODES, separated by commas. A policy
    /// alone is about shared segments; interleave and weighted take NODES too
    #[arg(long, value_name = "WHERE", action = clap::ArgAction::Append)]
    numa: Vec<String>,
    /// On which pages: heap, heap=hugetlb, shm, shm=hugetlb, shm=2m, shm=1g, separated by commas. Without a word
    /// transparent huge pages, which nothing has to be reserved for; with heap=hugetlb children of fork may end by
    /// SIGBUS. text: its code, on huge pages of the page cache; text=warm, text=copy, text=collapse: by this route
    /// alone
    #[arg(long, value_name = "WHAT", action = clap::ArgAction::Append)]
    huge: Vec<String>,
    /// Run on these CPUs only, such as 0-3,8
    #[arg(long, value_name = "LIST", value_parser = cpus)]
    cpus: Option<CpuSet>,
    /// Run on the CPUs of these nodes, and take all memory from them
    #[arg(long, value_name = "LIST", value_parser = nodes)]
    node: Option<NodeSet>,
    /// Start one instance for each node that has CPUs, each as with --node; {node} in an argument is its number, as
    /// is PLANISH_NODE in its environment
    #[arg(long, conflicts_with_all = ["node", "cpus"])]
    each_node: bool,
    /// Another allocator, where the system has it: jemalloc, tcmalloc, mimalloc
    #[arg(long, value_name = "NAME", value_parser = malloc)]
    malloc: Option<Allocator>,
    /// never: without transparent huge pages, with all that it starts
    #[arg(long, value_name = "MODE", value_parser = ["never"])]
    thp: Option<String>,
    /// It may lock so much memory: bytes (64M, 2G, 0) or unlimited
    #[arg(long, value_name = "SIZE", value_parser = memlock)]
    memlock: Option<u64>,
    /// Fill shared segments by so many threads, at most 64; without it by one for each CPU, at most 16
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    prefault_threads: Option<u16>,
    /// Do not fill shared segments before their first use
    #[arg(long, conflicts_with = "prefault_threads")]
    no_prefault: bool,
    /// Leave shared segments alone that are shorter than this
    #[arg(long, value_name = "SIZE", default_value = "16M", value_parser = parse_bytes)]
    min: usize,
    /// Look at its memory after so many whole seconds, at most a day; without it when its segments are placed, or after
    /// two seconds
    #[arg(long, value_name = "SECS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    verify_after: Option<u64>,
    /// Also write what was achieved to F, as JSON
    #[arg(long, value_name = "F")]
    report: Option<PathBuf>,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

const AFTER_HELP: &str = "\
Exit codes: those of the program, 128 and the signal where one ended it; and
  125  refused, or the command line is wrong: nothing was started
  126  the program cannot be run
  127  there is no such program
Stdout is the program's: with --json the object goes to --report F alone, also that of a refusal;
a command line that is wrong is told on stderr, without an object.
With --verbose the same is printed as a drop-in of systemd. For what a JVM, .NET or V8 need besides: docs/run.md";

pub(crate) fn run(args: &Args, context: &Context) -> Result<Answer, Failure> {
    match start(args, context) {
        Ok(answer) => Ok(answer),
        Err((code, failure)) => {
            let message = failure.message(&context.again(""), "planish run --help");
            let message = message.told_by(|text| context.here(text));
            Output { json: false, quiet: context.globals.quiet }.talk(&message);
            if let Some(path) = &args.report {
                // What failed may be this very file: then stderr has told it.
                let _ = write_envelope(path, None, code, vec![message]);
            }
            Ok(Answer::printed("run").code(code))
        }
    }
}

/// A failure and the exit code that it stands for.
type Stopped = (u8, Failure);

fn own(failure: Failure) -> Stopped {
    (OWN_FAILURE, failure)
}

fn refused(error: PlacementError) -> Stopped {
    let (code, cure) = (error.code(), error.cure());
    (code, Failure::refused(error).hint(cure))
}

fn start(args: &Args, context: &Context) -> Result<Answer, Stopped> {
    if context.globals.root.is_some() {
        return Err(own(Failure::usage("nothing runs on a recorded host").hint("leave --root out")));
    }
    if context.globals.json && args.report.is_none() {
        let failed = Failure::usage("stdout belongs to the program, so the JSON object has no place there");
        return Err(own(failed.hint("name a file for it: --report F")));
    }
    args.report.as_deref().map_or(Ok(()), check_writable).map_err(own)?;
    let wish = wish(args).map_err(own)?;
    let host = Host::live();
    let machine = Machine::look(&host).map_err(refused)?;
    let name = args.command[0].clone();
    let mut program = Program::find(&name, std::env::var_os("PATH").as_deref()).map_err(refused)?;
    let folder = context.preload_folder();
    let listener = if wish.wants_shared() { Some(Listener::open(&folder).map_err(refused)?) } else { None };
    let text = wish.text.map(|route| OwnText::prepare(&mut program, &folder, route)).and_then(|prepared| {
        let told = |why| warning(format!("its code stays on base pages: {why}"));
        prepared.map_err(|why| Output { json: false, quiet: context.globals.quiet }.talk(&told(why))).ok()
    });
    let others = text.as_ref().and_then(|text| text.others(&program));
    let around = Surroundings {
        host: &host,
        machine: &machine,
        folder: &folder,
        answer: listener.as_ref().map(Listener::name),
        variable: |name| std::env::var_os(name),
    };
    // All is decided before the first one runs.
    let plans: Vec<(Option<u32>, Launch)> = instances(args, &machine)
        .into_iter()
        .map(|node| {
            let nodes = node.map(|node| [node].into_iter().collect()).or(wish.nodes.clone());
            let wish = Wish { nodes, ..wish.clone() };
            let mut launch = Launch::plan(program.clone(), &wish, around)?;
            launch.notes.extend(others.clone());
            launch.variables.extend(node.map(|node| ("PLANISH_NODE", node.to_string().into())));
            Ok((node, launch))
        })
        .collect::<Result<_, PlacementError>>()
        .map_err(refused)?;
    let signals = Forward::catch().map_err(|error| own(Failure::refused(error)))?;
    let started = start_all(&name, &args.command[1..], plans)?;
    Ok(watch::run(args, context, started, watch::Around { host, machine, listener, signals, text }))
}

/// The nodes to start an instance for; none in particular without `--each-node`.
fn instances(args: &Args, machine: &Machine) -> Vec<Option<u32>> {
    if args.each_node { machine.nodes_with_cpus().iter().map(Some).collect() } else { vec![None] }
}

/// Starts every instance; where one cannot be, those before it are ended again.
fn start_all(
    name: &OsStr,
    arguments: &[OsString],
    plans: Vec<(Option<u32>, Launch)>,
) -> Result<Vec<Started>, Stopped> {
    let mut started: Vec<Started> = Vec::new();
    for (node, launch) in plans {
        let number = node.map(|node| node.to_string()).unwrap_or_default();
        let filled = |argument: &OsString| match argument.to_str() {
            Some(text) if node.is_some() => text.replace("{node}", &number).into(),
            _ => argument.clone(),
        };
        let arguments: Vec<OsString> = arguments.iter().map(filled).collect();
        match Running::start(&launch, name, &arguments) {
            Ok(running) => started.push(Started { node, launch, running }),
            Err(error) => {
                started.iter().for_each(|one| one.running.ask_to_end());
                return Err(refused(error));
            }
        }
    }
    Ok(started)
}

fn wish(args: &Args) -> Result<Wish, Failure> {
    let mut wish = Wish {
        prefault: match args.prefault_threads {
            Some(count) => Prefault::Threads(count.into()),
            None if args.no_prefault => Prefault::Never,
            None => Prefault::Usual,
        },
        bytes_min: args.min as u64,
        cpus: args.cpus.clone(),
        nodes: args.node.clone(),
        malloc: args.malloc,
        without_thp: args.thp.is_some(),
        memlock_bytes: args.memlock,
        ..Wish::default()
    };
    let numa = args.numa.iter().try_for_each(|text| parse_numa(text, &mut wish));
    let numa = numa.map_err(|why| format!("--numa: {why}"));
    let huge = numa.and_then(|()| {
        let huge = args.huge.iter().try_for_each(|text| parse_huge(text, &mut wish));
        huge.map_err(|why| format!("--huge: {why}"))
    });
    huge.map(|()| wish).map_err(Failure::usage)
}

fn malloc(text: &str) -> Result<Allocator, String> {
    let named = Allocator::ALL.into_iter().find(|malloc| malloc.word() == text);
    named.ok_or_else(|| "jemalloc, tcmalloc or mimalloc".to_owned())
}

fn memlock(text: &str) -> Result<u64, String> {
    if text == "unlimited" {
        return Ok(u64::MAX);
    }
    planish_sys::parse_bytes(text).ok_or_else(|| "bytes, such as 64M, 2G or 0, or unlimited".to_owned())
}

/// Writes the JSON object of a run.
fn write_envelope(
    path: &std::path::Path,
    report: Option<&RunReport>,
    code: u8,
    messages: Vec<Message>,
) -> Result<(), Failure> {
    let mut envelope = Envelope::new("run", Exit::Done, report, messages);
    envelope.exit = code;
    let text = serde_json::to_string_pretty(&envelope).expect("an envelope is plain data");
    write_file(path, &format!("{text}\n"))
}

/// One line of talk.
fn warning(text: impl Into<String>) -> Message {
    Message::new(Level::Warning, text)
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use planish_model::{Catalogue, KnobId};

    use super::PlacementError;
    use crate::args::Cli;

    #[test]
    fn what_a_refusal_tells_to_type_can_be_typed() {
        let catalogue = Catalogue::embedded().expect("the embedded one is sound");
        let mode = || "never".to_owned();
        let refusals = [
            PlacementError::NoPool { page_bytes: 2 << 20 },
            PlacementError::EmptyPool { page_bytes: 2 << 20 },
            PlacementError::NoShmemThp { mode: mode() },
            PlacementError::NoThp { mode: mode() },
            PlacementError::NoNode { missing: [9].into_iter().collect(), known: [0].into_iter().collect() },
        ];
        for refusal in refusals {
            let cure = refusal.cure();
            let line = cure.find("planish ").map(|at| cure[at..].split([';', ',', ')']).next().expect("one"));
            let words: Vec<&str> = line.unwrap_or_else(|| panic!("{cure}")).split(' ').collect();
            assert!(Cli::try_parse_from(&words).is_ok(), "{words:?} of: {cure}");
            if let ["planish", "knobs", knob] = words[..] {
                assert!(catalogue.knob(&KnobId::new(knob)).is_ok(), "{knob}");
            }
        }
    }
}
