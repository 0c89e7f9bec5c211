//! Names of files, as the kernel comes by them.

/// A name in a folder; one of the root, or that may be of any, is no other's.
pub(super) fn below(folder: Option<&str>, name: &str) -> String {
    match folder {
        Some(folder) if !name.starts_with(['/', '*']) => format!("{folder}/{name}"),
        _ => name.to_owned(),
    }
}

/// A path without `//`, `.` and `..`, and whether that is where it leads: behind a link of /sys, `..` is elsewhere.
pub(super) fn plain(path: &str) -> (String, bool) {
    let mut parts: Vec<&str> = Vec::new();
    let mut goes_up = false;
    for part in path.split('/').filter(|part| !part.is_empty() && *part != ".") {
        match part {
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
                goes_up = true;
            }
            ".." if path.starts_with('/') => {}
            part => parts.push(part),
        }
    }
    let root = if path.starts_with('/') { "/" } else { "" };
    let plain = format!("{root}{}", parts.join("/"));
    let is_told = !goes_up || !plain.starts_with("/sys/");
    (plain, is_told)
}

/// The file of a key of `sysctl`, whose dots are slashes where the first of both is a dot (`sysctl.d(5)`).
pub(super) fn of_key(key: &str) -> String {
    let is_dotted = key.find(['.', '/']).is_some_and(|at| key[at..].starts_with('.'));
    let turned = |c: char| match c {
        '.' => '/',
        '/' => '.',
        c => c,
    };
    let path: String = if is_dotted { key.chars().map(turned).collect() } else { key.to_owned() };
    format!("/proc/sys/{}", path.trim_start_matches('/'))
}
