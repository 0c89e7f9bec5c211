//! The rules that planish writes: one a line, for one setting of one device.

/// What a network card is told by. Its name is given while rules are read, and a VLAN or a bond on top of it has its
/// address and not its driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nic {
    /// The address that it was made with: `52:54:00:12:34:56`.
    pub address: String,
    /// The driver of its device.
    pub driver: String,
}

/// Properties of udev that tell one disk from all others, the best first.
pub const DISK_KEYS: [&str; 5] = ["ID_WWN_WITH_EXTENSION", "ID_WWN", "ID_SERIAL", "DM_UUID", "MD_UUID"];

/// What a disk is told by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DiskKey {
    /// A property of it, one of [`DISK_KEYS`]: `ID_WWN` and its value.
    Property(&'static str, String),
    /// Its name in the kernel, where it has nothing else: another disk may have it after a boot.
    Name(String),
    /// A pattern of names: for a rule that goes to other machines.
    Names(String),
}

/// How rules of ours for cards begin.
const NIC_BEGIN: &str = "ACTION==\"add\", SUBSYSTEM==\"net\", ";
/// The same for disks. A disk whose medium changes, or that a mapper fills, changes and does not appear.
const DISK_BEGIN: &str = "ACTION==\"add|change\", SUBSYSTEM==\"block\", ENV{DEVTYPE}==\"disk\", ";

/// The line that sets a setting of a card by the program `ethtool`: its option, and the words behind the card's name.
#[must_use]
pub fn card_rule(nic: &Nic, program: &str, option: &str, words: &str) -> String {
    let Nic { address, driver } = nic;
    format!(
        "{NIC_BEGIN}DRIVERS==\"{driver}\", ATTR{{address}}==\"{address}\", RUN+=\"{program} {option} $name {words}\"\n"
    )
}

/// The line that sets a file in the folder of a disk; `None` where the rule would not say what is meant.
#[must_use]
pub fn disk_rule(key: &DiskKey, attribute: &str, value: &str) -> Option<String> {
    let is_plain = |text: &str| {
        !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_.:/".contains(c))
    };
    let (asked, told) = match key {
        DiskKey::Property(name, value) => (format!("ENV{{{name}}}"), value),
        DiskKey::Name(name) | DiskKey::Names(name) => ("KERNEL".to_owned(), name),
    };
    let is_pattern = |c: char| matches!(key, DiskKey::Names(_)) && "*?[]".contains(c);
    let is_odd = |c: char| c.is_control() || "\"\\".contains(c);
    if !is_plain(&told.replace(is_pattern, "x"))
        || !is_plain(attribute)
        || value.is_empty()
        || value.contains(is_odd)
    {
        return None;
    }
    let value = value.replace('%', "%%").replace('$', "$$");
    Some(format!("{DISK_BEGIN}{asked}==\"{told}\", ATTR{{{attribute}}}=\"{value}\"\n"))
}

/// Whether a line is a rule of ours.
#[must_use]
pub fn is_own(line: &str) -> bool {
    line.starts_with(NIC_BEGIN) || line.starts_with(DISK_BEGIN)
}

/// What a rule of ours sets, without the value: another one for the same device and setting differs in that alone.
#[must_use]
pub fn key(line: &str) -> Option<&str> {
    if line.starts_with(DISK_BEGIN) {
        return line.rsplit_once("=\"").map(|(key, _)| key);
    }
    line.starts_with(NIC_BEGIN).then(|| line.rsplit_once(' ').map_or(line, |(key, _)| key))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::rules;

    #[test]
    fn a_rule_for_a_disk_says_what_is_meant_or_is_not_written() {
        let wwn = DiskKey::Property("ID_WWN", "0x5000c500".to_owned());
        let line = disk_rule(&wwn, "queue/scheduler", "none").expect("plain");
        assert_eq!(
            line,
            "ACTION==\"add|change\", SUBSYSTEM==\"block\", ENV{DEVTYPE}==\"disk\", ENV{ID_WWN}==\"0x5000c500\", \
             ATTR{queue/scheduler}=\"none\"\n"
        );
        assert!(is_own(&line));
        assert_eq!(key(line.trim_end()), key(&line.trim_end().replace("none", "write back")));
        assert_eq!(rules(&line)[0].parts.len(), 5);
        let name = |name: &str| DiskKey::Name(name.to_owned());
        let percent = disk_rule(&name("sda"), "queue/x", "50% $a").expect("plain");
        assert!(percent.ends_with("KERNEL==\"sda\", ATTR{queue/x}=\"50%% $$a\"\n"), "{percent}");
        let names = DiskKey::Names("nvme*n[0-9]".to_owned());
        let line = disk_rule(&names, "queue/x", "1").expect("plain");
        assert!(line.contains("KERNEL==\"nvme*n[0-9]\""), "{line}");
        for (disk, attribute, value) in [
            ("sd*", "queue/x", "1"),
            ("sda", "queue/*", "1"),
            ("sda", "queue/x", "a\"b"),
            ("", "queue/x", "1"),
        ] {
            assert_eq!(disk_rule(&name(disk), attribute, value), None, "{disk} {attribute} {value}");
        }
    }

    #[test]
    fn rules_for_one_setting_of_a_card_differ_in_their_last_word() {
        let nic = Nic { address: "52:54:00:00:00:01".to_owned(), driver: "igb".to_owned() };
        let line = |words: &str| card_rule(&nic, "/usr/sbin/ethtool", "-G", words);
        assert!(is_own(&line("rx 1")));
        assert_eq!(key(&line("rx 1")), key(&line("rx 4096")));
        assert_ne!(key(&line("rx 1")), key(&line("tx 1")));
    }
}
