//! Files of others that are changed: those of boot loaders.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::sync_folder;
use crate::error::{Operation, Refusal, SinkError};

/// Refuses every file that is none of a boot loader's: a journal names files, and root writes them.
pub(crate) fn in_bounds(path: &str) -> Result<(), SinkError> {
    let normal = !path.split('/').any(|part| part == ".." || part == ".");
    let entry = path.contains("/loader/entries/") && path.ends_with(".conf");
    let boot = ["/boot/", "/efi/"].iter().any(|folder| path.starts_with(folder));
    let known = ["/etc/default/grub", "/etc/kernel/cmdline", "/usr/lib/kernel/cmdline"].contains(&path);
    let of_grub = path.ends_with("/grubenv") || path.ends_with("/custom.cfg");
    if normal && (known || (boot && (entry || of_grub))) {
        return Ok(());
    }
    Err(SinkError {
        operation: Operation::Replace,
        place: path.to_owned(),
        refusal: Refusal::OutOfBounds,
        source: io::Error::other("only files of boot loaders are changed"),
    })
}

/// Why what is there is not written: it was a file when its place was found out.
fn not_plain(metadata: &Metadata) -> &'static str {
    if metadata.is_symlink() {
        return "it became a link, and what it leads to may be of another system; put a file in its place, with that \
                content (cp --remove-destination), and then once more";
    }
    "it is no plain file"
}

/// Writes GRUB's environment block where it lies, as GRUB itself does: its blocks on the disk stay.
///
/// GRUB knows nothing of a file system's journal. After a power cut it may find the folder as it was before a rename,
/// and write into the blocks of the old file (`save_env`), which are somebody else's by then. Written in place, there
/// is no other file to be found. The write is one, of two sectors: a kill cannot come between them, a power cut can,
/// and the next command knows such a mixture by what it is made of ([`crate::boot::mend`]).
fn edit_in_place(real: &Path, content: &[u8]) -> io::Result<()> {
    let metadata = fs::symlink_metadata(real)?;
    if !metadata.is_file() {
        return Err(io::Error::other(not_plain(&metadata)));
    }
    if metadata.len() != content.len() as u64 {
        return Err(io::Error::other("its size must stay: GRUB cannot make it longer"));
    }
    let mut file = OpenOptions::new().write(true).open(real)?;
    let written = file.write(content)?;
    if written != content.len() {
        return Err(io::ErrorKind::WriteZero.into());
    }
    file.sync_all()
}

/// Replaces the content of a file that is there, and keeps its mode, its owner and its label: a new file beside it,
/// synced, then one rename. A file system without owners or labels keeps none. GRUB's environment block is the one that
/// is written where it lies.
pub(crate) fn edit(real: &Path, path: &str, content: &[u8]) -> Result<(), SinkError> {
    in_bounds(path)?;
    if path.ends_with("/grubenv") {
        return edit_in_place(real, content).map_err(|error| SinkError::new(Operation::Replace, path, error));
    }
    let fresh = beside(real);
    let edited = || -> io::Result<()> {
        let metadata = fs::symlink_metadata(real)?;
        if !metadata.is_file() {
            return Err(io::Error::other(not_plain(&metadata)));
        }
        let _ = fs::remove_file(&fresh);
        let mut file = OpenOptions::new().write(true).create_new(true).open(&fresh)?;
        file.write_all(content)?;
        take_place(&file, &fresh, real, &metadata)
    };
    edited().map_err(|error| {
        let _ = fs::remove_file(&fresh);
        SinkError::new(Operation::Replace, path, error)
    })
}

/// Writes out the file system that a boot loader reads, where a file of it was changed: GRUB reads past its journal,
/// and finds an old file under a new name, or none, until the folder lies in its place.
pub(crate) fn write_out(path: &str) -> Result<(), SinkError> {
    if !["/boot/", "/efi/"].iter().any(|folder| path.starts_with(folder)) {
        return Ok(());
    }
    let folder = Path::new(path).parent().unwrap_or(Path::new("/boot"));
    let written = File::open(folder).and_then(|folder| Ok(rustix::fs::syncfs(&folder)?));
    written.map_err(|error| SinkError::new(Operation::Replace, path, error))
}

/// Puts a new file in the place of an old one, by one rename, with the mode, owner and label of the old one. It is on
/// the disk before it is there.
pub(super) fn take_place(file: &File, fresh: &Path, real: &Path, old: &Metadata) -> io::Result<()> {
    let new = file.metadata()?;
    if (new.uid(), new.gid()) != (old.uid(), old.gid()) {
        std::os::unix::fs::fchown(file, Some(old.uid()), Some(old.gid()))?;
    }
    file.set_permissions(fs::Permissions::from_mode(old.mode() & 0o7777))?;
    keep_label(real, file);
    file.sync_all()?;
    fs::rename(fresh, real)?;
    real.parent().map_or(Ok(()), sync_folder)
}

/// The name of the new file. It does not end in `.conf`, so that no loader takes what a kill left for an entry.
pub(super) fn beside(real: &Path) -> PathBuf {
    let name = real.file_name().unwrap_or_default().to_string_lossy();
    real.with_file_name(format!(".{name}.planish-new"))
}

/// Removes what a kill left beside a file between the beginning of a new one and its rename: by the names that a new
/// one has here, also where the program that makes a menu collects it. Beside a file of others only names with
/// `planish` in them go: `.NAME.new` may be anybody's there. The host-wide lock keeps them to one writer.
pub(crate) fn sweep(real: &Path, path: &str, is_edited: bool) -> Result<(), SinkError> {
    let fresh = beside(real);
    let scraps =
        if is_edited { vec![super::menu::named_after(&fresh), fresh] } else { vec![own_beside(real)] };
    let swept = || -> io::Result<()> {
        let mut is_there = false;
        for scrap in &scraps {
            // A folder of such a name is nobody's leaving.
            if fs::symlink_metadata(scrap).is_ok_and(|found| !found.is_dir()) {
                fs::remove_file(scrap)?;
                is_there = true;
            }
        }
        if is_there { real.parent().map_or(Ok(()), sync_folder) } else { Ok(()) }
    };
    swept().map_err(|error| SinkError::new(Operation::Replace, path, error))
}

