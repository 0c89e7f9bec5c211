//! One test for each exit code of the contract, and for what a command must survive.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use planish_sys::lock::{LockFile, TryLock};

use crate::planish::{Run, Sandbox, command, run};
use crate::recorded::{copy_tree, repository};

/// A writable copy of a two-socket server and a state folder, with a profile of two knobs.
pub fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    copy_tree(&repository().join("hosts/metal-2s"), &sandbox.path().join("host"));
    let profiles = sandbox.path().join("state/etc/profiles");
    std::fs::create_dir_all(&profiles).expect("a folder");
    let two = "name = \"two\"\nsummary = \"s\"\n[want]\n\"vm.stat_interval\" = 10\n\"vm.swappiness\" = 5\n";
    std::fs::write(profiles.join("two.toml"), two).expect("a profile");
    sandbox
}

/// Adds a rule by which the copy answers writes.
fn answer(sandbox: &Path, place: &str, rule: &str) {
    let path = sandbox.join("host/meta.toml");
    let meta = std::fs::read_to_string(&path).expect("a description");
    std::fs::write(&path, format!("{meta}\n[[answer]]\nplace = \"{place}\"\n{rule}\n"))
        .expect("a description");
}

pub fn on(sandbox: &Path, args: &[&str]) -> Run {
    let globals = ["--json", "--root", "host", "--state", "state"];
    command(sandbox, [&globals, args].concat()).output().expect("the binary starts").into()
}

/// The first message of the wanted level.
pub fn message(run: &Run, level: &str) -> String {
    let messages = run.envelope()["messages"].clone();
    let found =
        messages.as_array().expect("messages").iter().find(|message| message["level"] == level).cloned();
    found.unwrap_or_else(|| panic!("no {level} in {messages}"))["text"].as_str().expect("a text").to_owned()
}

#[test]
fn exit_0_is_done_and_nothing_to_undo_too() {
    let sandbox = sandbox();
    for args in [&["apply", "two", "--yes"][..], &["apply", "two", "--yes"], &["undo"], &["undo"]] {
        let run = on(sandbox.path(), args);
        assert_eq!(run.exit, 0, "{args:?}: {}", run.stdout);
    }
}

#[test]
fn exit_1_is_drift() {
    assert_eq!(on(sandbox().path(), &["check", "two"]).exit, 1);
}

#[test]
fn a_check_with_every_detail_does_not_propose_itself() {
    let sandbox = sandbox();
    assert_eq!(on(sandbox.path(), &["apply", "two", "--yes"]).exit, 0);
    std::fs::write(sandbox.path().join("host/proc/sys/vm/swappiness"), "42\n").expect("a file");
    let next = |args: &[&str]| {
        let run = on(sandbox.path(), args);
        assert_eq!(run.exit, 1, "{}", run.stdout);
        message(&run, "next")
    };
    assert_eq!(next(&["check"]), "planish --root host --state state check --verbose");
    assert_eq!(next(&["check", "--verbose"]), "planish --root host --state state plan two");
}

#[test]
fn exit_2_is_usage_and_names_what_was_meant() {
    let run = on(sandbox().path(), &["plan", "tow"]);
    assert_eq!((run.exit, message(&run, "error").as_str()), (2, "no profile `tow`; did you mean `two`?"));
}

/// The nearest id of nothing is a random one.
#[test]
fn an_empty_word_is_no_typing_error_of_a_knob() {
    for word in ["", " ", "*"] {
        let run = on(sandbox().path(), &["knobs", word]);
        let told = message(&run, "error");
        assert!(run.exit == 2 && !told.contains("did you mean"), "{told}");
        assert!(told.contains("is no id, and no word"), "{told}");
    }
}

#[test]
fn a_missing_file_and_a_number_out_of_bounds_are_usage_for_every_command() {
    let sandbox = sandbox();
    for args in [
        &["trial", "run", "/missing.toml"][..],
        &["trial", "selfcheck", "/missing.toml"],
        &["plan", "/missing.toml"],
        &["apply", "./missing.json", "--yes"],
        &["size", "--bytes", "18446744073709551615"],
        &["size", "--bytes", "1025T"],
        &["size", "--regions", "2,1023T"],
    ] {
        let run = command(sandbox.path(), args).output().map(Run::from).expect("the binary starts");
        assert_eq!(run.exit, 2, "{args:?}: {}", run.stderr);
    }
    let run = on(sandbox.path(), &["size", "--bytes", "1024T"]);
    assert_eq!(run.exit, 1, "{}", run.stdout);
}

/// Writes a profile of the sandbox.
fn profile(sandbox: &Path, name: &str, want: &str) {
    let text = format!("name = \"{name}\"\nsummary = \"s\"\n[want]\n{want}\n");
    std::fs::write(sandbox.join(format!("state/etc/profiles/{name}.toml")), text).expect("a profile");
}

#[test]
fn exit_3_is_a_pool_that_memory_cannot_give_told_by_plan_apply_and_check() {
    let sandbox = sandbox();
    let pool = "\"hugepages.2m\" = { need_bytes = 214748364800 }\n\"vm.stat_interval\" = 10";
    profile(sandbox.path(), "pool", pool);
    let planned = on(sandbox.path(), &["plan", "pool", "-o", "pool.json"]);
    assert!(!sandbox.path().join("pool.json").exists(), "what is refused is saved nowhere");
    let by_profile = on(sandbox.path(), &["apply", "pool", "--yes"]);
    for refused in [&by_profile, &planned] {
        assert_eq!(refused.exit, 3, "{}", refused.stdout);
        let told = message(refused, "error");
        assert!(told.contains("hugepages.2m: 200 GiB is more than the "), "{told}");
        assert!(refused.stdout.contains("--exclude hugepages.2m"), "{}", refused.stdout);
    }
    assert_eq!(message(&by_profile, "error"), message(&planned, "error"));
    let checked = on(sandbox.path(), &["check", "pool"]);
    assert_eq!(checked.exit, 1, "{}", checked.stdout);
    assert!(checked.stdout.contains("pages are there: 200 GiB is more than the "), "{}", checked.stdout);
    let next = message(&on(sandbox.path(), &["plan", "pool"]), "next");
    assert_eq!(next, "planish --root host --state state plan pool --exclude hugepages.2m");
    let rest = on(sandbox.path(), &["apply", "pool", "--yes", "--exclude", "hugepages.2m"]);
    assert_eq!(rest.exit, 0, "{}", rest.stdout);
    assert!(rest.stdout.contains("hugepages.2m x2 is not set: "), "{}", rest.stdout);
}

