//! A limit that counts only while a file is open: the longest wake-up of any CPU (PM QoS).
//!
//! Whoever opens `/dev/cpu_dma_latency` and writes a number of microseconds keeps every CPU out of sleep states that
//! take longer to leave, until the descriptor is closed (Documentation/power/pm_qos_interface.rst). Of all who do so
//! the smallest number counts. So a limit that is to outlive the command which set it needs a process that does nothing
//! but hold the descriptor: `planish hold cpu-dma-latency N`, the *holder*.
//!
//! A holder is known by what it is, not by what it is called: its arguments word for word, and the device among its
//! descriptors. Its name ([`NAME`]) is set only when it holds, and spares a look at the arguments of every process. It
//! is ended by a descriptor of the process itself, and only after a second look through it: a number that was given to
//! another process meanwhile is never signalled.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use planish_sorted::SortSmall as _;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, pidfd_send_signal};
use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};

use crate::detach::start_apart;
use crate::file;
use crate::process::{pidfd, wait_readable};

/// The device.
pub const DEVICE: &str = "/dev/cpu_dma_latency";

/// What the device shows when nobody limits anything, in microseconds (`PM_QOS_CPU_LATENCY_DEFAULT_VALUE`).
pub const NO_LIMIT_US: u32 = 2_000_000_000;

/// The words behind the program that make a process a holder, but for the number.
pub const WORDS: [&str; 2] = ["hold", "cpu-dma-latency"];

/// The unit of systemd that has a boot start a holder, where it lies, and the drop-in by which every boot pulls it in.
pub const UNIT: &str = "planish-hold.service";
/// Its file.
pub const UNIT_FILE: &str = "/etc/systemd/system/planish-hold.service";
/// The drop-in of the target of every boot.
pub const PULLED_IN: &str = "/etc/systemd/system/multi-user.target.d/90-planish-hold.conf";
/// The line of the drop-in that does it.
pub const WANTED: &str = "Wants=planish-hold.service";

/// The limit that a command of a unit has held, in its own words; `None` for any other command.
#[must_use]
pub fn limit_in_unit(command: &str) -> Option<&str> {
    let [_, first, second, limit] = command.split(' ').collect::<Vec<_>>()[..] else { return None };
    ([first, second] == WORDS && limit.bytes().all(|byte| byte.is_ascii_digit())).then_some(limit)
}

/// The name that a holder gives itself when it holds; the kernel keeps 15 bytes of one.
const NAME: &str = "planish-holder";

/// How long a look waits for a holder that is just starting. One that cannot (the device is not to be had) ends.
const STARTING: Duration = Duration::from_secs(2);

/// How long a holder may take to start or to end before that counts as failed.
const PATIENCE: Duration = Duration::from_secs(20);

/// A process that holds a limit for us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The process.
    pub pid: u32,
    /// The limit in microseconds.
    pub limit_us: u32,
    /// Whether its descriptors were seen. An ordinary user may not see those of root, and takes the rest for enough: no
    /// ordinary user makes a process of root. Nothing is ended that was not seen.
    pub is_seen: bool,
}

/// The holders of this machine, by their numbers.
///
/// `proc` is where the processes are (`/proc`), as a test puts up others. Those of other containers are none: they are
/// in another PID namespace.
///
/// # Errors
/// The processes cannot be listed.
pub fn holders(proc: &Path) -> io::Result<Vec<Holder>> {
    Ok(look(proc, None)?.holders)
}

/// What one walk over the processes has seen.
struct Walk {
    /// Our holders, by their numbers.
    holders: Vec<Holder>,
    /// Whether a process of our program is about to become one.
    starts: bool,
    /// Every process.
    pids: Vec<u32>,
}

