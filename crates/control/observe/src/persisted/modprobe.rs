//! `modprobe.d(5)`: options that a module gets when it is loaded, from the start of the initramfs to a firewall that
//! comes last. A module may be loaded before a file writes its parameter or after it, or lie in the kernel itself,
//! which reads none of these: what is said here may be so.

use planish_host::Host;

use super::{Setting, files};

const FOLDERS: [&str; 5] = [
    "/etc/modprobe.d",
    "/run/modprobe.d",
    "/usr/local/lib/modprobe.d",
    "/usr/lib/modprobe.d",
    "/lib/modprobe.d",
];

/// The parameters that options set, each where it is shown.
pub(super) fn settings(host: &Host) -> Vec<Setting> {
    let texts = files(host, &FOLDERS, ".conf").into_iter();
    let texts = texts.filter_map(|file| host.read_lossy(&file).ok().map(|text| (file, text)));
    texts.flat_map(|(file, text)| parsed(&text, &file)).collect()
}

/// The same of one file. A backslash at its end goes on with the next line.
fn parsed(text: &str, file: &str) -> Vec<Setting> {
    let (mut settings, mut whole, mut begun) = (Vec::new(), String::new(), 0);
    for (number, line) in text.lines().enumerate() {
        if whole.is_empty() {
            begun = number + 1;
        }
        if let Some(more) = line.strip_suffix('\\') {
            whole += more;
            whole.push(' ');
            continue;
        }
        whole += line;
        settings.extend(of_line(&std::mem::take(&mut whole), &format!("{file}:{begun}")));
    }
    settings.extend(of_line(&whole, &format!("{file}:{begun}")));
    settings
}

/// `options MODULE NAME=VALUE NAME...`: a name alone is a switch that is on.
fn of_line(line: &str, source: &str) -> Vec<Setting> {
    let mut words = line.split_ascii_whitespace();
    let (Some("options"), Some(module)) = (words.next(), words.next()) else { return Vec::new() };
    let folder = format!("/sys/module/{}/parameters", module.replace('-', "_"));
    let setting = |word: &str| {
        let (name, value) = word.split_once('=').unwrap_or((word, "Y"));
        Setting::new(&format!("{folder}/{}", name.replace('-', "_")), value.trim_matches('"'), source)
    };
    words.map(setting).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_modules_are_read() {
        let text = "# options a b=1\nalias x y\noptions nf_conntrack hashsize=1024\noptions nvme-core \
                    io_timeout=99 \\\n multi-path\noptions\noptions a b=\"c\"\\";
        let told: Vec<(String, String, String)> =
            parsed(text, "/f").into_iter().map(|found| (found.path, found.value, found.source)).collect();
        let one = |path: &str, value: &str, line: usize| {
            (format!("/sys/module/{path}"), value.to_owned(), format!("/f:{line}"))
        };
        let wanted = [
            one("nf_conntrack/parameters/hashsize", "1024", 3),
            one("nvme_core/parameters/io_timeout", "99", 4),
            one("nvme_core/parameters/multi_path", "Y", 4),
            one("a/parameters/b", "c", 7),
        ];
        assert_eq!(told, wanted);
    }
}
