//! Tasks of Ansible that set the kernel: the modules `sysctl`, `copy` of a file of `sysctl.d` or `tmpfiles.d`, and
//! commands that do either. Nothing is run, and of templates those variables are filled in that the file itself gives
//! a value.

use super::ansible_tasks::Task;
use super::ansible_vars::Variables;
use super::collect::Collector;
use super::written::Reader;
use super::yaml::Node;
use super::{arguments, grub, script, sysctl, tmpfiles, unit, written};

pub(super) use super::ansible_tasks::tasks;

/// What a module is told: its own words, and those of `args` beside it.
struct Arguments<'a> {
    own: &'a Node,
    more: Option<&'a Node>,
}

impl<'a> Arguments<'a> {
    fn get(&self, key: &str) -> Option<&'a Node> {
        self.own.get(key).or_else(|| self.more.and_then(|more| more.get(key)))
    }

    /// The text of a key: of a mapping, or in one line, `name=vm.swappiness value=1`.
    fn said(&self, key: &str) -> Option<String> {
        let text = self.get(key).and_then(Node::text).map(str::to_owned);
        text.or_else(|| in_line(self.own.text()?, key))
    }

    /// Whether a key is said to be so, as YAML and Ansible have words for it.
    fn says(&self, key: &str, words: [&str; 4]) -> bool {
        self.said(key).is_some_and(|word| words.contains(&word.to_ascii_lowercase().as_str()))
    }

    fn keys(&self) -> impl Iterator<Item = &'a str> {
        let all = [Some(self.own), self.more].into_iter().flatten().flat_map(Node::entries);
        all.map(|(key, _)| key.as_str())
    }

    /// The command, whichever way it is written.
    fn command(&self) -> &'a str {
        let keys = ["cmd", "_raw_params"].into_iter();
        let said = self.own.text().or_else(|| keys.filter_map(|key| self.get(key)).find_map(Node::text));
        said.unwrap_or_default().trim()
    }
}

const NO: [&str; 4] = ["false", "no", "off", "0"];

pub(super) fn read(documents: &[Node], collector: &mut Collector<'_>) {
    let variables = Variables::of(documents);
    for Task { node, name, arguments: own, scope, unknown } in tasks(documents) {
        let more = node.get("args");
        if only_applies(name, &Arguments { own, more }) {
            continue;
        }
        let (line, told) = (own.line, node.text_of("name").unwrap_or(name));
        let filled = unknown.map_or_else(|| variables.fill(own, &scope), Err).and_then(|own| {
            let more = more.map(|more| variables.fill(more, &scope)).transpose()?;
            Ok((own, more))
        });
        match filled {
            Err(reason) => collector.refuse(line, told, reason),
            Ok((own, more)) => {
                run(name, &Arguments { own: &own, more: more.as_ref() }, line, told, collector);
            }
        }
    }
}

/// Whether a task has files read that others wrote, and sets nothing by itself.
fn only_applies(name: &str, arguments: &Arguments<'_>) -> bool {
    match name {
        "command" | "shell" => {
            // Nothing but that: behind `&&` or in the next line stands another command.
            let is_one = |c: char| c.is_ascii_alphanumeric() || " /._-".contains(c);
            let command = arguments.command();
            let words: Vec<&str> = command.split_whitespace().collect();
            let is_known = match words.as_slice() {
                ["systemd-tmpfiles", "--create", files @ ..] => {
                    files.iter().all(|file| file.starts_with('/'))
                }
                ["sysctl", "--system"] | ["systemctl", "daemon-reload"] | ["update-grub"] => true,
                ["grub-mkconfig" | "grub2-mkconfig", "-o", _] => true,
                _ => false,
            };
            is_known && command.chars().all(is_one)
        }
        // The folder of a drop-in, and the reload behind it.
        "file" => {
            let path = ["path", "dest", "name"].iter().find_map(|key| arguments.said(key));
            let is_folder = arguments.said("state").as_deref() == Some("directory");
            is_folder && path.is_some_and(|path| unit::is_folder(&path) || path == "/etc/default/grub.d")
        }
        "systemd" | "systemd_service" => {
            arguments.keys().count() > 0 && arguments.keys().all(|key| key == "daemon_reload")
        }
        _ => false,
    }
}

fn run(name: &str, arguments: &Arguments<'_>, line: usize, told: &str, collector: &mut Collector<'_>) {
    let said = |key: &str| arguments.said(key);
    match name {
        "sysctl" => match (said("state").as_deref(), said("name").or_else(|| said("key")), said("value")) {
            (Some("absent"), ..) => {
                collector.refuse(line, told, "takes a line out of a file: a profile wants values")
            }
            (_, Some(key), Some(value)) => collector.sysctl(line, key.trim(), value.trim()),
            _ => collector.refuse(line, told, "sets nothing"),
        },
        "copy" => copied(arguments, line, told, collector),
        "command" | "shell" => match steps_aside(arguments) {
            Some(why) => collector.refuse(line, told, why),
            None if name == "command" => commanded(arguments, line, told, collector),
            None => in_shell(arguments, line, told, collector),
        },
        _ => collector.refuse(line, told, format!("a task of `{name}`: what that sets is not read")),
    }
}

