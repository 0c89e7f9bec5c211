//! `planish map` of live processes: the answer and its schema, the page, and what is refused with which code.

use std::process::{Child, Command, Stdio};

use crate::planish::{command, run};

/// A process that sleeps until dropped.
struct Sleeper(Child);

impl Sleeper {
    fn start() -> Self {
        let mut command = Command::new("sleep");
        command.arg("60").stdin(Stdio::null()).stdout(Stdio::null());
        Self(command.spawn().expect("sleep is everywhere"))
    }

    fn pid(&self) -> String {
        self.0.id().to_string()
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_live_process_is_mapped_in_text_json_and_html() {
    let sleeper = Sleeper::start();
    let answer = run(["--json", "map", &sleeper.pid()]);
    assert_eq!(answer.exit, 0, "{}", answer.stderr);
    let envelope = answer.envelope();
    let rows = envelope["result"]["rows"].as_array().expect("rows").clone();
    let sum: u64 = rows.iter().map(|row| row["resident_bytes"].as_u64().expect("bytes")).sum();
    assert_eq!(envelope["result"]["totals"]["resident_bytes"], sum);
    assert!(rows.iter().any(|row| row["kind"] == "text" && row["backing"] == "base"), "{rows:?}");
    assert_eq!(envelope["result"]["processes"][0]["name"], "sleep");

    let home = tempfile::tempdir().expect("a temporary folder");
    let output = command(home.path(), ["map", &sleeper.pid(), "--html", "map.html"]).output();
    assert!(output.expect("the binary starts").status.success());
    let page = std::fs::read_to_string(home.path().join("map.html")).expect("it was written");
    assert!(page.contains("<svg class=\"lane\"") && page.contains("sleep"), "{page}");
    assert!(run(["map", &sleeper.pid()]).stderr.contains("next: planish"), "what to type next");
}

#[test]
fn who_is_left_alone_and_who_is_not_there_have_their_codes() {
    assert_eq!(run(["map", "1"]).exit, 3);
    // Digits are a PID, and none is so high.
    assert_eq!(run(["map", "4194999"]).exit, 2);
    let nobody = run(["--json", "map", "nosuchservice"]);
    assert_eq!(nobody.exit, 2);
    assert_eq!(nobody.envelope()["messages"][0]["text"], "no process `nosuchservice`");
    // Ourselves: the test started the command.
    let above = run(["map", &std::process::id().to_string()]);
    assert_eq!(above.exit, 3, "{}", above.stderr);
}
