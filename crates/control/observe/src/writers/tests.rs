//! Trees with one program or another.

mod disks;
mod units;

use std::os::unix::fs::symlink;
use std::path::Path;

use planish_model::{KnobId, Says, place};

use super::*;
use crate::testing::write;

/// The folder of settings of memory.
const P: &str = "/proc/sys/vm";

/// Bytes of a huge page of the default size.
const PAGE: Option<u64> = Some(2 << 20);

fn seen_in(root: &Path) -> Vec<SeenWriter> {
    all_in(root).writers
}

fn all_in(root: &Path) -> Seen {
    write(root, "/proc/version", "Linux\n");
    read(&Host::open(root).expect("a tree"), &Catalogue::embedded().expect("sound"), PAGE)
}

fn ids(seen: &[SeenWriter]) -> Vec<&str> {
    seen.iter().map(|writer| writer.id.as_str()).collect()
}

fn knobs(writer: &SeenWriter) -> Vec<&str> {
    writer.knobs.iter().flatten().map(KnobId::as_str).collect()
}

fn texts<'s>(says: &'s Says, knob: &KnobId) -> Vec<&'s str> {
    says[knob].iter().map(|said| said.text.as_str()).collect()
}

#[test]
fn nothing_lies_about_where_nobody_is() {
    let tree = tempfile::tempdir().expect("a folder");
    write(tree.path(), "/proc/17/comm", "postgres\n");
    assert_eq!(seen_in(tree.path()), []);
}

#[test]
fn a_process_is_known_by_its_name_and_nobody_else_is_remembered() {
    let tree = tempfile::tempdir().expect("a folder");
    write(tree.path(), "/proc/17/comm", "irqbalance\n");
    write(tree.path(), "/proc/18/comm", "power-profiles-\n");
    write(tree.path(), "/proc/19/comm", "secret-daemon\n");
    write(tree.path(), "/proc/version", "Linux\n");
    let host = Host::open(tree.path()).expect("a tree");
    let seen = read(&host, &Catalogue::embedded().expect("sound"), PAGE).writers;
    assert_eq!(ids(&seen), ["irqbalance", "power-profiles-daemon"]);
    assert_eq!(seen[0].evidence, ["process 17 is irqbalance"]);
    assert!(seen[0].running);
    let reads = host.reads();
    assert!(reads.contains(&"/proc/17/comm".to_owned()) && !reads.contains(&"/proc/19/comm".to_owned()));
}

#[test]
fn the_active_profile_and_those_that_it_includes_tell_the_knobs() {
    let tree = tempfile::tempdir().expect("a folder");
    let root = tree.path();
    write(root, "/run/tuned/tuned.pid", "812\n");
    write(root, "/etc/tuned/active_profile", "mine\n");
    let mine =
        "[main]\ninclude=base\n[sysctl]\nvm.swappiness = 5\n[my]\ntype=vm\ntransparent_hugepages=never\n";
    write(root, "/etc/tuned/mine/tuned.conf", mine);
    let base = "# base\n[cpu]\ngovernor=performance\nforce_latency=1\n[sysfs]\n/sys/block/sd*/queue/nr_requests=64\n";
    write(root, "/usr/lib/tuned/base/tuned.conf", base);
    let seen = seen_in(root);
    assert_eq!(ids(&seen), ["tuned"]);
    assert_eq!(knobs(&seen[0]), ["block.nr_requests", "cpu.governor", "thp.enabled", "vm.swappiness"]);
    assert_eq!(seen[0].profile.as_deref(), Some("mine"));
    assert_eq!(
        seen[0].evidence,
        ["/run/tuned/tuned.pid is there", "its profile is mine (/etc/tuned/active_profile)"]
    );

    // Each line, and whose: what a profile says counts, and not what it includes.
    write(root, "/usr/lib/tuned/base/tuned.conf", format!("{base}[vm]\ntransparent_hugepages=always\n"));
    let seen = seen_in(root);
    let thp = KnobId::new("thp.enabled");
    assert_eq!(texts(&seen[0].commands, &thp), ["transparent_hugepages = never"]);
    assert_eq!(texts(&seen[0].sources, &thp), ["/etc/tuned/mine/tuned.conf"]);

    // One that cannot be read may set anything of the row; none at all sets nothing.
    write(root, "/etc/tuned/mine/tuned.conf", "[main]\ninclude=${f:base}\n");
    assert_eq!(seen_in(root)[0].knobs, None);
    write(root, "/etc/tuned/active_profile", "\n");
    assert_eq!(seen_in(root), []);
}

#[test]
fn a_file_and_a_link_to_it_are_one_writer() {
    use std::os::unix::fs::PermissionsExt;
    let tree = tempfile::tempdir().expect("a folder");
    let root = tree.path();
    write(root, "/etc/rc.d/rc.local", "#!/bin/sh\nsysctl -w vm.swappiness=60\n");
    let file = root.join("etc/rc.d/rc.local");
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o755)).expect("ours");
    symlink("rc.d/rc.local", root.join("etc/rc.local")).expect("ours");
    let seen = seen_in(root);
    assert_eq!((ids(&seen), knobs(&seen[0])), (vec!["rc.local"], vec!["vm.swappiness"]));
    assert_eq!(seen[0].evidence, ["/etc/rc.local names knobs"]);
    assert_eq!(seen[0].commands.values().map(Vec::len).collect::<Vec<_>>(), [1]);
}

