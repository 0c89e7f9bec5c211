//! BOLT as a backend: which words `llvm-bolt` is given, by its version and by what a program is; what it must leave
//! alone; and what it says.
//!
//! BOLT rewrites a linked program: blocks, functions, or both. Blocks are only ever laid out by branches that were
//! counted. Flat samples hit some blocks of a hot path and miss others, so that code which runs is set apart as cold:
//! measured on PostgreSQL that was slower than no layout at all, while an order of functions by the same samples was as
//! good as one by exact counts. [`Work`] has therefore no way to lay out blocks without a file of branches.

mod messages;
mod skip;

use planish_profile::{Program, Rewritable};

pub use messages::Told;
pub use skip::{SkipList, Skipped, known_failures};

/// The version of an `llvm-bolt`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// The first number, which is LLVM's.
    pub major: u32,
    /// The second one.
    pub minor: u32,
}

impl Version {
    /// The oldest whose options are those used here.
    pub const OLDEST: Self = Self { major: 16, minor: 0 };

    /// The first numbers of the versions that tests ran with.
    pub const TRIED: [u32; 3] = [16, 19, 22];

    /// Reads what `llvm-bolt --version` prints.
    #[must_use]
    pub fn parse(told: &str) -> Option<Self> {
        let (_, behind) = told.split_once("LLVM version ")?;
        let mut numbers = behind.split(|letter: char| !letter.is_ascii_digit()).map(str::parse);
        Some(Self { major: numbers.next()?.ok()?, minor: numbers.next()?.ok()? })
    }
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// What is wanted of BOLT. Files are named as BOLT will open them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work<'a> {
    /// Turn sums of branch stacks into a profile of its own form; no program comes of it.
    Aggregate {
        /// What [`planish_profile::perf_data::Traces::text`] wrote.
        traces: &'a str,
    },
    /// Put counters into the program.
    Instrument {
        /// Where the program will write what it has counted.
        fdata: &'a str,
        /// Also write it every so many seconds: for programs that never end, or end by force.
        seconds: Option<u32>,
        /// A file for each process, with its id in the name; else they count together.
        each_process: bool,
    },
    /// Lay the functions of a list together, in its order, and nothing else: any profile will do.
    Functions {
        /// The order.
        order: &'a str,
        /// The same functions as BOLT selects them.
        selected: &'a str,
    },
    /// Lay out blocks and functions by counted branches.
    Blocks {
        /// The profile in BOLT's own form.
        fdata: &'a str,
    },
}

/// One run of `llvm-bolt`.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// The program.
    pub input: &'a str,
    /// What comes of it.
    pub output: &'a str,
    /// What is wanted.
    pub work: Work<'a>,
    /// The patterns of functions that are left alone; only where `work` selects none.
    pub skip: Option<&'a str>,
    /// Words that the user added.
    pub more: &'a [String],
}

impl Call<'_> {
    /// The words for an `llvm-bolt` of a version and a program of a kind.
    #[must_use]
    pub fn words(&self, version: Version, program: &Rewritable) -> Vec<String> {
        let mut words = vec![self.input.to_owned(), "-o".to_owned(), self.output.to_owned()];
        let mut add = |word: String| words.push(word);
        match self.work {
            Work::Aggregate { traces } => {
                // Not perf2bolt: by another name, as packagers give it, that is an llvm-bolt and optimises.
                ["--aggregate-only", "--pa", "-p", traces].map(str::to_owned).into_iter().for_each(&mut add);
                return words;
            }
            Work::Instrument { fdata, seconds, each_process } => {
                add("--instrument".to_owned());
                add(format!("--instrumentation-file={fdata}"));
                // A static program has no end that BOLT could hook into.
                if let Some(seconds) = seconds.or(program.is_static.then_some(1)) {
                    add(format!("--instrumentation-sleep-time={seconds}"));
                }
                if each_process {
                    add("--instrumentation-file-append-pid".to_owned());
                }
            }
            Work::Functions { order, selected } => {
                add("--reorder-functions=user".to_owned());
                add(format!("--function-order={order}"));
                // The others stay where they are, byte by byte: what does not move cannot break.
                add(format!("--funcs-file-no-regex={selected}"));
            }
            Work::Blocks { fdata } => {
                add(format!("--data={fdata}"));
                add("--reorder-blocks=ext-tsp".to_owned());
                add(format!("--reorder-functions={}", function_sort(version)));
                ["--split-functions", "--split-all-cold", "--split-eh", "--dyno-stats"]
                    .map(str::to_owned)
                    .into_iter()
                    .for_each(&mut add);
            }
        }
        if !matches!(self.work, Work::Instrument { .. }) {
            // `__hot_start` and `__hot_end`, for `text verify`; hot text begins on a huge page by default.
            add("--hot-text".to_owned());
            if program.debug_info {
                add("--update-debug-sections".to_owned());
            }
        }
        if let Some(skip) = self.skip {
            add(format!("--skip-funcs-file={skip}"));
        }
        words.extend_from_slice(self.more);
        words
    }
}

