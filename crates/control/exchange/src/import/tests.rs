//! What foreign files come to.

use std::sync::LazyLock;

use planish_model::{Catalogue, KnobId, Nodes, Want};
use proptest::prelude::*;

use super::*;
use crate::error::ExchangeError;

static CATALOGUE: LazyLock<Catalogue> = LazyLock::new(|| Catalogue::embedded().expect("sound"));

fn read(text: &str, format: ImportFormat) -> Imported {
    import(&CATALOGUE, "mine", text, format)
}

/// Line, knob or `-`, and the reason.
fn told(imported: &Imported) -> Vec<String> {
    let row = |line: &ImportedLine| {
        let knob = line.knob.as_ref().map_or("-", KnobId::as_str);
        format!("{} {knob} {}", line.line, line.reason.as_deref().unwrap_or_default()).trim_end().to_owned()
    };
    imported.lines.iter().map(row).collect()
}

fn want<'a>(imported: &'a Imported, id: &str) -> &'a Want {
    &imported.profile.want[&KnobId::new(id)]
}

#[test]
fn pools_of_several_nodes_are_kept_or_refused_and_never_lost() {
    let lines = |pools: &[(Option<u32>, u32)]| {
        let line = |(node, pages): &(Option<u32>, u32)| {
            let folder =
                node.map_or("kernel/mm".to_owned(), |node| format!("devices/system/node/node{node}"));
            format!("echo {pages} > /sys/{folder}/hugepages/hugepages-2048kB/nr_hugepages\n")
        };
        read(&pools.iter().map(line).collect::<String>(), ImportFormat::Script)
    };
    let all = |pages: u64, nodes| Want::Need { need_bytes: pages << 21, nodes };
    let each = |pages: &[u64], nodes: &[u32]| Want::Needs {
        need_bytes: pages.iter().map(|pages| pages << 21).collect(),
        nodes: nodes.to_vec(),
    };
    let refused = |imported: &Imported| imported.lines.iter().filter(|line| line.knob.is_none()).count();
    for (pools, wanted, lost) in [
        (&[(Some(0), 128), (Some(1), 128)][..], all(128, Nodes::Each(vec![0, 1])), 0),
        (&[(Some(0), 128), (Some(0), 64)], all(64, Nodes::Each(vec![0])), 1),
        (&[(Some(1), 8), (Some(0), 8), (Some(1), 8)], all(8, Nodes::Each(vec![0, 1])), 1),
        (&[(Some(1), 64), (Some(0), 100)], each(&[100, 64], &[0, 1]), 0),
        (&[(Some(0), 100), (None, 64)], all(64, Nodes::Spread), 1),
        (&[(None, 64), (Some(1), 100)], all(64, Nodes::Spread), 1),
        (&[(None, 64), (None, 100)], all(100, Nodes::Spread), 1),
    ] {
        let imported = lines(pools);
        assert_eq!((want(&imported, "hugepages.2m"), refused(&imported)), (&wanted, lost), "{pools:?}");
        let again = CATALOGUE.parse_profile("mine.toml", &imported.to_toml()).expect("a profile");
        assert_eq!(again, imported.profile);
    }
    let told = told(&lines(&[(Some(0), 100), (Some(1), 100), (Some(0), 100), (None, 64)]));
    for (row, why) in
        ["3 sets it again", "4 sets the pool of all nodes", "4 sets the pool of all nodes"].iter().enumerate()
    {
        assert_eq!(told[row], format!("{} - line {why}", row + 1));
    }
}

/// Its number, and that of the line that counts in its place, for each line that is overridden.
fn overridden(imported: &Imported) -> Vec<(usize, usize)> {
    imported.lines.iter().filter_map(|line| Some((line.line, line.overridden_by?))).collect()
}

#[test]
fn a_line_that_another_one_overrides_does_not_count_and_says_by_which() {
    let script = "sysctl -w vm.swappiness=60\necho 5 > /proc/sys/vm/swappiness\nsysctl -w vm.stat_interval=9\n\
                  for v in 1 7; do sysctl -w vm.swappiness=$v; done\n";
    let imported = read(script, ImportFormat::Script);
    assert_eq!(overridden(&imported), [(1, 2), (2, 4), (4, 4)]);
    assert_eq!(imported.profile.summary, "Imported: 2 of 5 settings.");
    assert_eq!(told(&imported)[0], "1 - line 2 sets it to 5");
    let written = imported.to_toml();
    let comment = "# overridden, line 2: /proc/sys/vm/swappiness = 5\n#   line 4 sets it to 1\n";
    assert!(written.contains(comment) && !written.contains("refused"), "{written}");

    let arguments = read("isolcpus=2 quiet isolcpus=3", ImportFormat::KernelArgs);
    assert_eq!(
        (overridden(&arguments), told(&arguments)[0].as_str()),
        (vec![(1, 1)], "1 - line 1 sets it to 3")
    );

    // A disk of a pattern that follows, and not one of a pattern that precedes.
    let disks = |names: &[&str]| {
        let line = |name: &&str| format!("echo none | tee /sys/block/{name}/queue/scheduler\n");
        overridden(&read(&names.iter().map(line).collect::<String>(), ImportFormat::Script))
    };
    assert_eq!(disks(&["sda", "sd*"]), [(1, 2)]);
    assert_eq!(disks(&["sd*", "sda"]), []);
    assert_eq!(disks(&["nvme*", "sd*"]), []);
    assert_eq!(disks(&["nvme*", "sda", "*"]), [(1, 3), (2, 3)]);
}

#[test]
fn of_two_lines_of_tmpfiles_for_one_path_the_first_counts() {
    let twice = "w /sys/kernel/mm/ksm/run - - - - 0\nw /sys/kernel/mm/ksm/run - - - - 1\n";
    let imported = read(twice, ImportFormat::Tmpfiles);
    assert_eq!((want(&imported, "mm.ksm_run"), overridden(&imported)), (&Want::Int(0), vec![(2, 1)]));
    assert_eq!(told(&imported)[1], "2 - line 1 has this path, and of two lines for one the first counts");
}

#[test]
fn a_file_of_another_kind_is_refused_and_not_read_as_the_nearest() {
    let told = |text: &str| recognise(text, ImportFormat::guess(text)).map_err(|error| error.to_string());
    let map = "---\n# mine\nkind: ConfigMap\ndata:\n  conf: |\n    w /sys/kernel/mm/ksm/run - - - - 0\n";
    let compose = "services:\n  db:\n    sysctls:\n      - net.core.somaxconn=1024\n";
    let unit = "[Unit]\nDescription=x\n[Service]\nType=oneshot\nExecStart=/bin/true\n";
    let profile = "name = \"mine\"\nsummary = \"s\"\n\n[want]\n\"vm.swappiness\" = 1\n";
    let plan = "{\n  \"schema\": 1,\n  \"steps\": []\n}\n";
    for (text, what) in [(map, "YAML"), (compose, "YAML"), (profile, "a profile of planish"), (plan, "JSON")]
    {
        assert_eq!(told(text), Err(format!("it is {what}, and no file of a format that is read")));
    }
    let as_sysctl = recognise(unit, ImportFormat::Sysctl).map_err(|error| (error.to_string(), error.cure()));
    let unit_told = "it is a unit of systemd, and no file of a format that is read".to_owned();
    assert_eq!(as_sysctl, Err((unit_told, "import it as one: --from unit".to_owned())));
    assert_eq!(told(unit), Ok(()));
    assert_eq!(told("\u{1}\u{2}\u{fffd}abc"), Err("it is no text".to_owned()));
    assert_eq!(told("vm.swappiness = 1\0"), Err("it is no text".to_owned()));
    assert_eq!(told("# nothing\n\n"), Err("it sets nothing: no line of it says anything".to_owned()));
    let other = "[workload]\nadapter = \"command\"\n[[rung]]\nname = \"x\"\n";
    let other_told = "it is no file of tuned: of 2 lines that say something 0 are of that format";
    assert_eq!(told(other), Err(other_told.to_owned()));
    for (format, text) in [
        (ImportFormat::Sysctl, SCRIPT),
        (ImportFormat::Tmpfiles, "vm.swappiness = 1\n"),
        (ImportFormat::Tuned, "vm.swappiness = 1\n"),
        (ImportFormat::Saptune, "[Foo]\nvm.swappiness = 1\n"),
        (ImportFormat::Script, "vm.swappiness = 1\nvm.dirty_ratio = 5\n"),
        (ImportFormat::KernelArgs, "[x] = <y>\n"),
    ] {
        let refused = recognise(text, format).map_err(|error| error.to_string());
        let start = format!("it is no file of {}: of ", format.name());
        assert!(refused.as_ref().is_err_and(|told| told.starts_with(&start)), "{refused:?}");
    }
}

