//! Boot parameters of which the kernel takes the first of several: what stands before ours refuses, and what was given
//! in vain is told as that.

use planish_model::{Class, DriftState, EntryId, Exit, KnobCheck, Plan, Want};
use planish_pipeline::{
    PipelineError, PlanOptions, Session, Source, Target, apply, apply_once, boot_alone, check, once_preview,
    plan, undo,
};

use crate::boot::{DEFAULTS, ENTRY, ENV, KERNEL_CMDLINE, OWN, all, debian, rocky, suse, systemd};
use crate::once::able;
use crate::tree::*;

const TWO: &str = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages";

fn pages(name: &str, id: &str, count: i64) -> Source {
    profile(name, &[(id, Want::Int(count))])
}

fn text(id: &str, value: &str) -> Source {
    profile("text", &[(id, Want::Text(value.to_owned()))])
}

fn allowed(session: &Session, source: &Source, instead_of: Option<u64>) -> Result<Plan, PipelineError> {
    let allow_classes = vec![Class::Availability];
    let instead_of = instead_of.map(EntryId);
    plan(session, source, &PlanOptions { allow_classes, instead_of, ..PlanOptions::default() })
}

/// Has a machine be one whose kernel has pages of 1 GiB, too.
fn with_gigantic(tree: &Tree) {
    tree.put("/sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages", "0\n");
}

/// What refuses an apply, with its cure: nothing is written.
fn refused(tree: &Tree, source: &Source) -> String {
    let (start, entries) = (tree.snapshot(), tree.entries().len());
    let session = tree.session();
    let plan = allowed(&session, source, None).expect("a plan");
    let error = apply(&session, &plan, &PERSIST).expect_err("refused");
    assert_eq!(error.exit(), Exit::Refused, "{error}");
    assert_eq!(differences(&start, &tree.snapshot()), [""; 0]);
    assert_eq!(tree.entries().len(), entries);
    format!("{error}; {}", error.hints().join("; "))
}

fn persisted(tree: &Tree, source: &Source) {
    let session = tree.session();
    let applied =
        apply(&session, &allowed(&session, source, None).expect("a plan"), &PERSIST).expect("applied");
    assert_eq!(applied.exit, Exit::Done, "{:#?} {:?}", applied.outcomes, applied.hints);
}

fn row(tree: &Tree, source: Option<&Source>, place: &str) -> KnobCheck {
    let rows = check(&tree.session(), source).expect("checked").drift.knobs;
    rows.into_iter().find(|row| row.place == place).expect("a row")
}

/// What a file gives before ours counts, in whatever way it comes into the line.
#[test]
fn another_value_before_ours_is_named_with_its_line_and_refused() {
    let default = text("boot.default_hugepagesz", "1G");
    let quiet = "default_hugepagesz=2M quiet";
    let add = |tree: Tree, path: &str, from: &str, to: &str| {
        tree.put(path, &tree.get(path).replacen(from, to, 1));
        tree
    };
    let given =
        "gives `default_hugepagesz=2M` first, and of several default_hugepagesz= the kernel takes the first";
    for (tree, at) in [
        (add(debian(), DEFAULTS, "quiet", quiet), format!("{DEFAULTS}:2")),
        (add(suse(), DEFAULTS, "quiet", quiet), format!("{DEFAULTS}:2")),
        (add(rocky(), ENTRY, "ro quiet", quiet), format!("{ENTRY}:4")),
        (add(rocky(), DEFAULTS, "quiet", quiet), format!("{DEFAULTS}:1")),
        (add(rocky(), KERNEL_CMDLINE, "quiet", quiet), format!("{KERNEL_CMDLINE}:1")),
        (add(rocky(), ENV, "kernelopts=", "kernelopts=default_hugepagesz=2M "), String::from("kernelopts")),
        (
            add(systemd(), "/efi/loader/entries/arch.conf", "ro", quiet),
            "/efi/loader/entries/arch.conf:3".to_owned(),
        ),
    ] {
        if at == "kernelopts" {
            // A block keeps its size.
            tree.put(ENV, tree.get(ENV).strip_suffix("#".repeat(22).as_str()).expect("padding"));
        }
        with_gigantic(&tree);
        let told = refused(&tree, &default);
        assert!(told.contains(&at) && told.contains(given), "{at}: {told}");
        assert!(told.contains("take `default_hugepagesz=2M` out of ") || at == "kernelopts", "{told}");
        // The same value needs nothing, and another parameter is none of its business.
        persisted(&tree, &text("boot.transparent_hugepage", "never"));
    }
    // Behind ours it is theirs that is passed over.
    let tree = debian();
    with_gigantic(&tree);
    tree.put(
        "/etc/default/grub.d/99-site.cfg",
        "GRUB_CMDLINE_LINUX_DEFAULT=\"$GRUB_CMDLINE_LINUX_DEFAULT default_hugepagesz=2M\"\n",
    );
    persisted(&tree, &default);
}

