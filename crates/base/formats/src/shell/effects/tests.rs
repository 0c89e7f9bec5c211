mod programs;

use proptest::prelude::*;

use super::*;

/// Each effect in a word: `=` is written for sure, `?` may be.
fn told(text: &str) -> Vec<String> {
    told_of(text, None)
}

fn told_of(text: &str, ask: Option<Ask<'_>>) -> Vec<String> {
    let one = |effect: Effect| {
        let sign = if effect.is_sure { "=" } else { "?" };
        match effect.what {
            What::File(path) => format!("{sign}{path} {}", effect.says),
            What::Key(key) => format!("{sign}key {key} {}", effect.says),
            What::Load(path) => format!("{sign}load {path}"),
            What::LoadAll => format!("{sign}load all"),
            What::Named(text) => format!("?{text}"),
            What::Profile(names) => format!("?profile {names}"),
            What::Below(folder, name) => format!("?{folder}/**/{name}"),
        }
    };
    effects(text, ask).into_iter().map(one).collect()
}

/// Files by their paths, all of which may be run.
struct Lying<'a>(&'a [(&'a str, &'a str)]);

impl Files for Lying<'_> {
    fn text(&self, path: &str, _: bool) -> Option<String> {
        self.0.iter().find(|(at, _)| *at == path).map(|(_, text)| (*text).to_owned())
    }

    fn names(&self, folder: &str) -> Vec<String> {
        let names = self.0.iter().filter_map(|(at, _)| at.strip_prefix(folder)?.strip_prefix('/'));
        names.map(str::to_owned).collect()
    }
}

const P: &str = "/proc/sys/vm/swappiness";

#[test]
fn sysctl_loads_all_folders_where_it_is_told_to() {
    let conf = "load /etc/sysctl.conf";
    assert_eq!(told("sysctl --system"), ["=load all".to_owned(), format!("={conf}")]);
    assert_eq!(told("sysctl --system -r '^net'"), ["?load all".to_owned(), format!("?{conf}")]);
    assert_eq!(told("sysctl -q -p"), [format!("={conf}")]);
}

#[test]
fn what_only_reads_writes_nothing() {
    for text in [
        "/bin/cat P",
        "cat P | grep -q 60 && exit 0",
        "sysctl -n vm.swappiness",
        "sudo -n /sbin/sysctl vm.swappiness",
        "sysctl --dry-run vm.swappiness=1",
        "test -e P || exit 1",
        "[ \"$(cat P)\" = 60 ] && echo vm.swappiness=60",
        "[[ -e P ]]",
        "if grep -q 1 P; then :; fi",
        "x=$(< P); y=P; echo $x $y",
        "for f in P; do cat \"$f\"; done",
        "head -1 < P",
        "awk '{ print $1 }' P",
        "nice -n 5 timeout 3s env A=b cat P",
        "echo 'sysctl -w vm.swappiness=1'",
        "chmod 644 P",
        "find P -newer /x",
        "find /proc/sys/vm -name swappiness -exec cat {} \\;",
        "ls /x | xargs grep 1 P",
    ] {
        assert_eq!(told(&text.replace('P', P)), [""; 0], "{text}");
    }
    let kept = told(&format!("cat {P} > /run/saved; cp {P} \"$HOME/saved\"; T=$(mktemp); cat {P} > $T"));
    let files: Vec<&str> = kept.iter().map(|line| line.split(' ').next().expect("a word")).collect();
    assert_eq!(files, ["=/run/saved", "=/root/saved", "=/tmp/*"]);
}

#[test]
fn what_writes_is_told_with_its_words() {
    for (text, expected) in [
        ("echo 60 > P", "=P echo 60"),
        ("echo 60 >P 2>&1", "=P echo 60"),
        ("echo 60 2> /dev/null >> \"P\"", "=P echo 60"),
        ("echo 60 | sudo tee P > /dev/null", "=P echo 60"),
        ("printf 60 | dd of=P bs=1", "=P printf 60"),
        ("cp /run/saved P", "=P cp /run/saved P"),
        ("{ echo 60; } > P", "=P { echo 60; }"),
        ("if true; then echo 60 > P; fi", "=P echo 60"),
        ("case $1 in start) echo 60 > P;; esac", "=P echo 60"),
        ("F=P V=60\necho $V > \"$F\"", "=P echo 60"),
        ("D=/proc/sys; for k in vm/swappiness; do echo 60 > $D/$k; done", "=P echo 60"),
        ("cd /proc/sys/vm && echo 60 > swappiness", "=P echo 60"),
        ("sh -ec 'echo 60 > P'", "=P echo 60"),
        ("su root -c \"echo 60 > P\"", "=P echo 60"),
        ("eval \"echo 60 > P\"", "=P echo 60"),
        ("cd /proc/sys; cd vm; echo 60 > ./swappiness", "=P echo 60"),
        ("cd /proc/sys/vm/..; echo 60 > vm/swappiness", "=P echo 60"),
        ("echo 60 > /proc/sys/vm/../vm/swappiness", "=P echo 60"),
        ("echo 60 > /proc//sys/vm/./swappiness", "=P echo 60"),
        ("cd /proc/sys/vm; cd /; cd -; echo 60 > swappiness", "=P echo 60"),
        ("(cd /proc/sys/vm && echo 60 > swappiness)", "=P echo 60"),
        ("echo 7 > P; echo 60 > P", "=P echo 60"),
        ("sysctl -w vm.swappiness=7; echo 60 > P", "=P echo 60"),
        ("sysctl -w vm.swappiness=7 vm.swappiness=60", "=key vm.swappiness vm.swappiness=60"),
        ("echo 60 > P; exit 0\necho 7 > P", "=P echo 60"),
        ("{ echo 60 > P; exit; }; echo 7 > P", "=P echo 60"),
        ("echo 60 > P; exec /usr/bin/true; echo 7 > P", "=P echo 60"),
        ("x=$(echo 60 > P)", "=P echo 60"),
        ("sysctl -qw vm.swappiness=60", "=key vm.swappiness vm.swappiness=60"),
        ("/usr/sbin/sysctl vm.swappiness=60", "=key vm.swappiness vm.swappiness=60"),
        ("busybox sysctl -w vm/swappiness=60", "=key vm/swappiness vm/swappiness=60"),
        ("sysctl -p", "=load /etc/sysctl.conf"),
        ("/usr/lib/systemd/systemd-sysctl /etc/my.conf", "=load /etc/my.conf"),
        ("sysctl -e -p /etc/my.conf", "=load /etc/my.conf"),
        ("sysctl -ep/etc/my.conf", "=load /etc/my.conf"),
        ("sysctl --load=/etc/my.conf", "=load /etc/my.conf"),
        ("sysctl -r '^net' -p /etc/my.conf", "?load /etc/my.conf"),
        ("for c in 0 1; do echo p > /sys/cpu$c/g; done", "=/sys/cpu0/g echo p"),
        (
            "for d in $(ls /sys/block); do echo none > /sys/block/$d/queue/scheduler; done",
            "=/sys/block/*/queue/scheduler echo none",
        ),
        ("echo never | tee /sys/t/{enabled,defrag}", "=/sys/t/enabled echo never"),
    ] {
        let found = told(&text.replace('P', P));
        let expected = expected.replace('P', P);
        let count = if text.contains("c in 0 1") || text.contains('{') && text.contains(',') { 2 } else { 1 };
        assert_eq!((&found[0], found.len()), (&expected, count), "{text}: {found:?}");
    }
}

