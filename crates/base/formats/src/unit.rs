//! Command lines of units of systemd, and what they do.

use std::collections::BTreeMap;
use std::path::Path;

use crate::shell::{Ask, Effect, Ran, Run, What, effects_of};

/// Keys beside the commands that decide what those write, or write themselves.
pub const DECIDING: [&str; 20] = [
    "WorkingDirectory",
    "Environment",
    "EnvironmentFile",
    "StandardOutput",
    "User",
    "DynamicUser",
    "PermissionsStartOnly",
    "ProtectKernelTunables",
    "ReadOnlyPaths",
    "ReadOnlyDirectories",
    "InaccessiblePaths",
    "InaccessibleDirectories",
    "BindPaths",
    "BindReadOnlyPaths",
    "TemporaryFileSystem",
    "PrivateUsers",
    "ProcSubset",
    "RootDirectory",
    "RootDirectoryStartOnly",
    "RootImage",
];

/// What keeps the commands of a unit from settings (`systemd.exec(5)`).
#[derive(Default)]
struct Kept {
    /// They are run as another user than root, who may be let write one all the same.
    is_other: bool,
    /// They see settings that cannot be written.
    is_walled: bool,
    /// They see other files than those of the host.
    is_jailed: bool,
    /// Only the main command is kept from anything, or only it sees other files.
    only_start: bool,
    only_start_jailed: bool,
}

impl Kept {
    fn of<'l>(lines: impl Iterator<Item = (&'l str, &'l str)>) -> Self {
        let mut kept = Self::default();
        let (mut user, mut is_dynamic, mut is_protected) = ("", false, false);
        let (mut walls, mut jails) = (BTreeMap::new(), BTreeMap::new());
        let (mut masked, mut run) = (Vec::new(), Vec::new());
        let is_on = |value: &str| ["yes", "y", "1", "true", "t", "on"].contains(&&*value.to_lowercase());
        for (key, value) in lines {
            match key {
                "User" => user = value,
                "DynamicUser" => is_dynamic = is_on(value),
                "PermissionsStartOnly" => kept.only_start = is_on(value),
                "RootDirectoryStartOnly" => kept.only_start_jailed = is_on(value),
                "ProtectKernelTunables" => is_protected = is_on(value),
                "BindPaths" | "BindReadOnlyPaths" | "TemporaryFileSystem" if value.is_empty() => {
                    masked.retain(|(of, _)| *of != key);
                }
                "BindPaths" | "BindReadOnlyPaths" | "TemporaryFileSystem" => {
                    masked.extend(value.split_whitespace().map(|word| (key, masked_by(key, word))));
                }
                "PrivateUsers" => {
                    _ = walls.insert(key.to_owned(), !["no", "n", "0", "false", "f", "off"].contains(&value))
                }
                "ProcSubset" => _ = walls.insert(key.to_owned(), value == "pid"),
                "RootDirectory" | "RootImage" => {
                    let root = value.trim_start_matches(['-', '/']);
                    jails.insert(key, !root.is_empty());
                }
                "ReadOnlyPaths" | "ReadOnlyDirectories" | "InaccessiblePaths" | "InaccessibleDirectories" => {
                    let is_wall = walls.entry(key.replace("Directories", "Paths")).or_insert(false);
                    *is_wall = !value.is_empty()
                        && (*is_wall || value.split_whitespace().map(bare).any(holds_settings));
                }
                _ if key.starts_with("Exec") => run.push(value),
                _ => {}
            }
        }
        let is_masked = masked.iter().any(|(_, path)| {
            holds_settings(path) || holds_programs(path) || run.iter().any(|line| line.contains(path))
        });
        kept.is_other = is_dynamic || !["", "root", "0"].contains(&user);
        kept.is_walled = is_protected || is_masked || walls.values().any(|is_wall| *is_wall);
        kept.is_jailed = jails.values().any(|is_jail| *is_jail);
        kept
    }

    /// Whether a command sees other files than those of the host.
    fn jails(&self, key: &str) -> bool {
        self.is_jailed && (key == "ExecStart" || !self.only_start_jailed)
    }

    /// Whether a command is kept from nothing: signs in front of one give it the rights of root. Two of them (`!!`) do
    /// so on a kernel alone that has no ambient capabilities, which no kernel here is.
    fn lets(&self, key: &str, value: &str) -> bool {
        let signs = value.len() - value.trim_start_matches(['@', '-', ':', '+', '!', '|']).len();
        let signs = &value[..signs];
        let is_free = self.only_start && key != "ExecStart" || signs.contains('+');
        let is_root = !self.is_other || signs.matches('!').count() == 1;
        !self.jails(key) && (is_free || !self.is_walled && is_root)
    }
}

