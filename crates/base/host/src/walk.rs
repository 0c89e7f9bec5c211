//! A walk over a machine: where patterns lead.

use std::collections::HashMap;
use std::fs;
use std::sync::{Arc, Mutex, PoisonError};

use planish_sorted::SortSmall as _;

use crate::host::Host;
use crate::natural::natural_order;
use crate::pattern::{Captures, Component, Pattern};

/// A path that a pattern found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Match {
    /// The path.
    pub path: String,
    /// What the holes found.
    pub captures: Captures,
}

/// One walk along many patterns, which lists each folder once: a dozen knobs pass through `/sys/block`.
///
/// What it listed it does not list again, so that it is for one look at a machine and not for two.
#[derive(Debug)]
pub struct Walk<'a> {
    host: &'a Host,
    listed: Mutex<HashMap<String, Arc<[String]>>>,
}

impl<'a> Walk<'a> {
    /// A walk that has seen nothing yet.
    pub fn new(host: &'a Host) -> Self {
        Self { host, listed: Mutex::default() }
    }

    /// The existing paths that `pattern` describes, in natural order.
    pub fn glob(&self, pattern: &Pattern) -> Vec<Match> {
        let mut found = self.candidates(pattern);
        if !pattern.is_open_ended() {
            found.retain(|at| self.host.exists(&at.path));
        }
        found
    }

    /// The paths that `pattern` describes as far as the folders on the way tell, in natural order: for who asks each of
    /// them anyway whether it is there.
    pub fn candidates(&self, pattern: &Pattern) -> Vec<Match> {
        let mut found = vec![Match { path: String::new(), captures: Captures::new() }];
        for component in pattern.components() {
            found = found.iter().flat_map(|at| self.step(at, component)).collect();
        }
        if pattern.is_open_ended() {
            found = found.into_iter().flat_map(|at| self.below(at)).collect();
        }
        found.sort_small_by(|a, b| natural_order(&a.path, &b.path));
        found
    }

    /// The entries of the folder `at` that `component` describes. A plain name is not looked up here.
    fn step(&self, at: &Match, component: &Component) -> Vec<Match> {
        if let Some(name) = component.literal() {
            return vec![Match { path: format!("{}/{name}", at.path), captures: at.captures.clone() }];
        }
        let folder = if at.path.is_empty() { "/" } else { &at.path };
        let matching = |name: &String| {
            let captures = component.matches(name, &at.captures)?;
            Some(Match { path: format!("{}/{name}", at.path), captures })
        };
        self.list(folder).iter().filter_map(matching).collect()
    }

    /// Names in a folder, as they were when this walk first came by. Whoever comes meanwhile waits, and sees the same.
    fn list(&self, folder: &str) -> Arc<[String]> {
        let mut listed = self.listed.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(names) = listed.get(folder) {
            return Arc::clone(names);
        }
        let names: Arc<[String]> = self.host.list(folder).into();
        listed.insert(folder.to_owned(), Arc::clone(&names));
        names
    }

    /// Every file below `at`, without following links: /sys has circles.
    fn below(&self, at: Match) -> Vec<Match> {
        let mut files = Vec::new();
        let mut folders = vec![at.path];
        while let Some(folder) = folders.pop() {
            for name in self.host.list(&folder) {
                let path = format!("{folder}/{name}");
                let Ok(real) = self.host.real_path(&folder) else { continue };
                match fs::symlink_metadata(real.join(&name)) {
                    Ok(metadata) if metadata.is_dir() => folders.push(path),
                    Ok(metadata) if metadata.is_file() => {
                        files.push(Match { path, captures: at.captures.clone() });
                    }
                    _ => {}
                }
            }
        }
        files
    }
}
