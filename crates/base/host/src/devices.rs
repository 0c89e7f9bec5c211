//! What the kernel tells and not through a file, of network cards, of limits that are held and of mounts: as files all
//! the same.
//!
//! ```text
//! /planish/ethtool/eth0/rings_rx        the number in force        0644, or 0444 where nobody can change it
//! /planish/ethtool/eth0/rings_rx_max    the largest one it takes   0444, where the card says so
//! /planish/session_nics                 the cards through which this machine is reached, one name a line
//! /planish/held/cpu_dma_latency_us      the limit that our holders keep, in microseconds    0644
//! /planish/held/cpu_dma_latency_others  who else keeps a shorter one, one name a line       0444
//! /planish/resctrl/default              what the default group has of the caches            0644
//! /planish/resctrl/groups/planish-NAME  a group of ours with its CPUs and its share, or none 0644
//! /planish/mounts/-/atime               when a read of the root file system writes its time 0644
//! /planish/mounts_apart                 there where these are not the mounts of process 1   0444
//! /planish/threads/ksoftirqd/3          the schedule of a thread of the kernel              0644
//! ```
//!
//! No such folder exists on a machine. On the live one, reading a file of it asks the kernel over netlink
//! ([`planish_sys::ethtool`]); a recording has it as a plain folder, so that places below it are found, read, copied,
//! refused and rounded like any other. Only cards that hang on a device are there: bridges, tunnels and the ends of
//! containers come and go with their makers. What is held is asked of the processes ([`planish_sys::hold`]). A group of
//! resctrl is a folder with several files: see [`crate::resctrl`]. Options of mounts are words of a table: see
//! [`crate::mounts`]. The schedule of a thread is asked by a call: see [`crate::threads`].

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock};

use planish_sys::ethtool::{Ethtool, SETTINGS, Setting, Value};
use planish_sys::hold;
use rustix::io::Errno;
use rustix::thread::{CapabilitySet, capabilities};

use crate::access::Access;
use crate::host::Host;
use crate::mounts::{self, Table};
use crate::{resctrl, routes, threads};

/// The folder that no machine has.
const FOLDER: &str = "/planish";
/// Folder of the settings of cards, one folder each.
pub const ETHTOOL_FOLDER: &str = "/planish/ethtool";
/// The cards through which this machine is reached.
pub const SESSION_NICS: &str = "/planish/session_nics";
/// The longest wake-up of any CPU that our holders allow, in microseconds.
pub const DMA_LATENCY: &str = "/planish/held/cpu_dma_latency_us";
/// Who else holds a shorter one.
pub const DMA_LATENCY_OTHERS: &str = "/planish/held/cpu_dma_latency_others";
/// What the file with the largest number of a setting ends with.
const MAX: &str = "_max";

