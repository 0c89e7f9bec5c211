//! `planish check --monitor`: one line and one of four codes, as plug-ins of monitoring systems end.
//!
//! The codes are not those of the other commands: 0 ok, 1 warning, 2 critical, 3 unknown. What could not be looked at
//! is never ok.

use planish_model::{Catalogue, DriftState, KnobCheck, TrialBoot, TrialBootState};
use planish_pipeline::{Interrupted, Unfinished};
use planish_report::{CheckReport, Page, PageOptions, SaidOnce, units};
use planish_sorted::SortSmall as _;

/// How a check ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    Ok = 0,
    Warning = 1,
    Critical = 2,
    Unknown = 3,
}

impl Level {
    fn word(self) -> &'static str {
        match self {
            Self::Ok => "OK",
            Self::Warning => "WARNING",
            Self::Critical => "CRITICAL",
            Self::Unknown => "UNKNOWN",
        }
    }
}

/// What is named before the rest is only counted: groups of a line, and places of a group.
const NAMED_MAX: usize = 3;

/// The line and the code of a check that could be made. `hidden` is a journal that only root may read: without it
/// nobody knows what was applied. The catalogue gives places their names, and values their units.
///
/// What a kill left half way comes before all that is as wanted, and behind a value that is not: beside that one it is
/// named, too, since it may be the reason. What is `on_trial` until somebody confirms it comes before all that the next
/// boot takes.
pub(crate) fn line(
    report: &CheckReport,
    catalogue: &Catalogue,
    hidden: bool,
    interrupted: Option<&Interrupted>,
    on_trial: Option<String>,
) -> (String, Level) {
    let page = Page::new(PageOptions { width: 0, detailed: false }, catalogue);
    let named = |places: &[&KnobCheck]| named(places, &page);
    let wanted: Vec<&KnobCheck> = report.knobs.iter().filter(|knob| knob.wanted.is_some()).collect();
    let of = |state: DriftState| -> Vec<&KnobCheck> {
        wanted.iter().filter(|knob| knob.state == state).copied().collect()
    };
    // A line of ours that is gone or was edited: the next boot will show it.
    let (later, drift): (Vec<&KnobCheck>, Vec<&KnobCheck>) =
        of(DriftState::Drift).into_iter().partition(|knob| runs_as_wanted(knob));
    // Whoever writes over it at the boot comes first: --persist helps against nobody.
    let lost = || [of(DriftState::OverwrittenAtBoot), later.clone(), of(DriftState::LostAtBoot)].concat();
    let (ok, lost, pending, unknown) =
        (of(DriftState::Ok), lost(), of(DriftState::PendingReboot), of(DriftState::Unknown));
    let not_allowed = of(DriftState::NotAllowed);
    let cut = interrupted.map(|cut| format!("{cut}: planish {}", cut.cure()));
    let (level, told) = if !drift.is_empty() {
        let cut = cut.map(|cut| format!("; {cut}")).unwrap_or_default();
        (Level::Critical, format!("{} not as wanted: {}{cut}", counted(&drift), named(&drift)))
    } else if !unknown.is_empty() {
        let is_read = unknown.iter().all(|knob| knob.is_untold_at_boot());
        let what = if is_read { "cannot be told of the next boot" } else { "cannot be read" };
        (Level::Unknown, format!("{} {what}: {}", counted(&unknown), named(&unknown)))
    } else if hidden {
        (Level::Unknown, "what root applied is in a journal that only root may read".to_owned())
    } else if let Some(cut) = cut {
        (Level::Warning, cut)
    } else if let Some(waiting) = on_trial {
        (Level::Warning, waiting)
    } else if !lost.is_empty() {
        (
            Level::Warning,
            format!("{} will be lost at the next {}: {}", counted(&lost), when(&lost), named(&lost)),
        )
    } else if let Some(line) = report.carried_over.first() {
        (Level::Warning, line.to_string())
    } else if let Some(boot) = report.trial_boots.iter().find(|boot| boot.is_finding()) {
        (Level::Warning, format!("a trial boot came to nothing: planish undo {}", boot.entry))
    } else if let Some(boot) = report.trial_boots.first() {
        (Level::Warning, undecided(boot))
    } else if !pending.is_empty() {
        let waits = if pending.len() == 1 { "waits" } else { "wait" };
        (Level::Warning, format!("{} {waits} for a reboot: {}", counted(&pending), named(&pending)))
    } else if !ok.is_empty() {
        (Level::Ok, format!("{} as wanted", counted(&ok)))
    } else if let (Some(against), false) = (&report.against, not_allowed.is_empty()) {
        (Level::Unknown, format!("nobody allowed what {against} wants here: {}", named(&not_allowed)))
    } else if let Some(against) = &report.against {
        (Level::Unknown, format!("nothing of {against} can be set here, so nothing was compared"))
    } else {
        (Level::Ok, "nothing is applied".to_owned())
    };
    let data = [
        ("wanted", &wanted),
        ("drift", &drift),
        ("lost", &lost),
        ("pending", &pending),
        ("unknown", &unknown),
    ]
    .map(|(name, places)| format!("{name}={}", places.len()))
    .join(" ");
    (units::harmless(&format!("planish {}: {told} | {data}\n", level.word())).into_owned(), level)
}