#[test]
fn what_runs_in_the_background_may_come_last() {
    let found = told(&"(sleep 5; echo 60 > P) &\necho 7 > P\n".replace('P', P));
    assert!(found.contains(&format!("={P} echo 60")) && found.contains(&format!("={P} echo 7")), "{found:?}");
    let found = told(&"echo 60 > P\necho 7 > P\n".replace('P', P));
    assert_eq!(found, [format!("={P} echo 7")]);
}

#[test]
fn functions_write_where_they_are_called() {
    let of = |text: &str| told(&text.replace('P', P));
    assert_eq!(of("f() { echo 60 > P; }\nf"), ["?f".to_owned(), format!("={P} echo 60")]);
    assert_eq!(of("f() { echo 60 > swappiness; }\ncd /proc/sys/vm\nf")[1], format!("={P} echo 60"));
    assert_eq!(of("f() { cd /proc/sys/vm; }\nf\necho 60 > swappiness")[1], format!("={P} echo 60"));
    assert_eq!(of("f() { return 0; echo 7 > P; }\nf\necho 60 > P")[1], format!("={P} echo 60"));
    assert_eq!(of("f() { g; }; g() { echo 60 > P; }; f").last(), Some(&format!("={P} echo 60")));
    // Nobody calls it, or only a function that nobody calls.
    assert_eq!(of("f() { echo 60 > P; }"), [format!("?{P} echo 60")]);
    assert!(of("f() { g; }; g() { echo 60 > P; }").iter().all(|line| line.starts_with('?')));
    assert!(!of("f() { f; f; }; f").is_empty(), "it comes to an end");
}

/// What a text does, without what is done again, in no order.
fn set_of(text: &str) -> BTreeSet<String> {
    let files =
        [("/s", "#!/bin/sh\nf() { echo 5 > $A; g; }\nf; f\necho 6 > P"), ("/l", "h() { echo 7 > $B; }\nh")];
    followed(text, &files).into_iter().collect()
}

#[test]
fn a_call_in_another_state_does_something_else() {
    let of = |text: &str| told(&text.replace('P', P));
    for (text, expected) in [
        // In another folder, with another variable or function, and where the order counts.
        ("f() { echo 1 > x; }; cd /a; f; f; cd /b; f", vec!["=/a/x echo 1", "=/b/x echo 1"]),
        ("f() { g; }; g() { echo 1 > /a; }; f; g() { echo 1 > /b; }; f", vec!["=/a echo 1", "=/b echo 1"]),
        ("f() { echo 1 > P; }; f; echo 2 > P; f", vec!["=P echo 1"]),
        ("f() { echo 1 > /a; }; if true; then f; fi; f", vec!["=/a echo 1"; 2]),
        (
            "f() { cd /b; echo 1 > x; }; cd /a; f; echo 2 > y; cd /a; f; echo 3 > y",
            vec!["=/b/x echo 1", "=/b/y echo 2", "=/b/x echo 1", "=/b/y echo 3"],
        ),
        ("f() { trap 'echo 1 > /a' EXIT; }; f; trap - EXIT; f", vec!["=/a echo 1"]),
        ("f() { exit; }; (f); (f); echo 1 > /a", vec!["=/a echo 1"]),
        // Within itself it does not run, and behind that it does.
        (
            "f() { [ $1 ] || g; echo 1 > /a; }; g() { f; echo 2 > /b; }; f; g",
            vec!["=/b echo 2", "=/a echo 1", "=/a echo 1", "=/b echo 2"],
        ),
    ] {
        let mut found = of(text);
        found.retain(|line| line.starts_with('='));
        let expected: Vec<String> = expected.iter().map(|line| line.replace('P', P)).collect();
        assert_eq!(found, expected, "{text}");
    }
    let again = of("f() { echo 1 > /a; cat /b; }; f; f; f");
    assert_eq!(again.iter().filter(|line| line.starts_with("=/a")).count(), 1, "{again:?}");
}

/// One command of a small script.
fn command() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => prop::sample::select(&["f", "g", "h", "f &", "g | cat", "(f)", "x=$(g)", "h || f", "! g"][..]),
        1 => prop::sample::select(&["cd /a", "cd /proc/sys/vm", "cd -", "A=/q", "B=$A/r", "return", "exit"][..]),
        2 => prop::sample::select(&["echo 1 > $A", "echo 2 > swappiness", "echo 3 > P", "tee $B", "x $1"][..]),
        1 => prop::sample::select(&["/s", ". /l", "eval f", "sysctl -w a.b=1", "trap f EXIT", "sudo -u x /s"][..]),
        1 => prop::sample::select(&["if f; then g; else h; fi", "for A in /m /n; do f; done", "k() { f; }; k"][..]),
    ]
    .prop_map(str::to_owned)
}

