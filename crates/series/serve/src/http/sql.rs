//! Requests at `/`: a query, an INSERT with its rows, a CREATE of a table or view. The text stands in the address, in
//! the body, or begins in the one and goes on in the other.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use hyper::header::{CONTENT_ENCODING, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};
use planish_ingest::{Faults, Options, Unit};
use tokio::time::{Instant, sleep_until, timeout_at};

use crate::ddl::{create_table, is_of_view};
use crate::failure::{Failure, Kind};
use crate::format::{Format, Heading};
use crate::http::answer::{Answer, Stream, TEXT, Watch, whole, with};
use crate::http::body::Pieces;
use crate::http::params::Params;
use crate::http::route::Head;
use crate::http::write::{Rows, take_in};
use crate::http::{State, guard};
use crate::intake::Input;
use crate::parameters::filled;
use crate::query::{Asked, Limits, Part, start};
use crate::statement::{self, Insert, first_word, without_format};

/// Bytes of a text that is no INSERT.
const QUERY_BYTES_MAX: usize = 1 << 20;
/// Bytes of an answer that are gathered before its status is sent: what fails within them has the status of a failure.
const READY_BYTES: usize = 1 << 20;
/// How much longer than its own time a query is waited for, which tells by itself that it took too long.
const GRACE: Duration = Duration::from_millis(100);
/// What names a format, in requests and answers.
const FORMAT: HeaderName = HeaderName::from_static("x-clickhouse-format");
const SUMMARY: HeaderName = HeaderName::from_static("x-clickhouse-summary");

/// Answers; `kind` says what it was.
pub(crate) async fn answer(
    state: &Arc<State>,
    head: &Head,
    mut pieces: Pieces,
    kind: &mut &'static str,
) -> Result<Response<Answer>, Failure> {
    let began = Instant::now();
    let role = guard::role(state.tokens.as_deref(), &head.headers)?;
    let params = Params::of(&head.query)?;
    let is_packed = head.is_packed()?;
    if params.query.is_empty() && !head.is_post {
        return Ok(whole(TEXT, "Ok.\n"));
    }
    let text = match gather(&params.query, head.is_post, is_packed, &mut pieces).await? {
        Gathered::Text(text) => text,
        Gathered::Rows(insert, first) => {
            *kind = "insert";
            is_for_post(head)?;
            guard::may_write(role)?;
            state.bounds.duty.takes_rows()?;
            return take(state, (insert, &params, is_packed), first, pieces, began).await;
        }
    };
    let text = filled(&text, &params.values)?;
    let (sql, format) = without_format(&text);
    match first_word(sql).as_str() {
        word @ ("CREATE" | "DROP") if word == "CREATE" || is_of_view(sql) => {
            *kind = if word == "CREATE" { "create" } else { "drop" };
            is_for_post(head)?;
            guard::may_write(role)?;
            state.bounds.duty.takes_rows()?;
            change(state, sql.to_owned()).await
        }
        _ => query(state, head, (sql, format), &params, began).await,
    }
}

/// What is asked by GET changes nothing: links, and pages that are loaded ahead, are of that kind.
fn is_for_post(head: &Head) -> Result<(), Failure> {
    match head.is_post {
        true => Ok(()),
        false => Err(Failure::new(Kind::ReadOnly, "a GET changes nothing; send it by POST")),
    }
}

/// The text of a request, or the head of an INSERT and the first of its rows.
enum Gathered {
    Text(String),
    Rows(Insert, Bytes),
}

async fn gather(
    query: &str,
    is_post: bool,
    is_packed: bool,
    pieces: &mut Pieces,
) -> Result<Gathered, Failure> {
    let syntax = |what| Failure::new(Kind::Syntax, what);
    let mut text = BytesMut::from(query.as_bytes());
    if !query.is_empty() {
        if let statement::Head::Insert(insert, at) = statement::head(&text, true).map_err(syntax)? {
            let mut rows = text.freeze().split_off(at);
            if is_packed && !rows.is_empty() {
                let what = "rows in the address, and packed ones in the body";
                return Err(Failure::new(Kind::BadArguments, what));
            }
            if rows.iter().all(u8::is_ascii_whitespace) {
                rows.clear();
            }
            return Ok(Gathered::Rows(insert, rows));
        }
        text.extend_from_slice(b"\n");
    }
    if is_packed {
        let what = "a packed body has rows; their INSERT stands in the address";
        return Err(Failure::new(Kind::BadArguments, what));
    }
    let mut is_all = !is_post;
    loop {
        match statement::head(&text, is_all).map_err(syntax)? {
            statement::Head::Insert(insert, at) => {
                return Ok(Gathered::Rows(insert, text.freeze().split_off(at)));
            }
            statement::Head::Text if is_all => break,
            statement::Head::Text | statement::Head::More => {}
        }
        if text.len() > QUERY_BYTES_MAX {
            let what = format!("a query of more than {QUERY_BYTES_MAX} bytes");
            return Err(Failure::new(Kind::TooLarge, what));
        }
        match pieces.next().await? {
            Some(bytes) => text.extend_from_slice(&bytes),
            None => is_all = true,
        }
    }
    let text = String::from_utf8(text.into()).map_err(|_| syntax("the query is not UTF-8".to_owned()))?;
    Ok(Gathered::Text(text))
}

