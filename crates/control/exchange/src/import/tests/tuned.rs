//! What profiles of tuned come to.

use super::*;

#[test]
fn the_summary_of_a_tuned_profile_is_kept_and_grows_by_no_import() {
    let summary = |said: &str| {
        let text = format!("[main]\nsummary = {said}\n[sysctl]\nvm.swappiness = 1\n");
        read(&text, ImportFormat::Tuned).profile.summary
    };
    assert_eq!(summary("Short and even."), "Short and even. (Imported: 1 of 1 settings.)");
    assert_eq!(
        summary("Short and even. (Imported: 3 of 9 settings.)"),
        "Short and even. (Imported: 1 of 1 settings.)"
    );
    assert_eq!(summary("Imported: 3 of 9 settings."), "Imported: 1 of 1 settings.");
}

#[test]
fn a_profile_of_tuned_gives_what_its_plugins_set() {
    let text = "[main]\nsummary=x\ninclude=throughput-performance\n[cpu]\ngovernor=performance|ondemand\n\
                force_latency=1\n\
                energy_perf_bias=performance\n[vm]\ntransparent_hugepages=never\n[sysctl]\nkernel.numa_balancing=0\n\
                net.core.busy_read=${busy}\n[disk]\nreadahead=>4096\n[sysfs]\n/sys/kernel/mm/ksm/run=0\n\
                [bootloader]\ncmdline_x=+isolcpus=2-7 nosmt quiet\n[script]\nscript=x.sh\n";
    assert_eq!(ImportFormat::guess(text), ImportFormat::Tuned);
    assert_eq!(
        told(&read(text, ImportFormat::Tuned)),
        [
            "3 - includes another profile: import that one too",
            "5 cpu.governor performance of several; a host may want ondemand",
            "6 cpu.dma_latency_us",
            "7 cpu.energy_perf_bias",
            "9 thp.enabled",
            "11 kernel.numa_balancing",
            "12 - a variable of tuned: no file that was read gives ${busy} in a line before it is used",
            "14 - at least or at most so much: a profile wants one value",
            "16 mm.ksm_run",
            "18 boot.isolcpus may stall the host: --allow availability",
            "18 boot.nosmt may stall the host: --allow availability",
            "18 - no knob is set by this argument of the kernel command line",
            "20 - runs a program: what it sets is not in this file",
        ]
    );
}

/// `[cpu]` alone starts dynamic tuning, and `[rtentsk]` has no options at all: neither had a word in what was told.
#[test]
fn a_section_of_tuned_without_options_is_refused_and_not_dropped() {
    let why =
        "a section without options: tuned starts its plugin, and what that does by itself is in no file";
    let text =
        "[main]\nsummary=x\n[cpu]\n\n[disk] # here\n[sysctl]\nvm.swappiness=1\n[rtentsk]\n[variables]\n";
    let lines =
        [format!("3 - {why}"), format!("5 - {why}"), "7 vm.swappiness".to_owned(), format!("8 - {why}")];
    assert_eq!(told(&read(text, ImportFormat::Tuned)), lines);
    // What it includes may say something in it, or stand there alone itself.
    let text = "[main]\ninclude=base\n[cpu]\n[sysctl]\nvm.swappiness=1\n";
    let imported = with_files(text, &[("base", "[cpu]\ngovernor=performance\n[disk]\n")]);
    assert_eq!(
        told(&imported),
        [format!("2 - {why}"), "2 cpu.governor".to_owned(), "5 vm.swappiness".to_owned()]
    );
    assert_eq!(imported.lines[0].text, "base:3 [disk]");
}

/// A profile of tuned in a folder of others, each with its name.
fn with_files(text: &str, others: &[(&str, &str)]) -> Imported {
    let files = |asked: Asked<'_>| {
        let (Asked::Profile(name) | Asked::Variables(name)) = asked;
        others.iter().find(|(other, _)| *other == name).map(|(_, text)| (*text).to_owned())
    };
    import_with(&CATALOGUE, "mine", text, ImportFormat::Tuned, Some(&files), None, None)
}

