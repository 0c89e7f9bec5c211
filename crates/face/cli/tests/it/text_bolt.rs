//! `planish text bolt`: with the real llvm-bolt of every version that is here, and with scripts in its place for what
//! it does seldom. Where a test says "as it prints", the words are those of a real run, or of the texts in its binary.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use planish_profile::Program;
use planish_skip::skip;
use serde_json::Value;

use crate::planish::{Run, command, command_of, copy_program, for_anybody};

/// A table of jumps, a table of labels, an order of functions that no linker would choose, and a path that is rare.
const SOURCE: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#define APART __attribute__((noinline))
static int interpret(const unsigned char *at, int x) {
  static const void *const table[] = { &&more, &&less, &&times, &&end };
  goto *table[*at++ & 3];
more: x += 3; goto *table[*at++ & 3];
less: x -= 1; goto *table[*at++ & 3];
times: x = x * 7 % 1000003; goto *table[*at++ & 3];
end: return x;
}
APART int rare(int x) { fprintf(stderr, "rare %d\n", x); return x * 3; }
APART int choose(int x) {
  switch (x % 9) { case 0: return x + 1; case 1: return x * 3; case 2: return x - 7; case 3: return x ^ 5;
    case 4: return x << 1; case 5: return x >> 1; case 6: return -x; case 7: return ~x; default: return 0; }
}
APART int filler(int x) { return printf("%d\n", x) + 4; }
APART int work(int x) {
  if (x == 123456789) return rare(x);
  int sum = 0;
  for (int i = 0; i < 50; i++) sum += choose(x + i);
  return sum;
}
int main(int argc, char **argv) {
  int n = argc > 1 ? atoi(argv[1]) : 2000;
  const unsigned char code[] = { 0, 1, 2, 0, 2, 1, 0, 0, 2, 3 };
  long sum = 0;
  for (int i = 0; i < n; i++) { sum += work(i); sum += interpret(code, i); if (sum == 42) sum += filler(i); }
  printf("%ld\n", sum);
  return EXIT;
}
"#;

const STACKS: &str = "main;work;choose 600\nmain;work 300\nmain;interpret 100\n";

fn on(home: &Path, line: &str) -> Run {
    command(home, line.split(' ')).output().expect("the binary starts").into()
}

/// A folder with `p`, linked with these flags.
fn home(test: &str, flags: &[&str]) -> Option<tempfile::TempDir> {
    let home = tempfile::tempdir().expect("a temporary folder");
    fs::write(home.path().join("p.c"), SOURCE).expect("the folder can be written");
    fs::write(home.path().join("stacks"), STACKS).expect("the folder can be written");
    link(test, home.path(), "p", &[&["-DEXIT=0", "-Wl,--emit-relocs"], flags].concat()).then_some(home)
}

fn link(test: &str, home: &Path, name: &str, flags: &[&str]) -> bool {
    let linked = Command::new("cc").current_dir(home).args(["-O2", "-o", name, "p.c"]).args(flags).output();
    match linked {
        Ok(output) if output.status.success() => true,
        Ok(output) => panic!("{}", String::from_utf8_lossy(&output.stderr)),
        Err(error) => {
            skip(test, format!("no C compiler: {error}"));
            false
        }
    }
}

/// The versions that are installed, each as the option that names it.
fn bolts(test: &str) -> Vec<String> {
    let path = |major| PathBuf::from(format!("/usr/lib/llvm-{major}/bin/llvm-bolt"));
    let found: Vec<String> = (16..40)
        .map(path)
        .filter(|path| path.is_file())
        .map(|path| format!("--llvm-bolt={}", path.display()))
        .collect();
    if found.is_empty() {
        skip(test, "no llvm-bolt: apt-get install bolt-19 brings one");
    }
    found
}

