//! `./x vm`: real kernels, real NUMA nodes, real writes, in guests that are thrown away.
//!
//! The guest's side is `tests/vm`. Emulated CPUs prove what the kernel does, never how fast it is:
//! no number measured in a guest leaves it.

mod cpio;
mod disk;
mod guest;
mod images;
mod kernel;
mod programs;
mod servers;
mod shape;

use crate::tally::Tally;
use crate::target;
use crate::{ground, shell};
use anyhow::{Context, Result, ensure};
use guest::Boot;
use kernel::Kernel;
use servers::Servers;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// What to boot.
#[derive(clap::Args, Default)]
pub struct Options {
    /// Boot every shape on every kernel, not only the usual one
    #[arg(long)]
    pub full: bool,
    /// Boot only guests of this shape: 2n-cxl (the usual one), 1n, 2n or 4n
    #[arg(long, value_name = "NAME", conflicts_with = "full")]
    pub shape: Option<String>,
    /// Boot only this kernel (6.1 or 6.12); may be given several times
    #[arg(long = "kernel", value_name = "VERSION")]
    pub kernels: Vec<String>,
    /// Record each guest as a host tree below this folder, as it was booted, and check nothing else in it
    #[arg(long, value_name = "DIR")]
    pub record: Option<PathBuf>,
    /// Boot only the guest with real servers: minutes of its own, so that of the others only --full boots it too
    #[arg(long, conflicts_with_all = ["full", "record", "shape"])]
    pub servers: bool,
    /// Check nothing but text on huge pages: what the guests say is the table of docs/text-huge.md
    #[arg(long, conflicts_with_all = ["disk", "full", "record", "servers"])]
    pub text: bool,
    /// Reboot a Debian that its loader starts from a disk instead: slow, and not a part of ci
    #[arg(long, conflicts_with_all = ["full", "kernels", "record", "servers", "shape"])]
    pub disk: bool,
    /// Begin the guest with a disk at this stage: cut-N (the power cut of that number), once, arms, left, third,
    /// services, knobs, units or parts; bls-persist (GRUB with entries) or efi-persist (systemd-boot); newer-units,
    /// newer-parts or newer-knobs (Linux 6.12)
    #[arg(long, requires = "disk", value_name = "STAGE")]
    pub from: Option<String>,
    /// End the guest with a disk before this stage
    #[arg(long, requires = "disk", value_name = "STAGE")]
    pub until: Option<String>,
}

/// Boots the guests and counts their results.
pub fn run(options: &Options) -> Result<Tally> {
    let mut tally = Tally::default();
    if let Some(why) = unavailable() {
        tally.skips.push(format!("SKIP vm: {why}"));
        return Ok(tally);
    }
    let folder = ground::cache_dir()?.join("vm");
    fs::create_dir_all(&folder).with_context(|| format!("make {}", folder.display()))?;
    let programs = Programs::build()?;
    if options.disk {
        return disk::run(&folder, &programs, options.from.as_deref(), options.until.as_deref());
    }
    tally.skips.extend(programs.skips.iter().cloned());
    let versions: Vec<String> = match options.kernels.as_slice() {
        // The newest has every policy that servers are started with.
        [] if options.servers => kernel::VERSIONS.last().into_iter().map(ToString::to_string).collect(),
        [] => kernel::VERSIONS.iter().map(ToString::to_string).collect(),
        // One that is named twice would run twice at once, on the same files.
        some => some.iter().cloned().collect::<BTreeSet<_>>().into_iter().collect(),
    };
    let mut kernels = Vec::new();
    for version in versions {
        match kernel::fetch(&version) {
            Ok(kernel) => kernels.push(kernel),
            Err(error) => tally.skips.push(format!("SKIP vm.{version}: {error:#}")),
        }
    }
    if !options.servers {
        tally.add(boot_shapes(options, &kernels, &programs, &folder)?);
    }
    if options.servers || (options.full && options.record.is_none()) {
        for kernel in &kernels {
            tally.add(boot_servers(kernel, &programs, &folder)?);
        }
    }
    Ok(tally)
}

