//! Sets of CPUs as the kernel writes them: as a list, or as a mask (`lib/bitmap-str.c`).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How the kernel writes a set of CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CpuForm {
    /// `0-3,8`.
    List,
    /// Hexadecimal digits, in groups of eight with commas between: `00000000,0000010f`.
    Mask,
}

impl CpuForm {
    /// The same set as everybody else would write it; `None` for what is no set.
    pub(crate) fn normal(self, text: &str) -> Option<String> {
        match self {
            Self::List => list(text),
            Self::Mask => mask(text),
        }
    }

    /// The normal form of no CPU at all.
    pub(super) fn none(self) -> &'static str {
        match self {
            Self::List => "",
            Self::Mask => "0",
        }
    }

    pub(crate) fn describe(self) -> &'static str {
        match self {
            Self::List => "list of CPUs, such as 0-3,8",
            Self::Mask => "mask of CPUs in hexadecimal digits, such as ff00",
        }
    }
}

/// A CPU list in order and without overlaps. Numbers have at most six digits: no kernel has more CPUs.
fn list(text: &str) -> Option<String> {
    let number = |text: &str| text.parse::<u32>().ok().filter(|_| text.len() <= 6 && !text.starts_with('+'));
    let mut ranges = Vec::new();
    for part in text.split(',').filter(|_| !text.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (number(first)?, number(last)?);
        (first <= last).then(|| ranges.push((first, last)))?;
    }
    ranges.sort_unstable();
    let mut merged: Vec<(u32, u32)> = Vec::new();
    for (first, last) in ranges {
        match merged.last_mut() {
            Some((_, end)) if first <= *end + 1 => *end = last.max(*end),
            _ => merged.push((first, last)),
        }
    }
    let part = |(first, last): &(u32, u32)| {
        if first == last { first.to_string() } else { format!("{first}-{last}") }
    };
    Some(merged.iter().map(part).collect::<Vec<_>>().join(","))
}

/// A CPU mask without prefix and leading zeros, with commas as the kernel wants them: of more than eight digits in a
/// row it takes none (`lib/bitmap-str.c`, `bitmap_parse`).
fn mask(text: &str) -> Option<String> {
    let digits = text.strip_prefix("0x").unwrap_or(text).replace(',', "").to_ascii_lowercase();
    if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    let short = digits.trim_start_matches('0');
    if short.is_empty() {
        return Some("0".to_owned());
    }
    let groups: Vec<&[u8]> = short.as_bytes().rchunks(8).rev().collect();
    let groups: Vec<&str> = groups.into_iter().filter_map(|group| std::str::from_utf8(group).ok()).collect();
    Some(groups.join(","))
}

#[cfg(test)]
mod tests {
    use crate::{CpuForm, ValueType};

    #[test]
    fn sets_of_cpus_compare_by_what_they_hold() {
        let list = ValueType::Cpus { cpus: CpuForm::List, empty: false };
        assert!(list.same("0-3,8\n", "8,2-3,0-2"));
        assert!(list.validate("0,2-3").is_ok());
        for wrong in ["", "3-1", "a", "1,,2", "+1", "4294967296"] {
            assert!(list.validate(wrong).is_err(), "{wrong}");
        }
        let mask = ValueType::Cpus { cpus: CpuForm::Mask, empty: false };
        assert!(mask.same("00000000,0000FF00", "ff00"));
        assert_eq!(mask.normal("0fffffffff"), "f,ffffffff", "the kernel refuses nine digits in a row");
        assert_eq!(mask.normal("00000001,00000000,00000000"), "1,00000000,00000000");
        assert_eq!(
            mask.validate("0").expect_err("nobody left").to_string(),
            "`0` is not a mask of CPUs in hexadecimal digits, such as ff00"
        );
        assert!(ValueType::Cpus { cpus: CpuForm::Mask, empty: true }.validate("0,0").is_ok());
    }
}
