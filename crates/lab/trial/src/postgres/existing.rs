//! `planish prove postgres --conn`: an existing cluster, read and never changed.
//!
//! A running server cannot be moved to other pages, and restarting it is the owner's decision. So nothing is
//! measured here: the server is asked what it has, `/proc` is asked what it really got, and the lines that would
//! change it are proposed, with what they do to the next start.

use std::time::Duration;

use postgres::{Client, Config, NoTls};
use schemars::JsonSchema;
use serde::Serialize;

use super::install::Version;
use super::proof::Proof;
use super::server::sql_error;
use crate::error::TrialError;

/// How long the server may take to let us in, and to answer a question.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);
const SESSION: &str = "SET default_transaction_read_only = on; SET statement_timeout = '10s'";

/// What an existing cluster has, and what would change it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Existing {
    /// Its version, such as `15.18`.
    pub version: String,
    /// `shared_buffers` in bytes.
    pub shared_buffers_bytes: u64,
    /// `huge_pages`: off, on or try.
    pub huge_pages: String,
    /// `huge_pages_status` (PostgreSQL 17): what came of it at the start, in the server's own words.
    pub huge_pages_status: Option<String>,
    /// Page size that `pages_needed` counts: the setting, or the default size of the server's host, which is known only
    /// where that is this one.
    pub page_bytes: Option<u64>,
    /// Pages that the next start will need (PostgreSQL 15).
    pub pages_needed: Option<u64>,
    /// Bytes of the database that we are connected to.
    pub database_bytes: i64,
    /// `max_connections`: each connection has page tables of its own.
    pub connections_max: u64,
    /// What the memory of our own backend lies on; `None` for a server on another machine, or one whose `/proc`
    /// we may not read, with the reason in `remarks`.
    pub achieved: Option<crate::outcome::Achieved>,
    /// Lines for postgresql.conf, in order.
    pub conf: Vec<ConfLine>,
    /// What to know before a restart, and what could not be seen.
    pub remarks: Vec<String>,
    /// The next command to type.
    pub next: String,
}

/// A proposed line of postgresql.conf.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ConfLine {
    /// The line.
    pub line: String,
    /// Why.
    pub why: String,
}

/// Reads the cluster behind a connection string (`host=/var/run/postgresql dbname=app`, or a URL).
///
/// # Errors
/// The string is malformed, the server does not let us in or does not answer.
pub fn inspect(conn: &str, default_huge_page_bytes: Option<u64>) -> Result<Existing, TrialError> {
    let client = connect(conn)?;
    let mut server = Questions { client };
    server.answer(default_huge_page_bytes).map_err(no_answer)
}

/// A session that cannot write, with a limit on every statement.
pub(super) fn connect(conn: &str) -> Result<Client, TrialError> {
    let malformed = |told: String| TrialError::Usage {
        // It may hold a password, and is not repeated.
        what: format!("the connection string is malformed: {told}"),
        cure: "write it as host=/var/run/postgresql user=postgres dbname=postgres".to_owned(),
    };
    let mut config: Config = conn.parse().map_err(|error: postgres::Error| malformed(sql_error(&error)))?;
    if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
        return Err(malformed("it names no host".to_owned()));
    }
    config.connect_timeout(CONNECT_LIMIT).application_name("planish");
    let mut client = config.connect(NoTls).map_err(no_answer)?;
    client.batch_execute(SESSION).map_err(no_answer)?;
    Ok(client)
}

/// Why a cluster does not answer, or what it refuses with: a role or database that it does not have is an answer.
pub(super) fn no_answer(error: postgres::Error) -> TrialError {
    let what = if error.as_db_error().is_some() { "refuses" } else { "does not answer" };
    TrialError::Refused {
        what: format!("the cluster {what}: {}", sql_error(&error)),
        cure: "try the same string with psql".to_owned(),
    }
}

/// Whether the server runs on this machine. Who connects to an address of its own comes from there as well.
pub(super) fn is_local(client: &mut Client) -> Result<bool, postgres::Error> {
    const QUESTION: &str = "SELECT coalesce(inet_server_addr() << '127.0.0.0/8' OR inet_server_addr() = '::1' \
                            OR inet_server_addr() = inet_client_addr(), true)";
    Ok(client.query_one(QUESTION, &[])?.get(0))
}

struct Questions {
    client: Client,
}

