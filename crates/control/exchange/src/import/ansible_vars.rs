//! Variables of a playbook, where its own text tells their values.
//!
//! What a play, a block or a task has in `vars` goes before inventories and facts, and of several the nearest counts.
//! Files of variables, roles and tasks that set some may go before it ("Understanding variable precedence" of
//! Ansible's guide): where one of them is in the file, nothing is filled in. Taken for granted is that whoever runs it
//! names no other values (`--extra-vars`).
//!
//! Non-goals: filters, expressions, and values that are computed of others.

use super::ansible_tasks::TEMPLATE;
use super::yaml::{Kind, Node};

/// Keys and modules that may give any variable another value.
const OTHERS: [&str; 12] = [
    "vars_files",
    "vars_prompt",
    "roles",
    "set_fact",
    "include_vars",
    "include_role",
    "import_role",
    "include_tasks",
    "import_tasks",
    "include",
    "import_playbook",
    "add_host",
];

/// Variables that Ansible itself gives their values, whatever a play says.
const MAGIC: [&str; 10] = [
    "environment",
    "group_names",
    "groups",
    "hostvars",
    "item",
    "omit",
    "play_hosts",
    "playbook_dir",
    "role_path",
    "vars",
];

/// What a file does with variables besides giving them values in `vars`.
pub(super) struct Variables<'a> {
    /// What may give any of them another value.
    doubt: Option<String>,
    /// Those that hold what became of a task.
    registered: Vec<&'a str>,
}

impl<'a> Variables<'a> {
    pub(super) fn of(documents: &'a [Node]) -> Self {
        let mut found = Self { doubt: None, registered: Vec::new() };
        documents.iter().for_each(|node| found.look_at(node));
        found
    }

    fn look_at(&mut self, node: &'a Node) {
        node.items().iter().for_each(|item| self.look_at(item));
        for (key, value) in node.entries() {
            if OTHERS.contains(&key.rsplit('.').next().unwrap_or(key)) && self.doubt.is_none() {
                let told = format!("`{key}` of line {} may give its variables other values", value.line);
                self.doubt = Some(format!("a template of Ansible: {told}"));
            }
            self.registered.extend(value.text().filter(|_| key == "register"));
            self.look_at(value);
        }
    }

    /// The arguments of a task with their variables filled in. `scope` are the `vars` around it, the nearest last.
    ///
    /// # Errors
    /// Why what stands there is not known.
    pub(super) fn fill(&self, arguments: &Node, scope: &[&Node]) -> Result<Node, String> {
        // Ansible takes a task of one line apart before it fills it in.
        let is_one_line = arguments.text().is_some();
        self.filled(arguments, scope, is_one_line)
    }

    fn filled(&self, node: &Node, scope: &[&Node], is_one_line: bool) -> Result<Node, String> {
        let kind = match &node.kind {
            Kind::Text(text) => Kind::Text(self.text(text, scope, is_one_line)?),
            Kind::List(items) => {
                let items = items.iter().map(|item| self.filled(item, scope, is_one_line));
                Kind::List(items.collect::<Result<_, _>>()?)
            }
            Kind::Map(entries) => {
                let filled = |(key, value): &(String, Node)| {
                    Ok::<_, String>((key.clone(), self.filled(value, scope, is_one_line)?))
                };
                Kind::Map(entries.iter().map(filled).collect::<Result<_, _>>()?)
            }
        };
        Ok(Node { line: node.line, kind })
    }

    fn text(&self, text: &str, scope: &[&Node], is_one_line: bool) -> Result<String, String> {
        let (mut found, mut rest) = (String::new(), text);
        while let Some((before, behind)) = rest.split_once("{{") {
            let (name, after) = behind.split_once("}}").ok_or(TEMPLATE)?;
            let value = self.value(name.trim(), scope)?;
            if is_one_line && value.contains(char::is_whitespace) {
                return Err(TEMPLATE.to_owned());
            }
            found.push_str(before);
            found.push_str(value);
            rest = after;
        }
        found.push_str(rest);
        if text.contains("{%") || text.contains("{#") { Err(TEMPLATE.to_owned()) } else { Ok(found) }
    }

    fn value<'n>(&self, name: &str, scope: &[&'n Node]) -> Result<&'n str, String> {
        let of_ansible = ["ansible_", "inventory_"].iter().any(|begin| name.starts_with(begin));
        let is_known_elsewhere = of_ansible || MAGIC.contains(&name) || self.registered.contains(&name);
        // Of one key twice the last counts.
        let said = |vars: &&'n Node| vars.entries().iter().rev().find(|(key, _)| key == name);
        let said = scope.iter().rev().find_map(said).filter(|_| !is_known_elsewhere);
        let value =
            said.and_then(|(_, value)| value.text()).filter(|value| is_plain(value)).ok_or(TEMPLATE)?;
        match &self.doubt {
            Some(why) => Err(why.clone()),
            None => Ok(value),
        }
    }
}

/// Whether a text is put in as it is written: it is a number of digits, or nothing that YAML has a word or a form for
/// (`yes`, `0x10`, `1e3`), and no template of its own.
fn is_plain(value: &str) -> bool {
    const WORDS: [&str; 9] = ["false", "n", "no", "null", "off", "on", "true", "y", "yes"];
    let digits = value.strip_prefix('-').unwrap_or(value);
    let is_number = digits == "0"
        || !digits.is_empty() && !digits.starts_with('0') && digits.bytes().all(|byte| byte.is_ascii_digit());
    let is_word = value.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/')
        && !WORDS.contains(&value.to_ascii_lowercase().as_str());
    let is_text = is_word || value.contains([' ', ',', '%']);
    (is_number || is_text) && !value.contains(['"', '\'', '\\', '{', '}', '$', '`', '\n'])
}