/// Boots each kernel on the usual machine, or on all, and unpacks what the guests recorded.
fn boot_shapes(options: &Options, kernels: &[Kernel], programs: &Programs, folder: &Path) -> Result<Tally> {
    let packed: Vec<PathBuf> =
        kernels.iter().map(|kernel| programs.pack(kernel, folder, None)).collect::<Result<_>>()?;
    let all = || std::iter::once(&shape::USUAL).chain(shape::OTHERS);
    let shapes: Vec<&shape::Shape> = match &options.shape {
        Some(name) => all().filter(|shape| shape.name == name).collect(),
        None => all().take(if options.full { usize::MAX } else { 1 }).collect(),
    };
    ensure!(!shapes.is_empty(), "no guest has that shape: 2n-cxl, 1n, 2n, 4n");
    let record = options.record.is_some();
    let mut boots = Vec::new();
    for (kernel, initramfs) in kernels.iter().zip(&packed) {
        boots.extend(shapes.iter().map(|shape| Boot {
            kernel,
            shape,
            initramfs,
            folder,
            record,
            only: options.text.then_some("text"),
        }));
    }
    run_side_by_side(&boots, |boot| options.record.as_ref().map_or(Ok(()), |into| unpack(boot, into)))
}

/// Guests that run at once. One thread emulates a guest, so that more than one is at work on a machine of two CPUs;
/// more than two would only take memory and wait for each other.
const LANES: usize = 2;
/// What QEMU takes beside the memory of its guest.
const EMULATOR_MIB: usize = 512;

/// How many of the largest of some guests have room at once in what `/proc/meminfo` has available.
fn fitting(mut sizes_mib: Vec<usize>, meminfo: &str) -> usize {
    let available = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = available.and_then(|text| text.trim().strip_suffix(" kB")?.parse::<usize>().ok());
    let mut left_mib = kib.unwrap_or_default() / 1024;
    sizes_mib.sort_unstable_by(|a, b| b.cmp(a));
    let has_room = |size: &&usize| {
        let left = left_mib.checked_sub(**size);
        left_mib = left.unwrap_or_default();
        left.is_some()
    };
    sizes_mib.iter().take_while(has_room).count()
}

/// Runs boots beside each other, as many as this machine has room for, and then `ended` for each. Each line that they
/// print has its guest's name. Behind a guest that could not be run, or whose end could not be taken, none is begun.
fn run_side_by_side(boots: &[Boot<'_>], ended: impl Fn(&Boot<'_>) -> Result<()> + Sync) -> Result<Tally> {
    let cpu_count = thread::available_parallelism().map_or(1, usize::from);
    let sizes_mib = boots.iter().map(|boot| boot.shape.memory_mib() + EMULATOR_MIB).collect();
    let meminfo = fs::read_to_string("/proc/meminfo").context("read /proc/meminfo")?;
    let lane_count = fitting(sizes_mib, &meminfo).min(cpu_count).clamp(1, LANES);
    let next = AtomicUsize::new(0);
    let lane = || {
        let mut sum = Tally::default();
        while let Some(boot) = boots.get(next.fetch_add(1, Ordering::Relaxed)) {
            let tally = boot.run().and_then(|tally| ended(boot).map(|()| tally));
            sum.add(tally.inspect_err(|_| next.store(boots.len(), Ordering::Relaxed))?);
        }
        Ok(sum)
    };
    let all: Vec<Result<Tally>> = thread::scope(|scope| {
        let lanes: Vec<_> = (0..lane_count).map(|_| scope.spawn(lane)).collect();
        lanes.into_iter().map(|lane| lane.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
    });
    let mut sum = Tally::default();
    for tally in all {
        sum.add(tally?);
    }
    Ok(sum)
}

/// Real servers on two nodes.
fn boot_servers(kernel: &Kernel, programs: &Programs, folder: &Path) -> Result<Tally> {
    let servers = Servers::gather();
    let mut tally = Tally { skips: servers.skips.clone(), ..Tally::default() };
    if programs.planish.is_none() || !servers.any() {
        return Ok(tally);
    }
    let initramfs = &programs.pack(kernel, folder, Some(&servers))?;
    let only = Some("servers");
    tally.add(Boot { kernel, shape: &shape::SERVERS, initramfs, folder, record: false, only }.run()?);
    Ok(tally)
}

/// Why no guest can be booted here.
fn unavailable() -> Option<&'static str> {
    if !cfg!(target_arch = "x86_64") {
        return Some("guests are x86-64 machines, this is not one");
    }
    shell::which("qemu-system-x86_64").is_none().then_some("no qemu-system-x86_64")
}

/// Builds the `planish` of the guests, where [`run`] will ask for it.
pub fn build_ahead() -> Result<()> {
    if unavailable().is_some() {
        return Ok(());
    }
    target::pick()?.planish().map(drop)
}

