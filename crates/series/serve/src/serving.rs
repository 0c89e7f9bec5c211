//! `planish-series serve`: what it is told, and the server from its start to its end.

use std::io;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use planish_sql::{Engine, Files};
use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};

use crate::args::{built, bytes_of, cpus, mebibytes, query_threads, seconds, tell_found};
use crate::database::{Database, OpenError};
use crate::door::Door;
use crate::duty::Duty;
use crate::ended::Ended;
use crate::failure::chain;
use crate::http::{self, Bounds, State};
use crate::lines::{self, Lines};
use crate::metrics::Metrics;
use crate::notify::notify;
use crate::placing::{self, Placing, PlacingOptions, Work};
use crate::stop::Stop;
use crate::tell::tell;
use crate::tls::Tls;
use crate::tokens::Tokens;
use crate::upkeep::Upkeep;

/// Threads that read and write connections.
const HTTP_THREADS: usize = 2;
/// How long threads may take to end, once nobody waits for them.
const LAST_TIME: Duration = Duration::from_secs(2);

/// Serve the tables of a folder by HTTP, as ClickHouse and InfluxDB do
#[derive(Debug, Args)]
pub(crate) struct ServeOptions {
    /// The folder of tables; it is made if it is not there
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// Address and port; one that is not loopback needs --tokens
    #[arg(long, default_value = "127.0.0.1:8123", value_name = "ADDRESS")]
    listen: SocketAddr,
    /// Take line protocol over TCP at this address and port as well; as for --listen
    #[arg(long, value_name = "ADDRESS")]
    line_protocol: Option<SocketAddr>,
    /// Speak TLS, on all addresses: a certificate (PEM), with those between it and a root behind it; SIGHUP reads it
    /// again
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The key of --tls-cert (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Ask for a token of this file, which `planish-series token` writes
    #[arg(long, value_name = "FILE")]
    tokens: Option<PathBuf>,
    /// Let queries read Parquet, CSV and Arrow files of this folder, and none beside it
    #[arg(long, value_name = "DIR")]
    files: Option<PathBuf>,
    /// Threads of queries [default: as many as CPUs]
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,
    /// Seconds that a query may take, the wait for its turn included
    #[arg(long, default_value = "60", value_name = "SECONDS", value_parser = seconds)]
    query_time: Duration,
    /// MiB of memory that a query may take
    #[arg(long, default_value = "1024", value_name = "MIB", value_parser = mebibytes(1))]
    query_memory: u64,
    /// Queries at once
    #[arg(long, default_value = "16", value_name = "N")]
    queries: NonZeroUsize,
    /// Inserts at once
    #[arg(long, default_value = "16", value_name = "N")]
    inserts: NonZeroUsize,
    /// Queries, and inserts, that may wait for their turn; further ones are told to come again
    #[arg(long, default_value = "100", value_name = "N")]
    waiting: usize,
    /// What this instance is for; others may share its folder
    #[arg(long, default_value = "both", value_name = "ROLE")]
    role: Duty,
    #[command(flatten)]
    placing: PlacingOptions,
    /// MiB of memory for rows, after which they go to Parquet files
    #[arg(long, default_value = "1024", value_name = "MIB", value_parser = mebibytes(128))]
    memory: u64,
    /// Seconds that requests have to be answered once the server is to end
    #[arg(long, default_value = "10", value_name = "SECONDS", value_parser = seconds)]
    grace: Duration,
}

impl ServeOptions {
    fn bounds(&self) -> Bounds {
        Bounds {
            duty: self.role,
            query_time: self.query_time,
            query_memory_bytes: bytes_of(self.query_memory),
            queries_max: self.queries.get(),
            inserts_max: self.inserts.get(),
            waiting_max: self.waiting,
        }
    }

    /// Addresses that it listens on.
    fn addresses(&self) -> impl Iterator<Item = SocketAddr> {
        [Some(self.listen), self.line_protocol].into_iter().flatten()
    }

    fn outside(&self) -> Option<SocketAddr> {
        self.addresses().find(|address| !address.ip().is_loopback())
    }

    /// Whether only this machine reaches it.
    pub(crate) fn is_loopback(&self) -> bool {
        self.outside().is_none()
    }

    /// Whether the tables are its own.
    pub(crate) fn is_writer(&self) -> bool {
        self.role.is_writer()
    }

