//! What the clients of a server do in one slice, and what its backends pay for it.
//!
//! Connections stay open between slices. With a connection for each slice every backend would map the shared
//! memory anew, page by page, and the slice would measure page faults instead of page walks: huge pages would
//! look far better than a connection pool ever sees them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Scope};
use std::time::{Duration, Instant};

use planish_stats::{Rng, summary};
use postgres::{CancelToken, Client, NoTls, Statement};

use super::budget::Budget;
use super::script::Script;
use super::server::{Server, sql_error, until_stopped};
use crate::adapter::put_latency;
use crate::control::Stop;
use crate::kernel;
use crate::sample::{ArmError, Sample};

/// The statement of `pgbench -S`, prepared.
const SELECT: &str = "SELECT abalance FROM pgbench_accounts WHERE aid = $1";

/// Random lookups inside the server: neither protocol nor client takes part in them.
const LOOKUPS_PER_CALL: u64 = 500;
const LOOKUPS: &str = "SELECT sum(abalance) FROM pgbench_accounts WHERE aid = ANY (ARRAY(
    SELECT 1 + floor(random() * $1)::int FROM generate_series(1, 500)))";

/// Settings of each connection: one plan for a statement on every server, made once, and nothing is written. A server
/// keeps its data from the first block to the last, so that what one slice writes is what the next one has to read.
pub(crate) const SESSION: &str = "SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; \
     SET enable_bitmapscan = off; SET default_transaction_read_only = on";

/// Walks table and index in index order, which maps every page of both in this backend; a sequential scan of
/// a large table would recycle a few buffers only.
const TOUCH: &str =
    "SELECT count(abalance) FROM (SELECT aid, abalance FROM pgbench_accounts ORDER BY aid) AS t";

/// How long a statement may go on after the end of its slice. One that waits for a lock which a client of the same
/// slice holds would go on for ever.
const PATIENCE: Duration = Duration::from_secs(30);

/// How often a running slice looks whether it shall end.
const STEP: Duration = Duration::from_millis(100);

/// What is run.
#[derive(Clone, Debug)]
pub(crate) enum Work {
    /// `pgbench -S` in one half of the slice, in-server lookups in the other.
    Reads,
    /// A script of the user.
    Script(Script),
}

/// One open connection.
struct Connection {
    client: Client,
    backend: u32,
    select: Statement,
    lookups: Statement,
}

/// The connections of one server.
pub(crate) struct Clients {
    connections: Vec<Connection>,
    work: Work,
    budget: Budget,
    stop: Stop,
}

/// Ends what the clients of a slice are doing, once they are told to stop or a statement goes on for too long.
struct Watch {
    stop: Stop,
    /// When a statement has gone on for too long.
    end: Instant,
    /// Set when the statements are being cancelled: no other one begins.
    is_over: AtomicBool,
    /// Set when all clients have done their slice.
    is_done: AtomicBool,
}

impl Watch {
    fn new(stop: &Stop, limit: Duration) -> Self {
        let (is_over, is_done) = (AtomicBool::new(false), AtomicBool::new(false));
        Self { stop: stop.clone(), end: Instant::now() + limit, is_over, is_done }
    }

    /// Until the clients are done.
    fn keep(&self, tokens: &[CancelToken]) {
        while !self.is_done.load(Ordering::Acquire) {
            if self.stop.is_set() || Instant::now() >= self.end {
                self.is_over.store(true, Ordering::Release);
                // Again and again: the next statement may just have begun. A server that does not take it is ended
                // without it, only later.
                tokens.iter().for_each(|token| drop(token.cancel_query(NoTls)));
            }
            thread::park_timeout(STEP);
        }
    }

    /// Keeps watch while `work` goes on.
    fn during<T>(
        &self,
        tokens: &[CancelToken],
        work: impl FnOnce() -> Result<T, ArmError>,
    ) -> Result<T, ArmError> {
        thread::scope(|scope| {
            let watcher = spawn(scope, || self.keep(tokens))?;
            let outcome = work();
            self.is_done.store(true, Ordering::Release);
            watcher.thread().unpark();
            outcome
        })
    }

    /// Fails once the statements are being cancelled.
    fn check(&self) -> Result<(), ArmError> {
        if self.is_over.load(Ordering::Acquire) { Err(ArmError::Stopped) } else { Ok(()) }
    }
}

