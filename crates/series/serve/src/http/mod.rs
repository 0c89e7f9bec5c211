//! The server: connections of HTTP/1, each request an answer.
//!
//! ```text
//!   listener ──> connection ──> route ──> guard ──> sql: query, INSERT, CREATE TABLE
//!                (threads of HTTP)  │               write: line protocol
//!                                   └─ ping, metrics
//!   queries run on threads of their own, so that a server at work answers a ping, and tells a timeout in time
//! ```

mod admission;
mod answer;
mod body;
mod guard;
mod params;
mod route;
mod sql;
mod write;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use tokio::runtime::Handle;

use crate::database::Database;
use crate::door::{Door, Visitor};
use crate::duty::Duty;
use crate::metrics::Metrics;
use crate::stop::Stop;
use crate::tokens::Tokens;
use admission::Admission;
pub(crate) use sql::options;

/// Connections at once; further ones wait in the kernel.
pub(crate) const CONNECTIONS_MAX: usize = 1024;
/// Bytes of the head of a request, and of what is read at once.
const READ_BYTES: usize = 128 << 10;
/// How long the head of a request may take, and the wait for the next one on a connection.
const HEAD_TIME: Duration = Duration::from_secs(30);

/// Bounds of what clients may have done at once.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// What is done at all.
    pub(crate) duty: Duty,
    /// Of a query, the wait for a place included.
    pub(crate) query_time: Duration,
    /// Of a query.
    pub(crate) query_memory_bytes: usize,
    pub(crate) queries_max: usize,
    pub(crate) inserts_max: usize,
    /// Of each of them.
    pub(crate) waiting_max: usize,
}

/// What all requests share.
#[derive(Debug)]
pub(crate) struct State {
    database: Arc<Database>,
    tokens: Option<Arc<Tokens>>,
    bounds: Bounds,
    queries: Admission,
    inserts: Admission,
    metrics: Arc<Metrics>,
    /// Threads of queries.
    threads: Handle,
}

impl State {
    pub(crate) fn new(
        database: Arc<Database>,
        tokens: Option<Arc<Tokens>>,
        metrics: Arc<Metrics>,
        bounds: Bounds,
        threads: Handle,
    ) -> Self {
        let queries = Admission::new("queries", bounds.queries_max, bounds.waiting_max);
        let inserts = Admission::new("inserts", bounds.inserts_max, bounds.waiting_max);
        Self { database, tokens, bounds, queries, inserts, metrics, threads }
    }
}

/// Answers until the server is to end; then no connection is taken any more, and requests that are at work have `grace`
/// to be answered. Says whether they were.
pub(crate) async fn serve(door: Door, state: Arc<State>, mut stop: Stop, grace: Duration) -> bool {
    let graceful = GracefulShutdown::new();
    loop {
        let visitor = tokio::select! {
            visitor = door.next() => visitor,
            () = stop.come() => break,
        };
        tokio::spawn(connection(visitor, Arc::clone(&state), graceful.watcher()));
    }
    drop(door);
    tokio::time::timeout(grace, graceful.shutdown()).await.is_ok()
}

async fn connection(visitor: Visitor, state: Arc<State>, watcher: Watcher) {
    let Some((socket, _place)) = visitor.socket().await else {
        state.metrics.tls_failures.inc();
        return;
    };
    let service = service_fn(move |request| {
        let state = Arc::clone(&state);
        async move { Ok::<_, Infallible>(route::answer(state, request).await) }
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD_TIME).max_buf_size(READ_BYTES);
    let connection = builder.serve_connection(TokioIo::new(socket), service);
    // Who cut it knows why.
    let _ = watcher.watch(connection).await;
}
