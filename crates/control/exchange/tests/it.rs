//! What goes out comes back: an export that is imported again wants the same.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use planish_exchange::{ExportFormat, ImportFormat, Item, beyond, export, import, recognise};
use planish_model::{Case, Catalogue, Class, KnobId, Undo, Want};
use proptest::prelude::*;

static CATALOGUE: LazyLock<Catalogue> = LazyLock::new(|| Catalogue::embedded().expect("sound"));

/// Every literal value of every shipped profile, with the places that it means; pools are numbers of another kind.
static WANTED: LazyLock<Vec<(KnobId, Case)>> = LazyLock::new(|| {
    let mut wanted = Vec::new();
    for name in CATALOGUE.profile_names() {
        for (id, want) in CATALOGUE.profile(name).expect("resolves").want {
            let knob = CATALOGUE.knob(&id).expect("checked");
            if knob.undo != Undo::Restore || matches!(knob.class, Class::Oneway | Class::Action) {
                continue;
            }
            let cases = match want {
                Want::Case(case) => vec![*case],
                Want::Cases(cases) => cases,
                other => other.literal().into_iter().map(plain).collect(),
            };
            wanted.extend(cases.into_iter().map(|case| (id.clone(), case)));
        }
    }
    wanted
});

fn plain(value: String) -> Case {
    Case { value, only: None, needs: planish_model::Conditions::default() }
}

/// One value a knob: the places and the value.
fn chosen() -> impl Strategy<Value = BTreeMap<KnobId, (Option<String>, String)>> {
    proptest::sample::subsequence(WANTED.as_slice(), 1..WANTED.len()).prop_map(|some| {
        let values = some.into_iter().map(|(id, case)| (id, (case.only, case.value)));
        let mut map: BTreeMap<_, _> = values.collect();
        // Of two twins only one can be wanted.
        let twins: Vec<KnobId> = map
            .keys()
            .filter_map(|id| CATALOGUE.knob(id).ok()?.twin.clone().filter(|twin| twin > id))
            .collect();
        map.retain(|id, _| !twins.contains(id));
        map
    })
}

/// Both directions for one format; `null` for what the format does not hold.
fn there_and_back(format: ExportFormat, items: &[Item]) -> BTreeMap<KnobId, Want> {
    let files = export(format, "mine", "A test.", items).expect("shipped values are plain");
    let mut want = BTreeMap::new();
    for file in &files {
        let guessed = ImportFormat::guess(&file.text);
        let format = match (format, file.path.as_str()) {
            (ExportFormat::KernelArgs, _) => ImportFormat::KernelArgs,
            (_, path) if path.contains("/tmpfiles.d/") => ImportFormat::Tmpfiles,
            (_, path) if path.contains("/sysctl.d/") => ImportFormat::Sysctl,
            _ => guessed,
        };
        if !file.text.trim().is_empty() {
            assert_eq!(recognise(&file.text, format), Ok(()), "{}", file.text);
        }
        let imported = import(&CATALOGUE, "mine", &file.text, format);
        // The unit has the other files of the export read, and says so.
        let is_told =
            |reason: &str| file.path.ends_with(".service") && reason.starts_with("reads other files");
        let refused = imported.lines.iter().filter(|line| !line.is_accepted());
        let refused: Vec<_> = refused.filter(|line| !line.reason.as_deref().is_some_and(is_told)).collect();
        assert!(refused.is_empty(), "{refused:#?}");
        want.extend(imported.profile.want);
    }
    want
}

/// What a profile wants, in one form: places and value by knob.
fn normal(want: BTreeMap<KnobId, Want>) -> BTreeMap<KnobId, (Option<String>, String)> {
    let of = |id: &KnobId, want: Want| match want {
        Want::Case(case) => (case.only, case.value),
        other => (None, other.literal().unwrap_or_else(|| panic!("{id}: {other:?}"))),
    };
    want.into_iter().map(|(id, want)| (id.clone(), of(&id, want))).collect()
}

