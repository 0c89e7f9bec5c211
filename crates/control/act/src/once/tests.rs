//! What the loader, and others, make of a trial boot between its writes and its undo.

use planish_model::{Class, KnobId, Original, Undo, ValueType};

use super::*;
use crate::testing::Kernel;

const CUSTOM: &str = "/boot/grub/custom.cfg";
const ENV: &str = "/boot/grub/grubenv";
const FILE: &str = "/efi/loader/entries/AAA-planish-trial.conf";
const VARIABLE: &str = crate::sink::variable::ONCE_VARIABLE;
const ENTRY: &str = "menuentry 'x' --id 'planish-trial' {\n\tlinux /vmlinuz planish.trial=1\n}\n";

fn step(format: OnceFormat, place: &str, before: Option<&str>, wanted: &str) -> EntryStep {
    let knob = KnobId::new(format.knob());
    let original = before.map(|value| Original {
        knob: knob.clone(),
        place: place.to_owned(),
        r#type: ValueType::Text { text: true },
        value: value.to_owned(),
        coupling: None,
        over: None,
    });
    let step = EntryStep::new(knob, place.to_owned(), wanted.to_owned(), Class::Availability, Undo::Edit);
    EntryStep { originals: original.into_iter().collect(), ..step }
}

fn block(lines: &str) -> String {
    let body = format!("# GRUB Environment Block\n{lines}");
    let padding = "#".repeat(1024 - body.len());
    body + &padding
}

/// Each step on a host that has such a file already, or has none.
fn steps() -> Vec<(OnceFormat, EntryStep)> {
    let saved = block("saved_entry=a\n");
    [
        (OnceFormat::Menu, CUSTOM, None, ENTRY),
        (OnceFormat::Menu, CUSTOM, Some("menuentry 'theirs' {\n}\n"), ENTRY),
        (OnceFormat::Block, ENV, None, "planish-trial"),
        (OnceFormat::Block, ENV, Some(saved.as_str()), "planish-trial"),
        (OnceFormat::Entry, FILE, None, "title x\noptions planish.trial=1\n"),
        (OnceFormat::Firmware, VARIABLE, None, "AAA-planish-trial.conf"),
    ]
    .map(|(format, place, before, wanted)| (format, step(format, place, before, wanted)))
    .into()
}

fn host(step: &EntryStep) -> Kernel {
    let kernel = Kernel::new(&[]);
    if let Some(original) = step.original() {
        kernel.put(&original.place, &original.value);
    }
    kernel
}

#[test]
fn what_is_written_goes_again_to_the_byte() {
    for (format, step) in steps() {
        let kernel = host(&step);
        let start = kernel.places.borrow().clone();
        let done = add(format, &step, &kernel);
        assert_eq!((done.outcome, done.detail), (OutcomeKind::Done, None), "{format:?}");
        assert_ne!(*kernel.places.borrow(), start);
        let back = remove(format, &step, false, &kernel);
        assert_eq!((back.outcome, back.detail), (OutcomeKind::Done, None), "{format:?}");
        assert_eq!(*kernel.places.borrow(), start, "{format:?}");
        let again = remove(format, &step, false, &kernel);
        assert_eq!(again.outcome, OutcomeKind::Satisfied, "{format:?}: nothing is left to take");
        assert_eq!(*kernel.places.borrow(), start);
    }
}

#[test]
fn a_name_that_the_loader_took_is_no_loss() {
    for (format, step) in steps().into_iter().filter(|(format, _)| format.is_trigger()) {
        let kernel = host(&step);
        let start = kernel.places.borrow().clone();
        add(format, &step, &kernel);
        match format {
            OnceFormat::Firmware => kernel.replace_file(VARIABLE, None).expect("taken"),
            _ => {
                let text = kernel.get(ENV).replace("=planish-trial\n", "=\n") + &"#".repeat(MENU_ID_BYTES);
                kernel.put(ENV, &text);
            }
        }
        let back = remove(format, &step, false, &kernel);
        assert!(matches!(back.outcome, OutcomeKind::Done | OutcomeKind::Satisfied), "{back:?}");
        assert_eq!(*kernel.places.borrow(), start, "{format:?}");
    }
}

const MENU_ID_BYTES: usize = once::MENU_ID.len();

#[test]
fn what_others_set_meanwhile_stays() {
    let saved = block("saved_entry=a\n");
    let armed = step(OnceFormat::Block, ENV, Some(&saved), "planish-trial");
    let kernel = host(&armed);
    add(OnceFormat::Block, &armed, &kernel);
    let theirs = block("saved_entry=b\nnext_entry=other\n");
    kernel.put(ENV, &theirs);
    assert_eq!(remove(OnceFormat::Block, &armed, false, &kernel).outcome, OutcomeKind::Satisfied);
    assert_eq!(kernel.get(ENV), theirs);
    // Another variable, and ours: ours goes, and the other is told of.
    kernel.put(ENV, &block("saved_entry=b\nnext_entry=\n"));
    let back = remove(OnceFormat::Block, &armed, false, &kernel);
    assert!(back.detail.is_some_and(|told| told.contains("that was kept")));
    assert_eq!(kernel.get(ENV), block("saved_entry=b\n"));

    let variable = step(OnceFormat::Firmware, VARIABLE, None, "AAA-planish-trial.conf");
    kernel.put(VARIABLE, "other.conf");
    assert_eq!(remove(OnceFormat::Firmware, &variable, true, &kernel).outcome, OutcomeKind::Satisfied);
    assert_eq!(kernel.get(VARIABLE), "other.conf");
}

#[test]
fn an_entry_that_somebody_edited_is_theirs_until_forced() {
    for (format, place, before, wanted) in [
        (OnceFormat::Menu, CUSTOM, Some("# theirs\n"), ENTRY),
        (OnceFormat::Menu, CUSTOM, None, ENTRY),
        (OnceFormat::Entry, FILE, None, "title x\n"),
    ] {
        let step = step(format, place, before, wanted);
        let kernel = host(&step);
        let start = kernel.places.borrow().clone();
        add(format, &step, &kernel);
        kernel.put(place, &kernel.get(place).replace('x', "y"));
        let edited = kernel.get(place);
        assert_eq!(remove(format, &step, false, &kernel).outcome, OutcomeKind::Theirs, "{format:?}");
        assert_eq!(kernel.get(place), edited);
        assert_eq!(remove(format, &step, true, &kernel).outcome, OutcomeKind::Done);
        assert_eq!(*kernel.places.borrow(), start, "{format:?}");
    }
}

#[test]
fn nothing_outside_of_a_boot_loader_is_written() {
    for (format, place) in [(OnceFormat::Menu, "/etc/custom.cfg"), (OnceFormat::Entry, "/etc/cron.d/x.conf")]
    {
        let step = step(format, place, None, ENTRY);
        let kernel = host(&step);
        assert_eq!(add(format, &step, &kernel).outcome, OutcomeKind::Failed);
        assert_eq!(kernel.places.borrow().len(), 0);
    }
}
