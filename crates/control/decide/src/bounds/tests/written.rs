//! What may wait to be written, as an amount and as a share of memory.

use planish_model::{Original, Undo};

use super::*;
use crate::testing::entry_holding;

#[test]
fn what_waits_to_be_written_is_bounded_by_memory() {
    let catalogue = Catalogue::embedded().expect("sound");
    let mut observation = host();
    for (id, name, value) in [
        ("vm.dirty_background_bytes", "dirty_background_bytes", "0"),
        ("vm.dirty_background_ratio", "dirty_background_ratio", "10"),
    ] {
        let place = format!("/proc/sys/vm/{name}");
        observation.knobs.entry(KnobId::new(id)).or_default().push(reading(&place, value));
    }
    let made = |id: &str, wanted: i64, options: &Options| {
        let profile = profile(&[(id, Want::Int(wanted))]);
        let mut observation = observation.clone();
        if id == "vm.dirty_background_ratio" {
            // Its highest is beyond all that is asked for here.
            let highest = observation.knobs.get_mut(&KnobId::new("vm.dirty_ratio")).expect("is there");
            highest[0].value = Some("100".to_owned());
        }
        plan(&catalogue, &observation, &profile, &[], options).expect("a plan")
    };
    let none = Options::default();
    for id in ["vm.dirty_bytes", "vm.dirty_background_bytes"] {
        let named = Options { allow_knobs: vec![KnobId::new(id)], ..Options::default() };
        assert_eq!(made(id, 16 << 30, &named).steps.len(), 1, "all of 16 GiB, to whoever says so");
        let plan = made(id, 999_999_999_999_999, &none);
        assert!(plan.steps.is_empty() && plan.skipped[0].impossible, "{id}: {:?}", plan.skipped);
        assert!(plan.skipped[0].verdict.reason.contains("could wait to be written"), "{:?}", plan.skipped);
    }
    let durability = Options { allow_classes: vec![Class::Durability], ..Options::default() };
    for id in ["vm.dirty_ratio", "vm.dirty_background_ratio"] {
        assert_eq!(made(id, 40, &none).steps.len(), 1);
        let plan = made(id, 100, &none);
        assert!(plan.steps.is_empty(), "{:?}", plan.steps);
        assert!(plan.skipped[0].verdict.reason.ends_with("--allow durability"), "{:?}", plan.skipped);
        assert_eq!(made(id, 100, &durability).steps.len(), 1, "whoever says so gets it");
    }
}

/// `postgres` bounds what may wait to be written by 512 MiB, and on a guest of 1 GiB the share in force is less.
#[test]
fn an_amount_to_be_written_raises_no_share_that_is_in_force() {
    let catalogue = Catalogue::embedded().expect("sound");
    let made = |available: u64, now: [&str; 2], options: &Options| {
        let mut observation = host();
        observation.host.available_bytes = available;
        for (id, value) in ["vm.dirty_bytes", "vm.dirty_ratio"].into_iter().zip(now) {
            let place = catalogue.knob(&KnobId::new(id)).expect("a row").path.clone();
            observation.knobs.insert(KnobId::new(id), vec![reading(&place, value)]);
        }
        let profile = profile(&[("vm.dirty_bytes", Want::Int(512 << 20))]);
        plan(&catalogue, &observation, &profile, &[], options).expect("known knobs")
    };
    let none = Options::default();
    let small = made(686 << 20, ["0", "20"], &none);
    let [row] = small.skipped.as_slice() else { panic!("{small:?}") };
    assert!(small.steps.is_empty() && !row.impossible && row.verdict.verdict == VerdictKind::Moot, "{row:?}");
    assert_eq!(
        row.verdict.reason,
        "not needed: vm.dirty_ratio is 20 %, which is 137.2 MiB of the 686 MiB available, and 512 MiB would raise \
         that: --allow-knob vm.dirty_bytes to have it so"
    );
    assert_eq!(made(2560 << 20, ["0", "20"], &none).steps.len(), 1, "it is as much");
    assert_eq!(made(2560 << 20, ["0", "19"], &none).steps.len(), 0, "it is less");
    assert_eq!(made(686 << 20, ["1073741824", "0"], &none).steps.len(), 1, "an amount is in force");
    assert_eq!(made(0, ["0", "20"], &none).steps.len(), 1, "nobody knows how much is available");
    let named = Options { allow_knobs: vec![KnobId::new("vm.dirty_bytes")], ..Options::default() };
    assert_eq!(made(686 << 20, ["0", "20"], &named).steps.len(), 1, "whoever names it gets it");
}

