//! Run-time knobs that an argument of the kernel's command line sets as well: what only the next boot is given of them
//! is pending until that boot.

use planish_boot::Format;
use planish_model::{Catalogue, Class, DriftState, Exit, Knob, KnobCheck, ValueType, Want, When};
use planish_pipeline::{PlanOptions, Source, apply, check, plan};

use crate::boot::{DEFAULTS, ENTRY, OWN, all, give};
use crate::tree::*;

/// A knob, a place of it, and two of its values: the one that runs, and the one that the next boot gives.
struct Twin {
    knob: Knob,
    place: String,
    runs: String,
    comes: String,
    argument: String,
    /// The row that has the loader give it, if any.
    row: Option<(String, Want)>,
}

/// Two values of a knob that the kernel may show.
fn values(knob: &Knob) -> (String, String) {
    match (&knob.r#type, knob.id.as_str()) {
        (ValueType::Choice { choice }, _) => (choice[0].clone(), choice[1].clone()),
        (ValueType::Int { min, .. }, _) => {
            let least = min.unwrap_or(0);
            (least.to_string(), (least + 1).to_string())
        }
        (ValueType::Flag { .. }, _) => ("0".to_owned(), "1".to_owned()),
        (_, "cpu.governor") => ("powersave".to_owned(), "performance".to_owned()),
        (_, "clock.source") => ("tsc".to_owned(), "hpet".to_owned()),
        (_, id) => panic!("{id} is new here: name two of its values"),
    }
}

/// Every knob whose row names an argument, and the pools.
fn twins() -> Vec<Twin> {
    let catalogue = Catalogue::embedded().expect("sound");
    let by_row = catalogue.knobs().filter(|knob| knob.boot_arg.is_some()).map(|knob| {
        let (runs, comes) = values(knob);
        let name = knob.boot_arg.as_deref().expect("it has one");
        let is_row = |row: &&Knob| row.boot_parameter() == Some((name, None));
        let row = catalogue.knobs().find(is_row);
        // Of a switch the kernel's words are its own.
        let word = |row: &Knob| match &row.r#type {
            ValueType::Choice { choice } if !choice.contains(&comes) => choice[0].clone(),
            _ => comes.clone(),
        };
        let given = row.map_or_else(|| comes.clone(), word);
        Twin {
            place: planish_model::place::fill(&knob.path, &[("cpu", "0")]),
            argument: format!("{name}={given}"),
            row: row.map(|row| (row.id.to_string(), Want::Text(given.clone()))),
            knob: knob.clone(),
            runs,
            comes,
        }
    });
    let pools = catalogue.knobs().filter(|knob| knob.id.as_str() == "hugepages.2m.total").map(|knob| Twin {
        place: knob.path.clone(),
        runs: "3".to_owned(),
        comes: "40".to_owned(),
        argument: "hugepagesz=2M hugepages=40".to_owned(),
        row: Some(("boot.hugepages.2m".to_owned(), Want::Int(40))),
        knob: knob.clone(),
    });
    by_row.chain(pools).collect()
}

fn rows(tree: &Tree) -> (Vec<KnobCheck>, Exit) {
    let checked = check(&tree.session(), None).expect("checked");
    (checked.drift.knobs, checked.exit)
}

/// The host with what the knob shows, and with a processor that has one.
fn showing(make: fn() -> Tree, twin: &Twin) -> Tree {
    let tree = make();
    tree.put(&twin.place, &format!("{}\n", twin.runs));
    let folder = twin.place.rsplit_once('/').expect("a path").0;
    tree.put(&format!("{folder}/scaling_available_governors"), "performance powersave\n");
    tree.put(CMDLINE, &tree.line_of_loader("root=UUID=1 ro quiet"));
    // A kernel that knows them all.
    tree.put("/meta.toml", &tree.get("/meta.toml").replace("6.12.0", "6.18.0"));
    tree
}

