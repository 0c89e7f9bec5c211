//! What the field tunes, beside what planish has for it: `catalogue/field.toml` as a page.
//!
//! A table of what a program covers is easily kinder than the program. So every name in it has to exist, no knob may be
//! left out, and what a row says of itself follows from what it names: nothing is called set unless something sets it.

use crate::knobs::{anchor, cell, word};
use anyhow::{Context, Result, bail, ensure};
use planish_model::{Catalogue, Class, KnobId, ValueType};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// The table.
const TABLE: &str = include_str!("../../../catalogue/field.toml");
/// How many kinds of settings the tools and guides were found to have; the rows are numbered after that list.
const ROWS: u32 = 104;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Field {
    row: Vec<Row>,
    beside: Vec<Beside>,
}

/// A kind of setting; the head of the file says what its lists mean.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    number: u32,
    what: String,
    #[serde(default)]
    knobs: Vec<KnobId>,
    #[serde(default)]
    commands: Vec<String>,
    #[serde(default)]
    unit: Vec<String>,
    #[serde(default)]
    findings: Vec<String>,
    #[serde(default)]
    writers: Vec<String>,
    #[serde(default)]
    lacks: Vec<Lack>,
}

/// What planish has nothing for.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Lack {
    what: String,
    answer: Answer,
    why: String,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Answer {
    NotYet,
    Refused,
    Firmware,
    Held,
    Program,
}

/// Knobs that belong to no row.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Beside {
    knobs: Vec<KnobId>,
    why: String,
}

/// What a row comes to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Verdict {
    Set,
    InPart,
    Advised,
    NotYet,
    Never,
}

impl Verdict {
    const ALL: [Self; 5] = [Self::Set, Self::InPart, Self::Advised, Self::NotYet, Self::Never];

    fn name(self) -> &'static str {
        match self {
            Self::Set => "set",
            Self::InPart => "in part",
            Self::Advised => "advised",
            Self::NotYet => "not yet",
            Self::Never => "never",
        }
    }

    fn meaning(self) -> &'static str {
        match self {
            Self::Set => "knobs or commands do all of it",
            Self::InPart => "knobs or commands do some of it",
            Self::Advised => "a finding or a second writer shows it, with what to type",
            Self::NotYet => "nothing here does it; it could be added",
            Self::Never => "nothing here does it, and nothing will",
        }
    }
}

impl Row {
    fn verdict(&self) -> Verdict {
        let does = !(self.knobs.is_empty() && self.commands.is_empty());
        let shows = !(self.findings.is_empty() && self.writers.is_empty());
        match (does, shows) {
            (true, _) if self.lacks.is_empty() => Verdict::Set,
            (true, _) => Verdict::InPart,
            (false, true) => Verdict::Advised,
            _ if self.lacks.iter().any(|lack| lack.answer == Answer::NotYet) => Verdict::NotYet,
            _ => Verdict::Never,
        }
    }
}

impl Field {
    fn read(text: &str) -> Result<Self> {
        toml::from_str(text).context("read catalogue/field.toml")
    }

    /// Fails where it says what is not so, or leaves something out.
    fn check(&self, catalogue: &Catalogue) -> Result<()> {
        let numbers: Vec<u32> = self.row.iter().map(|row| row.number).collect();
        let expected: Vec<u32> = (1..=ROWS).collect();
        ensure!(numbers == expected, "the rows are 1 to {ROWS}, each once and in order: {numbers:?}");
        for row in &self.row {
            row.check(catalogue).with_context(|| format!("row {} ({})", row.number, row.what))?;
        }
        self.check_knobs(catalogue)
    }

    /// Every knob is in a row, or stands beside them and says why; and not both.
    fn check_knobs(&self, catalogue: &Catalogue) -> Result<()> {
        let in_rows: BTreeSet<&KnobId> = self.row.iter().flat_map(|row| &row.knobs).collect();
        let mut beside = BTreeSet::new();
        for group in &self.beside {
            ensure!(
                !group.why.trim().is_empty(),
                "{:?} stand beside the rows and do not say why",
                group.knobs
            );
            for knob in &group.knobs {
                catalogue.knob(knob)?;
                ensure!(beside.insert(knob), "{knob} stands beside the rows twice");
                ensure!(!in_rows.contains(knob), "{knob} is in a row and beside the rows");
            }
        }
        let named = |id: &KnobId| in_rows.contains(id) || beside.contains(id);
        let left_out: Vec<&str> =
            catalogue.knobs().map(|knob| &knob.id).filter(|id| !named(id)).map(KnobId::as_str).collect();
        ensure!(left_out.is_empty(), "in no row, and not beside them: {}", left_out.join(", "));
        Ok(())
    }
}

