//! A small two-node host in a temporary folder, with a kernel that answers as kernels do.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use planish_model::{Entry, KnobId, Nodes, Plan, Profile, Want, cards};
use planish_pipeline::{ApplyOptions, InstallCheck, PlanOptions, Session, SessionOptions, Source, log, plan};
use planish_skip::MACHINE;
use tempfile::TempDir;

/// An apply whose values come again at the next boot.
pub const PERSIST: ApplyOptions = ApplyOptions { confirm_seconds: None, persist: true, reason: None };

pub const SWAPPINESS: &str = "/proc/sys/vm/swappiness";
pub const STAT_INTERVAL: &str = "/proc/sys/vm/stat_interval";
pub const ZONE_RECLAIM: &str = "/proc/sys/vm/zone_reclaim_mode";
pub const DIRTY_BYTES: &str = "/proc/sys/vm/dirty_bytes";
pub const DIRTY_RATIO: &str = "/proc/sys/vm/dirty_ratio";
pub const MIN_FREE: &str = "/proc/sys/vm/min_free_kbytes";
pub const THP: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
pub const ATIME: &str = "/planish/mounts/data/atime";
pub const SHMEM: &str = "/sys/kernel/mm/transparent_hugepage/shmem_enabled";
pub const CMDLINE: &str = "/proc/cmdline";
pub const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
pub const SYSCTL_FILE: &str = "/etc/sysctl.d/90-planish.conf";
pub const TMPFILES_FILE: &str = "/etc/tmpfiles.d/90-planish.conf";

/// The pool of 2 MB pages of a node.
pub fn pool(node: u32) -> String {
    format!("/sys/devices/system/node/node{node}/hugepages/hugepages-2048kB/nr_hugepages")
}

const META: &str = r#"
name = "small-2n"
writable = true

[modes]
"0644" = ["/proc/sys/vm/*", "/sys/kernel/mm/**", "/sys/devices/system/node/**", "/planish/mounts/{mount}/atime"]
"0200" = ["/sys/devices/system/node/node{node}/compact", "/proc/sys/vm/compact_memory"]

[[answer]]
place = "/proc/sys/vm/dirty_bytes"
range = { min = 8192 }
zeroes = ["/proc/sys/vm/dirty_ratio"]

[[answer]]
place = "/proc/sys/vm/dirty_ratio"
zeroes = ["/proc/sys/vm/dirty_bytes"]

[[answer]]
place = "/sys/kernel/mm/transparent_hugepage/enabled"
selects = true
derives = [{ place = "/proc/sys/vm/min_free_kbytes", value = "90112" }]

[[answer]]
place = "/sys/kernel/mm/transparent_hugepage/shmem_enabled"
selects = true
derives = [{ place = "/proc/sys/vm/min_free_kbytes", value = "90112" }]

[[answer]]
place = "/sys/devices/system/node/node{node}/hugepages/hugepages-{kb}kB/nr_hugepages"
grant = 5
moves = ["/sys/devices/system/node/node{node}/hugepages/hugepages-{kb}kB/free_hugepages"]
sums = ["/sys/kernel/mm/hugepages/hugepages-{kb}kB/nr_hugepages"]
"#;

