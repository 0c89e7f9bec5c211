//! A machine of 256 CPUs with as many files as a real one has. The record of it (`hosts/metal-256c`) keeps few of each
//! CPU, since 13,000 files that differ in nothing but their number say nothing in a repository. To be measured on, a
//! copy gets them all: what the record of a small server (`hosts/metal-2s`) has of a CPU, for each of the 256, and
//! interrupts for the queues that so many CPUs have.

use anyhow::{Context, Result, ensure};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

const CPUS: &str = "sys/devices/system/cpu";
const NODES: &str = "sys/devices/system/node";
/// Interrupts of a server of this size: four cards of 128 queues, and an NVMe queue for each CPU on two disks.
const INTERRUPTS: u32 = 4 * 128 + 2 * 256;
/// The first of them, above those that the record has.
const FIRST: u32 = 512;
/// What belongs to all CPUs together.
const SHARED: [&str; 4] = ["cpuidle", "smt", "intel_pstate", "nohz_full"];

/// Gives the copy of the large record at `root` what it lacks of the files of the small one at `template`. Gives the
/// number of files that it made.
pub fn fill(root: &Path, template: &Path) -> Result<usize> {
    let mut made = 0;
    for name in SHARED {
        made += copy(&template.join(CPUS).join(name), &root.join(CPUS).join(name))?;
    }
    let cpus = present(root)?;
    for cpu in 0..cpus {
        let folder = root.join(CPUS).join(format!("cpu{cpu}"));
        made += copy(&template.join(CPUS).join("cpu0"), &folder)?;
        let core = read(&folder.join("topology/core_cpus_list"))?;
        let node = cpus_of_node(root, cpu)?;
        for (index, sharing) in [&core, &core, &core, &node].into_iter().enumerate() {
            put(&folder.join(format!("cache/index{index}/shared_cpu_list")), sharing)?;
        }
    }
    made += interrupts(root, cpus)?;
    Ok(made)
}

/// How many CPUs the record has: they are numbered without a hole.
fn present(root: &Path) -> Result<u32> {
    let list = read(&root.join(CPUS).join("present"))?;
    let last = list.trim().strip_prefix("0-").context("CPUs are numbered from 0, without a hole")?;
    Ok(last.parse::<u32>().context("the number of a CPU")? + 1)
}

/// The list of the CPUs of the node that a CPU belongs to: they share its last cache, as with sub-NUMA clustering.
fn cpus_of_node(root: &Path, cpu: u32) -> Result<String> {
    for node in 0.. {
        let list = read(&root.join(NODES).join(format!("node{node}/cpulist")))?;
        let has = |range: &str| {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let number = |text: &str| text.parse::<u32>().ok();
            number(first).zip(number(last)).is_some_and(|(first, last)| (first..=last).contains(&cpu))
        };
        if list.trim().split(',').any(has) {
            return Ok(list);
        }
    }
    unreachable!("a node that is not there ends the search with an error")
}

/// Interrupts with all that is asked of one, and the table of how often each CPU had it.
fn interrupts(root: &Path, cpus: u32) -> Result<usize> {
    let mut table = String::from("     ");
    table.extend((0..cpus).map(|cpu| format!("{:>11}", format!("CPU{cpu}"))));
    table += "\n";
    for index in 0..INTERRUPTS {
        let (irq, cpu) = (FIRST + index, index % cpus);
        let action = if index < 512 {
            format!("mlx5_comp{}@pci:0000:{:02x}:00.0", index % 128, 0x10 + index / 128)
        } else {
            format!("nvme{}q{}", (index - 512) / 256, index % 256 + 1)
        };
        let _ = write!(table, "{irq:>4}:");
        table.extend((0..cpus).map(|other| format!("{:>11}", u32::from(other == cpu) * (1 + index * 97))));
        let _ = writeln!(table, "  IR-PCI-MSIX-0000:{:02x}:00.0 {index}-edge {action}", 0x10 + index / 128);
        put(&root.join(format!("proc/irq/{irq}/smp_affinity_list")), &format!("{cpu}\n"))?;
        put(&root.join(format!("sys/kernel/irq/{irq}/actions")), &format!("{action}\n"))?;
        put(&root.join(format!("sys/kernel/irq/{irq}/chip_name")), "IR-PCI-MSIX\n")?;
    }
    put(&root.join("proc/interrupts"), &table)?;
    Ok(INTERRUPTS as usize * 3 + 1)
}

/// Copies files that are not there yet.
fn copy(from: &Path, to: &Path) -> Result<usize> {
    if from.is_file() {
        if to.exists() {
            return Ok(0);
        }
        return put(to, &read(from)?).map(|()| 1);
    }
    let mut made = 0;
    for entry in fs::read_dir(from).with_context(|| format!("list {}", from.display()))? {
        let path: PathBuf = entry.with_context(|| format!("list {}", from.display()))?.path();
        let name = path.file_name().context("an entry has a name")?;
        made += copy(&path, &to.join(name))?;
    }
    ensure!(from.is_dir(), "{} is neither file nor folder", from.display());
    Ok(made)
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("read {}", path.display()))
}

fn put(path: &Path, text: &str) -> Result<()> {
    let folder = path.parent().context("a file of the kernel lies in a folder")?;
    fs::create_dir_all(folder).with_context(|| format!("make {}", folder.display()))?;
    fs::write(path, text).with_context(|| format!("write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn each_cpu_has_what_a_cpu_of_a_server_has() {
        // In memory where that is possible: 17,000 files on a disk take their time.
        let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a folder");
        let hosts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../hosts");
        let root = folder.path().join("host");
        let copied = Command::new("cp").arg("-a").arg(hosts.join("metal-256c")).arg(&root).status();
        assert!(copied.expect("cp").success());
        let made = fill(&root, &hosts.join("metal-2s")).expect("filled");
        assert!(made > 10_000, "{made} files");
        let count = |path: PathBuf| {
            let files = Command::new("find").arg(path).args(["-type", "f"]).output().expect("find");
            String::from_utf8(files.stdout).expect("text").lines().count()
        };
        let small = count(hosts.join("metal-2s").join(CPUS).join("cpu0"));
        for cpu in [0, 17, 255] {
            assert!(
                count(root.join(CPUS).join(format!("cpu{cpu}"))) >= small,
                "CPU {cpu} has fewer than {small}"
            );
        }
        let shared = |path: &str| read(&root.join(CPUS).join(path)).expect("there");
        assert_eq!(shared("cpu17/cache/index1/shared_cpu_list"), "17,145\n");
        assert_eq!(shared("cpu255/cache/index3/shared_cpu_list"), "106-127,234-255\n");
        let table = read(&root.join("proc/interrupts")).expect("there");
        assert_eq!(table.lines().count(), INTERRUPTS as usize + 1);
    }
}
