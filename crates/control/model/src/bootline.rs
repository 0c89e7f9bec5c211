//! The kernel command line as the kernel takes it apart (`lib/cmdline.c`, `kernel/params.c`).

use crate::{BootCpus, Knob, Several, ValueType};

mod pools;

pub use pools::{Pool, pools};

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

/// What of a kernel decides how it reads its command line. Of one that is not known the newest rules are taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kernel {
    version: Option<(u32, u32)>,
    /// The default huge-page size of the running kernel: what `hugepages=` counts in that no size stands before.
    page: Option<u64>,
    /// The most arguments of huge pages that it keeps.
    huge_arguments: Option<usize>,
}

impl Kernel {
    /// By its release (`6.12.57+deb13-amd64`), its architecture, and the default size of its huge pages.
    #[must_use]
    pub fn new(release: &str, arch: &str, page: Option<u64>) -> Self {
        let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse);
        let version = match (numbers.next(), numbers.next()) {
            (Some(Ok(major)), Some(Ok(minor))) => Some((major, minor)),
            _ => None,
        };
        // `HUGE_MAX_CMDLINE_ARGS` of mm/hugetlb.c: twice `HUGE_MAX_HSTATE` of the architecture, and one.
        let most = match arch {
            "x86_64" => Some(5),
            "aarch64" => Some(9),
            _ => None,
        };
        Self { version, page, huge_arguments: most.filter(|_| version.is_none_or(|own| own >= (6, 15))) }
    }

    fn is_older(self, version: (u32, u32)) -> bool {
        self.version.is_some_and(|own| own < version)
    }

    /// Which of several counts here. Before its rule was that of the row, the last one did, as it does for most: before
    /// `kernel/sched/isolation.c`, and before default_hugepagesz= was read where it stands.
    fn several(self, knob: &Knob) -> Several {
        match (knob.several(), knob.boot_parameter()) {
            (Several::First, Some(("isolcpus" | "nohz_full", _))) if self.is_older((4, 15)) => Several::Last,
            (Several::First, Some(("default_hugepagesz", _))) if self.is_older((5, 8)) => Several::Last,
            (several, _) => several,
        }
    }
}

/// Whether a kernel of this release takes one list of CPUs for isolcpus= and nohz_full=, and drops the second where it
/// is for others (`housekeeping_setup` of `kernel/sched/isolation.c`, since it is there and up to Linux 5.18). What the
/// kernels of Red Hat have taken over of that is not in their releases: of them it is not known, and `check` tells.
#[must_use]
pub fn takes_one_list(release: &str) -> bool {
    is_of_one_list(release) && !release.contains(".el")
}

/// Whether it is not known of a kernel of this release whether it takes one list for both: see [`takes_one_list`].
#[must_use]
pub fn may_take_one_list(release: &str) -> bool {
    is_of_one_list(release) && release.contains(".el")
}

fn is_of_one_list(release: &str) -> bool {
    let kernel = Kernel::new(release, "", None);
    kernel.version.is_some() && !kernel.is_older((4, 15)) && kernel.is_older((5, 18))
}

/// What a command line gives a boot parameter.
#[must_use]
pub fn value(cmdline: &str, knob: &Knob, kernel: Kernel) -> Option<String> {
    let words: Vec<&str> = arguments(cmdline).collect();
    found(&words, knob, kernel).map(|(value, _)| value)
}

/// What the kernel takes of some arguments for a boot parameter, and which of them it is: of several as the row says
/// ([`Knob::several`]). A bare word is `1`.
#[must_use]
pub fn found(words: &[&str], knob: &Knob, kernel: Kernel) -> Option<(String, usize)> {
    let (_, counted) = knob.boot_parameter()?;
    if let Some(counted) = counted {
        let counted = size(counted)?;
        let pool = pools(words, kernel).into_iter().find(|pool| pool.page_bytes == counted)?;
        return Some((pool.pages, pool.index));
    }
    let mut all = given(words, knob);
    match kernel.several(knob) {
        Several::Last => all.last(),
        Several::Together => all.reduce(|(before, _), (value, index)| (format!("{before};{value}"), index)),
        Several::First => {
            // What it cannot read it passes over, and what comes next is the first.
            let first = all.find(|(value, _)| BootCpus::parse(value).is_some() || size(value).is_some());
            let (mut first, index) = first.or_else(|| given(words, knob).next())?;
            for (later, _) in all {
                first = with_words_of(&first, &later).unwrap_or(first);
            }
            Some((first, index))
        }
    }
}

