//! Units of systemd as writers: which of them a boot starts, and what takes them away.

use super::*;

#[test]
fn a_unit_counts_where_systemd_runs_and_it_is_enabled() {
    let tree = tempfile::tempdir().expect("a folder");
    let root = tree.path();
    let unit = "[Service]\nEnvironmentFile=-/etc/default/irqbalance\nExecStart=/usr/sbin/irqbalance $IRQBALANCE_ARGS\n";
    write(root, "/lib/systemd/system/irqbalance.service", unit);
    write(root, "/etc/default/irqbalance", "IRQBALANCE_ARGS=--deepestcache=2\n");
    write(root, "/etc/systemd/system/multi-user.target.wants/.keep", "");
    let wants = "etc/systemd/system/multi-user.target.wants/irqbalance.service";
    symlink("/lib/systemd/system/irqbalance.service", root.join(wants)).expect("ours");
    assert_eq!(seen_in(root), [], "an image of a container");
    write(root, "/run/systemd/system/.keep", "");
    let seen = seen_in(root);
    assert_eq!(ids(&seen), ["irqbalance"]);
    assert!(!seen[0].running);
    assert_eq!(seen[0].evidence, [format!("enabled for the next boot by /{wants}")]);
    let arguments = seen[0].arguments.as_ref().expect("its unit takes some");
    assert_eq!(
        (arguments.file.as_str(), arguments.value.as_str()),
        ("/etc/default/irqbalance", "--deepestcache=2")
    );
    symlink("/dev/null", root.join("etc/systemd/system/irqbalance.service")).expect("ours");
    assert_eq!(seen_in(root), [], "masked");
}

#[test]
fn an_enabled_unit_is_read_wherever_its_files_lie_and_no_text_of_it_is_remembered() {
    let tree = tempfile::tempdir().expect("a folder");
    let root = tree.path();
    write(root, "/run/systemd/system/.keep", "");
    let own = "[Service]\n# sysctl -w vm.swappiness=1\nExecStart=/bin/own vm.max_map_count=1 \\\n  --more\n";
    write(root, "/usr/lib/systemd/system/own.service", own);
    write(
        root,
        "/etc/systemd/system/own.service.d/o.conf",
        "[Service]\nExecStartPre=/sbin/sysctl -w vm.stat_interval=1\n",
    );
    write(
        root,
        "/usr/lib/systemd/system/timed@.service",
        "[Service]\nExecStart=/sbin/sysctl -w vm.dirty_ratio=5\n",
    );
    write(
        root,
        "/usr/lib/systemd/system/other.service",
        "[Service]\nExecStart=/sbin/sysctl -w vm.swappiness=5\n",
    );
    assert_eq!(seen_in(root), [], "none is enabled");
    write(root, "/etc/systemd/system/multi-user.target.wants/own.service", "");
    write(root, "/etc/systemd/system/timers.target.wants/timed@a.timer", "");
    let host = Host::open(root).expect("a tree");
    let catalogue = Catalogue::embedded().expect("sound");
    let seen = read(&host, &catalogue, PAGE).writers;
    assert_eq!(ids(&seen), ["units"]);
    assert_eq!(knobs(&seen[0]), ["vm.dirty_ratio", "vm.max_map_count", "vm.stat_interval"]);
    let drop_in = ["/etc/systemd/system/own.service.d/o.conf".to_owned()];
    assert_eq!(texts(&seen[0].sources, &KnobId::new("vm.stat_interval")), drop_in);
    assert!(!host.reads().iter().any(|path| path.ends_with("own.service") || path.ends_with("o.conf")));

    // A drop-in takes a command back, one of the same name in a later folder does not count, and a mask is no unit.
    write(root, "/etc/systemd/system/own.service.d/p.conf", "[Service]\nExecStart=\nExecStart=/bin/own\n");
    write(
        root,
        "/run/systemd/system/own.service.d/o.conf",
        "[Service]\nExecStop=/sbin/sysctl -w vm.page-cluster=1\n",
    );
    assert_eq!(knobs(&seen_in(root)[0]), ["vm.dirty_ratio", "vm.stat_interval"]);
    // Drop-ins for all services, and for those whose names begin so.
    let of_all = "[Service]\nExecStartPost=/sbin/sysctl -w vm.page-cluster=1\n";
    for (folder, name) in [("service.d", "own.service"), ("my-.service.d", "my-own.service")] {
        let file = format!("etc/systemd/system/{folder}/x.conf");
        write(root, &format!("/{file}"), of_all);
        write(root, &format!("/usr/lib/systemd/system/{name}"), "[Service]\nExecStart=/bin/own\n");
        write(root, &format!("/etc/systemd/system/multi-user.target.wants/{name}"), "");
        let seen = seen_in(root);
        assert!(knobs(&seen[0]).contains(&"vm.page-cluster"), "{folder}: {:?}", knobs(&seen[0]));
        std::fs::remove_file(root.join(file)).expect("ours");
    }
    symlink("/dev/null", root.join("etc/systemd/system/own.service")).expect("ours");
    assert_eq!(knobs(&seen_in(root)[0]), ["vm.dirty_ratio"]);
}

