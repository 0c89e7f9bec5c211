//! The commands of a script as a shell reads them: lists, pipelines and what holds others (XCU 2.10).

use super::lex::{Broken, Document, Lexer, Token, Word, is_name};

/// Commands one behind another.
#[derive(Debug, Default)]
pub struct List<'t> {
    /// In their order.
    pub items: Vec<Chain<'t>>,
    /// As it stands in the script.
    pub raw: &'t str,
}

/// Pipelines with `&&` and `||` between them.
#[derive(Debug)]
pub struct Chain<'t> {
    /// The first one.
    pub first: Pipeline<'t>,
    /// Whether it was `&&`.
    pub rest: Vec<(bool, Pipeline<'t>)>,
    /// Whether nothing waits for it.
    pub in_background: bool,
    /// Its line.
    pub line: usize,
}

/// Commands of which each reads what the one before says.
#[derive(Debug)]
pub struct Pipeline<'t> {
    /// Behind an odd number of `!`.
    pub is_negated: bool,
    /// At least one.
    pub commands: Vec<Command<'t>>,
    /// As it stands in the script.
    pub raw: &'t str,
}

/// One command.
#[derive(Debug)]
pub struct Command<'t> {
    /// What it is.
    pub kind: Kind<'t>,
    /// Its redirections.
    pub redirects: Vec<Redirect<'t>>,
    /// Its line.
    pub line: usize,
    /// As it stands in the script.
    pub raw: &'t str,
}

/// What a command is.
#[derive(Debug)]
pub enum Kind<'t> {
    /// A program or what the shell does by itself.
    Simple {
        /// What it assigns.
        assigned: Vec<Word<'t>>,
        /// The name and what it is given.
        words: Vec<Word<'t>>,
    },
    /// `{ ..; }`.
    Group(List<'t>),
    /// `( .. )`.
    Subshell(List<'t>),
    /// Conditions and what follows from each; the last may have none.
    If(Vec<(Option<List<'t>>, List<'t>)>),
    /// `while` and `until`.
    While {
        /// What is asked before each round.
        condition: List<'t>,
        /// Whether it runs until that holds.
        is_until: bool,
        /// What a round does.
        body: List<'t>,
    },
    /// `for` and `select`.
    For {
        /// The variable; none of `for ((..))`.
        name: &'t str,
        /// What it goes through, as words and as text; none where only a shell can tell.
        words: Option<(Vec<Word<'t>>, &'t str)>,
        /// What a round does.
        body: List<'t>,
    },
    /// `case`.
    Case {
        /// What is held against the patterns.
        subject: &'t str,
        /// Patterns, each with its commands.
        arms: Vec<(&'t str, List<'t>)>,
    },
    /// The definition of a function.
    Function {
        /// Its name.
        name: &'t str,
        /// What it does.
        body: Box<Command<'t>>,
    },
    /// `[[ .. ]]` of bash.
    Test(Vec<Word<'t>>),
    /// `((..))` of bash.
    Sum(&'t str),
}

/// Where a command reads from or writes to.
#[derive(Debug)]
pub struct Redirect<'t> {
    /// What of the command it is of, where that is said.
    pub descriptor: Option<&'t str>,
    /// The sign.
    pub operator: &'static str,
    /// The file, or the end of the here-document.
    pub target: Word<'t>,
    /// The number of its here-document.
    pub document: Option<usize>,
}

/// A whole script, as far as a shell can read it.
pub struct Script<'t> {
    /// What was read.
    pub list: List<'t>,
    /// Here-documents, in their order.
    pub documents: Vec<Document<'t>>,
    /// The line of the first command that cannot be read, and why.
    pub broken: Option<Broken>,
}

/// No script of settings is nested deeper, and a hostile one must not exhaust the stack.
const DEPTH_MAX: usize = 40;

/// Each one is held against all before it.
const CHAIN_MAX: usize = 100;

struct Parser<'t> {
    lexer: Lexer<'t>,
    token: Token<'t>,
    /// Where the token begins, and its line.
    from: usize,
    line: usize,
    /// Where the last one ended that was taken.
    end: usize,
    depth: usize,
}

