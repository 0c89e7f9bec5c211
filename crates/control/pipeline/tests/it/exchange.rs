//! What goes out for other tools comes back as the same plan: every shipped profile, in every format, on machines of
//! several kinds.

use std::collections::BTreeSet;

use planish_exchange::{ExportFormat, ImportFormat, Item, beyond, export, import, recognise};
use planish_model::{Class, KnobId, Plan, Profile, VerdictKind, Want};
use planish_pipeline::{Outgoing, PlanOptions, Session, SessionOptions, Source, outgoing, plan};

use crate::tree::hosts;

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

/// What a format carries, and the knobs of which it carries nothing: each of them is told, with what does.
fn carried(format: ExportFormat, out: &Outgoing) -> (Vec<Item>, BTreeSet<KnobId>) {
    let (items, odd): (Vec<Item>, Vec<Item>) =
        out.items.iter().cloned().partition(|item| beyond(format, item).is_none());
    let told = odd.iter().map(|item| &item.knob).chain(out.left_out.iter().map(|row| &row.knob));
    // A case for other hosts is left out of a knob that goes out.
    let left_out = told.filter(|knob| !items.iter().any(|item| item.knob == **knob)).cloned().collect();
    (items, left_out)
}

/// The files of a format, read again as one profile.
fn come_back(session: &Session, format: ExportFormat, out: &Outgoing) -> Profile {
    let (items, _) = carried(format, out);
    let files = export(format, &out.name, &out.summary, &items).expect("every format holds every profile");
    let mut profile: Option<Profile> = None;
    // A unit and rules of udev say once more what the other files do.
    let repeats = |path: &str| path.ends_with(".service") || path.ends_with(".rules");
    for file in files.iter().filter(|file| !repeats(&file.path)) {
        let read_as = match format {
            ExportFormat::KernelArgs => ImportFormat::KernelArgs,
            _ => ImportFormat::guess(&file.text),
        };
        if items.is_empty() && recognise(&file.text, read_as).is_err() {
            continue;
        }
        assert_eq!(recognise(&file.text, read_as), Ok(()), "{}", file.text);
        let read = import(session.catalogue(), &out.name, &file.text, read_as);
        let refused: Vec<_> = read.lines.iter().filter(|line| !line.is_accepted()).collect();
        assert!(refused.is_empty(), "{format:?} {}: {refused:#?}", file.path);
        match &mut profile {
            Some(profile) => profile.want.extend(read.profile.want),
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
    let (mut written, mut plans) = (0, 0);
    for name in HOSTS {
        let session = session(name);
        for profile in session.catalogue().profile_names() {
            let source = Source::Profile(profile.to_owned());
            let out = outgoing(&session, &source, &options()).expect("a profile");
            let made = plan_of_source(&session, source);
            let mut seen: Vec<(Profile, Plan)> = Vec::new();
            for format in ExportFormat::ALL {
                let wanted = writes(&made, &carried(format, &out).1);
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
            }
        }
    }
    assert!(written > 1500 && plans > 60, "{written} writes in {plans} plans");
}

#[test]
fn pools_of_nodes_that_differ_come_back_as_they_were() {
    let session = session("metal-2s");
    let want = Want::Needs { need_bytes: vec![6 << 21, 5 << 21], nodes: vec![0, 1] };
    let source = crate::tree::profile("pools", &[("hugepages.2m", want)]);
    let out = outgoing(&session, &source, &options()).expect("a profile");
    let wanted = writes(&plan_of_source(&session, source), &BTreeSet::new());
    assert_eq!(wanted.len(), 2, "{wanted:?}");
    for format in ExportFormat::ALL.into_iter().filter(|format| *format != ExportFormat::KernelArgs) {
        let again = plan_of_source(&session, Source::Inline(Box::new(come_back(&session, format, &out))));
        assert_eq!(writes(&again, &BTreeSet::new()), wanted, "{format:?}");
    }
}
