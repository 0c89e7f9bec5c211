//! Disks by the names of their devices. A text calls one by what it has in `/dev`, where links of udev stand beside the
//! names of the kernel, and only the host tells which disk a link is of. At the boot to come it may be of another one,
//! so that no link is followed here: who writes a disk by one *may* write any disk that can have such a name.

use std::borrow::Cow;

use planish_model::place;

use super::Look;

/// The folder of disks by the numbers of their devices. `blockdev` is told as a writer of it by names in `/dev`, with a
/// `!` for each `/` of them (`planish-formats`).
const FOLDER: &str = "/sys/dev/block/";

/// Disks of device-mapper (LVM, multipath, LUKS), and arrays, by the names of the kernel.
const MAPPED: &str = "dm-*";
const ARRAYS: &str = "md*";

/// Folders in `/dev` with names of any disk: of udev, of drivers, and of rules that people write for databases. Every
/// other one that has such a name in it is that of a group of volumes (LVM).
const OF_ANY: [&str; 11] =
    ["asm", "block", "cciss", "disk", "etherd", "ida", "loop", "oracle", "oracleasm", "raw", "rd"];

/// What a path means whose disk is called by the name of its device.
pub(super) struct Meant<'p> {
    /// The same path, or the pattern of all disks that can have the name.
    pub(super) path: Cow<'p, str>,
    /// Whether all disks of the path are meant; else it is one of them, or none.
    pub(super) is_told: bool,
}

/// What a path means on a host. One that is in no folder of devices says it itself, as does one by numbers.
pub(super) fn meant<'p>(look: &Look<'_>, path: &'p str) -> Meant<'p> {
    let Some((name, file)) = of_device(path).filter(|(name, _)| !is_here(look, name) && !is_number(name))
    else {
        return Meant { path: Cow::Borrowed(path), is_told: true };
    };
    // Each disk of device-mapper has a name there.
    let is_told = name == "mapper!*";
    Meant { path: Cow::Owned(format!("{FOLDER}{}/{file}", kind(name))), is_told }
}

/// Whether a path calls its disk by numbers, or by a pattern of them: whose they are only the host tells.
pub(super) fn is_by_numbers(look: &Look<'_>, path: &str) -> bool {
    of_device(path).is_some_and(|(name, _)| !is_here(look, name) && is_number(name))
}

/// The name of a disk in the folder of devices, and the rest behind it.
fn of_device(path: &str) -> Option<(&str, &str)> {
    path.strip_prefix(FOLDER)?.split_once('/')
}

/// Whether a disk here has the name by the kernel, or a pattern fits one.
fn is_here(look: &Look<'_>, name: &str) -> bool {
    look.near.list("/sys/block").iter().any(|disk| place::matches(name, disk))
}

/// Whether a name is that of numbers (`8:0`), or a pattern that begins like them. No kernel calls a disk so.
fn is_number(name: &str) -> bool {
    let begin = name.trim_start_matches(['[', '!', '^', '*', '?']);
    begin.starts_with(|c: char| c.is_ascii_digit() || c == ':') && !begin.contains('!')
}

/// The disks that can have a name in `/dev` which none has here, as a pattern of the names of the kernel.
fn kind(name: &str) -> &'static str {
    let is_array = |node: &str| {
        let rest = node.strip_prefix("md");
        rest.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit() || "_*?[".contains(c)))
    };
    // What is in brackets is of one name.
    let name = name.replace("[!", "[^");
    match name.split('!').collect::<Vec<_>>().as_slice() {
        ["mapper", ..] => MAPPED,
        ["md", ..] => ARRAYS,
        ["disk", "by-id", link] if link.starts_with("dm-") => MAPPED,
        ["disk", "by-id", link] if link.starts_with("md-") => ARRAYS,
        [node] if node.starts_with("dm-") => MAPPED,
        [node] if is_array(node) => ARRAYS,
        [folder, _] if !OF_ANY.iter().any(|any| place::matches(folder, any)) => MAPPED,
        _ => "*",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_a_volume_or_an_array_is_that_of_no_other_disk() {
        for (name, disks) in [
            ("mapper!vg-data", MAPPED),
            ("mapper!mpath*", MAPPED),
            ("vg!data", MAPPED),
            ("vg_[!a]!*", MAPPED),
            ("dm-7", MAPPED),
            ("disk!by-id!dm-name-vg-data", MAPPED),
            ("md!data", ARRAYS),
            ("md127", ARRAYS),
            ("md_d0", ARRAYS),
            ("disk!by-id!md-uuid-1:2:3", ARRAYS),
            ("mdata", "*"),
            ("sdf", "*"),
            ("sd[!a]", "*"),
            ("disk!by-id!nvme-X_1", "*"),
            ("disk!by-id!*", "*"),
            ("disk!by-path!pci-0000:00:17.0-ata-1", "*"),
            ("cciss!c0d1", "*"),
            ("oracleasm!disk1", "*"),
            // The folder may be any, too, and a group of volumes has no folders in it.
            ("*!data", "*"),
            ("vx!dsk!data", "*"),
        ] {
            assert_eq!(kind(name), disks, "{name}");
        }
    }

    #[test]
    fn numbers_of_a_disk_are_no_name() {
        for name in ["8:0", "259*", "[89]*", "*:0", "[!8]*"] {
            assert!(is_number(name), "{name}");
        }
        for name in ["sdf", "?db", "[sv]db", "3ware!data", "sd[!0]"] {
            assert!(!is_number(name), "{name}");
        }
    }
}
