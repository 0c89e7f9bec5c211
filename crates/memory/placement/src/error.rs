//! Why a program is not started as it was wanted, and what still works.

use std::io;
use std::path::PathBuf;

use planish_model::units::bytes;
use planish_sys::{CpuSet, Errno, NodeSet};

/// Why nothing was started.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the fields are named in the sentences")]
pub enum PlacementError {
    /// There is no such program.
    #[error("there is no program {name}")]
    NoProgram { name: String },
    /// It may not be executed, or is no program.
    #[error("{} cannot be run", path.display())]
    NotRunnable { path: PathBuf, source: io::Error },
    /// The loader that it names is not installed: the kernel says of the program that there is none.
    #[error("{} cannot be run: its loader {loader} is not there", path.display())]
    NoLoader { path: PathBuf, loader: String },
    /// What the first line of a script names is not there, or may not be executed.
    #[error("{} cannot be run: its first line names {interpreter}", path.display())]
    NoInterpreter { path: PathBuf, interpreter: String, source: io::Error },
    /// The kernel knows no such program: it is of another machine.
    #[error("{} cannot be run: it is a program for another machine ({machine})", path.display())]
    OtherMachine { path: PathBuf, machine: String },
    /// It is linked statically, so that nothing can stand in front of its calls.
    #[error("{} is linked statically: no preload and no other malloc reaches it", path.display())]
    Static { path: PathBuf },
    /// The loader ignores preloads for it.
    #[error("{} {why}: the loader ignores LD_PRELOAD and GLIBC_TUNABLES for it", path.display())]
    Secure { path: PathBuf, why: &'static str },
    /// It is of another architecture than the preload.
    #[error("{} is not a 64-bit program of this machine: the preload is", path.display())]
    Foreign { path: PathBuf },
    /// AddressSanitizer's runtime ends a program in which another library comes before it.
    #[error("{} needs {library}, which ends a program that has another library before it", path.display())]
    Sanitizer { path: PathBuf, library: String },
    /// This planish was built for an architecture that the preload is not written for.
    #[error("this build has no preload: it is written for x86-64 and aarch64")]
    NoPreload,
    /// The file of the preload cannot be written.
    #[error("cannot write the preload to {}", path.display())]
    Unwritten { path: PathBuf, source: io::Error },
    /// A path that LD_PRELOAD cannot hold.
    #[error("{} has a space or a colon in it, which LD_PRELOAD cannot hold", path.display())]
    Unspeakable { path: PathBuf },
    /// A node that this machine does not have, or that has no memory.
    #[error("node {missing} does not exist here or has no memory; there is {known}")]
    NoNode { missing: NodeSet, known: NodeSet },
    /// A node outside of the cpuset.
    #[error("this process may not take memory from node {forbidden}, only from {allowed} (its cpuset)")]
    NodeForbidden { forbidden: NodeSet, allowed: NodeSet },
    /// CPUs that it cannot run on, by the reason.
    #[error("{}", unusable(absent, offline, forbidden, allowed))]
    NoCpu { absent: CpuSet, offline: CpuSet, forbidden: CpuSet, allowed: CpuSet },
    /// Nodes without a CPU.
    #[error("node {nodes} has no CPU to run on")]
    NoCpuOn { nodes: NodeSet },
    /// The kernel refuses the policy.
    #[error("the kernel refuses memory that is {wanted}")]
    Policy { wanted: String, source: planish_sys::Error },
    /// No pool of this size.
    #[error("no pool of pages of {} is here", bytes(*page_bytes))]
    NoPool { page_bytes: u64 },
    /// A pool without a free page.
    #[error("the pool of pages of {} has none that is free", bytes(*page_bytes))]
    EmptyPool { page_bytes: u64 },
    /// The kernel gives shared memory no transparent huge pages.
    #[error("shared memory can have no transparent huge pages: shmem_enabled is {mode}")]
    NoShmemThp { mode: String },
    /// The kernel gives no transparent huge pages at all.
    #[error("transparent huge pages are switched off: enabled is {mode}")]
    NoThp { mode: String },
    /// Two wishes that exclude each other.
    #[error("{0}")]
    Contradiction(&'static str),
    /// The libc's malloc cannot.
    #[error("{who} cannot put a heap on {pages}")]
    HeapPages { who: String, pages: &'static str },
    /// The allocator is not installed.
    #[error("no {} is installed for the libc of the program", files.join(" or "))]
    NoAllocator { files: &'static [&'static str], search: &'static str },
    /// The limit on locked memory cannot be raised.
    #[error("the limit on locked memory is {}, and only who has CAP_SYS_RESOURCE may raise it", bytes(*limit))]
    Memlock {
        /// The limit in bytes.
        limit: u64,
        /// Whether we are root, without that capability: in a container.
        is_root: bool,
    },
    /// Nothing may be learnt of the machine.
    #[error("cannot tell the CPUs of this process")]
    Machine(#[source] planish_sys::Error),
    /// The socket for the preload's answers.
    #[error("cannot open a socket for the answers of the preload")]
    Socket(#[source] io::Error),
    /// The program could not be started.
    #[error("cannot start {}", path.display())]
    NotStarted {
        path: PathBuf,
        source: io::Error,
        /// The options of what was set between fork and exec, which may have been refused as well.
        set: Vec<&'static str>,
    },
}

impl PlacementError {
    /// What a shell would end with: 127 where there is no program, 126 where it cannot be run, 125 for the rest.
    #[must_use]
    pub fn code(&self) -> u8 {
        match self {
            Self::NoProgram { .. } => 127,
            Self::NotRunnable { .. }
            | Self::NoLoader { .. }
            | Self::NoInterpreter { .. }
            | Self::OtherMachine { .. }
            | Self::NotStarted { .. } => 126,
            _ => 125,
        }
    }

    /// What to do instead.
    #[must_use]
    pub fn cure(&self) -> String {
        let text = match self {
            Self::NoLoader { .. } => {
                "install the libc that it is linked with (musl, where the loader is ld-musl), or link it anew here"
            }
            Self::NoProgram { .. } => "name a program in PATH, or its path",
            Self::NoInterpreter { interpreter, .. } if interpreter.ends_with("\\r") => {
                "its lines end with a carriage return, which is a part of that name: sed -i 's/\\r$//' SCRIPT"
            }
            Self::NoInterpreter { .. } => "install what it names, or name another one there",
            Self::OtherMachine { .. } => {
                "take the program that is built for this machine (uname -m), or name an emulator before it, such as \
                 qemu-user"
            }
            Self::NotRunnable { source, .. } => return start_cure(source, &[]),
            Self::NotStarted { source, set, .. } => return start_cure(source, set),
            Self::Static { .. } => {
                "what is inherited still works: --numa heap=interleave (all of its memory, shared segments too), \
                 --node, --cpus, --thp, --memlock; or link it dynamically, or use planish-arena in its source"
            }
            Self::Secure { .. } => {
                "what is inherited still works: --numa heap=..., --node, --cpus, --thp; or start it as the user that \
                 it becomes, without the bit"
            }
            Self::Foreign { .. } => "what is inherited still works: --numa heap=..., --node, --cpus, --thp",
            Self::Sanitizer { library, .. } => {
                return format!(
                    "put it first, by its path: LD_PRELOAD=/usr/lib/.../{library}; or have it not look: \
                     ASAN_OPTIONS=verify_asan_link_order=0"
                );
            }
            Self::NoPreload => "leave out what concerns shared segments",
            Self::Unwritten { .. } => "name a folder that may be written and executed from: --state DIR",
            Self::Unspeakable { .. } => "name another folder: --state DIR",
            Self::NoNode { .. } | Self::NoCpu { .. } | Self::NoCpuOn { .. } => "planish topo",
            Self::NodeForbidden { .. } => "start it in a control group whose cpuset.mems has the node",
            Self::Policy { source, .. } => return policy_cure(source).to_owned(),
            // Its first lines tell the sizes.
            Self::NoPool { .. } => "planish doctor",
            Self::EmptyPool { page_bytes } => {
                return format!(
                    "how to reserve pages, with its own bytes in the place of 1G: planish size --bytes 1G; or take \
                     --huge shm,heap, which needs none; free ones: \
                     /sys/kernel/mm/hugepages/hugepages-{}kB/free_hugepages",
                    page_bytes >> 10
                );
            }
            Self::NoShmemThp { .. } => {
                "planish knobs thp.shmem_enabled; or pages from a pool: --huge shm=hugetlb"
            }
            Self::NoThp { .. } => "planish knobs thp.enabled; or pages from a pool: --huge heap=hugetlb",
            Self::Contradiction(_) => "leave one of the two out",
            Self::HeapPages { .. } => "--malloc jemalloc or --malloc mimalloc, with --huge heap",
            Self::NoAllocator { search, .. } => {
                return format!(
                    "find its package by {search} (apt search, dnf search); where it lies in a folder of its own: \
                     LD_LIBRARY_PATH=FOLDER"
                );
            }
            Self::Memlock { is_root: true, .. } => {
                "have this container start with the capability, or with the limit: docker run --cap-add SYS_RESOURCE, \
                 or --ulimit memlock=-1"
            }
            Self::Memlock { is_root: false, .. } => "sudo planish ..., or LimitMEMLOCK= in the unit",
            Self::Machine(_) | Self::Socket(_) => "see what this container forbids: planish doctor",
        };
        text.to_owned()
    }
}

/// What to do where a program is not started; `set` are the options of what is set before.
fn start_cure(source: &io::Error, set: &[&str]) -> String {
    let is = |errno: Errno| source.raw_os_error() == Some(errno.raw_os_error());
    match () {
        () if is(Errno::NOEXEC) => {
            "a script names what runs it in its first line, such as #!/bin/sh; or put that in front: sh SCRIPT"
                .to_owned()
        }
        () if is(Errno::PERM) && !set.is_empty() => format!(
            "a filter or a container may forbid what is set before it starts: leave {} out, or allow that (of a \
             container: --cap-add SYS_NICE)",
            set.join(", ")
        ),
        () if is(Errno::TXTBSY) => {
            "somebody has its file open to write it (a copy, a linker): try again when that has ended, or see who: \
             fuser -v PROGRAM"
                .to_owned()
        }
        () if is(Errno::MFILE) => "this process may open no more files: raise the limit, ulimit -n 1024".to_owned(),
        () if is(Errno::NFILE) => "this machine has no room for open files: planish knobs fs.file-max".to_owned(),
        () => "name a program that may be executed".to_owned(),
    }
}

/// `CPU 99 does not exist here, CPU 5 is offline; it may run on 0-1`
fn unusable(absent: &CpuSet, offline: &CpuSet, forbidden: &CpuSet, allowed: &CpuSet) -> String {
    let reasons = [
        (absent, "does not exist here"),
        (offline, "is offline"),
        (forbidden, "is outside of what this process may run on (its cpuset, or its affinity)"),
    ];
    let reasons = reasons.into_iter().filter(|(cpus, _)| !cpus.is_empty());
    let reasons: Vec<String> = reasons.map(|(cpus, why)| format!("CPU {cpus} {why}")).collect();
    format!("{}; it may run on {allowed}", reasons.join(", "))
}

/// What helps where the kernel refuses a policy.
fn policy_cure(source: &planish_sys::Error) -> &'static str {
    match source {
        planish_sys::Error::Forbidden { .. } => {
            "the container's seccomp filter forbids it: --cap-add SYS_NICE; prefaulting, --huge and --cpus still work"
        }
        planish_sys::Error::Missing { .. } => {
            "this kernel is without NUMA; --huge, --cpus and --thp still work"
        }
        _ => "weighted needs Linux 6.9, prefer with several nodes 5.15: interleave works everywhere",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_that_is_forbidden_names_what_was_set_before() {
        let cure = |errno: Errno, set: &[&'static str]| {
            let source = io::Error::from_raw_os_error(errno.raw_os_error());
            PlacementError::NotStarted { path: "/x".into(), source, set: set.to_vec() }.cure()
        };
        assert!(cure(Errno::PERM, &["--cpus", "--memlock"]).contains("leave --cpus, --memlock out"));
        assert_eq!(cure(Errno::PERM, &[]), "name a program that may be executed");
        assert!(cure(Errno::NOEXEC, &["--cpus"]).contains("sh SCRIPT"));
        assert!(cure(Errno::TXTBSY, &[]).contains("fuser"), "nothing is wrong with its rights");
        assert!(cure(Errno::MFILE, &[]).contains("ulimit -n"));
    }
}
