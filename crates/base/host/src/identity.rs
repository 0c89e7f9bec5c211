//! Which machine this is, and which boot of it, without telling who it is.

use std::fmt::Write;

use sha2::{Digest, Sha256};

use crate::host::Host;
use crate::redact::MADE_UUID;

impl Host {
    /// A stable identity of the machine: 16 hex digits.
    ///
    /// A keyed hash of its machine-id, as machine-id(5) asks for, so that the id itself never leaves the
    /// machine. Where there is none: of facts that outlive a reboot and that any user may read.
    pub fn host_id(&self) -> String {
        if let Some(id) = self.meta().and_then(|meta| meta.host_id.clone()) {
            return id;
        }
        match self.machine_id() {
            Some(id) => short_hash(&["planish machine-id", &id]),
            None => short_hash(&["planish facts", &self.stable_facts()]),
        }
    }

    /// The same where it lasts for as long as the machine does: what is kept on its disk is known by it, in other
    /// boots too. `None` where nothing lasts: facts change with a kernel (it keeps more or less of the memory) or a
    /// part, and a machine-id that is mounted over its file was made for this boot alone, as systemd does where /etc
    /// is read-only.
    pub fn lasting_id(&self) -> Option<String> {
        if let Some(id) = self.meta().and_then(|meta| meta.host_id.clone()) {
            return Some(id);
        }
        let mounts = self.read_lossy("/proc/self/mountinfo").unwrap_or_default();
        let is_transient = mounts.lines().any(|line| line.split(' ').nth(4) == Some("/etc/machine-id"));
        let id = self.machine_id().filter(|_| !is_transient);
        let name = || self.meta().map(|meta| short_hash(&["planish recorded", &meta.name]));
        id.map(|id| short_hash(&["planish machine-id", &id])).or_else(name)
    }

    /// The machine-id; `None` where there is none (yet: `uninitialized`, in an image before its first boot).
    fn machine_id(&self) -> Option<String> {
        ["/etc/machine-id", "/var/lib/dbus/machine-id"].into_iter().find_map(|path| {
            let text = self.read(path).ok()?;
            let id = text.trim();
            (id.len() == 32).then(|| id.to_owned())
        })
    }

    /// CPU model, memory and name of the machine.
    fn stable_facts(&self) -> String {
        let name = self.meta().map(|meta| meta.name.clone());
        let name = name.or_else(|| self.read("/proc/sys/kernel/hostname").ok()).unwrap_or_default();
        let models = self.read("/proc/cpuinfo").unwrap_or_default();
        let mut models: Vec<&str> = models.lines().filter(|line| line.starts_with("model name")).collect();
        // One line for each CPU that is online at the moment: how many is no stable fact.
        models.dedup();
        let memory = self.read("/proc/meminfo").unwrap_or_default();
        let memory = memory.lines().find(|line| line.starts_with("MemTotal:")).unwrap_or_default();
        format!("{}\n{}\n{memory}", name.trim(), models.join("\n"))
    }

    /// Identity of this boot, hashed: 16 hex digits; of a recording that has none, always the same.
    ///
    /// Of the kernel's own id alone, which no two boots share: facts of the machine may change while it runs (a
    /// CPU goes offline), and a boot that seemed to be another one would make undo forget what is to be undone.
    pub fn boot_id(&self) -> String {
        let id = self.read("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        match id.trim() {
            "" => short_hash(&["planish boot", "", &self.host_id()]),
            id => short_hash(&["planish boot", id]),
        }
    }

