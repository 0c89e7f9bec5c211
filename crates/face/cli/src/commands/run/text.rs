//! `planish run --huge text`: the code of a program that nobody may change, on huge pages of the page cache.
//!
//! ```text
//! cached so already? ──> read anew in huge pieces, where its file fits and nobody runs it
//!                    ──> else a copy of the file that fits, in a folder of ours, which is executed in its place
//! ```
//!
//! A route that is asked for by name is the only one that is tried; collapse is tried by its name alone.
//!
//! None of that is a reason not to start: what was not to be had is told, and the program is started as it is.

use std::fs::{DirBuilder, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use planish_host::Host;
use planish_hugify::{Cached, HugifyError, Image, Probe, Remake, coverage, runners, try_program};
use planish_placement::{Program, TextRoute, fingerprint, others};
use planish_report::RunText;
use planish_sys::code::uprobe_of;
use planish_sys::{file, pages};

use crate::commands::read_file;
use crate::failure::chain;

/// Of what can lie on huge pages so much must, in percent.
const LEAST: f64 = 90.0;

/// The route of a program that is executed in the place of the one that was named.
const COPY: &str = "copy";

/// The text of a program that is about to be started.
pub(super) struct OwnText {
    route: &'static str,
    image: Image,
    huge_bytes: u64,
}

impl OwnText {
    /// Sees to the text of a program, which may be another file afterwards. `Err` tells why it starts as it is.
    pub fn prepare(program: &mut Program, folder: &Path, route: TextRoute) -> Result<Self, String> {
        let huge_bytes = pages::thp_bytes().ok_or("this kernel has no transparent huge pages")? as u64;
        if program.path != program.loaded {
            return Err("it is a script, and the code that runs is its interpreter's".to_owned());
        }
        let path = std::fs::canonicalize(&program.path).map_err(|error| error.to_string())?;
        let bytes = read_file(&path).map_err(|failure| failure.message("", "").text)?;
        let remake = Remake::plan(&bytes, huge_bytes).map_err(told)?;
        let image = remake.image().clone();
        if let Some(route) = in_place(&path, &image, huge_bytes, route)? {
            return Ok(Self { route, image, huge_bytes });
        }
        if let Some(why) = program.secure {
            return Err(format!("a copy would run without its rights: {why}"));
        }
        if looks_around(&bytes) {
            return Err(
                "it looks for its libraries beside itself ($ORIGIN), where a copy has none".to_owned()
            );
        }
        // What cannot be looked at is nothing to go by: nobody is kept from starting it.
        if let Some(at) = file::open(&path).ok().and_then(|file| uprobe_of(&file).ok().flatten()) {
            return Err(format!(
                "somebody has set a uprobe on it, at offset {at:#x}, which a copy would not have"
            ));
        }
        let new = remake.make(&bytes).map_err(told)?;
        let copy = copy_in(folder, &path, &new).map_err(|error| format!("a copy of it: {error}"))?;
        let image = Image::parse(&new).map_err(told)?;
        verify(&copy, &image, huge_bytes)?;
        program.path.clone_from(&copy);
        program.loaded = copy;
        Ok(Self { route: COPY, image, huge_bytes })
    }

    /// Who else may change the copy that is executed in its place, where it is one.
    pub fn others(&self, program: &Program) -> Option<String> {
        others(program.path.parent()?, "the copy").filter(|_| self.route == COPY)
    }

    /// What of it lies on huge pages in a process.
    pub fn seen(&self, host: &Host, pid: u32) -> Option<RunText> {
        let program = host.read_link(&format!("/proc/{pid}/exe"))?;
        let name = program.trim_end_matches(" (deleted)");
        let seen = coverage(host, pid, name, &self.image, self.huge_bytes).ok().flatten()?;
        Some(RunText {
            route: self.route.to_owned(),
            text_bytes: seen.text_bytes,
            whole_bytes: seen.whole_bytes,
            huge_bytes: seen.huge_bytes,
        })
    }
}

/// The route by which the file itself is on huge pages; `None` where a copy is to be made. Of a route that is asked for
/// alone, `Err` tells why it was none.
fn in_place(
    path: &Path,
    image: &Image,
    huge_bytes: u64,
    route: TextRoute,
) -> Result<Option<&'static str>, String> {
    let may_copy = matches!(route, TextRoute::First | TextRoute::Copy);
    if !image.is_ready(huge_bytes) {
        let cure = "its file does not fit huge pages as it is linked: planish text check tells the flags";
        return if may_copy { Ok(None) } else { Err(cure.to_owned()) };
    }
    let probe = Probe::open(path, image.clone(), huge_bytes).map_err(told)?;
    if probe.cached().map_err(told)?.is_at_least(LEAST) {
        return Ok(Some("already"));
    }
    let (name, cached) = match route {
        TextRoute::Copy => return Ok(None),
        TextRoute::Collapse => {
            let refused = |error| format!("the kernel does not collapse it: {}", told(error));
            ("collapse", probe.collapse().map_err(refused)?)
        }
        TextRoute::First | TextRoute::Warm => {
            let runs = runners(&Host::live(), &path.to_string_lossy());
            match runs.first() {
                Some(_) if may_copy => return Ok(None),
                Some(_) => return Err("it runs already, and what is mapped is not read anew".to_owned()),
                None => ("warm", probe.warm().map_err(told)?),
            }
        }
    };
    match cached.is_at_least(LEAST) {
        true => Ok(Some(name)),
        false if may_copy => Ok(None),
        false => Err(short(cached)),
    }
}

