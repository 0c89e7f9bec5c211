//! The engine in several builds, for `./x bench builds`: the steps from the profile of the small program to the one
//! that is shipped, what a profile of its branches would give on top, and allocators that are installed here.

use crate::ordered::{Ordered, SERIES};
use crate::target::{self, Target, flag};
use crate::{ground, order, shell};
use anyhow::{Context, Result};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Allocators by the libraries that packages of distributions bring.
const ALLOCATORS: [(&str, &str); 3] = [
    ("jemalloc", "libjemalloc.so.2"),
    ("mimalloc", "libmimalloc.so"),
    ("tcmalloc", "libtcmalloc_minimal.so.4"),
];

/// Words for the benchmark: each build, the first of which the others are measured over.
pub fn words() -> Result<Vec<OsString>> {
    let kept = ground::target_dir()?.join("builds");
    fs::create_dir_all(&kept).with_context(|| format!("make {}", kept.display()))?;
    let own = Target::of_this_machine()?;
    let small = Ordered { profile: "release", ..SERIES };
    // A program keeps its name in the folder of its profile, whatever it was linked with.
    let keep = |name: &str, built: &Path| -> Result<PathBuf> {
        let to = kept.join(name);
        fs::copy(built, &to).with_context(|| format!("copy {}", built.display()))?;
        Ok(to)
    };
    let fast = keep("speed", &own.program(SERIES, &[])?)?;
    let shipped = keep("order", &own.shipped(SERIES)?)?;
    let mut builds = vec![
        ("built for speed", fast, None),
        ("built for size", keep("size", &own.program(small, &[])?)?, None),
        ("in its order", shipped.clone(), None),
    ];
    match by_profile(&own, &kept.join("profile")) {
        Ok(built) => builds.push(("in its order, by a profile of branches", keep("profile", &built)?, None)),
        Err(error) => eprintln!("x: no build by a profile of branches: {error:#}"),
    }
    for (name, library) in ALLOCATORS {
        match found(library)? {
            Some(library) => builds.push((name, shipped.clone(), Some(library))),
            None => eprintln!("x: no {library} on this machine: not measured"),
        }
    }
    let word = |(name, program, library): (&str, PathBuf, Option<PathBuf>)| {
        let mut word = OsString::from(format!("--build={name}="));
        word.push(program);
        if let Some(library) = library {
            word.push(":");
            word.push(library);
        }
        word
    };
    Ok(builds.into_iter().map(word).collect())
}

/// Where the loader has a library.
fn found(library: &str) -> Result<Option<PathBuf>> {
    let known = shell::output(Command::new("/sbin/ldconfig").arg("-p"))?;
    let named = known.lines().filter_map(|line| line.trim().split_once(" => "));
    let mut ours =
        named.filter(|(name, _)| name.split_whitespace().next().is_some_and(|it| it.starts_with(library)));
    Ok(ours.next().map(|(_, path)| PathBuf::from(path)))
}

/// The shipped build, optimised by the branches that `./x order`'s commands took: built twice in a folder of its own.
fn by_profile(own: &Target, folder: &Path) -> Result<PathBuf> {
    let merge = target::tools()?.join("llvm-profdata");
    if !merge.exists() {
        shell::run(Command::new("rustup").args(["component", "add", "llvm-tools"]))
            .context("no llvm-profdata (rustup component add llvm-tools)")?;
    }
    let (counts, merged) = (folder.join("counts"), folder.join("merged.profdata"));
    let _ = fs::remove_dir_all(&counts);
    fs::create_dir_all(&counts).with_context(|| format!("make {}", counts.display()))?;
    // Counted without optimisation across crates, which counters would make slow to build and change nothing of.
    let counting =
        own.apart(folder.join("counting"), flag("-Cprofile-generate=", &counts)).by_crate(SERIES.profile);
    let program = counting.program(SERIES, &[])?;
    let script = folder.join("commands.sh");
    let data = folder.join("data");
    let _ = fs::remove_dir_all(&data);
    fs::write(&script, order::series_commands(&program, &data)).context("write the commands")?;
    shell::run(Command::new("sh").arg(&script))?;
    shell::run(Command::new(merge).args(["merge", "-o"]).arg(&merged).arg(&counts))?;
    own.apart(folder.join("using"), flag("-Cprofile-use=", &merged)).program(SERIES, &SERIES.flags()?)
}
