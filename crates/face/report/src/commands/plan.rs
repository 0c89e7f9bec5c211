//! `planish plan`: before and after of every step, in the order in which they will be written.

use planish_model::{
    Instead, KnobId, Part, PersistFile, Plan, PoolGoing, SecondWriter, Skipped, Step, Theirs, VerdictKind,
    When, gone_at_boot,
};
use planish_sorted::SortSmall as _;

use crate::commands::placement;
use crate::page::{self, Page, Report, risk, verdict_text};
use crate::table::{Cell, Table};
use crate::units;

impl Report for Plan {
    const COMMAND: &'static str = "plan";

    fn text(&self, page: &mut Page<'_>) {
        for (heading, steps) in by_moment(self) {
            page.heading(&heading);
            if let Some(told) = written_now(&steps) {
                page.line(told);
            }
            page.table(&table(&steps, &self.second_writers, page));
        }
        if let Some(instead) = &self.instead_of {
            left_of(instead, page);
        }
        at_reboot(self, page);
        not_written(self, page);
        if page.is_detailed() {
            self.steps.iter().for_each(|step| details(step, page));
        }
        if let Some(placement) = &self.placement {
            placement::text(placement, page);
        }
        self.second_writers.iter().for_each(|writer| second_writer(writer, page));
        page.gap();
        page.fact("plan", &self.hash.to_string());
        page.fact("steps", &summary(self));
    }
}

/// What stays of the entry whose place a plan takes, and what goes besides its values.
fn left_of(instead: &Instead, page: &mut Page<'_>) {
    let mut table = Table::new(&["knob", "now", "entry", "before it"]);
    for Theirs { knob, place, now, ours, original } in &instead.theirs {
        let value = |text: &str| page.value(knob, text).into();
        table.row([page.knob(knob, &[place.as_str()]), value(now), value(ours), value(original)]);
    }
    if !table.is_empty() {
        page.heading(&format!("set by somebody else since entry {}, and left so", instead.entry));
        page.table(&table);
    }
    handed_back(&instead.pools, page);
    if !instead.files.is_empty() {
        page.heading(&format!("the lines that entry {} has in files are taken out", instead.entry));
        instead.files.iter().for_each(|path| page.line(path));
    }
}

/// What becomes, or became, of the huge pages that an entry was granted, whose place is taken.
pub(crate) fn handed_back(pools: &[PoolGoing], page: &mut Page<'_>) {
    let Some(first) = pools.first() else { return };
    page.heading(&format!(
        "huge pages of entry {}, taken over and handed back to the host",
        first.pool.entry
    ));
    let heads = ["pool", "asked", "granted", "used", "idle", "taken over", "handed back", "stay in use"];
    // Seldom, and then an apply names the line beside it.
    let is_any_claimed = pools.iter().any(|pool| pool.claimed > 0);
    let to_line = is_any_claimed.then_some("left to a line");
    let mut table = Table::new(&heads.into_iter().chain(to_line).collect::<Vec<_>>());
    for PoolGoing { pool, taken_over, handed_back, in_use, claimed } in pools {
        let told = |count: Option<u64>| count.map_or_else(|| "?".to_owned(), |count| count.to_string());
        let counts = [
            pool.asked.to_string(),
            pool.granted.to_string(),
            told(pool.used),
            told(pool.idle),
            taken_over.to_string(),
            handed_back.to_string(),
            told(*in_use),
        ];
        let counts = counts.into_iter().chain(is_any_claimed.then(|| claimed.to_string())).map(Cell::from);
        table.row(std::iter::once(page.knob(&pool.knob, &[pool.place.as_str()])).chain(counts));
    }
    page.table(&table);
}

