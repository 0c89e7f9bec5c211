//! What is told beside a result: what it means, and what to type so that it becomes what was meant.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::exits::{message, monitored, on, sandbox};
use crate::planish::{self, Run, command};
use crate::recorded::{copy_tree, repository};

const HERE: &str = "planish --root host --state state";

/// All messages of an answer, as one text.
fn messages(run: &Run) -> String {
    run.envelope()["messages"].to_string()
}

/// The page, as people read it.
fn page(sandbox: &Path, args: &[&str]) -> String {
    let globals = ["--root", "host", "--state", "state"];
    let run: Run = command(sandbox, [&globals, args].concat()).output().expect("it starts").into();
    run.stdout
}

fn recorded(host: &str, args: &[&str]) -> Run {
    let root = repository().join("hosts").join(host).display().to_string();
    planish::run([&["--json", "--root", &root], args].concat())
}

fn own_profile(sandbox: &Path, want: &str) {
    let own = format!("name = \"own\"\nsummary = \"s\"\n[want]\n{want}\n");
    std::fs::write(sandbox.join("own.toml"), own).expect("a profile");
}

/// The journal has the reason of a failure, and what is told of it must not be how well it was taken back.
#[test]
fn a_step_that_failed_is_told_in_the_log_with_its_reason_and_how_to_have_the_rest() {
    let sandbox = tempfile::tempdir().expect("a temporary folder");
    copy_tree(&repository().join("hosts/metal-1s-amd"), &sandbox.path().join("host"));
    let failed = on(sandbox.path(), &["apply", "low-latency", "--yes", "--persist"]);
    assert_eq!(
        (failed.exit, message(&failed, "next")),
        (4, format!("{HERE} log --verbose")),
        "{}",
        failed.stdout
    );
    let rest = format!("{HERE} apply low-latency --exclude cpu.epp --persist");
    assert!(
        messages(&failed).contains(&format!("the rest of it without cpu.epp: {rest}\"")),
        "{}",
        failed.stdout
    );
    let log = page(sandbox.path(), &["log", "--verbose"]);
    let words = log.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "cpu.epp cpu0 balance_performance performance done; taken back",
        "performance failed; cannot write",
        "(os error 16)); found as it was before",
        "vm.swappiness 30 1 not tried",
    ] {
        assert!(words.contains(part), "{part}: {log}");
    }
    let (_, words) = rest.split_once(" state ").expect("words");
    let words: Vec<&str> = words.split_whitespace().chain(["--yes"]).collect();
    // What tuned takes back at the next boot makes it 1.
    assert_eq!(on(sandbox.path(), &words).exit, 1);
    // A line of a file is a line, and what was not undone is told as it ended.
    let log = page(sandbox.path(), &["log", "--verbose"]);
    let lines: Vec<&str> = log.lines().collect();
    for line in [
        "/etc/sysctl.d/90-planish.conf:",
        "  vm.stat_interval = 10",
        "  vm.swappiness = 1",
        "  w /sys/kernel/mm/transparent_hugepage/defrag - - - - never",
    ] {
        assert!(lines.contains(&line), "{line}: {log}");
    }
}

/// What a newer entry covers is told once, with what is there.
#[test]
fn an_undo_below_a_newer_entry_says_once_who_has_the_place() {
    let sandbox = sandbox();
    own_profile(sandbox.path(), "\"vm.swappiness\" = 7");
    assert_eq!(on(sandbox.path(), &["apply", "two", "--yes"]).exit, 0);
    assert_eq!(on(sandbox.path(), &["apply", "./own.toml", "--yes"]).exit, 0);
    let undone = page(sandbox.path(), &["undo", "1"]);
    let words = undone.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "knob now before risk why",
        "vm.swappiness 7 60 safe left to a newer entry; entry 2 set it since: undoing that one brings the",
        "vm.stat_interval 1 s 1 s safe done",
    ] {
        assert!(words.contains(part), "{part}: {undone}");
    }
    assert_eq!(words.matches("newer entry").count(), 1, "{undone}");
    assert_eq!(on(sandbox.path(), &["undo", "2"]).exit, 0);
    let swappiness = std::fs::read_to_string(sandbox.path().join("host/proc/sys/vm/swappiness"));
    assert_eq!(swappiness.expect("a value").trim(), "60");
}

#[test]
fn what_is_no_entry_is_told_as_that() {
    let sandbox = sandbox();
    for words in [&["undo", "foo"][..], &["plan", "two", "--instead-of", "-1x"], &["undo", "1.5"]] {
        let words = [&["--root", "host", "--state", "state"], words].concat();
        let run: Run = command(sandbox.path(), &words).output().expect("it starts").into();
        assert_eq!(run.exit, 2, "{words:?}: {}", run.stderr);
        assert!(!run.stderr.contains("digit"), "{}", run.stderr);
    }
    let run: Run = command(sandbox.path(), ["undo", "foo"]).output().expect("it starts").into();
    assert!(run.stderr.contains("no number of an entry, such as `planish log` lists them"), "{}", run.stderr);
}

/// One reason for all of a placement, which filled the page.
#[test]
fn a_reason_that_rows_share_is_told_once() {
    let sandbox = sandbox();
    own_profile(
        sandbox.path(),
        "[placement]\n[[placement.service]]\nunit = \"realtime.service\"\nnode = 0\nisolate = true",
    );
    let shown = page(sandbox.path(), &["plan", "./own.toml"]);
    let words = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(words.matches("may stall the host").count(), 1, "{shown}");
    assert!(words.matches("as above").count() > 5, "{shown}");
    let whole = page(sandbox.path(), &["plan", "./own.toml", "--verbose"]);
    assert!(whole.split_whitespace().collect::<Vec<_>>().join(" ").matches("may stall the host").count() > 5);
}

