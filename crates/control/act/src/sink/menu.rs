//! The one program of others that is run: the one that makes a boot loader's menu.
//!
//! It gets another file to write than the menu, which then takes the menu's place by one rename. Left to itself it may
//! empty the menu and fill it again (`cat grub.cfg.new > grub.cfg` in GRUB 2.06), and a power cut between the two can
//! leave a machine that does not come up.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use planish_model::Generator;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::edit::{beside, take_place};
use super::{remove, sync_folder};
use crate::error::{Operation, SinkError};

/// A menu is made in seconds; one that looks for other systems on slow disks takes minutes.
const PATIENCE: Duration = Duration::from_secs(600);
/// How long the next of the last words of a program that has ended are waited for.
const LAST_WORDS: Duration = Duration::from_millis(500);
/// Folders that hold a generator. The path of whoever called us is not asked.
const PROGRAMS: &str = "/usr/sbin:/usr/bin:/sbin:/bin";

/// Held by the generator that runs: see [`turn`].
const TURN: &str = "/run/planish-generator.lock";

/// Runs the program that makes a loader's menu, and brings the menu to the disk: the program leaves that to chance, and
/// what an apply says is done must be there after a power cut. After an error the old menu is still there.
pub(crate) fn generate(generator: Generator) -> Result<(), SinkError> {
    let failed = |error| SinkError::new(Operation::Generate, &generator.line(), error);
    let program = PROGRAMS.split(':').map(|folder| Path::new(folder).join(generator.program()));
    let program = program.into_iter().find(|program| program.exists());
    let program = program.ok_or_else(|| failed(io::Error::from(io::ErrorKind::NotFound)))?;
    let made = || -> io::Result<()> {
        let turn = turn(Path::new(TURN))?;
        make(&program, generator.arguments(), Path::new(generator.output()), turn)
    };
    made().map_err(failed)
}

/// Runs a program whose arguments may name the menu, and puts what it makes in the menu's place.
fn make(program: &Path, arguments: &[&str], menu: &Path, turn: File) -> io::Result<()> {
    // The menu may be a link, and the rename must not take the link's place.
    let menu = fs::canonicalize(menu).unwrap_or_else(|_| menu.to_owned());
    let fresh = beside(&menu);
    // What a kill left. The second one is what the program itself writes into first.
    let scraps = [fresh.clone(), named_after(&fresh)];
    scraps.iter().try_for_each(|scrap| remove(scrap))?;
    let mut command = Command::new(program);
    // Of two outputs the last one counts, also behind the one that `update-grub` gives by itself.
    command.args(arguments).arg("-o").arg(&fresh);
    command.env_clear().envs([("PATH", PROGRAMS), ("LC_ALL", "C")]);
    command.stdin(turn).stdout(Stdio::null()).stderr(Stdio::piped());
    // A Ctrl-C goes to every process of the terminal's group; that which is half way must not hear it, as we do not.
    command.process_group(0);
    let made = ended(command.spawn()?).and_then(|()| name(&fresh, &menu));
    if made.is_err() {
        // The first error is the one to tell.
        let _ = scraps.iter().try_for_each(|scrap| remove(scrap));
    }
    made
}

/// Where `grub-mkconfig -o FILE` collects its output.
pub(super) fn named_after(fresh: &Path) -> PathBuf {
    let mut name = fresh.as_os_str().to_owned();
    name.push(".new");
    PathBuf::from(name)
}

/// Gives a new menu the name of the old one. A program that made none has written where it always does.
fn name(fresh: &Path, menu: &Path) -> io::Result<()> {
    let file = match File::open(fresh) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return sync(menu),
        opened => opened?,
    };
    let made = file.metadata()?;
    if made.len() == 0 {
        return Err(io::Error::other("it made an empty menu"));
    }
    let old = match fs::metadata(menu) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => made,
        old => old?,
    };
    // GRUB reads a file system past its journal, and finds the old menu under the name until the folder is written in
    // its place: the blocks of the old one stay taken as long as it is open, and the whole file system is written out.
    let _old = File::open(menu);
    take_place(&file, fresh, menu, &old)?;
    Ok(rustix::fs::syncfs(&file)?)
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