/// As of the text that starts it, a recording keeps nothing of a script: it may hold secrets.
#[test]
fn no_recording_keeps_a_script_that_is_followed() {
    use std::os::unix::fs::PermissionsExt;
    let tree = tempfile::tempdir().expect("a folder");
    let root = tree.path();
    for (path, text) in
        [("/etc/rc.local", "#!/bin/sh\ntune\n"), ("/usr/sbin/tune", "#!/bin/sh\n. /etc/tune.conf\n")]
    {
        write(root, path, text);
        let executable = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(root.join(&path[1..]), executable).expect("ours");
    }
    write(root, "/etc/tune.conf", "PASSWORD=x\nsysctl -p /etc/own.conf\n");
    write(root, "/etc/own.conf", "vm.swappiness = 60\n");
    write(root, "/proc/version", "Linux\n");
    let host = Host::open(root).expect("a tree");
    let seen = read(&host, &Catalogue::embedded().expect("sound"), PAGE).writers;
    assert_eq!((ids(&seen), knobs(&seen[0])), (vec!["rc.local"], vec!["vm.swappiness"]));
    assert_eq!(
        texts(&seen[0].sources, &KnobId::new("vm.swappiness")),
        ["/etc/rc.local", "/etc/tune.conf:2", "/etc/own.conf"]
    );
    assert!(
        !host
            .reads()
            .iter()
            .any(|path| ["/usr/sbin/tune", "/etc/tune.conf", "/etc/own.conf"].contains(&path.as_str()))
    );
}

/// A script that may be executed.
fn executable(root: &Path, path: &str, text: impl AsRef<[u8]>) {
    use std::os::unix::fs::PermissionsExt;
    write(root, path, text);
    let executable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(root.join(&path[1..]), executable).expect("ours");
}

/// A shell reads past it, in a comment of Latin-1.
#[test]
fn a_byte_that_is_no_utf_8_hides_no_script() {
    let tree = tempfile::tempdir().expect("a folder");
    let root = tree.path();
    executable(root, "/etc/rc.local", b"#!/bin/sh\n# f\xfcr uns\ntune\nsysctl -w vm.swappiness=60\n");
    executable(root, "/usr/sbin/tune", b"#!/bin/sh\n# \xfc\nsysctl -p /etc/own.conf\n");
    write(root, "/etc/own.conf", b"# \xfc\nvm.stat_interval = 9\n");
    let seen = seen_in(root);
    assert_eq!(knobs(&seen[0]), ["vm.stat_interval", "vm.swappiness"]);
    assert_eq!(seen[0].maybe.len(), 0);
}

#[test]
fn a_script_that_names_a_place_by_another_of_its_names_sets_it() {
    let tree = tempfile::tempdir().expect("a folder");
    let root = tree.path();
    let text = "#!/bin/sh\n\
                echo powersave | tee /sys/devices/system/cpu/cpufreq/policy*/scaling_governor\n\
                for d in /sys/class/block/nvme[01]n1/queue/scheduler; do echo mq-deadline > $d; done\n\
                echo 64 > /sys/block/sda/bdi/read_ahead_kb\n\
                find /sys/class/block/ -name nomerges | xargs -I{} sh -c 'echo 2 > {}'\n";
    executable(root, "/etc/rc.local", text);
    let seen = seen_in(root);
    assert_eq!(knobs(&seen[0]), ["block.nomerges", "block.read_ahead_kb", "block.scheduler", "cpu.governor"]);
    let maybe: Vec<&str> = seen[0].maybe.keys().map(KnobId::as_str).collect();
    // `xargs` may write what the text names, too.
    assert_eq!(maybe, ["block.nomerges", "block.scheduler"]);
    assert!(seen[0].sources.contains_key(&KnobId::new("block.scheduler")));
}

#[test]
fn a_byte_that_is_no_utf_8_hides_neither_a_profile_nor_arguments() {
    let tree = tempfile::tempdir().expect("a folder");
    let root = tree.path();
    let odd = |text: &str| [&b"# Gr\xfc\xdfe\n"[..], text.as_bytes()].concat();
    write(root, "/run/tuned/tuned.pid", "812\n");
    write(root, "/etc/tuned/active_profile", "mine\n");
    write(root, "/etc/tuned/mine/tuned.conf", odd("[sysctl]\nvm.swappiness = 5\n"));
    write(root, "/run/systemd/system/.keep", "");
    let unit = "[Service]\nEnvironmentFile=-/etc/default/irqbalance\nExecStart=/usr/sbin/irqbalance $IRQBALANCE_ARGS\n";
    write(root, "/lib/systemd/system/irqbalance.service", odd(unit));
    write(root, "/etc/default/irqbalance", odd("IRQBALANCE_ARGS=--deepestcache=2\n"));
    write(root, "/etc/systemd/system/multi-user.target.wants/irqbalance.service", "");
    let seen = seen_in(root);
    let of = |id: &str| seen.iter().find(|writer| writer.id == id).expect("seen");
    assert_eq!(knobs(of("tuned")), ["vm.swappiness"]);
    let arguments = of("irqbalance").arguments.as_ref().expect("its unit takes some");
    assert_eq!(arguments.value, "--deepestcache=2");
}