#[test]
fn exit_3_is_what_this_host_cannot_be_made_told_by_plan_and_apply_and_nothing_is_written() {
    let sandbox = sandbox();
    let other = "\"vm.stat_interval\" = 10";
    for (want, told) in [
        ("\"hugepages.2m\" = { need_bytes = 900000000000 }", "hugepages.2m: 838.2 GiB is more than the "),
        (
            "\"hugepages.2m\" = { need_bytes = 147400000000, nodes = [0] }",
            "hugepages.2m: node 0: 137.3 GiB is more than the ",
        ),
        ("\"hugepages.2m\" = { need_bytes = 96636764160, nodes = [1] }", "hugepages.2m: node 1: 90 GiB "),
        (
            "\"vm.dirty_background_bytes\" = 2097152\n\"vm.dirty_bytes\" = 1048576",
            "vm.dirty_background_bytes = 2097152 and vm.dirty_bytes = 1048576 speak against each other",
        ),
        ("\"boot.hugepages.1g\" = 9999", "boot.hugepages.1g: "),
        ("\"boot.isolcpus\" = \"0-7\"", "boot.isolcpus: `0-7` leaves none of the 8 CPUs"),
        ("\"boot.isolcpus\" = \"0\"", "boot.isolcpus: `0` takes CPU 0"),
        ("\"boot.nohz_full\" = \"0-3\"", "boot.nohz_full: `0-3` takes CPU 0"),
        ("\"boot.isolcpus\" = \"5-99\"", "boot.isolcpus names CPU 8-99, and this host has CPU 0-7"),
        ("\"boot.irqaffinity\" = \"99\"", "boot.irqaffinity names CPU 99"),
        ("\"irq.default_affinity\" = \"fffffff\"", "irq.default_affinity names CPU 8-27"),
        ("\"irq.affinity\" = \"1\"", "irq.affinity is wanted without the service"),
        (
            "\"vm.min_free_kbytes\" = 200000000",
            "vm.min_free_kbytes: 190.7 GiB of 256 GiB would be for nobody",
        ),
        ("\"vm.watermark_scale_factor\" = 3000", "vm.watermark_scale_factor: reclaim would keep"),
        ("\"cpu.online\" = 0", "cpu.online: of 8 CPUs "),
        (
            "\"cpu.uncore_elc_floor_khz\" = 9000000",
            "cpu.uncore_elc_floor_khz: this device takes 2500000 at most",
        ),
        (
            "\"net.rps_flow_cnt\" = 536870912",
            "net.rps_flow_cnt: its tables would take 36 GiB of the kernel's own",
        ),
        ("\"block.nr_requests\" = 2049", "block.nr_requests: a queue with a scheduler takes 2048"),
        ("\"kernel.shmmni\" = 1000000", "kernel.shmmni: 1000000 are wanted, and this kernel has 32768"),
        ("\"net.ipv4.ip_local_port_range\" = \"1000 65535\"", "port 1000 needs a privilege"),
        ("\"boot.hugetlb_cma\" = \"0:1G,9:1G\"", "boot.hugetlb_cma: this host has no memory on node 9"),
        ("\"boot.thp_anon\" = \"1G:always\"", "boot.thp_anon: this kernel has no such pages of 1 GiB"),
        ("\"cpu.min_freq_khz\" = 9000000", "cpu.min_freq_khz: 9000000 is not among "),
    ] {
        profile(sandbox.path(), "ruin", &format!("{want}\n{other}"));
        let allow = ["--allow", "availability,durability"];
        for words in [
            &["plan", "ruin", "-o", "ruin.json"][..],
            &["apply", "ruin", "--yes"],
            &["apply", "ruin", "--yes", "--persist"],
        ] {
            let run = on(sandbox.path(), &[words, &allow].concat());
            assert_eq!(run.exit, 3, "{words:?} {want}: {}", run.stdout);
            let error = message(&run, "error");
            assert!(error.contains(told), "{words:?} {want}: {error}");
        }
        assert!(!sandbox.path().join("ruin.json").exists(), "{want}");
    }
    let read = |path: &str| std::fs::read_to_string(sandbox.path().join("host").join(path)).ok();
    assert_eq!(read("etc/default/grub.d/90-planish.cfg"), None);
    assert_eq!(read("proc/sys/vm/stat_interval").expect("a file").trim(), "1");
    let log = on(sandbox.path(), &["log"]).envelope();
    assert_eq!(log["result"]["entries"].as_array().map(Vec::len), Some(0), "{log}");
    // The rest of it is another plan, which whoever asks has to ask for.
    let rest = on(sandbox.path(), &["apply", "ruin", "--yes", "--exclude", "cpu.min_freq_khz"]);
    assert_eq!(rest.exit, 0, "{}", rest.stdout);
}

/// What the kernel takes, and what the row says of its value: no floor at all.
#[test]
fn a_floor_of_0_is_planned_and_comes_back() {
    let sandbox = sandbox();
    profile(sandbox.path(), "floor", "\"cpu.uncore_elc_floor_khz\" = 0");
    let file = "host/sys/devices/system/cpu/intel_uncore_frequency/uncore00/elc_floor_freq_khz";
    let floor = || std::fs::read_to_string(sandbox.path().join(file)).expect("it is recorded");
    let before = floor();
    let applied = on(sandbox.path(), &["apply", "floor", "--yes"]);
    assert_eq!((applied.exit, floor().trim()), (0, "0"), "{}", applied.stdout);
    assert_eq!(on(sandbox.path(), &["undo"]).exit, 0);
    assert_eq!(floor(), before);
}

