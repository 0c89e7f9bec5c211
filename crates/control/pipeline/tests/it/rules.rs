//! Rules of udev: those of others as a source of the next boot, ours for disks, and devices whose names changed.

use std::collections::BTreeMap;

use planish_model::{BootValue, Class, DriftState, Exit, KnobCheck, OutcomeKind, Plan, Want};
use planish_pipeline::{ApplyOptions, PlanOptions, Session, Source, Target, apply, check, plan, undo};

use crate::crash::{assert_clean, kill_everywhere, undo_everything};
use crate::tree::*;

const RULES_FILE: &str = "/etc/udev/rules.d/90-planish.rules";
const PERSIST: ApplyOptions = ApplyOptions { confirm_seconds: None, persist: true, reason: None };

fn scheduler(disk: &str) -> String {
    format!("/sys/block/{disk}/queue/scheduler")
}

fn read_ahead(disk: &str) -> String {
    format!("/sys/block/{disk}/queue/read_ahead_kb")
}

fn rings(card: &str) -> String {
    format!("/planish/ethtool/{card}/rings_rx")
}

/// The small host with two disks, of which udev knows one better, and two cards.
fn host() -> Tree {
    let schedulers = "[[answer]]\nplace = \"/sys/block/{disk}/queue/scheduler\"\nselects = true\n";
    let tree = Tree::answering(schedulers);
    let meta = tree.get("/meta.toml");
    let writable = "\"/sys/kernel/mm/**\", \"/sys/block/**\", \"/planish/ethtool/**\",";
    tree.put("/meta.toml", &meta.replace("\"/sys/kernel/mm/**\",", writable));
    for (disk, number) in [("sda", "8:0"), ("sdb", "8:16")] {
        tree.put(&format!("/sys/block/{disk}/dev"), &format!("{number}\n"));
        tree.put(&scheduler(disk), "[mq-deadline] none\n");
        tree.put(&read_ahead(disk), "128\n");
    }
    tree.put("/run/udev/data/b8:0", "E:ID_SERIAL=S1\nE:ID_WWN=0x5000\n");
    tree.put("/etc/udev/udev.conf", "");
    tree.put("/usr/sbin/ethtool", "");
    for (card, address, value) in [("eth0", "52:54:00:00:00:01", "256"), ("eth1", "52:54:00:00:00:02", "512")]
    {
        tree.put(&rings(card), &format!("{value}\n"));
        tree.put(&format!("{}_max", rings(card)), "4096\n");
        let folder = format!("/sys/class/net/{card}");
        tree.put(&format!("{folder}/address"), &format!("{address}\n"));
        tree.put(&format!("{folder}/addr_assign_type"), "0\n");
        tree.put(&format!("{folder}/device/vendor"), "0x8086\n");
        let driver = tree.root().join(format!("sys/class/net/{card}/device/driver"));
        std::os::unix::fs::symlink("../../../../bus/pci/drivers/igb", driver).expect("ours");
    }
    tree.put("/planish/session_nics", "eth9\n");
    tree
}

fn disks() -> Source {
    profile(
        "disks",
        &[("block.scheduler", Want::Text("none".to_owned())), ("block.read_ahead_kb", Want::Int(16))],
    )
}

fn cards() -> Source {
    profile("cards", &[("net.rings_rx", Want::Int(4096))])
}

/// A plan for one device of a kind.
fn only(session: &Session, source: &Source, device: &str) -> Plan {
    let options = PlanOptions { allow_classes: vec![Class::Availability], ..PlanOptions::default() };
    let all = plan(session, source, &options).expect("a plan");
    let of_it = |place: &str| place.contains(&format!("/{device}/"));
    let steps = all.steps.into_iter().filter(|step| of_it(&step.place)).collect();
    let kept = all.skipped.into_iter().filter(|row| of_it(&row.place)).collect();
    Plan::new(all.profile, all.host_id, all.boot_id, steps, kept)
}

fn rules(tree: &Tree) -> Vec<String> {
    tree.get(RULES_FILE).lines().skip(1).map(str::to_owned).collect()
}

