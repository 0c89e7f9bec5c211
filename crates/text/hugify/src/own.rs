//! The text of the process that asks, put on huge pages while it runs.
//!
//! ```text
//! already? ──> ask the kernel for the file's own pages: MADV_HUGEPAGE, MADV_COLLAPSE ──> a copy of this process:
//!
//!   file ──> |stage: memfd, anonymous, of a pool| ──compare with memory──> read and execute ──one mremap──> over the
//! text
//! ```
//!
//! The copy is made of the file, and not of memory, where a uprobe may stand. What was copied is what is there, byte
//! for byte, so that a thread that runs this code in that moment goes on in the same code: the kernel changes the page
//! tables under its own lock, and who faults meanwhile waits for it. Nothing is ever writable and executable at once.
//!
//! A copy costs what the page cache does not: memory of each process that starts (those that it forks later share it),
//! a name in /proc/PID/maps, and uprobes that are set later. So it comes last, and `PLANISH_HUGIFY` leaves it out, or
//! says which.

mod copy;
mod symbols;
mod wish;

use std::ffi::OsStr;
use std::fs::File;
use std::ops::Range;
use std::path::Path;

use object::ReadCache;
use planish_host::Host;
use planish_residency::{Region, parse_smaps};
use planish_sys::{Advice, code, pages};

use copy::Stage;
use symbols::Symbols;
use wish::Wish;

use crate::coverage::{Coverage, covered};
use crate::error::HugifyError;
use crate::image::Image;

/// What turns it off, or says by which routes: see [`Wish`].
const SWITCH: &str = "PLANISH_HUGIFY";
const LEAST: f64 = 90.0;

/// By which route a process has its text on huge pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnRoute {
    /// By none.
    None,
    /// It had it so already: its file is in the page cache in huge pieces.
    Already,
    /// The kernel has put the file's pages so.
    File,
    /// By a copy in memory that processes share which this one forks.
    Memfd,
    /// By a copy in anonymous memory of this process.
    Anonymous,
    /// By a copy on pages that an administrator has reserved.
    Hugetlb,
}

impl OwnRoute {
    /// What is tried, in this order; the first one wins whose huge pages are seen.
    const ALL: [Self; 4] = [Self::File, Self::Memfd, Self::Anonymous, Self::Hugetlb];

    /// Its name, as `PLANISH_HUGIFY` has it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Already => "already",
            Self::File => "file",
            Self::Memfd => "memfd",
            Self::Anonymous => "anonymous",
            Self::Hugetlb => "hugetlb",
        }
    }
}

/// What was achieved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Own {
    /// Bytes of the program's text.
    pub text_bytes: u64,
    /// Of these, bytes in whole huge pages: the most that can lie on some.
    pub whole_bytes: u64,
    /// Bytes on huge pages before.
    pub before_bytes: u64,
    /// Bytes on huge pages now, read back.
    pub huge_bytes: u64,
    /// By which route.
    pub route: OwnRoute,
    /// Why each route before it was not gone, or came to less.
    pub why_not: Vec<String>,
}

/// Puts the text of this program on huge pages, as far as it can. First thing in main, before there are threads and
/// before its code is used; later it works as well.
///
/// From `__hot_start` to `__hot_end` where the program has those marks, else all of it.
///
/// # Errors
/// The program, or its memory, cannot be looked at. That nothing was achieved is none: [`Own::why_not`] tells why.
pub fn hugify_self() -> Result<Own, HugifyError> {
    let switch = std::env::var_os(SWITCH);
    Process::look()?.hugify(switch.as_deref())
}

/// This process.
struct Process {
    file: File,
    image: Image,
    name: String,
    huge_bytes: u64,
    /// Addresses of the file to be put on huge pages.
    wanted: Vec<Range<u64>>,
}

