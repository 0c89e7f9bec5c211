//! How alike two profiles are.

use std::collections::BTreeMap;

use crate::names;
use crate::profile::CallProfile;

/// The weight that two profiles share, from 0 to 1: the sum over functions of the smaller of their two shares.
///
/// Functions are matched by the part of their names that outlives a build.
#[must_use]
pub fn overlap(left: &CallProfile, right: &CallProfile) -> f64 {
    let (left, right) = (shares(left), shares(right));
    left.iter().map(|(name, share)| share.min(right.get(name).copied().unwrap_or(0.0))).sum()
}

fn shares(profile: &CallProfile) -> BTreeMap<String, f64> {
    let total = profile.named().max(1) as f64;
    let mut shares = BTreeMap::new();
    for function in &profile.functions {
        *shares.entry(names::stable(&function.name)).or_default() += function.weight as f64 / total;
    }
    shares
}
