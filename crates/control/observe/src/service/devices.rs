//! The disks below the files that a service has open, the network cards behind its sockets, and the node of each.
//!
//! ```text
//! /proc/PID/fd/7 -> /data/base/1  ─ mountinfo ─> 253:0 ─ /sys/dev/block ─> dm-0 ─ slaves ─> nvme1n1p2 ─> nvme1n1
//! /proc/PID/fd/9 -> socket:[4711] ─ net/tcp ─> 10.0.0.5 ─ net/route ─> bond0 ─ lower_* ─> eth0, eth1
//! ```
//!
//! Nothing is asked of the service, and no file of its is opened. Remote file systems and those of which the kernel
//! names no disk are passed over.

use std::collections::{BTreeMap, BTreeSet};

use planish_host::Host;
use planish_model::{DeviceKind, ServiceDevice};
use planish_topo::Device;

/// Open files that are looked at. More tell no more.
const FILES_MAX: usize = 4096;
/// Devices below each other (partition, volume, array, path): more is a cycle.
const DEPTH_MAX: usize = 8;

/// What a service is seen to work with, disks before cards, each once. `cpu_nodes` are those of its CPUs.
pub(super) fn of(host: &Host, pid: u32, cpu_nodes: &[u32], unread: &mut Vec<String>) -> Vec<ServiceDevice> {
    let folder = format!("/proc/{pid}/fd");
    let numbers = host.list(&folder);
    let links =
        numbers.iter().take(FILES_MAX).filter_map(|number| host.read_link(&format!("{folder}/{number}")));
    // A database stands in its own folder, with or without files open there.
    let links: Vec<String> = links.chain(host.read_link(&format!("/proc/{pid}/cwd"))).collect();
    if links.is_empty() {
        if host.exists(&folder) {
            unread.push(format!("{folder}: its owner and root see what it has open"));
        }
        return Vec::new();
    }
    let (disks, nics) = planish_topo::devices(host);
    let near =
        |node: Option<u32>| node.filter(|_| !cpu_nodes.is_empty()).map(|node| cpu_nodes.contains(&node));
    let told = |kind: DeviceKind, name: String, node: Option<u32>, by: String| ServiceDevice {
        name,
        kind,
        node,
        near: near(node),
        by,
    };
    let of_disks = disks_of(host, pid, &links, &disks);
    let mut devices: Vec<ServiceDevice> =
        of_disks.into_iter().map(|(name, (node, by))| told(DeviceKind::Disk, name, node, by)).collect();
    for (name, by) in cards_of(host, pid, &links) {
        let node = nics.iter().find(|nic| nic.name == name).and_then(|nic| nic.node);
        devices.push(told(DeviceKind::Nic, name, node, by));
    }
    devices
}

/// A line of `/proc/PID/mountinfo` (`Documentation/filesystems/proc.rst`, 3.5).
struct Mount {
    number: String,
    at: String,
    source: String,
}

fn mounts(host: &Host, pid: u32) -> Vec<Mount> {
    let text = host.read_lossy(&format!("/proc/{pid}/mountinfo")).unwrap_or_default();
    let line = |line: &str| {
        let (own, shared) = line.split_once(" - ")?;
        let words: Vec<&str> = own.split(' ').collect();
        let source = shared.split(' ').nth(1)?;
        Some(Mount { number: (*words.get(2)?).to_owned(), at: plain(words.get(4)?), source: plain(source) })
    };
    text.lines().filter_map(line).collect()
}

