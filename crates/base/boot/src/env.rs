//! GRUB's environment block: a head, `name=value` lines, and padding up to a fixed size, since GRUB writes into the
//! very sectors of the file and cannot make it longer (GRUB manual, Environment block; `grub-core/lib/envblk.c`).

use std::ops::Range;

use crate::odd::{Odd, refuse_zeroes};
use crate::run;

const HEAD: &str = "# GRUB Environment Block\n";
/// The size that `grub-editenv create` makes; others are multiples of it.
const BLOCK_BYTES: usize = 1024;

/// The value of a variable, and the number of its line counted from 1.
#[must_use]
pub fn value<'a>(text: &'a str, name: &str) -> Option<(&'a str, usize)> {
    let mut lines = run::lines(text).enumerate();
    lines.find_map(|(index, (_, line))| Some((line.strip_prefix(name)?.strip_prefix('=')?, index + 1)))
}

/// The block without its padding.
pub(crate) fn body(text: &str) -> Result<&str, Odd> {
    refuse_cut_off(text)?;
    let body = text.trim_end_matches('#');
    if !body.ends_with('\n') {
        return Err(Odd::CutOff { what: "its last line has no end" });
    }
    Ok(body)
}

/// Why a text is no environment block: GRUB reads nothing out of it, or would have no place to write.
///
/// # Errors
/// One without its head, one of an odd size, and one with zeroes.
pub fn refuse_cut_off(text: &str) -> Result<(), Odd> {
    refuse_zeroes(text)?;
    if !text.starts_with(HEAD) {
        return Err(Odd::CutOff { what: "it does not begin as an environment block of GRUB" });
    }
    if !text.len().is_multiple_of(BLOCK_BYTES) {
        return Err(Odd::CutOff { what: "its size is no multiple of 1024 bytes" });
    }
    Ok(())
}

/// What a disk writes whole or not at all.
const SECTOR_BYTES: usize = 512;

/// Whether a block is partly one text and partly another, as a power cut leaves it that comes between two sectors: the
/// block is written where it lies, by GRUB as by Linux.
#[must_use]
pub fn is_torn(now: &str, one: &str, other: &str) -> bool {
    let [now, one, other] = [now, one, other].map(str::as_bytes);
    let is_mixed = now.len() == one.len() && now.len() == other.len() && now != one && now != other;
    let sectors = now.chunks(SECTOR_BYTES).zip(one.chunks(SECTOR_BYTES).zip(other.chunks(SECTOR_BYTES)));
    is_mixed && sectors.into_iter().all(|(now, (one, other))| now == one || now == other)
}

/// What the menus of distributions have GRUB save in every boot: one byte for another.
const NOTED: [&str; 3] = ["boot_success", "boot_indeterminate", "recordfail"];

/// A block with what GRUB has noted in another one about the boots since, where that is as long.
#[must_use]
pub fn as_noted(text: &str, now: &str) -> String {
    let mut text = text.to_owned();
    for name in NOTED {
        let (Some((old, _)), Some((new, _))) = (value(&text, name), value(now, name)) else { continue };
        if old.len() == new.len() {
            text = text.replacen(&format!("\n{name}={old}\n"), &format!("\n{name}={new}\n"), 1);
        }
    }
    text
}

/// A block without any variable.
pub(crate) fn fresh() -> String {
    padded(HEAD, BLOCK_BYTES).expect("the head is shorter than a block")
}

/// The block without its padding, and where `kernelopts` lies.
fn parts(text: &str) -> Result<(&str, Range<usize>), Odd> {
    let body = body(text)?;
    let found: Vec<Range<usize>> = run::lines(body)
        .filter(|(_, line)| line.starts_with("kernelopts="))
        .map(|(range, _)| range)
        .collect();
    match found.as_slice() {
        [one] => Ok((body, one.clone())),
        [] => Err(Odd::CutOff { what: "no variable `kernelopts` gives the kernel its root" }),
        more => Err(Odd::Twice { name: "kernelopts", count: more.len() }),
    }
}

/// The block with its padding, in the size that it had: GRUB cannot make the file longer.
pub(crate) fn padded(body: &str, size: usize) -> Option<String> {
    Some(format!("{body}{}", "#".repeat(size.checked_sub(body.len())?)))
}

pub(crate) fn insert(text: &str, arguments: &str) -> Result<String, Odd> {
    let (body, line) = parts(text)?;
    run::refuse_out_of_reach(&body[line.clone()])?;
    let longer = run::insert(body, &line, arguments);
    padded(&longer, text.len()).ok_or_else(|| no_room(text, body, &longer))
}

/// What a block says that is full.
pub(crate) fn no_room(text: &str, body: &str, longer: &str) -> Odd {
    Odd::NoRoom { free: text.len() - body.len(), wanted: longer.len() - body.len() }
}

pub(crate) fn remove(text: &str, arguments: &str) -> Option<String> {
    let (body, line) = parts(text).ok()?;
    padded(&run::remove(body, &line, arguments)?, text.len())
}
