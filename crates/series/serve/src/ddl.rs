//! `CREATE TABLE`: text to the columns of a table. Words that it does not know are refused, and none is passed over.

use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer, Word};
use planish_table::{Column, Kind, Partitioning, Schema, TimeUnit};

/// A table that is to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NewTable {
    pub(crate) name: String,
    /// One that is there already is left as it is.
    pub(crate) is_if_not_exists: bool,
    pub(crate) schema: Schema,
    pub(crate) unit: TimeUnit,
}

/// Most digits of a decimal.
const DIGITS_MAX: u64 = 18;
const HOUR_MS: i64 = 3_600_000;

/// Reads `CREATE TABLE [IF NOT EXISTS] name (column type, .., [PRIMARY KEY (..)]) [PARTITION BY HOUR|DAY|WEEK]`.
///
/// # Errors
/// What is wrong with it, and where.
pub(crate) fn create_table(sql: &str) -> Result<NewTable, String> {
    let mut words = Words::of(sql)?;
    words.expect(&["CREATE", "TABLE"])?;
    let is_if_not_exists = words.take_if(&["IF", "NOT", "EXISTS"]);
    let name = words.name("the name of a table")?;
    let (columns, key, unit) = words.columns()?;
    let hours = match words.take_if(&["PARTITION", "BY"]) {
        false => 24,
        true => match words.name("HOUR, DAY or WEEK")?.as_str() {
            "hour" => 1,
            "day" => 24,
            "week" => 7 * 24,
            _ => return Err("partitions are by HOUR, DAY or WEEK".to_owned()),
        },
    };
    words.end()?;
    let unit = unit.ok_or("no column is a TIMESTAMP: one must be, rows are in its order")?;
    let span = hours * HOUR_MS * per_millisecond(unit);
    let schema = Schema::new(columns, Partitioning { span, symbols: None }).map_err(|it| it.to_string())?;
    let names: Vec<&str> = key.iter().map(String::as_str).collect();
    let schema = match names.is_empty() {
        true => schema,
        false => schema.with_key(&names).map_err(|error| error.to_string())?,
    };
    Ok(NewTable { name, is_if_not_exists, schema, unit })
}

/// Whether a text is about a view: `CREATE MATERIALIZED VIEW`, `DROP MATERIALIZED VIEW` and their like.
pub(crate) fn is_of_view(sql: &str) -> bool {
    let Ok(words) = Words::of(sql) else { return false };
    let is_change = words.is(0, "CREATE") || words.is(0, "DROP");
    is_change && !words.is(1, "TABLE") && (1..4).any(|ahead| words.is(ahead, "MATERIALIZED"))
}

/// Reads `DROP MATERIALIZED VIEW [IF EXISTS] name`; returns the name, and whether there need not be one.
///
/// # Errors
/// What is wrong with it, and where.
pub(crate) fn drop_view(sql: &str) -> Result<(String, bool), String> {
    let mut words = Words::of(sql)?;
    words.expect(&["DROP", "MATERIALIZED", "VIEW"])?;
    let is_if_exists = words.take_if(&["IF", "EXISTS"]);
    let name = words.name("the name of a view")?;
    words.end()?;
    Ok((name, is_if_exists))
}

/// The columns of a table as `load` takes them: what stands between the parentheses of a CREATE TABLE.
///
/// # Errors
/// As [`create_table`].
pub(crate) fn table_of(name: &str, columns: &str) -> Result<NewTable, String> {
    create_table(&format!("CREATE TABLE \"{}\" ({columns}\n)", name.replace('"', "\"\"")))
}

fn per_millisecond(unit: TimeUnit) -> i64 {
    match unit {
        TimeUnit::Milliseconds => 1,
        TimeUnit::Microseconds => 1000,
        TimeUnit::Nanoseconds => 1_000_000,
    }
}

/// Columns, the names of the key, and what times count.
type Columns = (Vec<Column>, Vec<String>, Option<TimeUnit>);

/// The words of a statement, without blanks and comments, and how far it was read.
struct Words {
    tokens: Vec<Token>,
    at: usize,
}

