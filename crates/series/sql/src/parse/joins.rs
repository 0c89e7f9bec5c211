//! Joins by time as text that every SQL parser reads.
//!
//! ```text
//!   a ASOF JOIN b MATCH_CONDITION (c) ON d    a LEFT JOIN b ON asof_rows('left') AND (c) AND d
//!   a ASOF LEFT JOIN b ON c                   a LEFT JOIN b ON asof_rows('left') AND c
//!   a ASOF JOIN b ON c                        a LEFT JOIN b ON asof_rows('inner') AND c
//!   a WINDOW JOIN b ON c                      a LEFT JOIN b ON window_rows() AND c
//! ```
//!
//! Names are resolved and types coerced as in any join; then the call tells which join it is (`crate::join`). With
//! MATCH_CONDITION all left rows stay (Snowflake); without, those that find a partner, unless LEFT is written (DuckDB,
//! ClickHouse).

use std::borrow::Cow;

use datafusion::common::plan_datafusion_err;
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};

use crate::SqlError;
use crate::join::{ASOF_ROWS, WINDOW_ROWS};

/// The text with joins by time as left joins.
///
/// # Errors
/// Where such a join has no condition.
pub(super) fn as_left_joins(sql: &str) -> Result<Cow<'_, str>, SqlError> {
    let lower = sql.to_ascii_lowercase();
    if !lower.contains("asof") && !lower.contains("window") {
        return Ok(Cow::Borrowed(sql));
    }
    // Quotes stay as they were written, so that what is not a join is the same text again.
    let tokens = Tokenizer::new(&GenericDialect {}, sql).with_unescape(false).tokenize();
    // What is no SQL is told by the parser, which knows more about it.
    let Ok(mut tokens) = tokens else { return Ok(Cow::Borrowed(sql)) };
    let (mut at, mut is_changed) = (0, false);
    while at < tokens.len() {
        is_changed |= rewrite(&mut tokens, at)?;
        at += 1;
    }
    Ok(match is_changed {
        true => Cow::Owned(tokens.iter().map(ToString::to_string).collect()),
        false => Cow::Borrowed(sql),
    })
}

fn keyword(token: &Token) -> Keyword {
    match token {
        Token::Word(word) if word.quote_style.is_none() => word.keyword,
        _ => Keyword::NoKeyword,
    }
}

/// The next token that is not white space or a comment.
fn next(tokens: &[Token], at: usize) -> Option<usize> {
    (at + 1..tokens.len()).find(|&index| !matches!(tokens[index], Token::Whitespace(_)))
}

fn next_keyword(tokens: &[Token], at: usize) -> Option<(usize, Keyword)> {
    next(tokens, at).map(|index| (index, keyword(&tokens[index])))
}

/// Rewrites the join that begins with a token, if one does.
fn rewrite(tokens: &mut Vec<Token>, at: usize) -> Result<bool, SqlError> {
    let name = keyword(&tokens[at]);
    let Some((mut join, mut follows)) = next_keyword(tokens, at) else { return Ok(false) };
    let kept = follows;
    if name == Keyword::ASOF && matches!(follows, Keyword::LEFT | Keyword::INNER) {
        let Some(found) = next_keyword(tokens, join) else { return Ok(false) };
        (join, follows) = found;
    }
    if !matches!(name, Keyword::ASOF | Keyword::WINDOW) || follows != Keyword::JOIN {
        return Ok(false);
    }
    let condition = condition(tokens, join).ok_or_else(|| no_condition(name))?;
    let is_match = keyword(&tokens[condition]) == Keyword::MATCH_CONDITION;
    let mark = match name {
        Keyword::WINDOW => format!("{WINDOW_ROWS}()"),
        _ if kept == Keyword::LEFT || (is_match && kept != Keyword::INNER) => format!("{ASOF_ROWS}('left')"),
        _ => format!("{ASOF_ROWS}('inner')"),
    };
    if is_match {
        if name == Keyword::WINDOW {
            return Err(no_condition(name));
        }
        let end = closing(tokens, condition).ok_or_else(|| no_condition(name))?;
        match next_keyword(tokens, end) {
            Some((on, Keyword::ON)) => tokens[on] = word("AND"),
            Some((using, Keyword::USING)) => {
                let _ = using;
                return Err(refused("an ASOF JOIN with USING; write ON a.symbol = b.symbol"));
            }
            _ => {}
        }
    }
    tokens[condition] = word(&format!("ON {mark} AND"));
    tokens.drain(at..join);
    tokens.insert(at, word("LEFT "));
    Ok(true)
}

