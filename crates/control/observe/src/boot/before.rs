//! What stands before arguments that are put into the files of a boot loader, in each line that a boot takes them from:
//! of parameters of which the kernel takes the first, this is what counts.

use planish_boot::{Entry, env_value};
use planish_host::Host;
use planish_model::{BootFile, BootFormat, BootLoader, bootline};

use super::once::default_entry;
use super::{entries, grub};

/// Where tuned says what it has GRUB put for `$tuned_params`, beside the variable itself.
const OF_TUNED: (&str, &str) = ("/etc/tuned/bootcmdline", "TUNED_BOOT_CMDLINE=");

/// An argument, and the file and line that gives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    /// As it stands there.
    pub argument: String,
    /// `/etc/default/grub:7`, with the variable behind it where it comes by one.
    pub source: String,
}

impl Word {
    fn new(argument: &str, source: &str) -> Self {
        Self { argument: argument.to_owned(), source: source.to_owned() }
    }
}

/// The words of a line, those of a variable of GRUB in the place of its name.
fn words<'a>(host: &Host, block: &str, line: impl IntoIterator<Item = (&'a str, &'a str)>) -> Vec<Word> {
    let mut words = Vec::new();
    for (argument, source) in line {
        let Some(name) = argument.strip_prefix('$') else {
            words.push(Word::new(argument, source));
            continue;
        };
        let name = name.trim_matches(['{', '}']);
        if let Some((text, at)) = variable(host, block, name) {
            words.extend(bootline::arguments(&text).map(|word| Word::new(word, &at)));
        }
    }
    words
}

/// What GRUB puts for a variable, and where that is said.
fn variable(host: &Host, block: &str, name: &str) -> Option<(String, String)> {
    let text = host.read_lossy(block).unwrap_or_default();
    if let Some((value, line)) = env_value(&text, name) {
        return Some((value.to_owned(), format!("{block}:{line} ({name})")));
    }
    let (path, begins) = OF_TUNED;
    let text = host.read_lossy(path).ok().filter(|_| name == "tuned_params")?;
    let (index, value) =
        text.lines().enumerate().find_map(|(index, line)| Some((index, line.strip_prefix(begins)?)))?;
    Some((value.trim_matches(['"', '\'']).to_owned(), format!("{path}:{}", index + 1)))
}

/// The environment block of the menu that is here.
fn block(host: &Host) -> String {
    let menu = grub::MENUS.into_iter().find(|path| host.exists(path));
    grub::block_beside(host, menu.unwrap_or(grub::MENUS[0]))
}

/// Of each line of files that are edited, the words behind which arguments are put in.
#[must_use]
pub fn lines_before(host: &Host, loader: &BootLoader) -> Vec<Vec<Word>> {
    let BootLoader::Known(files) = loader else { return Vec::new() };
    let block = block(host);
    let edited = files.edited.iter();
    edited.flat_map(|file| before_in(host, &block, file)).filter(|line| !line.is_empty()).collect()
}

fn before_in(host: &Host, block: &str, BootFile { path, format }: &BootFile) -> Vec<Vec<Word>> {
    match format {
        BootFormat::GrubDefaults => {
            let given = grub::defaults_alone(host);
            vec![words(host, block, given.iter().map(|(word, source)| (word.as_str(), source.as_str())))]
        }
        BootFormat::KernelCmdline => {
            let text = host.read_lossy(path).unwrap_or_default();
            let lines = text.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with('#'));
            let of_line = |(index, line): (usize, &str)| {
                let source = format!("{path}:{}", index + 1);
                bootline::arguments(line).map(|word| Word::new(word, &source)).collect::<Vec<_>>()
            };
            vec![lines.flat_map(of_line).collect()]
        }
        BootFormat::Entry => vec![of_entry(host, block, path, false)],
        // Ours come behind what the variable has, in each entry that asks for it.
        BootFormat::GrubEnv => {
            let found = entries::read(host, grub::ENTRIES).unwrap_or_default();
            let asks = entries::normal(&found).filter(|found| found.is_variable());
            asks.map(|found| of_entry(host, block, &found.path, true)).collect()
        }
    }
}

/// The words of an entry; up to the variable that ours are put into, and those of it.
fn of_entry(host: &Host, block: &str, path: &str, is_variable: bool) -> Vec<Word> {
    let entry = Entry::parse(&host.read_lossy(path).unwrap_or_default()).unwrap_or_default();
    let Some((options, line)) = entry.options else { return Vec::new() };
    let source = format!("{path}:{line}");
    let mut all: Vec<&str> = bootline::arguments(&options).collect();
    let at = all.iter().position(|word| ["$kernelopts", "${kernelopts}"].contains(word));
    if let Some(at) = at.filter(|_| is_variable) {
        all.truncate(at + 1);
    }
    words(host, block, all.into_iter().map(|word| (word, source.as_str())))
}

/// The words of the entry that the loader takes when nothing names one for once.
#[must_use]
pub fn default_words(host: &Host, loader: &BootLoader) -> Vec<Word> {
    let Some(entry) = default_entry(host, loader) else { return Vec::new() };
    words(host, &block(host), bootline::arguments(&entry.line).map(|word| (word, entry.path.as_str())))
}

/// Words of the sources of a menu, those of a variable in the place of its name.
#[must_use]
pub fn with_variables(host: &Host, given: &[(String, String)]) -> Vec<Word> {
    words(host, &block(host), given.iter().map(|(word, source)| (word.as_str(), source.as_str())))
}
