//! `planish run`: whose exit code, whose streams, and what is refused before anything is started.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use serde_json::Value;

use crate::planish::{Run, asked_to_end, command, run, run_without_hangups};

/// A folder for the report, and what stands in it afterwards.
pub fn reported(options: &[&str], program: &[&str]) -> (Run, Value) {
    let home = tempfile::tempdir().expect("a temporary folder");
    let file = home.path().join("report.json");
    let file = file.to_str().expect("text").to_owned();
    let words = [&["run", "--report", &file][..], options, &["--"], program].concat();
    let ended = run(words);
    let text = std::fs::read_to_string(&file).expect("the report was written");
    let report = Run { exit: 0, stdout: text, stderr: String::new() }.envelope();
    (ended, report)
}

#[test]
fn stdout_and_the_exit_code_are_the_programs() {
    let (ended, report) = reported(&["--memlock", "64K"], &["sh", "-c", "ulimit -l; exit 3"]);
    assert_eq!((ended.exit, ended.stdout.as_str()), (3, "64\n"), "{}", ended.stderr);
    assert_eq!((&report["exit"], &report["schema"]), (&3.into(), &"planish.run/1".into()));
    assert_eq!(report["result"]["instances"][0]["exit"], 3);
    let ended = run(["run", "--memlock", "0", "--", "sh", "-c", "ulimit -l"]);
    assert_eq!(ended.stdout, "0\n", "a limit of nothing is one: {}", ended.stderr);
    assert_eq!(run(["run", "--", "sh", "-c", "kill -9 $$"]).exit, 137);
    assert_eq!(run(["run", "--", "sh", "-c", "exit 2"]).exit, 2, "two is the program's here");
}

#[test]
fn what_is_not_started_ends_with_125_to_127() {
    assert_eq!(run(["run", "--", "no-such-program-here"]).exit, 127);
    assert_eq!(run(["run", "--", "/etc/passwd"]).exit, 126);
    for wrong in [
        &["run", "--bogus", "--", "true"][..],
        &["run", "--numa", "shm=evenly", "--", "true"],
        &["run", "--numa", "heap=bind:900", "--", "true"],
        &["run", "--cpus", "9000", "--", "true"],
        &["run", "--cpus", "0,9000", "--", "true"],
        &["run", "--cpus", "", "--", "true"],
        &["run", "--huge", "code", "--", "true"],
        &["run", "--node", "0", "--numa", "heap=local", "--", "true"],
        &["run", "--root", "/", "--", "true"],
        &["run", "--json", "--", "true"],
        &["run"],
    ] {
        let ended = run(wrong.iter().copied());
        assert_eq!((ended.exit, ended.stdout.as_str()), (125, ""), "{wrong:?}: {}", ended.stderr);
        assert!(ended.stderr.contains("error:"), "{wrong:?}: {}", ended.stderr);
    }
    let (ended, report) = reported(&["--numa", "heap=bind:900"], &["true"]);
    assert_eq!((ended.exit, &report["exit"], &report["result"]), (125, &125.into(), &Value::Null));
    assert_eq!(report["messages"][0]["hint"], "planish topo");
}

/// What is wrong is told, and not that a file which may be executed may not.
#[test]
fn what_cannot_be_started_is_told_with_the_reason_and_its_own_cure() {
    use std::os::unix::fs::PermissionsExt;
    let home = tempfile::tempdir().expect("a temporary folder");
    let file = |name: &str, bytes: &[u8]| {
        let path = home.path().join(name);
        std::fs::write(&path, bytes).expect("room");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("ours");
        path.to_str().expect("text").to_owned()
    };
    let told = |program: &str| {
        let ended = run(["run", "--", program]);
        assert_eq!(ended.exit, 126, "{}", ended.stderr);
        ended.stderr
    };
    let text = told(&file("script", b"#!/nowhere/sh\n"));
    assert!(text.contains("its first line names /nowhere/sh") && text.contains("install"), "{text}");
    let mut other = std::fs::read("/bin/true").expect("a program");
    other[18..20].copy_from_slice(&22u16.to_le_bytes());
    let (written, other) = (file("written", &other), home.path().join("other"));
    crate::planish::copy_program(written.as_ref(), &other);
    let text = told(other.to_str().expect("text"));
    assert!(text.contains("another machine (64-bit s390x)") && !text.contains("#!/bin/sh"), "{text}");
    let busy = file("busy", &std::fs::read("/bin/true").expect("a program"));
    let _writer = std::fs::File::options().append(true).open(&busy).expect("ours");
    let text = told(&busy);
    assert!(text.contains("fuser"), "{text}");
}

/// The loader names no loader itself, as a static program, and preloads into what it is given.
#[test]
fn a_program_that_is_given_to_its_loader_has_its_segments_placed() {
    const TEST: &str = "a_program_that_is_given_to_its_loader_has_its_segments_placed";
    let loaders = ["/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1"];
    let Some(loader) = loaders.into_iter().find(|loader| std::path::Path::new(loader).exists()) else {
        return planish_skip::skip(TEST, "no loader of glibc");
    };
    if !python_or_skip(TEST) {
        return;
    }
    let own = ["-c", "import sys; print(sys.executable)"];
    let known = std::process::Command::new("python3").args(own).output().expect("it is here");
    let python = String::from_utf8(known.stdout).expect("text").trim().to_owned();
    let program = "import mmap, time; m = mmap.mmap(-1, 32 << 20); time.sleep(3)";
    let (ended, report) = reported(&["--numa", "interleave"], &[loader, &python, "-c", program]);
    assert_eq!(ended.exit, 0, "{}", ended.stderr);
    assert_eq!(report["result"]["instances"][0]["segments"].as_array().map(Vec::len), Some(1), "{report}");
}

