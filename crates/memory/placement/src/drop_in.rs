//! The same start as a drop-in of systemd, for those who will not keep a launcher in their unit.
//!
//! Source: systemd.exec(5), systemd.unit(5).

use std::fmt::Write as _;
use std::path::Path;

use planish_sys::{NodeSet, Policy};

use crate::launch::Launch;
use crate::wish::Spread;

/// The text of the drop-in.
pub(crate) fn text(launch: &Launch) -> String {
    let mut text =
        "# /etc/systemd/system/UNIT.service.d/planish.conf; then: systemctl daemon-reload\n[Service]\n"
            .to_owned();
    let mut line = |line: String| {
        let _ = writeln!(text, "{line}");
    };
    let setup = &launch.setup;
    // What a launcher alone gives, and why.
    let mut rest: Vec<(&str, String)> = Vec::new();
    if let Some(cpus) = &setup.cpus {
        line(format!("CPUAffinity={}", cpus.to_string().replace(',', " ")));
    }
    match &setup.policy {
        Some(Policy::WeightedInterleave(_)) => {
            rest.push(("NUMAPolicy= has no weighted interleave", heap_of(launch)));
        }
        // numa_policy_is_valid of systemd takes no more.
        Some(Policy::PreferredMany(nodes)) if nodes.count() > 1 => {
            rest.push(("NUMAPolicy=preferred has one node", heap_of(launch)));
        }
        Some(policy) => {
            line(format!("NUMAPolicy={}", policy.word()));
            if let Some(nodes) = policy.nodes() {
                line(format!("NUMAMask={}", nodes.to_string().replace(',', " ")));
            }
        }
        // What a start has by itself a unit may have otherwise by another drop-in.
        None if launch.wish.heap == Some(Spread::Local) => line("NUMAPolicy=local".to_owned()),
        None => {}
    }
    if let Some(bytes) = setup.memlock_bytes {
        line(format!(
            "LimitMEMLOCK={}",
            if bytes == u64::MAX { "infinity".to_owned() } else { bytes.to_string() }
        ));
    }
    for (name, value) in &launch.variables {
        let value = value.to_string_lossy();
        // Nobody listens to the preload of a unit, and the control group with its limit is that of this start.
        const OF_START: [&str; 3] = ["answer=", "limit=", "group="];
        let is_of_unit = |item: &&str| !OF_START.iter().any(|begin| item.starts_with(begin));
        let value = value.split(':').filter(is_of_unit).collect::<Vec<_>>().join(":");
        if *name == "LD_PRELOAD" {
            value.split([':', ' ']).filter_map(of_others).for_each(&mut line);
        }
        line(format!("Environment=\"{name}={}\"", quoted(&value)));
    }
    if setup.without_thp {
        line("MemoryTHP=disable".to_owned());
        rest.push(("MemoryTHP= is of systemd 260 and newer", "--thp never".to_owned()));
    }
    if let Some(route) = launch.wish.text {
        rest.push(("for code on huge pages there is no directive", format!("--huge {}", route.word())));
    }
    rest.iter().for_each(|(why, _)| line(format!("# {why}")));
    if !rest.is_empty() {
        let options: Vec<&str> = rest.iter().map(|(_, option)| option.as_str()).collect();
        line(format!("# so: ExecStart= alone, then ExecStart=planish run {} -- ...", options.join(" ")));
    }
    text
}

/// What is to stand between quotes, as systemd.syntax(7) and systemd.unit(5) want it: a character that ends the line
/// would begin another setting.
fn quoted(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    for character in value.chars() {
        match character {
            '\\' => text.push_str("\\\\"),
            '"' => text.push_str("\\\""),
            '%' => text.push_str("%%"),
            '\n' => text.push_str("\\n"),
            '\t' => text.push_str("\\t"),
            control if control.is_ascii_control() => {
                let _ = write!(text, "\\x{:02x}", u32::from(control));
            }
            other => text.push(other),
        }
    }
    text
}

/// A remark on a library that a unit loads: what an ordinary user may replace is code of a service of root's then.
fn of_others(library: &str) -> Option<String> {
    // One without a folder is looked for where the loader looks.
    let path = Some(Path::new(library)).filter(|path| path.is_absolute())?;
    let (who, place) = planish_sys::file::who_may_replace(path, &[0], &[0])?;
    let text = format!(
        "# {who} may replace what is loaded into this service, by {}: for a service of another user copy it to a \
         folder of root's, which ProtectHome= does not hide either",
        place.display()
    );
    Some(text.chars().map(|character| if character.is_control() { '?' } else { character }).collect())
}

