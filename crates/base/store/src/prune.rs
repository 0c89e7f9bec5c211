//! Which blobs of a store nothing keeps any more.
//!
//! Nothing in a store says who builds by it: pins are files of repositories, and somebody has to name them. So a blob
//! that no pin names is kept as well where it may be one of the next minute: a publish stores first and pins last,
//! and a branch with a pin may wait for its review. `git gc` waits two weeks with what nothing reaches, for the same
//! reason.

use std::collections::HashSet;
use std::hash::BuildHasher;

use crate::digest::Digest;
use crate::store::Held;

/// Why a blob stays, or that nothing keeps it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// A pin names it, now or as what was pinned before.
    Pinned,
    /// It is one of the newest.
    Newest,
    /// It was put not long ago.
    Young,
    /// None of these.
    Unkept,
}

/// What is kept.
#[derive(Clone, Copy, Debug)]
pub struct Keep<'a, S> {
    /// What pins name.
    pub pinned: &'a HashSet<Digest, S>,
    /// So many of the newest blobs.
    pub newest: usize,
    /// What was put at this moment or later, in seconds since 1970.
    pub since: u64,
}

/// The fate of each blob of a list that begins with the newest.
#[must_use]
pub fn fates<S: BuildHasher>(blobs: &[Held], keep: &Keep<'_, S>) -> Vec<Fate> {
    let one = |(index, blob): (usize, &Held)| match blob {
        blob if keep.pinned.contains(&blob.digest) => Fate::Pinned,
        _ if index < keep.newest => Fate::Newest,
        blob if blob.put_at >= keep.since => Fate::Young,
        _ => Fate::Unkept,
    };
    blobs.iter().enumerate().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blob_stays_for_a_pin_for_being_new_and_for_being_young() {
        let blob = |put_at: u64| {
            let digest = Digest::of(&put_at.to_le_bytes());
            Held { handle: digest.handle(), digest, bytes: 8, put_at }
        };
        let blobs: Vec<Held> = [900, 800, 500, 400, 300].map(blob).into();
        let pinned: HashSet<Digest> = [blobs[3].digest].into();
        let told = |newest, since| fates(&blobs, &Keep { pinned: &pinned, newest, since });
        use Fate::{Newest, Pinned, Unkept, Young};
        assert_eq!(told(1, 500), [Newest, Young, Young, Pinned, Unkept]);
        assert_eq!(told(0, 501), [Young, Young, Unkept, Pinned, Unkept]);
        assert_eq!(told(9, 1000), [Newest, Newest, Newest, Pinned, Newest]);
        assert_eq!(told(0, u64::MAX), [Unkept, Unkept, Unkept, Pinned, Unkept]);
    }
}
