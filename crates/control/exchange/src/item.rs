//! What goes out: one value for one place, or for the places of a shell pattern.

use planish_model::{Knob, KnobId, cards, mounts, place};

use crate::error::ExchangeError;
use crate::pattern;
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
    /// What to give the kernel at boot, for what counts from a boot on: a boot parameter, or the file of one that is
    /// read when devices are set up.
    pub argument: Option<String>,
    /// What a drop-in of systemd says, for a setting of a unit: a section and its lines, as an apply writes them.
    pub drop_in: Option<String>,
}

/// What a place is to other tools.
#[derive(Debug)]
pub(crate) enum Kind<'a> {
    /// The kernel command line.
    Boot,
    /// A key of `sysctl`, for what lies below /proc/sys.
    Sysctl(String),
    /// A setting of network cards.
    Card(cards::Command<'a>),
    /// An option of mounts, which a call changes.
    Mount,
    /// Threads of the kernel that are scheduled.
    Threads(Threads<'a>),
    /// What counts while a process holds a file open.
    Held,
    /// What the default group of resctrl has: several lines of one file.
    Share,
    /// What systemd gives a unit, by a drop-in.
    Unit(Unit<'a>),
    /// Any other file.
    File,
}

/// A setting of a unit.
#[derive(Debug)]
pub(crate) struct Unit<'a> {
    /// The unit, with its kind, or a pattern of units: `mongod.service`.
    pub(crate) name: &'a str,
    /// The section that it stands in, with its brackets.
    pub(crate) section: &'a str,
    /// Its lines.
    pub(crate) lines: &'a str,
}

impl Unit<'_> {
    /// Whether it is one unit, and no pattern of some.
    pub(crate) fn is_one(&self) -> bool {
        !self.name.contains(['*', '?', '['])
    }
}

impl Item {
    /// Items for the places of a knob that `only` means, or for all: one as a rule, several where no one pattern means
    /// them, and none where no place of the knob can be called so.
    #[must_use]
    pub fn meant(knob: &Knob, only: Option<&str>, value: &str) -> Vec<Self> {
        pattern::paths(&knob.path, only).iter().map(|place| Self::at(knob, place, value)).collect()
    }

    /// An item for one place.
    #[must_use]
    pub fn at(knob: &Knob, place: &str, value: &str) -> Self {
        let value = knob.r#type.normal(value);
        let argument = knob.is_given_at_boot().then(|| knob.argument(&value)).flatten();
        let drop_in = knob.is_own_file().then(|| knob.r#type.in_file(place, &value));
        Self { knob: knob.id.clone(), place: place.to_owned(), value, argument, drop_in }
    }

    /// What its place is: of one kind, and of no other.
    pub(crate) fn kind(&self) -> Kind<'_> {
        if self.is_boot() {
            return Kind::Boot;
        }
        if let Some(path) = self.place.strip_prefix("/proc/sys/") {
            // Dots of interface names would be taken for separators: then both readers take slashes.
            let key = if path.contains('.') { path.to_owned() } else { path.replace('/', ".") };
            return Kind::Sysctl(key);
        }
        if let Some(command) = cards::command(&self.place, &self.value) {
            return Kind::Card(command);
        }
        if let Some(threads) = Threads::of(&self.place, &self.value) {
            return Kind::Threads(threads);
        }
        if let Some(unit) = self.of_unit() {
            return Kind::Unit(unit);
        }
        match self.place.as_str() {
            place::RESCTRL_DEFAULT => Kind::Share,
            at if at.starts_with(place::HELD) => Kind::Held,
            at if mounts::is_option(at) => Kind::Mount,
            _ => Kind::File,
        }
    }

    /// Whether it is set by the kernel command line and not by a file, though it may be shown by one.
    #[must_use]
    pub fn is_boot(&self) -> bool {
        self.place.starts_with("cmdline:") || self.argument.is_some()
    }

    /// What sets it where it is a setting of network cards.
    pub(crate) fn of_card(&self) -> Option<cards::Command<'_>> {
        if let Kind::Card(command) = self.kind() { Some(command) } else { None }
    }

    /// The threads of the kernel that it schedules.
    pub(crate) fn of_threads(&self) -> Option<Threads<'_>> {
        if let Kind::Threads(threads) = self.kind() { Some(threads) } else { None }
    }

    /// The unit of systemd that it is a setting of.
    pub(crate) fn of_unit(&self) -> Option<Unit<'_>> {
        let (section, lines) = self.drop_in.as_deref()?.split_once('\n')?;
        let (folder, _) = self.place.rsplit_once('/')?;
        let name = folder.rsplit('/').next()?.strip_suffix(".d")?;
        Some(Unit { name, section, lines })
    }

    /// A line of a shell script that sets it, where it is no file.
    pub(crate) fn command_line(&self) -> Option<String> {
        match self.kind() {
            Kind::Card(command) => Some(command.line()),
            Kind::Threads(threads) => Some(threads.line()),
            Kind::Mount => mounts::line(&self.place, &self.value),
            _ => None,
        }
    }

    /// The longest wake-up in microseconds, which tuned holds by a word of its own.
    pub(crate) fn longest_wake_up(&self) -> Option<&str> {
        (self.place == place::DMA_LATENCY).then_some(self.value.as_str())
    }

    /// Whether it is a file that one line sets, and `sysctl` does not.
    pub(crate) fn is_other_file(&self) -> bool {
        matches!(self.kind(), Kind::File)
    }

    /// The key of `sysctl`, for what lies below /proc/sys.
    pub(crate) fn sysctl_key(&self) -> Option<String> {
        if let Kind::Sysctl(key) = self.kind() { Some(key) } else { None }
    }

    /// Refuses values and places that a shell, a template or a parser would take apart.
    pub(crate) fn refuse_odd(&self) -> Result<(), ExchangeError> {
        let plain = |c: char| c.is_ascii_alphanumeric() || " .,:;_+-/()=*[]{}@~".contains(c);
        let is_plain = |c: char| plain(c) || c == '%' && mounts::is_option(&self.place);
        if !self.value.chars().all(is_plain) || self.value.trim().is_empty() {
            return Err(ExchangeError::Value { knob: self.knob.clone(), value: self.value.clone() });
        }
        // A mount is named by a path of its own, which goes out in quotes.
        let of_path = |c: char| c.is_ascii_alphanumeric() || "/.:_+-@,*?".contains(c);
        if mounts::is_option(&self.place) || self.place.replace("[0-9]*", "").chars().all(of_path) {
            return Ok(());
        }
        Err(ExchangeError::Place { knob: self.knob.clone(), place: self.place.clone() })
    }
}
