//! One line of line protocol.
//!
//! ```text
//!   measurement[,tag=value]... field=value[,field=value]... [time]
//! ```
//!
//! A backslash in front of a comma, equals sign or blank of a name, in front of quotes in quotes, and in front of a
//! backslash anywhere, makes it a plain character; in front of anything else it is one itself.

use std::borrow::Cow;

use memchr::memchr2;

use crate::cell::Form;
use crate::error::{What, shown};
use crate::intake::Intake;

/// Why a line was not read to its end.
#[derive(Debug)]
pub(super) enum Stop {
    /// The bytes end before it does.
    Incomplete,
    /// A fault, and at which byte it lies.
    Fault(usize, What),
}

/// A line that was read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Line {
    /// Its bytes, with the line feed.
    pub(super) bytes: usize,
    /// Line feeds among them.
    pub(super) feeds: u64,
    /// Whether it is a row: else it is a comment, or blank.
    pub(super) is_row: bool,
}

/// What the line before had, which the next one mostly has again: names as they stood there, and what they mean.
#[derive(Debug, Default)]
pub(super) struct Guess {
    measurement: Option<(Box<[u8]>, usize)>,
    columns: Vec<(Box<[u8]>, usize)>,
}

const COMMA: u8 = 1;
const EQUALS: u8 = 2;
const BLANK: u8 = 4;
const FEED: u8 = 8;
const BACKSLASH: u8 = 16;
/// Which of the above a byte is.
const CLASS: [u8; 256] = class();

const fn class() -> [u8; 256] {
    let mut class = [0; 256];
    class[b',' as usize] = COMMA;
    class[b'=' as usize] = EQUALS;
    class[b' ' as usize] = BLANK;
    class[b'\n' as usize] = FEED;
    class[b'\\' as usize] = BACKSLASH;
    class
}

/// A name as it stands in the line.
#[derive(Clone, Copy)]
struct Name<'l> {
    text: &'l [u8],
    is_escaped: bool,
}

impl<'l> Name<'l> {
    fn plain(self) -> Cow<'l, [u8]> {
        if self.is_escaped { unescape(self.text, b", =\\").into() } else { self.text.into() }
    }
}

/// Reads the line at the beginning of some bytes into a row that is begun, and not ended.
pub(super) fn parse(input: &[u8], guess: &mut Guess, intake: &mut Intake) -> Result<Line, Stop> {
    Parser { input, at: 0, feeds: 1, position: 0, guess, intake }.line()
}

struct Parser<'l, 'i> {
    input: &'l [u8],
    at: usize,
    feeds: u64,
    /// Known columns so far.
    position: usize,
    guess: &'i mut Guess,
    intake: &'i mut Intake,
}