/// Whether a path of a unit is one of settings, or holds them.
fn holds_settings(path: &str) -> bool {
    path == "/" || is_in(path, &["/proc", "/sys"])
}

/// Whether a script or program may lie there, so that what a unit puts in that place may be another than that of its
/// name here.
fn holds_programs(path: &str) -> bool {
    path == "/etc" || is_in(path, &["/bin", "/lib", "/lib64", "/opt", "/sbin", "/usr"])
}

/// Whether a path is one of these folders, or below it.
fn is_in(path: &str, folders: &[&str]) -> bool {
    folders.iter().any(|folder| Path::new(path).starts_with(folder))
}

/// A path of a unit without its quotes and the signs before it.
fn bare(word: &str) -> &str {
    word.trim_matches('"').trim_start_matches(['-', '+'])
}

/// The place that a word of such a line puts something in: `FROM:PLACE:OPTIONS`, of a tmpfs `PLACE:OPTIONS`.
fn masked_by<'l>(key: &str, word: &'l str) -> &'l str {
    let mut parts = bare(word).split(':');
    let first = parts.next().unwrap_or_default();
    let place = if key == "TemporaryFileSystem" { first } else { parts.next().unwrap_or(first) };
    if place.len() > 1 { place.trim_end_matches('/') } else { place }
}

/// What the lines `Exec..=` of a unit do, with what lines of [`DECIDING`] say. What is run when it stops may never be.
#[must_use]
pub fn effects(text: &str, ask: Option<Ask<'_>>) -> Vec<Effect> {
    let lines = || {
        text.lines().filter_map(|line| line.split_once('=')).map(|(key, value)| (key.trim(), value.trim()))
    };
    let last = |name: &str| lines().rfind(|(key, _)| *key == name).map(|(_, value)| value);
    let folder = last("WorkingDirectory").map(|folder| folder.trim_start_matches('-'));
    let folder = folder.filter(|folder| folder.starts_with('/')).map(str::to_owned);
    let variables = environment(lines().filter(|(key, _)| *key == "Environment").map(|(_, value)| value));
    let kept = Kept::of(lines());
    // A file may say otherwise.
    let is_told = last("EnvironmentFile").is_none_or(str::is_empty);
    let mut effects = effects_of(
        lines().filter(|(key, _)| key.starts_with("Exec")).flat_map(|(key, value)| {
            let is_sure = !["ExecStop", "ExecStopPost", "ExecReload"].contains(&key);
            let filled = put_in(value, &variables);
            let is_sure = is_sure && (is_told || filled == value) && kept.lets(key, value);
            let (folder, variables) = (folder.clone(), variables.clone());
            // The scripts of a folder that is its root are others than those of this name here.
            let is_blind = kept.jails(key);
            let run = move |what| {
                let (folder, variables) = (folder.clone(), variables.clone());
                Run { what, is_sure, is_blind, folder, variables }
            };
            commands(&filled).into_iter().map(run)
        }),
        ask,
    );
    // What is started says it, whatever that is.
    let output = last("StandardOutput")
        .and_then(|value| ["file:", "append:", "truncate:"].iter().find_map(|way| value.strip_prefix(way)));
    let says = last("ExecStart").unwrap_or_default();
    if let Some(path) = output.filter(|_| !says.is_empty()) {
        effects.push(Effect {
            what: What::File(path.to_owned()),
            says: says.to_owned(),
            // It is opened before the command is kept from anything.
            is_sure: !kept.is_jailed,
            from: String::new(),
        });
    }
    effects
}

/// Variables of lines `Environment=`, of which an empty one takes back those before it.
fn environment<'l>(lines: impl Iterator<Item = &'l str>) -> Vec<(String, String)> {
    let mut variables: Vec<(String, String)> = Vec::new();
    for line in lines {
        if line.is_empty() {
            variables.clear();
        }
        for word in words(line).unwrap_or_default() {
            let Some((name, value)) = word.split_once('=') else { continue };
            variables.retain(|(known, _)| known != name);
            variables.push((name.to_owned(), value.to_owned()));
        }
    }
    variables
}

