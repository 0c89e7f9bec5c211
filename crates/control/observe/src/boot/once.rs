//! What a trial boot takes on this machine, or why none can be made.
//!
//! The one danger of an entry for once is that nothing takes its name away: then the machine boots it for ever, and a
//! machine that does not come up with it stays so. So a trial boot is refused wherever that cannot be told: a menu that
//! does not clear the name or that nothing tells to be read, a file system that GRUB cannot write, a loader that does
//! not say what it can do.

use planish_boot::Entry;
use planish_boot::once::{self, Copy, FILE_ID};
use planish_boot::order;
use planish_host::{Host, ReadError};
use planish_model::{
    Astray, BootLoader, CarriedOver, DefaultEntry, OnceBoot, OnceFormat, OnceRefusal, OnceWrite, marked,
    place,
};

use super::{BY_HAND, CMDLINES, ROOTS, cure_of, entries, folder_of_entries, grub, has_systemd_boot};

/// Variables of systemd-boot: <https://systemd.io/BOOT_LOADER_INTERFACE>.
const VARIABLES: &str = "/sys/firmware/efi/efivars";
const VENDOR: &str = "4a67b082-0a4c-41cf-b6c7-440b29bb8c4f";
/// Of `LoaderFeatures`: an entry for once, and the order of entries that puts ours last.
const FEATURES: u64 = (1 << 3) | (1 << 8);

/// File systems whose data GRUB can write where it lies. Those that copy on write, or keep checksums of data, it only
/// reads (`grub-core/fs`, `util/grub.d/00_header.in`).
const WRITABLE: [&str; 6] = ["ext2", "ext3", "ext4", "xfs", "vfat", "msdos"];
/// Names of disks and their partitions. What the kernel puts together of several (`dm-0`, `md0`) GRUB only reads.
const PLAIN: [&str; 6] = ["sd", "vd", "xvd", "hd", "nvme", "mmcblk"];

fn refused(reason: impl Into<String>, cure: &str) -> OnceRefusal {
    OnceRefusal { reason: reason.into(), cure: cure.to_owned() }
}

/// Without a trial boot the arguments can still be given, for every boot.
const FOR_EVER: &str = "apply --persist without --once gives the arguments to every boot";

fn variable(name: &str) -> String {
    format!("{VARIABLES}/{name}-{VENDOR}")
}

/// What is to be written for a boot with these arguments, of a loader that was found before.
///
/// # Errors
/// Why no trial boot can be made here, and what to do instead.
pub fn look(host: &Host, loader: &BootLoader, arguments: &str) -> Result<OnceBoot, OnceRefusal> {
    let files = match loader {
        BootLoader::Known(files) => files,
        BootLoader::Outside { reason } => {
            return Err(refused(reason.clone(), "give the arguments to whatever starts this kernel"));
        }
        BootLoader::Unknown { reason, cure } => return Err(refused(reason.clone(), cure)),
    };
    // Of the entry for once it is GRUB that takes the name away.
    if let Some(Astray { reason, cure }) = &files.unproven {
        return Err(refused(reason.clone(), cure));
    }
    let is_grub = files.name.starts_with("GRUB");
    match grub::MENUS.into_iter().find(|path| is_grub && host.exists(path)) {
        Some(menu) => with_grub(host, menu, arguments),
        None => with_systemd_boot(host, arguments),
    }
}

/// The name of the entry that the loader takes at the next boot, by what a step of the journal has written: `None`
/// where it takes none, or another one.
#[must_use]
pub fn seen(host: &Host, format: OnceFormat, path: &str) -> Option<String> {
    match format {
        OnceFormat::Block => {
            host.read_lossy(path).ok().and_then(|block| once::armed(&block).map(str::to_owned))
        }
        OnceFormat::Firmware => text_of(host, path),
        OnceFormat::Menu | OnceFormat::Entry => None,
    }
}

