//! What scripts come to.

use planish_sys::process::thread_cpu_time;

use super::*;

#[test]
fn a_script_is_read_line_by_line() {
    let imported = read(SCRIPT, ImportFormat::guess(SCRIPT));
    assert_eq!(imported.format, ImportFormat::Script);
    assert_eq!(
        told(&imported),
        [
            "5 cpu.governor",
            "7 hugepages.2m a pool: raised to this size, and never lowered; pages of the default size, taken for 2M",
            "8 - line 16 sets it to 0",
            "8 net.ipv4.tcp_rmem",
            "9 - no knob has this place; the nearest is /proc/sys/kernel/numa_balancing",
            "10 thp.enabled",
            "11 - a loop over what only a shell can tell",
            "12 - inside a loop over what only a shell can tell: take it by hand if it is meant",
            "14 - acts when written and has no old value to put back",
            "15 - starts or stops a service",
            "16 vm.swappiness",
        ]
    );
    assert_eq!(*want(&imported, "cpu.governor"), Want::Text("performance".to_owned()));
    assert_eq!(
        *want(&imported, "hugepages.2m"),
        Want::Total { total_bytes: 16384 << 21, nodes: Nodes::Spread }
    );
    assert_eq!(*want(&imported, "vm.swappiness"), Want::Int(0));
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
        let before = thread_cpu_time();
        let imported = read(&format!("{script}\nsysctl -w vm.dirty_ratio=5\n"), ImportFormat::Script);
        // A second even where the build is not optimized; what is not counted takes longer than anybody waits.
        let spent = thread_cpu_time() - before;
        assert!(spent.as_secs() < 10, "{around}{command}: {spent:?}");
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
        let before = thread_cpu_time();
        let _ = read(&script, ImportFormat::Script);
        let spent = thread_cpu_time() - before;
        assert!(spent.as_secs() < 20, "{script:.80}: {spent:?}");
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
        ("set -u; case $W in a) ;; esac", false),
        ("set -u; case ${W:-} in a) ;; esac", true),
        ("set -u; f() { [ -e /x ] && shift; echo $1; }; f a", false),
        ("set -u; f() { [ -e /x ] && set -e; echo $1; }; f a", true),
        ("set -u; { :; } > /tmp/$W", false),
        ("set -u; W=1; { :; } > /tmp/$W", true),
        ("set -u; cat < /tmp/$W", false),
    ] {
        let found = accepted(&format!("{before}{last}"), ImportFormat::Script);
        assert_eq!(found.iter().any(|row| row.starts_with('2')), is_sure, "{before}: {found:?}");
    }
    for (end, is_sure) in [("END", false), ("'END'", true)] {
        let found = accepted(&format!("set -u\ncat <<{end}\n$W\nEND{last}"), ImportFormat::Script);
        assert_eq!(found.len(), usize::from(is_sure), "{end}: {found:?}");
    }
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

/// What must hold is told the right way round.
#[test]
fn conditions_behind_a_not_are_told_as_they_are() {
    let set = "sysctl -w vm.swappiness=1";
    for (script, why) in [
        (format!("if ! grep -q numa /x; then {set}; fi"), "`grep -q numa /x` fails"),
        (format!("! grep -q numa /x && {set}"), "`grep -q numa /x` fails"),
        (format!("! grep -q numa /x || {set}"), "`grep -q numa /x` succeeds"),
        (format!("if ! cat /x | grep -q numa; then {set}; fi"), "`grep -q numa` fails"),
        (
            format!("if [ ! -f /x ]; then exit 0; fi\n{set}"),
            "`[ ! -f /x ]` fails, which asks for another place",
        ),
        (format!("if [ ! -f /x ]; then {set}; fi"), "`[ ! -f /x ]` succeeds"),
        (format!("[ ! -f /x ] || {set}"), "`[ ! -f /x ]` fails"),
        (format!("if grep a /x || grep b /x; then {set}; fi"), "`grep a /x || grep b /x` succeeds"),
        (format!("grep a /x || grep b /x || {set}"), "`grep a /x` fails"),
    ] {
        let imported = read(&script, ImportFormat::Script);
        let row = imported.lines.iter().find(|row| row.text.contains("sysctl")).expect(&script);
        let row = row.reason.as_deref().unwrap_or_default();
        assert!(
            row.contains(&format!("runs only if {why}")) && imported.profile.want.is_empty(),
            "{script}: {row}"
        );
    }
}

