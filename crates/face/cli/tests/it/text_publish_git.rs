//! `planish text publish --branch`: a commit of its own files, beside whatever the user is doing in the repository; and
//! what a kill leaves of it.

#![expect(clippy::disallowed_methods, reason = "files of these tests")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::planish::{Run, command, copy_program};
use crate::recorded;

const HOT: &str = "main;parse;scan 9000\nmain;parse 900\nmain;print 200\n";
const WARM: &str = "main;parse;scan 8000\nmain;parse 900\nmain;print 700\nmain;log 500\n";

fn on(home: &Path, line: &str) -> Run {
    command(home, line.split(' ')).output().expect("the binary starts").into()
}

fn published(home: &Path, line: &str) {
    let run = on(home, &format!("text publish {line}"));
    assert_eq!(run.exit, 0, "{line}: {}", run.stderr);
}

fn git(home: &Path, line: &str) -> String {
    let mut command = Command::new("git");
    command
        .args(line.split(' '))
        .current_dir(home)
        .env_clear()
        .env("HOME", home)
        .env("PATH", "/usr/bin:/bin");
    let output = command.stdin(Stdio::null()).output().expect("git is everywhere where this is built");
    assert!(output.status.success(), "git {line}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text").trim_end().to_owned()
}

/// A repository on `main` with one commit, in which somebody is at work: a change that is staged, one that is not, and
/// a file that is not added. Profiles and the store lie outside of it.
fn repository() -> tempfile::TempDir {
    let home = tempfile::tempdir().expect("a temporary folder");
    let at = |name: &str| home.path().join(name);
    fs::create_dir(at("store")).expect("room for a folder");
    for (name, stacks) in [("hot", HOT), ("warm", WARM)] {
        fs::write(at(name), stacks).expect("room for a file");
        assert_eq!(on(home.path(), &format!("text import {name} -o {name}.planish")).exit, 0);
    }
    let identity = "[user]\nname = Tester\nemail = tester@localhost\n[init]\ndefaultBranch = main\n";
    fs::write(at(".gitconfig"), identity).expect("room for a file");
    fs::create_dir_all(at("repo/server")).expect("room for a folder");
    git(home.path(), "init --quiet repo");
    for name in ["staged", "changed"] {
        fs::write(at("repo").join(name), "one\n").expect("room for a file");
    }
    git_in(home.path(), "add staged changed");
    git_in(home.path(), "commit --quiet -m begin");
    for name in ["staged", "changed", "new"] {
        fs::write(at("repo").join(name), "two\n").expect("room for a file");
    }
    git_in(home.path(), "add staged");
    home
}

fn git_in(home: &Path, line: &str) -> String {
    git(home, &format!("-C repo {line}"))
}

/// What is staged, changed and new, with contents.
fn at_work(home: &Path) -> String {
    ["status --porcelain --branch", "diff --cached", "diff"].map(|line| git_in(home, line)).join("\n")
}

const PIN: &str = "--store store --pin repo/server/planish.text.toml";

#[test]
fn a_branch_of_its_own_gets_the_pin_and_nothing_else_changes() {
    let home = repository();
    let home = home.path();
    let before = at_work(home);
    published(home, &format!("hot.planish {PIN} --branch bot/profile"));
    assert_eq!(at_work(home), before);
    assert!(!home.join("repo/server/planish.text.toml").exists(), "it is on the branch");
    assert_eq!(git_in(home, "diff --name-status main bot/profile"), "A\tserver/planish.text.toml");
    assert_eq!(git_in(home, "rev-list --count main..bot/profile"), "1");
    // Its whole name is the same branch, and no other kind of ref is one.
    let whole = on(home, &format!("text publish hot.planish {PIN} --branch refs/heads/bot/profile"));
    assert_eq!(
        (whole.exit, git_in(home, "for-each-ref refs/heads/refs").as_str()),
        (0, ""),
        "{}",
        whole.stderr
    );
    assert_eq!(on(home, &format!("text publish hot.planish {PIN} --branch refs/tags/x")).exit, 2);
    let first = git_in(home, "show bot/profile:server/planish.text.toml");
    assert_eq!(on(home, &format!("text publish hot.planish {PIN} --branch bot/profile")).exit, 0);
    assert_eq!(git_in(home, "rev-list --count main..bot/profile"), "1", "the same again is no commit");
    published(home, &format!("warm.planish {PIN} --branch bot/profile --copy"));
    let changed = git_in(home, "diff --name-status bot/profile~ bot/profile");
    assert_eq!(changed, "A\tserver/planish.text.order\nM\tserver/planish.text.toml");
    let message = git_in(home, "log -1 --format=%B bot/profile");
    assert!(
        message.starts_with("Pin the program to a new text profile\n"),
        "stacks do not name it: {message}"
    );
    assert!(
        message.contains("of its weight with the profile before") && message.contains("git revert"),
        "{message}"
    );
    assert_eq!(at_work(home), before);
    // Undo is a revert: what was pinned before is pinned again.
    git(home, "clone --quiet --branch bot/profile repo review");
    git(home, "-C review revert --no-edit HEAD");
    assert_eq!(
        fs::read_to_string(home.join("review/server/planish.text.toml")).expect("a pin").trim_end(),
        first
    );
    let fetched = on(home, "text fetch --pin review/server/planish.text.toml --order o.txt --strict");
    assert_eq!(fetched.exit, 0, "{}", fetched.stderr);
    git_in(home, "fsck --strict");
}

