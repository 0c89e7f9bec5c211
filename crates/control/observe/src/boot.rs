//! Which boot loader starts this machine, which files bring arguments to its kernel, and what the next boot will give.
//!
//! Found by looking alone, and by evidence: a loader's own files, the variable that it left in the firmware, and the
//! word that GRUB puts on every command line. What is not known is said to be so; nothing here guesses.
//!
//! Sources: GRUB manual (Invoking grub-mkconfig), the Boot Loader Specification, systemd-boot(7), kernel-install(8).

pub(crate) mod alone;
pub(crate) mod around;
pub(crate) mod before;
mod entries;
pub(crate) mod grub;
pub(crate) mod lines;
pub(crate) mod once;
mod others;

use planish_host::{Access, Host, ReadError};
use planish_model::{Astray, BootFile, BootFiles, BootFormat, BootLoader, OnceRefusal, bootline};

/// What the source of an argument of the running kernel begins with.
pub const RUNNING: &str = "kernel command line: ";

/// One argument, and who gives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Given {
    pub(crate) argument: String,
    pub(crate) source: String,
}

impl Given {
    /// The arguments of the running kernel.
    pub(crate) fn running(cmdline: &str) -> Vec<Self> {
        Self::all(cmdline, |argument| format!("{RUNNING}{argument}"))
    }

    /// The arguments of a line that has one source.
    fn of_line(line: &str, source: &str) -> Vec<Self> {
        Self::all(line, |_| source.to_owned())
    }

    fn all(line: &str, source: impl Fn(&str) -> String) -> Vec<Self> {
        let given = |argument: &str| Self { argument: argument.to_owned(), source: source(argument) };
        bootline::arguments(line).map(given).collect()
    }
}

/// What the next boot gives the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NextBoot {
    /// What the loader's sources say, in order.
    pub(crate) given: Vec<Given>,
    /// The file to name where they say nothing.
    pub(crate) source: String,
    /// What the menu says that was made of them, where one is made and may be read.
    pub(crate) menu: Option<Vec<Given>>,
    /// What a file of ours gives, and a later assignment takes away: with the file and line of that.
    pub(crate) lost: Vec<(Given, String)>,
}

/// A boot loader and what it will do.
#[derive(Clone, Debug, Default)]
pub(crate) struct Boot {
    pub(crate) loader: BootLoader,
    /// `None` where nobody can tell.
    pub(crate) next: Option<NextBoot>,
}

impl Boot {
    fn unknown(reason: impl Into<String>, cure: &str) -> Self {
        Self { loader: BootLoader::Unknown { reason: reason.into(), cure: cure.to_owned() }, next: None }
    }

    /// Why no trial boot can be made on such a machine.
    fn refusal(&self) -> OnceRefusal {
        let (reason, cure) = match &self.loader {
            BootLoader::Unknown { reason, cure } => (reason.clone(), cure.clone()),
            _ => (String::from("its boot loader is not known"), BY_HAND.to_owned()),
        };
        OnceRefusal { reason, cure }
    }

    fn unreadable(path: &str, error: &ReadError) -> Self {
        let reason = match std::error::Error::source(error) {
            Some(why) => format!("cannot read {path}: {why}"),
            None => error.to_string(),
        };
        Self::unknown(reason, &cure_of(error))
    }
}

/// The cure of a file of a boot loader that cannot be read.
fn cure_of(error: &ReadError) -> String {
    match error {
        ReadError::NotText { path, .. } => {
            format!("have that line in UTF-8, or without the byte: {path} is text for whoever changes it")
        }
        ReadError::Denied { .. } => "ask as root: sudo planish ...".to_owned(),
        // Root is not told to be root.
        ReadError::Absent { path } | ReadError::Io { path, .. } => {
            format!("see to it that {path} can be read")
        }
    }
}

/// Why what was not found may be here nevertheless: one of these files is in a folder that is root's alone, as
/// distributions have `/boot/grub2` and the partition of the firmware. Whoever sees no menu there is not told that
/// there is none.
fn hidden(host: &Host, files: impl IntoIterator<Item = String>) -> Option<Boot> {
    files.into_iter().find_map(|path| match host.read(&path) {
        Err(error @ ReadError::Denied { .. }) => {
            let (folder, _) = path.rsplit_once('/')?;
            Some(Boot::unreadable(folder, &error))
        }
        _ => None,
    })
}

/// What `bootctl install` writes beside systemd-boot, wherever that may be.
fn files_of_systemd() -> impl Iterator<Item = String> {
    ROOTS.into_iter().map(|root| format!("{root}/loader/loader.conf"))
}

