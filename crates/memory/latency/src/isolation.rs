//! Whether the calling thread has its CPU to itself, and its memory lies where it should.
//!
//! A program that was promised a CPU asks once it has pinned its thread, and says aloud what is amiss: an engine that
//! runs beside an interrupt it does not know of is slow for a reason that nobody finds. Nothing is changed here, and no
//! right is needed.
//!
//! ```text
//!  told      who else may come: affinity, isolcpus and isolated cpusets, SMT siblings, where interrupts are delivered
//!  counted   who did come: the kernel's own counters before and after the thread has spun for a while
//!  read back what the pages of an arena are, and on which node
//! ```
//!
//! The thread spins while it counts, for a CPU of `nohz_full` stops its tick only while one task is busy on it.
//!
//! Source: Documentation/timers/no_hz.rst, Documentation/core-api/irq/irq-affinity.rst, and cgroup-v2.rst
//! (cpuset.cpus.isolated).

use std::fmt;
use std::hint::spin_loop;
use std::time::{Duration, Instant};

use planish_arena::{Achieved, Arena};
use planish_host::Host;
use planish_sys::{CpuSet, affinity};
use planish_topo::Topology;

use crate::error::LatencyError;
use crate::jitter::sources::{Totals, interrupts_per_s};

/// Timer interrupts in a second from which on a CPU counts as ticking. The slowest tick of a kernel is 100 in a second,
/// and one in a second stays on a CPU without a tick.
const TICKS_MAX_PER_S: f64 = 50.0;

/// The shortest watch that tells the two apart: it sees three ticks of the slowest at least, and the one that a CPU
/// without a tick still has is not too many.
const TICKS_WATCH_MIN: Duration = Duration::from_millis(40);

/// What was found about the calling thread, its CPU and its memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Isolation {
    /// The CPU that the thread runs on.
    pub cpu: u32,
    /// The node of that CPU.
    pub node: u32,
    /// The CPUs that the thread may run on.
    pub affinity: CpuSet,
    /// Whether the kernel leaves other tasks off the CPU; `None` where it does not tell.
    pub isolated: Option<bool>,
    /// The other hardware threads of its core that are online and not isolated themselves; `None` where the kernel does
    /// not tell.
    pub siblings: Option<CpuSet>,
    /// Interrupts of devices that are delivered to the CPU: number, and who asked for it. `None` where none can be seen
    /// and there may be some.
    pub irqs: Option<Vec<(u32, String)>>,
    /// Interrupts of the CPU's timer in a second; `None` where they were not counted for 40 ms, or the thread was
    /// moved meanwhile.
    pub ticks_per_s: Option<f64>,
    /// All other interrupts of the CPU in a second, those of other CPUs among them; `None` where nothing was counted,
    /// or the thread was moved meanwhile.
    pub irqs_per_s: Option<f64>,
    /// What the arena that was asked about has.
    pub memory: Option<Achieved>,
}

/// Something that keeps a thread from having its CPU, or its memory near, to itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Problem {
    /// The thread may be moved to other CPUs.
    NotPinned,
    /// The scheduler puts other tasks on the CPU.
    NotIsolated,
    /// Another hardware thread of the core takes ordinary tasks.
    SharedCore,
    /// The timer interrupts the thread while it is busy.
    Ticks,
    /// Interrupts of devices are delivered to the CPU.
    Irqs,
    /// Memory does not lie on the pages that were asked for.
    Backing,
    /// Memory lies on other nodes than that of the CPU.
    Remote,
}

impl Problem {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::NotPinned,
        Self::NotIsolated,
        Self::SharedCore,
        Self::Ticks,
        Self::Irqs,
        Self::Backing,
        Self::Remote,
    ];

    /// What to do about it.
    pub fn cure(self) -> &'static str {
        match self {
            Self::NotPinned => "keep the thread on one CPU",
            Self::NotIsolated => {
                "isolate the CPU: a placement with `isolate = true` (docs/placement.md), or isolcpus="
            }
            Self::SharedCore => "isolate all hardware threads of the core together",
            Self::Ticks => "add the CPU to nohz_full=, and run one busy thread on it alone",
            Self::Irqs => {
                "move interrupts to housekeeping CPUs: a placement (docs/placement.md), or /proc/irq"
            }
            Self::Backing => "raise the pool of huge pages (planish size), or collapse the arena",
            Self::Remote => "bind the arena to the node of the thread",
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::NotPinned => "the thread may be moved to other CPUs",
            Self::NotIsolated => "the scheduler puts other tasks on the CPU",
            Self::SharedCore => "another hardware thread of the core takes ordinary tasks",
            Self::Ticks => "the timer interrupts the thread while it is busy",
            Self::Irqs => "interrupts of devices are delivered to the CPU",
            Self::Backing => "memory does not lie on the pages that were asked for",
            Self::Remote => "memory lies on other nodes than that of the CPU",
        })
    }
}