#[test]
fn a_plan_file_that_would_ruin_the_host_is_refused_whoever_made_it() {
    let sandbox = sandbox();
    profile(sandbox.path(), "free", "\"vm.min_free_kbytes\" = 1048576");
    let plan = ["plan", "free", "-o", "free.json", "--allow", "availability"];
    assert_eq!(on(sandbox.path(), &plan).exit, 0);
    // The host of another moment: most of its memory is in use now.
    let meminfo = sandbox.path().join("host/proc/meminfo");
    let text = std::fs::read_to_string(&meminfo).expect("a file");
    let is_available = |line: &&str| line.starts_with("MemAvailable:");
    let line = text.lines().find(is_available).expect("a line").to_owned();
    std::fs::write(&meminfo, text.replace(&line, "MemAvailable:    1048576 kB")).expect("a file");
    let run = on(sandbox.path(), &["apply", "./free.json", "--yes"]);
    assert_eq!(run.exit, 3, "{}", run.stdout);
    assert!(
        message(&run, "error").contains("would be kept free, and only 1 GiB are available"),
        "{}",
        run.stdout
    );
}

#[test]
fn parents_that_do_not_agree_are_usage_and_both_are_named() {
    let sandbox = sandbox();
    let text = "name = \"own\"\nsummary = \"s\"\ninherits = [\"redis\", \"hana\"]\n";
    std::fs::write(sandbox.path().join("own.toml"), text).expect("a profile");
    for words in [&["plan", "./own.toml"][..], &["apply", "./own.toml", "--yes"], &["check", "./own.toml"]] {
        let run = on(sandbox.path(), words);
        assert_eq!(run.exit, 2, "{words:?}: {}", run.stdout);
        let error = message(&run, "error");
        assert!(
            error.contains("./own.toml:3:22: ") && error.contains(" otherwise by two parents"),
            "{error}"
        );
        assert!(
            error.contains("`redis`") && error.contains("`hana`") && !error.contains("catalogue/"),
            "{error}"
        );
    }
}

/// A service that is given more files than any process may have does not start, nor does any other one of systemd.
#[test]
fn exit_3_is_a_highest_limit_of_files_below_what_services_are_given() {
    let sandbox = sandbox();
    let given = |files: &str| format!("\"unit.nofile\" = {{ value = \"{files}\", only = \"redis-server\" }}");
    for (want, told) in [
        ("\"fs.nr_open\" = 100000".to_owned(), "systemd gives 1024:524288 to all units by itself"),
        (format!("\"fs.nr_open\" = 100000\n{}", given("900000")), "redis-server.service.d/"),
        (given("99999999999"), "99999999999 are more than any process may have: fs.nr_open is "),
    ] {
        profile(sandbox.path(), "files", &want);
        let options = ["--allow", "availability"];
        let planned = on(sandbox.path(), &[&["plan", "files"][..], &options].concat());
        let applied = on(sandbox.path(), &[&["apply", "files", "--yes"][..], &options].concat());
        for run in [planned, applied] {
            assert!(run.exit == 3 && message(&run, "error").contains(told), "{want}: {}", run.stdout);
        }
    }
    profile(sandbox.path(), "files", &format!("\"fs.nr_open\" = 2000000000\n{}", given("1900000000")));
    let both = on(sandbox.path(), &["apply", "files", "--yes"]);
    assert_eq!(both.exit, 0, "{}", both.stdout);
    // Files that came since the plan was made are seen by its apply.
    profile(sandbox.path(), "files", "\"fs.nr_open\" = 600000");
    let allowed = ["plan", "files", "--allow", "availability", "-o", "plan.json"];
    assert_eq!(on(sandbox.path(), &allowed).exit, 3, "a service has 1900000000");
    assert_eq!(on(sandbox.path(), &["undo", "--all"]).exit, 0);
    assert_eq!(on(sandbox.path(), &allowed).exit, 0);
    let users = sandbox.path().join("host/etc/security");
    std::fs::create_dir_all(&users).expect("room");
    std::fs::write(users.join("limits.conf"), "* hard nofile 700000\n").expect("room");
    let late = on(sandbox.path(), &["apply", "plan.json", "--yes"]);
    assert!(message(&late, "error").contains("limits.conf:1 gives 700000"), "{}", late.stdout);
}

#[test]
fn an_export_that_is_refused_names_the_profile_as_a_plan_does() {
    let sandbox = sandbox();
    profile(sandbox.path(), "large", "\"vm.dirty_bytes\" = 5368709120000");
    let [planned, exported] = [&["plan", "large"][..], &["export", "sysctl", "large"]].map(|words| {
        let run = on(sandbox.path(), words);
        assert_eq!(run.exit, 3, "{}", run.stdout);
        run.envelope()["messages"][0]["hint"].to_string()
    });
    assert!(planned.contains("plan large --exclude vm.dirty_bytes"), "{planned}");
    assert_eq!(planned, exported);
}

/// Of disks rules of udev say which of two values counts; elsewhere nothing is wrong with what was typed.
#[test]
fn values_that_overlap_go_out_by_rules_or_are_refused_with_a_format_that_takes_them() {
    let sandbox = sandbox();
    let both = |id: &str, narrow: &str, wide: &str| {
        let case = |value: u32, only: &str| format!("{{ value = {value}, only = \"{only}\" }}");
        profile(sandbox.path(), "both", &format!("\"{id}\" = [{}, {}]", case(64, narrow), case(512, wide)));
    };
    both("block.read_ahead_kb", "nvme0n1", "nvme*");
    let out = on(sandbox.path(), &["export", "sysctl", "both", "-o", "out"]);
    assert_eq!(out.exit, 0, "{}", out.stdout);
    let rules =
        std::fs::read_to_string(sandbox.path().join("out/etc/udev/rules.d/90-both.rules")).expect("rules");
    let values: Vec<&str> =
        rules.lines().filter_map(|line| line.split_once("read_ahead_kb}=")).map(|(_, v)| v).collect();
    assert_eq!(values, ["\"512\"", "\"64\""], "the last one counts");
    assert!(!sandbox.path().join("out/etc/tmpfiles.d").exists());
    let installed = out.envelope()["messages"].to_string();
    assert!(installed.contains("udevadm trigger --action=change --subsystem-match=block"), "{installed}");
    for format in ["tuned", "ansible", "node-tuning"] {
        let refused = on(sandbox.path(), &["export", format, "both"]);
        assert_eq!(refused.exit, 3, "{}", refused.stdout);
        assert!(refused.stdout.contains("export script both"), "{}", refused.stdout);
    }
    both("net.tx_queue_len", "eno1", "e*");
    assert_eq!(on(sandbox.path(), &["export", "sysctl", "both"]).exit, 3);
    assert_eq!(on(sandbox.path(), &["export", "script", "both"]).exit, 0);
}

