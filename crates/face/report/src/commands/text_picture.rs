//! What the page of `planish text show` draws: where the weight of a profile lies, and the stacks that lead there.
//!
//! Both are bounded: a page of a program with a hundred thousand functions is one that a browser draws at once. What
//! has no box of its own is in one with the rest of its group, so that the areas add up to the whole.

use std::collections::HashMap;

use planish_profile::{CallProfile, StackFrame, Stacks, names};
use planish_sorted::SortSmall as _;
use serde::Serialize;

/// Functions that have a box of their own at most: the heaviest.
const FUNCTIONS_MAX: usize = 300;
/// Groups that have one at most in an object file: the heaviest.
const GROUPS_MAX: usize = 40;
/// Frames of a flame graph at most: the widest.
const FRAMES_MAX: usize = 2000;
/// Frames above each other at most.
const DEPTH_MAX: u32 = 64;
/// A frame below this share of the width cannot be seen.
const FRAME_SHARE_MIN: f64 = 0.0005;

/// Names of a namespace that tell a group.
const SCOPES: usize = 2;

/// What a page of a call profile draws.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TextPicture {
    /// Object files, the heaviest first: the program, and all that is elsewhere.
    pub objects: Vec<TextObject>,
    /// The stacks; none where the input has no stacks.
    pub flames: Option<TextFlames>,
}

/// An object file, or several.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TextObject {
    /// The name of its file; `elsewhere` for the kernel, libraries and other programs.
    pub name: String,
    /// Its own weight.
    pub weight: u64,
    /// That as a share of all that was sampled.
    pub share: f64,
    /// Namespaces, modules or source files of its functions, the heaviest first.
    pub groups: Vec<TextGroup>,
}

/// Functions of a namespace, module or source file.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TextGroup {
    /// Its name.
    pub name: String,
    /// The weight of its functions.
    pub weight: u64,
    /// That as a share of all that was sampled.
    pub share: f64,
    /// How many functions it has; 0 where nobody knows.
    pub count: usize,
    /// The heaviest functions of the profile that are of this group, the heaviest first.
    pub functions: Vec<TextBox>,
    /// Weight of its other functions, which have one box.
    pub rest_weight: u64,
    /// How many these are.
    pub rest_count: usize,
}

/// A function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TextBox {
    /// The linker's name.
    pub name: String,
    /// The name as people read it.
    pub readable: String,
    /// Its own weight.
    pub weight: u64,
}

/// Stacks, each frame on its caller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TextFlames {
    /// Weight of all stacks.
    pub weight: u64,
    /// How many frames lie above each other in what is drawn.
    pub depth: u32,
    /// What is drawn, callers before what they called, from left to right.
    pub frames: Vec<TextFlame>,
    /// Frames that are too narrow, too deep or too many to be drawn.
    pub left_out: usize,
}

/// A function below the functions that called it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TextFlame {
    /// The name as people read it.
    pub readable: String,
    /// How many frames it lies on.
    pub depth: u32,
    /// Weight of all that stands to the left of it.
    pub start: u64,
    /// Weight of the stacks that go through it.
    pub weight: u64,
}

impl TextPicture {
    /// The picture of a profile, and of its stacks where there are some.
    #[must_use]
    pub fn new(profile: &CallProfile, stacks: Option<&Stacks>) -> Self {
        let (named, unnamed, outside) = (profile.named(), profile.unnamed, profile.outside);
        let all = named.saturating_add(unnamed).saturating_add(outside);
        let share = |weight: u64| weight as f64 / all.max(1) as f64;
        let mut groups = groups(profile, &share);
        if unnamed > 0 {
            groups.push(TextGroup::closed("without a symbol", unnamed, share(unnamed)));
        }
        groups.sort_small_by(|one, other| (other.weight, &one.name).cmp(&(one.weight, &other.name)));
        let name =
            profile.program.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or("the program");
        let inside = named.saturating_add(unnamed);
        let own = TextObject { name: name.to_owned(), weight: inside, share: share(inside), groups };
        let elsewhere = TextObject {
            name: "elsewhere".to_owned(),
            weight: outside,
            share: share(outside),
            groups: vec![TextGroup::closed("the kernel, libraries, other programs", outside, share(outside))],
        };
        let mut objects: Vec<TextObject> =
            [own, elsewhere].into_iter().filter(|object| object.weight > 0).collect();
        objects.sort_small_by_key(|object| std::cmp::Reverse(object.weight));
        Self { objects, flames: stacks.map(TextFlames::new).filter(|flames| flames.weight > 0) }
    }
}

