//! TLS for those who come: a certificate and its key, from files that may be read anew.
//!
//! Version 1.3 alone: whatever speaks HTTP or lines to this server is younger than it, and there is nothing to choose.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use rustls::ServerConfig;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// How long a client may take to agree on keys.
const HANDSHAKE_TIME: Duration = Duration::from_secs(10);

/// A certificate that clients are shown, and its key.
#[derive(Debug)]
pub(crate) struct Tls {
    certificate: PathBuf,
    key: PathBuf,
    config: RwLock<Arc<ServerConfig>>,
}

/// Why there is no TLS.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TlsError {
    #[error("cannot read {path}")]
    File { path: PathBuf, source: std::io::Error },
    #[error("{path} has no {what}")]
    Nothing { path: PathBuf, what: &'static str },
    #[error("{path} is no PEM: {reason}")]
    Pem { path: PathBuf, reason: String },
    #[error("{certificate} and {key} do not go together")]
    Pair { certificate: PathBuf, key: PathBuf, source: rustls::Error },
}

impl Tls {
    /// Of a certificate, with those between it and a root behind it, and its key, both PEM.
    ///
    /// # Errors
    /// When they are not that, or not of each other.
    pub(crate) fn of_files(certificate: &Path, key: &Path) -> Result<Self, TlsError> {
        let config = RwLock::new(Arc::new(config(certificate, key)?));
        Ok(Self { certificate: certificate.to_owned(), key: key.to_owned(), config })
    }

    /// Reads the files again: who comes from here on is shown what they have now.
    ///
    /// # Errors
    /// As [`of_files`](Self::of_files); what there was is kept then.
    pub(crate) fn read_again(&self) -> Result<(), TlsError> {
        let read = Arc::new(config(&self.certificate, &self.key)?);
        *self.config.write().unwrap_or_else(PoisonError::into_inner) = read;
        Ok(())
    }

    /// Agrees on keys with a client; none where that is not to be had, or not in time.
    pub(crate) async fn accept(&self, stream: TcpStream) -> Option<TlsStream<TcpStream>> {
        let config = Arc::clone(&self.config.read().unwrap_or_else(PoisonError::into_inner));
        timeout(HANDSHAKE_TIME, TlsAcceptor::from(config).accept(stream)).await.ok()?.ok()
    }
}

fn config(certificate: &Path, key: &Path) -> Result<ServerConfig, TlsError> {
    let failed = |path: &Path, what| {
        let path = path.to_owned();
        move |error: pem::Error| match error {
            pem::Error::Io(source) => TlsError::File { path, source },
            pem::Error::NoItemsFound => TlsError::Nothing { path, what },
            error => TlsError::Pem { path, reason: error.to_string() },
        }
    };
    let chain = CertificateDer::pem_file_iter(certificate).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let chain =
        chain.and_then(|chain| if chain.is_empty() { Err(pem::Error::NoItemsFound) } else { Ok(chain) });
    let chain = chain.map_err(failed(certificate, "certificate"))?;
    let private = PrivateKeyDer::from_pem_file(key).map_err(failed(key, "private key"))?;
    let pair = |source| TlsError::Pair { certificate: certificate.to_owned(), key: key.to_owned(), source };
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()));
    let config = config.with_protocol_versions(&[&rustls::version::TLS13]).map_err(pair)?;
    let mut config = config.with_no_client_auth().with_single_cert(chain, private).map_err(pair)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}
