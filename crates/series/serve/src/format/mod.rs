//! How answers are written: the formats of ClickHouse, by its names.
//!
//! An encoder gets the columns, then batches of rows, then the end, and appends bytes each time: nothing of an answer
//! is kept but what the next chunk is made of.

mod arrow;
mod cells;
mod json;
mod text;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::error::ArrowError;

use crate::failure::{Failure, Kind};

/// A format of answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    TabSeparated(Heading),
    Csv(Heading),
    Json,
    JsonCompact,
    JsonEachRow,
    JsonCompactEachRow(Heading),
    ArrowStream,
}

/// What stands above rows that have no names themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Heading {
    None,
    Names,
    NamesAndTypes,
}

impl Heading {
    /// Takes the words of one off the end of a name in small letters.
    fn off(name: &str) -> (&str, Self) {
        let ends = [("withnamesandtypes", Self::NamesAndTypes), ("withnames", Self::Names)];
        let found = ends.into_iter().find_map(|(end, heading)| Some((name.strip_suffix(end)?, heading)));
        found.unwrap_or((name, Self::None))
    }

    /// The lines: words that are names, and words that are types.
    fn lines(self, schema: &SchemaRef) -> Vec<Vec<String>> {
        let names = || schema.fields().iter().map(|field| field.name().clone()).collect();
        match self {
            Self::None => Vec::new(),
            Self::Names => vec![names()],
            Self::NamesAndTypes => vec![names(), cells::type_names(schema)],
        }
    }
}

/// What makes bytes of rows.
pub(crate) trait Encoder: Send {
    /// What comes before the rows.
    fn begin(&mut self, schema: &SchemaRef, out: &mut Vec<u8>) -> Result<(), ArrowError>;
    /// Some rows.
    fn rows(&mut self, batch: &RecordBatch, out: &mut Vec<u8>) -> Result<(), ArrowError>;
    /// What comes behind them.
    fn end(&mut self, out: &mut Vec<u8>) -> Result<(), ArrowError>;
}

impl Format {
    /// By the name that ClickHouse has for it.
    ///
    /// # Errors
    /// [`Kind::UnknownFormat`].
    pub(crate) fn named(name: &str) -> Result<Self, Failure> {
        let lower = name.to_ascii_lowercase();
        let (bare, heading) = Heading::off(&lower);
        match (bare, heading) {
            ("tabseparated" | "tsv", _) => Ok(Self::TabSeparated(heading)),
            ("csv", _) => Ok(Self::Csv(heading)),
            ("jsoncompacteachrow", _) => Ok(Self::JsonCompactEachRow(heading)),
            ("json", Heading::None) => Ok(Self::Json),
            ("jsoncompact", Heading::None) => Ok(Self::JsonCompact),
            ("jsoneachrow" | "jsonlines" | "ndjson", Heading::None) => Ok(Self::JsonEachRow),
            ("arrowstream", Heading::None) => Ok(Self::ArrowStream),
            _ => {
                let text = format!(
                    "no format {name}; there are JSON, JSONCompact, JSONEachRow, ArrowStream; and TabSeparated, CSV, \
                     JSONCompactEachRow, these also WithNames and WithNamesAndTypes"
                );
                Err(Failure::new(Kind::UnknownFormat, text))
            }
        }
    }

