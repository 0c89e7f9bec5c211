//! What planish tells people to type next can be typed, and does what was told.

use std::path::Path;

use crate::exits::{message, monitored, on, sandbox};
use crate::planish::{Run, command};
use crate::recorded::repository;

const HERE: &str = "planish --root host --state state";

/// A profile of one knob in a file beside the host.
fn own_profile(sandbox: &Path) {
    let own = "name = \"own\"\nsummary = \"s\"\n[want]\n\"vm.swappiness\" = 5\n";
    std::fs::write(sandbox.join("own.toml"), own).expect("a profile");
}

/// Somebody's own wish for the next boot.
fn others(sandbox: &Path) {
    std::fs::write(sandbox.join("host/etc/sysctl.d/99-local.conf"), "vm.swappiness = 42\n").expect("a file");
}

/// Types a line that planish proposed.
fn typed(sandbox: &Path, line: &str) -> Run {
    let words = line.strip_prefix(HERE).unwrap_or_else(|| panic!("of another host: {line}"));
    on(sandbox, &words.split_whitespace().collect::<Vec<_>>())
}

/// Anybody can compute a hash: what no plan of the catalogue holds is refused where it is shown, too.
#[test]
fn a_plan_file_that_was_forged_is_refused_where_it_is_shown() {
    let sandbox = sandbox();
    assert_eq!(on(sandbox.path(), &["plan", "two", "-o", "two.json"]).exit, 0);
    let file = sandbox.path().join("two.json");
    let text = std::fs::read_to_string(&file).expect("a plan");
    let plan: planish_model::Plan = serde_json::from_str(&text).expect("a plan");
    let mut steps = plan.steps;
    steps[0].place = "/proc/sysrq-trigger".to_owned();
    let forged = planish_model::Plan::new(plan.profile, plan.host_id, plan.boot_id, steps, Vec::new());
    std::fs::write(&file, serde_json::to_string(&forged).expect("text")).expect("a file");
    for words in
        [&["plan", "two.json"][..], &["plan", "two.json", "--persist"], &["apply", "two.json", "--yes"]]
    {
        let run = on(sandbox.path(), words);
        assert_eq!(run.exit, 3, "{words:?}: {}", run.stdout);
        assert!(message(&run, "error").contains("/proc/sysrq-trigger"), "{}", run.stdout);
    }
}

/// A profile of tuned that somebody sent may name any file, and what is refused is printed with its values.
#[test]
fn a_profile_of_tuned_takes_variables_of_tuned_alone() {
    let sandbox = sandbox();
    let host = sandbox.path().join("host/etc");
    std::fs::create_dir_all(host.join("tuned")).expect("a folder");
    for file in ["tuned/v.conf", "secret"] {
        std::fs::write(host.join(file), "own=5\npassword=swordfish\n").expect("a file");
    }
    for (path, is_read) in
        [("/etc/tuned/v.conf", true), ("/etc/secret", false), ("/etc/tuned/../secret", false)]
    {
        let profile =
            format!("[variables]\ninclude={path}\n[sysctl]\nvm.swappiness=${{own}}\nvm.x=${{password}}\n");
        std::fs::write(sandbox.path().join("tuned.conf"), profile).expect("a profile");
        let run = on(sandbox.path(), &["import", "tuned.conf", "--from", "tuned"]);
        let accepted = run.stdout.contains("\"knob\": \"vm.swappiness\"");
        assert_eq!(
            (accepted, run.stdout.contains("swordfish")),
            (is_read, is_read),
            "{path}: {}",
            run.stdout
        );
    }
}

#[test]
fn what_import_proposes_to_type_is_taken() {
    let sandbox = sandbox();
    std::fs::write(sandbox.path().join("mine.conf"), "vm.swappiness = 5\n").expect("settings");
    let shown = on(sandbox.path(), &["import", "mine.conf", "--from", "sysctl"]);
    let save = message(&shown, "next").replace(" --json", "");
    assert_eq!(save, format!("{HERE} import mine.conf --from sysctl --output ./mine.toml"));
    for output in ["mine.toml", "./mine.toml"] {
        let _ = std::fs::remove_file(sandbox.path().join(output));
        let saved = on(sandbox.path(), &["import", "mine.conf", "-o", output]);
        let next = message(&saved, "next");
        assert_eq!(next, format!("{HERE} plan ./mine.toml"));
        assert_eq!(typed(sandbox.path(), &next).exit, 0);
    }
    let again = on(sandbox.path(), &["import", "mine.conf", "-o", "mine.toml"]);
    assert_eq!((again.exit, message(&again, "error").as_str()), (3, "mine.toml is there already"));
    let odd = on(sandbox.path(), &["import", "mine.conf", "-o", "mine"]);
    let told = "mine: a file is taken for a profile where its name ends in .toml";
    assert_eq!((odd.exit, message(&odd, "error").as_str()), (2, told));
    assert_eq!(odd.envelope()["messages"][0]["hint"], "--output mine.toml");
    assert!(!sandbox.path().join("mine").exists());
}

#[test]
fn a_file_is_imported_by_its_ending_and_one_of_no_format_is_told_as_that() {
    let sandbox = sandbox();
    let script = "[ -e /x ] && /bin/true\n/sbin/sysctl -w vm.swappiness=5\n";
    std::fs::write(sandbox.path().join("thp.sh"), script).expect("a script");
    let read = on(sandbox.path(), &["import", "thp.sh"]);
    assert_eq!((read.exit, &read.envelope()["result"]["format"]), (0, &"script".into()), "{}", read.stdout);
    std::fs::write(sandbox.path().join("limits.conf"), "* soft nofile 65536\n* hard nofile 65536\n")
        .expect("limits");
    let odd = on(sandbox.path(), &["import", "limits.conf"]);
    let told = message(&odd, "error");
    assert!(
        odd.exit == 3 && told.contains("a file of limits.conf, whose limits are those of logins"),
        "{told}"
    );
    let odd = on(sandbox.path(), &["import", "limits.conf", "--from", "tuned"]);
    assert!(message(&odd, "error").contains("it is a file of limits.conf"), "{}", odd.stdout);
}

