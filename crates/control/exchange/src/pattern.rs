//! What `only` of a profile means, as paths with shell wildcards.
//!
//! A profile may name what fills a hole (`7`, `state=3`) or the whole component that a plan shows (`cpu7`,
//! `hugepages-64kB`), and each of them by a pattern. A path has the text around a hole already: `cpucpu7` would be the
//! place of nothing, and a script that passes over what is not there would say nothing of it.

use std::collections::BTreeSet;

use planish_model::{mounts, place};

/// One component of a path: holes, and the texts around them.
struct Component<'a> {
    /// One more than there are holes.
    texts: Vec<&'a str>,
    holes: Vec<&'a str>,
}

impl<'a> Component<'a> {
    fn of(part: &'a str) -> Self {
        let (mut texts, mut holes, mut rest) = (Vec::new(), Vec::new(), part);
        while let Some((before, (hole, after))) =
            rest.split_once('{').and_then(|(before, rest)| Some((before, rest.split_once('}')?)))
        {
            texts.push(before);
            holes.push(hole);
            rest = after;
        }
        texts.push(rest);
        Self { texts, holes }
    }

    /// Whether a hole stands for a number: it follows text (`cpu{cpu}`, `state{state}`).
    fn is_number(&self, hole: usize) -> bool {
        !self.texts[hole].is_empty()
    }

    /// Whether a pattern can stand for what fills a hole.
    fn fits(&self, hole: usize, pattern: &str) -> bool {
        let of_number = |c: char| c.is_ascii_digit() || "*?".contains(c);
        !pattern.is_empty() && (!self.is_number(hole) || pattern.chars().all(of_number))
    }

    /// The component with its holes filled. Where a number stands a bare star would mean `cpufreq` too.
    fn filled(&self, fillings: &[String]) -> String {
        let holes = fillings.iter().enumerate().map(|(hole, filling)| match filling.as_str() {
            "*" if self.is_number(hole) => "[0-9]*",
            filling => filling,
        });
        let pairs = self.texts.iter().zip(holes.chain([""]));
        pairs.flat_map(|(text, filling)| [*text, filling]).collect()
    }

    /// The fillings of all holes for which the whole component matches a pattern.
    fn whole(&self, pattern: &str) -> Vec<Vec<String>> {
        let mut found = vec![(Vec::new(), 0)];
        for (hole, text) in self.texts.iter().enumerate() {
            let mut next = Vec::new();
            for (fillings, from) in found {
                for at in behind(&pattern[from..], text).into_iter().map(|at| from + at) {
                    if hole == self.holes.len() {
                        next.push((fillings.clone(), at));
                        continue;
                    }
                    let ends = parts(&pattern[at..]).filter(|(filling, _)| self.fits(hole, filling));
                    next.extend(ends.map(|(filling, end)| {
                        let filling = plain(filling);
                        (fillings.iter().cloned().chain([filling]).collect(), at + end)
                    }));
                }
            }
            found = next;
        }
        found.retain(|(_, end)| pattern[*end..].bytes().all(|byte| byte == b'*'));
        found.into_iter().map(|(fillings, _)| fillings).collect()
    }

    /// The fillings that a pattern means which is for one hole, or for the component as a plan shows it.
    fn meant(&self, hole: usize, pattern: &str) -> Vec<Vec<String>> {
        let mut all = self.whole(pattern);
        if self.fits(hole, pattern) {
            let of = |other| if other == hole { plain(pattern) } else { "*".to_owned() };
            all.insert(0, (0..self.holes.len()).map(of).collect());
        }
        let mut kept: Vec<Vec<String>> = Vec::new();
        for one in all {
            let is_in = |wide: &Vec<String>, one: &Vec<String>| {
                wide.iter().zip(one).all(|(wide, one)| place::includes(wide, one))
            };
            if !kept.iter().any(|wide| is_in(wide, &one)) {
                kept.retain(|narrow| !is_in(&one, narrow));
                kept.push(one);
            }
        }
        kept
    }
}

/// Where in a pattern one may be when it has taken a text: what is left of it stands for what follows.
fn behind(pattern: &str, text: &str) -> BTreeSet<usize> {
    let bytes = pattern.as_bytes();
    let mut at = BTreeSet::from([0]);
    for c in text.bytes() {
        let mut next = BTreeSet::new();
        for start in at {
            // A star may stand for nothing.
            let stars = bytes[start..].iter().take_while(|&&byte| byte == b'*').count();
            next.extend((stars > 0).then(|| start + stars - 1));
            let one = bytes.get(start + stars).is_some_and(|&byte| byte == b'?' || byte == c);
            next.extend(one.then_some(start + stars + 1));
        }
        at = next;
    }
    at
}

/// The beginnings of a pattern, and where the rest begins: a star may stand on both sides.
fn parts(pattern: &str) -> impl Iterator<Item = (&str, usize)> {
    let ends = (0..=pattern.len()).filter(|end| pattern.is_char_boundary(*end));
    ends.map(|end| match pattern.as_bytes().get(end) {
        Some(b'*') => (&pattern[..=end], end),
        _ => (&pattern[..end], end),
    })
}

/// A pattern without stars behind stars.
fn plain(pattern: &str) -> String {
    let mut plain = String::new();
    for c in pattern.chars() {
        if c != '*' || !plain.ends_with('*') {
            plain.push(c);
        }
    }
    plain
}

