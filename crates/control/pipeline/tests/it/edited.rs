//! An insertion of ours in a file of the boot loader that somebody has edited since: it is theirs, and is told.

use planish_model::{EntryId, Exit, Want};
use planish_pipeline::{Source, Stranger, Target, check, undo};

use crate::boot::{DEFAULTS, ENTRY, KERNEL_CMDLINE, Named, OWN, debian, persist, rocky, suse, systemd};
use crate::tree::*;

/// Two arguments, in the order in which they are given.
const ARGUMENTS: [&str; 2] = ["rcupdate.rcu_normal_after_boot=1", "skew_tick=1"];

fn both() -> Source {
    let wants = [("boot.skew_tick", Want::Int(1)), ("boot.rcupdate_rcu_normal_after_boot", Want::Int(1))];
    profile("both", &wants)
}

/// What somebody makes of the two, and what of them is still given then, in pieces as long as they stand in one run.
fn edits() -> Vec<(String, Vec<String>)> {
    let [a, b] = ARGUMENTS;
    let edit = |text: String, left: &[&str]| (text, left.iter().map(|&word| word.to_owned()).collect());
    vec![
        edit(format!("{} {b}", a.replace("=1", "=0")), &[b]),
        edit(format!("{a} {}", b.replace("=1", "=0")), &[a]),
        edit(format!("{a} quiet2 {b}"), &[a, b]),
        edit(format!("{b} {a}"), &[a, b]),
        edit(b.to_owned(), &[b]),
        edit(a.to_owned(), &[a]),
        edit("rcupdate.rcu_normal_after_boot=0 skew_tick=0".to_owned(), &[]),
    ]
}

/// The same where lines are those of a shell, and stand by themselves.
fn edits_of_a_line() -> Vec<(String, Vec<String>)> {
    let run = ARGUMENTS.join(" ");
    let appended = format!("{run} quiet2");
    edits().into_iter().chain([(appended, vec![run.clone()])]).collect()
}

fn undone(tree: &Tree, target: Target, force: bool) -> Exit {
    undo(&tree.session(), target, force).expect("undone").exit
}

/// Arguments that are told as carried over, each with the line that gives it.
fn carried_over(tree: &Tree) -> (Exit, Vec<(String, String)>) {
    let checked = check(&tree.session(), None).expect("checked");
    let rows = checked.carried_over.into_iter().map(|row| (row.source, row.arguments));
    (checked.exit, rows.collect())
}

/// Applies, edits the text of a file, and undoes twice: as it is, and by force.
fn edited(name: &str, make: fn() -> Tree, path: &str, edit: &dyn Fn(&str) -> String, left: &[String]) {
    let tree = make();
    let start = tree.snapshot();
    persist(&tree, &both());
    let before = tree.get(path);
    let text = edit(&before);
    let told = format!("{name}, {path}: {text}");
    assert_ne!(text, before, "{told}");
    tree.put(path, &text);

    assert_eq!(undone(&tree, Target::All, false), Exit::Findings, "{told}");
    // The comment that names the entry is edited with it, where the arguments are replaced in the whole file.
    let is_edited = |line: &&str| !line.starts_with('#') && !before.lines().any(|other| other == *line);
    let line = text.lines().find(is_edited).expect("an edit");
    // What says whose they were goes; it is beside them where a file has no comments.
    let line = line.strip_suffix(" planish.entry=1").unwrap_or(line);
    let now = tree.get(path);
    let at = now.lines().position(|other| other == line).unwrap_or_else(|| panic!("{told}: it stays"));
    let (exit, rows) = carried_over(&tree);
    let expected: Vec<(String, String)> =
        left.iter().map(|arguments| (format!("{path}:{}", at + 1), arguments.clone())).collect();
    assert_eq!(rows, expected, "{told}");
    assert!(left.is_empty() || exit == Exit::Findings, "{told}");
    if path == OWN {
        let strange = check(&tree.session(), None).expect("checked").strange_files;
        assert_eq!(strange, [(OWN.to_owned(), Stranger::Changed(EntryId(1)))], "{told}");
    }

    assert_eq!(undone(&tree, Target::Entry(EntryId(1)), true), Exit::Done, "{told}");
    assert_eq!(differences(&start, &tree.snapshot()), [""; 0], "{told}");
    assert_eq!(carried_over(&tree), (Exit::Done, Vec::new()), "{told}");
}

