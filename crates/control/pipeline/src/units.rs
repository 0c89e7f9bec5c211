//! What systemd has to be told after drop-ins of units were written or taken out. Nothing is started or stopped here:
//! when a service may restart is for its owner to say.

use planish_model::{Outcome, OutcomeKind, Persisted, Plan, Undo};

/// Where drop-ins of the administrator are.
const FOLDER: &str = "/etc/systemd/system/";

/// Where those of systemd's own configuration are.
const MANAGER_FOLDER: &str = "/etc/systemd/system.conf.d/";

/// The unit that a drop-in is of.
fn unit_of(place: &str) -> Option<&str> {
    let (unit, _) = place.strip_prefix(FOLDER)?.split_once(".d/")?;
    unit.ends_with(".service").then_some(unit)
}

/// What makes drop-ins count that were written or taken out, if there are any.
pub(crate) fn to_restart(outcomes: &[Outcome]) -> Option<String> {
    let done = outcomes.iter().filter(|outcome| outcome.outcome == OutcomeKind::Done);
    told(done.filter_map(|outcome| unit_of(&outcome.place)).collect())
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
    told(files.filter_map(|step| unit_of(&step.place)).collect())
        .map(|command| format!("drop-ins of units are written by planish confirm; then: {command}"))
}

fn told(all: Vec<&str>) -> Option<String> {
    // Several files of one unit are in the order of their knobs, so that a unit comes again later.
    let mut units: Vec<&str> = Vec::new();
    for unit in all {
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
        }
    }
}
