//! Settings of network cards, which have no files: set, refused, rounded, kept for the next boot, put back.

use planish_model::{
    BootValue, Case, Class, Conditions, DriftState, EntryId, Exit, KnobId, OutcomeKind, Part, Plan, Want,
};
use planish_pipeline::{
    ApplyOptions, PipelineError, PlanOptions, Session, Source, Target, apply, check, outgoing, plan, undo,
};

use crate::crash::{assert_clean, kill_everywhere, undo_everything};
use crate::tree::*;

const RULES_FILE: &str = "/etc/udev/rules.d/90-planish.rules";

const ANSWERS: &str = r#"
[[answer]]
place = "/planish/ethtool/eth1/rings_tx"
readback = "512"
[[answer]]
place = "/planish/ethtool/eth1/coalesce_tx_usecs"
errno = "EOPNOTSUPP"
[[answer]]
place = "/planish/ethtool/eth1/channels_combined"
derives = [{ place = "/sys/class/net/eth1/queues/rx-0/rps_cpus", value = "0" }]
"#;
const RPS: &str = "/sys/class/net/eth1/queues/rx-0/rps_cpus";

fn place(nic: &str, name: &str) -> String {
    format!("/planish/ethtool/{nic}/{name}")
}

/// The small host with two cards, and the machine is reached through one of them.
fn host() -> Tree {
    let tree = Tree::answering(ANSWERS);
    let meta = tree.get("/meta.toml");
    tree.put(
        "/meta.toml",
        &meta.replace(
            "\"/sys/kernel/mm/**\",",
            "\"/sys/kernel/mm/**\", \"/planish/ethtool/**\", \"/sys/class/net/eth1/queues/**\",",
        ),
    );
    for (nic, address) in [("eth0", "52:54:00:00:00:01"), ("eth1", "52:54:00:00:00:02")] {
        for (name, value) in [
            ("rings_rx", "256"),
            ("rings_rx_max", "4096"),
            ("rings_tx", "256"),
            ("rings_tx_max", "4096"),
            ("channels_combined", "1"),
            ("channels_combined_max", "4"),
            ("coalesce_adaptive_rx", "1"),
            ("coalesce_rx_usecs", "50"),
            ("coalesce_tx_usecs", "50"),
            ("feature_gro", "1"),
        ] {
            tree.put(&place(nic, name), &format!("{value}\n"));
        }
        let folder = format!("/sys/class/net/{nic}");
        tree.put(&format!("{folder}/address"), &format!("{address}\n"));
        tree.put(&format!("{folder}/addr_assign_type"), "0\n");
        tree.put(&format!("{folder}/device/vendor"), "0x8086\n");
        let driver = tree.root().join(format!("sys/class/net/{nic}/device/driver"));
        std::os::unix::fs::symlink("../../../../bus/pci/drivers/igb", driver).expect("ours");
    }
    tree.put("/planish/session_nics", "eth0\n");
    tree.put("/usr/sbin/ethtool", "");
    tree.put("/etc/udev/udev.conf", "");
    tree
}

fn wants(values: &[(&str, i64)]) -> Source {
    let values: Vec<(&str, Want)> = values.iter().map(|(id, value)| (*id, Want::Int(*value))).collect();
    profile("cards", &values)
}

fn quick() -> Source {
    wants(&[("net.rings_rx", 4096), ("net.coalesce_adaptive_rx", 0), ("net.coalesce_rx_usecs", 3)])
}

fn allowed(session: &Session, source: &Source, knobs: &[&str]) -> Plan {
    let allow_knobs = knobs.iter().copied().map(KnobId::new).collect();
    let options =
        PlanOptions { allow_classes: vec![Class::Availability], allow_knobs, ..PlanOptions::default() };
    plan(session, source, &options).expect("a plan")
}

fn steps(plan: &Plan) -> Vec<String> {
    plan.steps
        .iter()
        .map(|step| format!("{} {}", step.place.replace("/planish/ethtool/", ""), step.wanted))
        .collect()
}

