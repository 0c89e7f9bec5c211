//! Second writers beside a plan and among the findings: which places they write too, and what to type so that one of
//! the two owns each place.

use std::collections::BTreeSet;

use planish_model::{
    Catalogue, Class, Cpus, Finding, Knob, KnobId, NOT_GIVEN, Observation, Persisted, Plan, SecondWriter,
    SeenWriter, Severity, Step, Writer, place, quoted,
};

/// The profile that is told to be made for another program, so that it leaves places alone.
const OWN_PROFILE: &str = "planish";

/// Knobs and places that are named before the others are only counted.
const NAMED_MAX: usize = 3;

/// A value for a place that is as wanted already, and that a file is to bring at each boot.
#[derive(Clone, Copy, Debug)]
pub struct Kept<'a> {
    /// The knob.
    pub knob: &'a KnobId,
    /// The place.
    pub place: &'a str,
    /// The value.
    pub wanted: &'a str,
}

impl<'a> Kept<'a> {
    fn of(step: &'a Step) -> Self {
        Self { knob: &step.knob, place: &step.place, wanted: &step.wanted }
    }
}

/// The other programs that write places of these steps, in the order of the catalogue.
pub(crate) fn beside(
    catalogue: &Catalogue,
    observation: &Observation,
    profile: &str,
    steps: &[&Step],
    persist: bool,
) -> Vec<SecondWriter> {
    let steps: Vec<Kept<'_>> = steps.iter().map(|step| Kept::of(step)).collect();
    beside_values(catalogue, observation, profile, &steps, persist)
}

/// The same of values. Where files for the next boot come with them (`persist`), lines that are applied before those
/// say nothing that counts.
fn beside_values(
    catalogue: &Catalogue,
    observation: &Observation,
    profile: &str,
    steps: &[Kept<'_>],
    persist: bool,
) -> Vec<SecondWriter> {
    let mut found = Vec::new();
    for writer in catalogue.writers() {
        let lines = lines_against(writer, catalogue, observation, steps, persist);
        let seen = observation.writers.iter().find(|seen| seen.id == writer.id);
        let theirs: Vec<Kept<'_>> = match seen {
            Some(seen) => {
                let writes = |step: &&Kept<'_>| catalogue.writes(seen, step.knob, Some(step.place));
                steps.iter().filter(writes).copied().collect()
            }
            None => lines.iter().map(|line| line.step).collect(),
        };
        if theirs.is_empty() {
            continue;
        }
        // Of one whose profile cannot be read only its row tells what it may set.
        let is_untold = |seen: &SeenWriter| writer.scope.is_some() && seen.knobs.is_none();
        let only_may = |seen: &SeenWriter, step: &Kept<'_>| {
            is_untold(seen) || catalogue.only_may_write(seen, step.knob, Some(step.place))
        };
        let said = || {
            // One line for the pools of all nodes is one thing said, of however many of them.
            let mut said: Vec<String> = lines.iter().map(LineAgainst::told).collect();
            said.dedup();
            said
        };
        let sources = lines.iter().map(|line| line.found.source.as_str());
        let holes = Holes::of(observation, seen, &theirs, sources);
        found.push(SecondWriter {
            id: writer.id.clone(),
            running: seen.is_some_and(|seen| seen.running),
            evidence: seen.map_or_else(said, |seen| seen.evidence.clone()),
            places: theirs.iter().map(|step| step.place.to_owned()).collect(),
            maybe: theirs
                .iter()
                .filter(|step| seen.is_some_and(|seen| only_may(seen, step)))
                .map(|step| step.place.to_owned())
                .collect(),
            hand_over: holes.fill_all(&writer.hand_over),
            exclude: holes.fill_all(&writer.exclude),
            not_excluded: not_excluded(writer, &holes, &theirs),
            leave: format!("planish plan {} --exclude {}", quoted(profile), quoted(&writer.id)),
        });
    }
    found
}