#[test]
fn a_merged_branch_goes_on_from_where_it_was_merged() {
    let home = repository();
    let home = home.path();
    published(home, &format!("hot.planish {PIN} --branch bot"));
    git_in(home, "merge --quiet --ff-only bot");
    git_in(home, "commit --quiet -m staged");
    published(home, &format!("warm.planish {PIN} --branch bot"));
    assert_eq!(git_in(home, "merge-base main bot"), git_in(home, "rev-parse main"));
}

#[test]
fn the_branch_that_is_checked_out_gets_a_commit_of_the_pin_alone() {
    let home = repository();
    let home = home.path();
    let before = at_work(home);
    published(home, &format!("hot.planish {PIN} --branch main"));
    assert_eq!(at_work(home), before, "index and folder have the pin, too");
    assert_eq!(git_in(home, "show --format= --name-status HEAD"), "A\tserver/planish.text.toml");
    // A change of the user's own is not written over.
    let pin = home.join("repo/server/planish.text.toml");
    let mine = format!("# mine\n{}", fs::read_to_string(&pin).expect("a pin"));
    fs::write(&pin, &mine).expect("our own file");
    let run = on(home, &format!("text publish warm.planish {PIN} --branch main"));
    assert!(run.exit == 3 && run.stderr.contains("not committed"), "{}", run.stderr);
    assert_eq!(fs::read_to_string(&pin).expect("a pin"), mine);
    // Nor is a branch moved that another work tree has.
    git_in(home, "worktree add --quiet -b other ../elsewhere");
    let run = on(home, &format!("text publish warm.planish {PIN} --branch other"));
    assert!(run.exit == 3 && run.stderr.contains("elsewhere"), "{}", run.stderr);
    for wrong in ["a..b", "-x", "a b"] {
        let args =
            ["text", "publish", "warm.planish", "--store", "store", "--pin", "repo/server/planish.text.toml"];
        let branch = format!("--branch={wrong}");
        let run: Run =
            command(home, args.into_iter().chain([branch.as_str()])).output().expect("it starts").into();
        assert!(run.exit == 2 && run.stderr.contains("no name of a branch"), "{wrong}: {}", run.stderr);
    }
}

#[test]
fn a_push_is_made_when_asked_for_and_never_by_force() {
    let home = repository();
    let home = home.path();
    git(home, "init --quiet --bare remote.git");
    git_in(home, "remote add origin ../remote.git");
    published(home, &format!("hot.planish {PIN} --branch bot"));
    assert_eq!(git(home, "-C remote.git for-each-ref"), "", "nobody asked");
    published(home, &format!("warm.planish {PIN} --branch bot --push origin"));
    let pushed = git(home, "-C remote.git rev-parse bot");
    assert_eq!(pushed, git_in(home, "rev-parse bot"));
    // Somebody else's commit on the remote stays.
    git(home, "clone --quiet --branch bot remote.git theirs");
    git(home, "-C theirs commit --quiet --allow-empty -m theirs");
    git(home, "-C theirs push --quiet origin bot");
    let run = on(home, &format!("text publish hot.planish {PIN} --branch bot --push origin --json"));
    assert_eq!(run.exit, 1, "it is committed, and not pushed: {}", run.stdout);
    let result = run.envelope()["result"].clone();
    assert_eq!((&result["changed"], &result["commit"]["pushed"]), (&true.into(), &serde_json::Value::Null));
    assert_eq!(git(home, "-C remote.git log -1 --format=%s bot"), "theirs");
}