/// Files of the host besides `meta.toml`.
const FILES: &[(&str, &str)] = &[
    (
        "/proc/cpuinfo",
        "processor\t: 0\nmodel name\t: Model\nflags\t\t: fpu\n\nprocessor\t: 1\nmodel name\t: Model\n",
    ),
    (
        "/proc/meminfo",
        "MemTotal:       67108864 kB\nMemAvailable:   60000000 kB\nHugepagesize:       2048 kB\n",
    ),
    (
        "/proc/buddyinfo",
        "Node 0, zone Normal 9 9 9 9 9 9 9 9 9 7 5\nNode 1, zone Normal 9 9 9 9 9 9 9 9 9 0 0\n",
    ),
    (CMDLINE, "quiet hugepages=0:3\n"),
    ("/proc/2/comm", "kthreadd\n"),
    (BOOT_ID, "11111111-2222-3333-4444-555555555555\n"),
    (SWAPPINESS, "60\n"),
    (STAT_INTERVAL, "1\n"),
    (ZONE_RECLAIM, "1\n"),
    (DIRTY_BYTES, "0\n"),
    (DIRTY_RATIO, "20\n"),
    (MIN_FREE, "67584\n"),
    (ATIME, "strictatime\n"),
    (THP, "[always] madvise never\n"),
    (SHMEM, "always within_size advise [never] deny force\n"),
    ("/sys/devices/system/cpu/online", "0-1\n"),
    ("/sys/devices/system/node/has_cpu", "0-1\n"),
    ("/sys/devices/system/node/has_memory", "0-1\n"),
    ("/sys/devices/system/node/online", "0-1\n"),
    ("/sys/devices/system/node/node0/cpulist", "0\n"),
    ("/sys/devices/system/node/node1/cpulist", "1\n"),
    ("/proc/sys/vm/compact_memory", ""),
    ("/sys/devices/system/node/node0/compact", ""),
    ("/sys/devices/system/node/node1/compact", ""),
    ("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "3\n"),
    ("/sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages", "3\n"),
    ("/sys/devices/system/node/node0/hugepages/hugepages-2048kB/free_hugepages", "3\n"),
    ("/sys/devices/system/node/node0/hugepages/hugepages-2048kB/surplus_hugepages", "0\n"),
    ("/sys/devices/system/node/node1/hugepages/hugepages-2048kB/nr_hugepages", "0\n"),
    ("/sys/devices/system/node/node1/hugepages/hugepages-2048kB/free_hugepages", "0\n"),
    ("/sys/devices/system/node/node1/hugepages/hugepages-2048kB/surplus_hugepages", "0\n"),
    ("/etc/sysctl.d/10-other.conf", "vm.overcommit_ratio = 50\n"),
    ("/etc/tmpfiles.d/other.conf", "d /run/other 0755 root root -\n"),
];

/// A host that may be harmed.
pub struct Tree {
    folder: TempDir,
}

impl Tree {
    pub fn new() -> Self {
        // In memory where that is possible: a sync to a disk costs a thousand times more, and these tests make
        // tens of thousands.
        let folder = TempDir::new_in("/dev/shm").or_else(|_| TempDir::new()).expect("a temporary folder");
        let tree = Self { folder };
        tree.put("/meta.toml", &format!("{MACHINE}{META}"));
        FILES.iter().for_each(|(path, text)| tree.put(path, text));
        tree
    }

    /// A copy of a machine of `hosts/`.
    pub fn copy_of(name: &str) -> Self {
        let folder = TempDir::new_in("/dev/shm").or_else(|_| TempDir::new()).expect("a temporary folder");
        copy(&hosts().join(name), folder.path());
        Self { folder }
    }

    /// The same on a disk, where a sync costs what it costs.
    pub fn copy_to_disk(name: &str) -> Self {
        let folder = TempDir::new().expect("a temporary folder");
        copy(&hosts().join(name), folder.path());
        Self { folder }
    }

    /// Another machine just like this one.
    pub fn twin(&self) -> Self {
        let folder = TempDir::new_in("/dev/shm").or_else(|_| TempDir::new()).expect("a temporary folder");
        copy(self.root(), folder.path());
        Self { folder }
    }

    /// A copy of a machine of `hosts/` that may be written, whatever its description says.
    pub fn writable_copy_of(name: &str) -> Self {
        let tree = Self::copy_of(name);
        let meta = tree.get("/meta.toml").replace("writable = true\n", "").replace("writable = false\n", "");
        tree.put("/meta.toml", &format!("writable = true\n{meta}"));
        tree
    }

    /// The small host without the folders that a system keeps for sysctl.d and tmpfiles.d.
    pub fn without_folders() -> Self {
        let tree = Self::new();
        fs::remove_dir_all(tree.real("/etc")).expect("it was there");
        tree
    }

    /// The small host with more answers of its kernel.
    pub fn answering(rows: &str) -> Self {
        let tree = Self::new();
        tree.put("/meta.toml", &format!("{MACHINE}{META}{rows}"));
        tree
    }

    pub fn root(&self) -> &Path {
        self.folder.path()
    }

    fn real(&self, path: &str) -> PathBuf {
        self.root().join(path.trim_start_matches('/'))
    }

    #[expect(clippy::disallowed_methods, reason = "makes the fixture")]
    pub fn put(&self, path: &str, text: &(impl AsRef<[u8]> + ?Sized)) {
        let real = self.real(path);
        fs::create_dir_all(real.parent().expect("below the root")).expect("ours");
        fs::write(real, text).expect("ours");
    }

    /// The text of a file; empty when it is not there.
    #[expect(clippy::disallowed_methods, reason = "looks at the fixture from outside")]
    pub fn get(&self, path: &str) -> String {
        fs::read_to_string(self.real(path)).unwrap_or_default()
    }

    /// The content of a file that is there.
    #[expect(clippy::disallowed_methods, reason = "looks at the fixture from outside")]
    pub fn bytes(&self, path: &str) -> Vec<u8> {
        fs::read(self.real(path)).expect("it is there")
    }

    pub fn make_executable(&self, path: &str) {
        self.set_mode(path, 0o755);
    }

    pub fn set_mode(&self, path: &str, mode: u32) {
        fs::set_permissions(self.real(path), fs::Permissions::from_mode(mode)).expect("ours");
    }

    pub fn mode(&self, path: &str) -> u32 {
        fs::metadata(self.real(path)).expect("it is there").permissions().mode() & 0o7777
    }

    pub fn remove(&self, path: &str) {
        fs::remove_file(self.real(path)).expect("it was there");
    }

    pub fn remove_folder(&self, path: &str) {
        fs::remove_dir(self.real(path)).expect("it was there");
    }

    pub fn remove_if_there(&self, path: &str) {
        let _ = fs::remove_file(self.real(path));
    }

    /// What an administrator does with another tool: a write through the same kernel.
    pub fn edit(&self, place: &str, value: &str) {
        let host = planish_host::Host::open(self.root()).expect("a host");
        let sink = planish_act::ModelSink::new(&host).expect("writable");
        planish_act::Sink::write(&sink, place, value).expect("the kernel takes it");
    }

    /// Every file of the host with its content, and every folder, save the state of planish.
    pub fn snapshot(&self) -> BTreeMap<String, String> {
        let mut files = BTreeMap::new();
        collect(self.root(), self.root(), &mut files);
        files
    }

    pub fn options(&self) -> SessionOptions {
        SessionOptions {
            root: Some(self.root().to_owned()),
            clock: Some(1_763_600_000),
            command: "test".to_owned(),
            ..SessionOptions::default()
        }
    }

    pub fn session(&self) -> Session {
        Session::open(self.options()).expect("a host")
    }

    pub fn entries(&self) -> Vec<Entry> {
        log(&self.session()).expect("a sound journal")
    }

    /// The command line that a kernel gets with these arguments: GRUB begins it with a word of its own.
    pub fn line_of_loader(&self, arguments: &str) -> String {
        let is_grub =
            ["/boot/grub/grub.cfg", "/boot/grub2/grub.cfg"].iter().any(|menu| !self.get(menu).is_empty());
        let word = if is_grub && !arguments.contains("BOOT_IMAGE=") { "BOOT_IMAGE=/vmlinuz " } else { "" };
        format!("{word}{arguments}\n")
    }

    /// The machine goes down and comes up again: run-time values are those of `start`, until what lies in sysctl.d,
    /// tmpfiles.d and the files of the boot loader takes effect, as it does at every boot. Files stay.
    pub fn reboot(&self, start: &BTreeMap<String, String>) {
        let last: u64 = self.get(BOOT_ID)[..8].parse().expect("the fixture counts boots");
        for (path, text) in start {
            let folder = path.ends_with('/');
            let made = [
                "/proc/",
                "/sys/",
                "/planish/ethtool/",
                "/planish/held/",
                "/planish/mounts/",
                "/planish/resctrl/",
            ];
            if !folder && made.iter().any(|root| path.starts_with(root)) {
                self.put(path, text);
            }
        }
        // The kernel derives anew in each boot, and without us to what the machine began with.
        let derived = start.get(MIN_FREE).map(|text| text.trim()).unwrap_or_default();
        let meta = self.get("/meta.toml");
        self.put("/meta.toml", &meta.replace("value = \"90112\" }]", &format!("value = \"{derived}\" }}]")));
        self.put(BOOT_ID, &format!("{:08}-2222-3333-4444-555555555555\n", last + 1));
        self.put(CMDLINE, &self.line_of_loader(&self.arguments_of_next_boot(start)));
        let files = self.snapshot();
        for folder in ["/etc/sysctl.d/", "/etc/tmpfiles.d/"] {
            let files = files.iter().filter(|(path, _)| path.starts_with(folder) && path.ends_with(".conf"));
            files.flat_map(|(_, text)| text.lines()).for_each(|line| self.take_effect(line));
        }
        let folder = "/etc/systemd/system";
        let started = files.get(&format!("{folder}/multi-user.target.d/90-planish-hold.conf"));
        let unit = started.and_then(|_| files.get(&format!("{folder}/planish-hold.service")));
        for (place, limit) in
            unit.into_iter().flat_map(|text| text.lines()).filter_map(planish_model::place::of_line)
        {
            self.put(&place, &format!("{limit}\n"));
        }
        self.plug_in();
    }

    /// Every network card and every disk appears, and the rules of udev in /etc are followed that planish wrote: read
    /// here by their look, and not by the reader that is under test.
    pub fn plug_in(&self) {
        let host = planish_host::Host::open(self.root()).expect("a host");
        let files = self.snapshot();
        let files = files.iter().filter(|(path, _)| path.starts_with("/etc/udev/rules.d/"));
        let lines: Vec<&str> = files.flat_map(|(_, text)| text.lines()).collect();
        let quoted = |line: &str, key: &str| {
            Some(line.split_once(&format!("{key}\""))?.1.split('"').next()?.to_owned())
        };
        for name in host.list("/sys/class/net") {
            let driver = host.read_link(&format!("/sys/class/net/{name}/device/driver")).unwrap_or_default();
            let driver = driver.rsplit('/').next().unwrap_or_default().to_owned();
            let address = self.get(&format!("/sys/class/net/{name}/address")).trim().to_owned();
            let is_it = |line: &&&str| {
                quoted(line, "DRIVERS==").as_ref() == Some(&driver)
                    && quoted(line, "ATTR{address}==").as_ref() == Some(&address)
            };
            for command in lines.iter().filter(is_it).filter_map(|line| quoted(line, "RUN+=")) {
                let words: Vec<String> = command.split(' ').map(str::to_owned).collect();
                for said in cards::settings(&words[1], &words[3..]) {
                    let cards::Said::Value { knob, value, .. } = said else { panic!("{command}") };
                    let place = cards::place_of(knob, &name).expect("a card");
                    self.edit(&place, &value.replace("off", "0").replace("on", "1"));
                }
            }
        }
        for name in host.list("/sys/block") {
            let number = self.get(&format!("/sys/block/{name}/dev")).trim().to_owned();
            let data = self.get(&format!("/run/udev/data/b{number}"));
            for line in lines.iter().filter(|line| line.contains("SUBSYSTEM==\"block\"")) {
                let is_named = quoted(line, "KERNEL==").as_ref() == Some(&name);
                let (_, told) = line.split_once("ENV{DEVTYPE}==\"disk\", ").expect("of a disk");
                let property = told.strip_prefix("ENV{").and_then(|rest| rest.split_once("}==\""));
                let property = property.and_then(|(key, rest)| Some((key, rest.split('"').next()?)));
                let has = property
                    .is_some_and(|(key, value)| data.lines().any(|line| line == format!("E:{key}={value}")));
                let (_, set) = told.split_once("ATTR{").expect("it sets a file");
                let (file, value) = set.split_once("}=\"").expect("a value");
                if is_named || has {
                    self.edit(&format!("/sys/block/{name}/{file}"), value.trim_end_matches('"'));
                }
            }
        }
    }

    /// Does what a line of sysctl.d or tmpfiles.d says, where there is such a place.
    fn take_effect(&self, line: &str) {
        let (place, value) = match line.strip_prefix("w! ").or_else(|| line.strip_prefix("w ")) {
            Some(rest) => {
                let (place, value) = rest.split_once(" - - - - ").expect("as planish writes it");
                (place.to_owned(), value)
            }
            None => match line.split_once(" = ") {
                Some((key, value)) => (format!("/proc/sys/{}", key.replace('.', "/")), value),
                None => return,
            },
        };
        // Memory is whole after a start: a pool is granted all that it is asked for.
        let mut before = None;
        while self.real(&place).exists() && before.as_ref() != Some(&self.get(&place)) {
            before = Some(self.get(&place));
            self.edit(&place, value);
        }
    }

    /// What the boot loader gives the kernel, its menu made anew: the options of the first entry, where it has any.
    fn arguments_of_next_boot(&self, start: &BTreeMap<String, String>) -> String {
        let files = self.snapshot();
        let is_other = |path: &str| path.contains("rescue") || path.contains("planish-trial");
        let is_entry = |path: &str| path.contains("/loader/entries/") && !is_other(path);
        let options = |text: &String| Some(text.split_once("options ")?.1.lines().next()?.trim().to_owned());
        let entries = files.iter().filter(|(path, _)| is_entry(path)).filter_map(|(_, text)| options(text));
        let of_entry = entries.into_iter().find(|options| !options.contains('$'));
        let grub = files.iter().filter(|(path, _)| path.starts_with("/etc/default/grub"));
        let added = grub.flat_map(|(_, text)| text.lines()).filter_map(planish_boot::added_by);
        let running = start.get(CMDLINE).map_or("", |text| text.trim()).to_owned();
        of_entry.unwrap_or_else(|| added.fold(running, |line, more| line + " " + more))
    }
}

/// Puts a link in the place of what is there, which stays where the link leads, if that is beside it.
pub fn put_link(tree: &Tree, path: &str, target: &str) {
    let at = tree.root().join(path.trim_start_matches('/'));
    fs::create_dir_all(at.parent().expect("below the root")).expect("ours");
    let kept = tree.get(path);
    if target.starts_with("..") && !kept.is_empty() {
        fs::rename(&at, at.with_file_name(target)).expect("moved where the link leads");
    }
    tree.remove_if_there(path);
    symlink(target, at).expect("ours");
}

/// The folder of recorded machines.
pub fn hosts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../hosts")
}

