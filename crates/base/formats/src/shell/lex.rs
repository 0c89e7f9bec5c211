//! Words and operators of a shell, as POSIX and bash have them (XCU 2.3), and the text of here-documents.

/// Why a shell could not read on, and the line at which.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// The line.
    pub line: usize,
    /// Why.
    pub why: &'static str,
}

/// A piece of a word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// As it stands there.
    Text {
        /// The text without its quotes.
        text: String,
        /// Whether quotes or a backslash keep it from a shell.
        quoted: bool,
    },
    /// `$name`, and `${name##*/}` with what follows the name.
    Variable {
        /// Its name.
        name: String,
        /// What follows the name in braces.
        rest: String,
        /// Whether it stands in quotes.
        quoted: bool,
    },
    /// `$((..))`.
    Sum {
        /// What is between the parentheses.
        text: String,
        /// Whether it stands in quotes.
        quoted: bool,
    },
    /// `$(..)`, with its commands; what else only a shell can tell has none.
    Output {
        /// The commands; none of what only a shell can tell.
        commands: String,
    },
}

/// A word as it stands there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word<'t> {
    /// Its pieces.
    pub parts: Vec<Part>,
    /// As it stands in the script.
    pub raw: &'t str,
}

impl Word<'_> {
    /// Its text where nothing of it is quoted or to be filled in: a reserved word, a name.
    pub fn plain(&self) -> Option<&str> {
        match self.parts.as_slice() {
            [Part::Text { text, quoted: false }] => Some(text),
            _ => None,
        }
    }

    /// The name and the rest of `name=value`.
    pub fn assigned(&self) -> Option<(&str, Word<'_>)> {
        let Some(Part::Text { text, quoted: false }) = self.parts.first() else { return None };
        let (name, value) = text.split_once('=')?;
        let name = name.strip_suffix('+').unwrap_or(name);
        if !is_name(name) {
            return None;
        }
        let mut parts = vec![Part::Text { text: value.to_owned(), quoted: false }];
        parts.extend(self.parts[1..].iter().cloned());
        // What is added to stands in another place.
        if text.starts_with(&format!("{name}+=")) {
            parts.push(Part::Output { commands: String::new() });
        }
        Some((name, Word { parts, raw: self.raw }))
    }
}

