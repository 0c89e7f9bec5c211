//! The program against real servers on loopback: by its contract, and started by `planish` itself.

#![expect(clippy::disallowed_methods, reason = "files of these tests")]

mod server;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use planish_store::Digest;
use planish_store::contract::{CHANGED, DONE, FAILED, MISSING, USAGE};

use server::{BUCKET, KEY, SECRET};

/// An environment with keys for a server, and nothing of this machine's.
fn with_keys(command: &mut Command, port: u16, secret: &str) {
    command
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("AWS_ACCESS_KEY_ID", KEY)
        .env("AWS_SECRET_ACCESS_KEY", secret);
    command.env("AWS_ENDPOINT_URL", format!("http://127.0.0.1:{port}")).env("AWS_ALLOW_HTTP", "true");
    command.env("AWS_REGION", "us-east-1").env("AWS_TIMEOUT", "5s").env("AWS_CONNECT_TIMEOUT", "2s");
}

fn store<const N: usize>(port: u16, secret: &str, words: [&str; N], input: &[u8]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_planish-store-s3"));
    with_keys(&mut command, port, secret);
    ended(command.args(words), input)
}

fn ended(command: &mut Command, input: &[u8]) -> Output {
    let streams = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = streams.spawn().expect("it starts");
    // One that fails before it reads has closed it.
    let _ = child.stdin.take().expect("a pipe").write_all(input);
    child.wait_with_output().expect("it ends")
}

fn assert_ended(output: &Output, code: u8, told: &str) {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code.into()), "{stderr}");
    assert!(stderr.contains(told), "{stderr}");
}

#[test]
fn an_object_of_s3_is_put_and_got() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let Some(server) = server::s3("an_object_of_s3_is_put_and_got", folder.path()) else { return };
    let port = server.port;
    let url = format!("s3://{BUCKET}/team/sha256/ab/abc");
    let long: Vec<u8> = (0..3_000_000_u32).flat_map(u32::to_le_bytes).collect();
    for bytes in [&b"profile"[..], b"", &long] {
        assert_ended(&store(port, SECRET, ["put", &url], bytes), DONE, "");
        let got = store(port, SECRET, ["get", &url], b"");
        assert_ended(&got, DONE, "");
        assert!(got.stdout == bytes, "{} bytes", bytes.len());
    }
    assert_eq!(fs::read(folder.path().join(BUCKET).join("team/sha256/ab/abc")).expect("a file"), long);
    let missing = format!("s3://{BUCKET}/team/none");
    assert_ended(&store(port, SECRET, ["get", &missing], b""), MISSING, "no such object");
    assert_ended(&store(port, "another-secret", ["get", &url], b""), FAILED, "does not allow it");
    assert_ended(&store(port, "another-secret", ["put", &url], b"x"), FAILED, "does not allow it");
    assert_ended(&store(port, SECRET, ["get", "s3://nosuchbucket/x"], b""), MISSING, "no such object");
    // All that is below a URL, by the names behind it, and nothing beside it.
    let put = |path: &str| store(port, SECRET, ["put", &format!("s3://{BUCKET}/{path}")], b"x");
    ["team/sha256/cd/x y", "team/sha2567/no", "other/sha256/no"]
        .iter()
        .for_each(|path| assert_ended(&put(path), DONE, ""));
    let below = format!("s3://{BUCKET}/team/sha256");
    let listed = || {
        let told = store(port, SECRET, ["list", &below], b"");
        assert_ended(&told, DONE, "");
        let text = String::from_utf8(told.stdout).expect("text");
        let now = std::time::UNIX_EPOCH.elapsed().expect("after 1970").as_secs();
        let line = |line: &str| {
            let words: Vec<&str> = line.splitn(3, ' ').collect();
            let age = now.abs_diff(words[1].parse().expect("seconds"));
            assert!(age < 600, "{line}");
            (words[0].parse::<usize>().expect("bytes"), words[2].to_owned())
        };
        let mut lines: Vec<_> = text.lines().map(line).collect();
        lines.sort();
        lines
    };
    assert_eq!(listed(), [(1, "cd/x y".to_owned()), (long.len(), "ab/abc".to_owned())]);
    assert_ended(&store(port, "another-secret", ["list", &below], b""), FAILED, "does not allow it");
}

/// When the object was last put, by the list of what lies beside it.
fn put_at(port: u16, folder: &str, name: &str) -> u64 {
    let listed = store(port, SECRET, ["list", folder], b"");
    assert_ended(&listed, DONE, "");
    let text = String::from_utf8(listed.stdout).expect("text");
    let line = text.lines().find(|line| line.ends_with(&format!(" {name}"))).expect("it is listed");
    line.split(' ').nth(1).expect("seconds").parse().expect("seconds")
}

