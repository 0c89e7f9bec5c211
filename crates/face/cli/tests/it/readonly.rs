//! Read-only commands open nothing of the kernel for writing: watched from outside, system call by system call.

use std::process::Command;

const COMMANDS: [&[&str]; 6] = [
    &["doctor"],
    &["doctor", "low-latency"],
    &["plan", "series"],
    &["check", "low-latency"],
    &["knobs"],
    &["topo"],
];

/// Whether a traced call opens a file of the kernel in a way that could change it.
fn writes_to_kernel(call: &str) -> bool {
    let kernel = ["\"/proc/", "\"/sys/"].iter().any(|tree| call.contains(tree));
    let failed = call.contains(") = -1 E");
    kernel && !failed && ["O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC"].iter().any(|flag| call.contains(flag))
}

#[test]
fn the_watcher_sees_what_it_looks_for() {
    assert!(writes_to_kernel("7 openat(AT_FDCWD, \"/proc/sys/vm/swappiness\", O_WRONLY|O_CLOEXEC) = 3"));
    assert!(!writes_to_kernel("7 openat(AT_FDCWD, \"/proc/sys/vm/swappiness\", O_RDONLY|O_CLOEXEC) = 3"));
    assert!(!writes_to_kernel("7 openat(AT_FDCWD, \"/tmp/proc\", O_WRONLY|O_CREAT, 0666) = 3"));
}

#[test]
fn nothing_of_the_kernel_is_opened_for_writing() {
    const NAME: &str = "nothing_of_the_kernel_is_opened_for_writing";
    let home = tempfile::tempdir().expect("a temporary folder");
    let trace = home.path().join("trace");
    for args in COMMANDS {
        let ran = Command::new("strace")
            .args(["-f", "-qq", "-e", "trace=open,openat,openat2,creat,truncate", "-o"])
            .arg(&trace)
            .arg(env!("CARGO_BIN_EXE_planish"))
            .args(args)
            .current_dir(home.path())
            .env("HOME", home.path())
            .output();
        let Ok(output) = ran else { return planish_skip::skip(NAME, "no strace") };
        let calls = std::fs::read_to_string(&trace).unwrap_or_default();
        if calls.is_empty() {
            return planish_skip::skip(NAME, String::from_utf8_lossy(&output.stderr).trim());
        }
        assert!(
            calls.contains("\"/proc/meminfo\"") || calls.contains("\"/sys/"),
            "{args:?} read nothing: {calls}"
        );
        let writes: Vec<&str> = calls.lines().filter(|call| writes_to_kernel(call)).collect();
        assert!(writes.is_empty(), "{args:?}: {writes:#?}");
    }
}
