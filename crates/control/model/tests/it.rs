//! The shipped catalogue, held to what it promises to answer.

use std::collections::BTreeSet;

use planish_model::{Answer, Catalogue, Knob, KnobId, ValueType, Vendor, Want};

/// The lines of the guide and of the article on it that set something, found by their shape: see its head.
const LINES: &str = include_str!("zepto-lines.txt");

/// What stands in the guide's script and its unit alone, which its pages only name.
const OF_SCRIPT_AND_UNIT: [&str; 5] = [
    "kernel.numa_balancing=0",
    "CPUAffinity=0-7",
    "OOMScoreAdjust=-900",
    "LimitMEMLOCK=infinity",
    "LimitNOFILE=1048576",
];

fn catalogue() -> Catalogue {
    Catalogue::embedded().expect("sound")
}

/// What the lines set, each in one word or as `place=value`.
fn settings() -> Vec<String> {
    let mut looped = "";
    let mut settings = Vec::new();
    for line in LINES.lines().filter(|line| !line.starts_with('#')) {
        if let Some((_, path)) = line.split_once(" in ").filter(|_| line.starts_with("for ")) {
            looped = path;
        } else if let Some((value, path)) = line.strip_prefix("echo ").and_then(|rest| rest.split_once(" > "))
        {
            let path = if path.starts_with("\"$") { looped } else { path };
            let key = path.strip_prefix("/proc/sys/").map_or(path.to_owned(), |key| key.replace('/', "."));
            settings.push(format!("{key}={value}"));
        } else {
            settings.push(line.replace(" = ", "=").replace('"', ""));
        }
    }
    settings
}

/// Whether an answer is to a setting: the same, one word of it, or the end of its place.
fn is_answer(says: &str, setting: &str) -> bool {
    let is_end = |whole: &str, end: &str| {
        whole.strip_suffix(end).is_some_and(|rest| rest.ends_with(['/', '.']) && rest.len() > 1)
    };
    says == setting
        || says.split(' ').any(|word| word.trim_start_matches('-') == setting)
        || is_end(setting, says)
        || is_end(says, setting)
}

/// What was a matter of the unit alone when the guide was read may have a knob by now.
#[test]
fn a_line_of_a_unit_that_has_a_knob_is_answered_with_it() {
    let catalogue = catalogue();
    let sets = |knob: &Knob, name: &str| match &knob.r#type {
        ValueType::Setting { directive, .. } => directive == name,
        ValueType::Directives { directives } => directives.iter().any(|directive| directive == name),
        _ => false,
    };
    let mut answered = 0;
    for line in catalogue.profile_names().flat_map(|name| catalogue.profile(name).expect("shipped").guide) {
        let Some((name, _)) = line.says.split_once('=') else { continue };
        let mut knobs = catalogue.knobs().filter(|knob| sets(knob, name)).map(|knob| &knob.id).peekable();
        if knobs.peek().is_some() {
            assert!(
                knobs.any(|id| line.knob.as_ref() == Some(id)),
                "{} is answered with {:?}",
                line.says,
                line.knob
            );
            answered += 1;
        }
    }
    assert_eq!(answered, 4);
}

#[test]
fn every_setting_of_the_guide_is_answered_once() {
    let profile = catalogue().profile("zepto").expect("shipped");
    let answered: Vec<&str> = profile.guide.iter().map(|line| line.says.as_str()).collect();
    let once: BTreeSet<&str> = answered.iter().copied().collect();
    assert_eq!(once.len(), answered.len(), "answered twice");
    let settings = settings();
    assert!(settings.len() > 55, "{}", settings.len());
    let open: Vec<_> =
        settings.iter().filter(|setting| !answered.iter().any(|says| is_answer(says, setting))).collect();
    assert!(open.is_empty(), "without an answer: {open:#?}");
    let asked = |says: &&&str| {
        OF_SCRIPT_AND_UNIT.contains(says) || settings.iter().any(|setting| is_answer(says, setting))
    };
    let unasked: Vec<_> = answered.iter().filter(|says| !asked(says)).collect();
    assert!(unasked.is_empty(), "answers to nothing: {unasked:#?}");
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
    assert_eq!(values("hana", "thp.enabled"), ["madvise", "madvise", "never"]);
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
