//! Tasks of Ansible that set the kernel: the modules `sysctl`, `copy` of a file of `sysctl.d` or `tmpfiles.d`, and
//! commands that do either. Nothing is run, and no template is filled in.

use super::collect::Collector;
use super::yaml::{Kind, Node};
use super::{script, sysctl, tmpfiles, unit, written};

/// Keys of a play or a block that hold tasks which are done in any case.
const OF_TASKS: [&str; 5] = ["tasks", "pre_tasks", "post_tasks", "block", "always"];

/// Keys that hold tasks which are done where something else failed or changed.
const OF_OTHERS: [&str; 2] = ["rescue", "handlers"];

/// What a task or play says besides its module (`ansible-playbook` reference, keywords).
const KEYWORDS: [&str; 24] = [
    "any_errors_fatal",
    "args",
    "become",
    "become_user",
    "changed_when",
    "check_mode",
    "connection",
    "delegate_to",
    "environment",
    "failed_when",
    "gather_facts",
    "hosts",
    "ignore_errors",
    "listen",
    "name",
    "no_log",
    "notify",
    "register",
    "roles",
    "run_once",
    "tags",
    "vars",
    "when",
    "with_items",
];

/// A task, and why what it sets is not in the file, where a play or block around it says so.
pub(super) struct Task<'a> {
    node: &'a Node,
    unknown: Option<&'static str>,
}

/// The tasks of a playbook or of a file of tasks, in order.
pub(super) fn tasks(documents: &[Node]) -> Vec<Task<'_>> {
    let mut tasks = Vec::new();
    documents.iter().flat_map(Node::items).for_each(|item| add_tasks(item, None, &mut tasks));
    tasks
}

fn add_tasks<'a>(item: &'a Node, around: Option<&'static str>, tasks: &mut Vec<Task<'a>>) {
    let unknown = around.or_else(|| steered(item));
    let mut holds = false;
    for (key, inner) in item.entries() {
        let of_others = OF_OTHERS.contains(&key.as_str());
        if of_others || OF_TASKS.contains(&key.as_str()) {
            holds = true;
            let unknown = unknown.or(of_others.then_some(ELSEWHERE));
            inner.items().iter().for_each(|item| add_tasks(item, unknown, tasks));
        }
    }
    if !holds && module(item).is_some() {
        tasks.push(Task { node: item, unknown });
    }
}

/// The module of a task without its collection, and its arguments.
fn module(task: &Node) -> Option<(&str, &Node)> {
    let is_keyword = |key: &str| KEYWORDS.contains(&key) || key == "loop" || key.starts_with("loop_");
    let (key, arguments) = task.entries().iter().find(|(key, _)| !is_keyword(key))?;
    Some((key.rsplit('.').next().unwrap_or(key), arguments))
}

pub(super) fn read(documents: &[Node], collector: &mut Collector<'_>) {
    for Task { node: task, unknown } in tasks(documents) {
        let Some((name, arguments)) = module(task) else { continue };
        if only_applies(name, arguments) {
            continue;
        }
        let (line, told) = (arguments.line, task.text_of("name").unwrap_or(name));
        match unknown.or_else(|| holds_template(arguments).then_some(TEMPLATE)) {
            Some(reason) => collector.refuse(line, told, reason),
            None => run(name, arguments, line, told, collector),
        }
    }
}

const TEMPLATE: &str = "a template of Ansible: its values are not in this file";
const ELSEWHERE: &str = "done where another task failed or changed something, which only Ansible can tell";

/// Why what a task, or every task of a block, sets is not in the file.
fn steered(item: &Node) -> Option<&'static str> {
    if ["loop", "with_items"].iter().any(|key| item.get(key).is_some()) {
        Some(TEMPLATE)
    } else if item.get("when").is_some() {
        Some("done under a condition that only Ansible can tell")
    } else {
        None
    }
}