fn row(tree: &Tree, place: &str) -> KnobCheck {
    let rows = check(&tree.session(), None).expect("checked").drift.knobs;
    rows.into_iter().find(|row| row.place == place).expect("a row")
}

/// Gives every file of one device to the other: what they are called has swapped.
fn swapped(files: &BTreeMap<String, String>, pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    let other = |path: &String| {
        let found = pairs.iter().find_map(|(a, b)| match (path.starts_with(a), path.starts_with(b)) {
            (true, _) => Some(path.replacen(a, b, 1)),
            (_, true) => Some(path.replacen(b, a, 1)),
            _ => None,
        });
        found.unwrap_or_else(|| path.clone())
    };
    files.iter().map(|(path, text)| (other(path), text.clone())).collect()
}

const CARDS_SWAP: [(&str, &str); 2] =
    [("/planish/ethtool/eth0/", "/planish/ethtool/eth1/"), ("/sys/class/net/eth0/", "/sys/class/net/eth1/")];
const DISKS_SWAP: [(&str, &str); 2] =
    [("/sys/block/sda/queue/", "/sys/block/sdb/queue/"), ("/run/udev/data/b8:0", "/run/udev/data/b8:16")];

/// The names swap while the host runs.
fn swap(tree: &Tree, pairs: &[(&str, &str)]) {
    let now = tree.snapshot();
    let is_meant = |path: &str| pairs.iter().any(|(a, b)| path.starts_with(a) || path.starts_with(b));
    now.keys().filter(|path| is_meant(path) && !path.ends_with('/')).for_each(|path| tree.remove(path));
    let then = swapped(&now, pairs);
    then.iter()
        .filter(|(path, _)| is_meant(path) && !path.ends_with('/'))
        .for_each(|(path, text)| tree.put(path, text));
}

#[test]
fn a_disk_is_set_whenever_it_appears_and_told_by_what_it_is() {
    let tree = host();
    let start = tree.snapshot();
    let session = tree.session();
    let applied = apply(&session, &plan_of(&session, &disks()), &PERSIST).expect("applied");
    assert_eq!((applied.exit, applied.unpersisted.len()), (Exit::Done, 0), "{applied:#?}");
    let rule = |key: &str, file: &str, value: &str| {
        format!(
            "ACTION==\"add|change\", SUBSYSTEM==\"block\", ENV{{DEVTYPE}}==\"disk\", {key}, \
             ATTR{{queue/{file}}}=\"{value}\""
        )
    };
    let (wwn, name) = ("ENV{ID_WWN}==\"0x5000\"", "KERNEL==\"sdb\"");
    let expected = [
        rule(wwn, "scheduler", "none"),
        rule(name, "scheduler", "none"),
        rule(wwn, "read_ahead_kb", "16"),
        rule(name, "read_ahead_kb", "16"),
    ];
    assert_eq!(rules(&tree), expected);
    assert_eq!(tree.get(TMPFILES_FILE), "", "which would come too early");
    let seen = row(&tree, &read_ahead("sda"));
    assert_eq!(seen.persisted, Some(BootValue::new("16", format!("{RULES_FILE}:4"))));
    assert_eq!((seen.state, seen.because), (DriftState::Ok, None));
    let again = apply(&tree.session(), &plan_of(&tree.session(), &disks()), &PERSIST).expect("applied");
    assert_eq!(again.entry, None, "apply twice writes nothing");
    // Another scheduler: its line stays before those that the kernel would forget with it.
    let session = tree.session();
    let other = profile("other", &[("block.scheduler", Want::Text("mq-deadline".to_owned()))]);
    apply(&session, &plan_of(&session, &other), &PERSIST).expect("applied");
    assert_eq!(
        rules(&tree)[..2],
        [rule(wwn, "scheduler", "mq-deadline"), rule(name, "scheduler", "mq-deadline")]
    );
    undo(&tree.session(), Target::Newest, false).expect("undone");
    assert_eq!(rules(&tree).len(), 4);
    assert!(rules(&tree).contains(&expected[0]));
    for _ in 0..2 {
        tree.reboot(&start);
        assert_eq!(
            (tree.get(&scheduler("sda")).trim(), tree.get(&read_ahead("sdb")).trim()),
            ("mq-deadline [none]", "16")
        );
        assert_eq!(check(&tree.session(), None).expect("checked").exit, Exit::Done);
    }
    let undone = undo(&tree.session(), Target::All, false).expect("undone");
    assert_eq!((undone.exit, undone.hints.len()), (Exit::Done, 0), "{undone:#?}");
    assert_eq!(differences(&start, &tree.snapshot()), [""; 0]);
}

