//! Files of boot loaders as text: what they give the kernel, and how arguments get in and out again.
//!
//! Pure: text in, text out. Which files a machine has, and which of them its loader reads, is found elsewhere.
//!
//! An edit is one insertion, made so that it can be found again whatever else has changed in the file meanwhile:
//!
//! | format | what is inserted |
//! |---|---|
//! | [`Format::GrubDefaults`] | a block of three lines at the end, between comments that name planish |
//! | [`Format::Entry`], [`Format::KernelCmdline`] | a blank and the arguments, behind the last one of the line |
//! | [`Format::GrubEnv`] | the same in the value of `kernelopts`, at the cost of the padding |
//!
//! [`insert_tagged`] says beside them whose they are: with a comment above the line of an entry or behind the block,
//! and elsewhere with one argument more, `planish.entry=N`.
//!
//! Invariant, held by property tests over odd files: taking out what was put in gives every byte of the text before.
//! A text that is cut off, or that cannot be understood where it would be changed, is [`Odd`] and is not touched.
//!
//! An entry that is booted once is made in [`once`].
//!
//! Non-goals: writing `grub.cfg`, which its own generator does; unified kernel images, whose arguments are signed.
//!
//! Sources: GRUB manual (Simple configuration, Environment block), the Boot Loader Specification,
//! kernel-install(8).
#![forbid(unsafe_code)]

use std::fmt::Display;

mod block;
mod defaults;
mod ended;
mod entry;
mod env;
pub mod generated;
mod odd;
pub mod once;
pub mod order;
mod run;
mod shell;
mod tag;

pub use defaults::{added_by, drop_in_line, is_of_menu};
pub use entry::{Entry, fields};
pub use env::{
    as_noted as as_grub_noted, is_torn as is_env_torn, refuse_cut_off as refuse_cut_off_env,
    value as env_value,
};
pub use odd::{Odd, refuse_zeroes};
pub use run::{count_besides, refuse_out_of_reach, refuse_rootless};
pub use shell::{Shell, Word, refuse_unfinished};
pub use tag::{Tag, is_tag, tags};

/// A file of a boot loader that arguments can be put into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `/etc/default/grub`: assignments of a shell.
    GrubDefaults,
    /// `grubenv`: an environment block with `kernelopts`.
    GrubEnv,
    /// `loader/entries/*.conf`: one entry of the Boot Loader Specification.
    Entry,
    /// `/etc/kernel/cmdline`: the arguments of kernels that are installed later.
    KernelCmdline,
}

/// The text with arguments put in.
///
/// # Errors
/// Arguments that a loader would take apart; a text that is cut off or cannot be understood; one where what is put in
/// would not reach the kernel.
pub fn insert(format: Format, text: &str, arguments: &str) -> Result<String, Odd> {
    refuse_odd(arguments)?;
    odd::refuse_control(text)?;
    match format {
        Format::GrubDefaults => defaults::insert(text, arguments),
        Format::GrubEnv => env::insert(text, arguments),
        Format::Entry => entry::insert(text, arguments),
        Format::KernelCmdline => run::insert_in_cmdline(text, arguments),
    }
}

/// The text with the arguments taken out that were put in; `None` when they are not there as they were put in.
#[must_use]
pub fn remove(format: Format, text: &str, arguments: &str) -> Option<String> {
    match format {
        Format::GrubDefaults => defaults::remove(text, arguments),
        Format::GrubEnv => env::remove(text, arguments),
        Format::Entry => entry::remove(text, arguments),
        Format::KernelCmdline => run::remove_from_cmdline(text, arguments),
    }
}

/// The text with the arguments of an entry of the journal, and with a tag that says whose they are: above the line of
/// an entry of a loader, behind the block, or as one more of the arguments. Who does not know the entry yet may give
/// a letter for it.
///
/// # Errors
/// As of [`insert`]; the tag needs room, too.
pub fn insert_tagged(
    format: Format,
    text: &str,
    arguments: &str,
    entry: impl Display,
) -> Result<String, Odd> {
    refuse_odd(arguments)?;
    let edited = match format {
        Format::GrubEnv | Format::KernelCmdline => {
            return insert(format, text, &tag::behind(arguments, entry));
        }
        Format::Entry | Format::GrubDefaults => insert(format, text, arguments)?,
    };
    let at = if format == Format::Entry { entry::options(&edited)?.start } else { edited.len() };
    Ok(tag::add_comment(&edited, at, arguments, entry))
}