/// A thread of the scope. A limit of the control group or of the user may refuse it, where a plain spawn panics.
fn spawn<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    work: impl FnOnce() -> T + Send + 'scope,
) -> Result<thread::ScopedJoinHandle<'scope, T>, ArmError> {
    let spawned = thread::Builder::new().spawn_scoped(scope, work);
    spawned.map_err(|error| ArmError::crashed(format!("no thread for each client: {error}; try fewer")))
}

/// Which half of a slice.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Half {
    Select,
    Lookups,
    Script,
}

/// What one connection did in one half.
#[derive(Default)]
struct Tally {
    operations: u64,
    cpu_ns: u64,
    user_ticks: u64,
    system_ticks: u64,
    faults: u64,
    latencies_ns: Vec<f64>,
}

impl Clients {
    /// Opens `count` connections and maps the whole data set in each of their backends.
    pub(crate) fn open(
        server: &Server,
        count: usize,
        work: &Work,
        budget: Budget,
        stop: &Stop,
    ) -> Result<Self, ArmError> {
        let sql = |error: postgres::Error| ArmError::crashed(sql_error(&error));
        let connect = || -> Result<Connection, ArmError> {
            let mut client = server.connect_reader()?;
            client.batch_execute(SESSION).map_err(sql)?;
            until_stopped(&mut client, stop, |client| client.batch_execute(TOUCH))?;
            let backend: i32 = client.query_one("SELECT pg_backend_pid()", &[]).map_err(sql)?.get(0);
            let select = client.prepare(SELECT).map_err(sql)?;
            let lookups = client.prepare(LOOKUPS).map_err(sql)?;
            Ok(Connection { client, backend: backend.unsigned_abs(), select, lookups })
        };
        // The first one reads from disk; later ones find everything in shared memory.
        let connections = (0..count).map(|_| connect()).collect::<Result<Vec<_>, _>>()?;
        Ok(Self { connections, work: work.clone(), budget, stop: stop.clone() })
    }

    /// The process ids of the backends.
    pub(crate) fn backends(&self) -> impl Iterator<Item = u32> {
        self.connections.iter().map(|connection| connection.backend)
    }

    /// Works for `duration`, all clients at once.
    pub(crate) fn slice(&mut self, duration: Duration, seed: u64) -> Result<Sample, ArmError> {
        let halves = match &self.work {
            Work::Script(_) => vec![Half::Script],
            Work::Reads if seed & 1 == 0 => vec![Half::Select, Half::Lookups],
            Work::Reads => vec![Half::Lookups, Half::Select],
        };
        let each = duration / u32::try_from(halves.len()).expect("one or two");
        let mut sample = Sample::default();
        for half in halves {
            let begun = Instant::now();
            let tallies = self.half(half, each, seed)?;
            half.report(&mut sample, &tallies, begun.elapsed())?;
        }
        Ok(sample)
    }

    fn half(&mut self, half: Half, duration: Duration, seed: u64) -> Result<Vec<Tally>, ArmError> {
        let (work, budget) = (&self.work, &self.budget);
        let tokens: Vec<CancelToken> =
            self.connections.iter().map(|connection| connection.client.cancel_token()).collect();
        let limit = duration + PATIENCE;
        let watch = Watch::new(&self.stop, limit);
        let connections = &mut self.connections;
        let tallies = watch.during(&tokens, || {
            thread::scope(|scope| {
                let workers = connections
                    .iter_mut()
                    .zip(0u64..)
                    .map(|(connection, index)| {
                        let rng = Rng::stream(seed, index);
                        let watch = &watch;
                        spawn(scope, move || connection.work(half, work, budget, duration, rng, watch))
                    })
                    .collect::<Result<Vec<_>, _>>()?;
                let finished = workers.into_iter().map(|worker| worker.join());
                finished.map(|tally| tally.expect("a client thread does not panic")).collect()
            })
        });
        tallies.map_err(|error| match error {
            _ if self.stop.is_set() => ArmError::Stopped,
            _ if watch.check().is_err() => ArmError::TimedOut { after: limit },
            error => error,
        })
    }
}

