//! Whether a value is the original, ours or someone else's, and so what taking it back must write. Pure.
//!
//! Three texts are compared in normal form: the *original* of the journal, *ours* (what the place showed after
//! our write), and *now*. Only a value that is ours is written over. Coupled places follow the same rule:
//!
//! - a *twin* loses its value when the other is set, and a zero cannot be written back (`vm.dirty_bytes = 0` is
//!   EINVAL), so that of two twins the one that was live is written;
//! - an *alias* or *derived* place that our write changed is set back last, since restoring the step makes the
//!   kernel compute it once more; if it is theirs by then, the kernel's new answer is not allowed to replace it.

use planish_model::{Caused, Coupling, EntryStep, Original, PoolWrite};

/// Whose value a place shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// As it was before our first write.
    Original,
    /// As our write left it.
    Ours,
    /// As a newer open entry wants it: what comes back there is that one's to say.
    Newer,
    /// Neither: someone else set it since.
    Theirs,
    /// It changed, and a kill kept us from seeing whether our write did it.
    Unclear,
}

/// Whose value the place of a step shows. `inherited` is what undone entries below it had left (see
/// [`crate::stack`]): ours, too.
#[must_use]
pub fn own(step: &EntryStep, inherited: &[Caused], original: &Original, now: &str) -> Whose {
    let same = |text: &str| original.r#type.same(now, text);
    if same(&original.value) {
        Whose::Original
    } else if same(step.ours())
        || original.r#type.unkept(&step.wanted, now).is_some()
        || was_left(inherited, original, now)
    {
        Whose::Ours
    } else {
        Whose::Theirs
    }
}

/// Whose value a coupled place of a step shows.
#[must_use]
pub fn coupled(step: &EntryStep, inherited: &[Caused], original: &Original, now: &str) -> Whose {
    let same = |text: &str| original.r#type.same(now, text);
    if same(&original.value) {
        return Whose::Original;
    }
    if was_left(inherited, original, now) {
        return Whose::Ours;
    }
    let Some(outcome) = &step.outcome else {
        let cleared = original.coupling == Some(Coupling::Twin) && same("0");
        return if cleared { Whose::Ours } else { Whose::Unclear };
    };
    match outcome.caused.iter().find(|caused| caused.place == original.place) {
        Some(caused) if same(&caused.value) => Whose::Ours,
        _ => Whose::Theirs,
    }
}

/// Whether a place shows what an undone entry had left there.
fn was_left(inherited: &[Caused], original: &Original, now: &str) -> bool {
    inherited.iter().any(|left| left.place == original.place && original.r#type.same(now, &left.value))
}

/// The original that must be written to bring a step's place and its twin back: the live one of the two.
#[must_use]
pub fn live_one<'a>(step: &'a EntryStep, own: &'a Original) -> &'a Original {
    let is_zero = |original: &Original| original.r#type.same(&original.value, "0");
    let twin = step.coupled().find(|original| original.coupling == Some(Coupling::Twin));
    twin.filter(|twin| is_zero(own) && !is_zero(twin)).unwrap_or(own)
}

/// Whose pages a pool step still holds, given the pool's size now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// This many pages are ours.
    Pages(u64),
    /// A kill interrupted a write of the pool, and the size now does not prove how far it came: this many pages
    /// are ours, if nobody else changed the pool since.
    Unclear(u64),
}

/// How many pages of a pool a step holds.
///
/// A write that was begun took the pool from one size towards another. Only those two sizes prove something: one
/// in between is a grant that the kill cut short (the kernel stops at a signal), or a stranger's doing.
#[must_use]
pub fn held(step: &EntryStep, now: u64) -> Held {
    let Some(PoolWrite { held, from, to }) = step.begun else {
        return Held::Pages(step.pages_held());
    };
    let reached = now.clamp(from.min(to), from.max(to));
    let pages = (held + reached).saturating_sub(from);
    if now == from || now == to { Held::Pages(pages) } else { Held::Unclear(pages) }
}

