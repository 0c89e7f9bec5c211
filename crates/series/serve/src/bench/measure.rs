//! The measures of one round.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use datafusion::arrow::array::{
    ArrayRef, DictionaryArray, Float64Array, Int64Array, RecordBatch, StringArray, TimestampNanosecondArray,
    UInt32Array,
};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::ipc::writer::StreamWriter;
use ureq::Agent;

use super::server::Server;

/// Symbols of the rows.
const SYMBOLS: u64 = 100;
/// Rows of an INSERT: it is taken in as a whole, and has to fit into a batch.
const INSERT_ROWS: u64 = 500_000;
/// Requests that are not counted, before each measure of queries.
const WARM_UP: u32 = 50;
/// How long a request may take.
const REQUEST_TIME: Duration = Duration::from_secs(60);
/// The query of one row, and its answer.
const ONE: (&str, &str) = ("SELECT price FROM one", "42.5\n");

/// What is measured, and how long.
#[derive(Debug, Clone, Copy)]
pub(super) struct Measures {
    pub(super) seconds: Duration,
    pub(super) rate: u32,
    pub(super) connections: u32,
    pub(super) rows: u64,
}

/// One figure of a round.
#[derive(Debug, Clone, Copy)]
pub(super) struct Figure {
    pub(super) name: &'static str,
    pub(super) unit: &'static str,
    pub(super) value: f64,
}

impl Measures {
    /// All of them, of a server without tables.
    pub(super) fn take(&self, server: &Server) -> Result<Vec<Figure>, String> {
        let client = Client::of(server);
        for table in ["one", "lines", "arrow"] {
            client.ask(&format!(
                "CREATE TABLE {table} (ts TIMESTAMP(9), sym SYMBOL, price DOUBLE, size BIGINT)"
            ))?;
        }
        client.ask("INSERT INTO one FORMAT CSV\n1,a,42.5,1\n")?;
        let mut figures = self.one_after_another(server)?;
        figures.extend(self.at_a_rate(server)?);
        figures.extend(self.lines(server, &client)?);
        figures.extend(self.arrow(server, &client)?);
        Ok(figures)
    }

    /// One client that asks as soon as it has its answer.
    fn one_after_another(&self, server: &Server) -> Result<Vec<Figure>, String> {
        let client = Client::of(server);
        (0..WARM_UP).try_for_each(|_| client.one())?;
        let (began, cpu_s) = (Instant::now(), server.cpu_s()?);
        let mut latencies = Vec::new();
        while began.elapsed() < self.seconds {
            let asked = Instant::now();
            client.one()?;
            latencies.push(asked.elapsed());
        }
        let cpu_s = server.cpu_s()? - cpu_s;
        let count = latencies.len() as f64;
        latencies.sort_unstable();
        Ok(vec![
            figure("query of one row, CPU of the server", "us", cpu_s / count * 1e6),
            figure("query of one row, median", "us", micros(at(&latencies, 0.5))),
            figure("query of one row, p99", "us", micros(at(&latencies, 0.99))),
        ])
    }