#[test]
fn what_a_profile_of_tuned_includes_comes_first_and_what_it_says_itself_counts() {
    let text = "[main]\nsummary=mine\ninclude=${parent},-absent\n[variables]\nparent=base\nbusy=50\n\
                [sysctl]\nnet.core.busy_read=${busy}\nvm.swappiness=1\n[vm]\nreplace=1\n[disk]\ndrop=elevator\n";
    let base = "[main]\nsummary=base\ninclude=top\n[variables]\nbusy=7\n[sysctl]\nvm.swappiness=10\n\
                net.core.busy_poll=${busy}\n[vm]\ntransparent_hugepages=never\n[disk]\nelevator=none\nreadahead=64\n";
    let top = "[cpu]\ngovernor=performance\n[variables]\ninclude=/etc/tuned/v.conf\n\
               [sysctl]\nvm.max_map_count=${maps}\n";
    let imported = with_files(text, &[("base", base), ("top", top), ("/etc/tuned/v.conf", "maps=262144\n")]);
    assert_eq!(
        told(&imported),
        [
            "3 cpu.governor",
            "3 vm.max_map_count",
            "3 - a later line of the profile says it anew",
            "3 net.core.busy_poll",
            "3 block.read_ahead_kb",
            "3 - the profile takes it out of its section, by replace= or drop=",
            "3 - the profile takes it out of its section, by replace= or drop=",
            "8 net.core.busy_read",
            "9 vm.swappiness",
            "11 - steers tuned itself",
            "13 - steers tuned itself",
        ]
    );
    assert_eq!(imported.lines[0].text, "top:2 [cpu] governor = performance");
    assert_eq!(*want(&imported, "vm.swappiness"), Want::Int(1));
    assert_eq!(*want(&imported, "net.core.busy_poll"), Want::Int(50), "variables are those of all files");
    assert_eq!(*want(&imported, "vm.max_map_count"), Want::Int(262_144));
    assert!(!imported.profile.want.contains_key(&KnobId::new("thp.enabled")), "the section was replaced");
    assert!(imported.profile.summary.starts_with("mine "), "{}", imported.profile.summary);
}

/// `line 2` is the line of `include=`, and says nothing of which of a hundred lines is meant.
#[test]
fn each_line_of_an_included_profile_is_told_with_its_file_and_number() {
    let base = "[sysctl]\nnet.core.somaxconn=>2048\nvm.nope=1\nvm.swappiness=10\n[bootloader]\ncmdline_a=-quiet\n\
                cmdline_b=isolcpus=2-3 foo=1\n[sysfs]\n/sys/kernel/mm/ksm/run=1\n[vm]\ndirty_ratio=10\n\
                dirty_bytes=268435456\n[variables]\ninclude=/gone\n";
    let imported = with_files("[main]\ninclude=base\n[sysctl]\nvm.stat_interval=10\n", &[("base", base)]);
    let told: Vec<(usize, &str)> = imported.lines.iter().map(|row| (row.line, row.text.as_str())).collect();
    for (number, text) in [
        (2, "net.core.somaxconn = >2048"),
        (3, "/proc/sys/vm/nope = 1"),
        (4, "/proc/sys/vm/swappiness = 10"),
        (6, "[bootloader] cmdline_a = -quiet"),
        (7, "isolcpus=2-3"),
        (7, "foo=1"),
        (9, "/sys/kernel/mm/ksm/run = 1"),
        (14, "[variables] include = /gone"),
    ] {
        assert!(told.contains(&(2, format!("base:{number} {text}").as_str())), "{text}: {told:?}");
    }
    assert!(told.contains(&(4, "/proc/sys/vm/stat_interval = 10")), "{told:?}");
    let lost = imported.lines.iter().find(|row| row.text.starts_with("base:11 ")).expect("it is told");
    let why = lost.reason.as_deref().unwrap_or_default();
    assert!(why.starts_with("base:12 sets its twin"), "{why}");
}

#[test]
fn rings_of_profiles_and_those_that_are_not_here_are_refused_aloud() {
    let ring = with_files(
        "[main]\ninclude=a,gone\n[sysctl]\nvm.swappiness=1\n",
        &[("a", "[main]\ninclude=b\n[sysctl]\nvm.dirty_ratio=7\n"), ("b", "[main]\ninclude=a\n")],
    );
    assert_eq!(
        told(&ring),
        [
            "2 - a is included by itself",
            "2 - gone is not here: copy its folder beside the one of this file",
            "2 vm.dirty_ratio",
            "4 vm.swappiness",
        ]
    );
    let computed = with_files("[main]\ninclude=${f:virt_check:a:b}\n[cpu]\ngovernor=${f:x}\n", &[]);
    assert!(
        told(&computed).iter().all(|line| line.contains("computed by tuned on the host")),
        "{computed:?}"
    );
}

