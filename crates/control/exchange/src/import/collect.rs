//! What the lines of a file come to: a later line wins over an earlier one that means the same places, as it does
//! where the file is at home, and the earlier one says so.

use std::collections::{BTreeMap, BTreeSet};

use planish_model::cards::{self, Said};
use planish_model::{
    Case, Catalogue, Conditions, Knob, KnobId, MOVED_WITH_A_SERVICE, NO_SERVICE, Nodes, Profile, Want,
    is_by_size, place,
};
use planish_sorted::{CollectMap as _, SortSmall as _};

use crate::address::{self, Address};
use crate::import::written::Written;
use crate::import::{ImportedLine, Judge, Mistaken};

/// A value for some places of a knob.
struct Value {
    /// As in a profile: a pattern for the first hole, or `hole=pattern`; all places without.
    only: Option<String>,
    text: String,
    /// The index of its line.
    row: usize,
}

/// What a knob's pool is to hold on one node, or on all together.
struct Pool {
    node: Option<u32>,
    total_bytes: u64,
    /// The index of its line.
    row: usize,
}

/// What stands behind the path of one of several files.
const OF_FILE: &str = ": ";

/// The size of a huge page where nothing says one: of x86-64, and of aarch64 with pages of 4 KiB.
pub(super) const PAGE_BY_DEFAULT: &str = "2M";

/// Collects the values of the lines that are accepted, and the reasons of all others.
pub(crate) struct Collector<'a> {
    pub(super) catalogue: &'a Catalogue,
    /// What a plan would refuse, where there is a host to ask.
    judge: Option<&'a dyn Judge>,
    /// Values by knob, in the order of their lines.
    values: BTreeMap<KnobId, Vec<Value>>,
    pools: BTreeMap<KnobId, Vec<Pool>>,
    lines: Vec<ImportedLine>,
    /// The file that is included and its line, `net:5 `, of what comes now; nothing of the file itself.
    pub(super) from: String,
    /// The rows at which files begin, of several that are read together.
    files: Vec<usize>,
    /// `default_hugepagesz=` of the arguments so far.
    pub(super) default_page: Option<String>,
    /// What the file says it is for.
    summary: Option<String>,
    /// Whether lines are come by several times, as in a loop: then each of them is told once.
    is_repeating: bool,
    /// Rows that a later round told anew.
    repeated: BTreeSet<usize>,
    /// Files that a script writes, which count as they are at its end.
    pub(super) written: Written,
    /// What loops and functions of the file's scripts came to so far.
    pub(crate) steps: usize,
}

impl<'a> Collector<'a> {
    pub(crate) fn new(catalogue: &'a Catalogue, judge: Option<&'a dyn Judge>) -> Self {
        Self {
            catalogue,
            judge,
            values: BTreeMap::new(),
            pools: BTreeMap::new(),
            lines: Vec::new(),
            from: String::new(),
            files: Vec::new(),
            default_page: None,
            summary: None,
            is_repeating: false,
            repeated: BTreeSet::new(),
            written: Written::default(),
            steps: 0,
        }
    }

    /// Says which line of an included file all that follows stands in, as it is told before it; nothing of the file
    /// itself, whose lines have their own numbers.
    pub(crate) fn is_from(&mut self, from: &str) {
        from.clone_into(&mut self.from);
    }

    /// Says which of several files all that follows stands in: its lines come behind those of the files before.
    pub(super) fn begins(&mut self, path: &str) {
        self.files.push(self.lines.len());
        self.from = format!("{path}{OF_FILE}");
    }

    /// A text with the included file and its line before it, unless it says them.
    fn told(&self, text: &str) -> String {
        let text = text.trim();
        if text.starts_with(&self.from) { text.to_owned() } else { format!("{}{text}", self.from) }
    }

    /// The line that another one loses to, as it is told.
    pub(super) fn winner(&self, line: usize) -> String {
        match self.from.strip_suffix(OF_FILE) {
            Some(file) => format!("line {line} of {file}"),
            None if self.from.is_empty() => format!("line {line}"),
            None => self.from.trim_end().to_owned(),
        }
    }