/// Each was accepted, and the plan of the profile refused as a whole.
#[test]
fn what_a_plan_refuses_of_a_profile_is_refused_at_its_line_by_import() {
    let sandbox = sandbox();
    let lines = [
        "[cpu]",
        "governor=performence",
        "[sysctl]",
        "vm.swappiness=7",
        "net.ipv4.tcp_congestion_control=bbrr",
        "vm.dirty_background_bytes=629145600",
        "vm.dirty_bytes=1048576",
        "[acpi]",
        "platform_profile=fast",
        "[sysfs]",
        "/sys/devices/system/clocksource/clocksource0/current_clocksource=tscc",
        "/sys/block/nmve*/queue/nomerges=2",
    ];
    let text = format!("[main]\nsummary=x\n{}\n", lines.join("\n"));
    let read = |name: &str, text: &str| {
        std::fs::write(sandbox.path().join(name), text).expect("room");
        on(sandbox.path(), &["import", name, "-o", &format!("{name}.toml")])
    };
    let imported = read("tuned.conf", &text);
    assert_eq!(imported.exit, 0, "{}", imported.stdout);
    let result = imported.envelope()["result"].clone();
    let told = |word: &str| {
        let rows = result["lines"].as_array().expect("lines").iter();
        let row = rows.clone().find(|row| row["text"].as_str().is_some_and(|text| text.contains(word)));
        row.unwrap_or_else(|| panic!("{word}: {result}")).clone()
    };
    for (word, why) in [
        ("governor", "`performence` is no word of cpu.governor; did you mean `performance`?"),
        ("tcp_congestion", "`bbrr` is no word of net.ipv4.tcp_congestion_control; did you mean `bbr`?"),
        ("dirty_background_bytes", "speak against each other: the first is the lowest"),
        ("dirty_bytes", "speak against each other: the first is the lowest"),
        ("platform_profile", "`fast` is no word of "),
        ("tscc", "`tscc` is no word of clock.source; did you mean `tsc`?"),
        ("nmve", "no place of block.nomerges matches `nmve*`; did you mean `nvme*`?"),
    ] {
        let row = told(word);
        let reason = row["reason"].as_str().unwrap_or_default();
        assert!(row["knob"].is_null() && reason.contains(why), "{row}");
    }
    assert_eq!(told("swappiness")["knob"], "vm.swappiness");
    assert_eq!(on(sandbox.path(), &["plan", "./tuned.conf.toml"]).exit, 0);
    // What the kernel would refuse changes nothing: a line before it counts.
    let script = "echo powersave > /sys/devices/system/cpu/cpu0/cpufreq/scaling_governor\n\
                  echo powersafe > /sys/devices/system/cpu/cpu0/cpufreq/scaling_governor\n";
    let first = read("late.sh", script).envelope()["result"].clone();
    assert_eq!(first["lines"][0]["knob"], "cpu.governor", "{first}");
    let note = read("note.conf", "[version]\n# 1\n[cpu]\ngovernor = all-cpus:performence\n");
    assert_eq!(note.exit, 1, "{}", note.stdout);
}

#[test]
fn a_typing_error_in_a_word_or_a_node_is_never_green() {
    let sandbox = sandbox();
    for (want, exit, told) in [
        (
            "\"cpu.governor\" = \"performanc\"",
            2,
            "`performanc` is no word of cpu.governor; did you mean `performance`?",
        ),
        ("\"cpu.governor\" = \"perf\"", 2, "`perf` is no word of cpu.governor, which may be conservative, "),
        ("\"cpu.epp\" = \"balance_perfomance\"", 2, "did you mean `balance_performance`?"),
        (
            "\"block.scheduler\" = { value = \"none\", only = \"nmve*\" }",
            2,
            "`nmve*`; did you mean `nvme*`? this host has ",
        ),
        (
            "\"unit.nofile\" = { value = \"65536\", only = \"redis-sever\" }",
            2,
            "`redis-sever`; did you mean `redis-server`? this host has redis-server",
        ),
        ("\"hugepages.2m\" = { need_bytes = 1048576, nodes = [9] }", 3, "this host has nodes 0, 1"),
    ] {
        profile(sandbox.path(), "wrong", want);
        for words in [&["plan", "wrong"][..], &["apply", "wrong", "--yes"], &["check", "wrong"]] {
            let run = on(sandbox.path(), words);
            assert_eq!(run.exit, exit, "{words:?} {want}: {}", run.stdout);
            assert!(message(&run, "error").contains(told), "{words:?} {want}: {}", run.stdout);
        }
    }
    // A governor that this kernel was built without is no error: it cannot be here.
    profile(sandbox.path(), "wrong", "\"cpu.governor\" = \"schedutil\"");
    assert_eq!(on(sandbox.path(), &["apply", "wrong", "--yes"]).exit, 0);
    // Nor are the disks of another host; which ones this host has is told.
    profile(sandbox.path(), "wrong", "\"block.scheduler\" = { value = \"none\", only = \"mmcblk*\" }");
    for words in [&["plan", "wrong"][..], &["check", "wrong"]] {
        let run = on(sandbox.path(), words);
        assert_eq!(run.exit, 0, "{words:?}: {}", run.stdout);
        assert!(
            run.stdout.contains("no place of it matches `mmcblk*`: this host has "),
            "{words:?}: {}",
            run.stdout
        );
    }
}

