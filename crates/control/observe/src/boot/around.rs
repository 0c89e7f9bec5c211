//! What stands around the variable of GRUB that arguments are put into, in the entries that ask for it.

use planish_boot::env_value;
use planish_host::Host;
use planish_model::{BootFormat, BootLoader};

use super::{entries, grub};

/// What one entry has before `$kernelopts` and behind it, with other variables as GRUB's block has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Around {
    /// File and line of it.
    pub source: String,
    /// The arguments before it.
    pub before: String,
    /// The arguments behind it: of two the kernel takes the last.
    pub behind: String,
}

/// The same of every normal entry, where arguments are put into the variable.
#[must_use]
pub fn around_variable(host: &Host, loader: &BootLoader) -> Vec<Around> {
    let BootLoader::Known(files) = loader else { return Vec::new() };
    let Some(block) = files.edited.iter().find(|file| file.format == BootFormat::GrubEnv) else {
        return Vec::new();
    };
    let block = host.read_lossy(&block.path).unwrap_or_default();
    let found = entries::read(host, grub::ENTRIES).unwrap_or_default();
    entries::normal(&found).filter_map(|found| of_entry(found, &block)).collect()
}

fn of_entry(found: &entries::Found, block: &str) -> Option<Around> {
    let (options, line) = found.entry.options.as_ref()?;
    let is_variable = |word: &&str| ["$kernelopts", "${kernelopts}"].contains(word);
    let words: Vec<&str> = options.split_whitespace().collect();
    let at = words.iter().position(is_variable)?;
    let told = |words: &[&str]| {
        let told = words.iter().map(|word| match word.strip_prefix('$') {
            Some(name) => env_value(block, name.trim_matches(['{', '}'])).map_or("", |(value, _)| value),
            None => word,
        });
        told.collect::<Vec<&str>>().join(" ")
    };
    Some(Around {
        source: format!("{}:{line}", found.path),
        before: told(&words[..at]),
        behind: told(&words[at + 1..]),
    })
}
