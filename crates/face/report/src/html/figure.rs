//! Numbers as the page shows them: rounded for the eye, exact behind it.

use std::fmt::{self, Display, Formatter};

use askama::filters::HtmlSafe;
use planish_trial::Gain;

use super::markup::{Html, escape};
use crate::units;

/// Between a number and its unit: the two stay on one line.
const GLUE: char = '\u{a0}';

/// A number of the outcome.
#[derive(Clone, Debug)]
pub(super) struct Figure {
    at: String,
    value: f64,
    text: String,
}

impl Figure {
    fn new(at: impl Into<String>, value: f64, text: impl AsRef<str>) -> Self {
        let text = text.as_ref().replace(' ', &GLUE.to_string()).replace('-', "\u{2212}");
        Self { at: at.into(), value, text }
    }

    /// A fractional gain with its sign: `+7.1 %`.
    pub(super) fn gain(at: impl Into<String>, gain: f64) -> Self {
        let text = units::gain(gain);
        let is_zero = !text.contains(|digit: char| digit.is_ascii_digit() && digit != '0');
        Self::new(at, gain, if is_zero { "0.0 %" } else { &text })
    }

    /// A gain of which the words around it say that it is one: `7.1 %`.
    pub(super) fn plain_gain(at: impl Into<String>, gain: f64) -> Self {
        Self::new(at, gain, format!("{:.1} %", gain * 100.0))
    }

    /// A share, a deviation, a threshold: `0.31 %`.
    pub(super) fn share(at: impl Into<String>, share: f64) -> Self {
        Self::new(at, share, format!("{:.2} %", share * 100.0))
    }

    /// A share that somebody chose, without the noughts that say nothing: `98 %`, `98.33 %`.
    pub(super) fn chosen_share(at: impl Into<String>, share: f64) -> Self {
        let percent = format!("{:.2}", share * 100.0);
        Self::new(at, share, format!("{} %", percent.trim_end_matches('0').trim_end_matches('.')))
    }

    /// A bare number with two decimals, such as a correlation.
    pub(super) fn coefficient(at: impl Into<String>, value: f64) -> Self {
        Self::new(at, value, format!("{value:+.2}"))
    }

    /// A count.
    pub(super) fn count(at: impl Into<String>, count: u64) -> Self {
        Self::new(at, count as f64, units::grouped(&count.to_string()))
    }

    /// A count as it is typed on a command line.
    pub(super) fn verbatim(at: impl Into<String>, number: u64) -> Self {
        Self::new(at, number as f64, number.to_string())
    }

    /// A span of time.
    pub(super) fn seconds(at: impl Into<String>, seconds: f64) -> Self {
        Self::new(at, seconds, units::seconds(seconds))
    }

    /// A span of time that is kept in hours.
    pub(super) fn hours(at: impl Into<String>, hours: f64) -> Self {
        Self::new(at, hours, units::seconds(hours * 3600.0))
    }

    /// An amount of memory.
    pub(super) fn bytes(at: impl Into<String>, bytes: u64) -> Self {
        Self::new(at, bytes as f64, units::bytes(bytes))
    }

    /// A moment, in UTC.
    pub(super) fn moment(at: impl Into<String>, unix: u64) -> Self {
        let text = units::moment(unix).replace('T', " ").replace('Z', " UTC").replace('-', "\u{2010}");
        Self::new(at, unix as f64, text)
    }

    /// A measured value in the unit that the eye takes best; `None` for what is not a number.
    pub(super) fn quantity(at: impl Into<String>, value: f64, unit: &str) -> Option<Self> {
        value.is_finite().then(|| Self::new(at, value, units::quantity(value, unit)))
    }
}

impl Display for Figure {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let Self { at, value, text } = self;
        write!(out, r#"<data value="{value}" data-at="{}">{}</data>"#, escape(at), escape(text))
    }
}

impl HtmlSafe for Figure {}

/// A gain and its interval, whose three members stand under `at`: `+7.1 % (+5.0 % to +9.2 %)`.
pub(super) fn interval(at: &str, gain: Gain) -> Html {
    let part = |name: &str, value| Figure::gain(format!("{at}/{name}"), value);
    Html::own("<span class=\"gain\">")
        .then(part("effect", gain.effect))
        .then(Html::own("</span> <span class=\"ends\">("))
        .then(part("low", gain.low))
        .text(" to ")
        .then(part("high", gain.high))
        .then(Html::own(")</span>"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gain_too_small_to_show_has_no_sign() {
        assert_eq!(Figure::gain("/a", -0.0004).text, "0.0\u{a0}%");
        assert_eq!(Figure::gain("/a", -0.0704).text, "\u{2212}7.0\u{a0}%");
    }

    #[test]
    fn what_is_not_a_number_is_no_figure() {
        assert!(Figure::quantity("/a", f64::NAN, "ns").is_none());
    }
}
