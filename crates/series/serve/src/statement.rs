//! What a request asks for: a query with the format of its answer, rows with the format that they come in, a table.
//!
//! Rows follow the head of their INSERT in the same bytes, so the head is looked for byte by byte, and what is behind
//! it is left to the decoders. Everything else is text.

use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::tokenizer::{Location, Token, Tokenizer, Word};

/// `INSERT INTO table [(columns)] FORMAT format`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Insert {
    pub(crate) table: String,
    /// In the order in which values come, where it is not that of the table.
    pub(crate) columns: Option<Vec<String>>,
    pub(crate) format: String,
}

/// Words and marks of a query: what [`STACK_BYTES`] of a thread have room for in any build.
pub(crate) const WORDS_MAX: usize = 2000;
/// Bytes of the stack of a thread that plans and runs queries. It takes addresses; memory only as deep as a query goes.
pub(crate) const STACK_BYTES: usize = 512 << 20;

/// What the first bytes of a request are.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Head {
    /// More of them are needed to tell.
    More,
    /// Rows, which begin behind so many bytes.
    Insert(Insert, usize),
    /// Text.
    Text,
}

/// Looks whether some bytes begin with the head of an INSERT; `is_all` says that there are no more of them.
///
/// # Errors
/// What is wrong with the head.
pub(crate) fn head(bytes: &[u8], is_all: bool) -> Result<Head, String> {
    let mut scan = Scan { bytes, at: 0, is_all };
    match scan.insert() {
        Ok(Some(insert)) => Ok(Head::Insert(insert, scan.at)),
        Ok(None) => Ok(Head::Text),
        Err(Stop::More) => Ok(Head::More),
        Err(Stop::Wrong(what)) => Err(what),
    }
}

/// Why a head is not read on.
enum Stop {
    More,
    Wrong(String),
}

struct Scan<'b> {
    bytes: &'b [u8],
    at: usize,
    is_all: bool,
}

