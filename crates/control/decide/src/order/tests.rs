//! Every state between two writes, of an apply and of its undo, against the bounds of the plan.

use planish_model::{Class, Demand, PoolReading, Reading, Verdict, VerdictKind, Want};

use super::*;
use crate::testing::{observation, pool, profile, reading};
use crate::{Options, plan};

const MODE: &str = "vm.overcommit_memory";
const RATIO: &str = "vm.overcommit_ratio";
const KIB: &str = "vm.overcommit_kbytes";
const POOL: &str = "hugepages.2m";
const PORTS: &str = "net.ipv4.ip_local_port_range";
const RESERVED: &str = "net.ipv4.ip_local_reserved_ports";
const CPUFREQ: &str = "/sys/devices/system/cpu/cpu1/cpufreq";

/// A host by the values that its rows show, by id.
type State = BTreeMap<&'static str, String>;

/// 16 GiB of memory, of which 5 GiB are promised to programs.
fn start(values: &[(&'static str, &str)]) -> State {
    let usual = [
        (MODE, "0"),
        (RATIO, "50"),
        (KIB, "0"),
        (POOL, "0"),
        (PORTS, "32768\t60999"),
        (RESERVED, ""),
        ("net.ipv4.neigh.default.gc_thresh1", "128"),
        ("net.ipv4.neigh.default.gc_thresh2", "512"),
        ("net.ipv4.neigh.default.gc_thresh3", "1024"),
        ("vm.dirty_background_bytes", "67108864"),
        ("vm.dirty_bytes", "268435456"),
        ("vm.dirty_background_ratio", "0"),
        ("vm.dirty_ratio", "0"),
        ("cpu.min_freq_khz", "800000"),
        ("cpu.max_freq_khz", "2000000"),
        ("cpu.min_perf_pct", "20"),
        ("cpu.max_perf_pct", "50"),
        ("cpu.uncore_min_khz", "800000"),
        ("cpu.uncore_max_khz", "1600000"),
    ];
    usual.iter().chain(values).map(|(id, value)| (*id, (*value).to_owned())).collect()
}

fn place(catalogue: &Catalogue, id: &str) -> String {
    match id {
        POOL => pool(0, 0).place,
        "cpu.min_freq_khz" => format!("{CPUFREQ}/scaling_min_freq"),
        "cpu.max_freq_khz" => format!("{CPUFREQ}/scaling_max_freq"),
        id => {
            let path = &catalogue.knob(&KnobId::new(id)).expect("a row").path;
            let holes = ["package", "die", "cluster", "p", "d"].map(|hole| (hole, "0"));
            place::fill(path, &holes)
        }
    }
}

fn number(state: &State, id: &str) -> u64 {
    state[id].trim().parse().expect("a number")
}

/// What a host in a state shows, with the limits that the kernel makes of it.
fn seen(catalogue: &Catalogue, state: &State) -> Observation {
    let mut observation = observation();
    observation.pools = vec![PoolReading { surplus: 0, ..pool(0, number(state, POOL)) }];
    observation.host.available_bytes = (12 << 30) - (number(state, POOL) << 21);
    let unpooled = observation.host.memory_bytes - (number(state, POOL) << 21);
    let most = match number(state, KIB) {
        0 => unpooled / 100 * number(state, RATIO),
        kib => kib << 10,
    };
    let neighbours =
        [1, 2, 3].map(|index| number(state, &format!("net.ipv4.neigh.default.gc_thresh{index}")));
    observation.demand = Demand {
        port_range: Some(state[PORTS].clone()),
        ports_reserved: Some(state[RESERVED].clone()),
        neighbours: Some(neighbours),
        promised_bytes: Some(5 << 30),
        promises_bytes_max: Some(most),
        overcommit_mode: Some(number(state, MODE)),
        overcommit_kib: Some(number(state, KIB)),
        ..Demand::default()
    };
    for (id, value) in state {
        let readings: Vec<Reading> = vec![reading(&place(catalogue, id), value)];
        observation.knobs.insert(KnobId::new(*id), readings);
    }
    observation
}

/// Writes a value as the kernel does: one of two twins clears the other.
fn write(catalogue: &Catalogue, state: &mut State, id: &str, value: &str) {
    let knob = catalogue.knob(&KnobId::new(id)).expect("a row");
    if let Some(twin) = &knob.twin {
        *state.get_mut(twin.as_str()).expect("is there") = "0".to_owned();
    }
    *state.get_mut(id).expect("is there") = value.to_owned();
}

fn step(catalogue: &Catalogue, id: &str, now: &str, wanted: &str) -> Step {
    let knob = catalogue.knob(&KnobId::new(id)).expect("a row");
    let verdict = Verdict::new(VerdictKind::Settable, String::new());
    Step::of(knob, &place(catalogue, id), now.to_owned(), wanted.to_owned(), verdict)
}

/// What is wrong with a state, seen from the host that a command begins at.
fn borne(catalogue: &Catalogue, begin: &State, state: &State) -> Result<(), String> {
    const OF_MODE: [&str; 4] = [MODE, RATIO, KIB, POOL];
    let changed = state.iter().filter(|(id, value)| begin[*id] != **value && !OF_MODE.contains(id));
    let steps: Vec<Step> = changed.map(|(id, value)| step(catalogue, id, &begin[id], value)).collect();
    let mut found = bounds::ruinous(catalogue, &seen(catalogue, begin), &steps);
    // A host of mode 2 has to have what a plan asks of one that goes there.
    if state[MODE] == "2" {
        let mut before = state.clone();
        before.insert(MODE, "0".to_owned());
        let arrives = [step(catalogue, MODE, "0", "2")];
        found.extend(bounds::ruinous(catalogue, &seen(catalogue, &before), &arrives));
    }
    if let Some((knob, why)) = found.into_iter().next() {
        return Err(format!("{knob}: {why}"));
    }
    // A value that is not in force bounds nothing.
    let in_force =
        |id: &str| state.get(id).and_then(|value| value.parse::<u64>().ok()).filter(|value| *value > 0);
    let turned = against::lowest_and_highest().filter(|[low, high]| {
        let [first, second] = [low, high].map(|id| catalogue.knob(&KnobId::new(*id)).expect("a row"));
        against::is_one_unit(first, second)
            && in_force(low).zip(in_force(high)).is_some_and(|(low, high)| low > high)
    });
    turned.into_iter().next().map_or(Ok(()), |[low, high]| Err(format!("{low} above {high}")))
}

/// Plans, writes and takes back, and says what is wrong on the way.
fn walk(begin: &State, want: &[(&str, &str)]) -> Vec<String> {
    let catalogue = Catalogue::embedded().expect("sound");
    let number = |value: &str| value.parse().map_or_else(|_| Want::Text(value.to_owned()), Want::Int);
    let of_pool = |value: &str| Want::Total {
        total_bytes: value.parse::<u64>().expect("pages") << 21,
        nodes: planish_model::Nodes::Each(vec![0]),
    };
    let want: Vec<(&str, Want)> = want
        .iter()
        .map(|(id, value)| (*id, if *id == POOL { of_pool(value) } else { number(value) }))
        .collect();
    let allow_classes = vec![Class::Availability, Class::Durability];
    let options = Options { allow_classes, ..Options::default() };
    let plan =
        plan(&catalogue, &seen(&catalogue, begin), &profile(&want), &[], &options).expect("known knobs");
    assert_eq!(plan.steps.len(), want.len(), "{:?}", plan.skipped);
    let mut wrong = Vec::new();
    let mut state = begin.clone();
    for step in &plan.steps {
        write(&catalogue, &mut state, step.knob.as_str(), &step.wanted);
        if let Err(why) = borne(&catalogue, begin, &state) {
            wrong.push(format!("behind {} = {}: {why}", step.knob, step.wanted));
        }
    }
    let end = state.clone();
    let going: Vec<Option<Step>> = plan
        .steps
        .iter()
        .map(|step| Step { now: step.wanted.clone(), wanted: step.now.clone(), ..step.clone() })
        .map(|step| (step.undo == Undo::Restore).then_some(step))
        .collect();
    for index in crate::back(&going, &catalogue, &|_| seen(&catalogue, &end)) {
        let step = &plan.steps[index];
        // Of two twins the one that was in force is written.
        let twin =
            catalogue.knob(&step.knob).expect("a row").twin.as_ref().filter(|_| step.now.trim() == "0");
        let id = twin.map_or(step.knob.as_str(), KnobId::as_str).to_owned();
        write(&catalogue, &mut state, &id, &begin[id.as_str()]);
        if let Err(why) = borne(&catalogue, &end, &state) {
            wrong.push(format!("back behind {id}: {why}"));
        }
    }
    assert_eq!(state, *begin);
    wrong
}

/// What a host shows before a plan, and what is wanted.
type Case<'a> = (&'a [(&'static str, &'a str)], &'a [(&'static str, &'a str)]);

#[test]
fn no_state_between_two_writes_is_one_that_a_plan_is_refused_for() {
    let tight = [(MODE, "2"), (RATIO, "50")];
    let by_amount = [(MODE, "2"), (RATIO, "0"), (KIB, "8388608")];
    let neighbours = |index: u32| -> &'static str {
        [
            "net.ipv4.neigh.default.gc_thresh1",
            "net.ipv4.neigh.default.gc_thresh2",
            "net.ipv4.neigh.default.gc_thresh3",
        ][index as usize - 1]
    };
    let [first, second, third] = [1, 2, 3].map(neighbours);
    let (background, dirty) = ("vm.dirty_background_bytes", "vm.dirty_bytes");
    let (low, high) = ("cpu.min_freq_khz", "cpu.max_freq_khz");
    let cases: [Case<'_>; 22] = [
        (&[(RATIO, "20")], &[(MODE, "2"), (RATIO, "95")]),
        (&[(RATIO, "20")], &[(MODE, "2"), (KIB, "12582912")]),
        (&[(MODE, "2"), (RATIO, "95")], &[(MODE, "0"), (RATIO, "10")]),
        (&[(MODE, "2"), (RATIO, "95")], &[(MODE, "1"), (KIB, "1024")]),
        (&by_amount, &[(MODE, "0"), (RATIO, "10")]),
        (&tight, &[(POOL, "3072"), (RATIO, "60")]),
        (&tight, &[(POOL, "3072"), (KIB, "8388608")]),
        (&tight, &[(POOL, "3072"), (MODE, "0")]),
        (&[(RATIO, "20")], &[(POOL, "1024"), (RATIO, "70"), (MODE, "2")]),
        (&[], &[(first, "2000"), (second, "4000"), (third, "8000")]),
        (
            &[(first, "2000"), (second, "4000"), (third, "8000")],
            &[(first, "128"), (second, "512"), (third, "1024")],
        ),
        (&[], &[(first, "600"), (second, "700")]),
        (&[], &[(PORTS, "1024 4096"), (RESERVED, "10000-60999")]),
        (&[(PORTS, "1024 4096"), (RESERVED, "10000-60999")], &[(PORTS, "32768 60999"), (RESERVED, "8080")]),
        (&[], &[(background, "16777216"), (dirty, "33554432")]),
        (&[], &[(background, "536870912"), (dirty, "1073741824")]),
        (&[], &[(low, "2400000"), (high, "3000000")]),
        (&[(low, "2400000"), (high, "3000000")], &[(low, "800000"), (high, "1200000")]),
        (&[], &[("cpu.min_perf_pct", "60"), ("cpu.max_perf_pct", "90")]),
        (
            &[("cpu.min_perf_pct", "60"), ("cpu.max_perf_pct", "90")],
            &[("cpu.min_perf_pct", "5"), ("cpu.max_perf_pct", "20")],
        ),
        (&[], &[("cpu.uncore_min_khz", "1800000"), ("cpu.uncore_max_khz", "2400000")]),
        (
            &[("cpu.uncore_min_khz", "1800000"), ("cpu.uncore_max_khz", "2400000")],
            &[("cpu.uncore_min_khz", "800000"), ("cpu.uncore_max_khz", "1200000")],
        ),
    ];
    let wrong: Vec<_> = cases
        .iter()
        .map(|(begin, want)| (want, walk(&start(begin), want)))
        .filter(|(_, wrong)| !wrong.is_empty())
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn an_entry_that_was_written_the_other_way_round_goes_back_by_its_values() {
    let catalogue = Catalogue::embedded().expect("sound");
    let order = |steps: &[(&str, &str)]| {
        let going: Vec<Option<Step>> =
            steps.iter().map(|(id, value)| Some(step(&catalogue, id, "1", value))).collect();
        crate::back(&going, &catalogue, &|_| seen(&catalogue, &start(&[])))
    };
    let other = ("vm.swappiness", "60");
    // Mode first, limit behind it, as before the rows knew of each other: the mere reverse would have the limit first.
    assert_eq!(order(&[(MODE, "0"), other, (RATIO, "50")]), [0, 1, 2]);
    assert_eq!(order(&[(RATIO, "50"), other, (MODE, "0")]), [2, 1, 0]);
    // Back into the mode: its limit is there before.
    assert_eq!(order(&[(RATIO, "95"), (MODE, "2"), other]), [2, 0, 1]);
    assert_eq!(order(&[(MODE, "2"), (RATIO, "95"), other]), [2, 1, 0]);
    assert_eq!(order(&[(MODE, "2"), other]), [1, 0], "no limit of it went");
}

#[test]
fn whoever_knows_no_host_has_limits_before_their_mode_and_behind_it_when_it_is_left() {
    let catalogue = Catalogue::embedded().expect("sound");
    let order = |mode: &str| {
        let values = [(MODE, mode), (RATIO, "95"), (KIB, "0")];
        let values = values.map(|(id, value)| (KnobId::new(id), BTreeSet::from([value.to_owned()])));
        in_order(&Values::from(values), &catalogue).iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(order("2"), [KIB, RATIO, MODE]);
    assert_eq!(order("0"), [MODE, KIB, RATIO]);
}
