//! What a shell puts in for variables and sums, as far as that is known without running anything.

use std::collections::BTreeMap;

use planish_formats::shell::{Part, Word, is_name};

/// What is known of a variable that is set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
    Known {
        text: String,
        is_pattern: bool,
    },
    /// Something, that only a shell can tell.
    Set,
    /// As `Set`, or not set at all.
    Maybe,
}

pub(super) type Variables = BTreeMap<String, Value>;

/// A word of a command as a program gets it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Field {
    pub(crate) text: String,
    /// Whether that is all of it.
    pub(crate) is_known: bool,
    /// Where it is not, the bytes of the text that stand before what only a shell can tell.
    pub(super) known_to: Option<usize>,
    /// Whether it holds a pattern that a loop goes through: each of its names, one at a time.
    pub(crate) is_pattern: bool,
    /// Whether the shell puts in names of files for it, all at once.
    pub(crate) is_glob: bool,
}

impl Field {
    /// The names of a pattern that a loop goes through.
    pub(super) fn names_of(pattern: &str) -> Self {
        Self { text: pattern.to_owned(), is_known: true, known_to: None, is_pattern: true, is_glob: true }
    }

    /// Whether it names a file of the kernel, whatever a shell puts in: it begins below /proc or /sys, and goes up
    /// nowhere. What is put in is taken to be names, as a loop over numbers or folders has them.
    pub(super) fn is_within_kernel(&self) -> bool {
        let before = self.known_to.map_or(self.text.as_str(), |end| &self.text[..end]);
        let is_below = ["/proc/", "/sys/"].iter().any(|folder| before.starts_with(folder));
        is_below && !self.text.split('/').any(|part| part == "..")
    }
}

/// Variables that a shell has without being told.
const OF_ALL: [&str; 16] = [
    "BASH_SOURCE",
    "EUID",
    "HOME",
    "HOSTNAME",
    "IFS",
    "LINENO",
    "LOGNAME",
    "OPTIND",
    "PATH",
    "PPID",
    "PWD",
    "RANDOM",
    "SECONDS",
    "SHELL",
    "UID",
    "USER",
];

/// Bytes of a value: no setting has more, and one that is made of itself twice, again and again, must not fill the
/// memory.
const VALUE_MAX: usize = 4096;

/// Fields that the variables of one word may come to.
const FIELDS_MAX: usize = 4096;

/// Fills in words with the variables of a moment.
pub(super) struct Filler<'v> {
    pub(super) variables: &'v mut Variables,
    /// A variable that is not known to be set.
    pub(super) unset: Option<String>,
}

