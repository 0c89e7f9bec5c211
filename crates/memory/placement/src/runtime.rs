//! Runtimes that map their heaps themselves, where no variable of a malloc reaches them.

use std::path::Path;

/// A runtime by the program that it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Runtime {
    Jvm,
    V8,
    DotNet,
}

impl Runtime {
    /// That of a program, by its name; of .NET also by what lies beside a program of its own.
    pub fn of(program: &Path) -> Option<Self> {
        match program.file_name()?.to_str()? {
            "java" => Some(Self::Jvm),
            "node" | "nodejs" => Some(Self::V8),
            "dotnet" => Some(Self::DotNet),
            name => {
                let settings = program.with_file_name(format!("{name}.runtimeconfig.json"));
                settings.exists().then_some(Self::DotNet)
            }
        }
    }

    /// What it is to be told besides, where a start wants huge `pages` for its heap, or `places` its memory.
    pub fn note(self, pages: bool, places: bool) -> Option<String> {
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
}