/// The entry that the loader takes when nothing names one for once; `None` where nobody can tell.
#[must_use]
pub fn default_entry(host: &Host, loader: &BootLoader) -> Option<DefaultEntry> {
    let BootLoader::Known(files) = loader else { return None };
    let of_file = |found: &entries::Found| {
        let (title, line) = once::default_in_entry(&host.read_lossy(&found.path).ok()?)?;
        Some(DefaultEntry { title, path: found.path.clone(), line })
    };
    if !files.name.starts_with("GRUB") {
        let root = ROOTS.into_iter().find(|root| has_systemd_boot(host, root))?;
        let (_, found) = folder_of_entries(host, root).ok()??;
        let wanted = wanted_of_systemd(host, root).ok()?;
        let named = entries::by_systemd(&found, wanted.as_deref());
        return of_file(named.or_else(|| entries::by_systemd(&found, None))?);
    }
    let menu = grub::MENUS.into_iter().find(|path| host.exists(path))?;
    let text = host.read_lossy(menu).ok()?;
    let block = host.read_lossy(&grub::block_beside(host, menu)).unwrap_or_default();
    let saved = planish_boot::env_value(&block, "saved_entry").map(|(value, _)| value);
    if !planish_boot::generated::reads_entries(&text) {
        let (title, line) = once::default_in_menu(&text, saved)?;
        return Some(DefaultEntry { title, path: menu.to_owned(), line });
    }
    let found = entries::read(host, grub::ENTRIES).ok()?;
    let default = once::default_of(&text, saved).or(saved).unwrap_or("0");
    // A name that no entry has stands for the first one.
    let entry = entries::by_grub(&found, default).or_else(|| entries::by_grub(&found, "0"))?;
    let DefaultEntry { title, path, line } = of_file(entry)?;
    let given = planish_boot::env_value(&block, "kernelopts").map_or("", |(value, _)| value);
    Some(DefaultEntry { title, path, line: line.replace("$kernelopts", given) })
}

/// Every line of a boot loader's files, or of what they are made from, that gives the mark of a trial boot: all but the
/// entry for once itself. A kernel that is installed in such a boot gets `/proc/cmdline` from kernel-install(8) where
/// no `/etc/kernel/cmdline` is, and with it the arguments, for as long as that kernel is there.
#[must_use]
pub fn carried_over(host: &Host) -> Vec<CarriedOver> {
    let named = |folder: &str, ending: &str| {
        let names = host.list(folder).into_iter().filter(|name| name.ends_with(ending));
        names.map(|name| format!("{folder}/{name}")).collect::<Vec<_>>()
    };
    let mut paths: Vec<String> = grub::MENUS.map(str::to_owned).into();
    paths.extend(grub::MENUS.map(|menu| grub::block_beside(host, menu)));
    paths.extend([grub::DEFAULTS, CMDLINES[0], CMDLINES[1]].map(str::to_owned));
    paths.extend(named(grub::DROP_INS, ".cfg"));
    paths.extend(ROOTS.iter().flat_map(|root| named(&format!("{root}/loader/entries"), ".conf")));
    paths.retain(|path| !path.ends_with(&format!("/{FILE_ID}.conf")));
    let mut found = Vec::new();
    for path in paths {
        let text = host.read_lossy(&path).unwrap_or_default();
        // A comment gives nothing to any boot. GRUB's environment block has no other than its head and its padding.
        let is_read = |line: &&str| !line.trim_start().starts_with('#');
        for (index, line) in text.lines().enumerate().filter(|(_, line)| is_read(line)) {
            // A shell's quotes end where the arguments do.
            let plain = line.replace(['"', '\''], " ");
            found.extend(marked(&plain).last().map(|name| CarriedOver {
                source: format!("{path}:{}", index + 1),
                name: name.to_owned(),
                entry: None,
                arguments: String::new(),
                tag: None,
            }));
        }
    }
    found
}

