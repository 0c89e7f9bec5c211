//! `planish size`

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use planish_model::{Catalogue, Exit, KnobId, Nodes, Profile, Sizing, Want, quoted};
use planish_pipeline::{self as pipeline, Service, SizeRequest};
use planish_report::units;
use planish_workload::parse_bytes;

use crate::answer::Answer;
use crate::commands::plan::{asks_for_huge_pages, file_argument};
use crate::commands::{service, write_new_file};
use crate::context::Context;
use crate::failure::Failure;

/// Largest `--headroom`, in percent.
const HEADROOM_MAX: u32 = 400;

/// Compute how many huge pages a service needs on each node, and show the arithmetic
///
/// Exit code 1: no node can give that much.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("subject").required(true))]
pub(crate) struct Args {
    /// A running service: its shared segments are read from its maps, of several processes of a name those of the one
    /// with most resident memory
    #[arg(value_name = "NAME|PID", group = "subject")]
    service: Option<String>,
    /// So many bytes, such as 24G
    #[arg(long, value_name = "N", group = "subject", value_parser = bytes)]
    bytes: Option<usize>,
    /// N regions of BYTES each: every region is rounded up to whole pages
    #[arg(long, value_name = "N,BYTES", group = "subject", value_parser = regions)]
    regions: Option<(u64, u64)>,
    /// What the PostgreSQL server with this data folder would ask for; it need not run
    #[arg(long, value_name = "DATA", group = "subject")]
    postgres: Option<PathBuf>,
    /// The PostgreSQL server program; found by the version in the folder without this
    #[arg(long, value_name = "PROGRAM", requires = "postgres")]
    postgres_program: Option<PathBuf>,
    /// Add this much to what is needed
    #[arg(long, value_name = "PERCENT", value_parser = percent, allow_negative_numbers = true)]
    headroom: Option<u32>,
    /// Pages of this size alone, such as 1G; without it all sizes are told, and --output takes the smallest that can be
    /// had
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    page_size: Option<usize>,
    /// Save a profile that wants the pool of --bytes, --regions or --postgres, for `planish plan FILE`
    #[arg(long, short, value_name = "FILE", conflicts_with = "service")]
    output: Option<PathBuf>,
}

/// `10` or `10%`.
fn percent(text: &str) -> Result<u32, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim().parse();
    let percent = number.ok().filter(|percent| *percent <= HEADROOM_MAX);
    percent.ok_or_else(|| format!("a whole number of percent, from 0 to {HEADROOM_MAX}"))
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<Answer, Failure> {
    let session = context.session()?;
    let request = args.request();
    let mut sizing: Sizing = pipeline::size(&session, &request, args.headroom)?;
    if let Some(page_bytes) = args.page_size {
        of_pages(&mut sizing, page_bytes as u64, context)?;
    }
    let mut answer = context.answer(&sizing, session.catalogue());
    if !sizing.rows.is_empty() && sizing.rows.iter().all(|row| row.refused.is_some()) {
        answer = answer.exit(Exit::Findings).warning("no node can give that much");
    }
    if sizing.need_bytes == 0 {
        answer = answer.note("it maps no shared memory, which is what pools are sized for: see planish map");
    }
    let named = match &request {
        SizeRequest::Service(Service::Pid(pid)) => pid.to_string(),
        SizeRequest::Service(Service::Name(name)) => name.clone(),
        // A server that runs does not say what it would need: no plan can be for the service yet.
        SizeRequest::Postgres { .. } | SizeRequest::Bytes(_) | SizeRequest::Regions { .. } => {
            return unnamed(args, &sizing, session.catalogue(), answer, context);
        }
    };
    let program = sizing.service.as_deref().unwrap_or(&named);
    if let Some(note) = of_postgres(program, context) {
        answer = answer.note(note);
    }
    let profile = session.catalogue().profile_for(program, None).unwrap_or("PROFILE");
    Ok(answer.next(context.line(&format!("plan {profile} --service {}", quoted(&named)))))
}

/// Leaves pages of one size of a sizing.
fn of_pages(sizing: &mut Sizing, page_bytes: u64, context: &Context) -> Result<(), Failure> {
    let sizes: BTreeSet<u64> = sizing.rows.iter().map(|row| row.page_bytes).collect();
    if !sizes.is_empty() && !sizes.contains(&page_bytes) {
        let here: Vec<String> = sizes.into_iter().map(units::bytes).collect();
        let told = format!(
            "this host has no huge pages of {}, but of {}",
            units::bytes(page_bytes),
            here.join(", ")
        );
        return Err(Failure::usage(told)
            .hint(format!("all of them: {}", context.again_without(&[], &["--page-size"], ""))));
    }
    let of_size = format!("pages of {}:", units::bytes(page_bytes));
    sizing.rows.retain(|row| row.page_bytes == page_bytes);
    sizing.arithmetic.retain(|line| !line.starts_with("pages of ") || line.starts_with(&of_size));
    Ok(())
}

/// Who tells exactly what PostgreSQL would take, and what has it take that.
fn of_postgres(program: &str, context: &Context) -> Option<String> {
    (program == "postgres").then(|| asks_for_huge_pages(context))
}

