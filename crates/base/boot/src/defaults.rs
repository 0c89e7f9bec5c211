//! `/etc/default/grub`: a block of ours at its end.
//!
//! The file is read by a shell, so that a line at the end can add to what the lines before it have set, whatever they
//! look like. `GRUB_CMDLINE_LINUX_DEFAULT` is for the normal entries of the menu: those for recovery stay as they are.

use crate::odd::Odd;
use crate::shell;

const BEGIN: &str = "# BEGIN planish: `planish undo` takes these lines out again\n";
/// The same where the line before had no end, which the block had to give it.
const BEGIN_UNENDED: &str =
    "\n# BEGIN planish, after a line without end: `planish undo` takes these lines out again\n";
const END: &str = "# END planish\n";

/// The assignment that adds arguments to what was set before.
#[must_use]
pub fn drop_in_line(arguments: &str) -> String {
    format!("GRUB_CMDLINE_LINUX_DEFAULT=\"$GRUB_CMDLINE_LINUX_DEFAULT {arguments}\"\n")
}

/// The arguments that such an assignment adds.
#[must_use]
pub fn added_by(line: &str) -> Option<&str> {
    line.strip_prefix("GRUB_CMDLINE_LINUX_DEFAULT=\"$GRUB_CMDLINE_LINUX_DEFAULT ")?.strip_suffix('"')
}

fn block(begin: &str, arguments: &str) -> String {
    format!("{begin}{}{END}", drop_in_line(arguments))
}

pub(crate) fn insert(text: &str, arguments: &str) -> Result<String, Odd> {
    shell::refuse_unfinished(text)?;
    let begin = if text.is_empty() || text.ends_with('\n') { BEGIN } else { BEGIN_UNENDED };
    Ok(text.to_owned() + &block(begin, arguments))
}

pub(crate) fn remove(text: &str, arguments: &str) -> Option<String> {
    let unended = block(BEGIN_UNENDED, arguments);
    if let Some(at) = text.rfind(&unended) {
        let (before, after) = (&text[..at], &text[at + unended.len()..]);
        // The line before gets its missing end from whatever follows now.
        return Some(match after.strip_prefix(BEGIN) {
            Some(next) => format!("{before}{BEGIN_UNENDED}{next}"),
            None if after.is_empty() => before.to_owned(),
            None => format!("{before}\n{after}"),
        });
    }
    let plain = block(BEGIN, arguments);
    let at = text.rfind(&plain)?;
    Some(format!("{}{}", &text[..at], &text[at + plain.len()..]))
}