/// tuned fills a variable that stands in the line before ours.
#[test]
fn what_tuned_puts_before_ours_refuses() {
    let tree = rocky();
    let with = |text: &str| text.replace("ro quiet\t", "ro quiet $tuned_params\t");
    tree.put(ENTRY, &with(&tree.get(ENTRY)));
    let block = tree.get(ENV);
    let added = "tuned_params=default_hugepagesz=2M\n";
    let body = block.trim_end_matches('#').to_owned() + added;
    tree.put(ENV, &format!("{body}{}", "#".repeat(1024 - body.len())));
    with_gigantic(&tree);
    let told = refused(&tree, &text("boot.default_hugepagesz", "1G"));
    assert!(told.contains("(tuned_params) gives `default_hugepagesz=2M` first"), "{told}");
    assert!(told.contains("out of the cmdline of tuned's profile"), "{told}");
}

/// Two entries over each other: the newer would stand behind the older.
#[test]
fn an_older_entry_of_planish_is_named_with_both_ways_out() {
    for (name, make) in all() {
        let tree = make();
        let start = tree.snapshot();
        let profile = |name, pages, swap| {
            profile(name, &[("boot.hugepages.2m", Want::Int(pages)), ("vm.swappiness", Want::Int(swap))])
        };
        persisted(&tree, &profile("older", 64, 10));
        let newer = profile("newer", 128, 20);
        let told = refused(&tree, &newer);
        assert!(told.contains("entry 1 gives `hugepagesz=2M hugepages=64` first"), "{name}: {told}");
        assert!(
            told.contains("planish undo 1, then once more; or have this take its place: --instead-of 1"),
            "{told}"
        );
        let session = tree.session();
        let plan = allowed(&session, &newer, Some(1)).expect("a plan");
        let applied = apply(&session, &plan, &PERSIST).expect("applied");
        assert_eq!(applied.exit, Exit::Done, "{name}: {:?} {:#?}", applied.hints, applied.outcomes);
        let files: String = tree
            .snapshot()
            .into_iter()
            .filter(|(path, _)| path.starts_with("/etc/default") || path.contains("/loader/"))
            .map(|(_, text)| text)
            .collect();
        assert!(files.contains("hugepages=128") && !files.contains("hugepages=64"), "{name}: {files}");
        assert_eq!(undo(&tree.session(), Target::All, false).expect("undone").exit, Exit::Done);
        assert_eq!(differences(&start, &tree.snapshot()), [""; 0], "{name}");
    }
}

/// A way out that is refused in turn is none: an entry without values of the running host has nothing to hand over.
#[test]
fn an_older_entry_of_boot_parameters_alone_is_named_with_its_undo() {
    let (name, make) = all().into_iter().next().expect("a host");
    let tree = make();
    let pages = |name, pages| profile(name, &[("boot.hugepages.2m", Want::Int(pages))]);
    persisted(&tree, &pages("older", 64));
    let newer = pages("newer", 128);
    let told = refused(&tree, &newer);
    assert!(told.contains("planish undo 1, then once more"), "{name}: {told}");
    assert!(!told.contains("--instead-of"), "{name}: {told}");
    assert!(allowed(&tree.session(), &newer, Some(1)).is_err(), "it would be refused");
    assert_eq!(undo(&tree.session(), Target::Entry(EntryId(1)), false).expect("undone").exit, Exit::Done);
    persisted(&tree, &newer);
}