#[test]
fn what_was_exported_is_told_how_to_install_and_keeps_what_was_allowed() {
    let sandbox = sandbox();
    for (format, told) in [
        ("script", "sudo sh out/script/two.sh"),
        (
            "sysctl",
            "sudo cp -r out/sysctl/etc/. /etc/ && sudo systemctl daemon-reload && sudo systemctl enable --now \
                    two-settings.service",
        ),
        ("tuned", "sudo cp -r out/tuned/etc/tuned/. /etc/tuned/ && sudo tuned-adm profile two"),
        ("ansible", "name out/ansible/two.yml in a play with ansible.builtin.import_tasks"),
        ("node-tuning", "oc apply -f out/node-tuning/planish-two.yaml"),
    ] {
        let folder = format!("out/{format}");
        let saved = on(sandbox.path(), &["export", format, "two", "-o", &folder, "--allow", "availability"]);
        let notes = saved.envelope()["messages"].to_string();
        assert!(saved.exit == 0 && notes.contains(told), "{format}: {notes}");
        assert_eq!(message(&saved, "next"), format!("{HERE} plan two --allow availability"));
        assert_eq!(typed(sandbox.path(), &message(&saved, "next")).exit, 0);
        assert!(sandbox.path().join(folder).is_dir());
    }
    let plain = on(sandbox.path(), &["export", "script", "two", "-o", "plain"]);
    assert_eq!(message(&plain, "next"), format!("{HERE} check two"));
    let none = on(sandbox.path(), &["export", "kernel-args", "two", "--allow", "availability"]);
    assert_eq!(message(&none, "next"), format!("{HERE} apply two --allow availability"));
    assert_eq!(none.exit, 1);
    let args = "name = \"args\"\nsummary = \"s\"\n[want]\n\"boot.skew_tick\" = 1\n\"vm.swappiness\" = 1\n";
    std::fs::write(sandbox.path().join("args.toml"), args).expect("a profile");
    let script = on(sandbox.path(), &["export", "script", "./args.toml"]);
    let files = script.envelope()["result"]["files"].to_string();
    assert!(files.contains("command line:\\n#   skew_tick=1"), "the note says that it is there: {files}");
    // Nor is there a script that sets nothing, or a file for units of which nobody knows the name.
    let text =
        "name = \"units\"\nsummary = \"s\"\n[want]\n\"unit.nofile\" = { value = \"5000\", only = \"zz*\" }\n";
    std::fs::write(sandbox.path().join("units.toml"), text).expect("a profile");
    let nothing = on(sandbox.path(), &["export", "script", "./units.toml", "-o", "nothing"]);
    let notes = nothing.envelope()["messages"].to_string();
    assert!(nothing.exit == 1 && notes.contains("no unit of this host is called `zz*`"), "{notes}");
    assert!(notes.contains("nothing for script on this host: no file"), "{notes}");
    assert!(!sandbox.path().join("nothing").exists());
    // Of a unit that is named the file is for other hosts, and the note types what this host would do.
    std::fs::write(sandbox.path().join("units.toml"), text.replace("zz*", "nosuch")).expect("a profile");
    let other = on(sandbox.path(), &["export", "sysctl", "./units.toml", "-o", "units"]);
    let notes = other.envelope()["messages"].to_string();
    assert!(other.exit == 0 && notes.contains("unit.nofile is for other hosts"), "{notes}");
    assert!(notes.contains("sudo systemctl daemon-reload\"") && !notes.contains("enable --now"), "{notes}");
    let drop_in = "units/etc/systemd/system/nosuch.service.d/zz-export-units.conf";
    let back = on(sandbox.path(), &["import", drop_in, "--name", "units"]);
    let toml = back.envelope()["result"]["text"].to_string();
    assert!(back.exit == 0 && toml.contains("only = \\\"nosuch\\\""), "{toml}");
    let tuned = on(sandbox.path(), &["export", "tuned", "./units.toml"]);
    let notes = tuned.envelope()["messages"].to_string();
    assert!(notes.contains(&format!("or {HERE} apply ./units.toml")), "{notes}");
}

#[test]
fn the_name_of_a_file_in_the_place_of_a_profile_is_told_how_it_is_meant() {
    let sandbox = sandbox();
    own_profile(sandbox.path());
    for args in [
        &["plan", "own.toml"][..],
        &["apply", "own.toml", "--yes"],
        &["check", "own.toml"],
        &["doctor", "own.toml"],
        &["export", "script", "own.toml"],
        &["trial", "new", "--cmd", "true", "--profile", "own.toml"],
    ] {
        let run = on(sandbox.path(), args);
        let error = run.envelope()["messages"][0].clone();
        assert_eq!((run.exit, &error["text"]), (2, &"no profile `own.toml`, but a file of that name".into()));
        assert!(error.to_string().contains("with a slash it is that file: ./own.toml"), "{error}");
    }
}

#[test]
fn a_trial_takes_a_profile_in_a_file_as_plan_does() {
    let sandbox = sandbox();
    own_profile(sandbox.path());
    let new = |profile: &str| {
        let words = ["trial", "new", "--cmd", "true", "--profile", profile, "-o", "t.toml"];
        command(sandbox.path(), words).output().map(Run::from).expect("the binary starts")
    };
    let made = new("./own.toml");
    assert_eq!(made.exit, 0, "{}", made.stderr);
    assert!(made.stderr.ends_with("planish trial selfcheck t.toml\n"), "{}", made.stderr);
    let text = std::fs::read_to_string(sandbox.path().join("t.toml")).expect("a trial");
    assert!(text.ends_with("name = \"own\"\n\n[rung.want]\n\"vm.swappiness\" = 5\n"), "{text}");
    std::fs::write(sandbox.path().join("plan.json"), "{}").expect("a file");
    let refused = new("./plan.json");
    assert_eq!(refused.exit, 2);
    assert!(
        refused.stderr.contains("./plan.json is no profile: a file of one ends in .toml"),
        "{}",
        refused.stderr
    );
}