/// Whoever opens a FIFO for writing waits until somebody opens it for reading, be it without waiting.
#[test]
fn neither_rc_local_nor_the_script_of_a_profile_is_opened_where_it_is_no_file() {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    use std::time::Duration;
    for path in ["etc/rc.local", "etc/cron.d/x", "etc/tuned/mine/own.sh"] {
        let tree = tempfile::tempdir().expect("a folder");
        let root = tree.path();
        write(root, "/etc/cron.d/.keep", "");
        write(root, "/run/tuned/tuned.pid", "812\n");
        write(root, "/etc/tuned/active_profile", "mine\n");
        write(root, "/etc/tuned/mine/tuned.conf", "[script]\nscript=${i:PROFILE_DIR}/own.sh\n");
        let fifo = root.join(path);
        mknodat(CWD, &fifo, FileType::Fifo, Mode::RWXU, 0).expect("ours");
        let writer = std::thread::spawn({
            let fifo = fifo.clone();
            move || std::fs::File::options().write(true).open(fifo).map(drop)
        });
        std::thread::sleep(Duration::from_millis(100));
        let seen = seen_in(root);
        assert_eq!(ids(&seen), ["tuned"], "{path}");
        assert_eq!(seen[0].knobs, None, "a script that cannot be read may set anything");
        std::thread::sleep(Duration::from_millis(100));
        let was_opened = writer.is_finished();
        while !writer.is_finished() {
            file::read(&fifo).expect_err("it is no file");
        }
        assert!(!was_opened, "{path}");
    }
}

#[test]
fn what_many_scripts_write_is_looked_up_once() {
    let tree = tempfile::tempdir().expect("a folder");
    let root = tree.path();
    let body = format!("for i in 1 2 3; do echo $i > /tmp/x.$i; echo $i > {P}/swappiness; done");
    let functions: String = (0..60).map(|at| format!("f{at}() {{ {body}; }}\nf{at}\n")).collect();
    executable(root, "/usr/local/sbin/tune", format!("#!/bin/sh\n{functions}"));
    write(root, "/proc/version", "Linux\n");
    let host = Host::open(root).expect("a tree");
    let catalogue = Catalogue::embedded().expect("sound");
    let look = Look::at(&host, &catalogue, PAGE);
    let ask = |path: &str, _: bool| String::from_utf8(look.near.read_up_to(path, 1 << 20).ok()?).ok();
    let mut told = 0;
    for at in 0..20 {
        let unit = format!("ExecStart=/usr/local/sbin/tune {at}\n");
        let effects = planish_formats::unit::effects(&unit, Some(&ask));
        told += effects.len();
        let mut named = named::Named::default();
        assert!(named.add(&look, &effects, "/etc/systemd/system/a.service"));
    }
    assert_eq!(look.places.looked_up(), 1);
    assert!(told < 20 * 600, "{told}");
}

/// A host may start more than anybody could read: what is left out is told, and the rest is not waited for.
#[test]
fn all_scripts_of_a_host_have_an_end() {
    let tree = tempfile::tempdir().expect("a folder");
    let root = tree.path();
    let comment = format!("# {}\n", "x".repeat(200 << 10));
    executable(root, "/usr/local/sbin/long", format!("#!/bin/sh\n{comment}"));
    executable(root, "/usr/local/sbin/tune", "#!/bin/sh\nsysctl -w vm.stat_interval=9\n");
    let seen = |times: usize| {
        let lines = "/usr/local/sbin/long\n".repeat(times);
        executable(root, "/etc/rc.local", format!("#!/bin/sh\nsysctl -w vm.swappiness=60\n{lines}tune\n"));
        let seen = seen_in(root).remove(0);
        (knobs(&seen).len(), seen.evidence.iter().any(|line| line.contains("not followed")))
    };
    assert_eq!(seen(20), (2, false));
    assert_eq!(seen(60), (1, true));
}

/// Whoever is told of no writer is to know that not all of it was looked at, and where that ended.
#[test]
fn where_following_ends_is_told_once_and_in_time() {
    let tree = tempfile::tempdir().expect("a folder");
    let root = tree.path();
    executable(root, "/usr/local/sbin/tune", "#!/bin/sh\nsysctl -w vm.stat_interval=9\n");
    let told = |long: String, times: usize| {
        executable(root, "/usr/local/sbin/long", format!("#!/bin/sh\n{long}\n"));
        let lines = "/usr/local/sbin/long\n".repeat(times);
        executable(root, "/etc/rc.local", format!("#!/bin/sh\n{lines}tune\n"));
        let begin = std::time::Instant::now();
        let seen = all_in(root);
        assert!(begin.elapsed().as_secs() < 60, "a bound of nothing");
        (seen.writers.len(), seen.unfollowed)
    };
    let (rc_local, long) = ("/etc/rc.local".to_owned(), "/usr/local/sbin/long".to_owned());
    assert_eq!(told("true".to_owned(), 60), (1, vec![]));
    assert_eq!(told(format!("# {}", "x".repeat(200 << 10)), 60), (0, vec![rc_local]));
    assert_eq!(told("true a b c d e f g h\n".repeat(10_000), 10), (0, vec![long]));
}

/// What one instance takes back, another runs.
#[test]
fn each_instance_of_a_template_runs_what_its_own_files_say() {
    let tree = tempfile::tempdir().expect("a folder");
    let root = tree.path();
    write(root, "/run/systemd/system/.keep", "");
    let folder = "/etc/systemd/system";
    write(root, &format!("{folder}/x@.service"), "[Service]\nExecStart=/sbin/sysctl -w vm.swappiness=60\n");
    write(root, &format!("{folder}/x@1.service.d/own.conf"), "[Service]\nExecStart=\n");
    for name in ["x@1.service", "x@2.service", "x@3.service"] {
        write(root, &format!("{folder}/multi-user.target.wants/{name}"), "");
    }
    let seen = seen_in(root);
    assert_eq!((ids(&seen), knobs(&seen[0])), (vec!["units"], vec!["vm.swappiness"]));
    assert_eq!(seen[0].commands.values().map(Vec::len).collect::<Vec<_>>(), [1]);
    assert_eq!(seen[0].evidence, [format!("{folder}/x@.service names knobs")]);
}

