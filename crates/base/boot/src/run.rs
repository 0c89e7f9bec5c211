//! A run of arguments in a line: a blank and the arguments, behind the last one that is there.

use std::ops::Range;

use crate::odd::Odd;

/// What lies between two arguments for the kernel (lib/ctype.c). Other blanks of Unicode are a part of a word there: an
/// argument before one of them would be another argument.
fn is_blank(c: char) -> bool {
    c.is_ascii_whitespace() || c == '\u{b}'
}

/// The arguments of a line.
pub(crate) fn words_of(line: &str) -> impl Iterator<Item = &str> {
    line.split(is_blank).filter(|word| !word.is_empty())
}

/// The text with a run at the end of a line, before blanks and the carriage return that end it.
pub(crate) fn insert(text: &str, line: &Range<usize>, arguments: &str) -> String {
    let at = line.start + text[line.clone()].trim_end_matches(is_blank).len();
    format!("{} {arguments}{}", &text[..at], &text[at..])
}

/// The text without the last run of these arguments in a line; `None` where the line has none.
pub(crate) fn remove(text: &str, line: &Range<usize>, arguments: &str) -> Option<String> {
    let run = format!(" {arguments}");
    let within = &text[line.clone()];
    let whole = |at: &usize| within[at + run.len()..].chars().next().is_none_or(is_blank);
    let at = within.rmatch_indices(&run).map(|(at, _)| at).find(whole)? + line.start;
    Some(format!("{}{}", &text[..at], &text[at + run.len()..]))
}

/// Whether a run has another one within, and is more than that.
pub(crate) fn has_within(run: &str, other: &str) -> bool {
    let (words, other): (Vec<&str>, Vec<&str>) = (words_of(run).collect(), words_of(other).collect());
    words.len() > other.len() && words.windows(other.len().max(1)).any(|window| window == other)
}

/// Where the last run of these arguments begins in a text.
pub(crate) fn last(text: &str, arguments: &str) -> Option<usize> {
    let whole = |at: &usize| text[at + arguments.len()..].chars().next().is_none_or(is_blank);
    let is_word = |at: &usize| text[..*at].chars().next_back().is_some_and(is_blank);
    text.rmatch_indices(arguments).map(|(at, _)| at).find(|at| whole(at) && is_word(at))
}

/// How often a line gives these arguments word for word in one run, besides those of `others`: longer runs that
/// somebody else gives, and that may have them within.
#[must_use]
pub fn count_besides(line: &str, arguments: &str, others: &[&str]) -> usize {
    let mut words: Vec<&str> = words_of(line).collect();
    for other in others {
        while take_out(&mut words, other) {}
    }
    let mut count = 0;
    while take_out(&mut words, arguments) {
        count += 1;
    }
    count
}

/// Whether a line has these arguments in one run, and none of them with another value behind that.
pub(crate) fn gives(line: &str, arguments: &str) -> bool {
    let words: Vec<&str> = words_of(line).collect();
    let run: Vec<&str> = words_of(arguments).collect();
    // The kernel takes dashes for underscores.
    let name = |word: &&str| word.split('=').next().unwrap_or_default().replace('-', "_");
    let own: Vec<String> = run.iter().map(name).collect();
    let at = words.windows(run.len().max(1)).rposition(|window| window == run);
    at.is_some_and(|at| words[at + run.len()..].iter().all(|word| !own.contains(&name(word))))
}

/// Refuses arguments behind which another one would not reach the kernel: within a quote that has no end it would be a
/// part of a value, and behind `--` it is for process 1 (`next_arg` in `lib/cmdline.c`, `parse_args` in
/// `kernel/params.c`).
///
/// # Errors
/// Which of both it is.
pub fn refuse_out_of_reach(line: &str) -> Result<(), Odd> {
    let mut is_quoted = false;
    let separates = |c: char| {
        is_quoted ^= c == '"';
        is_blank(c) && !is_quoted
    };
    let is_end = line.split(separates).any(|word| word.trim_matches('"') == "--");
    if is_end {
        return Err(Odd::ForProcess1);
    }
    if line.matches('"').count().is_multiple_of(2) {
        return Ok(());
    }
    Err(Odd::CutOff { what: "a quote in its arguments has no end" })
}

/// Takes one run out of some words; whether it was there. What stood before it and behind it is no run.
fn take_out(words: &mut Vec<&str>, arguments: &str) -> bool {
    let run: Vec<&str> = words_of(arguments).collect();
    let at = words.windows(run.len().max(1)).position(|window| window == run);
    // A line has no word that is empty.
    at.is_some_and(|at| words.splice(at..at + run.len(), [""]).next().is_some())
}

