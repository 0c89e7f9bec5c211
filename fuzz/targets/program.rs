//! Programs that are to be started with their memory placed, and libraries of allocators for them: files that users
//! name, of any format, or broken on the way.

#![no_main]

use libfuzzer_sys::fuzz_target;
use planish_host::Host;
use planish_placement::{Allocator, Libc, PlacementError, Program};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

#[path = "../shared/folder.rs"]
mod folder;

fuzz_target!(|bytes: &[u8]| {
    let folder = folder::Folder::new("program");
    let path = folder.0.join("libjemalloc.so.2");
    fs::write(&path, bytes).expect("room for a file");
    fs::set_permissions(&path, Permissions::from_mode(0o755)).expect("our own file");
    if let Ok(program) = Program::find(path.as_os_str(), None) {
        assert_eq!(program.path, path);
        match program.may_be_preloaded() {
            Ok(libc) => assert!(program.is_native && program.libc == Some(libc)),
            Err(error) => assert!(!error.cure().is_empty(), "{error}"),
        }
        // A script is its interpreter, and that is another file.
        assert!(program.loaded == path || bytes.starts_with(b"#!"));
    }
    let paths = folder.0.to_str();
    for libc in [Libc::Glibc { minor: None }, Libc::Musl, Libc::Other] {
        match Allocator::Jemalloc.find(&Host::live(), libc, paths) {
            Ok(library) => assert!(library != path || libc != Libc::Other),
            Err(PlacementError::NoAllocator { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
});