/// A script that says that it is an llvm-bolt of a version, and then does what it says.
fn script(home: &Path, version: &str, does: &str) -> String {
    let text = format!(
        "#!/bin/sh\ncase $1 in --version) echo 'LLVM version {version}'; echo 'BOLT revision'; exit 0;; esac\n{does}\n"
    );
    // By another process, as programs are copied: what this one has open for writing is never run.
    let (draft, path) = (home.join("script"), home.join("llvm-bolt"));
    fs::write(&draft, text).expect("the folder can be written");
    fs::set_permissions(&draft, Permissions::from_mode(0o755)).expect("it is ours");
    copy_program(&draft, &path);
    format!("--llvm-bolt={}", path.display())
}

fn printed(home: &Path, name: &str) -> String {
    let output = Command::new(home.join(name)).output().expect("it runs");
    assert!(output.status.success(), "{name}: {output:?}");
    String::from_utf8(output.stdout).expect("text")
}

fn address(path: &Path, name: &str) -> u64 {
    let bytes = fs::read(path).expect("it was made");
    let program = Program::parse("p", &bytes).expect("an ELF file");
    program.functions()[program.by_name(name).unwrap_or_else(|| panic!("no {name}")) as usize].address
}

fn code_of(path: &Path, name: &str) -> Vec<u8> {
    let bytes = fs::read(path).expect("it was made");
    let program = Program::parse("p", &bytes).expect("an ELF file");
    let function = &program.functions()[program.by_name(name).expect("it is there") as usize];
    let holds = |segment: &&planish_profile::Segment| {
        segment.executable
            && (segment.address..segment.address + segment.file_bytes).contains(&function.address)
    };
    let segment = program.segments.iter().find(holds).expect("code is loaded");
    let at = usize::try_from(function.address - segment.address + segment.offset).expect("64 bits");
    bytes[at..at + usize::try_from(function.bytes).expect("64 bits")].to_vec()
}

/// Nothing of a draft is left.
fn names(home: &Path) -> Vec<String> {
    let listed = fs::read_dir(home).expect("the folder is there");
    let hidden = listed.map(|entry| entry.expect("an entry").file_name().into_string().expect("text"));
    hidden.filter(|name| name.starts_with('.')).collect()
}

fn result(run: &Run) -> Value {
    run.envelope()["result"].clone()
}

#[test]
fn counted_on_one_run_and_laid_out_by_it_the_program_does_the_same() {
    const NAME: &str = "counted_on_one_run_and_laid_out_by_it_the_program_does_the_same";
    for (kind, flags) in
        [("pie", &["-fPIE", "-pie"][..]), ("fixed", &["-fno-pie", "-no-pie"]), ("debug", &["-g"])]
    {
        let Some(home) = home(NAME, flags) else { return };
        let home = home.path();
        fs::set_permissions(home.join("p"), Permissions::from_mode(0o750)).expect("it is ours");
        let wanted = printed(home, "p");
        for bolt in bolts(NAME) {
            let told = format!("{kind} {bolt}");
            let counted = on(home, &format!("text bolt p --instrument -o count {bolt} --json"));
            assert_eq!(counted.exit, 0, "{told}: {}{}", counted.stdout, counted.stderr);
            let fdata = result(&counted)["fdata"].as_str().expect("a file").to_owned();
            assert_eq!(printed(home, "count"), wanted, "{told}");
            assert!(Path::new(&fdata).is_file(), "{told}: {fdata}");

            let line = format!("text bolt p --profile {fdata} {bolt} --same-output --json --try");
            let words = line.split(' ').chain(["{} 77"]);
            let laid: Run = command(home, words).output().expect("the binary starts").into();
            assert_eq!(laid.exit, 0, "{told}: {}{}", laid.stdout, laid.stderr);
            let found = result(&laid);
            assert_eq!((&found["layout"], &found["output"]), (&"blocks".into(), &"p.bolt".into()), "{told}");
            assert!(found["profiled"].as_u64() >= Some(3), "{told}: {found}");
            assert_eq!(found["checks"][2]["good"], true, "{told}: {found}");
            // Hot ones together, on a huge page of their own; what never ran is not among them.
            let hot = found["hot_start"].as_u64().expect("marks")..found["hot_end"].as_u64().expect("marks");
            let new = home.join("p.bolt");
            for name in ["work", "choose", "main"] {
                assert!(hot.contains(&address(&new, name)), "{told}: {name} {hot:x?}");
            }
            assert!(!hot.contains(&address(&new, "filler")), "{told}: {hot:x?}");
            assert!(found["after"]["whole_bytes"].as_u64().is_none_or(|bytes| bytes > 0), "{told}: {found}");
            assert_eq!(printed(home, "p.bolt"), wanted, "{told}");
            let mode = fs::metadata(&new).expect("it is there").permissions().mode();
            assert_eq!(mode & 0o7777, 0o750, "{told}");
            assert_eq!(names(home), [""; 0], "{told}");
            // Once is enough.
            let again = on(home, &format!("text bolt p.bolt --profile {fdata} --json"));
            assert!(again.exit == 3 && again.stdout.contains("laid out by BOLT already"), "{}", again.stdout);
            let again = on(home, "text bolt count --instrument --json");
            assert!(again.exit == 3 && again.stdout.contains("is instrumented"), "{}", again.stdout);
        }
    }
}