proptest! {
    /// A state that is never the same again has each call made.
    #[test]
    fn a_call_that_is_passed_by_would_do_nothing_new(
        bodies in prop::collection::vec(prop::collection::vec(command(), 1..4), 3),
        main in prop::collection::vec(command(), 1..8),
    ) {
        let script = |apart: &str| {
            let lines = |lines: &[String]| lines.iter().map(|line| format!("{apart}{line}\n")).collect::<String>();
            let functions = ["f", "g", "h"].iter().zip(&bodies);
            let functions = functions.map(|(name, body)| format!("{name}() {{\n{}}}\n", lines(body)));
            functions.collect::<String>() + &lines(&main)
        };
        // It sets a variable that nobody asks for.
        let apart = set_of(&script("eval U=1; "));
        let apart: BTreeSet<String> = apart.into_iter().filter(|line| !line.contains("U=1")).collect();
        prop_assert_eq!(set_of(&script("")), apart);
    }
}

#[test]
fn what_no_shell_comes_by_is_not_told_and_a_subshell_keeps_its_folder() {
    let of = |text: &str| told(&text.replace('P', P));
    assert_eq!(of("exit 0\necho 60 > P"), [""; 0]);
    for text in [
        "(cd /proc/sys/vm; true)\necho 60 > swappiness",
        "f() { cd /proc/sys/vm; }\necho 60 > swappiness",
        "cd /proc/sys/vm | true\necho 60 > swappiness",
        "sh -c 'cd /proc/sys/vm'; echo 60 > swappiness",
        "x=$(cd /proc/sys/vm); echo 60 > swappiness",
    ] {
        assert_eq!(of(text), ["=swappiness echo 60"], "{text}");
    }
    // A condition, or what runs beside, decides which of two counts.
    for text in [
        "if true; then echo 7 > P; else echo 60 > P; fi",
        "echo 7 > P; [ -e /x ] && echo 60 > P",
        "echo 7 > P; (sleep 9; echo 60 > P) &",
        "[ -e /x ] || exit 0; echo 7 > P; for i in 1; do echo 60 > P; done",
    ] {
        assert_eq!(of(text), [format!("={P} echo 7"), format!("={P} echo 60")], "{text}");
    }
}

#[test]
fn branches_begin_in_one_folder_and_a_trap_is_the_last_word() {
    let of = |text: &str| told(&text.replace('P', P));
    for text in [
        "if true; then cd /proc/sys/vm; else cd /tmp; fi; echo 60 > swappiness",
        "if [ -e /x ]; then cd /tmp; else cd /proc/sys/vm; fi; echo 60 > swappiness",
        "case $1 in a) cd /proc/sys/vm;; *) :;; esac; echo 60 > swappiness",
        "if cd /proc/sys/vm; then echo 60 > swappiness; fi",
        "if [ -d /proc/sys/vm ] && cd /proc/sys/vm; then echo 60 > swappiness; fi",
        "while cd /proc/sys/vm; do echo 60 > swappiness; break; done",
        "trap -- 'echo 60 > P' EXIT",
        "if a; then trap 'echo 60 > P' EXIT; else trap 'echo 1 > /run/x' EXIT; fi",
    ] {
        assert!(of(text).contains(&format!("={P} echo 60")), "{text}: {:?}", of(text));
    }
    let both = of("trap 'echo 60 > P' EXIT; echo 7 > P; exit 0");
    assert_eq!(both, [format!("={P} echo 7"), format!("={P} echo 60")]);
    assert_eq!(of("trap 'echo 60 > P' EXIT; trap - EXIT; echo 7 > P"), [format!("={P} echo 7")]);
    let left = of("cd /proc/sys/vm; if false; then cd /tmp; else cd /var; fi; echo 60 > swappiness");
    assert!(!left.contains(&format!("={P} echo 60")), "{left:?}");
    // Names that a program is given are no places that it writes to.
    assert!(!of("cat P >> /var/log/x; ls /tmp | xargs rm -f").iter().any(|line| line.contains("cat P")));
    // A pattern is of the folder that it is looked for in.
    let found = of("cd /sys/block; for d in *; do echo none > $d/queue/scheduler; done");
    assert!(found.contains(&"=/sys/block/*/queue/scheduler echo none".to_owned()), "{found:?}");
    // What is only looked for is nothing that is written.
    assert_eq!(of("find /proc/sys/vm -name swappiness; echo 1 > /run/x"), ["=/run/x echo 1"]);
}

/// What fails goes nowhere: what stands behind it is done in the folder before, or in the one that it was to go to.
#[test]
fn behind_a_condition_that_failed_is_the_folder_before_it() {
    let of = |text: &str| told(&text.replace('P', P));
    for text in [
        "cd /proc/sys/vm; if ! cd /opt/x; then echo 60 > swappiness; fi",
        "cd /proc/sys/vm; if cd /opt/x; then :; else echo 60 > swappiness; fi",
        "cd /proc/sys/vm; if cd /opt/x; then :; elif true; then echo 60 > swappiness; fi",
        "cd /proc/sys/vm; if [ -e /x ] || cd /opt/x; then echo 60 > swappiness; fi",
        "cd /proc/sys/vm; cd /opt/x || echo 60 > swappiness",
        "cd /proc/sys/vm; ! cd /opt/x && echo 60 > swappiness",
        "if ! cd /proc/sys/vm; then exit 1; fi; echo 60 > swappiness",
        "cd /proc/sys/vm || exit 1; echo 60 > swappiness",
    ] {
        assert!(of(text).contains(&format!("={P} echo 60")), "{text}: {:?}", of(text));
    }
    for text in [
        "cd /proc/sys/vm; if cd /opt/x; then echo 60 > swappiness; fi",
        "cd /proc/sys/vm; cd /opt/x && echo 60 > swappiness",
        "cd /proc/sys/vm; cd /opt/x || exit 1; echo 60 > swappiness",
    ] {
        assert_eq!(of(text), ["=/opt/x/swappiness echo 60"], "{text}");
    }
}