/// What a profile must say to have the pool of a need that no running service has, since no plan takes bytes.
fn unnamed(
    args: &Args,
    sizing: &Sizing,
    catalogue: &Catalogue,
    answer: Answer,
    context: &Context,
) -> Result<Answer, Failure> {
    let Some(pool) = Pool::of(sizing, catalogue) else {
        return Ok(answer.note("planish sets no pool of this host").next(context.line("topo")));
    };
    if let Some(path) = &args.output {
        if let Some(why) = &pool.refused {
            let told = format!("{} is not written, since a plan of it is refused: {why}", path.display());
            let refused = Failure::refused(told).hint("ask for less, or on a machine with more memory");
            let refused = refused.message(&context.again(""), "planish size --help");
            return Ok(answer.exit(Exit::Refused).message(refused).next(context.line("topo")));
        }
        let answer = match &args.postgres {
            Some(_) => answer.note(asks_for_huge_pages(context)),
            None => answer,
        };
        let parent = args.postgres.as_ref().and_then(|_| catalogue.profile_for("postgres", None));
        write_profile(path, &pool, sizing, parent)?;
        return Ok(answer.next(context.line(&format!("plan {}", quoted(&file_argument(path, "json"))))));
    }
    let answer = answer.note(format!(
        "no plan takes bytes: a profile of your own wants {}, headroom included (docs/profiles.md), as --output FILE \
         writes it; or name the service once it runs",
        pool.want.toml_line(pool.knob)
    ));
    // A plan of what the host cannot give would be refused: less, or more memory, is for the user to decide.
    let next =
        if pool.refused.is_some() { context.line("topo") } else { context.again("--output ./mine.toml") };
    Ok(answer.next(next))
}

/// The pool that is proposed for a sizing: that of the smallest pages which the host can give.
struct Pool<'a> {
    knob: &'a KnobId,
    /// All its pages, headroom included: a plan adds nothing to what a profile needs.
    want: Want,
    /// Why the host cannot give it, so that a plan would be refused.
    refused: Option<String>,
}

impl<'a> Pool<'a> {
    fn of(sizing: &Sizing, catalogue: &'a Catalogue) -> Option<Self> {
        let sizes: BTreeSet<u64> = sizing.rows.iter().map(|row| row.page_bytes).collect();
        let pools = sizes.into_iter().filter_map(|page_bytes| {
            let rows = || sizing.rows.iter().filter(|row| row.page_bytes == page_bytes);
            // The pools of nodes; on a kernel without them, a plan takes the one of all for that.
            let path = format!(
                "/sys/devices/system/node/node{{node}}/hugepages/hugepages-{}kB/nr_hugepages",
                page_bytes / 1024
            );
            let need_bytes = rows().map(|row| row.bytes).sum();
            Some(Self {
                knob: &catalogue.knobs().find(|knob| knob.path == path)?.id,
                want: Want::Need { need_bytes, nodes: Nodes::Spread },
                refused: rows().find_map(|row| row.refused.clone()),
            })
        });
        pools.min_by_key(|pool| pool.refused.is_some())
    }
}

/// A profile that wants the pool over what its parent wants, with how it was computed. One that is there may have been
/// edited, and stays.
fn write_profile(path: &Path, pool: &Pool<'_>, sizing: &Sizing, parent: Option<&str>) -> Result<(), Failure> {
    let name = path.file_stem().and_then(|stem| Profile::name_from(&stem.to_string_lossy()));
    let Some(name) = name.filter(|_| path.extension().is_some_and(|ending| ending == "toml")) else {
        let failure = Failure::usage(format!("{} is no name for a profile", path.display()));
        return Err(failure.hint("a file is taken for a profile where its name ends in .toml"));
    };
    let summary = format!("Huge pages for {}, with {} % headroom.", sizing.subject, sizing.headroom_percent);
    let profile = Profile {
        name,
        summary,
        inherits: parent.map(str::to_owned).into_iter().collect(),
        want: [(pool.knob.clone(), pool.want.clone())].into(),
        placement: None,
        ..Profile::default()
    };
    let arithmetic: String = sizing.arithmetic.iter().map(|line| format!("# {line}\n")).collect();
    write_new_file(path, &(arithmetic + &profile.to_toml()))
}

impl Args {
    fn request(&self) -> SizeRequest {
        if let Some(name) = &self.service {
            return SizeRequest::Service(service(name));
        }
        if let Some((count, bytes)) = self.regions {
            return SizeRequest::Regions { count, bytes };
        }
        if let Some(data) = &self.postgres {
            return SizeRequest::Postgres { data: data.clone(), program: self.postgres_program.clone() };
        }
        let bytes = self.bytes.expect("the group is required");
        SizeRequest::Bytes(u64::try_from(bytes).expect("an address is 64 bits at most"))
    }
}

/// The most that is sized, in bytes: the arithmetic of pages must not overflow for anything that is let in.
const TOTAL_MAX: usize = 1 << 50;

/// `24G`.
fn bytes(text: &str) -> Result<usize, String> {
    let bytes = parse_bytes(text).map_err(|error| error.to_string())?;
    if bytes <= TOTAL_MAX { Ok(bytes) } else { Err("at most 1 PiB".to_owned()) }
}

/// `3,1G`: three regions of one gibibyte.
fn regions(text: &str) -> Result<(u64, u64), String> {
    const WANTED: &str = "regions are written as N,BYTES, such as 3,1G";
    let (count, bytes) = text.split_once(',').ok_or(WANTED)?;
    let count: u64 = count.trim().parse().map_err(|_| WANTED)?;
    let bytes = parse_bytes(bytes.trim()).map_err(|error| error.to_string())?;
    let bytes = u64::try_from(bytes).expect("an address is 64 bits at most");
    match count.checked_mul(bytes) {
        Some(total) if total > 0 && total <= TOTAL_MAX as u64 => Ok((count, bytes)),
        _ => Err("from one byte to 1 PiB in all".to_owned()),
    }
}
