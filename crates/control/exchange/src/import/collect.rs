//! What the lines of a file come to: a later line wins over an earlier one that means the same places, as it does
//! where the file is at home.

use std::collections::BTreeMap;

use planish_model::{Case, Catalogue, Conditions, KnobId, Nodes, Want, units};

use crate::address::{self, Address};
use crate::import::ImportedLine;

/// Collects the values of the lines that are accepted, and the reasons of all others.
pub(crate) struct Collector<'a> {
    catalogue: &'a Catalogue,
    /// Values by knob, in the order of their lines.
    values: BTreeMap<KnobId, Vec<(Option<String>, String)>>,
    pools: BTreeMap<KnobId, Want>,
    lines: Vec<ImportedLine>,
    /// What the file says it is for.
    summary: Option<String>,
}

impl<'a> Collector<'a> {
    pub(crate) fn new(catalogue: &'a Catalogue) -> Self {
        Self { catalogue, values: BTreeMap::new(), pools: BTreeMap::new(), lines: Vec::new(), summary: None }
    }

    /// What the file says it is for; nothing of it is set. That it was imported before is said anew.
    pub(crate) fn sums_up(&mut self, summary: &str) {
        let summary = summary.split("(Imported: ").next().unwrap_or_default().trim();
        self.summary =
            (!summary.is_empty() && !summary.starts_with("Imported: ")).then(|| summary.to_owned());
    }

    pub(crate) fn summary(&self) -> Option<&str> {
        self.summary.as_deref()
    }

    /// A value for a path, which may have wildcards.
    pub(crate) fn path(&mut self, line: usize, path: &str, value: &str) {
        let text = format!("{path} = {value}");
        if let Some(pool) = address::pool(self.catalogue, path, value) {
            return match pool {
                Ok((knob, want)) => self.pool(line, text, knob, want),
                Err(reason) => self.refuse(line, &text, reason),
            };
        }
        match address::of_path(self.catalogue, path) {
            Ok(address) => self.accept(line, text, address, value),
            Err(reason) => self.refuse(line, &text, reason),
        }
    }

    /// A value for the key of `sysctl`.
    pub(crate) fn sysctl(&mut self, line: usize, key: &str, value: &str) {
        self.path(line, &planish_model::place::of_sysctl(key), value);
    }

    /// Arguments of the kernel command line.
    pub(crate) fn arguments(&mut self, line: usize, text: &str) {
        let mut page = None;
        for argument in text.split_whitespace() {
            if let Some(size) = argument.strip_prefix("hugepagesz=") {
                page = Some(size);
                continue;
            }
            match address::of_argument(self.catalogue, argument, page) {
                Ok((address, value)) => self.accept(line, argument.to_owned(), address, &value),
                Err(reason) => self.refuse(line, argument, reason),
            }
        }
    }

    /// A value for a knob that the format names by a word of its own.
    pub(crate) fn knob(&mut self, line: usize, text: &str, id: &str, only: Option<&str>, value: &str) {
        let address = Address { knob: KnobId::new(id), only: only.map(str::to_owned) };
        self.accept(line, text.to_owned(), address, value);
    }

    /// A line that sets nothing we know.
    pub(crate) fn refuse(&mut self, line: usize, text: &str, reason: impl Into<String>) {
        let (text, reason) = (text.trim().to_owned(), Some(reason.into()));
        self.lines.push(ImportedLine { line, text, knob: None, reason });
    }