impl Words {
    fn of(sql: &str) -> Result<Self, String> {
        let tokens = Tokenizer::new(&GenericDialect {}, sql).tokenize().map_err(|error| error.to_string())?;
        let tokens = tokens.into_iter().filter(|token| !matches!(token, Token::Whitespace(_))).collect();
        Ok(Self { tokens, at: 0 })
    }

    fn wrong<T>(&self, wanted: &str) -> Result<T, String> {
        match self.tokens.get(self.at) {
            Some(token) => Err(format!("expected {wanted}, found {token}")),
            None => Err(format!("expected {wanted}, found the end")),
        }
    }

    fn is(&self, ahead: usize, wanted: &str) -> bool {
        matches!(self.tokens.get(self.at + ahead), Some(Token::Word(Word { value, quote_style: None, .. }))
            if value.eq_ignore_ascii_case(wanted))
    }

    fn take_if(&mut self, wanted: &[&str]) -> bool {
        let is_there = wanted.iter().enumerate().all(|(ahead, word)| self.is(ahead, word));
        self.at += if is_there { wanted.len() } else { 0 };
        is_there
    }

    fn expect(&mut self, wanted: &[&str]) -> Result<(), String> {
        if self.take_if(wanted) { Ok(()) } else { self.wrong(&wanted.join(" ")) }
    }

    fn take_mark(&mut self, mark: &Token) -> bool {
        let is_there = self.tokens.get(self.at) == Some(mark);
        self.at += usize::from(is_there);
        is_there
    }

    fn mark(&mut self, mark: &Token) -> Result<(), String> {
        if self.take_mark(mark) { Ok(()) } else { self.wrong(&mark.to_string()) }
    }

    /// A name: as SQL has it, in lower case unless it is quoted.
    fn name(&mut self, wanted: &str) -> Result<String, String> {
        let Some(Token::Word(word)) = self.tokens.get(self.at) else { return self.wrong(wanted) };
        let name = match word.quote_style {
            Some(_) => word.value.clone(),
            None => word.value.to_lowercase(),
        };
        self.at += 1;
        Ok(name)
    }

    fn number(&mut self) -> Result<u64, String> {
        let number = match self.tokens.get(self.at) {
            Some(Token::Number(digits, false)) => digits.parse().ok(),
            _ => None,
        };
        let Some(number) = number else { return self.wrong("a whole number") };
        self.at += 1;
        Ok(number)
    }

    fn end(&mut self) -> Result<(), String> {
        self.take_mark(&Token::SemiColon);
        if self.at == self.tokens.len() { Ok(()) } else { self.wrong("the end of the statement") }
    }

    fn columns(&mut self) -> Result<Columns, String> {
        let (mut columns, mut key, mut unit) = (Vec::new(), Vec::new(), None);
        self.mark(&Token::LParen)?;
        loop {
            if self.is(0, "PRIMARY") && self.is(1, "KEY") {
                if !key.is_empty() {
                    return Err("two primary keys".to_owned());
                }
                self.at += 2;
                key = self.names()?;
            } else {
                let name = self.name("the name of a column")?;
                let (kind, of_time) = self.kind()?;
                if let (Some(one), Some(other)) = (unit, of_time)
                    && one != other
                {
                    return Err(format!("column {name} counts another unit than the times before it"));
                }
                unit = unit.or(of_time);
                columns.push(Column { name, kind });
            }
            if !self.take_mark(&Token::Comma) {
                break;
            }
        }
        self.mark(&Token::RParen)?;
        Ok((columns, key, unit))
    }

    fn names(&mut self) -> Result<Vec<String>, String> {
        self.mark(&Token::LParen)?;
        let mut names = vec![self.name("the name of a column")?];
        while self.take_mark(&Token::Comma) {
            names.push(self.name("the name of a column")?);
        }
        self.mark(&Token::RParen)?;
        Ok(names)
    }

