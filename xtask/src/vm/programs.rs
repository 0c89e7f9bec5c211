//! Programs of C for the guests, each linked dynamically to one libc that goes with it: what `planish run` starts, what
//! judges settings that have no file, and (two of them static) what `planish text huge` puts on huge pages.
//!
//! They are built from the compiler and the packages of this machine, so one that cannot be had is skipped aloud.

use crate::{ground, shell};
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const SOURCE: &str = "tests/vm/programs/place.c";
const CARD: &str = "tests/vm/programs/card.c";
const DENIED: &str = "tests/vm/programs/denied.c";
const ENGINE: &str = "tests/vm/programs/engine.c";
/// Where Debian has the libraries of this machine; the only one that guests emulate.
const MULTIARCH: &str = "x86_64-linux-gnu";

/// A file of the first root of a guest.
pub struct Packed {
    /// Its path, from the root.
    pub name: String,
    /// What is in it.
    pub bytes: Vec<u8>,
}

/// What could be built, and a line for each that could not.
pub fn build() -> Result<(Vec<Packed>, Vec<String>)> {
    let folder = ground::target_dir()?.join("vm-programs");
    fs::create_dir_all(&folder).with_context(|| format!("make {}", folder.display()))?;
    let (mut packed, mut skips) = (Vec::new(), Vec::new());
    type Build = fn(&Path) -> Result<Vec<Packed>>;
    for (what, build) in [("place-glibc", glibc as Build), ("place-musl", musl), ("engine", engines)] {
        match build(&folder) {
            Ok(files) => packed.extend(files),
            Err(error) => skips.push(format!("SKIP vm.{what}: {error:#}")),
        }
    }
    Ok((packed, skips))
}

fn glibc(folder: &Path) -> Result<Vec<Packed>> {
    let program = folder.join("place-glibc");
    shell::run(compiler()?.arg(SOURCE).arg("-o").arg(&program))?;
    let card = folder.join("card-glibc");
    shell::run(compiler()?.arg(CARD).arg("-o").arg(&card))?;
    let denied = folder.join("denied-glibc");
    shell::run(compiler()?.arg(DENIED).arg("-o").arg(&denied))?;
    let libc = shell::output(compiler()?.arg("-print-file-name=libc.so.6"))?;
    Ok(vec![
        packed("bin/place-glibc", &program)?,
        packed("bin/card-glibc", &card)?,
        packed("bin/denied", &denied)?,
        packed("lib64/ld-linux-x86-64.so.2", Path::new("/lib64/ld-linux-x86-64.so.2"))?,
        packed(&format!("usr/lib/{MULTIARCH}/libc.so.6"), Path::new(libc.trim()))?,
    ])
}

/// One program in the ways of linking that the routes to huge pages tell apart.
fn engines(folder: &Path) -> Result<Vec<Packed>> {
    const WAYS: [(&str, &[&str]); 3] = [
        ("engine-fixed", &["-static", "-no-pie", "-fno-pie"]),
        ("engine-pie", &["-pie", "-fpie"]),
        ("engine-static-pie", &["-static-pie", "-fpie"]),
    ];
    let link = |(name, flags): (&str, &[&str])| {
        let program = folder.join(name);
        shell::run(compiler()?.args(flags).arg(ENGINE).arg("-o").arg(&program))?;
        packed(&format!("bin/{name}"), &program)
    };
    WAYS.into_iter().map(link).collect()
}

fn musl(folder: &Path) -> Result<Vec<Packed>> {
    let root = musl_root()?;
    let program = folder.join("place-musl");
    let libc = root.join("lib/x86_64-linux-musl/libc.so");
    let start = |name: &str| root.join("usr/lib/x86_64-linux-musl").join(name);
    let mut link = compiler()?;
    link.args(["-nostdlib", "-no-pie", "-fno-pie"]).arg(start("crt1.o")).arg(start("crti.o")).arg(SOURCE);
    // By its name and not its path, which would be what the program asks its loader for.
    link.arg("-L").arg(root.join("lib/x86_64-linux-musl")).arg("-l:libc.so").arg(start("crtn.o"));
    link.arg("-Wl,-dynamic-linker,/lib/ld-musl-x86_64.so.1");
    shell::run(link.arg("-o").arg(&program))?;
    // The library is its own loader.
    Ok(vec![packed("bin/place-musl", &program)?, packed("lib/ld-musl-x86_64.so.1", &libc)?])
}

fn compiler() -> Result<Command> {
    let name = ["cc", "gcc", "clang"].into_iter().find(|name| shell::which(name).is_some());
    let mut command = Command::new(name.context("no C compiler")?);
    command.args(["-O1", "-w", "-fno-builtin", "-fno-stack-protector"]);
    Ok(command)
}

fn packed(name: &str, path: &Path) -> Result<Packed> {
    let bytes = fs::read(path).with_context(|| format!("read {}", path.display()))?;
    Ok(Packed { name: name.to_owned(), bytes })
}

/// Debian's musl, unpacked in the cache and never installed.
fn musl_root() -> Result<PathBuf> {
    let root = ground::cache_dir()?.join("musl");
    if root.exists() {
        return Ok(root);
    }
    let part = root.with_file_name("musl.part");
    let _ = fs::remove_dir_all(&part);
    fs::create_dir_all(&part).with_context(|| format!("make {}", part.display()))?;
    let mut fetch = Command::new("apt-get");
    fetch.args(["download", "-qq", "--option=APT::Sandbox::User=", "musl", "musl-dev"]).current_dir(&part);
    shell::run(&mut fetch)?;
    let archives: Vec<PathBuf> = fs::read_dir(&part)?.flatten().map(|entry| entry.path()).collect();
    if archives.len() != 2 {
        bail!("apt-get download left {} packages of musl", archives.len());
    }
    for archive in archives {
        shell::run(Command::new("dpkg-deb").arg("-x").arg(&archive).arg(&part))?;
        fs::remove_file(&archive)?;
    }
    // Renamed when complete, so that a fetch killed half way is not taken for one.
    fs::rename(&part, &root).with_context(|| format!("name {}", root.display()))?;
    Ok(root)
}
