//! What `planish` and a helper program say to each other.
//!
//! ```text
//! planish-store-s3 get URL     the object's bytes on stdout
//! planish-store-s3 put URL     the object's bytes from stdin, whole under its name or not at all
//! planish-store-s3 list URL    a line an object below URL/: BYTES SECONDS NAME, where SECONDS are those since 1970 at
//!                              which it was last put, and NAME stands behind URL/
//! planish-store-s3 delete-if URL SECONDS
//!                              the object is there no more, also where there was none; one that was put anew since
//!                              SECONDS, when it was last put by the list, stays: it is looked at once more, as late as
//!                              can be, and the helper ends with 5
//! ```
//!
//! `get` and `put` are all that publishing and fetching need. A helper without the other two ends with [`USAGE`], and
//! its store cannot be pruned. `delete-if` has a name of its own: one that is written to the `delete URL` of before,
//! and ignores further words, would else delete without the second look, and say that it is done.
//!
//! How it ended is its exit code; why, in a line or two, is on stderr. It has the environment of `planish`, where keys
//! are, asks nothing, and gives up by itself: where it does not, it is ended after [`PATIENCE`].

use std::time::Duration;

/// What every helper's name begins with; the scheme of a URL follows.
pub const PREFIX: &str = "planish-store-";
/// The helper that comes with planish.
pub const SHIPPED: &str = "planish-store-s3";
/// Schemes that it speaks. The first can be written, the others are read only.
pub const SHIPPED_SCHEMES: [&str; 3] = ["s3", "https", "http"];

/// Hand out an object.
pub const GET: &str = "get";
/// Take an object.
pub const PUT: &str = "put";

/// Tell what there is.
pub const LIST: &str = "list";
/// Take an object away, if it is still the one that was listed.
pub const DELETE_IF: &str = "delete-if";

/// It is done.
pub const DONE: u8 = 0;
/// It could not be done: unreachable, refused, broken off.
pub const FAILED: u8 = 1;
/// The command line, the URL or a setting is wrong.
pub const USAGE: u8 = 2;
/// There is no such object.
pub const MISSING: u8 = 4;
/// Somebody has put it anew since it was listed, so it stays.
pub const CHANGED: u8 = 5;

/// How long a helper may take for one object.
pub const PATIENCE: Duration = Duration::from_secs(120);
