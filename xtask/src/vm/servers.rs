//! Real servers for a guest of two nodes: PostgreSQL of this machine, Redis, numactl(8) and numastat(8) of its
//! registry, with the libraries that they link. Nothing is installed.
//!
//! The guest's side is `tests/vm/src/servers.rs`. What cannot be had is skipped aloud.

use super::programs::Packed;
use crate::{ground, setup, shell};
use anyhow::{Context, Result, bail, ensure};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where the guest finds a cluster of PostgreSQL, to be copied.
const CLUSTER: &str = "pg/cluster";
/// An ordinary user: PostgreSQL refuses root, to make a cluster and to serve one.
const NOBODY: &str = "65534";
/// Files and folders of the first root of a guest.
#[derive(Default)]
pub struct Servers {
    /// Folders, each behind its parent.
    pub folders: Vec<String>,
    /// Files.
    pub files: Vec<Packed>,
    /// A line for each server that cannot be had here.
    pub skips: Vec<String>,
}

impl Servers {
    /// Gathers what can be had.
    pub fn gather() -> Self {
        let mut servers = Self::default();
        let mut root = Root::default();
        type Gather = fn(&mut Root) -> Result<()>;
        for (name, gather) in [("postgres", postgres as Gather), ("numactl", numactl), ("redis", redis)] {
            let before = root.clone();
            if let Err(error) = gather(&mut root) {
                root = before;
                servers.skips.push(format!("SKIP vm.{name}: {error:#}"));
            }
        }
        match root.pack() {
            Ok((folders, files)) => (servers.folders, servers.files) = (folders, files),
            Err(error) => servers.skips.push(format!("SKIP vm.servers: {error:#}")),
        }
        servers
    }

    /// Whether any of them is there.
    pub fn any(&self) -> bool {
        !self.files.is_empty()
    }
}

/// Files by their path in the guest, each with its path here.
#[derive(Clone, Default)]
struct Root {
    files: BTreeSet<(String, PathBuf)>,
    folders: BTreeSet<String>,
}

impl Root {
    fn file(&mut self, name: &str, path: &Path) {
        let name = name.trim_start_matches('/').to_owned();
        self.files.insert((name, path.to_owned()));
    }

    /// A program and every library that it links, each where it lies on this machine. `libraries` are looked at first.
    fn program(&mut self, name: &str, path: &Path, libraries: &[PathBuf]) -> Result<()> {
        self.file(name, path);
        let mut ldd = Command::new("ldd");
        let folders: Vec<String> = libraries.iter().map(|folder| folder.display().to_string()).collect();
        ldd.arg(path).env("LD_LIBRARY_PATH", folders.join(":"));
        let linked = shell::output(&mut ldd)?;
        ensure!(!linked.contains("not found"), "{} lacks libraries: {}", path.display(), linked.trim());
        for line in linked.lines() {
            // `libz.so.1 => /lib/x86_64-linux-gnu/libz.so.1 (0x...)`, and the loader by its path alone.
            let path =
                line.split(" => ").last().unwrap_or_default().split_whitespace().next().unwrap_or_default();
            if !path.starts_with('/') {
                continue;
            }
            let path = Path::new(path);
            let file = path.file_name().context("a library has a name")?.to_string_lossy();
            if file.starts_with("ld-linux") {
                self.file(&format!("lib64/{file}"), path);
            } else {
                self.file(&format!("usr/lib/x86_64-linux-gnu/{file}"), path);
            }
        }
        Ok(())
    }

    /// A whole folder, with those that are empty.
    fn tree(&mut self, name: &str, path: &Path) -> Result<()> {
        self.folders.insert(name.to_owned());
        for entry in fs::read_dir(path).with_context(|| format!("list {}", path.display()))? {
            let entry = entry?;
            let inner = format!("{name}/{}", entry.file_name().to_string_lossy());
            if entry.file_type()?.is_dir() {
                self.tree(&inner, &entry.path())?;
            } else {
                self.file(&inner, &entry.path());
            }
        }
        Ok(())
    }

    /// Reads everything. The folders above a file come with it.
    fn pack(mut self) -> Result<(Vec<String>, Vec<Packed>)> {
        let mut files = Vec::new();
        for (name, path) in &self.files {
            let bytes = fs::read(path).with_context(|| format!("read {}", path.display()))?;
            let above = Path::new(name).ancestors().skip(1).map(|folder| folder.display().to_string());
            self.folders.extend(above.filter(|folder| !folder.is_empty()));
            files.push(Packed { name: name.clone(), bytes });
        }
        // Sorted, so that each stands behind its parent.
        Ok((self.folders.into_iter().collect(), files))
    }
}

