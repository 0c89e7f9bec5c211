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

pub use defaults::{added_by, drop_in_line, is_of_menu};
pub use entry::{Entry, fields};
pub use env::{
    as_noted as as_grub_noted, is_torn as is_env_torn, refuse_cut_off as refuse_cut_off_env,
    value as env_value,
};
pub use odd::Odd;
pub use run::count_besides;
pub use shell::{Shell, Word, refuse_unfinished};

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
/// Arguments that a loader would take apart, and a text that is cut off or cannot be understood.
pub fn insert(format: Format, text: &str, arguments: &str) -> Result<String, Odd> {
    refuse_odd(arguments)?;
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
