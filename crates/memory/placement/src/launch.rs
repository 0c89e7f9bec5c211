//! Everything that a program is started with, decided before it is.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use planish_host::Host;
use planish_sys::child::{ChildSetup, prepare};
use planish_sys::{cgroup, pages};

use crate::allocator::Allocator;
use crate::drop_in;
use crate::error::PlacementError;
use crate::machine::Machine;
use crate::preload;
use crate::program::{Libc, Program};
use crate::runtime::Runtime;
use crate::wire;
use crate::wish::{HeapPages, Prefault, SharedPages, Spread, Wish};

/// Threads that prefault at most, unless more are asked for: memory itself is the limit long before.
const THREADS_USUAL: usize = 16;
/// Memory that a prefault leaves available, on machines that have eight times as much.
const SPARE_BYTES: u64 = 1 << 30;
/// First interface of glibc whose malloc knows huge pages.
const GLIBC_HUGETLB: u32 = 35;

/// What a heap on pages from a pool may cost: the pages that are reserved for it are its process's alone.
const POOL_NOTE: &str = "a child that the program forks is ended by SIGBUS when it writes to this heap and the pool \
                         has no free page for its copy: reserve twice as many for a server that forks, or take \
                         --huge heap";

/// What there is around a start.
#[derive(Clone, Copy, Debug)]
pub struct Surroundings<'a> {
    /// This machine.
    pub host: &'a Host,
    /// What was found out of it.
    pub machine: &'a Machine,
    /// Where the file of the preload goes.
    pub folder: &'a Path,
    /// Name of the socket for the preload's answers.
    pub answer: Option<&'a str>,
    /// Looks a variable of our own environment up.
    pub variable: fn(&str) -> Option<OsString>,
}

/// A program with all that it is started with.
#[derive(Clone, Debug)]
pub struct Launch {
    /// The program.
    pub program: Program,
    /// Variables that are set for it.
    pub variables: Vec<(&'static str, OsString)>,
    /// What is set between fork and exec.
    pub setup: ChildSetup,
    /// What is good to know.
    pub notes: Vec<String>,
    /// What was wanted.
    pub wish: Wish,
}

impl Launch {
    /// Decides everything for one start of `program`; writes the file of the preload where it is needed.
    ///
    /// # Errors
    /// A wish that the machine or the program cannot have.
    pub fn plan(program: Program, wish: &Wish, around: Surroundings<'_>) -> Result<Self, PlacementError> {
        let machine = around.machine;
        machine.check(wish)?;
        program.may_run_here(around.host)?;
        let mut launch = Self {
            setup: setup(wish, machine)?,
            program,
            variables: Vec::new(),
            notes: Vec::new(),
            wish: wish.clone(),
        };
        let mut own: Vec<OsString> = Vec::new();
        if wish.wants_shared() {
            launch.program.may_be_preloaded()?;
            own.push(preload::put(around.folder)?.into_os_string());
            launch.notes.extend(preload::others(around.folder, "the preload"));
            let settings = settings(wish, machine, launch.setup.cpus.as_ref(), around.answer);
            launch.variables.push(("PLANISH_SHM", settings.into()));
            launch.warn_of_one_node(machine);
        }
        launch.warn_of_inherited(machine);
        if let Some(malloc) = wish.malloc {
            let libc = launch.program.may_be_preloaded()?;
            let paths = (around.variable)("LD_LIBRARY_PATH").and_then(|paths| paths.into_string().ok());
            own.push(malloc.find(around.host, libc, paths.as_deref())?.into_os_string());
        }
        if let Some(pages) = wish.heap_pages {
            if pages == HeapPages::Pool {
                launch.notes.push(POOL_NOTE.to_owned());
            }
            for (name, value, joint) in launch.heap_variables(pages)? {
                launch.variables.push((name, joined((around.variable)(name), value, joint)));
            }
        }
        let note = Runtime::of(&launch.program.path).and_then(|runtime| runtime.note_for(wish));
        launch.notes.extend(note);
        if !own.is_empty() {
            let known = (around.variable)("LD_PRELOAD").unwrap_or_default();
            launch.program.may_be_second(&known, (around.variable)("ASAN_OPTIONS").as_deref())?;
            launch.variables.push(("LD_PRELOAD", preloads(&known, own)));
        }
        Ok(launch)
    }

    /// The allocator of its heap: the one that is preloaded, or that it is linked with; `None` is that of its libc.
    #[must_use]
    pub fn malloc(&self) -> Option<Allocator> {
        self.wish.malloc.or(self.program.malloc)
    }

