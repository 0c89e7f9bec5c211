//! What a host is between two writes: a limit is there before the mode that enforces it, and after.

use planish_exchange::{ExportFormat, export};
use planish_model::{Class, EntryId, Exit, Plan, Want};
use planish_pipeline::{
    ApplyOptions, PlanOptions, Session, Source, Target, apply, check, confirm, is_undo_refused, outgoing,
    plan, undo,
};

use crate::faults::{Fuse, Moment, fused, until_killed};
use crate::tree::*;
use crate::watch::{take_late, without_watcher};

const MODE: &str = "/proc/sys/vm/overcommit_memory";
const RATIO: &str = "/proc/sys/vm/overcommit_ratio";

fn wanted(mode: i64, ratio: i64) -> Source {
    profile("held", &[("vm.overcommit_memory", Want::Int(mode)), ("vm.overcommit_ratio", Want::Int(ratio))])
}

fn options() -> PlanOptions {
    PlanOptions { allow_classes: vec![Class::Availability], ..PlanOptions::default() }
}

fn planned(session: &Session, source: &Source) -> Plan {
    plan(session, source, &options()).expect("a plan")
}

/// A machine of 256 GiB of which 160 are promised: half of it is too little for mode 2.
fn tree(mode: &str, ratio: &str) -> Tree {
    let tree = Tree::copy_of("metal-2s");
    let lines = tree.get("/proc/meminfo");
    let lines: Vec<&str> = lines.lines().filter(|line| !line.starts_with("Committed_AS")).collect();
    tree.put("/proc/meminfo", &format!("{}\nCommitted_AS:   167772160 kB\n", lines.join("\n")));
    tree.put(MODE, &format!("{mode}\n"));
    tree.put(RATIO, &format!("{ratio}\n"));
    tree
}

/// Whether programs are held to a limit that is below what they were promised.
fn is_starved(tree: &Tree) -> bool {
    tree.get(MODE).trim() == "2" && tree.get(RATIO).trim() != "95"
}

#[test]
fn a_kill_at_any_moment_leaves_no_limit_below_what_is_promised() {
    for (before, wish) in [(("0", "50"), (2, 95)), (("2", "95"), (0, 50))] {
        let tree_of = || tree(before.0, before.1);
        let source = wanted(wish.0, wish.1);
        let counting = Fuse::counting();
        let whole = tree_of();
        let plan = planned(&whole.session(), &source);
        assert_eq!(plan.steps.len(), 2, "{:?}", plan.skipped);
        let session = fused(whole.options(), &counting);
        apply(&session, &plan, &ApplyOptions::default()).expect("applied");
        let of_apply = counting.operations();
        assert_eq!(undo(&session, Target::Newest, false).expect("undone").exit, Exit::Done);
        let of_both = counting.operations();
        let order = if wish.0 == 2 { [RATIO, MODE, MODE, RATIO] } else { [MODE, RATIO, RATIO, MODE] };
        assert_eq!(counting.places(), order);
        drop(session);
        for operation in 0..of_both {
            let tree = tree_of();
            let start = tree.snapshot();
            let session = fused(tree.options(), &Fuse::at(operation, Moment::After));
            let run = || {
                apply(&session, &plan, &ApplyOptions::default()).expect("applied");
                undo(&session, Target::Newest, false).expect("undone")
            };
            assert!(until_killed(run).is_none(), "{operation} of {of_apply} and {of_both}");
            drop(session);
            assert!(!is_starved(&tree), "killed behind {operation}: {}", tree.get(RATIO));
            undo(&tree.session(), Target::All, false).expect("undone");
            assert_eq!(differences(&start, &tree.snapshot()), [""; 0], "{operation}");
        }
    }
}

/// A machine with an entry as an older planish wrote it: the mode first, and the limit behind it.
fn with_mode_first() -> Tree {
    let tree = tree("0", "50");
    let mut plan = planned(&tree.session(), &wanted(2, 95));
    plan.steps.reverse();
    let plan = Plan {
        hash: Plan::new(
            plan.profile.clone(),
            plan.host_id.clone(),
            plan.boot_id.clone(),
            plan.steps.clone(),
            plan.skipped.clone(),
        )
        .hash,
        ..plan
    };
    apply(&tree.session(), &plan, &ApplyOptions::default()).expect("applied");
    assert_eq!(tree.entries()[0].steps[0].place, MODE);
    tree
}

#[test]
fn an_entry_with_the_mode_first_leaves_the_mode_first_too() {
    let tree = with_mode_first();
    let counting = Fuse::counting();
    let session = fused(tree.options(), &counting);
    assert_eq!(undo(&session, Target::Entry(EntryId(1)), false).expect("undone").exit, Exit::Done);
    assert_eq!(counting.places(), [MODE, RATIO]);
    // The same where another entry takes its place.
    let tree = with_mode_first();
    let other = profile("other", &[("vm.swappiness", Want::Int(7))]);
    let options = PlanOptions { instead_of: Some(EntryId(1)), ..options() };
    let plan = plan(&tree.session(), &other, &options).expect("a plan");
    let counting = Fuse::counting();
    apply(&fused(tree.options(), &counting), &plan, &ApplyOptions::default()).expect("applied");
    let places = counting.places();
    let at = |place: &str| places.iter().position(|other| *other == place).expect("written");
    assert!(at(MODE) < at(RATIO), "{places:?}");
}

