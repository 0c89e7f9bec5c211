//! From the name that another tool gives a setting to the knob and the places of it that are meant.

use planish_model::{Catalogue, Class, Knob, KnobId, ValueType, bootline, nearest, page_pool, place};

/// A value for some places of a knob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) knob: KnobId,
    /// As in a profile: a pattern for the first hole, or `hole=pattern`.
    pub(crate) only: Option<String>,
}

/// The knob behind a path of the kernel's files, which may have shell wildcards.
pub(crate) fn of_path(catalogue: &Catalogue, path: &str) -> Result<Address, String> {
    let path = &unquoted(path);
    if path.starts_with("/dev/cpu_dma_latency") {
        return Err("a number of bytes that a program keeps open: want cpu.dma_latency_us, which holds one"
            .to_owned());
    }
    // A row of the user's own may have another name for its places than the rows that come with planish.
    let canonical = place::canonical(path);
    let names = [path.as_str(), canonical.as_ref()];
    let mut why = None;
    for knob in catalogue.knobs().filter(|knob| knob.boot_parameter().is_none()) {
        match names.iter().find_map(|name| only(&knob.path, name)) {
            Some(Ok(only)) => return Ok(Address { knob: knob.id.clone(), only }),
            Some(Err(reason)) => why = Some(reason),
            None => {}
        }
    }
    Err(why.unwrap_or_else(|| unknown(catalogue, &canonical)))
}

/// A path as it is without quotes; of the default group of resctrl, by the name that its knob has.
fn unquoted(path: &str) -> String {
    match path.trim_matches(['"', '\'']) {
        "/sys/fs/resctrl/schemata" => place::RESCTRL_DEFAULT.to_owned(),
        path => path.to_owned(),
    }
}

/// What fills the holes of a pattern at a path with wildcards: nothing when it means every place, and one pattern
/// at most, since a profile can name one. `None` when the path is none of the pattern's.
fn only(pattern: &str, path: &str) -> Option<Result<Option<String>, String>> {
    let mut meant: Vec<(&str, String)> = Vec::new();
    let (mut wild, mut parts) = (pattern.split('/'), path.split('/'));
    let mut holes = 0;
    loop {
        let (part, actual) = match (wild.next(), parts.next()) {
            (Some(part), Some(actual)) => (part, actual),
            (None, None) => break,
            _ => return None,
        };
        let mut captured = place::captures(part, actual)?;
        // Where a number stands this is how exports say a star.
        let is_number = |hole: usize| hole > 0 || !part.starts_with('{');
        let stars =
            captured.iter_mut().enumerate().filter(|(hole, one)| is_number(*hole) && one.1 == "[0-9]*");
        stars.for_each(|(_, one)| one.1 = "*");
        let is_first = holes == 0;
        holes += captured.len();
        let named: Vec<_> = captured.iter().enumerate().filter(|(_, (_, filling))| *filling != "*").collect();
        match named.as_slice() {
            [] => {}
            [(0, (_, filling))] if is_first => meant.push(("", (*filling).to_owned())),
            [(_, (_, filling))] => meant.push((name_of(part, named[0].0), (*filling).to_owned())),
            // Of two holes of one component the whole of it is named, as a plan shows it.
            _ => meant.push((if is_first { "" } else { name_of(part, 0) }, actual.to_owned())),
        }
    }
    Some(match meant.as_slice() {
        [] => Ok(None),
        [(_, filling)] if is_odd(filling) => Err(format!(
            "the pattern `{filling}` is none that every tool reads alike: write one line for each place"
        )),
        [("", filling)] => Ok(Some(filling.clone())),
        [(hole, filling)] => Ok(Some(format!("{hole}={filling}"))),
        _ => Err("names one place by two numbers: a profile names places by one".to_owned()),
    })
}

/// Whether a filling is more than a pattern, or one that tools read differently: Python has no classes, and takes `^`
/// for a character.
fn is_odd(filling: &str) -> bool {
    filling.contains(['{', '}', '=', '\\']) || filling.contains("[^") || filling.contains("[:")
}

/// The name of a hole of a component.
fn name_of(part: &str, hole: usize) -> &str {
    let after = part.split('{').nth(hole + 1).unwrap_or_default();
    after.split('}').next().unwrap_or_default()
}

