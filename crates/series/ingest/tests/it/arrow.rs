//! Streams of Arrow.

use std::sync::Arc;

use arrow_array::types::Int8Type;
use arrow_array::{
    ArrayRef, BooleanArray, Decimal128Array, DictionaryArray, Float32Array, Float64Array, Int8Array,
    Int16Array, Int64Array, LargeStringArray, NullArray, RecordBatch, StringArray, StringViewArray,
    TimestampMicrosecondArray, TimestampNanosecondArray, UInt64Array,
};
use arrow_ipc::writer::StreamWriter;
use planish_ingest::{ArrowDecoder, Faults, Options};
use proptest::prelude::*;

use crate::feed::{Row, drip, feed, rows, small, target};

fn decoder(options: Options) -> ArrowDecoder {
    ArrowDecoder::new(target(), options)
}

/// A stream of batches of the same columns.
pub fn stream(batches: &[RecordBatch]) -> Vec<u8> {
    let mut writer = StreamWriter::try_new(Vec::new(), &batches[0].schema()).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.into_inner().unwrap()
}

fn encode(rows: &[Row]) -> RecordBatch {
    let symbols: DictionaryArray<Int8Type> = rows.iter().map(|row| Some(row.symbol.as_str())).collect();
    let fees = Decimal128Array::from_iter_values(rows.iter().map(|row| i128::from(row.fee)));
    let columns: [(&str, ArrayRef); 6] = [
        ("time", Arc::new(TimestampNanosecondArray::from_iter_values(rows.iter().map(|row| row.time)))),
        ("price", Arc::new(rows.iter().map(|row| row.price).collect::<Float64Array>())),
        ("symbol", Arc::new(symbols)),
        ("size", Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.size)))),
        ("fee, net", Arc::new(fees.with_precision_and_scale(38, 4).unwrap())),
        ("note", Arc::new(rows.iter().map(|row| Some(row.note.as_str())).collect::<StringArray>())),
    ];
    RecordBatch::try_from_iter_with_nullable(columns.map(|(name, array)| (name, array, true))).unwrap()
}

proptest! {
    #[test]
    fn what_a_client_writes_is_read(
        rows in rows(), more in rows(), cuts in prop::collection::vec(any::<usize>(), 0..5),
    ) {
        let bytes = stream(&[encode(&rows), encode(&more)]);
        for options in [Options::default(), Options { rows_max: 7, ..Options::default() }] {
            let (shown, outcome) = feed(&mut decoder(options), &bytes, &cuts);
            prop_assert_eq!(outcome.unwrap().faults, vec![]);
            prop_assert_eq!(shown.rows, [rows.clone(), more.clone()].concat());
        }
    }

    #[test]
    fn pieces_do_not_matter_whatever_the_bytes(
        rows in rows(),
        changes in prop::collection::vec((any::<usize>(), any::<u8>()), 0..6),
        cuts in prop::collection::vec(any::<usize>(), 0..6),
        is_whole in any::<bool>(),
    ) {
        let mut bytes = stream(&[encode(&rows), encode(&rows)]);
        for (at, byte) in changes {
            let at = at % bytes.len();
            bytes[at] = byte;
        }
        let faults = if is_whole { Faults::Refuse } else { Faults::LeaveOut };
        for options in [small(), Options { rows_max: 3, ..Options::default() }] {
            let options = Options { faults, ..options };
            let whole = feed(&mut decoder(options.clone()), &bytes, &[]);
            prop_assert_eq!(&feed(&mut decoder(options.clone()), &bytes, &cuts), &whole);
            prop_assert_eq!(&drip(&mut decoder(options), &bytes), &whole);
        }
    }
}

fn with(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    let mut all: Vec<(&str, ArrayRef)> = vec![
        ("time", Arc::new(Int64Array::from(vec![1, 2, 3]))),
        ("symbol", Arc::new(LargeStringArray::from(vec!["a", "b", "a"]))),
        ("size", Arc::new(Int8Array::from(vec![1, 2, 3]))),
        ("fee, net", Arc::new(Int16Array::from(vec![1, 2, 3]))),
    ];
    all.retain(|(name, _)| columns.iter().all(|(other, _)| other != name));
    all.extend(columns);
    RecordBatch::try_from_iter_with_nullable(all.into_iter().map(|(name, array)| (name, array, true)))
        .unwrap()
}

