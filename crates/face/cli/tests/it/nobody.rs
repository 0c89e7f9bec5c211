//! Where nothing was applied, and for users who may not see whether anything was.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;

use crate::exits::{message, on, sandbox};
use crate::planish::{Run, command_of, for_anybody};

#[test]
fn what_has_nothing_to_take_back_makes_no_journal() {
    let sandbox = sandbox();
    for args in [&["undo"][..], &["undo", "--all"], &["undo", "--force"], &["confirm"]] {
        let run = on(sandbox.path(), args);
        assert_eq!(run.exit, 0, "{args:?}: {}", run.stdout);
        assert!(!sandbox.path().join("state/var/journal.jsonl").exists(), "{args:?}");
    }
    let named = on(sandbox.path(), &["undo", "3"]);
    assert_eq!(named.exit, 2, "{}", named.stdout);
    assert!(message(&named, "error").ends_with("no entry 3 in the journal"), "{}", named.stdout);
    assert!(!sandbox.path().join("state/var/journal.jsonl").exists());
}

/// Runs a command as a user who is nobody, in a home that is given; `None` where that cannot be.
fn as_nobody(name: &str, home: &Path, line: &str) -> Option<Run> {
    if !rustix::process::geteuid().is_root() {
        planish_skip::skip(name, "only root can run a command as another user");
        return None;
    }
    let open = tempfile::tempdir().expect("a temporary folder");
    let mut command = command_of(&for_anybody(open.path()), Path::new("/"), line.split(' '));
    command.env("HOME", home).uid(65534).gid(65534);
    Some(command.output().expect("the binary starts").into())
}

/// What lies there is executed, so that no folder will do that others may write.
#[test]
fn who_has_no_home_has_his_preload_where_he_runs() {
    const NAME: &str = "who_has_no_home_has_his_preload_where_he_runs";
    if !rustix::process::geteuid().is_root() {
        return planish_skip::skip(NAME, "only root can run a command as another user");
    }
    let (open, own) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    std::os::unix::fs::chown(own.path(), Some(65534), Some(65534)).expect("ours");
    let line = "run --prefault-threads 1 -- true";
    let mut command = command_of(&for_anybody(open.path()), Path::new("/"), line.split(' '));
    command.env("HOME", "/nonexistent").env("XDG_RUNTIME_DIR", own.path()).uid(65534).gid(65534);
    let run = Run::from(command.output().expect("the binary starts"));
    assert_eq!(run.exit, 0, "{}", run.stderr);
    assert!(own.path().join("planish/preload").is_dir(), "{}", run.stderr);
}

/// As under `setpriv`, which keeps root's `HOME`: the machine can be looked at all the same.
#[test]
fn a_journal_that_may_not_be_read_refuses_no_look_at_the_machine() {
    const NAME: &str = "a_journal_that_may_not_be_read_refuses_no_look_at_the_machine";
    let home = tempfile::tempdir().expect("a temporary folder");
    std::fs::set_permissions(home.path(), std::fs::Permissions::from_mode(0o700)).expect("ours");
    for (line, exits) in
        [("--json doctor", &[0, 1][..]), ("--json doctor series", &[0, 1]), ("--json plan series", &[0, 3])]
    {
        let Some(run) = as_nobody(NAME, home.path(), line) else { return };
        assert!(exits.contains(&run.exit), "{line}: {}{}", run.stdout, run.stderr);
        assert!(run.stdout.contains("may not read the journal in"), "{line}: {}", run.stdout);
        assert!(!run.stdout.contains("cannot be used"), "{line}: {}", run.stdout);
    }
    // What was applied is not known, and never called fine.
    let Some(run) = as_nobody(NAME, home.path(), "check --monitor") else { return };
    assert!(run.exit >= 2, "{}", run.stdout);
    let Some(run) = as_nobody(NAME, home.path(), "--json check") else { return };
    assert_eq!(run.exit, 3, "{}", run.stdout);
    let seen = run.envelope()["result"]["knobs"].as_array().map_or(0, Vec::len);
    assert!(seen > 100, "what could be seen is told all the same: {}", run.stdout);
    let told = message(&run, "warning");
    assert!(told.starts_with("exit code 3: ") && told.contains("nothing of it was compared"), "{told}");
    assert_eq!(message(&run, "next"), "sudo planish check");
    // Nor where a profile is named and all of it is so: its entry may ask for more.
    let open = tempfile::tempdir().expect("a temporary folder");
    std::fs::set_permissions(open.path(), std::fs::Permissions::from_mode(0o755)).expect("ours");
    let now = std::fs::read_to_string("/proc/sys/vm/swappiness").expect("it is there");
    let now = now.trim();
    let text = format!("name = \"as-it-is\"\nsummary = \"s\"\n[want]\n\"vm.swappiness\" = {now}\n");
    let file = open.path().join("as-it-is.toml");
    std::fs::write(&file, text).expect("room");
    let line = format!("check {} --monitor", file.display());
    let Some(run) = as_nobody(NAME, home.path(), &line) else { return };
    assert_eq!(run.exit, 3, "{}", run.stdout);
    assert!(run.stdout.contains("a journal that only root may read"), "{}", run.stdout);
    let Some(run) = as_nobody(NAME, home.path(), "undo") else { return };
    assert_eq!(run.exit, 3, "{}", run.stdout);
}

