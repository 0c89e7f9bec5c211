//! Options of mounts, set and put back by the program itself on the kernel of this machine: in a mount namespace of the
//! test's own, on mounts that are made there. No mount of the machine is touched, and that is looked at, too.

use std::process::Command;

/// Mounts of our own: a tmpfs, and a folder of the disk that is mounted again under a name with a blank. What profiles
/// want they want of these by name. The lock of the machine's own planish is not met: it lies in /run.
const APART: &str = r#"
    [ "$(readlink /proc/self/ns/mnt)" != "$OUTSIDE" ] || exit 77
    mount -t tmpfs none /run || exit 77
    mkdir memory "disk a" source below && mount -t tmpfs -o size=4m,nosuid,nodev,mode=0711 none memory || exit 77
    mount --bind source "disk a" && mount -o remount,bind,nosuid,noexec,strictatime "disk a" || exit 77
    planish() { "$PLANISH" --state state "$@" > out 2>&1 || echo "planish $1 left with $?"; }
    of() { grep " $PWD/$1 " /proc/self/mountinfo | tail -n 1; }
    options() { of "$1" | cut -d ' ' -f 6; }
    system() { of "$1" | sed 's/.* - //' | cut -d ' ' -f 3 | sed s/,inode64//; }
    told() { echo "$1: $(options 'disk\\040a') $(options memory) $(system memory)"; }
    "#;

const LIFE: &str = r#"
    told before
    planish apply ./a.toml --yes --allow availability; told applied
    planish check ./a.toml
    planish apply ./a.toml --yes --allow availability; told twice
    head -c 2000000 /dev/zero > memory/file
    planish apply ./small.toml --yes --allow availability; grep -q 'files in it take' out && echo too small; told full
    rm memory/file
    planish undo --all; told undone
    for delay in 0.01 0.03 0.06 0.1 0.2; do
        $PLANISH --state state apply ./a.toml --yes --allow availability > out 2>&1 & applying=$!
        sleep $delay; kill -9 $applying 2> /dev/null; wait $applying 2> /dev/null
        planish undo --all; told killed
    done
    planish apply ./a.toml --yes --allow availability
    head -c 8000000 /dev/zero > memory/file
    planish undo --all; told filled; grep -q 'cannot be smaller' out && echo too full
    rm memory/file; planish undo --all; told emptied
    planish apply ./a.toml --yes --allow availability
    mount -t tmpfs -o size=8m,huge=within_size none memory; planish undo --all; told covered
    number=$(grep -o 'undo [0-9]* --force' out | head -n 1 | cut -d ' ' -f 2)
    umount memory; planish undo "$number" --force; told uncovered
"#;

const TOLD: &str = "\
before: rw,nosuid,noexec rw,nosuid,nodev,relatime rw,size=4096k,mode=711
applied: rw,nosuid,noexec,noatime rw,nosuid,nodev,relatime rw,size=16384k,mode=711,huge=advise
twice: rw,nosuid,noexec,noatime rw,nosuid,nodev,relatime rw,size=16384k,mode=711,huge=advise
planish apply left with 3
too small
full: rw,nosuid,noexec,noatime rw,nosuid,nodev,relatime rw,size=16384k,mode=711,huge=advise
undone: rw,nosuid,noexec rw,nosuid,nodev,relatime rw,size=4096k,mode=711
killed: rw,nosuid,noexec rw,nosuid,nodev,relatime rw,size=4096k,mode=711
killed: rw,nosuid,noexec rw,nosuid,nodev,relatime rw,size=4096k,mode=711
killed: rw,nosuid,noexec rw,nosuid,nodev,relatime rw,size=4096k,mode=711
killed: rw,nosuid,noexec rw,nosuid,nodev,relatime rw,size=4096k,mode=711
killed: rw,nosuid,noexec rw,nosuid,nodev,relatime rw,size=4096k,mode=711
planish undo left with 5
filled: rw,nosuid,noexec rw,nosuid,nodev,relatime rw,size=16384k,mode=711
too full
emptied: rw,nosuid,noexec rw,nosuid,nodev,relatime rw,size=4096k,mode=711
planish undo left with 1
covered: rw,nosuid,noexec rw,relatime rw,size=8192k,huge=within_size
uncovered: rw,nosuid,noexec rw,nosuid,nodev,relatime rw,size=4096k,mode=711
";

/// Options of all mounts of this machine.
fn options_here() -> String {
    let table = std::fs::read_to_string("/proc/self/mountinfo").expect("a table");
    table.lines().map(|line| line.split(' ').skip(3).take(3).collect::<Vec<_>>().join(" ") + "\n").collect()
}

#[test]
fn options_of_mounts_are_set_and_put_back_and_no_other_option_is_lost() {
    let test = "options_of_mounts_are_set_and_put_back_and_no_other_option_is_lost";
    if !rustix::process::geteuid().is_root() {
        return planish_skip::skip(test, "only root makes mounts");
    }
    if !std::path::Path::new("/sys/kernel/mm/transparent_hugepage/shmem_enabled").exists() {
        return planish_skip::skip(test, "this kernel has no huge pages in shared memory");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path().canonicalize().expect("it is there");
    let at = at.to_str().expect("text");
    let profile = |name: &str, want: &str| {
        let text = format!("name = \"{name}\"\nsummary = \"s\"\n[want]\n{want}");
        std::fs::write(folder.path().join(format!("{name}.toml")), text).expect("room");
    };
    let want = |id: &str, value: &str, mount: &str| {
        format!("\"{id}\" = {{ value = \"{value}\", only = \"{at}/{mount}\" }}\n")
    };
    let [size, huge, time] = [
        want("tmpfs.size", "16M", "memory"),
        want("tmpfs.huge", "advise", "memory"),
        want("mount.atime", "noatime", "disk a"),
    ];
    profile("a", &[size, huge, time].concat());
    profile("small", &want("tmpfs.size", "1M", "memory"));
    let before = options_here();
    let outside = std::fs::read_link("/proc/self/ns/mnt").expect("a namespace");
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "sh", "-c"]);
    command.arg([APART, LIFE].concat()).current_dir(at).env("HOME", at).env("OUTSIDE", outside);
    let Ok(output) = command.env("PLANISH", env!("CARGO_BIN_EXE_planish")).output() else {
        return planish_skip::skip(test, "there is no unshare(1)");
    };
    let (told, failed) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr).into_owned());
    if output.status.code() == Some(77) || failed.starts_with("unshare:") {
        return planish_skip::skip(test, "no namespace or mount can be made here");
    }
    assert_eq!(before, options_here(), "a mount of this machine was touched");
    assert_eq!(told, TOLD, "{failed}");
}
