//! Answers: whole ones, and ones that come as a query goes on.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use hyper::{Response, StatusCode};
use tokio::time::Sleep;

use crate::failure::{Failure, Kind};
use crate::http::State;
use crate::query::{Part, Running};

pub(crate) const TEXT: &str = "text/plain; charset=UTF-8";

/// The bytes of an answer.
pub(crate) enum Answer {
    Whole(Bytes),
    Stream(Box<Stream>),
}

/// Of a query that is still at work.
pub(crate) struct Stream {
    /// What came before it was known that more would.
    ready: VecDeque<Bytes>,
    running: Running,
    /// When nothing more is waited for, though the query does not end.
    late: Pin<Box<Sleep>>,
    watch: Watch,
    is_done: bool,
}

/// Counts a query when its answer is done, or cut.
pub(crate) struct Watch {
    state: Arc<State>,
    began: Instant,
    is_whole: bool,
}

impl Watch {
    pub(crate) fn new(state: Arc<State>, began: Instant) -> Self {
        Self { state, began, is_whole: false }
    }

    pub(crate) fn done(&mut self, rows: u64) {
        self.is_whole = true;
        self.state.metrics.query_rows.inc_by(rows);
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.state.metrics.query_seconds.observe(self.began.elapsed().as_secs_f64());
        if !self.is_whole {
            self.state.metrics.queries_cut.inc();
        }
    }
}

impl Stream {
    pub(crate) fn new(ready: VecDeque<Bytes>, running: Running, late: Sleep, watch: Watch) -> Self {
        Self { ready, running, late: Box::pin(late), watch, is_done: false }
    }

    /// An error cuts the connection: the client finds no end of the answer.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        if let Some(chunk) = self.ready.pop_front() {
            return Poll::Ready(Some(Ok(chunk)));
        }
        if self.is_done {
            return Poll::Ready(None);
        }
        let cut = |text: String| Poll::Ready(Some(Err(io::Error::other(text))));
        match self.running.parts.poll_recv(context) {
            Poll::Ready(Some(Part::Chunk(chunk))) => Poll::Ready(Some(Ok(chunk))),
            Poll::Ready(Some(Part::End { rows })) => {
                self.is_done = true;
                self.watch.done(rows);
                Poll::Ready(None)
            }
            Poll::Ready(Some(Part::Failed(failure))) => cut(failure.text),
            Poll::Ready(None) => cut("the query ended in the middle of its answer".to_owned()),
            Poll::Pending => match self.late.as_mut().poll(context) {
                Poll::Ready(()) => cut("the query took too long".to_owned()),
                Poll::Pending => Poll::Pending,
            },
        }
    }
}

impl Body for Answer {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        match self.get_mut() {
            Self::Whole(bytes) => {
                let bytes = std::mem::take(bytes);
                Poll::Ready((!bytes.is_empty()).then(|| Ok(Frame::data(bytes))))
            }
            Self::Stream(stream) => stream.poll(context).map(|part| part.map(|part| part.map(Frame::data))),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(bytes) if bytes.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Self::Stream(_) => SizeHint::default(),
        }
    }
}

/// A whole answer that went well.
pub(crate) fn whole(content_type: &'static str, bytes: impl Into<Bytes>) -> Response<Answer> {
    with(StatusCode::OK, content_type, Answer::Whole(bytes.into()))
}

/// One of a type.
pub(crate) fn with(status: StatusCode, content_type: &'static str, answer: Answer) -> Response<Answer> {
    let mut response = Response::new(answer);
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

/// That of a failure: a line of text.
pub(crate) fn failed(failure: &Failure) -> Response<Answer> {
    told(failure, TEXT, failure.line())
}

/// That of a failure for clients of InfluxDB, of either version.
pub(crate) fn failed_as_json(failure: &Failure) -> Response<Answer> {
    let (_, _, word) = failure.kind.told();
    let text = &failure.text;
    let json = serde_json::json!({ "code": word, "message": text, "error": text });
    told(failure, "application/json", format!("{json}\n"))
}

fn told(failure: &Failure, content_type: &'static str, text: String) -> Response<Answer> {
    let (status, code, _) = failure.kind.told();
    let mut response = with(status, content_type, Answer::Whole(text.into()));
    let headers = response.headers_mut();
    headers.insert("x-clickhouse-exception-code", HeaderValue::from(code));
    if failure.kind.is_for_now() {
        headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
    }
    match failure.kind {
        Kind::Unauthenticated => {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Basic realm=\"planish-series\""));
        }
        Kind::Method => {
            headers.insert(ALLOW, HeaderValue::from_static("GET, POST"));
        }
        _ => {}
    }
    response
}