/// The lines of a text without their ends, with where they lie.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = (Range<usize>, &str)> {
    text.split_inclusive('\n').scan(0, |start, line| {
        let begin = *start;
        *start += line.len();
        let bare = line.strip_suffix('\n').unwrap_or(line);
        Some((begin..begin + bare.len(), bare))
    })
}

/// The line of `/etc/kernel/cmdline` that holds arguments: the last one that is not empty.
pub(crate) fn cmdline(text: &str) -> Option<Range<usize>> {
    let is_meant = |line: &str| !line.trim().is_empty() && !line.trim_start().starts_with('#');
    lines(text).filter(|(_, line)| is_meant(line)).last().map(|(range, _)| range)
}

/// Refuses arguments of `/etc/kernel/cmdline` that name no root, or a part of its name, while the kernel that runs was
/// given one: whatever is left of a file that was cut off is arguments, too. A host whose root the firmware's table of
/// partitions tells gives none.
///
/// # Errors
/// Which of both it is.
pub fn refuse_rootless(text: &str, running: &str) -> Result<(), Odd> {
    let root = |line: &str| {
        let mut roots = line.split_whitespace().filter_map(|word| word.strip_prefix("root="));
        roots.next_back().map(str::to_owned).filter(|root| !root.is_empty())
    };
    let own = cmdline(text).and_then(|line| root(&text[line]));
    match (own, root(running)) {
        (None, Some(_)) => {
            Err(Odd::CutOff { what: "it names no root=, and the kernel that runs was given one" })
        }
        (Some(own), Some(running)) if own != running && running.starts_with(&own) => {
            Err(Odd::CutOff { what: "its root= is the beginning of the one that runs" })
        }
        _ if ends_within(text, running) => {
            Err(Odd::CutOff { what: "its end is in the middle of an argument that runs" })
        }
        _ => Ok(()),
    }
}

/// Whether a text without an end of its line is a part of a line, and ends within one of its arguments.
fn ends_within(text: &str, line: &str) -> bool {
    let own: Vec<&str> = cmdline(text).map(|own| words_of(&text[own]).collect()).unwrap_or_default();
    let Some((last, before)) = own.split_last().filter(|_| !text.ends_with('\n')) else { return false };
    let words: Vec<&str> = words_of(line).collect();
    let is_cut = |window: &[&str]| {
        let (end, start) = window.split_last().expect("as many as there are");
        start == before && end != last && end.starts_with(last)
    };
    words.windows(own.len()).any(is_cut)
}

pub(crate) fn insert_in_cmdline(text: &str, arguments: &str) -> Result<String, Odd> {
    let line = cmdline(text).ok_or(Odd::CutOff { what: "there are no arguments in it" })?;
    refuse_out_of_reach(&text[line.clone()])?;
    Ok(insert(text, &line, arguments))
}

pub(crate) fn remove_from_cmdline(text: &str, arguments: &str) -> Option<String> {
    remove(text, &cmdline(text)?, arguments)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_of_a_file_that_was_cut_off_names_no_root_or_a_part_of_it() {
        let running = "BOOT_IMAGE=/vmlinuz root=UUID=12-34 ro quiet";
        for (text, is_whole) in [
            ("root=UUID=12-34 ro\n", true),
            ("ro root=/dev/sda1\n", true),
            ("# ours\nroot=UUID=12-34", true),
            ("root=UUID=12-34 ro qu\n", true),
            ("root=UUID=12-34 ro qu", false),
            ("root=UUID=12-34 ro quiet", true),
            ("root=UUID=12-3", false),
            ("root=", false),
            ("roo", false),
            ("", false),
        ] {
            assert_eq!(refuse_rootless(text, running).is_ok(), is_whole, "{text}");
            assert!(refuse_rootless(text, "ro quiet").is_ok(), "{text}");
        }
    }

    #[test]
    fn a_blank_that_is_none_for_the_kernel_is_a_part_of_a_word() {
        // U+0085 and U+2028 are blanks of Unicode.
        for odd in ["ro\u{85}", "ro\u{2028}"] {
            let text = format!("options root=/dev/vda {odd} \u{b}\r\n");
            let line = 0..text.len() - 1;
            let with = insert(&text, &line, "nosmt=force");
            assert_eq!(with, format!("options root=/dev/vda {odd} nosmt=force \u{b}\r\n"));
            assert!(gives(&with, "nosmt=force"));
            assert_eq!(remove(&with, &(0..with.len() - 1), "nosmt=force"), Some(text));
            assert!(!gives(&format!("ro nosmt=force{odd}"), "nosmt=force"));
        }
    }
}
