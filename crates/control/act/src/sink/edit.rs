//! Files of others that are changed, and the one program that is run: those of boot loaders.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use planish_model::Generator;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::sync_folder;
use crate::error::{Operation, Refusal, SinkError};

/// A menu is made in seconds; one that looks for other systems on slow disks takes minutes.
const PATIENCE: Duration = Duration::from_secs(600);
/// Folders that hold a generator. The path of whoever called us is not asked.
const PROGRAMS: &str = "/usr/sbin:/usr/bin:/sbin:/bin";

/// Held by the generator that runs: see [`turn`].
const TURN: &str = "/run/planish-generator.lock";

/// Refuses every file that is none of a boot loader's: a journal names files, and root writes them.
pub(crate) fn in_bounds(path: &str) -> Result<(), SinkError> {
    let normal = !path.split('/').any(|part| part == ".." || part == ".");
    let entry = path.contains("/loader/entries/") && path.ends_with(".conf");
    let boot = ["/boot/", "/efi/"].iter().any(|folder| path.starts_with(folder));
    let known = ["/etc/default/grub", "/etc/kernel/cmdline"].contains(&path);
    if normal && (known || (boot && (entry || path.ends_with("/grubenv")))) {
        return Ok(());
    }
    Err(SinkError {
        operation: Operation::Replace,
        place: path.to_owned(),
        refusal: Refusal::OutOfBounds,
        source: io::Error::other("only files of boot loaders are changed"),
    })
}

/// Replaces the content of a file that is there, and keeps its mode, its owner and its label: a new file beside it,
/// synced, then one rename. A file system without owners or labels keeps none.
pub(crate) fn edit(real: &Path, path: &str, content: &str) -> Result<(), SinkError> {
    in_bounds(path)?;
    let fresh = beside(real);
    let edited = || -> io::Result<()> {
        let metadata = fs::symlink_metadata(real)?;
        if !metadata.is_file() {
            return Err(io::Error::other("it is no plain file"));
        }
        let _ = fs::remove_file(&fresh);
        let mut file = OpenOptions::new().write(true).create_new(true).open(&fresh)?;
        file.write_all(content.as_bytes())?;
        let new = file.metadata()?;
        if (new.uid(), new.gid()) != (metadata.uid(), metadata.gid()) {
            std::os::unix::fs::fchown(&file, Some(metadata.uid()), Some(metadata.gid()))?;
        }
        file.set_permissions(fs::Permissions::from_mode(metadata.mode() & 0o7777))?;
        keep_label(real, &file);
        file.sync_all()?;
        fs::rename(&fresh, real)?;
        real.parent().map_or(Ok(()), sync_folder)
    };
    edited().map_err(|error| {
        let _ = fs::remove_file(&fresh);
        SinkError::new(Operation::Replace, path, error)
    })
}

/// The name of the new file. It does not end in `.conf`, so that no loader takes what a kill left for an entry.
fn beside(real: &Path) -> PathBuf {
    let name = real.file_name().unwrap_or_default().to_string_lossy();
    real.with_file_name(format!(".{name}.planish-new"))
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

/// Runs the program that makes a loader's menu, and brings the menu to the disk: the program leaves that to chance, and
/// what an apply says is done must be there after a power cut.
pub(crate) fn generate(generator: Generator) -> Result<(), SinkError> {
    let failed = |error| SinkError::new(Operation::Generate, &generator.line(), error);
    let program = PROGRAMS.split(':').map(|folder| Path::new(folder).join(generator.program()));
    let program = program.into_iter().find(|program| program.exists());
    let program = program.ok_or_else(|| failed(io::Error::from(io::ErrorKind::NotFound)))?;
    let mut command = Command::new(program);
    command.args(generator.arguments()).env_clear().envs([("PATH", PROGRAMS), ("LC_ALL", "C")]);
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    // A Ctrl-C goes to every process of the terminal's group; that which is half way must not hear it, as we do not.
    command.process_group(0);
    let child = turn(Path::new(TURN)).and_then(|turn| command.stdin(turn).spawn());
    ended(child.map_err(failed)?).and_then(|()| sync(Path::new(generator.output()))).map_err(failed)
}

/// Waits until no generator runs that a planish started, and returns the right to start one. It is a lock on an open
/// file, which the program gets as its (empty) standard input, and so holds by itself: when we are killed it goes on,
/// and the undo that follows must not have its menu overwritten by it.
fn turn(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    let file = options.custom_flags(rustix::fs::OFlags::NOFOLLOW.bits() as i32).open(path)?;
    let begin = Instant::now();
    loop {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) if begin.elapsed() < PATIENCE => {
                std::thread::sleep(Duration::from_millis(50));
            }
            taken => return taken.map(|()| file).map_err(io::Error::from),
        }
    }
}

