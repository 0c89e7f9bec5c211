//! Blobs under the hash of their content, in a folder or beyond this machine.
//!
//! ```text
//!                     Location ──> Folder   a file a blob: draft, fsync, rename
//! bytes ──> Digest ──> Store
//!                     Location ──> Helper   planish-store-s3 get|put|list|delete-if URL, bytes on its stdin and stdout
//! ```
//!
//! What is stored is read back, and what is read is held to its digest: whatever a disk, a proxy or somebody with the
//! keys of a bucket did to it, nobody is given other bytes than were asked for. Nothing changes under its name, so that
//! publishing and fetching need no more than these two verbs, and stores that differ in all else (conditional writes,
//! listings) are alike here. Only who prunes one asks what it holds, and takes away what nothing keeps ([`fates`]).
//!
//! S3 and TLS are C and some eighty crates, which the one static program of `planish` has no room for: they are a
//! program of their own, started as `git` starts its remote helpers ([`contract`]).

#![forbid(unsafe_code)]

pub mod contract;
mod digest;
mod error;
mod folder;
mod helper;
mod location;
mod prune;
mod store;

pub use digest::{Digest, NotADigest};
pub use error::StoreError;
pub use folder::write_whole;
pub use location::Location;
pub use prune::{Fate, Keep, fates};
pub use store::{Held, Listing, Put, Store};