fn unknown(catalogue: &Catalogue, path: &str) -> String {
    // In paths that share most of their folders everything is near: the name of the file itself must be.
    let name = |path: &'_ str| path.rsplit('/').next().unwrap_or_default().to_owned();
    let is_near = |other: &&str| nearest(&name(path), [name(other).as_str()]).is_some();
    let paths = catalogue.knobs().map(|knob| knob.path.as_str());
    match nearest(path, paths.filter(is_near)) {
        Some(near) => format!("no knob has this place; the nearest is {near}"),
        None => "no knob has this place: planish knobs lists those that there are".to_owned(),
    }
}

/// The knob behind an argument of the kernel command line. `page_bytes` is the size of the pages that `hugepages=`
/// counts.
pub(crate) fn knob_of_argument<'c>(
    catalogue: &'c Catalogue,
    argument: &str,
    page_bytes: Option<u64>,
) -> Result<&'c Knob, String> {
    let (name, _) = bootline::parts(argument);
    let fits = |knob: &&Knob| {
        let parameter = knob.boot_parameter();
        parameter.is_some_and(|(own, size)| {
            bootline::same_name(own, name) && size.is_none_or(|size| page_bytes == bootline::size(size))
        })
    };
    // Last a run-time knob whose row names the argument: the value is set without a boot.
    let by_row = |knob: &&Knob| knob.boot_arg.as_deref().is_some_and(|own| bootline::same_name(own, name));
    let found = catalogue.knobs().find(fits).or_else(|| catalogue.knobs().find(by_row));
    found.ok_or_else(|| "no knob is set by this argument of the kernel command line".to_owned())
}