#[test]
fn disks_that_udev_cannot_tell_apart_are_told_by_name() {
    let tree = host();
    tree.put("/run/udev/data/b8:16", "E:ID_SERIAL=S2\nE:ID_WWN=0x5000\n");
    let session = tree.session();
    let plan = only(&session, &disks(), "sda");
    apply(&session, &plan, &PERSIST).expect("applied");
    assert!(rules(&tree).iter().all(|line| line.contains("ENV{ID_SERIAL}==\"S1\"")), "{:?}", rules(&tree));
    let paths = host();
    paths.put("/run/udev/data/b8:16", "E:ID_SERIAL=S1\nE:ID_WWN=0x5000\n");
    let session = paths.session();
    apply(&session, &only(&session, &disks(), "sda"), &PERSIST).expect("applied");
    assert!(rules(&paths).iter().all(|line| line.contains("KERNEL==\"sda\"")), "{:?}", rules(&paths));
    let without = host();
    without.remove("/etc/udev/udev.conf");
    for folder in ["etc/udev", "run/udev/data", "run/udev"] {
        let _ = std::fs::remove_file(without.root().join("run/udev/data/b8:0"));
        std::fs::remove_dir(without.root().join(folder)).expect("empty");
    }
    let session = without.session();
    apply(&session, &only(&session, &disks(), "sda"), &PERSIST).expect("applied");
    assert_eq!((rules(&without).len(), without.get(TMPFILES_FILE).lines().count()), (0, 3));
}

#[test]
fn a_kill_at_any_moment_leaves_no_rule_of_a_disk_behind() {
    let scene = |session: &Session| {
        apply(session, &plan_of(session, &disks()), &PERSIST).expect("applied");
    };
    assert_clean(&kill_everywhere(&host, &|_| {}, &scene));
    assert_clean(&kill_everywhere(&host, &scene, &undo_everything));
}

#[test]
fn what_rules_of_others_set_and_may_set_is_told_apart() {
    let tree = host();
    let rule = "ACTION==\"add|change\", SUBSYSTEM==\"block\", KERNEL==\"sd[a-z]\", \
                ATTR{queue/scheduler}=\"mq-deadline\"\n";
    tree.put("/usr/lib/udev/rules.d/95-scheduler.rules", rule);
    tree.put(
        "/etc/udev/rules.d/99-own.rules",
        "KERNEL==\"sda\", PROGRAM==\"/bin/x\", ATTR{queue/read_ahead_kb}=\"8\"\n",
    );
    let session = tree.session();
    let applied = apply(&session, &plan_of(&session, &disks()), &PERSIST).expect("applied");
    assert_eq!(applied.exit, Exit::Findings, "another rule has the last word");
    let lost = row(&tree, &scheduler("sda"));
    assert_eq!(lost.state, DriftState::LostAtBoot);
    let source = "/usr/lib/udev/rules.d/95-scheduler.rules:1";
    assert_eq!(lost.next_boot, Some(BootValue::new("mq-deadline", source)));
    assert_eq!(lost.because.as_deref(), Some(format!("{source} will set mq-deadline").as_str()));
    let may = row(&tree, &read_ahead("sda"));
    assert_eq!(may.state, DriftState::Ok, "what may be is no finding");
    let told = "may be set to 8 at a boot by /etc/udev/rules.d/99-own.rules:1";
    assert_eq!(may.because.as_deref(), Some(told));
    assert_eq!(row(&tree, &read_ahead("sdb")).because, None);
}