/// Whether a place of the kernel shows what is wanted, whatever becomes of it at the next boot.
pub(crate) fn runs_as_wanted(knob: &KnobCheck) -> bool {
    // Of a unit and of the kernel's command line it is no proof that the value is in force.
    let is_kernels = knob.place.starts_with("/proc/") || knob.place.starts_with("/sys/");
    is_kernels && knob.running.is_some() && knob.running == knob.wanted
}

/// What takes them away: a setting of a unit goes with its next start, which need be no boot.
pub(crate) fn when(lost: &[&KnobCheck]) -> &'static str {
    let is_of_unit = |knob: &&KnobCheck| knob.place.starts_with("/etc/systemd/system/");
    if lost.iter().all(is_of_unit) { "start" } else { "boot" }
}

/// A trial boot that is to come or that runs: whoever is on call is to know that the machine is on trial, and what the
/// boot behind it will be.
fn undecided(boot: &TrialBoot) -> String {
    let TrialBoot { entry, state, arguments } = boot;
    let cure = format!("planish undo {entry}");
    match state {
        TrialBootState::Running => {
            format!("this boot is a trial ({arguments}), and nobody decided it: planish confirm, or {cure}")
        }
        _ => format!("the next boot is a trial ({arguments}): {cure}, to have none"),
    }
}

/// The line of a check that found all as wanted, and an entry that another one was to take the place of.
pub(crate) fn unfinished(left: &Unfinished) -> (String, Level) {
    warning(&format!("{left}: planish undo {}", left.old))
}

/// The line of a check that found an entry half way on the host for good: it explains whatever else is found.
pub(crate) fn critical(told: &str) -> (String, Level) {
    alone(Level::Critical, told)
}

/// The line of a check that found all values as wanted, and something else to be told.
pub(crate) fn warning(told: &str) -> (String, Level) {
    alone(Level::Warning, told)
}

/// A line with something that is to be known beside it, and changes nothing of the level: before the data.
pub(crate) fn beside((line, level): (String, Level), told: &str) -> (String, Level) {
    let end = line.find(" | ").unwrap_or(line.trim_end().len());
    let (before, behind) = line.split_at(end);
    (format!("{before}; {}{behind}", units::harmless(told)), level)
}

fn alone(level: Level, told: &str) -> (String, Level) {
    (units::harmless(&format!("planish {}: {told}\n", level.word())).into_owned(), level)
}

/// The line of a check that could not be made.
pub(crate) fn unknown(why: &str) -> String {
    // A bar would begin the figures.
    let why = why.replace(['\n', '|'], " ");
    units::harmless(&format!("planish {}: {why}\n", Level::Unknown.word())).into_owned()
}

fn counted(places: &[&KnobCheck]) -> String {
    units::count(places.len(), "place")
}

