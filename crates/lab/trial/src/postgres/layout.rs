//! What lies where in the shared memory of an existing cluster: asked by SQL, to be laid over a map of it.
//!
//! PostgreSQL 18 can tell the nodes of its buffers itself, by touching every page of the segment first, which
//! allocates what nobody has used. Here the server only says what is at which offset; where that lies is read from
//! outside. pg_buffercache reads the headers of buffers, all of which the server has touched at its start.

use std::time::{Duration, Instant};

use planish_host::Host;
use planish_residency::parse_stat;
use postgres::Client;

use super::existing::{connect, is_local, no_answer};
use super::install::Version;
use super::server::sql_error;
use crate::error::TrialError;

/// Since PostgreSQL 16 the buffer blocks begin on a multiple of this (PG_IO_ALIGN_SIZE).
const IO_ALIGN_BYTES: u64 = 4096;

/// A named piece of the main shared segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allocation {
    /// Its name in pg_shmem_allocations; `(not used)` for the room that is left.
    pub name: String,
    /// Where in the segment it begins, in bytes.
    pub offset: u64,
    /// Its length in bytes.
    pub bytes: u64,
}

/// A process of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backend {
    /// Its PID.
    pub pid: u32,
    /// What it is: `client backend`, `checkpointer`.
    pub kind: String,
    /// The application that it serves; empty for the server's own.
    pub application: String,
}

/// What the buffers hold of one relation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cached {
    /// Its name.
    pub relation: String,
    /// Its buffers, by number: the first one is 1.
    pub buffers: Vec<i32>,
}

/// What lies where in a cluster's shared memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Version of the server, such as `15.18`.
    pub version: String,
    /// PID of the postmaster.
    pub postmaster: u32,
    /// Bytes of a block.
    pub block_bytes: u64,
    /// The pieces of the main segment, by offset.
    pub allocations: Vec<Allocation>,
    /// Where in the segment the first buffer begins; `None` where the server does not tell.
    pub buffers_offset: Option<u64>,
    /// The processes of the server.
    pub backends: Vec<Backend>,
    /// What the buffers hold, where the extension pg_buffercache is there.
    pub cached: Vec<Cached>,
    /// What could not be asked, with what would help.
    pub remarks: Vec<String>,
}

/// Asks the cluster behind a connection string; our session has ended when this returns.
///
/// # Errors
/// The string is malformed, the server does not let us in or does not answer, or it runs on another machine.
pub fn layout(conn: &str) -> Result<Layout, TrialError> {
    let mut client = connect(conn)?;
    if !is_local(&mut client).map_err(no_answer)? {
        return Err(TrialError::Refused {
            what: "the cluster runs on another machine, or in a container with a network of its own: its memory \
                   cannot be seen from here"
                .to_owned(),
            cure: "run planish map on that machine, or in that container".to_owned(),
        });
    }
    let (number, block_bytes, backend) = facts(&mut client).map_err(no_answer)?;
    let version = Version::from_number(number);
    let postmaster = parent_of(backend).ok_or_else(|| TrialError::Refused {
        what: format!("the backend {backend} is not a process of this machine's /proc"),
        cure: "run planish map in the same container, or on the host, with the PID of the postmaster there"
            .to_owned(),
    })?;
    let mut layout = Layout {
        version: version.to_string(),
        postmaster,
        block_bytes,
        allocations: Vec::new(),
        buffers_offset: None,
        backends: Vec::new(),
        cached: Vec::new(),
        remarks: Vec::new(),
    };
    layout.ask(
        "the pieces of the main segment",
        allocations(&mut client),
        |layout, (named, anonymous_bytes)| {
            layout.allocations = named;
            layout.remarks.extend(anonymous(anonymous_bytes));
        },
    );
    layout.buffers_offset = layout.allocations.iter().find(|it| it.name == "Buffer Blocks").map(|blocks| {
        if version.major >= 16 { blocks.offset.next_multiple_of(IO_ALIGN_BYTES) } else { blocks.offset }
    });
    layout.ask("the processes of the server", backends(&mut client), |layout, backends| {
        layout.backends = backends.into_iter().filter(|other| other.pid != backend).collect();
    });
    match cached(&mut client) {
        Ok(Some(cached)) => layout.cached = cached,
        Ok(None) => layout.remarks.push(
            "relations in the buffers are not told: create extension pg_buffercache in this database"
                .to_owned(),
        ),
        Err(error) => layout.refuse("relations in the buffers", &error),
    }
    drop(client);
    wait_for_end(backend);
    Ok(layout)
}