/// The entry for once is a copy of the default one, and so is that of each arm of a trial.
#[test]
fn a_trial_boot_behind_another_value_is_refused() {
    let hosts = all().into_iter().map(|named| (named.0, able(named)));
    for (name, tree) in hosts {
        for path in ["/boot/grub/grub.cfg", "/efi/loader/entries/arch.conf", ENTRY] {
            let text = tree.get(path);
            if !text.is_empty() {
                tree.put(path, &text.replacen("UUID=1 ro", "UUID=1 ro hugepagesz=2M hugepages=64", 1));
            }
        }
        let start = tree.snapshot();
        let session = tree.session();
        let plan =
            boot_alone(&allowed(&session, &pages("more", "boot.hugepages.2m", 128), None).expect("a plan"));
        for error in [
            once_preview(&session, &plan).expect_err("refused"),
            apply_once(&session, &plan, None).expect_err("refused"),
        ] {
            let told = error.to_string();
            assert!(told.contains("gives `hugepagesz=2M hugepages=64` first"), "{name}: {told}");
            assert_eq!(error.exit(), Exit::Refused);
        }
        assert_eq!(differences(&start, &tree.snapshot()), [""; 0], "{name}");
        let once =
            boot_alone(&allowed(&session, &text("boot.default_hugepagesz", "2M"), None).expect("a plan"));
        apply_once(&session, &once, None).expect("another parameter can be tried");
    }
}

/// 4 pages of 1 GiB on the line of every entry, and none of them granted.
#[test]
fn a_recorded_guest_with_pages_of_its_own_takes_no_other_number() {
    let tree = Tree::writable_copy_of("rhel9-guest");
    let two = pages("two", "boot.hugepages.1g", 2);
    let told = refused(&tree, &two);
    assert!(told.contains("gives `hugepagesz=1G hugepages=4` first"), "{told}");
    // The defaults and the entries have it, and each is named at once: else every mended file would lead to the next.
    let files = tree.snapshot();
    let has_it = |(path, text): &(&String, &String)| {
        path.contains("/loader/entries/") && text.contains(" hugepages=4")
    };
    let entries: Vec<&String> = files.iter().filter(has_it).map(|(path, _)| path).collect();
    assert!(entries.len() > 1, "{entries:?}");
    let cure = told.split("take `hugepagesz=1G hugepages=4` out of ").nth(1).expect("a cure");
    for path in entries {
        assert!(cure.contains(path.as_str()), "{path}: {told}");
    }
    assert!(cure.contains("/etc/default/grub:6") && told.contains("; so do "), "{told}");
    assert!(told.contains("; or leave it as it is: --exclude boot.hugepages.1g; "), "{told}");
    // What runs is what was asked for, and the pool is not.
    let asked = pages("four", "boot.hugepages.1g", 4);
    let place = "cmdline:hugepages@1G";
    let row_of = |source: &Source| row(&tree, Some(source), place);
    let (state, why) = (row_of(&asked).state, row_of(&asked).because.unwrap_or_default());
    assert_eq!(state, DriftState::Drift, "{why}");
    assert!(why.contains("4 pages of 1 GiB asked for at boot, and there are 0 now"), "{why}");
    tree.put("/sys/devices/system/node/node0/hugepages/hugepages-1048576kB/nr_hugepages", "4\n");
    assert_eq!(row_of(&asked).state, DriftState::Ok, "{:?}", row_of(&asked));
}

/// As an older planish left it, or an editor since: both stand in the line.
#[test]
fn pages_given_behind_others_are_told_as_given_in_vain() {
    let tree = Tree::writable_copy_of("metal-1s-amd");
    let more = pages("more", "boot.hugepages.2m", 4096);
    assert!(refused(&tree, &more).contains("gives `hugepagesz=2M hugepages=2048` first"));
    let files = tree.snapshot();
    let own = " transparent_hugepage=madvise";
    for (path, text) in files.iter().filter(|(path, text)| path.contains("/entries/") && text.contains(own)) {
        tree.put(path, &text.replace(own, &format!("{own} hugepagesz=2M hugepages=4096")));
    }
    let line = tree.get(CMDLINE).trim().to_owned() + " hugepagesz=2M hugepages=4096\n";
    tree.put(CMDLINE, &line);
    let row = row(&tree, Some(&more), "cmdline:hugepages@2M");
    let why = row.because.clone().unwrap_or_default();
    assert_eq!((row.running.as_deref(), row.state), (Some("2048"), DriftState::NotAllowed), "{row:#?}");
    assert_eq!(row.next_boot.map(|next| next.value).as_deref(), Some("2048"));
    assert!(why.contains("gives 2048 first, and of several the kernel takes the first"), "{why}");
    assert!(why.contains("behind it (4096) is in vain until 2048 is taken out there"), "{why}");
}

