//! `perf.data`: the file of `perf record`, and the stream that it writes to a pipe.
//!
//! ```text
//! file: header | attributes and their ids | records ............ | table of features | features
//! pipe: header | records, attributes and features among them
//! ```
//! Own, and over a slice: the container crate allocates by lengths that the file states, leaves out branch stacks,
//! and mixes up the layouts of group reads. Here every length is checked against the bytes that are there, nothing
//! is copied, and records are ordered by their time before the first is looked at, so that a mapping that another
//! CPU wrote down late still counts for the samples after it.
//!
//! Source: tools/perf/Documentation/perf.data-file-format.txt, include/uapi/linux/perf_event.h. Little-endian only,
//! as x86 and Arm write it.

mod bytes;
mod container;
mod cut;
mod lines;
mod maps;
mod sample;
mod stream;
mod traces;

use std::collections::HashMap;

use planish_sorted::SortSmall as _;

use crate::collect::{Collector, Place};
use crate::error::ProfileError;
use crate::profile::{Edges, Weights};
use crate::program::Program;
use crate::read::{ImportOptions, Read};
use container::{Container, Record, kinds};
pub use cut::{Cut, cut, without_rest};
pub use lines::{Contention, Line, LineSite, contention};
pub use maps::ObjectFile;
use maps::Processes;
use sample::Sample;
pub use stream::{MappedCode, Stream, Taken};
pub use traces::Traces;

/// The first bytes of every such file on a little-endian machine.
pub const MAGIC: &[u8; 8] = b"PERFILE2";

pub(crate) const FORMAT: &str = "perf.data";

/// What a file says before its samples are named.
#[derive(Debug)]
pub struct Overview {
    /// Names of its events.
    pub events: Vec<String>,
    /// Files that samples lie in, the most sampled first, with their samples.
    pub objects: Vec<(ObjectFile, u64)>,
    /// Samples of all events, the kernel's too.
    pub samples: u64,
}

/// Counts samples by the file that they lie in.
///
/// # Errors
/// [`ProfileError::Malformed`] and [`ProfileError::Unsupported`] for what cannot be read.
pub fn overview(bytes: &[u8]) -> Result<Overview, ProfileError> {
    let container = Container::parse(bytes)?;
    let mut processes = Processes::new(&container);
    let mut counts: HashMap<u32, u64> = HashMap::new();
    let mut samples = 0;
    for record in container.records() {
        if record.kind != kinds::SAMPLE {
            processes.follow(&record);
            continue;
        }
        let Some((_, sample)) = container.sample(&record) else { continue };
        samples += 1;
        if let Some((object, _)) = processes.find(sample.pid, sample.ip) {
            *counts.entry(object).or_default() += 1;
        }
    }
    let mut objects: Vec<(ObjectFile, u64)> =
        counts.into_iter().map(|(object, count)| (processes.object(object).clone(), count)).collect();
    objects.sort_small_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.path.cmp(&b.0.path)));
    let events = container.events().iter().map(|event| event.name.clone()).collect();
    Ok(Overview { events, objects, samples })
}

/// Reads the samples of one event.
pub(crate) fn read(
    bytes: &[u8],
    options: &ImportOptions<'_>,
    collector: &mut Collector<'_>,
) -> Result<Read, ProfileError> {
    let program = options.program.ok_or(ProfileError::NeedsProgram { format: FORMAT })?;
    let container = Container::parse(bytes)?;
    let wanted = wanted_event(&container, options.event.as_deref())?;
    let mut placer = Placer::new(&container, program);
    let (mut lost, mut is_branched, mut is_deep) = (0, false, false);
    let mut places: Vec<Place> = Vec::new();
    for record in container.records() {
        if record.kind != kinds::SAMPLE {
            placer.follow(&record);
            lost += lost_by(&record);
            continue;
        }
        let Some((_, sample)) = container.sample(&record).filter(|(event, _)| *event == wanted) else {
            continue;
        };
        let mut place = |ip: u64| placer.place(collector, sample.pid, ip);
        if sample.branches().next().is_some() {
            let ends = |(from, to, _)| Ok((place(from)?, place(to)?));
            let branches: Vec<_> = sample.branches().map(ends).collect::<Result<_, ProfileError>>()?;
            branches.into_iter().for_each(|(from, to)| collector.branch(from, to, 1));
            is_branched = true;
            continue;
        }
        places.clear();
        if sample.chain().next().is_none() {
            places.push(if sample.is_user { place(sample.ip)? } else { Place::Outside });
        }
        for ip in sample.chain() {
            places.push(place(ip)?);
        }
        is_deep |= places.len() > 1;
        collector.stack(Some(u64::from(sample.tid)), &places, 1);
    }
    let (weights, edges) = match (is_branched, is_deep) {
        (true, _) => (Weights::Branches, Edges::Calls),
        (false, true) => (Weights::Samples, Edges::Stacks),
        (false, false) => (Weights::Samples, Edges::None),
    };
    let event = container.events()[wanted].name.clone();
    Ok(Read { event, weights, edges, host: container.host(), lost, span_ns: container.span_ns() })
}

