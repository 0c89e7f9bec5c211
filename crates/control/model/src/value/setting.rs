//! One setting of a unit of systemd, as a number, a word or a set of CPUs, and as the line of a file of ours.

use super::CpuForm;
use super::directives::SECTIONS;
use super::variable::{said, variable};

/// The directive that takes CPUs (systemd.resource-control(5)).
pub(super) const CPUS: &str = "AllowedCPUs";

/// The value in normal form: of a file of ours what its lines give; `None` for a file that gives nothing.
pub(super) fn normal(directive: &str, raw: &str) -> Option<String> {
    let given;
    let value = if raw.trim().contains(['\n', '=']) {
        given = in_file(directive, raw)?;
        given.as_str()
    } else {
        raw.trim()
    };
    if is_cpus(directive) {
        // systemd parts the CPUs of a list by blanks as well as by commas.
        let list = value.split_whitespace().collect::<Vec<_>>().join(",");
        return Some(CpuForm::List.normal(&list).unwrap_or_else(|| value.to_owned()));
    }
    if variable(directive).is_some() && value.contains('=') {
        return Some(value.to_owned());
    }
    let part = |part: &str| part.parse::<i64>().map_or_else(|_| part.to_owned(), |number| number.to_string());
    Some(match value.split_once(':') {
        Some((soft, hard)) => LimitPair::text(&part(soft.trim()), &part(hard.trim())),
        None => part(value),
    })
}

/// What the lines of a drop-in come to (`systemd.syntax(7)`): the last one counts, of CPUs each adds to those before,
/// and an empty value takes back what was said. Outside of a section nothing counts.
fn in_file(directive: &str, text: &str) -> Option<String> {
    let (mut is_within, mut given) = (false, Vec::new());
    let whole = text.replace("\\\n", " ");
    for line in whole.lines().map(str::trim).filter(|line| !line.starts_with(['#', ';'])) {
        if line.starts_with('[') {
            is_within = SECTIONS.iter().any(|section| section.trim_end() == line);
            continue;
        }
        let Some((name, value)) = line.split_once('=').filter(|_| is_within) else { continue };
        let Some(value) = said(directive, name.trim_end(), value.trim()) else { continue };
        if !is_cpus(directive) || value.is_empty() {
            given.clear();
        }
        given.push(value);
    }
    let given = given.join(" ");
    (!given.trim().is_empty()).then(|| given.trim().to_owned())
}

/// Whether systemd takes a soft and a hard limit for a directive: `LimitNOFILE=1024:524288` (systemd.exec(5)).
pub(super) fn is_pair(directive: &str) -> bool {
    directive.starts_with("Limit")
}

/// Whether a directive takes CPUs.
pub(super) fn is_cpus(directive: &str) -> bool {
    directive == CPUS
}

/// A limit of a unit: how much its program gets, and how much it may raise itself to. Other amounts have both alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitPair {
    /// What the program starts with.
    pub soft: i128,
    /// What it may raise itself to.
    pub hard: i128,
}

/// More than any number: `infinity`.
const INFINITY: i128 = i128::MAX;

impl LimitPair {
    /// What a text of systemd or the kernel says: `1024:524288`, `64K`, `infinity`, `max`. `None` for a word, and for a
    /// share such as `15%`, which depends on the host.
    #[must_use]
    pub fn parse(value: &str) -> Option<Self> {
        let (soft, hard) = value.split_once(':').unwrap_or((value, value));
        Some(Self { soft: amount(soft.trim())?, hard: amount(hard.trim())? })
    }

    /// Whether the program gets all there is.
    #[must_use]
    pub fn is_endless(self) -> bool {
        self.soft == INFINITY
    }

    fn text(soft: &str, hard: &str) -> String {
        if soft == hard { soft.to_owned() } else { format!("{soft}:{hard}") }
    }
}

impl std::fmt::Display for LimitPair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let part = |part: i128| if part == INFINITY { "infinity".to_owned() } else { part.to_string() };
        f.write_str(&Self::text(&part(self.soft), &part(self.hard)))
    }
}

