//! Lines over bare TCP: line protocol as clients of InfluxDB and QuestDB send it, without a request around it.
//!
//! ```text
//!   socket ── pieces, a few at most ──> a thread of its own: LineDecoder ──> Commit of each table ──> logs
//!      ^ not read while the thread is behind           │ flush after 10 ms
//!      └── a word, and the end <───────────────────────┘ a fault, or the client's end
//! ```
//!
//! Invariants:
//!
//! - **The first fault ends the connection.** The lines before it are taken in, and nothing behind it is. So a page of
//!   a browser that sends HTTP here writes nothing: its first line is none of these.
//! - **A line counts when its line feed came.** Half a number is a number too, so what a cut leaves is left out.
//! - **Who closes its side for writing, and reads, hears when all is in the logs**: `Ok. N rows`.
//! - **Who sends faster than the disk takes is not read.**

use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::{Bytes, BytesMut};
use planish_ingest::{Decoder, IngestError, LineDecoder, Options};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};

use crate::database::{Database, Open};
use crate::door::{Door, Socket, Visitor};
use crate::failure::{Failure, Kind};
use crate::intake::{Commits, target};
use crate::metrics::Metrics;
use crate::stop::Stop;
use crate::tell::{Seldom, tell};
use crate::tokens::{Role, Tokens};

/// Connections at once, each with a thread; further ones wait in the kernel.
pub(crate) const CONNECTIONS_MAX: usize = 128;
/// Bytes that are read at once.
const READ_BYTES: usize = 128 << 10;
/// Pieces that wait for the decoder.
const PIECES_WAITING: usize = 8;
/// How long a row waits for others of its batch: as long as a log gathers batches for one sync.
const FLUSH_TIME: Duration = Duration::from_millis(10);
/// How long after the last byte acknowledgements are waited for, so that rows are counted and a full disk is told.
const SETTLE_TIME: Duration = Duration::from_millis(50);
/// How long the token may take, and its bytes.
const TOKEN_TIME: Duration = Duration::from_secs(10);
const TOKEN_BYTES_MAX: usize = 256;
/// How long the last word may take to be read.
const FAREWELL_TIME: Duration = Duration::from_secs(1);
/// Ends of connections that are told in a second.
const TOLD_MAX: u32 = 10;

/// What all connections share.
#[derive(Debug)]
pub(crate) struct Lines {
    database: Arc<Database>,
    tokens: Option<Arc<Tokens>>,
    metrics: Arc<Metrics>,
    ends: Seldom,
}

/// What the thread of a connection is sent.
enum Piece {
    Bytes(Bytes),
    /// Hand on the rows that are whole.
    Flush,
    /// Wait until they are in the logs.
    Settle,
}

/// What came of a connection.
#[derive(Debug, Clone, Copy, Default)]
struct Done {
    rows: u64,
    /// Of a line whose end did not come.
    begun_bytes: usize,
}

impl Lines {
    pub(crate) fn new(
        database: Arc<Database>,
        tokens: Option<Arc<Tokens>>,
        metrics: Arc<Metrics>,
    ) -> Arc<Self> {
        Arc::new(Self { database, tokens, metrics, ends: Seldom::new(TOLD_MAX, Duration::from_secs(1)) })
    }
}

/// Takes lines in until the server is to end; then what was read is taken in yet, for which there is `grace`. Says
/// whether that was enough.
pub(crate) async fn serve(door: Door, lines: Arc<Lines>, mut stop: Stop, grace: Duration) -> bool {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            visitor = door.next() => {
                connections.spawn(connection(visitor, Arc::clone(&lines), stop.clone()));
            }
            Some(_) = connections.join_next() => {}
            () = stop.come() => break,
        }
    }
    drop(door);
    timeout(grace, async { while connections.join_next().await.is_some() {} }).await.is_ok()
}

async fn connection(visitor: Visitor, lines: Arc<Lines>, stop: Stop) {
    let address = visitor.address;
    let Some((mut stream, _place)) = visitor.socket().await else {
        lines.metrics.tls_failures.inc();
        return;
    };
    lines.metrics.line_connections.inc();
    let done = converse(&mut stream, &lines, stop).await;
    let word = match done {
        Ok(rows) => format!("Ok. {rows} rows\n"),
        Err(failure) => {
            lines.metrics.line_failures.inc();
            lines.ends.tell(&format!("lines of {address} end: {failure}"), tell);
            failure.line()
        }
    };
    let _ = timeout(FAREWELL_TIME, farewell(&mut stream, &word)).await;
    lines.metrics.line_connections.dec();
}

/// Says the last word, and reads on for a while: bytes that were not read would make the kernel break the connection
/// before the client has read that word.
async fn farewell(stream: &mut impl Socket, word: &str) -> io::Result<()> {
    stream.write_all(word.as_bytes()).await?;
    stream.shutdown().await?;
    let mut rest = vec![0; 16 << 10];
    while stream.read(&mut rest).await? > 0 {}
    Ok(())
}