#[test]
fn a_name_behind_a_change_of_folder_is_not_called_another_file() {
    let text = "(cd /sys/kernel/mm/transparent_hugepage && echo never > enabled)\necho a > /tmp/x\n";
    let why =
        "1 - names a file from the folder that a `cd` went to, which is not followed: write its whole path";
    assert_eq!(
        told(&read(text, ImportFormat::Script)),
        [why, "2 - writes to a file that is none of the kernel's"]
    );
}

/// The files of settings that a script writes are its settings, and what has them read is nothing to be told of.
#[test]
fn a_script_that_writes_files_of_sysctl_and_tmpfiles_is_read_line_by_line() {
    let (conf, own, tmp) = ("/etc/sysctl.conf", "/etc/sysctl.d/90-x.conf", "/etc/tmpfiles.d/t.conf");
    let here = "cat >> /etc/sysctl.conf <<EOF\n# Ours\nvm.swappiness = 10\nEOF\n";
    become_of([
        (format!("{here}sysctl -p\n"), "3 vm.swappiness"),
        (format!("{here}sysctl -q -p {conf} > /dev/null || true\n"), "3 vm.swappiness"),
        (
            format!("{here}sysctl --system && sysctl -w vm.stat_interval=3\n"),
            "3 vm.swappiness|5 - runs only if",
        ),
        (format!("{here}systemctl restart systemd-sysctl\n"), "3 vm.swappiness"),
        (
            format!("sudo tee -a {conf} <<EOF > /dev/null\nvm.swappiness=10\nEOF\nsudo sysctl -p\n"),
            "2 vm.swappiness",
        ),
        (format!("cat <<'E' | sudo tee -a {conf}\nvm.swappiness=10\nE\n"), "2 vm.swappiness"),
        (format!("echo 'vm.swappiness = 10' >> {conf} && sysctl -p\n"), "1 vm.swappiness"),
        (format!("echo vm.swappiness = 10 | sudo tee -a {conf}\n"), "1 vm.swappiness"),
        (format!("printf 'vm.swappiness=10\\n' >> {conf}\n"), "1 vm.swappiness"),
        (format!("sed -i /swap/d {conf}\necho vm.swappiness=10 >> {conf}\n"), "1 - of `sed`|2 vm.swappiness"),
        (
            format!(
                "echo vm.swappiness=9 >> {conf}\nsed -i /x/d {conf}\necho vm.stat_interval=3 >> {conf}\n"
            ),
            "1 - line 2 may change|2 - of `sed`|3 vm.stat_interval",
        ),
        (
            format!("mkdir -p /etc/sysctl.d\necho vm.swappiness=10 > {own}\nsysctl -p {own}\n"),
            "2 vm.swappiness",
        ),
        (
            format!("for k in swappiness stat_interval; do echo vm.$k=7 >> {own}; done\n"),
            "1 vm.swappiness|1 vm.stat_interval",
        ),
        // The file counts as the next boot reads it, behind what is set at once; and files by their names.
        (format!("{here}sysctl -w vm.swappiness=60\n"), "3 vm.swappiness|5 - line 3 sets it to 10"),
        (
            format!("echo vm.swappiness=9 > /etc/sysctl.d/z.conf\n{here}"),
            "1 vm.swappiness|4 - line 1 sets it to 9",
        ),
        (
            format!("echo vm.swappiness=9 > /etc/sysctl.d/10-z.conf\n{here}"),
            "1 - line 4 sets it to 10|4 vm.swappiness",
        ),
        (
            format!("echo vm.swappiness=9 > {own}\necho vm.swappiness=8 > /run/sysctl.d/90-x.conf\n"),
            "1 vm.swappiness|2 - a file of this name",
        ),
        (
            format!("cat > {tmp} <<E\nw /sys/kernel/mm/ksm/run - - - - 0\nE\nsystemd-tmpfiles --create\n"),
            "2 mm.ksm_run",
        ),
    ]);
}