/// The paths that `only` means, or the one of all places; none where no place can be called so. What stands in brackets
/// is said one by one, since not every tool reads them as a shell does. Where that cannot be, the path has them still:
/// no export takes it.
pub(crate) fn paths(path: &str, only: Option<&str>) -> Vec<String> {
    let Some(pattern) = only else { return meant(path, None) };
    let each = place::without_brackets(pattern).unwrap_or_else(|| vec![pattern.to_owned()]);
    let mut found: Vec<String> = Vec::new();
    for place in each.iter().flat_map(|one| meant(path, Some(one))) {
        if !found.contains(&place) {
            found.push(place);
        }
    }
    found
}

/// The same of a pattern without brackets.
fn meant(path: &str, only: Option<&str>) -> Vec<String> {
    let parts: Vec<Component<'_>> = path.split('/').map(Component::of).collect();
    let all = |part: &Component<'_>| part.filled(&vec!["*".to_owned(); part.holes.len()]);
    let joined = |at: usize, own: &str| {
        let each = parts.iter().enumerate().map(|(index, part)| match index == at {
            true => own.to_owned(),
            false => all(part),
        });
        each.collect::<Vec<_>>().join("/")
    };
    let Some(only) = only else { return vec![joined(usize::MAX, "")] };
    // A mount is named by its path, too, which is several components; a pattern of paths is told by no place.
    let of_path = if only.contains(['*', '?', '[']) { "*".to_owned() } else { place::mount_name(only) };
    // A path may well have a sign that stands between a hole and its pattern elsewhere.
    let (name, pattern) = match mounts::is_option(path) && only.starts_with('/') {
        true => ("", of_path.as_str()),
        false => only.split_once('=').unwrap_or(("", only)),
    };
    let found = parts.iter().enumerate().find_map(|(at, part)| {
        let hole = part.holes.iter().position(|hole| name.is_empty() || *hole == name)?;
        Some((at, hole))
    });
    let Some((at, hole)) = found else { return Vec::new() };
    if pattern.contains('[') {
        return vec![joined(at, pattern)];
    }
    parts[at].meant(hole, pattern).iter().map(|fillings| joined(at, &parts[at].filled(fillings))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_component_as_a_plan_shows_it_is_a_place_that_there_is() {
        const IDLE: &str = "/cpu/cpu{cpu}/cpuidle/state{state}/disable";
        const THP: &str = "/mm/hugepages-{kb}kB/enabled";
        const UNCORE: &str = "/uncore/package_{package}_die_{die}/max";
        for (path, only, places) in [
            (IDLE, None, &["/cpu/cpu[0-9]*/cpuidle/state[0-9]*/disable"][..]),
            (IDLE, Some("7"), &["/cpu/cpu7/cpuidle/state[0-9]*/disable"]),
            (IDLE, Some("cpu7"), &["/cpu/cpu7/cpuidle/state[0-9]*/disable"]),
            (IDLE, Some("state=state3"), &["/cpu/cpu[0-9]*/cpuidle/state3/disable"]),
            (IDLE, Some("c*1*"), &["/cpu/cpu*1*/cpuidle/state[0-9]*/disable"]),
            (IDLE, Some("*u1"), &["/cpu/cpu1/cpuidle/state[0-9]*/disable"]),
            (IDLE, Some("*7"), &["/cpu/cpu*7/cpuidle/state[0-9]*/disable"]),
            (IDLE, Some("**"), &["/cpu/cpu[0-9]*/cpuidle/state[0-9]*/disable"]),
            // A number of four figures, or one of one figure behind its three letters.
            (
                IDLE,
                Some("???7"),
                &["/cpu/cpu???7/cpuidle/state[0-9]*/disable", "/cpu/cpu7/cpuidle/state[0-9]*/disable"],
            ),
            (IDLE, Some("x7"), &[]),
            (IDLE, Some("core=3"), &[]),
            (THP, Some("hugepages-64kB"), &["/mm/hugepages-64kB/enabled"]),
            (THP, Some("64"), &["/mm/hugepages-64kB/enabled"]),
            (THP, Some("*4kB"), &["/mm/hugepages-*4kB/enabled"]),
            (
                IDLE,
                Some("cpu[0-1]"),
                &["/cpu/cpu0/cpuidle/state[0-9]*/disable", "/cpu/cpu1/cpuidle/state[0-9]*/disable"],
            ),
            (IDLE, Some("state=[3]"), &["/cpu/cpu[0-9]*/cpuidle/state3/disable"]),
            (IDLE, Some("[!0]"), &["/cpu/[!0]/cpuidle/state[0-9]*/disable"]),
            (
                "/block/{disk}/queue/io",
                Some("nvme[01]n1"),
                &["/block/nvme0n1/queue/io", "/block/nvme1n1/queue/io"],
            ),
            (UNCORE, None, &["/uncore/package_[0-9]*_die_[0-9]*/max"]),
            (UNCORE, Some("00"), &["/uncore/package_00_die_[0-9]*/max"]),
            (UNCORE, Some("die=01"), &["/uncore/package_[0-9]*_die_01/max"]),
            (UNCORE, Some("package_00_die_01"), &["/uncore/package_00_die_01/max"]),
            (UNCORE, Some("package*"), &["/uncore/package_[0-9]*_die_[0-9]*/max"]),
            ("/block/{disk}/queue/io", Some("nvme*"), &["/block/nvme*/queue/io"]),
            ("/proc/sys/vm/swappiness", Some("x"), &[]),
        ] {
            assert_eq!(paths(path, only), places, "{path} {only:?}");
        }
    }
}
