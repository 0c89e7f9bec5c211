//! A PostgreSQL server of our own: its data, its start, its certain end, and what its memory really lies on.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use postgres::{Client, Config, NoTls};

use super::budget::Budget;
use super::install::Install;
use super::room::Room;
use crate::child::{Service, run_once};
use crate::control::Stop;
use crate::error::TrialError;
use crate::sample::ArmError;

/// The database that holds the tables.
const DATABASE: &str = "postgres";

/// The user of every session that is measured, who may read the tables and write none: a setting that keeps a session
/// from writing can be taken back by a statement, and a right that nobody has cannot.
const READER: &str = "planish_reader";

/// How long a server may take to answer, and to end.
const START_LIMIT: Duration = Duration::from_secs(60);
const END_GRACE: Duration = Duration::from_secs(20);

/// How long initdb, or the copy of a data set, may take.
pub(crate) const INIT_LIMIT: Duration = Duration::from_secs(600);

/// Settings of every server: nothing of its own moves while a slice is timed, and nothing listens on a
/// network. `fsync`, `full_page_writes` and `synchronous_commit` are off because the data lives as long as the trial,
/// and because they are for what is written: what is measured only reads.
const SETTINGS: &[(&str, &str)] = &[
    ("listen_addresses", ""),
    ("fsync", "off"),
    ("full_page_writes", "off"),
    ("synchronous_commit", "off"),
    ("wal_level", "minimal"),
    ("max_wal_senders", "0"),
    ("max_wal_size", "8GB"),
    ("checkpoint_timeout", "1d"),
    ("bgwriter_lru_maxpages", "0"),
    ("autovacuum", "off"),
    ("jit", "off"),
    ("max_parallel_workers_per_gather", "0"),
    ("logging_collector", "off"),
];

/// Which pages the shared memory of a server shall lie on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pages {
    /// Base pages.
    Base,
    /// Transparent huge pages of shared memory, as far as the host gives them.
    Thp,
    /// Pages of this size from the reserved pool, or no start at all.
    Huge(u64),
}

impl Pages {
    /// The settings that ask for them. `huge_pages=on` fails loudly; `try` would fall back without a word.
    pub(crate) fn settings(self, install: &Install) -> Vec<(String, String)> {
        let mut settings = Vec::new();
        let huge = matches!(self, Self::Huge(_));
        settings.push(("huge_pages".to_owned(), if huge { "on" } else { "off" }.to_owned()));
        if let (Self::Huge(bytes), true) = (self, install.version.chooses_page_size()) {
            settings.push(("huge_page_size".to_owned(), format!("{}kB", bytes >> 10)));
        }
        settings
    }
}

/// Makes the data set that every server gets a copy of. `look` may refuse what is to be run on it.
pub(crate) fn make_seed(
    install: &Install,
    room: &Room,
    budget: &Budget,
    stop: &Stop,
    look: impl FnOnce(&Server) -> Result<(), TrialError>,
) -> Result<(), TrialError> {
    let (initdb, seed) = (install.program("initdb"), room.data("seed"));
    let mut command = vec![initdb.display().to_string(), "-D".to_owned(), seed.display().to_string()];
    let options = ["-U", &room.account().name, "-A", "trust", "-E", "UTF8", "--no-sync", "--locale=C"];
    command.extend(options.map(str::to_owned));
    run_once(&room.launch(command), 0, INIT_LIMIT, stop).map_err(|error| match error {
        ArmError::Stopped => TrialError::Stopped,
        error => TrialError::Refused {
            what: error.to_string(),
            cure: "run initdb by hand in an empty folder to see why".to_owned(),
        },
    })?;
    let baseline = |error: ArmError| TrialError::of_baseline("seed", &error);
    let mut server = Server::new(install.clone(), "seed", room, Pages::Base, budget);
    server.start(0, stop).map_err(baseline)?;
    let mut client = server.connect().map_err(baseline)?;
    for statement in tables(budget) {
        until_stopped(&mut client, stop, |client| client.batch_execute(&statement)).map_err(baseline)?;
    }
    drop(client);
    let seen = look(&server);
    server.stop();
    seen
}

