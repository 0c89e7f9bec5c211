//! Drop-ins of units that a script writes, as they are when it has ended: by echo and printf, further lines by `>>`, a
//! here-document, the folder that is made for it, and the reload of systemd behind.

use std::collections::BTreeMap;

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

/// Lines of a text, and whether the last of them has its end.
pub(super) struct Text {
    pub(super) lines: Vec<(usize, String)>,
    pub(super) is_ended: bool,
}

/// One file, as far as the script wrote it.
struct File {
    text: Text,
    /// The line that may have changed it, or taken it away, in a way that is not followed.
    changed_by: Option<usize>,
}

/// The files that a script wrote so far, by their paths: systemd reads those of a unit in the order of their names.
#[derive(Default)]
pub(crate) struct Written(BTreeMap<String, File>);

impl Written {
    /// Lines that the line `by` of the script writes to a file, or adds to it. A file of which it is not sure what it
    /// held before cannot be added to.
    fn write(&mut self, path: &str, text: Text, appends: bool) -> Result<Vec<(usize, String)>, &'static str> {
        let file = self.0.get_mut(path);
        if !appends {
            let before = self.0.insert(path.to_owned(), File { text, changed_by: None });
            return Ok(before.map_or_else(Vec::new, |file| file.text.lines));
        }
        match file.filter(|file| file.changed_by.is_none()) {
            Some(file) if file.text.is_ended => {
                file.text.lines.extend(text.lines);
                file.text.is_ended = text.is_ended;
                Ok(Vec::new())
            }
            Some(_) => Err("adds to a line that has no end yet"),
            None => Err("adds to a file of which only a host can tell what it holds: import that one"),
        }
    }

    /// A command that is not followed has words that name files, or folders of them: those may be changed by it.
    pub(crate) fn doubt<'w>(&mut self, by: usize, words: impl Iterator<Item = &'w str> + Clone) {
        for (path, file) in &mut self.0 {
            if words.clone().any(|word| is_named(path, word)) {
                file.changed_by = file.changed_by.or(Some(by));
            }
        }
    }

    /// All of them may be changed.
    pub(crate) fn doubt_all(&mut self, by: usize) {
        self.0.values_mut().for_each(|file| file.changed_by = file.changed_by.or(Some(by)));
    }
}

/// Whether a word may name a file: by its path, a folder above it, a pattern, or from within a folder.
fn is_named(path: &str, word: &str) -> bool {
    if let Some(at) = word.find(['*', '?', '[', '{']) {
        return path.starts_with(&word[..at]) || !word.starts_with('/');
    }
    let word = word.trim_end_matches('/');
    match word.starts_with('/') {
        true => path.strip_prefix(word).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')),
        false => path.strip_suffix(word).is_some_and(|rest| !word.is_empty() && rest.ends_with('/')),
    }
}

/// Whether a command leaves a file as it is that it names.
pub(super) fn leaves(words: &[&str]) -> bool {
    let is_of_systemd =
        words[0] == "systemctl" && !words.iter().any(|word| ["edit", "revert"].contains(word));
    is_of_systemd
        || ["[", "cat", "chgrp", "chmod", "chown", "grep", "ls", "mkdir", "restorecon", "stat"]
            .contains(&words[0])
}

/// A file in the words of echo or printf, or in a here-document; every line of it is told at its line of the script.
pub(super) fn write(
    line: usize,
    path: &str,
    text: Result<Text, &'static str>,
    appends: bool,
    collector: &mut Collector<'_>,
) {
    let written = text.and_then(|text| collector.written.write(path, text, appends));
    match written {
        Ok(lost) => {
            for (number, text) in lost.into_iter().filter(|(number, _)| *number != line) {
                collector.pass_over(number, &text, line, &format!("line {line} writes the file anew"));
            }
        }
        Err(why) => {
            collector.written.doubt(line, std::iter::once(path));
            collector.refuse(line, path, why);
        }
    }
}

/// The lines that echo or printf says.
pub(super) fn said(line: usize, words: &[String]) -> Result<Text, &'static str> {
    const UNCLEAR: &str = "writes a unit in words that are not one line each: printf '%s\\n' LINE ...";
    let text = |lines: Vec<&str>, is_ended| {
        let lines = lines.into_iter().flat_map(str::lines).map(|text| (line, text.to_owned())).collect();
        Ok(Text { lines, is_ended })
    };
    match words {
        [program, form, lines @ ..] if program == "printf" && form == r"%s\n" => {
            text(lines.iter().map(String::as_str).collect(), true)
        }
        // With -e, and in some shells without, backslashes stand for other characters.
        [program, one] if program == "echo" && !one.contains('\\') && !one.starts_with('-') => {
            text(vec![one], true)
        }
        [program, said] if program == "printf" && !said.contains('%') => {
            let (bare, is_ended) =
                said.strip_suffix(r"\n").map_or((said.as_str(), said.ends_with('\n')), |bare| (bare, true));
            let lines: Vec<&str> = bare.split(r"\n").collect();
            if lines.iter().any(|line| line.contains('\\')) {
                return Err(UNCLEAR);
            }
            text(lines, is_ended)
        }
        _ => Err(UNCLEAR),
    }
}