/// Each shell has one text for its end: another takes its place, unless a condition decides.
#[test]
fn a_trap_takes_the_place_of_the_one_before() {
    let of = |text: &str| told(&text.replace('P', P));
    let first = "trap 'echo 60 > P' EXIT; ";
    for second in
        ["trap 'rm -f /tmp/x' EXIT", "trap '' EXIT", "trap 0", "trap EXIT", "trap - EXIT HUP", "trap 0 2"]
    {
        let found = of(&format!("{first}{second}"));
        assert!(!found.iter().any(|line| line.contains(P)), "{second}: {found:?}");
    }
    for second in ["[ -e /x ] && trap '' EXIT", "(trap '' EXIT)", "x=$(trap 0)", "trap ':' HUP", "trap - HUP"]
    {
        assert!(of(&format!("{first}{second}")).contains(&format!("={P} echo 60")), "{second}");
    }
    assert_eq!(of("(trap 'echo 60 > P' EXIT; exit)"), [format!("={P} echo 60")]);
}

/// What a text does with other files beside it, each with the line that says so.
fn followed(text: &str, files: &[(&str, &str)]) -> Vec<String> {
    let ask = |path: &str, must_run: bool| {
        let found = files.iter().find(|(known, _)| *known == path);
        found.filter(|(path, _)| !must_run || !path.ends_with(".txt")).map(|(_, text)| text.replace('P', P))
    };
    let told = |effect: Effect| {
        let what = match effect.what {
            What::File(path) => format!("{path} {}", effect.says),
            What::Key(key) => format!("key {key} {}", effect.says),
            What::Named(text) => text,
            other => format!("{other:?}"),
        };
        format!("{}{what} @{}", if effect.is_sure { "=" } else { "?" }, effect.from)
    };
    effects(text, Some(&ask)).into_iter().map(told).collect()
}

#[test]
fn what_a_script_does_that_is_started_or_read_is_done() {
    let tune = "/usr/local/sbin/tune.sh";
    let script = "#!/bin/sh\n# A comment.\nset -e\necho 60 > P\n";
    for text in [
        tune,
        "tune.sh",
        "nohup nice -n 5 /usr/local/sbin/tune.sh &",
        "exec /usr/local/sbin/tune.sh -v",
        "sh /usr/local/sbin/tune.sh",
        "/bin/bash -e -o pipefail /usr/local/sbin/tune.sh a",
        ". /usr/local/sbin/tune.sh",
        "source tune.sh",
        "cd /usr/local; ./sbin/tune.sh",
        "D=/usr/local/sbin; [ -x $D/tune.sh ] && $D/tune.sh",
        "su root -c tune.sh",
        "x=$(tune.sh)",
    ] {
        let found = followed(text, &[(tune, script)]);
        assert_eq!(found.last(), Some(&format!("={P} echo 60 @{tune}:4")), "{text}: {found:?}");
    }
    // One of another language may do anything with what it names, and a line says what.
    let found = followed(tune, &[(tune, "#!/usr/bin/perl\n# P\n\nopen(F, '>P');\n")]);
    assert_eq!(found[1..], [format!("?open(F, '>{P}'); @{tune}:4")]);
    // What may not be run is not, and a shell reads it all the same.
    let file = [("/opt/tune.txt", script)];
    assert_eq!(followed("/opt/tune.txt", &file), ["?/opt/tune.txt @"]);
    assert_eq!(followed("sh /opt/tune.txt", &file)[1], format!("={P} echo 60 @/opt/tune.txt:4"));
}

#[test]
fn a_script_that_is_started_is_a_shell_of_its_own_and_one_that_is_read_is_not() {
    let of = |text: &str, script: &str| {
        let found = followed(text, &[("/s", script)]);
        found.into_iter().filter(|line| line.contains(P)).collect::<Vec<_>>()
    };
    let none: [&str; 0] = [];
    // Its folder, its variables, its functions and its end.
    assert_eq!(of("/s; echo 60 > swappiness", "#!/bin/sh\ncd /proc/sys/vm"), none);
    assert_eq!(of(". /s; echo 60 > swappiness", "cd /proc/sys/vm"), [format!("={P} echo 60 @")]);
    assert_eq!(of("cd /proc/sys/vm; /s", "#!/bin/sh\necho 60 > swappiness"), [format!("={P} echo 60 @/s:2")]);
    assert_eq!(of("export V=60; /s", "#!/bin/sh\necho $V > P"), [format!("={P} echo 60 @/s:2")]);
    assert_eq!(of("V=7; /s; V=7", "#!/bin/sh\nV=60\necho $V > P"), [format!("={P} echo 60 @/s:3")]);
    assert_eq!(of(". /s; echo $V > /proc/sys/vm/swappiness", "V=60"), [format!("={P} echo 60 @")]);
    assert_eq!(
        of("/s; echo 7 > /proc/sys/vm/swappiness", "#!/bin/sh\necho 60 > P"),
        [format!("={P} echo 7 @")]
    );
    assert_eq!(
        of("echo 7 > /proc/sys/vm/swappiness; /s", "#!/bin/sh\necho 60 > P"),
        [format!("={P} echo 60 @/s:2")]
    );
    assert_eq!(of("/s", "#!/bin/sh\nexit 0\necho 60 > P"), none);
    assert_eq!(of(". /s", "return 0\necho 60 > P"), none);
    assert_eq!(of("/s; rm /x", "#!/bin/sh\ntrap 'echo 60 > P' EXIT\n"), [format!("={P} echo 60 @/s:2")]);
    // Of a library what is called counts, at its own line.
    let library = "\nf() {\n  echo 60 > P\n}\n";
    assert_eq!(of(". /s", library), none);
    assert_eq!(of(". /s; f", library), [format!("={P} echo 60 @/s:3")]);
    assert_eq!(
        of("/s", &format!("#!/bin/sh{library}")),
        [format!("?{P} echo 60 @/s:3")],
        "who calls $1, calls any"
    );
    assert_eq!(of(". /s; cat /proc/sys/vm/swappiness; f x", "f() { echo 1 >> $1; }\n"), none);
}