/// `throughput` lets 40 % wait to be written, and an admin bounded it by 256 MiB.
#[test]
fn a_share_to_be_written_ends_no_smaller_amount_of_somebody() {
    let catalogue = Catalogue::embedded().expect("sound");
    for (amount_id, share_id) in
        [("vm.dirty_bytes", "vm.dirty_ratio"), ("vm.dirty_background_bytes", "vm.dirty_background_ratio")]
    {
        let on = |available: u64, amount: &str, open: &[Entry], options: &Options| {
            let mut observation = host();
            observation.host.available_bytes = available;
            for (id, value) in [(amount_id, amount), (share_id, "0")] {
                let place = catalogue.knob(&KnobId::new(id)).expect("a row").path.clone();
                observation.knobs.insert(KnobId::new(id), vec![reading(&place, value)]);
            }
            let highest = KnobId::new("vm.dirty_ratio");
            if share_id != highest.as_str() {
                // Its highest is no less.
                observation.knobs.get_mut(&highest).expect("is there")[0].value = Some("100".to_owned());
            }
            plan(&catalogue, &observation, &profile(&[(share_id, Want::Int(40))]), open, options)
                .expect("known knobs")
        };
        let made = |available: u64, amount: &str, options: &Options| on(available, amount, &[], options);
        let none = Options::default();
        let refused = made(12 << 30, "268435456", &none);
        let [row] = refused.skipped.as_slice() else { panic!("{refused:?}") };
        assert!(refused.steps.is_empty() && row.verdict.verdict == VerdictKind::Blocked, "{row:?}");
        assert_eq!(
            row.verdict.reason,
            format!(
                "{amount_id} is 256 MiB by somebody's word, and would go for 40 %, 4.8 GiB of the 12 GiB available, \
                 so that a power cut loses more: --allow durability"
            )
        );
        assert_eq!(made(10 << 30, "4294967296", &none).steps.len(), 1, "it is as much");
        assert_eq!(made(10 << 30, "4294967295", &none).steps.len(), 0, "it is less");
        assert_eq!(made(0, "268435456", &none).steps.len(), 0, "nobody knows how much is available");
        let durability = Options { allow_classes: vec![Class::Durability], ..Options::default() };
        assert_eq!(made(12 << 30, "268435456", &durability).steps.len(), 1);
        let named = Options { allow_knobs: vec![KnobId::new(share_id)], ..Options::default() };
        assert_eq!(made(12 << 30, "268435456", &named).steps.len(), 1, "whoever names it gets it");
        let knob = catalogue.knob(&KnobId::new(amount_id)).expect("a row");
        for (before, now, steps) in
            [("0", "268435456", 1), ("1073741824", "268435456", 0), ("0", "268435457", 0)]
        {
            let mut entry = entry_holding("mine", &knob.path, 0);
            let [step] = entry.steps.as_mut_slice() else { unreachable!() };
            (step.undo, step.wanted) = (Undo::Restore, "268435456".to_owned());
            step.originals = vec![Original {
                knob: knob.id.clone(),
                place: knob.path.clone(),
                r#type: knob.r#type.clone(),
                value: before.to_owned(),
                coupling: None,
                over: None,
            }];
            let made = on(12 << 30, now, &[entry], &none);
            assert_eq!(made.steps.len(), steps, "{before} before an entry of ours, {now} now: {made:?}");
        }
    }
}