#[test]
fn tuned_names_cards_by_section() {
    let fast = "[fast]\ntype=net\ndevices=ens1, ens2\nring=rx 4096\n";
    let imported =
        read(&format!("{fast}[slow]\ntype=net\ndevices=!eth0\nchannels=combined 2\n"), ImportFormat::Tuned);
    let availability = "may stall the host: --allow availability";
    let rings = format!("4 net.rings_rx {availability}");
    let odd = "8 - all devices but some: a profile names those that it means";
    assert_eq!(told(&imported), [&rings, &rings, odd]);
    let Want::Cases(cases) = want(&imported, "net.rings_rx") else { panic!("two cards") };
    assert_eq!(cases.len(), 2);
    // A section for all before it takes its cards; behind it that says what a profile can say of all cards alone.
    let all = "[net]\ncoalesce=adaptive-rx on\nfeatures=gro on\nwake_on_lan=0\n";
    let first = [&format!("2 net.coalesce_adaptive_rx {availability}"), "3 net.feature_gro"];
    let before = read(&format!("{all}{fast}"), ImportFormat::Tuned);
    let rows = told(&before);
    assert_eq!(
        (&rows[..2], rows[2].as_str()),
        (&first.map(str::to_owned)[..], "4 - an option of tuned that is not read")
    );
    assert!(rows[3..].iter().all(|row| row.contains("[net] comes first")) && rows.len() == 4, "{rows:?}");
    let behind = read(&format!("{fast}{all}"), ImportFormat::Tuned);
    assert!(told(&behind)[2..4].iter().all(|row| row.contains("[fast] comes first")), "{:?}", told(&behind));
    assert_eq!(behind.profile.want.len(), 1, "rings of two cards, and nothing of all");
}

#[test]
fn a_section_of_tuned_for_some_disks_or_cpus_sets_no_others() {
    let of = |text: &str, id: &str| {
        let all = cases(&read(text, ImportFormat::Tuned), id);
        all.into_iter()
            .map(|(only, value)| format!("{}:{value}", only.unwrap_or_default()))
            .collect::<Vec<_>>()
    };
    let (disk, governor) = ("block.scheduler", "cpu.governor");
    let first = "[disk]\ndevices=nvme*\nelevator=none\n";
    assert_eq!(of(first, disk), ["nvme*:none"]);
    assert_eq!(
        of("[disk]\ndevices=sda, sdb vd*\nelevator=none\n", disk),
        ["vd*:none", "sdb:none", "sda:none"]
    );
    assert_eq!(of("[variables]\nd=nvme*\n[disk]\ndevices=${d}\nelevator=none\n", disk), ["nvme*:none"]);
    assert_eq!(of("[disk]\ndevices=\nelevator=none\n", disk), [":none"]);
    let both = format!("{first}[slow]\ntype=disk\ndevices=sd*\nelevator=bfq\n");
    assert_eq!(of(&both, disk), ["nvme*:none", "sd*:bfq"]);
    // The first section that means a disk takes it, be it the wider one.
    let wide = format!("{first}[all]\ntype=disk\nelevator=bfq\n");
    assert_eq!(of(&wide, disk), ["nvme*:none", ":bfq"]);
    let narrow = "[all]\ntype=disk\nelevator=bfq\n[fast]\ntype=disk\ndevices=nvme*\nelevator=none\n";
    assert_eq!(of(narrow, disk), [":bfq"]);
    let early =
        "[all]\ntype=disk\nelevator=bfq\n[fast]\ntype=disk\npriority=-1\ndevices=nvme*\nelevator=none\n";
    assert_eq!(of(early, disk), ["nvme*:none", ":bfq"]);
    // What takes a disk and does not set it leaves it as it is.
    for before in ["readahead=4096", "devices_udev_regex=ID_X=1\nelevator=bfq", "devices=!sda\nelevator=bfq"]
    {
        let text = format!("[disk]\n{before}\n[all]\ntype=disk\nelevator=none\n");
        assert_eq!(of(&text, disk), Vec::<String>::new(), "{text}");
        let why = told(&read(&text, ImportFormat::Tuned)).pop().expect("refused");
        assert!(why.contains("section [disk] comes first and takes devices"), "{why}");
    }
    for odd in ["devices=!sda", "devices=sd[ab]", "devices=${none}", "devices_udev_regex=ID_X=1"] {
        assert_eq!(of(&format!("[disk]\n{odd}\nelevator=none\n"), disk), Vec::<String>::new(), "{odd}");
    }
    assert_eq!(
        of("[cpu]\ndevices=cpu2,cpu1?\ngovernor=performance\n", governor),
        ["1?:performance", "2:performance"]
    );
    assert_eq!(of("[cpu]\ndevices=cpu2\nno_turbo=1\n", "cpu.no_turbo"), [":1"], "of the whole machine");
    assert_eq!(of("[net]\ndevices=a b\ntxqueuelen=9\nring=rx 512\n", "net.rings_rx"), ["b:512", "a:512"]);
}