/// What a mode needs goes back with the entry that had both.
#[test]
fn a_mode_that_is_taken_over_does_not_lose_its_limit() {
    let tree = tree("0", "50");
    apply(&tree.session(), &planned(&tree.session(), &wanted(2, 95)), &ApplyOptions::default())
        .expect("applied");
    // As the kernel tells of 95 % of it.
    let told = tree.get("/proc/meminfo");
    let told: Vec<&str> = told.lines().filter(|line| !line.starts_with("CommitLimit")).collect();
    tree.put("/proc/meminfo", &format!("{}\nCommitLimit:    255013683 kB\n", told.join("\n")));
    let mode = profile("mode", &[("vm.overcommit_memory", Want::Int(2)), ("vm.swappiness", Want::Int(7))]);
    let options = PlanOptions { instead_of: Some(EntryId(1)), ..options() };
    let error = plan(&tree.session(), &mode, &options).expect_err("128 of 160 GiB");
    assert_eq!(error.exit(), Exit::Refused, "{error}");
    assert!(error.to_string().contains("could be promised"), "{error}");
    // With its limit it may take the place.
    let both = [
        ("vm.overcommit_memory", Want::Int(2)),
        ("vm.overcommit_ratio", Want::Int(95)),
        ("vm.swappiness", Want::Int(7)),
    ];
    plan(&tree.session(), &profile("both", &both), &options).expect("a plan");
}

/// The lowest of a pair goes back with its entry, and a highest is held against what it goes back to.
#[test]
fn one_of_a_pair_is_held_against_what_goes_back_and_not_against_what_goes() {
    const BACKGROUND: &str = "/proc/sys/vm/dirty_background_bytes";
    let tree = Tree::copy_of("metal-2s");
    let allowed = |instead_of: Option<u64>| PlanOptions {
        allow_classes: vec![Class::Availability, Class::Durability],
        instead_of: instead_of.map(EntryId),
        ..PlanOptions::default()
    };
    let wants = |wants: &[(&str, i64)]| {
        let wants: Vec<_> = wants.iter().map(|(id, value)| (*id, Want::Int(*value))).collect();
        profile("pair", &wants)
    };
    let first = plan(&tree.session(), &wants(&[("vm.dirty_background_bytes", 64 << 20)]), &allowed(None));
    apply(&tree.session(), &first.expect("a plan"), &ApplyOptions::default()).expect("applied");
    let next = wants(&[("vm.dirty_bytes", 32 << 20)]);
    let refused = |source: &Source, instead_of: Option<u64>| match plan(
        &tree.session(),
        source,
        &allowed(instead_of),
    ) {
        Ok(plan) => plan.skipped.into_iter().find(|row| row.impossible).map(|row| row.verdict.reason),
        Err(error) => Some(error.to_string()),
    };
    let why = refused(&next, None);
    assert!(why.as_ref().is_some_and(|why| why.contains("which stays at 67108864: want both")), "{why:?}");
    let second = plan(&tree.session(), &next, &allowed(Some(1))).expect("a plan");
    apply(&tree.session(), &second, &ApplyOptions::default()).expect("applied");
    assert_eq!((tree.get(BACKGROUND).trim(), tree.get("/proc/sys/vm/dirty_bytes").trim()), ("0", "33554432"));
    // What goes back is no less a limit: here a speed that another entry had lowered goes up again.
    let below = |place: &str| tree.get(place).trim().parse::<i64>().expect("kHz");
    let low = below("/sys/devices/system/cpu/cpu0/cpufreq/scaling_min_freq");
    let high = below("/sys/devices/system/cpu/cpu0/cpufreq/scaling_max_freq");
    let third = plan(&tree.session(), &wants(&[("cpu.max_freq_khz", (low + high) / 2)]), &allowed(None));
    apply(&tree.session(), &third.expect("a plan"), &ApplyOptions::default()).expect("applied");
    let above = wants(&[("cpu.min_freq_khz", (low + high) / 2 + 100_000)]);
    assert!(refused(&above, None).is_some(), "it is above what stays");
    assert_eq!(refused(&above, Some(3)), None, "the highest goes back");
    let beyond = wants(&[("cpu.min_freq_khz", high + 100_000)]);
    assert!(refused(&beyond, Some(3)).is_some(), "it is above what goes back, too");
}

const THRESHOLDS: [&str; 3] = [
    "/proc/sys/net/ipv4/neigh/default/gc_thresh1",
    "/proc/sys/net/ipv4/neigh/default/gc_thresh2",
    "/proc/sys/net/ipv4/neigh/default/gc_thresh3",
];

/// Kills at every write of `act`, before and behind it: what is left is borne, and goes back whole.
fn is_borne_at_every_write(
    make: &dyn Fn() -> Tree,
    act: &dyn Fn(&Session),
    is_borne: &dyn Fn(&Tree) -> bool,
) {
    let counting = Fuse::counting();
    let tree = make();
    act(&fused(tree.options(), &counting));
    let count = counting.places().len();
    assert!(count > 1, "{count}");
    for operation in 0..count {
        for moment in [Moment::Before, Moment::After] {
            let tree = make();
            let session = fused(tree.options(), &Fuse::at(operation, moment));
            until_killed(|| act(&session));
            drop(session);
            let seen = THRESHOLDS.map(|place| tree.get(place));
            assert!(
                is_borne(&tree),
                "killed at {operation}: {} {} {seen:?}",
                tree.get(MODE),
                tree.get(RATIO)
            );
            undo(&tree.session(), Target::All, false).expect("undone");
            assert!(is_borne(&tree));
        }
    }
}