#[test]
fn a_list_of_cpus_behind_another_one_is_refused_and_told() {
    let tree = Tree::writable_copy_of("metal-1s-amd");
    let (wanted, place) = (text("boot.isolcpus", "domain,managed_irq,1,5"), "cmdline:isolcpus");
    let files = tree.snapshot();
    let own = " transparent_hugepage=madvise";
    let with = |more: &str| {
        for (path, text) in
            files.iter().filter(|(path, text)| !path.starts_with("/proc") && text.contains(own))
        {
            tree.put(path, &text.replace(own, &format!("{own} {more}")));
        }
        tree.put(CMDLINE, &format!("{} {more}\n", files[CMDLINE].trim()));
    };
    with("isolcpus=domain,managed_irq,2,6 nohz_full=2,6");
    tree.put("/sys/devices/system/cpu/isolated", "2,6\n");
    let told = refused(&tree, &wanted);
    assert!(told.contains("gives `isolcpus=domain,managed_irq,2,6` first"), "{told}");
    with("isolcpus=domain,managed_irq,2,6 isolcpus=domain,managed_irq,1,5");
    let row_now = row(&tree, Some(&wanted), place);
    let why = row_now.because.unwrap_or_default();
    assert_eq!(row_now.running.as_deref(), Some("domain,managed_irq,2,6"));
    assert!(why.contains("takes the first") && !why.contains("another boot"), "{why}");
    // Somebody puts theirs before what an entry gave.
    with("quiet");
    persisted(&tree, &wanted);
    for (path, text) in
        tree.snapshot().iter().filter(|(path, _)| path.ends_with(".conf") && path.contains("/entries/"))
    {
        tree.put(path, &text.replace(own, &format!("{own} isolcpus=domain,managed_irq,2,6")));
    }
    for row in [row(&tree, None, place), row(&tree, Some(&wanted), place)] {
        let why = row.because.unwrap_or_default();
        assert_eq!(row.persisted.map(|found| found.value).as_deref(), Some("domain,managed_irq,2,6"));
        assert!(why.contains("behind it (domain,managed_irq,1,5) is in vain"), "{why}");
        assert!(row.state == DriftState::Drift || row.state == DriftState::NotAllowed, "{:?}", row.state);
    }
    assert_eq!(check(&tree.session(), None).expect("checked").exit, Exit::Findings);
    // Of two parameters a kernel before 5.18 takes one list.
    with("isolcpus=domain,managed_irq,2,6 nohz_full=1,5");
    tree.put("/sys/devices/system/cpu/nohz_full", "(null)\n");
    let value = |value: &str| Want::Text(value.to_owned());
    let both = [("boot.nohz_full", value("1,5")), ("boot.isolcpus", value("domain,managed_irq,2,6"))];
    let told = |wants: &[(&str, Want)]| {
        row(&tree, Some(&profile("both", wants)), "cmdline:nohz_full").because.unwrap_or_default()
    };
    assert!(told(&both).contains("isolcpus=domain,managed_irq,2,6 is for other CPUs"), "{}", told(&both));
    assert!(told(&both[..1]).contains("or isolcpus= beside it is for other CPUs"), "{}", told(&both[..1]));
}

/// The second number without a size between them is dropped, and no pool has it.
#[test]
fn two_numbers_behind_one_size_are_the_first() {
    let tree = Tree::new();
    tree.put(CMDLINE, "quiet hugepagesz=2M hugepages=3 hugepages=7\n");
    let row = row(&tree, Some(&pages("three", "boot.hugepages.2m", 3)), "cmdline:hugepages@2M");
    assert_eq!((row.running.as_deref(), tree.get(TWO).trim()), (Some("3"), "3"));
    let text = tree.get(OWN);
    assert_eq!(text, "");
}