/// Half of a pool is of use to nobody, and the next boot can give all of it.
#[test]
fn a_pool_that_came_short_says_what_that_means_and_who_gives_it_back_or_whole() {
    let sandbox = sandbox();
    let apply = ["apply", "postgres", "--service", "postgres", "--yes"];
    let short = on(sandbox.path(), &apply);
    let told = messages(&short);
    assert_eq!(short.exit, 1, "{told}");
    for part in [
        "10281 of 20081 pages of hugepages.2m are there: a service that asks for all of them at once gets none",
        "with on not at all",
        "20.1 GiB meanwhile; planish --root host --state state undo 1 gives them back",
        "apply postgres --service postgres --persist has the next boot reserve all of them",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert_eq!(message(&short, "next"), format!("{HERE} undo 1"));
    // What is asked for again is not given now, and waits for the boot.
    let again = on(sandbox.path(), &apply);
    let next = format!("{HERE} apply postgres --service postgres --persist");
    assert_eq!((again.exit, message(&again, "next")), (1, next), "{}", again.stdout);
    let kept = on(sandbox.path(), &[&apply[..], &["--persist"]].concat());
    assert_eq!(kept.exit, 1, "{}", kept.stdout);
    let lines = std::fs::read_to_string(sandbox.path().join("host/etc/tmpfiles.d/90-planish.conf"));
    let lines = lines.expect("a file");
    for line in ["node0/hugepages/hugepages-2048kB/nr_hugepages - - - - 10041", "node1/hugepages"] {
        assert!(lines.contains(line), "{line}: {lines}");
    }
    assert!(lines.contains("hugepages-2048kB/nr_hugepages - - - - 10040"), "{lines}");
}

#[test]
fn what_nobody_allowed_has_a_state_of_its_own() {
    let sandbox = sandbox();
    let checked = on(sandbox.path(), &["check", "redis"]);
    let envelope = checked.envelope();
    let row = |id: &str| {
        let rows = envelope["result"]["knobs"].as_array().expect("rows");
        rows.iter().find(|row| row["knob"] == id).expect("a row")["state"].clone()
    };
    assert_eq!(row("vm.overcommit_memory"), "not-allowed", "{}", checked.stdout);
    assert_eq!(row("vm.swappiness"), "drift");
    // Of a profile that wants nothing else there is nothing to be green for.
    own_profile(sandbox.path(), "\"vm.overcommit_memory\" = 1");
    let (code, line) = monitored(sandbox.path(), &["./own.toml"]);
    assert!(code == 3 && line.contains("nobody allowed what ./own.toml wants here: vm.overcommit"), "{line}");
    assert_eq!(on(sandbox.path(), &["apply", "./own.toml", "--allow", "availability", "--yes"]).exit, 0);
    assert_eq!(monitored(sandbox.path(), &["./own.toml"]).0, 1, "nothing persists it");
}

/// A figure of another governor is none of this one, and the row of the knob would contradict the rule.
#[test]
fn a_governor_is_found_once_and_without_the_figure_of_another_one() {
    let sandbox = sandbox();
    let found = |governor: &str| {
        for cpu in 0..8 {
            let place = format!("host/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor");
            std::fs::write(sandbox.path().join(place), format!("{governor}\n")).expect("a file");
        }
        let findings = on(sandbox.path(), &["doctor", "postgres"]).envelope()["result"]["findings"].clone();
        let is_of_it = |finding: &&serde_json::Value| {
            finding["id"].as_str().is_some_and(|id| id.starts_with("cpu.governor"))
        };
        let rows = findings.as_array().expect("rows").iter().filter(is_of_it);
        rows.map(|row| (row["id"].clone(), row["may_cost"]["percent"].as_f64())).collect::<Vec<_>>()
    };
    assert_eq!(found("powersave"), [("cpu.governor_slow".into(), None)]);
    assert_eq!(found("ondemand"), [("cpu.governor_ondemand".into(), Some(20.3))]);
    assert_eq!(found("performance"), []);
}

#[test]
fn what_a_second_writer_keeps_beside_its_exclusion_is_counted() {
    let plan = recorded("metal-1s-amd", &["plan", "throughput"]);
    let writers = plan.envelope()["result"]["second_writers"].clone();
    let tuned =
        writers.as_array().expect("rows").iter().find(|row| row["id"] == "tuned").expect("tuned").clone();
    let places = tuned["places"].as_array().expect("places");
    let governors = places.iter().filter(|place| place.to_string().contains("scaling_governor")).count();
    let kept = tuned["not_excluded"].as_array().expect("rows");
    assert!(governors == 16 && kept.len() == 16 && kept.iter().all(|id| id == "cpu.governor"), "{tuned}");
    let sandbox = tempfile::tempdir().expect("a folder");
    copy_tree(&repository().join("hosts/metal-1s-amd"), &sandbox.path().join("host"));
    let text = page(sandbox.path(), &["plan", "throughput"]);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let told =
        format!("not in that, of the {}: 16 places (cpu.governor x16); tuned writes them", places.len());
    assert!(text.contains(&told), "{text}");
    let seen = page(sandbox.path(), &["doctor", "--service", "postgres"]);
    assert!(seen.contains("cpus       which it may use cannot be told here"), "{seen}");
}

#[test]
fn size_writes_no_file_that_a_plan_refuses() {
    let sandbox = sandbox();
    let sized = on(sandbox.path(), &["size", "--bytes", "500G", "-o", "./big.toml"]);
    assert_eq!(sized.exit, 3, "{}", sized.stdout);
    assert!(
        message(&sized, "error")
            .starts_with("./big.toml is not written, since a plan of it is refused: 600 GiB")
    );
    assert!(!sandbox.path().join("big.toml").exists());
    assert_eq!(on(sandbox.path(), &["size", "--bytes", "50G", "-o", "./big.toml"]).exit, 0);
}

/// Of a recorded host nothing can be measured: what would be refused is not proposed.
#[test]
fn that_postgres_has_to_ask_for_a_pool_is_told_by_plan_size_and_doctor() {
    let sandbox = sandbox();
    for args in [&["plan", "postgres"][..], &["size", "postgres"], &["doctor", "--service", "postgres"]] {
        let told = messages(&on(sandbox.path(), args));
        assert!(told.contains("as SHOW shared_memory_size_in_huge_pages tells"), "{args:?}: {told}");
        assert!(!told.contains("prove postgres"), "{args:?}: {told}");
    }
    assert!(!messages(&on(sandbox.path(), &["size", "--bytes", "1G"])).contains("SHOW shared_memory"));
    let low = page(sandbox.path(), &["doctor", "--service", "postgres"]);
    assert!(low.contains("unit.nofile"), "{low}");
}

#[test]
fn a_host_that_gives_no_boot_parameters_is_told_so_without_files_too() {
    let waits = "2 boot parameters only at the next boot";
    for (host, told) in [
        ("metal-2s", ": apply --persist has the boot loader give them"),
        ("tiny-2c", ", and apply --persist is refused: extlinux starts this machine"),
        ("container-ro", ", and apply --persist keeps none: a container boots with its host"),
        ("guest-1n", ", and apply --persist keeps none: neither kernel nor boot loader is here"),
    ] {
        let planned = messages(&recorded(host, &["plan", "realtime", "--allow", "availability"]));
        assert!(planned.contains(&format!("{waits}{told}")), "{host}: {planned}");
    }
}

#[test]
fn what_sets_nothing_becomes_no_profile_and_an_export_goes_below_a_folder() {
    let sandbox = sandbox();
    std::fs::write(sandbox.path().join("x.conf"), "kernel.no_such_name = 1\n").expect("ours");
    let imported = on(sandbox.path(), &["import", "x.conf", "-o", "x.toml"]);
    assert_eq!(
        (imported.exit, message(&imported, "next")),
        (1, format!("{HERE} knobs")),
        "{}",
        imported.stdout
    );
    assert!(messages(&imported).contains("x.toml is not written") && !sandbox.path().join("x.toml").exists());
    // The second line takes back what the first one sets.
    std::fs::write(sandbox.path().join("y.conf"), "vm.swappiness = 5\nvm.swappiness =\n").expect("ours");
    let words = ["import", "y.conf", "--from", "sysctl", "-o", "y.toml"];
    assert_eq!((on(sandbox.path(), &words).exit, sandbox.path().join("y.toml").exists()), (1, false));
    let exported = on(sandbox.path(), &["export", "script", "two", "-o", "x.conf"]);
    let told = "x.conf is a file, and the files of an export go below a folder";
    assert_eq!((exported.exit, message(&exported, "error").as_str()), (2, told));
    let nowhere = on(sandbox.path(), &["export", "script", "two", "-o", "/proc/x"]);
    assert!(nowhere.exit == 2 && nowhere.stdout.contains("--output DIR"), "{}", nowhere.stdout);
}

/// Places and sizes of one machine are not those of another.
#[test]
fn a_plan_of_another_host_is_called_one_by_all_who_take_it() {
    let sandbox = sandbox();
    assert_eq!(on(sandbox.path(), &["plan", "two", "-o", "two.json"]).exit, 0);
    let told = |words: &[&str]| messages(&on(sandbox.path(), words)).contains("the plan is for another host");
    let commands = [&["plan", "two.json"][..], &["export", "script", "two.json"], &["check", "two.json"]];
    assert_eq!(commands.map(told), [false; 3]);
    let id = sandbox.path().join("host/etc/machine-id");
    std::fs::write(id, format!("{}\n", "0".repeat(32))).expect("an id");
    assert_eq!(commands.map(told), [true; 3]);
}

/// The originals are lost, and nobody may take the host for clean.
#[test]
fn what_stays_of_an_entry_whose_beginning_is_lost_is_told_by_its_places() {
    let sandbox = sandbox();
    assert_eq!(on(sandbox.path(), &["apply", "two", "--yes"]).exit, 0);
    let journal = sandbox.path().join("state/var/journal.jsonl");
    let text = std::fs::read_to_string(&journal).expect("a journal");
    std::fs::write(&journal, text.replacen("\"kind\":\"intent\"", "\"kind\":\"intenT\"", 1)).expect("ours");
    let undone = on(sandbox.path(), &["undo", "--all", "--force"]);
    let told = messages(&undone);
    assert_eq!((undone.exit, message(&undone, "note").as_str()), (1, "nothing was taken back"), "{told}");
    for place in ["/proc/sys/vm/stat_interval (10)", "/proc/sys/vm/swappiness (5)"] {
        assert!(told.contains(place), "{told}");
    }
    assert_eq!(told.matches("never begun").count(), 1, "{told}");
}

/// What a rehearsal takes, the machine must take as well.
#[test]
fn a_program_or_a_service_that_a_host_has_not_is_not_warmed() {
    let sandbox = sandbox();
    let warm = |words: &[&str]| on(sandbox.path(), &[&["install", "warm"], words, &["--yes"]].concat());
    let refused = warm(&["/srv/none"]);
    assert_eq!((refused.exit, message(&refused, "error").contains("host has no file /srv/none")), (3, true));
    assert!(refused.stdout.contains("cp --parents /srv/none host"), "{}", refused.stdout);
    let folder = warm(&["/etc"]);
    assert!(folder.exit == 2 && folder.stdout.contains("it is a folder"), "{}", folder.stdout);
    let script = warm(&["/etc/sysctl.d/99-local.conf"]);
    assert!(script.exit == 2 && script.stdout.contains("/etc/sysctl.d/99-local.conf: "), "{}", script.stdout);
    let unit = warm(&["/srv/none", "--unit", "nosuch.service"]);
    assert_eq!(
        (unit.exit, message(&unit, "error").as_str()),
        (3, "this host has no unit nosuch.service: nothing would be read before it starts")
    );
    let short = warm(&["/srv/none", "--unit", "realtime"]);
    let told = "this host has no unit realtime, but realtime.service";
    assert_eq!((short.exit, message(&short, "error").as_str()), (3, told));
    assert!(short.stdout.contains("--unit realtime.service"), "{}", short.stdout);
    assert!(warm(&["/srv/none", "--unit", "realtime.service"]).stdout.contains("has no file /srv/none"));
    let mask = "etc/systemd/system/analytics.service";
    std::fs::write(sandbox.path().join("host").join(mask), "").expect("ours");
    let masked = warm(&["/srv/none", "--unit", "analytics.service"]);
    let told =
        format!("analytics.service is masked by /{mask}: nothing would be read, since nobody can start it");
    assert_eq!((masked.exit, message(&masked, "error")), (3, told));
    let live: Run = command(sandbox.path(), ["--json", "--state", "state", "install", "warm", "/srv/none"])
        .output()
        .expect("it starts")
        .into();
    let told = "cannot find /srv/none: No such file or directory (os error 2)";
    assert_eq!((live.exit, message(&live, "error").as_str()), (2, told), "{}", live.stdout);
    assert!(live.stdout.contains("name a program of this machine"), "{}", live.stdout);
}

/// A recording leaves out what could tell which machine it is.
#[test]
fn what_a_recording_left_out_is_no_difference() {
    let sandbox = sandbox();
    copy_tree(&sandbox.path().join("host"), &sandbox.path().join("other"));
    let with = |side: &str, argument: &str| {
        let path = sandbox.path().join(side).join("proc/cmdline");
        std::fs::write(path, format!("root=UUID=1 ro quiet{argument}\n")).expect("a file");
    };
    let differs = |left: &str, right: &str| {
        with("host", left);
        with("other", right);
        let run: Run =
            command(sandbox.path(), ["--json", "diff", "host", "other"]).output().expect("it starts").into();
        run.exit
    };
    assert_eq!(differs(" rdinit=/a", " rdinit=redacted"), 0);
    assert_eq!(differs(" rdinit=/a", " rdinit=/b"), 1);
    assert_eq!(differs("", " rdinit=redacted"), 1, "one has no such argument at all");
}

#[test]
fn a_time_to_confirm_has_a_unit_where_that_is_clearer() {
    let sandbox = sandbox();
    for (time, told) in [("5x", "`5x` is no time"), ("1500ms", "whole seconds"), ("31d", "30 days")] {
        let refused = on(sandbox.path(), &["apply", "two", "--yes", "--confirm", time]);
        assert_eq!(refused.exit, 2, "{}", refused.stdout);
        assert!(refused.stdout.contains(told), "{time}: {}", refused.stdout);
    }
    let applied = on(sandbox.path(), &["apply", "two", "--yes", "--confirm", "5m"]);
    assert!(messages(&applied).contains("entry 1 is undone in 300 s unless"), "{}", applied.stdout);
    assert_eq!(on(sandbox.path(), &["undo"]).exit, 0);
}

#[test]
fn a_plan_over_an_open_entry_names_what_takes_its_place() {
    let sandbox = sandbox();
    assert_eq!(on(sandbox.path(), &["apply", "two", "--yes"]).exit, 0);
    own_profile(sandbox.path(), "\"vm.swappiness\" = 7\n\"vm.stat_interval\" = 10");
    let over = messages(&on(sandbox.path(), &["plan", "./own.toml"]));
    assert!(over.contains("covered until an undo; to take its place: --instead-of 1"), "{over}");
    assert_eq!(on(sandbox.path(), &["plan", "./own.toml", "--instead-of", "1"]).exit, 0);
    assert_eq!(
        on(sandbox.path(), &["apply", "two", "--persist", "--yes"]).exit,
        1,
        "another file is read later"
    );
    let summary = page(sandbox.path(), &["check"]);
    assert!(summary.contains(" ok (1 of them wanted), 1 lost at boot"), "{summary}");
}

#[test]
fn a_trial_boot_that_no_recorded_host_takes_is_told_where_it_is_tried() {
    let sandbox = sandbox();
    let args = ["apply", "realtime", "--allow", "availability", "--persist", "--once", "--yes"];
    let refused = on(sandbox.path(), &args);
    assert_eq!(refused.exit, 3, "{}", refused.stdout);
    assert!(messages(&refused).contains("hosts/README.md"), "{}", refused.stdout);
}

/// Who was cut off by what is there must not be told to keep it, by `check` or by `log`.
#[test]
fn an_entry_whose_timer_died_is_to_be_undone_and_not_confirmed() {
    let sandbox = sandbox();
    assert_eq!(on(sandbox.path(), &["apply", "two", "--yes", "--confirm", "600"]).exit, 0);
    assert_eq!(message(&on(sandbox.path(), &["log"]), "next"), format!("{HERE} confirm"));
    // A lock that nobody holds is what a timer leaves that was killed.
    let lock = sandbox.path().join("state/var/watch-1.lock");
    let patience = Instant::now() + Duration::from_secs(60);
    while !lock.exists() && Instant::now() < patience {
        // A process of its own, which an apply does not wait for.
        std::thread::sleep(Duration::from_millis(20));
    }
    std::fs::rename(&lock, sandbox.path().join("held")).expect("it waits");
    std::fs::write(&lock, "").expect("room");
    for command in ["log", "check"] {
        let run = on(sandbox.path(), &[command]);
        let told = messages(&run);
        assert!(told.contains("its timer is gone") && !told.contains("confirm\""), "{command}: {told}");
        assert!(told.contains(&format!("{HERE} undo 1")), "{command}: {told}");
    }
    assert_eq!(message(&on(sandbox.path(), &["log"]), "next"), format!("{HERE} undo 1"));
    assert_eq!(on(sandbox.path(), &["undo"]).exit, 0);
}

/// What planish has in files and no journal knows may be all that was ever applied.
#[test]
fn a_journal_that_is_gone_is_no_green_for_monitoring() {
    let sandbox = sandbox();
    std::fs::remove_file(sandbox.path().join("host/etc/sysctl.d/99-local.conf")).expect("it is recorded");
    assert_eq!(on(sandbox.path(), &["apply", "two", "--persist", "--yes"]).exit, 0);
    assert_eq!(monitored(sandbox.path(), &[]).0, 0);
    let journal = sandbox.path().join("state/var/journal.jsonl");
    std::fs::rename(&journal, sandbox.path().join("kept")).expect("it is there");
    let (code, line) = monitored(sandbox.path(), &[]);
    assert_eq!(code, 1, "{line}");
    assert!(line.starts_with("planish WARNING: /etc/sysctl.d/90-planish.conf is of planish"), "{line}");
    assert!(line.contains("of no entry of this journal"), "{line}");
    std::fs::rename(sandbox.path().join("kept"), &journal).expect("back");
    assert_eq!(monitored(sandbox.path(), &[]).0, 0);
}

/// What a plan file holds was chosen when it was made: an option that would mean nothing is none to be taken.
#[test]
fn choices_beside_a_plan_file_are_refused_and_nothing_is_written() {
    let sandbox = sandbox();
    own_profile(sandbox.path(), "\"vm.swappiness\" = 10\n\"vm.stat_interval\" = 20");
    assert_eq!(on(sandbox.path(), &["plan", "./own.toml", "-o", "p.json"]).exit, 0);
    let place = sandbox.path().join("host/proc/sys/vm/swappiness");
    let before = std::fs::read_to_string(&place).expect("a place");
    for words in [
        &["--exclude", "vm.swappiness"][..],
        &["--exclude", "vm.swapines"],
        &["--exclude", "sysctl.d"],
        &["--allow", "availability"],
        &["--allow-knob", "nonsense"],
        &["--service", "nosuch"],
    ] {
        for command in [&["plan"][..], &["apply", "--yes"], &["export", "sysctl"]] {
            let run = on(sandbox.path(), &[command, &["./p.json"], words].concat());
            assert_eq!(run.exit, 2, "{command:?} {words:?}: {}", run.stdout);
            assert!(message(&run, "error").starts_with("./p.json is a plan: "), "{}", run.stdout);
            let again = format!("{HERE} plan PROFILE {} -o ./p.json", words.join(" "));
            assert_eq!(run.envelope()["messages"][0]["hint"], again);
        }
    }
    assert_eq!(std::fs::read_to_string(&place).expect("a place"), before);
    let excluded =
        on(sandbox.path(), &["apply", "./own.toml", "--yes", "--exclude", "vm.swappiness,vm.stat_interval"]);
    assert_eq!(excluded.exit, 0);
    assert!(message(&excluded, "note").contains("do not leave out"), "{}", excluded.stdout);
    let checked = on(sandbox.path(), &["check", "./own.toml", "--exclude", "vm.swappiness,vm.stat_interval"]);
    assert!(message(&checked, "note").contains("nothing was compared"), "{}", checked.stdout);
}

/// Whose a line of another hand is that an undo left in a file of planish's name.
#[test]
fn what_an_undo_left_of_others_is_told_as_that() {
    let sandbox = sandbox();
    own_profile(sandbox.path(), "\"vm.stat_interval\" = 20");
    let applied = on(sandbox.path(), &["apply", "./own.toml", "--persist", "--yes"]);
    assert_eq!(applied.exit, 0, "{}", applied.stdout);
    let file = sandbox.path().join("host/etc/sysctl.d/90-planish.conf");
    let text = std::fs::read_to_string(&file).expect("a file");
    std::fs::write(&file, text + "vm.swappiness = 44\n").expect("room");
    let undone = on(sandbox.path(), &["undo"]);
    assert_eq!(undone.exit, 0, "{}", undone.stdout);
    let checked = on(sandbox.path(), &["check"]);
    let told = messages(&checked);
    assert!(
        told.contains("what others put into /etc/sysctl.d/90-planish.conf is read at each boot"),
        "{told}"
    );
    assert!(!told.contains("of no entry"), "{told}");
    let (exit, line) = monitored(sandbox.path(), &[]);
    assert!(!line.contains("of no entry"), "{exit}: {line}");
    let again = on(sandbox.path(), &["apply", "./own.toml", "--persist", "--yes"]);
    assert_eq!(again.exit, 3);
    let told = "/etc/sysctl.d/90-planish.conf exists, and no open entry of this journal wrote it";
    assert_eq!(message(&again, "error"), told);
}

/// A file that is read behind ours is no drift of what runs, and whoever has it need not look for what to do.
#[test]
fn a_drop_in_that_is_read_behind_ours_has_one_verdict_and_a_cure() {
    let sandbox = sandbox();
    std::fs::remove_file(sandbox.path().join("host/etc/sysctl.d/99-local.conf")).expect("it is recorded");
    assert_eq!(on(sandbox.path(), &["apply", "redis", "--persist", "--yes"]).exit, 0);
    let theirs = "/etc/systemd/system/redis-server.service.d/zzz.conf";
    std::fs::write(sandbox.path().join(format!("host{theirs}")), "[Service]\nLimitNOFILE=1024\n")
        .expect("room");
    let cure = format!("{theirs}:2 is read after it and will set 1024: take out {theirs}:2");
    for profile in [&[][..], &["redis"]] {
        let (code, line) = monitored(sandbox.path(), profile);
        let lost = "WARNING: 1 place will be lost at the next start: unit.nofile redis-server.service.d is \
                    65536:524288 (";
        assert!(code == 1 && line.contains(&format!("{lost}{cure})")), "{profile:?} {line}");
        let checked = on(sandbox.path(), &[&["check"], profile].concat());
        let rows = checked.envelope()["result"]["knobs"].clone();
        let row =
            rows.as_array().expect("rows").iter().find(|row| row["knob"] == "unit.nofile").expect("a row");
        assert_eq!((checked.exit, &row["state"]), (1, &"lost-at-boot".into()), "{profile:?} {row}");
        assert!(messages(&checked).contains(&cure), "{}", checked.stdout);
        assert!(
            !message(&checked, "next").contains("--persist"),
            "no file of ours helps: {}",
            checked.stdout
        );
    }
    let told = format!("unit.nofile: {cure}");
    assert!(messages(&on(sandbox.path(), &["plan", "redis", "--persist"])).contains(&told));
    assert_eq!(on(sandbox.path(), &["undo"]).exit, 0);
    assert!(
        messages(&on(sandbox.path(), &["plan", "redis", "--persist"])).contains(&told),
        "before it is written, too"
    );
}

/// One in /run wins at the next start of the service; the next boot is ours again, and no apply changes that.
#[test]
fn a_drop_in_of_this_boot_is_told_with_its_own_cure_alone() {
    let sandbox = sandbox();
    std::fs::remove_file(sandbox.path().join("host/etc/sysctl.d/99-local.conf")).expect("it is recorded");
    assert_eq!(on(sandbox.path(), &["apply", "redis", "--persist", "--yes"]).exit, 0);
    let folder = "/run/systemd/system/redis-server.service.d";
    let theirs = format!("{folder}/zzz.conf");
    std::fs::create_dir_all(sandbox.path().join(format!("host{folder}"))).expect("room");
    std::fs::write(sandbox.path().join(format!("host{theirs}")), "[Service]\nLimitNOFILE=1024\n")
        .expect("room");
    let why = format!("{theirs}:2 is read after it and will set 1024 until a boot: take out {theirs}:2");
    for profile in [&[][..], &["redis"]] {
        let checked = on(sandbox.path(), &[&["check"], profile].concat());
        let told = messages(&checked);
        let verdict =
            format!("1 place as wanted now will be set otherwise at the next start: unit.nofile ({why})");
        assert!(checked.exit == 1 && told.contains(&verdict), "{profile:?} {told}");
        assert!(!told.contains("--persist") && !told.contains("older entries"), "{profile:?} {told}");
    }
    let again = on(sandbox.path(), &["apply", "redis", "--yes"]);
    assert!(!messages(&again).contains("brings back what older entries"), "{}", again.stdout);
}

/// What is taken out of a file of a package is back with the next one.
#[test]
fn a_drop_in_of_a_package_is_not_to_be_edited() {
    for lib in ["/usr/lib", "/lib"] {
        let sandbox = sandbox();
        std::fs::remove_file(sandbox.path().join("host/etc/sysctl.d/99-local.conf")).expect("it is recorded");
        assert_eq!(on(sandbox.path(), &["apply", "redis", "--persist", "--yes"]).exit, 0);
        let below = "systemd/system/redis-server.service.d/zzz.conf";
        let theirs = sandbox.path().join(format!("host{lib}/{below}"));
        std::fs::create_dir_all(theirs.parent().expect("a folder")).expect("room");
        std::fs::write(&theirs, "[Service]\nLimitNOFILE=1024\n").expect("room");
        let cure = format!(
            "{lib}/{below} is of a package, and the next one brings it back: a file without that line as /etc/{below}, \
             or a link to /dev/null there, is read instead"
        );
        let (code, line) = monitored(sandbox.path(), &[]);
        assert!(code == 1 && line.contains(&cure) && !line.contains("take out"), "{line}");
        assert!(!(line.contains("next boot") && line.contains("next start")), "{line}");
        assert!(messages(&on(sandbox.path(), &["check"])).contains(&cure));
        // The cure itself.
        let mask = sandbox.path().join(format!("host/etc/{below}"));
        std::os::unix::fs::symlink("/dev/null", mask).expect("room");
        assert_eq!(monitored(sandbox.path(), &[]).0, 0, "{:?}", monitored(sandbox.path(), &[]));
    }
}

/// There is nothing of others in it that force would be for, and the line can be typed where it is told.
#[test]
fn what_is_gone_of_ours_is_told_with_the_plain_undo_of_this_host() {
    for (words, gone, again) in [
        (
            &["apply", "./own.toml", "--persist"][..],
            "sysctl.d/90-planish.conf",
            "apply it again with --persist",
        ),
        (&["install", "check"], "systemd/system/planish-check.timer", "install it again"),
        (
            &["apply", "redis"],
            "systemd/system/redis-server.service.d/zz-planish-nofile.conf",
            "apply it again",
        ),
    ] {
        let sandbox = sandbox();
        own_profile(sandbox.path(), "\"vm.stat_interval\" = 20");
        assert_eq!(on(sandbox.path(), &[words, &["--yes"]].concat()).exit, 0);
        std::fs::remove_file(sandbox.path().join("host/etc").join(gone)).expect("it was written");
        let cure = format!("{HERE} undo 1, then {again}");
        let checked = on(sandbox.path(), &["check"]);
        assert!(checked.exit == 1 && checked.stdout.contains(&cure), "{}", checked.stdout);
        let (code, line) = monitored(sandbox.path(), &[]);
        assert!(code != 0 && line.contains(&cure), "{line}");
        assert_eq!(on(sandbox.path(), &["undo", "1"]).exit, 0, "{gone}");
        assert_eq!(on(sandbox.path(), &[words, &["--yes"]].concat()).exit, 0);
    }
}

#[test]
fn files_of_a_journal_that_is_gone_are_all_named() {
    let sandbox = sandbox();
    std::fs::remove_file(sandbox.path().join("host/etc/sysctl.d/99-local.conf")).expect("it is recorded");
    assert_eq!(on(sandbox.path(), &["apply", "series", "--persist", "--yes"]).exit, 0);
    std::fs::remove_dir_all(sandbox.path().join("state/var")).expect("it was there");
    let (code, line) = monitored(sandbox.path(), &[]);
    let both = "/etc/sysctl.d/90-planish.conf and /etc/tmpfiles.d/90-planish.conf are of planish";
    assert!(code == 1 && line.contains(both), "{line}");
}

#[test]
fn what_is_left_out_of_no_profile_is_told_with_the_profile_that_is_missing() {
    let sandbox = sandbox();
    for command in [&["check"][..], &["install", "check"]] {
        let refused = on(sandbox.path(), &[command, &["--exclude", "vm.swappiness"]].concat());
        assert_eq!(refused.exit, 2, "{}", refused.stdout);
        let told = message(&refused, "error");
        assert!(told.contains("leaves something out of a profile, and no profile is named"), "{told}");
        let line = format!("{} PROFILE --exclude vm.swappiness", command.join(" "));
        assert!(refused.stdout.contains(&line), "{}", refused.stdout);
    }
}

/// A timer that can say nothing but UNKNOWN alarms for ever.
#[test]
fn a_timer_that_compares_nothing_is_not_installed() {
    let sandbox = sandbox();
    own_profile(sandbox.path(), "\"vm.swappiness\" = 7\n\"vm.stat_interval\" = 10");
    let folder = sandbox.path().join("state/etc/profiles");
    std::fs::create_dir_all(&folder).expect("room");
    std::fs::copy(sandbox.path().join("own.toml"), folder.join("own.toml")).expect("room");
    let install = ["install", "check", "own", "--yes", "--exclude", "vm.swappiness"];
    let all = [&install[..], &["--exclude", "vm.stat_interval"]].concat();
    let refused = on(sandbox.path(), &all);
    assert_eq!(refused.exit, 2, "{}", refused.stdout);
    let told = message(&refused, "error");
    assert!(told.contains("nothing of own is left to compare on this host"), "{told}");
    assert!(!sandbox.path().join("host/etc/systemd/system/planish-check.timer").exists());
    let rest = on(sandbox.path(), &install);
    assert_eq!(rest.exit, 0, "{}", rest.stdout);
}

/// Boot parameters are no places that run, so that there was nothing to be told of.
#[test]
fn an_entry_that_waits_for_a_confirm_is_no_green_for_monitoring() {
    let sandbox = sandbox();
    own_profile(sandbox.path(), "\"boot.skew_tick\" = 1");
    let words = ["apply", "./own.toml", "--persist", "--yes", "--confirm", "600"];
    assert_eq!(on(sandbox.path(), &words).exit, 0);
    let (code, line) = monitored(sandbox.path(), &[]);
    assert!(code == 1 && line.starts_with("planish WARNING: entry 1 is undone in "), "{line}");
    assert!(line.contains(&format!("{HERE} confirm")), "{line}");
    assert_eq!(on(sandbox.path(), &["undo"]).exit, 0);
    assert_eq!(monitored(sandbox.path(), &[]).0, 0);
    // What goes in minutes is told before what goes at the next boot.
    assert_eq!(on(sandbox.path(), &["apply", "two", "--yes", "--confirm", "600"]).exit, 0);
    let (code, line) = monitored(sandbox.path(), &[]);
    assert!(code == 1 && line.starts_with("planish WARNING: entry 2 is undone in "), "{line}");
    assert!(line.contains(" | wanted=") && !line.contains(" lost=0 "), "{line}");
}

/// A ratio that mode 2 needs goes back behind the mode alone.
#[test]
fn no_note_names_an_undo_that_is_refused() {
    let sandbox = tempfile::tempdir().expect("a temporary folder");
    copy_tree(&repository().join("hosts/metal-2s"), &sandbox.path().join("host"));
    let memory = sandbox.path().join("host/proc/meminfo");
    let show = |name: &str, kib: u64| {
        let told = std::fs::read_to_string(&memory).expect("recorded");
        let rest: String =
            told.lines().filter(|line| !line.starts_with(name)).map(|line| format!("{line}\n")).collect();
        std::fs::write(&memory, format!("{rest}{name}: {kib} kB\n")).expect("a copy");
    };
    let apply = ["apply", "./own.toml", "--allow", "availability", "--yes"];
    show("Committed_AS", 160 << 20);
    own_profile(sandbox.path(), "\"vm.overcommit_ratio\" = 95");
    assert_eq!(on(sandbox.path(), &apply).exit, 0);
    show("CommitLimit", 255_013_683);
    own_profile(sandbox.path(), "\"vm.overcommit_memory\" = 2");
    // The profile is the same by name: as another one it leaves what the first one set.
    let renamed = std::fs::read_to_string(sandbox.path().join("own.toml")).expect("ours");
    std::fs::write(sandbox.path().join("own.toml"), renamed.replace("\"own\"", "\"mode\"")).expect("ours");
    let refused = format!(
        "vm.overcommit_ratio; what is set above it needs them, and {HERE} undo 1 is refused until that is taken back, \
         as by {HERE} undo --all"
    );
    for words in [&["plan", "./own.toml", "--allow", "availability"][..], &apply] {
        let run = on(sandbox.path(), words);
        assert_eq!(run.exit, 0, "{}", run.stdout);
        let told = messages(&run);
        assert!(told.contains(&refused) && !told.contains("takes them back"), "{told}");
    }
    assert_eq!(on(sandbox.path(), &["undo", "1"]).exit, 3, "as was said");
    assert_eq!(on(sandbox.path(), &["undo", "--all"]).exit, 0);
}

#[test]
fn a_place_that_was_given_up_is_not_told_to_be_given_up() {
    let sandbox = sandbox();
    assert_eq!(on(sandbox.path(), &["apply", "two", "--yes"]).exit, 0);
    std::fs::remove_file(sandbox.path().join("host/proc/sys/vm/stat_interval")).expect("it is recorded");
    let kept = messages(&on(sandbox.path(), &["undo"]));
    assert!(kept.contains(&format!("to give it up: {HERE} undo 1 --force")), "{kept}");
    let given_up = messages(&on(sandbox.path(), &["undo", "1", "--force"]));
    let told = "/proc/sys/vm/stat_interval is not there now, and was given up; before entry 1 it was 1\"";
    assert!(given_up.contains(told) && !given_up.contains("to give it up"), "{given_up}");
    assert!(messages(&on(sandbox.path(), &["undo"])).contains("there is nothing to undo"));
}

#[test]
fn no_class_is_asked_for_what_is_not_here() {
    let sandbox = sandbox();
    let rings = |only: &str| format!("\"net.rings_rx\" = {{ value = 4096, only = \"{only}\" }}");
    for (want, verdict, reason) in [
        (rings("ens9"), "absent", "no place of it matches `ens9`: this host has "),
        (rings("en*"), "blocked", "may stall the host: --allow availability"),
        (
            "\"unit.memlock\" = { value = \"infinity\", only = \"zeptodb\" }".to_owned(),
            "absent",
            "no service of this host is called `zeptodb`: it has ",
        ),
    ] {
        own_profile(sandbox.path(), &want);
        let planned = on(sandbox.path(), &["plan", "./own.toml"]);
        let row = planned.envelope()["result"]["skipped"][0].clone();
        assert_eq!(row["verdict"], verdict, "{want}: {}", planned.stdout);
        assert!(row["reason"].as_str().expect("a reason").starts_with(reason), "{want}: {row}");
    }
}

/// What a profile of tuned sets that nobody can read is no write that is sure.
#[test]
fn a_writer_whose_profile_cannot_be_read_may_write_and_no_more() {
    let plan = |profile: &str| recorded("rhel9-guest", &["plan", profile]).envelope()["result"].clone();
    let planned = plan("postgres");
    let tuned =
        planned["second_writers"].as_array().expect("writers").iter().find(|seen| seen["id"] == "tuned");
    let tuned = tuned.expect("it is at work there");
    assert_eq!(tuned["maybe"], tuned["places"], "{tuned}");
    let root = repository().join("hosts/rhel9-guest").display().to_string();
    let page = planish::run(["--root", &root, "plan", "postgres"]).stdout;
    let words = page.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("tuned may write ") && words.contains(" of this plan too, now"), "{page}");
    assert!(!words.contains("tuned writes"), "{page}");
}