    /// Queries at fixed times, each timed from when it was meant to be sent: a server that is slow for a moment would
    /// else be asked less in that moment.
    fn at_a_rate(&self, server: &Server) -> Result<Vec<Figure>, String> {
        let count = (f64::from(self.rate) * self.seconds.as_secs_f64()).ceil().max(1.0) as u64;
        let clients: Vec<Client> = (0..self.connections).map(|_| Client::of(server)).collect();
        clients.iter().try_for_each(Client::one)?;
        let (next, began) = (AtomicU64::new(0), Instant::now() + Duration::from_millis(20));
        let gap = Duration::from_secs(1).div_f64(f64::from(self.rate));
        let cpu_s = server.cpu_s()?;
        let work = |client: &Client| {
            let mut latencies = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= count {
                    return Ok(latencies);
                }
                let meant = began + gap.mul_f64(number as f64);
                std::thread::sleep(meant.saturating_duration_since(Instant::now()));
                client.one()?;
                latencies.push(meant.elapsed());
            }
        };
        let all: Result<Vec<Vec<Duration>>, String> = std::thread::scope(|scope| {
            let threads: Vec<_> = clients.iter().map(|client| scope.spawn(|| work(client))).collect();
            let joined = threads
                .into_iter()
                .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            joined.collect()
        });
        let cpu_s = server.cpu_s()? - cpu_s;
        let mut latencies = all?.concat();
        latencies.sort_unstable();
        let time_s = began.elapsed().as_secs_f64();
        Ok(vec![
            figure("fixed rate, answered", "queries/s", latencies.len() as f64 / time_s),
            figure("fixed rate, median", "us", micros(at(&latencies, 0.5))),
            figure("fixed rate, p99", "us", micros(at(&latencies, 0.99))),
            figure("fixed rate, highest", "us", micros(at(&latencies, 1.0))),
            figure("fixed rate, CPU of the server", "us/query", cpu_s / latencies.len() as f64 * 1e6),
        ])
    }

    /// Line protocol by one connection, to where it is in the log and synced.
    fn lines(&self, server: &Server, client: &Client) -> Result<Vec<Figure>, String> {
        let text = lines(self.rows);
        let (began, cpu_s) = (Instant::now(), server.cpu_s()?);
        let word =
            send(server.lines, text.as_bytes()).map_err(|error| format!("lines were not sent: {error}"))?;
        let time_s = began.elapsed().as_secs_f64();
        if word != format!("Ok. {} rows\n", self.rows) {
            return Err(format!("the server said of lines: {}", word.trim_end()));
        }
        self.ingested(client, "lines")?;
        let cpu_s = server.cpu_s()? - cpu_s;
        Ok(self.rates(["line protocol, of a core", "line protocol, by the clock"], cpu_s, time_s))
    }

    /// Streams of Arrow, a request each.
    fn arrow(&self, server: &Server, client: &Client) -> Result<Vec<Figure>, String> {
        let failed = |error: ArrowError| format!("cannot make a stream of Arrow: {error}");
        let starts = (0..self.rows).step_by(usize::try_from(INSERT_ROWS).unwrap_or(usize::MAX));
        let stream = |from: u64| stream(from..(from + INSERT_ROWS).min(self.rows));
        let streams = starts.map(stream).collect::<Result<Vec<_>, _>>().map_err(failed)?;
        let (began, cpu_s) = (Instant::now(), server.cpu_s()?);
        for stream in streams {
            client.insert("INSERT INTO arrow FORMAT ArrowStream", &stream)?;
        }
        let time_s = began.elapsed().as_secs_f64();
        self.ingested(client, "arrow")?;
        let cpu_s = server.cpu_s()? - cpu_s;
        Ok(self.rates(["Arrow, of a core", "Arrow, by the clock"], cpu_s, time_s))
    }

    /// Whether all rows are there. It also brings the table up to its log, which is a part of what rows cost.
    fn ingested(&self, client: &Client, table: &str) -> Result<(), String> {
        let found = client.ask(&format!("SELECT count(*) FROM {table}"))?;
        if found.trim_end() == self.rows.to_string() {
            return Ok(());
        }
        Err(format!("of {} rows the table {table} has {}", self.rows, found.trim_end()))
    }

    fn rates(&self, [of_a_core, by_the_clock]: [&'static str; 2], cpu_s: f64, time_s: f64) -> Vec<Figure> {
        let millions = self.rows as f64 / 1e6;
        vec![
            figure(of_a_core, "Mrows/s", millions / cpu_s.max(1e-9)),
            figure(by_the_clock, "Mrows/s", millions / time_s),
        ]
    }
}

fn figure(name: &'static str, unit: &'static str, value: f64) -> Figure {
    Figure { name, unit, value }
}

