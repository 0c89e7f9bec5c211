//! What the page says in sentences: the answer on top, the method, and how to repeat the trial.

use planish_trial::{
    Better, Gain, LadderMode, MetricSpec, Rung, RungVerdict, SelfCheckVerdict, TrialOutcome, UnitKind,
};

use super::figure::{Figure, interval};
use super::markup::{Html, Quote};
use super::rungs::at_rung;

/// The answer in a sentence.
#[derive(Clone, Debug)]
pub(super) struct Headline {
    /// The class of its colour and mark: a verdict, or `warning`.
    pub(super) tone: &'static str,
    /// The sentence.
    pub(super) sentence: Html,
}

/// A verdict in a word, which is also the name of its mark and colour.
pub(super) fn verdict(verdict: RungVerdict) -> &'static str {
    match verdict {
        RungVerdict::Keep => "keep",
        RungVerdict::Drop => "drop",
        RungVerdict::Inconclusive => "inconclusive",
        RungVerdict::Unavailable => "unavailable",
    }
}

/// The name of a metric for people; its own name where there is none.
pub(super) fn metric(name: &str) -> &str {
    match name {
        "cpu_ns_per_op" => "CPU time per operation",
        "user_ns_per_op" => "user CPU per operation",
        "system_ns_per_op" => "system CPU per operation",
        "wall_ns_per_op" => "wall time per operation",
        "select_cpu_ns_per_op" => "CPU time per select",
        "select_user_ns_per_op" => "user CPU per select",
        "select_system_ns_per_op" => "system CPU per select",
        "ops_per_s" => "throughput",
        "select_ops_per_s" => "selects per second",
        "tps" => "transactions per second",
        "cpu_s" => "CPU time",
        "user_s" => "user CPU",
        "system_s" => "system CPU",
        "wall_s" => "wall time",
        "mean_ns" => "mean latency",
        "p50_ns" => "median latency",
        "p90_ns" => "p90 latency",
        "p99_ns" => "p99 latency",
        "p99_9_ns" => "p99.9 latency",
        "select_p50_ns" => "median latency of a select",
        "select_p90_ns" => "p90 latency of a select",
        "select_p99_ns" => "p99 latency of a select",
        "select_p99_9_ns" => "p99.9 latency of a select",
        "select_wall_ns_per_op" => "wall time per select",
        "select_sd_ns" => "standard deviation of a select's latency",
        "select_iqr_ns" => "interquartile range of a select's latency",
        "select_max_ns" => "longest latency of a select",
        "max_ns" => "longest latency",
        "sd_ns" => "standard deviation of latency",
        "iqr_ns" => "interquartile range of latency",
        "rss_bytes" => "resident memory",
        "error_rate" => "errors",
        other => other,
    }
}

/// Which direction is good.
pub(super) fn direction(better: Better) -> &'static str {
    match better {
        Better::Lower => "lower is better",
        Better::Higher => "higher is better",
    }
}

/// What the trial found. What makes it incredible comes before everything that it would say.
pub(super) fn headline(outcome: &TrialOutcome) -> Headline {
    let placebo_kept = outcome.placebo_was_kept();
    let broken = outcome.selfcheck.as_ref().is_some_and(|check| check.verdict == SelfCheckVerdict::Broken);
    let say = |tone, sentence: &str| Headline { tone, sentence: Html::default().text(sentence) };
    if broken {
        return say("warning", "Believe nothing here: two identical arms differed in the self-check.");
    }
    if placebo_kept {
        return say(
            "warning",
            "Believe nothing here: the placebo, which changes nothing, came out as a gain.",
        );
    }
    let real: Vec<&Rung> = outcome.real_rungs().collect();
    let count = |verdict| real.iter().filter(|rung| rung.verdict == verdict).count();
    let (had, dropped) = (real.len() - count(RungVerdict::Unavailable), count(RungVerdict::Drop));
    match (best(outcome), had) {
        (Some(best), _) => Headline { tone: "keep", sentence: gain_sentence(outcome, best) },
        (None, 0) => say("unavailable", "No rung could be had on this machine."),
        (None, _) if dropped == had => say("drop", "Nothing that was tried pays here."),
        (None, _) if dropped == 0 => {
            say("inconclusive", "No verdict: noise can explain everything that was seen.")
        }
        (None, _) => {
            say("inconclusive", "Nothing is worth keeping here, and not every rung could be decided.")
        }
    }
}

/// A warning under the answer: a placebo that differs from the baseline, whatever its verdict, shows by how
/// much two arms differ here without any change.
pub(super) fn caution(outcome: &TrialOutcome) -> Option<Html> {
    let (index, rung) = outcome.rungs.iter().enumerate().find(|(_, rung)| is_placebo(rung))?;
    let gain = super::rungs::gain(rung).filter(|gain| gain.low > 0.0 || gain.high < 0.0)?;
    Some(
        Html::default()
            .text("The placebo, which changes nothing, differs from the baseline: ")
            .then(interval(&at_rung(index), gain))
            .text(". Believe only gains that lie clear beyond that."),
    )
}

pub(super) fn is_placebo(rung: &Rung) -> bool {
    rung.name == TrialOutcome::PLACEBO
}

