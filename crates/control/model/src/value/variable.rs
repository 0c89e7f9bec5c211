//! A variable in the environment of a service, as a setting of its unit: `Environment=MALLOC_ARENA_MAX`.
//!
//! Several variables stand in one line, and several lines add up; of one variable the last assignment counts, and an
//! empty line takes back all that was said before (`systemd.exec(5)`).

use super::{ValueError, none_of};

/// The variable that a setting of a unit is, where it is one.
#[must_use]
pub fn variable(directive: &str) -> Option<&str> {
    directive.split_once('=').map(|(_, variable)| variable)
}

/// What a line of a unit says of a setting: nothing (`None`), a value, or an empty one, which takes back what was said
/// before.
#[must_use]
pub fn said(setting: &str, directive: &str, value: &str) -> Option<String> {
    let Some((list, variable)) = setting.split_once('=') else {
        return (directive == setting).then(|| value.to_owned());
    };
    if directive != list {
        return None;
    }
    if value.is_empty() {
        return Some(String::new());
    }
    assignments(value).into_iter().rev().find_map(|word| Some(assigned(variable, &word)?.to_owned()))
}

/// What an assignment gives a variable.
#[must_use]
pub fn assigned<'w>(variable: &str, word: &'w str) -> Option<&'w str> {
    word.split_once('=').filter(|(name, _)| *name == variable).map(|(_, value)| value)
}

/// The assignments of one line: blanks part them, but for those in quotes, and a backslash takes the next sign as it
/// is. A line with a quote that has no end is passed over whole (`config_parse_environ`).
#[must_use]
pub fn assignments(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), String::new(), None);
    let mut rest = line.chars();
    while let Some(c) = rest.next() {
        match quote {
            _ if c == '\\' => word.extend(rest.next()),
            Some(open) if c == open => quote = None,
            None if ['"', '\''].contains(&c) => quote = Some(c),
            None if c.is_whitespace() => words.push(std::mem::take(&mut word)),
            _ => word.push(c),
        }
    }
    if quote.is_some() {
        return Vec::new();
    }
    words.push(word);
    words.retain(|word| !word.is_empty());
    words
}

/// Checks a list such as `glibc.malloc.hugetlb=1:glibc.pthread.rseq=0`: each part is one of some words, and none says
/// what another says.
pub(super) fn are_words(value: &str, legal: &[String]) -> Result<(), ValueError> {
    let mut names: Vec<&str> = Vec::new();
    for part in value.split(':') {
        if !legal.iter().any(|word| word == part) {
            return Err(none_of(part.to_owned(), legal));
        }
        let name = part.split('=').next().unwrap_or(part);
        if names.contains(&name) {
            return Err(ValueError::Twice { value: value.to_owned(), name: name.to_owned() });
        }
        names.push(name);
    }
    Ok(())
}