/// Places that are alike as one, each group with its values and its reason. What a file of the host will set otherwise
/// comes first: to persist a value is what the others lack, and that one has somebody against it.
fn named(places: &[&KnobCheck], page: &Page<'_>) -> String {
    let mut groups: Vec<&[&KnobCheck]> =
        places.chunk_by(|a, b| a.without_place() == b.without_place()).collect();
    groups.sort_small_by_key(|group| group[0].next_boot.is_none() && group[0].overwritten_by.is_none());
    let (first, rest) = groups.split_at(groups.len().min(NAMED_MAX));
    let mut said = SaidOnce::default();
    let mut told: Vec<String> = first.iter().map(|group| group_told(group, page, &mut said)).collect();
    let more: usize = rest.iter().map(|group| group.len()).sum();
    if more > 0 {
        told.push(format!("and {} more", units::count(more, "place")));
    }
    // A bar would begin the figures.
    told.join("; ").replace(['\n', '|'], " ")
}

/// `cpu.governor cpu2, cpu3 is powersave, wanted performance (changed since entry 1)`.
fn group_told(group: &[&KnobCheck], page: &Page<'_>, said: &mut SaidOnce) -> String {
    let first = group[0];
    let mut places: Vec<String> =
        group.iter().take(NAMED_MAX).map(|check| page.place(&first.knob, &check.place)).collect();
    places.retain(|place| !place.is_empty());
    let mut told = first.knob.to_string();
    if !places.is_empty() {
        told += &format!(" {}", places.join(", "));
    }
    if group.len() > NAMED_MAX {
        told += &format!(" and {} more", group.len() - NAMED_MAX);
    }
    if let Some(running) = &first.running {
        told += &format!(" is {}", page.value(&first.knob, running));
    }
    // What runs as wanted is told once: what becomes of it is the reason.
    let runs = matches!(first.state, DriftState::LostAtBoot | DriftState::OverwrittenAtBoot);
    let runs = runs || runs_as_wanted(first);
    if let Some(wanted) = first.wanted.as_ref().filter(|_| !runs) {
        told += &format!(", wanted {}", page.value(&first.knob, wanted));
    }
    match &first.because {
        Some(because) => format!("{told} ({})", said.told(because)),
        None => told,
    }
}

#[cfg(test)]
mod tests {
    use planish_model::{BootValue, KnobId};

    use super::*;

    #[test]
    fn what_is_said_beside_a_line_stands_before_its_data_and_keeps_its_level() {
        let told = |line: &str| beside((line.to_owned(), Level::Ok), "more");
        assert_eq!(told("planish OK: a | x=1\n"), ("planish OK: a; more | x=1\n".to_owned(), Level::Ok));
        assert_eq!(told("planish OK: a\n"), ("planish OK: a; more\n".to_owned(), Level::Ok));
    }

    /// The line where nobody knows a knob: no place has a name, and no value a unit.
    fn line(report: &CheckReport, hidden: bool) -> (String, Level) {
        super::line(report, &Catalogue::default(), hidden, None, None)
    }

    fn report(states: &[DriftState]) -> CheckReport {
        let knob = |state: &DriftState| KnobCheck {
            knob: KnobId::new("vm.swappiness"),
            place: "/proc/sys/vm/swappiness".to_owned(),
            running: Some("6|0".to_owned()),
            persisted: None,
            next_boot: None,
            overridden: Vec::new(),
            overwritten_by: None,
            wanted: Some("10".to_owned()),
            state: *state,
            because: None,
        };
        CheckReport {
            against: None,
            knobs: states.iter().map(knob).collect(),
            trial_boots: Vec::new(),
            carried_over: Vec::new(),
            pools: Vec::new(),
            texts: Vec::new(),
        }
    }

