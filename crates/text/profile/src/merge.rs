//! Many profiles of one program as one.
//!
//! Each host counts for the time that it really ran, not for how much of it was recorded, and no host for more than
//! its cap, so that one chatty host does not order the program of all. Old profiles fade by half in a half-life.
//! Functions of different builds are matched by the part of their names that outlives a build.

use std::collections::{BTreeMap, HashMap};

use planish_sorted::SortSmall as _;

use crate::error::ProfileError;
use crate::names;
use crate::profile::{CallProfile, Edge, Function, Window};

/// A profile and how old it is.
#[derive(Debug)]
pub struct Dated {
    /// The profile.
    pub profile: CallProfile,
    /// Days since its samples were taken.
    pub age_days: f64,
}

/// How profiles are merged.
#[derive(Clone, Copy, Debug)]
pub struct MergeOptions {
    /// After so many days a profile counts half.
    pub half_life_days: f64,
    /// The most that one host may count of all, unless there are fewer hosts than that allows.
    pub host_share_max: f64,
    /// Functions below this share of the weight are dropped, and with them their calls.
    pub trim_share: f64,
    /// What all weights of functions are scaled to.
    pub scale: u64,
}

impl Default for MergeOptions {
    fn default() -> Self {
        Self { half_life_days: 7.0, host_share_max: 0.10, trim_share: 0.0001, scale: 1 << 20 }
    }
}

/// Merges profiles of one program. A single one is scaled and trimmed like many.
///
/// # Errors
/// [`ProfileError::Unlike`] where weights mean different things, [`ProfileError::Nothing`] for no profile.
pub fn merge(profiles: &[Dated], options: &MergeOptions) -> Result<CallProfile, ProfileError> {
    let first = &profiles.first().ok_or(ProfileError::Nothing)?.profile;
    for Dated { profile, .. } in profiles {
        let meaning = |profile: &CallProfile| format!("{} with {} edges", profile.weights, profile.edges_are);
        if (profile.weights, profile.edges_are) != (first.weights, first.edges_are) {
            return Err(ProfileError::Unlike { left: meaning(first), right: meaning(profile) });
        }
    }
    let factors = factors(profiles, options);
    let one_build = profiles.iter().all(|dated| dated.profile.build_ids == first.build_ids);
    let mut sum = Sum::new(one_build);
    for (dated, factor) in profiles.iter().zip(&factors) {
        sum.add(&dated.profile, *factor);
    }
    let mut merged = sum.finish(options);
    let all = |field: fn(&CallProfile) -> &Vec<String>| {
        let mut all: Vec<String> = profiles.iter().flat_map(|dated| field(&dated.profile).clone()).collect();
        all.sort();
        all.dedup();
        all
    };
    merged.program.clone_from(&first.program);
    merged.event.clone_from(&first.event);
    (merged.weights, merged.edges_are) = (first.weights, first.edges_are);
    merged.build_ids = all(|profile| &profile.build_ids);
    merged.hosts = all(|profile| &profile.hosts);
    let windows = || profiles.iter().filter_map(|dated| dated.profile.window);
    merged.window = windows().reduce(|a, b| Window { start: a.start.min(b.start), end: a.end.max(b.end) });
    merged.normalise();
    Ok(merged)
}

/// What one unit of weight of each profile counts.
fn factors(profiles: &[Dated], options: &MergeOptions) -> Vec<f64> {
    let faded =
        |dated: &Dated| 0.5_f64.powf(dated.age_days.max(0.0) / options.half_life_days) / dated.profile.duty;
    let mut factors: Vec<f64> = profiles.iter().map(faded).collect();
    // A profile of several hosts is one voice, as is a host that sent several profiles.
    let host = |dated: &Dated| dated.profile.hosts.join(" ");
    let mut voices: BTreeMap<String, f64> = BTreeMap::new();
    for (dated, factor) in profiles.iter().zip(&factors) {
        *voices.entry(host(dated)).or_default() += factor * dated.profile.named() as f64;
    }
    let cap = capped(&voices.values().copied().collect::<Vec<_>>(), options.host_share_max);
    for (dated, factor) in profiles.iter().zip(&mut factors) {
        let voice = voices[&host(dated)];
        if voice > cap {
            *factor *= cap / voice;
        }
    }
    factors
}

