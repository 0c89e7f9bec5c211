//! What of a process's text lies on huge pages, whatever put it there; and whether it is what its file says.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use planish_host::Host;
use planish_residency::{Process, Region, ResidencyError, shown_as};
use planish_sys::Errno;
use planish_sys::pagemap::{Filled, Pagemap};

use crate::error::HugifyError;
use crate::image::{Image, Segment};

/// What of a process's text lies on huge pages, as smaps says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// What the loader added to the addresses of the file.
    pub base: u64,
    /// Bytes of text that are mapped.
    pub text_bytes: u64,
    /// Of these, bytes in whole huge pages of the file's addresses.
    pub whole_bytes: u64,
    /// Of the text, bytes on huge pages: of the page cache, anonymous or of a pool.
    pub huge_bytes: u64,
}

impl Coverage {
    /// Whether at least this share of what can lie on huge pages does.
    #[must_use]
    pub fn is_at_least(&self, percent: f64) -> bool {
        self.whole_bytes > 0 && self.huge_bytes as f64 >= self.whole_bytes as f64 * percent / 100.0
    }
}

/// Looks at the text of a process that runs the program, or has mapped the library, at `path`: as /proc names it.
///
/// # Errors
/// No such process, or none that we may look at. `None` where it does not map that file.
pub fn coverage(
    host: &Host,
    pid: u32,
    path: &str,
    image: &Image,
    huge_bytes: u64,
) -> Result<Option<Coverage>, HugifyError> {
    let process = Process::read(host, pid)?;
    Ok(covered(&process.regions, path, image, huge_bytes, host.page_bytes()))
}

/// The same of mappings that were read already.
pub(crate) fn covered(
    regions: &[Region],
    path: &str,
    image: &Image,
    huge_bytes: u64,
    page_bytes: u64,
) -> Option<Coverage> {
    let base = base_of(regions, path, image, page_bytes)?;
    let (text_bytes, whole_bytes) = image.text_bytes(huge_bytes);
    let mut seen = Coverage { base, text_bytes, whole_bytes, huge_bytes: 0 };
    for range in text_at(image, base) {
        // What was put over a part of it is another mapping, with another name or none.
        let inside = |region: &&Region| {
            let at = &region.area.range;
            region.is_executable() && at.start < range.end && at.end > range.start
        };
        let inside = regions.iter().filter(inside);
        seen.huge_bytes += inside.map(|region| region.thp_bytes() + region.hugetlb_bytes).sum::<u64>();
    }
    Some(seen)
}

/// What the loader added, found by a mapping of the file.
fn base_of(regions: &[Region], path: &str, image: &Image, page_bytes: u64) -> Option<u64> {
    let named = regions.iter().filter(|region| region.area.name.trim_end_matches(" (deleted)") == path);
    let down = |at: u64| at / page_bytes * page_bytes;
    for region in named {
        let begins = |segment: &&Segment| down(segment.offset) == region.area.offset;
        // Two segments may begin in one page of the file: code is told by its right.
        let fitting = image.segments.iter().filter(begins);
        let fitting = fitting.filter(|segment| segment.executable == region.is_executable());
        if let Some(segment) = fitting.into_iter().next() {
            return Some(region.area.range.start.wrapping_sub(down(segment.address)));
        }
    }
    None
}

/// Where the executable segments are, in a process with that base.
fn text_at(image: &Image, base: u64) -> impl Iterator<Item = Range<u64>> {
    image.text().map(move |segment| {
        let start = base.wrapping_add(segment.address);
        start..start.saturating_add(segment.file_bytes)
    })
}

