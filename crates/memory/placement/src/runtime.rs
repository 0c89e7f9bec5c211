//! Runtimes that map their heaps themselves, where no variable of a malloc reaches them.

use std::path::Path;

use planish_host::Host;

use crate::launch::Launch;
use crate::wish::{HeapPages, Wish};

/// A runtime by the program that it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Runtime {
    Jvm,
    V8,
    DotNet,
}

/// The runtimes that were told of, once each: those that a command names itself, in the notes of its start, and those
/// that its processes turn out to be. A shell or a script that is named there executes another program, or starts it.
#[derive(Debug, Default)]
pub struct Runtimes {
    told: Vec<Runtime>,
}

impl Runtimes {
    /// Those that the notes of these starts have told of.
    #[must_use]
    pub fn told_by<'a>(launches: impl IntoIterator<Item = &'a Launch>) -> Self {
        Self { told: launches.into_iter().filter_map(|launch| Runtime::of(&launch.program.path)).collect() }
    }

    /// What is to be told besides of the processes of a start as they are now, each with its PID.
    pub fn look(&mut self, host: &Host, pids: &[u32], launch: &Launch) -> Vec<(u32, String)> {
        if wanted(&launch.wish) == (None, false) {
            return Vec::new();
        }
        let found = self.untold(host, pids).into_iter();
        found.filter_map(|(pid, runtime)| Some((pid, runtime.note_for(&launch.wish)?))).collect()
    }

    /// The first process of each runtime that was not told of yet, which it is from now on.
    fn untold(&mut self, host: &Host, pids: &[u32]) -> Vec<(u32, Runtime)> {
        let mut found = Vec::new();
        for pid in pids {
            if Runtime::ALL.iter().all(|runtime| self.told.contains(runtime)) {
                break;
            }
            let runtime = Runtime::of_process(host, *pid).filter(|runtime| !self.told.contains(runtime));
            self.told.extend(runtime);
            found.extend(runtime.map(|runtime| (*pid, runtime)));
        }
        found
    }
}

/// The huge pages that a start wants for its heap, and whether it wants its memory in places.
fn wanted(wish: &Wish) -> (Option<HeapPages>, bool) {
    let places = wish.shared.is_some() || wish.heap.is_some() || wish.nodes.is_some();
    (wish.heap_pages, places)
}

impl Runtime {
    const ALL: [Self; 3] = [Self::Jvm, Self::V8, Self::DotNet];

    /// That of a program, by its name; of .NET also by what lies beside a program of its own.
    pub fn of(program: &Path) -> Option<Self> {
        Self::of_file(program, Path::exists)
    }

    fn of_file(program: &Path, exists: impl FnOnce(&Path) -> bool) -> Option<Self> {
        let name = program.file_name()?.to_str()?;
        Self::by_name(name).or_else(|| {
            let settings = program.with_file_name(format!("{name}.runtimeconfig.json"));
            exists(&settings).then_some(Self::DotNet)
        })
    }

    fn by_name(name: &str) -> Option<Self> {
        match name {
            "java" => Some(Self::Jvm),
            "node" | "nodejs" => Some(Self::V8),
            "dotnet" => Some(Self::DotNet),
            _ => None,
        }
    }

    /// That of a process, by the file that it executes; where that is not told (of a process of another user), by the
    /// first of its words, which everybody may read.
    fn of_process(host: &Host, pid: u32) -> Option<Self> {
        if let Some(file) = host.read_link(&format!("/proc/{pid}/exe")) {
            // Its package may have been renewed meanwhile. What lies beside it does so where it sees files: in a
            // container that is elsewhere than here.
            let file = Path::new(file.strip_suffix(" (deleted)").unwrap_or(&file));
            return Self::of_file(file, |beside| {
                host.exists(&format!("/proc/{pid}/root{}", beside.display()))
            });
        }
        let words = host.read_bytes(&format!("/proc/{pid}/cmdline")).ok()?;
        let first = words.split(|byte| *byte == 0).next()?;
        let name = first.rsplit(|byte| *byte == b'/').next()?;
        Self::by_name(std::str::from_utf8(name).ok()?)
    }

    /// What it is to be told besides, for what a start wants of memory.
    pub fn note_for(self, wish: &Wish) -> Option<String> {
        let (pages, places) = wanted(wish);
        self.note(pages, places)
    }

    /// The same, where it wants huge `pages` for its heap, or `places` its memory.
    fn note(self, pages: Option<HeapPages>, places: bool) -> Option<String> {
        let (who, for_places) = match self {
            Self::Jvm => ("a JVM", "-XX:+UseNUMA has the objects of each thread on its node"),
            Self::V8 => ("V8", "it knows no nodes: --each-node starts a process on each"),
            Self::DotNet => (
                ".NET",
                "DOTNET_GCHeapAffinitizeMask binds its heaps to CPUs, and --each-node starts a process on each node",
            ),
        };
        let (unreached, flags) = match (pages.map(|pages| self.flag_for(pages)), places) {
            (None, false) => return None,
            (Some(for_pages), false) => (", where --huge heap does not reach it", for_pages.to_owned()),
            (None, true) => ("", for_places.to_owned()),
            (Some(for_pages), true) => {
                (", where --huge heap does not reach it", format!("{for_pages}; {for_places}"))
            }
        };
        Some(format!("{who} maps its heap itself{unreached}: {flags}"))
    }

