//! The samples of a program as the text that AutoFDO is fed with: `clang -fprofile-sample-use=F`.
//!
//! ```text
//! main:184019:0                       function: all samples, entries
//!  4: 534                             line offset: samples
//!  8.1: 500                           line offset.discriminator: samples
//!  10: scan:1000                      what was inlined there, its lines indented one further
//!   1: 1000
//! ```
//! Lines count from the first of their function, so that a profile outlives what is changed above it. Calls are not
//! written: a profile does not keep from which line they come.
//! Source: llvm/include/llvm/ProfileData/SampleProfReader.h of LLVM.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use planish_profile::origins::{Frame, Origin, origins};
use planish_profile::{CallProfile, Edges, ProfileError, Program, Weights};
use planish_sorted::SortSmall as _;

use crate::subject::Subject;

/// A profile for AutoFDO.
#[derive(Clone, Debug, PartialEq)]
pub struct AutoFdo {
    /// The file.
    pub text: String,
    /// Functions in it, inlined ones not counted.
    pub functions: usize,
    /// The share of the samples with an address whose line is known, from 0 to 1.
    pub placed: f64,
}

/// Line and discriminator.
type Line = (u16, u32);

/// What a function, or an inlined copy of it, was seen to do.
#[derive(Default)]
struct Body {
    lines: BTreeMap<Line, u64>,
    inlined: BTreeMap<(Line, String), Body>,
}

/// Writes the samples of a subject by the lines of `bytes`, the file of its program.
///
/// # Errors
/// [`ProfileError`] where the file's debug information cannot be read.
pub fn autofdo(
    profile: &CallProfile,
    subject: &Subject,
    program: &Program,
    bytes: &[u8],
) -> Result<AutoFdo, ProfileError> {
    let mut hits: Vec<(u64, u64, usize)> = Vec::new();
    for (node, (address, offsets)) in subject.addresses.iter().zip(&subject.hits).enumerate() {
        hits.extend(offsets.iter().map(|(offset, weight)| (address.saturating_add(*offset), *weight, node)));
    }
    hits.sort_unstable();
    let addresses: Vec<u64> = hits.iter().map(|hit| hit.0).collect();
    let found = origins(bytes, program, &addresses)?;
    let (mut all, mut placed) = (0_u64, 0_u64);
    let mut bodies: BTreeMap<String, Body> = BTreeMap::new();
    let mut names: BTreeMap<usize, String> = BTreeMap::new();
    for ((_, weight, node), origin) in hits.iter().zip(found) {
        all = all.saturating_add(*weight);
        let Some(Origin { frames, copies }) = origin else { continue };
        let Some((last, above)) = frames.split_last() else { continue };
        placed = placed.saturating_add(*weight);
        let outermost = above.first().unwrap_or(last).function.clone();
        let mut body = bodies.entry(outermost.clone()).or_default();
        for pair in frames.windows(2) {
            let call = line(&pair[0]);
            body = body.inlined.entry((call, pair[1].function.clone())).or_default();
        }
        let count = body.lines.entry(line(last)).or_default();
        let weight = weight.saturating_mul(u64::from(copies));
        *count = match profile.weights {
            // Each branch of a line tells how often the line ran, its samples tell it together.
            Weights::Branches => weight.max(*count),
            Weights::Samples | Weights::Cost => weight.saturating_add(*count),
        };
        names.entry(*node).or_insert(outermost);
    }
    let entries = entries(profile, subject, &names);
    let functions = bodies.len();
    let text = written(bodies, &entries);
    Ok(AutoFdo { text, functions, placed: placed as f64 / all.max(1) as f64 })
}

fn line(frame: &Frame) -> Line {
    (frame.line, frame.discriminator)
}

/// How often functions were entered, where calls were counted.
fn entries<'n>(
    profile: &CallProfile,
    subject: &Subject,
    names: &'n BTreeMap<usize, String>,
) -> BTreeMap<&'n str, u64> {
    let mut entries = BTreeMap::new();
    if profile.edges_are == Edges::Calls {
        for arc in subject.graph.arcs() {
            let Some(name) = names.get(&(arc.to as usize)) else { continue };
            let count: &mut u64 = entries.entry(name.as_str()).or_default();
            *count = count.saturating_add(arc.weight);
        }
    }
    entries
}

/// The heaviest functions first, as LLVM writes them.
fn written(bodies: BTreeMap<String, Body>, entries: &BTreeMap<&str, u64>) -> String {
    let mut sorted: Vec<(u64, String, Body)> =
        bodies.into_iter().map(|(name, body)| (body.total(), name, body)).collect();
    sorted.sort_small_by_key(|(total, _, _)| std::cmp::Reverse(*total));
    let mut text = String::new();
    for (total, name, body) in &sorted {
        let entries = entries.get(name.as_str()).copied().unwrap_or(0);
        // Writing into a String cannot fail.
        let _ = writeln!(text, "{name}:{total}:{entries}");
        body.write(1, &mut text);
    }
    text
}

impl Body {
    /// All samples, those of inlined functions too.
    fn total(&self) -> u64 {
        let own = self.lines.values().copied();
        own.chain(self.inlined.values().map(Self::total)).fold(0, u64::saturating_add)
    }

    fn write(&self, depth: usize, text: &mut String) {
        for (line, count) in &self.lines {
            let _ = writeln!(text, "{:depth$}{}: {count}", "", told(line));
        }
        for ((line, name), body) in &self.inlined {
            let _ = writeln!(text, "{:depth$}{}: {name}:{}", "", told(line), body.total());
            body.write(depth + 1, text);
        }
    }
}

fn told((line, discriminator): &Line) -> String {
    match discriminator {
        0 => line.to_string(),
        _ => format!("{line}.{discriminator}"),
    }
}
