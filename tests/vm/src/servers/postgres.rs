//! PostgreSQL whose shared buffers one backend fills: on which nodes they come to lie, by how it was started.

use super::{OnNodes, Running, Seen, ensure_even, ensure_even_heap, pin, seen, share, start, told, with};
use crate::check::{Outcome, Report};
use crate::{planish, settings};
use anyhow::{Context, Result, ensure};
use rustix::process::Signal;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

pub(super) const POSTGRES: &str = "/pg/bin/postgres";
const NUMACTL: &str = "/bin/numactl";
const PRISTINE: &str = "/pg/cluster";
const DATA: &str = "/tmp/pg";
/// PostgreSQL refuses root.
const NOBODY: u32 = 65534;
/// The backend that fills the buffers, and whose heap is looked at, runs on node 1.
const BACKEND_CPU: usize = 2;
pub(super) const BUFFERS_MIB: u64 = 128;
/// One row fills a page of 8 KiB, and all of them nearly all buffers.
const FILL: &str = "create unlogged table t (n int, pad text); alter table t alter pad set storage plain; \
    insert into t select n, repeat('x', 7000) from generate_series(1, 16000) n;";
/// A sort that stays open has its memory in the backend's heap.
const SORT: &str = "set work_mem = '128MB'; begin; \
    declare c cursor for select n from generate_series(1, 400000) n order by n desc; fetch 1 from c;";

/// Share of the backend's private memory on its node: what it took before it was kept there lies elsewhere, 3 to
/// 4 % of it in the table of docs/run.md.
const HEAP_LOCAL: f64 = 0.93;

/// Pages under the shared buffers.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Pages {
    Base,
    Thp,
    Pool,
}

/// Runs the starts that the issue of placement is about, for each kind of page.
pub(super) fn run_all(report: &mut Report) {
    const RUN: &[&str] = &["/bin/planish", "run", "--numa", "shm=interleave:0-1", "--"];
    const RUN_THP: &[&str] = &["/bin/planish", "run", "--numa", "shm=interleave:0-1", "--huge", "shm", "--"];
    let numactl = |pages| with(NUMACTL, || numactl(pages));
    report.check("postgres.plain.4k", || with(POSTGRES, || plain(Pages::Base)));
    report.check("postgres.numactl.4k", || with(POSTGRES, || numactl(Pages::Base)));
    report.check("postgres.run.4k", || with(POSTGRES, || placed(RUN, Pages::Base)));
    report.check("postgres.plain.thp", || with(POSTGRES, || transparent(|| plain(Pages::Thp))));
    report.check("postgres.numactl.thp", || with(POSTGRES, || transparent(|| numactl(Pages::Thp))));
    report.check("postgres.run.thp", || with(POSTGRES, || placed(RUN_THP, Pages::Thp)));
    report.check("postgres.plain.hugetlb", || with(POSTGRES, || pooled(|| plain(Pages::Pool))));
    report.check("postgres.numactl.hugetlb", || with(POSTGRES, || pooled(|| numactl(Pages::Pool))));
    report.check("postgres.run.hugetlb", || with(POSTGRES, || pooled(|| placed(RUN, Pages::Pool))));
}

/// The ground: what one backend filled is on its node, and its heap too.
fn plain(pages: Pages) -> Result<Outcome> {
    let looked = look(&[], pages)?;
    // What the postmaster itself wrote when it began stays with it, and takes more room in larger pages.
    let (of_backend, of_all) = if pages == Pages::Base { (0.95, 0.9) } else { (0.8, 0.8) };
    ensure!(share(&looked.seen.shared, 1) > of_backend, "{}", looked.told());
    ensure!(share(&looked.segment, 1) > of_all, "{}", looked.told());
    ensure!(share(&looked.seen.private, 1) > HEAP_LOCAL, "{}", looked.told());
    looked.ensure_pages()?;
    looked.ok()
}

/// Spread over both nodes, and so is the heap of the backend.
fn numactl(pages: Pages) -> Result<Outcome> {
    let looked = look(&[NUMACTL, "--interleave=all"], pages)?;
    // The policy is the task's: it deals out pages of the heap and of the segment in one turn, and a segment has few
    // huge ones.
    if pages == Pages::Base {
        ensure_even("shared", &looked.seen.shared)?;
    } else {
        ensure!((share(&looked.seen.shared, 1) - 0.5).abs() < 0.1, "{}", looked.told());
    }
    ensure_even_heap(&looked.seen.private)?;
    looked.ensure_pages()?;
    looked.ok()
}

