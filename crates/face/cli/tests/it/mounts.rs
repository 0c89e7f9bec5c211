//! Options of mounts, set and put back by the program itself on the kernel of this machine: in a mount namespace of the
//! test's own, on mounts that are made there. No mount of the machine is touched, and that is looked at, too.

use std::ffi::OsStr;

use crate::apart::{self, KILLS};

/// Mounts of our own: a tmpfs, and a folder of the disk that is mounted again under a name with a blank. What profiles
/// want they want of these by name. The lock of the machine's own planish is not met: it lies in /run.
const APART: &str = r#"
    [ "$(readlink /proc/self/ns/mnt)" != "$1" ] || exit 77
    mount -t tmpfs none /run || exit 77
    mkdir memory "disk a" source still pages && mount -t tmpfs -o size=4m,nosuid,nodev,mode=0711 none memory || exit 77
    mount --bind source "disk a" && mount -o remount,bind,nosuid,noexec,strictatime "disk a" || exit 77
    mount -t tmpfs -o size=4m,noswap none still 2> /dev/null || mount -t tmpfs -o size=4m none still || exit 77
    mount -t hugetlbfs -o size=4m none pages || exit 77
    planish() { "$PLANISH" --state state "$@" > out 2>&1 || echo "planish $1 left with $?"; }
    of() { grep " $PWD/$1 " /proc/self/mountinfo | tail -n 1; }
    options() { of "$1" | cut -d ' ' -f 6; }
    system() { of "$1" | sed 's/.* - //' | cut -d ' ' -f 3 | sed s/,inode64//; }
    told() { echo "$1: $(options 'disk\\040a') $(options memory) $(system memory)"; }
    is_set() {
        while read -r id parent device root at rest; do
            case "$at $rest" in *"/memory "*size=16384k* | *"040a "*noatime*) return 0; esac
        done < /proc/self/mountinfo
        return 1
    }
    # Process 1 is outside, where these mounts are not. From here on its namespace is said to be this one, as it is for
    # a planish of the machine itself; a PID namespace would do that, too, but without threads of the kernel this is a
    # container for planish.
    inside() { mount --bind /proc/$$/ns /proc/1/ns || exit 77; }
    "#;

const LIFE: &str = r#"
    told before
    planish plan ./a.toml --allow availability; grep -q 'cannot be set from here' out && echo not from here
    planish apply ./a.toml --yes --allow availability; told apart
    planish undo --all
    inside; planish apply ./a.toml --yes --allow availability; told applied
    planish check ./a.toml
    planish apply ./a.toml --yes --allow availability; told twice
    head -c 2000000 /dev/zero > memory/file
    planish apply ./small.toml --yes --allow availability; grep -q 'files in it take' out && echo too small; told full
    rm memory/file
    umount /proc/1/ns; planish undo --all; told "from a copy"; grep -q 'which are copies' out && echo not a copy
    inside; planish undo --all; told undone
    clean=$(told undone)
    for round in 1 2 3 4 5 6 7 8 9 11 13 15 17 19; do
        [ $round -gt 5 ] && [ $met -gt 0 ] && break
        kill_one $round; undo_killed
        [ "$(told undone)" = "$clean" ] || told "killed in round $round"
    done
    [ $met -gt 0 ] && echo killed at work
    swap=$(of still | grep -c noswap); planish apply ./still.toml --yes --allow availability
    [ "$(of still | grep size=8192k | grep -c noswap)" = "$swap" ] && echo still without swap
    planish undo --all; of still | grep -q size=4096k && echo as small as before
    pages=$(of pages); mount -o remount,size=8m pages && [ "$(of pages)" = "$pages" ] && echo hugetlbfs keeps it
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
not from here
planish apply left with 1
apart: rw,nosuid,noexec rw,nosuid,nodev,relatime rw,size=16384k,mode=711,huge=advise
applied: rw,nosuid,noexec,noatime rw,nosuid,nodev,relatime rw,size=16384k,mode=711,huge=advise
twice: rw,nosuid,noexec,noatime rw,nosuid,nodev,relatime rw,size=16384k,mode=711,huge=advise
planish apply left with 3
too small
full: rw,nosuid,noexec,noatime rw,nosuid,nodev,relatime rw,size=16384k,mode=711,huge=advise
planish undo left with 5
from a copy: rw,nosuid,noexec,noatime rw,nosuid,nodev,relatime rw,size=4096k,mode=711
not a copy
undone: rw,nosuid,noexec rw,nosuid,nodev,relatime rw,size=4096k,mode=711
killed at work
still without swap
as small as before
hugetlbfs keeps it
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
    profile("still", &want("tmpfs.size", "8M", "still"));
    profile("small", &want("tmpfs.size", "1M", "memory"));
    let before = options_here();
    let outside = std::fs::read_link("/proc/self/ns/mnt").expect("a namespace");
    let options = ["--mount", "--propagation", "private"];
    let script = [APART, KILLS, LIFE].concat();
    let outside: &[&OsStr] = &[outside.as_os_str()];
    let Some(output) = apart::run(test, &options, &script, outside, at.as_ref()) else { return };
    let (told, failed) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(before, options_here(), "a mount of this machine was touched");
    assert_eq!(told, TOLD, "{failed}");
}