/// Reads a script. What stands before the command that cannot be read would be run by a shell, too.
pub fn parse(text: &str) -> Script<'_> {
    let mut parser =
        Parser { lexer: Lexer::new(text), token: Token::Newline, from: 0, line: 1, end: 0, depth: 0 };
    let mut list = List::default();
    let mut broken = None;
    while broken.is_none() {
        let mut read = Ok(());
        while read.is_ok() && parser.token == Token::Newline {
            read = parser.advance();
        }
        let start = parser.line;
        if read.is_ok() && parser.token == Token::End {
            break;
        }
        // Of a command that a shell cannot read to its end it runs nothing.
        match read.and_then(|()| parser.line_of_commands()) {
            Ok(items) => list.items.extend(items),
            Err(error) => broken = Some(Broken { line: start, ..error }),
        }
    }
    Script { list, documents: parser.lexer.documents, broken }
}

impl<'t> Parser<'t> {
    fn advance(&mut self) -> Result<(), Broken> {
        self.end = self.lexer.at;
        self.lexer.skip();
        (self.from, self.line) = (self.lexer.at, self.lexer.line);
        self.token = self.lexer.token()?;
        Ok(())
    }

    fn broken(&self, why: &'static str) -> Broken {
        Broken { line: self.line, why }
    }

