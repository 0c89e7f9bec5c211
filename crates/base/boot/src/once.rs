//! An entry that the loader boots once, as text: a copy of the one that it boots by default, with arguments added.
//!
//! The default stays what it is. GRUB is told by `next_entry` of its environment block, which the menu's own first
//! lines take out *before* anything is started; systemd-boot by a variable of the firmware, which it removes before it
//! starts the entry. So a machine that does not come up is brought back by switching it off and on.
//!
//! | loader | the entry | what names it |
//! |---|---|---|
//! | GRUB, a made menu or entries | a block in `custom.cfg`, which the menu reads last | `next_entry` in `grubenv` |
//! | systemd-boot | a file in `loader/entries` | `LoaderEntryOneShot` |
//!
//! GRUB's copy is in `custom.cfg` also where the menu reads entries of files: those are sorted by name and version, and
//! a file more might become the first of them, which is the default where none is saved.
//!
//! Sources: GRUB manual (grub-reboot, Environment block, `41_custom`), `util/grub.d/00_header.in`; `blscfg.c` of
//! Fedora's GRUB; systemd-boot(7), <https://systemd.io/BOOT_LOADER_INTERFACE>, `strverscmp_improved` for the order.

use crate::block::Block;
use crate::entry::{Entry, fields};
use crate::odd::Odd;
use crate::{entry, env, refuse_odd, run, tag};

/// By what GRUB knows the entry.
pub const MENU_ID: &str = "planish-trial";
/// By what systemd-boot knows the entry. Of names it sorts this one last, behind all that begin with a digit or a
/// small letter and all that have a key to sort by: what comes first may be the default.
pub const FILE_ID: &str = "AAA-planish-trial";

const BLOCK: Block = Block {
    begin: "# BEGIN planish trial boot: `planish undo` takes these lines out again\n",
    begin_unended: "\n# BEGIN planish trial boot, after a line without end: `planish undo` takes these lines out\n",
    end: "# END planish trial boot\n",
};

/// The variable of GRUB that names the entry of the next boot.
const NEXT: &str = "next_entry=";

/// Whether a menu begins as that of GRUB 2.00 and later: it loads its environment, makes `next_entry` the default,
/// clears it and saves that, all before the first entry. A menu that did not would boot the entry for ever.
#[must_use]
pub fn takes_next_entry(menu: &str) -> bool {
    let awaited: [fn(&str) -> bool; 4] = [
        |line| line.starts_with("load_env"),
        |line| line == "set default=\"${next_entry}\"",
        |line| line == "set next_entry=",
        |line| line.starts_with("save_env") && line.split_whitespace().any(|word| word == "next_entry"),
    ];
    let mut awaited = awaited.iter().peekable();
    for line in head(menu) {
        awaited.next_if(|is_met| is_met(line));
    }
    awaited.peek().is_none()
}

/// Whether a menu reads `custom.cfg` from its own folder, behind its entries.
#[must_use]
pub fn reads_custom(menu: &str) -> bool {
    let entries = head(menu).count();
    let behind = menu.lines().skip(entries).map(str::trim);
    behind.filter_map(|line| line.strip_prefix("source ")).any(|file| file.ends_with("/custom.cfg"))
}

/// The lines before the first entry.
fn head(menu: &str) -> impl Iterator<Item = &str> {
    let is_entry =
        |line: &&str| matches!(line.split_whitespace().next(), Some("menuentry" | "submenu" | "blscfg"));
    menu.lines().map(str::trim).take_while(move |line| !is_entry(line))
}

/// One thing in a menu that was made.
struct Item<'a> {
    words: Vec<String>,
    /// Whether the script for this system's kernels wrote it.
    is_own: bool,
    /// Lines with their numbers, counted from 0.
    body: Vec<(usize, &'a str)>,
    below: Vec<Item<'a>>,
}

impl Item<'_> {
    fn title(&self) -> &str {
        self.words.get(1).map_or("", String::as_str)
    }

    /// The word behind an option.
    fn option(&self, names: &[&str]) -> Option<&str> {
        let at = self.words.iter().position(|word| names.contains(&word.as_str()))?;
        self.words.get(at + 1).map(String::as_str)
    }

    fn is_called(&self, name: &str) -> bool {
        self.title() == name || self.option(&["$menuentry_id_option", "--id"]) == Some(name)
    }
}

