//! Programs that rules of udev start: what they set, they may set, as a device appears for which the rule holds.
//!
//! What a rule sets itself, or by a command that says so (`sysctl`, `sh -c 'echo ..'`), is told by its line (see
//! `persisted`), and not here again.

use planish_formats::shell::{Ask, Effect, Ran, Run, effects_of};
use planish_host::Host;
use planish_udev::{Part, commands, rules, words};

use crate::persisted::{files as files_in, udev::FOLDERS};

/// Where a program lies that a rule names without a folder (`udev(7)`).
const PROGRAMS: &str = "/usr/lib/udev";

/// The files of rules in a folder that count: of one name only that of the first folder.
pub(super) fn files(host: &Host, folder: &str) -> Vec<String> {
    let is_here = |path: &String| path.rsplit_once('/').is_some_and(|(above, _)| above == folder);
    files_in(host, &FOLDERS, ".rules").into_iter().filter(is_here).collect()
}

/// What the programs do that rules start.
pub(super) fn effects(text: &str, ask: Option<Ask<'_>>) -> Vec<Effect> {
    // Most files have none, and there are many of them.
    if !text.contains("RUN") {
        return Vec::new();
    }
    let rules = rules(text);
    let starts = |part: &&Part| {
        let is_program = part.attribute.as_deref().is_none_or(|kind| kind == "program");
        part.key == "RUN" && part.operator.is_given() && is_program
    };
    let started = rules.iter().flat_map(|rule| &rule.parts).filter(starts);
    let of_command = |part: &Part| {
        let is_told = !commands(&part.value).is_empty();
        let run = Run::new(Ran::Words(told(&part.value)), false);
        let effects = effects_of([run], ask).into_iter();
        effects.filter(|effect| !is_told || !effect.from.is_empty()).collect::<Vec<_>>()
    };
    started.flat_map(of_command).collect()
}

/// The words of a command as a pattern of what udev starts.
fn told(command: &str) -> Vec<String> {
    let mut words: Vec<String> = words(command).iter().map(|word| filled(word)).collect();
    if let Some(first) = words.first_mut().filter(|first| !first.starts_with(['/', '*'])) {
        *first = format!("{PROGRAMS}/{first}");
    }
    words
}

/// `%k`, `$name`, `%E{KEY}` and their like, as a pattern; `%%` and `$$` are one sign.
fn filled(word: &str) -> String {
    let mut text = String::new();
    let mut rest = word;
    while let Some((before, behind)) = rest.split_once(['%', '$']) {
        text.push_str(before);
        let sign = &rest[before.len()..=before.len()];
        if let Some(behind) = behind.strip_prefix(sign) {
            text.push_str(sign);
            rest = behind;
            continue;
        }
        let name = match sign {
            "%" => behind.chars().next().map_or(0, char::len_utf8),
            _ => behind.len() - behind.trim_start_matches(|c: char| c.is_ascii_lowercase()).len(),
        };
        rest = &behind[name..];
        if let Some((_, behind)) = rest.strip_prefix('{').and_then(|braced| braced.split_once('}')) {
            rest = behind;
        }
        text.push('*');
    }
    text + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_udev_puts_in_may_be_anything() {
        for (word, pattern) in [
            ("/sys/block/%k/queue", "/sys/block/*/queue"),
            ("/sys/block/$kernel/queue", "/sys/block/*/queue"),
            ("%E{ID_X}%%", "*%"),
            ("$env{ID_X}$$x", "*$x"),
            ("%", "*"),
            ("/sys%p/ö%ö", "/sys*/ö*"),
            ("plain", "plain"),
        ] {
            assert_eq!(filled(word), pattern, "{word}");
        }
        assert_eq!(told("tune 'a b' %k"), ["/usr/lib/udev/tune", "a b", "*"]);
    }
}
