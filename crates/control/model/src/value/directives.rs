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

/// Sections that a file of ours may have.
const SECTIONS: [&str; 3] = ["[Service]\n", "[Slice]\n", "[Manager]\n"];

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
    // What a drop-in says before its first section is ignored.
    let after = SECTIONS.iter().find_map(|section| text.split_once(section));
    let text = after.map_or(text, |(_, settings)| settings);
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
