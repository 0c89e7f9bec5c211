//! Scripts of the shell in namespaces of their own, where planish sets what the machine does not see.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Output};

/// For scripts that kill an apply of `a.toml`: `kill_one ROUND`, every second time at the first moment at which
/// `is_set` says that something is set, else at some moment. `met` counts those that were still at work with something
/// set: a script that has none of them has tried nothing. `undo_killed` takes back what is left.
pub const KILLS: &str = r#"
    met=0
    kill_one() {
        $PLANISH --state state apply ./a.toml --yes --allow availability > out 2>&1 & applying=$!
        if [ $(($1 % 2)) = 0 ]; then sleep 0.0$1; else
            turns=0; while ! is_set && [ $turns -lt 200000 ]; do turns=$((turns + 1)); done
        fi
        kill -9 $applying 2> /dev/null; wait $applying 2> /dev/null
        [ $? = 137 ] && is_set && met=$((met + 1))
    }
    # What the killed one was just starting has its lock until it is a program of its own.
    undo_killed() {
        for turn in 1 2 3 4 5 6 7 8 9; do
            $PLANISH --state state undo --all > out 2>&1 && return
            grep -q 'is at work' out || break
            sleep 0.2
        done
        echo "planish undo left with an error: $(cat out)"
    }
    "#;

/// What a script did; `None` where it is left out, aloud: there is no unshare(1), it may not do what it is asked to, or
/// the script leaves with 77. `options` are of unshare, the others go to the script.
pub fn run(
    test: &str,
    options: &[&str],
    script: &str,
    arguments: &[&OsStr],
    folder: &Path,
) -> Option<Output> {
    let mut command = Command::new("unshare");
    command.args(options).args(["sh", "-c", script, "sh"]).args(arguments);
    command.current_dir(folder).env("HOME", folder).env_remove("XDG_STATE_HOME");
    let Ok(output) = command.env("PLANISH", env!("CARGO_BIN_EXE_planish")).output() else {
        planish_skip::skip(test, "there is no unshare(1)");
        return None;
    };
    if output.status.code() == Some(77) || output.stderr.starts_with(b"unshare:") {
        planish_skip::skip(test, "no namespace or mount can be made here");
        return None;
    }
    Some(output)
}