#[test]
fn files_with_odd_lines_are_of_their_format_still() {
    for text in [
        SCRIPT,
        "\u{fffd}ber\nvm.swappiness = 5\n-net.ipv4.conf.*.rp_filter = 1\n-net.ipv4.conf.lo.rp_filter\n",
        "d /run/x 0755 root root\nw+! /sys/kernel/mm/ksm/run - - - - 0\nL /run/y - - - - /x\n",
        "[main]\ninclude=x\n[my_disks]\ntype=disk\nelevator=none\n[sysctl]\nvm.swappiness=1\n",
        "[version]\n# SAP-NOTE=1\n[reminder]\nfree text: of all kinds\n[sysctl:os=15-*]\nvm.swappiness = 1\n",
        "isolcpus=domain,2-7 nohz_full=2-7 quiet ro",
        "cat > /etc/sysctl.d/9.conf <<E\nvm.swappiness = 1\nvm.dirty_ratio = 5\nE\n",
        "#!/bin/sh\ncat > /x.service <<E\n[Unit]\n[Service]\nExecStart=/x\nE\nsysctl -w vm.swappiness=1\n",
        "sysctl -w \\\n  vm.swappiness=1\n: all\nif [ -f /x ]; then\n  echo 1 > /x\nfi\n",
    ] {
        assert_eq!(recognise(text, ImportFormat::guess(text)), Ok(()), "{text}");
    }
}

#[test]
fn what_there_is_to_know_of_a_line_stands_in_the_profile() {
    let text = "kernel.randomize_va_space = 0\nvm.swappiness = 1\n";
    let written = read(text, ImportFormat::Sysctl).to_toml();
    let note = "# line 1: /proc/sys/kernel/randomize_va_space = 0\n\
                #   weakens a protection: --allow-knob kernel.randomize_va_space\n";
    assert!(written.starts_with(note), "{written}");
}

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

const SCRIPT: &str = r#"#!/bin/bash
set -e
GOVERNOR=performance
for gov in /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor; do
  echo "$GOVERNOR" > "$gov" 2>/dev/null || true
done
echo 16384 > /proc/sys/vm/nr_hugepages
sudo sysctl -w vm.swappiness=0 net.ipv4.tcp_rmem="4096 87380 134217728"
sysctl -w vm.numa_balancing=0
echo never | sudo tee /sys/kernel/mm/transparent_hugepage/enabled > /dev/null
for irq in $(grep eth /proc/interrupts | cut -d: -f1); do
  echo ff00 > /proc/irq/$irq/smp_affinity
done
echo 1 > /proc/sys/vm/drop_caches # once
systemctl stop irqbalance
echo "vm.swappiness = 0" >> /etc/sysctl.d/99-x.conf
"#;

#[test]
fn a_script_is_read_line_by_line() {
    let imported = read(SCRIPT, ImportFormat::guess(SCRIPT));
    assert_eq!(imported.format, ImportFormat::Script);
    assert_eq!(
        told(&imported),
        [
            "5 cpu.governor",
            "7 hugepages.2m a pool: raised by this need, and never lowered",
            "8 vm.swappiness",
            "8 net.ipv4.tcp_rmem",
            "9 - no knob has this place; the nearest is /proc/sys/kernel/numa_balancing",
            "10 thp.enabled",
            "11 - a loop over what only a shell can tell",
            "12 - inside a loop over what only a shell can tell: take it by hand if it is meant",
            "14 - acts when written and has no old value to put back",
            "15 - starts or stops a service",
            "16 - appends to a file: import that one",
        ]
    );
    assert_eq!(*want(&imported, "cpu.governor"), Want::Text("performance".to_owned()));
    assert_eq!(
        *want(&imported, "hugepages.2m"),
        Want::Need { need_bytes: 16384 << 21, nodes: Nodes::Spread }
    );
    assert_eq!(*want(&imported, "vm.swappiness"), Want::Int(0));
}

#[test]
fn a_later_line_wins_and_a_twin_clears_the_other() {
    let text = "vm.swappiness = 5\nvm.dirty_bytes = 100000000\nvm.dirty_ratio = 10\nvm/swappiness = 7\n\
                vm.swapiness = 1\n";
    let imported = read(text, ImportFormat::guess(text));
    assert_eq!(imported.format, ImportFormat::Sysctl);
    assert_eq!(*want(&imported, "vm.swappiness"), Want::Int(7));
    assert_eq!(*want(&imported, "vm.dirty_ratio"), Want::Int(10));
    assert!(!imported.profile.want.contains_key(&KnobId::new("vm.dirty_bytes")));
    assert_eq!(told(&imported)[1], "2 - line 3 sets its twin, which clears it");
    assert_eq!(overridden(&imported), [(1, 4), (2, 3)]);
    assert_eq!(imported.profile.summary, "Imported: 2 of 5 settings.");
    assert!(
        told(&imported)[4].starts_with("5 - no knob has this place; the nearest is /proc/sys/vm/swappiness")
    );
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
            "12 - a variable of tuned: no file that was read gives ${busy}",
            "14 - at least or at most so much: a profile wants one value",
            "16 mm.ksm_run",
            "18 boot.isolcpus may stall the host: --allow availability",
            "18 boot.nosmt may stall the host: --allow availability",
            "18 - no knob is set by this argument of the kernel command line",
            "20 - runs a program: what it sets is not in this file",
        ]
    );
}