#[test]
fn a_value_that_the_column_does_not_hold_exactly_leaves_its_row_out() {
    let decimals = |digits: Vec<i128>, scale| {
        Arc::new(Decimal128Array::from(digits).with_precision_and_scale(30, scale).unwrap())
    };
    let texts = StringViewArray::from(vec![Some("a"), None, Some("c")]);
    let cases: Vec<(&str, ArrayRef, &str)> = vec![
        ("size", Arc::new(UInt64Array::from(vec![1, u64::MAX, 3])), "\"18446744073709551615\" is no int"),
        (
            "size",
            Arc::new(BooleanArray::from(vec![Some(true), None, Some(false)])),
            "column size has no value",
        ),
        ("price", Arc::new(Int64Array::from(vec![1, (1 << 53) + 1, 3])), "is no float"),
        ("fee, net", decimals(vec![10, 15, 20], 5), "\"15\" is no decimal"),
        ("fee, net", decimals(vec![1, 10_i128.pow(14), 2], 0), "is no decimal"),
        ("symbol", Arc::new(texts), "column symbol has no value"),
        ("time", Arc::new(TimestampMicrosecondArray::from(vec![1, i64::MAX, 3])), "is no time"),
    ];
    for (name, array, wanted) in cases {
        let bytes = stream(&[with(vec![(name, array)])]);
        let (shown, outcome) = feed(&mut decoder(Options::default()), &bytes, &[]);
        let faults = outcome.unwrap().faults;
        assert_eq!(shown.rows.len(), 2, "{name}: {faults:?}");
        let told = faults[0].to_string();
        assert!(faults.len() == 1 && told.starts_with("line 2, column ") && told.contains(wanted), "{told}");
    }
    let array = Arc::new(Float32Array::from(vec![Some(0.5), None, Some(-1.0)]));
    let (shown, _) = feed(&mut decoder(Options::default()), &stream(&[with(vec![("price", array)])]), &[]);
    let shown: Vec<_> = shown.rows.iter().map(|row| (row.price, row.fee, row.symbol.as_str())).collect();
    assert_eq!(shown, [(Some(0.5), 10_000, "a"), (None, 20_000, "b"), (Some(-1.0), 30_000, "a")]);
}

/// A batch of no rows is none that a table takes.
#[test]
fn rows_that_are_all_left_out_are_no_batch_however_many_bytes_they_had() {
    let options = Options { batch_bytes_max: 40, ..Options::default() };
    for length in [0, 300] {
        let batch = |sizes: [Option<i64>; 3]| {
            let notes = StringArray::from(vec!["x".repeat(length), "y".repeat(length), String::new()]);
            with(vec![("size", Arc::new(Int64Array::from(sizes.to_vec()))), ("note", Arc::new(notes))])
        };
        let bytes = stream(&[batch([None; 3]), batch([Some(1), Some(2), Some(3)])]);
        let (shown, outcome) = feed(&mut decoder(options.clone()), &bytes, &[]);
        assert_eq!((shown.rows.len(), outcome.unwrap().faults.len()), (3, 3));
        assert_eq!(shown.batches, [(3, 4, 6)]);
    }
}

#[test]
fn columns_that_do_not_fit_the_table_refuse_the_stream() {
    let error = |name, array: ArrayRef| {
        feed(&mut decoder(Options::default()), &stream(&[with(vec![(name, array)])]), &[]).1.unwrap_err()
    };
    let floats = || Arc::new(Float64Array::from(vec![1.0, 2.0, 3.0]));
    assert!(error("fee, net", floats()).contains("\"Float64\" is no decimal"));
    assert!(error("prize", floats()).contains("the table has no column prize"));
    assert!(error("note", Arc::new(NullArray::new(3))).contains("\"Null\" is no symbol"));
    let without = RecordBatch::try_from_iter([("price", floats() as ArrayRef)]).unwrap();
    let (_, outcome) = feed(&mut decoder(Options::default()), &stream(&[without]), &[]);
    assert!(outcome.unwrap_err().contains("column symbol has no value"));
}

#[test]
fn a_stream_that_is_cut_or_too_large_or_goes_on_behind_its_end_is_broken() {
    let bytes = stream(&[with(Vec::new())]);
    let error = |bytes: &[u8], options| feed(&mut decoder(options), bytes, &[]).1.unwrap_err();
    assert!(error(&bytes[..bytes.len() - 20], Options::default()).contains("the input ends in the middle"));
    assert!(error(&[&bytes[..], b"x"].concat(), Options::default()).contains("bytes behind the end"));
    let tight = Options { message_bytes_max: 16, ..Options::default() };
    assert!(error(&bytes, tight).contains("more than 16: send fewer rows"));
    assert!(error(b"time,symbol\n", Options::default()).contains("a message of"));
}