impl TextGroup {
    /// A group of which no function is known.
    fn closed(name: &str, weight: u64, share: f64) -> Self {
        let (functions, name) = (Vec::new(), name.to_owned());
        Self { name, weight, share, count: 0, functions, rest_weight: weight, rest_count: 0 }
    }
}

/// The groups of the functions that have any weight; the lightest ones are one.
fn groups(profile: &CallProfile, share: &impl Fn(u64) -> f64) -> Vec<TextGroup> {
    let mut found: Vec<TextGroup> = Vec::new();
    let mut place: HashMap<String, usize> = HashMap::new();
    for (index, function) in profile.functions.iter().filter(|function| function.weight > 0).enumerate() {
        let name = group_of(&function.name);
        let at = *place.entry(name).or_insert_with_key(|name| {
            found.push(TextGroup { rest_weight: 0, ..TextGroup::closed(name, 0, 0.0) });
            found.len() - 1
        });
        let group = &mut found[at];
        group.weight = group.weight.saturating_add(function.weight);
        group.count += 1;
        // Functions stand by falling weight.
        if index < FUNCTIONS_MAX {
            let (name, readable) = (function.name.clone(), names::readable(&function.name));
            group.functions.push(TextBox { name, readable, weight: function.weight });
        } else {
            group.rest_weight = group.rest_weight.saturating_add(function.weight);
            group.rest_count += 1;
        }
    }
    found.sort_small_by(|one, other| (other.weight, &one.name).cmp(&(one.weight, &other.name)));
    if found.len() > GROUPS_MAX {
        let light = found.split_off(GROUPS_MAX - 1);
        let weight = light.iter().map(|group| group.weight).fold(0, u64::saturating_add);
        let count = light.iter().map(|group| group.count).sum();
        let name = format!("{} more groups", light.len());
        found.push(TextGroup { count, rest_count: count, ..TextGroup::closed(&name, weight, 0.0) });
    }
    found.iter_mut().for_each(|group| group.share = share(group.weight));
    found
}

/// The namespace, module or source file that a function's name tells.
fn group_of(name: &str) -> String {
    if name.starts_with('[') {
        return "linkage tables".to_owned();
    }
    let (symbol, place) = names::split_file(name);
    // `/file.c/2`, or `/2` of a name whose file is not known.
    let file = place.strip_prefix('/').and_then(|place| place.rsplit_once('/')).map(|(file, _)| file);
    if let Some(file) = file.filter(|file| !file.is_empty()) {
        return file.to_owned();
    }
    scope(&names::readable(symbol)).unwrap_or_else(|| "no namespace or file".to_owned())
}

