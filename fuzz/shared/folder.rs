//! A folder of this process alone, in memory where there is a file system for that, and gone with the value.

use std::fs;
use std::path::{Path, PathBuf};

pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new(target: &str) -> Self {
        let memory = Path::new("/dev/shm");
        let above = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        let folder = above.join(format!("planish-fuzz-{target}-{}", std::process::id()));
        // An input that broke the target left its folder behind.
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).expect("room for a folder");
        Self(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