#[test]
fn what_a_file_will_overwrite_is_said_and_kept_as_it_was_allowed() {
    let sandbox = sandbox();
    let own =
        "name = \"own\"\nsummary = \"s\"\n[want]\n\"vm.swappiness\" = 5\n\"vm.overcommit_memory\" = 1\n";
    std::fs::write(sandbox.path().join("own.toml"), own).expect("a profile");
    others(sandbox.path());
    let apply = ["apply", "./own.toml", "--yes", "--allow", "availability", "--exclude", "vm.stat_interval"];
    assert_eq!(on(sandbox.path(), &apply).exit, 0);
    let keep = format!("{HERE} apply ./own.toml --persist --allow availability --exclude vm.stat_interval");
    for args in [&["check", "./own.toml"][..], &["check"]] {
        let run = on(sandbox.path(), args);
        assert_eq!((run.exit, message(&run, "next")), (1, keep.clone()), "{args:?}: {}", run.stdout);
        assert!(
            run.stdout.contains("exit code 1: 1 place as wanted now will be set otherwise"),
            "{}",
            run.stdout
        );
        assert!(run.stdout.contains("99-local.conf:1 will set 42"), "{}", run.stdout);
        assert!(run.stdout.contains(&format!("1 place will not outlast a reboot: {keep}")), "{}", run.stdout);
    }
    let kept = typed(sandbox.path(), &format!("{keep} --yes"));
    assert_eq!(kept.exit, 1, "{}", kept.stdout);
    // That file is read after ours, as was said: the line has to go.
    let run = on(sandbox.path(), &["check", "./own.toml"]);
    let again = format!("{HERE} plan ./own.toml --allow availability");
    assert_eq!((run.exit, message(&run, "next")), (1, again), "{}", run.stdout);
    assert!(
        run.stdout.contains(
            "; take out /etc/sysctl.d/99-local.conf:1: it is read after 90-planish.conf, which --persist writes"
        ),
        "{}",
        run.stdout
    );
    std::fs::write(sandbox.path().join("host/etc/sysctl.d/99-local.conf"), "").expect("a file");
    let run = on(sandbox.path(), &["check", "./own.toml"]);
    assert_eq!((run.exit, message(&run, "next")), (0, format!("{HERE} log")), "{}", run.stdout);
}

/// A line of ours is in the journal: who took it out by hand would have an undo that finds a stranger's file.
#[test]
fn what_an_older_entry_persisted_is_taken_over_and_never_taken_out_by_hand() {
    let sandbox = sandbox();
    std::fs::write(sandbox.path().join("host/etc/sysctl.d/99-local.conf"), "").expect("a file");
    own_profile(sandbox.path());
    assert_eq!(on(sandbox.path(), &["apply", "two", "--persist", "--yes"]).exit, 0);
    let other = "name = \"other\"\nsummary = \"s\"\n[want]\n\"vm.swappiness\" = 7\n";
    std::fs::write(sandbox.path().join("other.toml"), other).expect("a profile");
    let applied = on(sandbox.path(), &["apply", "./other.toml", "--yes"]);
    let messages = applied.envelope()["messages"].to_string();
    let line = "/etc/sysctl.d/90-planish.conf:3 of entry 1 will set 5";
    let keep = format!("{HERE} apply ./other.toml --persist");
    let back = format!(
        "1 place as wanted now, and the next boot brings back what older entries persisted: vm.swappiness ({line}): \
         {keep}"
    );
    assert!(applied.exit == 0 && messages.contains(&back), "{messages}");
    let check = on(sandbox.path(), &["check", "./other.toml"]);
    assert_eq!((check.exit, message(&check, "next")), (1, keep.clone()), "{}", check.stdout);
    let cure = format!("vm.swappiness ({line}); lines of older entries are taken over by: {keep}\"");
    assert!(check.stdout.contains(&cure) && !check.stdout.contains("take out"), "{}", check.stdout);
    // A line of somebody else beside it has its own cure.
    others(sandbox.path());
    std::fs::write(sandbox.path().join("host/proc/sys/vm/stat_interval"), "10\n").expect("a file");
    let both =
        "name = \"other\"\nsummary = \"s\"\n[want]\n\"vm.swappiness\" = 7\n\"vm.stat_interval\" = 30\n";
    std::fs::write(sandbox.path().join("other.toml"), both).expect("a profile");
    assert_eq!(on(sandbox.path(), &["apply", "./other.toml", "--yes"]).exit, 0);
    let check = on(sandbox.path(), &["check", "./other.toml"]);
    for part in [
        "vm.stat_interval (/etc/sysctl.d/90-planish.conf:2 of entry 1 will set 10)",
        "; take out /etc/sysctl.d/99-local.conf:1: it is read after 90-planish.conf, which --persist writes",
    ] {
        assert!(check.stdout.contains(part), "{part}: {}", check.stdout);
    }
    std::fs::write(sandbox.path().join("host/etc/sysctl.d/99-local.conf"), "").expect("a file");
    assert_eq!(typed(sandbox.path(), &format!("{keep} --yes")).exit, 0);
    assert_eq!(on(sandbox.path(), &["check", "./other.toml"]).exit, 0);
}

#[test]
fn a_plan_file_of_a_host_that_has_moved_is_refused_where_it_is_shown() {
    let sandbox = sandbox();
    let saved = on(sandbox.path(), &["plan", "two", "-o", "two.json"]);
    assert_eq!(message(&saved, "next"), format!("{HERE} apply two.json"));
    let shown = on(sandbox.path(), &["plan", "two.json"]);
    assert_eq!(
        (shown.exit, message(&shown, "next")),
        (0, format!("{HERE} apply two.json")),
        "{}",
        shown.stdout
    );
    std::fs::write(sandbox.path().join("host/proc/sys/vm/swappiness"), "30\n").expect("a file");
    let moved =
        "the host has moved since the plan was made: /proc/sys/vm/swappiness is `30`, the plan saw `60`";
    let applied = on(sandbox.path(), &["apply", "two.json", "--yes"]);
    assert_eq!((applied.exit, message(&applied, "error")), (3, moved.to_owned()), "{}", applied.stdout);
    let shown = on(sandbox.path(), &["plan", "two.json"]);
    assert_eq!(shown.exit, 3, "{}", shown.stdout);
    assert_eq!(message(&shown, "error"), format!("apply refuses this plan: {moved}"));
    let anew = message(&shown, "next");
    assert_eq!(anew, format!("{HERE} plan two -o two.json"));
    assert_eq!(typed(sandbox.path(), &anew).exit, 0);
    let applied = on(sandbox.path(), &["apply", "two.json", "--yes"]);
    assert_eq!(applied.exit, 0, "{}", applied.stdout);
    // What is in force shows no value that the plan saw, and is no stale plan.
    assert_eq!(on(sandbox.path(), &["plan", "two.json"]).exit, 0);
}