#[test]
fn scripts_that_start_each_other_come_to_an_end() {
    let ring = [("/a", "#!/bin/sh\n/b\n. /a\n"), ("/b", "#!/bin/sh\nsh /a\n/b\necho 60 > P\n")];
    let found = followed("/a", &ring);
    assert!(found.contains(&format!("={P} echo 60 @/b:4")), "{found:?}");
    let twice: Vec<(String, String)> =
        (0..30).map(|at| (format!("/s{at}"), format!("#!/bin/sh\n/s{n}\n/s{n}\n", n = at + 1))).collect();
    let twice: Vec<(&str, &str)> = twice.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    assert!(!followed("/s0", &twice).is_empty());
}

/// What a line does with a script that sets one key: whether that is sure, each time.
fn is_sure(text: &str) -> Vec<bool> {
    let ask =
        |path: &str, _: bool| (path == "/usr/sbin/tune").then(|| "#!/bin/sh\nsysctl -w a.b=1\n".to_owned());
    let effects = effects(text, Some(&ask));
    let keys = effects.iter().filter(|effect| matches!(effect.what, What::Key(_)));
    keys.map(|effect| effect.is_sure).collect()
}

#[test]
fn what_another_user_or_host_runs_may_write_at_most() {
    for text in [
        "sudo -u postgres tune",
        "sudo -n --user=postgres nice tune",
        "nice sudo -upostgres /usr/sbin/tune",
        "su postgres -c tune",
        "su - postgres -s /bin/sh -c 'sysctl -w a.b=1'",
        "su -c tune postgres",
        "runuser -u postgres -c tune",
        "start-stop-daemon --start --chuid www-data:www-data --exec /usr/sbin/tune",
        "systemd-run --uid=nobody tune",
        "systemd-run -p User=nobody tune",
        "systemd-run -M web tune",
        "systemd-run --machine=web tune",
        "systemd-run -Hother tune",
        "systemd-run --host other tune",
        "systemd-run -p ReadOnlyPaths=/proc/sys tune",
        "systemd-run --property RootDirectory=/srv/jail tune",
        "systemd-run --user tune",
        "sudo -Hu postgres tune",
        "sudo -nu '#1000' tune",
        "unshare -rn tune",
        // An option that nobody here knows may take a word, or none.
        "sudo --new tune",
        "sudo --new 5 tune",
        "chrt -Z 5 tune",
        "setpriv --bounding-set -all --reuid=nobody tune",
        "nice --new=5 flock /run/lock tune",
        "start-stop-daemon --start --new --exec /usr/sbin/tune",
        "nsenter -t 1 -m -n tune",
        "nsenter --target=1 --all tune",
        // A program that nobody here knows may start what it is given.
        "pkexec /usr/sbin/tune",
        "/opt/begin --now /usr/sbin/tune",
    ] {
        assert_eq!(is_sure(text), [false], "{text}");
    }
}

#[test]
fn what_is_run_by_another_program_is_written() {
    for text in [
        "sudo tune",
        "sudo -u root A=b tune",
        "su -c tune",
        "su - root -c tune",
        "flock -n /run/lock tune",
        "flock -w 5 /run/lock -c tune",
        "( flock 9; tune ) 9> /run/lock",
        "start-stop-daemon --start --quiet --pidfile /run/x --exec /usr/sbin/tune -- --all",
        "start-stop-daemon -S -x /bin/false -a /bin/sh -- -c tune",
        "systemd-run --unit tune --on-boot=5 -p Nice=5 tune",
        "unshare -m --propagation private tune",
        "unshare --mount tune",
        "bash -e -o pipefail /usr/sbin/tune",
        "unshare -n tune",
        "systemd-run -p User=root -p MemoryMax=1G --collect tune",
        "sh /usr/sbin/tune -c x",
        "bash -O nullglob /usr/sbin/tune",
        "bash --rcfile /dev/null /usr/sbin/tune",
        "sh - /usr/sbin/tune",
        "sh < /usr/sbin/tune",
        "sh -s a b < /usr/sbin/tune",
        "bash <<E\ntune\nE",
        "f() {\nbash <<E\ntune\nE\n}\nf",
        "bash <<< tune",
        "start-stop-daemon -Sbx /usr/sbin/tune",
        "start-stop-daemon -S -x/usr/sbin/tune -d /tmp",
        "runuser -u root -- tune --all",
        "su root /usr/sbin/tune",
        "env - PATH=/bin tune",
        "nice --5 tune",
        "nice -15 tune",
        "prlimit --nofile=65536 --memlock=unlimited tune",
        "systemd-inhibit --why 'settings' --mode=block tune",
        "env -C /usr/sbin ./tune",
        "sudo -p '' tune",
        "sudo -nE -- tune",
        "timeout --kill-after 5 10 tune",
        "taskset ff tune",
        "numactl -N 0 --membind 0 tune",
        "xargs -n1 tune < /x",
    ] {
        assert_eq!(is_sure(text), [true], "{text}");
    }
}

#[test]
fn what_is_looked_up_or_tested_writes_nothing() {
    for text in [
        "sh -n /usr/sbin/tune",
        "bash -vn /usr/sbin/tune",
        "bash -o noexec /usr/sbin/tune",
        "sh -n -c 'sysctl -w a.b=1'",
        "command -v tune",
        "if ! command -V tune; then exit; fi",
        "sudo -l tune",
        "sudo -nl tune",
        "start-stop-daemon --start --test --exec /usr/sbin/tune",
        "start-stop-daemon -S -t -x /usr/sbin/tune",
        "start-stop-daemon -Stx /usr/sbin/tune",
        "chrt -p 5 tune",
        "prlimit --pid 5 --nofile=4096",
        "systemd-inhibit --list /usr/sbin/tune",
        // Other files are there.
        "unshare -R /srv/jail tune",
        "unshare --root=/srv/jail tune",
        "start-stop-daemon --start --chroot /srv/jail --exec /usr/sbin/tune",
        "sudo --chroot=/srv/jail tune",
        "start-stop-daemon --stop --exec /usr/sbin/tune",
    ] {
        assert_eq!(is_sure(text), [false; 0], "{text}");
    }
}