/// The fuzzer starts from a file of each format, or it never comes to some. (Every seed is given to its target by a
/// test of planish-cli.)
#[test]
#[expect(clippy::disallowed_methods, reason = "it reads files of the checkout")]
fn the_fuzzer_starts_from_a_file_of_each_format() {
    let formats = [
        ("ansible", ImportFormat::Ansible),
        ("node-tuning", ImportFormat::NodeTuning),
        ("arguments", ImportFormat::KernelArgs),
        ("saptune", ImportFormat::Saptune),
        ("script", ImportFormat::Script),
        ("sysctl", ImportFormat::Sysctl),
        ("tmpfiles", ImportFormat::Tmpfiles),
        ("tuned", ImportFormat::Tuned),
        ("udev", ImportFormat::Udev),
        ("unit", ImportFormat::Unit),
    ];
    let seeds = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../fuzz/seeds/import"));
    for (name, format) in formats {
        let text =
            std::fs::read_to_string(seeds.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        recognise(&text, format).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(!import(&CATALOGUE, "mine", &text, format).profile.want.is_empty(), "{name} sets nothing");
    }
}

/// Settings of cards stand in no shipped profile: each has its words in scripts and for tuned, for all cards or some.
#[test]
fn settings_of_cards_come_back_in_the_words_of_ethtool() {
    for only in [None, Some("ens3f0"), Some("ens*")] {
        let cards = CATALOGUE.knobs().filter(|knob| knob.path.starts_with(planish_model::place::CARDS));
        let items: Vec<Item> = cards.flat_map(|knob| Item::meant(knob, only, "1")).collect();
        assert!(items.len() >= 20, "{}", items.len());
        let expected: BTreeMap<_, _> =
            items.iter().map(|item| (item.knob.clone(), (only.map(str::to_owned), "1".to_owned()))).collect();
        for format in [ExportFormat::Tuned, ExportFormat::Script] {
            assert_eq!(normal(there_and_back(format, &items)), expected, "{format:?} {only:?}");
        }
    }
}

/// What is for all cards is for those, too, that something else is set of.
#[test]
fn cards_that_something_else_is_set_of_keep_what_is_set_of_all() {
    let knob = |id: &str| CATALOGUE.knob(&KnobId::new(id)).expect("a row");
    let all = Item::meant(knob("net.rings_rx"), None, "4096");
    let some = Item::meant(knob("net.feature_lro"), Some("ens*"), "0");
    let items: Vec<Item> = all.into_iter().chain(some).collect();
    for format in [ExportFormat::Tuned, ExportFormat::NodeTuning] {
        let want = there_and_back(format, &items);
        let case = |only: Option<&str>| {
            let value = "4096".to_owned();
            Case { value, only: only.map(str::to_owned), needs: planish_model::Conditions::default() }
        };
        assert_eq!(want[&KnobId::new("net.rings_rx")], Want::Cases(vec![case(Some("ens*")), case(None)]));
        let Want::Case(lro) = &want[&KnobId::new("net.feature_lro")] else { panic!("{want:?}") };
        assert_eq!((lro.only.as_deref(), lro.value.as_str(), want.len()), (Some("ens*"), "0", 2));
    }
}

/// So do threads of the kernel: in the words of chrt, and as groups of tuned.
#[test]
fn schedules_of_threads_come_back_in_the_words_of_chrt_and_tuned() {
    for (only, value) in [(None, "fifo:2"), (Some("3"), "fifo:49"), (Some("1*"), "other")] {
        let threads = CATALOGUE.knobs().filter(|knob| knob.path.starts_with(planish_model::place::THREADS));
        let items: Vec<Item> = threads.flat_map(|knob| Item::meant(knob, only, value)).collect();
        assert_eq!(items.len(), 2);
        let expected: BTreeMap<_, _> = items
            .iter()
            .map(|item| (item.knob.clone(), (only.map(str::to_owned), value.to_owned())))
            .collect();
        for format in
            [ExportFormat::Tuned, ExportFormat::NodeTuning, ExportFormat::Script, ExportFormat::Ansible]
        {
            assert_eq!(normal(there_and_back(format, &items)), expected, "{format:?} {only:?}");
        }
    }
}

/// Names of places that are more than what fills one hole: what a plan shows comes back as what it means.
#[test]
fn places_that_are_named_as_a_plan_shows_them_come_back() {
    for (id, only, back) in [
        ("cpu.online", "cpu7", "7"),
        ("cpu.idle_state_disable", "state=state3", "state=3"),
        ("thp.size_enabled", "hugepages-64kB", "64"),
        ("cpu.uncore_max_khz", "package_00_die_01", "package_00_die_01"),
        ("cpu.uncore_max_khz", "package_00*", "00*"),
        ("cpu.uncore_max_khz", "die=01", "die=01"),
    ] {
        let knob = CATALOGUE.knob(&KnobId::new(id)).expect("a row");
        let value = ["1", "always"].into_iter().find(|value| knob.validate(value).is_ok()).expect("a value");
        let items = Item::meant(knob, Some(only), value);
        let expected = BTreeMap::from([(KnobId::new(id), (Some(back.to_owned()), value.to_owned()))]);
        for format in [ExportFormat::Tuned, ExportFormat::Ansible, ExportFormat::Script, ExportFormat::Sysctl]
        {
            assert_eq!(normal(there_and_back(format, &items)), expected, "{format:?} {only}");
        }
    }
}

/// tuned keeps a limit of wake-ups by a word of its own.
#[test]
fn the_longest_wake_up_comes_back_as_the_word_of_tuned() {
    let knob = CATALOGUE.knob(&KnobId::new("cpu.dma_latency_us")).expect("a row");
    let items = Item::meant(knob, None, "20");
    let expected = BTreeMap::from([(knob.id.clone(), (None, "20".to_owned()))]);
    for format in ExportFormat::ALL {
        let is_carried = [ExportFormat::Tuned, ExportFormat::NodeTuning].contains(&format);
        assert_eq!(beyond(format, &items[0]).is_none(), is_carried, "{format:?}");
        if is_carried {
            assert_eq!(normal(there_and_back(format, &items)), expected, "{format:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_goes_out_comes_back(chosen in chosen()) {
        let knob = |id: &KnobId| CATALOGUE.knob(id).expect("a row");
        let items: Vec<Item> = chosen
            .iter()
            .flat_map(|(id, (only, value))| Item::meant(knob(id), only.as_deref(), value))
            .collect();
        let expected: BTreeMap<_, _> = chosen
            .iter()
            .map(|(id, (only, value))| (id.clone(), (only.clone(), knob(id).r#type.normal(value))))
            .collect();
        let (boot, live): (BTreeMap<_, _>, BTreeMap<_, _>) =
            expected.clone().into_iter().partition(|(id, _)| knob(id).boot_parameter().is_some());
        for format in [ExportFormat::Tuned, ExportFormat::Ansible, ExportFormat::NodeTuning] {
            prop_assert_eq!(normal(there_and_back(format, &items)), expected.clone(), "{:?}", format);
        }
        prop_assert_eq!(normal(there_and_back(ExportFormat::Script, &items)), live.clone());
        prop_assert_eq!(normal(there_and_back(ExportFormat::Sysctl, &items)), live);
        prop_assert_eq!(normal(there_and_back(ExportFormat::KernelArgs, &items)), boot);
    }
}
