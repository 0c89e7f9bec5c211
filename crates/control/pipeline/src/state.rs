//! Where state and configuration lie, who runs us, and the user's own rows.
#![expect(clippy::disallowed_methods, reason = "reads the user's own files, not the host")]

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use planish_host::{Host, OpenError, in_root};
use planish_journal::{FileStorage, JournalError};
use planish_model::{Catalogue, CatalogueError};
use planish_sys::file;

use crate::error::PipelineError;
use crate::session::SessionOptions;

/// Folders of a session.
#[derive(Clone, Debug)]
pub(crate) struct Folders {
    /// Journal and proofs.
    pub state: PathBuf,
    /// Own knobs and profiles, the later ones winning. Below `root` where there is one.
    pub config: Vec<PathBuf>,
    /// A recorded host that the configuration is of.
    root: Option<PathBuf>,
    /// The state folder of a recorded host, where its lock is, and its journal without `--state`.
    recorded: Option<PathBuf>,
    /// The lock of the host, wherever the state is.
    pub lock: PathBuf,
    /// Held by a trial for as long as it may have values on the host, and never for a write.
    pub trial: PathBuf,
    /// The state folder of root, for an ordinary user of a live host: nobody else can have written it.
    pub of_root: Option<PathBuf>,
}

/// Where root keeps the journal of a live host.
pub(crate) const ROOT_STATE: &str = "/var/lib/planish";
/// Where the rows of a whole host are.
const ROOT_CONFIG: &str = "/etc/planish";

impl Folders {
    pub fn of(options: &SessionOptions) -> Result<Self, PipelineError> {
        let is_no_folder = |path: &&PathBuf| fs::metadata(path).is_ok_and(|found| !found.is_dir());
        if let Some(path) = options.state.as_ref().filter(is_no_folder) {
            return Err(PipelineError::NotAFolder { path: path.clone() });
        }
        let is_root = rustix::process::geteuid().is_root();
        let below = |root: &PathBuf| {
            let failed = |source| OpenError::Io { path: root.join("var/lib/planish"), source };
            in_root(root, ROOT_STATE).map_err(failed)
        };
        let recorded = options.root.as_ref().map(below).transpose()?;
        let lock = match &recorded {
            Some(folder) => folder.join("lock"),
            // Not /run/lock: anybody may make files there, and so hold the lock against root for ever. What keeps
            // others from this one is its mode: to open it for reading would be enough.
            None if is_root => PathBuf::from("/run/planish.lock"),
            None => xdg("XDG_RUNTIME_DIR", ".local/state").join("planish.lock"),
        };
        let common = || PathBuf::from(ROOT_CONFIG);
        let (state, config) = match (&options.state, &recorded) {
            (Some(folder), _) => (folder.join("var"), vec![folder.join("etc")]),
            (None, Some(folder)) => (folder.clone(), vec![common()]),
            (None, None) if is_root => (PathBuf::from(ROOT_STATE), vec![common()]),
            (None, None) => (
                xdg("XDG_STATE_HOME", ".local/state").join("planish"),
                vec![common(), xdg("XDG_CONFIG_HOME", ".config").join("planish")],
            ),
        };
        let root = options.root.clone().filter(|_| options.state.is_none());
        let usual = options.state.is_none() && options.root.is_none();
        let of_root = (usual && !is_root).then(|| PathBuf::from(ROOT_STATE));
        let trial = match lock.file_stem().and_then(|name| name.to_str()) {
            Some(name) if name != "lock" => lock.with_file_name(format!("{name}-trial.lock")),
            _ => lock.with_file_name("trial.lock"),
        };
        Ok(Self { state, config, root, recorded, lock, trial, of_root })
    }

    /// Where a path of the configuration really lies.
    fn real(&self, path: &Path) -> io::Result<PathBuf> {
        match (&self.root, path.to_str()) {
            (Some(root), Some(path)) => in_root(root, path),
            (Some(_), None) => Err(io::ErrorKind::InvalidFilename.into()),
            (None, _) => Ok(path.to_owned()),
        }
    }

