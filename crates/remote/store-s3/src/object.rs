//! One object by its URL.

use std::io;
use std::time::Duration;

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::http::HttpBuilder;
use object_store::path::Path;
use object_store::{ClientConfigKey, ClientOptions, ObjectStore, ObjectStoreExt, PutPayload, RetryConfig};
use tokio::runtime::{Builder, Runtime};

/// How long a connection may take. A build waits for it.
const CONNECT: Duration = Duration::from_secs(10);
/// How long one try for an object may take.
const ONE: Duration = Duration::from_secs(60);
/// How long it is tried again: shorter than planish has patience.
const ALL: Duration = Duration::from_secs(30);
const TRIES: usize = 3;

/// Why an object was not handed on.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ObjectError {
    /// It is no URL that is known here.
    #[error("`{url}` is neither s3://BUCKET/PATH nor https://HOST/PATH")]
    Url {
        /// What was named.
        url: String,
    },
    /// Keys, region or endpoint are missing or wrong.
    #[error("the settings of the store (AWS_ACCESS_KEY_ID, AWS_REGION, AWS_ENDPOINT_URL and their like)")]
    Settings(#[source] object_store::Error),
    /// The store has no such object.
    #[error("there is no such object")]
    Missing,
    /// The keys are not allowed to.
    #[error(
        "the store does not allow it; reading needs s3:GetObject and s3:ListBucket, publishing s3:PutObject too"
    )]
    Denied(#[source] object_store::Error),
    /// The store cannot be reached, or failed.
    #[error("the store cannot be used")]
    Failed(#[source] object_store::Error),
    /// Our own stdin or stdout.
    #[error("the bytes cannot be handed on")]
    Stream(#[source] io::Error),
}

impl From<object_store::Error> for ObjectError {
    fn from(error: object_store::Error) -> Self {
        match error {
            object_store::Error::NotFound { .. } => Self::Missing,
            object_store::Error::PermissionDenied { .. } | object_store::Error::Unauthenticated { .. } => {
                Self::Denied(error)
            }
            error => Self::Failed(error),
        }
    }
}

/// An object of a store.
pub(crate) struct Object {
    store: Box<dyn ObjectStore>,
    path: Path,
    runtime: Runtime,
}

impl Object {
    /// The object of a URL. Nothing is asked of its store yet.
    pub fn at(url: &str) -> Result<Self, ObjectError> {
        let unknown = || ObjectError::Url { url: url.to_owned() };
        let (scheme, rest) = url.split_once("://").ok_or_else(unknown)?;
        let (host, path) = rest.split_once('/').ok_or_else(unknown)?;
        let path = Path::parse(path).map_err(|_| unknown())?;
        if host.is_empty() || path.as_ref().is_empty() {
            return Err(unknown());
        }
        let store: Box<dyn ObjectStore> = match scheme {
            "s3" => Box::new(s3(host).map_err(ObjectError::Settings)?),
            "https" | "http" => {
                let options = ClientOptions::new().with_allow_http(scheme == "http");
                let options = options.with_timeout(ONE).with_connect_timeout(CONNECT);
                let store = HttpBuilder::new().with_url(format!("{scheme}://{host}"));
                let store = store.with_client_options(options).with_retry(retry()).build();
                Box::new(store.map_err(ObjectError::Settings)?)
            }
            _ => return Err(unknown()),
        };
        let runtime = Builder::new_current_thread().enable_all().build().map_err(ObjectError::Stream)?;
        Ok(Self { store, path, runtime })
    }

    /// Its bytes.
    pub fn get(&self) -> Result<Vec<u8>, ObjectError> {
        let got = async { self.store.get(&self.path).await?.bytes().await };
        Ok(self.runtime.block_on(got)?.to_vec())
    }

    /// Stores it, whole or not at all: an object has a name once its last byte is there.
    pub fn put(&self, bytes: Vec<u8>) -> Result<(), ObjectError> {
        let put = self.store.put(&self.path, PutPayload::from(bytes));
        self.runtime.block_on(put)?;
        Ok(())
    }
}

/// A bucket by what the environment says of keys and places, which goes before what is said here.
fn s3(bucket: &str) -> object_store::Result<object_store::aws::AmazonS3> {
    let mut builder = AmazonS3Builder::from_env().with_bucket_name(bucket).with_retry(retry());
    for (variable, key, time) in [
        ("AWS_TIMEOUT", ClientConfigKey::Timeout, ONE),
        ("AWS_CONNECT_TIMEOUT", ClientConfigKey::ConnectTimeout, CONNECT),
    ] {
        if std::env::var_os(variable).is_none() {
            builder = builder.with_config(AmazonS3ConfigKey::Client(key), format!("{}s", time.as_secs()));
        }
    }
    builder.build()
}

fn retry() -> RetryConfig {
    RetryConfig { max_retries: TRIES, retry_timeout: ALL, ..RetryConfig::default() }
}
