//! What goes out: one value for one place, or for the places of a shell pattern.

use planish_model::{Knob, KnobId, cards, mounts, place};

use crate::error::ExchangeError;
use crate::threads::Threads;

/// One value for the places that a shell pattern means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// The knob.
    pub knob: KnobId,
    /// The place, with shell wildcards where many are meant; `cmdline:NAME` for a boot parameter.
    pub place: String,
    /// The wanted value.
    pub value: String,
    /// What to give the kernel at boot, for a boot parameter.
    pub argument: Option<String>,
}

impl Item {
    /// An item for the places of a knob that `only` means, or for all.
    ///
    /// A hole that follows text stands for a number (`cpu{cpu}`, `state{state}`): a bare star would mean
    /// `cpufreq` too.
    #[must_use]
    pub fn new(knob: &Knob, only: Option<&str>, value: &str) -> Self {
        // A path may well have a sign that stands between a hole and its pattern elsewhere.
        let split = only.filter(|only| !only.starts_with('/')).and_then(|only| only.split_once('='));
        let (meant, pattern) = match only.map(|only| split.unwrap_or(("", only))) {
            Some((hole, pattern)) => (Some(hole), pattern),
            None => (None, ""),
        };
        // A mount is named by its path, too, which is several components; a pattern of paths is told by no place.
        let named = pattern.starts_with('/') && mounts::is_option(&knob.path);
        let of_path = if pattern.contains(['*', '?']) { "*".to_owned() } else { place::mount_name(pattern) };
        let pattern = if named { of_path.as_str() } else { pattern };
        let mut first = true;
        let parts = knob.path.split('/').map(|part| {
            let Some((before, rest)) = part.split_once('{') else { return part.to_owned() };
            let (hole, after) = rest.split_once('}').unwrap_or((rest, ""));
            let is_meant = meant.is_some_and(|meant| meant == hole || meant.is_empty() && first);
            first = false;
            let filling = match is_meant {
                true => pattern,
                false if before.is_empty() => "*",
                false => "[0-9]*",
            };
            format!("{before}{filling}{after}")
        });
        let place = parts.collect::<Vec<_>>().join("/");
        Self::at(knob, &place, value)
    }

    /// An item for one place.
    #[must_use]
    pub fn at(knob: &Knob, place: &str, value: &str) -> Self {
        let value = knob.r#type.normal(value);
        let argument = knob.boot_argument(&value);
        Self { knob: knob.id.clone(), place: place.to_owned(), value, argument }
    }

    /// Whether it is set by the kernel command line and not by a file.
    #[must_use]
    pub fn is_boot(&self) -> bool {
        self.place.starts_with("cmdline:")
    }

    /// What sets it where it is a setting of network cards, which are no files.
    pub(crate) fn of_card(&self) -> Option<cards::Command<'_>> {
        cards::command(&self.place, &self.value)
    }

    /// Whether it is an option of mounts, which a call changes and no file.
    #[must_use]
    pub fn is_mount(&self) -> bool {
        mounts::is_option(&self.place)
    }

    /// The threads of the kernel that it schedules, which are no files.
    pub(crate) fn of_threads(&self) -> Option<Threads<'_>> {
        Threads::of(&self.place, &self.value)
    }

    /// A line of a shell script that sets it, where it is no file.
    pub(crate) fn command_line(&self) -> Option<String> {
        self.of_card()
            .map(|command| command.line())
            .or_else(|| self.of_threads().map(|threads| threads.line()))
    }

    /// Whether it is what the default group of resctrl has, which is several lines of one file.
    #[must_use]
    pub fn is_share(&self) -> bool {
        self.place == place::RESCTRL_DEFAULT
    }

    /// Whether it is a file that neither the kernel command line nor `sysctl` sets.
    pub(crate) fn is_other_file(&self) -> bool {
        !self.is_boot()
            && self.sysctl_key().is_none()
            && self.of_card().is_none()
            && self.of_threads().is_none()
            && !self.is_mount()
    }

    /// The key of `sysctl`, for what lies below /proc/sys.
    pub(crate) fn sysctl_key(&self) -> Option<String> {
        let path = self.place.strip_prefix("/proc/sys/")?;
        // Dots of interface names would be taken for separators: then both readers take slashes.
        Some(if path.contains('.') { path.to_owned() } else { path.replace('/', ".") })
    }

    /// Refuses values that a shell, a template or a parser would take apart.
    pub(crate) fn refuse_odd(&self) -> Result<(), ExchangeError> {
        let plain = |c: char| c.is_ascii_alphanumeric() || " .,:;_+-/()=*[]{}@~".contains(c);
        let is_plain = |c: char| plain(c) || c == '%' && self.is_mount();
        if self.value.chars().all(is_plain) && !self.value.trim().is_empty() {
            return Ok(());
        }
        Err(ExchangeError::Value { knob: self.knob.clone(), value: self.value.clone() })
    }
}
