//! Small drawings that keep their type size at any width.
//!
//! A drawing is as wide as its column, and everything across is placed in percent of it: a page of 400 pixels
//! and one of 1400 show the same drawing, with letters and marks of the same size. No viewBox, no script.
//!
//! Shapes that stand for a number carry `data-at` and `data-value`, and the ticks of a scale `data-tick`, so
//! that the drawing can be measured against the outcome.

use std::fmt::Write as _;

use planish_sorted::SortSmall as _;

use super::markup::{Html, escape};

/// Room at each end of a scale, as a share of its span.
const MARGIN: f64 = 0.06;

/// Ticks of a scale at most: their labels must not touch at 400 pixels.
const TICKS_MAX: usize = 6;

/// A linear scale of fractions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Scale {
    low: f64,
    high: f64,
}

/// A round value on a scale.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tick {
    pub(super) value: f64,
    pub(super) label: String,
}

impl Scale {
    /// A scale that shows all of these and zero, with some room around.
    pub(super) fn over(values: impl IntoIterator<Item = f64>) -> Self {
        let finite = values.into_iter().filter(|value| value.is_finite());
        let (low, high) =
            finite.fold((0.0_f64, 0.0_f64), |(low, high), value| (low.min(value), high.max(value)));
        let span = if high > low { high - low } else { 0.02 };
        Self { low: low - MARGIN * span, high: high + MARGIN * span }
    }

    /// A scale that shows the bulk of many values: what lies further out than the span of the middle nine
    /// tenths beyond them is left to [`Scale::clamped`]. `always` is shown whatever it is.
    pub(super) fn over_bulk(values: &[f64], always: impl IntoIterator<Item = f64>) -> Self {
        let mut sorted: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
        sorted.sort_small_by(f64::total_cmp);
        let Some(last) = sorted.len().checked_sub(1) else { return Self::over(always) };
        let (low, high) = (sorted[last / 20], sorted[last - last / 20]);
        let reach = high - low;
        let bulk = sorted.into_iter().filter(|value| (low - reach..=high + reach).contains(value));
        Self::over(bulk.chain(always))
    }

    /// Where a value stands, in percent of the width.
    pub(super) fn percent(&self, value: f64) -> f64 {
        100.0 * (value - self.low) / (self.high - self.low)
    }

    /// The value, or the end of the scale that it lies beyond.
    pub(super) fn clamped(&self, value: f64) -> f64 {
        value.clamp(self.low, self.high)
    }

    /// Whether the value lies beyond the scale.
    pub(super) fn misses(&self, value: f64) -> bool {
        !(self.low..=self.high).contains(&value)
    }

    /// Round values in percent steps of 1, 2 or 5 times a power of ten.
    pub(super) fn ticks(&self) -> Vec<Tick> {
        let (low, high) = (100.0 * self.low, 100.0 * self.high);
        let power = 10_f64.powf((high - low).log10().floor() - 1.0);
        let fits = |step: &f64| ((high / step).floor() - (low / step).ceil()) < TICKS_MAX as f64;
        let steps = [1.0, 2.0, 5.0, 10.0, 20.0, 50.0].map(|factor| factor * power);
        let step = steps.into_iter().find(fits).expect("a fifth of a scale fits six times at most");
        let decimals = usize::try_from(-(step.log10().floor() as i64)).unwrap_or(0);
        let (first, last) = ((low / step).ceil() as i64, (high / step).floor() as i64);
        let label = |number: i64| match number {
            0 => "0".to_owned(),
            _ => format!("{:+.decimals$}\u{a0}%", number as f64 * step).replace('-', "\u{2212}"),
        };
        (first..=last).map(|n| Tick { value: n as f64 * step / 100.0, label: label(n) }).collect()
    }
}

/// A number of the outcome that a shape stands for.
#[derive(Clone, Debug)]
pub(super) struct Datum<'a> {
    /// Its pointer.
    pub(super) at: &'a str,
    /// The number itself; where the shape stands follows from it.
    pub(super) value: f64,
}

impl Datum<'_> {
    fn attributes(&self) -> String {
        format!(r#" data-at="{}" data-value="{}""#, escape(self.at), self.value)
    }
}

/// One strip of a chart.
#[derive(Debug)]
pub(super) struct Lane {
    scale: Scale,
    height: u32,
    label: String,
    shapes: String,
}

impl Lane {
    /// An empty strip of `height` pixels, which `label` tells to whom does not see it.
    pub(super) fn new(scale: Scale, height: u32, label: impl Into<String>) -> Self {
        Self { scale, height, label: label.into(), shapes: String::new() }
    }

    /// A vertical line at each tick, the zero line among them.
    pub(super) fn grid(mut self) -> Self {
        for tick in self.scale.ticks() {
            self.rule(tick.value, if tick.value == 0.0 { "zero" } else { "grid" });
        }
        self
    }

    /// A shaded range over the whole height.
    pub(super) fn band(mut self, low: f64, high: f64, class: &str) -> Self {
        let (left, right) = (self.x(low), self.x(high));
        let (width, height) = (right - left, self.height);
        let _ = write!(
            self.shapes,
            r#"<rect class="{class}" x="{left:.3}%" width="{width:.3}%" y="0" height="{height}"/>"#
        );
        self
    }

