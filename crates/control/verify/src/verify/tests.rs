//! What counts as drift, and what does not.

use std::collections::BTreeMap;

use planish_model::{
    BootFiles, BootLoader, Caused, Class, DriftState, EntryId, EntryState, EntryStep, Generator, KnobCheck,
    KnobId, NOT_GIVEN, Original, Outcome, OutcomeKind, Persisted, Said, SeenWriter, ShortGrant, Skipped,
    Step, Undo, ValueType, Verdict, VerdictKind, When,
};
use proptest::prelude::*;

use super::*;

const THP: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
const SWAP: &str = "/proc/sys/vm/swappiness";
const BYTES: &str = "/proc/sys/vm/dirty_bytes";
const RATIO: &str = "/proc/sys/vm/dirty_ratio";
const MIN_FREE: &str = "/proc/sys/vm/min_free_kbytes";
const POOL: &str = "/sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages";

fn host() -> Observation {
    let mut observation = Observation::default();
    observation.host.boot_id = "boot".to_owned();
    for (id, place, value) in [
        ("thp.enabled", THP, "always [madvise] never"),
        ("vm.swappiness", SWAP, "60"),
        ("vm.dirty_bytes", BYTES, "0"),
        ("vm.dirty_ratio", RATIO, "20"),
        ("vm.min_free_kbytes", MIN_FREE, "67584"),
        ("hugepages.2m", POOL, "10"),
    ] {
        let reading = Reading { value: Some(value.to_owned()), access: Access::Writable, ..gone(place) };
        observation.knobs.insert(KnobId::new(id), vec![reading]);
    }
    observation
}

fn set(observation: &mut Observation, id: &str, value: &str) {
    observation.knobs.get_mut(&KnobId::new(id)).expect("is there")[0].value = Some(value.to_owned());
}

fn persist(observation: &mut Observation, place: &str, value: &str) {
    let (value, source) = (value.to_owned(), "/etc/sysctl.d/90-x.conf:3".to_owned());
    let persisted = Persisted { value, source, at_boot: None, overridden: Vec::new() };
    observation.persisted.insert(place.to_owned(), persisted);
}

fn entry(id: u64, boot: &str, steps: Vec<EntryStep>) -> Entry {
    Entry {
        id: EntryId(id),
        at: 0,
        boot_id: boot.to_owned(),
        who: "root".to_owned(),
        command: "apply".to_owned(),
        reason: None,
        profile: "series".to_owned(),
        plan: plan(vec![], vec![]).hash,
        steps,
        confirm_by: None,
        wait_end: None,
        on_confirm: None,
        state: EntryState::Open,
        undo_begun: false,
        instead_of: None,
        replaced_by: None,
        host: None,
        allowed: planish_model::Allowed::default(),
    }
}

fn applied(id: &str, place: &str, before: &str, ours: &str) -> EntryStep {
    let mut outcome = Outcome::new(KnobId::new(id), place, OutcomeKind::Done);
    outcome.read_back = Some(ours.to_owned());
    let step = EntryStep::new(KnobId::new(id), place.to_owned(), ours.to_owned(), Class::Safe, Undo::Restore);
    let original = Original {
        knob: KnobId::new(id),
        place: place.to_owned(),
        r#type: ValueType::Text { text: true },
        value: before.to_owned(),
        coupling: None,
        over: None,
    };
    EntryStep { originals: vec![original], outcome: Some(outcome), ..step }
}

fn pool_step(pages: u64) -> EntryStep {
    let mut step = applied("hugepages.2m", POOL, "0", "10");
    step.undo = Undo::Subtract;
    step.raise_pages = Some(pages);
    step.outcome.as_mut().expect("it ran").granted_pages = Some(pages);
    step
}

fn plan(steps: Vec<Step>, skipped: Vec<Skipped>) -> Plan {
    Plan::new("series".to_owned(), "host".to_owned(), "boot".to_owned(), steps, skipped)
}

fn step(id: &str, place: &str, wanted: &str) -> Step {
    Step {
        knob: KnobId::new(id),
        place: place.to_owned(),
        now: String::new(),
        wanted: wanted.to_owned(),
        class: Class::Safe,
        when: When::Now,
        undo: Undo::Restore,
        why: String::new(),
        cost: String::new(),
        source: String::new(),
        verdict: Verdict::new(VerdictKind::Settable, ""),
        raise_pages: None,
        takes_pages: None,
        in_all: None,
        part: None,
        beside: None,
        service: None,
        coupled: Vec::new(),
        because: None,
    }
}

fn row(drift: &Drift, place: &str) -> KnobCheck {
    drift.knobs.iter().find(|row| row.place == place).expect("has a row").clone()
}

fn check(
    plan: Option<&Plan>,
    open: &[Entry],
    observation: &Observation,
    place: &str,
) -> (DriftState, String) {
    let catalogue = Catalogue::embedded().expect("sound");
    let row = row(&verify(&catalogue, plan, open, observation), place);
    (row.state, row.because.unwrap_or_default())
}

#[test]
fn a_fresh_host_without_entries_has_rows_and_no_drift() {
    let catalogue = Catalogue::embedded().expect("sound");
    let drift = verify(&catalogue, None, &[], &host());
    assert_eq!(drift.knobs.len(), 6);
    assert!(drift.is_clean());
    assert_eq!(row(&drift, THP).running.as_deref(), Some("madvise"));
}

