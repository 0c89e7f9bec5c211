//! What `/proc/buddyinfo` says about free blocks that could become huge pages. Pure.

use std::fmt::Write as _;

use planish_model::{BuddyRow, fitting};

fn zones(text: &str, node: Option<u32>) -> impl Iterator<Item = BuddyRow> {
    BuddyRow::parse_all(text).into_iter().filter(move |zone| node.is_none_or(|node| node == zone.node))
}

/// `node 0: DMA32 5, Normal 0` : pages of this size that fit into free blocks, by zone.
pub(crate) fn describe(text: &str, node: Option<u32>, page_bytes: u64, base_bytes: u64) -> String {
    let mut told = String::new();
    let mut last = None;
    for zone in zones(text, node) {
        let Some(pages) = zone.fitting(page_bytes, base_bytes) else {
            return "no free block can be that large".to_owned();
        };
        if last == Some(zone.node) {
            told.push_str(", ");
        } else {
            let gap = if last.is_some() { "; " } else { "" };
            write!(told, "{gap}node {}: ", zone.node).expect("a String takes all");
            last = Some(zone.node);
        }
        write!(told, "{} {pages}", zone.zone).expect("a String takes all");
    }
    if told.is_empty() { "unknown".to_owned() } else { told }
}

/// Pages of this size that lie whole in free blocks; `None` where free blocks cannot tell.
pub(crate) fn pages(text: &str, node: Option<u32>, page_bytes: u64, base_bytes: u64) -> Option<u64> {
    fitting(&BuddyRow::parse_all(text), node, page_bytes, base_bytes)
}

/// Why a pool came short, in a few words.
pub(crate) fn why(text: &str, node: Option<u32>, page_bytes: u64, base_bytes: u64) -> String {
    let fits: Option<Vec<u64>> = zones(text, node).map(|zone| zone.fitting(page_bytes, base_bytes)).collect();
    match fits {
        None => "a page of this size is larger than any block that the kernel keeps free: reserve it at boot",
        Some(fits) if fits.is_empty() => "the kernel granted fewer pages and does not say why",
        Some(fits) if fits.iter().sum::<u64>() == 0 => "free memory is in pieces that are too small",
        Some(_) => "the free blocks that are left are kept by the watermarks of their zones",
    }
    .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
Node 0, zone      DMA      0      0      0      0      0      0      0      0      1      1      2
Node 0, zone   Normal    216     55    189    101     84     38     37     27      5      0      0
Node 1, zone   Normal      1      1      1      1      1      1      1      1      1      3      7
";

    #[test]
    fn blocks_are_counted_in_pages_of_the_pool() {
        assert_eq!(describe(TEXT, None, 2 << 20, 4096), "node 0: DMA 5, Normal 0; node 1: Normal 17");
        assert_eq!(describe(TEXT, Some(1), 2 << 20, 4096), "node 1: Normal 17");
        assert_eq!(describe(TEXT, Some(1), 1 << 30, 4096), "no free block can be that large");
        assert_eq!(describe("odd text", None, 2 << 20, 4096), "unknown");
    }

    #[test]
    fn the_reason_follows_the_blocks() {
        let normal = TEXT.lines().nth(1).expect("three lines");
        assert_eq!(why(normal, Some(0), 2 << 20, 4096), "free memory is in pieces that are too small");
        assert!(why(TEXT, Some(1), 2 << 20, 4096).contains("watermarks"));
        assert!(why(TEXT, Some(1), 1 << 30, 4096).contains("reserve it at boot"));
    }
}
