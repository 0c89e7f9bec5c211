//! Options of mounts in the words of `mount(8)`, which scripts and tables use alike.
//!
//! A mount has no file for them: their places are below [`MOUNTS`], such as `/planish/mounts/dev-shm/size`.

use crate::place::{MOUNTS, mount_point};
use crate::quoted;

/// The words by which `mount -o remount` sets when a read writes its time.
const TIMES: [&str; 3] = ["relatime", "noatime", "strictatime"];

/// The knob that an option of a mount sets, with its value: `noatime`, `size=50%`, `huge=advise`.
#[must_use]
pub fn setting(option: &str) -> Option<(&'static str, &str)> {
    if TIMES.contains(&option) {
        return Some(("mount.atime", option));
    }
    match option.split_once('=')? {
        ("size", size) => Some(("tmpfs.size", size)),
        ("huge", word) => Some(("tmpfs.huge", word)),
        _ => None,
    }
}

/// Whether a place, or the pattern of some, is an option of mounts.
#[must_use]
pub fn is_option(place: &str) -> bool {
    place.starts_with(MOUNTS)
}

/// The line of a script that sets an option of one mount, where that is mounted. What it is mounted with stays, and not
/// what /etc/fstab says: a file system that became read-only by an error must not become writable by it. `None` for
/// another place, and for a pattern: which mounts it means only the table of a machine tells.
#[must_use]
pub fn line(place: &str, value: &str) -> Option<String> {
    let (_, name) = place.rsplit_once('/')?;
    let point = mount_point(place)?;
    let option = match name {
        "atime" => value.to_owned(),
        "size" | "huge" => format!("{name}={value}"),
        _ => return None,
    };
    let (point, option) = (quoted(&point), quoted(&format!("remount,{option}")));
    Some(format!("! mountpoint -q {point} || mount --options-source mtab -o {option} {point} || failed=1\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Catalogue, KnobId};

    #[test]
    fn every_option_is_a_value_of_its_knob_and_a_line_sets_it() {
        let catalogue = Catalogue::embedded().expect("sound");
        for option in ["relatime", "noatime", "strictatime", "size=50%", "size=1073741824", "huge=advise"] {
            let (id, value) = setting(option).expect("an option");
            let knob = catalogue.knob(&KnobId::new(id)).expect("a row");
            knob.validate(value).expect("a value of it");
            let place = knob.path.replace("{mount}", "dev-shm");
            let told = line(&place, value).expect("a line");
            assert!(told.contains(&format!("remount,{option}")), "{told}");
        }
        for other in ["rw", "nosuid", "uid=7", "nodiratime"] {
            assert_eq!(setting(other), None, "{other}");
        }
        for knob in catalogue.knobs().filter(|knob| is_option(&knob.path)) {
            assert!(line(&knob.path.replace("{mount}", "-"), "1").is_some(), "{}", knob.id);
        }
    }

    #[test]
    fn a_path_with_blanks_and_quotes_is_one_word() {
        let told = line("/planish/mounts/data-a\\x20\\x27b/atime", "noatime").expect("a line");
        let path = r"'/data/a '\''b'";
        assert_eq!(
            told,
            format!(
                "! mountpoint -q {path} || mount --options-source mtab -o remount,noatime {path} || failed=1\n"
            )
        );
        assert_eq!(line("/planish/mounts/*/atime", "noatime"), None);
        assert_eq!(line("/sys/block/sda/queue/scheduler", "none"), None);
    }
}
