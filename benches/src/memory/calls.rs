//! What the preload of `planish run` adds to a call that it stands in front of, and to one that it has nothing to do
//! with: CPU time of a call in a program that was started with it, less that of the same call in the same program
//! without.
//!
//! Each sample is a process of its own, so that where the loader has put things is drawn anew, and each round has one
//! of either kind. A segment that is placed is measured in one process beside the same by hand, in turns: its file, its
//! wake-up and its pages take more time than what is looked for, and vary more from process to process.

#![expect(unsafe_code, reason = "the preload stands in front of functions of libc, which are C")]

use std::io::{Read as _, stdin};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::ptr::{null, null_mut};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use planish_stats::summary;
use planish_sys::policy::{self, Existing, Policy};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::sockopt::set_socket_passcred;

use super::cpu_ns;
use crate::rounds::{Arm, Rounds};
use crate::row::{Limit, Rows};

const ROUNDS: usize = 60;
/// What a call may take more.
const ADDED_NS_MAX: f64 = 2000.0;
/// What a call may take that has nothing to do with the preload, over the same without: nothing, as far as processes
/// that were loaded to other addresses can be compared.
const OTHER_RATIO_MAX: f64 = 1.02;
/// Less than the preload places.
const SMALL_BYTES: usize = 64 << 10;
/// What it places: the default of `--min`.
const LARGE_BYTES: usize = 16 << 20;
/// How long the notice of a segment has.
const NOTICE: Duration = Duration::from_millis(1);
/// The word of the process that takes it up, before the name of its socket.
const LISTEN: &str = "listen-";
/// What it tells of a segment.
const TOLD_BYTES: usize = 64;

/// A call that is intercepted, with the one that takes back what it gave. What both take more is counted to the one.
struct Cycle {
    /// The word of the process that is measured.
    word: &'static str,
    name: &'static str,
    /// Cycles of a sample.
    count: usize,
    /// How long whoever is told something has to take it up before the next cycle, whose time does not count: a program
    /// makes few large segments, and one that makes them faster than anybody reads waits for the reader.
    pause: Duration,
}

const CYCLES: [Cycle; 3] = [
    Cycle { word: "private", name: "private mmap, 64 KiB", count: 20_000, pause: Duration::ZERO },
    Cycle { word: "shared", name: "shared mmap, 64 KiB", count: 10_000, pause: Duration::ZERO },
    Cycle { word: "sysv", name: "shmget and shmat, 64 KiB", count: 5_000, pause: Duration::ZERO },
];
const PLACED: Cycle =
    Cycle { word: "placed", name: "shared mmap, 16 MiB, placed and told", count: 300, pause: NOTICE };
const OTHER: Cycle = Cycle { word: "other", name: "getppid", count: 200_000, pause: Duration::ZERO };

/// Adds the rows.
pub fn measure(planish: &Path, rows: &mut Rows) {
    for cycle in &CYCLES {
        let name = format!("preload adds to a call: {}", cycle.name);
        rows.add_with_note(&name, "ns", (Limit::AtMost, ADDED_NS_MAX), || {
            let rounds = rounds(planish, cycle, cycle)?;
            Ok((rounds.added(0, 1)?, note(&rounds)))
        });
    }
    let name = format!("preload adds to {}, over the same by hand", PLACED.name);
    rows.add_with_note(&name, "ns", (Limit::AtMost, ADDED_NS_MAX), || {
        let rounds = Rounds::pairs(ROUNDS, || {
            let Sample { ns, by_hand_ns } = sample(&mut preloaded(planish, &PLACED)?, true)?;
            Ok([ns, by_hand_ns.context("nothing was placed by hand")?])
        })?;
        Ok((rounds.added(0, 1)?, note(&rounds)))
    });
    let name = format!("preload: {}, all of it", PLACED.name);
    rows.beside(&name, "ns", || rounds(planish, &PLACED, &PLACED)?.added(0, 1));
    let name = format!("preload: a call of another kind with it / without, {}", OTHER.name);
    rows.add_with_note(&name, "ratio", (Limit::AtMost, OTHER_RATIO_MAX), || {
        let rounds = rounds(planish, &OTHER, &OTHER)?;
        Ok((rounds.over(0, 1)?, note(&rounds)))
    });
}

