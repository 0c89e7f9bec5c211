//! An imported profile as a file of its own, with what was refused as comments.

use std::fmt::Write as _;

use planish_model::{Case, Nodes, Want};

use super::Imported;

impl Imported {
    /// The profile in TOML. Lines that were refused stand on top, and what there is to know of others, so that
    /// nothing is lost or set in silence.
    #[must_use]
    pub fn to_toml(&self) -> String {
        let mut text = String::new();
        for line in self.lines.iter().filter(|line| !line.is_accepted()) {
            let (said, why) = (one_line(&line.text), line.reason.as_deref().unwrap_or_default());
            let _ = writeln!(text, "# refused, line {}: {said}\n#   {}", line.line, one_line(why));
        }
        for line in self.lines.iter().filter(|line| line.is_accepted()) {
            if let Some(note) = &line.reason {
                let _ =
                    writeln!(text, "# line {}: {}\n#   {}", line.line, one_line(&line.text), one_line(note));
            }
        }
        let _ = writeln!(text, "name    = {}", quoted(&self.profile.name));
        let _ = writeln!(text, "summary = {}\n\n[want]", quoted(&self.profile.summary));
        for (id, want) in &self.profile.want {
            let _ = writeln!(text, "\"{id}\" = {}", wanted(want));
        }
        text
    }
}

fn wanted(want: &Want) -> String {
    match want {
        Want::Int(number) => number.to_string(),
        Want::Text(value) => quoted(value),
        Want::Case(one) => case(one),
        Want::Cases(cases) => {
            let lines: String = cases.iter().map(|one| format!("  {},\n", case(one))).collect();
            format!("[\n{lines}]")
        }
        Want::Need { need_bytes, nodes: Nodes::Spread } => format!("{{ need_bytes = {need_bytes} }}"),
        Want::Need { need_bytes, nodes: Nodes::Each(nodes) } => {
            format!("{{ need_bytes = {need_bytes}, nodes = {nodes:?} }}")
        }
        // No foreign file asks for a function of ours.
        Want::From { .. } => String::new(),
    }
}

fn case(case: &Case) -> String {
    let only = case.only.as_ref().map(|only| format!(", only = {}", quoted(only))).unwrap_or_default();
    format!("{{ value = {}{only} }}", quoted(&case.value))
}

/// A basic string of TOML.
fn quoted(text: &str) -> String {
    toml::Value::String(one_line(text)).to_string()
}

fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