/// The first words of the path before a function's own name; none for a name without a path.
fn scope(readable: &str) -> Option<String> {
    const NOBODY: (&str, &str) = ("(anonymous namespace)", "{anonymous}");
    let text = readable.replace(NOBODY.0, NOBODY.1);
    let words: Vec<&str> = match text.strip_prefix('<') {
        // `<alloc::vec::Vec<T> as Trait>::method`, `<impl Trait for T>::method`: what the method is of.
        Some(inside) => {
            let path = inside.trim_start_matches(['&', '*']);
            let path =
                ["mut ", "dyn ", "impl "].iter().fold(path, |path, word| path.trim_start_matches(*word));
            let end = path.find([' ', '<', '>', ',', '(']).unwrap_or(path.len());
            path[..end].split("::").filter(|word| !word.is_empty()).collect()
        }
        None => {
            let end = text.find('(').unwrap_or(text.len());
            let end = text[..end].find("::operator").unwrap_or(end);
            let is_operator = end < text.len() && text[end..].starts_with("::operator");
            let path = without_arguments(&text[..end]);
            // A return type stands before a blank.
            let path = path.rsplit(' ').next().unwrap_or_default();
            let mut words: Vec<&str> = path.split("::").filter(|word| !word.is_empty()).collect();
            if !is_operator {
                words.pop();
            }
            let words: Vec<String> = words.into_iter().take(SCOPES).map(str::to_owned).collect();
            return (!words.is_empty()).then(|| words.join("::").replace(NOBODY.1, NOBODY.0));
        }
    };
    let words: Vec<&str> = words.into_iter().take(SCOPES).collect();
    (!words.is_empty()).then(|| words.join("::").replace(NOBODY.1, NOBODY.0))
}

/// A path without what stands between `<` and `>`.
fn without_arguments(path: &str) -> String {
    let mut depth = 0_u32;
    let outside = |c: &char| {
        match c {
            '<' => depth += 1,
            '>' => depth = depth.saturating_sub(1),
            _ => return depth == 0,
        }
        false
    };
    path.chars().filter(outside).collect()
}

impl TextFlames {
    fn new(stacks: &Stacks) -> Self {
        let frames = stacks.frames();
        let mut totals: Vec<u64> = frames.iter().map(|frame| frame.own).collect();
        let mut below: Vec<Vec<usize>> = vec![Vec::new(); frames.len()];
        let (mut roots, mut weight) = (Vec::new(), 0_u64);
        // Callers stand before what they called.
        for (index, frame) in frames.iter().enumerate().rev() {
            match frame.caller {
                Some(caller) => {
                    let total = totals[index];
                    let sum = &mut totals[caller as usize];
                    *sum = sum.saturating_add(total);
                    below[caller as usize].push(index);
                }
                None => {
                    weight = weight.saturating_add(totals[index]);
                    roots.push(index);
                }
            }
        }
        let is_drawn = drawn(frames, &totals, weight);
        let mut flames = Self { weight, depth: 0, frames: Vec::new(), left_out: 0 };
        let by_name = |indices: &mut Vec<usize>| {
            indices.sort_small_by(|one, other| frames[*one].name.cmp(&frames[*other].name))
        };
        // What is to be drawn, the leftmost last: index, depth, start.
        let mut open: Vec<(usize, u32, u64)> = Vec::new();
        let push =
            |open: &mut Vec<(usize, u32, u64)>, mut indices: Vec<usize>, depth: u32, mut start: u64| {
                by_name(&mut indices);
                let from = open.len();
                for index in indices {
                    open.push((index, depth, start));
                    start = start.saturating_add(totals[index]);
                }
                open[from..].reverse();
            };
        push(&mut open, roots, 0, 0);
        while let Some((index, depth, start)) = open.pop() {
            if !is_drawn[index] {
                continue;
            }
            flames.depth = flames.depth.max(depth + 1);
            let readable = names::readable(&frames[index].name);
            flames.frames.push(TextFlame { readable, depth, start, weight: totals[index] });
            push(&mut open, std::mem::take(&mut below[index]), depth + 1, start);
        }
        flames.left_out = frames.len() - flames.frames.len();
        flames
    }
}

