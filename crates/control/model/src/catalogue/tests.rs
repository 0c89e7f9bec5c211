//! Rows, profiles and the errors that users see.

use super::*;
use crate::{Class, ValueType};

const KNOB: &str = r#"
[[knob]]
id = "vm.swappiness"
path = "/proc/sys/vm/swappiness"
type = { int = "weight", min = 0, max = 200 }
class = "safe"
why = "w"
cost = "c"
source = "s"
proof = "none yet"
"#;

fn catalogue() -> Catalogue {
    let mut catalogue = Catalogue::default();
    catalogue.add_knobs("own.toml", KNOB).expect("a good row");
    catalogue
}

/// The files that the embedded rows were made from.
mod texts {
    include!(concat!(env!("OUT_DIR"), "/texts.rs"));
}

#[test]
fn what_is_embedded_is_what_the_files_say() {
    let mut read = Catalogue::default();
    let told = |result: Result<(), CatalogueError>| result.unwrap_or_else(|error| panic!("{error}"));
    for (file, text) in texts::KNOBS {
        told(read.add_knobs(file, text));
    }
    for (file, text) in texts::FINDINGS {
        told(read.add_findings(file, text));
    }
    for (file, text) in texts::PROFILES {
        told(read.add_profile(file, text));
    }
    for (file, text) in texts::WRITERS {
        told(read.add_writers(file, text));
    }
    told(read.check());
    let embedded = Catalogue::embedded().expect("sound");
    assert_eq!(embedded.knobs, read.knobs);
    assert_eq!(embedded.findings(), read.findings());
    assert_eq!(embedded.writers, read.writers);
    let profiles = |catalogue: &Catalogue| -> Vec<(String, Profile)> {
        catalogue.profiles.values().map(|own| (own.file.clone(), own.profile.clone())).collect()
    };
    assert_eq!(profiles(&embedded), profiles(&read));
    assert!(embedded.knobs.len() > 200 && embedded.profiles.len() > 10);
}

