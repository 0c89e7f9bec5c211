use proptest::prelude::*;

use super::*;
use crate::parse::rules;

/// A disk of which some things are known.
struct Disk;

impl Device for Disk {
    fn subsystem(&self) -> Known {
        Known::Is("block".to_owned())
    }
    fn kernel(&self) -> Known {
        Known::Is("sda".to_owned())
    }
    fn name(&self) -> Known {
        self.kernel()
    }
    fn attribute(&self, path: &str) -> Known {
        match path {
            "queue/rotational" => Known::Is("1".to_owned()),
            "secret" => Known::Unknown,
            _ => Known::Absent,
        }
    }
    fn property(&self, key: &str) -> Known {
        match key {
            "DEVTYPE" => Known::Is("disk".to_owned()),
            "ID_WWN" => Known::Is("0x5000".to_owned()),
            _ => Known::Unknown,
        }
    }
    fn parents(&self) -> Vec<Parent> {
        let is = |text: &str| Known::Is(text.to_owned());
        vec![
            Parent { kernel: is("0:0:0:0"), subsystem: is("scsi"), driver: is("sd") },
            Parent { kernel: is("0000:00:1f.2"), subsystem: is("pci"), driver: is("ahci") },
        ]
    }
    fn has_all_parents(&self) -> bool {
        true
    }
    fn sysctl(&self, _: &str) -> Known {
        Known::Absent
    }
    fn has_file(&self, path: &str) -> Holds {
        Holds::of(path == "queue/scheduler")
    }
    fn constant(&self, _: &str) -> Known {
        Known::Unknown
    }
    fn folder(&self) -> Option<String> {
        Some("/block/sda".to_owned())
    }
}

fn told(text: &str, action: Action) -> Vec<String> {
    let files = [File { name: "f".to_owned(), rules: rules(text) }];
    let word = |effect: &Effect| {
        let target = match &effect.target {
            Target::Attribute(path) => path.clone(),
            Target::Sysctl(key) => format!("sysctl {key}"),
            Target::Ethtool(words) => words.join(" "),
            Target::File(path) => path.clone(),
        };
        let sure = if effect.is_sure { "" } else { " maybe" };
        format!("{} {target}={}{sure}", effect.source, effect.value)
    };
    follow(&files, &Disk, action).iter().map(word).collect()
}

fn of(line: &str) -> String {
    let told = told(&format!("{line}, ATTR{{queue/scheduler}}=\"none\"\n"), Action::Add);
    match told.as_slice() {
        [] => "no".to_owned(),
        [one] if one.ends_with("maybe") => "maybe".to_owned(),
        _ => "yes".to_owned(),
    }
}