/// A file of a unit is root's, and what would fail at its write is no entry.
#[test]
fn an_installation_by_an_ordinary_user_is_refused_before_an_entry_is_made() {
    const NAME: &str = "an_installation_by_an_ordinary_user_is_refused_before_an_entry_is_made";
    let home = tempfile::tempdir().expect("a temporary folder");
    std::fs::set_permissions(home.path(), std::fs::Permissions::from_mode(0o777)).expect("ours");
    let Some(run) = as_nobody(NAME, home.path(), "--json install check --yes") else { return };
    assert_eq!(run.exit, 3, "{}", run.stdout);
    assert!(run.envelope()["messages"].to_string().contains("run it as root"), "{}", run.stdout);
    let Some(log) = as_nobody(NAME, home.path(), "--json log") else { return };
    assert!(!log.stdout.contains("install-check"), "{}", log.stdout);
}

/// `sudo planish apply mine` is another plan, or none: root has profiles of its own.
#[test]
fn the_line_for_root_names_the_file_of_a_users_own_profile() {
    const NAME: &str = "the_line_for_root_names_the_file_of_a_users_own_profile";
    let home = tempfile::tempdir().expect("a temporary folder");
    std::fs::set_permissions(home.path(), std::fs::Permissions::from_mode(0o755)).expect("ours");
    let profiles = home.path().join(".config/planish/profiles");
    std::fs::create_dir_all(&profiles).expect("a folder");
    let now = std::fs::read_to_string("/proc/sys/vm/swappiness").expect("it is there");
    let other = if now.trim() == "7" { 8 } else { 7 };
    let mine = profiles.join("mine.toml");
    let text = format!("name = \"mine\"\nsummary = \"s\"\n[want]\n\"vm.swappiness\" = {other}\n");
    std::fs::write(&mine, text).expect("a profile");
    let Some(run) = as_nobody(NAME, home.path(), "--json plan mine") else { return };
    let next = message(&run, "next");
    if !next.contains("apply") {
        return planish_skip::skip(NAME, "vm.swappiness cannot be set here");
    }
    assert_eq!(next, format!("sudo planish apply {}", mine.display()));
    let apply = as_nobody(NAME, home.path(), "--json apply mine").expect("a run");
    let again = format!("apply {} --yes", mine.display());
    assert!(apply.envelope()["messages"].to_string().contains(&again), "{}", apply.stdout);
    let install = as_nobody(NAME, home.path(), "--json install check mine").expect("a run");
    assert_eq!(install.exit, 2, "{}", install.stdout);
    let copied = "copy it to /etc/planish/profiles";
    assert!(install.envelope()["messages"].to_string().contains(copied), "{}", install.stdout);
}

