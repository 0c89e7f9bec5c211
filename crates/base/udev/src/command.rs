//! What the commands do that a rule starts, as far as a text tells it.

/// A piece of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// `ethtool -G eth0 rx 4096`: the words behind the program.
    Ethtool(Vec<String>),
    /// `sysctl -w vm.swappiness=1`: a key and its value.
    Sysctl(String, String),
    /// `echo none > /sys/block/sda/queue/scheduler`: a path, the value, and whether nothing else in the command may
    /// keep it from being written, or write another one.
    Write(String, String, bool),
}

/// What a command sets, in its order. A program whose doings are not in its words sets nothing that is known.
#[must_use]
pub fn commands(command: &str) -> Vec<Command> {
    let words = words(command);
    let name = |word: &String| word.rsplit('/').next().unwrap_or_default().to_owned();
    let Some(program) = words.first().map(name) else { return Vec::new() };
    let arguments = &words[1..];
    match program.as_str() {
        "ethtool" => vec![Command::Ethtool(arguments.to_vec())],
        "sysctl" => of_sysctl(arguments),
        "blockdev" => of_blockdev(arguments),
        "sh" | "bash" | "dash" if arguments.first().is_some_and(|option| option.starts_with('-')) => {
            arguments.get(1).map(|script| of_script(script)).unwrap_or_default()
        }
        _ => Vec::new(),
    }
}

/// The words of a command as udev takes it apart: quotes of both kinds hold one together.
#[must_use]
pub fn words(command: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = command.trim_start();
    while let Some(first) = rest.chars().next() {
        let quote = Some(first).filter(|first| "'\"".contains(*first));
        let (word, after) = match quote {
            Some(quote) => rest[1..].split_once(quote).unwrap_or((&rest[1..], "")),
            None => rest.split_once(char::is_whitespace).unwrap_or((rest, "")),
        };
        words.push(word.to_owned());
        rest = after.trim_start();
    }
    words
}

fn of_sysctl(arguments: &[String]) -> Vec<Command> {
    // `-p FILE` and `--system` read files, which say by themselves what they set.
    let is_known = |word: &&String| !word.starts_with('-') || matches!(word.as_str(), "-w" | "-q" | "-e");
    if !arguments.iter().all(|word| is_known(&word)) {
        return Vec::new();
    }
    let settings = arguments.iter().filter_map(|word| word.split_once('='));
    settings.map(|(key, value)| Command::Sysctl(key.trim().to_owned(), value.trim().to_owned())).collect()
}

/// `blockdev --setra 256 /dev/sda`: in sectors of 512 bytes.
fn of_blockdev(arguments: &[String]) -> Vec<Command> {
    let [option, sectors, device] = arguments else { return Vec::new() };
    let disk = device.strip_prefix("/dev/").filter(|disk| !disk.contains('/'));
    match (option.as_str(), sectors.parse::<u64>(), disk) {
        ("--setra", Ok(sectors), Some(disk)) => {
            let path = format!("/sys/block/{disk}/queue/read_ahead_kb");
            vec![Command::Write(path, (sectors / 2).to_string(), true)]
        }
        _ => Vec::new(),
    }
}

/// What a script of a shell writes by redirection. One `echo` and nothing else is sure to; all else may.
fn of_script(script: &str) -> Vec<Command> {
    let spaced = script.replace(">>", " > ").replace('>', " > ").replace([';', '&', '|', '(', ')'], " ; ");
    let words: Vec<&str> = spaced.split_whitespace().map(|word| word.trim_matches(['"', '\''])).collect();
    let mut found = Vec::new();
    for (at, _) in words.iter().enumerate().filter(|(_, word)| **word == ">") {
        let Some(path) = words.get(at + 1) else { continue };
        let begin = words[..at].iter().rposition(|word| matches!(*word, "echo" | "printf"));
        let said = begin.map(|begin| &words[begin + 1..at]).unwrap_or_default();
        let said = said.strip_prefix(&["-n"]).unwrap_or(said);
        let is_plain = !said.is_empty() && said.iter().all(|word| !word.contains([';', '$', '`', '\\']));
        let value = if is_plain { said.join(" ") } else { "?".to_owned() };
        let is_all = begin == Some(0) && words[0] == "echo" && at + 2 == words.len();
        let is_sure = is_plain && is_all && !path.contains(['$', '*', '`']) && !script.contains(">>");
        found.push(Command::Write((*path).to_owned(), value, is_sure));
    }
    found
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn write(path: &str, value: &str, is_sure: bool) -> Command {
        Command::Write(path.to_owned(), value.to_owned(), is_sure)
    }

    #[test]
    fn commands_are_taken_apart_as_far_as_they_are_known() {
        let path = "/sys/block/sda/queue/scheduler";
        let owned = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
        for (command, found) in [
            ("/sbin/ethtool -G eth0 rx 512", vec![Command::Ethtool(owned(&["-G", "eth0", "rx", "512"]))]),
            ("/sbin/sysctl -w vm.a=1", vec![Command::Sysctl("vm.a".to_owned(), "1".to_owned())]),
            ("/sbin/sysctl -p /etc/sysctl.d/x.conf", vec![]),
            (
                "/sbin/blockdev --setra 256 /dev/sda",
                vec![write("/sys/block/sda/queue/read_ahead_kb", "128", true)],
            ),
            ("/bin/sh -c 'echo none > /sys/block/sda/queue/scheduler'", vec![write(path, "none", true)]),
            ("/bin/sh -c 'echo -n none >/sys/block/sda/queue/scheduler'", vec![write(path, "none", true)]),
            (
                "/bin/sh -c 'test -e /x && echo none > /sys/block/sda/queue/scheduler'",
                vec![write(path, "none", false)],
            ),
            ("/bin/sh -c 'cat /x > /sys/block/sda/queue/scheduler'", vec![write(path, "?", false)]),
            ("/bin/sh -c 'echo $(cat /x) > /sys/block/sda/queue/scheduler'", vec![write(path, "?", false)]),
            ("/usr/local/bin/tune sda", vec![]),
            ("", vec![]),
        ] {
            assert_eq!(commands(command), found, "{command}");
        }
    }

    proptest! {
        #[test]
        fn odd_commands_are_passed_over(command in "(sh -c|echo|>|'|\"|[a-z$;&| ]){0,20}") {
            let _ = commands(&command);
        }
    }
}