    /// Refuses to let everybody in, lines where no row is taken in, and files where no query is answered.
    pub(crate) fn is_let_in(&self) -> Result<(), Ended> {
        if self.line_protocol.is_some() && !self.is_writer() {
            return Err(Ended::usage("--line-protocol takes rows in, and --role query does not"));
        }
        if self.files.is_some() && self.role.answers().is_err() {
            return Err(Ended::usage("--files is for queries, and --role ingest answers none"));
        }
        match (self.outside(), &self.tokens) {
            (Some(address), None) => {
                let text =
                    format!("{address} is not loopback: whoever reaches it could write; say --tokens FILE");
                Err(Ended::refused(text))
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn data(&self) -> &Path {
        &self.data
    }

    /// The folder of files that queries may read.
    pub(crate) fn files(&self) -> Option<&Path> {
        self.files.as_deref()
    }

    /// Folders and files that it is told of.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &Path> {
        let files = [&self.tokens, &self.tls_cert, &self.tls_key, &self.files];
        std::iter::once(self.data()).chain(files.into_iter().flatten().map(PathBuf::as_path))
    }

    pub(crate) fn has_tls(&self) -> bool {
        self.tls_cert.is_some()
    }

    pub(crate) fn grace(&self) -> Duration {
        self.grace
    }

    pub(crate) fn node_id(&self) -> Option<u32> {
        self.placing.node_id()
    }

    /// Who may come, by their tokens.
    fn tokens(&self) -> Result<Option<Arc<Tokens>>, Ended> {
        self.is_let_in()?;
        let tokens = self.tokens.as_deref().map(Tokens::of_file).transpose();
        let tokens = tokens.map_err(|error| Ended::refused(chain(&error)))?;
        if let Some(address) = self.outside().filter(|_| !self.has_tls()) {
            tell(&format!(
                "{address} is not loopback, and tokens and rows go there unencrypted; say --tls-cert"
            ));
        }
        Ok(tokens.map(Arc::new))
    }

    fn tls(&self) -> Result<Option<Arc<Tls>>, Ended> {
        let (Some(certificate), Some(key)) = (&self.tls_cert, &self.tls_key) else { return Ok(None) };
        let tls = Tls::of_files(certificate, key).map_err(|error| Ended::refused(chain(&error)))?;
        Ok(Some(Arc::new(tls)))
    }
}

/// Serves until a signal comes.
pub(crate) fn run(options: &ServeOptions) -> Result<ExitCode, Ended> {
    let (tokens, tls, placing) = (options.tokens()?, options.tls()?, Placing::find(&options.placing)?);
    let metrics = Arc::new(Metrics::new());
    let of_placing = placing.cpus(Work::Queries).and_then(|cpus| NonZeroUsize::new(cpus.count()));
    let threads = options.threads.or(of_placing).unwrap_or_else(cpus);
    let database = Arc::new(open(options, &placing, threads)?);
    check_isolation(&placing, &database, &metrics);
    let upkeep = match options.is_writer() {
        true => Upkeep::start(Arc::clone(&database), bytes_of(options.memory), tell),
        false => Upkeep::follow(Arc::clone(&database), tell),
    };
    let no_thread = |error: io::Error| Ended::failed(format!("cannot start a thread: {error}"));
    let upkeep = (upkeep.map_err(no_thread)?, keep_views(options, &placing, &database)?);
    let http = built(Builder::new_multi_thread().worker_threads(HTTP_THREADS).thread_name("http"))?;
    let queries = query_threads(threads, move || {
        // It could be done at the start, by another thread; a CPU that went since is no reason not to answer.
        let _ = placing.keep(Work::Queries);
    })?;
    let lines = Lines::new(Arc::clone(&database), tokens.clone(), Arc::clone(&metrics));
    let handle = queries.handle().clone();
    let state = Arc::new(State::new(Arc::clone(&database), tokens, metrics, options.bounds(), handle));
    let done = http.block_on(serve(options, tls, (state, lines), &database));
    http.shutdown_timeout(LAST_TIME);
    queries.shutdown_timeout(LAST_TIME);
    // Bars that are being made for the first time are needed by nobody any more.
    database.end_views();
    drop(upkeep);
    if !done? {
        tell("requests that were at work were cut off");
    }
    // The last one closes the logs: the next start finds all of them synced, and nothing to cut off.
    drop(database);
    Ok(ExitCode::SUCCESS)
}

/// Keeps views on the CPUs of queries, where any are answered.
fn keep_views(
    options: &ServeOptions,
    placing: &Placing,
    database: &Arc<Database>,
) -> Result<Option<Upkeep>, Ended> {
    if !options.is_writer() || options.role.answers().is_err() {
        return Ok(None);
    }
    let started = placing.on(Work::Queries, || Upkeep::views(Arc::clone(database), tell));
    let started = started.map_err(|error| Ended::failed(chain(&error)))?;
    started.map(Some).map_err(|error| Ended::failed(format!("cannot start a thread: {error}")))
}

/// Opens the tables where they were asked to be, and says what was had of that. The calling thread stays where rows are
/// taken in, and so do all threads that it starts.
fn open(options: &ServeOptions, placing: &Placing, threads: NonZeroUsize) -> Result<Database, Ended> {
    let unplaced = |error: planish_sys::Error| Ended::failed(chain(&error));
    placing.keep(Work::Ingest).map_err(unplaced)?;
    let (arena, why_not) = placing.arena().map_err(OpenError::from)?;
    let engine = placing.on(Work::Queries, || Engine::new(threads)).map_err(unplaced)?;
    let engine = engine.map_err(OpenError::from)?;
    let database = match options.is_writer() {
        true => Database::open_with(&options.data, arena, engine, tell_found)?,
        false => Database::follow(&options.data, arena, engine)?,
    };
    let left_out = match options.is_writer() {
        true => database.open_views(),
        false => database.follow_views(),
    };
    left_out.iter().for_each(|line| tell(line));
    if let Some(folder) = &options.files {
        let allowed = database.engine().allow_files(Files::Under(folder.clone()));
        allowed.map_err(|error| Ended::refused(chain(&error)))?;
    }
    let achieved = database.arena().achieved().map_err(OpenError::from)?;
    placing.told(&achieved, why_not.as_deref()).iter().for_each(|line| tell(line));
    Ok(database)
}

/// Says what keeps threads from having their CPUs to themselves, where CPUs were asked for.
fn check_isolation(placing: &Placing, database: &Database, metrics: &Metrics) {
    for work in Work::ALL {
        let Some(cpus) = placing.cpus(work) else { continue };
        match placing::check(cpus, database.arena()) {
            Ok(found) => {
                tell(&found.told(work, cpus));
                metrics.placed(work, cpus, &found);
            }
            Err(error) => tell(&format!("the isolation of CPUs {cpus} is unknown: {}", chain(&error))),
        }
    }
}

/// Opens the doors, and serves until a signal comes; says whether all that was at work then came to its end.
async fn serve(
    options: &ServeOptions,
    tls: Option<Arc<Tls>>,
    (state, lines): (Arc<State>, Arc<Lines>),
    database: &Database,
) -> Result<bool, Ended> {
    let stop = Stop::listen().map_err(|error| Ended::failed(format!("cannot hear signals: {error}")))?;
    if let Some(tls) = &tls {
        read_again_on_hangup(Arc::clone(tls))
            .map_err(|error| Ended::failed(format!("cannot hear signals: {error}")))?;
    }
    let (http, tcp) = if tls.is_some() { ("https", "tls") } else { ("http", "tcp") };
    let (door, address) = door(options.listen, http::CONNECTIONS_MAX, tls.clone()).await?;
    let of_lines = match options.line_protocol {
        None => None,
        Some(wanted) => {
            let (door, address) = self::door(wanted, lines::CONNECTIONS_MAX, tls).await?;
            tell(&format!("taking line protocol on {tcp}://{address}"));
            Some(door)
        }
    };
    let (tables, folder) = (database.count(), options.data.display());
    tell(&format!("listening on {http}://{address}, {tables} tables in {folder}"));
    say("READY=1");
    let mut ends = stop.clone();
    let stopping = tokio::spawn(async move {
        ends.come().await;
        say("STOPPING=1");
    });
    let of_lines = async {
        match of_lines {
            None => true,
            Some(door) => lines::serve(door, lines, stop.clone(), options.grace).await,
        }
    };
    let (is_done, is_line_done) =
        tokio::join!(http::serve(door, state, stop.clone(), options.grace), of_lines);
    // Where nothing is at work the end comes before this had its turn.
    let _ = stopping.await;
    Ok(is_done && is_line_done)
}

/// Says a state to who started the server.
fn say(state: &str) {
    if let Err(error) = notify(state) {
        tell(&format!("cannot tell systemd {state}: {error}"));
    }
}

async fn door(wanted: SocketAddr, places: usize, tls: Option<Arc<Tls>>) -> Result<(Door, SocketAddr), Ended> {
    let failed = |error| Ended::failed(format!("cannot listen on {wanted}: {error}"));
    let door = Door::open(wanted, places, tls).await.map_err(failed)?;
    let address = door.address().map_err(failed)?;
    Ok((door, address))
}

/// A certificate is renewed more often than a server is started anew.
fn read_again_on_hangup(tls: Arc<Tls>) -> io::Result<()> {
    let mut hangup = signal(SignalKind::hangup())?;
    tokio::spawn(async move {
        while hangup.recv().await.is_some() {
            match tls.read_again() {
                Ok(()) => tell("the certificate was read again"),
                Err(error) => tell(&format!("the certificate stays the one that it was: {}", chain(&error))),
            }
        }
    });
    Ok(())
}