#[test]
fn two_profile_files_of_one_name_are_refused() {
    let sandbox = sandbox();
    profile(sandbox.path(), "one", "\"vm.stat_interval\" = 10");
    let profiles = sandbox.path().join("state/etc/profiles");
    std::fs::copy(profiles.join("one.toml"), profiles.join("other.toml")).expect("a second file");
    let run = on(sandbox.path(), &["plan", "one"]);
    assert_eq!(run.exit, 2, "{}", run.stdout);
    assert!(message(&run, "error").ends_with("other.toml:1:8: `one` is defined twice"), "{}", run.stdout);
    // Of a profile that we ship, somebody may have their own.
    std::fs::remove_file(profiles.join("other.toml")).expect("it was there");
    profile(sandbox.path(), "series", "\"vm.stat_interval\" = 7");
    assert_eq!(on(sandbox.path(), &["plan", "series"]).exit, 0);
}

#[test]
fn nobody_is_told_to_undo_where_nothing_was_applied() {
    let sandbox = sandbox();
    std::fs::write(sandbox.path().join("file"), "no folder").expect("a file");
    let words = ["--json", "--root", "host", "--state", "/proc/nope", "apply", "two", "--yes"];
    let run: Run = command(sandbox.path(), words).output().expect("the binary starts").into();
    assert_ne!(run.exit, 0, "{}", run.stdout);
    assert!(!run.stdout.contains("undo"), "{}", run.stdout);
}

#[test]
fn a_state_folder_that_is_none_is_a_wrong_word() {
    let sandbox = sandbox();
    std::fs::write(sandbox.path().join("file"), "no folder").expect("a file");
    for (state, words) in
        [("file", &["log"][..]), ("file", &["apply", "two", "--yes"]), ("/dev/null", &["log"])]
    {
        let args = [&["--json", "--root", "host", "--state", state][..], words].concat();
        let run: Run = command(sandbox.path(), args).output().expect("the binary starts").into();
        assert_eq!(run.exit, 2, "{words:?}: {}", run.stdout);
        assert_eq!(message(&run, "error"), format!("{state} is no folder"));
    }
}

#[test]
fn what_is_told_to_type_survives_a_shell_and_is_not_refused() {
    let sandbox = sandbox();
    let folder = sandbox.path().join("a b");
    std::fs::create_dir(&folder).expect("a folder");
    let planned = on(sandbox.path(), &["plan", "two", "-o", "a b/p.json"]);
    assert_eq!(message(&planned, "next"), "planish --root host --state state apply 'a b/p.json'");
    let applied = on(sandbox.path(), &["apply", "a b/p.json", "--yes"]);
    assert_eq!(message(&applied, "next"), "planish --root host --state state check 'a b/p.json'");
    // The plan saw the host as it was before: applied once more it would be refused.
    let checked = on(sandbox.path(), &["check", "a b/p.json"]);
    let cure = "1 place will not outlast a reboot: planish --root host --state state apply two --persist";
    assert_eq!(message(&checked, "note"), cure);
    // A file of this host that is read later takes vm.swappiness back.
    assert_eq!(on(sandbox.path(), &["apply", "two", "--persist", "--yes"]).exit, 1);
}

#[test]
fn a_fifo_in_the_place_of_a_file_is_told() {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    let sandbox = sandbox();
    let fifo = |path: &str| {
        let path = sandbox.path().join(path);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        let _ = std::fs::remove_file(&path);
        mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("ours");
    };
    fifo("plan.json");
    fifo("trial.toml");
    for args in
        [&["apply", "./plan.json", "--yes"][..], &["import", "./plan.json"], &["text", "show", "./plan.json"]]
    {
        let run = on(sandbox.path(), args);
        assert_eq!(run.exit, 2, "{args:?}: {}", run.stdout);
        assert!(message(&run, "error").ends_with("plan.json: it is a FIFO, not a file"), "{}", run.stdout);
    }
    let run =
        command(sandbox.path(), ["trial", "run", "./trial.toml"]).output().map(Run::from).expect("it starts");
    assert!(run.exit == 2 && run.stderr.contains("./trial.toml: it is a FIFO, not a file"), "{}", run.stderr);
    fifo("state/var/journal.jsonl");
    let run = on(sandbox.path(), &["undo"]);
    assert_eq!(run.exit, 3, "{}", run.stdout);
    assert!(
        run.stdout.contains("it is a FIFO, not a file") && run.stdout.contains("move it away"),
        "{}",
        run.stdout
    );
    fifo("host/meta.toml");
    assert_eq!(on(sandbox.path(), &["doctor"]).exit, 2);
}

#[test]
fn exit_3_is_refused_and_says_the_exact_command() {
    let sandbox = sandbox();
    let run = on(sandbox.path(), &["apply", "two"]);
    assert_eq!(run.exit, 3);
    let hint = run.envelope()["messages"][0]["hint"].clone();
    assert_eq!(hint, "planish --json --root host --state state apply two --yes");
    assert!(!sandbox.path().join("state/var").exists(), "a refusal leaves no journal");
}

#[test]
fn exit_4_is_failed_and_restored() {
    let sandbox = sandbox();
    answer(sandbox.path(), "/proc/sys/vm/swappiness", "errno = \"EIO\"");
    let run = on(sandbox.path(), &["apply", "two", "--yes"]);
    assert_eq!(run.exit, 4, "{}", run.stdout);
    assert!(message(&run, "error").starts_with("vm.swappiness failed"));
    let stat =
        std::fs::read_to_string(sandbox.path().join("host/proc/sys/vm/stat_interval")).expect("a file");
    assert_eq!(stat.trim(), "1");
}

