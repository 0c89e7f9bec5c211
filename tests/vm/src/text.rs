//! `planish text huge` on each file system of a guest: whether its answer is what the kernel shows.
//!
//! Each check wants a true answer: its exit code, and its bytes beside those that smaps shows of a process that starts
//! afterwards; the same of `text verify`; and the file as it was, to the byte, once it is undone. Where the table of
//! `docs/text-huge.md` has a yes for every kernel, "no" is true of no kernel, and of a route that is broken: the check
//! fails. What came of it is told in a form that can be taken over into that table.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::check::{Outcome, Report};
use crate::mounted::{self, FileSystem};
use crate::{machine, planish, settings};

const KIB: u64 = 1 << 10;
/// Of its 7 MiB of code, what lies in whole huge pages at least.
const WHOLE_LEAST: u64 = 4 << 20;
/// Of what can lie on huge pages so much must for a route to win: what `--least` is where nobody says it.
const LEAST_PERCENT: u64 = 90;
/// Modules of file systems, loaded for these checks alone: they bring block devices.
const MODULES: &str = "/file-systems";

/// A route, and a program (`tests/vm/programs/engine.c`) for which it was made.
struct Asked {
    /// In names of checks.
    word: &'static str,
    route: &'static str,
    program: &'static str,
    /// In the line for the table.
    what: &'static str,
}

const WARM: Asked =
    Asked { word: "warm", route: "warm", program: "/bin/engine-fixed", what: "fixed addresses" };
const COPY: Asked = Asked { word: "copy", route: "copy", program: "/bin/engine-pie", what: "PIE" };
const COLLAPSE: Asked =
    Asked { word: "collapse", route: "collapse", program: "/bin/engine-fixed", what: "fixed addresses" };
/// Which no loader of a libc helps: where it lies is for the kernel alone to say.
const COPY_STATIC: Asked =
    Asked { word: "copy-static", route: "copy", program: "/bin/engine-static-pie", what: "static PIE" };

/// Runs every check. The last ones of a guest: the modules stay.
pub fn run_all(report: &mut Report) {
    if !planish::knows("text") {
        return;
    }
    report.check("text.kernel", kernel);
    for system in mounted::ALL {
        for asked in [&WARM, &COPY, &COLLAPSE, &COPY_STATIC] {
            report.check(&format!("text.{}.{}", asked.word, system.word), || on(system, asked));
        }
    }
}

/// What there is of file systems, and what this kernel does by itself.
fn kernel() -> Result<Outcome> {
    machine::load_modules(MODULES)?;
    // Routes need free memory in pieces of a huge page, and the checks before have left it in small ones.
    for file in ["drop_caches", "compact_memory"] {
        let path = format!("/proc/sys/vm/{file}");
        fs::write(&path, "1").with_context(|| format!("write {path}"))?;
    }
    let folder = "/sys/kernel/mm/transparent_hugepage";
    let [all, shared] = ["enabled", "shmem_enabled"].map(|name| settings::read(&format!("{folder}/{name}")));
    let release = settings::read("/proc/sys/kernel/osrelease")?;
    Ok(Outcome::Ok(format!("Linux {release}; enabled: {}; shmem_enabled: {}", all?, shared?)))
}

/// One route on one file system, made anew.
fn on(system: &FileSystem, asked: &Asked) -> Result<Outcome> {
    if !Path::new(asked.program).exists() {
        return Ok(Outcome::Skip(format!("no {} was packed", asked.program)));
    }
    let original = fs::read(asked.program).with_context(|| format!("read {}", asked.program))?;
    let mounted = match system.with(&original)? {
        Ok(mounted) => mounted,
        Err(why) => return Ok(Outcome::Skip(why)),
    };
    let came = ask(&mounted.program, asked.route, &original);
    let gone = mounted.give_back();
    let came = came?;
    gone?;
    let wins = came.starts_with("yes") || came.starts_with("had it already");
    ensure!(wins || !is_had_everywhere(system.word, asked.route), "{came}, where every kernel has it");
    Ok(Outcome::Ok(format!("{} | {}, {} | {came}", system.what, asked.route, asked.what)))
}