/// The rung that answers the question: everything kept together, else the best of what was kept.
fn best(outcome: &TrialOutcome) -> Option<(usize, &Rung, Gain)> {
    let kept = outcome.rungs.iter().enumerate().filter(|(_, rung)| rung.verdict == RungVerdict::Keep);
    let told = kept.filter_map(|(index, rung)| Some((index, rung, super::rungs::gain(rung)?)));
    told.max_by(|(_, a, a_gain), (_, b, b_gain)| {
        let stack = |rung: &Rung| rung.name == TrialOutcome::STACK;
        stack(a).cmp(&stack(b)).then(a_gain.effect.total_cmp(&b_gain.effect))
    })
}

/// The figure to quote: that of the fresh run. The one of the ladder chose the rung, and what was chosen as the largest
/// was lucky more often than not.
fn gain_sentence(outcome: &TrialOutcome, (index, rung, gain): (usize, &Rung, Gain)) -> Html {
    let at = at_rung(index);
    let fresh = rung.confirmed.as_ref();
    let (of, gain) = fresh.map_or((at.clone(), gain), |fresh| (format!("{at}/confirmed"), fresh.gain));
    let name = Quote::new(format!("{at}/name"), &rung.name);
    let figure = |part: &str, value| Figure::plain_gain(format!("{of}/{part}"), value);
    let falls = match outcome.primary.better {
        Better::Lower => "falls",
        Better::Higher => "rises",
    };
    let sentence = Html::default()
        .then(name)
        .text(" pays here: ")
        .text(metric(&outcome.primary.name))
        .text(&format!(" {falls} by "))
        .then(figure("effect", gain.effect))
        .text(", between ")
        .then(figure("low", gain.low))
        .text(" and ")
        .then(figure("high", gain.high));
    let level = fresh.map_or(rung.level, |fresh| fresh.level);
    let sentence = match level {
        Some(level) => {
            sentence.text(" at ").then(Figure::chosen_share(format!("{of}/level"), level)).text(" confidence")
        }
        None => sentence,
    };
    sentence.text(if fresh.is_some() { ", in a fresh run." } else { "; no fresh run has confirmed it." })
}

/// How it was measured, in five lines.
pub(super) fn method(outcome: &TrialOutcome) -> [Html; 5] {
    let unit = match outcome.unit {
        UnitKind::Slice => "All arms stay resident and work in short slices; one slice is one replicate.",
        UnitKind::Start => "Every replicate is a fresh start of the program.",
        UnitKind::Boot => "Every replicate is a boot of the machine, however many units ran inside of it.",
    };
    let placebo = match outcome.unit {
        UnitKind::Slice => {
            "A process keeps its memory layout, so that slices keep nothing: only fresh starts of both arms in \
             every pair do."
        }
        UnitKind::Start | UnitKind::Boot => "Were it kept, nothing here should be believed.",
    };
    let duet = if outcome.duet {
        " Both arms of a pair ran at the same time, each on the half of the CPUs that the coin dealt it."
    } else {
        ""
    };
    let share = |at: &str, value| Figure::share(at, value);
    [
        Html::default()
            .text(unit)
            .text(duet)
            .text(" What an arm got is read back from the running program, never assumed."),
        Html::default()
            .text("Chance, drawn from the seed ")
            .then(Figure::verbatim("/seed", outcome.seed))
            .text(", orders the arms of every pair. No pair with two figures is left out for its result."),
        Html::default()
            .text(
                "The gain is the Hodges-Lehmann estimate on the log ratios of pairs, its interval an exact \
                 signed-rank one. Looks and rungs share an error budget of ",
            )
            .then(share("/alpha", outcome.alpha))
            .text("."),
        Html::default()
            .text("The baseline is first compared with itself, and a hidden placebo runs among the rungs. ")
            .text(placebo),
        Html::default()
            .text("A rung is kept when its interval is clear of zero, its gain at least what it needs (")
            .then(share("/min_gain", outcome.min_gain))
            .text(
                " or more) and every guard holds. What gains too little or harms is dropped; what the pairs cannot \
                 tell is inconclusive, and set by nobody.",
            ),
    ]
}

/// The line under the answer: the decisive metric and what everything is compared with.
pub(super) fn compared(outcome: &TrialOutcome) -> Html {
    let MetricSpec { name, better, .. } = &outcome.primary;
    let got = outcome.baseline_achieved.as_ref().and_then(|achieved| achieved.backing.as_deref());
    let against = match outcome.mode {
        LadderMode::Block => "against",
        LadderMode::Step => "each rung against what was kept before it, and all of that against",
    };
    let line = Html::default()
        .text(&format!("Judged by {} (", metric(name)))
        .then(Html::own("<code>"))
        .then(Quote::new("/primary/name", name))
        .then(Html::own("</code>"))
        .text(&format!(", {}), {} the baseline ", direction(*better), against))
        .then(Html::own("<b>"))
        .then(Quote::new("/baseline", &outcome.baseline))
        .then(Html::own("</b>"));
    match got {
        Some(backing) => {
            line.text(" on ").then(Quote::new("/baseline_achieved/backing", backing)).text(" pages.")
        }
        None => line.text("."),
    }
}