/// What ssh is asked, and the remote of this machine instead of the host.
const SSH: &str = "#!/bin/sh
echo \"$*\" >>\"$HOME/asked\"
for last; do :; done
eval \"$last\"
";

/// The socket of a connection that is kept for others lies in a home, which the weekly service may not write.
#[test]
fn a_push_by_ssh_keeps_no_connection_for_others() {
    let home = repository();
    let home = home.path();
    git(home, "init --quiet --bare remote.git");
    fs::create_dir(home.join("bin")).expect("room for a folder");
    fs::write(home.join("draft"), SSH).expect("room for a file");
    fs::set_permissions(home.join("draft"), fs::Permissions::from_mode(0o755)).expect("our own file");
    copy_program(&home.join("draft"), &home.join("bin/ssh"));
    let path = format!("{}:/usr/bin:/bin", home.join("bin").display());
    let url = format!("ssh://nowhere{}/remote.git", home.display());
    let pushed = |profile: &str| {
        let line = format!("text publish {profile} {PIN} --branch bot --push {url}");
        let run: Run =
            command(home, line.split(' ')).env("PATH", &path).output().expect("the binary starts").into();
        assert_eq!(run.exit, 0, "{}", run.stderr);
        let asked = fs::read_to_string(home.join("asked")).expect("ssh was asked");
        fs::remove_file(home.join("asked")).expect("our own file");
        asked
    };
    let asked = pushed("hot.planish");
    assert!(asked.starts_with("-o ControlMaster=no "), "{asked}");
    // Who has named an ssh gets it as it was named.
    git_in(home, "config core.sshCommand ssh");
    let asked = pushed("warm.planish");
    assert!(!asked.contains("ControlMaster"), "{asked}");
    assert_eq!(git(home, "-C remote.git rev-parse bot"), git_in(home, "rev-parse bot"));
}

#[test]
fn without_a_repository_or_a_name_it_is_told_what_to_do() {
    let home = repository();
    let home = home.path();
    let run = on(home, "text publish hot.planish --store store --branch bot");
    assert!(run.exit == 3 && run.stderr.contains("not a git repository"), "{}", run.stderr);
    fs::write(home.join(".gitconfig"), "[user]\nuseConfigOnly = true\n").expect("our own file");
    let run = on(home, &format!("text publish hot.planish {PIN} --branch bot"));
    assert!(run.exit == 3 && run.stderr.contains("git config user.name"), "{}", run.stderr);
    assert_eq!(git_in(home, "branch --list bot"), "", "and no branch was made");
}

/// What changes names, what a file is given before it gets one, and what starts a program: by the name that it has on
/// some machine.
const CALLS: [&str; 6] = [
    "?rename,?renameat,?renameat2",
    "fsync",
    "?mkdir,?mkdirat",
    "?unlink,?unlinkat",
    "write",
    "?clone,?clone3,?vfork",
];

/// Runs planish with a kill at its n-th such call, before that is made; whether it came that far. `None` where nothing
/// may be traced.
fn killed(home: &Path, line: &str, calls: &str, n: usize) -> Option<bool> {
    let mut strace = Command::new("strace");
    strace.arg("--quiet=all").args(["-o", "/dev/null", "-e"]).arg(format!("trace={calls}"));
    strace.arg("-e").arg(format!("inject={calls}:signal=KILL:when={n}"));
    strace.arg(env!("CARGO_BIN_EXE_planish")).args(line.split(' ')).current_dir(home).env_clear();
    let output = strace.env("HOME", home).env("PATH", "/usr/bin:/bin").stdin(Stdio::null()).output().ok()?;
    let told = String::from_utf8_lossy(&output.stderr);
    match output.status.code() {
        Some(0) => Some(false),
        None | Some(137) => Some(true),
        // strace itself ended: it may not trace here.
        _ if told.contains("ptrace") || told.contains("strace:") => None,
        code => panic!("{line}, killed at {calls} {n}: {code:?} {told}"),
    }
}

