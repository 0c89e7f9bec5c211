//! Files of others, queried where they lie: from a shell all, over HTTP those of a folder that is named.

use std::path::Path;
use std::process::{Command, Output};

use crate::server::{PROGRAM, Server, in_address};

fn run(words: &[&str]) -> (i32, String, String) {
    let Output { status, stdout, stderr } = Command::new(PROGRAM).args(words).output().unwrap();
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    (status.code().unwrap(), text(&stdout), text(&stderr))
}

/// A folder of tables, one of files, and a file beside that.
fn folders(folder: &Path) -> [String; 3] {
    let paths = ["data", "files", "secret.csv"].map(|name| folder.join(name));
    std::fs::create_dir(&paths[0]).unwrap();
    std::fs::create_dir(&paths[1]).unwrap();
    std::fs::write(&paths[2], "a\n1\n").unwrap();
    std::fs::write(paths[1].join("a.csv"), "ts,price\n1,1.5\n2,\n3,4\n").unwrap();
    std::os::unix::fs::symlink(&paths[2], paths[1].join("link.csv")).unwrap();
    paths.map(|path| path.to_str().unwrap().to_owned())
}

#[test]
fn a_shell_reads_any_file() {
    let folder = tempfile::tempdir().unwrap();
    let [data, files, _] = folders(folder.path());
    for from in [format!("'{files}/a.csv'"), format!("read_csv('{files}/a*')")] {
        let sql = format!("SELECT count(*), count(price), sum(price) FROM {from} FORMAT TSV");
        let wanted = (0, "3\t2\t5.5\n".to_owned(), String::new());
        assert_eq!(run(&["query", &sql, "--data", &data]), wanted);
        assert_eq!(run(&["query", &sql]), wanted);
    }
    let (code, _, told) = run(&["query", "SELECT * FROM 'none.parquet'", "--data", &data]);
    assert!(code == 4 && told.contains("none.parquet: no such file"), "{told}");
}

#[test]
fn a_server_reads_files_of_the_folder_that_it_is_told_and_no_others() {
    let folder = tempfile::tempdir().unwrap();
    let [data, files, secret] = folders(folder.path());
    let server = Server::start_with(Path::new(&data), &["--files", &files]);
    assert_eq!(server.ask("SELECT sum(price) FROM 'a.csv'"), "5.5");
    let address = format!("/?query={}", in_address("SELECT count(*) FROM read_csv('./a.csv')"));
    assert_eq!(server.get(&address).ok(), "3\n");
    for path in ["../secret.csv", &secret, "link.csv", "*.csv", "../files/a.csv", "../data/none.csv"] {
        let reply = server.post("/", &format!("SELECT * FROM '{path}'"));
        assert_eq!(reply.status, 400, "{path}: {}", reply.text());
        assert!(reply.text().contains("leaves the folder"), "{path}: {}", reply.text());
    }
    // Files are read, and never written.
    for sql in ["COPY (SELECT 1) TO 'b.csv'", "CREATE EXTERNAL TABLE x STORED AS CSV LOCATION 'a.csv'"] {
        assert_ne!(server.post("/", sql).status, 200, "{sql}");
    }
    assert!(!Path::new(&files).join("b.csv").exists());
    let file = format!("{files}/a.csv");
    let (code, _, told) = run(&["serve", "--data", &data, "--files", &file]);
    assert!(code == 3 && told.contains("cannot let queries read files of"), "{told}");
}

#[test]
fn a_server_reads_no_files_by_itself() {
    let folder = tempfile::tempdir().unwrap();
    let [data, files, _] = folders(folder.path());
    let server = Server::start(Path::new(&data));
    for from in [format!("'{files}/a.csv'"), format!("read_csv('{files}/a.csv')")] {
        let reply = server.post("/", &format!("SELECT * FROM {from}"));
        assert_eq!(reply.status, 400, "{}", reply.text());
        assert!(reply.text().contains("files are not read here"), "{}", reply.text());
    }
}