/// The knobs, once for each of these places, that the way to exclude some of them says nothing of.
fn not_excluded(writer: &Writer, holes: &Holes, theirs: &[Kept<'_>]) -> Vec<KnobId> {
    let filled = || writer.exclude.iter().filter(|text| holes.fill(text).is_some());
    let of_sysctls = || filled().all(|text| text.contains("{sysctls}"));
    if filled().next().is_none() || !of_sysctls() {
        return Vec::new();
    }
    let others = theirs.iter().filter(|step| !step.place.starts_with("/proc/sys/"));
    others.map(|step| step.knob.clone()).collect()
}

/// The other programs that write places of a plan which was made before, as the host shows them now. With files for
/// the next boot, of what those are to `keep` besides, too: whoever writes that over at the boot makes the line one in
/// vain. Who says the value that is kept takes nothing from it.
#[must_use]
pub fn second_writers(
    catalogue: &Catalogue,
    observation: &Observation,
    plan: &Plan,
    keep: Option<&[Kept<'_>]>,
) -> Vec<SecondWriter> {
    let steps = plan.steps.iter().chain(&plan.boot).map(Kept::of);
    let is_safe = |kept: &Kept<'_>| {
        let Ok(knob) = catalogue.knob(kept.knob) else { return true };
        let writes = |seen: &&SeenWriter| catalogue.writes(seen, kept.knob, Some(kept.place));
        let mut writers = observation.writers.iter().filter(writes).peekable();
        writers.peek().is_some() && writers.all(|seen| seen.sets_as_wanted(knob, kept.place, kept.wanted))
    };
    let kept = keep.unwrap_or_default().iter().filter(|kept| !is_safe(kept)).copied();
    let values: Vec<Kept<'_>> = steps.chain(kept).collect();
    beside_values(catalogue, observation, &plan.profile, &values, keep.is_some())
}

/// A line of others for a place of a step.
struct LineAgainst<'a> {
    step: Kept<'a>,
    found: &'a Persisted,
    /// Whether it sets the pools of all nodes, of which this place is one.
    is_of_all_nodes: bool,
}

impl LineAgainst<'_> {
    fn told(&self) -> String {
        let (source, knob) = (&self.found.source, self.step.knob);
        let all = if self.is_of_all_nodes { " over all nodes" } else { "" };
        match self.found.value.as_str() {
            NOT_GIVEN => format!("{source} takes back what is said of {knob} before it"),
            value => format!("{source} sets {knob} to {value}{all}"),
        }
    }
}

/// Lines of a writer's files that will set a place of the steps to something else at the next boot. One for the pools
/// of all nodes sets each of them; no line of ours for a node makes it one in vain, since it may come behind ours, and
/// does with each `sysctl --system`.
fn lines_against<'a>(
    writer: &Writer,
    catalogue: &Catalogue,
    observation: &'a Observation,
    steps: &[Kept<'a>],
    persist: bool,
) -> Vec<LineAgainst<'a>> {
    let is_theirs = |line: &Persisted| writer.has_line(&line.source) && !line.is_ours();
    let own = |step: &Kept<'a>| {
        // One that takes back what is said before it takes back the line that is to be written, too.
        let taken_back = || observation.taken_back.get(step.place).filter(|_| persist);
        let found =
            observation.persisted.get(step.place).or_else(taken_back).filter(|line| is_theirs(line))?;
        let kind = &catalogue.knob(step.knob).ok()?.r#type;
        let is_in_vain = persist && is_outranked(observation, step.place, found);
        let is_against = !is_in_vain && !kind.same(&found.value, step.wanted);
        is_against.then_some(LineAgainst { step: *step, found, is_of_all_nodes: false })
    };
    let of_all_nodes = |step: &Kept<'a>| {
        let (share, found) = observation.pool_share(step.place).filter(|(_, line)| is_theirs(line))?;
        let is_against = step.wanted.trim().parse() != Ok(share);
        is_against.then_some(LineAgainst { step: *step, found, is_of_all_nodes: true })
    };
    steps.iter().filter_map(|step| own(step).or_else(|| of_all_nodes(step))).collect()
}

