//! `planish size`: how many huge pages a service needs, with the arithmetic.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use planish_decide::{DEFAULT_HEADROOM_PERCENT, Region, SizeRequest as Regions};
use planish_host::Host;
use planish_model::{Observation, Sizing, units};
use planish_residency::{Process, ResidencyError, processes_named};
use tracing::info_span;

use crate::error::PipelineError;
use crate::meant::no_service;
use crate::session::Session;

/// A running service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Service {
    /// By process id.
    Pid(u32),
    /// By the name of its program, as the kernel shows it: at most 15 bytes.
    Name(String),
}

/// What is to be sized.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SizeRequest {
    /// The shared segments that a running service maps.
    Service(Service),
    /// So many bytes.
    Bytes(u64),
    /// Regions of one size: each is rounded up to whole pages by itself.
    Regions {
        /// How many.
        count: u64,
        /// Bytes of each.
        bytes: u64,
    },
    /// What a PostgreSQL server that is not running says that it will need (PostgreSQL 15 and newer).
    Postgres {
        /// Its data or configuration folder.
        data: PathBuf,
        /// The server program; found by the version in the folder without it.
        program: Option<PathBuf>,
    },
}

/// The pools that a service needs on this host, one alternative for each page size.
///
/// # Errors
/// No such service, maps that we may not read, a server that does not tell.
pub fn size(
    session: &Session,
    request: &SizeRequest,
    headroom_percent: Option<u32>,
) -> Result<Sizing, PipelineError> {
    size_on(session, &session.observe(), request, headroom_percent)
}

/// The same for a command that has looked at the host already: one pass over it is enough.
pub(crate) fn size_on(
    session: &Session,
    observation: &Observation,
    request: &SizeRequest,
    headroom_percent: Option<u32>,
) -> Result<Sizing, PipelineError> {
    let _stage = info_span!("size").entered();
    let headroom_percent = headroom_percent.unwrap_or(DEFAULT_HEADROOM_PERCENT);
    let regions = Regions { headroom_percent, ..regions(session, observation, request)? };
    Ok(planish_decide::size(observation, &regions))
}

/// What is sized, and its regions; the headroom is the caller's.
fn regions(
    session: &Session,
    observation: &Observation,
    request: &SizeRequest,
) -> Result<Regions, PipelineError> {
    let one = |subject: String, name: String, count, bytes| Regions {
        subject,
        service: None,
        regions: vec![Region { name, count, bytes, pool_page_bytes: None }],
        private_bytes: 0,
        headroom_percent: 0,
    };
    Ok(match request {
        SizeRequest::Bytes(bytes) => one(units::bytes(*bytes), "region".to_owned(), 1, *bytes),
        SizeRequest::Regions { count, bytes } => {
            one(format!("{count} regions of {}", units::bytes(*bytes)), "region".to_owned(), *count, *bytes)
        }
        SizeRequest::Service(service) => of_service(session, observation, service)?,
        SizeRequest::Postgres { data, program } => {
            let (pages, page_bytes) = postgres_pages(session.host(), data, program.as_deref())?;
            // One segment, whatever it is counted in: pages of another size share it out anew.
            let name = format!("shared_memory_size_in_huge_pages, {pages} of {}", units::bytes(page_bytes));
            one(format!("postgres in {}", data.display()), name, 1, pages.saturating_mul(page_bytes))
        }
    })
}

