//! How a host gets the arguments of its kernel, and which files planish may change for it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What was found of a boot loader, by looking alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "found")]
pub enum BootLoader {
    /// One whose files planish can change.
    Known(BootFiles),
    /// Nothing that this system could change: a container, or a guest whose kernel comes from outside.
    Outside {
        /// The evidence.
        reason: String,
    },
    /// Something that planish does not know or may not read.
    Unknown {
        /// What was seen.
        reason: String,
        /// What to do about it.
        cure: String,
    },
}

impl Default for BootLoader {
    fn default() -> Self {
        Self::Outside { reason: "no boot loader was looked for".to_owned() }
    }
}

impl BootLoader {
    /// What has the menu made of its sources, as it is typed; `None` where no program makes one.
    #[must_use]
    pub fn menu_cure(&self) -> Option<String> {
        match self {
            Self::Known(files) => files.generator.map(|generator| format!("type `{}`", generator.line())),
            _ => None,
        }
    }
}

/// The files that bring arguments to the kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BootFiles {
    /// The loader, for people.
    pub name: String,
    /// A file that would be planish's alone; then no other is changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own: Option<String>,
    /// Files of others that arguments are put into, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub edited: Vec<BootFile>,
    /// What makes the loader's menu of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generator: Option<Generator>,
    /// Whether nobody can tell which of the entries is booted next: the arguments may be in all of them, and yet it is
    /// not known that the next boot brings them.
    #[serde(skip)]
    pub is_next_untold: bool,
    /// Whether an apply has the menu made of them: then an older menu is somebody's doing. On a recorded host no
    /// program runs.
    #[serde(skip)]
    pub makes_menu: bool,
    /// Why the entry that is booted next gets nothing of what is put into these files, where that is so.
    #[serde(skip)]
    pub astray: Option<Astray>,
    /// Why nobody can tell that this loader started the running kernel, where that is so: its files may be left over
    /// from one that was replaced, and no boot read them.
    #[serde(skip)]
    pub unproven: Option<Astray>,
}

impl BootFiles {
    /// Those of a loader that reads its entries at boot: no menu is made of them, and none of the files is ours alone.
    #[must_use]
    pub fn of_entries(
        name: &str,
        edited: Vec<BootFile>,
        is_next_untold: bool,
        astray: Option<Astray>,
    ) -> Self {
        Self {
            name: name.to_owned(),
            own: None,
            edited,
            generator: None,
            is_next_untold,
            makes_menu: false,
            astray,
            unproven: None,
        }
    }
}

/// Why what is put into the files of a loader may come to no kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Astray {
    /// What was seen, and where that is said.
    pub reason: String,
    /// What to do about it.
    pub cure: String,
}

/// A file of others that arguments are put into.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BootFile {
    /// The file; no link.
    pub path: String,
    /// How arguments are put into it.
    pub format: BootFormat,
}

/// How arguments are put into a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BootFormat {
    /// `/etc/default/grub`.
    GrubDefaults,
    /// GRUB's environment block.
    GrubEnv,
    /// An entry of the Boot Loader Specification.
    Entry,
    /// `/etc/kernel/cmdline`.
    KernelCmdline,
}

impl BootFormat {
    const ALL: [Self; 4] = [Self::GrubDefaults, Self::GrubEnv, Self::Entry, Self::KernelCmdline];

    /// The name that steps of the journal go by: an undo knows the format from it.
    #[must_use]
    pub fn knob(self) -> &'static str {
        match self {
            Self::GrubDefaults => "persist.grub-defaults",
            Self::GrubEnv => "persist.grubenv",
            Self::Entry => "persist.boot-entry",
            Self::KernelCmdline => "persist.kernel-cmdline",
        }
    }

    /// The format of a step of the journal.
    #[must_use]
    pub fn of_knob(knob: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.knob() == knob)
    }
}

/// A program of the distribution that makes `grub.cfg` from its sources. A journal names one of these and never a
/// command: root runs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Generator {
    /// Debian and its children.
    UpdateGrub,
    /// GRUB's own name.
    GrubMkconfig,
    /// The name on distributions that had GRUB 1 beside it.
    Grub2Mkconfig,
}

impl Generator {
    /// All of them, the most specific first.
    pub const ALL: [Self; 3] = [Self::UpdateGrub, Self::GrubMkconfig, Self::Grub2Mkconfig];

    /// The name of the program.
    #[must_use]
    pub fn program(self) -> &'static str {
        match self {
            Self::UpdateGrub => "update-grub",
            Self::GrubMkconfig => "grub-mkconfig",
            Self::Grub2Mkconfig => "grub2-mkconfig",
        }
    }

    /// Its arguments.
    #[must_use]
    pub fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::UpdateGrub => &[],
            Self::GrubMkconfig => &["-o", "/boot/grub/grub.cfg"],
            Self::Grub2Mkconfig => &["-o", "/boot/grub2/grub.cfg"],
        }
    }

    /// What it makes.
    #[must_use]
    pub fn output(self) -> &'static str {
        match self {
            Self::UpdateGrub | Self::GrubMkconfig => "/boot/grub/grub.cfg",
            Self::Grub2Mkconfig => "/boot/grub2/grub.cfg",
        }
    }

    /// As it is typed.
    #[must_use]
    pub fn line(self) -> String {
        let words = [self.program()].into_iter().chain(self.arguments().iter().copied());
        words.collect::<Vec<_>>().join(" ")
    }
}
