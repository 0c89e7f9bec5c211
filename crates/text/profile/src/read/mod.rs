//! One module a format: bytes in, a [`Collector`] filled.

mod autofdo;
mod callgrind;
mod fdata;
mod folded;
mod hfsort;
mod pprof;
mod script;

use std::fmt;

use crate::collect::Collector;
use crate::error::ProfileError;
use crate::profile::{CallProfile, Edges, Weights};
use crate::program::Program;
use crate::stacks::Stacks;
use crate::{file, perf_data};

/// The formats that can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A profile of ours.
    Planish,
    /// The file of `perf record`, or what it writes to a pipe.
    PerfData,
    /// The text of `perf script`.
    PerfScript,
    /// `main;parse;scan 17`: what flame graphs are drawn of.
    Folded,
    /// Protocol buffer of pprof, gzipped or not.
    Pprof,
    /// `perf2bolt` and BOLT's instrumentation, with branches or `no_lbr`.
    Fdata,
    /// The text form of AutoFDO's sample profile.
    AutoFdo,
    /// `callgrind.out.*` of valgrind.
    Callgrind,
    /// What HHVM's hfsort and lld's `--call-graph-ordering-file` read: `caller callee weight`.
    Hfsort,
}

impl Format {
    /// Every format with the word that names it on a command line.
    pub const ALL: [(&'static str, Self); 9] = [
        ("planish", Self::Planish),
        ("perf-data", Self::PerfData),
        ("perf-script", Self::PerfScript),
        ("folded", Self::Folded),
        ("pprof", Self::Pprof),
        ("fdata", Self::Fdata),
        ("autofdo", Self::AutoFdo),
        ("callgrind", Self::Callgrind),
        ("hfsort", Self::Hfsort),
    ];

    /// The word that names it.
    #[must_use]
    pub fn word(self) -> &'static str {
        Self::ALL.iter().find(|(_, format)| *format == self).expect("every format has a word").0
    }

    /// The format that the bytes look like.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Option<Self> {
        if bytes.starts_with(perf_data::MAGIC) {
            return Some(Self::PerfData);
        }
        if bytes.starts_with(&[0x1f, 0x8b]) || pprof::looks_like(bytes) {
            return Some(Self::Pprof);
        }
        const HEAD_BYTES: usize = 64 << 10;
        let head = &bytes[..bytes.len().min(HEAD_BYTES)];
        let text = String::from_utf8_lossy(head);
        if text.starts_with(file::MAGIC) {
            return Some(Self::Planish);
        }
        type LooksLike = fn(&str) -> bool;
        let looks: [(LooksLike, Self); 6] = [
            (callgrind::looks_like, Self::Callgrind),
            (fdata::looks_like, Self::Fdata),
            (hfsort::looks_like, Self::Hfsort),
            (autofdo::looks_like, Self::AutoFdo),
            (folded::looks_like, Self::Folded),
            (script::looks_like, Self::PerfScript),
        ];
        looks.into_iter().find(|(looks_like, _)| looks_like(&text)).map(|(_, format)| format)
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// What to read, and of what.
#[derive(Debug, Default)]
pub struct ImportOptions<'a> {
    /// The format; found by looking where it is not given.
    pub format: Option<Format>,
    /// The program that the samples are of. Without it only formats with names can be read, and sizes are unknown.
    pub program: Option<&'a Program>,
    /// The event to take, where the input holds several; else the first.
    pub event: Option<String>,
    /// Whether the stacks are wanted as well, where the input has some.
    pub stacks: bool,
}

/// What was read.
#[derive(Debug)]
pub struct Imported {
    /// The profile.
    pub profile: CallProfile,
    /// The format that it came in.
    pub format: Format,
    /// Events that the kernel said it lost, in samples.
    pub lost: u64,
    /// From the first sample to the last, in nanoseconds; 0 where the format has no times.
    pub span_ns: u64,
    /// The stacks, where they are wanted and there are some.
    pub stacks: Option<Stacks>,
}

/// Reads samples of any format into a profile.
///
/// # Errors
/// [`ProfileError::UnknownFormat`] where no format fits, the errors of the format, and [`ProfileError::NoSamples`]
/// where nothing in the input is of the program.
pub fn import(bytes: &[u8], options: &ImportOptions<'_>) -> Result<Imported, ProfileError> {
    let format = options.format.or_else(|| Format::of(bytes)).ok_or(ProfileError::UnknownFormat)?;
    if format == Format::Planish {
        let profile = file::parse(&String::from_utf8_lossy(bytes))?;
        return Ok(Imported { profile, format, lost: 0, span_ns: 0, stacks: None });
    }
    let collector = Collector::new(options.program);
    let mut collector = if options.stacks { collector.with_stacks() } else { collector };
    let read = match format {
        Format::PerfData => perf_data::read(bytes, options, &mut collector)?,
        Format::Pprof => pprof::read(bytes, options, &mut collector)?,
        text => {
            let bytes = String::from_utf8_lossy(bytes);
            match text {
                Format::PerfScript => script::read(&bytes, &mut collector)?,
                Format::Folded => folded::read(&bytes, &mut collector)?,
                Format::Fdata => fdata::read(&bytes, &mut collector)?,
                Format::AutoFdo => autofdo::read(&bytes, &mut collector)?,
                Format::Callgrind => callgrind::read(&bytes, &mut collector)?,
                _ => hfsort::read(&bytes, &mut collector)?,
            }
        }
    };
    if collector.is_empty() {
        let program = options.program.map_or("a program", |program| &program.name).to_owned();
        return Err(ProfileError::NoSamples { program, samples: collector.total() });
    }
    // Flat samples are stacks of one frame each.
    let stacks = collector.stacks().filter(|_| read.edges == Edges::Stacks);
    let mut profile = collector.finish(read.event, read.weights, read.edges);
    profile.hosts = read.host.into_iter().collect();
    Ok(Imported { profile, format, lost: read.lost, span_ns: read.span_ns, stacks })
}

/// What a reader tells besides the samples.
pub(crate) struct Read {
    pub event: String,
    pub weights: Weights,
    pub edges: Edges,
    pub host: Option<String>,
    pub lost: u64,
    pub span_ns: u64,
}

impl Read {
    pub fn new(event: impl Into<String>, weights: Weights, edges: Edges) -> Self {
        Self { event: event.into(), weights, edges, host: None, lost: 0, span_ns: 0 }
    }
}
