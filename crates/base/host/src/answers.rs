//! How a kernel answers writes, as data: the `[[answer]]` rows of a writable recorded machine.
//!
//! Writing to a real kernel is not writing to a file: it refuses, clamps, grants less, reads back otherwise,
//! and changes files that nobody wrote to. Rows say so for the places of a recorded machine; `planish-act`
//! executes them on a copy, so that apply, undo and every refusal are tested without a host that could be
//! harmed.
//!
//! ```toml
//! [[answer]]
//! place = "/proc/irq/24/smp_affinity_list"     # a path or a pattern
//! errno = "EIO"                                # the write fails: a managed interrupt
//! times = 2                                    # ... the first two times only; always without this line
//!
//! [[answer]]
//! place = "/sys/devices/system/node/node{node}/hugepages/hugepages-{kb}kB/nr_hugepages"
//! grant = 100                                  # one write raises the number by at most this much
//! moves = ["/sys/devices/system/node/node{node}/hugepages/hugepages-{kb}kB/free_hugepages"]
//! sums = ["/sys/kernel/mm/hugepages/hugepages-{kb}kB/nr_hugepages"]
//!
//! [[answer]]
//! place = "/proc/sys/vm/nr_hugepages"
//! spreads = "/sys/devices/system/node/node{node}/hugepages/hugepages-2048kB/nr_hugepages"
//!
//! [[answer]]
//! place = "/sys/kernel/mm/transparent_hugepage/enabled"
//! selects = true                               # "always [madvise] never"; a word not offered is EINVAL
//! derives = [{ place = "/proc/sys/vm/min_free_kbytes", value = "67584", when = "always" }]
//!
//! [[answer]]
//! place = "/sys/devices/system/cpu/cpu{cpu}/cpufreq/energy_performance_preference"
//! errno = "EBUSY"                              # ... only while another place says so
//! [answer.errno_while]
//! place = "/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor"
//! value = "performance"
//!
//! [[answer]]
//! place = "/proc/sys/vm/dirty_bytes"
//! range = { min = 8192 }                       # a number outside is EINVAL
//! zeroes = ["/proc/sys/vm/dirty_ratio"]        # the twin
//!
//! [[answer]]
//! place = "/proc/sys/vm/stat_interval"
//! clamp = { max = 60 }                         # a number outside is taken to the edge
//! readback = "1"                               # whatever is written, this is read
//! vanish_after = 1                             # the file is gone after so many writes that succeeded
//!
//! [[answer]]
//! place = "/proc/sys/kernel/sem"
//! tabs = true                                  # several numbers: read with tabs between, as the kernel prints them
//! ```
//!
//! A recording is given the rows of `usual.toml`: what no machine's size or limits change.
//!
//! Of several rows that match a place, the first to set `errno`, `range`, `clamp`, `grant`, `readback`,
//! `spreads` or `vanish_after` counts; lists add up. A write is answered in this order: `vanish_after`,
//! `errno`, `selects`, `range`, `clamp`, `grant`, `tabs`, `readback`; then the value is stored (in brackets where
//! `selects`) and, if it changed, `zeroes`, `moves`, `spreads`, `sums` and `derives` (those without `when` or
//! with the word written) follow. Holes of `place` may stand in every path;
//! in `sums`, holes that it does not name are summed over, and in `spreads`, new holes are spread over.

use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::host::Host;
use crate::pattern::{Captures, Pattern, PatternError};

/// One `[[answer]]` row as written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Row {
    /// Path or pattern of the places that answer so.
    pub place: String,
    /// Name of the error with which the write fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub errno: Option<String>,
    /// How many writes fail before they succeed; all without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub times: Option<u32>,
    /// The write fails only while this holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub errno_while: Option<Condition>,
    /// Numbers outside are refused with EINVAL.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub range: Option<Bounds>,
    /// Numbers outside are taken to the nearest edge.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clamp: Option<Bounds>,
    /// How much one write may raise a number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grant: Option<u64>,
    /// What is read afterwards, whatever was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub readback: Option<String>,
    /// Places that are set to 0.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub zeroes: Vec<String>,
    /// The file lists words and brackets the one in force.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub selects: bool,
    /// The file holds several numbers and shows them with tabs between, however they were written.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub tabs: bool,
    /// Places whose number changes by as much as this one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub moves: Vec<String>,
    /// Places that hold the sum over all places of this row.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sums: Vec<String>,
    /// Pattern of the places over which the number is spread evenly, the first ones taking what is left over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spreads: Option<String>,
    /// Places that the kernel sets by itself when this one changes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub derives: Vec<Derived>,
    /// Writes that succeed before the file is gone; 0: the first write finds it gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vanish_after: Option<u32>,
}