#[test]
fn a_value_counts_by_what_it_means() {
    let plan = plan(vec![step("thp.enabled", THP, "madvise"), step("vm.swappiness", SWAP, "10")], vec![]);
    assert_eq!(check(Some(&plan), &[], &host(), THP).0, DriftState::Ok);
    assert_eq!(check(Some(&plan), &[], &host(), SWAP).0, DriftState::Drift);
}

/// An apply has the menu made where there is somebody to make it: one without an argument of ours is somebody else's.
#[test]
fn a_menu_without_what_an_entry_gave_is_waited_for_on_a_recorded_host_alone() {
    const SKEW: &str = "cmdline:skew_tick";
    let mut observation = host();
    let reading = Reading {
        value: Some(NOT_GIVEN.to_owned()),
        ..observation.knobs[&KnobId::new("vm.swappiness")][0].clone()
    };
    observation
        .knobs
        .insert(KnobId::new("boot.skew_tick"), vec![Reading { place: SKEW.to_owned(), ..reading }]);
    persist(&mut observation, SKEW, "1");
    let found = observation.persisted.get_mut(SKEW).expect("just put");
    found.source = format!("/etc/default/grub.d/{}:2", Persisted::OWN_BOOT_FILE);
    found.at_boot = Some(NOT_GIVEN.to_owned());
    let plan = plan(vec![step("boot.skew_tick", SKEW, "1")], vec![]);
    for (makes_menu, expected) in [(false, DriftState::PendingReboot), (true, DriftState::Drift)] {
        observation.boot = BootLoader::Known(BootFiles {
            name: "GRUB".to_owned(),
            own: None,
            edited: Vec::new(),
            generator: Some(Generator::ALL[0]),
            is_next_untold: false,
            makes_menu,
            astray: None,
            unproven: None,
        });
        let (state, because) = check(Some(&plan), &[], &observation, SKEW);
        assert_eq!(state, expected, "{because}");
        assert!(because.contains("was not made anew since: type `"), "{because}");
    }
}

/// A start of the machine that passed by what an entry had given: the next one may pass by it, too.
#[test]
fn what_the_machine_was_started_without_is_drift_and_is_waited_for_where_nobody_could_have_brought_it() {
    const SKEW: &str = "cmdline:skew_tick";
    let mut observation = host();
    let reading = Reading { value: Some(NOT_GIVEN.to_owned()), access: Access::Writable, ..gone(SKEW) };
    observation.knobs.insert(KnobId::new("boot.skew_tick"), vec![reading]);
    persist(&mut observation, SKEW, "1");
    let given = |boot: &str, last: Option<&str>| {
        let mut step = applied("persist.boot-entry", "/boot/loader/entries/a.conf", "ro", "skew_tick=1");
        (step.undo, step.last_boot) = (Undo::Edit, last.map(str::to_owned));
        entry(1, boot, vec![step])
    };
    let told = |open: &[Entry], observation: &Observation| check(None, open, observation, SKEW);
    let (state, because) = told(&[given("before", None)], &observation);
    assert_eq!(state, DriftState::Drift, "{because}");
    assert!(
        because
            .starts_with("the machine was started since entry 1, and this kernel was not given it: another")
    );
    // It is of this boot, was written in it by a confirm, or stands beside a newer entry that is; or nobody knows.
    let mut newer = given("boot", None);
    newer.id = EntryId(2);
    for open in [
        vec![given("boot", None)],
        vec![given("before", Some("boot"))],
        vec![given("before", None), newer],
        vec![given("", None)],
        vec![],
    ] {
        let (state, because) = told(&open, &observation);
        assert_eq!(
            (state, because.contains("takes effect at the next boot")),
            (DriftState::PendingReboot, true)
        );
    }
    // A trial boot is by an entry that was copied before.
    let mut once = given("before", None);
    once.id = EntryId(3);
    once.steps[0].knob = KnobId::new("persist.once-entry");
    once.steps[0].wanted = format!("options ro {}", planish_model::marker("a1"));
    observation.trial_marks = vec!["a1".to_owned()];
    assert_eq!(told(&[given("before", None), once], &observation).0, DriftState::PendingReboot);
    assert_eq!(told(&[given("before", None)], &observation).0, DriftState::Drift, "somebody's mark");
    // What started it instead is named where that is known.
    let reason = "nothing tells that GRUB started this kernel".to_owned();
    observation.boot = BootLoader::Known(BootFiles {
        name: "GRUB".to_owned(),
        own: None,
        edited: Vec::new(),
        generator: None,
        is_next_untold: false,
        makes_menu: false,
        astray: None,
        unproven: Some(planish_model::Astray { reason: reason.clone(), cure: String::new() }),
    });
    for (boot, expected) in [("before", DriftState::Drift), ("boot", DriftState::PendingReboot)] {
        let (state, because) = told(&[given(boot, None)], &observation);
        assert_eq!((state, because.ends_with(&reason)), (expected, true), "{because}");
    }
}

