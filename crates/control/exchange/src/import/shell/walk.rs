//! What a shell comes by, command by command.

use std::collections::{BTreeMap, BTreeSet};

use super::assigned::Assigned;
use super::expand::{Field, Filler, Value, Variables};
use super::guard::{BY_HAND, Ends, Outcome, Place, Term, tested};
use super::simple::is_followed;
use super::trap::{self, Trap, definitions};
use crate::import::collect::Collector;
use crate::import::script;
use crate::threads;
use planish_formats::shell::{
    Chain, Command, Document, Kind, Lexer, List, Pipeline, Redirect, Token, Word, parse,
};

/// What the loops and functions of a file may come to, all its scripts together: commands of every kind, the longer
/// the more. No tuning script comes to as many, and a hostile one must end.
const STEPS_MAX: usize = 4096;

/// Bytes of a command that count as one more of them.
const STEP_BYTES: usize = 1024;

/// Variables and functions whose copy counts as one.
const STEP_NAMES: usize = 256;

/// Ends before a command that may keep it from running: no tuning script has more.
const TERMS_MAX: usize = 256;

/// What behind so many ends must hold.
const MANY: &str = "none of so many conditions before it ends the script";

/// Why nothing is read behind so many.
const MORE: &str = "loops over more words than any script of settings has";

/// One command with what a shell puts in, without what only steers it.
pub(crate) struct Plain<'a> {
    pub(crate) line: usize,
    /// As it stands in the script.
    pub(crate) text: &'a str,
    pub(crate) words: Vec<Field>,
    /// The files that its output goes to.
    pub(crate) to: Vec<Field>,
    pub(crate) appends: bool,
    /// The here-document that it only passes on to a file.
    pub(crate) document: Option<Passed<'a>>,
}

/// A here-document as a file gets it.
#[derive(Clone, Copy)]
pub(crate) struct Passed<'a> {
    pub(crate) said: &'a [(usize, &'a str)],
    /// Its end is quoted: a shell puts in nothing.
    pub(super) is_quoted: bool,
}

impl Passed<'_> {
    /// Its lines; none where a shell would put something in.
    pub(crate) fn lines(&self) -> Option<Vec<(usize, String)>> {
        let is_plain = |text: &str| self.is_quoted || !text.contains(['$', '`', '\\']);
        let lines =
            self.said.iter().map(|(number, text)| is_plain(text).then(|| (*number, (*text).to_owned())));
        lines.collect()
    }
}

/// How far what ends a part of a script reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Reach {
    Round,
    Loop,
    Function,
    Script,
}

/// Whether a shell goes on behind a command.
#[derive(Clone, Debug)]
pub(super) enum Flow {
    On,
    Ended(Reach, String),
    /// Only if these hold, up to their reach.
    If(Vec<(Reach, Term)>),
}

/// A command that was run.
pub(super) struct Ran {
    pub(super) ends: Ends,
    pub(super) flow: Flow,
}

impl From<Ends> for Ran {
    fn from(ends: Ends) -> Self {
        Self { ends, flow: Flow::On }
    }
}

#[derive(Clone, Copy, Default)]
pub(super) struct Options {
    /// `set -e`: the script ends where a command fails.
    pub(super) ends_at_failure: bool,
    /// `set -u`: it ends where a variable is not set.
    pub(super) ends_at_unset: bool,
    /// `shopt -s nullglob`, or `set -f`: a pattern may go through nothing.
    pub(super) may_glob_nothing: bool,
}

pub(super) struct Walker<'t, 'c, 'k> {
    pub(super) collector: &'c mut Collector<'k>,
    pub(super) documents: &'t [Document<'t>],
    pub(super) variables: Variables,
    /// Bodies of those that are defined; one under a condition has none.
    pub(super) functions: BTreeMap<String, Option<&'t Command<'t>>>,
    /// Every name that a function or an alias has anywhere.
    pub(super) named: BTreeSet<&'t str>,
    /// Bodies that were run, by where they stand.
    pub(super) run: BTreeSet<*const Command<'t>>,
    pub(super) calls: Vec<String>,
    /// Variables of the functions that are run.
    pub(super) locals: Vec<String>,
    pub(super) terms: Vec<Term>,
    pub(super) options: Options,
    /// Depth of conditions, in which a failure ends nothing.
    pub(super) asked: usize,
    /// Depth of loops, whose lines are told once.
    pub(super) loops: usize,
    /// Those of this function and this shell of its own.
    pub(super) loops_here: usize,
    /// How many scripts this one stands in, by `sh -c`.
    pub(super) depth: usize,
    /// Whether the script asks for bash.
    pub(super) is_bash: bool,
    /// Nothing is collected: what a loop would do is looked at first.
    pub(super) is_dry: bool,
    pub(super) told: BTreeSet<(usize, String, String)>,
    /// What runs when the script ends, with the line that says so.
    pub(super) traps: Vec<Trap>,
}