/// Words of a line of a menu, quotes taken off.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in line.chars() {
        match (quote, c) {
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (Some(open), c) if open == c => quote = None,
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

/// Menus within menus that are followed; no generator makes more than two.
const DEPTH_MAX: usize = 16;

/// Entries and menus up to the end of the menu that they are in, which lies in so many others. `None` where they lie
/// deeper than [`DEPTH_MAX`]: the stack of this program is not the file's to use up.
fn items<'a>(
    lines: &mut impl Iterator<Item = (usize, &'a str)>,
    is_own: &mut bool,
    depth: usize,
) -> Option<Vec<Item<'a>>> {
    let mut found = Vec::new();
    while let Some((_, line)) = lines.next() {
        let bare = line.trim();
        if let Some(script) = bare.strip_prefix("### BEGIN ") {
            *is_own = script.contains("_linux");
        }
        match bare.split_whitespace().next() {
            Some("menuentry") => {
                let body = lines.by_ref().take_while(|(_, line)| line.trim() != "}").collect();
                found.push(Item { words: words(bare), is_own: *is_own, body, below: Vec::new() });
            }
            Some("submenu") if depth == DEPTH_MAX => return None,
            Some("submenu") => {
                let below = items(lines, is_own, depth + 1)?;
                found.push(Item { words: words(bare), is_own: *is_own, body: Vec::new(), below });
            }
            Some("}") if depth > 0 => break,
            _ => {}
        }
    }
    Some(found)
}

/// What a menu boots when nothing names an entry for once: `set default=` of its head, where `saved` stands for the
/// variable `saved_entry`.
#[must_use]
pub fn default_of<'a>(menu: &'a str, saved: Option<&'a str>) -> Option<&'a str> {
    let settings = head(menu).filter_map(|line| line.strip_prefix("set default=\"")?.strip_suffix('"'));
    let default = settings.filter(|value| *value != "${next_entry}").last()?;
    let default = if default == "${saved_entry}" { saved.unwrap_or_default() } else { default };
    Some(if default.is_empty() { "0" } else { default })
}

/// Whether entries of files are the first that a menu shows: then GRUB counts them from 0.
#[must_use]
pub fn begins_with_files(menu: &str) -> bool {
    let mut kinds = menu.lines().filter_map(|line| line.split_whitespace().next());
    kinds.find(|word| matches!(*word, "menuentry" | "submenu" | "blscfg")) == Some("blscfg")
}

/// The entry that a path of numbers, names and titles leads to, as `default` has it.
fn find<'a, 'b>(items: &'b [Item<'a>], path: &str) -> Option<&'b Item<'a>> {
    let (first, rest) = path.split_once('>').map_or((path, None), |(first, rest)| (first, Some(rest)));
    let found = match first.parse::<usize>() {
        Ok(index) => items.get(index),
        Err(_) => items.iter().find(|item| item.is_called(first)),
    }?;
    match rest {
        Some(rest) => find(&found.below, rest),
        // A menu stands for the first entry in it.
        None if found.body.is_empty() => find(&found.below, "0"),
        None => Some(found),
    }
}

/// The same as GRUB takes it at a boot: what names nothing stands for the first of its menu (`run_menu` in
/// `grub-core/normal/menu.c`).
fn taken<'a, 'b>(items: &'b [Item<'a>], path: &str) -> Option<&'b Item<'a>> {
    let (first, rest) = path.split_once('>').map_or((path, "0"), |(first, rest)| (first, rest));
    let named = match first.parse::<usize>() {
        Ok(index) => items.get(index),
        Err(_) => items.iter().find(|item| item.is_called(first)),
    };
    let found = named.or(items.first())?;
    if found.below.is_empty() { Some(found) } else { taken(&found.below, rest) }
}

/// An entry for once: what is copied, and the copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Copy {
    /// The title of the entry that is booted by default.
    pub title: String,
    /// The copy, with the arguments.
    pub text: String,
}

/// The command of a line of an entry, where it starts a kernel.
fn is_kernel(line: &str) -> bool {
    matches!(line.split_whitespace().next(), Some("linux" | "linux16" | "linuxefi"))
}

/// Title of the entry that a menu boots by default, and its kernel with what that is given. `saved` is the variable
/// `saved_entry`. `None` where nobody can tell.
#[must_use]
pub fn default_in_menu(menu: &str, saved: Option<&str>) -> Option<(String, String)> {
    let all = items(&mut menu.lines().enumerate(), &mut false, 0)?;
    let item = find(&all, default_of(menu, saved)?)?;
    let words: Vec<&str> =
        item.body.iter().find(|(_, line)| is_kernel(line))?.1.split_whitespace().skip(1).collect();
    Some((item.title().to_owned(), words.join(" ")))
}

/// The entry that a menu starts where nothing names one for once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Started {
    /// Its title.
    pub title: String,
    /// The number of the line that starts its kernel, counted from 1.
    pub line: usize,
    /// What that is given, in one line.
    pub arguments: String,
}

