//! What every command is given: the global options, and the command line as it was typed.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};

use planish_host::Host;
use planish_model::{Catalogue, Exit, quoted};
use planish_pipeline::{Session, SessionOptions};
use planish_report::{Level, Message, Page, PageOptions, Report};
use rustix::fs::{Access, access};

use crate::answer::{Answer, Body};
use crate::args::Globals;
use crate::failure::{Failure, chain};
use crate::output;

/// Commands that mean the host of `--root` and the journal of `--state`. The others measure this machine, or record it.
const OF_A_HOST: [&str; 15] = [
    "doctor", "plan", "apply", "confirm", "check", "undo", "log", "knobs", "profiles", "size", "topo",
    "export", "import", "install", "move",
];

/// What a command is given of the pipeline. It is given up with the process: to free the catalogue row by row takes a
/// thirtieth of a plan, and brings nobody anything.
pub(crate) type OpenSession = ManuallyDrop<Session>;

/// Whether a folder is there that we may write to, or may be made.
fn can_be_made(folder: &Path) -> bool {
    let wanted = Access::WRITE_OK | Access::EXEC_OK;
    let first = folder.ancestors().find(|folder| folder.exists());
    first.is_some_and(|first| access(first, wanted).is_ok())
}

/// The surroundings of a running command.
#[derive(Debug)]
pub(crate) struct Context {
    pub globals: Globals,
    /// Arguments as they were typed, without the name of the program.
    typed: Vec<OsString>,
    /// What the user's own files hold that is wrong, and this command did without.
    left_out: RefCell<BTreeSet<String>>,
    /// What is planned, with its options as they are typed behind `plan`: cures name it.
    planned: RefCell<Option<String>>,
    /// A word of the command line that means nothing to root, a profile of this user's own, and what does.
    for_root: RefCell<Option<(String, String)>>,
}

impl Context {
    pub fn new(globals: Globals, typed: Vec<OsString>) -> Self {
        Self {
            globals,
            typed,
            left_out: RefCell::default(),
            planned: RefCell::default(),
            for_root: RefCell::default(),
        }
    }

    /// The machine that `--root` names, or this one.
    pub fn host(&self) -> Result<Host, Failure> {
        match &self.globals.root {
            Some(folder) => Ok(Host::open_whole(folder)?),
            None => Ok(Host::live()),
        }
    }

    /// The host, the journal and the catalogue that the global options name.
    pub fn session(&self) -> Result<OpenSession, Failure> {
        let Globals { root, state, clock, .. } = self.globals.clone();
        let session = Session::open(SessionOptions { root, state, clock, command: self.again("") })?;
        let told = session.catalogue().left_out().map(|error| chain(error));
        self.left_out.borrow_mut().extend(told);
        Ok(OpenSession::new(session))
    }

    /// An answer with a word on what it did without: before what to type next, which comes last.
    pub fn with_left_out(&self, mut answer: Answer) -> Answer {
        let told = self.left_out.borrow();
        let warnings = told.iter().map(|text| Message::new(Level::Warning, format!("left out: {text}")));
        let next = answer.messages.iter().position(|message| message.level == Level::Next);
        let at = next.unwrap_or(answer.messages.len());
        answer.messages.splice(at..at, warnings);
        answer
    }

    /// Where the file of the preload goes. Root's is no folder of the journal, which is root's alone: a service that
    /// runs as somebody else loads it too.
    pub fn preload_folder(&self) -> PathBuf {
        let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let root = || PathBuf::from("/var/lib/planish-preload");
        match &self.globals.state {
            Some(folder) => {
                std::path::absolute(folder).unwrap_or_else(|_| folder.clone()).join("var/preload")
            }
            None if rustix::process::geteuid().is_root() => root(),
            None => {
                let home = absolute("HOME").map(|home| home.join(".local/state"));
                let state = absolute("XDG_STATE_HOME").or(home);
                // Never a folder that others may write: what lies there is executed. A user without a home (nobody) may
                // have one for as long as he is logged in, or his service runs.
                let folders = [state, absolute("XDG_RUNTIME_DIR")].into_iter().flatten();
                let mut folders: Vec<PathBuf> =
                    folders.map(|folder| folder.join("planish/preload")).collect();
                let chosen = folders.iter().position(|folder| can_be_made(folder)).unwrap_or(0);
                if folders.is_empty() { root() } else { folders.swap_remove(chosen) }
            }
        }
    }