/// Copies a folder; links stay links.
#[expect(clippy::disallowed_methods, reason = "makes the fixture")]
fn copy(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("readable");
        let (kind, target) = (entry.file_type().expect("readable"), to.join(entry.file_name()));
        if kind.is_symlink() {
            let link = fs::read_link(entry.path()).expect("readable");
            symlink(link, target).expect("ours");
        } else if kind.is_dir() {
            fs::create_dir(&target).expect("ours");
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).expect("ours");
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "looks at the fixture from outside")]
fn collect(root: &Path, folder: &Path, files: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("readable").path();
        let name = format!("/{}", path.strip_prefix(root).expect("below the root").display());
        if path.is_symlink() {
            continue;
        }
        if path.is_dir() {
            if name != "/var/lib/planish" {
                // On the way to the state of planish; an undo keeps the journal.
                if !["/var", "/var/lib", "/run", "/run/lock"].contains(&name.as_str()) {
                    files.insert(format!("{name}/"), String::new());
                }
                collect(root, &path, files);
            }
        } else {
            let bytes = fs::read(&path).expect("readable");
            files.insert(name, String::from_utf8_lossy(&bytes).into_owned());
        }
    }
}

/// Where two snapshots differ, without the boot, and what the kernel is.
pub fn differences(a: &BTreeMap<String, String>, b: &BTreeMap<String, String>) -> Vec<String> {
    let is_kernel = |place: &str| [BOOT_ID, "/meta.toml"].contains(&place);
    let places = a.keys().chain(b.keys()).filter(|place| !is_kernel(place) && a.get(*place) != b.get(*place));
    let mut places: Vec<String> = places.cloned().collect();
    places.sort();
    places.dedup();
    places
}