    fn accept(&mut self, line: usize, text: String, address: Address, value: &str) {
        let Ok(knob) = self.catalogue.knob(&address.knob) else {
            return self.refuse(line, &text, "no such knob");
        };
        let reason = match address::judge(knob, value) {
            Ok(reason) => reason,
            Err(reason) => return self.refuse(line, &text, reason),
        };
        if let Some(twin) = knob.twin.as_ref().filter(|twin| self.values.contains_key(*twin)) {
            self.values.remove(twin);
            lose(&mut self.lines, twin, &format!("line {line} sets its twin, which clears it"));
        }
        let values = self.values.entry(address.knob.clone()).or_default();
        match &address.only {
            // For every place: nothing before it counts.
            None => values.clear(),
            Some(only) => values.retain(|(other, _)| other.as_ref() != Some(only)),
        }
        values.push((address.only, knob.r#type.normal(value)));
        self.lines.push(ImportedLine { line, text, knob: Some(address.knob), reason });
    }

    /// A pool of one node, or of all. A profile gives the nodes that it names the same, so that a line for another node
    /// adds it, and one that would give it another size cannot be kept.
    fn pool(&mut self, line: usize, text: String, knob: KnobId, want: Want) {
        let (Want::Need { need_bytes, nodes }, Some(Want::Need { need_bytes: known_bytes, nodes: known })) =
            (&want, self.pools.get_mut(&knob))
        else {
            return self.keep_pool(line, text, knob, want);
        };
        match (nodes, known) {
            (Nodes::Spread, Nodes::Spread) => self.keep_pool(line, text, knob, want),
            (Nodes::Spread, Nodes::Each(_)) => {
                lose(&mut self.lines, &knob, &format!("line {line} sets the pool of all nodes"));
                self.keep_pool(line, text, knob, want);
            }
            (Nodes::Each(_), Nodes::Spread) => {
                self.refuse(
                    line,
                    &text,
                    "the pool of all nodes is set before, and a profile has one of both",
                );
            }
            (Nodes::Each(new), Nodes::Each(known)) if known == new => self.keep_pool(line, text, knob, want),
            (Nodes::Each(new), Nodes::Each(known)) if need_bytes == known_bytes => {
                new.iter().for_each(|node| {
                    if !known.contains(node) {
                        known.push(*node)
                    }
                });
                self.lines.push(pool_line(line, text, knob));
            }
            (Nodes::Each(_), Nodes::Each(known)) => {
                let have = units::bytes(*known_bytes);
                let known = known.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
                let reason = format!("a profile gives each node the same, and node {known} has {have}");
                self.refuse(line, &text, reason);
            }
        }
    }

    fn keep_pool(&mut self, line: usize, text: String, knob: KnobId, want: Want) {
        self.pools.insert(knob.clone(), want);
        self.lines.push(pool_line(line, text, knob));
    }

    /// The wanted values, and what became of every line.
    pub(crate) fn finish(self) -> (BTreeMap<KnobId, Want>, Vec<ImportedLine>) {
        let wants = self.values.into_iter().filter_map(|(id, values)| Some((id, want(values)?)));
        (wants.chain(self.pools).collect(), self.lines)
    }
}

fn pool_line(line: usize, text: String, knob: KnobId) -> ImportedLine {
    let reason = Some("a pool: raised by this need, and never lowered".to_owned());
    ImportedLine { line, text, knob: Some(knob), reason }
}

/// Lines that set a knob and do not count any more.
fn lose(lines: &mut [ImportedLine], knob: &KnobId, why: &str) {
    for line in lines.iter_mut().filter(|line| line.knob.as_ref() == Some(knob)) {
        line.knob = None;
        line.reason = Some(why.to_owned());
    }
}

/// Of several values the last that means a place counts, in a profile the first.
fn want(values: Vec<(Option<String>, String)>) -> Option<Want> {
    let case = |(only, value)| Case { value, only, needs: Conditions::default() };
    match values.as_slice() {
        [] => None,
        [(None, value)] => Some(match value.parse() {
            Ok(number) => Want::Int(number),
            Err(_) => Want::Text(value.clone()),
        }),
        [_] => values.into_iter().next().map(|one| Want::Case(Box::new(case(one)))),
        _ => Some(Want::Cases(values.into_iter().rev().map(case).collect())),
    }
}