/// What an apply left to others would else be a drift of that profile for ever.
#[test]
fn what_was_left_out_is_left_out_of_the_check_too() {
    let sandbox = sandbox();
    others(sandbox.path());
    for name in ["vm.swappiness", "sysctl.d"] {
        let applied = on(sandbox.path(), &["apply", "two", "--yes", "--persist", "--exclude", name]);
        assert_eq!(applied.exit, 0, "{}", applied.stdout);
        let narrow = format!("{HERE} check two --exclude {name}");
        assert_eq!(message(&applied, "next"), narrow);
        let whole = on(sandbox.path(), &["check", "two"]);
        assert_eq!(whole.exit, 1, "{name}: {}", whole.stdout);
        let told =
            format!("it was applied without {name}, which this check holds against the host: {narrow}");
        assert!(whole.stdout.contains(&told), "{}", whole.stdout);
        let run = typed(sandbox.path(), &narrow);
        assert_eq!(run.exit, 0, "{}", run.stdout);
        assert!(!run.stdout.contains("/proc/sys/vm/swappiness"), "{}", run.stdout);
        assert_eq!(monitored(sandbox.path(), &["two"]).0, 2);
        assert_eq!(monitored(sandbox.path(), &["two", "--exclude", name]).0, 0);
        assert_eq!(on(sandbox.path(), &["install", "check", "two", "--exclude", name, "--yes"]).exit, 0);
        let unit = sandbox.path().join("host/etc/systemd/system/planish-check.service");
        let unit = std::fs::read_to_string(unit).expect("a unit");
        let line = format!("\nExecStart=/usr/bin/planish check two --exclude {name} --monitor\n");
        assert!(unit.contains(&line), "{unit}");
        // Also where it happens to be as wanted, and others will set it otherwise.
        std::fs::write(sandbox.path().join("host/proc/sys/vm/swappiness"), "5\n").expect("a file");
        assert_eq!((on(sandbox.path(), &["check", "two"]).exit, typed(sandbox.path(), &narrow).exit), (1, 0));
        std::fs::write(sandbox.path().join("host/proc/sys/vm/swappiness"), "60\n").expect("a file");
        assert_eq!(on(sandbox.path(), &["undo", "--all"]).exit, 0);
    }
    for wrong in [
        &["check", "two", "--exclude", "vm.swapines"][..],
        &["check", "--exclude", "vm.swappiness"],
        &["check", "./two.json", "--exclude", "vm.swappiness"],
        &["install", "check", "two", "--yes", "--exclude", "tunde"],
        &["install", "check", "--yes", "--exclude", "tuned"],
        &["install", "check", "./two.toml", "--yes"],
    ] {
        assert_eq!(on(sandbox.path(), wrong).exit, 2, "{wrong:?}");
    }
    let file = on(sandbox.path(), &["install", "check", "./two.toml", "--yes"]);
    assert!(file.stdout.contains("copy it to /etc/planish/profiles"), "{}", file.stdout);
}

/// Persisted, and lost to a unit: the unit is named, with what lets go, and nobody types --persist once more.
#[test]
fn who_writes_over_it_at_the_boot_is_named_with_the_cure() {
    let sandbox = sandbox();
    own_profile(sandbox.path());
    let host = sandbox.path().join("host");
    let put = |path: &str, text: &str| {
        let file = host.join(path);
        std::fs::create_dir_all(file.parent().expect("a folder")).expect("ours");
        std::fs::write(file, text).expect("ours");
    };
    put("run/systemd/system/.keep", "");
    put("usr/lib/systemd/system/own.service", "[Service]\nExecStart=/bin/true\n");
    put("etc/systemd/system/own.service.d/o.conf", "[Service]\nExecStartPre=sysctl -w vm.swappiness=60\n");
    put("etc/systemd/system/multi-user.target.wants/own.service", "");
    let drop_in = "/etc/systemd/system/own.service.d/o.conf";
    let applied = on(sandbox.path(), &["apply", "./own.toml", "--persist", "--yes"]);
    assert_eq!(applied.exit, 1, "{}", applied.stdout);
    assert!(applied.stdout.contains(drop_in), "{}", applied.stdout);
    for source in [None, Some("./own.toml")] {
        let words: Vec<&str> = ["check"].into_iter().chain(source).collect();
        let check = on(sandbox.path(), &words);
        assert_eq!(check.exit, 1, "{}", check.stdout);
        assert!(check.stdout.contains("overwritten-at-boot"), "{}", check.stdout);
        let told = format!(
            "exit code 1: 1 place as wanted now will be written over at the boot by units ({drop_in}): take the line \
             that sets it out of {drop_in}, and: systemctl daemon-reload"
        );
        assert!(check.stdout.contains(&told), "{}", check.stdout);
        assert!(!check.stdout.contains("disable --now"), "{}", check.stdout);
        assert!(!check.stdout.contains("--persist"), "{}", check.stdout);
        let (code, line) = monitored(sandbox.path(), &words[1..]);
        assert!(code == 1 && line.contains(drop_in) && line.contains("lost=1 "), "{code} {line}");
    }
}

#[test]
fn nobody_is_sent_to_persist_what_no_file_brings_back() {
    let sandbox = sandbox();
    others(sandbox.path());
    let own = "name = \"own\"\nsummary = \"s\"\n[want]\n\"vm.swappiness\" = 5\n[placement]\n\
               [[placement.service]]\nunit = \"realtime.service\"\nnode = 0\nisolate = true\ndevices = [\"eno1\"]\n";
    std::fs::write(sandbox.path().join("own.toml"), own).expect("a profile");
    let apply = ["apply", "./own.toml", "--yes", "--allow", "availability"];
    // Boot parameters wait for --persist and a reboot.
    assert_eq!(on(sandbox.path(), &apply).exit, 1);
    let told = |words: &[&str]| on(sandbox.path(), words).envelope()["messages"].to_string();
    // Some of it a file brings back, and interrupts none.
    let before = told(&["check", "./own.toml"]);
    assert!(before.contains("irq.affinity is not persisted ("), "{before}");
    let (_, keep) = before.split_once(" will not outlast a reboot: ").unwrap_or_else(|| panic!("{before}"));
    let (keep, _) = keep.split_once('"').expect("a text ends");
    // A part of a placement is none: the line must allow all of it.
    let kept = typed(sandbox.path(), &format!("{keep} --yes"));
    let loader = std::fs::read_to_string(sandbox.path().join("host/etc/default/grub.d/90-planish.cfg"));
    assert!(loader.is_ok_and(|text| text.contains("irqaffinity=")), "{keep}: {}", kept.stdout);
    for words in [&["check", "./own.toml"][..], &["check"]] {
        let after = told(words);
        assert!(!after.contains("outlast") && !after.contains("apply ./own.toml --persist"), "{after}");
        // The boot parameter keeps them off the CPUs of the service.
        assert!(!after.contains("irq.affinity"), "{after}");
        assert!(after.contains("99-local.conf:1 will set 42"), "{after}");
    }
}