impl Connection {
    fn work(
        &mut self,
        half: Half,
        work: &Work,
        budget: &Budget,
        duration: Duration,
        mut rng: Rng,
        watch: &Watch,
    ) -> Result<Tally, ArmError> {
        let sql = |error: postgres::Error| ArmError::crashed(sql_error(&error));
        if half == Half::Lookups {
            // Equal seeds are equal lookups on every server.
            self.client.execute("SELECT setseed($1)", &[&rng.uniform()]).map_err(sql)?;
        }
        let rows = i32::try_from(budget.rows()).unwrap_or(i32::MAX);
        let mut tally = Tally::default();
        let before = Spent::read(self.backend)?;
        let end = Instant::now() + duration;
        let mut now = Instant::now();
        while now < end {
            watch.check()?;
            tally.operations += match (half, work) {
                (Half::Select, _) => {
                    let aid = i32::try_from(rng.below(rows as usize) + 1).unwrap_or(rows);
                    self.client.query_one(&self.select, &[&aid]).map_err(sql)?;
                    1
                }
                (Half::Lookups, _) => {
                    self.client.query_one(&self.lookups, &[&f64::from(rows)]).map_err(sql)?;
                    LOOKUPS_PER_CALL
                }
                (Half::Script, Work::Script(script)) => {
                    let statements = script.statements(&mut rng, budget.scale).map_err(ArmError::crashed)?;
                    for statement in statements {
                        watch.check()?;
                        self.client.simple_query(&statement.text).map_err(sql)?;
                    }
                    1
                }
                (Half::Script, Work::Reads) => unreachable!("reads have no script half"),
            };
            let done = Instant::now();
            tally.latencies_ns.push(done.duration_since(now).as_nanos() as f64);
            now = done;
        }
        tally.add(&before, &Spent::read(self.backend)?);
        Ok(tally)
    }
}

impl Tally {
    fn add(&mut self, before: &Spent, after: &Spent) {
        self.cpu_ns = after.cpu_ns.saturating_sub(before.cpu_ns);
        self.user_ticks = after.user_ticks.saturating_sub(before.user_ticks);
        self.system_ticks = after.system_ticks.saturating_sub(before.system_ticks);
        self.faults = after.faults.saturating_sub(before.faults);
    }
}

impl Half {
    /// Adds the metrics of this half: per operation, over all backends.
    fn report(self, sample: &mut Sample, tallies: &[Tally], wall: Duration) -> Result<(), ArmError> {
        let sum = |field: fn(&Tally) -> u64| tallies.iter().map(field).sum::<u64>() as f64;
        let operations = sum(|tally| tally.operations);
        if operations == 0.0 {
            return Err(ArmError::TimedOut { after: wall });
        }
        // The select is told beside the lookups, which decide: neither protocol nor client takes part in them.
        let prefix = if self == Half::Select { "select_" } else { "" };
        let per_op = |value: f64| value / operations;
        let named = |name: &str| format!("{prefix}{name}");
        let tick_ns = 1e9 / rustix::param::clock_ticks_per_second() as f64;
        *sample = std::mem::take(sample)
            .lower(&named("cpu_ns_per_op"), "ns", per_op(sum(|tally| tally.cpu_ns)))
            .lower(&named("user_ns_per_op"), "ns", per_op(sum(|tally| tally.user_ticks) * tick_ns))
            .lower(&named("system_ns_per_op"), "ns", per_op(sum(|tally| tally.system_ticks) * tick_ns))
            .lower(&named("wall_ns_per_op"), "ns", per_op(wall.as_nanos() as f64))
            .higher(&named("ops_per_s"), "1/s", operations / wall.as_secs_f64());
        sample.collect(&named("faults"), "", Ok(sum(|tally| tally.faults)));
        // One call of a lookup holds 500 of them, so that latencies are those of selects or of the script.
        if self != Half::Lookups {
            report_latencies(sample, prefix, tallies);
        }
        Ok(())
    }
}

/// Adds the latencies of single operations.
fn report_latencies(sample: &mut Sample, prefix: &str, tallies: &[Tally]) {
    let mut latencies: Vec<f64> =
        tallies.iter().flat_map(|tally| tally.latencies_ns.iter().copied()).collect();
    latencies.sort_unstable_by(f64::total_cmp);
    let quantile = |share| summary::quantile_of_sorted(&latencies, share);
    let mut put = |name, value| put_latency(sample, prefix, name, value, latencies.len() as f64);
    put("p50_ns", quantile(0.50));
    put("p90_ns", quantile(0.90));
    put("p99_ns", quantile(0.99));
    put("p99_9_ns", quantile(0.999));
    put("max_ns", quantile(1.0));
    put("sd_ns", summary::standard_deviation(&latencies));
    put("iqr_ns", quantile(0.75) - quantile(0.25));
}

/// What a backend has used so far.
struct Spent {
    cpu_ns: u64,
    user_ticks: u64,
    system_ticks: u64,
    faults: u64,
}