#[test]
fn what_nobody_can_tell_may_be_written() {
    for (text, expected) in [
        ("/opt/tune P 60", "?/opt/tune P 60"),
        ("set_it() { echo $2 > $1; }; set_it P 60", "?set_it P 60"),
        ("xargs sysctl -w < /x; cat P", "?xargs sysctl -w "),
        ("while read -r f; do echo 1 > \"$f\"; done; test -e P", "?test -e P"),
        ("F=P; [ -e /x ] && F=/dev/null; echo 60 > $F", "?P echo 60"),
        ("trap 'echo 60 > P' HUP", "?P echo 60"),
        ("find /proc/sys -name swappiness | while read f; do echo 60 > $f; done", "?/proc/sys/**/swappiness"),
        ("find /proc/sys -name swappiness | xargs -I{} sh -c 'echo 60 > {}'", "?/proc/sys/**/swappiness"),
        ("for f in $(find /proc/sys -name swappiness); do echo 60 > $f; done", "?/proc/sys/**/swappiness"),
        ("cat > /run/x.conf <<END\nvm.swappiness = 60\nEND", "?vm.swappiness = 60"),
        ("echo vm.swappiness=60 > /run/x.conf; sysctl -p /run/x.conf", "?echo vm.swappiness=60"),
        ("if true\necho 60 > P", "?echo 60 > P"),
        ("#!/usr/bin/python3\nopen('P', 'w').write('60')", "?open('P', 'w').write('60')"),
        ("awk 'BEGIN { print 60 > \"P\" }'", "?awk BEGIN { print 60 > \"P\" }"),
        ("sed -i s/1/2/ P", "?sed -i s/1/2/ P"),
        ("exec 3> P", "?P "),
        (
            "find /proc/sys/vm -name swappiness -exec sh -c \"echo 60 > {}\" \\;",
            "?/proc/sys/vm/**/swappiness",
        ),
        ("cd /proc; find sys -type f -execdir /opt/tune {} +", "?/proc/sys/**/*"),
        ("echo 1 > /sys/class/net/eth0/../lo/mtu", "?/sys/class/net/lo/mtu echo 1"),
    ] {
        let found = told(&text.replace('P', P));
        assert!(found.contains(&expected.replace('P', P)), "{text}: {found:?}");
        let is_sure = |line: &&String| line.starts_with(&format!("={P}"));
        assert!(!found.iter().any(|line| is_sure(&line)), "{text}: {found:?}");
    }
}

/// Words that a command tells, and what a variable is where nobody sets it.
#[test]
fn words_of_ls_and_echo_and_defaults_of_variables_are_followed() {
    for text in [
        "for c in $(ls -d G[0-9]*); do echo powersave > $c/cpufreq/g; done",
        "for c in `ls -1d G[0-9]* 2>/dev/null | grep -v x | sort`; do echo powersave > $c/cpufreq/g; done",
        "for c in $(echo G[0-9]*); do echo powersave > $c/cpufreq/g; done",
        "for f in $(ls G[0-9]*/cpufreq/g); do echo powersave > $f; done",
        "for f in $(printf '%s\\n' G[0-9]*/cpufreq/g); do echo powersave > $f; done",
        "ls -d G[0-9]*/cpufreq | xargs -n1 -I% sh -c \"echo powersave > %/g\"",
        "ls -d G[0-9]* | grep -v 0 | xargs -I {} sh -c \"echo powersave > {}/cpufreq/g\"",
        "D=${D:-G[0-9]*}; echo powersave > $D/cpufreq/g",
        "echo powersave > ${D:-G[0-9]*}/cpufreq/g",
        ": ${D:=\"G[0-9]*\"}; echo powersave > $D/cpufreq/g",
        "D=${A-${B:-G[0-9]*}}; echo powersave > $D/cpufreq/g",
    ] {
        let found = told(&text.replace('G', "/sys/cpu"));
        assert!(found.contains(&"=/sys/cpu[0-9]*/cpufreq/g echo powersave".to_owned()), "{text}: {found:?}");
    }
    // It is one of two, or of anything.
    let found = told("[ -e /x ] && D=/proc/sys; echo 60 > ${D:-/sys}/a");
    assert!(found.contains(&"?/proc/sys/a echo 60".to_owned()), "{found:?}");
    assert!(found.contains(&"?/sys/a echo 60".to_owned()), "{found:?}");
    let found = told("for k in $(echo \"vm.a vm.b\"); do sysctl -w $k=1; done");
    assert!(found.iter().any(|line| line.contains("key vm.b ")), "{found:?}");
    // Names in a folder, what a program changes of a line, and what a caller gives.
    for text in ["$(ls /a)", "$(echo /a/b | cut -c1)", "$(printf '/a/%s' b)", "$(grep -o x /a)", "${1:-/a}"] {
        let found = told(&format!("for f in {text}; do echo 1 > /run/$f/x; done"));
        assert!(found.contains(&"=/run/*/x echo 1".to_owned()), "{text}: {found:?}");
    }
}

/// A place of which only the end is told is one below a folder that the text names: it may be.
#[test]
fn what_cannot_be_followed_may_be_below_a_folder_that_is_named() {
    for text in [
        "for c in $(own-list F); do echo x > $c/cpufreq/g; done",
        "ls -d F/* | while read -r c; do echo x > $c/cpufreq/g; done",
        "D=$(own F); echo x > $D/cpufreq/g",
        "D=${1:-F}; echo x > $D/cpufreq/g",
        "find F -name 'cpu?' -exec sh -c 'echo x > \"{}\"/cpufreq/g' \\;",
        "find F -name 'cpu?' | xargs -I% sh -c 'echo x > %/cpufreq/g'",
        "cat F/$x; D=$(own); echo x > $D/cpufreq/g",
    ] {
        let found = told(&text.replace('F', "/sys/devices/system/cpu"));
        let expected = |line: &String| {
            line.strip_prefix("?/sys/devices/system/cpu").is_some_and(|line| line.ends_with("/**/cpufreq/g"))
        };
        assert!(found.iter().any(expected), "{text}: {found:?}");
        assert!(!found.iter().any(|line| line.starts_with("=/sys")), "{text}: {found:?}");
    }
    let found = told("find /dev -name 'sd?' -exec blockdev --setra 256 {} \\;");
    assert!(found.contains(&"?/sys/dev/block/*/queue/read_ahead_kb echo 128".to_owned()), "{found:?}");
    let found =
        told("declare -A S=([vm.swappiness]=60); for k in \"${!S[@]}\"; do sysctl -w $k=${S[$k]}; done");
    assert!(found.iter().any(|line| line.starts_with('?') && line.contains("vm.swappiness")), "{found:?}");
    // Without a folder there is nothing to tell.
    let found = told("D=$(own); echo x > $D/cpufreq/g");
    assert!(!found.iter().any(|line| line.contains("**")), "{found:?}");
}