#[test]
fn a_group_of_any_name_is_of_the_threads_that_its_expression_means() {
    let tree = tempfile::tempdir().expect("a folder");
    let root = tree.path();
    write(root, "/run/tuned/tuned.pid", "812\n");
    write(root, "/etc/tuned/active_profile", "mine\n");
    let seen = |section: &str, line: &str| {
        write(root, "/etc/tuned/mine/tuned.conf", format!("[{section}]\n{line}\n"));
        let seen = seen_in(root);
        // Who sets nothing is not seen.
        seen.iter().flat_map(knobs).map(str::to_owned).collect::<Vec<_>>()
    };
    // What planish itself exports for one CPU, and what others call as they like.
    assert_eq!(seen("scheduler", "group.ksoftirqd_0 = 0:f:2:*:^\\[ksoftirqd/0\\]$"), ["sched.ksoftirqd"]);
    assert_eq!(seen("scheduler", "group.softirq=0:f:2:*:ksoftirqd.*"), ["sched.ksoftirqd"]);
    assert_eq!(seen("x", "type=kthread\ngroup.t=0:f2:*:ktimers/.*"), ["sched.ktimers"]);
    assert_eq!(seen("kthread", "group.t=0:f2:*:ktimers/.*"), ["sched.ktimers"]);
    assert_eq!(seen("scheduler", "group.ksoftirqd=0:f:4:*:rcuc.*"), [""; 0], "its name says nothing");
}

#[test]
fn what_saptune_keeps_a_file_for_it_sets() {
    let tree = tempfile::tempdir().expect("a folder");
    write(tree.path(), "/run/saptune/saved_state/2382421", "{}");
    for name in ["vm.dirty_bytes", "THP", "IO_SCHEDULER_sda", "UserTasksMax"] {
        write(tree.path(), &format!("/run/saptune/parameter/{name}"), "{}");
    }
    let seen = seen_in(tree.path());
    assert_eq!(ids(&seen), ["saptune"]);
    assert_eq!(knobs(&seen[0]), ["block.scheduler", "thp.enabled", "vm.dirty_bytes"]);
}

#[test]
fn cloud_init_is_a_writer_of_what_its_data_names_and_no_data_is_remembered() {
    let tree = tempfile::tempdir().expect("a folder");
    let root = tree.path();
    write(root, "/run/cloud-init/enabled", "");
    write(root, "/etc/cloud/cloud.cfg", "users: [default]\n# sysctl -w vm.swappiness=1\n");
    assert_eq!(seen_in(root), [], "it sets no knob");
    let data = "#cloud-config\npassword: hunter2\nbootcmd: [sysctl -w vm.swappiness=1]\n";
    write(root, "/var/lib/cloud/instance/user-data.txt", data);
    write(root, "/proc/version", "Linux\n");
    let host = Host::open(root).expect("a tree");
    let seen = read(&host, &Catalogue::embedded().expect("sound"), PAGE).writers;
    assert_eq!(knobs(&seen[0]), ["vm.swappiness"]);
    assert_eq!(seen[0].evidence[1], "/var/lib/cloud/instance/user-data.txt names knobs");
    assert!(!host.reads().iter().any(|path| path.ends_with("user-data.txt") || path.ends_with("cloud.cfg")));
}

/// The writer `tuned` of a tree with a profile, and files of sysctl.
fn tuned_beside(profile: &str, main: Option<&str>) -> (tempfile::TempDir, SeenWriter) {
    let tree = tempfile::tempdir().expect("a folder");
    let root = tree.path();
    write(root, "/run/tuned/tuned.pid", "812\n");
    write(root, "/etc/tuned/active_profile", "mine\n");
    write(root, "/etc/tuned/mine/tuned.conf", profile);
    if let Some(main) = main {
        write(root, "/etc/tuned/tuned-main.conf", main);
    }
    write(root, "/usr/lib/sysctl.d/99-vendor.conf", "vm.max_map_count = 1\n");
    write(
        root,
        "/etc/sysctl.d/90-b.conf",
        "vm.swappiness = 7\n-vm.stat_interval = 9\nvm/watermark_scale_factor=9\n",
    );
    write(
        root,
        "/etc/sysctl.d/50-a.conf",
        "# vm.min_free_kbytes = 1\nvm.swappiness = 8\nvm.dirty_bytes=4096000\n",
    );
    write(root, "/etc/sysctl.conf", "vm.page-cluster = 0\n");
    let seen = seen_in(root).pop().expect("tuned");
    (tree, seen)
}

#[test]
fn tuned_writes_the_files_of_etc_again_behind_its_keys_of_sysctl() {
    let (_tree, seen) = tuned_beside("[sysctl]\nvm.swappiness = 30\nvm.dirty_ratio = 40\n", None);
    let told: Vec<String> = seen
        .again
        .lines
        .iter()
        .map(|(place, line)| format!("{place} {} {}", line.value, line.source))
        .collect();
    assert_eq!(
        told,
        [
            "/proc/sys/vm/swappiness 8 /etc/sysctl.d/50-a.conf:2",
            "/proc/sys/vm/dirty_bytes 4096000 /etc/sysctl.d/50-a.conf:3",
            "/proc/sys/vm/swappiness 7 /etc/sysctl.d/90-b.conf:1",
            "/proc/sys/vm/page-cluster 0 /etc/sysctl.conf:1",
        ]
    );
    assert!(seen.again.is_sure);
    assert_eq!(seen.again.settles.len(), 3);

    // Switched off, in part or at all, and where nothing of it has keys of sysctl.
    let sysctl = "[sysctl]\nvm.stat_interval = 9\n";
    for main in ["reapply_sysctl = 0\n", "reapply_sysctl=1\nreapply_sysctl = False # ours\n"] {
        assert_eq!(tuned_beside(sysctl, Some(main)).1.again, planish_model::Again::default(), "{main}");
    }
    let main = "# reapply_sysctl = 0\nreapply_sysctl_exclude = vm.swap*; net.*\n";
    assert_eq!(tuned_beside(sysctl, Some(main)).1.again.settles.len(), 2);
    for profile in
        ["[vm]\ntransparent_hugepages=never\n", "[sysctl]\nenabled=0\nvm.swappiness=1\n[cpu]\nboost=1\n"]
    {
        assert_eq!(tuned_beside(profile, None).1.again, planish_model::Again::default(), "{profile}");
    }
}