/// It is what the user has just taken back.
#[test]
fn nobody_is_sent_to_persist_pages_that_an_undo_left_in_use() {
    let sandbox = sandbox();
    let own = "name = \"own\"\nsummary = \"s\"\n[want]\n\"hugepages.2m\" = { need_bytes = 268435456, nodes = [0] }\n";
    std::fs::write(sandbox.path().join("own.toml"), own).expect("a profile");
    assert_eq!(on(sandbox.path(), &["apply", "./own.toml", "--yes"]).exit, 0);
    let node = sandbox.path().join("host/sys/devices/system/node/node0/hugepages/hugepages-2048kB");
    let free = |pages: &str| std::fs::write(node.join("free_hugepages"), pages).expect("a file");
    free("28\n");
    assert_eq!(on(sandbox.path(), &["undo"]).exit, 1);
    let checked = on(sandbox.path(), &["check"]);
    let told = &checked.stdout;
    assert!(checked.exit == 0 && !told.contains("will not outlast a reboot"), "{told}");
    let left =
        "entry 1 is undone but for huge pages that were in use (100 of hugepages.2m): once nobody uses them";
    assert!(told.contains(left), "{told}");
    let log = command(sandbox.path(), ["--root", "host", "--state", "state", "log"]).output().map(Run::from);
    let log = log.expect("the binary starts").stdout;
    assert!(log.contains("undone, pages in use"), "{log}");
    let next = message(&checked, "next");
    assert_eq!(next, format!("{HERE} undo 1"));
    free("100\n");
    assert_eq!(typed(sandbox.path(), &next).exit, 0);
    assert_eq!(message(&on(sandbox.path(), &["check"]), "next"), format!("{HERE} log"));
}

#[test]
fn a_file_of_another_state_folder_is_told_as_one() {
    let sandbox = sandbox();
    // A file of this host that is read later takes vm.swappiness back.
    assert_eq!(on(sandbox.path(), &["apply", "two", "--persist", "--yes"]).exit, 1);
    let told = |state: &str| {
        let words = ["--json", "--root", "host", "--state", state, "check"];
        let run: Run = command(sandbox.path(), words).output().expect("the binary starts").into();
        run.envelope()["messages"].to_string().matches("another --state wrote it").count()
    };
    assert_eq!((told("state"), told("state2")), (0, 1));
    assert_eq!(on(sandbox.path(), &["undo"]).exit, 0);
    assert_eq!((told("state"), told("state2")), (0, 0));
}

#[test]
fn a_file_that_an_undo_left_is_told_with_its_entry_and_what_takes_it_out() {
    let sandbox = sandbox();
    // A file of this host that is read later takes vm.swappiness back.
    assert_eq!(on(sandbox.path(), &["apply", "two", "--persist", "--yes"]).exit, 1);
    let file = sandbox.path().join("host/etc/sysctl.d/90-planish.conf");
    // A line of ours that somebody changed is theirs, and stays; one that they wrote beside ours would not keep ours.
    let edited =
        std::fs::read_to_string(&file).expect("it was persisted").replace("swappiness = ", "swappiness = 4");
    std::fs::write(&file, edited + "vm.laptop_mode = 5\n").expect("a file");
    let undone = on(sandbox.path(), &["undo"]);
    assert_eq!(undone.exit, 1);
    let told = on(sandbox.path(), &["check"]).envelope()["messages"].to_string();
    let path = "host/etc/sysctl.d/90-planish.conf";
    assert!(told.contains("the undo of entry 1 left it"), "{told}");
    assert!(told.contains(&format!("mv {path} {path}.mine")), "{told}");
    assert!(!told.contains("another --state wrote it"), "{told}");
    // Force takes all of it out, with what they wrote: it is told with that, and is not what the last line proposes.
    let all = undone.envelope()["messages"].to_string();
    assert!(
        all.contains(&format!("lose all that others wrote into it since: {HERE} undo 1 --force")),
        "{all}"
    );
    for run in [&undone, &on(sandbox.path(), &["undo"])] {
        assert!(!message(run, "next").contains("--force"), "{}", run.stdout);
    }
    assert_eq!(on(sandbox.path(), &["undo", "1", "--force"]).exit, 0);
    assert!(!file.exists(), "all of it is out");
}

/// As behind a trial boot that was kept: what runs is as wanted, the line is there, and the menu was not made of it.
#[test]
fn a_line_that_the_menu_lacks_is_no_line_of_an_older_entry() {
    let sandbox = sandbox();
    let want = "name = \"tick\"\nsummary = \"s\"\n[want]\n\"boot.skew_tick\" = 1\n";
    std::fs::write(sandbox.path().join("tick.toml"), want).expect("a profile");
    on(sandbox.path(), &["apply", "./tick.toml", "--persist", "--yes"]);
    let cmdline = sandbox.path().join("host/proc/cmdline");
    let given = std::fs::read_to_string(&cmdline).expect("a line");
    std::fs::write(&cmdline, format!("{} skew_tick=1\n", given.trim())).expect("a line");
    let check = on(sandbox.path(), &["check"]);
    let told = check.envelope()["messages"].to_string();
    assert_eq!(check.exit, 1, "{told}");
    assert!(told.contains("boot.skew_tick (") && told.contains("update-grub"), "{told}");
    assert!(!told.contains("older entries"), "{told}");
}

#[test]
fn what_nobody_asked_for_is_told_and_makes_no_drift() {
    let sandbox = sandbox();
    others(sandbox.path());
    let globals = ["--root", "host", "--state", "state", "check"];
    let run: Run = command(sandbox.path(), globals).output().expect("the binary starts").into();
    assert_eq!(run.exit, 0, "{}", run.stderr);
    let row = run.stdout.lines().find(|line| line.starts_with("vm.swappiness")).expect("told");
    assert!(row.contains(" differs;") && !run.stdout.contains("drift"), "{}", run.stdout);
    assert!(run.stderr.contains("which is no drift of ours"), "{}", run.stderr);
}

