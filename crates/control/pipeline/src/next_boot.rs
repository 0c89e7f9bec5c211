//! What files bring at the next boot, held against what the host has promised to programs now. A mode and its limit
//! are of different entries, files and hands, and a limit that is in force without a file is none of the next boot.
//! Pools count as they are now: what the boot adds to them is for programs that promise as much less of their own then.

use std::collections::BTreeMap;

use planish_model::{KnobId, Observation, Step, Verdict, VerdictKind};

use crate::session::Session;

/// The ratio of a kernel that nobody tells another (`sysctl_overcommit_ratio` of `mm/util.c`), in percent.
const RATIO: (&str, &str) = ("vm.overcommit_ratio", "50");

/// Why the next boot would hold programs to less than they are promised now: with `lines` that are to be written, by
/// place, and else with what the files of the host say. Nothing where two files set the two ways of a limit: which of
/// them is written last is not looked at.
pub(crate) fn starves(session: &Session, lines: &BTreeMap<String, String>) -> Option<String> {
    let catalogue = session.catalogue();
    let observation = session.observe_modes();
    let value = |place: &str| -> Option<(String, String)> {
        let planned = lines.get(place).map(|value| (value.clone(), "what is to be written".to_owned()));
        planned.or_else(|| of_files(&observation, place))
    };
    catalogue.modes().find_map(|(mode, enforces)| {
        let (at, source) = value(&mode.path).filter(|(value, _)| mode.r#type.same(value, &enforces.at))?;
        let limits = enforces.limits.iter().filter_map(|id| {
            let limit = catalogue.knob(id).ok()?;
            value(&limit.path).map(|(value, _)| (limit, value))
        });
        let mut limits: Vec<_> = limits.collect();
        if limits.len() > 1 {
            return None;
        }
        if limits.is_empty() {
            limits.push((catalogue.knob(&KnobId::new(RATIO.0)).ok()?, RATIO.1.to_owned()));
        }
        let told =
            limits.iter().map(|(limit, value)| format!("{} is {value} then", limit.id)).collect::<String>();
        let steps = limits.into_iter().chain([(mode, at)]).map(|(knob, value)| {
            let now = session.host().read(&knob.path).unwrap_or_default();
            Step::of(knob, &knob.path, now, value, Verdict::new(VerdictKind::Settable, "at the next boot"))
        });
        let why = planish_decide::starves(&observation, &steps.collect::<Vec<_>>())?;
        Some(format!("at the next boot {why}, since {} is {} ({source}) and {told}", mode.id, enforces.at))
    })
}

fn of_files(observation: &Observation, place: &str) -> Option<(String, String)> {
    let persisted = observation.persisted.get(place)?;
    let value = persisted.at_boot.as_ref().unwrap_or(&persisted.value);
    Some((value.clone(), persisted.source.clone()))
}
