//! What of a file's text the page cache has in huge pages, and how it comes to have it so.
//!
//! Nothing here is believed by its return code. A file is mapped as a program's code would be, each of its whole huge
//! pages that is cached is touched once, and the page tables of that mapping say which of them one entry maps.

use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};

use object::ReadCache;
use planish_sys::code::CodeMapping;
use planish_sys::pagemap::{Filled, Pagemap};
use planish_sys::{Advice, file, pages};
use rustix::fs::Advice as Cache;

use crate::error::HugifyError;
use crate::image::{Image, Segment};

/// What the page cache has of a file's text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cached {
    /// Bytes of executable segments.
    pub text_bytes: u64,
    /// Of these, bytes in whole huge pages: the most that can ever lie on some.
    pub whole_bytes: u64,
    /// Of these, bytes that one entry maps each huge page of.
    pub huge_bytes: u64,
    /// Whole huge pages, in bytes, of which something is not in the page cache at all, so that nothing was touched.
    pub cold_bytes: u64,
}

impl Cached {
    /// Whether at least this share of what can lie on huge pages does.
    #[must_use]
    pub fn is_at_least(&self, percent: f64) -> bool {
        self.whole_bytes > 0 && self.huge_bytes as f64 >= self.whole_bytes as f64 * percent / 100.0
    }
}

/// A file whose text is looked at.
#[derive(Debug)]
pub struct Probe {
    path: PathBuf,
    file: File,
    image: Image,
    huge_bytes: u64,
}

