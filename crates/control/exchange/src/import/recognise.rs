//! Whether a text is a file of a format at all.
//!
//! Reading takes any text: each line is accepted or refused. A text of which most lines are of another kind was meant
//! for another reader, and what few lines of it fit would be a profile that lost nearly everything.

use super::ImportFormat;
use super::{ansible, grub, node_tuning, script, udev, unit, yaml};
use crate::error::ExchangeError;
use planish_formats::ini::{self, Entry};

/// Plugins and sections of tuned (`tuned/plugins/` of the project). A section of another name says its `type`.
const OF_TUNED: [&str; 29] = [
    "acpi",
    "audio",
    "bootloader",
    "cpu",
    "disk",
    "eeepc_she",
    "hotplug",
    "irq",
    "irqbalance",
    "kthread",
    "kvm",
    "main",
    "modules",
    "mounts",
    "net",
    "rtentsk",
    "scheduler",
    "script",
    "scsi_host",
    "selinux",
    "service",
    "sysctl",
    "sysfs",
    "systemd",
    "uncore",
    "usb",
    "variables",
    "video",
    "vm",
];

/// Sections of a note (`saptune-note(5)`); behind a colon stands for which hosts.
const OF_SAPTUNE: [&str; 14] = [
    "block",
    "cpu",
    "filesystem",
    "grub",
    "limits",
    "login",
    "mem",
    "pagecache",
    "reminder",
    "rpm",
    "service",
    "sys",
    "sysctl",
    "vm",
];

/// Types of lines (`tmpfiles.d(5)`).
const OF_TMPFILES: &str = "fFwdDeQqvpLcbCxXrRzZtThHaAm";

/// Refuses a text that is no file of a format.
///
/// # Errors
/// It is no text, says nothing, is a file of a kind that is known and not read, or less than half of its lines have the
/// shape of those of the format.
pub fn recognise(text: &str, format: ImportFormat) -> Result<(), ExchangeError> {
    if !is_text(text) {
        return Err(ExchangeError::NotText);
    }
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    if let Some(paths) = several(&lines) {
        return Err(ExchangeError::Several { paths });
    }
    if let ImportFormat::Ansible | ImportFormat::NodeTuning = format {
        return of_yaml(text, format, lines.is_empty());
    }
    if let Some(interpreter) = other_interpreter(text).filter(|_| format == ImportFormat::Script) {
        return Err(ExchangeError::OtherLanguage { interpreter: interpreter.to_owned() });
    }
    if format == ImportFormat::Script && !says_script(text) && lines.iter().any(|line| grub::is_one(line)) {
        return Err(ExchangeError::OtherKind {
            what: "a file of the defaults of grub",
            cure: "its arguments of the kernel are read: --from kernel-args",
        });
    }
    let is_unit = format == ImportFormat::Unit;
    if let Some(kind) = other_kind(&lines, says_script(text)).filter(|_| !is_unit) {
        return Err(kind);
    }
    let fits: Vec<bool> = match format {
        ImportFormat::Script => of_script(text),
        ImportFormat::Sysctl => plain(&lines, &['#', ';']).map(is_sysctl).collect(),
        ImportFormat::Tmpfiles => plain(&lines, &['#']).map(is_tmpfiles).collect(),
        ImportFormat::KernelArgs if lines.iter().any(|line| grub::is_one(line)) => {
            plain(&lines, &['#']).map(grub::fits).collect()
        }
        ImportFormat::KernelArgs => {
            plain(&lines, &['#']).flat_map(str::split_whitespace).map(is_argument).collect()
        }
        ImportFormat::Udev => of_rules(&lines),
        ImportFormat::Unit => unit::fits(text),
        ImportFormat::Tuned => of_tuned(&ini::tuned_entries(text)),
        ImportFormat::Saptune => of_saptune(&ini::entries(text)),
        ImportFormat::Ansible | ImportFormat::NodeTuning => unreachable!("answered before"),
    };
    let (fit, all) = (fits.iter().filter(|fits| **fits).count(), fits.len());
    match (fit, all) {
        (_, 0) => Err(ExchangeError::Empty),
        _ if fit * 2 < all => Err(ExchangeError::OtherFormat { format, fit, all }),
        _ => Ok(()),
    }
}

/// The format of a file: what files of its name have, where its text is that, else what the text looks like.
///
/// # Errors
/// As [`recognise`]; where neither tells, what was tried.
pub fn recognise_file(text: &str, path: &str) -> Result<ImportFormat, ExchangeError> {
    if let Some(named) = ImportFormat::of_name(path).filter(|named| recognise(text, *named).is_ok()) {
        return Ok(named);
    }
    let format = ImportFormat::guess(text);
    match recognise(text, format) {
        Ok(()) => Ok(format),
        Err(ExchangeError::OtherFormat { format, fit, all }) => {
            Err(ExchangeError::Unrecognised { format, fit, all })
        }
        Err(error) => Err(error),
    }
}

