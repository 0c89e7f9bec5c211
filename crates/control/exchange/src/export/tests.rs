//! What is written for other tools.

use planish_model::{BootFiles, BootLoader, Catalogue, Generator, KnobId};

use super::*;

fn item(id: &str, only: Option<&str>, value: &str) -> Item {
    let catalogue = Catalogue::embedded().expect("sound");
    let mut items = Item::meant(catalogue.knob(&KnobId::new(id)).expect("a row"), only, value);
    assert_eq!(items.len(), 1, "{id} {only:?}");
    items.remove(0)
}

fn items() -> Vec<Item> {
    vec![
        item("vm.swappiness", None, "1"),
        item("net.ipv4.tcp_rmem", None, "4096 131072 16777216"),
        item("block.scheduler", Some("nvme*"), "none"),
        item("cpu.governor", None, "performance"),
        item("boot.hugepages.1g", None, "4"),
        item("boot.nosmt", None, "1"),
    ]
}

fn text_of(format: ExportFormat, items: &[Item]) -> String {
    let files = export(format, "mine", "A test.", items).expect("plain values");
    files.iter().map(|file| format!("== {}\n{}", file.path, file.text)).collect()
}

fn text(format: ExportFormat) -> String {
    let files = export(format, "mine", "A $(test) of\nmine.", &items()).expect("plain values");
    files.iter().map(|file| format!("== {}\n{}", file.path, file.text)).collect()
}