fn take_place(session: &Session, wants: &[(&str, Want)]) {
    let options = PlanOptions { instead_of: Some(EntryId(1)), ..options() };
    let plan = plan(session, &profile("second", wants), &options).expect("a plan");
    apply(session, &plan, &ApplyOptions { confirm_seconds: Some(3600), ..ApplyOptions::default() })
        .expect("applied");
}

/// What goes back with an entry and what takes its place are one path.
#[test]
fn a_plan_in_the_place_of_an_entry_goes_by_no_state_that_is_refused() {
    let held = || {
        let tree = tree("0", "50");
        apply(&tree.session(), &planned(&tree.session(), &wanted(2, 95)), &ApplyOptions::default())
            .expect("applied");
        tree
    };
    let leave = |session: &Session| take_place(session, &[("vm.overcommit_memory", Want::Int(1))]);
    is_borne_at_every_write(&held, &leave, &|tree| !is_starved(tree));
    let many = || {
        let tree = Tree::copy_of("metal-2s");
        let wants = [
            ("net.ipv4.neigh.default.gc_thresh2", Want::Int(4096)),
            ("net.ipv4.neigh.default.gc_thresh3", Want::Int(8192)),
        ];
        let first = planned(&tree.session(), &profile("many", &wants));
        apply(&tree.session(), &first, &ApplyOptions::default()).expect("applied");
        tree
    };
    let fewer =
        |session: &Session| take_place(session, &[("net.ipv4.neigh.default.gc_thresh2", Want::Int(600))]);
    is_borne_at_every_write(&many, &fewer, &|tree| {
        let now = THRESHOLDS.map(|place| tree.get(place).trim().parse::<u64>().expect("a number"));
        now.is_sorted()
    });
}

/// An entry in the place of another goes back to what was before both, by the same care.
#[test]
fn an_undo_of_what_took_a_place_goes_by_no_state_that_is_refused() {
    let over = |first: &Source, second: &[(&str, Want)]| {
        let tree = tree("0", "50");
        apply(&tree.session(), &planned(&tree.session(), first), &ApplyOptions::default()).expect("applied");
        let options = PlanOptions { instead_of: Some(EntryId(1)), ..options() };
        let plan = plan(&tree.session(), &profile("second", second), &options).expect("a plan");
        apply(&tree.session(), &plan, &ApplyOptions::default()).expect("applied");
        tree
    };
    let back = |session: &Session| drop(undo(session, Target::Newest, false).expect("undone"));
    let limits = [("vm.overcommit_memory", Want::Int(2)), ("vm.overcommit_ratio", Want::Int(96))];
    let is_little = |tree: &Tree| tree.get(MODE).trim() == "2" && tree.get(RATIO).trim() == "50";
    is_borne_at_every_write(&|| over(&wanted(2, 95), &limits), &back, &|tree| !is_little(tree));
    let thresholds = |second: i64, third: i64| {
        [
            ("net.ipv4.neigh.default.gc_thresh2", Want::Int(second)),
            ("net.ipv4.neigh.default.gc_thresh3", Want::Int(third)),
        ]
    };
    let many = || over(&profile("many", &thresholds(4096, 8192)), &thresholds(3000, 6000));
    is_borne_at_every_write(&many, &back, &|tree| {
        THRESHOLDS.map(|place| tree.get(place).trim().parse::<u64>().expect("a number")).is_sorted()
    });
}

/// Judged is what an undo writes: not what an entry that is gone had left, and not what nobody built upon.
#[test]
fn an_undo_is_refused_for_what_it_would_write_alone() {
    let one = |tree: &Tree, id: &str, value: i64, instead_of: Option<u64>| {
        let allow_classes = vec![Class::Availability, Class::Durability];
        let options =
            PlanOptions { allow_classes, instead_of: instead_of.map(EntryId), ..PlanOptions::default() };
        let plan =
            plan(&tree.session(), &profile("one", &[(id, Want::Int(value))]), &options).expect("a plan");
        apply(&tree.session(), &plan, &ApplyOptions::default()).expect("applied");
    };
    // In the place of an entry: what goes back is the value of before both.
    let starved = tree("0", "50");
    one(&starved, "vm.overcommit_ratio", 95, None);
    one(&starved, "vm.overcommit_ratio", 97, Some(1));
    show_limit(&starved, 260_382_392);
    one(&starved, "vm.overcommit_memory", 2, None);
    let error = undo(&starved.session(), Target::Entry(EntryId(2)), false).expect_err("50 % is too little");
    assert!(error.hints()[0].contains("planish undo 3"), "{:?}", error.hints());
    // And what it would not write is nothing to refuse it for.
    let dirty = Tree::copy_of("metal-2s");
    dirty.put("/proc/sys/vm/dirty_background_ratio", "5\n");
    one(&dirty, "vm.dirty_ratio", 8, None);
    one(&dirty, "vm.dirty_ratio", 12, Some(1));
    one(&dirty, "vm.dirty_background_ratio", 11, None);
    assert_eq!(undo(&dirty.session(), Target::Entry(EntryId(2)), false).expect("to 20").exit, Exit::Done);
    // Its twin comes back with it.
    let twins = Tree::copy_of("metal-2s");
    one(&twins, "vm.dirty_bytes", 4 << 30, None);
    one(&twins, "vm.dirty_background_ratio", 25, None);
    undo(&twins.session(), Target::Entry(EntryId(1)), false).expect_err("the share of before is 20");
    // How tight a host was before anybody came is how it may be again, whatever else is set.
    let few = Tree::copy_of("metal-2s");
    few.put("/proc/sys/net/ipv4/ip_local_port_range", "60000\t60100\n");
    let wide = [("net.ipv4.ip_local_port_range", Want::Text("1024 65535".to_owned()))];
    let plan = planned(&few.session(), &profile("wide", &wide));
    apply(&few.session(), &plan, &ApplyOptions::default()).expect("applied");
    one(&few, "net.ipv4.neigh.default.gc_thresh3", 4096, None);
    assert_eq!(undo(&few.session(), Target::Entry(EntryId(1)), false).expect("as it was").exit, Exit::Done);
}

