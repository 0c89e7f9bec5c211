//! The page as text: recorded, harmless, and true to the outcome that it holds.

use planish_report::trial_html;
use planish_trial::{Rung, RungVerdict, TrialOutcome};
use proptest::prelude::*;
use serde_json::Value;

use crate::fixed;

/// A `data` element: the exact number, its pointer, the text.
pub struct Data {
    pub value: f64,
    pub at: String,
    pub text: String,
}

/// The part between two marks, and what follows.
fn between<'a>(page: &'a str, open: &str, close: &str) -> Option<(&'a str, &'a str)> {
    page.split_once(open)?.1.split_once(close)
}

/// The text of an element or attribute as a browser reads it.
fn unescaped(text: &str) -> String {
    let entities = [("&#60;", "<"), ("&#62;", ">"), ("&#34;", "\""), ("&#39;", "'"), ("&#38;", "&")];
    entities.iter().fold(text.to_owned(), |text, (entity, plain)| text.replace(entity, plain))
}

/// The outcome inside a page.
pub fn embedded(page: &str) -> Value {
    let opening = "<script type=\"application/json\" id=\"outcome\">";
    let (json, _) = between(page, opening, "</script>").expect("the page holds its outcome");
    serde_json::from_str(json).expect("it is JSON")
}

/// The outcome by the line that the page itself tells its reader to type.
#[expect(clippy::disallowed_methods, reason = "a page of the test's own")]
pub fn typed_out(page: &str) -> Value {
    let (line, _) = between(page, "<pre>sed ", "</pre>").expect("the page tells the line");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let name = line.rsplit(' ').next().expect("the line ends with the name of the page");
    std::fs::write(folder.path().join(name), page).expect("there is room");
    let shell = std::process::Command::new("sh")
        .args(["-c", &format!("sed {}", unescaped(line))])
        .current_dir(folder.path())
        .output();
    serde_json::from_slice(&shell.expect("a shell").stdout).expect("nothing but the JSON")
}

/// All `data` elements.
pub fn data(page: &str) -> Vec<Data> {
    let mut found = Vec::new();
    let mut rest = page;
    while let Some((element, after)) = between(rest, "<data value=\"", "</data>") {
        let (value, element) = element.split_once("\" data-at=\"").expect("value first");
        let (at, text) = element.split_once("\">").expect("then its pointer");
        found.push(Data {
            value: value.parse().expect("a number"),
            at: unescaped(at),
            text: unescaped(text),
        });
        rest = after;
    }
    found
}

/// All texts that are quoted from the outcome: pointer and text.
pub fn quotes(page: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut rest = page;
    while let Some((element, after)) = between(rest, "<span data-at=\"", "</span>") {
        let (at, text) = element.split_once("\">").expect("one attribute");
        found.push((unescaped(at), unescaped(text)));
        rest = after;
    }
    found
}

/// All shapes that stand for a number: pointer and number.
pub fn shapes(page: &str) -> Vec<(String, f64)> {
    let mut found = Vec::new();
    let mut rest = page;
    while let Some((value, after)) = between(rest, "\" data-value=\"", "\"") {
        let before = &rest[..rest.len() - after.len() - value.len() - "\" data-value=\"\"".len()];
        let (_, at) = before.rsplit_once("data-at=\"").expect("the pointer stands before the number");
        found.push((unescaped(at), value.parse().expect("a number")));
        rest = after;
    }
    found
}

/// What a rounded text says, as the lowest and the highest number that it may stand for.
///
/// An own reading of the text: it shares no code with what wrote it. `unit` is the one of the outcome.
fn said(text: &str, unit: &str) -> (f64, f64) {
    let plain = text.replace('\u{2212}', "-").replace(',', "");
    let mut sum = 0.0;
    let mut slack = 0.0;
    let mut words = plain.split('\u{a0}').peekable();
    while let Some(number) = words.next() {
        let factor = factor(words.next_if(|word| word.parse::<f64>().is_err()).unwrap_or(""), unit);
        let mantissa = number.split('e').next().unwrap_or(number);
        let decimals = mantissa.split_once('.').map_or(0, |(_, decimals)| decimals.len() as i32);
        let power = number.split_once('e').map_or(0, |(_, power)| power.parse().expect("a power"));
        sum += number.parse::<f64>().unwrap_or_else(|_| panic!("{text}: {number} is no number")) * factor;
        slack = 0.5000001 * 10_f64.powi(power - decimals) * factor;
        while words.next_if(|word| word.parse::<f64>().is_err()).is_some() {}
    }
    (sum - slack, sum + slack)
}