#[test]
fn who_leaves_the_dashes_out_is_told_where_they_go() {
    let ended = run(["run", "./engine", "1"]);
    assert_eq!(ended.exit, 125, "{}", ended.stderr);
    assert!(ended.stderr.contains("tip: two dashes go before the program"), "{}", ended.stderr);
}

#[test]
fn cpus_and_thp_are_inherited_and_the_drop_in_says_the_same() {
    let show = "grep -E 'Cpus_allowed_list|THP_enabled' /proc/self/status";
    let (ended, report) = reported(&["--cpus", "0", "--thp", "never"], &["sh", "-c", show]);
    assert_eq!(ended.exit, 0, "{}", ended.stderr);
    assert!(ended.stdout.contains("Cpus_allowed_list:\t0\n"), "{}", ended.stdout);
    assert!(ended.stdout.contains("THP_enabled:\t0\n"), "{}", ended.stdout);
    let instance = &report["result"]["instances"][0];
    assert!(instance["drop_in"].as_str().expect("text").contains("CPUAffinity=0\n"), "{instance}");
    assert_eq!(instance["variables"], Value::Array(Vec::new()), "no preload where none is needed");
}

#[test]
fn the_drop_in_of_a_program_that_ends_at_once_is_told() {
    let words = ["run", "--verbose", "--cpus", "0", "--", "true"];
    let told = run(words).stderr;
    assert!(told.contains("[Service]") && told.contains("CPUAffinity=0"), "{told}");
    assert!(!run(words.into_iter().filter(|word| *word != "--verbose")).stderr.contains("[Service]"));
}

#[test]
fn a_heap_that_is_seen_is_told_with_its_node() {
    let (ended, report) = reported(&["--verify-after", "1"], &["sleep", "2"]);
    assert_eq!(ended.exit, 0, "{}", ended.stderr);
    let instance = &report["result"]["instances"][0];
    assert_eq!(instance["seen"], true, "{}", ended.stderr);
    assert!(ended.stderr.contains("private of"), "{}", ended.stderr);
}

/// The first look is after two seconds: what is started later is in the next one, and the report says when that was.
#[test]
fn what_is_started_later_is_looked_at_too() {
    let script = "sleep 3 & wait; sleep 30 & wait_for=$!; sleep 4; kill $wait_for";
    let (ended, report) = reported(&[], &["sh", "-c", script]);
    assert_eq!(ended.exit, 0, "{}", ended.stderr);
    let mut pids: Vec<&str> =
        ended.stderr.lines().filter_map(|line| line.trim().strip_prefix("private of ")).collect();
    pids.iter_mut().for_each(|line| *line = line.split(' ').next().unwrap_or_default());
    pids.sort_unstable();
    pids.dedup();
    assert!(pids.len() >= 4, "the shell, and three that it started: {}", ended.stderr);
    let instance = &report["result"]["instances"][0];
    assert!(instance["looked_after_s"].as_f64().expect("seconds") > 4.5, "{instance}");
    assert_eq!(instance["private"].as_array().expect("processes").len(), 3, "{instance}");
    assert!(ended.stderr.contains("what came later is not in it"), "{}", ended.stderr);
}

/// Its datagrams have come, and nothing else is known of it.
#[test]
fn of_a_program_that_ends_before_the_look_is_told_what_its_preload_answered() {
    const TEST: &str = "of_a_program_that_ends_before_the_look_is_told_what_its_preload_answered";
    if !python_or_skip(TEST) {
        return;
    }
    let program = "import mmap; mmap.mmap(-1, 32 << 20)";
    let words = format!("python3 -c '{program}'; python3 -c '{program}'");
    let options = ["--numa", "interleave", "--prefault-threads", "1", "--verify-after", "60"];
    let (ended, report) = reported(&options, &["sh", "-c", &words]);
    assert_eq!(ended.exit, 0, "{}", ended.stderr);
    assert!(
        ended
            .stderr
            .contains("before its memory was looked at; by its preload 2 shared segments of 64 MiB in all")
    );
    assert!(
        ended.stderr.contains("placed, filled in ") && ended.stderr.contains(" by 1 thread"),
        "{}",
        ended.stderr
    );
    let instance = &report["result"]["instances"][0];
    let segments = instance["segments"].as_array().expect("a list");
    assert_eq!((&instance["seen"], segments.len()), (&Value::Bool(false), 2), "{report}");
    for segment in segments {
        assert_eq!((&segment["bytes"], &segment["threads"]), (&(32 << 20).into(), &1.into()), "{segment}");
        assert_eq!(
            segment["shares"].as_array().map(Vec::len),
            Some(0),
            "where it lay nobody knows: {segment}"
        );
    }
}

#[test]
fn a_memfd_that_was_to_be_on_a_pool_has_the_reason_beside_it() {
    const TEST: &str = "a_memfd_that_was_to_be_on_a_pool_has_the_reason_beside_it";
    if !python_or_skip(TEST) {
        return;
    }
    let lines = [
        "import mmap, os, time",
        "file = os.memfd_create('segment')",
        "os.ftruncate(file, 32 << 20)",
        "mapped = mmap.mmap(file, 32 << 20)",
        "time.sleep(3)",
    ];
    let (ended, report) = reported(&["--huge", "shm=2MiB"], &["python3", "-c", &lines.join("\n")]);
    if ended.exit == 125 {
        return planish_skip::skip(TEST, ended.stderr);
    }
    let short = report["result"]["instances"][0]["segments"][0]["short"].to_string();
    assert!(short.contains("pages from the pool: it is a memfd, or a file on tmpfs"), "{report}");
}