const BY_HAND: &str = "give the arguments to the boot loader by hand";
/// Where systemd-boot looks, and where distributions mount what it looks at.
const ROOTS: [&str; 3] = ["/efi", "/boot", "/boot/efi"];
/// What loaders leave in the firmware: <https://systemd.io/BOOT_LOADER_INTERFACE>.
const LOADER_INFO: &str = "/sys/firmware/efi/efivars/LoaderInfo-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f";
/// Looks for the boot loader. `cmdline` is the running kernel's, `container` the evidence for one.
pub(crate) fn look(host: &Host, cmdline: &str, container: Option<&str>) -> Boot {
    if let Some(evidence) = container {
        let reason = format!("a container boots with its host ({evidence})");
        return Boot { loader: BootLoader::Outside { reason }, next: None };
    }
    // Before any file is believed: what lies below an empty place of a mount is nothing that a boot reads.
    if let Some(hidden) = others::unmounted(host, &["/boot"]).or_else(|| others::started_by_image(host)) {
        return hidden;
    }
    let grub = grub::MENUS.into_iter().find(|path| host.exists(path));
    let systemd = ROOTS.into_iter().find(|root| has_systemd_boot(host, root));
    match (grub, systemd) {
        (Some(menu), None) => only_grub(host, menu, cmdline),
        (None, Some(root)) => systemd_boot(host, root),
        (Some(menu), Some(root)) => match started_by_grub(host, cmdline) {
            Some(true) => grub::look(host, menu),
            Some(false) => systemd_boot(host, root),
            None => Boot::unknown(
                "both GRUB and systemd-boot are here, and nothing tells which starts it",
                BY_HAND,
            ),
        },
        (None, None) => neither(host, cmdline),
    }
}

/// GRUB's menu is here and nothing of systemd-boot. The menu may be left over from a loader that was replaced.
fn only_grub(host: &Host, menu: &str, cmdline: &str) -> Boot {
    match started_by_grub(host, cmdline) {
        Some(false) => others::unmounted(host, &ROOTS)
            .or_else(|| hidden(host, files_of_systemd()))
            .unwrap_or_else(|| {
                Boot::unknown(
                    format!("systemd-boot started this machine, and beside {menu} none of its files is here"),
                    "mount the partition of the firmware, on /efi or /boot/efi",
                )
            }),
        Some(true) => grub::look(host, menu),
        None => others::named(host).unwrap_or_else(|| unproven(grub::look(host, menu), menu)),
    }
}

/// The same GRUB, where its files alone are here. It begins every command line with the path of the kernel
/// (`LINUX_IMAGE` of `include/grub/lib/cmdline.h`): a kernel without that was started by the firmware, from outside
/// of this system, or by kexec, and whether a boot to come reads the menu, and takes `next_entry` out of its block,
/// nobody can tell.
fn unproven(mut found: Boot, menu: &str) -> Boot {
    if let BootLoader::Known(files) = &mut found.loader {
        files.unproven = Some(Astray {
            reason: format!(
                "nothing tells that GRUB started this kernel: its command line is without the BOOT_IMAGE= that GRUB \
                 puts there, and {menu} may be left over"
            ),
            cure: "where GRUB does start this machine, have it do so once more, without kexec, and apply then; else \
                   give the arguments to what starts this kernel"
                .to_owned(),
        });
    }
    found
}

fn has_systemd_boot(host: &Host, root: &str) -> bool {
    let name = |name: &String| name.starts_with("systemd-boot") && name.ends_with(".efi");
    host.list(&format!("{root}/EFI/systemd")).iter().any(name)
}

/// Whether GRUB started the running kernel, by what it leaves; `None` where nothing tells.
fn started_by_grub(host: &Host, cmdline: &str) -> Option<bool> {
    if let Ok(bytes) = host.read_bytes(LOADER_INFO) {
        // Two bytes a character, behind four of attributes.
        let text: String = bytes.iter().filter(|byte| **byte != 0).map(|byte| char::from(*byte)).collect();
        if text.contains("systemd-boot") {
            return Some(false);
        }
        if text.contains("GRUB") {
            return Some(true);
        }
    }
    // GRUB gives the path of the kernel, LILO a label.
    let is_path = |argument: &str| {
        let (name, value) = bootline::parts(argument);
        name == "BOOT_IMAGE" && value.is_some_and(|value| value.contains('/'))
    };
    bootline::arguments(cmdline).any(is_path).then_some(true)
}