#[test]
fn stacks_order_functions_and_leave_every_block_where_it_is() {
    const NAME: &str = "stacks_order_functions_and_leave_every_block_where_it_is";
    let Some(home) = home(NAME, &["-fPIE", "-pie"]) else { return };
    let home = home.path();
    let wanted = printed(home, "p");
    for bolt in bolts(NAME) {
        let line = format!("text bolt p --profile stacks --algorithm weight {bolt} --json");
        let laid = on(home, &line);
        assert_eq!(laid.exit, 0, "{bolt}: {}{}", laid.stdout, laid.stderr);
        let found = result(&laid);
        assert_eq!((&found["layout"], &found["order"]), (&"functions".into(), &"weight".into()));
        assert!(found["why"].as_str().is_some_and(|why| why.contains("stacks")), "{found}");
        let new = home.join("p.bolt");
        let at = ["choose", "work"].map(|name| address(&new, name));
        assert!(at.is_sorted() && at[0] == found["hot_start"].as_u64().expect("marks"), "{bolt}: {at:x?}");
        let hot = at[0]..found["hot_end"].as_u64().expect("marks");
        // What is in no profile has not moved, nor changed by a byte.
        for cold in ["rare", "filler"] {
            assert!(!hot.contains(&address(&new, cold)));
            let same = code_of(&home.join("p"), cold).len() == code_of(&new, cold).len();
            assert!(same && address(&new, cold) == address(&home.join("p"), cold), "{bolt}: {cold}");
        }
        assert_eq!(printed(home, "p.bolt"), wanted, "{bolt}");
        // Named by hand, or known to fail: it stays, and the order does without it.
        let skipped = on(home, &format!("{line} --skip-funcs work,interpret"));
        assert_eq!(skipped.exit, 0, "{bolt}: {}{}", skipped.stdout, skipped.stderr);
        let found = result(&skipped);
        assert_eq!(found["skipped"].as_array().map(Vec::len), Some(2), "{bolt}: {found}");
        assert_eq!(address(&new, "work"), address(&home.join("p"), "work"), "{bolt}");
        assert_eq!(printed(home, "p.bolt"), wanted, "{bolt}");
    }
}