impl Questions {
    /// A setting in its base unit; `None` for one that this version does not have.
    fn setting(&mut self, name: &str) -> Result<Option<String>, postgres::Error> {
        let row = self.client.query_opt("SELECT setting FROM pg_settings WHERE name = $1", &[&name])?;
        Ok(row.map(|row| row.get(0)))
    }

    fn number(&mut self, name: &str) -> Result<Option<u64>, postgres::Error> {
        Ok(self.setting(name)?.and_then(|text| text.parse().ok()))
    }

    fn answer(&mut self, default_page_bytes: Option<u64>) -> Result<Existing, postgres::Error> {
        let version =
            Version::from_number(u32::try_from(self.number("server_version_num")?.unwrap_or(0)).unwrap_or(0));
        let blocks = self.number("shared_buffers")?.unwrap_or(0);
        let block_bytes = self.number("block_size")?.unwrap_or(8192);
        let set_page_bytes =
            self.number("huge_page_size")?.filter(|&kilobytes| kilobytes > 0).map(|kib| kib << 10);
        let row =
            self.client.query_one("SELECT pg_backend_pid(), pg_database_size(current_database())", &[])?;
        let (backend, database_bytes): (i32, i64) = (row.get(0), row.get(1));
        let local = is_local(&mut self.client)?;
        let mut existing = Existing {
            version: version.to_string(),
            shared_buffers_bytes: blocks * block_bytes,
            huge_pages: self.setting("huge_pages")?.unwrap_or_else(|| "off".to_owned()),
            huge_pages_status: self.setting("huge_pages_status")?,
            page_bytes: set_page_bytes.or(default_page_bytes.filter(|_| local)),
            pages_needed: self.number("shared_memory_size_in_huge_pages")?,
            database_bytes,
            connections_max: self.number("max_connections")?.unwrap_or(0),
            achieved: None,
            conf: Vec::new(),
            remarks: Vec::new(),
            next: String::new(),
        };
        existing.look_at_backend(local, backend.unsigned_abs());
        existing.propose(version);
        Ok(existing)
    }
}

impl Existing {
    fn look_at_backend(&mut self, local: bool, backend: u32) {
        if !local {
            self.remarks
                .push("the server is on another machine: what its memory lies on cannot be seen".to_owned());
            return;
        }
        match Proof::of(std::iter::once(backend)) {
            Ok(proof) => self.achieved = Some(proof.facts()),
            Err(error) => self.remarks.push(format!(
                "what its memory lies on cannot be seen ({error}); run as root, or as the server's user"
            )),
        }
    }

    fn propose(&mut self, version: Version) {
        let has_huge =
            self.achieved.as_ref().and_then(|it| it.backing.as_deref()).is_some_and(|it| it != "base");
        if has_huge {
            self.remarks.push("its shared memory lies on huge pages already".to_owned());
            self.next = "planish prove postgres".to_owned();
            return;
        }
        let line = |line: &str, why: &str| ConfLine { line: line.to_owned(), why: why.to_owned() };
        self.conf.push(line(
            "huge_pages = on",
            "fails loudly when the pool is short; `try`, the default, falls back to base pages without a word",
        ));
        if let (Some(bytes), true) = (self.page_bytes, version.chooses_page_size()) {
            self.conf.push(line(
                &format!("huge_page_size = {}", size(bytes, "")),
                "says which pool is meant, whatever the host's default size",
            ));
        }
        self.remarks.push(format!(
            "the pool must hold {} BEFORE the next start: with huge_pages = on and a short pool the server does \
             not start (\"could not map anonymous shared memory\"); with try it starts on base pages",
            self.pages_in_words(version)
        ));
        self.remarks.push("both settings take effect at a restart of the server only".to_owned());
        self.next = "planish size --bytes, then planish plan postgres --service PID".to_owned();
    }

    /// How many pages of which size. The number holds for pages of the size that it was counted in and for no other.
    fn pages_in_words(&self, version: Version) -> String {
        const HERE_UNKNOWN: &str = "of the default size of its host (Hugepagesize in /proc/meminfo there)";
        match (self.pages_needed, self.page_bytes) {
            (Some(pages), Some(bytes)) => format!("{pages} pages of {}", size(bytes, " ")),
            (Some(pages), None) => format!("{pages} pages {HERE_UNKNOWN}"),
            (None, bytes) => {
                let bytes = bytes.unwrap_or(2 << 20);
                let pages = (self.shared_buffers_bytes / 10 * 11).div_ceil(bytes);
                let size = size(bytes, " ");
                format!("about {pages} pages of {size} (PostgreSQL {version} cannot tell exactly)")
            }
        }
    }
}