#[test]
fn what_is_known_decides_and_nothing_else() {
    for (line, holds) in [
        (r#"SUBSYSTEM=="block""#, "yes"),
        (r#"SUBSYSTEM=="net""#, "no"),
        (r#"ACTION=="add|change", KERNEL=="sd[a-z]*|vd*""#, "yes"),
        (r#"ACTION=="remove""#, "no"),
        (r#"ACTION!="remove""#, "yes"),
        (r#"ATTR{queue/rotational}=="1""#, "yes"),
        (r#"ATTR{queue/rotational}=="0""#, "no"),
        (r#"ATTR{none}!="0""#, "no"),
        (r#"ATTR{secret}=="0""#, "maybe"),
        (r#"ENV{DEVTYPE}=="disk", ENV{ID_WWN}=="0x5000""#, "yes"),
        (r#"ENV{ID_WWN}!="0x5000""#, "no"),
        (r#"ENV{OF_OTHERS}=="1""#, "maybe"),
        (r#"ENV{OF_OTHERS}=="1", KERNEL=="sdb""#, "no"),
        (r#"PROGRAM=="/bin/x""#, "maybe"),
        (r#"PROGRAM="/bin/x""#, "maybe"),
        (r#"IMPORT{program}="x", KERNEL=="sda""#, "maybe"),
        (r#"TEST=="queue/scheduler""#, "yes"),
        (r#"TEST!="queue/scheduler""#, "no"),
        (r#"KERNELS=="0000:00:1f.2", DRIVERS=="ahci""#, "yes"),
        (r#"KERNELS=="0000:00:1f.2", DRIVERS=="sd""#, "no"),
        (r#"SUBSYSTEMS=="scsi", ATTRS{vendor}=="ATA""#, "maybe"),
        (r#"KERNEL==i"SDA""#, "maybe"),
        (r#"TAG=="systemd""#, "maybe"),
    ] {
        assert_eq!(of(line), holds, "{line}");
    }
}

#[test]
fn jumps_are_made_where_they_are_sure() {
    let file = |jump: &str| {
        format!(
            "{jump}, GOTO=\"end\"\nATTR{{a}}=\"1\"\nLABEL=\"end\"\nATTR{{b}}=\"2\"\nATTR{{c}}=\"3\", GOTO=\"none\"\n"
        )
    };
    let behind = ["f:4 b=2", "f:5 c=3"];
    assert_eq!(told(&file(r#"SUBSYSTEM=="block""#), Action::Add), behind);
    assert_eq!(told(&file(r#"SUBSYSTEM!="block""#), Action::Add), ["f:2 a=1", behind[0], behind[1]]);
    assert_eq!(told(&file(r#"ENV{X}=="1""#), Action::Add), ["f:2 a=1 maybe", behind[0], behind[1]]);
    assert_eq!(told(&file(r#"ACTION=="change""#), Action::Change), behind);
}

#[test]
fn what_rules_give_is_asked_by_those_behind_them() {
    let text = "ENV{MINE}=\"%k-1\"\nENV{MINE}==\"sda-1\", ATTR{a}=\"1\"\nENV{MINE}==\"2\", ATTR{a}=\"2\"\n\
                PROGRAM==\"x\", ENV{MINE}=\"3\"\nENV{MINE}==\"sda-1\", ATTR{a}=\"3\"\n";
    assert_eq!(told(text, Action::Add), ["f:2 a=1", "f:5 a=3 maybe"]);
}

#[test]
fn programs_behind_the_final_one_are_not_started() {
    let run = |line: &str, value: u32| format!("{line}\"/sbin/sysctl vm.a={value}\"\n");
    let text = run("RUN+=", 1) + &run("RUN:=", 2) + &run("RUN+=", 3) + &run("RUN=", 4);
    assert_eq!(told(&text, Action::Add), ["f:2 sysctl vm.a=2"]);
    let may = run("RUN+=", 1) + &run("ENV{X}==\"1\", RUN:=", 2) + &run("RUN+=", 3);
    assert_eq!(
        told(&may, Action::Add),
        ["f:1 sysctl vm.a=1 maybe", "f:2 sysctl vm.a=2 maybe", "f:3 sysctl vm.a=3 maybe"]
    );
}

#[test]
fn programs_run_behind_the_rules_and_values_are_filled() {
    let text = "RUN+=\"/bin/sh -c 'echo 1 > /sys$DEVPATH/queue/x'\", ATTR{queue/y}=\"$name 100%%\"\n\
                RUN+=\"/bin/sh -c 'echo 2 > /sys%p/queue/x'\"\nATTR{queue/z}=\"$result\"\n";
    let (y, z) = ("f:1 queue/y=sda 100%", "f:3 queue/z=? maybe");
    let runs = ["f:1 /sys/block/sda/queue/x=1", "f:2 /sys/block/sda/queue/x=2"];
    assert_eq!(told(text, Action::Add), [y, z, runs[0], runs[1]]);
    let cleared = format!("{text}RUN=\"/sbin/sysctl vm.a=1\"\n");
    assert_eq!(told(&cleared, Action::Add), [y, z, "f:4 sysctl vm.a=1"]);
}

proptest! {
    #[test]
    fn odd_rules_are_followed_to_their_end(
        text in "((ATTR|ENV|RUN|GOTO|LABEL|KERNEL|TEST|IMPORT)(\\{[a-z$%]{0,4}\\})?(=|==|\\+=|!=)\
                 \"[a-z$%{}*\\[é ]{0,8}\"(, |\n)){0,12}",
    ) {
        let _ = told(&text, Action::Add);
        let _ = told(&text, Action::Change);
    }
}
