//! Groups of resctrl as texts: what the kernel has as a folder with several files is one place here.
//!
//! ```text
//! /sys/fs/resctrl/schemata                    /planish/resctrl/default: L3:0=7f0 MB:0=100
//! /sys/fs/resctrl/planish-realtime/           /planish/resctrl/groups/planish-realtime:
//!   cpus_list mode schemata tasks mon_groups    cpus=1,5 mode=exclusive L3:0=f MB:0=100, or none
//! ```
//!
//! Only groups whose name begins with `planish-` have a place: the others are somebody else's, and are only looked at.
//! Nothing is there where resctrl is not mounted. Mounting is left to who runs the machine: it takes a class of service
//! and monitoring counters for the default group alone, and other tools look at whether it is.

use std::io;

use rustix::io::Errno;

use crate::error::ReadError;
use crate::host::Host;

/// Where resctrl is mounted.
pub const MOUNT: &str = "/sys/fs/resctrl";
/// Folder of the places.
pub const FOLDER: &str = "/planish/resctrl";
/// The place of the default group.
pub const DEFAULT: &str = "/planish/resctrl/default";
/// Folder of the places of our groups.
pub const GROUPS: &str = "/planish/resctrl/groups";
/// What the name of a group of ours begins with.
pub const OWN: &str = "planish-";
/// Folders in the mount that are no groups.
const NO_GROUPS: [&str; 3] = ["info", "mon_data", "mon_groups"];

/// Whether a text is a name that a group of ours may have.
fn is_own(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._@:-".contains(c);
    name.strip_prefix(OWN).is_some_and(|rest| !rest.is_empty() && rest.chars().all(plain))
}

/// The group of ours that a place is.
#[must_use]
pub fn group_at(place: &str) -> Option<&str> {
    place.strip_prefix(GROUPS)?.strip_prefix('/').filter(|name| is_own(name))
}

/// Whether the caches can be shared out here: it is mounted, and does more than to monitor.
pub fn is_there(host: &Host) -> bool {
    host.exists(&format!("{MOUNT}/schemata"))
}

/// Groups besides the default one, by name: everybody's.
pub fn groups(host: &Host) -> Vec<String> {
    let is_group =
        |name: &String| !NO_GROUPS.contains(&name.as_str()) && host.exists(&format!("{MOUNT}/{name}/mode"));
    host.list(MOUNT).into_iter().filter(is_group).collect()
}

/// Those of them that are ours.
pub(crate) fn own_groups(host: &Host) -> Vec<String> {
    host.list(MOUNT).into_iter().filter(|name| is_own(name)).collect()
}

/// A schemata on one line. The kernel pads numbers within a line.
pub fn schemata(host: &Host, folder: &str) -> io::Result<String> {
    let text = host.read(&format!("{folder}/schemata")).map_err(of_read)?;
    let line = |line: &str| line.split_whitespace().collect::<String>();
    Ok(text.lines().map(line).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" "))
}

/// The text of a group of ours.
pub fn group(host: &Host, name: &str) -> io::Result<String> {
    let folder = format!("{MOUNT}/{name}");
    if !host.exists(&folder) {
        return if is_there(host) { Ok("none".to_owned()) } else { Err(Errno::NOENT.into()) };
    }
    let read = |file: &str| host.read(&format!("{folder}/{file}")).map_err(of_read);
    let mut text = format!("cpus={} mode={}", read("cpus_list")?.trim(), read("mode")?.trim());
    let counted =
        [("tasks", tasks(host, &folder)?), ("monitors", host.list(&format!("{folder}/mon_groups")).len())];
    for (what, count) in counted.iter().filter(|(_, count)| *count > 0) {
        text += &format!(" {what}={count}");
    }
    Ok(format!("{text} {}", schemata(host, &folder)?))
}

/// Tasks that were put into a group one by one.
pub fn tasks(host: &Host, folder: &str) -> io::Result<usize> {
    Ok(host.read(&format!("{folder}/tasks")).map_err(of_read)?.lines().count())
}

fn of_read(error: ReadError) -> io::Error {
    match error {
        ReadError::Absent { .. } => Errno::NOENT.into(),
        ReadError::Denied { source, .. } | ReadError::Io { source, .. } => source,
        ReadError::NotText { .. } => io::ErrorKind::InvalidData.into(),
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "plays the kernel")]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &str)]) -> (tempfile::TempDir, Host) {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("sys/fs/resctrl")).unwrap();
        for (path, text) in files {
            let path = root.path().join("sys/fs/resctrl").join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let host = Host::open(root.path()).unwrap();
        (root, host)
    }

    #[test]
    fn a_group_is_one_text() {
        let (_root, host) = tree(&[
            ("schemata", "    MB:0=2048;1=  16\n    L3:0=7f0;1=7ff\n"),
            ("info/L3/cbm_mask", "7ff\n"),
            ("planish-a/schemata", "    MB:0= 100\n    L3:0=00f\n"),
            ("planish-a/cpus_list", "1,5\n"),
            ("planish-a/mode", "exclusive\n"),
            ("planish-a/tasks", ""),
            ("theirs/mode", "shareable\n"),
            ("planish-b/schemata", "L3:0=7ff\n"),
            ("planish-b/cpus_list", "\n"),
            ("planish-b/mode", "shareable\n"),
            ("planish-b/tasks", "17\n18\n"),
            ("planish-b/mon_groups/x/tasks", ""),
        ]);
        assert_eq!(schemata(&host, MOUNT).unwrap(), "MB:0=2048;1=16 L3:0=7f0;1=7ff");
        assert_eq!(group(&host, "planish-a").unwrap(), "cpus=1,5 mode=exclusive MB:0=100 L3:0=00f");
        assert_eq!(group(&host, "planish-b").unwrap(), "cpus= mode=shareable tasks=2 monitors=1 L3:0=7ff");
        assert_eq!(group(&host, "planish-c").unwrap(), "none");
        let mut all = groups(&host);
        all.sort();
        assert_eq!(all, ["planish-a", "planish-b", "theirs"]);
    }

    #[test]
    fn without_a_mount_there_is_nothing() {
        let (_root, host) = tree(&[]);
        assert!(!is_there(&host));
        assert_eq!(Errno::from_io_error(&group(&host, "planish-a").unwrap_err()), Some(Errno::NOENT));
    }

    #[test]
    fn only_groups_of_ours_have_a_place() {
        assert_eq!(group_at("/planish/resctrl/groups/planish-a@1.b"), Some("planish-a@1.b"));
        for other in ["theirs", "planish-", "planish-a/b", "planish-..%2f", ""] {
            assert_eq!(group_at(&format!("{GROUPS}/{other}")), None, "{other}");
        }
        assert_eq!(group_at("/planish/resctrl/default"), None);
    }
}