    /// Refuses to read or write the state of a recorded host through a link in its folder: a journal, lock or proof
    /// that leads elsewhere. Links on the way to the folder were followed inside the host.
    pub fn refuse_links(&self) -> Result<(), PipelineError> {
        let Some(Ok(names)) = self.recorded.as_ref().map(fs::read_dir) else { return Ok(()) };
        let is_link = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_symlink());
        match names.flatten().find(is_link) {
            Some(entry) => Err(PipelineError::Linked { path: entry.path() }),
            None => Ok(()),
        }
    }

    /// Makes the folders on the way to the state of a recorded host, which are everybody's there: an image that is
    /// being built has no /var/lib yet, and its services must get into it. The state itself is for its owner alone.
    pub fn make_ways(&self) -> Result<(), PipelineError> {
        let Some(way) = self.recorded.as_ref().and_then(|folder| folder.parent()) else { return Ok(()) };
        let synced = |folder: &Path| fs::File::open(folder).and_then(|folder| folder.sync_all());
        let failed = |source| JournalError::Storage { what: "create", path: way.to_owned(), source };
        Ok(file::make_folders(way, 0o755, synced).map(drop).map_err(failed)?)
    }

    /// The file of an ordinary user's own profile, which root would not find by its name, or find another one by.
    pub fn own_profile(&self, name: &str) -> Option<PathBuf> {
        self.of_root.as_ref()?;
        let own = self.config.iter().filter(|folder| *folder != Path::new(ROOT_CONFIG));
        let mut files = own.flat_map(|folder| own_files(self, &folder.join("profiles")));
        files.find_map(|(path, read)| {
            let (_, text) = read.ok()?;
            (name_of(&path, &text) == name).then_some(path)
        })
    }

    /// The state folder of root, if it is there and we may not read it, or not the journal in it; else our own, where
    /// that is so of it.
    pub fn hidden(&self) -> Option<&Path> {
        let journal = |folder: &Path| file::open(&folder.join(FileStorage::FILE_NAME)).map(drop);
        let of_root = || {
            let folder = self.of_root.as_deref()?;
            let seen = fs::read_dir(folder).map(drop).and(journal(folder));
            seen.err().filter(|_| folder.exists()).is_some_and(|error| is_denied(&error)).then_some(folder)
        };
        of_root().or_else(|| self.unread())
    }

    /// Our own state folder, where the journal in it is there and we may not read it, or may not even see whether it is
    /// there.
    pub fn unread(&self) -> Option<&Path> {
        let journal = file::open(&self.state.join(FileStorage::FILE_NAME));
        journal.is_err_and(|error| is_denied(&error)).then_some(&self.state)
    }
}

/// Whether a file is there and this user may not read it, or may not even see whether it is.
pub(crate) fn is_denied(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::PermissionDenied
}

/// A folder of the XDG base directories, or its usual place below the home folder.
fn xdg(variable: &str, usual: &str) -> PathBuf {
    user_folder(env::var_os(variable), env::var_os("HOME"), usual)
}

/// The home folder above a path, where it is somebody else's or none.
pub(crate) fn foreign_home(path: &Path) -> Option<PathBuf> {
    let home =
        env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute() && path.starts_with(home))?;
    let own = rustix::process::geteuid().as_raw();
    let is_own = fs::metadata(&home).is_ok_and(|found| found.uid() == own);
    (!is_own).then_some(home)
}

/// The folder that a variable names, else the usual one below the home folder. Where neither is said it is below `/`,
/// in which root alone makes folders: in that of temporary files anybody could have put rows for us to read.
fn user_folder(named: Option<OsString>, home: Option<OsString>, usual: &str) -> PathBuf {
    let absolute = |path: OsString| Some(PathBuf::from(path)).filter(|path| path.is_absolute());
    let home = || home.and_then(absolute).unwrap_or_else(|| PathBuf::from("/")).join(usual);
    named.and_then(absolute).unwrap_or_else(home)
}

/// The name that a profile was to have, as far as a file that cannot be understood tells: its own word, or the file's.
fn name_of(path: &Path, text: &str) -> String {
    let said = text.lines().find_map(|line| line.trim_start().strip_prefix("name")?.split('"').nth(1));
    let stem = || path.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
    said.map_or_else(stem, str::to_owned)
}