/// An enabled unit names others in its lines, or starts one itself.
#[test]
fn units_that_an_enabled_one_pulls_in_or_starts_are_writers() {
    for (unit, text) in [
        ("a.service", "[Unit]\nRequires=sw.service\n"),
        ("a.service", "[Unit]\nWants=b.service sw.service\n"),
        ("a.target", "[Unit]\nBindsTo=sw.service\n"),
        ("a.service", "[Unit]\nOnSuccess='sw.service'\n"),
        ("a.service", "[Unit]\nOnFailure=b.service \"sw.service\"\n"),
        ("s-sw.service", "[Unit]\nUpholds=%j.service\n"),
        ("a.service", "[Unit]\nWants=sw.service\nWants=\n"),
        ("a.service", "[Service]\nExecStart=-/usr/bin/systemctl --no-block start sw\n"),
        ("sw.path", "[Path]\nPathExists=/x\n"),
        ("other.path", "[Path]\nPathExists=/x\nUnit=sw.service\n"),
        ("other.timer", "[Timer]\nOnBootSec=1\nUnit=sw.service\n"),
        ("other.socket", "[Socket]\nListenStream=1\nService=sw.service\n"),
    ] {
        let tree = tempfile::tempdir().expect("a folder");
        let root = tree.path();
        let sets = "[Service]\nExecStart=/sbin/sysctl -w vm.swappiness=4\n";
        write(root, "/run/systemd/system/.keep", "");
        write(root, "/etc/systemd/system/sw.service", sets);
        write(root, &format!("/usr/lib/systemd/system/{unit}"), text);
        assert_eq!(seen_in(root), [], "{unit} is not enabled");
        write(root, &format!("/etc/systemd/system/multi-user.target.wants/{unit}"), "");
        assert_eq!(knobs(&seen_in(root)[0]), ["vm.swappiness"], "{unit}: {text}");
        // Through another one, and round in a circle.
        write(root, "/etc/systemd/system/sw.service", "[Unit]\nWants=last.service sw.service\n");
        write(root, "/etc/systemd/system/last.service", sets);
        assert_eq!(knobs(&seen_in(root)[0]), ["vm.swappiness"], "{unit}: {text}");
    }
}

/// A boot begins with `default.target`, and any folder of links that the administrator made counts.
#[test]
fn units_of_the_target_of_a_boot_and_of_each_folder_of_links_are_writers() {
    let sets = "[Service]\nExecStart=/sbin/sysctl -w vm.swappiness=4\n";
    for (path, text) in [
        ("/etc/systemd/system/default.target", "[Unit]\nWants=sw.service\n"),
        ("/etc/systemd/system/default.target.d/a.conf", "[Unit]\nUpholds=sw.service\n"),
        ("/etc/systemd/system/multi-user.target.upholds/sw.service", ""),
    ] {
        let tree = tempfile::tempdir().expect("a folder");
        let root = tree.path();
        write(root, "/run/systemd/system/.keep", "");
        write(root, "/usr/lib/systemd/system/sw.service", sets);
        write(root, "/usr/lib/systemd/system/default.target", "[Unit]\nRequires=multi-user.target\n");
        assert_eq!(seen_in(root), [], "nothing starts it");
        write(root, path, text);
        assert_eq!(knobs(&seen_in(root)[0]), ["vm.swappiness"], "{path}: {text}");
        // A mask in /run is gone with this boot; an empty file and another way to write the link stay.
        std::fs::create_dir_all(root.join("etc/systemd/system")).expect("ours");
        symlink("/dev/null", root.join("run/systemd/system/sw.service")).expect("ours");
        assert_eq!(knobs(&seen_in(root)[0]), ["vm.swappiness"], "{path}: {text}");
        symlink("../../../dev/null", root.join("etc/systemd/system/sw.service")).expect("ours");
        assert_eq!(seen_in(root), [], "masked");
        std::fs::remove_file(root.join("etc/systemd/system/sw.service")).expect("ours");
        write(root, "/etc/systemd/system/sw.service", "");
        assert_eq!(seen_in(root), [], "masked by an empty file");
    }
}
