//! What `PLANISH_HUGIFY` says: `off`, or words with commas between them.

use std::ffi::OsStr;

use super::OwnRoute;

/// Which routes are gone, and with what.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Wish {
    /// None of them.
    pub is_off: bool,
    /// These: [`OwnRoute::USUAL`], unless some are named.
    pub routes: Vec<OwnRoute>,
    /// Names for perf are written, where code has no file any more.
    pub is_named: bool,
    /// Words that mean nothing here.
    pub unknown: Vec<String>,
}

impl Wish {
    pub fn read(text: Option<&OsStr>) -> Self {
        let mut wish = Self { is_off: false, routes: Vec::new(), is_named: true, unknown: Vec::new() };
        let text = text.unwrap_or_default().to_string_lossy();
        for word in text.split(',').filter(|word| !word.is_empty()) {
            match (word, OwnRoute::ALL.into_iter().find(|route| route.word() == word)) {
                (_, Some(route)) => wish.routes.push(route),
                ("off", _) => wish.is_off = true,
                ("map", _) => wish.is_named = true,
                ("nomap", _) => wish.is_named = false,
                _ => wish.unknown.push(word.to_owned()),
            }
        }
        if wish.routes.is_empty() {
            wish.routes = OwnRoute::USUAL.to_vec();
        }
        wish
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_routes_or_switches_and_what_they_are_not_is_told() {
        let read = |text: &str| Wish::read(Some(OsStr::new(text)));
        assert_eq!(Wish::read(None), read(""));
        assert_eq!(Wish::read(None).routes, OwnRoute::USUAL);
        assert!(Wish::read(None).is_named && !read("nomap").is_named, "perf names a copy without a word");
        assert_eq!(read("nomap").routes, OwnRoute::USUAL);
        assert_eq!(read("file").routes, [OwnRoute::File], "no copy");
        assert!(read("off").is_off && !read("file").is_off);
        let some = read("hugetlb,map,memfd,jumbo");
        assert_eq!(some.routes, [OwnRoute::Hugetlb, OwnRoute::Memfd]);
        assert_eq!((some.is_named, some.unknown), (true, vec!["jumbo".to_owned()]));
    }
}