fn factor(shown: &str, unit: &str) -> f64 {
    let ns = |word: &str| match word {
        "ns" => Some(1.0),
        "µs" => Some(1e3),
        "ms" => Some(1e6),
        "s" => Some(1e9),
        "min" => Some(60e9),
        "h" => Some(3600e9),
        _ => None,
    };
    match shown {
        "%" => 0.01,
        "/s" => 1.0,
        "M/s" => 1e6,
        "G/s" => 1e9,
        "KiB" if unit == "kB" => 1.0,
        "MiB" if unit == "kB" => 1024.0,
        "GiB" if unit == "kB" => 1024.0 * 1024.0,
        "KiB" => 1024.0,
        "MiB" => 1024.0 * 1024.0,
        "GiB" => 1024.0 * 1024.0 * 1024.0,
        _ => ns(shown).map_or(1.0, |shown| shown / ns(if unit == "h" { "h" } else { unit }).unwrap_or(1e9)),
    }
}

/// The unit of a number of the outcome.
fn unit_of(outcome: &Value, at: &str) -> String {
    let beside = at.rsplit_once('/').map(|(parent, _)| format!("{parent}/unit"));
    let told = beside.and_then(|beside| outcome.pointer(&beside)?.as_str().map(str::to_owned));
    told.unwrap_or_else(|| {
        let unit = if at.ends_with("hours_needed") {
            "h"
        } else if at.ends_with("_kb") {
            "kB"
        } else {
            "s"
        };
        unit.to_owned()
    })
}

/// Holds everything on a page against the outcome inside it.
pub fn check(page: &str) -> Result<usize, String> {
    let outcome = embedded(page);
    let at = |at: &str| outcome.pointer(at).ok_or_else(|| format!("{at} leads nowhere"));
    let figures = data(page);
    for Data { value, at: pointer, text } in &figures {
        if at(pointer)?.as_f64() != Some(*value) {
            return Err(format!("{pointer}: {value} on the page, {} in the outcome", at(pointer)?));
        }
        if pointer == "/started_at" {
            continue;
        }
        let (low, high) = said(text, &unit_of(&outcome, pointer));
        if !(low..=high).contains(value) {
            return Err(format!("{pointer}: {text} on the page stands for {low}..{high}, not for {value}"));
        }
    }
    for (pointer, text) in quotes(page) {
        if at(&pointer)?.as_str() != Some(&text) {
            return Err(format!("{pointer}: {text:?} on the page, {} in the outcome", at(&pointer)?));
        }
    }
    for (pointer, value) in shapes(page) {
        if at(&pointer)?.as_f64() != Some(value) {
            return Err(format!("{pointer}: drawn as {value}, {} in the outcome", at(&pointer)?));
        }
    }
    Ok(figures.len())
}

#[test]
fn the_page_of_a_whole_trial_is_as_recorded() {
    insta::assert_snapshot!("series.html", trial_html(&fixed::series()));
}

#[test]
fn the_page_of_a_trial_that_found_nothing_is_as_recorded() {
    insta::assert_snapshot!("poor.html", trial_html(&fixed::poor()));
}

#[test]
fn fixed_pages_tell_what_their_outcome_says() {
    for outcome in [fixed::series(), fixed::poor(), fixed::stopped()] {
        let page = trial_html(&outcome);
        let figures = check(&page).expect("page and outcome agree");
        assert!(figures >= 15, "{figures} figures");
        assert_eq!(embedded(&page), serde_json::to_value(&outcome).expect("plain data"));
        assert_eq!(typed_out(&page), embedded(&page));
    }
}

#[test]
fn a_wrong_figure_is_found() {
    let page = trial_html(&fixed::series());
    let rung = fixed::series().rungs[1].effect.expect("measured");
    let figure = format!("value=\"{rung}\" data-at=\"/rungs/1/effect\">");
    assert!(page.contains(&figure), "{figure}");
    let other_value = page.replace(&figure, "value=\"0.5\" data-at=\"/rungs/1/effect\">");
    assert!(check(&other_value).is_err());
    let other_text = page.replace(&format!("{figure}+7"), &format!("{figure}+9"));
    assert_ne!(other_text, page);
    assert!(check(&other_text).is_err());
    let other_pointer = page.replace(&figure, &format!("value=\"{rung}\" data-at=\"/rungs/9/effect\">"));
    assert!(check(&other_pointer).is_err());
}

#[test]
fn names_cannot_break_out_of_their_place() {
    let page = trial_html(&fixed::poor());
    assert_eq!(page.matches("<script").count(), 1, "the outcome only");
    assert_eq!(page.matches("</script>").count(), 1);
    for raw in ["a<b>", "alert(1)</script> &", "<!-- -->", "as & is", "my </title>"] {
        assert!(!page.contains(raw), "{raw} stands unescaped in the page");
    }
}

#[test]
fn nothing_is_fetched_from_anywhere() {
    for outcome in [fixed::series(), fixed::poor(), fixed::stopped()] {
        let page = trial_html(&outcome);
        for outside in
            ["http://", "https://", "src=", "url(", "@import", "<link", "<img", "<iframe", "onload"]
        {
            assert!(!page.contains(outside), "{outside}");
        }
        assert!(page.contains("default-src 'none'"));
    }
}

