//! Caches, each once, with the CPUs that share it.

use std::collections::BTreeMap;

use planish_sys::CpuSet;
use serde::Serialize;

use crate::cpus::Cpu;
use crate::reader::{Reader, as_list};

/// What a cache holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CacheKind {
    /// Data only.
    Data,
    /// Instructions only.
    Instruction,
    /// Both.
    Unified,
}

/// A cache.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Cache {
    /// 1 is nearest to the CPU.
    pub level: u32,
    /// What it holds.
    pub kind: CacheKind,
    /// Its size in bytes.
    pub bytes: u64,
    /// Size of one line in bytes; 0 where untold.
    pub line_bytes: u32,
    /// The CPUs that share it.
    #[serde(serialize_with = "as_list")]
    pub cpus: CpuSet,
}

/// All caches, by level, kind and first CPU.
pub(crate) fn read(reader: &mut Reader, cpus: &[Cpu]) -> Vec<Cache> {
    let mut found = BTreeMap::new();
    for cpu in cpus.iter().filter(|cpu| cpu.online) {
        let folder = format!("/sys/devices/system/cpu/cpu{}/cache", cpu.id);
        for index in reader.numbered(&folder, "index") {
            let Some(cache) = read_cache(reader, &format!("{folder}/index{index}"), cpu.id) else { continue };
            found
                .entry((cache.level, cache.kind, cache.cpus.first(), cache.cpus.to_string()))
                .or_insert(cache);
        }
    }
    found.into_values().collect()
}

fn read_cache(reader: &mut Reader, folder: &str, cpu: u32) -> Option<Cache> {
    let level = reader.number(&format!("{folder}/level"))?;
    let kind_path = format!("{folder}/type");
    let kind_text = reader.text(&kind_path)?;
    let kind = reader.parse(&kind_path, &kind_text, |text| match text {
        "Data" => Some(CacheKind::Data),
        "Instruction" => Some(CacheKind::Instruction),
        "Unified" => Some(CacheKind::Unified),
        _ => None,
    })?;
    let size_path = format!("{folder}/size");
    // Some Arm firmware tells that there is a cache and not how large it is.
    let bytes = match reader.text(&size_path) {
        Some(text) => reader.parse(&size_path, &text, parse_size)?,
        None => 0,
    };
    let line_bytes = reader.number(&format!("{folder}/coherency_line_size")).unwrap_or(0);
    let sharing =
        reader.list_or_mask(&format!("{folder}/shared_cpu_list"), &format!("{folder}/shared_cpu_map"));
    let cpus = sharing.unwrap_or_else(|| [cpu].into_iter().collect());
    Some(Cache { level, kind, bytes, line_bytes, cpus })
}

/// `48K`, `1024K`, `32M` or plain bytes.
fn parse_size(text: &str) -> Option<u64> {
    let (digits, shift) = match text.as_bytes().last()? {
        b'K' => (&text[..text.len() - 1], 10),
        b'M' => (&text[..text.len() - 1], 20),
        _ => (text, 0),
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_in_the_kernels_units() {
        assert_eq!(parse_size("48K"), Some(48 << 10));
        assert_eq!(parse_size("32M"), Some(32 << 20));
        assert_eq!(parse_size("512"), Some(512));
        for odd in ["", "K", "-1K", "1G", "99999999999999999999K", "18446744073709551615M"] {
            assert_eq!(parse_size(odd), None, "{odd}");
        }
    }
}