    /// A type, in the words of SQL, of ClickHouse and of QuestDB.
    fn kind(&mut self) -> Result<(Kind, Option<TimeUnit>), String> {
        let at = self.at;
        let word = self.name("a type")?.to_ascii_uppercase();
        let time = |unit| Ok((Kind::Time, Some(unit)));
        match word.as_str() {
            "TIMESTAMP" | "DATETIME64" => match self.precision()? {
                None | Some(9) => time(TimeUnit::Nanoseconds),
                Some(6) => time(TimeUnit::Microseconds),
                Some(3) => time(TimeUnit::Milliseconds),
                Some(_) => Err("a TIMESTAMP has 3, 6 or 9 digits".to_owned()),
            },
            "TIMESTAMP_NS" => time(TimeUnit::Nanoseconds),
            "TIMESTAMP_MS" => time(TimeUnit::Milliseconds),
            "SYMBOL" | "STRING" | "TEXT" | "VARCHAR" => Ok((Kind::Symbol, None)),
            "LOWCARDINALITY" => {
                self.mark(&Token::LParen)?;
                self.expect(&["STRING"])?;
                self.mark(&Token::RParen)?;
                Ok((Kind::Symbol, None))
            }
            "BIGINT" | "INT" | "INTEGER" | "INT64" | "LONG" => Ok((Kind::Int, None)),
            "DOUBLE" | "FLOAT" | "FLOAT64" | "REAL" => {
                self.take_if(&["PRECISION"]);
                Ok((Kind::Float, None))
            }
            "NULLABLE" => {
                self.mark(&Token::LParen)?;
                if self.is(0, "NULLABLE") {
                    return self.wrong("a type");
                }
                let (kind, _) = self.kind()?;
                self.mark(&Token::RParen)?;
                match kind {
                    Kind::Float => Ok((kind, None)),
                    _ => Err(format!("a column of {} knows no null", kind.name())),
                }
            }
            "DECIMAL" | "NUMERIC" => self.decimal(),
            _ => {
                self.at = at;
                self.wrong("TIMESTAMP, SYMBOL, BIGINT, DOUBLE or DECIMAL(digits, scale)")
            }
        }
    }

    fn precision(&mut self) -> Result<Option<u64>, String> {
        if !self.take_mark(&Token::LParen) {
            return Ok(None);
        }
        let digits = self.number()?;
        self.mark(&Token::RParen)?;
        Ok(Some(digits))
    }

