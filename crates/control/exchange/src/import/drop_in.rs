//! Drop-ins of units that a script writes: `printf '%s\n' '[Service]' 'LimitNOFILE=65536' > FILE`, the folder that is
//! made for it, and the reload of systemd behind it.

use super::collect::Collector;
use super::unit;

/// Whether a path is that of a drop-in, or of a unit.
pub(super) fn is_one(path: &str) -> bool {
    path.starts_with("/etc/systemd/system/") && unit::unit_of(path).is_some()
}

/// `mkdir -p FOLDER` for drop-ins alone: it sets nothing by itself.
pub(super) fn makes_folder(words: &[&str]) -> bool {
    let mut folders = words.iter().skip(1).filter(|word| !word.starts_with('-')).peekable();
    folders.peek().is_some() && folders.all(|folder| unit::is_folder(folder))
}

/// `systemctl daemon-reload`, which has systemd read what was written.
pub(super) fn reloads(words: &[&str]) -> bool {
    words == ["systemctl", "daemon-reload"]
}

/// A file in the words of echo or printf; every line of it is told at the line of the script.
pub(super) fn written(line: usize, path: &str, words: &[String], collector: &mut Collector<'_>) {
    let refuse = |collector: &mut Collector<'_>| {
        collector.refuse(
            line,
            path,
            "writes a unit in words that are not one line each: printf '%s\\n' LINE ...",
        );
    };
    let lines: Vec<&str> = match words {
        [program, form, lines @ ..] if program == "printf" && form == r"%s\n" => {
            lines.iter().map(String::as_str).collect()
        }
        // With -e, and in some shells without, backslashes stand for other characters.
        [program, lines @ ..] if program == "echo" && !words.iter().any(|word| word.contains('\\')) => {
            match lines {
                [first, ..] if first.starts_with('-') => return refuse(collector),
                [one] => one.lines().collect(),
                _ => return refuse(collector),
            }
        }
        [program, text] if program == "printf" && !text.contains('%') => {
            let text = text.strip_suffix(r"\n").unwrap_or(text);
            let lines: Vec<&str> = text.split(r"\n").collect();
            if lines.iter().any(|line| line.contains('\\')) {
                return refuse(collector);
            }
            lines
        }
        _ => return refuse(collector),
    };
    unit::read_at(line, &lines, path, collector);
}
