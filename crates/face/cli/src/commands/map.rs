//! `planish map`

use std::path::PathBuf;

use planish_host::Host;
use planish_model::{Catalogue, Exit};
use planish_pipeline::{Service, running_like};
use planish_report::{MapBacking, MapKind, MapReport, map_html};
use planish_residency::{Map, ResidencyError, Who, hides_processes, is_named, status, sum_of};
use planish_trial::postgres::{Query, layout};

use crate::answer::Answer;
use crate::commands::{check_page, service, write_page};
use crate::context::Context;
use crate::failure::Failure;

/// PIDs that a warning lists.
const LISTED_MAX: usize = 8;

/// Show where the memory of a process lies: what it is for, on which pages, on which node
///
/// No page is touched and nothing is allocated in any process but this one. Memory that processes share is told by
/// what is in it, whoever has mapped it.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A process id, or the name of a program: of processes that started each other the first is meant
    #[arg(value_name = "NAME|PID", required_unless_present = "postgres")]
    service: Option<String>,
    /// All processes that descend from it too; what they share counts once
    #[arg(long)]
    tree: bool,
    /// Ask the PostgreSQL server behind this connection string what its shared memory holds, and lay it over the map
    /// of all its processes
    #[arg(long, value_name = "CONN")]
    postgres: Option<String>,
    /// Run this statement in a session of its own, which changes no table, and tell what it changed in memory: the map
    /// is made before and after it, with its backend among the processes. What functions and COPY TO of a superuser do
    /// outside of tables is not held back
    #[arg(long, value_name = "SQL", requires = "postgres")]
    query: Option<String>,
    /// Also draw the address space into this HTML file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<Answer, Failure> {
    args.html.as_deref().map_or(Ok(()), check_page)?;
    let host = context.host()?;
    let named = args.service.as_deref().map(|named| match service(named) {
        Service::Pid(pid) => Who::Pid(pid),
        Service::Name(name) => Who::Name(name),
    });
    let look = || look(args, named.clone(), &host, context);
    let report = match (&args.postgres, &args.query) {
        (Some(conn), Some(sql)) => {
            let mut query = Query::open(conn)?;
            let before = look()?;
            let queried = query.run(sql)?;
            look()?.after_query(&before, query.backend(), &queried)
        }
        _ => look()?,
    };
    if let Some(file) = &args.html {
        write_page(file, &map_html(&report))?;
    }
    let mut answer = context.answer(&report, &Catalogue::default());
    if let Some(warning) = denied(&report) {
        answer = answer.warning(warning);
    }
    let tree = args.tree || args.postgres.is_some();
    let below = !tree && report.processes.first().is_some_and(|first| is_parent(&host, first.pid));
    Ok(answer.next(context.line(&next(&report, below))))
}

/// The map as it is now, with what the server says of it, if one is to be asked.
fn look(args: &Args, named: Option<Who>, host: &Host, context: &Context) -> Result<MapReport, Failure> {
    let layout = args.postgres.as_deref().map(layout).transpose()?;
    let who = match (named, &layout) {
        (named, Some(layout)) => server(named, layout.postmaster, host)?,
        (named, None) => named.expect("clap requires it without --postgres"),
    };
    let tree = args.tree || layout.is_some();
    let map = Map::read(host, &who, tree)
        .map_err(|error| failure(error, &who, host, &again(args, context), context))?;
    Ok(match &layout {
        Some(layout) => MapReport::of_postgres(&map, layout),
        None => MapReport::from(&map),
    })
}

/// The server that answered, which must be the one that was named, if one was.
fn server(named: Option<Who>, postmaster: u32, host: &Host) -> Result<Who, Failure> {
    let is_named = match &named {
        None => true,
        Some(Who::Pid(pid)) => *pid == postmaster,
        Some(Who::Name(name)) => status(host, postmaster).is_ok_and(|status| is_named(&status.name, name)),
    };
    if is_named {
        return Ok(Who::Pid(postmaster));
    }
    Err(Failure::usage(format!(
        "the server behind --postgres is process {postmaster}, not the one that is named"
    )))
}