#[test]
fn an_object_of_s3_goes_unless_it_was_put_anew_since_it_was_listed() {
    const NAME: &str = "an_object_of_s3_goes_unless_it_was_put_anew_since_it_was_listed";
    let folder = tempfile::tempdir().expect("a temporary folder");
    let Some(server) = server::s3(NAME, folder.path()) else { return };
    let port = server.port;
    let below = format!("s3://{BUCKET}/team/sha256");
    let (url, beside) = (format!("{below}/ab/abc"), format!("{below}/ab/abcd"));
    let put = |url: &str| assert_ended(&store(port, SECRET, ["put", url], b"profile"), DONE, "");
    let file = |name: &str| folder.path().join(BUCKET).join("team/sha256/ab").join(name);
    [&url, &beside].into_iter().for_each(|url| put(url));
    let listed = put_at(port, &below, "ab/abc");
    // Another publisher stores the same content: nothing changes but the time, in whole seconds.
    std::thread::sleep(Duration::from_millis(1100));
    put(&url);
    let seen = listed.to_string();
    assert_ended(&store(port, SECRET, ["delete-if", &url, &seen], b""), CHANGED, "put anew");
    assert!(file("abc").exists(), "who has just published it was told that it is there");
    let now = put_at(port, &below, "ab/abc").to_string();
    assert_ne!(now, seen);
    assert_ended(&store(port, "another-secret", ["delete-if", &url, &now], b""), FAILED, "does not allow it");
    assert!(file("abc").exists());
    // Gone is gone, whoever took it away.
    for _ in 0..2 {
        assert_ended(&store(port, SECRET, ["delete-if", &url, &now], b""), DONE, "");
        assert!(!file("abc").exists() && file("abcd").exists());
    }
}

#[test]
fn what_cannot_be_reached_ends_in_time_and_says_so() {
    let url = format!("s3://{BUCKET}/x");
    let (_deaf, port) = server::deaf();
    for port in [server::free_port(), port] {
        let begun = Instant::now();
        assert_ended(&store(port, SECRET, ["get", &url], b""), FAILED, "the store cannot be used");
        assert!(begun.elapsed() < planish_store::contract::PATIENCE, "{:?}", begun.elapsed());
    }
}

#[test]
fn a_wrong_line_is_told_before_anybody_is_asked() {
    for words in [
        ["get", "x"],
        ["get", "s3://bucket"],
        ["get", "s3:///x"],
        ["get", "ftp://h/x"],
        ["move", "s3://b/x"],
        ["list", "https://h/x"],
        // Without the time of the list nothing is taken away.
        ["delete-if", "s3://b/x"],
        ["delete", "s3://b/x"],
    ] {
        let code = store(1, SECRET, words, b"").status.code();
        assert_eq!(code, Some(USAGE.into()), "{words:?}");
    }
    for words in [
        ["delete-if", "http://h/x", "7"],
        ["delete-if", "s3://b/x", "now"],
        ["delete-if", "s3://b/x", ""],
        ["delete", "s3://b/x", "7"],
    ] {
        let code = store(1, SECRET, words, b"").status.code();
        assert_eq!(code, Some(USAGE.into()), "{words:?}");
    }
    // Read only: nobody is asked to change a web server.
    let version =
        Command::new(env!("CARGO_BIN_EXE_planish-store-s3")).arg("--version").output().expect("it starts");
    assert_eq!(version.stdout, format!("planish-store-s3 {}\n", env!("CARGO_PKG_VERSION")).into_bytes());
}

#[test]
fn an_object_is_got_by_https_from_whom_is_trusted() {
    const NAME: &str = "an_object_is_got_by_https_from_whom_is_trusted";
    let folder = tempfile::tempdir().expect("a temporary folder");
    fs::write(folder.path().join("blob"), b"profile").expect("room for a file");
    let Some((certificate, key)) = server::certificate(NAME, folder.path()) else { return };
    let Some(tls) = server::web(NAME, folder.path(), Some((&certificate, &key))) else { return };
    let Some(plain) = server::web(NAME, folder.path(), None) else { return };
    let get = |url: &str, trusted: Option<&Path>| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_planish-store-s3"));
        command.env_clear().envs(trusted.map(|file| ("SSL_CERT_FILE", file)));
        ended(command.args(["get", url]), b"")
    };
    let url = format!("https://127.0.0.1:{}/blob", tls.port);
    let got = get(&url, Some(&certificate));
    assert_ended(&got, DONE, "");
    assert_eq!(got.stdout, b"profile");
    assert_ended(&get(&url, None), FAILED, "certificate");
    assert_ended(&get(&format!("{url}s"), Some(&certificate)), MISSING, "no such object");
    let got = get(&format!("http://127.0.0.1:{}/blob", plain.port), None);
    assert_ended(&got, DONE, "");
    assert_eq!(got.stdout, b"profile");
}

