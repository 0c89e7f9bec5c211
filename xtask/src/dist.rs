//! `./x dist`: what a release consists of: a tar, a Debian package, and their checksums.
//!
//! Same sources, same bytes: owners, order and times in both archives come from the commit.

use crate::{ground, shell, target};
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// Where it goes.
#[derive(clap::Args)]
pub struct Options {
    /// Folder for the archives
    #[arg(long, value_name = "DIR", default_value = "dist")]
    out: PathBuf,
}

/// What goes where: from the checkout, into the tar, into the Debian package.
const FILES: &[(&str, &str, &str)] = &[
    ("README.md", "README.md", "usr/share/doc/planish/README.md"),
    ("CHANGELOG.md", "CHANGELOG.md", "usr/share/doc/planish/changelog"),
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

/// Builds the release and packs it.
pub fn run(options: &Options) -> Result<ExitCode> {
    let release = Release::prepare(&options.out)?;
    let tar = release.tar()?;
    let mut archives = vec![tar];
    match shell::which("dpkg-deb") {
        Some(_) => archives.push(release.deb()?),
        None => eprintln!("x: no dpkg-deb here: no Debian package"),
    }
    let sums = release.sums(&archives)?;
    archives.iter().chain([&sums]).for_each(|file| println!("{}", file.display()));
    Ok(ExitCode::SUCCESS)
}

struct Release {
    version: String,
    binary: PathBuf,
    out: PathBuf,
    work: PathBuf,
    /// Seconds since 1970 that every file in the archives carries.
    time: String,
}

impl Release {
    fn prepare(out: &Path) -> Result<Self> {
        let target = target::pick()?;
        let built = target.build("release", &["--bin", "planish"])?;
        let version = shell::output(Command::new(built.join("planish")).arg("--version"))?;
        let version =
            version.split_whitespace().nth(1).context("planish --version says no version")?.to_owned();
        let commit_time = shell::output(Command::new("git").args(["log", "-1", "--format=%ct"]));
        fs::create_dir_all(out).with_context(|| format!("make {}", out.display()))?;
        let work = ground::target_dir()?.join("dist");
        let _ = fs::remove_dir_all(&work);
        Ok(Self {
            version,
            binary: built.join("planish"),
            out: out.canonicalize().with_context(|| format!("find {}", out.display()))?,
            work,
            // A source tree without its history still packs.
            time: commit_time.map_or_else(|_| "0".to_owned(), |text| text.trim().to_owned()),
        })
    }

    fn tar(&self) -> Result<PathBuf> {
        let name = format!("planish-{}-{}-linux", self.version, std::env::consts::ARCH);
        let folder = self.work.join(&name);
        copy(&self.binary, &folder.join("planish"))?;
        FILES.iter().try_for_each(|(from, to, _)| copy(from.as_ref(), &folder.join(to)))?;
        for page in man_pages()? {
            copy(&page, &folder.join("man").join(file_name(&page)?))?;
        }
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

    fn deb(&self) -> Result<PathBuf> {
        let architecture = match std::env::consts::ARCH {
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            other => other,
        };
        let root = self.work.join("deb");
        copy(&self.binary, &root.join("usr/bin/planish"))?;
        FILES.iter().try_for_each(|(from, _, to)| copy(from.as_ref(), &root.join(to)))?;
        for page in man_pages()? {
            let packed = root.join("usr/share/man/man1").join(file_name(&page)?);
            copy(&page, &packed)?;
            shell::run(Command::new("gzip").args(["-9", "--no-name"]).arg(&packed))?;
        }
        let control = format!(
            "Package: planish\nVersion: {}\nArchitecture: {architecture}\nSection: admin\nPriority: optional\n\
             Maintainer: The planish authors <planish@localhost>\n\
             Description: measured, reversible tuning of memory-bound services\n \
             Takes a machine and the service on it from stock to bare-metal speed, measures every\n \
             step on the real workload, keeps only what pays, and can undo all of it.\n",
            self.version
        );
        fs::create_dir_all(root.join("DEBIAN"))?;
        fs::write(root.join("DEBIAN/control"), control).context("write the control file")?;
        let archive = self.out.join(format!("planish_{}_{architecture}.deb", self.version));
        let mut pack = Command::new("dpkg-deb");
        pack.args(["--root-owner-group", "-Zgzip", "--build"]).arg(&root).arg(&archive);
        shell::run(pack.env("SOURCE_DATE_EPOCH", &self.time))?;
        Ok(archive)
    }

    fn sums(&self, archives: &[PathBuf]) -> Result<PathBuf> {
        let names = archives.iter().map(|archive| file_name(archive)).collect::<Result<Vec<_>>>()?;
        let sums = shell::output(Command::new("sha256sum").args(&names).current_dir(&self.out))?;
        let file = self.out.join("SHA256SUMS");
        fs::write(&file, sums).with_context(|| format!("write {}", file.display()))?;
        Ok(file)
    }
}

/// The generated manual pages, in order.
fn man_pages() -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(MAN).with_context(|| format!("list {MAN}: ./x docs writes it"))?;
    let mut pages: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    pages.sort();
    Ok(pages)
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
