//! The one variable of the firmware that is written: which entry systemd-boot takes once.
//!
//! efivarfs: a file is four bytes of attributes and the data, written by one write; removing it removes the variable.
//! The kernel makes files of it immutable that were not known to be safe to remove
//! (`Documentation/filesystems/efivarfs.rst`). The data is UTF-16 with a zero behind it
//! (<https://systemd.io/BOOT_LOADER_INTERFACE>).

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::Path;

use rustix::fs::{IFlags, ioctl_getflags, ioctl_setflags};

use crate::error::{Operation, Refusal, SinkError};

/// The variable.
pub(crate) const ONCE_VARIABLE: &str =
    "/sys/firmware/efi/efivars/LoaderEntryOneShot-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f";
/// Kept when the machine is off; seen by what boots and by what runs.
const ATTRIBUTES: u32 = 1 | 2 | 4;

/// Refuses every other variable: a journal names it, and a wrong one can keep a machine from starting at all.
fn in_bounds(path: &str) -> Result<(), SinkError> {
    if path == ONCE_VARIABLE {
        return Ok(());
    }
    Err(SinkError {
        operation: Operation::Write,
        place: path.to_owned(),
        refusal: Refusal::OutOfBounds,
        source: io::Error::other("of the firmware's variables only that for one boot is written"),
    })
}

/// What a variable says; `None` where it is not set.
pub(crate) fn read(real: &Path, path: &str) -> Result<Option<String>, SinkError> {
    let mut bytes = Vec::new();
    let read = File::open(real).and_then(|mut file| file.read_to_end(&mut bytes));
    match read {
        Ok(_) => Ok(Some(text(bytes.get(4..).unwrap_or_default())).filter(|text| !text.is_empty())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(SinkError::new(Operation::Read, path, error)),
    }
}

fn text(data: &[u8]) -> String {
    let units = data.chunks_exact(2).map(|unit| u16::from_le_bytes([unit[0], unit[1]]));
    let units: Vec<u16> = units.take_while(|unit| *unit != 0).collect();
    String::from_utf16_lossy(&units)
}

/// Sets a variable, or removes it; one that is not there is removed already.
pub(crate) fn set(real: &Path, path: &str, name: Option<&str>) -> Result<(), SinkError> {
    in_bounds(path)?;
    let set = || match name {
        Some(name) => {
            let mut bytes = ATTRIBUTES.to_le_bytes().to_vec();
            bytes.extend(name.encode_utf16().chain([0]).flat_map(u16::to_le_bytes));
            let mut file = OpenOptions::new().write(true).create(true).truncate(false).open(real)?;
            // One write: each is a whole value for the firmware.
            let failed = match file.write(&bytes) {
                Ok(written) if written == bytes.len() => return Ok(()),
                Ok(_) => io::Error::from(io::ErrorKind::WriteZero),
                Err(error) => error,
            };
            // What the firmware refused stays behind as an empty file, which is no variable.
            if file.metadata().is_ok_and(|left| left.len() == 0) {
                let _ = fs::remove_file(real);
            }
            Err(failed)
        }
        None => {
            let file = match File::open(real) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
                opened => opened?,
            };
            // File systems without such flags have nothing to take off; whether the file goes is seen next.
            if let Ok(flags) = ioctl_getflags(&file) {
                let _ = ioctl_setflags(&file, flags - IFlags::IMMUTABLE);
            }
            fs::remove_file(real)
        }
    };
    set().map_err(|error| SinkError::new(Operation::Write, path, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "looks at what was written")]
    fn a_name_is_four_bytes_of_attributes_and_utf_16() {
        let root = tempfile::tempdir().expect("a folder");
        let real = root.path().join("variable");
        assert_eq!(read(&real, ONCE_VARIABLE).expect("none"), None);
        set(&real, ONCE_VARIABLE, Some("a.conf")).expect("ours");
        assert_eq!(fs::read(&real).expect("there"), b"\x07\0\0\0a\0.\0c\0o\0n\0f\0\0\0");
        assert_eq!(read(&real, ONCE_VARIABLE).expect("there").as_deref(), Some("a.conf"));
        set(&real, ONCE_VARIABLE, None).expect("ours");
        set(&real, ONCE_VARIABLE, None).expect("already gone is fine");
        assert!(!real.exists());
    }

    #[test]
    fn no_other_variable_is_written() {
        let root = tempfile::tempdir().expect("a folder");
        for path in [
            "/sys/firmware/efi/efivars/BootOrder-8be4df61-93ca-11d2-aa0d-00e098032b8c",
            "/sys/firmware/efi/efivars/LoaderEntryDefault-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f",
            "/etc/passwd",
        ] {
            let error = set(&root.path().join("x"), path, Some("a")).expect_err(path);
            assert_eq!(error.refusal, Refusal::OutOfBounds);
        }
    }
}