impl Process {
    fn look() -> Result<Self, HugifyError> {
        let huge_bytes = pages::thp_bytes().ok_or(HugifyError::NoThp)? as u64;
        let path = Path::new("/proc/self/exe");
        let failed = |source| HugifyError::File { what: "open", path: path.to_owned(), source };
        let file = File::open(path).map_err(failed)?;
        let name = Host::live().read_link("/proc/self/exe").unwrap_or_default();
        let name = name.trim_end_matches(" (deleted)").to_owned();
        let cache = ReadCache::new(file.try_clone().map_err(failed)?);
        let image = Image::read(&cache)?;
        let hot = Symbols::read(&file, &cache).and_then(|symbols| symbols.marks());
        let whole = image.text().filter_map(|segment| segment.whole(huge_bytes));
        let wanted = whole.filter_map(|range| within(range, hot.as_ref(), huge_bytes)).collect();
        Ok(Self { file, image, name, huge_bytes, wanted })
    }

    fn hugify(&self, switch: Option<&OsStr>) -> Result<Own, HugifyError> {
        let before = self.coverage()?;
        let most = self.wanted.iter().map(|range| range.end - range.start).sum();
        let mut own = Own {
            text_bytes: before.text_bytes,
            whole_bytes: most,
            before_bytes: before.huge_bytes,
            huge_bytes: before.huge_bytes,
            route: OwnRoute::None,
            why_not: Vec::new(),
        };
        if most == 0 {
            own.why_not.push("its text holds no whole huge page".to_owned());
            return Ok(own);
        }
        if self.is_enough(before, most) {
            own.route = OwnRoute::Already;
            return Ok(own);
        }
        let wish = Wish::read(switch);
        own.why_not.extend(wish.unknown.iter().map(|word| format!("{SWITCH}: no route is called {word}")));
        if wish.is_off {
            own.why_not.push(format!("{SWITCH}=off"));
            return Ok(own);
        }
        for route in OwnRoute::ALL {
            if !wish.routes.contains(&route) {
                own.why_not.push(format!("{}: left out by {SWITCH}", route.word()));
                continue;
            }
            let tried = match route {
                OwnRoute::File => self.ask(before.base).map_err(|error| told(&error)),
                _ => self.wanted.iter().try_for_each(|range| self.copy(before.base, range, route)),
            };
            own.why_not.extend(tried.err().map(|why| format!("{}: {why}", route.word())));
            own.huge_bytes = self.coverage()?.huge_bytes;
            if self.is_enough(Coverage { huge_bytes: own.huge_bytes, ..before }, most) {
                own.route = route;
                break;
            }
        }
        if wish.map && matches!(own.route, OwnRoute::Anonymous | OwnRoute::Hugetlb) {
            let written = self.name(before.base);
            own.why_not.extend(written.err().map(|error| format!("names for perf: {error}")));
        }
        Ok(own)
    }

    fn is_enough(&self, seen: Coverage, most: u64) -> bool {
        Coverage { whole_bytes: most, ..seen }.is_at_least(LEAST)
    }

    fn coverage(&self) -> Result<Coverage, HugifyError> {
        let path = Path::new("/proc/self/smaps");
        let failed = |source| HugifyError::File { what: "read", path: path.to_owned(), source };
        let odd = || failed(std::io::Error::from(std::io::ErrorKind::InvalidData));
        let text = Host::live().read_lossy("/proc/self/smaps").map_err(|_| odd())?;
        let regions: Vec<Region> = parse_smaps(&text).map_err(|_| odd())?;
        covered(&regions, &self.name, &self.image, self.huge_bytes, pages::base_bytes() as u64)
            .ok_or_else(odd)
    }

    /// Asks the kernel to have the file's pages as huge ones.
    fn ask(&self, base: u64) -> Result<(), planish_sys::Error> {
        for range in &self.wanted {
            let at = base.wrapping_add(range.start)..base.wrapping_add(range.end);
            // Faults from here on read huge pieces, where the file system has them.
            code::advise_code(at.clone(), Advice::HugePage)?;
            code::advise_code(at, Advice::Collapse)?;
        }
        Ok(())
    }