/// The name of the new file where one of ours is replaced.
pub(super) fn own_beside(real: &Path) -> PathBuf {
    let name = real.file_name().unwrap_or_default().to_string_lossy();
    real.with_file_name(format!(".{name}.new"))
}

/// Copies the label of SELinux, where there is one: a new file gets that of its folder, which is nearly always it.
fn keep_label(real: &Path, file: &File) {
    let mut label = [0_u8; 256];
    if let Ok(length) = rustix::fs::getxattr(real, "security.selinux", &mut label[..]) {
        let _ = rustix::fs::fsetxattr(
            file,
            "security.selinux",
            &label[..length],
            rustix::fs::XattrFlags::empty(),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_of_boot_loaders_are_changed() {
        for path in [
            "/etc/default/grub",
            "/etc/kernel/cmdline",
            "/usr/lib/kernel/cmdline",
            "/boot/grub2/grubenv",
            "/boot/efi/EFI/rocky/grubenv",
            "/boot/grub/custom.cfg",
            "/boot/loader/entries/1-6.12.conf",
            "/efi/loader/entries/arch.conf",
        ] {
            assert!(in_bounds(path).is_ok(), "{path}");
        }
        for path in [
            "/etc/passwd",
            "/etc/default/grub.d/../../passwd",
            "/boot/loader/entries/../../vmlinuz.conf",
            "/boot/grub/grub.cfg",
            "/etc/loader/entries/x.conf",
            "boot/loader/entries/x.conf",
            "/boot/vmlinuz",
        ] {
            assert_eq!(in_bounds(path).expect_err(path).refusal, Refusal::OutOfBounds);
        }
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "plays the file that is changed")]
    fn mode_stays_and_a_kill_is_no_hindrance() {
        let root = tempfile::tempdir().expect("a folder");
        let (real, path) = (root.path().join("custom.cfg"), "/boot/grub2/custom.cfg");
        fs::write(&real, "before").expect("ours");
        fs::set_permissions(&real, fs::Permissions::from_mode(0o600)).expect("ours");
        fs::write(beside(&real), "half a fi").expect("ours");
        edit(&real, path, b"after").expect("it is there");
        assert_eq!(fs::read_to_string(&real).expect("ours"), "after");
        assert_eq!(fs::metadata(&real).expect("ours").mode() & 0o7777, 0o600);
        assert!(!beside(&real).exists());
        let gone = edit(&root.path().join("none"), path, b"x").expect_err("never made");
        assert_eq!(gone.refusal, Refusal::Vanished);
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "plays the file that is changed")]
    fn a_block_of_grub_stays_the_file_that_it_is_and_as_long() {
        let root = tempfile::tempdir().expect("a folder");
        let (real, path) = (root.path().join("grubenv"), "/boot/grub2/grubenv");
        let text =
            |last: &str| format!("# GRUB Environment Block\n{last}\n{}", "#".repeat(1024 - 26 - last.len()));
        fs::write(&real, text("a=1")).expect("ours");
        let before = fs::metadata(&real).expect("ours").ino();
        edit(&real, path, text("next_entry=planish-trial").as_bytes()).expect("it is there");
        assert_eq!(fs::read_to_string(&real).expect("ours"), text("next_entry=planish-trial"));
        assert_eq!(fs::metadata(&real).expect("ours").ino(), before, "GRUB may know it by its blocks");
        for wrong in ["", "short", &(text("a=1") + "#")] {
            let error = edit(&real, path, wrong.as_bytes()).expect_err("another size");
            assert!(error.in_full().contains("size must stay"), "{}", error.in_full());
        }
        assert_eq!(fs::read_to_string(&real).expect("ours"), text("next_entry=planish-trial"));
        let gone = edit(&root.path().join("none"), path, b"x").expect_err("never made");
        assert_eq!(gone.refusal, Refusal::Vanished);
        std::os::unix::fs::symlink("grubenv", root.path().join("link")).expect("ours");
        assert!(
            edit(&root.path().join("link"), path, text("a=1").as_bytes()).is_err(),
            "a link leads elsewhere"
        );
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "plays what a kill left")]
    fn what_a_kill_left_beside_a_file_is_swept_and_nothing_else() {
        let (own, edited) =
            (vec![".grub.cfg.new"], vec![".grub.cfg.planish-new", ".grub.cfg.planish-new.new"]);
        for (is_edited, scraps) in [(false, own), (true, edited)] {
            let root = tempfile::tempdir().expect("a folder");
            let real = root.path().join("grub.cfg");
            let mut names = vec!["grub.cfg", ".other.new", "grub.cfg.new", ".grub.cfg.new", ".grub.cfg.swp"];
            names.extend([".grub.cfg.planish-new", ".grub.cfg.planish-new.new"]);
            names.iter().for_each(|name| fs::write(root.path().join(name), "x").expect("ours"));
            sweep(&real, "/boot/grub/grub.cfg", is_edited).expect("ours");
            sweep(&real, "/boot/grub/grub.cfg", is_edited).expect("nothing is left to be swept");
            for name in names {
                assert_eq!(root.path().join(name).exists(), !scraps.contains(&name), "{name}, {is_edited}");
            }
            sweep(&root.path().join("none/at/all"), "/boot/x", is_edited).expect("no folder holds nothing");
        }
    }
}
