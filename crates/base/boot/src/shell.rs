//! The assignments of `/etc/default/grub` and of the files beside it, as the shell takes them.
//!
//! Only what these files hold in practice: quotes, escapes, comments, continued lines, and variables that were set
//! before. A line with anything else (a condition, a command) sets nothing here, and is passed over.

use std::collections::BTreeMap;

use crate::odd::{Odd, refuse_zeroes};

/// One argument, and the file and line that gives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    /// The argument.
    pub text: String,
    /// File and line.
    pub source: String,
}

/// One character of a value, and the line that it comes from.
type Piece = (char, std::rc::Rc<str>);

/// What an assignment has taken out of a variable.
#[derive(Clone, Debug)]
struct Lost {
    name: String,
    pieces: Vec<Piece>,
    by: std::rc::Rc<str>,
}

/// Variables after some files were read, in order.
#[derive(Clone, Debug, Default)]
pub struct Shell {
    variables: BTreeMap<String, Vec<Piece>>,
    lost: Vec<Lost>,
    /// Lines that were passed over, with their source.
    unread: Vec<(String, String)>,
}

impl Shell {
    /// Reads a file.
    pub fn source(&mut self, text: &str, path: &str) {
        for (number, line) in logical_lines(text) {
            let source: std::rc::Rc<str> = std::rc::Rc::from(format!("{path}:{number}"));
            let line = line.trim_start();
            let bare = line.strip_prefix("export ").unwrap_or(line);
            let mut pass_over = || self.unread.push((line.to_owned(), source.to_string()));
            let Some((name, value)) = bare.split_once('=') else {
                pass_over();
                continue;
            };
            let (name, adds) = name.strip_suffix('+').map_or((name, false), |name| (name, true));
            let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
            if name.is_empty() || !name.chars().all(is_name) {
                pass_over();
                continue;
            }
            let Some(pieces) = self.expand(value, &source) else {
                self.unread.push((line.to_owned(), source.to_string()));
                continue;
            };
            let slot = self.variables.entry(name.to_owned()).or_default();
            if !adds {
                let mut gone = std::mem::take(slot);
                gone.retain(|(_, from)| !pieces.iter().any(|(_, kept)| kept == from));
                if !gone.is_empty() {
                    self.lost.push(Lost { name: name.to_owned(), pieces: gone, by: source });
                }
            }
            slot.extend(pieces);
        }
    }

    /// The words of a variable.
    #[must_use]
    pub fn words(&self, name: &str) -> Vec<Word> {
        self.variables.get(name).map(|pieces| words_of(pieces)).unwrap_or_default()
    }

    /// The words that a variable had, and that a later assignment took out of it as a whole line's: each with the file
    /// and line of that assignment.
    #[must_use]
    pub fn lost(&self, name: &str) -> Vec<(Word, String)> {
        let lost = self.lost.iter().filter(|lost| lost.name == name);
        lost.flat_map(|lost| words_of(&lost.pieces).into_iter().map(|word| (word, lost.by.to_string())))
            .collect()
    }

    /// File and line of what may set a variable anew, or take it away, and was not understood: a command that names it,
    /// a condition on the same line, an expansion that changes it. What adds to it, or sets another one, does not.
    #[must_use]
    pub fn unread(&self, name: &str) -> Vec<String> {
        let keeps = |line: &str| {
            let line = line.strip_prefix("export ").unwrap_or(line);
            let (set, value) = line.split_once('=').unwrap_or((line, ""));
            let is_name = |set: &str| set.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            let adds = value.contains(&format!("${name} ")) || value.contains(&format!("${{{name}}}"));
            // `export NAME`, `NAME+=...`, and the value of another variable.
            adds || !line.contains(name)
                || line == name
                || set == format!("{name}+")
                || (is_name(set) && set != name)
        };
        let unread = self.unread.iter().filter(|(line, _)| !keeps(line));
        unread.map(|(_, source)| source.clone()).collect()
    }

    /// Whether a line that was passed over may set a variable whose name begins so: it names one, or reads another
    /// file.
    #[must_use]
    pub fn may_set(&self, prefix: &str) -> bool {
        let reads = |line: &str| {
            let first = line.split_whitespace().next();
            matches!(first, Some("." | "source" | "eval"))
        };
        self.unread.iter().any(|(line, _)| line.contains(prefix) || reads(line))
    }

