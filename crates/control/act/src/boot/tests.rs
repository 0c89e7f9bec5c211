//! Arguments in and out of files that others change too.

use planish_model::{
    BootFormat, Class, EntryId, EntryStep, Generator, KnobId, Original, Outcome, OutcomeKind, Undo, ValueType,
};
use rustix::io::Errno;

use super::{add, has_lost, remove};
use crate::testing::Kernel;

const ENTRY: &str = "/boot/loader/entries/a.conf";
const DEFAULTS: &str = "/etc/default/grub";
const BEFORE: &str = "title A\nlinux /vmlinuz\noptions root=/dev/vda1 ro\n";

fn step(format: BootFormat, place: &str, text: &str, arguments: &str) -> EntryStep {
    let knob = KnobId::new(format.knob());
    let original = Original {
        knob: knob.clone(),
        place: place.to_owned(),
        r#type: ValueType::Text { text: true },
        value: text.to_owned(),
        coupling: None,
        over: None,
    };
    EntryStep {
        knob,
        place: place.to_owned(),
        wanted: arguments.to_owned(),
        class: Class::Safe,
        undo: Undo::Edit,
        raise_pages: None,
        takes_pages: None,
        in_all: None,
        others: Default::default(),
        line: None,
        there: None,
        lowered_behind: None,
        part: None,
        service: None,
        originals: vec![original],
        folders: Vec::new(),
        pools: Vec::new(),
        rules: Vec::new(),
        device: None,
        generator: None,
        outcome: None,
        begun: None,
        last_boot: None,
        last_entry: None,
        undone: None,
    }
}

const ID: EntryId = EntryId(7);

fn add_it(step: &EntryStep, kernel: &Kernel) -> Outcome {
    add(step, ID, kernel)
}

fn remove_it(step: &EntryStep, force: bool, kernel: &Kernel) -> Outcome {
    remove(step, ID, &[], force, kernel)
}

fn applied(step: &EntryStep, kernel: &Kernel) -> EntryStep {
    let outcome = add_it(step, kernel);
    assert_eq!(outcome.outcome, OutcomeKind::Done, "{outcome:?}");
    EntryStep { outcome: Some(outcome), ..step.clone() }
}

#[test]
fn arguments_come_and_go_and_theirs_stays() {
    let kernel = Kernel::new(&[(ENTRY, BEFORE)]);
    let step = applied(&step(BootFormat::Entry, ENTRY, BEFORE, "nosmt"), &kernel);
    assert!(kernel.get(ENTRY).ends_with("root=/dev/vda1 ro nosmt\n"));
    kernel.put(ENTRY, &(kernel.get(ENTRY).replace("title A", "title B") + "grub_class kernel\n"));
    let back = remove_it(&step, false, &kernel);
    assert_eq!(back.outcome, OutcomeKind::Done);
    assert!(back.detail.as_deref().is_some_and(|detail| detail.contains("that was kept")), "{back:?}");
    assert_eq!(kernel.get(ENTRY), BEFORE.replace("title A", "title B") + "grub_class kernel\n");
    let again = remove_it(&step, false, &kernel);
    assert_eq!(
        again.outcome,
        OutcomeKind::Satisfied,
        "as this undo leaves it, whoever took it out: {again:?}"
    );
    kernel.put(ENTRY, &kernel.get(ENTRY).replace(" ro\n", " ro nosmt=force\n"));
    assert_eq!(
        remove_it(&step, false, &kernel).outcome,
        OutcomeKind::Theirs,
        "somebody gave it another value"
    );
    assert_eq!(remove_it(&step, true, &kernel).outcome, OutcomeKind::Done);
    assert_eq!(kernel.get(ENTRY), BEFORE, "force brings the whole file back");
    assert_eq!(remove_it(&step, true, &kernel).outcome, OutcomeKind::Satisfied);
}

#[test]
fn what_someone_else_wrote_into_ours_is_theirs() {
    let kernel = Kernel::new(&[(ENTRY, BEFORE)]);
    let step = applied(&step(BootFormat::Entry, ENTRY, BEFORE, "isolcpus=2-7"), &kernel);
    let theirs = kernel.get(ENTRY).replace("isolcpus=2-7", "isolcpus=2-5");
    kernel.put(ENTRY, &theirs);
    let back = remove_it(&step, false, &kernel);
    let theirs = theirs.replace("# planish entry 7: isolcpus=2-5\n", "");
    assert_eq!((back.outcome, kernel.get(ENTRY)), (OutcomeKind::Theirs, theirs), "and no word of ours");
    kernel.places.borrow_mut().remove(ENTRY);
    assert_eq!(remove_it(&step, true, &kernel).outcome, OutcomeKind::Vanished, "a kernel that was removed");
}