#[test]
fn a_line_of_tmpfiles_beside_a_rule_may_come_behind_it() {
    let tree = host();
    tree.put("/etc/tmpfiles.d/50-own.conf", &format!("w {} - - - - 64\n", read_ahead("sda")));
    let session = tree.session();
    apply(&session, &plan_of(&session, &disks()), &PERSIST).expect("applied");
    let seen = row(&tree, &read_ahead("sda"));
    assert_eq!(seen.next_boot.map(|next| next.value).as_deref(), Some("16"));
    assert_eq!(seen.because.as_deref(), Some("may be set to 64 at a boot by /etc/tmpfiles.d/50-own.conf:1"));
}

#[test]
fn a_card_is_put_back_by_its_address_whatever_it_is_called() {
    for reboots in [0, 1, 2] {
        let tree = host();
        let start = tree.snapshot();
        let session = tree.session();
        apply(&session, &only(&session, &cards(), "eth0"), &PERSIST).expect("applied");
        let then = swapped(&start, &CARDS_SWAP);
        match reboots {
            0 => swap(&tree, &CARDS_SWAP),
            _ => (0..reboots).for_each(|_| tree.reboot(&then)),
        }
        let values =
            || (tree.get(&rings("eth0")).trim().to_owned(), tree.get(&rings("eth1")).trim().to_owned());
        assert_eq!(values(), ("512".to_owned(), "4096".to_owned()), "{reboots}");
        let checked = check(&tree.session(), None).expect("checked");
        assert_eq!(checked.exit, Exit::Done, "{reboots}: {:#?}", checked.drift.knobs);
        let undone = undo(&tree.session(), Target::All, false).expect("undone");
        assert_eq!((undone.exit, undone.hints.len()), (Exit::Done, 0), "{reboots}: {undone:#?}");
        assert_eq!(values(), ("512".to_owned(), "256".to_owned()), "{reboots}");
        assert_eq!(differences(&then, &tree.snapshot()), [""; 0], "{reboots}");
        assert!(tree.entries().iter().all(|entry| !entry.is_open()));
    }
}

#[test]
fn another_card_of_that_name_is_never_written() {
    let tree = host();
    let session = tree.session();
    apply(&session, &only(&session, &cards(), "eth0"), &ApplyOptions::default()).expect("applied");
    // It was taken out, and another one with the same value came in its place.
    tree.put("/sys/class/net/eth0/address", "52:54:00:00:00:09\n");
    let undone = undo(&tree.session(), Target::All, false).expect("looked at");
    assert_eq!((undone.exit, tree.get(&rings("eth0")).trim()), (Exit::Findings, "4096"), "{undone:#?}");
    assert_eq!(undone.entries[0].1[0].outcome, OutcomeKind::Vanished);
    assert_eq!(undone.entries[0].1[0].place, rings("eth0(52:54:00:00:00:01)"));
    assert!(tree.entries()[0].is_open(), "it may come back");
    tree.put("/sys/class/net/eth0/address", "52:54:00:00:00:01\n");
    let undone = undo(&tree.session(), Target::All, false).expect("undone");
    assert_eq!((undone.exit, tree.get(&rings("eth0")).trim()), (Exit::Done, "256"), "{undone:#?}");
}

#[test]
fn disks_that_swapped_get_back_their_own() {
    for reboots in [0, 1] {
        let tree = host();
        tree.put("/run/udev/data/b8:16", "E:ID_SERIAL=S2\nE:ID_WWN=0x6000\n");
        tree.put(&read_ahead("sdb"), "256\n");
        let start = tree.snapshot();
        let session = tree.session();
        apply(&session, &only(&session, &disks(), "sda"), &PERSIST).expect("applied");
        let then = swapped(&start, &DISKS_SWAP);
        match reboots {
            0 => swap(&tree, &DISKS_SWAP),
            _ => {
                for number in ["8:0", "8:16"] {
                    let data = format!("/run/udev/data/b{number}");
                    tree.put(&data, &then[&data]);
                }
                tree.reboot(&then);
            }
        }
        assert_eq!((tree.get(&read_ahead("sda")).trim(), tree.get(&read_ahead("sdb")).trim()), ("256", "16"));
        let undone = undo(&tree.session(), Target::All, false).expect("undone");
        assert_eq!(undone.exit, Exit::Done, "{reboots}: {undone:#?}");
        assert_eq!(differences(&then, &tree.snapshot()), [""; 0], "{reboots}");
    }
}