/// No loader that is known here.
fn neither(host: &Host, cmdline: &str) -> Boot {
    let other = others::named(host).or_else(|| others::menu_of_firmware(host));
    let other = other.or_else(|| others::unmounted(host, &ROOTS));
    let of_loaders = grub::MENUS.map(str::to_owned).into_iter().chain(files_of_systemd());
    let other = other.or_else(|| hidden(host, of_loaders));
    if let Some(other) = other.or_else(|| others::signs(host, cmdline)) {
        return other;
    }
    let kernel = |name: &String| name.starts_with("vmlinuz") || name.starts_with("Image");
    if let Some(name) = host.list("/boot").into_iter().find(kernel) {
        return Boot::unknown(format!("/boot has {name}, and no boot loader that planish knows"), BY_HAND);
    }
    if host.exists("/sys/firmware/efi/efivars") {
        let reason = "the firmware starts this machine, and no boot loader that planish knows was found";
        return Boot::unknown(reason, BY_HAND);
    }
    let reason = "neither kernel nor boot loader is here: they come from outside this system".to_owned();
    Boot { loader: BootLoader::Outside { reason }, next: None }
}

/// The folder of entries of systemd-boot, and what is in it. A second partition may hold them:
/// <https://uapi-group.org/specifications/specs/boot_loader_specification>. It reads both, and sorts what it finds as
/// one list. Where a folder is on no partition that it can look at, nobody boots what is in it
/// ([`others::is_before_linux`]).
///
/// # Errors
/// The machine as one whose loader is not known, where an entry cannot be read, and where two folders have some: which
/// of all is booted next cannot be told from either.
fn folder_of_entries(host: &Host, root: &str) -> Result<Option<(String, Vec<entries::Found>)>, Box<Boot>> {
    let mut found: Option<(String, Vec<entries::Found>)> = None;
    let mut seen = Vec::new();
    let points = ["/boot", "/efi"].into_iter().filter(|point| others::is_before_linux(host, point, root));
    for folder in [root].into_iter().chain(points).map(|point| format!("{point}/loader/entries")) {
        // One partition may be seen at two places.
        let behind = host.canonical(&folder).unwrap_or_else(|| folder.clone());
        if seen.contains(&behind) {
            continue;
        }
        seen.push(behind);
        let entries = entries::read(host, &folder)?;
        match &found {
            _ if entries.is_empty() => {}
            None => found = Some((folder, entries)),
            Some((first, _)) => {
                let reason =
                    format!("{first} and {folder} both have entries, and systemd-boot takes one out of all");
                let cure = "keep them in one of both folders: move them, with their kernels, or take those away that \
                            nobody boots";
                return Err(Box::new(Boot::unknown(reason, cure)));
            }
        }
    }
    Ok(found)
}

/// systemd-boot: entries that are read at boot, and no menu that is made before.
fn systemd_boot(host: &Host, root: &str) -> Boot {
    let (folder, entries) = match folder_of_entries(host, root) {
        Ok(Some(found)) => found,
        Ok(None) => {
            return Boot::unknown(
                format!("systemd-boot has no entries of files in {root}/loader/entries that may be read"),
                others::UKI_CURE,
            );
        }
        Err(odd) => return *odd,
    };
    // What is called as none of them may be an image, or another system.
    let wanted = once::wanted_of_systemd(host, root).ok();
    let wanted = wanted.filter(|wanted| wanted.is_some() || others::images(host).is_empty());
    let next = wanted.and_then(|wanted| entries::by_systemd(&entries, wanted.as_deref()));
    let astray = next.and_then(|next| entries::astray(next, "bootctl set-default ID"));
    let next = next.map(|entry| NextBoot {
        given: entry.given(|_| None),
        source: entry.path.clone(),
        menu: None,
        lost: Vec::new(),
    });
    let mut edited = cmdline_file(host);
    edited.extend(entries::normal(&entries).map(|entry| entries::file(&entry.path)));
    if edited.iter().all(|file| file.format != BootFormat::Entry) {
        return Boot::unknown(format!("{folder} has entries for repairs only"), BY_HAND);
    }
    let is_next_untold = next.is_none();
    let files = BootFiles::of_entries("systemd-boot", edited, is_next_untold, astray);
    Boot { loader: BootLoader::Known(files), next }
}

/// What kernels that are installed later are given: the first of these that is there (`kernel-install(8)`).
const CMDLINES: [&str; 2] = ["/etc/kernel/cmdline", "/usr/lib/kernel/cmdline"];

/// The same, where one is there.
fn cmdline_file(host: &Host) -> Vec<BootFile> {
    let there = CMDLINES.into_iter().find(|path| host.exists(path));
    // Where /usr is read-only nobody changes what the package brought: the entries that are there get them still.
    let is_fixed =
        |path: &&str| path.starts_with("/usr/") && matches!(host.access(path), Access::ReadOnlyMount);
    let there = there.filter(|path| !is_fixed(path));
    let file = |path: &str| BootFile { path: path.to_owned(), format: BootFormat::KernelCmdline };
    there.map(file).into_iter().collect()
}

#[cfg(test)]
mod tests;
