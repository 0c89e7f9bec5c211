//! Values of a query that are sent beside it: `{name:Type}` in the text, `param_name` in the address.
//!
//! They become literals of SQL before anything is planned, so that what a client has of its users is a value and never
//! a part of the query. Texts of values are those of ClickHouse: escaped as in TabSeparated, `\N` for null.

use std::borrow::Cow;
use std::collections::BTreeMap;

use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer};

use crate::failure::{Failure, Kind};
use crate::statement::offset;

/// Puts the values where their names stand.
///
/// # Errors
/// A name without a value, a type that is not known here, or a text that is no value of its type.
pub(crate) fn filled<'q>(sql: &'q str, values: &BTreeMap<String, String>) -> Result<Cow<'q, str>, Failure> {
    if !sql.contains('{') {
        return Ok(Cow::Borrowed(sql));
    }
    // A text that is no SQL is told of by who parses it.
    let Ok(tokens) = Tokenizer::new(&GenericDialect {}, sql).tokenize_with_location() else {
        return Ok(Cow::Borrowed(sql));
    };
    let (mut text, mut from) = (String::new(), 0);
    let mut rest = tokens.as_slice();
    while let Some(at) = rest.iter().position(|it| it.token == Token::LBrace) {
        let Some(length) = rest[at..].iter().position(|it| it.token == Token::RBrace) else { break };
        let within = &rest[at + 1..at + length];
        let (name, kind) = place(within)?;
        let value = values
            .get(&name)
            .ok_or_else(|| wrong(format!("no value of the parameter {name}: param_{name}")))?;
        text.push_str(&sql[from..offset(sql, rest[at].span.start)]);
        text.push_str(&literal(value, &kind).map_err(|what| wrong(format!("parameter {name}: {what}")))?);
        from = offset(sql, rest[at + length].span.start) + 1;
        rest = &rest[at + length + 1..];
    }
    text.push_str(&sql[from..]);
    Ok(Cow::Owned(text))
}

fn wrong(text: String) -> Failure {
    Failure::new(Kind::BadArguments, text)
}

/// The name and the type between two braces.
fn place(within: &[TokenWithSpan]) -> Result<(String, String), Failure> {
    let mut tokens = within.iter().filter(|it| !matches!(it.token, Token::Whitespace(_)));
    let name = match (tokens.next().map(|it| &it.token), tokens.next().map(|it| &it.token)) {
        (Some(Token::Word(name)), Some(Token::Colon)) => name.value.clone(),
        _ => return Err(Failure::new(Kind::Syntax, "between braces stands {name:Type}")),
    };
    let kind = tokens.map(|it| it.token.to_string()).collect();
    Ok((name, kind))
}

/// A value as SQL.
fn literal(value: &str, kind: &str) -> Result<String, String> {
    if let Some(inner) = kind.strip_prefix("Nullable(").and_then(|rest| rest.strip_suffix(')')) {
        return if value == "\\N" { Ok("NULL".to_owned()) } else { literal(value, inner) };
    }
    if let Some(inner) = kind.strip_prefix("LowCardinality(").and_then(|rest| rest.strip_suffix(')')) {
        return literal(value, inner);
    }
    let text = unescaped(value)?;
    let number =
        |is_one: bool| if is_one { Ok(format!("({text})")) } else { Err(format!("{text:?} is no {kind}")) };
    let quoted = |text: &str| format!("'{}'", text.replace('\'', "''"));
    let (bare, _) = kind.split_once('(').unwrap_or((kind, ""));
    match bare {
        "String" | "FixedString" => Ok(quoted(&text)),
        "Identifier" => Ok(format!("\"{}\"", text.replace('"', "\"\""))),
        "Int8" | "Int16" | "Int32" | "Int64" => number(text.parse::<i64>().is_ok()),
        "UInt8" | "UInt16" | "UInt32" | "UInt64" => number(text.parse::<u64>().is_ok()),
        "Float32" | "Float64" => number(text.parse::<f64>().is_ok_and(f64::is_finite)),
        "Decimal" | "Decimal32" | "Decimal64" | "Decimal128" => number(is_decimal(&text)),
        "Bool" => match text.as_str() {
            "1" | "true" => Ok("TRUE".to_owned()),
            "0" | "false" => Ok("FALSE".to_owned()),
            _ => Err(format!("{text:?} is no Bool")),
        },
        "Date" | "Date32" => Ok(format!("DATE {}", quoted(&text))),
        // A number counts seconds, as it does for ClickHouse.
        "DateTime" | "DateTime64" => match text.parse::<f64>() {
            Ok(_) if is_decimal(&text) => Ok(format!("to_timestamp({text})")),
            _ => Ok(format!("TIMESTAMP {}", quoted(&text))),
        },
        _ => Err(format!(
            "no type {kind} here; there are String, Identifier, whole numbers, Float, Decimal, Bool, Date, DateTime64, \
             and Nullable of them"
        )),
    }
}