/// It lies as a former start has placed it, which is no reason to say that nobody saw it.
#[test]
fn a_segment_that_a_former_start_has_placed_has_its_row() {
    const TEST: &str = "a_segment_that_a_former_start_has_placed_has_its_row";
    if !python_or_skip(TEST) {
        return;
    }
    if let Err(error) = planish_sys::policy::allowed_nodes() {
        return planish_skip::skip(TEST, error);
    }
    let lines = [
        "import ctypes, mmap, sys, time",
        "libc = ctypes.CDLL(None, use_errno=True)",
        "libc.shmat.restype = ctypes.c_void_p",
        "id = int(sys.argv[1]) if len(sys.argv) > 1 else libc.shmget(0, 24 << 20, 0o1600)",
        "assert libc.shmat(id, None, 0) != ctypes.c_void_p(-1).value",
        "print(id, flush=True)",
        "time.sleep(3)",
        "len(sys.argv) > 1 and libc.shmctl(id, 0, None)",
    ];
    let program = lines.join("\n");
    let options = ["--numa", "shm=bind:0", "--prefault-threads", "1"];
    let (first, _) = reported(&options, &["python3", "-c", &program]);
    let id = first.stdout.trim();
    let (ended, report) = reported(&options, &["python3", "-c", &program, id]);
    assert_eq!((first.exit, ended.exit), (0, 0), "{} {}", first.stderr, ended.stderr);
    assert!(!ended.stderr.contains("warning"), "{}", ended.stderr);
    let segments = report["result"]["instances"][0]["segments"].as_array().expect("a list");
    assert_eq!(segments.len(), 1, "{report}");
    assert_eq!((&segments[0]["kind"], &segments[0]["threads"]), (&"sysv".into(), &0.into()), "{report}");
}

#[test]
fn a_process_that_left_the_program_is_named() {
    // Placed by a process whose parent has ended; it lives on for a moment, and so does the program.
    if !python_or_skip("a_process_that_left_the_program_is_named") {
        return;
    }
    let program = detaching();
    let (ended, _) = reported(&["--numa", "interleave", "--no-prefault"], &["python3", "-c", &program]);
    let policies = planish_sys::policy::allowed_nodes();
    if let Err(error) = policies {
        return planish_skip::skip("a_process_that_left_the_program_is_named", error);
    }
    assert_eq!(ended.exit, 0, "{}", ended.stderr);
    assert!(ended.stderr.contains("is no child of the program any more"), "{}", ended.stderr);
    assert!(ended.stderr.contains("planish map "), "{}", ended.stderr);
}

/// Whether a test can have its program in Python; if not, it is told.
pub fn python_or_skip(test: &str) -> bool {
    let known = std::process::Command::new("python3").arg("--version").output();
    let is_here = known.is_ok_and(|output| output.status.success());
    if !is_here {
        planish_skip::skip(test, "no python3 to map a segment");
    }
    is_here
}

/// A program that maps and unmaps for its whole life is looked at all the same, and not once for each segment.
#[test]
fn segments_that_come_and_go_neither_hinder_looks_nor_bring_them() {
    if !python_or_skip("segments_that_come_and_go_neither_hinder_looks_nor_bring_them") {
        return;
    }
    for (pause, count) in [("0.15", "40"), ("0.5", "12")] {
        let body = format!("kept = mmap.mmap(-1, 4 << 20); time.sleep({pause}); kept.close()");
        let program = format!("import mmap, time\nfor _ in range({count}): {body}");
        let options = ["--numa", "interleave", "--no-prefault", "--min", "1M"];
        let (ended, report) = reported(&options, &["python3", "-c", &program]);
        assert_eq!(ended.exit, 0, "{}", ended.stderr);
        let instance = &report["result"]["instances"][0];
        assert_eq!(instance["seen"], true, "{pause}: {}", ended.stderr);
        let looks = ended.stderr.matches("after its start").count();
        assert!((1..=2).contains(&looks), "{pause}: {looks} looks: {}", ended.stderr);
        assert!(instance["segments"].as_array().expect("a list").len() <= 1, "{pause}: unmapped: {instance}");
        assert!(ended.stderr.contains("placed after its memory was looked at"), "{pause}: {}", ended.stderr);
        assert!(!ended.stderr.contains("has mapped no shared segment"), "{pause}: {}", ended.stderr);
    }
}

/// A program that tells, as its preload would, that it fills a segment for four seconds.
const FILLS: &str = "import ctypes, mmap, os, socket, struct, time
settings = dict(item.split('=', 1) for item in os.environ['PLANISH_SHM'].split(':'))
listener = b'\\0' + settings['answer'].encode()
magic = int.from_bytes(b'planish\\x01', 'big')
kept = mmap.mmap(-1, 4 << 20)
address = ctypes.addressof(ctypes.c_char.from_buffer(kept))
sender = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
for skipped, seconds in ((6, 4), (0, 2)):
    notice = struct.pack('<QQQQIIIIiiiI', magic, address, 4 << 20, 1, os.getpid(), 1, 1, skipped, 0, 0, 0, 0)
    sender.sendto(notice, listener)
    time.sleep(seconds)
";

/// Filling the memory of a large server takes longer than a program is waited for: it is no program without a segment.
#[test]
fn a_segment_that_is_being_filled_is_waited_for() {
    if !python_or_skip("a_segment_that_is_being_filled_is_waited_for") {
        return;
    }
    let (ended, report) = reported(&["--numa", "interleave"], &["python3", "-c", FILLS]);
    assert_eq!(ended.exit, 0, "{}", ended.stderr);
    assert!(ended.stderr.contains("fills a shared segment of 4 MiB"), "{}", ended.stderr);
    assert!(!ended.stderr.contains("has mapped no shared segment"), "{}", ended.stderr);
    let instance = &report["result"]["instances"][0];
    assert_eq!(instance["segments"].as_array().expect("a list").len(), 1, "{instance}");
    assert!(instance["looked_after_s"].as_f64().expect("seconds") > 4.0, "{instance}");
}