/// Walks a script as a shell would run it once, as root and without arguments.
pub(crate) fn walk(text: &str, collector: &mut Collector<'_>) {
    walk_under(text, collector, Vec::new(), 0);
}

/// Walks a script under conditions; `depth` is how many scripts it stands in.
pub(super) fn walk_under(text: &str, collector: &mut Collector<'_>, terms: Vec<Term>, depth: usize) {
    let text = text.replace("\r\n", "\n");
    let script = parse(&text);
    let mut named = BTreeSet::new();
    let mut bodies = Vec::new();
    definitions(&script.list, &mut named, &mut bodies);
    let first = text.lines().next().filter(|line| line.starts_with("#!")).unwrap_or_default();
    let is_option = |word: &str| word.strip_prefix('-').is_some_and(|letters| letters.contains('e'));
    let ends_at_failure = first.split_whitespace().skip(1).any(is_option);
    let mut walker = Walker {
        collector,
        documents: &script.documents,
        is_bash: first.contains("bash"),
        variables: Variables::new(),
        functions: BTreeMap::new(),
        named,
        run: BTreeSet::new(),
        calls: Vec::new(),
        locals: Vec::new(),
        terms,
        options: Options { ends_at_failure, ..Options::default() },
        asked: 0,
        loops: 0,
        loops_here: 0,
        depth,
        is_dry: false,
        told: BTreeSet::new(),
        traps: Vec::new(),
    };
    walker.list(&script.list);
    walker.terms.clear();
    trap::doubt(&walker.traps, &bodies, &walker.variables, walker.collector);
    for (name, body) in bodies {
        if !walker.run.contains(&std::ptr::from_ref(body)) {
            let why = format!("in the body of function {name}, which nothing calls for sure: {BY_HAND}");
            walker.under(vec![Term::Never(why)], |walker| walker.command(body));
        }
    }
    if let Some(broken) = &script.broken {
        let why = format!("a shell cannot read on from line {}: {}", broken.line, broken.why);
        for (index, line) in text.lines().enumerate().skip(broken.line - 1) {
            if !line.trim().is_empty() && !line.trim_start().starts_with('#') {
                walker.collector.refuse(index + 1, line, why.clone());
            }
        }
    }
}

/// The flow of a branch as it is for what follows both: what ended in it goes on only where it is not taken.
fn of_branch(flow: Flow, other: &Outcome, line: usize) -> Flow {
    match flow {
        Flow::On => Flow::On,
        Flow::Ended(reach, _) => {
            let terms = other.terms().into_iter().map(|term| match term {
                Term::Never(why) => (reach, Term::Unsure(why)),
                term => (reach, term),
            });
            Flow::If(terms.collect())
        }
        Flow::If(terms) => {
            let why = format!("the script goes on behind line {line}");
            Flow::If(terms.into_iter().map(|(reach, _)| (reach, Term::unsure(&why))).collect())
        }
    }
}

/// Both flows, one behind the other.
pub(super) fn both(one: Flow, other: Flow) -> Flow {
    match (one, other) {
        (Flow::On, flow) | (flow, Flow::On) => flow,
        (Flow::If(mut terms), Flow::If(more)) => {
            terms.extend(more);
            Flow::If(terms)
        }
        (Flow::Ended(reach, why), Flow::Ended(..)) => Flow::Ended(reach, why),
        (Flow::Ended(reach, why), Flow::If(mut terms)) | (Flow::If(mut terms), Flow::Ended(reach, why)) => {
            terms.push((reach, Term::Unsure(why)));
            Flow::If(terms)
        }
    }
}

impl Flow {
    /// What of it reaches beyond what ends here.
    pub(super) fn beyond(self, reach: Reach) -> Self {
        match self {
            Self::Ended(own, _) if own <= reach => Self::On,
            Self::If(mut terms) => {
                terms.retain(|(own, _)| *own > reach);
                if terms.is_empty() { Self::On } else { Self::If(terms) }
            }
            flow => flow,
        }
    }