/// A recording as `perf record -b` writes it to a pipe: two stacks of branches of a program at its own addresses.
fn branch_stacks(program: &Path) -> Vec<u8> {
    const SAMPLE_TYPE: u64 = 1 | 1 << 1 | 1 << 2 | 1 << 11;
    const USER: u16 = 2;
    let words = |words: &[u64]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    let record = |kind: u32, misc: u16, body: &[u8]| {
        let size = u16::try_from(8 + body.len()).expect("a short record");
        [&kind.to_le_bytes()[..], &misc.to_le_bytes(), &size.to_le_bytes(), body].concat()
    };
    let mut attribute = [&1_u32.to_le_bytes()[..], &128_u32.to_le_bytes()].concat();
    attribute.extend(words(&[0, 1, SAMPLE_TYPE, 0, 1 << 18]));
    attribute.resize(128, 0);
    let (pid, bytes) = (7_u64 << 32 | 7, fs::read(program).expect("it was linked"));
    let parsed = Program::parse("p", &bytes).expect("an ELF file");
    let text = parsed.segments.iter().find(|segment| segment.executable).expect("code");
    let mut mapping = words(&[pid, text.address, text.file_bytes, text.offset, 0, 0]);
    mapping.truncate(56);
    mapping.extend(5_u64.to_le_bytes());
    let mut path = program.to_str().expect("text").as_bytes().to_vec();
    path.resize((path.len() / 8 + 1) * 8, 0);
    mapping.extend(path);
    mapping.extend(words(&[pid, 10]));
    let at = |name: &str| address(program, name);
    // The call of `choose` and the way back to it in the loop of `work`, by the opcodes of x86-64.
    let code = code_of(program, "work");
    let call = code.iter().position(|byte| *byte == 0xe8).expect("a call") as u64;
    let back = code.windows(2).rposition(|pair| pair[0] == 0x75).expect("a loop") as u64;
    let target = back.wrapping_add(2).wrapping_add_signed(i64::from(code[back as usize + 1].cast_signed()));
    let stack = [(back, target), (call, at("choose").wrapping_sub(at("work"))), (back, target)];
    let mut sample = words(&[at("choose"), pid, 20, 3]);
    for (from, to) in stack {
        sample.extend(words(&[at("work") + from, at("work").wrapping_add(to), 0]));
    }
    let head = [&b"PERFILE2"[..], &words(&[16])].concat();
    let samples = record(9, USER, &sample).repeat(500);
    [head, record(64, 0, &attribute), record(10, USER, &mapping), samples].concat()
}

#[test]
fn branch_stacks_of_perf_lay_out_blocks_without_perf() {
    const NAME: &str = "branch_stacks_of_perf_lay_out_blocks_without_perf";
    if !cfg!(target_arch = "x86_64") {
        return skip(NAME, "the recording is made of opcodes of x86-64");
    }
    for flags in [&["-fPIE", "-pie"], &["-fno-pie", "-no-pie"]] {
        let Some(home) = home(NAME, flags) else { return };
        let home = home.path();
        let wanted = printed(home, "p");
        fs::write(home.join("perf.data"), branch_stacks(&home.join("p"))).expect("the folder can be written");
        for bolt in bolts(NAME) {
            let laid = on(home, &format!("text bolt p --profile perf.data {bolt} --log log --json"));
            assert_eq!(laid.exit, 0, "{bolt}: {}{}", laid.stdout, laid.stderr);
            let found = result(&laid);
            assert_eq!(found["layout"], "blocks");
            let log = fs::read_to_string(home.join("log")).expect("a log");
            // BOLT walks each run through the code that it has disassembled: every one fits.
            assert!(log.contains("traces mismatching disassembled function contents: 0 (0.0%)"), "{log}");
            assert!(found["profiled"].as_u64() >= Some(2), "{bolt}: {found}");
            assert_eq!(printed(home, "p.bolt"), wanted, "{bolt}");
        }
    }
}

#[test]
fn libraries_are_laid_out_too_and_keep_what_others_link_to() {
    const NAME: &str = "libraries_are_laid_out_too_and_keep_what_others_link_to";
    let Some(home) = home(NAME, &[]) else { return };
    let home = home.path();
    if !link(NAME, home, "l.so", &["-DEXIT=0", "-shared", "-fPIC", "-Wl,--emit-relocs,-soname,l.so.1"]) {
        return;
    }
    for bolt in bolts(NAME) {
        let laid = on(home, &format!("text bolt l.so --profile stacks -o l.new.so {bolt} --json"));
        assert_eq!(laid.exit, 0, "{bolt}: {}{}", laid.stdout, laid.stderr);
        assert_eq!(result(&laid)["checks"][1]["good"], Value::Null, "no kernel loads a library");
    }
}