async fn change(state: &Arc<State>, sql: String) -> Result<Response<Answer>, Failure> {
    let database = Arc::clone(&state.database);
    // Waits for the disk.
    let made = tokio::task::spawn_blocking(move || match is_of_view(&sql) {
        true => database.change_view(&sql),
        false => database.create(create_table(&sql).map_err(|what| Failure::new(Kind::Syntax, what))?),
    });
    made.await.map_err(|_| Failure::new(Kind::Internal, "making it broke off"))??;
    Ok(whole(TEXT, Bytes::new()))
}

async fn take(
    state: &Arc<State>,
    (insert, params, is_packed): (Insert, &Params, bool),
    first: Bytes,
    pieces: Pieces,
    began: Instant,
) -> Result<Response<Answer>, Failure> {
    let table = state.database.table(&insert.table)?;
    let is_csv = insert.format.eq_ignore_ascii_case("CSV");
    if insert.columns.is_some() && !is_csv {
        let text = format!("a list of columns is for CSV; rows of {} name them", insert.format);
        return Err(Failure::new(Kind::NotImplemented, text));
    }
    let all = || table.durable.schema().columns().iter().map(|column| column.name.clone()).collect();
    let input = Input::named(&insert.format, insert.columns.unwrap_or_else(all))?;
    let options = options(params.faults, Unit::Nanoseconds);
    let rows = Rows { tables: vec![table], input, options, is_packed, arrived: None };
    let done = take_in(state, rows, first, pieces, began).await?;
    let mut response = whole(TEXT, Bytes::new());
    let (written, left_out) = (done.taken.rows + done.taken.known, done.outcome.faulty);
    // ClickHouse writes numbers as texts here.
    let summary = serde_json::json!({
        "written_rows": written.to_string(), "left_out_rows": left_out.to_string(),
    });
    if let Ok(summary) = HeaderValue::from_str(&summary.to_string()) {
        response.headers_mut().insert(SUMMARY, summary);
    }
    Ok(response)
}

/// How an input is taken in. As a whole or not at all it has to fit into one batch, so batches are large.
pub(crate) fn options(faults: Faults, unit: Unit) -> Options {
    let (rows_max, batch_bytes_max) = match faults {
        Faults::Refuse => (1 << 20, 64 << 20),
        Faults::LeaveOut => (Options::default().rows_max, Options::default().batch_bytes_max),
    };
    Options { faults, unit, rows_max, batch_bytes_max, ..Options::default() }
}

async fn query(
    state: &Arc<State>,
    head: &Head,
    (sql, format): (&str, Option<String>),
    params: &Params,
    began: Instant,
) -> Result<Response<Answer>, Failure> {
    if sql.trim().is_empty() {
        return Err(Failure::new(Kind::Syntax, "the query is empty"));
    }
    state.bounds.duty.answers()?;
    let of_header = || head.headers.get(FORMAT).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let format = format.or_else(of_header).or_else(|| params.format.clone());
    let format = format.map_or(Ok(Format::TabSeparated(Heading::None)), |name| Format::named(&name))?;
    let bounds = &state.bounds;
    let time = params.time.unwrap_or(Duration::MAX).min(bounds.query_time);
    let memory_bytes = params.memory_bytes.unwrap_or(usize::MAX).min(bounds.query_memory_bytes);
    let limits = Limits { until: began + time, time, memory_bytes };
    let place = state.queries.enter(limits.until).await?;
    let mut watch = Watch::new(Arc::clone(state), began.into_std());
    let is_packed = params.is_compressed && head.takes_packed();
    let asked = Asked { sql: sql.to_owned(), format, is_packed };
    let mut running = start(&state.threads, Arc::clone(&state.database), asked, limits, Some(place));
    let (mut ready, mut bytes) = (VecDeque::new(), 0);
    loop {
        match timeout_at(limits.until + GRACE, running.parts.recv()).await {
            Err(_) => return Err(limits.timeout()),
            Ok(None) => return Err(Failure::new(Kind::Internal, "the query broke off")),
            Ok(Some(Part::Failed(failure))) => return Err(failure),
            Ok(Some(Part::Chunk(chunk))) => {
                bytes += chunk.len();
                ready.push_back(chunk);
            }
            Ok(Some(Part::End { rows })) => {
                watch.done(rows);
                return Ok(in_format(format, is_packed, Answer::Whole(joined(ready, bytes))));
            }
        }
        if bytes > READY_BYTES {
            let late = sleep_until(limits.until + GRACE);
            let stream = Stream::new(ready, running, late, watch);
            return Ok(in_format(format, is_packed, Answer::Stream(Box::new(stream))));
        }
    }
}

fn in_format(format: Format, is_packed: bool, answer: Answer) -> Response<Answer> {
    let mut response = with(StatusCode::OK, format.content_type(), answer);
    if is_packed {
        response.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    response.headers_mut().insert(FORMAT, HeaderValue::from_static(format.name()));
    response
}

fn joined(mut chunks: VecDeque<Bytes>, bytes: usize) -> Bytes {
    if chunks.len() == 1 {
        return chunks.pop_front().unwrap_or_default();
    }
    let mut all = BytesMut::with_capacity(bytes);
    chunks.iter().for_each(|chunk| all.extend_from_slice(chunk));
    all.freeze()
}