    /// Whether it may leave what ends only by this reach.
    fn may_leave(&self, reach: Reach) -> bool {
        match self {
            Self::On => false,
            Self::Ended(own, _) => *own >= reach,
            Self::If(terms) => terms.iter().any(|(own, _)| *own >= reach),
        }
    }
}

impl<'t> Walker<'t, '_, '_> {
    /// Runs something under more terms than there are.
    pub(super) fn under<T>(&mut self, terms: Vec<Term>, run: impl FnOnce(&mut Self) -> T) -> T {
        let depth = self.terms.len();
        self.terms.extend(terms);
        let ran = run(self);
        self.terms.truncate(depth);
        ran
    }

    /// Runs something that is run where something else ended so. What it changes is not known behind it.
    fn branch(&mut self, taken: &Outcome, assigned: Assigned, run: impl FnOnce(&mut Self) -> Ran) -> Ran {
        if *taken == Outcome::Always {
            return run(self);
        }
        let before = self.copied();
        let ran = self.under(taken.terms(), run);
        let options = self.options;
        (self.variables, self.functions, self.options) = before;
        if taken.is_possible() {
            self.forget(assigned);
            self.options.ends_at_failure |= options.ends_at_failure;
            self.options.ends_at_unset |= options.ends_at_unset;
            self.options.may_glob_nothing |= options.may_glob_nothing;
        }
        ran
    }

    /// What a part of the script may change that is put back behind it.
    fn copied(&mut self) -> (Variables, BTreeMap<String, Option<&'t Command<'t>>>, Options) {
        self.collector.steps += (self.variables.len() + self.functions.len()) / STEP_NAMES;
        (self.variables.clone(), self.functions.clone(), self.options)
    }

    /// Counts a command, and refuses each line of it where loops and functions came to more than may be.
    pub(super) fn may_run(&mut self, line: usize, raw: &str) -> bool {
        if self.loops > 0 || !self.calls.is_empty() {
            self.collector.steps += 1 + raw.len() / STEP_BYTES;
        }
        let may_run = self.collector.steps <= STEPS_MAX;
        if !may_run {
            self.refuse_lines(line, raw);
        }
        may_run
    }

    fn refuse_lines(&mut self, line: usize, raw: &str) {
        let lines = raw.lines().enumerate().filter(|(_, text)| !text.trim().is_empty());
        lines.for_each(|(index, text)| self.refuse(line + index, text, MORE));
    }

    pub(super) fn forget(&mut self, assigned: Assigned) {
        if assigned.others {
            self.forget_all();
        }
        for name in assigned.names {
            let was_set = matches!(self.variables.get(&name), Some(Value::Known { .. } | Value::Set));
            let is_set = was_set && !assigned.removed.contains(&name);
            self.variables.insert(name, if is_set { Value::Set } else { Value::Maybe });
        }
    }

    pub(super) fn forget_all(&mut self) {
        for value in self.variables.values_mut().filter(|value| matches!(value, Value::Known { .. })) {
            *value = Value::Set;
        }
    }

    pub(super) fn refuse(&mut self, line: usize, text: &str, why: &str) {
        if self.is_dry {
            return;
        }
        let is_of_path = |c: char| c.is_ascii_alphanumeric() || "/._-@*".contains(c);
        self.doubt(line, text.split(|c| !is_of_path(c)));
        let key = (line, text.to_owned(), why.to_owned());
        if self.told.insert(key) {
            self.collector.refuse(line, text, why);
        }
    }