/// What a newer entry was built upon does not go from below it, unless it is asked for by force.
#[test]
fn an_older_entry_does_not_take_the_limit_of_a_newer_mode_away() {
    let tree = tree("0", "50");
    let start = tree.snapshot();
    let of = |id: &str, value: i64| profile("one", &[(id, Want::Int(value))]);
    let first = planned(&tree.session(), &of("vm.overcommit_ratio", 95));
    apply(&tree.session(), &first, &ApplyOptions::default()).expect("applied");
    let told = tree.get("/proc/meminfo");
    let shown: Vec<&str> = told.lines().filter(|line| !line.starts_with("CommitLimit")).collect();
    tree.put("/proc/meminfo", &format!("{}\nCommitLimit:    255013683 kB\n", shown.join("\n")));
    let second = planned(&tree.session(), &of("vm.overcommit_memory", 2));
    apply(&tree.session(), &second, &ApplyOptions::default()).expect("applied");
    let before = tree.snapshot();
    let error = undo(&tree.session(), Target::Entry(EntryId(1)), false).expect_err("the mode needs it");
    assert_eq!(error.exit(), Exit::Refused, "{error}");
    assert!(error.to_string().contains(&format!("vm.overcommit_ratio ({RATIO}): ")), "{error}");
    assert!(error.hints()[0].contains("planish undo 2"), "{:?}", error.hints());
    assert_eq!(differences(&before, &tree.snapshot()), [""; 0]);
    // Both together, and the newest alone, are nobody's loss.
    assert_eq!(undo(&tree.session(), Target::All, false).expect("undone").exit, Exit::Done);
    tree.put("/proc/meminfo", &told);
    assert_eq!(differences(&start, &tree.snapshot()), [""; 0]);
}

/// What a kernel shows as its limit of promises.
fn show_limit(tree: &Tree, kib: u64) {
    let told = tree.get("/proc/meminfo");
    let rest: Vec<&str> = told.lines().filter(|line| !line.starts_with("CommitLimit")).collect();
    tree.put("/proc/meminfo", &format!("{}\nCommitLimit:    {kib} kB\n", rest.join("\n")));
}

/// The timer asks nobody: what it would take away is nothing to build upon.
#[test]
fn a_plan_that_is_built_upon_what_is_on_trial_is_refused() {
    let tree = tree("0", "50");
    let one = |id: &str, value: i64| planned(&tree.session(), &profile("one", &[(id, Want::Int(value))]));
    let on_trial = ApplyOptions { confirm_seconds: Some(600), ..ApplyOptions::default() };
    apply(&without_watcher(&tree), &one("vm.overcommit_ratio", 95), &on_trial).expect("applied");
    show_limit(&tree, 255_013_683);
    let mode = one("vm.overcommit_memory", 2);
    let before = tree.snapshot();
    let no_shorter = ApplyOptions { confirm_seconds: Some(590), ..ApplyOptions::default() };
    apply(&without_watcher(&tree), &mode, &no_shorter).expect_err("two timers at a time");
    for options in [&ApplyOptions::default(), &on_trial] {
        let error = apply(&without_watcher(&tree), &mode, options).expect_err("50 % is too little");
        assert_eq!(error.exit(), Exit::Refused, "{error}");
        let told = error.to_string();
        assert!(told.contains(&format!("vm.overcommit_memory ({MODE}): 128 GiB")), "{told}");
        assert!(told.contains("on trial: entry 1 is undone in 600 s"), "{told}");
        let cure = error.hints()[0].clone();
        assert!(cure.contains("planish confirm") && cure.contains("planish undo 1"), "{cure}");
    }
    assert_eq!(differences(&before, &tree.snapshot()), [""; 0]);
    // What does not need it goes on, and so does what eases it.
    let other = apply(&without_watcher(&tree), &one("vm.swappiness", 7), &ApplyOptions::default());
    assert_eq!(other.expect("applied").exit, Exit::Done);
    apply(&without_watcher(&tree), &one("vm.overcommit_memory", 1), &ApplyOptions::default())
        .expect("no limit");
    assert_eq!(undo(&tree.session(), Target::Newest, false).expect("undone").exit, Exit::Done);
    // And so does what goes well before it.
    let shorter = ApplyOptions { confirm_seconds: Some(30), ..ApplyOptions::default() };
    apply(&without_watcher(&tree), &mode, &shorter).expect("its own timer is the first");
    assert_eq!(undo(&tree.session(), Target::Newest, false).expect("undone").exit, Exit::Done);
    // What is confirmed can be built upon.
    confirm(&tree.session()).expect("in time");
    apply(&tree.session(), &mode, &ApplyOptions::default()).expect("applied");
    assert_eq!(tree.get(MODE).trim(), "2");
}