/// Processes that execute this file, or have mapped its code: as a library, as a program that another one loads. Those
/// that we may not look at are left out.
#[must_use]
pub fn runners(host: &Host, path: &str) -> Vec<u32> {
    let pids = host.list("/proc").into_iter().filter_map(|name| name.parse::<u32>().ok());
    let executes = |pid: u32| host.read_link(&format!("/proc/{pid}/exe")).map(|exe| exe == path);
    let maps = |pid: u32| {
        let text = host.read_lossy(&format!("/proc/{pid}/maps")).unwrap_or_default();
        (!text.is_empty()).then(|| text.lines().any(|line| is_code_of(line, path)))
    };
    let runs = |pid: &u32| {
        // One whose first thread has ended shows its program and its libraries by another one.
        let other = || Some(shown_as(host, *pid)).filter(|shown| shown != pid);
        executes(*pid).or_else(|| other().and_then(executes)) == Some(true)
            || maps(*pid).or_else(|| other().and_then(maps)) == Some(true)
    };
    pids.filter(runs).collect()
}

/// Whether a line of maps is executable memory of this file. Somebody who writes there now has it writable as well.
fn is_code_of(line: &str, path: &str) -> bool {
    let is_executable = line.split(' ').nth(1).is_some_and(|rights| rights.as_bytes().get(2) == Some(&b'x'));
    is_executable && line.strip_suffix(path).is_some_and(|before| before.ends_with(' '))
}

/// Compares the text of a process with the bytes of its file, as far as it is in memory: what is not would be read from
/// there.
///
/// # Errors
/// [`HugifyError::Patched`]; a process that cannot be looked at. One that has ended is nothing to refuse.
pub fn refuse_patched(
    host: &Host,
    pid: u32,
    path: &str,
    image: &Image,
    bytes: &[u8],
) -> Result<(), HugifyError> {
    match compare(host, pid, path, image, bytes) {
        Err(HugifyError::Process(
            ResidencyError::NoProcess { .. } | ResidencyError::EndedMeanwhile { .. },
        )) => Ok(()),
        Err(HugifyError::System(error)) if matches!(error.errno(), Some(Errno::SRCH | Errno::NOENT)) => {
            Ok(())
        }
        outcome => outcome,
    }
}

fn compare(host: &Host, pid: u32, path: &str, image: &Image, bytes: &[u8]) -> Result<(), HugifyError> {
    let process = Process::read(host, pid)?;
    let Some(base) = base_of(&process.regions, path, image, host.page_bytes()) else { return Ok(()) };
    let shown = shown_as(host, pid);
    let raw = i32::try_from(shown).ok().and_then(rustix::process::Pid::from_raw);
    let mut pagemap = Pagemap::open(raw)?;
    let failed =
        |source| HugifyError::File { what: "read", path: format!("/proc/{shown}/mem").into(), source };
    let memory = File::open(format!("/proc/{shown}/mem")).map_err(failed)?;
    for (segment, range) in image.text().zip(text_at(image, base)) {
        let down = |at: u64| at / host.page_bytes() * host.page_bytes();
        let mut runs = Vec::new();
        pagemap.runs(down(range.start)..range.end.next_multiple_of(host.page_bytes()), &mut runs)?;
        for run in runs.iter().filter(|run| run.filled != Filled::Zero) {
            let part = run.range.start.max(range.start)..run.range.end.min(range.end);
            if part.is_empty() {
                continue;
            }
            let offset = segment.offset_of(part.start.wrapping_sub(base));
            let due = &bytes[usize_of(offset)..][..usize_of(part.end - part.start)];
            if let Some(at) = differs(&memory, part.start, due).map_err(failed)? {
                return Err(HugifyError::Patched { pid, address: at });
            }
        }
    }
    Ok(())
}

/// The first address at which memory is not as it should be.
fn differs(memory: &File, from: u64, due: &[u8]) -> std::io::Result<Option<u64>> {
    const PIECE_BYTES: usize = 256 << 10;
    let mut piece = vec![0; PIECE_BYTES.min(due.len())];
    let mut at = from;
    for due in due.chunks(PIECE_BYTES) {
        let here = &mut piece[..due.len()];
        memory.read_exact_at(here, at)?;
        if let Some(first) = here.iter().zip(due).position(|(here, due)| here != due) {
            return Ok(Some(at + first as u64));
        }
        at += due.len() as u64;
    }
    Ok(None)
}

fn usize_of(bytes: u64) -> usize {
    usize::try_from(bytes).expect("an offset of bytes in memory fits an address")
}
