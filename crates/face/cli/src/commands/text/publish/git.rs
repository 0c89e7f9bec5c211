//! A commit of a few files on a branch, and of nothing else.
//!
//! It is made of blobs and a tree by an index of its own: what the user has staged, changed or not added is not looked
//! at. The branch moves by one compare-and-swap of its ref. Only where it is the one that is checked out here, the same
//! files are put into the user's index and folder too, which else would take the commit back with the next one.

use std::ffi::OsStr;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use planish_model::quoted;

use crate::commands::{read_file, write_file};
use crate::failure::Failure;

/// A file of the work tree.
pub(super) struct File<'a> {
    pub path: &'a Path,
    pub text: &'a str,
}

/// A branch of the repository around a folder.
pub(super) struct Branch {
    folder: PathBuf,
    /// The folder within the repository, with a slash at its end unless it is its top.
    prefix: String,
    name: String,
    /// The commit that it points to now.
    tip: Option<String>,
    /// The commit that ours stands on.
    parent: Option<String>,
    is_checked_out: bool,
}

impl Branch {
    /// A branch that is there, or that is to be made where `HEAD` is.
    pub fn open(folder: &Path, name: &str) -> Result<Self, Failure> {
        // By its whole name too, as git itself takes it.
        let name = name.strip_prefix("refs/heads/").unwrap_or(name);
        let mut branch = Self {
            folder: folder.to_owned(),
            prefix: String::new(),
            name: name.to_owned(),
            tip: None,
            parent: None,
            is_checked_out: false,
        };
        let prefix = branch.git(&["rev-parse", "--show-prefix"])?;
        branch.prefix = prefix;
        if name.starts_with('-')
            || name.starts_with("refs/")
            || branch.git(&["check-ref-format", "--branch", name]).is_err()
        {
            return Err(
                Failure::usage(format!("`{name}` is no name of a branch")).hint("git help check-ref-format")
            );
        }
        let reference = branch.reference();
        let commit =
            |name: &str| branch.asked(&["rev-parse", "--quiet", "--verify", &format!("{name}^{{commit}}")]);
        let (tip, head) = (commit(&reference), commit("HEAD"));
        branch.is_checked_out =
            branch.asked(&["symbolic-ref", "--quiet", "HEAD"]).as_deref() == Some(&reference);
        if !branch.is_checked_out {
            branch.refuse_checked_out_elsewhere()?;
        }
        // One that was merged goes on from where it was merged into.
        let is_merged = !branch.is_checked_out
            && tip
                .iter()
                .zip(&head)
                .any(|(tip, head)| branch.asked(&["merge-base", "--is-ancestor", tip, head]).is_some());
        branch.parent = if is_merged { head } else { tip.clone().or(head) };
        branch.tip = tip;
        Ok(branch)
    }

    fn reference(&self) -> String {
        format!("refs/heads/{}", self.name)
    }

    /// A work tree of somebody else would take the commit back with its next one.
    fn refuse_checked_out_elsewhere(&self) -> Result<(), Failure> {
        let line = format!("branch {}", self.reference());
        let trees = self.git(&["worktree", "list", "--porcelain"])?;
        let mut trees = trees.split("\n\n").filter(|tree| tree.lines().any(|other| other == line));
        let Some(tree) = trees.next() else { return Ok(()) };
        let place = tree.lines().find_map(|line| line.strip_prefix("worktree ")).unwrap_or_default();
        let failed = Failure::refused(format!("{} is checked out in {place}", self.name));
        Err(failed.hint("publish from there, or name another branch with --branch"))
    }

    /// Where a file beside the pin is in the repository.
    fn within(&self, path: &Path) -> String {
        format!("{}{}", self.prefix, path.file_name().unwrap_or_default().to_string_lossy())
    }

    /// A file as the branch has it.
    pub fn read(&self, path: &Path) -> Result<Option<Vec<u8>>, Failure> {
        let Some(parent) = &self.parent else { return Ok(None) };
        let Some((_, blob)) = self.entry(parent, path)? else { return Ok(None) };
        Ok(Some(self.run(self.command(&["cat-file", "blob", &blob]), b"")?.stdout))
    }