/// Nobody is told to type an undo that is refused.
#[test]
fn an_undo_that_would_be_refused_is_known_before_and_behind_the_apply() {
    let tree = tree("0", "50");
    let one = |id: &str, value: i64| planned(&tree.session(), &profile("one", &[(id, Want::Int(value))]));
    apply(&tree.session(), &one("vm.overcommit_ratio", 95), &ApplyOptions::default()).expect("applied");
    show_limit(&tree, 255_013_683);
    let (mode, other) = (one("vm.overcommit_memory", 2), one("vm.swappiness", 7));
    let is_refused = |plan: &Plan| is_undo_refused(&tree.session(), EntryId(1), plan);
    assert!(is_refused(&mode), "it is planned");
    assert!(!is_refused(&other));
    apply(&tree.session(), &mode, &ApplyOptions::default()).expect("applied");
    assert!(is_refused(&mode), "it is written");
    assert!(is_refused(&other), "whatever is planned beside it");
    undo(&tree.session(), Target::Entry(EntryId(1)), false).expect_err("as was said");
}

/// An apply that is taken back and leaves a value has failed, and the host is not as it was; the undo that it names
/// says what must be otherwise first.
#[test]
fn a_rollback_that_leaves_a_limit_ends_with_5_and_says_when_an_undo_helps() {
    let tree = tree("2", "50");
    show_limit(&tree, 255_013_683);
    let grown = tree.get("/proc/meminfo");
    let before = grown.replace("167772160", "96468992");
    tree.put("/proc/meminfo", &before);
    let rows = format!(
        "\n[[answer]]\nplace = \"/proc/sys/vm/stat_interval\"\n\
         derives = [{{ place = \"/proc/meminfo\", value = '''\n{grown}''' }}]\n\
         [[answer]]\nplace = \"/proc/sys/vm/swappiness\"\nerrno = \"EIO\"\n"
    );
    tree.put("/meta.toml", &(tree.get("/meta.toml") + &rows));
    let wants = [
        ("vm.overcommit_ratio", Want::Int(95)),
        ("vm.stat_interval", Want::Int(20)),
        ("vm.swappiness", Want::Int(7)),
    ];
    let plan = planned(&tree.session(), &profile("one", &wants));
    let applied = apply(&tree.session(), &plan, &ApplyOptions::default()).expect("it has begun");
    assert_eq!(
        (applied.exit, tree.get(RATIO).trim()),
        (Exit::FailedNotRestored, "95"),
        "{:?}",
        applied.hints
    );
    let told = applied.hints.join("\n");
    assert!(
        told.contains("when less is promised, or another mode is in force, once more: planish undo 1"),
        "{told}"
    );
    assert!(told.contains("planish undo 1 --force") && !told.contains("try again"), "{told}");
    tree.put("/proc/meminfo", &before);
    assert_eq!(undo(&tree.session(), Target::Newest, false).expect("undone").exit, Exit::Done);
    assert_eq!(tree.get(RATIO).trim(), "50");
}

/// A limit does not go below what is promised, whoever set the mode that holds programs to it.
#[test]
fn a_limit_does_not_go_back_below_a_mode_set_by_hand() {
    for (mode, exit, ratio) in [("2", Exit::Findings, "95"), ("1", Exit::Done, "50")] {
        let tree = tree("0", "50");
        let first = planned(&tree.session(), &profile("one", &[("vm.overcommit_ratio", Want::Int(95))]));
        apply(&tree.session(), &first, &ApplyOptions::default()).expect("applied");
        show_limit(&tree, 255_013_683);
        tree.edit(MODE, mode);
        let undone = undo(&tree.session(), Target::Newest, false).expect("it has begun");
        assert_eq!((undone.exit, tree.get(RATIO).trim()), (exit, ratio), "{:?}", undone.hints);
        let told = undone.hints.join("\n");
        let why = format!("{RATIO}: `50` was not written back: in mode 2 128 GiB could be promised");
        assert_eq!(told.contains(&why), mode == "2", "{told}");
        assert_eq!(told.contains("planish undo 1 --force"), mode == "2", "{told}");
        // It is still to be taken back, and goes once another mode is there.
        tree.edit(MODE, "0");
        undo(&tree.session(), Target::Newest, false).expect("undone");
        assert_eq!(tree.get(RATIO).trim(), "50");
    }
    // What stays as it was before anybody came is no news, where nothing is too little.
    let tree = tree("2", "95");
    show_limit(&tree, 255_013_683);
    let first = planned(&tree.session(), &profile("one", &[("vm.overcommit_ratio", Want::Int(96))]));
    apply(&tree.session(), &first, &ApplyOptions::default()).expect("applied");
    assert_eq!(undo(&tree.session(), Target::Newest, false).expect("undone").exit, Exit::Done);
}

/// What programs are promised grows after the apply, and no plan could know of it.
#[test]
fn a_mode_does_not_come_back_where_more_is_promised_meanwhile() {
    let begun = || {
        let tree = tree("2", "95");
        show_limit(&tree, 255_013_683);
        for (id, value) in [("vm.overcommit_memory", 1), ("vm.overcommit_ratio", 50)] {
            let plan = planned(&tree.session(), &profile("one", &[(id, Want::Int(value))]));
            apply(&tree.session(), &plan, &ApplyOptions::default()).expect("applied");
        }
        show_limit(&tree, 134_217_728);
        promise(&tree, 240_000_000);
        tree
    };
    // 95 % would hold it, and not with the tenth that a plan asks for: so it was before anybody came.
    let tree = begun();
    let undone = undo(&tree.session(), Target::Entry(EntryId(1)), false).expect("it has begun");
    assert_eq!((undone.exit, tree.get(MODE).trim()), (Exit::Findings, "1"), "{:?}", undone.hints);
    assert_eq!(undo(&tree.session(), Target::Entry(EntryId(2)), false).expect("undone").exit, Exit::Done);
    show_limit(&tree, 255_013_683);
    assert_eq!(undo(&tree.session(), Target::Entry(EntryId(1)), false).expect("undone").exit, Exit::Done);
    assert_eq!((tree.get(MODE).trim(), tree.get(RATIO).trim()), ("2", "95"));
    let tree = begun();
    assert_eq!(undo(&tree.session(), Target::Entry(EntryId(1)), true).expect("forced").exit, Exit::Done);
    assert_eq!(tree.get(MODE).trim(), "2", "as was asked for");
}

