//! `planish text huge` of programs that are made here: what becomes of the file, of who runs it, and by undo of both.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use planish_skip::skip;

use crate::planish::{Run, command, copy_program};
use crate::recorded::{copy_tree, repository};

/// Seven pages of 1 MiB of code. With a word it waits, and with another one it has a breakpoint in its code, as a
/// uprobe or a debugger sets one.
const SOURCE: &str = r#"
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>
__asm__(".text\n.globl big\n.p2align 12\nbig:\n"
        ".rept 1792\n nop\n .p2align 12, 0x90\n .endr\n ret\n");
extern void big(void);
int main(int count, char **words) {
    big();
    if (count > 1 && words[1][0] == 's') { sleep(4); return 7; }
    if (count > 2) {
        uintptr_t page = ((uintptr_t)big + (4u << 20)) & ~(uintptr_t)0xfff;
        if (mprotect((void *)page, 4096, PROT_READ | PROT_WRITE | PROT_EXEC) != 0) return 1;
        *(unsigned char *)(page + 64) = 0xcc;
    }
    if (count > 1) pause();
    return 0;
}
"#;

pub(crate) struct Here {
    home: tempfile::TempDir,
}

impl Here {
    pub(crate) fn new(test: &str, flags: &[&str]) -> Option<Self> {
        let here = Self::empty(test)?;
        if !here.build("cc", flags) {
            skip(test, format!("no cc that links with {flags:?}"));
            return None;
        }
        Some(here)
    }

    /// A folder without a program, where programs can be put on huge pages.
    pub(crate) fn empty(test: &str) -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            skip(test, "the lock of the host is root's");
            return None;
        }
        if planish_sys::pages::thp_bytes() != Some(2 << 20) {
            skip(test, "no transparent huge pages of 2 MiB");
            return None;
        }
        Some(Self { home: tempfile::tempdir().expect("a folder") })
    }

    /// Builds the program; whether this compiler is there and links so.
    pub(crate) fn build(&self, compiler: &str, flags: &[&str]) -> bool {
        std::fs::write(self.at("engine.c"), SOURCE).expect("ours");
        let (source, linked) = (self.at("engine.c"), self.at("linked"));
        let built = Command::new(compiler).args(flags).arg(&source).arg("-o").arg(&linked).status();
        if !built.is_ok_and(|status| status.success()) {
            return false;
        }
        copy_program(&linked, &self.program());
        std::fs::set_permissions(self.program(), PermissionsExt::from_mode(0o750)).expect("ours");
        true
    }

    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    pub(crate) fn program(&self) -> PathBuf {
        self.at("engine")
    }

    /// Runs with a state of its own; while another test has the lock of the host, once more.
    pub(crate) fn planish(&self, line: &str) -> Run {
        let begun = Instant::now();
        loop {
            let state = self.at("state");
            let place = ["--json", "--state", state.to_str().expect("text")];
            let run: Run = command(self.home.path(), place.into_iter().chain(line.split(' ')))
                .output()
                .expect("the binary starts")
                .into();
            let is_busy = run.exit == 3 && run.stdout.contains("at work");
            if !is_busy || begun.elapsed() > Duration::from_secs(60) {
                return run;
            }
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    /// The entry of a program that was put on huge pages; where memory lies in small pieces, after it was moved
    /// together.
    pub(crate) fn put_on_huge_pages(&self, test: &str, program: &str) -> Option<serde_json::Value> {
        let mut run = self.planish(&format!("text huge {program}"));
        if run.exit == 1 {
            run = self.planish(&format!("text huge {program} --prepare"));
        }
        works(test, &run).then(|| {
            assert_eq!(run.exit, 0, "{}", run.stdout);
            run.envelope()["result"]["entry"].clone()
        })
    }

    /// The program at work, with these words.
    pub(crate) fn waits(&self, words: &[&str]) -> Waits {
        let child = Command::new(self.program()).args(words).spawn().expect("it starts");
        std::thread::sleep(Duration::from_millis(300));
        Waits(child)
    }
}

/// A process that waits until dropped.
pub(crate) struct Waits(Child);

impl Waits {
    pub(crate) fn id(&self) -> u32 {
        self.0.id()
    }

    /// It has neither ended nor been ended.
    pub(crate) fn is_alive(&self) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.0.id())).unwrap_or_default();
        stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
    }
}

