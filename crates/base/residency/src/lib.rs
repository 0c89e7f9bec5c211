//! Where the memory of a process lies: what it is for, on which pages, on which node.
//!
//! Two ways, neither of which touches a page of the process:
//! - [`Map`] sees each page: PAGEMAP_SCAN (before Linux 6.7 the entries of page tables), move_pages(2) and, for memory
//!   that processes share, what is really in it. On a recorded machine, or where a container forbids these calls, it
//!   falls back to the other way and says so.
//! - [`Process`] reads /proc/PID/{smaps,numa_maps,status} of a live or recorded machine.
//!
//! What these files cannot tell is not guessed:
//! - They show the pages that *this* process has mapped. Of a shared segment that others have filled, most is
//!   missing (measured: 4 % of PostgreSQL's in its postmaster); [`Segment::bytes`] is therefore the length of
//!   the mapping, which is what a pool must hold, and not what is resident here.
//! - smaps tells huge pages that are mapped as such from all others. Memory on pages between the two sizes
//!   (mTHP) is counted as [`Backing::Base`].
//! - numa_maps tells nodes and smaps tells pages, of the same mapping but not of the same page: where a
//!   mapping lies on several nodes *and* on pages of several sizes, its rows are split in proportion and say
//!   so.
#![forbid(unsafe_code)]

mod folio;
mod map;
mod maps;
mod numa_maps;
mod process;
mod ranges;
mod rows;
mod smaps;
mod stat;
mod status;
pub mod top;

pub use folio::folio_pages;
pub use map::{
    AreaPages, CELLS, CUT_BYTES_MIN, Denied, Map, Member, Object, ObjectPages, Piece, SeenBy, ThreadsOn,
    Unseen, Who, is_named, join, members, names, processes_named, stat_of,
};
pub use maps::{Area, FileId, Kind, parse_maps};
pub use numa_maps::{Placement, parse_numa_maps};
pub use process::{Process, ResidencyError, hides_processes, rollup, shown_as, status, status_text};
pub use rows::{Backings, Part, Row, Segment, sum_of};
pub use smaps::{Backing, Region, Rollup, parse_rollup, parse_smaps};
pub use stat::{Stat, parse_stat};
pub use status::{Status, parse_status};
