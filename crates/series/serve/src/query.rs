//! A query from text to the bytes of its answer, as they come.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures::StreamExt;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};

use crate::database::Database;
use crate::failure::{Failure, Kind};
use crate::format::Format;
use crate::statement::{WORDS_MAX, is_too_deep};

/// Rows that are written at once: between two of these others get the thread, and nobody holds more bytes.
const ROWS_AT_ONCE: usize = 8192;
/// Bytes of a chunk, and more where that many rows have more.
const CHUNK_BYTES: usize = 64 << 10;
/// Chunks that wait for who reads them.
const CHUNKS_WAITING: usize = 4;

/// A query.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) sql: String,
    pub(crate) format: Format,
    /// By gzip.
    pub(crate) is_packed: bool,
}

/// What a query may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// When it ends.
    pub(crate) until: Instant,
    /// How long that is in all, for the message.
    pub(crate) time: Duration,
    pub(crate) memory_bytes: usize,
}

impl Limits {
    pub(crate) fn timeout(&self) -> Failure {
        let text = format!("the query took longer than its {:.3} s", self.time.as_secs_f64());
        Failure::new(Kind::Timeout, text)
    }
}

/// A piece of an answer.
#[derive(Debug)]
pub(crate) enum Part {
    Chunk(Bytes),
    /// All chunks came. An answer without this one is not whole.
    End {
        rows: u64,
    },
    Failed(Failure),
}

/// A query at work. It ends when this is dropped, at its next batch.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) parts: mpsc::Receiver<Part>,
    task: JoinHandle<()>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Starts a query on the threads of queries. The permit is given back when it has really ended.
pub(crate) fn start(
    threads: &Handle,
    database: Arc<Database>,
    asked: Asked,
    limits: Limits,
    permit: Option<OwnedSemaphorePermit>,
) -> Running {
    let (send, parts) = mpsc::channel(CHUNKS_WAITING);
    let task = threads.spawn(async move {
        let _permit = permit;
        let work = async {
            let rows = answer(&database, &asked, limits.memory_bytes, &send).await?;
            send.send(Part::End { rows }).await.map_err(|_| gone())
        };
        let failure = match timeout_at(limits.until, work).await {
            Ok(Ok(())) => return,
            Ok(Err(failure)) => failure,
            Err(_) => limits.timeout(),
        };
        // Who does not read has no place for it, and finds the answer without its end.
        let _ = send.try_send(Part::Failed(failure));
    });
    Running { parts, task }
}

fn gone() -> Failure {
    Failure::new(Kind::Gone, "whoever asked is gone")
}

/// Sends the chunks of an answer; says how many rows there were.
async fn answer(
    database: &Database,
    asked: &Asked,
    memory_bytes: usize,
    send: &mpsc::Sender<Part>,
) -> Result<u64, Failure> {
    if is_too_deep(&asked.sql) {
        let text = format!("a query of more than {WORDS_MAX} words and marks, values of lists aside");
        return Err(Failure::new(Kind::TooLarge, text));
    }
    let mut stream = database.engine().stream_within(&asked.sql, memory_bytes).await?;
    let pack = asked.is_packed.then(|| GzEncoder::new(Vec::new(), Compression::fast()));
    let mut chunks = Chunks { send, plain: Vec::new(), pack };
    let (mut encoder, mut rows) = (asked.format.encoder(), 0_u64);
    encoder.begin(&stream.schema(), &mut chunks.plain)?;
    while let Some(batch) = stream.next().await {
        let batch = batch?;
        rows += batch.num_rows() as u64;
        for from in (0..batch.num_rows()).step_by(ROWS_AT_ONCE) {
            let count = ROWS_AT_ONCE.min(batch.num_rows() - from);
            encoder.rows(&batch.slice(from, count), &mut chunks.plain)?;
            chunks.pass(false).await?;
        }
    }
    encoder.end(&mut chunks.plain)?;
    chunks.pass(true).await?;
    Ok(rows)
}

/// Bytes of an answer on their way, packed if that was asked for.
struct Chunks<'s> {
    send: &'s mpsc::Sender<Part>,
    plain: Vec<u8>,
    pack: Option<GzEncoder<Vec<u8>>>,
}

impl Chunks<'_> {
    /// Sends what is there if it is a chunk, and in any case what is the last.
    async fn pass(&mut self, is_last: bool) -> Result<(), Failure> {
        if self.plain.len() < CHUNK_BYTES && !is_last {
            return Ok(());
        }
        let bytes = match &mut self.pack {
            None => std::mem::take(&mut self.plain),
            Some(pack) => {
                let written = pack.write_all(&self.plain);
                let written = written.and_then(|()| if is_last { pack.try_finish() } else { Ok(()) });
                written.map_err(|error| Failure::new(Kind::Internal, format!("cannot pack: {error}")))?;
                self.plain.clear();
                std::mem::take(pack.get_mut())
            }
        };
        if bytes.is_empty() {
            return Ok(());
        }
        self.send.send(Part::Chunk(Bytes::from(bytes))).await.map_err(|_| gone())
    }
}