    /// Says whether the lines that follow may be come by several times.
    pub(crate) fn repeats(&mut self, is_repeating: bool) {
        self.is_repeating = is_repeating;
    }

    /// How many lines there are so far.
    pub(crate) fn count(&self) -> usize {
        self.lines.len()
    }

    /// Whether there are lines behind so many, and all of them were accepted.
    pub(crate) fn all_accepted(&self, behind: usize) -> bool {
        let lines = &self.lines[behind..];
        !lines.is_empty() && lines.iter().all(ImportedLine::is_accepted)
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
        let page = self.default_page.clone();
        if let Some(pool) =
            address::pool(self.catalogue, path, value, page.as_deref().unwrap_or(PAGE_BY_DEFAULT))
        {
            match pool {
                Ok(pool) => self.pool(line, text, pool),
                Err(reason) => return self.refuse(line, &text, reason),
            }
            if address::is_of_default_page(path) {
                self.remark_page(page.as_deref());
            }
            return;
        }
        let of_pages = address::surplus(path, page.as_deref().unwrap_or(PAGE_BY_DEFAULT));
        match address::of_path(self.catalogue, of_pages.as_deref().unwrap_or(path)) {
            Ok(address) => self.accept(line, text, address, value),
            Err(reason) => self.refuse(line, &text, reason),
        }
        if of_pages.is_some() {
            self.remark_page(page.as_deref());
        }
    }

    /// Says which size of pages a line was taken to count that names none.
    fn remark_page(&mut self, said: Option<&str>) {
        self.remark(match said {
            Some(page) => format!("pages of the default size, which this file makes {page}"),
            None => format!("pages of the default size, taken for {PAGE_BY_DEFAULT}"),
        });
    }

    /// A value for the key of `sysctl`.
    pub(crate) fn sysctl(&mut self, line: usize, key: &str, value: &str) {
        self.path(line, &place::of_sysctl(key), value);
    }

    /// All knobs that there are.
    pub(crate) fn knobs(&self) -> impl Iterator<Item = &'a Knob> + use<'a> {
        self.catalogue.knobs()
    }

    /// Whether there is a knob of this name.
    pub(crate) fn has(&self, id: &str) -> bool {
        self.catalogue.knob(&KnobId::new(id)).is_ok()
    }

    /// Adds what there is to know of the line that was accepted last; of one that was refused nothing.
    pub(super) fn remark(&mut self, said: String) {
        if let Some(row) = self.lines.last_mut().filter(|row| row.is_accepted()) {
            row.reason = Some(row.reason.take().map_or(said.clone(), |reason| format!("{reason}; {said}")));
        }
    }

    /// A value for a knob that the format names by a word of its own.
    pub(crate) fn knob(&mut self, line: usize, text: &str, id: &str, only: Option<&str>, value: &str) {
        let address = Address { knob: KnobId::new(id), only: only.map(str::to_owned) };
        self.accept(line, text.to_owned(), address, value);
    }

    /// A value for a knob of which the format has several in the order of preference, for hosts that offer different
    /// ones. A profile has one: the first that is a value of the knob. That there are others is said.
    pub(crate) fn one_of(&mut self, line: usize, told: &str, id: &str, only: Option<&str>, words: &[&str]) {
        let fits = |word: &&&str| {
            self.catalogue.knob(&KnobId::new(id)).is_ok_and(|knob| self.judged(knob, only, word).is_ok())
        };
        let Some(chosen) = words.iter().find(fits).or(words.first()) else { return };
        self.knob(line, told, id, only, chosen);
        let others: Vec<&str> = words.iter().filter(|word| *word != chosen).copied().collect();
        if !others.is_empty() {
            self.remark(format!("{chosen} of several; a host may want {}", others.join(" or ")));
        }
    }

    /// Values for cards in the words of ethtool, `rx 4096 tx 4096`, for each of these cards or patterns of them.
    pub(crate) fn cards(
        &mut self,
        line: usize,
        told: &str,
        option: &str,
        cards: &[String],
        words: &[String],
    ) {
        for said in cards::settings(option, words) {
            match said {
                Said::Refused { text, reason } => self.refuse(line, &format!("{told} {text}"), reason),
                Said::Value { knob, value, text } => {
                    for card in cards {
                        let only = (card != "*").then_some(card.as_str());
                        self.knob(line, &format!("{told} {text}"), knob, only, &value);
                    }
                }
            }
        }
    }

