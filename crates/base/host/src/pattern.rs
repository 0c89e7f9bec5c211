//! Paths with holes: `/sys/block/{disk}/queue/scheduler`.
//!
//! One row of the catalogue addresses many places. A pattern is a path whose components may have holes:
//!
//! - `{name}` takes one or more characters of a component and remembers them. Straight after other text of its
//!   component (`cpu{cpu}`, `hugepages-{kb}kB`) it takes digits only, because that is how the kernel numbers its
//!   folders: `cpu{cpu}` must not find `cpufreq`. A name that returns must find the same text again.
//! - `*` takes any characters of a component, none included, and remembers nothing.
//! - `**` as the last component takes everything below.

use std::collections::BTreeMap;
use std::fmt;

/// What the holes of a pattern found, by name.
pub type Captures = BTreeMap<String, String>;

/// A path with holes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    text: String,
    components: Vec<Component>,
    /// Ends in `**`.
    open_ended: bool,
}

/// One component: text and holes in turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Component {
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Hole { name: String, digits: bool },
    Any,
}

/// Why a text is not a pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// It does not begin with a slash.
    #[error("{pattern:?} is not an absolute path")]
    Relative {
        /// The text.
        pattern: String,
    },
    /// A brace is missing, or a hole has no name of letters, digits and underscores.
    #[error("{pattern:?} has a hole without a name or an end")]
    Hole {
        /// The text.
        pattern: String,
    },
    /// `.`, `..` or an empty component, or `**` before the end.
    #[error("{pattern:?} has a component {component:?}, which names no place")]
    Component {
        /// The text.
        pattern: String,
        /// The component.
        component: String,
    },
}