impl Row {
    fn check(&self, catalogue: &Catalogue) -> Result<()> {
        for knob in &self.knobs {
            catalogue.knob(knob)?;
        }
        let repeated = |list: &[String]| list.iter().collect::<BTreeSet<_>>().len() < list.len();
        ensure!(
            ![&self.commands, &self.unit, &self.findings, &self.writers]
                .into_iter()
                .any(|list| repeated(list))
                && self.knobs.iter().collect::<BTreeSet<_>>().len() == self.knobs.len(),
            "names something twice"
        );
        let command = planish_cli::command();
        for name in &self.commands {
            let mut words = name.split(' ');
            let found = words.try_fold(&command, |within, word| within.find_subcommand(word));
            ensure!(found.is_some(), "there is no command `planish {name}`");
        }
        for finding in &self.findings {
            let known = catalogue.findings().iter().any(|rule| rule.id == *finding);
            ensure!(known, "there is no finding {finding}");
        }
        for writer in &self.writers {
            ensure!(catalogue.writers().iter().any(|row| row.id == *writer), "there is no writer {writer}");
        }
        for name in &self.unit {
            ensure!(self.knobs.iter().any(|knob| sets(catalogue, knob, name)), "no knob of it sets {name}=");
        }
        let in_no_plan =
            |id| catalogue.knob(id).is_ok_and(|knob| matches!(knob.class, Class::Action | Class::Oneway));
        if self.commands.is_empty() && self.lacks.is_empty() && self.knobs.iter().any(in_no_plan) {
            bail!(
                "names an action, which is in no plan, and neither a command that does it nor what is missing"
            );
        }
        let said = |lack: &Lack| !lack.what.trim().is_empty() && !lack.why.trim().is_empty();
        ensure!(self.lacks.iter().all(said), "lacks something and does not say what or why");
        if matches!(self.verdict(), Verdict::NotYet | Verdict::Never) && self.lacks.is_empty() {
            bail!("names nothing that answers it, and nothing that is missing");
        }
        Ok(())
    }

    /// What answers it, with links to the knobs.
    fn by(&self) -> String {
        let code = |names: &[String], prefix: &str| -> Vec<String> {
            names.iter().map(|name| format!("`{prefix}{name}`")).collect()
        };
        let knobs = self.knobs.iter().map(|id| format!("[`{id}`](knobs.md#{})", anchor(id.as_str())));
        let mut groups = vec![(String::new(), knobs.collect::<Vec<_>>())];
        groups.push((String::new(), code(&self.commands, "planish ")));
        groups.push((String::new(), self.unit.iter().map(|name| format!("`{name}=`")).collect()));
        groups.push(("seen by ".to_owned(), code(&self.findings, "")));
        groups.push(("second writer ".to_owned(), code(&self.writers, "")));
        let said = groups.into_iter().filter(|(_, names)| !names.is_empty());
        said.map(|(before, names)| before + &names.join(", ")).collect::<Vec<_>>().join("; ")
    }
}

/// Whether a knob is a file of ours that holds this directive of systemd.
fn sets(catalogue: &Catalogue, knob: &KnobId, directive: &str) -> bool {
    catalogue.knob(knob).is_ok_and(|knob| match &knob.r#type {
        ValueType::Directives { directives } => directives.iter().any(|name| name == directive),
        ValueType::Setting { directive: own, .. } => own == directive,
        _ => false,
    })
}

/// The page, once the table was held to the catalogue.
pub fn reference() -> Result<String> {
    let catalogue = Catalogue::embedded().context("load the catalogue")?;
    let field = Field::read(TABLE)?;
    field.check(&catalogue)?;
    let mut text = String::from(HEAD);
    counts(&field, &catalogue, &mut text)?;
    text.push_str("\n## The rows\n\n| # | what | answer | by | profiles |\n|---|---|---|---|---|\n");
    for row in &field.row {
        let (what, answer) = (cell(&row.what), row.verdict().name());
        let profiles = wanted_by(&catalogue, row).join(", ");
        writeln!(text, "| {} | {what} | {answer} | {} | {profiles} |", row.number, row.by())?;
    }
    text.push_str("\n## What is missing, and why\n\n| # | what | answer | why |\n|---|---|---|---|\n");
    for (row, lack) in field.row.iter().flat_map(|row| row.lacks.iter().map(move |lack| (row, lack))) {
        let (what, answer, why) = (cell(&lack.what), word(&lack.answer), cell(&lack.why));
        writeln!(text, "| {} | {what} | {answer} | {why} |", row.number)?;
    }
    text.push_str("\n## Knobs beside the rows\n\n| knobs | why |\n|---|---|\n");
    for group in &field.beside {
        let knobs = group.knobs.iter().map(|id| format!("[`{id}`](knobs.md#{})", anchor(id.as_str())));
        writeln!(text, "| {} | {} |", knobs.collect::<Vec<_>>().join(", "), cell(&group.why))?;
    }
    Ok(text)
}

const HEAD: &str = "# What the field tunes

Written by `./x docs` from `catalogue/field.toml`; do not edit.

The union of what the known tools and guides for tuning Linux set, and what planish has for each. A test holds it to the
catalogue: every name in it exists, every knob is in it, and the answers follow from the names. A knob that is named is
set by a plan, read back and undone, unless it is an action, which has no old value and is in no plan. Whether it can be
set on a machine is that machine's verdict (`planish knobs`), and whether it pays is a trial's.

";

