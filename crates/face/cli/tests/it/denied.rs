//! What a container's seccomp filter, an old kernel, a missing right or a PID that was given out again leave of the
//! commands that look at memory and place it: each says what is missing, why, and what still works.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::planish::{Run, Sleeper, command_of, for_anybody, run};

/// The calls of memory policies, which the filters of container engines forbid without CAP_SYS_NICE.
const POLICIES: &[&str] =
    &["mbind=1", "set_mempolicy=1", "get_mempolicy=1", "move_pages=1", "migrate_pages=1"];

/// A program that starts others under a filter, in a folder of its own; `None`, said aloud, where there can be none.
fn filter(test: &str) -> Option<(tempfile::TempDir, PathBuf)> {
    let home = tempfile::tempdir().expect("a temporary folder");
    let program = home.path().join("denied");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/vm/programs/denied.c");
    let built = Command::new("cc").arg("-O1").arg("-o").arg(&program).arg(source).output();
    if !built.is_ok_and(|output| output.status.success()) {
        planish_skip::skip(test, "no C compiler");
        return None;
    }
    let tried = Command::new(&program).args(["mbind=1", "--", "/bin/true"]).status();
    if !tried.is_ok_and(|status| status.success()) {
        planish_skip::skip(test, "no seccomp filters here");
        return None;
    }
    Some((home, program))
}

/// Runs planish where some calls fail.
fn under(filter: &(tempfile::TempDir, PathBuf), calls: &[&str], args: &[&str]) -> Run {
    let words = calls.iter().chain(&["--", env!("CARGO_BIN_EXE_planish")]).chain(args);
    command_of(&filter.1, filter.0.path(), words).output().expect("the filter starts").into()
}

/// What a map lists as not seen, as one text.
fn unseen(map: &Run) -> String {
    assert_eq!(map.exit, 0, "{}{}", map.stdout, map.stderr);
    let envelope = map.envelope();
    assert!(envelope["result"]["totals"]["resident_bytes"].as_u64() > Some(0), "{envelope}");
    envelope["result"]["unseen"].to_string()
}

/// 22 (EINVAL) is a kernel whose userfaultfd has no minor faults, 38 (ENOSYS) one without any, 1 (EPERM) a filter.
#[test]
fn without_minor_faults_a_map_tells_what_is_mapped_and_what_it_cannot_see() {
    let Some(filter) = filter("without_minor_faults_a_map_tells_what_is_mapped_and_what_it_cannot_see")
    else {
        return;
    };
    let sleeper = Sleeper::start();
    for (call, cure) in [
        ("minor=22", "Linux 5.14 or newer"),
        ("userfaultfd=38", "Linux 5.14 or newer"),
        ("userfaultfd=1", "CAP_SYS_ADMIN, or CAP_CHECKPOINT_RESTORE"),
    ] {
        let unseen = unseen(&under(&filter, &[call], &["map", &sleeper.pid(), "--json"]));
        assert!(unseen.contains("that these processes have not mapped themselves"), "{call}: {unseen}");
        assert!(unseen.contains("userfaultfd") && unseen.contains(cure), "{call}: {unseen}");
    }
}

/// On one node memory lies there, whatever may be asked. The guests have two (`tests/vm/src/refused.rs`).
#[test]
fn without_memory_policies_each_command_does_what_needs_none() {
    let Some(filter) = filter("without_memory_policies_each_command_does_what_needs_none") else { return };
    let sleeper = Sleeper::start();
    unseen(&under(&filter, POLICIES, &["map", &sleeper.pid(), "--json"]));
    let top = under(&filter, POLICIES, &["top", "--json", "--interval", "0.1"]);
    assert_eq!(top.exit, 0, "{}", top.stderr);
    for wish in ["interleave", "heap=interleave", "shm=bind:0"] {
        let refused = under(&filter, POLICIES, &["run", "--numa", wish, "--", "echo", "started"]);
        assert_eq!((refused.exit, refused.stdout.as_str()), (125, ""), "{wish}: {}", refused.stderr);
        for word in ["mbind is not permitted", "--cap-add SYS_NICE", "--huge and --cpus still work"] {
            assert!(refused.stderr.contains(word), "{wish}: {}", refused.stderr);
        }
    }
    let without_numa = ["mbind=38", "set_mempolicy=38", "get_mempolicy=38", "move_pages=38"];
    let refused = under(&filter, &without_numa, &["run", "--numa", "interleave", "--", "echo", "started"]);
    assert_eq!((refused.exit, refused.stdout.as_str()), (125, ""), "{}", refused.stderr);
    assert!(
        refused.stderr.contains("without NUMA; --huge, --cpus and --thp still work"),
        "{}",
        refused.stderr
    );
    let works = under(&filter, POLICIES, &["run", "--cpus", "0", "--thp", "never", "--", "echo", "started"]);
    assert_eq!((works.exit, works.stdout.as_str()), (0, "started\n"), "{}", works.stderr);
}