fn with_grub(host: &Host, menu: &str, arguments: &str) -> Result<OnceBoot, OnceRefusal> {
    let unread = |error: ReadError| refused(error.to_string(), &cure_of(&error));
    let text = host.read(menu).map_err(unread)?;
    if !once::takes_next_entry(&text) {
        let reason =
            format!("{menu} does not take `next_entry` out before it boots it, so that it would stay");
        return Err(refused(reason, FOR_EVER));
    }
    if !once::reads_custom(&text) {
        let cure = "have /etc/grub.d/41_custom write its part of the menu again";
        return Err(refused(format!("{menu} does not read custom.cfg behind its entries"), cure));
    }
    let env = grub::block_beside(host, menu);
    is_writable_by_grub(host, &env)?;
    let block = match host.read(&env) {
        Err(error) if error.is_absent() => String::new(),
        read => read.map_err(unread)?,
    };
    if let Some(name) = once::armed(&block) {
        let cure = format!("take it out first: grub-editenv {env} unset next_entry");
        return Err(refused(format!("{env} has GRUB boot `{name}` next"), &cure));
    }
    let custom = menu.replace("grub.cfg", "custom.cfg");
    if host.read_lossy(&custom).is_ok_and(|text| once::has_entry(&text)) {
        return Err(refused(format!("{custom} has an entry of a trial boot"), "take that part out of it"));
    }
    let saved = planish_boot::env_value(&block, "saved_entry").map(|(value, _)| value);
    let copy = match planish_boot::generated::reads_entries(&text) {
        true => of_entries(host, &text, saved, |entry| once::of_entry(entry, &text, arguments))?,
        false => once::of_menu(&text, saved, arguments)
            .map_err(|odd| refused(format!("{menu} is not understood: {odd}"), BY_HAND))?,
    };
    let write = |format, path, text| OnceWrite { format, path, text };
    let writes = vec![
        write(OnceFormat::Menu, custom, copy.text),
        write(OnceFormat::Block, env, once::MENU_ID.to_owned()),
    ];
    Ok(OnceBoot { copied: copy.title, writes })
}

/// A copy of the default of GRUB's entries of files, as GRUB finds it: by a number in its own order, by a name or by a
/// title. Where it would take the first one for want of what is asked for, another kernel would be tried than was
/// meant.
fn of_entries(
    host: &Host,
    menu: &str,
    saved: Option<&str>,
    copy: impl Fn(&str) -> Result<Copy, planish_boot::Odd>,
) -> Result<Copy, OnceRefusal> {
    let cure = "name an entry as it is called: grub2-set-default ID, of those that grubby --info=ALL tells";
    let found = entries::read(host, grub::ENTRIES).map_err(|odd| odd.refusal())?;
    let default = once::default_of(menu, saved)
        .ok_or_else(|| refused("the menu does not say what is booted by default", cure))?;
    if default.parse::<usize>().is_ok() && !once::begins_with_files(menu) {
        let reason =
            format!("the default is number {default} of a menu that does not begin with entries of files");
        return Err(refused(reason, cure));
    }
    let entry = entries::by_grub(&found, default);
    let entry = entry.ok_or_else(|| {
        refused(format!("the default is `{default}`, which no entry of a file is called"), cure)
    })?;
    copied(host, entry, copy)
}

fn copied(
    host: &Host,
    default: &entries::Found,
    copy: impl Fn(&str) -> Result<Copy, planish_boot::Odd>,
) -> Result<Copy, OnceRefusal> {
    let text = host.read(&default.path).map_err(|error| refused(error.to_string(), BY_HAND))?;
    copy(&text).map_err(|odd| refused(format!("{} is not understood: {odd}", default.path), BY_HAND))
}

/// The mount that a path lies on: `/proc/self/mountinfo`.
struct Mount {
    device: String,
    kind: String,
    source: String,
    options: String,
}

impl Mount {
    fn of(host: &Host, path: &str) -> Option<Self> {
        let text = host.read_lossy("/proc/self/mountinfo").ok()?;
        let mut best: Option<(usize, Self)> = None;
        for (point, mount) in text.lines().filter_map(Self::line) {
            let is_below = point == "/" || path.strip_prefix(point).is_some_and(|rest| rest.starts_with('/'));
            // Of two mounts at one point the later one is seen.
            if is_below && best.as_ref().is_none_or(|(length, _)| *length <= point.len()) {
                best = Some((point.len(), mount));
            }
        }
        best.map(|(_, mount)| mount)
    }