    /// A vertical line over the whole height.
    pub(super) fn rule(&mut self, value: f64, class: &str) {
        let (x, height) = (self.x(value), self.height);
        let _ =
            write!(self.shapes, r#"<line class="{class}" x1="{x:.3}%" x2="{x:.3}%" y1="0" y2="{height}"/>"#);
    }

    /// An interval with a cap at each end.
    pub(super) fn span(&mut self, low: &Datum<'_>, high: &Datum<'_>, y: u32, class: &str) {
        let (left, right) = (self.x(low.value), self.x(high.value));
        let _ = write!(
            self.shapes,
            r#"<line class="{class}" x1="{left:.3}%" x2="{right:.3}%" y1="{y}" y2="{y}"/>"#
        );
        for (x, end) in [(left, low), (right, high)] {
            let (top, bottom) = (y - 5, y + 5);
            let _ = write!(
                self.shapes,
                r#"<line class="{class}" x1="{x:.3}%" x2="{x:.3}%" y1="{top}" y2="{bottom}"{}/>"#,
                end.attributes()
            );
        }
    }

    /// One of the marks that the page defines.
    pub(super) fn mark(&mut self, datum: &Datum<'_>, y: u32, mark: &str) {
        let x = self.x(datum.value);
        let data = datum.attributes();
        let _ = write!(self.shapes, r##"<use href="#{mark}" class="{mark}" x="{x:.3}%" y="{y}"{data}/>"##);
    }

    /// A dot at `shown` for a number; one that lies beyond the scale becomes an arrow at its end.
    pub(super) fn dot(&mut self, datum: &Datum<'_>, shown: f64, y: u32, class: &str, title: &str) {
        let x = self.x(self.scale.clamped(shown));
        let (data, title) = (datum.attributes(), escape(title));
        let title = format!("<title>{title}</title>");
        let _ = if self.scale.misses(shown) {
            let arrow = if shown < self.scale.low { "mark-left" } else { "mark-right" };
            let shape = format!(r##"href="#{arrow}" class="beyond" x="{x:.3}%" y="{y}""##);
            write!(self.shapes, "<use {shape}{data}>{title}</use>")
        } else {
            let shape = format!(r#"class="{class}" cx="{x:.3}%" cy="{y}" r="3""#);
            write!(self.shapes, "<circle {shape}{data}>{title}</circle>")
        };
    }

    /// The finished strip.
    pub(super) fn finish(self) -> Html {
        let Self { height, shapes, .. } = self;
        let size = format!(r#"width="100%" height="{height}""#);
        let label = escape(&self.label);
        Html::own(format!(r#"<svg class="lane" {size} role="img" aria-label="{label}">{shapes}</svg>"#))
    }

    fn x(&self, value: f64) -> f64 {
        self.scale.percent(value)
    }
}

/// The labels of a scale.
pub(super) fn axis(scale: &Scale) -> Html {
    let mut shapes = String::new();
    for Tick { value, label } in scale.ticks() {
        let x = scale.percent(value);
        let place = format!(r#"x1="{x:.3}%" x2="{x:.3}%" y1="0" y2="5""#);
        let _ = write!(shapes, r#"<line class="tick" {place} data-tick="{value}"/>"#);
        let _ = write!(shapes, r#"<text x="{x:.3}%" y="19">{label}</text>"#);
    }
    let size = r#"width="100%" height="24""#;
    Html::own(format!(r#"<svg class="lane axis" {size} aria-hidden="true">{shapes}</svg>"#))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ticks_are_round_and_few() {
        let labels = |values: &[f64]| -> Vec<String> {
            Scale::over(values.iter().copied()).ticks().into_iter().map(|tick| tick.label).collect()
        };
        assert_eq!(
            labels(&[-0.02, 0.09]),
            ["\u{2212}2\u{a0}%", "0", "+2\u{a0}%", "+4\u{a0}%", "+6\u{a0}%", "+8\u{a0}%"]
        );
        assert_eq!(labels(&[0.0031]), ["0", "+0.1\u{a0}%", "+0.2\u{a0}%", "+0.3\u{a0}%"]);
    }

    #[test]
    fn a_far_value_does_not_squeeze_the_others() {
        let mut values = vec![0.01; 40];
        values.extend([0.02; 40]);
        values.push(5.0);
        let scale = Scale::over_bulk(&values, [0.0]);
        assert!(scale.misses(5.0) && !scale.misses(0.02), "{scale:?}");
        assert!((scale.percent(scale.clamped(5.0)) - 100.0).abs() < 1e-9);
    }

    #[test]
    fn beyond_the_scale_is_an_arrow_with_the_true_number() {
        let mut lane = Lane::new(Scale::over([0.1]), 40, "x");
        lane.dot(&Datum { at: "/a/0", value: 4.0 }, 4.0, 10, "d", "t");
        let drawn = lane.finish().to_string();
        assert!(drawn.contains("mark-right") && drawn.contains(r#"data-value="4""#), "{drawn}");
    }

    proptest! {
        #[test]
        fn every_scale_has_zero_and_a_few_ticks(values in prop::collection::vec(-0.99..9.0_f64, 0..40)) {
            let scale = Scale::over(values.iter().copied());
            let ticks = scale.ticks();
            prop_assert!((2..=TICKS_MAX).contains(&ticks.len()), "{:?}", ticks);
            prop_assert!(ticks.iter().any(|tick| tick.value == 0.0));
            for value in values {
                prop_assert!((0.0..=100.0).contains(&scale.percent(value)));
            }
        }
    }
}