/// Waits until our own backend has ended, so that no map shows it; a second at most.
fn wait_for_end(backend: u32) {
    let begun = Instant::now();
    while parent_of(backend).is_some() && begun.elapsed() < Duration::from_secs(1) {
        std::thread::sleep(Duration::from_millis(2));
    }
}

impl Layout {
    /// Takes an answer, or remarks that there is none.
    fn ask<T>(&mut self, what: &str, answer: Result<T, postgres::Error>, take: impl FnOnce(&mut Self, T)) {
        match answer {
            Ok(answer) => take(self, answer),
            Err(error) => self.refuse(what, &error),
        }
    }

    fn refuse(&mut self, what: &str, error: &postgres::Error) {
        let told = sql_error(error);
        self.remarks.push(format!("{what}: {told}; connect as a superuser or a member of pg_monitor"));
    }
}

/// Version, bytes of a block, our backend's PID.
fn facts(client: &mut Client) -> Result<(u32, u64, u32), postgres::Error> {
    let row = client.query_one(
        "SELECT current_setting('server_version_num')::int, current_setting('block_size')::int, pg_backend_pid()",
        &[],
    )?;
    let number = |index: usize| row.get::<_, i32>(index).unsigned_abs();
    Ok((number(0), number(1).into(), number(2)))
}

/// The parent of a process; `None` when this /proc does not show it as one of PostgreSQL.
fn parent_of(backend: u32) -> Option<u32> {
    let text = Host::live().read(&format!("/proc/{backend}/stat")).ok()?;
    let stat = parse_stat(&text)?;
    (stat.parent > 0 && stat.name.starts_with("postgres")).then_some(stat.parent)
}

/// The pieces that have a place, and the bytes of those that have none.
fn allocations(client: &mut Client) -> Result<(Vec<Allocation>, u64), postgres::Error> {
    let rows = client.query(
        "SELECT coalesce(name, '(not used)'), off, size FROM pg_shmem_allocations ORDER BY off",
        &[],
    )?;
    let unsigned = |number: i64| u64::try_from(number).unwrap_or(0);
    let (mut named, mut anonymous_bytes) = (Vec::new(), 0);
    for row in &rows {
        let bytes = unsigned(row.get(2));
        match row.get::<_, Option<i64>>(1) {
            Some(offset) => named.push(Allocation { name: row.get(0), offset: unsigned(offset), bytes }),
            None => anonymous_bytes += bytes,
        }
    }
    Ok((named, anonymous_bytes))
}

/// What is told of pieces without a place.
fn anonymous(bytes: u64) -> Option<String> {
    (bytes > 0).then(|| {
        format!(
            "where {} KiB of the main segment lie that the server calls anonymous: it tells no offset of them, so that \
             they are in the sum of the segment alone",
            bytes.div_ceil(1024)
        )
    })
}

fn backends(client: &mut Client) -> Result<Vec<Backend>, postgres::Error> {
    let rows = client.query(
        "SELECT pid, coalesce(backend_type, ''), coalesce(application_name, '') FROM pg_stat_activity",
        &[],
    )?;
    let backend = |row: &postgres::Row| Backend {
        pid: row.get::<_, i32>(0).unsigned_abs(),
        kind: row.get(1),
        application: row.get(2),
    };
    Ok(rows.iter().map(backend).collect())
}

/// What the buffers hold, by relation; `None` without the extension.
fn cached(client: &mut Client) -> Result<Option<Vec<Cached>>, postgres::Error> {
    let schema = client.query_opt(
        "SELECT quote_ident(n.nspname) FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace \
         WHERE e.extname = 'pg_buffercache'",
        &[],
    )?;
    let Some(schema) = schema.map(|row| row.get::<_, String>(0)) else { return Ok(None) };
    let rows = client.query(
        &format!(
            "SELECT coalesce(c.oid::regclass::text, '(of another database, or dropped)') AS relation, \
             array_agg(b.bufferid ORDER BY b.bufferid) FROM {schema}.pg_buffercache b \
             LEFT JOIN pg_class c ON b.relfilenode = pg_relation_filenode(c.oid) AND b.reldatabase IN \
             (0, (SELECT oid FROM pg_database WHERE datname = current_database())) \
             WHERE b.relfilenode IS NOT NULL GROUP BY 1 ORDER BY count(*) DESC, 1"
        ),
        &[],
    )?;
    Ok(Some(rows.iter().map(|row| Cached { relation: row.get(0), buffers: row.get(1) }).collect()))
}