#[test]
fn of_a_file_of_settings_only_what_is_sure_to_be_in_it_is_taken() {
    let conf = "/etc/sysctl.conf";
    become_of([
        (
            "echo 'w /sys/kernel/mm/ksm/run - - - - 0' >> /etc/tmpfiles.d/t.conf\n".to_owned(),
            "1 - adds to a file",
        ),
        (
            "sysctl -p\necho vm.swappiness=10 >> /etc/sysctl.conf\n".to_owned(),
            "1 - reads other files|2 vm.swappiness",
        ),
        (
            format!("echo vm.swappiness=10 >> {conf}\nsysctl -p /etc/x\n"),
            "1 vm.swappiness|2 - reads other files",
        ),
        (
            "[ -f /etc/sysctl.conf ] && echo vm.swappiness=10 >> /etc/sysctl.conf\n".to_owned(),
            "1 - runs only if",
        ),
        (
            "[ -d /etc/sysctl.d ] && echo vm.swappiness=10 > /etc/sysctl.d/x.conf\n".to_owned(),
            "1 vm.swappiness",
        ),
        (
            format!("grep -q swap {conf} || echo vm.swappiness=10 >> {conf}\n"),
            "1 - of `grep`|1 - runs only if",
        ),
        (
            "echo vm.swappiness=10 > /etc/sysctl.d/x.conf.off\n".to_owned(),
            "1 - writes to a file that is none",
        ),
        (format!("cat >> {conf} <<EOF\nvm.swappiness=$N\nEOF\n"), "2 - holds what only a shell"),
        (
            format!("for f in /sys/block/*; do echo vm.swappiness=$f >> {conf}; done\n"),
            "1 - the names of files",
        ),
    ]);
}

/// What becomes of the lines of scripts: those that are taken with their knob, others with their reason.
fn become_of<const N: usize>(scripts: [(String, &str); N]) {
    for (script, taken) in scripts {
        let found = told(&read(&script, ImportFormat::Script));
        let taken: Vec<&str> = taken.split('|').collect();
        let fits = |(found, taken): (&String, &&str)| found.starts_with(taken);
        assert!(
            found.len() == taken.len() && found.iter().zip(&taken).all(fits),
            "{script}{found:#?}, not {taken:#?}"
        );
    }
}

#[test]
fn grubby_gives_arguments_in_a_script_as_in_a_task() {
    let given =
        read("sudo grubby --update-kernel=ALL --args=\"isolcpus=1-3 nohz_full=1-3\"\n", ImportFormat::Script);
    assert_eq!(want(&given, "boot.isolcpus"), &Want::Text("1-3".to_owned()), "{:?}", told(&given));
    let lines: Vec<_> = given.lines.iter().filter_map(|row| row.knob.as_ref()).map(KnobId::as_str).collect();
    assert_eq!(lines, ["boot.isolcpus", "boot.nohz_full"]);
    for (script, why) in [
        ("grubby --update-kernel=/boot/vmlinuz-5 --args=isolcpus=1\n", "of some kernel alone"),
        ("grubby --update-kernel=ALL --remove-args=quiet\n", "takes arguments off"),
        ("grubby --update-kernel=ALL --args=\"isolcpus=$N\"\n", "a variable"),
        ("[ -f /x ] && grubby --update-kernel=ALL --args=isolcpus=1\n", "runs only if"),
    ] {
        let found = told(&read(script, ImportFormat::Script));
        assert!(
            found.len() == 1 && found[0].contains(why) && found[0].starts_with("1 - "),
            "{script}{found:?}"
        );
    }
}

/// What a shell would not set is not taken, whatever it looks like.
#[test]
fn what_sets_nothing_is_told_at_its_line() {
    let refused = |text: &str| {
        let imported = read(text, ImportFormat::Script);
        assert!(imported.profile.want.is_empty(), "{text}");
        let lines = imported.lines.iter().map(|line| (line.line, line.reason.clone().unwrap_or_default()));
        lines.collect::<Vec<_>>()
    };
    let foreign = refused("#!/bin/sh\r\necho 5 > /proc/sys/vm/swappiness\r\n");
    assert!(foreign.len() == 1 && foreign[0].0 == 1 && foreign[0].1.contains("dos2unix"), "{foreign:?}");
    assert_eq!(refused("sysctl -a -w kernel.msgmax=8193\n").len(), 1);
    assert_eq!(
        refused("# settings\nA=1\n"),
        [(2, "a variable of a shell, which sets nothing, nor does any other line".to_owned())]
    );
}

/// To a shell one argument of the kernel is a variable, and to sysctl a key.
#[test]
fn a_lone_argument_of_the_kernel_is_one() {
    for (text, id) in [
        ("isolcpus=1-3\n", "boot.isolcpus"),
        ("skew_tick=1", "boot.skew_tick"),
        ("nosoftlockup\n", "boot.nosoftlockup"),
        ("processor.max_cstate=1\n", "boot.processor_max_cstate"),
    ] {
        assert_eq!(recognise(text, ImportFormat::guess(text)), Ok(()), "{text}");
        let imported = read(text, ImportFormat::guess(text));
        assert!(imported.profile.want.keys().any(|knob| knob.as_str() == id), "{text}: {:?}", imported.lines);
    }
    assert_eq!(ImportFormat::guess("vm.swappiness=5\n"), ImportFormat::Sysctl);
}