/// Places addresses of processes in the program.
struct Placer<'a> {
    processes: Processes,
    program: &'a Program,
    /// Whether a mapped file is the program, asked once for each.
    ours: Vec<Option<bool>>,
    /// Places that were found before, by a hash of the address; an entry of an earlier generation says nothing.
    memo: Vec<Remembered>,
    generation: u32,
}

#[derive(Clone, Copy)]
struct Remembered {
    ip: u64,
    pid: u32,
    generation: u32,
    place: Place,
}

impl<'a> Placer<'a> {
    const MEMO_BITS: u32 = 17;

    fn new(container: &Container<'_>, program: &'a Program) -> Self {
        let empty = Remembered { ip: 0, pid: 0, generation: 0, place: Place::Outside };
        let memo = vec![empty; 1 << Self::MEMO_BITS];
        Self { processes: Processes::new(container), program, ours: Vec::new(), memo, generation: 1 }
    }

    /// Takes note of a record that is no sample: what was found before may lie elsewhere now.
    fn follow(&mut self, record: &Record<'_>) {
        self.processes.follow(record);
        self.generation = self.generation.wrapping_add(1);
    }

    fn place(&mut self, collector: &Collector<'_>, pid: u32, ip: u64) -> Result<Place, ProfileError> {
        let slot = (ip.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - Self::MEMO_BITS)) as usize;
        let known = self.memo[slot];
        if (known.ip, known.pid, known.generation) == (ip, pid, self.generation) {
            return Ok(known.place);
        }
        let place = self.look_up(collector, pid, ip)?;
        self.memo[slot] = Remembered { ip, pid, generation: self.generation, place };
        Ok(place)
    }

    fn look_up(&mut self, collector: &Collector<'_>, pid: u32, ip: u64) -> Result<Place, ProfileError> {
        let Some((object, offset)) = self.processes.find(pid, ip) else { return Ok(Place::Outside) };
        let index = object as usize;
        if self.ours.len() <= index {
            self.ours.resize(index + 1, None);
        }
        let is_ours = match self.ours[index] {
            Some(known) => known,
            None => {
                let Program { name, build_id, .. } = self.program;
                let answer = self.processes.object(object).is(name, build_id.as_deref())?;
                *self.ours[index].insert(answer)
            }
        };
        Ok(if is_ours { collector.at_file_offset(offset) } else { Place::Outside })
    }
}

fn wanted_event(container: &Container<'_>, wanted: Option<&str>) -> Result<usize, ProfileError> {
    let Some(wanted) = wanted else { return Ok(0) };
    let events = container.events();
    let stem = |name: &str| name.split(':').next().unwrap_or_default().to_owned();
    let found = events.iter().position(|event| event.name == wanted);
    let found = found.or_else(|| events.iter().position(|event| stem(&event.name) == wanted));
    found.ok_or_else(|| ProfileError::NoEvent {
        wanted: wanted.to_owned(),
        present: events.iter().map(|event| event.name.as_str()).collect::<Vec<_>>().join(", "),
    })
}

/// Samples that the kernel says it dropped.
fn lost_by(record: &Record<'_>) -> u64 {
    match record.kind {
        // u64 id, u64 lost
        kinds::LOST => bytes::u64_at(record.body, 8).unwrap_or(0),
        kinds::LOST_SAMPLES => bytes::u64_at(record.body, 0).unwrap_or(0),
        _ => 0,
    }
}

impl<'a> Container<'a> {
    /// A sample with the index of its event.
    fn sample(&self, record: &Record<'a>) -> Option<(usize, Sample<'a>)> {
        let event = self.event_of(record)?;
        Sample::parse(record, &self.events()[event]).map(|sample| (event, sample))
    }
}