#[test]
fn what_bolt_cannot_do_is_told_before_it_is_run() {
    const NAME: &str = "what_bolt_cannot_do_is_told_before_it_is_run";
    let Some(home) = home(NAME, &[]) else { return };
    let home = home.path();
    let linked = [
        ("bare", &["-DEXIT=0"][..]),
        ("stripped", &["-DEXIT=0", "-s"]),
        ("p.o", &["-DEXIT=0", "-c"]),
        ("still", &["-DEXIT=0", "-static", "-Wl,--emit-relocs"]),
    ];
    assert!(linked.iter().all(|(name, flags)| link(NAME, home, name, flags)));
    fs::write(home.join("flat"), "no_lbr cycles:u\n1 work 8 700\n1 choose 4 300\n").expect("a folder");
    fs::write(home.join("other"), "1 f 8 1 g 0 0 700\n1 work 4 1 choose 0 0 1\n").expect("a folder");
    let none = format!("--llvm-bolt={}", home.join("none").display());
    for (line, exit, why) in [
        ("text bolt bare --instrument", 3, "-Wl,--emit-relocs"),
        ("text bolt stripped --instrument", 3, "stripped"),
        ("text bolt p.o --instrument", 3, "object file"),
        ("text bolt p.c --instrument", 2, "not an ELF"),
        ("text bolt still --instrument --each-process", 3, "is static"),
        ("text bolt p --profile flat --layout blocks", 3, "flat samples of cycles:u"),
        ("text bolt p --profile flat --layout blocks", 3, "text bolt p --instrument"),
        ("text bolt p --profile stacks --layout blocks", 3, "blocks are laid out by counted branches"),
        ("text bolt p --profile other", 3, "of the profile's weight"),
        ("text bolt p --profile stacks --skip-funcs wrok", 2, "no function wrok"),
        ("text bolt p --profile stacks -o p", 3, "is the program itself"),
        ("text bolt p --profile stacks -o ./", 2, "is no file"),
        ("text bolt p", 2, "--profile"),
        ("text bolt p --instrument --profile stacks", 2, "--profile"),
        ("text bolt p --instrument --every 3 --each-process", 2, "--every"),
        (&format!("text bolt p --instrument {none}"), 2, "does not say that it is an llvm-bolt"),
    ] {
        let run = on(home, &format!("{line} --json"));
        assert_eq!(run.exit, exit, "{line}: {}", run.stdout);
        assert!(run.envelope().to_string().contains(why), "{line}: {}", run.stdout);
    }
    let old = script(home, "15.0.7", "exit 9");
    let run = on(home, &format!("text bolt p --instrument {old}"));
    assert!(run.exit == 3 && run.stderr.contains("known from 16.0 on"), "{}", run.stderr);
    assert_eq!(names(home), [""; 0]);
}

/// As llvm-bolt 19.1.7 prints it; here of any function, and of versions that do not.
const NAMED: &str = "BOLT-ERROR: unable to get new address corresponding to input address 0x12e0 in function \
                     work(*2). Consider adding this function to --skip-funcs=...";