/// `planish` beside this program, as both are installed; `None`, said aloud, where only this package was built.
fn planish(test: &str) -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_BIN_EXE_planish-store-s3")).with_file_name("planish");
    if !beside.is_file() {
        planish_skip::skip(test, "planish is not built beside planish-store-s3");
        return None;
    }
    Some(beside)
}

/// A folder with a call profile in it.
fn home(planish: &Path) -> tempfile::TempDir {
    let home = tempfile::tempdir().expect("a temporary folder");
    fs::write(home.path().join("hot"), "main;parse;scan 9000\nmain;parse 1900\n").expect("room for a file");
    let mut import = Command::new(planish);
    let run = import.args(["text", "import", "hot", "-o", "hot.planish"]).current_dir(home.path()).output();
    assert!(run.is_ok_and(|run| run.status.success()));
    home
}

#[test]
fn planish_publishes_to_s3_and_fetches_from_it_and_from_a_mirror() {
    const NAME: &str = "planish_publishes_to_s3_and_fetches_from_it_and_from_a_mirror";
    let Some(planish) = planish(NAME) else { return };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let Some(server) = server::s3(NAME, folder.path()) else { return };
    let home = home(&planish);
    let run = |line: &str, secret: &str| {
        let mut command = Command::new(&planish);
        with_keys(&mut command, server.port, secret);
        // A home of its own each time: nothing is cached.
        let fresh = tempfile::tempdir().expect("a temporary folder");
        command.env("HOME", fresh.path()).current_dir(home.path());
        ended(command.args(line.split(' ')), b"")
    };
    let publish = format!("text publish hot.planish --store s3://{BUCKET}/team");
    assert_ended(&run(&publish, "another-secret"), 3, "does not allow it");
    assert!(!home.path().join("planish.text.toml").exists());
    assert_ended(&run(&publish, SECRET), 0, "");
    assert_ended(&run("text fetch --order o.txt --strict", SECRET), 0, "");
    let order = fs::read(home.path().join("o.txt")).expect("an order");
    let stored = folder.path().join(BUCKET).join("team").join(Digest::of(&order).handle());
    assert_eq!(fs::read(&stored).expect("a blob"), order);
    // The same bucket by a web server: a read-only mirror.
    if let Some(web) = server::web(NAME, &folder.path().join(BUCKET), None) {
        let mirror = format!("text fetch --order m.txt --strict --store http://127.0.0.1:{}/team", web.port);
        assert_ended(&run(&mirror, "no secret at all"), 0, "");
        assert_eq!(fs::read(home.path().join("m.txt")).expect("an order"), order);
    }
    // What no pin names goes, once somebody says so; what is pinned stays.
    let extra = Digest::of(b"extra").handle();
    assert_ended(
        &store(server.port, SECRET, ["put", &format!("s3://{BUCKET}/team/{extra}")], b"extra"),
        DONE,
        "",
    );
    let there = || folder.path().join(BUCKET).join("team").join(&extra).exists();
    // Times of S3 are whole seconds: what was put in this one is never old.
    std::thread::sleep(Duration::from_millis(2100));
    let prune = "text prune --keep 0 --min-age 0.00001";
    assert_ended(&run(prune, SECRET), 0, "--delete");
    assert_ended(&run(&format!("{prune} --delete"), "another-secret"), 3, "does not allow it");
    assert!(there(), "dry, and refused");
    assert_ended(&run(&format!("{prune} --delete"), SECRET), 0, "");
    assert!(!there() && stored.exists());
    assert_ended(&run("text fetch --order p.txt --strict", SECRET), 0, "");
    // Somebody with the keys puts something else under the name.
    let url = format!("s3://{BUCKET}/team/{}", Digest::of(&order).handle());
    assert_ended(&store(server.port, SECRET, ["put", &url], b"main\n"), DONE, "");
    assert_ended(&run("text fetch --order c.txt", SECRET), 0, "is not what was stored");
    assert!(!home.path().join("c.txt").exists());
}