/// A profile of values.
pub fn profile(name: &str, want: &[(&str, Want)]) -> Source {
    let want = want.iter().map(|(id, want)| (KnobId::new(*id), want.clone())).collect();
    Source::Inline(Box::new(Profile {
        name: name.to_owned(),
        summary: "a test".to_owned(),
        inherits: vec![],
        want,
        placement: None,
        ..Profile::default()
    }))
}

/// Everything at once: plain values, a twin, a derived value, and a pool that is granted in pieces.
pub fn everything() -> Source {
    profile(
        "everything",
        &[
            ("vm.swappiness", Want::Int(10)),
            ("vm.stat_interval", Want::Int(10)),
            ("vm.zone_reclaim_mode", Want::Int(0)),
            ("vm.dirty_bytes", Want::Int(1 << 29)),
            ("thp.enabled", Want::Text("madvise".to_owned())),
            ("hugepages.2m", Want::Need { need_bytes: 32 << 20, nodes: Nodes::Spread }),
        ],
    )
}

/// A check of what the journal has, every hour.
pub fn hourly_check() -> InstallCheck {
    InstallCheck {
        program: "/usr/bin/planish".to_owned(),
        every: "hourly".to_owned(),
        profile: None,
        exclude: Vec::new(),
        state: None,
    }
}

/// The plan of a source for a tree.
pub fn plan_of(session: &Session, source: &Source) -> Plan {
    plan(session, source, &PlanOptions::default()).expect("a plan")
}