    /// Where a line mounts what: proc(5).
    fn line(line: &str) -> Option<(&str, Self)> {
        let (front, back) = line.split_once(" - ")?;
        let mut front = front.split(' ').skip(2);
        let (device, point) = (front.next()?, front.nth(1)?);
        let mut back = back.split(' ');
        let [device, kind, source, options] =
            [device, back.next()?, back.next()?, back.next()?].map(str::to_owned);
        Some((point, Self { device, kind, source, options }))
    }

    /// The name of the device, without its folder.
    fn name(&self, host: &Host) -> String {
        // As the kernel calls a root that no initrd mounted.
        let found =
            (self.source == "/dev/root").then(|| host.canonical(&format!("/sys/dev/block/{}", self.device)));
        let path = found.flatten().unwrap_or_else(|| self.source.clone());
        let folder = path.strip_prefix("/dev/").filter(|rest| rest.contains('/'));
        folder.unwrap_or_else(|| path.rsplit('/').next().unwrap_or_default()).to_owned()
    }
}

/// Refuses an environment block that GRUB cannot write: it could not take the name of the entry away.
fn is_writable_by_grub(host: &Host, env: &str) -> Result<(), OnceRefusal> {
    let Some(mount) = Mount::of(host, env) else {
        return Err(refused(format!("nothing tells on which file system {env} is"), FOR_EVER));
    };
    let why = if !WRITABLE.contains(&mount.kind.as_str()) {
        format!("is on {}, which GRUB only reads", mount.kind)
    } else if !PLAIN.iter().any(|prefix| mount.name(host).starts_with(prefix)) {
        format!("is on {}, which GRUB only reads (LVM, RAID, encryption)", mount.source)
    } else if mount.options.split(',').any(|option| option == "data=journal") {
        "is on a file system whose journal would write the old text over GRUB's".to_owned()
    } else {
        return Ok(());
    };
    let reason = format!("{env} {why}: it could not take the entry's name out, and would boot it for ever");
    Err(refused(reason, FOR_EVER))
}

fn with_systemd_boot(host: &Host, arguments: &str) -> Result<OnceBoot, OnceRefusal> {
    let bits = host.read_bytes(&variable("LoaderFeatures")).ok();
    let bits = bits.and_then(|bytes| Some(u64::from_le_bytes(bytes.get(4..12)?.try_into().ok()?)));
    if bits.is_none_or(|bits| bits & FEATURES != FEATURES) {
        let reason = "systemd-boot does not say that it can boot an entry once and sort the others before it \
                      (LoaderFeatures; version 250 and later do, where efivarfs is mounted)";
        return Err(refused(reason, FOR_EVER));
    }
    if let Some(name) = told(host, "LoaderEntryOneShot")? {
        return Err(refused(
            format!("the firmware has systemd-boot take `{name}` next"),
            "take it out first: bootctl set-oneshot ''",
        ));
    }
    let root = ROOTS.into_iter().find(|root| has_systemd_boot(host, root));
    let root = root.ok_or_else(|| refused("systemd-boot is not where it is looked for", BY_HAND))?;
    let (folder, entries) = folder_of_entries(host, root)
        .map_err(|odd| odd.refusal())?
        .ok_or_else(|| refused(format!("{root} has no entries of files"), BY_HAND))?;
    let wanted = wanted_of_systemd(host, root)?;
    let file = format!("{FILE_ID}.conf");
    let takes_ours = |pattern: &str| {
        [&file, FILE_ID].iter().any(|name| place::matches(&pattern.to_lowercase(), &name.to_lowercase()))
    };
    let ours = Entry::default();
    let comes_first = |other: &entries::Found| {
        order::by_systemd((other.id(), &other.entry), (FILE_ID, &ours)).is_ge()
            || order::is_used_up(other.id())
    };
    if wanted.as_deref().is_some_and(takes_ours) || entries.iter().any(comes_first) {
        return Err(refused("the entry for once might become the default of systemd-boot", FOR_EVER));
    }
    let selected = text_of(host, &variable("LoaderEntrySelected"));
    let is_file = |name: &str| entries.iter().any(|entry| entry.id() == name.trim_end_matches(".conf"));
    if let Some(name) = selected.filter(|name| !is_file(name) && !name.starts_with(FILE_ID)) {
        let reason =
            format!("this boot came from `{name}`, which is no file in {folder} that could be copied");
        return Err(refused(reason, FOR_EVER));
    }
    let path = format!("{folder}/{file}");
    if host.exists(&path) {
        return Err(refused(format!("{path} is there already"), "take it away first"));
    }
    let default = entries::by_systemd(&entries, wanted.as_deref()).ok_or_else(|| {
        let name = wanted.as_deref().unwrap_or_default();
        let cure = "name one of those that bootctl list tells: bootctl set-default ID";
        refused(format!("the default is `{name}`, which no entry of a file is called"), cure)
    })?;
    let copy = copied(host, default, |entry| once::file_of_entry(entry, arguments))?;
    let write = |format, path, text| OnceWrite { format, path, text };
    let writes = vec![
        write(OnceFormat::Entry, path, copy.text),
        write(OnceFormat::Firmware, variable("LoaderEntryOneShot"), file),
    ];
    Ok(OnceBoot { copied: copy.title, writes })
}

