//! Why a program's text is not put on huge pages.

use std::path::PathBuf;

use planish_sys::Errno;

/// Why a program's text is not put on huge pages.
#[derive(Debug, thiserror::Error)]
pub enum HugifyError {
    /// Bytes that are no ELF file.
    #[error("it is no ELF file that can be read")]
    Elf(#[source] object::Error),
    /// A file of another machine's word.
    #[error("it is not a little-endian ELF file of 64 bits")]
    Foreign,
    /// An object file, a core: nothing that a kernel loads.
    #[error("it is neither a program nor a shared library")]
    NotLoaded,
    /// Less than one whole huge page of code.
    #[error("its text of {text_bytes} bytes holds no whole huge page of {huge_bytes} bytes")]
    TooLittle {
        /// Bytes of its executable segments.
        text_bytes: u64,
        /// Size of a huge page.
        huge_bytes: u64,
    },
    /// Its headers say what cannot be kept when its text is moved inside the file.
    #[error("its text cannot be moved inside the file: {why}")]
    Unmovable {
        /// What stands in the way.
        why: &'static str,
    },
    /// What was made is not, segment by segment, what it was made from. Nothing of it is used.
    #[error("the new file differs from the old one at address {address:#x}")]
    Differs {
        /// The first address that differs.
        address: u64,
    },
    /// A file that cannot be opened, read or mapped.
    #[error("cannot {what} {}", path.display())]
    File {
        /// What was tried.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The kernel's answer.
        #[source]
        source: std::io::Error,
    },
    /// The kernel has no transparent huge pages.
    #[error("this kernel has no transparent huge pages")]
    NoThp,
    /// A call of the kernel failed.
    #[error("{call} failed")]
    Call {
        /// Its name.
        call: &'static str,
        /// The kernel's answer.
        #[source]
        source: Errno,
    },
    /// Another call failed.
    #[error(transparent)]
    System(#[from] planish_sys::Error),
    /// A process that cannot be looked at.
    #[error(transparent)]
    Process(#[from] planish_residency::ResidencyError),
    /// Memory of a process is not what the file says.
    #[error(
        "memory of process {pid} at {address:#x} is not what its file says: a uprobe, a patch, relocations in its text"
    )]
    Patched {
        /// The process.
        pid: u32,
        /// The first address that differs.
        address: u64,
    },
}

impl HugifyError {
    /// What to do about it.
    #[must_use]
    pub fn cure(&self) -> &'static str {
        match self {
            Self::Elf(_) | Self::Foreign | Self::NotLoaded => {
                "name a program or a shared library of this machine"
            }
            Self::TooLittle { .. } => {
                "an order keeps the hot part on few base pages: planish text order --help"
            }
            Self::Unmovable { .. } => {
                "link it so that offsets fit addresses: planish text link-flags --huge --order order.txt --for make"
            }
            Self::Differs { .. } => "report it with the file: nothing was changed",
            Self::File { .. } => "name a file that you may read",
            Self::NoThp => "a kernel with CONFIG_TRANSPARENT_HUGEPAGE has them",
            Self::Call { .. } | Self::System(_) => "look at the limits of this process and its control group",
            Self::Process(_) => "name a process that runs and that you may look at",
            Self::Patched { .. } => "take uprobes off first (perf probe --del, bpftrace): then once more",
        }
    }
}