/// The whole segment is spread, on the pages that were wanted, and the heap is local.
fn placed(launcher: &[&str], pages: Pages) -> Result<Outcome> {
    let looked = look(launcher, pages)?;
    ensure_even("shared", &looked.seen.shared)?;
    ensure_even("the whole segment", &looked.segment)?;
    ensure!(share(&looked.seen.private, 1) > HEAP_LOCAL, "{}", looked.told());
    let all: u64 = looked.segment.values().sum();
    ensure!(
        all >= BUFFERS_MIB << 20,
        "{all} bytes are there, fewer than the buffers have: {}",
        looked.told()
    );
    looked.ensure_pages()?;
    looked.ok()
}

/// With transparent huge pages for shared memory, as an administrator turns them on.
fn transparent(check: impl FnOnce() -> Result<Outcome>) -> Result<Outcome> {
    const MODE: &str = "/sys/kernel/mm/transparent_hugepage/shmem_enabled";
    let text = settings::read(MODE)?;
    let chosen = text.split(['[', ']']).nth(1).with_context(|| format!("{MODE} says {text}"))?;
    fs::write(MODE, "always").with_context(|| format!("write {MODE}"))?;
    let outcome = check();
    fs::write(MODE, chosen).with_context(|| format!("restore {MODE}"))?;
    outcome
}

/// With pages in the pools of both nodes, more of them than the segment takes on one.
fn pooled(check: impl FnOnce() -> Result<Outcome>) -> Result<Outcome> {
    let pool =
        |node: u32| format!("/sys/devices/system/node/node{node}/hugepages/hugepages-2048kB/nr_hugepages");
    let before = [settings::read(&pool(0))?, settings::read(&pool(1))?];
    for node in [0, 1] {
        fs::write(pool(node), "88").with_context(|| format!("write {}", pool(node)))?;
    }
    let outcome = check();
    for (node, before) in [0, 1].into_iter().zip(before) {
        fs::write(pool(node), before).with_context(|| format!("restore {}", pool(node)))?;
    }
    outcome
}

/// What was seen of one start.
struct Looked {
    /// What the kernel says of the backend.
    seen: Seen,
    /// What `planish map` says of the segment: bytes that are there, whoever has mapped them.
    segment: OnNodes,
    /// Bytes of it on the pages that were wanted.
    of_backing: u64,
}

impl Looked {
    fn told(&self) -> String {
        let [shared, heap, segment] = [&self.seen.shared, &self.seen.private, &self.segment].map(told);
        format!("shared {shared}, heap {heap}; the segment by map {segment}")
    }

    /// All but a rest lies on the pages that were wanted.
    fn ensure_pages(&self) -> Result<()> {
        let all: u64 = self.segment.values().sum();
        ensure!(
            self.of_backing as f64 >= 0.97 * all as f64,
            "{} of {all} bytes on their pages: {}",
            self.of_backing,
            self.told()
        );
        Ok(())
    }

    fn ok(&self) -> Result<Outcome> {
        Ok(Outcome::Ok(self.told()))
    }
}

fn look(launcher: &[&str], pages: Pages) -> Result<Looked> {
    served(launcher, pages, |filled| looked(filled, pages))
}

/// A server whose buffers one backend has filled, beside its heap.
pub(super) struct Filled {
    pub postmaster: u32,
    pub backend: u32,
    /// Its client: the backend stays as long as it does.
    _session: Session,
}