#[test]
fn an_insertion_that_somebody_edited_is_theirs_and_each_argument_that_is_left_is_told() {
    let run = ARGUMENTS.join(" ");
    let of_shells: [(Named, &str); 3] =
        [(("debian", debian), OWN), (("suse", suse), DEFAULTS), (("rocky", rocky), DEFAULTS)];
    for ((name, make), path) in of_shells {
        for (text, left) in edits_of_a_line() {
            edited(name, make, path, &|file| file.replace(&run, &text), &left);
        }
        let exported = |file: &str| {
            let at = file.rfind("GRUB_CMDLINE_LINUX_DEFAULT=").expect("our line");
            format!("{}export {}", &file[..at], &file[at..])
        };
        edited(name, make, path, &exported, std::slice::from_ref(&run));
        let head_gone = |file: &str| {
            let mut lines: Vec<&str> = file.lines().collect();
            let ours = if path == OWN { "# Written by planish" } else { "# END planish" };
            lines.retain(|line| !line.starts_with(ours));
            lines.join("\n").replace(&run, "quiet2 skew_tick=1") + "\n"
        };
        edited(name, make, path, &head_gone, &["skew_tick=1".to_owned()]);
    }
    let of_loaders: [(Named, &str); 3] = [
        (("rocky", rocky), ENTRY),
        (("rocky", rocky), KERNEL_CMDLINE),
        (("systemd", systemd), "/efi/loader/entries/arch.conf"),
    ];
    for ((name, make), path) in of_loaders {
        for (text, left) in edits() {
            edited(name, make, path, &|file| file.replace(&run, &text), &left);
        }
    }
}

/// The case that lost its arguments in silence: the line was left, the entry was closed, and nobody told of either.
#[test]
fn what_is_left_of_an_edited_line_is_told_until_it_is_out() {
    let tree = debian();
    persist(&tree, &both());
    tree.put(OWN, &tree.get(OWN).replace(" skew_tick", " quiet2 skew_tick"));
    assert_eq!(undone(&tree, Target::Newest, false), Exit::Findings);
    let told =
        |tree: &Tree| carried_over(tree).1.into_iter().map(|(_, argument)| argument).collect::<Vec<_>>();
    assert_eq!(told(&tree), ARGUMENTS);
    tree.put(OWN, &tree.get(OWN).replace(ARGUMENTS[0], ""));
    assert_eq!(told(&tree), [ARGUMENTS[1]]);
    tree.put(OWN, &tree.get(OWN).replace(ARGUMENTS[1], ""));
    assert_eq!(told(&tree), [""; 0]);
}

/// A line behind ours that may take the arguments away, which only a shell can tell, is refused before a write.
#[test]
fn a_line_behind_ours_that_is_not_understood_is_named_and_refused() {
    let site = "/etc/default/grub.d/99-site.cfg";
    let name = "GRUB_CMDLINE_LINUX_DEFAULT";
    for line in [
        format!("unset {name}"),
        format!("readonly {name}=quiet"),
        format!("declare {name}=quiet"),
        format!("true; {name}=quiet"),
        format!("true && {name}=quiet"),
        format!("if true; then {name}=quiet; fi"),
        format!("eval {name}=quiet"),
        format!("printf -v {name} quiet"),
        format!("read {name} < /dev/null"),
        format!("{name}=${{{name}/skew_tick=1/}}"),
        format!("{name}=$(echo quiet)"),
    ] {
        let tree = debian();
        tree.put(site, &format!("# of the site\n{line}\n"));
        let error = crate::boot::refused(&tree, &crate::boot::wants());
        assert!(
            error.to_string().contains(&format!("{site}:2 names {name} behind {OWN}")),
            "{line}: {error}"
        );
        assert!(error.hints().concat().contains(&format!("have {site}:2 be a plain assignment")), "{line}");
    }
    for line in [
        format!("export {name}"),
        format!("X=$(echo ${name})"),
        format!("{name}=\"${name} $(echo quiet)\""),
        format!("{name}+=\" $(echo quiet)\""),
        format!("# unset {name}"),
        "echo other".to_owned(),
    ] {
        let tree = debian();
        tree.put(site, &format!("{line}\n"));
        persist(&tree, &both());
        assert!(tree.get(OWN).contains("skew_tick=1"), "{line}");
    }
}

/// A file that a shell cannot read to its end, whatever it ends in, is refused whole: with drop-ins and without.
#[test]
fn a_truncated_default_file_is_refused_before_a_write() {
    for make in [debian, suse, rocky] {
        for end in
            ["A=`echo", "A=$(echo\n", "if true; then A=1\n", "GRU", "A=1 &&\n", "cat <<E\nx\n", "A=\"x"]
        {
            let tree = make();
            tree.put(DEFAULTS, &format!("GRUB_CMDLINE_LINUX=\"quiet\"\n{end}"));
            let error = crate::boot::refused(&tree, &crate::boot::wants());
            let told = planish_act::in_full(&error);
            assert!(told.contains(DEFAULTS) && told.contains("it is cut off: "), "{end:?}: {told}");
        }
    }
}