impl Isolation {
    /// Whether there is this problem; `None` where it cannot be judged here.
    pub fn has(&self, problem: Problem) -> Option<bool> {
        match problem {
            Problem::NotPinned => Some(self.affinity.count() != 1),
            Problem::NotIsolated => self.isolated.map(|isolated| !isolated),
            Problem::SharedCore => self.siblings.as_ref().map(|siblings| !siblings.is_empty()),
            Problem::Ticks => self.ticks_per_s.map(|ticks| ticks > TICKS_MAX_PER_S),
            Problem::Irqs => self.irqs.as_ref().map(|irqs| !irqs.is_empty()),
            Problem::Backing => self.memory.as_ref().map(|memory| !memory.is_as_requested()),
            Problem::Remote => {
                let nodes = self.memory.as_ref()?.node_bytes.as_ref()?;
                Some(nodes.iter().any(|(node, bytes)| *node != self.node && *bytes > 0))
            }
        }
    }

    /// What there is.
    pub fn problems(&self) -> Vec<Problem> {
        Problem::ALL.into_iter().filter(|problem| self.has(*problem) == Some(true)).collect()
    }
}

/// Looks at the calling thread, and at the memory of an arena if one is named. Interrupts are counted for `watch`, in
/// which the thread spins; without any time they are unknown, and ticks are in less than 40 ms.
///
/// # Errors
/// The kernel does not tell where the thread runs, or what the memory is.
pub fn check_isolation(watch: Duration, arena: Option<&Arena>) -> Result<Isolation, LatencyError> {
    let host = Host::live();
    let before = affinity::here().map_err(LatencyError::Asked)?;
    let totals = Totals::read(&host);
    let start = Instant::now();
    while start.elapsed() < watch {
        spin_loop();
    }
    let round = (totals, Totals::read(&host));
    let here = affinity::here().map_err(LatencyError::Asked)?;
    // Counters of a CPU that the thread has left say nothing about the thread.
    let is_counted = !watch.is_zero() && here.cpu == before.cpu;
    let counted = |timer| is_counted.then(|| interrupts_per_s(&round, here.cpu, timer)).flatten();
    let told = Told::read(&host, here.cpu);
    Ok(Isolation {
        cpu: here.cpu,
        node: here.node,
        affinity: affinity::get(None).map_err(LatencyError::Asked)?,
        isolated: told.isolated,
        siblings: told.siblings,
        irqs: told.irqs,
        ticks_per_s: if watch < TICKS_WATCH_MIN { None } else { counted(true) },
        irqs_per_s: counted(false),
        memory: arena.map(Arena::achieved).transpose()?,
    })
}

/// What a host tells about one of its CPUs.
struct Told {
    isolated: Option<bool>,
    siblings: Option<CpuSet>,
    irqs: Option<Vec<(u32, String)>>,
}

impl Told {
    fn read(host: &Host, cpu: u32) -> Self {
        let isolated = planish_topo::isolated(host);
        let is_isolated = isolated.as_ref().map(|isolated| isolated.contains(cpu));
        let own = planish_topo::core_threads(host, cpu).filter(|own| own.contains(cpu));
        let others = own.map(|own| own.difference(&[cpu].into_iter().collect()));
        let siblings = match (others, isolated) {
            // A core of one thread is shared with nobody, whoever is isolated.
            (Some(others), _) if others.is_empty() => Some(others),
            (Some(others), Some(isolated)) => Some(others.difference(&isolated)),
            _ => None,
        };
        Self { isolated: is_isolated, siblings, irqs: irqs_of(host, cpu) }
    }
}

/// The interrupts that are delivered to a CPU, and have a user: one without interrupts nobody.
///
/// A service with `ProcSubset=pid` and many a container see no /proc/irq, or no folder of users. So no interrupt at all
/// is no answer, and neither is one of which CPUs or users cannot be read.
fn irqs_of(host: &Host, cpu: u32) -> Option<Vec<(u32, String)>> {
    let irqs = Topology::read(host).irqs;
    let mut is_told = !irqs.is_empty();
    let mut delivered = Vec::new();
    for irq in irqs {
        let cpus = if irq.effective.is_empty() { &irq.cpus } else { &irq.effective };
        let may_be_here = cpus.is_empty() || cpus.contains(cpu);
        if !irq.users.is_empty() && cpus.contains(cpu) {
            delivered.push((irq.id, irq.users.join(", ")));
        } else if may_be_here && !(irq.users.is_empty() && has_users_file(host, irq.id)) {
            is_told = false;
        }
    }
    (is_told || !delivered.is_empty()).then_some(delivered)
}