    #[test]
    fn the_gravest_decides_and_what_nobody_could_see_is_never_ok() {
        use DriftState::{
            Drift, LostAtBoot, NotAllowed, NotHere, Ok, OverwrittenAtBoot, PendingReboot, Unknown,
        };
        for (states, hidden, level) in [
            (&[][..], false, Level::Ok),
            (&[Ok, NotHere], false, Level::Ok),
            (&[NotHere], false, Level::Ok),
            (&[NotAllowed], false, Level::Ok),
            (&[Ok], true, Level::Unknown),
            (&[Ok, PendingReboot], false, Level::Warning),
            (&[LostAtBoot, PendingReboot], false, Level::Warning),
            (&[Ok, OverwrittenAtBoot], false, Level::Warning),
            (&[LostAtBoot, Unknown], false, Level::Unknown),
            (&[Unknown, Drift], true, Level::Critical),
        ] {
            assert_eq!(line(&report(states), hidden).1, level, "{states:?} {hidden}");
        }
    }

    #[test]
    fn the_line_is_one_and_names_a_few() {
        let mut report = report(&[DriftState::Drift; 5]);
        for (number, knob) in report.knobs.iter_mut().enumerate() {
            knob.because = Some(format!("changed |{number}"));
        }
        let (text, level) = line(&report, false);
        assert_eq!(level as u8, 2);
        assert_eq!(
            text,
            "planish CRITICAL: 5 places not as wanted: vm.swappiness is 6 0, wanted 10 (changed  0); \
             vm.swappiness is 6 0, wanted 10 (changed  1); vm.swappiness is 6 0, wanted 10 (changed  2); \
             and 2 places more | wanted=5 drift=5 lost=0 pending=0 unknown=0\n"
        );
        assert_eq!(unknown("a | b\nc"), "planish UNKNOWN: a   b c\n");
    }

    #[test]
    fn equal_places_are_named_once_and_what_a_file_sets_otherwise_comes_first() {
        let catalogue = Catalogue::embedded().expect("ours is sound");
        let lost = |knob: &str, place: String, next_boot: Option<&str>, because: &str| KnobCheck {
            knob: KnobId::new(knob),
            place,
            running: Some("1".to_owned()),
            persisted: None,
            next_boot: next_boot.map(|value| BootValue::new(value, "/etc/sysctl.d/99-x.conf:1")),
            overridden: Vec::new(),
            overwritten_by: None,
            wanted: Some("1".to_owned()),
            state: DriftState::LostAtBoot,
            because: Some(because.to_owned()),
        };
        let governor = |cpu| format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor");
        let mut knobs: Vec<KnobCheck> =
            (0..12).map(|cpu| lost("cpu.governor", governor(cpu), None, "no file persists it")).collect();
        let file = "/etc/sysctl.d/99-local.conf:2 will set 60";
        knobs.push(lost("vm.swappiness", "/proc/sys/vm/swappiness".to_owned(), Some("60"), file));
        let (text, level) = super::line(
            &CheckReport {
                against: None,
                knobs,
                trial_boots: Vec::new(),
                carried_over: Vec::new(),
                pools: Vec::new(),
                texts: Vec::new(),
            },
            &catalogue,
            false,
            None,
            None,
        );
        assert_eq!(level, Level::Warning);
        assert_eq!(
            text,
            "planish WARNING: 13 places will be lost at the next boot: \
             vm.swappiness is 1 (/etc/sysctl.d/99-local.conf:2 will set 60); \
             cpu.governor cpu0, cpu1, cpu2 and 9 more is 1 (no file persists it) \
             | wanted=13 drift=0 lost=13 pending=0 unknown=0\n"
        );
    }

    /// A file has a line for each place.
    #[test]
    fn places_that_a_file_persists_are_named_once_too() {
        let mut report = report(&[DriftState::Drift; 5]);
        for (number, knob) in report.knobs.iter_mut().enumerate() {
            let line = BootValue::new("10", format!("/etc/tmpfiles.d/90-planish.conf:{}", number + 2));
            (knob.persisted, knob.next_boot) = (Some(line.clone()), Some(line));
        }
        let (text, _) = line(&report, false);
        let told = "planish CRITICAL: 5 places not as wanted: vm.swappiness and 2 more is 6 0, wanted 10 | ";
        assert!(text.starts_with(told), "{text}");
    }