/// The same as GRUB finds it at a boot, which takes the first entry where the menu names none or one that is not there.
/// `None` where nobody can tell, and where it starts no kernel of Linux.
#[must_use]
pub fn started_by_menu(menu: &str, saved: Option<&str>) -> Option<Started> {
    let all = items(&mut menu.lines().enumerate(), &mut false, 0)?;
    let is_named = head(menu).any(|line| line.starts_with("set default="));
    let default = if is_named { default_of(menu, saved)? } else { "0" };
    let item = taken(&all, default)?;
    let (index, line) = item.body.iter().find(|(_, line)| is_kernel(line))?;
    let words: Vec<&str> = line.split_whitespace().skip(2).collect();
    Some(Started { title: item.title().to_owned(), line: index + 1, arguments: words.join(" ") })
}

/// The same of an entry of a file.
#[must_use]
pub fn default_in_entry(text: &str) -> Option<(String, String)> {
    let all = |wanted: &'static str| {
        let values = fields(text).filter(move |(_, key, _)| *key == wanted);
        values.flat_map(|(_, _, value)| value.split_whitespace())
    };
    let words: Vec<&str> = all("linux").chain(all("options")).collect();
    Some((Entry::parse(text)?.title, words.join(" ")))
}

/// A copy of the entry that a menu boots by default. `saved` is the variable `saved_entry`.
///
/// # Errors
/// Arguments that a loader would take apart; a menu whose default cannot be told, or is no entry of this system that
/// starts one kernel.
pub fn of_menu(menu: &str, saved: Option<&str>, arguments: &str) -> Result<Copy, Odd> {
    refuse_odd(arguments)?;
    let default =
        default_of(menu, saved).ok_or(Odd::CutOff { what: "it does not say what is booted by default" })?;
    let deep = Odd::Unknown { what: "menus within menus within menus" };
    let all = items(&mut menu.lines().enumerate(), &mut false, 0).ok_or(deep)?;
    let unknown = Odd::Unknown { what: "a default that is no entry of this system" };
    let item = find(&all, default).filter(|item| item.is_own).ok_or(unknown)?;
    let mut body = String::new();
    let mut kernels = 0;
    for (_, line) in &item.body {
        if line.split_whitespace().next() == Some("savedefault") {
            continue;
        }
        body += line.trim_end();
        if is_kernel(line) {
            kernels += 1;
            run::refuse_out_of_reach(line)?;
            body = body + " " + arguments;
        }
        body.push('\n');
    }
    match kernels {
        0 => return Err(Odd::CutOff { what: "no line of its default entry starts a kernel" }),
        1 => {}
        count => return Err(Odd::Twice { name: "linux", count }),
    }
    let users = item.option(&["--users"]).map(|users| format!("--users '{users}' ")).unwrap_or_default();
    let is_free = item.words.iter().any(|word| word == "--unrestricted");
    let options = users + if is_free { "--unrestricted " } else { "" };
    Ok(Copy { title: item.title().to_owned(), text: menu_entry(item.title(), &options, &body) })
}

fn menu_entry(title: &str, options: &str, body: &str) -> String {
    let title = title.replace(['\'', '\\'], "");
    format!("menuentry 'planish trial boot: {title}' {options}--id '{MENU_ID}' {{\n{body}}}\n")
}

/// The same from an entry of a file, as `blscfg` makes an entry of the menu of it.
///
/// # Errors
/// Arguments that a loader would take apart, and a file that is cut off.
pub fn of_entry(text: &str, menu: &str, arguments: &str) -> Result<Copy, Odd> {
    refuse_odd(arguments)?;
    entry::options(text)?;
    let all = |wanted: &'static str| {
        let values = fields(text).filter(move |(_, key, _)| *key == wanted).map(|(_, _, value)| value.trim());
        values.filter(|value| !value.is_empty())
    };
    let (kernel, options) =
        (all("linux").next().unwrap_or_default(), all("options").next().unwrap_or_default());
    run::refuse_out_of_reach(options)?;
    let device =
        |word: &str| if word.starts_with('/') { format!(" ($root){word}") } else { format!(" {word}") };
    let mut body = String::new();
    if menu.contains("load_video") {
        body += "\tload_video\n";
    }
    body += "\tset gfxpayload=keep\n\tinsmod gzio\n";
    body += &format!("\tlinux ($root){kernel} {options} {arguments}\n");
    let initrd: String = all("initrd").flat_map(str::split_whitespace).map(device).collect();
    if !initrd.is_empty() {
        body += &format!("\tinitrd{initrd}\n");
    }
    if let Some(tree) = all("devicetree").next() {
        body += &format!("\tdevicetree ($root){tree}\n");
    }
    // `blscfg` lets everybody start an entry that names nobody, and a `menuentry` only who is a superuser.
    let users = all("grub_users").next();
    if users.is_some_and(|users| !users.chars().all(|c| c.is_alphanumeric() || "_,. -$".contains(c))) {
        return Err(Odd::Unknown { what: "the users of an entry" });
    }
    let access = users.map_or("--unrestricted ".to_owned(), |users| format!("--users \"{users}\" "));
    let title = Entry::parse(text).map(|entry| entry.title).unwrap_or_default();
    let text = menu_entry(&title, &access, &body);
    Ok(Copy { title, text })
}