fn note(rounds: &Rounds) -> String {
    format!("{:.0} ns, without {:.0} ns", rounds.median(0), rounds.median(1))
}

/// The one with the preload first, then the other without.
fn rounds(planish: &Path, with: &Cycle, without: &Cycle) -> Result<Rounds> {
    let (mut with, mut without) = (preloaded(planish, with)?, bare(without)?);
    let mut arms: [Arm<'_>; 2] =
        [Box::new(|| Ok(sample(&mut with, true)?.ns)), Box::new(|| Ok(sample(&mut without, false)?.ns))];
    Rounds::measure(ROUNDS, &mut arms)
}

/// What a process has measured.
struct Sample {
    /// CPU time of a cycle.
    ns: f64,
    /// The same by the program itself, in turns with it: what the preload was asked for takes as long whoever does it.
    by_hand_ns: Option<f64>,
}

fn bare(cycle: &Cycle) -> Result<Command> {
    let mut command = Command::new(std::env::current_exe().context("our own path")?);
    command.args(["server", "--role", &format!("calls {}", cycle.word)]);
    Ok(command)
}

fn preloaded(planish: &Path, cycle: &Cycle) -> Result<Command> {
    let bare = bare(cycle)?;
    let mut command = Command::new(planish);
    // Without pages: to fill a segment is what was asked for, and takes as long as it is large.
    command.args(["run", "--numa", "shm=interleave", "--no-prefault", "--"]);
    command.arg(bare.get_program()).args(bare.get_args());
    Ok(command)
}

fn sample(command: &mut Command, is_preloaded: bool) -> Result<Sample> {
    let output = command.stdin(Stdio::null()).output().context("start the process that is measured")?;
    let talk = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{}", talk.lines().next().unwrap_or("it failed"));
    let text = String::from_utf8_lossy(&output.stdout);
    let mut words = text.split_whitespace();
    let (preload, ns) = (words.next().context("it said nothing")?, words.next().context("it has no figure")?);
    ensure!((preload == "loaded") == is_preloaded, "the preload is {preload}");
    Ok(Sample { ns: ns.parse()?, by_hand_ns: words.next().map(str::parse).transpose()? })
}

/// The measured side: whether the preload is there, nanoseconds of CPU time of a cycle, and where it is one that the
/// preload places, of the same by hand.
pub fn serve(word: &str) -> Result<()> {
    if let Some(name) = word.strip_prefix(LISTEN) {
        return listen(name);
    }
    let mut cycles = CYCLES.iter().chain([&PLACED, &OTHER]);
    let cycle = cycles.find(|cycle| cycle.word == word).context("no such cycle")?;
    let maps = std::fs::read_to_string("/proc/self/maps").context("read /proc/self/maps")?;
    let is_loaded = maps.contains("/planish-preload-");
    let figures = match word {
        "private" => in_a_row(cycle, || map(SMALL_BYTES, libc::MAP_PRIVATE))?,
        "shared" => in_a_row(cycle, || map(SMALL_BYTES, libc::MAP_SHARED))?,
        "placed" => in_turns(cycle)?,
        "sysv" => in_a_row(cycle, sysv)?,
        "other" => in_a_row(cycle, || {
            // SAFETY: it takes nothing and cannot fail.
            std::hint::black_box(unsafe { libc::getppid() });
            Ok(())
        })?,
        other => bail!("no cycle {other}"),
    };
    println!("{} {figures}", if is_loaded { "loaded" } else { "absent" });
    Ok(())
}

/// CPU time of a cycle, of all that a sample has.
fn in_a_row(cycle: &Cycle, run: impl Fn() -> Result<()>) -> Result<String> {
    // The first calls look symbols up.
    (0..cycle.count / 10).try_for_each(|_| run())?;
    let before = cpu_ns();
    (0..cycle.count).try_for_each(|_| run())?;
    Ok(((cpu_ns() - before) / cycle.count as f64).to_string())
}

/// The same of segments that are placed: by whatever stands in front of libc, and by hand. Each is timed by itself,
/// after a pause in which who was told has read it, and the median stands for all: what comes in between (an
/// interrupt, a wake-up on another CPU) is a few of hundreds, and longer than what is looked for.
fn in_turns(cycle: &Cycle) -> Result<String> {
    let (policy, (listener, _held)) = (Policy::Interleave(policy::allowed_nodes()?), listener()?);
    let timed = |run: &dyn Fn() -> Result<()>| {
        std::thread::sleep(cycle.pause);
        let before = cpu_ns();
        run().map(|()| cpu_ns() - before)
    };
    let mut each = [Vec::new(), Vec::new()];
    let warm = cycle.count / 10;
    for turn in 0..warm + cycle.count {
        let placed = timed(&|| map(LARGE_BYTES, libc::MAP_SHARED))?;
        let by_hand = timed(&|| by_hand(&policy, &listener))?;
        if turn >= warm {
            each[0].push(placed);
            each[1].push(by_hand);
        }
    }
    Ok(format!("{} {}", summary::median(&each[0]), summary::median(&each[1])))
}

/// What the preload is asked for, by the kernel alone, so that it does not stand in front.
fn by_hand(policy: &Policy, listener: &SocketAddr) -> Result<()> {
    let (rights, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping where the kernel likes, which nobody else knows of.
    let address = unsafe { libc::syscall(libc::SYS_mmap, 0, LARGE_BYTES, rights, flags, -1, 0) };
    ensure!(address > 0, "mmap: {}", std::io::Error::last_os_error());
    policy::bind(address as usize, LARGE_BYTES, policy, Existing::Stay)?;
    UnixDatagram::unbound()?.send_to_addr(&[0; TOLD_BYTES], listener)?;
    // SAFETY: the mapping of above, whose address nobody has kept.
    let unmapped = unsafe { libc::syscall(libc::SYS_munmap, address, LARGE_BYTES) };
    ensure!(unmapped == 0, "munmap: {}", std::io::Error::last_os_error());
    Ok(())
}

/// Somebody who reads what he is told, in a process of his own as the launcher is one: to wake another process takes
/// longer than another thread. He is there until the pipe that he is given closes, which it does with us.
fn listener() -> Result<(SocketAddr, Child)> {
    let name = format!("planish-bench-{}", std::process::id());
    let mut command = Command::new(std::env::current_exe().context("our own path")?);
    command.args(["server", "--role", &format!("calls {LISTEN}{name}")]);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().context("start the listener")?;
    let mut ready = [0];
    child.stdout.take().context("its output")?.read_exact(&mut ready).context("the listener")?;
    Ok((SocketAddr::from_abstract_name(name)?, child))
}

/// The listener's side. It waits as `planish run` does, by poll, and asks who tells it: both cost whoever tells.
fn listen(name: &str) -> Result<()> {
    let listener = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(name)?).context("listen")?;
    set_socket_passcred(&listener, true)?;
    println!("1");
    let parent = stdin();
    loop {
        let mut files = [PollFd::new(&listener, PollFlags::IN), PollFd::new(&parent, PollFlags::IN)];
        poll(&mut files, None)?;
        if !files[1].revents().is_empty() {
            return Ok(());
        }
        listener.recv(&mut [0; TOLD_BYTES])?;
    }
}

fn map(bytes: usize, kind: i32) -> Result<()> {
    let rights = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping where the kernel likes, which nobody else knows of.
    let address = unsafe { libc::mmap(null_mut(), bytes, rights, kind | libc::MAP_ANONYMOUS, -1, 0) };
    ensure!(address != libc::MAP_FAILED, "mmap: {}", std::io::Error::last_os_error());
    // SAFETY: the mapping of above, whose address nobody has kept.
    let unmapped = unsafe { libc::munmap(address, bytes) };
    ensure!(unmapped == 0, "munmap: {}", std::io::Error::last_os_error());
    Ok(())
}

fn sysv() -> Result<()> {
    // SAFETY: a segment of our own, gone with its only attachment.
    let is_done = unsafe {
        let id = libc::shmget(libc::IPC_PRIVATE, SMALL_BYTES, libc::IPC_CREAT | 0o600);
        ensure!(id >= 0, "shmget: {}", std::io::Error::last_os_error());
        let address = libc::shmat(id, null(), 0);
        let removed = libc::shmctl(id, libc::IPC_RMID, null_mut());
        removed == 0 && libc::shmdt(address) == 0
    };
    ensure!(is_done, "a System V segment: {}", std::io::Error::last_os_error());
    Ok(())
}