impl Spent {
    /// From `/proc/PID/schedstat` (nanoseconds on a CPU, Documentation/scheduler/sched-stats.rst) and
    /// `/proc/PID/stat` (ticks in each mode, faults of both kinds).
    fn read(pid: u32) -> Result<Self, ArmError> {
        let gone = || ArmError::crashed(format!("backend {pid} has ended"));
        let schedstat = kernel::read(&format!("/proc/{pid}/schedstat")).ok_or_else(gone)?;
        let stat = kernel::read(&format!("/proc/{pid}/stat")).ok_or_else(gone)?;
        Self::parse(&schedstat, &stat).ok_or_else(gone)
    }

    fn parse(schedstat: &str, stat: &str) -> Option<Self> {
        let cpu_ns = schedstat.split_whitespace().next()?.parse().ok()?;
        // The name is in brackets and may itself hold blanks and brackets.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let field = |index: usize| fields.get(index)?.parse().ok();
        Some(Self { cpu_ns, faults: field(7)? + field(9)?, user_ticks: field(11)?, system_ticks: field(12)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_backend_has_used_is_read_from_proc() {
        let stat = "77 (postgres: a (b) c) S 1 77 77 0 -1 4194304 123 0 4 0 56 7 0 0 20 0 1 0 9 1 2\n";
        let spent = Spent::parse("987654 12 3\n", stat).expect("whole");
        assert_eq!((spent.cpu_ns, spent.faults, spent.user_ticks, spent.system_ticks), (987_654, 127, 56, 7));
        assert!(Spent::parse("", stat).is_none() && Spent::parse("1 2 3", "77 (x").is_none());
    }

    #[test]
    fn a_slice_ends_by_a_stop_and_by_its_limit_and_no_sooner() {
        let until_over = |watch: &Watch| {
            watch.during(&[], || {
                while watch.check().is_ok() {
                    thread::sleep(Duration::from_millis(1));
                }
                watch.check()
            })
        };
        let limit = Duration::from_millis(150);
        let begun = Instant::now();
        assert_eq!(until_over(&Watch::new(&Stop::default(), limit)), Err(ArmError::Stopped));
        assert!(begun.elapsed() >= limit);
        let stop = Stop::default();
        stop.set();
        assert_eq!(until_over(&Watch::new(&stop, Duration::from_secs(3600))), Err(ArmError::Stopped));
        let long = Watch::new(&Stop::default(), Duration::from_secs(3600));
        assert_eq!(long.during(&[], || long.check().map(|()| 7)), Ok(7), "and it is not waited for");
    }

    #[test]
    fn a_half_reports_costs_per_operation() {
        let tally = |operations, cpu_ns| Tally {
            operations,
            cpu_ns,
            latencies_ns: (1..=50).map(|index| f64::from(6 * index)).collect(),
            user_ticks: 3,
            system_ticks: 1,
            ..Tally::default()
        };
        let mut sample = Sample::default();
        let wall = Duration::from_millis(100);
        Half::Select.report(&mut sample, &[tally(10, 500), tally(30, 1100)], wall).expect("some operations");
        assert_eq!(sample.value("select_cpu_ns_per_op"), Some(40.0));
        assert_eq!(sample.value("select_ops_per_s"), Some(400.0));
        assert_eq!(sample.value("select_max_ns"), Some(300.0));
        assert!((sample.value("select_iqr_ns").expect("quartiles") - 150.0).abs() < 6.0);
        assert!((sample.value("select_sd_ns").expect("a spread") - 87.0).abs() < 1.0);
        assert!(sample.value("select_p90_ns").is_some(), "ten of a hundred are beyond it");
        assert_eq!(sample.value("select_p99_ns"), None, "only one of a hundred is beyond it");
        Half::Lookups.report(&mut sample, &[tally(500, 1000)], wall).expect("some operations");
        assert_eq!(sample.value("cpu_ns_per_op"), Some(2.0));
        assert_eq!(sample.value("wall_ns_per_op"), Some(200_000.0));
        let tick_ns = 1e9 / rustix::param::clock_ticks_per_second() as f64;
        let of_mode = |name| sample.value(name).expect("both modes are told") / tick_ns;
        assert_eq!((of_mode("user_ns_per_op"), of_mode("system_ns_per_op")), (0.006, 0.002));
        assert_eq!(sample.value("p50_ns"), None, "a call of lookups is no operation");
        assert!(Half::Select.report(&mut sample, &[Tally::default()], wall).is_err());
    }
}
