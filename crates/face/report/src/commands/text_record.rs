//! `planish text record`: what was sampled, by what, and what it cost.

use schemars::JsonSchema;
use serde::Serialize;

use super::text::{TextProfileFacts, percent};
use crate::page::{Page, Report};
use crate::units;

/// A source of samples that could not be had.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TextRecordSource {
    /// Its word for `--event`: branches, cycles, cpu-clock or flat.
    pub source: String,
    /// Why it could not be had.
    pub why: String,
}

/// What `text record` recorded.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TextRecordReport {
    /// Where the profile was written.
    pub file: String,
    /// Where the samples were written; null where they were not kept.
    pub raw: Option<String>,
    /// What was sampled by: branches, cycles, cpu-clock, or flat (the clock without stacks).
    pub source: String,
    /// The better sources, each with the reason why it could not be had.
    pub better: Vec<TextRecordSource>,
    /// Whether the kernel's own time was left out, because it may not be seen or says nothing of branches.
    pub user_only: bool,
    /// Samples a second on each CPU, while the samples were on.
    pub rate_hz: u64,
    /// How long was recorded, pauses of the duty cycle included.
    pub seconds: f64,
    /// The share of that time in which samples were taken, as it came out.
    pub duty: f64,
    /// Why it ended: target, time, asked, or full.
    pub ended: String,
    /// Samples of all programs.
    pub samples: u64,
    /// Samples of the recorder itself, which were left out.
    pub own_samples: u64,
    /// Records that the kernel dropped, by its own count.
    pub lost: u64,
    /// CPU time of the recorder meanwhile; what each sample costs the target is not in it.
    pub recorder_cpu_seconds: f64,
    /// Exit code of the command; null where there was none, or where a signal ended it.
    pub command_exit: Option<i32>,
    /// The signal that ended the command.
    pub command_signal: Option<i32>,
    /// What the profile holds.
    pub profile: TextProfileFacts,
}

impl Report for TextRecordReport {
    const COMMAND: &'static str = "text-record";

    fn text(&self, page: &mut Page<'_>) {
        page.fact("written", &self.file);
        if let Some(raw) = &self.raw {
            page.fact("samples in", raw);
        }
        let scope = if self.user_only { ", user code only" } else { "" };
        page.fact("sampled by", &format!("{}{scope}, at {} Hz", self.source, self.rate_hz));
        for TextRecordSource { source, why } in &self.better {
            page.fact("not by", &format!("{source}: {why}"));
        }
        let (time, duty) = (units::seconds(self.seconds), percent(self.duty));
        page.fact("recorded", &format!("{time}, samples on for {duty} of it, ended by {}", self.ending()));
        let (lost, own) = (self.lost, self.own_samples);
        page.fact(
            "samples",
            &format!("{}; {lost} records lost, {own} of the recorder left out", self.samples),
        );
        let share = percent(self.recorder_cpu_seconds / self.seconds.max(f64::MIN_POSITIVE));
        let cpu = units::seconds(self.recorder_cpu_seconds);
        page.fact("recorder", &format!("{cpu} of CPU time, {share} of one CPU"));
        self.profile.text(page);
    }
}

impl TextRecordReport {
    fn ending(&self) -> &str {
        match self.ended.as_str() {
            "target" => "the end of what was recorded",
            "time" => "the time that was asked for",
            "asked" => "a signal",
            _ => "its size",
        }
    }
}