/// A path as it is: the kernel writes a space as `\040`.
fn plain(path: &str) -> String {
    [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")]
        .iter()
        .fold(path.to_owned(), |path, (written, meant)| path.replace(written, meant))
}

/// Disks by name, each with its node and what it is used for.
fn disks_of(
    host: &Host,
    pid: u32,
    links: &[String],
    disks: &[Device],
) -> BTreeMap<String, (Option<u32>, String)> {
    let mounts = mounts(host, pid);
    let mut files: BTreeMap<usize, usize> = BTreeMap::new();
    for link in links.iter().filter(|link| link.starts_with('/')) {
        let is_below = |mount: &Mount| {
            let rest = link.strip_prefix(mount.at.trim_end_matches('/'));
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        // Of two mounts on one folder the later one is seen.
        let below = mounts.iter().enumerate().filter(|(_, mount)| is_below(mount));
        if let Some((index, _)) = below.max_by_key(|(index, mount)| (mount.at.len(), *index)) {
            *files.entry(index).or_default() += 1;
        }
    }
    let mut found = BTreeMap::new();
    for (index, count) in files {
        let mount = &mounts[index];
        let Some(block) = block_of(host, mount) else { continue };
        for leaf in leaves(host, &block, 0) {
            let node = disks.iter().find(|disk| disk.name == leaf).and_then(|disk| disk.node);
            let through = block.rsplit('/').next().filter(|name| !name.starts_with(leaf.as_str()));
            let through = through.map(|name| format!(" through {name}")).unwrap_or_default();
            let paths = if node.is_none() { paths_of(host, &leaf) } else { Vec::new() };
            let by = format!("{count} open files and folders below {}{through}", mount.at);
            if paths.is_empty() {
                found.entry(leaf).or_insert((node, by));
                continue;
            }
            for (controller, node) in paths {
                let name = format!("{leaf} by {controller}");
                found.entry(name).or_insert((node, by.clone()));
            }
        }
    }
    found
}

/// The folder in /sys of the block device of a mount; `None` where no disk is below it.
fn block_of(host: &Host, mount: &Mount) -> Option<String> {
    let by_number = format!("/sys/dev/block/{}", mount.number);
    if host.read_link(&by_number).is_some() {
        return host.canonical(&by_number);
    }
    // File systems over several devices have a number of their own, and name one of them.
    let device = mount.source.starts_with("/dev/").then(|| host.canonical(&mount.source)).flatten()?;
    let by_name = format!("/sys/class/block/{}", device.rsplit('/').next()?);
    host.read_link(&by_name)?;
    host.canonical(&by_name)
}

/// The whole disks below a block device: what a partition is of, and what a volume or an array is made from.
fn leaves(host: &Host, block: &str, depth: usize) -> BTreeSet<String> {
    let below = host.list(&format!("{block}/slaves"));
    if !below.is_empty() && depth < DEPTH_MAX {
        let folders = below.iter().filter_map(|name| host.canonical(&format!("/sys/class/block/{name}")));
        return folders.flat_map(|folder| leaves(host, &folder, depth + 1)).collect();
    }
    let is_partition = host.exists(&format!("{block}/partition"));
    let disk = if is_partition { block.rsplit_once('/').map_or(block, |(disk, _)| disk) } else { block };
    disk.rsplit('/').next().map(str::to_owned).into_iter().collect()
}

/// The controllers of an NVMe disk with several paths, each with its node. The disk itself hangs on none: `nvme0n1` is
/// reached as `nvme0c1n1` by the controller `nvme1` (`drivers/nvme/host/multipath.c`).
fn paths_of(host: &Host, disk: &str) -> Vec<(String, Option<u32>)> {
    let Some((subsystem, space)) = disk.strip_prefix("nvme").and_then(|rest| rest.split_once('n')) else {
        return Vec::new();
    };
    let is_path = |name: &String| {
        let path = name.strip_prefix("nvme").and_then(|rest| rest.strip_prefix(subsystem));
        let number = path.and_then(|rest| rest.strip_prefix('c')).and_then(|rest| rest.strip_suffix(space));
        number.is_some_and(|number| number.ends_with('n') && number.len() > 1)
    };
    let node = |controller: &String| {
        let files =
            ["numa_node", "device/numa_node"].map(|file| format!("/sys/class/nvme/{controller}/{file}"));
        files.iter().find_map(|file| host.read(file).ok()?.trim().parse().ok())
    };
    let controllers = host.list("/sys/class/nvme").into_iter();
    let with_path =
        controllers.filter(|name| host.list(&format!("/sys/class/nvme/{name}")).iter().any(is_path));
    with_path.map(|name| (name.clone(), node(&name))).collect()
}

/// Cards by name, each with what it is used for.
fn cards_of(host: &Host, pid: u32, links: &[String]) -> BTreeMap<String, String> {
    let sockets: BTreeSet<&str> =
        links.iter().filter_map(|link| link.strip_prefix("socket:[")?.strip_suffix(']')).collect();
    if sockets.is_empty() {
        return BTreeMap::new();
    }
    let routes = Routes::read(host, pid);
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for (table, wide) in [("tcp", false), ("tcp6", true)] {
        let text = host.read(&format!("/proc/{pid}/net/{table}")).unwrap_or_default();
        for line in text.lines().skip(1) {
            let words: Vec<&str> = line.split_whitespace().collect();
            let (Some(local), Some(inode)) = (words.get(1), words.get(9)) else { continue };
            if !sockets.contains(inode) {
                continue;
            }
            let address = local.split(':').next().unwrap_or_default();
            let card = if wide { routes.card_of_wide(address) } else { routes.card_of(address) };
            if let Some(card) = card {
                *counts.entry(card).or_default() += 1;
            }
        }
    }
    let mut cards = BTreeMap::new();
    for (card, count) in counts {
        for lower in lower(host, &card, 0) {
            let through = if lower == card { String::new() } else { format!(" through {card}") };
            cards.entry(lower).or_insert_with(|| format!("{count} of its sockets{through}"));
        }
    }
    cards
}

/// The cards below a bond, a bridge or a tagged one.
fn lower(host: &Host, card: &str, depth: usize) -> BTreeSet<String> {
    let names = host.list(&format!("/sys/class/net/{card}"));
    let below: Vec<&str> = names.iter().filter_map(|name| name.strip_prefix("lower_")).collect();
    if below.is_empty() || depth >= DEPTH_MAX {
        return BTreeSet::from([card.to_owned()]);
    }
    below.into_iter().flat_map(|name| lower(host, name, depth + 1)).collect()
}

/// Where the addresses of a service are: the tables of its own network.
struct Routes {
    /// Network, mask and card, as the kernel prints them: the bytes of the network in the order of this machine.
    narrow: Vec<(u32, u32, String)>,
    /// The card of the default route.
    default: Option<String>,
    /// Addresses in hexadecimal, and their cards.
    wide: Vec<(String, String)>,
}

impl Routes {
    fn read(host: &Host, pid: u32) -> Self {
        let text = host.read(&format!("/proc/{pid}/net/route")).unwrap_or_default();
        let row = |line: &str| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let number = |index: usize| u32::from_str_radix(words.get(index)?, 16).ok();
            let metric: u32 = words.get(6)?.parse().ok()?;
            Some((number(1)?, number(7)?, metric, (*words.first()?).to_owned()))
        };
        let rows: Vec<(u32, u32, u32, String)> = text.lines().skip(1).filter_map(row).collect();
        let defaults = rows.iter().filter(|(network, mask, ..)| *network == 0 && *mask == 0);
        let default = defaults.min_by_key(|(_, _, metric, _)| *metric).map(|(.., card)| card.clone());
        let narrow = rows.into_iter().filter(|(_, mask, ..)| *mask != 0);
        let narrow = narrow.map(|(network, mask, _, card)| (network, mask, card)).collect();
        let text = host.read(&format!("/proc/{pid}/net/if_inet6")).unwrap_or_default();
        let row = |line: &str| {
            let words: Vec<&str> = line.split_whitespace().collect();
            Some(((*words.first()?).to_owned(), (*words.get(5)?).to_owned()))
        };
        Self { narrow, default, wide: text.lines().filter_map(row).collect() }
    }

    /// The card of an address of four bytes; none for one of this machine alone.
    fn card_of(&self, address: &str) -> Option<String> {
        let address = u32::from_str_radix(address, 16).ok()?;
        // 127.0.0.0/8, the machine itself. The machines that planish knows have the first byte in the lowest place.
        if address & 0xff == 127 {
            return None;
        }
        if address == 0 {
            return self.default.clone();
        }
        let within = self.narrow.iter().filter(|(network, mask, _)| address & mask == *network);
        let within: Vec<_> = within.collect();
        let Some(narrowest) = within.iter().map(|(_, mask, _)| mask.count_ones()).max() else {
            return self.default.clone();
        };
        let closest = within.iter().filter(|(_, mask, _)| mask.count_ones() == narrowest);
        let cards: BTreeSet<&String> = closest.map(|(.., card)| card).collect();
        // Of two cards in one network either may carry it: that is no fact.
        cards.first().filter(|_| cards.len() == 1).map(|card| (*card).clone())
    }

    /// The card of an address of sixteen bytes, which the kernel prints in words of four, each in its own order.
    fn card_of_wide(&self, address: &str) -> Option<String> {
        if address.len() != 32 || !address.is_ascii() {
            return None;
        }
        let words: Vec<u32> = (0..4)
            .filter_map(|word| u32::from_str_radix(&address[8 * word..8 * word + 8], 16).ok())
            .collect();
        match words.as_slice() {
            [0, 0, 0, 0] => self.default.clone(),
            [0, 0, 0xffff_0000, _] => self.card_of(&address[24..]),
            [_, _, _, _] => {
                let swapped: String = words.iter().map(|word| format!("{:08x}", word.swap_bytes())).collect();
                let known = |wanted: &str| {
                    self.wide
                        .iter()
                        .find(|(own, _)| own.eq_ignore_ascii_case(wanted))
                        .map(|(_, card)| card.clone())
                };
                known(&swapped).or_else(|| known(address)).filter(|card| card != "lo")
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::path::Path;

    use super::*;
    use crate::testing::write;

    fn link(root: &Path, at: &str, target: &str) {
        let at = root.join(at.trim_start_matches('/'));
        std::fs::create_dir_all(at.parent().expect("absolute")).expect("a folder");
        symlink(target, at).expect("a link");
    }

    const PCI: [&str; 3] = ["0000:17:00.0", "0000:81:00.0", "0000:82:00.0"];

    /// A volume over a partition of the disk on node 1, a plain disk on node 0, one with two paths, and two cards of
    /// which one is below a bond.
    fn tree(root: &Path) {
        write(root, "/proc/version", "Linux\n");
        for (address, node) in PCI.iter().zip(["0", "1", "1"]) {
            write(root, &format!("/sys/devices/pci0/{address}/numa_node"), node);
        }
        let disk = |name: &str, folder: &str| {
            write(root, &format!("{folder}/{name}/uevent"), "");
            link(root, &format!("/sys/block/{name}"), &format!("{folder}/{name}"));
            link(root, &format!("/sys/class/block/{name}"), &format!("{folder}/{name}"));
        };
        let (near, far) =
            ("/sys/devices/pci0/0000:17:00.0/nvme/nvme0", "/sys/devices/pci0/0000:81:00.0/nvme/nvme1");
        disk("nvme0n1", near);
        disk("nvme1n1", far);
        disk("nvme2n1", "/sys/devices/virtual/nvme-subsystem/nvme-subsys2");
        write(root, &format!("{far}/nvme1n1/nvme1n1p2/partition"), "2\n");
        link(root, "/sys/class/block/nvme1n1p2", &format!("{far}/nvme1n1/nvme1n1p2"));
        write(root, "/sys/devices/virtual/block/dm-0/slaves/nvme1n1p2/.keep", "");
        link(root, "/sys/dev/block/253:0", "/sys/devices/virtual/block/dm-0");
        link(root, "/sys/dev/block/259:0", &format!("{near}/nvme0n1"));
        link(root, "/sys/dev/block/259:9", "/sys/devices/virtual/nvme-subsystem/nvme-subsys2/nvme2n1");
        for (controller, path, node) in
            [("nvme3", "nvme2c3n1", "0"), ("nvme4", "nvme2c4n1", "1"), ("nvme0", "nvme0n1", "0")]
        {
            write(root, &format!("/sys/class/nvme/{controller}/{path}/uevent"), "");
            write(root, &format!("/sys/class/nvme/{controller}/numa_node"), node);
        }
        for (card, address) in [("eth0", PCI[0]), ("eth1", PCI[2])] {
            let folder = format!("/sys/devices/pci0/{address}/net/{card}");
            write(root, &format!("{folder}/uevent"), "");
            link(root, &format!("/sys/class/net/{card}"), &folder);
        }
        write(root, "/sys/devices/virtual/net/bond0/uevent", "");
        write(root, "/sys/devices/virtual/net/bond0/lower_eth1/.keep", "");
        link(root, "/sys/class/net/bond0", "/sys/devices/virtual/net/bond0");
        write(
            root,
            "/proc/7/mountinfo",
            "20 1 259:0 / / rw - ext4 /dev/nvme0n1 rw\n21 20 253:0 / /my\\040data rw - xfs /dev/dm-0 rw\n\
             22 20 259:9 / /wal rw - xfs /dev/nvme2n1 rw\n23 20 0:5 / /proc rw - proc proc rw\nodd\n",
        );
        write(
            root,
            "/proc/7/net/route",
            "Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT\n\
             eth0 00000000 0100000A 0003 0 0 100 00000000 0 0 0\nbond0 0001A8C0 00000000 0001 0 0 0 00FFFFFF 0 0 0\n",
        );
        write(
            root,
            "/proc/7/net/tcp",
            "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
             0: 00000000:1538 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 900 1\n\
             1: 0500A8C0:1538 00000000:0000 01 00000000:00000000 00:00000000 00000000 0 0 901 1\n\
             2: 0501A8C0:1538 0901A8C0:0016 01 00000000:00000000 00:00000000 00000000 0 0 902 1\n\
             3: 0100007F:1538 0100007F:0016 01 00000000:00000000 00:00000000 00000000 0 0 903 1\n",
        );
    }

    fn told(root: &Path, nodes: &[u32]) -> (Vec<String>, Vec<String>) {
        let host = Host::open(root).expect("a tree");
        let mut unread = Vec::new();
        let devices = of(&host, 7, nodes, &mut unread);
        let told = devices.iter().map(|device| {
            let node = device.node.map_or("-".to_owned(), |node| node.to_string());
            let near = device.near.map_or("-".to_owned(), |near| near.to_string());
            format!("{} {node} {near} {}", device.name, device.by)
        });
        (told.collect(), unread)
    }

    #[test]
    fn files_lead_through_volumes_to_disks_and_sockets_through_bonds_to_cards() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path();
        tree(root);
        for (number, target) in [
            ("3", "/my data/base/1"),
            ("4", "/my data/base/2 (deleted)"),
            ("5", "/etc/hosts"),
            ("6", "/wal/1"),
            ("7", "/proc/stat"),
            ("8", "socket:[902]"),
            ("9", "socket:[903]"),
            ("10", "socket:[77]"),
            ("11", "pipe:[5]"),
        ] {
            link(root, &format!("/proc/7/fd/{number}"), target);
        }
        link(root, "/proc/7/cwd", "/my data");
        let (devices, unread) = told(root, &[0]);
        assert_eq!(unread, [""; 0]);
        assert_eq!(
            devices,
            [
                "nvme0n1 0 true 1 open files and folders below /",
                "nvme1n1 1 false 3 open files and folders below /my data through dm-0",
                "nvme2n1 by nvme3 0 true 1 open files and folders below /wal",
                "nvme2n1 by nvme4 1 false 1 open files and folders below /wal",
                "eth1 1 false 1 of its sockets through bond0",
            ]
        );
        let (devices, _) = told(root, &[]);
        assert!(devices.iter().all(|device| device.split(' ').any(|word| word == "-")), "{devices:?}");
    }

    #[test]
    fn a_socket_on_every_address_is_on_the_card_of_the_default_route() {
        let folder = tempfile::tempdir().expect("a folder");
        tree(folder.path());
        link(folder.path(), "/proc/7/fd/3", "socket:[900]");
        assert_eq!(told(folder.path(), &[1]).0, ["eth0 0 false 1 of its sockets"]);
    }

    #[test]
    fn what_may_not_be_seen_is_said() {
        let folder = tempfile::tempdir().expect("a folder");
        write(folder.path(), "/proc/version", "Linux\n");
        assert_eq!(told(folder.path(), &[0]), (Vec::new(), Vec::new()), "a recording without them");
        write(folder.path(), "/proc/7/fd/.keep", "");
        assert_eq!(told(folder.path(), &[0]).1.len(), 1);
    }

    #[test]
    fn wide_addresses_are_those_of_the_table() {
        let routes = Routes {
            narrow: vec![(0x0000_000a, 0x0000_00ff, "eth0".to_owned())],
            default: Some("eth9".to_owned()),
            wide: vec![("20010db8000000000000000000000005".to_owned(), "eth1".to_owned())],
        };
        let card = |address: &str| routes.card_of_wide(address).unwrap_or_default();
        assert_eq!(card("00000000000000000000000000000000"), "eth9");
        assert_eq!(card("0000000000000000FFFF00000500000A"), "eth0");
        assert_eq!(card("B80D0120000000000000000005000000"), "eth1");
        assert_eq!((card("00000000000000000000000001000000"), card("x")), (String::new(), String::new()));
    }

    #[test]
    fn of_two_cards_in_one_network_none_is_told() {
        let row = |mask: u32, card: &str| (0x0000_000a, mask, card.to_owned());
        let routes = |narrow| Routes { narrow, default: Some("eth9".to_owned()), wide: Vec::new() };
        let card = |narrow| routes(narrow).card_of("0500000A");
        assert_eq!(card(vec![row(0xff, "eth0"), row(0xff, "eth1")]), None, "either may carry it");
        assert_eq!(card(vec![row(0xff, "eth0"), row(0xff, "eth0")]).as_deref(), Some("eth0"));
        assert_eq!(
            card(vec![row(0xff, "eth0"), row(0x00ff_ffff, "eth1")]).as_deref(),
            Some("eth1"),
            "the closest"
        );
        assert_eq!(card(Vec::new()).as_deref(), Some("eth9"));
    }
}
