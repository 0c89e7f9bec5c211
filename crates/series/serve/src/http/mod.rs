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
mod metrics;
mod params;
mod route;
mod sql;
mod write;

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::database::Database;
use crate::tokens::Tokens;
use admission::Admission;
use metrics::Metrics;
pub(crate) use sql::options;

/// Connections at once; further ones wait in the kernel.
const CONNECTIONS_MAX: usize = 1024;
/// Bytes of the head of a request, and of what is read at once.
const READ_BYTES: usize = 128 << 10;
/// How long the head of a request may take, and the wait for the next one on a connection.
const HEAD_TIME: Duration = Duration::from_secs(30);
/// How long accepting rests when the system has no more files.
const ACCEPT_REST: Duration = Duration::from_millis(50);

/// Bounds of what clients may have done at once.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
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
    tokens: Option<Tokens>,
    bounds: Bounds,
    queries: Admission,
    inserts: Admission,
    metrics: Metrics,
    /// Threads of queries.
    threads: Handle,
}

impl State {
    pub(crate) fn new(
        database: Arc<Database>,
        tokens: Option<Tokens>,
        bounds: Bounds,
        threads: Handle,
    ) -> Self {
        let queries = Admission::new("queries", bounds.queries_max, bounds.waiting_max);
        let inserts = Admission::new("inserts", bounds.inserts_max, bounds.waiting_max);
        Self { database, tokens, bounds, queries, inserts, metrics: Metrics::new(), threads }
    }
}

/// What ends a server.
#[derive(Debug)]
pub(crate) struct Stop {
    terminate: Signal,
    interrupt: Signal,
}

impl Stop {
    /// From here on signals do not end the process.
    ///
    /// # Errors
    /// The system's.
    pub(crate) fn listen() -> io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    async fn come(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// Answers until a signal comes; then no connection is taken any more, and requests that are at work have `grace` to be
/// answered. Says whether they were.
pub(crate) async fn serve(listener: TcpListener, state: Arc<State>, mut stop: Stop, grace: Duration) -> bool {
    let graceful = GracefulShutdown::new();
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let next = async {
            let place = Arc::clone(&places).acquire_owned().await.expect("places are never closed");
            (place, listener.accept().await)
        };
        let (place, accepted) = tokio::select! {
            next = next => next,
            () = stop.come() => break,
        };
        match accepted {
            Ok((stream, _)) => {
                tokio::spawn(connection(stream, Arc::clone(&state), graceful.watcher(), place));
            }
            Err(_) => tokio::time::sleep(ACCEPT_REST).await,
        }
    }
    drop(listener);
    tokio::time::timeout(grace, graceful.shutdown()).await.is_ok()
}

async fn connection(stream: TcpStream, state: Arc<State>, watcher: Watcher, _place: OwnedSemaphorePermit) {
    // Without it an answer in two pieces waits for an acknowledgement; where it cannot be had, it does.
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| {
        let state = Arc::clone(&state);
        async move { Ok::<_, Infallible>(route::answer(state, request).await) }
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD_TIME).max_buf_size(READ_BYTES);
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    // Who cut it knows why.
    let _ = watcher.watch(connection).await;
}
