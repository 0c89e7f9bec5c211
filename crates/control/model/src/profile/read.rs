//! Reading a wanted value key by key.
//!
//! A derived reader of untagged variants takes the first one that fits and passes over keys that it does not know:
//! `{ need_bytes = N, node = [1] }` would be a pool on all nodes. Here such a key is named, and what was meant.

use std::fmt;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::{Case, Computation, Nodes, Want};
use crate::Conditions;

/// What a wanted value may look like, for people.
const WANTED: &str = "a number, a word, { value = WORD, only = PATTERN, needs = { ... } }, a list of those, \
                      { need_bytes = N, nodes = [N, ...] } or { from = FUNCTION }";

/// The keys of all kinds of wanted values.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Keys {
    value: Option<String>,
    only: Option<String>,
    needs: Option<Conditions>,
    #[serde(default, deserialize_with = "plain_bytes")]
    need_bytes: Option<u64>,
    nodes: Option<Nodes>,
    from: Option<Computation>,
}

/// Bytes as a number; who writes `"64M"`, as on the command line, is told what is read here.
fn plain_bytes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let plain =
        |error| D::Error::custom(format!("{error}: need_bytes is bytes without a unit, 67108864 for 64 MiB"));
    u64::deserialize(deserializer).map(Some).map_err(plain)
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Want;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(WANTED)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Want, E> {
        Ok(Want::Int(number))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Want, E> {
        i64::try_from(number).map(Want::Int).map_err(|_| E::custom("no knob takes a number that large"))
    }

    fn visit_str<E: Error>(self, word: &str) -> Result<Want, E> {
        Ok(Want::Text(word.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Want, A::Error> {
        let cases = Vec::deserialize(SeqAccessDeserializer::new(seq))?;
        if cases.is_empty() {
            return Err(A::Error::custom("an empty list wants nothing: take the line out"));
        }
        Ok(Want::Cases(cases))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Want, A::Error> {
        let keys = Keys::deserialize(MapAccessDeserializer::new(map))?;
        // A value for all places of all hosts is written plainly.
        let conditional = keys.only.is_some() || keys.needs.is_some();
        match keys {
            Keys { value: Some(value), only, needs, need_bytes: None, nodes: None, from: None }
                if conditional =>
            {
                Ok(Want::Case(Box::new(Case { value, only, needs: needs.unwrap_or_default() })))
            }
            Keys {
                need_bytes: Some(need_bytes),
                nodes,
                value: None,
                only: None,
                needs: None,
                from: None,
            } => Ok(Want::Need { need_bytes, nodes: nodes.unwrap_or_default() }),
            Keys {
                from: Some(from),
                value: None,
                only: None,
                needs: None,
                need_bytes: None,
                nodes: None,
            } => Ok(Want::From { from }),
            _ => Err(A::Error::custom(format!("these keys do not go together: write {WANTED}"))),
        }
    }
}

impl<'de> Deserialize<'de> for Want {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}