/// The weight at which voices are cut, so that none has more than `share` of what is left of all. Where there are
/// too few voices for that, all are cut to the smallest that counts at all.
fn capped(voices: &[f64], share: f64) -> f64 {
    let mut sorted: Vec<f64> = voices.iter().copied().filter(|voice| *voice > 0.0).collect();
    sorted.sort_small_by(f64::total_cmp);
    let below: Vec<f64> = sorted
        .iter()
        .scan(0.0, |sum, voice| {
            *sum += voice;
            Some(*sum)
        })
        .collect();
    // With the k largest cut to c, the total is below + k c, and c is to be its share.
    for cut in 0..sorted.len() {
        let kept = sorted.len() - cut;
        let room = 1.0 - cut as f64 * share;
        if room <= 0.0 {
            break;
        }
        let cap = share * below[kept - 1] / room;
        if cap >= sorted[kept - 1] {
            return cap;
        }
    }
    sorted.first().copied().unwrap_or(0.0)
}

/// Weights on their way to one profile.
struct Sum {
    one_build: bool,
    index: HashMap<String, u32>,
    functions: Vec<(String, u64, f64, BTreeMap<u64, f64>)>,
    edges: BTreeMap<(u32, u32), f64>,
    outside: f64,
    unnamed: f64,
}

impl Sum {
    fn new(one_build: bool) -> Self {
        Self {
            one_build,
            index: HashMap::new(),
            functions: Vec::new(),
            edges: BTreeMap::new(),
            outside: 0.0,
            unnamed: 0.0,
        }
    }

    fn add(&mut self, profile: &CallProfile, factor: f64) {
        let mut place = Vec::with_capacity(profile.functions.len());
        for function in &profile.functions {
            let key = if self.one_build { function.name.clone() } else { names::stable(&function.name) };
            let next = u32::try_from(self.functions.len()).expect("functions fit 32 bits");
            let index = *self.index.entry(key).or_insert(next);
            if index == next {
                self.functions.push((function.name.clone(), function.bytes, 0.0, BTreeMap::new()));
            }
            let kept = &mut self.functions[index as usize];
            kept.1 = kept.1.max(function.bytes);
            kept.2 += function.weight as f64 * factor;
            // Offsets of another build point at other instructions.
            if self.one_build {
                for (offset, weight) in &function.hits {
                    *kept.3.entry(*offset).or_default() += *weight as f64 * factor;
                }
            }
            place.push(index);
        }
        for edge in &profile.edges {
            let key = (place[edge.caller as usize], place[edge.callee as usize]);
            *self.edges.entry(key).or_default() += edge.weight as f64 * factor;
        }
        self.outside += profile.outside as f64 * factor;
        self.unnamed += profile.unnamed as f64 * factor;
    }