#[test]
fn drift_names_who_caused_it() {
    let open = [entry(3, "boot", vec![applied("vm.swappiness", SWAP, "60", "10")])];
    let (state, because) = check(None, &open, &host(), SWAP);
    assert_eq!((state, because.as_str()), (DriftState::Drift, "back to the value from before entry 3"));
    let mut observation = host();
    set(&mut observation, "vm.swappiness", "33");
    assert_eq!(check(None, &open, &observation, SWAP).1, "changed since entry 3");
    // Against a profile, too, where that is what the entry had set.
    for (wanted, because) in [("10", "changed since entry 3"), ("20", "")] {
        let plan = plan(vec![step("vm.swappiness", SWAP, wanted)], vec![]);
        assert_eq!(check(Some(&plan), &open, &observation, SWAP), (DriftState::Drift, because.to_owned()));
    }
    persist(&mut observation, SWAP, "33");
    assert_eq!(check(None, &open, &observation, SWAP).1, "as /etc/sysctl.d/90-x.conf:3 says");
    set(&mut observation, "vm.swappiness", "10");
    let (state, because) = check(None, &open, &observation, SWAP);
    assert_eq!((state, because.as_str()), (DriftState::LostAtBoot, "/etc/sysctl.d/90-x.conf:3 will set 33"));
    persist(&mut observation, SWAP, "10");
    let (state, because) = check(None, &open, &observation, SWAP);
    assert_eq!((state, because.as_str()), (DriftState::Ok, ""));
    let catalogue = Catalogue::embedded().expect("sound");
    let row = row(&verify(&catalogue, None, &open, &observation), SWAP);
    let brought = Some(planish_model::BootValue::new("10", "/etc/sysctl.d/90-x.conf:3"));
    assert_eq!((&row.persisted, &row.next_boot), (&brought, &brought));
    assert_eq!(brought.and_then(|found| found.line), Some(3));
}

/// A check names no service: the pool that the apply was for is judged all the same.
#[test]
fn a_pool_for_a_service_is_judged_by_what_its_entry_asked_for() {
    let nameless = Skipped::left(
        KnobId::new("hugepages.2m"),
        POOL.replace("node0", "{node}"),
        None,
        Verdict::new(VerdictKind::Blocked, "name it with --service"),
    );
    let asked = |profile: &str, short: bool| {
        let mut step = applied("hugepages.2m", POOL, "0", "10");
        step.undo = Undo::Subtract;
        step.wanted = "40".to_owned();
        let outcome = step.outcome.as_mut().expect("applied");
        outcome.granted_pages = Some(if short { 10 } else { 40 });
        let grant = ShortGrant { asked: 40, granted: 10, reason: String::new(), fits: None };
        outcome.short = short.then_some(grant);
        Entry { profile: profile.to_owned(), ..entry(3, "boot", vec![step]) }
    };
    let plan = plan(vec![], vec![nameless]);
    for (entry, state) in [
        (asked("series", true), DriftState::Drift),
        (asked("series", false), DriftState::Drift),
        (asked("other", true), DriftState::NotHere),
    ] {
        let drift = verify(&Catalogue::embedded().expect("sound"), Some(&plan), &[entry], &host());
        let [row] = drift.knobs.as_slice() else { panic!("{drift:?}") };
        assert_eq!(row.state, state, "{row:?}");
        assert_eq!(
            (drift.is_clean(), row.wanted.is_some()),
            (state != DriftState::Drift, state == DriftState::Drift)
        );
    }
}

#[test]
fn a_program_that_sets_it_at_its_start_comes_after_the_files() {
    let writer = |id: &str, knobs: Option<&[&str]>| SeenWriter {
        id: id.to_owned(),
        running: false,
        evidence: Vec::new(),
        knobs: knobs.map(|knobs| knobs.iter().map(|id| KnobId::new(*id)).collect()),
        profile: None,
        arguments: None,
        commands: BTreeMap::new(),
        sources: BTreeMap::new(),
        maybe: BTreeMap::new(),
        again: planish_model::Again::default(),
    };
    let open = [entry(3, "boot", vec![applied("vm.swappiness", SWAP, "60", "10")])];
    let mut observation = host();
    set(&mut observation, "vm.swappiness", "10");
    persist(&mut observation, SWAP, "10");
    let catalogue = Catalogue::embedded().expect("sound");
    for (seen, told) in [
        (
            writer("tuned", Some(&["vm.swappiness"])),
            Some("tuned will set it at the next boot (/etc/own.conf), after "),
        ),
        (writer("tuned", Some(&["vm.dirty_ratio"])), None),
        // Which profile it has cannot be read: it may set anything of its row.
        (writer("tuned", None), None),
        (writer("power-profiles-daemon", None), None),
    ] {
        let mut seen = seen;
        let sources = [(KnobId::new("vm.swappiness"), vec![Said::of_all("/etc/own.conf")])];
        seen.sources = if told.is_some() { sources.into() } else { seen.sources };
        observation.writers = vec![seen.clone()];
        let drift = verify(&catalogue, None, &open, &observation);
        let row = row(&drift, SWAP);
        match told {
            Some(told) => {
                assert_eq!((row.state, row.next_boot), (DriftState::OverwrittenAtBoot, None));
                assert_eq!(row.because, Some(format!("{told}/etc/sysctl.d/90-x.conf:3")));
                let by = row.overwritten_by.expect("somebody");
                assert_eq!((by.writer.as_str(), by.files), ("tuned", vec!["/etc/own.conf".to_owned()]));
            }
            None => {
                assert_eq!(
                    (row.state, row.next_boot.as_ref().map(|boot| boot.value.as_str())),
                    (DriftState::Ok, Some("10")),
                    "{seen:?}"
                );
                // That it may is told all the same.
                let may = seen.id == "tuned" && seen.knobs.is_none();
                let told =
                    row.because.as_ref().is_some_and(|why| why.contains("tuned may set it at the next boot"));
                assert_eq!(told, may, "{seen:?}: {:?}", row.because);
            }
        }
        assert_eq!(drift.is_clean(), told.is_none(), "what is lost to another program is no green");
    }
    observation.host.boot_id = "boot".to_owned();
    let governor = "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor";
    let reading =
        Reading { value: Some("performance".to_owned()), access: Access::Writable, ..gone(governor) };
    observation.knobs.insert(KnobId::new("cpu.governor"), vec![reading]);
    let open = [entry(3, "boot", vec![applied("cpu.governor", governor, "powersave", "performance")])];
    let (state, because) = check(None, &open, &observation, governor);
    let told = "power-profiles-daemon sets it when it starts, or later";
    assert_eq!((state, because.as_str()), (DriftState::OverwrittenAtBoot, told));
}