/// A mode that files bring finds at the next boot the limit that files bring, whatever is in force now.
#[test]
fn the_next_boot_has_no_mode_without_its_limit() {
    let persist = ApplyOptions { persist: true, ..ApplyOptions::default() };
    let one = |tree: &Tree, id: &str, value: i64, options: &ApplyOptions| {
        let plan = planned(&tree.session(), &profile("one", &[(id, Want::Int(value))]));
        apply(&tree.session(), &plan, options)
    };
    let of_now = tree("0", "50");
    one(&of_now, "vm.overcommit_ratio", 95, &ApplyOptions::default()).expect("applied");
    show_limit(&of_now, 255_013_683);
    let before = of_now.snapshot();
    let error = one(&of_now, "vm.overcommit_memory", 2, &persist).expect_err("no file has the ratio");
    assert_eq!(error.exit(), Exit::Refused, "{error}");
    assert!(error.to_string().contains("at the next boot in mode 2 128 GiB"), "{error}");
    assert!(error.to_string().contains("vm.overcommit_ratio is 50 then"), "{error}");
    assert_eq!(differences(&before, &of_now.snapshot()), [""; 0]);
    one(&of_now, "vm.overcommit_memory", 2, &ApplyOptions::default()).expect("until the reboot");
    // The ratio goes out of the file, and the mode of another entry stays in it.
    let of_files = tree("0", "50");
    one(&of_files, "vm.overcommit_ratio", 95, &persist).expect("applied");
    show_limit(&of_files, 255_013_683);
    one(&of_files, "vm.overcommit_memory", 2, &persist).expect("both are in the file");
    one(&of_files, "vm.overcommit_memory", 0, &ApplyOptions::default()).expect("applied");
    let undone = undo(&of_files.session(), Target::Entry(EntryId(1)), false).expect("mode 0");
    let told = undone.hints.join("\n");
    assert_eq!(undone.exit, Exit::Findings, "{told}");
    assert!(
        told.contains("at the next boot in mode 2 128 GiB") && told.contains("90-planish.conf"),
        "{told}"
    );
    assert_eq!(undo(&of_files.session(), Target::All, false).expect("undone").exit, Exit::Done);
}

/// What is promised to programs, in KiB.
fn promise(tree: &Tree, kib: u64) {
    let told = tree.get("/proc/meminfo");
    let rest: Vec<&str> = told.lines().filter(|line| !line.starts_with("Committed_AS")).collect();
    tree.put("/proc/meminfo", &format!("{}\nCommitted_AS:   {kib} kB\n", rest.join("\n")));
}

/// A timer asks nobody, and holds no programs to less than they were promised; a shorter one that did not come is made
/// up for.
#[test]
fn a_timer_leaves_no_limit_below_what_is_promised() {
    let begun = |mode: &dyn Fn(&Tree)| {
        let tree = tree("0", "50");
        let on_trial = ApplyOptions { confirm_seconds: Some(600), ..ApplyOptions::default() };
        let plan = planned(&tree.session(), &profile("one", &[("vm.overcommit_ratio", Want::Int(95))]));
        apply(&without_watcher(&tree), &plan, &on_trial).expect("applied");
        show_limit(&tree, 255_013_683);
        mode(&tree);
        let undone = take_late(&tree, 601);
        (tree, undone)
    };
    // The mode by hand: what it holds stays until that is gone.
    let (tree, undone) = begun(&|tree| tree.edit(MODE, "2"));
    assert_eq!((undone.exit, tree.get(RATIO).trim()), (Exit::Findings, "95"), "{:?}", undone.hints);
    let checked = check(&tree.session(), None).expect("checked");
    assert_eq!((checked.interrupted.len(), checked.exit), (1, Exit::Findings), "it was not kept");
    tree.edit(MODE, "0");
    assert_eq!(undo(&tree.session(), Target::Newest, false).expect("undone").exit, Exit::Done);
    assert_eq!(tree.get(RATIO).trim(), "50");
    // The mode by a trial whose own timer did not come.
    let (tree, undone) = begun(&|tree| {
        let shorter = ApplyOptions { confirm_seconds: Some(30), ..ApplyOptions::default() };
        let plan = planned(&tree.session(), &profile("one", &[("vm.overcommit_memory", Want::Int(2))]));
        apply(&without_watcher(tree), &plan, &shorter).expect("its own timer is the first");
    });
    let ids: Vec<u64> = undone.entries.iter().map(|(id, _)| id.0).collect();
    assert_eq!((undone.exit, ids), (Exit::Done, vec![2, 1]), "{:?}", undone.hints);
    assert_eq!((tree.get(MODE).trim(), tree.get(RATIO).trim()), ("0", "50"));
}