#[test]
fn what_an_undo_left_to_others_is_in_the_log_and_forced_by_its_number() {
    let sandbox = sandbox();
    let swappiness = sandbox.path().join("host/proc/sys/vm/swappiness");
    let original = std::fs::read_to_string(&swappiness).expect("a value");
    assert_eq!(on(sandbox.path(), &["apply", "two", "--yes"]).exit, 0);
    std::fs::write(&swappiness, "42\n").expect("a value");
    assert_eq!(on(sandbox.path(), &["undo"]).exit, 1);
    let shown = |args: &[&str]| {
        let globals = ["--root", "host", "--state", "state"];
        let run: Run =
            command(sandbox.path(), [&globals, args].concat()).output().expect("the binary starts").into();
        run.stdout
    };
    assert!(shown(&["log"]).contains("undone, 1 theirs"), "{}", shown(&["log"]));
    for args in [&["undo"][..], &["undo", "--force"]] {
        let run = on(sandbox.path(), args);
        assert_eq!((run.exit, message(&run, "next")), (0, format!("{HERE} undo 1 --force")), "{args:?}");
        assert_eq!(std::fs::read_to_string(&swappiness).expect("a value"), "42\n", "{args:?} writes nothing");
    }
    assert_eq!(typed(sandbox.path(), &format!("{HERE} undo 1 --force")).exit, 0);
    let back = std::fs::read_to_string(&swappiness).expect("a value");
    assert_eq!(back.trim(), original.trim());
    assert!(!shown(&["log"]).contains("theirs"), "{}", shown(&["log"]));
}

#[test]
fn a_wrong_profile_of_ones_own_stops_those_that_name_it_and_is_told_to_the_others() {
    let sandbox = sandbox();
    let own = |file: &str, text: &str| {
        std::fs::write(sandbox.path().join("state/etc/profiles").join(file), text).expect("a profile");
    };
    own("bad.toml", "name = \"bad\"\nsummary = \n");
    own("child.toml", "name = \"child\"\nsummary = \"s\"\ninherits = [\"bad\"]\n");
    own("series.toml", "name = \"series\"\nsummary = \"s\"\n[want]\n\"vm.swapiness\" = 5\n");
    for profile in ["bad", "child", "series"] {
        for command in ["plan", "apply", "check", "doctor"] {
            let run = on(sandbox.path(), &[command, profile]);
            assert_eq!(run.exit, 2, "{command} {profile}: {}", run.stdout);
            let wrong = if profile == "series" { "series.toml:4:1: no knob" } else { "bad.toml:2:11: " };
            assert!(message(&run, "error").contains(wrong), "{command} {profile}: {}", run.stdout);
        }
    }
    let run = on(sandbox.path(), &["apply", "two", "--yes"]);
    assert_eq!(run.exit, 0, "{}", run.stdout);
    assert!(run.stdout.contains("left out: state/etc/profiles/bad.toml:2:11: "), "{}", run.stdout);
    assert!(run.stdout.contains("left out: state/etc/profiles/series.toml:4:1: no knob"), "{}", run.stdout);
    assert_eq!(
        run.envelope()["messages"].as_array().expect("messages").last().expect("one")["level"],
        "next"
    );
    assert_eq!(on(sandbox.path(), &["undo"]).exit, 0);
}

#[test]
fn a_doctor_takes_a_profile_in_a_file_as_plan_does() {
    let sandbox = sandbox();
    own_profile(sandbox.path());
    let found = on(sandbox.path(), &["doctor", "./own.toml"]);
    assert_eq!(message(&found, "next"), format!("{HERE} plan ./own.toml"));
    let findings = found.envelope()["result"]["findings"].clone();
    let own = findings.as_array().expect("findings").iter().find(|finding| finding["id"] == "vm.swappiness");
    let cure = own.expect("it is not as wanted")["cure"].as_str().expect("a text").to_owned();
    assert_eq!(cure, format!("{HERE} apply ./own.toml"));
    let planned = on(sandbox.path(), &["plan", "./own.toml", "-o", "plan.json"]);
    assert_eq!(planned.exit, 0, "{}", planned.stdout);
    let refused = on(sandbox.path(), &["doctor", "./plan.json"]);
    assert_eq!(message(&refused, "error"), "./plan.json is no profile: a file of one ends in .toml");
}

#[test]
fn a_plan_beside_other_programs_is_made_again_on_the_same_host() {
    let sandbox = sandbox();
    own_profile(sandbox.path());
    others(sandbox.path());
    let left = |args: &[&str]| {
        let globals = ["--root", "host", "--state", "state"];
        let run: Run =
            command(sandbox.path(), [&globals, args].concat()).output().expect("the binary starts").into();
        let line = run.stdout.lines().find_map(|line| line.strip_prefix("leave it")).map(str::trim);
        line.unwrap_or_else(|| panic!("nobody to leave it to: {}", run.stdout)).to_owned()
    };
    let leave = format!("{HERE} plan ./own.toml --allow availability --exclude sysctl.d");
    assert_eq!(left(&["plan", "./own.toml", "--allow", "availability"]), leave);
    assert_eq!(left(&["apply", "./own.toml", "--allow", "availability"]), leave);
    let kept = left(&["plan", "./own.toml", "--allow", "availability", "--persist"]);
    assert_eq!(kept, format!("{leave} --persist"));
    assert_eq!(typed(sandbox.path(), &leave).exit, 0);
}

#[test]
fn a_trial_file_that_is_printed_names_the_file_that_is_proposed() {
    let sandbox = sandbox();
    own_profile(sandbox.path());
    for more in [&[][..], &["--profile", "./own.toml"]] {
        let made = on(sandbox.path(), &[&["trial", "new", "--cmd", "true"], more].concat());
        assert_eq!(made.exit, 0, "{}", made.stdout);
        let text = made.envelope()["result"]["text"].as_str().expect("a file").to_owned();
        assert!(text.starts_with("# A trial: planish trial run ./trial.toml\n"), "{text}");
        assert!(message(&made, "next").ends_with(" -o trial.toml"), "{}", made.stdout);
    }
}

#[test]
fn what_is_wrong_with_a_trial_file_is_told_before_what_cannot_be_measured() {
    let sandbox = sandbox();
    let made = on(sandbox.path(), &["trial", "new", "--cmd", "true", "-o", "t.toml"]);
    assert_eq!(made.exit, 0, "{}", made.stdout);
    let file = sandbox.path().join("t.toml");
    let text = std::fs::read_to_string(&file).expect("it was made");
    for verb in ["run", "selfcheck"] {
        std::fs::write(&file, &text).expect("ours");
        let sound = on(sandbox.path(), &["trial", verb, "./t.toml"]);
        assert_eq!(
            (sound.exit, message(&sound, "error").as_str()),
            (2, "a recorded host cannot be measured")
        );
        std::fs::write(&file, text.replace("adapter", "adaptor")).expect("ours");
        let wrong = on(sandbox.path(), &["trial", verb, "./t.toml"]);
        assert_eq!(wrong.exit, 2, "{}", wrong.stdout);
        assert!(message(&wrong, "error").contains("adaptor"), "{}", wrong.stdout);
    }
}

