//! What goes out for other tools comes back as the same plan: every shipped profile, in every format, on machines of
//! several kinds.

use std::collections::BTreeSet;

use planish_exchange::{
    ArgumentsBy, ExportFormat, ImportFormat, Item, NamedFile, beyond, export, import, import_files,
    recognise, recognise_file,
};
use planish_model::{
    Case, Catalogue, Class, Conditions, Knob, KnobId, Nodes, Observation, Plan, Profile, Skipped, Undo,
    ValueType, VerdictKind, Want, place,
};
use planish_pipeline::{
    ApplyOptions, Outgoing, PlanOptions, Session, SessionOptions, Source, apply, outgoing, plan,
};

use crate::tree::{Tree, differences, hosts, profile};

/// One that is written by hand with all kinds of places; a guest, a container's kernel without writes, other pages.
const HOSTS: [&str; 5] = ["metal-2s", "metal-1s-amd", "rhel9-guest", "al2023-lockdown", "arm64-64k"];

fn session(name: &str) -> Session {
    let root = Some(hosts().join(name));
    Session::open(SessionOptions { root, command: "test".to_owned(), ..SessionOptions::default() })
        .expect("a host")
}

fn options() -> PlanOptions {
    let allow_classes = vec![Class::Availability, Class::Durability];
    PlanOptions { allow_classes, ..PlanOptions::default() }
}

/// What a plan would write now or at the next boot, of the knobs that were not left out.
fn writes(plan: &Plan, left_out: &BTreeSet<KnobId>) -> BTreeSet<(String, String)> {
    let steps = plan.steps.iter().map(|step| (&step.knob, &step.place, Some(&step.wanted)));
    let at_boot = plan.skipped.iter().filter(|row| row.verdict.verdict == VerdictKind::Reboot);
    let at_boot = at_boot.map(|row| (&row.knob, &row.place, row.wanted.as_ref()));
    let kept = steps.chain(at_boot).filter(|(knob, ..)| !left_out.contains(*knob));
    kept.filter_map(|(_, place, wanted)| Some((place.clone(), wanted?.clone()))).collect()
}

/// What formats do not carry though a plan would write it: the beginning of a path, the formats, and why. A row that is
/// dropped, or that comes back otherwise, and stands not here fails the tests below.
const EXEMPT: &[(&str, &[ExportFormat], &str)] = &[
    ("cmdline:", &[ExportFormat::Script, ExportFormat::Sysctl], "neither reaches a boot loader"),
    ("/proc/", &[ExportFormat::KernelArgs], "set in the running kernel"),
    ("/sys/", &[ExportFormat::KernelArgs], "set in the running kernel"),
    ("/planish/", &[ExportFormat::KernelArgs], "set in the running kernel"),
    ("/etc/systemd/", &[ExportFormat::KernelArgs], "a drop-in is a file, and no argument"),
    ("/etc/systemd/", OF_TUNED, "a drop-in is a file, and tuned sets settings"),
    ("/planish/mounts/", OF_TUNED, "a remount is a command"),
    ("/planish/resctrl/default", ALL_BUT_SCRIPT, "several lines in one write"),
    (
        "/planish/held/",
        &[ExportFormat::Script, ExportFormat::Sysctl, ExportFormat::Ansible],
        "needs a process",
    ),
    ("/planish/resctrl/groups/", &ExportFormat::ALL, PLACED),
    ("/etc/systemd/system/{unit}.service.d/zz-planish.conf", &ExportFormat::ALL, PLACED),
    ("/etc/systemd/system/planish.slice", &ExportFormat::ALL, PLACED),
    ("/etc/systemd/system.conf.d/", &ExportFormat::ALL, PLACED),
    ("/sys/fs/cgroup/", &ExportFormat::ALL, "systemd makes the group anew at each start"),
];

const PLACED: &str = "follows from a placement, of which other tools would take a half";

const OF_TUNED: &[ExportFormat] = &[ExportFormat::Tuned, ExportFormat::NodeTuning];

const ALL_BUT_SCRIPT: &[ExportFormat] =
    &[ExportFormat::Sysctl, ExportFormat::Tuned, ExportFormat::Ansible, ExportFormat::NodeTuning];

/// The path that says how a row is set: what counts from a boot on is an argument, also where a file shows it.
fn way(knob: &Knob) -> &str {
    if knob.is_given_at_boot() { "cmdline:" } else { &knob.path }
}

