//! What the commands of a text write, as far as their words tell.
//!
//! A text is looked at from top to bottom, and each of its commands counts whether or not a shell would come by it: a
//! condition holds or not when the time comes. Three kinds of commands are told apart. One *writes*: `>`, `tee`,
//! `dd of=`, `sysctl NAME=VALUE`, `sysctl -p`. One only *reads* (`cat`, `grep`, `test`, `sysctl -n`), and what it names
//! is passed over. Of any other program nobody here knows what becomes of the names that it is given: those are
//! [`What::Named`], and *may* be written. So may all that a text names once it writes to a place that cannot be told.
//!
//! What no shell comes by is no command: what stands behind an `exit` that no condition leads to. A function is what
//! its callers do, and one that nobody calls *may* be run by whoever reads the text. Of several writes of one file of
//! the kernel the last counts, where nothing but the order decides.
//!
//! What a text starts or reads is done, too, where that is a script of a shell. Nothing is read here: whoever has a
//! text looked at hands over what gives the texts of others ([`Ask`]).

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

use super::lex::{Document, Part, Word};
use super::tree::{Command, Kind, List, Pipeline, Redirect, Script, parse};
use crate::shell::programs::{Program, Way, only_reads};
use crate::shell::wrappers::{Place, Started, started};
use follow::{Body, Spot};
use listed::is_filter;
use paths::{below, of_key, plain};
use values::{Filled, Variable};

/// What becomes of a place.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum What {
    /// Something is written to the file of this path; `*` stands for what only a shell can tell.
    File(String),
    /// A key of `sysctl` is set.
    Key(String),
    /// The lines of a file are set, as `sysctl -p` does.
    Load(String),
    /// The lines of all files of `sysctl.d` are set, as `sysctl --system` does.
    LoadAll,
    /// A text names something, and what comes of it is not known.
    Named(String),
    /// These profiles of tuned may be made active.
    Profile(String),
    /// Something may be written to the files of a name, which may be a pattern, anywhere below a folder.
    Below(String, String),
}

/// One thing that a text does.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Effect {
    /// What it is.
    pub what: What,
    /// What is written, as far as words tell: `echo never`, `vm.swappiness=60`.
    pub says: String,
    /// Whether it is done once the command is run.
    pub is_sure: bool,
    /// The file and the line that say so, of a file that the text starts or reads; empty where the text does itself.
    pub from: String,
}

/// What gives the files that a text starts or reads.
pub trait Files {
    /// The text of one by its path, where there is one that can be read; where it is to be run, only if it may be.
    fn text(&self, path: &str, must_run: bool) -> Option<String>;

    /// The names in a folder, in the order in which they are run.
    fn names(&self, folder: &str) -> Vec<String>;

    /// Whether so much more may be looked at, in words, of a file; it is an empty one for the text itself.
    fn may_go_on(&self, _: &str, _: usize) -> bool {
        true
    }

    /// What a file starts, reads or puts in behind some bound is not followed.
    fn left_out(&self, _: &str) {}
}

/// Files that are no folder's.
impl<F: Fn(&str, bool) -> Option<String>> Files for F {
    fn text(&self, path: &str, must_run: bool) -> Option<String> {
        self(path, must_run)
    }

    fn names(&self, _: &str) -> Vec<String> {
        Vec::new()
    }
}

/// Whoever gives them.
pub type Ask<'a> = &'a dyn Files;

/// Texts that one may be made of, one in another: no script of settings goes deeper.
const DEPTH_MAX: usize = 8;

/// Variables that are looked up in one text: those that are made of each other must not take all the time.
const LOOKS_MAX: usize = 10_000;

/// Functions that are run in one text: those that call each other must not take all the time.
const CALLS_MAX: usize = 2000;

/// Bytes of a text that count as a word: those of comments cost least, and something.
const BYTES_OF_A_WORD: usize = 64;

/// Words that an effect counts as: each is held against all settings that there are.
const WORDS_OF_AN_EFFECT: usize = 2;

