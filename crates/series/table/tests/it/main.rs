//! Tables from outside: in memory, and through everything that can go wrong with a disk.
#![expect(clippy::disallowed_methods, reason = "reads its own files, never the host")]
#![expect(clippy::unwrap_used, reason = "what goes wrong in a helper fails its test")]

mod changes;
mod corrections;
mod crash;
mod durable;
mod feed;
mod files;
mod fixture;
mod follow;
mod kill;
mod memory;
#[path = "../../../../memory/arena/tests/pool/mod.rs"]
mod pool;
mod release;
mod salvage;
mod simulated;