#[test]
fn an_interface_takes_what_a_knob_is_for() {
    let of = |line: &str| read(&format!("#!/bin/sh\n{line}\n"), ImportFormat::Script);
    let both = of("ip link set dev eth0 mtu 9000 txqueuelen 2000");
    for (id, value) in [("net.mtu", "9000"), ("net.tx_queue_len", "2000")] {
        let want = format!("{:?}", want(&both, id));
        assert!(want.contains("eth0") && want.contains(value), "{want}");
    }
    assert_eq!(
        told(&of("ip link set eth0 up mtu 9000")),
        ["2 net.mtu may stall the host: --allow availability"]
    );
    for (line, why) in [
        ("ip link set eth0 mtu", "mtu has no value"),
        ("ip link set eth0 mtu 500", "1280"),
        ("ip link set eth0 down", "what planish does not set of an interface: down"),
        ("ip link set eth* mtu 9000", "of ip only"),
        ("ip addr add 10.0.0.1/8 dev eth0", "of ip only"),
    ] {
        let [row] = told(&of(line)).try_into().unwrap_or_else(|rows| panic!("{line}: {rows:?}"));
        assert!(row.starts_with("2 - ") && row.contains(why), "{line}: {row}");
    }
}

/// Files of the kernel have no end to write behind.
#[test]
fn what_is_added_to_a_file_of_the_kernel_sets_it() {
    let text = "echo 1 >> /proc/sys/vm/swappiness\necho never | tee -a /sys/kernel/mm/transparent_hugepage/enabled\n\
                echo 1 >> /etc/other.conf\necho 5 | tee -a /proc/sys/vm/stat_interval /etc/other.conf\n";
    let imported = read(text, ImportFormat::Script);
    assert_eq!(
        told(&imported),
        [
            "1 vm.swappiness",
            "2 thp.enabled",
            "3 - appends to a file: import that one",
            "4 - appends to a file: import that one",
        ]
    );
    assert_eq!(*want(&imported, "vm.swappiness"), Want::Int(1));
}

/// What a shell puts into a name below /sys leads out of it nowhere, and a file that the script wrote stays.
#[test]
fn a_loop_over_files_of_the_kernel_takes_no_file_away_that_was_written_before() {
    let file = "cat > /etc/sysctl.d/99-x.conf <<EOF\nvm.swappiness=1\nEOF\n";
    let taken = |rest: &str| {
        let imported = read(&format!("#!/bin/bash\n{file}{rest}\n"), ImportFormat::Script);
        imported.lines.iter().any(|line| line.line == 3 && line.is_accepted())
    };
    let governor = "/sys/devices/system/cpu/cpu$i/cpufreq/scaling_governor";
    for words in ["$(seq 0 3)", "{0..3}", "0 1 2 3", "$(ls /x)"] {
        assert!(taken(&format!("for i in {words}; do echo performance > {governor}; done")), "{words}");
        assert!(taken(&format!("for i in {words}; do echo performance | tee {governor}; done")), "{words}");
    }
    for rest in [
        "for i in $(ls /x); do echo 1 > $i; done",
        "for i in $(ls /x); do echo 1 > /etc/$i; done",
        "for i in $(ls /x); do echo 1 > /sys/../$i; done",
        "for i in $(ls /x); do rm /sys/$i; done",
    ] {
        assert!(!taken(rest), "{rest}");
    }
}

#[test]
fn of_cpupower_it_is_said_what_is_read() {
    let imported =
        read("cpupower idle-set -D 0\ncpupower frequency-set -g performance\n", ImportFormat::Script);
    let refused = "1 - of cpupower only frequency-set -g GOVERNOR is known";
    assert_eq!(told(&imported), [refused, "2 cpu.governor"]);
    let more = read("cpupower -c all frequency-set --governor performance -d 2.4GHz\n", ImportFormat::Script);
    assert_eq!(told(&more), ["1 cpu.governor", refused]);
    let some = read("cpupower -c 3 frequency-set -g performance\n", ImportFormat::Script);
    assert_eq!(told(&some), [refused]);
}