/// A profile of tuned in a folder of others, each with its name.
fn with_files(text: &str, others: &[(&str, &str)]) -> Imported {
    let files = |asked: Asked<'_>| {
        let (Asked::Profile(name) | Asked::Variables(name)) = asked;
        others.iter().find(|(other, _)| *other == name).map(|(_, text)| (*text).to_owned())
    };
    import_with(&CATALOGUE, "mine", text, ImportFormat::Tuned, Some(&files), None)
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
            "3 - a later file of the profile says it anew",
            "3 net.core.busy_poll",
            "3 block.read_ahead_kb",
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
fn lines_of_ethtool_are_settings_of_cards() {
    let text = "#!/bin/sh\nethtool -G eth0 rx 4096 tx 512\n\
                ethtool -C eth0 adaptive-rx off rx-usecs 3 sample-interval 1\n\
                ethtool --features eth1 tso off gro on\nethtool -s eth0 wol d\nethtool -L eth0 combined\n\
                for nic in /sys/class/net/*; do ethtool -A \"${nic##*/}\" rx off; done\nethtool -i\n";
    let imported = read(text, ImportFormat::guess(text));
    let availability = "may stall the host: --allow availability";
    assert_eq!(
        told(&imported),
        [
            &format!("2 net.rings_rx {availability}"),
            &format!("2 net.rings_tx {availability}"),
            &format!("3 net.coalesce_adaptive_rx {availability}"),
            &format!("3 net.coalesce_rx_usecs {availability}"),
            "3 - a setting of network cards that no knob is for",
            "4 net.feature_tso",
            "4 net.feature_tso6",
            "4 net.feature_gro",
            "5 - of ethtool only -A, -C, -G, -K and -L are known",
            "6 - a word without a value",
            &format!("7 net.pause_rx {availability}"),
            "8 - sets nothing",
        ]
    );
    assert_eq!(imported.lines[0].text, "ethtool -G eth0 rx 4096");
    let Want::Case(rings) = want(&imported, "net.rings_rx") else { panic!("for one card") };
    assert_eq!((rings.only.as_deref(), rings.value.as_str()), (Some("eth0"), "4096"));
    assert_eq!(*want(&imported, "net.pause_rx"), Want::Int(0), "for all cards");
}

