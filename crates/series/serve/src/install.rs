//! `planish-series install`, `uninstall`: a unit of systemd for a server, one a node.
//!
//! Two files below a root: the unit, and the link by which it starts at boot. Nothing is started or stopped, so that a
//! root may be that of another machine, and the last line says what to type. A unit that somebody else has written, or
//! has changed, is left alone.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Parser};

use crate::ended::Ended;
use crate::serving::ServeOptions;
use crate::tell::tell;
use crate::unit::{Unit, is_hidden, is_ours};

const UNITS: &str = "etc/systemd/system";
const WANTS: &str = "etc/systemd/system/multi-user.target.wants";

/// Have systemd start a server: write a unit, and the link that starts it at boot
#[derive(Debug, Args)]
pub(crate) struct InstallOptions {
    #[command(flatten)]
    place: PlaceOptions,
    /// The user that it runs as, who has the folder of tables [default: one that systemd makes up, for tables in
    /// /var/lib/NAME]
    #[arg(long, value_name = "USER", value_parser = user)]
    user: Option<String>,
    /// The program [default: this one]
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// What follows `planish-series serve`
    #[arg(last = true, required = true, value_name = "OPTIONS")]
    serve: Vec<String>,
}

/// Take a unit out again that `install` wrote; tables stay
#[derive(Debug, Args)]
pub(crate) struct UninstallOptions {
    #[command(flatten)]
    place: PlaceOptions,
    /// The node of its --node-id
    #[arg(long, value_name = "NODE", conflicts_with = "name")]
    node_id: Option<u32>,
}

#[derive(Debug, Args)]
struct PlaceOptions {
    /// Name of the unit [default: planish-series, with -nodeN where it has a --node-id]
    #[arg(long, value_name = "NAME", value_parser = name)]
    name: Option<String>,
    /// The root folder of the system that it is for
    #[arg(long, default_value = "/", value_name = "DIR")]
    root: PathBuf,
}

fn name(text: &str) -> Result<String, String> {
    let is_name = text.len() <= 100
        && text.starts_with(|first: char| first.is_ascii_alphanumeric())
        && text.chars().all(|it| it.is_ascii_alphanumeric() || "-_.".contains(it));
    if is_name { Ok(text.to_owned()) } else { Err("expected letters, digits, -, _ and .".to_owned()) }
}

fn user(text: &str) -> Result<String, String> {
    match name(text) {
        Ok(_) if text == "root" => Err("a server needs no right of root's".to_owned()),
        named => named,
    }
}

/// What follows `serve`, read as it is read when the unit starts.
#[derive(Debug, Parser)]
#[command(name = "planish-series serve", no_binary_name = true)]
struct Served {
    #[command(flatten)]
    options: ServeOptions,
}

impl PlaceOptions {
    fn name(&self, node: Option<u32>) -> String {
        let of_node =
            || node.map_or("planish-series".to_owned(), |node| format!("planish-series-node{node}"));
        self.name.clone().unwrap_or_else(of_node)
    }

    /// The unit, and the link to it.
    fn paths(&self, name: &str) -> (PathBuf, PathBuf) {
        let file = format!("{name}.service");
        (self.root.join(UNITS).join(&file), self.root.join(WANTS).join(&file))
    }
}