/// A name that no service has may be a typing error: to leave it out without a word is to call it done.
#[test]
fn what_a_profile_names_and_nothing_here_is_called_is_told_at_the_apply() {
    let sandbox = sandbox();
    let nofile = |only: &str| {
        format!("\"vm.swappiness\" = 7\n\"unit.nofile\" = {{ value = \"65536\", only = \"{only}\" }}")
    };
    own_profile(sandbox.path(), &nofile("redis-server.service"));
    let refused = on(sandbox.path(), &["apply", "./own.toml", "--yes"]);
    assert_eq!(refused.exit, 2, "{}", refused.stdout);
    assert!(messages(&refused).contains("name without `.service`: leave that out"), "{}", refused.stdout);
    own_profile(sandbox.path(), &nofile("redis_server"));
    let applied = on(sandbox.path(), &["apply", "./own.toml", "--yes"]);
    let told =
        "unit.nofile is not set: no service of this host is called `redis_server`: it has redis-server";
    assert!(applied.exit == 0 && messages(&applied).contains(told), "{}", applied.stdout);
}

/// The kernel loads the module of a word that is written, so that only a word without one is not here.
#[test]
fn a_word_that_a_module_is_there_for_is_written() {
    let sandbox = sandbox();
    own_profile(sandbox.path(), "\"net.ipv4.tcp_congestion_control\" = \"bbr\"\n\"vm.swappiness\" = 7");
    let missing = "`bbr` is not offered here: ";
    let planned = on(sandbox.path(), &["plan", "./own.toml"]);
    assert!(planned.stdout.contains(missing), "{}", planned.stdout);
    let host = sandbox.path().join("host");
    let release = std::fs::read_to_string(host.join("proc/sys/kernel/osrelease")).expect("the kernel's name");
    let folder = host.join(format!("lib/modules/{}/kernel/net/ipv4", release.trim()));
    std::fs::create_dir_all(&folder).expect("a folder of modules");
    std::fs::write(folder.join("tcp_bbr.ko.xz"), "").expect("a module");
    let planned = on(sandbox.path(), &["plan", "./own.toml"]);
    assert!(!planned.stdout.contains(missing), "{}", planned.stdout);
    let steps = planned.envelope()["result"]["steps"].to_string();
    assert!(steps.contains("tcp_congestion_control"), "{steps}");
    // A kernel without a program that loads them loads none.
    std::fs::write(host.join("proc/sys/kernel/modprobe"), "\n").expect("no program");
    assert!(on(sandbox.path(), &["plan", "./own.toml"]).stdout.contains(missing));
    std::fs::write(host.join("proc/sys/kernel/modprobe"), "/sbin/modprobe\n").expect("a program");
    assert!(!on(sandbox.path(), &["plan", "./own.toml"]).stdout.contains(missing));
    // Whoever locked modules out loads none.
    std::fs::write(host.join("proc/sys/kernel/modules_disabled"), "1\n").expect("a lock");
    assert!(on(sandbox.path(), &["plan", "./own.toml"]).stdout.contains(missing));
}

