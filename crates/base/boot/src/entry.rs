//! An entry of the Boot Loader Specification: `key value` lines, of which `options` holds the arguments.

use std::ops::Range;

use crate::odd::Odd;
use crate::run;

/// What an entry says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// The name that a menu shows.
    pub title: String,
    /// The version by which entries are sorted.
    pub version: String,
    /// By what systemd-boot sorts it before its version, where it says so.
    pub sort_key: Option<String>,
    /// The machine whose entry it is.
    pub machine_id: String,
    /// The arguments, and the number of the line that holds them, counted from 1.
    pub options: Option<(String, usize)>,
}

/// Keys and values of an entry, with the numbers of their lines counted from 1.
pub fn fields(text: &str) -> impl Iterator<Item = (usize, &str, &str)> {
    run::lines(text).enumerate().filter_map(|(index, (_, line))| {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            return None;
        }
        let (key, value) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        Some((index + 1, key, value.trim_start()))
    })
}

impl Entry {
    /// Whether a text says what it starts: a kernel, or something else. One that does not was cut off before that, but
    /// for one that is a comment as a whole, which loaders pass over.
    #[must_use]
    pub fn is_whole(text: &str) -> bool {
        let is_comment = !text.trim().is_empty() && fields(text).next().is_none();
        is_comment || fields(text).any(|(_, key, _)| STARTS.contains(&key))
    }

    /// What a text says; `None` for one that starts no Linux kernel.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let first = |wanted: &str| fields(text).find(|(_, key, _)| *key == wanted);
        first("linux")?;
        let value = |wanted: &str| first(wanted).map_or_else(String::new, |(_, _, value)| value.to_owned());
        let options = first("options").map(|(line, _, value)| (value.to_owned(), line));
        let sort_key = Some(value("sort-key")).filter(|key| !key.is_empty());
        let [title, version, machine_id] = ["title", "version", "machine-id"].map(value);
        Some(Self { title, version, sort_key, machine_id, options })
    }

    /// Whether it is for repairs: left as it is, so that there is a way to boot without what was put in.
    #[must_use]
    pub fn is_rescue(&self, file: &str) -> bool {
        let title = self.title.to_ascii_lowercase();
        file.contains("-rescue") || title.contains("rescue") || title.contains("recovery")
    }
}

/// The keys that name what an entry starts.
const STARTS: [&str; 4] = ["linux", "efi", "uki", "uki-url"];

/// The only line `options`, which may be longer than what is there of it where the file ends within it.
pub(crate) fn options(text: &str) -> Result<Range<usize>, Odd> {
    let line = options_as_they_are(text)?;
    if line.end == text.len() {
        return Err(Odd::CutOff {
            what: "its last line is `options`, and that has no end (where it is whole, put a line end behind it)",
        });
    }
    Ok(line)
}

pub(crate) fn options_as_they_are(text: &str) -> Result<Range<usize>, Odd> {
    if fields(text).all(|(_, key, _)| key != "linux") {
        return Err(Odd::CutOff { what: "no line `linux` names a kernel" });
    }
    let is_options = |line: &str| line.split_whitespace().next() == Some("options");
    let found: Vec<Range<usize>> =
        run::lines(text).filter(|(_, line)| is_options(line)).map(|(range, _)| range).collect();
    match found.as_slice() {
        [one] => Ok(one.clone()),
        [] => Err(Odd::CutOff { what: "no line `options` gives the kernel its root" }),
        more => Err(Odd::Twice { name: "options", count: more.len() }),
    }
}

pub(crate) fn insert(text: &str, arguments: &str) -> Result<String, Odd> {
    let line = options(text)?;
    run::refuse_out_of_reach(&text[line.clone()])?;
    Ok(run::insert(text, &line, arguments))
}

pub(crate) fn remove(text: &str, arguments: &str) -> Option<String> {
    run::remove(text, &options_as_they_are(text).ok()?, arguments)
}
