//! Arguments of the kernel command line, on any number of lines.

use planish_model::{Catalogue, Knob, bootline};

use super::collect::Collector;
use super::grub;

pub(super) fn read(text: &str, collector: &mut Collector<'_>) {
    if text.lines().any(grub::is_one) {
        return grub::read(text, collector);
    }
    // The page size before `hugepages=` may stand on the line above.
    let joined: Vec<&str> = text.lines().filter(|line| !line.trim_start().starts_with('#')).collect();
    collector.arguments(1, &joined.join(" "));
}

/// Whether a line of several words is a command line of the kernel: one of them sets something, or is an argument that
/// planish knows. Any words would do otherwise.
pub(super) fn are(line: &str) -> bool {
    let words = || line.split_whitespace();
    let is_known =
        || Catalogue::embedded().is_ok_and(|catalogue| words().any(|word| is_of(&catalogue, word)));
    words().count() > 1 && !line.contains(" = ") && (line.contains('=') || is_known())
}

/// Whether a lone word is an argument of the kernel that planish knows: to a shell `isolcpus=1-3` is a variable of its
/// own, and `processor.max_cstate=1` could be a line of `sysctl.d`.
pub(super) fn is_one(word: &str) -> bool {
    Catalogue::embedded().is_ok_and(|catalogue| is_of(&catalogue, word))
}

fn is_of(catalogue: &Catalogue, word: &str) -> bool {
    let (name, _) = bootline::parts(word);
    let is_it = |knob: &Knob| {
        let parameter = knob.boot_parameter().map(|(name, _)| name).or(knob.boot_arg.as_deref());
        parameter.is_some_and(|parameter| bootline::same_name(parameter, name))
    };
    name.starts_with("sysctl.") || catalogue.knobs().any(is_it)
}

/// `grubby --update-kernel=ALL --args="isolcpus=2-3"`.
pub(super) fn grubby(words: &[String], line: usize, told: &str, collector: &mut Collector<'_>) {
    let (mut kernels, mut given, mut rest) = (None, Vec::new(), words.iter().skip(1));
    while let Some(word) = rest.next() {
        let (option, value) = match word.split_once('=') {
            Some((option, value)) => (option, Some(value.to_owned())),
            None => (word.as_str(), rest.next().cloned()),
        };
        let value = value.unwrap_or_default();
        match option {
            "--update-kernel" => kernels = Some(value),
            "--args" => given.push(value),
            "--remove-args" => {
                let why = "takes arguments off the command line: a profile gives some, and takes none away";
                collector.refuse(line, &format!("grubby --remove-args=\"{value}\""), why);
            }
            other => {
                return collector.refuse(
                    line,
                    told,
                    format!("an option of grubby that is not read: {other}"),
                );
            }
        }
    }
    match kernels.as_deref() {
        Some("ALL" | "DEFAULT") => given.iter().for_each(|given| collector.arguments(line, given)),
        _ if given.is_empty() => {}
        _ => collector.refuse(line, told, "of some kernel alone: read is --update-kernel=ALL or DEFAULT"),
    }
}