/// What is written at once, by the moment at which it takes effect: now, or when the service starts that it is for.
/// Within each the order is that of the writes. What an entry leaves whose place is taken stands apart.
fn by_moment(plan: &Plan) -> Vec<(String, Vec<&Step>)> {
    let placed = || {
        let placed = plan.placement.iter().flat_map(|placement| &placement.services);
        let units: Vec<&str> = placed.map(|service| service.unit.as_str()).collect();
        (!units.is_empty()).then(|| units.join(" and "))
    };
    let sized = || plan.steps.iter().find_map(|step| step.service.clone());
    let any = || sized().or_else(placed).unwrap_or_else(|| "the services".to_owned());
    let old = || plan.instead_of.as_ref().map(|instead| instead.entry.to_string()).unwrap_or_default();
    let moment = |step: &Step| match step.when {
        _ if step.part == Some(Part::Back) => format!("now, back to what was there before entry {}", old()),
        _ if step.part == Some(Part::TakenOver) => match step.beside {
            Some(entry) => format!("set so by entry {entry}, and held beside it: nothing is written"),
            None => format!("taken over from entry {}: nothing is written", old()),
        },
        When::Now => "now".to_owned(),
        When::Process => {
            let name = step.restart().map_or_else(any, str::to_owned);
            format!("at the next restart of {name}")
        }
        When::Reload => "at the next systemctl daemon-reload, for all that runs".to_owned(),
        When::Boot => "at the next reboot".to_owned(),
    };
    let mut moments: Vec<(String, Vec<&Step>)> = Vec::new();
    for step in plan.steps.iter().filter(|step| step.when != When::Boot) {
        let heading = moment(step);
        match moments.iter_mut().find(|(known, _)| *known == heading) {
            Some((_, steps)) => steps.push(step),
            None => moments.push((heading, vec![step])),
        }
    }
    // What goes back is written first, and what is taken over not at all.
    moments.sort_small_by_key(|(heading, steps)| match steps[0].part {
        Some(Part::Back) => 0,
        None if heading == "now" => 1,
        None => 2,
        Some(Part::TakenOver) => 3,
    });
    moments
}

/// What the heading of a later moment does not say: that the write is not the later one. Pages of a pool are taken from
/// everybody else at once, whoever uses them when.
fn written_now(steps: &[&Step]) -> Option<&'static str> {
    let is_written = |step: &&&Step| step.is_written();
    let is_later = steps.iter().filter(is_written).any(|step| step.when == When::Process);
    let is_pool = steps.iter().any(|step| step.raise_pages.is_some_and(|pages| pages > 0));
    if steps.iter().filter(is_written).any(|step| step.when == When::Reload) {
        return Some("written now, at the apply; any daemon-reload carries it out, that of a package too");
    }
    match (is_later, is_pool) {
        (false, _) => None,
        (true, false) => Some("written now, at the apply; what starts later sees it"),
        (true, true) => Some(
            "written now, at the apply: huge pages leave free memory at once; what starts later uses them",
        ),
    }
}

/// Steps that differ in their place alone read as one line.
fn line_key(step: &Step) -> impl PartialEq + '_ {
    (&step.knob, &step.now, &step.wanted, step.class, step.when)
}

