//! The tasks of a playbook in their order, and which of them are done in any case, here, and as root.
//!
//! What a keyword of a task says is said of all tasks of a block or play, too (`playbooks_keywords` of the reference).

use super::yaml::Node;

/// Keys of a play or a block that hold tasks which are done in any case.
const OF_TASKS: [&str; 5] = ["tasks", "pre_tasks", "post_tasks", "block", "always"];

/// Keys that hold tasks which are done where something else failed or changed.
const OF_OTHERS: [&str; 2] = ["rescue", "handlers"];

/// What a task, block or play says besides its module. [`steered`] looks at those that say where and when.
const KEYWORDS: [&str; 58] = [
    "any_errors_fatal",
    "args",
    "async",
    "become",
    "become_exe",
    "become_flags",
    "become_method",
    "become_user",
    "changed_when",
    "check_mode",
    "collections",
    "connection",
    "debugger",
    "delay",
    "delegate_facts",
    "delegate_to",
    "diff",
    "environment",
    "fact_path",
    "failed_when",
    "force_handlers",
    "gather_facts",
    "gather_subset",
    "gather_timeout",
    "hosts",
    "ignore_errors",
    "ignore_unreachable",
    "listen",
    "loop",
    "max_fail_percentage",
    "module_defaults",
    "name",
    "no_log",
    "notify",
    "order",
    "poll",
    "port",
    "register",
    "remote_user",
    "retries",
    "roles",
    "run_once",
    "serial",
    "strategy",
    "tags",
    "throttle",
    "timeout",
    "until",
    "vars",
    "vars_files",
    "vars_prompt",
    "when",
    "tasks",
    "pre_tasks",
    "post_tasks",
    "block",
    "always",
    "validate_argspec",
];

/// A task, and why what it sets is not in the file or not for the host, where that is so.
pub(super) struct Task<'a> {
    pub(super) node: &'a Node,
    /// The module without its collection.
    pub(super) name: &'a str,
    /// What it is told.
    pub(super) arguments: &'a Node,
    /// The `vars` of its play, its blocks and its own, the nearest last.
    pub(super) scope: Vec<&'a Node>,
    pub(super) unknown: Option<String>,
}

pub(super) const TEMPLATE: &str = "a template of Ansible: its values are not in this file";
const LOOP: &str = "done once for each of a list, which is not gone through: write a task for each";
const ELSEWHERE: &str = "done where another task failed or changed something, which only Ansible can tell";

/// The tasks of a playbook or of a file of tasks, in order.
pub(super) fn tasks(documents: &[Node]) -> Vec<Task<'_>> {
    let plays: Vec<&Node> = documents.iter().flat_map(Node::items).collect();
    let mut found = Vec::new();
    let mut end = None;
    for item in &plays {
        // A play begins anew; tasks of a file of tasks are one after another.
        if item.get("hosts").is_some() {
            end = None;
        }
        add(item, several(&plays, item), &[], &mut end, &mut found);
    }
    found
}

/// Why the tasks of a play are not for one kind of hosts with those of another play.
fn several(plays: &[&Node], item: &Node) -> Option<String> {
    let own = hosts(item)?;
    let other = plays.iter().filter_map(|play| hosts(play)).find(|other| *other != own)?;
    Some(format!("of a play for `{own}`, and another one is for `{other}`: import a file with one of them"))
}

/// Which hosts a play is for.
fn hosts(play: &Node) -> Option<String> {
    let hosts = play.get("hosts")?;
    let listed: Vec<&str> = hosts.items().iter().filter_map(Node::text).collect();
    Some(hosts.text().map_or_else(|| listed.join(","), str::to_owned))
}