/// Takes in what comes, to its end; says how many rows are in the logs.
async fn converse(stream: &mut impl Socket, lines: &Arc<Lines>, stop: Stop) -> Result<u64, Failure> {
    let mut buffer = BytesMut::new();
    if let Some(tokens) = &lines.tokens {
        let line = timeout(TOKEN_TIME, first_line(stream, &mut buffer)).await;
        let line = line.map_err(|_| Failure::new(Kind::Timeout, "no token came"))??;
        may_write(tokens, &line)?;
    }
    let (send, receive) = mpsc::channel(PIECES_WAITING);
    let taker = Taker::new(Arc::clone(lines));
    // Decoders and tables block their thread.
    let work = tokio::task::spawn_blocking(move || taker.run(receive));
    let passed = pass_on(stream, buffer, send, stop).await;
    let done = work.await.map_err(|_| Failure::new(Kind::Internal, "taking in the lines broke off"))??;
    passed?;
    match done.begun_bytes {
        0 => Ok(done.rows),
        bytes => {
            let text = format!("the last line has no end, and its {bytes} bytes are left out");
            Err(Failure::new(Kind::Gone, text))
        }
    }
}

/// The first line, without its end; what came behind it stays in the buffer.
async fn first_line(stream: &mut (impl AsyncRead + Unpin), buffer: &mut BytesMut) -> Result<Bytes, Failure> {
    loop {
        if let Some(end) = buffer.iter().position(|&byte| byte == b'\n') {
            let mut line = buffer.split_to(end + 1);
            line.truncate(line.trim_ascii_end().len());
            return Ok(line.freeze());
        }
        if buffer.len() > TOKEN_BYTES_MAX {
            return Err(Failure::new(Kind::Unauthenticated, "the first line is no token"));
        }
        buffer.reserve(TOKEN_BYTES_MAX);
        match stream.read_buf(buffer).await {
            Ok(1..) => {}
            Ok(0) => return Err(Failure::new(Kind::Gone, "the connection ended before its token came")),
            Err(error) => return Err(broken(&error)),
        }
    }
}

fn may_write(tokens: &Tokens, token: &[u8]) -> Result<(), Failure> {
    match tokens.role_of(token) {
        Some(Role::Write) => Ok(()),
        Some(Role::Read) => Err(Failure::new(Kind::ReadOnly, "this token may ask, and not write")),
        None => Err(Failure::new(Kind::Unauthenticated, "the first line is no token that is known")),
    }
}

fn broken(error: &io::Error) -> Failure {
    Failure::new(Kind::Gone, format!("the connection broke: {error}"))
}

/// Passes on pieces as they come, and when it is time to hand on rows. That nobody takes them any more is told by who
/// took them.
async fn pass_on(
    stream: &mut (impl AsyncRead + Unpin),
    mut buffer: BytesMut,
    send: mpsc::Sender<Piece>,
    mut stop: Stop,
) -> Result<(), Failure> {
    let (mut flush_at, mut settle_at) = (None, None);
    let mut is_read = !buffer.is_empty();
    loop {
        let piece = if std::mem::take(&mut is_read) {
            let now = Instant::now();
            flush_at.get_or_insert(now + FLUSH_TIME);
            settle_at = Some(now + SETTLE_TIME);
            Piece::Bytes(buffer.split().freeze())
        } else {
            buffer.reserve(READ_BYTES);
            let wake_at: Option<Instant> = flush_at.or(settle_at);
            tokio::select! {
                read = stream.read_buf(&mut buffer) => match read {
                    Ok(0) => return Ok(()),
                    Ok(_) => {
                        is_read = true;
                        continue;
                    }
                    Err(error) => return Err(broken(&error)),
                },
                () = sleep_until(wake_at.unwrap_or_else(Instant::now)), if wake_at.is_some() => {
                    if flush_at.take().is_some() {
                        Piece::Flush
                    } else {
                        settle_at = None;
                        Piece::Settle
                    }
                }
                () = stop.come() => {
                    let text = "the server ends; what it had read is in the logs, and nothing behind it";
                    return Err(Failure::new(Kind::Gone, text));
                }
                () = send.closed() => return Ok(()),
            }
        };
        if send.send(piece).await.is_err() {
            return Ok(());
        }
    }
}

/// The thread of a connection.
struct Taker {
    lines: Arc<Lines>,
    decoder: LineDecoder,
    rows: u64,
}

/// Why the thread pauses.
enum Pause {
    /// Tables are there that were not.
    Tables,
    End,
}

impl Taker {
    fn new(lines: Arc<Lines>) -> Self {
        let decoder = LineDecoder::new(Vec::new(), Options::default()).until_a_fault();
        Self { lines, decoder, rows: 0 }
    }