    /// Whether the id of the boot is one that a recording has in the place of the kernel's: several hosts may have it.
    #[must_use]
    pub fn has_made_boot_id(&self) -> bool {
        let id = || self.read("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        !self.is_live() && id().starts_with(MADE_UUID)
    }

    /// Kernel release (`uname -r`); empty where it is not recorded.
    pub fn kernel(&self) -> String {
        match self.meta() {
            Some(meta) => meta.kernel.clone(),
            None => self.read("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_owned(),
        }
    }

    /// Architecture in the kernel's words: `x86_64`, `aarch64`; empty where it is not recorded.
    pub fn arch(&self) -> String {
        if let Some(meta) = self.meta() {
            return meta.arch.clone();
        }
        if self.is_live() {
            // The kernel's name is that of the target for every architecture that planish is built for.
            return std::env::consts::ARCH.to_owned();
        }
        // Since Linux 6.1.
        self.read("/proc/sys/kernel/arch").unwrap_or_default().trim().to_owned()
    }

    /// Size of a base page in bytes.
    ///
    /// A bare tree does not say it; it follows from the huge page of the page-middle level, which is a table
    /// full of base pages: `huge = base / 8 * base`.
    pub fn page_bytes(&self) -> u64 {
        if let Some(meta) = self.meta() {
            return meta.page_bytes;
        }
        if self.is_live() {
            return planish_sys::pages::base_bytes() as u64;
        }
        let huge = self.read("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size").unwrap_or_default();
        huge.trim().parse().map_or(4096, |huge: u64| (huge * 8).isqrt())
    }
}

/// First 16 hex digits of the SHA-256 of `parts`, each with its length, so that no two lists collide.
fn short_hash(parts: &[&str]) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    let digest = hasher.finalize();
    let mut text = String::new();
    for byte in &digest[..8] {
        write!(text, "{byte:02x}").expect("a String takes any text");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_live_machine_knows_itself() {
        let host = Host::live();
        assert_eq!(host.host_id(), Host::live().host_id());
        assert_eq!(host.boot_id(), Host::live().boot_id());
        assert_eq!(host.host_id().len(), 16);
        assert_ne!(host.host_id(), host.boot_id());
        assert!(!host.kernel().is_empty() && !host.arch().is_empty());
        assert!(host.page_bytes().is_power_of_two());
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "makes the fixture")]
    fn a_cpu_that_goes_offline_changes_neither_machine_nor_boot() {
        let root = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        put("proc/sys/kernel/random/boot_id", "11111111-2222-3333-4444-555555555555\n");
        put("proc/cpuinfo", "processor: 0\nmodel name: x\n\nprocessor: 1\nmodel name: x\n");
        let ids = || {
            let host = Host::open(root.path()).unwrap();
            (host.host_id(), host.boot_id())
        };
        let before = ids();
        put("proc/cpuinfo", "processor: 0\nmodel name: x\n");
        assert_eq!(ids(), before);
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "makes the fixture")]
    fn only_an_id_that_lasts_is_one_of_the_machine() {
        let root = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let id = || Host::open(root.path()).unwrap().lasting_id();
        put("proc/meminfo", "MemTotal: 1 kB\n");
        assert_eq!(id(), None, "facts are none");
        put("etc/machine-id", "uninitialized\n");
        assert_eq!(id(), None, "an image before its first boot");
        put("etc/machine-id", "0123456789abcdef0123456789abcdef\n");
        let first = id().expect("one that lasts");
        put("proc/sys/kernel/osrelease", "9.9\n");
        put("proc/sys/kernel/random/boot_id", "11111111-2222-3333-4444-555555555555\n");
        put("proc/meminfo", "MemTotal: 2 kB\n");
        assert_eq!(id(), Some(first.clone()), "another kernel, another boot, more memory");
        put("etc/machine-id", "ffffffffffffffffffffffffffffffff\n");
        assert_ne!(id(), Some(first));
        put("proc/self/mountinfo", "40 23 0:25 /machine-id /etc/machine-id ro - tmpfs tmpfs rw\n");
        assert_eq!(id(), None, "made for this boot alone");
    }

    #[test]
    fn lists_do_not_collide() {
        assert_ne!(short_hash(&["ab", "c"]), short_hash(&["a", "bc"]));
    }
}
