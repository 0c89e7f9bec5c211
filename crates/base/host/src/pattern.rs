//! Paths with holes: `/sys/block/{disk}/queue/scheduler`.
//!
//! One row of the catalogue addresses many places. A pattern is a path whose components may have holes:
//!
//! - `{name}` takes one or more characters of a component and remembers them. Straight after other text of
//!   its component (`cpu{cpu}`, `hugepages-{kb}kB`) it takes digits only, because that is how the kernel
//!   numbers its folders: `cpu{cpu}` must not find `cpufreq`. A name that returns must find the same text
//!   again.
//! - `*` takes any characters of a component, none included, and remembers nothing.
//! - A component has at most [`WILD_MAX`] of these, and a hole only once: patterns come from files that users
//!   write, and matching must stay quick whatever they hold.
//! - `**` as the last component takes everything below.

use std::collections::BTreeMap;
use std::fmt;

/// Most holes and stars of one component.
pub const WILD_MAX: usize = 8;

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
    /// A component has more than [`WILD_MAX`] holes and stars, or a hole twice.
    #[error(
        "{pattern:?} has a component {component:?} with a hole twice or more than {WILD_MAX} holes and stars"
    )]
    Wild {
        /// The text.
        pattern: String,
        /// The component.
        component: String,
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
            let parsed =
                Component::parse(component).ok_or_else(|| PatternError::Hole { pattern: pattern() })?;
            if parsed.is_too_wild() {
                return Err(PatternError::Wild { pattern: pattern(), component: component.to_owned() });
            }
            components.push(parsed);
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
            let name = rest.next()?;
            match component.literal() {
                Some(own) if own == name => {}
                Some(_) => return None,
                None => captures = component.matches(name, &captures)?,
            }
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
                // Several stars in a row say no more than one.
                b'*' => (Part::Any, rest.len() - rest.trim_start_matches('*').len()),
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

    fn is_too_wild(&self) -> bool {
        let mut names: Vec<&str> = Vec::new();
        let mut wild = 0;
        for part in &self.parts {
            match part {
                Part::Text(_) => continue,
                Part::Any => {}
                Part::Hole { name, .. } if names.contains(&name.as_str()) => return true,
                Part::Hole { name, .. } => names.push(name),
            }
            wild += 1;
        }
        wild > WILD_MAX
    }

    /// `known` and what the holes find in `name`; `None` when it does not match.
    pub(crate) fn matches(&self, name: &str, known: &Captures) -> Option<Captures> {
        let mut search = Search { name, known, dead: vec![false; (self.parts.len() + 1) * (name.len() + 1)] };
        let mut found = Vec::new();
        search.fits(&self.parts, 0, &mut found).then(|| {
            let mut captures = known.clone();
            captures.extend(found.into_iter().map(|(hole, taken)| (hole.to_owned(), taken.to_owned())));
            captures
        })
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

/// Matches by trying the longest text for each hole first, and never the same rest of parts at the same place
/// twice: whether the rest fits depends on nothing else, because no hole returns within a component.
struct Search<'a> {
    name: &'a str,
    known: &'a Captures,
    /// By number of parts left and place in the name: known not to fit.
    dead: Vec<bool>,
}

impl<'a> Search<'a> {
    /// Whether `parts` fit the name from byte `at`; adds what the holes took, the last one first.
    fn fits<'p>(&mut self, parts: &'p [Part], at: usize, found: &mut Vec<(&'p str, &'a str)>) -> bool {
        let Some((part, rest)) = parts.split_first() else { return at == self.name.len() };
        let state = parts.len() * (self.name.len() + 1) + at;
        if self.dead[state] {
            return false;
        }
        let left = &self.name[at..];
        let fits = match part {
            Part::Text(text) => left.starts_with(text.as_str()) && self.fits(rest, at + text.len(), found),
            Part::Any => ends(left, 0).any(|end| self.fits(rest, at + end, found)),
            Part::Hole { name, digits } => {
                let known = self.known.get(name);
                ends(left, 1).any(|end| {
                    let taken = &left[..end];
                    let allowed = !*digits || taken.bytes().all(|byte| byte.is_ascii_digit());
                    let same = known.is_none_or(|before| before == taken);
                    let fits = allowed && same && self.fits(rest, at + end, found);
                    if fits {
                        found.push((name, taken));
                    }
                    fits
                })
            }
        };
        self.dead[state] = !fits;
        fits
    }
}

/// Where a first part of `text` can end that has at least `least` characters, the longest first.
fn ends(text: &str, least: usize) -> impl Iterator<Item = usize> {
    let ends = text.char_indices().map(|(at, _)| at).chain([text.len()]).skip(least);
    ends.collect::<Vec<_>>().into_iter().rev()
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
    fn no_pattern_makes_matching_slow() {
        let name = "a".repeat(255);
        let start = std::time::Instant::now();
        for wild in ["*a*a*a*a*a*a*a*b", "{a}a{b}a{c}a{d}a{e}a{f}a{g}b", &format!("{}b", "*".repeat(200))] {
            assert!(Pattern::parse(&format!("/{wild}")).unwrap().captures(&format!("/{name}")).is_none());
        }
        assert!(start.elapsed() < std::time::Duration::from_secs(5));
        for too_wild in ["/*a*a*a*a*a*a*a*a*", "/{x}-{x}"] {
            assert!(matches!(Pattern::parse(too_wild), Err(PatternError::Wild { .. })), "{too_wild}");
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
