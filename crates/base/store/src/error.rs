//! Why a store did not give or take a blob.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use crate::contract::{SHIPPED, SHIPPED_SCHEMES};
use crate::digest::Digest;

/// Why a store did not give or take a blob.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A location that is neither a folder nor a URL.
    #[error("`{text}` is no store: {why}")]
    Location {
        /// What was named.
        text: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A name that could lead out of the store, or means something else in a URL.
    #[error("`{handle}` is no handle")]
    Handle {
        /// The name.
        handle: String,
    },
    /// The folder of a store is not there. It is never made: it may be a disk that is not mounted.
    #[error("there is no folder {}", path.display())]
    NoFolder {
        /// The folder.
        path: PathBuf,
    },
    /// A file of a store in a folder.
    #[error("cannot {what} {}", path.display())]
    File {
        /// `read`, `write`, `list` or `delete`.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The kernel's reason.
        source: io::Error,
    },
    /// A blob that is there, of another user, and that counts as old: a prune would take what is pinned now.
    #[error("cannot put {} anew, which another user has put there", path.display())]
    NotRenewed {
        /// The file.
        path: PathBuf,
        /// The kernel's reason.
        source: io::Error,
    },
    /// The store has nothing of this name.
    #[error("{store} has no {handle}")]
    Missing {
        /// The store.
        store: String,
        /// The name.
        handle: String,
    },
    /// What lies under the name is something else.
    #[error("what {store} has as {handle} is not what was stored: its sha256 is {found}, not {wanted}")]
    Other {
        /// The store.
        store: String,
        /// The name.
        handle: String,
        /// What was asked for.
        wanted: Digest,
        /// What it is.
        found: Digest,
    },
    /// The store is read only.
    #[error("{store} can be read, not written")]
    ReadOnly {
        /// The store.
        store: String,
    },
    /// The store hands out what is asked for by name, and does not tell what there is.
    #[error("{store} cannot be listed: a web server tells no names")]
    NotListed {
        /// The store.
        store: String,
    },
    /// What a helper says of an object is no line of the contract.
    #[error("{program} lists `{line}`, which is not BYTES SECONDS NAME")]
    Line {
        /// The program.
        program: String,
        /// What it says.
        line: String,
    },
    /// The program that speaks the protocol of the store is not installed.
    #[error("{store} needs the program {program}, which is neither beside planish nor on the PATH")]
    NoHelper {
        /// The store.
        store: String,
        /// The program.
        program: String,
    },
    /// That program cannot be run.
    #[error("cannot run {program}")]
    NotStarted {
        /// The program.
        program: String,
        /// The kernel's reason.
        source: io::Error,
    },
    /// That program failed.
    #[error("{program}: {told}")]
    Helper {
        /// The program.
        program: String,
        /// What it says.
        told: String,
    },
    /// That program did not end by itself.
    #[error("{program} took more than {} s for {url}", patience.as_secs())]
    Silent {
        /// The program.
        program: String,
        /// What it was asked for.
        url: String,
        /// How long it was waited for.
        patience: Duration,
    },
    /// More bytes than any blob of ours has.
    #[error("{handle} of {store} is longer than {} MiB", limit >> 20)]
    TooLong {
        /// The store.
        store: String,
        /// The name.
        handle: String,
        /// The limit in bytes.
        limit: u64,
    },
}

impl StoreError {
    /// What to do about it.
    #[must_use]
    pub fn cure(&self) -> Option<String> {
        Some(match self {
            Self::Location { .. } => "name a folder, s3://BUCKET/PREFIX or https://HOST/PATH".to_owned(),
            Self::NoFolder { path } => format!("mount it, or make it: mkdir -p {}", path.display()),
            Self::NotRenewed { .. } => {
                "publish as that user, or let this one replace files there: it would count as old, and be pruned"
                    .to_owned()
            }
            Self::Missing { .. } => "publish it again, or undo the pin: git revert".to_owned(),
            Self::Other { handle, .. } => format!("take {handle} away there, and publish it again"),
            Self::ReadOnly { .. } => "publish to a folder or to s3://BUCKET/PREFIX".to_owned(),
            Self::NotListed { .. } => {
                "name the store that it hands out: a folder, or s3://BUCKET/PREFIX".to_owned()
            }
            Self::NoHelper { program, .. } if program == SHIPPED => format!(
                "install the package {SHIPPED}, or put the program beside planish: cargo build --release --package \
                 {SHIPPED}; or name a folder"
            ),
            Self::NoHelper { program, .. } => {
                format!("install {program}; {SHIPPED} speaks {}", SHIPPED_SCHEMES.join(", "))
            }
            Self::Helper { .. } => "keys and places of stores: docs/text-publish.md".to_owned(),
            Self::Handle { .. } => {
                "a handle is plain words with slashes between, as publish writes it".to_owned()
            }
            Self::Line { program, .. } => format!("mend {program}: what it says is in docs/text-publish.md"),
            Self::File { .. } | Self::NotStarted { .. } | Self::Silent { .. } | Self::TooLong { .. } => {
                return None;
            }
        })
    }
}