    /// Mode and object of a file in a commit.
    fn entry(&self, commit: &str, path: &Path) -> Result<Option<(String, String)>, Failure> {
        let listed = self.git(&["ls-tree", "--full-tree", "-z", commit, "--", &self.within(path)])?;
        let mut words = listed.split_whitespace();
        let entry = (|| Some((words.next()?.to_owned(), words.nth(1)?.to_owned())))();
        match entry {
            Some((mode, _)) if mode == "120000" || mode == "040000" || mode == "160000" => {
                let failed = Failure::refused(format!("{} is no file on {}", path.display(), self.name));
                Err(failed.hint("name another file with --pin"))
            }
            entry => Ok(entry),
        }
    }

    /// Commits these files; returns the commit.
    pub fn commit(&self, files: &[File<'_>], message: &str) -> Result<String, Failure> {
        if self.is_checked_out {
            files.iter().try_for_each(|file| self.refuse_changed(file))?;
        }
        let index = PathBuf::from(self.git(&["rev-parse", "--absolute-git-dir"])?);
        let index = Draft(index.join(format!("planish-text-publish.{}.index", std::process::id())));
        let mut entries = Vec::new();
        for file in files {
            let object = self.text(self.command(&["hash-object", "-w", "--stdin"]), file.text.as_bytes())?;
            let earlier =
                self.parent.as_ref().map(|parent| self.entry(parent, file.path)).transpose()?.flatten();
            let mode = earlier.map_or("100644".to_owned(), |(mode, _)| mode);
            entries.push(format!("{mode},{object},{}", self.within(file.path)));
        }
        match &self.parent {
            Some(parent) => self.text(index.command(self, &["read-tree", parent]), b"")?,
            None => self.text(index.command(self, &["read-tree", "--empty"]), b"")?,
        };
        for entry in &entries {
            self.text(index.command(self, &["update-index", "--add", "--cacheinfo", entry]), b"")?;
        }
        let tree = self.text(index.command(self, &["write-tree"]), b"")?;
        let mut words = vec!["commit-tree", &tree, "-F", "-"];
        words.extend(self.parent.iter().flat_map(|parent| ["-p", parent]));
        let commit = self.text(self.command(&words), message.as_bytes()).map_err(|failure| {
            failure.hint(
                "git config user.name NAME && git config user.email ADDRESS, where git asks who you are",
            )
        })?;
        if self.is_checked_out {
            // Before the branch moves: a kill in between leaves our files staged, and not their removal.
            for (entry, file) in entries.iter().zip(files) {
                write_file(file.path, file.text)?;
                self.git(&["update-index", "--add", "--cacheinfo", entry])?;
            }
        }
        let none = "0".repeat(commit.len());
        let tip = self.tip.as_deref().unwrap_or(&none);
        self.git(&["update-ref", "-m", "planish text publish", &self.reference(), &commit, tip])?;
        Ok(commit)
    }

    /// Refuses to write over what the user is changing.
    fn refuse_changed(&self, file: &File<'_>) -> Result<(), Failure> {
        let name = file.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let told =
            self.git(&["status", "--porcelain", "--untracked-files=all", "--ignored=matching", "--", &name])?;
        // A publish that was killed may have left it as we would write it.
        let is_ours = || read_file(file.path).is_ok_and(|bytes| bytes == file.text.as_bytes());
        if told.is_empty() || is_ours() {
            return Ok(());
        }
        let path = quoted(&file.path.to_string_lossy());
        let failed = Failure::refused(format!("{path} has changes that are not committed"));
        Err(failed.hint(format!(
            "commit them, or drop them: git checkout HEAD -- {path}; or name another --branch"
        )))
    }

    /// By ssh it opens no connection that is kept for others (`ControlMaster auto` in a user's settings): its socket
    /// lies in a home, which is read-only to the weekly service, and ssh ends with an error there.
    pub fn push(&self, remote: &str) -> Result<(), Failure> {
        let reference = format!("{0}:{0}", self.reference());
        let mut command = self.command(&["push", "--quiet", "--", remote, &reference]);
        // Another program may know no such option.
        let is_in_environment =
            ["GIT_SSH_COMMAND", "GIT_SSH"].map(std::env::var_os).iter().any(Option::is_some);
        if !is_in_environment && self.asked(&["config", "core.sshCommand"]).is_none() {
            command.env("GIT_SSH_COMMAND", "ssh -o ControlMaster=no");
        }
        self.text(command, b"").map(drop).map_err(|failure| {
            failure.hint(format!("the commit is on {0}; later: git push {remote} {0}", self.name))
        })
    }

    /// The folders that a commit and a push write into: those of git, and of the remotes that are folders of this
    /// machine.
    pub fn folders(&self, remote: Option<&str>) -> Vec<PathBuf> {
        let urls = remote.map(|remote| {
            // One that has no name is a URL itself.
            let named = self.run(self.command(&["remote", "get-url", "--push", "--all", "--", remote]), b"");
            named.map_or_else(|_| remote.as_bytes().to_vec(), |named| named.stdout)
        });
        let urls = urls.unwrap_or_default();
        let top = self.path_of(None, &["--show-toplevel"]).unwrap_or_else(|| self.folder.clone());
        let remotes = urls.split(|byte| *byte == b'\n').filter_map(folder_of_url);
        let remotes = remotes.flat_map(|path| self.of_remote(&top.join(path)));
        self.of_git(None).into_iter().chain(remotes).collect()
    }

    /// The folders that a push into a folder of this machine writes into: all of it, since files may be checked out
    /// there, and wherever else its repository is.
    fn of_remote(&self, folder: &Path) -> Vec<PathBuf> {
        let mut bare = folder.as_os_str().to_owned();
        bare.push(".git");
        let bare = PathBuf::from(bare);
        // In the order in which git looks for it.
        let places = [folder.join(".git"), folder.to_owned(), bare.join(".git"), bare];
        let found =
            places.iter().map(|place| self.of_git(Some(place.as_path()))).find(|found| !found.is_empty());
        // A name without its ending is that of no folder.
        let own = (found.is_none() || folder.exists()).then(|| folder.to_owned());
        own.into_iter().chain(found.unwrap_or_default()).collect()
    }

    /// The folders of the repository at a place, if not of ours: of a work tree, of what it shares with others, and of
    /// its objects. None where there is no repository.
    fn of_git(&self, place: Option<&Path>) -> Vec<PathBuf> {
        const FOLDERS: [&[&str]; 3] =
            [&["--absolute-git-dir"], &["--git-common-dir"], &["--git-path", "objects"]];
        FOLDERS.into_iter().filter_map(|words| self.path_of(place, words)).collect()
    }

    /// A path that git tells of the repository at a place, if not of ours.
    fn path_of(&self, place: Option<&Path>, words: &[&str]) -> Option<PathBuf> {
        let mut command = self.command(&[]);
        if let Some(place) = place {
            command.arg("--git-dir").arg(place);
        }
        command.arg("rev-parse").args(words);
        let told = self.run(command, b"").ok()?.stdout;
        let path = told.strip_suffix(b"\n").unwrap_or(&told);
        Some(self.folder.join(OsStr::from_bytes(path)))
    }

    /// A question to git: its answer, or `None` where it is no.
    fn asked(&self, words: &[&str]) -> Option<String> {
        self.git(words).ok()
    }

    fn git(&self, words: &[&str]) -> Result<String, Failure> {
        self.text(self.command(words), b"")
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new("git");
        command.arg("-C").arg(&self.folder).args(words);
        // Told in the words that we know, asking nobody, and by no index but the user's or ours.
        command.env("LC_ALL", "C").env("GIT_TERMINAL_PROMPT", "0").env_remove("GIT_INDEX_FILE");
        command
    }

    fn text(&self, command: Command, input: &[u8]) -> Result<String, Failure> {
        let output = self.run(command, input)?;
        Ok(String::from_utf8_lossy(&output.stdout).trim_end_matches(['\n', '\0']).to_owned())
    }

    fn run(&self, mut command: Command, input: &[u8]) -> Result<Output, Failure> {
        let name = command_name(&command);
        let spawned = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut child = spawned.map_err(|error| {
            Failure::refused(format!("cannot run git: {error}")).hint("install git, or leave --branch out")
        })?;
        let mut stdin = child.stdin.take().expect("it was asked for as a pipe");
        // All of it is read before anything is printed, or nothing: then git says why.
        let _ = stdin.write_all(input);
        drop(stdin);
        let output = child.wait_with_output().map_err(Failure::refused)?;
        if output.status.success() {
            return Ok(output);
        }
        let told = String::from_utf8_lossy(&output.stderr).trim().replace('\n', "; ");
        Err(Failure::refused(format!("{name}: {told}")))
    }
}

/// `git commit-tree`, without what stands before and behind it.
fn command_name(command: &Command) -> String {
    let verb = command.get_args().nth(2).unwrap_or_default().to_string_lossy();
    format!("git {verb}")
}

/// The folder of a remote of this machine; `None` of one that is reached by a host, as git tells them apart: a colon
/// before the first slash stands behind a host.
fn folder_of_url(url: &[u8]) -> Option<PathBuf> {
    let Some(rest) = url.strip_prefix(b"file://") else {
        let is_beyond = url.split(|byte| *byte == b'/').next().is_some_and(|first| first.contains(&b':'));
        return (!url.is_empty() && !is_beyond).then(|| PathBuf::from(OsStr::from_bytes(url)));
    };
    let rest = decoded(rest);
    // A host before the path means nothing to git.
    let slash = rest.iter().position(|byte| *byte == b'/')?;
    Some(PathBuf::from(OsStr::from_bytes(&rest[slash..])))
}

/// A part of a URL as git reads it: `%20` is a blank, and a percent sign that no number follows is one.
fn decoded(text: &[u8]) -> Vec<u8> {
    let (mut bytes, mut rest) = (Vec::with_capacity(text.len()), text);
    while let [first, behind @ ..] = rest {
        let digits = behind.get(..2).filter(|two| *first == b'%' && two.iter().all(u8::is_ascii_hexdigit));
        let code = digits.and_then(|two| u8::from_str_radix(std::str::from_utf8(two).ok()?, 16).ok());
        match code.filter(|code| *code > 0) {
            Some(code) => {
                bytes.push(code);
                rest = &behind[2..];
            }
            None => {
                bytes.push(*first);
                rest = behind;
            }
        }
    }
    bytes
}

/// An index of our own, which goes with this value.
struct Draft(PathBuf);

impl Draft {
    fn command(&self, branch: &Branch, words: &[&str]) -> Command {
        let mut command = branch.command(words);
        command.env("GIT_INDEX_FILE", &self.0);
        command
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::folder_of_url;

    #[test]
    fn a_remote_of_this_machine_is_a_folder() {
        for (url, folder) in [
            ("/srv/git/a.git", Some("/srv/git/a.git")),
            ("../a.git", Some("../a.git")),
            ("./a:b", Some("./a:b")),
            ("file:///srv/a.git", Some("/srv/a.git")),
            ("file:///srv/my%20a%2b.git", Some("/srv/my a+.git")),
            ("file:///srv/100%/%00%+f%4", Some("/srv/100%/%00%+f%4")),
            ("file://localhost/srv/a.git", Some("/srv/a.git")),
            ("/srv/my%20a.git", Some("/srv/my%20a.git")),
            ("file://", None),
            ("git@host:a.git", None),
            ("host:/srv/a.git", None),
            ("ssh://host/a.git", None),
            ("https://host/a.git", None),
            ("", None),
        ] {
            assert_eq!(folder_of_url(url.as_bytes()), folder.map(PathBuf::from), "{url}");
        }
    }
}