#[test]
fn a_script_sets_one_value_a_line() {
    let text = text(ExportFormat::Script);
    for line in [
        "== mine.sh",
        "# mine: A (test) of mine.",
        "[ ! -e /proc/sys/vm/swappiness ] || echo 1 > /proc/sys/vm/swappiness || failed=1",
        "[ ! -e /proc/sys/net/ipv4/tcp_rmem ] || echo '4096 131072 16777216' > /proc/sys/net/ipv4/tcp_rmem || failed=1",
        "for place in /sys/block/nvme*/queue/scheduler; do [ ! -e \"$place\" ] || echo none > \"$place\" \
         || failed=1; done",
        "#   hugepagesz=1G hugepages=4 nosmt",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
}

#[test]
fn files_of_systemd_come_with_a_unit() {
    let text = text(ExportFormat::Sysctl);
    for line in [
        "== /etc/sysctl.d/90-mine.conf",
        "net.ipv4.tcp_rmem = 4096 131072 16777216",
        "== /etc/tmpfiles.d/90-mine.conf",
        "w /sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor - - - - performance",
        "ExecStart=/usr/bin/systemd-tmpfiles --create /etc/tmpfiles.d/90-mine.conf",
        "== /etc/udev/rules.d/90-mine.rules",
        "ACTION==\"add|change\", SUBSYSTEM==\"block\", ENV{DEVTYPE}==\"disk\", KERNEL==\"nvme*\", \
         ATTR{queue/scheduler}=\"none\"",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
}

#[test]
fn the_other_formats_hold_the_same_values() {
    for (format, lines) in [
        (
            ExportFormat::Tuned,
            ["[sysfs]", "cmdline_planish = hugepagesz=1G hugepages=4 nosmt", "vm.swappiness = 1"],
        ),
        (ExportFormat::Ansible, ["    name: vm.swappiness", "    value: \"1\"", "    sysctl_set: true"]),
        (ExportFormat::KernelArgs, ["hugepagesz=1G hugepages=4 nosmt", "== kernel-args", "== kernel-args"]),
        (ExportFormat::NodeTuning, ["kind: Tuned", "      [sysctl]", "      vm.swappiness = 1"]),
    ] {
        let text = text(format);
        for line in lines {
            assert!(text.lines().any(|found| found == line), "{format:?} {line}\n{text}");
        }
    }
}

/// What a format does not carry is told with a format that does, and what nothing is told of is in its files.
#[test]
fn what_a_format_does_not_carry_is_told_with_one_that_does() {
    let mut items = items();
    items.push(item("resctrl.default", None, "L3:0=fff"));
    for format in ExportFormat::ALL {
        let (carried, odd): (Vec<_>, Vec<_>) =
            items.iter().cloned().partition(|item| beyond(format, item).is_none());
        for item in &odd {
            let told = beyond(format, item).expect("it is odd");
            let others = ExportFormat::ALL.into_iter().filter(|other| told.contains(other.name()));
            let others: Vec<_> = others.filter(|other| *other != format).collect();
            assert!(!others.is_empty(), "{format:?} {item:?}: {told}");
            assert!(others.iter().all(|other| beyond(*other, item).is_none()), "{format:?}: {told}");
        }
        let text = |items: &[Item]| export(format, "mine", "A test.", items).expect("plain values");
        for item in &carried {
            let others: Vec<Item> = carried.iter().filter(|other| *other != item).cloned().collect();
            assert_ne!(text(&carried), text(&others), "{format:?} says nothing of {item:?}");
        }
    }
    let taken_away = item("boot.nosmt", None, "0");
    assert!(ExportFormat::ALL.into_iter().all(|format| beyond(format, &taken_away).is_some()));
    assert_eq!(export(ExportFormat::KernelArgs, "mine", "A test.", &[]), Ok(Vec::new()));
}

/// grubby is in no distribution whose GRUB has drop-ins: the task failed, and the play with it.
#[test]
fn tasks_give_arguments_by_what_the_loader_of_the_host_has() {
    let items = [item("boot.nosmt", None, "1"), item("vm.swappiness", None, "1")];
    let text = |by: ArgumentsBy| {
        let files = export_by(ExportFormat::Ansible, &by, "mine", "A test.", &items).expect("plain values");
        files[0].text.clone()
    };
    assert!(text(ArgumentsBy::Grubby).contains("grubby --update-kernel=ALL --args=\"nosmt\""));
    let drop_in = text(ArgumentsBy::DropIn(Generator::UpdateGrub));
    let wanted =
        ["dest: /etc/default/grub.d/90-mine.cfg", "command: update-grub\n  when: planish_boot is changed"];
    assert!(wanted.iter().all(|wanted| drop_in.contains(wanted)) && !drop_in.contains("grubby"), "{drop_in}");
    let catalogue = Catalogue::embedded().expect("sound");
    let back = crate::import(&catalogue, "mine", &drop_in, crate::ImportFormat::Ansible);
    assert_eq!(back.profile.want.len(), 2, "{:?}", back.lines);
    assert!(back.lines.iter().all(crate::ImportedLine::is_accepted), "{:?}", back.lines);
    let left_out = |item: &Item| ArgumentsBy::Nothing.beyond(ExportFormat::Ansible, item).is_some();
    assert_eq!([left_out(&items[0]), left_out(&items[1])], [true, false]);

    let files = |name: &str, own: Option<&str>, generator| {
        let mut files = BootFiles::of_entries(name, Vec::new(), false, None);
        (files.own, files.generator) = (own.map(str::to_owned), generator);
        ArgumentsBy::of(&BootLoader::Known(files))
    };
    let own = Some("/etc/default/grub.d/90-planish.cfg");
    let made = Some(Generator::UpdateGrub);
    assert_eq!(files("GRUB", own, made), ArgumentsBy::DropIn(Generator::UpdateGrub));
    assert_eq!(files("GRUB with entries", None, None), ArgumentsBy::Grubby);
    assert_eq!(files("GRUB", None, Some(Generator::Grub2Mkconfig)), ArgumentsBy::Nothing);
    assert_eq!(files("systemd-boot", None, None), ArgumentsBy::Nothing);
    assert_eq!(ArgumentsBy::of(&BootLoader::default()), ArgumentsBy::Nothing);
}

/// Root was told to export as root.
#[test]
fn what_leaves_arguments_out_is_what_was_seen_of_the_loader() {
    let (boot, other) = (item("boot.nosmt", None, "1"), item("vm.swappiness", None, "1"));
    let (reason, cure) = ("its menu is not here".to_owned(), "mount /boot".to_owned());
    let by = ArgumentsBy::of(&BootLoader::Unknown { reason, cure });
    let why = by.beyond(ExportFormat::Ansible, &boot).expect("nobody knows how");
    assert!(why.contains(": its menu is not here; ") && why.ends_with("or mount /boot"), "{why}");
    assert!(!why.contains("root"), "{why}");
    let formats = ExportFormat::ALL.into_iter().filter(|format| *format != ExportFormat::Ansible);
    assert!(formats.into_iter().all(|format| by.beyond(format, &boot).is_none()));
    assert_eq!(by.beyond(ExportFormat::Ansible, &other), None);
}

#[test]
fn what_a_shell_would_take_apart_is_refused() {
    for value in ["$(reboot)", "a'b", "a`b`", "a\"b", "a\\b", "a#b", "50%"] {
        let odd = vec![Item { value: value.to_owned(), ..item("net.core.default_qdisc", None, "fq") }];
        let refused = export(ExportFormat::Script, "mine", "s", &odd);
        assert!(matches!(refused, Err(ExchangeError::Value { .. })), "{value}: {refused:?}");
    }
    for only in ["sd$(reboot)", "sd[!ab]", "sd a", "sd;a"] {
        let odd = vec![item("block.scheduler", Some(only), "none")];
        let refused = export(ExportFormat::Script, "mine", "s", &odd);
        assert!(matches!(refused, Err(ExchangeError::Place { .. })), "{only}: {refused:?}");
    }
    let named = export(ExportFormat::Tuned, "../x", "s", &[]);
    assert!(matches!(named, Err(ExchangeError::Name(_))), "{named:?}");
}

/// Each was left out by every format, with a reason that was none, or ended the whole export.
#[test]
fn brackets_go_out_as_what_they_mean() {
    let catalogue = Catalogue::embedded().expect("sound");
    let meant = |id: &str, only: &str, value: &str| {
        Item::meant(catalogue.knob(&KnobId::new(id)).expect("a row"), Some(only), value)
    };
    for (id, only, value, lines) in [
        ("cpu.resume_latency_us", "cpu[0-1]", "1", &["/cpu/cpu0/power/", "/cpu/cpu1/power/"][..]),
        ("block.scheduler", "sd[ab]", "none", &["/sys/block/sda/queue/", "/sys/block/sdb/queue/"]),
        ("mount.atime", "/data/pg[12]", "noatime", &["mountpoint -q /data/pg1 ", "mountpoint -q /data/pg2 "]),
    ] {
        let items = meant(id, only, value);
        let text = text_of(ExportFormat::Script, &items).replace('\'', "");
        assert_eq!(items.len(), lines.len(), "{text}");
        assert!(lines.iter().all(|line| text.contains(line)), "{lines:?}\n{text}");
    }
    let odd = meant("block.scheduler", "sd[!a]", "none");
    let refused = export(ExportFormat::Script, "mine", "A test.", &odd);
    assert!(matches!(refused, Err(ExchangeError::Place { .. })), "{refused:?}");
    let odd = meant("mount.atime", "/data/pg[!1]", "noatime");
    assert!(odd.iter().all(|item| beyond(ExportFormat::Script, item).is_some()), "{odd:?}");
}

#[test]
fn a_format_without_an_order_takes_no_place_twice() {
    let twice =
        vec![item("block.scheduler", None, "mq-deadline"), item("block.scheduler", Some("nvme*"), "none")];
    assert!(export(ExportFormat::Script, "mine", "s", &twice).is_ok());
    for format in [ExportFormat::Tuned, ExportFormat::Ansible, ExportFormat::NodeTuning] {
        let refused = export(format, "mine", "s", &twice).expect_err("in which order?");
        assert!(matches!(refused, ExchangeError::Overlap { .. }));
    }
    let of_cards = [item("net.tx_queue_len", None, "1000"), item("net.tx_queue_len", Some("eno1"), "2000")];
    let refused = export(ExportFormat::Sysctl, "mine", "s", &of_cards).expect_err("in which order?");
    assert!(matches!(refused, ExchangeError::Overlap { .. }));
    // Rules have one, and nothing else may set those disks in another.
    let text =
        text_of(ExportFormat::Sysctl, &[twice, vec![item("cpu.governor", None, "performance")]].concat());
    assert!(!text.contains("w /sys/block/") && text.contains("w /sys/devices/system/cpu/"), "{text}");
    let rules = text.lines().filter(|line| line.contains("ATTR{queue/scheduler}"));
    let values: Vec<&str> = rules.filter_map(|line| line.rsplit('=').next()).collect();
    assert_eq!(values, ["\"mq-deadline\"", "\"none\""]);
    let apart = vec![
        item("block.scheduler", Some("sd*"), "mq-deadline"),
        item("block.scheduler", Some("nvme*"), "none"),
    ];
    assert!(export(ExportFormat::Sysctl, "mine", "s", &apart).is_ok());
}

#[test]
fn options_of_mounts_are_remounts_where_commands_are_run() {
    let items = [
        item("mount.atime", Some("/data/a b"), "noatime"),
        item("tmpfs.size", Some("/dev/shm"), "50%"),
        item("tmpfs.huge", Some("dev-shm"), "advise"),
    ];
    let files = export(ExportFormat::Script, "mine", "A test.", &items).expect("plain values");
    let lines: Vec<&str> = files[0].text.lines().filter(|line| line.contains("remount")).collect();
    assert_eq!(
        lines,
        [
            "! mountpoint -q '/data/a b' || mount --options-source mtab -o remount,noatime '/data/a b' || failed=1",
            "! mountpoint -q /dev/shm || mount --options-source mtab -o remount,size=50% /dev/shm || failed=1",
            "! mountpoint -q /dev/shm || mount --options-source mtab -o remount,huge=advise /dev/shm || failed=1",
        ]
    );
    let unit = text_of(ExportFormat::Sysctl, &items);
    let start = "ExecStart=/bin/sh -c \"failed=0; ! mountpoint -q /dev/shm || mount --options-source mtab -o \
                 remount,size=50%% /dev/shm || failed=1; exit $$failed\"";
    assert!(unit.lines().any(|line| line == start), "{unit}");
    let odd = item("mount.atime", Some("/data/it's"), "noatime");
    let runs = [ExportFormat::Script, ExportFormat::Sysctl, ExportFormat::Ansible];
    for format in ExportFormat::ALL {
        assert_eq!(beyond(format, &items[0]).is_none(), runs.contains(&format), "{}", format.name());
        assert!(beyond(format, &odd).is_some_and(|why| why.contains("its path")), "{}", format.name());
        for only in [None, Some("/data/*"), Some("data*")] {
            let many = item("mount.atime", only, "noatime");
            assert!(beyond(format, &many).is_some_and(|why| why.contains("by its path")), "{only:?}");
        }
    }
}

#[test]
fn settings_of_cards_are_the_words_of_ethtool() {
    let items = [
        item("net.rings_rx", None, "4096"),
        item("net.feature_lro", Some("ens*"), "0"),
        item("net.feature_gro", Some("ens*"), "1"),
    ];
    let text = |format| text_of(format, &items);
    let script = "for nic in /sys/class/net/*; do [ ! -e \"$nic/device\" ] || ethtool -G \"${nic##*/}\" rx 4096 || \
                  failed=1; done";
    assert!(text(ExportFormat::Script).lines().any(|line| line == script));
    assert!(text(ExportFormat::Ansible).lines().any(|line| line.trim() == script));
    let tuned = text(ExportFormat::Tuned);
    // The first section that means a card takes it from the others.
    let sections = "\n[net_1]\ntype = net\ndevices = ens*\nfeatures = lro off gro on\nring = rx 4096\n\n\
                    [net]\nring = rx 4096\n";
    assert!(tuned.ends_with(sections), "{tuned}");
    let crossing = [item("net.rings_rx", Some("*s0"), "4096"), item("net.feature_lro", Some("ens*"), "0")];
    let refused = export(ExportFormat::Tuned, "mine", "s", &crossing);
    assert!(matches!(refused, Err(ExchangeError::Overlap { .. })), "{refused:?}");
    assert!(export(ExportFormat::Script, "mine", "s", &crossing).is_ok());
    let unit = text(ExportFormat::Sysctl);
    let start = "ExecStart=/bin/sh -c \"failed=0; for nic in /sys/class/net/*; do [ ! -e \\\"$$nic/device\\\" ] || \
                 ethtool -G \\\"$${nic##*/}\\\" rx 4096 || failed=1; done; exit $$failed\"";
    assert!(unit.lines().any(|line| line == start) && !unit.contains("tmpfiles.d"), "{unit}");
}

#[test]
fn settings_of_units_are_one_drop_in_for_each_unit() {
    let items = [
        item("unit.nofile", Some("mongod"), "64000:524288"),
        item("unit.nproc", Some("mongod"), "64000"),
        item("unit.nofile", Some("a@1"), "infinity"),
        item("unit.allowed_cpus", Some("system.slice"), "0-3"),
    ];
    let path = "/etc/systemd/system/mongod.service.d/zz-export-mine.conf";
    let text = format!(
        "# {path}\n# Of the profile mine, by planish export.\n[Service]\nLimitNOFILE = 64000:524288\n\
         LimitNPROC = 64000\n"
    );
    let files = export(ExportFormat::Sysctl, "mine", "A test.", &items).expect("plain values");
    assert_eq!((files.len(), &files[0].path, &files[0].text), (3, &path.to_owned(), &text));
    assert!(files[2].text.ends_with("[Slice]\nAllowedCPUs=\nAllowedCPUs = 0-3\n"), "{}", files[2].text);
    let script = text_of(ExportFormat::Script, &items);
    for line in [
        "[ ! -d /etc/systemd/system ] || mkdir -p /etc/systemd/system/a@1.service.d || failed=1",
        "[ ! -d /run/systemd/system ] || systemctl daemon-reload || failed=1",
        "# What a service gets counts from its next start on: systemctl restart mongod.service a@1.service",
        "# For all that runs in them, from the daemon-reload below on: system.slice",
    ] {
        assert!(script.lines().any(|found| found == line), "{line}\n{script}");
    }
    let of_parts = text_of(ExportFormat::Script, &items[3..]);
    assert!(!of_parts.contains("restart") && of_parts.contains("systemctl daemon-reload"), "{of_parts}");
    let tasks = text_of(ExportFormat::Ansible, &items);
    assert!(tasks.ends_with(
        "  when: planish_unit_0 is changed or planish_unit_1 is changed or planish_unit_2 is changed\n"
    ));
    let many = item("unit.nofile", Some("redis*"), "65536");
    let odd = item("unit.nofile", Some("dev-a\\x2db"), "65536");
    for format in ExportFormat::ALL {
        let carries = [ExportFormat::Script, ExportFormat::Sysctl, ExportFormat::Ansible].contains(&format);
        assert_eq!(beyond(format, &items[0]).is_none(), carries, "{}", format.name());
        assert!(
            beyond(format, &many).is_some_and(|why| why.contains("name one in `only`")),
            "{}",
            format.name()
        );
        assert!(
            beyond(format, &odd).is_some_and(|why| why.contains("the name of the unit")),
            "{}",
            format.name()
        );
    }
}

/// A write of the file changes what it shows, and no disk: those were set up with what the boot loader gave.
#[test]
fn what_counts_from_a_boot_on_is_an_argument_though_a_file_shows_it() {
    let items = [item("nvme.io_timeout_s", None, "200"), item("nvme.max_retries", None, "9")];
    let given = export(ExportFormat::KernelArgs, "mine", "A test.", &items[..1]).expect("plain values");
    assert_eq!(given[0].text, "nvme_core.io_timeout=200\n");
    for format in [ExportFormat::Tuned, ExportFormat::NodeTuning, ExportFormat::Ansible] {
        let text = text_of(format, &items);
        assert!(text.contains("nvme_core.io_timeout=200") && !text.contains("/io_timeout"), "{text}");
    }
    let script = text_of(ExportFormat::Script, &items);
    assert!(script.contains("#   nvme_core.io_timeout=200\n") && !script.contains("/io_timeout"), "{script}");
    assert!(!text_of(ExportFormat::Sysctl, &items).contains("io_timeout"));
    let left_out = |format| items.each_ref().map(|item| beyond(format, item).is_some());
    assert_eq!(left_out(ExportFormat::Script), [true, false]);
    assert_eq!(left_out(ExportFormat::Sysctl), [true, false]);
    assert_eq!(left_out(ExportFormat::KernelArgs), [false, true]);
}
