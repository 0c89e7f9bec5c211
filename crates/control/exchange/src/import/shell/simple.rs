//! One command: what the shell itself does by it, a function of the script, or a program.

use super::expand::{Field, Filler, Value, is_argument};
use super::guard::{Ends, Outcome, Term, mounted, tested};
use super::walk::{Flow, Passed, Plain, Ran, Reach, Walker, is_of_kernel, reads, takes_output, walk_under};
use crate::import::{script, written};
use planish_formats::shell::{Command, Part, Redirect, Word, is_name};

/// Why a command is refused of which a word is not known.
const UNKNOWN: &str = "a variable or command that only a shell can tell";

impl<'t> Walker<'t, '_, '_> {
    /// The text of here-documents, which no line of is run.
    pub(super) fn tell_documents(&mut self, redirects: &[Redirect<'_>], line: usize) {
        let documents = self.documents;
        for lines in redirects.iter().filter_map(|redirect| documents.get(redirect.document?)) {
            for (number, text) in lines.iter().filter(|(_, text)| !text.trim().is_empty()) {
                self.refuse(
                    *number,
                    text,
                    &format!("text of the here-document of line {line}: nothing of it is run"),
                );
            }
        }
    }

    pub(super) fn simple(
        &mut self,
        assigned: &'t [Word<'t>],
        words: &'t [Word<'t>],
        redirects: &'t [Redirect<'t>],
        line: usize,
        raw: &'t str,
        is_alone: bool,
    ) -> Ran {
        if !self.may_run(line, raw) {
            return Ends::hoped(raw).into();
        }
        let mut filler = Filler { variables: &mut self.variables, unset: None };
        let fields: Vec<Field> = words.iter().flat_map(|word| filler.fields(word)).collect();
        let (mut to, mut odd) = (Vec::new(), None);
        for redirect in redirects.iter().filter(|redirect| takes_output(redirect)) {
            match redirect.operator {
                ">" | ">>" | ">|" => to.extend(filler.fields(&redirect.target)),
                ">&" if redirect.target.raw == "2" => odd = odd.or(Some("")),
                _ => odd = Some("goes to a file in a way that only some shells know"),
            }
        }
        for word in assigned {
            let Some((name, value)) = word.assigned() else { continue };
            let value = filler.value(&value);
            // For a command it counts while that is run, or longer.
            let value = if words.is_empty() { value } else { Value::Maybe };
            filler.variables.insert(name.to_owned(), value);
        }
        let unset = filler.unset.take().or_else(|| self.unset_in(redirects));
        let all = assigned.iter().chain(words).chain(redirects.iter().map(|redirect| &redirect.target));
        let outputs: Vec<&str> = all.flat_map(|word| &word.parts).filter_map(commands).collect();
        if outputs.iter().any(|commands| sets_something(commands)) {
            self.refuse(line, raw, "sets something inside of what another command gets: take it by hand");
        }
        let appends = redirects.iter().any(|redirect| redirect.operator == ">>" && takes_output(redirect));
        let passed = self.passed(&fields, &to, appends, redirects);
        if passed.is_none() {
            self.tell_documents(redirects, line);
        }
        if passed.is_none() && !fields.first().is_some_and(|field| is_talk(&field.text)) {
            self.doubt_files(&to, line);
        }
        let is_told = if odd == Some("") && to.is_empty() { true } else { odd.is_none() && to.len() < 2 };
        let ran = if fields.is_empty() {
            self.without_program(&to, &outputs, line, raw)
        } else if !is_told {
            self.doubt_files(&to, line);
            self.refuse(line, raw, odd.filter(|odd| !odd.is_empty()).unwrap_or("goes to several files"));
            Ends::hoped(raw).into()
        } else {
            let plain = passed.map_or(
                Plain { line, text: raw, words: fields, to, appends, document: None },
                |(words, to, appends, document)| Plain {
                    line,
                    text: raw,
                    words,
                    to,
                    appends,
                    document: Some(document),
                },
            );
            let terms: Vec<Term> = reads(redirects).into_iter().collect();
            self.under(terms, |walker| walker.with_program(plain, is_alone))
        };
        self.at_unset(unset, ran)
    }

    /// What `cat > FILE <<END` and `tee FILE <<END` pass on to a file that is read: words, file and text.
    fn passed(
        &self,
        fields: &[Field],
        to: &[Field],
        appends: bool,
        redirects: &[Redirect<'t>],
    ) -> Option<(Vec<Field>, Vec<Field>, bool, Passed<'t>)> {
        let document = self.document(redirects)?;
        let words = script::bare(fields.to_vec());
        let texts: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
        let (file, appends) = match (texts.as_slice(), to) {
            (["cat"] | ["cat", "-"], [file]) => (file, appends),
            (["tee", _], []) => (&words[1], false),
            (["tee", "-a" | "--append", _], []) => (&words[2], true),
            _ => return None,
        };
        if !is_followed(file) || self.functions.contains_key(&fields[0].text) || self.named.contains(texts[0])
        {
            return None;
        }
        let cat = Field { text: "cat".to_owned(), is_known: true, ..Field::default() };
        Some((vec![cat], vec![file.clone()], appends, document))
    }

    /// Files that something goes to which is not followed.
    pub(super) fn doubt_files(&mut self, to: &[Field], line: usize) {
        if to.iter().any(|file| !file.is_known) {
            self.doubt_all(line);
        }
        self.doubt(line, to.iter().map(|file| file.text.as_str()));
    }

    /// The here-document that a command is given, where nothing else is.
    pub(super) fn document(&self, redirects: &[Redirect<'t>]) -> Option<Passed<'t>> {
        let redirect = redirects.iter().find(|redirect| redirect.document.is_some())?;
        if redirects.iter().filter(|redirect| redirect.operator.starts_with('<')).count() > 1 {
            return None;
        }
        let said: &'t [(usize, &'t str)] = self.documents.get(redirect.document?)?;
        Some(Passed { said, is_quoted: redirect.target.plain().is_none() })
    }

    /// `name=value`, or a redirection alone.
    fn without_program(&mut self, to: &[Field], outputs: &[&str], line: usize, raw: &str) -> Ran {
        if to.iter().any(|field| !field.is_known || is_of_kernel(&field.text)) {
            self.refuse(line, raw, "writes nothing");
        }
        let last = outputs.last().and_then(|commands| commands.rsplit('|').next());
        match last.map(|commands| commands.split_whitespace().collect::<Vec<_>>()) {
            None => Ends::always(raw).into(),
            Some(words) if script::is_doing(&words) => Ends::hoped(raw).into(),
            Some(_) => self.at_failure(Ends::asked(raw)),
        }
    }

    fn with_program(&mut self, plain: Plain<'_>, is_alone: bool) -> Ran {
        let raw = plain.text;
        let first = plain.words[0].text.clone();
        if !plain.words[0].is_known {
            self.refuse(plain.line, raw, UNKNOWN);
            self.doubt_all(plain.line);
            return self.at_failure(Ends::asked(raw));
        }
        if let Some(body) = self.functions.get(&first).copied() {
            return self.call(&first, body, &plain);
        }
        if let Some(ran) = self.of_shell(&first, &plain) {
            return ran;
        }
        let words = script::bare(plain.words);
        let ends = self.program(Plain { words, ..plain }, is_alone);
        self.at_failure(ends)
    }

    /// A function of the script, which is run where it is called.
    fn call(&mut self, name: &str, body: Option<&'t Command<'t>>, plain: &Plain<'_>) -> Ran {
        let why = match body {
            None => format!("function or alias {name} may be this one or another: take it by hand"),
            Some(_) if self.calls.iter().any(|call| call == name) => format!("function {name} calls itself"),
            Some(_) if self.calls.len() > 16 => {
                "calls functions deeper than any script of settings".to_owned()
            }
            Some(_) if !plain.to.is_empty() => format!("what function {name} says goes to a file"),
            Some(body) => {
                if !self.is_dry {
                    self.run.insert(std::ptr::from_ref(body));
                }
                self.calls.push(name.to_owned());
                let before = std::mem::take(&mut self.locals);
                let loops_here = std::mem::take(&mut self.loops_here);
                let outer = self.take_arguments();
                self.give_arguments(&plain.words[1..]);
                let ran = self.command(body);
                drop(self.take_arguments());
                self.variables.extend(outer);
                self.loops_here = loops_here;
                for local in std::mem::replace(&mut self.locals, before) {
                    self.variables.insert(local, Value::Maybe);
                }
                self.calls.pop();
                return Ran { flow: ran.flow.beyond(Reach::Function), ..ran };
            }
        };
        self.forget_all();
        self.doubt_all(plain.line);
        self.refuse(plain.line, plain.text, &why);
        self.may_end(plain)
    }

    /// The values of `$1` and the rest, which a function has its own of.
    fn take_arguments(&mut self) -> Vec<(String, Value)> {
        let names: Vec<String> = self.variables.keys().filter(|name| is_argument(name)).cloned().collect();
        names.into_iter().filter_map(|name| self.variables.remove_entry(&name)).collect()
    }

    /// Gives a function its words. Behind one that is not known nobody can tell the number of another.
    fn give_arguments(&mut self, words: &[Field]) {
        let known = words.iter().take_while(|word| word.is_known && !word.is_glob);
        for (index, word) in known.enumerate() {
            let value = Value::Known { text: word.text.clone(), is_pattern: word.is_pattern };
            self.variables.insert((index + 1).to_string(), value);
        }
    }

    /// `shift`, `set -- WORD`: which arguments there are then is not followed.
    fn change_arguments(&mut self, words: &[&str]) {
        let is_argument = |word: &&str| *word == "--" || *word == "-" || !word.starts_with(['-', '+']);
        if words[0] == "shift" || words[0] == "set" && words[1..].iter().any(is_argument) {
            drop(self.take_arguments());
        }
    }

    /// What nothing is known of may end the script, too.
    fn may_end(&self, plain: &Plain<'_>) -> Ran {
        let term = Term::unsure(&format!("`{}` of line {} does not end the script", plain.text, plain.line));
        Ran { ends: Ends::asked(plain.text), flow: Flow::If(vec![(Reach::Script, term)]) }
    }

    /// What the shell does by itself; `None` for a program.
    fn of_shell(&mut self, name: &str, plain: &Plain<'_>) -> Option<Ran> {
        let (line, raw) = (plain.line, plain.text);
        let words: Vec<&str> = plain.words.iter().map(|word| word.text.as_str()).collect();
        let ended = |reach| {
            let why = format!("never runs: `{raw}` of line {line} stands before it");
            Some(Ran { ends: Ends::always(raw), flow: Flow::Ended(reach, why) })
        };
        let unclear = || {
            let term = Term::unsure(&format!("a shell goes on behind `{raw}` of line {line}"));
            Some(Ran { ends: Ends::always(raw), flow: Flow::If(vec![(Reach::Script, term)]) })
        };
        match name {
            ":" | "true" | "cd" | "pushd" | "popd" | "umask" | "wait" => Some(Ends::always(raw).into()),
            "false" => Some(self.at_failure(Ends::never(raw))),
            "[" | "test" => {
                let fields = plain.words.strip_suffix(&[bracket()]).unwrap_or(&plain.words);
                Some(self.at_failure(tested(raw, &fields[1..])))
            }
            "mountpoint" => Some(self.at_failure(mounted(raw, &words))),
            "exit" | "kill" if name == "exit" || words.contains(&"$$") || raw.contains("$$") => {
                ended(Reach::Script)
            }
            "reboot" | "poweroff" | "halt" | "shutdown" => {
                self.refuse(line, raw, "ends the machine, and the script with it");
                ended(Reach::Script)
            }
            "return" if !self.calls.is_empty() => ended(Reach::Function),
            "break" | "continue" if self.loops == 0 => Some(Ends::always(raw).into()),
            // Some shells go on behind it, and others do not.
            "return" => unclear(),
            "break" | "continue" if self.loops_here == 0 || words.len() > 1 => unclear(),
            "break" => ended(Reach::Loop),
            "continue" => ended(Reach::Round),
            "exec" => match self.exec(plain) {
                true => ended(Reach::Script),
                false => Some(Ends::always(raw).into()),
            },
            "set" | "shift" | "shopt" => {
                self.change_arguments(&words);
                Some(self.set(&words, raw, line))
            }
            "trap" => Some(self.trap(line, raw, &words)),
            "alias" => {
                for (name, _) in words[1..].iter().filter_map(|word| word.split_once('=')) {
                    self.functions.insert(name.to_owned(), None);
                }
                Some(Ends::always(raw).into())
            }
            "eval" | "." | "source" => {
                self.forget_all();
                self.doubt_all(line);
                let why = match name {
                    "eval" => "runs what only a shell can tell",
                    _ => "runs another file: import that one, too",
                };
                self.refuse(line, raw, why);
                Some(if name == "eval" { self.may_end(plain) } else { self.at_failure(Ends::asked(raw)) })
            }
            "declare" | "export" | "getopts" | "let" | "local" | "mapfile" | "read" | "readarray"
            | "readonly" | "typeset" | "unset" => Some(self.change(name, plain)),
            "printf" if words.get(1).is_some_and(|word| word.starts_with("-v")) => {
                Some(self.change(name, plain))
            }
            "sh" | "bash" | "dash" | "/bin/sh" | "/bin/bash" | "sudo" => self.script_in_script(plain),
            _ => None,
        }
    }

    /// `trap 'COMMANDS' SIGNAL ..`.
    fn trap(&mut self, line: usize, raw: &str, words: &[&str]) -> Ran {
        if super::trap::is_run_at_an_end(words) {
            let commands = words.get(1).copied().unwrap_or_default().to_owned();
            self.traps.push(super::trap::Trap { line, raw: raw.to_owned(), commands });
        }
        self.refuse(line, raw, "runs at a signal or at the end: take it by hand if it is meant");
        Ends::always(raw).into()
    }

    /// `exec PROGRAM`, behind which nothing is run, or where the output of all that follows goes.
    fn exec(&mut self, plain: &Plain<'_>) -> bool {
        if plain.words.len() > 1 {
            let rest =
                Plain { words: script::bare(plain.words[1..].to_vec()), to: plain.to.clone(), ..*plain };
            self.program(rest, false);
            return true;
        }
        if plain.to.iter().any(|field| !field.is_known || is_of_kernel(&field.text)) {
            self.refuse(plain.line, plain.text, "what several commands say: only a shell can tell");
        }
        false
    }

    /// `set -e`, `shopt -s nullglob`.
    fn set(&mut self, words: &[&str], raw: &str, line: usize) -> Ran {
        let mut named = false;
        for word in words.iter().skip(1) {
            let is_on = !word.starts_with('+');
            let letters = word.strip_prefix(['-', '+']).unwrap_or_default();
            let has = |letter: char, name: &str| letters.contains(letter) || named && *word == name;
            if has('e', "errexit") {
                self.options.ends_at_failure = is_on;
            }
            if has('u', "nounset") {
                self.options.ends_at_unset = is_on;
            }
            if has('f', "noglob") || words[0] == "shopt" && word.ends_with("glob") {
                self.options.may_glob_nothing = true;
            }
            if words[0] == "set" && is_on && has('n', "noexec") {
                let why = format!("never runs: `{raw}` of line {line} stands before it");
                return Ran { ends: Ends::always(raw), flow: Flow::Ended(Reach::Script, why) };
            }
            if word.starts_with("--") || !word.starts_with(['-', '+']) && !named {
                break;
            }
            named = letters.ends_with('o');
        }
        Ends::always(raw).into()
    }

    /// Commands of the shell that change variables.
    fn change(&mut self, name: &str, plain: &Plain<'_>) -> Ran {
        let is_plain = !plain
            .words
            .iter()
            .skip(1)
            .any(|word| word.text.starts_with('-') || !word.is_known && !word.text.contains('='));
        for word in &plain.words[1..] {
            let (variable, value) = match word.text.split_once('=') {
                Some((variable, value)) => (variable.trim_end_matches('+'), Some(value)),
                None => (word.text.as_str(), None),
            };
            if !is_name(variable) {
                continue;
            }
            if ["declare", "local", "typeset"].contains(&name) {
                self.locals.push(variable.to_owned());
            }
            let is_same = word.is_known && !word.is_glob && is_plain && !word.text.contains("+=");
            match (name, value) {
                ("unset", _) => drop(self.variables.remove(variable)),
                ("export" | "local" | "readonly", Some(text)) if is_same => {
                    let known = Value::Known { text: text.to_owned(), is_pattern: word.is_pattern };
                    self.variables.insert(variable.to_owned(), known);
                }
                ("export" | "readonly", None) => {}
                ("declare" | "local" | "typeset", None) => {
                    drop(self.variables.insert(variable.to_owned(), Value::Maybe));
                }
                _ => drop(self.variables.insert(variable.to_owned(), Value::Set)),
            }
        }
        if name == "let" || !is_plain && name != "unset" {
            self.forget_all();
        }
        match name {
            "read" | "getopts" | "let" => self.at_failure(Ends::asked(plain.text)),
            _ => Ends::always(plain.text).into(),
        }
    }

    /// `sh -c 'echo 1 > FILE'`, a script of its own.
    fn script_in_script(&mut self, plain: &Plain<'_>) -> Option<Ran> {
        let words = script::bare(plain.words.clone());
        let [shell, option, script, ..] = words.as_slice() else { return None };
        let is_shell = ["sh", "bash", "dash"].contains(&shell.text.as_str()) && option.text == "-c";
        if !is_shell || !script.is_known || script.is_pattern || self.depth > 3 || !plain.to.is_empty() {
            return None;
        }
        if !self.is_dry {
            let text = "\n".repeat(plain.line.saturating_sub(1)) + &script.text;
            walk_under(&text, self.collector, self.terms.clone(), self.depth + 1);
        }
        Some(self.at_failure(Ends::asked(plain.text)))
    }

    /// Why a program is not sure to be run, or not known.
    fn why_not(&self, plain: &Plain<'_>) -> Option<String> {
        let is_never_sure = self.terms.iter().find(|term| !matches!(term, Term::Place { .. }));
        if let Some(why) = is_never_sure.and_then(|term| term.refuses(&[])) {
            return Some(why);
        }
        if plain.words.iter().chain(&plain.to).any(|field| !field.is_known) {
            return Some(UNKNOWN.to_owned());
        }
        let places = script::places(plain).unwrap_or_else(|| vec![super::Place::Mount(String::new())]);
        self.terms.iter().find_map(|term| term.refuses(&places))
    }

    /// Refuses a program with the text that it passes on; files that it may name are not sure any more.
    fn refuse_program(&mut self, plain: &Plain<'_>, why: &str) {
        self.refuse(plain.line, plain.text, why);
        for (number, text) in plain.document.iter().flat_map(|document| document.said) {
            if !text.trim().is_empty() {
                self.refuse(*number, text, why);
            }
        }
        let words = plain.words.iter().chain(&plain.to);
        if words.clone().any(|field| !field.is_known) {
            let texts: Vec<&str> = plain.words.iter().map(|word| word.text.as_str()).collect();
            let is_told = |to: &Field| to.is_known || to.is_within_kernel();
            let is_of_any = !plain.to.iter().all(is_told) || !script::sets_by_its_words(texts[0]);
            if is_of_any && !written::leaves(&texts) {
                self.doubt_all(plain.line);
            }
        }
        self.doubt(plain.line, words.map(|field| field.text.as_str()));
    }

    /// A program, where nothing stands in its way.
    pub(super) fn program(&mut self, plain: Plain<'_>, is_alone: bool) -> Ends {
        let (line, raw) = (plain.line, plain.text);
        let words: Vec<&str> = plain.words.iter().map(|word| word.text.as_str()).collect();
        if is_talk(words[0]) && plain.to.is_empty() {
            if is_alone {
                self.refuse(line, raw, "only talks");
            }
            return Ends::always(raw);
        }
        let ends = if script::is_doing(&words) { Ends::hoped(raw) } else { Ends::asked(raw) };
        if let Some(why) = self.why_not(&plain) {
            self.refuse_program(&plain, &why);
            return ends;
        }
        if self.is_dry {
            return ends;
        }
        self.collector.repeats(self.loops > 0 || !self.calls.is_empty());
        let is_set = script::program_line(&plain, self.is_bash, self.collector);
        self.collector.repeats(false);
        if !is_set && plain.document.is_none() && !written::leaves(&words) && !is_talk(words[0]) {
            match words[0] {
                // It may name a unit, whose files it takes away or has an editor change.
                "systemctl" => self.doubt_all(line),
                _ => self.doubt(line, words.iter().copied()),
            }
        }
        if is_set && matches!(ends.badly, Outcome::Unlikely(_)) { Ends::done(raw) } else { ends }
    }
}

/// Whether a word is a file that is read when the script has ended.
pub(super) fn is_followed(file: &Field) -> bool {
    file.is_known && !file.is_glob && !file.is_pattern && written::reader_of(&file.text).is_some()
}

/// Whether a program says its words, and what it writes to a file is followed.
fn is_talk(program: &str) -> bool {
    ["echo", "printf"].contains(&program)
}

fn bracket() -> Field {
    Field { text: "]".to_owned(), is_known: true, ..Field::default() }
}

/// The commands of `$(..)`.
fn commands(part: &Part) -> Option<&str> {
    match part {
        Part::Output { commands } => Some(commands),
        _ => None,
    }
}

/// Whether commands whose output is taken may set something, as far as their words tell.
fn sets_something(commands: &str) -> bool {
    let writes = commands.contains("/proc/") || commands.contains("/sys/");
    let sysctl = commands.contains("sysctl") && commands.contains('=');
    sysctl
        || writes
            && (commands.contains(" > /")
                || commands.contains(">/proc")
                || commands.contains(">/sys")
                || commands.contains("tee "))
}