/// A page size in PostgreSQL's units, which are powers of 1024, in the largest one that has no remainder.
fn size(bytes: u64, between: &str) -> String {
    let units = [(30, "GB"), (20, "MB"), (10, "kB")];
    let (shift, unit) =
        units.into_iter().find(|(shift, _)| bytes.is_multiple_of(1 << shift)).unwrap_or((10, "kB"));
    format!("{}{between}{unit}", bytes >> shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn existing() -> Existing {
        Existing {
            version: "15.18".to_owned(),
            shared_buffers_bytes: 1 << 30,
            huge_pages: "try".to_owned(),
            huge_pages_status: None,
            page_bytes: Some(2 << 20),
            pages_needed: Some(540),
            database_bytes: 0,
            connections_max: 100,
            achieved: None,
            conf: Vec::new(),
            remarks: Vec::new(),
            next: String::new(),
        }
    }

    #[test]
    fn the_proposal_says_what_a_short_pool_does() {
        let mut existing = existing();
        existing.propose(Version { major: 15, minor: 18 });
        let lines: Vec<_> = existing.conf.iter().map(|it| it.line.as_str()).collect();
        assert_eq!(lines, ["huge_pages = on", "huge_page_size = 2MB"]);
        assert!(
            existing.remarks[0].contains("540 pages of 2 MB BEFORE the next start"),
            "{:?}",
            existing.remarks
        );
    }

    #[test]
    fn the_size_that_is_proposed_is_the_one_that_was_counted() {
        let version = Version { major: 15, minor: 18 };
        let propose = |page_bytes, pages_needed| {
            let mut existing = Existing { page_bytes, pages_needed, ..existing() };
            existing.propose(version);
            let lines: Vec<_> = existing.conf.iter().map(|it| it.line.clone()).collect();
            (lines[1..].to_vec(), existing.remarks[0].clone())
        };
        for (bytes, pages, line, words) in [
            (2 << 20, 540, "huge_page_size = 2MB", "must hold 540 pages of 2 MB BEFORE"),
            (1 << 30, 2, "huge_page_size = 1GB", "must hold 2 pages of 1 GB BEFORE"),
            (512 << 20, 3, "huge_page_size = 512MB", "must hold 3 pages of 512 MB BEFORE"),
            (64 << 10, 17_280, "huge_page_size = 64kB", "must hold 17280 pages of 64 kB BEFORE"),
        ] {
            let (lines, remark) = propose(Some(bytes), Some(pages));
            assert_eq!(lines, [line]);
            assert!(remark.contains(words), "{remark}");
        }
        let (lines, remark) = propose(None, Some(540));
        assert!(lines.is_empty(), "the default size of another machine is not known: {lines:?}");
        assert!(remark.contains("540 pages of the default size of its host"), "{remark}");
    }

    #[test]
    fn an_old_server_is_not_given_a_setting_that_it_lacks() {
        let mut existing = Existing { pages_needed: None, ..existing() };
        existing.propose(Version { major: 13, minor: 1 });
        assert_eq!(existing.conf.len(), 1);
        assert!(existing.remarks[0].contains("about 564 pages of 2 MB"), "{:?}", existing.remarks);
    }

    #[test]
    fn a_malformed_string_is_refused_with_an_example() {
        for (conn, told) in [
            ("", "no host"),
            ("dbname=app", "no host"),
            ("host=/run sslmode=perhaps", "sslmode"),
            ("host=/run port=many", "port"),
            ("host=/run database=app", "database"),
            ("postgresql://[::1/app", "connection string"),
        ] {
            let error = inspect(conn, None).expect_err("malformed");
            assert_eq!(error.exit(), planish_model::Exit::Usage, "{conn}: {error}");
            assert!(error.to_string().contains(told) && !error.hints().is_empty(), "{conn}: {error}");
        }
        let error = inspect("host=/nonexistent user=x", None).expect_err("no socket");
        assert_eq!(error.exit(), planish_model::Exit::Refused, "it may be there tomorrow");
        assert!(error.to_string().contains("No such file"), "{error}");
    }
}
