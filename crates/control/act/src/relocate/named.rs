//! Parts of the memory of a process, by address or by the name of a mapping, found in the mappings that it has.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use planish_residency::Area;

use super::survey::is_own;

/// A part of the memory of a process, as somebody named it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Named {
    /// These addresses.
    Addresses(Range<u64>),
    /// Every mapping of this name.
    Mapping(String),
}

impl FromStr for Named {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.starts_with(['/', '[']) || text.starts_with("anon_inode:") {
            return Ok(Self::Mapping(text.to_owned()));
        }
        let odd = || {
            "neither addresses in hex (START-END) nor the name of a mapping ([heap], a path) as /proc/PID/maps has them"
                .to_owned()
        };
        let (start, end) = text.split_once('-').ok_or_else(odd)?;
        let range = hex(start).zip(hex(end)).map(|(start, end)| start..end).ok_or_else(odd)?;
        if range.is_empty() {
            return Err("the second address is not above the first one".to_owned());
        }
        Ok(Self::Addresses(range))
    }
}

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Addresses(Range { start, end }) => write!(f, "{start:x}-{end:x}"),
            Self::Mapping(name) => f.write_str(name),
        }
    }
}

/// Digits alone: the number of the standard library may have a sign.
fn hex(text: &str) -> Option<u64> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| u64::from_str_radix(digits, 16).ok())?
}

/// What a name came to in one process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Addresses in whole pages, by address, each within one mapping, with the name of that. What the kernel provides
    /// (`[vdso]`) is left out.
    pub ranges: Vec<(Range<u64>, String)>,
    /// What addresses were widened to, where they were no whole pages.
    pub widened: Option<Range<u64>>,
    /// Whether there is such a mapping at all.
    pub is_there: bool,
    /// Whether something of it is memory of this process alone: nothing else is ever moved.
    pub is_own: bool,
}

/// Finds a part in the mappings of a process, which are in the order of their addresses.
///
/// # Errors
/// Addresses at which nothing is mapped: the first of them.
pub fn find(named: &Named, areas: &[Area], base_bytes: u64) -> Result<Found, Range<u64>> {
    let mut found = Found::default();
    let wanted = match named {
        Named::Addresses(range) => {
            let whole = whole(range, base_bytes);
            if let Some(hole) = hole(&whole, areas) {
                return Err(hole);
            }
            found.widened = (whole != *range).then(|| whole.clone());
            whole
        }
        Named::Mapping(_) => 0..u64::MAX,
    };
    let is_meant = |area: &&Area| match named {
        Named::Addresses(_) => true,
        Named::Mapping(name) => {
            area.name == *name || area.name.strip_suffix(" (deleted)") == Some(name.as_str())
        }
    };
    for area in areas.iter().filter(is_meant) {
        let range = overlap(&area.range, &wanted);
        if range.is_empty() {
            continue;
        }
        found.is_there = true;
        if !is_provided(&area.name) {
            found.is_own |= is_own(area);
            found.ranges.push((range, area.name.clone()));
        }
    }
    Ok(found)
}

/// Pages that the kernel maps into every process, and never moves.
fn is_provided(name: &str) -> bool {
    matches!(name, "[vdso]" | "[vsyscall]" | "[vvar]" | "[vvar_vclock]" | "[uprobes]")
}

/// The first addresses of a range at which nothing is mapped.
fn hole(range: &Range<u64>, areas: &[Area]) -> Option<Range<u64>> {
    let mut reached = range.start;
    for area in areas.iter().filter(|area| !overlap(&area.range, range).is_empty()) {
        if area.range.start > reached {
            return Some(reached..area.range.start);
        }
        reached = area.range.end;
    }
    (reached < range.end).then_some(reached..range.end)
}

/// The addresses of parts by address, each once.
#[must_use]
pub fn merged(parts: &[Found]) -> Vec<Range<u64>> {
    joined(parts.iter().flat_map(|part| part.ranges.iter().map(|(range, _)| range.clone())).collect())
}

/// Ranges by address, none of which touches another.
pub(super) fn joined(mut all: Vec<Range<u64>>) -> Vec<Range<u64>> {
    all.sort_unstable_by_key(|range| range.start);
    let mut joined: Vec<Range<u64>> = Vec::with_capacity(all.len());
    for range in all {
        match joined.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => joined.push(range),
        }
    }
    joined
}

/// What two ranges have in common; an empty one where that is nothing.
pub(super) fn overlap(one: &Range<u64>, other: &Range<u64>) -> Range<u64> {
    let start = one.start.max(other.start);
    start..one.end.min(other.end).max(start)
}

/// The whole units that a range lies in.
pub(super) fn whole(range: &Range<u64>, unit: u64) -> Range<u64> {
    range.start / unit * unit..range.end.div_ceil(unit).saturating_mul(unit)
}

#[cfg(test)]
mod tests {
    use planish_residency::parse_maps;

    use super::*;