/// Starts a server on a cluster of its own, has one backend fill the buffers and its heap, and looks.
pub(super) fn served<T>(
    launcher: &[&str],
    pages: Pages,
    look: impl FnOnce(&Filled) -> Result<T>,
) -> Result<T> {
    let _ = fs::remove_dir_all(DATA);
    copy(Path::new(PRISTINE), Path::new(DATA))?;
    fs::set_permissions(DATA, fs::Permissions::from_mode(0o700)).context("close the data folder")?;
    // What initdb has written there names a time zone of the machine that made the cluster.
    let file = format!("{DATA}/postgresql.conf");
    fs::write(&file, "").with_context(|| format!("write {file}"))?;
    let buffers = format!("shared_buffers={BUFFERS_MIB}MB");
    let huge = if pages == Pages::Pool { "huge_pages=on" } else { "huge_pages=off" };
    let settings = [
        buffers.as_str(),
        huge,
        "unix_socket_directories=/tmp",
        "listen_addresses=",
        // A guest has no /dev/shm.
        "dynamic_shared_memory_type=sysv",
        "fsync=off",
        "autovacuum=off",
        "jit=off",
        "timezone=GMT",
        "log_timezone=GMT",
    ];
    let user = ["/pg/bin/setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
    let mut words = [launcher, &user, &[POSTGRES, "-D", DATA]].concat();
    settings.iter().for_each(|setting| words.extend(["-c", setting]));
    let mut server = start(&words)?;
    let looked = filled(&mut server).and_then(|filled| look(&filled));
    server.end(Signal::QUIT)?;
    fs::remove_dir_all(DATA).context("remove the data folder")?;
    looked
}

fn filled(server: &mut Running) -> Result<Filled> {
    let file = format!("{DATA}/postmaster.pid");
    let ready = || {
        let text = fs::read_to_string(&file).ok()?;
        text.lines().nth(7)?.starts_with("ready").then(|| text.lines().next()?.parse::<u32>().ok()).flatten()
    };
    let postmaster = server.wait_for("a server that is ready", ready)?;
    let mut session = Session::open()?;
    let backend = session.backend()?;
    pin(backend, BACKEND_CPU)?;
    session.ask(FILL)?;
    session.ask(SORT)?;
    Ok(Filled { postmaster, backend, _session: session })
}

fn looked(filled: &Filled, pages: Pages) -> Result<Looked> {
    let seen = seen(filled.backend)?;
    let envelope = planish::json(&["map", &filled.postmaster.to_string()], &[0])?;
    let rows = envelope["result"]["rows"].as_array().context("no rows")?;
    let wanted = match pages {
        Pages::Base => "base",
        Pages::Thp => "thp",
        Pages::Pool => "hugetlb",
    };
    let (mut segment, mut of_backing) = (OnNodes::new(), 0);
    for row in rows.iter().filter(|row| row["kind"] == "shared") {
        let bytes = row["resident_bytes"].as_u64().unwrap_or(0);
        let node = row["node"].as_u64().and_then(|node| u32::try_from(node).ok());
        *segment.entry(node.context("a row without a node")?).or_insert(0) += bytes;
        of_backing += if row["backing"] == wanted { bytes } else { 0 };
    }
    Ok(Looked { seen, segment, of_backing })
}

/// One client, and so one backend.
pub(super) struct Session {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Session {
    pub(super) fn open() -> Result<Self> {
        let mut command = Command::new("/pg/bin/psql");
        command
            .args(["-XqAt", "-v", "ON_ERROR_STOP=1", "-h", "/tmp", "-U", "postgres", "postgres"])
            .env_clear();
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().context("start psql")?;
        let input = child.stdin.take().context("its input")?;
        let output = BufReader::new(child.stdout.take().context("its output")?);
        Ok(Self { child, input, output })
    }

    /// The process that serves it.
    pub(super) fn backend(&mut self) -> Result<u32> {
        self.ask("select pg_backend_pid();")?.trim().parse().context("a process id")
    }

    /// What a few statements answer.
    pub(super) fn ask(&mut self, sql: &str) -> Result<String> {
        writeln!(self.input, "{sql}\n\\echo answered").context("write to psql")?;
        let mut answer = String::new();
        loop {
            let mut line = String::new();
            ensure!(self.output.read_line(&mut line)? > 0, "psql ended at: {sql}");
            if line.trim() == "answered" {
                return Ok(answer);
            }
            answer.push_str(&line);
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Copies a folder for the user of the server.
fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir(to).with_context(|| format!("make {}", to.display()))?;
    chown(to, Some(NOBODY), Some(NOBODY)).context("hand a folder over")?;
    for entry in fs::read_dir(from).with_context(|| format!("list {}", from.display()))? {
        let entry = entry?;
        let into = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &into)?;
        } else {
            fs::copy(entry.path(), &into).with_context(|| format!("copy {}", into.display()))?;
            chown(&into, Some(NOBODY), Some(NOBODY)).context("hand a file over")?;
        }
    }
    Ok(())
}