#[test]
fn a_kill_before_the_write_takes_nothing_of_theirs() {
    let had = BEFORE.replace(" ro", " ro nosmt quiet");
    let kernel = Kernel::new(&[(ENTRY, &had)]);
    let killed = step(BootFormat::Entry, ENTRY, &had, "nosmt");
    assert_eq!(remove_it(&killed, false, &kernel).outcome, OutcomeKind::Satisfied);
    let edited = had.replace("title A", "title B");
    kernel.put(ENTRY, &edited);
    assert_eq!(remove_it(&killed, false, &kernel).outcome, OutcomeKind::Satisfied);
    assert_eq!(kernel.get(ENTRY), edited, "their own nosmt stays");
    // The write came, its outcome did not.
    kernel.put(ENTRY, &had);
    add_it(&killed, &kernel);
    assert_eq!(remove_it(&killed, false, &kernel).outcome, OutcomeKind::Done);
    assert_eq!(kernel.get(ENTRY), had);
}

/// A generator as GRUB's: a normal entry and one for recovery.
fn menu(kernel: &Kernel) -> Result<String, Errno> {
    let mut shell = planish_boot::Shell::default();
    shell.source(&kernel.get(DEFAULTS), DEFAULTS);
    let words: Vec<String> =
        shell.words("GRUB_CMDLINE_LINUX_DEFAULT").into_iter().map(|word| word.text).collect();
    Ok(format!(
        "### BEGIN /etc/grub.d/10_linux ###\nmenuentry 'A' {{\n linux /vmlinuz root=/dev/vda1 {}\n}}\n\
         menuentry 'A (recovery mode)' {{\n linux /vmlinuz root=/dev/vda1 single\n}}\n\
         ### END /etc/grub.d/10_linux ###\n",
        words.join(" ")
    ))
}

#[test]
fn a_menu_is_made_anew_and_looked_at() {
    let before = "GRUB_CMDLINE_LINUX_DEFAULT=quiet\n";
    let with = |make: fn(&Kernel) -> Result<String, Errno>| {
        let kernel = Kernel { menu: Some(make), ..Kernel::new(&[(DEFAULTS, before)]) };
        let step = step(BootFormat::GrubDefaults, DEFAULTS, before, "nosmt");
        (kernel, EntryStep { generator: Some(Generator::UpdateGrub), ..step })
    };
    let (kernel, step) = with(menu);
    let step = applied(&step, &kernel);
    assert!(kernel.get("/boot/grub/grub.cfg").contains("root=/dev/vda1 quiet nosmt\n"));
    assert_eq!(remove_it(&step, false, &kernel).outcome, OutcomeKind::Done);
    assert_eq!(kernel.get(DEFAULTS), before);
    assert!(!kernel.get("/boot/grub/grub.cfg").contains("nosmt"), "it was made anew");

    let (kernel, step) = with(|_| Ok("menuentry 'Other' {}\n".to_owned()));
    let none = add_it(&step, &kernel);
    assert_eq!(none.outcome, OutcomeKind::Failed);
    assert!(
        none.detail.as_deref().is_some_and(|why| why.contains("has no entry of this system")),
        "{none:?}"
    );
    let (kernel, step) = with(|kernel| Ok(menu(kernel)?.replace(" nosmt", "")));
    let lost = add_it(&step, &kernel);
    assert_eq!(lost.outcome, OutcomeKind::Failed);
    assert!(lost.detail.as_deref().is_some_and(|why| why.starts_with("0 of 1 entries")), "{lost:?}");
    let (kernel, step) = with(|_| Err(Errno::NOSPC));
    assert_eq!(add_it(&step, &kernel).outcome, OutcomeKind::Failed);
    assert!(kernel.get(DEFAULTS).contains("nosmt"), "the pipeline takes back what failed");
}

#[test]
fn a_menu_that_could_not_be_made_is_made_by_the_next_try() {
    let before = "GRUB_CMDLINE_LINUX_DEFAULT=quiet\n";
    let mut kernel = Kernel { menu: Some(|_| Err(Errno::NOSPC)), ..Kernel::new(&[(DEFAULTS, before)]) };
    let step = step(BootFormat::GrubDefaults, DEFAULTS, before, "nosmt");
    let step = EntryStep { generator: Some(Generator::UpdateGrub), ..step };
    assert_eq!(add_it(&step, &kernel).outcome, OutcomeKind::Failed);
    let edited = kernel.get(DEFAULTS);
    kernel.menu = Some(menu);
    let step = applied(&step, &kernel);
    assert_eq!(kernel.get(DEFAULTS), edited, "the arguments are there once");
    assert!(kernel.get("/boot/grub/grub.cfg").contains("root=/dev/vda1 quiet nosmt\n"));

    // The same on the way back, where somebody has changed another line.
    kernel.put(DEFAULTS, &format!("{edited}GRUB_TIMEOUT=1\n"));
    kernel.menu = Some(|_| Err(Errno::NOSPC));
    let failed = remove_it(&step, false, &kernel);
    assert_eq!(failed.outcome, OutcomeKind::Failed);
    let step = EntryStep { undone: Some(failed), ..step };
    kernel.menu = Some(menu);
    assert_eq!(remove_it(&step, false, &kernel).outcome, OutcomeKind::Done);
    assert_eq!(kernel.get(DEFAULTS), format!("{before}GRUB_TIMEOUT=1\n"));
    assert!(!kernel.get("/boot/grub/grub.cfg").contains("nosmt"), "it was made anew");
}