/// How much one word comes to: `64G` in ones.
fn amount(word: &str) -> Option<i128> {
    if ["infinity", "max"].contains(&word) {
        return Some(INFINITY);
    }
    let end = word.len() - usize::from(word.ends_with(['K', 'M', 'G', 'T']));
    let (digits, suffix) = word.split_at(end);
    let shift = match suffix {
        "" => 0,
        "K" => 10,
        "M" => 20,
        "G" => 30,
        _ => 40,
    };
    digits.parse::<i64>().ok().map(|number| i128::from(number) << shift)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::LimitPair;
    use crate::ValueType;

    const PLACE: &str = "/etc/systemd/system/a.service.d/zz-planish-nofile.conf";

    fn kind(at_least: bool) -> ValueType {
        let (directive, unit) = ("LimitNOFILE".to_owned(), "files".to_owned());
        let words = vec!["infinity".to_owned()];
        ValueType::Setting { directive, unit, min: Some(1), max: Some(1 << 30), words, at_least }
    }

    #[test]
    fn a_soft_and_a_hard_limit_are_told_apart() {
        let read = |text| LimitPair::parse(text).map(|pair| (pair.soft, pair.hard, pair.to_string()));
        assert_eq!(read("1024:524288"), Some((1024, 524_288, "1024:524288".to_owned())));
        assert_eq!(read("64K"), Some((65536, 65536, "65536".to_owned())));
        assert_eq!(read("1K : infinity"), Some((1024, i128::MAX, "1024:infinity".to_owned())));
        assert_eq!(read("max").map(|read| read.2), Some("infinity".to_owned()));
        for none in ["15%", "", ":", "1:", "x:1"] {
            assert_eq!(read(none), None, "{none}");
        }
        let text = kind(true).in_file(PLACE, "65536:524288");
        assert_eq!(kind(true).normal(&text), "65536:524288");
        assert!(kind(true).same("65536:65536", "65536"));
    }

    #[test]
    fn a_file_of_ours_and_its_number_are_the_same() {
        let text = kind(true).in_file(PLACE, "65536");
        assert_eq!(text, "[Service]\nLimitNOFILE = 65536\n");
        assert!(kind(true).same(&text, "65536") && kind(true).same(&format!("# ours\n{text}"), " 65536\n"));
        assert!(!kind(true).same(&text, "1024"));
        assert_eq!(kind(true).normal("(not given)"), "(not given)");
        assert!(!kind(true).same("[Service]\nNice=-5\n", "65536"), "somebody else's");
    }

    #[test]
    fn what_somebody_did_to_a_file_of_ours_is_read_as_systemd_reads_it() {
        for (text, given) in [
            ("[Service]\nLimitNOFILE = 65536\nLimitNOFILE=1024\n", Some("1024")),
            (
                "[Service]\nLimitNOFILE=1024\n  LimitNOFILE =\t65536 \n# LimitNOFILE=1\n;LimitNOFILE=2\n",
                Some("65536"),
            ),
            ("LimitNOFILE = 65536\n", None),
            ("[Unit]\nLimitNOFILE = 65536\n", None),
            ("[Service]\nLimitNOFILE = 65536\n[Unit]\nLimitNOFILE = 7\n", Some("65536")),
            ("[Service]\nLimitNOFILE = 65536\nLimitNOFILE=\n", None),
            ("[Service]\nLimitNOFILE = \\\n 65536\n", Some("65536")),
        ] {
            assert_eq!(super::normal("LimitNOFILE", text).as_deref(), given, "{text}");
            assert_eq!(kind(true).same(text, "65536"), given == Some("65536"), "{text}");
        }
        let of_cpus = |lines: &str| super::normal(super::CPUS, &format!("[Slice]\n{lines}"));
        assert_eq!(of_cpus("AllowedCPUs=\nAllowedCPUs = 0-1\nAllowedCPUs=5 6\n").as_deref(), Some("0-1,5-6"));
        assert_eq!(of_cpus("AllowedCPUs = 0-1\nAllowedCPUs=\nAllowedCPUs=5\n").as_deref(), Some("5"));
    }

    #[test]
    fn numbers_and_words_are_held_to_the_row() {
        assert!(kind(true).validate("65536").is_ok() && kind(true).validate("infinity").is_ok());
        assert!(kind(true).validate("1024:524288").is_ok() && kind(true).validate("1024:infinity").is_ok());
        for wrong in [
            "0",
            "2000000000",
            "unlimited",
            "64K",
            "2048:1024",
            "infinity:1024",
            "0:1024",
            "1024:2000000000",
            "1:2:3",
            "1:",
            "1\nExecStart=x",
            "1 ExecStart=x",
            "",
        ] {
            assert!(kind(true).validate(wrong).is_err(), "{wrong}");
        }
        let told = kind(true).describe();
        assert_eq!(
            told,
            "LimitNOFILE= of a unit: whole number (files), 1 to 1073741824, or infinity, or SOFT:HARD"
        );
    }

    #[test]
    fn a_set_of_cpus_is_held_to_a_list() {
        let kind = ValueType::cpus_of_a_unit();
        let text = kind.in_file("/etc/systemd/system/user.slice.d/zz-planish-allowed-cpus.conf", "0,1-3,8");
        assert_eq!(text, "[Slice]\nAllowedCPUs=\nAllowedCPUs = 0,1-3,8\n");
        assert_eq!(kind.normal(&text), "0-3,8");
        assert!(
            kind.same(&text, "0-3 8") && kind.is_enough("8 0-3", "0-3,8") && !kind.is_enough("0-7", "0-3")
        );
        assert_eq!(kind.normal(&kind.normal(&text)), "0-3,8");
        assert_eq!(kind.normal("(not given)"), "(not given)");
        for wrong in ["", "0-", "3-1", "all", "0:3", "0\nExecStart=x", "0-3 ExecStart=x"] {
            assert!(kind.validate(wrong).is_err(), "{wrong}");
        }
        assert!(kind.validate("0-3,8").is_ok() && kind.is_cpus_of_a_unit());
        assert_eq!(kind.describe(), "AllowedCPUs= of a unit: list of CPUs, such as 0-3,8");
    }

    #[test]
    fn more_is_enough_where_less_is_the_trouble() {
        for (given, wanted, enough, same) in [
            ("infinity", "65536", true, false),
            ("65536", "65536", true, true),
            ("1024:524288", "65536", false, false),
            ("65536:524288", "65536", true, false),
            ("65536", "65536:524288", false, false),
            ("64K", "65536", true, true),
            ("1M", "65536", true, false),
            ("15%", "65536", false, false),
        ] {
            assert_eq!(kind(true).is_enough(given, wanted), enough, "{given}");
            assert_eq!(kind(false).is_enough(given, wanted), same, "{given}");
        }
    }

    proptest! {
        #[test]
        fn no_text_gets_more_than_one_line_into_a_file(value in "\\PC{0,20}") {
            if kind(true).validate(&value).is_ok() {
                let file = kind(true).in_file(PLACE, &kind(true).normal(&value));
                prop_assert_eq!(file.lines().count(), 2, "{}", file);
            }
        }
    }
}
