//! Reading a type key by key, so that an unknown one is named instead of passed over: a limit that was mistyped is no
//! limit.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use super::{CpuForm, Form, ShareOf, ValueType};

/// The keys of all types.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Keys {
    int: Option<String>,
    unsigned: Option<String>,
    min: Option<i64>,
    max: Option<i64>,
    ints: Option<String>,
    count: Option<usize>,
    ascending: Option<bool>,
    choice: Option<Vec<String>>,
    cpus: Option<CpuForm>,
    empty: Option<bool>,
    boot_cpus: Option<Vec<String>>,
    flag: Option<bool>,
    text: Option<bool>,
    share: Option<ShareOf>,
    form: Option<Form>,
    directives: Option<Vec<String>>,
    directive: Option<String>,
    unit: Option<String>,
    words: Option<Vec<String>>,
    at_least: Option<bool>,
}

impl Keys {
    /// Whether exactly one type is named, with no key of another.
    fn go_together(&self) -> bool {
        let kinds = [
            self.int.is_some(),
            self.unsigned.is_some(),
            self.ints.is_some(),
            self.choice.is_some(),
            self.cpus.is_some(),
            self.boot_cpus.is_some(),
            self.flag.is_some(),
            self.text.is_some(),
            self.share.is_some(),
            self.form.is_some(),
            self.directives.is_some(),
            self.directive.is_some(),
        ];
        let counts = self.int.is_some() || self.ints.is_some() || self.directive.is_some();
        let of_setting = self.unit.is_some() || self.at_least.is_some();
        let stray = !counts && (self.min.is_some() || self.max.is_some())
            || self.directive.is_some() != self.unit.is_some()
            || self.directive.is_none() && of_setting
            || self.directive.is_none() && self.int.is_none() && self.words.is_some()
            || self.ints.is_some() != self.count.is_some()
            || self.ints.is_none() && self.ascending.is_some()
            || self.cpus.is_none() && self.empty.is_some();
        kinds.into_iter().filter(|named| *named).count() == 1 && !stray
    }
}

impl<'de> Deserialize<'de> for ValueType {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        const WANTED: &str = "a type is one of { int = UNIT, min = N, max = N, words = [WORD, ...] }, \
                              { unsigned = UNIT }, \
                              { ints = UNIT, count = N, min = N, max = N, ascending = true }, \
                              { choice = [WORD, ...] }, { cpus = \"list\" or \"mask\", empty = true }, \
                              { boot_cpus = [WORD, ...] }, { flag = true }, { directives = [WORD, ...] }, \
                              { directive = WORD, unit = UNIT, min = N, max = N, words = [WORD, ...], \
                              at_least = true }, { share = \"schemata\" or \"group\" }, \
                              { form = \"thp-anon\", \"thp-shmem\", \"node-bytes\", \"tmpfs-size\" or \
                              \"thread-schedule\" } and { text = true }";
        let keys = Keys::deserialize(deserializer)?;
        if !keys.go_together() {
            return Err(D::Error::custom(WANTED));
        }
        match keys {
            Keys { int: Some(int), min, max, words, .. } => {
                Ok(Self::Int { int, min, max, words: words.unwrap_or_default() })
            }
            Keys { unsigned: Some(unsigned), .. } => Ok(Self::Unsigned { unsigned }),
            Keys { ints: Some(ints), count: Some(count), min, max, ascending, .. } => {
                Ok(Self::Ints { ints, count, min, max, ascending: ascending.unwrap_or_default() })
            }
            Keys { choice: Some(choice), .. } => Ok(Self::Choice { choice }),
            Keys { cpus: Some(cpus), empty, .. } => Ok(Self::Cpus { cpus, empty: empty.unwrap_or_default() }),
            Keys { boot_cpus: Some(boot_cpus), .. } => Ok(Self::BootCpus { boot_cpus }),
            Keys { flag: Some(flag), .. } => Ok(Self::Flag { flag }),
            Keys { text: Some(text), .. } => Ok(Self::Text { text }),
            Keys { share: Some(share), .. } => Ok(Self::Share { share }),
            Keys { form: Some(form), .. } => Ok(Self::Form { form }),
            Keys { directives: Some(directives), .. } => Ok(Self::Directives { directives }),
            Keys { directive: Some(directive), unit: Some(unit), min, max, words, at_least, .. } => {
                let (words, at_least) = (words.unwrap_or_default(), at_least.unwrap_or_default());
                Ok(Self::Setting { directive, unit, min, max, words, at_least })
            }
            _ => Err(D::Error::custom(WANTED)),
        }
    }
}