#[test]
fn variables_that_are_made_of_each_other_come_to_an_end() {
    let text: String = (1..40).fold("v0=$v39\n".to_owned(), |text, number| {
        text + &format!("v{number}={}\n", format!("$v{}", number - 1).repeat(30))
    });
    assert!(!told(&format!("{text}echo 1 > $v39")).is_empty());
}

proptest! {
    #[test]
    fn odd_text_is_passed_over(text in "[\\PC\n '\"$(){};|&<>=]{0,200}") {
        let _ = effects(&text, None);
    }
}

/// Another network has settings of its own by the same names, and all others are those of the machine.
#[test]
fn what_is_run_in_another_network_sets_what_no_network_has() {
    for (text, expected) in [
        ("ip netns exec blue sysctl -w vm.swappiness=60", "=key vm.swappiness vm.swappiness=60"),
        ("/sbin/ip -all netns exec sysctl -w vm.swappiness=60", "=key vm.swappiness vm.swappiness=60"),
        ("ip netns exec blue sh -c 'echo 60 > P'", "=P echo 60"),
        ("ip netns exec blue sysctl -w net.core.somaxconn=9", "?key net.core.somaxconn net.core.somaxconn=9"),
        ("ip netns exec blue sh -c 'echo 9 > /sys/class/net/e/mtu'", "?/sys/class/net/e/mtu echo 9"),
        ("ip netns exec blue sh -c 'echo 9 > /sys/fs/cgroup/x'", "?/sys/fs/cgroup/x echo 9"),
        ("ip netns exec blue sysctl -p /x", "?load /x"),
        ("ip vrf exec blue sysctl -w net.core.somaxconn=9", "=key net.core.somaxconn net.core.somaxconn=9"),
        ("ip netns exec blue sudo -u ann sysctl -w vm.swappiness=60", "?key vm.swappiness vm.swappiness=60"),
    ] {
        assert_eq!(told(&text.replace('P', P)), [expected.replace('P', P)], "{text}");
    }
    assert_eq!(told("ip netns exec blue\nip netns add red"), ["?ip netns add red"]);
    let script = Lying(&[("/opt/x", "#!/bin/sh\nsysctl -w net.core.somaxconn=9 vm.swappiness=60\n")]);
    let found = told_of("ip netns exec blue /opt/x", Some(&script));
    assert!(found.contains(&"?key net.core.somaxconn net.core.somaxconn=9".to_owned()), "{found:?}");
    assert!(found.contains(&"=key vm.swappiness vm.swappiness=60".to_owned()), "{found:?}");
}

/// Nobody here knows what is mounted there.
#[test]
fn what_is_run_below_a_root_of_its_own_may_set_something() {
    let files = Lying(&[
        ("/opt/x", "#!/bin/sh\nsysctl -w a.b=1\n"),
        ("/srv/jail/opt/x", "#!/bin/sh\nsysctl -w a.b=2; sysctl -p /etc/x\n"),
    ]);
    let may = ["?key a.b a.b=2", "?load /srv/jail/etc/x"].map(str::to_owned);
    for text in [
        "chroot /srv/jail /opt/x",
        "chroot --userspec=root:root /srv/jail /bin/sh /opt/x",
        "cd /srv; chroot jail sh -c 'cd opt; ./x'",
        "chroot /srv chroot jail /opt/x",
    ] {
        let found = told_of(text, Some(&files));
        assert!(may.iter().all(|line| found.contains(line)), "{text}: {found:?}");
        assert!(!found.iter().any(|line| line.starts_with('=')), "{text}: {found:?}");
    }
    assert!(told_of("chroot / /opt/x", Some(&files)).contains(&"=key a.b a.b=1".to_owned()));
    let behind = told_of("cd /opt; chroot /srv/jail true; ./x", Some(&files));
    assert!(behind.contains(&"=key a.b a.b=1".to_owned()), "it comes back: {behind:?}");
    assert_eq!(told("chroot /srv/jail"), [""; 0]);
}

#[test]
fn the_files_of_a_folder_are_run_one_after_another() {
    let files = Lying(&[
        ("/etc/own.d/10-a", "#!/bin/sh\nsysctl -w a.b=1 c.d=1\n"),
        ("/etc/own.d/20-b", "#!/bin/sh\nsysctl -w a.b=2\n"),
        ("/etc/own.d/30.sh", "#!/bin/sh\nsysctl -w e.f=3\n"),
        ("/etc/own.d/40-c", "sysctl -w g.h=4\n"),
        ("/etc/own.d/50-d", "#!/usr/bin/perl\nsystem('sysctl -w i.j=5')\n"),
    ]);
    let keys = |text: &str| -> Vec<String> {
        let keys = told_of(text, Some(&files)).into_iter().filter(|line| line[1..].starts_with("key "));
        keys.map(|line| line.replace("key ", "")).collect()
    };
    let told = ["=c.d c.d=1", "=a.b a.b=2", "?e.f e.f=3", "?g.h g.h=4"];
    assert_eq!(keys("run-parts /etc/own.d"), told);
    assert_eq!(keys("cd /etc; run-parts --report -a start own.d"), told);
    let all_may = |text: &str| keys(text).len() == 5 && keys(text).iter().all(|key| key.starts_with('?'));
    assert!(all_may("run-parts --regex '^1' /etc/own.d") && all_may("sudo -u ann run-parts /etc/own.d"));
    for text in ["run-parts --test /etc/own.d", "run-parts --list /etc/own.d", "run-parts", "run-parts $X"] {
        assert_eq!(keys(text), [""; 0], "{text}");
    }
}

