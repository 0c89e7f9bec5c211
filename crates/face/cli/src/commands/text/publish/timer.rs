//! Units of systemd that publish every week what was published now.

use std::path::{Path, PathBuf};

use planish_pipeline::Weekly;

use crate::commands::write_file;
use crate::context::Context;
use crate::failure::Failure;

/// Writes the service and its timer; tells where they are, the timer last.
pub(super) fn write(
    folder: &Path,
    profile: &Path,
    recorded: Option<&str>,
    context: &Context,
) -> Result<Vec<PathBuf>, Failure> {
    let name = format!("planish-text-publish-{}", name(profile));
    let program = std::env::current_exe().map_err(Failure::refused)?.to_string_lossy().into_owned();
    let mut commands = Vec::new();
    if let Some(unit) = recorded {
        let words = ["text", "record", "--unit", unit, "--seconds", "3600", "--duty", "0.05", "-o"];
        let words = words.map(str::to_owned).into_iter().chain([profile.to_string_lossy().into_owned()]);
        commands.push(words.collect());
    }
    commands.push(context.typed_without(&["--timer", "--record-unit"]));
    let here = std::path::absolute(".").map_err(Failure::usage)?.to_string_lossy().into_owned();
    let user = rustix::process::geteuid();
    let weekly = Weekly::new(program, commands, here, (!user.is_root()).then(|| user.as_raw()));
    let place = |ending: &str| folder.join(format!("{name}.{ending}"));
    let units = [(place("service"), weekly.service()?), (place("timer"), weekly.timer())];
    for (path, text) in &units {
        write_file(path, text)?;
    }
    Ok(units.into_iter().map(|(path, _)| path).collect())
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
}