/// The value below which a part of the sorted ones lies.
fn at(sorted: &[Duration], part: f64) -> Duration {
    let index = (sorted.len() as f64 * part).ceil() as usize;
    sorted.get(index.saturating_sub(1)).copied().unwrap_or_default()
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

/// Lines of a quarter of an hour of a thousand a second.
fn lines(rows: u64) -> String {
    let mut text = String::new();
    for row in 0..rows {
        let (symbol, time) = (row % SYMBOLS, row * 1_000_000);
        text += &format!("lines,sym=s{symbol} price={}.25,size={row}i {time}\n", row % 1000);
    }
    text
}

/// The same rows as a stream of Arrow.
fn stream(rows: std::ops::Range<u64>) -> Result<Vec<u8>, ArrowError> {
    let whole = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    let key = |row: u64| u32::try_from(row % SYMBOLS).unwrap_or_default();
    let names = StringArray::from_iter_values((0..SYMBOLS).map(|symbol| format!("s{symbol}")));
    let symbols =
        DictionaryArray::try_new(UInt32Array::from_iter_values(rows.clone().map(key)), Arc::new(names))?;
    let times = TimestampNanosecondArray::from_iter_values(rows.clone().map(|row| whole(row * 1_000_000)));
    let prices = Float64Array::from_iter_values(rows.clone().map(|row| (row % 1000) as f64 + 0.25));
    let sizes = Int64Array::from_iter_values(rows.map(whole));
    let columns: [(&str, ArrayRef); 4] = [
        ("ts", Arc::new(times)),
        ("sym", Arc::new(symbols)),
        ("price", Arc::new(prices)),
        ("size", Arc::new(sizes)),
    ];
    let batch = RecordBatch::try_from_iter(columns)?;
    let mut bytes = Vec::new();
    let mut writer = StreamWriter::try_new(&mut bytes, &batch.schema())?;
    writer.write(&batch)?;
    writer.finish()?;
    drop(writer);
    Ok(bytes)
}

/// Sends bytes, ends, and reads the last word.
fn send(address: SocketAddr, bytes: &[u8]) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.write_all(bytes)?;
    stream.shutdown(Shutdown::Write)?;
    let mut word = String::new();
    stream.read_to_string(&mut word)?;
    Ok(word)
}

/// A connection of HTTP, kept.
struct Client {
    agent: Agent,
    url: String,
}

impl Client {
    fn of(server: &Server) -> Self {
        let config = Agent::config_builder().timeout_global(Some(REQUEST_TIME)).http_status_as_error(false);
        Self { agent: config.build().into(), url: format!("http://{}/", server.http) }
    }

    fn ask(&self, sql: &str) -> Result<String, String> {
        self.send(self.agent.post(&self.url), sql.as_bytes())
    }

    fn insert(&self, sql: &str, rows: &[u8]) -> Result<String, String> {
        self.send(self.agent.post(&self.url).query("query", sql), rows)
    }

    fn send(
        &self,
        request: ureq::RequestBuilder<ureq::typestate::WithBody>,
        body: &[u8],
    ) -> Result<String, String> {
        let failed = |error: ureq::Error| format!("a request failed: {error}");
        let mut response = request.send(body).map_err(failed)?;
        let text = response.body_mut().read_to_string().map_err(failed)?;
        if response.status().is_success() {
            Ok(text)
        } else {
            Err(format!("the server said: {}", text.trim_end()))
        }
    }

    /// Asks the query of one row.
    fn one(&self) -> Result<(), String> {
        let (sql, wanted) = ONE;
        let answer = self.ask(sql)?;
        if answer == wanted { Ok(()) } else { Err(format!("{sql}: {answer:?}, not {wanted:?}")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_the_sorted_lies_at_or_below() {
        let sorted: Vec<Duration> = (1..=100).map(Duration::from_micros).collect();
        let found = [0.5, 0.99, 1.0].map(|part| at(&sorted, part).as_micros());
        assert_eq!(found, [50, 99, 100]);
        assert_eq!(at(&sorted[..1], 0.99), Duration::from_micros(1));
        assert_eq!(at(&[], 0.5), Duration::ZERO);
    }
}
