//! The kernel command line as the kernel takes it apart (`lib/cmdline.c`, `kernel/params.c`).

use crate::{Knob, ValueType, is_by_size};

/// The arguments of a command line, up to the `--` behind which they are for process 1. Blanks inside double quotes
/// do not separate.
pub fn arguments(cmdline: &str) -> impl Iterator<Item = &str> {
    let mut quoted = false;
    let separates = move |c: char| {
        quoted ^= c == '"';
        c.is_whitespace() && !quoted
    };
    cmdline.split(separates).filter(|argument| !argument.is_empty()).take_while(|argument| *argument != "--")
}

/// Name and value of an argument, quotes taken off; a bare word has no value.
#[must_use]
pub fn parts(argument: &str) -> (&str, Option<&str>) {
    let bare = |text| str::trim_matches(text, '"');
    match bare(argument).split_once('=') {
        Some((name, value)) => (bare(name), Some(bare(value))),
        None => (bare(argument), None),
    }
}

/// Whether two names mean the same parameter: the kernel takes dashes for underscores.
#[must_use]
pub fn same_name(a: &str, b: &str) -> bool {
    let normal = |c: u8| if c == b'-' { b'_' } else { c };
    a.len() == b.len() && a.bytes().zip(b.bytes()).all(|(a, b)| normal(a) == normal(b))
}

/// A size with the kernel's suffixes: `2M`, `1G`, `2097152`.
#[must_use]
pub fn size(text: &str) -> Option<u64> {
    let (digits, shift) = match text.as_bytes().last()? {
        b'k' | b'K' => (&text[..text.len() - 1], 10),
        b'm' | b'M' => (&text[..text.len() - 1], 20),
        b'g' | b'G' => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

/// What a command line gives a boot parameter. `default_page` is the running kernel's default huge-page size, which
/// the first `hugepages=` counts in.
#[must_use]
pub fn value(cmdline: &str, knob: &Knob, default_page: Option<u64>) -> Option<String> {
    let words: Vec<&str> = arguments(cmdline).collect();
    found(&words, knob, default_page).map(|(value, _)| value)
}

/// What some arguments give a boot parameter, and which of them does: of several the last counts, unless the kernel
/// adds them up. A bare word is `1`.
#[must_use]
pub fn found(words: &[&str], knob: &Knob, default_page: Option<u64>) -> Option<(String, usize)> {
    let (wanted, counted) = knob.boot_parameter()?;
    let counted = counted.map(size);
    let mut page = default_page;
    let mut found: Option<(String, usize)> = None;
    for (index, argument) in words.iter().enumerate() {
        let (name, value) = parts(argument);
        if name == "hugepagesz" {
            page = value.and_then(size);
        }
        let counts = counted.is_none_or(|counted| counted == page);
        if same_name(name, wanted) && counts {
            let flag = matches!(knob.r#type, ValueType::Flag { .. });
            let value = value.map(str::to_owned).or_else(|| flag.then(|| "1".to_owned()));
            found = match (value, found) {
                (Some(value), Some((before, _))) if is_by_size(wanted) => {
                    Some((format!("{before};{value}"), index))
                }
                (Some(value), _) => Some((value, index)),
                (None, before) => before,
            };
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Catalogue, KnobId};

    fn of(cmdline: &str, id: &str) -> Option<String> {
        let catalogue = Catalogue::embedded().expect("sound");
        value(cmdline, catalogue.knob(&KnobId::new(id)).expect("a row"), Some(2 << 20))
    }

    #[test]
    fn the_last_of_several_counts_and_process_1_has_its_own() {
        let line = "BOOT_IMAGE=/vmlinuz quiet isolcpus=1 isolcpus=domain,2-7 -- isolcpus=3";
        assert_eq!(of(line, "boot.isolcpus").as_deref(), Some("domain,2-7"));
        assert_eq!(of(line, "boot.nohz_full"), None);
    }

    #[test]
    fn what_is_said_of_each_size_is_added_up() {
        let line = "thp_anon=64K:always quiet thp_anon=2M:inherit;1M:never thp_shmem=64K:always";
        assert_eq!(of(line, "boot.thp_anon").as_deref(), Some("64K:always;2M:inherit;1M:never"));
        assert_eq!(of(line, "boot.thp_shmem").as_deref(), Some("64K:always"));
    }

    #[test]
    fn pages_are_counted_in_the_size_before_them() {
        let line = "hugepagesz=2M hugepages=512 hugepagesz=1G hugepages=16 default_hugepagesz=1G";
        assert_eq!(of(line, "boot.hugepages.2m").as_deref(), Some("512"));
        assert_eq!(of(line, "boot.hugepages.1g").as_deref(), Some("16"));
        assert_eq!(of(line, "boot.default_hugepagesz").as_deref(), Some("1G"));
        assert_eq!(of("hugepages=8", "boot.hugepages.2m").as_deref(), Some("8"), "in the default size");
        assert_eq!(of("hugepages=8", "boot.hugepages.1g"), None);
    }

    #[test]
    fn dashes_quotes_and_bare_words_are_taken_as_the_kernel_takes_them() {
        assert_eq!(of("intel-iommu=on", "boot.intel_iommu").as_deref(), Some("on"));
        assert_eq!(of("x=\"a isolcpus=1\" nosmt", "boot.isolcpus"), None);
        assert_eq!(of("\"isolcpus=1\"", "boot.isolcpus").as_deref(), Some("1"));
        assert_eq!(of("nosoftlockup quiet", "boot.nosoftlockup").as_deref(), Some("1"));
    }

    proptest! {
        #[test]
        fn odd_command_lines_are_passed_over(text in "\\PC{0,200}") {
            of(&text, "boot.hugepages.2m");
        }

        #[test]
        fn sizes_with_suffixes(number in 1_u64..4096) {
            prop_assert_eq!(size(&format!("{number}M")), Some(number << 20));
            prop_assert_eq!(size(&number.to_string()), Some(number));
        }
    }
}
