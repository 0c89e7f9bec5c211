//! Whether a text that a shell reads ends where a command ends: of one that was cut off, the rest is missing.

use std::iter::Peekable;
use std::str::Chars;

use crate::odd::Odd;

/// What a shell is within.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Within {
    Single,
    Double,
    Back,
    Paren,
    Brace,
}

impl Within {
    fn told(self) -> &'static str {
        match self {
            Self::Single | Self::Double => "a quote has no end",
            Self::Back => "a backquote has no end",
            Self::Paren => "a parenthesis has no end",
            Self::Brace => "a brace has no end",
        }
    }
}

/// The words that open and close a command of several, and what is missing without the second.
const PAIRS: [(&[&str], &str, &str); 4] = [
    (&["if"], "fi", "an `if` has no `fi`"),
    (&["case"], "esac", "a `case` has no `esac`"),
    (&["for", "while", "until"], "done", "a loop has no `done`"),
    (&["{"], "}", "a `{` has no `}`"),
];

/// Words behind which another command begins.
const BEFORE_COMMANDS: [&str; 10] = ["if", "then", "else", "elif", "do", "while", "until", "!", "{", "time"];

/// A text on its way to its end.
#[derive(Default)]
struct Reader {
    within: Vec<Within>,
    word: String,
    is_command: bool,
    /// Whether the last command waits for another one behind it: `&&`, `||`, `|`.
    is_waiting: bool,
    open: [i32; PAIRS.len()],
    here: Vec<String>,
}

/// Refuses a text that ends within something, or whose last line was cut.
///
/// # Errors
/// What has no end.
pub(crate) fn refuse_cut_off(text: &str) -> Result<(), Odd> {
    let cut_off = |what| Err(Odd::CutOff { what });
    let mut reader = Reader { is_command: true, ..Reader::default() };
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        reader.take(c, &mut chars);
    }
    if let Some(within) = reader.within.last() {
        return cut_off(within.told());
    }
    reader.end_word();
    if let Some(at) = reader.open.iter().position(|open| *open > 0) {
        return cut_off(PAIRS[at].2);
    }
    if reader.is_waiting {
        return cut_off("its last line is to be continued");
    }
    let ends = |mark: &String| text.lines().any(|line| line.trim_start_matches('\t') == mark);
    if !reader.here.iter().all(ends) {
        return cut_off("a text that its lines go on with (<<) has no end");
    }
    let last = text.lines().last().unwrap_or_default().trim();
    if !text.ends_with('\n') && !is_whole(last) {
        return cut_off("its last line has no end, and is no assignment");
    }
    Ok(())
}

/// Whether a last line may stand there without an end of its own.
fn is_whole(line: &str) -> bool {
    let bare = line.strip_prefix("export ").unwrap_or(line);
    let name = bare.split_once('=').map(|(name, _)| name.strip_suffix('+').unwrap_or(name));
    let is_name =
        |name: &str| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') && !name.is_empty();
    // A word that closes a command, and a quote that goes over lines, are whole without one.
    let closes = |word: &str| PAIRS.iter().any(|(_, close, _)| *close == word);
    line.is_empty()
        || line.starts_with('#')
        || name.is_some_and(is_name)
        || closes(line.rsplit([' ', ';']).next().unwrap_or_default())
        || line.ends_with(['"', '\'', '`', ')'])
}

