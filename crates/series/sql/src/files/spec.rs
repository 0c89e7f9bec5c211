//! Which files a query names, and how they are to be read.

use std::sync::Arc;

use datafusion::common::plan_err;
use datafusion::datasource::file_format::FileFormat;
use datafusion::datasource::file_format::arrow::ArrowFormat;
use datafusion::datasource::file_format::csv::CsvFormat;
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::error::Result;

/// Between the parts of a name that a call has become. No path has it.
const BETWEEN: char = '\u{1f}';
/// Lines of CSV by which types of columns are told; DuckDB looks at as many.
const LINES_LOOKED_AT: usize = 20_480;

/// A format of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Parquet,
    Csv,
    Arrow,
}

impl Format {
    const ALL: [(&'static str, Self); 3] =
        [("read_parquet", Self::Parquet), ("read_csv", Self::Csv), ("read_arrow", Self::Arrow)];

    /// That which a function reads.
    pub(super) fn of_function(name: &str) -> Option<Self> {
        let name = if name == "read_csv_auto" { "read_csv" } else { name };
        Self::ALL.iter().find(|(function, _)| *function == name).map(|(_, format)| *format)
    }

    pub(super) fn function(self) -> &'static str {
        Self::ALL.iter().find(|(_, format)| *format == self).map_or("", |(function, _)| function)
    }
}

/// How CSV is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Csv {
    pub(super) delimiter: u8,
    pub(super) has_header: bool,
    pub(super) quote: u8,
    pub(super) escape: Option<u8>,
}

impl Default for Csv {
    fn default() -> Self {
        Self { delimiter: b',', has_header: true, quote: b'"', escape: None }
    }
}

/// Files, as a query names them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Spec {
    pub(super) format: Format,
    /// Paths, maybe with `*`, `?`, `[..]` and `**`.
    pub(super) paths: Vec<String>,
    pub(super) csv: Csv,
}

impl Spec {
    /// The files that a name in FROM means; `None` where it is no path.
    ///
    /// # Errors
    /// A path whose format is not told by its end.
    pub(super) fn of_name(name: &str) -> Result<Option<Self>> {
        if let Some(parts) = name.strip_prefix(BETWEEN) {
            return Self::of_parts(parts).map(Some);
        }
        let lower = name.to_ascii_lowercase();
        let end = lower.rsplit_once('.').map_or("", |(_, end)| end);
        let csv = Csv { delimiter: if end == "tsv" { b'\t' } else { b',' }, ..Csv::default() };
        let format = match end {
            "parquet" => Format::Parquet,
            "csv" | "tsv" => Format::Csv,
            "arrow" | "arrows" | "feather" | "ipc" => Format::Arrow,
            _ if name.contains(['/', '*']) || ["gz", "zst", "bz2", "xz"].contains(&end) => {
                return plan_err!(
                    "{name}: no format by this name; write read_parquet('..'), read_csv('..') or read_arrow('..'), or \
                     load what is packed"
                );
            }
            _ => return Ok(None),
        };
        Ok(Some(Self { format, paths: vec![name.to_owned()], csv }))
    }

    /// A name that means the same.
    ///
    /// # Errors
    /// A path with the mark that stands between parts.
    pub(super) fn name(&self) -> Result<String> {
        if let Some(path) = self.paths.iter().find(|path| path.contains(BETWEEN)) {
            return plan_err!("{path:?} is no path");
        }
        let Csv { delimiter, has_header, quote, escape } = &self.csv;
        let csv = format!("{delimiter} {} {quote} {}", u8::from(*has_header), escape.unwrap_or(0));
        let parts = [self.format.function(), &csv].into_iter().chain(self.paths.iter().map(String::as_str));
        Ok(parts.flat_map(|part| [BETWEEN.to_string(), part.to_owned()]).collect())
    }

    /// What [`name`](Self::name) says. Anybody may write such a name, which then means what it says.
    fn of_parts(text: &str) -> Result<Self> {
        let mut parts = text.split(BETWEEN);
        let format = parts.next().and_then(Format::of_function);
        let csv: Option<Vec<u8>> =
            parts.next().and_then(|csv| csv.split(' ').map(|number| number.parse().ok()).collect());
        let paths: Vec<String> = parts.map(str::to_owned).collect();
        match (format, csv.as_deref()) {
            (Some(format), Some(&[delimiter, has_header, quote, escape])) if !paths.is_empty() => {
                let escape = (escape != 0).then_some(escape);
                let csv = Csv { delimiter, has_header: has_header != 0, quote, escape };
                Ok(Self { format, paths, csv })
            }
            _ => plan_err!("{text:?} is no name of a table"),
        }
    }

    /// What reads them.
    pub(super) fn file_format(&self) -> Arc<dyn FileFormat> {
        match self.format {
            Format::Parquet => Arc::new(ParquetFormat::default()),
            Format::Arrow => Arc::new(ArrowFormat),
            Format::Csv => {
                let Csv { delimiter, has_header, quote, escape } = self.csv;
                let format = CsvFormat::default().with_schema_infer_max_rec(LINES_LOOKED_AT);
                let format = format.with_has_header(has_header).with_delimiter(delimiter);
                Arc::new(format.with_quote(quote).with_escape(escape))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_path_by_its_end() {
        let format = |name: &str| Spec::of_name(name).unwrap().map(|spec| spec.format);
        for (name, wanted) in [
            ("a.parquet", Some(Format::Parquet)),
            ("x/*.PARQUET", Some(Format::Parquet)),
            ("a.csv", Some(Format::Csv)),
            ("a.tsv", Some(Format::Csv)),
            ("a.feather", Some(Format::Arrow)),
            ("parquet", None),
            ("t", None),
            ("a.b", None),
        ] {
            assert_eq!(format(name), wanted, "{name}");
        }
        assert_eq!(Spec::of_name("a.tsv").unwrap().unwrap().csv.delimiter, b'\t');
        for name in ["a/b", "*.txt", "a.csv.gz"] {
            assert!(
                Spec::of_name(name).unwrap_err().to_string().contains("no format by this name"),
                "{name}"
            );
        }
    }

    #[test]
    fn a_call_and_its_name_are_one() {
        let csv = Csv { delimiter: b';', has_header: false, quote: b'\'', escape: Some(b'\\') };
        for format in [Format::Parquet, Format::Csv, Format::Arrow] {
            for csv in [Csv::default(), csv.clone()] {
                let spec = Spec { format, paths: vec!["a b/c".to_owned(), "*.x".to_owned()], csv };
                assert_eq!(Spec::of_name(&spec.name().unwrap()).unwrap(), Some(spec));
            }
        }
        let wrong = Spec { format: Format::Arrow, paths: vec!["a\u{1f}b".to_owned()], csv };
        assert!(wrong.name().is_err());
        for name in ["\u{1f}", "\u{1f}read_csv\u{1f}44 1 34 0", "\u{1f}read_csv\u{1f}44 1\u{1f}a"] {
            assert!(Spec::of_name(name).is_err(), "{name:?}");
        }
    }
}
