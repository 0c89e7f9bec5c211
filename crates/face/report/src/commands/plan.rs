//! `planish plan`: before and after of every step, in the order in which they will be written.

use planish_model::{
    Persist, PersistFile, Plan, SecondWriter, Skipped, Step, VerdictKind, When, gone_at_boot,
};

use crate::commands::placement;
use crate::page::{Page, Report, risk, verdict_text};
use crate::table::Table;
use crate::units;

impl Report for Plan {
    const COMMAND: &'static str = "plan";

    fn text(&self, page: &mut Page<'_>) {
        page.table(&steps(&self.steps, &self.second_writers, page));
        if page.is_detailed() {
            self.steps.iter().for_each(|step| details(step, page));
        }
        if let Some(placement) = &self.placement {
            placement::text(placement, page);
        }
        if let Some(persist) = &self.persist {
            next_boot(self, persist, page);
        }
        let given: Vec<&Step> = given_at_boot(self).collect();
        let left = self.skipped.iter().filter(|row| !given.iter().any(|step| step.place == row.place));
        not_written(left, page);
        self.second_writers.iter().for_each(|writer| second_writer(writer, page));
        page.gap();
        page.fact("plan", &self.hash.to_string());
        page.fact("steps", &summary(self));
    }
}

/// Steps that differ in their place alone read as one line.
fn line_key(step: &Step) -> impl PartialEq + '_ {
    (&step.knob, &step.now, &step.wanted, step.class, step.when)
}

fn steps(steps: &[Step], writers: &[SecondWriter], page: &Page<'_>) -> Table {
    let mut table = Table::new(&["knob", "now", "wanted", "risk", "why"]);
    for group in steps.chunk_by(|a, b| line_key(a) == line_key(b)) {
        let first = &group[0];
        let places: Vec<&str> = group.iter().map(|step| step.place.as_str()).collect();
        table.row([
            page.knob(&first.knob, &places),
            page.value(&first.knob, &first.now).into(),
            page.value(&first.knob, &first.wanted).into(),
            risk(first.class, first.when),
            match written_too(writers, &places) {
                Some(others) => format!("{} {others}", first.why).into(),
                None => first.why.as_str().into(),
            },
        ]);
    }
    table
}

/// Who else writes one of these places.
fn written_too(writers: &[SecondWriter], places: &[&str]) -> Option<String> {
    let theirs = |writer: &&SecondWriter| writer.places.iter().any(|place| places.contains(&place.as_str()));
    let names: Vec<&str> = writers.iter().filter(theirs).map(|writer| writer.id.as_str()).collect();
    let verb = if names.len() == 1 { "writes" } else { "write" };
    (!names.is_empty()).then(|| format!("({} {verb} it too: see below.)", names.join(" and ")))
}

/// Another program that writes places of the plan, and what makes one of the two their owner.
fn second_writer(writer: &SecondWriter, page: &mut Page<'_>) {
    let count = units::count(writer.places.len(), "place");
    let when = if writer.running { "now" } else { "at the next boot" };
    page.heading(&format!("{} writes {count} of this plan too, {when}", writer.id));
    page.fact("seen", &writer.evidence.join("; "));
    if page.is_detailed() {
        page.fact("places", &writer.places.join(" "));
    }
    for (number, text) in writer.hand_over.iter().enumerate() {
        page.fact(if number == 0 { "hand over" } else { "or" }, text);
    }
    for text in &writer.exclude {
        page.fact("exclude", text);
    }
    page.fact("leave it", &writer.leave);
}

/// What the table has no room for.
fn details(step: &Step, page: &mut Page<'_>) {
    page.gap();
    page.line(format!("{} {}", step.knob, step.place));
    page.fact("  because", step.because.as_deref().unwrap_or_default());
    page.fact("  cost", &step.cost);
    page.fact("  right", &verdict_text(&step.verdict));
    for coupled in &step.coupled {
        let now = page.value(&coupled.knob, &coupled.now);
        page.fact("  also", &format!("{} {} changes with it, now {now}", coupled.knob, coupled.place));
    }
    page.fact("  source", &step.source);
}