impl Reader {
    fn take(&mut self, c: char, chars: &mut Peekable<Chars<'_>>) {
        let top = self.within.last().copied();
        match (top, c) {
            (Some(Within::Single), '\'') => self.close(),
            (Some(Within::Single), _) => {}
            (_, '\\') => {
                // A line that a backslash continues is looked at elsewhere.
                if chars.next() != Some('\n') {
                    self.word.push('\\');
                }
            }
            (_, '`') => match self.within.iter().rposition(|within| *within == Within::Back) {
                Some(at) => self.within.truncate(at),
                None => self.open(Within::Back),
            },
            (_, '$') => match chars.peek() {
                Some('(') => self.open_next(Within::Paren, chars),
                Some('{') => self.open_next(Within::Brace, chars),
                _ => self.word.push(c),
            },
            (Some(Within::Double), '"') => self.close(),
            (Some(Within::Double), _) => {}
            (_, '"') => self.open(Within::Double),
            (Some(Within::Brace), '}') | (Some(Within::Paren), ')') => self.close(),
            (Some(Within::Brace), _) => {}
            (_, '\'') => self.open(Within::Single),
            (_, '#') if self.word.is_empty() => while chars.next_if(|c| *c != '\n').is_some() {},
            (_, '(') => {
                self.word.clear();
                self.open(Within::Paren);
                self.word.clear();
                self.is_command = true;
            }
            (None, '<') if chars.next_if_eq(&'<').is_some() => self.here(chars),
            (None, c) => self.plain(c, chars),
            // Within a substitution words are nobody's commands here, and a comment needs a blank before it.
            (Some(_), c) if c.is_whitespace() || ";|&".contains(c) => self.word.clear(),
            (Some(_), c) => self.word.push(c),
        }
    }

    fn open(&mut self, within: Within) {
        self.within.push(within);
        // Whatever it comes to, it is no word of the shell's own.
        self.word.push('\\');
    }

    fn open_next(&mut self, within: Within, chars: &mut Peekable<Chars<'_>>) {
        chars.next();
        self.open(within);
        if within == Within::Paren {
            self.word.clear();
        }
    }

    fn close(&mut self) {
        self.within.pop();
        self.word.push('\\');
    }

    fn here(&mut self, chars: &mut Peekable<Chars<'_>>) {
        self.end_word();
        chars.next_if_eq(&'-');
        while chars.next_if(|c| *c == ' ').is_some() {}
        let mut mark = String::new();
        while let Some(c) = chars.next_if(|c| !c.is_whitespace() && *c != ';') {
            mark.push(c);
        }
        mark.retain(|c| !"'\"\\".contains(c));
        self.here.push(mark);
    }

    fn plain(&mut self, c: char, chars: &mut Peekable<Chars<'_>>) {
        match c {
            '\n' | ';' => {
                let waits = self.is_waiting && self.word.is_empty();
                self.end_word();
                self.is_command = true;
                self.is_waiting = waits && c == '\n';
            }
            '&' | '|' => {
                self.end_word();
                // A command that goes on beside others waits for nobody.
                self.is_waiting = c == '|' || chars.next_if_eq(&'&').is_some();
                chars.next_if_eq(&'|');
                self.is_command = true;
            }
            c if c.is_whitespace() => self.end_word(),
            c => self.word.push(c),
        }
    }

    fn end_word(&mut self) {
        let word = std::mem::take(&mut self.word);
        if word.is_empty() {
            return;
        }
        self.is_waiting = false;
        if !std::mem::replace(&mut self.is_command, false) {
            return;
        }
        for (open, (begins, ends, _)) in self.open.iter_mut().zip(PAIRS) {
            *open += i32::from(begins.contains(&word.as_str())) - i32::from(ends == word);
        }
        self.is_command = BEFORE_COMMANDS.contains(&word.as_str());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell::refuse_unfinished;

    #[test]
    fn what_has_no_end_is_named() {
        let named = |text: &str| match refuse_unfinished(text) {
            Err(Odd::CutOff { what }) => what,
            other => panic!("{text}: {other:?}"),
        };
        assert_eq!(named("A=`echo 1\n"), "a backquote has no end");
        assert_eq!(named("A=\"`echo 1\"\n"), "a quote has no end");
        assert_eq!(named("A=$(echo 1\n"), "a parenthesis has no end");
        assert_eq!(named("A=${B\n"), "a brace has no end");
        assert_eq!(named("if true; then A=1\n"), "an `if` has no `fi`");
        assert_eq!(named("A=1\nGRU"), "its last line has no end, and is no assignment");
        assert_eq!(named("A=1 &&\n"), "its last line is to be continued");
        assert_eq!(named("cat <<EOF\nx\n"), "a text that its lines go on with (<<) has no end");
        for whole in ["A=1", "A=1\n# if `", "if true; then A=1; fi", "export A=1", "A=a#`echo b`", ""] {
            assert_eq!(refuse_unfinished(whole), Ok(()), "{whole}");
        }
    }
}
