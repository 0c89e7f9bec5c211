//! `planish map --tree` counts a page once that several processes have: a segment whose parts each of two children has
//! mapped, and private memory that a fork left shared, of which one child has written a part.
//!
//! As root by what is in the segment; where it cannot be looked at by what the processes have mapped of it; and where
//! frames are hidden, private memory counts in each process and that is said. Linux 6.1 does each without PAGEMAP_SCAN;
//! on newer ones a filter takes it away for the second and the third.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
use rustix::process::{Signal, set_parent_process_death_signal};
use rustix::thread::{CapabilitySet, remove_capability_from_bounding_set};
use serde_json::Value;

use crate::check::Outcome;
use crate::{planish, refused, settings};

/// The word that has this program stand still with its children.
pub const WORD: &str = "with-children";
const MIB: usize = 1 << 20;
const CHILDREN: usize = 2;
/// Bytes of the segment: each child writes two thirds of it, and so its middle both of them.
const SHARED: usize = 24 * MIB;
/// Bytes that are written before the fork, and those of them that one child writes again.
const PRIVATE: usize = 16 * MIB;
const WRITTEN: usize = 4 * MIB;
/// What three processes have beside what they map for this.
const SLACK: u64 = 3 << 20;

/// Forks the children, says that they are ready, and waits to be ended.
pub fn stand() {
    let shared = map(SHARED, MapFlags::SHARED);
    let private = map(PRIVATE, MapFlags::PRIVATE);
    write(private, 0, PRIVATE);
    let (mut told, mut tell) = std::io::pipe().expect("two descriptors");
    for child in 0..CHILDREN {
        // SAFETY: this program has one thread, so that its child may do all that it might do itself.
        let forked = unsafe { libc::fork() };
        assert!(forked >= 0, "{}", std::io::Error::last_os_error());
        if forked > 0 {
            continue;
        }
        set_parent_process_death_signal(Some(Signal::KILL)).expect("a signal");
        let third = SHARED / (CHILDREN + 1);
        write(shared, child * third, (child + 2) * third);
        if child == 0 {
            write(private, 0, WRITTEN);
        }
        tell.write_all(&[1]).expect("it waits for this");
        sleep(Duration::from_secs(600));
        std::process::exit(0);
    }
    told.read_exact(&mut [0; CHILDREN]).expect("each child says so");
    println!("ready");
    std::io::stdout().flush().expect("standard output");
    sleep(Duration::from_secs(600));
}

fn map(bytes: usize, kind: MapFlags) -> *mut u8 {
    let rights = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: the kernel chooses the place of a new mapping.
    unsafe { mmap_anonymous(std::ptr::null_mut(), bytes, rights, kind) }.expect("memory").cast()
}

/// Writes the pages of a mapping from one offset to another.
fn write(start: *mut u8, from: usize, to: usize) {
    for offset in (from..to).step_by(4096) {
        // SAFETY: inside the mapping, which was made so large and lives as long as this process.
        unsafe { start.add(offset).write_volatile(1) };
    }
}

/// The processes, until dropped: the children end with their parent.
struct Tree(Child);

impl Tree {
    fn start() -> Result<Self> {
        let mut command = Command::new("/proc/self/exe");
        let tree = command.arg(WORD).stdout(Stdio::piped()).spawn().context("start the tree")?;
        let mut tree = Self(tree);
        let mut ready = String::new();
        BufReader::new(tree.0.stdout.take().context("its output")?).read_line(&mut ready)?;
        ensure!(ready.contains("ready"), "the tree said {ready:?}");
        Ok(tree)
    }