impl Pattern {
    /// Reads a pattern.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        let pattern = || text.to_owned();
        let body = text.strip_prefix('/').ok_or_else(|| PatternError::Relative { pattern: pattern() })?;
        let (body, open_ended) = match body.strip_suffix("/**") {
            Some(body) => (body, true),
            None => (body, false),
        };
        let mut components = Vec::new();
        for component in body.split('/') {
            if matches!(component, "" | "." | ".." | "**") {
                let component = component.to_owned();
                return Err(PatternError::Component { pattern: pattern(), component });
            }
            let parsed = Component::parse(component);
            components.push(parsed.ok_or_else(|| PatternError::Hole { pattern: pattern() })?);
        }
        Ok(Self { text: pattern(), components, open_ended })
    }

    /// The text that was read.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The path itself when there is no hole in it.
    pub fn literal(&self) -> Option<&str> {
        let plain = !self.open_ended && self.components.iter().all(|component| component.literal().is_some());
        plain.then_some(self.text.as_str())
    }

    /// Names of the holes, in order, each once.
    pub fn holes(&self) -> Vec<&str> {
        let mut names = Vec::new();
        for part in self.components.iter().flat_map(|component| &component.parts) {
            if let Part::Hole { name, .. } = part
                && !names.contains(&name.as_str())
            {
                names.push(name.as_str());
            }
        }
        names
    }

    /// What the holes find in `path`; `None` when it is not a path of this pattern.
    pub fn captures(&self, path: &str) -> Option<Captures> {
        let mut rest = path.strip_prefix('/')?.split('/');
        let mut captures = Captures::new();
        for component in &self.components {
            captures = component.matches(rest.next()?, &captures)?;
        }
        match rest.next() {
            None => (!self.open_ended).then_some(captures),
            Some(_) => self.open_ended.then_some(captures),
        }
    }

    /// The path that comes of filling the holes; `None` when a hole has no value here, or for `*`.
    pub fn fill(&self, captures: &Captures) -> Option<String> {
        let mut path = String::new();
        for component in &self.components {
            path.push('/');
            for part in &component.parts {
                match part {
                    Part::Text(text) => path.push_str(text),
                    Part::Hole { name, .. } => path.push_str(captures.get(name)?),
                    Part::Any => return None,
                }
            }
        }
        (!self.open_ended).then_some(path)
    }

    /// The pattern with those of its holes filled that have a value here.
    pub fn bind(&self, captures: &Captures) -> Self {
        let fill = |part: &Part| match part {
            Part::Hole { name, .. } => {
                captures.get(name).map_or_else(|| part.clone(), |value| Part::Text(value.clone()))
            }
            part => part.clone(),
        };
        let components = self.components.iter().map(|component| component.parts.iter().map(fill).collect());
        let components: Vec<Component> = components.map(Component::from_parts).collect();
        let mut text: String = components.iter().map(|component| format!("/{component}")).collect();
        if self.open_ended {
            text.push_str("/**");
        }
        Self { text, components, open_ended: self.open_ended }
    }

    pub(crate) fn components(&self) -> &[Component] {
        &self.components
    }

    pub(crate) fn is_open_ended(&self) -> bool {
        self.open_ended
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Component {
    fn parse(text: &str) -> Option<Self> {
        let mut parts = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let (part, used) = match rest.as_bytes()[0] {
                b'*' => (Part::Any, 1),
                b'{' => {
                    let end = rest.find('}')?;
                    let name = &rest[1..end];
                    let named = !name.is_empty()
                        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
                    let digits = matches!(parts.last(), Some(Part::Text(_)));
                    (Part::Hole { name: named.then(|| name.to_owned())?, digits }, end + 1)
                }
                b'}' => return None,
                _ => {
                    let end = rest.find(['*', '{', '}']).unwrap_or(rest.len());
                    (Part::Text(rest[..end].to_owned()), end)
                }
            };
            parts.push(part);
            rest = &rest[used..];
        }
        Some(Self { parts })
    }

    /// Joins neighbouring texts, so that a component without holes is one text.
    fn from_parts(parts: Vec<Part>) -> Self {
        let mut joined: Vec<Part> = Vec::new();
        for part in parts {
            match (joined.last_mut(), part) {
                (Some(Part::Text(before)), Part::Text(text)) => before.push_str(&text),
                (_, part) => joined.push(part),
            }
        }
        Self { parts: joined }
    }

    /// The name itself when the component has no hole.
    pub(crate) fn literal(&self) -> Option<&str> {
        match self.parts.as_slice() {
            [Part::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// `known` and what the holes find in `name`; `None` when it does not match.
    pub(crate) fn matches(&self, name: &str, known: &Captures) -> Option<Captures> {
        match_parts(&self.parts, name, known)
    }
}

impl fmt::Display for Component {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in &self.parts {
            match part {
                Part::Text(text) => f.write_str(text)?,
                Part::Hole { name, .. } => write!(f, "{{{name}}}")?,
                Part::Any => f.write_str("*")?,
            }
        }
        Ok(())
    }
}

/// Matches by trying the longest text for each hole first. Components are short and have few holes.
fn match_parts(parts: &[Part], name: &str, known: &Captures) -> Option<Captures> {
    let Some((part, rest)) = parts.split_first() else {
        return name.is_empty().then(|| known.clone());
    };
    match part {
        Part::Text(text) => match_parts(rest, name.strip_prefix(text.as_str())?, known),
        Part::Any => splits(name, 0).find_map(|(_, after)| match_parts(rest, after, known)),
        Part::Hole { name: hole, digits } => splits(name, 1).find_map(|(taken, after)| {
            if *digits && !taken.bytes().all(|byte| byte.is_ascii_digit()) {
                return None;
            }
            if known.get(hole).is_some_and(|before| before != taken) {
                return None;
            }
            let mut captures = known.clone();
            captures.insert(hole.clone(), taken.to_owned());
            match_parts(rest, after, &captures)
        }),
    }
}

/// Ways to cut `name` in two, the longest first part first, which has at least `least` characters.
fn splits(name: &str, least: usize) -> impl Iterator<Item = (&str, &str)> {
    let cuts = name.char_indices().map(|(at, _)| at).chain([name.len()]).skip(least);
    cuts.collect::<Vec<_>>().into_iter().rev().map(|at| name.split_at(at))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn found(pattern: &str, path: &str) -> Option<Vec<(String, String)>> {
        Some(Pattern::parse(pattern).unwrap().captures(path)?.into_iter().collect())
    }

    fn pair(name: &str, value: &str) -> (String, String) {
        (name.to_owned(), value.to_owned())
    }

    #[test]
    fn holes_remember_what_they_took() {
        let scheduler = "/sys/block/{disk}/queue/scheduler";
        assert_eq!(
            found(scheduler, "/sys/block/nvme0n1/queue/scheduler"),
            Some(vec![pair("disk", "nvme0n1")])
        );
        assert_eq!(found(scheduler, "/sys/block/queue/scheduler"), None);
        assert_eq!(found(scheduler, "/sys/block/sda/queue/scheduler/x"), None);
        let pool = "/sys/devices/system/node/node{node}/hugepages/hugepages-{kb}kB/nr_hugepages";
        let path = "/sys/devices/system/node/node12/hugepages/hugepages-2048kB/nr_hugepages";
        assert_eq!(found(pool, path), Some(vec![pair("kb", "2048"), pair("node", "12")]));
    }

    #[test]
    fn a_hole_after_text_takes_a_number() {
        assert_eq!(found("/cpu{cpu}/online", "/cpu3/online"), Some(vec![pair("cpu", "3")]));
        assert_eq!(found("/cpu{cpu}/online", "/cpufreq/online"), None);
        assert_eq!(found("/cpu{cpu}/online", "/cpu/online"), None);
    }

    #[test]
    fn a_name_that_returns_finds_the_same_text() {
        assert!(found("/a/{x}/b/{x}", "/a/1/b/1").is_some());
        assert!(found("/a/{x}/b/{x}", "/a/1/b/2").is_none());
    }

    #[test]
    fn stars_take_anything() {
        assert!(found("/proc/sys/vm/*", "/proc/sys/vm/swappiness").is_some());
        assert!(found("/proc/*/vm/dirty_*s", "/proc/sys/vm/dirty_bytes").is_some());
        assert!(found("/proc/sys/vm/*", "/proc/sys/vm/a/b").is_none());
        assert!(found("/proc/sys/**", "/proc/sys/vm/swappiness").is_some());
        assert!(found("/proc/sys/**", "/proc/sys").is_none());
        assert!(found("/a/ab*b", "/a/abb").is_some());
    }

    #[test]
    fn what_is_no_pattern_is_refused() {
        for odd in ["", "proc", "/", "/a//b", "/a/../b", "/a/{}/b", "/a/{b", "/a/b}", "/a/{b c}", "/a/**/b"] {
            assert!(Pattern::parse(odd).is_err(), "{odd}");
        }
    }

    #[test]
    fn filling_is_the_inverse_of_finding() {
        let pattern = Pattern::parse("/sys/node{node}/{x}-{y}").unwrap();
        assert_eq!(pattern.holes(), ["node", "x", "y"]);
        let captures = pattern.captures("/sys/node1/a-2").unwrap();
        assert_eq!(pattern.fill(&captures).unwrap(), "/sys/node1/a-2");
        assert_eq!(pattern.fill(&Captures::new()), None);
        assert_eq!(Pattern::parse("/a/*").unwrap().fill(&captures), None);
        assert_eq!(Pattern::parse("/a/b").unwrap().literal(), Some("/a/b"));
        let bound = pattern.bind(&[pair("node", "7"), pair("y", "q")].into_iter().collect());
        assert_eq!(bound.as_str(), "/sys/node7/{x}-q");
        assert!(bound.captures("/sys/node7/a-q").is_some() && bound.captures("/sys/node8/a-q").is_none());
        assert_eq!(pattern.bind(&captures).literal(), Some("/sys/node1/a-2"));
    }

    proptest! {
        #[test]
        fn whatever_is_found_fills_back_to_the_path(path in "/[a-c0-9]{1,4}/[a-c0-9]{1,4}") {
            for text in ["/{x}/{y}", "/a{x}/{y}", "/{x}/b{x}", "/{x}a{y}/{z}"] {
                let pattern = Pattern::parse(text).unwrap();
                if let Some(captures) = pattern.captures(&path) {
                    prop_assert_eq!(pattern.fill(&captures), Some(path.clone()));
                }
            }
        }

        #[test]
        fn no_text_panics(pattern in "[/a{}*.]{0,12}", path in "[/a{}*.]{0,12}") {
            if let Ok(pattern) = Pattern::parse(&pattern) {
                let _ = pattern.captures(&path);
            }
        }
    }
}