    /// The variables that put the heap on such pages: the name of each, its value, and what joins values.
    fn heap_variables(
        &self,
        pages: HeapPages,
    ) -> Result<Vec<(&'static str, &'static str, &'static str)>, PlacementError> {
        let tunable = match pages {
            HeapPages::Thp => "glibc.malloc.hugetlb=1",
            HeapPages::Pool => "glibc.malloc.hugetlb=2",
        };
        let libc = match self.program.may_be_preloaded() {
            Err(PlacementError::Static { .. })
                if self.wish.malloc.is_none() && self.program.has_own_tunables() =>
            {
                return Ok(vec![("GLIBC_TUNABLES", tunable, ":")]);
            }
            libc => libc?,
        };
        if let Some(malloc) = self.malloc() {
            return Ok(malloc.variables(pages)?.iter().map(|(name, value)| (*name, *value, ",")).collect());
        }
        let who = match libc {
            Libc::Glibc { minor: Some(minor) } if minor < GLIBC_HUGETLB => {
                format!("the malloc of glibc 2.{minor}")
            }
            Libc::Glibc { .. } => return Ok(vec![("GLIBC_TUNABLES", tunable, ":")]),
            Libc::Musl => "the malloc of musl".to_owned(),
            Libc::Other => "a libc that is neither glibc nor musl".to_owned(),
        };
        Err(PlacementError::HeapPages { who, pages: "huge pages" })
    }

    fn warn_of_one_node(&mut self, machine: &Machine) {
        let spreads = matches!(self.wish.shared, Some(Spread::Interleave(None) | Spread::Weighted(None)));
        if spreads && machine.nodes.count() == 1 {
            self.notes.push("there is one node only: nothing to spread over".to_owned());
        }
    }

    /// What no option places goes where whoever started us had it go.
    fn warn_of_inherited(&mut self, machine: &Machine) {
        if let (Some(inherited), None, true) =
            (&machine.inherited, &self.setup.policy, self.wish.wants_memory())
        {
            let nodes = inherited.nodes().map_or(String::new(), |nodes| format!(":{nodes}"));
            self.notes.push(format!(
                "memory that no option places follows the policy that this start inherits, {}{nodes}: \
                 --numa heap=local has the heap lie where it is used",
                inherited.word()
            ));
        }
    }

    /// The options of what its child sets for itself before the program is executed.
    pub(crate) fn set_before(&self) -> Vec<&'static str> {
        let setup = &self.setup;
        let by_node = self.wish.nodes.is_some();
        let all = [
            (setup.cpus.is_some() && !by_node, "--cpus"),
            (by_node, "--node"),
            (setup.policy.is_some() && !by_node, "--numa heap="),
            (setup.without_thp, "--thp never"),
            (setup.memlock_bytes.is_some(), "--memlock"),
        ];
        all.into_iter().filter_map(|(is_set, option)| is_set.then_some(option)).collect()
    }

    /// The command, ready to be started.
    pub fn command(&self, name: &OsStr, arguments: &[OsString]) -> Command {
        let mut command = Command::new(&self.program.path);
        command.arg0(name).args(arguments);
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        prepare(&mut command, self.setup.clone());
        command
    }

    /// The drop-in that gives the same to a unit of systemd.
    #[must_use]
    pub fn drop_in(&self) -> String {
        drop_in::text(self)
    }
}

/// What the child sets for itself.
fn setup(wish: &Wish, machine: &Machine) -> Result<ChildSetup, PlacementError> {
    let mut cpus = wish.cpus.clone();
    // The kernel's own is local, and asking for it takes a call that some containers forbid.
    let is_given = |spread: &&Spread| **spread != Spread::Local || machine.inherited.is_some();
    let mut policy = wish.heap.as_ref().filter(is_given);
    let bound = wish.nodes.clone().map(Spread::Bind);
    if let Some(nodes) = &wish.nodes {
        cpus = Some(machine.cpus_on(nodes)?);
        policy = bound.as_ref();
    }
    Ok(ChildSetup {
        cpus,
        policy: policy.map(|spread| spread.policy(&machine.nodes)),
        without_thp: wish.without_thp,
        memlock_bytes: wish.memlock_bytes,
        ..ChildSetup::default()
    })
}

