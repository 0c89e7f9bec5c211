//! What an arm is made of, and how the kept ones are put together.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use planish_model::{KnobId, Profile, Want};
use planish_sorted::CollectMap as _;
use planish_sys::{CpuSet, affinity};
use serde_json::{Value, json};

use crate::child::Launch;
use crate::file::{ArmSpec, TextWord};
use crate::host::ARM;
use crate::text::TextArm;

/// One arm: host settings, launcher options, environment, program.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Recipe {
    pub(crate) name: String,
    pub(crate) profiles: Vec<String>,
    pub(crate) want: BTreeMap<KnobId, Want>,
    /// Every value that it sets on the host, those of its profiles too.
    pub(crate) sets: BTreeMap<KnobId, Want>,
    /// The twins of what it sets, which are cleared by that.
    pub(crate) twins: BTreeSet<KnobId>,
    /// What it sets and is another face of a state that another knob sets too, each with that knob.
    pub(crate) aliases: BTreeSet<(KnobId, KnobId)>,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) cpus: Option<CpuSet>,
    pub(crate) node: Option<u32>,
    pub(crate) program: Option<String>,
    pub(crate) args: Vec<String>,
    pub(crate) build: Vec<Vec<String>>,
    /// Builds of the recipe; 0 for an arm that has one program.
    pub(crate) rebuilds: usize,
    pub(crate) backing: Option<String>,
    /// What is to be done to the program of a trial with `[text]`.
    pub(crate) text_words: Vec<TextWord>,
    /// The program that was made so.
    pub(crate) text: Option<TextArm>,
}

impl Recipe {
    /// The recipe of a checked arm of a file.
    pub(crate) fn of(spec: &ArmSpec) -> Self {
        Self {
            name: spec.name().to_owned(),
            profiles: spec.profile.iter().map(|name| name.get_ref().clone()).collect(),
            want: spec
                .want
                .iter()
                .map(|(id, want)| (KnobId::new(id.get_ref().as_str()), want.clone()))
                .collect_map(),
            sets: spec.sets.clone(),
            twins: spec.twins.clone(),
            aliases: spec.aliases.clone(),
            env: spec.env.clone(),
            cpus: spec.cpus.as_ref().and_then(|list| cpus(list.get_ref())),
            node: spec.node,
            program: spec.program.clone(),
            args: spec.args.clone(),
            build: if spec.build.is_empty() { Vec::new() } else { vec![spec.build.clone()] },
            rebuilds: spec.rebuilds.as_ref().map_or(0, |count| *count.get_ref()),
            backing: spec.backing.as_ref().map(|backing| backing.get_ref().clone()),
            text_words: spec.text.clone(),
            text: None,
        }
    }

    /// What it wants of the host, if anything.
    pub(crate) fn profile(&self, trial: &str) -> Option<Profile> {
        if self.profiles.is_empty() && self.want.is_empty() {
            return None;
        }
        Some(Profile {
            // Pages granted to one profile count for it alone, so each arm has a profile of its own.
            name: format!("trial-{trial}-{}", self.name),
            summary: format!("{ARM}{}` of trial `{trial}`", self.name),
            inherits: self.profiles.clone(),
            placement: None,
            want: self.want.clone(),
            ..Profile::default()
        })
    }

    /// Whether it is another arm than this one by nothing but what it sets on the host.
    pub(crate) fn differs_on_the_host_alone(&self, other: &Self) -> bool {
        let off_host = |recipe: &Self| Self {
            name: String::new(),
            profiles: Vec::new(),
            want: BTreeMap::new(),
            sets: BTreeMap::new(),
            twins: BTreeSet::new(),
            aliases: BTreeSet::new(),
            backing: None,
            ..recipe.clone()
        };
        other.profiles.is_empty() && other.want.is_empty() && off_host(self) == off_host(other)
    }

    /// What it sets of the program's start and nobody reads back, as facts. CPUs and node are read from the program.
    pub(crate) fn facts(&self) -> BTreeMap<String, Value> {
        let mut facts = BTreeMap::new();
        if !self.env.is_empty() {
            facts.insert("env".to_owned(), json!(self.env));
        }
        facts.extend(self.text.iter().flat_map(TextArm::facts));
        facts
    }