    fn since(&self, from: usize) -> &'t str {
        self.lexer.slice(from, self.end)
    }

    fn is_operator(&self, operator: &str) -> bool {
        matches!(self.token, Token::Operator(own) if own == operator)
    }

    fn is_word(&self, words: &[&str]) -> bool {
        matches!(&self.token, Token::Word(word) if word.plain().is_some_and(|own| words.contains(&own)))
    }

    fn take_word(&mut self, word: &str) -> Result<(), Broken> {
        if !self.is_word(&[word]) {
            return Err(self.broken("a loop, a condition or a group is not closed, or closed twice"));
        }
        self.advance()
    }

    fn skip_newlines(&mut self) -> Result<(), Broken> {
        while self.token == Token::Newline {
            self.advance()?;
        }
        Ok(())
    }

    /// What a shell runs before it reads on: commands up to the end of the line.
    fn line_of_commands(&mut self) -> Result<Vec<Chain<'t>>, Broken> {
        let mut items = Vec::new();
        loop {
            items.push(self.chain()?);
            match &self.token {
                Token::Operator(";") => self.advance()?,
                Token::Operator("&") => {
                    items.last_mut().expect("pushed").in_background = true;
                    self.advance()?;
                }
                Token::Newline | Token::End => {}
                _ => return Err(self.broken("a word or sign that no command has there")),
            }
            if matches!(self.token, Token::Newline | Token::End) {
                return Ok(items);
            }
        }
    }

    /// Commands up to a word or sign that ends them.
    fn list(&mut self, ends: &[&str]) -> Result<List<'t>, Broken> {
        let mut items: Vec<Chain<'t>> = Vec::new();
        self.skip_newlines()?;
        let from = self.from;
        loop {
            self.skip_newlines()?;
            let is_end = self.is_word(ends)
                || matches!(self.token, Token::End | Token::Operator(")" | ";;" | ";&" | ";;&"));
            if is_end {
                break;
            }
            items.push(self.chain()?);
            match &self.token {
                Token::Operator(";") | Token::Newline => self.advance()?,
                Token::Operator("&") => {
                    items.last_mut().expect("pushed").in_background = true;
                    self.advance()?;
                }
                _ => break,
            }
        }
        let raw = self.since(from).trim_end_matches([';', '\n', ' ']);
        Ok(List { items, raw })
    }

    /// Commands of which there must be one.
    fn some(&mut self, ends: &[&str]) -> Result<List<'t>, Broken> {
        let list = self.list(ends)?;
        if list.items.is_empty() {
            return Err(self.broken("no command where one must be"));
        }
        Ok(list)
    }

    fn chain(&mut self) -> Result<Chain<'t>, Broken> {
        let line = self.line;
        let first = self.pipeline()?;
        let mut rest = Vec::new();
        while let Token::Operator(operator @ ("&&" | "||")) = self.token {
            self.advance()?;
            self.skip_newlines()?;
            if rest.len() > CHAIN_MAX {
                return Err(self.broken("more commands joined by && and || than any script of settings has"));
            }
            rest.push((operator == "&&", self.pipeline()?));
        }
        Ok(Chain { first, rest, in_background: false, line })
    }

    fn pipeline(&mut self) -> Result<Pipeline<'t>, Broken> {
        let from = self.from;
        let mut is_negated = false;
        while self.is_word(&["!"]) {
            is_negated = !is_negated;
            self.advance()?;
        }
        let mut commands = vec![self.command()?];
        while let Token::Operator("|" | "|&") = self.token {
            self.advance()?;
            self.skip_newlines()?;
            commands.push(self.command()?);
        }
        Ok(Pipeline { is_negated, commands, raw: self.since(from) })
    }

    fn command(&mut self) -> Result<Command<'t>, Broken> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(self.broken("nested deeper than any script of settings"));
        }
        let (from, line) = (self.from, self.line);
        let mut redirects = Vec::new();
        let word = match &self.token {
            Token::Word(word) => word.plain().unwrap_or_default().to_owned(),
            _ => String::new(),
        };
        let kind = match word.as_str() {
            _ if self.is_operator("(") => self.parenthesis()?,
            "{" => {
                self.advance()?;
                let list = self.some(&["}"])?;
                self.take_word("}")?;
                Kind::Group(list)
            }
            "if" => self.condition()?,
            "while" | "until" => {
                self.advance()?;
                let condition = self.some(&["do"])?;
                Kind::While { condition, is_until: word == "until", body: self.body()? }
            }
            "for" | "select" => self.over_words(word == "select")?,
            "case" => self.cases()?,
            "[[" => self.test()?,
            "function" => {
                self.advance()?;
                let name = self.name()?;
                if self.is_operator("(") {
                    self.advance()?;
                    self.take_operator(")")?;
                }
                self.function(name)?
            }
            "then" | "else" | "elif" | "fi" | "do" | "done" | "esac" | "}" => {
                return Err(self.broken("a loop, a condition or a group is not closed, or closed twice"));
            }
            _ => self.simple(&mut redirects)?,
        };
        if !matches!(kind, Kind::Simple { .. } | Kind::Function { .. }) {
            while let Some(redirect) = self.redirect()? {
                redirects.push(redirect);
            }
        }
        self.depth -= 1;
        Ok(Command { kind, redirects, line, raw: self.since(from) })
    }

    fn take_operator(&mut self, operator: &str) -> Result<(), Broken> {
        if !self.is_operator(operator) {
            return Err(self.broken("a word or sign that no command has there"));
        }
        self.advance()
    }

    fn name(&mut self) -> Result<&'t str, Broken> {
        let Token::Word(word) = &self.token else { return Err(self.broken("a name is missing")) };
        let raw = word.raw;
        self.advance()?;
        Ok(raw)
    }

    fn function(&mut self, name: &'t str) -> Result<Kind<'t>, Broken> {
        self.skip_newlines()?;
        let body = self.command()?;
        if matches!(body.kind, Kind::Simple { .. } | Kind::Function { .. }) {
            return Err(self.broken("a function without a body"));
        }
        Ok(Kind::Function { name, body: Box::new(body) })
    }

    fn parenthesis(&mut self) -> Result<Kind<'t>, Broken> {
        if self.lexer.slice(self.from, self.from + 2) == "((" {
            self.lexer.at = self.from;
            let inner = self.lexer.parentheses()?;
            self.advance()?;
            return match inner.strip_prefix('(').and_then(|sum| sum.strip_suffix(')')) {
                Some(sum) => Ok(Kind::Sum(sum)),
                None => Err(self.broken("parentheses that are neither a sum nor one subshell")),
            };
        }
        self.advance()?;
        let list = self.some(&[])?;
        self.take_operator(")")?;
        Ok(Kind::Subshell(list))
    }

    fn condition(&mut self) -> Result<Kind<'t>, Broken> {
        let mut branches = Vec::new();
        self.advance()?;
        loop {
            let condition = self.some(&["then"])?;
            self.take_word("then")?;
            branches.push((Some(condition), self.some(&["elif", "else", "fi"])?));
            if self.is_word(&["elif"]) {
                self.advance()?;
                continue;
            }
            if self.is_word(&["else"]) {
                self.advance()?;
                branches.push((None, self.some(&["fi"])?));
            }
            self.take_word("fi")?;
            return Ok(Kind::If(branches));
        }
    }

    fn body(&mut self) -> Result<List<'t>, Broken> {
        self.take_word("do")?;
        let list = self.some(&["done"])?;
        self.take_word("done")?;
        Ok(list)
    }

    fn over_words(&mut self, is_select: bool) -> Result<Kind<'t>, Broken> {
        self.advance()?;
        if self.is_operator("(") {
            // `for ((..))` of bash.
            self.lexer.at = self.from;
            self.lexer.parentheses()?;
            self.advance()?;
            if self.is_operator(";") {
                self.advance()?;
            }
            self.skip_newlines()?;
            return Ok(Kind::For { name: "", words: None, body: self.body()? });
        }
        let name = self.name()?;
        if !is_name(name) {
            return Err(self.broken("a loop over no variable"));
        }
        self.skip_newlines()?;
        let mut words = None;
        if self.is_word(&["in"]) {
            self.advance()?;
            let (from, mut all) = (self.from, Vec::new());
            while let Token::Word(word) = &self.token {
                all.push(word.clone());
                self.advance()?;
            }
            words = (!is_select).then_some((all, self.since(from)));
            if !matches!(self.token, Token::Newline | Token::Operator(";")) {
                return Err(self.broken("a word or sign that no command has there"));
            }
        }
        if self.is_operator(";") {
            self.advance()?;
        }
        self.skip_newlines()?;
        Ok(Kind::For { name, words, body: self.body()? })
    }

    fn cases(&mut self) -> Result<Kind<'t>, Broken> {
        self.advance()?;
        let subject = self.name()?;
        self.skip_newlines()?;
        self.take_word("in")?;
        let mut arms = Vec::new();
        loop {
            self.skip_newlines()?;
            if self.is_word(&["esac"]) {
                self.advance()?;
                return Ok(Kind::Case { subject, arms });
            }
            if self.is_operator("(") {
                self.advance()?;
            }
            let from = self.from;
            while matches!(self.token, Token::Word(_) | Token::Operator("|")) {
                self.advance()?;
            }
            let pattern = self.since(from);
            self.take_operator(")")?;
            arms.push((pattern, self.list(&["esac"])?));
            match self.token {
                Token::Operator(";;" | ";&" | ";;&") => self.advance()?,
                _ if self.is_word(&["esac"]) => {}
                _ => return Err(self.broken("a case is not closed")),
            }
        }
    }

    fn test(&mut self) -> Result<Kind<'t>, Broken> {
        let mut words = Vec::new();
        loop {
            self.advance()?;
            match &self.token {
                Token::Word(word) if word.plain() == Some("]]") => {
                    self.advance()?;
                    return Ok(Kind::Test(words));
                }
                Token::Word(word) => words.push(word.clone()),
                Token::Operator(operator) => words.push(Word {
                    parts: vec![super::lex::Part::Text { text: (*operator).to_owned(), quoted: false }],
                    raw: operator,
                }),
                Token::Descriptor(_) | Token::Newline => {}
                Token::End => return Err(self.broken("a test is not closed")),
            }
        }
    }

    fn simple(&mut self, redirects: &mut Vec<Redirect<'t>>) -> Result<Kind<'t>, Broken> {
        let (mut assigned, mut words): (Vec<Word<'t>>, Vec<Word<'t>>) = (Vec::new(), Vec::new());
        loop {
            if let Some(redirect) = self.redirect()? {
                redirects.push(redirect);
                continue;
            }
            match &self.token {
                Token::Word(word) if words.is_empty() && word.assigned().is_some() => {
                    assigned.push(word.clone())
                }
                Token::Word(word) => words.push(word.clone()),
                Token::Operator("(") if words.len() == 1 && assigned.is_empty() && redirects.is_empty() => {
                    let name = words[0].raw;
                    self.advance()?;
                    self.take_operator(")")?;
                    return self.function(name);
                }
                _ => break,
            }
            self.advance()?;
        }
        if words.is_empty() && assigned.is_empty() && redirects.is_empty() {
            return Err(self.broken("no command where one must be"));
        }
        Ok(Kind::Simple { assigned, words })
    }

    fn redirect(&mut self) -> Result<Option<Redirect<'t>>, Broken> {
        let descriptor = match self.token {
            Token::Descriptor(number) => {
                self.advance()?;
                Some(number)
            }
            _ => None,
        };
        let Token::Operator(
            operator @ (">" | ">>" | "<" | "<<" | "<<-" | "<<<" | ">&" | "<&" | ">|" | "<>" | "&>" | "&>>"),
        ) = self.token
        else {
            return match descriptor {
                Some(_) => Err(self.broken("a redirection without a file")),
                None => Ok(None),
            };
        };
        self.advance()?;
        let Token::Word(target) = self.token.clone() else {
            return Err(self.broken("a redirection without a file"));
        };
        // It is announced before the line ends, as its text is that of the next lines.
        let strips_tabs = operator.strip_prefix("<<").filter(|rest| *rest != "<").map(|rest| rest == "-");
        let document = strips_tabs.map(|strips_tabs| self.lexer.expect_document(&target, strips_tabs));
        self.advance()?;
        Ok(Some(Redirect { descriptor, operator, target, document }))
    }
}