/// Runs planish as a user who is nobody; `None`, said aloud, where that cannot be.
fn as_nobody(test: &str, home: &Path, args: &[&str]) -> Option<Run> {
    if !rustix::process::geteuid().is_root() {
        planish_skip::skip(test, "only root can run a command as another user");
        return None;
    }
    let mut command = command_of(&for_anybody(home), home, args);
    Some(command.uid(65534).gid(65534).output().expect("the binary starts").into())
}

#[test]
fn who_lacks_a_right_is_told_which_capability_it_is() {
    const NAME: &str = "who_lacks_a_right_is_told_which_capability_it_is";
    let (home, sleeper) = (tempfile::tempdir().expect("a folder"), Sleeper::start());
    let pid = sleeper.pid();
    for (args, exit, words) in [
        (&["map", &pid][..], 3, &["CAP_SYS_PTRACE", "what any user may know of sleep"][..]),
        // Threads are moved without seeing any memory.
        (&["move", &pid, "--cpus", "0", "--dry-run"], 3, &["CAP_SYS_NICE", "planish top"]),
        (&["run", "--memlock", "unlimited", "--", "true"], 125, &["CAP_SYS_RESOURCE", "LimitMEMLOCK="]),
    ] {
        let Some(run) = as_nobody(NAME, home.path(), args) else { return };
        assert_eq!(run.exit, exit, "{args:?}: {}", run.stderr);
        assert!(words.iter().all(|word| run.stderr.contains(word)), "{args:?}: {}", run.stderr);
    }
}

#[test]
fn a_program_whose_loader_ignores_preloads_is_refused_and_what_is_inherited_works() {
    const NAME: &str = "a_program_whose_loader_ignores_preloads_is_refused_and_what_is_inherited_works";
    let home = tempfile::tempdir().expect("a folder");
    let [owned, linked] = ["owned", "linked"].map(|name| home.path().join(name));
    let mut programs = Vec::new();
    let install = Command::new("install").args(["-m", "4755", "/bin/echo"]).arg(&owned).status();
    if install.is_ok_and(|status| status.success()) {
        programs.push((owned, "is set-user-id"));
    }
    let source = home.path().join("linked.c");
    std::fs::write(&source, "int puts(const char *); int main(void) { puts(\"started\"); }").expect("room");
    let built = Command::new("cc").args(["-static", "-o"]).arg(&linked).arg(&source).output();
    if built.is_ok_and(|output| output.status.success()) {
        std::fs::set_permissions(&linked, std::fs::Permissions::from_mode(0o755)).expect("ours");
        programs.push((linked, "is linked statically"));
    }
    assert!(!programs.is_empty(), "neither a set-user-id program nor a static one could be made");
    for (program, why) in programs {
        let program = program.to_str().expect("text");
        for wish in [&["--numa", "interleave"][..], &["--huge", "shm"], &["--malloc", "jemalloc"]] {
            let args = [&["run"], wish, &["--", program, "started"]].concat();
            let Some(run) = as_nobody(NAME, home.path(), &args) else { return };
            assert_eq!((run.exit, run.stdout.as_str()), (125, ""), "{args:?}: {}", run.stderr);
            assert!(run.stderr.contains(why), "{args:?}: {}", run.stderr);
            assert!(run.stderr.contains("what is inherited still works: --numa heap="), "{}", run.stderr);
        }
        let args = ["run", "--cpus", "0", "--", program, "started"];
        let Some(run) = as_nobody(NAME, home.path(), &args) else { return };
        assert_eq!((run.exit, run.stdout.as_str()), (0, "started\n"), "{}", run.stderr);
    }
}

