//! Units of systemd, below a root of the test's own.

use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::server::{PROGRAM, Server};

const PLACE: &str = "/usr/local/bin/planish-series";

/// Runs a command with a root; code and what it tells.
fn run(root: &Path, words: &[&str]) -> (i32, String) {
    let mut command = Command::new(PROGRAM);
    command.arg(words[0]).arg("--root").arg(root).args(&words[1..]);
    let output = command.output().unwrap();
    (output.status.code().unwrap(), String::from_utf8_lossy(&output.stderr).into_owned())
}

fn unit(root: &Path, name: &str) -> PathBuf {
    root.join(format!("etc/systemd/system/{name}.service"))
}

fn link(root: &Path, name: &str) -> PathBuf {
    root.join(format!("etc/systemd/system/multi-user.target.wants/{name}.service"))
}

/// All files below a folder.
fn files(root: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(root) else { return Vec::new() };
    let of = |path: PathBuf| if path.is_dir() && !path.is_symlink() { files(&path) } else { vec![path] };
    entries.flat_map(|entry| of(entry.unwrap().path())).collect()
}

#[test]
fn a_unit_is_written_once_written_anew_where_it_changes_and_taken_out() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let of = |threads: &'static str| {
        let serve = ["--", "--data", "/var/lib/planish-series", "--threads", threads];
        [&["install", "--program", PLACE][..], &serve].concat()
    };
    let (code, told) = run(root, &of("2"));
    assert_eq!(code, 0, "{told}");
    assert!(
        told.ends_with("now type: systemctl daemon-reload && systemctl start planish-series\n"),
        "{told}"
    );
    let path = unit(root, "planish-series");
    let text = std::fs::read_to_string(&path).unwrap();
    insta::assert_snapshot!("unit", text);
    let target = std::fs::read_link(link(root, "planish-series")).unwrap();
    assert_eq!(target, Path::new("/etc/systemd/system/planish-series.service"));
    assert_eq!(files(root).len(), 2);
    let written = |path: &Path| std::os::unix::fs::MetadataExt::ino(&std::fs::metadata(path).unwrap());
    let before = written(&path);
    let (code, told) = run(root, &of("2"));
    assert!(code == 0 && told.ends_with("planish-series.service: as it was\n"), "{told}");
    assert_eq!(written(&path), before);
    // A link that is gone is made again.
    std::fs::remove_file(link(root, "planish-series")).unwrap();
    assert_eq!(run(root, &of("2")).0, 0);
    assert!(link(root, "planish-series").is_symlink());
    let (code, told) = run(root, &of("4"));
    assert!(code == 0 && told.ends_with("systemctl restart planish-series\n"), "{told}");
    assert_eq!(
        std::fs::read_to_string(&path).unwrap().lines().filter(|line| line.ends_with("--threads 4")).count(),
        1
    );
    let (code, told) = run(root, &["uninstall"]);
    assert!(code == 0 && told.contains("the tables are where they were"), "{told}");
    assert_eq!(files(root), Vec::<PathBuf>::new());
    let (code, told) = run(root, &["uninstall"]);
    assert!(code == 0 && told.ends_with("planish-series.service: not there\n"), "{told}");
}

#[test]
fn a_unit_of_others_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let install = ["install", "--program", PLACE, "--", "--data", "/var/lib/planish-series"];
    assert_eq!(run(root, &install).0, 0);
    let path = unit(root, "planish-series");
    let ours = std::fs::read_to_string(&path).unwrap();
    for text in
        [format!("{ours}# a word of the administrator\n"), "[Service]\nExecStart=/bin/true\n".to_owned()]
    {
        std::fs::write(&path, &text).unwrap();
        for words in [&install[..], &["uninstall"]] {
            let (code, told) = run(root, words);
            assert!(code == 3 && told.contains("it is left alone"), "{told}");
        }
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        assert!(link(root, "planish-series").is_symlink());
    }
}

#[test]
fn each_node_has_a_unit_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    for node in ["0", "1"] {
        let (data, port) = (format!("/var/lib/planish/node{node}"), format!("127.0.0.1:812{node}"));
        let serve = ["--", "--data", &data, "--listen", &port, "--node-id", node];
        let (code, told) = run(root, &[&["install", "--program", PLACE][..], &serve].concat());
        assert_eq!(code, 0, "{told}");
        let text = std::fs::read_to_string(unit(root, &format!("planish-series-node{node}"))).unwrap();
        assert!(text.contains(&format!("\nStateDirectory=planish/node{node}\n")), "{text}");
    }
    assert_eq!(run(root, &["uninstall", "--node-id", "0"]).0, 0);
    assert!(!unit(root, "planish-series-node0").exists() && unit(root, "planish-series-node1").exists());
    assert_eq!(run(root, &["uninstall", "--name", "planish-series-node1"]).0, 0);
    assert_eq!(files(root), Vec::<PathBuf>::new());
}