    fn pid(&self) -> String {
        self.0.id().to_string()
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// As root, by what is in the segment and by frames.
pub fn counts_once() -> Result<Outcome> {
    let tree = Tree::start()?;
    let envelope = planish::json(&["map", &tree.pid(), "--tree"], &[0])?;
    let seen_by = if settings::is_before((6, 7))? { "pagemap" } else { "pagemap_scan" };
    let told = Told::of(&envelope, seen_by)?;
    told.ensure_once(&envelope)?;
    Ok(Outcome::Ok(told.to_string()))
}

/// Where nothing but page tables tells what is in the segment: of either child a part.
pub fn counts_once_by_tables() -> Result<Outcome> {
    refused::filtered(|| {
        let tree = Tree::start()?;
        let command =
            refused::under(&["userfaultfd=1", "scan=25"], &["map", &tree.pid(), "--tree", "--json"]);
        let envelope = answer(command)?;
        let why = unseen(&envelope, "pages of shared memory");
        ensure!(why.contains("not permitted"), "the segment was looked at: {envelope}");
        let told = Told::of(&envelope, "pagemap")?;
        told.ensure_once(&envelope)?;
        Ok(Outcome::Ok(told.to_string()))
    })
}

/// Without the rights for frames and segments: the segment is the union of what the processes have mapped, and private
/// memory counts in each, which is said.
pub fn counts_without_frames() -> Result<Outcome> {
    refused::filtered(|| {
        let tree = Tree::start()?;
        let mut command = refused::under(&["scan=25"], &["map", &tree.pid(), "--tree", "--json"]);
        let without_rights = || -> std::io::Result<()> {
            for right in [CapabilitySet::SYS_ADMIN, CapabilitySet::CHECKPOINT_RESTORE] {
                remove_capability_from_bounding_set(right)?;
            }
            Ok(())
        };
        // SAFETY: between fork and exec the closure makes two calls of the kernel, and allocates nothing.
        unsafe { command.pre_exec(without_rights) };
        let envelope = answer(command)?;
        ensure!(
            !unseen(&envelope, "which pages of memory since a fork").is_empty(),
            "it is not said that private memory counts in each process: {envelope}"
        );
        let told = Told::of(&envelope, "pagemap")?;
        told.ensure_segment(&envelope)?;
        let each = ((1 + CHILDREN) * PRIVATE) as u64;
        ensure!((each..each + SLACK).contains(&told.own), "{} of {each}: {envelope}", told.own);
        Ok(Outcome::Ok(told.to_string()))
    })
}

/// The JSON of a command that does what it is to do.
fn answer(mut command: Command) -> Result<Value> {
    let run = planish::Run::from(command.output().context("start planish")?);
    ensure!(run.exit == 0, "left with {}: {} {}", run.exit, run.stdout, run.stderr);
    serde_json::from_str(&run.stdout).context("its JSON")
}

/// Why something was not seen, by the beginning of what it is; empty where it was.
fn unseen(envelope: &Value, what: &str) -> String {
    let all = envelope["result"]["unseen"].as_array().map(Vec::as_slice).unwrap_or_default();
    let found = all.iter().find(|unseen| unseen["what"].as_str().is_some_and(|text| text.starts_with(what)));
    found.and_then(|unseen| unseen["why"].as_str()).unwrap_or_default().to_owned()
}

/// Bytes of the tree.
struct Told {
    shared: u64,
    own: u64,
    seen_by: &'static str,
}

impl Told {
    fn of(envelope: &Value, seen_by: &'static str) -> Result<Self> {
        let result = &envelope["result"];
        let processes = result["processes"].as_array().context("no result.processes")?;
        ensure!(processes.len() == 1 + CHILDREN, "{} processes: {envelope}", processes.len());
        for process in processes {
            ensure!(process["seen_by"] == seen_by, "seen by {}, not {seen_by}", process["seen_by"]);
        }
        let rows = result["rows"].as_array().context("no result.rows")?;
        let of = |kinds: &[&str]| -> u64 {
            let rows =
                rows.iter().filter(|row| row["kind"].as_str().is_some_and(|kind| kinds.contains(&kind)));
            rows.filter_map(|row| row["resident_bytes"].as_u64()).sum()
        };
        Ok(Self { shared: of(&["shared"]), own: of(&["anon", "heap", "stack"]), seen_by })
    }

    fn ensure_segment(&self, envelope: &Value) -> Result<()> {
        ensure!(self.shared == SHARED as u64, "{} of {SHARED} bytes shared: {envelope}", self.shared);
        Ok(())
    }

    /// What was written before the fork counts once, and what a child has written again once more.
    fn ensure_once(&self, envelope: &Value) -> Result<()> {
        self.ensure_segment(envelope)?;
        let once = (PRIVATE + WRITTEN) as u64;
        ensure!((once..once + SLACK).contains(&self.own), "{} of {once} bytes: {envelope}", self.own);
        Ok(())
    }
}

impl std::fmt::Display for Told {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kib = |bytes: u64| bytes >> 10;
        write!(f, "{} KiB shared, {} KiB private, by {}", kib(self.shared), kib(self.own), self.seen_by)
    }
}
