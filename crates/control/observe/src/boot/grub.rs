//! GRUB: a menu that a program makes from `/etc/default/grub`, or one that reads entries at boot.

use planish_boot::{Odd, Shell, Word, env_value, generated, once, refuse_cut_off_env, refuse_unfinished};
use planish_host::Host;
use planish_model::{BootFile, BootFiles, BootFormat, BootLoader, Generator, Persisted};

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
    match host.read(menu) {
        Ok(text) if generated::reads_entries(&text) => with_entries(host, menu, &text),
        Ok(text) if generated::entries(&text).is_empty() => Boot::unknown(
            format!("{menu} has no entry of this system: it is cut off, or made by hand"),
            BY_HAND,
        ),
        Ok(text) => match generated::unfinished(&text) {
            Some(script) => Boot::unknown(
                format!("{menu} is cut off: what {script} wrote has no end"),
                "make the menu anew with the program of the distribution, and look at it",
            ),
            None => with_menu(host, menu, &text),
        },
        Err(error) => Boot::unreadable(menu, &error),
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
    let block = host.read(&env).ok();
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
    let next = next.map(|found| NextBoot {
        given: found.given(variable),
        source: if found.is_variable() { env.clone() } else { found.path.clone() },
        menu: None,
        lost: Vec::new(),
    });
    let is_next_untold = next.is_none();
    let name = "GRUB with entries".to_owned();
    let files = BootFiles { name, own: None, edited, generator: None, is_next_untold };
    match odd {
        None => Boot { loader: BootLoader::Known(files), next },
        // Nothing is written, and what the entries say is told all the same.
        Some(odd) => Boot { next, ..damaged(&env, &odd) },
    }
}

/// An environment block that GRUB reads nothing out of, the name of the entry to boot least of all.
fn damaged(env: &str, odd: &Odd) -> Boot {
    let cure =
        "look at it, and have it made anew: grub2-editenv create, then name the entry with grub2-set-default";
    Boot::unknown(format!("{env}: {odd}"), cure)
}

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
    let mut read = match host.read(DEFAULTS) {
        Ok(text) => vec![(DEFAULTS.to_owned(), text)],
        Err(error) => return Boot::unreadable(DEFAULTS, &error),
    };
    // Distributions add the reading of drop-ins to GRUB's script; others would pass over ours in silence.
    let script = ["grub-mkconfig", "grub2-mkconfig"].into_iter().find_map(program);
    let reads_drop_ins = script
        .and_then(|script| host.read(&script).ok())
        .is_some_and(|script| script.contains("default/grub.d"));
    let (own, edited) = if reads_drop_ins {
        read.extend(drop_ins(host));
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
    // All normal entries of a menu that was made get the same arguments: the first tells for the one that is booted.
    let first = generated::entries(text).into_iter().find(|entry| !entry.recovery);
    let menu = first.map(|entry| Given::of_line(&entry.arguments, &format!("{menu}:{}", entry.line)));
    let files =
        BootFiles { name: "GRUB".to_owned(), own, edited, generator: Some(generator), is_next_untold: false };
    Boot {
        loader: BootLoader::Known(files),
        next: Some(NextBoot { given, source: DEFAULTS.to_owned(), menu, lost }),
    }
}

/// The drop-ins in the order in which they are read.
fn drop_ins(host: &Host) -> Vec<(String, String)> {
    let names = host.list(DROP_INS).into_iter().filter(|name| name.ends_with(".cfg"));
    let mut names: Vec<String> = names.collect();
    names.sort();
    let paths = names.iter().map(|name| format!("{DROP_INS}/{name}"));
    paths.filter_map(|path| host.read(&path).ok().map(|text| (path, text))).collect()
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
    let mut read = drop_ins(host);
    read.retain(|(path, _)| path != own);
    read.push((own.to_owned(), text.to_owned()));
    read.sort();
    let defaults = host.read(DEFAULTS).unwrap_or_default();
    read.insert(0, (DEFAULTS.to_owned(), defaults));
    let behind = read.iter().skip_while(|(path, _)| path != own).skip(1);
    let mut shell = Shell::default();
    behind.for_each(|(path, text)| shell.source(text, path));
    let unread = shell.unread(NORMAL);
    let (given, lost) = evaluated(&read);
    let given = given.into_iter().map(|word| (word.argument, word.source)).collect();
    WithOurs { given, lost: lost.into_iter().map(|(word, by)| (word.argument, by)).collect(), unread }
}
