//! JSON that planish wrote, and takes back from whoever had it meanwhile: plans and outcomes of trials.

#![no_main]

use libfuzzer_sys::fuzz_target;
use planish_model::Plan;
use planish_trial::TrialOutcome;
use serde::Serialize;
use serde::de::DeserializeOwned;

fuzz_target!(|text: &str| {
    if let Some(plan) = read::<Plan>(text) {
        let again: Plan = read(&write(&plan)).expect("what we write, we read");
        assert_eq!(again, plan);
        assert_eq!(again.is_intact(), plan.is_intact());
        let _ = (plan.named_twice(), plan.needs_reboot());
        covered(plan);
    }
    if let Some(outcome) = read::<TrialOutcome>(text) {
        read::<TrialOutcome>(&write(&outcome)).expect("what we write, we read");
    }
});

/// A plan that is made of these steps is intact, and no change of what it writes goes unseen.
fn covered(plan: Plan) {
    let Plan { profile, host_id, boot_id, steps, skipped, boot, .. } = plan;
    let whole = Plan::new(profile, host_id, boot_id, steps, skipped).with_boot(boot);
    assert!(whole.is_intact());
    for index in 0..whole.steps.len() {
        let mut edited = whole.clone();
        edited.steps[index].wanted.push('0');
        assert!(!edited.is_intact(), "the wanted value of step {index}");
        let mut edited = whole.clone();
        edited.steps[index].place.push('/');
        assert!(!edited.is_intact(), "the place of step {index}");
    }
    let edited = Plan { host_id: format!("{}0", whole.host_id), ..whole };
    assert!(!edited.is_intact(), "the host");
}

fn read<T: DeserializeOwned>(text: &str) -> Option<T> {
    serde_json::from_str(text).ok()
}

fn write<T: Serialize>(document: &T) -> String {
    serde_json::to_string(document).expect("plain data with text keys")
}