/// Kills `line` at each such call in turn, each time in a copy of `home`, and holds what is left to `sound`.
fn at_every_kill(test: &str, home: &Path, line: &str, sound: impl Fn(&Path, &str)) {
    let mut kills = 0;
    for calls in CALLS {
        for n in 1..100 {
            let copy = tempfile::tempdir().expect("a temporary folder");
            let copied =
                Command::new("cp").arg("-a").arg(format!("{}/.", home.display())).arg(copy.path()).status();
            assert!(copied.expect("cp is everywhere").success());
            let Some(was_killed) = killed(copy.path(), line, calls, n) else {
                return planish_skip::skip(test, "no strace here that may trace");
            };
            sound(copy.path(), &format!("{line}, killed at {calls} {n}"));
            if !was_killed {
                break;
            }
            kills += 1;
        }
    }
    assert!(kills >= 4, "{line} makes more such calls than {kills}");
}

#[test]
fn a_kill_leaves_a_build_the_pin_before_or_the_new_one() {
    const NAME: &str = "a_kill_leaves_a_build_the_pin_before_or_the_new_one";
    let home = repository();
    published(home.path(), "hot.planish --store store --copy");
    let pin = |home: &Path| fs::read_to_string(home.join("planish.text.toml")).expect("a pin is there");
    let old = pin(home.path());
    at_every_kill(NAME, home.path(), "text publish warm.planish", |home, at| {
        let new = pin(home);
        assert!(new == old || new.contains("[previous]"), "{at}: {new}");
        let fetched = on(home, "text fetch --order o.txt --profile p.planish --strict");
        assert_eq!(fetched.exit, 0, "{at}: {}", fetched.stderr);
        assert_eq!(on(home, "text publish warm.planish").exit, 0, "{at}: and it can be done again");
        assert_ne!(pin(home), old, "{at}");
    });
    at_every_kill(NAME, home.path(), "text fetch --order o.txt", |home, at| {
        let fetched = on(home, "text fetch --order o.txt --strict");
        assert_eq!(fetched.exit, 0, "{at}: {}", fetched.stderr);
    });
}

#[test]
fn a_kill_leaves_a_sound_repository_and_nothing_of_the_users_is_lost() {
    const NAME: &str = "a_kill_leaves_a_sound_repository_and_nothing_of_the_users_is_lost";
    let home = repository();
    published(home.path(), &format!("hot.planish {PIN} --branch main"));
    for branch in ["main", "bot"] {
        let line = format!("warm.planish {PIN} --branch {branch}");
        at_every_kill(NAME, home.path(), &format!("text publish {line}"), |home, at| {
            // A git that planish had started ends by itself.
            let lock = home.join("repo/.git/index.lock");
            for _ in 0..500 {
                if !lock.exists() {
                    break;
                }
                std::thread::sleep(std::time::Duration::from_millis(10));
            }
            git_in(home, "fsck --strict");
            assert_eq!(git_in(home, "show :staged"), "two", "{at}");
            assert_eq!(git_in(home, "show HEAD:staged"), "one", "{at}: nothing else is ever committed");
            let fetched = on(home, "text fetch --pin repo/server/planish.text.toml --order o.txt --strict");
            assert_eq!(fetched.exit, 0, "{at}: {}", fetched.stderr);
            published(home, &line);
            assert!(
                git_in(home, &format!("show {branch}:server/planish.text.toml")).contains("[previous]"),
                "{at}"
            );
        });
    }
}