impl Scan<'_> {
    fn insert(&mut self) -> Result<Option<Insert>, Stop> {
        if !self.word()?.eq_ignore_ascii_case("INSERT") {
            return Ok(None);
        }
        self.expect("INTO")?;
        let mut table = self.name()?;
        if table.eq_ignore_ascii_case("TABLE") && !matches!(self.next()?, b'(' | b'.') {
            let before = self.at;
            let word = self.name()?;
            match word.eq_ignore_ascii_case("FORMAT") {
                // A table of this name.
                true => self.at = before,
                false => table = word,
            }
        }
        if self.next()? == b'.' {
            self.at += 1;
            if table != "default" {
                return Err(Stop::Wrong(format!("no database {table}; there is one, default")));
            }
            table = self.name()?;
        }
        let columns = match self.next()? {
            b'(' => Some(self.columns()?),
            _ => None,
        };
        let word = self.word()?;
        match word.to_ascii_uppercase().as_str() {
            "FORMAT" => {}
            "VALUES" | "SELECT" => {
                let what = format!("INSERT with {word} is not taken; send rows behind FORMAT CSV");
                return Err(Stop::Wrong(what));
            }
            _ => return Err(Stop::Wrong(format!("expected FORMAT, found {word:?}"))),
        }
        let format = self.word()?;
        if format.is_empty() {
            return Err(Stop::Wrong("expected the name of a format".to_owned()));
        }
        self.behind_line()?;
        Ok(Some(Insert { table, columns, format }))
    }

    /// The byte that comes, behind blanks and comments.
    fn next(&mut self) -> Result<u8, Stop> {
        loop {
            let rest = &self.bytes[self.at..];
            match rest {
                [] => return self.end(),
                [b' ' | b'\t' | b'\r' | b'\n', ..] => self.at += 1,
                [b'-'] | [b'/'] if !self.is_all => return Err(Stop::More),
                [b'-', b'-', ..] => match rest.iter().position(|&byte| byte == b'\n') {
                    Some(feed) => self.at += feed,
                    None => return self.end(),
                },
                [b'/', b'*', ..] => match rest.windows(2).skip(2).position(|pair| pair == b"*/") {
                    Some(end) => self.at += end + 4,
                    None => return self.end(),
                },
                [byte, ..] => return Ok(*byte),
            }
        }
    }

    /// At the end there is no byte: one that begins nothing stands for it.
    fn end(&self) -> Result<u8, Stop> {
        if self.is_all { Ok(0) } else { Err(Stop::More) }
    }

    /// Letters, digits and underscores; none where something else stands.
    fn word(&mut self) -> Result<String, Stop> {
        self.next()?;
        let rest = &self.bytes[self.at..];
        let is_letter = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        let length = rest.iter().take_while(|byte| is_letter(byte)).count();
        if length == rest.len() && !self.is_all {
            return Err(Stop::More);
        }
        self.at += length;
        Ok(rest[..length].iter().copied().map(char::from).collect())
    }

    fn expect(&mut self, wanted: &str) -> Result<(), Stop> {
        let word = self.word()?;
        match word.eq_ignore_ascii_case(wanted) {
            true => Ok(()),
            false => Err(Stop::Wrong(format!("expected {wanted}, found {word:?}"))),
        }
    }

    /// A name: in lower case unless it is quoted, as SQL has it.
    fn name(&mut self) -> Result<String, Stop> {
        let quote = match self.next()? {
            quote @ (b'"' | b'`') => quote,
            _ => {
                let word = self.word()?;
                return match word.is_empty() {
                    true => Err(Stop::Wrong("expected a name".to_owned())),
                    false => Ok(word.to_lowercase()),
                };
            }
        };
        let rest = &self.bytes[self.at + 1..];
        let Some(length) = rest.iter().position(|&byte| byte == quote) else {
            return self.end().and(Err(Stop::Wrong("a name whose quotes do not end".to_owned())));
        };
        self.at += length + 2;
        let name = std::str::from_utf8(&rest[..length]);
        name.map(str::to_owned).map_err(|_| Stop::Wrong("a name that is not UTF-8".to_owned()))
    }

    fn columns(&mut self) -> Result<Vec<String>, Stop> {
        let mut names = Vec::new();
        loop {
            // An opening parenthesis, or a comma.
            self.at += 1;
            names.push(self.name()?);
            match self.next()? {
                b',' => {}
                b')' => break,
                _ => return Err(Stop::Wrong("expected a comma or a parenthesis behind a column".to_owned())),
            }
        }
        self.at += 1;
        Ok(names)
    }

    /// Goes over blanks behind the head, and its line feed: rows begin on the next line, or behind a blank.
    fn behind_line(&mut self) -> Result<(), Stop> {
        loop {
            match self.bytes.get(self.at) {
                Some(b' ' | b'\t' | b'\r') => self.at += 1,
                Some(b'\n') => {
                    self.at += 1;
                    return Ok(());
                }
                None if !self.is_all => return Err(Stop::More),
                _ => return Ok(()),
            }
        }
    }
}

/// Takes `FORMAT name` off the end of a query; also a semicolon.
pub(crate) fn without_format(sql: &str) -> (&str, Option<String>) {
    // A text that is no SQL is told of by who parses it.
    let Ok(tokens) = Tokenizer::new(&GenericDialect {}, sql).tokenize_with_location() else {
        return (sql, None);
    };
    let mut tokens: Vec<_> =
        tokens.into_iter().filter(|it| !matches!(it.token, Token::Whitespace(_) | Token::EOF)).collect();
    let mut end = sql.len();
    while let Some(last) = tokens.pop_if(|it| it.token == Token::SemiColon) {
        end = offset(sql, last.span.start);
    }
    let [.., format, name] = tokens.as_slice() else { return (&sql[..end], None) };
    match (&format.token, &name.token) {
        (Token::Word(Word { value, quote_style: None, .. }), Token::Word(name))
            if value.eq_ignore_ascii_case("FORMAT") =>
        {
            (&sql[..offset(sql, format.span.start)], Some(name.value.clone()))
        }
        _ => (&sql[..end], None),
    }
}