impl Drop for Waits {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Whether this file system caches files in huge pieces, or a word why not. Where it is known to, and memory has pieces
/// to give, a route that fails is a fault.
fn works(test: &str, run: &Run) -> bool {
    if run.exit == 1 {
        assert!(!is_known_to_work(), "{}", run.stdout);
        skip(test, format!("no route to huge pages here: {}", run.envelope()["result"]["routes"]));
    }
    run.exit != 1
}

/// Whether the table of docs/text-huge.md has a yes for the folder of these tests, and hundreds of huge pages are free.
fn is_known_to_work() -> bool {
    const EXT4: u64 = 0xef53;
    const XFS: u64 = 0x5846_5342;
    const FREE_LEAST: u64 = 256;
    // From pages of 4 KiB to 2 MiB there are nine doublings.
    const SMALL_ORDERS: usize = 9;
    let kind = rustix::fs::statfs(std::env::temp_dir()).map_or(0, |facts| facts.f_type as u64);
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let release = read("/proc/sys/kernel/osrelease");
    let mut release = release.split(['.', '-']).map_while(|part| part.parse::<u32>().ok());
    let version = (release.next().unwrap_or(0), release.next().unwrap_or(0));
    let is_known = (kind == EXT4 && version >= (6, 16)) || (kind == XFS && version >= (5, 18));
    let free = |line: &str| -> u64 {
        let counts = line.split_once("zone").map_or("", |(_, zone)| zone).split_ascii_whitespace().skip(1);
        counts.skip(SMALL_ORDERS).filter_map(|count| count.parse::<u64>().ok()).sum()
    };
    is_known && read("/proc/buddyinfo").lines().map(free).sum::<u64>() >= FREE_LEAST
}

pub(crate) fn content(path: &Path) -> Vec<u8> {
    std::fs::read(path).expect("there is always a whole file")
}

#[test]
fn a_program_is_put_on_huge_pages_and_back() {
    let test = "a_program_is_put_on_huge_pages_and_back";
    let Some(here) = Here::new(test, &["-O1"]) else { return };
    let (before, inode) = (content(&here.program()), here.program().metadata().expect("ours").ino());
    let looked = here.planish("text huge engine --dry-run");
    assert_eq!((looked.exit, looked.envelope()["result"]["after"].is_null()), (0, true), "{}", looked.stdout);
    assert_eq!(content(&here.program()), before);

    let old = here.waits(&["wait"]);
    let run = here.planish("text huge engine --reason faster");
    if !works(test, &run) {
        return;
    }
    assert_eq!(run.exit, 0, "{}", run.stdout);
    let result = run.envelope()["result"].clone();
    assert_eq!((&result["route"], &result["entry"]), (&"copy".into(), &1.into()), "{result}");
    let (whole, huge) = (result["before"]["whole_bytes"].as_u64(), result["after"]["huge_bytes"].as_u64());
    assert!(whole == Some(4 << 20) && huge == whole && result["before"]["huge_bytes"] == 0, "{result}");
    assert_eq!(result["running"][0]["pid"], old.0.id(), "and it goes on with what it has");
    assert_eq!(here.program().metadata().expect("ours").mode() & 0o7777, 0o750);

    let new = here.waits(&["wait"]);
    let verified = here.planish(&format!("text verify {}", new.0.id())).envelope()["result"].clone();
    assert_eq!(
        (&verified["process"]["huge_bytes"], &verified["original"]["huge_bytes"]),
        (&(4 << 20).into(), &0.into())
    );
    let checked = here.planish("check").envelope()["result"]["texts"][0].clone();
    assert_eq!((&checked["file"], &checked["entry"]), (&"ours".into(), &1.into()), "{checked}");
    assert_eq!(checked["cache"]["huge_bytes"], 4 << 20, "{checked}");
    let again = here.planish("text huge engine").envelope()["result"].clone();
    assert_eq!((&again["route"], &again["entry"]), (&"already".into(), &serde_json::Value::Null));
    drop((old, new));

    let undone = here.planish("undo");
    assert_eq!((undone.exit, content(&here.program())), (0, before), "{}", undone.stdout);
    assert_eq!(here.program().metadata().expect("ours").ino(), inode);
    assert!(!here.at(".engine.planish").exists());
}

#[test]
fn a_file_that_fits_already_is_only_read_anew() {
    let test = "a_file_that_fits_already_is_only_read_anew";
    let Some(here) = Here::new(test, &["-O1", "-no-pie"]) else { return };
    let before = here.program().metadata().expect("ours");
    let run = here.planish("text huge engine --route warm");
    if !works(test, &run) {
        return;
    }
    let result = run.envelope()["result"].clone();
    assert_eq!(
        (run.exit, result["entry"].is_null(), result["original"].is_null()),
        (0, true, true),
        "{result}"
    );
    let now = here.program().metadata().expect("ours");
    assert_eq!(
        (now.ino(), now.ctime_nsec()),
        (before.ino(), before.ctime_nsec()),
        "nothing of it was written"
    );
    let waits = here.waits(&["wait"]);
    let verified = here.planish(&format!("text verify {} --huge 90", waits.0.id()));
    assert_eq!(verified.envelope()["result"]["process"]["huge_bytes"], 4 << 20, "{}", verified.stdout);
}

/// What `install warm` writes does what it is for: the line of the unit, typed after the pages were dropped.
#[test]
fn what_is_installed_warms_a_program_again_and_check_tells_until_then() {
    let test = "what_is_installed_warms_a_program_again_and_check_tells_until_then";
    let Some(here) = Here::new(test, &["-O1"]) else { return };
    let binary = env!("CARGO_BIN_EXE_planish");
    let line = format!("install warm engine --program {binary} --yes");
    let refused = here.planish(&line);
    assert_eq!(refused.exit, 3, "as it is linked it fits no huge page: {}", refused.stdout);
    if here.put_on_huge_pages(test, "engine").is_none() {
        return;
    }
    let root = here.at("root");
    copy_tree(&repository().join("hosts/cloud-2c"), &root);
    let meta = std::fs::read_to_string(root.join("meta.toml")).expect("ours");
    std::fs::write(root.join("meta.toml"), meta.replace("writable = false", "writable = true"))
        .expect("ours");
    let program = here.program();
    let (root_text, program_text) = (root.to_str().expect("text"), program.to_str().expect("text"));
    // The record has the program and the service, too.
    let copy = root.join(program_text.trim_start_matches('/'));
    std::fs::create_dir_all(copy.parent().expect("a folder")).expect("ours");
    std::fs::copy(&program, &copy).expect("ours");
    let units = root.join("etc/systemd/system");
    std::fs::create_dir_all(&units).expect("ours");
    std::fs::write(units.join("engine.service"), "[Service]\nExecStart=/srv/engine\n").expect("ours");
    let line = format!("install warm {program_text} --unit engine.service --program {binary} --yes");
    let installed = here.planish(&format!("--root {root_text} {line}"));
    assert_eq!(installed.exit, 0, "{}", installed.stdout);
    let file = installed.envelope()["result"]["files"][0].clone();
    assert!(
        file["path"]
            .as_str()
            .is_some_and(|path| path.starts_with("/etc/systemd/system/engine.service.d/90-planish-warm-")),
        "{file}"
    );
    let text = file["text"].as_str().expect("text");
    let typed = text.lines().find_map(|line| line.strip_prefix("ExecStartPre=-+")).expect("a line");

    // A reboot, or memory that ran short. What nobody runs goes, but for what somebody looks at just then.
    let opened = std::fs::File::open(&program).expect("ours");
    opened.sync_all().expect("ours");
    rustix::fs::fadvise(&opened, 0, None, rustix::fs::Advice::DontNeed).expect("nobody runs it");
    let checked = here.planish("check");
    let row = checked.envelope()["result"]["texts"][0].clone();
    assert!(checked.exit == 1 && row["cache"]["huge_bytes"].as_u64() < Some(4 << 20), "{}", checked.stdout);
    let told = checked.envelope()["messages"][0]["text"].clone();
    assert!(told.as_str().is_some_and(|told| told.ends_with("--route warm")), "{told}");
    let again = here.planish("check").envelope()["result"]["texts"][0].clone();
    assert_eq!(again["cache"], row["cache"], "a look brings nothing back");
    let mut words = typed.split(' ');
    let warmed = Command::new(words.next().expect("a program")).args(words).output().expect("it starts");
    if warmed.status.code() == Some(1) {
        return skip(test, String::from_utf8_lossy(&warmed.stdout));
    }
    let row = here.planish("check").envelope()["result"]["texts"][0].clone();
    assert_eq!(row["cache"]["huge_bytes"], 4 << 20, "{}", String::from_utf8_lossy(&warmed.stdout));
}

#[test]
fn memory_is_prepared_once_where_it_is_asked_for_and_the_journal_says_so() {
    let test = "memory_is_prepared_once_where_it_is_asked_for_and_the_journal_says_so";
    let Some(here) = Here::new(test, &["-O1", "-no-pie"]) else { return };
    let line = "text huge engine --route warm --prepare";
    let looked = here.planish(&format!("{line}=drop-caches --dry-run"));
    if looked.exit == 3 {
        return skip(test, looked.stdout);
    }
    let prepared = looked.envelope()["result"]["prepared"].clone();
    let actions = |prepared: &serde_json::Value| -> Vec<(String, serde_json::Value)> {
        let rows = prepared["actions"].as_array().expect("rows").clone();
        rows.into_iter()
            .map(|row| (row["knob"].as_str().expect("text").to_owned(), row["entry"].clone()))
            .collect()
    };
    let none = serde_json::Value::Null;
    let wanted =
        [("vm.drop_caches".to_owned(), none.clone()), ("vm.compact_memory".to_owned(), none.clone())];
    assert_eq!(actions(&prepared), wanted, "{}", looked.stdout);
    assert!(!here.at("state").exists(), "a dry run writes nothing");

    // Nobody named the caches: they are everybody's, and stay.
    let run = here.planish(line);
    let prepared = run.envelope()["result"]["prepared"].clone();
    assert_eq!(actions(&prepared), [("vm.compact_memory".to_owned(), 1.into())], "{}", run.stdout);
    let (before, after) = (&prepared["before"], &prepared["after"]);
    let zones = |rows: &serde_json::Value| rows.as_array().map_or(0, Vec::len);
    assert!(zones(before) > 0 && zones(before) == zones(after), "{prepared}");
    assert!(prepared["pages_after"].is_u64(), "{prepared}");
    let log = here.planish("log").envelope()["result"]["entries"].clone();
    assert_eq!((&log[0]["id"], &log[0]["state"]["closed"]), (&1.into(), &"acted".into()), "{log}");
    let undone = here.planish("undo");
    assert_eq!((undone.exit, undone.stdout.contains("nothing to undo")), (0, true), "{}", undone.stdout);
    if works(test, &run) {
        let again = here.planish(line).envelope()["result"].clone();
        assert_eq!(
            (&again["route"], &again["prepared"]),
            (&"already".into(), &none),
            "room is not needed twice"
        );
    }
}

#[test]
fn a_program_that_nobody_may_change_is_started_as_a_copy_and_stays() {
    let test = "a_program_that_nobody_may_change_is_started_as_a_copy_and_stays";
    let Some(here) = Here::new(test, &["-O1"]) else { return };
    let before = (content(&here.program()), here.program().metadata().expect("ours").ino());
    let state = here.at("state");
    let line = "run --huge text --verify-after 1 --report seen.json -- ./engine sleeps";
    for _ in 0..2 {
        let place = ["--state", state.to_str().expect("text")];
        let run = command(here.home.path(), place.into_iter().chain(line.split(' '))).output();
        let run: Run = run.expect("the binary starts").into();
        assert_eq!(run.exit, 7, "the code is the program's: {}", run.stderr);
        if run.stderr.contains("its code stays on base pages") {
            return skip(test, run.stderr);
        }
        let seen: serde_json::Value = serde_json::from_slice(&content(&here.at("seen.json"))).expect("JSON");
        let text = &seen["result"]["instances"][0]["text"];
        assert_eq!((&text["route"], &text["huge_bytes"]), (&"copy".into(), &(4 << 20).into()), "{seen}");
    }
    assert_eq!((content(&here.program()), here.program().metadata().expect("ours").ino()), before);
    // The routes of the file itself, asked for by name: this one does not fit as it is linked.
    for route in ["warm", "collapse"] {
        let line = format!("run --huge text={route} -- ./engine sleeps");
        let run = command(here.home.path(), line.split(' ')).output().expect("the binary starts");
        let run: Run = run.into();
        assert_eq!(run.exit, 7, "it is started all the same: {}", run.stderr);
        assert!(run.stderr.contains("does not fit huge pages as it is linked"), "{}", run.stderr);
    }
    for (route, why) in [("memfd", "only a program itself"), ("2m", "warm, copy or collapse")] {
        let line = format!("run --huge text={route} -- ./engine sleeps");
        let run = command(here.home.path(), line.split(' ')).output().expect("the binary starts");
        let run: Run = run.into();
        assert!(run.exit == 125 && run.stderr.contains(why), "{}: {}", run.exit, run.stderr);
    }
    // A program too small is started all the same.
    let run = command(here.home.path(), "run --huge text -- true".split(' ')).output().expect("it starts");
    let run: Run = run.into();
    assert!(run.exit == 0 && run.stderr.contains("no whole huge page"), "{}", run.stderr);
}

#[test]
fn a_route_that_is_named_is_the_only_one_that_is_tried() {
    let test = "a_route_that_is_named_is_the_only_one_that_is_tried";
    let Some(here) = Here::new(test, &["-O1"]) else { return };
    if here.put_on_huge_pages(test, "engine").is_none() {
        return;
    }
    let run = |route: &str| {
        let line = format!("run --huge text={route} --verify-after 1 --report seen.json -- ./engine sleeps");
        let run = command(here.home.path(), line.split(' ')).output().expect("the binary starts");
        let run: Run = run.into();
        assert_eq!(run.exit, 7, "the code is the program's: {}", run.stderr);
        let seen: serde_json::Value = serde_json::from_slice(&content(&here.at("seen.json"))).expect("JSON");
        (run.stderr, seen["result"]["instances"][0]["text"].clone())
    };
    let drop_it = || {
        let opened = std::fs::File::open(here.program()).expect("ours");
        opened.sync_all().expect("ours");
        rustix::fs::fadvise(&opened, 0, None, rustix::fs::Advice::DontNeed).expect("nobody runs it");
    };
    let (_, text) = run("warm");
    assert_eq!((&text["route"], &text["huge_bytes"]), (&"already".into(), &(4 << 20).into()));
    drop_it();
    let (told, text) = run("warm");
    match told.contains("its code stays on base pages") {
        true => skip(test, told),
        false => assert_eq!((&text["route"], &text["huge_bytes"]), (&"warm".into(), &(4 << 20).into())),
    }
    // As anybody reads a file: in small pieces.
    drop_it();
    content(&here.program());
    let (told, text) = run("collapse");
    match told.contains("its code stays on base pages") {
        true => skip(test, told),
        false => assert_eq!((&text["route"], &text["huge_bytes"]), (&"collapse".into(), &(4 << 20).into())),
    }
    drop_it();
    content(&here.program());
    let (told, text) = run("copy");
    match told.contains("its code stays on base pages") {
        true => skip(test, told),
        false => assert_eq!(text["route"], "copy"),
    }
}

#[test]
fn what_is_patched_linked_or_too_small_is_refused_and_stays() {
    let test = "what_is_patched_linked_or_too_small_is_refused_and_stays";
    let Some(here) = Here::new(test, &["-O1"]) else { return };
    let before = content(&here.program());
    let refused = |line: &str, exit: i32, why: &str| {
        let run = here.planish(line);
        assert_eq!(run.exit, exit, "{line}: {}", run.stdout);
        let message = run.envelope()["messages"][0].clone();
        assert!(message["text"].as_str().is_some_and(|text| text.contains(why)), "{line}: {message}");
        assert!(message["hint"].is_string(), "{message}");
        assert_eq!(content(&here.program()), before);
    };
    {
        let _patched = here.waits(&["wait", "patched"]);
        refused("text huge engine", 3, "is not what its file says");
    }
    std::fs::hard_link(here.program(), here.at("other")).expect("ours");
    refused("text huge engine --route copy", 3, "2 names");
    std::fs::remove_file(here.at("other")).expect("ours");
    refused("text huge engine --max 1M", 3, "more than --max allows");
    refused("text huge none", 2, "cannot find none");
    refused("text huge engine.c", 2, "engine.c");
    refused("--root hosts text huge engine", 2, "recorded host");
    assert!(!here.at(".engine.planish").exists());
}

/// A plan that is not to be had is none: what a dry run tells is what the real one does then.
#[test]
fn what_is_refused_is_refused_by_a_dry_run_as_well() {
    let test = "what_is_refused_is_refused_by_a_dry_run_as_well";
    let Some(here) = Here::new(test, &["-O1"]) else { return };
    let before = (content(&here.program()), here.program().metadata().expect("ours").ino());
    let is_refused = |line: &str, why: &str| {
        let told = [format!("{line} --dry-run"), line.to_owned()].map(|line| {
            let run = here.planish(&line);
            assert_eq!(run.exit, 3, "{line}: {}", run.stdout);
            run.envelope()["messages"][0]["text"].as_str().expect("text").to_owned()
        });
        assert!(told[0] == told[1] && told[0].contains(why), "{told:?}");
        assert!(before == (content(&here.program()), here.program().metadata().expect("ours").ino()));
    };
    let mode = |path: &Path, mode| {
        std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).expect("ours");
    };
    for set_id in [0o4750, 0o2750] {
        mode(&here.program(), set_id);
        is_refused("text huge engine", "setuid, setgid");
        assert_eq!(here.program().metadata().expect("ours").mode() & 0o7777, set_id);
    }
    mode(&here.program(), 0o750);
    std::fs::hard_link(here.program(), here.at("other")).expect("ours");
    is_refused("text huge engine", "2 names");
    std::fs::remove_file(here.at("other")).expect("ours");
    mode(&here.at(""), 0o777);
    is_refused("text huge engine", "everybody may put another file");
    mode(&here.at(""), 0o700);
    std::fs::write(here.at(".engine.planish"), "somebody's").expect("ours");
    is_refused("text huge engine", "is there, and not ours");
    assert_eq!(content(&here.at(".engine.planish")), b"somebody's");
    std::fs::remove_file(here.at(".engine.planish")).expect("ours");
    let free = here.planish("text huge engine --dry-run");
    assert_eq!(free.exit, 0, "nothing is left of it: {}", free.stdout);
}