/// Whether a word is one that a variable can have.
pub fn is_name(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// What a script is made of, one after another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Token<'t> {
    /// A word.
    Word(Word<'t>),
    /// A number or `{name}` right before a redirection.
    Descriptor(&'t str),
    /// What joins commands or redirects one.
    Operator(&'static str),
    /// The end of a line.
    Newline,
    /// The end of the script.
    End,
}

/// The longest that fits counts.
const OPERATORS: [&str; 23] = [
    "&>>", "<<<", "<<-", ";;&", "<<", "<>", "<&", ">>", ">&", ">|", "&&", "&>", "||", "|&", ";;", ";&", "&",
    "|", ";", "(", ")", "<", ">",
];

/// What they begin with.
const JOINING: [char; 7] = ['&', '<', ';', '>', '|', '(', ')'];

/// A here-document: the lines of its text.
pub type Document<'t> = Vec<(usize, &'t str)>;

/// Reads a script word by word.
pub struct Lexer<'t> {
    text: &'t str,
    pub(super) at: usize,
    pub(super) line: usize,
    /// Here-documents that begin at the next line: their ends, and whether tabs in front fall away.
    pending: Vec<(String, bool)>,
    pub(super) documents: Vec<Document<'t>>,
    /// How deep commands stand inside `$( )` and quotes.
    depth: usize,
}

/// No script of settings goes deeper, and a hostile one must not exhaust the stack.
const DEPTH_MAX: usize = 40;

impl<'t> Lexer<'t> {
    /// Begins at the start of a text.
    pub fn new(text: &'t str) -> Self {
        Self { text, at: 0, line: 1, pending: Vec::new(), documents: Vec::new(), depth: 0 }
    }

    pub(super) fn slice(&self, from: usize, to: usize) -> &'t str {
        self.text.get(from..to).unwrap_or_default().trim()
    }

    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn bump(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        self.line += usize::from(c == '\n');
        Some(c)
    }

    fn broken(&self, why: &'static str) -> Broken {
        Broken { line: self.line, why }
    }

    /// Blanks, lines that go on, and comments.
    pub(super) fn skip(&mut self) {
        loop {
            match self.peek() {
                Some(' ' | '\t') => drop(self.bump()),
                Some('\\') if self.rest().starts_with("\\\n") => {
                    self.bump();
                    self.bump();
                }
                Some('#') => {
                    while self.peek().is_some_and(|c| c != '\n') {
                        self.bump();
                    }
                }
                _ => return,
            }
        }
    }

    /// Says where the here-document of a redirection ends, and its number.
    pub(super) fn expect_document(&mut self, end: &Word<'_>, strips_tabs: bool) -> usize {
        let text = end.parts.iter().map(|part| match part {
            Part::Text { text, .. } => text.as_str(),
            _ => end.raw,
        });
        self.pending.push((text.collect(), strips_tabs));
        self.documents.len() + self.pending.len() - 1
    }

    fn read_documents(&mut self) {
        for (end, strips_tabs) in std::mem::take(&mut self.pending) {
            let mut lines = Vec::new();
            while !self.rest().is_empty() {
                let line = self.rest().split('\n').next().unwrap_or_default();
                let number = self.line;
                self.at += line.len();
                self.bump();
                let bare = if strips_tabs { line.trim_start_matches('\t') } else { line };
                if bare == end {
                    break;
                }
                lines.push((number, bare));
            }
            self.documents.push(lines);
        }
    }

    /// The next one.
    ///
    /// # Errors
    /// A quote or a parenthesis that is not closed, and what is nested too deep.
    pub fn token(&mut self) -> Result<Token<'t>, Broken> {
        self.skip();
        let Some(c) = self.peek() else {
            self.read_documents();
            return Ok(Token::End);
        };
        if c == '\n' {
            self.bump();
            self.read_documents();
            return Ok(Token::Newline);
        }
        if JOINING.contains(&c) && !self.is_process() {
            let rest = self.rest();
            if let Some(operator) = OPERATORS.into_iter().find(|one| rest.starts_with(one)) {
                self.at += operator.len();
                return Ok(Token::Operator(operator));
            }
        }
        let from = self.at;
        let word = self.word()?;
        let redirects = self.peek().is_some_and(|c| "<>".contains(c));
        let is_number = word.raw.chars().all(|c| c.is_ascii_digit());
        let is_variable = word.raw.starts_with('{') && word.raw.ends_with('}') && word.raw.len() > 2;
        match redirects && (is_number || is_variable) {
            true => Ok(Token::Descriptor(&self.text[from..self.at])),
            false => Ok(Token::Word(word)),
        }
    }

    /// Whether commands stand there in the place of a file.
    fn is_process(&self) -> bool {
        self.rest().starts_with("<(") || self.rest().starts_with(">(")
    }

    /// What stands there up to one of some signs.
    fn up_to(&mut self, ends: impl Fn(u8) -> bool) -> &'t str {
        let rest = self.rest();
        // Signs of ASCII are never a part of another character.
        let text = &rest[..rest.bytes().position(ends).unwrap_or(rest.len())];
        self.line += text.bytes().filter(|byte| *byte == b'\n').count();
        self.at += text.len();
        text
    }

    fn word(&mut self) -> Result<Word<'t>, Broken> {
        let from = self.at;
        let mut parts = Vec::new();
        if self.is_process() {
            self.bump();
            let commands = self.parentheses()?.to_owned();
            parts.push(Part::Output { commands });
        }
        while let Some(c) = self.peek() {
            match c {
                ' ' | '\t' | '\n' | ';' | '&' | '|' | '(' | ')' | '<' | '>' => break,
                '\\' => {
                    self.bump();
                    match self.bump() {
                        Some('\n') => {}
                        Some(c) => add(&mut parts, &c.to_string(), true),
                        None => add(&mut parts, "\\", true),
                    }
                }
                '\'' => {
                    self.bump();
                    let text = self.until('\'')?;
                    add(&mut parts, text, true);
                }
                '"' => self.quoted(&mut parts)?,
                '$' | '`' => self.filled_in(&mut parts, false)?,
                _ => {
                    let text = self.up_to(|byte| b" \t\n;&|()<>\\'\"$`".contains(&byte));
                    add(&mut parts, text, false);
                }
            }
        }
        // `name=(..)`, an array of bash.
        if self.peek() == Some('(') && self.text[from..self.at].ends_with('=') {
            self.parentheses()?;
            parts.push(Part::Output { commands: String::new() });
        }
        Ok(Word { parts, raw: &self.text[from..self.at] })
    }

    fn until(&mut self, end: char) -> Result<&'t str, Broken> {
        let Some(length) = self.rest().find(end) else { return Err(self.broken("a quote is not closed")) };
        let text = &self.rest()[..length];
        self.line += text.matches('\n').count();
        self.at += length + end.len_utf8();
        Ok(text)
    }

    fn quoted(&mut self, parts: &mut Vec<Part>) -> Result<(), Broken> {
        let open = self.broken("a quote is not closed");
        self.bump();
        add(parts, "", true);
        loop {
            match self.peek().ok_or_else(|| open.clone())? {
                '"' => {
                    self.bump();
                    return Ok(());
                }
                '\\' => {
                    self.bump();
                    match self.bump().ok_or_else(|| open.clone())? {
                        '\n' => {}
                        c if "$`\"\\".contains(c) => add(parts, &c.to_string(), true),
                        c => add(parts, &format!("\\{c}"), true),
                    }
                }
                '$' | '`' => self.filled_in(parts, true)?,
                _ => {
                    let text = self.up_to(|byte| b"\"\\$`".contains(&byte));
                    add(parts, text, true);
                }
            }
        }
    }

    /// What begins with `$` or a backquote.
    fn filled_in(&mut self, parts: &mut Vec<Part>, quoted: bool) -> Result<(), Broken> {
        if self.bump() == Some('`') {
            let open = self.broken("a backquote is not closed");
            let mut commands = String::new();
            loop {
                match self.bump().ok_or_else(|| open.clone())? {
                    '`' => break,
                    '\\' => commands.extend(self.bump()),
                    c => commands.push(c),
                }
            }
            parts.push(Part::Output { commands });
            return Ok(());
        }
        match self.peek() {
            Some('(') => {
                let inner = self.parentheses()?;
                match inner.strip_prefix('(').and_then(|sum| sum.strip_suffix(')')) {
                    Some(sum) => parts.push(Part::Sum { text: sum.to_owned(), quoted }),
                    None => parts.push(Part::Output { commands: inner.to_owned() }),
                }
            }
            Some('{') => {
                let inner = self.braces()?;
                parts.push(named(inner, quoted));
            }
            // Words of bash alone, whose escapes are none of ours.
            Some('\'' | '"') if !quoted => parts.push(Part::Output { commands: String::new() }),
            Some(c) if c.is_ascii_alphabetic() || c == '_' => {
                let rest = self.rest();
                let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
                self.at += end;
                parts.push(Part::Variable { name: rest[..end].to_owned(), rest: String::new(), quoted });
            }
            Some(c) if c.is_ascii_digit() || "@*#?-$!".contains(c) => {
                self.bump();
                parts.push(Part::Variable { name: c.to_string(), rest: String::new(), quoted });
            }
            _ => add(parts, "$", quoted),
        }
        Ok(())
    }

    /// What stands between parentheses that belong together.
    pub(super) fn parentheses(&mut self) -> Result<&'t str, Broken> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(self.broken("nested deeper than any script of settings"));
        }
        let inner = self.between_parentheses();
        self.depth -= 1;
        inner
    }

    fn between_parentheses(&mut self) -> Result<&'t str, Broken> {
        let open = self.broken("a parenthesis is not closed");
        let from = self.at + 1;
        let (mut depth, mut before) = (0_usize, ' ');
        loop {
            let c = self.bump().ok_or_else(|| open.clone())?;
            match c {
                '(' => depth += 1,
                ')' => {
                    depth -= 1;
                    if depth == 0 {
                        let inner = &self.text[from..self.at - 1];
                        // Its parentheses and quotes are not those of commands.
                        let is_odd = inner.contains("<<") && !inner.starts_with('(')
                            || inner.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| word == "case");
                        return match is_odd {
                            true => Err(Broken { why: "commands inside $( ) that are not read", ..open }),
                            false => Ok(inner),
                        };
                    }
                }
                '\\' => drop(self.bump()),
                '\'' => drop(self.until('\'')?),
                '"' => {
                    self.at -= 1;
                    self.quoted(&mut Vec::new())?;
                }
                '#' if before.is_whitespace() => {
                    while self.peek().is_some_and(|c| c != '\n') {
                        self.bump();
                    }
                }
                _ => {}
            }
            before = c;
        }
    }

    fn braces(&mut self) -> Result<&'t str, Broken> {
        let open = self.broken("a brace is not closed");
        let from = self.at + 1;
        let mut depth = 0_usize;
        loop {
            match self.bump().ok_or_else(|| open.clone())? {
                '{' => depth += 1,
                '}' => {
                    depth -= 1;
                    if depth == 0 {
                        return Ok(&self.text[from..self.at - 1]);
                    }
                }
                '\\' => drop(self.bump()),
                '\'' => drop(self.until('\'')?),
                _ => {}
            }
        }
    }
}

/// `name`, `name##*/`, `#name`.
fn named(inner: &str, quoted: bool) -> Part {
    let end = inner.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(inner.len());
    let (name, rest) = if end == 0 { ("", inner) } else { inner.split_at(end) };
    Part::Variable { name: name.to_owned(), rest: rest.to_owned(), quoted }
}

fn add(parts: &mut Vec<Part>, more: &str, is_quoted: bool) {
    match parts.last_mut() {
        Some(Part::Text { text, quoted }) if *quoted == is_quoted => text.push_str(more),
        _ => parts.push(Part::Text { text: more.to_owned(), quoted: is_quoted }),
    }
}