#[test]
fn exit_5_is_failed_and_not_restored() {
    let sandbox = sandbox();
    answer(sandbox.path(), "/proc/sys/vm/swappiness", "errno = \"EIO\"");
    answer(sandbox.path(), "/proc/sys/vm/stat_interval", "range = { min = 5 }");
    let run = on(sandbox.path(), &["apply", "two", "--yes"]);
    assert_eq!(run.exit, 5, "{}", run.stdout);
    assert_eq!(message(&run, "next"), "planish --root host --state state undo 1");
}

#[test]
fn a_second_planish_is_refused_while_one_writes() {
    let sandbox = sandbox();
    let lock = sandbox.path().join("host/var/lib/planish/lock");
    std::fs::create_dir_all(lock.parent().expect("a folder")).expect("a folder");
    let TryLock::Ours(held) = LockFile::try_acquire(&lock).expect("a lock") else {
        panic!("nobody else is here")
    };
    let run = on(sandbox.path(), &["apply", "two", "--yes"]);
    assert_eq!(run.exit, 3);
    assert!(
        message(&run, "error").contains(&format!("another planish is at work (pid {})", std::process::id()))
    );
    drop(held);
    assert_eq!(on(sandbox.path(), &["apply", "two", "--yes"]).exit, 0);
    // It is the host's, whatever --state says, and stays: to remove a lock is to let two writers in.
    assert_eq!(on(sandbox.path(), &["undo"]).exit, 0);
    let folder = std::fs::read_dir(lock.parent().expect("a folder")).expect("readable");
    let names: Vec<_> = folder.map(|entry| entry.expect("readable").file_name()).collect();
    assert_eq!(names, ["lock"], "all else is in the state folder");
    assert!(sandbox.path().join("state/var/journal.jsonl").exists());
}

#[test]
fn a_place_that_we_may_not_write_is_found_before_the_first_write() {
    let sandbox = sandbox();
    let path = sandbox.path().join("host/meta.toml");
    let meta = std::fs::read_to_string(&path).expect("a description");
    let read_only = format!("read_only = [\"/proc/sys\"]\n{}", meta.replace("read_only = []\n", ""));
    std::fs::write(&path, read_only).expect("a description");
    let run = on(sandbox.path(), &["plan", "two"]);
    let envelope = run.envelope();
    assert_eq!(envelope["result"]["steps"].as_array().expect("steps").len(), 0, "{}", run.stdout);
    assert_eq!(envelope["result"]["skipped"][0]["verdict"], "blocked");
    let applied = on(sandbox.path(), &["apply", "two", "--yes"]);
    assert_eq!(applied.exit, 3, "nothing of it may be written: {}", applied.stdout);
    assert!(message(&applied, "error").contains("mounted read-only"), "{}", applied.stdout);
    assert!(!sandbox.path().join("state/var").exists(), "a refusal leaves no journal");
}

/// The line and the code of `check --monitor`.
pub fn monitored(sandbox: &Path, args: &[&str]) -> (i32, String) {
    let words = [&["--root", "host", "--state", "state", "check", "--monitor"], args].concat();
    let run: Run = command(sandbox, words).output().expect("the binary starts").into();
    (run.exit, run.stdout)
}

#[test]
fn what_a_read_only_mount_keeps_from_being_set_is_never_green() {
    let sandbox = sandbox();
    let path = sandbox.path().join("host/meta.toml");
    let meta = std::fs::read_to_string(&path).expect("a description");
    let read_only = format!("read_only = [\"/proc/sys\"]\n{}", meta.replace("read_only = []\n", ""));
    std::fs::write(&path, read_only).expect("a description");
    let want = "\"vm.swappiness\" = 5\n\"thp.defrag\" = \"never\"\n\"cpu.governor\" = \"performance\"";
    profile(sandbox.path(), "part", want);
    let applied = on(sandbox.path(), &["apply", "part", "--yes"]);
    assert_eq!((applied.exit, &applied.envelope()["result"]["entry"]), (1, &1.into()), "{}", applied.stdout);
    assert!(applied.stdout.contains("vm.swappiness is not set: on a file system"), "{}", applied.stdout);
    // What is left of it may not be written at all.
    assert_eq!(on(sandbox.path(), &["apply", "part", "--yes"]).exit, 3);
    let run = on(sandbox.path(), &["check", "part"]);
    assert_eq!(run.exit, 1);
    let rows = run.envelope()["result"]["knobs"].clone();
    let red: Vec<_> = rows.as_array().expect("rows").iter().filter(|row| row["state"] == "drift").collect();
    assert_eq!((red.len(), &red[0]["place"]), (1, &"/proc/sys/vm/swappiness".into()), "{}", run.stdout);
    assert_eq!(red[0]["because"], "on a file system that is mounted read-only");
    let (code, line) = monitored(sandbox.path(), &["part"]);
    assert!(code == 2 && line.contains("vm.swappiness is 60, wanted 5 (on a file"), "{line}");
    // What was never written is no drift of what was applied.
    assert_eq!(on(sandbox.path(), &["check"]).exit, 0);
}

/// As in a unit whose `RestrictAddressFamilies=` leaves out netlink: the card is there, and cannot be asked.
#[test]
fn a_card_that_may_not_be_asked_is_never_green() {
    const NAME: &str = "a_card_that_may_not_be_asked_is_never_green";
    let refused = |program: &str, args: &[&str]| {
        let inject = ["-f", "-qq", "-o", "/dev/null", "-e", "inject=socket:error=EAFNOSUPPORT"];
        Command::new("strace").args(inject).arg(program).args(args).output()
    };
    if !refused("true", &[]).is_ok_and(|ran| ran.status.success()) {
        return planish_skip::skip(NAME, "no strace here that may trace");
    }
    let sandbox = tempfile::tempdir().expect("a temporary folder");
    let wants = sandbox.path().join("card.toml");
    std::fs::write(&wants, "name = \"card\"\nsummary = \"s\"\n[want]\n\"net.feature_gro\" = 0\n")
        .expect("a profile");
    let state = sandbox.path().to_str().expect("a path");
    let words = ["--state", state, "check", wants.to_str().expect("a path"), "--monitor"];
    let seen: Run = command(sandbox.path(), words).output().expect("the binary starts").into();
    if seen.stdout.contains("nothing of") {
        return planish_skip::skip(NAME, "no card here tells anything over netlink");
    }
    let program = command(sandbox.path(), words).get_program().to_string_lossy().into_owned();
    let run: Run = refused(&program, &words).expect("strace starts").into();
    assert_eq!(run.exit, 3, "{}{}", run.stdout, run.stderr);
    assert!(run.stdout.contains("UNKNOWN: ") && run.stdout.contains("net.feature_gro"), "{}", run.stdout);
    assert!(run.stdout.contains("Address family not supported"), "{}", run.stdout);
}

