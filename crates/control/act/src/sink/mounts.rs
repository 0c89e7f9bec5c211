//! Options of mounts, which have no files: changed by calls that name nothing but the one option.

use std::io;

use planish_host::mounts::{self, Mount, Setting, Table, setting_at};
use planish_sys::mount::AccessTime;
use rustix::io::Errno;

/// The text of an option of a mount; `None` for another place.
pub(super) fn read(place: &str) -> Option<io::Result<String>> {
    let (name, setting) = setting_at(place)?;
    Some(not_of_a_copy(setting).and_then(|()| Table::live()?.read(name, setting)))
}

/// Sets an option of a mount; `None` for another place.
pub(super) fn write(place: &str, value: &str) -> Option<io::Result<()>> {
    let (name, setting) = setting_at(place)?;
    Some(not_of_a_copy(setting).and_then(|()| set(&Table::live()?, name, setting, value.trim())))
}

/// Refuses the access time of a copy of a mount: an undo that looked at it would take the host's for put back.
fn not_of_a_copy(setting: Setting) -> io::Result<()> {
    if setting != Setting::AccessTime || !mounts::are_apart() {
        return Ok(());
    }
    let why = "planish runs with mounts of its own here, which are copies; as root: nsenter --target 1 --mount \
               planish ...";
    Err(io::Error::new(io::ErrorKind::PermissionDenied, why))
}

fn set(table: &Table, name: &str, setting: Setting, value: &str) -> io::Result<()> {
    let has_swap = table.get(name).is_none_or(Mount::has_swap);
    match setting {
        Setting::AccessTime => {
            let time = AccessTime::by_word(value).ok_or(Errno::INVAL)?;
            table.open(name, setting)?.set_access_time(time)
        }
        Setting::Size => {
            // The kernel takes 0 for no limit, which nobody could take back: it refuses one for what has none.
            let bytes = value.parse::<u64>().ok().filter(|bytes| *bytes > 0).ok_or(Errno::INVAL)?;
            let mount = table.open(name, setting)?;
            let used = mount.room()?.used;
            if bytes < used {
                let why =
                    format!("files in it take {used} bytes: it cannot be smaller before some are removed");
                return Err(io::Error::new(io::ErrorKind::ResourceBusy, why));
            }
            mount.reconfigure("size", &bytes.to_string(), has_swap)
        }
        Setting::Huge => {
            let is_word = ["never", "always", "within_size", "advise"].contains(&value);
            let word = Some(value).filter(|_| is_word).ok_or(Errno::INVAL)?;
            table.open(name, setting)?.reconfigure("huge", word, has_swap)
        }
        Setting::SizeMin | Setting::SizeMax => Err(Errno::ACCESS.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_but_a_value_of_the_option_is_set() {
        // A mount that cannot be: nothing of this machine is set, whatever comes of it.
        let place = |file: &str| format!("/planish/mounts/planish-has-no-such-mount/{file}");
        for (file, value) in
            [("atime", "atime"), ("atime", "relatime,ro"), ("size", "0"), ("size", "50%"), ("huge", "deny")]
        {
            let error = write(&place(file), value).expect("an option").expect_err("no value");
            assert_eq!(Errno::from_io_error(&error), Some(Errno::INVAL), "{file} {value}");
        }
        for (file, value) in [("atime", "noatime"), ("size", "4096"), ("huge", "never")] {
            let error = write(&place(file), value).expect("an option").expect_err("no such mount");
            assert_eq!(error.kind(), io::ErrorKind::NotFound, "{file} {value}");
        }
        assert!(write("/proc/sys/vm/swappiness", "1").is_none() && read("/planish/mounts/-/other").is_none());
    }
}