#[test]
fn the_card_of_a_session_is_set_only_by_name_and_none_beyond_its_limit() {
    let tree = host();
    let session = tree.session();
    let none = plan(&session, &quick(), &PlanOptions::default()).expect("a plan");
    assert_eq!(steps(&none), [""; 0], "a link may go down: that is not safe");
    let other = allowed(&session, &quick(), &[]);
    assert_eq!(
        steps(&other),
        ["eth1/coalesce_adaptive_rx 0", "eth1/rings_rx 4096", "eth1/coalesce_rx_usecs 3"]
    );
    let reason = |plan: &Plan| plan.skipped.iter().map(|row| row.verdict.reason.clone()).collect::<Vec<_>>();
    let why = "this machine is reached through eth0, which may go down: --allow-knob net.rings_rx";
    assert!(reason(&other).iter().any(|reason| reason == why), "{:?}", reason(&other));
    let both = allowed(&session, &quick(), &["net.rings_rx"]);
    assert!(steps(&both).contains(&"eth0/rings_rx 4096".to_owned()), "{:?}", steps(&both));
    let beyond = allowed(&session, &wants(&[("net.rings_rx", 4097)]), &[]);
    assert_eq!(steps(&beyond), [""; 0]);
    assert!(reason(&beyond).iter().all(|reason| reason == "this device takes 4096 at most"));
    let safe = plan(&session, &wants(&[("net.feature_gro", 0)]), &PlanOptions::default()).expect("a plan");
    assert_eq!(steps(&safe), ["eth0/feature_gro 0", "eth1/feature_gro 0"], "no link goes down for it");
}

/// Other tools would set it at every boot: they are given no more than `--persist` keeps.
#[test]
fn an_export_leaves_the_card_of_a_session_out_until_its_knob_is_named() {
    for now in ["256\n", "4096\n"] {
        let tree = host();
        tree.put(&place("eth0", "rings_rx"), now);
        let session = tree.session();
        let source = wants(&[("net.rings_rx", 4096)]);
        let exported = |knobs: &[&str]| {
            let allow_knobs = knobs.iter().copied().map(KnobId::new).collect();
            let allow_classes = vec![Class::Availability];
            let options = PlanOptions { allow_classes, allow_knobs, ..PlanOptions::default() };
            let plan = plan(&session, &source, &options).expect("a plan");
            let file = tree.root().join("plan.json");
            tree.put("/plan.json", &serde_json::to_string(&plan).expect("plain data"));
            [&source, &Source::named(file.to_str().expect("text"))].map(|source| {
                let out = outgoing(&session, source, &options).expect("it goes out");
                let why: Vec<String> = out.left_out.into_iter().map(|left| left.reason).collect();
                (out.items.iter().map(|item| format!("{item:?}")).collect::<Vec<_>>(), why)
            })
        };
        for (items, why) in exported(&[]) {
            assert!(items.len() == 1 && items[0].contains("eth1"), "{now}: {items:?}");
            assert_eq!(
                why,
                ["this machine is reached through eth0, which may go down: --allow-knob net.rings_rx"]
            );
        }
        for (items, why) in exported(&["net.rings_rx"]) {
            assert!(!items.is_empty() && why.is_empty(), "{now}: {items:?} {why:?}");
            assert!(items.len() == 2 || items[0].contains("/*/"), "{now}: {items:?}");
        }
    }
}

#[test]
fn what_a_device_rounds_is_told_and_what_it_refuses_puts_all_back() {
    let tree = host();
    let start = tree.snapshot();
    let session = tree.session();
    let rounded = allowed(&session, &wants(&[("net.rings_tx", 500)]), &[]);
    let applied = apply(&session, &rounded, &ApplyOptions::default()).expect("applied");
    assert_eq!(applied.outcomes[0].outcome, OutcomeKind::ReadsBack, "{:#?}", applied.outcomes);
    assert_eq!(applied.outcomes[0].read_back.as_deref(), Some("512"));
    assert_eq!(
        undo(&tree.session(), Target::All, false).expect("undone").exit,
        Exit::FailedNotRestored,
        "it rounds all"
    );
    let tree = host();
    let session = tree.session();
    let refused =
        allowed(&session, &wants(&[("net.coalesce_rx_usecs", 3), ("net.coalesce_tx_usecs", 3)]), &[]);
    let applied = apply(&session, &refused, &ApplyOptions::default()).expect("tried");
    let failed =
        applied.outcomes.iter().find(|outcome| outcome.outcome == OutcomeKind::Failed).expect("one failed");
    assert!(failed.detail.as_ref().is_some_and(|why| why.contains("the device cannot do it")), "{failed:?}");
    let _ = undo(&tree.session(), Target::All, false).expect("undone");
    assert_eq!(differences(&start, &tree.snapshot()), [""; 0]);
}

