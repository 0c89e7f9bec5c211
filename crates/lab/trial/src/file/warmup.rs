//! `warmup = 2.5` or `warmup = "detect"`.

use schemars::JsonSchema;
use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::control::is_time;

/// How long each start runs before it is measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum WarmUpSpec {
    /// So many seconds.
    Seconds(f64),
    /// What the self-check finds; its units are made long enough for that.
    Detect,
}

/// The same as its schema tells it.
#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only its schema is published")]
pub(super) enum Published {
    /// Seconds, zero or more.
    Seconds(f64),
    /// Looked for.
    Word(Word),
}

/// The only word.
#[derive(JsonSchema)]
#[serde(rename_all = "lowercase")]
#[expect(dead_code, reason = "only its schema is published")]
pub(super) enum Word {
    /// Looked for.
    Detect,
}

impl<'de> Deserialize<'de> for WarmUpSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

impl Serialize for WarmUpSpec {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Seconds(seconds) => serializer.serialize_f64(*seconds),
            Self::Detect => serializer.serialize_str("detect"),
        }
    }
}

/// A hand-made reader, since a derived one of a word or a number says of a typing error only that nothing fits.
struct Reader;

impl Visitor<'_> for Reader {
    type Value = WarmUpSpec;

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("seconds from zero to 30 days, or \"detect\"")
    }

    fn visit_f64<E: Error>(self, seconds: f64) -> Result<WarmUpSpec, E> {
        if is_time(seconds) {
            return Ok(WarmUpSpec::Seconds(seconds));
        }
        Err(E::invalid_value(Unexpected::Float(seconds), &self))
    }

    fn visit_i64<E: Error>(self, seconds: i64) -> Result<WarmUpSpec, E> {
        self.visit_f64(seconds as f64)
    }

    fn visit_u64<E: Error>(self, seconds: u64) -> Result<WarmUpSpec, E> {
        self.visit_f64(seconds as f64)
    }

    fn visit_str<E: Error>(self, word: &str) -> Result<WarmUpSpec, E> {
        match word {
            "detect" => Ok(WarmUpSpec::Detect),
            other => Err(E::invalid_value(Unexpected::Str(other), &self)),
        }
    }
}