#[test]
fn who_reads_a_saved_plan_sees_its_second_writer_too() {
    let sandbox = sandbox();
    std::fs::write(sandbox.path().join("host/etc/sysctl.d/99-local.conf"), "vm.swappiness = 60\n")
        .expect("a file");
    assert_eq!(on(sandbox.path(), &["plan", "two", "-o", "plan.json"]).exit, 0);
    let told = |args: &[&str]| {
        let writers = on(sandbox.path(), args).envelope()["result"]["second_writers"].clone();
        (writers[0]["evidence"].clone(), writers[0]["places"].clone(), writers[0]["leave"].clone())
    };
    let fresh = told(&["plan", "two"]);
    assert!(fresh.0.to_string().contains("99-local.conf:1 sets vm.swappiness to 60"), "{fresh:?}");
    assert_eq!(told(&["plan", "./plan.json"]), fresh);
    assert_eq!(fresh.2, format!("{HERE} plan two --exclude sysctl.d"));
    // What stands in the file is not taken for what we saw, and the host may have changed.
    std::fs::write(sandbox.path().join("host/etc/sysctl.d/99-local.conf"), "").expect("a file");
    assert!(on(sandbox.path(), &["plan", "./plan.json"]).envelope()["result"]["second_writers"].is_null());
}

#[test]
fn percent_is_taken_with_its_sign_and_told_where_it_is_none() {
    let sandbox = sandbox();
    let size = |headroom: &str| on(sandbox.path(), &["size", "--bytes", "1G", "--headroom", headroom]);
    let (plain, signed) = (size("10"), size("10%"));
    assert_eq!((signed.exit, signed.envelope()["result"].clone()), (0, plain.envelope()["result"].clone()));
    for odd in ["401", "-1", "much", "%"] {
        let run = on(sandbox.path(), &["size", "--bytes", "1G", &format!("--headroom={odd}")]);
        assert_eq!(run.exit, 2, "{odd}");
        assert!(run.stdout.contains("a whole number of percent, from 0 to 400"), "{}", run.stdout);
    }
}

#[test]
fn what_size_printed_is_what_the_plan_of_its_profile_reserves() {
    for (subject, headroom) in
        [(["--bytes", "24G"], "20"), (["--bytes", "7"], "0"), (["--regions", "3,1G"], "33")]
    {
        let sandbox = sandbox();
        let sized = on(sandbox.path(), &["size", subject[0], subject[1], "--headroom", headroom]);
        let envelope = sized.envelope();
        let rows = envelope["result"]["rows"].as_array().expect("rows");
        let printed: Vec<_> =
            rows.iter().filter(|row| row["page_bytes"] == 2 << 20 && row["pages"] != 0).collect();
        assert!(message(&sized, "note").contains("headroom included"), "{}", sized.stdout);
        let next = message(&sized, "next").replace(" --json", "");
        let saved = typed(sandbox.path(), &next);
        assert_eq!(
            (saved.exit, message(&saved, "next")),
            (0, format!("{HERE} plan ./mine.toml")),
            "{}",
            saved.stdout
        );
        let plan = typed(sandbox.path(), &message(&saved, "next")).envelope()["result"].clone();
        let steps = plan["steps"].as_array().expect("steps");
        let reserved: Vec<_> = steps.iter().map(|step| &step["raise_pages"]).collect();
        assert_eq!(
            reserved,
            printed.iter().map(|row| &row["pages"]).collect::<Vec<_>>(),
            "{subject:?}: {plan}"
        );
        // What somebody may have edited stays.
        assert_eq!(typed(sandbox.path(), &next).exit, 3);
    }
}

#[test]
fn a_profile_of_size_has_a_name_that_plan_takes_whatever_its_file_is_called() {
    let sandbox = sandbox();
    for (file, name) in [("my pool.toml", "my-pool"), ("-x\u{7f}\u{e9}.toml", "x--"), ("own.toml", "own")] {
        let saved = on(sandbox.path(), &["size", "--bytes", "7", "-o", &format!("./{file}")]);
        assert_eq!(saved.exit, 0, "{}", saved.stdout);
        let plan = on(sandbox.path(), &["plan", &format!("./{file}")]);
        assert_eq!((plan.exit, &plan.envelope()["result"]["profile"]), (0, &name.into()), "{}", plan.stdout);
    }
}

#[test]
fn what_size_proposes_for_a_server_that_is_stopped_needs_none_that_runs() {
    let sandbox = sandbox();
    let data = sandbox.path().join("data\u{7f}");
    std::fs::create_dir(&data).expect("a folder");
    std::fs::write(data.join("PG_VERSION"), "15\n").expect("a mark of the server");
    std::fs::write(data.join("shared_memory_size_in_huge_pages"), "512\n").expect("a setting");
    std::fs::write(data.join("huge_page_size"), "0\n").expect("a setting");
    let server = repository().join("crates/control/pipeline/tests/it/server/postgres");
    std::os::unix::fs::symlink(server, sandbox.path().join("server")).expect("a link");
    let size = ["size", "--postgres", "data\u{7f}", "--postgres-program", "./server"];
    let sized = on(sandbox.path(), &size);
    let note = message(&sized, "note");
    // 512 pages and a fifth more, in whole pages.
    assert!(note.contains("\"hugepages.2m\" = { need_bytes = 1289748480 }"), "{note}");
    assert!(message(&sized, "next").ends_with(" --output ./mine.toml"), "{}", sized.stdout);
    let saved = on(sandbox.path(), &[&size[..], &["--output", "./mine.toml"]].concat());
    assert_eq!(
        (saved.exit, message(&saved, "next")),
        (0, format!("{HERE} plan ./mine.toml")),
        "{}",
        saved.stdout
    );
    let planned = typed(sandbox.path(), &message(&saved, "next"));
    assert_eq!(planned.exit, 0, "{}", planned.stdout);
    let plan = planned.envelope()["result"].clone();
    let steps = plan["steps"].as_array().expect("steps");
    let reserved: u64 = steps.iter().filter_map(|step| step["raise_pages"].as_u64()).sum();
    assert_eq!(reserved, 615, "{plan}");
    // The rest is what the profile of the server wants.
    assert!(steps.iter().any(|step| step["knob"] == "vm.dirty_bytes"), "{plan}");
    assert_eq!(plan["skipped"].to_string().matches("name it with --service").count(), 0, "{plan}");
}