/// Limits of a number; none where absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bounds {
    /// Smallest value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<i64>,
    /// Largest value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<i64>,
}

impl Bounds {
    /// The nearest number within.
    pub fn clamp(&self, value: i64) -> i64 {
        let value = self.max.map_or(value, |max| value.min(max));
        self.min.map_or(value, |min| value.max(min))
    }

    /// Whether the number is within.
    pub fn contain(&self, value: i64) -> bool {
        self.clamp(value) == value
    }
}

/// A place that the kernel sets by itself, and to what.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Derived {
    /// Path; holes of the row's place may stand in it.
    pub place: String,
    /// What it then holds.
    pub value: String,
    /// Only when this was written; whatever was written without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
}

/// That a place holds a value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Condition {
    /// Path; holes of the row's place may stand in it.
    pub place: String,
    /// What it must hold.
    pub value: String,
}

/// How one concrete place answers, its holes filled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// The write fails, and how often before it succeeds (`None`: always).
    pub errno: Option<(Errno, Option<u32>)>,
    /// It fails only while this holds.
    pub errno_while: Option<Condition>,
    /// Numbers outside are refused with EINVAL.
    pub range: Option<Bounds>,
    /// Numbers outside are taken to the nearest edge.
    pub clamp: Option<Bounds>,
    /// How much one write may raise a number.
    pub grant: Option<u64>,
    /// What is read afterwards, whatever was written.
    pub readback: Option<String>,
    /// Paths that are set to 0.
    pub zeroes: Vec<String>,
    /// The file lists words and brackets the one in force.
    pub selects: bool,
    /// The file shows several numbers with tabs between.
    pub tabs: bool,
    /// Paths whose number changes by as much as this one.
    pub moves: Vec<String>,
    /// Paths that hold the sum over all places of a pattern.
    pub sums: Vec<Sum>,
    /// Pattern of the places over which the number is spread.
    pub spreads: Option<Pattern>,
    /// Paths that the kernel sets by itself.
    pub derives: Vec<Derived>,
    /// Writes that succeed before the file is gone.
    pub vanish_after: Option<u32>,
}

/// A path that holds the sum over other places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sum {
    /// Path of the sum.
    pub into: String,
    /// The places that are summed.
    pub over: Pattern,
}

/// All answers of a machine.
#[derive(Debug, Default)]
pub struct Answers {
    rows: Vec<Ready>,
}

/// A row with its patterns read.
#[derive(Debug)]
struct Ready {
    place: Pattern,
    errno: Option<Errno>,
    zeroes: Vec<Pattern>,
    moves: Vec<Pattern>,
    sums: Vec<Pattern>,
    spreads: Option<Pattern>,
    errno_while: Option<(Pattern, String)>,
    derives: Vec<Pattern>,
    row: Row,
}

/// Why a row is none.
#[derive(Debug)]
pub(crate) enum RowError {
    Pattern(PatternError),
    Row(String),
}

impl From<PatternError> for RowError {
    fn from(error: PatternError) -> Self {
        Self::Pattern(error)
    }
}

/// What writes to any kernel do, for the places that a machine has: the rows of a new recording of it. Sizes and limits
/// are those of the machine, and nobody has tried them.
pub(crate) fn usual(host: &Host) -> Vec<Row> {
    #[derive(Deserialize)]
    struct Rows {
        answer: Vec<Row>,
    }
    let meminfo = host.read("/proc/meminfo").unwrap_or_default();
    let size =
        meminfo.lines().find_map(|line| line.strip_prefix("Hugepagesize:")?.trim().strip_suffix(" kB"));
    let text = include_str!("usual.toml").replace("{default}", size.unwrap_or("0"));
    let mut rows = toml::from_str::<Rows>(&text).expect("a test reads it").answer;
    let has = |place: &String| Pattern::parse(place).is_ok_and(|pattern| !host.glob(&pattern).is_empty());
    rows.retain(|row| has(&row.place) && row.spreads.iter().all(has));
    rows
}

impl Answers {
    /// No answers: every write is simply stored.
    pub const fn none() -> Self {
        Self { rows: Vec::new() }
    }

    pub(crate) fn from_rows(rows: &[Row]) -> Result<Self, RowError> {
        let rows = rows.iter().map(Ready::of).collect::<Result<_, _>>()?;
        Ok(Self { rows })
    }

    /// How the place at `path` answers; the default answer where no row speaks of it.
    pub fn for_place(&self, path: &str) -> Answer {
        let mut answer = Answer::default();
        for ready in &self.rows {
            if let Some(captures) = ready.place.captures(path) {
                ready.add_to(&mut answer, &captures);
            }
        }
        answer
    }
}