/// Whether a text has more words and marks than [`WORDS_MAX`], values of lists aside: planner and optimizer descend
/// into an expression once for each operator in a row, and each descent takes of the thread's stack.
pub(crate) fn is_too_deep(sql: &str) -> bool {
    let Ok(tokens) = Tokenizer::new(&GenericDialect {}, sql).tokenize() else { return false };
    let is_value = |token: &Token| matches!(token, Token::Number(..) | Token::SingleQuotedString(_));
    let mut count = 0;
    let mut is_behind_value = false;
    for token in tokens.iter().filter(|token| !matches!(token, Token::Whitespace(_))) {
        // `IN (1, 2, 3)` is one list, however long; a list of tables is a join of joins.
        let is_of_list = is_value(token) || (is_behind_value && *token == Token::Comma);
        count += usize::from(!is_of_list);
        is_behind_value = is_value(token);
    }
    count > WORDS_MAX
}

/// The first word of a text in capitals, behind comments.
pub(crate) fn first_word(sql: &str) -> String {
    let Ok(tokens) = Tokenizer::new(&GenericDialect {}, sql).tokenize() else { return String::new() };
    match tokens.into_iter().find(|token| !matches!(token, Token::Whitespace(_))) {
        Some(Token::Word(word)) => word.value.to_ascii_uppercase(),
        _ => String::new(),
    }
}

