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

    /// Whether a file is the same library in some version: `libmimalloc.so.2.1`, and not `libmimalloc-debug.so`.
    fn is_version(self, name: &str) -> bool {
        let stem = |file: &&str| file.split_once(".so").map(|(stem, _)| stem.to_owned());
        let version = |stem: String| name.strip_prefix(&format!("{stem}.so")).map(str::to_owned);
        let is_number = |rest: String| rest.is_empty() || rest.starts_with('.');
        self.files().iter().filter_map(stem).filter_map(version).any(is_number)
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
        // Then one of a version that nobody knew of here: the newest of a folder.
        let other = |folder: &String| {
            let names = host.list(folder).into_iter().rev().filter(|name| self.is_version(name));
            names.map(|name| PathBuf::from(format!("{folder}/{name}"))).collect::<Vec<PathBuf>>()
        };
        let found = there.find(|file| is_for(file, libc));
        let found = found.or_else(|| folders.iter().flat_map(other).find(|file| is_for(file, libc)));
        found.ok_or(PlacementError::NoAllocator { files: self.files(), search: self.word() })
    }

    /// The variables that put its heap on such pages.
    ///
    /// # Errors
    /// It cannot.
    pub fn variables(
        self,
        pages: HeapPages,
    ) -> Result<&'static [(&'static str, &'static str)], PlacementError> {
        match (self, pages) {
            (Self::Jemalloc, HeapPages::Thp) => Ok(&[("MALLOC_CONF", "thp:always,metadata_thp:auto")]),
            // It tries a pool first and advises transparent huge pages where there is none. Up to 2.0 the option has
            // the second name, and each passes over what it does not know.
            (Self::Mimalloc, _) => {
                Ok(&[("MIMALLOC_ALLOW_LARGE_OS_PAGES", "1"), ("MIMALLOC_LARGE_OS_PAGES", "1")])
            }
            (Self::Jemalloc, HeapPages::Pool) | (Self::Tcmalloc, _) => {
                let pages =
                    if pages == HeapPages::Thp { "transparent huge pages" } else { "pages from a pool" };
                Err(PlacementError::HeapPages { who: self.word().to_owned(), pages })
            }
        }
    }

    /// The allocator that a library is, by the name or the path of its file.
    #[must_use]
    pub fn of(library: &str) -> Option<Self> {
        let file = library.rsplit('/').next().unwrap_or_default();
        let is_it =
            |malloc: &Self| file.strip_prefix("lib").is_some_and(|name| name.starts_with(malloc.word()));
        Self::ALL.into_iter().find(is_it).filter(|_| file.contains(".so"))
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

#[cfg(test)]
mod tests {
    use super::*;

    /// "option 'large_os_pages': 0" is what mimalloc 2.0 says when it is told by the name of 2.1 alone.
    #[test]
    fn mimalloc_is_told_by_both_names_of_its_option() {
        for pages in [HeapPages::Thp, HeapPages::Pool] {
            let names = Allocator::Mimalloc.variables(pages).unwrap().iter().map(|(name, _)| *name);
            assert_eq!(
                names.collect::<Vec<_>>(),
                ["MIMALLOC_ALLOW_LARGE_OS_PAGES", "MIMALLOC_LARGE_OS_PAGES"]
            );
        }
        assert!(Allocator::Tcmalloc.variables(HeapPages::Thp).is_err());
    }

    #[test]
    fn a_library_is_found_in_any_version() {
        for name in ["libmimalloc.so", "libmimalloc.so.2.1", "libmimalloc.so.4"] {
            assert!(Allocator::Mimalloc.is_version(name), "{name}");
        }
        for name in ["libmimalloc-debug.so.2.1", "libmimalloc.so2", "libmimalloc.a", "libjemalloc.so.2"] {
            assert!(!Allocator::Mimalloc.is_version(name), "{name}");
        }
        assert!(Allocator::Tcmalloc.is_version("libtcmalloc.so.9"));
    }

    /// Packages carry the number of a version, and another one in each release of a distribution.
    #[test]
    fn where_none_is_installed_each_file_that_would_do_is_named_and_no_package() {
        let empty = tempfile::tempdir().unwrap();
        std::fs::create_dir(empty.path().join("proc")).unwrap();
        let host = Host::open(empty.path()).unwrap();
        for malloc in Allocator::ALL {
            let error = malloc.find(&host, Libc::Glibc { minor: Some(36) }, None).unwrap_err();
            let (text, cure) = (error.to_string(), error.cure());
            assert!(malloc.files().iter().all(|file| text.contains(file)), "{text}");
            assert!(cure.contains(malloc.word()) && !cure.contains("apt install"), "{cure}");
            assert!(!cure.contains(|letter: char| letter.is_ascii_digit()), "{cure}");
        }
    }

    #[test]
    fn an_allocator_is_known_by_its_file() {
        let tcmalloc = "/usr/lib/x86_64-linux-gnu/libtcmalloc_minimal.so.4.5.9";
        assert_eq!(Allocator::of(tcmalloc), Some(Allocator::Tcmalloc));
        assert_eq!(Allocator::of("libjemalloc.so.2"), Some(Allocator::Jemalloc));
        assert_eq!(Allocator::of("/opt/libmimalloc-secure.so.2.1"), Some(Allocator::Mimalloc));
        for other in ["/usr/lib/libc.so.6", "/srv/jemalloc.so", "/srv/libjemalloc.txt", ""] {
            assert_eq!(Allocator::of(other), None, "{other}");
        }
    }
}