#[test]
fn a_file_that_sets_the_twin_clears_ours_at_boot() {
    let open = [entry(1, "boot", vec![applied("vm.dirty_bytes", BYTES, "0", "8192")])];
    let mut observation = host();
    set(&mut observation, "vm.dirty_bytes", "8192");
    set(&mut observation, "vm.dirty_ratio", "0");
    assert_eq!(check(None, &open, &observation, BYTES).1, "no file persists it");
    persist(&mut observation, RATIO, "15");
    let drift = verify(&Catalogue::embedded().expect("sound"), None, &open, &observation);
    let lost = row(&drift, BYTES);
    assert_eq!(
        (lost.state, lost.next_boot.as_ref().map(|next| next.value.as_str())),
        (DriftState::LostAtBoot, Some("0"))
    );
    let because = lost.because.expect("a reason");
    assert_eq!(because, "/etc/sysctl.d/90-x.conf:3 will set its twin vm.dirty_ratio to 15");
    assert!(!drift.is_clean());
}

#[test]
fn values_of_files_have_one_form_whether_they_count_or_lose() {
    let mut observation = host();
    persist(&mut observation, SWAP, " 060 ");
    let lost = planish_model::BootValue::new(" 007 ", "/etc/sysctl.d/10-x.conf:1");
    observation.persisted.get_mut(SWAP).expect("it is there").overridden = vec![lost];
    let drift = verify(&Catalogue::embedded().expect("sound"), None, &[], &observation);
    let row = row(&drift, SWAP);
    let values = (row.persisted.map(|found| found.value), row.overridden[0].value.as_str());
    assert_eq!((values.0.as_deref(), values.1), (Some("60"), "7"));
    assert_eq!(row.overridden[0].line, Some(1), "where it stands is left");
}

#[test]
fn of_two_twins_in_files_the_later_line_counts() {
    let ours = |line, value: &str| Persisted {
        value: value.to_owned(),
        source: format!("/etc/sysctl.d/90-planish.conf:{line}"),
        at_boot: None,
        overridden: Vec::new(),
    };
    let open = [entry(2, "boot", vec![applied("vm.dirty_bytes", BYTES, "0", "8192")])];
    let mut observation = host();
    set(&mut observation, "vm.dirty_bytes", "8192");
    set(&mut observation, "vm.dirty_ratio", "0");
    let catalogue = Catalogue::embedded().expect("sound");
    for (bytes_at, ratio_at, lost) in [(9, 10, true), (10, 9, false)] {
        observation.persisted.insert(BYTES.to_owned(), ours(bytes_at, "8192"));
        observation.persisted.insert(RATIO.to_owned(), ours(ratio_at, "15"));
        // Also when no entry of this boot tells whose value it is.
        for open in [&open[..], &[]] {
            let drift = verify(&catalogue, None, open, &observation);
            let (bytes, ratio) = (row(&drift, BYTES), row(&drift, RATIO));
            let next = |row: &KnobCheck| row.next_boot.clone().expect("a line sets it").value;
            match lost {
                true => assert_eq!((next(&bytes).as_str(), next(&ratio).as_str()), ("0", "15")),
                false => assert_eq!((next(&bytes).as_str(), next(&ratio).as_str()), ("8192", "0")),
            }
            assert_eq!(drift.is_clean(), !lost, "{drift:#?}");
        }
    }
}

#[test]
fn what_our_own_step_caused_is_no_drift() {
    let mut thp = applied("thp.enabled", THP, "[always] madvise never", "always [madvise] never");
    thp.outcome.as_mut().expect("it ran").caused =
        vec![Caused { place: MIN_FREE.to_owned(), value: "90000".to_owned() }];
    let open = [entry(4, "boot", vec![thp])];
    let mut observation = host();
    persist(&mut observation, MIN_FREE, "67584");
    set(&mut observation, "vm.min_free_kbytes", "90000");
    let (state, because) = check(None, &open, &observation, MIN_FREE);
    assert_eq!((state, because.as_str()), (DriftState::Ok, "changed by thp.enabled of entry 4"));
    set(&mut observation, "vm.min_free_kbytes", "70000");
    assert_eq!(check(None, &open, &observation, MIN_FREE).0, DriftState::Drift);
}

#[test]
fn files_are_the_measure_where_nothing_was_applied() {
    let mut observation = host();
    persist(&mut observation, SWAP, "10");
    let (state, because) = check(None, &[], &observation, SWAP);
    assert_eq!((state, because.as_str()), (DriftState::Drift, "/etc/sysctl.d/90-x.conf:3 says 10"));
    persist(&mut observation, POOL, "8");
    assert_eq!(check(None, &[], &observation, POOL).0, DriftState::Ok, "a pool may hold more");
}

