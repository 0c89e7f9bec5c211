//! Units of systemd that publish every week what was published now.

use std::path::{Path, PathBuf};

use planish_pipeline::Weekly;

use crate::commands::write_file;
use crate::context::Context;
use crate::failure::Failure;

/// Writes the service and its timer; tells where they are, the timer last. `written` are the folders that a publish
/// like this one writes into.
pub(super) fn write(
    folder: &Path,
    profile: &Path,
    recorded: Option<&str>,
    mut written: Vec<PathBuf>,
    context: &Context,
) -> Result<Vec<PathBuf>, Failure> {
    let name = format!("planish-text-publish-{}", name(profile));
    let program = std::env::current_exe().map_err(Failure::refused)?.to_string_lossy().into_owned();
    let mut commands = Vec::new();
    if let Some(unit) = recorded {
        let words = ["text", "record", "--unit", unit, "--seconds", "3600", "--duty", "0.05", "-o"];
        let words = words.map(str::to_owned).into_iter().chain([profile.to_string_lossy().into_owned()]);
        commands.push(words.collect());
        written.push(super::folder_of(profile));
    }
    commands.push(context.typed_without(&["--timer", "--record-unit"]));
    let here = std::path::absolute(".").map_err(Failure::usage)?.to_string_lossy().into_owned();
    let user = rustix::process::geteuid();
    let user = (!user.is_root()).then(|| user.as_raw());
    let weekly = Weekly { user, ..Weekly::new(program, commands, here, tops(&written)?) };
    let place = |ending: &str| folder.join(format!("{name}.{ending}"));
    let units = [(place("service"), weekly.service()?), (place("timer"), weekly.timer())];
    for (path, text) in &units {
        write_file(path, text)?;
    }
    Ok(units.into_iter().map(|(path, _)| path).collect())
}

/// Folders as they are without links, and none that lies in another one.
///
/// # Errors
/// One whose name a unit cannot have: of another in its place systemd would not say that it is not there.
fn tops(folders: &[PathBuf]) -> Result<Vec<String>, Failure> {
    let real = |folder: &PathBuf| {
        // One that is not there yet is named as it was.
        let path = std::fs::canonicalize(folder).or_else(|_| std::path::absolute(folder));
        path.unwrap_or_else(|_| folder.clone())
    };
    let mut sorted: Vec<PathBuf> = folders.iter().map(real).collect();
    // What lies in a folder comes right behind it.
    sorted.sort();
    sorted.dedup_by(|next, kept| next.starts_with(kept));
    let text = |path: PathBuf| {
        path.into_os_string().into_string().map_err(|path| {
            Failure::usage(format!("{} is no UTF-8, as a unit has to be", Path::new(&path).display()))
                .hint("give pin, profile, store and repository folders with names of UTF-8")
        })
    };
    sorted.into_iter().map(text).collect()
}

/// The name of a profile as a part of the name of a unit.
fn name(profile: &Path) -> String {
    let stem = profile.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let one = |c: char| if c.is_ascii_alphanumeric() || "._".contains(c) { c } else { '-' };
    stem.chars().map(one).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    #[test]
    fn a_name_of_a_profile_is_one_of_a_unit() {
        assert_eq!(name(Path::new("/a b/my server@1.planish")), "my-server-1");
    }

    #[test]
    fn a_folder_in_another_one_is_told_once() {
        let told = |paths: &[&str]| tops(&paths.iter().map(PathBuf::from).collect::<Vec<_>>()).expect("text");
        assert_eq!(told(&["/none/b/c", "/none/b", "/none/bc", "/none/b/"]), ["/none/b", "/none/bc"]);
        // One that is there goes by its own name.
        let home = tempfile::tempdir().expect("a folder");
        let link = home.path().join("link");
        std::os::unix::fs::symlink(home.path(), &link).expect("room for a link");
        let real = home.path().canonicalize().expect("it is there").to_string_lossy().into_owned();
        let told = tops(&[link, home.path().join("."), home.path().to_owned()]);
        assert_eq!(told.expect("text"), [real]);
    }

    #[test]
    fn a_folder_that_a_unit_cannot_name_is_refused() {
        let folder = PathBuf::from(std::ffi::OsStr::from_bytes(b"/none/\xff"));
        assert!(tops(&[PathBuf::from("/none/a"), folder]).is_err());
    }
}
