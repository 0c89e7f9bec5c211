//! One object by its URL.

use std::io;
use std::time::Duration;

use futures::TryStreamExt;
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
    /// A web server can neither be listed nor changed.
    #[error("`{url}` is not s3://BUCKET/PATH: a web server is neither listed nor changed")]
    NotS3 {
        /// What was named.
        url: String,
    },
    /// A time that no list tells.
    #[error("`{text}` is no number of seconds since 1970")]
    Seconds {
        /// What was named.
        text: String,
    },
    /// Keys, region or endpoint are missing or wrong.
    #[error("the settings of the store (AWS_ACCESS_KEY_ID, AWS_REGION, AWS_ENDPOINT_URL and their like)")]
    Settings(#[source] object_store::Error),
    /// The store has no such object.
    #[error("there is no such object")]
    Missing,
    /// The keys are not allowed to.
    #[error(
        "the store does not allow it; reading needs s3:GetObject and s3:ListBucket, publishing s3:PutObject too, \
         pruning s3:DeleteObject"
    )]
    Denied(#[source] object_store::Error),
    /// The store cannot be reached, or failed.
    #[error("the store cannot be used")]
    Failed(#[source] object_store::Error),
    /// It is another one than was listed: somebody has published it again.
    #[error("it was put anew since it was listed")]
    Changed,
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
            // Of a list it says no more than what the server answered.
            error if error.to_string().contains(" 403 Forbidden") => Self::Denied(error),
            error => Self::Failed(error),
        }
    }
}

/// An object of a store.
pub(crate) struct Object {
    store: Box<dyn ObjectStore>,
    path: Path,
    /// Whether it can be listed and changed; and what to say where it cannot.
    s3: Result<(), String>,
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
        let s3 = if scheme == "s3" { Ok(()) } else { Err(url.to_owned()) };
        Ok(Self { store, path, s3, runtime })
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

    /// What is below it: bytes, seconds since 1970, and the name behind its own.
    pub fn list(&self) -> Result<Vec<(u64, i64, String)>, ObjectError> {
        self.of_s3()?;
        let listed = self.runtime.block_on(self.store.list(Some(&self.path)).try_collect::<Vec<_>>())?;
        let below = format!("{}/", self.path);
        let one = |object: object_store::ObjectMeta| {
            let name = object.location.as_ref().strip_prefix(&below)?.to_owned();
            Some((object.size, seconds(&object), name))
        };
        Ok(listed.into_iter().filter_map(one).collect())
    }

    /// Takes it away, unless it was put anew since `put_at`. It is no error where there is none: S3 does not tell.
    ///
    /// A delete of S3 has no condition that every server keeps, so the look and the delete are two requests, one behind
    /// the other on the same connection: what is put between the two goes, and whoever put it finds that out when it
    /// reads back. It is looked at by a list, since that is what `put_at` is from: no other right, and no other clock.
    pub fn delete(&self, put_at: i64) -> Result<(), ObjectError> {
        self.of_s3()?;
        match self.runtime.block_on(self.put_at())? {
            None => return Ok(()),
            Some(now) if now != put_at => return Err(ObjectError::Changed),
            Some(_) => {}
        }
        match self.runtime.block_on(self.store.delete(&self.path)) {
            Err(object_store::Error::NotFound { .. }) => Ok(()),
            deleted => Ok(deleted?),
        }
    }

    /// When it was last put, in seconds since 1970; `None` where there is none.
    async fn put_at(&self) -> object_store::Result<Option<i64>> {
        let mut beside = self.store.list(self.path.parent().as_ref());
        while let Some(object) = beside.try_next().await? {
            if object.location == self.path {
                return Ok(Some(seconds(&object)));
            }
        }
        Ok(None)
    }

    fn of_s3(&self) -> Result<(), ObjectError> {
        self.s3.clone().map_err(|url| ObjectError::NotS3 { url })
    }
}

/// When an object was last put. From before 1970 is no time that a store has put anything at.
fn seconds(object: &object_store::ObjectMeta) -> i64 {
    object.last_modified.timestamp().max(0)
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