/// Bytes of a function that count as one more.
const CALL_BYTES: usize = 4096;

/// What a script of a shell does. One for another interpreter may do anything with what it names.
#[must_use]
pub fn effects(text: &str, ask: Option<Ask<'_>>) -> Vec<Effect> {
    let mut finder = Finder { ask, ..Finder::default() };
    finder.whole(text);
    finder.finish()
}

/// What commands do that stand in a text of another kind: each is told as the words that it is run with, or as a script
/// of its own.
#[must_use]
pub fn effects_of(commands: impl IntoIterator<Item = Run>, ask: Option<Ask<'_>>) -> Vec<Effect> {
    let mut finder = Finder { ask, ..Finder::default() };
    commands.into_iter().for_each(|command| finder.run(command));
    finder.finish()
}

/// A command of a text that is no script.
pub struct Run {
    /// What is run.
    pub what: Ran,
    /// Whether it is run at all.
    pub is_sure: bool,
    /// Whether it sees other files than those that are asked for.
    pub is_blind: bool,
    /// The folder that it is run in, where that is told.
    pub folder: Option<String>,
    /// Variables that it is given.
    pub variables: Vec<(String, String)>,
}

impl Run {
    /// One that nothing more is told of.
    #[must_use]
    pub fn new(what: Ran, is_sure: bool) -> Self {
        Self { what, is_sure, is_blind: false, folder: None, variables: Vec::new() }
    }
}

/// How a command is told.
pub enum Ran {
    /// A program and what it is given, which no shell reads.
    Words(Vec<String>),
    /// What a shell is given.
    Script(String),
    /// What nobody here can read.
    Untold(String),
}

#[derive(Default)]
struct Finder<'a> {
    /// What gives the texts of other files, and those that are being read.
    ask: Option<Ask<'a>>,
    files: Vec<String>,
    /// Where the command stands that is looked at.
    at: Spot,
    variables: BTreeMap<String, Variable>,
    /// Those of whoever started the text.
    environment: BTreeMap<String, Variable>,
    functions: BTreeSet<String>,
    /// What the functions do that were read by now, as text, in their order.
    bodies: Vec<Rc<Body>>,
    /// Those that were called, and those that are being run.
    called: BTreeSet<String>,
    running: Vec<String>,
    /// Calls that would do once more what they did, and whether each writes to a place that cannot be told.
    done: HashMap<calls::State, bool>,
    /// How often a variable was set to something, or a function made.
    changes: usize,
    /// How often something was done whose order counts, or was not followed, by a bound or in the middle of itself.
    unsettled: std::cell::Cell<usize>,
    /// The folder that names without one are of, and the one before it.
    folder: Option<String>,
    left: Option<String>,
    effects: Vec<Effect>,
    /// The first effect that a later one of the same file takes the place of.
    begin: usize,
    /// Whether a condition, or another process, decides whether and when it is done.
    is_conditional: bool,
    /// The word after which nothing is run any more: `exit`, or `return` in a function.
    over: Option<&'static str>,
    /// What is only read, or named by the way.
    reads: Vec<String>,
    /// The words of commands that only read. What is put in is asked for once it matters, as most of them are lines for
    /// people, with a colour at each end.
    unfilled: Vec<Vec<Vec<Part>>>,
    /// Folders and names of files that a program only looked for: whoever is told of them may write there.
    finds: Vec<(String, String)>,
    /// What is run at the end of a text: which of several, a condition decides.
    at_exit: Vec<String>,
    /// Something is written to a place that cannot be told.
    is_open: bool,
    /// The ends of such places, as far as they are told: `cpufreq/scaling_governor`.
    tails: BTreeSet<String>,
    /// What stands there may not be run.
    is_doubtful: bool,
    /// It sees another network than the machine's.
    has_other_network: bool,
    /// The folder that is its root; empty for that of the machine.
    root: String,
    depth: usize,
    /// How deep the text of this shell stands.
    ground: usize,
    /// How often a variable was looked up.
    looks: std::cell::Cell<usize>,
    /// The variables that are being put in, each into the one before.
    filling: std::cell::RefCell<Vec<String>>,
    /// How often a function was run.
    calls: usize,
    /// Here-documents of the text that is looked at.
    documents: Vec<String>,
    /// What the command reads that is looked at, where that is told.
    input: Option<Input>,
    /// A command is looked at that may be none.
    is_guess: bool,
    /// It sees other files than those that are asked for.
    is_blind: bool,
    /// No more is looked at.
    is_spent: bool,
}

