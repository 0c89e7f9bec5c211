//! Rules of udev: those of others as a source of the next boot, ours for disks, and devices whose names changed.

use std::collections::BTreeMap;

use planish_model::{BootValue, Class, DriftState, Exit, KnobCheck, OutcomeKind, Plan, Want};
use planish_pipeline::{ApplyOptions, PlanOptions, Session, Source, Target, apply, check, plan, undo};

use crate::crash::{assert_clean, kill_everywhere, undo_everything};
use crate::tree::*;

const RULES_FILE: &str = "/etc/udev/rules.d/90-planish.rules";

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
pub fn host() -> Tree {
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

pub fn disks() -> Source {
    profile(
        "disks",
        &[("block.scheduler", Want::Text("none".to_owned())), ("block.read_ahead_kb", Want::Int(16))],
    )
}

pub fn cards() -> Source {
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
    let hint =
        "block.read_ahead_kb, block.scheduler: back to what was there before entry 1, in an earlier boot";
    assert_eq!((undone.exit, undone.hints.as_slice()), (Exit::Done, &[hint.to_owned()][..]), "{undone:#?}");
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
        // That the value is of an earlier boot.
        let hint_count = usize::from(reboots > 0);
        assert_eq!((undone.exit, undone.hints.len()), (Exit::Done, hint_count), "{reboots}: {undone:#?}");
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

/// Plugs devices into slots of PCI: their names go with them.
fn plugged(tree: &Tree, folder: &str, slots: [(&str, &str); 2]) {
    for (name, slot) in slots {
        let at = tree.root().join(format!("sys/devices/pci0000:00/{slot}"));
        std::fs::create_dir_all(&at).expect("ours");
        let device = tree.root().join(format!("sys/{folder}/{name}/device"));
        if device.is_symlink() {
            std::fs::remove_file(&device).expect("ours");
        } else if device.is_dir() {
            std::fs::remove_dir_all(&device).expect("ours");
        }
        let up = "../".repeat(folder.split('/').count() + 1);
        std::os::unix::fs::symlink(format!("{up}devices/pci0000:00/{slot}"), &device).expect("ours");
    }
}

#[test]
fn cards_with_one_address_are_told_by_their_slots() {
    let tree = host();
    let nets = |slots| plugged(&tree, "class/net", slots);
    nets([("eth0", "0000:04:00.0"), ("eth1", "0000:98:00.0")]);
    for card in ["eth0", "eth1"] {
        // A card of a virtual machine has the address of the real one behind it.
        tree.put(&format!("/sys/class/net/{card}/address"), "52:54:00:00:00:01\n");
        tree.put(
            &format!(
                "/sys/devices/pci0000:00/{}/vendor",
                if card == "eth0" { "0000:04:00.0" } else { "0000:98:00.0" }
            ),
            "0x8086\n",
        );
    }
    let session = tree.session();
    let options = PlanOptions { allow_classes: vec![Class::Availability], ..PlanOptions::default() };
    let both = plan(&session, &cards(), &options).expect("a plan");
    assert_eq!(both.steps.len(), 2, "{both:#?}");
    apply(&session, &both, &ApplyOptions::default()).expect("applied");
    nets([("eth0", "0000:98:00.0"), ("eth1", "0000:04:00.0")]);
    let undone = undo(&tree.session(), Target::All, false).expect("undone");
    assert_eq!(undone.exit, Exit::Done, "{undone:#?}");
    assert_eq!((tree.get(&rings("eth0")).trim(), tree.get(&rings("eth1")).trim()), ("512", "256"));
}

#[test]
fn two_paths_to_one_disk_are_told_by_their_slots_or_not_written() {
    for slots in [["0000:81:00.0", "0000:82:00.0"], ["0000:82:00.0", "0000:83:00.0"]] {
        let tree = host();
        let plug = |a, b| plugged(&tree, "block", [("sda", a), ("sdb", b)]);
        plug("0000:81:00.0", "0000:82:00.0");
        tree.put("/run/udev/data/b8:16", "E:ID_SERIAL=S1\nE:ID_WWN=0x5000\n");
        for disk in ["sda", "sdb"] {
            tree.put(&format!("/sys/block/{disk}/wwid"), "naa.5000\n");
        }
        tree.put(&read_ahead("sdb"), "256\n");
        let session = tree.session();
        let source = profile("disks", &[("block.read_ahead_kb", Want::Int(16))]);
        apply(&session, &plan_of(&session, &source), &ApplyOptions::default()).expect("applied");
        // The names swap; or the first disk went, and the second has its name.
        let swapped = slots[0] == "0000:81:00.0";
        if swapped {
            plug("0000:82:00.0", "0000:81:00.0")
        } else {
            plug(slots[0], slots[1])
        }
        let undone = undo(&tree.session(), Target::All, false).expect("looked at");
        let values = (tree.get(&read_ahead("sda")), tree.get(&read_ahead("sdb")));
        match swapped {
            true => assert_eq!((undone.exit, values), (Exit::Done, ("256\n".to_owned(), "128\n".to_owned()))),
            false => {
                assert_eq!((undone.exit, values), (Exit::Findings, ("256\n".to_owned(), "16\n".to_owned())))
            }
        }
    }
}

#[test]
fn a_disk_of_which_udev_tells_more_since_is_still_itself() {
    let tree = host();
    tree.put("/sys/block/sda/serial", "S1\n");
    let session = tree.session();
    apply(&session, &only(&session, &disks(), "sda"), &ApplyOptions::default()).expect("applied");
    tree.put("/run/udev/data/b8:0", "E:ID_SERIAL=S1\nE:ID_WWN=0x5000\nE:ID_WWN_WITH_EXTENSION=0x50001\n");
    let undone = undo(&tree.session(), Target::All, false).expect("undone");
    assert_eq!((undone.exit, tree.get(&read_ahead("sda")).trim()), (Exit::Done, "128"), "{undone:#?}");
}

#[test]
fn the_cache_of_a_scsi_disk_follows_its_disk_and_gets_no_line() {
    let tree = host();
    let meta = tree.get("/meta.toml");
    tree.put(
        "/meta.toml",
        &meta.replace("\"/sys/block/**\",", "\"/sys/block/**\", \"/sys/class/scsi_disk/**\","),
    );
    tree.put("/run/udev/data/b8:16", "E:ID_SERIAL=S2\nE:ID_WWN=0x6000\n");
    let cache = |number: &str| format!("/sys/class/scsi_disk/{number}/cache_type");
    for (number, disk) in [("0:0:0:0", "sda"), ("1:0:0:0", "sdb")] {
        tree.put(&cache(number), "write back\n");
        tree.put(&format!("/sys/class/scsi_disk/{number}/device/block/{disk}/dev"), "8:0\n");
    }
    let session = tree.session();
    let source = profile("cache", &[("scsi.cache_type", Want::Text("write through".to_owned()))]);
    let options = PlanOptions { allow_classes: vec![Class::Durability], ..PlanOptions::default() };
    let mut first = plan(&session, &source, &options).expect("a plan");
    first.steps.retain(|step| step.place == cache("0:0:0:0"));
    let first = Plan::new(first.profile, first.host_id, first.boot_id, first.steps, first.skipped);
    let applied = apply(&session, &first, &PERSIST).expect("applied");
    assert_eq!(applied.unpersisted.len(), 1, "{applied:#?}");
    assert!(applied.unpersisted[0].reason.contains("given anew at each boot"), "{applied:#?}");
    assert!(!tree.get(TMPFILES_FILE).contains("scsi_disk"));
    // Another order of the controllers: the numbers are those of the other disk.
    for (number, before, disk) in [("0:0:0:0", "sda", "sdb"), ("1:0:0:0", "sdb", "sda")] {
        let block = tree.root().join(format!("sys/class/scsi_disk/{number}/device/block"));
        std::fs::rename(block.join(before), block.join(disk)).expect("ours");
        tree.put(&cache(number), "write through\n");
    }
    let undone = undo(&tree.session(), Target::All, false).expect("undone");
    assert_eq!(undone.exit, Exit::Done, "{undone:#?}");
    assert_eq!(
        (tree.get(&cache("0:0:0:0")), tree.get(&cache("1:0:0:0"))),
        ("write through\n".to_owned(), "write back\n".to_owned())
    );
}

/// A line for the same place in the other kind of file, which another program reads in no order with ours; and a rule
/// without a condition, which every device runs, whatever the profile asks of.
#[test]
fn what_sets_a_place_beside_our_line_is_told_at_the_apply_already() {
    let beside = [
        (
            "/etc/tmpfiles.d/x.conf",
            "w /proc/sys/vm/swappiness - - - - 9\n",
            "/etc/tmpfiles.d/x.conf:1 will set 9",
        ),
        (
            "/etc/udev/rules.d/99-x.rules",
            "RUN+=\"/sbin/sysctl -w vm.swappiness=9\"\n",
            "/etc/udev/rules.d/99-x.rules:1 will set 9",
        ),
    ];
    let wanted = profile("s", &[("vm.swappiness", Want::Int(5))]);
    for (path, text, why) in beside {
        let tree = Tree::copy_of("metal-2s");
        tree.remove("/etc/sysctl.d/99-local.conf");
        tree.put(path, text);
        let session = tree.session();
        let options = ApplyOptions { persist: true, ..ApplyOptions::default() };
        let applied = apply(&session, &plan_of(&session, &wanted), &options).expect("applied");
        assert_eq!(applied.exit, Exit::Findings, "{path}: {:?}", applied.hints);
        for source in [Some(&wanted), None] {
            let checked = check(&tree.session(), source).expect("checked");
            let row =
                checked.drift.knobs.iter().find(|row| row.knob.as_str() == "vm.swappiness").expect("a row");
            let because = row.because.as_deref().unwrap_or_default();
            assert_eq!(
                (row.state, checked.exit),
                (DriftState::LostAtBoot, Exit::Findings),
                "{path}: {because}"
            );
            assert!(because.starts_with(why), "{because}");
            assert!(
                because.contains("may be set to 5 at a boot by /etc/sysctl.d/90-planish.conf"),
                "{because}"
            );
        }
        tree.put(path, &text.replace('9', "5"));
        assert_eq!(
            check(&tree.session(), None).expect("checked").exit,
            Exit::Done,
            "{path}: it loses nothing"
        );
    }
}