impl Filler<'_> {
    /// The fields of a word: one, or several where an unquoted variable holds blanks, or none.
    pub(super) fn fields(&mut self, word: &Word<'_>) -> Vec<Field> {
        let (mut fields, mut field, mut any) =
            (Vec::new(), Field { is_known: true, ..Field::default() }, false);
        let splits_by_blanks = !self.variables.contains_key("IFS");
        for part in &word.parts {
            let (value, quoted) = match part {
                Part::Text { text, quoted } => {
                    any |= *quoted || !text.is_empty();
                    field.text += text;
                    field.is_glob |= !quoted && is_glob(text);
                    continue;
                }
                Part::Variable { quoted, .. } | Part::Sum { quoted, .. } => (self.part(part), *quoted),
                Part::Output { .. } => (None, true),
            };
            let Some((text, is_pattern)) = value else {
                // Of `"$@"` there may be no word, or several.
                (field.is_known, any) = (false, true);
                field.known_to = field.known_to.or(Some(field.text.len()));
                continue;
            };
            field.is_pattern |= is_pattern;
            field.is_glob |= !quoted && !is_pattern && is_glob(&text);
            if field.text.len() > VALUE_MAX || fields.len() > FIELDS_MAX {
                (field.is_known, any) = (false, true);
                continue;
            }
            if quoted || !text.contains(char::is_whitespace) && splits_by_blanks {
                any |= quoted || !text.is_empty();
                field.text += &text;
                continue;
            }
            field.is_known &= splits_by_blanks;
            let mut words = text.split_whitespace().peekable();
            if text.starts_with(char::is_whitespace) && any {
                fields.push(std::mem::replace(&mut field, Field { is_known: true, ..Field::default() }));
                any = false;
            }
            while let Some(one) = words.next() {
                field.text += one;
                any = true;
                if words.peek().is_some() || text.ends_with(char::is_whitespace) {
                    let next = Field { is_pattern, is_known: splits_by_blanks, ..Field::default() };
                    fields.push(std::mem::replace(&mut field, next));
                    any = false;
                }
            }
        }
        if any {
            fields.push(field);
        }
        fields.iter_mut().for_each(|field| field.is_known &= field.text.len() <= VALUE_MAX);
        fields
    }

    /// The value that is assigned: nothing is taken apart there.
    pub(super) fn value(&mut self, word: &Word<'_>) -> Value {
        let (mut whole, mut is_pattern) = (String::new(), false);
        for part in &word.parts {
            let Some((text, of_loop)) = self.part(part) else { return Value::Set };
            whole += &text;
            if whole.len() > VALUE_MAX {
                return Value::Set;
            }
            is_pattern |= of_loop;
        }
        // A tilde is a folder that only a shell can tell.
        if whole.starts_with('~') {
            return Value::Set;
        }
        Value::Known { text: whole, is_pattern }
    }

    fn part(&mut self, part: &Part) -> Option<(String, bool)> {
        match part {
            Part::Text { text, .. } => Some((text.clone(), false)),
            Part::Output { .. } => None,
            Part::Sum { text, .. } => {
                let unset = names(text).find(|name| {
                    let value = self.variables.get(*name);
                    matches!(value, None | Some(Value::Maybe)) && !OF_ALL.contains(name)
                });
                self.unset = self.unset.take().or(unset.map(str::to_owned));
                self.sum(text).map(|sum| (sum.to_string(), false))
            }
            Part::Variable { name, rest, .. } => {
                let value = match self.variables.get(name) {
                    Some(Value::Known { text, is_pattern }) => Some((text.clone(), *is_pattern)),
                    Some(Value::Set) => None,
                    Some(Value::Maybe) | None => {
                        self.miss(name, rest);
                        None
                    }
                };
                if rest.contains('=') {
                    self.variables.insert(name.clone(), Value::Set);
                }
                let (text, is_pattern) = value?;
                match rest.as_str() {
                    "" => Some((text, is_pattern)),
                    "##*/" => Some((text.rsplit('/').next().unwrap_or_default().to_owned(), is_pattern)),
                    // What there would be without a value.
                    rest if !text.is_empty()
                        && [":-", ":=", "-", "="].iter().any(|form| rest.starts_with(form)) =>
                    {
                        Some((text, is_pattern))
                    }
                    _ => None,
                }
            }
        }
    }

    /// Notes a variable that may not be set, where nothing is said for that.
    fn miss(&mut self, name: &str, rest: &str) {
        let is_one = is_argument(name) || is_name(name) && !OF_ALL.contains(&name);
        if is_one && !rest.starts_with([':', '-', '+', '=']) {
            self.unset = Some(name.to_owned());
        }
    }

    /// Notes a variable of the text of a here-document that may not be set.
    pub(super) fn find_unset(&mut self, text: &str) {
        for said in text.split('$').skip(1) {
            let bare = said.strip_prefix('{').unwrap_or(said);
            let end = bare.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(bare.len());
            let (name, rest) = bare.split_at(end);
            if matches!(self.variables.get(name), Some(Value::Maybe) | None) {
                self.miss(name, if bare.len() < said.len() { rest } else { "" });
            }
        }
    }

    /// What a sum of numbers and known variables comes to. Anything else may change variables.
    pub(super) fn sum(&mut self, text: &str) -> Option<i64> {
        let mut sum = Sum { rest: text, variables: self.variables, depth: 0 };
        let value = sum.binary(0).filter(|_| sum.rest.trim_start().is_empty());
        if value.is_none() {
            self.forget(text);
        }
        value
    }

    /// Every name in a text is a variable that may have another value now.
    pub(super) fn forget(&mut self, text: &str) {
        for name in names(text) {
            self.variables.insert(name.to_owned(), Value::Set);
        }
    }
}

