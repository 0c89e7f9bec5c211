//! The process that holds a limit: started, found, replaced, missed and ended by the program itself. The device is a
//! file of ours in a mount namespace of its own, and processes are seen in a PID namespace of their own: nothing of the
//! machine is limited, and no holder of the machine is met.

use crate::apart::{self, KILLS};

/// The namespaces are ready, or the test is left out. A systemd of the machine would start the process outside of them.
const APART: &str = r#"mount -t tmpfs none /run && : > device && mount --bind device /dev/cpu_dma_latency || exit 77
    planish() { "$PLANISH" --state state "$@" > out 2>&1 || echo "planish $1 left with $?"; }
    held() {
        words=$(cat /proc/[0-9]*/cmdline 2> /dev/null | tr '\0' ' ' | grep -oE 'hold cpu-dma-latency [0-9]+')
        echo "$1:" $words
    }
    "#;

const LIFE: &str = r#"
    planish apply ./a.toml --yes; held applied; cut -c 1-10 device
    planish check ./a.toml; planish apply ./a.toml --yes; held twice
    planish apply ./b.toml --yes; held covered
    planish undo; held undone
    for process in $(grep -l planish-holder /proc/[0-9]*/comm | cut -d / -f 3); do
        kill -9 $process; while grep -q hold /proc/$process/cmdline 2> /dev/null; do sleep 0.01; done
    done; held lost
    planish check ./a.toml
    planish apply ./a.toml --yes; held again
    planish undo --all; held ended
    is_set() { read -r limit < device; [ "$limit" = 0x00000014 ]; }
    for round in 1 2 3 4 5 6 7 8 9 11 13 15 17 19; do
        [ $round -gt 4 ] && [ $met -gt 0 ] && break
        : > device; kill_one $round; undo_killed
        [ "$(held killed)" = killed: ] || held "killed in round $round"
    done
    [ $met -gt 0 ] && echo killed at work
"#;

const TOLD: &str = "applied: hold cpu-dma-latency 20\n0x00000014\ntwice: hold cpu-dma-latency 20\n\
    covered: hold cpu-dma-latency 50\nundone: hold cpu-dma-latency 20\nlost:\nplanish check left with 1\n\
    again: hold cpu-dma-latency 20\nended:\nkilled at work\n";

#[test]
fn a_process_of_ours_holds_the_limit_until_it_is_undone_or_killed() {
    let test = "a_process_of_ours_holds_the_limit_until_it_is_undone_or_killed";
    if !std::path::Path::new("/dev/cpu_dma_latency").exists() {
        return planish_skip::skip(test, "there is no /dev/cpu_dma_latency here");
    }
    let folder = tempfile::tempdir().expect("a folder");
    for (name, limit) in [("a", 20), ("b", 50)] {
        let text = format!("name = \"{name}\"\nsummary = \"s\"\n[want]\n\"cpu.dma_latency_us\" = {limit}\n");
        std::fs::write(folder.path().join(format!("{name}.toml")), text).expect("room");
    }
    let options = ["--mount", "--pid", "--fork", "--mount-proc", "--kill-child"];
    let script = [APART, KILLS, LIFE].concat();
    let Some(output) = apart::run(test, &options, &script, &[], folder.path()) else { return };
    let (told, failed) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(told, TOLD, "{failed}");
}
