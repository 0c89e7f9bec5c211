//! Tasks of Ansible that set the kernel: the modules `sysctl`, `copy` of a file of `sysctl.d` or `tmpfiles.d`, and
//! commands that do either. Nothing is run, and no template is filled in.

use super::collect::Collector;
use super::yaml::{Kind, Node};
use super::{script, sysctl, tmpfiles};

/// Keys of a play or a block that hold tasks.
const OF_TASKS: [&str; 7] = ["tasks", "pre_tasks", "post_tasks", "handlers", "block", "rescue", "always"];

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

/// The tasks of a playbook or of a file of tasks, in order.
pub(super) fn tasks(documents: &[Node]) -> Vec<&Node> {
    let mut tasks = Vec::new();
    documents.iter().flat_map(Node::items).for_each(|item| add_tasks(item, &mut tasks));
    tasks
}

fn add_tasks<'a>(item: &'a Node, tasks: &mut Vec<&'a Node>) {
    let mut holds = false;
    for (_, inner) in item.entries().iter().filter(|(key, _)| OF_TASKS.contains(&key.as_str())) {
        holds = true;
        inner.items().iter().for_each(|item| add_tasks(item, tasks));
    }
    if !holds && module(item).is_some() {
        tasks.push(item);
    }
}

/// The module of a task without its collection, and its arguments.
fn module(task: &Node) -> Option<(&str, &Node)> {
    let is_keyword = |key: &str| KEYWORDS.contains(&key) || key == "loop" || key.starts_with("loop_");
    let (key, arguments) = task.entries().iter().find(|(key, _)| !is_keyword(key))?;
    Some((key.rsplit('.').next().unwrap_or(key), arguments))
}

pub(super) fn read(documents: &[Node], collector: &mut Collector<'_>) {
    for task in tasks(documents) {
        let Some((name, arguments)) = module(task) else { continue };
        if only_applies(name, arguments) {
            continue;
        }
        let (line, told) = (arguments.line, task.text_of("name").unwrap_or(name));
        match unknown(task, arguments) {
            Some(reason) => collector.refuse(line, told, reason),
            None => run(name, arguments, line, told, collector),
        }
    }
}

/// Why what a task sets is not in the file.
fn unknown(task: &Node, arguments: &Node) -> Option<&'static str> {
    if ["loop", "with_items"].iter().any(|key| task.get(key).is_some()) || holds_template(arguments) {
        Some("a template of Ansible: its values are not in this file")
    } else if task.get("when").is_some() {
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
    let command = command(arguments);
    ["command", "shell"].contains(&name)
        && (command.starts_with("systemd-tmpfiles --create") || command.starts_with("sysctl --system"))
}

/// The command of a task, whichever way it is written.
fn command(arguments: &Node) -> &str {
    let said =
        arguments.text().or_else(|| arguments.text_of("cmd")).or_else(|| arguments.text_of("_raw_params"));
    said.unwrap_or_default().trim()
}

fn run(name: &str, arguments: &Node, line: usize, told: &str, collector: &mut Collector<'_>) {
    match name {
        "sysctl" => match (arguments.text_of("state"), arguments.text_of("name"), arguments.text_of("value"))
        {
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