    #[test]
    fn a_profile_of_which_nothing_can_be_set_is_not_called_ok() {
        let report = CheckReport { against: Some("series".to_owned()), ..report(&[DriftState::NotHere]) };
        let (text, level) = line(&report, false);
        assert_eq!(level, Level::Unknown, "{text}");
        assert!(text.starts_with("planish UNKNOWN: nothing of series can be set here"), "{text}");
    }

    #[test]
    fn what_planish_never_set_is_not_judged() {
        let mut report = report(&[DriftState::Drift]);
        report.knobs[0].wanted = None;
        assert_eq!(
            line(&report, false).0,
            "planish OK: nothing is applied | wanted=0 drift=0 lost=0 pending=0 unknown=0\n"
        );
    }

    #[test]
    fn an_entry_that_is_half_way_is_named_and_never_ok() {
        use DriftState::{Drift, LostAtBoot, Ok};
        let cut =
            Interrupted { entry: planish_model::EntryId(1), how: planish_pipeline::Half::Applied, old: None };
        for (states, level) in [
            (&[][..], Level::Warning),
            (&[Ok], Level::Warning),
            (&[LostAtBoot], Level::Warning),
            (&[Drift], Level::Critical),
        ] {
            let told = super::line(&report(states), &Catalogue::default(), false, Some(&cut), None);
            assert_eq!(told.1, level, "{states:?}");
            let cure = "entry 1 was interrupted and is half way on the host: planish undo 1 |";
            assert!(told.0.contains(cure), "{}", told.0);
        }
    }

    #[test]
    fn what_goes_in_minutes_is_told_before_what_goes_at_a_boot() {
        use DriftState::{Drift, LostAtBoot, Ok, PendingReboot};
        for (states, level) in [
            (&[Ok][..], Level::Warning),
            (&[LostAtBoot], Level::Warning),
            (&[PendingReboot], Level::Warning),
            (&[Drift], Level::Critical),
        ] {
            let told = "entry 1 is undone in 100 s".to_owned();
            let (line, found) =
                super::line(&report(states), &Catalogue::default(), false, None, Some(told.clone()));
            assert_eq!((found, line.contains(&told)), (level, level == Level::Warning), "{line}");
        }
    }

    #[test]
    fn a_boot_on_trial_is_a_warning_and_behind_what_is_not_as_wanted() {
        use TrialBootState::{Armed, Disarmed, Over, PassedOver, Running};
        for (state, told) in [
            (Armed, "the next boot is a trial (skew_tick=1): planish undo 7, to have none |"),
            (PassedOver, "the next boot is a trial (skew_tick=1): planish undo 7, to have none |"),
            (
                Running,
                "this boot is a trial (skew_tick=1), and nobody decided it: planish confirm, or planish undo 7 |",
            ),
            (Disarmed, "a trial boot came to nothing: planish undo 7 |"),
            (Over, "a trial boot came to nothing: planish undo 7 |"),
        ] {
            let arguments = "skew_tick=1".to_owned();
            let boot = TrialBoot { entry: planish_model::EntryId(7), state, arguments };
            for (states, level) in [
                (&[][..], Level::Warning),
                (&[DriftState::Ok], Level::Warning),
                (&[DriftState::PendingReboot], Level::Warning),
                (&[DriftState::Drift], Level::Critical),
            ] {
                let report = CheckReport { trial_boots: vec![boot.clone()], ..report(states) };
                let (line, found) = line(&report, false);
                assert_eq!(
                    (found, line.contains(told)),
                    (level, level == Level::Warning),
                    "{state:?} {line}"
                );
            }
        }
    }

    #[test]
    fn an_entry_that_another_one_was_to_replace_is_a_warning() {
        let left = Unfinished { entry: planish_model::EntryId(2), old: planish_model::EntryId(1) };
        let told = "planish WARNING: entry 2 is to take the place of entry 1, of which something is left: \
                    planish undo 1\n";
        assert_eq!(unfinished(&left), (told.to_owned(), Level::Warning));
    }
}
