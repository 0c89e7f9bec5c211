//! Allocators that can stand in for that of the libc, where the system has them.

use std::path::{Path, PathBuf};

use planish_host::Host;

use crate::error::PlacementError;
use crate::program::{Libc, needed};
use crate::wish::HeapPages;

/// An allocator by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allocator {
    /// jemalloc 5.
    Jemalloc,
    /// gperftools' tcmalloc, without its profilers where that is there.
    Tcmalloc,
    /// mimalloc 2.
    Mimalloc,
}

/// Folders of libraries beside those that carry the name of the architecture.
const FOLDERS: [&str; 7] =
    ["/usr/local/lib", "/usr/local/lib64", "/usr/lib64", "/lib64", "/usr/lib", "/lib", "/opt/local/lib"];

impl Allocator {
    /// All of them, for the command line.
    pub const ALL: [Self; 3] = [Self::Jemalloc, Self::Tcmalloc, Self::Mimalloc];

    /// Its name.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Jemalloc => "jemalloc",
            Self::Tcmalloc => "tcmalloc",
            Self::Mimalloc => "mimalloc",
        }
    }

    /// Names of its library, best first.
    fn files(self) -> &'static [&'static str] {
        match self {
            Self::Jemalloc => &["libjemalloc.so.2"],
            Self::Tcmalloc => &["libtcmalloc_minimal.so.4", "libtcmalloc.so.4"],
            Self::Mimalloc => {
                &["libmimalloc.so.3", "libmimalloc.so.2", "libmimalloc.so.2.0", "libmimalloc.so"]
            }
        }
    }

    /// Debian's package.
    fn package(self) -> &'static str {
        match self {
            Self::Jemalloc => "libjemalloc2",
            Self::Tcmalloc => "libtcmalloc-minimal4",
            Self::Mimalloc => "libmimalloc2.0",
        }
    }

    /// Its library on this system, built for the libc of the program.
    ///
    /// # Errors
    /// None is installed.
    pub fn find(self, host: &Host, libc: Libc, paths: Option<&str>) -> Result<PathBuf, PlacementError> {
        let own = paths.unwrap_or_default().split(':').filter(|folder| folder.starts_with('/'));
        let triple = format!("{}-linux-gnu", std::env::consts::ARCH);
        let named = [format!("/usr/lib/{triple}"), format!("/lib/{triple}")];
        let folders = own.map(str::to_owned).chain(named).chain(FOLDERS.map(str::to_owned));
        let folders: Vec<String> = folders.collect();
        let files =
            self.files().iter().flat_map(|file| folders.iter().map(move |folder| format!("{folder}/{file}")));
        let mut there = files.filter(|file| host.exists(file)).map(PathBuf::from);
        let found = there.find(|file| is_for(file, libc));
        found.ok_or(PlacementError::NoAllocator { library: self.files()[0], package: self.package() })
    }

    /// The variable that puts its heap on such pages.
    ///
    /// # Errors
    /// It cannot.
    pub fn variable(self, pages: HeapPages) -> Result<(&'static str, &'static str), PlacementError> {
        match (self, pages) {
            (Self::Jemalloc, HeapPages::Thp) => Ok(("MALLOC_CONF", "thp:always,metadata_thp:auto")),
            // It tries a pool first and advises transparent huge pages where there is none.
            (Self::Mimalloc, _) => Ok(("MIMALLOC_ALLOW_LARGE_OS_PAGES", "1")),
            (Self::Jemalloc, HeapPages::Pool) | (Self::Tcmalloc, _) => {
                let pages =
                    if pages == HeapPages::Thp { "transparent huge pages" } else { "pages from a pool" };
                Err(PlacementError::HeapPages { who: self.word().to_owned(), pages })
            }
        }
    }
}

/// Whether a library needs the libc of the program and no other.
fn is_for(library: &Path, libc: Libc) -> bool {
    let Ok(needed) = needed(library) else { return false };
    match libc {
        Libc::Glibc { .. } => needed.iter().any(|name| name == "libc.so.6"),
        Libc::Musl => needed.iter().any(|name| name.starts_with("libc.musl-") || name == "libc.so"),
        Libc::Other => false,
    }
}