fn counts(field: &Field, catalogue: &Catalogue, text: &mut String) -> Result<()> {
    text.push_str("| answer | rows | means |\n|---|---|---|\n");
    for verdict in Verdict::ALL {
        let count = field.row.iter().filter(|row| row.verdict() == verdict).count();
        writeln!(text, "| {} | {count} | {} |", verdict.name(), verdict.meaning())?;
    }
    let mut missing: BTreeMap<Answer, usize> = BTreeMap::new();
    for lack in field.row.iter().flat_map(|row| &row.lacks) {
        *missing.entry(lack.answer).or_default() += 1;
    }
    text.push_str("\n| missing | things | because |\n|---|---|---|\n");
    for (answer, count) in missing {
        let because = match answer {
            Answer::NotYet => "it needs an interface that is not there yet",
            Answer::Refused => "it is unsafe, or has no way back",
            Answer::Firmware => "no running system sets it",
            Answer::Held => "it lasts only as long as a program stays, and planish keeps none for it",
            Answer::Program => "it is a setting of the program, not of the host",
        };
        writeln!(text, "| {} | {count} | {because} |", word(&answer))?;
    }
    let beside: usize = field.beside.iter().map(|group| group.knobs.len()).sum();
    let all = catalogue.knobs().count();
    writeln!(text, "\nOf {all} knobs {} are in a row, and {beside} beside them.", all - beside)?;
    Ok(())
}

/// The profiles that want a knob of a row.
fn wanted_by<'a>(catalogue: &'a Catalogue, row: &Row) -> Vec<&'a str> {
    let wants = |name: &&str| {
        let profile = catalogue.profile(name);
        profile.is_ok_and(|profile| row.knobs.iter().any(|knob| profile.want.contains_key(knob)))
    };
    catalogue.profile_names().filter(wants).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The error of a table in which a text is another.
    fn refused(from: &str, to: &str) -> String {
        assert!(TABLE.contains(from), "the table no longer says {from}");
        let field = Field::read(&TABLE.replacen(from, to, 1)).expect("well formed");
        let catalogue = Catalogue::embedded().expect("sound");
        format!("{:#}", field.check(&catalogue).expect_err("not so"))
    }

    #[test]
    fn every_row_and_every_knob_is_answered_for() {
        let field = Field::read(TABLE).expect("well formed");
        field.check(&Catalogue::embedded().expect("sound")).expect("true");
    }

    #[test]
    fn a_row_that_is_left_out_or_there_twice_is_told() {
        assert!(refused("number = 3\n", "number = 4\n").contains("each once and in order"));
        assert!(refused("= 104\n", "= 105\n").contains("each once and in order"));
    }

    #[test]
    fn a_name_that_does_not_exist_is_told_with_its_row() {
        let error = refused("\"vm.max_map_count\"", "\"vm.max_maps\"");
        assert!(error.starts_with("row 25 (Maps of a process): "), "{error}");
        assert!(refused("\"trial run\"", "\"trial ran\"").contains("no command `planish trial ran`"));
        assert!(refused("\"clock.hpet\"", "\"clock.hpett\"").contains("no finding clock.hpett"));
        assert!(refused("[\"irqbalance\"]", "[\"irqbalanced\"]").contains("no writer irqbalanced"));
        assert!(refused("\"NUMAMask\"]", "\"AllowedCPUs\"]").contains("no knob of it sets AllowedCPUs="));
    }

    #[test]
    fn a_knob_that_no_row_names_is_told() {
        assert!(
            refused("\"vm.max_map_count\"", "\"vm.swappiness\"")
                .contains("not beside them: vm.max_map_count")
        );
        let error = refused("[\"vm.page-cluster\"]", "[\"vm.swappiness\"]");
        assert!(error.contains("vm.swappiness is in a row and beside the rows"), "{error}");
    }

    #[test]
    fn a_row_without_an_answer_is_told() {
        assert!(refused("knobs  = [\"boot.skew_tick\"]", "").contains("nothing that is missing"));
        assert!(
            refused("why = \"a power cut then breaks the file system\"", "why = \"\"")
                .contains("does not say what or why")
        );
    }

    #[test]
    fn an_action_that_nothing_does_is_not_called_set() {
        let error = refused("commands = [\"apply\", \"trial run\"]", "");
        assert!(error.contains("row 9 ") && error.contains("an action, which is in no plan"), "{error}");
    }

    #[test]
    fn what_a_row_comes_to_follows_from_what_it_names() {
        let row =
            |rest: &str| -> Row { toml::from_str(&format!("number = 1\nwhat = \"w\"\n{rest}")).expect(rest) };
        let lack = |answer: &str| format!("lacks = [{{ what = \"w\", answer = \"{answer}\", why = \"y\" }}]");
        let verdict = |rest: &str| row(rest).verdict().name();
        assert_eq!(verdict("knobs = [\"vm.swappiness\"]"), "set");
        assert_eq!(verdict(&format!("commands = [\"run\"]\n{}", lack("held"))), "in part");
        assert_eq!(verdict(&format!("findings = [\"cpu.steal\"]\n{}", lack("not-yet"))), "advised");
        assert_eq!(verdict(&lack("not-yet")), "not yet");
        assert_eq!(verdict(&lack("firmware")), "never");
    }
}
