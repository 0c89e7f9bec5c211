//! The one error of this crate: what cannot be measured, with what to do about it.

use planish_sys::CpuSet;

/// Why nothing was measured.
#[derive(Debug, thiserror::Error)]
pub enum LatencyError {
    /// A CPU was named that the machine does not have.
    #[error("this machine has no CPU {cpus}")]
    NoSuchCpu {
        /// Those that it lacks.
        cpus: CpuSet,
        /// Those that it has.
        present: CpuSet,
    },
    /// A CPU was named that is offline.
    #[error("CPU {cpus} is offline")]
    Offline {
        /// Those that are.
        cpus: CpuSet,
        /// Those that are online.
        online: CpuSet,
    },
    /// A CPU was named that this process may not run on.
    #[error("this process may not run on CPU {cpus}: its control group has a set of CPUs without it")]
    Forbidden {
        /// Those that it may not use.
        cpus: CpuSet,
        /// Those that it may.
        allowed: CpuSet,
    },
    /// An empty list.
    #[error("no CPU is named")]
    NoCpu,
    /// A thread could not be kept on its CPU.
    #[error("a thread cannot be kept on CPU {cpu}")]
    Pin {
        /// The CPU.
        cpu: u32,
        /// What the kernel says.
        source: planish_sys::Error,
    },
    /// A thread was kept elsewhere than asked.
    #[error("a thread that belongs on CPU {cpu} was put elsewhere")]
    Moved {
        /// The CPU.
        cpu: u32,
    },
    /// The other thread did not answer.
    #[error(
        "CPU {first} and CPU {second} did not get through their exchange in time: something holds one of them"
    )]
    Stuck {
        /// One of the two.
        first: u32,
        /// The other.
        second: u32,
    },
    /// Memory could not be had.
    #[error("there is no memory to measure")]
    Memory(#[from] planish_arena::ArenaError),
    /// There is too little of it.
    #[error("{node_words} leaves {free_bytes} bytes, and a measurement takes {needed_bytes}")]
    Short {
        /// Which memory.
        node_words: String,
        /// What can be had.
        free_bytes: u64,
        /// What it takes.
        needed_bytes: u64,
    },
    /// A thread could not be started.
    #[error("no thread can be started")]
    Thread(#[source] std::io::Error),
    /// The kernel does not tell where the calling thread runs, or may.
    #[error("the kernel does not tell on which CPUs this thread may run")]
    Asked(#[source] planish_sys::Error),
    /// The clock or a timer fails.
    #[error("the kernel's timer fails")]
    Timer(#[source] std::io::Error),
}

/// What helps where too little is free: to take what the page cache has would take it from a service that reads it.
pub(crate) const NO_ROOM: &str = "the page cache counts as used, since to take it would be felt by those who read from \
                                  it: where it has the memory (buff/cache of free -h), sync and sysctl \
                                  vm.drop_caches=1 empty it; else end something that holds memory";

impl LatencyError {
    /// Whether the command line is wrong, and not the machine short of something.
    pub fn is_usage(&self) -> bool {
        matches!(self, Self::NoSuchCpu { .. } | Self::NoCpu)
    }

    /// What to type or to do.
    pub fn cure(&self) -> String {
        match self {
            Self::NoSuchCpu { present, .. } => format!("name some of {present}: --cpus LIST"),
            Self::Offline { online, .. } => format!("name some of {online}, which are online: --cpus LIST"),
            Self::Forbidden { allowed, .. } => {
                format!("name some of {allowed}, or run it in a control group that has the others")
            }
            Self::NoCpu => "name CPUs: --cpus 0-3,8".to_owned(),
            Self::Pin { cpu, .. } | Self::Moved { cpu } => {
                format!("see what CPUs this process may use (planish topo --verbose), and leave {cpu} out")
            }
            Self::Stuck { first, second } => {
                format!("look for a real-time task on CPU {first} or {second}: ps -eLo psr,cls,rtprio,comm")
            }
            Self::Memory(error) => error.cure(),
            Self::Short { .. } => NO_ROOM.to_owned(),
            Self::Thread(_) => "raise the limit of threads (ulimit -u, pids.max)".to_owned(),
            Self::Asked(_) => "run it where sched_getaffinity and getcpu are not filtered".to_owned(),
            Self::Timer(_) => "run it where clock_nanosleep is not filtered".to_owned(),
        }
    }
}
