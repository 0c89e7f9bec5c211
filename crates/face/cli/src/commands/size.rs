//! `planish size`

use std::path::PathBuf;

use planish_model::{Sizing, quoted};
use planish_pipeline::{self as pipeline, Service, SizeRequest};
use planish_workload::parse_bytes;

use crate::answer::Answer;
use crate::commands::service;
use crate::context::Context;
use crate::failure::Failure;

/// Compute how many huge pages a service needs on each node, and show the arithmetic
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("subject").required(true))]
pub(crate) struct Args {
    /// A running service: its shared segments are read from its maps
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
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u32).range(0..=400))]
    headroom: Option<u32>,
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<Answer, Failure> {
    let session = context.session()?;
    let request = args.request();
    let sizing: Sizing = pipeline::size(&session, &request, args.headroom)?;
    let mut answer = context.answer(&sizing, session.catalogue());
    if !sizing.rows.is_empty() && sizing.rows.iter().all(|row| row.refused.is_some()) {
        answer = answer.warning("no node can give that much");
    }
    if sizing.need_bytes == 0 {
        answer = answer.note("it maps no shared memory, which is what pools are sized for: see planish map");
    }
    let named = match &request {
        SizeRequest::Service(Service::Pid(pid)) => pid.to_string(),
        SizeRequest::Service(Service::Name(name)) => name.clone(),
        SizeRequest::Postgres { .. } => "postgres".to_owned(),
        SizeRequest::Bytes(_) | SizeRequest::Regions { .. } => "NAME".to_owned(),
    };
    let program = sizing.service.as_deref().unwrap_or(&named);
    let profile = session.catalogue().profile_for(program).unwrap_or("PROFILE");
    if let SizeRequest::Bytes(bytes) = request {
        answer = answer.note(format!(
            "no plan takes bytes: want a pool such as hugepages.2m in a profile of your own, with need_bytes = {bytes} \
             (docs/profiles.md), or name the service once it runs"
        ));
        return Ok(answer.next(context.line("plan ./mine.toml")));
    }
    Ok(answer.next(context.line(&format!("plan {profile} --service {}", quoted(&named)))))
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