/// The text without the arguments of an entry and without its tag, which may be elsewhere by now, or gone; `None` when
/// the arguments are not there as they were put in.
#[must_use]
pub fn remove_tagged(format: Format, text: &str, arguments: &str, entry: u64) -> Option<String> {
    if matches!(format, Format::Entry | Format::GrubDefaults) {
        // What stands behind a block gives the line before it its end: the block goes last.
        let bare = tag::take_comment(text, arguments_at(format, text), arguments, entry);
        return remove(format, bare.as_deref().unwrap_or(text), arguments);
    }
    remove(format, text, &tag::behind(arguments, entry)).or_else(|| {
        let left = remove(format, text, arguments)?;
        Some(remove_tag(format, &left, arguments, entry).unwrap_or(left))
    })
}

/// The same beside the runs of other entries: one of them that has these arguments within stays as it is.
#[must_use]
pub fn remove_tagged_beside(
    format: Format,
    text: &str,
    (arguments, entry): (&str, u64),
    others: &[&str],
) -> Option<String> {
    // Signs that no line of arguments has, and no blanks: as many as keep the length.
    let mut hidden: Vec<(String, &str)> = Vec::new();
    let mut masked = text.to_owned();
    for (sign, other) in
        ('\u{1}'..='\u{8}').zip(others.iter().filter(|other| run::has_within(other, arguments)))
    {
        let Some(at) = run::last(&masked, other) else { continue };
        let mask = String::from(sign).repeat(other.len());
        masked.replace_range(at..at + other.len(), &mask);
        hidden.push((mask, other));
    }
    let left = remove_tagged(format, &masked, arguments, entry)?;
    Some(hidden.iter().fold(left, |text, (mask, other)| text.replacen(mask, other, 1)))
}

/// The text without the tag of an entry, whatever became of the arguments, beside it and in it; `None` when it is not
/// there.
#[must_use]
pub fn remove_tag(format: Format, text: &str, arguments: &str, entry: u64) -> Option<String> {
    match format {
        Format::Entry | Format::GrubDefaults => {
            let above = arguments_at(format, text);
            tag::take_comment(text, above, arguments, entry)
                .or_else(|| tag::take_any_comment(text, above, entry))
        }
        Format::GrubEnv | Format::KernelCmdline => remove(format, text, &tag::word(entry)),
    }
}

/// The place above which the comment that tells of arguments is looked for first.
fn arguments_at(format: Format, text: &str) -> usize {
    match format {
        Format::Entry => entry::options_as_they_are(text).map_or(text.len(), |line| line.start),
        _ => text.len(),
    }
}

/// Whether the line of a text that arguments are put into gives these already: in one run, and none of them anew behind
/// it, since of two the kernel takes the last. For what a shell reads: whether a block of ours does.
#[must_use]
pub fn gives(format: Format, text: &str, arguments: &str) -> bool {
    let line = match format {
        Format::GrubDefaults => return remove(format, text, arguments).is_some(),
        Format::GrubEnv => env::value(text, "kernelopts").map(|(value, _)| value),
        Format::Entry => entry::options_as_they_are(text).ok().map(|line| &text[line]),
        Format::KernelCmdline => run::cmdline(text).map(|line| &text[line]),
    };
    line.is_some_and(|line| run::gives(line, arguments))
}

/// Refuses arguments with characters that a shell, GRUB or a template would take for its own.
///
/// # Errors
/// The arguments, when they hold any such character or nothing at all.
pub fn refuse_odd(arguments: &str) -> Result<(), Odd> {
    let plain = |c: char| c.is_ascii_alphanumeric() || " =,:._-+/@~*^%!".contains(c);
    let words = !arguments.trim().is_empty() && arguments.trim() == arguments;
    if words && arguments.chars().all(plain) {
        return Ok(());
    }
    Err(Odd::Arguments { arguments: arguments.to_owned() })
}

#[cfg(test)]
mod tests;
