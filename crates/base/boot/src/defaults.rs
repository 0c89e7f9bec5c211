//! `/etc/default/grub`: a block of ours at its end.
//!
//! The file is read by a shell, so that a line at the end can add to what the lines before it have set, whatever they
//! look like. `GRUB_CMDLINE_LINUX_DEFAULT` is for the normal entries of the menu: those for recovery stay as they are.

use crate::block::Block;
use crate::odd::Odd;
use crate::run;
use crate::shell::Shell;

const BLOCK: Block = Block {
    begin: "# BEGIN planish: `planish undo` takes these lines out again\n",
    begin_unended: "\n# BEGIN planish, after a line without end: `planish undo` takes these lines out again\n",
    end: "# END planish\n",
};

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

/// Whether a line says something of the variables whose words a menu's entries get.
#[must_use]
pub fn is_of_menu(line: &str) -> bool {
    let line = line.trim_start();
    !line.starts_with('#') && line.contains("GRUB_CMDLINE_LINUX")
}

pub(crate) fn insert(text: &str, arguments: &str) -> Result<String, Odd> {
    let mut shell = Shell::default();
    shell.source(text, "");
    // In this order the menu's scripts put them behind the kernel.
    let before = ["GRUB_CMDLINE_LINUX", "GRUB_CMDLINE_LINUX_DEFAULT"].map(|name| shell.value(name));
    run::refuse_out_of_reach(&before.map(Option::unwrap_or_default).join(" "))?;
    BLOCK.insert(text, &drop_in_line(arguments))
}

pub(crate) fn remove(text: &str, arguments: &str) -> Option<String> {
    BLOCK.remove(text, &drop_in_line(arguments))
}