    /// An answer that succeeded, in the form that was asked for.
    pub fn answer<R: Report>(&self, report: &R, catalogue: &Catalogue) -> Answer {
        let body = if self.globals.json {
            Body::Json(serde_json::to_value(report).expect("reports are plain data with text keys"))
        } else {
            Body::Text(self.text(report, catalogue))
        };
        Answer {
            command: R::COMMAND,
            body,
            exit: Exit::Done,
            code: None,
            unprinted: None,
            messages: Vec::new(),
        }
    }

    /// A report as text for stdout.
    pub fn text<R: Report>(&self, report: &R, catalogue: &Catalogue) -> String {
        let options = PageOptions { width: output::width(), detailed: self.globals.verbose };
        let mut page = Page::new(options, catalogue);
        report.text(&mut page);
        page.into_text()
    }

    /// A command line for the same host and state: `planish --root hosts/x check`.
    pub fn line(&self, command: &str) -> String {
        format!("planish{} {command}", self.place())
    }

    /// The options that say which host and whose journal are meant, each with a space before it.
    fn place(&self) -> String {
        let folders = [("--root", &self.globals.root), ("--state", &self.globals.state)];
        let named = folders.into_iter().filter_map(|(option, folder)| Some((option, folder.as_ref()?)));
        named.map(|(option, folder)| format!(" {option} {}", quoted(&folder.to_string_lossy()))).collect()
    }

    /// A sentence of a crate that knows no command line, with these options in every `planish COMMAND` of it, and with
    /// the files of `mv` where they are: typed as it stood, the cure of a recorded host would write the live one.
    pub fn here(&self, text: &str) -> String {
        const NAME: &str = "planish ";
        let place = self.place();
        let mut told = String::with_capacity(text.len());
        let mut moved = self.moved_here(text);
        if let Some(planned) = self.planned.borrow().as_ref() {
            moved = moved.replace("planish plan PROFILE --", &format!("planish plan {planned} --"));
        }
        let mut rest = moved.as_str();
        while let Some(at) = rest.find(NAME) {
            let (before, after) = rest.split_at(at + NAME.len());
            told.push_str(before);
            let line = after.lines().next().unwrap_or_default();
            let word = line.split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or_default();
            let has_place = ["--root", "--state", "--help"].into_iter().any(|option| line.contains(option));
            if OF_A_HOST.contains(&word) && !has_place {
                told.push_str(place.trim_start());
                told.push_str(if place.is_empty() { "" } else { " " });
            }
            rest = after;
        }
        told + rest
    }

    /// Says what is planned: cures of crates that know no command line call it PROFILE.
    pub fn plans(&self, planned: String) {
        *self.planned.borrow_mut() = Some(planned);
    }

    /// Says which profile is meant, for a line that root is to type.
    pub fn means(&self, profile: &str, session: &Session) {
        *self.for_root.borrow_mut() = Some((profile.to_owned(), session.named_for_root(profile)));
    }

    /// The files of the host that a sentence tells to move, below the root of that host.
    fn moved_here(&self, text: &str) -> String {
        let moves = ["mv /", "mv -n /"].into_iter().filter_map(|mv| Some((mv, text.split_once(mv)?)));
        let first = moves.min_by_key(|(_, (before, _))| before.len());
        let (Some(root), Some((mv, (before, files)))) = (&self.globals.root, first) else {
            return text.to_owned();
        };
        // A journal is told by its own path, which is that of this machine.
        if !files.starts_with("etc/") && !files.starts_with("boot/") {
            return text.to_owned();
        }
        let root = quoted(root.to_string_lossy().trim_end_matches('/'));
        // The two words behind `mv` and no more: a command line in the same sentence has absolute paths of its own.
        let below = |(number, word): (usize, &str)| {
            if number < 2 && word.starts_with('/') { format!("{root}{word}") } else { word.to_owned() }
        };
        let files: Vec<String> = format!("/{files}").split(' ').enumerate().map(below).collect();
        format!("{before}{}{}", mv.trim_end_matches('/'), files.join(" "))
    }

    /// The same for a command that writes the host: only root may do that on a live one.
    pub fn root_line(&self, command: &str) -> String {
        self.as_root(self.line(command))
    }

    /// A line that only root may type on a live host.
    pub fn as_root(&self, line: String) -> String {
        let allowed = self.globals.root.is_some() || rustix::process::geteuid().is_root();
        if allowed { line } else { format!("sudo {line}") }
    }

    /// The command line as it was typed, to be typed again with something added: `planish apply x --yes`.
    pub fn again(&self, added: &str) -> String {
        self.again_without(&[], &[], added)
    }

    /// The same without some flags, and without some options that take a value.
    pub fn again_without(&self, flags: &[&str], options: &[&str], added: &str) -> String {
        line_of(&self.typed_words(flags, options), added)
    }

