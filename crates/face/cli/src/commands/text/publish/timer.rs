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
    let weekly = Weekly { user, ..Weekly::new(program, commands, here, tops(&written)) };
    let place = |ending: &str| folder.join(format!("{name}.{ending}"));
    let units = [(place("service"), weekly.service()?), (place("timer"), weekly.timer())];
    for (path, text) in &units {
        write_file(path, text)?;
    }
    Ok(units.into_iter().map(|(path, _)| path).collect())
}

/// Folders as they are without links, and none that lies in another one.
fn tops(folders: &[PathBuf]) -> Vec<String> {
    let real = |folder: &PathBuf| {
        // One that is not there yet is named as it was.
        let path = std::fs::canonicalize(folder).or_else(|_| std::path::absolute(folder));
        path.unwrap_or_else(|_| folder.clone())
    };
    let mut sorted: Vec<PathBuf> = folders.iter().map(real).collect();
    // What lies in a folder comes right behind it.
    sorted.sort();
    sorted.dedup_by(|next, kept| next.starts_with(kept));
    sorted.iter().map(|path| path.to_string_lossy().into_owned()).collect()
}

/// The name of a profile as a part of the name of a unit.
fn name(profile: &Path) -> String {
    let stem = profile.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let one = |c: char| if c.is_ascii_alphanumeric() || "._".contains(c) { c } else { '-' };
    stem.chars().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_a_profile_is_one_of_a_unit() {
        assert_eq!(name(Path::new("/a b/my server@1.planish")), "my-server-1");
    }

    #[test]
    fn a_folder_in_another_one_is_told_once() {
        let told = |paths: &[&str]| tops(&paths.iter().map(PathBuf::from).collect::<Vec<_>>());
        assert_eq!(told(&["/none/b/c", "/none/b", "/none/bc", "/none/b/"]), ["/none/b", "/none/bc"]);
        // One that is there goes by its own name.
        let home = tempfile::tempdir().expect("a folder");
        let link = home.path().join("link");
        std::os::unix::fs::symlink(home.path(), &link).expect("room for a link");
        let real = home.path().canonicalize().expect("it is there").to_string_lossy().into_owned();
        assert_eq!(tops(&[link, home.path().join("."), home.path().to_owned()]), [real]);
    }
}