/// What root's apply would write at the next boot is shown to any user, and on a copy of the own machine anybody may
/// rehearse it.
#[test]
fn the_files_of_the_next_boot_are_shown_to_any_user_who_rehearses_them_on_a_copy() {
    const NAME: &str = "the_files_of_the_next_boot_are_shown_to_any_user_who_rehearses_them_on_a_copy";
    let home = tempfile::tempdir().expect("a temporary folder");
    std::fs::set_permissions(home.path(), std::fs::Permissions::from_mode(0o755)).expect("ours");
    std::os::unix::fs::chown(home.path(), Some(65534), Some(65534)).expect("ours");
    let now = std::fs::read_to_string("/proc/sys/vm/swappiness").expect("it is there");
    let other = if now.trim() == "7" { 8 } else { 7 };
    let mine = home.path().join("mine.toml");
    let text = format!("name = \"mine\"\nsummary = \"s\"\n[want]\n\"vm.swappiness\" = {other}\n");
    std::fs::write(&mine, text).expect("a profile");
    let line = format!("--json plan {} --persist", mine.display());
    let Some(run) = as_nobody(NAME, home.path(), &line) else { return };
    if !message(&run, "next").contains("apply") {
        return planish_skip::skip(NAME, "vm.swappiness cannot be set here");
    }
    let plan: serde_json::Value = serde_json::from_str(&run.stdout).expect("JSON");
    let files = plan["result"]["persist"]["files"].as_array().expect("files");
    assert!(files.iter().any(|file| file["path"] == "/etc/sysctl.d/90-planish.conf"), "{}", run.stdout);

    let (copy, state) = (home.path().join("copy"), home.path().join("state"));
    let copied = as_nobody(NAME, home.path(), &format!("host record {} --writable", copy.display()));
    assert_eq!(copied.expect("a run").exit, 0);
    let here = format!("--root {} --state {}", copy.display(), state.display());
    let line = format!("--json {here} apply {} --persist --yes", mine.display());
    let applied = as_nobody(NAME, home.path(), &line).expect("a run");
    assert!([0, 1].contains(&applied.exit), "{}", applied.stdout);
    let written = std::fs::read_to_string(copy.join("proc/sys/vm/swappiness")).expect("it is there");
    assert_eq!(written.trim(), other.to_string());
    let undone = as_nobody(NAME, home.path(), &format!("--json {here} undo")).expect("a run");
    assert_eq!(undone.exit, 0, "{}", undone.stdout);
}

/// What was typed is in the line for root.
#[test]
fn the_line_for_root_keeps_what_a_map_was_asked_for() {
    const NAME: &str = "the_line_for_root_keeps_what_a_map_was_asked_for";
    let home = tempfile::tempdir().expect("a temporary folder");
    let mut other = std::process::Command::new("sleep").arg("60").spawn().expect("sleep starts");
    let run = as_nobody(NAME, home.path(), &format!("map {} --tree", other.id()));
    other.kill().expect("it is ours");
    other.wait().expect("it ends");
    let line = format!("hint: sudo planish map {} --tree\n", other.id());
    let Some(run) = run else { return };
    assert!(run.exit == 3 && run.stderr.contains(&line), "{}", run.stderr);
}

