//! Numbers with their units, as people read them. Every number of a text report goes through here.

use std::time::{Duration, UNIX_EPOCH};

pub use planish_model::units::bytes;

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
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

/// A moment in UTC from seconds since 1970: `2026-11-20T10:58:13Z`.
#[must_use]
pub fn moment(unix: u64) -> String {
    humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_secs(unix)).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
