//! The lines from which boots to come get their arguments.

use planish_boot::generated;
use planish_host::Host;
use planish_model::{BootFile, BootFormat, BootLoader};

use super::grub;
use super::once::default_entry;

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
/// the record.
#[must_use]
pub fn boot_lines(host: &Host, loader: &BootLoader) -> Vec<BootLine> {
    let BootLoader::Known(files) = loader else { return Vec::new() };
    let Some(generator) = files.generator else {
        let edited = files.edited.iter();
        return edited.flat_map(|BootFile { path, format }| lines_of(host, path, *format)).collect();
    };
    let mut lines = sources(host);
    if host.is_live() {
        let menu = generator.output();
        let entries = generated::entries(&host.read(menu).unwrap_or_default());
        lines.extend(entries.into_iter().filter(|entry| !entry.recovery).map(|entry| BootLine {
            path: menu.to_owned(),
            line: entry.line,
            text: entry.arguments,
        }));
    }
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
    let mut names = host.list(grub::DROP_INS);
    names.retain(|name| name.ends_with(".cfg"));
    names.sort();
    let drop_ins = names.iter().map(|name| format!("{}/{name}", grub::DROP_INS));
    let files = std::iter::once(grub::DEFAULTS.to_owned()).chain(drop_ins);
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
    let text = host.read(path).unwrap_or_default();
    let lines = text.lines().enumerate().filter(|(_, line)| gives(line));
    let told = |(index, line): (usize, &str)| BootLine {
        path: path.to_owned(),
        line: index + 1,
        text: line.replace(['"', '\''], " "),
    };
    lines.map(told).collect()
}
