//! What units of systemd and drop-ins of them come to.

use super::*;

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
    assert_eq!(lines(&imported), [(8, true), (9, true), (10, false), (11, false), (12, false)]);
    assert_eq!(told(&imported)[2], "10 - reads other files: import those");
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
