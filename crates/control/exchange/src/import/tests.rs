//! What foreign files come to.

mod ansible;
mod boot;
mod saptune;
mod script;
mod sysctl;
mod tuned;
mod udev;
mod unit;

use std::sync::LazyLock;

use planish_model::{Catalogue, KnobId, Nodes, Want};
use proptest::prelude::*;

use super::*;
use crate::error::ExchangeError;

static CATALOGUE: LazyLock<Catalogue> = LazyLock::new(|| Catalogue::embedded().expect("sound"));

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
    let all = |pages: u64, nodes| Want::Total { total_bytes: pages << 21, nodes };
    let each = |pages: &[u64], nodes: &[u32]| Want::Totals {
        total_bytes: pages.iter().map(|pages| pages << 21).collect(),
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
        (overridden(&arguments), told(&arguments)[2].as_str()),
        (vec![(1, 1)], "1 - the kernel keeps isolcpus=2 of line 1")
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
fn odd_forms_of_tmpfiles_are_read_as_systemd_does() {
    let ksm = "/sys/kernel/mm/ksm/run";
    for (line, row) in [
        (r"w @ - - - - 1\n", "1 mm.ksm_run"),
        ("w '@' - - - - 1", "1 mm.ksm_run"),
        ("w~ @ - - - - MQ==", "1 mm.ksm_run"),
        (r"w @ - - - - 1\q", "1 - has an escape that systemd does not know, so that it passes the line over"),
        ("w^ @ - - - - tune", "1 - has its value in a credential (^), which only a host has"),
    ] {
        let imported = read(&line.replace('@', ksm), ImportFormat::Tmpfiles);
        assert_eq!(told(&imported), [row], "{line}");
        assert_eq!(!imported.profile.want.contains_key(&KnobId::new("mm.ksm_run")), row.contains(" - "));
    }
    let twice = format!("w /sys//kernel/mm/ksm/run - - - - 0\nw {ksm} - - - - 1\n");
    assert_eq!(overridden(&read(&twice, ImportFormat::Tmpfiles)), [(2, 1)]);
}

#[test]
fn brackets_of_a_path_are_those_of_the_profile() {
    for (path, row) in [
        ("/sys/devices/system/cpu/cpu[0-3]/cpufreq/scaling_governor", "cpu.governor Some(\"[0-3]\")"),
        ("/sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor", "cpu.governor None"),
        ("/sys/block/nvme[!0]n1/queue/scheduler", "block.scheduler Some(\"nvme[!0]n1\")"),
        ("/sys/block/nvme[0-9]*/queue/scheduler", "block.scheduler Some(\"nvme[0-9]*\")"),
        ("/sys/block/nvme[^0]n1/queue/scheduler", ""),
        ("/sys/block/sd[[:alpha:]]/queue/scheduler", ""),
    ] {
        let value = if row.starts_with("cpu") { "performance" } else { "none" };
        let imported = read(&format!("w {path} - - - - {value}\n"), ImportFormat::Tmpfiles);
        let only = |want: &Want| match want {
            Want::Case(case) => case.only.clone(),
            _ => None,
        };
        let found = imported.profile.want.iter().map(|(id, want)| format!("{id} {:?}", only(want)));
        assert_eq!(found.collect::<Vec<_>>().join(", "), row, "{path}");
    }
}

#[test]
fn braces_of_a_path_of_tmpfiles_are_each_of_their_paths() {
    let text = "w /sys/block/{sda,sdb}/queue/read_ahead_kb - - - - 64\n\
                w /sys/block/sdb/queue/read_ahead_kb - - - - 128\n";
    let imported = read(text, ImportFormat::Tmpfiles);
    let lines = told(&imported);
    assert_eq!(lines[..2], ["1 block.read_ahead_kb", "1 block.read_ahead_kb"], "{lines:?}");
    assert_eq!(overridden(&imported), [(2, 1)]);
}

#[test]
fn a_place_is_known_by_each_of_its_names() {
    for (path, row) in [
        ("/sys/devices/system/cpu/cpufreq/policy*/scaling_governor", "cpu.governor None performance"),
        ("/sys/devices/system/cpu/cpufreq/policy3/scaling_governor", "cpu.governor Some(\"3\") performance"),
        ("/sys/class/block/sda/queue/scheduler", "block.scheduler Some(\"sda\") none"),
        ("/sys/block/sda/bdi/read_ahead_kb", "block.read_ahead_kb Some(\"sda\") 128"),
    ] {
        let (row, value) = row.rsplit_once(' ').expect("three words");
        let imported = read(&format!("w {path} - - - - {value}\n"), ImportFormat::Tmpfiles);
        assert_eq!(imported.lines.len(), 1);
        let (id, only) = row.split_once(' ').expect("two");
        let own = match imported.profile.want.get(&KnobId::new(id)) {
            Some(Want::Case(case)) => case.only.clone(),
            Some(_) => None,
            None => panic!("{path}: {:?}", told(&imported)),
        };
        assert_eq!(format!("{own:?}"), only, "{path}");
    }
    // The pool of a node is none of all nodes by another name of its folder.
    let pool = "w /sys/bus/node/devices/node1/hugepages/hugepages-2048kB/nr_hugepages - - - - 8\n";
    let wanted = Want::Total { total_bytes: 16 << 20, nodes: Nodes::Each(vec![1]) };
    assert_eq!(*want(&read(pool, ImportFormat::Tmpfiles), "hugepages.2m"), wanted);
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
                #   sets how far a protection goes: --allow-knob kernel.randomize_va_space\n";
    assert!(written.starts_with(note), "{written}");
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

#[test]
fn a_word_in_other_letters_is_refused_and_leaves_the_others() {
    let text = "net.ipv4.tcp_congestion_control = BBR\nvm.swappiness = 10\n";
    let imported = read(text, ImportFormat::Sysctl);
    assert_eq!(
        told(&imported),
        ["1 - `BBR` is no word of net.ipv4.tcp_congestion_control; did you mean `bbr`?", "2 vm.swappiness",]
    );
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
fn the_nearest_place_has_nearly_that_name() {
    let far = read("net.ipv4.conf.*.rp_filter = 1\n", ImportFormat::Sysctl);
    let why = "1 - no knob has this place: planish knobs lists those that there are";
    assert_eq!(told(&far), [why]);
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
        ("x.txt", "quiet nosmt", ImportFormat::KernelArgs),
        ("x.txt", "quiet splash crashkernel=256M", ImportFormat::KernelArgs),
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
    // Any words could stand on a command line of the kernel.
    let words = recognise_file("foo bar baz\n", "x.txt").expect_err("of no format");
    assert!(words.to_string().starts_with("no format was recognised: "), "{words}");
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
fn places_are_named_as_a_profile_names_them() {
    let text = "w /sys/block/nvme0n1/queue/scheduler - - - - none\n\
                w /sys/block/sd*/queue/scheduler - - - - mq-deadline\n\
                w /sys/devices/system/cpu/cpu*/cpuidle/state3/disable - - - - 1\n\
                w /sys/devices/system/cpu/cpu*/cpuidle/state[^2]/disable - - - - 1\nd /run/x - - -\n";
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
fn of_several_profiles_in_an_object_one_is_read_or_none() {
    let object = |profiles: &[(&str, &str)], recommended: &[&str]| {
        let mut text = "kind: Tuned\nspec:\n  profile:\n".to_owned();
        for (name, data) in profiles {
            text += &format!("  - name: {name}\n    data: |\n");
            text.extend(data.lines().map(|line| format!("      {line}\n")));
        }
        text += if recommended.is_empty() { "" } else { "  recommend:\n" };
        text.extend(
            recommended.iter().map(|name| format!("  - match:\n    - label: {name}\n    profile: {name}\n")),
        );
        read(&text, ImportFormat::NodeTuning)
    };
    let a = ("a", "[sysctl]\nvm.swappiness=1\n");
    let b = ("b", "[sysctl]\nvm.dirty_ratio=7\n");
    let c = ("c", "[main]\ninclude=a\n[sysctl]\nvm.stat_interval=9\n");
    let wanted = |imported: &Imported| {
        imported.profile.want.keys().map(|id| id.as_str().to_owned()).collect::<Vec<_>>().join(" ")
    };
    for (profiles, recommended, keys) in [
        (&[a, b][..], &["a", "b"][..], ""),
        (&[a, b], &[], ""),
        (&[a, b], &["b"], "vm.dirty_ratio"),
        (&[a, c], &[], "vm.stat_interval vm.swappiness"),
        (&[a, c], &["a", "c"], "vm.stat_interval vm.swappiness"),
        (&[a, b, c], &["c"], "vm.stat_interval vm.swappiness"),
        (&[a, b, c], &["b", "c"], ""),
    ] {
        assert_eq!(wanted(&object(profiles, recommended)), keys, "{profiles:?} {recommended:?}");
    }
    let why = "each node gets one of a and b, by labels that are in no file: import a file with one of them";
    assert_eq!(told(&object(&[a, b], &["a", "b"])), [format!("6 - {why}"), format!("10 - {why}")]);
    let other = "6 - `recommend` gives no node this profile, and b does not include it";
    assert_eq!(told(&object(&[a, b], &["b"])), [other, "11 vm.dirty_ratio"]);
}

/// `/etc/default/grub`, which a shell reads: the last line for a name counts.
#[test]
fn what_the_boot_loader_is_told_by_default_is_read_as_arguments_of_the_kernel() {
    let text = "# If you change this file\nGRUB_DEFAULT=0\nGRUB_CMDLINE_LINUX_DEFAULT=\"quiet nosmt\" # x\n\
                GRUB_CMDLINE_LINUX=\"isolcpus=2-7\"\nGRUB_CMDLINE_LINUX='mitigations=off hugepagesz=1G'\n\
                GRUB_CMDLINE_LINUX_DEFAULT=\"$GRUB_CMDLINE_LINUX_DEFAULT hugepages=4\"\n\
                GRUB_CMDLINE_XEN=\"dom0_mem=1G\"\nGRUB_CMDLINE_LINUX_RECOVERY=single\n\
                if [ -e /x ]; then\n  GRUB_CMDLINE_XEN=wifi\nfi\nGRUB_CMDLINE_LINUX_XEN_REPLACE=$(x)\n";
    for path in ["/etc/default/grub", "/etc/default/grub.d/50-x.cfg", "x.txt"] {
        assert_eq!(recognise_file(text, path), Ok(ImportFormat::KernelArgs), "{path}");
    }
    let imported = read(text, ImportFormat::KernelArgs);
    let menu = "- how the boot loader works, and no argument of the kernel";
    assert_eq!(
        told(&imported),
        [
            format!("2 {menu}"),
            "3 - no knob is set by this argument of the kernel command line".to_owned(),
            "3 boot.nosmt may stall the host: --allow availability".to_owned(),
            "4 - line 5 says it anew".to_owned(),
            "5 boot.mitigations sets how far a protection goes: --allow-knob boot.mitigations".to_owned(),
            "6 boot.hugepages.1g may stall the host: --allow availability".to_owned(),
            "7 - arguments of other entries of the menu than those that a host boots by".to_owned(),
            "8 - arguments of other entries of the menu than those that a host boots by".to_owned(),
            "9 - only a shell can tell: read are lines of NAME=\"...\"".to_owned(),
            "10 - stands under a condition that only a shell can tell".to_owned(),
            "11 - only a shell can tell: read are lines of NAME=\"...\"".to_owned(),
            "12 - arguments of other entries of the menu than those that a host boots by".to_owned(),
        ]
    );
    assert_eq!(overridden(&imported), [(4, 5)]);
    for later in [
        "GRUB_CMDLINE_LINUX=$(x)",
        ". /etc/x",
        "[ -e /x ] && GRUB_CMDLINE_LINUX=quiet",
        "x; if y; then\nGRUB_CMDLINE_LINUX=quiet\nfi",
    ] {
        let imported = read(&format!("GRUB_CMDLINE_LINUX=nosmt\n{later}\n"), ImportFormat::KernelArgs);
        let first = &told(&imported)[0];
        assert!(first.starts_with("1 - line ") && first.ends_with("may say it anew"), "{later}: {first}");
        assert!(imported.profile.want.is_empty(), "{later}");
    }
    let error = recognise(text, ImportFormat::Script).expect_err("no script of settings");
    assert!(error.cure().contains("--from kernel-args"), "{error}");
}

/// What is accepted of a text, as `line knob value`.
fn accepted(text: &str, format: ImportFormat) -> Vec<String> {
    let imported = read(text, format);
    let rows = imported.lines.iter().filter(|row| row.is_accepted());
    rows.map(|row| format!("{} {}", row.line, row.text)).collect()
}

/// `sysfs_streq` compares the whole of it: nothing is set.
#[test]
fn a_choice_as_the_kernel_shows_it_is_none_that_it_takes() {
    const THP: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
    for (text, format) in [
        (format!("echo '[never]' > {THP}\n"), ImportFormat::Script),
        ("echo '[none] mq-deadline' > /sys/block/sda/queue/scheduler\n".to_owned(), ImportFormat::Script),
        (format!("w {THP} - - - - always [madvise] never\n"), ImportFormat::Tmpfiles),
        ("[sysfs]\n/sys/kernel/mm/transparent_hugepage/enabled=[always]\n".to_owned(), ImportFormat::Tuned),
        ("transparent_hugepage=[never]".to_owned(), ImportFormat::KernelArgs),
        ("[version]\nV=1\n[vm]\nTHP=[never]\n".to_owned(), ImportFormat::Saptune),
    ] {
        let imported = read(&text, format);
        assert!(imported.profile.want.is_empty(), "{text}");
        let rows = told(&imported);
        assert!(rows.len() == 1 && rows[0].contains("is how the kernel shows a choice"), "{rows:?}");
    }
    let why = "1 - `always [madvise] never` is how the kernel shows a choice: it takes madvise alone";
    assert_eq!(
        told(&read(&format!("w {THP} - - - - always [madvise] never\n"), ImportFormat::Tmpfiles)),
        [why]
    );
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

/// A plan of both is none: the governor keeps the energy hint at its own word.
#[test]
fn what_a_plan_would_refuse_beside_another_line_is_refused_by_name() {
    let text = "[cpu]\ngovernor=performance\nenergy_performance_preference=balance_performance\n";
    let imported = read(text, ImportFormat::Tuned);
    let why = "3 - cpu.epp: is wanted at balance_performance, and the kernel keeps it at performance while \
               cpu.governor is performance, as is wanted";
    assert_eq!(told(&imported), ["2 cpu.governor", why]);
    let calm = read(&text.replace("governor=performance", "governor=powersave"), ImportFormat::Tuned);
    assert_eq!(calm.profile.want.len(), 2, "{:?}", told(&calm));
    let all = read("echo isolated | tee /sys/fs/cgroup/*/cpuset.cpus.partition\n", ImportFormat::Script);
    assert!(all.profile.want.is_empty(), "{:?}", told(&all));
    for imported in [imported, calm, all] {
        let again =
            CATALOGUE.parse_profile("mine.toml", &imported.to_toml()).expect("a profile that is planned");
        assert_eq!(again, imported.profile);
    }
}

/// arm64 with pages of 64 KiB has 512 MiB, x86 with `default_hugepagesz=1G` one GiB.
#[test]
fn pages_of_a_pool_without_a_size_are_told_to_be_of_the_default_size() {
    let taken = "a pool: raised to this size, and never lowered; pages of the default size, taken for 2M";
    for (text, format) in [
        ("echo 16 > /proc/sys/vm/nr_hugepages\n", ImportFormat::Script),
        ("vm.nr_hugepages = 16\n", ImportFormat::Sysctl),
        ("vm.nr_hugepages_mempolicy = 16\n", ImportFormat::Sysctl),
        ("[sysctl]\nvm.nr_hugepages=16\n", ImportFormat::Tuned),
    ] {
        let imported = read(text, format);
        let why: Vec<_> = imported.lines.iter().map(|line| line.reason.as_deref()).collect();
        assert_eq!(why, [Some(taken)], "{text}");
    }
    let sized = "echo 16 > /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages\n";
    assert!(!told(&read(sized, ImportFormat::Script))[0].contains("default size"));
}

/// Interrupts move with the service that they belong to: a profile of them alone has no plan.
#[test]
fn interrupts_without_their_service_are_refused_at_their_line() {
    let script = "for i in /proc/irq/*/smp_affinity_list; do echo 0 > $i; done\nsysctl -w vm.swappiness=1\n";
    let imported = read(script, ImportFormat::Script);
    let found = told(&imported);
    assert!(found[0].starts_with("1 - irq.affinity is wanted without the service"), "{found:?}");
    assert_eq!(found[1..], ["2 vm.swappiness"]);
    assert_eq!(imported.profile.want.len(), 1);
}

#[test]
fn files_of_several_formats_in_one_text_are_told_as_such() {
    let sysctl = "# /etc/sysctl.d/90-x.conf\nvm.swappiness = 1\n";
    let unit =
        "# /etc/systemd/system/x-settings.service\n[Service]\nExecStart=/usr/bin/systemd-tmpfiles --create\n";
    // A file that begins with its own path is one.
    let all = format!("{sysctl}# /etc/systemd/system/x-settings.service\n{unit}");
    let error = recognise_file(&all, "-").expect_err("two formats");
    assert!(
        error.to_string().ends_with(": /etc/sysctl.d/90-x.conf, /etc/systemd/system/x-settings.service"),
        "{error}"
    );
    assert!(error.cure().contains("--output DIR"), "{}", error.cure());
    assert_eq!(recognise_file(sysctl, "-"), Ok(ImportFormat::Sysctl));
    let cat = "# /usr/lib/systemd/system/a.service\n[Service]\nNice=1\n# /etc/systemd/system/a.service.d/b.conf\n\
               [Service]\nNice=2\n";
    assert_eq!(recognise_file(cat, "-"), Ok(ImportFormat::Unit));
    // What an editor puts in front is no part of the first key.
    assert_eq!(text_of(b"\xef\xbb\xbfvm.swappiness = 1\n"), "vm.swappiness = 1\n");
}

/// Each was refused with a reason that is not so: the first two the kernel takes, and `check` knows both.
#[test]
fn what_is_refused_or_taken_is_what_the_kernel_makes_of_it() {
    let read_one = |text: &str, format| told(&read(text, format)).join("; ");
    for (text, format, rows) in [
        (
            "sysctl.vm.swappiness=3 quiet",
            ImportFormat::KernelArgs,
            "1 vm.swappiness; 1 - no knob is set by this",
        ),
        ("sysctl.net/core/somaxconn=0x100", ImportFormat::KernelArgs, "1 net.core.somaxconn"),
        ("sysctl.vm.swapiness=3", ImportFormat::KernelArgs, "1 - no knob has this place; the nearest is "),
        (
            "vm.nr_overcommit_hugepages = 20\n",
            ImportFormat::Sysctl,
            "1 hugepages.2m.overcommit may stall the host: --allow availability; pages of the default size",
        ),
        ("kernel.pid_max = 0x400000\n", ImportFormat::Sysctl, "1 kernel.pid_max"),
        ("net.ipv4.tcp_rmem = 0x1000 131072 0X600000\n", ImportFormat::Sysctl, "1 net.ipv4.tcp_rmem"),
        ("kernel.pid_max = 0x\n", ImportFormat::Sysctl, "1 - `0x` is no whole number"),
        (
            "w /sys/block/sda/queue/nr_requests - - - - 0x10\n",
            ImportFormat::Tmpfiles,
            "1 - `0x10` is no whole number",
        ),
        (
            "SUBSYSTEM==\"cpu\", ATTR{cpufreq/scaling_governor}=\"performance\"\n",
            ImportFormat::Udev,
            "1 - of SUBSYSTEM==\"cpu\" no files are read of rules",
        ),
        (
            "ATTR{queue/scheduler}=\"none\"\n",
            ImportFormat::Udev,
            "1 - of which kind of device it is, the rule does not say",
        ),
    ] {
        let found = read_one(text, format);
        assert!(found.starts_with(rows), "{text}: {found}");
    }
    assert_eq!(ImportFormat::guess("sysctl.vm.swappiness=3\n"), ImportFormat::KernelArgs);
    let hex =
        read("kernel.pid_max = 0x400000\nnet.ipv4.tcp_rmem = 0x1000 131072 0X600000\n", ImportFormat::Sysctl);
    assert_eq!(*want(&hex, "kernel.pid_max"), Want::Int(4_194_304));
    assert_eq!(*want(&hex, "net.ipv4.tcp_rmem"), Want::Text("4096 131072 6291456".to_owned()));
    let pages = read(
        "hugepages=4 default_hugepagesz=1G sysctl.vm.nr_overcommit_hugepages=2",
        ImportFormat::KernelArgs,
    );
    assert_eq!(*want(&pages, "hugepages.1g.overcommit"), Want::Int(2));
}