#[test]
fn what_another_section_sets_behind_those_of_sysctl_is_not_settled_by_files() {
    let settles = |profile: &str| {
        let again = tuned_beside(profile, None).1.again;
        (again.is_sure, again.settles.contains("/proc/sys/vm/dirty_bytes"))
    };
    let (vm, sysctl) = ("[vm]\ndirty_ratio=40%\n", "[sysctl]\nvm.swappiness=30\n");
    assert_eq!(settles(&format!("{vm}{sysctl}")), (true, true), "the files come last");
    assert_eq!(settles(&format!("{sysctl}{vm}")), (true, false));
    // A section that is for some machines alone may do it.
    let some = "[x]\ntype=sysctl\nuname_regex=aarch64\nvm.swappiness=30\n";
    assert_eq!(settles(some), (false, true));
    assert_eq!(settles(&format!("{vm}{some}")), (false, false));
}

/// What each text starts by another program than a shell: the knobs that it will set, and those that it may.
fn told_by(root: &Path, id: &str) -> (Vec<String>, Vec<String>) {
    let seen = seen_in(root).into_iter().find(|writer| writer.id == id);
    let ids = |knobs: &Says| knobs.keys().map(ToString::to_string).collect();
    seen.map_or_else(Default::default, |seen| (ids(&seen.sources), ids(&seen.maybe)))
}

#[test]
fn the_files_of_a_folder_that_is_run_are_followed_and_those_of_another_row_are_told_there() {
    let tree = tempfile::tempdir().expect("a folder");
    let root = tree.path();
    executable(root, "/etc/rc.local", "#!/bin/sh\nrun-parts /etc/own.d\n");
    executable(root, "/etc/own.d/10-tune", "#!/bin/sh\nsysctl -w vm.swappiness=60\n");
    executable(root, "/etc/own.d/20.sh", "#!/bin/sh\nsysctl -w vm.stat_interval=9\n");
    write(root, "/etc/own.d/30-no", "#!/bin/sh\nsysctl -w vm.dirty_ratio=9\n");
    executable(root, "/etc/own.d/40-folder/x", "#!/bin/sh\nsysctl -w vm.dirty_ratio=9\n");
    write(root, "/proc/818/comm", "cron\n");
    write(
        root,
        "/etc/crontab",
        "5 * * * * root cd / && run-parts /etc/cron.daily\n@reboot root run-parts /etc/own.d\n",
    );
    executable(root, "/etc/cron.daily/own", "#!/bin/sh\nsysctl -w vm.dirty_bytes=9\n");
    let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
    for id in ["rc.local", "cron"] {
        assert_eq!(told_by(root, id), (words(&["vm.swappiness"]), words(&["vm.stat_interval"])), "{id}");
    }
    assert_eq!(told_by(root, "cron.daily"), (words(&["vm.dirty_bytes"]), words(&[])));
}

#[test]
fn what_a_rule_of_udev_starts_may_set_something() {
    let tree = tempfile::tempdir().expect("a folder");
    let root = tree.path();
    let rules = "ACTION==\"add\", RUN+=\"/usr/local/sbin/tune %k\"\nRUN{builtin}+=\"kmod load vm.dirty_ratio\"\n\
                 RUN+=\"own /proc/sys/vm/stat_interval\"\nRUN+=\"/bin/sh -c 'echo 1 > /proc/sys/vm/dirty_ratio'\"\n";
    write(root, "/etc/udev/rules.d/60-own.rules", rules);
    write(root, "/usr/lib/udev/rules.d/60-own.rules", "RUN+=\"/usr/local/sbin/other\"\n");
    executable(root, "/usr/local/sbin/tune", "#!/bin/sh\nsysctl -w vm.swappiness=60\n");
    executable(root, "/usr/local/sbin/other", "#!/bin/sh\nsysctl -w vm.dirty_bytes=60\n");
    let (will, may) = told_by(root, "udev-programs");
    assert_eq!((will, may), (vec![], vec!["vm.stat_interval".to_owned(), "vm.swappiness".to_owned()]));
    let seen = seen_in(root).remove(0);
    let files = ["/etc/udev/rules.d/60-own.rules", "/usr/local/sbin/tune:2"];
    assert_eq!(texts(&seen.maybe, &KnobId::new("vm.swappiness")), files);
    write(root, "/etc/udev/rules.d/60-own.rules", "");
    assert_eq!(told_by(root, "udev-programs"), (vec![], vec![]), "it masks that of the package");
}

