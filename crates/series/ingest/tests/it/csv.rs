//! CSV.

use planish_ingest::{CsvDecoder, Faults, Header, Options};
use proptest::prelude::*;

use crate::feed::{Row, broken, drip, feed, rows, small, target, told};

fn decoder(options: Options) -> CsvDecoder {
    CsvDecoder::new(target(), Header::First, b',', options)
}

fn encode(rows: &[Row]) -> String {
    let mut text = "symbol,price,size,\"fee, net\",note,time\n".to_owned();
    for row in rows {
        let price = row.price.map_or_else(String::new, |price| format!("{price:?}"));
        let note = row.note.replace('"', "\"\"");
        text += &format!("{},{price},{},{},\"{note}\",{}\n", row.symbol, row.size, row.fee_text(), row.time);
    }
    text
}

proptest! {
    #[test]
    fn what_a_client_writes_is_read(rows in rows(), cuts in prop::collection::vec(any::<usize>(), 0..5)) {
        let text = format!("\u{feff}{}", encode(&rows));
        for text in [text.replace("\u{feff}", ""), text] {
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
        mark in "\u{feff}{0,2}",
        is_whole in any::<bool>(),
    ) {
        let bytes = broken(format!("{mark}{}", encode(&rows)).into_bytes(), &changes);
        let faults = if is_whole { Faults::Refuse } else { Faults::LeaveOut };
        for options in [small(), Options { rows_max: 3, ..Options::default() }] {
            let options = Options { faults, ..options };
            let whole = feed(&mut decoder(options.clone()), &bytes, &[]);
            prop_assert_eq!(&feed(&mut decoder(options.clone()), &bytes, &cuts), &whole);
            prop_assert_eq!(&drip(&mut decoder(options), &bytes), &whole);
        }
    }
}

#[test]
fn columns_have_names_times_have_forms_and_empty_is_nothing() {
    let names = ["time", "symbol", "price", "size", "fee, net"].map(str::to_owned).to_vec();
    let mut decoder = CsvDecoder::new(target(), Header::Named(names), b';', Options::default());
    let text = "\r\n1970-01-01 00:00:00.000000001;a; 1.5 ;true;.5\r\n\"2\";\"x;\"\"y\n\";;-3;5";
    let (rows, faults) = told(&mut decoder, text);
    assert_eq!(faults, [""; 0]);
    let first =
        Row { symbol: "a".into(), time: 1, price: Some(1.5), size: 1, fee: 5000, note: String::new() };
    let second =
        Row { symbol: "x;\"y\n".into(), time: 2, price: None, size: -3, fee: 50_000, note: String::new() };
    assert_eq!(rows, [first, second]);
}

#[test]
fn a_fault_tells_the_line_at_which_its_record_begins_and_the_field() {
    let good = "a,1.5,3,0,n,1\n";
    let text =
        format!("symbol,price,size,\"fee, net\",note,time\n\n{good}a,1.5,3,0,\"\n\",x\n{good}a,1.5\n{good}");
    let (rows, faults) = told(&mut decoder(Options::default()), &text);
    assert_eq!(rows.len(), 3);
    assert!(faults[0].starts_with("line 4, column 6: \"x\" is no time"), "{faults:?}");
    assert!(faults[1].starts_with("line 7, column 3: 2 fields for 6 columns"), "{faults:?}");
    let error = |text: &str| feed(&mut decoder(Options::default()), text.as_bytes(), &[]).1.unwrap_err();
    assert!(error("symbol,prize\n").contains("line 1, column 2: the table has no column prize"));
    assert!(error("symbol,symbol\n").contains("line 1, column 2: column symbol is there twice"));
}
