//! `/etc/default/grub` and files beside it: kernel arguments that a shell reads by lines of `NAME="..."`.
//!
//! grub-mkconfig sources them. Of each name the last line counts, and those of `GRUB_CMDLINE_LINUX` stand before those
//! of `GRUB_CMDLINE_LINUX_DEFAULT` (`util/grub.d/10_linux.in` of the project).

use super::collect::Collector;

/// The names whose arguments a host boots by, in their order.
const NAMES: [&str; 2] = ["GRUB_CMDLINE_LINUX", "GRUB_CMDLINE_LINUX_DEFAULT"];

/// Why lines are refused.
const CONDITION: &str = "stands under a condition that only a shell can tell";
const OTHERS: &str = "arguments of other entries of the menu than those that a host boots by";
const ONLY_A_SHELL: &str = "only a shell can tell: read are lines of NAME=\"...\"";

/// Whether a line gives arguments as only these files do.
pub(super) fn is_one(line: &str) -> bool {
    let name = line.trim_start().split_once('=').map(|(name, _)| name);
    name.is_some_and(|name| name.starts_with("GRUB_CMDLINE_"))
}

/// Whether a line has the shape of those of such a file.
pub(super) fn fits(line: &str) -> bool {
    line.starts_with("GRUB_") && line.contains('=')
}

/// What is given under a name so far.
#[derive(Default)]
struct Given {
    /// Line by line.
    said: Vec<(usize, String)>,
    /// A line behind it that may say it anew, and is not followed.
    doubted_by: Option<usize>,
}

pub(super) fn read(text: &str, collector: &mut Collector<'_>) {
    let mut given = [Given::default(), Given::default()];
    let mut depth = 0_usize;
    for (index, line) in text.lines().enumerate() {
        let (number, line) = (index + 1, line.trim());
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let assigned = line.split_once('=').filter(|(name, _)| name.chars().all(is_of_name));
        let Some((name, said)) = assigned else {
            depth = depth_behind(line, depth);
            if line.contains("GRUB_") || [". ", "source ", "eval "].iter().any(|word| line.starts_with(word))
            {
                given.iter_mut().for_each(|given| given.doubted_by = Some(number));
            }
            collector.refuse(number, line, ONLY_A_SHELL);
            continue;
        };
        let known = NAMES.iter().position(|known| *known == name).map(|at| &mut given[at]);
        let why = match known {
            Some(given) => match depth == 0 && give(number, name, said, given, collector) {
                true => continue,
                false => {
                    given.doubted_by = Some(number);
                    if depth > 0 { CONDITION } else { ONLY_A_SHELL }
                }
            },
            None if depth > 0 => CONDITION,
            None if name.starts_with("GRUB_CMDLINE_") => OTHERS,
            None => "how the boot loader works, and no argument of the kernel",
        };
        collector.refuse(number, line, why);
    }
    finish(&given, collector);
}

/// How deep in conditions and functions the next line stands.
fn depth_behind(line: &str, depth: usize) -> usize {
    line.split(|c: char| c.is_whitespace() || c == ';').fold(depth, |depth, word| match word {
        "case" | "for" | "if" | "until" | "while" | "{" => depth + 1,
        "done" | "esac" | "fi" | "}" => depth.saturating_sub(1),
        _ => depth,
    })
}

/// Takes the arguments that are sure.
fn finish(given: &[Given; 2], collector: &mut Collector<'_>) {
    let mut sure = Vec::new();
    for (name, Given { said, doubted_by }) in NAMES.iter().zip(given) {
        for (line, text) in said {
            match doubted_by {
                None => sure.push(("", *line, text.as_str())),
                Some(by) => {
                    collector.refuse(*line, &format!("{name}={text}"), format!("line {by} may say it anew"));
                }
            }
        }
    }
    collector.all_arguments(&sure);
}

/// Takes what a line gives under its name, in the place of what was or behind it; whether its words tell.
fn give(number: usize, name: &str, said: &str, given: &mut Given, collector: &mut Collector<'_>) -> bool {
    let Some(text) = value(said) else { return false };
    let before = [format!("${name} "), format!("${{{name}}} ")];
    let more = before.iter().find_map(|before| text.strip_prefix(before.as_str()));
    let own = more.unwrap_or(text);
    if own.contains(['$', '`', '\\']) || more.is_some() && said.starts_with('\'') {
        return false;
    }
    if more.is_none() {
        given.doubted_by = None;
        for (line, before) in given.said.drain(..) {
            let why = format!("line {number} says it anew");
            collector.pass_over(line, &format!("{name}={before}"), number, &why);
        }
    }
    given.said.push((number, own.to_owned()));
    true
}

/// The value of an assignment that is one word and all of its line, but for a comment.
fn value(said: &str) -> Option<&str> {
    let (text, rest) = match said.chars().next() {
        Some(quote @ ('"' | '\'')) => said[1..].split_once(quote)?,
        _ => said.split_at(said.find(char::is_whitespace).unwrap_or(said.len())),
    };
    let is_odd = said.starts_with(['"', '\'']) || !text.contains(['"', '\'', ';', '&', '|', '<', '>', '(']);
    let is_end =
        rest.is_empty() || rest.starts_with(char::is_whitespace) && rest.trim_start().starts_with('#');
    (is_odd && (is_end || rest.trim().is_empty())).then_some(text)
}