    /// Has the functions of a copy named for perf.
    fn name(&self, base: u64) -> std::io::Result<()> {
        let cache = ReadCache::new(self.file.try_clone()?);
        let none = || std::io::Error::other("the program was stripped of its symbols");
        Symbols::read(&self.file, &cache).ok_or_else(none)?.write(base, &self.wanted)
    }

    /// Puts a copy of a part of the file where it is mapped.
    fn copy(&self, base: u64, range: &Range<u64>, route: OwnRoute) -> Result<(), String> {
        let at = base.wrapping_add(range.start);
        if !at.is_multiple_of(self.huge_bytes) {
            return Err(
                "it was loaded beside the boundary of a huge page: link it with -z max-page-size=2097152"
                    .to_owned(),
            );
        }
        let bytes = usize::try_from(range.end - range.start).expect("it is mapped");
        let segment = self.image.text().find(|segment| {
            segment.address <= range.start && range.end - segment.address <= segment.file_bytes
        });
        let offset = segment.expect("it is a part of one").offset_of(range.start);
        let stage = Stage::fill(&self.file, offset, bytes, (route, self.huge_bytes))?;
        // SAFETY: the loader has mapped the program's text there, readable: `coverage` found it. Nobody writes to it,
        // but for who sets breakpoints, whose byte is seen as it was or as it is.
        let now = unsafe { std::slice::from_raw_parts(at as *const u8, bytes) };
        if stage.content() != now {
            return Err(
                "memory is not what the file says: a uprobe, a patch, or relocations in the text".to_owned()
            );
        }
        // SAFETY: what lies at the new place has the same bytes and the same rights, compared just now, so that code
        // and constants there stay what they were for everybody.
        unsafe { stage.put_over(at) }
    }
}

/// An error with the kernel's own word for it.
fn told(error: &planish_sys::Error) -> String {
    match error.errno() {
        Some(errno) => format!("{error}: {errno}"),
        None => error.to_string(),
    }
}

/// Bytes on huge pages of a mapping of ours; `None` where nobody tells.
fn huge_at(start: u64, bytes: u64) -> Option<u64> {
    let text = Host::live().read_lossy("/proc/self/smaps").ok()?;
    let range = start..start + bytes;
    let regions = parse_smaps(&text).ok()?;
    let inside = regions.iter().filter(|region| range.contains(&region.area.range.start));
    Some(inside.map(|region| region.thp_bytes() + region.hugetlb_bytes).sum())
}

/// The part of whole huge pages that a hot range touches; all of them without one.
fn within(range: Range<u64>, hot: Option<&Range<u64>>, huge_bytes: u64) -> Option<Range<u64>> {
    let Some(hot) = hot else { return Some(range) };
    let start = range.start.max(hot.start / huge_bytes * huge_bytes);
    let end = range.end.min(hot.end.checked_next_multiple_of(huge_bytes)?);
    (start < end).then_some(start..end)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HUGE: u64 = 2 << 20;

    #[test]
    fn only_pages_that_the_hot_range_touches_are_wanted() {
        let all = HUGE..5 * HUGE;
        assert_eq!(within(all.clone(), None, HUGE), Some(all.clone()));
        assert_eq!(within(all.clone(), Some(&(2 * HUGE + 9..3 * HUGE + 9)), HUGE), Some(2 * HUGE..4 * HUGE));
        assert_eq!(within(all.clone(), Some(&(0..HUGE)), HUGE), None);
        assert_eq!(within(all, Some(&(0..9 * HUGE)), HUGE), Some(HUGE..5 * HUGE));
    }

    #[test]
    fn this_process_is_looked_at_and_goes_on() {
        let Ok(own) = hugify_self() else {
            return planish_skip::skip("this_process_is_looked_at_and_goes_on", "no transparent huge pages");
        };
        assert!(own.text_bytes > 0 && own.whole_bytes <= own.text_bytes, "{own:?}");
        assert!(own.route != OwnRoute::None || !own.why_not.is_empty(), "{own:?}");
    }
}