    /// Takes in all that comes, and returns when it is in the logs.
    fn run(mut self, mut receive: mpsc::Receiver<Piece>) -> Result<Done, Failure> {
        let (mut tables, mut next) = (Vec::new(), None);
        loop {
            self.know(&mut tables);
            let mut commits = Commits::of(&tables);
            let mut counted = 0;
            let paused = loop {
                let Some(piece) = next.take().or_else(|| receive.blocking_recv()) else {
                    break Ok(Pause::End);
                };
                if self.lines.database.count() > tables.len() {
                    next = Some(piece);
                    break Ok(Pause::Tables);
                }
                let taken = self.piece(piece, &mut commits);
                self.count(&commits, &mut counted);
                if let Err(error) = taken {
                    break Err(error);
                }
            };
            // What came before a fault is handed on as well.
            let flushed = self.decoder.flush(&mut commits);
            let settled = commits.settle();
            self.count(&commits, &mut counted);
            match paused.and_then(|pause| flushed.and(settled).map(|()| pause)) {
                Ok(Pause::Tables) => {}
                Ok(Pause::End) => {
                    return Ok(Done { rows: self.rows, begun_bytes: self.decoder.begun_bytes() });
                }
                Err(error) => {
                    let Failure { kind, text } = error.into();
                    return Err(Failure { kind, text: format!("{text}; {} rows were taken in", self.rows) });
                }
            }
        }
    }

    /// Gets to know the tables that there are now. Those that it knows keep their places.
    fn know(&mut self, tables: &mut Vec<Arc<Open>>) {
        for table in self.lines.database.tables() {
            if !tables.iter().any(|known| Arc::ptr_eq(known, &table)) {
                self.decoder.add(target(&table));
                tables.push(table);
            }
        }
    }

    fn piece(&mut self, piece: Piece, commits: &mut Commits<'_>) -> Result<(), IngestError> {
        match piece {
            Piece::Bytes(bytes) => {
                self.lines.metrics.received_bytes.inc_by(bytes.len() as u64);
                let arrived = SystemTime::now().duration_since(UNIX_EPOCH).ok();
                let arrived = arrived.and_then(|since| i64::try_from(since.as_nanos()).ok());
                self.decoder.arrived(arrived);
                self.decoder.feed(&bytes, commits)
            }
            Piece::Flush => self.decoder.flush(commits),
            Piece::Settle => commits.settle(),
        }
    }

    /// Counts what was acknowledged since the last time.
    fn count(&mut self, commits: &Commits<'_>, counted: &mut u64) {
        let taken = commits.taken();
        let rows = taken.rows + taken.known;
        self.lines.metrics.inserted_rows.inc_by(rows - *counted);
        self.rows += rows - *counted;
        *counted = rows;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait<T>(work: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
    }

    #[test]
    fn who_sends_faster_than_rows_are_taken_in_is_not_read() {
        wait(async {
            let socket_bytes = 1 << 10;
            let (mut client, mut server) = tokio::io::duplex(socket_bytes);
            let (send, mut receive) = mpsc::channel(PIECES_WAITING);
            let stop = Stop::listen().unwrap();
            let work = tokio::spawn(async move { pass_on(&mut server, BytesMut::new(), send, stop).await });
            // Nobody takes a piece.
            let mut sent = 0;
            while timeout(Duration::from_millis(100), client.write_all(&[b'x'; 512])).await.is_ok() {
                sent += 512;
            }
            // What waits, what is being handed on, and what the socket holds, and a piece that was begun.
            assert!(sent <= (PIECES_WAITING + 2) * socket_bytes + 512, "{sent}");
            // It goes on where the thread does, and all of it comes.
            let taken = tokio::spawn(async move {
                let mut bytes = 0;
                while let Some(piece) = receive.recv().await {
                    if let Piece::Bytes(piece) = piece {
                        bytes += piece.len();
                    }
                }
                bytes
            });
            client.write_all(&[b'x'; 100_000]).await.unwrap();
            drop(client);
            assert_eq!(work.await.unwrap(), Ok(()));
            assert!((sent + 100_000..sent + 100_512).contains(&taken.await.unwrap()));
        });
    }

    #[test]
    fn rows_wait_for_others_and_not_for_long() {
        wait(async {
            let (mut client, mut server) = tokio::io::duplex(1 << 10);
            let (send, mut receive) = mpsc::channel(PIECES_WAITING);
            let stop = Stop::listen().unwrap();
            let work = tokio::spawn(async move { pass_on(&mut server, BytesMut::new(), send, stop).await });
            let began = Instant::now();
            // Always more, and never a pause of the time that rows wait.
            let sender = tokio::spawn(async move {
                for _ in 0..40 {
                    client.write_all(b"x").await.unwrap();
                    tokio::time::sleep(Duration::from_millis(2)).await;
                }
                tokio::time::sleep(4 * SETTLE_TIME).await;
            });
            let mut came = String::new();
            while let Some(piece) = receive.recv().await {
                came.push(match piece {
                    Piece::Bytes(_) => 'b',
                    Piece::Flush => 'f',
                    Piece::Settle => 's',
                });
            }
            sender.await.unwrap();
            assert_eq!(work.await.unwrap(), Ok(()));
            let flushes = came.matches('f').count();
            assert!(flushes >= 2 && came.ends_with("fs"), "{came} in {:?}", began.elapsed());
            assert_eq!(came.matches('b').count().min(2), 2, "{came}");
        });
    }
}