fn has_users_file(host: &Host, irq: u32) -> bool {
    host.read(&format!("/sys/kernel/irq/{irq}/actions")).is_ok()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn recorded(name: &str, cpu: u32) -> Told {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../hosts").join(name);
        Told::read(&Host::open(&folder).expect("a recorded host"), cpu)
    }

    #[test]
    fn a_host_tells_which_cpus_are_isolated() {
        // isolcpus=4-7
        let [house, own] = [0, 4].map(|cpu| recorded("al2023-lockdown", cpu).isolated);
        assert_eq!((house, own), (Some(false), Some(true)));
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the test writes a host of its own")]
    fn siblings_and_irqs_of_a_cpu_are_told() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |path: &str, text: &str| {
            let file = folder.path().join(path.trim_start_matches('/'));
            std::fs::create_dir_all(file.parent().expect("in a folder")).expect("a folder");
            std::fs::write(file, text).expect("a file");
        };
        let cpus = "/sys/devices/system/cpu";
        for name in ["present", "online", "possible"] {
            write(&format!("{cpus}/{name}"), "0-3\n");
        }
        for cpu in 0..4 {
            write(&format!("{cpus}/cpu{cpu}/topology/thread_siblings_list"), ["0,2\n", "1,3\n"][cpu % 2]);
            write(&format!("{cpus}/cpu{cpu}/topology/core_id"), ["0\n", "1\n"][cpu % 2]);
        }
        write(&format!("{cpus}/isolated"), "1,2-3\n");
        write("/proc/irq/24/smp_affinity_list", "0-3\n");
        write("/proc/irq/24/effective_affinity_list", "2\n");
        write("/sys/kernel/irq/24/actions", "nvme0q1\n");
        write("/proc/irq/25/smp_affinity_list", "2\n");
        write("/sys/kernel/irq/25/actions", "");
        let host = Host::open(folder.path()).expect("a recorded host");
        let told = [0, 1, 2].map(|cpu| Told::read(&host, cpu));
        assert_eq!(told.each_ref().map(|told| told.isolated), [Some(false), Some(true), Some(true)]);
        assert_eq!(
            told.each_ref().map(|told| told.siblings.as_ref().expect("it is told").to_string()),
            ["", "", "0"],
            "the isolated one is left out"
        );
        let irqs = |told: &Told| told.irqs.clone().expect("they are told");
        assert_eq!(told.each_ref().map(|told| irqs(told).len()), [0, 0, 1], "one without a user is none");
        assert_eq!(irqs(&told[2]), [(24, "nvme0q1".to_owned())]);
        // 26 may be delivered everywhere, and nobody tells for whom.
        write("/proc/irq/26/smp_affinity_list", "0-3\n");
        assert_eq!([0, 2].map(|cpu| Told::read(&host, cpu).irqs), [None, Some(irqs(&told[2]))]);
        write("/sys/kernel/irq/26/actions", "");
        assert_eq!(Told::read(&host, 0).irqs, Some(vec![]));
        // 27 has a user, and nobody tells where it is delivered.
        write("/sys/kernel/irq/27/actions", "eth0\n");
        write("/proc/irq/27/node", "0\n");
        assert_eq!(Told::read(&host, 0).irqs, None);
        // A core of one thread needs no word about isolation; one of two does.
        std::fs::remove_file(folder.path().join("sys/devices/system/cpu/isolated")).expect("a file");
        write(&format!("{cpus}/cpu3/topology/thread_siblings_list"), "3\n");
        let siblings = [2, 3].map(|cpu| Told::read(&host, cpu).siblings);
        assert_eq!(siblings, [None, Some(CpuSet::new())]);
    }

    /// A service with `ProcSubset=pid`, a container with masked folders.
    #[test]
    #[expect(clippy::disallowed_methods, reason = "the test writes a host of its own")]
    fn what_cannot_be_seen_is_unknown_and_not_good() {
        let folder = tempfile::tempdir().expect("a folder");
        let seen = || {
            let told = Told::read(&Host::open(folder.path()).expect("a recorded host"), 0);
            (told.isolated, told.siblings, told.irqs)
        };
        std::fs::create_dir(folder.path().join("proc")).expect("a folder");
        assert_eq!(seen(), (None, None, None));
        for hidden in ["proc/irq", "sys/kernel/irq", "sys/devices/system/cpu"] {
            std::fs::create_dir_all(folder.path().join(hidden)).expect("a folder");
        }
        std::fs::write(folder.path().join("sys/devices/system/cpu/isolated"), "0\n").expect("a file");
        assert_eq!(seen(), (Some(true), None, None));
        let unseen = Isolation { siblings: None, irqs: None, ..quiet() };
        assert_eq!([Problem::SharedCore, Problem::Irqs].map(|problem| unseen.has(problem)), [None, None]);
        assert_eq!(unseen.problems(), []);
    }

    fn quiet() -> Isolation {
        Isolation {
            cpu: 3,
            node: 1,
            affinity: [3].into_iter().collect(),
            isolated: Some(true),
            siblings: Some(CpuSet::new()),
            irqs: Some(Vec::new()),
            ticks_per_s: Some(1.0),
            irqs_per_s: Some(0.0),
            memory: None,
        }
    }

    #[test]
    fn each_problem_is_seen_by_itself_and_what_is_untold_is_no_problem() {
        assert_eq!(quiet().problems(), []);
        let with = |change: &dyn Fn(&mut Isolation)| {
            let mut isolation = quiet();
            change(&mut isolation);
            isolation.problems()
        };
        assert_eq!(with(&|it| it.affinity = [3, 4].into_iter().collect()), [Problem::NotPinned]);
        assert_eq!(with(&|it| it.isolated = Some(false)), [Problem::NotIsolated]);
        assert_eq!(with(&|it| it.siblings = Some([7].into_iter().collect())), [Problem::SharedCore]);
        assert_eq!(with(&|it| it.ticks_per_s = Some(100.0)), [Problem::Ticks]);
        assert_eq!(with(&|it| it.irqs = Some(vec![(24, "eth0".to_owned())])), [Problem::Irqs]);
        let unknown = Isolation { isolated: None, siblings: None, irqs: None, ticks_per_s: None, ..quiet() };
        assert_eq!(unknown.problems(), []);
        let judged = |problem: &Problem| unknown.has(*problem).is_some();
        assert_eq!(Problem::ALL.into_iter().filter(judged).collect::<Vec<_>>(), [Problem::NotPinned]);
        assert!(
            Problem::ALL.iter().all(|problem| !problem.cure().is_empty() && !problem.to_string().is_empty())
        );
    }

    #[test]
    fn memory_on_another_node_or_on_other_pages_is_a_problem() {
        let arena = Arena::builder().capacity(1 << 20).build().expect("a megabyte");
        let mut memory = arena.achieved().expect("smaps is readable");
        memory.node_bytes = Some([(1, 1 << 20)].into());
        memory.requested = planish_arena::Preference::From(memory.mostly().expect("it has pages"));
        let problems = |memory: &Achieved| Isolation { memory: Some(memory.clone()), ..quiet() }.problems();
        assert_eq!(problems(&memory), []);
        memory.node_bytes = Some([(0, 4096), (1, 1 << 20)].into());
        assert_eq!(problems(&memory), [Problem::Remote]);
        memory.requested = planish_arena::Preference::From(planish_arena::Page::HugeTlb(1 << 46));
        memory.node_bytes = None;
        assert_eq!(problems(&memory), [Problem::Backing]);
    }

    #[test]
    fn a_pinned_thread_is_found_where_it_was_put() {
        let (cpu, found, short) = std::thread::spawn(move || {
            let cpu = affinity::get(None).expect("our affinity").last().expect("we run somewhere");
            affinity::pin(&[cpu].into_iter().collect()).expect("one of ours");
            let [long, short] = [40, 39]
                .map(|watch_ms| check_isolation(Duration::from_millis(watch_ms), None).expect("it is told"));
            (cpu, long, short)
        })
        .join()
        .expect("it does not panic");
        assert_eq!((found.cpu, found.affinity.iter().collect::<Vec<_>>()), (cpu, vec![cpu]));
        assert_eq!(found.has(Problem::NotPinned), Some(false));
        let host = Host::live();
        assert_eq!(found.isolated.is_some(), host.read("/sys/devices/system/cpu/isolated").is_ok());
        assert_eq!(
            found.ticks_per_s.is_some(),
            host.read("/proc/interrupts").is_ok_and(|text| text.contains(&format!("CPU{cpu} ")))
        );
        assert_eq!(
            (short.ticks_per_s, short.has(Problem::Ticks)),
            (None, None),
            "one tick more or less decides"
        );
        assert_eq!(short.irqs_per_s.is_some(), found.irqs_per_s.is_some());
        let unwatched = check_isolation(Duration::ZERO, None).expect("it is told");
        assert_eq!((unwatched.ticks_per_s, unwatched.irqs_per_s), (None, None), "nothing was counted");
    }
}