#[test]
fn a_rule_of_udev_brings_it_back_and_goes_with_the_undo() {
    let tree = host();
    let start = tree.snapshot();
    let session = tree.session();
    let applied = apply(&session, &allowed(&session, &quick(), &[]), &PERSIST).expect("applied");
    assert_eq!((applied.exit, applied.unpersisted.len()), (Exit::Done, 0), "{applied:#?}");
    let rule = |words: &str| {
        format!(
            "ACTION==\"add\", SUBSYSTEM==\"net\", DRIVERS==\"igb\", ATTR{{address}}==\"52:54:00:00:00:02\", \
             RUN+=\"/usr/sbin/ethtool {words}\""
        )
    };
    let rules = || tree.get(RULES_FILE).lines().skip(1).map(str::to_owned).collect::<Vec<_>>();
    let coalesce = [rule("-C $name adaptive-rx off"), rule("-C $name rx-usecs 3")];
    assert_eq!(rules(), [coalesce[0].clone(), rule("-G $name rx 4096"), coalesce[1].clone()]);
    let checked = check(&tree.session(), None).expect("checked");
    let row = checked.drift.knobs.iter().find(|row| row.place == place("eth1", "rings_rx")).expect("a row");
    assert_eq!(row.persisted, Some(BootValue::new("4096", "/etc/udev/rules.d/90-planish.rules:3")));
    assert_eq!(checked.exit, Exit::Done, "{:#?}", checked.drift);
    let again = allowed(&tree.session(), &quick(), &[]);
    assert_eq!(steps(&again), [""; 0], "apply twice writes nothing");
    // Another profile wants other rings: its line takes the place of the older one, and gives it back.
    let session = tree.session();
    let second = profile("second", &[("net.rings_rx", Want::Int(2048))]);
    apply(&session, &allowed(&session, &second, &[]), &PERSIST).expect("applied");
    assert_eq!(rules(), [coalesce[0].clone(), coalesce[1].clone(), rule("-G $name rx 2048")]);
    undo(&tree.session(), Target::Newest, false).expect("undone");
    assert!(rules().contains(&rule("-G $name rx 4096")), "{:?}", rules());
    assert_eq!(undo(&tree.session(), Target::All, false).expect("undone").exit, Exit::Done);
    assert_eq!(differences(&start, &tree.snapshot()), [""; 0]);
}

/// What somebody typed at the card of his session is as wanted: it may be so now, and is no matter of each boot.
#[test]
fn what_the_card_of_a_session_has_already_is_kept_for_the_next_boot_only_by_name() {
    let tree = host();
    for nic in ["eth0", "eth1"] {
        tree.put(&place(nic, "rings_rx"), "4096\n");
    }
    let rules = |tree: &Tree| tree.get(RULES_FILE).lines().skip(1).map(str::to_owned).collect::<Vec<_>>();
    let rings = wants(&[("net.rings_rx", 4096)]);
    let by_class = allowed(&tree.session(), &rings, &[]);
    assert_eq!(by_class.skipped.iter().filter(|row| row.satisfied).count(), 2, "{:#?}", by_class.skipped);
    let applied = apply(&tree.session(), &by_class, &PERSIST).expect("applied");
    assert!(rules(&tree).iter().all(|line| !line.contains("52:54:00:00:00:01")), "{:?}", rules(&tree));
    assert_eq!(rules(&tree).len(), 1);
    let [left] = applied.unpersisted.as_slice() else { panic!("{:#?}", applied.unpersisted) };
    assert_eq!(left.place, place("eth0", "rings_rx"));
    assert!(left.cure.ends_with("--persist --allow-knob net.rings_rx"), "{left:?}");
    // By its name it is kept, and what is kept by name comes, whoever asks for it again.
    let by_name = allowed(&tree.session(), &rings, &["net.rings_rx"]);
    let applied = apply(&tree.session(), &by_name, &PERSIST).expect("applied");
    assert_eq!((rules(&tree).len(), applied.exit), (2, Exit::Done), "{:#?}", applied.unpersisted);
    let applied = apply(&tree.session(), &by_class, &PERSIST).expect("applied");
    assert_eq!((rules(&tree).len(), applied.exit), (2, Exit::Done), "{:#?}", applied.unpersisted);
}

