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
    let there = import_with(&CATALOGUE, "mine", bare, ImportFormat::Unit, None, Some(path), None);
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

#[test]
fn each_variable_of_a_line_is_a_setting_of_its_own() {
    const PATH: &str = "/etc/systemd/system/mongod.service.d/own.conf";
    let both = "glibc.malloc.hugetlb=1:glibc.pthread.rseq=0";
    let text = format!(
        "[Service]\nEnvironment=MALLOC_ARENA_MAX=2 \"TOKEN=a MALLOC_ARENA_MAX=9\" 'GLIBC_TUNABLES={both}'\n\
         Environment=GLIBC_TUNABLES=glibc.malloc.check=3\n"
    );
    let imported = import_with(&CATALOGUE, "mine", &text, ImportFormat::Unit, None, Some(PATH), None);
    let rows: Vec<(usize, bool)> = imported.lines.iter().map(|row| (row.line, row.is_accepted())).collect();
    assert_eq!(rows, [(2, true), (2, false), (2, true), (3, false)], "{:?}", told(&imported));
    let wanted: Vec<String> = imported.profile.want.keys().map(ToString::to_string).collect();
    assert_eq!(wanted, ["unit.glibc_tunables", "unit.malloc_arena_max"]);
}

/// `config_parse_exec_nice` and its like begin anew with an empty value; `config_parse_rlimit` cannot read one.
#[test]
fn what_a_unit_takes_back_itself_is_not_wanted() {
    const PATH: &str = "/etc/systemd/system/mongod.service.d/limits.conf";
    const SET: [&str; 6] = [
        "OOMScoreAdjust=-900",
        "Nice=-5",
        "IOWeight=500",
        "MemoryLow=8G",
        "TasksMax=9000",
        "Environment=MALLOC_ARENA_MAX=2",
    ];
    let unit = |text: &str| import_with(&CATALOGUE, "mine", text, ImportFormat::Unit, None, Some(PATH), None);
    for set in SET {
        let key = set.split_once('=').expect("a setting").0;
        let other = format!("# {}", PATH.replace("limits", "z"));
        for between in ["", &other, "[Service]"] {
            let imported = unit(&format!("[Service]\n{set}\n{between}\n{key}=\n"));
            let rows = told(&imported);
            assert!(imported.profile.want.is_empty(), "{key}: {rows:?}");
            let told = ["2 - line 4 takes it back", "4 - takes back what line 2 says, and sets nothing"]
                .map(str::to_owned);
            assert_eq!((rows, overridden(&imported)), (told.to_vec(), vec![(2, 4)]), "{key}");
        }
        let anew = unit(&format!("[Service]\n{set}\n{key}=\n{set}\n"));
        assert_eq!(
            anew.lines.iter().map(|row| (row.line, row.is_accepted())).collect::<Vec<_>>(),
            [(2, false), (4, true)]
        );
        // A script may write two files of one unit.
        let script = format!(
            "printf '%s\\n' '[Service]' '{set}' > {PATH}\nprintf '%s\\n' '[Service]' '{key}=' > {}\n",
            PATH.replace("limits", "z")
        );
        let written = read(&script, ImportFormat::Script);
        assert_eq!(overridden(&written), [(1, 2)], "{script}{:?}", told(&written));
        assert!(written.profile.want.is_empty(), "{script}");
    }
    let limit = unit("[Service]\nLimitNOFILE=65536\nLimitNOFILE=\n");
    assert_eq!(told(&limit)[1], "3 - no limit, and systemd passes it over");
    assert_eq!(limit.profile.want.len(), 1, "{:?}", told(&limit));
}