#[test]
fn a_unit_reads_the_files_of_its_queries_and_writes_none_of_them() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    for (files, wanted) in [
        ("/srv/lists", &["ReadOnlyPaths=/srv/lists"][..]),
        ("/srv/a b", &["ReadOnlyPaths=\"/srv/a b\""]),
        // Its tables stay its own to write.
        ("/srv/tables", &[]),
        ("/srv/tables/lists", &[]),
    ] {
        let serve = ["--", "--data", "/srv/tables", "--files", files];
        let words = [&["install", "--user", "series", "--program", PLACE][..], &serve].concat();
        let (code, told) = run(root, &words);
        assert_eq!(code, 0, "{told}");
        let text = std::fs::read_to_string(unit(root, "planish-series")).unwrap();
        let found: Vec<_> = text.lines().filter(|line| line.starts_with("ReadOnlyPaths=")).collect();
        assert_eq!(found, wanted, "{text}");
        assert!(text.contains("\nReadWritePaths=/srv/tables\n"), "{text}");
        let start = text.lines().find(|line| line.starts_with("ExecStart=")).unwrap();
        assert!(start.contains(" --files ") && start.contains(files), "{start}");
    }
}

#[test]
fn what_could_not_serve_is_not_installed() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let data = ["--data", "/var/lib/planish-series"];
    for (before, serve, code, told) in [
        (&[][..], &["--data", "tables"][..], 2, "tables: say the whole path"),
        (&[], &["--data", "/srv/tables"], 2, "say --user"),
        (&[], &["--data", "/var/lib/x", "--role", "query"], 2, "say --user"),
        (&[], &["--data", "/var/lib/x", "--files", "lists"], 2, "lists: say the whole path"),
        (&[], &["--data", "/var/lib/x", "--files", "/home/lists"], 2, "a service sees no homes"),
        (&["--user", "series"], &["--data", "/home/series"], 2, "a service sees no homes"),
        (&["--user", "root"], &data, 2, "no right of root's"),
        (&[], &["--data", "/var/lib/x", "--threads", "none"], 2, "--threads"),
        (&[], &["--data", "/var/lib/x", "--listen", "0.0.0.0:8123"], 3, "is not loopback"),
        (&["--name", "../x"], &data, 2, "--name"),
        (&["--program", "planish-series"], &data, 2, "the whole path of the program"),
    ] {
        // By itself it is where it was built, which may be a folder that services do not see.
        let program = if before.contains(&"--program") { &[][..] } else { &["--program", PLACE] };
        let words = [&["install"], program, before, &["--"], serve].concat();
        let (found, stderr) = run(root, &words);
        assert!(found == code && stderr.contains(told), "{words:?}: {found} {stderr}");
    }
    assert_eq!(files(root), Vec::<PathBuf>::new());
}

#[test]
fn systemd_finds_no_fault_with_the_units() {
    let test = "install::systemd_finds_no_fault_with_the_units";
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let analyze = |words: &[&str], path: &Path| {
        Command::new("systemd-analyze").args(words).arg(path).env("SYSTEMD_LOG_LEVEL", "warning").output()
    };
    for (name, user, serve) in [
        ("plain", None, vec!["--data", "/var/lib/planish-series"]),
        (
            "copies",
            None,
            vec![
                "--data",
                "/var/lib/a",
                "--listen",
                "0.0.0.0:8123",
                "--tokens",
                "/etc/a b%",
                "--tls-cert=/c",
                "--tls-key=/k",
            ],
        ),
        (
            "user",
            Some("nobody"),
            vec![
                "--data",
                "/srv/a \"b\" $c",
                "--tls-cert",
                "/c",
                "--tls-key",
                "/k",
                "--pages",
                "2m",
                "--files",
                "/srv/a b",
            ],
        ),
    ] {
        let of_user = user.map(|user| vec!["--user", user]).unwrap_or_default();
        let words =
            [&["install", "--program", PROGRAM, "--name", name][..], &of_user, &["--"], &serve].concat();
        let (code, told) = run(root, &words);
        assert_eq!(code, 0, "{told}");
        let path = unit(root, name);
        let Ok(verified) = analyze(&["verify"], &path) else {
            return planish_skip::skip(test, "no systemd-analyze");
        };
        let stderr = String::from_utf8_lossy(&verified.stderr);
        assert!(verified.status.success() && stderr.is_empty(), "{name}: {stderr}");
        // The exposure that systemd sees, of 100.
        let judged = analyze(&["security", "--offline=true", "--threshold=20"], &path).unwrap();
        assert!(judged.status.success(), "{name}: {}", String::from_utf8_lossy(&judged.stdout));
    }
}

#[test]
fn systemd_is_told_when_it_is_there_and_when_it_ends() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(std::time::Duration::from_secs(60))).unwrap();
    let said = || {
        let mut bytes = [0; 64];
        let count = socket.recv(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes[..count]).into_owned()
    };
    let server = Server::start_in(&folder.path().join("data"), &[], &[("NOTIFY_SOCKET", &path)]);
    assert_eq!(said(), "READY=1");
    assert_eq!(server.get("/ping").ok(), "Ok.\n");
    let (status, told) = server.terminate();
    assert_eq!((status.code(), told.as_str()), (Some(0), ""));
    assert_eq!(said(), "STOPPING=1");
}