/// What was left to somebody and is written by force in the end has its order, too.
#[test]
fn what_force_takes_up_once_more_goes_by_no_state_that_is_refused() {
    let tree = tree("0", "50");
    apply(&tree.session(), &planned(&tree.session(), &wanted(1, 90)), &ApplyOptions::default())
        .expect("applied");
    tree.edit(MODE, "2");
    tree.edit(RATIO, "95");
    show_limit(&tree, 255_013_683);
    assert_eq!(undo(&tree.session(), Target::Newest, false).expect("both are theirs").exit, Exit::Findings);
    assert_eq!((tree.get(MODE).trim(), tree.get(RATIO).trim()), ("2", "95"));
    let counting = Fuse::counting();
    let session = fused(tree.options(), &counting);
    assert_eq!(undo(&session, Target::Entry(EntryId(1)), true).expect("forced").exit, Exit::Done);
    assert_eq!(counting.places(), [MODE, RATIO]);
    assert_eq!((tree.get(MODE).trim(), tree.get(RATIO).trim()), ("0", "50"));
}

/// Entries 1 to 3 over each other: the limit, the mode that needs it, and `third`.
fn stacked(third: i64, options: &ApplyOptions) -> Tree {
    let tree = tree("0", "50");
    let apply_one = |id: &str, value: i64, options: &ApplyOptions| {
        let plan = planned(&without_watcher(&tree), &profile("one", &[(id, Want::Int(value))]));
        apply(&without_watcher(&tree), &plan, options).expect("applied");
    };
    apply_one("vm.overcommit_ratio", 95, &ApplyOptions::default());
    show_limit(&tree, 255_013_683);
    apply_one("vm.overcommit_memory", 2, &ApplyOptions::default());
    apply_one("vm.overcommit_memory", third, options);
    tree
}

/// The newest entry may lie over one that has lost what it needs.
#[test]
fn an_undo_of_the_newest_does_not_bring_back_a_mode_whose_limit_went() {
    for target in [Target::Newest, Target::Entry(EntryId(3))] {
        for way in [Target::All, Target::Entry(EntryId(2))] {
            let tree = stacked(0, &ApplyOptions::default());
            assert_eq!(
                undo(&tree.session(), Target::Entry(EntryId(1)), false).expect("mode 0").exit,
                Exit::Done
            );
            show_limit(&tree, 134_217_728);
            let before = tree.snapshot();
            let error = undo(&tree.session(), target, false).expect_err("mode 2 at 50 %");
            assert_eq!(error.exit(), Exit::Refused, "{error}");
            let told = error.to_string();
            assert!(told.contains("undo of entry 3 would bring back"), "{told}");
            assert!(told.contains("vm.overcommit_memory = 2 of entry 2"), "{told}");
            assert!(told.contains("128 GiB could be promised"), "{told}");
            let cure = error.hints()[0].clone();
            assert!(cure.contains("planish undo 2;") && cure.contains("planish undo --all"), "{cure}");
            assert_eq!(differences(&before, &tree.snapshot()), [""; 0]);
            // Each way that is named is one.
            assert_eq!(undo(&tree.session(), way, false).expect("a way").exit, Exit::Done);
            let rest = undo(&tree.session(), target, false);
            assert!(way == Target::All || rest.expect("nothing is below it").exit == Exit::Done);
            assert_eq!((tree.get(MODE).trim(), tree.get(RATIO).trim()), ("0", "50"));
        }
    }
    let tree = stacked(0, &ApplyOptions::default());
    undo(&tree.session(), Target::Entry(EntryId(1)), false).expect("mode 0");
    show_limit(&tree, 134_217_728);
    assert_eq!(undo(&tree.session(), Target::Newest, true).expect("forced").exit, Exit::Done);
    assert!(is_starved(&tree), "as was asked for");
    // With its limit there the mode comes back.
    let tree = stacked(0, &ApplyOptions::default());
    assert_eq!(undo(&tree.session(), Target::Newest, false).expect("95 %").exit, Exit::Done);
    assert_eq!(tree.get(MODE).trim(), "2");
}

/// What took the place of the limit's entry is the newest just as well.
#[test]
fn an_undo_of_what_took_the_place_of_a_limit_does_not_bring_back_the_mode() {
    let tree = stacked(1, &ApplyOptions::default());
    undo(&tree.session(), Target::Newest, false).expect("undone");
    let options = PlanOptions { instead_of: Some(EntryId(1)), ..options() };
    let mode = profile("none", &[("vm.overcommit_memory", Want::Int(0))]);
    let plan = plan(&tree.session(), &mode, &options).expect("a plan");
    apply(&tree.session(), &plan, &ApplyOptions::default()).expect("applied");
    show_limit(&tree, 134_217_728);
    let error = undo(&tree.session(), Target::Newest, false).expect_err("mode 2 at 50 %");
    assert!(error.to_string().contains("of entry 2"), "{error}");
    assert_eq!(undo(&tree.session(), Target::All, false).expect("undone").exit, Exit::Done);
    assert_eq!((tree.get(MODE).trim(), tree.get(RATIO).trim()), ("0", "50"));
}

/// How it was before anybody came is no reason to refuse an undo; where it would not bear what is promised by now, that
/// value stays, and all others go back.
#[test]
fn an_undo_to_a_mode_of_before_anybody_came_is_not_refused() {
    let tree = tree("2", "50");
    show_limit(&tree, 134_217_728);
    let wants = [("vm.swappiness", Want::Int(7)), ("vm.overcommit_memory", Want::Int(0))];
    let plan = planned(&tree.session(), &profile("both", &wants));
    apply(&tree.session(), &plan, &ApplyOptions::default()).expect("applied");
    let undone = undo(&tree.session(), Target::Newest, false).expect("it has begun");
    assert_eq!((undone.exit, tree.get(MODE).trim()), (Exit::Findings, "0"), "{:?}", undone.hints);
    assert_ne!(tree.get("/proc/sys/vm/swappiness").trim(), "7");
    promise(&tree, 120_000_000);
    assert_eq!(undo(&tree.session(), Target::Newest, false).expect("as it was").exit, Exit::Done);
    assert_eq!(tree.get(MODE).trim(), "2");
}

