//! Reads small facts and keeps what it could not understand.

use std::str::FromStr;

use planish_host::Host;
use planish_sys::set::Set;
use serde::{Serialize, Serializer};

/// A file that said something that cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Oddity {
    /// Path on the machine.
    pub path: String,
    /// What it said, shortened.
    pub text: String,
}

/// Reads files of a machine; missing ones are `None`, odd ones are remembered.
pub(crate) struct Reader<'a> {
    pub host: &'a Host,
    pub oddities: Vec<Oddity>,
}

impl<'a> Reader<'a> {
    pub fn new(host: &'a Host) -> Self {
        Self { host, oddities: Vec::new() }
    }

    /// The text without white space at its ends, nor the NUL that some kernels put after a CPU list (Linux
    /// 5.15).
    pub fn text(&self, path: &str) -> Option<String> {
        let text = self.host.read(path).ok()?;
        Some(text.trim_matches(|character: char| character.is_whitespace() || character == '\0').to_owned())
    }

    /// A number; those below zero, which the kernel writes for "none", are `None`.
    pub fn number<T: FromStr>(&mut self, path: &str) -> Option<T> {
        let text = self.text(path)?;
        let negative =
            text.strip_prefix('-').is_some_and(|digits| digits.bytes().all(|b| b.is_ascii_digit()));
        if negative { None } else { self.parse(path, &text, |text| text.parse().ok()) }
    }

    /// A set in list form (`0-3,8`).
    pub fn list<K>(&mut self, path: &str) -> Option<Set<K>> {
        let text = self.text(path)?;
        self.parse(path, &text, |text| Set::parse_list(text).ok())
    }

    /// A set from the list file, or from the mask file of older kernels that have no list.
    pub fn list_or_mask<K>(&mut self, list: &str, mask: &str) -> Option<Set<K>> {
        if let Some(set) = self.list(list) {
            return Some(set);
        }
        let text = self.text(mask)?;
        self.parse(mask, &text, |text| Set::parse_mask(text).ok())
    }

    /// What `parse` makes of `text`; an oddity when it makes nothing.
    pub fn parse<T>(&mut self, path: &str, text: &str, parse: impl FnOnce(&str) -> Option<T>) -> Option<T> {
        let parsed = parse(text);
        if parsed.is_none() {
            self.oddities.push(Oddity { path: path.to_owned(), text: text.chars().take(80).collect() });
        }
        parsed
    }

    /// Numbers `N` of the folders `prefixN` in `folder`, in rising order.
    pub fn numbered(&self, folder: &str, prefix: &str) -> Vec<u32> {
        let number = |name: String| {
            let digits = name.strip_prefix(prefix)?;
            digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
        };
        let in_range = |number: &u32| *number <= planish_sys::set::ID_MAX;
        self.host.list(folder).into_iter().filter_map(number).filter(in_range).collect()
    }
}

/// The value of the line `key: value kB` of a meminfo text, in bytes; other words may stand before the key.
pub(crate) fn meminfo_bytes(text: &str, key: &str) -> Option<u64> {
    let line =
        text.lines().find(|line| line.split_whitespace().any(|word| word.strip_suffix(':') == Some(key)))?;
    let value = line.split(':').nth(1)?.split_whitespace().next()?;
    value.parse::<u64>().ok()?.checked_mul(1024)
}

/// Writes a set in its list form.
pub(crate) fn as_list<K, S: Serializer>(set: &Set<K>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(set)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meminfo_of_a_machine_and_of_a_node() {
        let machine = "MemTotal:       24610436 kB\nMemFree:        1 kB\n";
        let node = "Node 1 MemTotal:       1024 kB\nNode 1 MemFree:        512 kB\n";
        assert_eq!(meminfo_bytes(machine, "MemTotal"), Some(24_610_436 << 10));
        assert_eq!(meminfo_bytes(node, "MemFree"), Some(512 << 10));
        assert_eq!(meminfo_bytes(node, "Mem"), None);
        assert_eq!(meminfo_bytes("MemTotal: many kB", "MemTotal"), None);
    }
}