/// A handler that leaves mmap leaves a fill that nobody ends: other segments are looked at all the same.
#[test]
fn a_fill_that_was_left_is_told_and_holds_up_no_look() {
    if !python_or_skip("a_fill_that_was_left_is_told_and_holds_up_no_look") {
        return;
    }
    let left = FILLS.replace("((6, 4), (0, 2))", "((6, 9),)");
    assert_ne!(left, FILLS);
    let (ended, report) = reported(&["--numa", "interleave", "--no-prefault"], &["python3", "-c", &left]);
    assert_eq!(ended.exit, 0, "{}", ended.stderr);
    assert_eq!(ended.stderr.matches("which has got no page for").count(), 1, "{}", ended.stderr);
    assert_eq!(report["result"]["instances"][0]["seen"], true, "{}", ended.stderr);
}

/// A library that calls the kernel for each mapping, so that nothing behind it sees one.
const HIDES: &str = r#"
#define _GNU_SOURCE
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
void *mmap(void *address, size_t bytes, int rights, int flags, int file, off_t offset) {
    return (void *)syscall(SYS_mmap, address, bytes, rights, flags, file, offset);
}
void *mmap64(void *address, size_t bytes, int rights, int flags, int file, off_t offset) {
    return mmap(address, bytes, rights, flags, file, offset);
}
"#;

/// The user's own preload stands in front, and what it hides is told.
#[test]
fn a_library_that_hides_segments_from_the_preload_is_told() {
    const TEST: &str = "a_library_that_hides_segments_from_the_preload_is_told";
    if !python_or_skip(TEST) {
        return;
    }
    let home = tempfile::tempdir().expect("a temporary folder");
    let (source, library) = (home.path().join("hides.c"), home.path().join("hides.so"));
    std::fs::write(&source, HIDES).expect("room");
    let made =
        std::process::Command::new("cc").args(["-shared", "-fPIC", "-o"]).args([&library, &source]).status();
    if !made.is_ok_and(|status| status.success()) {
        return planish_skip::skip(TEST, "no C compiler");
    }
    let report = home.path().join("report.json");
    let report = report.to_str().expect("text");
    // To look at the large one takes more than a tenth of a second, and another look is worth it all the same.
    for mib in [4, 1024] {
        let program = format!(
            "import mmap, os, time\nkept = mmap.mmap(-1, {mib} << 20)\n\
             for at in range(0, len(kept), 4096): kept[at] = 1\n\
             print(os.environ['LD_PRELOAD'], flush=True)\ntime.sleep(7)"
        );
        let options = ["run", "--numa", "interleave", "--min", "1M", "--report", report];
        let words = [&options[..], &["--", "python3", "-c", &program]].concat();
        let mut hidden = command(home.path(), words);
        let ran = Run::from(hidden.env("LD_PRELOAD", &library).output().expect("it starts"));
        assert_eq!(ran.exit, 0, "{}", ran.stderr);
        let first = format!("{}:", library.display());
        assert!(ran.stdout.starts_with(&first) && ran.stdout.contains("planish-preload-"), "{}", ran.stdout);
        assert_eq!(
            ran.stderr.matches("of which its preload has told nothing").count(),
            1,
            "{mib}: {}",
            ran.stderr
        );
        assert!(!ran.stderr.contains("has mapped no shared segment"), "{}", ran.stderr);
        let written = std::fs::read_to_string(report).expect("the report was written");
        assert!(written.contains("of which its preload has told nothing"), "{mib}: {written}");
    }
}

/// Abstract sockets are of a network namespace: the preload told its launcher nothing there, which said that it had not
/// seen the segments that it had filled.
#[test]
fn what_a_program_in_another_network_namespace_got_is_told() {
    const TEST: &str = "what_a_program_in_another_network_namespace_got_is_told";
    if !python_or_skip(TEST) {
        return;
    }
    let program = |root: &str| {
        format!(
            "import ctypes, mmap, os, sys, time\nlibc = ctypes.CDLL(None, use_errno=True)\n\
             if libc.unshare(0x40000000): sys.exit('unshared: ' + os.strerror(ctypes.get_errno()))\n{root}\n\
             time.sleep(5)"
        )
    };
    let options = ["--numa", "interleave", "--min", "1M", "--verify-after", "2"];
    let maps = "kept = mmap.mmap(-1, 4 << 20)";
    let hides = "import platform\ncall = 9 if platform.machine() == 'x86_64' else 222\n\
                 libc.syscall(ctypes.c_long(call), None, ctypes.c_long(4 << 20), 3, 0x21, -1, ctypes.c_long(0))";
    let elsewhere = format!("os.chroot('/proc/self')\n{maps}");
    // Who could have told of its segments and did not has a preload that did not see them.
    for (root, segments, is_hidden) in [(maps, 1, false), (&*elsewhere, 0, false), (hides, 0, true)] {
        let (ended, report) = reported(&options, &["python3", "-c", &program(root)]);
        if ended.stderr.contains("unshared: ") {
            return planish_skip::skip(TEST, ended.stderr);
        }
        let found = &report["result"]["instances"][0]["segments"];
        assert_eq!(found.as_array().expect("segments").len(), segments, "{}", ended.stderr);
        assert_eq!(
            ended.stderr.contains("of which its preload has told nothing"),
            is_hidden,
            "{}",
            ended.stderr
        );
        let is_told = ended.stderr.contains("is in another network namespace and sees other files");
        assert_eq!(is_told, segments == 0 && !is_hidden, "{}", ended.stderr);
    }
}