fn table(steps: &[&Step], writers: &[SecondWriter], page: &Page<'_>) -> Table {
    let mut table = Table::new(&["knob", "now", "wanted", "risk", "why"]);
    for group in steps.chunk_by(|a, b| line_key(a) == line_key(b)) {
        let first = group[0];
        let places: Vec<&str> = group.iter().map(|step| step.place.as_str()).collect();
        table.row([
            page.knob(&first.knob, &places),
            page.value(&first.knob, &first.now).into(),
            page.value(&first.knob, &first.wanted).into(),
            // The heading says when.
            risk(first.class, When::Now),
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
    let is_sure = |writer: &SecondWriter| {
        let mut shared = writer.places.iter().filter(|place| places.contains(&place.as_str()));
        shared.any(|place| !writer.maybe.contains(place))
    };
    let names: Vec<&str> = writers.iter().filter(theirs).map(|writer| writer.id.as_str()).collect();
    let verb = match writers.iter().filter(theirs).any(is_sure) {
        false => "may write",
        true if names.len() == 1 => "writes",
        true => "write",
    };
    (!names.is_empty()).then(|| format!("({} {verb} it too: see below.)", names.join(" and ")))
}

/// Knobs that are named before the others are only counted.
const NOT_EXCLUDED_NAMED_MAX: usize = 4;

/// Another program that writes places of the plan, and what makes one of the two their owner.
fn second_writer(writer: &SecondWriter, page: &mut Page<'_>) {
    let count = units::count(writer.places.len(), "place");
    // What runs gives the boot loader its arguments now, and they count at a boot.
    let is_now = writer.running && writer.places.iter().any(|place| !place.starts_with("cmdline:"));
    let when = if is_now { "now" } else { "at the next boot" };
    let may = units::count(writer.maybe.len(), "place");
    let writes = match writer.places.len() - writer.maybe.len().min(writer.places.len()) {
        0 => format!("may write {count} of this plan too"),
        _ if writer.maybe.is_empty() => format!("writes {count} of this plan too"),
        _ => format!("writes {count} of this plan too ({may} of them only maybe)"),
    };
    page.heading(&format!("{} {writes}, {when}", writer.id));
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
    if !writer.not_excluded.is_empty() {
        let (places, rest) = (units::count(writer.not_excluded.len(), "place"), writer.places.len());
        let knobs: Vec<&KnobId> = writer.not_excluded.iter().collect();
        let knobs = page::counted(&knobs, NOT_EXCLUDED_NAMED_MAX);
        let told = format!(
            "not in that, of the {rest}: {places} ({knobs}); {} writes them until it is handed over, or left to it",
            writer.id
        );
        page.fact("", &told);
    }
    page.command("leave it", &writer.leave);
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

/// Boot parameters that the files of `--persist` give to the next kernel: where those were not asked for, that could.
fn given_at_boot(plan: &Plan) -> impl Iterator<Item = &Step> {
    let left_out = plan.persist.iter().flat_map(|persist| &persist.left_out).map(|left| &left.place);
    let left_out: Vec<&String> = left_out.collect();
    plan.boot.iter().filter(move |step| !left_out.contains(&&step.place))
}

/// Lines of a file that are told before the rest is only counted.
const LINES_MAX: usize = 20;

/// What the next boot brings: boot parameters as the knobs that they are, and with `--persist` each file with its
/// lines.
fn at_reboot(plan: &Plan, page: &mut Page<'_>) {
    let given: Vec<&Step> = given_at_boot(plan).collect();
    let waiting: Vec<&Step> = plan.steps.iter().filter(|step| step.when == When::Boot).collect();
    let has_files = plan
        .persist
        .as_ref()
        .is_some_and(|persist| !persist.files.is_empty() || !persist.left_out.is_empty());
    if given.is_empty() && waiting.is_empty() && !has_files {
        return;
    }
    page.heading("at the next reboot");
    page.table(&table(&waiting, &plan.second_writers, page));
    if !given.is_empty() && plan.persist.is_none() {
        page.line("if apply --persist has the boot loader give it to the next kernel:");
    }
    page.table(&table(&given, &[], page));
    let Some(persist) = &plan.persist else { return };
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

/// A reason that fills more than one line is told once where the row below has it too.
const REASON_CHARS_MAX: usize = 40;

/// What the profile wants and the plan does not write: told in full where a person could do something about it.
fn not_written(plan: &Plan, page: &mut Page<'_>) {
    let mut table = Table::new(&["knob", "wanted", "why not"]);
    let given: Vec<&Step> = given_at_boot(plan).collect();
    let shown = |skip: &&Skipped| page.is_detailed() || !skip.satisfied;
    let is_left = |skip: &&Skipped| !given.iter().any(|step| step.place == skip.place);
    let rows: Vec<&Skipped> = plan.skipped.iter().filter(is_left).filter(shown).collect();
    let key = |skip: &&Skipped| Skipped { place: String::new(), ..(*skip).clone() };
    let mut above = String::new();
    for group in rows.chunk_by(|a, b| key(a) == key(b)) {
        let first = group[0];
        let why = if first.satisfied { "already so".to_owned() } else { verdict_text(&first.verdict) };
        // A placement is kept out by one reason as a whole.
        let is_told = why == above && why.chars().count() > REASON_CHARS_MAX && !page.is_detailed();
        let told = if is_told { "as above" } else { &why };
        let places: Vec<&str> = group.iter().map(|skip| skip.place.as_str()).collect();
        let wanted = first.wanted.as_deref().map(|wanted| page.value(&first.knob, wanted));
        let absent = matches!(first.verdict.verdict, VerdictKind::Absent | VerdictKind::NotRecorded);
        table.row([
            if absent { first.knob.to_string().into() } else { page.knob(&first.knob, &places) },
            // What follows from the host or a service is not computed for what is not allowed.
            wanted.unwrap_or_else(|| "-".to_owned()).into(),
            told.into(),
        ]);
        above = why;
    }
    if !table.is_empty() {
        page.heading("not written");
        page.table(&table);
    }
}

fn summary(plan: &Plan) -> String {
    let satisfied = plan.skipped.iter().filter(|skip| skip.satisfied).count();
    let waits = |when| plan.steps.iter().filter(|step| step.when == when).count();
    let files = plan.persist.as_ref().map_or(0, |persist| persist.files.len());
    let of_part = |part| plan.steps.iter().filter(|step| step.part == Some(part)).count();
    let held = plan.steps.iter().filter(|step| step.beside.is_some()).count();
    let taken = of_part(Part::TakenOver) - held;
    let written = plan.steps.iter().filter(|step| step.is_written()).count();
    let mut parts = vec![format!("{} to write", written + files)];
    for (count, words) in [
        (of_part(Part::Back), "of them back to what was there before"),
        (taken, "taken over"),
        (held, "held beside another entry"),
        (waits(When::Process), "of them for processes that start later"),
        (waits(When::Reload), "of them at the next daemon-reload"),
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