    /// What has it take such pages: a flag for pages of a pool gives no transparent ones, and the other way round.
    fn flag_for(self, pages: HeapPages) -> &'static str {
        match (self, pages) {
            (Self::Jvm, HeapPages::Thp) => "-XX:+UseTransparentHugePages puts it on transparent huge pages",
            (Self::Jvm, HeapPages::Pool) => "-XX:+UseLargePages puts it on pages of the pool",
            (Self::V8, HeapPages::Thp) => {
                "it has no flag for huge pages, and --use-largepages=on puts its own code on transparent ones"
            }
            (Self::V8, HeapPages::Pool) => "it takes no pages from a pool",
            (Self::DotNet, HeapPages::Thp) => {
                "it has no flag for transparent huge pages, and gets them where the kernel gives them to all \
                 (planish knobs thp.enabled)"
            }
            (Self::DotNet, HeapPages::Pool) => {
                "DOTNET_GCLargePages=1 with DOTNET_GCHeapHardLimit puts it on pages of the pool, with --memlock \
                 unlimited"
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runtimes_are_told_what_reaches_their_heaps() {
        let folder = tempfile::tempdir().unwrap();
        let own = folder.path().join("engine");
        assert_eq!(Runtime::of(&own), None);
        std::fs::File::create(folder.path().join("engine.runtimeconfig.json")).unwrap();
        assert_eq!(Runtime::of(&own), Some(Runtime::DotNet));
        let jvm = Runtime::of(Path::new("/usr/bin/java")).unwrap();
        assert_eq!(jvm.note(None, false), None);
        let placed = jvm.note(None, true).unwrap();
        assert!(placed.contains("UseNUMA") && !placed.contains("--huge"), "{placed}");
        let huge = jvm.note(Some(HeapPages::Thp), false).unwrap();
        assert!(huge.contains("UseTransparentHugePages") && huge.contains("--huge heap does not"), "{huge}");
    }

    /// With the flag for the other kind a runtime has none of the pages that were asked for.
    #[test]
    fn the_flag_for_a_pool_is_not_advised_for_transparent_pages_nor_the_other_way_round() {
        let thp = [Runtime::Jvm, Runtime::DotNet, Runtime::V8]
            .map(|one| one.note(Some(HeapPages::Thp), false).unwrap());
        let pool = [Runtime::Jvm, Runtime::DotNet, Runtime::V8]
            .map(|one| one.note(Some(HeapPages::Pool), false).unwrap());
        assert!(pool[0].contains("-XX:+UseLargePages") && !pool[0].contains("Transparent"), "{}", pool[0]);
        assert!(!thp[0].contains("UseLargePages"), "{}", thp[0]);
        assert!(
            pool[1].contains("GCLargePages") && !thp[1].contains("GCLargePages"),
            "{} {}",
            pool[1],
            thp[1]
        );
        assert!(
            !pool[2].contains("use-largepages") && thp[2].contains("use-largepages"),
            "{} {}",
            pool[2],
            thp[2]
        );
    }

    /// A process that has executed a runtime behind a shell has the shell's PID, and its own file.
    #[test]
    fn a_process_is_known_by_its_file_or_by_its_first_word() {
        let folder = tempfile::tempdir().unwrap();
        let process = |pid: u32, file: Option<&str>, words: &str| {
            let own = folder.path().join(format!("proc/{pid}"));
            std::fs::create_dir_all(&own).unwrap();
            let mut list = std::fs::File::create(own.join("cmdline")).unwrap();
            std::io::Write::write_all(&mut list, words.as_bytes()).unwrap();
            if let Some(file) = file {
                std::os::unix::fs::symlink(file, own.join("exe")).unwrap();
            }
        };
        process(1, Some("/usr/bin/dash"), "java\0-jar\0x.jar\0");
        process(2, Some("/opt/jdk/bin/java"), "engine\0");
        process(3, Some("/usr/bin/node (deleted)"), "engine\0");
        process(4, None, "/opt/dotnet/dotnet\0engine.dll\0");
        process(5, None, "node");
        process(6, None, "");
        let host = Host::open(folder.path()).unwrap();
        let found = (1..=7).map(|pid| Runtime::of_process(&host, pid)).collect::<Vec<_>>();
        let (jvm, v8, dot_net) = (Some(Runtime::Jvm), Some(Runtime::V8), Some(Runtime::DotNet));
        assert_eq!(found, [None, jvm, v8, dot_net, v8, None, None]);
        let mut runtimes = Runtimes::default();
        let told = [(2, Runtime::Jvm), (3, Runtime::V8), (4, Runtime::DotNet)];
        assert_eq!(runtimes.untold(&host, &[1, 2, 3, 4, 5]), told, "once each");
        let host = Host::open(folder.path()).unwrap();
        assert_eq!((runtimes.untold(&host, &[1, 2]), host.reads().len()), (vec![], 0), "all are told of");
    }

    /// The file of a process is named as the process sees it, and another one may lie there for us.
    #[test]
    fn what_lies_beside_a_program_is_looked_for_in_its_own_root() {
        let (folder, ours) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let create = |path: std::path::PathBuf| {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::File::create(path).unwrap();
        };
        create(folder.path().join("proc/1/root/app/engine.runtimeconfig.json"));
        std::os::unix::fs::symlink("/app/engine", folder.path().join("proc/1/exe")).unwrap();
        create(ours.path().join("engine.runtimeconfig.json"));
        create(folder.path().join("proc/2/cmdline"));
        std::os::unix::fs::symlink(ours.path().join("engine"), folder.path().join("proc/2/exe")).unwrap();
        let host = Host::open(folder.path()).unwrap();
        let found = [1, 2].map(|pid| Runtime::of_process(&host, pid));
        assert_eq!(found, [Some(Runtime::DotNet), None]);
    }
}