#[test]
fn what_planish_never_set_is_told_and_not_judged() {
    let catalogue = Catalogue::embedded().expect("sound");
    let mut observation = host();
    persist(&mut observation, SWAP, "10");
    let drift = verify(&catalogue, None, &[], &observation);
    assert_eq!(row(&drift, SWAP).state, DriftState::Drift);
    assert!(drift.is_clean(), "a file of the distribution is no wish of ours");
    observation.persisted.get_mut(SWAP).expect("is there").source =
        format!("/etc/sysctl.d/{}:3", Persisted::OWN_FILE);
    let drift = verify(&catalogue, None, &[], &observation);
    assert_eq!(row(&drift, SWAP).wanted.as_deref(), Some("10"));
    assert!(!drift.is_clean(), "what planish persisted is judged");
}

#[test]
fn what_only_an_apply_wrote_is_lost_at_boot_and_still_as_wanted() {
    let catalogue = Catalogue::embedded().expect("sound");
    let open = [entry(3, "boot", vec![applied("vm.swappiness", SWAP, "60", "10"), pool_step(8)])];
    let mut observation = host();
    set(&mut observation, "vm.swappiness", "10");
    let wanted = plan(vec![step("vm.swappiness", SWAP, "10"), step("thp.enabled", THP, "madvise")], vec![]);
    for plan in [None, Some(&wanted)] {
        let drift = verify(&catalogue, plan, &open, &observation);
        let lost = row(&drift, SWAP);
        assert_eq!((lost.state, lost.next_boot), (DriftState::LostAtBoot, None));
        assert_eq!(lost.because.as_deref(), Some("no file persists it"));
        assert_eq!(row(&drift, THP).state, DriftState::Ok, "it was so before us");
        assert!(drift.is_clean(), "it runs as wanted");
    }
    assert_eq!(check(None, &open, &observation, POOL).0, DriftState::LostAtBoot);
    // Of the ten that are there two are of others: a line for eight has not all of ours.
    for (pages, state) in [("8", DriftState::LostAtBoot), ("10", DriftState::Ok)] {
        persist(&mut observation, POOL, pages);
        assert_eq!(check(None, &open, &observation, POOL).0, state, "{pages}");
    }
}

#[test]
fn a_pool_that_came_short_is_short_until_it_has_what_was_asked() {
    let mut short = pool_step(10);
    short.wanted = "40".to_owned();
    short.outcome.as_mut().expect("it ran").short =
        Some(ShortGrant { asked: 40, granted: 10, reason: String::new(), fits: None });
    let open = [entry(3, "boot", vec![short])];
    let skipped = Skipped::left(
        KnobId::new("hugepages.2m"),
        POOL.to_owned(),
        None,
        Verdict::new(VerdictKind::Settable, "needs a size"),
    );
    let mut observation = host();
    for plan in [None, Some(&plan(vec![], vec![skipped]))] {
        let drift = verify(&Catalogue::embedded().expect("sound"), plan, &open, &observation);
        let pool = row(&drift, POOL);
        assert_eq!((pool.state, pool.wanted.as_deref()), (DriftState::Drift, Some("40")));
        assert_eq!(pool.because.as_deref(), Some("10 of 40 pages are there"));
        assert!(!drift.is_clean());
    }
    set(&mut observation, "hugepages.2m", "40");
    assert_eq!(check(None, &open, &observation, POOL).0, DriftState::LostAtBoot);
}

#[test]
fn entries_of_another_boot_hold_nothing() {
    let open = [entry(3, "another boot", vec![applied("vm.swappiness", SWAP, "60", "10")])];
    assert_eq!(check(None, &open, &host(), SWAP).0, DriftState::Ok);
}

#[test]
fn pools_of_several_entries_add_up() {
    let open = |a, b| [entry(1, "boot", vec![pool_step(a)]), entry(2, "boot", vec![pool_step(b)])];
    assert_eq!(check(None, &open(4, 6), &host(), POOL).0, DriftState::LostAtBoot);
    let (state, because) = check(None, &open(4, 7), &host(), POOL);
    assert_eq!((state, because.as_str()), (DriftState::Drift, "10 of 11 pages are there"));
}

#[test]
fn a_pool_that_someone_raised_further_is_no_drift() {
    let mut raise = step("hugepages.2m", POOL, "8");
    raise.raise_pages = Some(8);
    let raised = plan(vec![raise], vec![]);
    assert_eq!(check(Some(&raised), &[], &host(), POOL).0, DriftState::Ok);
    let skipped = |wanted: &str| {
        let verdict = Verdict::new(VerdictKind::Settable, "");
        Skipped::satisfied(KnobId::new("hugepages.2m"), POOL.to_owned(), wanted.to_owned(), verdict)
    };
    assert_eq!(check(Some(&plan(vec![], vec![skipped("9")])), &[], &host(), POOL).0, DriftState::Ok);
    assert_eq!(check(Some(&plan(vec![], vec![skipped("11")])), &[], &host(), POOL).0, DriftState::Drift);
}

#[test]
fn what_cannot_be_here_is_never_red() {
    let pattern = "/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor";
    let skipped = Skipped::left(
        KnobId::new("cpu.governor"),
        pattern.to_owned(),
        Some("performance".to_owned()),
        Verdict::new(VerdictKind::Host, "a guest"),
    );
    let plan = plan(vec![], vec![skipped]);
    assert_eq!(check(Some(&plan), &[], &host(), pattern), (DriftState::NotHere, "a guest".to_owned()));
}