    /// A line that sets nothing we know.
    pub(crate) fn refuse(&mut self, line: usize, text: &str, reason: impl Into<String>) {
        let (text, reason) = (self.told(text), Some(reason.into()));
        let is_same = |row: &ImportedLine| row.line == line && row.text == text && row.reason == reason;
        if self.is_repeating && self.lines.iter().any(is_same) {
            return;
        }
        self.lines.push(ImportedLine { line, text, knob: None, overridden_by: None, reason });
    }

    /// A line that does not count beside another one, by the rules of its format.
    pub(crate) fn pass_over(&mut self, line: usize, text: &str, by: usize, reason: &str) {
        self.refuse(line, text, reason);
        let row = self.lines.last_mut().expect("it was pushed");
        row.overridden_by = Some(by);
    }

    pub(super) fn accept(&mut self, line: usize, text: String, address: Address, value: &str) {
        let Ok(knob) = self.catalogue.knob(&address.knob) else {
            return self.refuse(line, &text, "no such knob");
        };
        let in_ten = address::in_ten(knob, value);
        let value = in_ten.as_deref().unwrap_or(value);
        let reason = match self.judged(knob, address.only.as_deref(), value) {
            Ok(reason) => reason,
            Err(reason) => return self.refuse(line, &text, reason),
        };
        let (text, winner) = (self.told(&text), self.winner(line));
        let twin = knob.twin.as_ref().and_then(|twin| self.values.remove(twin));
        for value in twin.into_iter().flatten() {
            lose(&mut self.lines, value.row, (line, &winner), "sets its twin, which clears it");
        }
        let (values, mut own) =
            (self.values.entry(address.knob.clone()).or_default(), knob.r#type.normal(value));
        // The kernel adds such arguments up: none takes the place of another.
        if knob.boot_parameter().is_some_and(|(name, _)| is_by_size(name))
            && let Some(before) = values.pop()
        {
            own = format!("{};{own}", before.text);
        }
        for lost in
            values.extract_if(.., |value| place::covers(address.only.as_deref(), value.only.as_deref()))
        {
            let before = &self.lines[lost.row];
            if self.is_repeating && before.line == line && before.text == text {
                self.repeated.insert(lost.row);
            }
            lose(&mut self.lines, lost.row, (line, &winner), &format!("sets it to {own}"));
        }
        values.push(Value { only: address.only, text: own, row: self.lines.len() });
        let knob = Some(address.knob);
        self.lines.push(ImportedLine { line, text, knob, overridden_by: None, reason });
    }

    /// Whether a knob may be wanted at a value, and what there is to say of one that may.
    fn judged(&self, knob: &Knob, only: Option<&str>, value: &str) -> Result<Option<String>, String> {
        let said = address::judge(knob, value)?;
        self.judge.and_then(|judge| judge.alone(knob, only, value)).map_or(Ok(said), Err)
    }

    /// A line that takes back what was said of places of a knob before: the first line that it took back, if any.
    pub(crate) fn take_back(&mut self, line: usize, id: &str, only: Option<&str>) -> Option<usize> {
        let winner = self.winner(line);
        let values = self.values.get_mut(&KnobId::new(id))?;
        let taken = values.extract_if(.., |value| place::covers(only, value.only.as_deref()));
        let rows: Vec<usize> = taken.map(|value| value.row).collect();
        self.lose_all(&rows, line, &winner)
    }

    /// A line `text` that takes back what was said of a path before.
    pub(crate) fn take_back_path(&mut self, line: usize, text: &str, path: &str) {
        let before = match address::pool(self.catalogue, path, "0", PAGE_BY_DEFAULT) {
            Some(pool) => pool.map(|(id, _, node)| self.take_back_pool(line, &id, node)),
            None => address::of_path(self.catalogue, path)
                .map(|place| self.take_back(line, place.knob.as_str(), place.only.as_deref())),
        };
        let why = before.map(|before| match before {
            Some(before) => format!("takes back what line {before} says, and sets nothing"),
            None => "takes back what another file says: a profile wants a value".to_owned(),
        });
        self.refuse(line, text, why.unwrap_or_else(|why| why));
    }

    fn take_back_pool(&mut self, line: usize, id: &KnobId, node: Option<u32>) -> Option<usize> {
        let winner = self.winner(line);
        let taken = self.pools.get_mut(id)?.extract_if(.., |pool| pool.node == node);
        let rows: Vec<usize> = taken.map(|pool| pool.row).collect();
        self.lose_all(&rows, line, &winner)
    }

    fn lose_all(&mut self, rows: &[usize], line: usize, winner: &str) -> Option<usize> {
        rows.iter().for_each(|row| lose(&mut self.lines, *row, (line, winner), "takes it back"));
        rows.first().map(|row| self.lines[*row].line)
    }

    /// Says of a line that lost to one before it that it counts in the turn of the line `first`.
    pub(crate) fn has_turn_of(&mut self, line: usize, first: usize) {
        let is_lost =
            |row: &&mut ImportedLine| row.line == line && row.overridden_by.is_some_and(|by| by < line);
        if let Some(reason) = self.lines.iter_mut().find(is_lost).and_then(|row| row.reason.as_mut()) {
            *reason += &format!("; it counts in the place of line {first}, which says the same");
        }
    }

    /// A pool of one node, or of all: a profile has one of both.
    fn pool(&mut self, line: usize, text: String, (id, total_bytes, node): (KnobId, u64, Option<u32>)) {
        let row = self.lines.len();
        let (text, winner) = (self.told(&text), self.winner(line));
        let pools = self.pools.entry(id.clone()).or_default();
        if node.is_some() && pools.first().is_some_and(|pool| pool.node.is_none()) {
            let reason = "the pool of all nodes is set before, and a profile has one of both";
            return self.refuse(line, &text, reason);
        }
        let why = if node.is_some() { "sets it again" } else { "sets the pool of all nodes" };
        for lost in pools.extract_if(.., |pool| node.is_none() || pool.node == node) {
            let before = &self.lines[lost.row];
            if self.is_repeating && before.line == line && before.text == text {
                self.repeated.insert(lost.row);
            }
            lose(&mut self.lines, lost.row, (line, &winner), why);
        }
        pools.push(Pool { node, total_bytes, row });
        let reason = Some("a pool: raised to this size, and never lowered".to_owned());
        self.lines.push(ImportedLine { line, text, knob: Some(id), overridden_by: None, reason });
    }

    /// Refuses lines whose values no profile may want beside the others, or by itself: a plan would be none.
    fn refuse_unwanted(&mut self) {
        loop {
            let wants = self.values.iter().filter_map(|(id, values)| Some((id.clone(), want(values)?)));
            let profile = Profile { want: wants.collect_map(), ..Profile::default() };
            let broken = profile.want.keys().find_map(|id| {
                let rule = self.catalogue.broken_want(id, &profile)?;
                Some((id.clone(), format!("{id} {rule}")))
            });
            let pinned = || self.catalogue.pinned_otherwise(&profile.want);
            let broken = broken.or_else(|| pinned().map(|pinned| (pinned.knob.clone(), pinned.to_string())));
            let moved = || profile.want.keys().find(|id| id.as_str() == MOVED_WITH_A_SERVICE);
            let broken =
                broken.or_else(|| moved().map(|id| (id.clone(), format!("{id} {NO_SERVICE}; {PLACE}"))));
            let Some((id, why)) = broken else { break };
            self.take_out(&[id], &why);
        }
        while let Some(Mistaken { knobs, reason }) =
            self.judge.and_then(|judge| judge.together(&self.wanted()))
        {
            if !self.take_out(&knobs, &reason) {
                return;
            }
        }
    }

    /// Refuses the lines that set what a path means at any of its places.
    pub(super) fn doubt(&mut self, path: &str, why: &str) {
        let id = match address::pool(self.catalogue, path, "0", PAGE_BY_DEFAULT) {
            Some(pool) => pool.ok().map(|(id, ..)| id),
            None => address::of_path(self.catalogue, path).ok().map(|place| place.knob),
        };
        if let Some(id) = id {
            // Whoever sets one of two twins clears the other.
            let twin = self.catalogue.knob(&id).ok().and_then(|knob| knob.twin.clone());
            let both: Vec<KnobId> = twin.into_iter().chain([id]).collect();
            self.take_out(&both, why);
        }
    }

    /// Refuses all lines so far that set something.
    pub(super) fn doubt_all(&mut self, why: &str) {
        let ids: Vec<KnobId> = self.values.keys().chain(self.pools.keys()).cloned().collect();
        self.take_out(&ids, why);
    }

    /// What is wanted so far, with its pools.
    fn wanted(&self) -> Profile {
        let wants = self.values.iter().filter_map(|(id, values)| Some((id.clone(), want(values)?)));
        let pools = self.pools.iter().filter_map(|(id, pools)| Some((id.clone(), size(pools)?)));
        Profile { want: wants.chain(pools).collect_map(), ..Profile::default() }
    }

    /// Refuses the lines that some knobs are wanted by, and says whether there were any.
    fn take_out(&mut self, knobs: &[KnobId], why: &str) -> bool {
        let values = knobs.iter().filter_map(|id| self.values.remove(id)).flatten().map(|value| value.row);
        let pools = knobs.iter().filter_map(|id| self.pools.remove(id)).flatten().map(|pool| pool.row);
        let rows: Vec<usize> = values.chain(pools).collect();
        for row in &rows {
            let row = &mut self.lines[*row];
            (row.knob, row.reason) = (None, Some(why.to_owned()));
        }
        !rows.is_empty()
    }

    /// The wanted values, and what became of every line.
    pub(crate) fn finish(mut self) -> (BTreeMap<KnobId, Want>, Vec<ImportedLine>) {
        self.refuse_unwanted();
        let want = self.wanted().want;
        // Lines that count in another order are told in their own.
        let rows = self.lines.into_iter().enumerate().filter(|(row, _)| !self.repeated.contains(row));
        let mut lines: Vec<(usize, ImportedLine)> =
            rows.map(|(row, line)| (self.files.partition_point(|first| *first <= row), line)).collect();
        lines.sort_small_by_key(|(file, row)| (*file, row.line));
        (want, lines.into_iter().map(|(_, line)| line).collect())
    }
}

/// What a profile says of interrupts.
const PLACE: &str = "a profile moves them by its table [placement]";

/// A line that set a value does not count any more, and says by which one, and why.
fn lose(lines: &mut [ImportedLine], row: usize, (by, winner): (usize, &str), why: &str) {
    let lost = &mut lines[row];
    (lost.knob, lost.overridden_by) = (None, Some(by));
    lost.reason = Some(format!("{winner} {why}"));
}

/// The pools of a knob as one size. What a line sets is the whole pool, whoever reserved what is in it.
fn size(pools: &[Pool]) -> Option<Want> {
    let mut pools: Vec<&Pool> = pools.iter().collect();
    pools.sort_unstable_by_key(|pool| pool.node);
    let total_bytes = pools.first()?.total_bytes;
    let nodes: Vec<u32> = pools.iter().filter_map(|pool| pool.node).collect();
    Some(match nodes.is_empty() {
        true => Want::Total { total_bytes, nodes: Nodes::Spread },
        false if pools.iter().all(|pool| pool.total_bytes == total_bytes) => {
            Want::Total { total_bytes, nodes: Nodes::Each(nodes) }
        }
        false => Want::Totals { total_bytes: pools.iter().map(|pool| pool.total_bytes).collect(), nodes },
    })
}

/// Of several values the last that means a place counts, in a profile the first.
fn want(values: &[Value]) -> Option<Want> {
    let case = |value: &Value| {
        let Value { text, only, .. } = value;
        Case { value: text.clone(), only: only.clone(), needs: Conditions::default() }
    };
    match values {
        [] => None,
        [Value { only: None, text, .. }] => Some(match text.parse() {
            Ok(number) => Want::Int(number),
            Err(_) => Want::Text(text.clone()),
        }),
        [one] => Some(Want::Case(Box::new(case(one)))),
        _ => Some(Want::Cases(values.iter().rev().map(case).collect())),
    }
}