#[test]
fn a_step_of_another_planish_is_left_alone() {
    let kernel = Kernel::new(&[(ENTRY, BEFORE)]);
    let unknown =
        EntryStep { knob: KnobId::new("persist.new"), ..step(BootFormat::Entry, ENTRY, BEFORE, "x") };
    assert_eq!(add_it(&unknown, &kernel).outcome, OutcomeKind::Failed);
    assert_eq!(remove_it(&unknown, true, &kernel).outcome, OutcomeKind::Failed);
    assert_eq!(kernel.get(ENTRY), BEFORE);
}

#[test]
fn an_undo_that_was_cut_short_behind_its_edit_makes_the_menu() {
    let before = "GRUB_CMDLINE_LINUX_DEFAULT=quiet\n";
    let kernel = Kernel { menu: Some(menu), ..Kernel::new(&[(DEFAULTS, before)]) };
    let step = step(BootFormat::GrubDefaults, DEFAULTS, before, "nosmt");
    let step = applied(&EntryStep { generator: Some(Generator::UpdateGrub), ..step }, &kernel);
    let theirs = format!("# ours\n{before}");
    kernel.put(DEFAULTS, &theirs);
    assert!(kernel.get("/boot/grub/grub.cfg").contains("nosmt"), "the kill came before the program ran");
    assert_eq!(remove_it(&step, false, &kernel).outcome, OutcomeKind::Satisfied);
    assert_eq!(kernel.get(DEFAULTS), theirs);
    assert!(!kernel.get("/boot/grub/grub.cfg").contains("nosmt"));
}

#[test]
fn a_menu_that_does_not_take_them_is_told_with_its_line_and_what_to_look_at() {
    let before = "GRUB_CMDLINE_LINUX_DEFAULT=quiet\n";
    let stubborn = |_: &Kernel| -> Result<String, Errno> {
        Ok("### BEGIN /etc/grub.d/10_linux ###\nmenuentry 'A' {\n linux /vmlinuz ro quiet\n}\n\
            ### END /etc/grub.d/10_linux ###\n"
            .to_owned())
    };
    let kernel = Kernel { menu: Some(stubborn), ..Kernel::new(&[(DEFAULTS, before)]) };
    let step = step(BootFormat::GrubDefaults, DEFAULTS, before, "nosmt");
    let outcome = add_it(&EntryStep { generator: Some(Generator::UpdateGrub), ..step }, &kernel);
    assert_eq!(outcome.outcome, OutcomeKind::Failed);
    let told = outcome.detail.expect("why");
    assert!(
        told.starts_with(
            "0 of 1 entries of /boot/grub/grub.cfg give `nosmt` after update-grub: /boot/grub/grub.cfg:3 gives \
             `ro quiet`; look at what sets GRUB_CMDLINE_LINUX_DEFAULT"
        ),
        "{told}"
    );
}

/// Somebody typed an argument into the menu, and no source has it: the program that makes the menu takes it away.
#[test]
fn what_a_new_menu_has_lost_is_told() {
    let before = "GRUB_CMDLINE_LINUX_DEFAULT=quiet\n";
    let kernel = Kernel { menu: Some(menu), ..Kernel::new(&[(DEFAULTS, before)]) };
    let typed = |kernel: &Kernel| {
        let typed =
            menu(kernel).expect("made").replace("/dev/vda1 quiet", "/dev/vda1 rd.lvm.lv=x/root quiet");
        kernel.put("/boot/grub/grub.cfg", &typed);
    };
    let step = step(BootFormat::GrubDefaults, DEFAULTS, before, "nosmt");
    let step = EntryStep { generator: Some(Generator::UpdateGrub), ..step };
    let told = |outcome: &Outcome| outcome.detail.clone().unwrap_or_default();
    typed(&kernel);
    let added = add_it(&step, &kernel);
    assert!(has_lost(&added) && told(&added).contains("no longer gives `rd.lvm.lv=x/root`"), "{added:?}");
    assert_eq!(added.outcome, OutcomeKind::Done, "it is done, and its loss is told");
    let step = EntryStep { outcome: Some(added), ..step };
    typed(&kernel);
    let gone = remove_it(&step, false, &kernel);
    assert!(has_lost(&gone) && !told(&gone).contains("nosmt"), "its own is to go: {gone:?}");
    let again = add_it(&step, &kernel);
    assert!(!has_lost(&again) && !has_lost(&remove_it(&step, false, &kernel)), "{again:?}");
}
