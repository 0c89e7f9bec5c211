//! What the lines of a file come to: a later line wins over an earlier one that means the same places, as it does
//! where the file is at home.

use std::collections::BTreeMap;

use planish_model::{Case, Catalogue, Conditions, KnobId, Want};

use crate::address::{self, Address};
use crate::import::ImportedLine;

/// Collects the values of the lines that are accepted, and the reasons of all others.
pub(crate) struct Collector<'a> {
    catalogue: &'a Catalogue,
    /// Values by knob, in the order of their lines.
    values: BTreeMap<KnobId, Vec<(Option<String>, String)>>,
    pools: BTreeMap<KnobId, Want>,
    lines: Vec<ImportedLine>,
}

impl<'a> Collector<'a> {
    pub(crate) fn new(catalogue: &'a Catalogue) -> Self {
        Self { catalogue, values: BTreeMap::new(), pools: BTreeMap::new(), lines: Vec::new() }
    }

    /// A value for a path, which may have wildcards.
    pub(crate) fn path(&mut self, line: usize, path: &str, value: &str) {
        let text = format!("{path} = {value}");
        if let Some(pool) = address::pool(self.catalogue, path, value) {
            return match pool {
                Ok((knob, want)) => {
                    let reason = Some("a pool: raised by this need, and never lowered".to_owned());
                    self.pools.insert(knob.clone(), want);
                    self.lines.push(ImportedLine { line, text, knob: Some(knob), reason });
                }
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
            let late = format!("line {line} sets its twin, which clears it");
            self.values.remove(twin);
            let lost = self.lines.iter_mut().filter(|other| other.knob.as_ref() == Some(twin));
            lost.for_each(|other| {
                other.knob = None;
                other.reason = Some(late.clone());
            });
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

    /// The wanted values, and what became of every line.
    pub(crate) fn finish(self) -> (BTreeMap<KnobId, Want>, Vec<ImportedLine>) {
        let wants = self.values.into_iter().filter_map(|(id, values)| Some((id, want(values)?)));
        (wants.chain(self.pools).collect(), self.lines)
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