#[test]
fn a_section_of_tuned_is_read_by_the_plugin_that_it_names() {
    let text = "[main]\nsummary=s\n[sysctl.swap]\ntype=sysctl\nvm.swappiness=10\n\
                [vm.arm]\ntype=vm\nuname_regex=aarch64\ntransparent_hugepages=never\n\
                [sysctl.arm]\ntype=sysctl\ncpuinfo_regex=CPU part\nkernel.numa_balancing=0\n";
    let imported = read(text, ImportFormat::Tuned);
    let lines = told(&imported);
    assert_eq!(lines[0], "5 vm.swappiness");
    assert_eq!(lines.len(), 7, "each of the other two sections is refused line by line: {lines:?}");
    assert!(lines[1..].iter().all(|line| line.contains("for some hosts only")), "{lines:?}");
    let off = read("[main]\nsummary=s\n[b]\ntype=sysctl\nenabled=0\nvm.swappiness=7\n", ImportFormat::Tuned);
    assert!(told(&off).iter().all(|line| line.contains("turned off")), "{:?}", told(&off));
}

#[test]
fn options_of_the_scheduler_are_knobs_where_they_are() {
    let text = "[scheduler]\nsched_min_granularity_ns=3000000\nsched_tunable_scaling=0\nsched_latency_ns=9\n";
    let imported = read(text, ImportFormat::Tuned);
    let knobs: Vec<&str> = imported.profile.want.keys().map(KnobId::as_str).collect();
    // Before Linux 5.13 it was a sysctl.
    assert_eq!(
        knobs,
        ["kernel.sched_min_granularity_ns", "sched.min_granularity_ns", "sched.tunable_scaling"]
    );
    assert_eq!(told(&imported).last().map(String::as_str), Some("4 - an option of tuned that is not read"));
}

/// `tuned/plugins/plugin_vm.py`: a percent sign means the twin.
#[test]
fn limits_of_dirty_memory_are_options_of_tuned() {
    let text = "[vm]\ndirty_bytes=40%\ndirty_background_bytes=67108864\n";
    let imported = read(text, ImportFormat::Tuned);
    assert_eq!(*want(&imported, "vm.dirty_ratio"), Want::Int(40));
    assert_eq!(*want(&imported, "vm.dirty_background_bytes"), Want::Int(67_108_864));
    let older = read("[vm]\ndirty_ratio=30\ndirty_background_ratio=10\n", ImportFormat::Tuned);
    assert_eq!(told(&older), ["2 vm.dirty_ratio", "3 vm.dirty_background_ratio"]);
    let more = read("[sysctl]\nnet.core.somaxconn=>2048\n", ImportFormat::Tuned);
    assert_eq!(told(&more), ["2 - at least or at most so much: a profile wants one value"]);
}

/// `tuned/plugins/plugin_bootloader.py`: a minus takes out what tuned itself gives.
#[test]
fn arguments_behind_a_minus_are_taken_out_and_never_given() {
    let alone = read("[bootloader]\ncmdline_x = -nosmt mitigations=off\n", ImportFormat::Tuned);
    assert!(alone.profile.want.is_empty(), "{:?}", told(&alone));
    let none = "2 - takes an argument out that no line before it gives: a profile gives arguments, and takes none of \
                a host";
    assert_eq!(told(&alone), [none, none]);
    let child = "[main]\ninclude=base\n[bootloader]\ncmdline_child=-skew_tick=1\n";
    let base = "[bootloader]\ncmdline_base=+skew_tick=1 nosmt nohz_full=${c}\n[variables]\nc=2-3\n";
    let imported = with_files(child, &[("base", base)]);
    assert_eq!(
        told(&imported),
        [
            "2 - line 4 takes it out again",
            "2 boot.nosmt may stall the host: --allow availability",
            "2 boot.nohz_full may stall the host: --allow availability",
            "4 - takes out what a line before gives, and sets nothing",
        ]
    );
    assert_eq!(overridden(&imported), [(2, 4)]);
    // Of the same name it takes the place of the other, and there is nothing to take out.
    let same = with_files(&child.replace("cmdline_child", "cmdline_base"), &[("base", base)]);
    assert!(same.profile.want.is_empty(), "{:?}", told(&same));
    // What comes behind is given.
    let behind = "[bootloader]\ncmdline_a=-nosmt\ncmdline_b=\\+x nosmt\n";
    let known: Vec<_> = read(behind, ImportFormat::Tuned).profile.want.into_keys().collect();
    assert_eq!(known, [KnobId::new("boot.nosmt")]);
}

