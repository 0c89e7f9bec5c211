//! The end of a server: a signal, heard by all who wait for it.

use std::io;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// What ends a server. Each part of it has one of its own.
#[derive(Debug, Clone)]
pub(crate) struct Stop(watch::Receiver<bool>);

impl Stop {
    /// From here on SIGTERM and SIGINT do not end the process.
    ///
    /// # Errors
    /// The system's.
    pub(crate) fn listen() -> io::Result<Self> {
        let (mut terminate, mut interrupt) =
            (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        let (send, receive) = watch::channel(false);
        tokio::spawn(async move {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            send.send_replace(true);
            // Whoever asks later hears of it too, and not that there is nobody to ask.
            send.closed().await;
        });
        Ok(Self(receive))
    }

    /// Returns when the server is to end, at once where it is ending.
    pub(crate) async fn come(&mut self) {
        // That nobody listens for signals any more is an end as well.
        let _ = self.0.wait_for(|is_stopped| *is_stopped).await;
    }
}