#[test]
fn a_remount_sets_the_options_that_knobs_are_for() {
    let text = "#!/bin/sh\nmount -o remount,noatime /data\n\
                sudo mount -oremount,rw,size=50%,huge=advise /dev/shm/ 2>/dev/null\n\
                mount -o remount,nosuid '/data/a b'\nmount -o noatime /dev/sdb1 /data\n\
                mount -o remount,noatime LABEL=x\n\
                mount -o remount,rw /\nswapoff -a\nmount -o remount,relatime / && echo done\n";
    let imported = read(text, ImportFormat::guess(text));
    assert_eq!(
        told(&imported),
        [
            "2 mount.atime",
            "3 tmpfs.size may stall the host: --allow availability",
            "3 tmpfs.huge",
            "4 - an option of mounts that no knob is for",
            "5 - mounts: planish changes options of mounts that are there",
            "6 - names no mount by its path",
            "7 - sets nothing",
            "8 - turns swap on or off",
            "9 mount.atime",
        ]
    );
    let Want::Cases(times) = want(&imported, "mount.atime") else { panic!("two mounts") };
    let times: Vec<_> = times.iter().map(|case| (case.only.as_deref(), case.value.as_str())).collect();
    assert_eq!(times, [(Some("/"), "relatime"), (Some("/data"), "noatime")]);
    let Want::Case(size) = want(&imported, "tmpfs.size") else { panic!("of one mount") };
    assert_eq!((size.only.as_deref(), size.value.as_str()), (Some("/dev/shm"), "50%"));
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

/// What a profile wants of a knob, place by place: its pattern and its value, the first that fits counts.
fn cases(imported: &Imported, id: &str) -> Vec<(Option<String>, String)> {
    let case = |case: &planish_model::Case| (case.only.clone(), case.value.clone());
    match imported.profile.want.get(&KnobId::new(id)) {
        None => Vec::new(),
        Some(Want::Case(one)) => vec![case(one)],
        Some(Want::Cases(cases)) => cases.iter().map(case).collect(),
        Some(other) => vec![(None, other.literal().expect("one value"))],
    }
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
fn a_note_of_saptune_gives_what_it_sets() {
    let text = "[version]\nVERSION=1\n[vm]\nTHP=never\nKSM=0\n[sysctl]\nvm.max_map_count = 2147483647\n\
                [sysctl:os=15-SP*]\nvm.swappiness = 10\n[block]\nIO_SCHEDULER=none, noop\nNRREQ=1022\n\
                [grub]\nintel_idle.max_cstate=1\nnuma_balancing=disable\n[limits]\nLIMITS=x\n[cpu]\nforce_latency=70\n\
                [sys]\nkernel.mm.transparent_hugepage.khugepaged.defrag=0\n[reminder]\n# text\n";
    assert_eq!(ImportFormat::guess(text), ImportFormat::Saptune);
    let imported = read(text, ImportFormat::Saptune);
    assert_eq!(
        told(&imported),
        [
            "4 thp.enabled",
            "5 mm.ksm_run",
            "7 vm.max_map_count",
            "9 - a section for some hosts only: make a profile of your own with `needs`",
            "11 block.scheduler none of several; a host may want noop",
            "12 block.nr_requests",
            "14 boot.intel_idle_max_cstate",
            "15 kernel.numa_balancing",
            "17 - no setting of the kernel that planish has a knob for",
            "19 cpu.dma_latency_us",
            "21 thp.khugepaged.defrag",
        ]
    );
    assert_eq!(*want(&imported, "kernel.numa_balancing"), Want::Int(0));
}

#[test]
fn the_size_of_shared_memory_in_a_note_of_saptune_is_that_of_a_mount() {
    let note = |line: &str| read(&format!("[version]\nV=1\n[mem]\n{line}\n"), ImportFormat::Saptune);
    let size = note("ShmFileSystemSizeMB=24576");
    assert_eq!(cases(&size, "tmpfs.size"), [(Some("/dev/shm".to_owned()), (24_576_u64 << 20).to_string())]);
    for (line, why) in [
        ("ShmFileSystemSizeMB=0", "VSZ_TMPFS_PERCENT"),
        ("ShmFileSystemSizeMB=x", "no number of MiB"),
        ("VSZ_TMPFS_PERCENT=75", "tmpfs.size"),
    ] {
        let rows = told(&note(line));
        assert!(rows.len() == 1 && rows[0].starts_with("4 - ") && rows[0].contains(why), "{rows:?}");
    }
}

#[test]
fn of_several_values_the_first_that_there_is_counts_and_the_others_are_told() {
    let note = read("[version]\nV=1\n[block]\nIO_SCHEDULER=noop,none\n", ImportFormat::Saptune);
    assert_eq!(*want(&note, "block.scheduler"), Want::Text("none".to_owned()));
    assert_eq!(told(&note), ["4 block.scheduler none of several; a host may want noop"]);
    let none = read("[version]\nV=1\n[block]\nIO_SCHEDULER=noop\n", ImportFormat::Saptune);
    assert!(told(&none)[0].starts_with("4 - ") && told(&none)[0].contains("noop"), "{:?}", told(&none));
    let profile = read("[cpu]\nforce_latency=cstate.id_no_zero:1|3\n", ImportFormat::Tuned);
    assert_eq!(*want(&profile, "cpu.dma_latency_us"), Want::Int(3));
    assert_eq!(told(&profile), ["2 cpu.dma_latency_us 3 of several; a host may want cstate.id_no_zero:1"]);
    let state = read("[cpu]\nforce_latency=cstate.id:1\n", ImportFormat::Tuned);
    assert_eq!(told(&state), ["2 - a sleep state, whose microseconds only a host knows"]);
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

#[test]
fn pages_without_a_size_are_of_the_default_size() {
    let pages = |text: &str, format| {
        let imported = read(text, format);
        let of = |id: &str| cases(&imported, id).into_iter().map(|(_, value)| value).collect::<String>();
        (of("boot.hugepages.2m"), of("boot.hugepages.1g"), told(&imported).join("; "))
    };
    let (small, large, rows) = pages("hugepages=17000 quiet", ImportFormat::KernelArgs);
    assert_eq!((small.as_str(), large.as_str()), ("17000", ""));
    assert!(rows.contains("of the default size, taken for 2M"), "{rows}");
    for text in ["default_hugepagesz=1G hugepages=16", "hugepages=16 default_hugepagesz=1G"] {
        let (small, large, rows) = pages(text, ImportFormat::KernelArgs);
        assert_eq!((small.as_str(), large.as_str()), ("", "16"), "{text}");
        assert!(!rows.contains("taken for"), "{rows}");
    }
    let both = pages("hugepages=8 hugepagesz=1G hugepages=2", ImportFormat::KernelArgs);
    assert_eq!((both.0.as_str(), both.1.as_str()), ("8", "2"));
    let tuned = pages("[bootloader]\ncmdline_x=+hugepages=17000\n", ImportFormat::Tuned);
    assert_eq!(tuned.0, "17000");
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

#[test]
fn quotes_hold_a_kernel_argument_together() {
    let imported = read("isolcpus=\"2-7\" mitigations=\"auto nosmt\" quiet", ImportFormat::KernelArgs);
    assert_eq!(imported.lines.len(), 3, "{:?}", imported.lines);
    assert_eq!(*want(&imported, "boot.isolcpus"), Want::Text("2-7".to_owned()));
    assert_eq!(imported.lines[1].text, "mitigations=auto nosmt");
    assert!(!imported.lines[1].is_accepted());
}

#[test]
fn sysctl_takes_a_setting_in_one_word() {
    for (script, odd) in [
        ("sysctl -w vm.swappiness = 3\n", "vm.swappiness"),
        ("sysctl -w net.ipv4.tcp_rmem=4096 87380 16777216\n", "87380"),
    ] {
        let why = format!("1 - sysctl takes `name=value` as one word, or in quotes: `{odd}` is none");
        assert_eq!(told(&read(script, ImportFormat::Script)), [why]);
    }
    let quoted = read("sysctl -w net.ipv4.tcp_rmem='4096 87380 16777216'\n", ImportFormat::Script);
    assert_eq!(told(&quoted), ["1 net.ipv4.tcp_rmem"]);
}

#[test]
fn the_nearest_place_has_nearly_that_name() {
    let far = read("net.ipv4.conf.*.rp_filter = 1\n", ImportFormat::Sysctl);
    let why = "1 - no knob has this place: planish knobs lists those that there are";
    assert_eq!(told(&far), [why]);
}

#[test]
fn a_text_of_which_no_line_is_understood_is_no_script() {
    let passwd = "root:x:0:0:root:/root:/bin/bash\ndaemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin\n";
    for text in [passwd, "Dear all,\nplease tune it.\n"] {
        let refused = recognise(text, ImportFormat::guess(text));
        assert_eq!(refused, Err(ExchangeError::OtherFormat { format: ImportFormat::Script, fit: 0, all: 2 }));
    }
    for text in ["modprobe x\nsudo systemctl stop irqbalance\n", "x=1\nnumactl y\n", "#!/bin/sh\nnumactl y\n"]
    {
        assert_eq!(recognise(text, ImportFormat::Script), Ok(()), "{text}");
    }
}

#[test]
fn a_file_is_recognised_by_its_ending_or_its_text_and_else_by_nothing() {
    let script = "[ -f /x ] || exit 0\nif [ -f /sys/kernel/mm/ksm/run ]; then\n  echo 0 > /sys/kernel/mm/ksm/run\nfi\n";
    let odd = "modprobe x\n[ -f /x ] && y\n";
    for (path, text, format) in [
        ("-", script, ImportFormat::Script),
        ("thp.sh", script, ImportFormat::Script),
        ("own/blockdev", "blockdev --setra 4096 /dev/sda\n", ImportFormat::Script),
        ("x.sh", "x=1\n", ImportFormat::Script),
        ("own/x.sh", odd.replace("modprobe", "/sbin/sysctl").as_str(), ImportFormat::Script),
        ("/etc/sysctl.d/x.conf", "vm/swappiness = 1\n", ImportFormat::Sysctl),
        ("sysctl.d/x.conf", "w /sys/kernel/mm/ksm/run - - - - 0\n", ImportFormat::Tmpfiles),
        ("mine/tuned.conf", "[sysctl]\nvm.swappiness=1\n", ImportFormat::Tuned),
        ("x.txt", "isolcpus=2 quiet", ImportFormat::KernelArgs),
    ] {
        assert_eq!(recognise_file(text, path), Ok(format), "{path}: {text}");
    }
    let limits = "*        soft nofile 65536\n@dba     hard memlock unlimited\n";
    let error = recognise_file(limits, "/etc/security/limits.conf").expect_err("of no format");
    assert!(error.to_string().contains("a file of limits.conf"), "{error}");
    let odd = recognise_file("Dear all,\nplease tune it.\n", "letter").expect_err("of no format");
    let told = "no format was recognised: read as script, the likeliest, 0 of 2 lines that say something fit";
    assert_eq!(odd.to_string(), told);
    assert!(odd.cure().ends_with("--from FORMAT"));
    for format in [None, Some(ImportFormat::Script), Some(ImportFormat::Sysctl)] {
        let refused = match format {
            None => recognise_file("# limits\n*  soft  nofile  65536\n@dba hard memlock unlimited\n", "-")
                .map(drop),
            Some(format) => recognise("*\tsoft\tnofile\t65536\n", format),
        };
        let error = refused.expect_err("limits of logins");
        assert!(
            error.to_string().contains("a file of limits.conf") && error.cure().contains("unit.nofile"),
            "{error}"
        );
    }
}

#[test]
fn programs_are_known_by_their_paths_too_and_refused_for_true_reasons() {
    let text = "/sbin/sysctl -w vm.swappiness=5\n/usr/bin/sudo /usr/sbin/sysctl -q -w vm.stat_interval=10\n\
                /bin/echo 0 > /proc/sys/kernel/numa_balancing\n\
                echo 0 | sudo /usr/bin/tee /sys/kernel/mm/ksm/run >/dev/null\n\
                /usr/sbin/ethtool -G eno1 rx 512\n/sbin/blockdev --setra 4096 /dev/sda /dev/nvme0n1\n\
                blockdev --setra 4096 /dev/sda1\nblockdev --setra 4096 /dev/mapper/data\n\
                blockdev --setra 4097 /dev/sdb\n\
                blockdev --setro /dev/sdb\nulimit -n 65536\n/opt/tune.sh\nnumactl y\n\
                /opt/sbin/sysctl -w vm.swappiness=1\n";
    let imported = read(text, ImportFormat::Script);
    let lines = told(&imported);
    let knob = |row: usize| lines[row].split(' ').nth(1).unwrap_or_default();
    let known = ["vm.swappiness", "vm.stat_interval", "kernel.numa_balancing", "mm.ksm_run", "net.rings_rx"];
    for (row, id) in known.into_iter().chain(["block.read_ahead_kb"; 2]).enumerate() {
        assert_eq!(knob(row), id, "{lines:?}");
    }
    assert_eq!(
        cases(&imported, "block.read_ahead_kb"),
        [(Some("nvme0n1".to_owned()), "2048".to_owned()), (Some("sda".to_owned()), "2048".to_owned())]
    );
    assert_eq!(*want(&imported, "vm.swappiness"), Want::Int(5));
    for (row, why) in [
        (7, "names no disk"),
        (8, "names no disk"),
        (9, "no whole pages"),
        (10, "only --setra is known"),
        (11, "unit.nofile"),
        (12, "a program or script of its own"),
        (13, "of `numactl` planish does not know"),
        (14, "a program or script of its own"),
    ] {
        assert!(knob(row) == "-" && lines[row].contains(why), "{lines:?}");
    }
}

#[test]
fn places_are_named_as_a_profile_names_them() {
    let text = "w /sys/block/nvme0n1/queue/scheduler - - - - none\n\
                w /sys/block/sd*/queue/scheduler - - - - mq-deadline\n\
                w /sys/devices/system/cpu/cpu*/cpuidle/state3/disable - - - - 1\n\
                w /sys/devices/system/cpu/cpu*/cpuidle/state[2-9]/disable - - - - 1\nd /run/x - - -\n";
    let imported = read(text, ImportFormat::guess(text));
    assert_eq!(imported.format, ImportFormat::Tmpfiles);
    let Want::Cases(cases) = want(&imported, "block.scheduler") else { panic!("two disks") };
    let cases: Vec<_> = cases.iter().map(|case| (case.only.as_deref(), case.value.as_str())).collect();
    assert_eq!(cases, [(Some("sd*"), "mq-deadline"), (Some("nvme0n1"), "none")]);
    let Want::Case(case) = want(&imported, "cpu.idle_state_disable") else { panic!("one state") };
    assert_eq!(case.only.as_deref(), Some("state=3"));
    assert!(told(&imported)[3].contains("write one line for each"), "{:?}", told(&imported));
    assert!(told(&imported)[4].contains("only lines of type w"), "{:?}", told(&imported));
}

#[test]
fn arguments_of_the_kernel_are_boot_parameters() {
    let text = "isolcpus=domain,2-7 nohz_full=2-7 hugepagesz=1G hugepages=16 quiet";
    let imported = read(text, ImportFormat::guess(text));
    assert_eq!(imported.format, ImportFormat::KernelArgs);
    assert_eq!(*want(&imported, "boot.hugepages.1g"), Want::Int(16));
    assert_eq!(*want(&imported, "boot.nohz_full"), Want::Text("2-7".to_owned()));
    assert!(!imported.lines.last().expect("quiet").is_accepted());
}

#[test]
fn what_was_imported_is_a_profile_of_its_own() {
    for text in [
        SCRIPT,
        "w /sys/block/sd*/queue/scheduler - - - - bfq\nw /sys/block/nvme*/queue/scheduler - - - - none\n",
    ] {
        let imported = read(text, ImportFormat::guess(text));
        let again = CATALOGUE.parse_profile("mine.toml", &imported.to_toml()).expect("a profile");
        assert_eq!(again, imported.profile);
    }
    assert!(
        read(SCRIPT, ImportFormat::Script)
            .to_toml()
            .contains("# refused, line 15: systemctl stop irqbalance")
    );
}

proptest! {
    #[test]
    fn odd_files_are_refused_and_break_nothing(text in r#"([\[\]=#;$ \na-z/*.0-9>|'"-]{0,200})|((?s).{0,100})"#) {
        for format in [
            ImportFormat::Script, ImportFormat::Sysctl, ImportFormat::Tmpfiles,
            ImportFormat::Tuned, ImportFormat::Saptune, ImportFormat::KernelArgs,
        ] {
            let _ = recognise(&text, format);
            let imported = read(&text, format);
            let again = CATALOGUE.parse_profile("mine.toml", &imported.to_toml());
            prop_assert!(again.is_ok_and(|again| again == imported.profile), "{}", imported.to_toml());
        }
    }
}

#[test]
fn a_task_of_ansible_in_one_line_sets_what_it_says() {
    let text = "- hosts: all\n  tasks:\n  - name: swap\n    sysctl: name=vm.swappiness value=1 sysctl_set=yes\n\
                \x20 - ansible.posix.sysctl: name=net.ipv4.tcp_rmem value=\"4096 131072 16777216\"\n\
                \x20 - sysctl: name=vm.stat_interval state=absent\n  - sysctl: name=vm.stat_interval\n";
    let imported = read(text, ImportFormat::Ansible);
    let lines = told(&imported);
    assert_eq!(lines[..2], ["4 vm.swappiness", "5 net.ipv4.tcp_rmem"], "{lines:?}");
    assert!(lines[2].contains("takes a line out") && lines[3].contains("sets nothing"), "{lines:?}");
    assert_eq!(*want(&imported, "net.ipv4.tcp_rmem"), Want::Text("4096 131072 16777216".to_owned()));
}

#[test]
fn tasks_of_ansible_are_read_with_their_lines_and_no_template_is_filled_in() {
    let text = include_str!("../../../../../fuzz/seeds/import/ansible");
    assert_eq!(ImportFormat::guess(text), ImportFormat::Ansible);
    let imported = read(text, ImportFormat::Ansible);
    assert_eq!(
        told(&imported),
        [
            "8 vm.swappiness",
            "16 thp.enabled",
            "17 - makes or removes files: only lines of type w set a value",
            "22 - a template of Ansible: its values are not in this file",
            "26 boot.isolcpus may stall the host: --allow availability",
            "26 boot.nosmt may stall the host: --allow availability",
            "28 kernel.numa_balancing",
            "30 - a task of `package`, which sets nothing of the kernel",
        ]
    );
}

#[test]
fn tasks_of_a_block_are_steered_by_what_is_said_of_the_block() {
    let task = |indent: &str, value: u32| {
        format!("{indent}- sysctl:\n{indent}    name: vm.swappiness\n{indent}    value: {value}\n")
    };
    let text = format!(
        "- block:\n{}  when: ansible_memtotal_mb > 4096\n- block:\n{}  rescue:\n{}- hosts: all\n  handlers:\n{}",
        task("  ", 1),
        task("  ", 2),
        task("  ", 3),
        task("  ", 4)
    );
    let imported = read(&text, ImportFormat::Ansible);
    let elsewhere = "done where another task failed or changed something, which only Ansible can tell";
    assert_eq!(
        told(&imported),
        [
            "3 - done under a condition that only Ansible can tell".to_owned(),
            "8 vm.swappiness".to_owned(),
            format!("12 - {elsewhere}"),
            format!("17 - {elsewhere}"),
        ]
    );
}

#[test]
fn profiles_in_an_object_of_the_node_tuning_operator_are_read() {
    let text = include_str!("../../../../../fuzz/seeds/import/node-tuning");
    assert_eq!(ImportFormat::guess(text), ImportFormat::NodeTuning);
    let imported = read(text, ImportFormat::NodeTuning);
    assert_eq!(told(&imported), ["11 - includes another profile: import that one too", "14 vm.swappiness"]);
    let other = "kind: ConfigMap\ndata:\n  vm.swappiness: 1\n";
    for format in [ImportFormat::guess(other), ImportFormat::NodeTuning] {
        assert!(
            matches!(recognise(other, format), Err(ExchangeError::OtherKind { what: "YAML", .. })),
            "{format:?}"
        );
    }
    assert!(matches!(recognise("- a: [", ImportFormat::Ansible), Err(ExchangeError::Yaml(_))));
}

#[test]
fn rules_of_udev_set_what_they_ask_by_name_and_are_refused_where_they_ask_more() {
    let text = include_str!("../../../../../fuzz/seeds/import/udev");
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
            "/proc/sys/vm/swappiness = 1",
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
        ["5: sets nothing; what it may jump over is refused", "6: line 5 may have udev jump over it",]
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

/// A drop-in says what its unit gets, and its path which unit that is.
#[test]
fn a_drop_in_is_settings_of_the_unit_that_its_path_names() {
    let text = "# /etc/systemd/system/mongod.service.d/limits.conf\n[Service]\nLimitNOFILE=64K\nLimitNPROC=\n\
                LimitNPROC = 64000\nTasksMax=infinity\nCPUAffinity=1 2\nRestart=always\nNice=-5\nAllowedCPUs=3\n\
                OOMScoreAdjust=\n# /usr/lib/systemd/system/system.slice.d/x.conf\n[Slice]\nAllowedCPUs=\n\
                AllowedCPUs=0-3 \\\n  8\n";
    assert_eq!(ImportFormat::guess(text), ImportFormat::Unit);
    assert_eq!(recognise(text, ImportFormat::Unit), Ok(()));
    let imported = read(text, ImportFormat::Unit);
    let found: Vec<String> =
        imported.profile.want.iter().map(|(id, want)| format!("{id} {want:?}")).collect();
    for (id, only, value) in [
        ("unit.allowed_cpus", "system.slice", "0-3,8"),
        ("unit.nice", "mongod", "-5"),
        ("unit.nofile", "mongod", "65536"),
        ("unit.nproc", "mongod", "64000"),
        ("unit.tasks_max", "mongod", "infinity"),
    ] {
        let Want::Case(case) = want(&imported, id) else { panic!("{found:?}") };
        assert_eq!((case.only.as_deref(), case.value.as_str()), (Some(only), value), "{id}");
    }
    assert_eq!(found.len(), 5, "{found:?}");
    let told = told(&imported);
    for (line, why) in [
        (7, "[placement]"),
        (8, "no setting of units that planish has a knob for"),
        (10, "[placement]"),
        (11, "takes back what another file says"),
    ] {
        let start = format!("{line} - ");
        assert!(told.iter().any(|row| row.starts_with(&start) && row.contains(why)), "{line}: {told:?}");
    }
    // Without a path nobody knows the unit, and with one the text need not say it.
    let bare = "[Service]\nLimitNOFILE=5000\n";
    let nowhere = read(bare, ImportFormat::Unit);
    assert!(
        nowhere.profile.want.is_empty()
            && nowhere.lines[0].reason.as_ref().is_some_and(|why| { why.contains("of which unit") })
    );
    let path = "x/etc/systemd/system/redis.service.d/limits.conf";
    assert_eq!(recognise_file(bare, path), Ok(ImportFormat::Unit));
    let there = import_with(&CATALOGUE, "mine", bare, ImportFormat::Unit, None, Some(path));
    assert!(matches!(want(&there, "unit.nofile"), Want::Case(case) if case.only.as_deref() == Some("redis")));
}

/// The usual way to have a boot set a file below /sys: a unit that runs a shell.
#[test]
fn what_a_unit_has_a_shell_set_is_read_and_nothing_that_is_conditional_or_elsewhere() {
    let text = "[Unit]\nDescription=x\nAfter=y\n\n[Service]\nType=oneshot\nRemainAfterExit=yes\n\
                ExecStart=/bin/sh -c 'echo never | tee /sys/kernel/mm/transparent_hugepage/enabled > /dev/null'\n\
                ExecStart=/usr/sbin/sysctl -w vm.swappiness=1\nExecStart=/usr/bin/systemd-tmpfiles --create x.conf\n\
                ExecStart=/opt/tune.sh\nExecStop=/bin/sh -c 'echo 1 > /proc/sys/vm/stat_interval'\n\n[Install]\n\
                WantedBy=multi-user.target\n";
    let imported = read(text, ImportFormat::guess(text));
    assert_eq!(want(&imported, "thp.enabled"), &Want::Text("never".to_owned()));
    assert_eq!((want(&imported, "vm.swappiness"), imported.profile.want.len()), (&Want::Int(1), 2));
    let lines = |imported: &Imported| -> Vec<(usize, bool)> {
        imported.lines.iter().map(|row| (row.line, row.is_accepted())).collect()
    };
    assert_eq!(lines(&imported), [(8, true), (9, true), (11, false), (12, false)]);
    let some = text.replace("After=y", "ConditionPathExists=/x");
    let imported = read(&some, ImportFormat::Unit);
    assert_eq!(lines(&imported), [(8, false), (9, false), (10, false), (11, false), (12, false)]);
    assert!(
        told(&imported)[0].contains("runs only where ConditionPathExists=/x holds"),
        "{:?}",
        told(&imported)
    );
}

#[test]
fn a_script_that_writes_a_drop_in_is_read_line_by_line() {
    let text = "#!/bin/sh\nmkdir -p /etc/systemd/system/mongod.service.d\n\
                printf '%s\\n' '[Service]' 'LimitNOFILE=64000' > /etc/systemd/system/mongod.service.d/a.conf\n\
                systemctl daemon-reload\nmkdir -p /data\n\
                echo -e '[Service]\\nNice=5' > /etc/systemd/system/mongod.service.d/b.conf\n\
                printf '[Service]\\nNice=-5\\n' > /etc/systemd/system/mongod.service.d/c.conf\n\
                systemctl restart mongod\n";
    let imported = read(text, ImportFormat::Script);
    let rows: Vec<_> = imported.lines.iter().map(|row| (row.line, row.is_accepted())).collect();
    assert_eq!(rows, [(3, true), (5, false), (6, false), (7, true), (8, false)], "{:#?}", imported.lines);
    for (id, value) in [("unit.nofile", "64000"), ("unit.nice", "-5")] {
        let Want::Case(case) = want(&imported, id) else { panic!("{id}") };
        assert_eq!((case.only.as_deref(), case.value.as_str()), (Some("mongod"), value));
    }
}

/// Scripts, and of each line that is told the knob, or `-` where it is refused.
const SCRIPTS: &[(&str, &[&str])] = &[
    // Functions that are not called, and one that is.
    ("stop() {\n sysctl -w vm.swappiness=60\n}\nsysctl -w vm.swappiness=1\n", &["-", "vm.swappiness"]),
    ("start() { sysctl -w vm.swappiness=1; }\nstart\n", &["vm.swappiness"]),
    ("a() { sysctl -w vm.swappiness=1; }\ncase $1 in a) a;; esac\n", &["-"]),
    ("sysctl() { :; }\nsysctl -w vm.swappiness=1\n", &[]),
    // Texts.
    ("cat <<EOF > /tmp/x\nsysctl -w vm.swappiness=100\nEOF\n", &["-", "-"]),
    ("cat <<-'E'\n\techo 1\n\tE\nsysctl -w vm.swappiness=3\n", &["-", "-", "vm.swappiness"]),
    // What is never run, or only if.
    ("exit 0\nsysctl -w vm.swappiness=1\n", &["-"]),
    ("[ -f /x ] || exit 0\nsysctl -w vm.swappiness=1\n", &["-"]),
    ("false && sysctl -w vm.swappiness=100\n", &["-"]),
    ("true || sysctl -w vm.swappiness=100\n", &["-"]),
    ("[ \"$(nproc)\" -gt 64 ] && sysctl -w vm.swappiness=1\n", &["-"]),
    ("test -f /x || sysctl -w vm.swappiness=1\n", &["-"]),
    (
        "if grep -q x /y; then sysctl -w vm.swappiness=7\nelse sysctl -w vm.swappiness=8; fi\n",
        &["-", "-", "-"],
    ),
    ("if [ -d /x ]\nthen sysctl -w vm.swappiness=7\nfi\n", &["-"]),
    ("set -e\ngrep -q x /y\nsysctl -w vm.swappiness=7\n", &["-", "-"]),
    ("sysctl -w vm.swappiness=7 &\n", &["-"]),
    (
        "sysctl -w vm.stat_interval=3\neval sysctl -w vm.swappiness=7\n. /etc/x\ntrap 'echo 1' EXIT\n",
        &["vm.stat_interval", "-", "-", "-"],
    ),
    // Variables.
    ("V=10\nV=$((V+1))\nsysctl -w vm.swappiness=$V\n", &["vm.swappiness"]),
    ("V=10\nunset V\nsysctl -w vm.swappiness=$V\n", &["-"]),
    ("V=10\nread V\nsysctl -w vm.swappiness=$V\n", &["-"]),
    ("V=10\nV=$(nproc)\nsysctl -w vm.swappiness=$V\n", &["-"]),
    ("V=10\n( V=20 )\nsysctl -w vm.swappiness=$V\n", &["vm.swappiness"]),
    ("V=10\n[ -f /x ] && V=20\nsysctl -w vm.swappiness=$V\n", &["-"]),
    // What asks for no more than the write itself, and what comes behind a write.
    ("[ -w /proc/sys/vm/swappiness ] && echo 1 > /proc/sys/vm/swappiness\n", &["vm.swappiness"]),
    ("[[ -f /proc/sys/vm/swappiness ]] && sysctl -w vm.swappiness=1 || exit 1\n", &["vm.swappiness"]),
    ("if test -f /proc/sys/vm/swappiness; then\n echo 1 > /proc/sys/vm/swappiness\nfi\n", &["vm.swappiness"]),
    ("if [ -f /proc/sys/vm/swappiness ]; then sysctl -w vm.stat_interval=9; fi\n", &["-"]),
    ("[ \"$(id -u)\" -ne 0 ] && exit 1\nsysctl -w vm.swappiness=1\n", &["vm.swappiness"]),
    ("! mountpoint -q / || mount -o remount,noatime / || failed=1\n", &["mount.atime"]),
    ("sudo sh -c 'echo 1 > /proc/sys/vm/swappiness'\n", &["vm.swappiness"]),
    ("/usr/bin/env LC_ALL=C sysctl -w vm.swappiness=1\n", &["vm.swappiness"]),
    ("sudo -u nobody sysctl -w vm.swappiness=1\n", &["-"]),
    ("echo -e 1 > /proc/sys/vm/swappiness\n", &["-"]),
    ("#!/bin/bash\necho -e 1 > /proc/sys/vm/swappiness\n", &["vm.swappiness"]),
    // What no shell can read to its end.
    (
        "sysctl -w vm.swappiness=1\nif true; then\nsysctl -w vm.stat_interval=9\n",
        &["vm.swappiness", "-", "-"],
    ),
];

#[test]
fn a_script_is_taken_by_what_a_shell_does_and_each_line_is_told() {
    let unsure = "take it by hand if it is meant";
    for (script, rows) in SCRIPTS {
        let imported = read(script, ImportFormat::Script);
        let knobs: Vec<&str> =
            imported.lines.iter().map(|row| row.knob.as_ref().map_or("-", KnobId::as_str)).collect();
        assert_eq!(knobs, *rows, "{script}\n{:#?}", imported.lines);
    }
    let why = |script: &str| told(&read(script, ImportFormat::Script)).join("\n");
    let reason = format!("1 - runs only if `test -f /x` fails: {unsure}");
    assert_eq!(why("test -f /x || sysctl -w vm.swappiness=1\n"), reason);
    assert!(why("f() {\nsysctl -w vm.swappiness=1\n}\n").starts_with("2 - in the body of function f, "));
    assert_eq!(
        why("exit 0\nsysctl -w vm.swappiness=1\n"),
        "2 - never runs: `exit 0` of line 1 stands before it"
    );
    let sum = read("V=10\nV=$(((V+1)*2))\nsysctl -w vm.swappiness=$V\n", ImportFormat::Script);
    assert_eq!(*want(&sum, "vm.swappiness"), Want::Int(22));
}

/// A loop, a function or a quote that never ends must not end the program.
#[test]
fn scripts_of_any_depth_and_length_come_to_an_end() {
    let many = "a ".repeat(100);
    let loops =
        format!("for x in {many}; do for y in {many}; do for z in {many}; do sysctl -w vm.swappiness=1; ");
    let calls: String = (0..30).map(|n| format!("f{}() {{ f{n}; f{n}; }}\n", n + 1)).collect();
    for script in [
        format!("{loops}done; done; done\n"),
        format!("f0() {{ sysctl -w vm.swappiness=1; }}\n{calls}f12\n"),
        "for x in /sys/*; do ".repeat(30) + "sysctl -w vm.swappiness=1" + &"; done".repeat(30),
        "(".repeat(5000),
        "{ ".repeat(5000),
        "\"$(".repeat(5000),
        "if ".repeat(5000),
        "V=$(( ".to_owned() + &"(".repeat(5000) + "1" + &")".repeat(5000) + " ))\n",
        "f() { f; }\nf\n".to_owned(),
        "export V=0123456789\n".to_owned()
            + &"V=$V$V\n".repeat(60)
            + &"export V=$V$V\n".repeat(60)
            + "sysctl -w vm.swappiness=$V\n",
    ] {
        let imported = read(&script, ImportFormat::Script);
        assert!(imported.lines.iter().all(|row| row.is_accepted() || row.reason.is_some()));
    }
}

/// Each way to nest, and each command within: what is twice at every level must be counted, or 2^38 are walked.
#[test]
fn nested_loops_around_any_command_end_soon() {
    let inner = [
        "[[ a == b ]]",
        "(( 1 ))",
        ":",
        "V=1",
        "sysctl -w vm.swappiness=1",
        "if true; then :; fi",
        "if [ -f /x ]; then :; else :; fi",
        "while [ -f /x ]; do :; done",
        "until true; do :; done",
        "case $V in a) :;; *) :;; esac",
        "{ :; }",
        "( : )",
        "f() { :; }",
        "for w in 1 2; do :; done",
        "for w; do :; done",
        "for ((i = 0; i < 9; i++)); do :; done",
        "[ -f /x ] && :",
        "echo 1 | cat",
        ": &",
        "f",
        "sh -c 'for w in 1 2; do for v in 1 2; do [[ a == b ]]; done; done'",
    ];
    let loops =
        ["for v in /sys/block/*; do ", "for v in 1 2; do ", "for v in $(x); do ", "while [ -f /x ]; do "];
    for (around, command) in loops.iter().flat_map(|around| inner.map(|command| (around, command))) {
        let defined = if command == "f" { "f() { :; }\n" } else { "" };
        let script = defined.to_owned() + &around.repeat(38) + "\n" + command + "\n" + &"done; ".repeat(38);
        let started = std::time::Instant::now();
        let imported = read(&format!("{script}\nsysctl -w vm.dirty_ratio=5\n"), ImportFormat::Script);
        // A second even where the build is not optimized; what is not counted takes longer than anybody waits.
        assert!(started.elapsed().as_secs() < 10, "{around}{command}: {:?}", started.elapsed());
        assert!(imported.lines.iter().all(|row| row.is_accepted() || row.reason.is_some()));
    }
}

/// What is written once for each line must not be held against all the others.
#[test]
fn long_scripts_end_soon() {
    let many = |count: usize, line: &dyn Fn(usize) -> String| (0..count).map(line).collect::<String>();
    for script in [
        many(20_000, &|n| format!("V{n}=1\n[ -f /x ] && V{n}=2\n")),
        many(20_000, &|_| "grep -q x /y && ".to_owned()) + ":\n",
        many(20_000, &|_| "[ -e /proc ] || exit 1\nsysctl -w vm.swappiness=1\n".to_owned()),
        format!("for x in {}; do [ -f /x ] && : {}; done\n", "a ".repeat(4000), "b ".repeat(100_000)),
        format!("V={}\n: {}\n", "a ".repeat(2000), "$V".repeat(100_000)),
        format!("for x in 1 2 3; do\n{}done\n", "sh -c 'for y in 1 2 3; do :; done'\n".repeat(10_000)),
    ] {
        let started = std::time::Instant::now();
        let _ = read(&script, ImportFormat::Script);
        assert!(started.elapsed().as_secs() < 20, "{:.80}: {:?}", script, started.elapsed());
    }
}

#[test]
fn a_script_of_another_language_is_none() {
    for (first, program) in [
        ("#!/usr/bin/python3", Some("python3")),
        ("#! /usr/bin/env -S perl -w", Some("perl")),
        ("#!/usr/bin/env LC_ALL=C zsh", Some("zsh")),
        ("#!/bin/busybox sh", None),
        ("#!/usr/bin/env bash", None),
        ("#! /bin/sh -e", None),
        ("#!", None),
        ("# a comment", None),
    ] {
        let text = format!("{first}\nsysctl -w vm.swappiness=1\n");
        let wanted = program.map(|program| ExchangeError::OtherLanguage { interpreter: program.to_owned() });
        assert_eq!(recognise(&text, ImportFormat::Script).err(), wanted, "{first}");
    }
}

/// What is accepted of a text, as `line knob value`.
fn accepted(text: &str, format: ImportFormat) -> Vec<String> {
    let imported = read(text, format);
    let rows = imported.lines.iter().filter(|row| row.is_accepted());
    rows.map(|row| format!("{} {}", row.line, row.text)).collect()
}

#[test]
fn functions_have_the_words_that_they_are_called_with() {
    let text =
        "tune() {\n  sysctl -w \"$1=$2\"\n}\ntune vm.swappiness 7\ntune vm.stat_interval 9 && echo $1\n";
    let imported = read(text, ImportFormat::Script);
    let wanted = |key| imported.profile.want.get(&KnobId::new(key)).and_then(|want| want.literal());
    assert_eq!(wanted("vm.swappiness").as_deref(), Some("7"), "{:#?}", imported.lines);
    assert_eq!(wanted("vm.stat_interval").as_deref(), Some("9"), "{:#?}", imported.lines);
}

#[test]
fn told_to_stop_at_what_is_not_set_a_script_may_end_there() {
    let last = "\nsysctl -w vm.swappiness=7\n";
    for (before, is_sure) in [
        ("echo $1", true),
        ("set -u; echo $1", false),
        ("set -u; echo ${1:-}", true),
        ("set -u; f() { echo $1; }; f a", true),
        ("set -u; f() { echo $2; }; f a", false),
        ("set -u; f() { shift; echo $1; }; f a", false),
        ("set -u; [ -e /x ] && V=1; echo $V", false),
        ("set -u; V=0; [ -e /x ] && V=1; echo $V", true),
        ("set -u; V=0; if [ -e /x ]; then unset V; fi; echo $V", false),
        ("set -u; for v in $L; do :; done", false),
        ("set -u; N=$((M + 1))", false),
        ("set -u; f() { local w; }; f; echo $w", false),
    ] {
        let found = accepted(&format!("{before}{last}"), ImportFormat::Script);
        assert_eq!(found.iter().any(|row| row.starts_with('2')), is_sure, "{before}: {found:?}");
    }
}

#[test]
fn of_a_unit_that_is_taken_which_systemd_runs() {
    let good = "ExecStart=/sbin/sysctl -w vm.swappiness=7";
    for (text, taken) in [
        (format!("[Service]\nType=oneshot\n{good}\n"), vec![3]),
        (format!("[Service]\nType=oneshot\n{good}\n{good}\n"), vec![4]),
        (format!("[Service]\n{good}\n{good}\n"), vec![]),
        (format!("[Service]\nType=oneshot\n{good}\nExecStart=\n"), vec![]),
        (format!("[Service]\nType=oneshot\n{good}\nExecStart=\n{good}\n"), vec![5]),
        (format!("[Service]\nUser=nobody\n{good}\n"), vec![]),
        (format!("[Service]\nUser=root\n{good}\n"), vec![3]),
        (format!("[Service]\nDynamicUser=yes\n{good}\n"), vec![]),
        (format!("[Service]\nProtectKernelTunables=true\n{good}\n"), vec![]),
        (format!("[Service]\nExecCondition=/bin/false\n{good}\n"), vec![]),
        (format!("[Service]\n{good} && true\n"), vec![]),
        (format!("[Service]\n{good} ; /bin/true\n"), vec![]),
        ("[Service]\nExecStart=@/bin/sh sh -c 'sysctl -w vm.swappiness=7'\n".to_owned(), vec![2]),
    ] {
        let imported = read(&text, ImportFormat::Unit);
        let found: Vec<usize> =
            imported.lines.iter().filter(|row| row.is_accepted()).map(|row| row.line).collect();
        assert_eq!(found, taken, "{text}{:#?}", imported.lines);
    }
}

/// The kernel takes `010` for eight below `/proc/sys`, and a reader of decimals for ten.
#[test]
fn a_number_that_may_be_octal_is_refused() {
    let octal = "`010` begins with a zero, by which the kernel may read it as octal: write it without";
    for (text, format) in [
        ("sysctl -w vm.swappiness=010\n", ImportFormat::Script),
        ("echo 010 > /proc/sys/vm/nr_hugepages\n", ImportFormat::Script),
        ("vm.swappiness = 010\n", ImportFormat::Sysctl),
        ("net.ipv4.tcp_rmem = 4096 010 6291456\n", ImportFormat::Sysctl),
        ("[sysctl]\nvm.swappiness=010\n", ImportFormat::Tuned),
    ] {
        let imported = read(text, format);
        let why: Vec<_> = imported.lines.iter().map(|line| line.reason.as_deref()).collect();
        assert_eq!(why, [Some(octal)], "{text}");
        assert!(imported.profile.want.is_empty(), "{text}");
    }
    assert_eq!(*want(&read("vm.swappiness = 0\n", ImportFormat::Sysctl), "vm.swappiness"), Want::Int(0));
}

#[test]
fn printf_says_its_form_for_each_value() {
    for (form, rest, value) in [
        ("'%s\\n'", "4096 131072 6291456", Some("4096 131072 6291456")),
        ("'%s '", "4096 131072 6291456", Some("4096 131072 6291456")),
        ("%s", "'4096 131072 6291456'", Some("4096 131072 6291456")),
        ("%s", "4096 131072 6291456", None),
        ("%s,", "4096 131072 6291456", None),
    ] {
        let text = format!("printf {form} {rest} > /proc/sys/net/ipv4/tcp_rmem\n");
        let imported = read(&text, ImportFormat::Script);
        let want = imported.profile.want.get(&KnobId::new("net.ipv4.tcp_rmem"));
        assert_eq!(want, value.map(|value| Want::Text(value.to_owned())).as_ref(), "{text}");
        assert_eq!(imported.lines.len(), 1, "{text}");
    }
}