    fn decimal(&mut self) -> Result<(Kind, Option<TimeUnit>), String> {
        self.mark(&Token::LParen)?;
        let digits = self.number()?;
        self.mark(&Token::Comma)?;
        let scale = self.number()?;
        self.mark(&Token::RParen)?;
        match u8::try_from(scale) {
            Ok(scale) if (1..=DIGITS_MAX).contains(&digits) && u64::from(scale) <= digits => {
                Ok((Kind::Decimal { scale }, None))
            }
            _ => {
                Err(format!("DECIMAL({digits}, {scale}): digits are 1 to {DIGITS_MAX}, the scale is within"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_made_of_the_words_of_three_dialects() {
        for sql in [
            "CREATE TABLE trades (ts TIMESTAMP(6), sym SYMBOL, price DOUBLE, size BIGINT, fee DECIMAL(12, 4))",
            "create table if not exists Trades (ts DateTime64(6), sym LowCardinality(String), price Float64,
                size Int64, fee Decimal(12, 4)) PARTITION BY DAY;",
            "CREATE TABLE \"trades\" (ts TIMESTAMP(6), sym VARCHAR, price DOUBLE PRECISION, size INTEGER,
                fee NUMERIC(12, 4)) -- as of yesterday",
        ] {
            let made = create_table(sql).unwrap();
            let kinds: Vec<Kind> = made.schema.columns().iter().map(|column| column.kind).collect();
            let wanted = [Kind::Time, Kind::Symbol, Kind::Float, Kind::Int, Kind::Decimal { scale: 4 }];
            assert_eq!((made.name.as_str(), kinds.as_slice()), ("trades", &wanted[..]), "{sql}");
            assert_eq!(made.unit, TimeUnit::Microseconds);
            assert_eq!(made.schema.partitioning().span, 86_400_000_000);
            assert_eq!(made.is_if_not_exists, sql.contains("exists"));
        }
    }

    #[test]
    fn partitions_and_keys_are_as_they_say() {
        let made = create_table(
            "CREATE TABLE t (at TIMESTAMP, \"Who\" SYMBOL, n INT, PRIMARY KEY (at, \"Who\")) PARTITION BY HOUR",
        );
        let made = made.unwrap();
        assert_eq!((made.unit, made.schema.key()), (TimeUnit::Nanoseconds, &[0, 1][..]));
        assert_eq!(made.schema.partitioning().span, 3_600_000_000_000);
        let weekly = table_of("t", "at TIMESTAMP(3), n INT").unwrap();
        assert_eq!((weekly.name.as_str(), weekly.schema.partitioning().span), ("t", 86_400_000));
    }

    #[test]
    fn a_view_is_dropped_by_its_name() {
        assert_eq!(drop_view("DROP MATERIALIZED VIEW Bars;"), Ok(("bars".to_owned(), false)));
        assert_eq!(drop_view("drop materialized view if exists \"B\""), Ok(("B".to_owned(), true)));
        for (sql, told) in [
            ("DROP MATERIALIZED VIEW", "expected the name of a view, found the end"),
            ("DROP MATERIALIZED VIEW a, b", "expected the end of the statement, found ,"),
            ("DROP VIEW a", "expected DROP MATERIALIZED VIEW, found DROP"),
        ] {
            assert_eq!(drop_view(sql).unwrap_err(), told);
        }
        for (sql, is_of_view) in [
            ("CREATE MATERIALIZED VIEW a AS SELECT 1", true),
            ("-- bars\ncreate or replace materialized view a", true),
            ("DROP TABLE t", false),
            ("CREATE TABLE materialized (at TIMESTAMP)", false),
            ("SELECT materialized", false),
        ] {
            assert_eq!(super::is_of_view(sql), is_of_view, "{sql}");
        }
    }

    #[test]
    fn what_it_does_not_know_is_refused_by_name() {
        for (sql, told) in [
            ("CREATE TABLE t", "expected (, found the end"),
            ("CREATE VIEW t AS SELECT 1", "expected CREATE TABLE, found CREATE"),
            ("CREATE TABLE t (n INT)", "no column is a TIMESTAMP: one must be, rows are in its order"),
            (
                "CREATE TABLE t (at TIMESTAMP, b BLOB)",
                "expected TIMESTAMP, SYMBOL, BIGINT, DOUBLE or DECIMAL(digits, scale), found BLOB",
            ),
            (
                "CREATE TABLE t (at TIMESTAMP) ENGINE = MergeTree",
                "expected the end of the statement, found ENGINE",
            ),
            ("CREATE TABLE t (at TIMESTAMP) PARTITION BY MONTH", "partitions are by HOUR, DAY or WEEK"),
            (
                "CREATE TABLE t (at TIMESTAMP(3), b TIMESTAMP(9))",
                "column b counts another unit than the times before it",
            ),
            ("CREATE TABLE t (at TIMESTAMP(0))", "a TIMESTAMP has 3, 6 or 9 digits"),
            (
                "CREATE TABLE t (at TIMESTAMP, d DECIMAL(20, 2))",
                "DECIMAL(20, 2): digits are 1 to 18, the scale is within",
            ),
            (
                "CREATE TABLE t (at TIMESTAMP, d DECIMAL(4, 5))",
                "DECIMAL(4, 5): digits are 1 to 18, the scale is within",
            ),
            ("CREATE TABLE t (at TIMESTAMP, n Nullable(Int64))", "a column of int knows no null"),
            (
                "CREATE TABLE t (at TIMESTAMP, n Nullable(Nullable(Float64)))",
                "expected a type, found Nullable",
            ),
            ("CREATE TABLE t (at TIMESTAMP, at INT)", "column at: is there twice"),
            ("CREATE TABLE t (at TIMESTAMP, PRIMARY KEY (b))", "no column b"),
            ("CREATE TABLE t (at TIMESTAMP NOT NULL)", "expected ), found NOT"),
        ] {
            assert_eq!(create_table(sql).unwrap_err(), told, "{sql}");
        }
    }
}