    /// The launch of the arm's program: `command`, with what the arm changes.
    pub(crate) fn launch(&self, command: &[String], planish: &Path, more: &[String]) -> Launch {
        let mut words = own_program(command, planish);
        if let (Some(program), Some(first)) = (&self.program, words.first_mut()) {
            first.clone_from(program);
        }
        words.extend(self.args.iter().chain(more).cloned());
        let of_text = self.text.iter().flat_map(TextArm::env);
        Launch {
            command: words,
            env: self.env.clone().into_iter().chain(of_text).collect(),
            cpus: self.cpus.clone(),
            node: self.node,
            ..Launch::default()
        }
    }

    /// This arm and another one together; `None` when they contradict each other.
    pub(crate) fn and(&self, other: &Self) -> Option<Self> {
        let clash = other.sets.iter().any(|(id, want)| self.sets.get(id).is_some_and(|own| own != want))
            // Only one of two twins is in force. They name each other, so that one side is enough.
            || other.sets.keys().any(|id| self.twins.contains(id))
            || self.shows_another_face(other)
            || other.env.iter().any(|(name, value)| self.env.get(name).is_some_and(|own| own != value))
            || differ(self.cpus.as_ref(), other.cpus.as_ref())
            || differ(self.node.as_ref(), other.node.as_ref())
            || differ(self.program.as_ref(), other.program.as_ref())
            || differ(self.laid_out(), other.laid_out())
            // Two numbers of builds have no build in common.
            || (self.rebuilds > 0 && other.rebuilds > 0 && self.rebuilds != other.rebuilds);
        if clash {
            return None;
        }
        let mut both = self.clone();
        both.profiles.extend(other.profiles.iter().filter(|name| !self.profiles.contains(name)).cloned());
        both.want.extend(other.want.clone());
        both.sets.extend(other.sets.clone());
        both.twins.extend(other.twins.clone());
        both.aliases.extend(other.aliases.clone());
        both.env.extend(other.env.clone());
        both.cpus = both.cpus.or_else(|| other.cpus.clone());
        both.node = both.node.or(other.node);
        both.program = both.program.or_else(|| other.program.clone());
        if both.text_words.is_empty() {
            both.text_words.clone_from(&other.text_words);
            both.text.clone_from(&other.text);
        }
        both.args.extend(other.args.iter().cloned());
        both.rebuilds = both.rebuilds.max(other.rebuilds);
        both.build.extend(other.build.iter().cloned());
        Some(both)
    }

    /// This arm as the placebo beside it: on another copy of a program that was made for it.
    pub(crate) fn once_more(&self) -> Self {
        Self { text: self.text.as_ref().map(TextArm::twin), ..self.clone() }
    }

    /// What is done to its program, where anything is.
    fn laid_out(&self) -> Option<&[TextWord]> {
        Some(self.text_words.as_slice()).filter(|words| !words.is_empty())
    }

    /// Whether each of the two sets one state through a place of its own, to what may be another value: the governor
    /// `performance` pins the energy hint and refuses every other (EBUSY), and two pools of the same pages add up. One
    /// that sets both places was measured with both, and equal words mean the same. The pairs of both name each other,
    /// so that one side is enough.
    fn shows_another_face(&self, other: &Self) -> bool {
        self.aliases.iter().any(|(own, alias)| {
            let Some(value) = other.sets.get(alias) else { return false };
            let is_same_word = matches!(value, Want::Text(_)) && self.sets.get(own) == Some(value);
            !is_same_word && !self.sets.contains_key(alias) && !other.sets.contains_key(own)
        })
    }
}

fn differ<T: PartialEq + ?Sized>(one: Option<&T>, other: Option<&T>) -> bool {
    one.zip(other).is_some_and(|(one, other)| one != other)
}