/// The paths of files that stand one behind the other in a text, where they are of different formats: an export that
/// was printed. Files of one format are one text, as `systemctl cat` prints them.
fn several(lines: &[&str]) -> Option<Vec<String>> {
    let paths = lines.iter().filter_map(|line| line.strip_prefix("# ").filter(|path| path.starts_with('/')));
    let named: Vec<(&str, ImportFormat)> =
        paths.filter_map(|path| Some((path, ImportFormat::of_name(path)?))).collect();
    let is_mixed = named.iter().any(|(_, format)| *format != named[0].1);
    // A file may begin with its own path, behind the one that it was printed with.
    let mut paths: Vec<String> = named.iter().map(|(path, _)| (*path).to_owned()).collect();
    paths.dedup();
    is_mixed.then_some(paths)
}

/// A comment in an old encoding is text still; what is full of characters that nobody reads is none.
fn is_text(text: &str) -> bool {
    let odd = |c: &char| c.is_control() && !c.is_whitespace() || *c == char::REPLACEMENT_CHARACTER;
    !text.contains('\0') && text.chars().filter(odd).count() * 10 <= text.chars().count()
}

/// Shells whose language is read. Of zsh it is another: a variable is one word without quotes.
const SHELLS: [&str; 7] = ["ash", "bash", "dash", "ksh", "ksh93", "mksh", "sh"];

/// The program that the first line has run a script (execve(2)), where that is no shell which is read. What looks like
/// lines of a shell in it may be text of the other language.
fn other_interpreter(text: &str) -> Option<&str> {
    let bare = |word: &'_ str| word.rsplit('/').next().unwrap_or_default().len();
    let mut words = text.lines().next()?.strip_prefix("#!")?.split_whitespace();
    let mut program = words.next()?;
    program = &program[program.len() - bare(program)..];
    if program == "env" || program == "busybox" {
        let next = words.find(|word| !word.starts_with('-') && !word.contains('='))?;
        program = &next[next.len() - bare(next)..];
    }
    (!SHELLS.contains(&program)).then_some(program)
}

/// Whether a text is a script by its own words, or holds other files as only scripts do.
fn says_script(text: &str) -> bool {
    text.starts_with("#!") || text.contains("<<")
}

/// Refuses YAML that is broken, or holds nothing of its format.
fn of_yaml(text: &str, format: ImportFormat, is_empty: bool) -> Result<(), ExchangeError> {
    if is_empty {
        return Err(ExchangeError::Empty);
    }
    let documents = yaml::read(text).map_err(ExchangeError::Yaml)?;
    let is_one = match format {
        ImportFormat::NodeTuning => documents.iter().any(|one| !node_tuning::profiles(one).is_empty()),
        _ => !ansible::tasks(&documents).is_empty(),
    };
    is_one.then_some(()).ok_or(ExchangeError::OtherKind { what: "YAML", cure: OTHER_YAML })
}

/// What to do with YAML that is neither.
const OTHER_YAML: &str = "read are tasks of Ansible and objects of the Node Tuning operator; of others import what \
                          they write, such as a file of sysctl.d";

/// Whether a text begins as YAML does, which no other format that is read has.
pub(super) fn is_yaml(text: &str) -> bool {
    let lines = text.lines().map(str::trim);
    lines.filter(|line| !line.is_empty()).find(|line| !line.starts_with('#')).is_some_and(begins_yaml)
}

/// `:` alone is a command of the shell, and `name:` is none.
fn begins_yaml(first: &str) -> bool {
    let key = first.strip_prefix("- ").unwrap_or(first).split_once(':');
    let is_word = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    let is_key = |(key, rest): (&str, &str)| {
        !key.is_empty() && key.chars().all(is_word) && (rest.is_empty() || rest.starts_with(' '))
    };
    first == "---" || key.is_some_and(is_key)
}

/// Files that people have beside those that are read, by lines that no format that is read has. A script may write any
/// of them.
fn other_kind(lines: &[&str], is_script: bool) -> Option<ExchangeError> {
    let has = |wanted: &[&str]| lines.iter().any(|line| wanted.contains(line));
    let first = lines.iter().find(|line| !line.starts_with('#'))?;
    let (what, cure) = if begins_yaml(first) {
        ("YAML", OTHER_YAML)
    } else if is_script {
        return None;
    } else if is_limits(lines) {
        (
            "a file of limits.conf, whose limits are those of logins and not of services",
            "of a service want unit.nofile and unit.memlock, which are a drop-in of its unit",
        )
    } else if has(&["[want]"]) {
        (
            "a profile of planish",
            "it needs no import: planish plan FILE, with a slash in its name and .toml at its end",
        )
    } else if has(&["[Unit]", "[Install]"]) || lines.iter().any(|line| line.starts_with("ExecStart=")) {
        ("a unit of systemd", "import it as one: --from unit")
    } else if first.starts_with('{')
        && lines.last().is_some_and(|line| line.ends_with('}'))
        && lines.len() > 1
    {
        ("JSON", "a plan of planish needs no import: planish plan FILE")
    } else {
        return None;
    };
    Some(ExchangeError::OtherKind { what, cure })
}