#[test]
fn what_makes_a_trial_incredible_is_said_first() {
    let headline = |outcome: &TrialOutcome| {
        let page = trial_html(outcome);
        let (headline, _) = between(&page, "<h1", "</h1>").expect("a headline");
        headline.to_owned()
    };
    let mut outcome = fixed::series();
    assert!(headline(&outcome).contains("2m</span> pays here"), "{}", headline(&outcome));
    outcome.rungs.last_mut().expect("the placebo").verdict = RungVerdict::Keep;
    assert!(headline(&outcome).contains("Believe nothing here: the placebo"));
    assert!(headline(&fixed::poor()).contains("No verdict"));
    assert!(headline(&fixed::stopped()).contains("No rung could be had"));
}

#[test]
fn a_placebo_that_differs_is_told_under_the_answer_whatever_its_verdict() {
    let warned = |outcome: &TrialOutcome| trial_html(outcome).contains("class=\"caution");
    let mut outcome = fixed::series();
    assert!(!warned(&outcome));
    let placebo = outcome.rungs.last_mut().expect("the placebo");
    (placebo.verdict, placebo.effect) = (RungVerdict::Inconclusive, Some(0.101));
    (placebo.low, placebo.high) = (Some(0.051), Some(0.158));
    assert!(warned(&outcome));
}

#[test]
fn colours_can_be_read_in_both_lights() {
    let style = trial_html(&fixed::stopped());
    let (style, _) = between(&style, "<style>", "</style>").expect("a style");
    let themes: Vec<&str> =
        style.split(":root {").skip(1).map(|theme| theme.split('}').next().unwrap_or("")).collect();
    assert_eq!(themes.len(), 3, "light, dark, print");
    for theme in themes {
        let colour =
            |name: &str| luminance(between(theme, &format!("--{name}: #"), ";").expect("a colour").0);
        for ink in ["ink", "muted", "keep", "drop", "inconclusive", "unavailable", "warning"] {
            for ground in ["paper", "panel", "shade", "band"] {
                let (a, b) = (colour(ink), colour(ground));
                let contrast = (a.max(b) + 0.05) / (a.min(b) + 0.05);
                assert!(contrast >= 4.5, "{ink} on {ground}: {contrast:.2} in {theme}");
            }
        }
    }
}

/// Relative luminance as WCAG 2.2 defines it.
fn luminance(hex: &str) -> f64 {
    let channel = |at: usize| {
        let value = f64::from(u8::from_str_radix(&hex[at..at + 2], 16).expect("two hex digits")) / 255.0;
        if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
    };
    0.2126 * channel(0) + 0.7152 * channel(2) + 0.0722 * channel(4)
}

prop_compose! {
    /// A rung with any figures, finite as a trial's are.
    fn any_rung()(
        name in "\\PC{0,12}",
        verdict in prop::sample::select(vec![
            RungVerdict::Keep, RungVerdict::Drop, RungVerdict::Inconclusive, RungVerdict::Unavailable,
        ]),
        gains in prop::option::of((-0.9..5.0_f64, 0.0..0.5_f64)),
        level in prop::option::of(0.8..1.0_f64),
        pair_logs in prop::collection::vec(-2.0..2.0_f64, 0..20),
        scale in -9..12_i32,
        reason in "\\PC{0,30}",
    ) -> Rung {
        let series = fixed::series();
        let mut rung = series.rungs[1].clone();
        (rung.name, rung.verdict, rung.reason, rung.level) = (name, verdict, reason, level);
        (rung.effect, rung.low, rung.high) = match gains {
            Some((effect, half)) => (Some(effect), Some(effect - half), Some(effect + half)),
            None => (None, None, None),
        };
        (rung.pairs, rung.pair_logs) = (pair_logs.len(), pair_logs);
        for row in rung.metrics.values_mut() {
            row.value = row.value.map(|value| value * 10_f64.powi(scale));
        }
        for row in rung.collectors.values_mut() {
            row.value = row.value.map(|value| value * 10_f64.powi(scale));
        }
        rung
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn every_figure_equals_the_outcome(
        rungs in prop::collection::vec(any_rung(), 0..5),
        min_gain in 0.0001..0.2_f64,
        seconds in 0.0..40_000.0_f64,
        seed in 0_u64..1 << 53,
        summary in "\\PC{0,60}",
    ) {
        let mut outcome = fixed::series();
        (outcome.rungs, outcome.min_gain, outcome.seconds) = (rungs, min_gain, seconds);
        (outcome.seed, outcome.summary) = (seed, summary);
        let page = trial_html(&outcome);
        prop_assert_eq!(&page, &trial_html(&outcome));
        if let Err(difference) = check(&page) {
            return Err(TestCaseError::fail(difference));
        }
        prop_assert_eq!(embedded(&page), serde_json::to_value(&outcome).expect("plain data"));
    }
}