/// PostgreSQL as it is installed here, and an empty cluster.
fn postgres(root: &mut Root) -> Result<()> {
    let bin = setup::postgres_programs().context("no PostgreSQL with initdb below /usr/lib/postgresql")?;
    let version = bin.parent().and_then(Path::file_name).context("the folder of a version")?.to_owned();
    for name in ["postgres", "psql"] {
        let path = bin.join(name);
        root.program(&format!("pg/bin/{name}"), &path, &[])?;
    }
    root.program("pg/bin/setpriv", &shell::which("setpriv").context("no setpriv")?, &[])?;
    // It looks for its libraries beside its programs, and for the rest where it was built for.
    root.folders.insert("pg/lib".to_owned());
    let share = Path::new("/usr/share/postgresql").join(&version);
    for name in ["timezonesets/Default", "errcodes.txt"] {
        let path = share.join(name);
        if path.exists() {
            root.file(&format!("{}/{name}", share.display()), &path);
        }
    }
    root.tree(CLUSTER, &cluster(&bin)?)
}

/// An empty cluster, made once for each version.
fn cluster(bin: &Path) -> Result<PathBuf> {
    let version = shell::output(Command::new(bin.join("postgres")).arg("--version"))?;
    let version = version.split_whitespace().nth(2).context("a version of postgres")?.to_owned();
    let kept = ground::cache_dir()?.join("vm").join(format!("cluster-{version}"));
    if kept.join("PG_VERSION").exists() {
        return Ok(kept);
    }
    // In a folder that the ordinary user can reach, which a home is not.
    let work = std::env::temp_dir().join(format!("planish-cluster-{}", std::process::id()));
    fs::create_dir(&work).with_context(|| format!("make {}", work.display()))?;
    let made = make_cluster(bin, &work).and_then(|data| copy(&data, &kept));
    fs::remove_dir_all(&work).with_context(|| format!("remove {}", work.display()))?;
    made.map(|()| kept)
}

fn make_cluster(bin: &Path, work: &Path) -> Result<PathBuf> {
    let data = work.join("data");
    let is_root = shell::output(Command::new("id").arg("-u"))?.trim() == "0";
    let mut command = if is_root {
        fs::set_permissions(work, fs::Permissions::from_mode(0o777)).context("open the folder")?;
        let mut command = Command::new("setpriv");
        command.arg(format!("--reuid={NOBODY}")).arg(format!("--regid={NOBODY}")).arg("--clear-groups");
        command.arg(bin.join("initdb"));
        command
    } else {
        Command::new(bin.join("initdb"))
    };
    command.args(["--auth=trust", "--no-locale", "--encoding=UTF8", "--wal-segsize=1", "--no-sync"]);
    command.args(["--username=postgres", "--pgdata"]).arg(&data).current_dir(work);
    shell::output(&mut command)?;
    Ok(data)
}

/// Copies a folder beside its name first: one that was cut short is not taken for a whole one.
fn copy(from: &Path, to: &Path) -> Result<()> {
    let part = to.with_extension("part");
    let _ = fs::remove_dir_all(&part);
    shell::run(Command::new("cp").arg("-r").arg(from).arg(&part))?;
    fs::rename(&part, to).with_context(|| format!("name {}", to.display()))
}

fn numactl(root: &mut Root) -> Result<()> {
    // One package has both.
    ["numactl", "numastat"]
        .into_iter()
        .try_for_each(|program| fetched(root, &["numactl", "libnuma1"], program))
}

fn redis(root: &mut Root) -> Result<()> {
    fetched(root, &["redis-server", "redis-tools", "libjemalloc2", "liblzf1"], "redis-server")
}

/// A program of packages that apt knows, unpacked into the cache.
fn fetched(root: &mut Root, packages: &[&str], program: &str) -> Result<()> {
    let folder = ground::cache_dir()?.join("vm").join(packages[0]);
    let path = folder.join("usr/bin").join(program);
    if !path.exists() {
        let part = folder.with_extension("part");
        let _ = fs::remove_dir_all(&part);
        fs::create_dir_all(&part).with_context(|| format!("make {}", part.display()))?;
        let mut fetch = Command::new("apt-get");
        fetch.args(["download", "-qq", "--option=APT::Sandbox::User="]).args(packages);
        shell::run(fetch.current_dir(&part))?;
        let archives: Vec<PathBuf> = fs::read_dir(&part)?.flatten().map(|entry| entry.path()).collect();
        for archive in archives.iter().filter(|path| path.extension().is_some_and(|end| end == "deb")) {
            shell::run(Command::new("dpkg-deb").arg("-x").arg(archive).arg(&part))?;
            fs::remove_file(archive)?;
        }
        // Renamed when complete, so that a fetch killed half way is not taken for one.
        let _ = fs::remove_dir_all(&folder);
        fs::rename(&part, &folder).with_context(|| format!("name {}", folder.display()))?;
    }
    if !path.exists() {
        bail!("{} has no {}", packages[0], path.display());
    }
    root.program(&format!("bin/{program}"), &path, &[folder.join("usr/lib/x86_64-linux-gnu")])
}
