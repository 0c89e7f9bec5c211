//! The text of the process that asks, put on huge pages while it runs.
//!
//! ```text
//! already? ──> ask the kernel for the file's own pages: MADV_HUGEPAGE, MADV_COLLAPSE ──> a copy of this process:
//!
//!   file ──> |stage: anonymous, memfd, of a pool| ──compare with memory──> read and execute ──one mremap──> over the
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
mod names;
mod same;
mod seen;
mod symbols;
mod wish;

use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::Path;

use object::ReadCache;
use planish_host::Host;
use planish_residency::Region;
use planish_sys::process::is_secure;
use planish_sys::{Advice, code, pages};

use copy::Stage;
use symbols::OwnSymbols;
pub use symbols::Symbols;
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
    const ALL: [Self; 4] = [Self::File, Self::Anonymous, Self::Memfd, Self::Hugetlb];
    /// Of these what is tried where nobody names any: perf takes the name of a memfd for that of a file with symbols,
    /// finds no such file, and so names none of the program's functions.
    const USUAL: [Self; 3] = [Self::File, Self::Anonymous, Self::Hugetlb];

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
    /// Of those, bytes on huge pages before.
    pub before_bytes: u64,
    /// The same now, read back.
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
    let is_secure = is_secure();
    let switch = std::env::var_os(SWITCH).filter(|_| !is_secure);
    let mut wish = Wish::read(switch.as_deref());
    // It would write a file with rights that who started it has not.
    wish.is_named &= !is_secure;
    Process::look()?.hugify(&wish)
}