/// Where the condition of a join begins: ON or MATCH_CONDITION, outside of all parentheses.
fn condition(tokens: &[Token], join: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (index, token) in tokens.iter().enumerate().skip(join + 1) {
        match (token, keyword(token)) {
            (Token::LParen, _) => depth += 1,
            (Token::RParen, _) => depth = depth.checked_sub(1)?,
            (_, Keyword::ON | Keyword::MATCH_CONDITION) if depth == 0 => return Some(index),
            (Token::SemiColon | Token::Comma, _) if depth == 0 => return None,
            (_, Keyword::JOIN | Keyword::WHERE | Keyword::GROUP | Keyword::ORDER | Keyword::USING)
                if depth == 0 =>
            {
                return None;
            }
            _ => {}
        }
    }
    None
}

/// The parenthesis that closes the one that follows a token.
fn closing(tokens: &[Token], at: usize) -> Option<usize> {
    let first = next(tokens, at).filter(|&index| tokens[index] == Token::LParen)?;
    let mut depth = 0_usize;
    for (index, token) in tokens.iter().enumerate().skip(first) {
        match token {
            Token::LParen => depth += 1,
            Token::RParen if depth == 1 => return Some(index),
            Token::RParen => depth -= 1,
            _ => {}
        }
    }
    None
}

fn word(text: &str) -> Token {
    Token::make_word(text, None)
}

fn no_condition(name: Keyword) -> SqlError {
    refused(match name {
        Keyword::WINDOW => {
            "a WINDOW JOIN without a window; write ON a.symbol = b.symbol AND b.time BETWEEN a.time - 5 AND a.time + 5"
        }
        _ => {
            "an ASOF JOIN without a condition; write MATCH_CONDITION (a.time >= b.time) ON a.symbol = b.symbol"
        }
    })
}

fn refused(reason: &str) -> SqlError {
    SqlError::query("parse")(plan_datafusion_err!("{reason}"))
}

#[cfg(test)]
mod tests {
    use super::as_left_joins;

    #[track_caller]
    fn check(sql: &str, wanted: &str) {
        assert_eq!(as_left_joins(sql).unwrap(), wanted);
    }

    #[test]
    fn joins_by_time_become_left_joins_and_all_else_stays() {
        check(
            "SELECT 'it''s' FROM t ASOF JOIN q MATCH_CONDITION (t.ts >= q.ts) ON t.s = q.s WHERE t.p > 1",
            "SELECT 'it''s' FROM t LEFT JOIN q ON asof_rows('left') AND (t.ts >= q.ts) AND t.s = q.s WHERE t.p > 1",
        );
        check(
            "select * from t asof join (select * from a join b on a.x = b.x) as q on t.ts > q.ts",
            "select * from t LEFT join (select * from a join b on a.x = b.x) as q \
             ON asof_rows('inner') AND t.ts > q.ts",
        );
        check("FROM t ASOF LEFT JOIN q ON c", "FROM t LEFT JOIN q ON asof_rows('left') AND c");
        check("FROM t ASOF JOIN q MATCH_CONDITION(c)", "FROM t LEFT JOIN q ON asof_rows('left') AND(c)");
        check("FROM t /* ; */ WINDOW JOIN q ON c", "FROM t /* ; */ LEFT JOIN q ON window_rows() AND c");
        for same in [
            "SELECT asof FROM \"asof join\" WHERE x = 'asof join'",
            "SELECT sum(x) OVER w FROM t WINDOW w AS (ORDER BY ts)",
            "SELECT 'window join",
        ] {
            check(same, same);
        }
        let two = as_left_joins("FROM t ASOF LEFT JOIN q ON c ASOF LEFT JOIN r ON d").unwrap();
        assert_eq!(two.matches("asof_rows('left') AND").count(), 2);
    }

    #[test]
    fn a_join_without_a_condition_is_refused_with_what_to_write() {
        for (sql, cure) in [
            ("FROM t ASOF JOIN q WHERE x ON", "MATCH_CONDITION (a.time"),
            ("FROM t WINDOW JOIN q", "BETWEEN a.time"),
            ("FROM t ASOF JOIN q MATCH_CONDITION (c) USING (s)", "ON a.symbol"),
        ] {
            let error = as_left_joins(sql).unwrap_err();
            let source = std::error::Error::source(&error).unwrap().to_string();
            assert!(source.contains(cure), "{source}");
        }
    }
}