    /// Its name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::TabSeparated(Heading::None) => "TabSeparated",
            Self::TabSeparated(Heading::Names) => "TabSeparatedWithNames",
            Self::TabSeparated(Heading::NamesAndTypes) => "TabSeparatedWithNamesAndTypes",
            Self::Csv(Heading::None) => "CSV",
            Self::Csv(Heading::Names) => "CSVWithNames",
            Self::Csv(Heading::NamesAndTypes) => "CSVWithNamesAndTypes",
            Self::Json => "JSON",
            Self::JsonCompact => "JSONCompact",
            Self::JsonEachRow => "JSONEachRow",
            Self::JsonCompactEachRow(Heading::None) => "JSONCompactEachRow",
            Self::JsonCompactEachRow(Heading::Names) => "JSONCompactEachRowWithNames",
            Self::JsonCompactEachRow(Heading::NamesAndTypes) => "JSONCompactEachRowWithNamesAndTypes",
            Self::ArrowStream => "ArrowStream",
        }
    }

    /// The type of its bytes in HTTP.
    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Self::TabSeparated(_) => "text/tab-separated-values; charset=UTF-8",
            Self::Csv(Heading::None) => "text/csv; charset=UTF-8; header=absent",
            Self::Csv(_) => "text/csv; charset=UTF-8; header=present",
            Self::Json | Self::JsonCompact => "application/json; charset=UTF-8",
            Self::JsonEachRow | Self::JsonCompactEachRow(_) => "application/x-ndjson; charset=UTF-8",
            Self::ArrowStream => "application/vnd.apache.arrow.stream",
        }
    }

    /// What writes it.
    pub(crate) fn encoder(self) -> Box<dyn Encoder> {
        match self {
            Self::TabSeparated(heading) => Box::new(text::Tabs { heading }),
            Self::Csv(heading) => Box::new(text::Csv { heading }),
            Self::Json => Box::new(json::Json::new(false)),
            Self::JsonCompact => Box::new(json::Json::new(true)),
            Self::JsonEachRow => Box::new(json::EachRow::default()),
            Self::JsonCompactEachRow(heading) => Box::new(json::Compact { heading }),
            Self::ArrowStream => Box::new(arrow::Stream::default()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{
        ArrayRef, BooleanArray, Date32Array, Decimal128Array, DictionaryArray, Float32Array, Float64Array,
        Int64Array, NullArray, StringArray, TimestampMillisecondArray, TimestampNanosecondArray, UInt32Array,
    };
    use datafusion::arrow::datatypes::{Field, Schema};
    use datafusion::arrow::ipc::reader::StreamReader;

    use super::*;

    /// A column of every type that tables and queries have, with what is odd about it.
    fn batch() -> RecordBatch {
        let texts = Arc::new(StringArray::from(vec!["al\tpha", "it's \"b\"\\\n", "é,"]));
        let symbols = DictionaryArray::new(UInt32Array::from(vec![2, 0, 1]), texts);
        let decimals = Decimal128Array::from(vec![Some(-5), Some(1_234_560), None]);
        let millis = TimestampMillisecondArray::from(vec![-1, 0, 1_764_432_208_500]);
        let columns: Vec<(&str, bool, ArrayRef)> = vec![
            ("at", false, Arc::new(TimestampNanosecondArray::from(vec![0, 1, 1_764_432_208_000_000_001]))),
            ("ms", false, Arc::new(millis.clone())),
            ("utc", false, Arc::new(millis.with_timezone("Europe/Berlin"))),
            ("sym", false, Arc::new(symbols)),
            ("whole", false, Arc::new(Int64Array::from(vec![i64::MIN, 0, i64::MAX]))),
            ("price", true, Arc::new(Float64Array::from(vec![Some(0.1), None, Some(1e300)]))),
            ("odd", false, Arc::new(Float64Array::from(vec![f64::NAN, f64::NEG_INFINITY, -0.0]))),
            ("small", false, Arc::new(Float32Array::from(vec![0.1, 1e-9, 3e21]))),
            ("fee", true, Arc::new(decimals.with_precision_and_scale(19, 2).unwrap())),
            ("yes", false, Arc::new(BooleanArray::from(vec![true, false, true]))),
            ("day", true, Arc::new(Date32Array::from(vec![Some(0), None, Some(20_000)]))),
            ("none", true, Arc::new(NullArray::new(3))),
        ];
        let field = |(name, is_nullable, array): &(&str, bool, ArrayRef)| {
            Field::new(*name, array.data_type().clone(), *is_nullable)
        };
        let schema = Schema::new(columns.iter().map(field).collect::<Vec<_>>());
        RecordBatch::try_new(Arc::new(schema), columns.into_iter().map(|(.., array)| array).collect())
            .unwrap()
    }

    fn written(format: Format, batches: &[RecordBatch]) -> Vec<u8> {
        let (mut encoder, mut out) = (format.encoder(), Vec::new());
        encoder.begin(&batch().schema(), &mut out).unwrap();
        batches.iter().for_each(|batch| encoder.rows(batch, &mut out).unwrap());
        encoder.end(&mut out).unwrap();
        out
    }

    fn text(format: &str, batches: &[RecordBatch]) -> String {
        String::from_utf8(written(Format::named(format).unwrap(), batches)).unwrap()
    }

    #[test]
    fn texts_are_as_clickhouse_writes_them() {
        let batches = [batch()];
        insta::assert_snapshot!("tsv", text("TabSeparatedWithNames", &batches));
        insta::assert_snapshot!("csv", text("CSVWithNames", &batches));
        insta::assert_snapshot!("json", text("JSON", &batches));
        insta::assert_snapshot!("jsoneachrow", text("JSONEachRow", &batches));
        insta::assert_snapshot!("json_without_rows", text("JSON", &[]));
        insta::assert_snapshot!("jsoncompact", text("JSONCompact", &batches));
        insta::assert_snapshot!("jsoncompacteachrow", text("JSONCompactEachRowWithNamesAndTypes", &batches));
        insta::assert_snapshot!("tsv_types", text("TSVWithNamesAndTypes", &[]));
        for format in ["TSV", "CSV", "JSONCompactEachRow"] {
            let lines =
                |end: &str| text(&format!("{format}{end}"), &batches).lines().map(str::to_owned).collect();
            let [bare, names, types]: [Vec<String>; 3] = ["", "WithNames", "WithNamesAndTypes"].map(lines);
            assert_eq!((&names[1..], &types[2..], &types[0]), (&*bare, &*bare, &names[0]), "{format}");
        }
    }

    #[test]
    fn json_is_json_and_rows_may_come_in_any_pieces() {
        let whole = batch();
        let pieces = [whole.slice(0, 1), whole.slice(1, 0), whole.slice(1, 2)];
        for format in ["TSV", "CSV", "JSON", "JSONCompact", "JSONEachRow", "JSONCompactEachRowWithNames"] {
            assert_eq!(text(format, &pieces), text(format, &[batch()]), "{format}");
        }
        let json: serde_json::Value = serde_json::from_str(&text("JSON", &pieces)).unwrap();
        assert_eq!((&json["rows"], json["data"].as_array().unwrap().len()), (&3.into(), 3));
        assert_eq!(json["data"][1]["sym"], "al\tpha");
        let lines = text("JSONEachRow", &pieces);
        for (line, row) in lines.lines().zip(json["data"].as_array().unwrap()) {
            assert_eq!(serde_json::from_str::<serde_json::Value>(line).unwrap(), *row);
        }
        let compact: serde_json::Value = serde_json::from_str(&text("JSONCompact", &pieces)).unwrap();
        assert_eq!((&compact["meta"], &compact["rows"]), (&json["meta"], &json["rows"]));
        let names: Vec<&str> =
            whole.schema_ref().fields().iter().map(|field| field.name().as_str()).collect();
        for (values, row) in compact["data"].as_array().unwrap().iter().zip(json["data"].as_array().unwrap())
        {
            assert_eq!(values.as_array().unwrap().len(), names.len());
            names
                .iter()
                .zip(values.as_array().unwrap())
                .for_each(|(name, value)| assert_eq!(*value, row[*name]));
        }
    }

    #[test]
    fn a_stream_of_arrow_is_what_its_reader_reads() {
        let whole = batch();
        let bytes = written(Format::ArrowStream, &[whole.slice(0, 2), whole.slice(2, 1)]);
        let read: Vec<RecordBatch> =
            StreamReader::try_new(bytes.as_slice(), None).unwrap().map(Result::unwrap).collect();
        assert_eq!(read, [whole.slice(0, 2), whole.slice(2, 1)]);
        assert_eq!(StreamReader::try_new(&*written(Format::ArrowStream, &[]), None).unwrap().count(), 0);
    }

    #[test]
    fn formats_go_by_their_names() {
        let with_heading = ["TabSeparated", "CSV", "JSONCompactEachRow"];
        let headed = with_heading
            .iter()
            .flat_map(|name| ["", "WithNames", "WithNamesAndTypes"].map(|end| name.to_string() + end));
        let others = ["JSON", "JSONCompact", "JSONEachRow", "ArrowStream"].map(str::to_owned);
        for name in headed.chain(others) {
            assert_eq!(Format::named(&name).unwrap().name(), name);
        }
        for name in ["Native", "JSONWithNames", "JSONEachRowWithNamesAndTypes", "WithNames", ""] {
            assert_eq!(Format::named(name).unwrap_err().kind, Kind::UnknownFormat, "{name}");
        }
    }
}
