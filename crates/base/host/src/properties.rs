//! What udev has given a device: the properties that rules ask for, as udev keeps them in /run.

use std::collections::BTreeMap;

use planish_sorted::CollectMap as _;

use crate::host::Host;

impl Host {
    /// The properties of the device whose folder this is (`/sys/block/sda`, `/sys/class/net/eth0`); `None` where udev
    /// does not know it, or nobody can tell.
    pub fn udev_properties(&self, folder: &str) -> Option<BTreeMap<String, String>> {
        let number = |file: &str| {
            let text = self.read(&format!("{folder}/{file}")).ok()?;
            let text = text.trim().to_owned();
            let is_number = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit() || b == b':');
            is_number.then_some(text)
        };
        let id = match folder.starts_with("/sys/class/net/") {
            true => format!("n{}", number("ifindex")?),
            false => format!("b{}", number("dev")?),
        };
        let text = self.read_lossy(&format!("/run/udev/data/{id}")).ok()?;
        let property = |line: &str| {
            let (key, value) = line.strip_prefix("E:")?.split_once('=')?;
            Some((key.to_owned(), value.to_owned()))
        };
        Some(text.lines().filter_map(property).collect_map())
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "makes the fixture")]
mod tests {
    use super::*;

    #[test]
    fn a_disk_has_what_udev_wrote_of_it() {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in [
            ("proc/version", "Linux version 6.12.0 x\n"),
            ("sys/block/sda/dev", "8:0\n"),
            ("sys/block/sdb/dev", "8:16\n"),
            ("sys/class/net/eth0/ifindex", "2\n"),
            ("run/udev/data/b8:0", "S:disk/by-id/x\nE:ID_WWN=0x5000\nE:ID_BUS=ata\n"),
            ("run/udev/data/n2", "E:ID_NET_DRIVER=igb\n"),
        ] {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let host = Host::open(folder.path()).unwrap();
        let of = |folder: &str, key: &str| host.udev_properties(folder).and_then(|all| all.get(key).cloned());
        assert_eq!(of("/sys/block/sda", "ID_WWN").as_deref(), Some("0x5000"));
        assert_eq!(of("/sys/class/net/eth0", "ID_NET_DRIVER").as_deref(), Some("igb"));
        assert_eq!(host.udev_properties("/sys/block/sdb"), None);
        assert_eq!(host.udev_properties("/sys/block/none"), None);
    }
}
