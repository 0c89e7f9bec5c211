//! Files of settings that a script writes, as they are when it has ended: drop-ins of units, files of `sysctl.d` and
//! `tmpfiles.d`. By echo and printf, further lines by `>>`, a here-document, the folder that is made for it, and what
//! has them read behind.
//!
//! What such a file says counts behind all that the script sets at once, since the next boot has it so.

use std::collections::BTreeMap;

use planish_sorted::SortSmall as _;

use super::collect::Collector;
use super::{sysctl, tmpfiles, unit};

/// What reads a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reader {
    Systemd,
    Sysctl,
    Tmpfiles,
}

/// What reads the file at a path, where that is followed.
pub(super) fn reader_of(path: &str) -> Option<Reader> {
    // A name that a shell fills in is one of several files, or none.
    if path.contains(['*', '?', '[']) {
        None
    } else if is_in("sysctl.d", path) || path == SYSCTL_CONF {
        Some(Reader::Sysctl)
    } else if is_in("tmpfiles.d", path) {
        Some(Reader::Tmpfiles)
    } else {
        (path.starts_with("/etc/systemd/system/") && unit::unit_of(path).is_some()).then_some(Reader::Systemd)
    }
}

/// Which `sysctl -p` reads, and systemd under the name below.
const SYSCTL_CONF: &str = "/etc/sysctl.conf";
const SYSCTL_CONF_OF_SYSTEMD: &str = "99-sysctl.conf";

/// Whether a file is one of those that are read of a folder (`sysctl.d(5)`, `tmpfiles.d(5)`).
fn is_in(folder: &str, path: &str) -> bool {
    let above = ["/etc/", "/run/", "/usr/local/lib/", "/usr/lib/", "/lib/"];
    let name =
        above.iter().find_map(|above| path.strip_prefix(above)?.strip_prefix(folder)?.strip_prefix('/'));
    name.is_some_and(|name| name.ends_with(".conf") && !name.contains('/'))
}

/// `mkdir -p FOLDER` for such files alone: it sets nothing by itself.
pub(super) fn makes_folder(words: &[&str]) -> bool {
    let is_one = |folder: &str| {
        unit::is_folder(folder) || reader_of(&format!("{}/x.conf", folder.trim_end_matches('/'))).is_some()
    };
    let mut folders = words.iter().skip(1).filter(|word| !word.starts_with('-')).peekable();
    folders.peek().is_some() && folders.all(|folder| is_one(folder))
}

/// Whether a command has no other files read than those that the script wrote, and sets nothing by itself: `sysctl -p`,
/// `systemctl daemon-reload`. What such a folder holds besides was there before the script, and is none of its doing.
pub(super) fn reloads(words: &[&str], written: &Written) -> bool {
    let names = |words: &[&str]| words.iter().all(|file| written.is_sure(file));
    match words {
        ["systemctl", "daemon-reload"] => true,
        ["systemctl", "restart" | "start", "systemd-sysctl" | "systemd-sysctl.service"] => {
            written.any(Reader::Sysctl)
        }
        ["systemd-tmpfiles", options @ .., last] => {
            let (files, options): (Vec<&str>, Vec<&str>) =
                options.iter().chain([last]).partition(|word| word.starts_with('/'));
            options == ["--create"]
                && if files.is_empty() { written.any(Reader::Tmpfiles) } else { names(&files) }
        }
        ["sysctl", rest @ ..] => {
            let silent = ["-e", "--ignore", "-q", "--quiet"];
            let mut rest = rest.iter().copied().filter(|word| !silent.contains(word));
            let (option, files) = (rest.next().unwrap_or_default(), rest.collect::<Vec<_>>());
            match option {
                "--system" => files.is_empty() && written.any(Reader::Sysctl),
                "-p" | "--load" | "-f" if files.is_empty() => written.is_sure(SYSCTL_CONF),
                "-p" | "--load" | "-f" => names(&files),
                option => {
                    let file = option.strip_prefix("--load=").or_else(|| option.strip_prefix("-p"));
                    files.is_empty() && file.is_some_and(|file| written.is_sure(file))
                }
            }
        }
        _ => false,
    }
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
    /// Lines that may have been changed before what the file holds now was added, each with the line that may have.
    doubted: Vec<(usize, String, usize)>,
}

impl File {
    fn of(text: Text) -> Self {
        Self { text, changed_by: None, doubted: Vec::new() }
    }
}

/// The files that a script wrote so far, by their paths: systemd reads those of a unit in the order of their names.
#[derive(Default)]
pub(crate) struct Written(BTreeMap<String, File>);