/// What the last line says to type: on a recorded host, where nothing is there before, nor after the undo.
fn go_through_the_journal(home: &Path, timer: &Path) {
    let root = home.join("root");
    recorded::copy_tree(&recorded::repository().join("hosts/cloud-2c"), &root);
    let meta = fs::read_to_string(root.join("meta.toml")).expect("ours");
    let writable = meta.replace("writable = false", "writable = true");
    fs::write(root.join("meta.toml"), writable).expect("ours");
    let units = root.join("etc/systemd/system");
    let names = || {
        let found = Command::new("find").arg(&units).args(["-name", "*planish*"]).output().expect("find");
        let mut names: Vec<String> = String::from_utf8_lossy(&found.stdout)
            .lines()
            .filter_map(|path| path.rsplit('/').next().map(str::to_owned))
            .collect();
        names.sort();
        names
    };
    let run = |words: &[&str]| -> Run {
        let root = ["--root", root.to_str().expect("text")];
        command(home, root.iter().chain(words)).output().expect("it starts").into()
    };
    let timer = timer.to_str().expect("text");
    let asked = run(&["install", "publish", timer]);
    assert!(asked.exit == 3 && names().is_empty(), "nobody to ask: {}", asked.stderr);
    let installed = run(&["install", "publish", timer, "--yes"]);
    assert_eq!(installed.exit, 0, "{}", installed.stderr);
    let name = "planish-text-publish-hot";
    assert_eq!(names(), [format!("90-{name}.conf"), format!("{name}.service"), format!("{name}.timer")]);
    let written = fs::read_to_string(units.join(format!("{name}.service"))).expect("it is there");
    let text = fs::read_to_string(timer.replace(".timer", ".service")).expect("it is there");
    assert!(written.ends_with(&text), "{written}");
    let again = run(&["install", "publish", timer, "--yes", "--json"]);
    assert_eq!((again.exit, &again.envelope()["result"]["entry"]), (0, &serde_json::Value::Null));
    assert_eq!(run(&["undo"]).exit, 0);
    assert_eq!(names(), [""; 0]);
    // A user's file must start nothing else as root.
    let service = timer.replace(".timer", ".service");
    fs::write(&service, text.replace("text publish", "text  publish; /bin/sh")).expect("ours");
    let forged = run(&["install", "publish", timer, "--yes"]);
    assert!(forged.exit == 2 && forged.stderr.contains("as its line"), "{}", forged.stderr);
    fs::write(&service, &text).expect("ours");
    let others = fs::Permissions::from_mode(0o666);
    fs::set_permissions(&service, others).expect("ours");
    let of_all = run(&["install", "publish", timer, "--yes"]);
    assert!(of_all.exit == 3 && of_all.stderr.contains("chmod go-w"), "{}", of_all.stderr);
    fs::set_permissions(&service, fs::Permissions::from_mode(0o644)).expect("ours");
    if rustix::process::geteuid().is_root() {
        fs::write(&service, &text).expect("ours");
        std::os::unix::fs::chown(&service, Some(12_345), None).expect("we are root");
        let of_another = run(&["install", "publish", timer, "--yes"]);
        assert!(of_another.exit == 3 && of_another.stderr.contains("User=12345"), "{}", of_another.stderr);
        fs::write(&service, text.replace("[Service]\n", "[Service]\nUser=12345\n")).expect("ours");
        assert_eq!(run(&["install", "publish", timer, "--yes"]).exit, 0);
    }
    assert_eq!(run(&["install", "publish", &service]).exit, 2, "the timer is named");
}

#[test]
fn units_for_every_week_are_ones_that_systemd_takes() {
    const NAME: &str = "units_for_every_week_are_ones_that_systemd_takes";
    let home = repository();
    let home = home.path();
    fs::create_dir(home.join("my units")).expect("room for a folder");
    let line = ["text", "publish", "hot.planish", "--store", "store", "--timer", "my units"];
    let run: Run = command(home, line.into_iter().chain(["--record-unit", "server.service"]))
        .output()
        .expect("it starts")
        .into();
    assert_eq!(run.exit, 0, "{}", run.stderr);
    let units =
        ["service", "timer"].map(|ending| home.join(format!("my units/planish-text-publish-hot.{ending}")));
    let service = fs::read_to_string(&units[0]).expect("a service");
    let planish = env!("CARGO_BIN_EXE_planish");
    assert!(
        service.contains(&format!("ExecStart={planish} text publish hot.planish --store store\n")),
        "{service}"
    );
    assert!(
        service.contains(" text record --unit server.service --seconds 3600 --duty 0.05 -o hot.planish\n")
    );
    // All lies in one folder, which is told once. What it records may lie in /tmp.
    let real = home.canonicalize().expect("it is there");
    assert_eq!(writes(&service), [real.display().to_string()], "{service}");
    assert!(service.contains("\nProtectSystem=strict\n"), "{service}");
    assert!(!service.contains("\nPrivateTmp="), "{service}");
    let install = "sudo planish install publish 'my units/planish-text-publish-hot.timer'";
    assert!(run.stderr.contains(install), "{}", run.stderr);
    go_through_the_journal(home, &units[1]);
    let mut analyze = Command::new("systemd-analyze");
    let Ok(output) = analyze.arg("verify").arg("--man=no").args(&units).output() else {
        return planish_skip::skip(NAME, "no systemd-analyze");
    };
    let told = String::from_utf8_lossy(&output.stderr);
    let ours: Vec<&str> = told.lines().filter(|line| line.contains("planish-text-publish")).collect();
    assert!(ours.is_empty(), "{told}");
    let security = ["security", "--offline=true", "--threshold=50", "./planish-text-publish-hot.service"];
    let mut analyze = Command::new("systemd-analyze");
    let output = analyze.args(security).current_dir(home.join("my units")).output().expect("it ran just now");
    let told = String::from_utf8_lossy(&output.stderr);
    if told.contains("unrecognized option") {
        return planish_skip::skip(NAME, "a systemd-analyze that looks at no file");
    }
    assert!(output.status.success(), "{told}{}", String::from_utf8_lossy(&output.stdout));
}

