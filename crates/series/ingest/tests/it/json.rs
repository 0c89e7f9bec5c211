//! JSON.

use planish_ingest::{Faults, JsonDecoder, Options};
use proptest::prelude::*;

use crate::feed::{Row, broken, drip, feed, rows, small, target, told};

fn decoder(options: Options) -> JsonDecoder {
    JsonDecoder::new(target(), options)
}

fn encode(rows: &[Row], between: &str) -> String {
    let text = |text: &str| serde_json::to_string(text).unwrap();
    let object = |row: &Row| {
        let price = row.price.map_or_else(|| "null".to_owned(), |price| format!("{price:?}"));
        let (symbol, note, fee) = (text(&row.symbol), text(&row.note), row.fee_text());
        format!(
            "{{\"symbol\":{symbol},\"price\":{price}, \"size\":{},\"fee, net\" : {fee},\"note\":{note},\"time\":{}}}",
            row.size, row.time
        )
    };
    rows.iter().map(object).collect::<Vec<_>>().join(between)
}

proptest! {
    #[test]
    fn what_a_client_writes_is_read(
        rows in rows(), cuts in prop::collection::vec(any::<usize>(), 0..5), between in "\n|,|, \n| |",
    ) {
        for text in [encode(&rows, &between), format!("[{}]\n", encode(&rows, &between))] {
            let (shown, outcome) = feed(&mut decoder(Options::default()), text.as_bytes(), &cuts);
            prop_assert_eq!(outcome.unwrap().faults, vec![]);
            prop_assert_eq!(&shown.rows, &rows);
        }
    }

    #[test]
    fn pieces_do_not_matter_whatever_the_bytes(
        rows in rows(),
        changes in prop::collection::vec((any::<usize>(), any::<u8>()), 0..6),
        cuts in prop::collection::vec(any::<usize>(), 0..6),
        is_whole in any::<bool>(),
    ) {
        let bytes = broken(encode(&rows, "\n").into_bytes(), &changes);
        let faults = if is_whole { Faults::Refuse } else { Faults::LeaveOut };
        for options in [small(), Options { rows_max: 3, ..Options::default() }] {
            let options = Options { faults, ..options };
            let whole = feed(&mut decoder(options.clone()), &bytes, &[]);
            prop_assert_eq!(&feed(&mut decoder(options.clone()), &bytes, &cuts), &whole);
            prop_assert_eq!(&drip(&mut decoder(options), &bytes), &whole);
        }
    }
}

const GOOD: &str =
    r#"{"symbol":"a","price":1.5,"size":3,"fee, net":"0.5","time":"1970-01-01T00:00:00.000000001Z"}"#;

#[test]
fn one_that_is_broken_does_not_take_the_next_with_it() {
    let cases = [
        (r#"{"symbol":"a","price":1.5"#, "line 2, column "),
        (r#"{"symbol":"a}"#, "line 2, column "),
        (r#"{"symbol":"a","prize":1.5}"#, "line 2, column 23: the table has no column prize"),
        (r#"{"symbol":"a","price":[1]}"#, "line 2, column 23: \"[1]\" is no float"),
        (r#"{"symbol":7}"#, "line 2, column 11: \"7\" is no symbol"),
        (r#"{"symbol":"a","price":1.5,}"#, "line 2, column "),
        (r#"{"symbol":"a","price":1.5} x"#, "line 2, column 1: column time has no value"),
        ("nonsense", "line 2, column "),
        ("{\n \"symbol\": \"\\u0061\",\n \"price\": true\n}", "line 4, column 11: \"true\" is no float"),
        (r#"{"symbol":"a","symbol":"b"}"#, "line 2, column 24: column symbol is there twice"),
        ("{\"symbol\":\"\u{1}\"}", "line 2, column "),
    ];
    for (bad, wanted) in cases {
        let (rows, faults) = told(&mut decoder(Options::default()), &format!("{GOOD}\n{bad}\n{GOOD}"));
        assert_eq!(rows.len(), 2, "{bad}: {faults:?}");
        assert!(!faults.is_empty() && faults[0].starts_with(wanted), "{bad}: {faults:?}");
    }
    let (rows, faults) = told(&mut decoder(Options::default()), &format!("{GOOD}{{\"symbol\":"));
    assert_eq!((rows.len(), faults.len()), (1, 1));
    assert_eq!((rows[0].fee, rows[0].time), (5000, 1));
    assert!(faults[0].contains("the input ends in the middle"), "{faults:?}");
}