/// `@dba hard memlock unlimited` (`limits.conf(5)`): every line has four words, the second of which says which limit.
fn is_limits(lines: &[&str]) -> bool {
    let mut limits = plain(lines, &['#']).peekable();
    let is_one = |line: &str| {
        let words: Vec<&str> = line.split('#').next().unwrap_or_default().split_whitespace().collect();
        matches!(words.as_slice(), [_, "soft" | "hard" | "-", _, _])
    };
    limits.peek().is_some() && limits.all(is_one)
}

fn plain<'a>(lines: &'a [&'a str], comments: &'static [char]) -> impl Iterator<Item = &'a str> {
    lines.iter().copied().filter(move |line| !line.starts_with(comments))
}

/// `vm.swappiness = 1`, `-net.ipv4.conf.*.rp_filter = 1`, `-net.ipv4.conf.lo.rp_filter`.
fn is_sysctl(line: &str) -> bool {
    let (bare, may_lack) = line.strip_prefix('-').map_or((line, false), |bare| (bare, true));
    let (key, is_whole) = bare.split_once('=').map_or((bare, may_lack), |(key, _)| (key, true));
    let key = key.trim();
    let is_of_key = |c: char| c.is_ascii_alphanumeric() || "._-/:*?[]@".contains(c);
    is_whole && key.contains(['.', '/']) && key.chars().all(is_of_key)
}

/// `w /sys/kernel/mm/ksm/run - - - - 0`.
fn is_tmpfiles(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let (kind, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let mut letters = kind.chars();
    letters.next().is_some_and(|letter| OF_TMPFILES.contains(letter))
        && letters.all(|modifier| "+!-=~^$?".contains(modifier))
        && path.trim_matches(['"', '\'']).starts_with(['/', '%'])
}

/// Lines of rules, and those that go on with one.
fn of_rules(lines: &[&str]) -> Vec<bool> {
    let mut goes_on = false;
    let lines = plain(lines, &['#']);
    lines.map(|line| std::mem::replace(&mut goes_on, line.ends_with('\\')) || is_rule(line)).collect()
}

/// `KERNEL=="sda", ATTR{queue/scheduler}="none"`, `LABEL="end"`.
fn is_rule(line: &str) -> bool {
    let of_udev = |key: &str| key.chars().all(|c| c.is_ascii_uppercase() || c == '_');
    let rules = planish_udev::rules(line.trim_end_matches('\\'));
    udev::is_rule(line) || rules.iter().flat_map(|rule| &rule.parts).any(|part| of_udev(&part.key))
}

/// `isolcpus=2-7`, `quiet`.
fn is_argument(word: &str) -> bool {
    let name = word.split_once('=').map_or(word, |(name, _)| name);
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c))
}

fn of_tuned(entries: &[Entry<'_>]) -> Vec<bool> {
    let says_type =
        |section: &str| entries.iter().any(|entry| entry.section == section && entry.key == "type");
    let is_of_tuned = |entry: &Entry<'_>| {
        entry.value.is_some() && (OF_TUNED.contains(&entry.section) || says_type(entry.section))
    };
    entries.iter().map(is_of_tuned).collect()
}

fn of_saptune(entries: &[Entry<'_>]) -> Vec<bool> {
    let section = |entry: &Entry<'_>| {
        let name = entry.section.split(':').next().unwrap_or_default();
        name.trim().to_ascii_lowercase()
    };
    // Of these two the text is free.
    let told = entries.iter().filter(|entry| !["version", "reminder"].contains(&section(entry).as_str()));
    told.map(|entry| OF_SAPTUNE.contains(&section(entry).as_str())).collect()
}

/// A script that says so is one, whatever files it holds; of any other each line begins as commands do, and at least
/// one of them is a command that is known: any text has lines that begin with a word.
fn of_script(text: &str) -> Vec<bool> {
    let lines = script::logical_lines(text);
    let lines = lines.iter().map(|(_, line)| line.trim());
    let commands: Vec<&str> = lines.filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
    let is_one = says_script(text);
    let is_any = is_one || commands.iter().any(|line| script::is_known(line));
    commands.into_iter().map(|line| is_one || is_any && is_command(line)).collect()
}

fn is_command(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let (first, second) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let is_section = first.starts_with('[') && first.ends_with(']');
    let is_value = second.starts_with('=') || first.ends_with(':') && first != ":";
    first.is_ascii() && !first.starts_with('-') && !is_section && !is_value
}