    /// The words of the command line as it was typed, without some options that take a value.
    pub fn typed_without(&self, options: &[&str]) -> Vec<String> {
        self.typed_words(&[], options)
    }

    fn typed_words(&self, flags: &[&str], options: &[&str]) -> Vec<String> {
        // A fixed clock is for tests and no part of what a person types.
        let is_left_out = |name: &str| name == "--clock" || options.contains(&name);
        let (mut typed, mut words) = (self.typed.as_slice(), Vec::new());
        while let [word, rest @ ..] = typed {
            let text = word.to_string_lossy();
            let (name, joined) = text.split_once('=').map_or((&*text, false), |(name, _)| (name, true));
            let left_out = is_left_out(name);
            typed = if left_out && !joined { rest.get(1..).unwrap_or_default() } else { rest };
            if !left_out && !flags.contains(&name) {
                words.push(text.into_owned());
            }
        }
        words
    }

    /// The same for a command that writes the host.
    pub fn again_as_root(&self, added: &str) -> String {
        let for_root = self.for_root.borrow();
        let renamed = |word: String| match for_root.as_ref() {
            Some((own, file)) if *own == word => file.clone(),
            _ => word,
        };
        // The first word is the command.
        let mut typed = self.typed_words(&[], &[]).into_iter();
        let words: Vec<String> = typed.by_ref().take(1).collect();
        let words: Vec<String> = words.into_iter().chain(typed.map(renamed)).collect();
        self.as_root(line_of(&words, added))
    }
}

/// The words of a command line with something added, to be typed.
fn line_of(words: &[String], added: &str) -> String {
    let line = words.iter().fold("planish".to_owned(), |line, word| format!("{line} {}", quoted(word)));
    if added.is_empty() { line } else { format!("{line} {added}") }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::Context;
    use crate::args::Cli;

    fn told(options: &[&str], text: &str) -> String {
        let typed = ["planish"].iter().chain(options).chain(&["doctor"]);
        let cli = Cli::try_parse_from(typed).expect("a sound line");
        Context::new(cli.globals, Vec::new()).here(text)
    }

    #[test]
    fn a_line_is_told_again_without_what_it_is_to_change() {
        let typed =
            ["prove", "postgres", "--quick", "--scale", "1", "--budget=1", "--clock", "9", "--html", "a b"];
        let cli = Cli::try_parse_from(["planish", "doctor"]).expect("a sound line");
        let context = Context::new(cli.globals, typed.into_iter().map(Into::into).collect());
        assert_eq!(
            context.again_without(&["--quick"], &["--budget"], "--budget 19"),
            "planish prove postgres --scale 1 --html 'a b' --budget 19"
        );
        let whole = "planish prove postgres --quick --scale 1 --budget=1 --html 'a b'";
        assert_eq!(context.again(""), whole);
    }

    #[test]
    fn a_cure_of_a_recorded_host_does_not_write_the_live_one() {
        let root = ["--root", "a host", "--state", "st"];
        assert_eq!(told(&root, "planish apply series"), "planish --root 'a host' --state st apply series");
        assert_eq!(
            told(&["--root", "h"], "see `planish log`, then: planish undo 3"),
            "see `planish --root h log`, then: planish --root h undo 3"
        );
        for same in
            ["another planish is at work", "planish plan x --root h", "planish undo --help", "planish prove"]
        {
            assert_eq!(told(&root, same), same);
        }
        assert_eq!(told(&[], "planish apply series"), "planish apply series");
        let file = "move it away first: mv /etc/sysctl.d/90-planish.conf /etc/sysctl.d/90-planish.conf.mine";
        assert_eq!(
            told(&root, file),
            "move it away first: mv 'a host'/etc/sysctl.d/90-planish.conf 'a host'/etc/sysctl.d/90-planish.conf.mine"
        );
        assert_eq!(
            told(&["--root", "/r/h"], "first: mv -n /etc/x.d/9 /etc/x.d/5 (then mv /etc/y)"),
            "first: mv -n /r/h/etc/x.d/9 /r/h/etc/x.d/5 (then mv /etc/y)"
        );
        // What follows in the sentence is no file to move.
        let more = "mv /etc/x /etc/x.mine; or: planish undo 1";
        assert_eq!(
            told(&["--root", "/r/h", "--state", "/srv/st"], more),
            "mv /r/h/etc/x /r/h/etc/x.mine; or: planish --root /r/h --state /srv/st undo 1"
        );
        for (options, same) in
            [(&[][..], file), (&root, "move it away: mv /srv/st/var/log /srv/st/var/log.odd")]
        {
            assert_eq!(told(options, same), same);
        }
    }
}
