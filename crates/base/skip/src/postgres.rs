//! A real PostgreSQL for tests: its own data, a private socket, an unprivileged user, a certain end.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// How long a server may take to answer, and to end.
const LIMIT: Duration = Duration::from_secs(60);

/// Names the socket; nothing listens on a network.
const PORT: u16 = 54_321;

/// A server that ends, with its data, when it is dropped.
#[derive(Debug)]
pub struct Postgres {
    programs: PathBuf,
    folder: PathBuf,
    user: Option<(u32, u32)>,
    server: Option<Child>,
}

impl Postgres {
    /// Makes a cluster and starts a server with these settings, such as `shared_buffers=64MB`.
    ///
    /// # Errors
    /// The reason, to be skipped with: no PostgreSQL, nobody to run it as, settings that this machine cannot have.
    pub fn start(settings: &[&str]) -> Result<Self, String> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("planish-test-pg-{}-{number}", std::process::id());
        // A socket's path must be short: not below a deep TMPDIR.
        let folder = Path::new("/var/tmp").join(name);
        let mut postgres = Self { programs: programs()?, folder, user: user()?, server: None };
        postgres.make().map_err(|error| format!("cannot make a cluster: {error}"))?;
        let mut command = postgres.command("postgres");
        command.arg("-D").arg(postgres.data()).args(["-k"]).arg(&postgres.folder);
        let fixed = ["listen_addresses=", "fsync=off", "autovacuum=off", "logging_collector=off"];
        let port = format!("port={PORT}");
        for setting in fixed.iter().chain(settings).copied().chain([port.as_str()]) {
            command.args(["-c", setting]);
        }
        let log = fs::File::create(postgres.folder.join("log")).map_err(|error| error.to_string())?;
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        postgres.server = Some(command.spawn().map_err(|error| error.to_string())?);
        postgres.wait()?;
        Ok(postgres)
    }

    fn make(&self) -> std::io::Result<()> {
        fs::create_dir(&self.folder)?;
        fs::set_permissions(&self.folder, fs::Permissions::from_mode(0o700))?;
        if let Some((user, group)) = self.user {
            chown(&self.folder, Some(user), Some(group))?;
        }
        let mut command = self.command("initdb");
        command.arg("-D").arg(self.data()).args(["-U", "postgres", "-A", "trust", "--no-sync", "--locale=C"]);
        let output = command.output()?;
        let said = || std::io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned());
        if output.status.success() { Ok(()) } else { Err(said()) }
    }

    fn wait(&mut self) -> Result<(), String> {
        let socket = self.folder.join(format!(".s.PGSQL.{PORT}"));
        let begun = Instant::now();
        loop {
            let child = self.server.as_mut().expect("it was started");
            if child.try_wait().ok().flatten().is_some() || begun.elapsed() > LIMIT {
                let log = fs::read_to_string(self.folder.join("log")).unwrap_or_default();
                return Err(format!("the server does not start: {}", log.trim()));
            }
            // A server that is still starting has its socket but refuses questions.
            if UnixStream::connect(&socket).is_ok() && self.sql("select 1").is_ok() {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// A program of the installation, to be run as the server's user.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.programs.join(program));
        command.current_dir(if self.folder.is_dir() { &self.folder } else { Path::new("/") });
        if let Some((user, group)) = self.user {
            command.uid(user).gid(group);
        }
        command
    }

    /// The connection string.
    pub fn conn(&self) -> String {
        format!("host={} port={PORT} user=postgres dbname=postgres", self.folder.display())
    }

    /// PID of the postmaster.
    pub fn pid(&self) -> u32 {
        self.server.as_ref().expect("it runs until it is dropped").id()
    }

    /// Runs SQL in a session of its own; what it printed, unaligned.
    ///
    /// # Errors
    /// What psql said.
    pub fn sql(&self, text: &str) -> Result<String, String> {
        let mut command = self.command("psql");
        command.args(["-XAtq", "-v", "ON_ERROR_STOP=1", "-d", &self.conn(), "-c", text]);
        let Output { status, stdout, stderr } = command.output().map_err(|error| error.to_string())?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        if status.success() { Ok(text(&stdout)) } else { Err(text(&stderr)) }
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        if let Some(mut server) = self.server.take() {
            let mut stop = self.command("pg_ctl");
            stop.arg("-D").arg(self.data()).args(["-m", "immediate", "-w", "-t", "20", "-s", "stop"]);
            let _ = stop.stdout(Stdio::null()).stderr(Stdio::null()).status();
            let _ = server.kill();
            let _ = server.wait();
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// The folder of the newest installation that packages made.
fn programs() -> Result<PathBuf, String> {
    let entries = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut found: Vec<(u32, PathBuf)> = entries
        .filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path().join("bin"))))
        .filter(|(_, folder)| ["postgres", "initdb", "psql"].iter().all(|name| folder.join(name).exists()))
        .collect();
    found.sort();
    found.pop().map(|(_, folder)| folder).ok_or_else(|| "no PostgreSQL server is installed".to_owned())
}

/// User and group to change to: PostgreSQL refuses root. `None` to stay who we are.
fn user() -> Result<Option<(u32, u32)>, String> {
    let status = fs::read_to_string("/proc/self/status").map_err(|error| error.to_string())?;
    let effective = status.lines().find_map(|line| line.strip_prefix("Uid:")?.split_whitespace().nth(1));
    if effective != Some("0") {
        return Ok(None);
    }
    let passwd = fs::read_to_string("/etc/passwd").map_err(|error| error.to_string())?;
    let account = |name: &str| {
        let line = passwd.lines().find(|line| line.split(':').next() == Some(name))?;
        let mut ids = line.split(':').skip(2);
        Some((ids.next()?.parse().ok()?, ids.next()?.parse().ok()?))
    };
    let found = ["postgres", "nobody"].into_iter().find_map(account);
    found.map(Some).ok_or_else(|| "no user but root to run PostgreSQL as".to_owned())
}
