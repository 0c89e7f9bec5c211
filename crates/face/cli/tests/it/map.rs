//! `planish map` of live processes: the answer and its schema, the page, and what is refused with which code.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use planish_skip::postgres::Postgres;

use crate::planish::{Run, Sleeper, command, command_of, copy_program, for_anybody, run};

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
    // Over another page, and over nothing else.
    let again = command(home.path(), ["map", &sleeper.pid(), "--html", "map.html"]).output();
    assert!(again.expect("it starts").status.success());
    let source = home.path().join("notes.c");
    std::fs::write(&source, "int main;").expect("there is room");
    let refused = command(home.path(), ["map", &sleeper.pid(), "--html", "notes.c"]).output();
    let refused = Run::from(refused.expect("it starts"));
    assert_eq!(refused.exit, 2, "{}", refused.stderr);
    assert!(refused.stderr.contains("notes.c is there and is no page of HTML"), "{}", refused.stderr);
    assert_eq!(std::fs::read_to_string(&source).expect("it is there"), "int main;");
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

/// A shell of nobody's, and below it a program that nobody may run and not read: its memory is root's to see. Both end
/// when the shell has nothing more to read.
struct Family(Child);

impl Family {
    /// Starts them; the PID of the child, too.
    fn start(hidden: &Path) -> (Self, u32) {
        let mut shell = Command::new("sh");
        shell.args(["-c", "\"$0\" 600 & echo $!; read line; kill $!"]).arg(hidden).uid(65534).gid(65534);
        let mut shell = shell.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("sh is everywhere");
        let mut lines = BufReader::new(shell.stdout.take().expect("piped")).lines();
        let child = lines.next().and_then(Result::ok).and_then(|line| line.parse().ok()).expect("a number");
        let family = Self(shell);
        let begun = Instant::now();
        // It is the shell's own copy before it is a program.
        while std::fs::read_to_string(format!("/proc/{child}/comm")).expect("it lives") != "hidden\n" {
            assert!(begun.elapsed() < Duration::from_secs(60), "it never starts");
            std::thread::sleep(Duration::from_millis(5));
        }
        (family, child)
    }
}