/// A shell that runs the file leaves what the trap writes, and import told the other value.
#[test]
fn what_a_trap_writes_when_the_script_ends_is_taken_of_no_line() {
    const SET: &str = "echo 0 > /proc/sys/kernel/watchdog\nsysctl -w vm.swappiness=3\n";
    for (before, trap, is_taken) in [
        ("", "trap \"echo 1 > /proc/sys/kernel/watchdog\" EXIT", false),
        ("", "trap 'echo \"$old\" >/proc/sys/kernel/watchdog' 0", false),
        ("", "trap 'sysctl -w kernel.watchdog=$old' EXIT INT", false),
        ("", "trap 'sysctl -qw kernel/watchdog=1; rm -f x' exit", false),
        ("back() { sysctl -w kernel.watchdog=1; }\nclean() { back; }\n", "trap clean EXIT", false),
        ("", "[ -e /x ] && trap 'echo 1 > /proc/sys/kernel/watchdog' EXIT", false),
        ("", "trap 'echo 1 > /proc/sys/kernel/watchdog' INT TERM", true),
        ("f=/proc/sys/kernel/watchdog\n", "trap \"echo 1 > $f\" EXIT", false),
        ("d=/proc/sys/kernel\n", "trap 'echo 1 > ${d}/watchdog' EXIT", false),
        ("f=/tmp/x\nf2=/proc/sys/kernel/watchdog\n", "trap 'echo 1 > $f' EXIT", true),
        ("", "trap 'rm -f /tmp/x' EXIT", true),
        ("", "trap 'popd >/dev/null 2>&1; rm -rf \"${tmp:?}\"; echo done >> /var/log/x' EXIT", true),
        ("", "trap - EXIT", true),
        ("back() { sysctl -w kernel.watchdog=1; }\n", "trap 'rm -f /tmp/x' EXIT", true),
    ] {
        for text in [format!("{before}{trap}\n{SET}"), format!("{before}{SET}{trap}\n")] {
            let imported = read(&text, ImportFormat::Script);
            let has = |id: &str| imported.profile.want.contains_key(&KnobId::new(id));
            assert_eq!((has("kernel.watchdog"), has("vm.swappiness")), (is_taken, true), "{text}");
            let told = told(&imported).join("\n");
            assert_eq!(told.contains("has it written again when the script ends"), !is_taken, "{told}");
        }
    }
    // What is put together on the way there is told by nobody.
    for trap in [
        "trap 'cd /proc/sys/vm; echo 60 > swappiness' EXIT",
        "trap 'for k in swappiness; do echo 60 > /proc/sys/vm/$k; done' EXIT",
        "trap 'cpupower frequency-set -g powersave' EXIT",
        "back() {\n  local v=/proc/sys/vm\n  echo 60 > $v/swappiness\n}\ntrap back EXIT",
        "trap 'sysctl -w $key=1' EXIT",
        "trap 'rm /etc/sysctl.d/x.conf' EXIT",
        "trap 'sysctl --system' EXIT",
        "trap 'sysctl -qp/root/saved.conf' EXIT",
        "trap 'sysctl -w vm.swapp*=60' EXIT",
        "trap 'echo $(/usr/bin/restore)' EXIT",
        "f=/tmp/x; f2=$(cat /root/t); trap 'echo 60 > $f2' EXIT",
        "trap 'echo 60 > \"/proc/sys/vm/swapp\"iness' EXIT",
        "trap 'echo 60 > /proc/sys/vm/../vm/swappiness' EXIT",
        "trap cleanup EXIT",
    ] {
        let imported = read(&format!("{SET}{trap}\n"), ImportFormat::Script);
        assert!(imported.profile.want.is_empty(), "{trap} {:?}", told(&imported));
    }
    // What comes behind a script of its own is set behind its end.
    let twin = "trap 'echo 20 > /proc/sys/vm/dirty_ratio' EXIT\necho 268435456 > /proc/sys/vm/dirty_bytes\n";
    assert_eq!(read(twin, ImportFormat::Script).profile.want.len(), 0, "the trap clears it");
    let inner = "sh -c 'trap \"echo 1 > /proc/sys/kernel/watchdog\" EXIT'\n";
    let behind = read(&format!("{inner}{SET}"), ImportFormat::Script);
    assert!(behind.profile.want.contains_key(&KnobId::new("kernel.watchdog")), "{:?}", told(&behind));
    let before = read(&format!("{SET}{inner}"), ImportFormat::Script);
    assert!(!before.profile.want.contains_key(&KnobId::new("kernel.watchdog")), "{:?}", told(&before));
}