/// Walks over the processes once. `program` is the name of the program that may be about to become a holder.
fn look(proc: &Path, program: Option<&str>) -> io::Result<Walk> {
    let own = namespace(&proc.join("self"));
    let mut walk = Walk { holders: Vec::new(), starts: false, pids: pids(proc)? };
    for pid in walk.pids.iter().copied() {
        let folder = proc.join(pid.to_string());
        // A process that ends meanwhile holds nothing.
        let name = file::read_text(&folder.join("comm")).unwrap_or_default();
        let is_holder = name.trim_end() == NAME;
        if !is_holder && Some(name.trim_end()) != program {
            continue;
        }
        if namespace(&folder).is_some_and(|theirs| Some(theirs) != own) {
            continue;
        }
        let words = file::read_up_to(&folder.join("cmdline"), file::BYTES_MAX).unwrap_or_default();
        let Some(limit_us) = limit_of(&words) else { continue };
        walk.starts |= !is_holder && is_starting(&folder);
        let open = has_open(&folder);
        if is_holder && open.unwrap_or_else(|| is_of_root(&folder)) {
            walk.holders.push(Holder { pid, limit_us, is_seen: open.is_some() });
        }
    }
    walk.holders.sort_small_by_key(|holder| holder.pid);
    Ok(walk)
}

/// Whether a process may still be on its way to what it was started for. One that is stopped, or that has ended, is
/// not; nor is one that has had all the time that it is waited for: nobody's read is held up by it.
fn is_starting(process: &Path) -> bool {
    // proc_pid_stat(5): the name may hold anything but ends with the last bracket; the state follows, and the moment of
    // its start, in ticks since the boot, is the twentieth word from there.
    let stat = file::read_text(&process.join("stat")).unwrap_or_default();
    let mut words = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace();
    let Some(state) = words.next() else { return true };
    let began = words.nth(18).and_then(|ticks| ticks.parse::<u64>().ok());
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime).tv_sec;
    let is_new = began.is_none_or(|ticks| {
        let began = ticks / rustix::param::clock_ticks_per_second().max(1);
        u64::try_from(now).unwrap_or(0).saturating_sub(began) <= STARTING.as_secs()
    });
    is_new && !["T", "t", "Z", "X"].contains(&state)
}

/// The limit that our holders keep together, in microseconds: the smallest, or [`NO_LIMIT_US`].
///
/// One that is just starting is waited for: who set it may have been killed since, and an undo that passed over it
/// would leave it behind.
///
/// # Errors
/// As [`holders`].
pub fn held_us(proc: &Path) -> io::Result<u32> {
    Ok(limit(&settled(proc)?))
}

fn limit(walk: &Walk) -> u32 {
    walk.holders.iter().map(|holder| holder.limit_us).min().unwrap_or(NO_LIMIT_US)
}