/// What an administrator adds to what the loader reads, and has its menu made of.
fn given_by_hand(tree: &Tree, name: &str, argument: &str) {
    for menu in
        ["/boot/grub/grub.cfg", "/boot/grub2/grub.cfg"].iter().filter(|_| ["debian", "suse"].contains(&name))
    {
        if !tree.get(menu).is_empty() {
            tree.put(menu, &tree.get(menu).replace(" quiet", &format!(" quiet {argument}")));
        }
    }
    match name {
        "debian" => {
            let line = planish_boot::drop_in_line(argument);
            tree.put("/etc/default/grub.d/50-site.cfg", &line);
        }
        "suse" => tree.put(DEFAULTS, &format!("GRUB_CMDLINE_LINUX_DEFAULT=\"quiet {argument}\"\n")),
        "rocky" => give(tree, ENTRY, Format::Entry, argument),
        _ => give(tree, "/efi/loader/entries/arch.conf", Format::Entry, argument),
    }
}

#[test]
fn what_only_the_next_boot_gives_a_knob_of_run_time_is_pending() {
    let twins = twins();
    let with_row = twins.iter().filter(|twin| twin.row.is_some()).count();
    assert!(twins.len() >= 11 && with_row >= 6, "{} knobs, {with_row} of them with a row", twins.len());
    for (twin, (name, make)) in twins.iter().flat_map(|twin| all().map(|loader| (twin, loader))) {
        let told = format!("{name}, {}: {}", twin.knob.id, twin.argument);
        let of = |tree: &Tree| {
            let (rows, exit) = rows(tree);
            let row = rows.into_iter().find(|row| row.knob == twin.knob.id && row.place == twin.place);
            (row.unwrap_or_else(|| panic!("{told}: no row")), exit)
        };
        let tree = showing(make, twin);
        given_by_hand(&tree, name, &twin.argument);
        let (row, exit) = of(&tree);
        assert_eq!((row.state, exit), (DriftState::PendingReboot, Exit::Done), "{told}: {row:#?}");
        // A kernel that was given it has lost it since: that is somebody's doing.
        tree.put(CMDLINE, &format!("root=UUID=1 ro quiet {}\n", twin.argument));
        if twin.knob.when != When::Boot {
            assert_eq!(of(&tree).0.state, DriftState::Drift, "{told}");
            tree.put(&twin.place, &format!("{}\n", twin.comes));
            assert_eq!(of(&tree).0.state, DriftState::Ok, "{told}");
        }
    }
}

/// The same by an apply of the boot parameter itself: neither its row nor that of the knob is drift.
#[test]
fn a_boot_parameter_that_was_applied_makes_no_drift_of_its_twin() {
    for twin in twins().iter().filter(|twin| twin.row.is_some()) {
        let (id, want) = twin.row.clone().expect("it has one");
        for (name, make) in all() {
            let told = format!("{name}, {id}");
            let tree = showing(make, twin);
            let source: Source = profile("twin", &[(id.as_str(), want.clone())]);
            let session = tree.session();
            let allowed = PlanOptions { allow_classes: vec![Class::Availability], ..PlanOptions::default() };
            let planned = plan(&session, &source, &allowed).expect("planned");
            let applied = apply(&session, &planned, &PERSIST).expect("applied");
            assert!(applied.entry.is_some(), "{told}: {:?}", planned.skipped);
            if name == "debian" {
                assert!(tree.get(OWN).contains(&twin.argument), "{told}: {}", tree.get(OWN));
            }
            let (rows, exit) = rows(&tree);
            let drift: Vec<_> = rows.iter().filter(|row| row.state == DriftState::Drift).collect();
            assert!(drift.is_empty() && exit == Exit::Done, "{told}: {drift:#?}");
            let pending = |knob: &str| {
                let mut rows = rows.iter().filter(|row| row.knob.as_str() == knob);
                rows.any(|row| row.state == DriftState::PendingReboot)
            };
            assert!(pending(&id) && pending(twin.knob.id.as_str()), "{told}: {rows:#?}");
        }
    }
}