/// A refusal of one route is no end where another one would be tried.
#[test]
fn a_dry_run_goes_on_where_the_real_one_would() {
    let test = "a_dry_run_goes_on_where_the_real_one_would";
    let Some(here) = Here::new(test, &["-O1", "-no-pie"]) else { return };
    std::fs::set_permissions(here.program(), PermissionsExt::from_mode(0o4750)).expect("ours");
    let looked = |line: &str| {
        let run = here.planish(format!("text huge engine --least 100 --dry-run {line}").trim_end());
        let routes = run.envelope()["result"]["routes"].as_array().cloned().unwrap_or_default();
        let row = |row: &serde_json::Value| format!("{} {}", row["route"], row["outcome"]).replace('"', "");
        (run.exit, routes.iter().map(row).collect::<Vec<String>>())
    };
    let (exit, routes) = looked("");
    if routes == ["already won"] {
        return skip(test, "the linker's writes made huge pages already");
    }
    assert_eq!(
        (exit, routes),
        (0, ["warm skipped", "copy failed", "collapse skipped"].map(str::to_owned).to_vec())
    );
    assert_eq!(looked("--route copy"), (3, Vec::new()));
    assert_eq!(looked("--route copy,collapse").0, 0);
    std::fs::set_permissions(here.program(), PermissionsExt::from_mode(0o750)).expect("ours");
    std::fs::write(here.at(".engine.planish"), "somebody's").expect("ours");
    assert_eq!(looked("").0, 0);
    assert_eq!(looked("--route copy,collapse").0, 3, "the real one ends there, too");
}
