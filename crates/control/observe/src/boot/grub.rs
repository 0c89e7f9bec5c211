//! GRUB: a menu that a program makes from `/etc/default/grub`, or one that reads entries at boot.

use planish_boot::{
    Odd, Shell, Word, env_value, generated, once, refuse_cut_off_env, refuse_unfinished, refuse_zeroes,
};
use planish_host::{Host, ReadError};
use planish_model::{Astray, BootFile, BootFiles, BootFormat, BootLoader, Generator, Persisted};

use super::{BY_HAND, Boot, Given, NextBoot, cmdline_file, entries};

/// Where the menu is.
pub(super) const MENUS: [&str; 2] = ["/boot/grub2/grub.cfg", "/boot/grub/grub.cfg"];
pub(super) const DEFAULTS: &str = "/etc/default/grub";
pub(super) const DROP_INS: &str = "/etc/default/grub.d";
pub(super) const ENTRIES: &str = "/boot/loader/entries";
/// The arguments of normal entries alone.
const NORMAL: &str = "GRUB_CMDLINE_LINUX_DEFAULT";
const PROGRAMS: [&str; 4] = ["/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/// The environment block beside a menu, behind its links. One that is not there yet will be where its folder leads.
pub(super) fn block_beside(host: &Host, menu: &str) -> String {
    let (folder, _) = menu.rsplit_once('/').unwrap_or_default();
    let env = format!("{folder}/grubenv");
    let beside = || Some(format!("{}/grubenv", host.canonical(folder)?));
    host.canonical(&env).or_else(beside).unwrap_or(env)
}

/// GRUB, whose menu is at `menu`.
pub(super) fn look(host: &Host, menu: &str) -> Boot {
    let text = match host.read(menu) {
        Ok(text) => text,
        Err(error) => return Boot::unreadable(menu, &error),
    };
    let anew = "make the menu anew with the program of the distribution, and look at it";
    if let Err(odd) = refuse_zeroes(&text) {
        return Boot::unknown(format!("{menu}: {odd}"), anew);
    }
    match generated::unfinished(&text) {
        None if text.trim().is_empty() => Boot::unknown(format!("{menu} is empty"), anew),
        Some(script) if script.starts_with('/') => {
            Boot::unknown(format!("{menu} is cut off: what {script} wrote has no end"), anew)
        }
        Some(entry) => Boot::unknown(format!("{menu} is cut off: {entry} has no end"), anew),
        None if generated::reads_entries(&text) => with_entries(host, menu, &text),
        None if generated::entries(&text).is_empty() => Boot::unknown(
            format!("{menu} has no entry of this system: it is cut off, or made by hand"),
            BY_HAND,
        ),
        None => with_menu(host, menu, &text),
    }
}

/// A menu that reads entries at boot: they are changed, and what later ones are made from.
fn with_entries(host: &Host, menu: &str, text: &str) -> Boot {
    let found = match entries::read(host, ENTRIES) {
        Ok(found) => found,
        Err(odd) => return *odd,
    };
    if entries::normal(&found).next().is_none() {
        return Boot::unknown(
            format!("{menu} reads entries, and {ENTRIES} has none that may be read"),
            BY_HAND,
        );
    }
    let env = block_beside(host, menu);
    // Without one nothing is saved, and who may not read it is told no more than the entries say.
    let block = match host.read(&env) {
        Err(error @ ReadError::NotText { .. }) => return Boot::unknown(error.to_string(), BLOCK_CURE),
        read => read.ok(),
    };
    let odd = block.as_deref().and_then(|block| refuse_cut_off_env(block).err());
    let block = block.unwrap_or_default();
    let mut edited = Vec::new();
    if host.exists(DEFAULTS) {
        edited.push(BootFile { path: DEFAULTS.to_owned(), format: BootFormat::GrubDefaults });
    }
    edited.extend(cmdline_file(host));
    if entries::normal(&found).any(entries::Found::is_variable) {
        edited.push(BootFile { path: env.clone(), format: BootFormat::GrubEnv });
    }
    let fixed = entries::normal(&found).filter(|found| !found.is_variable());
    edited.extend(fixed.map(|found| entries::file(&found.path)));
    let saved = env_value(&block, "saved_entry").map(|(value, _)| value);
    // What none of them is called may be another system, or be counted among other entries.
    let named = once::default_of(text, saved).or(saved);
    let default = named.filter(|name| !name.is_empty()).unwrap_or("0");
    let is_counted = default.parse::<usize>().is_err() || once::begins_with_files(text);
    let next = is_counted.then(|| entries::by_grub(&found, default)).flatten();
    let variable = |name: &str| {
        let (value, line) = env_value(&block, name)?;
        Some((value.to_owned(), format!("{env}:{line}")))
    };
    let astray = next.and_then(|next| entries::astray(next, "grub2-set-default ID"));
    let next = next.map(|found| NextBoot {
        given: found.given(variable),
        source: if found.is_variable() { env.clone() } else { found.path.clone() },
        menu: None,
        lost: Vec::new(),
    });
    let is_next_untold = next.is_none();
    let files = BootFiles::of_entries("GRUB with entries", edited, is_next_untold, astray);
    match odd {
        None => Boot { loader: BootLoader::Known(files), next },
        // Nothing is written, and what the entries say is told all the same.
        Some(odd) => Boot { next, ..damaged(&env, &odd) },
    }
}

/// An environment block that GRUB reads nothing out of, the name of the entry to boot least of all.
fn damaged(env: &str, odd: &Odd) -> Boot {
    Boot::unknown(format!("{env}: {odd}"), BLOCK_CURE)
}

const BLOCK_CURE: &str =
    "look at it, and have it made anew: grub2-editenv create, then name the entry with grub2-set-default";

/// A menu that a program of the distribution makes: its sources are changed, and it is made anew.
fn with_menu(host: &Host, menu: &str, text: &str) -> Boot {
    if !host.exists(DEFAULTS) {
        return Boot::unknown(format!("{menu} is there, and {DEFAULTS} is not"), BY_HAND);
    }
    let program =
        |name: &str| PROGRAMS.iter().map(|folder| format!("{folder}/{name}")).find(|path| host.exists(path));
    let makes = |generator: &Generator| generator.output() == menu && program(generator.program()).is_some();
    let Some(generator) = Generator::ALL.into_iter().find(makes) else {
        return Boot::unknown(format!("no program here makes {menu}"), BY_HAND);
    };
    // Distributions add the reading of drop-ins to GRUB's script; others would pass over ours in silence.
    let script = ["grub-mkconfig", "grub2-mkconfig"].into_iter().find_map(program);
    let reads_drop_ins = script
        .and_then(|script| host.read_lossy(&script).ok())
        .is_some_and(|script| script.contains("default/grub.d"));
    // Beside drop-ins it is looked at, as they are; alone it is what is changed.
    let defaults = if reads_drop_ins { host.read_lossy(DEFAULTS) } else { host.read(DEFAULTS) };
    let mut read = match defaults {
        Ok(text) => vec![(DEFAULTS.to_owned(), text)],
        Err(error) => return Boot::unreadable(DEFAULTS, &error),
    };
    let (own, edited) = if reads_drop_ins {
        match drop_ins(host) {
            Ok(found) => read.extend(found),
            Err(odd) => return *odd,
        }
        // They are not edited, and the generator reads them all: it would stop at one that was cut off, or go on.
        let odd = read.iter().find_map(|(path, text)| Some((path, refuse_unfinished(text).err()?)));
        if let Some((path, odd @ Odd::CutOff { .. })) = odd {
            return Boot::unknown(format!("{path}: {odd}"), "mend the file first");
        }
        (Some(format!("{DROP_INS}/{}", Persisted::OWN_BOOT_FILE)), Vec::new())
    } else {
        (None, vec![BootFile { path: DEFAULTS.to_owned(), format: BootFormat::GrubDefaults }])
    };
    let (given, lost) = evaluated(&read);
    let (next, astray) = by_menu(host, menu, text, given, lost);
    let (name, generator) = ("GRUB".to_owned(), Some(generator));
    let makes_menu = host.is_live();
    let files =
        BootFiles { name, own, edited, generator, is_next_untold: false, makes_menu, astray, unproven: None };
    Boot { loader: BootLoader::Known(files), next: Some(next) }
}

/// What the next boot gives by a menu that was made of such sources. All its normal entries get the same; what it is
/// told to start may be another one, of which the sources say nothing.
fn by_menu(
    host: &Host,
    menu: &str,
    text: &str,
    given: Vec<Given>,
    lost: Vec<(Given, String)>,
) -> (NextBoot, Option<Astray>) {
    let block = host.read_lossy(&block_beside(host, menu)).unwrap_or_default();
    let saved = env_value(&block, "saved_entry").map(|(value, _)| value);
    let normal: Vec<generated::MenuEntry> =
        generated::entries(text).into_iter().filter(|entry| !entry.recovery).collect();
    let started = once::started_by_menu(text, saved);
    let is_normal = |line: usize| normal.iter().any(|entry| entry.line == line);
    if let Some(started) = started.as_ref().filter(|started| !is_normal(started.line)) {
        let at = format!("{menu}:{}", started.line);
        let ours = given.into_iter().filter(|given| Persisted::own_file(&given.source).is_some());
        let lost = ours.map(|given| (given, at.clone())).collect();
        let reason = format!(
            "GRUB boots `{}` next ({at}), and what {DEFAULTS} gives is for the normal entries of this system",
            started.title
        );
        let cure = format!(
            "have GRUB_DEFAULT in {DEFAULTS}, or `saved_entry`, name one of those, and make the menu anew"
        );
        let given = Given::of_line(&started.arguments, &at);
        return (NextBoot { given, source: at, menu: None, lost }, Some(Astray { reason, cure }));
    }
    // Where it is told to start another system, the first of them tells for this one.
    let first = normal.first().map(|entry| (entry.line, entry.arguments.as_str()));
    let counts = started.as_ref().map(|started| (started.line, started.arguments.as_str())).or(first);
    let made = counts.map(|(line, arguments)| Given::of_line(arguments, &format!("{menu}:{line}")));
    (NextBoot { given, source: DEFAULTS.to_owned(), menu: made, lost }, None)
}

/// The drop-ins in the order in which they are read. What a shell reads need not be UTF-8.
///
/// # Errors
/// The machine as one whose loader is not known, where one is there and cannot be read: it may assign anew.
fn drop_ins(host: &Host) -> Result<Vec<(String, String)>, Box<Boot>> {
    let mut found = Vec::new();
    for path in drop_in_paths(host) {
        match host.read_lossy(&path) {
            Ok(text) => found.push((path, text)),
            // A link that leads nowhere.
            Err(error) if error.is_absent() => {}
            Err(error) => return Err(Box::new(Boot::unreadable(&path, &error))),
        }
    }
    Ok(found)
}

/// Their paths.
pub(super) fn drop_in_paths(host: &Host) -> Vec<String> {
    let mut names = host.list(DROP_INS);
    names.retain(|name| name.ends_with(".cfg"));
    names.sort();
    names.into_iter().map(|name| format!("{DROP_INS}/{name}")).collect()
}

/// What sources give the normal entries, and what of ours a later assignment takes away.
fn evaluated(read: &[(String, String)]) -> (Vec<Given>, Vec<(Given, String)>) {
    let mut shell = Shell::default();
    read.iter().for_each(|(path, text)| shell.source(text, path));
    let given = |word: Word| Given { argument: word.text, source: word.source };
    let words = ["GRUB_CMDLINE_LINUX", NORMAL].into_iter().flat_map(|name| shell.words(name));
    let lost = shell.lost(NORMAL).into_iter().map(|(word, by)| (given(word), by));
    // What a file of ours takes back itself is no loss.
    let is_ours = |source: &str| Persisted::own_file(source).is_some();
    let lost = lost.filter(|(word, by)| is_ours(&word.source) && !is_ours(by));
    (words.map(given).collect(), lost.collect())
}

/// What `/etc/default/grub` alone gives the normal entries, with the file and line of each argument.
pub(super) fn defaults_alone(host: &Host) -> Vec<(String, String)> {
    let read = [(DEFAULTS.to_owned(), host.read_lossy(DEFAULTS).unwrap_or_default())];
    let (given, _) = evaluated(&read);
    given.into_iter().map(|word| (word.argument, word.source)).collect()
}

/// What the sources of a menu come to with a text in our own file among them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WithOurs {
    /// Each argument of the normal entries, with the file and line that gives it.
    pub given: Vec<(String, String)>,
    /// Those of ours that a later assignment takes away, with the file and line of that.
    pub lost: Vec<(String, String)>,
    /// File and line of what names the variable of the normal entries behind ours, and is not understood.
    pub unread: Vec<String>,
}

/// The same before it is written: `own` is our file, and `text` what it will hold.
#[must_use]
pub fn with_ours(host: &Host, own: &str, text: &str) -> WithOurs {
    let mut read = drop_ins(host).unwrap_or_default();
    read.retain(|(path, _)| path != own);
    read.push((own.to_owned(), text.to_owned()));
    read.sort();
    let defaults = host.read_lossy(DEFAULTS).unwrap_or_default();
    read.insert(0, (DEFAULTS.to_owned(), defaults));
    let behind = read.iter().skip_while(|(path, _)| path != own).skip(1);
    let mut shell = Shell::default();
    behind.for_each(|(path, text)| shell.source(text, path));
    let unread = shell.unread(NORMAL);
    let (given, lost) = evaluated(&read);
    let given = given.into_iter().map(|word| (word.argument, word.source)).collect();
    WithOurs { given, lost: lost.into_iter().map(|(word, by)| (word.argument, by)).collect(), unread }
}