    /// Files that these words name may be changed, unless what stands here never runs.
    pub(super) fn doubt<'w>(&mut self, line: usize, words: impl Iterator<Item = &'w str> + Clone) {
        if !self.is_dry && !self.is_never() {
            self.collector.written.doubt(line, words);
        }
    }

    /// Any file may be changed, unless what stands here never runs.
    pub(super) fn doubt_all(&mut self, line: usize) {
        if !self.is_dry && !self.is_never() {
            self.collector.written.doubt_all(line);
        }
    }

    fn is_never(&self) -> bool {
        self.terms.iter().any(|term| matches!(term, Term::Never(_)))
    }

    fn list(&mut self, list: &'t List<'t>) -> Ran {
        let depth = self.terms.len();
        let (mut ends, mut flow) = (Ends::always(list.raw), Flow::On);
        for chain in &list.items {
            let ran = self.chain(chain);
            ends = ran.ends;
            match &ran.flow {
                Flow::On => {}
                _ if self.terms.len() > TERMS_MAX => self.terms.push(Term::unsure(MANY)),
                Flow::Ended(_, why) => self.terms.push(Term::Never(why.clone())),
                Flow::If(terms) => self.terms.extend(terms.iter().map(|(_, term)| term.clone())),
            }
            flow = match flow {
                Flow::Ended(..) => flow,
                other => both(other, ran.flow),
            };
        }
        self.terms.truncate(depth);
        if !matches!(flow, Flow::On) {
            ends = Ends::asked(list.raw);
        }
        Ran { ends, flow }
    }

    fn chain(&mut self, chain: &'t Chain<'t>) -> Ran {
        if self.collector.steps > STEPS_MAX {
            for pipeline in std::iter::once(&chain.first).chain(chain.rest.iter().map(|(_, one)| one)) {
                self.refuse_lines(pipeline.commands[0].line, pipeline.raw);
            }
            return Ends::asked("").into();
        }
        if chain.in_background {
            let why = format!("runs in the background, beside what follows: {BY_HAND}");
            let aside = |walker: &mut Self| walker.subshell(|walker| walker.pipelines(chain));
            self.under(vec![Term::Unsure(why)], aside);
            return Ends::always("&").into();
        }
        self.pipelines(chain)
    }

    fn pipelines(&mut self, chain: &'t Chain<'t>) -> Ran {
        let is_alone = chain.rest.is_empty();
        self.asked += usize::from(!is_alone);
        let mut ran = self.pipeline(&chain.first, is_alone);
        self.asked -= usize::from(!is_alone);
        let mut said = chain.first.raw.to_owned();
        for (index, (is_and, pipeline)) in chain.rest.iter().enumerate() {
            let is_last = index + 1 == chain.rest.len();
            let (taken, other) = match is_and {
                true => (ran.ends.well.clone(), ran.ends.badly.clone()),
                false => (ran.ends.badly.clone(), ran.ends.well.clone()),
            };
            let mut assigned = Assigned::default();
            assigned.pipeline(pipeline, &self.named);
            self.asked += usize::from(!is_last);
            let next = self.branch(&taken, assigned, |walker| walker.pipeline(pipeline, false));
            self.asked -= usize::from(!is_last);
            said += if *is_and { " && " } else { " || " };
            said += pipeline.raw;
            let flow = match &taken {
                Outcome::Always => next.flow,
                Outcome::When(_) => of_branch(next.flow, &other, chain.line),
                Outcome::Never(_) | Outcome::Unlikely(_) => Flow::On,
            };
            let ends = match is_and {
                true => ran.ends.and(next.ends, &said),
                false => ran.ends.or(next.ends, &said),
            };
            ran = Ran { ends, flow: both(ran.flow, flow) };
        }
        ran
    }

    /// Runs a pipeline; of one that stands alone also is told what only talks.
    fn pipeline(&mut self, pipeline: &'t Pipeline<'t>, is_alone: bool) -> Ran {
        self.asked += usize::from(pipeline.is_negated);
        // What is told to succeed or to fail is the command itself.
        let raw = pipeline.raw.trim_start_matches(['!', ' ', '\t']);
        let mut ran = match pipeline.commands.as_slice() {
            [Command { kind: Kind::Simple { assigned, words }, redirects, line, .. }] => {
                self.simple(assigned, words, redirects, *line, raw, is_alone)
            }
            [one] => self.command(one),
            _ => self.joined(pipeline),
        };
        self.asked -= usize::from(pipeline.is_negated);
        if pipeline.is_negated {
            ran.ends = ran.ends.negated();
        }
        ran
    }

    /// Commands whose output goes to the next one, each in a shell of its own.
    fn joined(&mut self, pipeline: &'t Pipeline<'t>) -> Ran {
        if let Some(plain) = self.teed(pipeline) {
            let ends = self.program(plain, false);
            return self.at_failure(ends);
        }
        let mut ran = Ran::from(Ends::asked(pipeline.raw.trim_start_matches(['!', ' ', '\t'])));
        for command in &pipeline.commands {
            self.asked += 1;
            ran = self.subshell(|walker| match &command.kind {
                Kind::Simple { assigned, words } => {
                    walker.simple(assigned, words, &command.redirects, command.line, command.raw, false)
                }
                _ => walker.command(command),
            });
            self.asked -= 1;
        }
        self.at_failure(ran.ends)
    }

    /// `echo VALUE | tee FILE`, `cat <<END | tee FILE`: as if the first wrote to what tee does.
    fn teed(&mut self, pipeline: &'t Pipeline<'t>) -> Option<Plain<'t>> {
        let (first, tees) = pipeline.commands.split_first()?;
        let Kind::Simple { assigned, words } = &first.kind else { return None };
        let words = self.plain_words(words);
        let program = words.first().filter(|_| assigned.is_empty()).map(|word| word.text.clone())?;
        let document = self.document(&first.redirects).filter(|_| program == "cat" && words.len() == 1);
        let is_said = document.is_some() || ["echo", "printf"].contains(&program.as_str());
        if !is_said || self.named.contains(program.as_str()) {
            return None;
        }
        let mut to = Vec::new();
        let mut appends = false;
        for tee in tees {
            let Kind::Simple { assigned, words } = &tee.kind else { return None };
            let words = self.plain_words(words);
            let is_tee = words.first().is_some_and(|word| word.text == "tee") && assigned.is_empty();
            if !is_tee
                || self.named.contains("tee")
                || tee.redirects.iter().any(takes_output)
                || reads(&tee.redirects).is_some()
            {
                return None;
            }
            appends |= words.iter().any(|word| ["-a", "--append"].contains(&word.text.as_str()));
            to.extend(words.into_iter().skip(1).filter(|word| !word.text.starts_with('-')));
        }
        // Names that a pattern fills in are each a file of tee.
        to.iter_mut()
            .for_each(|field| (field.is_pattern, field.is_glob) = (field.is_pattern | field.is_glob, false));
        if document.is_some() && (to.len() != 1 || !to.iter().all(is_followed)) {
            return None;
        }
        let is_right =
            !first.redirects.iter().any(takes_output) && reads(&first.redirects).is_none() && !to.is_empty();
        is_right.then_some(Plain { line: first.line, text: pipeline.raw, words, to, appends, document })
    }

    /// The words of a command without what only changes who runs it.
    fn plain_words(&mut self, words: &[Word<'_>]) -> Vec<Field> {
        let mut filler = Filler { variables: &mut self.variables, unset: None };
        let fields = words.iter().flat_map(|word| filler.fields(word)).collect();
        script::bare(fields)
    }

    /// Runs something in a shell of its own: what it changes does not stay.
    pub(super) fn subshell(&mut self, run: impl FnOnce(&mut Self) -> Ran) -> Ran {
        let before = self.copied();
        let loops_here = std::mem::take(&mut self.loops_here);
        let ran = run(self);
        (self.variables, self.functions, self.options) = before;
        self.loops_here = loops_here;
        Ran { ends: ran.ends, flow: Flow::On }
    }

    pub(super) fn command(&mut self, command: &'t Command<'t>) -> Ran {
        let is_whole = !matches!(command.kind, Kind::Function { .. } | Kind::Simple { .. });
        if !is_whole {
            return self.inner(command);
        }
        if !self.may_run(command.line, command.raw) {
            return Ends::asked(command.raw).into();
        }
        let kernel = |redirect: &&Redirect<'_>| {
            let target = redirect.target.raw.trim_matches(['"', '\'']);
            takes_output(redirect) && (is_of_kernel(target) || target.contains('$'))
        };
        if let Some(redirect) = command.redirects.iter().find(kernel) {
            let text = format!("{} {}", redirect.operator, redirect.target.raw);
            self.refuse(command.line, &text, "what several commands say: only a shell can tell");
        }
        self.tell_documents(&command.redirects, command.line);
        let mut filler = Filler { variables: &mut self.variables, unset: None };
        let outputs = command.redirects.iter().filter(|redirect| takes_output(redirect));
        let to: Vec<Field> = outputs.flat_map(|redirect| filler.fields(&redirect.target)).collect();
        self.doubt_files(&to, command.line);
        let unset = self.unset_in(&command.redirects);
        let ran = match reads(&command.redirects) {
            None => self.inner(command),
            // Nothing of it stays that would not without it.
            Some(term) => {
                let list = Assigned::of_command(command, &self.named);
                self.branch(&Outcome::When(vec![term]), list, |walker| walker.inner(command))
            }
        };
        self.at_unset(unset, ran)
    }

    /// A variable that may not be set and that a shell puts into the files or the texts of redirections.
    pub(super) fn unset_in(&mut self, redirects: &[Redirect<'t>]) -> Option<String> {
        let documents = self.documents;
        let mut filler = Filler { variables: &mut self.variables, unset: None };
        for redirect in redirects {
            match redirect.document.map(|index| documents.get(index)) {
                None => drop(filler.fields(&redirect.target)),
                Some(document) if redirect.target.plain().is_some() => {
                    document.into_iter().flatten().for_each(|(_, text)| filler.find_unset(text));
                }
                Some(_) => {}
            }
        }
        filler.unset.take()
    }

    fn inner(&mut self, command: &'t Command<'t>) -> Ran {
        match &command.kind {
            Kind::Simple { assigned, words } => {
                self.simple(assigned, words, &command.redirects, command.line, command.raw, true)
            }
            Kind::Group(list) => self.list(list),
            Kind::Subshell(list) => {
                let ran = self.subshell(|walker| walker.list(list));
                self.at_failure(ran.ends)
            }
            Kind::If(branches) => self.condition(branches, command.line),
            Kind::While { condition, is_until, body } => {
                self.while_loop(condition, *is_until, body, command.line)
            }
            Kind::For { name, words, body } => self.for_loop(name, words.as_ref(), body, command),
            Kind::Case { subject, arms } => self.cases(subject, arms, command.line),
            Kind::Function { name, body } => {
                let body: &'t Command<'t> = body;
                // A loop comes by it in each of its rounds.
                let is_sure = match self.functions.get(*name) {
                    Some(known) => known.is_some_and(|known| std::ptr::eq(known, body)),
                    None => self.terms.is_empty(),
                };
                self.functions.insert((*name).to_owned(), is_sure.then_some(body));
                Ends::always(name).into()
            }
            Kind::Test(words) => {
                let mut filler = Filler { variables: &mut self.variables, unset: None };
                let fields: Vec<Field> = words.iter().flat_map(|word| filler.fields(word)).collect();
                let unset = filler.unset.take();
                let ran = self.at_failure(tested(command.raw, &fields));
                self.at_unset(unset, ran)
            }
            Kind::Sum(text) => {
                Filler { variables: &mut self.variables, unset: None }.forget(text);
                self.at_failure(Ends::asked(command.raw))
            }
        }
    }

    /// What follows from an end where the shell was told to stop at failures.
    pub(super) fn at_failure(&self, ends: Ends) -> Ran {
        let flow = match (&ends.badly, &ends.well) {
            _ if !self.options.ends_at_failure || self.asked > 0 => Flow::On,
            (Outcome::When(_), Outcome::When(terms)) => {
                Flow::If(terms.iter().map(|term| (Reach::Script, term.clone())).collect())
            }
            (Outcome::Always, Outcome::Never(why)) => {
                Flow::Ended(Reach::Script, format!("{why}, and by `set -e` the script ends there"))
            }
            _ => Flow::On,
        };
        Ran { ends, flow }
    }

    /// What follows where the shell was told to stop at variables that are not set, and one may be none.
    pub(super) fn at_unset(&self, unset: Option<String>, ran: Ran) -> Ran {
        match unset.filter(|_| self.options.ends_at_unset) {
            None => ran,
            Some(name) => {
                let term = (Reach::Script, Term::unsure(&format!("${name} is set, by `set -u`")));
                Ran { flow: both(ran.flow, Flow::If(vec![term])), ..ran }
            }
        }
    }

    fn condition(&mut self, branches: &'t [(Option<List<'t>>, List<'t>)], line: usize) -> Ran {
        let Some(((condition, then), rest)) = branches.split_first() else {
            return Ends::always("fi").into();
        };
        let Some(condition) = condition else { return self.list(then) };
        self.asked += 1;
        let asked = self.list(condition);
        self.asked -= 1;
        let (well, badly) = (asked.ends.well, asked.ends.badly);
        let assigned = Assigned::of(then, &self.named);
        let one = self.branch(&well, assigned, |walker| walker.list(then)).flow;
        let mut assigned = Assigned::default();
        for (condition, then) in rest {
            let lists = condition.iter().chain([then]);
            for found in lists.map(|list| Assigned::of(list, &self.named)) {
                assigned.names.extend(found.names);
                assigned.removed.extend(found.removed);
                assigned.others |= found.others;
            }
        }
        let other = self.branch(&badly, assigned, |walker| walker.condition(rest, line)).flow;
        let flow = match (&well, &badly) {
            (Outcome::Always, _) => one,
            (_, Outcome::Always) => other,
            (Outcome::When(_), Outcome::When(_)) => match (one, other) {
                (Flow::Ended(reach, why), Flow::Ended(other, _)) => Flow::Ended(reach.min(other), why),
                (one, other) => both(of_branch(one, &badly, line), of_branch(other, &well, line)),
            },
            (Outcome::When(_), _) => of_branch(one, &badly, line),
            (_, Outcome::When(_)) => of_branch(other, &well, line),
            _ => Flow::On,
        };
        Ran { ends: Ends::asked("if"), flow: both(asked.flow, flow) }
    }

    fn cases(&mut self, subject: &str, arms: &'t [(&'t str, List<'t>)], line: usize) -> Ran {
        let mut filler = Filler { variables: &mut self.variables, unset: None };
        if let Ok(Token::Word(word)) = Lexer::new(subject).token() {
            drop(filler.fields(&word));
        }
        let unset = filler.unset.take();
        let mut flow = Flow::On;
        for (pattern, list) in arms {
            let taken = Outcome::When(vec![Term::unsure(&format!("`{subject}` is `{pattern}`"))]);
            let other = Outcome::When(vec![Term::unsure(&format!("`{subject}` is not `{pattern}`"))]);
            let assigned = Assigned::of(list, &self.named);
            let arm = self.branch(&taken, assigned, |walker| walker.list(list)).flow;
            flow = both(flow, of_branch(arm, &other, line));
        }
        self.at_unset(unset, Ran { ends: Ends::asked("case"), flow })
    }

    fn while_loop(
        &mut self,
        condition: &'t List<'t>,
        is_until: bool,
        body: &'t List<'t>,
        line: usize,
    ) -> Ran {
        let assigned = || {
            let (mut one, other) = (Assigned::of(condition, &self.named), Assigned::of(body, &self.named));
            one.names.extend(other.names);
            one.removed.extend(other.removed);
            one.others |= other.others;
            one
        };
        let (first, last) = (assigned(), assigned());
        self.forget(first);
        self.asked += 1;
        self.loops += 1;
        self.loops_here += 1;
        let asked = self.list(condition);
        self.asked -= 1;
        let ends = if is_until { asked.ends.negated() } else { asked.ends };
        let why = format!(
            "inside a loop that runs {} `{}` holds: {BY_HAND}",
            if is_until { "until" } else { "while" },
            condition.raw
        );
        let term = if ends.well.is_possible() { Term::Unsure(why) } else { Term::Never(why) };
        let inner = self.under(vec![term], |walker| walker.list(body)).flow;
        self.loops -= 1;
        self.loops_here -= 1;
        self.forget(last);
        let flow = match (&ends.well, &inner) {
            (Outcome::Always, inner) if !inner.may_leave(Reach::Loop) => Flow::Ended(
                Reach::Script,
                format!("never runs: the loop of line {line} before it does not end"),
            ),
            _ => of_branch(inner.beyond(Reach::Loop), &Ends::asked(condition.raw).badly, line),
        };
        Ran { ends: Ends::asked("while"), flow: both(asked.flow, flow) }
    }

    fn for_loop(
        &mut self,
        name: &'t str,
        words: Option<&'t (Vec<Word<'t>>, &'t str)>,
        body: &'t List<'t>,
        command: &'t Command<'t>,
    ) -> Ran {
        let head =
            words.map(|(_, raw)| format!("for {name} in {raw}")).unwrap_or_else(|| format!("for {name}"));
        self.loops += 1;
        self.loops_here += 1;
        let threads = words.and_then(|(_, raw)| threads::of_pgrep(raw));
        let mut unset = None;
        let fields: Option<Vec<Field>> = match (&threads, words) {
            (Some(place), _) => Some(vec![Field::names_of(place)]),
            (None, Some((words, _))) => {
                let mut filler = Filler { variables: &mut self.variables, unset: None };
                let fields: Vec<Field> = words.iter().flat_map(|word| filler.fields(word)).collect();
                unset = filler.unset.take();
                fields.iter().all(|field| field.is_known).then_some(fields)
            }
            _ => None,
        };
        let flow = match fields {
            None => {
                self.refuse(command.line, &head, "a loop over what only a shell can tell");
                let term = Term::Unsure(format!("inside a loop over what only a shell can tell: {BY_HAND}"));
                let flow = self.some_rounds(name, Value::Set, body, vec![term]);
                of_branch(flow, &Ends::asked(&head).badly, command.line)
            }
            Some(fields) if fields.is_empty() => {
                let why = format!("never runs: `{head}` goes through nothing");
                self.under(vec![Term::Never(why)], |walker| walker.list(body));
                Flow::On
            }
            Some(fields) => self.rounds(name, fields, body, threads.is_some(), command.line),
        };
        self.loops -= 1;
        self.loops_here -= 1;
        self.at_unset(unset, Ran { ends: Ends::asked(&head), flow: flow.beyond(Reach::Loop) })
    }

    /// One round for each word. What a round ends, the next ones do not see.
    fn rounds(
        &mut self,
        name: &'t str,
        fields: Vec<Field>,
        body: &'t List<'t>,
        is_of_threads: bool,
        line: usize,
    ) -> Flow {
        let depth = self.terms.len();
        let mut flow = Flow::On;
        for field in fields {
            let may_be_none = is_of_threads || self.options.may_glob_nothing;
            let place = Term::Place {
                place: Place::Folder(field.text.clone()),
                said: format!("there is {}", field.text),
            };
            let value = Value::Known { text: field.text, is_pattern: field.is_glob || field.is_pattern };
            let ran = if field.is_glob {
                let terms = if may_be_none { vec![place] } else { Vec::new() };
                self.some_rounds(name, value, body, terms)
            } else {
                self.variables.insert(name.to_owned(), value);
                self.list(body).flow.beyond(Reach::Round)
            };
            match &ran {
                Flow::Ended(..) => {
                    flow = both(flow, ran);
                    break;
                }
                Flow::If(terms) => self.terms.extend(terms.iter().map(|(_, term)| term.clone())),
                Flow::On => {}
            }
            flow = both(flow, ran);
            if self.collector.steps > STEPS_MAX {
                flow = Flow::Ended(Reach::Script, format!("behind the loop of line {line}, which {MORE}"));
                break;
            }
        }
        self.terms.truncate(depth);
        flow
    }

    /// Rounds of which nobody knows how many there are. One that may leave the loop may leave it at the first.
    fn some_rounds(&mut self, name: &str, value: Value, body: &'t List<'t>, mut terms: Vec<Term>) -> Flow {
        self.forget(Assigned::of(body, &self.named));
        self.variables.insert(name.to_owned(), value.clone());
        let (before, is_dry) = (self.copied(), std::mem::replace(&mut self.is_dry, true));
        let dry = self.list(body).flow;
        ((self.variables, self.functions, self.options), self.is_dry) = (before, is_dry);
        if dry.may_leave(Reach::Loop) {
            let why = format!(
                "no round before leaves the loop over {}",
                match &value {
                    Value::Known { text, .. } => text.as_str(),
                    Value::Set | Value::Maybe => "what only a shell can tell",
                }
            );
            terms.push(Term::unsure(&why));
        }
        let is_sure = terms.is_empty();
        let flow = self.under(terms, |walker| walker.list(body)).flow.beyond(Reach::Round);
        self.forget(Assigned::of(body, &self.named));
        // It may be that there was no round.
        self.variables.insert(name.to_owned(), if is_sure { Value::Set } else { Value::Maybe });
        match (flow, is_sure) {
            (flow, true) => flow,
            // It may be that there is no round.
            (flow, false) => of_branch(flow, &Ends::asked("for").badly, 0),
        }
    }
}

/// Whether a redirection takes what a command says, and not only its messages.
pub(super) fn takes_output(redirect: &Redirect<'_>) -> bool {
    let is_output = matches!(redirect.descriptor, None | Some("1")) && redirect.operator.contains('>');
    let is_nothing = redirect.target.raw.trim_matches(['"', '\'']) == "/dev/null";
    (is_output || redirect.operator.starts_with('&')) && !is_nothing
}

/// What must be there to be read, or a command is not run.
pub(super) fn reads(redirects: &[Redirect<'_>]) -> Option<Term> {
    let from = |redirect: &&Redirect<'_>| {
        ["<", "<>"].contains(&redirect.operator) && redirect.target.raw != "/dev/null"
    };
    let redirect = redirects.iter().find(from)?;
    Some(Term::unsure(&format!("{} can be read", redirect.target.raw)))
}

pub(super) fn is_of_kernel(path: &str) -> bool {
    ["/proc/", "/sys/", "/dev/"].iter().any(|folder| path.starts_with(folder))
}
