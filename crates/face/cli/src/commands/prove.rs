//! `planish prove`

use std::path::PathBuf;

use clap::Subcommand;
use planish_model::Catalogue;
use planish_report::{ProveConnReport, ProveReport};
use planish_trial::postgres::{PostgresOptions, SCALE_MAX, inspect};
use planish_trial::prove::{self, TextOptions};
use planish_workload::parse_bytes;

use crate::answer::Answer;
use crate::context::Context;
use crate::failure::Failure;
use crate::running::{Running, outcome_answer};

/// Prove on this machine what page sizes and placement are worth
///
/// Everything that is changed for it is put back at the end, on Ctrl-C, and by `planish undo --all` after a kill.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    running: Running,
    #[command(subcommand)]
    what: Option<What>,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Time-series queries of the embedded engine on 4 KB, transparent, 2 MB and 1 GB pages (the default)
    Series,
    Postgres(Postgres),
    /// Scans on several nodes: memory as first use has it, all of it, the shared part alone, or none of it spread
    ///
    /// On a machine of one node the placement is checked, and nothing is measured.
    Numa,
    Text(Text),
}

/// PostgreSQL, compiled here, with its code ordered, laid out by BOLT, and on huge pages
///
/// Needs clang, lld, make, bison and flex, and brings the source by apt, of which nothing is changed. The first time it
/// compiles for some minutes, and what it has built is kept.
#[derive(Debug, clap::Args)]
struct Text {
    /// As a server under a load at a fixed rate, instead of one backend at its full speed
    #[arg(long)]
    load: bool,
    /// Where to build, and to keep what was built; without this a folder in /var/tmp
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
    /// An unpacked source of PostgreSQL, instead of the package of this distribution
    #[arg(long, value_name = "DIR")]
    source: Option<PathBuf>,
}

/// PostgreSQL on 4 KB, transparent, 2 MB and 1 GB pages, on clusters of its own
#[derive(Debug, clap::Args)]
struct Postgres {
    /// Rows in units of 100,000; without this as many as memory allows
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=SCALE_MAX))]
    scale: Option<u64>,
    /// Shared buffers of each server; without this a tenth more than the data
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    shared_buffers: Option<usize>,
    /// Clients of each server
    #[arg(long, value_name = "N", default_value = "1", value_parser = clients)]
    clients: usize,
    /// A pgbench script instead of lookups; it may only read
    #[arg(long, value_name = "FILE.sql")]
    workload: Option<PathBuf>,
    /// The folder of the programs postgres and initdb
    #[arg(long, value_name = "DIR")]
    bin: Option<PathBuf>,
    /// Only read this existing cluster, and propose the lines for its postgresql.conf
    #[arg(long, value_name = "CONN", conflicts_with_all = ["scale", "shared_buffers", "clients", "workload", "bin"])]
    conn: Option<String>,
}

impl Args {
    pub fn name(&self) -> &'static str {
        match &self.what {
            Some(What::Postgres(Postgres { conn: Some(_), .. })) => "prove-conn",
            _ => "prove",
        }
    }
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<Answer, Failure> {
    if let Some(What::Postgres(Postgres { conn: Some(conn), .. })) = &args.what {
        args.running.refuse_beside("--conn", "which only reads a cluster and measures nothing", context)?;
        return look_at(conn, context);
    }
    let session = args.running.session(context)?;
    let (options, mut progress) = args.running.start(context)?;
    let outcome = match &args.what {
        None | Some(What::Series) => prove::series(&session, &options, &mut progress)?,
        Some(What::Numa) => prove::numa(&session, &options, &mut progress)?,
        Some(What::Postgres(wishes)) => {
            prove::postgres(&session, &wishes.options(), &options, &mut progress)?
        }
        Some(What::Text(wishes)) => prove::text(&session, &wishes.options()?, &options, &mut progress)?,
    };
    drop(progress);
    Ok(outcome_answer(outcome, ProveReport, &args.running, context))
}

/// Reads an existing cluster; nothing of it is changed.
fn look_at(conn: &str, context: &Context) -> Result<Answer, Failure> {
    let meminfo = context.host()?.read("/proc/meminfo").unwrap_or_default();
    let size = meminfo.lines().find_map(|line| line.strip_prefix("Hugepagesize:"));
    let size_kb = size.and_then(|size| size.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    let found = inspect(conn, size_kb.map(|kb| kb * 1024))?;
    let answer = context.answer(&ProveConnReport(found), &Catalogue::default());
    Ok(answer.next(context.line("size postgres")))
}

impl Postgres {
    fn options(&self) -> PostgresOptions {
        PostgresOptions {
            scale: self.scale,
            shared_buffers_bytes: self.shared_buffers.map(|bytes| bytes as u64),
            clients: self.clients,
            workload: self.workload.clone(),
            bin_folder: self.bin.clone(),
        }
    }
}

impl Text {
    fn options(&self) -> Result<TextOptions, Failure> {
        let source = self.source.as_ref().map(|path| {
            let whole = std::fs::canonicalize(path).ok().filter(|path| path.join("configure").is_file());
            whole.ok_or_else(|| {
                Failure::usage(format!("{} has no `configure` of PostgreSQL", path.display()))
                    .hint("name an unpacked source: tar -xf postgresql-VERSION.tar.bz2")
            })
        });
        Ok(TextOptions { load: self.load, folder: self.folder.clone(), source: source.transpose()? })
    }
}

/// Clients of one server: more than a machine has CPUs measure the scheduler.
fn clients(text: &str) -> Result<usize, &'static str> {
    let count = text.parse().map_err(|_| "a whole number is wanted")?;
    if (1..=1024).contains(&count) { Ok(count) } else { Err("from 1 to 1024") }
}
