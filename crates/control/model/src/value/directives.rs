//! Settings of a unit of systemd, in one line for people and plans, and as the lines of a drop-in.
//!
//! ```text
//!   CPUAffinity=1,5 NUMAPolicy=bind NUMAMask=0        [Service]
//!                                               <->   CPUAffinity=
//!                                                     CPUAffinity = 1,5
//!                                                     NUMAPolicy = bind  ...
//! ```
//!
//! The section follows from the file: `[Slice]` for a slice, `[Manager]` for the configuration of systemd itself.
//!
//! systemd adds the CPUs of a second `CPUAffinity=` to those of the first: the empty line before each value takes away
//! what the unit itself, or another drop-in, has said (`systemd.exec(5)`).

use crate::{Cpus, NOT_GIVEN, UnitLine};

/// Sections that a file of ours may have.
pub(super) const SECTIONS: [&str; 3] = ["[Service]\n", "[Slice]\n", "[Manager]\n"];

/// Directives that take a list and add to it: a value begins with a line that empties it.
const LISTS: [&str; 3] = ["CPUAffinity", "NUMAMask", "AllowedCPUs"];

/// The lines of a file at `place` that gives a unit these settings. Blanks around the sign tell a value from what only
/// resets one.
pub(super) fn drop_in(place: &str, settings: &str) -> String {
    let lines = settings.split_whitespace().filter_map(|word| word.split_once('='));
    let reset = |name: &str| if LISTS.contains(&name) { format!("{name}=\n") } else { String::new() };
    lines.fold(section(place).to_owned(), |text, (name, value)| {
        text + &reset(name) + name + " = " + value + "\n"
    })
}

/// The section of a file of ours.
fn section(place: &str) -> &'static str {
    let [service, slice, manager] = SECTIONS;
    match place {
        place if place.ends_with(".slice") || place.contains(".slice.d/") => slice,
        place if place.contains("/system.conf.d/") => manager,
        _ => service,
    }
}

/// The settings in one line, of a line or of a drop-in; `None` for a text that has none. A list that blanks part in a
/// drop-in is parted by commas in a line, which systemd takes for the same.
pub(super) fn normal(text: &str) -> Option<String> {
    // What a drop-in says before its first section is ignored, and one without any says nothing.
    let after = SECTIONS.iter().find_map(|section| text.split_once(section)).map(|(_, settings)| settings);
    let text = after.or_else(|| Some(text).filter(|text| !text.trim().contains('\n')))?;
    let mut words: Vec<String> = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.starts_with(['#', ';', '['])) {
        match line.split_once(" = ") {
            Some((name, value)) if !name.trim().contains(|c: char| c == '=' || c.is_whitespace()) => {
                let value: Vec<&str> = value.split_whitespace().collect();
                words.push(format!("{}={}", name.trim(), value.join(",")));
            }
            _ => words.extend(line.split_whitespace().filter(|word| is_setting(word)).map(str::to_owned)),
        }
    }
    (!words.is_empty()).then(|| words.join(" "))
}

/// What settings of a file of ours come to after lines of others that are read behind it, and the last of those that
/// changes something. `None` where all of them stay.
///
/// A list adds to what was said before it, and an empty value takes that back.
#[must_use]
pub fn overridden<'a>(settings: &str, later: &'a [UnitLine]) -> Option<(String, &'a UnitLine)> {
    let pairs = settings.split_whitespace().filter_map(|word| word.split_once('='));
    let mut words: Vec<(&str, &str, Option<String>)> =
        pairs.map(|(name, ours)| (name, ours, Some(ours.to_owned()))).collect();
    let mut last = None;
    for line in later {
        let Some((name, _, now)) = words.iter_mut().find(|(name, ..)| *name == line.directive) else {
            continue;
        };
        let value = if LISTS.contains(name) { list_or(&listed(&line.value)) } else { line.value.clone() };
        let then = match &now {
            _ if value.is_empty() => None,
            Some(before) if LISTS.contains(name) => Some(both(before, &value)),
            _ => Some(value),
        };
        if then != *now {
            (*now, last) = (then, Some(line));
        }
    }
    if words.iter().all(|(_, ours, now)| now.as_deref().map(list_or) == Some(list_or(ours))) {
        return None;
    }
    let left = words.iter().filter_map(|(name, _, now)| Some(format!("{name}={}", now.as_ref()?)));
    let left: Vec<String> = left.collect();
    let left = if left.is_empty() { NOT_GIVEN.to_owned() } else { left.join(" ") };
    last.map(|line| (left, line))
}

