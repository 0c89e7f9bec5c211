//! `./x dist`: what a release consists of: a tar, four Debian packages (the program, its helper for stores on S3,
//! libplanish, the engine planish-series), and their checksums.
//!
//! The program is static. libplanish is built for the C library of this machine, since it is linked into programs of
//! it, and so are planish-store-s3 and planish-series: their TLS is C, which needs a C compiler of the target, and they
//! ask for addresses of hosts, which a static program of glibc cannot. They run where that version or a later one is,
//! which their packages ask for. The engine is in no tar: it is six times as large as all the rest.
//!
//! Same sources, same bytes, whoever packs them and wherever: times in both archives come from the commit, members
//! are root's and in order, modes are ours and not those of an umask, and the binary names no folder of this machine.

use crate::ordered::{PLANISH, SERIES};
use crate::target::{self, Target};
use crate::{ground, shell};
use anyhow::{Context, Result};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// Where it goes.
#[derive(clap::Args)]
pub struct Options {
    /// Folder for the archives
    #[arg(long, value_name = "DIR", default_value = "dist")]
    out: PathBuf,
    /// Build and pack nothing but these
    #[arg(long, value_enum, value_delimiter = ',', value_name = "PARTS")]
    only: Vec<Part>,
}

/// What a release has.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// The program
    Planish,
    /// planish-store-s3
    Store,
    /// libplanish
    Library,
    /// planish-series
    Series,
}

impl Options {
    fn wants(&self, part: Part) -> bool {
        self.only.is_empty() || self.only.contains(&part)
    }
}

/// What goes where: from the checkout, into the tar, into the Debian package.
const FILES: &[(&str, &str, &str)] = &[
    ("README.md", "README.md", "usr/share/doc/planish/README.md"),
    ("CHANGELOG.md", "CHANGELOG.md", "usr/share/doc/planish/CHANGELOG.md"),
    ("ARCHITECTURE.md", "ARCHITECTURE.md", "usr/share/doc/planish/ARCHITECTURE.md"),
    ("GLOSSARY.md", "GLOSSARY.md", "usr/share/doc/planish/GLOSSARY.md"),
    ("LICENSE-MIT", "LICENSE-MIT", "usr/share/doc/planish/LICENSE-MIT"),
    ("LICENSE-APACHE", "LICENSE-APACHE", "usr/share/doc/planish/LICENSE-APACHE"),
    (
        "docs/completions/planish.bash",
        "completions/planish.bash",
        "usr/share/bash-completion/completions/planish",
    ),
    ("docs/completions/_planish", "completions/_planish", "usr/share/zsh/vendor-completions/_planish"),
    (
        "docs/completions/planish.fish",
        "completions/planish.fish",
        "usr/share/fish/vendor_completions.d/planish.fish",
    ),
];

const MAN: &str = "docs/man";

/// Folders whose files of these endings go along under the names that README, messages and each other know them by.
const READING: &[(&str, &[&str])] = &[
    ("docs", &["md"]),
    ("docs/proofs", &["html", "json"]),
    ("docs/schema", &["json"]),
    ("trials", &["toml"]),
];
/// Where they are in the Debian package.
const DOC: &str = "usr/share/doc/planish";

/// What belongs to libplanish: a line is a file of the checkout, and where it goes below the prefix.
const LIBRARY_FILES: &str = include_str!("../../crates/face/capi/package/files");

/// What a Debian package says of itself.
struct Package {
    name: &'static str,
    section: &'static str,
    relations: Relations,
    description: &'static str,
}