/// Reads every file as the script leaves it.
pub(super) fn read(collector: &mut Collector<'_>) {
    for (path, file) in std::mem::take(&mut collector.written).0 {
        match file.changed_by {
            None => unit::read_at(&file.text.lines, &path, collector),
            Some(by) => {
                let why = format!("line {by} may change {path}, or take it away");
                for (number, text) in &file.text.lines {
                    collector.refuse(*number, text, why.clone());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use planish_model::{Catalogue, KnobId};

    use crate::{ImportFormat, import};

    const FILE: &str = "/etc/systemd/system/mongod.service.d/a.conf";

    /// The lines that were taken, and the wanted limit.
    fn taken(script: &str) -> (Vec<usize>, String) {
        let catalogue = Catalogue::embedded().expect("sound");
        let imported = import(&catalogue, "x", &script.replace("@", FILE), ImportFormat::Script);
        let taken = imported.lines.iter().filter(|line| line.is_accepted()).map(|line| line.line).collect();
        (taken, format!("{:?}", imported.profile.want.get(&KnobId::new("unit.nofile"))))
    }

    #[test]
    fn a_file_may_be_written_line_by_line_and_by_a_here_document() {
        for (script, line) in [
            ("echo '[Service]' > @\necho 'LimitNOFILE=64000' >> @\n", Some(2)),
            ("cat > @ <<'END'\n[Service]\nLimitNOFILE=64000\nEND\n", Some(3)),
            ("sudo tee @ > /dev/null <<END\n[Service]\nLimitNOFILE=64000\nEND\n", Some(3)),
            ("cat <<END | sudo tee -a @\n[Service]\nLimitNOFILE=64000\nEND\n", None),
            ("cat <<END | sudo tee @ > /dev/null\n[Service]\nLimitNOFILE=64000\nEND\n", Some(3)),
            ("cat <<END | tee @ /x\n[Service]\nLimitNOFILE=64000\nEND\n", None),
            ("cat <<END | grep -v x | tee @\n[Service]\nLimitNOFILE=64000\nEND\n", None),
            ("cat > @ <<-END\n\t[Service]\n\tLimitNOFILE=64000\n\tEND\n", Some(3)),
            ("echo '[Service]' > @\ncat >> @ <<END\nLimitNOFILE=64000\nEND\n", Some(3)),
            ("cat > @ <<END\n[Service]\nLimitNOFILE=$N\nEND\n", None),
            ("cat <<END\n[Service]\nLimitNOFILE=64000\nEND\n", None),
            ("[ -e /x ] && cat > @ <<'END'\n[Service]\nLimitNOFILE=64000\nEND\n", None),
            ("echo 'LimitNOFILE=64000' >> @\n", None),
            ("printf '[Service]' > @\necho 'LimitNOFILE=64000' >> @\n", None),
            ("[ -e /x ] && echo '[Service]' > @\necho 'LimitNOFILE=64000' >> @\n", None),
        ] {
            let (lines, want) = taken(script);
            assert_eq!(lines, line.into_iter().collect::<Vec<_>>(), "{script}");
            assert_eq!(want.contains("64000"), line.is_some(), "{script}: {want}");
        }
    }

    #[test]
    fn what_counts_is_the_file_as_the_script_leaves_it() {
        let first = "printf '%s\\n' '[Service]' 'LimitNOFILE=1000' > @\n";
        for (rest, line) in [
            ("printf '%s\\n' '[Service]' 'LimitNOFILE=64000' > @", Some(2)),
            ("rm -f @", None),
            ("rm -rf /etc/systemd/system/mongod.service.d", None),
            ("[ -e /x ] && rm -f @", None),
            ("if [ -e /x ]; then echo '[Service]' > @; fi", None),
            ("sed -i s/6/7/ @", None),
            ("cp /x @", None),
            ("rm -f $1/a.conf", None),
            ("eval x", None),
            ("trap 'rm -f @' EXIT", None),
            ("rm -rf /etc/systemd/system", None),
            ("rm -f /etc/systemd/system/mongod*/*.conf", None),
            ("cd /etc/systemd/system/mongod.service.d\nrm a.conf", None),
            (": > @", None),
            ("> @", None),
            ("cat /x > @", None),
            ("exec > @", None),
            ("{ echo a; } > @", None),
            ("F=@; { echo a; } > $F", None),
            ("echo x | tee @ /y", None),
            ("systemctl revert mongod.service", None),
            ("false && rm -f @", Some(1)),
            ("ls /etc/systemd/system", Some(1)),
            ("systemctl restart mongod.service", Some(1)),
            ("echo x > /tmp/a", Some(1)),
            ("chmod 644 @", Some(1)),
            ("systemctl daemon-reload", Some(1)),
            ("sysctl -w vm.swappiness=$1", Some(1)),
            ("rm -f /tmp/x", Some(1)),
            ("exit 0\nrm -f @", Some(1)),
        ] {
            let (lines, want) = taken(&format!("{first}{rest}\n"));
            assert_eq!(lines, line.into_iter().collect::<Vec<_>>(), "{rest}");
            assert_eq!(want.contains("64000"), line == Some(2), "{rest}: {want}");
        }
    }
}
