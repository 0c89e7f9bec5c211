//! Reading a wanted value key by key.
//!
//! A derived reader of untagged variants takes the first one that fits and passes over keys that it does not know:
//! `{ need_bytes = N, node = [1] }` would be a pool on all nodes. Here such a key is named, and what was meant.

use std::fmt;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Error, MapAccess, SeqAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer};

use super::{Case, Computation, Nodes, Want};
use crate::Conditions;

/// What a wanted value may look like, for people.
const WANTED: &str = "a number, a word, { value = WORD, only = PATTERN, needs = { ... } }, a list of those, \
                      { need_bytes = N, nodes = [N, ...] }, { need_bytes = [N, ...], nodes = [N, ...] }, the same \
                      with total_bytes, or { from = FUNCTION }";

/// The keys of all kinds of wanted values.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Keys {
    #[serde(default, deserialize_with = "word_or_number")]
    value: Option<String>,
    only: Option<String>,
    needs: Option<Conditions>,
    #[serde(default, deserialize_with = "plain_bytes")]
    need_bytes: Option<Bytes>,
    #[serde(default, deserialize_with = "plain_bytes")]
    total_bytes: Option<Bytes>,
    nodes: Option<Nodes>,
    from: Option<Computation>,
}

/// Bytes for every node alike, or for each node by itself.
enum Bytes {
    All(u64),
    Each(Vec<u64>),
}

/// Bytes as a number or a list; who writes `"64M"`, as on the command line, is told what is read here.
fn plain_bytes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Bytes>, D::Error> {
    // The reader of TOML ends its message with the end of a line.
    let plain = |error: D::Error| {
        let error = error.to_string();
        D::Error::custom(format!(
            "{}: bytes are written without a unit, 67108864 for 64 MiB",
            error.trim_end()
        ))
    };
    deserializer.deserialize_any(BytesReader).map(Some).map_err(plain)
}

/// A value with conditions is written as the bare one is: a number, or a word.
pub(super) fn word_or_number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    of_word(deserializer).map(Some)
}

/// The same where there is always one.
pub(super) fn of_word<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    deserializer.deserialize_any(WordReader)
}

struct WordReader;

impl Visitor<'_> for WordReader {
    type Value = String;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number or a word in quotes")
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<String, E> {
        Ok(number.to_string())
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<String, E> {
        Ok(number.to_string())
    }

    fn visit_str<E: Error>(self, word: &str) -> Result<String, E> {
        Ok(word.to_owned())
    }
}

struct BytesReader;

impl<'de> Visitor<'de> for BytesReader {
    type Value = Bytes;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("u64")
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Bytes, E> {
        Ok(Bytes::All(number))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Bytes, E> {
        let negative = |_| E::invalid_value(Unexpected::Signed(number), &self);
        u64::try_from(number).map(Bytes::All).map_err(negative)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Bytes, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(seq)).map(Bytes::Each)
    }
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
        // What is beyond a number of TOML is a text for the few knobs that take it; the others name their range.
        Ok(i64::try_from(number).map_or_else(|_| Want::Text(number.to_string()), Want::Int))
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
        let Keys { value, only, needs, need_bytes, total_bytes, nodes, from } = keys;
        match (value, need_bytes, total_bytes, from) {
            (Some(value), None, None, None) if conditional && nodes.is_none() => {
                Ok(Want::Case(Box::new(Case { value, only, needs: needs.unwrap_or_default() })))
            }
            (None, Some(bytes), None, None) if !conditional => of_pool(bytes, false, nodes),
            (None, None, Some(bytes), None) if !conditional => of_pool(bytes, true, nodes),
            (None, None, None, Some(from)) if !conditional && nodes.is_none() => Ok(Want::From { from }),
            _ => Err(A::Error::custom(format!("these keys do not go together: write {WANTED}"))),
        }
    }
}

fn of_pool<E: Error>(bytes: Bytes, is_total: bool, nodes: Option<Nodes>) -> Result<Want, E> {
    match (bytes, nodes.unwrap_or_default()) {
        (Bytes::All(total_bytes), nodes) if is_total => Ok(Want::Total { total_bytes, nodes }),
        (Bytes::All(need_bytes), nodes) => Ok(Want::Need { need_bytes, nodes }),
        (Bytes::Each(_), Nodes::Each(nodes)) if has_twice(&nodes) => {
            Err(E::custom("a node stands in `nodes` twice: which of its sizes is meant?"))
        }
        (Bytes::Each(bytes), Nodes::Each(nodes)) if bytes.len() == nodes.len() => Ok(match is_total {
            true => Want::Totals { total_bytes: bytes, nodes },
            false => Want::Needs { need_bytes: bytes, nodes },
        }),
        (Bytes::Each(_), _) => {
            let key = if is_total { "total_bytes" } else { "need_bytes" };
            Err(E::custom(format!(
                "a list of {key} takes as many nodes: {{ {key} = [N, ...], nodes = [N, ...] }}"
            )))
        }
    }
}

fn has_twice(nodes: &[u32]) -> bool {
    nodes.iter().enumerate().any(|(index, node)| nodes[..index].contains(node))
}

impl<'de> Deserialize<'de> for Want {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}