/// A command with variables put in as systemd does it: `${NAME}` anywhere, and `$NAME` as a word of its own, which may
/// become several. One that would need quotes stays as it is.
fn put_in(command: &str, variables: &[(String, String)]) -> String {
    let is_bare = |value: &str| !value.is_empty() && !value.contains(['"', '\'', '\\', '$', '%', ';']);
    let mut text = command.to_owned();
    for (name, value) in variables.iter().filter(|(_, value)| is_bare(value)) {
        if !value.contains(char::is_whitespace) {
            text = text.replace(&format!("${{{name}}}"), value);
        }
        let whole = format!("${name}");
        let words: Vec<&str> =
            text.split(' ').map(|word| if word == whole { value.as_str() } else { word }).collect();
        text = words.join(" ");
    }
    text
}

/// The commands of a line. What systemd puts in for a sign may be anything.
fn commands(value: &str) -> Vec<Ran> {
    let command = value.trim().trim_start_matches(['@', '-', ':', '+', '!', '|']).trim();
    let has_name = value.trim()[..value.trim().len() - command.len()].contains('@');
    let Some(mut all) = words(command).or_else(|| words(&without_specifiers(command))) else {
        return vec![Ran::Untold(command.to_owned())];
    };
    // The second word is then the name that the program is told, and none of its words.
    if has_name && all.len() > 1 {
        all.remove(1);
    }
    all.split(|word| word == ";").map(|words| Ran::Words(words.to_vec())).collect()
}

/// `%i` and its like, as a pattern.
fn without_specifiers(command: &str) -> String {
    let mut text = String::new();
    let mut rest = command.chars();
    while let Some(c) = rest.next() {
        match c {
            '%' => match rest.next() {
                Some('%') => text.push_str("%%"),
                _ => text.push('*'),
            },
            c => text.push(c),
        }
    }
    text
}

