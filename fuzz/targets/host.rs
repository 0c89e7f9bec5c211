//! Files of a host, all that a command reads of one: sysctl.d, tmpfiles.d, units and their variables, profiles of
//! tuned, files of boot loaders, tables of /proc and /sys, the description of a record.
//!
//! The input is files: each begins with a line `=== /PATH`. They are put into a tree, and the tree is observed.

#![no_main]

use libfuzzer_sys::fuzz_target;
use planish_host::Host;
use planish_model::{Catalogue, Observation};
use planish_observe::{ServiceName, machine, observe, service};
use planish_topo::Topology;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

static CATALOGUE: LazyLock<Catalogue> = LazyLock::new(|| Catalogue::embedded().expect("sound"));

/// Read last, with or without systemd: nothing in another file may take away what it says.
const LAST: [&str; 2] = ["/etc/sysctl.d/zzz.conf", "/etc/sysctl.conf"];
const FILES_MAX: usize = 64;

fuzz_target!(|text: &str| {
    let tree = Tree::new();
    // First, so that no other file takes the place of a folder on their way.
    LAST.iter().for_each(|path| tree.add(path, ""));
    for file in text.split("=== ").skip(1).take(FILES_MAX) {
        let (path, content) = file.split_once('\n').unwrap_or((file, ""));
        tree.add(path, content);
    }
    LAST.iter().for_each(|path| tree.add(path, "vm.swappiness = 61\n"));
    let Ok(host) = Host::open(&tree.0) else { return };

    let seen = observe(&host, &CATALOGUE);
    let told = serde_json::to_string(&seen).expect("plain data with text keys");
    serde_json::from_str::<Observation>(&told).expect("what we write, we read");
    for (place, persisted) in &seen.persisted {
        let file = persisted.source.rsplit_once(':').map_or(persisted.source.as_str(), |(file, _)| file);
        let by_line = persisted.source.starts_with("kernel command line");
        assert!(by_line || host.exists(file) || host.exists(&persisted.source), "{place}: {persisted:?}");
    }
    // A tree that says of one of these files that it cannot be read has said so by its description.
    if host.meta().is_none() {
        let swappiness = seen.persisted.get("/proc/sys/vm/swappiness").expect("the last file sets it");
        assert_eq!(swappiness.value, "61", "{swappiness:?}");
    }
    for name in [ServiceName::Pid(7), ServiceName::Name("server")] {
        let _ = service(&host, &seen, name);
    }
    let _ = machine(&host, &["server.service"]);
    let topology = Topology::read(&host);
    assert!(topology.allowed().is_subset(&topology.online()), "{topology:?}");
});

/// A folder of this process alone, gone with the value.
struct Tree(PathBuf);

impl Tree {
    fn new() -> Self {
        let memory = Path::new("/dev/shm");
        let folder = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        let root = folder.join(format!("planish-fuzz-host-{}", std::process::id()));
        // An input that broke the target left its tree behind.
        let _ = fs::remove_dir_all(&root);
        for part in ["proc", "sys"] {
            fs::create_dir_all(root.join(part)).expect("room for a tree");
        }
        Self(root)
    }

    /// Adds a file, where its path is one that stays below the root, and no file is a folder of it.
    fn add(&self, path: &str, content: &str) {
        let plain = |c: char| c.is_ascii_alphanumeric() || "/._-@:,+".contains(c);
        let stays = path.starts_with('/') && path.chars().all(plain) && !path.contains("..");
        if !stays || path.len() > 120 || path.ends_with('/') {
            return;
        }
        let file = self.0.join(path.trim_start_matches('/'));
        if file.parent().is_some_and(|folder| fs::create_dir_all(folder).is_ok()) {
            let _ = fs::write(file, content);
        }
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