/// The first process of a daemon ends at once: nobody has looked at anything then.
#[test]
fn a_daemon_whose_first_process_has_ended_is_named() {
    const TEST: &str = "a_daemon_whose_first_process_has_ended_is_named";
    if !python_or_skip(TEST) {
        return;
    }
    // The first process ends when the daemon has its segment, as those do that tell their starter that all is well.
    let lines = [
        "import mmap, os, time",
        "ready, tell = os.pipe()",
        "if os.fork():",
        "    os.read(ready, 1)",
        "    os._exit(0)",
        "os.setsid()",
        "if os.fork(): os._exit(0)",
        "kept = mmap.mmap(-1, 4 << 20)",
        "for stream in range(3): os.close(stream)",
        "os.write(tell, b'x')",
        "time.sleep(4)",
    ];
    let options = ["--numa", "interleave", "--no-prefault", "--min", "1M"];
    let (ended, report) = reported(&options, &["python3", "-c", &lines.join("\n")]);
    assert_eq!(ended.exit, 0, "{}", ended.stderr);
    assert_eq!(ended.stderr.matches("is no child of the program any more").count(), 1, "{}", ended.stderr);
    assert!(ended.stderr.contains("planish map "), "{}", ended.stderr);
    assert!(report["messages"].to_string().contains("is no child of the program any more"), "{report}");
}

/// A daemon that was started without the preload has placed nothing.
#[test]
fn a_daemon_without_the_preload_is_not_said_to_have_placed_segments() {
    const TEST: &str = "a_daemon_without_the_preload_is_not_said_to_have_placed_segments";
    if !python_or_skip(TEST) {
        return;
    }
    let daemon = "import mmap, os, time\nkept = mmap.mmap(-1, 4 << 20)\n\
                  for stream in range(3): os.close(stream)\ntime.sleep(7)";
    let program = format!(
        "import mmap, os, subprocess, time\nkept = mmap.mmap(-1, 4 << 20)\n\
         if not os.fork():\n  os.setsid()\n  if os.fork(): os._exit(0)\n  del os.environ['LD_PRELOAD']\n  \
         os.execvp('python3', ['python3', '-c', {daemon:?}])\nos.wait()\ntime.sleep(3)"
    );
    let options = ["--numa", "interleave", "--no-prefault", "--min", "1M"];
    let (ended, _) = reported(&options, &["python3", "-c", &program]);
    assert_eq!(ended.exit, 0, "{}", ended.stderr);
    let told = |words: &str| ended.stderr.matches(words).count();
    assert_eq!(told("has shared segments and not the preload (placed only"), 1, "{}", ended.stderr);
    assert_eq!(told("has segments that were placed, and is no child"), 0, "{}", ended.stderr);
}

/// The process that placed a segment may have ended, and others hold it: of it nothing was said, or that it is gone.
#[test]
fn who_holds_a_segment_that_a_process_placed_which_has_ended_is_named() {
    const TEST: &str = "who_holds_a_segment_that_a_process_placed_which_has_ended_is_named";
    if !python_or_skip(TEST) {
        return;
    }
    let daemon = "for stream in range(3): os.close(stream)\ntime.sleep(7)";
    let forked = "kept = mmap.mmap(-1, 4 << 20)\nif os.fork(): os._exit(4)\nos.setsid()";
    let twice = "if os.fork():\n  time.sleep(3)\n  os._exit(4)\nos.setsid()\nkept = mmap.mmap(-1, 4 << 20)\n\
                 if os.fork(): os._exit(0)";
    let itself = "if os.fork():\n  time.sleep(3)\n  os._exit(4)\nos.setsid()\nif os.fork(): os._exit(0)\n\
                  kept = mmap.mmap(-1, 4 << 20)";
    for (how, code) in [("forked", forked), ("twice", twice), ("itself", itself)] {
        let program = format!("import mmap, os, time\n{code}\n{daemon}");
        let (ended, _) = reported(&["--numa", "interleave", "--min", "1M"], &["python3", "-c", &program]);
        assert_eq!(ended.exit, 4, "{how}: {}", ended.stderr);
        let named = ended.stderr.matches("is no child of the program any more").count();
        assert_eq!(named, 1, "{how}: {}", ended.stderr);
        assert!(!ended.stderr.contains("that were placed are gone"), "{how}: {}", ended.stderr);
    }
}

/// A filter that ends a program at a call that it does not make itself knows nothing of the preload.
#[test]
fn a_program_under_a_filter_of_its_own_is_left_alone() {
    if !python_or_skip("a_program_under_a_filter_of_its_own_is_left_alone") {
        return;
    }
    // Load the number of the call; clone kills, all else is let through.
    let lines = [
        "import ctypes, mmap, platform, struct, time",
        "clone = 56 if platform.machine() == 'x86_64' else 220",
        "code = [(0x20, 0, 0, 0), (0x15, 0, 1, clone), (0x06, 0, 0, 0x80000000), (0x06, 0, 0, 0x7fff0000)]",
        "rules = ctypes.create_string_buffer(b''.join(struct.pack('HBBI', *rule) for rule in code))",
        "program = struct.pack('HxxxxxxQ', len(code), ctypes.addressof(rules))",
        "libc = ctypes.CDLL(None)",
        "assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, program) == 0",
        "kept = mmap.mmap(-1, 4 << 20)",
        "time.sleep(3)",
    ];
    let options = ["--numa", "interleave", "--min", "1M", "--prefault-threads", "1"];
    let (ended, _) = reported(&options, &["python3", "-c", &lines.join("\n")]);
    assert_eq!(ended.exit, 0, "{}", ended.stderr);
    assert!(ended.stderr.contains("is under a seccomp filter that was put upon it"), "{}", ended.stderr);
    assert!(!ended.stderr.contains("has mapped no shared segment"), "{}", ended.stderr);
}