/// What is given for a boot parameter of which the first counts, and is not taken: with the index of each.
#[must_use]
pub fn passed_over(words: &[&str], knob: &Knob, kernel: Kernel) -> Vec<(String, usize)> {
    if kernel.several(knob) != Several::First {
        return Vec::new();
    }
    let taken = found(words, knob, kernel);
    let is_other = |(value, index): &(String, usize)| {
        taken.as_ref().is_none_or(|(own, at)| index != at && !is_within(value, own, knob))
    };
    given(words, knob).filter(is_other).collect()
}

/// Whether one value says nothing that the other one does not.
fn is_within(value: &str, whole: &str, knob: &Knob) -> bool {
    let is_same = |text: &str| knob.r#type.same(text, whole);
    is_same(value) || with_words_of(value, whole).is_some_and(|all| is_same(&all))
}

/// Each value that some words give a boot parameter, with the index of its word. Pages are those of its size: of the
/// last one that is said before them.
fn given<'a>(words: &'a [&str], knob: &'a Knob) -> impl Iterator<Item = (String, usize)> + 'a {
    let (wanted, counted) = knob.boot_parameter().unwrap_or_default();
    let counted = counted.map(size);
    let is_flag = matches!(knob.r#type, ValueType::Flag { .. });
    let mut page = None;
    words.iter().enumerate().filter_map(move |(index, argument)| {
        let (name, value) = parts(argument);
        if is_size(name) {
            page = value.and_then(size);
        }
        if !same_name(name, wanted) || counted.is_some_and(|counted| counted != page) {
            return None;
        }
        let value = value.map(str::to_owned).or_else(|| is_flag.then(|| "1".to_owned()))?;
        Some((value, index))
    })
}

/// Whether an argument says the size of the pages behind it.
fn is_size(name: &str) -> bool {
    ["hugepagesz", "default_hugepagesz"].contains(&name)
}

/// A list of CPUs with the words of a later one, which the kernel takes with it where both are for the same CPUs
/// (`housekeeping_setup`). `None` where there are none to take.
fn with_words_of(first: &str, later: &str) -> Option<String> {
    let (own, other) = (BootCpus::parse(first)?, BootCpus::parse(later)?);
    let mut words = own.words_meant();
    let count = words.len();
    words.extend(other.words_meant());
    if words.len() == count || !own.same_cpus(&other) {
        return None;
    }
    let words = words.into_iter().chain(first.split(',').skip(own.words.len()));
    Some(words.collect::<Vec<_>>().join(","))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Catalogue, KnobId};

    fn kernel(release: &str) -> Kernel {
        Kernel::new(release, "x86_64", Some(2 << 20))
    }

    fn of(cmdline: &str, id: &str) -> Option<String> {
        let catalogue = Catalogue::embedded().expect("sound");
        value(cmdline, catalogue.knob(&KnobId::new(id)).expect("a row"), kernel("6.12.1"))
    }

    #[test]
    fn the_last_of_several_counts_and_process_1_has_its_own() {
        let line = "BOOT_IMAGE=/vmlinuz quiet rcu_nocbs=1 rcu_nocbs=2-7 -- rcu_nocbs=3";
        assert_eq!(of(line, "boot.rcu_nocbs").as_deref(), Some("2-7"));
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

    fn on(release: &str, cmdline: &str, id: &str) -> Option<String> {
        let catalogue = Catalogue::embedded().expect("sound");
        value(cmdline, catalogue.knob(&KnobId::new(id)).expect("a row"), kernel(release))
    }

    /// mm/hugetlb.c of Linux 5.4, 5.14 and 6.18.
    #[test]
    fn a_size_of_huge_pages_is_taken_once() {
        let (two, one, default) = ("boot.hugepages.2m", "boot.hugepages.1g", "boot.default_hugepagesz");
        for (line, id, [old, new]) in [
            ("hugepagesz=1G hugepages=4 hugepagesz=1G hugepages=2", one, [Some("4"), Some("4")]),
            ("hugepagesz=1G hugepages=1 hugepages=7", one, [Some("1"), Some("1")]),
            (
                "default_hugepagesz=2M hugepages=2048 hugepagesz=2M hugepages=4096",
                two,
                [Some("4096"), Some("2048")],
            ),
            ("default_hugepagesz=1G hugepagesz=1G hugepages=3", one, [Some("3"), Some("3")]),
            ("hugepages=8 default_hugepagesz=1G hugepages=4", one, [None, Some("4")]),
            ("hugepages=8 hugepagesz=2M hugepages=5", two, [Some("5"), Some("8")]),
            ("hugepagesz=1G hugepages=0 hugepagesz=1G hugepages=2", one, [Some("0"), Some("0")]),
            (
                "hugepagesz=1G hugepages=4 hugepagesz=2M hugepages=5 hugepagesz=1G",
                two,
                [Some("5"), Some("5")],
            ),
            ("hugepagesz=1G hugepages=4 hugepagesz=2M hugepagesz=1G hugepages=9", two, [Some("9"), None]),
            ("hugepagesz=odd hugepages=9 hugepages=3", two, [Some("3"), Some("3")]),
            ("default_hugepagesz=1G default_hugepagesz=2M", default, [Some("2M"), Some("1G")]),
        ] {
            assert_eq!(on("5.4.0-1", line, id).as_deref(), old, "5.4: {line}");
            for release in ["5.8.0", "5.14.0-570.12.1.el9_6.x86_64", "6.18.44"] {
                assert_eq!(on(release, line, id).as_deref(), new, "{release}: {line}");
            }
        }
        // A default one of 2 MiB that is called so by what runs: the old kernel gives it what no size stands before.
        assert_eq!(on("5.4.0", "default_hugepagesz=2M hugepages=8", two).as_deref(), Some("8"));
    }

    #[test]
    fn since_linux_6_15_there_is_room_for_so_many_arguments_of_huge_pages() {
        let line = "default_hugepagesz=1G hugepagesz=1G hugepages=4 hugepagesz=1G hugepages=4 hugepagesz=2M \
                    hugepages=9";
        assert_eq!(on("6.14.2", line, "boot.hugepages.2m").as_deref(), Some("9"));
        assert_eq!(on("6.15.0", line, "boot.hugepages.2m"), None);
        assert_eq!(on("6.18.44", line, "boot.hugepages.1g").as_deref(), Some("4"));
    }

    /// kernel/sched/isolation.c since Linux 4.15, and kernel/sched/core.c before.
    #[test]
    fn a_second_list_of_other_cpus_is_thrown_away() {
        for (line, id, [old, new]) in [
            (
                "isolcpus=domain,managed_irq,2,6 isolcpus=1,5",
                "boot.isolcpus",
                ["1,5", "domain,managed_irq,2,6"],
            ),
            (
                "isolcpus=2-3 isolcpus=managed_irq,2,3",
                "boot.isolcpus",
                ["managed_irq,2,3", "domain,managed_irq,2-3"],
            ),
            ("isolcpus=domain,2-3 isolcpus=2-3", "boot.isolcpus", ["2-3", "domain,2-3"]),
            ("isolcpus=x isolcpus=2-3", "boot.isolcpus", ["2-3", "2-3"]),
            ("nohz_full=2,6 nohz_full=1,5", "boot.nohz_full", ["1,5", "2,6"]),
            ("rcu_nocbs=2,6 rcu_nocbs=1,5", "boot.rcu_nocbs", ["1,5", "1,5"]),
            ("irqaffinity=0 irqaffinity=0-1", "boot.irqaffinity", ["0-1", "0-1"]),
            (
                "transparent_hugepage=always transparent_hugepage=never",
                "boot.transparent_hugepage",
                ["never"; 2],
            ),
        ] {
            assert_eq!(on("4.14.9", line, id).as_deref(), Some(old), "4.14: {line}");
            for release in ["4.15.0", "5.14.0-570.12.1.el9_6.x86_64", "6.18.44", ""] {
                assert_eq!(on(release, line, id).as_deref(), Some(new), "{release}: {line}");
            }
        }
    }

    #[test]
    fn what_is_given_in_vain_is_named() {
        let lost = |line: &str, id: &str| {
            let words: Vec<&str> = arguments(line).collect();
            let catalogue = Catalogue::embedded().expect("sound");
            let knob = catalogue.knob(&KnobId::new(id)).expect("a row");
            let lost = passed_over(&words, knob, kernel("6.12.1"));
            lost.into_iter().map(|(value, index)| format!("{value}@{index}")).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(lost("hugepagesz=1G hugepages=4 hugepagesz=1G hugepages=2", "boot.hugepages.1g"), "2@3");
        assert_eq!(lost("hugepagesz=1G hugepages=4 hugepagesz=1G hugepages=4", "boot.hugepages.1g"), "");
        assert_eq!(lost("isolcpus=2-3 isolcpus=managed_irq,2,3 isolcpus=1", "boot.isolcpus"), "1@2");
        assert_eq!(lost("rcu_nocbs=2 rcu_nocbs=1", "boot.rcu_nocbs"), "", "the last counts");
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
