//! The smallest gain that is worth a change, by what the change costs those who keep it.
//!
//! A setting of the running host is set and undone in a second; a restart is a risk at night, a build one more thing to
//! keep up to date, and a reboot takes the machine out of service.

use std::collections::{BTreeMap, BTreeSet};

use planish_model::{Catalogue, KnobId, Want, When};
use planish_sorted::CollectMap as _;

use super::ArmSpec;

/// Settings that work at the write.
const NOW: f64 = 0.005;
/// What needs a fresh start of the program: environment, CPUs, allocator, knobs for memory that is mapped later. And
/// builds.
pub(super) const START: f64 = 0.01;
/// What needs a reboot.
pub(super) const BOOT: f64 = 0.02;

/// The smallest gain of an arm whose file names none: the largest of its parts.
pub(super) fn usual(arm: &ArmSpec, catalogue: &Catalogue) -> f64 {
    let of_knob = |id: KnobId| match catalogue.knob(&id).map(|knob| knob.when) {
        Ok(When::Now) => NOW,
        Ok(When::Boot) => BOOT,
        Ok(When::Process | When::Reload) | Err(_) => START,
    };
    let host = knobs(arm, catalogue).into_iter().map(of_knob).reduce(f64::max);
    let restarts = !arm.env.is_empty()
        || !arm.args.is_empty()
        || !arm.build.is_empty()
        || arm.cpus.is_some()
        || arm.node.is_some()
        || arm.program.is_some();
    match host {
        Some(host) if !restarts => host,
        Some(host) => host.max(START),
        None => START,
    }
}

/// The knobs that an arm sets: its own, and those of its profile with all that it inherits.
pub(super) fn knobs(arm: &ArmSpec, catalogue: &Catalogue) -> Vec<KnobId> {
    sets(arm, catalogue).into_keys().collect()
}

/// What an arm sets them to: its own values are on top of those of its profile, and take those of their twins out.
pub(super) fn sets(arm: &ArmSpec, catalogue: &Catalogue) -> BTreeMap<KnobId, Want> {
    let profile = arm.profile.as_ref().and_then(|name| catalogue.profile(name.get_ref()).ok());
    let own = arm.want.iter().map(|(id, want)| (KnobId::new(id.get_ref().as_str()), want.clone()));
    let own: BTreeMap<KnobId, Want> = own.collect_map();
    let cleared = twins(own.keys(), catalogue);
    let of_profile = profile.into_iter().flat_map(|profile| profile.want);
    of_profile.filter(|(id, _)| !cleared.contains(id)).chain(own).collect_map()
}

/// The knobs that lose their values when these are set.
pub(super) fn twins<'k>(ids: impl Iterator<Item = &'k KnobId>, catalogue: &Catalogue) -> BTreeSet<KnobId> {
    ids.filter_map(|id| catalogue.knob(id).ok()?.twin.clone()).collect()
}

/// Each of these knobs that sets the same state as another one through another place, with that one. Rows of the
/// catalogue may say so on one side alone; here both do.
pub(super) fn aliases<'k>(
    ids: impl Iterator<Item = &'k KnobId>,
    catalogue: &Catalogue,
) -> BTreeSet<(KnobId, KnobId)> {
    let names = |one: &KnobId, other| catalogue.knob(one).is_ok_and(|knob| knob.alias.contains(other));
    let mut pairs = BTreeSet::new();
    for id in ids {
        let others = catalogue.knobs().map(|knob| &knob.id);
        let faces = others.filter(|other| names(id, other) || names(other, id));
        pairs.extend(faces.map(|other| (id.clone(), other.clone())));
    }
    pairs
}

#[cfg(test)]
mod tests {
    use crate::file::TrialFile;

    const HEAD: &str = "name = \"t\"\nsummary = \"s\"\n";
    const COMMAND: &str = "[workload]\nadapter = \"command\"\ncommand = [\"true\"]\n";

    fn gains(head: &str, rungs: &[&str]) -> Vec<f64> {
        let rungs = rungs.iter().enumerate();
        let rungs: String =
            rungs.map(|(index, rung)| format!("[[rung]]\nname = \"{index}\"\n{rung}\n")).collect();
        let trial =
            TrialFile::parse("t.toml", &format!("{HEAD}{head}{COMMAND}{rungs}")).expect("a good file");
        let gains = trial.rung_gains();
        assert_eq!(Some(trial.least_gain()), gains.iter().copied().reduce(f64::min));
        gains
    }

    #[test]
    fn what_is_hard_to_keep_must_gain_more() {
        let rungs = [
            "want = { \"vm.swappiness\" = 1 }",
            "want = { \"vm.swappiness\" = 1 }\nenv = { A = \"1\" }",
            "cpus = \"0\"",
            "build = [\"make\"]",
            "want = { \"vm.swappiness\" = 1, \"boot.transparent_hugepage\" = \"always\" }",
            "",
        ];
        assert_eq!(gains("", &rungs), [0.005, 0.01, 0.01, 0.01, 0.02, 0.01]);
    }

    #[test]
    fn the_user_s_own_figures_count_before_ours() {
        let rungs = ["want = { \"vm.swappiness\" = 1 }", "min_gain = 0.07"];
        assert_eq!(gains("min_gain = 0.03\n", &rungs), [0.03, 0.07]);
        assert_eq!(gains("", &rungs), [0.005, 0.07]);
    }
}
