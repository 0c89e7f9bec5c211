//! Lines of `tmpfiles.d(5)`, as systemd takes them apart (252, `src/tmpfiles/tmpfiles.c`): the first six words with
//! their quotes and escapes, and the rest as it stands, in which escapes count and quotes do not.
//!
//! Non-goals: specifiers other than `%%`, which only a host can fill in.

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The letter of its type with what modifies it: `w!`.
    pub kind: String,
    /// The path without its quotes, and without `//` and `/./`. It may hold wildcards.
    pub path: String,
    /// What stands behind the other words, as it is written. Empty where there is nothing.
    pub argument: String,
}

impl Line {
    /// Nothing where it is none: a comment, too few words, a quote that nothing closes, a type that there is not.
    #[must_use]
    pub fn of(text: &str) -> Option<Self> {
        let text = text.trim();
        if text.starts_with('#') {
            return None;
        }
        let (kind, rest) = word(text)?;
        // One that systemd does not know, or twice the same, and it passes the line over.
        let modifiers: Vec<char> = kind.chars().skip(1).collect();
        let is_known =
            |at: usize| "!+-=~^$?".contains(modifiers[at]) && !modifiers[..at].contains(&modifiers[at]);
        if !(0..modifiers.len()).all(is_known) {
            return None;
        }
        let (path, mut rest) = word(rest)?;
        for _ in ["mode", "user", "group", "age"] {
            rest = word(rest)?.1;
        }
        // Systemd takes it for no argument, as it does in the other columns.
        let argument = if rest == "-" { "" } else { rest };
        Some(Self { kind, path: simple(&path.replace("%%", "%")), argument: argument.to_owned() })
    }

    /// The letter of its type.
    #[must_use]
    pub fn letter(&self) -> char {
        self.kind.chars().next().unwrap_or_default()
    }

    /// Whether something modifies its type: `+` appends, or writes also what is there.
    #[must_use]
    pub fn has(&self, modifier: char) -> bool {
        self.kind.chars().skip(1).any(|c| c == modifier)
    }

    /// The name of the credential that holds the value (`w^`): only a host has it.
    #[must_use]
    pub fn credential(&self) -> Option<&str> {
        (self.has('^') && !self.argument.is_empty()).then_some(self.argument.as_str())
    }

    /// What is written. The line end behind it is none of the value: the kernel does without.
    ///
    /// # Errors
    /// Why systemd passes the line over, or why it is not known.
    pub fn value(&self) -> Result<String, &'static str> {
        if self.argument.is_empty() {
            return Err("has no value");
        }
        if self.credential().is_some() {
            return Err("has its value in a credential (^), which only a host has");
        }
        let value = match self.has('~') {
            true => from_base64(&self.argument).ok_or("its value is no base64 (~)")?,
            false => {
                let odd = "has an escape that systemd does not know, so that it passes the line over";
                unescaped(&self.argument).ok_or(odd)?.replace("%%", "%")
            }
        };
        Ok(value.strip_suffix('\n').unwrap_or(&value).to_owned())
    }
}

/// A path without what says nothing (`path_simplify`).
fn simple(path: &str) -> String {
    if !path.starts_with('/') {
        return path.to_owned();
    }
    path.split('/').filter(|part| !["", "."].contains(part)).flat_map(|part| ["/", part]).collect()
}

/// The first word of a text, and what stands behind it.
fn word(text: &str) -> Option<(String, &str)> {
    let (mut word, mut quote, mut at) = (String::new(), None, 0);
    while let Some(c) = text[at..].chars().next() {
        match c {
            '\\' => {
                let (meant, len) = escape(&text[at + 1..])?;
                word.push(meant);
                at += 1 + len;
                continue;
            }
            c if quote == Some(c) => quote = None,
            '"' | '\'' if quote.is_none() => quote = Some(c),
            c if quote.is_none() && c.is_ascii_whitespace() => break,
            c => word.push(c),
        }
        at += c.len_utf8();
    }
    (at > 0 && quote.is_none()).then(|| (word, text[at..].trim_start()))
}