impl Drop for Family {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

#[test]
fn a_tree_with_a_process_that_may_not_be_seen_shows_the_others() {
    const NAME: &str = "a_tree_with_a_process_that_may_not_be_seen_shows_the_others";
    if !rustix::process::geteuid().is_root() {
        return planish_skip::skip(NAME, "only root can run a command as another user");
    }
    let open = tempfile::tempdir().expect("a temporary folder");
    let (planish, hidden) = (for_anybody(open.path()), open.path().join("hidden"));
    let sleep = ["/usr/bin/sleep", "/bin/sleep"].map(Path::new).into_iter().find(|path| path.exists());
    copy_program(sleep.expect("sleep is everywhere"), &hidden);
    std::fs::set_permissions(&hidden, std::fs::Permissions::from_mode(0o711)).expect("ours");
    let (family, child) = Family::start(&hidden);
    let parent = family.0.id();
    let nobody = |words: &[&str]| {
        let mut command = command_of(&planish, Path::new("/"), words);
        command.env("HOME", "/nonexistent").uid(65534).gid(65534);
        Run::from(command.output().expect("the binary starts"))
    };
    let told = nobody(&["--json", "map", &parent.to_string(), "--tree"]);
    assert_eq!(told.exit, 0, "{}{}", told.stdout, told.stderr);
    let envelope = told.envelope();
    let (result, messages) = (&envelope["result"], envelope["messages"].as_array().expect("a list"));
    let warning = messages.iter().find(|message| message["level"] == "warning").expect("it is said");
    let warning = warning["text"].as_str().expect("text");
    let begin = format!("the memory of 1 of 2 processes may not be seen, and is in no sum: {child};");
    assert!(warning.starts_with(&begin), "{warning}");
    assert_eq!(result["denied"], serde_json::json!([child]));
    assert_eq!(result["processes"].as_array().map(Vec::len), Some(1), "{}", result["processes"]);
    assert_eq!(result["processes"][0]["pid"], parent);
    let own = bytes(&result["processes"][0]["private"]);
    assert!(own > 0 && result["totals"]["estimated"].to_string().contains("\"resident_bytes\""), "{result}");
    let unseen = result["unseen"].as_array().expect("a list");
    let begin = format!("the memory of process {child} (hidden), which is in no sum: ");
    let unseen = unseen.iter().find(|it| it["what"].as_str().expect("text").starts_with(&begin));
    let unseen = unseen.unwrap_or_else(|| panic!("{}", result["unseen"]));
    assert!(unseen["cure"].as_str().expect("text").contains("CAP_SYS_PTRACE"), "{unseen}");
    // The other one is seen as well as by itself: page by page.
    let alone = nobody(&["--json", "map", &parent.to_string()]).envelope();
    assert_eq!(result["processes"][0]["seen_by"], alone["result"]["processes"][0]["seen_by"]);

    // None of them: its own facts are told, be it a name or a number that was given.
    let refused = nobody(&["map", &child.to_string(), "--tree"]);
    assert_eq!(refused.exit, 3, "{}", refused.stdout);
    assert!(refused.stderr.contains("what any user may know of hidden: "), "{}", refused.stderr);
}

/// What commands say where /proc is missing, and where it has processes alone.
#[test]
fn without_proc_or_its_files_the_mount_is_named() {
    const NAME: &str = "without_proc_or_its_files_the_mount_is_named";
    const SCRIPT: &str = r#"
        mount -t tmpfs none /proc || exit 77
        "$PLANISH" map 5; echo "map left with $?"
        "$PLANISH" map sleep; echo "map left with $?"
        "$PLANISH" top --once --interval 0.1 --json | grep -o '/proc is not mounted' | head -n 1
        umount /proc && mount -t proc -o subset=pid none /proc || exit 77
        sleep 60 & "$PLANISH" map $! | grep -o 'subset=pid' | sort -u; kill $!
    "#;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let Some(output) = crate::apart::run(NAME, &["-m"], SCRIPT, &[], folder.path()) else { return };
    let talk = String::from_utf8_lossy(&output.stderr);
    let told = "map left with 3\nmap left with 3\n/proc is not mounted\nsubset=pid\n";
    assert_eq!(String::from_utf8_lossy(&output.stdout), told, "{talk}");
    assert!(talk.contains("/proc is not mounted") && talk.contains("mount -t proc proc /proc"), "{talk}");
}

/// Without /sys nobody tells how large a transparent huge page is: what lies on such is told all the same.
#[test]
fn huge_pages_are_told_where_sys_is_not_mounted() {
    const NAME: &str = "huge_pages_are_told_where_sys_is_not_mounted";
    const SCRIPT: &str = r#"
        "$PLANISH" workload series --pages thp --bytes 64M --seconds 20 > /dev/null & SERVED=$!
        for turn in 1 2 3 4 5 6 7 8 9 10; do
            sleep 0.3; grep -q 'AnonHugePages: *[1-9][0-9][0-9][0-9]' /proc/$SERVED/smaps && break
        done
        mount -t tmpfs none /sys || exit 77
        "$PLANISH" --json map $SERVED; code=$?
        kill $SERVED; exit $code
    "#;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let Some(output) = crate::apart::run(NAME, &["-m"], SCRIPT, &[], folder.path()) else { return };
    let talk = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{talk}");
    let envelope: serde_json::Value = serde_json::from_slice(&output.stdout).expect("an object");
    let rows = envelope["result"]["rows"].as_array().expect("rows");
    let huge = rows.iter().find(|row| row["backing"] == "thp");
    let Some(huge) = huge else { return planish_skip::skip(NAME, "no transparent huge pages were had") };
    assert!(huge["page_bytes"].as_u64().is_some_and(|bytes| bytes >= 2 << 20), "{huge}");
}

/// In a namespace of processes of its own: an older kernel has one /proc for each, and would hide them for all.
#[test]
fn a_process_that_hidepid_hides_is_not_told_as_none() {
    const NAME: &str = "a_process_that_hidepid_hides_is_not_told_as_none";
    const SCRIPT: &str = r#"
        command -v setpriv > /dev/null || exit 77
        sleep 60 & pid=$!
        mount -t proc -o hidepid=2 none /proc || exit 77
        as_nobody() { setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; }
        as_nobody "$1" map $pid; echo "map left with $?"
        as_nobody "$1" map sleep; echo "map left with $?"
        as_nobody "$1" --json top --once --interval 0.1 | grep -o 'mounted with hidepid'
        "$1" map $pid | grep -c '^process'; kill $pid
    "#;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let program = for_anybody(folder.path());
    let options = ["--mount", "--pid", "--fork"];
    let program = [program.as_os_str()];
    let Some(output) = crate::apart::run(NAME, &options, SCRIPT, &program, folder.path()) else { return };
    let talk = String::from_utf8_lossy(&output.stderr);
    let told = "map left with 3\nmap left with 3\nmounted with hidepid\n1\n";
    assert_eq!(String::from_utf8_lossy(&output.stdout), told, "{talk}");
    let hides = "is seen: /proc is mounted with hidepid, which hides those of other users";
    assert_eq!(talk.matches(hides).count(), 2, "{talk}");
    assert!(talk.contains("CAP_SYS_PTRACE") && !talk.contains("ps -e lists them"), "{talk}");
}

/// Bytes of a list of parts, on one node or on all.
fn bytes(parts: &serde_json::Value) -> u64 {
    let parts = parts.as_array().expect("parts").iter();
    parts.map(|part| part["resident_bytes"].as_u64().expect("bytes")).sum()
}

/// In a network of its own, where nobody else comes to that address.
#[test]
fn a_server_at_an_address_of_this_machine_is_on_this_machine() {
    const NAME: &str = "a_server_at_an_address_of_this_machine_is_on_this_machine";
    const SCRIPT: &str = r#"
        pg=$(ls -d /usr/lib/postgresql/*/bin 2> /dev/null | tail -n 1)
        [ -x "$pg/initdb" ] && command -v setpriv > /dev/null && command -v ip > /dev/null || exit 77
        ip link set lo up && ip addr add 192.0.2.77/32 dev lo || exit 77
        chmod 711 . && mkdir data && chown 65534:65534 data && chmod 700 data || exit 77
        as_nobody() { setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; }
        as_nobody "$pg/initdb" -D "$PWD/data" -U postgres -A trust --no-sync > said 2>&1 || exit 77
        echo 'host all all 192.0.2.77/32 trust' >> data/pg_hba.conf
        as_nobody "$pg/postgres" -D "$PWD/data" -k "$PWD/data" -c listen_addresses=192.0.2.77 -c fsync=off \
            -c shared_buffers=16MB > said 2>&1 & server=$!
        turns=0; until "$pg/pg_isready" -q -h 192.0.2.77; do
            turns=$((turns + 1)); [ $turns -gt 300 ] && { cat said >&2; exit 1; }; sleep 0.1
        done
        "$PLANISH" map --postgres 'host=192.0.2.77 user=postgres dbname=postgres' | grep -c '^Shared memory of Postgre'
        kill -INT "$(head -n 1 data/postmaster.pid)"; wait $server
    "#;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let Some(output) = crate::apart::run(NAME, &["--net"], SCRIPT, &[], folder.path()) else { return };
    let talk = String::from_utf8_lossy(&output.stderr);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "1\n", "{talk}");
}

/// A real server with buffers of this size; `None` where there can be none, aloud.
fn server(test: &str, buffers: &str) -> Option<Postgres> {
    let buffers = format!("shared_buffers={buffers}");
    match Postgres::start(&[&buffers, "huge_pages=off", "max_connections=10"]) {
        Ok(server) => Some(server),
        Err(reason) => {
            planish_skip::skip(test, reason);
            None
        }
    }
}

#[test]
fn a_real_postgres_is_told_from_outside() {
    let test = "a_real_postgres_is_told_from_outside";
    let Some(server) = server(test, "64MB") else { return };
    let sql = |text: &str| server.sql(text).expect("the server answers");
    // By insert: what `create table as` writes goes through a small ring of buffers.
    sql("create table filled (i int, x text)");
    sql("insert into filled select i, repeat('x', 1000) from generate_series(1, 20000) i");
    let has_extension = server.sql("create extension pg_buffercache").is_ok();
    let anonymous = sql("select coalesce(sum(size), 0) from pg_shmem_allocations where off is null");
    let anonymous: u64 = anonymous.trim().parse().expect("bytes");
    // The backends that filled the buffers have gone when the map is made: the postmaster has mapped next to none.

    let answer = run(["--json", "map", "--postgres", &server.conn()]);
    assert_eq!(answer.exit, 0, "{}", answer.stderr);
    let envelope = answer.envelope();
    let result = &envelope["result"];
    let blind = result["unseen"].as_array().expect("a list");
    if let Some(unseen) =
        blind.iter().find(|it| it["what"].as_str().expect("text").starts_with("pages of shared"))
    {
        return planish_skip::skip(test, &unseen["why"]);
    }
    let told = &result["postgres"];
    let blocks = told["allocations"].as_array().expect("pieces");
    let placed: u64 = blocks.iter().map(|piece| piece["bytes"].as_u64().expect("bytes")).sum();
    assert!(anonymous > 0, "every server has some, beside {placed}");
    let remark = format!("where {} KiB of the main segment lie that the server", anonymous.div_ceil(1024));
    assert!(told["remarks"].to_string().contains(&remark), "{}", told["remarks"]);
    let blocks = blocks.iter().find(|piece| piece["name"] == "Buffer Blocks").expect("every server has them");
    assert!(blocks["bytes"].as_u64().expect("bytes") >= 64 << 20);
    let in_memory = bytes(&blocks["parts"]);
    assert!((20 << 20..64 << 20).contains(&in_memory), "{in_memory} bytes of the buffers are there");
    let postmaster = &result["processes"][0];
    assert_eq!(postmaster["pid"], server.pid());
    assert!(postmaster["shared_mapped_bytes"].as_u64().expect("bytes") < in_memory / 2, "{postmaster}");
    let kinds: Vec<&str> = told["backends"]
        .as_array()
        .expect("processes")
        .iter()
        .filter_map(|backend| backend["kind"].as_str())
        .collect();
    assert!(kinds.contains(&"postmaster") && kinds.contains(&"checkpointer"), "{kinds:?}");
    if has_extension {
        let relations = told["relations"].as_array().expect("relations");
        let filled = relations.iter().find(|piece| piece["name"] == "filled").expect("it was read");
        // Each of its buffers is there: nothing else could have been read.
        assert_eq!(bytes(&filled["parts"]), filled["bytes"].as_u64().expect("bytes"));
        assert!(filled["bytes"].as_u64().expect("bytes") > 20 << 20);
        let buffers = filled["buffers"].as_array().expect("places are told").iter();
        let buffers: u64 = buffers.map(|it| it["buffers"].as_u64().expect("a count")).sum();
        assert_eq!(buffers * 8192, filled["bytes"].as_u64().expect("bytes"), "each is somewhere");
    } else {
        planish_skip::skip(test, "no pg_buffercache: relations not compared");
    }
    // Asked twice, the same memory is there: looking has filled nothing.
    let again = run(["--json", "map", "--postgres", &server.conn()]).envelope();
    assert_eq!(again["result"]["postgres"]["segment"], told["segment"]);
    let other = run(["map", "2", "--postgres", &server.conn()]);
    assert_eq!(other.exit, 2, "{}", other.stderr);
    let nobody = run(["map", "--postgres", &format!("{} user=no_such_role", server.conn())]);
    assert_eq!(nobody.exit, 3, "{}", nobody.stderr);
    assert!(nobody.stderr.contains("error: the cluster refuses: role \"no_such_role\""), "{}", nobody.stderr);
    let down = run(["map", "--postgres", "host=/nonexistent user=postgres"]);
    assert!(down.exit == 3 && down.stderr.contains("the cluster does not answer: "), "{}", down.stderr);
}

/// What a list of changes says of one thing, over all nodes: bytes before and after.
fn change(changes: &serde_json::Value, what: &str) -> (u64, u64) {
    let own = changes.as_array().expect("changes").iter().filter(|change| change["what"] == what);
    own.fold((0, 0), |sum, change| {
        let bytes = |name: &str| change[name].as_u64().expect("bytes");
        (sum.0 + bytes("before_bytes"), sum.1 + bytes("after_bytes"))
    })
}

/// That each change of a relation is of pages of one size on one node, and that bytes and buffers of 8 KiB agree.
fn lies_by_node(changes: &serde_json::Value, relation: &str) {
    let own = changes.as_array().expect("changes").iter().filter(|change| change["what"] == relation);
    let own: Vec<&serde_json::Value> = own.collect();
    assert!(!own.is_empty(), "{changes}");
    let mut places = std::collections::BTreeSet::new();
    let mut buffers = [0, 0];
    for change in &own {
        assert!(change["backing"].is_string() && change["page_bytes"].as_u64() >= Some(4096), "{change}");
        assert!(change["node"].is_u64() && change["estimated"] == false, "{change}");
        let place = [&change["backing"], &change["page_bytes"], &change["node"]].map(ToString::to_string);
        assert!(places.insert(place), "twice: {change}");
        for (sum, name) in buffers.iter_mut().zip(["before_buffers", "after_buffers"]) {
            *sum += change[name].as_u64().expect("places are told");
        }
    }
    // Places that did not change are not told, so that both sides lack the same; each buffer is there as a whole.
    let (before, after) = change(changes, relation);
    assert_eq!((after - before) % 8192, 0, "{changes}");
    assert_eq!(buffers[1] - buffers[0], (after - before) / 8192, "{changes}");
}

#[test]
fn what_one_query_changed_is_told() {
    let test = "what_one_query_changed_is_told";
    let Some(server) = server(test, "128MB") else { return };
    let has_extension = server.sql("create extension pg_buffercache").is_ok();
    // What `create table as` writes goes through a ring of 16 MB at most, so that the buffers hold a part of it. A scan
    // has a ring of its own only from a quarter of all buffers on.
    server
        .sql("create table cold as select i, repeat('x', 1000) x from generate_series(1, 22000) i")
        .expect("it answers");
    let map = |sql: &str| run(["--json", "map", "--postgres", &server.conn(), "--query", sql]);

    let answer = map("select i, x from cold");
    assert_eq!(answer.exit, 0, "{}", answer.stdout);
    let envelope = answer.envelope();
    let query = &envelope["result"]["query"];
    assert_eq!(query["rows"], 22000);
    assert!(query["seconds"].as_f64().expect("seconds") > 0.0, "{query}");
    let served = &query["pid"];
    let processes = envelope["result"]["processes"].as_array().expect("processes");
    assert!(processes.iter().any(|process| process["pid"] == *served), "its backend is in the map");
    let (before, after) = change(&query["process"], "shared mapped");
    assert!(after >= before + (20 << 20), "it has read 25 MB of buffers: {query}");
    if has_extension && !envelope["result"]["unseen"].to_string().contains("pages of shared") {
        let (before, after) = change(&query["relations"], "cold");
        assert!(before < 18 << 20 && after > 24 << 20, "{query}");
        lies_by_node(&query["relations"], "cold");
        let (before, after) = change(&query["memory"], "shared");
        assert!(after > before + (4 << 20), "{query}");
    } else {
        planish_skip::skip(
            test,
            "no pg_buffercache, or shared memory cannot be seen: relations not compared",
        );
    }
    // Read already: nothing of it comes new.
    let again = map("select i, x from cold").envelope();
    assert_eq!(change(&again["result"]["query"]["relations"], "cold"), (0, 0), "{again}");

    // Out of the transaction, and into another one that might write.
    const BLOCK: &str = "do $$ begin perform set_config('default_transaction_read_only', 'off', false); commit; \
                         delete from cold; end $$";
    for refused in ["insert into cold values (1, 'y')", "select 1; select 2", "no sql", BLOCK] {
        let run = map(refused);
        assert_eq!(run.exit, 2, "{refused}: {}", run.stdout);
        assert!(run.stdout.contains("the server refuses the query"), "{}", run.stdout);
    }
    assert_eq!(server.sql("select count(*) from cold").expect("it answers").trim(), "22000");
    assert_eq!(run(["map", "sleep", "--query", "select 1"]).exit, 2, "only of a server");
}
