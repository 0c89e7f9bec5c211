//! The working set of a server against what caches and TLBs of this processor can hold.
//!
//! It says before any measurement whether pages can matter: a table that the second-level TLB covers gains
//! nothing from larger pages. In a guest the figures are those that the hypervisor lets through.

use planish_host::Host;
use planish_model::units::bytes;
use planish_topo::{CacheKind, Topology};

use super::budget::Budget;
use super::install::Install;

/// Entries of the last TLB level for data, by page size; 0 where the processor does not tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tlb {
    base: u64,
    huge_2m: u64,
    huge_1g: u64,
}

/// Remarks for the outcome.
pub(super) fn notes(install: &Install, budget: &Budget, clients: usize) -> Vec<String> {
    let caches = Topology::read(&Host::live()).caches;
    let cache = |level: u32| {
        let of_level =
            caches.iter().filter(|cache| cache.level == level && cache.kind != CacheKind::Instruction);
        of_level.map(|cache| cache.bytes).max().unwrap_or(0)
    };
    vec![
        format!(
            "PostgreSQL {}, {clients} clients, {} rows: {} of table and primary key in {} of shared_buffers",
            install.version,
            budget.rows(),
            bytes(budget.data_bytes()),
            bytes(budget.shared_buffers_bytes),
        ),
        describe(budget.data_bytes(), cache(2), cache(3), tlb()),
    ]
}

fn describe(working_set: u64, l2: u64, l3: u64, tlb: Tlb) -> String {
    let mut text =
        format!("working set {}; L2 {}, L3 {} of this processor", bytes(working_set), bytes(l2), bytes(l3));
    let mut reaches = Vec::new();
    for (name, entries, page) in
        [("4 KB", tlb.base, 4 << 10), ("2 MB", tlb.huge_2m, 2 << 20), ("1 GB", tlb.huge_1g, 1u64 << 30)]
    {
        if entries > 0 {
            reaches.push(format!("{} with {name} pages ({entries} entries)", bytes(entries * page)));
        }
    }
    if reaches.is_empty() {
        text += "; the processor does not tell the size of its TLB";
    } else {
        text += "; the TLB reaches ";
        text += &reaches.join(", ");
    }
    text
}

/// Intel: leaf 0x18, deterministic address translation. AMD: leaves 0x80000006 and 0x80000019.
#[cfg(target_arch = "x86_64")]
fn tlb() -> Tlb {
    use raw_cpuid::{CpuId, DatType};

    let cpuid = CpuId::new();
    let mut tlb = Tlb::default();
    for level in cpuid.get_deterministic_address_translation_info().into_iter().flatten() {
        if !matches!(level.cache_type(), DatType::DataTLB | DatType::UnifiedTLB | DatType::LoadOnly) {
            continue;
        }
        let entries = u64::from(level.ways()) * u64::from(level.sets());
        for (has, slot) in [
            (level.has_4k_entries(), &mut tlb.base),
            (level.has_2mb_entries(), &mut tlb.huge_2m),
            (level.has_1gb_entries(), &mut tlb.huge_1g),
        ] {
            if has {
                *slot = (*slot).max(entries);
            }
        }
    }
    if tlb == Tlb::default()
        && let Some(amd) = cpuid.get_l2_l3_cache_and_tlb_info()
    {
        tlb.base = u64::from(amd.dtlb_4k_size());
        tlb.huge_2m = u64::from(amd.dtlb_2m_4m_size());
        tlb.huge_1g = cpuid.get_tlb_1gb_page_info().map_or(0, |it| u64::from(it.dtlb_l2_1gb_size()));
    }
    tlb
}

/// Other processors have no instruction that tells.
#[cfg(not(target_arch = "x86_64"))]
fn tlb() -> Tlb {
    Tlb::default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reach_is_entries_times_pages() {
        let tlb = Tlb { base: 2048, huge_2m: 1024, huge_1g: 0 };
        let text = describe(1_700_000_000, 2 << 20, 260 << 20, tlb);
        assert_eq!(
            text,
            "working set 1.6 GiB; L2 2 MiB, L3 260 MiB of this processor; the TLB reaches 8 MiB with 4 KB \
             pages (2048 entries), 2 GiB with 2 MB pages (1024 entries)"
        );
        assert!(describe(1, 0, 0, Tlb::default()).contains("does not tell"));
    }

    #[test]
    fn this_processor_is_asked_without_harm() {
        let tlb = tlb();
        assert!(tlb.base < 1 << 20 && tlb.huge_2m < 1 << 20, "{tlb:?}");
    }
}
