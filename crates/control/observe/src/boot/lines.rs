//! The lines from which boots to come get their arguments.

use planish_boot::once::FILE_ID;
use planish_boot::{Entry, generated};
use planish_host::Host;
use planish_model::{BootFile, BootFormat, BootLoader};

use super::once::default_entry;
use super::{CMDLINES, ROOTS, grub};

/// A line that gives arguments to the kernel at some boot to come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BootLine {
    /// The file that it is in.
    pub path: String,
    /// The number of the line, counted from 1.
    pub line: usize,
    /// What it says, without the quotes of a shell.
    pub text: String,
}

/// Every such line of a loader that is known: of the normal entries, of what later ones are made from, and of what a
/// menu is made from. The menu itself is among them on the machine that makes it; that of a recorded one is as old as
/// the record. Of a loader that is not known, those of every file that one of the known ones reads: it may have been
/// known when arguments were put into them.
#[must_use]
pub fn boot_lines(host: &Host, loader: &BootLoader) -> Vec<BootLine> {
    let files = match loader {
        BootLoader::Known(files) => files,
        BootLoader::Unknown { .. } => return all_lines(host),
        BootLoader::Outside { .. } => return Vec::new(),
    };
    let Some(generator) = files.generator else {
        let edited = files.edited.iter();
        return edited.flat_map(|BootFile { path, format }| lines_of(host, path, *format)).collect();
    };
    let mut lines = sources(host);
    lines.extend(lines_of_menu(host, generator.output()));
    lines
}

/// Lines of the normal entries of a menu, on the machine that makes it.
fn lines_of_menu(host: &Host, menu: &str) -> Vec<BootLine> {
    if !host.is_live() {
        return Vec::new();
    }
    let entries = generated::entries(&host.read_lossy(menu).unwrap_or_default());
    let told = |entry: generated::MenuEntry| BootLine {
        path: menu.to_owned(),
        line: entry.line,
        text: entry.arguments,
    };
    entries.into_iter().filter(|entry| !entry.recovery).map(told).collect()
}

/// Lines of every file that a loader of these reads, whichever starts this machine.
fn all_lines(host: &Host) -> Vec<BootLine> {
    let mut lines = sources(host);
    lines.extend(grub::MENUS.iter().flat_map(|menu| lines_of_menu(host, menu)));
    let mut files: Vec<(String, BootFormat)> = Vec::new();
    files.extend(CMDLINES.map(|path| (path.to_owned(), BootFormat::KernelCmdline)));
    files.extend(grub::MENUS.map(|menu| (grub::block_beside(host, menu), BootFormat::GrubEnv)));
    for folder in ROOTS.map(|root| format!("{root}/loader/entries")) {
        let is_meant =
            |name: &String| name.ends_with(".conf") && !name.starts_with('.') && !name.starts_with(FILE_ID);
        let paths = host.list(&folder).into_iter().filter(is_meant).map(|name| format!("{folder}/{name}"));
        let is_rescue = |path: &String| {
            let text = host.read_lossy(path).unwrap_or_default();
            Entry::parse(&text).unwrap_or_default().is_rescue(path)
        };
        files.extend(paths.filter(|path| !is_rescue(path)).map(|path| (path, BootFormat::Entry)));
    }
    lines.extend(files.iter().flat_map(|(path, format)| lines_of(host, path, *format)));
    lines
}

/// What the next boot gives the kernel, as far as words go; `None` where nobody can tell.
#[must_use]
pub fn next_words(host: &Host, loader: &BootLoader) -> Option<String> {
    let BootLoader::Known(files) = loader else { return None };
    if files.generator.is_none() {
        return default_entry(host, loader).map(|entry| entry.line);
    }
    Some(sources(host).into_iter().map(|line| line.text + " ").collect())
}

/// The lines of what a menu is made from.
fn sources(host: &Host) -> Vec<BootLine> {
    let files = std::iter::once(grub::DEFAULTS.to_owned()).chain(grub::drop_in_paths(host));
    files.flat_map(|path| lines_of(host, &path, BootFormat::GrubDefaults)).collect()
}

fn lines_of(host: &Host, path: &str, format: BootFormat) -> Vec<BootLine> {
    let gives = |line: &str| match format {
        BootFormat::GrubDefaults => {
            ["GRUB_CMDLINE_LINUX=", "GRUB_CMDLINE_LINUX+=", "GRUB_CMDLINE_LINUX_DEFAULT"]
                .iter()
                .any(|name| line.trim_start().trim_start_matches("export ").starts_with(name))
        }
        BootFormat::GrubEnv => line.starts_with("kernelopts="),
        BootFormat::Entry => line.split_whitespace().next() == Some("options"),
        BootFormat::KernelCmdline => !line.trim_start().starts_with('#'),
    };
    let text = host.read_lossy(path).unwrap_or_default();
    let lines = text.lines().enumerate().filter(|(_, line)| gives(line));
    let told = |(index, line): (usize, &str)| BootLine {
        path: path.to_owned(),
        line: index + 1,
        text: line.replace(['"', '\''], " "),
    };
    lines.map(told).collect()
}
