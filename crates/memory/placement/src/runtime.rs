//! Runtimes that map their heaps themselves, where no variable of a malloc reaches them.

use std::path::Path;

use planish_host::Host;
use planish_residency::{Who, members};

use crate::launch::Launch;
use crate::wish::Wish;

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
    pub fn look(&mut self, host: &Host, program: u32, launch: &Launch) -> Vec<(u32, String)> {
        if wanted(&launch.wish) == (false, false) {
            return Vec::new();
        }
        let mut found = Vec::new();
        for (pid, _) in members(host, &Who::Pid(program), true).unwrap_or_default() {
            let runtime = Runtime::of_process(host, pid).filter(|runtime| !self.told.contains(runtime));
            let Some(runtime) = runtime else { continue };
            self.told.push(runtime);
            found.extend(runtime.note_for(&launch.wish).map(|note| (pid, note)));
        }
        found
    }
}

/// Whether a start wants huge pages for its heap, and whether it wants its memory in places.
fn wanted(wish: &Wish) -> (bool, bool) {
    let places = wish.shared.is_some() || wish.heap.is_some() || wish.nodes.is_some();
    (wish.heap_pages.is_some(), places)
}

impl Runtime {
    /// That of a program, by its name; of .NET also by what lies beside a program of its own.
    pub fn of(program: &Path) -> Option<Self> {
        let name = program.file_name()?.to_str()?;
        Self::by_name(name).or_else(|| {
            let settings = program.with_file_name(format!("{name}.runtimeconfig.json"));
            settings.exists().then_some(Self::DotNet)
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
            // Its package may have been renewed meanwhile.
            return Self::of(Path::new(file.strip_suffix(" (deleted)").unwrap_or(&file)));
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
    fn note(self, pages: bool, places: bool) -> Option<String> {
        let (who, for_pages, for_places) = match self {
            Self::Jvm => (
                "a JVM",
                "-XX:+UseTransparentHugePages puts it on huge pages",
                "-XX:+UseNUMA has the objects of each thread on its node",
            ),
            Self::V8 => (
                "V8",
                "it has no flag for huge pages, and --use-largepages=on puts its own code on them",
                "it knows no nodes: --each-node starts a process on each",
            ),
            Self::DotNet => (
                ".NET",
                "DOTNET_GCLargePages=1 with DOTNET_GCHeapHardLimit puts it on a pool, with --memlock unlimited",
                "DOTNET_GCHeapAffinitizeMask binds its heaps to CPUs, and --each-node starts a process on each node",
            ),
        };
        let (unreached, flags) = match (pages, places) {
            (false, false) => return None,
            (true, false) => (", where --huge heap does not reach it", for_pages.to_owned()),
            (false, true) => ("", for_places.to_owned()),
            (true, true) => (", where --huge heap does not reach it", format!("{for_pages}; {for_places}")),
        };
        Some(format!("{who} maps its heap itself{unreached}: {flags}"))
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
        assert_eq!(jvm.note(false, false), None);
        let placed = jvm.note(false, true).unwrap();
        assert!(placed.contains("UseNUMA") && !placed.contains("--huge"), "{placed}");
        let huge = jvm.note(true, false).unwrap();
        assert!(huge.contains("UseTransparentHugePages") && huge.contains("--huge heap does not"), "{huge}");
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
    }
}