#[test]
fn a_profile_of_tuned_may_be_made_active() {
    for (text, expected) in [
        ("tuned-adm profile throughput-performance", "?profile throughput-performance"),
        ("/usr/sbin/tuned-adm --async -t 5 profile a b", "?profile a b"),
    ] {
        assert_eq!(told(text), [expected], "{text}");
    }
    for text in ["tuned-adm profile", "tuned-adm active", "tuned-adm -l error list", "tuned-adm off"] {
        assert_eq!(told(text), [""; 0], "{text}");
    }
}

/// What is told to run nothing does so by its first line, too; a shell that is given the file does not read that.
#[test]
fn a_script_that_runs_nothing_sets_nothing() {
    let of = |text: &str, first: &str| {
        let ask = |path: &str, _: bool| (path == "/x").then(|| format!("{first}\nsysctl -w a.b=1\n"));
        effects(text, Some(&ask)).iter().any(|effect| effect.is_sure)
    };
    for first in ["#!/bin/sh -n", "#!/bin/bash -en", "#!/usr/bin/env -S bash -n"] {
        assert!(!of("/x", first) && of("sh /x", first) && of(". /x", first), "{first}");
    }
    assert!(of("/x", "#!/bin/sh -e") && of("/x", "#!/usr/bin/env -S bash -e"));
}

/// Gives one script, and remembers where following ended.
#[derive(Default)]
struct Bounded {
    script: String,
    left: std::cell::RefCell<Vec<String>>,
    /// Words that may be looked at; none for as many as there are.
    most: Option<usize>,
    work: std::cell::Cell<usize>,
}

impl Files for Bounded {
    fn text(&self, path: &str, _: bool) -> Option<String> {
        (path == "/x").then(|| self.script.clone())
    }

    fn names(&self, _: &str) -> Vec<String> {
        Vec::new()
    }

    fn may_go_on(&self, _: &str, work: usize) -> bool {
        self.work.set(self.work.get() + work);
        self.most.is_none_or(|most| self.work.get() <= most)
    }

    fn left_out(&self, file: &str) {
        self.left.borrow_mut().push(file.to_owned());
    }
}

#[test]
fn what_passes_a_bound_is_told() {
    let sets = "sysctl -w a.b=1";
    let list = |count: usize| {
        let keys: String = (0..count).map(|at| format!("x.y{at}=1 ")).collect();
        format!("for kv in {keys}vm.swappiness=60; do sysctl -w $kv; done")
    };
    // Each in a folder of its own, or it would be the call before.
    let calls = |count: usize| {
        let calls: String = (0..count).map(|at| format!("cd /{at}\nlog a\n")).collect();
        format!("log() {{ logger $1; }}\n{calls}{sets}\n/x")
    };
    for (text, is_told, expected) in [
        (list(70), false, "=key vm.swappiness vm.swappiness=60"),
        (list(300), true, "?vm.swappiness=60"),
        (calls(210), false, "=key c.d c.d=1"),
        (calls(2100), true, "=key a.b a.b=1"),
        (format!("{sets}; sh -c '{}'", "eval ".repeat(9) + "true"), true, "=key a.b a.b=1"),
    ] {
        let files = Bounded { script: "#!/bin/sh\nsysctl -w c.d=1\n".to_owned(), ..Bounded::default() };
        let found = told_of(&text, Some(&files));
        assert!(found.contains(&expected.to_owned()), "{expected}: {:?}", found.last());
        assert_eq!(!files.left.borrow().is_empty(), is_told, "{:.40}", text);
    }
}

/// Each word is looked at once, whatever it starts; and where no more may be looked at, no more is.
#[test]
fn the_work_grows_with_the_words_and_has_an_end() {
    let work = |text: &str, most: Option<usize>| {
        let files = Bounded { script: format!("#!/bin/sh\n{text}\n"), most, ..Bounded::default() };
        told_of("/x", Some(&files));
        files.work.get()
    };
    let parts = [
        "start-stop-daemon -S -x start-stop-daemon -- ",
        "-S -x start-stop-daemon -- ",
        "-S -x start-stop-daemon a ",
        "sudo ",
        "xargs ",
        "chroot /a ",
        "sudo --new ",
    ];
    for part in parts {
        let first = if part.starts_with('-') { "start-stop-daemon " } else { "" };
        let begin = std::time::Instant::now();
        let once = work(&(format!("{first}{}x", part.repeat(1000))), None);
        let many = work(&(format!("{first}{}x", part.repeat(4000))), None);
        assert!(many <= 5 * once, "{part}: {once} and {many}");
        assert!(begin.elapsed().as_secs() < 20, "{part}");
    }
    let loop_of = |words: &str| work(&format!("for i in {words}; do echo 1 > /x$i; done"), None);
    let (one, many) = (loop_of("1"), loop_of("1 2 3 4 5 6 7 8 9"));
    assert!(many >= one + 16, "what is written counts as well: {one} and {many}");
    assert!(work(&"true a b c\n".repeat(10_000), Some(500)) < 1000 + 120_000 / 64);
}

/// Lists that are made of each other, as `hdparm-functions` of Debian has them: a plan took 4 ms for one of them.
#[test]
fn lists_that_grow_by_themselves_are_put_in_a_few_times() {
    let text = "options=/proc/sys/vm/swappiness\n\
                for one in $options; do new=\"$new $one\"; done\n\
                options=\"$new $more $options\"; more=\"$options $new $more\"\n\
                for one in $options $more $new; do echo 1 > $one; done\n\
                all=/proc/sys/vm/stat_interval; all=\"$all /proc/sys/vm/laptop_mode\"\n\
                for each in $all; do echo 2 > $each; done";
    let mut finder = Finder::default();
    finder.text(text);
    let looks = finder.looks.get();
    assert!(looks < 1000, "{looks} looks");
    let effects = finder.finish();
    for path in ["swappiness", "stat_interval", "laptop_mode"] {
        let is_told = |effect: &Effect| match &effect.what {
            What::File(at) | What::Named(at) => at.contains(path),
            _ => false,
        };
        assert!(effects.iter().any(is_told), "{path}: {effects:?}");
    }
}