fn holds_template(node: &Node) -> bool {
    match &node.kind {
        Kind::Text(text) => text.contains("{{") || text.contains("{%"),
        Kind::List(items) => items.iter().any(holds_template),
        Kind::Map(entries) => entries.iter().any(|(_, node)| holds_template(node)),
    }
}

/// Whether a task has files read that others wrote, and sets nothing by itself.
fn only_applies(name: &str, arguments: &Node) -> bool {
    let keys = || arguments.entries().iter().map(|(key, _)| key.as_str());
    match name {
        "command" | "shell" => {
            let applies = ["systemd-tmpfiles --create", "sysctl --system", "systemctl daemon-reload"];
            applies.iter().any(|applies| command(arguments).starts_with(applies))
        }
        // The folder of a drop-in, and the reload behind it.
        "file" => {
            let path = ["path", "dest", "name"].iter().find_map(|key| arguments.text_of(key));
            arguments.text_of("state") == Some("directory") && path.is_some_and(unit::is_folder)
        }
        "systemd" | "systemd_service" => keys().count() > 0 && keys().all(|key| key == "daemon_reload"),
        _ => false,
    }
}

/// The command of a task, whichever way it is written.
fn command(arguments: &Node) -> &str {
    let said =
        arguments.text().or_else(|| arguments.text_of("cmd")).or_else(|| arguments.text_of("_raw_params"));
    said.unwrap_or_default().trim()
}

fn run(name: &str, arguments: &Node, line: usize, told: &str, collector: &mut Collector<'_>) {
    // In one line, `name=vm.swappiness value=1`, or a mapping.
    let said =
        |key: &str| arguments.text_of(key).map(str::to_owned).or_else(|| in_line(arguments.text()?, key));
    match name {
        "sysctl" => match (said("state").as_deref(), said("name"), said("value")) {
            (Some("absent"), ..) => {
                collector.refuse(line, told, "takes a line out of a file: a profile wants values")
            }
            (_, Some(key), Some(value)) => collector.sysctl(line, key.trim(), value.trim()),
            _ => collector.refuse(line, told, "sets nothing"),
        },
        "copy" => copied(arguments, line, told, collector),
        "command" | "shell" => commanded(arguments, line, told, collector),
        _ => collector.refuse(line, told, format!("a task of `{name}`, which sets nothing of the kernel")),
    }
}

/// What a task that is written in one line says for a key.
fn in_line(arguments: &str, key: &str) -> Option<String> {
    let words = script::quoted_words(arguments);
    words.iter().find_map(|word| Some(word.strip_prefix(key)?.strip_prefix('=')?.to_owned()))
}

/// A file that another program reads.
fn copied(arguments: &Node, line: usize, told: &str, collector: &mut Collector<'_>) {
    let path = arguments.text_of("dest").unwrap_or_default();
    let Some(content) = arguments.get("content") else {
        return collector.refuse(line, told, "copies a file: import that one");
    };
    if path.contains("/sysctl.d/") || path == "/etc/sysctl.conf" {
        sysctl::read(&content.numbered(), collector);
    } else if path.contains("/tmpfiles.d/") {
        tmpfiles::read(&content.numbered(), collector);
    } else if written::is_one(path) {
        unit::read(&content.numbered(), Some(path), collector);
    } else {
        collector.refuse(
            line,
            told,
            "writes a file that sets nothing of the kernel, as far as planish knows",
        );
    }
}

/// A command that sets boot parameters, or what a script would.
fn commanded(arguments: &Node, line: usize, told: &str, collector: &mut Collector<'_>) {
    let command = command(arguments);
    let given = command.strip_prefix("grubby ").and_then(|rest| rest.split_once("--args="));
    match given.map(|(_, given)| given.trim_start_matches(['"', '\''])) {
        Some(given) => {
            let end = given.find(['"', '\'']).unwrap_or(given.len());
            collector.arguments(line, &given[..end]);
        }
        None if command.is_empty() => collector.refuse(line, told, "sets nothing"),
        None => script::read(&("\n".repeat(line.saturating_sub(1)) + command), collector),
    }
}