#[cfg(test)]
mod tests {
    use planish_model::{KnobId, Outcome, OutcomeKind};
    use proptest::prelude::*;

    use super::*;
    use crate::testing::{original, pool_step, step as plain};

    fn step(wanted: &str, originals: Vec<Original>) -> EntryStep {
        EntryStep { originals, ..plain("own", "", wanted) }
    }

    fn outcome(read_back: &str, caused: &[(&str, &str)]) -> Option<Outcome> {
        let mut outcome = Outcome::new(KnobId::new("own"), "own", OutcomeKind::Done);
        outcome.read_back = Some(read_back.to_owned());
        outcome.caused = caused
            .iter()
            .map(|(place, value)| Caused { place: (*place).to_owned(), value: (*value).to_owned() })
            .collect();
        Some(outcome)
    }

    #[test]
    fn a_value_that_reads_back_changed_is_ours() {
        let mut step = step("64", vec![original("own", "32", None)]);
        step.outcome = outcome("60", &[]);
        let first = step.originals[0].clone();
        assert_eq!(own(&step, &[], &first, "60\n"), Whose::Ours);
        assert_eq!(own(&step, &[], &first, "64"), Whose::Theirs, "somebody wrote it again and it held");
        assert_eq!(own(&step, &[], &first, " 32 "), Whose::Original);
    }

    #[test]
    fn of_two_twins_the_live_one_is_written() {
        let twin = |value: &str| original("ratio", value, Some(Coupling::Twin));
        let step_of =
            |bytes: &str, ratio: &str| step("4096", vec![original("own", bytes, None), twin(ratio)]);
        let live = |step: &EntryStep| live_one(step, &step.originals[0]).place.clone();
        assert_eq!(live(&step_of("0", "20")), "ratio");
        assert_eq!(live(&step_of("8192", "0")), "own");
        assert_eq!(live(&step_of("0", "0")), "own");
    }

    #[test]
    fn a_coupled_place_is_ours_only_with_evidence() {
        let derived = original("min_free", "100", Some(Coupling::Derived));
        let mut step = step("1", vec![original("own", "0", None), derived.clone()]);
        assert_eq!(coupled(&step, &[], &derived, "100"), Whose::Original);
        assert_eq!(coupled(&step, &[], &derived, "300"), Whose::Unclear, "killed before it could look");
        step.outcome = outcome("1", &[("min_free", "300")]);
        assert_eq!(coupled(&step, &[], &derived, "300"), Whose::Ours);
        assert_eq!(coupled(&step, &[], &derived, "301"), Whose::Theirs);
    }

    #[test]
    fn a_cleared_twin_needs_no_evidence() {
        let twin = original("ratio", "20", Some(Coupling::Twin));
        let step = step("4096", vec![original("own", "0", None), twin.clone()]);
        assert_eq!(coupled(&step, &[], &twin, "0"), Whose::Ours);
        assert_eq!(coupled(&step, &[], &twin, "15"), Whose::Unclear);
    }

    proptest! {
        /// A raise and a later lowering, killed before or after the write: what is held is what was changed. At
        /// any other size nothing is proved.
        #[test]
        fn a_kill_never_loses_count_of_pages(from in 0u64..50, raise in 1u64..50, now in 0u64..200) {
            let mut step = pool_step("own", from, raise);
            step.begun = Some(PoolWrite { held: 0, from, to: from + raise });
            prop_assert_eq!(held(&step, from), Held::Pages(0));
            prop_assert_eq!(held(&step, from + raise), Held::Pages(raise));
            if now != from && now != from + raise {
                let likely = now.clamp(from, from + raise) - from;
                prop_assert_eq!(held(&step, now), Held::Unclear(likely));
            }
            step.begun = Some(PoolWrite { held: raise, from: from + raise, to: from });
            prop_assert_eq!(held(&step, from + raise), Held::Pages(raise));
            prop_assert_eq!(held(&step, from), Held::Pages(0));
        }
    }
}