/// Whether a format may leave a row out.
fn is_exempt(format: ExportFormat, knob: &Knob) -> bool {
    EXEMPT.iter().any(|(path, formats, _)| way(knob).starts_with(path) && formats.contains(&format))
}

/// What a format carries, and the knobs of which it carries nothing: each of them is told, with what does.
fn carried(format: ExportFormat, out: &Outgoing) -> (Vec<Item>, BTreeSet<KnobId>) {
    let (items, odd): (Vec<Item>, Vec<Item>) =
        out.items.iter().cloned().partition(|item| beyond(format, item).is_none());
    let told = odd.iter().map(|item| &item.knob).chain(out.left_out.iter().map(|row| &row.knob));
    // A case for other hosts is left out of a knob that goes out.
    let left_out = told.filter(|knob| !items.iter().any(|item| item.knob == **knob)).cloned().collect();
    (items, left_out)
}

/// Adds what a second file wants: of each unit there is one, and of settings that both say the later counts.
fn add(profile: &mut Profile, id: KnobId, want: Want) {
    let cases = |want: &Want| match want {
        Want::Case(case) => vec![case.as_ref().clone()],
        Want::Cases(cases) => cases.clone(),
        _ => Vec::new(),
    };
    let both = match profile.want.get(&id).filter(|_| id.as_str().starts_with("unit.")) {
        Some(first) => Want::Cases([cases(first), cases(&want)].concat()),
        None => want,
    };
    profile.want.insert(id, both);
}

/// The files of a format, read again as one profile.
fn come_back(session: &Session, format: ExportFormat, out: &Outgoing) -> Profile {
    let (items, _) = carried(format, out);
    let files = export(format, &out.name, &out.summary, &items).expect("every format holds every profile");
    let mut profile: Option<Profile> = None;
    // Rules of udev say once more what the other files do.
    let repeats = |path: &str| path.ends_with(".rules");
    for file in files.iter().filter(|file| !repeats(&file.path)) {
        let read_as = ImportFormat::guess(&file.text);
        if items.is_empty() && recognise(&file.text, read_as).is_err() {
            continue;
        }
        assert_eq!(recognise(&file.text, read_as), Ok(()), "{}", file.text);
        let read = import(session.catalogue(), &out.name, &file.text, read_as);
        // The unit that has the other files read says so, and those come back by themselves.
        let is_told =
            |reason: &str| file.path.ends_with(".service") && reason.starts_with("reads other files");
        let refused = read.lines.iter().filter(|line| !line.is_accepted());
        let refused: Vec<_> = refused.filter(|line| !line.reason.as_deref().is_some_and(is_told)).collect();
        assert!(refused.is_empty(), "{format:?} {}: {refused:#?}", file.path);
        match &mut profile {
            Some(profile) => read.profile.want.into_iter().for_each(|(id, want)| add(profile, id, want)),
            none => *none = Some(read.profile),
        }
    }
    profile.unwrap_or_else(|| import(session.catalogue(), &out.name, "", ImportFormat::Script).profile)
}

fn plan_of_source(session: &Session, source: Source) -> Plan {
    plan(session, &source, &options()).expect("a plan")
}

#[test]
fn the_import_of_an_export_is_the_same_plan() {
    let (mut written, mut plans, mut exempt, mut of_units) = (0, 0, 0, 0);
    for name in HOSTS {
        let session = session(name);
        for profile in session.catalogue().profile_names() {
            let source = Source::Profile(profile.to_owned());
            let out = outgoing(&session, &source, &options()).expect("a profile");
            let made = plan_of_source(&session, source);
            let mut seen: Vec<(Profile, Plan)> = Vec::new();
            for format in ExportFormat::ALL {
                let left_out = carried(format, &out).1;
                let wanted = writes(&made, &left_out);
                let by_plan = made.steps.iter().map(|step| &step.knob);
                for id in by_plan.filter(|id| left_out.contains(*id)) {
                    let knob = session.catalogue().knob(id).expect("a row");
                    assert!(is_exempt(format, knob), "{name} {profile}: {} drops {id}", format.name());
                    exempt += 1;
                }
                let back = come_back(&session, format, &out);
                // A plan takes far longer than a comparison, and most formats come to the same profile.
                if !seen.iter().any(|(known, _)| known.want == back.want) {
                    let again = plan_of_source(&session, Source::Inline(Box::new(back.clone())));
                    seen.push((back.clone(), again));
                    plans += 1;
                }
                let (_, again) = seen.iter().find(|(known, _)| known.want == back.want).expect("added");
                assert_eq!(writes(again, &BTreeSet::new()), wanted, "{name} {profile} {format:?}");
                written += wanted.len();
                of_units += wanted.iter().filter(|(place, _)| place.starts_with("/etc/systemd/")).count();
            }
        }
    }
    assert!(written > 1500 && plans > 60, "{written} writes in {plans} plans");
    assert!(of_units > 30, "{of_units} settings of units come back");
    assert!(exempt > 20, "{exempt}: drop-ins and boot parameters are left out of some");
}