#[test]
fn what_no_node_can_give_is_not_what_to_type_next() {
    let sandbox = sandbox();
    let sized = on(sandbox.path(), &["size", "--bytes", "1000T"]);
    assert_eq!((sized.exit, message(&sized, "next")), (1, format!("{HERE} topo")), "{}", sized.stdout);
    assert_eq!(message(&sized, "warning"), "no node can give that much");
    assert_eq!(typed(sandbox.path(), &message(&sized, "next")).exit, 0);
    let odd = on(sandbox.path(), &["size", "--bytes", "1G", "-o", "mine"]);
    assert_eq!((odd.exit, message(&odd, "error").as_str()), (2, "mine is no name for a profile"));
}

/// What was reviewed with its files is applied with them, and what stands in a file of ours is in the log.
#[test]
fn a_plan_that_was_saved_with_its_files_goes_on_with_them() {
    let sandbox = sandbox();
    let saved = on(sandbox.path(), &["plan", "two", "--persist", "-o", "two.json"]);
    assert_eq!(saved.exit, 0, "{}", saved.stdout);
    assert_eq!(message(&saved, "next"), format!("{HERE} apply two.json --persist"));
    let shown = on(sandbox.path(), &["plan", "./two.json"]);
    assert_eq!(message(&shown, "next"), format!("{HERE} apply ./two.json --persist"));
    let without = on(sandbox.path(), &["plan", "two", "-o", "bare.json"]);
    assert_eq!(message(&without, "next"), format!("{HERE} apply bare.json"));
}

#[test]
fn what_is_in_the_way_of_a_recording_and_odd_numbers_are_named() {
    let sandbox = sandbox();
    std::fs::write(sandbox.path().join("file"), "").expect("ours");
    for folder in ["file", "file/below"] {
        let refused = on(sandbox.path(), &["host", "record", folder]);
        assert_eq!(refused.exit, 2, "{folder}");
        assert!(refused.stdout.contains("name a folder that does not exist yet"), "{}", refused.stdout);
    }
    let negative = typed(sandbox.path(), &format!("{HERE} size --bytes 1G --headroom -3"));
    assert_eq!(negative.exit, 2);
    assert!(negative.stderr.contains("a whole number of percent, from 0 to 400"), "{}", negative.stderr);
}

#[test]
fn pages_of_one_size_are_sized_and_had_by_the_profile_that_is_written() {
    let sandbox = sandbox();
    let args = ["size", "--bytes", "2G", "--headroom", "0", "--page-size", "1G", "-o", "giant.toml"];
    let sized = on(sandbox.path(), &args);
    assert_eq!(sized.exit, 0, "{}", sized.stdout);
    let rows = sized.envelope()["result"]["rows"].clone();
    let rows = rows.as_array().expect("rows");
    assert!(!rows.is_empty() && rows.iter().all(|row| row["page_bytes"] == 1_u64 << 30), "{rows:?}");
    let written = std::fs::read_to_string(sandbox.path().join("giant.toml")).expect("a profile");
    assert!(written.contains("\"hugepages.1g\" = { need_bytes = 2147483648 }"), "{written}");
    let odd = on(sandbox.path(), &["size", "--bytes", "2G", "--page-size", "16M"]);
    let told = "this host has no huge pages of 16 MiB, but of 2 MiB, 1 GiB";
    assert_eq!((odd.exit, message(&odd, "error").as_str()), (2, told));
    let all = format!("{HERE} size --bytes 2G");
    let hint = odd.envelope()["messages"][0]["hint"].to_string();
    assert!(
        hint.contains("all of them: ") && hint.contains("size --bytes 2G") && !hint.contains("--page-size"),
        "{hint}"
    );
    assert_eq!(typed(sandbox.path(), &all).exit, 0);
}

/// An undo of an older entry leaves what a younger profile wants too, and did not have to write.
#[test]
fn the_advice_on_what_is_left_of_another_profile_leaves_this_one_whole() {
    let sandbox = sandbox();
    let own = "name = \"own\"\nsummary = \"s\"\n[want]\n\"vm.stat_interval\" = 10\n\"vm.dirty_ratio\" = 17\n";
    std::fs::write(sandbox.path().join("state/etc/profiles/own.toml"), own).expect("a profile");
    assert_eq!(on(sandbox.path(), &["apply", "two", "--yes"]).exit, 0);
    let told = "left from entry 1 (two), and wanted by nothing of this plan: vm.swappiness; \
                planish --root host --state state undo 1 takes them back\"";
    let line = ["--root", "host", "--state", "state", "plan", "own"];
    let held: Run = command(sandbox.path(), line).output().expect("the binary starts").into();
    let held = held.stdout;
    assert!(held.contains("set so by entry 1, and held beside it: nothing is written"), "{held}");
    for args in [&["plan", "own"][..], &["apply", "own", "--yes"]] {
        let messages = on(sandbox.path(), args).envelope()["messages"].to_string();
        assert!(messages.contains(told), "{args:?}: {messages}");
    }
    let host = |name: &str| {
        std::fs::read_to_string(sandbox.path().join("host/proc/sys/vm").join(name)).expect("it is there")
    };
    let shown = || ["stat_interval", "swappiness", "dirty_ratio"].map(|name| host(name).trim().to_owned());
    assert_eq!(on(sandbox.path(), &["undo", "1"]).exit, 0);
    assert_eq!(shown(), ["10", "60", "17"], "what both wanted stays");
    assert_eq!(on(sandbox.path(), &["check", "own"]).exit, 0);
    assert_eq!(on(sandbox.path(), &["undo"]).exit, 0);
    assert_eq!(shown(), ["1", "60", "20"]);
}

#[test]
fn a_later_moment_says_what_is_written_now_and_takes_memory() {
    let sandbox = sandbox();
    let wants = [
        ("pool", "\"hugepages.2m\" = { need_bytes = 4194304 }", Some("huge pages leave free memory at once")),
        ("now", "\"vm.swappiness\" = 5", None),
    ];
    for (name, want, told) in wants {
        let own = format!("name = \"{name}\"\nsummary = \"s\"\n[want]\n{want}\n");
        std::fs::write(sandbox.path().join("own.toml"), own).expect("a profile");
        let run = command(sandbox.path(), ["--root", "host", "--state", "state", "plan", "./own.toml"]);
        let shown: Run = { run }.output().expect("the binary starts").into();
        assert_eq!(shown.exit, 0, "{}", shown.stdout);
        assert_eq!(shown.stdout.contains("at the next restart of"), told.is_some(), "{}", shown.stdout);
        assert_eq!(shown.stdout.contains("written now, at the apply"), told.is_some(), "{}", shown.stdout);
        assert!(told.is_none_or(|told| shown.stdout.contains(told)), "{}", shown.stdout);
    }
}