/// The same, with the file of this root.
///
/// # Errors
/// As [`default_of_systemd`].
pub(super) fn wanted_of_systemd(host: &Host, root: &str) -> Result<Option<String>, OnceRefusal> {
    let config = host.read_lossy(&format!("{root}/loader/loader.conf")).unwrap_or_default();
    let in_file = planish_boot::fields(&config).find(|(_, key, _)| *key == "default");
    default_of_systemd(host, in_file.map(|(_, _, value)| value.to_owned()))
}

/// What systemd-boot is told to take: by the firmware, else by its file, `@saved` being the entry that it took last.
///
/// # Errors
/// A variable that cannot be read, a word of systemd-boot that is not known here, and an `@saved` of which nothing
/// tells what it is.
pub(super) fn default_of_systemd(
    host: &Host,
    in_file: Option<String>,
) -> Result<Option<String>, OnceRefusal> {
    let cure = "name an entry: bootctl set-default ID";
    let wanted = told(host, "LoaderEntryDefault")?.or(in_file);
    match wanted.as_deref().map(str::trim) {
        Some("@saved") => match told(host, "LoaderEntryLastBooted")? {
            Some(name) => Ok(Some(name)),
            None => {
                Err(refused("the default is the entry that was booted last, and nothing tells which", cure))
            }
        },
        Some(word) if word.starts_with('@') => {
            Err(refused(format!("the default of systemd-boot is `{word}`, which is not known here"), cure))
        }
        _ => Ok(wanted),
    }
}

/// What a variable of the firmware says; `None` where it is not set.
fn told(host: &Host, name: &str) -> Result<Option<String>, OnceRefusal> {
    let path = variable(name);
    match host.read_bytes(&path) {
        Err(error) if error.is_absent() => Ok(None),
        Err(error) => Err(refused(error.to_string(), &cure_of(&error))),
        Ok(_) => match text_of(host, &path) {
            Some(text) => Ok(Some(text)),
            None => Err(refused(format!("{path} is set, and its text is not understood"), FOR_EVER)),
        },
    }
}

/// The text of a variable of the firmware; `None` where it is not set.
fn text_of(host: &Host, path: &str) -> Option<String> {
    let bytes = host.read_bytes(path).ok()?;
    let units = bytes.get(4..)?.chunks_exact(2).map(|unit| u16::from_le_bytes([unit[0], unit[1]]));
    let units: Vec<u16> = units.take_while(|unit| *unit != 0).collect();
    String::from_utf16(&units).ok().filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests;