/// Whether every kernel of the table has text on huge pages by this route on this file system.
fn is_had_everywhere(system: &str, route: &str) -> bool {
    match system {
        "xfs" | "overlay-xfs" | "lower-xfs" => route != "collapse",
        "tmpfs-never" | "tmpfs-advise" => route == "collapse",
        "tmpfs-always" => true,
        _ => false,
    }
}

/// Asks for a route, looks at a process that starts afterwards, and has the file put back.
fn ask(program: &Path, route: &str, original: &[u8]) -> Result<String> {
    let path = program.to_str().context("a path that is text")?;
    let answer = planish::json(&["text", "huge", path, "--route", route], &[0, 1, 3])?;
    let seen = seen(path);
    // Undone before anything is judged: an entry that stays open would be found by others.
    if let Some(entry) = answer["result"]["entry"].as_u64() {
        planish::json(&["undo", &entry.to_string()], &[0])?;
    }
    ensure!(fs::read(program)? == original, "the file is not the original again");
    let left = fs::read_dir(program.parent().context("a folder")?)?.flatten();
    let left: Vec<_> = left.map(|entry| entry.file_name()).filter(|name| name != "lost+found").collect();
    ensure!(left == ["engine"], "beside the original there are {left:?}");
    judge(&answer, &seen?)
}

/// What of the text of a process lies on huge pages.
struct Seen {
    smaps: u64,
    verified: u64,
}

/// Starts the program, which runs each page of its text, and looks at it.
fn seen(path: &str) -> Result<Seen> {
    let mut child = Command::new(path).stdout(Stdio::piped()).spawn().context("start the program")?;
    let mut ready = String::new();
    let read = BufReader::new(child.stdout.take().context("its output")?).read_line(&mut ready);
    let looked = read.context("wait for the program").and_then(|_| {
        ensure!(ready.contains("ready"), "the program said {ready:?}");
        let smaps = settings::read(&format!("/proc/{}/smaps", child.id()))?;
        // It finds fault with a program that was linked without an order.
        let verify = planish::json(&["text", "verify", &child.id().to_string()], &[0, 1])?;
        let verified = verify["result"]["process"]["huge_bytes"].as_u64();
        Ok(Seen { smaps: huge_of(&smaps, path)?, verified: verified.context("no process.huge_bytes")? })
    });
    child.kill().context("end the program")?;
    child.wait().context("end the program")?;
    looked
}

/// Bytes of the code of a file that huge entries map.
fn huge_of(smaps: &str, path: &str) -> Result<u64> {
    let (mut bytes, mut is_code) = (0, false);
    for line in smaps.lines() {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        match words.as_slice() {
            ["FilePmdMapped:" | "ShmemPmdMapped:", count, "kB"] if is_code => {
                bytes += count.parse::<u64>()? * KIB;
            }
            [range, rights, .., name] if range.contains('-') => {
                is_code = rights.contains('x') && *name == path;
            }
            _ => {}
        }
    }
    Ok(bytes)
}