    const MAPS: &str = "10000-20000 r-xp 00000000 fe:00 7 /usr/bin/db\n\
                        20000-22000 rw-p 00000000 00:00 0 [heap]\n\
                        22000-30000 rw-p 00000000 00:00 0 \n\
                        40000-50000 rw-s 00000000 00:01 8 /dev/zero (deleted)\n\
                        50000-58000 rw-s 00000000 00:01 0 /SYSV0052e2c1 (deleted)\n\
                        60000-62000 rw-p 00000000 00:00 0 [anon:glibc: malloc]\n\
                        70000-71000 r-xp 00000000 00:00 0 [vdso]\n";

    fn found(text: &str) -> Result<Found, Range<u64>> {
        find(&text.parse().expect("a part"), &parse_maps(MAPS).expect("sound lines"), 0x1000)
    }

    fn ranges(text: &str) -> Vec<Range<u64>> {
        found(text).expect("mapped").ranges.into_iter().map(|(range, _)| range).collect()
    }

    #[test]
    fn addresses_are_hex_and_names_are_as_maps_has_them() {
        let parsed = |text: &str| text.parse::<Named>();
        assert_eq!(parsed("7f00-7f10"), Ok(Named::Addresses(0x7f00..0x7f10)));
        assert_eq!(parsed("0xAB-0xffffffffffffffff"), Ok(Named::Addresses(0xab..u64::MAX)));
        for name in ["[heap]", "/dev/zero (deleted)", "/SYSV0052e2c1", "/a-b", "[anon:a-b]", "anon_inode:[x]"]
        {
            assert_eq!(parsed(name), Ok(Named::Mapping(name.to_owned())));
            assert_eq!(parsed(name).expect("a name").to_string(), name);
        }
        for odd in ["", "-", "7f00", "7f00-", "-7f00", "+7f00-7f10", "heap", "7f00-7f10-7f20", "g-h", "0x-1"]
        {
            assert!(parsed(odd).expect_err(odd).contains("START-END"), "{odd}");
        }
        assert!(parsed("10000000000000000-20000000000000000").is_err(), "beyond 64 bits");
        for odd in ["7f10-7f00", "7f00-7f00"] {
            assert!(parsed(odd).expect_err(odd).contains("not above"), "{odd}");
        }
        assert_eq!(parsed("0x7F00-7f10").expect("addresses").to_string(), "7f00-7f10");
    }

    #[test]
    fn addresses_are_cut_at_mappings_and_widened_to_pages() {
        assert_eq!(ranges("21000-24000"), [0x21000..0x22000, 0x22000..0x24000]);
        let odd = found("21001-23fff").expect("mapped");
        assert_eq!(odd.widened, Some(0x21000..0x24000));
        assert_eq!(odd.ranges, found("21000-24000").expect("mapped").ranges);
        assert_eq!(found("21000-24000").expect("mapped").widened, None);
    }

    #[test]
    fn a_hole_is_named() {
        assert_eq!(found("2f000-41000"), Err(0x30000..0x40000));
        assert_eq!(found("4f000-59000"), Err(0x58000..0x59000));
        assert_eq!(found("0-11000"), Err(0..0x10000));
        assert_eq!(found("30000-30001"), Err(0x30000..0x31000), "the end of a mapping is not in it");
        assert_eq!(found("71000-ffffffffffffffff"), Err(0x71000..u64::MAX));
    }

    #[test]
    fn names_are_whole_and_a_deleted_file_has_its_own() {
        assert_eq!(ranges("[heap]"), vec![0x20000..0x22000]);
        assert_eq!(ranges("/dev/zero"), ranges("/dev/zero (deleted)"));
        assert_eq!(ranges("/SYSV0052e2c1"), vec![0x50000..0x58000]);
        assert_eq!(ranges("[anon:glibc: malloc]"), vec![0x60000..0x62000]);
        let absent = found("/usr/bin").expect("no hole");
        assert_eq!(absent, Found::default(), "no part of a name");
    }

    #[test]
    fn what_is_of_others_is_told_from_what_is_its_own() {
        let told = |text: &str| found(text).map(|found| (found.is_there, found.is_own, found.ranges.len()));
        assert_eq!(told("[heap]"), Ok((true, true, 1)));
        for shared in ["/usr/bin/db", "/dev/zero", "/SYSV0052e2c1", "10000-11000"] {
            assert_eq!(told(shared), Ok((true, false, 1)), "{shared}");
        }
        assert_eq!(told("1f000-21000"), Ok((true, true, 2)));
        assert_eq!(told("[vdso]"), Ok((true, false, 0)), "of the kernel");
    }

    #[test]
    fn parts_that_overlap_are_one() {
        let parts =
            ["22000-25000", "[heap]", "24000-26000", "60000-61000"].map(|text| found(text).expect("mapped"));
        assert_eq!(merged(&parts), [0x20000..0x26000, 0x60000..0x61000]);
        assert!(merged(&[]).is_empty());
    }
}
