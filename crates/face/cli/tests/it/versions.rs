//! Profiles that are made for some versions of a program, on hosts that have one or another.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::exits::{on, sandbox};

/// Makes the service of the recorded host a MongoDB, and a package of some version of it installed.
fn mongod(sandbox: &Path, package: &str) {
    let host = sandbox.join("host");
    for file in ["comm", "stat", "status"] {
        let path = host.join("proc/2201").join(file);
        let text = fs::read_to_string(&path).expect("it is recorded");
        fs::write(&path, text.replace("postgres", "mongod")).expect("the copy can be written");
    }
    let folder = host.join("var/lib/dpkg");
    fs::create_dir_all(&folder).expect("a folder");
    let status = format!(
        "Package: mongodb-org-server\nStatus: install ok installed\nVersion: {package}\nSection: db\n\n"
    );
    fs::write(folder.join("status"), status).expect("a file");
}

/// What is said of the version when a profile is planned.
fn warned(sandbox: &Path, profile: &str) -> Vec<String> {
    let planned = on(sandbox, &["plan", profile]);
    let messages = planned.envelope()["messages"].as_array().cloned().unwrap_or_default();
    let texts = messages.iter().filter_map(|message| message["text"].as_str().map(str::to_owned));
    texts.filter(|text| text.contains(" is for version ")).collect()
}

#[test]
fn a_profile_for_another_version_is_warned_of_and_the_right_one_named() {
    let sandbox = sandbox();
    assert_eq!(warned(sandbox.path(), "mongodb"), [""; 0], "nothing tells a version");
    mongod(sandbox.path(), "7.0.14");
    let told = "mongodb is for version 8 and later, and this host has 7.0.14 (/var/lib/dpkg/status: package \
                mongodb-org-server): take mongodb-7";
    assert_eq!(warned(sandbox.path(), "mongodb"), [told]);
    assert_eq!(warned(sandbox.path(), "mongodb-7"), [""; 0]);
    mongod(sandbox.path(), "8.0.3");
    assert_eq!(warned(sandbox.path(), "mongodb"), [""; 0]);
    assert_eq!(warned(sandbox.path(), "mongodb-7").len(), 1);
}

#[test]
fn a_service_is_held_against_the_profile_of_its_version() {
    let sandbox = sandbox();
    mongod(sandbox.path(), "7.0.14");
    let seen = || {
        let result = on(sandbox.path(), &["doctor", "--service", "mongod"]).envelope()["result"].clone();
        let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
        (text(&result["profile"]), text(&result["service"]["version"]["version"]))
    };
    assert_eq!(seen(), ("mongodb-7".to_owned(), "7.0.14".to_owned()));
    // What runs is another one than the package that is installed besides.
    symlink("/opt/mongodb-linux-x86_64-8.0.1/bin/mongod", sandbox.path().join("host/proc/2201/exe"))
        .expect("a link");
    assert_eq!(seen(), ("mongodb".to_owned(), "8.0.1".to_owned()));
    assert_eq!(warned(sandbox.path(), "mongodb"), [""; 0], "it may be meant for the one that runs");
}