/// What a path of the folder is.
#[derive(Debug, PartialEq, Eq)]
enum Place<'a> {
    /// A folder: the whole, all cards, one card.
    Whole,
    Cards,
    Card(&'a str),
    /// A setting of a card, or the largest number of one.
    Setting(&'a str, &'static Setting),
    Largest(&'a str, &'static Setting),
    SessionNics,
    /// What processes hold: the folder, the limit of ours, and who holds a shorter one.
    Held,
    Limit,
    Others,
    /// Of resctrl: the folder, the default group, the folder of groups, a group of ours.
    Shares,
    Default,
    Groups,
    Group(&'a str),
    /// Of mounts: the folder, whether they are ours alone, one mount, a setting of it.
    Mounts,
    Apart,
    Mount(&'a str),
    Option(&'a str, mounts::Setting),
    /// Of threads of the kernel: the folder, the folder of a kind, a thread.
    Threads,
    Kind(&'static str),
    Thread(threads::Key),
    Nothing,
}

/// What a path is; `None` when it does not lie in the folder.
fn place(path: &str) -> Option<Place<'_>> {
    let rest = path.strip_prefix(FOLDER).filter(|rest| rest.is_empty() || rest.starts_with('/'))?;
    match path {
        SESSION_NICS => return Some(Place::SessionNics),
        DMA_LATENCY => return Some(Place::Limit),
        DMA_LATENCY_OTHERS => return Some(Place::Others),
        resctrl::FOLDER => return Some(Place::Shares),
        resctrl::DEFAULT => return Some(Place::Default),
        resctrl::GROUPS => return Some(Place::Groups),
        mounts::FOLDER => return Some(Place::Mounts),
        mounts::APART => return Some(Place::Apart),
        threads::FOLDER => return Some(Place::Threads),
        _ => {}
    }
    if let Some((name, setting)) = mounts::setting_at(path) {
        return Some(Place::Option(name, setting));
    }
    if let Some(thread) = threads::at(path) {
        return Some(Place::Thread(thread));
    }
    if let Some(name) = resctrl::group_at(path) {
        return Some(Place::Group(name));
    }
    let parts: Vec<&str> = rest.split('/').skip(1).collect();
    let setting = |name: &str| Setting::by_name(name);
    Some(match parts.as_slice() {
        [] => Place::Whole,
        ["held"] => Place::Held,
        ["threads", kind] => {
            threads::KINDS.into_iter().find(|known| known == kind).map_or(Place::Nothing, Place::Kind)
        }
        ["ethtool"] => Place::Cards,
        ["ethtool", nic] => Place::Card(nic),
        ["mounts", name] => Place::Mount(name),
        ["ethtool", nic, name] => match (setting(name), name.strip_suffix(MAX).and_then(setting)) {
            (Some(setting), _) => Place::Setting(nic, setting),
            (None, Some(setting)) if setting.has_max() => Place::Largest(nic, setting),
            _ => Place::Nothing,
        },
        _ => Place::Nothing,
    })
}

/// The setting of a card that a path is: the name of the card, and the setting.
#[must_use]
pub fn setting_at(path: &str) -> Option<(&str, &'static Setting)> {
    match place(path)? {
        Place::Setting(nic, setting) => Some((nic, setting)),
        _ => None,
    }
}

/// Cards of the live machine.
#[derive(Debug, Default)]
pub(crate) struct Devices {
    /// Opened when it is first asked for; none where the kernel has none, and why where this process may not ask it.
    ethtool: OnceLock<Result<Option<Ethtool>, Errno>>,
    /// The mounts as they were when their folder was last listed or a value read: a host of containers has thousands of
    /// them. Which are there and who may set them is told from this table, and values never are.
    mounts: Mutex<Option<Arc<Table>>>,
    /// Looked for when the first of them is asked for.
    threads: OnceLock<BTreeMap<threads::Key, Vec<u32>>>,
}

impl Devices {
    /// The text of a file of the folder; `None` for a path outside.
    pub(crate) fn read(&self, host: &Host, path: &str) -> Option<io::Result<String>> {
        let number = |number: Option<u32>| match number {
            Some(number) => Ok(format!("{number}\n")),
            None => Err(Errno::NOENT.into()),
        };
        Some(match place(path)? {
            Place::Setting(nic, setting) => {
                self.value(host, nic, setting).and_then(|value| number(value.map(|value| value.value)))
            }
            Place::Largest(nic, setting) => {
                self.value(host, nic, setting).and_then(|value| number(value.and_then(|value| value.max)))
            }
            Place::SessionNics => {
                let nics = routes::session_nics(host);
                Ok(nics.iter().map(|nic| format!("{nic}\n")).collect())
            }
            Place::Limit if has_latency() => hold::held_us(Path::new(PROC)).map(|limit| format!("{limit}\n")),
            Place::Others if has_latency() => others(),
            Place::Apart if mounts::are_apart() => Ok("yes\n".to_owned()),
            Place::Limit | Place::Others | Place::Apart => Err(Errno::NOENT.into()),
            Place::Default => resctrl::schemata(host, resctrl::MOUNT).map(|text| text + "\n"),
            Place::Group(name) => resctrl::group(host, name).map(|text| text + "\n"),
            Place::Option(name, setting) => {
                self.mounts_now().and_then(|table| table.read(name, setting)).map(|text| text + "\n")
            }
            Place::Thread(key) => {
                threads::one(self.threads().get(&key)).and_then(threads::text).map(|text| text + "\n")
            }
            Place::Whole | Place::Held | Place::Cards | Place::Card(_) | Place::Shares | Place::Groups => {
                Err(Errno::ISDIR.into())
            }
            Place::Mounts | Place::Mount(_) | Place::Threads | Place::Kind(_) => Err(Errno::ISDIR.into()),
            Place::Nothing => Err(Errno::NOENT.into()),
        })
    }

    /// Names in a folder of the folder; `None` for a path outside.
    pub(crate) fn list(&self, host: &Host, path: &str) -> Option<Vec<String>> {
        Some(match place(path)? {
            Place::Whole => {
                ["ethtool", "held", "mounts", "resctrl", "session_nics", "threads"].map(str::to_owned).into()
            }
            Place::Mounts => {
                let table = self.mounts_now();
                table.map(|table| table.names().map(str::to_owned).collect()).unwrap_or_default()
            }
            Place::Mount(name) => self.mounts().map(|table| table.files(name)).unwrap_or_default(),
            Place::Threads => {
                let has_any = |kind: &&str| self.threads().keys().any(|(known, _)| known == kind);
                threads::KINDS.into_iter().filter(|kind| has_any(kind)).map(str::to_owned).collect()
            }
            Place::Kind(kind) => {
                let own = self.threads().keys().filter(|(known, _)| *known == kind);
                own.map(|(_, cpu)| cpu.to_string()).collect()
            }
            Place::Shares if resctrl::is_there(host) => ["default", "groups"].map(str::to_owned).into(),
            Place::Groups if resctrl::is_there(host) => resctrl::own_groups(host),
            Place::Held if has_latency() => [DMA_LATENCY_OTHERS, DMA_LATENCY]
                .iter()
                .filter_map(|path| path.rsplit('/').next())
                .map(str::to_owned)
                .collect(),
            Place::Cards => cards(host),
            Place::Card(nic) => self.files(host, nic),
            _ => Vec::new(),
        })
    }

    /// Whether there is something at a path; `None` for one outside.
    pub(crate) fn exists(&self, host: &Host, path: &str) -> Option<bool> {
        Some(match place(path)? {
            Place::Whole
            | Place::Held
            | Place::Cards
            | Place::SessionNics
            | Place::Mounts
            | Place::Threads => true,
            Place::Apart => mounts::are_apart(),
            Place::Mount(name) => self.mounts().is_ok_and(|table| table.get(name).is_some()),
            Place::Option(name, setting) => {
                self.mounts().is_ok_and(|table| table.mode(name, setting).is_some())
            }
            Place::Kind(kind) => self.threads().keys().any(|(known, _)| *known == kind),
            Place::Thread(key) => self.threads().contains_key(&key),
            Place::Limit | Place::Others => has_latency(),
            Place::Shares | Place::Groups | Place::Default | Place::Group(_) => resctrl::is_there(host),
            Place::Card(nic) => is_card(host, nic),
            Place::Setting(nic, setting) => !matches!(self.value(host, nic, setting), Ok(None)),
            Place::Largest(..) => self.read(host, path).is_some_and(|text| text.is_ok()),
            Place::Nothing => false,
        })
    }

    /// Who may write a file of the folder; `None` for a path outside.
    pub(crate) fn access(&self, host: &Host, path: &str) -> Option<Access> {
        let mode = self.mode(host, path)?;
        let roots = match place(path)? {
            Place::Limit => Some("only root may hold the device open"),
            Place::Default | Place::Group(_) => Some("only root may change it"),
            _ => None,
        };
        if let Place::Thread(_) = place(path)? {
            let may = capabilities(None).is_ok_and(|own| own.effective.contains(CapabilitySet::SYS_NICE));
            let allowed = if may { Ok(()) } else { Err("it takes the capability CAP_SYS_NICE".to_owned()) };
            return Some(mode.map_or(Access::Absent, |mode| Access::of(mode, false, allowed)));
        }
        if let Some(why) = roots {
            let may = rustix::process::geteuid().is_root();
            let allowed = if may { Ok(()) } else { Err(why.to_owned()) };
            return Some(mode.map_or(Access::Absent, |mode| Access::of(mode, false, allowed)));
        }
        let (set, name) = match place(path)? {
            Place::Option(..) => (CapabilitySet::SYS_ADMIN, "CAP_SYS_ADMIN"),
            _ => (CapabilitySet::NET_ADMIN, "CAP_NET_ADMIN"),
        };
        let may = capabilities(None).is_ok_and(|own| own.effective.contains(set));
        let allowed = if may { Ok(()) } else { Err(format!("it takes the capability {name}")) };
        Some(mode.map_or(Access::Absent, |mode| Access::of(mode, false, allowed)))
    }

    /// The permission bits that a file of the folder would have, `None` inside for what is no file; `None` outside for
    /// a path outside.
    pub(crate) fn mode(&self, host: &Host, path: &str) -> Option<Option<u32>> {
        Some(match place(path)? {
            Place::Setting(nic, setting) => {
                // What cannot be asked may be there: reading it tells why it is not known.
                let value = self.value(host, nic, setting);
                value.map_or(Some(0o644), |value| value.map(|value| if value.fixed { 0o444 } else { 0o644 }))
            }
            Place::Limit => has_latency().then_some(0o644),
            Place::Default | Place::Group(_) => resctrl::is_there(host).then_some(0o644),
            Place::Option(name, setting) => self.mounts().ok().and_then(|table| table.mode(name, setting)),
            Place::Thread(key) => self.threads().contains_key(&key).then_some(0o644),
            Place::Largest(..) | Place::SessionNics | Place::Others | Place::Apart => {
                self.exists(host, path).is_some_and(|exists| exists).then_some(0o444)
            }
            _ => None,
        })
    }

    /// The mounts as they were last seen.
    fn mounts(&self) -> io::Result<Arc<Table>> {
        let known = self.mounts.lock().expect("no holder of this lock can panic").clone();
        known.map_or_else(|| self.mounts_now(), Ok)
    }

    /// The mounts as they are now.
    fn mounts_now(&self) -> io::Result<Arc<Table>> {
        let table = Arc::new(Table::live()?);
        *self.mounts.lock().expect("no holder of this lock can panic") = Some(Arc::clone(&table));
        Ok(table)
    }

    /// The files of a card. Where this process may not ask, which it has is not known: all that there are, so that
    /// reading them fails, as it does for a file that may not be read, and nobody takes them for absent.
    fn files(&self, host: &Host, nic: &str) -> Vec<String> {
        let mut names = Vec::new();
        for setting in SETTINGS {
            let value = self.value(host, nic, setting);
            if !matches!(value, Ok(None)) {
                names.push(setting.name.to_owned());
            }
            let max = value.ok().flatten().and_then(|value| value.max);
            names.extend(max.map(|_| format!("{}{MAX}", setting.name)));
        }
        names
    }

    /// Threads of the kernel. A recording is to tell nothing of who else runs: they are looked for by a host of their
    /// own.
    fn threads(&self) -> &BTreeMap<threads::Key, Vec<u32>> {
        self.threads.get_or_init(|| threads::all(&Host::live()))
    }

    /// What a card says of a setting; nothing of one that it does not have.
    fn value(&self, host: &Host, nic: &str, setting: &Setting) -> io::Result<Option<Value>> {
        if !is_card(host, nic) {
            return Ok(None);
        }
        match self.ethtool.get_or_init(|| opened(Ethtool::open())) {
            Ok(Some(ethtool)) => Ok(ethtool.get(nic, setting.group)?.get(setting.name).copied()),
            Ok(None) => Ok(None),
            Err(refused) => Err((*refused).into()),
        }
    }
}

/// The connection; none in a kernel without ethtool over netlink, which alone says `ENOENT`. All else is a refusal of
/// this process, by a filter of system calls for one: a card may well have what cannot be asked.
fn opened(ethtool: io::Result<Ethtool>) -> Result<Option<Ethtool>, Errno> {
    match ethtool {
        Ok(ethtool) => Ok(Some(ethtool)),
        Err(error) => match Errno::from_io_error(&error) {
            Some(Errno::NOENT) => Ok(None),
            refused => Err(refused.unwrap_or(Errno::IO)),
        },
    }
}

/// Where the processes of this machine are.
const PROC: &str = "/proc";

/// Whether the kernel lets processes hold a limit. Not by the device: a service may have a /dev of its own.
fn has_latency() -> bool {
    Path::new("/sys/class/misc/cpu_dma_latency").exists()
}

/// Who holds a shorter limit than we do: the processes, or the kernel where no process does. Nobody where ours is in
/// force. Not known to a user who may not open the device.
fn others() -> io::Result<String> {
    let in_force = hold::in_force_us()?;
    let Some(mut names) = hold::shorter_than_ours(Path::new(PROC), in_force)? else {
        return Ok(String::new());
    };
    if names.is_empty() {
        names.push("a driver of the kernel".to_owned());
    }
    let lines: String = names.iter().map(|name| format!("{in_force} {name}\n")).collect();
    Ok(lines)
}

/// The cards of a machine: its interfaces that hang on a device.
fn cards(host: &Host) -> Vec<String> {
    host.list("/sys/class/net").into_iter().filter(|name| is_card(host, name)).collect()
}

fn is_card(host: &Host, name: &str) -> bool {
    host.read_link(&format!("/sys/class/net/{name}/device")).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::Pattern;

    #[test]
    fn a_path_is_a_setting_its_largest_number_or_nothing() {
        let rings = Setting::by_name("rings_rx").expect("known");
        assert_eq!(place("/planish/ethtool/eth0/rings_rx"), Some(Place::Setting("eth0", rings)));
        assert_eq!(place("/planish/ethtool/eth0/rings_rx_max"), Some(Place::Largest("eth0", rings)));
        assert_eq!(place("/planish/ethtool/eth0/feature_gro_max"), Some(Place::Nothing));
        assert_eq!(place("/planish/ethtool/eth0/rings_rx/x"), Some(Place::Nothing));
        assert_eq!(place("/planish"), Some(Place::Whole));
        assert_eq!(place("/planished"), None);
        assert_eq!(place(DMA_LATENCY), Some(Place::Limit));
        assert_eq!(place("/planish/held/other"), Some(Place::Nothing));
        assert_eq!(place("/proc/sys"), None);
        assert_eq!(setting_at("/planish/ethtool/eth0.1/rings_rx"), Some(("eth0.1", rings)));
        assert_eq!(setting_at("/planish/ethtool/eth0/rings_rx_max"), None);
    }

    #[test]
    fn the_limit_of_this_machine_is_a_file_where_there_is_the_device() {
        let host = Host::live();
        if !has_latency() {
            assert_eq!(host.access(DMA_LATENCY), Access::Absent);
            return planish_skip::skip("devices", "nothing can hold a limit here: no cpu_dma_latency");
        }
        let limit: u32 = host.read(DMA_LATENCY).expect("it is there").trim().parse().expect("a number");
        assert!(limit <= hold::NO_LIMIT_US, "{limit}");
        assert_ne!(host.access(DMA_LATENCY), Access::Absent);
        assert_eq!(host.access(DMA_LATENCY_OTHERS), Access::ReadOnly);
        assert_eq!(host.list("/planish/held"), ["cpu_dma_latency_others", "cpu_dma_latency_us"]);
    }

    #[test]
    fn a_card_that_may_not_be_asked_is_not_one_without_settings() {
        // An old kernel has none to ask, and says so by an error of its own.
        assert!(matches!(opened(Err(Errno::NOENT.into())), Ok(None)));
        let host = Host::live();
        let cards = cards(&host);
        let Some(nic) = cards.first() else {
            return planish_skip::skip("devices", "no network card is here");
        };
        let path = format!("{ETHTOOL_FOLDER}/{nic}/feature_gro");
        // As systemd's RestrictAddressFamilies= and other filters of system calls refuse it.
        for refused in [Errno::AFNOSUPPORT, Errno::PERM, Errno::PROTONOSUPPORT] {
            let ethtool = OnceLock::from(opened(Err(refused.into())));
            let devices = Devices { ethtool, ..Devices::default() };
            let error = devices.read(&host, &path).expect("of the folder").expect_err("refused");
            assert_eq!(Errno::from_io_error(&error), Some(refused), "{error}");
            assert_ne!(devices.access(&host, &path), Some(Access::Absent), "{refused}");
            let listed = devices.list(&host, &format!("{ETHTOOL_FOLDER}/{nic}")).expect("of the folder");
            assert!(listed.contains(&"feature_gro".to_owned()), "{listed:?}");
        }
        let ethtool = OnceLock::from(opened(Err(Errno::NOENT.into())));
        let devices = Devices { ethtool, ..Devices::default() };
        assert_eq!(devices.access(&host, &path), Some(Access::Absent));
        assert_eq!(devices.list(&host, &format!("{ETHTOOL_FOLDER}/{nic}")), Some(Vec::new()));
    }

    #[test]
    fn the_live_cards_answer_as_files_do() {
        let host = Host::live();
        let found = host.glob(&Pattern::parse("/planish/ethtool/{nic}/{setting}").expect("a pattern"));
        if found.is_empty() {
            return planish_skip::skip("devices", "no card here tells anything over netlink");
        }
        for at in found {
            let text = host.read(&at.path).expect("it was found");
            assert!(text.trim_end().parse::<u32>().is_ok(), "{}: {text}", at.path);
            let is_max = at.captures["setting"].ends_with(MAX);
            let access = host.access(&at.path);
            assert!(!is_max || access == Access::ReadOnly, "{}: {access:?}", at.path);
            assert_ne!(access, Access::Absent, "{}", at.path);
        }
        assert!(host.read("/planish/ethtool/planish-none/rings_rx").expect_err("no such card").is_absent());
        assert_eq!(host.access("/planish/ethtool/lo/feature_gro"), Access::Absent, "the loopback is no card");
    }
}