/// Which frames are drawn: of those that can be seen the widest, and of equally wide ones the lowest. A caller is never
/// lighter than what it called, and lies below it, so that what is drawn stands on something.
fn drawn(frames: &[StackFrame], totals: &[u64], weight: u64) -> Vec<bool> {
    let seen = ((weight as f64 * FRAME_SHARE_MIN).ceil() as u64).max(1);
    let mut depths: Vec<u32> = Vec::with_capacity(frames.len());
    for frame in frames {
        let depth = frame.caller.map_or(0, |caller| depths[caller as usize] + 1);
        depths.push(depth);
    }
    let is_seen = |index: &usize| totals[*index] >= seen && depths[*index] < DEPTH_MAX;
    let mut widest: Vec<usize> = (0..frames.len()).filter(is_seen).collect();
    widest.sort_unstable_by_key(|index| (std::cmp::Reverse(totals[*index]), depths[*index], *index));
    let mut is_drawn = vec![false; frames.len()];
    widest.into_iter().take(FRAMES_MAX).for_each(|index| is_drawn[index] = true);
    is_drawn
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use planish_profile::{Format, ImportOptions, import};

    use super::*;

    fn picture(folded: &str) -> TextPicture {
        let format = Some(Format::Folded);
        let options = ImportOptions { format, stacks: true, ..ImportOptions::default() };
        let read = import(folded.as_bytes(), &options).expect("folded stacks");
        TextPicture::new(&read.profile, read.stacks.as_ref())
    }

    #[test]
    fn functions_are_grouped_by_what_their_names_tell() {
        for (name, group) in [
            ("main", "no namespace or file"),
            ("scan/heap.c/2", "heap.c"),
            ("scan/2", "no namespace or file"),
            ("[.plt.sec]", "linkage tables"),
            ("_ZN3one3twoEi", "one"),
            ("_ZN3one3twoEi.cold", "one"),
            ("_ZN4core3fmt5write17h0123456789abcdefE", "core::fmt"),
            ("void a::b::C<int, d::E>::f<g::H>(i::J)", "a::b"),
            ("(anonymous namespace)::f(int)", "(anonymous namespace)"),
            ("a::B::operator()(int)", "a::B"),
            ("a::operator<<(int)", "a"),
            ("<alloc::vec::Vec<T> as core::iter::Extend>::extend", "alloc::vec"),
            ("<&mut str as core::fmt::Display>::fmt", "str"),
            ("<impl core::fmt::Debug for x::Y>::fmt", "core::fmt"),
            ("alloc::vec::<impl x::Y for Z>::push", "alloc::vec"),
            ("<", "no namespace or file"),
            ("::", "no namespace or file"),
            ("a<b", "no namespace or file"),
        ] {
            assert_eq!(group_of(name), group, "{name}");
        }
    }

    #[test]
    fn a_picture_adds_up_and_flames_stand_on_their_callers() {
        let picture = picture("main;a::f;b::g 6\nmain;a::f 2\nmain;c 1\n[unknown] 0\n");
        let [program] = &picture.objects[..] else { panic!("{picture:?}") };
        assert_eq!((program.weight, program.share), (9, 1.0));
        let groups: Vec<_> = program.groups.iter().map(|group| (group.name.as_str(), group.weight)).collect();
        assert_eq!(groups, [("b", 6), ("a", 2), ("no namespace or file", 1)]);
        let flames = picture.flames.expect("there are stacks");
        let told: Vec<_> = flames
            .frames
            .iter()
            .map(|flame| (flame.readable.as_str(), flame.depth, flame.start, flame.weight))
            .collect();
        assert_eq!(told, [("main", 0, 0, 9), ("a::f", 1, 0, 8), ("b::g", 2, 0, 6), ("c", 1, 8, 1)]);
        assert_eq!((flames.weight, flames.depth, flames.left_out), (9, 3, 1));
    }

    #[test]
    fn a_program_of_many_functions_has_a_bounded_picture() {
        let lines: String =
            (0..5000).map(|index| format!("main;m{}::f{index} {}\n", index % 100, 6000 - index)).collect();
        let picture = picture(&lines);
        let groups = &picture.objects[0].groups;
        assert_eq!(groups.len(), GROUPS_MAX);
        assert_eq!(groups.iter().map(|group| group.weight).sum::<u64>(), picture.objects[0].weight);
        assert_eq!(groups.iter().map(|group| group.count).sum::<usize>(), 5000);
        assert!(groups.iter().map(|group| group.functions.len()).sum::<usize>() <= FUNCTIONS_MAX);
        assert!(groups.iter().any(|group| group.name == "61 more groups"), "{:?}", groups.last());
        for group in groups {
            let told = group.functions.iter().map(|function| function.weight).sum::<u64>();
            assert_eq!(told + group.rest_weight, group.weight, "{}", group.name);
            assert_eq!(group.functions.len() + group.rest_count, group.count, "{}", group.name);
        }
        let flames = picture.flames.expect("there are stacks");
        assert!(flames.frames.len() <= FRAMES_MAX && flames.left_out > 3000, "{}", flames.left_out);
        let deep = format!("{}leaf 5\n", "f;".repeat(500));
        assert_eq!(self::picture(&deep).flames.expect("a stack").depth, DEPTH_MAX);
    }

    /// A short recording: each stack was sampled once, so that thousands of frames are equally wide, and none narrow.
    #[test]
    fn of_many_frames_that_are_equally_wide_the_lowest_are_drawn() {
        let stack =
            |tail: usize| (0..60).map(move |depth| format!("f{tail}_{depth}")).collect::<Vec<_>>().join(";");
        let lines: String = (0..40).map(|tail| format!("{} 1\n", stack(tail))).collect();
        let flames = picture(&lines).flames.expect("there are stacks");
        assert_eq!((flames.frames.len(), flames.left_out, flames.depth), (FRAMES_MAX, 400, 50));
        let wide =
            flames.frames.iter().filter(|flame| flame.depth == 0).map(|flame| flame.weight).sum::<u64>();
        assert_eq!(wide, flames.weight, "each stack stands there");
        // One that is wider goes before all of them, however high it lies.
        let flames = picture(&format!("{lines}{} 2\n", stack(40))).flames.expect("there are stacks");
        let wider = flames.frames.iter().filter(|flame| flame.weight == 2).count();
        assert_eq!((wider, flames.frames.len()), (60, FRAMES_MAX));
    }

    proptest! {
        #[test]
        fn any_name_has_a_group(name in "[a-z<>():&*, /.0-9\\[]{0,24}|\\PC{0,12}") {
            prop_assert!(!group_of(&name).is_empty());
        }

        #[test]
        fn frames_lie_within_their_callers_and_beside_their_neighbours(
            stacks in prop::collection::vec((prop::collection::vec(0_u32..4, 2..6), 1_u64..9), 1..40),
        ) {
            let line = |(stack, weight): &(Vec<u32>, u64)| {
                let frames: Vec<String> = stack.iter().map(|frame| format!("f{frame}")).collect();
                format!("{} {weight}\n", frames.join(";"))
            };
            let picture = picture(&stacks.iter().map(line).collect::<String>());
            let flames = picture.flames.expect("there are stacks");
            prop_assert_eq!(flames.weight, stacks.iter().map(|(_, weight)| weight).sum::<u64>());
            // The last frame of each depth so far.
            let mut last: Vec<TextFlame> = Vec::new();
            for flame in &flames.frames {
                let end = flame.start + flame.weight;
                let depth = flame.depth as usize;
                if let Some(beside) = last.get(depth) {
                    prop_assert!(beside.start + beside.weight <= flame.start);
                }
                prop_assert!(depth <= last.len());
                if depth > 0 {
                    let caller = &last[depth - 1];
                    prop_assert!(caller.start <= flame.start && end <= caller.start + caller.weight);
                }
                prop_assert!(end <= flames.weight);
                if depth < last.len() { last[depth] = flame.clone() } else { last.push(flame.clone()) }
            }
        }
    }
}