/// What a task that is written in one line says for a key.
fn in_line(arguments: &str, key: &str) -> Option<String> {
    let words = quoted_words(arguments);
    words.iter().find_map(|word| Some(word.strip_prefix(key)?.strip_prefix('=')?.to_owned()))
}

/// A file that another program reads.
fn copied(arguments: &Arguments<'_>, line: usize, told: &str, collector: &mut Collector<'_>) {
    let path = arguments.said("dest").unwrap_or_default();
    let Some(content) = arguments.get("content") else {
        return collector.refuse(line, told, "copies a file: import that one");
    };
    if arguments.says("force", NO) {
        return collector.refuse(line, told, "writes the file only where there is none, which a host tells");
    }
    match written::reader_of(&path) {
        Some(Reader::Sysctl) => sysctl::read(&content.numbered(), collector),
        Some(Reader::Tmpfiles) => tmpfiles::read(&content.numbered(), collector),
        Some(Reader::Systemd) => unit::read(&content.numbered(), Some(&path), collector),
        None if path == "/etc/default/grub" || path.starts_with("/etc/default/grub.d/") => {
            grub::read(&content.numbered(), collector);
        }
        None => {
            let is_place = crate::address::of_path(collector.catalogue, &path).is_ok();
            let why = match is_place {
                true => {
                    "puts a file in the place of one of the kernel, which takes none: write it by a shell"
                }
                false => "writes a file that sets nothing of the kernel, as far as planish knows",
            };
            collector.refuse(line, told, why);
        }
    }
}

/// Why a command is done under a condition, or in another way than a shell does it.
fn steps_aside(arguments: &Arguments<'_>) -> Option<String> {
    const CONDITIONS: [(&str, &str); 3] = [
        ("creates", "done only where a file is not there, which a host tells"),
        ("removes", "done only where a file is there, which a host tells"),
        ("chdir", "done in another folder, which is not followed: write whole paths"),
    ];
    let given = |key: &str| arguments.get(key).is_some() || in_line(arguments.command(), key).is_some();
    if let Some((key, why)) = CONDITIONS.into_iter().find(|(key, _)| given(key)) {
        return Some(format!("{key}: {why}"));
    }
    let shell = arguments.said("executable")?;
    let name = shell.rsplit('/').next().unwrap_or_default();
    let is_read = ["ash", "bash", "dash", "ksh", "sh"].contains(&name);
    (!is_read).then(|| format!("executable: {shell} runs it, whose language is not read"))
}

/// A command without a shell: `&&`, `>` and `*` are words as others are.
fn commanded(arguments: &Arguments<'_>, line: usize, told: &str, collector: &mut Collector<'_>) {
    let listed = arguments.get("argv").map(|list| list.items().iter().filter_map(Node::text));
    let words: Vec<String> = match listed {
        Some(words) => words.map(str::to_owned).collect(),
        None if arguments.command().contains('\\') => {
            return collector.refuse(
                line,
                told,
                "has backslashes, which Ansible takes apart: write it without",
            );
        }
        None => quoted_words(arguments.command()),
    };
    if words.is_empty() {
        return collector.refuse(line, told, "sets nothing");
    }
    if words[0].rsplit('/').next() == Some("grubby") {
        return arguments::grubby(&words, line, told, collector);
    }
    let quoted: Vec<String> = words.iter().map(|word| format!("'{}'", word.replace('\'', r"'\''"))).collect();
    script::read(&("\n".repeat(line.saturating_sub(1)) + &quoted.join(" ")), collector);
}

/// A command or a script that a shell runs.
fn in_shell(arguments: &Arguments<'_>, line: usize, told: &str, collector: &mut Collector<'_>) {
    let command = arguments.command();
    let words = quoted_words(command);
    let is_plain = !command.contains(['&', '|', ';', '<', '>', '$', '`', '\\', '\n', '#']);
    match words.first().and_then(|first| first.rsplit('/').next()) {
        None => collector.refuse(line, told, "sets nothing"),
        Some("grubby") if is_plain => arguments::grubby(&words, line, told, collector),
        Some(_) => script::read(&("\n".repeat(line.saturating_sub(1)) + command), collector),
    }
}

/// Words as a shell takes them: quotes hold blanks together and fall away.
fn quoted_words(text: &str) -> Vec<String> {
    let (mut words, mut word, mut quote, mut any) = (Vec::new(), String::new(), None, false);
    for c in text.chars() {
        match (quote, c) {
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
    words
}