impl Ready {
    fn of(row: &Row) -> Result<Self, RowError> {
        let place = Pattern::parse(&row.place)?;
        let parse_all =
            |paths: &[String]| paths.iter().map(|path| Pattern::parse(path)).collect::<Result<Vec<_>, _>>();
        let errno = match &row.errno {
            None if row.times.is_some() => {
                return Err(RowError::Row(format!("{place}: `times` without `errno`")));
            }
            None => None,
            Some(name) => Some(
                errno_by_name(name)
                    .ok_or_else(|| RowError::Row(format!("{name:?} is no name of an error")))?,
            ),
        };
        let condition = row.errno_while.as_ref();
        let errno_while =
            condition.map(|held| Pattern::parse(&held.place).map(|place| (place, held.value.clone())));
        let derived: Vec<String> = row.derives.iter().map(|derived| derived.place.clone()).collect();
        let ready = Self {
            errno,
            zeroes: parse_all(&row.zeroes)?,
            moves: parse_all(&row.moves)?,
            sums: parse_all(&row.sums)?,
            spreads: row.spreads.as_deref().map(Pattern::parse).transpose()?,
            errno_while: errno_while.transpose()?,
            derives: parse_all(&derived)?,
            place,
            row: row.clone(),
        };
        ready.check_holes()?;
        Ok(ready)
    }

    /// Every path that will be filled may use holes of the place only.
    fn check_holes(&self) -> Result<(), RowError> {
        let known = self.place.holes();
        let condition = self.errno_while.as_ref().map(|(place, _)| place);
        let filled = self.zeroes.iter().chain(&self.moves).chain(&self.sums).chain(&self.derives);
        for path in filled.chain(condition) {
            if let Some(hole) = path.holes().into_iter().find(|hole| !known.contains(hole)) {
                return Err(RowError::Row(format!("{path}: {hole:?} is no hole of {}", self.place)));
            }
        }
        Ok(())
    }

    fn add_to(&self, answer: &mut Answer, captures: &Captures) {
        let filled = |path: &Pattern| path.fill(captures).expect("`check_holes` allows known holes only");
        if let (None, Some(errno)) = (answer.errno, self.errno) {
            answer.errno = Some((errno, self.row.times));
            let condition = self.errno_while.as_ref();
            answer.errno_while =
                condition.map(|(place, value)| Condition { place: filled(place), value: value.clone() });
        }
        answer.range = answer.range.or(self.row.range);
        answer.clamp = answer.clamp.or(self.row.clamp);
        answer.grant = answer.grant.or(self.row.grant);
        answer.selects |= self.row.selects;
        answer.tabs |= self.row.tabs;
        answer.vanish_after = answer.vanish_after.or(self.row.vanish_after);
        if answer.readback.is_none() {
            answer.readback.clone_from(&self.row.readback);
        }
        if answer.spreads.is_none() {
            answer.spreads = self.spreads.as_ref().map(|over| over.bind(captures));
        }
        answer.zeroes.extend(self.zeroes.iter().map(filled));
        answer.moves.extend(self.moves.iter().map(filled));
        answer.sums.extend(
            self.sums.iter().map(|into| Sum { into: filled(into), over: self.summed(into, captures) }),
        );
        let derives = self.derives.iter().zip(&self.row.derives);
        answer.derives.extend(derives.map(|(place, row)| Derived { place: filled(place), ..row.clone() }));
    }

    /// The places of this row that `into` sums: the holes that it names are fixed.
    fn summed(&self, into: &Pattern, captures: &Captures) -> Pattern {
        let named = into.holes();
        let fixed = captures.iter().filter(|(hole, _)| named.contains(&hole.as_str()));
        self.place.bind(&fixed.map(|(hole, value)| (hole.clone(), value.clone())).collect())
    }
}

/// The errors that a kernel answers a write with, by name.
pub(crate) fn errno_by_name(name: &str) -> Option<Errno> {
    Some(match name {
        "EACCES" => Errno::ACCESS,
        "EAGAIN" => Errno::AGAIN,
        "EBUSY" => Errno::BUSY,
        "EINVAL" => Errno::INVAL,
        "EIO" => Errno::IO,
        "ENODATA" => Errno::NODATA,
        "ENODEV" => Errno::NODEV,
        "ENOENT" => Errno::NOENT,
        "ENOMEM" => Errno::NOMEM,
        "ENOSYS" => Errno::NOSYS,
        "ENXIO" => Errno::NXIO,
        "EOPNOTSUPP" => Errno::OPNOTSUPP,
        "EPERM" => Errno::PERM,
        "ERANGE" => Errno::RANGE,
        "EROFS" => Errno::ROFS,
        _ => return None,
    })
}