#[test]
fn what_is_here_and_kept_from_being_set_is_drift_with_its_reason() {
    let why = "on a file system that is mounted read-only";
    let left = |id: &str, place: &str, wanted: &str, hindered: bool| {
        let verdict = Verdict::new(VerdictKind::Blocked, why);
        let left = Skipped::left(KnobId::new(id), place.to_owned(), Some(wanted.to_owned()), verdict);
        plan(vec![], vec![Skipped { hindered, ..left }])
    };
    let of = |plan: &Plan, place: &str| check(Some(plan), &[], &host(), place);
    let drift = (DriftState::Drift, why.to_owned());
    assert_eq!(of(&left("vm.swappiness", SWAP, "10", true), SWAP), drift);
    let short = (DriftState::Drift, format!("10 of 40 pages are there: {why}"));
    assert_eq!(of(&left("hugepages.2m", POOL, "40", true), POOL), short);
    // Somebody else set it, or made the pool as large: it is as wanted.
    assert_eq!(of(&left("vm.swappiness", SWAP, "60", true), SWAP).0, DriftState::Ok);
    assert_eq!(of(&left("hugepages.2m", POOL, "8", true), POOL).0, DriftState::Ok);
    // What was left to somebody, or allowed by nobody, is not asked of this host.
    assert_eq!(of(&left("vm.swappiness", SWAP, "10", false), SWAP).0, DriftState::NotHere);
}

#[test]
fn what_is_impossible_is_drift_where_its_place_is_there() {
    const ISOLATED: &str = "cmdline:isolcpus";
    let why = "80 GiB of 96 GiB would be for nobody";
    let impossible = |id: &str, place: &str, wanted: &str| {
        let (knob, place, wanted) = (KnobId::new(id), place.to_owned(), wanted.to_owned());
        plan(vec![], vec![Skipped::impossible(knob, place, wanted, why)])
    };
    let mut observation = host();
    let given = Reading { value: Some("(not given)".to_owned()), access: Access::Writable, ..gone(ISOLATED) };
    observation.knobs.insert(KnobId::new("boot.isolcpus"), vec![given]);
    let reserve = impossible("vm.min_free_kbytes", MIN_FREE, "83886080");
    let isolated = impossible("boot.isolcpus", ISOLATED, "0-1");
    for (plan, place) in [(&reserve, MIN_FREE), (&isolated, ISOLATED)] {
        let drift = (DriftState::Drift, why.to_owned());
        assert_eq!(check(Some(plan), &[], &observation, place), drift, "{place}");
        assert!(!verify(&Catalogue::embedded().expect("sound"), Some(plan), &[], &observation).is_clean());
    }
    let pool = impossible("hugepages.2m", POOL, "40");
    let short = (DriftState::Drift, format!("10 of 40 pages are there: {why}"));
    assert_eq!(check(Some(&pool), &[], &observation, POOL), short);
    // Somebody set it all the same since the plan was made.
    set(&mut observation, "vm.min_free_kbytes", "83886080");
    set(&mut observation, "hugepages.2m", "40");
    assert_eq!(check(Some(&reserve), &[], &observation, MIN_FREE).0, DriftState::Ok);
    assert_eq!(check(Some(&pool), &[], &observation, POOL).0, DriftState::Ok);
    // A machine without the place has nothing to be impossible.
    let elsewhere = impossible("vm.min_free_kbytes", "/proc/sys/vm/elsewhere", "83886080");
    assert_eq!(check(Some(&elsewhere), &[], &observation, "/proc/sys/vm/elsewhere").0, DriftState::NotHere);
}

#[test]
fn a_value_that_the_host_made_something_else_of_is_drift_until_it_is_as_wanted() {
    let mut clamped = applied("vm.swappiness", SWAP, "60", "20");
    clamped.wanted = "10".to_owned();
    clamped.outcome.as_mut().expect("it ran").outcome = OutcomeKind::ReadsBack;
    let open = [entry(4, "boot", vec![clamped])];
    let why = "entry 4 wrote it, and this host made `20` of it".to_owned();
    let again = Skipped {
        hindered: true,
        ..Skipped::left(
            KnobId::new("vm.swappiness"),
            SWAP.to_owned(),
            Some("10".to_owned()),
            Verdict::new(VerdictKind::Blocked, why.clone()),
        )
    };
    let mut observation = host();
    for (now, state, because) in [
        ("20", DriftState::Drift, why),
        ("33", DriftState::Drift, "changed since entry 4".to_owned()),
        ("60", DriftState::Drift, "back to the value from before entry 4".to_owned()),
    ] {
        set(&mut observation, "vm.swappiness", now);
        assert_eq!(check(None, &open, &observation, SWAP), (state, because));
        let planned = plan(vec![], vec![again.clone()]);
        assert_eq!(check(Some(&planned), &open, &observation, SWAP).0, state, "{now}");
    }
    set(&mut observation, "vm.swappiness", "10");
    assert_ne!(check(None, &open, &observation, SWAP).0, DriftState::Drift);
    assert_ne!(check(Some(&plan(vec![], vec![again])), &open, &observation, SWAP).0, DriftState::Drift);
}

#[test]
fn what_may_not_be_read_is_unknown() {
    let mut observation = host();
    let reading = &mut observation.knobs.get_mut(&KnobId::new("vm.swappiness")).expect("is there")[0];
    reading.value = None;
    reading.unread = Some("permission denied".to_owned());
    let plan = plan(vec![step("vm.swappiness", SWAP, "10")], vec![]);
    let (state, because) = check(Some(&plan), &[], &observation, SWAP);
    assert_eq!((state, because.as_str()), (DriftState::Unknown, "permission denied"));
}