/// The option that has its heap lie as it is wanted.
fn heap_of(launch: &Launch) -> String {
    let nodes = |nodes: &Option<NodeSet>| nodes.as_ref().map_or(String::new(), |nodes| format!(":{nodes}"));
    match &launch.wish.heap {
        Some(Spread::Weighted(set)) => format!("--numa heap=weighted{}", nodes(set)),
        Some(Spread::Prefer(set)) => format!("--numa heap=prefer:{set}"),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use planish_sys::CpuSet;
    use planish_sys::child::ChildSetup;

    use super::*;
    use crate::program::Program;
    use crate::wish::{Wish, parse_huge, parse_numa};

    /// A start of a program that needs nothing.
    fn launch(variables: Vec<(&'static str, OsString)>, setup: ChildSetup, wish: Wish) -> Launch {
        Launch {
            program: Program {
                path: "/bin/true".into(),
                loaded: "/bin/true".into(),
                libc: None,
                secure: None,
                is_native: true,
                malloc: None,
                sanitizer: None,
                is_text: false,
            },
            variables,
            setup,
            notes: Vec::new(),
            wish,
        }
    }

    #[test]
    fn a_unit_gets_what_a_start_gets() {
        let variables = vec![
            (
                "PLANISH_SHM",
                "bytes=1:mode=3:limit=99:group=9+/sys/fs/cgroup/ssh/memory.current:answer=planish-run-7"
                    .into(),
            ),
            ("LD_PRELOAD", "/x/planish-preload.so:/y/lib%2.so".into()),
        ];
        let setup = ChildSetup {
            cpus: Some(CpuSet::parse_list("0-1,4").unwrap()),
            policy: Some(Policy::Bind(NodeSet::parse_list("0,2").unwrap())),
            memlock_bytes: Some(u64::MAX),
            without_thp: true,
            ..ChildSetup::default()
        };
        let launch = launch(variables, setup, Wish::default());
        let expected = "\
[Service]
CPUAffinity=0-1 4
NUMAPolicy=bind
NUMAMask=0 2
LimitMEMLOCK=infinity
Environment=\"PLANISH_SHM=bytes=1:mode=3\"
Environment=\"LD_PRELOAD=/x/planish-preload.so:/y/lib%%2.so\"
MemoryTHP=disable
# MemoryTHP= is of systemd 260 and newer
# so: ExecStart= alone, then ExecStart=planish run --thp never -- ...
";
        let text = text(&launch);
        assert_eq!(text.split_once('\n').unwrap().1, expected);
    }

    /// The rest of such a value was a setting of its own: ExecStartPre= as root.
    #[test]
    fn a_line_break_in_a_variable_begins_no_setting() {
        let value = "a=0\nExecStartPre=/bin/evil\t\u{1}\u{7f}\"\\%";
        let variables = vec![("GLIBC_TUNABLES", value.into())];
        let text = text(&launch(variables, ChildSetup::default(), Wish::default()));
        let expected = r#"Environment="GLIBC_TUNABLES=a=0\nExecStartPre=/bin/evil\t\x01\x7f\"\\%%""#;
        assert_eq!(text.lines().nth(2), Some(expected), "{text}");
        assert_eq!(text.lines().count(), 3, "{text}");
    }

    #[test]
    fn a_library_that_an_ordinary_user_may_replace_is_remarked() {
        let folder = tempfile::tempdir().unwrap();
        let library = folder.path().join("preload.so");
        std::fs::File::create(&library).unwrap();
        let of = || {
            let list = format!("/lib/hook.so:{}", library.display());
            let variables = vec![("LD_PRELOAD", list.into())];
            text(&launch(variables, ChildSetup::default(), Wish::default()))
        };
        if rustix::process::geteuid().is_root() {
            assert!(!of().contains("may replace"), "{}", of());
            std::os::unix::fs::chown(&library, Some(65534), None).unwrap();
        }
        let owner = std::os::unix::fs::MetadataExt::uid(&library.metadata().unwrap());
        assert_eq!(of().matches(&format!("# user {owner} may replace")).count(), 1, "{}", of());
    }

    #[test]
    fn what_a_unit_cannot_have_is_said() {
        let of = |numa: &str, huge: &str| {
            let mut wish = Wish::default();
            parse_numa(numa, &mut wish).unwrap();
            parse_huge(huge, &mut wish).unwrap();
            let text = text(&launch(Vec::new(), ChildSetup::default(), wish));
            text.split_once("[Service]\n").unwrap().1.to_owned()
        };
        let code = "# for code on huge pages there is no directive\n\
                    # so: ExecStart= alone, then ExecStart=planish run --huge text";
        assert_eq!(of("shm=local", "text"), format!("{code} -- ...\n"));
        assert_eq!(of("heap=local", "text=warm"), format!("NUMAPolicy=local\n{code}=warm -- ...\n"));
    }

    /// systemd refuses a unit that prefers several nodes, and starts nothing.
    #[test]
    fn several_nodes_are_preferred_by_a_launcher_alone() {
        let of = |nodes: &str| {
            let nodes = NodeSet::parse_list(nodes).unwrap();
            let wish = Wish { heap: Some(Spread::Prefer(nodes.clone())), ..Wish::default() };
            let policy = Some(wish.heap.as_ref().unwrap().policy(&nodes));
            text(&launch(Vec::new(), ChildSetup { policy, ..ChildSetup::default() }, wish))
        };
        assert!(of("1").ends_with("NUMAPolicy=preferred\nNUMAMask=1\n"));
        let several = of("0-1");
        assert!(
            !several.contains("NUMAMask") && several.contains("planish run --numa heap=prefer:0-1 -- ...")
        );
    }
}