/// A value that a knob takes, and places of it that a profile may name.
fn one_of(knob: &Knob) -> Item {
    // Mounts and units are named: a pattern means those of a host.
    let only = match &knob.path {
        path if path.starts_with(place::MOUNTS) => Some("/dev/shm"),
        path if path.starts_with("/etc/systemd/system/{unit}.service.d/") => Some("mongod"),
        path if path.starts_with("/etc/systemd/system/{unit}.d/") => Some("system.slice"),
        path if knob.undo == Undo::Subtract && path.contains("{node}") => Some("0"),
        _ => None,
    };
    let of_choice = match &knob.r#type {
        ValueType::Choice { choice } => choice.last().cloned(),
        ValueType::Int { min: Some(min), .. } => Some(min.to_string()),
        ValueType::Ints { count, .. } => Some(["5000"].repeat(*count).join(" ")),
        _ => None,
    };
    let others = [
        "1",
        "64",
        "5000",
        "glibc.pthread.rseq=0",
        "noatime",
        "50%",
        "fifo:2",
        "L3:0=fff",
        "2-3",
        "64K:always",
        "0:5",
        "-5",
        "off",
    ];
    let values = of_choice.into_iter().chain(others.map(str::to_owned));
    let items =
        values.filter(|value| knob.validate(value).is_ok()).flat_map(|value| Item::meant(knob, only, &value));
    let mut items = items.filter(|item| !item.is_boot() || item.argument.is_some());
    items.next().unwrap_or_else(|| panic!("no value for {}: {:?}", knob.id, knob.r#type))
}

/// Whether what came back is what went out, and nothing else.
fn is_same(catalogue: &Catalogue, item: &Item, back: &Profile) -> bool {
    let knob = catalogue.knob(&item.knob).expect("a row");
    let Some((id, want)) = back.want.first_key_value().filter(|_| back.want.len() == 1) else { return false };
    if let Want::Total { total_bytes, nodes } = want {
        // A file says of a pool what it has: on one node, or on all together.
        let kib = item.place.split_once("hugepages-").and_then(|(_, rest)| rest.split_once("kB"));
        let kib: u64 = kib.and_then(|(kib, _)| kib.parse().ok()).expect("a pool");
        let pages: u64 = item.value.parse().expect("a number");
        let pool = item.knob.as_str().trim_end_matches(".total");
        let is_right = if pool == item.knob.as_str() { Nodes::Each(vec![0]) } else { Nodes::Spread };
        return id.as_str() == pool && *nodes == is_right && *total_bytes == pages * kib * 1024;
    }
    let (only, value) = match want {
        Want::Case(case) => (case.only.clone(), Some(case.value.clone())),
        other => (None, other.literal()),
    };
    let again = value.map(|value| Item::meant(knob, only.as_deref(), &value));
    *id == item.knob && again.is_some_and(|again| again == [item.clone()])
}

/// Every row that goes out in a format comes back the same, or the pair stands in the list of what does not.
#[test]
fn every_row_comes_back_from_every_format_or_is_exempt_by_name() {
    let session = session("metal-2s");
    let catalogue = session.catalogue();
    let (mut used, mut pairs) = (BTreeSet::new(), 0);
    for knob in catalogue.knobs() {
        let hits = |format: ExportFormat| {
            let hits = EXEMPT.iter().enumerate();
            hits.filter(move |(_, (path, formats, _))| {
                way(knob).starts_with(path) && formats.contains(&format)
            })
        };
        used.extend(ExportFormat::ALL.into_iter().flat_map(hits).map(|(index, _)| index));
        // No profile may want the first, interrupts move with their service alone, and the pipeline gives the others to
        // no format: see the test above.
        let never = matches!(knob.class, Class::Oneway | Class::Action) || knob.id.as_str() == "irq.affinity";
        if never || ExportFormat::ALL.into_iter().all(|format| is_exempt(format, knob)) {
            continue;
        }
        let item = one_of(knob);
        for format in ExportFormat::ALL {
            let is_dropped = beyond(format, &item).is_some();
            assert_eq!(is_dropped, is_exempt(format, knob), "{} {}", knob.id, format.name());
            if is_dropped {
                continue;
            }
            let (name, summary) = ("mine".to_owned(), "A test.".to_owned());
            let (items, left_out, not_here) = (vec![item.clone()], Vec::new(), Vec::new());
            let back = come_back(
                &session,
                format,
                &Outgoing {
                    name,
                    summary,
                    items,
                    left_out,
                    not_here,
                    is_of_another_host: false,
                    arguments_by: ArgumentsBy::default(),
                },
            );
            assert!(is_same(catalogue, &item, &back), "{item:?} as {}: {:?}", format.name(), back.want);
            pairs += 1;
        }
    }
    assert_eq!(used.len(), EXEMPT.len(), "a row of the list is for no knob: {used:?}");
    assert!(pairs > 1000, "{pairs}");
}

#[test]
fn pools_of_nodes_that_differ_come_back_as_they_were() {
    // The second has 512 pages of others on each node: what a file says is the pool with those.
    for host in ["metal-2s", "metal-1s-amd"] {
        let session = session(host);
        let spread = Want::Need { need_bytes: 9 << 21, nodes: Nodes::Spread };
        let by_node = Want::Needs { need_bytes: vec![6 << 21, 5 << 21], nodes: vec![0, 1] };
        for want in [spread, by_node] {
            let source = profile("pools", &[("hugepages.2m", want)]);
            let out = outgoing(&session, &source, &options()).expect("a profile");
            let wanted = writes(&plan_of_source(&session, source), &BTreeSet::new());
            assert!(wanted.len() >= 2, "{wanted:?}");
            for format in ExportFormat::ALL.into_iter().filter(|format| *format != ExportFormat::KernelArgs) {
                let back = Source::Inline(Box::new(come_back(&session, format, &out)));
                let again = plan_of_source(&session, back);
                assert_eq!(writes(&again, &BTreeSet::new()), wanted, "{host} {format:?}");
            }
        }
    }
}

/// What another program sets to one whole size is that size for a plan as well, and an apply of it twice is one.
#[test]
fn a_pool_of_a_file_is_no_addition_to_what_is_there() {
    let tree = Tree::copy_of("metal-2s");
    let base = Want::Need { need_bytes: 64 << 21, nodes: Nodes::Spread };
    let theirs = plan_of_source(&tree.session(), profile("theirs", &[("hugepages.2m", base)]));
    apply(&tree.session(), &theirs, &ApplyOptions::default()).expect("applied");
    let read = |text: &str| {
        let back = import(tree.session().catalogue(), "pool", text, ImportFormat::Sysctl).profile;
        plan_of_source(&tree.session(), Source::Inline(Box::new(back)))
    };
    for there in ["vm.nr_hugepages = 64\n", "vm.nr_hugepages = 10\n"] {
        let steps = read(there).steps;
        assert!(steps.is_empty(), "{there}: {steps:?}");
    }
    let more = read("vm.nr_hugepages = 68\n");
    let wanted: Vec<_> = more.steps.iter().map(|step| (step.raise_pages, step.wanted.as_str())).collect();
    assert_eq!(wanted, [(Some(2), "34"); 2]);
    apply(&tree.session(), &more, &ApplyOptions::default()).expect("applied");
    let again = read("vm.nr_hugepages = 68\n").steps;
    assert!(again.is_empty(), "{again:#?}");
}

/// Other tools do not ask: what a plan refuses, or what nobody allowed to go that way, goes out to none of them.
#[test]
fn what_a_plan_of_this_host_refuses_goes_out_in_no_format() {
    let session = session("metal-2s");
    for (knob, want) in [
        ("cpu.online", Want::Int(0)),
        ("kernel.pid_max", Want::Int(301)),
        ("vm.min_free_kbytes", Want::Int(2_000_000_000)),
        ("boot.hugetlb_cma", Want::Text("0:900G".to_owned())),
    ] {
        let source = profile("own", &[(knob, want)]);
        let error = outgoing(&session, &source, &options()).expect_err(knob);
        assert_eq!(error.exit(), planish_model::Exit::Refused, "{knob}: {error}");
    }
    let lower = profile("own", &[("kernel.pid_max", Want::Int(65_536))]);
    let out = outgoing(&session, &lower, &PlanOptions::default()).expect("an export");
    assert!(out.items.is_empty(), "{:?}", out.items);
    assert!(out.left_out[0].reason.contains("--allow"), "{:?}", out.left_out);
    let allowed = outgoing(&session, &lower, &options()).expect("an export");
    assert_eq!(allowed.items.len(), 1, "{allowed:?}");
}

/// The forms of `only` that mean one place of a knob, or several of them: what fills the first hole and each other one,
/// the component as a plan shows it, and patterns of each.
const FORMS: [&str; 11] = [
    "VALUE",
    "VALU*",
    "*",
    "FOLDER",
    "FOLDE*",
    "*OLDER",
    "?OLDER",
    "[F]OLDER",
    "HOLE=VALUE",
    "HOLE=FOLDER",
    "LAST=VALUE",
];

/// One of the forms, for a place of a knob.
fn form(form: &str, knob: &Knob, at: &str) -> Option<String> {
    let captures = place::captures(&knob.path, at).filter(|captures| !captures.is_empty())?;
    let (hole, value) = match form.starts_with("LAST") {
        true => *captures.last()?,
        false => captures[0],
    };
    let mut parts = knob.path.split('/').zip(at.split('/'));
    let (_, folder) = parts.find(|(part, _)| part.contains(&format!("{{{hole}}}")))?;
    let without_last = |text: &str| text[..text.len() - 1].to_owned();
    Some(match form {
        "VALUE" => value.to_owned(),
        "VALU*" => format!("{}*", without_last(value)),
        "FOLDER" => folder.to_owned(),
        "FOLDE*" => format!("{}*", without_last(folder)),
        "*OLDER" => format!("*{}", &folder[1..]),
        "?OLDER" => format!("?{}", &folder[1..]),
        "[F]OLDER" => format!("[{}-{}]{}", &folder[..1], &folder[..1], &folder[1..]),
        "HOLE=FOLDER" => format!("{hole}={folder}"),
        "HOLE=VALUE" | "LAST=VALUE" => format!("{hole}={value}"),
        form => form.to_owned(),
    })
}

/// The places of a recorded host that the paths in a text mean to a shell.
fn expanded(host: &str, text: &str) -> BTreeSet<String> {
    let root = hosts().join(host);
    let words = text.split(|c: char| c.is_whitespace() || c == ';');
    let paths: BTreeSet<&str> =
        words.filter(|word| word.starts_with("/sys/") || word.starts_with("/proc/irq/")).collect();
    let ask = "cd \"$0\" || exit 1; for path do for at in .$path; \
               do [ ! -e \"$at\" ] || echo \"${at#.}\"; done; done";
    let shell =
        std::process::Command::new("sh").args(["-c", ask]).arg(root).args(paths).output().expect("sh");
    assert!(shell.status.success() && shell.stderr.is_empty(), "{shell:?}");
    String::from_utf8(shell.stdout).expect("text").lines().map(str::to_owned).collect()
}

/// What wants every knob below /sys that has a hole, for one place of it that a form of `only` names, with the value
/// that it has there.
fn one_place_each(session: &Session, observation: &Observation, shape: &str) -> Vec<(KnobId, Want)> {
    // Interrupts are placed with a service, pools are counted by nodes, and no other tool is given a control group.
    let not = ["irq.", "hugepages.", "cgroup.", "cpuset."];
    let want = session.catalogue().knobs().filter_map(|knob| {
        let is_wanted = !matches!(knob.class, Class::Action | Class::Oneway)
            && knob.path.starts_with("/sys/")
            && !not.iter().any(|prefix| knob.id.as_str().starts_with(prefix));
        // The last one: CPU 0 has fewer files than the others.
        let readings = observation.knobs.get(&knob.id).filter(|_| is_wanted)?;
        let last = readings.iter().rfind(|reading| reading.value.is_some())?;
        let (value, needs) = (last.value.clone()?, Conditions::default());
        knob.validate(&value).ok()?;
        let only = Some(form(shape, knob, &last.place)?);
        Some((knob.id.clone(), Want::Case(Box::new(Case { value, only, needs }))))
    });
    want.collect()
}

/// A path that there is not is passed over by a script without a word: each form by which a profile may name places
/// must come to the places themselves.
#[test]
fn what_goes_out_means_the_places_of_the_plan_in_every_format() {
    let mut seen = BTreeSet::new();
    let elsewhere = [("metal-1s-amd", "FOLDER"), ("arm64-64k", "FOLDER")];
    for (host, shape) in FORMS.map(|shape| ("metal-2s", shape)).into_iter().chain(elsewhere) {
        let session = session(host);
        let want = one_place_each(&session, &session.observe(), shape);
        let named: Vec<(&str, Want)> = want.iter().map(|(id, want)| (id.as_str(), want.clone())).collect();
        let source = profile("places", &named);
        let allow_knobs = want.iter().map(|(id, _)| id.clone()).collect();
        let options = PlanOptions { allow_knobs, ..options() };
        let made = plan(&session, &source, &options).unwrap_or_else(|error| panic!("{shape}: {error:?}"));
        let out = outgoing(&session, &source, &options).expect("an export");
        let knobs: BTreeSet<&KnobId> = out.items.iter().map(|item| &item.knob).collect();
        for (id, want) in &want {
            let is_told = knobs.contains(id) || out.left_out.iter().any(|row| row.knob == *id);
            assert!(is_told, "{host} {id} {want:?}: gone without a word");
        }
        let steps = made.steps.iter().map(|step| (&step.knob, &step.place));
        // No format may mean what a plan spares.
        let spared = |row: &&Skipped| row.verdict.reason == planish_decide::BESIDE_CARDS;
        let skipped = made.skipped.iter().filter(|row| !spared(row));
        let rows = steps.chain(skipped.map(|row| (&row.knob, &row.place)));
        let here = rows.filter(|(id, place)| knobs.contains(id) && !place.contains('{'));
        let places: BTreeSet<String> = here.map(|(_, place)| place.clone()).collect();
        for format in ExportFormat::ALL {
            let (items, _) = carried(format, &out);
            let files = export(format, "mine", "A test.", &items).expect("plain values");
            let text: String = files.into_iter().map(|file| file.text).collect();
            if format == ExportFormat::KernelArgs {
                assert_eq!(text, "");
                continue;
            }
            let found = expanded(host, &text);
            let lost: Vec<_> = places.difference(&found).collect();
            let more: Vec<_> = found.difference(&places).collect();
            assert!(lost.is_empty() && more.is_empty(), "{host} {shape} {format:?}: -{lost:?} +{more:?}");
        }
        seen.extend(knobs.into_iter().cloned());
    }
    for id in ["cpu.online", "cpu.uncore_max_khz", "thp.size_enabled", "net.rps_cpus", "block.scheduler"] {
        assert!(seen.contains(&KnobId::new(id)), "{id} is not among {seen:?}");
    }
    assert!(seen.len() > 35, "{} {seen:?}", seen.len());
}

/// Runs the exported script on a copy of a host: each of its paths is one of the copy.
fn run_below(root: &std::path::Path, script: &str) {
    let moved = script.replace(" /", &format!(" {}/", root.display()));
    // The systemd of this machine is not asked: that it would be stands in a file.
    let moved = format!("systemctl() {{ echo \"$@\" > {}/asked; }}\n{moved}", root.display());
    let done = std::process::Command::new("sh").args(["-c", &moved]).output().expect("sh");
    assert!(done.status.success() && done.stdout.is_empty() && done.stderr.is_empty(), "{done:?}\n{moved}");
}

/// A real shell sets by the script what an apply sets, and its drop-in gives a unit the lines of those of an apply; run
/// again it changes nothing, and without systemd it makes no folder of it.
#[test]
fn the_script_of_an_export_sets_what_an_apply_sets() {
    const FOLDER: &str = "/etc/systemd/system/mongod.service.d";
    let tree = || {
        let tree = Tree::copy_of("metal-2s");
        let unit = "[Service]\nExecStart=/usr/bin/mongod\nLimitNOFILE=1024:524288\n";
        tree.put("/usr/lib/systemd/system/mongod.service", unit);
        tree.put("/etc/systemd/system/keep", "");
        tree
    };
    let (by_script, by_apply, without) = (tree(), tree(), tree());
    let source = Source::Profile("mongodb".to_owned());
    let made = plan(&by_apply.session(), &source, &options()).expect("a plan");
    let out = outgoing(&by_script.session(), &source, &options()).expect("a profile");
    let written = |format| export(format, &out.name, &out.summary, &carried(format, &out).0).expect("plain");
    let script = written(ExportFormat::Script).remove(0).text;
    run_below(by_script.root(), &script);
    apply(&by_apply.session(), &made, &ApplyOptions::default()).expect("applied");

    let session = by_apply.session();
    let mut lines = Vec::new();
    for step in &made.steps {
        let kind = &session.catalogue().knob(&step.knob).expect("a row").r#type;
        let applied = by_apply.get(&step.place);
        match applied.split_once("[Service]\n").filter(|_| step.place.starts_with(FOLDER)) {
            Some((_, own)) => lines.push(own.to_owned()),
            None => assert!(kind.same(&by_script.get(&step.place), &applied), "{}", step.place),
        }
    }
    assert!(lines.len() == 4 && made.steps.len() > 15, "{} {lines:?}", made.steps.len());
    let path = format!("{FOLDER}/zz-export-mongodb.conf");
    let drop_in = by_script.get(&path).replace(&format!(" {}/", by_script.root().display()), " /");
    assert_eq!(drop_in.split_once("[Service]\n").map(|(_, own)| own.to_owned()), Some(lines.concat()));
    let of_set = written(ExportFormat::Sysctl).into_iter().find(|file| file.path == path);
    assert_eq!(of_set.map(|file| file.text), Some(drop_in));

    let once = by_script.snapshot();
    run_below(by_script.root(), &script);
    assert_eq!(differences(&once, &by_script.snapshot()), [""; 0]);
    assert_eq!(by_script.get("/asked"), "daemon-reload\n");
    for folder in ["etc/systemd", "run/systemd"] {
        std::fs::remove_dir_all(without.root().join(folder)).expect("it is a copy");
    }
    run_below(without.root(), &script);
    assert!(!without.root().join("etc/systemd").exists() && without.get("/asked").is_empty());
}

/// Root was told to export as root, whatever was wrong with the loader. An apply says the same of it.
#[test]
fn arguments_are_left_out_for_what_was_seen_of_the_loader() {
    let tree = Tree::copy_of("metal-2s");
    tree.put("/etc/fstab", "/dev/sda1 /boot ext4 defaults 0 2\n");
    tree.put("/proc/mounts", "/dev/sda2 / ext4 rw 0 0\n");
    let source = profile("boot", &[("boot.nosmt", Want::Int(1))]);
    let out = outgoing(&tree.session(), &source, &options()).expect("a profile");
    let item = out.items.iter().find(|item| item.is_boot()).expect("it is wanted");
    let why = out.arguments_by.beyond(ExportFormat::Ansible, item).expect("nobody knows how");
    assert!(why.contains("/boot is in /etc/fstab:1 and not mounted"), "{why}");
    assert!(why.ends_with("export kernel-args, or mount /boot"), "{why}");
    assert_eq!(out.arguments_by.beyond(ExportFormat::KernelArgs, item), None);
}

/// A pool that is wanted as a whole is filled on each node, and one of nodes as a whole where there are none.
#[test]
fn a_pool_that_its_alias_fills_goes_out() {
    let pools = [
        ("hugepages.2m.total", Want::Total { total_bytes: 2 << 30, nodes: Nodes::default() }, "metal-2s"),
        ("hugepages.2m.total", Want::Total { total_bytes: 2 << 30, nodes: Nodes::default() }, "rhel9-guest"),
    ];
    for (id, want, host) in pools {
        let tree = Tree::copy_of(host);
        let source = profile("pool", &[(id, want), ("vm.swappiness", Want::Int(5))]);
        let session = tree.session();
        let made = plan(&session, &source, &options()).expect("a plan");
        let pools = made.steps.iter().filter(|step| step.knob.as_str().starts_with("hugepages.")).count();
        assert!(pools > 0, "{host}: {:?}", made.skipped);
        let out = outgoing(&session, &source, &options()).expect("a profile");
        let sent = out.items.iter().filter(|item| item.knob.as_str().starts_with("hugepages.")).count();
        assert_eq!(sent, pools, "{host}: {:?}", out.left_out);
        for format in ExportFormat::ALL.into_iter().filter(|format| *format != ExportFormat::KernelArgs) {
            let back = come_back(&session, format, &out);
            let again = plan_of_source(&session, Source::Inline(Box::new(back)));
            let places = |plan: &Plan| -> Vec<(String, String)> {
                plan.steps.iter().map(|step| (step.place.clone(), step.wanted.clone())).collect()
            };
            assert_eq!(places(&again), places(&made), "{host} {}", format.name());
        }
    }
}

/// The loopback went from 65536 to 9000, and nothing was said: a pattern means it, and a plan spares it.
#[test]
fn a_size_of_packets_goes_out_for_the_cards_that_a_plan_sets() {
    let session = session("metal-2s");
    let case = |only: Option<&str>| {
        let (value, needs) = ("9000".to_owned(), Conditions::default());
        Want::Case(Box::new(Case { value, only: only.map(str::to_owned), needs }))
    };
    let allow_knobs = vec![KnobId::new("net.mtu")];
    let options = PlanOptions { allow_knobs, ..options() };
    for (want, spares) in [
        (Want::Int(9000), true),
        (case(Some("*")), true),
        (case(Some("e*")), false),
        (case(Some("nic=l?")), true),
        (case(Some("lo")), false),
    ] {
        let source = profile("mtu", &[("net.mtu", want.clone())]);
        let made = plan(&session, &source, &options).expect("a plan");
        let steps = made.steps.iter().map(|step| &step.place);
        let is_so = made.skipped.iter().filter(|row| row.satisfied).map(|row| &row.place);
        let planned: BTreeSet<String> = steps.chain(is_so).cloned().collect();
        let out = outgoing(&session, &source, &options).expect("an export");
        for format in [ExportFormat::Script, ExportFormat::Sysctl, ExportFormat::Tuned, ExportFormat::Ansible]
        {
            let files = export(format, "mine", "A test.", &carried(format, &out).0).expect("plain values");
            let text: String = files.into_iter().map(|file| file.text).collect();
            let mut meant = expanded("metal-2s", &text);
            meant.retain(|place| place.ends_with("/mtu"));
            assert_eq!(meant, planned, "{want:?} {format:?}\n{text}");
        }
        let told = out.left_out.iter().filter(|row| row.reason.contains("loopback")).count();
        assert_eq!(told, usize::from(spares), "{want:?} {:?}", out.left_out);
    }
}

/// No command took the set: a folder was refused, and each file by itself is a part of the plan.
#[test]
fn the_files_of_an_export_are_one_profile_and_the_same_plan() {
    let (mut written, mut with_several) = (0, 0);
    for name in HOSTS {
        let session = session(name);
        for profile in session.catalogue().profile_names() {
            let source = Source::Profile(profile.to_owned());
            let out = outgoing(&session, &source, &options()).expect("a profile");
            let (items, left_out) = carried(ExportFormat::Sysctl, &out);
            let files = export(ExportFormat::Sysctl, "mine", "A test.", &items).expect("plain values");
            let named = |file: planish_exchange::ExportedFile| {
                let path = file.path.trim_start_matches('/').to_owned();
                let format = recognise_file(&file.text, &path).expect("a known format");
                NamedFile { path, text: file.text, format }
            };
            let files: Vec<NamedFile> = files.into_iter().map(named).collect();
            let back = import_files(session.catalogue(), "mine", &files, None).expect("files of one export");
            let refused =
                back.lines.iter().filter(|line| !line.is_accepted() && line.overridden_by.is_none());
            assert_eq!(refused.count(), 0, "{name} {profile}: {:#?}", back.lines);
            let wanted = writes(&plan_of_source(&session, source), &left_out);
            let again = plan_of_source(&session, Source::Inline(Box::new(back.profile)));
            assert_eq!(writes(&again, &BTreeSet::new()), wanted, "{name} {profile}");
            written += wanted.len();
            with_several += usize::from(files.len() > 3);
        }
    }
    assert!(written > 200 && with_several > 10, "{written} {with_several}");
}