/// The embedded catalogue with the user's own rows. A profile that is wrong is left out, and told where it is named; a
/// knob that is wrong may be the one that any profile means.
pub(crate) fn catalogue(folders: &Folders) -> Result<Catalogue, CatalogueError> {
    let mut catalogue = Catalogue::embedded()?;
    let mut has_rows = false;
    for folder in &folders.config {
        for (_, read) in own_files(folders, &folder.join("knobs")) {
            let (file, text) = read?;
            catalogue.add_knobs(&file, &text)?;
            has_rows = true;
        }
        for (path, read) in own_files(folders, &folder.join("profiles")) {
            let text = read.as_ref().map_or("", |(_, text)| text.as_str()).to_owned();
            if let Err(error) = read.and_then(|(file, text)| catalogue.add_profile(&file, &text)) {
                catalogue.leave_out(&name_of(&path, &text), &path.display().to_string(), error);
            }
        }
    }
    catalogue.leave_wrong_out();
    // The profiles that are shipped inherit shipped ones alone: what holds without own rows holds with own profiles.
    if has_rows {
        catalogue.check()?;
    }
    Ok(catalogue)
}

/// Where a file of the user really lies and what is in it, or why it cannot be read.
type OwnFile = Result<(String, String), CatalogueError>;

/// The TOML files of a folder by name. A folder that is not there, or not ours to read, has none.
fn own_files(folders: &Folders, folder: &Path) -> Vec<(PathBuf, OwnFile)> {
    let Ok(names) = folders.real(folder).and_then(fs::read_dir) else { return Vec::new() };
    let mut paths: Vec<PathBuf> =
        names.filter_map(|name| Some(folder.join(name.ok()?.file_name()))).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    paths.sort();
    let read = |path: PathBuf| {
        let real = folders.real(&path);
        let file = real.as_ref().unwrap_or(&path).display().to_string();
        let unreadable = |error: io::Error| CatalogueError::Malformed {
            file: file.clone(),
            line: 1,
            column: 1,
            message: why_unread(&error),
        };
        let text = real.and_then(|real| file::read_text(&real)).map_err(unreadable);
        (path, text.map(|text| (file.clone(), text)))
    };
    paths.into_iter().map(read).collect()
}

/// Why a file cannot be read whose name is in its folder. One that is not there is a link, and its name says nothing of
/// that.
fn why_unread(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "is a link to a file that is not there".to_owned(),
        _ => error.to_string(),
    }
}

/// The user, and under sudo who called it: `root (sudo ann)`.
pub(crate) fn who(host: &Host) -> String {
    let uid = rustix::process::getuid().as_raw();
    let users =
        if host.is_live() { host.read_lossy("/etc/passwd") } else { Host::live().read_lossy("/etc/passwd") };
    let user = users.ok().and_then(|users| user_name(&users, uid)).unwrap_or_else(|| format!("uid {uid}"));
    match env::var("SUDO_USER") {
        Ok(caller) if !caller.is_empty() && caller != user => format!("{user} (sudo {caller})"),
        _ => user,
    }
}

