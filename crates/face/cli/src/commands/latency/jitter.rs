//! `planish latency --jitter`

use std::time::{Duration, Instant};

use planish_latency::{
    Figure, GapFigures, JitterPlan, JitterRow, QuietLimits, Rounds, Source, WakeFigures, look, measure_jitter,
};
use planish_model::Catalogue;
use planish_report::{
    JitterBucket, JitterCpu, JitterGaps, JitterQuantile, JitterReport, JitterSource, JitterWake, jitter_html,
};
use planish_stats::Rng;

use super::report::{figure, quiet};
use super::{Args, LOOK, seed, spread, warn};
use crate::answer::Answer;
use crate::commands::write_page;
use crate::context::Context;
use crate::failure::Failure;

pub(super) fn run(args: &Args, cpus: Vec<u32>, context: &Context) -> Result<Answer, Failure> {
    let begun = Instant::now();
    let seen = look(LOOK, QuietLimits::default());
    let seed = seed();
    let mut rounds = Rounds { count: args.rounds.into(), spread: spread(&seen), rng: Rng::new(seed) };
    let plan = JitterPlan { cpus, span: Duration::from_secs(args.seconds), threshold_ns: args.threshold };
    let rows = measure_jitter(&plan, &mut rounds)?;
    let report = JitterReport {
        quiet: quiet(&seen),
        rounds: args.rounds.into(),
        seed,
        seconds: begun.elapsed().as_secs_f64(),
        threshold_ns: args.threshold,
        cpus: rows.iter().map(cpu).collect(),
    };
    let page = || jitter_html(&report);
    args.html.as_deref().map_or(Ok(()), |path| write_page(path, &page()))?;
    let answer = warn(context.answer(&report, &Catalogue::default()), &seen, context);
    Ok(answer.next(context.line("doctor low-latency")))
}

fn cpu(row: &JitterRow) -> JitterCpu {
    let sources = &row.sources;
    let own = |it: &Option<Figure>| it.as_ref().map(figure);
    let source = |source: &Source| JitterSource {
        kind: source.kind.to_owned(),
        name: source.name.clone(),
        told: source.told.clone(),
        count: source.count,
        per_s: source.count as f64 / sources.seconds.max(1e-9),
    };
    JitterCpu {
        cpu: row.cpu,
        gaps: gaps(&row.gaps),
        wake: wake(&row.wake),
        ticks_per_s: own(&sources.ticks_per_s),
        irqs_per_s: own(&sources.irqs_per_s),
        softirqs_per_s: own(&sources.softirqs_per_s),
        steal_share: own(&sources.steal_share),
        sources: sources.sources.iter().map(source).collect(),
    }
}

fn gaps(gaps: &GapFigures) -> JitterGaps {
    let quantile = |(name, it): &(&'static str, Figure)| JitterQuantile {
        name: (*name).to_owned(),
        ns: Some(figure(it)),
        needed: None,
    };
    let bucket = |bucket: &planish_latency::Bucket| JitterBucket {
        from_ns: bucket.from_ns,
        below_ns: bucket.below_ns,
        count: bucket.count,
    };
    JitterGaps {
        seconds: gaps.seconds,
        look_ns: gaps.look_ns,
        count: gaps.count,
        per_s: figure(&gaps.per_s),
        lost_share: figure(&gaps.lost_share),
        by_time: gaps.by_time.iter().map(quantile).collect(),
        longest_ns: figure(&gaps.longest_ns),
        max_ns: gaps.max_ns,
        buckets: gaps.buckets.iter().map(bucket).collect(),
    }
}

fn wake(wake: &WakeFigures) -> JitterWake {
    let quantile = |(name, it): &(&'static str, Result<Figure, u64>)| JitterQuantile {
        name: (*name).to_owned(),
        ns: it.as_ref().ok().map(figure),
        needed: it.as_ref().err().copied(),
    };
    JitterWake {
        count: wake.count,
        late: wake.late_ns.iter().map(quantile).collect(),
        latest_ns: wake.latest_ns.as_ref().map(figure),
        max_ns: wake.max_ns,
    }
}