#[test]
fn arguments_of_several_options_are_one_command_line() {
    let imported =
        read("[bootloader]\ncmdline_a=hugepagesz=1G\ncmdline_b=hugepages=4\n", ImportFormat::Tuned);
    assert_eq!(*want(&imported, "boot.hugepages.1g"), Want::Int(4));
    for (text, why) in [
        ("[bootloader]\nskip_grub_config=True\ncmdline=nosmt\n", "leave the command line"),
        ("[bootloader]\ncmdline=nosmt\n[b]\ntype=bootloader\ncmdline=nosmt\n", "one of them"),
        ("[bootloader]\ncmdline=\"nosmt\"\ncmdline_b=quiet\n", "has quotes"),
    ] {
        let imported = read(text, ImportFormat::Tuned);
        assert!(imported.profile.want.is_empty(), "{:?}", told(&imported));
        assert!(told(&imported).iter().any(|row| row.contains(why)), "{:?}", told(&imported));
    }
    let quoted = read("[bootloader]\ncmdline=\"nosmt\"\n", ImportFormat::Tuned);
    assert_eq!(quoted.profile.want.len(), 1, "{:?}", told(&quoted));
}

/// `tuned/profiles/loader.py`: `inline_comment_prefixes`.
#[test]
fn a_comment_behind_a_value_is_no_part_of_it() {
    let text = "[sysctl] # all\nvm.swappiness = 10 # keep\nnet.ipv4.ip_local_reserved_ports=8080\t# web\n\
                [bootloader]\ncmdline_cm=nohz_full=1-3 # mitigations=off\n[vm]\ntransparent_hugepages=never #x\n";
    let imported = read(text, ImportFormat::Tuned);
    assert!(imported.lines.iter().all(ImportedLine::is_accepted), "{:?}", told(&imported));
    assert_eq!(*want(&imported, "vm.swappiness"), Want::Int(10));
    assert_eq!(*want(&imported, "net.ipv4.ip_local_reserved_ports"), Want::Int(8080));
    assert!(!imported.profile.want.contains_key(&KnobId::new("boot.mitigations")));
    // Without a blank before it, and of sysctl.d(5), it is none.
    for (text, format) in [
        ("[sysctl]\nvm.swappiness=10#x\n", ImportFormat::Tuned),
        ("vm.swappiness=10 # x\n", ImportFormat::Sysctl),
    ] {
        assert!(read(text, format).profile.want.is_empty(), "{text}");
    }
}

#[test]
fn lines_and_quotes_are_those_of_the_parser_that_tuned_has() {
    let text = "[sysctl]\nvm.swappiness=1\n  vm.dirty_ratio=2\nvm.stat_interval=\"9\"\n";
    let imported = read(text, ImportFormat::Tuned);
    let goes_on = "2 - goes on in line 3, which is indented deeper, and means one value to tuned";
    assert_eq!(told(&imported), [goes_on, "4 vm.stat_interval"]);
    let indented = read("[sysctl]\n  vm.swappiness=1\n  vm.dirty_ratio=2\n", ImportFormat::Tuned);
    assert_eq!(indented.profile.want.len(), 2, "{:?}", told(&indented));
    let twice = read("[bootloader]\ncmdline=nosmt\ncmdline=nohz_full=2\n", ImportFormat::Tuned);
    assert_eq!((overridden(&twice), twice.profile.want.len()), (vec![(2, 3)], 1));
    for text in ["[sysfs]\n/sys/kernel/mm/ksm/run=\"0\"\n", "[s]\ntype=sysctl\nenabled=on\nvm.swappiness=1\n"]
    {
        assert!(read(text, ImportFormat::Tuned).profile.want.is_empty(), "{text}");
    }
}

#[test]
fn options_of_tuned_that_a_knob_is_for_are_read() {
    let text = "[acpi]\nplatform_profile=performance|balanced\n[selinux]\navc_cache_threshold=8192\n\
                [net]\nnf_conntrack_hashsize=1048576\n";
    let imported = read(text, ImportFormat::Tuned);
    assert_eq!(
        told(&imported),
        [
            "2 cpu.platform_profile performance of several; a host may want balanced",
            "4 selinux.avc_cache_threshold",
            "6 net.conntrack_hashsize",
        ]
    );
}

