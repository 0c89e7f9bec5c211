//! What systemd has to be told after drop-ins of units were written or taken out. Nothing is started or stopped here:
//! when a service may restart is for its owner to say.

use planish_act::{Sink, groups};
use planish_host::Host;
use planish_model::{Cpus, Entry, Outcome, OutcomeKind, Persisted, Plan, Undo, ValueType, part_at};

use crate::warm;

/// Where drop-ins of the administrator are.
const FOLDER: &str = "/etc/systemd/system/";

/// Where those of systemd's own configuration are.
const MANAGER_FOLDER: &str = "/etc/systemd/system.conf.d/";

/// The service that a drop-in is of.
pub(crate) fn unit_of(place: &str) -> Option<&str> {
    let (unit, _) = place.strip_prefix(FOLDER)?.split_once(".d/")?;
    unit.ends_with(".service").then_some(unit)
}

/// What makes drop-ins count that were written or taken out, if there are any.
pub(crate) fn to_restart(outcomes: &[Outcome]) -> Option<String> {
    let done = outcomes.iter().filter(|outcome| outcome.outcome == OutcomeKind::Done);
    // What is done before a start needs none.
    let others = done.filter(|outcome| !warm::is_own(&outcome.place));
    told(others.filter_map(|outcome| unit_of(&outcome.place)).collect())
        .map(|command| format!("a unit that runs takes it up by: {command}"))
}

/// What makes the configuration of systemd itself count that was written or taken out.
pub(crate) fn to_reexec(outcomes: &[Outcome]) -> Option<String> {
    let mut done = outcomes.iter().filter(|outcome| outcome.outcome == OutcomeKind::Done);
    done.any(|outcome| outcome.place.starts_with(MANAGER_FOLDER)).then(|| {
        "what starts later keeps to the CPUs of systemd after: systemctl daemon-reexec, or a reboot"
            .to_owned()
    })
}

/// What makes the CPUs of parts of the system count that were written or taken out: nothing starts anew for it.
pub(crate) fn to_reload(outcomes: &[Outcome]) -> Option<String> {
    let mut done = outcomes.iter().filter(|outcome| outcome.outcome == OutcomeKind::Done);
    done.any(|outcome| is_of_part(&outcome.place)).then(|| {
        "systemd gives parts of the system what its files say, and what runs in them moves at once, at any \
         daemon-reload, that of a package too; now by: systemctl daemon-reload"
            .to_owned()
    })
}

/// Whether a place is a drop-in of a part of the system.
pub(crate) fn is_of_part(place: &str) -> bool {
    part_at(place).is_some()
}

/// The CPUs of a part of the system, given back after its file was taken out: before the outcome is in the journal, so
/// that an undo which is killed in between gives them back when it is run again.
pub(crate) fn give_back(
    outcome: Outcome,
    host: &Host,
    entries: &[Entry],
    force: bool,
    sink: &dyn Sink,
) -> Outcome {
    let place = outcome.place.clone();
    let Some(unit) = part_at(&place) else { return outcome };
    let steps = || entries.iter().flat_map(|entry| &entry.steps).filter(|step| step.place == place);
    let by_files = steps().filter_map(|step| cpus_of(&step.wanted));
    let caused = steps().flat_map(|step| &step.undone).flat_map(|undone| &undone.caused);
    let by_undos = caused.filter(|caused| caused.place == groups::file(unit));
    let by_undos = by_undos.filter_map(|caused| Cpus::parse(&caused.value));
    let ours: Vec<Cpus> = by_files.chain(by_undos).collect();
    let theirs = planish_observe::cpus_by_others(host, &place).map(|(_, source)| source);
    let limited = groups::Limited { unit, ours: &ours, theirs: theirs.as_deref() };
    groups::give_back(outcome, &limited, force, sink)
}

/// The CPUs that lines of a file of ours give.
fn cpus_of(lines: &str) -> Option<Cpus> {
    Cpus::parse(&ValueType::cpus_of_a_unit().normal(lines))
}

/// What is left to do for the partition of services whose slice was just written.
pub(crate) fn to_isolate(outcomes: &[Outcome]) -> Option<String> {
    let mut done = outcomes.iter().filter(|outcome| outcome.outcome == OutcomeKind::Done);
    done.any(|outcome| outcome.place.strip_prefix(FOLDER) == Some(Persisted::OWN_SLICE)).then(|| {
        format!(
            "{} is there once they have restarted: apply again, and its CPUs leave all others",
            Persisted::OWN_SLICE
        )
    })
}

/// The same for a plan whose files wait for a confirm.
pub(crate) fn to_confirm(plan: &Plan) -> Option<String> {
    let files = plan.steps.iter().filter(|step| step.undo == Undo::File);
    let has_parts = files.clone().any(|step| is_of_part(&step.place));
    told(files.filter_map(|step| unit_of(&step.place)).collect())
        .or_else(|| has_parts.then(|| "systemctl daemon-reload".to_owned()))
        .map(|command| format!("drop-ins of units are written by planish confirm; then: {command}"))
}

fn told(all: Vec<&str>) -> Option<String> {
    // Several files of one unit are in the order of their knobs, so that a unit comes again later.
    let mut units: Vec<String> = Vec::new();
    for unit in all {
        // Nobody can start a template: what is meant are its instances that run.
        let unit =
            unit.strip_suffix("@.service").map_or(unit.to_owned(), |name| format!("'{name}@*.service'"));
        if !units.contains(&unit) {
            units.push(unit);
        }
    }
    (!units.is_empty()).then(|| format!("systemctl daemon-reload; systemctl restart {}", units.join(" ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drop_in_tells_its_unit() {
        assert_eq!(unit_of("/etc/systemd/system/a@1.service.d/zz-planish.conf"), Some("a@1.service"));
        for other in ["/etc/systemd/system/timers.target.d/90-planish.conf", "/etc/sysctl.d/90-planish.conf"]
        {
            assert_eq!(unit_of(other), None, "{other}");
            assert!(!is_of_part(other), "{other}");
        }
        let told = told(vec!["a@.service", "b.service", "b.service"]);
        assert_eq!(
            told.as_deref(),
            Some("systemctl daemon-reload; systemctl restart 'a@*.service' b.service")
        );
    }
}
