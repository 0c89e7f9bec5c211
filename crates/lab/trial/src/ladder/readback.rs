//! Whether two arms that are equal were read back to be equal, at the self-check and ever after.

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
    let mut seen = Seen::default();
    told.iter().find_map(|achieved| {
        let backing = achieved.backing.clone().map(Value::from);
        backing.and_then(|value| seen.other("the backing", &value)).or_else(|| seen.differs(achieved))
    })
}

/// What equal arms were read back with first.
#[derive(Debug, Default)]
pub(super) struct Seen(BTreeMap<String, Value>);

impl Seen {
    /// Which place of the host is another one now, in a sentence.
    pub(super) fn differs(&mut self, achieved: &Achieved) -> Option<String> {
        let places = achieved.facts.iter().filter(|(name, _)| name.starts_with('/'));
        places.filter_map(|(name, value)| self.other(name, value)).next()
    }

    fn other(&mut self, name: &str, value: &Value) -> Option<String> {
        let first = self.0.entry(name.to_owned()).or_insert_with(|| value.clone());
        let word = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        (first != value).then(|| format!("{name} was read back as {} and as {}", word(first), word(value)))
    }
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
