//! The profile file: lines of text, described in `docs/text-profile.md`.
//!
//! Text, because a profile is kept under version control, compared and read by people; a checksum at the end,
//! because a torn copy must not order a program by half of its samples.

use std::fmt::Write as _;
use std::str::FromStr;

use crate::error::ProfileError;
use crate::profile::{CallProfile, Edge, Edges, Function, Weights, Window};

/// The first words of a profile file.
pub const MAGIC: &str = "planish text profile";
/// The version that is written. Every older one is read.
pub const VERSION: u32 = 1;

const FORMAT: &str = "planish profile";

/// A profile as a file.
#[must_use]
pub fn write(profile: &CallProfile) -> String {
    // Writing into a String cannot fail.
    let mut text = format!("{MAGIC} {VERSION}\nprogram {}\n", one_line(&profile.program));
    for id in &profile.build_ids {
        let _ = writeln!(text, "build-id {}", one_line(id));
    }
    let _ = writeln!(text, "event {}", one_line(&profile.event));
    let _ = writeln!(text, "weights {}\nedges {}", profile.weights, profile.edges_are);
    for host in &profile.hosts {
        let _ = writeln!(text, "host {}", one_line(host));
    }
    if let Some(Window { start, end }) = profile.window {
        let _ = writeln!(text, "window {start} {end}");
    }
    let _ = writeln!(text, "duty {}", profile.duty);
    let _ =
        writeln!(text, "total {}\noutside {}\nunnamed {}", profile.total, profile.outside, profile.unnamed);
    for function in &profile.functions {
        let _ = writeln!(text, "F {} {} {}", function.weight, function.bytes, one_line(&function.name));
        if !function.hits.is_empty() {
            text.push('H');
            for (offset, weight) in &function.hits {
                let _ = write!(text, " {offset:x}:{weight}");
            }
            text.push('\n');
        }
    }
    for edge in &profile.edges {
        let _ = writeln!(text, "E {} {} {}", edge.caller, edge.callee, edge.weight);
    }
    let _ = writeln!(text, "end {:08x}", crc32fast::hash(text.as_bytes()));
    text
}

/// A field must not end its line.
fn one_line(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}

/// Reads a profile file of any version up to [`VERSION`].
///
/// # Errors
/// [`ProfileError::Version`] for a later one, [`ProfileError::Torn`] where the end does not fit the rest, and
/// [`ProfileError::Malformed`] with the line otherwise.
pub fn parse(text: &str) -> Result<CallProfile, ProfileError> {
    let first = text.lines().next().unwrap_or_default();
    let version = first.strip_prefix(MAGIC).ok_or(ProfileError::UnknownFormat)?;
    let version: u32 = number(version.trim(), 1)?;
    if version > VERSION {
        return Err(ProfileError::Version { found: version, known: VERSION });
    }
    let mut reader = Reader { profile: empty(), seen: 0 };
    for (index, line) in checked(text)?.lines().enumerate().skip(1) {
        reader.line(line, index + 1)?;
    }
    let Reader { mut profile, seen } = reader;
    if seen != REQUIRED {
        return Err(ProfileError::Torn { what: "a line of its head is missing".to_owned() });
    }
    let count = profile.functions.len();
    if profile.edges.iter().any(|edge| edge.caller.max(edge.callee) as usize >= count) {
        return Err(ProfileError::Torn { what: "a call names a function that is not there".to_owned() });
    }
    profile.normalise();
    Ok(profile)
}

/// The text before its last line, once that line fits it.
fn checked(text: &str) -> Result<&str, ProfileError> {
    let torn = |what: &str| ProfileError::Torn { what: what.to_owned() };
    let body = text.strip_suffix('\n').ok_or_else(|| torn("its last line is cut"))?;
    let start = body.rfind('\n').map_or(0, |at| at + 1);
    let digits = body[start..].strip_prefix("end ").ok_or_else(|| torn("its end is missing"))?;
    let wanted = u32::from_str_radix(digits, 16).map_err(|_| torn("its checksum is no number"))?;
    let found = crc32fast::hash(&text.as_bytes()[..start]);
    if wanted != found {
        return Err(torn(&format!("its checksum is {found:08x}, not {wanted:08x}")));
    }
    Ok(&text[..start])
}

/// `weights` and `edges`: without them no number of the file has a meaning.
const REQUIRED: u8 = 0b11;

struct Reader {
    profile: CallProfile,
    seen: u8,
}