#[test]
fn new_queues_get_back_what_was_set_for_the_old_ones() {
    let tree = host();
    tree.put(RPS, "3\n");
    let start = tree.snapshot();
    let session = tree.session();
    let mask = Case { value: "2".to_owned(), only: Some("eth1".to_owned()), needs: Conditions::default() };
    let source = profile(
        "queues",
        &[("net.channels_combined", Want::Int(2)), ("net.rps_cpus", Want::Case(Box::new(mask)))],
    );
    let first = allowed(&session, &source, &[]);
    assert_eq!(steps(&first), ["eth1/channels_combined 2"], "the mask is for queues that come with it");
    let left = first.skipped.iter().find(|row| row.place == RPS).expect("told");
    assert!(left.verdict.reason.ends_with("apply once more when it is set"), "{left:?}");
    apply(&session, &first, &ApplyOptions::default()).expect("applied");
    assert_eq!(tree.get(RPS).trim(), "0", "wiped");
    let session = tree.session();
    let second = allowed(&session, &source, &[]);
    assert_eq!(second.steps.iter().filter(|step| step.is_written()).count(), 1);
    apply(&session, &second, &ApplyOptions::default()).expect("applied");
    assert_eq!(tree.get(RPS).trim(), "2");
    assert_eq!(undo(&tree.session(), Target::All, false).expect("undone").exit, Exit::Done);
    assert_eq!(differences(&start, &tree.snapshot()), [""; 0]);
}

#[test]
fn an_undo_after_a_reboot_brings_the_cards_back() {
    for reboots in [1, 2] {
        let tree = host();
        let start = tree.snapshot();
        let session = tree.session();
        apply(&session, &allowed(&session, &quick(), &[]), &PERSIST).expect("applied");
        for _ in 0..reboots {
            tree.reboot(&start);
        }
        assert_eq!(tree.get(&place("eth1", "rings_rx")).trim(), "4096", "the rule brought it");
        let checked = check(&tree.session(), None).expect("checked");
        let row =
            checked.drift.knobs.iter().find(|row| row.place == place("eth1", "rings_rx")).expect("a row");
        assert_eq!((checked.exit, row.state), (Exit::Done, DriftState::Ok), "{row:#?}");
        let undone = undo(&tree.session(), Target::Newest, false).expect("undone");
        let told = undone.hints.iter().all(|hint| hint.ends_with("before entry 1, in an earlier boot"));
        assert_eq!((undone.exit, undone.hints.len(), told), (Exit::Done, 1, true), "{undone:#?}");
        assert_eq!(differences(&start, &tree.snapshot()), [""; 0]);
        assert!(tree.entries().iter().all(|entry| !entry.is_open()));
    }
}

#[test]
fn entries_over_each_other_end_at_the_first_settings_of_a_card() {
    for order in [[2, 1], [1, 2]] {
        let tree = host();
        let start = tree.snapshot();
        for (name, rings) in [("first", 4096), ("second", 2048)] {
            let session = tree.session();
            let source = profile(name, &[("net.rings_rx", Want::Int(rings))]);
            apply(&session, &allowed(&session, &source, &[]), &PERSIST).expect("applied");
        }
        tree.reboot(&start);
        assert_eq!(tree.get(&place("eth1", "rings_rx")).trim(), "2048");
        for id in order {
            let undone = undo(&tree.session(), Target::Entry(EntryId(id)), false).expect("undone");
            assert_eq!(undone.exit, Exit::Done, "{order:?}: {:#?}", undone.entries);
        }
        assert_eq!(differences(&start, &tree.snapshot()), [""; 0], "{order:?}");
    }
}

#[test]
fn what_was_so_before_the_rule_is_told_with_its_undo_after_a_reboot() {
    let tree = host();
    let start = tree.snapshot();
    tree.edit(&place("eth1", "rings_rx"), "4096");
    let session = tree.session();
    let source = wants(&[("net.rings_rx", 4096)]);
    apply(&session, &allowed(&session, &source, &[]), &PERSIST).expect("applied");
    tree.reboot(&start);
    let undone = undo(&tree.session(), Target::All, false).expect("undone");
    let told = "eth1/rings_rx is `4096` until the next reboot, from the file";
    assert!(undone.hints.iter().any(|hint| hint.contains(told)), "{:?}", undone.hints);
}

#[test]
fn what_no_rule_can_tell_or_start_is_named() {
    let left = |change: &dyn Fn(&Tree)| {
        let tree = host();
        change(&tree);
        let session = tree.session();
        let applied = apply(&session, &allowed(&session, &quick(), &[]), &PERSIST).expect("applied");
        assert_eq!(applied.unpersisted.len(), 3, "{:#?}", applied.unpersisted);
        applied.unpersisted[0].reason.clone()
    };
    assert!(left(&|tree| tree.remove("/usr/sbin/ethtool")).contains("not installed"));
    assert!(
        left(&|tree| tree.put("/sys/class/net/eth1/addr_assign_type", "3\n")).contains("its address was set")
    );
    let bonded = host();
    bonded.put("/sys/class/net/eth1/addr_assign_type", "3\n");
    bonded.put("/sys/class/net/eth1/bonding_slave/perm_hwaddr", "52:54:00:00:00:09\n");
    let session = bonded.session();
    apply(&session, &allowed(&session, &quick(), &[]), &PERSIST).expect("applied");
    assert!(
        bonded.get(RULES_FILE).contains("52:54:00:00:00:09"),
        "a card of a bond has an address of its own"
    );
}

