//! Line protocol.

use planish_ingest::{
    Batch, Decoder, Faults, IngestError, LineDecoder, Options, Sink, Target, Unit, Unknown,
};
use planish_table::{Column, Kind, Partitioning, Schema};
use proptest::prelude::*;

use crate::feed::{Row, Shown, broken, drip, feed, rows, schema, small, target, told};

fn decoder(options: Options) -> LineDecoder {
    LineDecoder::new(vec![target()], options)
}

/// The batches that came: table, its name, rows.
#[derive(Debug, Default)]
struct Tables(Vec<(usize, String, usize)>);

impl Sink for Tables {
    fn take(&mut self, batch: &Batch<'_>) -> Result<(), IngestError> {
        self.0.push((batch.table(), batch.name().to_owned(), batch.rows()));
        Ok(())
    }
}

/// As a client writes it.
pub fn encode(rows: &[Row]) -> String {
    let mut text = String::new();
    for row in rows {
        let note = row.note.replace('\\', "\\\\").replace('"', "\\\"");
        text += &format!("ticks,symbol={} size={}i", row.symbol, row.size);
        if let Some(price) = row.price {
            text += &format!(",price={price:?}");
        }
        text += &format!(",fee\\,\\ net={},note=\"{note}\" {}\n", row.fee_text(), row.time);
    }
    text
}

fn row(symbol: &str, time: i64) -> Row {
    Row { symbol: symbol.into(), time, price: Some(1.5), size: 3, fee: 0, note: String::new() }
}