#[test]
fn what_is_coupled_is_found_through_what_is_coupled() {
    let catalogue = Catalogue::embedded().expect("sound");
    let ids = |id: &str| {
        let found = catalogue.with_coupled([&KnobId::new(id)]);
        found.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(ids("vm.dirty_bytes"), ["vm.dirty_bytes", "vm.dirty_ratio"]);
    assert!(ids("thp.enabled").contains(&"vm.min_free_kbytes".to_owned()));
    assert_eq!(ids("vm.swappiness"), ["vm.swappiness"]);
    assert_eq!(ids("no.such"), ["no.such"]);
}

#[test]
fn the_embedded_catalogue_is_sound() {
    let catalogue = Catalogue::embedded().expect("sound");
    for name in catalogue.profile_names() {
        assert!(!catalogue.profile(name).expect("resolves").summary.is_empty(), "{name}");
    }
}

#[test]
fn what_toml_says_is_told_in_words_of_people() {
    let told = |lines: &str| {
        let text = format!("name = \"own\"\nsummary = \"s\"\n{lines}\n");
        catalogue().parse_profile("own.toml", &text).expect_err("a wrong shape").to_string()
    };
    let weight = &catalogue().knob(&KnobId::new("vm.swappiness")).expect("a row").r#type.clone();
    let lots = weight.validate("lots").expect_err("no number").to_string();
    assert_eq!(lots, "`lots` is no whole number (weight)");
    for (lines, words) in [
        ("[want]\n\"vm.swappiness\" = [1, 2]", "integer `1`, expected { value = WORD, only = PATTERN"),
        (
            "[want]\n\"cpu.online\" = { value = 0.5, only = \"cpu1\" }",
            "expected a number or a word in quotes",
        ),
        ("[placement]\nhousekeeping_cores = \"zero\"", "expected a whole number from 0"),
        (
            "[want]\n\"vm.swappiness\" = 1\n\"vm.stat_interval\" = 9\n\"vm.swappiness\" = 2",
            "own.toml:6:1: \"vm.swappiness\" stands twice: first in line 4",
        ),
        ("[want]\n\"vm.stat_interval\" = 9\n[want]", "want stands twice: first in line 3"),
    ] {
        let error = told(lines);
        assert!(error.contains(words), "{error}");
        assert!(!["struct", "u32", "u64", "usize"].iter().any(|ours| error.contains(ours)), "{error}");
    }
}

#[test]
fn malformed_text_names_line_and_column() {
    let error = catalogue().add_profile("own.toml", "name = \"x\"\nsummary = \n").expect_err("no value");
    assert!(error.to_string().starts_with("own.toml:2:11: "), "{error}");
}

#[test]
fn an_unknown_knob_names_the_nearest() {
    let mut catalogue = catalogue();
    let text = "name = \"x\"\nsummary = \"s\"\n[want]\n\"vm.swapiness\" = 1\n";
    catalogue.add_profile("own.toml", text).expect("well formed");
    let error = catalogue.check().expect_err("no such knob");
    assert_eq!(error.to_string(), "own.toml:4:1: no knob `vm.swapiness`; did you mean `vm.swappiness`?");
    let error = catalogue.parse_profile("mine.toml", text).expect_err("no such knob");
    assert!(error.to_string().starts_with("mine.toml:4:1: no knob"), "{error}");
}

#[test]
fn a_wrong_value_a_second_row_and_a_broken_rule_name_line_and_column() {
    let text = "name = \"x\"\nsummary = \"s\"\nwant.\"vm.swappiness\" = 500\n";
    let error = catalogue().parse_profile("own.toml", text).expect_err("out of range");
    assert!(error.to_string().starts_with("own.toml:3:6: "), "{error}");
    let error = catalogue().add_knobs("own.toml", KNOB).expect_err("twice");
    assert_eq!(error.to_string(), "own.toml:3:6: `vm.swappiness` is defined twice");
    let error = catalogue().add_knobs("own.toml", &KNOB.replace("vm.s", "VM.s")).expect_err("upper case");
    assert!(error.to_string().starts_with("own.toml:3:6: VM.swappiness: an id is dotted"), "{error}");
}

#[test]
fn a_row_cannot_reach_outside_the_kernels_files_or_hide_what_it_does() {
    let row = |path: &str, class: &str| {
        let text = KNOB.replace("/proc/sys/vm/swappiness", path).replace("\"safe\"", class);
        Catalogue::default().add_knobs("own.toml", &text).map_err(|error| error.to_string())
    };
    for path in ["/etc/passwd", "/proc/sysrq-trigger", "/sys/../etc/passwd", "vm.swappiness"] {
        assert!(row(path, "\"safe\"").expect_err(path).contains("below /proc/sys, /proc/irq or /sys"));
    }
    assert!(row("/proc/sys/kernel/modules_disabled", "\"safe\"").expect_err("one-way").contains("oneway"));
    assert!(row("cmdline:isolcpus", "\"safe\"").expect_err("at boot").contains("when = \"boot\""));
    assert!(row("cmdline:a b", "\"safe\"").expect_err("two").contains("the name of one"));
    assert!(row("/proc/sys/kernel/modules_disabled", "\"oneway\"").is_ok());
    assert!(row("/proc/sys/vm/drop_caches", "\"availability\"").expect_err("an action").contains("action"));
    assert!(row("/proc/sys/vm/drop_caches", "\"action\"").is_ok());
    assert!(row("/proc/sys/kernel/{any}", "\"safe\"").expect_err("through a hole").contains("oneway"));
    let file =
        |path: &str| row(path, "\"safe\"\nundo = \"file\"\nwhen = \"process\"").expect_err("no row of ours");
    assert!(file("/etc/systemd/system/{unit}.service.d/zz-planish.conf").contains("with its directives"));
    assert!(file("/etc/cron.d/planish").contains("below /proc/sys, /proc/irq or /sys"));
}

#[test]
fn a_row_of_ones_own_takes_no_place_of_another_row_out_of_its_class() {
    let row = |path: &str, when: &str| {
        let text = KNOB.replace("vm.swappiness", "own.x").replace("/proc/sys/vm/swappiness", path) + when;
        let mut catalogue = Catalogue::embedded().expect("sound");
        catalogue.add_knobs("own.toml", &text).map_err(|error| (error.to_string(), error.cure()))
    };
    let boot = "when = \"boot\"\n";
    for (path, when, owner) in [
        ("/proc/sys/kernel/randomize_va_space", "", "kernel.randomize_va_space"),
        ("/proc/sys/net/core/{any}", "", "net.core.busy_poll"),
        ("/sys/kernel/mm/transparent_hugepage/enabled", "", "thp.enabled"),
        ("/sys/devices/system/cpu/cpufreq/policy0/scaling_governor", "", "cpu.governor"),
        ("/sys/class/block/{disk}/queue/write_cache", "", "block.write_cache"),
        ("cmdline:mitigations", boot, "boot.mitigations"),
        ("cmdline:transparent_hugepage", boot, "boot.transparent_hugepage"),
        ("cmdline:nvme_core.io_timeout", boot, "nvme.io_timeout_s"),
        ("cmdline:sysctl.kernel.randomize_va_space", boot, "kernel.randomize_va_space"),
        ("/proc/sys/kernel/no_such_file", "boot_arg = \"mitigations\"\n", "boot.mitigations"),
    ] {
        let (error, cure) = row(path, when).expect_err(path);
        assert!(error.starts_with(&format!("own.toml:3:6: own.x: {path} is a place of {owner}")), "{error}");
        assert!(cure.starts_with(&format!("take the row out, and want {owner}")), "{cure}");
    }
    for (path, when) in [("/proc/sys/kernel/no_such_file", ""), ("cmdline:own_argument", boot)] {
        assert_eq!(row(path, when), Ok(()), "{path}");
    }
}

#[test]
fn an_order_is_no_setting_that_could_be_taken_back() {
    let row = |path: &str, class: &str| {
        let text = KNOB.replace("/proc/sys/vm/swappiness", path).replace("\"safe\"", class);
        Catalogue::default().add_knobs("own.toml", &text).map_err(|error| error.to_string())
    };
    for path in [
        "/sys/power/state",
        "/sys/power/disk",
        "/sys/bus/pci/devices/{device}/remove",
        "/sys/bus/pci/rescan",
        "/sys/block/{disk}/device/delete",
        "/sys/block/{disk}/device/{file}",
        "/sys/bus/pci/drivers/nvme/unbind",
        "/sys/bus/pci/drivers/{driver}/bind",
        "/sys/bus/pci/devices/{device}/reset",
    ] {
        assert!(row(path, "\"safe\"").expect_err(path).contains("cannot be taken back"), "{path}");
        assert!(row(path, "\"action\"").is_ok(), "{path}");
    }
    assert!(row("/sys/bus/pci/devices/{device}/reset_method", "\"safe\"").is_ok());
    for odd in ["/proc/sys//kernel/randomize_va_space", "/sys/block/sda/queue/"] {
        assert!(row(odd, "\"safe\"").expect_err(odd).contains("a place is a file below"), "{odd}");
    }
}

#[test]
fn a_row_cannot_call_safe_what_undo_would_leave_or_take_from_others() {
    let row = |path: &str, class: &str, undo: &str| {
        let text = KNOB.replace("/proc/sys/vm/swappiness", path).replace("\"safe\"", class);
        let text = format!("{text}undo = \"{undo}\"\n");
        Catalogue::default().add_knobs("own.toml", &text).map_err(|error| error.to_string())
    };
    let error = row("/proc/sys/vm/swappiness", "\"safe\"", "none").expect_err("never taken back");
    assert!(error.starts_with("own.toml:3:6: vm.swappiness: undo = \"none\" is for what cannot"), "{error}");
    assert!(row("/proc/sys/vm/swappiness", "\"security\"", "none").expect_err("nor so").contains("class"));
    assert!(row("/proc/sys/vm/drop_caches", "\"action\"", "none").is_ok());
    for undo in ["file", "edit"] {
        let error = row("/proc/sys/vm/swappiness", "\"safe\"", undo).expect_err("a file of the kernel");
        assert!(error.contains("for the files of --persist"), "{error}");
    }
    let error = row("/proc/sys/vm/swappiness", "\"safe\"", "subtract").expect_err("no pool");
    assert!(error.contains("for pools alone"), "{error}");
    let node = "/sys/devices/system/node/node{node}/hugepages";
    for path in [
        "/proc/sys/vm/nr_hugepages".to_owned(),
        "/proc/sys/vm/nr_hugepages_mempolicy".to_owned(),
        "/proc/sys/vm/{any}".to_owned(),
        format!("{node}/hugepages-65536kB/nr_hugepages"),
        format!("{node}/hugepages-2048kB/{{file}}"),
        "/sys/kernel/mm/hugepages/{size}/{file}".to_owned(),
    ] {
        // A hole that reaches an action has to say so first; an action is in no plan.
        let error = row(&path, "\"safe\"", "restore").expect_err("pages of others");
        assert!(error.contains("is a pool") || error.contains("oneway or action"), "{path}: {error}");
    }
    assert!(row(&format!("{node}/hugepages-65536kB/nr_hugepages"), "\"safe\"", "subtract").is_ok());
}

#[test]
fn twins_name_each_other() {
    let mut catalogue = Catalogue::default();
    let one_sided = COUPLED.replacen("twin = \"vm.dirty_bytes\"\n", "", 1);
    catalogue.add_knobs("own.toml", &one_sided).expect("good rows");
    assert!(catalogue.check().expect_err("one-sided").to_string().contains("its twin does not name it"));
}

#[test]
fn own_values_win_over_inherited_ones() {
    let mut catalogue = catalogue();
    let base = "name = \"base\"\nsummary = \"s\"\n[want]\n\"vm.swappiness\" = 1\n";
    let own = "name = \"own\"\nsummary = \"s\"\ninherits = [\"base\"]\n[want]\n\"vm.swappiness\" = 5\n";
    catalogue.add_profile("base.toml", base).expect("well formed");
    catalogue.add_profile("own.toml", own).expect("well formed");
    let profile = catalogue.profile("own").expect("resolves");
    assert_eq!(profile.want[&KnobId::new("vm.swappiness")], Want::Int(5));
}

/// Two twins and a pool.
const COUPLED: &str = r#"
[[knob]]
id = "vm.dirty_bytes"
path = "/proc/sys/vm/dirty_bytes"
type = { int = "bytes", min = 8192 }
twin = "vm.dirty_ratio"
class = "safe"
why = "w"
cost = "c"
source = "s"
proof = "none yet"

[[knob]]
id = "vm.dirty_ratio"
path = "/proc/sys/vm/dirty_ratio"
type = { int = "percent", min = 0, max = 100 }
twin = "vm.dirty_bytes"
class = "safe"
why = "w"
cost = "c"
source = "s"
proof = "none yet"

[[knob]]
id = "hugepages.2m"
path = "/sys/devices/system/node/node{node}/hugepages/hugepages-2048kB/nr_hugepages"
type = { int = "pages", min = 0 }
undo = "subtract"
class = "safe"
why = "w"
cost = "c"
source = "s"
proof = "none yet"
"#;

fn profile_error(want: &str) -> String {
    let mut catalogue = catalogue();
    catalogue.add_knobs("coupled.toml", COUPLED).expect("good rows");
    let text = format!("name = \"x\"\nsummary = \"s\"\n[want]\n{want}");
    catalogue.add_profile("own.toml", &text).expect("well formed");
    catalogue.check().expect_err("breaks a rule").to_string()
}

#[test]
fn a_pool_is_never_wanted_as_an_absolute_number() {
    let error = profile_error("\"hugepages.2m\" = 512\n");
    assert!(error.contains("say { need_bytes = N }"), "{error}");
    let error = profile_error("\"vm.swappiness\" = { need_bytes = 512 }\n");
    assert!(error.contains("is no pool"), "{error}");
}

#[test]
fn a_case_that_chooses_nothing_or_can_never_count_is_refused() {
    let error = |want: &str| {
        let text = format!("name = \"x\"\nsummary = \"s\"\n[want]\n{want}\n");
        let catalogue = Catalogue::embedded().expect("sound");
        catalogue.parse_profile("own.toml", &text).expect_err("breaks a rule").to_string()
    };
    let told = error("\"vm.swappiness\" = { value = 10, only = \"foo*\" }");
    assert!(told.contains("has one place"), "{told}");
    for only in ["", " ", "disk="] {
        let told = error(&format!("\"block.scheduler\" = {{ value = \"none\", only = \"{only}\" }}"));
        assert!(told.contains("has an empty `only`, which no place matches"), "{told}");
    }
    for cases in [
        "\"vm.swappiness\" = [{ value = 10 }, { value = 1, needs = { kernel_min = \"5.15\" } }]",
        "\"cpu.governor\" = [{ value = \"a\", only = \"1*\" }, { value = \"b\", only = \"12*\" }]",
        "\"cpu.governor\" = [{ value = \"a\" }, { value = \"b\", only = \"1\" }]",
    ] {
        let told = error(cases);
        assert!(told.contains("can never count"), "{cases}: {told}");
    }
    for needs in [
        "kernel_min = \"6.10\", kernel_gone = \"6.2\"",
        "kernel_min = \"6.2\", kernel_gone = \"6.2\"",
        "kernel_min = \"6.2\", dead_since = \"5.15\"",
        "os = [\"rhel\"], os_min = \"9\", os_gone = \"8.10\"",
        "bare_metal = true, guest = true",
    ] {
        let told = error(&format!("\"vm.swappiness\" = {{ value = 10, needs = {{ {needs} }} }}"));
        assert!(told.contains("can never hold"), "{needs}: {told}");
    }
    let mut catalogue = Catalogue::embedded().expect("sound");
    let text = "name = \"x\"\nsummary = \"s\"\n[want]\n\"vm.stat_interval\" = { value = 2, needs = { \
                kernel_min = \"6.2\", kernel_gone = \"6.10\" } }\n\"cpu.governor\" = [\n\
                { value = \"performance\", only = \"1?\" }, { value = \"powersave\", only = \"1*\" }]\n\
                \"vm.swappiness\" = [{ value = 1, needs = { kernel_min = \"5.15\" } }, { value = 10 }]\n";
    catalogue.add_profile("own.toml", text).expect("well formed");
    catalogue.check().expect("each may count");
}

#[test]
fn twins_are_never_wanted_together_but_a_heir_may_choose_the_other() {
    let error = profile_error("\"vm.dirty_bytes\" = 8192\n\"vm.dirty_ratio\" = 10\n");
    assert!(error.contains("its twin"), "{error}");
    let mut catalogue = catalogue();
    catalogue.add_knobs("coupled.toml", COUPLED).expect("good rows");
    let base = "name = \"base\"\nsummary = \"s\"\n[want]\n\"vm.dirty_ratio\" = 10\n";
    let own = "name = \"own\"\nsummary = \"s\"\ninherits = [\"base\"]\n[want]\n\"vm.dirty_bytes\" = 8192\n";
    catalogue.add_profile("base.toml", base).expect("well formed");
    catalogue.add_profile("own.toml", own).expect("well formed");
    let want = catalogue.profile("own").expect("resolves").want;
    assert_eq!(want.keys().map(KnobId::as_str).collect::<Vec<_>>(), ["vm.dirty_bytes"]);
}

#[test]
fn parents_that_do_not_agree_are_refused_with_both_lines_unless_the_child_settles_it() {
    let mut catalogue = catalogue();
    catalogue.add_knobs("coupled.toml", COUPLED).expect("good rows");
    let parent = |catalogue: &mut Catalogue, name: &str, want: &str| {
        let text = format!("name = \"{name}\"\nsummary = \"s\"\n[want]\n{want}\n");
        catalogue.add_profile(&format!("{name}.toml"), &text).expect("well formed");
    };
    parent(&mut catalogue, "calm", "\"vm.swappiness\" = 1");
    parent(&mut catalogue, "lively", "\"vm.swappiness\" = 10");
    parent(&mut catalogue, "bytes", "\"vm.dirty_bytes\" = 8192");
    parent(&mut catalogue, "ratio", "\"vm.dirty_ratio\" = 10");
    let text = "name = \"grand\"\nsummary = \"s\"\ninherits = [\"calm\"]\n";
    catalogue.add_profile("grand.toml", text).expect("well formed");
    let child = |parents: &str, want: &str| {
        let text = format!("name = \"own\"\nsummary = \"s\"\ninherits = [{parents}]\n[want]\n{want}\n");
        catalogue.parse_profile("own.toml", &text).map(|profile| profile.want).map_err(|error| {
            assert!(
                error.cure().starts_with("say in the profile itself which it is to be: vm."),
                "{}",
                error.cure()
            );
            error.to_string()
        })
    };
    assert_eq!(
        child("\"calm\", \"lively\"", "").expect_err("which of them?"),
        "own.toml:3:21: vm.swappiness is wanted otherwise by two parents: `calm` wants vm.swappiness = 1 \
         (calm.toml:4:1) and `lively` wants vm.swappiness = 10 (lively.toml:4:1)"
    );
    let through = child("\"grand\", \"lively\"", "").expect_err("inherited through another");
    assert!(
        through.contains("`grand`, by way of `calm`, wants vm.swappiness = 1 (calm.toml:4:1)"),
        "{through}"
    );
    let twins = child("\"bytes\", \"ratio\"", "").expect_err("one clears the other");
    assert!(
        twins.contains("vm.dirty_bytes = 8192 (bytes.toml:4:1)") && twins.contains("(ratio.toml:4:1)"),
        "{twins}"
    );
    let settled = child("\"calm\", \"lively\"", "\"vm.swappiness\" = 5").expect("it says which");
    assert_eq!(settled[&KnobId::new("vm.swappiness")], Want::Int(5));
    assert!(child("\"bytes\", \"ratio\"", "\"vm.dirty_ratio\" = 20").is_ok());
    assert!(child("\"calm\", \"grand\"", "").is_ok(), "they want the same");
    assert!(child("\"calm\", \"bytes\"", "").is_ok());
}

#[test]
fn an_alias_that_the_kernel_pins_is_not_wanted_otherwise() {
    let catalogue = Catalogue::embedded().expect("sound");
    let told = |parents: &str, want: &str| {
        let text = format!("name = \"own\"\nsummary = \"s\"\ninherits = [{parents}]\n[want]\n{want}\n");
        catalogue.parse_profile("own.toml", &text).err().map(|error| error.to_string())
    };
    let rule = "cpu.epp: is wanted at power, and the kernel keeps it at performance while cpu.governor is \
                performance, as is wanted";
    let both = "\"cpu.governor\" = \"performance\"\n\"cpu.epp\" = \"power\"";
    assert_eq!(told("", both), Some(format!("own.toml:6:1: {rule}")));
    assert_eq!(told("\"series\"", "\"cpu.epp\" = \"power\""), Some(format!("own.toml:5:1: {rule}")));
    for fine in [
        "\"cpu.governor\" = \"performance\"\n\"cpu.epp\" = \"performance\"",
        "\"cpu.governor\" = \"powersave\"\n\"cpu.epp\" = \"power\"",
        "\"cpu.epp\" = \"power\"",
    ] {
        assert_eq!(told("", fine), None, "{fine}");
    }
}

#[test]
fn a_detector_is_not_on_while_all_of_them_are_off() {
    let mut catalogue = Catalogue::embedded().expect("sound");
    for (name, own, is_sound) in [
        ("nmi", "\"kernel.watchdog\" = 0\n\"kernel.nmi_watchdog\" = 1\n", false),
        ("soft", "\"kernel.watchdog\" = 0\n\"kernel.soft_watchdog\" = 1\n", false),
        ("off", "\"kernel.watchdog\" = 0\n\"kernel.nmi_watchdog\" = 0\n", true),
        ("one", "\"kernel.watchdog\" = 1\n\"kernel.nmi_watchdog\" = 0\n", true),
    ] {
        let text = format!("name = \"{name}\"\nsummary = \"s\"\n[want]\n{own}");
        catalogue.add_profile(&format!("{name}.toml"), &text).expect("well formed");
        assert_eq!(catalogue.profile(name).is_ok(), is_sound, "{name}");
    }
    let text =
        "name = \"heir\"\nsummary = \"s\"\ninherits = [\"realtime\"]\n[want]\n\"kernel.nmi_watchdog\" = 1\n";
    catalogue.add_profile("heir.toml", text).expect("well formed");
    let error = catalogue.profile("heir").expect_err("realtime turns it off").to_string();
    assert!(error.contains("heir.toml:5:1: kernel.nmi_watchdog: is wanted at 1"), "{error}");
    assert!(error.ends_with("keeps it at 0 while kernel.watchdog is 0, as is wanted"), "{error}");
}

#[test]
fn a_partition_is_of_groups_that_are_named() {
    let mut catalogue = Catalogue::embedded().expect("sound");
    for (value, is_sound) in [
        ("\"isolated\"", false),
        ("[{ value = \"root\", only = \"a\" }, { value = \"member\" }]", false),
        ("{ value = \"isolated\", only = \"mine.slice\" }", true),
    ] {
        let text = format!("name = \"own\"\nsummary = \"s\"\n[want]\n\"cpuset.partition\" = {value}\n");
        catalogue.add_profile("own.toml", &text).expect("well formed");
        let told = catalogue.profile("own").map(|_| ()).map_err(|error| error.to_string());
        assert_eq!(told.is_ok(), is_sound, "{told:?}");
    }
}

#[test]
fn a_size_is_of_mounts_that_are_named_and_a_time_may_be_of_all() {
    let mut catalogue = Catalogue::embedded().expect("sound");
    for (want, is_sound) in [
        ("\"tmpfs.size\" = \"50%\"", false),
        ("\"tmpfs.huge\" = [{ value = \"advise\", only = \"/dev/shm\" }, { value = \"never\" }]", false),
        ("\"tmpfs.size\" = { value = \"50%\", only = \"/dev/shm\" }", true),
        ("\"tmpfs.size\" = { value = \"0\", only = \"/dev/shm\" }", false),
        ("\"mount.atime\" = \"noatime\"", true),
        ("\"mount.atime\" = \"atime\"", false),
    ] {
        let text = format!("name = \"own\"\nsummary = \"s\"\n[want]\n{want}\n");
        catalogue.add_profile("own.toml", &text).expect("well formed");
        let told = catalogue.profile("own").map(|_| ()).map_err(|error| error.to_string());
        assert_eq!(told.is_ok(), is_sound, "{want}: {told:?}");
    }
}

#[test]
fn no_guard_of_memory_is_taken_away_as_a_setting_for_speed() {
    let catalogue = Catalogue::embedded().expect("sound");
    for (id, odd) in [("boot.intel_iommu", "off"), ("boot.mce", "off"), ("mm.ksm_run", "2")] {
        let knob = catalogue.knob(&KnobId::new(id)).expect("a row");
        assert!(knob.validate(odd).is_err(), "{id} = {odd} is taken");
    }
    let knob = |id: &str| catalogue.knob(&KnobId::new(id)).expect("a row");
    assert!(knob("boot.intel_iommu").validate("on").is_ok());
    assert_eq!(knob("boot.intel_iommu").class, Class::Availability);
}

#[test]
fn a_typing_error_of_a_boot_parameter_is_told() {
    let catalogue = Catalogue::embedded().expect("sound");
    for (id, good, odd) in [
        ("boot.thp_anon", "16K-64K:always", "64K:alwyas"),
        ("boot.thp_shmem", "64K:within_size", "banana"),
        ("boot.hugetlb_cma", "0:2G,1:2G", "2X"),
        ("boot.cpufreq_default_governor", "performance", "preformance"),
        ("boot.clocksource", "tsc", "tcs"),
        ("boot.mce", "ignore_ce", "ignore-ce"),
        ("mce.check_interval_s", "300", "12c"),
    ] {
        let knob = catalogue.knob(&KnobId::new(id)).expect("a row");
        assert!(knob.validate(good).is_ok(), "{id} = {good}");
        assert!(knob.validate(odd).is_err(), "{id} = {odd} is taken");
    }
    let clocks = |id: &str| match &catalogue.knob(&KnobId::new(id)).expect("a row") {
        Knob { r#type: ValueType::Choice { choice }, .. } => choice.clone(),
        Knob { words, .. } => words.clone(),
    };
    assert_eq!(clocks("boot.clocksource"), clocks("clock.source"));
    assert_eq!(clocks("boot.cpufreq_default_governor"), clocks("cpu.governor"));
}

#[test]
fn a_cycle_is_named() {
    let mut catalogue = catalogue();
    catalogue.add_profile("a.toml", "name = \"a\"\nsummary = \"s\"\ninherits = [\"b\"]\n").expect("ok");
    catalogue.add_profile("b.toml", "name = \"b\"\nsummary = \"s\"\ninherits = [\"a\"]\n").expect("ok");
    let error = catalogue.check().expect_err("cycle");
    assert_eq!(error.to_string(), "b.toml:3:13: profile `a` inherits itself");
}

#[test]
fn more_parents_than_can_be_meant_end_at_once() {
    let text =
        |name: &str, parents: &str| format!("name = \"{name}\"\nsummary = \"s\"\ninherits = [{parents}]\n");
    let mut chain = catalogue();
    chain.add_profile("p0.toml", &text("p0", "")).expect("ok");
    for index in 1..3000 {
        let (name, parent) = (format!("p{index}"), format!("\"p{}\"", index - 1));
        chain.add_profile(&format!("{name}.toml"), &text(&name, &parent)).expect("ok");
    }
    assert!(chain.profile("p63").is_ok());
    let told = chain.profile("p64").expect_err("a chain").to_string();
    assert_eq!(told, "p1.toml:3:13: profile `p0` inherits more than 64 profiles in all");
    chain.leave_wrong_out();
    assert_eq!(chain.left_out().count(), 3000 - 64);
    // Few profiles, and twice as many to lay over each other with each of them.
    let mut wide = catalogue();
    for index in 0..40 {
        for side in ["a", "b"] {
            let parents = if index == 0 { String::new() } else { format!("\"a{0}\", \"b{0}\"", index - 1) };
            let name = format!("{side}{index}");
            wide.add_profile(&format!("{name}.toml"), &text(&name, &parents)).expect("ok");
        }
    }
    assert!(wide.profile("a39").expect_err("millions").to_string().ends_with("more than 64 profiles in all"));
}

#[test]
fn a_parent_that_does_not_exist_is_pointed_at() {
    let mut catalogue = catalogue();
    catalogue.add_profile("base.toml", "name = \"base\"\nsummary = \"s\"\n").expect("ok");
    let text = "name = \"x\"\nsummary = \"s\"\ninherits = [\"bse\"]\n";
    let error = catalogue.parse_profile("own.toml", text).expect_err("no such parent");
    assert_eq!(error.to_string(), "own.toml:3:13: no profile `bse`; did you mean `base`?");
    assert!(error.cure().starts_with("the profiles are base; a parent of yours "), "{}", error.cure());
}

#[test]
fn an_unknown_key_names_the_nearest_at_every_depth() {
    let error = |want: &str| {
        let text = format!("name = \"x\"\nsummary = \"s\"\n[want]\n{want}\n");
        catalogue().parse_profile("own.toml", &text).expect_err("a wrong key").to_string()
    };
    for (want, told) in [
        ("\"vm.swappiness\" = { need_bytes = 1, node = [1] }", "did you mean `nodes`?"),
        ("\"vm.swappiness\" = { vale = \"1\", only = \"x\" }", "did you mean `value`?"),
        ("\"vm.swappiness\" = { need_bytes = -5 }", "expected a whole number from 0"),
        (
            "\"vm.swappiness\" = { need_bytes = \"64M\" }",
            "bytes are written without a unit, 67108864 for 64 MiB",
        ),
        ("\"vm.swappiness\" = { need_bytes = [1, -1] }", "bytes are written without a unit"),
        ("\"vm.swappiness\" = { need_bytes = [1, 2] }", "takes as many nodes"),
        ("\"vm.swappiness\" = { need_bytes = [1, 2], nodes = [0] }", "takes as many nodes"),
        ("\"vm.swappiness\" = { need_bytes = [1, 2], nodes = [0, 0] }", "stands in `nodes` twice"),
        ("\"vm.swappiness\" = { total_bytes = [1] }", "a list of total_bytes takes as many nodes"),
        ("\"vm.swappiness\" = { total_bytes = 1, need_bytes = 1 }", "these keys do not go together"),
        ("\"vm.swappiness\" = { from = \"service_pool\", nodes = [1] }", "these keys do not go together"),
        ("\"vm.swappiness\" = { value = \"1\" }", "these keys do not go together"),
        ("\"vm.swappiness\" = 1.5", "expected a number, a word, {"),
        ("\"vm.swappiness\" = []", "an empty list"),
        ("\"vm.swappiness\" = [{ value = \"1\", neds = {} }]", "did you mean `needs`?"),
        ("\"vm.swappiness\" = { value = \"1\", needs = { vendor = [\"intl\"] } }", "did you mean `intel`?"),
    ] {
        let error = error(want);
        assert!(error.starts_with("own.toml:4:") && error.contains(told), "{want}: {error}");
    }
    let text = "name = \"x\"\nsumary = \"s\"\n";
    let error = catalogue().parse_profile("own.toml", text).expect_err("a wrong key").to_string();
    assert!(error.starts_with("own.toml:2:1: ") && error.ends_with("did you mean `summary`?"), "{error}");
    let row = KNOB.replace("max = 200", "mx = 200");
    let error = Catalogue::default().add_knobs("own.toml", &row).expect_err("no such limit").to_string();
    assert!(error.starts_with("own.toml:5:") && error.contains("unknown field `mx`"), "{error}");
    let row = KNOB.replace("int = \"weight\"", "flag = true");
    let error = Catalogue::default().add_knobs("own.toml", &row).expect_err("no limits").to_string();
    assert!(error.contains("a type is one of"), "{error}");
}

#[test]
fn a_program_finds_the_profile_that_is_made_for_it() {
    let mut catalogue = catalogue();
    for name in ["my", "mysql", "redis"] {
        let text = format!("name = \"{name}\"\nsummary = \"s\"\n");
        catalogue.add_profile("own.toml", &text).expect("ok");
    }
    assert_eq!(catalogue.profile_for("redis-server", None), Some("redis"));
    assert_eq!(catalogue.profile_for("mysqld", None), Some("mysql"));
    assert_eq!(catalogue.profile_for("mysql", None), Some("mysql"));
    assert_eq!(catalogue.profile_for("rediska", None), None);
    let text = "name = \"odd\"\nsummary = \"s\"\nservice_min = \"new\"\n";
    catalogue.add_profile("odd.toml", text).expect("it can be read");
    let error = catalogue.profile("odd").expect_err("no number").to_string();
    assert!(error.contains("a version of a service begins with a number"), "{error}");
    let text = "name = \"none\"\nsummary = \"s\"\nservice_min = \"9\"\nservice_max = \"2.7\"\n";
    catalogue.add_profile("none.toml", text).expect("it can be read");
    let error = catalogue.profile("none").expect_err("no version").to_string();
    assert_eq!(error, "none.toml:3:16: 9: no version is as new as service_min and as old as service_max");
    let text = "name = \"one\"\nsummary = \"s\"\nservice_min = \"7.0.5\"\nservice_max = \"7\"\n";
    catalogue.add_profile("one.toml", text).expect("it can be read");
    assert!(catalogue.profile("one").is_ok(), "7.0.6 is one");
}

#[test]
fn a_version_that_cannot_be_compared_is_no_condition() {
    let rule = "a version in `needs` is one number or two, such as 9 or 5.14";
    for odd in [">=9.9", "v99", "99.x", " 99", "", "banana", "5.14.21", "99999999999", "5.", ".5", "+5"] {
        for field in ["kernel_min", "kernel_gone", "dead_since", "os_min", "os_gone"] {
            let needs = format!("needs = {{ {field} = \"{odd}\" }}");
            let want = format!("\"vm.swappiness\" = {{ value = \"1\", {needs} }}\n");
            assert!(profile_error(&want).ends_with(&format!("vm.swappiness: {rule}")), "{want}");
            let cases = format!("\"vm.swappiness\" = [{{ value = \"1\", {needs} }}, {{ value = \"2\" }}]\n");
            assert!(profile_error(&cases).ends_with(rule), "{cases}");
            let row = KNOB.replace("class = ", &format!("{needs}\nclass = "));
            let error = Catalogue::default().add_knobs("own.toml", &row).expect_err("a row too").to_string();
            assert!(error.ends_with(rule), "{error}");
        }
    }
    let mut catalogue = catalogue();
    let want =
        "[want]\n\"vm.swappiness\" = { value = \"1\", needs = { kernel_min = \"5.14\", os_min = \"9\" } }\n";
    catalogue
        .add_profile("p.toml", &format!("name = \"p\"\nsummary = \"s\"\n{want}"))
        .expect("it can be read");
    assert!(catalogue.profile("p").is_ok());
}

#[test]
fn a_program_finds_what_is_shipped_for_it_and_for_its_version() {
    let catalogue = Catalogue::embedded().expect("sound");
    for (program, version, profile) in [
        ("mongod", None, "mongodb"),
        ("mongod", Some("8.0.1"), "mongodb"),
        ("mongod", Some("7.0.14"), "mongodb-7"),
        ("ora_pmon_ORCL", Some("19.0.0"), "oracle-19c"),
        ("ora_pmon_ORCL", Some("23.4"), "oracle"),
        ("hdbindexserver", None, "hana"),
        ("java:org.elasticsearch.bootstrap.Elasticsearch", None, "elasticsearch"),
        ("clickhouse-serv", None, "clickhouse"),
        ("postgres", Some("16"), "postgres"),
    ] {
        assert_eq!(catalogue.profile_for(program, version), Some(profile), "{program} {version:?}");
    }
    assert_eq!(catalogue.profile_for("java", None), None, "nothing is known of it");
    let eight = catalogue.profile("mongodb").expect("shipped");
    assert_eq!(catalogue.profile_instead(&eight, "7.0.14"), Some("mongodb-7"));
    assert!(catalogue.packages_of("mongod").contains(&"mongodb-org-server".to_owned()));
}

#[test]
fn a_name_of_its_file_or_its_family_leads_to_a_knob() {
    let catalogue = Catalogue::embedded().expect("sound");
    for (wrong, meant) in [
        ("nr_hugepages", "hugepages.2m`"),
        ("vm.nr_hugepages", "hugepages.2m`"),
        ("transparent_hugepage", "thp.enabled`"),
        ("thp", "thp.enabled`"),
        ("swappiness", "vm.swappiness"),
        ("thp.enabeld", "thp.enabled"),
    ] {
        let error = catalogue.knob(&KnobId::new(wrong)).expect_err("no id").to_string();
        assert!(error.contains(&format!("did you mean `{meant}")), "{error}");
    }
    let error = catalogue.knob(&KnobId::new("nothing.like.it")).expect_err("no id").to_string();
    assert!(!error.contains("did you mean"), "{error}");
}

#[test]
fn a_name_that_no_table_and_no_file_can_hold_is_refused_where_it_stands() {
    let long = "x".repeat(100_000);
    for (name, shown) in [
        (long.as_str(), format!("{}...", &long[..64])),
        ("", String::new()),
        ("../x", "../x".to_owned()),
        ("a b", "a b".to_owned()),
    ] {
        let text = format!("summary = \"s\"\nname = \"{name}\"\n");
        for error in [
            catalogue().add_profile("own.toml", &text).expect_err("too long"),
            catalogue().parse_profile("own.toml", &text).expect_err("too long"),
        ] {
            let told = error.to_string();
            assert!(told.starts_with(&format!("own.toml:2:8: `{shown}` cannot name a profile")), "{told}");
            assert_eq!(error.cure(), "name it otherwise, such as my-host");
        }
    }
}

#[test]
fn no_profile_of_a_user_breaks_one_that_we_ship() {
    let embedded = Catalogue::embedded().expect("sound");
    let names: Vec<&str> = embedded.profile_names().collect();
    for name in &names {
        for inherits in names.iter().map(|parent| format!("[\"{parent}\"]")).chain(["[]".to_owned()]) {
            let mut catalogue = embedded.clone();
            let text = format!("name = \"{name}\"\nsummary = \"mine\"\ninherits = {inherits}\n");
            catalogue.add_profile("/etc/planish/profiles/own.toml", &text).expect("well formed");
            match catalogue.check() {
                Ok(()) => assert_eq!(catalogue.profile(name).expect("checked").summary, "mine"),
                // Its own name among its parents.
                Err(error) => assert_eq!(
                    error.to_string(),
                    format!("/etc/planish/profiles/own.toml:3:13: profile `{name}` inherits itself")
                ),
            }
            for other in names.iter().filter(|other| *other != name) {
                let (now, shipped) = (catalogue.profile(other), embedded.profile(other));
                assert_eq!(now.expect("sound"), shipped.expect("sound"), "{name} breaks {other}");
            }
        }
    }
}

#[test]
fn a_value_with_a_condition_is_written_as_the_bare_one_is() {
    let catalogue = Catalogue::embedded().expect("sound");
    let read = |want: &str| {
        let text = format!("name = \"own\"\nsummary = \"s\"\n[want]\n\"cpu.online\" = {want}\n");
        catalogue.parse_profile("own.toml", &text).map(|profile| profile.want)
    };
    let word = read("{ value = \"0\", only = \"3\" }").expect("a word");
    assert_eq!(read("{ value = 0, only = \"3\" }").expect("a number"), word);
    assert_eq!(
        read("[{ value = 0, only = \"3\" }]").expect("in a list"),
        read("[{ value = \"0\", only = \"3\" }]").expect("words")
    );
    assert!(read("{ value = [0], only = \"3\" }").is_err());
    assert!(read("{ value = 1.5, only = \"3\" }").is_err());
}

#[test]
fn words_that_no_queue_discipline_is_called_are_refused() {
    let catalogue = Catalogue::embedded().expect("sound");
    let told = |word: &str| {
        let text =
            format!("name = \"own\"\nsummary = \"s\"\n[want]\n\"net.core.default_qdisc\" = \"{word}\"\n");
        let error = catalogue.parse_profile("own.toml", &text).err();
        let source = error.as_ref().and_then(std::error::Error::source);
        source.map(ToString::to_string).unwrap_or_default()
    };
    assert!(told("fqq").contains("did you mean `fq`?"), "{}", told("fqq"));
    assert!(told("fq; touch /tmp/x").contains("is none of pfifo_fast, fq,"), "{}", told("fq; touch /tmp/x"));
    assert_eq!(told("fq_codel"), "");
}

#[test]
fn parents_in_conflict_are_told_with_what_they_say_alone() {
    let mut catalogue = Catalogue::embedded().expect("sound");
    let mut parent = |name: &str, want: &str| {
        let text = format!("name = \"{name}\"\nsummary = \"s\"\n[want]\n{want}\n");
        catalogue.add_profile(&format!("{name}.toml"), &text).expect("well formed");
    };
    parent("old", "\"vm.swappiness\" = { value = 1, needs = { kernel_gone = \"6.0\" } }");
    parent("new", "\"vm.swappiness\" = 10");
    let text = "name = \"own\"\nsummary = \"s\"\ninherits = [\"old\", \"new\"]\n[want]\n";
    let error = catalogue.parse_profile("own.toml", text).expect_err("which of them?").to_string();
    assert!(error.contains("{ value = \"1\", needs = { kernel_gone = \"6.0\" } }"), "{error}");
}

/// Told one at a time, each mending brings the next: `series` and `realtime` had a dozen of them.
#[test]
fn all_that_parents_do_not_agree_about_is_told_at_once() {
    let catalogue = Catalogue::embedded().expect("sound");
    let text = "name = \"own\"\nsummary = \"s\"\ninherits = [\"series\", \"realtime\"]\n";
    let error = catalogue.parse_profile("own.toml", text).expect_err("they do not agree");
    let told = error.to_string();
    assert!(
        told.starts_with("own.toml:3:23: ") && told.contains(" are wanted otherwise by two parents: "),
        "{told}"
    );
    assert!(
        told.contains("`realtime`, by way of `low-latency`, wants thp.defrag")
            && !told.contains("catalogue/"),
        "{told}"
    );
    let CatalogueError::Conflict { conflicts, .. } = error else { panic!("{told}") };
    let both = |name: &str| catalogue.profile(name).expect("shipped").want;
    let (series, realtime) = (both("series"), both("realtime"));
    let differ: Vec<&str> = realtime
        .iter()
        .filter(|(id, want)| series.get(id).is_some_and(|other| other != *want))
        .map(|(id, _)| id.as_str())
        .collect();
    assert!(
        differ.len() > 1 && differ.iter().all(|id| conflicts.iter().any(|one| one.knob == *id)),
        "{told}"
    );
}

#[test]
fn a_name_without_quotes_is_told_as_such() {
    for (text, told) in [
        ("[want]\nvm.swappiness = 10\n", "\"vm.swappiness\" = 10"),
        ("[want]\nnet.ipv4.tcp_rmem = \"1 2 3\"\n", "\"net.ipv4.tcp_rmem\" = \"1 2 3\""),
        ("[want]\nhugepages.2m = { need_bytes = 9 }\n", "\"hugepages.2m\" = { ... }"),
        ("[want.vm]\nswappiness = 10\n", "\"vm.swappiness\" = 10"),
    ] {
        let text = format!("name = \"own\"\nsummary = \"s\"\n{text}");
        let error = parse_profile("own.toml", &text).expect_err("no such table").to_string();
        let wanted = format!("a knob's name stands in quotes, as its dots are part of it: {told}");
        assert!(error.starts_with("own.toml:") && error.ends_with(&wanted), "{error}");
    }
    let error =
        parse_profile("own.toml", "name = \"own\"\nsummary = \"s\"\n[want]\n\"a.b\" = { valeu = 1 }\n");
    assert!(error.expect_err("a typing error").to_string().ends_with("did you mean `value`?"));
}

#[test]
fn a_size_with_a_unit_is_refused_in_one_line() {
    let text = "name = \"own\"\nsummary = \"s\"\n[want]\n\"hugepages.2m\" = { need_bytes = \"24G\" }\n";
    let error = parse_profile("own.toml", text).expect_err("a unit").to_string();
    assert!(!error.contains('\n') && error.contains(": bytes are written without a unit"), "{error}");
}

#[test]
fn a_file_that_is_called_otherwise_than_its_profile_is_told_of() {
    let mut catalogue = Catalogue::embedded().expect("sound");
    catalogue.add_profile("p/nm2.toml", "name = \"other\"\nsummary = \"s\"\n").expect("well formed");
    let cure = catalogue.profile("nm2").expect_err("no such name").cure();
    assert!(cure.starts_with("p/nm2.toml is there, and the profile in it is called other"), "{cure}");
    let child = "name = \"child\"\nsummary = \"s\"\ninherits = [\"mine\"]\n";
    let cure = catalogue.parse_profile("./p/child.toml", child).expect_err("no parent").cure();
    assert!(cure.contains("a parent of yours lies in the folder of your profiles"), "{cure}");
    let cure = catalogue.knob_or_writer("foo").expect_err("neither").cure();
    assert!(cure.contains("planish knobs") && cure.contains("irqbalance"), "{cure}");
}