/// Unpacks what a guest sent into a folder of its own name.
fn unpack(boot: &Boot<'_>, into: &Path) -> Result<()> {
    let folder = into.join(boot.name());
    fs::create_dir_all(&folder).with_context(|| format!("make {}", folder.display()))?;
    let archive = boot.record_file();
    shell::run(Command::new("tar").arg("-xf").arg(&archive).arg("-C").arg(&folder))
        .with_context(|| format!("{} did not arrive whole", archive.display()))
}

/// Most bytes of the static program, the limit of `./x bench spine`.
const PROGRAM_BYTES_MAX: usize = 15_000_000;

/// What runs in a guest.
struct Programs {
    init: Vec<u8>,
    /// Missing while the command line is not there yet.
    planish: Option<Vec<u8>>,
    /// What `planish run` starts there and what is put on huge pages, and images of file systems to put it on.
    others: Vec<programs::Packed>,
    /// Those that cannot be made here.
    skips: Vec<String>,
}

impl Programs {
    fn build() -> Result<Self> {
        let target = target::pick()?;
        let built = target.build("ci", &["--package", "planish-guest", "--bin", "init"])?;
        let init = read(&built.join("init"))?;
        let planish = if ground::has_package("planish-cli")? {
            // The one that is shipped; and emulation makes an unoptimised one five times slower.
            let planish = read(&target.planish()?)?;
            let bytes = planish.len();
            ensure!(
                bytes <= PROGRAM_BYTES_MAX,
                "the static program has {bytes} bytes, more than {PROGRAM_BYTES_MAX}: profile.release in Cargo.toml"
            );
            Some(planish)
        } else {
            None
        };
        let (mut others, mut skips) = programs::build()?;
        let (images, without) = images::make()?;
        others.extend(images);
        skips.extend(without);
        Ok(Self { init, planish, others, skips })
    }

    /// Packs the first root of a guest, with servers or without.
    fn pack(&self, kernel: &Kernel, folder: &Path, servers: Option<&Servers>) -> Result<PathBuf> {
        let plain = folder.join(match servers {
            Some(_) => format!("initramfs-servers-{}", kernel.version),
            None => format!("initramfs-{}", kernel.version),
        });
        let file = File::create(&plain).with_context(|| format!("make {}", plain.display()))?;
        let mut archive = cpio::Archive::new(std::io::BufWriter::new(file));
        for name in [
            "bin",
            "dev",
            "etc",
            "file-systems",
            "images",
            "lib",
            "lib64",
            "modules",
            "proc",
            "root",
            "run",
            "sys",
            "tmp",
            "usr",
            "var",
        ] {
            archive.folder(name)?;
        }
        // The kernel opens it as the standard streams of /init, before anything is mounted.
        archive.character_device("dev/console", 5, 1)?;
        archive.program("init", &self.init)?;
        if let Some(planish) = &self.planish {
            archive.program("bin/planish", planish)?;
        }
        for name in ["usr/lib", "usr/lib/x86_64-linux-gnu"] {
            archive.folder(name)?;
        }
        for other in &self.others {
            archive.program(&other.name, &other.bytes)?;
        }
        if let Some(servers) = servers {
            // One that is there already stays, and what is in it.
            servers.folders.iter().try_for_each(|name| archive.folder(name))?;
            servers.files.iter().try_for_each(|file| archive.program(&file.name, &file.bytes))?;
        }
        for (folder, modules) in [("modules", &kernel.modules), ("file-systems", &kernel.file_systems)] {
            for (index, module) in modules.iter().enumerate() {
                let name = module.file_name().unwrap_or_default().to_string_lossy();
                // The guest loads them in the order of their names.
                archive.program(&format!("{folder}/{index:02}-{name}"), &read(module)?)?;
            }
        }
        archive.finish()?.into_inner().context("write the initramfs")?;
        shell::run(Command::new("gzip").args(["-1", "--force", "--no-name"]).arg(&plain))?;
        let mut packed = plain.into_os_string();
        packed.push(".gz");
        Ok(PathBuf::from(packed))
    }
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("read {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::fitting;

    #[test]
    fn as_many_guests_run_at_once_as_have_room() {
        let fits = |mib: usize| {
            let meminfo = format!("MemFree:   10 kB\nMemAvailable:   {} kB\n", mib * 1024);
            fitting(vec![2048, 3072, 3072], &meminfo)
        };
        assert_eq!([3071, 3072, 6143, 6144, 8191, 8192].map(fits), [0, 1, 1, 2, 2, 3]);
        assert_eq!(fitting(vec![1024], ""), 0, "nothing is known of the memory");
    }
}