#[test]
fn a_profile_of_tuned_that_a_boot_makes_active_may_set_what_it_says() {
    let tree = tempfile::tempdir().expect("a folder");
    let root = tree.path();
    executable(root, "/etc/rc.local", "#!/bin/sh\ntuned-adm profile mine\n");
    let mine = "[main]\ninclude=base\n[sysctl]\nvm.swappiness=5\n[script]\nscript=${i:PROFILE_DIR}/x.sh\n";
    write(root, "/etc/tuned/mine/tuned.conf", mine);
    write(root, "/usr/lib/tuned/base/tuned.conf", "[vm]\ntransparent_hugepages=never\n");
    write(root, "/etc/tuned/mine/x.sh", "#!/bin/sh\ntuned-adm profile mine\nsysctl -w vm.stat_interval=9\n");
    let (will, may) = told_by(root, "rc.local");
    assert_eq!((will, may.join(" ")), (vec![], "thp.enabled vm.stat_interval vm.swappiness".to_owned()));
    executable(root, "/etc/rc.local", "#!/bin/sh\ntuned-adm profile none\ntuned-adm off\n");
    assert_eq!(told_by(root, "rc.local"), (vec![], vec![]));
}

/// What programs set by words of their own is told as their places, wherever such a command stands.
#[test]
fn what_cpupower_ethtool_and_blockdev_set_is_theirs() {
    let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
    let of_boot =
        "cpupower frequency-set -g powersave\nblockdev --setra 8192 /dev/nvme0n1\nethtool -G ens3f0 rx 512\n";
    let all = words(&["block.read_ahead_kb", "cpu.governor", "net.rings_rx"]);
    let tree = tempfile::tempdir().expect("a folder");
    let root = tree.path();
    write(root, "/sys/block/nvme0n1/queue/read_ahead_kb", "128\n");
    executable(root, "/etc/rc.local", format!("#!/bin/sh\n{of_boot}"));
    write(root, "/run/systemd/system/.keep", "");
    let unit: String = of_boot.lines().map(|line| format!("ExecStart=/usr/bin/{line}\n")).collect();
    write(root, "/etc/systemd/system/g.service", format!("[Service]\nType=oneshot\n{unit}"));
    write(root, "/etc/systemd/system/multi-user.target.wants/g.service", "");
    write(root, "/proc/818/comm", "cron\n");
    let table: String = of_boot.lines().map(|line| format!("@reboot root {line}\n")).collect();
    write(root, "/etc/crontab", table);
    write(root, "/run/cloud-init/enabled", "");
    let block: String = of_boot.lines().map(|line| format!("    {line}\n")).collect();
    write(root, "/etc/cloud/cloud.cfg.d/99.cfg", format!("#cloud-config\nruncmd:\n  - |\n{block}"));
    for id in ["rc.local", "units", "cron", "cloud-init"] {
        assert_eq!(told_by(root, id), (all.clone(), vec![]), "{id}");
    }
    write(root, "/etc/udev/rules.d/60-own.rules", "RUN+=\"/usr/bin/cpupower frequency-set -g powersave\"\n");
    assert_eq!(told_by(root, "udev-programs"), (vec![], words(&["cpu.governor"])));

    // Each with its own value, in the units of the place.
    let seen = seen_in(root).into_iter().find(|writer| writer.id == "rc.local").expect("it is");
    let catalogue = Catalogue::embedded().expect("sound");
    let sets = |id: &str, value: &str| {
        let knob = catalogue.knob(&KnobId::new(id)).expect("a row");
        let name = [("disk", "nvme0n1"), ("nic", "ens3f0"), ("cpu", "0")];
        seen.sets_as_wanted(knob, &place::fill(&knob.path, &name), value)
    };
    assert!(sets("block.read_ahead_kb", "4096") && !sets("block.read_ahead_kb", "8192"));
    assert!(sets("cpu.governor", "powersave") && sets("net.rings_rx", "512"));
}

/// Whether a writer sets (`=`), or may set (`?`), each of these places.
fn signs_of(root: &Path, id: &str, knob: &str, places: &[&str]) -> String {
    let catalogue = Catalogue::embedded().expect("sound");
    let seen = seen_in(root).into_iter().find(|writer| writer.id == id).expect("it is");
    let knob = KnobId::new(knob);
    let sign = |place: &str| match catalogue.only_may_write(&seen, &knob, Some(place)) {
        true => '?',
        false if catalogue.writes(&seen, &knob, Some(place)) => '=',
        false => '-',
    };
    places.iter().map(|place| sign(place)).collect()
}

/// Two disks, each with the place of its read-ahead.
const READ_AHEAD: [&str; 2] =
    ["/sys/block/sda/queue/read_ahead_kb", "/sys/block/nvme0n1/queue/read_ahead_kb"];