/// The name of the socket is known to everybody, and the kernel says who sends.
#[test]
fn notices_of_strangers_are_passed_over() {
    const TEST: &str = "notices_of_strangers_are_passed_over";
    if !rustix::process::geteuid().is_root() {
        return planish_skip::skip(TEST, "only root becomes somebody else");
    }
    if !python_or_skip(TEST) {
        return;
    }
    // The stranger leaves the program, and comes back as nobody.
    let lines = [
        "import os, time",
        "if os.fork() == 0:",
        "    os.setgroups([]); os.setgid(65534); os.setuid(65534)",
        "    if os.fork() == 0:",
        "        time.sleep(0.3)",
    ];
    let send = FILLS.lines().map(|line| format!("        {line}").replace("(6, 4)", "(0, 3)"));
    let after = ["        os._exit(0)", "    os._exit(0)", "os.wait()", "time.sleep(4)"];
    let program: Vec<String> =
        lines.into_iter().map(str::to_owned).chain(send).chain(after.map(str::to_owned)).collect();
    let (ended, report) = reported(&["--numa", "interleave"], &["python3", "-c", &program.join("\n")]);
    assert_eq!(ended.exit, 0, "{}", ended.stderr);
    assert_eq!(report["result"]["instances"][0]["segments"], Value::Array(Vec::new()), "{}", ended.stderr);
    assert!(!ended.stderr.contains("placed"), "{}", ended.stderr);
}

/// As process 1 of a container it gets all children whose parents have ended, and nobody else can bury them.
#[test]
fn process_1_leaves_no_zombies() {
    const TEST: &str = "process_1_leaves_no_zombies";
    let unshare = ["--pid", "--fork", "--mount-proc", "--kill-child"];
    let may = std::process::Command::new("unshare").args(unshare).arg("true").output();
    if !may.as_ref().is_ok_and(|output| output.status.success()) {
        return planish_skip::skip(TEST, format!("no namespace of its own: {may:?}"));
    }
    let script =
        "for i in 1 2 3 4 5 6 7 8; do ( (sleep 0.2) & ) ; done; sleep 3; cat /proc/[0-9]*/stat; exit 7";
    let mut inside = std::process::Command::new("unshare");
    inside
        .args(unshare)
        .arg(env!("CARGO_BIN_EXE_planish"))
        .args(["run", "--cpus", "0", "--", "sh", "-c", script]);
    let ended = Run::from(inside.output().expect("it starts"));
    assert_eq!(ended.exit, 7, "{}", ended.stderr);
    assert!(ended.stdout.contains("(planish)") && ended.stdout.starts_with("1 "), "{}", ended.stdout);
    assert!(!ended.stdout.contains("(sleep) Z"), "{}", ended.stdout);
}

/// There the program has another number than here, 1 as often as not.
#[test]
fn a_program_in_another_pid_namespace_is_told_by_its_number_here() {
    const TEST: &str = "a_program_in_another_pid_namespace_is_told_by_its_number_here";
    if !python_or_skip(TEST) {
        return;
    }
    let unshare = ["unshare", "--pid", "--fork", "--kill-child"];
    let may = std::process::Command::new(unshare[0]).args(&unshare[1..]).arg("true").output();
    if !may.as_ref().is_ok_and(|output| output.status.success()) {
        return planish_skip::skip(TEST, format!("no namespace of its own: {may:?}"));
    }
    let program = "import mmap, time\nkept = mmap.mmap(-1, 4 << 20)\ntime.sleep(2)";
    let options = ["--numa", "interleave", "--no-prefault", "--min", "1M"];
    let (ended, report) = reported(&options, &[&unshare[..], &["python3", "-c", program]].concat());
    assert_eq!(ended.exit, 0, "{}", ended.stderr);
    let segments = report["result"]["instances"][0]["segments"].as_array().expect("a list");
    assert_eq!(segments.len(), 1, "{}", ended.stderr);
}

/// What the wish for huge pages did not reach is told, and not only shown.
#[test]
fn a_heap_without_the_pages_that_were_wanted_is_a_warning() {
    const TEST: &str = "a_heap_without_the_pages_that_were_wanted_is_a_warning";
    if !python_or_skip(TEST) {
        return;
    }
    let lines = [
        "import mmap, time",
        "own = mmap.mmap(-1, 48 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)",
        "own.madvise(15)",
        "for at in range(0, 48 << 20, 4096): own[at] = 1",
        "time.sleep(6)",
    ];
    let (ended, report) = reported(&["--huge", "heap"], &["python3", "-c", &lines.join("\n")]);
    if ended.exit == 125 {
        return planish_skip::skip(TEST, ended.stderr);
    }
    let why = "MiB lies on huge pages; what a program maps without its malloc";
    assert_eq!(ended.stderr.matches(why).count(), 1, "once: {}", ended.stderr);
    let short = &report["result"]["instances"][0]["private"][0]["short"];
    assert!(short.to_string().contains(why), "{report}");
}