/// What else it wants installed.
enum Relations {
    /// Nothing; it can use these.
    Suggests(&'static str),
    /// The C library that it was linked with.
    NeedsLibc,
}

const PROGRAM: Package = Package {
    name: "planish",
    section: "admin",
    relations: Relations::Suggests(STORE.name),
    description: "measured, reversible tuning of memory-bound services\n \
                  Takes a machine and the service on it from stock to bare-metal speed, measures every\n \
                  step on the real workload, keeps only what pays, and can undo all of it.\n",
};

const STORE: Package = Package {
    name: "planish-store-s3",
    section: "admin",
    relations: Relations::NeedsLibc,
    description: "text profiles of planish on S3 and by HTTPS\n \
                  The program that planish text publish and planish text fetch start for a store beyond\n \
                  this machine.\n",
};

const LIBRARY: Package = Package {
    name: "libplanish-dev",
    section: "libdevel",
    relations: Relations::NeedsLibc,
    description: "arenas on huge pages, NUMA nodes and pinned threads, for C and C++\n \
                  Header, shared and static library, pkg-config and CMake files, examples.\n",
};

const ENGINE: Package = Package {
    name: SERIES.program,
    section: "database",
    relations: Relations::NeedsLibc,
    description: "time-series tables on huge pages, by SQL, HTTP and line protocol\n \
                  An engine for ticks and metrics: durable tables, bars, averages and joins by time at\n \
                  the speed of memory, asked as ClickHouse is and written to as InfluxDB is.\n",
};

/// Builds the release and packs it.
pub fn run(options: &Options) -> Result<ExitCode> {
    let release = Release::prepare(options)?;
    let mut archives = Vec::new();
    if release.planish.is_some() {
        archives.push(release.tar()?);
    }
    match shell::which("dpkg-deb") {
        Some(_) => archives.extend(release.debs()?),
        None => eprintln!("x: no dpkg-deb here: no Debian package"),
    }
    let sums = release.sums(&archives)?;
    archives.iter().chain([&sums]).for_each(|file| println!("{}", file.display()));
    // Last, where it is not lost among what compilers say.
    for (ordered, built) in [(PLANISH, &release.planish), (SERIES, &release.series)] {
        if built.is_some() {
            ordered.tell()?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// What was built; `None` is not wanted.
struct Release {
    version: String,
    checkout: PathBuf,
    planish: Option<PathBuf>,
    /// The program planish-store-s3.
    store: Option<PathBuf>,
    /// The folder of the built libraries.
    libraries: Option<PathBuf>,
    /// The program planish-series.
    series: Option<PathBuf>,
    out: PathBuf,
    work: PathBuf,
    /// Seconds since 1970 that every file in the archives carries.
    time: String,
}

impl Release {
    fn prepare(options: &Options) -> Result<Self> {
        let own = Target::of_this_machine()?;
        let wanted = |part, build: &dyn Fn() -> Result<PathBuf>| options.wants(part).then(build).transpose();
        let planish = wanted(Part::Planish, &|| target::pick()?.planish())?;
        // Without the kind for Rust programs, for which cargo would leave out optimisation across crates.
        let kinds = ["--package", "planish-capi", "--lib", "--crate-type", "staticlib,cdylib"];
        let libraries = wanted(Part::Library, &|| own.compile("rustc", "release", &kinds))?;
        let store =
            wanted(Part::Store, &|| Ok(own.build("release", &["--package", STORE.name])?.join(STORE.name)))?;
        let series = wanted(Part::Series, &|| own.shipped(SERIES))?;
        let out = &options.out;
        let commit_time = shell::output(Command::new("git").args(["log", "-1", "--format=%ct"]));
        fs::create_dir_all(out).with_context(|| format!("make {}", out.display()))?;
        let work = ground::target_dir()?.join("dist");
        let _ = fs::remove_dir_all(&work);
        Ok(Self {
            version: ground::version()?,
            checkout: ground::root()?,
            planish,
            store,
            libraries,
            series,
            out: out.canonicalize().with_context(|| format!("find {}", out.display()))?,
            work,
            // A source tree without its history still packs.
            time: commit_time.map_or_else(|_| "0".to_owned(), |text| text.trim().to_owned()),
        })
    }

    fn tar(&self) -> Result<PathBuf> {
        let name = format!("planish-{}-{}-linux", self.version, std::env::consts::ARCH);
        let folder = self.work.join(&name);
        // The helper beside the program, where it is looked for.
        for (built, name) in [(&self.planish, PLANISH.program), (&self.store, STORE.name)] {
            built.iter().try_for_each(|program| copy(program, &folder.join(name)))?;
        }
        FILES.iter().try_for_each(|(from, to, _)| copy(&self.checkout.join(from), &folder.join(to)))?;
        for page in self.man_pages()? {
            copy(&page, &folder.join("man").join(file_name(&page)?))?;
        }
        self.reading(&folder)?;
        self.libraries.iter().try_for_each(|built| self.library(built, &folder))?;
        plain_modes(&folder)?;
        let archive = self.out.join(format!("{name}.tar.gz"));
        shell::run(
            Command::new("tar")
                .args([
                    "--sort=name",
                    "--owner=0",
                    "--group=0",
                    "--numeric-owner",
                    "--use-compress-program=gzip -9n",
                ])
                .arg(format!("--mtime=@{}", self.time))
                .args(["--create", "--file"])
                .arg(&archive)
                .arg("--directory")
                .arg(&self.work)
                .arg(&name),
        )?;
        Ok(archive)
    }

    /// A Debian package of each that was built.
    fn debs(&self) -> Result<Vec<PathBuf>> {
        let packed = [
            self.planish.as_ref().map(|planish| self.deb(planish)),
            self.store.as_ref().map(|store| self.program_deb(store, &STORE)),
            self.libraries.as_ref().map(|libraries| self.library_deb(libraries)),
            self.series.as_ref().map(|series| self.program_deb(series, &ENGINE)),
        ];
        packed.into_iter().flatten().collect()
    }

    fn deb(&self, planish: &Path) -> Result<PathBuf> {
        let root = self.work.join("deb");
        copy(planish, &root.join("usr/bin/planish"))?;
        FILES.iter().try_for_each(|(from, _, to)| copy(&self.checkout.join(from), &root.join(to)))?;
        for page in self.man_pages()? {
            let packed = root.join("usr/share/man/man1").join(file_name(&page)?);
            copy(&page, &packed)?;
            shell::run(Command::new("gzip").args(["-9", "--no-name"]).arg(&packed))?;
        }
        self.reading(&root.join(DOC))?;
        self.pack_deb(&root, &PROGRAM)
    }

    /// The package of a program with nothing beside it.
    fn program_deb(&self, program: &Path, package: &Package) -> Result<PathBuf> {
        let root = self.work.join("deb-of").join(package.name);
        copy(program, &root.join("usr/bin").join(package.name))?;
        for license in ["LICENSE-MIT", "LICENSE-APACHE"] {
            let folder = root.join("usr/share/doc").join(package.name);
            copy(&self.checkout.join(license), &folder.join(license))?;
        }
        self.pack_deb(&root, package)
    }

    fn library_deb(&self, libraries: &Path) -> Result<PathBuf> {
        let root = self.work.join("deb-library");
        self.library(libraries, &root.join("usr"))?;
        self.pack_deb(&root, &LIBRARY)
    }

    /// Installs libplanish below a prefix. The shared library has the name that the loader asks for, and a link of the
    /// name that the linker asks for; it is no program, so that nobody may run it.
    fn library(&self, libraries: &Path, prefix: &Path) -> Result<()> {
        for line in LIBRARY_FILES.lines() {
            let (from, to) = line.split_once(' ').with_context(|| format!("{line:?} has one word"))?;
            copy(&self.checkout.join(from), &prefix.join(to))?;
        }
        let folder = prefix.join("lib");
        let soname = soname(&self.version)?;
        for (from, to) in [("libplanish.a", "libplanish.a"), ("libplanish.so", soname.as_str())] {
            let to = folder.join(to);
            copy(&libraries.join(from), &to)?;
            fs::set_permissions(&to, fs::Permissions::from_mode(0o644))
                .with_context(|| format!("set the mode of {}", to.display()))?;
        }
        let link = folder.join("libplanish.so");
        let _ = fs::remove_file(&link);
        symlink(&soname, &link).with_context(|| format!("link {}", link.display()))
    }

    fn pack_deb(&self, root: &Path, package: &Package) -> Result<PathBuf> {
        let architecture = match std::env::consts::ARCH {
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            other => other,
        };
        let Package { name, section, relations, description } = package;
        let relations = match relations {
            Relations::Suggests(other) => format!("Suggests: {other}"),
            Relations::NeedsLibc => format!("Depends: libc6 (>= {}), libgcc-s1", libc()?),
        };
        let control = format!(
            "Package: {name}\nVersion: {}\nArchitecture: {architecture}\nSection: {section}\nPriority: optional\n\
             {relations}\nMaintainer: The planish authors <planish@localhost>\nDescription: {description}",
            self.version
        );
        fs::create_dir_all(root.join("DEBIAN"))?;
        fs::write(root.join("DEBIAN/control"), control).context("write the control file")?;
        plain_modes(root)?;
        let archive = self.out.join(format!("{name}_{}_{architecture}.deb", self.version));
        let mut pack = Command::new("dpkg-deb");
        pack.args(["--root-owner-group", "-Zgzip", "--build"]).arg(root).arg(&archive);
        shell::run(pack.env("SOURCE_DATE_EPOCH", &self.time))?;
        Ok(archive)
    }

    /// The generated manual pages, in order.
    fn man_pages(&self) -> Result<Vec<PathBuf>> {
        listed(&self.checkout.join(MAN)).with_context(|| format!("list {MAN}: ./x docs writes it"))
    }

    /// Copies what there is to read below a folder.
    fn reading(&self, to: &Path) -> Result<()> {
        for (folder, endings) in READING {
            let files = listed(&self.checkout.join(folder)).with_context(|| format!("list {folder}"))?;
            let is_one =
                |path: &&PathBuf| endings.iter().any(|ending| path.extension() == Some(ending.as_ref()));
            for file in files.iter().filter(is_one) {
                copy(file, &to.join(folder).join(file_name(file)?))?;
            }
        }
        Ok(())
    }

    fn sums(&self, archives: &[PathBuf]) -> Result<PathBuf> {
        let names = archives.iter().map(|archive| file_name(archive)).collect::<Result<Vec<_>>>()?;
        let sums = shell::output(Command::new("sha256sum").args(&names).current_dir(&self.out))?;
        let file = self.out.join("SHA256SUMS");
        fs::write(&file, sums).with_context(|| format!("write {}", file.display()))?;
        Ok(file)
    }
}

/// The version of the C library of this machine.
fn libc() -> Result<String> {
    let told = shell::output(Command::new("getconf").arg("GNU_LIBC_VERSION"))?;
    Ok(told.split_whitespace().nth(1).context("getconf tells no version of the C library")?.to_owned())
}

/// What a folder has, in order.
fn listed(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder)?.map(|entry| Ok(entry?.path()));
    let mut paths = entries.collect::<std::io::Result<Vec<PathBuf>>>()?;
    paths.sort();
    Ok(paths)
}

/// What the loader knows the shared library by: the build script of planish-capi says the same to the linker.
fn soname(version: &str) -> Result<String> {
    let mut parts = version.split('.');
    let (major, minor) = (parts.next(), parts.next());
    let (major, minor) = major.zip(minor).with_context(|| format!("{version} is no version"))?;
    Ok(match major {
        "0" => format!("libplanish.so.0.{minor}"),
        major => format!("libplanish.so.{major}"),
    })
}

/// Gives everything below a folder the modes of a package, and the folder itself: what its owner may run, all may.
fn plain_modes(path: &Path) -> Result<()> {
    if path.is_symlink() {
        // It has no mode of its own.
        return Ok(());
    }
    let mode =
        fs::metadata(path).with_context(|| format!("look at {}", path.display()))?.permissions().mode();
    let plain = if mode & 0o100 == 0 { 0o644 } else { 0o755 };
    fs::set_permissions(path, fs::Permissions::from_mode(plain))
        .with_context(|| format!("set the mode of {}", path.display()))?;
    if path.is_dir() {
        for entry in fs::read_dir(path).with_context(|| format!("list {}", path.display()))? {
            plain_modes(&entry?.path())?;
        }
    }
    Ok(())
}

/// Copies a file with its mode, making the folder.
fn copy(from: &Path, to: &Path) -> Result<()> {
    let folder = to.parent().context("an archive member without a folder")?;
    fs::create_dir_all(folder).with_context(|| format!("make {}", folder.display()))?;
    fs::copy(from, to).with_context(|| format!("copy {} to {}", from.display(), to.display()))?;
    Ok(())
}

fn file_name(path: &Path) -> Result<&std::ffi::OsStr> {
    path.file_name().with_context(|| format!("{} names no file", path.display()))
}

#[cfg(test)]
mod tests {
    use super::{DOC, FILES, LIBRARY_FILES, MAN, READING, Release, STORE, soname};
    use crate::shell;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;
    use std::process::Command;

    /// A checkout with a binary, as somebody's umask leaves them: files that can be run, others.
    fn release(folder: &Path, runs: u32, other: u32) -> Release {
        let checkout = folder.join("checkout");
        let write = |file: &Path, text: &str, mode: u32| {
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
            fs::set_permissions(file, fs::Permissions::from_mode(mode)).unwrap();
        };
        FILES.iter().for_each(|(from, ..)| write(&checkout.join(from), from, other));
        write(&checkout.join(MAN).join("planish.1"), ".TH planish", other);
        for (folder, endings) in READING {
            endings
                .iter()
                .for_each(|end| write(&checkout.join(folder).join("one").with_extension(end), end, other));
            write(&checkout.join(folder).join("Cargo.lock"), "", other);
        }
        for line in LIBRARY_FILES.lines() {
            let (from, _) = line.split_once(' ').unwrap();
            write(&checkout.join(from), from, other);
        }
        let binary = folder.join("planish");
        write(&binary, "binary", runs);
        let store = folder.join("planish-store-s3");
        write(&store, "helper", runs);
        let libraries = folder.join("built");
        write(&libraries.join("libplanish.a"), "archive", other);
        write(&libraries.join("libplanish.so"), "library", runs);
        let (out, work) = (folder.join("out"), folder.join("work"));
        fs::create_dir_all(&out).unwrap();
        let (version, time) = ("0.7.1".into(), "1700000000".into());
        let (planish, store, libraries) = (Some(binary), Some(store), Some(libraries));
        Release { version, checkout, planish, store, libraries, series: None, out, work, time }
    }

    #[test]
    fn a_minor_version_is_an_interface_until_the_first_major_one() {
        let names = ["0.1.0", "0.12.3", "1.4.0"].map(|version| soname(version).unwrap());
        assert_eq!(names, ["libplanish.so.0.1", "libplanish.so.0.12", "libplanish.so.1"]);
        assert!(soname("1").is_err());
    }

    #[test]
    fn packing_twice_gives_the_same_bytes_whatever_the_umask_was() {
        let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let one = release(folders[0].path(), 0o700, 0o600);
        let other = release(folders[1].path(), 0o775, 0o664);
        // Folders that an umask of 077 and a folder with a group of its own would leave.
        for (release, mode) in [(&one, 0o700), (&other, 0o2775)] {
            let folder = release.work.join("deb/usr/share/doc");
            fs::create_dir_all(&folder).unwrap();
            fs::set_permissions(&folder, fs::Permissions::from_mode(mode)).unwrap();
        }
        let bytes = |archive: std::path::PathBuf| fs::read(archive).unwrap();
        let tar = one.tar().unwrap();
        let list = shell::output(Command::new("tar").arg("-tvf").arg(&tar)).unwrap();
        let modes = ["drwxr-xr-x", "-rwxr-xr-x", "-rw-r--r--", "lrwxrwxrwx"];
        assert!(list.lines().all(|line| modes.iter().any(|mode| line.starts_with(mode))), "{list}");
        assert_eq!(list.matches("-rwxr-xr-x").count(), 2, "the program and its helper alone: {list}");
        // README's links hold, and a shipped trial can be copied.
        for file in [
            "/planish-store-s3",
            "/README.md",
            "/docs/one.md",
            "/docs/schema/one.json",
            "/docs/proofs/one.html",
            "/trials/one.toml",
        ] {
            assert!(list.lines().any(|line| line.ends_with(&format!("linux{file}"))), "{file}: {list}");
        }
        assert!(!list.contains("Cargo.lock"), "{list}");
        assert!(list.contains("lib/libplanish.so -> libplanish.so.0.7\n"), "{list}");
        assert!(bytes(tar) == bytes(other.tar().unwrap()), "the tars differ");
        let deb = |release: &Release| release.deb(release.planish.as_ref().unwrap()).unwrap();
        let store_deb =
            |release: &Release| release.program_deb(release.store.as_ref().unwrap(), &STORE).unwrap();
        let library_deb =
            |release: &Release| release.library_deb(release.libraries.as_ref().unwrap()).unwrap();
        if shell::which("dpkg-deb").is_some() {
            assert!(bytes(deb(&one)) == bytes(deb(&other)), "the packages differ");
            assert!(one.work.join("deb").join(DOC).join("docs/one.md").is_file());
            let store = store_deb(&one);
            let list = shell::output(Command::new("dpkg-deb").arg("-c").arg(&store)).unwrap();
            assert!(
                list.lines().any(|line| {
                    line.starts_with("-rwxr-xr-x") && line.ends_with("./usr/bin/planish-store-s3")
                }),
                "{list}"
            );
            let needs = shell::output(Command::new("dpkg-deb").arg("-f").arg(&store).arg("Depends")).unwrap();
            assert!(needs.starts_with("libc6 (>= 2.") && needs.ends_with("), libgcc-s1\n"), "{needs}");
            assert!(bytes(store) == bytes(store_deb(&other)), "the packages of the helper differ");
            let library = library_deb(&one);
            let list = shell::output(Command::new("dpkg-deb").arg("-c").arg(&library)).unwrap();
            for file in ["./usr/include/planish.h", "./usr/lib/libplanish.so.0.7", "./usr/lib/libplanish.a"] {
                assert!(
                    list.lines().any(|line| line.ends_with(file) && line.starts_with("-rw-r--r--")),
                    "{list}"
                );
            }
            assert!(bytes(library) == bytes(library_deb(&other)), "the packages of the library differ");
        } else {
            planish_skip::skip(
                "dist::packing_twice_gives_the_same_bytes",
                "no dpkg-deb for the second archive",
            );
        }
    }
}
