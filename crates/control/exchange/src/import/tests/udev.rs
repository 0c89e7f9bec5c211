//! What rules of udev come to.

use super::*;

#[test]
fn rules_of_udev_set_what_they_ask_by_name_and_are_refused_where_they_ask_more() {
    let text = include_str!("../../../../../../fuzz/seeds/import/udev");
    assert_eq!(ImportFormat::guess(text), ImportFormat::Udev);
    let imported = read(text, ImportFormat::Udev);
    let accepted: Vec<&str> =
        imported.lines.iter().filter(|line| line.is_accepted()).map(|line| line.text.as_str()).collect();
    assert_eq!(
        accepted,
        [
            "/sys/block/nvme*/queue/scheduler = none",
            "/sys/block/sd*/queue/read_ahead_kb = 4096",
            "/sys/block/vd*/queue/read_ahead_kb = 4096",
            "/sys/block/sd*/queue/nr_requests = 256",
            "/sys/block/vd*/queue/nr_requests = 256",
            "ethtool -G rx 4096",
            "/sys/block/sdb/queue/scheduler = none",
            "/proc/sys/vm/dirty_ratio = 20",
        ]
    );
    let refused: Vec<String> = imported
        .lines
        .iter()
        .filter(|line| !line.is_accepted())
        .map(|line| format!("{}: {}", line.line, line.reason.as_deref().unwrap_or_default()))
        .collect();
    assert_eq!(
        refused,
        [
            "5: sets nothing; what it may jump over is refused",
            "6: line 5 may have udev jump over it",
            "9: set where a device comes up of SUBSYSTEM==\"module\", and not of every host: a profile asks for none",
        ]
    );
    for (rule, why) in [
        ("KERNEL==\"sda\", ATTR{queue/scheduler}=\"none\"", "of which kind of device"),
        (
            "SUBSYSTEM==\"block\", ATTR{queue/rotational}==\"0\", ATTR{queue/scheduler}=\"none\"",
            "holds only where",
        ),
        ("SUBSYSTEM==\"block\", KERNEL!=\"sda\", ATTR{queue/scheduler}=\"none\"", "holds only where"),
        ("SUBSYSTEM==\"net\", ATTR{queues/rx-*/rps_cpus}=\"3\"", "udev sets one"),
        ("SUBSYSTEM==\"block\", ATTR{queue/scheduler}=\"$env{X}\"", "fills in"),
        ("SUBSYSTEM==\"block\", RUN+=\"/usr/local/bin/tune %k\"", "starts a program"),
        (
            "ACTION==\"remove\", SUBSYSTEM==\"block\", ATTR{queue/scheduler}=\"none\"",
            "of no device that is there",
        ),
        ("ACTION==\"remove\", RUN+=\"/sbin/sysctl -w vm.swappiness=1\"", "of no device that is there"),
        ("ACTION==\"unbind|offline\", SYSCTL{vm.swappiness}=\"1\"", "of no device that is there"),
        ("SUBSYSTEM==\"net\", NAME=\"lan0\"", "nothing of the kernel"),
    ] {
        let imported = read(rule, ImportFormat::Udev);
        let [line] = imported.lines.as_slice() else { panic!("{rule}: {:?}", imported.lines) };
        assert!(
            !line.is_accepted() && line.reason.as_deref().is_some_and(|reason| reason.contains(why)),
            "{line:?}"
        );
    }
}

#[test]
fn rules_of_udev_for_devices_that_are_there_are_read_whatever_else_they_are_for() {
    for action in ["==\"add|remove\"", "!=\"remove\"", "==\"change\"", "==\"*\""] {
        let rule = format!("ACTION{action}, SYSCTL{{vm.swappiness}}=\"1\"\n");
        assert_eq!(told(&read(&rule, ImportFormat::Udev)), ["1 vm.swappiness"], "{rule}");
    }
}

/// What is no setting of the device is one of the host, which may have no such device.
#[test]
fn what_a_rule_sets_of_the_host_where_some_device_comes_up_is_refused() {
    const BLOCK: &str = "SUBSYSTEM==\"block\", KERNEL==\"sde\"";
    let (sysctl, run) = ("SYSCTL{vm.swappiness}=\"3\"", "RUN+=\"/sbin/sysctl -w vm.swappiness=3\"");
    let write = "RUN+=\"/bin/sh -c 'echo 3 > /proc/sys/vm/swappiness'\"";
    let fixed = "RUN+=\"/bin/sh -c 'echo none > /sys/block/sdf/queue/scheduler'\"";
    for (asked, set, is_taken) in [
        (BLOCK, sysctl, false),
        (BLOCK, run, false),
        (BLOCK, write, false),
        (BLOCK, fixed, false),
        ("SUBSYSTEM==\"net\", ACTION==\"add\", KERNEL==\"ib0\"", "SYSCTL{net/core/busy_poll}=\"50\"", false),
        ("SUBSYSTEM==\"infiniband\"", sysctl, false),
        ("KERNEL==\"sd*|vd*\"", sysctl, false),
        ("SUBSYSTEM==\"block\", KERNEL==\"*\"", sysctl, true),
        ("SUBSYSTEM==\"net\", ACTION==\"add\"", write, true),
        ("ACTION==\"add\"", run, true),
        (BLOCK, "RUN+=\"/bin/sh -c 'echo none > /sys/block/%k/queue/scheduler'\"", true),
        (BLOCK, "ATTR{queue/scheduler}=\"none\"", true),
    ] {
        let imported = read(&format!("{asked}, {set}\n"), ImportFormat::Udev);
        let rows = told(&imported);
        assert_eq!(imported.profile.want.len(), usize::from(is_taken), "{asked}, {set}: {rows:?}");
        assert_eq!(rows.len(), 1, "{rows:?}");
        assert!(is_taken || rows[0].contains("and not of every host"), "{rows:?}");
    }
}