    /// The value of a variable in one text.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<String> {
        self.variables.get(name).map(|pieces| pieces.iter().map(|(c, _)| c).collect())
    }

    /// The value of an assignment, up to the blank that ends it. `None` for what only a shell can tell.
    fn expand(&self, value: &str, source: &std::rc::Rc<str>) -> Option<Vec<Piece>> {
        let mut pieces: Vec<Piece> = Vec::new();
        let mut chars = value.chars().peekable();
        let mut quote = None;
        while let Some(c) = chars.next() {
            match (quote, c) {
                (None, ' ' | '\t' | ';' | '\r') => break,
                (None, '\'' | '"') => quote = Some(c),
                (Some(open), c) if open == c => quote = None,
                (Some('\''), c) => pieces.push((c, source.clone())),
                (_, '`') => return None,
                (_, '\\') => {
                    let next = chars.next()?;
                    if quote.is_some() && !"\\\"$`".contains(next) {
                        pieces.push(('\\', source.clone()));
                    }
                    pieces.push((next, source.clone()));
                }
                (_, '$') => {
                    let braced = chars.next_if_eq(&'{').is_some();
                    let mut name = String::new();
                    while let Some(c) = chars.next_if(|c| c.is_ascii_alphanumeric() || *c == '_') {
                        name.push(c);
                    }
                    if name.is_empty() || (braced && chars.next() != Some('}')) {
                        return None;
                    }
                    pieces.extend(self.variables.get(&name).cloned().unwrap_or_default());
                }
                (_, c) => pieces.push((c, source.clone())),
            }
        }
        quote.is_none().then_some(pieces)
    }
}

/// The words of a text.
fn words_of(pieces: &[Piece]) -> Vec<Word> {
    let mut words: Vec<Word> = Vec::new();
    let mut open = false;
    for (c, source) in pieces {
        if c.is_whitespace() {
            open = false;
        } else if open {
            words.last_mut().expect("it was opened").text.push(*c);
        } else {
            words.push(Word { text: c.to_string(), source: source.to_string() });
            open = true;
        }
    }
    words
}

/// Lines with what is continued joined, without comments, with the number of their first line. A quoted value may go
/// over several lines.
fn logical_lines(text: &str) -> Vec<(usize, String)> {
    let mut lines = Vec::new();
    let (mut line, mut first, mut number) = (String::new(), 1, 1);
    let mut scan = Scan::default();
    for c in text.chars() {
        let place = scan.next(c);
        if c == '\n' {
            number += 1;
        }
        match place {
            Place::Ends => {
                lines.push((first, std::mem::take(&mut line)));
                first = number;
            }
            Place::Joined => {
                line.pop();
            }
            Place::Comment => {}
            Place::Text => line.push(c),
        }
    }
    lines.push((first, line));
    lines
}

/// What a character is for the shell.
enum Place {
    Text,
    Comment,
    /// The end of a line that nothing continues.
    Ends,
    /// The end of a line behind a backslash.
    Joined,
}

/// Where a shell is in a text.
#[derive(Default)]
struct Scan {
    quote: Option<char>,
    escaped: bool,
    comment: bool,
    /// Whether a word has begun, in which a `#` is a character like others.
    within: bool,
    previous: Option<char>,
    here: bool,
}

impl Scan {
    fn next(&mut self, c: char) -> Place {
        if self.comment && c != '\n' {
            return Place::Comment;
        }
        if std::mem::take(&mut self.escaped) {
            self.within = true;
            return if c == '\n' { Place::Joined } else { Place::Text };
        }
        let previous = self.previous.replace(c);
        match (self.quote, c) {
            (None, '\n') => {
                (self.comment, self.within) = (false, false);
                return Place::Ends;
            }
            (None, '#') if !self.within => {
                self.comment = true;
                return Place::Comment;
            }
            (None, '\'' | '"') => (self.quote, self.within) = (Some(c), true),
            (None, '<') if previous == Some('<') => self.here = true,
            (Some(open), c) if open == c => self.quote = None,
            (Some('\''), _) => {}
            (_, '\\') => (self.escaped, self.within) = (true, true),
            (None, c) => self.within = !(c.is_whitespace() || c == ';'),
            _ => {}
        }
        Place::Text
    }
}

/// Refuses a text that ends within a value, or that a line at its end would not follow: one that was cut off.
///
/// # Errors
/// What it ends in.
pub fn refuse_unfinished(text: &str) -> Result<(), Odd> {
    refuse_zeroes(text)?;
    let mut scan = Scan::default();
    let mut last_joined = false;
    for c in text.chars() {
        last_joined = matches!(scan.next(c), Place::Joined);
    }
    if scan.quote.is_some() {
        return Err(Odd::CutOff { what: "a quote has no end" });
    }
    if scan.escaped || last_joined {
        return Err(Odd::CutOff { what: "its last line is to be continued" });
    }
    crate::ended::refuse_cut_off(text)?;
    if scan.here {
        return Err(Odd::Unknown { what: "a text that its lines go on with (<<)" });
    }
    Ok(())
}