/// This process.
struct Process {
    file: File,
    image: Image,
    /// Its path, as the kernel tells it of a link and of mappings alike.
    name: String,
    /// Where it was not stripped of them.
    symbols: Option<OwnSymbols>,
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
        let cache = ReadCache::new(file.try_clone().map_err(failed)?);
        let image = Image::read(&cache)?;
        let symbols = OwnSymbols::map(&file, &cache);
        let hot = symbols.as_ref().and_then(|own| own.symbols().marks());
        let whole = image.text().filter_map(|segment| segment.whole(huge_bytes));
        let wanted = whole.filter_map(|range| within(range, hot.as_ref(), huge_bytes)).collect();
        Ok(Self { file, image, name, symbols, huge_bytes, wanted })
    }

    fn hugify(&self, wish: &Wish) -> Result<Own, HugifyError> {
        let regions = seen::regions().ok_or_else(unread)?;
        let seen = self.coverage(&regions)?;
        let at: Vec<Range<u64>> = self.wanted.iter().map(|range| moved(range, seen.base)).collect();
        // Of what is wanted, and of nothing else: cold text on huge pages helps no hot one.
        let huge_bytes = || seen::huge_bytes_in(&at, self.huge_bytes).ok_or_else(unread);
        let most = at.iter().map(length).sum();
        let before_bytes = huge_bytes()?;
        let mut own = Own {
            text_bytes: seen.text_bytes,
            whole_bytes: most,
            before_bytes,
            huge_bytes: before_bytes,
            route: OwnRoute::None,
            why_not: Vec::new(),
        };
        if most == 0 {
            own.why_not.push("its text holds no whole huge page".to_owned());
            return Ok(own);
        }
        if is_enough(before_bytes, most) {
            own.route = OwnRoute::Already;
            // Who was forked has his parent's copy, and a number of his own, by which perf looks for names.
            if wish.is_named && seen::has_no_file(&at) {
                let failed = self.name(seen.base).err();
                let failed = failed.filter(|error| error.kind() != io::ErrorKind::AlreadyExists);
                own.why_not.extend(failed.map(unnamed));
            }
            return Ok(own);
        }
        own.why_not.extend(wish.unknown.iter().map(|word| format!("{SWITCH}: no route is called {word}")));
        if wish.is_off {
            own.why_not.push(format!("{SWITCH}=off"));
            return Ok(own);
        }
        for route in OwnRoute::ALL {
            if !wish.routes.contains(&route) {
                own.why_not.push(format!("{}: {SWITCH} does not name it", route.word()));
                continue;
            }
            let tried = match route {
                OwnRoute::File => self.ask(&at).map_err(|error| told(&error)),
                _ => self.wanted.iter().try_for_each(|range| self.copy(&regions, seen.base, range, route)),
            };
            own.why_not.extend(tried.err().map(|why| format!("{}: {why}", route.word())));
            own.huge_bytes = huge_bytes()?;
            if is_enough(own.huge_bytes, most) {
                own.route = route;
                break;
            }
        }
        if wish.is_named && matches!(own.route, OwnRoute::Anonymous | OwnRoute::Hugetlb) {
            own.why_not.extend(self.name(seen.base).err().map(unnamed));
        }
        Ok(own)
    }

    fn coverage(&self, regions: &[Region]) -> Result<Coverage, HugifyError> {
        let name = self.name.trim_end_matches(" (deleted)");
        covered(regions, name, &self.image, self.huge_bytes, pages::base_bytes() as u64).ok_or_else(unread)
    }

    /// Has the file's pages as huge ones: those that the page cache has so, else what the kernel makes so.
    fn ask(&self, at: &[Range<u64>]) -> Result<(), planish_sys::Error> {
        let page_bytes = pages::base_bytes() as u64;
        for range in at {
            // Faults from here on read huge pieces, where the file system has them.
            code::advise_code(range.clone(), Advice::HugePage)?;
            // At the start of a program little of its text was run yet: one fault in each piece maps it as it is
            // cached. A kernel without that call goes without.
            let mut piece = range.start;
            while piece < range.end {
                let _ = code::advise_code(piece..piece + page_bytes, Advice::PopulateRead);
                piece += self.huge_bytes;
            }
        }
        if is_enough(seen::huge_bytes_in(at, self.huge_bytes).unwrap_or(0), at.iter().map(length).sum()) {
            return Ok(());
        }
        at.iter().try_for_each(|range| code::advise_code(range.clone(), Advice::Collapse))
    }

    /// Has the functions of a copy named for perf.
    fn name(&self, base: u64) -> io::Result<()> {
        let none = || io::Error::other("the program was stripped of its symbols");
        let symbols = self.symbols.as_ref().ok_or_else(none)?.symbols();
        let functions = symbols.functions(&self.wanted);
        let functions = functions.map(|(at, bytes, name)| (base.wrapping_add(at), bytes, name));
        names::put(Path::new(names::FOLDER), functions, symbols.names_bytes())
    }

    /// Puts a copy of a part of the file where it is mapped.
    fn copy(&self, regions: &[Region], base: u64, range: &Range<u64>, route: OwnRoute) -> Result<(), String> {
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
        let doubtful = same::doubtful(regions, (&self.file, &self.name), &moved(range, base), offset);
        let is_other = |part: &Range<u64>| {
            let from = usize::try_from(part.start - at).expect("it is mapped");
            let bytes = usize::try_from(length(part)).expect("it is mapped");
            // SAFETY: the loader has mapped the program's text there, readable: `coverage` found it. Nobody writes to
            // it, but for who sets breakpoints, whose byte is seen as it was or as it is.
            let now = unsafe { std::slice::from_raw_parts(part.start as *const u8, bytes) };
            stage.content()[from..from + bytes] != *now
        };
        if doubtful.iter().any(is_other) {
            return Err(
                "memory is not what the file says: a uprobe, a patch, or relocations in the text".to_owned()
            );
        }
        // SAFETY: what lies at the new place has the same bytes and the same rights, compared just now or pages of the
        // same file, so that code and constants there stay what they were for everybody.
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

fn is_enough(huge_bytes: u64, most: u64) -> bool {
    Coverage { whole_bytes: most, huge_bytes, ..Coverage::default() }.is_at_least(LEAST)
}

fn unnamed(error: io::Error) -> String {
    format!("names for perf: {error}")
}

fn unread() -> HugifyError {
    let source = io::Error::from(io::ErrorKind::InvalidData);
    HugifyError::File { what: "read", path: Path::new("/proc/self/smaps").to_owned(), source }
}

/// Where addresses of the file are, in a process with that base.
fn moved(range: &Range<u64>, base: u64) -> Range<u64> {
    base.wrapping_add(range.start)..base.wrapping_add(range.end)
}

fn length(range: &Range<u64>) -> u64 {
    range.end - range.start
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
        assert!(own.huge_bytes <= own.whole_bytes, "what is wanted counts alone: {own:?}");
        assert!(own.route != OwnRoute::None || !own.why_not.is_empty(), "{own:?}");
        let _ = std::fs::remove_file(format!("/tmp/perf-{}.map", std::process::id()));
    }
}