#[test]
fn the_queue_of_a_card_and_the_mesh_are_read_and_virtual_cards_are_spared() {
    let text = "[net]\ndevices=ens3f0\nmtu=9000\ntxqueuelen=5000\n[uncore]\nmax_freq_khz=2000000\n\
                [m]\ntype=uncore\ndevices=package_01*\npriority=-1\nmax_freq_khz=1800000\nmin_freq_khz=800000\n";
    let imported = read(text, ImportFormat::Tuned);
    assert!(imported.profile.want.contains_key(&KnobId::new("net.mtu")), "{:?}", told(&imported));
    for (id, only) in [("net.tx_queue_len", "ens3f0"), ("cpu.uncore_min_khz", "package_01*")] {
        let Want::Case(case) = want(&imported, id) else { panic!("{id}: one place") };
        assert_eq!(case.only.as_deref(), Some(only), "{id}");
    }
    let Want::Cases(cases) = want(&imported, "cpu.uncore_max_khz") else { panic!("two sections") };
    let cases: Vec<_> = cases.iter().map(|case| (case.only.as_deref(), case.value.as_str())).collect();
    assert_eq!(cases, [(Some("package_01*"), "1800000"), (None, "2000000")]);
    for (text, why) in [
        ("[net]\nmtu=9000\n", "no virtual card"),
        ("[net]\ndevices=eth*\ntxqueuelen=5000\n", "no virtual card"),
        ("[uncore]\ndevices=uncore05\nmax_freq_khz=2000000\n", "is no package"),
        ("[systemd]\ncpu_affinity=0-1\n", "others = \"housekeeping\""),
    ] {
        let imported = read(text, ImportFormat::Tuned);
        let rows = told(&imported);
        assert!(imported.profile.want.is_empty() && rows[0].contains(why), "{text}: {rows:?}");
    }
}

#[test]
fn arguments_of_a_profile_say_of_which_size_its_pages_are() {
    let tuned = "[sysctl]\nvm.nr_hugepages=16\n[bootloader]\ncmdline=default_hugepagesz=1G\n";
    let imported = read(tuned, ImportFormat::Tuned);
    let wanted = Want::Total { total_bytes: 16 << 30, nodes: Nodes::Spread };
    assert_eq!(
        imported.profile.want.get(&KnobId::new("hugepages.1g")),
        Some(&wanted),
        "{:?}",
        told(&imported)
    );
    assert!(told(&imported)[0].ends_with("which this file makes 1G"), "{:?}", told(&imported));
}

#[test]
fn a_cpu_that_is_never_to_sleep_is_read() {
    let imported = read("[cpu]\npm_qos_resume_latency_us=n/a\n", ImportFormat::Tuned);
    assert_eq!(told(&imported), ["2 cpu.resume_latency_us"]);
    assert_eq!(*want(&imported, "cpu.resume_latency_us"), Want::Text("n/a".to_owned()));
}

/// They were neither accepted nor refused: of nothing that a file says nothing is told.
#[test]
fn what_a_profile_takes_out_of_those_that_it_includes_is_told() {
    let base = "[cpu]\npriority=2\nno_turbo=1\npm_qos_resume_latency_us=100\n[sysctl]\nvm.page-cluster=0\n\
                vm.stat_interval=9\n";
    let text = "[main]\nsummary=c\ninclude=pa\n[cpu]\nreplace=1\ngovernor=performance\n[sysctl]\n\
                drop=vm.page-cluster\nvm.swappiness=1\n";
    let imported = with_files(text, &[("pa", base)]);
    let lost: Vec<(&str, Option<usize>)> = imported
        .lines
        .iter()
        .filter(|line| !line.is_accepted())
        .map(|line| (line.text.as_str(), line.overridden_by))
        .collect();
    assert_eq!(
        lost,
        [
            ("pa:3 [cpu] no_turbo = 1", Some(5)),
            ("pa:4 [cpu] pm_qos_resume_latency_us = 100", Some(5)),
            ("pa:6 [sysctl] vm.page-cluster = 0", Some(8)),
            ("[cpu] replace = 1", None),
            ("[sysctl] drop = vm.page-cluster", None),
        ]
    );
    assert_eq!(imported.profile.want.len(), 3, "{:?}", told(&imported));
}