/// The settings of the preload as it reads them.
fn settings(
    wish: &Wish,
    machine: &Machine,
    cpus: Option<&planish_sys::CpuSet>,
    answer: Option<&str>,
) -> String {
    let mut text = format!("bytes={}", least_length(wish.bytes_min, pages::base_bytes() as u64));
    if let Some(spread) = &wish.shared {
        let policy = spread.policy(&machine.nodes);
        text += &format!(":mode={}", policy.mode());
        if let Some(nodes) = policy.nodes() {
            text += &format!(":nodes={}", joined_by_plus(nodes.iter().map(|node| node.to_string())));
        }
        let weight = |node: u32| {
            let known = machine.weights.iter().find(|(known, _)| *known == node);
            let is_weighted = matches!(spread, Spread::Weighted(_));
            known.filter(|_| is_weighted).map_or(1, |(_, weight)| *weight)
        };
        if let (Spread::Interleave(_) | Spread::Weighted(_), Some(nodes)) = (spread, policy.nodes()) {
            let weights = nodes.iter().map(|node| format!("{node}x{}", weight(node)));
            text += &format!(":weights={}", joined_by_plus(weights));
        }
    }
    match wish.shared_pages {
        Some(SharedPages::Thp) => text += &format!(":huge={}", machine.thp_bytes.unwrap_or(0)),
        Some(SharedPages::Pool(size)) => {
            text += &format!(":pool={}", size.unwrap_or(machine.pool_bytes).trailing_zeros());
        }
        None => {}
    }
    let cpus_count = cpus.unwrap_or(&machine.cpus).count();
    let threads = match wish.prefault {
        Prefault::Never => 0,
        Prefault::Usual => cpus_count.clamp(1, THREADS_USUAL),
        Prefault::Threads(count) => count,
    };
    let spare = SPARE_BYTES.min(machine.total_bytes / 8);
    text += &format!(":threads={threads}:spare={spare}");
    if let Some(room) = cgroup::memory_room() {
        text += &limit(&room);
    }
    if let Some(answer) = answer {
        text += &format!(":answer={answer}");
    }
    text
}

/// The smallest length of a mapping that takes `least` bytes: the kernel maps whole pages.
fn least_length(least: u64, page: u64) -> u64 {
    let whole = least.max(1).checked_next_multiple_of(page);
    whole.map_or(least, |whole| whole - page + 1)
}

/// What may be filled of the memory that a control group has left, and how the preload finds out later what is left.
fn limit(room: &cgroup::Room) -> String {
    // The heap wants some of it too.
    let spared = room.bytes / 8;
    let mut text = format!(":limit={}", room.bytes - spared);
    let usage = room.usage.to_string_lossy();
    // A path that the preload cannot read is not given: then what was filled once counts for good.
    if usage.len() < 256 && !usage.contains(':') {
        text += &format!(":group={}+{usage}", room.limit_bytes.saturating_sub(spared));
    }
    text
}

fn joined_by_plus(items: impl Iterator<Item = String>) -> String {
    items.collect::<Vec<_>>().join("+")
}

/// The list of preloads, in which each comes before what it calls. Hooks of the user's call on to what is behind them
/// (`dlsym(RTLD_NEXT)`), and ours calls the kernel: what is behind it sees no call, and so hooks go first. Allocators
/// call the kernel too, some from an mmap of their own (tcmalloc), and the one that was asked for is to come first of
/// them.
fn preloads(known: &OsStr, own: Vec<OsString>) -> OsString {
    let words = known.as_bytes().split(|byte| matches!(byte, b':' | b' ')).filter(|word| !word.is_empty());
    let is_hook = |word: &&[u8]| Allocator::of(&String::from_utf8_lossy(word)).is_none();
    let (hooks, mallocs): (Vec<&[u8]>, Vec<&[u8]>) = words.partition(is_hook);
    let all = hooks.into_iter().chain(own.iter().map(|path| path.as_bytes())).chain(mallocs);
    OsString::from_vec(all.collect::<Vec<_>>().join(&b':'))
}

/// A value behind the one that is there already.
fn joined(known: Option<OsString>, value: &str, joint: &str) -> OsString {
    match known.filter(|known| !known.is_empty()) {
        Some(mut known) => {
            known.push(joint);
            known.push(value);
            known
        }
        None => value.into(),
    }
}

const _: () = assert!(wire::VARIABLE.len() == "PLANISH_SHM".len());

#[cfg(test)]
mod tests {
    use planish_sys::Policy;

    use super::*;
    use crate::wish::parse_numa;

    fn machine() -> Machine {
        Machine {
            weights: vec![(0, 3), (1, 1)],
            nodes: [0, 1].into_iter().collect(),
            thp_bytes: Some(2 << 20),
            pool_bytes: 2 << 20,
            total_bytes: 4 << 30,
            inherited: None,
            ..Machine::look(&Host::live()).unwrap()
        }
    }