#[test]
fn functions_that_bolt_fails_on_and_names_are_left_alone_at_the_next_try() {
    const NAME: &str = "functions_that_bolt_fails_on_and_names_are_left_alone_at_the_next_try";
    let Some(home) = home(NAME, &["-fPIE", "-pie"]) else { return };
    let home = home.path();
    fs::write(home.join("fdata"), "1 main 8 1 work 0 0 700\n1 work 4 1 choose 0 0 1\n").expect("a folder");
    let failing = format!(
        "for word; do case $word in --skip-funcs-file=*) skip=${{word#*=}};; esac; done\n\
         printf torn > $3\ngrep -qx work \"$skip\" || {{ echo '{NAMED}' >&2; exit 1; }}\ncp $1 $3"
    );
    let bolt = script(home, "22.1.0", &failing);
    let run = on(home, &format!("text bolt p --profile fdata {bolt} --log log --json"));
    assert_eq!(run.exit, 0, "{}{}", run.stdout, run.stderr);
    let found = result(&run);
    assert_eq!((&found["runs"], &found["skipped"][0]["function"]), (&2.into(), &"work".into()));
    assert!(found["skipped"][0]["why"].as_str().is_some_and(|why| why.contains("unable to get new address")));
    assert!(fs::read_to_string(home.join("log")).expect("a log").contains(NAMED));
    fs::remove_file(home.join("p.bolt")).expect("it was made");
    // The same function twice is no progress; what names nobody, or nobody of this program, is none either.
    for (does, why) in [
        (format!("printf torn > $3; echo '{NAMED}' >&2; exit 1"), "unable to get new address"),
        (
            "echo 'BOLT-ERROR: parent function not found for work'; exit 1".to_owned(),
            "symbol-mangling-version=v0",
        ),
        ("echo 'BOLT-ERROR: odd function elsewhere'; exit 1".to_owned(), "odd function elsewhere"),
        ("echo 'PLEASE submit a bug report' >&2; exit 1".to_owned(), "bug report"),
        ("kill -SEGV $$".to_owned(), "ended by signal 11"),
        ("exit 0".to_owned(), "llvm-bolt 22.1 failed"),
    ] {
        let bolt = script(home, "22.1.0", &does);
        let run = on(home, &format!("text bolt p --profile fdata {bolt} --json"));
        assert_eq!(run.exit, 4, "{does}: {}", run.stdout);
        assert!(run.envelope()["messages"][0].to_string().contains(why), "{}", run.stdout);
        assert!(!home.join("p.bolt").exists() && names(home).is_empty(), "{does}: nothing is left");
    }
}

#[test]
fn what_is_not_the_program_any_more_never_gets_a_name() {
    const NAME: &str = "what_is_not_the_program_any_more_never_gets_a_name";
    let Some(home) = home(NAME, &["-fPIE", "-pie"]) else { return };
    let home = home.path();
    assert!(
        link(NAME, home, "seven", &["-DEXIT=7"])
            && link(NAME, home, "l.so", &["-DEXIT=0", "-shared", "-fPIC"])
    );
    fs::write(home.join("fdata"), "1 main 8 1 work 0 0 700\n").expect("a folder");
    fs::write(home.join("text"), "no program").expect("a folder");
    let line = |bolt: &str| format!("text bolt p --profile fdata {bolt} --json --try");
    for (other, why) in
        [("seven", "--try ends with 7, and with 0"), ("l.so", "is not used"), ("text", "cannot be read")]
    {
        let bolt = script(home, "22.1.0", &format!("cp {} $3", home.join(other).display()));
        let words = line(&bolt);
        let run: Run = command(home, words.split(' ').chain(["{} 5"])).output().expect("it starts").into();
        assert_eq!(run.exit, 4, "{other}: {}", run.stdout);
        assert!(run.stdout.contains(why), "{other}: {}", run.stdout);
        assert!(!home.join("p.bolt").exists() && names(home).is_empty(), "{other}: nothing is left");
    }
    let bolt = script(home, "22.1.0", "cp $1 $3");
    let run: Run =
        command(home, line(&bolt).split(' ').chain(["no-such-command"])).output().expect("it starts").into();
    assert!(run.exit == 2 && run.stdout.contains("127"), "{}", run.stdout);
}