/// A program of Python that maps a segment in a grandchild whose parent ends.
fn detaching() -> String {
    let lines = [
        "import mmap, os, time",
        "child = os.fork()",
        "if child == 0:",
        "    if os.fork() == 0:",
        "        time.sleep(0.3)",
        "        kept = mmap.mmap(-1, 64 << 20)",
        "        time.sleep(4)",
        "    os._exit(0)",
        "os.waitpid(child, 0)",
        "time.sleep(3)",
    ];
    lines.join("\n")
}

#[test]
fn signals_reach_the_program() {
    let home = tempfile::tempdir().expect("a temporary folder");
    let script = "trap 'exit 41' TERM; echo ready; while :; do sleep 0.05; done";
    assert_eq!(asked_to_end(command(home.path(), ["run", "--", "sh", "-c", script])), Some(41));
}

/// The kernel gives a signal to the first thread where that has it not blocked; and that one may sleep in a look at a
/// file system that does not answer.
#[test]
fn one_thread_alone_takes_the_signals_of_the_program() {
    let script = "grep SigBlk /proc/self/status; sleep 0.5; grep -E 'Name|SigBlk' /proc/$PPID/task/*/status";
    let ran = run(["run", "--", "sh", "-c", script]);
    let masks = ran.stdout.lines().filter_map(|line| line.split_once("SigBlk:")).map(|(_, mask)| mask.trim());
    let blocks = |mask: &str| u64::from_str_radix(mask, 16).expect("a mask") & 1 << (15 - 1) != 0;
    let blocked: Vec<bool> = masks.map(blocks).collect();
    assert!(blocked.len() >= 3, "{}", ran.stdout);
    assert!(!blocked[0], "the program has it: {}", ran.stdout);
    assert_eq!(blocked[1..].iter().filter(|blocks| !**blocks).count(), 1, "{}", ran.stdout);
}

#[test]
fn a_signal_that_planish_was_started_to_ignore_ends_no_program() {
    let home = tempfile::tempdir().expect("a temporary folder");
    let run = run_without_hangups(home.path(), "run -- sh -c 'kill -HUP $PPID; kill -HUP $$; echo alive'");
    assert_eq!((run.exit, run.stdout.as_str(), run.stderr.as_str()), (0, "alive\n", ""));
}

/// Started by a Python that ignores `number` and becomes planish.
fn ignoring(number: i32, words: &[&str]) -> Run {
    let home = tempfile::tempdir().expect("a temporary folder");
    let become_it = "import os, signal, sys\nsignal.signal(int(sys.argv[1]), signal.SIG_IGN)\n\
                     os.execv(sys.argv[2], sys.argv[2:])";
    let mut python = std::process::Command::new("python3");
    python.args(["-c", become_it, &number.to_string(), env!("CARGO_BIN_EXE_planish")]).args(words);
    python.current_dir(home.path()).env("HOME", home.path()).stdin(Stdio::null());
    python.output().expect("it starts").into()
}

/// systemd starts each service with SIGPIPE ignored: one that lives on EPIPE would end at the first client that hangs
/// up.
#[test]
fn a_program_ignores_what_planish_was_started_to_ignore() {
    const TEST: &str = "a_program_ignores_what_planish_was_started_to_ignore";
    const SHOW: [&str; 3] = ["grep", "SigIgn", "/proc/self/status"];
    // SIGPIPE, SIGCHLD, and SIGHUP and SIGINT, which commands have handlers for, of what the program ignores.
    let ignored = |ran: &Run| {
        let mask = ran
            .stdout
            .trim()
            .strip_prefix("SigIgn:\t")
            .map(|mask| u64::from_str_radix(mask, 16).expect("a mask"));
        mask.map(|mask| [13, 17, 1, 2].map(|number| mask >> (number - 1) & 1 == 1))
    };
    let home = tempfile::tempdir().expect("a temporary folder");
    for (trap, is_ignored) in [("trap '' PIPE HUP INT", true), ("trap - PIPE HUP INT", false)] {
        for before in ["run --cpus 0 --", "text cc --", "text record -o r --"] {
            let line = format!("{trap}; exec {} {before} {}", env!("CARGO_BIN_EXE_planish"), SHOW.join(" "));
            let mut shell = std::process::Command::new("sh");
            let ran = shell.args(["-c", &line]).current_dir(home.path()).output().expect("a shell");
            let ran = Run::from(ran);
            if before.contains("record") && ignored(&ran).is_none() {
                planish_skip::skip(TEST, format!("nothing is recorded here: {}", ran.stderr));
                continue;
            }
            let [pipe, child, others @ ..] =
                ignored(&ran).unwrap_or_else(|| panic!("{before}: {}", ran.stderr));
            assert_eq!((pipe, child), (is_ignored, false), "{before}");
            // What the test itself was started to ignore no shell can heed.
            assert!(!is_ignored || others == [true, true], "{before}: {others:?}");
        }
    }
    if python_or_skip(TEST) {
        // Python itself ignores SIGPIPE.
        let ran = ignoring(17, &[&["run", "--cpus", "0", "--"][..], &SHOW].concat());
        let of_child = ignored(&ran).map(|ignored| (ignored[0], ignored[1]));
        assert_eq!(of_child, Some((true, true)), "{}", ran.stderr);
    }
}

/// Then the kernel buries children itself, and their exit codes with them.
#[test]
fn the_exit_code_is_the_programs_where_ends_of_children_were_ignored() {
    if !python_or_skip("the_exit_code_is_the_programs_where_ends_of_children_were_ignored") {
        return;
    }
    let ran = ignoring(17, &["run", "--cpus", "0", "--", "sh", "-c", "sleep 0.5; exit 5"]);
    assert_eq!((ran.exit, ran.stderr.as_str()), (5, ""));
}