/// How an `llvm-bolt` sorts functions best.
fn function_sort(version: Version) -> &'static str {
    const CDSORT_SINCE: u32 = 18;
    if version.major >= CDSORT_SINCE { "cdsort" } else { "hfsort+" }
}

/// Functions of a program as BOLT selects them without patterns: local ones under the number that it gives them.
#[must_use]
pub fn selection(functions: impl Iterator<Item = u32>, program: &Program) -> String {
    let mut text = String::new();
    for index in functions {
        let function = &program.functions()[index as usize];
        text.push_str(&function.name);
        if !function.global && !function.name.contains('/') {
            // The only one of its name.
            text.push_str("/1");
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use planish_profile::FileKind;
    use proptest::prelude::*;

    use super::*;

    fn program(kind: FileKind, is_static: bool, debug_info: bool) -> Rewritable {
        Rewritable { is_static, debug_info, ..Rewritable::of_kind(kind) }
    }

    fn call(work: Work<'_>) -> Call<'_> {
        Call { input: "p", output: "p.new", work, skip: None, more: &[] }
    }

    #[test]
    fn versions_are_read_as_packagers_print_them() {
        for (told, version) in [
            ("Debian LLVM version 16.0.6\n  Optimized build.\nBOLT revision <unknown>\n", Some((16, 0))),
            ("LLVM (http://llvm.org/):\n  LLVM version 21.1.0-rc3\n", Some((21, 1))),
            ("LLVM version 23.0.0git", Some((23, 0))),
            ("GNU ld 2.40", None),
            ("LLVM version x", None),
        ] {
            let version = version.map(|(major, minor)| Version { major, minor });
            assert_eq!(Version::parse(told), version, "{told}");
        }
    }

    #[test]
    fn words_follow_the_version_and_the_kind_of_the_program() {
        let [old, new] = [16, 22].map(|major| Version { major, minor: 1 });
        let plain = program(FileKind::Pie, false, false);
        let words = |call: &Call<'_>, version, program: &_| call.words(version, program).join(" ");
        let blocks = call(Work::Blocks { fdata: "d" });
        assert_eq!(
            words(&blocks, new, &plain),
            "p -o p.new --data=d --reorder-blocks=ext-tsp --reorder-functions=cdsort --split-functions \
             --split-all-cold --split-eh --dyno-stats --hot-text"
        );
        assert!(words(&blocks, old, &plain).contains("--reorder-functions=hfsort+ "));
        let debugged = program(FileKind::Pie, false, true);
        assert!(words(&blocks, new, &debugged).ends_with("--hot-text --update-debug-sections"));
        let counted = call(Work::Instrument { fdata: "/d", seconds: None, each_process: true });
        assert_eq!(
            words(&counted, new, &debugged),
            "p -o p.new --instrument --instrumentation-file=/d --instrumentation-file-append-pid"
        );
        let counted = call(Work::Instrument { fdata: "/d", seconds: None, each_process: false });
        let is_static = program(FileKind::Executable, true, false);
        assert!(words(&counted, new, &is_static).ends_with("--instrumentation-sleep-time=1"));
        let more = ["--icf=safe".to_owned()];
        let skipping = Call { skip: Some("s"), more: &more, ..blocks };
        assert!(words(&skipping, new, &plain).ends_with("--hot-text --skip-funcs-file=s --icf=safe"));
        let sums = call(Work::Aggregate { traces: "t" });
        assert_eq!(words(&sums, new, &debugged), "p -o p.new --aggregate-only --pa -p t");
    }

    proptest! {
        /// Whatever the version and the program, no layout of blocks comes without counted branches.
        #[test]
        fn an_order_of_functions_touches_no_block(major in 0_u32..99, debug: bool, is_static: bool) {
            let work = Work::Functions { order: "o", selected: "s" };
            let program = program(FileKind::Executable, is_static, debug);
            let words = call(work).words(Version { major, minor: 0 }, &program);
            for of_blocks in ["--reorder-blocks", "--split", "--data", "--icf", "--instrument"] {
                prop_assert!(!words.iter().any(|word| word.starts_with(of_blocks)), "{words:?}");
            }
            prop_assert!(words.contains(&"--function-order=o".to_owned()));
        }
    }
}
