//! Transparent huge pages of 512 MiB, which base pages of 64 KiB come to: advice that was measured with 2 MiB is not
//! for them.

use planish_model::{Class, Plan, VerdictKind};
use planish_pipeline::{PlanOptions, Source, doctor, plan};

use crate::tree::*;

const ALWAYS: &str = "[always] madvise never\n";

fn planned(tree: &Tree, profile: &str) -> Plan {
    let allow_classes = vec![Class::Availability, Class::Durability];
    let options = PlanOptions { allow_classes, ..PlanOptions::default() };
    plan(&tree.session(), &Source::named(profile), &options).expect("a plan")
}

/// What a plan wants of THP, or why it leaves that alone.
fn thp_of(plan: &Plan) -> Result<&str, &str> {
    if let Some(step) = plan.steps.iter().find(|step| step.knob.as_str() == "thp.enabled") {
        return Ok(&step.wanted);
    }
    let row = plan.skipped.iter().find(|row| row.knob.as_str() == "thp.enabled").expect("a row");
    if row.satisfied {
        return Ok(row.wanted.as_deref().expect("a word"));
    }
    assert_eq!(row.verdict.verdict, VerdictKind::Moot, "{row:?}");
    Err(&row.verdict.reason)
}

fn found(tree: &Tree) -> Vec<String> {
    let doctor = doctor(&tree.session(), None, None, &[]).expect("looked at");
    doctor.findings.into_iter().map(|finding| finding.id).collect()
}

#[test]
fn pages_of_512_mib_are_not_for_every_program() {
    let (large, small) = (Tree::copy_of("arm64-64k"), Tree::copy_of("metal-2s"));
    assert_eq!(thp_of(&planned(&large, "mongodb")), Ok("never"), "the advice for small ones is `always`");
    assert_eq!(thp_of(&planned(&small, "mongodb")), Ok("always"));
    let reason = "advice for transparent huge pages of 2 MiB at most, here they have 512 MiB";
    assert_eq!(thp_of(&planned(&large, "redpanda")), Err(reason));
    assert_eq!(thp_of(&planned(&small, "redpanda")), Ok("always"));
    let odd = |tree: &Tree| {
        let plan = planned(tree, "mongodb-7");
        plan.steps.iter().any(|step| step.knob.as_str() == "thp.khugepaged.max_ptes_none")
    };
    assert!(!odd(&large), "511 of 8192 is nobody's advice");
    assert_eq!(large.get(THP), "always [madvise] never\n");
    assert!(!found(&large).iter().any(|id| id == "thp.page_too_large"));
    for (tree, is_told) in [(&large, true), (&small, false)] {
        tree.put(THP, ALWAYS);
        assert_eq!(found(tree).iter().any(|id| id == "thp.page_too_large"), is_told);
    }
}