/// The disk of a report may be full at the end: no supervisor should take that for a failure of its service.
#[test]
fn a_report_that_cannot_be_written_changes_no_exit_code() {
    for program in ["exit 5", "exit 0"] {
        let ran = run(["run", "--cpus", "0", "--report", "/dev/full", "--", "sh", "-c", program]);
        assert_eq!(ran.exit, i32::from(program.ends_with('5')) * 5, "{}", ran.stderr);
        assert_eq!(ran.stderr.matches("cannot write /dev/full").count(), 1, "{}", ran.stderr);
    }
}

/// A program of Python that tells each signal that it gets, and ends with the last one.
const TELLS: &str = "import os, signal
for number in range(1, 65):
    if number not in (9, 17, 19, 32, 33):
        signal.signal(number, lambda number, frame: os.write(1, b'%d\\n' % number))
os.write(1, b'ready\\n')
while True:
    number = signal.sigtimedwait([], 0.05)
";

/// A service that is told by SIGWINCH, SIGABRT (of a watchdog) or a real-time signal what to do is told through
/// planish.
#[test]
fn every_signal_that_may_be_the_programs_reaches_it() {
    if !python_or_skip("every_signal_that_may_be_the_programs_reaches_it") {
        return;
    }
    for trap in ["trap - HUP INT QUIT", "trap '' HUP INT QUIT WINCH 40"] {
        every_signal_reaches_it_after(trap);
    }
}

/// A shell ignores SIGINT for what stands behind `&`, and nohup SIGHUP: a program that sets a handler has them all the
/// same.
fn every_signal_reaches_it_after(trap: &str) {
    let home = tempfile::tempdir().expect("a temporary folder");
    let line = format!("{trap}; exec \"$0\" run -q --cpus 0 -- python3 -c \"$1\"");
    let mut planish = std::process::Command::new("bash");
    planish
        .args(["-c", &line, env!("CARGO_BIN_EXE_planish"), TELLS])
        .env("HOME", home.path())
        .stdin(Stdio::null());
    let mut planish = planish.stdout(Stdio::piped()).spawn().expect("it starts");
    let mut lines = BufReader::new(planish.stdout.take().expect("its output")).lines();
    let mut next = || lines.next().expect("a line").expect("text");
    assert_eq!(next(), "ready");
    let pid = planish.id().to_string();
    let send = |number: &str| {
        let sent = std::process::Command::new("kill").args(["-s", number, &pid]).status();
        assert!(sent.expect("kill is everywhere").success());
    };
    let own = [4, 7, 8, 9, 11, 17, 19, 32, 33];
    for number in (1..=64).filter(|number| !own.contains(number)) {
        send(&number.to_string());
        assert_eq!(next(), number.to_string(), "{trap}");
    }
    // Its end is seen as it is.
    let below = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).expect("one");
    std::process::Command::new("kill").args(["-s", "9", below.trim()]).status().expect("kill is everywhere");
    assert_eq!(planish.wait().expect("it ends").code(), Some(137));
}

/// What a terminal sends it sends to the program as well, and what a person sends through planish is sent on, there
/// too.
#[test]
fn keys_reach_the_program_once_and_a_job_stops_as_a_whole() {
    const TEST: &str = "keys_reach_the_program_once_and_a_job_stops_as_a_whole";
    if !python_or_skip(TEST) {
        return;
    }
    let home = tempfile::tempdir().expect("a temporary folder");
    let program = home.path().join("program.py");
    std::fs::write(&program, TELLS).expect("room");
    let script = home.path().join("terminal.py");
    std::fs::write(&script, TERMINAL).expect("room");
    let mut python = std::process::Command::new("python3");
    python.arg(&script).arg(env!("CARGO_BIN_EXE_planish")).arg(&program).env("HOME", home.path());
    let ran = Run::from(python.output().expect("it starts"));
    assert_eq!(
        (ran.exit, ran.stdout.as_str()),
        (0, "keys 2\nkill 2\nstopped T T\nruns S S\n"),
        "{}",
        ran.stderr
    );
}

/// Has planish and a program of Python in the foreground of a terminal of their own.
const TERMINAL: &str = "import os, pty, select, signal, sys, time
pid, terminal = pty.fork()
if pid == 0:
    # A shell is between: it is the leader of the session, and planish is not.
    os.execvp('sh', ['sh', '-c', sys.argv[1] + ' run -q --cpus 0 -- python3 ' + sys.argv[2] + '; true'])
told = b''
def until(wanted, seconds):
    global told
    end = time.time() + seconds
    while time.time() < end and wanted not in told:
        if select.select([terminal], [], [], 0.05)[0]:
            told += os.read(terminal, 4096)
def numbers():
    global told
    until(b'nothing', 0.5)
    lines, told = told.decode().replace('^C', '').split(), b''
    return ' '.join(lines)
until(b'ready', 30)
told = b''
def below(parent):
    return int(open(f'/proc/{parent}/task/{parent}/children').read().split()[0])
planish = below(pid)
program = below(planish)
def states(wanted):
    for _ in range(100):
        found = [open(f'/proc/{it}/stat').read().rsplit(')', 1)[1].split()[0] for it in (planish, program)]
        if found == [wanted, wanted]:
            break
        time.sleep(0.05)
    return ' '.join(found)
os.write(terminal, b'\\x03')
print('keys', numbers())
os.kill(planish, signal.SIGINT)
print('kill', numbers())
# This one has no handler here, and so stops.
os.kill(program, signal.SIGSTOP)
os.kill(planish, signal.SIGTSTP)
print('stopped', states('T'))
os.kill(planish, signal.SIGCONT)
print('runs', states('S'))
os.kill(program, signal.SIGKILL)
os.waitpid(pid, 0)
";
