//! The catalogue as a page: one section a knob, and what each profile wants.

use anyhow::{Context, Result};
use planish_model::{Bound, Catalogue, Knob, Pin};
use std::fmt::Write as _;

/// All knobs by id, then all profiles.
pub fn reference() -> Result<String> {
    let catalogue = Catalogue::embedded().context("load the catalogue")?;
    let mut text = String::from("# Knobs\n\nWritten by `./x docs` from `catalogue/`; do not edit.\n\n");
    text.push_str("| knob | class | why |\n|---|---|---|\n");
    for knob in catalogue.knobs() {
        let (id, why) = (&knob.id, cell(&knob.why));
        writeln!(text, "| [`{id}`](#{}) | {} | {why} |", anchor(id.as_str()), word(&knob.class))?;
    }
    for knob in catalogue.knobs() {
        section(&catalogue, knob, &mut text)?;
    }
    Ok(text)
}

fn section(catalogue: &Catalogue, knob: &Knob, text: &mut String) -> Result<()> {
    write!(text, "\n## {}\n\n{}\n\n", knob.id, knob.why)?;
    let mut row = |name: &str, value: String| writeln!(text, "- **{name}**: {value}");
    row("place", format!("`{}`", knob.path))?;
    row("value", knob.r#type.describe())?;
    row("class", word(&knob.class))?;
    row("takes effect", word(&knob.when))?;
    row("undone by", word(&knob.undo))?;
    row("cost", knob.cost.clone())?;
    if let Some(twin) = &knob.twin {
        row("twin", format!("`{twin}`"))?;
    }
    for (name, others) in [("alias", &knob.alias), ("derived", &knob.derives)] {
        if !others.is_empty() {
            row(name, others.iter().map(|other| format!("`{other}`")).collect::<Vec<_>>().join(", "))?;
        }
    }
    if let Some(Pin { by, at, to }) = &knob.pinned {
        row("pinned", format!("to `{to}` while `{by}` is `{at}`"))?;
    }
    if let Some(bound) = knob.bound {
        row("bound", held_against(bound))?;
    }
    if let Some(limit) = &knob.limit {
        row("bound", format!("what `{limit}` says"))?;
    }
    if knob.between.is_some() {
        row("bound", "the lowest and the highest that this machine has".to_owned())?;
    }
    let conditions = crate::profiles::conditions(&knob.needs);
    if !conditions.is_empty() {
        row("for", conditions.join(", "))?;
    }
    let wanted: Vec<String> = catalogue
        .profile_names()
        .filter(|name| catalogue.profile(name).is_ok_and(|profile| profile.want.contains_key(&knob.id)))
        .map(|name| format!("`{name}`"))
        .collect();
    if !wanted.is_empty() {
        row("wanted by", wanted.join(", "))?;
    }
    row("source", knob.source.clone())?;
    row("proof", knob.proof.clone())?;
    Ok(())
}

/// What a value is held against on its host, as `crates/control/decide/src/bounds.rs` does it.
fn held_against(bound: Bound) -> String {
    let told = match bound {
        Bound::FreeReserve => "5 % of memory, and half of what is available",
        Bound::Watermarks => "1000, and half of what is available: reclaim keeps twice as much free",
        Bound::Threads => "twice the threads that there are; to lower it needs `--allow availability`",
        Bound::OpenFiles => "twice the files that are open; to lower it needs `--allow availability`",
        Bound::Tracked => "twice the connections that are tracked; to lower it needs `--allow availability`",
        Bound::Limit => "to lower it needs `--allow availability`",
        Bound::Largest => "to lower the last number needs `--allow availability`",
        Bound::Ports => {
            "1024 ports stay, all from `net.ipv4.ip_unprivileged_port_start` on; fewer than now need \
             `--allow availability`"
        }
        Bound::Age => "to raise it needs `--allow durability`",
        Bound::Unwritten => {
            "the memory; what its twin gives now, of the memory that is available, is not raised without `--allow-knob`"
        }
        Bound::UnwrittenShare => {
            "to raise it above 40, or above the bytes of its twin that are in force, needs `--allow durability`"
        }
        Bound::Promises => "in mode 2 of `vm.overcommit_memory`: what is promised already, and a tenth more",
        Bound::Kept => "of all units together: what memory can give besides the reserve of the host",
        Bound::Surplus => "what memory can give besides the reserve of the host",
        Bound::WakeUp => "to make wake-ups longer than somebody set needs `--allow availability`",
        Bound::Polls => "0, with which all CPUs poll, needs `--allow availability`",
        Bound::ReadAhead => "a 64th of memory",
        Bound::Table(bytes) => {
            return format!(
                "of {bytes} bytes each at all its places: a 64th of memory, and half of what is available"
            );
        }
        Bound::IpcIds => {
            "32768 identifiers, or 16777216 with the boot parameter `ipcmni_extend`; to lower it needs \
             `--allow availability`"
        }
        Bound::Requests => "2048 where the queue has a scheduler",
        Bound::Buckets => {
            "a 64th of memory, and half of what is available; to lower it needs `--allow availability`"
        }
        Bound::Rests => "0, with which a thread of the kernel never rests, needs `--allow availability`",
        Bound::Turn(most) => return format!("to raise it above {most} needs `--allow availability`"),
        Bound::PagesOfHuge => "one less than the small pages of a huge one",
        Bound::Neighbours => "no threshold is above the next one, of those that stay too",
        Bound::BootCpu => "CPU 0 is not among the CPUs of the group",
        Bound::CpusLeft => "half of the CPUs stay online",
    };
    told.to_owned()
}

/// The word that the catalogue itself uses for a value of one of its small types.
pub fn word(value: &impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        other => format!("{other:?}"),
    }
}

/// A table cell: one line, no bar.
pub fn cell(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

/// The anchor that Markdown renderers make of a heading.
pub fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|letter| letter.is_alphanumeric() || matches!(letter, '-' | '_'));
    kept.collect::<String>().to_lowercase()
}