/// The timer of a newer entry asks nobody: what it brings back keeps what that needs.
#[test]
fn an_undo_below_a_trial_leaves_what_its_timer_brings_back_what_it_needs() {
    let on_trial = ApplyOptions { confirm_seconds: Some(600), ..ApplyOptions::default() };
    let tree = stacked(0, &on_trial);
    let before = tree.snapshot();
    let session = without_watcher(&tree);
    let error = undo(&session, Target::Entry(EntryId(1)), false).expect_err("its timer brings mode 2");
    assert_eq!(error.exit(), Exit::Refused, "{error}");
    let told = error.to_string();
    assert!(told.contains("entry 3 is undone in 600 s") && told.contains("128 GiB"), "{told}");
    let cure = error.hints()[0].clone();
    assert!(cure.contains("planish confirm") && cure.contains("planish undo 3"), "{cure}");
    let beside = planned(&session, &profile("beside", &[("vm.stat_interval", Want::Int(9))]));
    assert!(is_undo_refused(&session, EntryId(1), &beside), "nobody is told to type it");
    // The same for what takes the place of that entry.
    let instead = PlanOptions { instead_of: Some(EntryId(1)), ..options() };
    let other = profile("other", &[("vm.overcommit_ratio", Want::Int(40)), ("vm.swappiness", Want::Int(7))]);
    let gone = profile("gone", &[("vm.swappiness", Want::Int(7))]);
    for source in [&other, &gone] {
        let plan = plan(&session, source, &instead).expect("a plan");
        let error = apply(&session, &plan, &ApplyOptions::default()).expect_err("its timer brings mode 2");
        assert!(error.to_string().contains("entry 3 is undone in 600 s"), "{error}");
    }
    assert_eq!(differences(&before, &tree.snapshot()), [""; 0]);
    // What the mode does not need goes, and the trial itself.
    assert_eq!(undo(&session, Target::Entry(EntryId(2)), false).expect("covered").exit, Exit::Done);
    assert_eq!(undo(&session, Target::Entry(EntryId(1)), false).expect("no mode is left").exit, Exit::Done);
    assert_eq!(undo(&session, Target::All, false).expect("undone").exit, Exit::Done);
    // Who keeps the trial keeps the mode away.
    let tree = stacked(0, &on_trial);
    confirm(&tree.session()).expect("in time");
    assert_eq!(undo(&tree.session(), Target::Entry(EntryId(1)), false).expect("mode 0").exit, Exit::Done);
}

/// What is the same of many places is told once, with the first of them and how many there are.
#[test]
fn an_undo_that_is_refused_names_its_places() {
    let tree = Tree::copy_of("metal-2s");
    let speed = |end: &str| format!("/sys/devices/system/cpu/cpu0/cpufreq/scaling_{end}_freq");
    let [low, high] = ["min", "max"].map(|end| tree.get(&speed(end)).trim().parse::<i64>().expect("kHz"));
    let apply_one = |id: &str, value: i64| {
        let allow_classes = vec![Class::Availability];
        let options = PlanOptions { allow_classes, ..PlanOptions::default() };
        let plan =
            plan(&tree.session(), &profile("one", &[(id, Want::Int(value))]), &options).expect("a plan");
        apply(&tree.session(), &plan, &ApplyOptions::default()).expect("applied");
        plan.steps.len()
    };
    let between = i64::midpoint(low, high);
    // As somebody had it before: the highest is low.
    let cpus = apply_one("cpu.max_freq_khz", between);
    undo(&tree.session(), Target::Newest, false).expect("undone");
    for cpu in 0..cpus {
        let place = speed("max").replace("cpu0", &format!("cpu{cpu}"));
        tree.put(&place, &format!("{between}\n"));
    }
    assert_eq!(apply_one("cpu.max_freq_khz", high), cpus);
    apply_one("cpu.min_freq_khz", high);
    let error = undo(&tree.session(), Target::Entry(EntryId(2)), false).expect_err("the lowest is above it");
    let told = error.to_string();
    let places = [0, 1, 2].map(|cpu| speed("max").replace("cpu0", &format!("cpu{cpu}"))).join(", ");
    assert!(told.contains(&format!("cpu.max_freq_khz ({places} and {} more): ", cpus - 3)), "{told}");
    assert_eq!(told.matches("is below").count(), 1, "{told}");
    assert!(!told.contains("want both"), "{told}");
}

#[test]
fn every_export_has_the_limit_before_its_mode_and_behind_one_that_is_left() {
    for (mode, is_limit_first) in [(2, true), (0, false)] {
        let tree = tree("1", "80");
        let out = outgoing(&tree.session(), &wanted(mode, 95), &options()).expect("an export");
        for format in [ExportFormat::Script, ExportFormat::Sysctl, ExportFormat::Tuned, ExportFormat::Ansible]
        {
            let files = export(format, &out.name, &out.summary, &out.items).expect("plain values");
            let text = &files[0].text;
            let at = |word: &str| text.find(word).unwrap_or_else(|| panic!("{word}: {text}"));
            let is_first = at("overcommit_ratio") < at("overcommit_memory");
            assert_eq!(is_first, is_limit_first, "{format:?}, mode {mode}: {text}");
        }
    }
}