/// Compares an answer with what is there, and tells both.
fn judge(answer: &Value, seen: &Seen) -> Result<String> {
    let (result, exit) = (&answer["result"], answer["exit"].as_u64().context("no exit")?);
    ensure!(
        seen.smaps == seen.verified,
        "smaps shows {} bytes, text verify {}: {answer}",
        seen.smaps,
        seen.verified
    );
    if exit == 3 {
        return Ok(format!("refused: {}", answer["messages"][0]["text"].as_str().unwrap_or_default()));
    }
    let whole = result["before"]["whole_bytes"].as_u64().context("no before.whole_bytes")?;
    ensure!(whole >= WHOLE_LEAST, "{whole} bytes in whole huge pages: {answer}");
    let is_enough = seen.smaps * 100 >= whole * LEAST_PERCENT;
    let cached = if result["route"] == "already" { &result["before"] } else { &result["after"] };
    // A route that failed has no figure.
    if let Some(told) = cached["huge_bytes"].as_u64() {
        ensure!(told == seen.smaps, "smaps shows {} bytes, and not {told}: {answer}", seen.smaps);
    }
    let counted = format!("{} of {} KiB", seen.smaps / KIB, whole / KIB);
    match (exit, result["route"].as_str()) {
        (0, Some("already")) if is_enough => Ok(format!("had it already: {counted}")),
        (0, Some(_)) if is_enough => Ok(format!("yes: {counted}")),
        (1, None) if !is_enough => {
            let row = &result["routes"][0];
            let [outcome, why] = ["outcome", "why"].map(|key| row[key].as_str().unwrap_or_default());
            Ok(format!("no: {counted} ({outcome}: {why})"))
        }
        _ => bail!("smaps shows {counted}: {answer}"),
    }
}

#[cfg(test)]
mod tests {
    use super::{Seen, huge_of, is_had_everywhere, judge};
    use crate::mounted;
    use serde_json::json;

    const MIB: u64 = 1 << 20;

    #[test]
    fn every_row_that_must_win_is_one_of_a_file_system_that_there_is() {
        let must = mounted::ALL.iter().filter(|system| is_had_everywhere(system.word, "collapse")).count();
        assert_eq!(must, 3, "each kind of tmpfs");
        let must = mounted::ALL.iter().filter(|system| is_had_everywhere(system.word, "copy")).count();
        assert_eq!(must, 4, "xfs, an overlay on it twice, and a tmpfs of huge pages");
    }

    #[test]
    fn only_a_true_answer_passes() {
        let judged = |exit: i32, route: Option<&str>, told: Option<u64>, smaps: u64, verified: u64| {
            let after = told.map(|mib| json!({"huge_bytes": mib * MIB}));
            let before = json!({"whole_bytes": 4 * MIB, "huge_bytes": 0});
            let routes = json!([{"route": "warm", "outcome": "short", "why": "so"}]);
            let result = json!({"before": before, "after": after, "route": route, "routes": routes});
            let seen = Seen { smaps: smaps * MIB, verified: verified * MIB };
            judge(&json!({"exit": exit, "result": result}), &seen)
        };
        assert_eq!(judged(0, Some("warm"), Some(4), 4, 4).unwrap(), "yes: 4096 of 4096 KiB");
        assert_eq!(judged(1, None, Some(2), 2, 2).unwrap(), "no: 2048 of 4096 KiB (short: so)");
        assert_eq!(judged(1, None, None, 0, 0).unwrap(), "no: 0 of 4096 KiB (short: so)");
        for (exit, route, told, smaps, verified) in [
            (0, Some("warm"), Some(4), 0, 0),
            (0, Some("warm"), Some(2), 2, 2),
            (0, Some("already"), Some(4), 4, 4),
            (0, None, Some(4), 4, 4),
            (1, None, None, 4, 4),
            (1, None, Some(0), 2, 2),
            (0, Some("warm"), Some(4), 4, 0),
        ] {
            assert!(judged(exit, route, told, smaps, verified).is_err(), "{exit} {route:?} {told:?} {smaps}");
        }
    }

    #[test]
    fn huge_entries_of_the_code_alone_are_counted() {
        let smaps = "\
            400000-401000 r--p 00000000 07:00 12 /m/engine\nFilePmdMapped:  2048 kB\n\
            401000-b7b000 r-xp 00001000 07:00 12 /m/engine\nFilePmdMapped:  2048 kB\nShmemPmdMapped: 4096 kB\n\
            7f0000-7f2000 r-xp 00000000 07:00 13 /lib/libc.so.6\nFilePmdMapped:  2048 kB\n\
            7ff000-800000 r-xp 00000000 00:00 0\nFilePmdMapped:  2048 kB\n";
        assert_eq!(huge_of(smaps, "/m/engine").unwrap(), 6 * MIB);
    }
}