impl<'l> Parser<'l, '_> {
    fn line(mut self) -> Result<Line, Stop> {
        while matches!(self.peek()?, b' ' | b'\t' | b'\r') {
            self.at += 1;
        }
        match self.peek()? {
            b'\n' => return Ok(Line { bytes: self.at + 1, feeds: 1, is_row: false }),
            b'#' => {
                let end = memchr::memchr(b'\n', &self.input[self.at..]).ok_or(Stop::Incomplete)?;
                return Ok(Line { bytes: self.at + end + 1, feeds: 1, is_row: false });
            }
            _ => {}
        }
        self.measurement()?;
        while self.peek()? == b',' {
            self.at += 1;
            self.tag()?;
        }
        self.blanks()?;
        loop {
            self.field()?;
            if self.peek()? != b',' {
                break;
            }
            self.at += 1;
        }
        self.time()?;
        Ok(Line { bytes: self.at + 1, feeds: self.feeds, is_row: true })
    }

    fn peek(&self) -> Result<u8, Stop> {
        self.input.get(self.at).copied().ok_or(Stop::Incomplete)
    }

    fn expected<T>(&self, expected: &'static str) -> Result<T, Stop> {
        Err(Stop::Fault(self.at, What::Syntax { expected }))
    }

    /// Goes over blanks; one at least must be there.
    fn blanks(&mut self) -> Result<(), Stop> {
        if self.peek()? != b' ' {
            return self.expected("a blank, and fields behind it");
        }
        while self.peek()? == b' ' {
            self.at += 1;
        }
        Ok(())
    }

    /// Goes over a name, to the first of some bytes that no backslash stands in front of.
    fn name(&mut self, stops: u8) -> Result<Name<'l>, Stop> {
        let (start, mut is_escaped) = (self.at, false);
        loop {
            let byte = self.peek()?;
            if CLASS[usize::from(byte)] & (stops | BACKSLASH) == 0 {
                self.at += 1;
            } else if byte == b'\\' {
                let next = *self.input.get(self.at + 1).ok_or(Stop::Incomplete)?;
                let is_escape = CLASS[usize::from(next)] & (COMMA | EQUALS | BLANK | BACKSLASH) != 0;
                is_escaped |= is_escape;
                self.at += 1 + usize::from(is_escape);
            } else {
                return Ok(Name { text: &self.input[start..self.at], is_escaped });
            }
        }
    }

    fn measurement(&mut self) -> Result<(), Stop> {
        let start = self.at;
        let name = self.name(COMMA | BLANK | FEED)?;
        if name.text.is_empty() {
            return self.expected("a measurement");
        }
        if let Some((text, table)) = &self.guess.measurement
            && **text == *name.text
        {
            self.intake.begin(*table);
            return Ok(());
        }
        let plain = name.plain();
        let table = self.intake.targets.iter().position(|target| target.name.as_bytes() == &*plain);
        let Some(table) = table else {
            return Err(Stop::Fault(start, What::NoTable { name: shown(&plain) }));
        };
        self.guess.measurement = Some((name.text.into(), table));
        self.guess.columns.clear();
        self.intake.begin(table);
        Ok(())
    }

    /// The column that a name means; none where it is to be left out.
    fn column(&mut self, at: usize, name: Name<'l>) -> Result<Option<usize>, Stop> {
        if let Some((text, column)) = self.guess.columns.get(self.position)
            && **text == *name.text
        {
            self.position += 1;
            return Ok(Some(*column));
        }
        let column = self.intake.column(&name.plain()).map_err(|what| Stop::Fault(at, what))?;
        if let Some(column) = column {
            // Others stand there now: what stood behind is to be learned anew.
            self.guess.columns.truncate(self.position);
            self.guess.columns.push((name.text.into(), column));
            self.position += 1;
        }
        Ok(column)
    }

    fn put(&mut self, at: usize, column: Option<usize>, form: Form, text: &[u8]) -> Result<(), Stop> {
        let Some(column) = column else { return Ok(()) };
        self.intake.put(column, form, text).map_err(|what| Stop::Fault(at, what))
    }

    /// A name and the `=` behind it; the column that it means.
    fn key(&mut self, expected: &'static str) -> Result<Option<usize>, Stop> {
        let at = self.at;
        let name = self.name(COMMA | EQUALS | BLANK | FEED)?;
        if name.text.is_empty() || self.peek()? != b'=' {
            return self.expected(expected);
        }
        let column = self.column(at, name)?;
        self.at += 1;
        Ok(column)
    }

    fn tag(&mut self) -> Result<(), Stop> {
        let column = self.key("the name of a tag and an equals sign")?;
        let at = self.at;
        let value = self.name(COMMA | EQUALS | BLANK | FEED)?;
        if value.text.is_empty() {
            return self.expected("the value of a tag");
        }
        if matches!(self.peek()?, b'=' | b'\n') {
            return self.expected("a comma, or a blank and fields");
        }
        self.put(at, column, Form::Tag, &value.plain())
    }

    fn field(&mut self) -> Result<(), Stop> {
        let column = self.key("the name of a field and an equals sign")?;
        if self.peek()? == b'"' {
            return self.quoted(column);
        }
        let (at, text) = self.bare()?;
        match text {
            [] => self.expected("the value of a field"),
            [number @ .., b'i'] if is_whole(number) => self.put(at, column, Form::Whole, number),
            [number @ .., b'u'] if is_whole(number) && number[0] != b'-' => {
                self.put(at, column, Form::Whole, number)
            }
            text => self.put(at, column, Form::Bare, text),
        }
    }

    /// Goes over what has no escapes; where it begins, and what it is without the return in front of a line feed.
    fn bare(&mut self) -> Result<(usize, &'l [u8]), Stop> {
        let start = self.at;
        while CLASS[usize::from(self.peek()?)] & (COMMA | BLANK | FEED) == 0 {
            self.at += 1;
        }
        let text = &self.input[start..self.at];
        let is_last = self.input[self.at] == b'\n';
        Ok((start, if is_last { text.strip_suffix(b"\r").unwrap_or(text) } else { text }))
    }

    fn quoted(&mut self, column: Option<usize>) -> Result<(), Stop> {
        let at = self.at;
        self.at += 1;
        let (start, mut is_escaped) = (self.at, false);
        loop {
            self.at += memchr2(b'"', b'\\', &self.input[self.at..]).ok_or(Stop::Incomplete)?;
            if self.input[self.at] == b'"' {
                break;
            }
            is_escaped = true;
            self.at += 2;
            if self.at > self.input.len() {
                return Err(Stop::Incomplete);
            }
        }
        let text = &self.input[start..self.at];
        self.at += 1;
        self.feeds += memchr::memchr_iter(b'\n', text).count() as u64;
        if is_escaped {
            self.put(at, column, Form::Quoted, &unescape(text, b"\"\\"))?;
        } else {
            self.put(at, column, Form::Quoted, text)?;
        }
        match self.peek()? {
            b',' | b' ' | b'\n' | b'\r' => Ok(()),
            _ => self.expected("a comma, a blank, or the end of the line"),
        }
    }

    /// The time, or none, and the end of the line.
    fn time(&mut self) -> Result<(), Stop> {
        while self.peek()? == b' ' {
            self.at += 1;
        }
        if !matches!(self.peek()?, b'\r' | b'\n') {
            let (at, text) = self.bare()?;
            if !is_whole(text) {
                return Err(Stop::Fault(at, What::Syntax { expected: "a time: a whole number" }));
            }
            let time = self.intake.target().time;
            self.put(at, Some(time), Form::Bare, text)?;
        }
        while matches!(self.peek()?, b' ' | b'\r') {
            self.at += 1;
        }
        if self.peek()? == b'\n' { Ok(()) } else { self.expected("the end of the line") }
    }
}

/// Whether a text is a whole number.
fn is_whole(text: &[u8]) -> bool {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    !digits.is_empty() && digits.iter().all(u8::is_ascii_digit)
}

/// The text without the backslashes that stand in front of some characters.
fn unescape(text: &[u8], special: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(text.len());
    let mut bytes = text.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        let escaped = if byte == b'\\' { bytes.next_if(|next| special.contains(next)) } else { None };
        plain.push(escaped.unwrap_or(byte));
    }
    plain
}
