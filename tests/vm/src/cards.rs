//! Settings of network cards on a real kernel: set over netlink by planish, and judged by the older interface, which
//! `card` asks. The cards of the guest lead nowhere and stay down.

use crate::check::{Outcome, Report};
use crate::planish;
use anyhow::{Context, Result, ensure};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

const JUDGE: &str = "/bin/card-glibc";
const PROFILES: &str = "/etc/planish/profiles";

/// What one card is asked to be: the driver that has it, the setting, what is wanted, and what the driver makes of it.
const WISHES: &[(&str, &str, u32, u32)] = &[
    ("vmxnet3", "rings_rx", 512, 512),
    // In steps of 32 (VMXNET3_RING_SIZE_ALIGN).
    ("vmxnet3", "rings_tx", 1000, 1024),
    ("vmxnet3", "feature_gro", 0, 0),
    ("virtio_net", "coalesce_tx_frames", 0, 0),
    ("virtio_net", "feature_gro", 0, 0),
];

/// Every wish that a card of this guest can be asked.
pub fn run_all(report: &mut Report) {
    if !["plan", "apply", "undo"].iter().all(|command| planish::knows(command)) {
        return;
    }
    for wish in WISHES {
        let (driver, name, ..) = wish;
        report.check(&format!("card.{driver}.{name}"), || flip(wish));
    }
    report.check("card.limit", limit);
}

/// apply, look, apply again, undo, look.
fn flip((driver, name, wanted, made): &(&str, &str, u32, u32)) -> Result<Outcome> {
    let Some(card) = card_of(driver)? else {
        return Ok(Outcome::Skip(format!("this guest has no card of {driver}, or nothing to judge it by")));
    };
    let before = judged(&card)?;
    let Some(now) = before.get(*name) else {
        return Ok(Outcome::Skip(format!("{driver} does not tell {name} here")));
    };
    ensure!(now != made, "{card} has {name} {made} already: nothing would be shown");
    write_profile(&card, name, *wanted)?;
    let allow = ["apply", "card", "--yes", "--allow", "availability"];
    // What a card rounds is a finding.
    let exits = if wanted == made { &[0][..] } else { &[1] };
    let applied = planish::json(&allow, exits);
    let seen = applied.and_then(|applied| {
        let after = judged(&card)?;
        ensure!(after.get(*name) == Some(made), "{card}: {after:?}; planish told {}", applied["result"]);
        let again = planish::json(&allow, &[0, 1])?;
        let steps = again["result"]["outcomes"].as_array().map_or(0, Vec::len);
        ensure!(steps == 0, "applied twice, and it wrote again: {}", again["result"]);
        Ok(())
    });
    let undone = planish::json(&["undo"], &[0]);
    seen?;
    let undone = undone?;
    let after = judged(&card)?;
    ensure!(after == before, "{before:?} became {after:?}; planish told {}", undone["result"]);
    Ok(Outcome::Ok(format!("{card}: {now} -> {made} and back")))
}

/// More than the card takes is planned nowhere, and told.
fn limit() -> Result<Outcome> {
    let Some(card) = card_of("vmxnet3")? else {
        return Ok(Outcome::Skip("this guest has no card of vmxnet3".to_owned()));
    };
    let max = *judged(&card)?.get("rings_rx_max").context("no rings_rx_max")?;
    write_profile(&card, "rings_rx", max + 1)?;
    let plan = planish::json(&["plan", "card", "--allow", "availability"], &[3])?;
    let told = plan["result"]["skipped"].to_string();
    ensure!(plan["result"]["steps"].as_array().is_some_and(Vec::is_empty), "{}", plan["result"]);
    ensure!(told.contains(&format!("this device takes {max} at most")), "{told}");
    Ok(Outcome::Ok(format!("{card} takes {max} at most")))
}

/// The card that a driver has.
fn card_of(driver: &str) -> Result<Option<String>> {
    if !Path::new(JUDGE).exists() {
        return Ok(None);
    }
    for entry in fs::read_dir("/sys/class/net").context("list /sys/class/net")?.flatten() {
        let link = fs::read_link(entry.path().join("device/driver"));
        if link.is_ok_and(|link| link.ends_with(driver)) {
            return Ok(entry.file_name().into_string().ok());
        }
    }
    Ok(None)
}

/// What the kernel says of a card by the other interface.
fn judged(card: &str) -> Result<BTreeMap<String, u32>> {
    let output = Command::new(JUDGE).arg(card).output().with_context(|| format!("start {JUDGE}"))?;
    ensure!(output.status.success(), "{JUDGE} {card} left with {}", output.status);
    let text = String::from_utf8_lossy(&output.stdout);
    let row = |line: &str| {
        let (name, value) = line.split_once(' ').with_context(|| format!("{JUDGE} said {line}"))?;
        Ok((name.to_owned(), value.parse().with_context(|| format!("{JUDGE} said {line}"))?))
    };
    text.lines().map(row).collect()
}

fn write_profile(card: &str, name: &str, value: u32) -> Result<()> {
    fs::create_dir_all(PROFILES).with_context(|| format!("make {PROFILES}"))?;
    let text = format!(
        "name = \"card\"\nsummary = \"One setting of one card.\"\n\n[want]\n\
         \"net.{name}\" = {{ value = \"{value}\", only = \"{card}\" }}\n"
    );
    let file = format!("{PROFILES}/card.toml");
    fs::write(&file, text).with_context(|| format!("write {file}"))
}