/// The name of a user in the text of `/etc/passwd`.
fn user_name(users: &str, uid: u32) -> Option<String> {
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(uid)).then(|| name.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};

    use super::*;

    fn of(options: &SessionOptions) -> Folders {
        Folders::of(options).expect("no circle of links")
    }

    #[test]
    fn without_a_home_no_folder_of_everybody_is_a_users_own() {
        let folder = |named: Option<&str>, home: Option<&str>| {
            user_folder(named.map(OsString::from), home.map(OsString::from), ".config")
        };
        assert_eq!(folder(Some("/run/x"), Some("/home/ann")), Path::new("/run/x"));
        assert_eq!(folder(Some("relative"), Some("/home/ann")), Path::new("/home/ann/.config"));
        assert_eq!(folder(None, Some("/home/ann")), Path::new("/home/ann/.config"));
        for home in [None, Some(""), Some("relative")] {
            assert_eq!(folder(None, home), Path::new("/.config"), "{home:?}");
        }
    }

    #[test]
    fn a_user_is_found_by_number() {
        let users = "root:x:0:0:root:/root:/bin/sh\nann:x:1000:1000::/home/ann:/bin/sh\n";
        assert_eq!(user_name(users, 1000).as_deref(), Some("ann"));
        assert_eq!(user_name(users, 7), None);
    }

    #[test]
    fn state_names_both_folders_and_never_the_lock() {
        let options = SessionOptions { state: Some(PathBuf::from("/s")), ..SessionOptions::default() };
        let folders = of(&options);
        assert_eq!(folders.state, Path::new("/s/var"));
        assert_eq!(folders.config, [Path::new("/s/etc")]);
        assert!(!folders.lock.starts_with("/s"), "the lock is host-wide");
        let recorded = SessionOptions { root: Some(PathBuf::from("/r")), ..options };
        assert_eq!(of(&recorded).lock, Path::new("/r/var/lib/planish/lock"));
    }

    #[test]
    fn a_journal_that_only_root_may_read_is_noticed() {
        let folder = tempfile::tempdir().expect("a folder");
        let options = SessionOptions { state: Some(folder.path().to_owned()), ..SessionOptions::default() };
        let of_root = |path: &Path| Folders { of_root: Some(path.to_owned()), ..of(&options) };
        assert_eq!(of_root(folder.path()).hidden(), None, "we may read it");
        assert_eq!(of_root(&folder.path().join("none")).hidden(), None, "it is not there");
        assert_eq!(of(&options).hidden(), None, "--state names another journal");
        let closed = folder.path().join("closed");
        fs::DirBuilder::new().mode(0o000).create(&closed).expect("ours");
        let is_root = rustix::process::geteuid().is_root();
        assert_eq!(of_root(&closed).hidden(), (!is_root).then_some(closed.as_path()));
        // A folder that a trial made before there was a journal was once open to all.
        let journal = folder.path().join(FileStorage::FILE_NAME);
        fs::OpenOptions::new().write(true).create_new(true).mode(0o000).open(journal).expect("ours");
        assert_eq!(of_root(folder.path()).hidden(), (!is_root).then_some(folder.path()));
    }

    #[test]
    fn a_wrong_row_of_the_user_names_its_line() {
        let folder = tempfile::tempdir().expect("a folder");
        let options = SessionOptions { state: Some(folder.path().to_owned()), ..SessionOptions::default() };
        let folders = of(&options);
        assert!(catalogue(&folders).is_ok(), "no folder, no rows");
        let profiles = folder.path().join("etc/profiles");
        fs::create_dir_all(&profiles).expect("ours");
        fs::write(profiles.join("own.toml"), "name = \"own\"\nsummary = \n").expect("ours");
        let error = catalogue(&folders).expect("the others are sound").profile("own").expect_err("malformed");
        assert!(error.to_string().contains("own.toml:2:11: "), "{error}");
    }

    /// `plan bn` said that there is no profile of that name, and of a link that no file was there.
    #[test]
    fn a_file_whose_profile_cannot_be_had_by_its_name_is_told_by_that_of_the_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let options = SessionOptions { state: Some(folder.path().to_owned()), ..SessionOptions::default() };
        let profiles = folder.path().join("etc/profiles");
        fs::create_dir_all(&profiles).expect("ours");
        fs::write(profiles.join("bn.toml"), "name = \"../x\"\nsummary = \"s\"\n").expect("ours");
        fs::write(profiles.join("as.toml"), "name = \"other\"\nsummary = \n").expect("ours");
        std::os::unix::fs::symlink("gone", profiles.join("link.toml")).expect("ours");
        let catalogue = catalogue(&of(&options)).expect("the others are sound");
        let told = |name: &str| catalogue.profile(name).expect_err("wrong").to_string();
        assert!(told("bn").contains("bn.toml:1:8: `../x` cannot name a profile"), "{}", told("bn"));
        assert!(told("as").contains("as.toml:2:11: "), "{}", told("as"));
        assert!(
            told("link").ends_with("link.toml:1:1: is a link to a file that is not there"),
            "{}",
            told("link")
        );
    }
}