proptest! {
    #[test]
    fn what_a_client_writes_is_read(rows in rows(), cuts in prop::collection::vec(any::<usize>(), 0..5)) {
        let text = encode(&rows);
        let (shown, outcome) = feed(&mut decoder(Options::default()), text.as_bytes(), &cuts);
        prop_assert_eq!(outcome.unwrap().faults, vec![]);
        prop_assert_eq!(shown.rows, rows);
    }

    #[test]
    fn pieces_do_not_matter_whatever_the_bytes(
        rows in rows(),
        changes in prop::collection::vec((any::<usize>(), any::<u8>()), 0..6),
        cuts in prop::collection::vec(any::<usize>(), 0..6),
        is_whole in any::<bool>(),
    ) {
        let bytes = broken(encode(&rows).into_bytes(), &changes);
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
fn types_tags_comments_and_ends_of_lines_are_those_of_influx() {
    let text = "# a comment\n\n  \t\r\n\
        ticks,symbol=a price=1.5,size=3i,fee\\,\\ net=0 1\r\n\
        ticks,symbol=a\\ b\\,c\\=d\\\\ price=15e-1,size=3u,fee\\,\\ net=0i 2\n \
        ticks,symbol=µ price=1.5,size=3,fee\\,\\ net=0.0,note=\"x \\\"y\\\" \\\\ \\z, =\n#\"   3  \n\
        ticks,symbol=a,note=n price=1.5,size=t,fee\\,\\ net=-0.00010 4\n\
        ticks price=nan,size=-9223372036854775808i,fee\\,\\ net=\"1.25\",symbol=\"s\" -5";
    let (rows, faults) = told(&mut decoder(Options::default()), text);
    assert_eq!(faults, [""; 0]);
    assert_eq!(
        rows,
        [
            row("a", 1),
            row("a b,c=d\\", 2),
            Row { note: "x \"y\" \\ \\z, =\n#".into(), ..row("µ", 3) },
            Row { note: "n".into(), size: 1, fee: -1, ..row("a", 4) },
            Row { price: None, size: i64::MIN, fee: 12_500, ..row("s", -5) },
        ]
    );
}

#[test]
fn a_fault_tells_line_column_and_cure_and_no_other_line_is_lost() {
    let good = "ticks,symbol=a price=1.5,size=3i,fee\\,\\ net=0 1\n";
    let with = |price: &str| good.replace("price=1.5", price);
    let cases = [
        ("quotes,symbol=a price=1 1\n".to_owned(), 1, "no table quotes"),
        (with("prize=1.5"), 16, "the table has no column prize"),
        (with("price=1.5,price=2"), 32, "column price is there twice"),
        (with("price=abc"), 22, "\"abc\" is no float"),
        (with("price=2=\"open"), 22, "is no float"),
        (with("price=9007199254740993i"), 22, "is no float"),
        (with("price=1.5,size=1.5"), 31, "\"1.5\" is no int"),
        (with("price=1.5,size=9223372036854775808u"), 31, "is no int"),
        (with("price=1.5,size=-1u"), 31, "is no int"),
        (with("price="), 22, "expected the value of a field"),
        (with("price"), 21, "expected the name of a field and an equals sign"),
        (with("price=\"1\"2"), 25, "expected a comma, a blank, or the end of the line"),
        (with("price=1.5,note=3"), 31, "\"3\" is no symbol"),
        (good.replace("=0 1", "=0.00001 1"), 45, "\"0.00001\" is no decimal"),
        (good.replace("=0 1", "=1e15 1"), 45, "\"1e15\" is no decimal"),
        (good.replace(" 1\n", " 1s\n"), 47, "expected a time"),
        (good.replace(" 1\n", " 1 2\n"), 49, "expected the end of the line"),
        (good.replace(" 1\n", "\n"), 1, "column time has no value"),
        (good.replace("size=3i,", ""), 1, "column size has no value"),
        (good.replace(",symbol=a", ""), 1, "column symbol has no value"),
        (good.replace(",symbol=a", ",symbol="), 14, "expected the value of a tag"),
        (good.replace(",symbol=a", ",symbol=a=b"), 15, "expected a comma, or a blank"),
        (good.replace(",symbol=a", ",size=3"), 12, "\"3\" is no int"),
        ("ticks\n".to_owned(), 6, "expected a blank, and fields behind it"),
        (",symbol=a price=1 1\n".to_owned(), 1, "expected a measurement"),
    ];
    for (bad, column, reason) in cases {
        let (rows, faults) = told(&mut decoder(Options::default()), &format!("{good}{bad}{good}"));
        assert_eq!(rows.len(), 2, "{bad}");
        let wanted = format!("line 2, column {column}: ");
        assert!(faults.len() == 1 && faults[0].starts_with(&wanted), "{bad}: {faults:?}, not {wanted}");
        assert!(faults[0].contains(reason) && faults[0].contains("; "), "{bad}: {faults:?}");
    }
}

/// What is left out unread is a value like any other: quotes within it begin no text, which would eat the lines behind
/// it, and did so where the line came in two pieces.
#[test]
fn quotes_within_a_value_that_is_left_out_do_not_take_the_next_lines() {
    let good = "ticks,symbol=a price=1.5,size=3i,fee\\,\\ net=0 1\n";
    for other in ["x=2=\"open,", "x=2\\=\"open,", "x=\"a\",y==\"open,"] {
        let text = format!("{}{good}{good}", good.replace("price", &format!("{other}price")));
        let options = || Options { unknown: Unknown::LeaveOut, ..Options::default() };
        let (whole, outcome) = feed(&mut decoder(options()), text.as_bytes(), &[]);
        assert_eq!((whole.rows.len(), outcome.unwrap().faults.len()), (3, 0), "{other}");
        let (rows, outcome) = drip(&mut decoder(options()), text.as_bytes());
        assert_eq!((rows.rows, outcome.unwrap().faults.len()), (whole.rows, 0), "{other}");
    }
}

#[test]
fn a_line_that_is_too_long_or_has_no_end_is_told_and_left_out() {
    let good = "ticks,symbol=a price=1.5,size=3i,fee\\,\\ net=0 1\n";
    let long = format!("ticks,symbol=a price=1.5,note=\"{}\n\n\"\n", "x".repeat(80));
    let input = format!("{good}{long}{good}ticks,symbol=\"a note=\"open\n{good}");
    let (shown, outcome) = drip(&mut decoder(small()), input.as_bytes());
    let faults: Vec<String> = outcome.unwrap().faults.iter().map(ToString::to_string).collect();
    assert_eq!(shown.rows.len(), 2, "{faults:?}");
    assert!(faults[0].starts_with("line 2, column 1: longer than 60 bytes"), "{faults:?}");
    // What is behind the line feed at which the line was given up is read as lines.
    assert!(faults[1].starts_with("line 4, column 1: "), "{faults:?}");
    assert!(faults.last().unwrap().contains("longer than 60 bytes"), "{faults:?}");
    let (_, faults) = told(&mut decoder(Options::default()), "ticks,symbol=a note=\"open\n");
    assert_eq!(faults, ["line 1, column 1: the input ends in the middle of a row; send the rest"]);
}

#[test]
fn whole_or_not_at_all() {
    let good = "ticks,symbol=a price=1.5,size=3i,fee\\,\\ net=0 1\n";
    let refuse = Options { faults: Faults::Refuse, rows_max: 3, ..Options::default() };
    let whole = feed(&mut decoder(refuse.clone()), good.repeat(3).as_bytes(), &[]);
    assert_eq!((whole.0.batches, whole.1.unwrap().rows), (vec![(3, 1, 3)], 3));
    let much = feed(&mut decoder(refuse.clone()), good.repeat(4).as_bytes(), &[]);
    assert!(much.0.rows.is_empty() && much.1.unwrap_err().starts_with("line 4: more rows than"));
    let bad = feed(&mut decoder(refuse), format!("{good}x\n{good}").as_bytes(), &[]);
    assert!(bad.0.rows.is_empty() && bad.1.unwrap_err().starts_with("line 2, column 1: no table x"));
}

#[test]
fn times_have_units_and_rows_without_one_the_time_at_which_they_arrive() {
    let target =
        Target::new("ticks", &schema(), Unit::Milliseconds).fill("note", "").unwrap().kept_from(1500);
    let options = Options { unit: Unit::Seconds, unknown: Unknown::LeaveOut, ..Options::default() };
    let mut decoder = LineDecoder::new(vec![target], options);
    decoder.arrived(Some(2_000_999_999));
    let line = "ticks,symbol=a,host=h price=1.5,x=\"y\",size=3i,fee\\,\\ net=0";
    let input = format!("{line} 2\n{line}\n{line} 1\n{line} 9223372036854775807\n");
    let (rows, faults) = told(&mut decoder, &input);
    assert_eq!(rows, [row("a", 2000), row("a", 2000)]);
    assert!(
        faults[0]
            .starts_with("line 3, column 1: time 1000 is before what the table keeps; send rows from 1500")
    );
    assert!(faults[1].starts_with("line 4, column 60: \"9223372036854775807\" is no time"), "{faults:?}");
}

#[test]
fn a_measurement_is_a_table_and_each_has_batches_of_its_own() {
    let column = |(name, kind): (&str, Kind)| Column { name: name.into(), kind };
    let columns = vec![column(("t", Kind::Time)), column(("x", Kind::Float))];
    let other = Schema::new(columns, Partitioning { span: 10, symbols: None }).unwrap();
    let targets = vec![target(), Target::new("my heat", &other, Unit::Nanoseconds)];
    let mut decoder = LineDecoder::new(targets, Options::default());
    let mut tables = Tables::default();
    let tick = "ticks,symbol=a price=1.5,size=3i,fee\\,\\ net=0 1\n";
    let input = format!("{tick}my\\ heat x=1 1\n{tick}my\\ heat x=2 2\nmy\\ heat x=3 3\n");
    decoder.feed(input.as_bytes(), &mut tables).unwrap();
    decoder.flush(&mut tables).unwrap();
    assert_eq!(decoder.finish(&mut tables).unwrap().rows, 5);
    assert_eq!(tables.0, [(0, "ticks".into(), 2), (1, "my heat".into(), 3)]);
    // The same decoder takes the next input, from line 1 on.
    let (_, outcome) = feed(&mut decoder, b"x\n", &[]);
    assert_eq!(outcome.unwrap().faults[0].line, 1);
    let mut shown = Shown::default();
    assert_eq!(decoder.finish(&mut shown).unwrap().rows, 0);
}

#[test]
fn a_fault_ends_a_stream_and_the_lines_before_it_are_taken_in() {
    let good = "ticks,symbol=a price=1.5,size=3i,fee\\,\\ net=0 1\n";
    let long = format!("ticks,symbol=a price=1.5,note=\"{}\"\n", "x".repeat(80));
    for (bad, told) in [
        ("ticks\n", "line 5, column 6: expected a blank"),
        ("nowhere,symbol=a price=1 1\n", "line 5, column 1: no table nowhere"),
        ("ticks,symbol=a price=1.5,fee\\,\\ net=0 1\n", "line 5, column 1: column size has no value"),
        (&long, "line 5, column 1: longer than 60 bytes"),
    ] {
        let input = format!("{}{bad}{}", good.repeat(4), good.repeat(2));
        for piece_bytes in [1, 7, input.len()] {
            // Whatever it says of faults.
            let options = Options { faults: Faults::Refuse, ..small() };
            let (mut decoder, mut shown) = (decoder(options).until_a_fault(), Shown::default());
            let mut pieces = input.as_bytes().chunks(piece_bytes);
            let error = pieces.find_map(|piece| decoder.feed(piece, &mut shown).err()).unwrap();
            assert!(error.to_string().starts_with(told), "{error}");
            assert!(matches!(error, IngestError::Stopped(_)), "{error:?}");
            assert!(matches!(decoder.feed(good.as_bytes(), &mut shown), Err(IngestError::Ended)));
            assert!(matches!(decoder.finish(&mut shown), Err(IngestError::Ended)));
            decoder.flush(&mut shown).unwrap();
            // One batch that was full, and the rest.
            assert_eq!(shown.batches, [(3, 1, 3), (1, 4, 4)], "{bad}");
        }
    }
}

#[test]
fn a_table_that_comes_later_is_found_and_those_before_keep_their_rows() {
    let columns = [("t", Kind::Time), ("x", Kind::Float)];
    let columns = columns.map(|(name, kind)| Column { name: name.into(), kind }).to_vec();
    let schema = Schema::new(columns, Partitioning { span: 10, symbols: None }).unwrap();
    let mut decoder = decoder(Options::default()).until_a_fault();
    let mut shown = Tables::default();
    let good = "ticks,symbol=a price=1.5,size=3i,fee\\,\\ net=0 1\n";
    decoder.feed(good.as_bytes(), &mut shown).unwrap();
    decoder.feed(b"heat x=1", &mut shown).unwrap();
    assert_eq!(decoder.begun_bytes(), 8);
    decoder.add(Target::new("heat", &schema, Unit::Nanoseconds));
    decoder.feed(format!(" 7\n{good}").as_bytes(), &mut shown).unwrap();
    assert_eq!(decoder.begun_bytes(), 0);
    decoder.flush(&mut shown).unwrap();
    assert_eq!(shown.0, [(0, "ticks".to_owned(), 2), (1, "heat".to_owned(), 1)]);
}