    /// Scales to whole numbers, at least 1 for what was seen, and drops what is too small to matter.
    fn finish(self, options: &MergeOptions) -> CallProfile {
        let named: f64 = self.functions.iter().map(|function| function.2).sum();
        let unit = if named > 0.0 { options.scale as f64 / named } else { 1.0 };
        let whole = |weight: f64| if weight > 0.0 { (weight * unit).round().max(1.0) as u64 } else { 0 };
        let callers: std::collections::HashSet<u32> = self.edges.keys().flat_map(|(a, b)| [*a, *b]).collect();
        let mut place: HashMap<u32, u32> = HashMap::new();
        let mut functions = Vec::new();
        for (index, (name, bytes, weight, hits)) in (0_u32..).zip(self.functions) {
            let is_hot = weight >= named * options.trim_share;
            // A function that only calls has no weight of its own and is kept for its calls.
            if is_hot || (weight == 0.0 && callers.contains(&index)) {
                place.insert(index, u32::try_from(functions.len()).expect("fewer than before"));
                let hits = hits.into_iter().map(|(offset, weight)| (offset, whole(weight))).collect();
                functions.push(Function { name, bytes, weight: whole(weight), hits });
            }
        }
        let edges = self.edges.into_iter().filter_map(|((caller, callee), weight)| {
            let (caller, callee) = (*place.get(&caller)?, *place.get(&callee)?);
            Some(Edge { caller, callee, weight: whole(weight) })
        });
        let edges = edges.collect();
        let (outside, unnamed) = (whole(self.outside), whole(self.unnamed));
        let total = functions.iter().map(|function| function.weight).sum::<u64>() + outside + unnamed;
        CallProfile { total, outside, unnamed, functions, edges, ..crate::file::empty() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile(host: &str, weights: &[(&str, u64)]) -> CallProfile {
        let functions = weights.iter().map(|(name, weight)| Function {
            name: (*name).to_owned(),
            bytes: 16,
            weight: *weight,
            hits: vec![(0, *weight)],
        });
        let mut profile = CallProfile { functions: functions.collect(), ..crate::file::empty() };
        profile.hosts = vec![host.to_owned()];
        profile.normalise();
        profile
    }

    fn share(profile: &CallProfile, name: &str) -> f64 {
        let weight = profile.functions.iter().find(|f| f.name == name).map_or(0, |f| f.weight);
        weight as f64 / profile.named() as f64
    }

    #[test]
    fn a_chatty_host_does_not_order_the_program_of_all() {
        let mut all = vec![Dated { profile: profile("loud", &[("loud", 1_000_000)]), age_days: 0.0 }];
        for host in 0..19 {
            all.push(Dated { profile: profile(&format!("h{host}"), &[("quiet", 100)]), age_days: 0.0 });
        }
        let merged = merge(&all, &MergeOptions::default()).unwrap();
        assert!((share(&merged, "loud") - 0.10).abs() < 1e-3, "{}", share(&merged, "loud"));
        let total = merged.named();
        assert!(total.abs_diff(1 << 20) < 4, "{total}");
    }

    #[test]
    fn an_old_profile_fades_and_duty_is_made_good() {
        let mut rare = profile("a", &[("old", 50)]);
        rare.duty = 0.5;
        let all = [
            Dated { profile: rare, age_days: 7.0 },
            Dated { profile: profile("a", &[("new", 100)]), age_days: 0.0 },
        ];
        let merged = merge(&all, &MergeOptions::default()).unwrap();
        // 50 samples at half duty stand for 100, half as much after a half-life: 50 against 100.
        assert!((share(&merged, "old") - 1.0 / 3.0).abs() < 1e-3);
    }

    #[test]
    fn builds_are_matched_by_stable_names_and_give_no_offsets() {
        let name = |hash: &str| format!("_ZN3app3run17h{hash}E");
        let mut one = profile("a", &[(&name("0000000000000001"), 10)]);
        one.build_ids = vec!["aa".into()];
        let mut two = profile("b", &[(&name("0000000000000002"), 10)]);
        two.build_ids = vec!["bb".into()];
        let all = [one, two].map(|profile| Dated { profile, age_days: 0.0 });
        let merged = merge(&all, &MergeOptions::default()).unwrap();
        assert_eq!(merged.functions.len(), 1);
        assert!(merged.functions[0].hits.is_empty());
        assert_eq!(merged.build_ids, ["aa", "bb"]);
    }

    #[test]
    fn calls_and_time_are_not_added() {
        let mut calls = profile("a", &[("f", 1)]);
        calls.edges_are = crate::Edges::Calls;
        let all = [profile("b", &[("f", 1)]), calls].map(|profile| Dated { profile, age_days: 0.0 });
        assert!(matches!(merge(&all, &MergeOptions::default()), Err(ProfileError::Unlike { .. })));
    }

    #[test]
    fn small_functions_are_trimmed() {
        let all = [Dated { profile: profile("a", &[("big", 1_000_000), ("tiny", 1)]), age_days: 0.0 }];
        let merged = merge(&all, &MergeOptions::default()).unwrap();
        assert_eq!(merged.functions.len(), 1);
    }
}