/// What is lost of a list such as `glibc.malloc.hugetlb=1:glibc.pthread.rseq=0` where another takes its place: the
/// parts of which the other says nothing.
#[must_use]
pub fn parts_lost<'a>(given: &'a str, instead: &str) -> Vec<&'a str> {
    let name = |part: &str| part.split('=').next().unwrap_or_default().to_owned();
    let named: Vec<String> = instead.split(':').map(name).collect();
    given.split(':').filter(|part| part.contains('=') && !named.contains(&name(part))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ValueType;

    const ARENAS: &str = "Environment=MALLOC_ARENA_MAX";
    const PLACE: &str = "/etc/systemd/system/a.service.d/zz-planish-glibc-tunables.conf";

    fn tunables() -> ValueType {
        let words = ["glibc.malloc.hugetlb=1", "glibc.malloc.hugetlb=2", "glibc.pthread.rseq=0"];
        ValueType::Setting {
            directive: "Environment=GLIBC_TUNABLES".to_owned(),
            unit: "none".to_owned(),
            min: None,
            max: None,
            words: words.map(str::to_owned).to_vec(),
            at_least: false,
        }
    }

    #[test]
    fn a_variable_is_found_among_others_of_its_line() {
        for (directive, value, expected) in [
            ("Environment", "MALLOC_ARENA_MAX=2", Some("2")),
            ("Environment", "A=1 \"MALLOC_ARENA_MAX=2\" 'B=a b'", Some("2")),
            ("Environment", "MALLOC_ARENA_MAX=2 MALLOC_ARENA_MAX=\"4\"", Some("4")),
            ("Environment", "'A=MALLOC_ARENA_MAX=2 MALLOC_ARENA_MAX=3'", None),
            ("Environment", "MALLOC_ARENA_MAX_=2", None),
            ("Environment", "\"B=a\\\"b MALLOC_ARENA_MAX=2\"", None),
            ("Environment", "\"MALLOC_ARENA_MAX=2", None),
            ("Environment", "", Some("")),
            ("EnvironmentFile", "MALLOC_ARENA_MAX=2", None),
            ("DefaultEnvironment", "MALLOC_ARENA_MAX=2", None),
        ] {
            assert_eq!(said(ARENAS, directive, value).as_deref(), expected, "{directive}={value}");
        }
        assert_eq!(said("Nice", "Nice", "-5").as_deref(), Some("-5"));
        assert_eq!(said("Nice", "Environment", "Nice=-5"), None);
        assert_eq!((variable(ARENAS), variable("Nice")), (Some("MALLOC_ARENA_MAX"), None));
    }

    #[test]
    fn a_file_of_ours_with_a_variable_and_its_value_are_the_same() {
        let both = "glibc.malloc.hugetlb=1:glibc.pthread.rseq=0";
        let text = tunables().in_file(PLACE, both);
        assert_eq!(text, format!("[Service]\nEnvironment = GLIBC_TUNABLES={both}\n"));
        assert_eq!((tunables().normal(&text).as_str(), tunables().normal(both).as_str()), (both, both));
        assert!(tunables().same(&text, both) && !tunables().same(&text, "glibc.pthread.rseq=0"));
        for (added, expected) in [
            ("Environment=A=1\n", both),
            ("Environment=\"GLIBC_TUNABLES=glibc.pthread.rseq=0\"\n", "glibc.pthread.rseq=0"),
        ] {
            assert_eq!(tunables().normal(&(text.clone() + added)), expected, "{added}");
        }
        assert!(!tunables().same(&(text + "Environment=\n"), both), "taken back");
    }

    #[test]
    fn a_variable_without_a_number_takes_its_words_alone() {
        assert!(tunables().validate("glibc.malloc.hugetlb=2:glibc.pthread.rseq=0").is_ok());
        for wrong in [
            "1",
            "",
            "glibc.malloc.hugetlb=3",
            "glibc.malloc.hugetlb=1:",
            "glibc.malloc.hugetlb=1:glibc.malloc.hugetlb=2",
            "glibc.malloc.hugetlb=1 A=2",
            "glibc.malloc.hugetlb=1\nExecStart=x",
        ] {
            assert!(tunables().validate(wrong).is_err(), "{wrong}");
        }
        assert_eq!(
            tunables().describe(),
            "Environment=GLIBC_TUNABLES= of a unit: one or several of glibc.malloc.hugetlb=1, \
             glibc.malloc.hugetlb=2, glibc.pthread.rseq=0, with a colon between them"
        );
    }

    #[test]
    fn what_a_new_list_says_nothing_of_is_lost() {
        let given = "glibc.pthread.rseq=0:glibc.malloc.hugetlb=1";
        assert_eq!(parts_lost(given, "glibc.malloc.hugetlb=2"), ["glibc.pthread.rseq=0"]);
        assert!(
            parts_lost(given, given).is_empty()
                && parts_lost("2", "4").is_empty()
                && parts_lost("", "4").is_empty()
        );
    }
}
