//! A listener: who comes gets a place, or waits in the kernel until there is one.
//!
//! Where TLS was asked for, keys are agreed upon by the task of the connection, in its own time: who is slow at it
//! holds up nobody at the door.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::tls::Tls;

/// How long accepting rests when the system has no more files.
const ACCEPT_REST: Duration = Duration::from_millis(50);

/// A listener, and places for those that come.
#[derive(Debug)]
pub(crate) struct Door {
    listener: TcpListener,
    places: Arc<Semaphore>,
    tls: Option<Arc<Tls>>,
}

/// A connection, whatever carries it.
pub(crate) trait Socket: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Socket for S {}

/// A connection with its place, which is given back when that is dropped.
#[derive(Debug)]
pub(crate) struct Visitor {
    stream: TcpStream,
    tls: Option<Arc<Tls>>,
    pub(crate) address: SocketAddr,
    place: OwnedSemaphorePermit,
}

impl Visitor {
    /// The connection, once keys are agreed upon, and its place. None where they are not: somebody who does not speak
    /// TLS, or does not trust the certificate.
    pub(crate) async fn socket(self) -> Option<(Box<dyn Socket>, OwnedSemaphorePermit)> {
        let Self { stream, tls, place, .. } = self;
        let socket: Box<dyn Socket> = match tls {
            None => Box::new(stream),
            Some(tls) => Box::new(tls.accept(stream).await?),
        };
        Some((socket, place))
    }
}

impl Door {
    /// # Errors
    /// The system's, where the address cannot be had.
    pub(crate) async fn open(address: SocketAddr, places: usize, tls: Option<Arc<Tls>>) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        Ok(Self { listener, places: Arc::new(Semaphore::new(places)), tls })
    }

    /// The address that it got.
    ///
    /// # Errors
    /// The system's.
    pub(crate) fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// The next one that comes.
    pub(crate) async fn next(&self) -> Visitor {
        loop {
            let place = Arc::clone(&self.places).acquire_owned().await.expect("places are never closed");
            match self.listener.accept().await {
                Ok((stream, address)) => {
                    // Without it an answer in two pieces waits for an acknowledgement; where it cannot be had, it does.
                    let _ = stream.set_nodelay(true);
                    // A client that is gone without a word must not keep its place; where that cannot be had, it does.
                    let _ = rustix::net::sockopt::set_socket_keepalive(&stream, true);
                    return Visitor { stream, tls: self.tls.clone(), address, place };
                }
                Err(_) => tokio::time::sleep(ACCEPT_REST).await,
            }
        }
    }
}
