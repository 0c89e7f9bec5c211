//! From a request to who answers it.

use std::sync::Arc;

use hyper::body::Incoming;
use hyper::header::{ACCEPT_ENCODING, CONTENT_ENCODING, HeaderMap};
use hyper::{Method, Request, Response, StatusCode};

use crate::failure::{Failure, Kind};
use crate::http::answer::{Answer, TEXT, failed, failed_as_json, whole};
use crate::http::body::Pieces;
use crate::http::{State, guard, sql, write};
use crate::metrics::{Asked, CONTENT_TYPE, Now};

/// A request without its body.
pub(crate) struct Head {
    pub(crate) is_post: bool,
    /// What stands behind the question mark.
    pub(crate) query: String,
    pub(crate) headers: HeaderMap,
}

impl Head {
    /// Whether the client takes answers that are packed by gzip.
    pub(crate) fn takes_packed(&self) -> bool {
        let values = self.headers.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
        values.flat_map(|value| value.split(',')).any(|way| {
            let mut words = way.split(';').map(str::trim);
            words.next() == Some("gzip") && !words.any(|word| matches!(word, "q=0" | "q=0.0" | "q=0.000"))
        })
    }

    /// Whether the body is packed by gzip.
    ///
    /// # Errors
    /// [`Kind::NotImplemented`] for other ways.
    pub(crate) fn is_packed(&self) -> Result<bool, Failure> {
        match self.headers.get(CONTENT_ENCODING).map(|value| value.to_str()) {
            None | Some(Ok("identity")) => Ok(false),
            Some(Ok("gzip")) => Ok(true),
            Some(other) => {
                let text = format!("Content-Encoding {other:?} is not taken; gzip is, and none");
                Err(Failure::new(Kind::NotImplemented, text))
            }
        }
    }
}

/// Answers a request, and counts it.
pub(crate) async fn answer(state: Arc<State>, request: Request<Incoming>) -> Response<Answer> {
    let (parts, body) = request.into_parts();
    let path = parts.uri.path().to_owned();
    let head = Head {
        is_post: parts.method == Method::POST,
        query: parts.uri.query().unwrap_or_default().to_owned(),
        headers: parts.headers,
    };
    let is_get = matches!(parts.method, Method::GET | Method::HEAD);
    let (kind, answered) = match path.as_str() {
        "/ping" if is_get => ("ping", Ok(whole(TEXT, "Ok.\n"))),
        "/metrics" if is_get => ("metrics", metrics(&state, &head).await),
        "/" if is_get || head.is_post => {
            let mut kind = "query";
            let answered = sql::answer(&state, &head, Pieces::new(body), &mut kind).await;
            (kind, answered)
        }
        "/write" | "/api/v2/write" if head.is_post => {
            ("write", write::answer(&state, &head, Pieces::new(body)).await)
        }
        "/ping" | "/metrics" | "/" | "/write" | "/api/v2/write" => {
            let text = format!("{} is not for {path}", parts.method);
            ("other", Err(Failure::new(Kind::Method, text)))
        }
        _ => {
            let text = format!("no {path}; there are /, /ping, /write, /api/v2/write, /metrics");
            ("other", Err(Failure::new(Kind::NoPage, text)))
        }
    };
    let response = match answered {
        Ok(response) => response,
        Err(failure) if kind == "write" => failed_as_json(&failure),
        Err(failure) => failed(&failure),
    };
    count(&state, kind, response.status());
    response
}

fn count(state: &State, kind: &'static str, status: StatusCode) {
    state.metrics.requests.get_or_create(&Asked { kind, status: status.as_u16() }).inc();
}

async fn metrics(state: &Arc<State>, head: &Head) -> Result<Response<Answer>, Failure> {
    guard::role(state.tokens.as_deref(), &head.headers)?;
    let asks = Arc::clone(state);
    let looked = tokio::task::spawn_blocking(move || asks.metrics.look(asks.database.arena())).await;
    looked.map_err(|_| Failure::new(Kind::Internal, "looking at memory broke off"))?;
    let (views, view_size) = state.database.view_sizes();
    let now = Now {
        running: state.queries.running(),
        waiting: state.queries.waiting(),
        memory_bytes: state.database.used_bytes(),
        tables: state.database.count(),
        views,
        view_size,
    };
    Ok(whole(CONTENT_TYPE, state.metrics.text(now)))
}
