//! `grub.cfg` as its generator wrote it: what the entries of the menu give their kernels.

/// An entry that starts a Linux kernel of this system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MenuEntry {
    /// The name that the menu shows.
    pub title: String,
    /// Whether it is for repairs: the generator leaves the normal arguments out of it.
    pub recovery: bool,
    /// The number of the line that names the kernel, counted from 1.
    pub line: usize,
    /// What the kernel is given, in one line.
    pub arguments: String,
}

/// The entries that the script for this system's kernels wrote, in the order of the menu. What `os-prober` found of
/// other systems is none of them.
#[must_use]
pub fn entries(text: &str) -> Vec<MenuEntry> {
    let mut found = Vec::new();
    let (mut own, mut title) = (false, String::new());
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if let Some(script) = line.strip_prefix("### BEGIN ") {
            own = script.contains("_linux");
        } else if line.starts_with("### END ") {
            own = false;
        } else if let Some(rest) = line.strip_prefix("menuentry ") {
            title = quoted(rest);
        }
        let mut words = line.split_whitespace();
        if own && matches!(words.next(), Some("linux" | "linux16" | "linuxefi")) && words.next().is_some() {
            let arguments: Vec<&str> = words.collect();
            let single = arguments.iter().any(|word| matches!(*word, "single" | "recovery"));
            let recovery = single || title.contains("recovery mode");
            let arguments = arguments.join(" ");
            found.push(MenuEntry { title: title.clone(), recovery, line: index + 1, arguments });
        }
    }
    found
}

/// The text in the first quotes.
fn quoted(text: &str) -> String {
    let quote = text.chars().next().filter(|c| matches!(c, '\'' | '"'));
    let inner = quote.and_then(|quote| text[1..].split(quote).next());
    inner.unwrap_or_else(|| text.split_whitespace().next().unwrap_or_default()).to_owned()
}

/// Whether the menu is made at boot from all entries of the Boot Loader Specification, where that has them. GRUB 2.14
/// can be told of another folder, or of a part of them: then it is not known here what is booted.
#[must_use]
pub fn reads_entries(text: &str) -> bool {
    // Behind a device, or below the mount of the firmware's partition, lie others than those that are read here.
    let is_usual =
        |folder: &str| ["/loader/entries", "/boot/loader/entries"].contains(&folder.trim_end_matches('/'));
    text.lines().any(|line| match line.split_whitespace().collect::<Vec<_>>().as_slice() {
        ["blscfg"] => true,
        ["blscfg", "-p" | "--path", folder] => is_usual(folder),
        _ => false,
    })
}

/// The script whose lines a menu begins and does not end: the rest of it was cut off.
#[must_use]
pub fn unfinished(text: &str) -> Option<&str> {
    let mut open = None;
    for line in text.lines().map(str::trim) {
        if let Some(script) = line.strip_prefix("### BEGIN ") {
            open = Some(script.trim_end_matches('#').trim_end());
        } else if line.starts_with("### END ") && line.ends_with("###") {
            open = None;
        }
    }
    open
}

/// How many of the normal entries give these arguments, in one run, and how many there are.
#[must_use]
pub fn given(text: &str, arguments: &str) -> (usize, usize) {
    let normal: Vec<MenuEntry> = entries(text).into_iter().filter(|entry| !entry.recovery).collect();
    let run = format!(" {arguments} ");
    let holds = |entry: &&MenuEntry| format!(" {} ", entry.arguments).contains(&run);
    (normal.iter().filter(holds).count(), normal.len())
}