/// The name of an error, for those that [`errno_by_name`] knows; `EIO` for all others.
pub(crate) fn name_of_errno(errno: Errno) -> &'static str {
    match errno {
        Errno::ACCESS => "EACCES",
        Errno::AGAIN => "EAGAIN",
        Errno::BUSY => "EBUSY",
        Errno::INVAL => "EINVAL",
        Errno::NODATA => "ENODATA",
        Errno::NODEV => "ENODEV",
        Errno::NOENT => "ENOENT",
        Errno::NOMEM => "ENOMEM",
        Errno::NOSYS => "ENOSYS",
        Errno::NXIO => "ENXIO",
        Errno::OPNOTSUPP => "EOPNOTSUPP",
        Errno::PERM => "EPERM",
        Errno::RANGE => "ERANGE",
        Errno::ROFS => "EROFS",
        _ => "EIO",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answers(text: &str) -> Result<Answers, RowError> {
        #[derive(Deserialize)]
        struct File {
            answer: Vec<Row>,
        }
        let file: File = toml::from_str(text).unwrap();
        Answers::from_rows(&file.answer)
    }

    const POOLS: &str = r#"
        [[answer]]
        place = "/node{node}/hugepages-2048kB/nr"
        grant = 7
        sums = ["/proc/nr_hugepages"]

        [[answer]]
        place = "/node{node}/hugepages-{kb}kB/nr"
        grant = 100
        moves = ["/node{node}/hugepages-{kb}kB/free"]
        sums = ["/sys/hugepages-{kb}kB/nr"]

        [[answer]]
        place = "/proc/nr_hugepages"
        spreads = "/node{node}/hugepages-2048kB/nr"
    "#;

    #[test]
    fn the_first_row_counts_and_lists_add_up() {
        let answer = answers(POOLS).unwrap().for_place("/node1/hugepages-2048kB/nr");
        assert_eq!(answer.grant, Some(7));
        assert_eq!(answer.moves, ["/node1/hugepages-2048kB/free"]);
        let sums: Vec<(&str, &str)> =
            answer.sums.iter().map(|sum| (sum.into.as_str(), sum.over.as_str())).collect();
        let over = "/node{node}/hugepages-2048kB/nr";
        assert_eq!(sums, [("/proc/nr_hugepages", over), ("/sys/hugepages-2048kB/nr", over)]);
        let big = answers(POOLS).unwrap().for_place("/node0/hugepages-1048576kB/nr");
        assert_eq!((big.grant, big.sums.len()), (Some(100), 1));
    }

    #[test]
    fn a_total_is_spread_over_its_parts() {
        let answer = answers(POOLS).unwrap().for_place("/proc/nr_hugepages");
        assert_eq!(answer.spreads.unwrap().as_str(), "/node{node}/hugepages-2048kB/nr");
        assert_eq!(answers(POOLS).unwrap().for_place("/proc/other"), Answer::default());
    }

    #[test]
    fn conditions_and_derived_places_have_their_holes_filled() {
        let text = r#"
            [[answer]]
            place = "/cpu{cpu}/epp"
            errno = "EBUSY"
            errno_while = { place = "/cpu{cpu}/governor", value = "performance" }
            [[answer]]
            place = "/cpu{cpu}/governor"
            derives = [{ place = "/cpu{cpu}/epp", value = "performance", when = "performance" }]
        "#;
        let answers = answers(text).unwrap();
        let epp = answers.for_place("/cpu3/epp");
        assert_eq!(epp.errno, Some((Errno::BUSY, None)));
        assert_eq!(epp.errno_while.unwrap().place, "/cpu3/governor");
        let derived = &answers.for_place("/cpu3/governor").derives[0];
        assert_eq!((derived.place.as_str(), derived.when.as_deref()), ("/cpu3/epp", Some("performance")));
    }

    #[test]
    fn rows_that_mean_nothing_are_refused() {
        for odd in [
            "place = 'relative'",
            "place = '/a'\nerrno = 'EWHAT'",
            "place = '/a'\ntimes = 2",
            "place = '/a'\nerrno = 'EIO'\nerrno_while = { place = '/b{x}', value = '1' }",
            "place = '/a{x}'\nzeroes = ['/b{y}']",
            "place = '/a{x}'\nmoves = ['/b{x']",
        ] {
            assert!(answers(&format!("[[answer]]\n{odd}")).is_err(), "{odd}");
        }
    }

    #[test]
    fn names_of_errors_round_trip() {
        for name in ["EACCES", "EBUSY", "EIO", "EINVAL", "ENOENT", "EPERM", "EROFS", "ENODATA"] {
            assert_eq!(name_of_errno(errno_by_name(name).unwrap()), name);
        }
    }

    #[test]
    fn bounds_hold_and_take_to_the_edge() {
        let bounds = Bounds { min: Some(1), max: Some(9) };
        assert_eq!([0, 5, 99].map(|value| bounds.clamp(value)), [1, 5, 9]);
        assert!(bounds.contain(9) && !bounds.contain(10) && Bounds::default().contain(i64::MIN));
    }
}
