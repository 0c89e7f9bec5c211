//! The bytes of a request, as they come.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::Incoming;

use crate::failure::{Failure, Kind};

/// How long the next bytes of a request may take.
const IDLE_TIME: Duration = Duration::from_secs(30);

/// Pieces of a request's body.
#[derive(Debug)]
pub(crate) struct Pieces(Incoming);

impl Pieces {
    pub(crate) fn new(body: Incoming) -> Self {
        Self(body)
    }

    /// The next one; none behind the last.
    ///
    /// # Errors
    /// [`Kind::Gone`] when the client is, or its bytes are not as it said; [`Kind::Timeout`] when none come.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, Failure> {
        loop {
            let frame = match tokio::time::timeout(IDLE_TIME, self.0.frame()).await {
                Ok(None) => return Ok(None),
                Ok(Some(Ok(frame))) => frame,
                Ok(Some(Err(error))) => {
                    let text = format!("the request ended in the middle: {error}");
                    return Err(Failure::new(Kind::Gone, text));
                }
                Err(_) => {
                    let text = format!("no byte of the request came for {} s", IDLE_TIME.as_secs());
                    return Err(Failure::new(Kind::Timeout, text));
                }
            };
            // What is no data is a trailer, of which there is nothing to know.
            if let Ok(bytes) = frame.into_data()
                && !bytes.is_empty()
            {
                return Ok(Some(bytes));
            }
        }
    }
}
