//! Consoles on a serial line: whoever prints a message of the kernel there waits until its last character is out, on
//! older kernels with interrupts off (`kernel/printk/printk.c`, `console_unlock`).

use planish_host::Host;
use planish_model::{Observation, bootline};

use super::{Facts, value};
use crate::observe::Shared;

/// Drivers of lines that send one bit after the other, or look as if they did.
const SERIAL: [&str; 3] = ["ttyS", "ttyAMA", "ttyUSB"];

/// The speed of a line whose console says none (`Documentation/admin-guide/serial-console.rst`).
const BAUD: &str = "9600";

pub(super) fn compute(facts: &mut Facts, host: &Host, shared: &Shared, observation: &Observation) {
    let given = given(&shared.cmdline);
    let active = host.read("/sys/class/tty/console/active").ok();
    // Of the consoles that were asked for some have no driver; some come by the firmware's table, and without a speed.
    let names: Vec<&str> = match &active {
        Some(active) => active.split_whitespace().collect(),
        None => given.iter().map(|(name, _)| *name).collect(),
    };
    let is_serial = |name: &&str| {
        let number = SERIAL.iter().find_map(|driver| name.strip_prefix(driver));
        number.is_some_and(|number| !number.is_empty() && number.bytes().all(|c| c.is_ascii_digit()))
    };
    let serial: Vec<&str> = names.into_iter().filter(is_serial).collect();
    let told = |name: &&str| {
        let speed = given.iter().rfind(|(given, _)| given == name).map(|(_, speed)| *speed);
        speed.map_or_else(|| (*name).to_owned(), |speed| format!("{name} at {speed} baud"))
    };
    if active.is_some() || !given.is_empty() {
        facts.number("console.serial_count", Some(serial.len() as f64));
        facts.text("console.serial", Some(serial.iter().map(told).collect::<Vec<_>>().join(", ")));
    }
    let level =
        value(observation, "kernel.printk").and_then(|text| text.split_whitespace().next()?.parse().ok());
    facts.number("kernel.printk_level", level);
}

/// The consoles of a command line with their speed: `console=ttyS0,115200n8`.
fn given(cmdline: &str) -> Vec<(&str, &str)> {
    let console = |argument| match bootline::parts(argument) {
        ("console", Some(value)) => {
            let (name, options) = value.split_once(',').unwrap_or((value, ""));
            let end = options.find(|c: char| !c.is_ascii_digit()).unwrap_or(options.len());
            Some((name, if end == 0 { BAUD } else { &options[..end] }))
        }
        _ => None,
    };
    bootline::arguments(cmdline).filter_map(console).collect()
}

#[cfg(test)]
mod tests {
    use planish_model::{Catalogue, FactValue};

    fn told(cmdline: &str, active: Option<&str>) -> [Option<FactValue>; 3] {
        let files = [
            ("/proc/cmdline", Some(cmdline)),
            ("/proc/sys/kernel/printk", Some("7\t4\t1\t7\n")),
            ("/sys/class/tty/console/active", active),
        ];
        let there: Vec<(&str, &str)> =
            files.into_iter().filter_map(|(path, text)| Some((path, text?))).collect();
        let (_folder, host) = crate::testing::host(&there);
        let facts = crate::observe(&host, &Catalogue::embedded().expect("sound")).facts;
        ["console.serial_count", "console.serial", "kernel.printk_level"].map(|name| facts.get(name).cloned())
    }

    #[test]
    fn serial_lines_are_told_with_their_speed() {
        let number = |number| Some(FactValue::Number(number));
        let text = |text: &str| Some(FactValue::Text(text.to_owned()));
        let cmdline = "quiet console=tty0 console=ttyS0,115200n8";
        assert_eq!(told(cmdline, None), [number(1.0), text("ttyS0 at 115200 baud"), number(7.0)]);
        assert_eq!(told(cmdline, Some("ttyS0 tty0\n"))[1], text("ttyS0 at 115200 baud"));
        assert_eq!(told(cmdline, Some("tty0\n"))[..2], [number(0.0), None], "it has no driver");
        assert_eq!(told("quiet", Some("ttyAMA0\n"))[1], text("ttyAMA0"), "by the firmware's table");
        assert_eq!(told("console=ttyS1", None)[1], text("ttyS1 at 9600 baud"));
        assert_eq!(told("console=tty0 console=hvc0 console=ttySIF0", None)[..2], [number(0.0), None]);
        assert_eq!(told("quiet", None), [None, None, number(7.0)]);
    }
}