#[test]
fn what_the_host_made_something_else_of_is_never_green() {
    let sandbox = sandbox();
    answer(sandbox.path(), "/proc/sys/vm/stat_interval", "readback = \"1\"");
    let why = "entry 1 wrote it, and this host made `1` of it";
    for entry in [serde_json::json!(1), serde_json::Value::Null] {
        let run = on(sandbox.path(), &["apply", "two", "--yes"]);
        assert_eq!((run.exit, &run.envelope()["result"]["entry"]), (1, &entry), "{}", run.stdout);
    }
    for args in [&["check", "two"][..], &["check"]] {
        let run = on(sandbox.path(), args);
        assert_eq!(run.exit, 1, "{}", run.stdout);
        let rows = run.envelope()["result"]["knobs"].clone();
        let row =
            rows.as_array().expect("rows").iter().find(|row| row["knob"] == "vm.stat_interval").cloned();
        let row = row.expect("it is named");
        assert_eq!(
            (&row["wanted"], &row["state"], &row["because"]),
            (&"10".into(), &"drift".into(), &why.into())
        );
        let (code, line) = monitored(sandbox.path(), &args[1..]);
        assert!(code == 2 && line.contains(why), "{line}");
    }
    assert_eq!(on(sandbox.path(), &["undo"]).exit, 0);
    assert_eq!(on(sandbox.path(), &["check"]).exit, 0, "nothing is applied any more");
}

#[test]
fn an_unconfirmed_apply_goes_back_by_itself_and_a_confirmed_one_stays() {
    let sandbox = sandbox();
    let stat = sandbox.path().join("host/proc/sys/vm/stat_interval");
    let now = || std::fs::read_to_string(&stat).expect("a file").trim().to_owned();
    for seconds in ["0", "2592001", "18446744073709551615"] {
        let refused = on(sandbox.path(), &["apply", "two", "--yes", "--confirm", seconds]);
        assert_eq!((refused.exit, now()), (2, "1".to_owned()), "{seconds}: {}", refused.stdout);
        assert!(refused.stdout.contains("30 days") || seconds.len() > 7, "{}", refused.stdout);
    }
    let applied = on(sandbox.path(), &["apply", "two", "--yes", "--confirm", "60"]);
    assert_eq!(applied.exit, 0, "{}", applied.stdout);
    // As wanted, and not to stay: neither done nor to be persisted.
    for more in [&[][..], &["--persist"]] {
        let again = on(sandbox.path(), &[&["apply", "two", "--yes"], more].concat());
        assert_eq!(again.exit, 3, "{}", again.stdout);
        assert!(message(&again, "error").contains("is on trial: entry 1 is undone in "), "{}", again.stdout);
        assert!(again.stdout.contains("planish --root host --state state confirm"), "{}", again.stdout);
    }
    let checked = on(sandbox.path(), &["check", "two"]);
    let note = message(&checked, "note");
    assert!(note.starts_with("entry 1 is undone in ") && note.ends_with(" state confirm"), "{note}");
    assert!(!checked.stdout.contains("--persist"), "{}", checked.stdout);
    let log = on(sandbox.path(), &["log"]);
    assert!(message(&log, "note").starts_with("entry 1 is undone in "), "{}", log.stdout);
    let confirmed = on(sandbox.path(), &["confirm"]);
    assert_eq!(confirmed.envelope()["result"]["entries"][0], 1);
    assert_eq!(now(), "10");
    assert_eq!(on(sandbox.path(), &["undo"]).exit, 0);
    assert_eq!(on(sandbox.path(), &["apply", "two", "--yes", "--confirm", "1"]).exit, 0);
    let start = Instant::now();
    while now() != "1" {
        assert!(start.elapsed() < Duration::from_secs(30), "nobody took it back");
        std::thread::sleep(Duration::from_millis(50));
    }
    // The value goes back before the journal says that all did.
    while on(sandbox.path(), &["log"]).envelope()["result"]["entries"][0]["state"] == "interrupted" {
        assert!(start.elapsed() < Duration::from_secs(30), "it never ended");
        std::thread::sleep(Duration::from_millis(50));
    }
    let late = on(sandbox.path(), &["confirm"]);
    let told = message(&late, "warning");
    assert!(
        told.contains("entry 2 was undone at ") && told.contains("nobody confirmed it in time"),
        "{told}"
    );
    assert_eq!(late.exit, 1, "a script that goes on after it believes that it was kept");
    let globals = ["--root", "host", "--state", "state", "log"];
    let log: Run = command(sandbox.path(), globals).output().expect("the binary starts").into();
    assert!(log.stdout.contains("undone: not confirmed"), "{}", log.stdout);
}