impl Probe {
    /// Opens a file, of which `image` was read.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn open(path: &Path, image: Image, huge_bytes: u64) -> Result<Self, HugifyError> {
        let opened = file::open(path);
        let failed = |source| HugifyError::File { what: "open", path: path.to_owned(), source };
        Ok(Self { path: path.to_owned(), file: opened.map_err(failed)?, image, huge_bytes })
    }

    /// Opens a file, and reads its headers and nothing else of it: a look changes what the page cache has as little as
    /// it can. Who reads all of a large file finds it in the page cache afterwards, often in huge pieces.
    ///
    /// # Errors
    /// It cannot be opened or read; as [`Image::parse`].
    pub fn look(path: &Path, huge_bytes: u64) -> Result<Self, HugifyError> {
        let failed = |what| move |source| HugifyError::File { what, path: path.to_owned(), source };
        let headers = file::open(path).map_err(failed("open"))?;
        // Without what would be read ahead. The file of the probe itself is opened by itself, and has that.
        rustix::fs::fadvise(&headers, 0, None, Cache::Random)
            .map_err(|source| HugifyError::Call { call: "fadvise", source })?;
        let image = Image::read(&ReadCache::new(headers))?;
        Self::open(path, image, huge_bytes)
    }

    /// The path that it was opened by.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What the page cache has of it now. Reads nothing from the disk.
    ///
    /// # Errors
    /// It cannot be mapped.
    pub fn cached(&self) -> Result<Cached, HugifyError> {
        let mut all = self.nothing();
        for (segment, range) in self.parts() {
            let mapping = self.map(segment, &range)?;
            let is_cached = mapping.cached()?;
            let pages = usize_of(self.huge_bytes) / pages::base_bytes();
            for (index, piece) in is_cached.chunks(pages).enumerate() {
                if piece.iter().all(|cached| *cached) {
                    self.touch(&mapping, segment, &range, index)?;
                } else {
                    all.cold_bytes += self.huge_bytes;
                }
            }
            all.huge_bytes += huge_of(&mapping)?;
        }
        Ok(all)
    }

    /// Drops what the page cache has of the file, as far as nobody uses it, and has it read anew in huge pieces: by
    /// faults in a mapping that asks for huge pages. Of a file that runs, or is written, pieces stay as they are.
    ///
    /// # Errors
    /// It cannot be mapped, or read.
    pub fn warm(&self) -> Result<Cached, HugifyError> {
        let call = |call| move |source| HugifyError::Call { call, source };
        // What is not written yet cannot be dropped.
        rustix::fs::fsync(&self.file).map_err(call("fsync"))?;
        rustix::fs::fadvise(&self.file, 0, None, Cache::DontNeed).map_err(call("fadvise"))?;
        for (segment, range) in self.parts() {
            let mapping = self.map(segment, &range)?;
            mapping.advise(0..usize_of(range.end - range.start), Advice::HugePage)?;
            for index in 0..usize_of((range.end - range.start) / self.huge_bytes) {
                self.touch(&mapping, segment, &range, index)?;
            }
        }
        self.read_the_rest()?;
        self.cached()
    }

    /// Asks the kernel to collapse what the page cache has of the text (Linux 6.1): that of a tmpfs, and with
    /// `READ_ONLY_THP_FOR_FS` that of other files. Every process that maps it has it so from its next fault on.
    ///
    /// # Errors
    /// It cannot be mapped; where nothing of it lies on huge pages afterwards, what the kernel said to the first piece
    /// that it refused.
    pub fn collapse(&self) -> Result<Cached, HugifyError> {
        let mut refused = None;
        for (segment, range) in self.parts() {
            let mapping = self.map(segment, &range)?;
            let piece = usize_of(self.huge_bytes);
            for index in 0..usize_of((range.end - range.start) / self.huge_bytes) {
                // Linux 6.1 collapses a piece of a tmpfs and calls it an error (EINVAL).
                let asked = mapping.advise(index * piece..(index + 1) * piece, Advice::Collapse);
                refused = refused.or(asked.err());
            }
        }
        let cached = self.cached()?;
        match refused {
            Some(error) if cached.huge_bytes == 0 => Err(error.into()),
            _ => Ok(cached),
        }
    }

    fn nothing(&self) -> Cached {
        let (text_bytes, whole_bytes) = self.image.text_bytes(self.huge_bytes);
        Cached { text_bytes, whole_bytes, ..Cached::default() }
    }

    /// The segments that can be mapped by huge entries as they lie in the file.
    fn parts(&self) -> impl Iterator<Item = (&Segment, Range<u64>)> {
        let fits = |segment: &&Segment| segment.is_congruent(self.huge_bytes);
        let text = self.image.text().filter(fits);
        text.filter_map(|segment| Some((segment, segment.whole(self.huge_bytes)?)))
    }

    fn map(&self, segment: &Segment, range: &Range<u64>) -> Result<CodeMapping, HugifyError> {
        let offset = segment.offset_of(range.start);
        let mapping = CodeMapping::new(
            &self.file,
            offset,
            usize_of(range.end - range.start),
            usize_of(self.huge_bytes),
        );
        Ok(mapping?)
    }

    fn touch(
        &self,
        mapping: &CodeMapping,
        segment: &Segment,
        range: &Range<u64>,
        index: usize,
    ) -> Result<(), HugifyError> {
        let at = index * usize_of(self.huge_bytes);
        let is_there = mapping.touch(&self.file, at, segment.offset_of(range.start))?;
        let shrunk = || HugifyError::File {
            what: "read",
            path: self.path.clone(),
            source: std::io::Error::from(std::io::ErrorKind::UnexpectedEof),
        };
        if is_there { Ok(()) } else { Err(shrunk()) }
    }

    /// What lies beside the whole huge pages is to be in the page cache as well: a start reads it next.
    fn read_the_rest(&self) -> Result<(), HugifyError> {
        rustix::fs::fadvise(&self.file, 0, None, Cache::WillNeed)
            .map_err(|source| HugifyError::Call { call: "fadvise", source })
    }
}

/// Bytes of a mapping of ours that huge entries map.
fn huge_of(mapping: &CodeMapping) -> Result<u64, HugifyError> {
    let mut runs = Vec::new();
    match Pagemap::open(None)?.scan(mapping.range(), &mut runs) {
        Ok(()) => {}
        // Before Linux 6.7: smaps tells it for the whole mapping.
        Err(planish_sys::Error::Missing { .. }) => return huge_by_smaps(mapping),
        Err(error) => return Err(error.into()),
    }
    let huge = runs.iter().filter(|run| run.filled == Filled::Huge);
    Ok(huge.map(|run| run.range.end - run.range.start).sum())
}

fn huge_by_smaps(mapping: &CodeMapping) -> Result<u64, HugifyError> {
    let process = planish_residency::Process::read_self(&planish_host::Host::live())?;
    let range = mapping.range();
    let inside = process.regions.iter().filter(|region| range.contains(&region.area.range.start));
    Ok(inside.map(planish_residency::Region::thp_bytes).sum())
}

fn usize_of(bytes: u64) -> usize {
    usize::try_from(bytes).expect("a segment that is mapped fits an address")
}
