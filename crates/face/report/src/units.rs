//! Numbers with their units, as people read them. Every number of a text report goes through here.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::time::{Duration, UNIX_EPOCH};

pub use planish_model::units::{bytes, counted};

/// Digits that a measured value shows.
const DIGITS: i32 = 4;

/// A text without what would steer a terminal: values of a host and words of a plan file come from others, and could
/// hide the lines above them. Line breaks and tabs stay.
#[must_use]
pub fn harmless(text: &str) -> Cow<'_, str> {
    if text.contains(steers) { text.replace(steers, "\u{fffd}").into() } else { text.into() }
}

/// The same in one line: a name with a line break in it could forge the next one.
#[must_use]
pub fn one_line(text: &str) -> String {
    harmless(text).replace(['\n', '\t'], " ")
}

/// Whether a terminal would obey a character instead of showing it.
pub(crate) fn steers(c: char) -> bool {
    let turns_around = matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    turns_around || (c.is_control() && c != '\n' && c != '\t')
}

/// A fraction as a signed percentage: `+3.1 %`.
#[must_use]
pub fn gain(fraction: f64) -> String {
    format!("{:+.1} %", fraction * 100.0)
}

/// A span of time: `40 ms`, `12.3 s`, `3 min 20 s`, `2 h 5 min`.
#[must_use]
pub fn seconds(span: f64) -> String {
    let whole = span.round() as u64;
    let minutes = (span / 60.0).round() as u64;
    match whole {
        _ if span < 0.9995 => format!("{:.0} ms", span * 1000.0),
        0..60 => format!("{span:.1} s"),
        60..3600 => format!("{} min {} s", whole / 60, whole % 60),
        _ => format!("{} h {} min", minutes / 60, minutes % 60),
    }
}

/// A count and its noun: `1 step`, `3 steps`.
#[must_use]
pub fn count(number: usize, noun: &str) -> String {
    counted(number as u64, noun)
}

/// A moment in UTC from seconds since 1970: `2026-11-20T10:58:13Z`; of one that no clock can tell, in words.
#[must_use]
pub fn moment(unix: u64) -> String {
    let mut text = String::new();
    // A file of others names the seconds. The standard ends with the year 9999.
    let at = UNIX_EPOCH.checked_add(Duration::from_secs(unix));
    match at.map(|at| write!(text, "{}", humantime::format_rfc3339_seconds(at))) {
        Some(Ok(())) => text,
        _ => "after the year 9999".to_owned(),
    }
}

/// A measured value in the unit that the eye takes best: `82.41 ns`, `12.13 M/s`.
#[must_use]
pub fn quantity(value: f64, unit: &str) -> String {
    let scaled = |steps: &[(f64, &str)]| {
        let fits = steps.iter().rev().find(|(size, _)| value.abs() >= *size);
        let (size, name) = fits.unwrap_or(&steps[0]);
        format!("{} {name}", digits(value / size))
    };
    match unit {
        "ns" => scaled(&[(1.0, "ns"), (1e3, "µs"), (1e6, "ms"), (1e9, "s")]),
        "ms" => scaled(&[(1e-6, "ns"), (1e-3, "µs"), (1.0, "ms"), (1e3, "s")]),
        "s" => scaled(&[(1e-9, "ns"), (1e-6, "µs"), (1e-3, "ms"), (1.0, "s")]),
        "B" => scaled(&[(1.0, "B"), (1024.0, "KiB"), (1048576.0, "MiB"), (1073741824.0, "GiB")]),
        "kB" => scaled(&[(1.0, "KiB"), (1024.0, "MiB"), (1048576.0, "GiB")]),
        "1/s" => scaled(&[(1.0, "/s"), (1e6, "M/s"), (1e9, "G/s")]),
        "share" => format!("{} %", digits(value * 100.0)),
        "" => digits(value),
        unit => format!("{} {unit}", digits(value)),
    }
}

/// Four digits, more only where they stand before the point: `82.41`, `0.03120`, `12,134`. A whole number
/// stays one.
fn digits(value: f64) -> String {
    if value.fract() == 0.0 && value.abs() < 1e15 {
        return grouped(&format!("{value:.0}"));
    }
    let places = DIGITS - 1 - value.abs().log10().floor() as i32;
    match usize::try_from(places.max(0)) {
        Ok(places @ 0..=7) => grouped(&format!("{value:.places$}")),
        _ => format!("{value:.2e}"),
    }
}

/// Commas between the thousands of a decimal number.
pub(crate) fn grouped(number: &str) -> String {
    let (sign, rest) = number.strip_prefix('-').map_or(("", number), |rest| ("-", rest));
    let (whole, decimals) = rest.split_at(rest.find('.').unwrap_or(rest.len()));
    let mut text = sign.to_owned();
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text + decimals
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_text_steers_a_terminal() {
        assert_eq!(harmless("a\tb\n\u{e9}"), "a\tb\n\u{e9}");
        assert_eq!(
            harmless("\x1b[8m\x1b[2Kx\r\x07\u{9b}1A"),
            "\u{fffd}[8m\u{fffd}[2Kx\u{fffd}\u{fffd}\u{fffd}1A"
        );
        assert_eq!(harmless("safe\u{202e}dne"), "safe\u{fffd}dne");
    }

    #[test]
    fn a_moment_that_no_clock_tells_is_no_bug() {
        assert_eq!(moment(0), "1970-01-01T00:00:00Z");
        assert_eq!(moment(253_402_300_799), "9999-12-31T23:59:59Z");
        for odd in [253_402_300_800, i64::MAX.unsigned_abs(), u64::MAX] {
            assert_eq!(moment(odd), "after the year 9999", "{odd}");
        }
    }

    #[test]
    fn spans_change_unit_where_the_eye_does() {
        for (span, text) in [
            (0.04, "40 ms"),
            (0.9999, "1.0 s"),
            (12.34, "12.3 s"),
            (200.0, "3 min 20 s"),
            (7500.0, "2 h 5 min"),
            (7199.0, "2 h 0 min"),
        ] {
            assert_eq!(seconds(span), text);
        }
    }

    #[test]
    fn values_take_the_unit_that_the_eye_takes_best() {
        for (value, unit, text) in [
            (82.4123, "ns", "82.41 ns"),
            (0.5, "ns", "0.5000 ns"),
            (1_234_567.0, "ns", "1.235 ms"),
            (0.0125, "s", "12.50 ms"),
            (484.0, "kB", "484 KiB"),
            (2_097_152.0, "kB", "2 GiB"),
            (69_702.358, "1/s", "69,702 /s"),
            (12_134_567.0, "1/s", "12.13 M/s"),
            (0.0312, "share", "3.120 %"),
            (1_234_567.0, "", "1,234,567"),
            (0.0, "", "0"),
            (0.000_000_012, "", "1.20e-8"),
            (250_000.0, "per million instructions", "250,000 per million instructions"),
        ] {
            assert_eq!(quantity(value, unit), text, "{value} {unit}");
        }
    }
}