/// With a state of its own; while another test has the lock of the host, once more.
fn kept(home: &Path, line: &str) -> Run {
    let begun = Instant::now();
    let state = home.join("state").display().to_string();
    loop {
        let words = ["--json", "--state", &state].into_iter().chain(line.split(' '));
        let run: Run = command(home, words).output().expect("the binary starts").into();
        let is_busy = run.exit == 3 && run.stdout.contains("at work");
        if !is_busy || begun.elapsed() > Duration::from_secs(60) {
            return run;
        }
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// `CAP_NET_BIND_SERVICE`, permitted and in effect, as setcap(8) writes it.
const CAPABILITY: [u8; 20] = [1, 0, 0, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

fn attribute(path: &Path, name: &str) -> Option<Vec<u8>> {
    let mut value = [0_u8; 64];
    let length = rustix::fs::getxattr(path, name, &mut value[..]).ok()?;
    Some(value[..length].to_vec())
}

fn give(path: &Path, name: &str, value: &[u8]) -> bool {
    rustix::fs::setxattr(path, name, value, rustix::fs::XattrFlags::empty()).is_ok()
}

#[test]
fn the_program_makes_room_when_that_is_asked_for_and_undo_brings_it_back() {
    const NAME: &str = "the_program_makes_room_when_that_is_asked_for_and_undo_brings_it_back";
    if !rustix::process::geteuid().is_root() {
        return skip(NAME, "the lock of the host is root's");
    }
    let Some(home) = home(NAME, &["-fPIE", "-pie"]) else { return };
    let home = home.path();
    let program = home.join("p");
    let before = fs::read(&program).expect("it was linked");
    let given: Vec<(&str, &[u8])> = [("security.capability", &CAPABILITY[..]), ("user.note", b"mine")]
        .into_iter()
        .filter(|(name, value)| give(&program, name, value))
        .collect();
    // Bytes behind the last one that any header names change nothing.
    let bolt = script(home, "22.1.0", "cp $1 $3; echo more >> $3");
    let line = format!("text bolt p --profile stacks --replace {bolt}");
    let dry = kept(home, &format!("{line} --dry-run"));
    assert_eq!(dry.exit, 0, "{}", dry.stdout);
    assert!(result(&dry)["arguments"].to_string().contains("--reorder-functions=user"));
    assert!(fs::read(&program).expect("it is there") == before);
    let run = kept(home, &line);
    assert_eq!(run.exit, 0, "{}", run.stdout);
    assert!(fs::read(&program).expect("it is there").ends_with(b"more\n"));
    for (name, value) in &given {
        assert_eq!(attribute(&program, name).as_deref(), Some(*value), "{name}");
    }
    let entry = result(&run)["entry"].clone();
    assert!(run.stdout.contains(&format!(" undo {entry} puts the original back")), "{}", run.stdout);
    let again = kept(home, &line);
    assert!(again.exit == 3 && again.stdout.contains("undo comes first"), "{}", again.stdout);
    let undone = kept(home, &format!("undo {entry}"));
    assert_eq!(undone.exit, 0, "{}", undone.stdout);
    assert!(fs::read(&program).expect("it is there") == before && names(home).is_empty());
    fs::hard_link(&program, home.join("other-name")).expect("it is ours");
    let refused = |why: &str| {
        for line in [format!("{line} --dry-run"), line.clone()] {
            let run = kept(home, &line);
            assert!(run.exit == 3 && run.stdout.contains(why), "{line}: {}", run.stdout);
        }
    };
    refused("2 names");
    fs::remove_file(home.join("other-name")).expect("it is ours");
    fs::write(home.join(".p.planish"), "somebody's").expect("it is ours");
    refused("is there, and not ours");
    fs::remove_file(home.join(".p.planish")).expect("it is ours");
    fs::set_permissions(&program, Permissions::from_mode(0o4755)).expect("it is ours");
    refused("setuid");
    // Beside it, it may be laid out: the new one runs as who starts it. But not where there is no folder.
    let aside = format!("text bolt p --profile stacks {bolt} -o none/p");
    for line in [format!("{aside} --dry-run"), aside] {
        let run = kept(home, &line);
        assert!(run.exit == 2 && run.stdout.contains("none/p"), "{line}: {}", run.stdout);
    }
}

/// Who is not root has no journal of the host: the program is kept under another name.
#[test]
fn without_root_the_program_is_kept_beside_and_takes_its_attributes_along() {
    const NAME: &str = "without_root_the_program_is_kept_beside_and_takes_its_attributes_along";
    if !rustix::process::geteuid().is_root() {
        return skip(NAME, "only root can run a command as another user");
    }
    let Some(home) = home(NAME, &["-fPIE", "-pie"]) else { return };
    let (home, open) = (home.path(), tempfile::tempdir().expect("a temporary folder"));
    let program = home.join("p");
    let before = fs::read(&program).expect("it was linked");
    for path in [home, program.as_path()] {
        chown(path, Some(65534), Some(65534)).expect("it is ours");
    }
    let has_note = give(&program, "user.note", b"mine");
    let bolt = script(home, "22.1.0", "cp $1 $3; echo more >> $3");
    let line = format!("--json text bolt p --profile stacks --replace {bolt}");
    let planish = for_anybody(open.path());
    let run = || -> Run {
        let mut command = command_of(&planish, home, line.split(' '));
        command.env("HOME", home).uid(65534).gid(65534).output().expect("the binary starts").into()
    };
    if give(&program, "security.capability", &CAPABILITY) {
        let refused = run();
        assert!(refused.exit == 3 && refused.stdout.contains("capabilities"), "{}", refused.stdout);
        rustix::fs::removexattr(&program, "security.capability").expect("it was given");
    }
    let replaced = run();
    assert_eq!(replaced.exit, 0, "{}", replaced.stdout);
    assert!(replaced.stdout.contains("mv p.before-bolt p puts the original back"), "{}", replaced.stdout);
    assert!(fs::read(&program).expect("it is there").ends_with(b"more\n"));
    assert!(fs::read(home.join("p.before-bolt")).expect("it is kept") == before);
    assert_eq!(attribute(&program, "user.note").is_some(), has_note);
    let again = run();
    assert!(again.exit == 3 && again.stdout.contains("before-bolt is there already"), "{}", again.stdout);
}

/// Who owns the folder may be another user than who lays out: a link of theirs gives nothing of the host away.
#[test]
fn what_is_laid_in_the_place_of_a_draft_is_neither_given_away_nor_written() {
    const NAME: &str = "what_is_laid_in_the_place_of_a_draft_is_neither_given_away_nor_written";
    let Some(home) = home(NAME, &["-fPIE", "-pie"]) else { return };
    let home = home.path();
    let (victim, new) = (home.join("victim"), home.join("p.bolt"));
    fs::write(&victim, "precious").expect("the folder can be written");
    fs::set_permissions(&victim, Permissions::from_mode(0o600)).expect("it is ours");
    let owner = fs::metadata(&victim).expect("it is there").uid();
    let is_root = rustix::process::geteuid().is_root();
    if is_root {
        for path in [home.to_owned(), home.join("p")] {
            chown(&path, Some(65534), Some(65534)).expect("it is ours");
        }
    }
    let untouched = |told: &Run| {
        let now = fs::metadata(&victim).expect("it is there");
        assert_eq!((now.uid(), now.mode() & 0o777), (owner, 0o600), "{}", told.stdout);
        assert_eq!(fs::read_to_string(&victim).expect("ours"), "precious", "{}", told.stdout);
    };
    let at = home.display();
    // A link in the place of what BOLT has written, and a folder in the place of that which it was written in.
    let swapped = format!("cp $1 $3; mv $3 {at}/saved; ln -s {at}/victim $3");
    let moved = format!(
        "folder=$(readlink -f ${{3%/*}}); mv $folder {at}/aside; mkdir $folder\n\
         for name in new draft ${{3##*/}}; do ln -sf {at}/victim $folder/$name; done; cp $1 $3"
    );
    for (does, exit) in [(swapped, 4), (moved, 0)] {
        let bolt = script(home, "22.1.0", &does);
        let run = on(home, &format!("text bolt p --profile stacks {bolt} --json"));
        assert_eq!(run.exit, exit, "{does}: {}", run.stdout);
        untouched(&run);
        assert_eq!(new.exists(), exit == 0, "{does}");
    }
    let (made, wanted) = (fs::metadata(&new).expect("made"), fs::metadata(home.join("p")).expect("linked"));
    assert_eq!((made.uid(), made.mode()), (wanted.uid(), wanted.mode()));
    // A link that they have laid under the name itself.
    fs::remove_file(&new).expect("it was made");
    std::os::unix::fs::symlink(&victim, &new).expect("the folder can be written");
    if is_root {
        std::os::unix::fs::lchown(&new, Some(65534), Some(65534)).expect("it is ours");
        let bolt = script(home, "22.1.0", "cp $1 $3");
        let run = on(home, &format!("text bolt p --profile stacks {bolt} --json"));
        assert!(run.exit == 2 && run.stdout.contains("link of another user"), "{}", run.stdout);
        untouched(&run);
    }
}