    #[test]
    fn settings_are_what_the_preload_reads() {
        let mut wish = Wish { bytes_min: 1 << 20, prefault: Prefault::Threads(3), ..Wish::default() };
        parse_numa("shm=weighted", &mut wish).unwrap();
        wish.shared_pages = Some(SharedPages::Thp);
        let text = settings(&wish, &machine(), None, Some("planish-run-1"));
        let least = (1 << 20) - pages::base_bytes() + 1;
        let begin =
            format!("bytes={least}:mode=6:nodes=0+1:weights=0x3+1x1:huge=2097152:threads=3:spare=536870912");
        assert!(text.starts_with(&begin) && text.ends_with(":answer=planish-run-1"), "{text}");
        parse_numa("heap=local", &mut wish).unwrap();
        wish.shared = Some(Spread::Bind([1].into_iter().collect()));
        wish.shared_pages = Some(SharedPages::Pool(Some(1 << 30)));
        let text = settings(&wish, &machine(), None, None);
        assert!(text.starts_with(&format!("bytes={least}:mode=2:nodes=1:pool=30:threads=3:")), "{text}");
    }

    #[test]
    fn a_local_heap_is_asked_for_where_another_policy_is_inherited() {
        let inherited = Some(Policy::Interleave([0, 1].into_iter().collect()));
        let inheriting = Machine { inherited, ..machine() };
        let planned = |machine: &Machine, numa: &str| {
            let mut wish = Wish::default();
            parse_numa(numa, &mut wish).unwrap();
            let host = Host::live();
            let folder = std::env::temp_dir();
            let around =
                Surroundings { host: &host, machine, folder: &folder, answer: None, variable: |_| None };
            Launch::plan(program(None), &wish, around).unwrap()
        };
        let local = planned(&inheriting, "heap=local");
        assert_eq!((local.setup.policy, local.notes.len()), (Some(Policy::Local), 0));
        assert_eq!(planned(&machine(), "heap=local").setup.policy, None, "it is local");
        let untold = planned(&inheriting, "shm=interleave:0");
        let note = untold.notes.iter().find(|note| note.contains("inherits, interleave:0-1"));
        assert!(note.is_some_and(|note| note.contains("heap=local")), "{:?}", untold.notes);
        assert!(!planned(&machine(), "shm=interleave:0").notes.iter().any(|note| note.contains("inherits")));
    }

    #[test]
    fn a_mapping_that_takes_as_many_pages_is_as_long() {
        let lengths = [0, 1, 4096, 4097, 16 << 20, u64::MAX].map(|least| least_length(least, 4096));
        assert_eq!(lengths, [1, 1, 1, 4097, (16 << 20) - 4095, u64::MAX]);
    }

    #[test]
    fn the_preload_is_told_where_its_group_tells_its_use() {
        let room = |usage: &str| cgroup::Room {
            bytes: 800,
            file: "/x/memory.max".into(),
            limit_bytes: 1000,
            usage: usage.into(),
        };
        assert_eq!(limit(&room("/x/memory.current")), ":limit=700:group=900+/x/memory.current");
        assert_eq!(limit(&room("/system.slice:cri:7/memory.current")), ":limit=700", "no path for a list");
        assert_eq!(limit(&room(&"/x".repeat(128))), ":limit=700");
    }

    fn program(malloc: Option<Allocator>) -> Program {
        Program { malloc, ..crate::program::tests::plain() }
    }

    /// Ours calls the kernel: a hook behind it would see no call, and neither would ours behind tcmalloc's.
    #[test]
    fn hooks_stand_in_front_of_ours_and_allocators_behind_it() {
        let own = || vec![OsString::from("/p/planish-preload-1.so"), OsString::from("/u/libjemalloc.so.2")];
        let list = |known: &str| preloads(OsStr::new(known), own()).into_string().unwrap();
        assert_eq!(list(""), "/p/planish-preload-1.so:/u/libjemalloc.so.2");
        assert_eq!(
            list("/a/hook.so /u/libtcmalloc.so.4::libfaketime.so.1"),
            "/a/hook.so:libfaketime.so.1:/p/planish-preload-1.so:/u/libjemalloc.so.2:/u/libtcmalloc.so.4"
        );
    }