/// A text with its escapes filled in; `None` where one is not known.
fn unescaped(text: &str) -> Option<String> {
    let (mut found, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once('\\') {
        let (meant, len) = escape(after)?;
        found.push_str(before);
        found.push(meant);
        rest = &after[len..];
    }
    Some(found + rest)
}

/// The character that stands for what is behind a backslash, and how long that is (`cunescape_one` in
/// `src/basic/escape.c`). No character is zero.
fn escape(text: &str) -> Option<(char, usize)> {
    let number = |from: usize, len: usize, radix: u32| {
        let digits = text.get(from..from + len).filter(|digits| digits.chars().all(|c| c.is_digit(radix)))?;
        let c = char::from_u32(u32::from_str_radix(digits, radix).ok()?)?;
        (c != '\0' && (radix == 16 || u32::from(c) < 256)).then_some((c, from + len))
    };
    let one = |c: char| Some((c, 1));
    match text.chars().next()? {
        'a' => one('\x07'),
        'b' => one('\x08'),
        'f' => one('\x0c'),
        'n' => one('\n'),
        'r' => one('\r'),
        't' => one('\t'),
        'v' => one('\x0b'),
        's' => one(' '),
        c @ ('\\' | '"' | '\'') => one(c),
        'x' => number(1, 2, 16),
        'u' => number(1, 4, 16),
        'U' => number(1, 8, 16),
        '0'..='7' => number(0, 3, 8),
        _ => None,
    }
}

/// Text in base64, with its padding (RFC 4648).
fn from_base64(text: &str) -> Option<String> {
    let packed: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let (mut bytes, last) = (Vec::new(), packed.len().checked_sub(4)?);
    for (at, four) in packed.chunks(4).enumerate() {
        let padding = four.iter().rev().take_while(|byte| **byte == b'=').count();
        if four.len() != 4 || padding > 2 || padding > 0 && at * 4 != last {
            return None;
        }
        let mut bits = 0_u32;
        for byte in &four[..4 - padding] {
            bits = bits << 6 | u32::from(sextet(*byte)?);
        }
        let [_, all @ ..] = (bits << (6 * padding)).to_be_bytes();
        bytes.extend_from_slice(&all[..3 - padding]);
    }
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

fn sextet(byte: u8) -> Option<u8> {
    Some(match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Kind, path and value of a line; of one that has none, why.
    fn told(text: &str) -> Option<(String, String, Result<String, &'static str>)> {
        Line::of(text).map(|line| (line.kind.clone(), line.path.clone(), line.value()))
    }

    /// Each was tried with systemd-tmpfiles 252 on files of a folder.
    #[test]
    fn quotes_and_escapes_are_those_of_systemd() {
        for (text, path, value) in [
            ("w /a - - - - 5", "/a", "5"),
            ("  w!\t/a -   - - -  madvise always ", "/a", "madvise always"),
            ("w '/a b' - - - - 1", "/a b", "1"),
            ("w \"/a b\" - - - - \"1\"", "/a b", "\"1\""),
            ("w //a//./b/ - - - - 1", "/a/b", "1"),
            (r"w /a\x2db - - - - 1", "/a-b", "1"),
            (r"w /a - - - - 5\n", "/a", "5"),
            (r"w /a - - - - \x35\065\s\\", "/a", r"55 \"),
            ("w /a%%b - - - - 5%%", "/a%b", "5%"),
            ("w~ /a - - - - bmV2ZXI=", "/a", "never"),
            ("w~ /a - - - - NQo=", "/a", "5"),
        ] {
            let (_, own, read) = told(text).expect(text);
            assert_eq!((own.as_str(), read.as_deref()), (path, Ok(value)), "{text}");
        }
    }

    #[test]
    fn what_systemd_passes_over_has_no_value() {
        for text in [
            "",
            "# w /a - - - - 1",
            "w /a - - -",
            "w '/a - - - - 1",
            r"w /a\q - - - - 1",
            "wx /a - - - - 1",
            "w++ /a - - - - 1",
        ] {
            assert_eq!(told(text), None, "{text}");
        }
        for (text, why) in [
            ("w /a - - - -", "no value"),
            ("w /a - - - - -", "no value"),
            (r"w /a - - - - a\qb", "an escape"),
            (r"w /a - - - - a\x00", "an escape"),
            (r"w /a - - - - a\é", "an escape"),
            ("w~ /a - - - - bmV2ZXI", "no base64"),
            ("w~ /a - - - - b=V2", "no base64"),
            ("w^ /a - - - - tune", "a credential"),
        ] {
            let (_, _, value) = told(text).expect(text);
            assert!(value.as_ref().is_err_and(|found| found.contains(why)), "{text}: {value:?}");
        }
    }

    proptest! {
        #[test]
        fn odd_text_is_passed_over(text in "w[~^+]? ['\"\\\\/a-c=%{} \\PC]{0,60}") {
            let _ = Line::of(&text).map(|line| line.value());
        }
    }
}