/// A command in which `planish` stands for this very program.
pub(crate) fn own_program(command: &[String], planish: &Path) -> Vec<String> {
    let mut words = command.to_vec();
    if let Some(first) = words.first_mut().filter(|first| *first == "planish") {
        *first = planish.display().to_string();
    }
    words
}

/// The CPUs of a checked list; `one` is the last that we may use, far from CPU 0 and its interrupts.
fn cpus(list: &str) -> Option<CpuSet> {
    if list != "one" {
        return list.parse().ok();
    }
    let last = affinity::get(None).ok()?.iter().last()?;
    Some(std::iter::once(last).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recipe(name: &str) -> Recipe {
        Recipe { name: name.to_owned(), ..Recipe::default() }
    }

    #[test]
    fn arms_that_contradict_each_other_are_not_stacked() {
        let swappiness = |recipe: &mut Recipe, value| {
            for wants in [&mut recipe.want, &mut recipe.sets] {
                wants.insert(KnobId::new("vm.swappiness"), Want::Int(value));
            }
        };
        let mut one = recipe("one");
        swappiness(&mut one, 1);
        let mut other = recipe("other");
        other.env.insert("MALLOC_ARENA_MAX".to_owned(), "2".to_owned());
        other.profiles.push("series".to_owned());
        let both = one.and(&other).expect("they go together");
        let profile = both.profile("t").expect("it wants something");
        assert_eq!((profile.inherits.len(), profile.want.len(), both.env.len()), (1, 1, 1));
        swappiness(&mut other, 10);
        assert_eq!(one.and(&other), None);
        one.want.clear();
        one.sets.clear();
        assert!(one.and(&other).is_some());
    }

    #[test]
    fn a_value_of_a_profile_contradicts_another_one_too() {
        let text = "name = \"t\"\nsummary = \"s\"\n[workload]\nadapter = \"command\"\ncommand = [\"true\"]\n\
                    [[rung]]\nname = \"all\"\nprofile = \"PROFILE\"\n\
                    [[rung]]\nname = \"same\"\nwant = { \"vm.swappiness\" = VALUE }\n\
                    [[rung]]\nname = \"other\"\nwant = { \"vm.swappiness\" = 77 }\n\
                    [[rung]]\nname = \"over\"\nprofile = \"PROFILE\"\nwant = { \"vm.swappiness\" = 77 }\n";
        let catalogue = planish_model::Catalogue::embedded().expect("it is tested");
        let id = KnobId::new("vm.swappiness");
        let value = |name: &str| match catalogue.profile(name).expect("it is there").want.get(&id) {
            Some(Want::Int(value)) if *value != 77 => Some(*value),
            _ => None,
        };
        let mut named = catalogue.profile_names().filter_map(|name| Some((name, value(name)?)));
        let (profile, value) = named.next().expect("some shipped profile sets it");
        let text = text.replace("PROFILE", profile).replace("VALUE", &value.to_string());
        let trial = crate::file::TrialFile::parse("t.toml", &text).expect("a good file");
        let [all, same, other, over] = [0, 1, 2, 3].map(|index| Recipe::of(&trial.rung[index]));
        assert!(all.and(&same).is_some());
        assert!(all.and(&other).is_none() && other.and(&all).is_none());
        assert!(over.and(&other).is_some() && over.and(&all).is_none(), "its own value is on top");
    }

    #[test]
    fn a_value_contradicts_one_of_its_twin() {
        let text = "name = \"t\"\nsummary = \"s\"\n[workload]\nadapter = \"command\"\ncommand = [\"true\"]\n\
                    [[rung]]\nname = \"all\"\nprofile = \"postgres\"\n\
                    [[rung]]\nname = \"bytes\"\nwant = { \"vm.dirty_bytes\" = 536870912 }\n\
                    [[rung]]\nname = \"ratio\"\nwant = { \"vm.dirty_ratio\" = 10 }\n\
                    [[rung]]\nname = \"over\"\nprofile = \"postgres\"\nwant = { \"vm.dirty_ratio\" = 10 }\n\
                    [[rung]]\nname = \"swap\"\nwant = { \"vm.swappiness\" = 10 }\n";
        let trial = crate::file::TrialFile::parse("t.toml", text).expect("a good file");
        let [all, bytes, ratio, over, swap] = std::array::from_fn(|index| Recipe::of(&trial.rung[index]));
        let set = Some(&Want::Int(536_870_912));
        assert_eq!(all.sets.get(&KnobId::new("vm.dirty_bytes")), set, "else it tries nothing");
        assert!(all.and(&bytes).is_some());
        for bytes in [&all, &bytes] {
            assert!(bytes.and(&ratio).is_none() && ratio.and(bytes).is_none());
            assert!(bytes.and(&over).is_none() && over.and(bytes).is_none());
        }
        let both = swap.and(&ratio).expect("they go together");
        assert!(both.and(&bytes).is_none(), "a stack clears what its parts clear");
        assert!(over.and(&ratio).is_some(), "its own value took that of the profile out");
    }

    #[test]
    fn a_value_contradicts_one_of_another_face_of_its_state() {
        let text = "name = \"t\"\nsummary = \"s\"\n[workload]\nadapter = \"command\"\ncommand = [\"true\"]\n\
                    [[rung]]\nname = \"fast\"\nwant = { \"cpu.governor\" = \"performance\" }\n\
                    [[rung]]\nname = \"hint\"\nwant = { \"cpu.epp\" = \"balance_performance\" }\n\
                    [[rung]]\nname = \"same\"\nwant = { \"cpu.epp\" = \"performance\" }\n\
                    [[rung]]\nname = \"whole\"\nprofile = \"low-latency\"\n\
                    [[rung]]\nname = \"swap\"\nwant = { \"vm.swappiness\" = 1 }\n";
        let arms = |text: &str| -> Vec<Recipe> {
            let trial = crate::file::TrialFile::parse("t.toml", text).expect("a good file");
            trial.rung.iter().map(Recipe::of).collect()
        };
        let [fast, hint, same, whole, swap] = arms(text).try_into().expect("five rungs");
        assert!(fast.and(&hint).is_none() && hint.and(&fast).is_none());
        let both = swap.and(&fast).expect("they go together");
        assert!(both.and(&hint).is_none() && hint.and(&both).is_none(), "a stack has the faces of its parts");
        assert!(fast.and(&same).is_some() && same.and(&fast).is_some(), "one word for one state");
        for part in [&fast, &same] {
            assert!(whole.and(part).is_some() && part.and(&whole).is_some(), "it was measured with both");
        }
        assert!(whole.and(&hint).is_none());
        let pools = "name = \"t\"\nsummary = \"s\"\n[workload]\nadapter = \"command\"\ncommand = [\"true\"]\n\
                     [[rung]]\nname = \"nodes\"\nwant = { \"hugepages.2m\" = { need_bytes = 1073741824 } }\n\
                     [[rung]]\nname = \"total\"\nwant = { \"hugepages.2m.total\" = { need_bytes = 1073741824 } }\n";
        let [nodes, total] = arms(pools).try_into().expect("two rungs");
        assert!(nodes.and(&total).is_none() && total.and(&nodes).is_none(), "they would add up");
    }

    #[test]
    fn a_launch_replaces_and_appends() {
        let mut arm = recipe("pgo");
        arm.args.push("--fast".to_owned());
        let command = ["planish", "workload"].map(str::to_owned);
        let launch = arm.launch(&command, Path::new("/opt/planish"), &["--short".to_owned()]);
        assert_eq!(launch.command, ["/opt/planish", "workload", "--fast", "--short"]);
        arm.program = Some("./app-pgo".to_owned());
        assert_eq!(arm.launch(&command, Path::new("/opt/planish"), &[]).command[0], "./app-pgo");
        assert_eq!(recipe("as it is").profile("t"), None);
    }

    #[test]
    fn one_is_a_cpu_that_we_may_use() {
        let one = cpus("one").expect("we run on a CPU");
        assert_eq!(one.iter().count(), 1);
        assert!(affinity::get(None).expect("our own mask").iter().any(|cpu| one.contains(cpu)));
    }
}