/// Words as systemd takes them (`systemd.service(5)`, "Command lines"): quotes hold blanks together, a backslash takes
/// the next character as it is, and `$$` and `%%` are one sign. `None` where systemd would put something in.
#[must_use]
pub fn words(command: &str) -> Option<Vec<String>> {
    let (mut words, mut word, mut quote, mut any) = (Vec::new(), String::new(), None, false);
    let mut rest = command.chars().peekable();
    while let Some(c) = rest.next() {
        match (quote, c) {
            (_, '\\') => word.push(match rest.next()? {
                'n' => '\n',
                't' => '\t',
                plain if "\\\"'$`; ".contains(plain) => plain,
                _ => return None,
            }),
            (_, '%') => word.push(rest.next().filter(|next| *next == '%')?),
            (_, '$') if rest.next_if_eq(&'$').is_some() => word.push('$'),
            // Of one word as a whole, or in braces; elsewhere the sign stays for the shell.
            (_, '$') if rest.peek() == Some(&'{') || quote.is_none() && word.is_empty() => return None,
            (Some(open), c) if c == open => quote = None,
            (Some(_), c) => word.push(c),
            (None, '"' | '\'') => (quote, any) = (Some(c), true),
            (None, c) if c.is_whitespace() => {
                if any || !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
                any = false;
            }
            (None, c) => word.push(c),
        }
    }
    if any || !word.is_empty() {
        words.push(word);
    }
    Some(words).filter(|_| quote.is_none())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell::What;

    #[test]
    fn a_line_does_what_its_program_does_and_no_shell_reads_it() {
        let told = |text: &str| {
            let told = |effect: Effect| (format!("{:?}", effect.what), effect.is_sure);
            effects(text, None).into_iter().map(told).collect::<Vec<_>>()
        };
        let file = |is_sure| vec![(format!("{:?}", What::File("/proc/sys/a".to_owned())), is_sure)];
        let key = vec![(format!("{:?}", What::Key("a.b".to_owned())), true)];
        for (text, expected) in [
            ("ExecStart=/bin/sh -c 'echo 1 > /proc/sys/a'", file(true)),
            ("ExecStart=-/bin/bash -c \"echo $$x > /proc/sys/a\"", file(true)),
            ("ExecStop=/bin/sh -c 'echo 1 > /proc/sys/a'", file(false)),
            ("ExecStart=/bin/cat /proc/sys/a", vec![]),
            ("ExecStart=/bin/echo 1 > /proc/sys/a", vec![]),
            ("ExecStart=/bin/true ; /sbin/sysctl -w a.b=1", key.clone()),
            ("ExecStart=@/sbin/sysctl name -w a.b=%i", key),
            (
                "ExecStart=/opt/x ${A} /proc/sys/a",
                vec![(format!("{:?}", What::Named("/opt/x ${A} /proc/sys/a".to_owned())), false)],
            ),
        ] {
            assert_eq!(told(text), expected, "{text}");
        }
    }

    #[test]
    fn the_folder_the_variables_and_the_output_of_a_unit_decide_what_is_written() {
        let told = |text: &str| {
            let told = |effect: Effect| (effect.what, effect.is_sure);
            effects(text, None).into_iter().map(told).collect::<Vec<_>>()
        };
        let file = (What::File("/proc/sys/vm/a".to_owned()), true);
        let key = |is_sure| (What::Key("a.b".to_owned()), is_sure);
        for (text, expected) in [
            ("WorkingDirectory=/proc/sys/vm\nExecStart=/bin/sh -c 'echo 1 > a'", vec![file.clone()]),
            ("Environment=K=a.b=60\nExecStart=/sbin/sysctl -w ${K}", vec![key(true)]),
            ("Environment=\"O=-w a.b=60\" V=1\nExecStart=/sbin/sysctl $O", vec![key(true)]),
            ("Environment=K=a.b=60\nExecStart=/bin/sh -c 'sysctl -w $K'", vec![key(true)]),
            ("Environment=K=a.b=60\nEnvironmentFile=/x\nExecStart=/sbin/sysctl -w ${K}", vec![key(false)]),
            ("StandardOutput=file:/proc/sys/vm/a\nExecStart=/bin/echo 1", vec![file.clone()]),
            ("StandardOutput=append:/proc/sys/vm/a\nExecStart=/bin/echo 1", vec![file]),
            ("StandardOutput=journal\nExecStart=/bin/echo 1", vec![]),
        ] {
            assert_eq!(told(text), expected, "{text}");
        }
    }

    #[test]
    fn a_script_that_a_unit_starts_is_read_with_its_folder_and_its_variables() {
        let told = |unit: &str, script: &str| {
            let ask = |path: &str, _: bool| (path == "/opt/x").then(|| script.to_owned());
            let told = |effect: Effect| (effect.what, effect.says, effect.is_sure, effect.from);
            let sets = |effect: &Effect| !matches!(effect.what, What::Named(_));
            effects(unit, Some(&ask)).into_iter().filter(sets).map(told).collect::<Vec<_>>()
        };
        let unit = "WorkingDirectory=/proc/sys/vm\nEnvironment=V=1\nExecStart=-/opt/x start";
        let file = |is_sure| {
            vec![(
                What::File("/proc/sys/vm/a".to_owned()),
                "echo 1".to_owned(),
                is_sure,
                "/opt/x:2".to_owned(),
            )]
        };
        assert_eq!(told(unit, "#!/bin/sh\necho $V > a\n"), file(true));
        assert_eq!(told(&unit.replace("ExecStart", "ExecStop"), "#!/bin/sh\necho $V > a\n"), file(false));
        assert_eq!(told(unit, "echo $V > a\n"), [], "systemd starts no text that says not by what");
    }

    /// A false alarm is one of the monitoring.
    #[test]
    fn what_a_unit_is_kept_from_it_may_do_at_most() {
        let ask = |path: &str, _: bool| (path == "/opt/x").then(|| "#!/bin/sh\nsysctl -w a.b=1\n".to_owned());
        let told = |text: &str| {
            let is_key = |effect: &Effect| matches!(effect.what, What::Key(_));
            effects(text, Some(&ask))
                .iter()
                .filter(|effect| is_key(effect))
                .map(|effect| effect.is_sure)
                .collect()
        };
        for (text, expected) in [
            ("ExecStart=/opt/x", vec![true]),
            ("User=nobody\nExecStart=/opt/x", vec![false]),
            ("User=nobody\nUser=\nExecStart=/opt/x", vec![true]),
            ("User=root\nExecStart=/opt/x", vec![true]),
            ("User=nobody\nExecStart=+/opt/x", vec![true]),
            ("User=nobody\nExecStart=-!/opt/x", vec![true]),
            ("User=nobody\nExecStart=!!/opt/x", vec![false]),
            ("ExecStart=!!/opt/x", vec![true]),
            ("BindReadOnlyPaths=/proc/sys\nExecStart=/opt/x", vec![false]),
            ("BindPaths=/srv/opt:/opt\nExecStart=/opt/x", vec![false]),
            ("BindPaths=/srv/opt:/opt\nBindPaths=\nExecStart=/opt/x", vec![true]),
            ("TemporaryFileSystem=/opt:ro\nExecStart=/opt/x", vec![false]),
            ("TemporaryFileSystem=/opt:ro\nExecStart=+/opt/x", vec![true]),
            ("BindPaths=/srv/data\nExecStart=/opt/x", vec![true]),
            ("BindReadOnlyPaths=/etc/ssl\nTemporaryFileSystem=/var/tmp:ro\nExecStart=/opt/x", vec![true]),
            ("BindPaths=/srv/app/\nExecStart=/opt/x /srv/app/y", vec![false]),
            ("BindPaths=/srv/data -/srv/usr:/usr/local:norbind\nExecStart=/opt/x", vec![false]),
            ("TemporaryFileSystem=/\nExecStart=/opt/x", vec![false]),
            ("PrivateUsers=yes\nExecStart=/opt/x", vec![false]),
            (
                "RootDirectory=/srv/jail\nRootDirectoryStartOnly=yes\nExecStartPre=/opt/x\nExecStart=/opt/x",
                vec![true],
            ),
            ("RootDirectory=/srv/jail\nExecStartPre=/opt/x\nExecStart=/opt/x", vec![]),
            (
                "User=nobody\nPermissionsStartOnly=yes\nExecStartPre=/opt/x\nExecStart=/opt/x",
                vec![true, false],
            ),
            ("DynamicUser=1\nExecStart=/opt/x", vec![false]),
            ("ProtectKernelTunables=yes\nExecStart=/opt/x", vec![false]),
            ("ProtectKernelTunables=yes\nExecStart=!/opt/x", vec![false]),
            ("ProtectKernelTunables=yes\nProtectKernelTunables=no\nExecStart=/opt/x", vec![true]),
            ("ReadOnlyPaths=/etc -/proc/sys\nExecStart=/opt/x", vec![false]),
            ("ReadOnlyPaths=/\nExecStart=/opt/x", vec![false]),
            ("ReadOnlyPaths=/sys/kernel\nReadOnlyPaths=\nExecStart=/opt/x", vec![true]),
            ("ReadOnlyPaths=/etc /system\nExecStart=/opt/x", vec![true]),
            ("RootDirectory=/srv/jail\nExecStart=/opt/x", vec![]),
            ("RootDirectory=/srv/jail\nExecStart=/sbin/sysctl -w a.b=1", vec![false]),
            ("RootImage=/srv/a.raw\nRootImage=\nRootDirectory=/\nExecStart=/opt/x", vec![true]),
        ] {
            let found: Vec<bool> = told(text);
            assert_eq!(found, expected, "{text}");
        }
    }

    #[test]
    fn words_are_those_that_systemd_starts() {
        let told = |command| words(command).map(|words| words.join("|"));
        for (command, found) in [
            (r#"/bin/sh -c "echo a > /b; exit $$failed""#, Some("/bin/sh|-c|echo a > /b; exit $failed")),
            (r#"/bin/sh -c 'for f in 1; do echo $f; done'"#, Some("/bin/sh|-c|for f in 1; do echo $f; done")),
            (r#"x "50%% \"a\" '\\'""#, Some("x|50% \"a\" '\\'")),
            ("x %n", None),
            ("x $FILES", None),
            (r#"x "${FILE}""#, None),
            (r#"x "open"#, None),
            (r"x a\x20b", None),
        ] {
            assert_eq!(told(command).as_deref(), found, "{command}");
        }
    }
}
