//! Read-only commands open nothing of the kernel for writing: watched from outside, system call by system call.

use std::process::Command;

const COMMANDS: [&[&str]; 12] = [
    &["doctor"],
    &["check"],
    &["size", "--bytes", "64M"],
    &["doctor", "low-latency"],
    &["plan", "series"],
    &["check", "low-latency"],
    &["knobs"],
    &["profiles", "series"],
    &["topo"],
    &["top", "--interval", "0.1"],
    &["latency", "--rounds", "6"],
    &["latency", "--jitter", "--seconds", "1"],
];

/// Whether a traced call asks to open or change a file of the kernel. That the kernel refused is no excuse: what an
/// ordinary user is refused, root is granted. `strace -y` shows the folder that a relative path starts from.
fn writes_to_kernel(call: &str) -> bool {
    let kernel = ["\"/proc/", "\"/sys/", "</proc", "</sys"].iter().any(|tree| call.contains(tree));
    let changes = ["O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC"].iter().any(|flag| call.contains(flag));
    let always = ["creat(", "truncate(", "mkdir", "unlink", "rename", "chmod", "chown"];
    kernel && (changes || always.iter().any(|name| call.contains(name)))
}

#[test]
fn the_watcher_sees_what_it_looks_for() {
    let at = "7 openat(AT_FDCWD</root>, ";
    assert!(writes_to_kernel(&format!("{at}\"/proc/sys/vm/swappiness\", O_WRONLY|O_CLOEXEC) = 3")));
    assert!(writes_to_kernel(&format!("{at}\"/proc/sys/vm/swappiness\", O_RDWR) = -1 EACCES (denied)")));
    assert!(writes_to_kernel(
        "7 openat(3</sys/kernel/mm>, \"ksm/run\", O_WRONLY) = 4</sys/kernel/mm/ksm/run>"
    ));
    assert!(writes_to_kernel("7 fchmodat(AT_FDCWD</root>, \"/sys/x\", 0600) = 0"));
    assert!(!writes_to_kernel(&format!("{at}\"/proc/sys/vm/swappiness\", O_RDONLY|O_CLOEXEC) = 3")));
    assert!(!writes_to_kernel(&format!("{at}\"/tmp/proc\", O_WRONLY|O_CREAT, 0666) = 3</tmp/proc>")));
}

#[test]
fn nothing_of_the_kernel_is_opened_for_writing() {
    const NAME: &str = "nothing_of_the_kernel_is_opened_for_writing";
    let home = tempfile::tempdir().expect("a temporary folder");
    let trace = home.path().join("trace");
    for args in COMMANDS {
        let ran = Command::new("strace")
            .args(["-f", "-qq", "-y", "-e", "trace=%file", "-o"])
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