fn told(error: HugifyError) -> String {
    chain(&error)
}

/// That too little came of it.
fn short(cached: Cached) -> String {
    let (huge, whole) = (cached.huge_bytes >> 20, cached.whole_bytes >> 20);
    format!("the page cache has {huge} of {whole} MiB of it in huge pieces")
}

/// Whether its libraries are looked for relative to the file itself.
fn looks_around(bytes: &[u8]) -> bool {
    let is_origin = |rest: &[u8]| rest.starts_with(b"ORIGIN") || rest.starts_with(b"{ORIGIN}");
    bytes.split(|byte| *byte == b'$').skip(1).any(is_origin)
}

/// The copy, in a folder that its content names: one that is there already serves every start. Its name is that of the
/// program, which the kernel calls the process by. Nobody may read or run it who may not the program.
fn copy_in(folder: &Path, path: &Path, bytes: &[u8]) -> io::Result<PathBuf> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let place = folder.join(format!("text-{:016x}", fingerprint(bytes)));
    let copy = place.join(name);
    let mode = path.metadata()?.mode() & 0o755;
    // Compared, not trusted: what lies there is executed.
    if file::read_up_to(&copy, bytes.len() as u64).is_ok_and(|there| there == bytes) {
        let has = copy.metadata()?.mode();
        if has & 0o7777 & !mode != 0 {
            std::fs::set_permissions(&copy, Permissions::from_mode(has & mode))?;
        }
        return Ok(copy);
    }
    file::make_folders(folder, 0o755, |_| Ok(()))?;
    DirBuilder::new().recursive(true).mode(0o755).create(&place)?;
    let part = place.join(format!(".part-{}", std::process::id()));
    let written = (|| {
        let mut file = File::options().write(true).create_new(true).mode(0o600).open(&part)?;
        let piece = pages::thp_bytes().unwrap_or(2 << 20);
        bytes.chunks(piece).try_for_each(|piece| file.write_all(piece))?;
        file.set_permissions(Permissions::from_mode(mode))?;
        file.sync_all()?;
        std::fs::rename(&part, &copy)
    })();
    if written.is_err() {
        let _ = std::fs::remove_file(&part);
    }
    written.map(|()| copy)
}

/// Whether a copy is what it was made for; one that the page cache has lost since is read anew.
fn verify(copy: &Path, image: &Image, huge_bytes: u64) -> Result<(), String> {
    let probe = Probe::open(copy, image.clone(), huge_bytes).map_err(told)?;
    let mut cached = probe.cached().map_err(told)?;
    if !cached.is_at_least(LEAST) && runners(&Host::live(), &copy.to_string_lossy()).is_empty() {
        cached = probe.warm().map_err(told)?;
    }
    if !cached.is_at_least(LEAST) {
        return Err(short(cached));
    }
    match try_program(copy, image, huge_bytes) {
        // Where nobody may trace, the start itself is the trial.
        Ok(_) | Err(HugifyError::System(planish_sys::Error::Forbidden { call: "ptrace", .. })) => Ok(()),
        Err(error) => Err(format!("the kernel does not load a copy: {}", chain(&error))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "writes a program of the test's own")]
    fn a_copy_is_no_more_readable_than_its_program() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("engine");
        std::fs::write(&program, "private").unwrap();
        let mode = |path: &Path| path.metadata().unwrap().mode() & 0o7777;
        for (own, wanted) in [(0o777, 0o755), (0o750, 0o750), (0o700, 0o700), (0o755, 0o700)] {
            std::fs::set_permissions(&program, Permissions::from_mode(own)).unwrap();
            let copy = copy_in(&folder.path().join("copies"), &program, b"private").unwrap();
            assert_eq!(mode(&copy), wanted, "of {own:o}");
        }
    }

    #[test]
    fn a_program_that_looks_around_is_known() {
        assert!(looks_around(b"\0$ORIGIN/../lib\0"));
        assert!(looks_around(b"x$y${ORIGIN}/lib"));
        assert!(!looks_around(b"$HOME $ {ORIGIN} ORIGIN"));
    }
}
