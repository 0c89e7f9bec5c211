//! Programs that a trial starts: how they begin, what they cost, and an end that is certain.
//!
//! Every child leads its own process group and dies with the thread that started it; what it has started is ended by
//! [`family`], so that neither a crash nor a `kill -9` of planish leaves a server behind. A trial therefore starts its
//! children from one thread only, the one that calls it.

mod bound;
mod family;
mod once;
mod talk;

use std::collections::BTreeMap;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use planish_sys::child::{ChildSetup, prepare};
use planish_sys::{CpuSet, NodeSet, Policy};

pub(crate) use family::watch_descendants;
pub(crate) use once::{Finished, run_once};
pub(crate) use talk::{Service, Talker};

use crate::sample::ArmError;

/// How long a killed child may take to be gone, and how often waiting looks at the stop flag.
const STEP: Duration = Duration::from_millis(100);

/// Environment variable that pads the environment of a start.
///
/// The size of the environment moves the stack, and with it conclusions (Mytkowicz et al., ASPLOS 2009):
/// every start of every arm draws its own size.
const PADDING: &str = "PLANISH_TRIAL_PADDING";

/// Largest padding in bytes.
const PADDING_MAX: usize = 4096;

/// The padding of one start, which the seed of the trial gives back. `start` tells starts apart: what two of them
/// share would be the layout of both.
pub(crate) fn padding(seed: u64, start: u64) -> usize {
    planish_stats::Rng::stream(seed, start).below(PADDING_MAX + 1)
}

/// Output that is kept of a program; what comes after it is read and dropped.
const OUTPUT_BYTES_MAX: u64 = 16 << 20;

/// A program and the circumstances under which it starts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Launch {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Environment variables on top of ours.
    pub env: BTreeMap<String, String>,
    /// CPUs that it may run on.
    pub cpus: Option<CpuSet>,
    /// Node that all its memory must come from.
    pub node: Option<u32>,
    /// User and group that it runs as, when that is not ours.
    pub user: Option<(u32, u32)>,
    /// Folder in which it starts.
    pub folder: Option<PathBuf>,
    /// Whether its standard error goes to ours, for a person to see, instead of being kept for messages.
    pub loud: bool,
}

impl Launch {
    /// A launch of a program with arguments, and nothing else.
    #[must_use]
    pub fn of(command: Vec<String>) -> Self {
        Self { command, ..Self::default() }
    }

    /// The program's name, for messages.
    pub(crate) fn name(&self) -> &str {
        self.command.first().map_or("", |program| {
            Path::new(program).file_name().and_then(|name| name.to_str()).unwrap_or(program)
        })
    }

    /// Starts it, with its output for us.
    fn spawn(&self, padding: usize, stdin: Stdio) -> std::io::Result<Child> {
        let mut command = self.command(padding);
        family::spawn(command.stdin(stdin).stdout(Stdio::piped()))
    }

    /// The command with everything but its standard input and output.
    fn command(&self, padding: usize) -> Command {
        let program = self.command.first().map_or("", String::as_str);
        let mut command = Command::new(program);
        command.args(self.command.iter().skip(1)).envs(&self.env);
        command.env(PADDING, "x".repeat(padding));
        if let Some(folder) = &self.folder {
            command.current_dir(folder);
        }
        // The death of the parent is asked for after this change of user, which would take it back.
        if let Some((user, group)) = self.user {
            command.uid(user).gid(group);
        }
        command.stderr(if self.loud { Stdio::inherit() } else { Stdio::piped() });
        let nodes = |node: u32| Policy::Bind(std::iter::once(node).collect::<NodeSet>());
        let setup = ChildSetup {
            die_with_parent: true,
            new_group: true,
            warden: family::warden_socket(),
            cpus: self.cpus.clone(),
            policy: self.node.map(nodes),
            ..ChildSetup::default()
        };
        prepare(&mut command, setup);
        command
    }
}

/// A stream that is read to its end on a thread of its own, so that the child never blocks on a full pipe.
#[derive(Debug)]
pub(crate) struct Drain(Receiver<String>);

/// Longest wait for the end of a stream whose program has ended: a process that has left the group, such as a
/// daemon, may hold the pipe open for ever.
const LAST_WORDS_WAIT: Duration = Duration::from_secs(1);

impl Drain {
    /// Starts to read.
    pub(crate) fn of(stream: Option<impl Read + Send + 'static>) -> Self {
        let (sender, receiver) = channel();
        std::thread::spawn(move || {
            let Some(mut stream) = stream else { return };
            let mut bytes = Vec::new();
            // A read error ends the output like its end does: the exit status tells what happened.
            let _ = stream.by_ref().take(OUTPUT_BYTES_MAX).read_to_end(&mut bytes);
            let _ = std::io::copy(&mut stream, &mut std::io::sink());
            // Nobody waits any more: then nobody wants the text.
            let _ = sender.send(String::from_utf8_lossy(&bytes).into_owned());
        });
        Self(receiver)
    }

    /// The text, once the stream has ended; empty when it does not end.
    pub(crate) fn text(self) -> String {
        self.0.recv_timeout(LAST_WORDS_WAIT).unwrap_or_default()
    }
}

/// The last words of a program, for a message.
pub(crate) fn last_words(stderr: &str) -> String {
    let words: Vec<&str> = stderr.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let tail = words[words.len().saturating_sub(3)..].join("; ");
    tail.chars().take(400).collect()
}

/// The reason and the cure that a refusing program gives in its last words: `error: ...` and `hint: ...`
/// where it speaks like planish, else all of them.
pub(crate) fn refusal(stderr: &str) -> ArmError {
    let said = |label: &str| stderr.lines().rev().find_map(|line| line.trim().strip_prefix(label));
    let reason = said("error: ").map_or_else(|| last_words(stderr), str::to_owned);
    ArmError::Unavailable { reason, cure: said("hint: ").unwrap_or_default().to_owned() }
}

/// The end of a program in words.
pub(crate) fn ended(name: &str, status: std::process::ExitStatus, stderr: &str) -> String {
    let words = last_words(stderr);
    let colon = if words.is_empty() { "" } else { ": " };
    format!("`{name}` ended with {status}{colon}{words}")
}