/// The names of variables in a text.
pub(super) fn names(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|name| is_name(name))
}

/// Whether a variable is one of the arguments: `$1`, and not `$0`, `$#` or `$@`.
pub(super) fn is_argument(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_digit()) && name.bytes().any(|byte| byte != b'0')
}

/// Whether a shell looks for names of files: patterns, braces of bash, and homes.
pub(super) fn is_glob(text: &str) -> bool {
    let braces = text.contains('{') && (text.contains(',') || text.contains(".."));
    text.contains(['*', '?', '[']) || braces || text.starts_with('~')
}

/// Sums as in C, of 64 bits (XCU 2.6.4).
struct Sum<'s> {
    rest: &'s str,
    variables: &'s Variables,
    depth: usize,
}

/// Operators with how strongly they bind.
const OPERATORS: [(&str, u8); 10] =
    [("<<", 4), (">>", 4), ("*", 6), ("/", 6), ("%", 6), ("+", 5), ("-", 5), ("&", 3), ("^", 2), ("|", 1)];

impl<'s> Sum<'s> {
    fn take(&mut self, sign: &str) -> bool {
        let rest = self.rest.trim_start().strip_prefix(sign);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn binary(&mut self, least: u8) -> Option<i64> {
        let mut left = self.single()?;
        loop {
            let rest = self.rest.trim_start();
            let found = OPERATORS.iter().find(|(sign, _)| rest.starts_with(sign));
            let Some((sign, strength)) = found.filter(|(_, strength)| *strength > least) else {
                return Some(left);
            };
            self.rest = &rest[sign.len()..];
            // `+=`, `&&`, `++`: they change variables, or are no sums.
            if self.rest.starts_with(['=', '&', '|', '+', '-', '<', '>', '*']) {
                return None;
            }
            let right = self.binary(*strength)?;
            left = match *sign {
                "*" => left.checked_mul(right)?,
                "/" => left.checked_div(right)?,
                "%" => left.checked_rem(right)?,
                "+" => left.checked_add(right)?,
                "-" => left.checked_sub(right)?,
                "<<" => {
                    left.checked_mul(1_i64.checked_shl(u32::try_from(right).ok()?).filter(|by| *by > 0)?)?
                }
                ">>" => left.checked_shr(u32::try_from(right).ok()?)?,
                "&" => left & right,
                "^" => left ^ right,
                _ => left | right,
            };
        }
    }

    fn single(&mut self) -> Option<i64> {
        self.depth += 1;
        if self.depth > 1000 || self.take("++") || self.take("--") {
            return None;
        }
        if self.take("-") {
            return self.single()?.checked_neg();
        }
        if self.take("~") {
            return Some(!self.single()?);
        }
        if self.take("(") {
            let value = self.binary(0)?;
            return self.take(")").then_some(value);
        }
        let rest: &'s str = self.rest.trim_start();
        let rest = rest.strip_prefix("${").or_else(|| rest.strip_prefix('$')).unwrap_or(rest);
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        self.rest = if self.rest.trim_start().starts_with("${") { after.strip_prefix('}')? } else { after };
        if is_name(word) {
            return match self.variables.get(word)? {
                Value::Known { text, is_pattern: false } => number(text.trim()),
                _ => None,
            };
        }
        number(word)
    }
}

/// A number as C writes it: with a zero in front it is octal.
fn number(text: &str) -> Option<i64> {
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => i64::from_str_radix(digits, 16).ok(),
        None if text.len() > 1 && text.starts_with('0') => i64::from_str_radix(text, 8).ok(),
        None => text.parse().ok(),
    }
}