/// Boot parameters that the files of `--persist` give to the next kernel, where those were asked for.
fn given_at_boot(plan: &Plan) -> impl Iterator<Item = &Step> {
    let persist = plan.persist.as_ref();
    let is_given = move |step: &&Step| {
        persist.is_some_and(|persist| !persist.left_out.iter().any(|left| left.place == step.place))
    };
    plan.boot.iter().filter(is_given)
}

/// Lines of a file that are told before the rest is only counted.
const LINES_MAX: usize = 20;

/// What `--persist` writes: boot parameters as the knobs that they are, and each file with its lines.
fn next_boot(plan: &Plan, persist: &Persist, page: &mut Page<'_>) {
    if persist.files.is_empty() && persist.left_out.is_empty() {
        return;
    }
    page.heading("for the next boot");
    let given: Vec<Step> = given_at_boot(plan).cloned().collect();
    page.table(&steps(&given, &[], page));
    persist.files.iter().for_each(|file| lines(file, page));
    for sentence in gone_at_boot(&persist.left_out) {
        page.fact("not kept", &sentence);
    }
}

/// A file, and the lines that go and come.
fn lines(file: &PersistFile, page: &mut Page<'_>) {
    let how = if file.new { "new" } else { "changed" };
    let then = file.then.as_deref().map(|program| format!("; then {program}")).unwrap_or_default();
    page.gap();
    page.line(format!("{}: {how}{then}", file.path));
    let removed = file.removed.iter().map(|line| format!("  - {line}"));
    let all: Vec<String> = removed.chain(file.added.iter().map(|line| format!("  + {line}"))).collect();
    let shown = if page.is_detailed() || all.len() <= LINES_MAX + 1 { all.len() } else { LINES_MAX };
    all[..shown].iter().for_each(|line| page.line(line));
    if shown < all.len() {
        page.line(format!("  and {} more: --verbose", units::count(all.len() - shown, "line")));
    }
}

/// What the profile wants and the plan does not write: told in full where a person could do something about it.
fn not_written<'a>(skipped: impl Iterator<Item = &'a Skipped>, page: &mut Page<'_>) {
    let mut table = Table::new(&["not written", "wanted", "why not"]);
    let shown = |skip: &&Skipped| page.is_detailed() || !skip.satisfied;
    let rows: Vec<&Skipped> = skipped.filter(shown).collect();
    let key = |skip: &&Skipped| Skipped { place: String::new(), ..(*skip).clone() };
    for group in rows.chunk_by(|a, b| key(a) == key(b)) {
        let first = group[0];
        let places: Vec<&str> = group.iter().map(|skip| skip.place.as_str()).collect();
        let wanted = first.wanted.as_deref().map(|wanted| page.value(&first.knob, wanted));
        let absent = first.verdict.verdict == VerdictKind::Absent;
        table.row([
            if absent { first.knob.to_string().into() } else { page.knob(&first.knob, &places) },
            wanted.unwrap_or_default().into(),
            if first.satisfied { "already so".into() } else { verdict_text(&first.verdict).into() },
        ]);
    }
    if !table.is_empty() {
        page.gap();
        page.table(&table);
    }
}

fn summary(plan: &Plan) -> String {
    let satisfied = plan.skipped.iter().filter(|skip| skip.satisfied).count();
    let waits = |when| plan.steps.iter().filter(|step| step.when == when).count();
    let files = plan.persist.as_ref().map_or(0, |persist| persist.files.len());
    let mut parts = vec![format!("{} to write", plan.steps.len() + files)];
    for (count, words) in [
        (waits(When::Process), "of them for processes that start later"),
        (waits(When::Boot), "of them at the next boot"),
        (files, "of them files that the next boot reads"),
        (satisfied, "already as wanted"),
        (plan.skipped.len() - satisfied - given_at_boot(plan).count(), "not written"),
    ] {
        if count > 0 {
            parts.push(format!("{count} {words}"));
        }
    }
    let pages: u64 = plan.steps.iter().filter_map(|step| step.raise_pages).sum();
    if pages > 0 {
        parts.push(format!(
            "{} to reserve",
            units::count(usize::try_from(pages).unwrap_or(usize::MAX), "huge page")
        ));
    }
    parts.join(", ")
}