/// Whether a line loses against the one that `--persist` writes for the same place: of `sysctl.d` the last file by name
/// counts, or one of /etc that another program writes again, of `tmpfiles.d` the first. Files of two programs are in no
/// order, and rules of udev run whenever a device changes.
fn is_outranked(observation: &Observation, place: &str, line: &Persisted) -> bool {
    let path = line.source.rsplit_once(':').map_or(line.source.as_str(), |(path, _)| path);
    let Some((folder, name)) = path.rsplit_once('/') else { return false };
    let is_sysctl = place.starts_with("/proc/sys/");
    match folder.rsplit('/').next() {
        Some("sysctl.d") => {
            let is_again = || observation.writers.iter().any(|seen| seen.again.is_sure);
            is_sysctl && (name < Persisted::OWN_FILE || folder != "/etc/sysctl.d" && is_again())
        }
        Some("tmpfiles.d") => !is_sysctl && name > Persisted::OWN_FILE,
        _ => false,
    }
}

/// A line of a file as it is told to whoever is to take it out. What a package brings comes back with its next version:
/// a file of the same name in /etc stands for it.
fn to_take_out(source: &str) -> String {
    let is_of_package = ["/usr/", "/lib/"].iter().any(|folder| source.starts_with(folder));
    let mut parts = source.rsplit_once(':').map_or(source, |(path, _)| path).rsplit('/');
    match (parts.next(), parts.next()) {
        (Some(name), Some(folder)) if is_of_package => {
            // Rules of udev lie one folder deeper.
            let folder = if folder == "rules.d" { "udev/rules.d" } else { folder };
            format!("{source} (in a copy of the file that counts instead: /etc/{folder}/{name})")
        }
        _ => source.to_owned(),
    }
}

/// Why a place is not to be set: the user excluded its knob, or left it to another program that writes it here.
#[must_use]
pub fn left_out(
    catalogue: &Catalogue,
    observation: &Observation,
    exclude: &[String],
    knob: &KnobId,
    at: &str,
) -> Option<String> {
    exclude.iter().find_map(|name| {
        if name == knob.as_str() {
            return Some(format!("left out: --exclude {name}"));
        }
        let writer = catalogue.writer(name)?;
        let seen = observation.writers.iter().find(|seen| seen.id == *name);
        let of_all_nodes = observation.pool_share(at).map(|(_, line)| line);
        let mut lines = observation.persisted.get(at).into_iter().chain(of_all_nodes);
        let leaves = lines.any(|line| is_left_to(writer, line))
            || seen.is_some_and(|seen| catalogue.writes(seen, knob, Some(at)));
        leaves.then(|| format!("left to {name}: --exclude {name}"))
    })
}

/// Whether a place is left to the files of a writer: the last line for it is one of theirs. A line of ours is nobody's
/// to leave it to, wherever it lies; the one that it overrides counts then, as it did before ours was written.
fn is_left_to(writer: &Writer, line: &Persisted) -> bool {
    if !line.is_ours() {
        return writer.has_line(&line.source);
    }
    let theirs = line.overridden.iter().rfind(|lost| Persisted::own_file(&lost.source).is_none());
    theirs.is_some_and(|lost| writer.has_line(&lost.source))
}

/// A finding for each second writer that was seen.
pub(crate) fn findings(catalogue: &Catalogue, observation: &Observation) -> Vec<Finding> {
    let seen = |seen: &SeenWriter| {
        let writer = catalogue.writer(&seen.id)?;
        let knobs = catalogue.knobs().filter(|knob| catalogue.writes(seen, &knob.id, None));
        let (may, knobs): (Vec<&Knob>, Vec<&Knob>) =
            knobs.partition(|knob| catalogue.only_may_write(seen, &knob.id, None));
        let ids = |knobs: &[&Knob]| knobs.iter().map(|knob| knob.id.as_str().to_owned()).collect::<Vec<_>>();
        let (may, knobs) = (ids(&may), ids(&knobs));
        let sets = match &seen.knobs {
            None if writer.scope.is_some() => format!("may set {}", counted(&knobs)),
            _ if may.is_empty() => format!("sets {}", named(&knobs)),
            _ if knobs.is_empty() => format!("may set {}", named(&may)),
            _ => format!("sets {}, and may set {}", named(&knobs), named(&may)),
        };
        let when = if seen.running { "is at work" } else { "will be at work after the next boot" };
        let holes = Holes::of(observation, Some(seen), &[], std::iter::empty());
        Some(Finding {
            id: format!("writer.{}", seen.id),
            knob: None,
            severity: Severity::Note,
            may_cost: None,
            costs: Some("no speed by itself: what one of the two sets, the other may undo".to_owned()),
            risk: None,
            class: Class::Safe,
            evidence: format!("{} {when} and {sets}: {}", seen.id, seen.evidence.join("; ")),
            why: writer.why.clone(),
            cure: format!(
                "let one of the two own each place; for planish alone: {}; for {} alone: planish plan PROFILE \
                 --exclude {}",
                holes.fill_all(&writer.hand_over).join(", or "),
                seen.id,
                seen.id
            ),
            source: writer.source.clone(),
        })
    };
    observation.writers.iter().filter_map(seen).collect()
}

