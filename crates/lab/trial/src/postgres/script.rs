//! The part of pgbench's script language that `--workload` understands.
//!
//! Statements end with a semicolon and may hold `:name`; `\set name random(a, b)` draws a whole number, and
//! `\set name a` fixes one, where `a` and `b` are whole numbers, variables, and products of them, such as
//! `100000 * :scale`. Statements go out one at a time over the simple protocol, as pgbench does by default.
//! Anything else is refused by line: a script that is half understood would measure something else.

use std::collections::BTreeMap;
use std::path::Path;

use planish_stats::Rng;

use crate::error::TrialError;

/// A script, ready to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Set { name: String, value: Value },
    Statement(Statement),
}

/// A statement and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Statement {
    /// The line that it begins in, from 1.
    pub(crate) line: usize,
    /// Its words with its semicolon.
    pub(crate) text: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Value {
    Fixed(Product),
    Random(Product, Product),
}

/// Factors that are multiplied: numbers and names of variables.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Product(Vec<Factor>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Factor {
    Number(i64),
    Variable(String),
}

impl Script {
    /// Reads the text of a script.
    ///
    /// # Errors
    /// The line of what is not understood.
    pub fn parse(file: &Path, text: &str) -> Result<Self, TrialError> {
        let mut parts = Vec::new();
        let mut statement = String::new();
        let mut begun = 1;
        for (index, line) in text.lines().enumerate() {
            let wrong = |column: usize, message: String| TrialError::Malformed {
                file: file.display().to_string(),
                line: index + 1,
                column,
                message,
            };
            let trimmed = line.trim();
            if trimmed.is_empty() || trimmed.starts_with("--") {
                continue;
            }
            if let Some(meta) = trimmed.strip_prefix('\\') {
                if !statement.trim().is_empty() {
                    return Err(wrong(1, "a statement before this line has no semicolon".to_owned()));
                }
                parts.push(set(meta).map_err(|message| wrong(1, message))?);
                continue;
            }
            if statement.is_empty() {
                begun = index + 1;
            }
            statement.push_str(line);
            statement.push('\n');
            if trimmed.ends_with(';') {
                parts.push(Part::statement(begun, &std::mem::take(&mut statement)));
            }
        }
        if !statement.trim().is_empty() {
            parts.push(Part::statement(begun, &statement));
        }
        if !parts.iter().any(|part| matches!(part, Part::Statement(_))) {
            return Err(TrialError::Malformed {
                file: file.display().to_string(),
                line: 1,
                column: 1,
                message: "the script has no statement".to_owned(),
            });
        }
        let script = Self { parts };
        script.statements(&mut Rng::stream(0, 0), 1).map_err(|message| TrialError::Malformed {
            file: file.display().to_string(),
            line: 1,
            column: 1,
            message,
        })?;
        Ok(script)
    }

    /// The statements of one transaction with their variables drawn.
    pub(crate) fn statements(&self, rng: &mut Rng, scale: u64) -> Result<Vec<Statement>, String> {
        let scale = i64::try_from(scale).map_err(|_| "the scale is too large".to_owned())?;
        let mut variables = BTreeMap::from([("scale".to_owned(), scale)]);
        let mut statements = Vec::new();
        for part in &self.parts {
            match part {
                Part::Set { name, value } => {
                    let value = value.draw(&variables, rng)?;
                    variables.insert(name.clone(), value);
                }
                Part::Statement(Statement { line, text }) => {
                    statements.push(Statement { line: *line, text: substitute(text, &variables)? });
                }
            }
        }
        Ok(statements)
    }
}

impl Part {
    fn statement(line: usize, text: &str) -> Self {
        Self::Statement(Statement { line, text: text.trim().to_owned() })
    }
}

impl Value {
    fn draw(&self, variables: &BTreeMap<String, i64>, rng: &mut Rng) -> Result<i64, String> {
        match self {
            Self::Fixed(product) => product.value(variables),
            Self::Random(low, high) => {
                let (low, high) = (low.value(variables)?, high.value(variables)?);
                let span = high.checked_sub(low).and_then(|span| u64::try_from(span).ok());
                let span = span.ok_or_else(|| format!("random({low}, {high}) is an empty range"))?;
                // The remainder favours small numbers by at most span / 2^64.
                Ok(low + (rng.next_u64() % (span + 1)) as i64)
            }
        }
    }
}

impl Product {
    fn parse(text: &str) -> Result<Self, String> {
        let factor = |word: &str| match word.strip_prefix(':') {
            Some(name) if is_name(name) => Ok(Factor::Variable(name.to_owned())),
            _ => word.parse().map(Factor::Number).map_err(|_| {
                format!(
                    "`{word}` is neither a whole number nor a variable; only products of these are understood"
                )
            }),
        };
        text.split('*').map(str::trim).map(factor).collect::<Result<Vec<_>, _>>().map(Self)
    }

    fn value(&self, variables: &BTreeMap<String, i64>) -> Result<i64, String> {
        self.0.iter().try_fold(1i64, |product, factor| {
            let value = match factor {
                Factor::Number(number) => *number,
                Factor::Variable(name) => lookup(name, variables)?,
            };
            product.checked_mul(value).ok_or_else(|| "a product is too large".to_owned())
        })
    }
}

