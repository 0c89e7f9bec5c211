//! What a kernel takes of arguments that are one command line: of several for one parameter the last as a rule, of some
//! the first, and of what stands behind `--` nothing.
//!
//! A file says of no kernel which one it is for. The newest rules are taken: before Linux 4.15 the last `isolcpus=` and
//! `nohz_full=` counted, and before Linux 5.8 the last size of huge pages.

use std::collections::{BTreeMap, BTreeSet};

use planish_model::bootline::{self, Kernel};
use planish_model::{Catalogue, Knob, KnobId, Several};

use super::collect::{Collector, PAGE_BY_DEFAULT};
use crate::address::{self, Address};

/// One argument, with the included file and the line that it is from.
struct Word {
    from: String,
    line: usize,
    text: String,
}

/// The arguments that the kernel reads.
struct Cmdline<'w> {
    words: &'w [Word],
    /// The size of pages that stands before each of them.
    pages: Vec<Option<u64>>,
    /// What the kernel takes for the parameters of which the first counts.
    taken: BTreeMap<KnobId, Taken>,
    /// The default size of pages.
    default_bytes: Option<u64>,
}

/// Of several arguments for one parameter the one that counts.
struct Taken {
    value: String,
    /// The index of its word.
    at: usize,
    /// Those of the words that say something else.
    lost: BTreeSet<usize>,
}

impl Collector<'_> {
    /// Arguments of the kernel command line. Quotes hold blanks together, and are not part of the value
    /// (`next_arg` in lib/cmdline.c).
    pub(crate) fn arguments(&mut self, line: usize, text: &str) {
        let from = self.from.clone();
        self.all_arguments(&[(&from, line, text)]);
    }

    /// Arguments that come from several lines, each with the included file that it is from, and are one command line:
    /// a size of pages counts for what follows.
    pub(crate) fn all_arguments(&mut self, said: &[(&str, usize, &str)]) {
        let of_line = |(from, line, text): &(&'_ str, usize, &str)| {
            let (from, line) = ((*from).to_owned(), *line);
            words(text).into_iter().map(move |text| Word { from: from.clone(), line, text })
        };
        let all: Vec<Word> = said.iter().flat_map(of_line).collect();
        let end = all.iter().position(|word| word.text == "--").unwrap_or(all.len());
        let (own, others) = all.split_at(end);
        let default = |word: &Word| {
            let (name, size) = bootline::parts(&word.text);
            let size = size.filter(|_| name == "default_hugepagesz")?;
            bootline::size(size).map(|_| size.to_owned())
        };
        self.default_page = own.iter().find_map(default).or(self.default_page.take());
        let page = bootline::size(self.default_page.as_deref().unwrap_or(PAGE_BY_DEFAULT));
        let cmdline = Cmdline::of(own, page, self.catalogue);
        (0..own.len()).for_each(|index| self.argument(&cmdline, index));
        for word in others {
            self.from.clone_from(&word.from);
            self.refuse(word.line, &word.text, "is for process 1, as all that stands behind --");
        }
    }

    /// One argument beside the others.
    fn argument(&mut self, cmdline: &Cmdline<'_>, index: usize) {
        let Word { from, line, text } = &cmdline.words[index];
        self.from.clone_from(from);
        let (name, value) = bootline::parts(text);
        if name == "hugepagesz" && value.is_some() {
            return;
        }
        let page = (name == "hugepages").then(|| cmdline.pages[index]);
        let bytes = page.map(|said| said.or(cmdline.default_bytes).unwrap_or_default());
        let said = address::knob_of_argument(self.catalogue, text, bytes)
            .and_then(|knob| Ok((knob, address::of_argument(knob, text)?)));
        let (knob, value) = match (said, name.strip_prefix("sysctl."), value) {
            (Ok(said), ..) => said,
            // The kernel writes it below /proc/sys before it starts process 1 (`do_sysctl_args`).
            (Err(_), Some(key), Some(value)) => return self.sysctl(*line, key, value),
            (Err(reason), ..) => return self.refuse(*line, text, reason),
        };
        // Of what cannot be read the reason is told, and of `hugepages=0` without a size there is no pool.
        let is_of_first = knob.several() == Several::First && address::judge(knob, &value).is_ok();
        let taken = cmdline.taken.get(&knob.id).filter(|_| is_of_first);
        let value = match taken {
            Some(taken) if taken.at != index => return self.is_beside(cmdline, index, taken),
            taken => taken.map_or(value, |taken| taken.value.clone()),
        };
        let is_whole = bootline::parts(text).1 == Some(value.as_str());
        let address = Address { knob: knob.id.clone(), only: None };
        self.accept(*line, text.clone(), address, &value);
        if is_of_first && !is_whole {
            self.remark(format!("with the words of a later one: {value}"));
        }
        // Without a size in front they are of the default size (`hugepages_setup` in mm/hugetlb.c).
        if page == Some(None) && self.default_page.is_none() {
            self.remark(format!("pages of the default size, taken for {PAGE_BY_DEFAULT}"));
        }
    }

    /// An argument that the kernel passes over for another one.
    fn is_beside(&mut self, cmdline: &Cmdline<'_>, index: usize, taken: &Taken) {
        let (own, by) = (&cmdline.words[index], &cmdline.words[taken.at]);
        self.from.clone_from(&by.from);
        let winner = self.winner(by.line);
        self.from.clone_from(&own.from);
        // Only lists of CPUs are put together.
        let is_lost = taken.lost.contains(&index) || bootline::parts(&own.text).0 == "hugepages";
        let why = match is_lost {
            true => format!("the kernel keeps {} of {winner}", by.text),
            false => format!("is read together with {} of {winner}", by.text),
        };
        self.pass_over(own.line, &own.text, by.line, &why);
    }
}

impl<'w> Cmdline<'w> {
    fn of(words: &'w [Word], default_bytes: Option<u64>, catalogue: &Catalogue) -> Self {
        let texts: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
        let kernel = Kernel::new("", "", default_bytes);
        let mut size = None;
        let page = |text: &&str| {
            let (name, value) = bootline::parts(text);
            let is_size = ["hugepagesz", "default_hugepagesz"].contains(&name);
            let before = size;
            size = if is_size { value.and_then(bootline::size) } else { size };
            before
        };
        let pages = texts.iter().map(page).collect();
        let taken = |knob: &Knob| {
            let (value, at) = bootline::found(&texts, knob, kernel)?;
            let lost = bootline::passed_over(&texts, knob, kernel).into_iter().map(|(_, index)| index);
            Some((knob.id.clone(), Taken { value, at, lost: lost.collect() }))
        };
        let of_first = catalogue.knobs().filter(|knob| knob.several() == Several::First);
        Self { words, pages, taken: of_first.filter_map(taken).collect(), default_bytes }
    }
}

/// Words apart at blanks outside of double quotes, which fall away.
fn words(text: &str) -> Vec<String> {
    let mut is_quoted = false;
    let at_blank = |c: char| {
        is_quoted ^= c == '"';
        c.is_whitespace() && !is_quoted
    };
    let words = text.split(at_blank).filter(|word| !word.is_empty());
    words.map(|word| word.replace('"', "")).collect()
}
