//! A file of ours that somebody else has written into: the lines of an entry go, and what others wrote there stays.

use planish_boot::{added_by, is_of_menu};

/// What becomes of such a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Merged {
    /// What is left of it; `None` for no file.
    pub text: Option<String>,
    /// Lines of others for what a line of the entry had set, which is no longer there as it was written.
    pub changed: Vec<String>,
}

/// The file `now`, which is `with` the lines of the entry and those of others, and should be `without` its lines.
/// Lines are found by what they say, wherever they stand by then. `None` where not one of those that are to go is
/// there: the file is theirs as a whole. `is_same` tells whether two lines set the same.
pub(crate) fn merge(
    now: &str,
    with: &str,
    without: Option<&str>,
    is_same: &dyn Fn(&str, &str) -> bool,
) -> Option<Merged> {
    let ours: Vec<&str> = with.lines().collect();
    let stay: Vec<&str> = without.unwrap_or_default().lines().collect();
    let mut is_there = vec![false; ours.len()];
    let mut stays = vec![false; stay.len()];
    let (mut first, mut behind) = (String::new(), vec![String::new(); stay.len()]);
    let mut theirs: Vec<&str> = Vec::new();
    // The line of ours that stays and that comes before the next one of theirs.
    let mut before: Option<usize> = None;
    for piece in now.split_inclusive('\n') {
        let line = piece.trim_end_matches(['\n', '\r']);
        let own = (0..ours.len()).find(|at| !is_there[*at] && ours[*at] == line);
        // One that comes back is there already where an undo was killed behind its write.
        let kept = (0..stay.len()).find(|at| !stays[*at] && stay[*at] == line);
        own.into_iter().for_each(|at| is_there[at] = true);
        if let Some(at) = kept {
            stays[at] = true;
            before = Some(at);
        }
        if own.is_none() && kept.is_none() {
            before.map_or(&mut first, |at| &mut behind[at]).push_str(piece);
            theirs.push(line);
        }
    }
    let goes = |at: &usize| !stay.contains(&ours[*at]);
    let going: Vec<usize> = (0..ours.len()).filter(goes).collect();
    if !going.is_empty() && !going.iter().any(|at| is_there[*at]) {
        return None;
    }
    let missing: Vec<&str> = going.iter().filter(|at| !is_there[**at]).map(|at| ours[*at]).collect();
    let is_changed = |line: &&&str| missing.iter().any(|own| is_same(own, line) || is_instead(own, line));
    let changed: Vec<String> = theirs.iter().filter(is_changed).map(|line| (*line).to_owned()).collect();
    let comes_back = |line: &str| going.iter().any(|at| is_there[*at] && is_same(ours[*at], line));
    let mut text = first;
    for (at, line) in stay.iter().enumerate() {
        if stays[at] || comes_back(line) {
            add(&mut text, &format!("{line}\n"));
        }
        add(&mut text, &behind[at]);
    }
    let text = (without.is_some() || !text.trim().is_empty()).then_some(text);
    Some(Merged { text, changed })
}

/// Adds lines to a text, whose last line may have no end.
fn add(text: &mut String, more: &str) {
    if !text.is_empty() && !text.ends_with('\n') && !more.is_empty() {
        text.push('\n');
    }
    text.push_str(more);
}