/// Digits, with a sign and a point perhaps.
fn is_decimal(text: &str) -> bool {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let is_digit = |byte: u8| byte.is_ascii_digit() || byte == b'.';
    digits.bytes().all(is_digit)
        && digits.bytes().any(|byte| byte.is_ascii_digit())
        && text.parse::<f64>().is_ok()
}

/// Without the backslashes of TabSeparated.
fn unescaped(value: &str) -> Result<String, String> {
    let (mut text, mut letters) = (String::with_capacity(value.len()), value.chars());
    while let Some(letter) = letters.next() {
        if letter != '\\' {
            text.push(letter);
            continue;
        }
        text.push(match letters.next() {
            Some('n') => '\n',
            Some('t') => '\t',
            Some('r') => '\r',
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('0') => '\0',
            Some(same @ ('\\' | '\'' | '"' | '/')) => same,
            _ => return Err(format!("{value:?} has a backslash that begins nothing")),
        });
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn fill(sql: &str, values: &[(&str, &str)]) -> Result<String, String> {
        let values = values.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        filled(sql, &values).map(Cow::into_owned).map_err(|failure| failure.text)
    }

    #[test]
    fn values_stand_where_their_names_did() {
        for (sql, values, wanted) in [
            ("SELECT {n:UInt8} + { n : Int64 }", vec![("n", "7")], "SELECT (7) + (7)"),
            ("WHERE sym = {s: String}", vec![("s", "it's")], "WHERE sym = 'it''s'"),
            ("WHERE é = {s:String} AND x", vec![("s", "a\\tb\\\\")], "WHERE é = 'a\tb\\' AND x"),
            ("SELECT '{n:UInt8}', \"{\" -- {n:UInt8}", vec![], "SELECT '{n:UInt8}', \"{\" -- {n:UInt8}"),
            ("SELECT {x:Nullable(Float64)}", vec![("x", "\\N")], "SELECT NULL"),
            ("SELECT {x:Nullable(Float64)}", vec![("x", "-1.5e3")], "SELECT (-1.5e3)"),
            ("FROM {t:Identifier}", vec![("t", "a\"b")], "FROM \"a\"\"b\""),
            (
                "SELECT {at:DateTime64(9)}",
                vec![("at", "2026-01-01 00:00:00.5")],
                "SELECT TIMESTAMP '2026-01-01 00:00:00.5'",
            ),
            ("SELECT {at:DateTime64(3)}", vec![("at", "1767225600.5")], "SELECT to_timestamp(1767225600.5)"),
            ("SELECT {b:Bool}{d:Decimal(9, 2)}", vec![("b", "true"), ("d", "-0.10")], "SELECT TRUE(-0.10)"),
        ] {
            assert_eq!(fill(sql, &values).as_deref(), Ok(wanted), "{sql}");
        }
    }

    #[test]
    fn what_is_no_value_is_refused_by_its_name() {
        for (sql, value, told) in [
            ("{n:UInt8}", "1; DROP", "parameter n: \"1; DROP\" is no UInt8"),
            ("{n:UInt8}", "-1", "parameter n: \"-1\" is no UInt8"),
            ("{n:Float64}", "nan", "parameter n: \"nan\" is no Float64"),
            ("{n:Decimal(9, 2)}", "1e5", "parameter n: \"1e5\" is no Decimal(9,2)"),
            ("{n:Bool}", "yes", "parameter n: \"yes\" is no Bool"),
            ("{m:UInt8}", "1", "no value of the parameter m: param_m"),
            ("{n:String}", "a\\", "parameter n: \"a\\\\\" has a backslash that begins nothing"),
            ("{n}", "1", "between braces stands {name:Type}"),
            ("{:UInt8}", "1", "between braces stands {name:Type}"),
        ] {
            assert_eq!(fill(sql, &[("n", value)]), Err(told.to_owned()), "{sql}");
        }
        assert!(fill("{n:Array(UInt8)}", &[("n", "[1]")]).unwrap_err().contains("no type Array(UInt8) here"));
    }

    const KINDS: [&str; 8] = [
        "String",
        "Identifier",
        "Int64",
        "Float64",
        "DateTime64(9)",
        "Date",
        "Decimal(9)",
        "Nullable(String)",
    ];

    proptest! {
        #[test]
        fn a_value_is_one_literal_whatever_it_holds(value in any::<String>(), kind in prop::sample::select(
            &KINDS[..],
        )) {
            let sql = format!("SELECT {{v:{kind}}} AS x");
            if let Ok(text) = fill(&sql, &[("v", &value)]) {
                let tokens = Tokenizer::new(&GenericDialect {}, &text).tokenize().unwrap();
                let words = tokens.iter().filter(|token| !matches!(token, Token::Whitespace(_))).count();
                // A literal, or a word and one, or a number in parentheses, with a sign perhaps, or a call of one.
                prop_assert!((4..=8).contains(&words), "{text}");
                prop_assert!(text.starts_with("SELECT ") && text.ends_with(" AS x"), "{text}");
                prop_assert!(!tokens.contains(&Token::SemiColon), "{text}");
            }
        }
    }
}
