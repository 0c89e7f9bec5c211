//! The page cache of this machine, with a program that is made here: copies in a temporary folder, and nothing else.
#![expect(clippy::disallowed_methods, clippy::unwrap_used, reason = "files and processes of these tests")]

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use planish_host::Host;
use planish_hugify::{
    HugifyError, Image, Kind, Probe, Remake, coverage, refuse_patched, runners, try_program,
};
use planish_skip::skip;
use planish_sys::pages;
use tempfile::TempDir;

const LEAST: f64 = 90.0;

/// Seven pages of 1 MiB of code, of which every base page is touched, and which waits when it is given a word.
const SOURCE: &str = r#"
#include <unistd.h>
__asm__(".text\n.globl big\n.p2align 12\nbig:\n"
        ".rept 1792\n nop\n .p2align 12, 0x90\n .endr\n ret\n");
extern void big(void);
int main(int count, char **words) { (void)words; big(); if (count > 1) pause(); return 0; }
"#;

struct Here {
    folder: TempDir,
    huge: u64,
}

impl Here {
    /// A folder on a disk, and the size of a huge page; a word why not where this machine has either not.
    fn new(test: &str) -> Option<Self> {
        let Some(huge) = pages::thp_bytes() else {
            skip(test, "no transparent huge pages");
            return None;
        };
        if Command::new("cc").arg("--version").output().is_err() {
            skip(test, "no cc");
            return None;
        }
        Some(Self { folder: TempDir::new().unwrap(), huge: huge as u64 })
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn build(&self, name: &str, flags: &[&str]) -> Option<Vec<u8>> {
        let (source, program) = (self.at("engine.c"), self.at(name));
        fs::write(&source, SOURCE).unwrap();
        let built = Command::new("cc").args(flags).arg(&source).arg("-o").arg(&program).output().unwrap();
        built.status.success().then(|| fs::read(&program).unwrap())
    }

    /// The program as lld lays it out, with what BOLT needs of it.
    fn linked_by_lld(&self) -> Option<Vec<u8>> {
        let flags = ["-O1", "-fuse-ld=lld", "-Wl,--emit-relocs"];
        // That of the Rust toolchain serves as well.
        let host = concat!("lib/rustlib/", "x86_64-unknown-linux-gnu", "/bin/gcc-ld");
        let linker = format!("-B{}", sysroot().join(host).display());
        let built = self.build("lld", &flags);
        built.or_else(|| self.build("lld", &[&flags[..], &[&linker]].concat()))
    }

    /// Writes a program by pieces, in a process of its own: a file that is open for writing would be inherited by what
    /// another test starts at that moment, and the kernel executes none.
    fn write(&self, name: &str, bytes: &[u8], piece: usize) -> PathBuf {
        let path = self.at(name);
        let _ = fs::remove_file(&path);
        let mut dd = Command::new("dd");
        dd.arg(format!("of={}", path.display())).args([&format!("bs={piece}"), "iflag=fullblock"]);
        let mut dd = dd.stdin(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        dd.stdin.take().unwrap().write_all(bytes).unwrap();
        assert!(dd.wait().unwrap().success());
        fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        File::open(&path).unwrap().sync_all().unwrap();
        path
    }

    fn cached(&self, path: &Path) -> planish_hugify::Cached {
        let image = Image::parse(&fs::read(path).unwrap()).unwrap();
        Probe::open(path, image, self.huge).unwrap().cached().unwrap()
    }

    /// Whether the page cache of this file system has huge pieces at all.
    fn has_large_folios(&self, test: &str, bytes: &[u8]) -> bool {
        let path = self.write("probe", bytes, self.huge as usize);
        let is = self.cached(&path).huge_bytes > 0;
        if !is {
            skip(test, "this kernel, or this file system, caches no file in huge pieces");
        }
        is
    }
}

/// Where the Rust toolchain lies.
fn sysroot() -> PathBuf {
    let told = Command::new("rustc").args(["--print", "sysroot"]).output().map(|output| output.stdout);
    PathBuf::from(String::from_utf8(told.unwrap_or_default()).unwrap().trim())
}

/// Where a file says that its program headers lie.
fn programs_at(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(*bytes[32..].first_chunk().unwrap())
}

fn wait(program: &Path) -> Child {
    let child = Command::new(program).arg("wait").spawn().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(300));
    child
}

fn end(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_copy_in_huge_pieces_is_mapped_so_by_every_process_that_starts() {
    let test = "a_copy_in_huge_pieces_is_mapped_so_by_every_process_that_starts";
    let Some(here) = Here::new(test) else { return };
    let bytes = here.build("engine", &["-O1"]).expect("cc works");
    if !here.has_large_folios(test, &bytes) {
        return;
    }
    let small = here.write("small", &bytes, 4096);
    assert_eq!(here.cached(&small).huge_bytes, 0, "base pages, as a linker writes it");
    let image = Image::parse(&bytes).unwrap();
    assert!(!image.is_ready(here.huge), "a PIE of this compiler is aligned to base pages");

    let remake = Remake::plan(&bytes, here.huge).unwrap();
    let made = remake.make(&bytes).unwrap();
    let copy = here.write("copy", &made, here.huge as usize);
    let image = Image::parse(&made).unwrap();
    let cached = here.cached(&copy);
    assert!(cached.is_at_least(LEAST) && cached.cold_bytes == 0, "{cached:?}");
    match try_program(&copy, &image, here.huge) {
        Ok(loaded) => {
            let loaded = loaded.expect("it is a program");
            assert!(loaded.is_at_least(LEAST) && loaded.base.is_multiple_of(here.huge), "{loaded:?}");
        }
        Err(error) => skip(test, format!("a program cannot be loaded and not run here: {error}")),
    }

    let host = Host::live();
    let name = copy.to_str().unwrap();
    let child = wait(&copy);
    let seen = coverage(&host, child.id(), name, &image, here.huge).unwrap().expect("it runs it");
    assert!(seen.is_at_least(LEAST), "{seen:?}");
    assert_eq!(runners(&host, name), [child.id()]);
    refuse_patched(&host, child.id(), name, &image, &made).unwrap();
    // The bytes of another build are not what runs.
    let mut other = made.clone();
    let text = image.text().next().unwrap();
    other[usize::try_from(text.offset_of(text.whole(here.huge).unwrap().start)).unwrap()] ^= 1;
    let patched = refuse_patched(&host, child.id(), name, &image, &other);
    assert!(matches!(patched, Err(HugifyError::Patched { .. })), "{patched:?}");
    end(child);
}

/// /proc shows the program and the libraries of such a process by a thread that has not ended.
#[test]
fn who_runs_a_program_with_its_first_thread_ended_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    for pid in ["7", "9"] {
        write(&format!("proc/{pid}/status"), "Name:\tdb\nState:\tZ (zombie)\n");
        write(&format!("proc/{pid}/maps"), "");
        write(&format!("proc/{pid}/task/{pid}/stat"), "");
    }
    write("proc/7/task/8/stat", "");
    write("proc/8/status", "Name:\tworker\nState:\tS (sleeping)\n");
    write("proc/8/maps", "1000-2000 r-xp 00000000 fe:00 6 /lib/libdb.so\n");
    std::os::unix::fs::symlink("/bin/db", folder.path().join("proc/8/exe")).unwrap();
    let host = Host::open(folder.path()).unwrap();
    // No listing of /proc has a thread: here it has one, and it would be found twice.
    let found = |path: &str| {
        let mut pids = runners(&host, path);
        pids.retain(|pid| *pid != 8);
        pids
    };
    assert_eq!(found("/bin/db"), [7], "and 9 has ended with all of it");
    assert_eq!(found("/lib/libdb.so"), [7]);
    assert!(found("/bin/other").is_empty());
    assert!(found("libdb.so").is_empty(), "the end of a name is another file");
}

/// Has a library run, and with a word changes a byte of its code in memory, as a patch of a running program does.
const USER: &str = r#"
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>
int main(int count, char **words)
{
    void *library = dlopen(words[1], RTLD_NOW);
    char *code = library ? dlsym(library, "big") : NULL;
    if (!code)
        return 1;
    char *page = (char *)(((uintptr_t)code + (4u << 20)) & ~(uintptr_t)4095);
    if (count > 2) {
        if (mprotect(page, 4096, PROT_READ | PROT_WRITE | PROT_EXEC) != 0)
            return 2;
        page[64] = ~page[64];
        if (mprotect(page, 4096, PROT_READ | PROT_EXEC) != 0)
            return 2;
    }
    puts("ready");
    fflush(stdout);
    pause();
    return 0;
}
"#;

/// That program, which is ended however the test ends.
struct User(Child);

impl User {
    /// `None` where code cannot be changed here.
    fn start(program: &Path, library: &Path, words: &[&str]) -> Option<Self> {
        let mut command = Command::new(program);
        let child = command.arg(library).args(words).stdout(Stdio::piped()).spawn().unwrap();
        let (mut user, mut line) = (Self(child), String::new());
        BufReader::new(user.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
        if line == "ready\n" {
            return Some(user);
        }
        assert_eq!(user.0.wait().unwrap().code(), Some(2), "it has loaded the library");
        None
    }
}

impl Drop for User {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// With an entry a library was taken for a program, and nobody for one who runs it: its patch was not seen.
#[test]
fn a_patch_of_a_library_is_seen_whatever_entry_it_has() {
    let test = "a_patch_of_a_library_is_seen_whatever_entry_it_has";
    let Some(here) = Here::new(test) else { return };
    let source = here.at("user.c");
    fs::write(&source, USER).unwrap();
    let program = here.at("user");
    let built = Command::new("cc").arg(&source).arg("-o").arg(&program).arg("-ldl").status().unwrap();
    assert!(built.success());
    // As libraries that tell their version when they are run: they name a loader.
    let loader =
        "__attribute__((section(\".interp\"))) const char loader[] = \"/lib64/ld-linux-x86-64.so.2\";\n";
    let with_loader = here.at("loader.c");
    fs::write(&with_loader, loader).unwrap();
    let with_loader = with_loader.to_str().unwrap();
    let shared = ["-O1", "-shared", "-fPIC"];
    let host = Host::live();
    for (name, flags, kind) in [
        ("plain.so", &[][..], Kind::Library),
        ("entry.so", &["-Wl,-e,big"], Kind::Library),
        ("loader.so", &["-Wl,-e,big", with_loader], Kind::Anywhere),
    ] {
        let Some(bytes) = here.build(name, &[&shared, flags].concat()) else {
            return skip(test, "cc makes no shared libraries");
        };
        let (image, path) = (Image::parse(&bytes).unwrap(), here.at(name));
        assert_eq!(image.kind, kind, "{name}");
        let path_text = path.to_str().unwrap();
        assert!(runners(&host, path_text).is_empty(), "{name}");
        let user = User::start(&program, &path, &[]).expect("nothing is changed");
        assert_eq!(runners(&host, path_text), [user.0.id()], "{name}");
        refuse_patched(&host, user.0.id(), path_text, &image, &bytes).unwrap();
        drop(user);
        let Some(user) = User::start(&program, &path, &["patch"]) else {
            return skip(test, "code cannot be changed here");
        };
        assert_eq!(runners(&host, path_text), [user.0.id()], "{name}");
        let patched = refuse_patched(&host, user.0.id(), path_text, &image, &bytes);
        assert!(matches!(patched, Err(HugifyError::Patched { .. })), "{name}: {patched:?}");
    }
    // Programs stay programs, with an interpreter and without one.
    assert_eq!(Image::parse(&fs::read(&program).unwrap()).unwrap().kind, Kind::Anywhere);
    match here.build("static-pie", &["-O1", "-static-pie"]) {
        Some(bytes) => assert_eq!(Image::parse(&bytes).unwrap().kind, Kind::Anywhere),
        None => skip(test, "cc links no static PIE"),
    }
}

#[test]
fn a_file_that_nobody_uses_is_warmed_and_a_cold_one_is_only_looked_at() {
    let test = "a_file_that_nobody_uses_is_warmed_and_a_cold_one_is_only_looked_at";
    let Some(here) = Here::new(test) else { return };
    let Some(bytes) = here.build("fixed", &["-O1", "-no-pie"]) else {
        return skip(test, "no programs at fixed addresses here");
    };
    if !here.has_large_folios(test, &bytes) {
        return;
    }
    let small = here.write("small", &bytes, 4096);
    let image = Image::parse(&bytes).unwrap();
    assert!(image.kind == Kind::Fixed && image.is_ready(here.huge), "{image:?}");
    let probe = Probe::open(&small, image, here.huge).unwrap();
    assert_eq!(probe.cached().unwrap().huge_bytes, 0);
    let file = File::open(&small).unwrap();
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
    let cold = probe.cached().unwrap();
    assert_eq!((cold.cold_bytes, cold.huge_bytes), (cold.whole_bytes, 0), "nothing was read");
    for _ in 0..2 {
        let looked = Probe::look(&small, here.huge).unwrap().cached().unwrap();
        assert_eq!(looked, cold, "headers are no page of text");
    }
    let warm = probe.warm().unwrap();
    if !warm.is_at_least(LEAST) {
        return skip(test, format!("faults read no huge pieces on this kernel: {warm:?}"));
    }
    let child = wait(&small);
    let image = Image::parse(&bytes).unwrap();
    let seen = coverage(&Host::live(), child.id(), small.to_str().unwrap(), &image, here.huge).unwrap();
    end(child);
    assert!(seen.expect("it runs it").is_at_least(LEAST), "{seen:?}");
}

#[test]
fn text_that_is_linked_apart_from_its_offsets_moves_and_runs() {
    let test = "text_that_is_linked_apart_from_its_offsets_moves_and_runs";
    let Some(here) = Here::new(test) else { return };
    let Some(bytes) = here.linked_by_lld() else { return skip(test, "no lld") };
    let remake = Remake::plan(&bytes, here.huge).unwrap();
    assert!(remake.added_bytes() > 0, "lld does not lay text at offsets that fit addresses");
    let made = remake.make(&bytes).unwrap();
    let copy = here.write("copy", &made, here.huge as usize);
    let status = Command::new(&copy).status().unwrap();
    assert!(status.success(), "{status}");
    if here.has_large_folios(test, &made) {
        assert!(here.cached(&copy).is_at_least(LEAST));
    }
}

/// BOLT puts the program headers into its new segment, where a program and its loader look for them.
#[test]
fn a_program_that_bolt_has_laid_out_moves_and_runs() {
    let test = "a_program_that_bolt_has_laid_out_moves_and_runs";
    let Some(here) = Here::new(test) else { return };
    let packaged = (16..40).rev().map(|major| format!("/usr/lib/llvm-{major}/bin/llvm-bolt"));
    let Some(bolt) = packaged.into_iter().find(|path| Path::new(path).is_file()) else {
        return skip(test, "no llvm-bolt: apt-get install bolt-19 brings one");
    };
    if here.linked_by_lld().is_none() {
        return skip(test, "no lld");
    }
    let laid = Command::new(bolt).arg(here.at("lld")).arg("-o").arg(here.at("laid")).output().unwrap();
    assert!(laid.status.success(), "{}", String::from_utf8_lossy(&laid.stderr));
    let bytes = fs::read(here.at("laid")).unwrap();
    let remake = Remake::plan(&bytes, here.huge).unwrap();
    assert!(remake.insertions[0].at < programs_at(&bytes), "BOLT puts them behind the text");
    let made = remake.make(&bytes).unwrap();
    let copy = here.write("copy", &made, here.huge as usize);
    match try_program(&copy, &Image::parse(&made).unwrap(), here.huge) {
        // It has asked the kernel where they are.
        Ok(loaded) => assert!(loaded.expect("it is a program").base.is_multiple_of(here.huge)),
        Err(error) => skip(test, format!("a program cannot be loaded and not run here: {error}")),
    }
    let status = Command::new(&copy).status().unwrap();
    assert!(status.success(), "{status}");
}

/// The library of the Rust compiler is laid out anew by BOLT, which puts the program headers into its new segment.
#[test]
fn a_library_whose_program_headers_lie_behind_its_text_moves_and_works() {
    let test = "a_library_whose_program_headers_lie_behind_its_text_moves_and_works";
    let Some(here) = Here::new(test) else { return };
    let libraries = fs::read_dir(sysroot().join("lib")).into_iter().flatten().flatten();
    let mut libraries = libraries.map(|entry| entry.path());
    let is_driver =
        |path: &PathBuf| path.file_name().unwrap().to_string_lossy().starts_with("librustc_driver");
    let Some(library) = libraries.find(is_driver) else { return skip(test, "no compiler made of a library") };
    let bytes = fs::read(&library).unwrap();
    let remake = Remake::plan(&bytes, here.huge).unwrap();
    let first = remake.insertions.first().map_or(u64::MAX, |insertion| insertion.at);
    if programs_at(&bytes) <= first {
        return skip(test, "the library of this compiler is laid out otherwise");
    }
    let made = remake.make(&bytes).unwrap();
    assert!(Image::parse(&made).unwrap().is_ready(here.huge));
    assert_eq!(programs_at(&made), programs_at(&bytes) + remake.added_bytes());
    let copy = here.write(library.file_name().unwrap().to_str().unwrap(), &made, here.huge as usize);

    let compiler = |words: &[&str]| {
        let mut rustc = Command::new(sysroot().join("bin/rustc"));
        // It finds its own libraries from where it lies.
        let folders = std::env::join_paths([here.folder.path(), &sysroot().join("lib")]).unwrap();
        rustc.env("LD_LIBRARY_PATH", folders).current_dir(here.folder.path());
        rustc.arg("--sysroot").arg(sysroot()).args(words);
        rustc
    };
    let listed = compiler(&["--version"]).env("LD_TRACE_LOADED_OBJECTS", "1").output().unwrap();
    assert!(String::from_utf8_lossy(&listed.stdout).contains(copy.to_str().unwrap()), "{listed:?}");
    for (source, is_sound) in [("pub fn one() -> u32 { 1 }", true), ("pub fn one() -> u32 { \"1\" }", false)]
    {
        fs::write(here.at("one.rs"), source).unwrap();
        let built = compiler(&["--crate-type=lib", "-O", "one.rs"]).output().unwrap();
        // Errors of the compiler end in a panic that is caught: it unwinds by the program headers.
        let code = if is_sound { 0 } else { 1 };
        assert_eq!(built.status.code(), Some(code), "{}", String::from_utf8_lossy(&built.stderr));
        assert_eq!(String::from_utf8_lossy(&built.stderr).contains("mismatched types"), !is_sound);
    }
    if here.has_large_folios(test, &made) {
        assert!(here.cached(&copy).is_at_least(LEAST));
    }
}

#[test]
fn a_collapse_of_a_file_is_done_or_told() {
    let test = "a_collapse_of_a_file_is_done_or_told";
    let Some(here) = Here::new(test) else { return };
    let Some(bytes) = here.build("fixed", &["-O1", "-no-pie"]) else {
        return skip(test, "no programs at fixed addresses here");
    };
    let small = here.write("small", &bytes, 4096);
    let probe = Probe::open(&small, Image::parse(&bytes).unwrap(), here.huge).unwrap();
    match probe.collapse() {
        Ok(cached) => assert!(cached.huge_bytes > 0, "{cached:?}"),
        Err(error) => skip(test, format!("this kernel collapses no text of files: {error:?}")),
    }
}
