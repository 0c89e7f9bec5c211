//! `planish-series load --demo`: tables of trades and quotes that look like an exchange's, for whoever has no data yet.

use std::num::NonZeroU64;

use clap::Args;
use planish_table::Cells;
use planish_workload::{Quotes, TickOptions, Ticks, Trades};

use crate::database::Database;
use crate::ddl::create_table;
use crate::failure::{Failure, Kind};
use crate::load::flush_if_full;

const TRADES: &str = "CREATE TABLE trades (ts TIMESTAMP(9), sym SYMBOL, price DOUBLE, size BIGINT)";
const QUOTES: &str = "CREATE TABLE quotes (ts TIMESTAMP(9), sym SYMBOL, bid DOUBLE, ask DOUBLE, bid_size BIGINT, \
                      ask_size BIGINT)";

/// What is to be made instead of loading files.
#[derive(Debug, Args)]
pub(crate) struct DemoOptions {
    /// Make tables trades and quotes, of so many rows each, instead of loading files [without a number: 1000000]
    #[arg(
        long,
        value_name = "ROWS",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "1000000",
        conflicts_with_all = ["files", "table", "columns", "format", "strict"]
    )]
    pub(crate) demo: Option<NonZeroU64>,
    /// Symbols that --demo trades
    #[arg(long, requires = "demo", default_value = "100", value_name = "N", value_parser = symbols())]
    symbols: u64,
    /// --demo makes the same rows of the same seed
    #[arg(long, requires = "demo", default_value = "1", value_name = "N")]
    seed: u64,
}

fn symbols() -> clap::builder::RangedU64ValueParser {
    clap::value_parser!(u64).range(1..=Ticks::SYMBOLS_MAX as u64)
}

impl DemoOptions {
    /// Makes the tables and fills them; `tell` hears how many rows there are.
    ///
    /// # Errors
    /// Where one of them is there already, which then stays as it is, and what a table says.
    pub(crate) fn run(
        &self,
        trades: NonZeroU64,
        database: &Database,
        mut tell: impl FnMut(&str),
    ) -> Result<(), Failure> {
        for name in ["trades", "quotes"] {
            if database.table(name).is_ok() {
                let text = format!("there is a table {name} already; say another folder --into");
                return Err(Failure::new(Kind::TableExists, text));
            }
        }
        for sql in [TRADES, QUOTES] {
            let table = create_table(sql).map_err(|text| Failure::new(Kind::Internal, text))?;
            database.create(table)?;
        }
        let symbols = usize::try_from(self.symbols).unwrap_or(Ticks::SYMBOLS_MAX);
        let mut ticks = Ticks::new(&TickOptions { trades: trades.get(), symbols, seed: self.seed });
        let names = ticks.names().to_vec();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        while let Some((trades, quotes)) = ticks.next_piece() {
            add_trades(database, &names, &trades)?;
            add_quotes(database, &names, &quotes)?;
            flush_if_full(database)?;
        }
        for name in ["trades", "quotes"] {
            tell(&format!("{name}: {trades} rows of {symbols} symbols"));
        }
        Ok(())
    }
}

fn add_trades(database: &Database, names: &[&str], rows: &Trades) -> Result<(), Failure> {
    if rows.times.is_empty() {
        return Ok(());
    }
    let cells = [
        Cells::Times(&rows.times),
        Cells::Keyed { texts: names, keys: &rows.symbols },
        Cells::Floats(&rows.prices),
        Cells::Ints(&rows.sizes),
    ];
    database.table("trades")?.durable.append(None, &cells)?;
    Ok(())
}

fn add_quotes(database: &Database, names: &[&str], rows: &Quotes) -> Result<(), Failure> {
    if rows.times.is_empty() {
        return Ok(());
    }
    let cells = [
        Cells::Times(&rows.times),
        Cells::Keyed { texts: names, keys: &rows.symbols },
        Cells::Floats(&rows.bids),
        Cells::Floats(&rows.asks),
        Cells::Ints(&rows.bid_sizes),
        Cells::Ints(&rows.ask_sizes),
    ];
    database.table("quotes")?.durable.append(None, &cells)?;
    Ok(())
}
