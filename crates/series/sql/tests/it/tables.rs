//! Durable tables: rows in memory and in files are one table.

use std::sync::Arc;

use planish_sql::Source;
use planish_table::{Disk, Durable, Follower, Options, View};
use proptest::prelude::*;

use crate::fixture::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn rows_in_files_and_in_memory_are_one_table(
        mut first in rows(60), mut late in rows(30), division in division(), before in -60i64..60,
    ) {
        without_nulls(&mut first);
        without_nulls(&mut late);
        let folder = tempfile::tempdir().unwrap();
        let disk = Arc::new(Disk::open_plain(folder.path()).unwrap());
        let table = Durable::create(arena(), disk, schema(division), None, &Options::default()).unwrap();
        // One of another process sees the same, from where it began.
        let view = Arc::new(View::of(folder.path()));
        let follower = Arc::new(Follower::open(arena(), view).unwrap());
        append_all(&first, division.batch_rows, |batch| {
            table.append(None, batch).unwrap();
        });
        follower.refresh().unwrap();
        table.flush(before).unwrap();
        append_all(&late, division.batch_rows, |batch| {
            table.append(None, batch).unwrap();
        });
        let all: Vec<Row> = first.iter().chain(&late).copied().collect();
        let sources = [
            ("t", Source::Durable(Arc::new(table))), ("f", Source::Followed(follower)), ("m", memory(&all, division)),
        ];
        let engine = engine(2, &sources);
        for sql in [
            "SELECT ts, sym, price, size FROM t",
            "SELECT sym, xbar(ts, 9), max(price), min(price), sum(size), count(*) FROM t GROUP BY sym, xbar(ts, 9)",
            "SELECT ts / 9, vwap(price, size), count(*) FROM t WHERE ts > -20 AND sym = 'beta' GROUP BY ts / 9",
            "SELECT count(*), sum(size) FROM t WHERE price > 0 AND ts < 30",
        ] {
            let wanted = sorted(ask(&engine, &sql.replace("FROM t", "FROM m")));
            assert_like(&sorted(ask(&engine, sql)), &wanted, sql);
            assert_like(&sorted(ask(&engine, &sql.replace("FROM t", "FROM f"))), &wanted, sql);
        }
    }
}