/// A list of systemd, whose parts blanks or commas keep apart, with commas between them.
#[must_use]
pub fn listed(value: &str) -> String {
    let parts = value.split(|c: char| c == ',' || c.is_whitespace()).filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join(",")
}

/// Two lists as one; a word that is none takes the place of the first.
fn both(before: &str, more: &str) -> String {
    let all = Cpus::parse(before).zip(Cpus::parse(more)).map(|(a, b)| a.union(&b).to_string());
    all.unwrap_or_else(|| more.to_owned())
}

/// A list in its normal form.
fn list_or(value: &str) -> String {
    Cpus::parse(value).map_or_else(|| value.to_owned(), |cpus| cpus.to_string())
}

/// A name and a value; without one it only takes away what was said before.
fn is_setting(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, value)| !name.is_empty() && !value.is_empty())
}

/// Whether every word sets one of the directives, once, to nothing but numbers and words.
pub(super) fn are_legal(settings: &str, directives: &[String]) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || ",-.".contains(c);
    let mut seen: Vec<&str> = Vec::new();
    !settings.is_empty()
        && settings.split(' ').all(|word| {
            let Some((name, value)) = word.split_once('=') else { return false };
            let first = !seen.contains(&name);
            seen.push(name);
            first
                && directives.iter().any(|known| known == name)
                && !value.is_empty()
                && value.chars().all(plain)
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ValueType;

    const SETTINGS: &str = "CPUAffinity=1,5 NUMAPolicy=bind NUMAMask=0";
    const UNIT: &str = "/etc/systemd/system/a.service.d/zz-planish.conf";

    fn kind() -> ValueType {
        let directives = ["CPUAffinity", "NUMAPolicy", "NUMAMask"].map(str::to_owned).to_vec();
        ValueType::Directives { directives }
    }

    #[test]
    fn a_drop_in_and_its_line_are_the_same() {
        let text = drop_in(UNIT, SETTINGS);
        assert_eq!(
            text,
            "[Service]\nCPUAffinity=\nCPUAffinity = 1,5\nNUMAPolicy = bind\nNUMAMask=\nNUMAMask = 0\n"
        );
        assert!(kind().same(&text, SETTINGS));
        assert!(
            kind().same(&format!("# ours\nNUMAMask = 7\n{text}"), SETTINGS),
            "before the section nothing counts"
        );
        assert!(
            !kind().same(text.trim_start_matches("[Service]\n"), SETTINGS),
            "without a section nothing counts"
        );
        assert!(!kind().same(&format!("{text}CPUAffinity=7\n"), SETTINGS), "a line that somebody added");
        assert!(!kind().same(&text, "CPUAffinity=1 NUMAPolicy=bind NUMAMask=0"));
        assert_eq!(kind().normal(&kind().normal(&text)), SETTINGS);
        assert_eq!(kind().normal("(not given)"), "(not given)");
    }

    #[test]
    fn a_list_of_a_drop_in_that_blanks_part_stays_one_value() {
        let theirs = "[Service]\nCPUAffinity = 1 5\nNUMAPolicy = bind\nNUMAMask = 0\n";
        assert_eq!(kind().normal(theirs), SETTINGS);
        assert!(kind().same(theirs, &kind().normal(theirs)));
    }

    #[test]
    fn the_normal_form_is_stable_where_there_are_no_settings() {
        // Of several lines, a comment; in one line, a word.
        for text in ["Y\n;a=1", "a b = c", "x\n#CPUAffinity=1", "a = b = c", "= b"] {
            let normal = kind().normal(text);
            assert_eq!(kind().normal(&normal), normal, "{text:?}");
        }
    }

    #[test]
    fn the_section_follows_from_the_file() {
        let kind =
            ValueType::Directives { directives: vec!["AllowedCPUs".to_owned(), "CPUAffinity".to_owned()] };
        let slice = drop_in("/etc/systemd/system/planish.slice", "AllowedCPUs=1,5");
        assert_eq!(slice, "[Slice]\nAllowedCPUs=\nAllowedCPUs = 1,5\n");
        let manager = drop_in("/etc/systemd/system.conf.d/zz-planish.conf", "CPUAffinity=0");
        assert_eq!(manager, "[Manager]\nCPUAffinity=\nCPUAffinity = 0\n");
        let of =
            |unit: &str| drop_in(&format!("/etc/systemd/system/{unit}.d/zz-planish-x.conf"), "AllowedCPUs=0");
        assert_eq!(of("user.slice"), "[Slice]\nAllowedCPUs=\nAllowedCPUs = 0\n");
        assert!(kind.same(&of("user.slice"), "AllowedCPUs=0"));
        assert!(kind.same(&slice, "AllowedCPUs=1,5") && kind.same(&manager, "CPUAffinity=0"));
    }

    #[test]
    fn lines_that_are_read_later_add_to_a_list_or_take_it_back() {
        let left = |lines: &[(&str, &str)]| {
            let line = |(directive, value): &(&str, &str)| {
                let [directive, value, source] = [directive, value, directive].map(|word| (*word).to_owned());
                UnitLine { directive, value, source }
            };
            let later: Vec<UnitLine> = lines.iter().map(line).collect();
            overridden(SETTINGS, &later).map(|(left, line)| (left, line.source.clone()))
        };
        let told = |text: &str, source: &str| Some((text.to_owned(), source.to_owned()));
        let rest = "NUMAPolicy=bind NUMAMask=0";
        assert_eq!(left(&[]), None);
        assert_eq!(
            left(&[("CPUAffinity", "2 3")]),
            told(&format!("CPUAffinity=1-3,5 {rest}"), "CPUAffinity")
        );
        let set_anew = [("CPUAffinity", ""), ("CPUAffinity", "2, 3")];
        assert_eq!(left(&set_anew), told(&format!("CPUAffinity=2-3 {rest}"), "CPUAffinity"));
        assert_eq!(left(&[("CPUAffinity", "")]), told(rest, "CPUAffinity"));
        assert_eq!(
            left(&[("CPUAffinity", "numa")]),
            told(&format!("CPUAffinity=numa {rest}"), "CPUAffinity")
        );
        assert_eq!(left(&[("CPUAffinity", ""), ("CPUAffinity", "5,1")]), None, "the same once more");
        assert_eq!(left(&[("CPUAffinity", "5"), ("Slice", "a.slice"), ("Nice", "1")]), None);
        let policy = "CPUAffinity=1,5 NUMAPolicy=local NUMAMask=0";
        assert_eq!(left(&[("CPUAffinity", "1"), ("NUMAPolicy", "local")]), told(policy, "NUMAPolicy"));
        let nothing: Vec<(&str, &str)> =
            ["CPUAffinity", "NUMAPolicy", "NUMAMask"].map(|name| (name, "")).to_vec();
        assert_eq!(left(&nothing), told(NOT_GIVEN, "NUMAMask"));
    }

    #[test]
    fn nothing_else_gets_into_a_unit() {
        assert!(kind().validate(SETTINGS).is_ok());
        for wrong in [
            "",
            "ExecStart=/bin/sh",
            "CPUAffinity=1,5 ExecStart=x",
            "CPUAffinity=",
            "CPUAffinity=1 CPUAffinity=2",
            "CPUAffinity=$(x)",
            "CPUAffinity",
            "CPUAffinity=1\nExecStart=x",
        ] {
            assert!(kind().validate(wrong).is_err(), "{wrong}");
        }
    }
}