/// What may not be read of a service is no answer about it, and no fault is denied of what nobody looked at.
#[test]
fn what_doctor_may_not_read_of_a_service_is_named() {
    const NAME: &str = "what_doctor_may_not_read_of_a_service_is_named";
    let home = tempfile::tempdir().expect("a temporary folder");
    let mut other = std::process::Command::new("sleep").arg("60").spawn().expect("sleep starts");
    let pid = other.id();
    let told = as_nobody(NAME, home.path(), &format!("doctor --service {pid}"));
    let run = as_nobody(NAME, home.path(), &format!("--json doctor --service {pid}"));
    other.kill().expect("it is ours");
    other.wait().expect("it ends");
    let (Some(told), Some(run)) = (told, run) else { return };
    assert!(told.stdout.contains("not known: its mappings could not be read"), "{}", told.stdout);
    assert!(!told.stdout.contains("a static program"), "{}", told.stdout);
    let view = &run.envelope()["result"]["service"];
    assert_eq!((&view["allocator"], &view["allocator_unread"]), (&serde_json::Value::Null, &true.into()));
    let unread = view["unread"].to_string();
    for file in ["smaps", "maps", "exe", "fd"] {
        assert!(unread.contains(&format!("/proc/{pid}/{file}")), "{file}: {unread}");
    }
    if run.exit == 0 {
        assert!(run.stdout.contains(" in what could be read (not all of sleep)"), "{}", run.stdout);
    }
    let next = message(&run, "next");
    let is_out_of_reach = run.stdout.contains("can be set by nobody from here");
    assert!(is_out_of_reach || next == format!("sudo planish --json doctor --service {pid}"), "{next}");
}

/// `setpriv` and `su` without a dash keep root's HOME, and root is not what is missing.
#[test]
fn a_home_of_another_user_is_named_where_it_is_in_the_way() {
    const NAME: &str = "a_home_of_another_user_is_named_where_it_is_in_the_way";
    if !rustix::process::geteuid().is_root() {
        return planish_skip::skip(NAME, "only root can run a command as another user");
    }
    let home = tempfile::tempdir().expect("a temporary folder");
    std::fs::set_permissions(home.path(), std::fs::Permissions::from_mode(0o755)).expect("ours");
    let mut sleeper = std::process::Command::new("sleep");
    let mut sleeper = sleeper.arg("60").uid(65534).gid(65534).spawn().expect("sleep starts");
    let run = as_nobody(NAME, home.path(), &format!("move {} --cpus 0", sleeper.id()));
    sleeper.kill().expect("it is ours");
    sleeper.wait().expect("it ends");
    let Some(run) = run.filter(|run| run.exit != 0) else { return planish_skip::skip(NAME, "one CPU") };
    let named = format!(
        "hint: HOME is {}, which is not yours: name your own, HOME=DIR planish move",
        home.path().display()
    );
    assert!(run.exit == 3 && run.stderr.contains(&named), "{}", run.stderr);
}

/// Page tables and faults of others are anybody's to know; what a walk of their memory would tell is not, and is no
/// zero.
#[test]
fn what_top_may_not_see_of_others_is_said() {
    const NAME: &str = "what_top_may_not_see_of_others_is_said";
    let home = tempfile::tempdir().expect("a temporary folder");
    // Those that started the command are not walked by anybody, and a small machine may run nobody else.
    let mut other = std::process::Command::new("sleep").arg("60").spawn().expect("sleep starts");
    let run = as_nobody(NAME, home.path(), "--json top --interval 0.1");
    other.kill().expect("it is ours");
    other.wait().expect("it ends");
    let Some(run) = run else { return };
    assert_eq!(run.exit, 0, "{}", run.stderr);
    let result = run.envelope()["result"].clone();
    let rows = result["rows"].as_array().expect("rows");
    let own = rows.iter().find(|row| row["pid"] == std::process::id()).expect("the test runs");
    assert!(own["huge_share"].is_null() && own["page_table_bytes"].is_number(), "{own}");
    let unseen = result["unseen"].to_string();
    assert!(unseen.contains("another user's") && unseen.contains("CAP_SYS_PTRACE"), "{unseen}");
    assert!(unseen.contains("they started this command"), "{unseen}");
    // Nor is a map proposed that he may not have: the largest of them all is root's.
    let next = message(&run, "next");
    let pid = next.strip_prefix("planish map ").map(|pid| pid.parse::<u32>().expect("a number"));
    let is_his = |pid: u32| {
        result["rows"]
            .as_array()
            .is_some_and(|rows| rows.iter().any(|row| row["pid"] == pid && row["user"] == 65534))
    };
    assert!(next == "planish doctor" || pid.is_some_and(is_his), "{next}");
}