/// Runs a statement that may take long, and has the server give it up when the trial is told to end.
pub(crate) fn until_stopped<T>(
    client: &mut Client,
    stop: &Stop,
    statement: impl FnOnce(&mut Client) -> Result<T, postgres::Error>,
) -> Result<T, ArmError> {
    const STEP: Duration = Duration::from_millis(20);
    let token = client.cancel_token();
    let is_done = AtomicBool::new(false);
    let outcome = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done.load(Ordering::Acquire) {
                if !stop.sleep(STEP) {
                    // A server that does not take it is ended without it, only later.
                    let _ = token.cancel_query(NoTls);
                    return;
                }
            }
        });
        let outcome = statement(client);
        is_done.store(true, Ordering::Release);
        outcome
    });
    if stop.is_set() {
        return Err(ArmError::Stopped);
    }
    outcome.map_err(|error| ArmError::crashed(sql_error(&error)))
}

/// The tables of `pgbench -i`, made by the server itself: many packages come without the pgbench program.
fn tables(budget: &Budget) -> Vec<String> {
    let (scale, rows) = (budget.scale, budget.rows());
    let per = super::budget::ROWS_PER_SCALE;
    vec![
        "create table pgbench_history (tid int, bid int, aid int, delta int, mtime timestamp, filler char(22))"
            .to_owned(),
        // Table and rows in one transaction: with wal_level = minimal none of it goes through the log.
        format!(
            "begin;
             create table pgbench_branches (bid int not null, bbalance int, filler char(88));
             insert into pgbench_branches select b, 0, null from generate_series(1, {scale}) b;
             create table pgbench_tellers (tid int not null, bid int, tbalance int, filler char(84));
             insert into pgbench_tellers select t, (t - 1) / 10 + 1, 0, null from generate_series(1, {scale} * 10) t;
             create table pgbench_accounts (aid int not null, bid int, abalance int, filler char(84));
             insert into pgbench_accounts select a, (a - 1) / {per} + 1, 0, '' from generate_series(1, {rows}) a;
             commit"
        ),
        "alter table pgbench_branches add primary key (bid)".to_owned(),
        "alter table pgbench_tellers add primary key (tid)".to_owned(),
        "alter table pgbench_accounts add primary key (aid)".to_owned(),
        format!("create role {READER} login"),
        format!("grant select on all tables in schema public to {READER}"),
        // Rights that everybody has; the first one up to PostgreSQL 14.
        "revoke create on schema public from public".to_owned(),
        format!("revoke temporary on database {DATABASE} from public"),
        "vacuum (freeze, analyze)".to_owned(),
        "checkpoint".to_owned(),
    ]
}

/// A server on its own copy of the data, reached by a socket in the room.
#[derive(Debug)]
pub(crate) struct Server {
    install: Install,
    data: PathBuf,
    sockets: PathBuf,
    user: String,
    port: u16,
    launch: crate::child::Launch,
    service: Option<Service>,
}

impl Server {
    /// A server on the data folder `name` of the room. The port only names the socket: no other server can
    /// have it in this private folder, so that ports which are taken on the host do not matter.
    pub(crate) fn new(install: Install, name: &str, room: &Room, pages: Pages, budget: &Budget) -> Self {
        let data = room.data(name);
        // FNV-1a of the name, so that each server of a room has its own socket whatever the order of starts.
        let hash = name
            .bytes()
            .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
        let port = 40_000 + u16::try_from(hash % 20_000).expect("below 20,000");
        let mut command = vec![install.program("postgres").display().to_string()];
        command.extend(["-D".to_owned(), data.display().to_string()]);
        let mut set = |name: &str, value: &str| command.extend(["-c".to_owned(), format!("{name}={value}")]);
        for (name, value) in SETTINGS {
            set(name, value);
        }
        set("unix_socket_directories", &room.sockets().display().to_string());
        set("port", &port.to_string());
        set("max_connections", &budget.connections().to_string());
        set("shared_buffers", &format!("{}kB", budget.shared_buffers_bytes >> 10));
        for (name, value) in pages.settings(&install) {
            set(&name, &value);
        }
        let launch = room.launch(command);
        let user = room.account().name.clone();
        Self { install, data, sockets: room.sockets(), user, port, launch, service: None }
    }