/// Whether a line of others stands for one of ours that gave arguments to the kernel, and is not there any more as it
/// was written: it has words in it, or lacks some, or has them in another order, or gives them another value. Whatever
/// it says by now, nobody can tell what of it is theirs.
fn is_instead(own: &str, line: &str) -> bool {
    added_by(own).is_some() && is_of_menu(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "# head\n";

    fn is_same(a: &str, b: &str) -> bool {
        let name = |line: &str| line.split('=').next().map(|name| name.trim().to_owned());
        a.contains('=') && name(a) == name(b)
    }

    fn merged(now: &str, with: &str, without: Option<&str>) -> Option<(Option<String>, Vec<String>)> {
        let text = |lines: &str| format!("{HEAD}{lines}");
        let (now, without) = (now.replace("HEAD", HEAD.trim_end()), without.map(text));
        let merged = merge(&now, &text(with), without.as_deref(), &is_same)?;
        Some((merged.text.map(|text| text.replace(HEAD.trim_end(), "HEAD")), merged.changed))
    }

    fn whole(text: &str) -> Option<(Option<String>, Vec<String>)> {
        Some((Some(text.to_owned()), Vec::new()))
    }

    #[test]
    fn our_lines_go_and_theirs_stay_where_they_are() {
        let two = "a = 1\nb = 2\n";
        assert_eq!(merged("HEAD\na = 1\n# note\nb = 2\n", two, None), whole("# note\n"));
        assert_eq!(merged("# top\nHEAD\na = 1\nb = 2\nc = 3", two, None), whole("# top\nc = 3"));
        assert_eq!(merged("HEAD\na = 1\nb = 2\n\n", two, None), Some((None, Vec::new())), "nothing is left");
        let rest = merged("HEAD\n# x\na = 1\n# y\nb = 2\r\n# z", two, Some("b = 2\n"));
        assert_eq!(rest, whole("HEAD\n# x\n# y\nb = 2\n# z"));
        // What an older entry wants comes back, in the order of the lines without the newer one.
        let back = merged("HEAD\nb = 2\n# x\na = 9\n", "b = 2\na = 9\n", Some("a = 1\nb = 2\n"));
        assert_eq!(back, whole("HEAD\na = 1\nb = 2\n# x\n"));
        // An undo that was killed behind its write, and nothing to take out.
        assert_eq!(merged("HEAD\na = 1\n# x\n", "a = 1\n", Some("a = 1\n")), whole("HEAD\na = 1\n# x\n"));
    }

    #[test]
    fn a_line_that_somebody_changed_or_removed_is_theirs() {
        let two = "a = 1\nb = 2\n";
        let changed = |line: &str| vec![line.to_owned()];
        assert_eq!(
            merged("HEAD\na = 7\nb = 2\n", two, None),
            Some((Some("a = 7\n".to_owned()), changed("a = 7")))
        );
        assert_eq!(merged("HEAD\nb = 2\n# x\n", two, None), whole("# x\n"), "removed");
        // What the older entry wants does not come back over theirs.
        let kept = merged("HEAD\na = 7\nb = 2\n", two, Some("a = 5\n"));
        assert_eq!(kept, Some((Some("HEAD\na = 7\n".to_owned()), changed("a = 7"))));
        assert_eq!(merged("# edited\n", two, None), None, "not one of ours");
        assert_eq!(merged("HEAD\na = 7\n", "a = 1\n", Some("c = 1\n")), None);
    }

    #[test]
    fn a_line_of_arguments_that_is_not_word_for_word_ours_is_theirs() {
        let own = planish_boot::drop_in_line("isolcpus=2-3 skew_tick=1");
        let with = format!("{HEAD}{own}");
        let changed = [
            own.replace("skew_tick=1", "skew_tick=1 quiet"),
            own.replace(" skew_tick", " quiet skew_tick"),
            own.replace("=2-3", "=2-5"),
            own.replace("isolcpus=2-3 skew_tick=1", "skew_tick=1 isolcpus=2-3"),
            own.replace("isolcpus=2-3 ", ""),
            own.replace("isolcpus=2-3 skew_tick=1", ""),
            own.replace("$GRUB_CMDLINE_LINUX_DEFAULT ", ""),
            own.replacen("_DEFAULT", "", 1),
            format!("export {own}"),
            format!("  {own}"),
            own.replace("=\"$GRUB_CMDLINE_LINUX_DEFAULT", "+=\""),
        ];
        for line in changed {
            assert_ne!(line, own);
            let merged = merge(&format!("{HEAD}{line}"), &with, None, &is_same).expect("the head is ours");
            assert_eq!(
                merged,
                Merged { text: Some(line.clone()), changed: vec![line.trim_end().to_owned()] }
            );
        }
        // One that is a comment by now, or is no longer there, is no line; one beside ours is theirs alone.
        let text = |text: &str| Some((Some(text.to_owned()), Vec::new()));
        let merged =
            |now: &str| merge(now, &with, None, &is_same).map(|merged| (merged.text, merged.changed));
        assert_eq!(merged(&format!("{HEAD}# {own}")), text(&format!("# {own}")));
        assert_eq!(merged(HEAD), Some((None, Vec::new())));
        let beside = own.replace("isolcpus=2-3 skew_tick=1", "quiet");
        assert_eq!(merged(&format!("{HEAD}{own}{beside}")), text(&beside));
    }
}
