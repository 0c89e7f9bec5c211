//! The patterns of udev: those of a shell, and several of them with `|` between.

/// Whether a text matches one of the patterns: `*`, `?`, `[a-c]`, `[!a-c]`, and `\` before what stands for itself.
#[must_use]
pub fn matches(patterns: &str, text: &str) -> bool {
    if !patterns.contains(['*', '?', '[', '\\', '|']) {
        return patterns == text;
    }
    let text: Vec<char> = text.chars().collect();
    patterns.split('|').any(|pattern| one(&pattern.chars().collect::<Vec<_>>(), &text))
}

/// Whether a file of a device's folder may be the one that a rule sets by this path (src/udev/udev-rules.c of systemd,
/// `attr_subst_subdir`): a whole `*` between two slashes, the first of them, stands for the first folder that has the
/// rest. Nothing else in it stands for anything.
#[must_use]
pub fn means(path: &str, file: &str) -> bool {
    let Some((folder, rest)) = path.split_once("/*/") else { return path == file };
    let inner = file.strip_prefix(folder).and_then(|inner| inner.strip_prefix('/'));
    inner.and_then(|inner| inner.split_once('/')).is_some_and(|(one, tail)| !one.is_empty() && tail == rest)
}

/// Where to go on when the text does not fit: behind the last star, one character further. So no pattern takes longer
/// than its length times that of the text.
fn one(pattern: &[char], text: &[char]) -> bool {
    let (mut at, mut seen) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    while seen < text.len() {
        if pattern.get(at) == Some(&'*') {
            retry = Some((at, seen));
            at += 1;
            continue;
        }
        match single(&pattern[at..], text[seen]) {
            Some(length) => {
                at += length;
                seen += 1;
            }
            None => {
                let Some((star, from)) = retry else { return false };
                retry = Some((star, from + 1));
                at = star + 1;
                seen = from + 1;
            }
        }
    }
    pattern[at..].iter().all(|&c| c == '*')
}

/// How much of the pattern one character takes; `None` where it does not fit.
fn single(pattern: &[char], c: char) -> Option<usize> {
    match *pattern.first()? {
        '?' => Some(1),
        '[' => match class(&pattern[1..], c) {
            Some((true, length)) => Some(length + 1),
            Some((false, _)) => None,
            // Without its end it is no class.
            None => (c == '[').then_some(1),
        },
        '\\' if pattern.len() > 1 => (pattern[1] == c).then_some(2),
        literal => (literal == c).then_some(1),
    }
}

/// Whether a class has the character, and how long the class is behind its first bracket.
fn class(pattern: &[char], c: char) -> Option<(bool, usize)> {
    let negated = matches!(pattern.first(), Some('!' | '^'));
    let first = usize::from(negated);
    let mut at = first;
    let mut found = false;
    loop {
        let low = *pattern.get(at)?;
        if low == ']' && at > first {
            return Some((found != negated, at + 1));
        }
        match (pattern.get(at + 1), pattern.get(at + 2)) {
            (Some('-'), Some(&high)) if high != ']' => {
                found |= (low..=high).contains(&c);
                at += 3;
            }
            _ => {
                found |= low == c;
                at += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn patterns_of_a_shell() {
        for (pattern, text, fits) in [
            ("nvme*n[0-9]*", "nvme0n1", true),
            ("sd[a-z]*|vd?", "vda", true),
            ("sd[!a-c]", "sda", false),
            ("sd[!a-c]", "sdd", true),
            ("?*", "", false),
            ("?*", "x", true),
            ("*", "", true),
            ("", "", true),
            ("[]x]", "]", true),
            ("[x", "[x", true),
            ("a\\*", "a*", true),
            ("a\\*", "ab", false),
            ("a*b*c", "aXbXb", false),
            ("", "a", false),
        ] {
            assert_eq!(matches(pattern, text), fits, "{pattern} {text}");
        }
    }

    #[test]
    fn only_a_whole_folder_is_left_open() {
        for (path, file, is_it) in [
            ("queue/scheduler", "queue/scheduler", true),
            ("queues/*/rps_cpus", "queues/rx-0/rps_cpus", true),
            ("queues/*/rps_cpus", "queues/rps_cpus", false),
            ("queues/*/rps_cpus", "queues/a/b/rps_cpus", false),
            ("queues/rx-*/rps_cpus", "queues/rx-0/rps_cpus", false),
            ("queues/rx-?/rps_cpus", "queues/rx-0/rps_cpus", false),
            ("queue/n*", "queue/nomerges", false),
            ("queue/*", "queue/nomerges", false),
            ("a/*/b/*", "a/x/b/c", false),
            ("*", "mtu", false),
        ] {
            assert_eq!(means(path, file), is_it, "{path} {file}");
        }
    }

    proptest! {
        #[test]
        fn odd_patterns_end(pattern in "[*?a-c\\[\\]!|\\\\-]{0,24}", text in "[a-c\\[\\]*]{0,24}") {
            let _ = matches(&pattern, &text);
            prop_assert!(matches("*", &text));
        }
    }
}