/// What a launcher in between takes out of the environment, no look at the file of the program could know of.
#[test]
fn a_program_that_the_preload_did_not_reach_is_told_after_its_start() {
    const NAME: &str = "a_program_that_the_preload_did_not_reach_is_told_after_its_start";
    const SOURCE: &str = "#include <string.h>\n#include <sys/mman.h>\n#include <unistd.h>\nint main(void) {\
        char *at = mmap(0, 32 << 20, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);\
        memset(at, 1, 32 << 20); sleep(2); }";
    let home = tempfile::tempdir().expect("a folder");
    let [source, program] = ["sharer.c", "sharer"].map(|name| home.path().join(name));
    std::fs::write(&source, SOURCE).expect("room");
    let built = Command::new("cc").args(["-w", "-o"]).arg(&program).arg(&source).output();
    if !built.is_ok_and(|output| output.status.success()) {
        return planish_skip::skip(NAME, "no C compiler");
    }
    let program = program.to_str().expect("text");
    // Filling it needs no policy, which may be forbidden here.
    let reached = run(["run", "--prefault-threads", "1", "--verify-after", "1", "--", program]);
    assert_eq!(reached.exit, 0, "{}", reached.stderr);
    assert!(
        reached.stderr.contains("32 MiB") && !reached.stderr.contains("not the preload"),
        "{}",
        reached.stderr
    );
    let between = ["env", "-u", "LD_PRELOAD", program];
    let args = [&["run", "--prefault-threads", "1", "--verify-after", "1", "--"][..], &between].concat();
    let missed = run(args);
    assert_eq!(missed.exit, 0, "{}", missed.stderr);
    for word in ["has shared segments and not the preload", "--numa heap=... is inherited"] {
        assert!(missed.stderr.contains(word), "{}", missed.stderr);
    }
    assert!(!missed.stderr.contains("has mapped no shared segment"), "{}", missed.stderr);
}

#[test]
fn a_pool_without_a_free_page_is_refused_with_what_needs_none() {
    let pool = "/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages";
    if std::fs::read_to_string(pool).is_ok_and(|free| free.trim() != "0") {
        return planish_skip::skip(
            "a_pool_without_a_free_page_is_refused_with_what_needs_none",
            "pages are free",
        );
    }
    let refused = run(["run", "--huge", "shm=2m", "--", "echo", "started"]);
    assert_eq!((refused.exit, refused.stdout.as_str()), (125, ""), "{}", refused.stderr);
    assert!(refused.stderr.contains("pool") && refused.stderr.contains("hint:"), "{}", refused.stderr);
}

/// The number of a process that was moved is given to another one, by the kernel itself, in a namespace of its own.
#[test]
fn a_number_that_was_given_out_again_is_left_alone() {
    const NAME: &str = "a_number_that_was_given_out_again_is_left_alone";
    const SCRIPT: &str = r#"
        planish() { "$PLANISH" --state "$HOME/state" "$@"; }
        again() {
            for try in 1 2 3 4 5 6 7 8 9 10; do
                planish "$@"; exit=$?
                [ $exit = 3 ] || return $exit
                sleep 1
            done
        }
        sleep 600 & first=$!
        again move $first --cpus 0 >&2 || exit 11
        kill -9 $first; wait $first
        for try in 1 2 3 4 5 6 7 8 9; do
            echo $((first - 1)) >/proc/sys/kernel/ns_last_pid || exit 77
            sleep 600 & second=$!
            [ $second = $first ] && break
            kill -9 $second
        done
        [ $second = $first ] || exit 77
        taskset -cp 0 $second >&2 || exit 77
        again undo; exit=$?
        taskset -cp $second
        exit $exit"#;
    let cpus = planish_sys::affinity::get(None).expect("we run somewhere");
    if !rustix::process::geteuid().is_root() || cpus.count() < 2 || !cpus.contains(0) {
        return planish_skip::skip(NAME, "it takes root and two CPUs, of which one is CPU 0");
    }
    let home = tempfile::tempdir().expect("a folder");
    let mut command =
        command_of("unshare".as_ref(), home.path(), ["--pid", "--fork", "--kill-child", "--mount-proc"]);
    command.args(["sh", "-c", SCRIPT]).env("PLANISH", env!("CARGO_BIN_EXE_planish"));
    let Ok(output) = command.output() else { return planish_skip::skip(NAME, "no unshare(1)") };
    let run = Run::from(output);
    if run.exit == 77 || run.stderr.contains("unshare:") {
        return planish_skip::skip(NAME, run.stderr.lines().last().unwrap_or("no namespace of PIDs"));
    }
    assert_eq!(run.exit, 0, "{run:?}");
    assert!(run.stdout.contains("has ended"), "{run:?}");
    assert!(run.stdout.trim_end().ends_with(": 0"), "the CPUs of another process were set: {run:?}");
}