/// The segments of the process that stands for a service, or of the next one, where it may not be read.
fn of_service(
    session: &Session,
    observation: &Observation,
    service: &Service,
) -> Result<Regions, PipelineError> {
    let host = session.host();
    let name = match service {
        Service::Pid(pid) => pid.to_string(),
        Service::Name(name) => name.clone(),
    };
    let pids = match service {
        Service::Pid(pid) => vec![*pid],
        Service::Name(name) => processes_named(host, name),
    };
    let mut refused = None;
    let found = pids.into_iter().find_map(|pid| {
        let process = Process::read(host, pid).map_err(|error| refused = Some(error)).ok()?;
        Some((pid, process))
    });
    let Some((pid, process)) = found else {
        return Err(match refused {
            None | Some(ResidencyError::NoProcess { .. }) => no_service(session, name),
            Some(source) => PipelineError::ServiceMaps { service: name, source },
        });
    };
    let smallest_page = observation.host.huge_page_bytes.iter().min().copied().unwrap_or(0);
    let worth_a_page = process.segments().into_iter().filter(|segment| segment.bytes >= smallest_page);
    let regions = worth_a_page.map(|segment| Region {
        count: 1,
        bytes: segment.bytes,
        pool_page_bytes: segment.is_hugetlb.then_some(segment.page_bytes),
        name: segment.name,
    });
    let name = process.status.name.clone();
    Ok(Regions {
        subject: format!("{name} (pid {pid})"),
        regions: regions.collect(),
        private_bytes: process.private_bytes(smallest_page.max(1)),
        service: Some(name),
        headroom_percent: 0,
    })
}

/// The page size that a program gets which asks for huge pages and names none.
fn default_huge_page_bytes(host: &Host) -> u64 {
    let meminfo = host.read("/proc/meminfo").unwrap_or_default();
    let line = meminfo.lines().find_map(|line| line.strip_prefix("Hugepagesize:"));
    let kilobytes = line.and_then(|value| value.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    kilobytes.unwrap_or(2048) * 1024
}

/// How many huge pages the configuration of a server comes to, and of how many bytes each.
fn postgres_pages(host: &Host, data: &Path, program: Option<&Path>) -> Result<(u64, u64), PipelineError> {
    // A folder that may not be looked at is there: the server, as its owner, can look.
    let is_missing =
        |error: io::Error| matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory);
    if fs::metadata(data).map_or_else(is_missing, |found| !found.is_dir()) {
        return Err(PipelineError::NoDataFolder { what: "folder", data: data.to_owned() });
    }
    // `-D` takes the folder of the configuration, too, where a distribution has that elsewhere.
    let has_none = |name: &str| fs::metadata(data.join(name)).is_err_and(is_missing);
    if ["PG_VERSION", "postgresql.conf"].into_iter().all(has_none) {
        let what = "data folder of PostgreSQL: it has neither PG_VERSION nor postgresql.conf";
        return Err(PipelineError::NoDataFolder { what, data: data.to_owned() });
    }
    let program = program.map_or_else(|| postgres_program(data), Path::to_owned);
    let pages = postgres_setting(&program, data, "shared_memory_size_in_huge_pages")?;
    // In kB; 0 is the default of the kernel.
    let page_bytes = match postgres_setting(&program, data, "huge_page_size")? {
        0 => default_huge_page_bytes(host),
        kilobytes => kilobytes.saturating_mul(1024),
    };
    Ok((pages, page_bytes))
}

/// Asks a server program for a number of its configuration. It computes and ends; no server is started.
fn postgres_setting(program: &Path, data: &Path, name: &'static str) -> Result<u64, PipelineError> {
    let failed =
        |message: String| PipelineError::Postgres { program: program.to_owned(), setting: name, message };
    let mut command = Command::new(program);
    // `-C` must be the first argument, and is then answered before the server looks who it is.
    command.args(["-C", name, "-D"]).arg(data);
    if rustix::process::geteuid().is_root() {
        let owner = fs::metadata(data).map_err(|error| failed(error.to_string()))?;
        command.uid(owner.uid()).gid(owner.gid());
    }
    let output = command.output().map_err(|error| failed(error.to_string()))?;
    let told = String::from_utf8_lossy(&output.stdout);
    told.trim().parse().map_err(|_| {
        let said = String::from_utf8_lossy(&output.stderr);
        let last = said.lines().last().unwrap_or("it says nothing");
        let running = "; of a running server, size its process instead: planish size postgres";
        failed(format!("{last}{}", if said.contains("postmaster.pid") { running } else { "" }))
    })
}

/// The server program of the version that made a data folder.
fn postgres_program(data: &Path) -> PathBuf {
    let version = planish_sys::file::read_text(&data.join("PG_VERSION")).unwrap_or_default();
    let packaged = PathBuf::from(format!("/usr/lib/postgresql/{}/bin/postgres", version.trim()));
    if packaged.exists() { packaged } else { PathBuf::from("postgres") }
}