/// The folders that a service may write into.
fn writes(service: &str) -> Vec<String> {
    let paths = service.lines().filter_map(|line| line.strip_prefix("ReadWritePaths=-"));
    paths.map(str::to_owned).collect()
}

#[test]
fn units_for_every_week_may_write_what_a_publish_writes_and_no_more() {
    let home = repository();
    let home = home.path();
    fs::create_dir(home.join("units")).expect("room");
    git(home, "init --quiet --bare remote.git");
    git_in(home, "remote add origin ../remote.git");
    published(home, &format!("hot.planish {PIN} --branch bot --push origin --timer units"));
    let service = home.join("units/planish-text-publish-hot.service");
    let service = fs::read_to_string(service).expect("a service");
    let real = home.canonicalize().expect("it is there");
    let told = ["remote.git", "repo/.git", "repo/server", "store"].map(|name| real.join(name));
    assert_eq!(writes(&service), told.map(|path| path.display().to_string()), "{service}");
    // Paths of /tmp are not hidden.
    let is_in_tmp = ["/tmp", "/var/tmp"].iter().any(|folder| real.starts_with(folder));
    assert_eq!(service.contains("\nPrivateTmp=yes\n"), !is_in_tmp, "{service}");
    // A remote that is beyond this machine is no folder of it.
    git_in(home, "remote set-url --push origin ssh://127.0.0.1:1/remote.git");
    published(home, &format!("hot.planish {PIN} --branch bot --push origin --timer units"));
    let service = home.join("units/planish-text-publish-hot.service");
    let service = fs::read_to_string(service).expect("a service");
    assert_eq!(writes(&service).len(), 3, "{service}");
}

/// By a URL with an escaped blank; a work tree whose `.git` is a file, and whose objects lie elsewhere again.
#[test]
fn units_for_every_week_may_write_a_remote_wherever_it_lies() {
    let home = repository();
    let home = home.path();
    fs::create_dir(home.join("units")).expect("room");
    let real = home.canonicalize().expect("it is there");
    git(home, "init --quiet --separate-git-dir=kept theirs");
    let moved = |from: &str, to: &str| fs::rename(home.join(from), home.join(to)).expect("our own folder");
    moved("theirs", "the irs");
    moved("kept/objects", "objects");
    std::os::unix::fs::symlink("../objects", home.join("kept/objects")).expect("room for a link");
    let url = format!("file://{}/the%20irs", real.display());
    published(home, &format!("hot.planish {PIN} --branch bot --push {url} --timer units"));
    let service = home.join("units/planish-text-publish-hot.service");
    let service = fs::read_to_string(service).expect("a service");
    let blank = format!("\nReadWritePaths=\"-{}/the irs\"\n", real.display());
    assert!(service.contains(&blank), "{service}");
    let told = ["kept", "objects", "repo/.git", "repo/server", "store"].map(|name| real.join(name));
    assert_eq!(writes(&service), told.map(|path| path.display().to_string()), "{service}");
    assert_eq!(git(home, "--git-dir kept rev-parse bot"), git_in(home, "rev-parse bot"));
    // Of one that is named without its ending.
    git(home, "init --quiet --bare bare.git");
    published(home, &format!("warm.planish {PIN} --branch bot --push ../bare --timer units"));
    let service = home.join("units/planish-text-publish-warm.service");
    let service = fs::read_to_string(service).expect("a service");
    assert!(writes(&service).contains(&real.join("bare.git").display().to_string()), "{service}");
}
