//! The shipped catalogue, held to what it promises to answer.

use std::collections::BTreeSet;

use planish_model::{Answer, Catalogue, KnobId, Vendor, Want};

/// What the guide sets, one setting a line.
const GUIDE: &str = include_str!("zepto-guide.txt");

fn catalogue() -> Catalogue {
    Catalogue::embedded().expect("sound")
}

#[test]
fn every_setting_of_the_guide_is_answered_once() {
    let profile = catalogue().profile("zepto").expect("shipped");
    let said: BTreeSet<&str> = GUIDE.lines().filter(|line| !line.starts_with('#')).collect();
    let answered: Vec<&str> = profile.guide.iter().map(|line| line.says.as_str()).collect();
    let once: BTreeSet<&str> = answered.iter().copied().collect();
    assert_eq!(once.len(), answered.len(), "answered twice");
    assert_eq!(once, said);
    assert!(profile.guide.iter().all(|line| line.why.len() > 3 && line.why.ends_with('.')));
}

#[test]
fn what_was_kept_is_wanted_word_for_word_and_what_was_changed_is_not() {
    let profile = catalogue().profile("zepto").expect("shipped");
    let mut compared = 0;
    for line in &profile.guide {
        let (Some(id), Some((_, value))) = (&line.knob, line.says.split_once('=')) else { continue };
        let Some(want) = profile.want.get(id) else { continue };
        let says_it = want.literals().iter().any(|literal| literal == value);
        // One knob answers two settings: `vm.swappiness` is 0 in the script and 1 in the article.
        match line.answer {
            Answer::Kept => assert!(says_it, "{}: {:?}", line.says, want.literals()),
            Answer::Changed => {
                assert!(!says_it || line.says.starts_with("vm.numa_balancing"), "{}", line.says)
            }
            other => panic!("{}: {other:?}, and wanted", line.says),
        }
        compared += 1;
    }
    assert!(compared > 25, "{compared}");
}

#[test]
fn every_knob_that_is_wanted_somewhere_tells_what_it_costs() {
    let catalogue = catalogue();
    for name in catalogue.profile_names() {
        for id in catalogue.profile(name).expect("resolves").want.keys() {
            let knob = catalogue.knob(id).expect("checked");
            assert!(knob.cost.ends_with('.') && knob.why.ends_with('.'), "{id}");
        }
    }
}

#[test]
fn advice_that_turned_over_is_conditional() {
    let catalogue = catalogue();
    let values = |profile: &str, id: &str| {
        catalogue.profile(profile).expect("shipped").want[&KnobId::new(id)].literals()
    };
    assert_eq!(values("mongodb", "thp.enabled"), ["always", "never"]);
    assert_eq!(values("mongodb-7", "thp.enabled"), ["never"]);
    assert_eq!(values("oracle", "thp.enabled"), ["madvise", "never"]);
    assert_eq!(values("oracle-19c", "thp.enabled"), ["never"]);
    assert_eq!(values("hana", "thp.enabled"), ["madvise", "never"]);
    let id = KnobId::new("kernel.numa_balancing");
    for name in catalogue.profile_names() {
        let cases = match catalogue.profile(name).expect("shipped").want.get(&id) {
            Some(Want::Case(case)) => vec![case.as_ref().clone()],
            Some(Want::Cases(cases)) => cases.clone(),
            Some(other) => panic!("{name} wants {id} of every maker: {other:?}"),
            None => Vec::new(),
        };
        for case in cases.iter().filter(|case| case.value == "0") {
            let vendors = &case.needs.vendor;
            assert!(!vendors.is_empty() && !vendors.contains(&Vendor::Amd), "{name}: {vendors:?}");
        }
    }
}