impl Written {
    /// Lines that are written to a file, or added to it; those that it held before and lost. Of a file of which it is
    /// not sure what it held before, what is added counts where the last line for a setting does: of `sysctl.d`.
    fn write(&mut self, path: &str, text: Text, appends: bool) -> Result<Vec<(usize, String)>, &'static str> {
        if !appends {
            let before = self.0.insert(path.to_owned(), File::of(text));
            return Ok(before.map_or_else(Vec::new, |file| file.text.lines));
        }
        let wins_at_the_end = reader_of(path) == Some(Reader::Sysctl);
        match self.0.get_mut(path) {
            Some(file) if file.changed_by.is_none() && file.text.is_ended => {
                file.text.lines.extend(text.lines);
                file.text.is_ended = text.is_ended;
            }
            Some(file) if file.changed_by.is_none() => return Err("adds to a line that has no end yet"),
            Some(file) if wins_at_the_end => {
                let by = file.changed_by.take().expect("looked at above");
                let before = std::mem::replace(&mut file.text, text);
                file.doubted.extend(before.lines.into_iter().map(|(number, line)| (number, line, by)));
            }
            None if wins_at_the_end => drop(self.0.insert(path.to_owned(), File::of(text))),
            _ => return Err("adds to a file of which only a host can tell what it holds: import that one"),
        }
        Ok(Vec::new())
    }

    /// Whether a file is one that the script wrote, and holds what it wrote.
    fn is_sure(&self, path: &str) -> bool {
        self.0.get(path).is_some_and(|file| file.changed_by.is_none())
    }

    /// Whether there is one of a kind, and nothing may have changed any of them.
    fn any(&self, reader: Reader) -> bool {
        let mut paths = self.0.keys().filter(|path| reader_of(path) == Some(reader)).peekable();
        paths.peek().is_some() && paths.all(|path| self.is_sure(path))
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
        || [
            "[",
            "cat",
            "chgrp",
            "chmod",
            "chown",
            "grep",
            "ls",
            "mkdir",
            "restorecon",
            "stat",
            "sysctl",
            "systemd-tmpfiles",
        ]
        .contains(&words[0])
}

/// A file in the words of echo or printf, or in a here-document; every line of it is told at its line of the script.
/// Whether it is followed what the file holds then.
pub(super) fn write(
    line: usize,
    path: &str,
    text: Result<Text, &'static str>,
    appends: bool,
    collector: &mut Collector<'_>,
) -> bool {
    let written = text.and_then(|text| collector.written.write(path, text, appends));
    match written {
        Ok(lost) => {
            for (number, text) in lost.into_iter().filter(|(number, _)| *number != line) {
                collector.pass_over(number, &text, line, &format!("line {line} writes the file anew"));
            }
            true
        }
        Err(why) => {
            collector.written.doubt(line, std::iter::once(path));
            collector.refuse(line, path, why);
            false
        }
    }
}

/// The lines that echo or printf says.
pub(super) fn said(line: usize, words: &[String]) -> Result<Text, &'static str> {
    const UNCLEAR: &str = "writes a file in words that are not one line each: printf '%s\\n' LINE ...";
    let text = |lines: Vec<&str>, is_ended| {
        let lines = lines.into_iter().flat_map(str::lines).map(|text| (line, text.to_owned())).collect();
        Ok(Text { lines, is_ended })
    };
    match words {
        [program, form, lines @ ..] if program == "printf" && form == r"%s\n" => {
            text(lines.iter().map(String::as_str).collect(), true)
        }
        // With -e, and in some shells without, backslashes stand for other characters.
        [program, rest @ ..]
            if program == "echo"
                && !rest.iter().any(|word| word.contains('\\'))
                && !rest.first().is_some_and(|word| word.starts_with('-')) =>
        {
            text(vec![&rest.join(" ")], true)
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

/// Reads every file as the script leaves it: those of a kind in the order in which their reader does.
pub(super) fn read(collector: &mut Collector<'_>) {
    let files = std::mem::take(&mut collector.written).0;
    let mut files: Vec<(Reader, String, File)> =
        files.into_iter().filter_map(|(path, file)| Some((reader_of(&path)?, path, file))).collect();
    files.sort_small_by_key(|(reader, path, _)| order(*reader, path).to_owned());
    let (mut seen, mut names) = (BTreeMap::new(), BTreeMap::new());
    // systemd sorts the lines of all of them.
    let mut of_sysctl = Vec::new();
    for (reader, path, file) in &files {
        let reader = *reader;
        for (number, text, by) in &file.doubted {
            collector.refuse(*number, text, format!("line {by} may change {path}, or take it away"));
        }
        let lines = &file.text.lines;
        let mut refuse =
            |why: &str| lines.iter().for_each(|(number, text)| collector.refuse(*number, text, why));
        if let Some(by) = file.changed_by {
            refuse(&format!("line {by} may change {path}, or take it away"));
        } else if let Some(first) = names.get(order(reader, path)).filter(|_| reader != Reader::Systemd) {
            refuse(&format!("a file of this name is written as {first}, too, and one of both is read"));
        } else {
            names.insert(order(reader, path).to_owned(), path.clone());
            match reader {
                Reader::Systemd => unit::read_at(lines, path, collector),
                Reader::Sysctl => of_sysctl.extend(numbered(lines)),
                Reader::Tmpfiles => tmpfiles::read_lines(numbered(lines), &mut seen, collector),
            }
        }
    }
    sysctl::read_lines(of_sysctl.into_iter(), collector);
}

fn numbered(lines: &[(usize, String)]) -> impl Iterator<Item = (usize, &str)> {
    lines.iter().map(|(number, text)| (*number, text.as_str()))
}

/// What orders the files of one reader: their names, whatever folder they are in; of units it is told by both.
fn order(reader: Reader, path: &str) -> &str {
    match reader {
        Reader::Systemd => path,
        _ if path == SYSCTL_CONF => SYSCTL_CONF_OF_SYSTEMD,
        _ => path.rsplit('/').next().unwrap_or(path),
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