proptest! {
    #[test]
    fn a_number_is_clean_exactly_when_it_is_the_wanted_one(running in 0_u32..200, wanted in 0_u32..200) {
        let mut observation = host();
        set(&mut observation, "vm.swappiness", &format!("{running}\n"));
        let plan = plan(vec![step("vm.swappiness", SWAP, &format!(" {wanted} "))], vec![]);
        let clean = verify(&Catalogue::embedded().expect("sound"), Some(&plan), &[], &observation).is_clean();
        prop_assert_eq!(clean, running == wanted);
    }
}

#[test]
fn what_the_kernel_did_not_take_waits_for_no_boot() {
    const ISOLATED: &str = "cmdline:isolcpus";
    let mut observation = host();
    let mut shown = |value: &str, persisted: &str| {
        let given = Reading { value: Some(value.to_owned()), access: Access::Writable, ..gone(ISOLATED) };
        observation.knobs.insert(KnobId::new("boot.isolcpus"), vec![given]);
        persist(&mut observation, ISOLATED, persisted);
        let skipped = |kind| Skipped {
            verdict: Verdict::new(kind, "why"),
            ..Skipped::impossible(
                KnobId::new("boot.isolcpus"),
                ISOLATED.to_owned(),
                persisted.to_owned(),
                "why",
            )
        };
        let of = |kind| {
            let plan = plan(vec![], vec![Skipped { impossible: false, ..skipped(kind) }]);
            check(Some(&plan), &[], &observation, ISOLATED)
        };
        [of(VerdictKind::Reboot), of(VerdictKind::Blocked), check(None, &[], &observation, ISOLATED)]
    };
    for (state, why) in shown(&planish_model::not_taken("2-3"), "2-3") {
        assert_eq!(state, DriftState::Drift);
        assert!(why.contains("did not take it"), "{why}");
    }
    // Another list comes with the next boot, and may be taken.
    for value in [planish_model::not_taken("2-99"), "(not given)".to_owned()] {
        for (state, why) in shown(&value, "2-3") {
            assert_eq!(state, DriftState::PendingReboot, "{value}: {why}");
        }
    }
}

/// On GRUB with drop-ins the argument is in a file of ours, which also tells what the pool will have.
#[test]
fn what_the_boot_loader_gives_the_next_kernel_is_pending_and_no_drift() {
    let catalogue = Catalogue::embedded().expect("sound");
    let mut observation = host();
    let source = "/etc/default/grub.d/90-planish.cfg:2".to_owned();
    let found = Persisted { value: "4096".to_owned(), source, at_boot: None, overridden: Vec::new() };
    observation.persisted.insert(POOL.to_owned(), found);
    let mut given = |value: Option<&str>| {
        observation.by_boot_line.insert(POOL.to_owned(), value.map(str::to_owned));
        let row = row(&verify(&catalogue, None, &[], &observation), POOL);
        assert_eq!(row.wanted.as_deref(), Some("4096"), "the file is ours: {row:#?}");
        row.state
    };
    assert_eq!(given(None), DriftState::PendingReboot);
    assert_eq!(given(Some("512")), DriftState::PendingReboot);
    assert_eq!(given(Some("4096")), DriftState::Drift, "this kernel had it: the pages went since");
}

#[test]
fn what_an_allowed_apply_set_is_judged_though_a_plan_of_today_may_not_set_it() {
    const ISOLATED: &str = "cmdline:isolcpus";
    let forbidden = |id: &str, place: &str, wanted: &str| Skipped {
        not_allowed: true,
        ..Skipped::left(
            KnobId::new(id),
            place.to_owned(),
            Some(wanted.to_owned()),
            Verdict::new(VerdictKind::Blocked, "may stall the host: --allow availability"),
        )
    };
    let plan =
        plan(vec![], vec![forbidden("vm.swappiness", SWAP, "10"), forbidden("boot.isolcpus", ISOLATED, "2")]);
    let mut observation = host();
    let given =
        |value: &str| Reading { value: Some(value.to_owned()), access: Access::Writable, ..gone(ISOLATED) };
    observation.knobs.insert(KnobId::new("boot.isolcpus"), vec![given("(not given)")]);
    // Never allowed, and not there: no drift.
    assert_eq!(check(Some(&plan), &[], &observation, SWAP).0, DriftState::NotAllowed);
    assert_eq!(check(Some(&plan), &[], &observation, ISOLATED).0, DriftState::NotAllowed);
    // It was allowed: the boot parameter comes, then runs, and the value that was written may drift.
    persist(&mut observation, ISOLATED, "2");
    assert_eq!(check(Some(&plan), &[], &observation, ISOLATED).0, DriftState::PendingReboot);
    observation.knobs.insert(KnobId::new("boot.isolcpus"), vec![given("2")]);
    assert_eq!(check(Some(&plan), &[], &observation, ISOLATED).0, DriftState::Ok);
    let open = [entry(1, "boot", vec![applied("vm.swappiness", SWAP, "60", "10")])];
    assert_eq!(check(Some(&plan), &open, &observation, SWAP).0, DriftState::Drift);
    set(&mut observation, "vm.swappiness", "10");
    assert_eq!(check(Some(&plan), &open, &observation, SWAP).0, DriftState::LostAtBoot);
}

/// An older entry holds what the newer apply was told to leave: that one is done all the same.
#[test]
fn what_was_left_out_is_not_judged_though_an_older_entry_holds_it() {
    let verdict = Verdict::new(VerdictKind::Blocked, "left to sysctl.d: --exclude sysctl.d");
    let row =
        Skipped::left(KnobId::new("vm.swappiness"), SWAP.to_owned(), Some("10".to_owned()), verdict.clone());
    let plan = plan(vec![], vec![Skipped { left_out: true, ..row }]);
    let mut observation = host();
    let open = [entry(1, "boot", vec![applied("vm.swappiness", SWAP, "60", "10")])];
    for now in ["10", "42"] {
        set(&mut observation, "vm.swappiness", now);
        let (state, why) = check(Some(&plan), &open, &observation, SWAP);
        assert_eq!((state, why.as_str()), (DriftState::NotHere, verdict.reason.as_str()), "{now}");
    }
}