    #[test]
    fn a_sanitizer_that_wants_to_be_first_is_told_before_it_ends_the_program() {
        let library = "libasan.so.8".to_owned();
        let program = Program { sanitizer: Some(library.clone()), ..program(None) };
        let second = |known: &str, options: Option<&str>| {
            program.may_be_second(OsStr::new(known), options.map(OsStr::new))
        };
        let refused = second("/a/hook.so", Some("detect_leaks=0")).unwrap_err();
        assert!(refused.to_string().contains(&library) && refused.cure().contains("LD_PRELOAD"), "{refused}");
        assert_eq!(refused.code(), 125);
        assert!(second("/usr/lib/libasan.so.8 /a/hook.so", None).is_ok(), "it is first");
        assert!(second("", Some("detect_leaks=0:verify_asan_link_order=0")).is_ok());
    }

    #[test]
    fn a_heap_from_a_pool_is_told_to_end_children() {
        let (host, pools) = (Host::live(), vec![(2 << 20, 64)]);
        let machine = Machine { thp: "madvise".to_owned(), pools, ..machine() };
        let notes_of = |path: &str, pages| {
            let wish = Wish { heap_pages: Some(pages), ..Wish::default() };
            let (folder, variable) = (Path::new("/nonexistent"), |_: &str| None);
            let around = Surroundings { host: &host, machine: &machine, folder, answer: None, variable };
            let program = Program { path: path.into(), ..program(None) };
            Launch::plan(program, &wish, around).unwrap().notes.join(" ")
        };
        let notes = |pages| notes_of("/srv/server", pages);
        assert!(notes(HeapPages::Pool).contains("SIGBUS"), "{}", notes(HeapPages::Pool));
        assert_eq!(notes(HeapPages::Thp), "");
        let flags =
            [("java", "UseTransparentHugePages"), ("node", "use-largepages"), ("dotnet", "thp.enabled")];
        for (runtime, flag) in flags {
            let told = notes_of(&format!("/opt/{runtime}"), HeapPages::Thp);
            assert!(told.contains(flag), "{runtime}: {told}");
        }
    }

    /// Of a program that is linked with another allocator, GLIBC_TUNABLES reaches no heap.
    #[test]
    fn the_allocator_of_the_program_is_told_and_not_that_of_its_libc() {
        let launch = |linked, preloaded| Launch {
            program: program(linked),
            variables: Vec::new(),
            setup: ChildSetup::default(),
            notes: Vec::new(),
            wish: Wish { malloc: preloaded, ..Wish::default() },
        };
        let first = |linked, preloaded| {
            let variables = launch(linked, preloaded).heap_variables(HeapPages::Thp);
            variables.map(|variables| variables[0].0).map_err(|error| error.to_string())
        };
        assert_eq!(first(None, None), Ok("GLIBC_TUNABLES"));
        assert_eq!(first(Some(Allocator::Jemalloc), None), Ok("MALLOC_CONF"));
        let preloaded = first(Some(Allocator::Tcmalloc), Some(Allocator::Mimalloc));
        assert_eq!(preloaded, Ok("MIMALLOC_ALLOW_LARGE_OS_PAGES"));
        let refused = first(Some(Allocator::Tcmalloc), None).unwrap_err();
        assert!(refused.contains("tcmalloc"), "{refused}");
    }

    #[test]
    fn a_static_glibc_reads_its_tunables_itself() {
        let folder = tempfile::tempdir().unwrap();
        let file = |tunable: &str| {
            let path = folder.path().join("static");
            std::io::Write::write_all(&mut std::fs::File::create(&path).unwrap(), tunable.as_bytes())
                .unwrap();
            path
        };
        let launch = |has_own_tunables, malloc| {
            let loaded = file(if has_own_tunables { "\0glibc.malloc.hugetlb\0" } else { "glibc.malloc\0" });
            let program = Program { libc: None, loaded, ..program(None) };
            let wish = Wish { malloc, ..Wish::default() };
            let (variables, notes) = (Vec::new(), Vec::new());
            let launch = Launch { program, variables, setup: ChildSetup::default(), notes, wish };
            launch.heap_variables(HeapPages::Thp).map(|variables| variables[0].1)
        };
        assert_eq!(launch(true, None).unwrap(), "glibc.malloc.hugetlb=1");
        assert!(matches!(launch(false, None), Err(PlacementError::Static { .. })));
        assert!(matches!(launch(true, Some(Allocator::Jemalloc)), Err(PlacementError::Static { .. })));
    }

    #[test]
    fn values_that_are_there_are_kept() {
        assert_eq!(joined(None, "a=1", ":"), "a=1");
        assert_eq!(joined(Some("glibc.rtld.nns=3".into()), "a=1", ":"), "glibc.rtld.nns=3:a=1");
    }
}