/// Some names, and how many others there are.
fn named(names: &[String]) -> String {
    if names.len() <= NAMED_MAX {
        return names.join(", ");
    }
    let (first, rest) = names.split_at(NAMED_MAX - 1);
    format!("{} and {} other knobs", first.join(", "), rest.len())
}

/// The only name, or how many there are.
fn counted(names: &[String]) -> String {
    match names {
        few if few.len() <= NAMED_MAX => few.join(", "),
        many => format!("any of {} knobs", many.len()),
    }
}

/// What stands for the holes in a text that is to be typed.
struct Holes(Vec<(&'static str, String)>);

impl Holes {
    fn of<'a>(
        observation: &Observation,
        seen: Option<&SeenWriter>,
        steps: &[Kept<'_>],
        lines: impl Iterator<Item = &'a str>,
    ) -> Self {
        let mut holes = Vec::new();
        let arguments = seen.and_then(|seen| seen.arguments.as_ref());
        if let Some(arguments) = arguments {
            holes.push(("file", arguments.file.clone()));
            holes.push(("variable", arguments.variable.clone()));
            holes.push(("value", arguments.value.clone()));
        }
        // A profile that includes itself is none: where ours is active already, it is to leave out more.
        holes.extend(seen.and_then(|seen| seen.profile.as_ref()).map(|profile| {
            match profile.split_whitespace().any(|name| name == OWN_PROFILE) {
                true => ("own_profile", "the tuned.conf of profile planish".to_owned()),
                false => ("profile", profile.clone()),
            }
        }));
        let lines: BTreeSet<String> = lines.map(to_take_out).collect();
        let joined = |words: Vec<String>, with: &str| (!words.is_empty()).then(|| words.join(with));
        let irqs = steps.iter().filter_map(|step| irq(step.place)).map(|irq| format!("--banirq={irq}"));
        let sysctls = steps.iter().filter_map(|step| step.place.strip_prefix("/proc/sys/"));
        for (name, text) in [
            ("irqs", joined(irqs.collect(), " ")),
            ("cpus", quiet_cpus(observation, steps)),
            ("sysctls", joined(sysctls.map(|path| path.replace('/', ".")).collect(), ",")),
            ("lines", joined(lines.into_iter().collect(), ", ")),
        ] {
            holes.extend(text.map(|text| (name, text)));
        }
        Self(holes)
    }

    fn fill_all(&self, texts: &[String]) -> Vec<String> {
        texts.iter().filter_map(|text| self.fill(text)).collect()
    }

    /// The text, if every hole of it can be filled.
    fn fill(&self, text: &str) -> Option<String> {
        let mut filled = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            let (name, after) = after.split_once('}')?;
            filled += before;
            filled += &self.0.iter().find(|(hole, _)| *hole == name)?.1;
            rest = after;
        }
        // A variable that is empty yet leaves a blank behind.
        Some((filled + rest).replace("=\" ", "=\""))
    }
}

/// The number of an interrupt whose place this is.
fn irq(place: &str) -> Option<&str> {
    place::captures("/proc/irq/{irq}/smp_affinity_list", place)?.first().map(|(_, number)| *number)
}

/// The CPUs that the plan takes interrupts away from: those that are not in the default affinity that it sets.
fn quiet_cpus(observation: &Observation, steps: &[Kept<'_>]) -> Option<String> {
    let step = steps.iter().find(|step| step.knob.as_str() == "irq.default_affinity")?;
    let steered = Cpus::parse_mask(step.wanted)?;
    let quiet: Cpus = (0..observation.host.cpus_online).filter(|cpu| !steered.contains(*cpu)).collect();
    (!quiet.is_empty()).then(|| quiet.to_string())
}

#[cfg(test)]
mod tests;
