//! What `llvm-bolt` prints. Its words change from version to version, so that nothing here decides what is done to a
//! program but the names of functions in errors, and these only where the program has such a function.

/// What one run told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// Errors, without the mark before them.
    pub errors: Vec<String>,
    /// Words at places where errors name functions, each with its error.
    pub named: Vec<(String, String)>,
    /// Functions with a profile, and all functions.
    pub profiled: Option<(u64, u64)>,
    /// Functions whose profile does not fit their code.
    pub stale: u64,
    /// Taken branches before and after, as the profile has them.
    pub taken_branches: Option<(u64, u64)>,
}

impl Told {
    /// Reads both streams of a run.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let mut told = Self::default();
        let mut taken = Vec::new();
        for line in text.lines() {
            if let Some(error) = error(line) {
                told.named.extend(named(error).map(|name| (name.to_owned(), error.to_owned())));
                told.errors.push(error.to_owned());
            } else if let Some(counted) = profiled(line) {
                told.profiled = Some(counted);
            } else if let Some(count) = stale(line) {
                told.stale = count;
            } else {
                taken.extend(taken_branches(line));
            }
        }
        if let [before, after, ..] = taken[..] {
            told.taken_branches = Some((before, after));
        }
        told
    }

    /// The share of functions with a profile whose code is another one by now, from 0 to 1.
    #[must_use]
    pub fn stale_share(&self) -> f64 {
        self.profiled.map_or(0.0, |(profiled, _)| self.stale as f64 / (profiled + self.stale).max(1) as f64)
    }
}

/// The words of an error. Where it is about a file, the name of the program and of the file come first.
fn error(line: &str) -> Option<&str> {
    let marks = ["PERF2BOLT-ERROR: ", "BOLT-ERROR: ", "LLVM ERROR: "];
    marks.into_iter().find_map(|mark| Some(line.split_once(mark)?.1.trim())).filter(|error| !error.is_empty())
}

/// What may be the name of a function: the word behind `function`, `symbol` or `for`. Names end with the number of
/// their aliases: `interpret/1(*2)`.
fn named(error: &str) -> impl Iterator<Item = &str> {
    let words = error.split_whitespace();
    let behind = error.split_whitespace().skip(1);
    words.zip(behind).filter(|(word, _)| matches!(*word, "function" | "symbol" | "for")).filter_map(
        |(_, name)| {
            let name = name.trim_matches(['\'', '"', '`']).trim_end_matches(['.', ',', ':', ';', '\'', '"']);
            let name = name.rsplit_once("(*").map_or(name, |(name, _)| name);
            (!name.is_empty()).then_some(name)
        },
    )
}

/// `BOLT-INFO: 9 out of 14 functions in the binary (64.3%) have non-empty execution profile`
fn profiled(line: &str) -> Option<(u64, u64)> {
    let rest = line.strip_prefix("BOLT-INFO: ")?;
    let (profiled, rest) = rest.split_once(" out of ")?;
    let (all, rest) = rest.split_once(' ')?;
    let counted = rest.starts_with("functions") && rest.ends_with("have non-empty execution profile");
    counted.then_some((profiled.parse().ok()?, all.parse().ok()?))
}

/// `BOLT-WARNING: 1 (33.3% of all profiled) function have invalid (possibly stale) profile. ...`
fn stale(line: &str) -> Option<u64> {
    let rest = line.strip_prefix("BOLT-WARNING: ")?;
    let (count, rest) = rest.split_once(' ')?;
    (rest.contains("of all profiled") && rest.contains("stale")).then(|| count.parse().ok()).flatten()
}

/// A row of the table of dyno-stats: `980000 : taken branches (-12.0%)`. One table before, one after.
fn taken_branches(line: &str) -> Option<u64> {
    let (count, what) = line.trim().split_once(" : ")?;
    let what = what.split(" (").next()?;
    (what == "taken branches").then(|| count.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn names(line: &str) -> Vec<String> {
        Told::parse(line).named.into_iter().map(|(name, _)| name).collect()
    }

    #[test]
    fn errors_name_the_functions_that_they_are_about() {
        // As llvm-bolt 19.1.7 prints it.
        let labels = "BOLT-ERROR: unable to get new address corresponding to input address 0x12e0 in function \
                      interp/1(*2). Consider adding this function to --skip-funcs=...";
        // A word that is no name is no function of the program either.
        assert_eq!(names(labels), ["interp/1", "to"]);
        // From the texts in llvm-bolt 22.1.8: none of these was seen to happen here.
        assert_eq!(names("BOLT-ERROR: parent function not found for f.cold/1\n"), ["not", "f.cold/1"]);
        assert_eq!(
            names("BOLT-ERROR: owning FILE symbol not found for symbol g.cold/2"),
            ["not", "symbol", "g.cold/2"]
        );
        assert_eq!(names("BOLT-ERROR: unable to fix CFI state for function h. Skipping."), ["function", "h"]);
        assert_eq!(names("BOLT-ERROR: cannot ignore non-empty function _ZN1aE(*3)"), ["_ZN1aE"]);
        assert_eq!(names("BOLT-WARNING: failed to patch entries in function f"), [""; 0]);
    }

    #[test]
    fn an_error_about_a_file_stands_behind_its_name() {
        let line =
            "/usr/bin/llvm-bolt: 'p': BOLT-ERROR: input file was processed by BOLT. Cannot re-optimize.";
        let told = Told::parse(line);
        assert_eq!(told.errors, ["input file was processed by BOLT. Cannot re-optimize."]);
        assert_eq!(Told::parse("LLVM ERROR: out of memory\nBOLT-ERROR: ").errors, ["out of memory"]);
    }

    #[test]
    fn counts_are_read_from_what_three_versions_print() {
        let text = "\
BOLT-INFO: 9 out of 14 functions in the binary (64.3%) have non-empty execution profile
BOLT-WARNING: 1 (10.0% of all profiled) function have invalid (possibly stale) profile. Use -report-stale to see it.
BOLT-WARNING: 20000 out of 2040000 samples in the binary (1.0%) belong to functions with invalid profile.
BOLT-INFO: program-wide dynostats after all optimizations before SCTC and FOP:

             2020000 : total branches
              980000 : taken branches
              980000 : taken conditional branches

             2020000 : total branches (=)
              540000 : taken branches (-44.9%)
";
        let told = Told::parse(text);
        assert_eq!((told.profiled, told.stale), (Some((9, 14)), 1));
        assert_eq!(told.taken_branches, Some((980_000, 540_000)));
        assert!((told.stale_share() - 0.1).abs() < 1e-9);
        assert_eq!(Told::default().stale_share(), 0.0);
    }

    proptest! {
        #[test]
        fn nothing_that_is_printed_stops_the_reading(text in "(BOLT-(ERROR|INFO|WARNING): )?.{0,60}\n?.{0,60}") {
            let told = Told::parse(&text);
            prop_assert!(told.named.iter().all(|(name, error)| !name.is_empty() && error.contains(name.as_str())));
        }
    }
}