/// A plan tells a knob of many places once where nobody allowed it.
#[test]
fn a_knob_of_many_places_that_nobody_allowed_is_told_where_it_is_here_and_otherwise() {
    let knob = KnobId::new("cpu.governor");
    let pattern = "/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor";
    let verdict = Verdict::new(VerdictKind::Blocked, "may stall the host: --allow availability");
    let row = Skipped::left(knob.clone(), pattern.to_owned(), Some("performance".to_owned()), verdict);
    let state = |not_allowed: bool, values: &[&str]| {
        let mut observation = host();
        let reading = |value: &&str| Reading {
            value: Some((*value).to_owned()),
            access: Access::Writable,
            ..gone("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
        };
        observation.knobs.insert(knob.clone(), values.iter().map(reading).collect());
        let plan = plan(vec![], vec![Skipped { not_allowed, ..row.clone() }]);
        check(Some(&plan), &[], &observation, pattern).0
    };
    assert_eq!(state(true, &["performance", "powersave"]), DriftState::NotAllowed);
    assert_eq!(state(true, &["performance"]), DriftState::NotHere, "there is nothing to allow");
    assert_eq!(state(true, &[]), DriftState::NotHere);
    assert_eq!(state(false, &["powersave"]), DriftState::NotHere);
}

/// One node of two, with ten pages, and a file that sets the pools of both.
fn beside_all_nodes(pages: &str) -> Observation {
    let mut observation = host();
    let pool = |node: u32| planish_model::PoolReading {
        node: Some(node),
        page_bytes: 2 << 20,
        place: POOL.replace("node0", &format!("node{node}")),
        pages: 10,
        free: 10,
        surplus: 0,
    };
    observation.pools = vec![pool(0), pool(1)];
    let reading = Reading { value: Some("20".to_owned()), access: Access::Writable, ..gone(TOTAL) };
    observation.knobs.insert(KnobId::new("hugepages.2m.total"), vec![reading]);
    persist(&mut observation, TOTAL, pages);
    observation
}

const TOTAL: &str = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages";

#[test]
fn a_pool_that_only_an_apply_raised_is_what_a_line_for_all_nodes_gives_it_at_the_next_boot() {
    let catalogue = Catalogue::embedded().expect("sound");
    let open = [entry(3, "boot", vec![pool_step(8)])];
    let seen = |pages: &str| row(&verify(&catalogue, None, &open, &beside_all_nodes(pages)), POOL);
    let lost = seen("9");
    assert_eq!(lost.state, DriftState::LostAtBoot);
    let why = "/etc/sysctl.d/90-x.conf:3 will set 9 over all nodes, 5 of them here";
    assert_eq!(lost.because.as_deref(), Some(why));
    assert_eq!(lost.next_boot.map(|next| next.value).as_deref(), Some("5"));
    // Two of the ten are of others: what is less than all ten has not all of ours.
    assert_eq!(seen("18").state, DriftState::LostAtBoot);
    assert_eq!(seen("20").state, DriftState::Ok);
    // What the command line gives was there before, and says nothing of ours.
    let mut observation = beside_all_nodes("9");
    observation.by_boot_line.insert(TOTAL.to_owned(), None);
    let own = row(&verify(&catalogue, None, &open, &observation), POOL);
    assert_eq!((own.because.as_deref(), own.next_boot), (Some("no file persists it"), None));
}

#[test]
fn all_nodes_have_at_the_next_boot_what_the_lines_of_each_give_them() {
    let mut observation = beside_all_nodes("8");
    persist(&mut observation, POOL, "12");
    let drift = verify(&Catalogue::embedded().expect("sound"), None, &[], &observation);
    assert_eq!(row(&drift, POOL).next_boot.map(|next| next.value).as_deref(), Some("12"));
    assert_eq!(
        row(&drift, TOTAL).next_boot.map(|next| next.value).as_deref(),
        Some("16"),
        "12 and a half of 8"
    );
}

#[test]
fn a_program_that_sets_the_pools_of_all_nodes_overwrites_ours() {
    let mut observation = host();
    let total = KnobId::new("hugepages.2m.total");
    observation.writers = vec![SeenWriter {
        id: "rc.local".to_owned(),
        running: false,
        evidence: Vec::new(),
        knobs: Some(vec![total.clone()]),
        profile: None,
        arguments: None,
        commands: BTreeMap::from([(total.clone(), vec![Said::of_all("vm.nr_hugepages = 1024")])]),
        sources: BTreeMap::from([(total, vec![Said::of_all("/etc/rc.local")])]),
        maybe: BTreeMap::new(),
        again: planish_model::Again::default(),
    }];
    let open = [entry(3, "boot", vec![pool_step(8)])];
    let (state, why) = check(None, &open, &observation, POOL);
    let told = "rc.local will set it at the next boot (/etc/rc.local) by `vm.nr_hugepages = 1024`";
    assert_eq!((state, why.as_str()), (DriftState::OverwrittenAtBoot, told));
    // Pages that none of ours are among are theirs.
    assert_eq!(check(None, &[], &observation, POOL).0, DriftState::Ok);
}