/// Writes a unit.
pub(crate) fn install(options: &InstallOptions) -> Result<ExitCode, Ended> {
    let served = Served::try_parse_from(&options.serve);
    let served = served.map_err(|error| Ended::usage(error.to_string().trim_end().to_owned()))?.options;
    served.is_let_in()?;
    let name = options.place.name(served.node_id());
    let program = program(options)?;
    let unit = Unit { program: &program, user: options.user.as_deref(), arguments: &options.serve };
    let text = unit.text(&served).map_err(Ended::usage)?;
    let (path, link) = options.place.paths(&name);
    let before = read(&path)?;
    if before.as_ref().is_some_and(|before| !is_ours(before)) {
        return Err(of_others(&path));
    }
    let is_linked = fs::read_link(&link).is_ok_and(|target| target.file_name() == path.file_name());
    if before.as_deref() == Some(text.as_str()) && is_linked {
        tell(&format!("{}: as it was", path.display()));
        return Ok(ExitCode::SUCCESS);
    }
    let failed =
        |path: &Path, error: io::Error| Ended::failed(format!("cannot write {}: {error}", path.display()));
    write(&path, &text).map_err(|error| failed(&path, error))?;
    if !is_linked {
        make_link(&link, &format!("/{UNITS}/{name}.service")).map_err(|error| failed(&link, error))?;
    }
    tell(&format!("{}: written", path.display()));
    let verb = if before.is_some() { "restart" } else { "start" };
    let make = options
        .user
        .as_ref()
        .map(|user| format!("install --directory --owner {user} --mode 700 {} && ", served.data().display()));
    let make = make.unwrap_or_default();
    tell(&format!("now type: {make}systemctl daemon-reload && systemctl {verb} {name}"));
    Ok(ExitCode::SUCCESS)
}

/// Takes a unit out.
pub(crate) fn uninstall(options: &UninstallOptions) -> Result<ExitCode, Ended> {
    let name = options.place.name(options.node_id);
    let (path, link) = options.place.paths(&name);
    let failed =
        |path: &Path, error: io::Error| Ended::failed(format!("cannot remove {}: {error}", path.display()));
    match read(&path)? {
        Some(text) if !is_ours(&text) => return Err(of_others(&path)),
        None if fs::symlink_metadata(&link).is_err() => {
            tell(&format!("{}: not there", path.display()));
            return Ok(ExitCode::SUCCESS);
        }
        _ => {}
    }
    // The link first: one that leads nowhere would be told at each boot.
    for path in [&link, &path] {
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(path, error)),
            _ => {}
        }
    }
    tell(&format!("{}: removed; the tables are where they were", path.display()));
    tell(&format!("now type: systemctl stop {name} && systemctl daemon-reload"));
    Ok(ExitCode::SUCCESS)
}

fn of_others(path: &Path) -> Ended {
    let path = path.display();
    Ended::refused(format!("{path}: not written by planish-series, or changed since; it is left alone"))
}

/// The program that the unit starts: by its whole name, and where a service sees it.
fn program(options: &InstallOptions) -> Result<PathBuf, Ended> {
    if let Some(program) = &options.program {
        return match program.is_absolute() {
            true => Ok(program.clone()),
            false => Err(Ended::usage(format!("{}: say the whole path of the program", program.display()))),
        };
    }
    let program = std::env::current_exe().and_then(fs::canonicalize);
    let program =
        program.map_err(|error| Ended::failed(format!("cannot tell where this program is: {error}")))?;
    if is_hidden(&program) {
        let text = format!(
            "{}: a service sees no homes and has a /tmp of its own; install it in /usr/local/bin, or say --program",
            program.display()
        );
        return Err(Ended::refused(text));
    }
    Ok(program)
}

#[expect(clippy::disallowed_methods, reason = "a unit of our own, below a root that was named")]
fn read(path: &Path) -> Result<Option<String>, Ended> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Ended::failed(format!("cannot read {}: {error}", path.display()))),
    }
}

/// Puts a file in the place of the one before, as a whole.
fn write(path: &Path, text: &str) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(folder)?;
    let next = path.with_extension("service.planish-new");
    let mut file = fs::File::create(&next)?;
    file.set_permissions(fs::Permissions::from_mode(0o644))?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&next, path)?;
    fs::File::open(folder)?.sync_all()
}

fn make_link(link: &Path, target: &str) -> io::Result<()> {
    let folder = link.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(folder)?;
    match fs::remove_file(link) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    symlink(target, link)?;
    fs::File::open(folder)?.sync_all()
}