/// Adds the tasks of a play, a block or a task. `end` is the line that ends the play before it, or may.
fn add<'a>(
    item: &'a Node,
    around: Option<String>,
    scope: &[&'a Node],
    end: &mut Option<String>,
    found: &mut Vec<Task<'a>>,
) {
    let unknown = around.or_else(|| steered(item));
    let scope: Vec<&Node> = scope.iter().copied().chain(item.get("vars")).collect();
    let mut holds = false;
    for (key, inner) in item.entries() {
        let of_others = OF_OTHERS.contains(&key.as_str());
        if of_others || OF_TASKS.contains(&key.as_str()) {
            holds = true;
            let unknown = unknown.clone().or_else(|| of_others.then(|| ELSEWHERE.to_owned()));
            // Handlers and rescues end what is run of them alone.
            let mut aside = None;
            let end = if of_others { &mut aside } else { &mut *end };
            inner.items().iter().for_each(|item| add(item, unknown.clone(), &scope, end, found));
        }
        if key == "roles" {
            holds = true;
            let unknown = Some("has tasks of its own: import the tasks/main.yml of it".to_owned());
            let of_role = |role| {
                let (scope, unknown) = (Vec::new(), unknown.clone());
                Task { node: item, name: "role", arguments: role, scope, unknown }
            };
            found.extend(inner.items().iter().map(of_role));
        }
    }
    let Some((name, arguments)) = module(item).filter(|_| !holds) else { return };
    let unknown = unknown.or_else(|| end.clone());
    *end = end.take().or_else(|| ends(name, arguments, item));
    found.push(Task { node: item, name, arguments, scope, unknown });
}

/// The module of a task without its collection, and its arguments.
fn module(task: &Node) -> Option<(&str, &Node)> {
    let is_keyword = |key: &str| {
        let of_loops = key.starts_with("loop_") || key.starts_with("with_");
        KEYWORDS.contains(&key) || OF_OTHERS.contains(&key) || of_loops
    };
    let (key, arguments) = task.entries().iter().find(|(key, _)| !is_keyword(key))?;
    Some((key.rsplit('.').next().unwrap_or(key), arguments))
}

/// Why what stands behind a task may not be done.
fn ends(name: &str, arguments: &Node, task: &Node) -> Option<String> {
    let line = arguments.line;
    let is_end = match name {
        "meta" => {
            let ends = ["end_play", "end_host", "end_batch", "end_role"];
            arguments.text().is_some_and(|text| ends.contains(&text.trim()))
        }
        "fail" | "assert" => !is_true(task, "ignore_errors"),
        _ => false,
    };
    let is_sure = name != "assert" && task.get("when").is_none();
    is_end.then(|| match is_sure {
        true => format!("never done: `{name}` of line {line} stands before it"),
        false => format!("done only where `{name}` of line {line} goes on, which only Ansible can tell"),
    })
}

fn is_true(item: &Node, key: &str) -> bool {
    let word = item.text_of(key).map(str::to_ascii_lowercase);
    word.is_some_and(|word| !["false", "no", "off", "0", "n"].contains(&word.as_str()))
}

/// Why what a task, or every task of a block or play, sets is not in the file, or not set here in any case.
fn steered(item: &Node) -> Option<String> {
    let entries = item.entries().iter();
    entries.into_iter().find_map(|(key, value)| {
        let text = value.text().map(str::trim);
        let said = || text.unwrap_or("a list").to_owned();
        match (key.as_str(), text) {
            ("loop", _) => Some(LOOP.to_owned()),
            (key, _) if key.starts_with("with_") => Some(LOOP.to_owned()),
            ("when", _) => Some("done under a condition that only Ansible can tell".to_owned()),
            ("check_mode", _) if is_true(item, key) => {
                Some("check_mode: only looks, and sets nothing".to_owned())
            }
            ("delegate_to" | "local_action", _) => {
                Some(format!("{key}: done on another host than those of the play: {}", said()))
            }
            ("action", _) => Some("action: write the module as the key of the task".to_owned()),
            // Of a play it says that the host sets itself up.
            ("connection", Some("local")) if item.get("hosts").is_some() => None,
            ("connection", Some("ssh" | "smart" | "paramiko" | "paramiko_ssh")) => None,
            ("connection", _) => Some(format!("connection: done in another place than the host: {}", said())),
            ("become_user", text) if text != Some("root") => {
                Some(format!("become_user: only root sets the kernel, and this is done as {}", said()))
            }
            ("module_defaults", _) => {
                Some("module_defaults: tells modules more than stands at them".to_owned())
            }
            ("poll", Some("0")) => Some(
                "poll: runs in the background, beside what follows: take it by hand if it is meant"
                    .to_owned(),
            ),
            ("tags", _) if tags(value).contains(&"never") => {
                Some("tags: done only where somebody asks for its tag".to_owned())
            }
            _ => None,
        }
    })
}

fn tags(node: &Node) -> Vec<&str> {
    let listed = node.items().iter().filter_map(Node::text);
    listed.chain(node.text()).flat_map(|text| text.split(',')).map(str::trim).collect()
}