/// What to type next: the whole service, then the pool that its shared memory would need.
fn next(report: &MapReport, below: bool) -> String {
    let pid = report.processes.first().map_or(0, |process| process.pid);
    if below {
        return format!("map {pid} --tree");
    }
    let shared = report.rows.iter().filter(|row| row.kind == MapKind::Shared);
    let on_base = sum_of(shared.filter(|row| row.backing == MapBacking::Base).map(|row| row.resident_bytes));
    // Where a fair part of it could be on huge pages.
    if on_base >= 16 << 20 { format!("size {pid}") } else { "doctor".to_owned() }
}

/// What is to be said where some processes were seen, and others may not be.
fn denied(report: &MapReport) -> Option<String> {
    let listed: Vec<String> = report.denied.iter().take(LISTED_MAX).map(ToString::to_string).collect();
    let more = report.denied.len().saturating_sub(LISTED_MAX);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let (all, count) = (report.processes.len() + report.denied.len(), report.denied.len());
    let text = format!(
        "the memory of {count} of {all} processes may not be seen, and is in no sum: {}{more}; `Not seen` has what any \
         user may know of them",
        listed.join(", ")
    );
    (count > 0).then_some(text)
}

/// Whether a process has children.
fn is_parent(host: &Host, pid: u32) -> bool {
    let children = host.read(&format!("/proc/{pid}/task/{pid}/children"));
    children.is_ok_and(|children| !children.trim().is_empty())
}

/// The same line for root. A connection string that may hold a password is not repeated.
fn again(args: &Args, context: &Context) -> String {
    let is_secret = |conn: &str| conn.contains("password") || conn.contains('@');
    context.as_root(match &args.postgres {
        Some(conn) if is_secret(conn) => context.again_without(&[], &["--postgres"], "--postgres CONN"),
        _ => context.again(""),
    })
}

/// What still works where the memory may not be seen: the cheap facts, which any user may know, and `again` as root.
pub(super) fn failure(
    error: ResidencyError,
    who: &Who,
    host: &Host,
    again: &str,
    context: &Context,
) -> Failure {
    // What is hidden and what is not there look alike.
    let hidden = matches!(error, ResidencyError::NoProcess { .. }) && hides_processes(host);
    let exit = match error {
        _ if hidden => Exit::Refused,
        ResidencyError::NoProcess { .. }
        | ResidencyError::Several { .. }
        | ResidencyError::Thread { .. }
        | ResidencyError::Ended { .. }
        | ResidencyError::EndedMeanwhile { .. } => Exit::Usage,
        _ => Exit::Refused,
    };
    // Whose memory it is, be it below the one that was named.
    let denied = match &error {
        ResidencyError::Denied { process, .. } => Some(process.parse::<u32>().ok()),
        _ => None,
    };
    let cure = match hidden {
        true => {
            Some("run as root (CAP_SYS_PTRACE), or as a member of the group of that mount (gid=)".to_owned())
        }
        false => error.cure(),
    };
    let meant = match (&error, who) {
        (ResidencyError::NoProcess { .. }, Who::Name(name)) => {
            context.session().ok().and_then(|session| running_like(&session, name))
        }
        _ => None,
    };
    let mut failure = match meant {
        Some(meant) => Failure::new(exit, format!("{error}; did you mean `{meant}`?")),
        None if hidden => {
            let hides = "/proc is mounted with hidepid, which hides those of other users";
            Failure::new(exit, format!("{error} is seen: {hides}"))
        }
        None => Failure::new(exit, error),
    };
    if let Some(cure) = cure {
        failure = failure.hint(cure);
    }
    if let Some(Some(pid)) = denied
        && let Ok(status) = status(host, pid)
    {
        let mib = |bytes: u64| planish_report::units::bytes(bytes);
        failure = failure.hint(format!(
            "what any user may know of {}: {} resident, {} on hugetlb pages, {} of page tables, {} in swap",
            status.name,
            mib(status.resident_bytes.saturating_add(status.hugetlb_bytes)),
            mib(status.hugetlb_bytes),
            mib(status.page_table_bytes),
            mib(status.swap_bytes)
        ));
    }
    if denied.is_some() || hidden { failure.hint(again) } else { failure }
}