/// What a command reads.
enum Input {
    File(String),
    Text(String),
}

impl Finder<'_> {
    fn finish(&mut self) -> Vec<Effect> {
        if self.is_open {
            for words in std::mem::take(&mut self.unfilled) {
                let fields: Vec<String> = words.iter().flat_map(|word| self.filled(word, 0).values).collect();
                self.reads.push(fields.join(" "));
            }
            for text in std::mem::take(&mut self.reads) {
                self.named(text);
            }
            for (folder, name) in std::mem::take(&mut self.finds) {
                self.maybe_below(folder, name);
            }
            self.below_folders();
        }
        // A file that is written first, and then loaded.
        let loaded: BTreeSet<String> = self.effects.iter().filter_map(loaded).collect();
        let is_written = |effect: &&Effect| matches!(&effect.what, What::File(path) if loaded.contains(path));
        let said: Vec<String> =
            self.effects.iter().filter(is_written).map(|effect| effect.says.clone()).collect();
        said.into_iter().for_each(|text| self.named(text));
        std::mem::take(&mut self.effects)
    }

    /// Does what one of several commands does, which is a process of its own.
    fn run(&mut self, command: Run) {
        (self.is_doubtful, self.folder) = (!command.is_sure, command.folder);
        self.is_blind = command.is_blind;
        self.begin = self.effects.len();
        for (name, value) in command.variables {
            let values = vec![vec![Part::Text { text: value, quoted: true }]];
            self.variables.insert(name, Variable { values, times: 1, is_open: false });
        }
        match command.what {
            Ran::Words(words) => self.command(&words, &words.join(" "), ""),
            Ran::Script(text) => self.script(&text),
            Ran::Untold(text) => self.named(text),
        }
    }

    /// A part of a text that a shell reads as one of its own, all at one line.
    fn script(&mut self, text: &str) {
        let was = self.at.offset.take();
        self.text(text);
        self.at.offset = was;
    }

    fn text(&mut self, text: &str) {
        if self.depth == DEPTH_MAX {
            self.left_out();
            return self.named(text.to_owned());
        }
        if !self.spend(1 + text.len() / BYTES_OF_A_WORD) {
            return;
        }
        self.depth += 1;
        let text = match text.contains('\r') {
            true => Cow::Owned(text.replace("\r\n", "\n")),
            false => Cow::Borrowed(text),
        };
        let script = parse(&text);
        let documents = std::mem::replace(&mut self.documents, documents_of(&script));
        self.gather(&script.list);
        self.list(&script.list);
        self.over = None;
        if self.depth == self.ground + 1 {
            self.uncalled();
            self.end();
        }
        for (_, line) in script.documents.iter().flatten() {
            self.named((*line).to_owned());
        }
        if let Some(broken) = &script.broken {
            // A shell runs nothing of it, unless it reads more than is read here.
            self.lines_of_others(&text.lines().skip(broken.line - 1).collect::<Vec<_>>().join("\n"));
        }
        self.documents = documents;
        self.depth -= 1;
    }

    /// Runs what another shell does, which takes its folder along and leaves ours, and what we do at our end, as it is.
    fn apart(&mut self, run: impl FnOnce(&mut Self)) {
        let (stand, at_exit) = (self.stand(), std::mem::take(&mut self.at_exit));
        run(self);
        self.end();
        (self.at_exit, self.over) = (at_exit, None);
        self.stand_at(stand);
    }

    /// Does what is behind all the rest of a shell, and where it ends early, too.
    fn end(&mut self) {
        self.over = None;
        for text in std::mem::take(&mut self.at_exit) {
            self.perhaps(|finder| finder.script(&text));
        }
    }

    /// Runs what a condition decides on, or a time.
    fn perhaps(&mut self, run: impl FnOnce(&mut Self)) {
        let was = std::mem::replace(&mut self.is_conditional, true);
        run(self);
        (self.is_conditional, self.over) = (was, None);
    }

    /// What functions do that nobody calls may be done by whoever reads the text; those of a library are there to
    /// choose from.
    fn uncalled(&mut self) {
        let was = std::mem::replace(&mut self.is_doubtful, true);
        for body in self.bodies.clone() {
            if !self.called.contains(&body.name) && body.at.file == self.at.file {
                self.apart(|finder| finder.perhaps(|finder| finder.call(&body.name)));
            }
        }
        self.is_doubtful = was;
    }

    fn lines_of_others(&mut self, text: &str) {
        for (at, line) in text.lines().enumerate() {
            self.stands_at(at + 1);
            if !line.trim_start().starts_with('#') {
                self.named(line.to_owned());
            }
        }
    }

    /// Takes so much more to be looked at, unless that would be too much.
    fn spend(&mut self, work: usize) -> bool {
        self.is_spent |= self.ask.is_some_and(|ask| !ask.may_go_on(&self.at.file, work));
        !self.is_spent
    }

    /// Tells that something is not followed from here on.
    fn left_out(&self) {
        self.unsettles();
        if let Some(ask) = self.ask {
            ask.left_out(&self.at.file);
        }
    }

    fn stands_at(&mut self, line: usize) {
        if let Some(offset) = self.at.offset {
            self.at.line = offset + line;
        }
    }

    fn push(&mut self, what: What, says: &str, is_sure: bool) {
        let Spot { file, line, .. } = &self.at;
        let from = if file.is_empty() { String::new() } else { format!("{file}:{line}") };
        self.effects.push(Effect { what, says: says.to_owned(), is_sure, from });
        self.spend(WORDS_OF_AN_EFFECT);
    }

    fn named(&mut self, text: String) {
        if !text.trim().is_empty() {
            self.push(What::Named(text), "", false);
        }
    }

    fn maybe_below(&mut self, folder: String, name: String) {
        self.push(What::Below(folder, name), "", false);
    }

    fn done(&mut self, what: What, says: &str, is_sure: bool) {
        let is_sure = is_sure && !self.is_doubtful && !(self.has_other_network && may_be_of_network(&what));
        let place = of_kernel(&what);
        if place.is_some() {
            self.unsettles();
        }
        if let Some(place) = place.filter(|_| is_sure && !self.is_conditional) {
            let is_over = |effect: &Effect| effect.is_sure && is_at(&effect.what, &place);
            if self.effects[self.begin..].iter().any(is_over) {
                let earlier = self.effects.split_off(self.begin);
                self.effects.extend(earlier.into_iter().filter(|effect| !is_over(effect)));
            }
        }
        self.push(what, says, is_sure);
    }

    /// Writes to files by their names.
    fn written(&mut self, name: &str, says: &str, is_sure: bool) {
        let (path, is_told) = plain(&below(self.folder.as_deref(), name));
        let is_sure = is_sure && is_told;
        if path == "/dev/null" {
            return;
        }
        let of_kernel = ["/proc/", "/sys/"].iter().any(|folder| path.starts_with(folder));
        self.is_open |= path.starts_with('*') || of_kernel && path.ends_with("/*");
        self.ends_in(&path);
        self.done(What::File(path), says, is_sure);
    }

    fn list(&mut self, list: &List<'_>) {
        for chain in &list.items {
            if self.is_spent {
                return;
            }
            match chain.in_background {
                true => {
                    self.apart(|finder| finder.perhaps(|finder| finder.chain(chain)));
                    // It may come after all that stands behind it.
                    self.begin = self.effects.len();
                }
                false => self.chain(chain),
            }
            if self.over.is_some() {
                return;
            }
        }
    }

    fn pipeline(&mut self, pipeline: &Pipeline<'_>) {
        let [command] = pipeline.commands.as_slice() else {
            // Each is a process of its own.
            let mut said = String::new();
            for command in &pipeline.commands {
                let before = std::mem::take(&mut said);
                self.apart(|finder| said = finder.one(command, &before, true));
                if is_filter(command) && !before.is_empty() {
                    said = before;
                }
            }
            return;
        };
        self.one(command, "", false);
    }

    /// One command, which reads what the one before says. What it says itself, where another one hears it.
    fn one(&mut self, command: &Command<'_>, before: &str, is_heard: bool) -> String {
        self.stands_at(command.line);
        let says = match &command.kind {
            Kind::Simple { assigned, words } if !is_heard && self.only_reads(words, command) => {
                if self.spend(1 + assigned.len() + words.len()) {
                    self.outputs(assigned.iter().chain(words));
                    // What stands in an array (`declare -A x=([vm.swappiness]=60)`) is no part of a word.
                    let arrays = words.iter().filter(|word| word.raw.contains("=("));
                    self.reads.extend(assigned.iter().chain(arrays).map(|word| word.raw.to_owned()));
                    self.unfilled.push(words.iter().map(|word| word.parts.clone()).collect());
                }
                return String::new();
            }
            Kind::Simple { assigned, words } => return self.simple(assigned, words, command, before),
            Kind::Function { name, body } => {
                let offset = self.at.offset.map(|offset| offset + body.line - 1);
                let at = Spot { offset, ..self.at.clone() };
                self.changes += 1;
                self.bodies.push(Rc::new(Body { name: (*name).to_owned(), text: body.raw.to_owned(), at }));
                return String::new();
            }
            Kind::Test(words) => {
                self.outputs(words.iter());
                self.reads.push(command.raw.to_owned());
                String::new()
            }
            Kind::For { words, body, .. } => {
                let words = words.iter().flat_map(|(words, _)| words);
                self.outputs(words.clone());
                self.reads.extend(words.map(|word| word.raw.to_owned()));
                self.perhaps(|finder| finder.list(body));
                without_redirects(command)
            }
            Kind::Subshell(list) => {
                self.apart(|finder| finder.list(list));
                without_redirects(command)
            }
            Kind::Group(list) => {
                self.list(list);
                without_redirects(command)
            }
            Kind::If(branches) => {
                let has_else = branches.last().is_some_and(|(condition, _)| condition.is_none());
                self.one_of(branches.iter().map(|(condition, then)| (condition.as_ref(), then)), !has_else);
                without_redirects(command)
            }
            Kind::Case { arms, .. } => {
                self.one_of(arms.iter().map(|(_, list)| (None, list)), true);
                without_redirects(command)
            }
            _ => {
                lists_in(command).into_iter().for_each(|list| self.perhaps(|finder| finder.list(list)));
                without_redirects(command)
            }
        };
        self.stands_at(command.line);
        self.redirects(&command.redirects, &says);
        says
    }

    /// Whether a command only reads, whatever its words come to, and tells nobody but people.
    fn only_reads(&self, words: &[Word<'_>], command: &Command<'_>) -> bool {
        let name = words.first().and_then(Word::plain).unwrap_or_default();
        only_reads(name)
            && !self.functions.contains(name)
            && command.redirects.iter().all(|redirect| !redirect.operator.contains('>') || is_aside(redirect))
    }

    fn simple(
        &mut self,
        assigned: &[Word<'_>],
        words: &[Word<'_>],
        command: &Command<'_>,
        before: &str,
    ) -> String {
        if !self.spend(1 + assigned.len() + words.len()) {
            return String::new();
        }
        self.outputs(assigned.iter().chain(words));
        self.reads.extend(assigned.iter().map(|word| word.raw.to_owned()));
        let filled: Vec<Filled> = words.iter().map(|word| self.filled(&word.parts, 0)).collect();
        let fields: Vec<String> = filled.iter().flat_map(|filled| filled.values.iter().cloned()).collect();
        let is_one = filled.iter().all(|filled| filled.values.len() == 1 && filled.is_sure);
        let says = if is_one { fields.join(" ") } else { without_redirects(command) };
        // What only may be a word of it may be written.
        let was_doubtful = self.is_doubtful;
        self.is_doubtful |= !filled.iter().all(|filled| filled.is_sure || filled.is_one_key());
        self.input = self.input_of(&command.redirects);
        self.command(&fields, &says, before);
        (self.is_doubtful, self.input) = (was_doubtful, None);
        self.redirects(&command.redirects, &says);
        says
    }

    /// What a command reads, by its redirections.
    fn input_of(&self, redirects: &[Redirect<'_>]) -> Option<Input> {
        let is_input = |redirect: &&Redirect<'_>| {
            redirect.operator.starts_with('<') && matches!(redirect.descriptor, None | Some("0"))
        };
        let redirect = redirects.iter().rfind(is_input)?;
        let one = || self.filled(&redirect.target.parts, 0).values.into_iter().next();
        match redirect.operator {
            "<" => one().map(Input::File),
            "<<<" => one().map(Input::Text),
            _ => self.documents.get(redirect.document?).cloned().map(Input::Text),
        }
    }

    fn redirects(&mut self, redirects: &[Redirect<'_>], says: &str) {
        for redirect in redirects {
            self.outputs(std::iter::once(&redirect.target));
            if !redirect.operator.contains('>') || is_aside(redirect) {
                continue;
            }
            let is_plain = matches!(redirect.descriptor, None | Some("1"));
            let filled = self.filled(&redirect.target.parts, 0);
            for name in &filled.values {
                self.written(name, if is_plain { says } else { "" }, is_plain && filled.is_sure);
            }
        }
    }

    /// Commands whose output is a part of words.
    fn outputs<'w>(&mut self, words: impl Iterator<Item = &'w Word<'w>>) {
        for part in words.flat_map(|word| &word.parts) {
            if let Part::Output { commands } = part {
                self.apart(|finder| finder.script(commands));
            }
        }
    }

    /// A program with its words. `says` is what it writes where it is asked to, and `before` what it reads.
    fn command(&mut self, fields: &[String], says: &str, before: &str) {
        let Some(first) = fields.first() else { return };
        if self.functions.contains(first) {
            self.named(fields.join(" "));
            self.call(first);
            return;
        }
        match first.as_str() {
            "exit" => self.over = Some("exit"),
            "return" if !self.running.is_empty() => self.over = Some("return"),
            // Nothing comes behind another program in the place of this one.
            "exec" if fields.len() > 1 => self.over = Some("exit"),
            _ => {}
        }
        let Some(Started { place, program, gets, other, is_cut, looked_at }) = started(fields) else {
            return;
        };
        if is_cut {
            self.left_out();
        }
        if !self.spend(looked_at) {
            return;
        }
        let Place { is_of_another, has_other_network, root, folder } = place;
        let was = (self.is_doubtful, self.has_other_network);
        // Which settings a root has mounted, nobody here knows.
        self.is_doubtful |= is_of_another || root.is_some();
        self.has_other_network |= has_other_network;
        let run = |finder: &mut Self| match gets {
            true => finder.with_more(program, fields, says, before),
            false => finder.program(program, fields, says, before),
        };
        match (root, folder) {
            (None, None) => run(self),
            (root, folder) => self.apart(|finder| {
                let was = finder.root.clone();
                if let Some(root) = root {
                    finder.root += &plain(&below(finder.folder.as_deref(), &root)).0;
                    finder.folder = Some("/".to_owned());
                }
                if let Some(folder) = folder {
                    finder.go_to(&folder);
                }
                run(finder);
                finder.root = was;
            }),
        }
        if let Some(other) = other.filter(|_| !self.is_guess) {
            let over = self.over;
            (self.is_guess, self.is_doubtful) = (true, true);
            self.apart(|finder| finder.command(other, says, before));
            (self.is_guess, self.over) = (false, over);
        }
        (self.is_doubtful, self.has_other_network) = was;
    }

    /// A program that is given more words than these, which `xargs` reads.
    fn with_more(&mut self, program: Program, fields: &[String], says: &str, before: &str) {
        if matches!(program, Program::Reads) {
            return self.reads.push(fields.join(" "));
        }
        if self.with_mark(fields, says, before) {
            return;
        }
        // A program that nobody here knows is given names, and no place to write to.
        self.is_open |= !matches!(program, Program::Unknown | Program::Input | Program::File { .. });
        self.named(format!("{} {before}", fields.join(" ")));
        self.program(program, fields, says, before);
    }

    fn program(&mut self, program: Program, fields: &[String], says: &str, before: &str) {
        let told = || fields.join(" ");
        match program {
            Program::Reads => self.reads.push(told()),
            Program::Unknown => self.named(told()),
            Program::File { name, way } => {
                self.named(told());
                if !self.follow(&name, way) && way == Way::Run {
                    self.perhaps_start(fields);
                }
            }
            Program::Parts { folder, is_sure } => self.parts(&folder, is_sure),
            Program::Profile(names) => self.push(What::Profile(names), "", false),
            Program::Writes { files, copies } => {
                let says = if copies { says } else { before };
                files.iter().for_each(|file| self.written(file, says, true));
            }
            Program::Sysctl(words) => self.sysctl(&words),
            Program::Shell { text, is_doubtful } => {
                let was = self.is_doubtful;
                self.is_doubtful |= is_doubtful;
                match fields.first().is_some_and(|first| first == "eval") {
                    true => self.script(&text),
                    false => self.apart(|finder| finder.script(&text)),
                }
                self.is_doubtful = was;
            }
            Program::Input => {
                self.named(told());
                match self.input.take() {
                    Some(Input::File(name)) => _ = self.follow(&name, Way::Shell),
                    Some(Input::Text(text)) => self.apart(|finder| finder.script(&text)),
                    None => {}
                }
            }
            Program::Finds { folders, name, runs } => {
                let runs_what = runs.as_ref().and_then(|runs| started(runs)).map(|started| started.program);
                let only_reads = matches!(runs_what, Some(Program::Reads));
                if only_reads {
                    return self.reads.push(told());
                }
                let found = folders.iter().map(|folder| plain(&below(self.folder.as_deref(), folder)).0);
                let found: Vec<(String, String)> = found.map(|folder| (folder, name.clone())).collect();
                if runs.is_none() {
                    self.finds.extend(found);
                    return self.reads.push(told());
                }
                found.into_iter().for_each(|(folder, name)| self.maybe_below(folder, name));
                self.named(told());
                self.on_found(&runs.unwrap_or_default());
            }
            Program::AtExit(text) => self.at_exit_run(text),
            Program::Folder(name) => self.go_to(&name),
        }
    }

    /// Has a text run at the end, or none: in place of those before it, unless a condition decides.
    fn at_exit_run(&mut self, text: String) {
        if !self.is_conditional {
            self.at_exit.clear();
        }
        self.at_exit.extend(Some(text).filter(|text| !text.is_empty()));
    }

    /// Goes to another folder, as `cd` does.
    fn go_to(&mut self, name: &str) {
        let to = match name {
            "-" => self.left.clone(),
            "" => Some("/root".to_owned()),
            name => Some(plain(&below(self.folder.as_deref(), name)).0),
        };
        self.left = std::mem::replace(&mut self.folder, to);
    }
}

/// Whether what a redirection writes is nothing that a command says, or goes where another one does.
fn is_aside(redirect: &Redirect<'_>) -> bool {
    let is_number = redirect.target.raw == "-" || redirect.target.raw.parse::<u32>().is_ok();
    redirect.operator.ends_with('&') && is_number || redirect.descriptor == Some("2")
}

/// The file of the kernel that something is written to, and no other.
fn of_kernel(what: &What) -> Option<String> {
    let path = match what {
        What::File(path) => path.clone(),
        What::Key(key) => of_key(key),
        What::Load(_) | What::LoadAll | What::Named(_) | What::Profile(_) | What::Below(..) => return None,
    };
    let is_one = !path.contains(['*', '?', '[']);
    (is_one && ["/proc/", "/sys/"].iter().any(|folder| path.starts_with(folder))).then_some(path)
}

/// Whether something is written to this file of the kernel.
fn is_at(what: &What, place: &str) -> bool {
    match what {
        What::File(path) => path == place,
        What::Key(key) => of_key(key) == place,
        What::Load(_) | What::LoadAll | What::Named(_) | What::Profile(_) | What::Below(..) => false,
    }
}

/// Whether something is written that may be another one in another network: there `/sys` is mounted anew, and has none
/// of what is mounted below it here (`ip-netns(8)`).
fn may_be_of_network(what: &What) -> bool {
    const OTHERS: [&str; 4] = ["/proc/sys/", "/sys/kernel/mm/", "/sys/devices/system/", "/sys/block/"];
    let is_open = |part: &str| part == "net" || part.contains(['*', '?', '[']);
    !of_kernel(what).is_some_and(|path| {
        OTHERS.iter().any(|folder| path.starts_with(folder)) && !path.split('/').any(is_open)
    })
}

/// The here-documents of a script, each as a text.
fn documents_of(script: &Script<'_>) -> Vec<String> {
    let text = |lines: &Document<'_>| lines.iter().map(|(_, line)| *line).collect::<Vec<_>>().join("\n");
    script.documents.iter().map(text).collect()
}

fn loaded(effect: &Effect) -> Option<String> {
    match &effect.what {
        What::Load(path) => Some(path.clone()),
        _ => None,
    }
}

/// A command as it stands there, up to its first redirection.
fn without_redirects(command: &Command<'_>) -> String {
    let cut = |text: &str, redirect: &Redirect<'_>| text.rfind(redirect.operator).unwrap_or(text.len());
    let ends = command.redirects.iter().rev();
    let end = ends.fold(command.raw.len(), |end, redirect| cut(&command.raw[..end], redirect));
    command.raw[..end].trim_end().to_owned()
}

fn commands_of<'l, 't>(list: &'l List<'t>) -> impl Iterator<Item = &'l Command<'t>> {
    let pipelines = list.items.iter().flat_map(|chain| {
        std::iter::once(&chain.first).chain(chain.rest.iter().map(|(_, pipeline)| pipeline))
    });
    pipelines.flat_map(|pipeline| &pipeline.commands)
}

/// The lists that a command holds.
fn lists_in<'c, 't>(command: &'c Command<'t>) -> Vec<&'c List<'t>> {
    match &command.kind {
        Kind::Simple { .. } | Kind::Test(_) | Kind::Sum(_) => Vec::new(),
        Kind::Group(list) | Kind::Subshell(list) => vec![list],
        Kind::If(branches) => {
            branches.iter().flat_map(|(condition, then)| condition.iter().chain([then])).collect()
        }
        Kind::While { condition, body, .. } => vec![condition, body],
        Kind::For { body, .. } => vec![body],
        Kind::Case { arms, .. } => arms.iter().map(|(_, list)| list).collect(),
        Kind::Function { body, .. } => lists_in(body),
    }
}

mod branches;
mod calls;
mod follow;
mod listed;
mod paths;
mod sysctl;
mod values;

#[cfg(test)]
mod tests;