fn set(meta: &str) -> Result<Part, String> {
    let Some(rest) = meta.strip_prefix("set ") else {
        let word = meta.split_whitespace().next().unwrap_or_default();
        return Err(format!("\\{word} is not understood here; only \\set is"));
    };
    let (name, value) =
        rest.trim().split_once(char::is_whitespace).ok_or("\\set needs a name and a value")?;
    if !is_name(name) {
        return Err(format!("`{name}` is not a name"));
    }
    let value = value.trim();
    let value = match value.strip_prefix("random(").and_then(|value| value.strip_suffix(')')) {
        Some(arguments) => {
            let (low, high) =
                arguments.split_once(',').ok_or("random() needs a lowest and a highest value")?;
            Value::Random(Product::parse(low.trim())?, Product::parse(high.trim())?)
        }
        None => Value::Fixed(Product::parse(value)?),
    };
    Ok(Part::Set { name: name.to_owned(), value })
}

/// Replaces `:name`, but neither `::type` nor what stands in quotes. What lies between colons and quotes is copied as
/// it is, whatever letters it has and however long it is.
fn substitute(text: &str, variables: &BTreeMap<String, i64>) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut quote = None;
    while let Some(at) = rest.find([':', '\'', '"']) {
        let (before, mark) = rest.split_at(at);
        let (mark, behind) = mark.split_at(1);
        out.push_str(before);
        let name_len = behind.find(|c: char| !is_name_char(c)).unwrap_or(behind.len());
        let (name, behind_name) = behind.split_at(name_len);
        rest = behind;
        match quote {
            Some(open) if mark == open => quote = None,
            None if mark != ":" => quote = Some(mark),
            None if behind.starts_with(':') => {
                out.push(':');
                rest = &behind[1..];
            }
            None if !name.is_empty() && !name.starts_with(|c: char| c.is_ascii_digit()) => {
                out.push_str(&lookup(name, variables)?.to_string());
                rest = behind_name;
                continue;
            }
            _ => {}
        }
        out.push_str(mark);
    }
    out.push_str(rest);
    Ok(out)
}

fn lookup(name: &str, variables: &BTreeMap<String, i64>) -> Result<i64, String> {
    variables.get(name).copied().ok_or_else(|| format!("the variable `:{name}` has no value"))
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && text.chars().all(is_name_char)
}

fn is_name_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Script, TrialError> {
        Script::parse(Path::new("own.sql"), text)
    }

    #[test]
    fn pgbench_s_own_select_is_understood() {
        let text = "\\set aid random(1, 100000 * :scale)\n\
            SELECT abalance\n FROM pgbench_accounts\n WHERE aid = :aid;\n";
        let script = parse(text).expect("plain");
        let statements = script.statements(&mut Rng::stream(7, 0), 3).expect("all have values");
        assert_eq!((statements.len(), statements[0].line), (1, 2));
        let aid: i64 = statements[0]
            .text
            .trim_end_matches(';')
            .rsplit_once("= ")
            .expect("a number")
            .1
            .parse()
            .expect("whole");
        assert!((1..=300_000).contains(&aid));
        assert_eq!(
            statements,
            script.statements(&mut Rng::stream(7, 0), 3).expect("again"),
            "a seed is a work"
        );
    }

    #[test]
    fn casts_and_quotes_are_left_alone() {
        let variables = BTreeMap::from([("a".to_owned(), 5)]);
        let text = "select :a::text, ':a', \":a\", '12:30'::time, arr[1:2]";
        let expected = "select 5::text, ':a', \":a\", '12:30'::time, arr[1:2]";
        assert_eq!(substitute(text, &variables).expect("only :a"), expected);
    }

    #[test]
    fn letters_of_any_alphabet_may_stand_in_a_statement() {
        let text = "select 'caf\u{e9}', \u{b5}, :scale, '\u{20ac}:a' from \"\u{e4}:b\"; -- \u{1f600}\n";
        let script = parse(text).expect("nothing but letters");
        let statements = script.statements(&mut Rng::stream(0, 0), 3).expect("all have values");
        assert_eq!(statements[0].text, text.trim().replace(":scale", "3"));
        assert!(parse("select \u{e9};").is_ok() && parse("\u{feff}select 1;").is_ok());
    }

    #[test]
    fn a_long_statement_is_read_once() {
        // A value of a megabyte, as a dump has them: what looks ahead from each of its letters takes hours.
        let text = format!("insert into t values ('{}', :scale);", "a".repeat(1 << 20));
        let script = parse(&text).expect("plain");
        let statements = script.statements(&mut Rng::stream(0, 0), 7).expect("all have values");
        assert_eq!(statements[0].text.len(), text.len() - ":scale".len() + 1);
    }

    #[test]
    fn what_is_not_understood_is_refused_by_line() {
        let error = |text| parse(text).expect_err("refused").to_string();
        assert_eq!(
            error("select 1;\n\\sleep 1\n"),
            "own.sql:2:1: \\sleep is not understood here; only \\set is"
        );
        assert_eq!(error("-- nothing\n"), "own.sql:1:1: the script has no statement");
        assert!(error("\\set a 1 + 1\nselect :a;").contains("only products"));
        assert!(error("select :b;").contains("`:b` has no value"));
    }
}