/// Who tunes one disk, card or node by hand is no writer of the others.
#[test]
fn a_writer_of_one_place_writes_no_other_of_its_knob() {
    let tree = tempfile::tempdir().expect("a folder");
    let root = tree.path();
    write(root, "/sys/class/net/eno1/mtu", "1500\n");
    READ_AHEAD.iter().for_each(|place| write(root, place, "128\n"));
    let told = |id: &str, knob: &str, places: &[&str]| signs_of(root, id, knob, places);
    for (text, signs) in [
        ("blockdev --setra 4096 /dev/sda", "=-"),
        ("blockdev --setra 4096 /dev/nvme0n1p2", "-="),
        ("echo 4096 > /sys/block/nvme9n1/queue/read_ahead_kb", "--"),
        ("echo 4096 > /sys/class/block/sda/queue/read_ahead_kb", "=-"),
        ("echo 4096 > /sys/block/sda/bdi/read_ahead_kb", "=-"),
        ("for d in /sys/block/nvme*; do echo 8 > $d/queue/read_ahead_kb; done", "-="),
        ("echo 4096 > /sys/block/$1/queue/read_ahead_kb", "=="),
        // Whose numbers these are only the host tells.
        ("echo 4096 > /sys/dev/block/8:0/queue/read_ahead_kb", "=="),
        ("for d in /sys/dev/block/259*; do echo 8 > $d/queue/read_ahead_kb; done", "=="),
        ("echo 8 | tee /sys/block/nvme{0,{1,2}}n1/queue/read_ahead_kb", "=="),
        ("own-program /sys/block/sda/queue/read_ahead_kb", "??"),
        ("blockdev --setra 8 /dev/sda; own-program /sys/block/sda/queue/read_ahead_kb", "=?"),
    ] {
        executable(root, "/etc/rc.local", format!("#!/bin/sh\n{text}\n"));
        assert_eq!(told("rc.local", "block.read_ahead_kb", &READ_AHEAD), signs, "{text}");
    }
    let cards = ["eno1", "ens3f0"].map(|card| format!("/planish/ethtool/{card}/rings_rx"));
    let cards = [cards[0].as_str(), cards[1].as_str()];
    executable(root, "/etc/rc.local", "#!/bin/sh\nethtool -G eno1 rx 1024\n");
    assert_eq!(told("rc.local", "net.rings_rx", &cards), "=-");
    executable(root, "/etc/rc.local", "#!/bin/sh\nethtool -G enp4s0 rx 1024\n");
    assert_eq!(told("rc.local", "net.rings_rx", &cards), "==", "it may be another name of a card");
    // All CPUs of a policy have one frequency.
    executable(
        root,
        "/etc/rc.local",
        "#!/bin/sh\necho x > /sys/devices/system/cpu/cpufreq/policy0/scaling_governor\n",
    );
    let cpus = ["0", "9"].map(|cpu| format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor"));
    assert_eq!(told("rc.local", "cpu.governor", &[&cpus[0], &cpus[1]]), "==");

    // The pool of a node, and that of all nodes.
    let node =
        |node: u32| format!("/sys/devices/system/node/node{node}/hugepages/hugepages-2048kB/nr_hugepages");
    let (pools, all) = ([node(0), node(1)], "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages");
    for (text, signs) in [(format!("echo 128 > {}", node(1)), "-="), (format!("echo 128 > {all}"), "==")] {
        executable(root, "/etc/rc.local", format!("#!/bin/sh\n{text}\n"));
        assert_eq!(told("rc.local", "hugepages.2m", &[&pools[0], &pools[1]]), signs, "{text}");
        assert_eq!(told("rc.local", "hugepages.2m.total", &[all]), "=", "{text}");
    }
}

/// A section of tuned for some devices, and one for all.
#[test]
fn a_section_of_tuned_writes_its_devices() {
    let tree = tempfile::tempdir().expect("a folder");
    let root = tree.path();
    write(root, "/run/tuned/tuned.pid", "812\n");
    write(root, "/etc/tuned/active_profile", "db\n");
    for (devices, signs) in [
        ("devices=sda\n", "=-"),
        ("devices=nvme*, dm-0\n", "-="),
        ("devices=!sda\n", "=="),
        ("devices=sda\ndevices_udev_regex=x\n", "=="),
        ("", "=="),
    ] {
        let profile = format!("[disk]\n{devices}readahead=4096\n");
        write(root, "/etc/tuned/profiles/db/tuned.conf", profile);
        assert_eq!(signs_of(root, "tuned", "block.read_ahead_kb", &READ_AHEAD), signs, "{devices}");
    }
}

/// Idioms of scripts of a boot, of which `check` was green.
#[test]
fn places_by_words_of_ls_and_by_folders_are_seen() {
    let tree = tempfile::tempdir().expect("a folder");
    let root = tree.path();
    let cpus = "/sys/devices/system/cpu";
    let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
    for (text, will, may) in [
        (
            format!("for c in $(ls -d {cpus}/cpu[0-9]*); do echo x > $c/cpufreq/scaling_governor; done"),
            &["cpu.governor"][..],
            &[][..],
        ),
        (format!("P=${{P:-{P}}}; echo 60 > \"$P\"/swappiness"), &["vm.swappiness"], &[]),
        (
            format!("ls -d {cpus}/cpu*/cpufreq | xargs -n1 -I% sh -c \"echo x > %/scaling_governor\""),
            &["cpu.governor"],
            &[],
        ),
        (
            format!("own {cpus} | while read c; do echo x > $c/cpufreq/scaling_governor; done"),
            &[],
            &["cpu.governor"],
        ),
        ("D=$(own /sys/block); echo none > $D/queue/scheduler".to_owned(), &[], &["block.scheduler"]),
        (format!("D=$(own {P}); echo 60 > $D/swappiness"), &[], &["vm.swappiness"]),
    ] {
        executable(root, "/etc/rc.local", format!("#!/bin/sh\n{text}\n"));
        assert_eq!(told_by(root, "rc.local"), (words(will), words(may)), "{text}");
    }
}

/// The places that base/formats tells of words of ethtool, cpupower and blockdev are those of the catalogue.
#[test]
fn places_of_settings_by_words_are_those_of_the_catalogue() {
    use planish_formats::shell::{Effect, What, effects};
    use planish_model::cards;
    let catalogue = Catalogue::embedded().expect("sound");
    let written = |command: &str| -> Vec<String> {
        let file = |effect: Effect| match effect.what {
            What::File(path) => Some(path),
            _ => None,
        };
        effects(command, None).into_iter().filter_map(file).collect()
    };
    let mut of_cards = 0;
    for knob in catalogue.knobs() {
        let path = knob.path.replace("{nic}", "eth0");
        let Some(command) = cards::command(&path, "1") else { continue };
        let told = written(&format!("ethtool {} {} {}", command.option, command.card, command.words));
        assert!(told.contains(&path), "{}: {told:?}", knob.id);
        of_cards += 1;
    }
    assert!(of_cards > 15, "{of_cards}");
    // Each word that stands for several knobs, or beside another.
    for word in [
        "gro",
        "rx-gro",
        "generic-receive-offload",
        "gso",
        "tx-generic-segmentation",
        "generic-segmentation-offload",
        "tso",
        "tx-tcp-segmentation",
        "tx-tcp6-segmentation",
        "tcp-segmentation-offload",
        "lro",
        "rx-lro",
        "large-receive-offload",
        "ntuple",
        "rx-ntuple-filter",
        "ntuple-filters",
        "sg",
        "rx",
    ] {
        let said = cards::settings("-K", &[word.to_owned(), "on".to_owned()]);
        let place = |said| match said {
            cards::Said::Value { knob, .. } => cards::place_of(knob, "eth0"),
            cards::Said::Refused { .. } => None,
        };
        let expected: Vec<String> = said.into_iter().filter_map(place).collect();
        assert_eq!(written(&format!("ethtool -K eth0 {word} on")), expected, "{word}");
    }
    for command in [
        "cpupower frequency-set -g x -d 1 -u 2",
        "cpupower frequency-set -f 1",
        "cpupower idle-set -d 1 -e 2 -D 3 -E",
        "cpupower set -b 1 -e x -t 1",
        "cpufreq-set -g x",
        "blockdev --setra 8 /dev/sda",
        "hugeadm --pool-pages-min 2MB:1 --pool-pages-max 1GB:1 --thp-never",
        "x86_energy_perf_policy -a 0 -t 1",
    ] {
        let told = written(command);
        let is_known = |path: &String| catalogue.knobs().any(|knob| places::is_place(knob, path));
        assert!(!told.is_empty() && told.iter().all(is_known), "{command}: {told:?}");
    }
}

/// systemd-sysv-generator makes none of a script whose unit there is, masked or not.
#[test]
fn an_init_script_with_a_unit_of_its_name_is_not_started_by_systemd() {
    let tree = tempfile::tempdir().expect("a folder");
    let root = tree.path();
    write(root, "/usr/lib/systemd/system-generators/systemd-sysv-generator", "");
    for (name, key) in [
        ("S01alone", "vm.swappiness"),
        ("S02native.sh", "vm.stat_interval"),
        ("S03masked", "vm.max_map_count"),
    ] {
        executable(root, &format!("/etc/rc3.d/{name}"), format!("#!/bin/sh\nsysctl -w {key}=1\n"));
    }
    write(root, "/lib/systemd/system/native.service", "[Service]\nExecStart=/bin/true\n");
    write(root, "/etc/systemd/system/.keep", "");
    symlink("/dev/null", root.join("etc/systemd/system/masked.service")).expect("a link");
    assert_eq!(told_by(root, "init-scripts").0, ["vm.max_map_count", "vm.stat_interval", "vm.swappiness"]);
    write(root, "/run/systemd/system/.keep", "");
    assert_eq!(told_by(root, "init-scripts").0, ["vm.swappiness"]);
}

/// The image of a container has the scripts of its packages, and nobody runs them.
#[test]
fn init_scripts_are_run_by_an_init_alone() {
    let tree = tempfile::tempdir().expect("a folder");
    let root = tree.path();
    executable(root, "/etc/rc3.d/S01tune", "#!/bin/sh\nsysctl -w vm.swappiness=1\n");
    let is_told = || ids(&seen_in(root)).contains(&"init-scripts");
    assert!(is_told(), "nobody knows what process 1 is");
    for (name, runs_them) in [("tini", false), ("init", true), ("postgres", false), ("openrc-init", true)] {
        write(root, "/proc/1/comm", format!("{name}\n"));
        assert_eq!(is_told(), runs_them, "{name}");
    }
    write(root, "/proc/1/comm", "own-init\n");
    write(root, "/etc/inittab", "::sysinit:/etc/init.d/rcS\n");
    assert!(is_told(), "an init of this table");
}

/// `sysctl` has a name for the pools of all nodes that is none of the rows'.
#[test]
fn whoever_sets_the_pools_of_all_nodes_by_sysctl_is_seen() {
    let tuned = tempfile::tempdir().expect("a folder");
    write(tuned.path(), "/run/tuned/tuned.pid", "812\n");
    write(tuned.path(), "/etc/tuned/active_profile", "db\n");
    write(tuned.path(), "/etc/tuned/profiles/db/tuned.conf", "[sysctl]\nvm.nr_hugepages=1024\n");
    write(tuned.path(), "/etc/sysctl.d/99-huge.conf", "vm.nr_hugepages = 512\n");
    let seen = seen_in(tuned.path());
    assert_eq!((ids(&seen), knobs(&seen[0])), (vec!["tuned"], vec!["hugepages.2m.total"]));
    let total = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages";
    assert!(seen[0].again.settles.contains(total), "{:?}", seen[0].again);

    for command in [
        "sysctl -w vm.nr_hugepages=1024",
        "echo 1024 > /proc/sys/vm/nr_hugepages",
        "echo 1024 | tee /proc/sys/vm/nr_hugepages_mempolicy",
        "echo 1024 > /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages",
    ] {
        let tree = tempfile::tempdir().expect("a folder");
        executable(tree.path(), "/etc/rc.local", format!("#!/bin/sh\n{command}\n"));
        let seen = seen_in(tree.path());
        assert_eq!(
            (ids(&seen), knobs(&seen[0])),
            (vec!["rc.local"], vec!["hugepages.2m.total"]),
            "{command}"
        );
    }
}
