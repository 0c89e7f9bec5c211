//! Units of systemd that publish every week what was published now.

use std::path::{Path, PathBuf};

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
    let typed = context.typed_without(&["--timer", "--record-unit"]);
    let mut commands = Vec::new();
    if let Some(unit) = recorded {
        let words = ["text", "record", "--unit", unit, "--seconds", "3600", "--duty", "0.05", "-o"];
        let words = words.map(str::to_owned).into_iter().chain([profile.to_string_lossy().into_owned()]);
        commands.push(line(&program, words)?);
    }
    commands.push(line(&program, typed)?);
    let here = std::path::absolute(".").map_err(Failure::usage)?.to_string_lossy().into_owned();
    // A folder stands as it is, without quotes.
    let here = if is_plain(&here) { here } else { word(&here)? };
    let user = rustix::process::geteuid();
    let mut service = format!(
        "[Unit]\nDescription=Publish a fresh text profile\nWants=network-online.target\nAfter=network-online.target\n\
         [Service]\nType=oneshot\nWorkingDirectory={here}\n"
    );
    if !user.is_root() {
        // Who publishes now: the repository and the keys are theirs.
        service += &format!("User={}\n", user.as_raw());
    }
    if recorded.is_some() {
        service += "# Recording a service takes this right and no other.\nAmbientCapabilities=CAP_PERFMON\n";
    }
    for command in &commands {
        service += &format!("ExecStart={command}\n");
    }
    service += "# 1 says that it is pinned, and not pushed. 3 says that a gate refused it: the old pin stays.\n\
                SuccessExitStatus=1\nTimeoutStartSec=3h\nNice=10\nUMask=0022\n";
    let timer = "[Unit]\nDescription=Publish a fresh text profile, every week\n[Timer]\nOnCalendar=weekly\n\
                 # Not all services of a fleet at once; and after a week off, soon.\nRandomizedDelaySec=6h\n\
                 Persistent=true\n[Install]\nWantedBy=timers.target\n";
    let place = |ending: &str| folder.join(format!("{name}.{ending}"));
    let units = [(place("service"), service), (place("timer"), timer.to_owned())];
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

fn line(program: &str, words: impl IntoIterator<Item = String>) -> Result<String, Failure> {
    let words = std::iter::once(program.to_owned()).chain(words).map(|text| word(&text));
    Ok(words.collect::<Result<Vec<_>, _>>()?.join(" "))
}

fn is_plain(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "/._-+@:=,".contains(c))
}

/// A word of a command line of systemd, which knows quotes, `%` and `$` of its own.
fn word(text: &str) -> Result<String, Failure> {
    if text.chars().any(char::is_control) {
        let failed = Failure::usage(format!("{text:?} cannot stand in a unit of systemd"));
        return Err(failed.hint("name files without control characters"));
    }
    if is_plain(text) {
        return Ok(text.to_owned());
    }
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%").replace('$', "$$");
    Ok(format!("\"{escaped}\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_unit_mean_themselves() {
        let told = |text: &str| word(text).unwrap();
        assert_eq!(told("s3://b/p,x=1"), "s3://b/p,x=1");
        assert_eq!(told("a b"), "\"a b\"");
        assert_eq!(told("50%$x\"\\"), "\"50%%$$x\\\"\\\\\"");
        assert_eq!(told(""), "\"\"");
        assert!(word("a\nExecStart=x").is_err());
        assert_eq!(name(Path::new("/a b/my server@1.planish")), "my-server-1");
    }
}