impl Reader {
    fn line(&mut self, line: &str, at: usize) -> Result<(), ProfileError> {
        let (key, rest) = line.split_once(' ').unwrap_or((line, ""));
        let profile = &mut self.profile;
        match key {
            "F" => {
                let mut parts = rest.splitn(3, ' ');
                let weight = number(parts.next().unwrap_or_default(), at)?;
                let bytes = number(parts.next().unwrap_or_default(), at)?;
                let name = parts.next().filter(|name| !name.is_empty());
                let name = name.ok_or_else(|| broken(at, "a function without a name"))?.to_owned();
                profile.functions.push(Function { name, bytes, weight, hits: Vec::new() });
            }
            "H" => {
                let last = profile.functions.last_mut();
                let last = last.ok_or_else(|| broken(at, "hits before the first function"))?;
                for word in rest.split(' ') {
                    last.hits.push(hit(word, at)?);
                }
                last.hits.sort_unstable();
            }
            "E" => {
                let mut parts = rest.split(' ');
                let mut next = || parts.next().unwrap_or_default();
                let (caller, callee) = (number(next(), at)?, number(next(), at)?);
                profile.edges.push(Edge { caller, callee, weight: number(next(), at)? });
            }
            "program" => profile.program = rest.to_owned(),
            "build-id" => profile.build_ids.push(rest.to_owned()),
            "event" => profile.event = rest.to_owned(),
            "host" => profile.hosts.push(rest.to_owned()),
            "weights" => {
                profile.weights = Weights::from_word(rest).ok_or_else(|| broken(at, "unknown weights"))?;
                self.seen |= 0b01;
            }
            "edges" => {
                profile.edges_are = Edges::from_word(rest).ok_or_else(|| broken(at, "unknown edges"))?;
                self.seen |= 0b10;
            }
            "window" => {
                let (start, end) = rest.split_once(' ').ok_or_else(|| broken(at, "a window has two ends"))?;
                profile.window = Some(Window { start: number(start, at)?, end: number(end, at)? });
            }
            "duty" => {
                let duty: f64 = number(rest, at)?;
                if !(duty > 0.0 && duty <= 1.0) {
                    return Err(broken(at, "a duty outside of (0, 1]"));
                }
                profile.duty = duty;
            }
            "total" => profile.total = number(rest, at)?,
            "outside" => profile.outside = number(rest, at)?,
            "unnamed" => profile.unnamed = number(rest, at)?,
            _ => return Err(broken(at, &format!("unknown line `{key}`"))),
        }
        Ok(())
    }
}

fn hit(word: &str, at: usize) -> Result<(u64, u64), ProfileError> {
    let (offset, weight) =
        word.split_once(':').ok_or_else(|| broken(at, "a hit is written offset:weight"))?;
    let offset = u64::from_str_radix(offset, 16).map_err(|_| broken(at, "an offset is hexadecimal"))?;
    Ok((offset, number(weight, at)?))
}

fn number<T: FromStr>(text: &str, at: usize) -> Result<T, ProfileError> {
    text.parse().map_err(|_| broken(at, &format!("`{text}` is no number that fits here")))
}

fn broken(at: usize, what: &str) -> ProfileError {
    ProfileError::line(FORMAT, at, what)
}

pub(crate) fn empty() -> CallProfile {
    CallProfile {
        program: String::new(),
        build_ids: Vec::new(),
        event: String::new(),
        weights: Weights::Samples,
        edges_are: Edges::None,
        hosts: Vec::new(),
        window: None,
        duty: 1.0,
        total: 0,
        outside: 0,
        unnamed: 0,
        functions: Vec::new(),
        edges: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A file as version 1 wrote it. It must be read for ever: never change this text.
    const V1: &str = include_str!("../tests/v1.planish");

    #[test]
    fn a_file_of_version_1_is_read() {
        let profile = parse(V1).unwrap();
        assert_eq!((profile.weights, profile.edges_are), (Weights::Samples, Edges::Stacks));
        assert_eq!(profile.window, Some(Window { start: 1_800_000_000, end: 1_800_000_060 }));
        assert_eq!(profile.functions[0].name, "exec interp");
        assert_eq!(profile.functions[0].hits, [(0, 30), (0x1f, 20)]);
        assert_eq!(profile.edges, [Edge { caller: 1, callee: 0, weight: 41 }]);
        assert_eq!(write(&profile), V1);
    }

    #[test]
    fn a_torn_or_later_file_is_refused() {
        let cut = &V1[..V1.len() - 20];
        assert!(matches!(parse(cut), Err(ProfileError::Torn { .. })));
        let edited = V1.replacen("41", "42", 1);
        assert!(matches!(parse(&edited), Err(ProfileError::Torn { .. })));
        let later = V1.replacen("profile 1", "profile 2", 1);
        assert!(matches!(parse(&later), Err(ProfileError::Version { found: 2, known: 1 })));
        assert!(matches!(parse("hello\n"), Err(ProfileError::UnknownFormat)));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            functions in prop::collection::vec(("[a-z.$ ]{0,8}[a-z]", 0_u64..99, 0_u64..9999, any::<bool>()), 1..20),
            pairs in prop::collection::vec((0_usize..20, 0_usize..20, 1_u64..50), 0..30),
            duty in 0.001_f64..1.0,
        ) {
            let count = functions.len();
            let mut profile = empty();
            profile.duty = duty;
            profile.functions = functions.into_iter().enumerate().map(|(index, (name, weight, bytes, hit))| Function {
                name: format!("{name}{index}"),
                bytes,
                weight,
                hits: if hit { vec![(index as u64, weight)] } else { Vec::new() },
            }).collect();
            profile.edges = pairs.into_iter().map(|(caller, callee, weight)| Edge {
                caller: (caller % count) as u32,
                callee: (callee % count) as u32,
                weight,
            }).collect();
            profile.normalise();
            prop_assert_eq!(parse(&write(&profile)).unwrap(), profile);
        }
    }
}