/// A copy of an entry of a file that systemd-boot reads: a file of its own.
///
/// # Errors
/// Arguments that a loader would take apart, and a file that is cut off.
pub fn file_of_entry(text: &str, arguments: &str) -> Result<Copy, Odd> {
    refuse_odd(arguments)?;
    let line = entry::options(text)?;
    run::refuse_out_of_reach(&text[line.clone()])?;
    let edited = run::insert(text, &line, arguments);
    let title = Entry::parse(text).map(|entry| entry.title).unwrap_or_default();
    let mut copy = format!("title planish trial boot: {title}\n");
    // Without a key it is sorted behind all that have one.
    // Whose the arguments of the one that is copied are is said there.
    let is_kept = |line: &str| {
        !matches!(line.split_whitespace().next(), Some("title" | "sort-key")) && !tag::is_tag(line)
    };
    for (_, line) in run::lines(&edited).filter(|(_, line)| is_kept(line)) {
        copy = copy + line + "\n";
    }
    Ok(Copy { title, text: copy })
}

/// `custom.cfg` with an entry at its end. A file that is not there is empty.
///
/// # Errors
/// A text that ends within something, which a block at its end would become a part of.
pub fn add(text: &str, entry: &str) -> Result<String, Odd> {
    BLOCK.insert(text, entry)
}

/// `custom.cfg` without that entry; `None` when it is not there as it was put in.
#[must_use]
pub fn take_out(text: &str, entry: &str) -> Option<String> {
    BLOCK.remove(text, entry)
}

/// Whether `custom.cfg` has an entry for once, as it was put in or not.
#[must_use]
pub fn has_entry(text: &str) -> bool {
    text.lines().any(|line| line.starts_with("menuentry ") && line.contains(MENU_ID))
}

/// The entry of the next boot that an environment block names.
#[must_use]
pub fn armed(block: &str) -> Option<&str> {
    env::value(block, NEXT.trim_end_matches('=')).map(|(value, _)| value).filter(|value| !value.is_empty())
}

/// The environment block that has GRUB boot the entry once. One that is not there is made, as grub-editenv does.
///
/// # Errors
/// A block that is cut off or full, and one that names an entry for the next boot already: somebody wants that.
pub fn arm(block: Option<&str>) -> Result<String, Odd> {
    let fresh = env::fresh();
    let text = block.unwrap_or(&fresh);
    let body = env::body(text)?;
    if armed(text).is_some() {
        return Err(Odd::Unknown { what: "an entry for the next boot, which somebody has set" });
    }
    let line = format!("{NEXT}{MENU_ID}\n");
    let empty = format!("{NEXT}\n");
    // After an earlier boot of that kind the name is still there, without a value.
    let longer = match run::lines(body).find(|(_, line)| *line == NEXT) {
        Some((range, _)) => format!("{}{line}{}", &body[..range.start], &body[range.start + empty.len()..]),
        None => format!("{body}{line}"),
    };
    env::padded(&longer, text.len()).ok_or_else(|| env::no_room(text, body, &longer))
}

/// The environment block without what [`arm`] put in: before the boot the name of the entry, behind it a variable
/// without a value, which GRUB leaves. `before` is the block as it was. `None` where nothing of ours is there.
#[must_use]
pub fn disarm(block: &str, before: Option<&str>) -> Option<String> {
    let body = env::body(block).ok()?;
    let is_ours =
        |line: &str| line.strip_prefix(NEXT).is_some_and(|value| value.is_empty() || value == MENU_ID);
    let (range, _) = run::lines(body).find(|(_, line)| is_ours(line))?;
    let had_one = before.is_some_and(|before| env::value(before, NEXT.trim_end_matches('=')).is_some());
    let left = if had_one { format!("{NEXT}\n") } else { String::new() };
    let after = body.get(range.end + 1..).unwrap_or_default();
    env::padded(&format!("{}{left}{after}", &body[..range.start]), block.len())
}

/// Whether a block has no variable, so that only [`arm`] can have made it.
#[must_use]
pub fn is_fresh(block: &str) -> bool {
    block == env::fresh()
}

#[cfg(test)]
mod tests;