/// The walk after which no holder of ours is starting any more.
fn settled(proc: &Path) -> io::Result<Walk> {
    // What the kernel calls a program after exec: the first 15 bytes of its file's name.
    let program = std::env::current_exe().ok();
    let program =
        program.as_deref().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
    let program = program.map(|name| name.chars().take(15).collect::<String>());
    let start = Instant::now();
    loop {
        let walk = look(proc, program.as_deref())?;
        if !walk.starts || start.elapsed() > STARTING {
            return Ok(walk);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Who holds a shorter limit than our holders do, where `in_force_us` is the one that counts: names of processes that
/// have the device open and are no holders of ours, with their numbers. `None` where ours is the one in force.
///
/// The processes are gone through once. That looks at every descriptor of every one, so that it is done only where
/// something of others is known to be held.
///
/// # Errors
/// As [`holders`].
pub fn shorter_than_ours(proc: &Path, in_force_us: u32) -> io::Result<Option<Vec<String>>> {
    let walk = settled(proc)?;
    Ok((in_force_us < limit(&walk)).then(|| others(proc, &walk)))
}

fn others(proc: &Path, walk: &Walk) -> Vec<String> {
    let mut found = Vec::new();
    for pid in &walk.pids {
        let folder = proc.join(pid.to_string());
        let is_other = *pid != std::process::id() && !walk.holders.iter().any(|holder| holder.pid == *pid);
        if is_other && has_open(&folder) == Some(true) {
            let name = file::read_text(&folder.join("comm")).unwrap_or_default();
            found.push(format!("{} ({pid})", name.trim_end()));
        }
    }
    found
}

/// The limit that is in force, whoever holds it. Reading it limits nothing.
///
/// # Errors
/// The kernel's: there is no such device, or it may not be opened.
pub fn in_force_us() -> io::Result<u32> {
    let mut bytes = [0; 4];
    File::open(DEVICE)?.read_exact(&mut bytes)?;
    let number =
        if cfg!(target_endian = "big") { i32::from_be_bytes(bytes) } else { i32::from_le_bytes(bytes) };
    Ok(u32::try_from(number).unwrap_or(0))
}

/// Opens the device with a limit, which counts until the file is dropped.
///
/// # Errors
/// The kernel's.
pub fn open(limit_us: u32) -> io::Result<File> {
    let mut device = OpenOptions::new().write(true).open(DEVICE)?;
    // Ten characters are read as a number of base 16: four bytes would be one in the order of this machine.
    device.write_all(format!("0x{limit_us:08x}").as_bytes())?;
    Ok(device)
}

/// Holds a limit until this process is ended: the whole life of a holder, which gives up every capability: so it can be
/// looked into by a `planish check` that has none itself.
///
/// # Errors
/// The kernel's. There is no other end.
pub fn hold(limit_us: u32) -> io::Result<std::convert::Infallible> {
    let _device = open(limit_us)?;
    let none = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })?;
    // Whoever waits for this holder waits for its name.
    rustix::thread::set_name(c"planish-holder")?;
    loop {
        std::thread::park();
    }
}

/// Has a holder keep a limit, and ends those that keep others. [`NO_LIMIT_US`] ends them all.
///
/// The new holder holds before the old ones are ended: no CPU sleeps deeper for a moment. `program` is planish itself.
///
/// # Errors
/// The kernel's; a holder that does not start or does not end in time.
pub fn set(program: &Path, limit_us: u32) -> io::Result<()> {
    let proc = Path::new("/proc");
    if limit_us >= NO_LIMIT_US {
        return holders(proc)?.into_iter().try_for_each(|holder| end(proc, holder));
    }
    // What is refused is refused to us, and not to a process that nobody hears.
    let _until_held = open(limit_us)?;
    if !holders(proc)?.iter().any(|holder| holder.limit_us == limit_us) {
        let mut command = Command::new(program);
        command.args(WORDS).arg(limit_us.to_string()).current_dir("/").env_clear();
        start_apart(&mut command, &format!("planish-hold-{limit_us}-{}", std::process::id()))?;
        let holds = || Ok(holders(proc)?.iter().any(|holder| holder.limit_us == limit_us));
        wait_until(holds, "the process that is to hold the limit did not start")?;
    }
    let others = holders(proc)?.into_iter().filter(|holder| holder.limit_us != limit_us);
    others.into_iter().try_for_each(|holder| end(proc, holder))
}

/// Ends a holder. One that is gone already is ended.
///
/// # Errors
/// The kernel's, and one that does not end in time.
fn end(proc: &Path, holder: Holder) -> io::Result<()> {
    let Some(pid) = i32::try_from(holder.pid).ok().and_then(Pid::from_raw) else { return Ok(()) };
    let process = match pidfd(pid) {
        Ok(process) => process,
        Err(error) if error.errno() == Some(Errno::SRCH) => return Ok(()),
        Err(error) => return Err(io::Error::other(error)),
    };
    if !holder.is_seen {
        return Err(Errno::PERM.into());
    }
    // From here on the number cannot mean another process unseen: what it meant was looked at after the descriptor.
    if !holders(proc)?.contains(&holder) {
        return Ok(());
    }
    for signal in [Signal::TERM, Signal::KILL] {
        match pidfd_send_signal(&process, signal) {
            Err(Errno::SRCH) => return Ok(()),
            sent => sent?,
        }
        if wait_readable(&process, Some(PATIENCE)).map_err(io::Error::other)? {
            return Ok(());
        }
    }
    Err(io::Error::new(io::ErrorKind::TimedOut, "the process that held the limit did not end"))
}

fn wait_until(holds: impl Fn() -> io::Result<bool>, late: &'static str) -> io::Result<()> {
    let start = Instant::now();
    while !holds()? {
        if start.elapsed() > PATIENCE {
            return Err(io::Error::new(io::ErrorKind::TimedOut, late));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    Ok(())
}

/// The limit of a holder by its arguments; `None` for those of any other process.
fn limit_of(arguments: &[u8]) -> Option<u32> {
    let text = std::str::from_utf8(arguments).ok()?.strip_suffix('\0')?;
    let [_, first, second, limit] = text.split('\0').collect::<Vec<_>>()[..] else { return None };
    // As it is written, and not as it may be read: `+5` and `05` are no words of ours.
    let number =
        limit.parse::<u32>().ok().filter(|number| [first, second] == WORDS && number.to_string() == limit)?;
    (number < NO_LIMIT_US).then_some(number)
}

/// Whether a process has the device open; `None` where it is not ours to look into.
#[expect(clippy::disallowed_methods, reason = "processes of this machine, which no recording has")]
fn has_open(process: &Path) -> Option<bool> {
    let descriptors = match std::fs::read_dir(process.join("fd")) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return None,
        // It has ended, or is about to.
        Err(_) => return Some(false),
        Ok(descriptors) => descriptors,
    };
    let is_device = |target: std::path::PathBuf| target == Path::new(DEVICE);
    Some(descriptors.flatten().any(|entry| std::fs::read_link(entry.path()).is_ok_and(is_device)))
}

/// Whether a process is one of root.
fn is_of_root(process: &Path) -> bool {
    rustix::fs::stat(process).is_ok_and(|stat| stat.st_uid == 0)
}

/// The PID namespace of a process, as its link says; `None` where that may not be read.
fn namespace(process: &Path) -> Option<std::path::PathBuf> {
    std::fs::read_link(process.join("ns/pid")).ok()
}

#[expect(clippy::disallowed_methods, reason = "processes of this machine, which no recording has")]
fn pids(proc: &Path) -> io::Result<Vec<u32>> {
    let entries = std::fs::read_dir(proc)?.flatten();
    Ok(entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// A process as /proc shows it.
    fn process(proc: &Path, pid: &str, name: &str, words: &[&str], descriptors: &[&str], namespace: &str) {
        let folder = proc.join(pid);
        std::fs::create_dir_all(folder.join("fd")).unwrap();
        std::fs::create_dir_all(folder.join("ns")).unwrap();
        symlink(namespace, folder.join("ns/pid")).unwrap();
        let cmdline: String = words.iter().map(|word| format!("{word}\0")).collect();
        for (file, text) in [("comm", format!("{name}\n")), ("cmdline", cmdline)] {
            File::create(folder.join(file)).unwrap().write_all(text.as_bytes()).unwrap();
        }
        for (number, target) in descriptors.iter().enumerate() {
            symlink(target, folder.join("fd").join(number.to_string())).unwrap();
        }
    }

    #[test]
    fn a_holder_is_what_holds_with_our_words_and_nothing_else() {
        let proc = tempfile::tempdir().unwrap();
        let proc = proc.path();
        let held = ["/dev/null", DEVICE];
        let words = ["planish", "hold", "cpu-dma-latency", "20"];
        process(proc, "self", "cargo", &[], &[], "pid:[1]");
        assert_eq!(held_us(proc).unwrap(), NO_LIMIT_US);
        // None of these is one: no descriptor, other words, another name, another namespace, one word more.
        process(proc, "10", NAME, &words, &["/dev/null"], "pid:[1]");
        process(proc, "11", NAME, &["planish", "hold", "cpu-dma-latency", "020"], &held, "pid:[1]");
        process(proc, "12", "tuned", &["/usr/sbin/tuned", "-l"], &held, "pid:[1]");
        process(proc, "13", NAME, &words, &held, "pid:[2]");
        process(proc, "14", NAME, &["planish", "hold", "cpu-dma-latency", "20", "x"], &held, "pid:[1]");
        process(proc, "15", NAME, &["planish", "hold", "other", "20"], &held, "pid:[1]");
        process(proc, "16", NAME, &["planish", "hold", "cpu-dma-latency", "2000000000"], &held, "pid:[1]");
        assert_eq!(holders(proc).unwrap(), []);
        process(proc, "20", NAME, &words, &held, "pid:[1]");
        process(proc, "9", NAME, &["/usr/bin/planish", "hold", "cpu-dma-latency", "0"], &held, "pid:[1]");
        let found: Vec<(u32, u32)> =
            holders(proc).unwrap().iter().map(|holder| (holder.pid, holder.limit_us)).collect();
        assert_eq!(found, [(9, 0), (20, 20)]);
        assert_eq!(held_us(proc).unwrap(), 0, "of several the smallest counts");
        assert_eq!(shorter_than_ours(proc, 0).unwrap(), None, "ours is in force");
        std::fs::remove_dir_all(proc.join("9")).unwrap();
        assert_eq!(shorter_than_ours(proc, 20).unwrap(), None, "ours is in force");
        let mut others = shorter_than_ours(proc, 5).unwrap().expect("somebody holds a shorter one");
        others.sort();
        let strangers: Vec<String> = [11, 13, 14, 15, 16].map(|pid| format!("{NAME} ({pid})")).into();
        assert_eq!(others, [strangers, vec!["tuned (12)".to_owned()]].concat());
    }

    #[test]
    fn one_that_is_starting_is_seen_and_no_holder_yet() {
        let proc = tempfile::tempdir().unwrap();
        let proc = proc.path();
        process(proc, "self", "cargo", &[], &[], "pid:[1]");
        process(proc, "10", "planish", &["planish", "check"], &[], "pid:[1]");
        let looked = |name: &str| {
            let walk = look(proc, Some(name)).unwrap();
            (walk.holders, walk.starts)
        };
        assert_eq!(looked("planish"), (Vec::new(), false));
        process(proc, "11", "planish", &["planish", "hold", "cpu-dma-latency", "20"], &[DEVICE], "pid:[1]");
        assert_eq!(looked("planish"), (Vec::new(), true));
        assert_eq!(looked("other"), (Vec::new(), false));
        // Of those that get no further, nobody waits for one.
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime).tv_sec as u64;
        let tick = rustix::param::clock_ticks_per_second();
        let stat = |state: &str, began: u64| {
            let rest = ["0"; 18].join(" ");
            let text = format!("11 (a ) S name) {state} {rest} {} 0 0\n", began * tick);
            File::create(proc.join("11/stat")).unwrap().write_all(text.as_bytes()).unwrap();
            looked("planish").1
        };
        assert!(stat("S", now) && stat("R", now.saturating_sub(1)));
        assert!(!stat("T", now) && !stat("t", now) && !stat("Z", now), "stopped, traced, ended");
        assert!(!stat("S", now.saturating_sub(60)), "it has had its time");
    }

    #[test]
    fn only_what_was_looked_at_again_is_ended() {
        let proc = tempfile::tempdir().unwrap();
        let proc = proc.path();
        let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
        let holder = Holder { pid: child.id(), limit_us: 20, is_seen: true };
        let words = |limit| ["planish", "hold", "cpu-dma-latency", limit];
        process(proc, "self", "cargo", &[], &[], "pid:[1]");
        // Meanwhile its number is that of a process which holds something else.
        process(proc, &child.id().to_string(), NAME, &words("30"), &[DEVICE], "pid:[1]");
        end(proc, holder).unwrap();
        assert!(child.try_wait().unwrap().is_none(), "another process lives on");
        let unseen = Holder { limit_us: 30, is_seen: false, ..holder };
        assert!(end(proc, unseen).is_err() && child.try_wait().unwrap().is_none(), "not seen, not ended");
        end(proc, Holder { limit_us: 30, ..holder }).unwrap();
        assert!(!child.wait().unwrap().success(), "ended by a signal");
    }
}
