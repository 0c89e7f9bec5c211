//! Which programs, and which versions of them, a profile is made for.

use super::Profile;
use crate::place;

/// The numbers that a version begins with: `1:7.0.14-1` of Debian is 7, 0, 14. Empty for one without a number.
#[must_use]
pub fn version_numbers(version: &str) -> Vec<u64> {
    // An epoch of the packager's is no part of the version of the program.
    let own = version.split_once(':').map_or(version, |(_, own)| own);
    let end = own.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(own.len());
    own[..end].split('.').map_while(|part| part.parse().ok()).collect()
}

impl Profile {
    /// Whether it names a program.
    #[must_use]
    pub fn is_for(&self, program: &str) -> bool {
        self.programs.iter().any(|pattern| place::matches(pattern, program))
    }

    /// Whether it is for a version; one that has no numbers suits every profile.
    #[must_use]
    pub fn suits(&self, version: &str) -> bool {
        let numbers = version_numbers(version);
        let limit = |text: &Option<String>| text.as_deref().map(version_numbers);
        // As many numbers as the limit has: the others are of its releases.
        let cut = |length: usize| &numbers[..numbers.len().min(length)];
        let is_old = limit(&self.service_min).is_some_and(|least| cut(least.len()) < least.as_slice());
        let is_new = limit(&self.service_max).is_some_and(|most| cut(most.len()) > most.as_slice());
        numbers.is_empty() || !(is_old || is_new)
    }

    /// The versions that it is for, in words; empty for all.
    #[must_use]
    pub fn versions(&self) -> String {
        match (&self.service_min, &self.service_max) {
            (None, None) => String::new(),
            (Some(least), None) => format!("{least} and later"),
            (None, Some(most)) => format!("{most} and older"),
            (Some(least), Some(most)) => format!("{least} to {most}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn between(least: Option<&str>, most: Option<&str>) -> Profile {
        let (service_min, service_max) = (least.map(str::to_owned), most.map(str::to_owned));
        Profile {
            service_min,
            service_max,
            programs: vec!["mongod".to_owned(), "ora_*".to_owned()],
            ..Profile::default()
        }
    }

    #[test]
    fn a_version_is_cut_to_the_length_of_the_limit() {
        let (old, new) = (between(None, Some("7")), between(Some("8"), None));
        for (version, is_old) in
            [("7.0.14", true), ("1:7.0.14-1ubuntu1", true), ("6", true), ("8.0.1", false), ("10.2", false)]
        {
            assert_eq!((old.suits(version), new.suits(version)), (is_old, !is_old), "{version}");
        }
        assert!(old.suits("rolling") && new.suits("rolling"), "nothing is known of it");
        assert!(between(Some("7.0.5"), None).suits("7.0.5") && !between(Some("7.0.5"), None).suits("7.0.4"));
        assert!(!between(Some("7.0.5"), None).suits("7"), "a release that is not told may be an older one");
        assert_eq!((old.versions().as_str(), new.versions().as_str()), ("7 and older", "8 and later"));
    }

    #[test]
    fn programs_are_patterns() {
        let profile = between(None, None);
        assert!(profile.is_for("mongod") && profile.is_for("ora_pmon_ORCL"));
        assert!(!profile.is_for("mongo") && !profile.is_for("flora_1"));
    }

    proptest! {
        #[test]
        fn of_two_profiles_that_meet_one_suits_any_version(
            version in "[0-9]{1,3}(\\.[0-9]{1,3}){0,3}",
            at in 1_u64..300,
        ) {
            let (least, most) = (at.to_string(), (at - 1).to_string());
            let (old, new) = (between(None, Some(&most)), between(Some(&least), None));
            prop_assert!(old.suits(&version) != new.suits(&version));
        }
    }
}
