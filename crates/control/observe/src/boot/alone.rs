//! What a menu has and its sources lack: somebody typed it into the menu, and the next program that makes it takes it
//! away.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;

use planish_boot::{Shell, generated};
use planish_host::Host;
use planish_model::BootFiles;

use super::grub::{DEFAULTS, DROP_INS};
use crate::writers::unremembered;

/// How many names a file has; one where that cannot be told.
#[must_use]
pub fn names_of(host: &Host, path: &str) -> u64 {
    host.real_path(path).and_then(std::fs::metadata).map_or(1, |found| found.nlink())
}

const SCRIPTS: &str = "/etc/grub.d";

/// Arguments that the menu gives normal entries and that nothing gives which it is made from, each with the file and
/// line. Not what the program puts there by itself, and nothing at all where only a shell can tell what a source gives:
/// then the menu that is made is looked at.
#[must_use]
pub fn menu_alone(host: &Host, files: &BootFiles) -> Vec<(String, String)> {
    let Some(menu) = files.generator.map(planish_model::Generator::output) else { return Vec::new() };
    let Ok(text) = host.read_lossy(menu) else { return Vec::new() };
    let mut names = if files.own.is_some() { host.list(DROP_INS) } else { Vec::new() };
    names.retain(|name| name.ends_with(".cfg"));
    names.sort();
    let drop_ins = names.iter().map(|name| format!("{DROP_INS}/{name}"));
    let mut shell = Shell::default();
    let mut sources = String::new();
    for path in std::iter::once(DEFAULTS.to_owned()).chain(drop_ins) {
        let text = host.read_lossy(&path).unwrap_or_default();
        shell.source(&text, &path);
        let told = text.lines().filter(|line| !line.trim_start().starts_with('#'));
        told.for_each(|line| sources += &format!("{line}\n"));
    }
    if shell.may_set("GRUB_CMDLINE_LINUX") {
        return Vec::new();
    }
    let given = ["GRUB_CMDLINE_LINUX", "GRUB_CMDLINE_LINUX_DEFAULT"].into_iter();
    let given: BTreeSet<String> =
        given.flat_map(|name| shell.words(name)).map(|word| generated::bare(&word.text)).collect();
    // A distribution may have variables and scripts of its own. No recording is to keep the scripts for it.
    let scripts = host.list(SCRIPTS).into_iter().filter(|name| name.contains("linux"));
    let scripts: Vec<String> =
        scripts.filter_map(|name| unremembered(host, &format!("{SCRIPTS}/{name}"))).collect();
    let is_of_script = |word: &str| {
        let name = word.split('=').next().unwrap_or(word);
        scripts.iter().any(|script| script.contains(name))
    };
    let ends = |c: char| c.is_whitespace() || "\"'".contains(c);
    let is_in_source = |word: &str| sources.split(ends).any(|other| generated::bare(other) == word);
    let mut alone = generated::typed(&text);
    alone.retain(|(word, _)| !given.contains(word) && !is_in_source(word) && !is_of_script(word));
    alone.into_iter().map(|(word, line)| (word, format!("{menu}:{line}"))).collect()
}