/// Whoever takes back what is newest may take the host for clean.
#[test]
fn an_undo_names_what_is_open_below_it() {
    let sandbox = sandbox();
    own_profile(sandbox.path(), "\"vm.page-cluster\" = 1");
    assert_eq!(on(sandbox.path(), &["apply", "two", "--yes"]).exit, 0);
    assert_eq!(on(sandbox.path(), &["apply", "./own.toml", "--yes"]).exit, 0);
    let undone = on(sandbox.path(), &["undo"]);
    let told = format!("entry 1 (two) is open still; to take that back too: {HERE} undo --all");
    assert!(undone.exit == 0 && messages(&undone).contains(&told), "{}", undone.stdout);
    let last = on(sandbox.path(), &["undo"]);
    assert!(last.exit == 0 && !messages(&last).contains("open still"), "{}", last.stdout);
}

/// What is left out need not be writable.
#[test]
fn a_place_that_is_left_out_keeps_no_apply_from_ending_well() {
    let sandbox = tempfile::tempdir().expect("a temporary folder");
    let host = sandbox.path().join("host");
    copy_tree(&repository().join("hosts/container-ro"), &host);
    let meta = host.join("meta.toml");
    let text = std::fs::read_to_string(&meta).expect("a description");
    std::fs::write(&meta, text.replace("writable = false", "writable = true")).expect("a copy to write on");
    let apply = ["apply", "redis", "--yes"];
    let refused = on(sandbox.path(), &apply);
    assert!(refused.exit == 3 && messages(&refused).contains("mounted read-only"), "{}", refused.stdout);
    let left_out = ["--exclude", "net.ipv4.tcp_max_syn_backlog", "--exclude", "vm.swappiness"];
    let done = on(sandbox.path(), &[&apply[..], &left_out].concat());
    assert!(done.exit == 0 && messages(&done).contains("nothing was written"), "{}", done.stdout);
}
