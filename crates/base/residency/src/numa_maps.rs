//! `/proc/PID/numa_maps`: how many pages of each mapping lie on which node.
//!
//! Source: `show_numa_map` in fs/proc/task_mmu.c.

/// Where the pages of one mapping lie that the process has mapped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// First address of the mapping.
    pub start: u64,
    /// The memory policy, in the kernel's words: `default`, `bind:0`, `prefer (many):0-1`.
    pub policy: String,
    /// Size in bytes of the pages that are counted.
    pub page_bytes: u64,
    /// Node and resident bytes there, by node.
    pub nodes: Vec<(u32, u64)>,
}

/// The mappings in the text of numa_maps, by address; `Err` is the first line that cannot be understood.
pub fn parse_numa_maps(text: &str) -> Result<Vec<Placement>, String> {
    let lines = text.lines().filter(|line| !line.is_empty());
    lines.map(|line| parse_line(line).ok_or_else(|| line.to_owned())).collect()
}

/// The modes whose names have a blank (`policy_modes` in mm/mempolicy.c).
const MODES_WITH_BLANK: [&str; 2] = ["prefer (many)", "weighted interleave"];

/// `7f0000000000 interleave:0-1 anon=512 N0=256 N1=256 kernelpagesize_kB=4`
fn parse_line(line: &str) -> Option<Placement> {
    let (start, rest) = line.split_once(' ')?;
    let start = u64::from_str_radix(start, 16).ok()?;
    let name_bytes =
        MODES_WITH_BLANK.iter().find(|mode| rest.starts_with(**mode)).map_or(0, |mode| mode.len());
    let policy_bytes = rest[name_bytes..].find(' ').map_or(rest.len(), |at| name_bytes + at);
    let (policy, rest) = rest.split_at(policy_bytes);
    if policy.is_empty() {
        return None;
    }
    let words = rest.split(' ').filter(|word| !word.is_empty());
    let (mut pages, mut page_bytes) = (Vec::new(), None);
    for word in words {
        // Names of files may hold anything but a blank or a line break, which the kernel escapes.
        let Some((key, value)) = word.split_once('=') else { continue };
        if key == "kernelpagesize_kB" {
            page_bytes = Some(value.parse::<u64>().ok()?.checked_mul(1024)?);
        } else if let Some(node) = key.strip_prefix('N').and_then(|digits| digits.parse::<u32>().ok()) {
            pages.push((node, value.parse::<u64>().ok()?));
        }
    }
    // A mapping without a resident page has no page size either.
    let page_bytes = page_bytes.unwrap_or(0);
    let nodes = pages.into_iter().map(|(node, count)| Some((node, count.checked_mul(page_bytes)?)));
    Some(Placement { start, policy: policy.to_owned(), page_bytes, nodes: nodes.collect::<Option<_>>()? })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lines_as_the_kernel_writes_them() {
        let text = "\
558587c44000 default file=/usr/bin/N9=head mapped=2 N0=2 kernelpagesize_kB=4
7f0000000000 interleave:0-1 file=/anon_hugepage\\040(deleted) huge anon=3 N0=2 N1=1 kernelpagesize_kB=2048
7f1000000000 default heap
7f2000000000 prefer (many):0-1 dirty=1 active=0 N0=1 kernelpagesize_kB=4
7f3000000000 weighted interleave=static:0 dirty=1 N0=1 kernelpagesize_kB=4
7f4000000000 prefer:1
";
        let placements = parse_numa_maps(text).unwrap();
        assert_eq!(placements[0].nodes, [(0, 8 << 10)]);
        assert_eq!(placements[1].policy, "interleave:0-1");
        assert_eq!(placements[1].nodes, [(0, 4 << 20), (1, 2 << 20)]);
        assert!(placements[2].nodes.is_empty());
        let policies: Vec<&str> = placements[2..].iter().map(|placement| placement.policy.as_str()).collect();
        assert_eq!(policies, ["default", "prefer (many):0-1", "weighted interleave=static:0", "prefer:1"]);
        assert_eq!((&placements[3].nodes, &placements[4].nodes), (&vec![(0, 4 << 10)], &vec![(0, 4 << 10)]));
        assert_eq!(parse_numa_maps("zz default").unwrap_err(), "zz default");
        assert!(parse_numa_maps("1 default N0=x").is_err() && parse_numa_maps("1").is_err());
    }

    /// Words of a line and rubbish, in any order.
    const PIECES: &str = "([0-9a-f]{1,18} |default |N[0-9]{1,11}=[0-9]{1,21} |\
                          kernelpagesize_kB=[0-9]{1,18}|\n|.){0,16}";

    proptest! {
        #[test]
        fn no_text_panics(text in PIECES) {
            let _ = parse_numa_maps(&text);
        }
    }
}