/// Whether a generator runs that a planish started; where that cannot be told, it may.
pub(super) fn is_at_work() -> bool {
    match OpenOptions::new().read(true).custom_flags(rustix::fs::OFlags::NOFOLLOW.bits() as i32).open(TURN) {
        Err(error) => error.kind() != io::ErrorKind::NotFound,
        Ok(file) => flock(&file, FlockOperation::NonBlockingLockShared).is_err(),
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
    let (tell, told) = mpsc::channel::<String>();
    std::thread::spawn(move || {
        let mut bytes = [0_u8; 4096];
        while let Ok(length @ 1..) = errors.read(&mut bytes) {
            // Read on also where nobody listens any more: a full pipe would stop the program.
            let _ = tell.send(String::from_utf8_lossy(&bytes[..length]).into_owned());
        }
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
    // What it started may live on with its end of the pipe: then its words are those that came by now.
    let mut words = String::new();
    while let Ok(more) = told.recv_timeout(LAST_WORDS) {
        words += &more;
    }
    let last = words.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
    Err(io::Error::other(format!("{status}: {last}")))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    use super::*;

    /// As grub-mkconfig: the last `-o` counts, and its file is emptied before it is filled.
    const OPTIONS: &str = "while [ $# -gt 0 ]; do [ $1 = -o ] && out=$2; shift; done; ";

    /// A folder with a menu, and what came of a script that is to make it anew.
    #[expect(clippy::disallowed_methods, reason = "plays the menu that is there")]
    fn remade(script: &str) -> (tempfile::TempDir, io::Result<()>) {
        let root = tempfile::tempdir().expect("a folder");
        let menu = root.path().join("grub.cfg");
        fs::write(&menu, "old").expect("ours");
        fs::set_permissions(&menu, fs::Permissions::from_mode(0o444)).expect("ours");
        fs::write(beside(&menu), "half of one that was killed").expect("ours");
        let script = format!("{OPTIONS}menu={}; {script}", menu.display());
        let arguments = ["-c", &script, "update-grub", "-o", menu.to_str().expect("text")];
        let made = make(Path::new("/bin/sh"), &arguments, &menu, File::open("/dev/null").expect("there"));
        (root, made)
    }

    #[expect(clippy::disallowed_methods, reason = "looks at what was made")]
    fn names(root: &tempfile::TempDir) -> Vec<String> {
        let names = fs::read_dir(root.path()).expect("ours").map(|entry| entry.expect("ours").file_name());
        names.map(|name| name.to_string_lossy().into_owned()).collect()
    }

    #[expect(clippy::disallowed_methods, reason = "looks at what was made")]
    fn text(root: &tempfile::TempDir) -> String {
        fs::read_to_string(root.path().join("grub.cfg")).expect("there")
    }

    #[test]
    fn a_menu_is_whole_at_every_moment() {
        // The old one is there until the program has ended, so that a power cut finds one of the two.
        let (root, made) = remade("echo new >$out; [ $(cat $menu) = old ] || exit 1");
        made.expect("the old menu was there all the time");
        assert_eq!((text(&root).as_str(), names(&root).len()), ("new\n", 1));
        let mode = fs::metadata(root.path().join("grub.cfg")).expect("there").mode() & 0o7777;
        assert_eq!(mode, 0o444, "that of the old one");
    }

    #[test]
    fn a_program_that_fails_leaves_the_old_menu_and_nothing_else() {
        for script in ["echo half >$out; echo half >$out.new; exit 1", ": >$out"] {
            let (root, made) = remade(script);
            assert!(made.is_err(), "{script}");
            assert_eq!(
                (text(&root).as_str(), names(&root)),
                ("old", vec!["grub.cfg".to_owned()]),
                "{script}"
            );
        }
    }

    #[test]
    fn a_program_that_knows_one_output_only_is_taken_as_it_is() {
        let (root, made) = remade("rm $menu; echo own >$menu");
        made.expect("it wrote where it always does");
        assert_eq!((text(&root).as_str(), names(&root).len()), ("own\n", 1));
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "plays the menu that is there")]
    fn a_link_to_a_menu_stays_one() {
        let root = tempfile::tempdir().expect("a folder");
        let (menu, link) = (root.path().join("grub.cfg"), root.path().join("link"));
        fs::write(&menu, "old").expect("ours");
        std::os::unix::fs::symlink("grub.cfg", &link).expect("ours");
        let script = format!("{OPTIONS} echo new >$out");
        let null = File::open("/dev/null").expect("there");
        make(Path::new("/bin/sh"), &["-c", &script, "sh"], &link, null).expect("made");
        assert!(fs::symlink_metadata(&link).expect("there").is_symlink());
        assert_eq!(text(&root), "new\n");
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
        // What it left behind keeps its end of the pipe, until this test lets go of the other pipe.
        let (hold, release) = io::pipe().expect("a pipe");
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "exec 3<&0; cat <&3 & echo 'no room in /boot' >&2; exit 4"]);
        let child = command.stdin(hold).stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
        drop(command);
        let error = ended(child.expect("a shell")).expect_err("it failed");
        assert_eq!(error.to_string(), "exit status: 4: no room in /boot");
        drop(release);
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