/// The byte of a line and column, which count characters from 1.
pub(crate) fn offset(sql: &str, place: Location) -> usize {
    let lines = usize::try_from(place.line.saturating_sub(1)).unwrap_or(usize::MAX);
    let columns = usize::try_from(place.column.saturating_sub(1)).unwrap_or(usize::MAX);
    let line: usize = sql.split_inclusive('\n').take(lines).map(str::len).sum();
    let within = sql[line..].char_indices().nth(columns);
    line + within.map_or(sql.len() - line, |(at, _)| at)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn insert(table: &str, columns: &[&str], format: &str) -> Insert {
        let columns = (!columns.is_empty()).then(|| columns.iter().map(|&it| it.to_owned()).collect());
        Insert { table: table.to_owned(), columns, format: format.to_owned() }
    }

    #[test]
    fn rows_begin_behind_the_head() {
        for (text, wanted, rows) in [
            ("INSERT INTO t FORMAT CSV\n1,2\n", insert("t", &[], "CSV"), "1,2\n"),
            ("insert into T format JSONEachRow {\"a\":1}", insert("t", &[], "JSONEachRow"), "{\"a\":1}"),
            ("INSERT INTO t (a, \"B c\") FORMAT CSV\r\n\n1", insert("t", &["a", "B c"], "CSV"), "\n1"),
            ("-- rows\nINSERT /* of */ INTO TABLE default.`t` FORMAT CSV 1", insert("t", &[], "CSV"), "1"),
            ("INSERT INTO table FORMAT CSV\n1", insert("table", &[], "CSV"), "1"),
            ("INSERT INTO t FORMAT CSV", insert("t", &[], "CSV"), ""),
        ] {
            let Ok(Head::Insert(found, at)) = head(text.as_bytes(), true) else { panic!("{text}") };
            assert_eq!((found, &text[at..]), (wanted, rows), "{text}");
        }
    }

    #[test]
    fn a_head_in_pieces_is_the_same_head() {
        let text = "/* a */ INSERT INTO TABLE default.\"t\" (a, b) -- c\n FORMAT CSV \nx";
        let whole = head(text.as_bytes(), true).unwrap();
        let Head::Insert(_, at) = &whole else { panic!("{whole:?}") };
        for end in 0..text.len() {
            let found = head(&text.as_bytes()[..end], false).unwrap();
            assert_eq!(found, if end < *at { Head::More } else { head(text.as_bytes(), true).unwrap() });
        }
    }

    #[test]
    fn what_is_no_head_is_text_or_told() {
        assert_eq!(head(b"SELECT 1", true), Ok(Head::Text));
        assert_eq!(head(b"", true), Ok(Head::Text));
        assert_eq!(head(b"\xff\xfe", true), Ok(Head::Text));
        assert_eq!(head(b"INSER", false), Ok(Head::More));
        for (text, told) in [
            ("INSERT t", "expected INTO, found \"t\""),
            ("INSERT INTO", "expected a name"),
            ("INSERT INTO t VALUES (1)", "INSERT with VALUES is not taken; send rows behind FORMAT CSV"),
            ("INSERT INTO t", "expected FORMAT, found \"\""),
            ("INSERT INTO t FORMAT", "expected the name of a format"),
            ("INSERT INTO x.t FORMAT CSV", "no database x; there is one, default"),
            ("INSERT INTO \"t", "a name whose quotes do not end"),
            ("INSERT INTO t (a;", "expected a comma or a parenthesis behind a column"),
        ] {
            assert_eq!(head(text.as_bytes(), true), Err(told.to_owned()), "{text}");
        }
    }

    #[test]
    fn a_format_is_what_ends_a_query_and_no_text_or_comment() {
        for (sql, query, format) in [
            ("SELECT 1 FORMAT JSON", "SELECT 1 ", Some("JSON")),
            ("SELECT 'é'\n,  2\n format CSV ; ", "SELECT 'é'\n,  2\n ", Some("CSV")),
            ("SELECT 1 FORMAT JSON -- as ever", "SELECT 1 ", Some("JSON")),
            ("SELECT 1 -- FORMAT JSON", "SELECT 1 -- FORMAT JSON", None),
            ("SELECT 'x FORMAT JSON'", "SELECT 'x FORMAT JSON'", None),
            ("SELECT 1;;", "SELECT 1", None),
            ("SELECT \"FORMAT\" a", "SELECT \"FORMAT\" a", None),
            ("SELECT 'open FORMAT JSON", "SELECT 'open FORMAT JSON", None),
            ("", "", None),
        ] {
            assert_eq!(without_format(sql), (query, format.map(str::to_owned)), "{sql}");
        }
    }

    #[test]
    fn the_first_word_is_behind_comments() {
        assert_eq!(first_word("-- a\n /* b */ create table"), "CREATE");
        assert_eq!(first_word("(SELECT 1)"), "");
    }

    /// What heads and queries are made of.
    const PIECES: &[&str] = &[
        " ", " ", " ", "\n", "INSERT", "INTO", "TABLE", "default", "t", "(", ")", ",", ".", "--", "/*", "*/",
        "-", "/", "\"", "`", "'", ";", "é", "FORMAT", "CSV", "SELECT",
    ];
    const BEGUN: &[&str] = &["", "INSERT INTO t ", "INSERT INTO t (a) FORMAT CSV"];

    fn texts() -> impl Strategy<Value = String> {
        let pieces = prop::collection::vec(prop::sample::select(PIECES), 0..12);
        let text = |(begun, pieces): (&str, Vec<&str>)| format!("{begun}{}", pieces.concat());
        (prop::sample::select(BEGUN), pieces).prop_map(text)
    }

    proptest! {
        #[test]
        fn what_a_beginning_tells_more_of_it_tells_too(text in texts(), cut in any::<prop::sample::Index>()) {
            let beginning = &text.as_bytes()[..cut.index(text.len() + 1)];
            let whole = head(text.as_bytes(), true);
            let told = head(beginning, false);
            if told != Ok(Head::More) {
                prop_assert_eq!(&told, &whole);
            }
            if let Ok(Head::Insert(_, at)) = whole {
                prop_assert!(at <= text.len());
            }
        }

        #[test]
        fn a_query_without_its_format_is_its_beginning(text in texts()) {
            let (query, _) = without_format(&text);
            prop_assert!(text.starts_with(query));
            prop_assert_eq!(without_format(&format!("{text}\n FORMAT JSON")).1.is_some(),
                Tokenizer::new(&GenericDialect {}, &format!("{text}\n")).tokenize().is_ok());
            let _ = first_word(&text);
        }
    }
}
