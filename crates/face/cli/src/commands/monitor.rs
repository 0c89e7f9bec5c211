//! `planish check --monitor`: one line and one of four codes, as plug-ins of monitoring systems end.
//!
//! The codes are not those of the other commands: 0 ok, 1 warning, 2 critical, 3 unknown. What could not be looked at
//! is never ok.

use planish_model::{DriftState, KnobCheck};
use planish_report::{CheckReport, units};

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

/// Places that are named before the others are only counted.
const NAMED_MAX: usize = 3;

/// The line and the code of a check that could be made. `hidden` is a journal that only root may read: without it
/// nobody knows what was applied.
pub(crate) fn line(report: &CheckReport, hidden: bool) -> (String, Level) {
    let wanted: Vec<&KnobCheck> = report.knobs.iter().filter(|knob| knob.wanted.is_some()).collect();
    let of = |state: DriftState| -> Vec<&KnobCheck> {
        wanted.iter().filter(|knob| knob.state == state).copied().collect()
    };
    let (ok, drift, lost, pending, unknown) = (
        of(DriftState::Ok),
        of(DriftState::Drift),
        of(DriftState::LostAtBoot),
        of(DriftState::PendingReboot),
        of(DriftState::Unknown),
    );
    let (level, told) = if !drift.is_empty() {
        (Level::Critical, format!("{} not as wanted: {}", counted(&drift), named(&drift)))
    } else if !unknown.is_empty() {
        (Level::Unknown, format!("{} cannot be read: {}", counted(&unknown), named(&unknown)))
    } else if hidden {
        (Level::Unknown, "what root applied is in a journal that only root may read".to_owned())
    } else if !lost.is_empty() {
        (Level::Warning, format!("{} will be lost at the next boot: {}", counted(&lost), named(&lost)))
    } else if !pending.is_empty() {
        (Level::Warning, format!("{} wait for a reboot: {}", counted(&pending), named(&pending)))
    } else if !ok.is_empty() {
        (Level::Ok, format!("{} as wanted", counted(&ok)))
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

/// The line of a check that could not be made.
pub(crate) fn unknown(why: &str) -> String {
    // A bar would begin the figures.
    let why = why.replace(['\n', '|'], " ");
    units::harmless(&format!("planish {}: {why}\n", Level::Unknown.word())).into_owned()
}

fn counted(places: &[&KnobCheck]) -> String {
    units::count(places.len(), "place")
}

fn named(places: &[&KnobCheck]) -> String {
    let value = |text: &Option<String>| text.as_deref().unwrap_or("?").replace(['\n', '|'], " ");
    let mut told: Vec<String> = places
        .iter()
        .take(NAMED_MAX)
        .map(|place| format!("{} is {}, wanted {}", place.knob, value(&place.running), value(&place.wanted)))
        .collect();
    if places.len() > NAMED_MAX {
        told.push(format!("and {} more", places.len() - NAMED_MAX));
    }
    told.join("; ")
}

#[cfg(test)]
mod tests {
    use planish_model::KnobId;

    use super::*;

    fn report(states: &[DriftState]) -> CheckReport {
        let knob = |state: &DriftState| KnobCheck {
            knob: KnobId::new("vm.swappiness"),
            place: "/proc/sys/vm/swappiness".to_owned(),
            running: Some("6|0".to_owned()),
            persisted: None,
            next_boot: None,
            wanted: Some("10".to_owned()),
            state: *state,
            because: None,
        };
        CheckReport { against: None, knobs: states.iter().map(knob).collect() }
    }

    #[test]
    fn the_gravest_decides_and_what_nobody_could_see_is_never_ok() {
        use DriftState::{Drift, LostAtBoot, NotHere, Ok, PendingReboot, Unknown};
        for (states, hidden, level) in [
            (&[][..], false, Level::Ok),
            (&[Ok, NotHere], false, Level::Ok),
            (&[NotHere], false, Level::Ok),
            (&[Ok], true, Level::Unknown),
            (&[Ok, PendingReboot], false, Level::Warning),
            (&[LostAtBoot, PendingReboot], false, Level::Warning),
            (&[LostAtBoot, Unknown], false, Level::Unknown),
            (&[Unknown, Drift], true, Level::Critical),
        ] {
            assert_eq!(line(&report(states), hidden).1, level, "{states:?} {hidden}");
        }
    }

    #[test]
    fn the_line_is_one_and_names_a_few() {
        let drift = [DriftState::Drift; 5];
        let (text, level) = line(&report(&drift), false);
        assert_eq!(level as u8, 2);
        assert_eq!(
            text,
            "planish CRITICAL: 5 places not as wanted: vm.swappiness is 6 0, wanted 10; \
             vm.swappiness is 6 0, wanted 10; vm.swappiness is 6 0, wanted 10; \
             and 2 more | wanted=5 drift=5 lost=0 pending=0 unknown=0\n"
        );
        assert_eq!(unknown("a | b\nc"), "planish UNKNOWN: a   b c\n");
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
}