#[test]
fn a_rule_of_somebody_else_is_seen() {
    let tree = host();
    let line = r#"SUBSYSTEM=="net", ACTION=="add", KERNEL=="eth*", RUN+="/sbin/ethtool -G %k rx 1024""#;
    tree.put("/etc/udev/rules.d/80-rings.rules", &format!("# rings\n{line}\n"));
    tree.put("/sys/class/net/eth0/name_assign_type", "1\n");
    let found = &tree.session().observe().persisted[&place("eth0", "rings_rx")];
    assert_eq!((found.value.as_str(), found.source.as_str()), ("1024", "/etc/udev/rules.d/80-rings.rules:2"));
}

#[test]
fn one_card_of_several_is_meant_by_its_name() {
    let tree = host();
    let case = Case { value: "0".to_owned(), only: Some("eth1".to_owned()), needs: Conditions::default() };
    let source = profile("one", &[("net.feature_gro", Want::Case(Box::new(case)))]);
    let plan = plan(&tree.session(), &source, &PlanOptions::default()).expect("a plan");
    assert_eq!(steps(&plan), ["eth1/feature_gro 0"]);
}

#[test]
fn a_kill_at_any_moment_leaves_nothing_behind() {
    let scene = |session: &Session| {
        apply(session, &allowed(session, &quick(), &[]), &PERSIST).expect("applied");
    };
    assert_clean(&kill_everywhere(&host, &|_| {}, &scene));
    assert_clean(&kill_everywhere(&host, &scene, &undo_everything));
}

/// What was left with its note at the apply is left at every check, too.
#[test]
fn check_asks_nothing_of_the_card_of_a_session_that_was_left_alone() {
    let tree = host();
    let source = wants(&[("net.rings_rx", 4096)]);
    let applied = apply(&tree.session(), &allowed(&tree.session(), &source, &[]), &PERSIST).expect("applied");
    assert_eq!(applied.exit, Exit::Done, "{:#?}", applied.drift);
    let checked = || check(&tree.session(), Some(&source)).expect("a look");
    assert_eq!(checked().exit, Exit::Done, "{:#?}", checked().drift);
    tree.edit(&place("eth1", "rings_rx"), "512");
    let drift: Vec<String> = checked()
        .drift
        .knobs
        .into_iter()
        .filter(|row| row.state == DriftState::Drift)
        .map(|row| row.place)
        .collect();
    assert_eq!(drift, [place("eth1", "rings_rx")], "and what was set is judged as it was allowed");
}

/// The row of a knob that is not allowed is of all its places: what the old entry had set at one goes back all the
/// same.
#[test]
fn a_card_that_both_want_the_same_of_does_not_go_back_because_nobody_allowed_it() {
    let tree = host();
    let session = tree.session();
    let source = wants(&[("net.rings_rx", 4096), ("vm.swappiness", 10)]);
    apply(&session, &allowed(&session, &source, &[]), &ApplyOptions::default()).expect("applied");
    let with = |options: PlanOptions| {
        let options = PlanOptions { instead_of: Some(EntryId(1)), ..options };
        plan(&session, &source, &options)
    };
    let part = |plan: Result<Plan, PipelineError>| {
        let steps = plan.expect("a plan").steps;
        steps.into_iter().find(|step| step.place == place("eth1", "rings_rx")).and_then(|step| step.part)
    };
    let error = with(PlanOptions::default()).expect_err("it would go back");
    assert!(error.to_string().contains("/eth1/rings_rx would go back with it"), "{error}");
    assert_eq!(error.exit(), Exit::Refused);
    let exclude = vec!["net.rings_rx".to_owned()];
    assert_eq!(part(with(PlanOptions { exclude, ..PlanOptions::default() })), Some(Part::Back));
    let allow_classes = vec![Class::Availability];
    assert_eq!(part(with(PlanOptions { allow_classes, ..PlanOptions::default() })), Some(Part::TakenOver));
}