/// Brings a file that a program made to the disk, and its name. One that it did not make is told by who looks at it.
fn sync(path: &Path) -> io::Result<()> {
    match fs::canonicalize(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
        Ok(real) => {
            File::open(&real)?.sync_all()?;
            real.parent().map_or(Ok(()), sync_folder)
        }
    }
}

/// Waits for a program; one that fails is told by its last words, one that takes too long is ended.
fn ended(mut child: Child) -> io::Result<()> {
    let mut errors = child.stderr.take().expect("it was piped");
    let reader = std::thread::spawn(move || {
        let mut text = Vec::new();
        let _ = errors.read_to_end(&mut text);
        String::from_utf8_lossy(&text).into_owned()
    });
    let begin = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if begin.elapsed() > PATIENCE {
            child.kill()?;
            child.wait()?;
            return Err(io::Error::from(io::ErrorKind::TimedOut));
        }
        std::thread::sleep(Duration::from_millis(50));
    };
    if status.success() {
        return Ok(());
    }
    let words = reader.join().unwrap_or_default();
    let last = words.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
    Err(io::Error::other(format!("{status}: {last}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_of_boot_loaders_are_changed() {
        for path in [
            "/etc/default/grub",
            "/etc/kernel/cmdline",
            "/boot/grub2/grubenv",
            "/boot/efi/EFI/rocky/grubenv",
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
        let real = root.path().join("grubenv");
        fs::write(&real, "before").expect("ours");
        fs::set_permissions(&real, fs::Permissions::from_mode(0o600)).expect("ours");
        fs::write(beside(&real), "half a fi").expect("ours");
        edit(&real, "/boot/grub2/grubenv", "after").expect("it is there");
        assert_eq!(fs::read_to_string(&real).expect("ours"), "after");
        assert_eq!(fs::metadata(&real).expect("ours").mode() & 0o7777, 0o600);
        assert!(!beside(&real).exists());
        let gone = edit(&root.path().join("none"), "/boot/grub2/grubenv", "x").expect_err("never made");
        assert_eq!(gone.refusal, Refusal::Vanished);
    }

    #[test]
    fn a_program_that_fails_is_told_by_its_last_words() {
        let run = |script: &str| {
            let mut command = Command::new("/bin/sh");
            ended(command.args(["-c", script]).stderr(Stdio::piped()).spawn().expect("a shell"))
        };
        assert!(run("exit 0").is_ok());
        let error =
            run("echo first >&2; echo 'syntax error in grub.cfg.new' >&2; exit 3").expect_err("it failed");
        assert_eq!(error.to_string(), "exit status: 3: syntax error in grub.cfg.new");
    }

    #[test]
    fn a_generator_that_outlived_its_planish_is_waited_for() {
        let root = tempfile::tempdir().expect("a folder");
        let (lock, menu) = (root.path().join("lock"), root.path().join("grub.cfg"));
        let mut command = Command::new("/bin/sh");
        // Reads to the end of its input, too: a hook that does so must not hang.
        command.args(["-c", "cat; sleep 0.3; echo old >\"$1\"", "sh"]).arg(&menu);
        let mut orphan = command.stdin(turn(&lock).expect("free")).spawn().expect("a shell");
        // The child alone holds the lock from here on.
        drop(command);
        let _turn = turn(&lock).expect("its turn came");
        assert!(menu.exists(), "the menu of the other one was still to be written");
        assert!(orphan.wait().expect("ours").success());
        sync(&menu).expect("it is there");
        sync(&root.path().join("none")).expect("who looks at it tells that it was not made");
    }
}