/// A reboot that is due is no drift, whichever files the boot loader has.
#[test]
fn pages_that_wait_for_a_reboot_are_a_warning_under_every_boot_loader() {
    for host in ["debian-virtio", "rhel9-guest"] {
        let sandbox = tempfile::tempdir().expect("a temporary folder");
        copy_tree(&repository().join("hosts").join(host), &sandbox.path().join("host"));
        let meta = sandbox.path().join("host/meta.toml");
        let told = std::fs::read_to_string(&meta).expect("a description");
        let told: Vec<&str> = told.lines().filter(|line| !line.starts_with("writable")).collect();
        std::fs::write(&meta, format!("writable = true\n{}\n", told.join("\n"))).expect("a description");
        let profile = sandbox.path().join("boot.toml");
        let text = "name = \"pages\"\nsummary = \"Pages.\"\n[want]\n\"boot.hugepages.2m\" = 64\n";
        std::fs::write(&profile, text).expect("a profile");
        let allowed = ["apply", "./boot.toml", "--allow", "availability", "--yes"];
        let unasked = on(sandbox.path(), &allowed);
        assert_eq!(unasked.exit, 1, "{host}: {}", unasked.stdout);
        assert!(unasked.stdout.contains("exit code 1: 1 place not as wanted: boot.hugepages.2m"), "{host}");
        let next = "apply ./boot.toml --allow availability --persist";
        assert!(unasked.stdout.contains(next), "{host}: {}", unasked.stdout);
        let asked = on(sandbox.path(), &[&allowed[..], &["--persist"]].concat());
        assert_eq!(asked.exit, 0, "{host}: {}", asked.stdout);
        let globals = ["--root", "host", "--state", "state", "check", "--monitor"];
        let looked: Run = command(sandbox.path(), globals).output().expect("it starts").into();
        assert_eq!(looked.exit, 1, "{host}: {}", looked.stdout);
        assert!(looked.stdout.contains(" for a reboot") && looked.stdout.contains("drift=0"), "{host}");
    }
}

#[test]
fn a_wrong_profile_of_the_user_does_not_keep_undo_from_working() {
    let sandbox = sandbox();
    assert_eq!(on(sandbox.path(), &["apply", "two", "--yes"]).exit, 0);
    std::fs::write(sandbox.path().join("state/etc/profiles/two.toml"), "name = ").expect("a profile");
    let doctor = on(sandbox.path(), &["doctor", "two"]);
    assert_eq!(doctor.exit, 2);
    assert!(message(&doctor, "error").contains("two.toml:1:8"), "{}", doctor.stdout);
    assert_eq!(on(sandbox.path(), &["undo"]).exit, 0);
    assert_eq!(run(["version"]).exit, 0);
}

/// `script` gives the binary a terminal to ask at.
#[test]
fn on_a_terminal_a_yes_is_asked_for_and_taken() {
    const NAME: &str = "on_a_terminal_a_yes_is_asked_for_and_taken";
    let sandbox = sandbox();
    let line = format!("{} --root host --state state apply two", env!("CARGO_BIN_EXE_planish"));
    // A container may have neither the program nor a pseudo-terminal to give.
    match Command::new("script").args(["-qec", "true", "/dev/null"]).output() {
        Err(_) => return planish_skip::skip(NAME, "no script(1)"),
        Ok(tried) if !tried.status.success() => return planish_skip::skip(NAME, "no pseudo-terminal"),
        Ok(_) => {}
    }
    for (typed, exit) in [("n\n", 3), ("y\n", 0)] {
        let mut child = Command::new("script")
            .args(["-qec", &line, "/dev/null"])
            .current_dir(sandbox.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it was there a moment ago");
        child.stdin.take().expect("a pipe").write_all(typed.as_bytes()).expect("it reads");
        let run: Run = child.wait_with_output().expect("it ends").into();
        assert!(run.stdout.contains("Write 2 steps? [y/N]"), "{}", run.stdout);
        assert_eq!(run.exit, exit, "{}", run.stdout);
    }
}

#[test]
fn settings_are_imported_from_standard_input() {
    let home = tempfile::tempdir().expect("a folder");
    let mut child = command(home.path(), ["import", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    child.stdin.take().expect("a pipe").write_all(b"vm.swappiness = 7\n").expect("it reads");
    let run: Run = child.wait_with_output().expect("it ends").into();
    assert_eq!(run.exit, 0, "{}", run.stderr);
    assert!(run.stdout.ends_with("\"vm.swappiness\" = 7\n"), "{}", run.stdout);
}

#[test]
fn why_nothing_is_undone_is_told_of_the_entry_that_was_named() {
    let sandbox = sandbox();
    let told = |args: &[&str]| {
        let run = on(sandbox.path(), args);
        (run.exit, message(&run, "note"))
    };
    assert_eq!(told(&["undo"]), (0, "there is nothing to undo".to_owned()));
    assert_eq!(on(sandbox.path(), &["apply", "two", "--yes"]).exit, 0);
    assert_eq!(on(sandbox.path(), &["undo", "1"]).exit, 0);
    assert_eq!(told(&["undo", "1"]), (0, "entry 1 is undone already".to_owned()));
    assert_eq!(told(&["undo"]), (0, "there is nothing to undo".to_owned()));
    assert_eq!(on(sandbox.path(), &["apply", "two", "--yes"]).exit, 0);
    let boot_id = sandbox.path().join("host/proc/sys/kernel/random/boot_id");
    std::fs::write(boot_id, "99999999-2222-3333-4444-555555555555\n").expect("another boot");
    assert_eq!(on(sandbox.path(), &["undo", "2"]).exit, 0);
    assert_eq!(told(&["undo", "2"]), (0, "entry 2 went with a reboot".to_owned()));
}

/// What a journal of another host says is read, and nothing else is done by it.
#[test]
fn the_log_of_another_host_is_read_and_its_undo_is_refused() {
    let sandbox = sandbox();
    assert_eq!(on(sandbox.path(), &["apply", "two", "--yes"]).exit, 0);
    let host = sandbox.path().join("host");
    std::fs::write(host.join("etc/machine-id"), format!("{}\n", "0".repeat(32))).expect("an id");
    std::fs::write(host.join("proc/sys/kernel/random/boot_id"), "another\n").expect("a boot");
    let log = on(sandbox.path(), &["log"]);
    assert_eq!(log.exit, 0, "{}{}", log.stdout, log.stderr);
    let entry = log.envelope()["result"]["entries"][0].clone();
    assert_eq!(
        (&entry["id"], &entry["state"]),
        (&1.into(), &"open".into()),
        "no boot of this host took it: {entry}"
    );
    assert_eq!(on(sandbox.path(), &["undo", "--all", "--force"]).exit, 3);
}
