//! Whose arguments are, said beside them: by the number of the entry of the journal that put them in, so that it can
//! be told where that journal is gone.
//!
//! Where a reader passes over comments it is one, with the arguments. GRUB's `blscfg` (`grub-core/commands/blsuki.c`,
//! `bls_parse_keyvals`) and systemd-boot (`line_get_key_value`) pass over a line that begins with `#`, and so does a
//! shell. kernel-install(8) takes the whole of `/etc/kernel/cmdline` for arguments (`90-loaderentry.install`), and
//! GRUB's environment block has no comments: there it is one argument more. The kernel takes a name with a dot for a
//! parameter of a module of that name, and passes it on to nobody (`init/main.c`, `unknown_bootoption`).

use std::fmt::Display;

use crate::run;

const COMMENT: &str = "# planish entry ";
const WORD: &str = "planish.entry=";

/// What says in a file of a boot loader whose arguments are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag<'a> {
    /// The number of its line, counted from 1.
    pub line: usize,
    /// The number of the entry.
    pub entry: u64,
    /// The whole comment, or the argument.
    pub text: &'a str,
}

/// Every tag of a file, whichever format it has.
pub fn tags(text: &str) -> impl Iterator<Item = Tag<'_>> {
    run::lines(text).enumerate().flat_map(|(index, (_, line))| {
        let line_number = index + 1;
        let comment = commented(line).map(|entry| (entry, line.trim_end()));
        let is_read = !line.trim_start().starts_with('#');
        let words = run::words_of(line).filter(move |_| is_read);
        let in_line = words.filter_map(|word| Some((word.strip_prefix(WORD)?.parse().ok()?, word)));
        comment.into_iter().chain(in_line).map(move |(entry, text)| Tag { line: line_number, entry, text })
    })
}

/// Whether a line is such a comment.
#[must_use]
pub fn is_tag(line: &str) -> bool {
    commented(line).is_some()
}

/// The entry that such a comment names.
fn commented(line: &str) -> Option<u64> {
    let (number, _) = line.strip_prefix(COMMENT)?.split_once(':')?;
    number.parse().ok()
}

/// What such a comment begins with, whatever it goes on with.
fn head(entry: impl Display) -> String {
    format!("{COMMENT}{entry}:")
}

fn comment(arguments: &str, entry: impl Display) -> String {
    format!("{} {arguments}", head(entry))
}

/// The argument.
pub(crate) fn word(entry: impl Display) -> String {
    format!("{WORD}{entry}")
}

/// Arguments with the one that tells of them behind.
pub(crate) fn behind(arguments: &str, entry: impl Display) -> String {
    format!("{arguments} {}", word(entry))
}

/// The text with the comment in a line of its own at some place, where a line begins.
pub(crate) fn add_comment(text: &str, at: usize, arguments: &str, entry: impl Display) -> String {
    format!("{}{}\n{}", &text[..at], comment(arguments, entry), &text[at..])
}

/// The text without the comment of an entry and these arguments: of several the last one above some place, or the last
/// of all.
pub(crate) fn take_comment(text: &str, above: usize, arguments: &str, entry: u64) -> Option<String> {
    let comment = comment(arguments, entry);
    take_line(text, above, |line| line.trim_end() == comment)
}

/// The same, whatever arguments somebody has it name by now.
pub(crate) fn take_any_comment(text: &str, above: usize, entry: u64) -> Option<String> {
    let head = head(entry);
    take_line(text, above, |line| line.starts_with(&head))
}

fn take_line(text: &str, above: usize, is_it: impl Fn(&str) -> bool) -> Option<String> {
    let found: Vec<usize> =
        run::lines(text).filter(|(_, line)| is_it(line)).map(|(range, _)| range.start).collect();
    let at = *found.iter().rfind(|at| **at < above).or(found.last())?;
    let end = text[at..].find('\n').map_or(text.len(), |end| at + end + 1);
    Some(format!("{}{}", &text[..at], &text[end..]))
}