    /// Starts it, its environment longer by so many bytes, and waits until it answers.
    pub(crate) fn start(&mut self, padding: usize, stop: &Stop) -> Result<(), ArmError> {
        self.stop();
        // Left by a server that was killed; the folder is private, so no other server can own it.
        let _ = std::fs::remove_file(self.data.join("postmaster.pid"));
        self.service = Some(Service::start(&self.launch, padding)?);
        let begun = Instant::now();
        loop {
            if let Some(service) = &mut self.service {
                service.check().map_err(|error| self.explain(error))?;
            }
            if self.connect().is_ok() {
                return Ok(());
            }
            if begun.elapsed() > START_LIMIT {
                self.stop();
                return Err(ArmError::TimedOut { after: START_LIMIT });
            }
            if !stop.sleep(Duration::from_millis(50)) {
                return Err(ArmError::Stopped);
            }
        }
    }

    /// A pool that is too small is an arm that cannot be had; everything else is a crash.
    fn explain(&self, error: ArmError) -> ArmError {
        match error {
            ArmError::Crashed { detail } if detail.contains("could not map anonymous shared memory") => {
                ArmError::Unavailable {
                    reason: format!("the huge pages that were granted do not hold the server: {detail}"),
                    cure: "planish size --bytes N, then reserve the pool early after boot".to_owned(),
                }
            }
            other => other,
        }
    }

    /// A new connection that may do everything.
    pub(crate) fn connect(&self) -> Result<Client, ArmError> {
        self.connect_as(&self.user)
    }

    /// A new connection that may read the tables, and write none.
    pub(crate) fn connect_reader(&self) -> Result<Client, ArmError> {
        self.connect_as(READER)
    }

    fn connect_as(&self, user: &str) -> Result<Client, ArmError> {
        let mut config = Config::new();
        config.host_path(&self.sockets).port(self.port).user(user).dbname(DATABASE);
        config.connect_timeout(Duration::from_secs(5));
        config.connect(NoTls).map_err(|error| ArmError::crashed(sql_error(&error)))
    }

    /// How many huge pages of `bytes` the server will need, as it tells itself (PostgreSQL 15), else from its
    /// shared buffers and the usual tenth beside them.
    pub(crate) fn pages_needed(&self, bytes: u64, budget: &Budget) -> u64 {
        let told = || {
            let mut launch = self.launch.clone();
            launch.command.extend(["-C", "shared_memory_size_in_huge_pages"].map(str::to_owned));
            let done = run_once(&launch, 0, START_LIMIT, &Stop::default()).ok()?;
            done.stdout.trim().parse::<u64>().ok()
        };
        let told = if self.install.version.counts_pages() { told() } else { None };
        told.unwrap_or_else(|| (budget.shared_buffers_bytes / 10 * 11 + (32 << 20)).div_ceil(bytes))
    }

    /// Ends it: connections are gone by now, so that it does so at once.
    pub(crate) fn stop(&mut self) {
        if let Some(mut service) = self.service.take() {
            service.stop(END_GRACE);
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The server's own words, where it said some.
pub(crate) fn sql_error(error: &postgres::Error) -> String {
    match error.as_db_error() {
        Some(told) => format!("{} ({})", told.message(), told.code().code()),
        // What the system said stands only in the cause: no such socket, or no right.
        None => match std::error::Error::source(error) {
            Some(cause) => format!("{error}: {cause}"),
            None => error.to_string(),
        },
    }
}
