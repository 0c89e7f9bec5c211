//! Whether two arms that are equal were read back to be equal.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::outcome::Achieved;
use crate::sample::Sample;

/// What differs, in a sentence: the backing of their memory, or a place of the host. Sizes in bytes differ between two
/// starts of any program and count for nothing.
pub(super) fn differs(samples: &[Sample]) -> Option<String> {
    let told: Vec<&Achieved> = samples.iter().filter_map(|sample| sample.achieved.as_ref()).collect();
    let is_other = |achieved: &&&Achieved| achieved.verified == Some(false) && achieved.in_part.is_none();
    if let Some(other) = told.iter().find(is_other) {
        let backing = other.backing.as_deref().unwrap_or("something else than it stands for");
        return Some(format!("a unit of the baseline was read back to have {backing}"));
    }
    let mut seen: BTreeMap<&str, &Value> = BTreeMap::new();
    let backings: Vec<(&str, Value)> = told
        .iter()
        .filter_map(|achieved| Some(("the backing", Value::from(achieved.backing.clone()?))))
        .collect();
    let places = told.iter().flat_map(|achieved| &achieved.facts).filter(|(name, _)| name.starts_with('/'));
    let all = backings.iter().map(|(name, value)| (*name, value));
    for (name, value) in all.chain(places.map(|(name, value)| (name.as_str(), value))) {
        let first = *seen.entry(name).or_insert(value);
        if first != value {
            let word = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            return Some(format!("{name} was read back as {} and as {}", word(first), word(value)));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn sample(backing: &str, verified: bool, facts: &[(&str, Value)]) -> Sample {
        let facts = facts.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        let backing = Some(backing.to_owned());
        let achieved = Some(Achieved { verified: Some(verified), in_part: None, backing, facts });
        Sample { achieved, ..Sample::default() }
    }

    #[test]
    fn equal_arms_have_equal_pages_and_an_equal_host() {
        let at = |value: &str| sample("thp", true, &[("/proc/sys/vm/swappiness", json!(value))]);
        assert_eq!(differs(&[at("60"), Sample::default(), at("60")]), None);
        let host = differs(&[at("60"), at("60"), at("10")]);
        assert_eq!(host.as_deref(), Some("/proc/sys/vm/swappiness was read back as 60 and as 10"));
        let pages = differs(&[at("60"), sample("base", true, &[])]);
        assert_eq!(pages.as_deref(), Some("the backing was read back as thp and as base"));
        let other = differs(&[sample("base", false, &[])]);
        assert_eq!(other.as_deref(), Some("a unit of the baseline was read back to have base"));
        let bytes = |bytes: u64| sample("thp", true, &[("thp_bytes", json!(bytes))]);
        assert_eq!(differs(&[bytes(1), bytes(2)]), None);
    }
}
