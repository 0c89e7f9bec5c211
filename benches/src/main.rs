//! The benchmarks behind `./x bench NAME`: each row is measured here and now, beside the limit that it
//! must keep.
//!
//! They start the real binary, as a user does. Time is the wall clock of a whole process, with the
//! interval of its median; shares of simulated experiments carry their exact binomial interval. The
//! time-series kernels are timed in this process, for a process takes longer to start than they to run.

#![deny(unsafe_code)]
#![expect(clippy::disallowed_methods, reason = "it reads the checkout and its own files, never a host")]

mod builds;
mod host;
mod laid_out;
mod large;
mod memory;
mod own_text;
mod process;
mod recorded;
mod recording;
mod restored;
mod rounds;
mod row;
mod series;
mod simulated;
mod spine;
mod text;

use anyhow::{Context, Result};
use clap::Parser;
use planish_kernels::Isa;
use row::Rows;
use std::path::PathBuf;
use std::process::ExitCode;

/// Measure what planish must keep
#[derive(Parser)]
struct Arguments {
    /// Which benchmark
    name: Name,
    /// Write the figures as JSON too
    #[arg(long, value_name = "F")]
    json: Option<PathBuf>,
    /// Write the table as a page of Markdown too
    #[arg(long, value_name = "F")]
    page: Option<PathBuf>,
    /// How the page came to be, as it tells it
    #[arg(long, value_name = "TEXT", requires = "page", default_value = "")]
    written: String,
    /// For spine, host, memory and text: the release binary
    #[arg(long, value_name = "FILE")]
    planish: Option<PathBuf>,
    /// For text: only rows whose name has this in it
    #[arg(long, value_name = "WORDS", conflicts_with = "page")]
    only: Option<String>,
    /// For text: a PostgreSQL that lld has linked, for the row of its pages that are brought back, instead of the one
    /// that `prove text` builds
    #[arg(long, value_name = "FILE")]
    postgres: Option<PathBuf>,
    /// For series: a folder with hand-tuned kernels.c to be measured against
    #[arg(long, value_name = "FOLDER")]
    reference: Option<PathBuf>,
    /// For builds: one of them, as NAME=PROGRAM or NAME=PROGRAM:LIBRARY; the first is what others are measured over
    #[arg(long, value_name = "BUILD")]
    build: Vec<builds::Build>,
    /// For a process that `memory` or `text` measures: its part
    #[arg(long, value_name = "WORD", hide = true)]
    role: Option<String>,
    /// For series: instructions to use (avx512, avx2, neon, scalar) instead of the widest
    #[arg(long, value_name = "NAME")]
    isa: Option<String>,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Name {
    /// Start, doctor, apply, binary, trial overhead, false keeps
    Spine,
    /// The whole catalogue: doctor, plan, apply and check, memory; beside what others take
    Host,
    /// Time-series kernels: fixed limits, and the ratio to hand-tuned C; durable tables, ingest
    Series,
    /// planish-series by how it was built: size, speed, order, profile, allocators
    Builds,
    /// Maps of a large server and of a splintered process; calls under the preload; arenas: bump allocation,
    /// partitions, prefault, random access
    Memory,
    /// A process that is measured, or that holds pages for one
    #[value(hide = true)]
    Server,
    /// Orders of a large program, import of a large recording; what a recording costs; the own text on huge pages
    Text,
}

fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    let mut rows = Rows::default();
    match arguments.name {
        Name::Spine => {
            let planish = arguments.planish.as_deref().context("spine wants --planish FILE")?;
            spine::measure(planish, &mut rows)?;
        }
        Name::Host => {
            host::measure(arguments.planish.as_deref().context("host wants --planish FILE")?, &mut rows)?;
        }
        Name::Memory => {
            memory::measure(arguments.planish.as_deref().context("memory wants --planish FILE")?, &mut rows)?;
        }
        Name::Server => {
            match arguments.role.as_deref().context("server wants --role WORD")? {
                "text" => own_text::serve()?,
                "busy" => recording::serve()?,
                role => memory::serve(role)?,
            }
            return Ok(ExitCode::SUCCESS);
        }
        Name::Series => {
            let isa = arguments.isa.as_deref().map_or(Some(Isa::best()), Isa::named);
            let isa = isa.context("this CPU does not have these instructions")?;
            series::measure(arguments.reference.as_deref(), isa, &mut rows)?;
        }
        Name::Builds => builds::measure(&arguments.build, &mut rows)?,
        Name::Text => {
            let planish = arguments.planish.as_deref().context("text wants --planish FILE")?;
            rows = Rows::only(arguments.only.clone());
            text::measure(planish, arguments.postgres.as_deref(), &mut rows)?;
        }
    }
    rows.print();
    if let Some(file) = &arguments.json {
        rows.write_json(file)?;
    }
    if let Some(file) = &arguments.page {
        let name = clap::ValueEnum::to_possible_value(&arguments.name).context("it was named")?;
        rows.write_page(file, &format!("`./x bench {}`", name.get_name()), &arguments.written)?;
    }
    // The contract's 1: there are findings, here figures over their limit.
    Ok(ExitCode::from(u8::from(!rows.all_kept())))
}
