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

/// What a menu begins and does not end, the lines of a script or an entry: the rest of it was cut off.
#[must_use]
pub fn unfinished(text: &str) -> Option<&str> {
    let (mut open, mut blocks) = (None, Vec::new());
    for line in text.lines().map(str::trim) {
        let begins = ["menuentry ", "submenu "].iter().any(|word| line.starts_with(word));
        if line.starts_with('}') {
            blocks.pop();
        } else if begins && line.ends_with('{') {
            blocks.push(line.trim_end_matches('{').trim_end());
        }
        if let Some(script) = line.strip_prefix("### BEGIN ") {
            open = Some(script.trim_end_matches('#').trim_end());
        } else if line.starts_with("### END ") && line.ends_with("###") {
            open = None;
        }
    }
    open.or(blocks.first().copied())
}

/// How many of the normal entries give these arguments, in one run, and how many there are.
#[must_use]
pub fn given(text: &str, arguments: &str) -> (usize, usize) {
    let normal: Vec<MenuEntry> = entries(text).into_iter().filter(|entry| !entry.recovery).collect();
    let run = format!(" {arguments} ");
    let holds = |entry: &&MenuEntry| format!(" {} ", entry.arguments).contains(&run);
    (normal.iter().filter(holds).count(), normal.len())
}

/// An argument without the quotes and backslashes around its characters: a menu may write it in another way.
#[must_use]
pub fn bare(argument: &str) -> String {
    argument.chars().filter(|c| !"\"'\\".contains(*c)).collect()
}

/// What the program that makes a menu gives every kernel by itself, and variables that the menu fills in.
fn is_of_generator(argument: &str) -> bool {
    let name = argument.split('=').next().unwrap_or(argument);
    ["root", "ro", "rootflags", "init", "BOOT_IMAGE"].contains(&name) || argument.starts_with('$')
}

/// The arguments of the normal entries that no program puts there by itself, each once, with the line that gives it
/// first.
#[must_use]
pub fn typed(text: &str) -> Vec<(String, usize)> {
    let mut typed: Vec<(String, usize)> = Vec::new();
    for entry in entries(text).into_iter().filter(|entry| !entry.recovery) {
        for word in entry.arguments.split_whitespace().map(bare) {
            if !is_of_generator(&word) && typed.iter().all(|(known, _)| *known != word) {
                typed.push((word, entry.line));
            }
        }
    }
    typed
}

/// The arguments that a normal entry of an older menu gave and the same entry of a newer one does not, each once. An
/// entry that is gone is compared with the first.
#[must_use]
pub fn lost(old: &str, new: &str) -> Vec<String> {
    let normal = |text: &str| -> Vec<MenuEntry> {
        entries(text).into_iter().filter(|entry| !entry.recovery).collect()
    };
    let new = normal(new);
    let mut lost = Vec::new();
    for entry in normal(old) {
        let same = new.iter().find(|other| other.title == entry.title).or_else(|| new.first());
        let Some(same) = same else { continue };
        let kept: Vec<String> = same.arguments.split_whitespace().map(bare).collect();
        for word in entry.arguments.split_whitespace().map(bare) {
            if !kept.contains(&word) && !lost.contains(&word) {
                lost.push(word);
            }
        }
    }
    lost
}

#[cfg(test)]
mod tests {
    use super::*;

    fn menu(first: &str, second: &str) -> String {
        format!(
            "### BEGIN /etc/grub.d/10_linux ###\nmenuentry 'A' {{\n linux /v {first}\n}}\n\
             menuentry 'A, old' {{\n linux /o {second}\n}}\nmenuentry 'A (recovery mode)' {{\n linux /v ro single\n}}\n\
             ### END /etc/grub.d/10_linux ###\n"
        )
    }

    #[test]
    fn what_somebody_typed_into_a_menu_is_found_and_missed() {
        let old = menu("root=UUID=1 ro quiet $vt_handoff", "root=UUID=1 ro rd.lvm.lv=\\\"x/root\\\" quiet");
        assert_eq!(typed(&old), [("quiet".to_owned(), 3), ("rd.lvm.lv=x/root".to_owned(), 6)]);
        let new = menu("root=UUID=1 ro quiet $vt_handoff", "root=UUID=1 ro quiet");
        assert_eq!(lost(&old, &new), ["rd.lvm.lv=x/root"]);
        assert_eq!(lost(&new, &old), [""; 0]);
        assert_eq!((lost(&old, ""), lost("", &new)), (Vec::new(), Vec::new()));
    }
}