/// What an argument of the kernel command line wants of its knob.
pub(crate) fn of_argument(knob: &Knob, argument: &str) -> Result<String, String> {
    // `rcu_nocbs` alone sets no CPU apart, `rcu_nocbs=1` does so with CPU 1.
    let value = match bootline::parts(argument).1 {
        Some(value) => value,
        None if matches!(knob.r#type, ValueType::Flag { .. }) => "1",
        None => return Err(format!("has no value behind a `=`, and none of {} is the same", knob.id)),
    };
    Ok(match value {
        "enable" if knob.boot_parameter().is_none() => "1",
        "disable" if knob.boot_parameter().is_none() => "0",
        other => other,
    }
    .to_owned())
}

/// Whether a knob may be wanted at all, and what there is to say of a value that may.
pub(crate) fn judge(knob: &Knob, value: &str) -> Result<Option<String>, String> {
    match knob.class {
        Class::Action => return Err("acts when written and has no old value to put back".to_owned()),
        Class::Oneway => return Err("cannot be set back before a reboot".to_owned()),
        _ => {}
    }
    let is_number =
        matches!(knob.r#type, ValueType::Int { .. } | ValueType::Unsigned { .. } | ValueType::Ints { .. });
    if let Some(why) = octal(value).filter(|_| is_number) {
        return Err(why);
    }
    // The kernel compares the whole word that is written (`sysfs_streq`): brackets are how it shows which one counts.
    if matches!(knob.r#type, ValueType::Choice { .. }) && value.contains(['[', ']']) {
        let word = knob.r#type.normal(value);
        return Err(format!("`{}` is how the kernel shows a choice: it takes {word} alone", value.trim()));
    }
    knob.validate(value).map_err(|error| error.to_string())?;
    // A plan refuses the whole profile for it.
    if let Some(near) = knob.word_in_other_case(value.trim()) {
        return Err(format!("`{}` is no word of {}; did you mean `{near}`?", value.trim(), knob.id));
    }
    Ok(match (&knob.needs.dead_since, knob.class) {
        (Some(dead), _) => Some(format!("the kernel ignores it since Linux {dead}")),
        // Some of its values weaken one, and others are the whole of it: the row does not tell them apart.
        (None, Class::Security) => Some(format!("sets how far a protection goes: --allow-knob {}", knob.id)),
        (None, Class::Availability) => Some("may stall the host: --allow availability".to_owned()),
        (None, Class::Durability) => Some("may lose data at a crash: --allow durability".to_owned()),
        _ => None,
    })
}

/// Why a number is none that all of the kernel reads alike: below `/proc/sys` and in arguments `010` is eight
/// (`proc_get_long` in kernel/sysctl.c takes any base), in most of `/sys` it is ten.
fn octal(value: &str) -> Option<String> {
    let is_octal = |word: &&str| {
        let digits = word.trim_start_matches(['-', '+']);
        digits.len() > 1 && digits.starts_with('0') && digits.bytes().all(|byte| byte.is_ascii_digit())
    };
    let word = value.split_whitespace().find(is_octal)?;
    Some(format!("`{word}` begins with a zero, by which the kernel may read it as octal: write it without"))
}

/// Numbers of sixteen (`0x400000`) as numbers of ten, where there are some: below `/proc/sys` the kernel takes both
/// (`proc_get_long` in kernel/sysctl.c), elsewhere it may take ten alone.
pub(crate) fn in_ten(knob: &Knob, value: &str) -> Option<String> {
    let is_number =
        matches!(knob.r#type, ValueType::Int { .. } | ValueType::Unsigned { .. } | ValueType::Ints { .. });
    let hex = |word: &str| {
        let (sign, digits) = word.strip_prefix('-').map_or(("", word), |digits| ("-", digits));
        let digits = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X"))?;
        let number = u64::from_str_radix(digits, 16).ok().filter(|_| !digits.starts_with('+'))?;
        Some(format!("{sign}{number}"))
    };
    let is_taken = is_number && knob.path.starts_with("/proc/sys/");
    if !is_taken || !value.split_whitespace().any(|word| hex(word).is_some()) {
        return None;
    }
    let words = value.split_whitespace().map(|word| hex(word).unwrap_or_else(|| word.to_owned()));
    Some(words.collect::<Vec<_>>().join(" "))
}

/// The file that has its own size in its name, for the one below `/proc/sys` that counts pages above a pool of the size
/// `page`.
pub(crate) fn surplus(path: &str, page: &str) -> Option<String> {
    let is_surplus = path == "/proc/sys/vm/nr_overcommit_hugepages";
    page_pool::in_sysfs(path, Some(page_kib(page).filter(|_| is_surplus)? * 1024))
}

/// The knob of a pool, the bytes of its pages, and its node where it is of one.
type Pool = (KnobId, u64, Option<u32>);

/// Whether a file counts pages of the default size, which a host has: its name tells none.
pub(crate) fn is_of_default_page(path: &str) -> bool {
    let name = path.strip_prefix("/proc/sys/vm/");
    name.is_some_and(|name| ["nr_hugepages", "nr_hugepages_mempolicy"].contains(&name))
}

/// KiB of a page, as `default_hugepagesz=` says its size (`memparse` in lib/cmdline.c).
fn page_kib(size: &str) -> Option<u64> {
    let (number, unit) = size.split_at(size.find(|c: char| !c.is_ascii_digit())?);
    let unit = match unit {
        "k" | "K" => 1,
        "m" | "M" => 1 << 10,
        "g" | "G" => 1 << 20,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(unit)
}

/// A pool in the words of a profile: others raise and lower pools too, so a profile says its own need. `page` is the
/// default size.
pub(crate) fn pool(
    catalogue: &Catalogue,
    path: &str,
    pages: &str,
    page: &str,
) -> Option<Result<Pool, String>> {
    const MIB: u64 = 1 << 20;
    let path = &place::canonical(path);
    let kib: u64 = if is_of_default_page(path) {
        let Some(kib) = page_kib(page) else {
            return Some(Err(format!("counts pages of the default size, and `{page}` is none")));
        };
        kib
    } else {
        let (_, rest) = path.split_once("/hugepages/")?;
        rest.strip_prefix("hugepages-")?.strip_suffix("kB/nr_hugepages")?.parse().ok()?
    };
    let id = match kib.checked_mul(1024).map(|bytes| bytes / MIB).unwrap_or_default() {
        2 => "hugepages.2m",
        32 => "hugepages.32m",
        512 => "hugepages.512m",
        1024 => "hugepages.1g",
        _ => return Some(Err(format!("no knob for pools of {kib} KiB pages"))),
    };
    let node = path.strip_prefix("/sys/devices/system/node/node").and_then(|rest| rest.split('/').next());
    let Ok(node) = node.map(str::parse).transpose() else {
        return Some(Err("names the pools of many nodes at once: write one line for each".to_owned()));
    };
    if let Some(why) = octal(pages) {
        return Some(Err(why));
    }
    let Some(need_bytes) = pages.trim().parse::<u64>().ok().and_then(|pages| pages.checked_mul(kib * 1024))
    else {
        return Some(Err(format!("`{pages}` is not a whole number of pages")));
    };
    let id = KnobId::new(id);
    Some(match catalogue.knob(&id) {
        Ok(_) => Ok((id, need_bytes, node)),
        Err(error) => Err(error.to_string()),
    })
}
