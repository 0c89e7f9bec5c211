//! Rows that come over HTTP: line protocol at `/write`, and what follows an INSERT.
//!
//! Decoders and tables block their thread, so each input has one of its own, which is fed the pieces of the body as
//! they come. It hears of the end of the body only where the body has ended well: one that was cut off is left, and
//! since an input is taken in as a whole unless something else was asked for, nothing of it is there.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use hyper::{Response, StatusCode};
use planish_ingest::Options;
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::database::Open;
use crate::failure::{Failure, Kind};
use crate::http::answer::{Answer, TEXT, with};
use crate::http::body::Pieces;
use crate::http::route::Head;
use crate::http::{State, guard, options, params};
use crate::intake::{Done, Input, Intake};

/// Pieces that wait for the decoder.
const PIECES_WAITING: usize = 8;

/// Rows that are to be taken in.
pub(crate) struct Rows {
    pub(crate) tables: Vec<Arc<Open>>,
    pub(crate) input: Input,
    pub(crate) options: Options,
    pub(crate) is_packed: bool,
    /// When they came, for those that have no time of their own: nanoseconds since 1970.
    pub(crate) arrived: Option<i64>,
}

/// What the thread of an input is sent.
enum Piece {
    Bytes(Bytes),
    /// All of them came.
    End,
}

/// Answers a request at `/write`.
pub(crate) async fn answer(
    state: &Arc<State>,
    head: &Head,
    pieces: Pieces,
) -> Result<Response<Answer>, Failure> {
    let began = Instant::now();
    guard::may_write(guard::role(state.tokens.as_deref(), &head.headers)?)?;
    state.bounds.duty.takes_rows()?;
    let (unit, faults) = params::of_write(&head.query)?;
    let arrived = SystemTime::now().duration_since(UNIX_EPOCH).ok();
    let rows = Rows {
        tables: state.database.tables(),
        input: Input::Line,
        options: options(faults, unit),
        is_packed: head.is_packed()?,
        arrived: arrived.and_then(|since| i64::try_from(since.as_nanos()).ok()),
    };
    let done = take_in(state, rows, Bytes::new(), pieces, began).await?;
    match done.outcome.faults.first() {
        None => Ok(with(StatusCode::NO_CONTENT, TEXT, Answer::Whole(Bytes::new()))),
        Some(first) => {
            let (taken, faulty) = (done.taken.rows + done.taken.known, done.outcome.faulty);
            let text = format!("{taken} rows were taken in, {faulty} were left out; {first}");
            Err(Failure::new(Kind::IncorrectData, text))
        }
    }
}

/// Takes in an input, and returns when its rows are in the logs of their tables.
///
/// # Errors
/// What is wrong with it. Unless faults are left out, nothing of it was taken in then.
pub(crate) async fn take_in(
    state: &Arc<State>,
    rows: Rows,
    first: Bytes,
    pieces: Pieces,
    began: Instant,
) -> Result<Done, Failure> {
    let place = state.inserts.enter(began + state.bounds.query_time).await?;
    let (send, receive) = mpsc::channel(PIECES_WAITING);
    let work = tokio::task::spawn_blocking(move || {
        // Given back when the work is done, whether or not somebody waits for it.
        let _place = place;
        run(rows, receive)
    });
    let fed = feed(state, first, pieces, send).await;
    let done = work.await.map_err(|_| Failure::new(Kind::Internal, "taking in the rows broke off"))?;
    // What kept bytes from coming tells more than that they did not come.
    if let (Err(failure), Err(_)) = (fed, &done) {
        return Err(failure);
    }
    let done = done?;
    state.metrics.inserted_rows.inc_by(done.taken.rows);
    Ok(done)
}

fn run(rows: Rows, mut receive: mpsc::Receiver<Piece>) -> Result<Done, Failure> {
    let Rows { tables, input, options, is_packed, arrived } = rows;
    let mut intake = Intake::new(&tables, &input, options, is_packed);
    if let Some(ns) = arrived {
        intake.arrived(ns);
    }
    while let Some(piece) = receive.blocking_recv() {
        match piece {
            Piece::Bytes(bytes) => intake.feed(&bytes)?,
            Piece::End => return intake.finish(),
        }
    }
    Err(Failure::new(Kind::Gone, "the input ended in the middle"))
}

/// Passes on the pieces of a body. That nobody takes them any more is told by who took them.
async fn feed(
    state: &State,
    first: Bytes,
    mut pieces: Pieces,
    send: mpsc::Sender<Piece>,
) -> Result<(), Failure> {
    let mut next = Some(first).filter(|first| !first.is_empty());
    loop {
        let bytes = match next.take() {
            Some(bytes) => bytes,
            None => match pieces.next().await? {
                Some(bytes) => bytes,
                None => break,
            },
        };
        state.metrics.received_bytes.inc_by(bytes.len() as u64);
        if send.send(Piece::Bytes(bytes)).await.is_err() {
            return Ok(());
        }
    }
    let _ = send.send(Piece::End).await;
    Ok(())
}
